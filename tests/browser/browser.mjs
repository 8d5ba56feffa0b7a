// browser.mjs - for tests of pages: starts a headless Chromium, opens a page, and reads what is on the screen.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { default: puppeteer } = await import(
    pathToFileURL(process.env.ONX_BROWSER_TOOLS + "/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js"));

let failures = 0;

export function check(holds, what) {
    if (holds)
        return;
    failures++;
    console.log("FAIL: " + what);
}

export function equal(got, wanted, what) {
    check(JSON.stringify(got) === JSON.stringify(wanted), `${what}: ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
}

// Runs `onx view` on text, and more arguments, and tells where the page is.
export function view(name, text, ...more) {
    if (text !== null)
        writeFileSync(name, text);
    const page = name.replace(/\..*$/, "") + ".html";
    try {
        execFileSync(process.env.ONX, ["view", name, "-o", page, ...more], { stdio: "ignore" });
    } catch (e) {
        if (e.status !== 1) // 1: a page that says what is wrong with the file
            throw e;
    }
    return process.cwd() + "/" + page;
}

export const launch = (...flags) => puppeteer.launch({
    executablePath: "/usr/bin/chromium", headless: true, args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb", ...flags], protocolTimeout: 240000,
});
export const browser = await launch();

// A page with nothing to say: errors, messages and requests of it are failures.
export async function open(url, { theme = "light", width = 1400, height = 900 } = {}) {
    const page = await browser.newPage();
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    page.on("pageerror", e => check(false, `${url}: ${e.message}`));
    page.on("console", m => check(false, `${url} says ${m.text()}`));
    page.on("request", r => check(r.url() === url || /^(data|blob):/.test(r.url()), `${url} asks for ${r.url()}`));
    await page.goto(url, { waitUntil: "load", timeout: 120000 });
    await settle(page);
    await new Promise(done => setTimeout(done, 300)); // the first picture of a new page comes late on a busy machine
    await settle(page);
    return page;
}

// Until what was changed is on the screen.
export function settle(page) {
    return page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))));
}

// Where the first box of that title is on the screen, in pixels; `scope` is part of the label of its graph.
export function place(page, title, scope = "") {
    return page.evaluate((t, s) => {
        const look = (area, ox, oy) => {
            for (let b = 0; b < area.scope.count; b++) {
                if (area.scope.title(b) === t && area.scope.label().includes(s)) {
                    const p = onxView.active, r = p.canvas.getBoundingClientRect(), k = p.scale;
                    return { x: r.left + p.x + (ox + area.x[b]) * k, y: r.top + p.y + (oy + area.y[b]) * k, w: area.w[b] * k, h: area.h[b] * k };
                }
                for (const part of area.open.get(b) || []) {
                    const found = look(part.area, ox + part.area.dx, oy + part.area.dy);
                    if (found)
                        return found;
                }
            }
            return null;
        };
        return look(onxView.active.root, 0, 0);
    }, title, scope);
}

// The colour of a pixel of the screen, of a picture that the browser takes of it.
export async function pixel(page, x, y) {
    const shot = await page.screenshot({ clip: { x: Math.floor(x), y: Math.floor(y), width: 1, height: 1 }, encoding: "base64" });
    return page.evaluate(async s => {
        const bytes = Uint8Array.from(atob(s), c => c.charCodeAt(0)), picture = await createImageBitmap(new Blob([bytes]));
        const c = new OffscreenCanvas(1, 1).getContext("2d");
        c.drawImage(picture, 0, 0);
        return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }, shot);
}

// The numbers of a colour of CSS.
export function color(page, text) {
    return page.evaluate(t => {
        const c = new OffscreenCanvas(1, 1).getContext("2d");
        c.fillStyle = t;
        c.fillRect(0, 0, 1, 1);
        return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }, text);
}

export function near(a, b) {
    return a.every((v, i) => Math.abs(v - b[i]) <= 3);
}

export const text = (page, selector) => page.$eval(selector, e => e.textContent);

export async function done() {
    await browser.close();
    process.exit(failures ? 1 : 0);
}
