#!/usr/bin/python3
"""Gradients of whole networks: `onx grad` against PyTorch's autograd, on the same weights and inputs, in double precision.

gradients.py ONX [NAME...]     needs Debian's python3-torch, python3-torchvision and python3-onnx
Prints the largest error of any parameter's gradient, relative to the largest element of that gradient.
"""
import copy, os, subprocess, sys, tempfile, warnings
warnings.filterwarnings("ignore")
import numpy, torch, torchvision
from torch import nn

class Loss(nn.Module):
    """A scalar loss over all outputs, each with a different weight."""
    def __init__(s, m): super().__init__(); s.m = m
    def forward(s, *x):
        y = s.m(*x)
        y = y[0] if isinstance(y, tuple) else y
        return (y / (1 + y.abs()) * (1 + torch.cos(torch.arange(y.shape[-1]).to(y)) / 2)).mean()

class Recurrent(nn.Module):
    def __init__(s, kind): super().__init__(); s.r, s.o = kind(12, 20, bidirectional=True), nn.Linear(40, 5)
    def forward(s, x): return s.o(s.r(x)[0])

class Embedded(nn.Module):
    def __init__(s):
        super().__init__(); s.e = nn.Embedding(50, 32)
        s.l = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True)
    def forward(s, x): return s.l(s.e(x))

def vision(name, n): return lambda: (getattr(torchvision.models, name)(weights=None), (torch.rand(2, 3, n, n),))
NETWORKS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.LayerNorm(64), nn.Linear(64, 10), nn.LogSoftmax(-1)), (torch.rand(8, 20),)),
    "cnn": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, groups=4), nn.SiLU(),
                                  nn.AvgPool2d(2, ceil_mode=True), nn.ConvTranspose2d(16, 4, 3, stride=2, padding=1), nn.GroupNorm(2, 4), nn.AdaptiveAvgPool2d(1)), (torch.rand(2, 3, 32, 32),)),
    "gru": lambda: (Recurrent(nn.GRU), (torch.rand(7, 3, 12),)),
    "lstm": lambda: (Recurrent(nn.LSTM), (torch.rand(7, 3, 12),)),
    "transformer": lambda: (Embedded(), (torch.randint(0, 50, (2, 9)),)),
    "resnet18": vision("resnet18", 96),
    "mobilenet_v3_large": vision("mobilenet_v3_large", 96),
    "efficientnet_b0": vision("efficientnet_b0", 96),
    "convnext_tiny": vision("convnext_tiny", 64),
    "vit_b_16": vision("vit_b_16", 224),
    "swin_t": vision("swin_t", 64),
}

def compare(onx, name, folder):
    torch.manual_seed(int(os.environ.get("SEED", 4)))
    model, inputs = NETWORKS[name]()
    net = Loss(model).eval()
    for p in net.parameters():  # the exporter merges equal parameters
        p.data += 0.002 * torch.randn_like(p)
    exact = copy.deepcopy(net).double()
    exact(*(x.double() if x.is_floating_point() else x for x in inputs)).backward()
    exact = dict(exact.named_parameters())
    path = os.path.join(folder, name + ".onnx")
    torch.onnx.export(net, inputs, path, opset_version=16, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
                      input_names=["input%d" % i for i in range(len(inputs))], output_names=["loss"])
    import onnx
    known = {t.name for t in onnx.load(path).graph.initializer}
    wanted = [(n, p) for n, p in net.named_parameters() if n in known and exact[n].grad is not None]
    derived = os.path.join(folder, name + ".grad.onnx")
    subprocess.run([onx, "grad", path, "-o", derived, "--of", "loss", "--wrt", ",".join(n for n, _ in wanted), "--only"], check=True)
    given = []
    for i, x in enumerate(inputs):
        numpy.save(os.path.join(folder, "input%d.npy" % i), x.numpy())
        given += ["-i", "input%d=%s/input%d.npy" % (i, folder, i)]
    out = os.path.join(folder, "out.npz")
    subprocess.run([onx, "run", derived, *given, "-o", out], check=True, stdout=subprocess.DEVNULL)
    got = numpy.load(out)
    worst, where = 0.0, ""
    for n, p in wanted:
        g, w = got[n + "_grad"], exact[n].grad.numpy()
        if g.shape != w.shape:
            raise SystemExit("%s: %s has another shape" % (name, n))
        e = float(numpy.abs(g - w).max() / (numpy.abs(w).max() + 1e-12)) if w.size and numpy.abs(w).max() > 1e-7 else float(numpy.abs(g - w).max())
        if not e <= worst:
            worst, where = e, n
    print("%-20s %4d of %4d parameters  largest relative error %.2g  %s" % (name, len(wanted), len(list(net.parameters())), worst, where), flush=True)
    return worst

def main():
    onx, names = sys.argv[1], sys.argv[2:] or list(NETWORKS)
    with tempfile.TemporaryDirectory() as folder:
        bad = [n for n in names if not compare(onx, n, folder) <= 1e-3]
    sys.exit("above 1e-3: " + " ".join(bad) if bad else 0)

main()
