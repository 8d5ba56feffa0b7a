/* cmd_show.c - `onx show`: prints a model, or one node of it, as text. */
#include "cli_inputs.h"
#include "cli_numpy.h"
#include "cli_plan.h"

#include <onx/infer.h>
#include <onx/text.h>

enum { ELIDE = 16, ELIDE_BYTES = 256 };

/* ---- shortening tensors, for the formats whose writers cannot abbreviate them ---- */

/* Keeps the first ELIDE elements of a list. */
static bool cut(uint64_t *count)
{
    bool longer = *count > ELIDE;
    *count = longer ? ELIDE : *count;
    return longer;
}

static bool cut32(uint32_t *count)
{
    bool longer = *count > ELIDE;
    *count = longer ? ELIDE : *count;
    return longer;
}

static onx_status cut_bytes(onx_arena *arena, onx_bytes *bytes, size_t most, bool *was_cut)
{
    onx_str s = onx_view(*bytes);
    if (s.len <= most)
        return ONX_OK;
    *was_cut = true;
    return onx_arena_refer(arena, onx_str_make(s.ptr, most), bytes);
}

static onx_status cut_tensor(onx_arena *arena, onx_tensor *t)
{
    bool longer = false;
    size_t raw = onx_view(t->raw_data).len;
    ONX_TRY(cut_bytes(arena, &t->raw_data, ELIDE_BYTES, &longer));
    longer |= cut(&t->float_data_count);
    longer |= cut(&t->double_data_count);
    longer |= cut(&t->int32_data_count);
    longer |= cut(&t->int64_data_count);
    longer |= cut(&t->uint64_data_count);
    longer |= cut32(&t->string_data_count);
    if (!longer)
        return ONX_OK;
    /* Neither format has a notation for omitted elements, so the doc_string of the tensor reports them. */
    char note[160];
    onx_bytes doc;
    if (raw > ELIDE_BYTES)
        snprintf(note, sizeof(note), "%zu more bytes are not shown (onx show --full)", raw - ELIDE_BYTES);
    else
        snprintf(note, sizeof(note), "only the first %d elements are shown (onx show --full)", ELIDE);
    ONX_TRY(onx_arena_keep(arena, onx_str_of(note), &doc));
    ONX_SET(tensor, t, doc_string, doc);
    return ONX_OK;
}

static onx_status cut_payload(void *user, const onx_visit *at)
{
    return at->kind == ONX_KIND_TENSOR ? cut_tensor(user, at->message) : ONX_OK;
}

/* ---- one node ---- */

typedef struct search {
    onx_str name;
    onx_node *by_name, *by_output;
} search;

static onx_status look(void *user, const onx_visit *at)
{
    search *s = user;
    if (at->kind != ONX_KIND_NODE)
        return ONX_OK;
    onx_node *node = at->message;
    if (!s->by_name && onx_str_equal(onx_view(node->name), s->name))
        s->by_name = node;
    for (uint32_t i = 0; i < node->output_count && !s->by_output; i++)
        if (onx_str_equal(onx_view(node->output[i]), s->name))
            s->by_output = node;
    return ONX_OK;
}

/* Replaces the printed message by the node that --node names. */
static int pick_node(cli_call *call, onx_kind *kind, void **message)
{
    const char *name = cli_value(call, "node");
    search s = { .name = onx_str_of(name) };
    if (s.name.len == 0)
        return cli_error(call, "--node needs a name");
    onx_status status = onx_message_walk(call->cx, *kind, *message, look, &s);
    if (status != ONX_OK)
        return cli_exit(call, status);
    if (!s.by_name && !s.by_output)
        return cli_error(call, "%s: no node, and no output of a node, is called \"%s\"", call->input, name);
    *kind = ONX_KIND_NODE;
    *message = s.by_name ? s.by_name : s.by_output;
    return CLI_OK;
}

/* ---- training information ---- */

typedef struct comment { /* a sink that writes its lines as comments */
    bool inside;
} comment;

static onx_status put_comment(void *user, onx_str bytes)
{
    comment *c = user;
    for (size_t i = 0; i < bytes.len; i++) {
        if (!c->inside)
            ONX_TRY(cli_stdout().write(cli_stdout().user, onx_str_of("# ")));
        const char *end = memchr(bytes.ptr + i, '\n', bytes.len - i);
        const size_t len = end ? (size_t)(end - bytes.ptr) + 1 - i : bytes.len - i;
        ONX_TRY(cli_stdout().write(cli_stdout().user, onx_str_make(bytes.ptr + i, len)));
        c->inside = !end;
        i += len - 1;
    }
    return ONX_OK;
}

static onx_status print_part(cli_call *call, uint32_t entry, const char *part, const onx_graph *graph,
                             onx_string_string_entry *const *bindings, uint32_t count, const onx_text_options *options)
{
    comment c = { 0 };
    if (!graph && !count)
        return ONX_OK;
    printf("\n# training_info[%u].%s\n", entry, part);
    if (graph)
        ONX_TRY(onx_text_print(call->cx, ONX_KIND_GRAPH, graph, options, (onx_sink){ put_comment, &c }));
    if (c.inside)
        putchar('\n');
    for (uint32_t i = 0; i < count; i++) {
        printf("# %s ", i ? "    " : "then");
        cli_put_text(stdout, onx_view(bindings[i]->key));
        printf(" takes ");
        cli_put_text(stdout, onx_view(bindings[i]->value));
        putchar('\n');
    }
    return ONX_OK;
}

/* ONNX text has no notation for training information, so it is printed as comments, as readable as the main graph. */
static onx_status print_training(cli_call *call, const onx_model *model, const onx_text_options *options)
{
    for (uint32_t i = 0; i < model->training_info_count; i++) {
        const onx_training_info *info = model->training_info[i];
        ONX_TRY(print_part(call, i, "initialization", info->initialization, info->initialization_binding,
                           info->initialization_binding_count, options));
        ONX_TRY(print_part(call, i, "algorithm", info->algorithm, info->update_binding, info->update_binding_count,
                           options));
    }
    return ONX_OK;
}

/* ---- the command ---- */

static onx_status print_text(cli_call *call, onx_doc *doc, onx_kind kind, const void *message)
{
    onx_text_options options = { .elide = cli_has(call, "full") ? 0 : ELIDE,
                                 .width = cli_is_terminal(stdout) ? cli_width() : 0 };
    onx_infer *infer = NULL;
    if (cli_has(call, "types")) {
        ONX_TRY(onx_infer_new(call->cx, doc, NULL, &infer));
        options.type_of = onx_infer_type_of;
        options.user = infer;
    }
    onx_status status = onx_text_print(call->cx, kind, message, &options, cli_stdout());
    options.type_of = NULL;
    if (status == ONX_OK && kind == ONX_KIND_MODEL)
        status = print_training(call, message, &options);
    onx_infer_free(infer);
    return status;
}

static onx_status print(cli_call *call, onx_doc *doc, const char *format, onx_kind kind, void *message)
{
    bool full = cli_has(call, "full");
    if (strcmp(format, "onnxtxt") == 0)
        return print_text(call, doc, kind, message);
    if (!full)
        ONX_TRY(onx_message_walk(call->cx, kind, message, cut_payload, onx_doc_arena(doc)));
    if (strcmp(format, "json") == 0)
        return onx_json_write(call->cx, kind, message, cli_stdout());
    return onx_textproto_write(call->cx, kind, message, cli_stdout());
}

static int run_show(cli_call *call)
{
    onx_kind kind;
    onx_doc *doc;
    if (cli_has(call, "plan"))
        return cli_show_plan(call);
    onx_status status = cli_load_any(call, call->operand[0], ONX_FORMAT_AUTO, &kind, &doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    void *message = onx_doc_root(doc, kind);
    int answer = CLI_OK;
    if (cli_has(call, "node"))
        answer = pick_node(call, &kind, &message);
    const char *format = cli_value(call, "format");
    /* ONNX text has no notation for sequences, maps and operator sets. */
    if (!format)
        format = onx_text_has_notation(kind) ? "onnxtxt" : "textproto";
    if (answer == CLI_OK && cli_has(call, "types") && (kind != ONX_KIND_MODEL || strcmp(format, "onnxtxt") != 0))
        answer = cli_error(call, "--types needs a whole model, shown as ONNX text");
    if (answer == CLI_OK)
        answer = cli_exit(call, print(call, doc, format, kind, message));
    onx_doc_free(doc);
    return answer;
}

static const cli_option options[] = {
    { "format", 'f', "FORMAT", "onnxtxt|textproto|json", "how to print it (onnxtxt)" },
    { "full", 0, NULL, NULL, "print all elements of every weight" },
    { "types", 't', NULL, NULL, "infer types and shapes, and print them next to the nodes" },
    { "node", 0, "NAME", NULL, "show only the node of this name, or the one with this output" },
    { "plan", 0, NULL, NULL,
      "run the model once, and print the steps: kernels, fused nodes, and the rewrite rules that fused them" },
    CLI_OPTIONS_INPUTS,
    { "threads", 0, "N", NULL, "threads of the plan (1)" },
    CLI_OPTION_NO_OPTIMIZE,
    CLI_OPTION_PRECISION,
    CLI_OPTION_CACHE,
    CLI_OPTIONS_MEASURE,
    CLI_OPTION_AS,
    CLI_END,
};

const cli_command cmd_show = {
    .name = "show",
    .summary = "print a model as text",
    .operands = "FILE",
    .help = "Long weights are abbreviated unless --full is given. The output of --full can be read back.\n"
            "\n"
            "--plan shows the plan of a session for the model and inputs of these shapes; inputs that are not\n"
            "given are made up. The options for inputs, --threads, --no-optimize, --precision, --cache and\n"
            "--measure apply to it.\n",
    .example = "onx show model.onnx\n"
               "onx show --types model.onnx\n"
               "onx show --node conv1 model.onnx\n"
               "onx show --plan --dim batch=8 model.onnx\n"
               "onx show --full x.npy\n"
               "onx show --format json --full model.onnx > model.json\n",
    .options = options,
    .run = run_show,
};
