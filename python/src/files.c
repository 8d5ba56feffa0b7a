/* files.c - reads messages from files, bytes and text of all formats, and writes them. */
#include "py.h"

#include <stdlib.h>

/* ---- reading ---- */

static PyObject *finish(py_ctx *ctx, onx_doc *doc, onx_status status, PyObject *keeps)
{
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
    } else if (py_warn(ctx->cx)) {
        return py_doc_root(py_doc_wrap(ctx, doc, keeps));
    }
    onx_doc_free(doc);
    py_ctx_done(ctx);
    return NULL;
}

static PyObject *load(PyObject *self, PyObject *args)
{
    PyObject *path, *type, *base, *keep = NULL, *keep_base = NULL;
    int format, flags, threads;
    onx_load_options options = { .struct_size = sizeof options };
    onx_doc *doc = NULL;
    onx_status status;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOiiiO", &path, &type, &format, &flags, &threads, &base))
        return NULL;
    const onx_kind kind = py_kind_of_type(type);
    const char *text = kind ? py_path_of(path, &keep) : NULL;
    if (!text || (base != Py_None && !(options.base_dir = py_path_of(base, &keep_base)))) {
        Py_XDECREF(keep);
        return NULL;
    }
    options.format = (onx_format)format;
    options.flags = (uint32_t)flags;
    options.threads = threads > 0 ? (unsigned)threads : 0;
    py_ctx *ctx = py_ctx_take();
    PyObject *made = NULL;
    if (ctx) {
        PY_WORK(ctx, status = onx_load(ctx->cx, kind, text, &options, &doc));
        made = finish(ctx, doc, status, NULL);
    }
    Py_XDECREF(keep);
    Py_XDECREF(keep_base);
    return made;
}

static onx_status read_as(onx_ctx *cx, onx_kind kind, onx_str text, int format, uint32_t flags, const char *dir,
                          onx_doc **doc)
{
    const onx_status status = format == ONX_FORMAT_ONNXTXT     ? onx_text_parse(cx, kind, text, flags, doc)
                              : format == ONX_FORMAT_TEXTPROTO ? onx_textproto_read(cx, kind, text, doc)
                              : format == ONX_FORMAT_JSON      ? onx_json_read(cx, kind, text, doc)
                                                               : onx_read(cx, kind, text, flags, 1, doc);
    return status == ONX_OK && dir ? onx_doc_set_base_dir(*doc, dir) : status;
}

static PyObject *read_bytes(PyObject *self, PyObject *args)
{
    PyObject *bytes, *type, *base, *keep = NULL;
    int format, flags;
    char *ptr;
    Py_ssize_t len;
    onx_doc *doc = NULL;
    onx_status status;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OiiO", &PyBytes_Type, &bytes, &type, &format, &flags, &base))
        return NULL;
    const onx_kind kind = py_kind_of_type(type);
    const char *dir = base != Py_None && kind ? py_path_of(base, &keep) : NULL;
    if (!kind || (base != Py_None && !dir) || PyBytes_AsStringAndSize(bytes, &ptr, &len) != 0)
        return NULL;
    py_ctx *ctx = py_ctx_take();
    PyObject *made = NULL;
    if (ctx) {
        const onx_str text = onx_str_make(ptr, (size_t)len);
        PY_WORK(ctx, status = read_as(ctx->cx, kind, text, format, (uint32_t)flags, dir, &doc));
        made = finish(ctx, doc, status, bytes);
    }
    Py_XDECREF(keep);
    return made;
}

/* ---- writing ---- */

typedef struct output {
    char *ptr;
    size_t len, room;
} output;

static onx_status collect(void *user, onx_str bytes)
{
    output *t = user;
    if (bytes.len > t->room - t->len) {
        const size_t room = (t->len + bytes.len) * 2 + 1000;
        char *more = room > t->len ? realloc(t->ptr, room) : NULL;
        if (!more)
            return ONX_E_MEMORY;
        t->ptr = more;
        t->room = room;
    }
    if (bytes.len)
        memcpy(t->ptr + t->len, bytes.ptr, bytes.len);
    t->len += bytes.len;
    return ONX_OK;
}

static PyObject *write_bytes(PyObject *self, PyObject *args)
{
    PyObject *object, *made = NULL;
    int format;
    unsigned elide, width;
    onx_text_options options = { .struct_size = sizeof options };
    onx_status status;
    output t = { NULL, 0, 0 };
    (void)self;
    if (!PyArg_ParseTuple(args, "OiII", &object, &format, &elide, &width))
        return NULL;
    const py_message *m = py_message_of(object, ONX_KIND_NONE);
    py_ctx *ctx = m ? py_ctx_take() : NULL;
    if (!ctx)
        return NULL;
    options.elide = elide;
    options.width = width;
    const onx_sink sink = { collect, &t };
    m->doc->readers++;
    Py_BEGIN_ALLOW_THREADS if (format == ONX_FORMAT_ONNXTXT && onx_text_has_notation(m->kind)) status =
        onx_text_print(ctx->cx, m->kind, m->message, &options, sink);
    else if (format == ONX_FORMAT_TEXTPROTO || format == ONX_FORMAT_ONNXTXT) status =
        onx_textproto_write(ctx->cx, m->kind, m->message, sink);
    else if (format == ONX_FORMAT_JSON) status = onx_json_write(ctx->cx, m->kind, m->message, sink);
    else status = onx_write_to(ctx->cx, m->kind, m->message, sink);
    Py_END_ALLOW_THREADS m->doc->readers--;
    if (status == ONX_OK)
        made = PyBytes_FromStringAndSize(t.ptr ? t.ptr : "", (Py_ssize_t)t.len);
    else
        py_fail(ctx->cx, status);
    free(t.ptr);
    py_ctx_done(ctx);
    return made;
}

static PyObject *save(PyObject *self, PyObject *args)
{
    PyObject *object, *path, *location, *keep = NULL, *keep_location = NULL, *keeps = NULL;
    int format, use_external, per_tensor, checksum, inline_all;
    unsigned long long threshold, alignment, split;
    onx_status status = ONX_E_MISUSE;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOipOKKKppp", &object, &path, &format, &use_external, &location, &threshold,
                          &alignment, &split, &per_tensor, &checksum, &inline_all))
        return NULL;
    const py_message *m = py_message_of(object, ONX_KIND_NONE);
    onx_external_options external = { .struct_size = sizeof external,
                                      .threshold = threshold,
                                      .alignment = alignment,
                                      .split = split,
                                      .file_per_tensor = per_tensor != 0,
                                      .checksum = checksum != 0,
                                      .inline_all = inline_all != 0 };
    const onx_save_options options = { .struct_size = sizeof options,
                                       .format = (onx_format)format,
                                       .external = use_external ? &external : NULL };
    const char *text = m ? py_path_of(path, &keep) : NULL;
    if (!text || (location != Py_None && !(external.location = py_path_of(location, &keep_location)))) {
        Py_XDECREF(keep);
        return NULL;
    }
    py_ctx *ctx = py_ctx_take();
    onx_doc *doc = ctx ? py_message_share(ctx, m, &keeps) : NULL;
    if (doc) {
        PY_WORK(ctx, status = onx_save(ctx->cx, doc, text, &options));
        if (status != ONX_OK)
            py_fail(ctx->cx, status);
        else if (!py_warn(ctx->cx))
            status = ONX_E_MISUSE;
        onx_doc_free(doc);
    }
    if (ctx)
        py_ctx_done(ctx);
    Py_XDECREF(keep);
    Py_XDECREF(keep_location);
    if (status != ONX_OK)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *base_dir(PyObject *self, PyObject *object)
{
    const py_message *m = py_message_of(object, ONX_KIND_NONE);
    const char *dir = m ? onx_doc_base_dir(m->doc->doc) : NULL;
    (void)self;
    if (dir)
        return PyUnicode_DecodeFSDefault(dir);
    if (!m)
        return NULL;
    Py_RETURN_NONE;
}

bool py_add_files(PyObject *module)
{
    static PyMethodDef functions[] = {
        { "_load", load, METH_VARARGS, NULL },         { "_read", read_bytes, METH_VARARGS, NULL },
        { "_write", write_bytes, METH_VARARGS, NULL }, { "_save", save, METH_VARARGS, NULL },
        { "_base_dir", base_dir, METH_O, NULL },       { NULL, NULL, 0, NULL }
    };
    return PyModule_AddFunctions(module, functions) == 0;
}
