/* cmd_quantize.c - `onx quantize`: quantises products with constant weights to 8 or 4 bits. */
#include "cli_attribute.h"
#include "cli_table.h"
#include "cli_tune.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

typedef struct watched { /* a value of the model whose range or moments are needed */
    onx_str name;
    onx_observer *observer;
    float *moments;
    uint32_t size; /* length of the rows that the moments are about */
    bool wanted;   /* the current runs collect the moments */
    int64_t row;   /* size of the last axis, -1: unknown */
} watched;

typedef struct quantizing {
    cli_call *call;
    onx_quantize_options options;
    onx_observe_method method;
    double part;
    bool feedback;
    onx_str *texts[3];
    cli_transform frame;
    const cli_tune *tune; /* NULL: nothing is measured */
    bool external;        /* the model has data in other files */
    char folder[PATH_MAX];
    watched *watched;
    uint32_t watched_count;
    cli_table names;
    onx_value_range *range;
    const cli_samples *samples;
    cli_observer observer; /* of the unchanged model */
} quantizing;

/* The longest rows that moments are computed of; the bytes of moments that are held at a time. */
enum { MOMENTS_MAX = 2048, MOMENTS_ROOM = 16 << 20 };

/* ---- which values to watch ---- */

static bool is_product(const onx_node *node)
{
    return node->input_count >= 2 && node->output_count == 1 &&
           (cli_node_is(node, "Conv") || cli_node_is(node, "MatMul") || cli_node_is(node, "Gemm"));
}

static watched *find_watched(const quantizing *q, onx_str name)
{
    CLI_TABLE_EACH (&q->names, cli_table_hash(&q->names, name, onx_str_of("")), i) {
        if (onx_str_equal(q->watched[i].name, name))
            return &q->watched[i];
    }
    return NULL;
}

static onx_status no_memory(const quantizing *q)
{
    cli_error(q->call, "out of memory");
    return ONX_E_MEMORY;
}

static onx_status watch(quantizing *q, onx_str name)
{
    if (!name.len || find_watched(q, name))
        return ONX_OK;
    if (!cli_table_add(&q->names, cli_table_hash(&q->names, name, onx_str_of("")), q->watched_count))
        return no_memory(q);
    q->watched[q->watched_count++] = (watched){ .name = name };
    return ONX_OK;
}

static onx_status watch_products(quantizing *q)
{
    const cli_observer *o = &q->observer;
    q->names.cx = q->call->cx;
    q->watched = calloc(2 * (size_t)o->node_count + 1, sizeof *q->watched);
    if (!q->watched)
        return no_memory(q);
    for (uint32_t i = 0; i < o->node_count; i++) {
        const onx_node *n = o->nodes[i].node;
        if (!is_product(n))
            continue;
        ONX_TRY(watch(q, onx_view(n->input[0])));
        if (!q->feedback)
            ONX_TRY(watch(q, onx_view(n->output[0])));
    }
    for (uint32_t i = 0; i < o->count; i++) {
        watched *w = find_watched(q, o->list[i].name);
        q->observer.list[i].wanted = w != NULL;
        if (w)
            w->row = o->list[i].row;
    }
    return ONX_OK;
}

/* ---- collecting ranges and moments ---- */

/* Accumulates X^T X of the rows; values whose rows are too long, or change their length, get no moments. */
static onx_status add_moments(const quantizing *q, watched *w, const onx_value *v)
{
    const uint32_t n =
        v->rank && v->dims[v->rank - 1] > 0 && v->dims[v->rank - 1] <= MOMENTS_MAX ? (uint32_t)v->dims[v->rank - 1] : 0;
    if (!n || (w->size && w->size != n))
        return ONX_OK;
    if (!w->moments && !(w->moments = calloc((size_t)n * n, sizeof *w->moments)))
        return no_memory(q);
    w->size = n;
    const float *x = v->data;
    for (uint64_t row = 0; row < v->count / n; row++, x += n) {
        bool finite = true;
        for (uint32_t i = 0; i < n; i++)
            finite = finite && isfinite(x[i]);
        for (uint32_t i = 0; finite && i < n; i++)
            for (uint32_t k = 0; k < n; k++)
                w->moments[(size_t)i * n + k] += x[i] * x[k];
    }
    return ONX_OK;
}

static onx_status look(const quantizing *q, watched *w, const onx_value *v)
{
    onx_value *converted = NULL;
    if (!w || v->kind != ONX_VALUE_TENSOR ||
        (v->dtype != ONX_FLOAT && v->dtype != ONX_FLOAT16 && v->dtype != ONX_BFLOAT16))
        return ONX_OK;
    if (v->dtype != ONX_FLOAT) {
        ONX_TRY(onx_value_new_tensor(q->call->cx, ONX_FLOAT, v->rank, v->dims, &converted));
        (void)onx_convert(ONX_FLOAT, converted->data, (onx_dtype)v->dtype, v->data, v->count, true);
        v = converted;
    }
    onx_status status = ONX_OK;
    if (q->feedback)
        status = w->wanted ? add_moments(q, w, v) : ONX_OK;
    else if (!w->observer)
        status = onx_observer_new(q->call->cx, q->method, q->part, &w->observer);
    if (status == ONX_OK && w->observer)
        status = onx_observer_add(w->observer, v->data, v->count);
    onx_value_free(converted);
    return status;
}

static onx_status see(void *user, uint32_t sample, uint32_t value, const onx_value *v)
{
    const quantizing *q = user;
    (void)sample;
    return value < q->observer.count ? look(q, find_watched(q, q->observer.list[value].name), v) : ONX_OK;
}

static onx_status run_samples(quantizing *q)
{
    onx_status status = ONX_OK;
    for (uint32_t i = 0; status == ONX_OK && i < q->samples->count; i++)
        status = cli_observer_run(&q->observer, q->samples, i, &(cli_visit){ see, q });
    return status;
}

static onx_status collect_ranges(quantizing *q)
{
    enum { MOST_TOLD = 8 };
    uint32_t told = 0;
    q->range = calloc((size_t)q->watched_count + 1, sizeof *q->range);
    if (!q->range)
        return no_memory(q);
    for (uint32_t i = 0; i < q->watched_count; i++) {
        const watched *w = &q->watched[i];
        uint64_t bad = 0;
        if (!w->observer)
            continue;
        onx_value_range *r = &q->range[q->options.range_count];
        r->name = w->name;
        if (onx_observer_range(w->observer, &r->low, &r->high, &bad) == ONX_OK)
            q->options.range_count++;
        else
            onx_diag_clear(q->call->cx);
        if (bad && told++ < MOST_TOLD)
            cli_warn(q->call, "\"%.*s\" has %llu elements in the data that are not finite: they are ignored",
                     ONX_ARG(w->name), (unsigned long long)bad);
    }
    if (told > MOST_TOLD)
        cli_warn(q->call, "%u more values have such elements", told - MOST_TOLD);
    q->options.range = q->range;
    return ONX_OK;
}

/* ---- moments, computed in groups when they are requested ---- */

/* The maximum number of bytes that the moments of one value take. */
static size_t moments_size(const watched *w)
{
    const int64_t n = w->row < 0 ? MOMENTS_MAX : w->row;
    return n <= MOMENTS_MAX ? (size_t)n * (size_t)n * sizeof(float) : 0;
}

/* Runs the model for the moments of this value and, as far as memory allows, of the values that will be requested
 * next. */
static onx_status collect_moments(quantizing *q, watched *first)
{
    size_t room = 0;
    for (uint32_t i = 0; i < q->watched_count; i++) {
        free(q->watched[i].moments);
        q->watched[i].moments = NULL;
        q->watched[i].size = 0;
        q->watched[i].wanted = false;
    }
    for (watched *w = first; w < q->watched + q->watched_count; w++) {
        room += moments_size(w);
        if (w != first && room > MOMENTS_ROOM)
            break;
        w->wanted = true;
    }
    return run_samples(q);
}

static onx_status give_moments(void *user, onx_str name, onx_value_moments *out)
{
    quantizing *q = user;
    watched *w = find_watched(q, name);
    if (w && !w->wanted)
        ONX_TRY(collect_moments(q, w));
    if (w && w->moments)
        *out = (onx_value_moments){ w->name, w->size, w->moments };
    return ONX_OK;
}

/* Runs the model over the samples, or prepares for it; the names belong to `doc`, which lives as long. */
static onx_status calibrate(quantizing *q, const cli_samples *samples, onx_doc *doc)
{
    if (!onx_doc_model(doc)->graph)
        return ONX_OK;
    q->samples = samples;
    if (onx_doc_model(doc)->functions_count) /* the quantized model has none either */
        ONX_TRY(onx_inline(q->call->cx, doc, NULL));
    ONX_TRY(cli_observer_open(&q->observer, q->call, doc));
    ONX_TRY(watch_products(q));
    ONX_TRY(cli_observer_start(&q->observer));
    if (q->feedback) {
        q->options.moments_of = give_moments;
        q->options.moments_user = q;
        return ONX_OK;
    }
    ONX_TRY(run_samples(q));
    return collect_ranges(q);
}

/* ---- the command ---- */

static onx_status apply(void *user, onx_doc *doc, const onx_str *keep, uint32_t keep_count)
{
    quantizing *q = user;
    onx_quantize_options options = q->options;
    options.keep_node = keep;
    options.keep_node_count = keep_count;
    if (q->tune && q->tune->trying)
        options.changed = NULL;
    q->external |= cli_is_external(q->call, doc);
    return onx_quantize(q->call->cx, doc, &options);
}

static int read_weights(quantizing *q)
{
    static const char *const short_names[][2] = { { "float8", "float8e4m3fn" },
                                                  { "float6", "float6e2m3" },
                                                  { "float4", "float4e2m1" } };
    const char *type = cli_value(q->call, "weight-type"), *full = type;
    uint64_t block = 0;
    for (size_t i = 0; type && i < sizeof short_names / sizeof *short_names; i++)
        if (strcmp(type, short_names[i][0]) == 0)
            full = short_names[i][1];
    if (full)
        q->options.weight_type = (int32_t)onx_dtype_find(onx_str_of(full));
    const bool packed = type && onx_dtype_bits(q->options.weight_type) < 8;
    if (!cli_number(q->call, "block-size", 0, UINT32_MAX, &block))
        return CLI_MISUSE;
    q->options.block_size = packed && !cli_has(q->call, "block-size") ? 32 : (uint32_t)block;
    if (q->options.mode != ONX_QUANTIZE_WEIGHTS && (type || block || q->feedback))
        return cli_error(q->call, "--weight-type, --block-size and --feedback are for --mode weights");
    return -1;
}

static int read_mode(quantizing *q)
{
    const char *mode = cli_value(q->call, "mode"), *form = cli_value(q->call, "form");
    const char *method = cli_value(q->call, "calibrate");
    if (!mode)
        return cli_error(q->call, "say how with --mode dynamic, static or weights");
    const bool fixed = strcmp(mode, "static") == 0;
    if (!fixed && (form || method))
        return cli_error(q->call, "--form and --calibrate are for --mode static");
    q->options.mode = strcmp(mode, "dynamic") == 0           ? ONX_QUANTIZE_DYNAMIC
                      : !fixed                               ? ONX_QUANTIZE_WEIGHTS
                      : form && strcmp(form, "qlinear") == 0 ? ONX_QUANTIZE_QLINEAR
                                                             : ONX_QUANTIZE_QDQ;
    static const char *const methods[] = { "minmax", "entropy", "percentile", "mse" }; /* in the order of the enum */
    for (size_t i = 0; method && i < sizeof methods / sizeof *methods; i++)
        if (strcmp(method, methods[i]) == 0)
            q->method = (onx_observe_method)i;
    q->part = 0.9999;
    if (!cli_real(q->call, "percentile", 0.500001, 1, &q->part))
        return CLI_MISUSE;
    return -1;
}

static int read_options(quantizing *q)
{
    cli_call *call = q->call;
    onx_quantize_options *o = &q->options;
    if (!cli_transform_open(call, &q->frame))
        return CLI_MISUSE;
    o->struct_size = sizeof *o;
    o->per_channel = !cli_has(call, "per-tensor");
    q->feedback = cli_has(call, "feedback");
    int misuse = read_mode(q);
    if (misuse < 0)
        misuse = read_weights(q);
    if (misuse >= 0)
        return misuse;
    o->only = q->texts[0] = cli_texts(call, "only", &o->only_count);
    o->except = q->texts[1] = cli_texts(call, "except", &o->except_count);
    o->block_op = q->texts[2] = cli_texts(call, "block-op", &o->block_op_count);
    if (!o->only || !o->except || !o->block_op)
        return CLI_MISUSE;
    o->spill_dir = cli_folder_of(q->frame.out, q->folder, sizeof q->folder);
    o->changed = cli_transform_changed(&q->frame);
    o->user = &q->frame;
    return -1;
}

/* Prints a row for each product: the error of its output, and the part of it that the node itself adds. */
static void print_table(const cli_tune *t, FILE *to)
{
    fprintf(to, "%12s %12s  layer\n", "error", "added");
    for (uint32_t i = 0; i < t->node_count; i++) {
        const cli_node_error *n = &t->nodes[i];
        if (!onx_str_is(n->op, "Conv") && !onx_str_is(n->op, "MatMul") && !onx_str_is(n->op, "Gemm"))
            continue;
        fprintf(to, "%12.4g %12.4g  ", n->error, n->added);
        cli_put_text(to, n->name);
        fprintf(to, " (%.*s)%s\n", ONX_ARG(n->op), n->kept ? ", left in float" : "");
    }
    fprintf(to, "%12.4g %12s  outputs\n", t->error, "");
}

static onx_status quantize(quantizing *q, const cli_samples *samples, double max_error)
{
    cli_call *call = q->call;
    const bool fixed = q->options.mode == ONX_QUANTIZE_QDQ || q->options.mode == ONX_QUANTIZE_QLINEAR;
    const bool measured = cli_has(call, "table") || max_error >= 0;
    cli_tune t = {
        .call = call, .samples = samples, .path = call->operand[0], .max_error = max_error, .apply = apply, .user = q
    };
    onx_doc *doc = NULL, *sample = NULL;
    onx_status status = ONX_OK;
    q->tune = &t;
    if ((measured || fixed || q->feedback) && strcmp(t.path, "-") == 0) {
        cli_error(
            call,
            "a model from standard input can be read only once: a model that is run before the change has to be a file");
        return ONX_E_MISUSE;
    }
    if (fixed || q->feedback || measured)
        cli_samples_say(samples);
    if (fixed || q->feedback)
        status = cli_load(call, t.path, ONX_KIND_MODEL, &sample);
    if (status == ONX_OK && sample)
        status = calibrate(q, samples, sample);
    if (status == ONX_OK && measured)
        status = cli_tune_run(&t, &doc);
    if (status == ONX_OK && !measured)
        status = cli_load(call, t.path, ONX_KIND_MODEL, &doc);
    if (status == ONX_OK && !measured)
        status = apply(q, doc, NULL, 0);
    if (status == ONX_OK && measured)
        print_table(&t, q->frame.to);
    if (status == ONX_OK)
        status = cli_save_beside(&q->frame, doc, q->external);
    onx_doc_free(doc);
    q->tune = NULL;
    cli_tune_close(&t);
    for (uint32_t i = 0; i < q->watched_count; i++) {
        onx_observer_free(q->watched[i].observer);
        free(q->watched[i].moments);
    }
    cli_observer_close(&q->observer);
    onx_doc_free(sample);
    return status;
}

static int run_quantize(cli_call *call)
{
    quantizing q = { .call = call };
    cli_samples samples = { 0 };
    double max_error = -1;
    int misuse = read_options(&q);
    if (misuse < 0 && !cli_real(call, "max-error", 0, 1e30, &max_error))
        misuse = CLI_MISUSE;
    if (misuse < 0) {
        onx_status status = cli_samples_open(call, &samples);
        if (status == ONX_OK)
            status = quantize(&q, &samples, max_error);
        misuse = cli_exit(call, status);
    }
    cli_samples_close(&samples);
    for (size_t i = 0; i < sizeof q.texts / sizeof *q.texts; i++)
        free(q.texts[i]);
    free(q.watched);
    free(q.names.slots);
    free(q.range);
    return misuse;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "mode", 0, "MODE", "dynamic|static|weights",
      "quantise inputs at run time (dynamic) or by ranges from data (static), or quantise only weights" },
    { "form", 0, "FORM", "qdq|qlinear",
      "of static quantisation: QuantizeLinear and DequantizeLinear around the nodes (qdq), or QLinearConv and QLinearMatMul" },
    { "calibrate", 0, "METHOD", "minmax|entropy|percentile|mse", "how ranges are computed from data (minmax)" },
    { "percentile", 0, "P", NULL, "the fraction of all elements that a range contains (0.9999)" },
    { "per-tensor", 0, NULL, NULL, "one scale per weight instead of one per output channel" },
    { "weight-type", 0, "TYPE",
      "int8|uint8|int4|uint4|int2|uint2|float8|float8e4m3fn|float8e5m2|float6|float6e2m3|float6e3m2|float4|float4e2m1",
      "type of the weights in mode weights (int8); float8 is float8e4m3fn, float6 float6e2m3, float4 float4e2m1" },
    { "block-size", 0, "N", NULL,
      "number of elements along the reduction axis that share a scale; 0: all of a channel (below 8 bits: 32)" },
    { "feedback", 0, NULL, NULL,
      "compensate the rounding error of each weight in the following ones, weighted by data (as GPTQ does)" },
    { "only", 0, "NAME", NULL, "only nodes with a matching name (* any text, ? one byte); may be repeated" },
    { "except", 0, "NAME", NULL, "no node with a matching name; may be repeated" },
    { "block-op", 0, "OP", NULL, "no node of this operator; may be repeated" },
    CLI_OPTIONS_DATA,
    { "table", 0, NULL, NULL, "run the model before and after, and print the error of each layer" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_quantize = {
    .name = "quantize",
    .summary = "quantise products with constant weights to 8 or 4 bits",
    .operands = "IN",
    .help = "Conv, MatMul and Gemm with constant weights are computed with 8-bit integers (dynamic, static), or\n"
            "keep their weights in 8 or 4 bits and dequantise them where they are used (weights). The ranges of\n"
            "static quantisation come from --data, or from made-up inputs; the model runs on these with weights\n"
            "mapped from the file. Weights are rewritten in pieces without being held in memory. Models of older\n"
            "operator sets are converted to the version that is needed. Errors are relative (the root of the\n"
            "ratio of the sums of squares). With --max-error, the layers that add most to the error of the\n"
            "outputs stay in floating point, until it is small enough.\n",
    .example = "onx quantize model.onnx -o int8.onnx --mode dynamic\n"
               "onx quantize model.onnx -o int8.onnx --mode static --form qlinear --data images/ --table\n"
               "onx quantize model.onnx -o int4.onnx --mode weights --weight-type int4 --max-error 0.05\n",
    .options = options,
    .run = run_quantize,
};
