#!/usr/bin/env python3
"""export.py FOLDER [NAME...]: networks of many kinds as ONNX files for networks.sh, exported by PyTorch.

Weights are random, so the outputs are meaningless, but operators, shapes and cost are those of such networks. It needs
torch, torchvision and onnx; a network that the installed version does not have is skipped with a message.
"""
import math
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
import torchvision
from torch import nn
from torch.nn import functional as F


def image(size=224, batch=1):
    return (torch.rand(batch, 3, size, size),)


def classify(name, size=224, **options):
    return lambda: (getattr(torchvision.models, name)(weights=None, **options), image(size))


class Only(nn.Module):
    """Selects one output of a model that returns several by name."""

    def __init__(self, model, key):
        super().__init__()
        self.model, self.key = model, key

    def forward(self, x):
        return self.model(x)[self.key]


def segment(name, size=224):
    def make():
        family = getattr(torchvision.models.segmentation, name)
        return Only(family(weights=None, weights_backbone=None, num_classes=21), "out"), image(size)

    return make


def detect(name, size=320):
    def make():
        family = getattr(torchvision.models.detection, name)
        return family(weights=None, weights_backbone=None), ([torch.rand(3, size, size)],)

    return make


def video(name):
    return lambda: (getattr(torchvision.models.video, name)(weights=None), (torch.rand(1, 3, 8, 112, 112),))


class SelfAttention(nn.Module):
    """Multi-head attention from basic operators, as most repositories write it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        p = ((q @ k.transpose(-2, -1)) * (w // self.heads) ** -0.5).softmax(-1)
        return self.out((p @ v).transpose(1, 2).reshape(b, t, w))


class Transformer(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.parts = nn.ModuleList(
            nn.ModuleList((nn.LayerNorm(width), SelfAttention(width, heads), nn.LayerNorm(width),
                           nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))))
            for _ in range(layers))

    def forward(self, x):
        for n, a, m, f in self.parts:
            x = x + a(n(x))
            x = x + f(m(x))
        return x


class Wave(nn.Module):
    """Convolutions over audio samples, then a transformer (as wav2vec 2.0)."""

    def __init__(self, width=256, layers=4):
        super().__init__()
        shape = [(10, 5)] + [(3, 2)] * 4 + [(2, 2)] * 2
        self.convs = nn.ModuleList(nn.Conv1d(width if i else 1, width, k, s, bias=False) for i, (k, s) in enumerate(shape))
        self.norm = nn.GroupNorm(width, width)
        self.place = nn.Conv1d(width, width, 64, padding=32, groups=16)
        self.body = Transformer(width, 4, layers)
        self.head = nn.Linear(width, 32)

    def forward(self, x):
        for i, c in enumerate(self.convs):
            x = c(x)
            x = F.gelu(self.norm(x) if not i else x)
        x = x + F.gelu(self.place(x)[..., :-1])
        return self.head(self.body(x.transpose(1, 2)))


class Conformer(nn.Module):
    """Conformer blocks: a half-step feed-forward layer, attention, a gated convolution, another half-step feed-forward layer."""

    class Block(nn.Module):
        def __init__(self, w):
            super().__init__()
            half = lambda: nn.Sequential(nn.LayerNorm(w), nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, w))
            self.a, self.d, self.norm_b, self.b = half(), half(), nn.LayerNorm(w), SelfAttention(w, 4)
            self.norm_c, self.norm = nn.LayerNorm(w), nn.LayerNorm(w)
            self.c = nn.Sequential(nn.Conv1d(w, 2 * w, 1), nn.GLU(1), nn.Conv1d(w, w, 31, padding=15, groups=w),
                                   nn.BatchNorm1d(w), nn.SiLU(), nn.Conv1d(w, w, 1))

        def forward(self, x):
            x = x + 0.5 * self.a(x)
            x = x + self.b(self.norm_b(x))
            x = x + self.c(self.norm_c(x).transpose(1, 2)).transpose(1, 2)
            return self.norm(x + 0.5 * self.d(x))

    def __init__(self, width=144, layers=6):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
        self.into = nn.Linear(width * 19, width)
        self.blocks = nn.Sequential(*(Conformer.Block(width) for _ in range(layers)))
        self.head = nn.Linear(width, 128)

    def forward(self, x):
        y = self.front(x[:, None])
        return self.head(self.blocks(self.into(y.transpose(1, 2).flatten(2)))).log_softmax(-1)


class Diffusion(nn.Module):
    """The U-Net of a diffusion model: residual blocks with a time embedding, attention at the coarser resolutions."""

    class Residual(nn.Module):
        def __init__(self, i, o, time):
            super().__init__()
            self.a = nn.Sequential(nn.GroupNorm(32, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1))
            self.t = nn.Sequential(nn.SiLU(), nn.Linear(time, o))
            self.b = nn.Sequential(nn.GroupNorm(32, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1))
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, t):
            return self.skip(x) + self.b(self.a(x) + self.t(t)[:, :, None, None])

    class Attend(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.norm, self.attention = nn.GroupNorm(32, w), SelfAttention(w, 4)

        def forward(self, x):
            b, c, h, w = x.shape
            return x + self.attention(self.norm(x).flatten(2).transpose(1, 2)).transpose(1, 2).reshape(b, c, h, w)

    def __init__(self, w=64):
        super().__init__()
        r = lambda i, o: Diffusion.Residual(i, o, 4 * w)
        self.w = w
        self.time = nn.Sequential(nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w))
        self.first, self.a, self.b, self.c = nn.Conv2d(4, w, 3, padding=1), r(w, w), r(w, 2 * w), r(2 * w, 4 * w)
        self.at_b, self.at_c = Diffusion.Attend(2 * w), Diffusion.Attend(4 * w)
        self.down_a, self.down_b = nn.Conv2d(w, w, 3, 2, 1), nn.Conv2d(2 * w, 2 * w, 3, 2, 1)
        self.m, self.at_m = r(4 * w, 4 * w), Diffusion.Attend(4 * w)
        self.u, self.v, self.z = r(8 * w, 2 * w), r(4 * w, w), r(2 * w, w)
        self.last = nn.Sequential(nn.GroupNorm(32, w), nn.SiLU(), nn.Conv2d(w, 4, 3, padding=1))

    def forward(self, x, step):
        f = torch.exp(-math.log(10000) * torch.arange(self.w // 2) / (self.w // 2)) * step[:, None].float()
        t = self.time(torch.cat((f.cos(), f.sin()), -1))
        up = lambda y: F.interpolate(y, scale_factor=2, mode="nearest")
        a = self.a(self.first(x), t)
        b = self.at_b(self.b(self.down_a(a), t))
        c = self.at_c(self.c(self.down_b(b), t))
        m = self.m(self.at_m(c), t)
        u = self.u(torch.cat((m, c), 1), t)
        v = self.v(torch.cat((up(u), b), 1), t)
        return self.last(self.z(torch.cat((up(v), a), 1), t))


class Graph(nn.Module):
    """Graph convolutions: features are gathered along edges and summed at nodes, with attention weights."""

    def __init__(self, width=128, layers=3):
        super().__init__()
        self.into = nn.Linear(64, width)
        self.parts = nn.ModuleList(
            nn.ModuleList((nn.Linear(width, width), nn.Linear(2 * width, 1), nn.Linear(width, width))) for _ in range(layers))
        self.out = nn.Linear(width, 16)

    def forward(self, x, edges):
        x = self.into(x).relu()
        source, target = edges[0], edges[1]
        for message, score, update in self.parts:
            h = message(x)
            e = F.leaky_relu(score(torch.cat((h[source], h[target]), -1)), 0.2).exp()
            total = torch.zeros_like(x[:, :1]).scatter_add(0, target[:, None], e)
            mixed = torch.zeros_like(h).scatter_add(0, target[:, None].expand(-1, h.shape[1]), h[source] * e)
            x = x + update(F.elu(mixed / (total + 1e-6)))
        return self.out(x)


class Recommender(nn.Module):
    """Embedding bags, their pairwise dot products, and two MLPs (as DLRM)."""

    def __init__(self, tables=16, rows=20000, width=64, dense=13):
        super().__init__()
        stack = lambda *w: nn.Sequential(*(m for i, o in zip(w, w[1:]) for m in (nn.Linear(i, o), nn.ReLU())))
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = stack(dense, 512, 256, width)
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(stack(pairs + width, 512, 256), nn.Linear(256, 1), nn.Sigmoid())
        self.register_buffer("at", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense, ids):
        x = self.bottom(dense)
        z = torch.stack([x] + [t(ids[:, i]).sum(1) for i, t in enumerate(self.tables)], 1)
        p = torch.bmm(z, z.transpose(1, 2))
        return self.top(torch.cat((x, p[:, self.at[0], self.at[1]]), 1))


class Tagger(nn.Module):
    """Word embeddings and a bidirectional LSTM."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(10000, 128), nn.Linear(512, 24)
        self.lstm = nn.LSTM(128, 256, 2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.out(self.lstm(self.words(x))[0])


class Temporal(nn.Module):
    """Dilated causal convolutions over time (as TCN and WaveNet), with gates."""

    def __init__(self, width=64, layers=8):
        super().__init__()
        self.into = nn.Conv1d(16, width, 1)
        self.parts = nn.ModuleList(
            nn.ModuleList((nn.Conv1d(width, 2 * width, 3, dilation=2 ** i), nn.Conv1d(width, width, 1))) for i in range(layers))
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 8, 1))

    def forward(self, x):
        x, total = self.into(x), 0
        for i, (c, o) in enumerate(self.parts):
            a, b = c(F.pad(x, (2 << i, 0))).chunk(2, 1)
            y = o(a.tanh() * b.sigmoid())
            x, total = x + y, total + y
        return self.out(total)


class Points(nn.Module):
    """A point cloud: nearest neighbours by distance, layers per point, max pooling of each feature."""

    def __init__(self, k=16):
        super().__init__()
        layer = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2))
        self.k, self.a, self.b, self.c = k, layer(6, 64), layer(128, 64), layer(128, 128)
        self.d = nn.Sequential(nn.Conv1d(256, 512, 1, bias=False), nn.BatchNorm1d(512), nn.LeakyReLU(0.2))
        self.out = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40))

    def near(self, x):
        square = (x * x).sum(1, keepdim=True)
        distance = square.transpose(1, 2) + square - 2 * x.transpose(1, 2) @ x
        at = distance.topk(self.k, -1, largest=False)[1]
        b, c, n = x.shape
        y = x.transpose(1, 2)[0][at.view(-1)].view(b, n, self.k, c).permute(0, 3, 1, 2)
        x = x[..., None].expand(-1, -1, -1, self.k)
        return torch.cat((y - x, x), 1)

    def forward(self, x):
        a = self.a(self.near(x)).amax(-1)
        b = self.b(self.near(a)).amax(-1)
        c = self.c(self.near(b)).amax(-1)
        return self.out(self.d(torch.cat((a, b, c), 1)).amax(-1))


class Vocoder(nn.Module):
    """Transposed convolutions from spectrograms to audio (as HiFi-GAN)."""

    def __init__(self, width=128):
        super().__init__()
        self.first = nn.Conv1d(80, width, 7, padding=3)
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(width >> i, width >> (i + 1), 2 * s, s, s // 2) for i, s in enumerate((8, 8, 2)))
        self.res = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(width >> (i + 1), width >> (i + 1), k, padding=d * (k - 1) // 2, dilation=d)
                          for k in (3, 7) for d in (1, 3)) for i in range(3))
        self.last = nn.Conv1d(width >> 3, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for up, res in zip(self.ups, self.res):
            x = up(F.leaky_relu(x, 0.1))
            for c in res:
                x = x + c(F.leaky_relu(x, 0.1))
        return torch.tanh(self.last(F.leaky_relu(x)))


class Style(nn.Module):
    """Instance normalization, reflection padding, nearest-neighbour upsampling (as fast style transfer)."""

    def __init__(self, w=32):
        super().__init__()
        conv = lambda i, o, k, s=1: nn.Sequential(nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o, affine=True))
        self.a, self.b, self.c = conv(3, w, 9), conv(w, 2 * w, 3, 2), conv(2 * w, 4 * w, 3, 2)
        self.r = nn.ModuleList(nn.Sequential(conv(4 * w, 4 * w, 3), nn.ReLU(), conv(4 * w, 4 * w, 3)) for _ in range(3))
        self.d, self.e = conv(4 * w, 2 * w, 3), conv(2 * w, w, 3)
        self.last = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(w, 3, 9))

    def forward(self, x):
        x = self.c(self.b(self.a(x).relu()).relu()).relu()
        for r in self.r:
            x = x + r(x)
        x = self.d(F.interpolate(x, scale_factor=2)).relu()
        return self.last(self.e(F.interpolate(x, scale_factor=2)).relu())


class Rotary(nn.Module):
    """A decoder over a prompt: rotary embeddings that rotate halves, RMS norms, gated MLPs and a causal mask (as Llama)."""

    class Block(nn.Module):
        def __init__(self, w, heads, inner):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(w, w, bias=False) for _ in range(4))
            self.gate, self.up, self.down = nn.Linear(w, inner, bias=False), nn.Linear(w, inner, bias=False), nn.Linear(inner, w, bias=False)
            self.n, self.m = nn.Parameter(torch.ones(w)), nn.Parameter(torch.ones(w))

        def norm(self, x, by):
            return by * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))

        def turn(self, x, cos, sin):
            half = x.shape[-1] // 2
            return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

        def forward(self, x, cos, sin, mask):
            b, t, w = x.shape
            y = self.norm(x, self.n)
            split = lambda z: z.view(b, t, self.heads, w // self.heads).transpose(1, 2)
            q, k, v = self.turn(split(self.q(y)), cos, sin), self.turn(split(self.k(y)), cos, sin), split(self.v(y))
            p = F.softmax(q @ k.transpose(2, 3) / math.sqrt(w // self.heads) + mask, -1)
            x = x + self.o((p @ v).transpose(1, 2).reshape(b, t, w))
            y = self.norm(x, self.m)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def __init__(self, w=512, heads=8, layers=4):
        super().__init__()
        self.words, self.head = nn.Embedding(8000, w), nn.Linear(w, 8000, bias=False)
        self.blocks = nn.ModuleList(Rotary.Block(w, heads, 1376) for _ in range(layers))
        self.register_buffer("speeds", 10000.0 ** (-torch.arange(0, w // heads, 2).float() / (w // heads)))

    def forward(self, ids):
        t = ids.shape[1]
        f = torch.arange(t, dtype=torch.float)[:, None] * self.speeds
        f = torch.cat((f, f), -1)
        mask = torch.full((t, t), -1e4).triu(1)
        x = self.words(ids)
        for b in self.blocks:
            x = b(x, f.cos(), f.sin(), mask)
        return self.head(x)


class Detector(nn.Module):
    """Convolutions with SiLU, channels that are split and concatenated, pyramid pooling, boxes from logits (as YOLO v5 to v8)."""

    class Cell(nn.Module):
        def __init__(self, w, n):
            super().__init__()
            c = Detector.conv
            self.a, self.z = c(w, w, 1), c(w // 2 * (n + 2), w, 1)
            self.parts = nn.ModuleList(nn.Sequential(c(w // 2, w // 2, 3), c(w // 2, w // 2, 3)) for _ in range(n))

        def forward(self, x):
            y = list(self.a(x).chunk(2, 1))
            for p in self.parts:
                y.append(y[-1] + p(y[-1]))
            return self.z(torch.cat(y, 1))

    @staticmethod
    def conv(i, o, k, s=1):
        return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), nn.SiLU())

    def __init__(self, w=16, classes=80):
        super().__init__()
        c, cell = Detector.conv, Detector.Cell
        self.a = nn.Sequential(c(3, w, 3, 2), c(w, 2 * w, 3, 2), cell(2 * w, 1), c(2 * w, 4 * w, 3, 2), cell(4 * w, 2))
        self.b = nn.Sequential(c(4 * w, 8 * w, 3, 2), cell(8 * w, 2))
        self.c = nn.Sequential(c(8 * w, 16 * w, 3, 2), cell(16 * w, 1))
        self.pool, self.s, self.z = nn.MaxPool2d(5, 1, 2), c(16 * w, 8 * w, 1), c(32 * w, 8 * w, 1)
        self.up = c(16 * w, 8 * w, 1)
        self.heads = nn.ModuleList(nn.Sequential(c(8 * w, 4 * w, 3), nn.Conv2d(4 * w, 64 + classes, 1)) for _ in range(2))
        self.register_buffer("bins", torch.arange(16).float())

    def forward(self, x):
        b = self.b(self.a(x))
        y = self.s(self.c(b))
        p = [y]
        for _ in range(3):
            p.append(self.pool(p[-1]))
        y = self.z(torch.cat(p, 1))
        fine = self.up(torch.cat((F.interpolate(y, scale_factor=2), b), 1))
        out = []
        for head, z in zip(self.heads, (fine, y)):
            h = head(z).flatten(2)
            box = h[:, :64].view(1, 4, 16, -1).transpose(1, 2).softmax(1)
            out.append(torch.cat(((box * self.bins[None, :, None, None]).sum(1), h[:, 64:].sigmoid()), 1))
        return torch.cat(out, 2)


class Forecast(nn.Module):
    """Time series, normalized by their own mean and deviation and cut into patches, and a transformer (as PatchTST)."""

    def __init__(self, width=128):
        super().__init__()
        self.into, self.place = nn.Linear(16, width), nn.Parameter(torch.zeros(1, 63, width))
        self.body, self.out = Transformer(width, 8, 3), nn.Linear(63 * width, 96)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        deviation = torch.sqrt(((x - mean) ** 2).mean(1, keepdim=True) + 1e-5)
        y = ((x - mean) / deviation).transpose(1, 2)
        y = torch.stack([y[..., 8 * i:8 * i + 16] for i in range(63)], 2)
        b, c = y.shape[:2]
        y = self.out(self.body(self.into(y).view(b * c, 63, -1) + self.place).flatten(1)).view(b, c, 96)
        return y.transpose(1, 2) * deviation + mean


class Mixer(nn.Module):
    """Linear layers that alternate between mixing patches and mixing channels (as MLP-Mixer)."""

    def __init__(self, w=256, n=196, layers=6):
        super().__init__()
        layer = lambda i, o: nn.Sequential(nn.Linear(i, o), nn.GELU(), nn.Linear(o, i))
        self.cut = nn.Conv2d(3, w, 16, 16)
        self.parts = nn.ModuleList(
            nn.ModuleList((nn.LayerNorm(w), layer(n, 2 * n), nn.LayerNorm(w), layer(w, 4 * w))) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(w), nn.Linear(w, 1000)

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        for a, across, b, within in self.parts:
            x = x + across(a(x).transpose(1, 2)).transpose(1, 2)
            x = x + within(b(x))
        return self.head(self.norm(x).mean(1))


class Separator(nn.Module):
    """Separates audio into sources by masks (as Conv-TasNet): depthwise convolutions, PReLU, global layer norms."""

    class Block(nn.Module):
        def __init__(self, w, inner, d):
            super().__init__()
            self.a, self.p, self.n = nn.Conv1d(w, inner, 1), nn.PReLU(), nn.GroupNorm(1, inner)
            self.b, self.q, self.m = nn.Conv1d(inner, inner, 3, padding=d, dilation=d, groups=inner), nn.PReLU(), nn.GroupNorm(1, inner)
            self.c = nn.Conv1d(inner, w, 1)

        def forward(self, x):
            return x + self.c(self.m(self.q(self.b(self.n(self.p(self.a(x)))))))

    def __init__(self, w=64):
        super().__init__()
        self.w, self.code, self.norm = w, nn.Conv1d(1, 256, 16, 8, bias=False), nn.GroupNorm(1, 256)
        self.into, self.out = nn.Conv1d(256, w, 1), nn.Conv1d(w, 512, 1)
        self.parts = nn.Sequential(*(Separator.Block(w, 128, 1 << i) for i in range(6)))
        self.back = nn.ConvTranspose1d(256, 1, 16, 8, bias=False)

    def forward(self, x):
        y = self.code(x).relu()
        m = self.out(self.parts(self.into(self.norm(y)))).view(1, 2, 256, -1).sigmoid()
        return self.back((y[:, None] * m).flatten(0, 1)).view(1, 2, -1)


class Experts(nn.Module):
    """Transformer blocks with eight experts, of which the gate selects two per token; all experts compute all tokens."""

    class Block(nn.Module):
        def __init__(self, w, experts):
            super().__init__()
            self.a, self.n, self.m = SelfAttention(w, 4), nn.LayerNorm(w), nn.LayerNorm(w)
            self.gate = nn.Linear(w, experts, bias=False)
            self.up, self.down = nn.Parameter(torch.rand(experts, w, 2 * w) - 0.5), nn.Parameter(torch.rand(experts, 2 * w, w) - 0.5)

        def forward(self, x):
            x = x + self.a(self.n(x))
            y = self.m(x)
            best, at = self.gate(y).softmax(-1).topk(2, dim=-1)
            share = torch.zeros_like(self.gate(y)).scatter(-1, at, best / best.sum(-1, keepdim=True))
            made = torch.einsum("btw,ewv->ebtv", y, self.up)
            made = torch.einsum("ebtv,evw->ebtw", F.silu(made), self.down)
            return x + torch.einsum("ebtw,bte->btw", made, share)

    def __init__(self, w=192):
        super().__init__()
        self.words, self.out = nn.Embedding(8000, w), nn.Linear(w, 8000)
        self.parts = nn.Sequential(*(Experts.Block(w, 8) for _ in range(3)))

    def forward(self, ids):
        return self.out(self.parts(self.words(ids)))


class LargeKernels(nn.Module):
    """Blocks with large depthwise kernels: 31, 13 and 7 pixels wide, each beside a kernel of 5 pixels."""

    class Block(nn.Module):
        def __init__(self, w, size):
            super().__init__()
            self.a = nn.Sequential(nn.BatchNorm2d(w), nn.Conv2d(w, w, 1), nn.ReLU())
            self.far, self.near = nn.Conv2d(w, w, size, 1, size // 2, groups=w), nn.Conv2d(w, w, 5, 1, 2, groups=w)
            self.b = nn.Sequential(nn.ReLU(), nn.Conv2d(w, w, 1))
            self.c = nn.Sequential(nn.BatchNorm2d(w), nn.Conv2d(w, 3 * w, 1), nn.GELU(), nn.Conv2d(3 * w, w, 1))

        def forward(self, x):
            y = self.a(x)
            x = x + self.b(self.far(y) + self.near(y))
            return x + self.c(x)

    def __init__(self):
        super().__init__()
        parts, c = [nn.Conv2d(3, 48, 4, 4)], 48
        for size in (31, 13, 7):
            parts += [LargeKernels.Block(c, size), nn.Conv2d(c, 2 * c, 2, 2)]
            c *= 2
        self.parts, self.out = nn.Sequential(*parts), nn.Linear(c, 100)

    def forward(self, x):
        return self.out(self.parts(x).mean((2, 3)))


class Volume(nn.Module):
    """Segmentation of volumes: a three-dimensional U-Net with InstanceNormalization."""

    def __init__(self, w=16):
        super().__init__()

        def twice(a, b):
            return nn.Sequential(nn.Conv3d(a, b, 3, 1, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01),
                                 nn.Conv3d(b, b, 3, 1, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01))

        self.a, self.b, self.c = twice(1, w), twice(w, 2 * w), twice(2 * w, 4 * w)
        self.up_b, self.up_a = nn.ConvTranspose3d(4 * w, 2 * w, 2, 2), nn.ConvTranspose3d(2 * w, w, 2, 2)
        self.d, self.e, self.out = twice(4 * w, 2 * w), twice(2 * w, w), nn.Conv3d(w, 3, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool3d(a, 2))
        c = self.c(F.max_pool3d(b, 2))
        d = self.d(torch.cat((b, self.up_b(c)), 1))
        return self.out(self.e(torch.cat((a, self.up_a(d)), 1))).softmax(1)


class Towers(nn.Module):
    """Retrieval with two towers: the history of a user and the items, compared by cosine similarity."""

    def __init__(self, w=64, items=200000):
        super().__init__()
        self.items, self.users = nn.Embedding(items, w), nn.Embedding(50000, w)

        def tower(width):
            return nn.Sequential(nn.Linear(width, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                                 nn.Linear(128, w))

        self.of_user, self.of_item, self.look = tower(2 * w), tower(w), nn.Linear(w, 1)

    def forward(self, user, seen, candidates):
        past = self.items(seen)
        share = self.look(past).masked_fill((seen == 0)[..., None], -1e9).softmax(1)
        u = F.normalize(self.of_user(torch.cat((self.users(user), (past * share).sum(1)), 1)), dim=1)
        v = F.normalize(self.of_item(self.items(candidates)), dim=1)
        return (u @ v.T / 0.05).topk(20, dim=1)


class Translate(nn.Module):
    """A bidirectional GRU encodes; another GRU with attention over the encoder's outputs decodes some words."""

    def __init__(self, w=256, words=6000, steps=8):
        super().__init__()
        self.steps, self.from_words, self.to_words = steps, nn.Embedding(words, w), nn.Embedding(words, w)
        self.read, self.write = nn.GRU(w, w, bidirectional=True, batch_first=True), nn.GRUCell(3 * w, w)
        self.keys, self.query, self.score, self.out = nn.Linear(2 * w, w), nn.Linear(w, w), nn.Linear(w, 1), nn.Linear(3 * w, words)

    def forward(self, ids):
        read, state = self.read(self.from_words(ids))
        keys, h, word, made = self.keys(read), state[0], ids[:, 0] * 0, []
        for _ in range(self.steps):
            share = self.score(torch.tanh(keys + self.query(h)[:, None])).softmax(1)
            seen = (share * read).sum(1)
            h = self.write(torch.cat((self.to_words(word), seen), 1), h)
            made.append(self.out(torch.cat((h, seen), 1)))
            word = made[-1].argmax(1)
        return torch.stack(made, 1)


class Tabular(nn.Module):
    """Tabular data in several steps; each selects columns by a sparsemax mask, whose threshold needs a sort (as TabNet)."""

    class Gated(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.f, self.n = nn.Linear(a, 2 * b, bias=False), nn.BatchNorm1d(2 * b)

        def forward(self, x):
            return F.glu(self.n(self.f(x)), dim=1)

    def __init__(self, columns=100, w=64, steps=4):
        super().__init__()
        self.norm, self.shared = nn.BatchNorm1d(columns), Tabular.Gated(columns, w)
        self.own = nn.ModuleList(Tabular.Gated(w, w) for _ in range(steps))
        self.look = nn.ModuleList(nn.Sequential(nn.Linear(w // 2, columns), nn.BatchNorm1d(columns)) for _ in range(steps))
        self.out, self.w = nn.Linear(w // 2, 10), w
        self.register_buffer("place", torch.arange(1, columns + 1, dtype=torch.float32))

    def sparse(self, x):
        sorted_, _ = x.sort(dim=1, descending=True)
        total = sorted_.cumsum(1) - 1
        count = (self.place * sorted_ > total).sum(1, keepdim=True)
        return (x - total.gather(1, count - 1) / count).clamp(min=0)

    def forward(self, x):
        x = self.norm(x)
        y, left, sums = self.shared(x), torch.ones_like(x), 0
        for own, look in zip(self.own, self.look):
            mask = self.sparse(look(y[:, self.w // 2:]) * left)
            left = left * (1.3 - mask)
            y = self.shared(mask * x)
            y = (y + own(y)) * math.sqrt(0.5)
            sums = sums + y[:, :self.w // 2].relu()
        return self.out(sums)


class Heads(nn.Module):
    """Single-stage detection: a feature pyramid, and convolutional heads that all levels share."""

    def __init__(self, w=64):
        super().__init__()

        def part(a, b, stride):
            return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())

        self.a, self.b, self.c = nn.Sequential(part(3, 32, 2), part(32, 64, 2), part(64, 64, 2)), part(64, 128, 2), part(128, 256, 2)
        self.flat = nn.ModuleList(nn.Conv2d(i, w, 1) for i in (64, 128, 256))

        def tower():
            return nn.Sequential(*(nn.Sequential(nn.Conv2d(w, w, 3, 1, 1), nn.GroupNorm(8, w), nn.ReLU()) for _ in range(3)))

        self.classes, self.boxes = tower(), tower()
        self.to_class, self.to_box, self.to_middle = nn.Conv2d(w, 20, 3, 1, 1), nn.Conv2d(w, 4, 3, 1, 1), nn.Conv2d(w, 1, 3, 1, 1)

    def forward(self, x):
        levels = [self.a(x)]
        levels += [self.b(levels[0])]
        levels += [self.c(levels[1])]
        flat = [f(l) for f, l in zip(self.flat, levels)]
        for i in (1, 0):
            flat[i] = flat[i] + F.interpolate(flat[i + 1], scale_factor=2, mode="nearest")
        out = []
        for level in flat:
            a, b = self.classes(level), self.boxes(level)
            score = self.to_class(a).sigmoid() * self.to_middle(b).sigmoid()
            out.append(torch.cat((score, self.to_box(b).exp()), 1).flatten(2))
        every = torch.cat(out, 2)
        best, at = every[:, :20].amax(1).topk(100, dim=1)
        return best, every.gather(2, at[:, None].expand(-1, 24, -1))


class Deformable(nn.Module):
    """Deformable attention (as Deformable DETR): samples a few learned positions of each level with GridSample."""

    def __init__(self, w=128, heads=4, points=4, sizes=((24, 32), (12, 16))):
        super().__init__()
        self.heads, self.points, self.sizes = heads, points, sizes
        self.value, self.out = nn.Linear(w, w), nn.Linear(w, w)
        self.where = nn.Linear(w, heads * len(sizes) * points * 2)
        self.share = nn.Linear(w, heads * len(sizes) * points)

    def forward(self, x, at, *levels):
        b, n, w = x.shape
        each = w // self.heads
        v = self.value(torch.cat([l.flatten(2) for l in levels], 2).transpose(1, 2)).view(b, -1, self.heads, each)
        place = self.where(x).view(b, n, self.heads, len(self.sizes), self.points, 2)
        share = self.share(x).view(b, n, self.heads, -1).softmax(-1).transpose(1, 2).reshape(b * self.heads, 1, n, -1)
        out = []
        for i, (part, (h, width)) in enumerate(zip(v.split([h * k for h, k in self.sizes], 1), self.sizes)):
            grid = 2 * (at[:, :, None, None] + place[:, :, :, i] / torch.tensor([float(width), float(h)])) - 1
            plane = part.flatten(2).transpose(1, 2).reshape(b * self.heads, each, h, width)
            out.append(F.grid_sample(plane, grid.transpose(1, 2).flatten(0, 1), align_corners=False))
        return self.out((torch.cat(out, -1) * share).sum(-1).view(b, w, n).transpose(1, 2))


class Modulated(nn.Module):
    """Images from noise: convolutions with weights modulated by the noise, one group per image (as StyleGAN 2)."""

    def __init__(self, w=64):
        super().__init__()
        self.map = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(w, w), nn.LeakyReLU(0.2))))
        self.start, self.rgb = nn.Parameter(torch.rand(1, w, 8, 8)), nn.Conv2d(w, 3, 1)
        self.weights = nn.ParameterList(nn.Parameter(torch.rand(w, w, 3, 3) - 0.5) for _ in range(4))
        self.styles = nn.ModuleList(nn.Linear(w, w) for _ in range(4))
        line = torch.tensor([1.0, 3.0, 3.0, 1.0])
        self.register_buffer("blur", (line[:, None] * line / 16)[None, None].expand(w, 1, 4, 4).contiguous())
        self.w = w

    def forward(self, z):
        style, b, w = self.map(z), z.shape[0], self.w
        x, size = self.start.repeat(b, 1, 1, 1), 8
        for i, (weight, by) in enumerate(zip(self.weights, self.styles)):
            if i:
                x = F.pad(x.reshape(b * w, 1, size, 1, size, 1), [0, 1, 0, 0, 0, 1]).reshape(b, w, 2 * size, 2 * size)
                x, size = F.conv2d(F.pad(x, [2, 1, 2, 1]), self.blur, groups=w), 2 * size
            k = weight[None] * (by(style) + 1)[:, None, :, None, None]
            k = k * torch.rsqrt(k.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
            x = F.conv2d(x.reshape(1, b * w, size, size), k.reshape(2 * w, w, 3, 3), padding=1, groups=2).reshape(b, w, size, size)
            x = F.leaky_relu(x, 0.2)
        return self.rgb(x).tanh()


class Crosses(nn.Module):
    """Feature crosses between embedded columns of a table (as DCN and factorization machines)."""

    def __init__(self, fields=20, rows=1000, w=16):
        super().__init__()
        n = fields * w
        self.words, self.out = nn.Embedding(fields * rows, w), nn.Linear(n, 1)
        self.look = nn.MultiheadAttention(w, 2, batch_first=True)
        self.by = nn.ParameterList(nn.Parameter(torch.rand(n, 1) / n) for _ in range(3))
        self.bias = nn.ParameterList(nn.Parameter(torch.rand(n, 1)) for _ in range(3))
        self.register_buffer("start", torch.arange(fields) * rows)

    def forward(self, ids):
        e = self.words(ids + self.start)
        pairs = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(1, keepdim=True)
        first = (e + self.look(e, e, e)[0]).flatten(1)[:, :, None]
        x = first
        for by, bias in zip(self.by, self.bias):
            x = first @ (x.transpose(1, 2) @ by) + bias + x
        return torch.sigmoid(self.out(x.squeeze(-1)) + pairs)


NETWORKS = dict(
    squeezenet1_1=classify("squeezenet1_1"), shufflenet_v2_x1_0=classify("shufflenet_v2_x1_0"), mnasnet1_0=classify("mnasnet1_0"),
    googlenet=classify("googlenet", init_weights=False), inception_v3=classify("inception_v3", 299, init_weights=False),
    regnet_y_400mf=classify("regnet_y_400mf"), efficientnet_v2_s=classify("efficientnet_v2_s"),
    convnext_small=classify("convnext_small"), densenet121=classify("densenet121"), resnext50=classify("resnext50_32x4d"),
    vgg11=classify("vgg11"), deeplabv3_mobilenet=segment("deeplabv3_mobilenet_v3_large"), fcn_resnet50=segment("fcn_resnet50", 160),
    fasterrcnn_mobilenet=detect("fasterrcnn_mobilenet_v3_large_320_fpn"), r3d_18=video("r3d_18"), mobilenet_v2=classify("mobilenet_v2"),
    swin_v2_t=classify("swin_v2_t", 256), maxvit_t=classify("maxvit_t"),
    wave=lambda: (Wave(), (torch.rand(1, 1, 16000),)), conformer=lambda: (Conformer(), (torch.rand(1, 400, 80),)),
    diffusion=lambda: (Diffusion(), (torch.rand(1, 4, 32, 32), torch.tensor([500]))),
    graph=lambda: (Graph(), (torch.rand(2000, 64), torch.randint(0, 2000, (2, 10000)))),
    recommender=lambda: (Recommender(), (torch.rand(64, 13), torch.randint(0, 20000, (64, 16, 4)))),
    tagger=lambda: (Tagger(), (torch.randint(0, 10000, (1, 64)),)),
    temporal=lambda: (Temporal(), (torch.rand(1, 16, 2000),)), points=lambda: (Points(), (torch.rand(1, 3, 512),)),
    vocoder=lambda: (Vocoder(), (torch.rand(1, 80, 64),)), style=lambda: (Style(), image(128)),
    rotary=lambda: (Rotary(), (torch.randint(0, 8000, (1, 64)),)), detector=lambda: (Detector(), image(320)),
    forecast=lambda: (Forecast(), (torch.rand(1, 512, 7),)), mixer=lambda: (Mixer(), image()),
    separator=lambda: (Separator(), (torch.rand(1, 1, 16000),)),
    experts=lambda: (Experts(), (torch.randint(0, 8000, (1, 64)),)), large_kernels=lambda: (LargeKernels(), image()),
    volume=lambda: (Volume(), (torch.rand(1, 1, 24, 48, 48),)),
    towers=lambda: (Towers(), (torch.randint(0, 50000, (8,)), torch.randint(0, 200000, (8, 50)), torch.randint(0, 200000, (512,)))),
    translate=lambda: (Translate(), (torch.randint(0, 6000, (1, 24)),)), tabular=lambda: (Tabular(), (torch.rand(256, 100),)),
    heads=lambda: (Heads(), image(256)), r2plus1d_18=video("r2plus1d_18"), s3d=lambda: (
        torchvision.models.video.s3d(weights=None), (torch.rand(1, 3, 14, 224, 224),)),
    fcos_resnet50=detect("fcos_resnet50_fpn", 224), maskrcnn_resnet50=detect("maskrcnn_resnet50_fpn", 224),
    keypointrcnn_resnet50=detect("keypointrcnn_resnet50_fpn", 224), modulated=lambda: (Modulated(), (torch.rand(2, 64),)),
    deformable=lambda: (Deformable(), (torch.rand(1, 300, 128), torch.rand(1, 300, 2), torch.rand(1, 128, 24, 32), torch.rand(1, 128, 12, 16))),
    crosses=lambda: (Crosses(), (torch.randint(0, 1000, (64, 20)),)))


def export(name, make, folder):
    torch.manual_seed(7)
    model, inputs = make()
    model.eval()
    path = os.path.join(folder, name + ".onnx")
    torch.onnx.export(model, inputs, path, opset_version=16)
    print("%-24s %8.1f MB" % (name, os.path.getsize(path) / 1e6), flush=True)


def main(networks, usage):
    if len(sys.argv) < 2:
        sys.exit(usage)
    os.makedirs(sys.argv[1], exist_ok=True)
    torch.set_num_threads(1)
    for name in sys.argv[2:] or networks:
        try:
            export(name, networks[name], sys.argv[1])
        except Exception as problem:
            print("%-24s left out: %s" % (name, str(problem).splitlines()[0][:200]), flush=True)


if __name__ == "__main__":
    main(NETWORKS, __doc__)
