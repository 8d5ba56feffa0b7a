/* doc.c - document objects, which own the memory of their messages. */
#include "py.h"

static PyTypeObject *doc_type;

static void leave(py_ctx *ctx)
{
    if (--ctx->docs == 0)
        py_ctx_done(ctx);
}

py_doc *py_doc_wrap(py_ctx *ctx, onx_doc *doc, PyObject *keeps)
{
    py_doc *d = py_new(doc_type);
    ctx->docs++;
    if (!d || (keeps && !(d->keeps = PyList_New(0))) || (keeps && PyList_Append(d->keeps, keeps) != 0)) {
        Py_XDECREF(d);
        onx_doc_free(doc);
        leave(ctx);
        return NULL;
    }
    d->ctx = ctx;
    d->doc = doc;
    return d;
}

static void doc_dealloc(PyObject *self)
{
    py_doc *d = (py_doc *)self;
    onx_doc_free(d->doc);
    if (d->ctx)
        leave(d->ctx);
    Py_XDECREF(d->keeps); /* released after the document, which refers to it */
    py_delete(self);
}

PyObject *py_doc_root(py_doc *doc)
{
    const onx_kind kind = doc ? onx_doc_kind(doc->doc) : ONX_KIND_NONE;
    PyObject *root = doc ? py_message_wrap(doc, kind, onx_doc_root(doc->doc, kind)) : NULL;
    Py_XDECREF(doc);
    return root;
}

bool py_doc_may_change(const py_doc *doc)
{
    if (!doc->readers)
        return true;
    PyErr_SetString(PyExc_RuntimeError, "another thread is at work with this model, which nobody may change meanwhile");
    return false;
}

static bool needs(const py_doc *doc, const py_doc *other)
{
    const Py_ssize_t count = doc->keeps ? PyList_Size(doc->keeps) : 0;
    if (doc == other)
        return true;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *kept = PyList_GetItem(doc->keeps, i);
        if (Py_TYPE(kept) == doc_type && needs((const py_doc *)kept, other))
            return true;
    }
    return false;
}

bool py_doc_keep(py_doc *doc, PyObject *object)
{
    if (Py_TYPE(object) == doc_type && needs((const py_doc *)object, doc))
        return false;
    if (!doc->keeps && !(doc->keeps = PyList_New(0)))
        return false;
    for (Py_ssize_t i = PyList_Size(doc->keeps); i-- > 0;) /* from the newest, which is usually the one */
        if (PyList_GetItem(doc->keeps, i) == object)
            return true;
    return PyList_Append(doc->keeps, object) == 0;
}

bool py_add_doc(PyObject *module)
{
    static PyType_Slot slots[] = { { Py_tp_dealloc, PY_SLOT(doc_dealloc) },
                                   { Py_tp_new, PY_SLOT(py_no_new) },
                                   { 0, NULL } };
    static PyType_Spec spec = { "onx._onx.Document", (int)sizeof(py_doc), 0, Py_TPFLAGS_DEFAULT, slots };
    doc_type = py_add_type(module, &spec, NULL);
    return doc_type != NULL;
}
