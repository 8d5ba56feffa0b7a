// view.mjs - tests the page of `onx view`: what is on the screen, and the effect of mouse and keys.
import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { browser, check, color, done, equal, near, open, pixel, place, settle, text, view } from "./browser.mjs";

const numbers = n => [...Array(n)].map((_, i) => ((i * 7919) % 101 / 50 - 1).toFixed(2)).join(",");
const model = `<ir_version: 10, opset_import: ["" : 21, "my" : 1], metadata_props: ["author" : "somebody"]>
g (float[N,3,8,8] x, bool c) => (float[N,4] y)
<float[4,3,3,3] w = {${numbers(108)}}, float[4] b = {1,2,3,4}>
{
  a = Conv <kernel_shape = [3,3], pads = [1,1,1,1]> (x, w, b)
  r = Relu (a)
  p = GlobalAveragePool (r)
  f = Flatten (p)
  i = If <then_branch = t () => (float[N,4] u) { z = Exp (f) u = Mul (z, z) }, else_branch = e () => (float[N,4] v) { v = Neg (f) }> (c)
  y = my.twice (i)
}
<domain: "my", opset_import: ["" : 21]>
twice (p) => (q) { k = Constant <value_float = 2.0> () q = Mul (p, k) }
`;
const middle = p => [p.x + p.w / 2, p.y + p.h / 2];
const selected = page => page.evaluate(() => {
    const s = onxView.active.selected;
    return s ? s.area.scope.title(s.box) : null;
});
async function click(page, p) {
    await page.mouse.click(p[0], p[1]);
    await settle(page);
}
async function key(page, ...keys) {
    for (const k of keys)
        await page.keyboard.press(k);
    await settle(page);
}

// ---- what is drawn ----
{
    const page = await open("file://" + view("model.onnxtxt", model));
    equal(await page.title(), "model.onnxtxt - onx view", "title");
    const conv = await place(page, "Conv"), relu = await place(page, "Relu"), x = await place(page, "x");
    check(x.y < conv.y && conv.y < relu.y, "x, Conv and Relu do not stand below each other");
    const families = await page.evaluate(() => {
        const f = onxView.panes[0].theme.families;
        return { nn: f.nn.head, math: f.math.head, back: onxView.panes[0].theme.back, edge: onxView.panes[0].theme.edge };
    });
    check(near(await pixel(page, conv.x + 8, conv.y + 8), await color(page, families.nn)), "the head of Conv has another colour");
    check(near(await pixel(page, relu.x + 6, relu.y + relu.h / 2), await color(page, families.math)), "Relu has another colour");
    check(near(await pixel(page, conv.x - 30, conv.y + 10), await color(page, families.back)), "there is something beside Conv");
    check(!near(await pixel(page, relu.x + relu.w / 2, (conv.y + conv.h + relu.y) / 2), await color(page, families.back)), "no arrow from Conv to Relu");
    // Letters: dark pixels in the middle of the title.
    let dark = 0;
    for (let dx = -10; dx <= 10; dx += 1)
        dark += (await pixel(page, conv.x + conv.w / 2 + dx, conv.y + 14))[0] < 120;
    check(dark > 1, "no letters on Conv");
    const about = await text(page, "#panel");
    for (const part of ["model.onnxtxt", "ai.onnx 21, my 1", "float[N,3,8,8]", "author", "somebody", "Flatten"])
        check(about.includes(part), `the panel of the model does not say ${part}`);

    // ---- a click on a node ----
    await click(page, middle(conv));
    equal(await text(page, "#panel h2"), "Conv", "what the panel is about");
    const panel = await text(page, "#panel");
    for (const part of ["kernel_shape", "[3, 3]", "float[N,4,8,8]", "float[4,3,3,3]", "108", "What Conv does", "size of the window", "deviation"])
        check(panel.includes(part), `the panel of Conv does not say ${part}`);
    equal(await page.$$eval("#panel .histogram rect", l => l.length), 40, "columns of the histogram");
    check(near(await pixel(page, conv.x - 3, conv.y + conv.h / 2), await color(page, await page.evaluate(() => onxView.panes[0].theme.accent))), "Conv is not marked as chosen");

    // ---- what stands in a node opens in place ----
    const before = await place(page, "If"), below = await place(page, "twice");
    await click(page, [before.x + 11 * before.h / 26, before.y + before.h / 2]);
    const after = await place(page, "If"), exp = await place(page, "Exp"), neg = await place(page, "Neg");
    check(exp && neg, "the branches of If did not open");
    check(Math.abs(after.x - before.x) < 1 && Math.abs(after.y - before.y) < 1, "If moved when it was opened");
    check(exp.x > after.x && exp.y > after.y && exp.y + exp.h < after.y + after.h && neg.x + neg.w < after.x + after.w, "the branches do not stand in If");
    check((await place(page, "twice")).y >= below.y + after.h - before.h - 1, "what stands below If was not moved");
    await click(page, middle(exp));
    equal(await text(page, "#panel h2"), "Exp", "a node of a branch");
    check((await text(page, "#panel")).includes("float[N,4]"), "the type in the branch");
    await page.mouse.click(after.x + 11 * before.h / 26, after.y + before.h / 2);
    await settle(page);
    equal(await place(page, "Exp"), null, "If closed");

    // ---- search ----
    await key(page, "/");
    await page.keyboard.type("value_fl");
    check((await text(page, "#found")).includes("nothing"), "a hit for what is no name");
    await key(page, "Escape", "/");
    await page.keyboard.type("Exp");
    check((await text(page, "#found")).includes("1 place"), "Exp is not found");
    await key(page, "Enter");
    equal(await selected(page), "Exp", "the hit of the search");
    const found = await place(page, "Exp");
    check(found.x > 0 && found.x + found.w < 1040 && found.y > 40 && found.y + found.h < 900, "what was found is not in view");
    await key(page, "Escape", "Escape");

    // ---- keys ----
    await page.evaluate(() => onxView.active.selectAndReveal(onxView.active.root, 2));
    await page.focus("canvas");
    await key(page, "ArrowDown");
    equal(await selected(page), "Relu", "down from Conv");
    await key(page, "ArrowUp", "ArrowUp");
    equal(await selected(page), "x", "up twice");
    await key(page, "Escape");
    equal(await selected(page), null, "Escape");
    await key(page, "t");
    const dark2 = await page.evaluate(() => onxView.panes[0].theme.back);
    check(near(await pixel(page, 20, 880), await color(page, dark2)) && dark2 !== families.back, "the dark theme is not on the screen");
    await key(page, "i");
    check(await page.$eval("#panel", e => getComputedStyle(e).display === "none"), "the panel is still there");
    await key(page, "i", "?");
    check((await text(page, "#help")).includes("next and previous finding"), "no help");
    await key(page, "Escape");

    // ---- wheel and mouse ----
    const anchor = await place(page, "Flatten"), scale = await page.evaluate(() => onxView.active.scale);
    await page.mouse.move(anchor.x, anchor.y);
    await page.mouse.wheel({ deltaY: -200 });
    await settle(page);
    const moved = await place(page, "Flatten");
    check(await page.evaluate(() => onxView.active.scale) > scale && Math.abs(moved.x - anchor.x) < 2 && Math.abs(moved.y - anchor.y) < 2, "the wheel does not zoom where the mouse is");
    await page.mouse.move(60, 800);
    await page.mouse.down();
    await page.mouse.move(160, 830, { steps: 4 });
    await page.mouse.up();
    await settle(page);
    const dragged = await place(page, "Flatten");
    check(Math.abs(dragged.x - moved.x - 100) < 2 && Math.abs(dragged.y - moved.y - 30) < 2, "the drawing does not follow the mouse");
    await key(page, "0");
    const whole = [await place(page, "x"), await place(page, "y")];
    check(whole[0].y >= 40 && whole[1].y + whole[1].h <= 900, "not all of it fits");

    // ---- functions of the model ----
    await page.select("#scopes", await page.$$eval("#scopes option", l => String(l.findIndex(o => o.textContent.includes("twice")))));
    await settle(page);
    check(await place(page, "Mul", "twice"), "the function is not shown");
    await page.close();
}

// ---- SVG, and paper ----
{
    const page = await open("file://" + view("model.onnxtxt", model));
    await page.evaluate(() => {
        const p = onxView.active, s = p.root.scope;
        for (let b = 0; b < s.count; b++)
            if (s.title(b) === "If")
                p.root.openBox(b);
        window.saved = [];
        const real = URL.createObjectURL;
        URL.createObjectURL = blob => { saved.push(blob); return real.call(URL, blob); };
    });
    await page.click("#save");
    const made = await page.evaluate(() => saved[0].text());
    for (const part of [">Conv</text>", ">Exp</text>", ">then_branch</text>", ">W 4×3×3×3</text>"])
        check(made.includes(part), `the saved drawing has no ${part}`);
    const errors = await page.evaluate(s => new DOMParser().parseFromString(s, "image/svg+xml").querySelectorAll("parsererror").length, made);
    equal(errors, 0, "what is wrong with the XML of the saved drawing");
    await page.emulateMediaType("print");
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    await settle(page);
    const paper = await page.$eval("#paper svg", e => ({ w: e.getBoundingClientRect().width, words: e.textContent }));
    check(paper.w > 100 && paper.words.includes("Exp"), "the drawing is not on paper");
    check(await page.$eval("header", e => getComputedStyle(e).display === "none"), "buttons are on paper");
    check(near(await pixel(page, 3, 3), [255, 255, 255]), "paper is not white");
    await page.close();

    execFileSync(process.env.ONX, ["view", "model.onnxtxt", "-o", "model.svg"], { stdio: "ignore" });
    const drawing = await browser.newPage();
    await drawing.goto("file://" + process.cwd() + "/model.svg");
    const words = await drawing.$$eval("text", l => l.filter(e => e.getBoundingClientRect().width > 5).map(e => e.textContent));
    check(["Conv", "Relu", "If", "twice"].every(w => words.includes(w)), "the drawing that onx view writes");
    await drawing.close();
}

// ---- two models, and the times of a run ----
{
    const first = `<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x) => (float[N,4] y)
<float[4] w = {1,2,3,4}>
{ [one] a = Relu (x)
  [two] b = Mul (a, w)
  [three] c = Exp (b)
  [four] d = LeakyRelu <alpha = 0.1> (c)
  [five] y = Add (d, a) }`;
    writeFileSync("second.onnxtxt", first.replace("1,2,3,4", "1,2,3,5").replace("alpha = 0.1", "alpha = 0.2").replace("[four]", "[new] c2 = Neg (c) [four]").replace("(c)\n  [five]", "(c2)\n  [five]"));
    const page = await open("file://" + view("first.onnxtxt", first, "--against", "second.onnxtxt"), { width: 1600 });
    const [captions, list] = [await page.$$eval(".caption", l => l.map(e => e.textContent)), await text(page, "#panel")];
    equal(captions, ["first.onnxtxt", "second.onnxtxt"], "the names of the models");
    check(list.includes("Differences") && list.includes("alpha") && list.includes("Neg"), "the list of differences");
    const theme = await page.evaluate(() => onxView.panes[1].theme);
    // Is the frame of the box of that colour: one of the pixels about its left edge?
    await page.evaluate(() => onxView.activate(onxView.panes[1]));
    const framed = async (title, name) => {
        const p = await place(page, title), wanted = await color(page, theme[name]);
        for (const dx of [-1, 0, 1])
            if (near(await pixel(page, p.x + dx, p.y + p.h / 2), wanted))
                return true;
        return false;
    };
    check(await framed("Neg", "added"), "Neg is not marked as added");
    check(await framed("LeakyRelu", "changed"), "LeakyRelu is not marked as changed");
    check(await framed("Mul", "changed"), "Mul, whose weight differs, is not marked");
    check(!await framed("Relu", "changed") && !await framed("Relu", "added"), "Relu is marked");
    await click(page, middle(await place(page, "LeakyRelu")));
    check((await text(page, "#panel")).includes("0.1") && (await text(page, "#panel")).includes("0.2"), "what differs of LeakyRelu");
    equal(await page.evaluate(() => { const s = onxView.panes[0].selected; return s.area.scope.name(s.box); }), "four", "what belongs to it in the first model");
    await page.close();

    const run = await open("file://" + view("run.onnxtxt", first, "--profile", "--dim", "N=1000"));
    check(/Add.*1 step/.test(await text(run, "#panel")), "no times of operators");
    const hot = await run.evaluate(() => {
        const s = onxView.active.model.main;
        let best = -1;
        for (let b = 0; b < s.count; b++)
            if (s.times[b] && (best < 0 || s.times[b].ms > s.times[best].ms))
                best = b;
        return s.title(best);
    });
    const spot = await place(run, hot), before = await pixel(run, spot.x + 6, spot.y + 6);
    check(before[0] > before[2] + 30, `the hottest node, ${hot}, is not red: ${before}`);
    await click(run, middle(spot));
    check(/time.*(ms|µs)/s.test(await text(run, "#panel dl")), "the time of a node");
    await key(run, "c");
    check(!near(await pixel(run, spot.x + 6, spot.y + 6), before), "c does not change the colours");
    await run.close();
}

// ---- served ----
{
    const server = spawn(process.env.ONX, ["view", "model.onnxtxt", "--serve"], { stdio: ["ignore", "pipe", "inherit"] });
    const url = await new Promise(done => server.stdout.once("data", d => done(String(d).trim())));
    check(/^http:\/\/127\.0\.0\.1:\d+\/$/.test(url), "the address: " + url);
    const page = await open(url);
    check(await place(page, "Conv"), "the served page shows no Conv");
    writeFileSync("model.onnxtxt", model.replaceAll("Relu", "Sigmoid"));
    await page.reload({ waitUntil: "load" });
    await settle(page);
    check(await place(page, "Sigmoid"), "the model was changed and the page shows the old one");
    await page.close();
    const port = Number(new URL(url).port);
    const ask = request => new Promise(done => {
        const c = connect(port, "127.0.0.1", () => c.write(request));
        let got = "";
        c.on("data", d => { got += d; });
        c.on("close", () => done(got.split("\r\n")[0]));
        c.on("error", () => done("closed"));
    });
    const host = `Host: 127.0.0.1:${port}\r\n`;
    equal(await ask(`GET / HTTP/1.1\r\nHost: elsewhere.example:${port}\r\n\r\n`), "HTTP/1.1 403 Forbidden", "another host");
    equal(await ask(`GET / HTTP/1.1\r\n\r\n`), "HTTP/1.1 403 Forbidden", "no host");
    equal(await ask(`GET /../../etc/passwd HTTP/1.1\r\n${host}\r\n`), "HTTP/1.1 404 Not Found", "another path");
    equal(await ask(`POST / HTTP/1.1\r\n${host}\r\n`), "HTTP/1.1 405 Method Not Allowed", "POST");
    equal(await ask(`\r\n\r\n`), "HTTP/1.1 405 Method Not Allowed", "nothing");
    await ask("GET / " + "x".repeat(20000));
    equal(await ask(`HEAD / HTTP/1.1\r\nhost:localhost:${port}\r\n\r\n`), "HTTP/1.1 200 OK", "after all that");
    server.kill();
}

// ---- names that look like markup ----
{
    const page = await open("file://" + view("hostile.textproto", `ir_version: 10 producer_name: "</script><script>window.harm = 1</script>" opset_import { version: 21 }
metadata_props { key: "<img src=x onerror='window.harm=2'>" value: "<script>window.harm=3</script>" }
graph { name: "<b>g</b>" doc_string: "<img src=x onerror='window.harm=4'>"
  node { name: "</script><script>window.harm=5</script>" op_type: "Relu" input: "x" output: "<i>m</i>" }
  node { name: "\\001\\377\\"\\\\\\342\\200\\256" op_type: "<svg onload='window.harm=6'>" input: "<i>m</i>" output: "y" }
  node { op_type: "Re\\342\\200\\256ul" name: "twin" input: "x" output: "${"very/long/".repeat(400)}" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "<u>" } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "<u>" } } } } } }`));
    const panel = await text(page, "#panel");
    check(panel.includes("<img src=x onerror='window.harm=2'>") && panel.includes("<script>window.harm=3</script>"), "metadata is not shown as it is");
    for (const title of ["Relu", "<svg onload='window.harm=6'>", "Re\\u202eul", "x"]) {
        await click(page, middle(await place(page, title)));
        equal(await text(page, "#panel h2"), title, "title in the panel");
    }
    await key(page, "/");
    await page.keyboard.type("<");
    await settle(page);
    check((await page.$$("#found li")).length > 2, "names with < are not found");
    equal(await page.evaluate(() => window.harm), undefined, "a script of the model ran");
    equal(await page.$$eval("#panel img, #panel script, #found b b, #found i i, svg[onload]", l => l.length), 0, "elements that the model made");
    await page.close();
}

// ---- what is wrong ----
{
    const page = await open("file://" + view("wrong.onnxtxt", `<ir_version: 10, opset_import: ["" : 21]>
g (float[2,3] x, bool c) => (float[2,3] y) {
  a = Nothing (x)
  i = If <then_branch = t () => (float[2,3] u) { u = Nowhere (x) }, else_branch = e () => (float[2,3] v) { v = Neg (x) }> (c)
  y = Add (a, gone)
}`));
    check(/error/.test(await text(page, "#status")), "the status does not say that there are errors");
    const findings = await page.$$eval("#panel .finding", l => l.map(e => e.textContent));
    check(findings.some(f => f.includes("Nothing")) && findings.some(f => f.includes("gone")), "the list of findings");
    const nothing = await place(page, "Nothing");
    check(near(await pixel(page, nothing.x + nothing.w - 4, nothing.y), await color(page, await page.evaluate(() => onxView.panes[0].theme.error))), "no badge on Nothing");
    await key(page, "n");
    check(await selected(page), "n chooses no finding");
    const link = await page.evaluateHandle(() => [...document.querySelectorAll("#panel .finding .link")].find(e => e.textContent.includes("Nowhere")));
    if (link.asElement()) {
        await link.asElement().click();
        await settle(page);
    } else {
        await key(page, "Escape");
        await page.evaluate(() => [...document.querySelectorAll("#panel .finding .link")].find(e => e.textContent.includes("Nowhere")).click());
        await settle(page);
    }
    equal(await selected(page), "Nowhere", "the finding in a branch");
    check(await place(page, "Nowhere"), "the branch did not open");
    await page.close();

    const broken = await open("file://" + view("broken.onnxtxt", "<ir_version: 10>\ng (float[2 x) => (float y) { y = Relu(x }\n"));
    check((await text(broken, "#panel")).includes("cannot be read"), "a file that cannot be read");
    check((await broken.$$("#panel .finding.error")).length > 0, "no finding for it");
    await broken.close();
}

// ---- large ----
{
    const lines = [...Array(10000)].map((_, i) => `v${i + 1} = Relu (v${i})`).join("\n");
    const page = await open("file://" + view("deep.onnxtxt", `<ir_version: 10, opset_import: ["" : 21]>\ng (float[2] x) => (float[2] v10000) {\nv0 = Relu (x)\n${lines}\n}`));
    const painted = () => page.evaluate(() => {
        onxView.active.paintNow();
        return onxView.active.painter.painted;
    });
    check(await painted() < 60, "boxes are drawn that nobody sees");
    await key(page, "0");
    check(await painted() > 10000, "not all boxes are drawn");
    const strip = await page.evaluate(() => onxView.active.root.scope.x[5000] * onxView.active.scale + onxView.active.x);
    check(!near(await pixel(page, strip + 1, 450), await color(page, await page.evaluate(() => onxView.active.theme.back))), "a deep graph cannot be seen as a whole");
    await page.close();

    const wide = [...Array(4000)].map((_, i) => `o${i} = Relu (x)`).join("\n");
    const second = await open("file://" + view("wide.onnxtxt", `<ir_version: 10, opset_import: ["" : 21]>\ng (float[2] x) => (float[2] o3999) {\n${wide}\n}`));
    const x = await place(second, "x");
    check(x.x > 0 && x.x < 1040, "the top of a wide graph is not in view");
    await second.close();
}

// ---- shapes beside arrows: once, and up to the next box ----
{
    const source = `<ir_version: 10, opset_import: ["" : 21]>
g (float[1,64,56,56] x) => (float[1,64,56,56] y) <float[64] bias = {${[...Array(64)].map(() => "1").join(",")}}>
{ r = Relu (x) s = Sigmoid (r) t = Exp (r) k = Identity (bias) q = Tanh (s) u = Unsqueeze (k, axes) m = Mul (q, t) y = Add (m, u)
  axes = Constant <value_ints = [0, 2, 3]> () }`;
    const page = await open("file://" + view("shapes.onnxtxt", source));
    await key(page, "1");
    const { texts, over } = await page.evaluate(() => {
        const own = CanvasRenderingContext2D.prototype.fillText, texts = [], over = [], pane = onxView.active, area = pane.root;
        CanvasRenderingContext2D.prototype.fillText = function(text, x, y) {
            if (!/×/.test(text) || this.textAlign !== "left")
                return;
            texts.push(`${text} ${x} ${y}`);
            const right = x + this.measureText(text).width;
            for (let b = 0; b < area.scope.count; b++)
                if (this.font.startsWith("10px") && right > area.x[b] && x < area.x[b] + area.w[b] && y + 3 > area.y[b] && y - 3 < area.y[b] + area.h[b])
                    over.push(`${text} over ${area.scope.title(b)}`);
        };
        pane.paintNow();
        CanvasRenderingContext2D.prototype.fillText = own;
        return { texts, over };
    });
    check(texts.length > 3, "no shapes are drawn");
    equal(texts.filter((t, i) => texts.indexOf(t) !== i), [], "shapes drawn twice");
    equal(over, [], "shapes drawn over boxes");
    await page.close();
}

await done();
