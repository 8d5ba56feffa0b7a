/* test_kernel_moves.c - operators that move or select elements, at sizes around those of tiles and blocks, compared
 * with a loop over elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "value/value.h"

#include "unit/variants.h"

#include <stdlib.h>

static const int64_t sizes[] = { 1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 40 };
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Runs the text on two inputs at most, with one thread and with two, which have to agree; the outputs of the first. */
static void run_text(const writer *w, const char *op, const onx_value *const *in, onx_value **out, uint32_t count)
{
    onx_doc *doc = NULL;
    onx_value *again[2] = { NULL, NULL };
    onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    run(doc, op, &(onx_session_options){ .threads = 1 }, in, out);
    run(doc, op, &(onx_session_options){ .threads = 2 }, in, again);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(near_enough(out[i], again[i], 0));
        onx_value_free(again[i]);
    }
    onx_doc_free(doc);
}

/* The offset of an element in a tensor of these dims, from its position. */
static uint64_t offset_of(const int64_t *dims, const int64_t *pos, uint32_t rank)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < rank; d++)
        at = at * (uint64_t)dims[d] + (uint64_t)pos[d];
    return at;
}

static bool next_position(const int64_t *dims, int64_t *pos, uint32_t rank)
{
    for (uint32_t d = rank; d-- > 0; pos[d] = 0)
        if (++pos[d] < dims[d])
            return true;
    return false;
}

static const onx_dtype types[] = { ONX_FLOAT, ONX_DOUBLE, ONX_UINT8, ONX_FLOAT16, ONX_COMPLEX128 };
static const char *const type_names[] = { "float", "double", "uint8", "float16", "complex128" };

/* Bytes that are all different for a while. */
static onx_value *numbered(onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    onx_value *x = tensor(dtype, rank, dims);
    const uint32_t width = onx_dtype_bits((int32_t)dtype) / 8;
    memset(x->data, 0, x->size);
    for (uint64_t i = 0; i < x->count; i++)
        for (uint32_t b = 0; b < 2 && b < width; b++)
            ((char *)x->data)[i * width + b] = (char)(i >> (8 * b));
    return x;
}

static void test_kernel_moves__transposing(void **state)
{
    enum { RANK = 4 };
    static writer w;
    source s = { 11 };
    (void)state;
    for (unsigned turn = 0; turn < 300; turn++) {
        int64_t dims[RANK], perm[RANK] = { 0, 1, 2, 3 }, out_dims[RANK], pos[RANK] = { 0 };
        for (uint32_t d = RANK; d-- > 1;) { /* any order */
            const uint32_t k = below(&s, d + 1);
            const int64_t t = perm[d];
            perm[d] = perm[k];
            perm[k] = t;
        }
        for (uint32_t d = 0; d < RANK; d++)
            dims[d] = below(&s, 3) ? sizes[below(&s, SIZES)] : 1 + below(&s, 2);
        for (uint32_t d = 0; d < RANK; d++)
            out_dims[d] = dims[perm[d]];
        const uint32_t type = below(&s, 5), width = onx_dtype_bits((int32_t)types[type]) / 8;
        onx_value *x = numbered(types[type], RANK, dims), *y = NULL;
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17]> g (%s[A, B, C, D] x) => (%s[E, F, G, H] y) {"
            " y = Transpose <perm = [%d, %d, %d, %d]> (x) }",
            type_names[type], type_names[type], (int)perm[0], (int)perm[1], (int)perm[2], (int)perm[3]);
        run_text(&w, "Transpose", (const onx_value *const[]){ x }, &y, 1);
        do {
            int64_t from[RANK];
            for (uint32_t d = 0; d < RANK; d++)
                from[perm[d]] = pos[d];
            assert_memory_equal((const char *)y->data + offset_of(out_dims, pos, RANK) * width,
                                (const char *)x->data + offset_of(dims, from, RANK) * width, width);
        } while (next_position(out_dims, pos, RANK));
        onx_value_free(x);
        onx_value_free(y);
    }
}

/* Pixels of a few elements to planes, and back: as many pixels as fill vectors, and more or fewer. */
static void test_kernel_moves__pixels(void **state)
{
    static writer w;
    source s = { 13 };
    (void)state;
    for (unsigned turn = 0; turn < 400; turn++) {
        const bool back = turn % 2;
        const int64_t n = 1 + below(&s, 3), few = 2 + below(&s, 8), many = 1 + below(&s, turn % 9 ? 90 : 4000);
        const int64_t dims[] = { n, back ? few : many, back ? many : few };
        const uint32_t type = below(&s, 5), width = onx_dtype_bits((int32_t)types[type]) / 8;
        onx_value *x = numbered(types[type], 3, dims), *y = NULL;
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17]> g (%s[A, B, C] x) => (%s[A, C, B] y) {"
            " y = Transpose <perm = [0, 2, 1]> (x) }",
            type_names[type], type_names[type]);
        run_text(&w, "Transpose", (const onx_value *const[]){ x }, &y, 1);
        for (int64_t i = 0; i < n; i++)
            for (int64_t b = 0; b < dims[1]; b++)
                for (int64_t c = 0; c < dims[2]; c++)
                    assert_memory_equal((const char *)y->data + ((i * dims[2] + c) * dims[1] + b) * width,
                                        (const char *)x->data + ((i * dims[1] + b) * dims[2] + c) * width, width);
        onx_value_free(x);
        onx_value_free(y);
    }
}

static void test_kernel_moves__expanding(void **state)
{
    enum { RANK = 3 };
    static writer w;
    source s = { 12 };
    (void)state;
    for (unsigned turn = 0; turn < 150; turn++) {
        int64_t dims[RANK], out_dims[RANK], pos[RANK] = { 0 };
        for (uint32_t d = 0; d < RANK; d++) {
            out_dims[d] = sizes[below(&s, SIZES)];
            dims[d] = below(&s, 2) ? 1 : out_dims[d];
        }
        const uint32_t type = below(&s, 5), width = onx_dtype_bits((int32_t)types[type]) / 8;
        onx_value *x = numbered(types[type], RANK, dims), *y = NULL;
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17]> g (%s[A, B, C] x) => (%s[D, E, F] y) {"
            " to = Constant <value_ints = [%d, %d, %d]> () y = Expand (x, to) }",
            type_names[type], type_names[type], (int)out_dims[0], (int)out_dims[1], (int)out_dims[2]);
        run_text(&w, "Expand", (const onx_value *const[]){ x }, &y, 1);
        do {
            int64_t from[RANK];
            for (uint32_t d = 0; d < RANK; d++)
                from[d] = dims[d] == 1 ? 0 : pos[d];
            assert_memory_equal((const char *)y->data + offset_of(out_dims, pos, RANK) * width,
                                (const char *)x->data + offset_of(dims, from, RANK) * width, width);
        } while (next_position(out_dims, pos, RANK));
        onx_value_free(x);
        onx_value_free(y);
    }
}

/* Whether a comes before b: NaN is greater than all others, and -0 is 0. */
static bool comes_first(float a, float b, bool largest)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? false : largest ? isnan(a) : isnan(b);
    return largest ? a > b : a < b;
}

/* Lines with numbers that are equal, with NaN and infinities, with most of the first at the end. */
static void test_kernel_moves__choosing(void **state)
{
    static const int64_t lengths[] = { 1, 2, 15, 16, 17, 33, 100, 1000 };
    static const int64_t inners[] = {
        1, 1, 3, 16, 37, 130
    }; /* lines side by side, fewer and more than are taken at once */
    static const float odd[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f };
    static writer w;
    source s = { 13 };
    (void)state;
    for (unsigned turn = 0; turn < 200; turn++) {
        const int64_t n = lengths[below(&s, 8)], k = below(&s, 4) ? 1 + below(&s, (uint32_t)(n < 20         ? n
                                                                                             : below(&s, 2) ? 20
                                                                                                            : n))
                                                                  : 1;
        const int64_t inner = inners[below(&s, 6)], dims[] = { 3, n, inner };
        const bool largest = below(&s, 2);
        const uint32_t kind = below(&s, 4);
        onx_value *x = floats(&s, 3, dims), *out[2] = { NULL, NULL };
        float *v = x->data;
        for (uint64_t i = 0; i < x->count; i++)
            v[i] = kind == 1   ? (float)below(&s, 5)
                   : kind == 2 ? (below(&s, 3) ? v[i] : odd[below(&s, 6)])
                   : kind == 3 ? (float)i
                               : v[i];
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17]> g (float[A, B, C] x) => (float[A, D, C] y, int64[A, D, C] i) {"
            " k = Constant <value_ints = [%d]> () y, i = TopK <axis = 1, largest = %d> (x, k) }",
            (int)k, largest);
        run_text(&w, "TopK", (const onx_value *const[]){ x }, out, 2);
        for (int64_t line = 0; line < 3 * inner; line++) {
            const float *from = v + line / inner * n * inner + line % inner;
            bool taken[1000] = { false };
            for (int64_t r = 0; r < k; r++) {
                const uint64_t to = (uint64_t)((line / inner * k + r) * inner + line % inner);
                int64_t best = -1;
                for (int64_t i = 0; i < n; i++)
                    if (!taken[i] && (best < 0 || comes_first(from[i * inner], from[best * inner], largest)))
                        best = i;
                taken[best] = true;
                assert_int_equal(((const int64_t *)out[1]->data)[to], best);
                assert_memory_equal((const float *)out[0]->data + to, from + best * inner, sizeof(float));
            }
        }
        onx_value_free(x);
        onx_value_free(out[0]);
        onx_value_free(out[1]);
    }
}

/* All elements as numbers that compare as they do: of a class of its own each, so that nothing is rounded. */
typedef struct ordered {
    onx_dtype_class class;
    double *real;
    int64_t *whole;
} ordered;

static ordered order_of(const onx_value *x)
{
    ordered o = { .class = onx_dtype_class_of(x->dtype) };
    const size_t count = (size_t)x->count;
    if (o.class == ONX_CLASS_FLOATING) {
        o.real = malloc(count * sizeof *o.real + 1);
        assert_int_equal(onx_convert(ONX_DOUBLE, o.real, x->dtype, x->data, count, false), ONX_OK);
    } else {
        o.whole = malloc(count * sizeof *o.whole + 1);
        const onx_dtype to = o.class == ONX_CLASS_SIGNED ? ONX_INT64 : ONX_UINT64;
        assert_int_equal(onx_convert(to, o.whole, x->dtype, x->data, count, false), ONX_OK);
    }
    return o;
}

/* Whether element a comes before element b: by its number, else by its place. */
static bool is_before(const ordered *o, uint64_t a, uint64_t b, bool largest)
{
    int order;
    if (o->class == ONX_CLASS_FLOATING) {
        const double x = o->real[a], y = o->real[b];
        order = isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
    } else if (o->class == ONX_CLASS_SIGNED) {
        order = (o->whole[a] > o->whole[b]) - (o->whole[a] < o->whole[b]);
    } else {
        order = ((uint64_t)o->whole[a] > (uint64_t)o->whole[b]) - ((uint64_t)o->whole[a] < (uint64_t)o->whole[b]);
    }
    return order ? (order > 0) == largest : a < b;
}

/* A line of the result: elements of the input, each before the next, and all that were left out behind the last. */
static void check_line(const ordered *o, const int64_t *index, int64_t n, int64_t k, int64_t inner, uint64_t from,
                       uint64_t to, bool largest)
{
    bool *taken = calloc((size_t)n + 1, sizeof *taken);
    for (int64_t r = 0; r < k; r++) {
        const int64_t i = index[to + (uint64_t)(r * inner)];
        assert_true(i >= 0 && i < n && !taken[i]);
        taken[i] = true;
        if (r > 0) {
            const int64_t before = index[to + (uint64_t)((r - 1) * inner)];
            assert_true(is_before(o, from + (uint64_t)(before * inner), from + (uint64_t)(i * inner), largest));
        }
    }
    const uint64_t last = from + (uint64_t)(index[to + (uint64_t)((k - 1) * inner)] * inner);
    for (int64_t i = 0; i < n; i++)
        assert_true(taken[i] || is_before(o, last, from + (uint64_t)(i * inner), largest));
    free(taken);
}

/* Every type, with whatever bits, or few different ones; as many as there are, half of them, a few: by a heap and by
 * sorting, whole lines and what may be among the first; adjacent lines together. */
static void test_kernel_moves__choosing_among_all_types(void **state)
{
    static const struct {
        onx_dtype dtype;
        const char *name;
    } all[] = { { ONX_FLOAT, "float" },       { ONX_DOUBLE, "double" }, { ONX_FLOAT16, "float16" },
                { ONX_BFLOAT16, "bfloat16" }, { ONX_INT8, "int8" },     { ONX_INT16, "int16" },
                { ONX_INT32, "int32" },       { ONX_INT64, "int64" },   { ONX_UINT8, "uint8" },
                { ONX_UINT16, "uint16" },     { ONX_UINT32, "uint32" }, { ONX_UINT64, "uint64" } };
    static const int64_t lengths[] = { 4, 20, 48, 49, 64, 130, 600, 2048, 5000 }, inners[] = { 1, 1, 1, 2, 5, 37 };
    static writer w;
    source s = { 15 };
    (void)state;
    for (unsigned turn = 0; turn < 12 * 9 * 4; turn++) {
        const int64_t n = lengths[turn / 12 % 9], inner = inners[below(&s, 6)], dims[] = { 2, n, inner };
        const int64_t some[] = { n, n / 2 + 1, n / 7 + 1, n / 70 + 1 }, k = some[turn / (12 * 9)];
        const uint32_t type = turn % 12, width = onx_dtype_bits((int32_t)all[type].dtype) / 8;
        const bool largest = below(&s, 2), few = below(&s, 2);
        onx_value *x = tensor(all[type].dtype, 3, dims), *out[2] = { NULL, NULL };
        for (uint64_t i = 0; i < x->count * width; i++)
            ((uint8_t *)x->data)[i] = (uint8_t)(few && i % width + 1 < width ? 0 : below(&s, few ? 3 : 256));
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 24]> g (%s[A, B, C] x) => (%s[A, D, C] y, int64[A, D, C] i) {"
            " k = Constant <value_ints = [%d]> () y, i = TopK <axis = 1, largest = %d> (x, k) }",
            all[type].name, all[type].name, (int)k, largest);
        run_text(&w, "TopK", (const onx_value *const[]){ x }, out, 2);
        ordered o = order_of(x);
        const int64_t *index = out[1]->data;
        for (int64_t line = 0; line < 2 * inner; line++) {
            const uint64_t from = (uint64_t)(line / inner * n * inner + line % inner),
                           to = (uint64_t)(line / inner * k * inner + line % inner);
            check_line(&o, index, n, k, inner, from, to, largest);
            for (int64_t r = 0; r < k; r++) {
                const uint64_t at = to + (uint64_t)(r * inner), i = from + (uint64_t)(index[at] * inner);
                assert_memory_equal((char *)out[0]->data + at * width, (char *)x->data + i * width, width);
            }
        }
        free(o.real);
        free(o.whole);
        onx_value_free(x);
        onx_value_free(out[0]);
        onx_value_free(out[1]);
    }
}

static void test_kernel_moves__scattering(void **state)
{
    enum { RANK = 3 };
    static const char *const how[] = { "none", "add", "mul", "max" };
    static writer w;
    source s = { 14 };
    (void)state;
    for (unsigned turn = 0; turn < 240; turn++) {
        const uint32_t axis = below(&s, RANK), kind = below(&s, 4);
        int64_t dims[RANK], index_dims[RANK], pos[RANK] = { 0 };
        for (uint32_t d = 0; d < RANK; d++) {
            dims[d] = 1 + below(&s, 12);
            index_dims[d] = d == axis ? 1 + below(&s, 20) : 1 + below(&s, (uint32_t)dims[d]);
            if (d > axis && turn % 3)
                index_dims[d] = dims[d];
        }
        const uint64_t behind = onxi_product(index_dims, axis + 1, RANK), same = turn % 3 == 1 ? behind : 1;
        onx_value *x = floats(&s, RANK, dims), *u = floats(&s, RANK, index_dims), *y = NULL;
        onx_value *at = tensor(turn % 2 ? ONX_INT64 : ONX_INT32, RANK, index_dims),
                  *want = tensor(ONX_FLOAT, RANK, dims);
        for (uint64_t i = 0; i < at->count; i++) /* in every third turn one index for all behind the axis */
            onxi_value_set_number(at, i,
                                  i % same ? onxi_value_number(at, i - 1)
                                           : (double)below(&s, 2 * (uint32_t)dims[axis]) - (double)dims[axis]);
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 18]>"
            " g (float[A, B, C] x, %s[D, E, F] i, float[D, E, F] u) => (float[A, B, C] y) {"
            " y = ScatterElements <axis = %u, reduction = \"%s\"> (x, i, u) }",
            turn % 2 ? "int64" : "int32", axis, how[kind]);
        run_text(&w, "ScatterElements", (const onx_value *const[]){ x, at, u }, &y, 1);
        float *v = want->data;
        memcpy(v, x->data, x->size);
        do {
            const uint64_t from = offset_of(index_dims, pos, RANK);
            const float add_this = ((const float *)u->data)[from];
            int64_t to[RANK];
            memcpy(to, pos, sizeof to);
            to[axis] = (int64_t)onxi_value_number(at, from);
            to[axis] += to[axis] < 0 ? dims[axis] : 0;
            float *into = &v[offset_of(dims, to, RANK)];
            *into = kind == 0   ? add_this
                    : kind == 1 ? *into + add_this
                    : kind == 2 ? *into * add_this
                                : fmaxf(*into, add_this);
        } while (next_position(index_dims, pos, RANK));
        assert_memory_equal(y->data, v, want->size);
        onx_value_free(x);
        onx_value_free(u);
        onx_value_free(at);
        onx_value_free(y);
        onx_value_free(want);
    }
}

/* Short lines and long ones, along any axis, with NaN and infinities. */
static void test_kernel_moves__lines(void **state)
{
    static const char *const calls[] = {
        "ReduceMax <axes = [%d]> (x)", "ReduceMin <axes = [%d]> (x)", "ReduceSum <axes = [%d]> (x)",
        "Softmax <axis = %d> (x)",     "LogSoftmax <axis = %d> (x)",
    };
    static const char *const ops[] = { "ReduceMax", "ReduceMin", "ReduceSum", "Softmax", "LogSoftmax" };
    static writer w;
    source s = { 15 };
    (void)state;
    for (unsigned turn = 0; turn < 150; turn++) {
        const uint32_t call = turn % 5, axis = below(&s, 3);
        const int64_t dims[] = { sizes[below(&s, SIZES)], 1 + below(&s, 40), sizes[below(&s, SIZES)] };
        onx_value *x = floats(&s, 3, dims);
        for (uint64_t i = 0; i < x->count && turn % 4 == 0; i++)
            if (below(&s, 50) == 0)
                ((float *)x->data)[i] = below(&s, 2) ? NAN : call < 3 ? INFINITY : -INFINITY;
        w.len = 0;
        add(&w, "<ir_version: 8, opset_import: [\"\" : %d]> g (float[A, B, C] x) => (float[D, E, F] y) { y = ",
            call == 2 ? 11 : 17);
        add(&w, calls[call], axis);
        add(&w, " }");
        assert_string_not_equal(compare_any(&w, ops[call], (const onx_value *const[]){ x }, 40), "plain");
        onx_value_free(x);
    }
}

/* Dims of 1, also the last ones, change neither how long a run is nor where elements are. */
static void test_kernel_moves__broadcasting(void **state)
{
    source s = { 19 };
    (void)state;
    for (unsigned turn = 0; turn < 200; turn++) {
        enum { MOST = 7 };
        int64_t dims[2][2][MOST], out[2][MOST]; /* of two operands and their output, without ones and with them */
        uint32_t rank[2] = { 0, 0 };
        for (uint32_t d = 0; d < 4; d++) {
            const int64_t size = 2 + below(&s, 4);
            const uint32_t kind = below(&s, 4), ones = d == 3 ? 1 + below(&s, 2) : below(&s, 2);
            for (uint32_t k = 0; k < 2; k++) {
                out[k][rank[k]] = size;
                dims[k][0][rank[k]] = kind == 1 ? 1 : size;
                dims[k][1][rank[k]++] = kind == 2 ? 1 : size;
            }
            for (uint32_t i = 0; i < ones && rank[1] < MOST; i++)
                out[1][rank[1]] = dims[1][0][rank[1]] = dims[1][1][rank[1]] = 1, rank[1]++;
        }
        onxi_broadcast b[2];
        for (uint32_t k = 0; k < 2; k++) {
            const onx_value x = { .rank = rank[k], .dims = dims[k][0] }, y = { .rank = rank[k], .dims = dims[k][1] };
            const onx_value z = { .rank = rank[k], .dims = out[k] };
            assert_true(onxi_broadcast_make(&b[k], (const onx_value *const[]){ &x, &y }, 2, &z, NULL));
        }
        assert_int_equal(b[0].inner, b[1].inner);
        assert_int_equal(b[0].outer, b[1].outer);
        for (uint64_t row = 0; row < b[0].outer; row++) {
            int64_t at[2][ONXI_BROADCAST_MAX] = { { 0 } };
            for (uint32_t k = 0; k < 2; k++)
                onxi_broadcast_offsets(&b[k], row, at[k]);
            assert_memory_equal(at[0], at[1], 2 * sizeof at[0][0]);
        }
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(b[0].step[i][b[0].rank - 1], b[1].step[i][b[1].rank - 1]);
    }
}

/* A few elements in a row as often as many, of any width. */
static void draw_dims(source *s, uint32_t rank, int64_t *dims)
{
    static const int64_t some[] = { 1, 1, 2, 3, 4, 7, 17, 40 };
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = some[below(s, 8)];
}

/* Whether y[pos] is x[from], or `fill` where `from` is outside (-1). */
static void check_moved(const onx_value *x, const int64_t *from, const onx_value *y, const int64_t *pos,
                        const void *fill)
{
    const uint32_t width = onx_dtype_bits(x->dtype) / 8;
    const void *want = fill;
    bool inside = true;
    for (uint32_t d = 0; d < x->rank; d++)
        inside = inside && from[d] >= 0;
    if (inside)
        want = (const char *)x->data + offset_of(x->dims, from, x->rank) * width;
    assert_memory_equal((const char *)y->data + offset_of(y->dims, pos, y->rank) * width, want, width);
}

static void add_ends(writer *w, const char *name, const int64_t *values, uint32_t count)
{
    add(w, " %s = Constant <value_ints = [", name);
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%d", i ? ", " : "", (int)values[i]);
    add(w, "]> ()");
}

/* Steps in both directions along any axis. */
static void test_kernel_moves__slicing(void **state)
{
    enum { RANK = 4 };
    static writer w;
    source s = { 16 };
    (void)state;
    for (unsigned turn = 0; turn < 300; turn++) {
        int64_t dims[RANK], out_dims[RANK], start[RANK], end[RANK], step[RANK], pos[RANK] = { 0 };
        draw_dims(&s, RANK, dims);
        for (uint32_t d = 0; d < RANK; d++) {
            const int64_t size = 1 + below(&s, (uint32_t)dims[d]), steps[] = { 1, 1, 2, 3, -1, -2 };
            step[d] = steps[below(&s, 6)];
            start[d] = step[d] > 0 ? dims[d] - size : size - 1;
            out_dims[d] = (size + llabs(step[d]) - 1) / llabs(step[d]);
            end[d] = step[d] > 0 ? dims[d] : -dims[d] - 1;
        }
        const uint32_t type = below(&s, 5);
        onx_value *x = numbered(types[type], RANK, dims), *y = NULL;
        w.len = 0;
        add(&w, "<ir_version: 8, opset_import: [\"\" : 17]> g (%s[A, B, C, D] x) => (%s[E, F, G, H] y) {",
            type_names[type], type_names[type]);
        add_ends(&w, "s", start, RANK);
        add_ends(&w, "e", end, RANK);
        add_ends(&w, "a", (const int64_t[]){ 0, 1, 2, 3 }, RANK);
        add_ends(&w, "t", step, RANK);
        add(&w, " y = Slice (x, s, e, a, t) }");
        run_text(&w, "Slice", (const onx_value *const[]){ x }, &y, 1);
        assert_memory_equal(y->dims, out_dims, sizeof out_dims);
        do {
            int64_t from[RANK];
            for (uint32_t d = 0; d < RANK; d++)
                from[d] = start[d] + pos[d] * step[d];
            check_moved(x, from, y, pos, NULL);
        } while (next_position(out_dims, pos, RANK));
        onx_value_free(x);
        onx_value_free(y);
    }
}

/* Where index `i` of a padded axis comes from, said the slow way: by walking. */
static int64_t padded_from(uint32_t mode, int64_t i, int64_t size)
{
    if (mode == 0)
        return i >= 0 && i < size ? i : -1;
    if (mode == 1)
        return i < 0 ? 0 : i >= size ? size - 1 : i;
    while (i < 0 || i >= size)
        if (mode == 3 || size == 1)
            i += i < 0 ? size : -size;
        else
            i = i < 0 ? -i : 2 * (size - 1) - i;
    return i;
}

static void test_kernel_moves__padding(void **state)
{
    enum { RANK = 4 };
    static const char *const modes[] = { "constant", "edge", "reflect", "wrap" };
    static writer w;
    source s = { 17 };
    (void)state;
    for (unsigned turn = 0; turn < 300; turn++) {
        int64_t dims[RANK], out_dims[RANK], pads[2 * RANK], pos[RANK] = { 0 };
        const uint32_t mode = turn % 4, type = below(&s, 5);
        draw_dims(&s, RANK, dims);
        for (uint32_t d = 0; d < RANK; d++) {
            const uint32_t most = below(&s, 2) ? 1 : 4;
            pads[d] = dims[d] > 2 && !below(&s, 4) ? -1 : (int64_t)below(&s, most);
            pads[RANK + d] = dims[d] > 2 && !below(&s, 4) ? -1 : (int64_t)below(&s, most);
            out_dims[d] = dims[d] + pads[d] + pads[RANK + d];
        }
        onx_value *x = numbered(types[type], RANK, dims), *fill = numbered(types[type], 0, NULL), *y = NULL;
        memset(fill->data, 0x3c, fill->size);
        w.len = 0;
        add(&w, "<ir_version: 9, opset_import: [\"\" : 19]> g (%s[A, B, C, D] x, %s f) => (%s[E, F, G, H] y) {",
            type_names[type], type_names[type], type_names[type]);
        add_ends(&w, "p", pads, 2 * RANK);
        add(&w, " y = Pad <mode = \"%s\"> (x, p, f) }", modes[mode]);
        run_text(&w, "Pad", (const onx_value *const[]){ x, fill }, &y, 1);
        assert_memory_equal(y->dims, out_dims, sizeof out_dims);
        do {
            int64_t from[RANK];
            for (uint32_t d = 0; d < RANK; d++) { /* what is cut off is not repeated */
                const int64_t cut = pads[d] < 0 ? -pads[d] : 0, end = pads[RANK + d] < 0 ? -pads[RANK + d] : 0;
                from[d] = padded_from(mode, pos[d] - pads[d] - cut, dims[d] - cut - end);
                from[d] += from[d] < 0 ? 0 : cut;
            }
            check_moved(x, from, y, pos, fill->data);
        } while (next_position(out_dims, pos, RANK));
        onx_value_free(x);
        onx_value_free(fill);
        onx_value_free(y);
    }
}

/* Rows of some repeats, and long ones of a single element, of few and of many. */
static void test_kernel_moves__tiling(void **state)
{
    enum { RANK = 3 };
    static const int64_t times[] = { 1, 2, 3, 7, 40, 700 };
    static writer w;
    source s = { 43 };
    (void)state;
    for (unsigned turn = 0; turn < 200; turn++) {
        int64_t dims[RANK], repeats[RANK], out_dims[RANK], pos[RANK] = { 0 };
        const uint32_t type = below(&s, 5);
        draw_dims(&s, RANK, dims);
        for (uint32_t d = 0; d < RANK; d++) {
            if (!below(&s, 3))
                dims[d] = 1;
            repeats[d] = times[below(&s, d == turn % RANK && dims[d] < 4 ? 6 : 4)];
            out_dims[d] = dims[d] * repeats[d];
        }
        onx_value *x = numbered(types[type], RANK, dims), *y = NULL;
        w.len = 0;
        add(&w, "<ir_version: 9, opset_import: [\"\" : 19]> g (%s[A, B, C] x) => (%s[E, F, G] y) {", type_names[type],
            type_names[type]);
        add(&w, " r = Constant <value_ints = [%d, %d, %d]> () y = Tile (x, r) }", (int)repeats[0], (int)repeats[1],
            (int)repeats[2]);
        run_text(&w, "Tile", (const onx_value *const[]){ x }, &y, 1);
        assert_memory_equal(y->dims, out_dims, sizeof out_dims);
        do {
            int64_t from[RANK];
            for (uint32_t d = 0; d < RANK; d++)
                from[d] = pos[d] % dims[d];
            check_moved(x, from, y, pos, NULL);
        } while (next_position(out_dims, pos, RANK));
        onx_value_free(x);
        onx_value_free(y);
    }
}

/* Places inside and outside, over one to three axes, blocks of places and parts of one, more channels than go together.
 */
static void test_kernel_moves__sampling(void **state)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    static const char *const paddings[] = { "zeros", "border", "reflection" };
    static writer w;
    source s = { 18 };
    (void)state;
    for (unsigned turn = 0; turn < 108; turn++) {
        const uint32_t axes = 1 + below(&s, 3), mode = turn % 3, padding = turn / 3 % 3;
        int64_t dims[5] = { 1 + below(&s, 2), 1 + below(&s, 9) }, grid_dims[5] = { dims[0] };
        for (uint32_t d = 0; d < axes; d++) {
            dims[2 + d] = 1 + below(&s, 9);
            grid_dims[1 + d] = 1 + below(&s, d ? 6 : 70);
        }
        grid_dims[1 + axes] = axes;
        onx_value *x = floats(&s, 2 + axes, dims), *grid = floats(&s, 2 + axes, grid_dims);
        for (uint64_t i = 0; i < grid->count; i++)
            ((float *)grid->data)[i] *= turn % 4 ? 1.0f : 2.5f;
        w.len = 0;
        add(&w,
            "<ir_version: 9, opset_import: [\"\" : 20]> g (float[A, B%s] x, float[A, E%s] grid) => (float[A, B%s] y)",
            &", C, D, F"[9 - 3 * axes], &", G, H, I"[9 - 3 * axes], &", J, K, L"[9 - 3 * axes]);
        add(&w, " { y = GridSample <mode = \"%s\", padding_mode = \"%s\", align_corners = %u> (x, grid) }", modes[mode],
            paddings[padding], below(&s, 2));
        const char *row = compare_any(&w, "GridSample", (const onx_value *const[]){ x, grid }, 40);
        assert_int_equal(strcmp(row, "plain") == 0, axes == 3 && mode == 2); /* 64 neighbours are too many */
        onx_value_free(x);
        onx_value_free(grid);
    }
}

/* Many numbers are sorted by their digits, items along an axis by comparing them: lines of one number both ways. */
static void test_kernel_moves__unique(void **state)
{
    static const onx_dtype numbers[] = { ONX_FLOAT, ONX_DOUBLE, ONX_FLOAT16, ONX_INT8,   ONX_INT16,  ONX_INT32,
                                         ONX_INT64, ONX_UINT8,  ONX_UINT16,  ONX_UINT32, ONX_UINT64, ONX_BOOL };
    static const double odd[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, 0, -0.0, 1e30, 300, 70000, 5e9 };
    enum { TYPES = sizeof numbers / sizeof *numbers, EACH = 4 };
    static writer w;
    source s = { 41 };
    (void)state;
    for (unsigned turn = 0; turn < 8 * TYPES; turn++) {
        const onx_dtype dtype = numbers[turn % TYPES];
        const float range = turn / TYPES % 2 ? 100000 : 30;
        onx_value *x = tensor(dtype, 1, (int64_t[]){ 60 + below(&s, 20) * below(&s, 100) }), *out[2 * EACH] = { NULL };
        onx_doc *doc = NULL;
        for (uint64_t i = 0; i < x->count; i++) {
            const double number = below(&s, 9) ? (double)between(&s, -range, range) : odd[below(&s, 9)];
            onx_convert(dtype, (char *)x->data + i * onxi_element_size((int)dtype), ONX_DOUBLE, &number, 1, true);
        }
        const char *type = onx_dtype_name(dtype);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\ng (%s[N] x) => (%s[A] y, int64[B] i, int64[C] v, int64[D] c, "
            "%s[A] ay, int64[B] ai, int64[C] av, int64[D] ac) { y, i, v, c = Unique <sorted = %u> (x) "
            "ay, ai, av, ac = Unique <axis = 0, sorted = %u> (x) }",
            type, type, type, turn / TYPES / 2 % 2, turn / TYPES / 2 % 2);
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
        run(doc, "Unique", NULL, (const onx_value *const[]){ x }, out);
        for (int i = 0; i < EACH; i++)
            assert_true(out[i] && out[i + EACH] && near_enough(out[i], out[i + EACH], 0));
        for (int i = 0; i < 2 * EACH; i++)
            onx_value_free(out[i]);
        onx_value_free(x);
        onx_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_moves__transposing),
        cmocka_unit_test(test_kernel_moves__pixels),
        cmocka_unit_test(test_kernel_moves__expanding),
        cmocka_unit_test(test_kernel_moves__choosing),
        cmocka_unit_test(test_kernel_moves__choosing_among_all_types),
        cmocka_unit_test(test_kernel_moves__scattering),
        cmocka_unit_test(test_kernel_moves__lines),
        cmocka_unit_test(test_kernel_moves__slicing),
        cmocka_unit_test(test_kernel_moves__padding),
        cmocka_unit_test(test_kernel_moves__sampling),
        cmocka_unit_test(test_kernel_moves__broadcasting),
        cmocka_unit_test(test_kernel_moves__unique),
        cmocka_unit_test(test_kernel_moves__tiling),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
