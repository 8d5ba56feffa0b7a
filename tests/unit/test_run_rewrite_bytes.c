/* test_run_rewrite_bytes.c - the rules for nodes between DequantizeLinear and QuantizeLinear, on drawn operands: shapes
 * that broadcast, sizes 0 and 1, scales and zero points for all elements or along an axis, at the ends of their ranges,
 * left out, or computed. Where the nodes run, the session gives the same up to one quantization step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "rewrite/rewrite.h"
#include "unit/variants.h"

enum { OPERANDS_MAX = 12, TRIALS = 48, TRIALS_MAX = 600 };

/* ---- operands ---- */

typedef struct operand {
    char name[16];
    onx_value *value; /* NULL: left out */
    bool is_input;
} operand;

typedef struct drawing {
    const onxi_rewrite_row *rule;
    source s;
    onx_dtype x, w, y; /* of the bytes; y: ONX_FLOAT where no QuantizeLinear follows */
    operand operands[OPERANDS_MAX];
    uint32_t count;
    uint32_t rank, channels, results; /* of the images or matrices */
    bool turned;                      /* transB */
    bool alone;                       /* a group for each channel */
    double most;                      /* no inner value, and no sum of the numbers that make it, is greater */
    double step;                      /* of the result */
} drawing;

static bool has(const drawing *d, const char *text)
{
    return strstr(d->rule->pattern, text) != NULL;
}

static uint32_t size_of(drawing *d)
{
    static const uint32_t sizes[] = { 0, 1, 1, 2, 3, 5, 7, 8, 16, 33 };
    return sizes[below(&d->s, sizeof sizes / sizeof *sizes)];
}

static onx_dtype byte_type(drawing *d)
{
    return below(&d->s, 2) ? ONX_INT8 : ONX_UINT8;
}

static onx_value *make(onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    onx_value *v = NULL;
    assert_int_equal(onx_value_new_tensor(cx, dtype, rank, dims, &v), ONX_OK);
    return v;
}

static onx_value *bytes(drawing *d, onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    onx_value *v = make(dtype, rank, dims);
    const bool ends = below(&d->s, 4) == 0;
    for (uint64_t i = 0; i < v->count; i++)
        ((uint8_t *)v->data)[i] = ends ? (uint8_t)(0x7F + below(&d->s, 2)) : (uint8_t)below(&d->s, 256);
    return v;
}

static float scale_of(drawing *d)
{
    static const float ends[] = { 1, 0.5f, 9.5e-7f, 1e-3f, 1048576, 77.7f };
    return below(&d->s, 3) ? between(&d->s, 0.002f, 0.1f) : ends[below(&d->s, sizeof ends / sizeof *ends)];
}

/* A scale and a zero point: for all elements, as a scalar or as a list of one, or one for each of `along` (0: not
 * drawn). */
static void draw_meaning(drawing *d, onx_dtype of, uint32_t along, bool may_be_absent, onx_value **scale,
                         onx_value **zero)
{
    const uint32_t how = along ? below(&d->s, 3) : below(&d->s, 2);
    const int64_t one = how == 2 ? along : 1;
    *scale = make(ONX_FLOAT, how ? 1 : 0, &one);
    for (uint64_t i = 0; i < (*scale)->count; i++)
        ((float *)(*scale)->data)[i] = scale_of(d);
    *zero = may_be_absent && below(&d->s, 4) == 0 ? NULL : make(of, how ? 1 : 0, &one);
    for (uint64_t i = 0; *zero && i < (*zero)->count; i++) {
        const uint32_t end = below(&d->s, 5);
        ((uint8_t *)(*zero)->data)[i] = (uint8_t)(end == 0   ? 0
                                                  : end == 1 ? 0xFF
                                                  : end == 2 ? 0x80
                                                  : end == 3 ? 0x7F
                                                             : below(&d->s, 256));
    }
}

static operand *add_operand(drawing *d, const char *name, onx_value *value, bool is_input)
{
    assert_true(d->count < OPERANDS_MAX);
    operand *o = &d->operands[d->count++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->value = value;
    o->is_input = value && is_input;
    return o;
}

static double largest(const onx_value *v)
{
    double most = 0;
    for (uint64_t i = 0; v && i < v->count; i++)
        most = fmax(most, fabs(onxi_value_number(v, i)));
    return most;
}

/* An operand with its scale and zero point; returns its greatest number. */
static double add_bytes(drawing *d, const char *name, onx_value *value, uint32_t along, bool is_input)
{
    char text[16];
    onx_value *scale, *zero;
    draw_meaning(d, (onx_dtype)value->dtype, along, true, &scale, &zero);
    const double most = 256 * largest(scale);
    add_operand(d, name, value, is_input);
    snprintf(text, sizeof text, "%s_scale", name);
    add_operand(d, text, scale, below(&d->s, 12) == 0);
    snprintf(text, sizeof text, "%s_zero", name);
    add_operand(d, text, zero, below(&d->s, 12) == 0);
    return most;
}

static void add_result(drawing *d)
{
    onx_value *scale, *zero;
    d->y = ONX_FLOAT;
    if (!has(d, "y = QuantizeLinear"))
        return;
    d->y = has(d, "(a, a_scale") || has(d, "AveragePool") ? d->x : byte_type(d);
    draw_meaning(d, d->y, 0, d->y == ONX_UINT8, &scale, &zero);
    if (!below(&d->s, 3) && zero) /* where a Relu can be dropped */
        memset(zero->data, d->y == ONX_INT8 ? 0x80 : 0, zero->size);
    d->step = fabs(onxi_value_number(scale, 0));
    add_operand(d, "y_scale", scale, below(&d->s, 12) == 0);
    add_operand(d, "y_zero", zero, below(&d->s, 12) == 0);
}

/* Dims of which each is that of `of`, or 1, and of which some may be missing or more. */
static onx_value *beside(drawing *d, onx_dtype dtype, uint32_t rank, const int64_t *of)
{
    int64_t dims[8];
    uint32_t first = below(&d->s, 3) ? 0 : below(&d->s, rank + 1), n = 0;
    if (!first && below(&d->s, 6) == 0)
        dims[n++] = 1 + below(&d->s, 2);
    for (uint32_t i = first; i < rank; i++)
        dims[n++] = below(&d->s, 3) ? of[i] : 1;
    onx_value *v = make(dtype, n, dims);
    for (uint64_t i = 0; dtype == ONX_FLOAT && i < v->count; i++)
        ((float *)v->data)[i] = between(&d->s, -1, 1);
    for (uint64_t i = 0; dtype != ONX_FLOAT && i < v->count; i++)
        ((uint8_t *)v->data)[i] = (uint8_t)below(&d->s, 256);
    return v;
}

static void draw_pair(drawing *d)
{
    int64_t dims[5];
    const uint32_t rank = below(&d->s, 5);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = size_of(d);
    const bool left = below(&d->s, 2);
    onx_value *whole = bytes(d, d->x, rank, dims);
    onx_value *other = beside(d, below(&d->s, 8) ? d->x : byte_type(d), rank, dims);
    const double a = add_bytes(d, "a", left ? whole : other, 0, true);
    const double b = add_bytes(d, "b", left ? other : whole, 0, below(&d->s, 4) != 0);
    d->most = has(d, "c = Mul") ? a * b : a + b;
}

static void draw_pool(drawing *d)
{
    int64_t dims[5] = { 1 + below(&d->s, 2), size_of(d), size_of(d), size_of(d), 2 };
    d->rank = 3 + below(&d->s, 3);
    d->most = add_bytes(d, "x", bytes(d, d->x, d->rank, dims), 0, true);
}

static void draw_bias(drawing *d, uint32_t rank, const int64_t *of, bool may_be_absent)
{
    onx_value *b = may_be_absent && below(&d->s, 3) == 0 ? NULL
                   : below(&d->s, 2)                     ? beside(d, ONX_FLOAT, 1, of + rank - 1)
                                                         : beside(d, ONX_FLOAT, rank, of);
    d->most += largest(b);
    add_operand(d, "b", b, below(&d->s, 12) == 0);
}

static void draw_product(drawing *d)
{
    const bool gemm = has(d, "Gemm");
    int64_t dims[4] = { size_of(d), size_of(d), size_of(d), size_of(d) };
    d->rank = gemm ? 2 : 1 + below(&d->s, 4);
    d->results = size_of(d);
    d->turned = gemm && below(&d->s, 2);
    const int64_t k = dims[d->rank - 1], plain[] = { k, d->results }, turned[] = { d->results, k };
    const double x = add_bytes(d, "x", bytes(d, d->x, d->rank, dims), 0, true);
    const double w =
        add_bytes(d, "w", bytes(d, d->w, 2, d->turned ? turned : plain), d->results, below(&d->s, 12) == 0);
    d->most = x * w * (double)(k + 1);
    dims[d->rank - 1] = d->results;
    if (has(d, " b, y_scale") || has(d, "w_zero, b)"))
        draw_bias(d, d->rank, dims, gemm);
    else if (has(d, ", none"))
        add_operand(d, "none", NULL, false);
}

static void draw_convolution(drawing *d)
{
    d->rank = 3 + below(&d->s, 2);
    d->channels = size_of(d);
    d->alone = d->channels && below(&d->s, 3) == 0;
    d->results = d->alone ? d->channels : size_of(d);
    const int64_t dims[] = { 1 + below(&d->s, 2), d->channels, size_of(d) + 2, size_of(d) + 2 };
    const int64_t kernel[] = { d->results, d->alone ? 1 : d->channels, 1 + below(&d->s, 3), 1 + below(&d->s, 2) };
    const double x = add_bytes(d, "x", bytes(d, d->x, d->rank, dims), 0, true);
    const double w = add_bytes(d, "w", bytes(d, d->w, d->rank, kernel), d->results, below(&d->s, 12) == 0);
    d->most = x * w * (6.0 * d->channels + 1);
    const int64_t out = d->results;
    onx_value *b = below(&d->s, 3) ? make(ONX_FLOAT, 1, &out) : NULL;
    for (uint64_t i = 0; b && i < b->count; i++)
        ((float *)b->data)[i] = between(&d->s, -1, 1);
    d->most += b ? 1 : 0;
    add_operand(d, "b", b, below(&d->s, 12) == 0);
}

static void add_bounds(drawing *d)
{
    for (int i = 0; has(d, "low, high") && i < 2; i++) {
        onx_value *bound = below(&d->s, 3) ? make(ONX_FLOAT, 0, NULL) : NULL;
        if (bound)
            *(float *)bound->data = between(&d->s, i ? 0 : -1, i ? 1 : 0) * (below(&d->s, 3) ? 1 : 100);
        add_operand(d, i ? "high" : "low", bound, below(&d->s, 12) == 0);
    }
}

/* ---- models ---- */

static const char *type_name(int dtype)
{
    return dtype == ONX_FLOAT ? "float" : dtype == ONX_INT8 ? "int8" : "uint8";
}

static void add_dims(writer *w, const onx_value *v)
{
    for (uint32_t i = 0; i < v->rank; i++)
        add(w, "%s%lld%s", i ? ", " : "[", (long long)v->dims[i], i + 1 == v->rank ? "]" : "");
}

static void add_attribute(drawing *d, writer *w, const char *name)
{
    const bool image = has(d, "Conv <");
    const uint32_t n = d->rank > 2 ? d->rank - 2 : 1, turn = below(&d->s, 4);
    const char *lists[] = { "[1]", "[1, 2]", "[2, 1, 1]" };
    if (strcmp(name, "transB") == 0)
        add(w, "%d", d->turned);
    else if (strcmp(name, "w_axis") == 0)
        add(w, "%d", image || d->turned ? 0 : 1);
    else if (strstr(name, "_axis"))
        add(w, "%d", turn == 0 ? 0 : -1);
    else if (strcmp(name, "auto_pad") == 0)
        add(w, "\"%s\"", turn == 0 ? "SAME_UPPER" : turn == 1 ? "VALID" : "NOTSET");
    else if (strcmp(name, "group") == 0)
        add(w, "%u", d->alone ? d->channels : 1);
    else if (strcmp(name, "count_include_pad") == 0)
        add(w, "%u", turn % 2);
    else if (strcmp(name, "pads") == 0)
        for (uint32_t i = 0; i < 2 * n; i++)
            add(w, "%s%u%s", i ? ", " : "[", turn / 2, i + 1 == 2 * n ? "]" : "");
    else if (strcmp(name, "kernel_shape") == 0 && image) /* that of the weights */
        for (uint32_t i = 0; i < n; i++)
            add(w, "%s%lld%s", i ? ", " : "[", (long long)d->operands[3].value->dims[2 + i], i + 1 == n ? "]" : "");
    else if (strcmp(name, "kernel_shape") == 0)
        add(w, "%s", (const char *[]){ "[1]", "[2, 1]", "[1, 2, 2]" }[n - 1]);
    else
        add(w, "%s", turn ? (const char *[]){ "[1]", "[1, 1]", "[1, 1, 1]" }[n - 1] : lists[n - 1]);
}

/* The model calls the pattern as a function; attributes are sometimes left out. */
static void write_call(drawing *d, writer *w)
{
    const char *open = strchr(strchr(d->rule->pattern, 'P'), '<'), *close = open ? strchr(open, '>') : NULL;
    uint32_t count = 0;
    add(w, "> { y = onx.P ");
    for (const char *at = open ? open + 1 : NULL; at && at < close; at += strcspn(at, ",>")) {
        char name[32];
        at += strspn(at, " ,");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " ,>"), at);
        if (below(&d->s, 8) == 0 && strcmp(name, "kernel_shape") != 0 && strcmp(name, "w_axis") != 0 &&
            strcmp(name, "transB") != 0 && strcmp(name, "group") != 0)
            continue;
        add(w, "%s%s = ", count++ ? ", " : "<", name);
        add_attribute(d, w, name);
    }
    add(w, "%s (", count ? ">" : "");
    for (uint32_t i = 0; i < d->count; i++)
        add(w, "%s%s", i ? ", " : "", d->operands[i].value ? d->operands[i].name : "\"\"");
    add(w, ") }\n%s", d->rule->pattern);
}

static void write_model(drawing *d, writer *w)
{
    uint32_t count = 0;
    w->len = 0;
    add(w, "<ir_version: 10, opset_import: [\"\" : 17, \"onx\" : 1]>\ng (");
    for (uint32_t i = 0; i < d->count; i++)
        if (d->operands[i].is_input) {
            add(w, "%s%s", count++ ? ", " : "", type_name(d->operands[i].value->dtype));
            add_dims(w, d->operands[i].value);
            add(w, " %s", d->operands[i].name);
        }
    add(w, ") => (%s[] y) <", type_name((int)d->y));
    count = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        const onx_value *v = d->operands[i].value;
        if (!v || d->operands[i].is_input)
            continue;
        add(w, "%s%s", count++ ? ", " : "", type_name(v->dtype));
        add_dims(w, v);
        add(w, " %s = {", d->operands[i].name);
        for (uint64_t k = 0; k < v->count; k++)
            add(w, "%s%.9g", k ? ", " : "", onxi_value_number(v, k));
        add(w, "}");
    }
    write_call(d, w);
}

/* ---- running ---- */

/* Declines whatever it is asked, but where sessions find it, they try the rules: those of Add, Mul and pools have
 * kernels for all processors. */
static onx_status decline(onx_prepare *p)
{
    (void)p;
    return ONX_OK;
}
static onx_status never(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return onx_work_fail(work, ONX_E_INVALID, "it gives no types, so it does not run");
}
static const onx_kernel declining[] = { { .op = "QConv",
                                          .domain = "onx",
                                          .since = 1,
                                          .dtypes = ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8),
                                          .types = decline,
                                          .run = never },
                                        { 0 } };

static void note_rule(void *user, const onx_run_event *event)
{
    for (uint32_t i = 0; i < event->rule_count; i++)
        *(bool *)user |= strncmp(event->rules[i], "bytes-", 6) == 0;
}

/* A message of cmocka has less room than a model. */
static void ONX_PRINTF(3, 4) fail_model(const drawing *d, const writer *w, const char *format, ...)
{
    char why[160];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    for (size_t at = 0; at < w->len; at += 512)
        print_error("%.512s", w->text + at);
    fail_msg("rule %s: %s", d->rule->name, why);
}

static bool try_run(const drawing *d, const writer *w, bool plain, onx_value **y, bool *replaced)
{
    onx_doc *doc = NULL;
    onx_session *session = NULL;
    const onx_value *in[OPERANDS_MAX];
    uint32_t count = 0;
    const onx_session_options options = { .verify = true, .threads = 1, .no_optimize = plain, .kernels = declining };
    const onx_run_options watch = { .event = note_rule, .user = replaced };
    for (uint32_t i = 0; i < d->count; i++)
        if (d->operands[i].is_input)
            in[count++] = d->operands[i].value;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc) != ONX_OK) {
        say_all();
        fail_model(d, w, "it is no model");
    }
    onx_status status = onx_session_new(cx, doc, &options, &session);
    if (status == ONX_OK)
        status = onx_session_run_with(session, cx, in, y, &watch);
    onx_session_free(session);
    onx_doc_free(doc);
    return status == ONX_OK;
}

static void draw_all(drawing *d)
{
    d->x = byte_type(d);
    d->w = byte_type(d);
    if (has(d, "(a, a_scale"))
        draw_pair(d);
    else if (has(d, "AveragePool"))
        draw_pool(d);
    else if (has(d, "Conv <"))
        draw_convolution(d);
    else
        draw_product(d);
    add_result(d);
    add_bounds(d);
}

static void same_results(const drawing *d, const onx_value *a, const onx_value *b, const writer *w)
{
    const double rounding = 4e-7 * d->most, most = d->y == ONX_FLOAT ? rounding : 1.001 + rounding / d->step;
    bool same = a->dtype == b->dtype && a->rank == b->rank && (!a->rank || onxi_same_dims(a->dims, b->dims, a->rank));
    for (uint64_t i = 0; same && i < a->count; i++) {
        const double x = onxi_value_number(a, i), y = onxi_value_number(b, i);
        if (!(isfinite(y) && fabs(x - y) <= most + (d->y == ONX_FLOAT ? 2e-6 * fabs(y) : 0)))
            fail_model(d, w, "element %llu is %g, expected %g up to %g", (unsigned long long)i, x, y, most);
    }
    if (!same)
        fail_model(d, w, "another type or shape");
}

/* Returns whether the nodes run. */
static bool try_drawn(const onxi_rewrite_row *rule, uint32_t trial, bool *replaced)
{
    static writer w;
    drawing d = { .rule = rule, .s = { trial * 7919 + 1 } };
    onx_value *nodes = NULL, *one = NULL;
    bool none = false;
    draw_all(&d);
    write_model(&d, &w);
    const bool runs = try_run(&d, &w, true, &nodes, &none);
    onx_diag_clear(cx);
    if (runs) {
        if (!try_run(&d, &w, false, &one, replaced)) {
            say_all();
            fail_model(&d, &w, "the nodes run, but not with the rule");
        }
        same_results(&d, one, nodes, &w);
    }
    assert_false(none);
    for (uint32_t i = 0; i < d.count; i++)
        onx_value_free(d.operands[i].value);
    onx_value_free(nodes);
    onx_value_free(one);
    return runs;
}

static void test_run_rewrite_bytes__drawn_operands(void **state)
{
    (void)state;
    uint32_t rules = 0;
    for (const onxi_rewrite_row *rule = onxi_rewrite_rows; rule->name; rule++) {
        if (strncmp(rule->name, "bytes-", 6) != 0)
            continue;
#ifdef ONX_DOMAIN_MICROSOFT /* its kernels for bytes run what these rules make */
        const bool everywhere = strstr(rule->pattern, "(a, a_scale") || strstr(rule->pattern, "AveragePool");
#else
        const bool everywhere = false;
#endif
        uint32_t ran = 0, used = 0;
        for (uint32_t trial = 0; trial < TRIALS || ((ran < 8 || used < 3) && trial < TRIALS_MAX); trial++) {
            bool replaced = false;
            ran += try_drawn(rule, trial, &replaced);
            used += replaced;
        }
        rules++;
        if (ran < 8 || (used < 3 && (everywhere || onxi_isa_best() >= (unsigned)ONX_ISA_VNNI)))
            fail_msg("rule %s: %u of the drawn models run, and the rule is used in %u", rule->name, ran, used);
    }
    assert_true(rules > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_run_rewrite_bytes__drawn_operands) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
