// app.js - what the page with the module adds to the drawing: models that are dropped on the page are checked and drawn by the
// program in a worker, and run on numbers and pictures. Nothing is fetched or sent: the page's content security policy forbids
// both.

const view = window.onxView, el = view.el;
const by = id => document.getElementById(id);
const MODEL = /\.(onnx|pb|onnxtxt|textproto|pbtxt|prototxt|json|ort)$/i;

// ---- the program ----

async function unpacked(id) {
    const bytes = Uint8Array.from(atob(by(id).textContent.trim()), c => c.charCodeAt(0));
    by(id).remove();
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// The module uses SIMD; engines without it cannot load it.
async function compiled(bytes) {
    try {
        return await WebAssembly.compile(bytes);
    } catch (error) {
        throw new Error(`this browser cannot run the module, so models are neither read nor run here (onx view draws them as pages): ${error.message}`);
    }
}

class Program {
    constructor() {
        this.jobs = new Map();
        this.count = 0;
        this.ready = Promise.all([unpacked("onx-module").then(compiled), unpacked("onx-worker")]).then(([module, code]) => {
            this.module = module;
            this.address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
        });
    }
    // Resolves to { status, stdout, stderr, files } of `onx ...words`; rejects when the run is stopped or memory runs out.
    async run(words, files, outputs) {
        await this.ready;
        if (!this.worker) {
            this.worker = new Worker(this.address);
            this.worker.onmessage = ({ data }) => {
                const job = this.jobs.get(data.job);
                this.jobs.delete(data.job);
                if (data.error === undefined)
                    job.done(data.result);
                else
                    job.failed(new Error(data.error));
            };
            this.worker.onerror = event => this.stop(event.message || "the worker failed"); // as when it has no memory
            this.worker.postMessage({ module: this.module });
        }
        return new Promise((done, failed) => {
            this.jobs.set(++this.count, { done, failed });
            this.worker.postMessage({ job: this.count, words, files, outputs });
        });
    }
    stop(why) {
        if (!this.jobs.size)
            return;
        this.worker.terminate();
        this.worker = null;
        for (const job of this.jobs.values())
            job.failed(new Error(why));
        this.jobs.clear();
    }
}

// ---- inputs ----

// Parses "float[N,3,224,224]" to element type and dimensions; null if the type is no tensor.
function parseType(text) {
    const m = /^([a-z0-9]+)(?:\[(.*)\])?$/.exec(text);
    return m && { element: m[1], dims: m[2] === undefined ? null : m[2].split(",").filter(d => d !== "").map(d => d.trim()) };
}

const NUMBERS = { float: ["<f4", Float32Array], double: ["<f8", Float64Array], uint8: ["|u1", Uint8ClampedArray], int8: ["|i1", Int8Array], int32: ["<i4", Int32Array], int64: ["<i8", BigInt64Array] };

// The positions of channels, rows and columns, if the input can be a picture: { order, channels, height, width }, where 0 is
// any size.
function pictureLayout(type) {
    if (!type || !type.dims || !NUMBERS[type.element] || type.dims.length < 2 || type.dims.length > 4)
        return null;
    const size = type.dims.map(d => /^\d+$/.test(d) ? Number(d) : 0), n = size.length, inner = size.slice(n > 3 ? 1 : 0);
    if (n === 4 && size[0] > 1)
        return null;
    const batch = n === 4 ? "n" : "", LEAST = 4; // rows and columns of a picture
    const made = (order, channels, height, width) => [height, width].every(d => !d || d >= LEAST) ? { order, channels, height, width } : null;
    if (n === 2)
        return made("hw", 1, size[0], size[1]);
    if ([1, 3].includes(inner[0]))
        return made(batch + "chw", inner[0], inner[1], inner[2]);
    return [1, 3].includes(inner[2]) ? made(batch + "hwc", inner[2], inner[0], inner[1]) : null;
}

function npy(kind, dims, values) {
    let head = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${dims.map(d => d + ",").join(" ")}), }`;
    head += " ".repeat(63 - (10 + head.length) % 64) + "\n";
    const out = new Uint8Array(10 + head.length + values.byteLength);
    out.set([0x93, 78, 85, 77, 80, 89, 1, 0, head.length & 255, head.length >> 8]);
    out.set(new TextEncoder().encode(head), 10);
    out.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 10 + head.length);
    return out;
}

// Converts the picture to the input's form: resized, values scaled to `range`, then (v - mean) / deviation.
async function pictureFile(file, type, layout, { high, mean, deviation }) {
    const picture = await createImageBitmap(file);
    const height = layout.height || picture.height, width = layout.width || picture.width, c = layout.channels;
    const canvas = new OffscreenCanvas(width, height).getContext("2d");
    canvas.imageSmoothingQuality = "high";
    canvas.drawImage(picture, 0, 0, width, height);
    const pixels = canvas.getImageData(0, 0, width, height).data, [kind, Values] = NUMBERS[type.element];
    const values = new Values(c * height * width), last = layout.order.endsWith("c"), area = height * width;
    const put = Values === BigInt64Array ? v => BigInt(Math.round(v)) : Values === Float32Array || Values === Float64Array ? v => v : Math.round;
    for (let i = 0; i < area; i++)
        for (let k = 0; k < c; k++) {
            const v = c === 3 ? pixels[4 * i + k] : 0.299 * pixels[4 * i] + 0.587 * pixels[4 * i + 1] + 0.114 * pixels[4 * i + 2];
            values[last ? i * c + k : k * area + i] = put((v * high / 255 - mean[k % mean.length]) / deviation[k % deviation.length]);
        }
    const sizes = { n: 1, c, h: height, w: width };
    return npy(kind, [...layout.order].map(d => sizes[d]), values);
}

function numbersOf(text, what) {
    const list = text.split(",").map(t => t.trim() === "" ? NaN : Number(t));
    if (list.some(v => !Number.isFinite(v)) || ![1, 3].includes(list.length))
        throw new Error(`${what} is one number, or three as in 0.485, 0.456, 0.406`);
    return list;
}

// ---- the page ----

class Bench {
    constructor() {
        this.program = new Program();
        this.fields = [];
        this.turn = 0;
        this.chooser = el("input", { type: "file", multiple: true, hidden: true, id: "chooser" });
        this.chooser.addEventListener("change", () => {
            this.take([...this.chooser.files]);
            this.chooser.value = "";
        });
        const open = el("button", { type: "button", id: "open", title: "Open a model, with the files of its weights" }, "Open");
        open.addEventListener("click", () => this.chooser.click());
        this.toggle = el("button", { type: "button", id: "try", title: "Run the model" }, "Run");
        this.toggle.addEventListener("click", () => { this.holder.hidden = !this.holder.hidden; });
        document.querySelector("header nav").prepend(open, this.toggle, this.chooser);
        this.form = el("form", {});
        this.message = el("p", { id: "message", role: "status" });
        this.results = el("div", { id: "results" });
        this.holder = el("section", { id: "runner" }, this.message, this.form, this.results);
        document.querySelector("main").after(this.holder);
        this.cover = el("div", { id: "cover", hidden: true }, "Drop a model here");
        document.body.append(this.cover);
        this.form.addEventListener("submit", event => {
            event.preventDefault();
            this.runModel();
        });
        const over = on => event => {
            event.preventDefault();
            this.cover.hidden = !on;
        };
        addEventListener("dragenter", over(true));
        addEventListener("dragover", over(true));
        addEventListener("dragleave", event => event.relatedTarget || over(false)(event));
        addEventListener("drop", event => {
            over(false)(event);
            this.take([...event.dataTransfer.files]);
        });
        const first = Uint8Array.from(atob(by("first-model").textContent), c => c.charCodeAt(0));
        by("first-model").remove();
        this.files = { [by("first-name").textContent]: first };
        this.name = by("first-name").textContent;
        this.busy("Reading an example ...", () => this.describe("This is an example. Drop a model on the page, with the files of its weights: it stays on this machine."));
    }
    say(text, bad) {
        this.message.textContent = text;
        this.message.className = bad ? "error" : "";
    }
    // While something runs, a button can stop it. Only the last request may change the page.
    async busy(what, job) {
        const turn = ++this.turn, stop = el("button", { type: "button", id: "stop" }, "Stop");
        this.program.stop("something else was asked for");
        stop.addEventListener("click", () => this.program.stop("stopped"));
        this.say(what + " ");
        this.message.append(stop);
        try {
            const said = await job(() => turn === this.turn);
            if (turn === this.turn)
                this.say(said);
        } catch (error) {
            if (turn === this.turn)
                this.say(error.message, true);
        }
    }
    // Dropped files are a model with its data files, or a picture for the current model.
    take(files) {
        const model = files.find(f => MODEL.test(f.name));
        if (model)
            return this.load(model, files);
        const field = this.fields.find(f => f.layout);
        if (files.length === 1 && files[0].type.startsWith("image/") && field) {
            field.usePicture(files[0]);
            return this.runModel();
        }
        if (files.length)
            this.say(`${files[0].name} is no model: those end in .onnx, .pb, .onnxtxt, .textproto, .pbtxt or .json`, true);
        return null;
    }
    load(model, files) {
        this.holder.hidden = false;
        return this.busy(`Reading ${model.name} ...`, async current => {
            const all = {};
            for (const f of files)
                all["files/" + f.name] = new Uint8Array(await f.arrayBuffer());
            const name = "files/" + model.name, made = await this.program.run(["view", name, "-o", "page.html"], all, ["page.html"]);
            if (!made.files["page.html"])
                throw new Error(made.stderr.trim() || "the model cannot be shown");
            if (!current())
                return "";
            // Every < in the data is escaped, so the next < is its end.
            const page = new TextDecoder().decode(made.files["page.html"]), begin = page.indexOf(">", page.indexOf('id="data"')) + 1;
            view.open(view.parsed(page.slice(begin, page.indexOf("<", begin))));
            this.files = all;
            this.name = name;
            this.fields = [];
            this.form.replaceChildren();
            this.results.replaceChildren();
            return this.describe(made.status ? "The model cannot be read; what is wrong with it stands beside the drawing." : "");
        });
    }
    // A field for each required input.
    async describe(otherwise) {
        const turn = this.turn;
        const told = await this.program.run(["info", "--json", this.name], this.files, []);
        if (told.status || turn !== this.turn)
            return otherwise;
        const graph = JSON.parse(told.stdout).graph;
        this.fields = ((graph && graph.inputs) || []).filter(i => !i.has_initializer).map(i => this.field(i));
        this.form.replaceChildren(...this.fields.map(f => f.row), el("button", { type: "submit", id: "run" }, "Run"));
        return otherwise || "Numbers are like 1.5 or [[1, 2], [3, 4]]. Inputs that are left empty are made up.";
    }
    field(input) {
        const type = parseType(input.type), layout = pictureLayout(type);
        const text = el("input", { type: "text", className: "numbers", spellcheck: false, autocomplete: "off", ariaLabel: input.name, placeholder: "made up" });
        const f = { name: input.name, type, layout, text, picture: null, row: el("div", { className: "field" }, el("b", {}, input.name), el("span", { className: "type" }, input.type), text) };
        if (layout) {
            const file = el("input", { type: "file", accept: "image/*", ariaLabel: "Picture for " + input.name });
            const setting = (label, value) => {
                const box = el("input", { type: "text", value, className: "setting" });
                f.row.append(el("label", {}, label, box));
                return box;
            };
            f.row.append(el("label", {}, "or a picture", file));
            f.high = setting("white is", type.element === "float" || type.element === "double" ? "1" : "255");
            f.mean = setting("mean", "0");
            f.deviation = setting("deviation", "1");
            f.usePicture = picture => {
                f.picture = picture;
                text.value = "";
                text.placeholder = picture.name;
            };
            file.addEventListener("change", () => file.files[0] && f.usePicture(file.files[0]));
            text.addEventListener("input", () => {
                f.picture = null;
                text.placeholder = "made up";
            });
        }
        return f;
    }
    runModel() {
        return this.busy("Running ...", async current => {
            const files = { ...this.files }, words = ["run", "--json", "--random", this.name];
            for (const [i, f] of this.fields.entries()) {
                if (f.picture) {
                    const options = { high: numbersOf(f.high.value, "white")[0], mean: numbersOf(f.mean.value, "mean"), deviation: numbersOf(f.deviation.value, "deviation") };
                    files[`input${i}.npy`] = await pictureFile(f.picture, f.type, f.layout, options);
                    words.push("-i", `${f.name}=input${i}.npy`);
                } else if (f.text.value.trim() !== "")
                    words.push("-i", `${f.name}=${f.text.value.trim()}`);
            }
            const begin = performance.now(), made = await this.program.run(words, files, []);
            if (made.status)
                throw new Error(made.stderr.trim() || "the run failed");
            if (!current())
                return "";
            this.results.replaceChildren(...JSON.parse(made.stdout).outputs.map(o => this.output(o)));
            const notes = made.stderr.trim();
            return `${((performance.now() - begin) / 1000).toFixed(2)} s, with reading the model.${notes ? " " + notes : ""}`;
        });
    }
    output(o) {
        const type = o.type ? `${o.type}[${(o.shape || []).join(",")}]` : o.kind, bad = (o.nan || 0) + (o.infinite || 0);
        const rest = Object.fromEntries(Object.entries(o).filter(([key]) => !["name", "kind", "type", "shape", "nan", "infinite"].includes(key)));
        return el("div", { className: "output" }, el("b", {}, o.name), el("span", { className: "type" }, type),
            bad ? el("span", { className: "error" }, `${o.nan} NaN, ${o.infinite} infinite`) : "",
            el("pre", {}, o.values === undefined ? JSON.stringify(rest, null, 1) : JSON.stringify(o.values)));
    }
}

view.bench = new Bench();
