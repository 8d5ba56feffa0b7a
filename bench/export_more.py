#!/usr/bin/env python3
"""export_more.py FOLDER [NAME...]: more networks of many kinds as ONNX files for networks.sh, exported as by export.py.

They were not looked at while kernels were tuned. Scales and means of BatchNormalization are random, so that they differ.
"""
import math

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from export import Transformer, classify, detect, image, main, segment, video

R = torch.rand


def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


class MHA(nn.Module):
    """Attention with separate projections, over the tokens or a context, with cached keys and values."""

    def __init__(self, w, h, kw=None, bias=True):
        super().__init__()
        self.h = h
        self.q = nn.Linear(w, w, bias)
        self.k = nn.Linear(kw or w, w, bias)
        self.v = nn.Linear(kw or w, w, bias)
        self.o = nn.Linear(w, w, bias)

    def split(self, x):
        return x.view(x.shape[0], -1, self.h, x.shape[-1] // self.h).permute(0, 2, 1, 3)

    def forward(self, x, m=None, ctx=None, past=None, scale=True):
        c = x if ctx is None else ctx
        q, k, v = (self.split(self.q(x)), self.split(self.k(c)), self.split(self.v(c)))
        if past is not None:
            k, v = (torch.cat((past[0], k), 2), torch.cat((past[1], v), 2))
        a = torch.matmul(q, k.transpose(-1, -2))
        if scale:
            a = a / math.sqrt(q.shape[-1])
        if m is not None:
            a = a + m
        y = torch.matmul(a.softmax(-1), v).permute(0, 2, 1, 3).contiguous()
        return (self.o(y.view(y.shape[0], -1, x.shape[-1])), k, v)


class WhisperEncoder(nn.Module):
    """Convolutions over a spectrogram, then a transformer (as Whisper)."""

    def __init__(self, w=256, h=4, n=4):
        super().__init__()
        self.a = nn.Conv1d(80, w, 3, 1, 1)
        self.b = nn.Conv1d(w, w, 3, 2, 1)
        self.pos = nn.Parameter(R(750, w) * 0.1)
        self.l = nn.ModuleList((nn.ModuleList((nn.LayerNorm(w), MHA(w, h), nn.LayerNorm(w), nn.Linear(w, 4 * w),
                                               nn.Linear(4 * w, w))) for _ in range(n)))
        self.n = nn.LayerNorm(w)

    def forward(self, x):
        x = F.gelu(self.b(F.gelu(self.a(x)))).permute(0, 2, 1) + self.pos
        for n, a, m, f, g in self.l:
            x = x + a(n(x))[0]
            x = x + g(F.gelu(f(m(x))))
        return self.n(x)


class WhisperStep(nn.Module):
    """A decoder step with cached keys and values, and attention over the encoder (as Whisper)."""

    def __init__(self, w=256, h=4, n=4):
        super().__init__()
        self.e = nn.Embedding(10000, w)
        self.pos = nn.Parameter(R(448, w) * 0.1)
        self.l = nn.ModuleList((nn.ModuleList((nn.LayerNorm(w), MHA(w, h), nn.LayerNorm(w), MHA(w, h), nn.LayerNorm(w),
                                               nn.Linear(w, 4 * w), nn.Linear(4 * w, w))) for _ in range(n)))
        self.n = nn.LayerNorm(w)

    def forward(self, ids, ctx, *past):
        p = past[0].shape[2]
        x = self.e(ids) + self.pos[p:p + ids.shape[1]]
        out = []
        for i, (n, a, n2, c, m, f, g) in enumerate(self.l):
            y, k, v = a(n(x), past=past[2 * i:2 * i + 2])
            x = x + y
            out += [k, v]
            x = x + c(n2(x), ctx=ctx)[0]
            x = x + g(F.gelu(f(m(x))))
        return (self.n(x) @ self.e.weight.t(), *out)


class RMS(nn.Module):
    """Scales tokens by the root of their mean square."""

    def __init__(self, w):
        super().__init__()
        self.w = nn.Parameter(torch.ones(w))

    def forward(self, x):
        return self.w * (x.to(torch.float32) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-06))


class T5Encoder(nn.Module):
    """Relative positions in buckets, no scale of attention, gated layers (as T5)."""

    def __init__(self, w=384, h=6, n=6):
        super().__init__()
        self.e = nn.Embedding(8000, w)
        self.bias = nn.Embedding(32, h)
        self.l = nn.ModuleList((nn.ModuleList((RMS(w), MHA(w, h, bias=False), RMS(w), nn.Linear(w, 1024, False),
                                               nn.Linear(w, 1024, False), nn.Linear(1024, w, False))) for _ in range(n)))
        self.n = RMS(w)

    def buckets(self, t):
        d = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        r = (d > 0).to(torch.long) * 16
        d = d.abs()
        small = d < 8
        big = torch.min(8 + (torch.log(d.float() / 8) / math.log(16) * 8).to(torch.long), torch.full_like(d, 15))
        return r + torch.where(small, d, big)

    def forward(self, ids, mask):
        x = self.e(ids)
        b = self.bias(self.buckets(ids.shape[1])).permute(2, 0,
                                                          1).unsqueeze(0) + (1.0 - mask[:, None, None,
                                                                                        :].to(torch.float32)) * -3.4028e+38
        for n, a, m, f, g, o in self.l:
            x = x + a(n(x), b, scale=False)[0]
            y = m(x)
            x = x + o(0.5 * f(y) * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (f(y) + 0.044715 * torch.pow(f(y), 3.0)))) * g(y))
        return self.n(x)


class MiniLM(nn.Module):
    """Sentence embedding: BERT, the mean over the tokens of the mask, normalization."""

    def __init__(self, w=384, h=12, n=6):
        super().__init__()
        self.e, self.t, self.p = (nn.Embedding(8000, w), nn.Embedding(4, w), nn.Embedding(512, w))
        self.n = nn.LayerNorm(w)
        self.register_buffer("ids", torch.arange(512)[None])
        self.l = nn.ModuleList((nn.ModuleList((MHA(w, h), nn.LayerNorm(w), nn.Linear(w, 4 * w), nn.Linear(4 * w, w),
                                               nn.LayerNorm(w))) for _ in range(n)))

    def forward(self, ids, mask, kinds):
        x = self.n(self.e(ids) + self.t(kinds) + self.p(self.ids[:, :ids.shape[1]]))
        m = (1.0 - mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        for a, n, f, g, k in self.l:
            x = n(x + a(x, m)[0])
            x = k(x + g(F.gelu(f(x))))
        u = mask.unsqueeze(-1).expand(x.size()).float()
        return F.normalize(torch.sum(x * u, 1) / torch.clamp(u.sum(1), min=1e-09), p=2, dim=1)


class GQA(nn.Module):
    """A decoder with rotary embeddings, keys and values shared by groups of heads, and a cache (as Llama 3 and Qwen)."""

    def __init__(self, w=512, h=8, g=2, n=4, words=8000):
        super().__init__()
        self.h, self.g, self.d = (h, g, w // h)
        self.e = nn.Embedding(words, w)
        self.out = nn.Linear(w, words, False)
        self.l = nn.ModuleList((nn.ModuleList((RMS(w), nn.Linear(w, w, True), nn.Linear(w, self.d * g, True),
                                               nn.Linear(w, self.d * g, True), nn.Linear(w, w, False), RMS(w),
                                               nn.Linear(w, 1408, False), nn.Linear(w, 1408, False),
                                               nn.Linear(1408, w, False))) for _ in range(n)))
        self.n = RMS(w)
        self.register_buffer("f", 1.0 / 10000 ** (torch.arange(0, self.d, 2).float() / self.d))

    def turn(self, x, c, t):
        return x * c + torch.cat((-x[..., self.d // 2:], x[..., :self.d // 2]), -1) * t

    def repeat(self, x):
        b, g, t, d = x.shape
        return x[:, :, None].expand(b, g, self.h // g, t, d).reshape(b, self.h, t, d)

    def forward(self, ids, mask, *past):
        b, t = ids.shape
        p = past[0].shape[2]
        at = torch.arange(p, p + t)[None]
        a = at[:, :, None].float() * self.f
        a = torch.cat((a, a), -1)[:, None]
        c, z = (a.cos(), a.sin())
        x = self.e(ids)
        out = []
        causal = torch.triu(torch.full((t, p + t), -1000000000.0), 1 + p)[None,
                                                                          None] + (1 - mask[:, None,
                                                                              None].float()) * -1000000000.0
        for i, (n, q, k, v, o, m, f, g, d) in enumerate(self.l):
            y = n(x)
            Q = self.turn(q(y).view(b, t, self.h, self.d).transpose(1, 2), c, z)
            K = self.turn(k(y).view(b, t, self.g, self.d).transpose(1, 2), c, z)
            V = v(y).view(b, t, self.g, self.d).transpose(1, 2)
            K, V = (torch.cat((past[2 * i], K), 2), torch.cat((past[2 * i + 1], V), 2))
            out += [K, V]
            w = torch.softmax(Q @ self.repeat(K).transpose(2, 3) / math.sqrt(self.d) + causal, -1, dtype=torch.float32)
            x = x + o((w @ self.repeat(V)).transpose(1, 2).reshape(b, t, -1))
            y = m(x)
            x = x + d(F.silu(f(y)) * g(y))
        return (self.out(self.n(x)), *out)


class SpeechGRU(nn.Module):
    """Convolutions over a spectrogram and bidirectional GRUs whose directions are added (as DeepSpeech 2)."""

    def __init__(self, w=256):
        super().__init__()
        self.c = nn.Sequential(nn.Conv2d(1, 32, (11, 41), (2, 2), (5, 20)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
                               nn.Conv2d(32, 32, (11, 21), (1, 2), (5, 10)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
        self.g = nn.ModuleList((nn.GRU(640 if not i else w, w, bidirectional=True, batch_first=True) for i in range(3)))
        self.n = nn.ModuleList((nn.BatchNorm1d(w) for i in range(3)))
        self.o = nn.Linear(w, 29)

    def forward(self, x):
        x = self.c(x[:, None])
        x = x.permute(0, 2, 1, 3).flatten(2)
        for g, n in zip(self.g, self.n):
            y, _ = g(x)
            x = y.view(y.shape[0], y.shape[1], 2, -1).sum(2)
            x = n(x.transpose(1, 2)).transpose(1, 2)
        return self.o(x).log_softmax(-1)


class CRNN(nn.Module):
    """Text recognition: convolutions down to one line, and a bidirectional LSTM."""

    def __init__(self):
        super().__init__()
        c = cbr
        self.c = nn.Sequential(c(1, 64), nn.MaxPool2d(2), c(64, 128), nn.MaxPool2d(2), c(128, 256), c(256, 256),
                               nn.MaxPool2d((2, 2), (2, 1), (0, 1)), c(256, 512), nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
                               nn.Conv2d(512, 512, 2), nn.ReLU())
        self.l = nn.LSTM(512, 256, 2, bidirectional=True)
        self.o = nn.Linear(512, 97)

    def forward(self, x):
        return self.o(self.l(self.c(x).squeeze(2).permute(2, 0, 1))[0]).log_softmax(-1)


class AttentionUNet(nn.Module):
    """Segmentation: a U-Net whose skip connections have gates."""

    def __init__(self, w=32):
        super().__init__()
        d = lambda i, o: nn.Sequential(cbr(i, o), cbr(o, o))
        self.d = nn.ModuleList((d(3, w), d(w, 2 * w), d(2 * w, 4 * w), d(4 * w, 8 * w)))
        self.u = nn.ModuleList((nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                                              cbr(w << i + 1, w << i)) for i in range(3)))
        self.m = nn.ModuleList((d(w << i + 1, w << i) for i in range(3)))
        self.g = nn.ModuleList((nn.ModuleList((nn.Sequential(nn.Conv2d(w << i, w << i >> 1, 1), nn.BatchNorm2d(w << i >> 1)),
                                               nn.Sequential(nn.Conv2d(w << i, w << i >> 1, 1), nn.BatchNorm2d(w << i >> 1)),
                                               nn.Sequential(nn.Conv2d(w << i >> 1, 1, 1), nn.BatchNorm2d(1),
                                                             nn.Sigmoid()))) for i in range(3)))
        self.o = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        k = []
        for i, d in enumerate(self.d):
            x = d(F.max_pool2d(x, 2) if i else x)
            k.append(x)
        for i in (2, 1, 0):
            u = self.u[i](x)
            a, b, p = self.g[i]
            x = self.m[i](torch.cat((k[i] * p(F.relu(a(u) + b(k[i]))), u), 1))
        return self.o(x)


class DCGAN(nn.Module):
    """Images from noise by transposed convolutions."""

    def __init__(self, w=64):
        super().__init__()
        t = lambda i, o, *a: nn.Sequential(nn.ConvTranspose2d(i, o, *a, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.m = nn.Sequential(t(100, 8 * w, 4, 1, 0), t(8 * w, 4 * w, 4, 2, 1), t(4 * w, 2 * w, 4, 2, 1), t(2 * w, w, 4, 2, 1),
                               nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.m(x)


class CenterNet(nn.Module):
    """Detection by key points: transposed convolutions, local maxima of a heat map, gathered boxes."""

    def __init__(self):
        super().__init__()
        r = torchvision.models.resnet18()
        self.b = nn.Sequential(*list(r.children())[:-2])
        t = lambda i, o: nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.u = nn.Sequential(t(512, 256), t(256, 128), t(128, 64))
        h = lambda o: nn.Sequential(nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, o, 1))
        self.h, self.w, self.r = (h(20), h(2), h(2))

    def forward(self, x):
        x = self.u(self.b(x))
        h = self.h(x).sigmoid()
        h = h * (F.max_pool2d(h, 3, 1, 1) == h).float()
        v, i = torch.topk(h.view(1, 20, -1), 50)
        v, j = torch.topk(v.view(1, -1), 50)
        i = i.view(1, -1).gather(1, j)
        c = j // 50
        g = lambda t: t.permute(0, 2, 3, 1).reshape(1, -1, 2).gather(1, i.unsqueeze(2).expand(1, 50, 2))
        xy = torch.stack(((i % 64).float(), (i // 64).float()), -1) + g(self.r(x))
        return (torch.cat((xy - g(self.w(x)) / 2, xy + g(self.w(x)) / 2), -1), v, c)


class DETR(nn.Module):
    """Detection by a transformer with learned queries."""

    def __init__(self, w=256):
        super().__init__()
        r = torchvision.models.resnet18()
        self.b = nn.Sequential(*list(r.children())[:-2])
        self.p = nn.Conv2d(512, w, 1)
        self.t = nn.Transformer(w, 8, 3, 3, 1024)
        self.q = nn.Parameter(R(50, w))
        self.r, self.c = (nn.Parameter(R(50, w // 2)), nn.Parameter(R(50, w // 2)))
        self.k, self.x = (nn.Linear(w, 92), nn.Linear(w, 4))

    def forward(self, x):
        h = self.p(self.b(x))
        H, W = h.shape[-2:]
        p = torch.cat((self.c[:W].unsqueeze(0).repeat(H, 1, 1), self.r[:H].unsqueeze(1).repeat(1, W, 1)), -1).flatten(0,
            1).unsqueeze(1)
        y = self.t(p + 0.1 * h.flatten(2).permute(2, 0, 1), self.q.unsqueeze(1))
        return (self.k(y), self.x(y).sigmoid())


class PointNet(nn.Module):
    """Segmentation of point clouds: learned transformations, maxima over all points."""

    class T(nn.Module):
        def __init__(self, k):
            super().__init__()
            l = lambda i, o: nn.Sequential(nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU())
            self.k = k
            self.c = nn.Sequential(l(k, 64), l(64, 128), l(128, 1024))
            self.f = nn.Sequential(nn.Linear(1024, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 256),
                                   nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, k * k))

        def forward(self, x):
            return self.f(torch.max(self.c(x), 2, keepdim=True)[0].view(-1, 1024)).view(-1, self.k, self.k) + torch.eye(self.k)

    def __init__(self):
        super().__init__()
        l = lambda i, o: nn.Sequential(nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU())
        self.t, self.u = (self.T(3), self.T(64))
        self.a, self.b, self.c = (l(3, 64), l(64, 128), l(128, 1024))
        self.h = nn.Sequential(l(1088, 512), l(512, 256), nn.Conv1d(256, 50, 1))

    def forward(self, x):
        x = self.a(torch.bmm(x, self.t(x.transpose(1, 2))).transpose(1, 2))
        p = torch.bmm(x.transpose(1, 2), self.u(x)).transpose(1, 2)
        g = torch.max(self.c(self.b(p)), 2, keepdim=True)[0]
        return self.h(torch.cat((g.repeat(1, 1, 1024), p), 1)).log_softmax(1)


class MelCNN(nn.Module):
    """Sound classification: spectrogram by a convolution, mel filters, depthwise separable convolutions (as YAMNet)."""

    def __init__(self):
        super().__init__()
        t = torch.arange(400).float()
        k = torch.arange(201).float()[:, None]
        w = torch.hann_window(400)
        self.register_buffer("f", torch.cat((torch.cos(2 * math.pi * k * t / 400) * w,
                                             -torch.sin(2 * math.pi * k * t / 400) * w))[:, None])
        self.register_buffer("mel", R(64, 201) * (R(64, 201) < 0.05))
        d = lambda i, o, st: nn.Sequential(nn.Conv2d(i, i, 3, st, 1, groups=i, bias=False), nn.BatchNorm2d(i), nn.ReLU6(),
                                           nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU6())
        self.c = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU6(), d(32, 64, 1), d(64, 128, 2), d(128, 128, 1),
                               d(128, 256, 2), d(256, 256, 1))
        self.o = nn.Linear(256, 521)

    def forward(self, x):
        y = F.conv1d(F.pad(x[:, None], (200, 200), mode="reflect"), self.f, stride=160)
        r, i = (y[:, :201], y[:, 201:])
        m = torch.matmul(self.mel, r * r + i * i)
        m = torch.log(torch.clamp(m, min=1e-05)).transpose(1, 2)[:, None]
        return self.o(self.c(m).mean((2, 3))).sigmoid()


class ArcFace(nn.Module):
    """Face embedding: BatchNormalization before convolutions, PReLU."""

    class B(nn.Module):
        def __init__(self, i, o, st):
            super().__init__()
            self.m = nn.Sequential(nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.PReLU(o),
                                   nn.Conv2d(o, o, 3, st, 1, bias=False), nn.BatchNorm2d(o))
            self.d = nn.Sequential(nn.Conv2d(i, o, 1, st, bias=False), nn.BatchNorm2d(o)) if st > 1 else nn.Identity()

        def forward(self, x):
            return self.m(x) + self.d(x)

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64))
        self.b = nn.Sequential(*(self.B(i, o, st) for i, o, st in ((64, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1),
                                                                   (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))))
        self.c = nn.Sequential(nn.BatchNorm2d(512), nn.Flatten(), nn.Linear(512 * 49, 512), nn.BatchNorm1d(512))

    def forward(self, x):
        return F.normalize(self.c(self.b(self.a(x))))


class NAFNet(nn.Module):
    """Image restoration: normalization over channels, products of halves, pixel shuffle."""

    class L(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.w, self.b = (nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c)))

        def forward(self, x):
            m = x.mean(1, keepdim=True)
            v = (x - m).pow(2).mean(1, keepdim=True)
            return self.w.view(1, -1, 1, 1) * ((x - m) / (v + 1e-06).sqrt()) + self.b.view(1, -1, 1, 1)

    class B(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.n, self.m = (NAFNet.L(c), NAFNet.L(c))
            self.a, self.d, self.o = (nn.Conv2d(c, 2 * c, 1), nn.Conv2d(2 * c, 2 * c, 3, 1, 1, groups=2 * c),
                                      nn.Conv2d(c, c, 1))
            self.s = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c, 1))
            self.f, self.g = (nn.Conv2d(c, 2 * c, 1), nn.Conv2d(c, c, 1))
            self.x, self.y = (nn.Parameter(R(1, c, 1, 1)), nn.Parameter(R(1, c, 1, 1)))

        def forward(self, i):
            a, b = self.d(self.a(self.n(i))).chunk(2, 1)
            x = a * b
            x = self.o(x * self.s(x))
            y = i + x * self.x
            a, b = self.f(self.m(y)).chunk(2, 1)
            return y + self.g(a * b) * self.y

    def __init__(self, w=16):
        super().__init__()
        B = NAFNet.B
        self.i, self.o = (nn.Conv2d(3, w, 3, 1, 1), nn.Conv2d(w, 3, 3, 1, 1))
        self.e = nn.ModuleList((B(w << i) for i in range(3)))
        self.d = nn.ModuleList((nn.Conv2d(w << i, w << i + 1, 2, 2) for i in range(3)))
        self.m = nn.Sequential(B(8 * w), B(8 * w))
        self.u = nn.ModuleList((nn.Sequential(nn.Conv2d(w << i + 1, w << i + 2, 1, bias=False),
                                              nn.PixelShuffle(2)) for i in range(3)))
        self.c = nn.ModuleList((B(w << i) for i in range(3)))

    def forward(self, x):
        y, k = (self.i(x), [])
        for e, d in zip(self.e, self.d):
            y = e(y)
            k.append(y)
            y = d(y)
        y = self.m(y)
        for i in (2, 1, 0):
            y = self.c[i](self.u[i](y) + k[i])
        return self.o(y) + x


class MobileViT(nn.Module):
    """Depthwise convolutions, and transformers over unfolded patches."""

    class V(nn.Module):
        def __init__(self, c, w, n):
            super().__init__()
            self.a = nn.Sequential(cbr(c, c, act=nn.SiLU), nn.Conv2d(c, w, 1, bias=False))
            self.t = Transformer(w, 4, n)
            self.n = nn.LayerNorm(w)
            self.p = cbr(w, c, 1, act=nn.SiLU)
            self.f = cbr(2 * c, c, act=nn.SiLU)

        def forward(self, x):
            y = self.a(x)
            b, c, h, w = y.shape
            y = y.reshape(b * c * h // 2, 2, w // 2, 2).transpose(1, 2).reshape(b, c, h * w // 4, 4)
            y = y.transpose(1, 3).reshape(b * 4, h * w // 4, c)
            y = self.n(self.t(y))
            y = y.view(b, 4, h * w // 4, c).transpose(1, 3).reshape(b * c * h // 2, w // 2, 2, 2)
            y = y.transpose(1, 2).reshape(b, c, h, w)
            return self.f(torch.cat((x, self.p(y)), 1))

    class M(nn.Module):
        def __init__(self, i, o, st):
            super().__init__()
            h = 4 * i
            self.m = nn.Sequential(cbr(i, h, 1, act=nn.SiLU), cbr(h, h, 3, st, h, act=nn.SiLU), nn.Conv2d(h, o, 1, bias=False),
                                   nn.BatchNorm2d(o))
            self.r = st == 1 and i == o

        def forward(self, x):
            return x + self.m(x) if self.r else self.m(x)

    def __init__(self):
        super().__init__()
        M, V = (self.M, self.V)
        self.m = nn.Sequential(cbr(3, 16, 3, 2, act=nn.SiLU), M(16, 32, 1), M(32, 64, 2), M(64, 64, 1), M(64, 96, 2),
                               V(96, 144, 2), M(96, 128, 2), V(128, 192, 4), M(128, 160, 2), V(160, 240, 3),
                               cbr(160, 640, 1, act=nn.SiLU))
        self.o = nn.Linear(640, 1000)

    def forward(self, x):
        return self.o(self.m(x).mean((-2, -1)))


class PoolFormer(nn.Module):
    """Pooling in place of attention, GroupNormalization of one group, scales per channel."""

    class B(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.n, self.m = (nn.GroupNorm(1, c), nn.GroupNorm(1, c))
            self.p = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
            self.f = nn.Sequential(nn.Conv2d(c, 4 * c, 1), nn.GELU(), nn.Conv2d(4 * c, c, 1))
            self.a, self.b = (nn.Parameter(R(c)), nn.Parameter(R(c)))

        def forward(self, x):
            y = self.n(x)
            x = x + self.a.unsqueeze(-1).unsqueeze(-1) * (self.p(y) - y)
            return x + self.b.unsqueeze(-1).unsqueeze(-1) * self.f(self.m(x))

    def __init__(self):
        super().__init__()
        l, i = ([], 3)
        for c, n, k, st in ((64, 2, 7, 4), (128, 2, 3, 2), (320, 6, 3, 2), (512, 2, 3, 2)):
            l += [nn.Conv2d(i, c, k, st, k // 2)] + [self.B(c) for _ in range(n)]
            i = c
        self.m = nn.Sequential(*l)
        self.n = nn.GroupNorm(1, 512)
        self.o = nn.Linear(512, 1000)

    def forward(self, x):
        return self.o(self.n(self.m(x)).mean((-2, -1)))


class GhostNet(nn.Module):
    """Half of the channels by cheap depthwise convolutions, squeeze and excitation."""

    class G(nn.Module):
        def __init__(self, i, o, act=True):
            super().__init__()
            a = nn.ReLU if act else nn.Identity
            self.a, self.b = (cbr(i, o // 2, 1, act=a), cbr(o // 2, o // 2, 3, 1, o // 2, act=a))

        def forward(self, x):
            y = self.a(x)
            return torch.cat((y, self.b(y)), 1)

    class SE(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a, self.b = (nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1))

        def forward(self, x):
            return x * F.hardsigmoid(self.b(F.relu(self.a(F.adaptive_avg_pool2d(x, 1)))))

    class B(nn.Module):
        def __init__(self, i, h, o, k, st, se):
            super().__init__()
            G = GhostNet.G
            self.m = nn.Sequential(G(i, h), nn.Sequential(nn.Conv2d(h, h, k, st, k // 2, groups=h, bias=False),
                                                          nn.BatchNorm2d(h)) if st > 1 else nn.Identity(),
                                   GhostNet.SE(h) if se else nn.Identity(), G(h, o, False))
            self.d = nn.Identity() if st == 1 and i == o else nn.Sequential(nn.Conv2d(i, i, k, st, k // 2, groups=i,
                                                                                      bias=False), nn.BatchNorm2d(i),
                                                                            nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o))

        def forward(self, x):
            return self.m(x) + self.d(x)

    def __init__(self):
        super().__init__()
        B = self.B
        self.m = nn.Sequential(cbr(3, 16, 3, 2), B(16, 16, 16, 3, 1, 0), B(16, 48, 24, 3, 2, 0), B(24, 72, 24, 3, 1, 0),
                               B(24, 72, 40, 5, 2, 1), B(40, 120, 40, 5, 1, 1), B(40, 240, 80, 3, 2, 0),
                               B(80, 200, 80, 3, 1, 0), B(80, 184, 80, 3, 1, 0), B(80, 480, 112, 3, 1, 1),
                               B(112, 672, 112, 3, 1, 1), B(112, 672, 160, 5, 2, 1), B(160, 960, 160, 5, 1, 1),
                               cbr(160, 960, 1))
        self.o = nn.Linear(960, 1000)

    def forward(self, x):
        return self.o(F.adaptive_avg_pool2d(self.m(x), 1).flatten(1))


class QuartzNet(nn.Module):
    """Speech: separable convolutions of wide kernels over time."""

    class B(nn.Module):
        def __init__(self, i, o, k, n):
            super().__init__()
            u = lambda a, b, r: nn.Sequential(nn.Conv1d(a, a, k, 1, k // 2, groups=a, bias=False),
                                              nn.Conv1d(a, b, 1, bias=False), nn.BatchNorm1d(b), *([nn.ReLU()] if r else []))
            self.m = nn.Sequential(*(u(i if not j else o, o, j < n - 1) for j in range(n)))
            self.r = nn.Sequential(nn.Conv1d(i, o, 1, bias=False), nn.BatchNorm1d(o))

        def forward(self, x):
            return F.relu(self.m(x) + self.r(x))

    def __init__(self):
        super().__init__()
        B = self.B
        self.m = nn.Sequential(nn.Conv1d(64, 64, 33, 2, 16, groups=64, bias=False), nn.Conv1d(64, 256, 1, bias=False),
                               nn.BatchNorm1d(256), nn.ReLU(), B(256, 256, 33, 3), B(256, 256, 39, 3), B(256, 512, 51, 3),
                               B(512, 512, 63, 2), nn.Conv1d(512, 512, 87, 1, 86, dilation=2, groups=512),
                               nn.Conv1d(512, 1024, 1), nn.ReLU(), nn.Conv1d(1024, 29, 1))

    def forward(self, x):
        return self.m(x).log_softmax(1)


class Mamba(nn.Module):
    """Selective state spaces: a causal convolution, a recurrence that is unrolled over time, gates."""

    def __init__(self, w=128, d=256, n=16):
        super().__init__()
        self.d, self.n = (d, n)
        self.l = nn.ModuleList((nn.ModuleList((RMS(w), nn.Linear(w, 2 * d, False), nn.Conv1d(d, d, 4, groups=d, padding=3),
                                               nn.Linear(d, 8 + 2 * n, False), nn.Linear(8, d),
                                               nn.Linear(d, w, False))) for _ in range(2)))
        self.A = nn.Parameter(torch.log(torch.arange(1, n + 1).float()).repeat(d, 1))
        self.D = nn.Parameter(torch.ones(d))
        self.z = nn.Linear(16, w)

    def forward(self, x, y):
        x = x + self.z(y)
        for n, i, c, p, dt, o in self.l:
            u, z = i(n(x)).chunk(2, -1)
            u = F.silu(c(u.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
            t, B, C = p(u).split((8, self.n, self.n), -1)
            t = F.softplus(dt(t))
            dA = torch.exp(t[..., None] * -torch.exp(self.A))
            dB = t[..., None] * B[:, :, None] * u[..., None]
            h = torch.zeros(1, self.d, self.n)
            ys = []
            for k in range(64):
                h = dA[:, k] * h + dB[:, k]
                ys.append((h * C[:, k, None]).sum(-1))
            x = x + o((torch.stack(ys, 1) + u * self.D) * F.silu(z))
        return x


class CBAM(nn.Module):
    """Channel and spatial attention, and convolutions that follow each other within a block (as Res2Net)."""

    class B(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.i, self.o = (cbr(c, c, 1), nn.Sequential(nn.Conv2d(c, c, 1, bias=False), nn.BatchNorm2d(c)))
            self.c = nn.ModuleList((cbr(c // 4, c // 4) for _ in range(3)))
            self.f = nn.Sequential(nn.Conv2d(c, c // 8, 1), nn.ReLU(), nn.Conv2d(c // 8, c, 1))
            self.s = nn.Conv2d(2, 1, 7, 1, 3, bias=False)

        def forward(self, x):
            p = torch.split(self.i(x), x.shape[1] // 4, 1)
            out, y = ([p[0]], 0)
            for c, q in zip(self.c, p[1:]):
                y = c(q + y)
                out.append(y)
            y = self.o(torch.cat(out, 1))
            y = y * (self.f(F.adaptive_avg_pool2d(y, 1)) + self.f(F.adaptive_max_pool2d(y, 1))).sigmoid()
            y = y * self.s(torch.cat((y.mean(1, keepdim=True), y.max(1, keepdim=True)[0]), 1)).sigmoid()
            return F.relu(x + y)

    def __init__(self):
        super().__init__()
        B = self.B
        self.m = nn.Sequential(cbr(3, 32, 7, 2), nn.MaxPool2d(3, 2, 1), B(32), cbr(32, 64, 3, 2), B(64), B(64),
                               cbr(64, 128, 3, 2), B(128), B(128), cbr(128, 256, 3, 2), B(256))
        self.o = nn.Linear(256, 1000)

    def forward(self, x):
        return self.o(self.m(x).mean((2, 3)))


class Flow(nn.Module):
    """Optical flow: correlations of all pairs of pixels, looked up in each step (as RAFT)."""

    def __init__(self):
        super().__init__()
        self.model = torchvision.models.optical_flow.raft_small()

    def forward(self, a, b):
        return self.model(a, b, num_flow_updates=4)[-1]


def varied(make):
    """The network that `make` makes, with random statistics."""

    def varied_network():
        model, inputs = make()
        for m in model.modules():
            if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
                m.running_mean.uniform_(-0.1, 0.1)
                m.running_var.uniform_(0.5, 1.5)
                nn.init.uniform_(m.weight, 0.5, 1.5)
                nn.init.uniform_(m.bias, -0.1, 0.1)
        return model, inputs

    return varied_network


def ids(*shape):
    return torch.randint(0, 4, shape)


def ones(*shape):
    return torch.ones(shape, dtype=torch.int64)


NETWORKS = {name: classify(name) for name in (
    "mobilenet_v3_small", "shufflenet_v2_x0_5", "shufflenet_v2_x2_0", "mnasnet0_5", "densenet169", "regnet_x_400mf", "regnet_y_3_2gf",
    "vgg16_bn", "alexnet", "wide_resnet50_2", "resnet34", "vit_b_32", "squeezenet1_0", "resnext101_32x8d")}
NETWORKS.update(
    efficientnet_b3=classify("efficientnet_b3", 300), efficientnet_b1_batch=lambda: (torchvision.models.efficientnet_b1(), image(160, 4)),
    ssd300_vgg16=detect("ssd300_vgg16", 300), retinanet_resnet50=detect("retinanet_resnet50_fpn", 224),
    deeplabv3_resnet50=segment("deeplabv3_resnet50", 160), mc3_18=video("mc3_18"),
    mvit_v1_b=lambda: (torchvision.models.video.mvit_v1_b(), (R(1, 3, 16, 224, 224),)), raft_small=lambda: (Flow(), image(128) * 2))
NETWORKS.update((name, varied(make)) for name, make in dict(
    whisper_encoder=lambda: (WhisperEncoder(), (R(1, 80, 1500),)),
    whisper_step=lambda: (WhisperStep(), (ids(1, 1), R(1, 300, 256), *(R(1, 4, 40, 64) for _ in range(8)))),
    t5_encoder=lambda: (T5Encoder(), (ids(1, 96), ones(1, 96))), minilm=lambda: (MiniLM(), (ids(2, 64), ones(2, 64), 0 * ones(2, 64))),
    gqa_step=lambda: (GQA(), (ids(1, 1), ones(1, 201), *(R(1, 2, 200, 64) for _ in range(8)))),
    gqa_prompt=lambda: (GQA(), (ids(1, 64), ones(1, 80), *(R(1, 2, 16, 64) for _ in range(8)))),
    speech_gru=lambda: (SpeechGRU(), (R(1, 300, 80),)), crnn=lambda: (CRNN(), (R(1, 1, 32, 320),)),
    attention_unet=lambda: (AttentionUNet(), image(128)), dcgan=lambda: (DCGAN(), (R(4, 100, 1, 1),)),
    centernet=lambda: (CenterNet(), image(256)), detr=lambda: (DETR(), image()), pointnet=lambda: (PointNet(), (R(1, 1024, 3),)),
    mel_cnn=lambda: (MelCNN(), (R(1, 16000),)), arcface=lambda: (ArcFace(), image(112)), nafnet=lambda: (NAFNet(), image(192)),
    mobilevit=lambda: (MobileViT(), image(256)), poolformer=lambda: (PoolFormer(), image()), ghostnet=lambda: (GhostNet(), image()),
    quartznet=lambda: (QuartzNet(), (R(1, 64, 800),)), mamba=lambda: (Mamba(), (R(1, 64, 128), R(1, 64, 16))),
    cbam=lambda: (CBAM(), image())).items())

if __name__ == "__main__":
    main(NETWORKS, __doc__)
