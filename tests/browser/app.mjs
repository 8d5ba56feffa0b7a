// app.mjs - tests the page with the module (web/app): models that are dropped on it are drawn, checked and run, and nothing is
// fetched. The npm module is loaded in the browser, too, from an address of this machine.
import { createServer } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { browser, check, done, equal, launch, open, place, settle, text } from "./browser.mjs";

const built = process.env.ONX_WEB_OUT || process.env.ONX_SOURCE_DIR + "/build-web";
if (!existsSync(built + "/onx.html")) {
    console.log("skipped: build-web/onx.html is not there (make web)");
    await browser.close();
    process.exit(77);
}

// Drops files on the page as a person does: with the events, and the files in them.
async function drop(page, ...files) {
    await page.evaluate(list => {
        const data = new DataTransfer();
        for (const f of list)
            data.items.add(new File([Uint8Array.from(atob(f.bytes), c => c.charCodeAt(0))], f.name, { type: f.type || "" }));
        for (const kind of ["dragenter", "dragover", "drop"])
            document.querySelector("main").dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
    }, files.map(f => ({ ...f, bytes: Buffer.from(f.bytes).toString("base64") })));
}
const said = (page, wanted) => page.waitForFunction(t => document.getElementById("message").textContent.includes(t), { timeout: 20000 }, wanted)
    .catch(async () => check(false, `the page says "${await text(page, "#message")}", not "${wanted}"`));
async function run(page) {
    await page.evaluate(() => document.getElementById("results").replaceChildren());
    await page.click("#run");
    await page.waitForFunction(() => document.querySelector("#results .output") || document.querySelector("#message.error"), { timeout: 20000 });
}
const outputs = page => page.$$eval("#results .output", l => l.map(e => [e.querySelector("b").textContent, e.querySelector(".type").textContent, e.querySelector("pre").textContent]));

const page = await open("file://" + built + "/onx.html");
await said(page, "This is an example");
check(await place(page, "Conv"), "the example is not drawn");

// ---- a model that breaks rules, with numbers typed in ----
const model = `<ir_version: 10, opset_import: ["" : 21], doc_string: "<b>bold</b>">
g (float[N,2] x, float k) => (float[N,2] y, float unused)
{
  s = Mul (x, k)
  y = Relu (s)
  unused = ReduceSum <keepdims = 0> (s)
  y = Neg (x)
}
`;
await drop(page, { name: "a model.onnxtxt", bytes: model });
await said(page, "Inputs that are left empty");
equal(await page.title(), "a model.onnxtxt - onx view", "title");
check(await place(page, "Relu"), "what was dropped is not drawn");
check(!(await place(page, "Conv")), "the example is still there");
check((await text(page, "#panel")).includes("Findings"), "the panel has no findings");
check((await text(page, "#status")).includes("error"), "the line above does not count the error");
equal(await page.$$eval("b", l => l.filter(e => e.textContent === "bold").length), 0, "markup made of the text of a model");

await drop(page, { name: "good.onnxtxt", bytes: model.replace("  y = Neg (x)\n", "") });
await said(page, "Inputs that are left empty");
check(!(await text(page, "#status")).includes("error"), "findings of the model before are still there");
equal(await page.$$eval(".field b", l => l.map(e => e.textContent)), ["x", "k"], "fields");
const [x, k] = await page.$$(".field .numbers");
await x.type("[[1, -2], [3, 4.5]]");
await k.type("2");
await run(page);
equal(await outputs(page), [["y", "float[2,2]", "[[2,0],[6,9]]"], ["unused", "float[]", "13"]], "outputs");
if (process.env.ONX_SCREENSHOT)
    await page.screenshot({ path: process.env.ONX_SCREENSHOT });
await x.type("]");
await run(page);
check(await page.$eval("#message", e => e.className === "error"), "numbers that are none are taken");

// ---- a picture ----
function png(width, height, pixel) {
    const rows = Buffer.alloc(height * (1 + 3 * width)), crc = bytes => {
        let c = ~0;
        for (const b of bytes) {
            c ^= b;
            for (let i = 0; i < 8; i++)
                c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
        }
        return ~c >>> 0;
    };
    for (let y = 0; y < height; y++)
        for (let x = 0; x < width; x++)
            rows.set(pixel(x, y), y * (1 + 3 * width) + 1 + 3 * x);
    const chunk = (name, body) => {
        const all = Buffer.concat([Buffer.alloc(4), Buffer.from(name), body, Buffer.alloc(4)]);
        all.writeUInt32BE(body.length, 0);
        all.writeUInt32BE(crc(all.subarray(4, all.length - 4)), all.length - 4);
        return all;
    };
    const head = Buffer.alloc(13);
    head.writeUInt32BE(width, 0);
    head.writeUInt32BE(height, 4);
    head.set([8, 2], 8);
    return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}
await drop(page, { name: "mean.onnxtxt", bytes: `<ir_version: 10, opset_import: ["" : 21]> g (float[1,3,H,W] image) => (float[3] y) <int64[3] axes = {0,2,3}> { y = ReduceMean <keepdims = 0> (image, axes) }` });
await said(page, "Inputs that are left empty");
await page.evaluate(() => document.getElementById("results").replaceChildren());
await drop(page, { name: "p.png", type: "image/png", bytes: png(4, 2, x => x < 2 ? [255, 51, 0] : [255, 51, 255]) });
await page.waitForSelector("#results .output", { timeout: 20000 });
{
    const [[, , values]] = await outputs(page);
    check(JSON.parse(values).every((v, i) => Math.abs(v - [1, 0.2, 0.5][i]) < 1e-5), `means of the picture: ${values}`);
}

// ---- weights beside the model ----
{
    const list = Buffer.alloc(8);
    list.writeFloatLE(3, 0);
    list.writeFloatLE(-5, 4);
    const json = { irVersion: "10", opsetImport: [{ version: "21" }], graph: { name: "g", node: [{ opType: "Identity", input: ["w"], output: ["y"] }],
        initializer: [{ name: "w", dataType: 1, dims: ["2"], dataLocation: "EXTERNAL", externalData: [{ key: "location", value: "w.bin" }] }],
        output: [{ name: "y", type: { tensorType: { elemType: 1, shape: { dim: [{ dimValue: "2" }] } } } }] } };
    await drop(page, { name: "w.bin", bytes: list }, { name: "beside.json", bytes: JSON.stringify(json) });
    await said(page, "Inputs that are left empty");
    await run(page);
    equal(await outputs(page), [["y", "float[2]", "[3,-5]"]], "weights of a file beside the model");
}

// ---- what is no model ----
await drop(page, { name: "broken.onnx", bytes: "no model at all" });
await said(page, "cannot be read");
check((await text(page, "#panel")).includes("error"), "why it cannot be read");
await drop(page, { name: "letter.doc", bytes: "x" });
await said(page, "is no model");
await drop(page, { name: "good.onnxtxt", bytes: model.replace("  y = Neg (x)\n", "") });
await said(page, "Inputs that are left empty");
await settle(page);
check(await place(page, "Relu"), "nothing is drawn after a broken model");

// ---- a run without an end is stopped ----
await drop(page, { name: "loop.onnxtxt", bytes: `<ir_version: 10, opset_import: ["" : 21]> g (int64 n, bool c) => (float y) <float one = {1}>
{ y = Loop <body = b (int64 i, bool d, float v) => (bool e, float w) { e = Identity (d) w = Add (v, v) }> (n, c, one) }` });
await said(page, "Inputs that are left empty");
const [n, c] = await page.$$(".field .numbers");
await n.type("4000000000000");
await c.type("true");
await page.click("#run");
await page.waitForSelector("#stop");
await page.click("#stop");
await said(page, "stopped");
await n.click({ clickCount: 3 });
await n.type("3");
await run(page);
equal((await outputs(page)).map(o => o[2]), ["8"], "a run after one that was stopped");

// ---- more memory than there is ----
await drop(page, { name: "large.onnxtxt", bytes: `<ir_version: 10, opset_import: ["" : 21]> g (int64[2] s) => (float[M,N] y) { y = ConstantOfShape (s) }` });
await said(page, "Inputs that are left empty");
for (const [size, wanted] of [["[100000, 100000]", /memory|limit/], ["[4611686018427387904, 4]", /./], ["[-1, 2]", /./]]) {
    const field = await page.$(".field .numbers");
    await field.click({ clickCount: 3 });
    await field.type(size);
    await run(page);
    check(await page.$eval("#message", e => e.className === "error") && wanted.test(await text(page, "#message")),
        `${size}: the page says "${await text(page, "#message")}"`);
}
const small = await page.$(".field .numbers");
await small.click({ clickCount: 3 });
await small.type("[1, 3]");
await run(page);
equal((await outputs(page)).map(o => o[2]), ["[[0,0,0]]"], "a run after those without memory");

// ---- an engine without vectors: the page says so, and still draws nothing wrong ----
{
    const old = await launch("--js-flags=--no-enable-sse4-1");
    const bare = await old.newPage();
    await bare.goto("file://" + built + "/onx.html");
    check(!(await bare.evaluate(() => WebAssembly.validate(new Uint8Array([0,97,115,109,1,0,0,0,1,5,1,96,0,1,123,3,2,1,0,10,8,1,6,0,65,0,253,15,11])))),
        "this browser has vectors all the same");
    await said(bare, "this browser cannot run the module");
    await drop(bare, { name: "good.onnxtxt", bytes: model });
    await said(bare, "this browser cannot run the module");
    await old.close();
}

// ---- the module in pages with and without shared memory ----
for (const isolated of [false, true]) {
    const types = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };
    const headers = isolated ? { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" } : {};
    const server = createServer((request, answer) => {
        const path = new URL(request.url, "http://h").pathname, file = built + "/package" + path;
        if (path === "/favicon.ico" || path === "/")
            answer.writeHead(200, { "Content-Type": "text/html", ...headers }).end(path === "/" ? "<!DOCTYPE html><title>test</title>" : "");
        else
            answer.writeHead(existsSync(file) ? 200 : 404, { "Content-Type": types[file.split(".").pop()] || "text/plain", ...headers })
                .end(existsSync(file) ? readFileSync(file) : "");
    });
    await new Promise(listening => server.listen(0, "127.0.0.1", listening));
    const user = await browser.newPage(), asked = [];
    user.on("pageerror", e => check(false, "the module: " + e.message));
    user.on("console", m => check(false, "the module says " + m.text()));
    user.on("request", r => asked.push(new URL(r.url()).pathname));
    await user.goto(`http://127.0.0.1:${server.address().port}/`);
    const got = await user.evaluate(async source => {
        const onx = await import("/lib/index.js");
        const bytes = new TextEncoder().encode(source);
        const feeds = () => ({ x: new onx.Tensor("float32", new Float32Array([1, -2, 3, 4.5]), [2, 2]), k: new onx.Tensor("float32", new Float32Array([2]), []) });
        const alone = await onx.InferenceSession.create(bytes, { format: "onnxtxt" });
        const result = await alone.run(feeds());
        onx.env.wasm.numThreads = 2;
        const many = await onx.InferenceSession.create(bytes, { format: "onnxtxt" });
        const large = new onx.Tensor("float32", new Float32Array(400000).fill(-1), [200000, 2]);
        const sums = [];
        for (let i = 0; i < 3; i++)
            sums.push((await many.run({ ...feeds(), x: large })).y.data.reduce((a, b) => a + b, 0));
        await many.release();
        const model = await onx.parse(source), report = await model.check();
        const made = await model.convert("onnx"), again = await onx.load(made.bytes);
        let refused = "";
        try {
            await onx.load(new Uint8Array([1, 2, 3]));
        } catch (e) {
            refused = e.constructor.name;
        }
        return { y: [...result.y.data], dims: result.y.dims, sums, valid: report.valid, nodes: (await again.info()).graph.nodes, refused, simd: onx.hasSimd(), threads: onx.hasThreads() };
    }, model.replace("  y = Neg (x)\n", ""));
    equal(got, { y: [2, 0, 6, 9], dims: [2, 2], sums: [0, 0, 0], valid: true, nodes: 3, refused: "OnxError", simd: true, threads: isolated }, "the module in a page");
    const pictures = await user.evaluate(async url => {
        const { Tensor } = await import("/lib/index.js"), options = { norm: { mean: 1 }, dataType: "uint8" };
        const blob = await (await fetch(url)).blob(), bitmap = await createImageBitmap(blob), canvas = document.createElement("canvas");
        const element = new Image();
        element.src = url;
        canvas.width = 4;
        canvas.height = 2;
        canvas.getContext("2d").drawImage(bitmap, 0, 0);
        const seen = [];
        for (const source of [url, blob, bitmap, element, canvas, canvas.getContext("2d").getImageData(0, 0, 4, 2)])
            seen.push([...(await Tensor.fromImage(source, options)).data].join());
        const tensor = await Tensor.fromImage(url, { tensorFormat: "RGBA" }), again = await Tensor.fromImage(tensor.toDataURL(), options);
        const broken = await Tensor.fromImage(new Blob(["no picture"])).catch(e => e.constructor.name);
        return { seen, again: [...again.data].join(), isData: tensor.toImageData() instanceof ImageData, broken };
    }, "data:image/png;base64," + png(4, 2, (x, y) => [x * 60, y * 200, 7]).toString("base64"));
    const wanted = "0,60,120,180,0,60,120,180,0,0,0,0,200,200,200,200,7,7,7,7,7,7,7,7";
    equal(pictures, { seen: Array(6).fill(wanted), again: wanted, isData: true, broken: "OnxError" }, "pictures as tensors");
    equal([...new Set(asked.filter(p => p.endsWith(".wasm")))], ["/wasm/onx-run.wasm", ...(isolated ? ["/wasm/onx-threads.wasm"] : []), "/wasm/onx.wasm"],
        "modules that are fetched");
    check(asked.some(p => p.endsWith("/thread.js")) === isolated, "a page " + (isolated ? "makes no workers" : "that may not share memory makes workers"));
    await user.close();
    server.close();
}
await done();
