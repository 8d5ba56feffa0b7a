// index.js - finds the rectangles, among many, that intersect one: a tree of groups of sixteen, packed along a Hilbert curve.

const GROUP = 16;

// The position on the curve of a point in a square of 65536 x 65536.
function hilbert(x, y) {
    let d = 0;
    for (let s = 32768; s > 0; s >>= 1) {
        const rx = (x & s) > 0 ? 1 : 0, ry = (y & s) > 0 ? 1 : 0;
        d += s * s * ((3 * rx) ^ ry);
        if (!ry) {
            if (rx) {
                x = 65535 - x;
                y = 65535 - y;
            }
            [x, y] = [y, x];
        }
    }
    return d;
}

class Tree {
    // rects: x0, y0, x1, y1 of each item; arrows that are not drawn have empty ones.
    constructor(rects, width, height) {
        const n = rects.length / 4, keys = new Float64Array(n);
        const sx = 65535 / Math.max(1, width), sy = 65535 / Math.max(1, height);
        const clamp = v => v > 0 ? v < 65535 ? v | 0 : 65535 : 0;
        let kept = 0;
        for (let i = 0; i < n; i++) {
            if (!(rects[4 * i] <= rects[4 * i + 2]))
                continue;
            const x = clamp((rects[4 * i] + rects[4 * i + 2]) / 2 * sx), y = clamp((rects[4 * i + 1] + rects[4 * i + 3]) / 2 * sy);
            // 30 bits of the curve position, 23 of the item: exact in a double.
            keys[kept++] = Math.floor(hilbert(x, y) / 4) * 8388608 + i;
        }
        const sorted = keys.subarray(0, kept).sort();
        this.rects = rects;
        this.item = new Int32Array(kept);
        for (let i = 0; i < kept; i++)
            this.item[i] = sorted[i] % 8388608;
        this.levels = [];
        let below = null, count = kept;
        while (count > 1 || !below) {
            const groups = Math.ceil(count / GROUP), r = new Float64Array(4 * groups);
            for (let g = 0; g < groups; g++) {
                let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
                for (let i = g * GROUP; i < Math.min(count, (g + 1) * GROUP); i++) {
                    const from = below || rects, k = 4 * (below ? i : this.item[i]);
                    x0 = Math.min(x0, from[k]); y0 = Math.min(y0, from[k + 1]);
                    x1 = Math.max(x1, from[k + 2]); y1 = Math.max(y1, from[k + 3]);
                }
                r[4 * g] = x0; r[4 * g + 1] = y0; r[4 * g + 2] = x1; r[4 * g + 3] = y1;
            }
            this.levels.push(r);
            below = r;
            count = groups;
            if (!kept)
                break;
        }
    }
    query(x0, y0, x1, y1) {
        const out = [], levels = this.levels;
        const touches = (r, k) => r[k] <= x1 && r[k + 2] >= x0 && r[k + 1] <= y1 && r[k + 3] >= y0;
        const visit = (level, g) => {
            if (!touches(levels[level], 4 * g))
                return;
            const count = level ? levels[level - 1].length / 4 : this.item.length;
            for (let i = g * GROUP; i < Math.min(count, (g + 1) * GROUP); i++)
                if (level)
                    visit(level - 1, i);
                else if (touches(this.rects, 4 * this.item[i]))
                    out.push(this.item[i]);
        };
        if (this.item.length)
            visit(levels.length - 1, 0);
        return out;
    }
}
