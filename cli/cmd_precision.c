/* cmd_precision.c - `onx precision`: converts values and weights to another floating-point type. */
#include "cli_tune.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

typedef struct halving {
    cli_call *call;
    onx_precision_options options;
    onx_str *texts[3];
    cli_transform frame;
    const cli_tune *tune; /* NULL: nothing is measured */
    onx_str *keep;        /* values, in memory of the original */
    uint32_t around;      /* number of nodes that compute or read them */
    bool external;        /* the model has data in other files */
    char folder[PATH_MAX];
} halving;

static onx_status apply(void *user, onx_doc *doc, const onx_str *keep, uint32_t keep_count)
{
    halving *h = user;
    onx_precision_options options = h->options;
    options.keep_node = keep;
    options.keep_node_count = keep_count;
    if (h->tune && h->tune->trying)
        options.changed = NULL;
    h->external |= cli_is_external(h->call, doc);
    return onx_precision(h->call->cx, doc, &options);
}

/* ---- values in the data that are beyond the range of the type ---- */

typedef struct overflow {
    halving *h;
    const cli_observer *observer;
    bool *beyond;    /* per value */
    double *largest; /* per value: the largest magnitude of its elements, while none is beyond the range */
} overflow;

static onx_status look(void *user, uint32_t sample, uint32_t value, const onx_value *v)
{
    overflow *o = user;
    (void)sample;
    if (value >= o->observer->count || o->beyond[value] || v->kind != ONX_VALUE_TENSOR ||
        onx_dtype_class_of(v->dtype) != ONX_CLASS_FLOATING)
        return ONX_OK;
    for (uint64_t i = 0; i < v->count; i += 512) {
        double x[512];
        const uint64_t n = v->count - i < 512 ? v->count - i : 512;
        const char *at = (const char *)v->data + i * onx_dtype_bits(v->dtype) / 8;
        if (onx_convert(ONX_DOUBLE, x, (onx_dtype)v->dtype, at, n, true) != ONX_OK)
            return ONX_OK;
        for (uint64_t k = 0; k < n; k++) {
            const double size = isfinite(x[k]) ? fabs(x[k]) : 0;
            if (size > 65504) {
                o->beyond[value] = true;
                return ONX_OK;
            }
            o->largest[value] = fmax(o->largest[value], size);
        }
    }
    return ONX_OK;
}

static bool is_kept(const halving *h, onx_str name)
{
    for (uint32_t i = 0; i < h->options.keep_value_count && name.len; i++)
        if (onx_str_equal(h->keep[i], name))
            return true;
    return false;
}

/* Nodes of the body of an If, Loop or Scan count, and not the node that contains them. */
static uint32_t count_around(const halving *h, const cli_observer *o)
{
    uint32_t count = 0;
    for (uint32_t i = 0; h->options.keep_value_count && i < o->node_count; i++) {
        const onx_node *n = o->nodes[i].node;
        bool any = false;
        for (uint32_t k = 0; k < n->input_count && !any; k++)
            any = is_kept(h, onx_view(n->input[k]));
        for (uint32_t k = 0; k < n->output_count && !any; k++)
            any = is_kept(h, onx_view(n->output[k]));
        count += any && !o->nodes[i].opened;
    }
    return count;
}

/* Such values keep their types, so that the nodes that compute and read them do. */
static onx_status keep_beyond(const overflow *o)
{
    enum { MOST_TOLD = 8 };
    halving *h = o->h;
    uint32_t count = 0;
    h->keep = calloc((size_t)o->observer->count + 1, sizeof *h->keep);
    if (!h->keep) {
        cli_error(h->call, "out of memory");
        return ONX_E_MEMORY;
    }
    for (uint32_t v = 0; v < o->observer->count; v++) {
        const onx_str name = o->observer->list[v].name;
        if (!o->beyond[v])
            continue;
        h->keep[h->options.keep_value_count++] = name;
        if (count++ < MOST_TOLD)
            cli_warn(h->call, "\"%.*s\" has elements beyond the range of float16: the nodes around it keep their type",
                     ONX_ARG(name));
    }
    if (count > MOST_TOLD)
        cli_warn(h->call, "%u more values have such elements", count - MOST_TOLD);
    h->options.keep_value = h->keep;
    h->around = count_around(h, o->observer);
    return ONX_OK;
}

/* Reports values whose elements all become zero: the error of the outputs alone would not explain the loss. */
static void tell_vanished(const overflow *o)
{
    const double half_of_least = 0x1p-25;
    uint32_t count = 0, first = 0;
    for (uint32_t v = 0; v < o->observer->count; v++)
        if (o->observer->list[v].from == CLI_FROM_NODE && !o->beyond[v] && o->largest[v] > 0 &&
            o->largest[v] <= half_of_least && !count++)
            first = v;
    if (count)
        cli_warn(
            o->h->call,
            "\"%.*s\"%s: all elements, of at most %.2g, are too small for float16 and become zero; bfloat16 can represent them",
            ONX_ARG(o->observer->list[first].name), count > 1 ? " and others" : "", o->largest[first]);
}

static onx_status find_overflow(halving *h, cli_tune *t)
{
    cli_observer observer = { 0 };
    overflow o = { h, &observer, NULL, NULL };
    ONX_TRY(cli_tune_load(t));
    onx_status status = cli_observer_open(&observer, h->call, t->original);
    o.beyond = calloc((size_t)observer.count + 1, sizeof *o.beyond);
    o.largest = calloc((size_t)observer.count + 1, sizeof *o.largest);
    if (status == ONX_OK && (!o.beyond || !o.largest)) {
        cli_error(h->call, "out of memory");
        status = ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < observer.count; i++)
        observer.list[i].wanted = observer.list[i].from != CLI_FROM_WEIGHT; /* these are clamped, with a warning */
    if (status == ONX_OK)
        status = cli_observer_start(&observer);
    for (uint32_t i = 0; status == ONX_OK && i < t->samples->count; i++)
        status = cli_observer_run(&observer, t->samples, i, &(cli_visit){ look, &o });
    if (status == ONX_OK)
        status = keep_beyond(&o);
    if (status == ONX_OK)
        tell_vanished(&o);
    free(o.beyond);
    free(o.largest);
    cli_observer_close(&observer);
    return status;
}

/* ---- the command ---- */

static int read_options(halving *h)
{
    cli_call *call = h->call;
    const char *to = cli_value(call, "to");
    onx_precision_options *o = &h->options;
    if (!to)
        return cli_error(call, "say which type is wanted with --to float16, bfloat16, float32 or double");
    if (!cli_transform_open(call, &h->frame))
        return CLI_MISUSE;
    o->struct_size = sizeof *o;
    o->to = strcmp(to, "float16") == 0    ? ONX_FLOAT16
            : strcmp(to, "bfloat16") == 0 ? ONX_BFLOAT16
            : strcmp(to, "double") == 0   ? ONX_DOUBLE
                                          : ONX_FLOAT;
    o->dry_run = h->frame.dry_run;
    o->keep_io = cli_has(call, "keep-io");
    o->convert_exact = cli_has(call, "all");
    o->only = h->texts[0] = cli_texts(call, "only", &o->only_count);
    o->except = h->texts[1] = cli_texts(call, "except", &o->except_count);
    o->block_op = h->texts[2] = cli_texts(call, "block-op", &o->block_op_count);
    if (!o->only || !o->except || !o->block_op)
        return CLI_MISUSE;
    o->spill_dir = cli_folder_of(h->frame.out, h->folder, sizeof h->folder);
    o->changed = cli_transform_changed(&h->frame);
    o->user = &h->frame;
    return -1;
}

static onx_status convert(halving *h, const cli_samples *samples, double max_error)
{
    cli_call *call = h->call;
    const bool measured = !h->options.dry_run && (samples->given || max_error >= 0 || cli_has(call, "samples"));
    cli_tune t = {
        .call = call, .samples = samples, .path = call->operand[0], .max_error = max_error, .apply = apply, .user = h
    };
    onx_doc *doc = NULL;
    onx_status status = ONX_OK;
    h->tune = &t;
    if (measured && strcmp(t.path, "-") == 0) {
        cli_error(
            call,
            "a model from standard input can be read only once: with --data or --samples the model has to be a file");
        return ONX_E_MISUSE;
    }
    if (measured)
        cli_samples_say(samples);
    if (measured && h->options.to == ONX_FLOAT16)
        status = find_overflow(h, &t);
    if (status == ONX_OK && measured)
        status = cli_tune_run(&t, &doc);
    if (status == ONX_OK && !measured)
        status = cli_load(call, t.path, ONX_KIND_MODEL, &doc);
    if (status == ONX_OK && !measured)
        status = apply(h, doc, NULL, 0);
    if (status == ONX_OK && measured) {
        uint32_t kept = h->around;
        for (uint32_t i = 0; i < t.node_count; i++)
            kept += t.nodes[i].kept;
        fprintf(h->frame.to, "error %.4g, %u node%s kept\n", t.error, kept, kept == 1 ? "" : "s");
    }
    if (status == ONX_OK)
        status = cli_save_beside(&h->frame, doc, h->external);
    onx_doc_free(doc);
    h->tune = NULL;
    cli_tune_close(&t);
    return status;
}

static int run_precision(cli_call *call)
{
    halving h = { .call = call };
    cli_samples samples = { 0 };
    double max_error = -1;
    int misuse = read_options(&h);
    if (misuse < 0 && !cli_real(call, "max-error", 0, 1e30, &max_error))
        misuse = CLI_MISUSE;
    if (misuse < 0) {
        onx_status status = cli_samples_open(call, &samples);
        if (status == ONX_OK)
            status = convert(&h, &samples, max_error);
        misuse = cli_exit(call, status);
    }
    cli_samples_close(&samples);
    for (size_t i = 0; i < sizeof h.texts / sizeof *h.texts; i++)
        free(h.texts[i]);
    free(h.keep);
    return misuse;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    { "to", 0, "TYPE", "float16|bfloat16|float32|double", "target type" },
    { "keep-io", 0, NULL, NULL, "inputs and outputs of the model keep their types" },
    { "all", 0, NULL, NULL, "also convert nodes that compute positions, ranks or angles" },
    { "only", 0, "NAME", NULL,
      "only nodes with a matching name (* any text, ? one byte), without inputs and outputs; may be repeated" },
    { "except", 0, "NAME", NULL, "no node with a matching name; may be repeated" },
    { "block-op", 0, "OP", NULL, "no node of this operator; may be repeated" },
    CLI_OPTIONS_DATA,
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_precision = {
    .name = "precision",
    .summary = "convert values and weights to float16, bfloat16, float32 or double",
    .operands = "IN",
    .help = "Converts values, weights, inputs and outputs of the model. Nodes whose operator does not accept the\n"
            "type keep theirs, with as few Casts as possible, and so do sizes that are computed in floating\n"
            "point. For float16 and bfloat16, so do cheap nodes whose rounding would change which element is\n"
            "selected rather than only its accuracy: those before boxes (NonMaxSuppression, RoiAlign), grids\n"
            "(GridSample) and ranks (TopK), and those between integers and Sin or Cos. A note counts them; --all\n"
            "converts them as well. Weights beyond the range of the type become its largest finite numbers, with\n"
            "a warning. Weights are rewritten in pieces without being held in memory, and external weights stay\n"
            "external. With --data the model runs before and after the conversion, with weights mapped from the\n"
            "file: nodes with values beyond the range of float16 are not converted, and the relative error of the\n"
            "outputs is printed (the root of the ratio of the sums of squares). With --max-error, the nodes that\n"
            "add most to this error are not converted, until it is small enough. Models of operator sets without\n"
            "the type are converted to the first version that has it.\n",
    .example = "onx precision model.onnx -o half.onnx --to float16 --keep-io\n"
               "onx precision model.onnx -o half.onnx --to float16 --data images/ --max-error 0.001\n"
               "onx precision model.onnx -o mixed.onnx --to bfloat16 --block-op Softmax --except 'head/*'\n",
    .options = options,
    .run = run_precision,
};
