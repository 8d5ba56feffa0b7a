/* list.c - repeated fields as lists; changing a list changes its message. */
#include "py.h"

static PyTypeObject *list_type;

typedef struct list {
    PyObject_HEAD py_doc *doc;
    void *message; /* the message that has the field */
    onx_kind kind;
    onx_field_info field;
} list;

PyObject *py_list_new(const py_message *owner, const onx_field_info *field)
{
    list *l = py_new(list_type);
    if (!l)
        return NULL;
    Py_INCREF(l->doc = owner->doc);
    l->message = owner->message;
    l->kind = owner->kind;
    l->field = *field;
    return (PyObject *)l;
}

static void list_dealloc(PyObject *self)
{
    Py_XDECREF(((list *)self)->doc);
    py_delete(self);
}

static Py_ssize_t list_length(PyObject *self)
{
    const list *l = (const list *)self;
    return (Py_ssize_t)onx_field_count(l->kind, l->message, l->field.name);
}

static PyObject *list_item(PyObject *self, Py_ssize_t index)
{
    const list *l = (const list *)self;
    if (index < 0 || index >= list_length(self)) {
        PyErr_Format(PyExc_IndexError, "%s has %zd elements", l->field.name, list_length(self));
        return NULL;
    }
    return py_field_value(l->doc, l->kind, l->message, &l->field, (uint64_t)index);
}

static PyObject *part(PyObject *self, Py_ssize_t start, Py_ssize_t step, Py_ssize_t count)
{
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *item = list_item(self, start + i * step);
        if (!item || PyList_SetItem(made, i, item) != 0)
            Py_CLEAR(made);
    }
    return made;
}

/* ---- replacing elements ---- */

static bool fail(const list *l, onx_status status)
{
    if (status != ONX_OK)
        py_fail(l->doc->ctx->cx, status);
    return status == ONX_OK;
}

static bool is_number(const list *l)
{
    return l->field.type != ONX_FIELD_STRING && l->field.type != ONX_FIELD_BYTES && l->field.type != ONX_FIELD_MESSAGE;
}

static size_t width(const list *l)
{
    return l->field.type == ONX_FIELD_FLOAT || l->field.type == ONX_FIELD_INT32 || l->field.type == ONX_FIELD_ENUM ? 4
                                                                                                                   : 8;
}

/* Converts one number to the bytes that the field stores. */
static bool number_bytes(const list *l, PyObject *value, void *out)
{
    PyObject *whole;
    double real;
    float single;
    long long number = 0;
    int32_t small;
    if (l->field.type == ONX_FIELD_FLOAT || l->field.type == ONX_FIELD_DOUBLE) {
        real = PyFloat_AsDouble(value);
        single = (float)real;
        memcpy(out, width(l) == 4 ? (const void *)&single : (const void *)&real, width(l));
        return !PyErr_Occurred();
    }
    whole = PyNumber_Index(value);
    if (whole && l->field.type == ONX_FIELD_UINT64)
        number = (long long)PyLong_AsUnsignedLongLong(whole);
    else if (whole)
        number = PyLong_AsLongLong(whole);
    Py_XDECREF(whole);
    if (!PyErr_Occurred() && width(l) == 4 && (number < INT32_MIN || number > INT32_MAX))
        PyErr_Format(PyExc_OverflowError, "%s has numbers of 32 bits", l->field.name);
    small = (int32_t)number;
    memcpy(out, width(l) == 4 ? (const void *)&small : (const void *)&number, width(l));
    return !PyErr_Occurred();
}

/* Replaces numbers by building a new array, because some arrays are in memory of the input. */
static bool replace_numbers(list *l, Py_ssize_t at, Py_ssize_t remove, PyObject *values)
{
    PyObject *whole = part((PyObject *)l, 0, 1, list_length((PyObject *)l));
    const Py_ssize_t insert = PyList_Size(values);
    if (!whole || PyList_SetSlice(whole, at, at + remove, values) != 0) {
        Py_XDECREF(whole);
        return false;
    }
    const Py_ssize_t count = PyList_Size(whole);
    char *bytes = PyMem_Malloc(((size_t)count + 1) * 8);
    bool good = bytes != NULL && insert >= 0;
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = number_bytes(l, PyList_GetItem(whole, i), bytes + (size_t)i * width(l));
    if (!bytes)
        PyErr_NoMemory();
    if (good)
        good = py_doc_may_change(l->doc) && fail(l, onx_field_fill(onx_doc_arena(l->doc->doc), l->kind, l->message,
                                                                   l->field.name, bytes, (uint64_t)count));
    PyMem_Free(bytes);
    Py_DECREF(whole);
    return good;
}

/* The message for an element. A message that the same assignment removes and inserts again, as when a list is sorted,
 * is kept, so that existing objects still refer to it. */
static void *brought(list *l, PyObject *value, PyObject *leaving)
{
    const py_message *m = py_message_of(value, l->field.message);
    if (!m)
        return NULL;
    if (m->doc == l->doc) {
        PyObject *address = PyLong_FromVoidPtr(m->message);
        const int found = address ? PySet_Discard(leaving, address) : -1;
        Py_XDECREF(address);
        if (found)
            return found < 0 ? NULL : m->message;
    }
    return py_message_bring(l->doc, l->field.message, value);
}

static bool replace_messages(list *l, Py_ssize_t at, Py_ssize_t remove, PyObject *values)
{
    const Py_ssize_t count = PyList_Size(values);
    PyObject *leaving = PySet_New(NULL);
    void **made = PyMem_Calloc((size_t)count + 1, sizeof *made);
    bool good = leaving && made;
    onx_arena *arena = onx_doc_arena(l->doc->doc);
    for (Py_ssize_t i = 0; good && i < remove; i++) {
        PyObject *address =
            PyLong_FromVoidPtr(onx_field_message(l->kind, l->message, l->field.name, (uint64_t)(at + i), NULL));
        good = address && PySet_Add(leaving, address) == 0;
        Py_XDECREF(address);
    }
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = (made[i] = brought(l, PyList_GetItem(values, i), leaving)) != NULL;
    if (good)
        good = fail(l, onx_field_splice(arena, l->kind, l->message, l->field.name, (uint64_t)at, (uint64_t)remove,
                                        (uint64_t)count));
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = fail(l, onx_field_put_message(arena, l->kind, l->message, l->field.name, (uint64_t)(at + i), made[i]));
    if (!good && !PyErr_Occurred())
        PyErr_NoMemory();
    PyMem_Free(made);
    Py_XDECREF(leaving);
    return good;
}

static bool replace_texts(list *l, Py_ssize_t at, Py_ssize_t remove, PyObject *values)
{
    const Py_ssize_t count = PyList_Size(values);
    onx_arena *arena = onx_doc_arena(l->doc->doc);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = PyList_GetItem(values, i);
        if (!PyUnicode_Check(value) && !PyBytes_Check(value)) {
            PyErr_Format(PyExc_TypeError, "%s has texts, not %R", l->field.name, (PyObject *)Py_TYPE(value));
            return false;
        }
    }
    bool good = fail(l, onx_field_splice(arena, l->kind, l->message, l->field.name, (uint64_t)at, (uint64_t)remove,
                                         (uint64_t)count));
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = py_field_store(l->doc, l->kind, l->message, &l->field, at + i, PyList_GetItem(values, i));
    return good;
}

/* `values` is a Python list. */
static bool replace(list *l, Py_ssize_t at, Py_ssize_t remove, PyObject *values)
{
    if (!py_doc_may_change(l->doc))
        return false;
    if (is_number(l))
        return replace_numbers(l, at, remove, values);
    return l->field.type == ONX_FIELD_MESSAGE ? replace_messages(l, at, remove, values)
                                              : replace_texts(l, at, remove, values);
}

/* ---- methods of lists ---- */

static bool place_of(PyObject *self, PyObject *key, Py_ssize_t *out)
{
    *out = PyNumber_AsSsize_t(key, PyExc_IndexError); /* may run code that changes the list */
    if (*out == -1 && PyErr_Occurred())
        return false;
    const Py_ssize_t length = list_length(self);
    if (*out < 0)
        *out += length;
    if (*out >= 0 && *out < length)
        return true;
    PyErr_Format(PyExc_IndexError, "%s has %zd elements", ((list *)self)->field.name, length);
    return false;
}

static bool is_slice(PyObject *key)
{
    return Py_TYPE(key) == &PySlice_Type;
}

static PyObject *list_subscript(PyObject *self, PyObject *key)
{
    Py_ssize_t start, stop, step, at;
    if (!is_slice(key))
        return place_of(self, key, &at) ? list_item(self, at) : NULL;
    if (PySlice_Unpack(key, &start, &stop, &step) != 0)
        return NULL;
    const Py_ssize_t count = PySlice_AdjustIndices(list_length(self), &start, &stop, step);
    return part(self, start, step, count);
}

static int list_assign(PyObject *self, PyObject *key, PyObject *value)
{
    list *l = (list *)self;
    Py_ssize_t start, stop, step;
    PyObject *values;
    bool good;
    if (!is_slice(key)) {
        if (!place_of(self, key, &start))
            return -1;
        values = value ? PyList_New(1) : PyList_New(0);
        if (values && value) {
            Py_INCREF(value);
            PyList_SetItem(values, 0, value);
        }
        good = values && replace(l, start, 1, values);
        Py_XDECREF(values);
        return good ? 0 : -1;
    }
    if (PySlice_Unpack(key, &start, &stop, &step) != 0)
        return -1;
    values = value ? PySequence_List(value) : PyList_New(0);
    if (!values)
        return -1;
    Py_ssize_t length = list_length(self), remove = PySlice_AdjustIndices(length, &start, &stop, step);
    if (step != 1) { /* as for a Python list */
        PyObject *whole = part(self, 0, 1, length);
        const int done = whole ? (value ? PyObject_SetItem(whole, key, values) : PyObject_DelItem(whole, key)) : -1;
        Py_DECREF(values);
        if (done != 0) {
            Py_XDECREF(whole);
            return -1;
        }
        values = whole;
        start = 0;
        remove = list_length(self);
    }
    good = replace(l, start, remove, values);
    Py_DECREF(values);
    return good ? 0 : -1;
}

static PyObject *list_insert(PyObject *self, PyObject *args)
{
    Py_ssize_t at;
    PyObject *value, *values;
    if (!PyArg_ParseTuple(args, "nO:insert", &at, &value))
        return NULL;
    const Py_ssize_t length = list_length(self);
    if (at < 0)
        at = at + length < 0 ? 0 : at + length;
    if (at > length)
        at = length;
    values = PyList_New(1);
    if (!values)
        return NULL;
    Py_INCREF(value);
    PyList_SetItem(values, 0, value);
    const bool good = replace((list *)self, at, 0, values);
    Py_DECREF(values);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *list_extend(PyObject *self, PyObject *more)
{
    PyObject *values = PySequence_List(more);
    const bool good = values && replace((list *)self, list_length(self), 0, values);
    Py_XDECREF(values);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *list_append(PyObject *self, PyObject *value)
{
    PyObject *values = PyList_New(1);
    if (!values)
        return NULL;
    Py_INCREF(value);
    PyList_SetItem(values, 0, value);
    PyObject *done = list_extend(self, values);
    Py_DECREF(values);
    return done;
}

static PyObject *list_add(PyObject *self, PyObject *args, PyObject *kwargs)
{
    list *l = (list *)self;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (l->field.type != ONX_FIELD_MESSAGE || PyTuple_Size(args) > 0) {
        PyErr_SetString(PyExc_TypeError, "add() is for lists of messages, and takes fields by their names");
        return NULL;
    }
    if (!py_doc_may_change(l->doc) || !fail(l, onx_field_splice(onx_doc_arena(l->doc->doc), l->kind, l->message,
                                                                l->field.name, (uint64_t)list_length(self), 0, 1)))
        return NULL;
    PyObject *made = list_item(self, list_length(self) - 1);
    while (made && kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        if (PyObject_SetAttr(made, key, value) != 0)
            Py_CLEAR(made);
        Py_DECREF(key);
        Py_DECREF(value);
    }
    return made;
}

static PyObject *list_compare(PyObject *self, PyObject *other, int how)
{
    if ((how != Py_EQ && how != Py_NE) || (!PyList_Check(other) && Py_TYPE(other) != list_type))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *a = PySequence_List(self), *b = PySequence_List(other);
    PyObject *result = a && b ? PyObject_RichCompare(a, b, how) : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    return result;
}

static PyObject *list_repr(PyObject *self)
{
    PyObject *whole = PySequence_List(self), *text = whole ? PyObject_Repr(whole) : NULL;
    Py_XDECREF(whole);
    return text;
}

bool py_add_list(PyObject *module)
{
    static PyMethodDef methods[] = {
        { "insert", list_insert, METH_VARARGS, "insert(index, value) puts a value, or a copy of a message, there." },
        { "append", list_append, METH_O, "append(value) puts a value, or a copy of a message, at the end." },
        { "extend", list_extend, METH_O, "extend(values) puts them at the end." },
        { "add", PY_METHOD(list_add), METH_VARARGS | METH_KEYWORDS,
          "add(**fields): a new message at the end, which is returned." },
        { NULL, NULL, 0, NULL },
    };
    static PyType_Slot slots[] = {
        { Py_tp_doc, "A repeated field of a message." },
        { Py_tp_dealloc, PY_SLOT(list_dealloc) },
        { Py_tp_new, PY_SLOT(py_no_new) },
        { Py_tp_methods, methods },
        { Py_tp_richcompare, PY_SLOT(list_compare) },
        { Py_tp_hash, PY_SLOT(PyObject_HashNotImplemented) },
        { Py_tp_repr, PY_SLOT(list_repr) },
        { Py_sq_length, PY_SLOT(list_length) },
        { Py_sq_item, PY_SLOT(list_item) },
        { Py_mp_length, PY_SLOT(list_length) },
        { Py_mp_subscript, PY_SLOT(list_subscript) },
        { Py_mp_ass_subscript, PY_SLOT(list_assign) },
        { 0, NULL },
    };
    static PyType_Spec spec = { "onx._onx.List", (int)sizeof(list), 0, Py_TPFLAGS_DEFAULT, slots };
    list_type = py_add_type(module, &spec, NULL);
    return list_type != NULL;
}
