#!/usr/bin/env python3
"""large.py FILE [--megabytes N] [--kind decoder|convolutions|recurrent]: a network of random weights of a given size, stored
in FILE.data next to it, for measuring how much memory commands take (bench/large.sh).

A decoder has an embedding, blocks of attention and two matrix products with Gelu in between, and a final product with the
vocabulary; the convolutions alternate between 3x3 and 1x1; the recurrent network is a stack of LSTMs.
"""
import argparse

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

LENGTH, WIDTH, HEADS, VOCABULARY = 16, 2048, 16, 16384


class Network:
    def __init__(self, path):
        self.data = open(path + ".data", "wb")
        self.location = path.rsplit("/", 1)[-1] + ".data"
        self.random = numpy.random.default_rng(0)
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, *shape, scale=None):
        """Returns the name of a new weight; writes its data to the file, some rows at a time."""
        name = "w%d" % len(self.weights)
        scale = scale or 1 / numpy.sqrt(numpy.prod(shape[1:] if len(shape) > 2 else shape[:1]))
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        self.data.seek(-self.data.tell() % 4096, 1)
        size = 4 * int(numpy.prod(shape))
        for key, value in (("location", self.location), ("offset", self.data.tell()), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        for _ in range(shape[0]):
            row = self.random.standard_normal(shape[1:], dtype=numpy.float32) * numpy.float32(scale)
            self.data.write(row.tobytes())
        self.weights.append(tensor)
        return name

    def constant(self, values):
        name = "c%d" % len(self.weights)
        self.weights.append(numpy_helper.from_array(numpy.asarray(values), name))
        return name

    def node(self, op, *inputs, outputs=1, **attributes):
        names = ["v%d" % (self.count + i) for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(op, inputs, names, name="n%d_%s" % (len(self.nodes), op), **attributes))
        return names[0]

    def megabytes(self):
        return self.data.tell() >> 20

    def save(self, path, inputs, output, shape):
        self.nodes[-1].output[0] = output
        graph = helper.make_graph(self.nodes, "large", inputs, [helper.make_tensor_value_info(output, 1, shape)],
                                  self.weights)
        with open(path, "wb") as f:
            f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                      ir_version=10).SerializeToString())
        self.data.close()


def normalized(net, x):
    ones = net.constant(numpy.ones(WIDTH, numpy.float32))
    return net.node("LayerNormalization", x, ones, net.constant(numpy.zeros(WIDTH, numpy.float32)))


def attention(net, x):
    split = net.constant(numpy.array([1, LENGTH, HEADS, WIDTH // HEADS], numpy.int64))
    joined = net.constant(numpy.array([1, LENGTH, WIDTH], numpy.int64))
    q, k, v = (net.node("Reshape", net.node("MatMul", x, net.weight(WIDTH, WIDTH)), split) for _ in range(3))
    q, v = (net.node("Transpose", part, perm=[0, 2, 1, 3]) for part in (q, v))
    scores = net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 3, 1]))
    scores = net.node("Mul", scores, net.constant(numpy.float32((WIDTH // HEADS) ** -0.5)))
    mixed = net.node("Transpose", net.node("MatMul", net.node("Softmax", scores), v), perm=[0, 2, 1, 3])
    return net.node("MatMul", net.node("Reshape", mixed, joined), net.weight(WIDTH, WIDTH))


def decoder(net, path, megabytes):
    x = net.node("Gather", net.weight(VOCABULARY, WIDTH, scale=1), "tokens")
    while net.megabytes() + VOCABULARY * WIDTH // (1 << 18) < megabytes:
        x = net.node("Add", x, attention(net, normalized(net, x)))
        up = net.node("MatMul", normalized(net, x), net.weight(WIDTH, 4 * WIDTH))
        up = net.node("Add", up, net.constant(numpy.zeros(4 * WIDTH, numpy.float32)))
        x = net.node("Add", x, net.node("MatMul", net.node("Gelu", up), net.weight(4 * WIDTH, WIDTH)))
    net.node("Gemm", net.node("Reshape", x, net.constant(numpy.array([LENGTH, WIDTH], numpy.int64))),
             net.weight(VOCABULARY, WIDTH), transB=1)
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, LENGTH])
    net.save(path, [tokens], "logits", [LENGTH, VOCABULARY])


def convolutions(net, path, megabytes):
    channels, x = 1024, net.node("Conv", "image", net.weight(1024, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    while net.megabytes() < megabytes:
        y = net.node("Relu", net.node("Conv", x, net.weight(channels, channels, 3, 3), pads=[1, 1, 1, 1]))
        x = net.node("Relu", net.node("Add", x, net.node("Conv", y, net.weight(channels, channels, 1, 1))))
    net.node("GlobalAveragePool", x)
    net.save(path, [helper.make_tensor_value_info("image", 1, [1, 3, 28, 28])], "features", [1, channels, 1, 1])


def recurrent(net, path, megabytes):
    hidden, x = 1024, "signal"
    while net.megabytes() < megabytes:
        y = net.node("LSTM", x, net.weight(1, 4 * hidden, hidden), net.weight(1, 4 * hidden, hidden), outputs=3,
                     hidden_size=hidden)
        x = net.node("Squeeze", y, net.constant(numpy.array([1], numpy.int64)))
    net.node("Identity", x)
    net.save(path, [helper.make_tensor_value_info("signal", 1, [8, 1, hidden])], "states", [8, 1, hidden])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--megabytes", type=int, default=1024)
    kinds = {"decoder": decoder, "convolutions": convolutions, "recurrent": recurrent}
    parser.add_argument("--kind", choices=sorted(kinds), default="decoder")
    options = parser.parse_args()
    net = Network(options.file)
    kinds[options.kind](net, options.file, options.megabytes)
    print("%s: %d MB of weights in %d nodes" % (options.file, net.megabytes() if not net.data.closed else
                                                sum(4 * int(numpy.prod(w.dims)) for w in net.weights) >> 20,
                                                len(net.nodes)))


if __name__ == "__main__":
    main()
