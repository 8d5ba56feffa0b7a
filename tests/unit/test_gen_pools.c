/* test_gen_pools.c - how many positions the window of a pool has, in each version and for sizes around those of the
 * window: inference with a symbol, inference with a number and runs say the same, which the standard's formula gives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/infer.h>
#include <onx/text.h>

#include "dim/dim.h"
#include "gen/gen.h"

#include <stdio.h>

enum { SIZES = 8 };

typedef struct pool {
    const char *op;
    int32_t since;
    bool same, valid, ceil, counted;
    int64_t kernel, stride, dilation, begin, end;
} pool;

/* What ONNX's own inference gives for an axis, which truncates quotients; negative: the window does not fit. An empty
 * axis has no position that reads padding alone, but with ceil_mode. */
static int64_t expected(const pool *p, int64_t size)
{
    if (p->same)
        return (size + p->stride - 1) / p->stride;
    const int64_t room = size + p->begin + p->end - ((p->kernel - 1) * p->dilation + 1);
    if (room < 0 && room / p->stride < -1)
        return -1;
    if (!p->ceil && room < 0 && size == 0)
        return 0;
    if (!p->ceil)
        return room / p->stride + 1;
    const int64_t up = room > 0 ? (room + p->stride - 1) / p->stride + 1 : room / p->stride + 1;
    const bool omits = p->since >= (strcmp(p->op, "MaxPool") == 0 ? 12 : 19);
    const int64_t inside = (size + p->begin + p->stride - 1) / p->stride;
    return omits && inside < up ? inside : up;
}

static onx_doc *model_of(onx_ctx *cx, const pool *p, const char *size)
{
    char text[1000], more[200] = "";
    onx_doc *doc = NULL;
    size_t len = 0;
    if (p->same || p->valid)
        len += (size_t)snprintf(more, sizeof more, ", auto_pad = \"%s\"", p->valid ? "VALID" : "SAME_UPPER");
    else
        len += (size_t)snprintf(more, sizeof more, ", pads = [%d, %d]", (int)p->begin, (int)p->end);
    if (p->ceil)
        len += (size_t)snprintf(more + len, sizeof more - len, ", ceil_mode = 1");
    if (p->counted)
        len += (size_t)snprintf(more + len, sizeof more - len, ", count_include_pad = 1");
    if (p->dilation > 1)
        snprintf(more + len, sizeof more - len, ", dilations = [%d]", (int)p->dilation);
    const int n = snprintf(text, sizeof text,
                           "<ir_version: 8, opset_import: [\"\" : %d]> g (float[1,2,%s] x) => (float[A,B,C] y) { "
                           "y = %s <kernel_shape = [%d], strides = [%d]%s> (x) }",
                           (int)p->since, size, p->op, (int)p->kernel, (int)p->stride, more);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(text, (size_t)n), 0, &doc), ONX_OK);
    return doc;
}

/* The last size of y, by inference; `size` is that of the symbol H. Negative: inference refuses, or says nothing. */
static void inferred(onx_ctx *cx, const pool *p, const char *text, const int64_t *sizes, int64_t *out)
{
    onx_doc *doc = model_of(cx, p, text);
    onx_infer *infer = NULL;
    onxi_dims *dims = NULL;
    assert_int_equal(onx_infer_new(cx, doc, NULL, &infer), ONX_OK);
    const onx_graph *graph = onx_doc_model(doc)->graph;
    const onx_type *type = onx_infer_type(infer, graph, onx_str_of("y"));
    const onx_dimension *dim =
        type && ONX_HAS(type, type, tensor_type) && type->tensor_type->shape && type->tensor_type->shape->dim_count == 3
            ? type->tensor_type->shape->dim[2]
            : NULL;
    const bool failed = onx_infer_summarize(infer).failed != 0;
    for (unsigned i = 0; i < SIZES; i++) {
        out[i] = -1;
        if (!dim || failed)
            continue;
        if (ONX_HAS(dimension, dim, dim_value)) {
            out[i] = dim->dim_value;
        } else if (ONX_HAS(dimension, dim, dim_param)) {
            assert_int_equal(onxi_dims_new(cx, &dims), ONX_OK);
            const onxi_dim places = onxi_dim_parse(dims, onx_view(dim->dim_param));
            const onxi_dim value = onxi_dim_substitute(dims, places, onxi_dim_symbol(dims, onx_str_of("H")), sizes[i]);
            out[i] = onxi_dim_is_const(value) ? value : -2;
            onxi_dims_free(dims);
        }
    }
    onx_infer_free(infer);
    onx_doc_free(doc);
    onx_diag_clear(cx);
}

static unsigned complain(const pool *p, int64_t size, const char *what, int64_t got, int64_t want)
{
    print_error("%s-%d kernel %d stride %d dilation %d pads %d %d%s%s%s%s, size %d: %s %d, expected %d\n", p->op,
                (int)p->since, (int)p->kernel, (int)p->stride, (int)p->dilation, (int)p->begin, (int)p->end,
                p->same ? " SAME" : "", p->valid ? " VALID" : "", p->ceil ? " ceil" : "", p->counted ? " counted" : "",
                (int)size, what, (int)got, (int)want);
    return 1;
}

static onx_value *run(onx_ctx *cx, const pool *p, int64_t size, bool plain)
{
    char text[24];
    onx_session *s = NULL;
    onx_value *x = NULL, *y = NULL;
    snprintf(text, sizeof text, "%d", (int)size);
    onx_doc *doc = model_of(cx, p, text);
    const onx_session_options options = { .threads = 1, .plain = plain };
    const int64_t dims[] = { 1, 2, size };
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 3, dims, &x), ONX_OK);
    for (uint64_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)(3 + (i * 5) % 7);
    onx_status status = onx_session_new(cx, doc, &options, &s);
    if (status == ONX_OK)
        status = onx_session_run(s, cx, (const onx_value *const[]){ x }, &y);
    if (status != ONX_OK)
        y = NULL;
    onx_session_free(s);
    onx_value_free(x);
    onx_doc_free(doc);
    onx_diag_clear(cx);
    return y;
}

/* The mean of a window that includes the padding, but nothing beyond. */
static float mean_at(const pool *p, int64_t size, int64_t position, int64_t channel)
{
    float sum = 0, count = 0;
    for (int64_t k = 0; k < p->kernel; k++) {
        const int64_t at = position * p->stride - p->begin + k * p->dilation;
        if (at >= 0 && at < size)
            sum += (float)(3 + ((channel * size + at) * 5) % 7);
        count += at < size + p->end ? 1 : 0;
    }
    return sum / count;
}

static unsigned compare(onx_ctx *cx, const pool *p, unsigned *runs)
{
    int64_t sizes[SIZES], by_symbol[SIZES], by_number[SIZES];
    unsigned bad = 0;
    for (unsigned i = 0; i < SIZES; i++)
        sizes[i] = i;
    inferred(cx, p, "H", sizes, by_symbol);
    for (unsigned i = 0; i < SIZES; i++) {
        char text[24];
        const int64_t want = expected(p, sizes[i]);
        snprintf(text, sizeof text, "%d", (int)sizes[i]);
        inferred(cx, p, text, sizes, by_number);
        if (by_number[i] != want)
            bad += complain(p, sizes[i], "inference with a number says", by_number[i], want);
        if (want >= 0 && by_symbol[i] != want)
            bad += complain(p, sizes[i], "inference with a symbol says", by_symbol[i], want);
        for (int plain = 0; plain < 2; plain++) {
            onx_value *y = run(cx, p, sizes[i], plain);
            const int64_t got = y ? y->dims[2] : -1;
            if (got != want)
                bad += complain(p, sizes[i], plain ? "a plain run gives" : "a run gives", got, want);
            for (uint64_t k = 0; y && got == want && p->counted && !p->ceil && !p->same && k < y->count; k++) {
                const float mean = mean_at(p, sizes[i], (int64_t)k % want, (int64_t)k / want);
                const float off = ((const float *)y->data)[k] - mean;
                if (off > 1e-5F || off < -1e-5F)
                    bad += complain(p, sizes[i], "another mean than expected at", (int64_t)k, (int64_t)k);
            }
            *runs += y != NULL;
            onx_value_free(y);
        }
    }
    return bad;
}

/* Before some versions there is no ceil_mode, dilations or count_include_pad. */
static bool has(const onxi_schema *schema, const char *name)
{
    for (const onxi_attr *a = schema->attrs; a && a->name; a++)
        if (strcmp(a->name, name) == 0)
            return true;
    return false;
}

static void test_gen_pools__windows_have_as_many_positions_everywhere(void **state)
{
    (void)state;
    static const char *const ops[] = { "MaxPool", "AveragePool", "LpPool" };
    onx_ctx *cx = onx_ctx_new(NULL);
    gen_random random = { .state = 5 };
    unsigned bad = 0, models = 0, runs = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++)
            for (unsigned n = 0; n < sizeof ops / sizeof *ops; n++)
                for (int64_t at = 0; strcmp(schema->name, ops[n]) == 0 && !*onxi_schema_domain(schema) && at < 320;
                     at++) {
                    pool p = { .op = ops[n], .since = schema->since };
                    p.kernel = 1 + at % 5;
                    p.stride = 1 + at / 5 % 4;
                    p.begin = at / 20 % 2 ? at / 40 % p.kernel : 0;
                    p.end = at / 40 % 3 % p.kernel;
                    p.ceil = has(schema, "ceil_mode") && at / 80 % 2;
                    p.counted = has(schema, "count_include_pad") && gen_below(&random, 2);
                    p.dilation = has(schema, "dilations") && gen_below(&random, 3) == 0 ? 2 : 1;
                    p.same = !p.ceil && p.dilation == 1 && gen_below(&random, 8) == 0;
                    p.valid = !p.same && !p.ceil && gen_below(&random, 8) == 0;
                    if (p.same || p.valid)
                        p.begin = p.end = 0;
                    if (at % 3 != (int64_t)(n + (unsigned)schema->since) % 3)
                        continue; /* a part of them each */
                    bad += compare(cx, &p, &runs);
                    models++;
                }
    onx_ctx_free(cx);
    print_message("%u models, %u runs\n", models, runs);
    assert_int_equal(bad, 0);
    assert_true(models > 1000 && runs > 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_pools__windows_have_as_many_positions_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
