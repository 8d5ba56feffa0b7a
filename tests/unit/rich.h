/* rich.h - a small model with many features, for tests that apply everything to it. */
#ifndef TESTS_RICH_H
#define TESTS_RICH_H

/* Control flow, a function, symbols, text, constants to fold, a doc string and metadata. */
static const char rich_model[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"f\" : 1], metadata_props: [\"k\": \"v\"], doc_string: \"d\">\n"
    "g (float[N, 2] x, bool c) => (float[?, ?] y, seq(float[?, ?]) s)\n"
    "<float[2] w = {1, 2}, int64[2] shape = {2, -1}, int64 m = {3}, bool t = {1}> {\n"
    "  # a remark\n"
    "  a = Add(x, w)\n"
    "  two = Constant<value = int64[1] {2}>()\n"
    "  three = Add(two, two)\n"
    "  b = f.Twice<scale = 3.0>(a)\n"
    "  r = Reshape(b, shape)\n"
    "  q = If(c)<then_branch = p () => (u) { u = Relu(r) }, else_branch = n () => (v) { v = Neg(r) }>\n"
    "  e = SequenceEmpty()\n"
    "  y, s = Loop(m, t, q, e)<body = l (int64 i, bool cc, float[?, ?] z, seq(float[?, ?]) l) =>\n"
    "                           (bool co, float[?, ?] zo, seq(float[?, ?]) lo) {\n"
    "    co = Identity(cc)\n"
    "    zo = MatMul(z, z)\n"
    "    lo = SequenceInsert(l, zo)\n"
    "  }>\n"
    "}\n"
    "<opset_import: [\"\" : 21], domain: \"f\">\n"
    "Twice <scale> (x) => (y) { k = Constant<value_float: float = @scale>() h = Mul(x, k) y = Add(h, h) }\n";

#endif
