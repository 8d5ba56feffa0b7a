/* support.c - contexts of the library, failures as exceptions, strings, and types as text. */
#include "array.h"

#include <unistd.h>

/* ---- contexts ---- */

static py_ctx *idle; /* contexts for the next calls; values may still use them */
static unsigned idle_count;
enum { IDLE_MAX = 16 };

static py_ctx *ctx_new(void)
{
    py_ctx *ctx = PyMem_Calloc(1, sizeof *ctx);
    if (ctx)
        ctx->cx = onx_ctx_new(NULL);
    if (!ctx || !ctx->cx) {
        PyMem_Free(ctx);
        PyErr_NoMemory();
        return NULL;
    }
    /* Results that a program keeps count against the limit, too. Therefore the limit is the machine's memory if that is
     * more. */
    onx_limits limits = onx_ctx_limits(ctx->cx);
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (machine > limits.memory)
        limits.memory = machine;
    onx_ctx_set_limits(ctx->cx, limits);
    return ctx;
}

py_ctx *py_ctx_take(void)
{
    py_ctx *ctx = idle;
    if (ctx) {
        idle = ctx->next;
        idle_count--;
        ctx->next = NULL; /* the caller takes over the list's reference */
    } else {
        ctx = ctx_new();
        if (!ctx)
            return NULL;
        ctx->refs = 1;
    }
    ctx->busy = true;
    return ctx;
}

py_ctx *py_ctx_ref(py_ctx *ctx)
{
    ctx->refs++;
    return ctx;
}

void py_ctx_drop(py_ctx *ctx)
{
    if (!ctx || --ctx->refs > 0)
        return;
    onx_ctx_free(ctx->cx);
    PyMem_Free(ctx->waiting);
    PyMem_Free(ctx);
}

void py_ctx_done(py_ctx *ctx)
{
    ctx->busy = false;
    while (ctx->waiting_count > 0) {
        onx_value_free(ctx->waiting[--ctx->waiting_count]);
        ctx->refs--; /* not the last reference: the caller has one */
    }
    if (onx_diag_count(ctx->cx))
        onx_diag_clear(ctx->cx);
    if (idle_count >= IDLE_MAX) {
        py_ctx_drop(ctx);
        return;
    }
    ctx->next = idle;
    idle = ctx;
    idle_count++;
}

void py_ctx_free_value(py_ctx *ctx, onx_value *value)
{
    if (!ctx->busy) {
        onx_value_free(value);
        return;
    }
    if (ctx->waiting_count == ctx->waiting_room) {
        const size_t room = ctx->waiting_room ? ctx->waiting_room * 2 : 16;
        onx_value **more = PyMem_Realloc(ctx->waiting, room * sizeof *more);
        if (!more)
            return; /* a leak is better than a race */
        ctx->waiting = more;
        ctx->waiting_room = room;
    }
    ctx->waiting[ctx->waiting_count++] = value;
    ctx->refs++;
}

/* ---- the package's own helpers ---- */

static PyObject *helpers; /* functions and classes, registered by the package */

PyObject *py_helper(const char *name)
{
    PyObject *found = helpers ? PyDict_GetItemString(helpers, name) : NULL;
    if (!found && !PyErr_Occurred())
        PyErr_Format(PyExc_ImportError, "the package onx has no helper %s", name);
    return found;
}

/* ---- failures ---- */

static PyObject *diag_object(const onx_diag *d)
{
    static const char *const severities[] = { "note", "warning", "error" };
    char small[500];
    const size_t length = onx_diag_format(d, NULL, 0);
    char *line = length < sizeof small ? small : PyMem_Malloc(length + 1);
    if (!line)
        return PyErr_NoMemory();
    onx_diag_format(d, line, length + 1);
    PyObject *make = py_helper("diagnostic");
    PyObject *text = py_text(onx_str_make(line, length)), *message = py_text(d->message),
             *path = py_text(d->where.path), *value = py_text(d->value), *expected = py_text(d->expected),
             *hint = py_text(d->hint), *made = NULL;
    if (make && text && message && path && value && expected && hint)
        made = PyObject_CallFunction(make, "sizOOKIIOOOO", severities[d->severity], (int)d->status, d->rule, message,
                                     path, (unsigned long long)d->where.byte, (unsigned)d->where.line,
                                     (unsigned)d->where.column, value, expected, hint, text);
    Py_XDECREF(text);
    Py_XDECREF(message);
    Py_XDECREF(path);
    Py_XDECREF(value);
    Py_XDECREF(expected);
    Py_XDECREF(hint);
    if (line != small)
        PyMem_Free(line);
    return made;
}

PyObject *py_findings(onx_ctx *cx)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < onx_diag_count(cx); i++) {
        PyObject *one = diag_object(onx_diag_get(cx, i));
        if (!one || PyList_Append(list, one) != 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    onx_diag_clear(cx);
    return list;
}

PyObject *py_fail(onx_ctx *cx, onx_status status)
{
    if (status == ONX_E_CANCELLED)
        (void)PyErr_CheckSignals(); /* raises the exception of the signal */
    if (PyErr_Occurred()) {         /* raised by Python code that the library called */
        onx_diag_clear(cx);
        return NULL;
    }
    PyObject *findings = py_findings(cx), *make = findings ? py_helper("failure") : NULL;
    PyObject *failure =
        make ? PyObject_CallFunction(make, "isO", (int)status, onx_status_text(status), findings) : NULL;
    if (failure)
        PyErr_SetObject((PyObject *)Py_TYPE(failure), failure);
    Py_XDECREF(failure);
    Py_XDECREF(findings);
    return NULL;
}

bool py_warn(onx_ctx *cx)
{
    if (onx_diag_count(cx) == 0)
        return true;
    PyObject *findings = py_findings(cx), *warn = findings ? py_helper("warn") : NULL;
    PyObject *done = warn ? PyObject_CallFunctionObjArgs(warn, findings, NULL) : NULL;
    Py_XDECREF(findings);
    Py_XDECREF(done);
    return done != NULL;
}

/* ---- texts ---- */

PyObject *py_text(onx_str text)
{
    return PyUnicode_DecodeUTF8(text.ptr ? text.ptr : "", (Py_ssize_t)text.len, "surrogateescape");
}

bool py_bytes_of(PyObject *text, PyObject **keep, onx_str *out)
{
    char *ptr;
    Py_ssize_t len;
    *keep = NULL;
    *out = onx_str_make("", 0);
    if (text == Py_None)
        return true;
    if (PyUnicode_Check(text))
        *keep = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    else
        *keep = PyBytes_FromObject(text); /* any object with a buffer */
    if (*keep && PyBytes_AsStringAndSize(*keep, &ptr, &len) == 0) {
        *out = onx_str_make(ptr, (size_t)len);
        return true;
    }
    Py_CLEAR(*keep);
    return false;
}

const char *py_path_of(PyObject *path, PyObject **keep)
{
    PyObject *bytes = NULL;
    char *text;
    *keep = NULL;
    if (!PyUnicode_FSConverter(path, &bytes) || PyBytes_AsStringAndSize(bytes, &text, NULL) != 0) {
        Py_XDECREF(bytes);
        return NULL;
    }
    *keep = bytes;
    return text;
}

PyObject *py_shape(const onx_tensor_shape *shape)
{
    if (!shape)
        Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)shape->dim_count);
    for (uint32_t i = 0; list && i < shape->dim_count; i++) {
        const onx_dimension *d = shape->dim[i];
        PyObject *dim;
        if (ONX_HAS(dimension, d, dim_value))
            dim = PyLong_FromLongLong(d->dim_value);
        else if (ONX_HAS(dimension, d, dim_param))
            dim = py_text(onx_view(d->dim_param));
        else
            Py_INCREF(dim = Py_None);
        if (!dim || PyList_SetItem(list, (Py_ssize_t)i, dim) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *type_text(const onx_type *type, unsigned depth);

static PyObject *around(const char *word, const onx_type *inner, unsigned depth)
{
    PyObject *text = type_text(inner, depth + 1);
    PyObject *all = text ? PyUnicode_FromFormat("%s(%U)", word, text) : NULL;
    Py_XDECREF(text);
    return all;
}

static const char *dtype_text(int32_t dtype)
{
    const char *name = onx_dtype_name(dtype);
    return name ? name : "undefined";
}

static PyObject *type_text(const onx_type *type, unsigned depth)
{
    if (!type || depth > ONX_DEPTH_MAX / 10)
        return PyUnicode_FromString("unknown");
    if (ONX_HAS(type, type, tensor_type))
        return PyUnicode_FromFormat("tensor(%s)", dtype_text(type->tensor_type->elem_type));
    if (ONX_HAS(type, type, sparse_tensor_type))
        return PyUnicode_FromFormat("sparse_tensor(%s)", dtype_text(type->sparse_tensor_type->elem_type));
    if (ONX_HAS(type, type, sequence_type))
        return around("seq", type->sequence_type->elem_type, depth);
    if (ONX_HAS(type, type, optional_type))
        return around("optional", type->optional_type->elem_type, depth);
    if (ONX_HAS(type, type, map_type)) {
        PyObject *text = type_text(type->map_type->value_type, depth + 1);
        PyObject *all = text ? PyUnicode_FromFormat("map(%s,%U)", dtype_text(type->map_type->key_type), text) : NULL;
        Py_XDECREF(text);
        return all;
    }
    if (ONX_HAS(type, type, opaque_type))
        return PyUnicode_FromString("opaque");
    return PyUnicode_FromString("unknown");
}

PyObject *py_type_text(const onx_type *type)
{
    return type_text(type, 0);
}

/* ---- objects ---- */

PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases)
{
    PyObject *type = PyType_FromSpecWithBases(spec, bases);
    const char *name = strrchr(spec->name, '.');
    if (!type)
        return NULL;
    Py_INCREF(type); /* a reference for the module, and one for the caller, which lives as long as the process */
    if (PyModule_AddObject(module, name ? name + 1 : spec->name, type) != 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

void *py_new(PyTypeObject *type)
{
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

void py_delete(void *object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    freefunc end = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    end(object);
    Py_DECREF(type);
}

PyObject *py_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyErr_Format(PyExc_TypeError, "%R is made by the functions of onx", (PyObject *)type);
    return NULL;
}

/* ---- functions of the module ---- */

static PyObject *set_helpers(PyObject *self, PyObject *dict)
{
    (void)self;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "helpers are a dict");
        return NULL;
    }
    Py_INCREF(dict);
    Py_XDECREF(helpers);
    helpers = dict;
    Py_RETURN_NONE;
}

static PyObject *version(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return PyUnicode_FromString(onx_version_text());
}

static PyObject *build_info(PyObject *self, PyObject *none)
{
    PyObject *list = PyList_New(0);
    (void)self;
    (void)none;
    for (uint32_t i = 0; list && onx_build_info(i); i++) {
        PyObject *fact = PyUnicode_FromString(onx_build_info(i));
        if (!fact || PyList_Append(list, fact) != 0)
            Py_CLEAR(list);
        Py_XDECREF(fact);
    }
    return list;
}

/* {name: (number, NumPy name, name of the type that replaces it in NumPy)} */
static PyObject *dtype_rows(PyObject *self, PyObject *none)
{
    PyObject *dict = PyDict_New();
    (void)self;
    (void)none;
    for (int i = 1; dict && i < ONX_DTYPE_COUNT; i++) {
        if (!onx_dtype_name(i))
            continue;
        PyObject *row = Py_BuildValue("(iss)", i, onx_dtype_numpy_name(i), onx_dtype_name(py_array_widened(i)));
        if (!row || PyDict_SetItemString(dict, onx_dtype_name(i), row) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(row);
    }
    return dict;
}

bool py_add_support(PyObject *module)
{
    static PyMethodDef functions[] = {
        { "_set_helpers", set_helpers, METH_O, NULL },
        { "version", version, METH_NOARGS, "The version of the library, as text." },
        { "build_info", build_info, METH_NOARGS,
          "What the library was built with: a list of facts, such as 'compiler gcc 12.2.0'." },
        { "_dtype_rows", dtype_rows, METH_NOARGS, NULL },
        { NULL, NULL, 0, NULL },
    };
    return PyModule_AddFunctions(module, functions) == 0;
}
