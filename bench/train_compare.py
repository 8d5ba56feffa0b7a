#!/usr/bin/env python3
"""onx trainable and onx train against PyTorch: the same weights, gradients, losses and optimizer steps.

train_compare.py ONX networks [NAME...]   exports each network in the usual ways, trains it for 20 steps with SGD and momentum
  in both, and prints for each export the number of trained values in both, the largest relative difference of a gradient of
  the first step (of weights that have the same name in both), that of the norm of all gradients, and that of the losses.
  dyn: torch.onnx.export as it is, raw: with optimize=False, ts: the TorchScript exporter, tst: that in training mode.
train_compare.py ONX optimizers           20 steps of each optimizer, with large and tiny gradients.
Needs torch, torchvision, onnx, onnxscript. Exit status 1 if a difference is too large where the export keeps all weights.
"""
import os, subprocess, sys, tempfile, warnings
warnings.filterwarnings("ignore")
import numpy as np, onnx, torch, torchvision
from torch import nn

ONX = os.path.abspath(sys.argv[1])
STEPS = 20
torch.set_num_threads(1)

# ---- networks

class Rnn(nn.Module):
    def __init__(s, kind): super().__init__(); s.r, s.o = kind(6, 8, num_layers=2, batch_first=True), nn.Linear(8, 4)
    def forward(s, x): return s.o(s.r(x)[0][:, -1])
class Encoder(nn.Module):
    def __init__(s):
        super().__init__()
        s.t, s.o = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False), nn.Linear(16, 4)
    def forward(s, x): return s.o(s.t(x).mean(1))
class Decoder(nn.Module):
    def __init__(s):
        super().__init__()
        s.memory = nn.Parameter(torch.randn(1, 3, 16))
        s.d, s.o = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 2), nn.Linear(16, 4)
    def forward(s, x): return s.o(s.d(x, s.memory.expand(x.shape[0], -1, -1)).mean(1))
class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.n1, s.n2, s.q, s.p = nn.LayerNorm(16), nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        s.m = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    def forward(s, x):
        b, t, c = x.shape
        q, k, v = s.q(s.n1(x)).view(b, t, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + s.p(y)
        return x + s.m(s.n2(x))
class Gpt(nn.Module):
    def __init__(s):
        super().__init__()
        s.e, s.pos, s.h = nn.Embedding(20, 16), nn.Parameter(torch.randn(1, 6, 16) * 0.02), nn.ModuleList([Block(), Block()])
        s.n, s.o = nn.LayerNorm(16), nn.Linear(16, 20, bias=False)
        s.o.weight = s.e.weight
    def forward(s, i):
        x = s.e(i) + s.pos
        for h in s.h: x = h(x)
        return s.o(s.n(x))[:, -1]

tv = torchvision.models
image = lambda *n: torch.randn(*n)
NETWORKS = {  # name: network, samples
    "mlp": (lambda: nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4)), lambda: image(4, 10)),
    "cnn": (lambda: nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 4)), lambda: image(4, 1, 10, 10)),
    "resnet": (lambda: tv.ResNet(tv.resnet.BasicBlock, [1, 1, 1, 1], num_classes=4), lambda: image(4, 3, 64, 64)),
    "mobilenet": (lambda: tv.mobilenet_v3_small(num_classes=4, dropout=0.0), lambda: image(4, 3, 64, 64)),
    "convnext": (lambda: tv.ConvNeXt([tv.convnext.CNBlockConfig(8, 16, 1), tv.convnext.CNBlockConfig(16, None, 1)], num_classes=4), lambda: image(4, 3, 32, 32)),
    "lstm": (lambda: Rnn(nn.LSTM), lambda: image(4, 5, 6)),
    "gru": (lambda: Rnn(nn.GRU), lambda: image(4, 5, 6)),
    "vit": (lambda: tv.VisionTransformer(16, 8, 2, 2, 16, 32, num_classes=4), lambda: image(4, 3, 16, 16)),
    "swin": (lambda: tv.SwinTransformer([4, 4], 16, [1, 2], [2, 2], [2, 2], stochastic_depth_prob=0.0, num_classes=4), lambda: image(4, 3, 32, 32)),
    "encoder": (Encoder, lambda: image(4, 5, 16)),
    "decoder": (Decoder, lambda: image(4, 5, 16)),
    "gpt": (Gpt, lambda: torch.randint(0, 20, (4, 6))),
}

def export(model, x, how, path):
    if how in ("dyn", "raw"):
        torch.onnx.export(model.eval(), (x,), path, dynamo=True, optimize=how == "dyn", verbose=False, external_data=False)
    elif how == "ts":
        torch.onnx.export(model.eval(), (x,), path, dynamo=False)
    else:
        torch.onnx.export(model.train(), (x,), path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)

def torch_curve(make, state, x, y, rate):
    model = make()
    model.load_state_dict(state)
    model.train()
    o, losses = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9), []
    for _ in range(STEPS):
        o.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if not losses:
            gradients = {n: p.grad.numpy().copy() for n, p in model.named_parameters()}
        o.step()
        losses.append(loss.item())
    return gradients, losses

def run(*words):
    done = subprocess.run([ONX, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"onx {' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout

def curve(text):
    return [float(line.split()[3]) for line in text.splitlines() if line.startswith("epoch")]

def onx_curve(path, x, y, rate, folder):
    name = onnx.load(path).graph.input[0].name
    os.makedirs(folder + "/data", exist_ok=True)
    for old in os.listdir(folder + "/data"): os.remove(f"{folder}/data/{old}")
    np.save(f"{folder}/data/{name}.npy", x.numpy())
    np.save(f"{folder}/data/label.npy", y.numpy())
    printed = run("trainable", path, "-o", folder + "/t.onnx", "--keep", "--optimizer", "momentum", "--rate", rate, "--explain")
    trained = [line[:-len(": train: is trained")] for line in printed.splitlines() if line.endswith(": train: is trained")]
    step = ("train", folder + "/t.onnx", "--data", folder + "/data", "--batch", len(x), "--threads", 1)
    run(*step, "--epochs", 1, "-o", folder + "/one.onnx")
    one = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(folder + "/one.onnx").training_info[0].algorithm.initializer}
    gradients = {n: one[n + "_state"] for n in trained}
    run(*step, "--epochs", STEPS, "-o", folder + "/all.onnx", "--log", folder + "/log.csv")
    losses = [float(line.split(",")[1]) for line in open(folder + "/log.csv").read().splitlines()[1:]]
    return gradients, losses

def difference(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / max(np.abs(np.asarray(b)).max(), 1e-12))

def networks(names):
    bad = 0
    for name in names or NETWORKS:
        make, draw = NETWORKS[name]
        torch.manual_seed(0)
        model, x = make(), draw()
        y = torch.randint(0, 4, (len(x),))
        state = {k: v.clone() for k, v in model.state_dict().items()}
        want, wanted = torch_curve(make, state, x, y, 0.01)
        for how in ("dyn", "raw", "ts", "tst"):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    model.load_state_dict(state)
                    export(model, x, how, folder + "/m.onnx")
                    got, losses = onx_curve(folder + "/m.onnx", x, y, 0.01, folder)
                except Exception as e:
                    print(f"{name:10} {how:4} failed: {str(e)[:300]}", flush=True)
                    continue
            values, all_values = sum(g.size for g in got.values()), sum(g.size for g in want.values())
            same = [n for n in got if n in want and got[n].shape == want[n].shape]
            gradient = max([difference(got[n], want[n]) for n in same if np.abs(want[n]).max() > 1e-6] or [0])
            norm = lambda g: float(np.sqrt(sum((v.astype("f8") ** 2).sum() for v in g.values())))
            loss = max(abs(a - b) for a, b in zip(losses, wanted))
            whole = values == all_values
            wrong = whole and (abs(norm(got) / norm(want) - 1) > 1e-4 or loss > 1e-4)
            bad += wrong
            print(f"{name:10} {how:4} weights {len(got):3} of {len(want):3}  values {values:7} of {all_values:7}  gradients {gradient:.1e} ({len(same)} by name)"
                  f"  norm {abs(norm(got) / norm(want) - 1):.1e}  losses {loss:.1e}{'  <<<' if wrong else ''}", flush=True)
    return bad

# ---- optimizers

class Rule(torch.optim.Optimizer):
    """An optimizer that PyTorch does not have, or has in another precision: update(p, state, lr, decay)."""
    def __init__(s, groups, lr, update): s.update = update; super().__init__(groups, dict(lr=lr, weight_decay=0.0))
    @torch.no_grad()
    def step(s):
        for g in s.param_groups:
            for p in g["params"]: s.update(p, s.state[p], g["lr"], g["weight_decay"])

def lion(p, s, lr, wd):
    m = s.setdefault("m", torch.zeros_like(p))
    u = (m * 0.9 + p.grad * 0.1).sign()
    p.mul_(1 - lr * wd).add_(u, alpha=-lr)
    m.mul_(0.99).add_(p.grad, alpha=0.01)
def lamb(p, s, lr, wd):
    t = s["t"] = s.get("t", 0) + 1
    m, v = s.setdefault("m", torch.zeros_like(p)), s.setdefault("v", torch.zeros_like(p))
    m.mul_(0.9).add_(p.grad, alpha=0.1)
    v.mul_(0.999).add_(p.grad ** 2, alpha=0.001)
    u = (m / (1 - 0.9 ** t)) / ((v / (1 - 0.999 ** t)).sqrt() + 1e-6) + wd * p
    a, b = float(p.norm()), float(u.norm())
    p.add_(u, alpha=-lr * (a / b if a > 0 and b > 0 else 1))
def muon(p, s, lr, wd):
    m = s.setdefault("m", torch.zeros_like(p))
    m.lerp_(p.grad, 0.05)
    x = p.grad.lerp(m, 0.95)
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        g = x @ x.T
        x = 3.4445 * x + (-4.775 * g + 2.0315 * g @ g) @ x
    p.mul_(1 - lr * wd).add_(x, alpha=-lr * max(1, p.shape[0] / p.shape[1]) ** 0.5)

class Both:
    def __init__(s, *o): s.o = o
    def zero_grad(s): [o.zero_grad() for o in s.o]
    def step(s): [o.step() for o in s.o]

o = torch.optim
groups = lambda w, b, wd: [{"params": [w], "weight_decay": wd}, {"params": [b], "weight_decay": 0.0}]
OPTIMIZERS = {
    "sgd": lambda w, b, wd, r: o.SGD(groups(w, b, wd), lr=r),
    "momentum": lambda w, b, wd, r: o.SGD(groups(w, b, wd), lr=r, momentum=0.9),
    "nesterov": lambda w, b, wd, r: o.SGD(groups(w, b, wd), lr=r, momentum=0.9, nesterov=True),
    "adam": lambda w, b, wd, r: o.Adam(groups(w, b, wd), lr=r),
    "adamw": lambda w, b, wd, r: o.AdamW(groups(w, b, wd), lr=r),
    "adagrad": lambda w, b, wd, r: o.Adagrad(groups(w, b, wd), lr=r),
    "rmsprop": lambda w, b, wd, r: o.RMSprop(groups(w, b, wd), lr=r),
    "adadelta": lambda w, b, wd, r: o.Adadelta(groups(w, b, wd), lr=r),
    "adafactor": lambda w, b, wd, r: o.Adafactor(groups(w, b, wd), lr=r),
    "lion": lambda w, b, wd, r: Rule(groups(w, b, wd), r, lion),
    "lamb": lambda w, b, wd, r: Rule(groups(w, b, wd), r, lamb),
    "muon": lambda w, b, wd, r: Both(Rule(groups(w, b, wd)[:1], r, muon), o.AdamW([b], lr=r, weight_decay=0.0)),
}

def optimizers():
    bad, rng = 0, np.random.default_rng(0)
    w0, b0 = rng.normal(size=(3, 4)).astype("f4"), rng.normal(size=4).astype("f4")
    x, y = rng.normal(size=(5, 3)).astype("f4"), rng.normal(size=(5, 4)).astype("f4")
    text = lambda a: ", ".join("%.9g" % v for v in a.ravel())
    with tempfile.TemporaryDirectory() as folder:
        np.save(folder + "/x.npy", x), np.save(folder + "/label.npy", y)
        for name, make in OPTIMIZERS.items():
            for scale in 1.0, 1e-4, 1e-7:
                for decay in 0.0, 0.1:
                    open(folder + "/m.onnxtxt", "w").write(
                        f'<ir_version: 8, opset_import: ["" : 18]> g (float[N,3] x) => (float[N,4] y) <float[3,4] w = {{{text(w0)}}}, float[4] b = {{{text(b0)}}},'
                        f' float s = {{{scale:.9g}}}> {{ m = MatMul (x, w)  a = Add (m, b)  y = Mul (a, s) }}')
                    run("trainable", folder + "/m.onnxtxt", "-o", folder + "/t.onnx", "--loss", "mse", "--keep", "--optimizer", name, "--rate", 0.01, "--weight-decay", decay)
                    run("train", folder + "/t.onnx", "--data", folder + "/x.npy", "--data", folder + "/label.npy", "--epochs", STEPS, "--batch", 5, "-o", folder + "/a.onnx")
                    got = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(folder + "/a.onnx").graph.initializer}
                    w, b = nn.Parameter(torch.tensor(w0.copy())), nn.Parameter(torch.tensor(b0.copy()))
                    steps = make(w, b, decay, 0.01)
                    for _ in range(STEPS):
                        steps.zero_grad()
                        (((torch.tensor(x) @ w + b) * scale - torch.tensor(y)) ** 2).mean().backward()
                        steps.step()
                    apart = max(np.abs(got["w"] - w.detach().numpy()).max(), np.abs(got["b"] - b.detach().numpy()).max())
                    bad += apart > 1e-5
                    print(f"{name:10} gradients times {scale:g}  decay {decay}: {apart:.1e}{'  <<<' if apart > 1e-5 else ''}", flush=True)
    return bad

sys.exit(1 if (optimizers() if sys.argv[2] == "optimizers" else networks(sys.argv[3:])) else 0)
