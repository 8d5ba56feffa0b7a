/* cli_info_json.c - `onx info --json`, and code shared with the text output. */
#include "cli_cost.h"
#include "cli_info.h"
#include "cli_numpy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- shared with the text output ---- */

bool cli_info_has_initializer(const cli_info *in, const onx_value_info *value)
{
    return cli_tally_find(&in->facts.names, onx_str_of(""), onx_view(value->name)) != NULL;
}

uint64_t cli_info_size(const cli_info *in)
{
    struct stat st;
    return !cli_is_numpy(in->path) ? onx_doc_input_size(in->doc) : stat(in->path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Are the model and the file relative links to one folder, as in model caches? The library reads such a file. */
static bool is_stored(const char *model, const char *path, const struct stat *file)
{
    char own[PATH_MAX], other[PATH_MAX], text[2];
    struct stat st;
    if (file->st_nlink > 1 || readlink(model, text, 1) != 1 || *text == '/' || readlink(path, text, 1) != 1 ||
        *text == '/' || !realpath(model, own) || !realpath(path, other) || lstat(other, &st) != 0)
        return false;
    const size_t len = (size_t)(strrchr(own, '/') - own), with = (size_t)(strrchr(other, '/') - other);
    return len == with && memcmp(own, other, len) == 0;
}

/* Is any component of the path below the folder a symbolic link, or does the file have several hard links? */
static bool has_links(char *path, size_t folder, const struct stat *file)
{
    struct stat st;
    bool link = file->st_nlink > 1;
    for (char *at = path + folder; !link && at; at = strchr(at + 1, '/')) {
        char *end = strchr(at + 1, '/');
        if (end)
            *end = '\0';
        link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
        if (end)
            *end = '/';
    }
    return link;
}

cli_file_state cli_info_look(const cli_info *in, onx_str location, uint64_t *size)
{
    const char *dir = onx_doc_base_dir(in->doc);
    char path[4096];
    *size = 0;
    if (location.len == 0 || location.ptr[0] == '/' || memchr(location.ptr, '\0', location.len))
        return CLI_FILE_OUTSIDE;
    for (size_t at = 0; at < location.len;) {
        const char *slash = memchr(location.ptr + at, '/', location.len - at);
        size_t end = slash ? (size_t)(slash - location.ptr) : location.len;
        if (end - at == 2 && memcmp(location.ptr + at, "..", 2) == 0)
            return CLI_FILE_OUTSIDE;
        at = end + 1;
    }
    int n = snprintf(path, sizeof(path), "%s/%.*s", dir && *dir ? dir : ".", ONX_ARG(location));
    struct stat st;
    if (!dir || n < 0 || (size_t)n >= sizeof(path) || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return CLI_FILE_MISSING;
    if (!cli_has(in->call, "external-links") && !is_stored(in->path, path, &st) &&
        has_links(path, dir && *dir ? strlen(dir) : 1, &st))
        return CLI_FILE_LINK;
    *size = (uint64_t)st.st_size;
    return CLI_FILE_THERE;
}

/* ---- JSON ---- */

static void json_values(cli_json *json, const cli_info *in, const char *key, onx_value_info **values, uint32_t count)
{
    cli_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        char type[4096];
        cli_type(values[i]->type, type, sizeof(type));
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", onx_view(values[i]->name));
        cli_json_cstr(json, "type", type);
        cli_json_bool(json, "has_initializer", cli_info_has_initializer(in, values[i]));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_entries(cli_json *json, const char *key, onx_string_string_entry **entries, uint32_t count)
{
    cli_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "key", onx_view(entries[i]->key));
        cli_json_text(json, "value", onx_view(entries[i]->value));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_external(cli_json *json, const cli_info *in)
{
    static const char *const states[] = { "there", "missing", "outside", "link" };
    cli_json_open(json, "external", '[');
    for (uint32_t i = 0; i < in->facts.external.count; i++) {
        const cli_tally *row = &in->facts.external.row[i];
        uint64_t size;
        cli_file_state state = cli_info_look(in, row->name, &size);
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "location", row->name);
        cli_json_uint(json, "tensors", row->count);
        cli_json_uint(json, "bytes", row->bytes);
        cli_json_cstr(json, "file", states[state]);
        cli_json_uint(json, "file_size", size);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_counts(cli_json *json, const cli_info *in)
{
    cli_json_open(json, "operators", '[');
    for (uint32_t i = 0; i < in->facts.ops.count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "domain", in->facts.ops.row[i].domain);
        cli_json_text(json, "op_type", in->facts.ops.row[i].name);
        cli_json_uint(json, "count", in->facts.ops.row[i].count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "weights", '{');
    cli_json_uint(json, "tensors", in->facts.stored.count);
    cli_json_uint(json, "elements", in->facts.stored.elements);
    cli_json_uint(json, "bytes", in->facts.stored.bytes);
    cli_json_uint(json, "impossible", in->facts.strange);
    cli_json_open(json, "types", '[');
    for (uint32_t i = 0; i < in->facts.dtypes.count; i++) {
        const cli_tally *row = &in->facts.dtypes.row[i];
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "type", row->name);
        cli_json_uint(json, "tensors", row->count);
        cli_json_uint(json, "elements", row->elements);
        cli_json_uint(json, "bytes", row->bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
    json_external(json, in);
}

static void json_graph(cli_json *json, const cli_info *in, const onx_graph *g)
{
    cli_json_open(json, "graph", '{');
    cli_json_text(json, "name", onx_view(g->name));
    cli_json_uint(json, "nodes", g->node_count);
    cli_json_uint(json, "subgraph_nodes", in->facts.inner_nodes);
    cli_json_uint(json, "initializers", g->initializer_count);
    cli_json_uint(json, "sparse_initializers", g->sparse_initializer_count);
    json_values(json, in, "inputs", g->input, g->input_count);
    json_values(json, in, "outputs", g->output, g->output_count);
    cli_json_close(json, '}');
}

static void json_function(cli_json *json, const char *key, const onx_function *f)
{
    cli_json_open(json, key, '{');
    cli_json_text(json, "domain", onx_view(f->domain));
    cli_json_text(json, "name", onx_view(f->name));
    cli_json_text(json, "overload", onx_view(f->overload));
    cli_json_open(json, "inputs", '[');
    for (uint32_t i = 0; i < f->input_count; i++)
        cli_json_text(json, NULL, onx_view(f->input[i]));
    cli_json_close(json, ']');
    cli_json_open(json, "outputs", '[');
    for (uint32_t i = 0; i < f->output_count; i++)
        cli_json_text(json, NULL, onx_view(f->output[i]));
    cli_json_close(json, ']');
    cli_json_uint(json, "nodes", f->node_count);
    cli_json_opsets(json, f->opset_import, f->opset_import_count);
    cli_json_close(json, '}');
}

static void json_model(cli_json *json, const cli_info *in, const onx_model *m)
{
    const cli_ir_release *release = cli_ir_release_of(m->ir_version);
    cli_json_int(json, "ir_version", m->ir_version);
    cli_json_cstr(json, "ir_version_date", release ? release->date : NULL);
    cli_json_text(json, "producer_name", onx_view(m->producer_name));
    cli_json_text(json, "producer_version", onx_view(m->producer_version));
    cli_json_text(json, "domain", onx_view(m->domain));
    cli_json_int(json, "model_version", m->model_version);
    cli_json_text(json, "doc_string", onx_view(m->doc_string));
    cli_json_opsets(json, m->opset_import, m->opset_import_count);
    if (m->graph)
        json_graph(json, in, m->graph);
    cli_json_open(json, "functions", '[');
    for (uint32_t i = 0; i < m->functions_count; i++)
        json_function(json, NULL, m->functions[i]);
    cli_json_close(json, ']');
    cli_json_open(json, "training_info", '[');
    for (uint32_t i = 0; i < m->training_info_count; i++) {
        const onx_training_info *t = m->training_info[i];
        cli_json_open(json, NULL, '{');
        cli_json_uint(json, "initialization_nodes", t->initialization ? t->initialization->node_count : 0);
        cli_json_uint(json, "algorithm_nodes", t->algorithm ? t->algorithm->node_count : 0);
        cli_json_uint(json, "update_bindings", t->update_binding_count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    json_entries(json, "metadata_props", m->metadata_props, m->metadata_props_count);
}

onx_status cli_info_json(const cli_info *in, void *root)
{
    onx_status status = ONX_OK;
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_cstr(&json, "file", in->path);
    cli_json_uint(&json, "size", cli_info_size(in));
    cli_json_cstr(&json, "kind", onx_kind_proto_name(in->kind));
    if (in->kind == ONX_KIND_MODEL)
        json_model(&json, in, root);
    else if (in->kind == ONX_KIND_GRAPH)
        json_graph(&json, in, root);
    else if (in->kind == ONX_KIND_FUNCTION)
        json_function(&json, "function", root);
    json_counts(&json, in);
    if (cli_has(in->call, "cost"))
        status = cli_cost_print(in->call, in->doc, &json);
    cli_json_close(&json, '}');
    return status;
}
