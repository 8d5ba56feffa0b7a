/* web_session.c - the functions of the library that the npm package calls, besides the program: for a model that runs
 * repeatedly. Each instance of the module has one session (web/npm/lib/module.js), so the memory of the session is
 * freed with the instance. JavaScript reads results as lists of 32-bit words. */
#include <onx/onx.h>

#include <emscripten.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT EMSCRIPTEN_KEEPALIVE

typedef struct web_session {
    onx_ctx *cx;
    onx_doc *doc;
    onx_session *session;
    onx_value **inputs, **outputs;
    uint32_t threads;
    bool lacking;    /* the model needs a part that this module leaves out */
    char text[4096]; /* text of the diagnostic or name requested last */
} web_session;

static uint32_t address(const void *ptr)
{
    return (uint32_t)(uintptr_t)ptr;
}

/* ---- creating ---- */

/* Returns NULL when out of memory. */
EXPORT web_session *web_new(double memory, uint32_t threads)
{
    web_session *s = calloc(1, sizeof *s);
    if (s && !(s->cx = onx_ctx_new(NULL))) {
        free(s);
        return NULL;
    }
    if (s)
        s->threads = threads;
    if (s && memory >= 1) {
        onx_limits limits = onx_ctx_limits(s->cx);
        limits.memory = memory < 9e15 ? (uint64_t)memory : UINT64_MAX;
        onx_ctx_set_limits(s->cx, limits);
    }
    return s;
}

#ifdef WEB_LEAN
/* Is there an operator of com.microsoft that web_lean.c leaves out, in a list of nodes or their subgraphs? */
static bool has_search(onx_node *const *nodes, uint32_t count)
{
    static const char *const left_out[] = { "GreedySearch", "Sampling", "BeamSearch", "WhisperBeamSearch" };
    for (uint32_t i = 0; i < count; i++) {
        const onx_node *node = nodes[i];
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            if (onx_str_is(onx_view(node->op_type), left_out[k]) && onx_str_is(onx_view(node->domain), "com.microsoft"))
                return true;
        for (uint32_t k = 0; k < node->attribute_count; k++) {
            const onx_attribute *a = node->attribute[k];
            if (a->slot == ONX_SLOT_G && a->g && has_search(a->g->node, a->g->node_count))
                return true;
        }
    }
    return false;
}

/* Does a list name an operator domain that web_lean.c leaves out? */
static bool names_more(onx_operator_set_id *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const onx_str domain = onx_view(list[i]->domain);
        if (onx_str_is(domain, "ai.onnx.contrib") || onx_str_is(domain, "ai.onnx.preview.training"))
            return true;
    }
    return false;
}

static bool is_lacking(const onx_model *model)
{
    bool lacking = names_more(model->opset_import, model->opset_import_count) ||
                   (model->graph && has_search(model->graph->node, model->graph->node_count));
    for (uint32_t i = 0; i < model->functions_count; i++) {
        const onx_function *f = model->functions[i];
        lacking = lacking || names_more(f->opset_import, f->opset_import_count) || has_search(f->node, f->node_count);
    }
    return lacking;
}
#else
static bool is_lacking(const onx_model *model)
{
    (void)model;
    return false;
}
#endif

static onx_status plan(web_session *s, bool optimize)
{
    s->lacking = is_lacking(onx_doc_model(s->doc));
    if (s->lacking)
        return ONX_E_UNSUPPORTED;
    const onx_session_options options = { .struct_size = sizeof options,
                                          .threads = s->threads,
                                          .no_optimize = !optimize };
    onx_status status = onx_session_new(s->cx, s->doc, &options, &s->session);
    if (status != ONX_OK)
        return status;
    s->inputs = calloc(onx_session_input_count(s->session) + 1, sizeof(onx_value *));
    s->outputs = calloc(onx_session_output_count(s->session) + 1, sizeof(onx_value *));
    return s->inputs && s->outputs ? ONX_OK : ONX_E_MEMORY;
}

/* Opens a binary model. The bytes are used in place and must live as long as the session. External data are read from
 * `folder`, unless it is NULL. */
EXPORT onx_status web_open_bytes(web_session *s, const char *bytes, size_t size, const char *folder, bool optimize)
{
    onx_status status = onx_read(s->cx, ONX_KIND_MODEL, (onx_str){ bytes, size }, 0, 1, &s->doc);
    if (status == ONX_OK && folder)
        status = onx_doc_set_base_dir(s->doc, folder);
    return status == ONX_OK ? plan(s, optimize) : status;
}

/* Opens a model of any format from a file. */
EXPORT onx_status web_open_file(web_session *s, const char *path, bool optimize)
{
    const onx_load_options options = { .struct_size = sizeof options, .flags = ONX_READ_COPY };
    const onx_status status = onx_load(s->cx, ONX_KIND_MODEL, path, &options, &s->doc);
    return status == ONX_OK ? plan(s, optimize) : status;
}

/* After one of these has failed: would the program's module have the part that the model needs? */
EXPORT bool web_lacks(const web_session *s)
{
    return s->lacking;
}

/* ---- inputs and outputs as declared by the model ---- */

EXPORT uint32_t web_port_count(const web_session *s, bool output)
{
    return output ? onx_session_output_count(s->session) : onx_session_input_count(s->session);
}

static onx_session_port port_of(const web_session *s, bool output, uint32_t index)
{
    return output ? onx_session_output(s->session, index) : onx_session_input(s->session, index);
}

/* out: name, its length, element type (0: no tensor), rank (-1: unknown), is it required? */
EXPORT void web_port(const web_session *s, bool output, uint32_t index, uint32_t *out)
{
    const onx_session_port port = port_of(s, output, index);
    const onx_type_tensor *tensor = port.type && ONX_HAS(type, port.type, tensor_type) ? port.type->tensor_type : NULL;
    out[0] = address(port.name.ptr);
    out[1] = (uint32_t)port.name.len;
    out[2] = tensor ? (uint32_t)tensor->elem_type : 0;
    out[3] = tensor && tensor->shape ? tensor->shape->dim_count : UINT32_MAX;
    out[4] = port.required;
}

/* A dimension of a tensor's shape: its size, or -1 with its symbol as out[0] and the length as out[1], which is 0 if
 * there is no symbol. */
EXPORT double web_port_dim(web_session *s, bool output, uint32_t index, uint32_t axis, uint32_t *out)
{
    const onx_dimension *dim = port_of(s, output, index).type->tensor_type->shape->dim[axis];
    out[0] = out[1] = 0;
    if (ONX_HAS(dimension, dim, dim_value))
        return (double)dim->dim_value;
    if (ONX_HAS(dimension, dim, dim_param)) {
        const onx_str name = onx_view(dim->dim_param);
        snprintf(s->text, sizeof s->text, "%.*s", ONX_ARG(name));
        out[0] = address(s->text);
        out[1] = (uint32_t)strlen(s->text);
    }
    return -1;
}

/* ---- values ---- */

/* Creates a tensor whose elements JavaScript then writes; NULL with a diagnostic on failure. */
EXPORT onx_value *web_tensor(web_session *s, int32_t dtype, uint32_t rank, const int64_t *dims)
{
    onx_value *value;
    return onx_value_new_tensor(s->cx, (onx_dtype)dtype, rank, dims, &value) == ONX_OK ? value : NULL;
}

EXPORT onx_status web_set_text(onx_value *value, uint32_t index, const char *text, size_t len)
{
    return onx_value_set_text(value, index, (onx_str){ text, len });
}

/* Creates a sequence of values and takes them over. */
EXPORT onx_value *web_sequence(web_session *s, onx_value *const *items, uint32_t count)
{
    onx_value *list;
    onx_status status = onx_value_new(s->cx, &list);
    if (status == ONX_OK)
        status = onx_value_reset_list(list, ONX_VALUE_SEQUENCE, count ? (onx_dtype)items[0]->dtype : ONX_UNDEFINED);
    for (uint32_t i = 0; i < count; i++) {
        if (status == ONX_OK)
            status = onx_value_insert(list, i, items[i]);
        onx_value_free(items[i]);
    }
    if (status == ONX_OK)
        return list;
    onx_value_free(list);
    return NULL;
}

/* out: kind, element type, rank, dims, data, bytes of data, count, items. All numbers fit in 32 bits, as addresses
 * do. */
EXPORT void web_value(const onx_value *v, uint32_t *out)
{
    const uint32_t words[] = {
        v->kind,           v->dtype,           v->rank,          address(v->dims), address(v->data),
        (uint32_t)v->size, (uint32_t)v->count, address(v->items)
    };
    memcpy(out, words, sizeof words);
}

/* String element `index`: out[0] is its address, out[1] its length. */
EXPORT void web_text(const onx_value *v, uint32_t index, uint32_t *out)
{
    const onx_str *text = (const onx_str *)v->data + index;
    out[0] = address(text->ptr);
    out[1] = (uint32_t)text->len;
}

/* ---- running ---- */

/* Takes over the value; NULL: the input is not given. */
EXPORT void web_set_input(web_session *s, uint32_t index, onx_value *value)
{
    onx_value_free(s->inputs[index]);
    s->inputs[index] = value;
}

EXPORT onx_status web_run(web_session *s)
{
    onx_diag_clear(s->cx);
    return onx_session_run(s->session, s->cx, (const onx_value *const *)s->inputs, s->outputs);
}

EXPORT const onx_value *web_output(const web_session *s, uint32_t index)
{
    return s->outputs[index];
}

/* ---- diagnostics ---- */

EXPORT uint32_t web_diag_count(const web_session *s)
{
    return (uint32_t)onx_diag_count(s->cx);
}

/* Formats a diagnostic as the program prints it. */
EXPORT const char *web_diag(web_session *s, uint32_t index)
{
    onx_diag_format(onx_diag_get(s->cx, index), s->text, sizeof s->text);
    return s->text;
}

EXPORT void web_diag_clear(web_session *s)
{
    onx_diag_clear(s->cx);
}
