/* message.c - messages as objects: a type for each message of the .proto, with its fields as attributes. */
#include "py.h"

static PyTypeObject *message_type;               /* base type of all messages */
static PyTypeObject *kind_types[ONX_KIND_COUNT]; /* one for each kind */

/* ---- objects ---- */

PyObject *py_message_wrap(py_doc *doc, onx_kind kind, void *message)
{
    py_message *m = py_new(kind_types[kind]);
    if (!m)
        return NULL;
    Py_INCREF(m->doc = doc);
    m->message = message;
    m->kind = kind;
    return (PyObject *)m;
}

static void message_dealloc(PyObject *self)
{
    Py_XDECREF(((py_message *)self)->doc);
    py_delete(self);
}

bool py_is_message(PyObject *object)
{
    return PyObject_TypeCheck(object, message_type);
}

py_message *py_message_of(PyObject *object, onx_kind kind)
{
    if (py_is_message(object)) {
        py_message *m = (py_message *)object;
        if (m->doc && (!kind || m->kind == kind))
            return m;
    }
    PyErr_Format(PyExc_TypeError, "%s is needed, not %R", kind ? onx_kind_proto_name(kind) : "a message",
                 (PyObject *)Py_TYPE(object));
    return NULL;
}

onx_kind py_kind_of_type(PyObject *type)
{
    for (int i = 1; i < ONX_KIND_COUNT; i++)
        if ((PyObject *)kind_types[i] == type)
            return (onx_kind)i;
    PyErr_Format(PyExc_TypeError, "%R is no type of message", type);
    return ONX_KIND_NONE;
}

bool py_message_is_root(const py_message *m)
{
    return onx_doc_root(m->doc->doc, m->kind) == m->message;
}

/* ---- fields ---- */

/* The field that an attribute of a type stands for. */
typedef struct field {
    onx_field_info info;
    onx_kind kind;
} field;

static const field *find(const py_message *m, PyObject *name)
{
    static char text[100];
    PyObject *keep;
    onx_str wanted;
    field *found = NULL;
    if (!py_bytes_of(name, &keep, &wanted))
        return NULL;
    if (wanted.len < sizeof text) {
        static field one;
        for (uint32_t i = 0; !found && onx_field_get(m->kind, i, &one.info); i++)
            if (onx_str_is(wanted, one.info.name)) {
                one.kind = m->kind;
                found = &one;
            }
    }
    Py_DECREF(keep);
    if (!found)
        PyErr_Format(PyExc_ValueError, "%s has no field %R", onx_kind_proto_name(m->kind), name);
    return found;
}

PyObject *py_field_value(py_doc *doc, onx_kind kind, void *message, const onx_field_info *f, uint64_t index)
{
    int64_t number = 0;
    double real = 0;
    onx_str text = { "", 0 };
    onx_kind inner;
    void *below;
    switch ((onx_field_type)f->type) {
    case ONX_FIELD_FLOAT:
    case ONX_FIELD_DOUBLE:
        onx_field_float(kind, message, f->name, index, &real);
        return PyFloat_FromDouble(real);
    case ONX_FIELD_UINT64:
        onx_field_int(kind, message, f->name, index, &number);
        return PyLong_FromUnsignedLongLong((unsigned long long)number);
    case ONX_FIELD_STRING:
        onx_field_text(kind, message, f->name, index, &text);
        return py_text(text);
    case ONX_FIELD_BYTES:
        onx_field_text(kind, message, f->name, index, &text);
        return PyBytes_FromStringAndSize(text.ptr, (Py_ssize_t)text.len);
    case ONX_FIELD_MESSAGE:
        below = onx_field_message(kind, message, f->name, index, &inner);
        if (below)
            return py_message_wrap(doc, inner, below);
        Py_RETURN_NONE;
    default:
        onx_field_int(kind, message, f->name, index, &number);
        return PyLong_FromLongLong(number);
    }
}

/* The value of a number field; false with an exception. */
static bool number_of(const onx_field_info *f, PyObject *value, int64_t *out)
{
    if (PyFloat_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s is a whole number, not a float", f->name);
        return false;
    }
    PyObject *number = PyNumber_Index(value);
    if (!number)
        return false;
    if (f->type == ONX_FIELD_UINT64)
        *out = (int64_t)PyLong_AsUnsignedLongLong(number);
    else
        *out = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

void *py_message_bring(py_doc *to, onx_kind kind, PyObject *from)
{
    const py_message *m = py_message_of(from, kind);
    void *copy = NULL;
    onx_status status;
    if (!m)
        return NULL;
    onx_arena *arena = onx_doc_arena(to->doc);
    if (m->doc == to || py_doc_keep(to, (PyObject *)m->doc))
        status = onx_message_share(arena, kind, m->message, &copy);
    else if (PyErr_Occurred())
        return NULL;
    else /* otherwise the documents would keep each other alive forever */
        status = onx_message_copy(arena, kind, m->message, &copy);
    if (status == ONX_OK)
        return copy;
    py_fail(to->ctx->cx, status);
    return NULL;
}

bool py_field_store(py_doc *doc, onx_kind kind, void *message, const onx_field_info *f, int64_t index, PyObject *value)
{
    onx_arena *arena = onx_doc_arena(doc->doc);
    const uint64_t at = (uint64_t)index;
    const bool single = index < 0;
    onx_status status;
    int64_t number;
    double real;
    onx_str text;
    PyObject *keep;
    void *below;
    switch ((onx_field_type)f->type) {
    case ONX_FIELD_FLOAT:
    case ONX_FIELD_DOUBLE:
        real = PyFloat_AsDouble(value);
        if (PyErr_Occurred())
            return false;
        status = single ? onx_field_set_float(arena, kind, message, f->name, real)
                        : onx_field_put_float(arena, kind, message, f->name, at, real);
        break;
    case ONX_FIELD_STRING:
    case ONX_FIELD_BYTES:
        if (value == Py_None || PyLong_Check(value)) {
            PyErr_Format(PyExc_TypeError, "%s is a text", f->name);
            return false;
        }
        if (!py_bytes_of(value, &keep, &text))
            return false;
        status = single ? onx_field_set_text(arena, kind, message, f->name, text)
                        : onx_field_put_text(arena, kind, message, f->name, at, text);
        Py_XDECREF(keep);
        break;
    case ONX_FIELD_MESSAGE:
        below = py_message_bring(doc, f->message, value);
        if (!below)
            return false;
        status = single ? onx_field_set_message(arena, kind, message, f->name, below)
                        : onx_field_put_message(arena, kind, message, f->name, at, below);
        break;
    default:
        if (!number_of(f, value, &number))
            return false;
        status = single ? onx_field_set_int(arena, kind, message, f->name, number)
                        : onx_field_put_int(arena, kind, message, f->name, at, number);
    }
    if (status != ONX_OK)
        py_fail(doc->ctx->cx, status);
    return status == ONX_OK;
}

static PyObject *get_field(PyObject *self, void *closure)
{
    const py_message *m = (const py_message *)self;
    const field *f = closure;
    if (f->info.repeated)
        return py_list_new(m, &f->info);
    return py_field_value(m->doc, m->kind, m->message, &f->info, 0);
}

static int set_field(PyObject *self, PyObject *value, void *closure)
{
    py_message *m = (py_message *)self;
    const field *f = closure;
    if (!py_doc_may_change(m->doc))
        return -1;
    if (!value || (value == Py_None && !f->info.repeated)) {
        const onx_status status = onx_field_clear(onx_doc_arena(m->doc->doc), m->kind, m->message, f->info.name);
        if (status != ONX_OK)
            py_fail(m->doc->ctx->cx, status);
        return status == ONX_OK ? 0 : -1;
    }
    if (!f->info.repeated)
        return py_field_store(m->doc, m->kind, m->message, &f->info, -1, value) ? 0 : -1;
    PyObject *list = py_list_new(m, &f->info), *all = PySlice_New(NULL, NULL, NULL);
    const int done = list && all ? PyObject_SetItem(list, all, value) : -1;
    Py_XDECREF(list);
    Py_XDECREF(all);
    return done;
}

static PyObject *message_has(PyObject *self, PyObject *name)
{
    const py_message *m = (const py_message *)self;
    const field *f = find(m, name);
    return f ? PyBool_FromLong(onx_field_count(m->kind, m->message, f->info.name) > 0) : NULL;
}

static PyObject *message_clear(PyObject *self, PyObject *name)
{
    const field *f = find((const py_message *)self, name);
    field own;
    if (!f)
        return NULL;
    own = *f;
    if (set_field(self, NULL, &own) != 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- creating, copying, comparing ---- */

static PyObject *message_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    onx_kind kind = ONX_KIND_NONE;
    for (int i = 1; i < ONX_KIND_COUNT && kind_types[i]; i++)
        if (type == kind_types[i])
            kind = (onx_kind)i;
    if (!kind || PyTuple_Size(args) > 0) {
        PyErr_SetString(PyExc_TypeError, kind ? "fields are given by their names" : "a message is of one of the kinds");
        return NULL;
    }
    py_ctx *ctx = py_ctx_take();
    onx_doc *doc;
    if (!ctx)
        return NULL;
    const onx_status status = onx_doc_new(ctx->cx, kind, &doc);
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
        py_ctx_done(ctx);
        return NULL;
    }
    PyObject *made = py_doc_root(py_doc_wrap(ctx, doc, NULL)), *key, *value;
    Py_ssize_t at = 0;
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

onx_doc *py_message_share(py_ctx *ctx, const py_message *m, PyObject **keeps)
{
    onx_doc *doc = NULL;
    onx_status status;
    *keeps = (PyObject *)m->doc;
    if (py_message_is_root(m)) {
        status = onx_doc_share(ctx->cx, m->doc->doc, &doc);
    } else { /* a part of a message becomes a document of its own through its bytes */
        onx_buffer buffer = { .ptr = NULL };
        status = onx_write(ctx->cx, m->kind, m->message, 0, &buffer);
        if (status == ONX_OK)
            status = onx_read(ctx->cx, m->kind, onx_str_make(buffer.ptr, buffer.len), ONX_READ_COPY, 1, &doc);
        if (status == ONX_OK && onx_doc_base_dir(m->doc->doc))
            status = onx_doc_set_base_dir(doc, onx_doc_base_dir(m->doc->doc));
        onx_buffer_free(&buffer);
        *keeps = NULL;
    }
    if (status == ONX_OK)
        return doc;
    onx_doc_free(doc);
    py_fail(ctx->cx, status);
    return NULL;
}

static PyObject *message_copy(PyObject *self, PyObject *ignored)
{
    py_ctx *ctx = py_ctx_take();
    PyObject *keeps;
    (void)ignored;
    if (!ctx)
        return NULL;
    onx_doc *doc = py_message_share(ctx, (const py_message *)self, &keeps);
    if (!doc) {
        py_ctx_done(ctx);
        return NULL;
    }
    return py_doc_root(py_doc_wrap(ctx, doc, keeps));
}

static PyObject *message_compare(PyObject *self, PyObject *other, int how)
{
    if ((how != Py_EQ && how != Py_NE) || !py_is_message(other))
        Py_RETURN_NOTIMPLEMENTED;
    const py_message *a = (const py_message *)self, *b = (const py_message *)other;
    const bool equal =
        a->kind == b->kind && (a->message == b->message || onx_message_equal(a->kind, a->message, b->message));
    return PyBool_FromLong(equal == (how == Py_EQ));
}

/* ---- walks ---- */

typedef struct walk {
    py_doc *doc;
    PyObject *list;
    onx_kind kind;
    bool paths;
} walk;

static onx_status visit(void *user, const onx_visit *at)
{
    walk *w = user;
    char small[300];
    if (w->kind && at->kind != w->kind)
        return ONX_OK;
    PyObject *found = py_message_wrap(w->doc, at->kind, at->message);
    if (found && w->paths) {
        const size_t length = onx_visit_path(at, small, sizeof small);
        PyObject *path = py_text(onx_str_make(small, length < sizeof small ? length : sizeof small - 1));
        PyObject *pair = path ? PyTuple_Pack(2, path, found) : NULL;
        Py_XDECREF(path);
        Py_DECREF(found);
        found = pair;
    }
    const bool good = found && PyList_Append(w->list, found) == 0;
    Py_XDECREF(found);
    return good ? ONX_OK : ONX_E_MEMORY;
}

static PyObject *message_walk(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "type", "paths", NULL };
    const py_message *m = (const py_message *)self;
    PyObject *type = (PyObject *)kind_types[ONX_KIND_NODE];
    int paths = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Op:walk", names, &type, &paths))
        return NULL;
    walk w = { .doc = m->doc, .paths = paths != 0 };
    if (type != Py_None && !(w.kind = py_kind_of_type(type)))
        return NULL;
    py_ctx *ctx = py_ctx_take();
    w.list = ctx ? PyList_New(0) : NULL;
    if (w.list) {
        const onx_status status = onx_message_walk(ctx->cx, m->kind, m->message, visit, &w);
        if (status != ONX_OK) {
            py_fail(ctx->cx, status);
            Py_CLEAR(w.list);
        }
    }
    if (ctx)
        py_ctx_done(ctx);
    return w.list;
}

/* ---- elements of tensors ---- */

static PyObject *string_array(const onx_tensor *t)
{
    PyObject *make = py_helper("strings"), *list = PyList_New(0), *dims = PyTuple_New((Py_ssize_t)t->dims_count);
    onx_str text;
    uint64_t count = 0;
    if (!onx_tensor_count(t, &count))
        count = 0;
    for (uint64_t i = 0; list && i < count && onx_tensor_get_text(t, i, &text) == ONX_OK; i++) {
        PyObject *one = py_text(text);
        if (!one || PyList_Append(list, one) != 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    for (uint32_t i = 0; dims && i < t->dims_count; i++)
        if (PyTuple_SetItem(dims, (Py_ssize_t)i, PyLong_FromLongLong(t->dims[i])) != 0)
            Py_CLEAR(dims);
    PyObject *array = make && list && dims ? PyObject_CallFunctionObjArgs(make, list, dims, NULL) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(dims);
    return array;
}

/* Elements in raw_data or a data file are shown in place. Other elements are gathered once in a document that the array
 * owns, so repeated calls use no more memory. */
static PyObject *tensor_numpy(PyObject *self, PyObject *none)
{
    const py_message *m = py_message_of(self, ONX_KIND_TENSOR);
    onx_str bytes;
    (void)none;
    if (!m)
        return NULL;
    const onx_tensor *t = m->message;
    if (t->data_type == ONX_STRING)
        return string_array(t);
    py_doc *doc = m->doc;
    Py_INCREF(doc);
    if (!onx_tensor_is_external(t) && !ONX_HAS(tensor, t, raw_data)) {
        py_ctx *ctx = py_ctx_take();
        onx_doc *reader = NULL;
        const onx_status status = ctx ? onx_doc_reader(ctx->cx, doc->doc, &reader) : ONX_E_MEMORY;
        if (status != ONX_OK) {
            Py_DECREF(doc);
            if (ctx) {
                py_fail(ctx->cx, status);
                py_ctx_done(ctx);
            }
            return NULL;
        }
        py_doc *own = py_doc_wrap(ctx, reader, (PyObject *)doc);
        Py_DECREF(doc);
        if (!(doc = own))
            return NULL;
    }
    const onx_status status = onx_tensor_bytes(doc->doc, t, &bytes);
    PyObject *array = status == ONX_OK
                          ? py_array_over((PyObject *)doc, t->data_type, t->dims_count, t->dims, bytes.ptr, bytes.len)
                          : py_fail(doc->ctx->cx, status);
    Py_DECREF(doc);
    return array;
}

/* ---- types ---- */

static PyObject *field_doc(const onx_field_info *f)
{
    static const char *const types[] = { "float", "float", "int", "int", "int", "int", "str", "bytes", "" };
    return PyUnicode_FromFormat("%s%s", f->repeated ? "list of " : "",
                                f->type == ONX_FIELD_MESSAGE ? onx_kind_proto_name(f->message) : types[f->type]);
}

/* The attributes for all fields of a kind. They are created once and live as long as the process. */
static PyGetSetDef *fields_of(onx_kind kind)
{
    uint32_t count = 0;
    onx_field_info info;
    while (onx_field_get(kind, count, &info))
        count++;
    PyGetSetDef *defs = PyMem_Calloc(count + 1, sizeof *defs);
    field *fields = PyMem_Calloc(count + 1, sizeof *fields);
    if (!defs || !fields) {
        PyErr_NoMemory();
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        onx_field_get(kind, i, &fields[i].info);
        fields[i].kind = kind;
        PyObject *doc = field_doc(&fields[i].info);
        PyObject *bytes = doc ? PyUnicode_AsUTF8String(doc) : NULL; /* kept alive, too */
        Py_XDECREF(doc);
        if (!bytes)
            return NULL;
        defs[i] = (PyGetSetDef){ fields[i].info.name, get_field, set_field, PyBytes_AsString(bytes), &fields[i] };
    }
    return defs;
}

static PyObject *fields_list(PyObject *self, PyObject *type)
{
    PyObject *list = PyList_New(0);
    onx_field_info info;
    (void)self;
    for (int kind = 1; list && kind < ONX_KIND_COUNT; kind++)
        for (uint32_t i = 0; list && (PyObject *)kind_types[kind] == type && onx_field_get((onx_kind)kind, i, &info);
             i++) {
            PyObject *one =
                Py_BuildValue("(siOiO)", info.name, (int)info.type, info.repeated ? Py_True : Py_False,
                              (int)info.number, info.message ? (PyObject *)kind_types[info.message] : Py_None);
            if (!one || PyList_Append(list, one) != 0)
                Py_CLEAR(list);
            Py_XDECREF(one);
        }
    return list;
}

static bool add_kind(PyObject *module, onx_kind kind)
{
    static char names[ONX_KIND_COUNT][64];
    const char *proto = onx_kind_proto_name(kind), *dot = strrchr(proto, '.');
    PyGetSetDef *fields = fields_of(kind);
    if (!fields)
        return false;
    PyType_Slot slots[] = { { Py_tp_getset, fields }, { Py_tp_new, PY_SLOT(message_new) }, { 0, NULL } };
    /* TypeProto.Tensor is an attribute of TypeProto, as in other packages; in this module its name is
     * TypeProto_Tensor. */
    PyOS_snprintf(names[kind], sizeof names[kind], "onx.%.*s%s%s", dot ? (int)(dot - proto) : 60, proto, dot ? "_" : "",
                  dot ? dot + 1 : "");
    PyType_Spec spec = { names[kind], (int)sizeof(py_message), 0, Py_TPFLAGS_DEFAULT, slots };
    PyObject *bases = PyTuple_Pack(1, (PyObject *)message_type);
    kind_types[kind] = bases ? py_add_type(module, &spec, bases) : NULL;
    Py_XDECREF(bases);
    return kind_types[kind] != NULL;
}

bool py_add_message(PyObject *module)
{
    static PyMethodDef methods[] = {
        { "has", message_has, METH_O, "has(name): is the field present, or does its list have elements?" },
        { "clear", message_clear, METH_O, "clear(name) makes the field absent, or its list empty." },
        { "HasField", message_has, METH_O, "has(), as protobuf calls it." },
        { "ClearField", message_clear, METH_O, "clear(), as protobuf calls it." },
        { "copy", message_copy, METH_NOARGS, "A message of its own, which shares weights with this one." },
        { "__copy__", message_copy, METH_NOARGS, NULL },
        { "__deepcopy__", message_copy, METH_O, NULL },
        { "walk", PY_METHOD(message_walk), METH_VARARGS | METH_KEYWORDS,
          "walk(type=NodeProto, paths=False): all messages of the type below this one, in subgraphs and functions, too; "
          "None: of any type. With `paths` each comes behind the place where it is." },
        { "_numpy", tensor_numpy, METH_NOARGS, NULL },
        { NULL, NULL, 0, NULL },
    };
    static PyMethodDef functions[] = { { "_fields", fields_list, METH_O, NULL }, { NULL, NULL, 0, NULL } };
    static PyType_Slot slots[] = {
        { Py_tp_doc, "A message of a model: its attributes are the fields of the .proto." },
        { Py_tp_new, PY_SLOT(message_new) },
        { Py_tp_dealloc, PY_SLOT(message_dealloc) },
        { Py_tp_methods, methods },
        { Py_tp_richcompare, PY_SLOT(message_compare) },
        { Py_tp_hash, PY_SLOT(PyObject_HashNotImplemented) },
        { 0, NULL },
    };
    static PyType_Spec spec = { "onx.Message", (int)sizeof(py_message), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                slots };
    message_type = py_add_type(module, &spec, NULL);
    bool good = message_type && PyModule_AddFunctions(module, functions) == 0;
    for (int kind = 1; good && kind < ONX_KIND_COUNT; kind++)
        good = add_kind(module, (onx_kind)kind);
    return good;
}
