/* test_kernel_microsoft.c - operators of com.microsoft by the plain row and by those of every instruction set, at sizes
 * around those of vectors and blocks; and the loops that their rows share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/core/byte_rows.h"
#include "kernel/core/bytes.h"
#include "kernel/core/halves.h"
#include "kernel/core/scores.h"
#include <math.h>
#include <stdlib.h>

#include "unit/variants.h"

static bool has(const char *op)
{
    return onx_op_find(onx_str_of("com.microsoft"), onx_str_of(op), 1) != NULL;
}

static void begin(writer *w)
{
    w->len = 0;
    add(w, "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]>\ng (");
}

/* ---- halves ---- */

static const onxi_half_loops *const half_loops[] = {
    &onxi_half_loops_base,
#ifdef ONX_WITH_X86_LEVELS
    &onxi_half_loops_v3,
    &onxi_half_loops_v4,
#endif
};

/* How many of them this processor runs. */
static size_t half_levels(void)
{
    const unsigned isa = onxi_isa_vectors();
    return isa == ONX_ISA_V4 ? 3 : isa == ONX_ISA_V3 ? 2 : 1;
}

/* All numbers of 16 bits, and floats whose rounding is close. */
static void test_kernel_microsoft__halves(void **state)
{
    enum { ALL = 1 << 16 };
    static uint16_t narrow[ALL], back[ALL], want[ALL];
    static float wide[ALL], expected[ALL];
    (void)state;
    for (int t = 0; t < 2; t++) {
        const onx_dtype dtype = t ? ONX_BFLOAT16 : ONX_FLOAT16;
        for (size_t level = 0; level < half_levels(); level++) {
            for (uint32_t i = 0; i < ALL; i++)
                narrow[i] = (uint16_t)i;
            half_loops[level]->widen((int)dtype, narrow, wide, ALL);
            onx_convert(ONX_FLOAT, expected, dtype, narrow, ALL, true);
            for (uint32_t i = 0; i < ALL; i++)
                if (memcmp(&wide[i], &expected[i], sizeof *wide) != 0 && !(isnan(wide[i]) && isnan(expected[i])))
                    fail_msg("%u of type %d is %a", i, dtype, (double)wide[i]);
            for (uint32_t i = 0; i < ALL; i++) {
                uint32_t bits;
                memcpy(&bits, &expected[i], sizeof bits);
                bits += (i % 3 == 0 ? 0x1000u : i % 3 == 1 ? 0x0fffu : 0x1001u) << (3 * t);
                memcpy(&wide[i], &bits, sizeof bits);
            }
            half_loops[level]->narrow((int)dtype, wide, back, ALL);
            onx_convert(dtype, want, ONX_FLOAT, wide, ALL, true);
            for (uint32_t i = 0; i < ALL; i++)
                if (!isnan(wide[i]))
                    assert_int_equal(back[i], want[i]);
            uint16_t few[3] = { 7, 7, 7 };
            half_loops[level]->narrow((int)dtype, (float[]){ 1, 2 }, few, 2);
            assert_int_equal(few[2], 7);
        }
    }
}

/* ---- attention with a cache ---- */

enum { CACHE_INPUTS = 7 }; /* query, key, value, past key, past value, cosines, sines */

/* A prompt where there is no past: all sequences begin at once then, and may end early. */
typedef struct cache_case {
    uint32_t batch, length, past, heads, keys, size;
    bool turns, interleaved, causal;
    int window;
    onx_dtype type;
} cache_case;

static void write_cache(writer *w, source *s, const cache_case *c)
{
    const uint32_t total = c->past + c->length;
    begin(w);
    for (char name = 'a'; name < 'a' + CACHE_INPUTS; name++) {
        add(w, "%sfloat[", name == 'a' ? "" : ", ");
        for (unsigned i = 0; i < (name < 'd' ? 3 : name < 'f' ? 4 : 2); i++)
            add(w, "%s%c%u", i ? ", " : "", name, i);
        add(w, "] %c0", name);
    }
    add(w, ") => (float[J, K, L] y, float[M, N, O, P] k, float[Q, R, S, T] v)\n<int32[%u] ends = {", c->batch);
    for (uint32_t i = 0; i < c->batch; i++)
        add(w, "%s%u", i ? ", " : "",
            c->past ? total - 1 - below(s, c->past + 1)
            : i     ? below(s, c->length)
                    : total - 1);
    add(w, "}, int32 all = {%u}>\n{\n", total);
    for (char name = 'a'; name < 'a' + CACHE_INPUTS; name++)
        add(w, " %c = Cast <to = %d> (%c0)\n", name, (int)c->type, name);
    add(w,
        " y0, k0, v0 = com.microsoft.GroupQueryAttention <num_heads = %u, kv_num_heads = %u, do_rotary = %d, "
        "rotary_interleaved = %d, causal = %d, local_window_size = %d> (a, b, c, d, e, ends, all, f, g)\n"
        " y = Cast <to = 1> (y0)\n k = Cast <to = 1> (k0)\n v = Cast <to = 1> (v0)\n}\n",
        c->heads, c->keys, c->turns, c->interleaved, c->causal, c->window);
}

static void test_kernel_microsoft__caches(void **state)
{
    static const onx_dtype types[] = { ONX_FLOAT, ONX_FLOAT16, ONX_BFLOAT16 };
    static const double near[] = { 200, 10000, 80000 }; /* a unit of 16 bits is many of floats */
    static writer w;
    source s = { 11 };
    unsigned fast = 0, turn;
    (void)state;
    if (!has("GroupQueryAttention"))
        return; /* left out of this build */
    for (turn = 0; turn < 45; turn++) {
        static const uint32_t sizes[] = { 8, 16, 40, 64 }, news[] = { 1, 2, 5, 33, 70 }, pasts[] = { 0, 3, 100, 210 };
        cache_case c = { .batch = 1 + below(&s, 2),
                         .length = news[below(&s, 5)],
                         .past = pasts[below(&s, 4)],
                         .keys = 1 + below(&s, 2),
                         .size = sizes[below(&s, 4)],
                         .turns = below(&s, 2),
                         .interleaved = below(&s, 2),
                         .causal = below(&s, 4) > 0,
                         .window = below(&s, 3) ? -1 : 1 + (int)below(&s, 60),
                         .type = types[turn % 3] };
        c.heads = c.keys * (1 + below(&s, 3));
        const int64_t dims[][4] = { { c.batch, c.length, c.heads * c.size }, { c.batch, c.length, c.keys * c.size },
                                    { c.batch, c.length, c.keys * c.size },  { c.batch, c.keys, c.past, c.size },
                                    { c.batch, c.keys, c.past, c.size },     { c.past + c.length, c.size / 2 },
                                    { c.past + c.length, c.size / 2 } };
        onx_value *in[CACHE_INPUTS];
        for (int i = 0; i < CACHE_INPUTS; i++)
            in[i] = floats(&s, i < 3 ? 3 : i < 5 ? 4 : 2, dims[i]);
        write_cache(&w, &s, &c);
        const char *variant =
            compare_any(&w, "GroupQueryAttention", (const onx_value *const *)(const void *)in, near[turn % 3]);
        fast += variant && strcmp(variant, "plain") != 0;
        for (int i = 0; i < CACHE_INPUTS; i++)
            onx_value_free(in[i]);
    }
    assert_int_equal(fast, turn);
}

/* ---- rows of bytes ---- */

static const onxi_byte_rows_ops *const byte_rows[] = {
    &onxi_byte_rows_base,
#ifdef ONX_WITH_X86_LEVELS
    &onxi_byte_rows_v3,
    &onxi_byte_rows_v4,
    &onxi_byte_rows_vnni,
#endif
};

enum { ROWS_MOST = 9, DEPTH_MOST = 80, COLUMNS_MOST = 140 };

static void check_byte_rows(source *s, const onxi_byte_rows_ops *ops, uint32_t rows, uint32_t k, uint32_t n,
                            bool is_unsigned)
{
    static float x[ROWS_MOST * DEPTH_MOST], scales[COLUMNS_MOST], out[ROWS_MOST * COLUMNS_MOST];
    static uint8_t w[DEPTH_MOST * COLUMNS_MOST], a[ROWS_MOST * (DEPTH_MOST + 4)];
    static int32_t zeros[COLUMNS_MOST], totals[ROWS_MOST];
    const uint32_t pitch = (k + 3) / 4 * 4;
    const int32_t zero = (int32_t)below(s, 256);
    float least = 0, most = 0;
    for (uint32_t i = 0; i < rows * k; i++)
        x[i] = between(s, -2, 1);
    for (uint32_t i = 0; i < k * n; i++)
        w[i] = (uint8_t)below(s, 256);
    for (uint32_t i = 0; i < n; i++) {
        zeros[i] = (int32_t)below(s, 256) - 128;
        scales[i] = between(s, 0.5f, 1);
    }
    ops->range(x, rows * k, &least, &most);
    for (uint32_t i = 0; i < rows * k; i++)
        assert_true(x[i] >= least && x[i] <= most);
    const float scale = (most - least) / 255;
    for (uint32_t r = 0; r < rows; r++) {
        totals[r] = ops->quantize(x + r * k, k, scale, zero, a + r * pitch);
        for (uint32_t i = 0; i < pitch; i++) {
            const float want = i < k ? fmaxf(0, fminf(255, nearbyintf(x[r * k + i] / scale) + (float)zero)) : 0;
            assert_int_equal(a[r * pitch + i], (int)want);
            totals[r] -= a[r * pitch + i];
        }
        assert_int_equal(totals[r], 0);
        for (uint32_t i = 0; i < k; i++)
            totals[r] += a[r * pitch + i];
    }
    uint64_t size;
    assert_true(ops->size(k, n, &size));
    void *packed = malloc(size);
    assert_non_null(packed);
    ops->pack(w, k, n, is_unsigned, packed);
    const onxi_byte_rows p = { a, totals, rows, pitch, k, n, packed, zero, zeros, scale, scales, out };
    ops->product(&p, 0, (n + ops->tile - 1) / ops->tile);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t j = 0; j < n; j++) {
            int32_t sum = 0;
            for (uint32_t i = 0; i < k; i++)
                sum +=
                    (a[r * pitch + i] - zero) * ((is_unsigned ? w[i * n + j] - 128 : (int8_t)w[i * n + j]) - zeros[j]);
            assert_true(out[r * n + j] == (float)sum * (scale * scales[j]));
        }
    free(packed);
}

static void test_kernel_microsoft__rows_of_bytes(void **state)
{
    source s = { 13 };
    const size_t levels = half_levels() + (onxi_isa_best() >= ONX_ISA_VNNI);
    (void)state;
    for (size_t level = 0; level < levels; level++)
        for (unsigned turn = 0; turn < 40; turn++) {
            static const uint32_t ks[] = { 1, 3, 4, 17, 64, 80 }, ns[] = { 1, 5, 16, 40, 64, 65, 140 };
            check_byte_rows(&s, byte_rows[level], 1 + below(&s, ROWS_MOST), ks[below(&s, 6)], ns[below(&s, 7)],
                            turn % 2);
        }
}

/* Gates by vectors are off by some units, which may change a byte of a state. */
static void test_kernel_microsoft__quantized_layers(void **state)
{
    static writer w;
    source s = { 14 };
    unsigned fast = 0, turn;
    (void)state;
    if (!has("DynamicQuantizeLSTM"))
        return; /* left out of this build */
    for (turn = 0; turn < 24; turn++) {
        static const char *const ways[] = { "forward", "reverse", "bidirectional" };
        static const uint32_t sizes[] = { 1, 5, 16, 33, 70 };
        const uint32_t way = below(&s, 3), d = way == 2 ? 2 : 1, hidden = sizes[below(&s, 5)],
                       inputs = sizes[below(&s, 5)];
        const uint32_t steps = 1 + below(&s, 6), batch = 1 + below(&s, 6), columns = below(&s, 2) ? 4 * hidden : 0;
        const char *const type = turn % 2 ? "int8" : "uint8";
        const int64_t dims[] = { steps, batch, inputs };
        begin(&w);
        add(&w, "float[S, B, I] x) => (float[A, C, D, E] y, float[F, G, H] h, float[J, K, L] c)\n<int32[%u] lens = {",
            batch);
        for (uint32_t i = 0; i < batch; i++)
            add(&w, "%s%u", i ? ", " : "", i ? below(&s, steps + 1) : steps);
        for (int i = 0; i < 2; i++) {
            const uint32_t k = i ? hidden : inputs;
            add(&w, "}, %s[%u, %u, %u] w%d = {", type, d, k, 4 * hidden, i);
            for (uint32_t j = 0; j < d * k * 4 * hidden; j++)
                add(&w, "%s%d", j ? "," : "", (int)below(&s, 128) - (turn % 2 ? 64 : 0));
            add(&w, "}, float[%u", d);
            if (columns)
                add(&w, ", %u", columns);
            add(&w, "] s%d = {", i);
            for (uint32_t j = 0; j < d * (columns ? columns : 1); j++)
                add(&w, "%s%.5f", j ? "," : "", (double)between(&s, 0.002f, 0.01f));
            add(&w, "}, %s[%u] z%d = {%u%s", type, d, i, below(&s, 60), d > 1 ? ", 40" : "");
        }
        add(&w,
            "}>\n{\n y, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size = %u, direction = \"%s\", input_forget = %u%s> "
            "(x, w0, w1, , lens, , , , s0, z0, s1, z1)\n}\n",
            hidden, ways[way], below(&s, 2), below(&s, 2) ? ", clip = 0.7" : "");
        onx_value *x = floats(&s, 3, dims);
        const char *variant = compare_any(&w, "DynamicQuantizeLSTM", (const onx_value *[]){ x }, 100000);
        fast += variant && strcmp(variant, "plain") != 0;
        onx_value_free(x);
    }
    assert_int_equal(fast, turn);
}

/* ---- weights that are made real ---- */

static void add_floats(writer *w, source *s, const char *name, uint64_t count, float low, float high)
{
    add(w, ", float[%llu] %s = {", (unsigned long long)count, name);
    for (uint64_t i = 0; i < count; i++)
        add(w, "%s%.4f", i ? "," : "", (double)between(s, low, high));
    add(w, "}");
}

static void add_bytes(writer *w, source *s, const char *name, uint32_t a, uint32_t b, uint32_t c)
{
    add(w, ", uint8[%u, %u, %u] %s = {", a, b, c, name);
    for (uint32_t i = 0; i < a * b * c; i++)
        add(w, "%s%u", i ? "," : "", below(s, 256));
    add(w, "}");
}

static void add_numbers(writer *w, source *s, const char *type, const char *name, uint32_t count, uint32_t end)
{
    add(w, ", %s[%u] %s = {", type, count, name);
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%d", i ? "," : "", (int)below(s, end) - (end == 9)); /* of nine: from -1 on */
    add(w, "}");
}

/* MatMulBnb4, or MatMulNBits with g_idx, whose blocks may be none there is. */
static void write_real(writer *w, source *s, uint32_t bits, uint32_t k, uint32_t n, onx_dtype type)
{
    static const uint32_t block_sizes[] = { 16, 32, 64 }, other_sizes[] = { 16, 64, 128, 256 };
    const uint32_t block = bits ? block_sizes[below(s, 3)] : other_sizes[below(s, 4)], blocks = (k + block - 1) / block;
    const bool turned = below(s, 2);
    begin(w);
    add(w, "float[M, K] x0) => (float[Q, R] y)\n<float[1] one = {1}");
    if (bits) {
        add_bytes(w, s, "w", n, blocks, block * bits / 8);
        add_floats(w, s, "s0", (uint64_t)n * blocks, 0.01f, 0.1f);
        add_numbers(w, s, "uint8", "z", n * ((blocks * bits + 7) / 8), 256);
        add_numbers(w, s, "int32", "g", blocks * block, 9);
        add_floats(w, s, "b0", n, -1, 1);
    } else {
        add_numbers(w, s, "uint8", "w", (n * k + 1) / 2, 256);
        add_floats(w, s, "s0", (n * k + block - 1) / block, 0.1f, 1);
    }
    add(w, ">\n{\n x = Cast <to = %d> (x0)\n s = Cast <to = %d> (s0)\n", (int)type, (int)type);
    if (bits)
        add(w,
            " b = Cast <to = %d> (b0)\n y0 = com.microsoft.MatMulNBits <K = %u, N = %u, bits = %u, block_size = %u> "
            "(x, w, s, %s, g, %s)\n",
            (int)type, k, n, bits, block, below(s, 2) ? "z" : "", below(s, 2) ? "b" : "");
    else
        add(w,
            " y0 = com.microsoft.MatMulBnb4 <K = %u, N = %u, quant_type = %u, block_size = %u, transB = %d> (x, w, s)\n",
            turned ? n : k, turned ? k : n, below(s, 2), block, !turned);
    add(w, " y = Cast <to = 1> (y0)\n}\n");
}

static void test_kernel_microsoft__real_weights(void **state)
{
    static writer w;
    source s = { 16 };
    unsigned fast = 0, turn;
    (void)state;
    if (!has("MatMulBnb4"))
        return; /* left out of this build */
    for (turn = 0; turn < 60; turn++) {
        static const uint32_t ms[] = { 1, 2, 7, 50, 130 }, ks[] = { 1, 15, 16, 33, 64, 130 },
                              ns[] = { 1, 3, 16, 33, 64, 70 };
        const uint32_t m = ms[below(&s, 5)], k = ks[below(&s, 6)], n = ns[below(&s, 6)],
                       bits = turn % 2 ? 0 : 2u << turn / 2 % 3;
        const onx_dtype type = below(&s, 3) ? ONX_FLOAT : ONX_FLOAT16;
        onx_value *x = floats(&s, 2, (int64_t[]){ m, k });
        write_real(&w, &s, bits, k, n, type);
        const char *variant = compare_any(&w, bits ? "MatMulNBits" : "MatMulBnb4", (const onx_value *[]){ x },
                                          type == ONX_FLOAT ? 2000 : 20000);
        fast += variant && strcmp(variant, "plain") != 0;
        onx_value_free(x);
    }
    assert_int_equal(fast, turn);
}

/* ---- scores ---- */

static const onxi_score_loops *const score_loops[] = {
    &onxi_score_loops_base,
#ifdef ONX_WITH_X86_LEVELS
    &onxi_score_loops_v3,
    &onxi_score_loops_v4,
#endif
};

static void test_kernel_microsoft__scores(void **state)
{
    enum { MOST = 9000 };
    static float x[MOST], y[MOST];
    source s = { 15 };
    (void)state;
    for (size_t level = 0; level < half_levels(); level++)
        for (unsigned turn = 0; turn < 40; turn++) {
            static const uint32_t counts[] = { 1, 2, 15, 16, 33, 100, 4096, 4100, 9000 };
            const uint32_t n = counts[below(&s, 9)], from = below(&s, n);
            double sum = 0;
            float top = -INFINITY;
            for (uint32_t i = 0; i < n; i++) {
                y[i] = x[i] = turn % 5 == 4 && i % 3 ? -INFINITY : between(&s, -30, turn % 2 ? 60 : -20);
                top = x[i] > top ? x[i] : top;
            }
            const float limit = between(&s, -30, 60);
            const uint64_t at = score_loops[level]->above(x, from, n, limit);
            for (uint64_t i = from; i < at; i++)
                assert_false(x[i] > limit);
            assert_true(at == n || x[at] > limit);
            for (uint32_t i = 0; i < n; i++)
                sum += exp((double)x[i] - (double)top);
            score_loops[level]->log_softmax(y, n);
            for (uint32_t i = 0; i < n; i++) {
                const double want = (double)x[i] - (double)top - log(sum);
                assert_true((double)y[i] == want || fabs((double)y[i] - want) < 1e-5 * fmax(1, fabs(want)));
            }
        }
}

/* ---- experts ---- */

typedef struct experts_case {
    uint32_t tokens, hidden, inner, wide, experts, k, bits, block; /* bits 0: floats; block 0: whole rows */
    bool bias, zeros, normalize, weighted;
    unsigned activation;
    onx_dtype type;
} experts_case;

/* A layer of rows of numbers: weights, bias, and with few bits scales and zero points; names end with `which`. */
static void add_layer(writer *w, source *s, const experts_case *c, uint32_t rows, uint32_t columns, char which)
{
    char name[3] = { 'w', which, 0 };
    const uint32_t block = c->block ? c->block : columns, blocks = columns / block;
    if (c->bits)
        add_bytes(w, s, name, c->experts, rows, columns * c->bits / 8);
    else
        add_floats(w, s, name, (uint64_t)c->experts * rows * columns, -0.2f, 0.2f);
    *name = 'b';
    add_floats(w, s, name, (uint64_t)c->experts * rows, -0.5f, 0.5f);
    *name = 's';
    add_floats(w, s, name, (uint64_t)c->experts * rows * blocks, 0.001f, 0.01f);
    *name = 'z';
    if (c->bits) /* of rows of one block all together */
        add_bytes(w, s, name, c->experts, blocks == 1 ? 1 : rows, ((blocks == 1 ? rows : blocks) * c->bits + 7) / 8);
}

static void reshape(writer *w, const char *to, const char *from, const char *shape, onx_dtype type)
{
    static unsigned names;
    add(w, " r%u = Constant <value_ints = [%s]> ()\n t%u = Reshape (%s, r%u)\n %s = Cast <to = %d> (t%u)\n", names,
        shape, names, from, names, to, (int)type, names);
    names++;
}

static void write_experts(writer *w, source *s, const experts_case *c)
{
    static const char *const words[] = { "relu", "gelu", "silu", "identity", "swiglu", "swiglu" };
    char shape[80];
    begin(w);
    add(w, "float[A, B] x0, float[C, D] router0) => (float[E, F] y)\n<float[1] one = {1}");
    add_layer(w, s, c, c->wide, c->hidden, '1');
    add_layer(w, s, c, c->hidden, c->inner, '2');
    add(w, ">\n{\n x = Cast <to = %d> (x0)\n router = Cast <to = %d> (router0)\n", (int)c->type, (int)c->type);
    for (char l = '1'; l <= '2'; l++) {
        const uint32_t rows = l == '1' ? c->wide : c->hidden, columns = l == '1' ? c->hidden : c->inner;
        char to[] = { 'B', l, 0 }, from[] = { 'b', l, 0 };
        snprintf(shape, sizeof shape, "%u, %u", c->experts, rows);
        reshape(w, to, from, shape, c->type);
        *to = c->bits ? 'S' : 'W';
        *from = c->bits ? 's' : 'w';
        snprintf(shape, sizeof shape, "%u, %u, %u", c->experts, rows,
                 c->bits ? columns / (c->block ? c->block : columns) : columns);
        reshape(w, to, from, shape, ONX_FLOAT);
    }
    const char *const b1 = c->bias ? "B1" : "", *const b2 = c->bias ? "B2" : "";
    add(w, " y0 = com.microsoft.%s <k = %u, activation_type = \"%s\", normalize_routing_weights = %d",
        c->bits ? "QMoE" : "MoE", c->k, words[c->activation], c->normalize);
    if (c->activation >= 4)
        add(w, ", swiglu_fusion = %u, swiglu_limit = 1.5, activation_alpha = 1.7, activation_beta = 1.0",
            c->activation - 3);
    if (c->bits)
        add(w, ", expert_weight_bits = %u%s", c->bits,
            c->block == 16 ? ", block_size = 16"
            : c->block     ? ", block_size = 32"
                           : "");
    if (c->bits)
        add(w, "> (x, router, w1, S1, %s, w2, S2, %s, , , , %s%s)\n", b1, b2, c->zeros ? "z1, z2" : ", ",
            c->weighted ? ", , router" : "");
    else
        add(w, "> (x, router, W1, %s, W2, %s)\n", b1, b2);
    add(w, " y = Cast <to = 1> (y0)\n}\n");
}

static void test_kernel_microsoft__experts(void **state)
{
    static writer w;
    source s = { 12 };
    unsigned fast = 0, turn;
    (void)state;
    if (!has("QMoE"))
        return; /* left out of this build */
    for (turn = 0; turn < 60; turn++) {
        static const uint32_t tokens[] = { 1, 2, 7, 40, 200, 420 }, sizes[] = { 16, 32, 48, 64, 96, 288 };
        experts_case c = { .tokens = tokens[below(&s, 6)],
                           .hidden = sizes[below(&s, 5)],
                           .inner = sizes[below(&s, turn % 5 ? 5 : 6)],
                           .experts = 1 + below(&s, 5),
                           .bits = turn % 4 ? 1u << turn % 4 : 0,
                           .bias = below(&s, 2),
                           .zeros = below(&s, 2),
                           .normalize = below(&s, 2),
                           .weighted = below(&s, 4) == 0,
                           .activation = below(&s, 6),
                           .type = below(&s, 3) || turn % 4 == 0 ? ONX_FLOAT : ONX_FLOAT16 };
        c.k = 1 + below(&s, c.experts);
        c.wide = c.activation < 4 ? c.inner : 2 * c.inner;
        c.block = c.hidden % 32 || c.inner % 32 ? below(&s, 2) * 16 : below(&s, 3) * 16;
        onx_value *in[] = { floats(&s, 2, (int64_t[]){ c.tokens, c.hidden }),
                            floats(&s, 2, (int64_t[]){ c.tokens, c.experts }) };
        write_experts(&w, &s, &c);
        const char *variant = compare_any(&w, c.bits ? "QMoE" : "MoE", (const onx_value *const *)(const void *)in,
                                          c.type == ONX_FLOAT ? 2000 : 10000);
        fast += variant && strcmp(variant, "plain") != 0;
        onx_value_free(in[0]);
        onx_value_free(in[1]);
    }
    assert_int_equal(fast, turn);
}

/* ---- sums and products of bytes ---- */

static const onxi_byte_loops *const byte_loops[] = {
    &onxi_byte_loops_base,
#ifdef ONX_WITH_X86_LEVELS
    &onxi_byte_loops_v3,
    &onxi_byte_loops_v4,
#endif
};

/* As the header defines it; bytes and zero points as they are read, `from` above what they are. */
static uint8_t pair_by_definition(const onxi_byte_pair *t, uint8_t a, uint8_t b)
{
    const onxi_byte_meaning *of = t->of;
    const int from = of[2].flip ? 128 : 0;
    const int x = (a ^ of[0].flip) - from, y = (b ^ of[1].flip) - from;
    const int za = of[0].zero - from, zb = of[1].zero - from, zero = of[2].zero - from;
    float made;
    if (t->times) {
        const float ratio = of[0].scale * of[1].scale / of[2].scale, share = (float)((x - za) * (y - zb)) * ratio;
        made = share + (float)zero;
    } else {
        const float ra = of[0].scale / of[2].scale, rb = of[1].scale / of[2].scale, second = rb * (float)zb;
        const float fixed = (float)zero - fmaf(ra, (float)za, second);
        made = fmaf((float)x, ra, fmaf((float)y, rb, fixed));
    }
    made = rintf(made);
    return (uint8_t)(int)(made < (float)-from ? (float)-from : made > (float)(255 - from) ? (float)(255 - from) : made);
}

static void compare_pairs(const onxi_byte_loops *l, onxi_byte_pair t)
{
    static uint8_t y[256];
    static uint8_t all[256];
    for (unsigned i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    t.y = y;
    for (unsigned b = 0; b < 256; b++) {
        const uint8_t one[1] = { (uint8_t)b };
        t.count = 256 - b % 19;
        for (unsigned turned = 0; turned < 2; turned++) {
            onxi_byte_pair other = t;
            t.a = turned ? one : all;
            t.b = turned ? all : one;
            t.a_step = !turned;
            t.b_step = turned;
            l->pair(&t);
            other.of[0] = t.of[turned];
            other.of[1] = t.of[!turned];
            for (uint64_t i = 0; i < t.count; i++)
                assert_int_equal(y[i], pair_by_definition(&other, (uint8_t)i, (uint8_t)b));
        }
        t.a = t.b = all;
        t.a_step = t.b_step = true;
        l->pair(&t);
        for (uint64_t i = 0; i < t.count; i++)
            assert_int_equal(y[i], pair_by_definition(&t, (uint8_t)i, (uint8_t)i));
    }
}

/* With scales of which many sums are halves. */
static void test_kernel_microsoft__pairs_of_bytes(void **state)
{
    static const float scales[][3] = {
        { 0.05f, 0.05f, 0.1f }, { 0.03f, 0.07f, 0.1f }, { 0.25f, 0.5f, 0.75f }, { 0.0234f, 0.0517f, 0.0613f }
    };
    (void)state;
    for (size_t level = 0; level < half_levels(); level++)
        for (unsigned k = 0; k < 16; k++) {
            const float *of = scales[k / 4];
            const uint8_t flip = (uint8_t)(k % 2 << 7);
            onxi_byte_pair t = { .rows = 1,
                                 .times = k / 2 % 2,
                                 .of = { { of[0], 3 + (int)k, flip }, { of[1], 130, flip }, { of[2], 90, flip } } };
            if (t.times)
                t.of[2].scale = of[0] * of[1] * 64;
            compare_pairs(byte_loops[level], t);
        }
}

/* Between DequantizeLinear and QuantizeLinear they are those of the QLinear operators, bit by bit. */
static void test_kernel_microsoft__bytes_between_quantizers(void **state)
{
    static const struct {
        const char *name, *between, *alone, *zero;
        bool shared; /* by operators of which each gets numbers of its own, where products of bytes have kernels */
    } forms[] = {
        { "QAdd", "y = Add (af, bf)", "QLinearAdd (a, as, za, b, bs, zb, ys, zy)", "-9", false },
        { "QAdd", "r = Add (af, bf) y = Relu (r)", "QLinearAdd (a, as, za, b, bs, zb, ys, zy)", "-128", false },
        { "QMul", "y = Mul (af, bf)", "QLinearMul (a, as, za, b, bs, zb, ys, zy)", "-9", false },
        { "QMul", "r = Mul (af, bf) y = Relu (r)", "QLinearMul (a, as, za, b, bs, zb, ys, zy)", "-128", false },
        { "QMean", "y = GlobalAveragePool (af)", "QLinearGlobalAveragePool (a, as, za, ys, zy)", "-9", false },
        { "QMul",
          "g = com.microsoft.QLinearGlobalAveragePool (a, as, za, ys, zy) m = GlobalAveragePool (af) "
          "mq = QuantizeLinear (m, ys, zy) mf = DequantizeLinear (mq, ys, zy) y = Mul (af, mf)",
          "QLinearMul (a, as, za, g, ys, zy, ys, zy)", "-9", true },
        { "QMul",
          "g = com.microsoft.QLinearGlobalAveragePool (b, bs, zb, bs, zb) gf = DequantizeLinear (g, bs, zb) "
          "y = Mul (gf, af)",
          "QLinearMul (g, bs, zb, a, as, za, ys, zy)", "-9", false },
        { NULL, "r = Add (af, bf) y = Relu (r)", NULL, "-127", false }, /* which has numbers below 0 */
    };
    static writer w;
    source s = { 36 };
    (void)state;
    if (!has("QLinearAdd"))
        skip();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (forms[i].shared && onxi_isa_best() < (unsigned)ONX_ISA_VNNI)
            continue;
        onx_value *in[] = { tensor(ONX_INT8, 4, (int64_t[]){ 2, 40, 6, 7 }),
                            tensor(ONX_INT8, 4, (int64_t[]){ 2, 40, 6, 7 }) };
        onx_value *out[2] = { NULL };
        onx_doc *doc = NULL;
        for (unsigned k = 0; k < 2; k++)
            for (uint64_t n = 0; n < in[k]->count; n++)
                ((uint8_t *)in[k]->data)[n] = (uint8_t)below(&s, 256);
        begin(&w);
        add(&w,
            "int8[2, 40, 6, 7] a, int8[2, 40, 6, 7] b) => (int8[] q, int8[] z) <float as = {0.05}, float bs = {0.05}, "
            "float ys = {0.1}, int8 za = {3}, int8 zb = {-8}, int8 zy = {%s}> {\n af = DequantizeLinear (a, as, za) "
            "bf = DequantizeLinear (b, bs, zb) %s q = QuantizeLinear (y, ys, zy)\n z = %s%s\n}\n",
            forms[i].zero, forms[i].between, forms[i].alone ? "com.microsoft." : "",
            forms[i].alone ? forms[i].alone : "Identity (a)");
        const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc);
        say_all();
        assert_int_equal(status, ONX_OK);
        const char *row = run(doc, forms[i].name ? forms[i].name : "QAdd", &(onx_session_options){ .threads = 1 },
                              (const onx_value *const *)(const void *)in, out);
        assert_int_equal(strcmp(row, "none") != 0, forms[i].name != NULL);
        assert_true(!forms[i].name || near_enough(out[0], out[1], 0));
        for (unsigned k = 0; k < 2; k++) {
            onx_value_free(in[k]);
            onx_value_free(out[k]);
        }
        onx_doc_free(doc);
    }
}

/* ---- averages of bytes ---- */

enum { AVERAGE_C = 37, AVERAGE_H = 6, AVERAGE_W = 7 };

/* The byte of channel c and pixel (i, j) of windows of 3x2, a step of 2x1 apart, with a line of padding above and below
 * and a column at the end; x_zero and y_zero as they are. */
static int average_by_definition(const uint8_t *x, bool is_signed, uint32_t c, int i, int j, bool pads)
{
    const float scale = 0.05f, y_scale = 0.025f;
    float sum = 0;
    int count = 0;
    for (int a = 2 * i - 1; a < 2 * i + 2; a++)
        for (int b = j; b < j + 2; b++)
            if (a >= 0 && a < AVERAGE_H && b < AVERAGE_W) {
                const uint8_t v = x[(c * AVERAGE_H + (uint32_t)a) * AVERAGE_W + (uint32_t)b];
                const float real = (float)((is_signed ? (int)(int8_t)v : (int)v) - 3) * scale;
                sum += real;
                count++;
            }
    const float share = sum / (float)(pads ? 6 : count), y = rintf(share / y_scale + 5), least = is_signed ? -128 : 0;
    return (int)(y < least ? least : y > least + 255 ? least + 255 : y);
}

static void compare_averages(source *s, writer *w, unsigned isa, bool is_signed, bool pads)
{
    const char *type = is_signed ? "int8" : "uint8";
    onx_value *x = tensor(is_signed ? ONX_INT8 : ONX_UINT8, 4, (int64_t[]){ 1, AVERAGE_C, AVERAGE_H, AVERAGE_W });
    onx_value *out[1] = { NULL };
    onx_doc *doc = NULL;
    for (uint64_t n = 0; n < x->count; n++)
        ((uint8_t *)x->data)[n] = (uint8_t)(below(s, 64) + (is_signed ? 240 : 0));
    begin(w);
    add(w,
        "%s[1, %d, %d, %d] x) => (%s[] y) <float s = {0.05}, float t = {0.025}, %s z = {3}, %s o = {5}> {\n"
        " y = com.microsoft.QLinearAveragePool <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1], "
        "count_include_pad = %d> (x, s, z, t, o)\n}\n",
        type, AVERAGE_C, AVERAGE_H, AVERAGE_W, type, type, type, pads);
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    const onx_session_options options = { .threads = 1, .isa = isa };
    assert_string_equal(run(doc, "QAveragePool", &options, (const onx_value *const[]){ x }, out), "channels");
    const int64_t *dims = out[0]->dims;
    for (uint64_t n = 0; n < out[0]->count; n++) {
        const int want =
            average_by_definition(x->data, is_signed, (uint32_t)((int64_t)n / (dims[2] * dims[3])),
                                  (int)((int64_t)n / dims[3] % dims[2]), (int)((int64_t)n % dims[3]), pads);
        assert_int_equal((int)onxi_value_number(out[0], n), want);
    }
    onx_value_free(x);
    onx_value_free(out[0]);
    onx_doc_free(doc);
}

static void test_kernel_microsoft__averages_of_bytes(void **state)
{
    static writer w;
    source s = { 37 };
    (void)state;
    if (!has("QLinearAveragePool"))
        skip();
    for (unsigned isa = (unsigned)ONX_ISA_BASE; isa < (unsigned)ONX_ISA_END; isa++)
        for (unsigned k = 0; k < 4; k++)
            compare_averages(&s, &w, isa, k % 2, k / 2);
}

/* ---- distances ---- */

/* Vectors that are close to each other and far from 0, and one with NaN and infinities. */
static onx_value *points(source *s, uint32_t count, uint32_t size, bool special)
{
    onx_value *v = floats(s, 2, (int64_t[]){ count, size });
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = 1000 + ((float *)v->data)[i] / 64;
    for (uint64_t i = 0; special && i < size && v->count; i++)
        ((float *)v->data)[v->count - 1 - i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    return v;
}

static void test_kernel_microsoft__distances(void **state)
{
    static const uint32_t counts[] = { 0, 1, 3, 7, 8, 17, 33, 65, 129 }, sizes[] = { 0, 1, 2, 15, 16, 33, 257, 513 };
    static writer w;
    source s = { 41 };
    (void)state;
    if (!has("CDist"))
        skip();
    for (uint32_t turn = 0; turn < 72; turn++) {
        const uint32_t m = counts[turn % 9], n = counts[below(&s, 9)], size = sizes[turn / 9];
        begin(&w);
        add(&w, "float[%u, %u] a, float[%u, %u] b) => (float[%u, %u] y)\n{\n", m, size, n, size, m, n);
        add(&w, " p = Cast <to = %d> (a)\n q = Cast <to = %d> (b)\n", turn % 2 ? ONX_DOUBLE : ONX_FLOAT,
            turn % 2 ? ONX_DOUBLE : ONX_FLOAT);
        add(&w, " d = com.microsoft.CDist <metric = \"%s\"> (p, q)\n y = Cast <to = 1> (d)\n}\n",
            below(&s, 2) ? "euclidean" : "sqeuclidean");
        onx_value *in[] = { points(&s, m, size, turn % 5 == 0), points(&s, n, size, turn % 7 == 0) };
        assert_string_equal(compare_any(&w, "CDist", (const onx_value *const *)in, 8), "simd");
        onx_value_free(in[0]);
        onx_value_free(in[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel_microsoft__halves),
                                        cmocka_unit_test(test_kernel_microsoft__caches),
                                        cmocka_unit_test(test_kernel_microsoft__rows_of_bytes),
                                        cmocka_unit_test(test_kernel_microsoft__quantized_layers),
                                        cmocka_unit_test(test_kernel_microsoft__real_weights),
                                        cmocka_unit_test(test_kernel_microsoft__scores),
                                        cmocka_unit_test(test_kernel_microsoft__experts),
                                        cmocka_unit_test(test_kernel_microsoft__pairs_of_bytes),
                                        cmocka_unit_test(test_kernel_microsoft__bytes_between_quantizers),
                                        cmocka_unit_test(test_kernel_microsoft__averages_of_bytes),
                                        cmocka_unit_test(test_kernel_microsoft__distances) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
