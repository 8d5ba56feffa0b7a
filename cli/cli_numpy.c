/* cli_numpy.c - reads NumPy files as documents (an array is a tensor, an archive a graph of initializers) and writes
 * them. */
#include "cli_numpy.h"

#include <onx/npy.h>

#include <stdlib.h>
#include <sys/stat.h>

bool cli_is_numpy(const char *path)
{
    return cli_ends_in(path, ".npy") || cli_ends_in(path, ".npz");
}

/* ---- reading ---- */

static onx_status read_array(cli_call *call, onx_str bytes, onx_doc **out)
{
    onx_value *value;
    ONX_TRY(onx_value_from_npy(call->cx, bytes, &value));
    const onx_status status = onx_value_to_doc(call->cx, value, onx_str_of(""), out);
    onx_value_free(value);
    return status;
}

static onx_status add_array(void *user, onx_str name, onx_value *value)
{
    onx_doc *to = user, *one;
    void *copy;
    ONX_TRY(onx_value_to_doc(onx_doc_ctx(to), value, name, &one));
    onx_status status = onx_message_copy(onx_doc_arena(to), ONX_KIND_TENSOR, onx_doc_root(one, ONX_KIND_TENSOR), &copy);
    if (status == ONX_OK && !onx_graph_add_initializer(onx_doc_arena(to), onx_doc_root(to, ONX_KIND_GRAPH), copy))
        status = ONX_E_MEMORY;
    onx_doc_free(one);
    return status;
}

static onx_status read_archive(cli_call *call, onx_str bytes, onx_doc **out)
{
    ONX_TRY(onx_doc_new(call->cx, ONX_KIND_GRAPH, out));
    const onx_status status = onx_npz_each(call->cx, bytes, NULL, add_array, *out);
    if (status != ONX_OK) {
        onx_doc_free(*out);
        *out = NULL;
    }
    return status;
}

static onx_status load_numpy(cli_call *call, const char *path, onx_kind *kind, onx_doc **out)
{
    const bool array = cli_ends_in(path, ".npy");
    onx_buffer bytes;
    *kind = array ? ONX_KIND_TENSOR : ONX_KIND_GRAPH;
    if (cli_has(call, "as") && cli_kind(call) != *kind) {
        cli_error(call, "--as %s: %s holds %s", cli_value(call, "as"), path,
                  array ? "a tensor" : "tensors, which are a graph's initializers here");
        return ONX_E_MISUSE;
    }
    ONX_TRY(cli_load_bytes(call, path, &bytes));
    call->input = path;
    const onx_str all = onx_str_make(bytes.ptr, bytes.len);
    const onx_status status = array ? read_array(call, all, out) : read_archive(call, all, out);
    onx_buffer_free(&bytes);
    return status;
}

/* The kind that the content shows; 0 if it shows none, or cannot be inspected, like a stream that has been read
 * already. */
static onx_kind look(const cli_call *call, const char *path)
{
    onx_buffer bytes;
    onx_kind kind = 0;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && onx_load_bytes(call->cx, path, &bytes) == ONX_OK) {
        kind = onx_kind_guess(onx_str_make(bytes.ptr, bytes.len));
        onx_buffer_free(&bytes);
    }
    return kind;
}

onx_status cli_load_any(cli_call *call, const char *path, onx_format format, onx_kind *kind, onx_doc **out)
{
    *out = NULL;
    *kind = cli_kind(call);
    if (cli_is_numpy(path) && format == ONX_FORMAT_AUTO)
        return load_numpy(call, path, kind, out);
    const onx_status status = cli_load_as(call, path, *kind, format, out);
    if (cli_has(call, "as") || (status != ONX_OK && status != ONX_E_MALFORMED))
        return status;
    const onx_model *model = status == ONX_OK ? onx_doc_model(*out) : NULL;
    if (model && (model->graph || ONX_HAS(model, model, ir_version) || !onx_doc_input_size(*out)))
        return status;
    const onx_kind shown = look(call, path);
    if (!shown || shown == ONX_KIND_MODEL)
        return status;
    onx_doc_free(*out);
    onx_diag_clear(call->cx);
    *kind = shown;
    return cli_load_as(call, path, shown, format, out);
}

/* ---- writing ---- */

typedef struct arrays {
    onx_value **values;
    onx_str *names;
    uint32_t count;
} arrays;

static onx_status take_tensor(cli_call *call, onx_doc *doc, const onx_tensor *t, arrays *a)
{
    const onx_str name = onx_view(t->name);
    ONX_TRY(onx_value_from_message(call->cx, doc, ONX_KIND_TENSOR, t, &a->values[a->count]));
    a->names[a->count++] = name.len ? name : onx_str_of("arr_0");
    return ONX_OK;
}

static onx_status take_all(cli_call *call, onx_doc *doc, onx_kind kind, const char *path, arrays *a)
{
    const onx_graph *g = kind == ONX_KIND_GRAPH ? onx_doc_root(doc, kind) : NULL;
    const bool only_tensors = g && !g->node_count && !g->sparse_initializer_count && !g->input_count;
    if (kind != ONX_KIND_TENSOR && !only_tensors) {
        cli_error(call, "%s: a NumPy file can contain only tensors, not a %s", path, onx_kind_proto_name(kind));
        cli_hint("--as tensor reads IN as a tensor; an .npz can hold a graph that has only initializers");
        return ONX_E_MISUSE;
    }
    if (g && g->initializer_count != 1 && cli_ends_in(path, ".npy")) {
        cli_error(call, "%s: an .npy file contains one tensor, but there are %u", path, g->initializer_count);
        cli_hint("an .npz file can contain any number of tensors");
        return ONX_E_MISUSE;
    }
    const uint32_t count = g ? g->initializer_count : 1;
    a->values = calloc(count + 1u, sizeof *a->values);
    a->names = calloc(count + 1u, sizeof *a->names);
    if (!a->values || !a->names) {
        cli_error(call, "out of memory");
        return ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++)
        ONX_TRY(take_tensor(call, doc, g ? g->initializer[i] : onx_doc_root(doc, kind), a));
    return ONX_OK;
}

onx_status cli_save_numpy(cli_call *call, onx_doc *doc, onx_kind kind, const char *path)
{
    arrays a = { 0 };
    onx_buffer bytes = { 0 };
    onx_status status = take_all(call, doc, kind, path, &a);
    if (status == ONX_OK && cli_ends_in(path, ".npy"))
        status = onx_value_to_npy(call->cx, a.values[0], &bytes);
    else if (status == ONX_OK)
        status = onx_value_to_npz(call->cx, (const onx_value *const *)a.values, a.names, a.count, &bytes);
    if (status == ONX_OK)
        status = onx_save_bytes(call->cx, path, onx_str_make(bytes.ptr, bytes.len));
    onx_buffer_free(&bytes);
    for (uint32_t i = 0; i < a.count; i++)
        onx_value_free(a.values[i]);
    free(a.values);
    free(a.names);
    return status;
}
