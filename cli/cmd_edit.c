/* cmd_edit.c - `onx edit`: changes names, inputs, outputs, types, weights and metadata, and adds pre- and
 * post-processing. */
#include "cli_transform.h"
#include "cli_value.h"

#include <onx/text.h>
#include <onx/value.h>

#include <stdlib.h>

/* The syntax of an option's value, which gives the two texts of an edit. */
typedef enum shape {
    PAIR,       /* A=B */
    PAIR_OR_A,  /* A=B, or A alone */
    WORD,       /* A */
    TYPED,      /* A=TYPE */
    TENSOR_FILE /* A=FILE */
} shape;

static const struct {
    const char *option;
    onx_edit_kind kind;
    shape how;
} rows[] = {
    { "rename", ONX_EDIT_RENAME_VALUE, PAIR },
    { "rename-node", ONX_EDIT_RENAME_NODE, PAIR },
    { "rename-dim", ONX_EDIT_RENAME_DIM, PAIR },
    { "rename-domain", ONX_EDIT_RENAME_DOMAIN, PAIR },
    { "rename-function", ONX_EDIT_RENAME_FUNCTION, PAIR },
    { "type", ONX_EDIT_TYPE, TYPED },
    { "inputs", ONX_EDIT_SET_INPUTS, WORD },
    { "outputs", ONX_EDIT_SET_OUTPUTS, WORD },
    { "add-output", ONX_EDIT_ADD_OUTPUT, WORD },
    { "drop-output", ONX_EDIT_DROP_OUTPUT, WORD },
    { "drop-input", ONX_EDIT_DROP_INPUT, WORD },
    { "initializer", ONX_EDIT_INITIALIZER, TENSOR_FILE },
    { "metadata", ONX_EDIT_METADATA, PAIR_OR_A },
    { "set", ONX_EDIT_FIELD, PAIR },
    { "strip", ONX_EDIT_STRIP, WORD },
    { "batch", ONX_EDIT_BATCH, WORD },
    { "nhwc", ONX_EDIT_NHWC, WORD },
    { "normalize", ONX_EDIT_NORMALIZE, PAIR },
    { "resize", ONX_EDIT_RESIZE, WORD },
    { "argmax", ONX_EDIT_ARGMAX, PAIR_OR_A },
    { "softmax", ONX_EDIT_SOFTMAX, PAIR_OR_A },
};

/* The data that an edit refers to; it lives as long as the model. */
typedef struct held {
    onx_doc *doc;
    onx_value *value;
} held;

typedef struct editor {
    cli_call *call;
    cli_transform t;
    onx_edit *edits;
    held *held; /* one per edit */
    uint32_t count;
} editor;

static onx_status read_type(editor *e, onx_edit *edit, held *h)
{
    const onx_str text = edit->b;
    ONX_TRY(onx_text_parse(e->call->cx, ONX_KIND_TYPE, text, 0, &h->doc));
    edit->type = onx_doc_root(h->doc, ONX_KIND_TYPE);
    return ONX_OK;
}

static onx_status read_tensor(editor *e, onx_edit *edit, held *h, const char *path)
{
    ONX_TRY(cli_value_load(e->call, path, NULL, (onx_str){ 0 }, &h->value));
    ONX_TRY(onx_value_to_doc(e->call->cx, h->value, edit->a, &h->doc));
    edit->tensor = onx_doc_root(h->doc, ONX_KIND_TENSOR);
    if (edit->tensor)
        return ONX_OK;
    cli_error(e->call, "%s holds no tensor", path);
    return ONX_E_MISUSE;
}

static onx_status read_edit(editor *e, size_t row, const char *text)
{
    onx_edit *edit = &e->edits[e->count];
    held *h = &e->held[e->count++];
    const char *equals = strchr(text, '=');
    const size_t len = equals ? (size_t)(equals - text) : strlen(text);
    *edit = (onx_edit){ .kind = (int)rows[row].kind };
    edit->a = rows[row].how == WORD ? onx_str_of(text) : onx_str_make(text, len);
    edit->b = onx_str_of(equals && rows[row].how != WORD ? equals + 1 : "");
    if (!edit->a.len || (!equals && rows[row].how != WORD && rows[row].how != PAIR_OR_A)) {
        cli_error(e->call, "--%s needs %s, not \"%s\"", rows[row].option, rows[row].how == WORD ? "a name" : "A=B",
                  text);
        return ONX_E_MISUSE;
    }
    if (rows[row].how == TYPED)
        return read_type(e, edit, h);
    return rows[row].how == TENSOR_FILE ? read_tensor(e, edit, h, equals + 1) : ONX_OK;
}

/* The edits, in the order of the command line. */
static onx_status read_edits(editor *e)
{
    cli_call *call = e->call;
    for (int i = 0; i < call->given_count; i++)
        for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
            if (strcmp(call->given[i]->name, rows[row].option) == 0)
                ONX_TRY(read_edit(e, row, call->given_value[i]));
    if (e->count)
        return ONX_OK;
    cli_error(call, "say what to change");
    return ONX_E_MISUSE;
}

static onx_status edit_model(onx_ctx *cx, onx_doc *doc, void *options)
{
    return onx_edit_model(cx, doc, options);
}

static int work(editor *e)
{
    const onx_status status = read_edits(e);
    onx_edit_options options = { .struct_size = sizeof options,
                                 .count = e->count,
                                 .edit = e->edits,
                                 .changed = cli_transform_changed(&e->t),
                                 .user = &e->t };
    if (status != ONX_OK)
        return cli_exit(e->call, status);
    return cli_transform_run(&e->t, e->call->operand[0], edit_model, &options);
}

static int run_edit(cli_call *call)
{
    editor e = { .call = call };
    if (!cli_transform_open(call, &e.t))
        return CLI_MISUSE;
    e.edits = calloc((size_t)call->given_count + 1, sizeof *e.edits);
    e.held = calloc((size_t)call->given_count + 1, sizeof *e.held);
    const int exit_status = e.edits && e.held ? work(&e) : cli_error(call, "out of memory");
    for (uint32_t i = 0; i < e.count && e.held; i++) {
        onx_doc_free(e.held[i].doc);
        onx_value_free(e.held[i].value);
    }
    free(e.edits);
    free(e.held);
    return exit_status;
}

static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "rename", 0, "OLD=NEW", NULL,
      "rename a value; a * in both renames all that match; may be repeated, as may all options below" },
    { "rename-node", 0, "OLD=NEW", NULL, "rename a node" },
    { "rename-dim", 0, "OLD=NEW", NULL, "rename a symbolic dimension; NEW may be a number" },
    { "rename-domain", 0, "OLD=NEW", NULL, "rename a domain of nodes, functions and imports" },
    { "rename-function", 0, "OLD=NEW", NULL, "rename a function and its calls" },
    { "type", 0, "NAME=TYPE", NULL, "declare the type of a value, such as float[N,3,224,224]" },
    { "inputs", 0, "NAME,...", NULL, "make these values the inputs of the model" },
    { "outputs", 0, "NAME,...", NULL, "make these values the outputs of the model" },
    { "add-output", 0, "NAME", NULL, "make a value an output" },
    { "drop-output", 0, "NAME", NULL, "remove an output and the nodes that only it needs" },
    { "drop-input", 0, "NAME", NULL, "remove an input that nothing reads" },
    { "initializer", 0, "NAME=FILE", NULL, "replace the elements of an initializer by those of a .npy or .pb file" },
    { "metadata", 0, "KEY=VALUE", NULL, "set metadata; KEY alone removes it" },
    { "set", 0, "FIELD=VALUE", NULL,
      "producer_name, producer_version, model_version, domain, doc_string or graph_name" },
    { "strip", 0, "WHAT", "doc|metadata|types|training|unused",
      "remove doc strings, metadata, types of inner values, training information, or everything unused" },
    { "batch", 0, "N", NULL, "set the first dimension of the inputs to a number or symbol" },
    { "nhwc", 0, "INPUT", NULL, "accept the input in channels-last layout" },
    { "normalize", 0, "INPUT=M:D", NULL, "subtract M,... and divide by D,... for each channel" },
    { "resize", 0, "INPUT", NULL, "accept the input with any height and width" },
    { "argmax", 0, "OUTPUT[=AXIS]", NULL, "replace the output by the index of its largest element along AXIS (-1)" },
    { "softmax", 0, "OUTPUT[=AXIS]", NULL, "replace the output by probabilities along AXIS (-1)" },
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    CLI_END,
};

const cli_command cmd_edit = {
    .name = "edit",
    .summary = "edit names, inputs, outputs, types, weights and metadata, and add pre- and post-processing",
    .operands = "IN",
    .help = "Changes are made in the order in which they are given, also in subgraphs and training information.\n"
            "Names inside of functions are separate and do not change. New pre-processing of an input runs before\n"
            "the pre-processing that is there already, so give --normalize before --nhwc. With --batch, constant\n"
            "shapes of Reshape that contain the old size are adjusted, and what cannot be adjusted is reported.\n",
    .example = "onx edit model.onnx -o out.onnx --rename input.1=image --rename 'layer.*=block.*'\n"
               "onx edit model.onnx -o out.onnx --batch N --strip doc --metadata version=3\n"
               "onx edit model.onnx -o out.onnx --normalize image=0.485,0.456,0.406:0.229,0.224,0.225 --nhwc image\n"
               "onx edit model.onnx -o out.onnx --initializer head.weight=head.npy --argmax logits\n",
    .options = options,
    .run = run_edit,
};
