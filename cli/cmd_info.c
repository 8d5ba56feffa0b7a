/* cmd_info.c - `onx info`: prints a summary of a file that fits on one screen, or JSON. */
#include "cli_cost.h"
#include "cli_info.h"
#include "cli_numpy.h"

#include <onx/tensor.h>

#include <stdarg.h>

enum { LABEL = 12, LIST = 10, OPS = 12, TYPE_TEXT = 256 };

/* ---- parts of the summary ---- */

static void heading(const char *text)
{
    printf("\n%s%s%s", cli_color(stdout, CLI_BOLD), text, cli_color(stdout, CLI_PLAIN));
}

static void dim(const char *format, ...) ONX_PRINTF(1, 2);
static void dim(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs(cli_color(stdout, CLI_DIM), stdout);
    vprintf(format, args);
    fputs(cli_color(stdout, CLI_PLAIN), stdout);
    va_end(args);
}

static void label(const char *text)
{
    printf("  %s%-*s%s ", cli_color(stdout, CLI_DIM), LABEL, text, cli_color(stdout, CLI_PLAIN));
}

static void put(onx_str text)
{
    cli_put_text(stdout, text);
}

static void put_plural(uint64_t count, const char *one, const char *many)
{
    printf("%s %s", cli_thousands(count).text, count == 1 ? one : many);
}

/* Prints "and 12 more" when a list was cut. */
static void put_more(uint64_t count)
{
    if (count)
        dim("  and %s more (--all)\n", cli_thousands(count).text);
}

/* The first line of a text, cut to the width of the terminal. */
static void put_first_line(onx_str text, unsigned indent)
{
    size_t len = 0;
    while (len < text.len && text.ptr[len] != '\n' && text.ptr[len] != '\r')
        len++;
    unsigned room = cli_width() > indent + 10 ? cli_width() - indent - 1 : 10;
    onx_str line = onx_str_make(text.ptr, len);
    if (cli_columns(line) > room)
        cli_put_field(stdout, line, room);
    else
        put(line);
    if (len < text.len && cli_columns(line) + 4 < room)
        fputs(" ...", stdout);
    putchar('\n');
}

static unsigned widest(unsigned so_far, onx_str text, unsigned most)
{
    unsigned columns = cli_columns(text);
    if (columns > most)
        columns = most;
    return columns > so_far ? columns : so_far;
}

/* ---- values ---- */

static uint32_t limit(const cli_info *in, uint32_t count)
{
    return in->all || count <= LIST + 2 ? count : LIST;
}

/* Prints a list of values; unless `all`, those with an initializer are only counted. */
static void put_values(const cli_info *in, const char *title, onx_value_info **values, uint32_t count)
{
    unsigned name_columns = LABEL, most = cli_width() / 2;
    uint32_t real = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!in->all && cli_info_has_initializer(in, values[i]))
            continue;
        if (real++ < limit(in, count))
            name_columns = widest(name_columns, onx_view(values[i]->name), most);
    }
    heading(title);
    if (count == 0) {
        dim("  none\n");
        return;
    }
    putchar('\n');
    uint32_t shown = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool initialized = cli_info_has_initializer(in, values[i]);
        if ((initialized && !in->all) || shown == limit(in, real))
            continue;
        char type[TYPE_TEXT];
        cli_type(values[i]->type, type, sizeof(type));
        fputs("  ", stdout);
        cli_put_field(stdout, onx_view(values[i]->name), name_columns);
        fputs(" ", stdout);
        fputs(cli_color(stdout, CLI_CYAN), stdout);
        put(onx_str_of(type));
        fputs(cli_color(stdout, CLI_PLAIN), stdout);
        if (initialized)
            dim("  has an initializer");
        putchar('\n');
        shown++;
    }
    put_more(real - shown);
    if (real < count)
        dim("  and %s with an initializer (--all)\n", cli_thousands(count - real).text);
}

/* ---- sections of a model ---- */

static void put_head(const cli_info *in)
{
    printf("%s", cli_color(stdout, CLI_BOLD));
    put(onx_str_of(in->call->input));
    printf("%s  %s", cli_color(stdout, CLI_PLAIN), cli_bytes(cli_info_size(in)).text);
    if (in->kind != ONX_KIND_MODEL)
        printf(", %s", onx_kind_proto_name(in->kind));
    putchar('\n');
}

static void put_opsets(onx_operator_set_id **imports, uint32_t count)
{
    label("Operator set");
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            fputs(", ", stdout);
        put(cli_domain(onx_view(imports[i]->domain)));
        printf(" %lld", (long long)imports[i]->version);
    }
    if (count == 0)
        dim("none imported");
    putchar('\n');
}

static void put_version(int64_t version)
{
    /* Versioning.md: plain number, or 16 bits major, 16 bits minor, 32 bits patch */
    uint64_t v = (uint64_t)version;
    if (v >> 32 && version > 0)
        printf(" version %u.%u.%u", (unsigned)(v >> 48), (unsigned)(v >> 32 & 0xffff), (unsigned)(v & 0xffffffff));
    else if (version)
        printf(" version %lld", (long long)version);
}

static void put_identity(const onx_model *m)
{
    putchar('\n');
    onx_str producer = onx_view(m->producer_name), domain = onx_view(m->domain), doc = onx_view(m->doc_string);
    if (producer.len || onx_view(m->producer_version).len) {
        label("Producer");
        put(producer);
        fputs(producer.len && onx_view(m->producer_version).len ? " " : "", stdout);
        put(onx_view(m->producer_version));
        putchar('\n');
    }
    if (domain.len || m->model_version) {
        label("Model");
        put(domain);
        put_version(m->model_version);
        putchar('\n');
    }
    label("IR version");
    const cli_ir_release *release = cli_ir_release_of(m->ir_version);
    printf("%lld ", (long long)m->ir_version);
    if (release)
        printf("%s(%s, %s)%s\n", cli_color(stdout, CLI_DIM), release->date, release->releases,
               cli_color(stdout, CLI_PLAIN));
    else
        printf("%s(unknown)%s\n", cli_color(stdout, CLI_RED), cli_color(stdout, CLI_PLAIN));
    put_opsets(m->opset_import, m->opset_import_count);
    if (doc.len) {
        label("About");
        put_first_line(doc, LABEL + 3);
    }
}

static void put_graph_line(const cli_info *in, const onx_graph *g)
{
    label("Graph");
    put(onx_view(g->name));
    fputs(onx_view(g->name).len ? ", " : "", stdout);
    put_plural(g->node_count, "node", "nodes");
    if (in->facts.inner_nodes)
        printf(" and %s in subgraphs", cli_thousands(in->facts.inner_nodes).text);
    putchar('\n');
    if (onx_view(g->doc_string).len) {
        label("");
        put_first_line(onx_view(g->doc_string), LABEL + 3);
    }
}

static size_t op_name(const cli_tally *row, char *buf, size_t size)
{
    int n = snprintf(buf, size, "%.*s%s%.*s", ONX_ARG(row->domain), row->domain.len ? "." : "", ONX_ARG(row->name));
    return n > 0 ? (size_t)n : 0;
}

static void put_ops(const cli_info *in)
{
    const cli_tallies *ops = &in->facts.ops;
    if (!in->facts.nodes.count)
        return;
    heading("Operators");
    printf("  %s of ", cli_thousands(in->facts.nodes.count).text);
    put_plural(ops->count, "kind", "kinds");
    if (in->facts.body_nodes)
        printf(", %s of them in functions", cli_thousands(in->facts.body_nodes).text);
    if (in->facts.train_nodes)
        printf(", %s in training", cli_thousands(in->facts.train_nodes).text);
    putchar('\n');
    uint32_t rows = in->all || ops->count <= OPS + 2 ? ops->count : OPS;
    unsigned columns = LABEL, digits = (unsigned)strlen(cli_thousands(ops->row[0].count).text);
    char name[TYPE_TEXT];
    for (uint32_t i = 0; i < rows; i++) {
        op_name(&ops->row[i], name, sizeof(name));
        columns = widest(columns, onx_str_of(name), 40);
    }
    unsigned bar = cli_width() > columns + digits + 16 ? cli_width() - columns - digits - 6 : 10;
    if (bar > 40)
        bar = 40;
    for (uint32_t i = 0; i < rows; i++) {
        op_name(&ops->row[i], name, sizeof(name));
        fputs("  ", stdout);
        cli_put_field(stdout, onx_str_of(name), columns);
        printf(" %*s  %s", (int)digits, cli_thousands(ops->row[i].count).text, cli_color(stdout, CLI_BLUE));
        cli_put_bar(stdout, (double)ops->row[i].count, (double)ops->row[0].count, bar);
        printf("%s\n", cli_color(stdout, CLI_PLAIN));
    }
    if (rows == ops->count)
        return;
    /* Prints the other domains, wrapped. */
    unsigned at = 2;
    fputs("  ", stdout);
    fputs(cli_color(stdout, CLI_DIM), stdout);
    for (uint32_t i = rows; i < ops->count; i++) {
        char text[TYPE_TEXT + sizeof(cli_small) + 4];
        op_name(&ops->row[i], name, sizeof(name));
        snprintf(text, sizeof(text), "%s %s%s", name, cli_thousands(ops->row[i].count).text,
                 i + 1 < ops->count ? ", " : "");
        unsigned wide = cli_columns(onx_str_of(text));
        if (at + wide > cli_width() && at > 2) {
            fputs("\n  ", stdout);
            at = 2;
        }
        put(onx_str_of(text));
        at += wide;
    }
    printf("%s\n", cli_color(stdout, CLI_PLAIN));
}

static void put_weights(const cli_info *in)
{
    const cli_tallies *types = &in->facts.dtypes;
    if (!in->facts.stored.count && !in->facts.strange)
        return;
    heading("Weights");
    printf("  %s elements in ", cli_thousands(in->facts.stored.elements).text);
    put_plural(in->facts.stored.count, "tensor", "tensors");
    printf(", %s", cli_bytes(in->facts.stored.bytes).text);
    if (in->facts.strange)
        printf(", %s%s with impossible dims%s", cli_color(stdout, CLI_RED), cli_thousands(in->facts.strange).text,
               cli_color(stdout, CLI_PLAIN));
    putchar('\n');
    unsigned digits = 1;
    for (uint32_t i = 0; i < types->count; i++)
        digits = widest(digits, onx_str_of(cli_thousands(types->row[i].elements).text), 40);
    for (uint32_t i = 0; i < types->count; i++) {
        const cli_tally *row = &types->row[i];
        printf("  %-*.*s %*s  %10s  %s", LABEL, ONX_ARG(row->name), (int)digits, cli_thousands(row->elements).text,
               cli_bytes(row->bytes).text, cli_color(stdout, CLI_BLUE));
        cli_put_bar(stdout, (double)row->bytes, (double)in->facts.stored.bytes, 30);
        printf("%s\n", cli_color(stdout, CLI_PLAIN));
    }
}

/* ---- external files ---- */

static void put_external(const cli_info *in)
{
    const cli_tallies *files = &in->facts.external;
    if (!files->count)
        return;
    heading("External data");
    printf("  %u %s\n", files->count, files->count == 1 ? "file" : "files");
    uint32_t rows = limit(in, files->count);
    unsigned columns = LABEL;
    for (uint32_t i = 0; i < rows; i++)
        columns = widest(columns, files->row[i].name, 40);
    for (uint32_t i = 0; i < rows; i++) {
        const cli_tally *row = &files->row[i];
        uint64_t size;
        fputs("  ", stdout);
        cli_put_field(stdout, row->name, columns);
        printf(" %10s in ", cli_bytes(row->bytes).text);
        put_plural(row->count, "tensor", "tensors");
        switch (cli_info_look(in, row->name, &size)) {
        case CLI_FILE_THERE:
            printf(", file of %s\n", cli_bytes(size).text);
            break;
        case CLI_FILE_MISSING:
            printf(", %sno such file%s\n", cli_color(stdout, CLI_RED), cli_color(stdout, CLI_PLAIN));
            break;
        case CLI_FILE_LINK:
            printf(", %srefused: link%s (--external-links)\n", cli_color(stdout, CLI_RED),
                   cli_color(stdout, CLI_PLAIN));
            break;
        case CLI_FILE_OUTSIDE:
            printf(", %snot inside the model's folder%s\n", cli_color(stdout, CLI_RED), cli_color(stdout, CLI_PLAIN));
            break;
        }
    }
    put_more(files->count - rows);
}

/* ---- the rest of a model ---- */

static void put_names(onx_bytes *names, uint32_t count)
{
    putchar('(');
    for (uint32_t i = 0; i < count && i < 8; i++) {
        fputs(i ? ", " : "", stdout);
        put(onx_view(names[i]));
    }
    fputs(count > 8 ? ", ...)" : ")", stdout);
}

static void put_function_line(const onx_function *f)
{
    fputs("  ", stdout);
    fputs(cli_color(stdout, CLI_CYAN), stdout);
    if (onx_view(f->domain).len) {
        put(onx_view(f->domain));
        putchar('.');
    }
    put(onx_view(f->name));
    if (onx_view(f->overload).len) {
        putchar(':');
        put(onx_view(f->overload));
    }
    fputs(cli_color(stdout, CLI_PLAIN), stdout);
    putchar(' ');
    put_names(f->input, f->input_count);
    fputs(" => ", stdout);
    put_names(f->output, f->output_count);
    fputs("  ", stdout);
    put_plural(f->node_count, "node", "nodes");
    putchar('\n');
}

static void put_functions(const cli_info *in, const onx_model *m)
{
    if (!m->functions_count)
        return;
    heading("Functions");
    printf("  %u\n", m->functions_count);
    uint32_t rows = limit(in, m->functions_count);
    for (uint32_t i = 0; i < rows; i++)
        put_function_line(m->functions[i]);
    put_more(m->functions_count - rows);
}

static void put_training(const onx_model *m)
{
    if (!m->training_info_count)
        return;
    heading("Training");
    putchar('\n');
    for (uint32_t i = 0; i < m->training_info_count; i++) {
        const onx_training_info *t = m->training_info[i];
        fputs("  initialization ", stdout);
        put_plural(t->initialization ? t->initialization->node_count : 0, "node", "nodes");
        fputs(", algorithm ", stdout);
        put_plural(t->algorithm ? t->algorithm->node_count : 0, "node", "nodes");
        fputs(", updates ", stdout);
        put_plural(t->update_binding_count, "value", "values");
        putchar('\n');
    }
}

static void put_metadata(const cli_info *in, onx_string_string_entry **entries, uint32_t count)
{
    if (!count)
        return;
    heading("Metadata");
    putchar('\n');
    unsigned columns = LABEL;
    uint32_t rows = limit(in, count);
    for (uint32_t i = 0; i < rows; i++)
        columns = widest(columns, onx_view(entries[i]->key), 30);
    for (uint32_t i = 0; i < rows; i++) {
        fputs("  ", stdout);
        cli_put_field(stdout, onx_view(entries[i]->key), columns);
        putchar(' ');
        put_first_line(onx_view(entries[i]->value), columns + 3);
    }
    put_more(count - rows);
}

static void put_devices(const onx_model *m)
{
    if (!m->configuration_count)
        return;
    heading("Devices");
    putchar('\n');
    for (uint32_t i = 0; i < m->configuration_count; i++) {
        fputs("  ", stdout);
        cli_put_field(stdout, onx_view(m->configuration[i]->name), LABEL);
        printf(" %d devices\n", m->configuration[i]->num_devices);
    }
}

static void put_graph(const cli_info *in, const onx_graph *g)
{
    put_values(in, "Inputs", g->input, g->input_count);
    put_values(in, "Outputs", g->output, g->output_count);
    put_ops(in);
    put_weights(in);
    put_external(in);
}

static void put_model(const cli_info *in, const onx_model *m)
{
    put_identity(m);
    if (m->graph) {
        put_graph_line(in, m->graph);
        put_graph(in, m->graph);
    } else {
        label("Graph");
        printf("%snone%s\n", cli_color(stdout, CLI_RED), cli_color(stdout, CLI_PLAIN));
    }
    put_functions(in, m);
    put_training(m);
    put_devices(m);
    put_metadata(in, m->metadata_props, m->metadata_props_count);
}

/* ---- parts of models: graphs, nodes, tensors ---- */

static void put_tensor(const onx_tensor *t)
{
    const char *type = onx_dtype_name(t->data_type);
    uint64_t elements, bytes;
    label("Name");
    put(onx_view(t->name));
    putchar('\n');
    label("Type");
    if (type)
        fputs(type, stdout);
    else
        printf("%d, which is not an element type", t->data_type);
    if (t->dims_count)
        putchar('[');
    for (uint32_t i = 0; i < t->dims_count; i++)
        printf(i ? ",%lld" : "%lld", (long long)t->dims[i]);
    puts(t->dims_count ? "]" : "");
    if (cli_tensor_size(t, &elements, &bytes)) {
        label("Size");
        put_plural(elements, "element", "elements");
        printf(", %s\n", cli_bytes(bytes).text);
    }
}

static void put_node(const onx_node *n)
{
    label("Node");
    put(onx_view(n->name));
    putchar('\n');
    label("Operator");
    put(cli_domain(onx_view(n->domain)));
    putchar('.');
    put(onx_view(n->op_type));
    putchar('\n');
    label("Inputs");
    put_names(n->input, n->input_count);
    putchar('\n');
    label("Outputs");
    put_names(n->output, n->output_count);
    putchar('\n');
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        const char *type = onx_attribute_type_name((int32_t)onx_attribute_type_of(n->attribute[i]));
        label(i ? "" : "Attributes");
        cli_put_field(stdout, onx_view(n->attribute[i]->name), 24);
        printf(" %s\n", type ? type : "?");
    }
}

static void put_part(const cli_info *in, void *root)
{
    const onx_function *f = root;
    const onx_value_info *v = root;
    const onx_operator_set *set = root;
    char type[TYPE_TEXT];
    putchar('\n');
    switch (in->kind) {
    case ONX_KIND_GRAPH:
        put_graph_line(in, root);
        put_graph(in, root);
        break;
    case ONX_KIND_FUNCTION:
        put_opsets(f->opset_import, f->opset_import_count);
        put_function_line(f);
        put_ops(in);
        put_weights(in);
        break;
    case ONX_KIND_NODE:
        put_node(root);
        break;
    case ONX_KIND_TENSOR:
        put_tensor(root);
        break;
    case ONX_KIND_VALUE_INFO:
        cli_type(v->type, type, sizeof(type));
        label("Value");
        put(onx_view(v->name));
        putchar(' ');
        put(onx_str_of(type));
        putchar('\n');
        break;
    case ONX_KIND_TYPE:
        cli_type(root, type, sizeof(type));
        label("Type");
        put(onx_str_of(type));
        putchar('\n');
        break;
    case ONX_KIND_OPERATOR_SET:
        label("Operator set");
        put(cli_domain(onx_view(set->domain)));
        printf(" %lld: %u operators, %u functions\n", (long long)set->opset_version, set->operator_count,
               set->functions_count);
        break;
    default:
        put_weights(in);
    }
}

/* ---- the command ---- */

static int run_info(cli_call *call)
{
    if (cli_has(call, "dim") && !cli_has(call, "cost"))
        return cli_error(call, "--dim needs --cost");
    if (cli_has(call, "cost") && cli_kind(call) != ONX_KIND_MODEL)
        return cli_error(call, "--cost applies to models only");
    cli_info in = { .call = call, .path = call->operand[0], .kind = cli_kind(call), .all = cli_has(call, "all") };
    onx_status status = cli_load_any(call, in.path, ONX_FORMAT_AUTO, &in.kind, &in.doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    if (in.kind != ONX_KIND_MODEL && cli_has(call, "cost")) {
        onx_doc_free(in.doc);
        return cli_error(call, "--cost applies to models only");
    }
    void *root = onx_doc_root(in.doc, in.kind);
    status = cli_facts_collect(call->cx, in.kind, root, &in.facts);
    if (status == ONX_OK && cli_has(call, "json")) {
        status = cli_info_json(&in, root);
    } else if (status == ONX_OK) {
        put_head(&in);
        if (in.kind == ONX_KIND_MODEL)
            put_model(&in, root);
        else
            put_part(&in, root);
        if (cli_has(call, "cost"))
            status = cli_cost_print(call, in.doc, NULL);
    }
    const bool empty = in.kind == ONX_KIND_MODEL && cli_info_size(&in) == 0; /* the reader has reported it */
    cli_facts_free(&in.facts);
    onx_doc_free(in.doc);
    return status == ONX_OK && empty ? CLI_FAULT : cli_exit(call, status);
}

static const cli_option options[] = {
    { "all", 0, NULL, NULL, "list everything, however long" },
    { "cost", 0, NULL, NULL, "multiply-adds, bytes of weights and of activations per operator" },
    { "dim", 0, "NAME=N", NULL, "with --cost: use N for the symbolic dimension NAME; may be repeated" },
    CLI_OPTION_AS,
    CLI_OPTION_JSON,
    CLI_END,
};

const cli_command cmd_info = {
    .name = "info",
    .summary = "print a summary of a model: versions, inputs and outputs, operators, weights",
    .operands = "FILE",
    .help = "Weights are not read, so it is fast for files of any size. Nodes of subgraphs and functions are\n"
            "counted as well. Inputs that have an initializer of the same name, as in files before IR version 4,\n"
            "are omitted unless --all is given.\n"
            "\n"
            "--cost counts one multiply-add per element that elementwise operators write or reductions read, and\n"
            "those of products and convolutions; operators that only move data count as 0. Symbolic dimensions\n"
            "stay in the result unless --dim gives their sizes. Activations are the bytes that nodes write.\n",
    .example = "onx info resnet18.onnx\n"
               "onx info --cost --dim batch=1 resnet18.onnx\n"
               "onx info input_0.npy\n"
               "onx info --json resnet18.onnx | jq '.weights.bytes'\n",
    .options = options,
    .run = run_info,
};
