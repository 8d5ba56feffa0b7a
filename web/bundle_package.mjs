// bundle_package.mjs FOLDER: combines the package's modules into lib/index.js and removes the others, except those that are
// loaded separately. In a page, importing one file took 10 ms, importing eleven took 33.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.mjs";

const folder = join(process.argv[2], "lib"), used = [];
const { text, names, variable } = bundle((file) => (used.push(file), readFileSync(join(folder, file), "utf8")), "index.js");
for (const file of used) rmSync(join(folder, file));
writeFileSync(join(folder, "index.js"), `// All of ONNX as WebAssembly. README.md says what there is.\n${text}\nexport const { ${names.join(", ")} } = ${variable};\n`);
const left = readdirSync(folder).sort().join();
if (left !== "index.d.ts,index.js,thread.js") throw new Error(`the package has ${left}`);
