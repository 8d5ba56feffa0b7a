#!/usr/bin/python3
"""Training steps: `onx train` against PyTorch, with the same network, optimizer, batch and threads, alternating.

training.py ONX [NAME...]     needs Debian's python3-torch and python3-torchvision
  ONX_BENCH_THREADS   threads of both, default 1
  ONX_BENCH_ROUNDS    number of alternating rounds, default 3; the minimum counts
  ONX_BENCH_CLOCK     "processor": measure CPU time instead of wall-clock time; for a busy machine
Prints the time of a step of both, the ratio (above 1 means that onx is faster), and the peak memory of both.
PyTorch multiplies with the first libblas.so.3 that is found, which is printed: against the reference BLAS, which Debian
installs by default, most ratios mean little. To use OpenBLAS, add its folder to LD_LIBRARY_PATH.
"""
import json, os, resource, statistics, subprocess, sys, tempfile, time, warnings
warnings.filterwarnings("ignore")
for library in "OMP", "OPENBLAS", "MKL":  # set before the libraries are loaded
    os.environ[library + "_NUM_THREADS"] = os.environ.get("ONX_BENCH_THREADS", "1")
import numpy, torch, torchvision
from torch import nn

THREADS = int(os.environ.get("ONX_BENCH_THREADS", "1"))
ROUNDS = int(os.environ.get("ONX_BENCH_ROUNDS", "3"))
PROCESSOR = os.environ.get("ONX_BENCH_CLOCK") == "processor"
clock = time.process_time if PROCESSOR else time.perf_counter
torch.set_num_threads(THREADS)

class Recurrent(nn.Module):
    def __init__(s): super().__init__(); s.r, s.o = nn.GRU(64, 128, batch_first=True), nn.Linear(128, 10)
    def forward(s, x): return s.o(s.r(x)[0][:, -1])

class Transformer(nn.Module):
    def __init__(s):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, activation="gelu", batch_first=True)
        s.t, s.o = nn.TransformerEncoder(layer, 4), nn.Linear(128, 10)
    def forward(s, x): return s.o(s.t(x).mean(1))

# name: network, shape of one sample, batch, steps of an epoch
NETWORKS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)), (784,), 64, 40),
    "cnn": (lambda: nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                                  nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10)), (1, 28, 28), 32, 40),
    "resnet18": (lambda: torchvision.models.resnet18(weights=None, num_classes=10), (3, 224, 224), 8, 4),
    "transformer": (Transformer, (64, 128), 16, 10),
    "gru": (Recurrent, (32, 64), 32, 20),
}

def peak(command):
    """Runs a command and returns its peak memory in MiB, read from /proc until shortly before its end."""
    child, most = subprocess.Popen(command, stdout=subprocess.DEVNULL), 0
    while child.poll() is None:
        try:  # wait4 would give at least the memory of this Python process
            most = next((int(line.split()[1]) for line in open(f"/proc/{child.pid}/status") if line.startswith("VmHWM")), most)
        except OSError:
            pass
        time.sleep(0.01)
    if child.returncode:
        sys.exit("failed: " + " ".join(command))
    return most / 1024

def torch_steps(net, x, y, batch, steps):
    model, loss = net().train(), nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    taken = []
    for epoch in range(3):
        begin = clock()
        for i in range(steps):
            optimiser.zero_grad()
            loss(model(x[i * batch:(i + 1) * batch]), y[i * batch:(i + 1) * batch]).backward()
            optimiser.step()
        taken.append((clock() - begin) / steps)
    return min(taken[1:])

def onx_train(onx, model, data, batch, folder, epochs):
    """Returns the seconds of the fastest epoch except the first, the CPU seconds in total, and the peak memory."""
    log, before = os.path.join(folder, "log.jsonl"), resource.getrusage(resource.RUSAGE_CHILDREN)
    if os.path.exists(log):
        os.remove(log)
    memory = peak([onx, "train", model, "--data", data, "--batch", str(batch), "--epochs", str(epochs), "--log", log, "--keep",
                   "--threads", str(THREADS), "-o", os.path.join(folder, "out.onnx")])
    after, lines = resource.getrusage(resource.RUSAGE_CHILDREN), [json.loads(line) for line in open(log)]
    return (min((line["seconds"] for line in lines[1:]), default=0),
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, memory)

def onx_steps(onx, model, data, batch, folder):
    seconds, processors, memory = onx_train(onx, model, data, batch, folder, 5 if PROCESSOR else 3)
    if PROCESSOR:  # the difference of two runs excludes loading and the first steps
        seconds = (processors - onx_train(onx, model, data, batch, folder, 2)[1]) / 3
    return seconds, memory

def main():
    if sys.argv[1] == "--torch":  # runs one network in a process of its own, to measure its memory
        net, shape, batch, steps = NETWORKS[sys.argv[2]]
        torch_steps(net, torch.rand(batch, *shape), torch.randint(0, 10, (batch,)), batch, 1)
        return
    onx, names, ratios = sys.argv[1], sys.argv[2:] or list(NETWORKS), []
    blas = {os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps") if "blas" in line.split()[-1]}
    print("PyTorch's BLAS:", " ".join(sorted(blas)))
    print(f"{'':14} {'onx':>10} {'PyTorch':>10} {'ratio':>7}   peak memory, MiB")
    for name in names:
        net, shape, batch, steps = NETWORKS[name]
        with tempfile.TemporaryDirectory() as folder:
            plain, model, data = (os.path.join(folder, f) for f in ("plain.onnx", "model.onnx", "data.npz"))
            x, y = torch.rand(batch * steps, *shape), torch.randint(0, 10, (batch * steps,))
            torch.onnx.export(net().train(), x[:batch], plain, training=torch.onnx.TrainingMode.TRAINING, opset_version=15,
                              do_constant_folding=False, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "N"}})
            subprocess.run([onx, "trainable", plain, "-o", model, "--optimizer", "sgd", "--rate", "0.01", "--keep"], check=True,
                           stdout=subprocess.DEVNULL)
            numpy.savez(data, x=x.numpy(), label=y.numpy())
            ours, theirs = [], []
            for _ in range(ROUNDS):
                taken, memory = onx_steps(onx, model, data, batch, folder)
                ours.append(taken / steps)
                theirs.append(torch_steps(net, x, y, batch, steps))
            a, b = min(ours), min(theirs)
            ratios.append(b / a)
            print(f"{name:14} {a * 1e3:7.2f} ms {b * 1e3:7.2f} ms {b / a:6.2f}x   {memory:.0f} against "
                  f"{peak([sys.executable, __file__, '--torch', name]):.0f}", flush=True)
    print(f"{'mean':14} {'':10} {'':10} {statistics.geometric_mean(ratios):6.2f}x")

main()
