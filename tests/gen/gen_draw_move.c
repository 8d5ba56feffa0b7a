/* gen_draw_move.c - blocks of nodes that move elements: views, pieces, copies. */
#include "gen/gen_draw.h"

#include <stdio.h>
#include <string.h>

static draw_wish of_least(uint32_t types, uint32_t least)
{
    return (draw_wish){ .types = types, .least = least };
}

static int64_t negated_at_times(draw *d, int64_t axis, uint32_t rank)
{
    return d->opset >= 11 && draw_chance(d, 30) ? axis - rank : axis;
}

static bool transpose(draw *d)
{
    draw_value v, out;
    int64_t perm[DRAW_RANK];
    if (!draw_pick(d, of_least(draw_takes(d, "Transpose", 0), 2), &v))
        return false;
    out = draw_like(&v);
    for (uint32_t i = 0; i < v.rank; i++)
        perm[i] = i;
    for (uint32_t i = v.rank; i-- > 1;) {
        const uint32_t k = gen_below(&d->random, i + 1);
        const int64_t kept = perm[i];
        perm[i] = perm[k];
        perm[k] = kept;
    }
    const bool reversed = draw_chance(d, 15);
    for (uint32_t i = 0; i < v.rank; i++)
        out.dims[i] = v.dims[reversed ? v.rank - 1 - i : (uint32_t)perm[i]];
    return reversed ? draw_node(d, &out, 1, "Transpose (%s)", v.name)
                    : draw_node(d, &out, 1, "Transpose <perm = %s> (%s)", draw_listed(perm, v.rank).text, v.name);
}

static bool reshape(draw *d)
{
    static const int64_t primes[] = { 2, 3, 5, 7, 11, 17 };
    draw_value v, out;
    int64_t target[DRAW_RANK];
    if (!draw_pick(d, of_least(draw_takes(d, "Reshape", 0), 0), &v))
        return false;
    uint64_t left = draw_product(v.dims, v.rank);
    out = (draw_value){ .dtype = v.dtype };
    if (!left) {
        /* the same sizes in another order, all written out */
        out = draw_like(&v);
        for (uint32_t i = 0; i < v.rank; i++)
            target[i] = out.dims[i] = v.dims[v.rank - 1 - i];
        for (uint32_t i = 0; i < v.rank; i++)
            if (!target[i] && v.dims[i] != 0)
                return false;
        const draw_value shape = draw_ints(d, target, v.rank);
        return draw_node(d, &out, 1, "Reshape (%s, %s)", v.name, shape.name);
    }
    out.rank = left == 1 ? gen_below(&d->random, 4) : 1 + gen_below(&d->random, 5);
    for (uint32_t i = 0; i < out.rank; i++)
        out.dims[i] = 1;
    for (size_t p = 0; p < sizeof primes / sizeof *primes; p++)
        for (; left % (uint64_t)primes[p] == 0; left /= (uint64_t)primes[p])
            out.dims[gen_below(&d->random, out.rank)] *= primes[p];
    if (out.rank)
        out.dims[gen_below(&d->random, out.rank)] *= (int64_t)left;
    memcpy(target, out.dims, sizeof target);
    if (out.rank && draw_chance(d, 40))
        target[gen_below(&d->random, out.rank)] = -1;
    for (uint32_t i = 0; i < out.rank && i < v.rank; i++)
        if (target[i] == v.dims[i] && draw_chance(d, 30))
            target[i] = 0;
    const draw_value shape = draw_ints(d, target, out.rank);
    return draw_node(d, &out, 1, "Reshape (%s, %s)", v.name, shape.name);
}

static bool flatten(draw *d)
{
    draw_value v, out;
    if (!draw_pick(d, of_least(draw_takes(d, "Flatten", 0), 1), &v))
        return false;
    const uint32_t axis = gen_below(&d->random, v.rank + 1);
    out = (draw_value){ .dtype = v.dtype, .rank = 2 };
    out.dims[0] = (int64_t)draw_product(v.dims, axis);
    out.dims[1] = (int64_t)draw_product(v.dims + axis, v.rank - axis);
    return draw_node(d, &out, 1, "Flatten <axis = %lld> (%s)",
                     (long long)(axis < v.rank ? negated_at_times(d, axis, v.rank) : axis), v.name);
}

static bool squeeze(draw *d)
{
    draw_value v, out;
    int64_t axes[DRAW_RANK];
    uint32_t count = 0;
    if (!draw_pick(d, of_least(draw_takes(d, "Squeeze", 0), 1), &v))
        return false;
    out = (draw_value){ .dtype = v.dtype };
    for (uint32_t i = 0; i < v.rank; i++)
        if (v.dims[i] == 1 && draw_chance(d, 70))
            axes[count++] = negated_at_times(d, i, v.rank);
        else
            out.dims[out.rank++] = v.dims[i];
    if (!count)
        return false;
    if (d->opset < 13)
        return draw_node(d, &out, 1, "Squeeze <axes = %s> (%s)", draw_listed(axes, count).text, v.name);
    const draw_value list = draw_ints(d, axes, count);
    return draw_node(d, &out, 1, "Squeeze (%s, %s)", v.name, list.name);
}

static bool unsqueeze(draw *d)
{
    draw_value v, out;
    int64_t axes[2];
    uint32_t count = 0, from = 0;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Unsqueeze", 0), .most = DRAW_RANK - 2 }, &v))
        return false;
    const uint32_t wanted = 1 + draw_chance(d, 30);
    out = (draw_value){ .dtype = v.dtype, .rank = v.rank + wanted };
    for (uint32_t i = 0; i < out.rank; i++) {
        const uint32_t left = out.rank - i;
        if (count < wanted && gen_below(&d->random, left) < wanted - count) {
            axes[count++] = negated_at_times(d, i, out.rank);
            out.dims[i] = 1;
        } else {
            out.dims[i] = v.dims[from++];
        }
    }
    if (d->opset < 13)
        return draw_node(d, &out, 1, "Unsqueeze <axes = %s> (%s)", draw_listed(axes, count).text, v.name);
    const draw_value list = draw_ints(d, axes, count);
    return draw_node(d, &out, 1, "Unsqueeze (%s, %s)", v.name, list.name);
}

/* How many elements a slice has. */
static int64_t sliced(int64_t size, int64_t start, int64_t end, int64_t step)
{
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    if (!size)
        return 0;
    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > size ? size : end;
    const int64_t n = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
    return n < 0 ? 0 : n;
}

static bool slice(draw *d)
{
    draw_value v, out;
    int64_t axes[DRAW_RANK], starts[DRAW_RANK], ends[DRAW_RANK], steps[DRAW_RANK];
    uint32_t count = 0;
    bool stepped = false;
    if (!draw_pick(d, of_least(draw_takes(d, "Slice", 0), 1), &v))
        return false;
    out = draw_like(&v);
    for (uint32_t i = 0; i < v.rank; i++) {
        if (!draw_chance(d, 100 / v.rank + 10))
            continue;
        const int size = (int)v.dims[i];
        const int64_t step = d->opset >= 10 && draw_chance(d, 30) ? DRAW_ONE(d, int64_t, -1, -1, -2, 2, 3) : 1;
        int64_t start = draw_between(d, -size - 1, size + 1), end = draw_between(d, -size - 1, size + 1);
        if (draw_chance(d, 40))
            end =
                step > 0 ? DRAW_ONE(d, int64_t, INT32_MAX, INT64_MAX) : DRAW_ONE(d, int64_t, INT32_MIN, INT64_MIN + 1);
        if (draw_chance(d, 40))
            start = step > 0 ? 0 : INT32_MAX;
        if (!sliced(size, start, end, step) && draw_chance(d, d->theme == DRAW_ZERO ? 60 : 95)) {
            start = step > 0 ? 0 : INT32_MAX;
            end = step > 0 ? size : INT32_MIN;
        }
        stepped = stepped || step != 1;
        axes[count] = negated_at_times(d, i, v.rank);
        starts[count] = start;
        ends[count] = end;
        steps[count++] = step;
        out.dims[i] = sliced(size, start, end, step);
    }
    if (!count)
        return false;
    if (d->opset < 10)
        return draw_node(d, &out, 1, "Slice <axes = %s, starts = %s, ends = %s> (%s)", draw_listed(axes, count).text,
                         draw_listed(starts, count).text, draw_listed(ends, count).text, v.name);
    const draw_value s = draw_ints(d, starts, count), e = draw_ints(d, ends, count), a = draw_ints(d, axes, count);
    if (!stepped && draw_chance(d, 60))
        return draw_node(d, &out, 1, "Slice (%s, %s, %s, %s)", v.name, s.name, e.name, a.name);
    const draw_value p = draw_ints(d, steps, count);
    return draw_node(d, &out, 1, "Slice (%s, %s, %s, %s, %s)", v.name, s.name, e.name, a.name, p.name);
}

/* Another value that differs along one axis at most. */
static bool beside(draw *d, const draw_value *v, uint32_t axis, draw_value *out)
{
    for (int tries = 0; tries < 8 && draw_chance(d, 80); tries++) {
        bool same = draw_pick(d, (draw_wish){ .types = 1u << v->dtype, .least = v->rank, .most = v->rank }, out);
        for (uint32_t i = 0; same && i < v->rank; i++)
            same = i == axis || out->dims[i] == v->dims[i];
        if (same)
            return true;
    }
    *out = draw_like(v);
    out->dims[axis] = draw_between(d, d->theme == DRAW_ZERO ? 0 : 1, 3);
    draw_constant(d, out, DRAW_SMALL);
    return true;
}

static bool concat(draw *d)
{
    draw_value v, parts[4], out;
    char list[80];
    size_t len = 0;
    if (!draw_pick(d, of_least(draw_takes(d, "Concat", 0), 1), &v))
        return false;
    /* outer axes more often: parts are then contiguous */
    const uint32_t axis = draw_chance(d, 40) ? 0 : gen_below(&d->random, v.rank);
    const uint32_t count = DRAW_ONE(d, uint32_t, 1, 2, 2, 2, 3, 4), own = gen_below(&d->random, count);
    out = draw_like(&v);
    out.dims[axis] = 0;
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = v;
        if (i != own && !beside(d, &v, axis, &parts[i]))
            return false;
        out.dims[axis] += parts[i].dims[axis];
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", parts[i].name);
    }
    return draw_node(d, &out, 1, "Concat <axis = %lld> (%s)", (long long)negated_at_times(d, axis, v.rank), list);
}

static bool split(draw *d)
{
    draw_value v, out[4];
    int64_t sizes[4];
    if (!draw_pick(d, of_least(draw_takes(d, "Split", 0), 1), &v))
        return false;
    const uint32_t axis = draw_chance(d, 40) ? 0 : gen_below(&d->random, v.rank);
    const int64_t size = v.dims[axis];
    uint32_t count = 1 + gen_below(&d->random, 4);
    if (d->theme != DRAW_ZERO && size < (int64_t)count)
        count = size ? (uint32_t)size : 1;
    int64_t left = size;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t least = d->theme == DRAW_ZERO || !size ? 0 : 1, others = least * (count - 1 - i);
        sizes[i] = i + 1 == count ? left : draw_between(d, (int)least, (int)(left - others));
        left -= sizes[i];
        out[i] = draw_like(&v);
        out[i].dims[axis] = sizes[i];
    }
    const long long at = (long long)negated_at_times(d, axis, v.rank);
    if (d->opset < 13)
        return draw_node(d, out, count, "Split <axis = %lld, split = %s> (%s)", at, draw_listed(sizes, count).text,
                         v.name);
    const draw_value list = draw_ints(d, sizes, count);
    return draw_node(d, out, count, "Split <axis = %lld> (%s, %s)", at, v.name, list.name);
}

static bool gather(draw *d)
{
    draw_value v, index, out;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Gather", 0), .least = 1, .full = true }, &v))
        return false;
    const uint32_t axis = draw_chance(d, 40) ? 0 : gen_below(&d->random, v.rank);
    const int64_t dims[] = { DRAW_ONE(d, int64_t, 1, 2, 3), 2 };
    index = draw_of(draw_chance(d, 70) ? ONX_INT64 : ONX_INT32, DRAW_ONE(d, uint32_t, 0, 0, 1, 1, 2), dims);
    out = (draw_value){ .dtype = v.dtype, .rank = v.rank - 1 + index.rank };
    if (out.rank > DRAW_RANK)
        return false;
    for (uint32_t i = 0; i < out.rank; i++)
        out.dims[i] = i < axis ? v.dims[i] : i < axis + index.rank ? index.dims[i - axis] : v.dims[i - index.rank + 1];
    draw_indices(d, &index, v.dims[axis], d->opset >= 11);
    return draw_node(d, &out, 1, "Gather <axis = %lld> (%s, %s)", (long long)negated_at_times(d, axis, v.rank), v.name,
                     index.name);
}

static bool expand(draw *d)
{
    draw_value v, out, target = { .rank = 0 };
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Expand", 0), .most = DRAW_RANK - 1 }, &v))
        return false;
    const bool more = draw_chance(d, 40);
    target = draw_like(&v);
    for (uint32_t i = 0; i < v.rank; i++)
        target.dims[i] = v.dims[i] == 1 ? DRAW_ONE(d, int64_t, 1, 2, 3) : draw_chance(d, 30) ? 1 : v.dims[i];
    if (more) {
        memmove(target.dims + 1, target.dims, v.rank * sizeof *target.dims);
        target.dims[0] = DRAW_ONE(d, int64_t, 1, 2);
        target.rank++;
    }
    if (!draw_broadcast(&v, &target, &out))
        return false;
    const draw_value shape = draw_ints(d, target.dims, target.rank);
    return draw_node(d, &out, 1, "Expand (%s, %s)", v.name, shape.name);
}

static bool tile(draw *d)
{
    draw_value v, out;
    int64_t times[DRAW_RANK];
    if (!draw_pick(d, of_least(draw_takes(d, "Tile", 0), 1), &v))
        return false;
    out = draw_like(&v);
    for (uint32_t i = 0; i < v.rank; i++)
        out.dims[i] *= times[i] = DRAW_ONE(d, int64_t, 1, 1, 1, 2, 3);
    const draw_value list = draw_ints(d, times, v.rank);
    return draw_node(d, &out, 1, "Tile (%s, %s)", v.name, list.name);
}

static bool pad(draw *d)
{
    draw_value v, out;
    int64_t pads[2 * DRAW_RANK];
    const char *mode = DRAW_ONE(d, const char *, "constant", "constant", "constant", "reflect", "edge", "wrap");
    const bool constant = mode[0] == 'c';
    if (strcmp(mode, "wrap") == 0 && d->opset < 19)
        return false;
    if (!draw_pick(
            d, (draw_wish){ .types = draw_takes(d, "Pad", 0) & ~DRAW_BIT(STRING), .least = 1, .full = !constant }, &v))
        return false;
    out = draw_like(&v);
    for (uint32_t i = 0; i < v.rank; i++) {
        const int most = constant ? 2 : (int)v.dims[i] - (mode[0] == 'r');
        for (uint32_t end = 0; end < 2; end++)
            pads[end * v.rank + i] = draw_chance(d, 60) ? 0 : draw_between(d, 0, most < 2 ? most : 2);
        if (constant && v.dims[i] > 1 && draw_chance(d, 10))
            pads[i] = -1;
        out.dims[i] += pads[i] + pads[v.rank + i];
    }
    if (d->opset < 11)
        return draw_node(d, &out, 1, "Pad <mode = \"%s\", pads = %s> (%s)", mode, draw_listed(pads, 2 * v.rank).text,
                         v.name);
    const draw_value list = draw_ints(d, pads, 2 * v.rank);
    draw_value with = draw_of(v.dtype, 0, NULL);
    if (!constant || draw_chance(d, 50))
        return draw_node(d, &out, 1, "Pad <mode = \"%s\"> (%s, %s)", mode, v.name, list.name);
    draw_number(d, &with, DRAW_ONE(d, double, 0, 0, 1));
    return draw_node(d, &out, 1, "Pad (%s, %s, %s)", v.name, list.name, with.name);
}

static bool blocks(draw *d)
{
    draw_value v, out;
    const bool deep = draw_chance(d, 50);
    const char *op = deep ? "DepthToSpace" : "SpaceToDepth";
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, op, 0), .least = 4, .most = 4, .full = true }, &v))
        return false;
    out = draw_like(&v);
    if (deep ? v.dims[1] % 4 : v.dims[2] % 2 || v.dims[3] % 2)
        return false;
    out.dims[1] = deep ? v.dims[1] / 4 : v.dims[1] * 4;
    for (uint32_t i = 2; i < 4; i++)
        out.dims[i] = deep ? v.dims[i] * 2 : v.dims[i] / 2;
    const char *mode = deep && d->opset >= 11 ? DRAW_ONE(d, const char *, ", mode = \"CRD\"", ", mode = \"DCR\"") : "";
    return draw_node(d, &out, 1, "%s <blocksize = 2%s> (%s)", op, mode, v.name);
}

static bool triangle(draw *d)
{
    draw_value v, k = { .dtype = ONX_INT64 };
    if (!draw_pick(d, of_least(draw_takes(d, "Trilu", 0) & ~DRAW_BIT(STRING), 2), &v))
        return false;
    draw_number(d, &k, draw_between(d, -2, 2));
    draw_value out = draw_like(&v);
    return draw_node(d, &out, 1, "Trilu <upper = %d> (%s, %s)", draw_between(d, 0, 1), v.name, k.name);
}

static bool compress(draw *d)
{
    draw_value v, out, keep;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Compress", 0), .least = 1, .full = true }, &v))
        return false;
    const uint32_t axis = gen_below(&d->random, v.rank);
    keep = draw_of(ONX_BOOL, 1, &v.dims[axis]);
    draw_number(d, &keep, 1);
    out = draw_like(&v);
    return draw_node(d, &out, 1, "Compress <axis = %u> (%s, %s)", axis, v.name, keep.name);
}

static bool gather_elements(draw *d)
{
    draw_value v, index;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "GatherElements", 0), .least = 1, .full = true }, &v))
        return false;
    const uint32_t axis = gen_below(&d->random, v.rank);
    index = draw_like(&v);
    index.dtype = ONX_INT64;
    index.dims[axis] = draw_between(d, 1, (int)v.dims[axis]);
    draw_value out = index;
    out.dtype = v.dtype;
    draw_indices(d, &index, v.dims[axis], true);
    return draw_node(d, &out, 1, "GatherElements <axis = %u> (%s, %s)", axis, v.name, index.name);
}

/* One element per row, so that no index comes twice. */
static bool scatter(draw *d)
{
    draw_value v, index, updates, out;
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "ScatterElements", 0), .least = 1, .full = true }, &v))
        return false;
    const uint32_t axis = gen_below(&d->random, v.rank);
    if (draw_chance(d, 40)) {
        const int64_t dims[] = { 1, 1 };
        index = draw_of(ONX_INT64, 2, dims);
        updates = draw_like(&v);
        updates.dims[0] = 1;
        draw_indices(d, &index, v.dims[0], false);
        draw_constant(d, &updates, DRAW_SMALL);
        out = draw_like(&v);
        return draw_node(d, &out, 1, "ScatterND (%s, %s, %s)", v.name, index.name, updates.name);
    }
    index = draw_like(&v);
    index.dtype = ONX_INT64;
    index.dims[axis] = 1;
    updates = draw_like(&v);
    updates.dims[axis] = 1;
    draw_indices(d, &index, v.dims[axis], true);
    draw_constant(d, &updates, DRAW_SMALL);
    out = draw_like(&v);
    return draw_node(d, &out, 1, "ScatterElements <axis = %u> (%s, %s, %s)", axis, v.name, index.name, updates.name);
}

/* A value, its parts, and all of them joined again in some order. */
static bool parted(draw *d)
{
    draw_value v, part[2], changed, out;
    int64_t sizes[2];
    if (!draw_pick(d,
                   (draw_wish){ .types = draw_takes(d, "Split", 0) & draw_takes(d, "Neg", 0) & draw_takes(d, "Add", 0),
                                .least = 1 },
                   &v))
        return false;
    const uint32_t axis = draw_chance(d, 60) ? 0 : gen_below(&d->random, v.rank);
    if (v.dims[axis] < 2)
        return false;
    sizes[0] = draw_chance(d, 50) ? 1 : draw_between(d, 1, (int)v.dims[axis] - 1);
    sizes[1] = v.dims[axis] - sizes[0];
    changed = draw_like(&v);
    if (!draw_node(d, &changed, 1, "%s (%s)", DRAW_ONE(d, const char *, "Abs", "Neg", "Identity"), v.name))
        return false;
    for (int i = 0; i < 2; i++) {
        part[i] = draw_like(&v);
        part[i].dims[axis] = sizes[i];
    }
    if (d->opset < 13) {
        if (!draw_node(d, part, 2, "Split <axis = %u, split = %s> (%s)", axis, draw_listed(sizes, 2).text,
                       changed.name))
            return false;
    } else {
        const draw_value list = draw_ints(d, sizes, 2);
        if (!draw_node(d, part, 2, "Split <axis = %u> (%s, %s)", axis, changed.name, list.name))
            return false;
    }
    const char *op = DRAW_ONE(d, const char *, "Add", "Mul", "Sub");
    if (draw_broadcast(&changed, &part[0], &out) && draw_chance(d, 70))
        return draw_chance(d, 50) ? draw_node(d, &out, 1, "%s (%s, %s)", op, changed.name, part[0].name)
                                  : draw_node(d, &out, 1, "%s (%s, %s)", op, part[0].name, changed.name);
    out = draw_like(&v);
    return draw_node(d, &out, 1, "Concat <axis = %u> (%s, %s)", axis, part[0].name, part[1].name);
}

const draw_block draw_move_blocks[] = {
    { "transpose", { 7, 8, 4, 6, 5 }, 1, false, transpose },
    { "reshape", { 8, 14, 5, 6, 5 }, 5, false, reshape },
    { "flatten", { 2, 3, 2, 3, 2 }, 9, false, flatten },
    { "squeeze", { 5, 6, 3, 5, 3 }, 1, false, squeeze },
    { "unsqueeze", { 5, 6, 3, 5, 3 }, 1, false, unsqueeze },
    { "slice", { 6, 8, 4, 7, 5 }, 9, false, slice },
    { "concat", { 6, 18, 5, 8, 5 }, 4, false, concat },
    { "split", { 5, 14, 3, 5, 4 }, 7, false, split },
    { "parted", { 2, 8, 1, 1, 2 }, 7, false, parted },
    { "gather", { 5, 4, 3, 2, 4 }, 1, false, gather },
    { "expand", { 4, 4, 2, 4, 4 }, 8, false, expand },
    { "tile", { 3, 2, 1, 3, 3 }, 7, false, tile },
    { "pad", { 4, 4, 3, 4, 4 }, 7, false, pad },
    { "blocks", { 2, 2, 1, 1, 1 }, 7, false, blocks },
    { "triangle", { 1, 1, 1, 1, 2 }, 14, false, triangle },
    { "compress", { 1, 1, 1, 1, 1 }, 9, false, compress },
    { "gather_elements", { 1, 1, 1, 1, 2 }, 11, false, gather_elements },
    { "scatter", { 2, 2, 1, 1, 2 }, 11, false, scatter },
    { .name = NULL },
};
