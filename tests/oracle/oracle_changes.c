/* oracle_changes.c - rows about transforms and formats: the model stays valid, and its results the same. */
#include "oracle/oracle.h"

#include <onx/check.h>
#include <onx/infer.h>
#include <onx/io.h>
#include <onx/text.h>
#include <onx/transform.h>

#include "gen/gen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One transform, or several in a row, of *doc. */
typedef struct change {
    onx_status (*apply)(oracle *o, onx_doc **doc, const struct change *change);
    bool exact;      /* the results keep their bits */
    bool may_refuse; /* ONX_E_UNSUPPORTED is an answer */
    bool idempotent; /* a second time changes nothing */
    double loose;    /* largest deviation, relative to the largest element; 0: what rounding explains */
    int64_t number;  /* for the transform */
} change;

static bool is_valid(oracle *o, onx_doc *doc, char *why, size_t size)
{
    const onx_check_options options = { .flags = ONX_CHECK_FULL | ONX_CHECK_NO_NOTES | ONX_CHECK_OPEN_SHAPES };
    onx_check_summary summary = { 0 };
    const onx_status status = onx_check(o->cx, doc, &options, &summary);
    oracle_error(o->cx, why, size);
    return status == ONX_OK && !summary.errors;
}

static bool same_bytes(oracle *o, onx_doc *doc, const onx_buffer *bytes)
{
    onx_buffer now = { 0 };
    const bool same = onx_write(o->cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &now) == ONX_OK &&
                      now.len == bytes->len && memcmp(now.ptr, bytes->ptr, now.len) == 0;
    onx_buffer_free(&now);
    return same;
}

static void look_again(oracle *o, onx_doc **doc, const change *c)
{
    onx_buffer before = { 0 };
    if (onx_write(o->cx, ONX_KIND_MODEL, onx_doc_model(*doc), 0, &before) == ONX_OK && c->apply(o, doc, c) == ONX_OK &&
        !same_bytes(o, *doc, &before))
        oracle_found(o, "again", "a second time changes the model");
    onx_buffer_free(&before);
    onx_diag_clear(o->cx);
}

static bool has_same_bits(const oracle_run *a, const oracle_run *b)
{
    char ignored[ORACLE_WHY];
    bool same = a->status == ONX_OK && b->status == ONX_OK && a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same =
            a->outputs[i] && b->outputs[i] && oracle_same_bits(a->outputs[i], b->outputs[i], ignored, sizeof ignored);
    return same;
}

/* Constants are computed by the usual kernels, which are then those that the bits agree with. */
static bool compare_as_is(oracle *o, onx_doc *doc, uint32_t set)
{
    const onx_session_options as_is = { .threads = 1, .no_optimize = true };
    oracle_run before, after;
    oracle_run_doc(o, o->doc, &as_is, set, &before);
    oracle_run_doc(o, doc, &as_is, set, &after);
    const bool good = oracle_compare(o, "without fusions", &after, &before, set, true);
    oracle_run_free(&before);
    oracle_run_free(&after);
    return good;
}

/* Half precision ends at 65504, and there is no NaN of 8 bits, nor a scale for a tensor that has one. */
static bool is_moderate(oracle *o, uint32_t set)
{
    const oracle_run *run = &o->reference[set];
    double largest = 0;
    for (uint32_t i = 0; i < o->sets[set].count; i++)
        if (o->sets[set].input[i].special)
            return false;
    for (uint32_t i = 0; i < run->count; i++)
        largest = oracle_is_finite(run->outputs[i]) ? fmax(largest, oracle_largest(run->outputs[i])) : INFINITY;
    return largest < 1000;
}

static void compare_changed(oracle *o, onx_doc *doc, const change *c)
{
    const onx_session_options plain = { .threads = 1, .plain = true, .no_optimize = true }, usual = { .threads = 1 };
    const double coarse = o->coarse;
    const bool quantized = o->quantized;
    if (c->loose > 0) {
        o->coarse = c->loose;
        o->quantized = true;
        o->types_only = o->steps;
        oracle_forget_nudged(o); /* others, by the rounding of such types */
    }
    oracle_series all[2] = { { 0 } };
    bool good = true;
    for (uint32_t set = 0; good && set < o->set_count; set++) {
        oracle_run run;
        if (o->reference[set].status != ONX_OK || (c->loose > 0 && !is_moderate(o, set)))
            continue; /* what fails is not needed any more, perhaps */
        oracle_run_next(o, &all[0], doc, &plain, set, &run);
        good = c->exact && !has_same_bits(&run, &o->reference[set])
                   ? compare_as_is(o, doc, set)
                   : oracle_compare(o, "plain", &run, &o->reference[set], set, false);
        oracle_run_free(&run);
        if (!good || set % 2)
            continue;
        oracle_run_next(o, &all[1], doc, &usual, set, &run);
        good = oracle_compare(o, "default", &run, &o->reference[set], set, false);
        oracle_run_free(&run);
    }
    onx_session_free(all[0].session);
    onx_session_free(all[1].session);
    if (c->loose > 0)
        oracle_forget_nudged(o);
    o->types_only = false;
    o->coarse = coarse;
    o->quantized = quantized;
}

static void look_change(oracle *o)
{
    const change *c = o->row->data;
    char why[ORACLE_WHY];
    onx_doc *doc = oracle_copy(o);
    const onx_status status = doc ? c->apply(o, &doc, c) : ONX_E_MEMORY;
    if (status != ONX_OK) {
        oracle_error(o->cx, why, sizeof why);
        if (!why[0])
            oracle_found(o, "silent", "the transform fails without a message");
        else if (o->runs && o->valid && !(c->may_refuse && status == ONX_E_UNSUPPORTED))
            oracle_found(o, "refused", "%s", why);
    } else {
        onx_diag_clear(o->cx);
        if (o->valid && !is_valid(o, doc, why, sizeof why))
            oracle_found(o, "invalid", "%s", why);
        compare_changed(o, doc, c);
        if (c->idempotent)
            look_again(o, &doc, c);
    }
    onx_doc_free(doc);
}

/* ---- transforms ---- */

static onx_status simplify(oracle *o, onx_doc **doc, const change *c)
{
    const onx_simplify_options options = { .exact = c->exact };
    return onx_simplify(o->cx, *doc, &options);
}

static onx_status retarget_to(oracle *o, onx_doc *doc, int64_t version)
{
    const onx_opset_version to = { .version = version };
    const onx_retarget_options options = { .opset = &to, .opset_count = 1 };
    return onx_retarget(o->cx, doc, &options);
}

static int64_t drawn_version(const oracle *o)
{
    gen_random r = { .state = o->seed ^ 0x5eed };
    const int64_t newest = onxi_domain_newest(onx_str_of(""));
    return 7 + gen_below(&r, (uint32_t)newest - 6);
}

static int64_t own_version(const oracle *o)
{
    const onx_model *model = onx_doc_model(o->doc);
    for (uint32_t i = 0; i < model->opset_import_count; i++)
        if (!onx_view(model->opset_import[i]->domain).len)
            return model->opset_import[i]->version;
    return 1;
}

static onx_status retarget(oracle *o, onx_doc **doc, const change *c)
{
    return retarget_to(o, *doc, c->number ? c->number : drawn_version(o));
}

static onx_status retarget_back(oracle *o, onx_doc **doc, const change *c)
{
    ONX_TRY(retarget(o, doc, c));
    return retarget_to(o, *doc, own_version(o));
}

static onx_status retarget_simplify(oracle *o, onx_doc **doc, const change *c)
{
    ONX_TRY(retarget(o, doc, c));
    return onx_simplify(o->cx, *doc, NULL);
}

static onx_status inline_functions(oracle *o, onx_doc **doc, const change *c)
{
    const onx_inline_options options = { .schema = c->number != 0 };
    return onx_inline(o->cx, *doc, &options);
}

static onx_status outline(oracle *o, onx_doc **doc, const change *c)
{
    const onx_outline_options options = { .min_nodes = (uint32_t)c->number };
    return onx_outline(o->cx, *doc, &options);
}

static onx_status compress(oracle *o, onx_doc **doc, const change *c)
{
    const onx_compress_options options = { .sparse = c->number != 0 };
    return onx_compress(o->cx, *doc, &options);
}

static onx_status infer(oracle *o, onx_doc **doc, const change *c)
{
    (void)c;
    return onx_infer_model(o->cx, *doc, NULL);
}

static onx_status precision(oracle *o, onx_doc **doc, const change *c)
{
    const onx_precision_options options = { .keep_io = true, .to = (int32_t)c->number };
    return onx_precision(o->cx, *doc, &options);
}

static onx_status precision_simplify(oracle *o, onx_doc **doc, const change *c)
{
    ONX_TRY(precision(o, doc, c));
    return onx_simplify(o->cx, *doc, NULL);
}

static onx_status quantize(oracle *o, onx_doc **doc, const change *c)
{
    const onx_quantize_options options = { .mode = (onx_quantize_mode)c->number, .per_channel = true };
    return onx_quantize(o->cx, *doc, &options);
}

/* In parts, which are joined again. */
static onx_status split_and_merge(oracle *o, onx_doc **doc, const change *c)
{
    onx_doc *part[2] = { NULL, NULL }, *whole = NULL;
    const onx_graph *graph = onx_doc_model(*doc)->graph;
    (void)c;
    const onx_split_options at = { .struct_size = 0 };
    onx_buffer bytes = { 0 };
    onx_status status = onx_split(o->cx, *doc, &at, 2, part);
    if (status == ONX_E_MISUSE) { /* too few nodes */
        onx_diag_clear(o->cx);
        return ONX_OK;
    }
    ONX_TRY(status);
    status = onx_write(o->cx, ONX_KIND_MODEL, onx_doc_model(part[0]), 0, &bytes);
    if (status == ONX_OK)
        status = onx_read(o->cx, ONX_KIND_MODEL, onx_str_make(bytes.ptr, bytes.len), ONX_READ_COPY, 1, &whole);
    if (status == ONX_OK) {
        onx_str outputs[ORACLE_OUTPUTS];
        uint32_t count = 0;
        for (; count < graph->output_count && count < ORACLE_OUTPUTS; count++)
            outputs[count] = onx_view(graph->output[count]->name);
        const onx_merge_options options = { .how = ONX_MERGE_BY_NAME, .output = outputs, .output_count = count };
        status = onx_merge(o->cx, whole, &part[1], 1, &options);
    }
    onx_buffer_free(&bytes);
    /* what is merged may share messages with the parts: a copy does not */
    if (status == ONX_OK)
        status = onx_write(o->cx, ONX_KIND_MODEL, onx_doc_model(whole), 0, &bytes);
    if (status == ONX_OK) {
        onx_doc *copy = NULL;
        status = onx_read(o->cx, ONX_KIND_MODEL, onx_str_make(bytes.ptr, bytes.len), ONX_READ_COPY, 1, &copy);
        onx_buffer_free(&bytes);
        onx_doc_free(whole);
        onx_doc_free(part[0]);
        onx_doc_free(part[1]);
        if (status == ONX_OK) {
            onx_doc_free(*doc);
            *doc = copy;
        }
        return status;
    }
    onx_doc_free(whole);
    onx_doc_free(part[0]);
    onx_doc_free(part[1]);
    return status;
}

/* To every version that there is. */
static void look_versions(oracle *o)
{
    const int64_t last = onxi_domain_newest(onx_str_of(""));
    for (int64_t version = 6; version <= last; version++) {
        const change c = { .apply = retarget, .may_refuse = true, .number = version };
        const oracle_row row = { .name = o->row->name, .data = &c }, *kept = o->row;
        const uint32_t before = o->findings;
        o->row = &row;
        look_change(o);
        o->row = kept;
        if (o->findings > before)
            oracle_found(o, "version", "this was to version %d", (int)version);
    }
}

/* ---- formats ---- */

typedef struct bytes {
    char *ptr;
    size_t len, room;
} bytes;

static onx_status collect(void *user, onx_str more)
{
    bytes *b = user;
    if (b->len + more.len + 1 > b->room) {
        char *grown = realloc(b->ptr, (b->len + more.len + 1) * 2);
        if (!grown)
            return ONX_E_MEMORY;
        b->ptr = grown;
        b->room = (b->len + more.len + 1) * 2;
    }
    if (more.len)
        memcpy(b->ptr + b->len, more.ptr, more.len);
    b->len += more.len;
    return ONX_OK;
}

static onx_status through_text(onx_ctx *cx, const onx_model *model, onx_sink sink, const bytes *text, onx_doc **out)
{
    ONX_TRY(onx_text_print(cx, ONX_KIND_MODEL, model, NULL, sink));
    return onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(text->ptr, text->len), 0, out);
}

static onx_status through_textproto(onx_ctx *cx, const onx_model *model, onx_sink sink, const bytes *text,
                                    onx_doc **out)
{
    ONX_TRY(onx_textproto_write(cx, ONX_KIND_MODEL, model, sink));
    return onx_textproto_read(cx, ONX_KIND_MODEL, onx_str_make(text->ptr, text->len), out);
}

static onx_status through_json(onx_ctx *cx, const onx_model *model, onx_sink sink, const bytes *text, onx_doc **out)
{
    ONX_TRY(onx_json_write(cx, ONX_KIND_MODEL, model, sink));
    return onx_json_read(cx, ONX_KIND_MODEL, onx_str_make(text->ptr, text->len), out);
}

typedef struct format {
    onx_status (*through)(onx_ctx *cx, const onx_model *model, onx_sink sink, const bytes *text, onx_doc **out);
} format;

static void look_format(oracle *o)
{
    const format *f = o->row->data;
    bytes text = { 0 };
    onx_doc *doc = NULL;
    char why[ORACLE_WHY];
    if (f->through(o->cx, onx_doc_model(o->doc), (onx_sink){ collect, &text }, &text, &doc) != ONX_OK) {
        oracle_error(o->cx, why, sizeof why);
        oracle_found(o, "refused", "%s", why);
    } else if (!same_bytes(o, doc, &o->bytes)) {
        oracle_found(o, "bytes", "the model has changed");
    }
    onx_doc_free(doc);
    free(text.ptr);
}

static const format by_text = { through_text }, by_textproto = { through_textproto }, by_json = { through_json };

static const change simplified = { .apply = simplify, .idempotent = true },
                    simplified_exact = { .apply = simplify, .exact = true, .idempotent = true },
                    newest = { .apply = retarget, .may_refuse = true, .number = 26 },
                    drawn = { .apply = retarget, .may_refuse = true },
                    back = { .apply = retarget_back, .may_refuse = true },
                    then_simplified = { .apply = retarget_simplify, .may_refuse = true },
                    newest_simplified = { .apply = retarget_simplify, .may_refuse = true, .number = 26 },
                    inlined = { .apply = inline_functions, .exact = true },
                    by_body = { .apply = inline_functions, .may_refuse = true, .number = 1 },
                    outlined = { .apply = outline, .exact = true, .number = 2 },
                    compressed = { .apply = compress, .exact = true, .number = 1 },
                    inferred = { .apply = infer, .exact = true },
                    halves = { .apply = precision, .may_refuse = true, .loose = 0.5, .number = ONX_FLOAT16 },
                    brief = { .apply = precision, .may_refuse = true, .loose = 0.5, .number = ONX_BFLOAT16 },
                    doubled = { .apply = precision, .may_refuse = true, .number = ONX_DOUBLE },
                    half_simplified = { .apply = precision_simplify,
                                        .may_refuse = true,
                                        .loose = 0.5,
                                        .number = ONX_FLOAT16 },
                    weights = { .apply = quantize, .may_refuse = true, .loose = 0.5, .number = ONX_QUANTIZE_WEIGHTS },
                    dynamic = { .apply = quantize, .may_refuse = true, .loose = 0.5, .number = ONX_QUANTIZE_DYNAMIC },
                    parts = { .apply = split_and_merge, .exact = true, .may_refuse = true };

const oracle_row oracle_change_rows[] = {
    { "simplify", 60, 30, look_change, &simplified },
    { "simplify_exact", 25, 10, look_change, &simplified_exact },
    { "retarget_newest", 25, 0, look_change, &newest },
    { "retarget", 60, 0, look_change, &drawn },
    { "retarget_back", 25, 30, look_change, &back },
    { "retarget_simplify", 25, 30, look_change, &then_simplified },
    { "newest_simplify", 25, 20, look_change, &newest_simplified },
    { "retarget_all", 2, 100, look_versions, NULL },
    { "inline", 25, 0, look_change, &inlined },
    { "inline_schema", 25, 100, look_change, &by_body },
    { "outline", 15, 0, look_change, &outlined },
    { "compress", 15, 5, look_change, &compressed },
    { "infer", 15, 20, look_change, &inferred },
    { "precision_f16", 25, 50, look_change, &halves },
    { "precision_bf16", 15, 50, look_change, &brief },
    { "precision_double", 20, 100, look_change, &doubled },
    { "precision_simplify", 10, 20, look_change, &half_simplified },
    { "quantize_weights", 10, 5, look_change, &weights },
    { "quantize_dynamic", 10, 5, look_change, &dynamic },
    { "split_merge", 15, 0, look_change, &parts },
    { "text", 20, 20, look_format, &by_text },
    { "textproto", 10, 10, look_format, &by_textproto },
    { "json", 10, 10, look_format, &by_json },
    { .name = NULL },
};
