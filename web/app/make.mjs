// make.mjs - builds the page on which models are dropped: node make.mjs PACKAGE MODEL OUT. It is the page that the package's
// `onx view` makes of a first model, plus the module and the files of this folder, in one file.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { bundle } from "../bundle.mjs";

const [folder, model, out] = process.argv.slice(2), here = new URL(".", import.meta.url);
const own = name => readFileSync(new URL(name, here), "utf8"), of = name => readFileSync(join(folder, name), "utf8");
const { program } = await import(pathToFileURL(resolve(folder, "lib/index.js")));

function swap(text, from, to) {
    if (text.split(from).length !== 2)
        throw new Error(`${from} is not there once`);
    return text.split(from).join(to);
}

const packed = bytes => gzipSync(bytes, { level: 9 }).toString("base64");
// Modules are combined into one script: pages opened as files cannot start workers that are modules.
const glue = of("wasm/onx.js").replace(/^export default .*;$/gm, "");
const joined = [bundle(file => of("lib/" + file), "program.js").text, "const { run } = in_program_js, { compiled } = in_module_js;", glue]
    .join("\n").replaceAll("import.meta.url", "location.href");
const first = readFileSync(model), name = basename(model);
const made = await program(["view", name, "-o", "page.html"], { [name]: first }, ["page.html"]);
if (made.status !== 0)
    throw new Error(made.stderr);
let page = new TextDecoder().decode(made.files["page.html"]);
page = swap(page, "script-src 'unsafe-inline';", "script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:;");
page = swap(page, "</style>", own("app.css") + "</style>");
const data = (id, text) => `<script type="text/plain" id="${id}">${text}</script>\n`;
page = swap(page, "</body>", data("first-name", name) + data("first-model", first.toString("base64")) +
    data("onx-module", packed(readFileSync(join(folder, "wasm/onx.wasm")))) + data("onx-worker", packed(joined + own("worker.js"))) +
    `<script>"use strict";(() => {\n${own("app.js")}})();</script>\n</body>`);
writeFileSync(out, page);
console.log(`${basename(out)}: ${(page.length / 1e6).toFixed(2)} MB`);
