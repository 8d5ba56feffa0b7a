/* test_gen_equal.c - equal channels, rows and elements give equal bits: sums do not depend on the tile, strip or
 * remainder of a vector that an element falls into. For each kind of node, sizes around those of vectors and tiles, and
 * each instruction set. ONX_GEN_ALL=1 tries all sizes, which takes minutes, otherwise a part of them is drawn;
 * ONX_GEN_ONLY=text tests the kinds whose name has the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include "base/base.h"
#include "kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 5, TEXT = 1 << 21, DRAWN = 7 /* one of so many sizes is in the part that is drawn */ };

/* A kind of node. In shapes and attributes the letters stand for sizes: N is the one whose elements are equal and that
 * is tried from 1 on; K, H and W are others. An axis in lower case (n) has N elements that are all equal. */
static const struct {
    const char *name, *type, *inputs[OPERANDS], *node, *out; /* out: the axes of the result, n where equal */
    uint32_t constants;                                      /* a bit for each input that is an initializer, if asked */
} kinds[] = {
    { "Conv of pixels", "float", { "1,K,H,W", "n,K,1,1" }, "y = Conv (x0, x1)", "1,n,H,W", 2 },
    { "Conv of equal pixels", "float", { "1,K,1,n", "M,K,1,1" }, "y = Conv (x0, x1)", "1,M,1,n", 2 },
    { "Conv 3x3", "float", { "1,K,H,W", "n,K,3,3" }, "y = Conv <pads = [1, 1, 1, 1]> (x0, x1)", "1,n,H,W", 2 },
    { "Conv with a bias",
      "float",
      { "1,K,H,W", "n,K,3,3", "n" },
      "c = Conv <pads = [1, 1, 1, 1]> (x0, x1, x2) y = Relu (c)",
      "1,n,H,W",
      6 },
    { "Conv 3x3 with strides",
      "float",
      { "2,K,H,W", "n,K,3,3" },
      "y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x0, x1)",
      "2,n,-,-",
      2 },
    { "Conv 5x5 with holes",
      "float",
      { "1,K,H,W", "n,K,3,3" },
      "y = Conv <pads = [2, 2, 2, 2], dilations = [2, 2]> (x0, x1)",
      "1,n,H,W",
      2 },
    { "Conv of three channels",
      "float",
      { "1,3,H,W", "n,3,7,7" },
      "y = Conv <pads = [3, 3, 3, 3], strides = [2, 2]> (x0, x1)",
      "1,n,-,-",
      2 },
    { "Conv of one channel", "float", { "1,1,H,W", "n,1,3,3" }, "y = Conv (x0, x1)", "1,n,-,-", 2 },
    { "Conv of lines", "float", { "1,K,W", "n,K,3" }, "y = Conv <pads = [1, 1]> (x0, x1)", "1,n,W", 2 },
    { "Conv of volumes",
      "float",
      { "1,K,3,H,W", "n,K,1,3,3" },
      "y = Conv <pads = [0, 1, 1, 0, 1, 1]> (x0, x1)",
      "1,n,3,H,W",
      2 },
    { "Conv depthwise",
      "float",
      { "1,n,H,W", "n,1,3,3" },
      "y = Conv <pads = [1, 1, 1, 1], group = $N> (x0, x1)",
      "1,n,H,W",
      2 },
    { "Conv depthwise of lines",
      "float",
      { "1,n,W", "n,1,3" },
      "y = Conv <pads = [1, 1], group = $N> (x0, x1)",
      "1,n,W",
      2 },
    { "Conv of a whole image", "float", { "1,K,4,4", "n,K,4,4" }, "y = Conv (x0, x1)", "1,n,1,1", 2 },
    { "ConvTranspose",
      "float",
      { "1,K,H,W", "K,n,2,2" },
      "y = ConvTranspose <strides = [2, 2]> (x0, x1)",
      "1,n,-,-",
      2 },
    { "Conv and a global pool",
      "float",
      { "1,K,H,W", "n,K,1,1" },
      "c = Conv (x0, x1) y = GlobalAveragePool (c)",
      "1,n,1,1",
      2 },
    { "Conv and ReduceMean",
      "float",
      { "1,K,H,W", "n,K,1,1" },
      "c = Conv (x0, x1) y = ReduceMean <axes = [2, 3]> (c)",
      "1,n,1,1",
      2 },
    { "Conv and AveragePool",
      "float",
      { "1,K,H,W", "n,K,1,1" },
      "c = Conv (x0, x1) y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (c)",
      "1,n,H,W",
      2 },
    { "Conv and InstanceNormalization",
      "float",
      { "1,K,H,W", "n,K,1,1", "n", "n" },
      "c = Conv (x0, x1) y = InstanceNormalization (c, x2, x3)",
      "1,n,H,W",
      14 },
    { "Conv and Softmax over pixels",
      "float",
      { "1,K,H,W", "n,K,1,1" },
      "c = Conv (x0, x1) y = Softmax <axis = 3> (c)",
      "1,n,H,W",
      2 },
    { "MatMul of columns", "float", { "H,K", "K,n" }, "y = MatMul (x0, x1)", "H,n", 2 },
    { "MatMul of rows", "float", { "n,K", "K,M" }, "y = MatMul (x0, x1)", "n,M", 2 },
    { "MatMul of a row", "float", { "1,K", "K,n" }, "y = MatMul (x0, x1)", "1,n", 2 },
    { "MatMul of batches", "float", { "n,H,K", "n,K,M" }, "y = MatMul (x0, x1)", "n,H,M", 2 },
    { "MatMul of doubles", "double", { "H,K", "K,n" }, "y = MatMul (x0, x1)", "H,n", 2 },
    { "MatMul of halves", "float16", { "H,K", "K,n" }, "y = MatMul (x0, x1)", "H,n", 2 },
    { "MatMul of rows of halves", "float16", { "n,K", "K,M" }, "y = MatMul (x0, x1)", "n,M", 2 },
    { "Gemm", "float", { "H,K", "n,K", "n" }, "y = Gemm <transB = 1, alpha = 0.5> (x0, x1, x2)", "H,n", 6 },
    { "Gemm of rows", "float", { "K,n", "K,M", "M" }, "y = Gemm <transA = 1> (x0, x1, x2)", "n,M", 6 },
    { "Gemm and Gelu", "float", { "H,K", "K,n", "n" }, "c = MatMul (x0, x1) d = Add (c, x2) y = Gelu (d)", "H,n", 6 },
    { "Einsum", "float", { "H,K", "n,K" }, "y = Einsum <equation = \"hk,nk->hn\"> (x0, x1)", "H,n", 2 },
    { "GlobalAveragePool", "float", { "1,n,H,W" }, "y = GlobalAveragePool (x0)", "1,n,1,1", 0 },
    { "GlobalLpPool", "float", { "1,n,H,W" }, "y = GlobalLpPool (x0)", "1,n,1,1", 0 },
    { "AveragePool",
      "float",
      { "1,n,H,W" },
      "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x0)",
      "1,n,H,W",
      0 },
    { "LpPool", "float", { "1,n,H,W" }, "y = LpPool <kernel_shape = [3, 2]> (x0)", "1,n,-,-", 0 },
    { "AveragePool of lines", "float", { "1,n,W" }, "y = AveragePool <kernel_shape = [3]> (x0)", "1,n,-", 0 },
    { "BatchNormalization",
      "float",
      { "1,n,H,W", "n", "n", "n", "n" },
      "v = Abs (x3) y = BatchNormalization (x0, x1, x2, x3, v)",
      "1,n,H,W",
      14 },
    { "InstanceNormalization",
      "float",
      { "1,n,H,W", "n", "n" },
      "y = InstanceNormalization (x0, x1, x2)",
      "1,n,H,W",
      6 },
    { "GroupNormalization",
      "float",
      { "1,n,H,W", "n", "n" },
      "y = GroupNormalization <num_groups = $N> (x0, x1, x2)",
      "1,n,H,W",
      6 },
    { "LayerNormalization", "float", { "n,K", "K", "K" }, "y = LayerNormalization (x0, x1, x2)", "n,K", 6 },
    { "LayerNormalization of halves", "float16", { "n,K", "K", "K" }, "y = LayerNormalization (x0, x1, x2)", "n,K", 6 },
    { "LpNormalization", "float", { "n,K" }, "y = LpNormalization (x0)", "n,K", 0 },
    { "LpNormalization of columns", "float", { "K,n" }, "y = LpNormalization <axis = 0> (x0)", "K,n", 0 },
    { "Softmax of rows", "float", { "n,K" }, "y = Softmax (x0)", "n,K", 0 },
    { "Softmax of a row", "float", { "H,n" }, "y = Softmax (x0)", "H,n", 0 },
    { "Softmax of columns", "float", { "K,n" }, "y = Softmax <axis = 0> (x0)", "K,n", 0 },
    { "Softmax of doubles", "double", { "n,K" }, "y = Softmax (x0)", "n,K", 0 },
    { "Softmax of halves", "float16", { "H,n" }, "y = Softmax (x0)", "H,n", 0 },
    { "LogSoftmax", "float", { "H,n" }, "y = LogSoftmax (x0)", "H,n", 0 },
    { "ReduceSum of rows", "float", { "n,K" }, "y = ReduceSum <keepdims = 0> (x0, axes)", "n", 0 },
    { "ReduceSum of columns", "float", { "K,n" }, "y = ReduceMean <axes = [0], keepdims = 0> (x0)", "n", 0 },
    { "ReduceL2", "float", { "H,n,K" }, "y = ReduceL2 <axes = [2], keepdims = 0> (x0)", "H,n", 0 },
    { "ReduceLogSumExp", "float", { "n,K" }, "y = ReduceLogSumExp <axes = [1], keepdims = 0> (x0)", "n", 0 },
    { "ReduceSum of the middle", "float", { "H,K,n" }, "y = ReduceMean <axes = [1], keepdims = 0> (x0)", "H,n", 0 },
    { "ReduceSum of two axes", "float", { "H,n,K" }, "y = ReduceMean <axes = [0, 2], keepdims = 0> (x0)", "n", 0 },
    { "LSTM of units",
      "float",
      { "4,1,K", "1,L,K", "1,L,n" },
      "y = LSTM <hidden_size = $N> (x0, x1, x2)",
      "4,1,1,n",
      6 },
    { "LSTM of rows",
      "float",
      { "4,n,K", "1,16,K", "1,16,4" },
      "y = LSTM <hidden_size = 4> (x0, x1, x2)",
      "4,1,n,4",
      6 },
    { "GRU of rows", "float", { "4,n,K", "1,12,K", "1,12,4" }, "y = GRU <hidden_size = 4> (x0, x1, x2)", "4,1,n,4", 6 },
    { "Attention of queries",
      "float",
      { "1,1,n,K", "1,1,M,K", "1,1,M,K" },
      "y = Attention (x0, x1, x2)",
      "1,1,n,K",
      0 },
    { "Attention of heads", "float", { "1,n,H,K", "1,n,M,K", "1,n,M,K" }, "y = Attention (x0, x1, x2)", "1,n,H,K", 0 },
    { "Resize", "float", { "1,n,H,W" }, "y = Resize <mode = \"linear\"> (x0, , two)", "1,n,-,-", 0 },
    { "Exp", "float", { "n" }, "y = Exp (x0)", "n", 0 },
    { "Exp of doubles", "double", { "n" }, "y = Exp (x0)", "n", 0 },
    { "Exp of halves", "float16", { "n" }, "y = Exp (x0)", "n", 0 },
    { "Tanh", "float", { "n" }, "y = Tanh (x0)", "n", 0 },
    { "Sigmoid", "float", { "n" }, "y = Sigmoid (x0)", "n", 0 },
    { "Erf", "float", { "n" }, "y = Erf (x0)", "n", 0 },
    { "Gelu", "float", { "n" }, "y = Gelu (x0)", "n", 0 },
    { "Sin", "float", { "n" }, "y = Sin (x0)", "n", 0 },
    { "Log", "float", { "n" }, "a = Abs (x0) y = Log (a)", "n", 0 },
    { "Pow", "float", { "n", "n" }, "a = Abs (x0) y = Pow (a, x1)", "n", 0 },
    { "Mish", "float", { "n" }, "y = Mish (x0)", "n", 0 },
    { "Softplus", "float", { "n" }, "y = Softplus (x0)", "n", 0 },
    { "Elu", "float", { "n" }, "y = Elu (x0)", "n", 0 },
    { "Atan", "float", { "n" }, "y = Atan (x0)", "n", 0 },
    { "a chain", "float", { "n" }, "a = Sigmoid (x0) b = Mul (a, x0) c = Exp (b) y = Add (c, a)", "n", 0 },
    { "MatMulInteger", "uint8", { "H,K", "K,n" }, "y = MatMulInteger (x0, x1)", "H,n", 2 },
    { "DynamicQuantizeLinear", "float", { "n" }, "y, ys, yz = DynamicQuantizeLinear (x0)", "n", 0 },
    { "QuantizeLinear", "float", { "n" }, "y = QuantizeLinear (x0, s, z)", "n", 0 },
};

/* Nodes whose equal channels may differ, and why. Each has to be needed, and is in the table of docs/notes/kernels.md.
 */
static const struct {
    const char *name, *why;
} excused[] = {
    { "Conv of three channels", "oneDNN: output channels that do not fill a block" },
    { "Gemm of rows", "oneDNN: rows of a transposed matrix that do not fill a tile" },
    { "Attention of queries", "up to four queries at the end are processed one by one" },
    { "LSTM of units", "units that remain after the vectors; only with FMA" },
    { "LSTM of rows", "few rows that remain have more partial sums each" },
    { "GRU of rows", "few rows that remain have more partial sums each" },
};

typedef struct sizes {
    int64_t n, k, h, w, m;
} sizes;

static int64_t size_of(const sizes *s, char letter)
{
    switch (letter) {
    case 'n':
    case 'N':
        return s->n;
    case 'K':
        return s->k;
    case 'H':
        return s->h;
    case 'W':
        return s->w;
    case 'L':
        return 4 * s->n; /* the gates of LSTM */
    default:
        return s->m;
    }
}

/* The axes of a shape; bit i of *equal: those whose elements are equal. */
static uint32_t read_shape(const sizes *s, const char *text, int64_t *dims, uint32_t *equal)
{
    uint32_t rank = 0;
    *equal = 0;
    for (const char *at = text; *at; at += *at == ',') {
        char *end = (char *)(uintptr_t)at + 1;
        *equal |= *at == 'n' || *at == 'L' ? 1u << rank : 0;
        dims[rank++] = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : size_of(s, *at);
        at = end;
    }
    return rank;
}

/* The position of an element whose equal axes are 0. */
static uint64_t first_like(uint64_t index, uint32_t rank, const int64_t *dims, uint32_t equal)
{
    uint64_t out = 0, step = 1;
    for (uint32_t i = rank; i-- > 0; index /= (uint64_t)dims[i], step *= (uint64_t)dims[i])
        out += equal >> i & 1 ? 0 : index % (uint64_t)dims[i] * step;
    return out;
}

static double number(uint32_t operand, uint64_t position)
{
    uint64_t x = (position + 1) * UINT64_C(0x9e3779b97f4a7c15) + operand * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(x >> 40) / (double)(1 << 24) * 2 - 1;
}

static onx_dtype type_of(const char *name)
{
    return onx_dtype_find(onx_str_of(name));
}

static onx_value *make(onx_ctx *cx, const char *type, const sizes *s, const char *shape, uint32_t operand)
{
    int64_t dims[ONX_RANK_MAX];
    uint32_t equal, rank = read_shape(s, shape, dims, &equal);
    onx_value *v = NULL;
    const onx_dtype dtype = type_of(type);
    assert_int_equal(onx_value_new_tensor(cx, dtype, rank, dims, &v), ONX_OK);
    const uint32_t width = onx_dtype_bits(dtype) / 8;
    for (uint64_t i = 0; i < v->count; i++) {
        double x = number(operand, first_like(i, rank, dims, equal));
        x = dtype == ONX_UINT8 ? (double)(int)(x * 100 + 100) : x;
        onx_convert(dtype, (char *)v->data + i * width, ONX_DOUBLE, &x, 1, true);
    }
    return v;
}

static size_t write_dims(char *to, const int64_t *dims, uint32_t rank)
{
    size_t len = (size_t)sprintf(to, "[");
    for (uint32_t i = 0; i < rank; i++)
        len += (size_t)sprintf(to + len, "%s%lld", i ? "," : "", (long long)dims[i]);
    return len + (size_t)sprintf(to + len, "]");
}

/* The model, with the inputs of `constants` as initializers. */
static onx_doc *model_of(onx_ctx *cx, unsigned kind, const sizes *s, uint32_t constants, char *text)
{
    const char *sum = strstr(kinds[kind].node, "<axes") && !strstr(kinds[kind].node, "ReduceSum") ? "13" : "23";
    size_t len = (size_t)sprintf(text, "<ir_version: 10, opset_import: [\"\" : %s]> g (", sum);
    onx_doc *doc = NULL;
    for (uint32_t turn = 0; turn < 2; turn++) {
        bool any = false;
        if (turn)
            len += (size_t)sprintf(text + len,
                                   ") => (y) <int64[1] axes = {1}, float[4] two = {1, 1, 2, 2}, float s = {0.01}, "
                                   "uint8 z = {128}");
        for (uint32_t i = 0; i < OPERANDS && kinds[kind].inputs[i]; i++) {
            int64_t dims[ONX_RANK_MAX];
            uint32_t equal, rank = read_shape(s, kinds[kind].inputs[i], dims, &equal);
            uint64_t count = 1;
            if ((constants >> i & 1) != turn)
                continue;
            len += (size_t)sprintf(text + len, "%s%s", any || turn ? ", " : "", kinds[kind].type);
            len += write_dims(text + len, dims, rank);
            len += (size_t)sprintf(text + len, " x%u", i);
            any = true;
            for (uint32_t d = 0; d < rank; d++)
                count *= (uint64_t)dims[d];
            if (!turn)
                continue;
            len += (size_t)sprintf(text + len, " = {");
            for (uint64_t e = 0; e < count && len + 64 < TEXT; e++) {
                const double x = number(i, first_like(e, rank, dims, equal));
                if (type_of(kinds[kind].type) == ONX_UINT8)
                    len += (size_t)sprintf(text + len, "%s%d", e ? "," : "", (int)(x * 100 + 100));
                else if (type_of(kinds[kind].type) == ONX_FLOAT16)
                    len += (size_t)sprintf(text + len, "%s%u", e ? "," : "", onx_f32_to_float16((float)x));
                else
                    len += (size_t)sprintf(text + len, "%s%.4f", e ? "," : "", x);
            }
            len += (size_t)sprintf(text + len, "}");
        }
    }
    len += (size_t)sprintf(text + len, "> { ");
    for (const char *at = kinds[kind].node; *at; at++)
        if (*at == '$')
            len += (size_t)sprintf(text + len, "%lld", (long long)size_of(s, *++at));
        else
            text[len++] = *at;
    len += (size_t)sprintf(text + len, " }");
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(text, len), 0, &doc);
    if (status != ONX_OK)
        print_error("%.300s\n", text);
    assert_int_equal(status, ONX_OK);
    return doc;
}

/* Is it equal along the axes that are to be? */
static bool is_equal(const onx_value *y, const char *out, const sizes *s, uint64_t *at)
{
    int64_t dims[ONX_RANK_MAX];
    uint32_t equal;
    (void)read_shape(s, out, dims, &equal);
    const uint32_t width = onx_dtype_bits(y->dtype) / 8;
    for (uint64_t i = 0; i < y->count; i++) {
        const uint64_t like = first_like(i, y->rank, y->dims, equal);
        if (memcmp((const char *)y->data + i * width, (const char *)y->data + like * width, width) != 0) {
            *at = i;
            return false;
        }
    }
    return true;
}

static const char *const levels[] = { [ONX_ISA_BASE] = "base", [ONX_ISA_V3] = "v3",     [ONX_ISA_V4] = "v4",
                                      [ONX_ISA_VNNI] = "vnni", [ONX_ISA_BF16] = "bf16", [ONX_ISA_AMX] = "amx" };

/* Are the initializers short enough for a text? */
static bool is_short(unsigned kind, const sizes *s)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < OPERANDS && kinds[kind].inputs[i]; i++) {
        int64_t dims[ONX_RANK_MAX];
        uint32_t equal, rank = read_shape(s, kinds[kind].inputs[i], dims, &equal);
        uint64_t count = kinds[kind].constants >> i & 1;
        for (uint32_t d = 0; d < rank; d++)
            count *= (uint64_t)dims[d];
        all += count;
    }
    return all < TEXT / 16;
}

static unsigned try_kind(onx_ctx *cx, unsigned kind, const sizes *s, bool constant, unsigned isa, char *text)
{
    onx_value *inputs[OPERANDS] = { NULL }, *given[OPERANDS] = { NULL }, *y = NULL;
    const uint32_t constants = constant && is_short(kind, s) ? kinds[kind].constants : 0;
    onx_doc *doc = model_of(cx, kind, s, constants, text);
    onx_session *session = NULL;
    const onx_session_options options = { .threads = 1, .isa = isa, .plain = !isa };
    unsigned bad = 0;
    uint64_t at = 0;
    uint32_t count = 0;
    onx_status status = onx_session_new(cx, doc, &options, &session);
    for (uint32_t i = 0; i < OPERANDS && kinds[kind].inputs[i]; i++)
        if (!(constants >> i & 1))
            given[count++] = inputs[i] = make(cx, kinds[kind].type, s, kinds[kind].inputs[i], i);
    if (status == ONX_OK)
        status = onx_session_run(session, cx, (const onx_value *const *)given, &y);
    if (status != ONX_OK) {
        char why[300] = "";
        if (onx_diag_count(cx))
            onx_diag_format(onx_diag_get(cx, 0), why, sizeof why);
        print_error("%s: %s\n", kinds[kind].name, why);
        bad++;
    } else if (!is_equal(y, kinds[kind].out, s, &at)) {
        print_error("%s, %s, N = %d, K = %d, H = %d, W = %d, M = %d%s: element %llu differs\n", kinds[kind].name,
                    isa ? levels[isa] : "plain", (int)s->n, (int)s->k, (int)s->h, (int)s->w, (int)s->m,
                    constant ? ", constant weights" : "", (unsigned long long)at);
        bad++;
    }
    onx_session_free(session);
    for (uint32_t i = 0; i < OPERANDS; i++)
        onx_value_free(inputs[i]);
    onx_value_free(y);
    onx_doc_free(doc);
    onx_diag_clear(cx);
    return bad;
}

static void test_gen_equal__equal_channels_give_equal_bits(void **state)
{
    (void)state;
    static const int64_t others[] = { 7, 16, 17, 33, 64, 100 };
    const bool all = getenv("ONX_GEN_ALL") != NULL;
    const char *only = getenv("ONX_GEN_ONLY"); /* a part of a name, for debugging */
    onx_ctx *cx = onx_ctx_new(NULL);
    char *text = malloc(TEXT);
    unsigned bad = 0, runs = 0, excuses = 0;
    assert_non_null(text);
    for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        unsigned here = 0;
        bool excuse = false;
        for (size_t i = 0; i < sizeof excused / sizeof *excused; i++)
            excuse |= strcmp(excused[i].name, kinds[kind].name) == 0;
        if (only ? !strstr(kinds[kind].name, only) : !all && excuse)
            continue;
        for (int64_t n = 1; n < 1040; n += n < 36 ? 1 : n < 70 ? 3 : n < 100 ? 27 : n < 960 ? 423 : 8)
            for (unsigned isa = 0; isa <= onxi_isa_best(); isa++) {
                const uint64_t pick = (uint64_t)n * 7 + kind * 3 + isa;
                const sizes s = { n, others[pick % 6], 3 + (int64_t)(pick % 9), 5 + (int64_t)(pick % 13),
                                  3 + (int64_t)(pick % 30) };
                if (!all && !only && (pick * UINT64_C(0x9e3779b97f4a7c15) >> 32) % DRAWN)
                    continue;
                if (isa == 0 && pick % 5)
                    continue;
                here += try_kind(cx, kind, &s, pick % 4 != 3, isa, text);
                runs++;
            }
        excuses += excuse && here;
        if (excuse && !here && all)
            print_error("%s is in the list of exceptions, but its equal channels are equal\n", kinds[kind].name);
        bad += excuse ? all && !here : here;
    }
    free(text);
    onx_ctx_free(cx);
    print_message("%u runs, %u kinds excused\n", runs, excuses);
    assert_int_equal(bad, 0);
    assert_true(only || runs > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_equal__equal_channels_give_equal_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
