// bundle.mjs - combines modules of the package into one script. Over a network, each module is a separate request, made only
// after the module that imports it has loaded. bundle(read, first) combines `first` and all modules that it imports; `read`
// gives the text of a file. Each module keeps a scope of its own, so names need not differ. Modules may only import and export
// names, one statement per line.

const IMPORT = /^import \{ (.*) \} from "\.\/(.*)";$/gm;
const EXPORT = /^export (?=(?:const|class|function|async function) (\w+))/gm;
const AGAIN = /^export \{ (.*) \} from "\.\/(.*)";$/gm;
const LIST = /^export \{ (.*) \};$/gm;

const variable = (file) => `in_${file.replace(/\W/g, "_")}`;
const pairs = (names) => names.split(",").map((name) => name.trim().split(" as "));

/** Wraps a module in a constant that has its exports. */
function scope(file, text, need) {
  const exported = [];
  const body = text
    .replace(IMPORT, (line, names, from) => {
      need(from);
      return `const { ${pairs(names).map(([name, as]) => (as ? `${name}: ${as}` : name)).join(", ")} } = ${variable(from)};`;
    })
    .replace(AGAIN, (line, names, from) => {
      need(from);
      for (const [name, as] of pairs(names)) exported.push(`${as ?? name}: ${variable(from)}.${name}`);
      return "";
    })
    .replace(LIST, (line, names) => {
      for (const [name, as] of pairs(names)) exported.push(as ? `${as}: ${name}` : name);
      return "";
    })
    .replace(EXPORT, (line, name) => {
      exported.push(name);
      return "";
    });
  const left = /^(?:import|export)\b(?!\().*$/m.exec(body);
  if (left) throw new Error(`${file}: this is no form that can be put into a bundle: ${left[0]}`);
  return { names: exported.map((each) => each.split(":")[0]), text: `const ${variable(file)} = (() => {\n${body}\nreturn { ${exported.join(", ")} };\n})();\n` };
}

/** Returns { text, names }: the script, which is no module yet, and the exports of `first`, as members of variable(first). */
export function bundle(read, first) {
  const made = new Map(), parts = [];
  const take = (file) => {
    if (made.get(file) === null) throw new Error(`${file} imports itself`);
    if (made.has(file)) return;
    made.set(file, null);
    const part = scope(file, read(file), take);
    made.set(file, part);
    parts.push(part.text);
  };
  take(first);
  return { text: parts.join("\n"), names: made.get(first).names, variable: variable(first) };
}
