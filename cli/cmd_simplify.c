/* cmd_simplify.c - `onx simplify`: removes the parts of a model that its results do not need. */
#include "cli_dims.h"
#include "cli_inputs.h"
#include "cli_transform.h"

#include <stdlib.h>

/* ---- options ---- */

typedef struct request {
    cli_transform frame;
    onx_simplify_options options;
    cli_dims dims;
    onx_str *passes, *keep;
    onx_input_shape *shapes;
    cli_shape *sizes;
} request;

static void free_request(request *r)
{
    cli_dims_free(&r->dims);
    free(r->passes);
    free(r->keep);
    free(r->shapes);
    free(r->sizes);
}

/* --passes a,b */
static bool read_passes(const cli_call *call, request *r)
{
    const char *text = cli_value(call, "passes");
    if (!text)
        return true;
    if (!(r->passes = calloc(strlen(text) + 1, sizeof *r->passes)))
        return cli_error(call, "out of memory"), false;
    while (*text) {
        const size_t len = strcspn(text, ",");
        if (len)
            r->passes[r->options.pass_count++] = onx_str_make(text, len);
        text += len + (text[len] != '\0');
    }
    return r->options.pass_count != 0 || (cli_error(call, "--passes is empty"), false);
}

static bool read_keep(const cli_call *call, request *r)
{
    const char *text;
    if (!(r->keep = calloc((size_t)call->given_count + 1, sizeof *r->keep)))
        return cli_error(call, "out of memory"), false;
    while ((text = cli_value_at(call, "keep", (int)r->options.keep_count)) != NULL)
        r->keep[r->options.keep_count++] = onx_str_of(text);
    return true;
}

/* --input-shape NAME=1x3x224x224 */
static bool read_shapes(const cli_call *call, request *r)
{
    const size_t most = (size_t)call->given_count + 1;
    const char *text, *rest;
    r->shapes = calloc(most, sizeof *r->shapes);
    r->sizes = calloc(most, sizeof *r->sizes);
    if (!r->shapes || !r->sizes)
        return cli_error(call, "out of memory"), false;
    while ((text = cli_value_at(call, "input-shape", (int)r->options.shape_count)) != NULL) {
        cli_shape *size = &r->sizes[r->options.shape_count];
        onx_input_shape *shape = &r->shapes[r->options.shape_count];
        if (!cli_split(call, "input-shape", text, &shape->name, &rest))
            return false;
        if (!cli_shape_read(rest, size))
            return cli_error(call, "--input-shape %s: a shape is written like 1x3x224x224", text), false;
        shape->dims = size->dims;
        shape->rank = size->rank;
        r->options.shape_count++;
    }
    return true;
}

static bool read_request(const cli_call *call, request *r)
{
    r->options = (onx_simplify_options){ .struct_size = sizeof r->options,
                                         .exact = cli_has(call, "exact"),
                                         .freeze_defaults = cli_has(call, "freeze-defaults"),
                                         .changed = cli_transform_changed(&r->frame),
                                         .user = &r->frame };
    if (!cli_number(call, "fold-limit", 1, INT64_MAX, &r->options.fold_limit) || !cli_dims_read(call, &r->dims) ||
        !read_passes(call, r) || !read_keep(call, r) || !read_shapes(call, r))
        return false;
    r->options.fixed = r->dims.list;
    r->options.fixed_count = r->dims.count;
    r->options.pass = r->passes;
    r->options.keep = r->keep;
    r->options.shape = r->shapes;
    return true;
}

/* ---- printing ---- */

static onx_status count_node(void *user, const onx_visit *at)
{
    *(uint64_t *)user += at->kind == ONX_KIND_NODE;
    return ONX_OK;
}

static uint64_t nodes_of(onx_ctx *cx, onx_doc *doc)
{
    uint64_t count = 0;
    (void)onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(doc), count_node, &count);
    return count;
}

static onx_status simplify(onx_ctx *cx, onx_doc *doc, void *user)
{
    const request *r = user;
    const uint64_t before = nodes_of(cx, doc);
    ONX_TRY(onx_simplify(cx, doc, &r->options));
    fprintf(r->frame.to, "%llu nodes of %llu are left\n", (unsigned long long)nodes_of(cx, doc),
            (unsigned long long)before);
    return ONX_OK;
}

static int run_simplify(cli_call *call)
{
    request r = { .dims = { 0 } };
    if (!cli_transform_open(call, &r.frame))
        return CLI_MISUSE;
    const int exit_status =
        read_request(call, &r) ? cli_transform_run(&r.frame, call->operand[0], simplify, &r) : CLI_MISUSE;
    free_request(&r);
    return exit_status;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "passes", 0, "A,B", NULL,
      "only these passes: fold, shape, identity, merge, repeats, control, affine, fuse, unused" },
    { "exact", 0, NULL, NULL, "only passes that keep the results bit-identical" },
    { "dim", 0, "NAME=N", NULL, "set the symbolic dimension NAME to N first; may be repeated" },
    { "input-shape", 0, "NAME=1x3x224x224", NULL, "set the shape of this input first; may be repeated" },
    { "freeze-defaults", 0, NULL, NULL, "make inputs with a default constants, which callers cannot set any more" },
    { "keep", 0, "NAME", NULL, "keep this value under its name; may be repeated" },
    { "fold-limit", 0, "SIZE", NULL, "fold constants of up to this size, even if the model grows (1K)" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_simplify = {
    .name = "simplify",
    .summary = "remove what the results of a model do not need",
    .operands = "IN",
    .help = "Folds constants, shapes that are known (also as expressions over the symbols of the model) and\n"
            "branches that are always taken. Removes nodes that only pass their input on, compute something twice\n"
            "or are not needed. Folds BatchNormalization and constant factors into weights, and replaces\n"
            "sequences of nodes that exporters write by the standard operators that they stand for. Inputs and\n"
            "outputs keep their names; a model grows only by --fold-limit. Types that the file\n"
            "declares for inner values and outputs are not believed. An input with a default value (an initializer)\n"
            "stays variable, unless --freeze-defaults is given. Before IR version 4 initializers have to be inputs:\n"
            "they count as constants, except those that --keep names.\n",
    .example = "onx simplify model.onnx -o small.onnx\n"
               "onx simplify model.onnx -o fixed.onnx --dim N=1 --input-shape image=1x3x224x224\n"
               "onx simplify model.onnx --dry-run --passes identity,merge\n",
    .options = options,
    .run = run_simplify,
};
