/* test_kernel_norms.c - normalizations and sums of elements near the limits of float, where squares and sums overflow
 * although the results do not, and of elements that differ only in their last digits: by the plain rows, which compute
 * in double, and by others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

static const struct range {
    float low, high;
} ranges[] = {
    { -3e38f, 3e38f },   { 1e38f, 3.4e38f }, { 1e37f, 3e37f },   { -3e19f, 3e19f },
    { -1e-25f, 1e-25f }, { 1e-38f, 2e-38f }, { 1000, 1000.01f }, { -2, 2 },
};
enum { RANGES = sizeof ranges / sizeof *ranges };

static onx_value *numbers(source *s, const struct range *r, uint32_t rank, const int64_t *dims)
{
    onx_value *v = tensor(ONX_FLOAT, rank, dims);
    for (uint64_t i = 0; i < v->count; i++) {
        const double t = (double)below(s, 1u << 20) / (1u << 20);
        ((float *)v->data)[i] = (float)((double)r->low * (1 - t) + (double)r->high * t);
    }
    return v;
}

static void test_kernel_norms__normalizations_are_the_same(void **state)
{
    static const char *const ops[] = { "LayerNormalization", "RMSNormalization", "InstanceNormalization",
                                       "GroupNormalization" };
    static const char *const nodes[] = {
        "LayerNormalization <axis = 2, epsilon = 0.0> (x, a, b)",
        "RMSNormalization <axis = 2, epsilon = 0.0> (x, a)",
        "InstanceNormalization <epsilon = 0.0> (x, a, b)",
        "GroupNormalization <num_groups = 2, epsilon = 0.0> (x, a, b)",
    };
    static writer w;
    source s = { 41 };
    unsigned fast = 0;
    (void)state;
    for (unsigned turn = 0; turn < 4 * RANGES * 4; turn++) {
        const unsigned op = turn % 4, scaled = op < 2 ? 2 : 1;
        const int64_t size[3] = { 1 + below(&s, 3), 2 * (1 + below(&s, 3)), 3 + below(&s, turn % 3 ? 40 : 3000) };
        onx_value *x = numbers(&s, &ranges[turn / 4 % RANGES], 3, size);
        onx_value *a = floats(&s, 1, &size[scaled]), *b = floats(&s, 1, &size[scaled]);
        w.len = 0;
        add(&w,
            "<ir_version: 11, opset_import: [\"\" : 23]> g (float[N, C, L] x, float[S] a, float[S] b) =>"
            " (float[N, C, L] y) { y = %s }",
            nodes[op]);
        fast += strcmp(compare_any(&w, ops[op], (const onx_value *const[]){ x, a, b }, 200), "plain") != 0;
        onx_value_free(x);
        onx_value_free(a);
        onx_value_free(b);
    }
    assert_int_equal(fast, 4 * RANGES * 4);
}

/* The same of halves of floats, in stretches and longer: rounded once, as the plain rows do it, but for sums in float.
 */
static void test_kernel_norms__halves_are_the_same(void **state)
{
    static const char *const ops[] = { "LayerNormalization", "RMSNormalization", "InstanceNormalization",
                                       "GroupNormalization" };
    static const char *const nodes[] = { "LayerNormalization <axis = 2> (v, c, d)",
                                         "RMSNormalization <axis = 2> (v, c)", "InstanceNormalization (v, c, d)",
                                         "GroupNormalization <num_groups = 2> (v, c, d)" };
    static writer w;
    source s = { 61 };
    (void)state;
    for (unsigned turn = 0; turn < 64; turn++) {
        const unsigned op = turn % 4, scaled = op < 2 ? 2 : 1, type = turn / 4 % 2 ? ONX_BFLOAT16 : ONX_FLOAT16;
        const int64_t size[3] = { 1 + below(&s, 3), 2 * (1 + below(&s, 3)), 3 + below(&s, turn % 3 ? 40 : 1500) };
        onx_value *x = floats(&s, 3, size), *a = floats(&s, 1, &size[scaled]), *b = floats(&s, 1, &size[scaled]);
        if (turn % 16 > 12)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = turn % 16 == 13 ? NAN : INFINITY;
        w.len = 0;
        add(&w,
            "<ir_version: 11, opset_import: [\"\" : 23]> g (float[N, C, L] x, float[S] a, float[S] b) =>"
            " (float[N, C, L] y) { v = Cast <to = %u> (x) c = Cast <to = %u> (a) d = Cast <to = %u> (b) u = %s"
            " y = Cast <to = 1> (u) }",
            type, type, type, nodes[op]);
        const char *variant =
            compare_any(&w, ops[op], (const onx_value *const[]){ x, a, b }, type == ONX_FLOAT16 ? 0x1p13 : 0x1p16);
        assert_string_not_equal(variant, "plain");
        onx_value_free(x);
        onx_value_free(a);
        onx_value_free(b);
    }
}

/* Lines of a few elements, many of them, a number of scale for all elements or one for each; some lines of numbers near
 * the limits of float or of the same numbers, with NaN or infinity. */
static void test_kernel_norms__short_normalizations_are_the_same(void **state)
{
    static const struct {
        onx_dtype dtype;
        double ulp;
    } types[] = { { ONX_FLOAT, 200 }, { ONX_FLOAT16, 0x1p13 }, { ONX_BFLOAT16, 0x1p16 } };
    static const struct range odd[] = { { -3e38f, 3e38f }, { -1e-25f, 1e-25f },    { 3, 3 },  { 0, 0 },
                                        { NAN, NAN },      { INFINITY, INFINITY }, { 0, NAN } };
    static const char *const nodes[] = { "LayerNormalization <axis = 1> (v, c, d)",
                                         "RMSNormalization <axis = 1> (v, c)",
                                         "LayerNormalization <axis = 1, epsilon = 0.0> (v, c)" };
    static writer w;
    source s = { 62 };
    (void)state;
    for (unsigned turn = 0; turn < 216; turn++) {
        const unsigned op = turn % 3, type = turn / 3 % 3;
        const int64_t size[2] = { 1 + below(&s, turn % 10 ? 70 : 2000), 2 + below(&s, 68) };
        const int64_t scales = turn / 9 % 3 ? size[1] : 1;
        onx_value *x = floats(&s, 2, size), *a = floats(&s, 1, &scales), *b = floats(&s, 1, &scales);
        for (uint32_t i = 0; i < turn / 27 % 4; i++) {
            const struct range *r = &odd[below(&s, type ? 7 : 5)];
            onx_value *line = numbers(&s, r, 1, &size[1]);
            memcpy((float *)x->data + below(&s, (uint32_t)size[0]) * (uint64_t)size[1], line->data,
                   (uint64_t)size[1] * sizeof(float));
            onx_value_free(line);
        }
        w.len = 0;
        add(&w,
            "<ir_version: 11, opset_import: [\"\" : 23]> g (float[N, C] x, float[S] a, float[S] b) =>"
            " (float[N, C] y) { v = Cast <to = %u> (x) c = Cast <to = %u> (a) d = Cast <to = %u> (b) u = %s"
            " y = Cast <to = 1> (u) }",
            types[type].dtype, types[type].dtype, types[type].dtype, nodes[op]);
        const char *name = op == 1 ? "RMSNormalization" : "LayerNormalization";
        assert_string_not_equal(compare_any(&w, name, (const onx_value *const[]){ x, a, b }, types[type].ulp), "plain");
        onx_value_free(x);
        onx_value_free(a);
        onx_value_free(b);
    }
}

/* Rows of features, whole vectors of them and not, with and without what follows, which may read the features, too. */
static void test_kernel_norms__features_are_the_same(void **state)
{
    static writer w;
    source s = { 52 };
    static const char *const follow[] = { "Softplus (t)", "Relu (t)", "Add (t, x)" };
    (void)state;
    for (unsigned turn = 0; turn < 40; turn++) {
        const int64_t n = 1 + below(&s, 40), c = turn % 2 ? 16 * (1 + below(&s, 9)) : 16 + below(&s, 200);
        onx_value *x = floats(&s, 2, (int64_t[]){ n, c });
        if (turn % 8 == 7)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = turn % 16 == 7 ? NAN : INFINITY;
        w.len = 0;
        add(&w, "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[N, C] x) => (float[N, C] y) <");
        for (unsigned i = 0; i < 4; i++) {
            add(&w, "%sfloat[%lld] c%u = {", i ? ", " : "", (long long)c, i);
            for (int64_t k = 0; k < c; k++)
                add(&w, "%s%.3f", k ? ", " : "", (double)between(&s, i == 3 ? 0.1f : -2, 2));
            add(&w, "}");
        }
        add(&w, "> {\n t = BatchNormalization (x, c0, c1, c2, c3)\n y = %s\n}\n", follow[turn % 3]);
        assert_string_equal(compare_any(&w, "BatchNormalization", (const onx_value *const[]){ x }, 20), "simd");
        onx_value_free(x);
    }
}

/* What ran right before the normalization, which a change of layout is not. */
static void note_before(void *user, const onx_run_event *event)
{
    onx_str *before = user;
    before[2] = onx_str_is(event->op_type, "GroupNormalization") ? before[1] : before[2];
    before[1] = onx_str_is(event->op_type, "Conv")      ? onx_str_of("Conv")
                : onx_str_is(event->op_type, "Reorder") ? onx_str_of("Reorder")
                                                        : before[1];
}

static bool is_taken_as_it_lies(const writer *w, const onx_value *const *in)
{
    onx_doc *doc;
    onx_session *session;
    onx_value *y = NULL;
    onx_str before[3] = { { 0 } };
    const onx_run_options watch = { .event = note_before, .user = before };
    const onx_session_options options = { .threads = 1 };
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &options, &session), ONX_OK);
    assert_int_equal(onx_session_run_with(session, cx, in, &y, &watch), ONX_OK);
    onx_value_free(y);
    onx_session_free(session);
    onx_doc_free(doc);
    return onx_str_is(before[2], "Conv");
}

/* Behind a convolution that leaves everything as it is, but for how it lies, and with a function behind it, or a sum
 * with what the convolution gave: groups that are less than a block of channels, one, and several. */
static void test_kernel_norms__groups_of_blocks(void **state)
{
    static const unsigned groups[] = { 1, 2, 4, 8, 32 };
    static const char *const functions[] = { "Relu (n)", "Swish (n)", "Identity (n)", "Add (n, c)" };
    static writer w;
    source s = { 43 };
    unsigned blocks = 0;
    (void)state;
    for (unsigned turn = 0; turn < 5 * RANGES; turn++) {
        const int64_t size[4] = { 1 + below(&s, 2), 32, 1 + below(&s, 12), 1 + below(&s, 40) };
        onx_value *x = numbers(&s, &ranges[turn / 5], 4, size);
        onx_value *a = floats(&s, 1, &size[1]), *b = floats(&s, 1, &size[1]);
        const onx_value *const in[] = { x, a, b };
        w.len = 0;
        add(&w,
            "<ir_version: 11, opset_import: [\"\" : 24]> g (float[N, 32, H, W] x, float[32] a, float[32] b) =>"
            " (float[N, 32, H, W] y) <int64[2] two = {32, 32}, int64[4] four = {32, 32, 1, 1}> {"
            " z = ConstantOfShape (two) e = EyeLike (z) k = Reshape (e, four) c = Conv (x, k)"
            " n = GroupNormalization <num_groups = %u, epsilon = 0.0> (c, a, b) y = %s }",
            groups[turn % 5], functions[turn % 4]);
        compare_any(&w, "GroupNormalization", in, 400);
        blocks += is_taken_as_it_lies(&w, in);
        onx_value_free(x);
        onx_value_free(a);
        onx_value_free(b);
    }
    assert_true(blocks == 5 * RANGES);
}

/* Along lines and across them. Results are brought near 1, where they are compared. */
static void test_kernel_norms__sums_are_the_same(void **state)
{
    static const char *const ops[] = { "ReduceMean", "ReduceL2", "ReduceSumSquare" };
    static writer w;
    source s = { 42 };
    (void)state;
    for (unsigned turn = 0; turn < 3 * RANGES * 4; turn++) {
        const struct range *r = &ranges[turn / 3 % RANGES];
        const int64_t size[2] = { 1 + below(&s, 50), 1 + below(&s, 900) };
        onx_value *x = numbers(&s, r, 2, size);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 18]> g (float[N, M] x) => (float[A, B] y) {"
            " axes = Constant <value_ints = [%u]> () size = Constant <value_float = %.8e> ()"
            " sum = %s (x, axes) y = Div (sum, size) }",
            turn / (3 * RANGES) % 2, (double)r->high, ops[turn % 3]);
        compare_any(&w, ops[turn % 3], (const onx_value *const[]){ x }, 100);
        onx_value_free(x);
    }
}

/* Extremes, where they are, products and sums of powers: along lines and across them, of lengths and widths around
 * those of vectors and blocks; with NaN, infinities and numbers that are the same. */
static void test_kernel_norms__extremes_and_powers_are_the_same(void **state)
{
    static const char *const ops[] = { "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp", "ArgMax", "ArgMin" };
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f };
    static writer w;
    source s = { 53 };
    (void)state;
    for (unsigned turn = 0; turn < 240; turn++) {
        const unsigned kind = turn % 6;
        const bool is_arg = kind > 3, is_product = kind == 2;
        const int64_t lines = turn % 3 ? 1 + below(&s, 200) : 900 + below(&s, 300);
        const int64_t dims[] = { 1 + below(&s, 3), lines, turn % 2 ? 1 : 1 + below(&s, 300) };
        onx_value *x = floats(&s, 3, dims);
        for (uint64_t i = 0; i < x->count; i++) {
            float *v = (float *)x->data + i;
            *v = is_product ? exp2f(rintf(*v * 8)) : rintf(*v * 40) / 4; /* exact; many are the same */
        }
        for (uint32_t i = 0; i < turn / 6 % 4; i++)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[below(&s, 5)];
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]> g (float[A, B, C] x) => (%s[A, D, C] y) <int64[1] axes = {1}> {",
            is_arg ? "int64" : "float");
        if (is_arg)
            add(&w, " y = %s <axis = 1, select_last_index = %u> (x) }\n", ops[kind], turn / 12 % 2);
        else
            add(&w, " y = %s (x, axes) }\n", ops[kind]);
        assert_string_not_equal(compare_any(&w, ops[kind], (const onx_value *const[]){ x }, 8), "plain");
        onx_value_free(x);
    }
}

/* Lines of a few elements, as many as fill vectors and more or fewer, with NaN, infinities and sums that overflow. */
static void test_kernel_norms__short_lines_are_the_same(void **state)
{
    static const char *const ops[] = { "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean",      "ReduceL1",
                                       "ReduceL2",  "ReduceMax", "ArgMax",    "ReduceSumSquare", "ArgMin" };
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, 3e38f };
    static writer w;
    source s = { 55 };
    (void)state;
    for (unsigned turn = 0; turn < 200; turn++) {
        const char *op = ops[turn % (sizeof ops / sizeof *ops)];
        const bool is_arg = op[0] == 'A';
        const int64_t dims[] = { 1 + below(&s, turn % 10 ? 70 : 3000), 2 + below(&s, 68) };
        onx_value *x = floats(&s, 2, dims);
        for (uint64_t i = 0; is_arg && i < x->count; i++) /* many are the same */
            ((float *)x->data)[i] = rintf(((float *)x->data)[i] * 8);
        for (uint32_t i = 0; i < turn / 10 % 4; i++)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[below(&s, 5)];
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20]> g (float[A, B] x) => (%s[C] y) <int64[1] axes = {1}> {",
            is_arg ? "int64" : "float");
        add(&w, " y = %s <%s, keepdims = 0> (%s) }\n", op,
            !is_arg        ? "noop_with_empty_axes = 1"
            : below(&s, 2) ? "axis = 1"
                           : "axis = 1, select_last_index = 1",
            is_arg ? "x" : "x, axes");
        assert_string_not_equal(compare_any(&w, op, (const onx_value *const[]){ x }, 20), "plain");
        onx_value_free(x);
    }
}

/* The same of halves of floats, in lines of any length up to those that are reduced one by one; infinities, NaN, and
 * elements whose squares leave the range of float. */
static void test_kernel_norms__lines_of_halves_are_the_same(void **state)
{
    static const char *const ops[] = { "ReduceMax", "ReduceMin", "ReduceSum",      "ReduceMean",
                                       "ReduceL1",  "ReduceL2",  "ReduceSumSquare" };
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, -1e30f, 1e-30f };
    static writer w;
    source s = { 56 };
    (void)state;
    for (unsigned turn = 0; turn < 210; turn++) {
        const char *op = ops[turn % 7];
        const bool brain = turn / 7 % 2;
        const int64_t dims[] = { 1 + below(&s, 70), 2 + below(&s, turn % 3 ? 68 : 1200) };
        onx_value *x = floats(&s, 2, dims);
        for (uint32_t i = 0; i < turn / 14 % 4; i++)
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[below(&s, 6)];
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 20]> g (float[A, B] x) => (float[C] y) <int64[1] axes = {1}> {"
            " v = Cast <to = %d> (x) u = %s <keepdims = 0> (v, axes) y = Cast <to = 1> (u) }",
            brain ? ONX_BFLOAT16 : ONX_FLOAT16, op);
        assert_string_not_equal(compare_any(&w, op, (const onx_value *const[]){ x }, brain ? 0x1p17 : 0x1p14), "plain");
        onx_value_free(x);
    }
}

/* Whole numbers of every type, over axes that are neighbours and that are not, with lines of a few elements and of
 * many, so that all ways are taken; with NaN where there is one. */
static void test_kernel_norms__all_types_are_the_same(void **state)
{
    static const struct {
        onx_dtype dtype;
        const char *name;
    } all[] = { { ONX_DOUBLE, "double" }, { ONX_FLOAT16, "float16" }, { ONX_BFLOAT16, "bfloat16" },
                { ONX_INT32, "int32" },   { ONX_INT64, "int64" },     { ONX_UINT32, "uint32" },
                { ONX_UINT64, "uint64" }, { ONX_FLOAT, "float" },     { ONX_INT8, "int8" },
                { ONX_UINT8, "uint8" },   { ONX_INT16, "int16" },     { ONX_UINT16, "uint16" } };
    static const char *const axes[] = { "0", "1", "2", "0, 2", "0, 1", "1, 2", "0, 1, 2" };
    static const char *const ops[] = { "ReduceMax", "ReduceMin",       "ReduceSum",    "ReduceMean",      "ReduceProd",
                                       "ReduceL2",  "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceL1" };
    static writer w;
    source s = { 54 };
    (void)state;
    for (unsigned turn = 0; turn < 12 * 7 * 8; turn++) {
        const unsigned type = turn % 12, bits = onx_dtype_bits(all[type].dtype);
        const bool real = onx_dtype_class_of(all[type].dtype) == ONX_CLASS_FLOATING;
        const bool is_float = all[type].dtype == ONX_FLOAT;
        const unsigned kinds = bits > 16 && !is_float ? 10 : real ? 8 : bits == 8 ? 2 : 0, kind = below(&s, kinds + 2);
        const bool is_arg = kind >= kinds, is_product = kinds > 4 && kind == 4, positive = kinds > 7 && kind == 7;
        const bool is_signed = real || all[type].dtype == ONX_INT32 || all[type].dtype == ONX_INT64;
        const bool rounds = kinds == 10 && kind == 8, negative = kinds == 10 && kind > 7 && is_signed;
        const int64_t most[] = { 40, 150, turn % 5 ? 12 : 1500 };
        const bool many = turn % 7 == 6; /* axes */
        const int64_t last = 1 + below(&s, (uint32_t)most[2]);
        const int64_t few_dims[] = { 1 + below(&s, 40), 1 + below(&s, 150), last };
        const int64_t many_dims[] = { 1 + below(&s, 4), 1 + below(&s, 5), 1 + below(&s, 6), 1 + below(&s, 5), last };
        const int64_t *dims = many ? many_dims : few_dims;
        onx_value *wide = tensor(ONX_FLOAT, many ? 5 : 3, dims), *x = tensor(all[type].dtype, many ? 5 : 3, dims);
        for (uint64_t i = 0; i < x->count; i++)
            ((float *)wide->data)[i] = is_product ? below(&s, 20000) ? 1 : 2
                                       : positive ? 1 + (float)below(&s, 4)
                                                  : (float)below(&s, 9) - (negative ? 4 : 0);
        if (real && turn % 3 == 0)
            ((float *)wide->data)[below(&s, (uint32_t)x->count)] = NAN;
        assert_int_equal(onx_convert(all[type].dtype, x->data, ONX_FLOAT, wide->data, x->count, true), ONX_OK);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20]> g (%s[] x) => (%s[] y) {", all[type].name,
            rounds ? "float" : "double");
        if (is_arg)
            add(&w, " z = ArgM%s <axis = %u, select_last_index = %u> (x)", kind > kinds ? "ax" : "in", below(&s, 3),
                below(&s, 2));
        else
            add(&w, " axes = Constant <value_ints = [%s]> () z = %s (x, axes)",
                many ? turn % 2 ? "0, 2, 4" : "1, 3" : axes[turn / 12 % 7], ops[kind]);
        add(&w, " y = Cast <to = %d> (z) }", rounds ? ONX_FLOAT : ONX_DOUBLE);
        compare_any(&w, "Cast", (const onx_value *const[]){ x }, 8);
        onx_value_free(wide);
        onx_value_free(x);
    }
}

/* Floats with many equal elements, both zeros, infinities and NaN of both signs, in lines and columns. */
static void test_kernel_norms__classes_are_the_same(void **state)
{
    static const struct {
        const char *name;
        onx_dtype dtype;
    } all[] = {
        { "float", ONX_FLOAT }, { "float16", ONX_FLOAT16 }, { "bfloat16", ONX_BFLOAT16 }, { "double", ONX_DOUBLE }
    };
    static const float odd[] = { NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-7f };
    static writer w;
    source s = { 31 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const unsigned type = turn % 4, kind = turn / 4 % 3;
        const int64_t dims[] = { 1 + below(&s, 4), 1 + below(&s, turn % 5 ? 70 : 700),
                                 1 + below(&s, turn % 7 ? 20 : 400) };
        onx_value *wide = floats(&s, 3, dims), *x = tensor(all[type].dtype, 3, dims);
        const uint32_t rare = 1 + below(&s, 30);
        for (uint64_t i = 0; i < x->count; i++) {
            float *v = (float *)wide->data + i;
            *v = below(&s, rare) ? rintf(*v * 20) : odd[turn % 2 ? below(&s, 7) : 2 + below(&s, 5)];
        }
        assert_int_equal(onx_convert(all[type].dtype, x->data, ONX_FLOAT, wide->data, x->count, true), ONX_OK);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20]> g (%s[A, B, C] x) => (%s[A, B, C] y) {", all[type].name,
            kind ? "bool" : all[type].name);
        if (kind == 0)
            add(&w, " y = Hardmax <axis = %u> (x) }", below(&s, 3));
        else if (kind == 1)
            add(&w, " y = IsNaN (x) }");
        else
            add(&w, " y = IsInf <detect_negative = %u, detect_positive = %u> (x) }", below(&s, 2), below(&s, 2));
        assert_string_not_equal(
            compare_any(&w, kind ? kind == 1 ? "IsNaN" : "IsInf" : "Hardmax", (const onx_value *const[]){ x }, 0),
            "plain");
        onx_value_free(wide);
        onx_value_free(x);
    }
}

/* Softmax of doubles and floats, in lines and columns of all lengths of the last vector. */
static void test_kernel_norms__softmax_is_the_same(void **state)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN, 1e30f, -1e30f };
    static writer w;
    source s = { 37 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const bool doubles = turn / 6 % 2;
        const int64_t dims[] = { 1 + below(&s, 4), 1 + below(&s, 90), 1 + below(&s, turn % 5 ? 70 : 300) };
        onx_value *x = floats(&s, 3, dims);
        for (uint64_t i = 0; i < x->count; i++)
            ((float *)x->data)[i] = turn % 3 || below(&s, 300) ? ((float *)x->data)[i] * 30 : odd[below(&s, 5)];
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 20]> g (float[A, B, C] x) => (float[A, B, C] y) {"
            " a = Cast <to = %d> (x) b = %s <axis = %u> (a) y = Cast <to = 1> (b) }",
            doubles ? 11 : 1, turn % 2 ? "Softmax" : "LogSoftmax", turn / 2 % 3);
        compare_any(&w, "Softmax", (const onx_value *const[]){ x }, doubles ? 2 : 60);
        onx_value_free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_norms__normalizations_are_the_same),
        cmocka_unit_test(test_kernel_norms__halves_are_the_same),
        cmocka_unit_test(test_kernel_norms__short_normalizations_are_the_same),
        cmocka_unit_test(test_kernel_norms__features_are_the_same),
        cmocka_unit_test(test_kernel_norms__groups_of_blocks),
        cmocka_unit_test(test_kernel_norms__sums_are_the_same),
        cmocka_unit_test(test_kernel_norms__extremes_and_powers_are_the_same),
        cmocka_unit_test(test_kernel_norms__short_lines_are_the_same),
        cmocka_unit_test(test_kernel_norms__lines_of_halves_are_the_same),
        cmocka_unit_test(test_kernel_norms__all_types_are_the_same),
        cmocka_unit_test(test_kernel_norms__classes_are_the_same),
        cmocka_unit_test(test_kernel_norms__softmax_is_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
