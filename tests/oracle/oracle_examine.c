/* oracle_examine.c - the examination of one model: reading it, its reference, the rows. */
#include "oracle/oracle.h"

#include <onx/check.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include "gen/gen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- findings ---- */

void oracle_error(onx_ctx *cx, char *text, size_t size)
{
    if (size)
        text[0] = 0;
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        const onx_diag *d = onx_diag_get(cx, i);
        if (d->severity != ONX_ERROR)
            continue;
        onx_diag_format(d, text, size);
        break;
    }
    for (char *at = text; size && *at; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    onx_diag_clear(cx);
}

void oracle_found(oracle *o, const char *kind, const char *format, ...)
{
    char text[ORACLE_WHY * 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->findings++;
    o->found(o->user, o->row ? o->row->name : "model", kind, text);
}

/* ---- runs ---- */

void oracle_run_free(oracle_run *run)
{
    for (uint32_t i = 0; i < ORACLE_OUTPUTS; i++)
        onx_value_free(run->outputs[i]);
    memset(run->outputs, 0, sizeof run->outputs);
    run->count = 0;
}

onx_session *oracle_session(oracle *o, onx_doc *doc, const onx_session_options *options, oracle_run *run)
{
    onx_session *s = NULL;
    char why[ORACLE_WHY];
    memset(run, 0, sizeof *run);
    run->status = onx_session_new(o->cx, doc, options, &s);
    if (run->status != ONX_OK) {
        oracle_error(o->cx, why, sizeof why);
        (void)snprintf(run->why, sizeof run->why, "%.300s", why[0] ? why : onx_status_text(run->status));
        if (!why[0])
            oracle_found(o, "silent", "no session, and no message");
    }
    onx_diag_clear(o->cx);
    return run->status == ONX_OK ? s : NULL;
}

static onx_value *input_of(oracle *o, const onx_session_port *port, uint32_t set, const oracle_nudge *nudge)
{
    const oracle_set *all = &o->sets[set];
    const onx_type *type = port->type;
    if (!type || !ONX_HAS(type, type, tensor_type))
        return NULL;
    for (uint32_t i = 0; i < all->count; i++)
        if (onx_str_is(port->name, all->input[i].name))
            return oracle_value(o->cx, &all->input[i], (onx_dtype)type->tensor_type->elem_type, set, nudge);
    return NULL;
}

void oracle_run_session(oracle *o, onx_session *s, uint32_t set, const oracle_nudge *nudge, oracle_run *run)
{
    const onx_value *inputs[ORACLE_PORTS] = { NULL };
    const uint32_t count = onx_session_input_count(s);
    const onx_run_options options = { .timeout_ns = UINT64_C(20000000000) };
    char why[ORACLE_WHY] = "too many inputs or outputs";
    run->why[0] = 0;
    run->count = onx_session_output_count(s);
    run->status = count <= ORACLE_PORTS && run->count <= ORACLE_OUTPUTS ? ONX_OK : ONX_E_LIMIT;
    for (uint32_t i = 0; run->status == ONX_OK && i < count; i++) {
        const onx_session_port port = onx_session_input(s, i);
        inputs[i] = input_of(o, &port, set, nudge);
    }
    if (run->status == ONX_OK) {
        run->status = onx_session_run_with(s, o->cx, inputs, run->outputs, &options);
        oracle_error(o->cx, why, sizeof why);
        if (run->status != ONX_OK && !why[0])
            oracle_found(o, "silent", "a run fails without a message");
    }
    if (run->status != ONX_OK) {
        (void)snprintf(run->why, sizeof run->why, "%.300s", why[0] ? why : onx_status_text(run->status));
        oracle_run_free(run);
    }
    for (uint32_t i = 0; i < count && i < ORACLE_PORTS; i++)
        onx_value_free((onx_value *)(uintptr_t)(const void *)inputs[i]);
}

void oracle_run_doc(oracle *o, onx_doc *doc, const onx_session_options *options, uint32_t set, oracle_run *run)
{
    onx_session *s = oracle_session(o, doc, options, run);
    if (s)
        oracle_run_session(o, s, set, NULL, run);
    onx_session_free(s);
}

void oracle_run_next(oracle *o, oracle_series *all, onx_doc *doc, const onx_session_options *options, uint32_t set,
                     oracle_run *run)
{
    memset(run, 0, sizeof *run);
    if (!all->session && all->refused.status == ONX_OK)
        all->session = oracle_session(o, doc, options, &all->refused);
    if (all->session)
        oracle_run_session(o, all->session, set, NULL, run);
    else
        *run = all->refused;
}

onx_doc *oracle_copy(oracle *o)
{
    onx_doc *doc = NULL;
    if (onx_read(o->cx, ONX_KIND_MODEL, onx_str_make(o->bytes.ptr, o->bytes.len), ONX_READ_COPY, 1, &doc) != ONX_OK)
        return NULL;
    if (gen_give_folder(doc) == ONX_OK)
        return doc;
    onx_doc_free(doc);
    return NULL;
}

/* ---- one model ---- */

const oracle_row *oracle_row_get(uint32_t index)
{
    const oracle_row *const tables[] = { oracle_run_rows, oracle_change_rows };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const oracle_row *row = tables[t]; row->name; row++)
            if (index-- == 0)
                return row;
    return NULL;
}

/* Operators that give something else as soon as an operand passes a border. */
static const char *const steps[] = {
    "Floor",   "Ceil",   "Round",    "Sign",           "Hardmax",        "ArgMax",
    "ArgMin",  "TopK",   "CastLike", "Less",           "Greater",        "Equal",
    "Shrink",  "Mod",    "Unique",   "LessOrEqual",    "GreaterOrEqual", "NonMaxSuppression",
    "NonZero", "OneHot", "IsInf",    "ThresholdedRelu"
};

static onx_status look_at(void *user, const onx_visit *at)
{
    oracle *o = user;
    int dtype = ONX_UNDEFINED;
    o->graphs += at->kind == ONX_KIND_GRAPH;
    if (at->kind == ONX_KIND_TENSOR)
        dtype = ((const onx_tensor *)at->message)->data_type;
    else if (at->kind == ONX_KIND_TYPE_TENSOR)
        dtype = ((const onx_type_tensor *)at->message)->elem_type;
    else if (at->kind == ONX_KIND_NODE) {
        const onx_node *node = at->message;
        const onx_str op = onx_view(node->op_type);
        const onx_attribute *to = onx_str_is(op, "Cast") ? onx_node_attribute(node, "to") : NULL;
        uint32_t count;
        const void *value = to ? onx_attribute_value(to, ONX_SLOT_I, &count) : NULL;
        dtype = value ? (int)*(const int64_t *)value : ONX_UNDEFINED;
        o->quantized = o->quantized || onx_str_is(op, "QuantizeLinear") || onx_str_is(op, "DynamicQuantizeLinear");
        o->lists = o->lists || onx_str_is(op, "SequenceConstruct") || onx_str_is(op, "SequenceInsert") ||
                   onx_str_is(op, "SplitToSequence");
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            o->steps = o->steps || onx_str_is(op, steps[i]);
        o->steps = o->steps || (dtype && onx_dtype_class_of(dtype) != ONX_CLASS_FLOATING);
    }
    o->coarse = fmax(o->coarse, dtype == ONX_FLOAT16 ? 4e-3 : dtype == ONX_BFLOAT16 ? 3e-2 : 0);
    return ONX_OK;
}

static void check_model(oracle *o)
{
    const onx_check_options options = { .flags = ONX_CHECK_FULL | ONX_CHECK_NO_NOTES | ONX_CHECK_OPEN_SHAPES };
    onx_check_summary summary = { 0 };
    char why[ORACLE_WHY];
    const onx_status status = onx_check(o->cx, o->doc, &options, &summary);
    o->valid = status == ONX_OK && !summary.errors;
    oracle_error(o->cx, why, sizeof why);
    if (!o->valid && o->extent != ORACLE_SOME_ROWS_OPS) /* recipes do not hold for all sizes and types */
        oracle_found(o, "invalid", "%s", why);
}

static void run_reference(oracle *o)
{
    const onx_session_options plain = { .threads = 1, .plain = true, .no_optimize = true };
    for (uint32_t set = 0; set < o->set_count; set++) {
        oracle_run *run = &o->reference[set];
        oracle_run_nodes(o, set, run);
        if (run->status == ONX_E_UNSUPPORTED)
            oracle_run_doc(o, o->doc, &plain, set, run);
    }
    o->runs = o->set_count && o->reference[0].status == ONX_OK;
    if (!o->runs && o->set_count && (o->extent != ORACLE_SOME_ROWS_OPS || strstr(o->reference[0].why, "no kernel")))
        oracle_found(o, "fails", "%s", o->reference[0].why);
}

static bool open_model(oracle *o, onx_str text)
{
    onx_limits limits;
    o->cx = onx_ctx_new(NULL);
    if (!o->cx)
        return false;
    limits = onx_ctx_limits(o->cx);
    limits.memory = UINT64_C(1) << 30;
    onx_ctx_set_limits(o->cx, limits);
    if (onx_text_parse(o->cx, ONX_KIND_MODEL, text, 0, &o->doc) != ONX_OK || !onx_doc_model(o->doc)->graph ||
        gen_give_folder(o->doc) != ONX_OK ||
        onx_write(o->cx, ONX_KIND_MODEL, onx_doc_model(o->doc), 0, &o->bytes) != ONX_OK)
        return false;
    o->set_count = oracle_sets(onx_doc_model(o->doc), o->sets);
    return onx_message_walk(o->cx, ONX_KIND_MODEL, onx_doc_model(o->doc), look_at, o) == ONX_OK;
}

static void close_model(oracle *o)
{
    for (uint32_t set = 0; set < ORACLE_SETS; set++) {
        oracle_run_free(&o->reference[set]);
        for (uint32_t turn = 0; turn < ORACLE_NUDGES; turn++)
            oracle_run_free(&o->nudged[set][turn]);
    }
    oracle_free_nodes(o);
    onx_buffer_free(&o->bytes);
    onx_doc_free(o->doc);
    onx_ctx_free(o->cx);
}

static void look(oracle *o, const char *only, oracle_extent extent, void (*begin)(void *user, const char *row))
{
    gen_random random = { .state = o->seed };
    for (uint32_t i = 0; oracle_row_get(i); i++) {
        const oracle_row *row = oracle_row_get(i);
        const bool drawn = gen_below(&random, 100) < (extent == ORACLE_SOME_ROWS_OPS ? row->share_ops : row->share);
        if (only ? strcmp(row->name, only) != 0 : extent != ORACLE_ALL_ROWS && !drawn)
            continue;
        o->row = row;
        if (begin)
            begin(o->user, row->name);
        row->look(o);
        onx_diag_clear(o->cx);
    }
    o->row = NULL;
}

bool oracle_examine(oracle *o, onx_str text, uint64_t seed, const char *only, oracle_extent extent,
                    void (*begin)(void *user, const char *row))
{
    void (*const found)(void *, const char *, const char *, const char *) = o->found;
    void *const user = o->user;
    memset(o, 0, sizeof *o);
    o->found = found;
    o->user = user;
    o->seed = seed;
    o->extent = extent;
    const bool opened = open_model(o, text);
    if (begin)
        begin(user, "model");
    if (opened) {
        check_model(o);
        run_reference(o);
        if ((!only || strcmp(only, "model") != 0) && (extent != ORACLE_SOME_ROWS_OPS || (o->valid && o->runs)))
            look(o, only, extent, begin);
    } else if (o->cx) {
        char why[ORACLE_WHY];
        oracle_error(o->cx, why, sizeof why);
        oracle_found(o, "text", "%s", why);
    }
    if (o->cx)
        close_model(o);
    return opened;
}
