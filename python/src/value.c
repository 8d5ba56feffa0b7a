/* value.c - values of the library as Python objects, and their conversion from and to Python types. */
#include "array.h"

PyTypeObject *py_value_type;

/* ---- objects ---- */

static PyObject *value_object(py_ctx *ctx, onx_value *value, PyObject *parent)
{
    py_value *v = py_new(py_value_type);
    if (!v) {
        if (!parent)
            py_ctx_free_value(ctx, value);
        return NULL;
    }
    v->ctx = py_ctx_ref(ctx);
    v->value = value;
    v->parent = parent;
    Py_XINCREF(parent);
    return (PyObject *)v;
}

PyObject *py_value_wrap(py_ctx *ctx, onx_value *value)
{
    return value_object(ctx, value, NULL);
}

static void value_dealloc(PyObject *self)
{
    py_value *v = (py_value *)self;
    if (v->parent)
        Py_DECREF(v->parent);
    else if (v->value)
        py_ctx_free_value(v->ctx, v->value);
    py_ctx_drop(v->ctx);
    py_delete(self);
}

/* ---- to Python ---- */

static PyObject *dims_tuple(const onx_value *value)
{
    PyObject *dims = PyTuple_New((Py_ssize_t)value->rank);
    for (uint32_t i = 0; dims && i < value->rank; i++)
        if (PyTuple_SetItem(dims, (Py_ssize_t)i, PyLong_FromLongLong(value->dims[i])) != 0)
            Py_CLEAR(dims);
    return dims;
}

static PyObject *texts(const onx_value *value)
{
    const onx_str *s = value->data;
    PyObject *list = PyList_New((Py_ssize_t)value->count), *dims = dims_tuple(value), *make = py_helper("strings");
    for (uint64_t i = 0; list && i < value->count; i++)
        if (PyList_SetItem(list, (Py_ssize_t)i, py_text(s[i])) != 0)
            Py_CLEAR(list);
    PyObject *array = list && dims && make ? PyObject_CallFunctionObjArgs(make, list, dims, NULL) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(dims);
    return array;
}

static PyObject *result_of(PyObject *self, bool exact);

static PyObject *item_result(py_value *v, uint64_t index, bool scalar, bool exact)
{
    PyObject *item = value_object(v->ctx, v->value->items[index], (PyObject *)v);
    PyObject *result = item ? result_of(item, exact) : NULL;
    Py_XDECREF(item);
    if (result && scalar && v->value->items[index]->kind == ONX_VALUE_TENSOR && v->value->items[index]->rank == 0) {
        PyObject *plain = PyObject_CallMethod(result, "item", NULL);
        Py_DECREF(result);
        return plain;
    }
    return result;
}

static PyObject *map_result(py_value *v, bool exact)
{
    const onx_value *value = v->value;
    PyObject *dict = PyDict_New();
    for (uint64_t i = 0; dict && i < value->count; i++) {
        PyObject *key = value->dtype == ONX_STRING ? py_text(((const onx_str *)value->data)[i])
                                                   : PyLong_FromLongLong(((const int64_t *)value->data)[i]);
        PyObject *item = key ? item_result(v, i, true, exact) : NULL;
        if (!item || PyDict_SetItem(dict, key, item) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(item);
    }
    return dict;
}

/* An array of a type of the package ml_dtypes, whose elements have at least a byte. */
static PyObject *exact_array(const onx_value *value)
{
    const uint64_t size = value->count * ((onx_dtype_bits(value->dtype) + 7) / 8);
    PyObject *make = py_helper("exact_array"), *dims = dims_tuple(value), *array = NULL;
    PyObject *bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (make && dims && bytes) {
        char *to = PyByteArray_AsString(bytes);
        if (onx_dtype_bits(value->dtype) > 8)
            memcpy(to, value->data, size);
        else
            (void)onx_codes_unpack((onx_dtype)value->dtype, (uint8_t *)to, value->data, value->count);
        array = PyObject_CallFunction(make, "OsO", bytes, onx_dtype_name(value->dtype), dims);
    }
    Py_XDECREF(dims);
    Py_XDECREF(bytes);
    return array;
}

static PyObject *result_of(PyObject *self, bool exact)
{
    py_value *v = (py_value *)self;
    const onx_value *value = v->value;
    PyObject *list;
    switch (value->kind) {
    case ONX_VALUE_TENSOR:
        if (value->dtype == ONX_STRING)
            return texts(value);
        if (exact && py_array_widened(value->dtype) != value->dtype)
            return exact_array(value);
        if (py_array_widened(value->dtype) != value->dtype)
            return py_array_over(self, value->dtype, value->rank, value->dims, value->data, value->size);
        return py_array_made(self, value->dtype, value->rank, value->dims, value->data);
    case ONX_VALUE_SEQUENCE:
        list = PyList_New((Py_ssize_t)value->count);
        for (uint64_t i = 0; list && i < value->count; i++) {
            PyObject *item = item_result(v, i, false, exact);
            if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
                Py_CLEAR(list);
        }
        return list;
    case ONX_VALUE_MAP:
        return map_result(v, exact);
    case ONX_VALUE_OPTIONAL:
        if (value->count)
            return item_result(v, 0, false, exact);
        break;
    default:
        break;
    }
    Py_RETURN_NONE;
}

PyObject *py_value_result(py_ctx *ctx, onx_value *value, bool exact)
{
    PyObject *object = py_value_wrap(ctx, value);
    PyObject *result = object ? result_of(object, exact) : NULL;
    Py_XDECREF(object);
    return result;
}

/* ---- from Python ---- */

/* The memory of a value is released when its last user is done, possibly in the middle of a run. */
static void release_object(void *owner)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)owner);
    PyGILState_Release(state);
}

/* Makes a value over the elements of an array. Their owner is the object or what it gave as its array interface: a
 * scalar of NumPy gives that of an array of its own, which only the interface keeps alive. So the value keeps both. */
static onx_value *wrap_array(py_ctx *ctx, const py_array_struct *a, int32_t dtype, PyObject *object, PyObject *keep)
{
    int64_t dims[ONX_RANK_MAX];
    uint64_t size = (uint64_t)a->itemsize;
    onx_value *value = NULL;
    PyObject *owner = PyTuple_Pack(2, object, keep);
    if (!owner)
        return NULL;
    for (int i = 0; i < a->nd; i++) {
        dims[i] = a->shape[i];
        size *= (uint64_t)a->shape[i];
    }
    const onx_memory memory = { .struct_size = sizeof memory,
                                .dtype = dtype,
                                .rank = (uint32_t)a->nd,
                                .dims = dims,
                                .data = a->data,
                                .size = size,
                                .release = release_object,
                                .owner = owner };
    const onx_status status = onx_value_wrap(ctx->cx, &memory, &value);
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
        Py_DECREF(owner);
        return NULL;
    }
    return value;
}

static bool is_plain(const py_array_struct *a)
{
    enum { PLAIN = PY_ARRAY_CONTIGUOUS | PY_ARRAY_ALIGNED | PY_ARRAY_NATIVE };
    return (a->flags & PLAIN) == PLAIN;
}

/* Converts elements to type `to`, which NumPy lacks, from the type that replaces it. */
static onx_value *narrowed(py_ctx *ctx, onx_value *from, int32_t to)
{
    onx_value *value = NULL;
    onx_status status = onx_value_new_tensor(ctx->cx, (onx_dtype)to, from->rank, from->dims, &value);
    if (status == ONX_OK)
        status = onx_convert((onx_dtype)to, value->data, (onx_dtype)from->dtype, from->data, from->count, true);
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
        onx_value_free(value);
        value = NULL;
    }
    onx_value_free(from);
    return value;
}

static onx_value *text_tensor(py_ctx *ctx, PyObject *list, PyObject *shape)
{
    int64_t dims[ONX_RANK_MAX];
    onx_value *value = NULL;
    const Py_ssize_t rank = PyTuple_Size(shape), count = PyList_Size(list);
    uint64_t want = 1;
    if (rank < 0 || rank > (Py_ssize_t)ONX_RANK_MAX || count < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < rank; i++) {
        dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        want *= (uint64_t)dims[i];
    }
    if (PyErr_Occurred())
        return NULL;
    onx_status status = onx_value_new_tensor(ctx->cx, ONX_STRING, (uint32_t)rank, dims, &value);
    if (status != ONX_OK || want != (uint64_t)count) {
        py_fail(ctx->cx, status == ONX_OK ? ONX_E_MISUSE : status);
        onx_value_free(value);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count && status == ONX_OK; i++) {
        PyObject *keep;
        onx_str text;
        if (!py_bytes_of(PyList_GetItem(list, i), &keep, &text)) {
            onx_value_free(value);
            return NULL;
        }
        status = onx_value_set_text(value, (uint64_t)i, text);
        Py_XDECREF(keep);
    }
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
        onx_value_free(value);
        return NULL;
    }
    return value;
}

static int32_t wanted_dtype(const onx_type *type)
{
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->elem_type : ONX_UNDEFINED;
}

static onx_value *from_array(py_ctx *ctx, const py_array_struct *a, PyObject *array, PyObject *keep,
                             const onx_type *type)
{
    const int32_t dtype = py_array_dtype(a), wanted = wanted_dtype(type);
    if (!dtype) {
        PyErr_Format(PyExc_TypeError, "ONNX has no element type for arrays of kind '%c' with %d bytes", a->typekind,
                     a->itemsize);
        return NULL;
    }
    const bool lacking = wanted && py_array_widened(wanted) != wanted;
    if (lacking && a->typekind == 'u' && onx_dtype_bits(wanted) == 8u * (unsigned)a->itemsize)
        return wrap_array(ctx, a, wanted, array, keep); /* the bits of a type that NumPy lacks */
    onx_value *value = wrap_array(ctx, a, dtype, array, keep);
    return value && lacking && py_array_widened(wanted) == dtype ? narrowed(ctx, value, wanted) : value;
}

/* Packs elements of one byte each. */
static onx_value *packed_value(py_ctx *ctx, const py_array_struct *a, int32_t dtype)
{
    int64_t dims[ONX_RANK_MAX];
    onx_value *value = NULL;
    for (int i = 0; i < a->nd; i++)
        dims[i] = a->shape[i];
    onx_status status = onx_value_new_tensor(ctx->cx, (onx_dtype)dtype, (uint32_t)a->nd, dims, &value);
    if (status == ONX_OK)
        status = onx_codes_pack((onx_dtype)dtype, value->data, a->data, value->count);
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
        onx_value_free(value);
        return NULL;
    }
    return value;
}

/* Converts objects without an array interface, or whose elements are not row-major. The package converts them to a
 * plain array, or to (type, elements, shape) for strings and for bits of types that NumPy lacks. */
static onx_value *from_other(py_ctx *ctx, PyObject *object, const onx_type *type)
{
    PyObject *prepare = py_helper("prepare"), *keep = NULL;
    const char *name = onx_dtype_name(wanted_dtype(type));
    PyObject *made = prepare ? PyObject_CallFunction(prepare, "Oz", object, name) : NULL;
    onx_value *value = NULL;
    if (!made)
        return NULL;
    if (PyTuple_Check(made) && PyTuple_Size(made) == 3) {
        PyObject *elements = PyTuple_GetItem(made, 1);
        const long dtype = PyLong_AsLong(PyTuple_GetItem(made, 0));
        const py_array_struct *a;
        if (dtype == ONX_STRING)
            value = text_tensor(ctx, elements, PyTuple_GetItem(made, 2));
        else if ((a = py_array_look(elements, &keep)) && is_plain(a) &&
                 onx_dtype_bits(dtype) == 8u * (unsigned)a->itemsize)
            value = wrap_array(ctx, a, (int32_t)dtype, elements, keep);
        else if (a && is_plain(a) && a->itemsize == 1 && onx_dtype_bits(dtype) < 8)
            value = packed_value(ctx, a, (int32_t)dtype);
        else if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "such elements are no tensor");
    } else {
        const py_array_struct *a = py_array_look(made, &keep);
        if (a && is_plain(a))
            value = from_array(ctx, a, made, keep, type);
        else if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "an object of type %R is no tensor", (PyObject *)Py_TYPE(object));
    }
    Py_XDECREF(keep);
    Py_DECREF(made);
    return value;
}

/* Tensors of other libraries support DLPack. */
static bool has_dlpack(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method)
        PyErr_Clear();
    Py_XDECREF(method);
    return method != NULL;
}

static onx_value *from_dlpack(py_ctx *ctx, PyObject *object)
{
    onx_value *value = NULL;
    PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    onx_dl_managed *managed = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (managed) {
        const onx_status status = onx_value_from_dlpack(ctx->cx, managed, &value);
        if (status != ONX_OK)
            py_fail(ctx->cx, status);
        else if (PyCapsule_SetName(capsule, "used_dltensor") != 0) /* else its end would free what is ours now */
            PyErr_Clear();
    }
    Py_XDECREF(capsule);
    return value;
}

static onx_value *copied(py_ctx *ctx, const onx_value *from)
{
    onx_value *value = NULL;
    onx_status status = onx_value_new(ctx->cx, &value);
    if (status == ONX_OK)
        status = onx_value_assign(value, from);
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
        onx_value_free(value);
        return NULL;
    }
    return value;
}

/* Adds the value of `object` to a list; `key` is the key for a map, or NULL. */
static bool put_item(py_ctx *ctx, onx_value *list, PyObject *object, const onx_type *type, PyObject *key)
{
    const onx_value *borrowed = NULL;
    onx_value *item = py_value_of(ctx, object, type, &borrowed);
    if (!item && borrowed)
        item = copied(ctx, borrowed);
    if (!item)
        return false;
    const uint64_t at = list->count;
    onx_status status = onx_value_insert(list, at, item);
    onx_value_free(item);
    if (status == ONX_OK && key && list->dtype == ONX_STRING) {
        PyObject *keep;
        onx_str text;
        if (!py_bytes_of(key, &keep, &text))
            return false;
        status = onx_value_set_text(list, at, text);
        Py_XDECREF(keep);
    } else if (status == ONX_OK && key) {
        const long long number = PyLong_AsLongLong(key);
        if (number == -1 && PyErr_Occurred())
            return false;
        ((int64_t *)list->data)[at] = number;
    }
    if (status != ONX_OK)
        py_fail(ctx->cx, status);
    return status == ONX_OK;
}

static onx_value *new_list(py_ctx *ctx, onx_value_kind kind, int32_t dtype)
{
    onx_value *list = NULL;
    onx_status status = onx_value_new(ctx->cx, &list);
    if (status == ONX_OK)
        status = onx_value_reset_list(list, kind, (onx_dtype)dtype);
    if (status != ONX_OK) {
        py_fail(ctx->cx, status);
        onx_value_free(list);
        return NULL;
    }
    return list;
}

static onx_value *from_sequence(py_ctx *ctx, PyObject *object, const onx_type *item)
{
    onx_value *list = new_list(ctx, ONX_VALUE_SEQUENCE, wanted_dtype(item));
    const Py_ssize_t count = list ? PySequence_Size(object) : 0;
    bool good = list && count >= 0;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *one = PySequence_GetItem(object, i);
        good = one && put_item(ctx, list, one, item, NULL);
        Py_XDECREF(one);
    }
    if (!good) {
        onx_value_free(list);
        return NULL;
    }
    return list;
}

static onx_value *from_dict(py_ctx *ctx, PyObject *dict, const onx_type *type)
{
    PyObject *pairs = PyDict_Items(dict); /* code called by the conversion may change the dict */
    const Py_ssize_t count = pairs ? PyList_Size(pairs) : -1;
    if (count < 0)
        return NULL;
    const onx_type *to = type && ONX_HAS(type, type, map_type) ? type->map_type->value_type : NULL;
    int32_t key_type = type && ONX_HAS(type, type, map_type) ? type->map_type->key_type : ONX_UNDEFINED;
    if (!key_type)
        key_type = count && PyUnicode_Check(PyTuple_GetItem(PyList_GetItem(pairs, 0), 0)) ? ONX_STRING : ONX_INT64;
    onx_value *map = new_list(ctx, ONX_VALUE_MAP, key_type);
    for (Py_ssize_t i = 0; map && i < count; i++) {
        PyObject *pair = PyList_GetItem(pairs, i);
        if (!put_item(ctx, map, PyTuple_GetItem(pair, 1), to, PyTuple_GetItem(pair, 0))) {
            onx_value_free(map);
            map = NULL;
        }
    }
    Py_DECREF(pairs);
    return map;
}

static onx_value *from_optional(py_ctx *ctx, PyObject *object, const onx_type *item)
{
    onx_value *list = new_list(ctx, ONX_VALUE_OPTIONAL, wanted_dtype(item));
    if (list && object != Py_None && !put_item(ctx, list, object, item, NULL)) {
        onx_value_free(list);
        return NULL;
    }
    return list;
}

onx_value *py_value_of(py_ctx *ctx, PyObject *object, const onx_type *type, const onx_value **borrowed)
{
    PyObject *keep;
    *borrowed = NULL;
    if (PyObject_TypeCheck(object, py_value_type)) {
        *borrowed = ((py_value *)object)->value;
        return NULL;
    }
    if (type && ONX_HAS(type, type, optional_type))
        return from_optional(ctx, object, type->optional_type->elem_type);
    if (type && ONX_HAS(type, type, sequence_type) && PySequence_Check(object) && !PyUnicode_Check(object))
        return from_sequence(ctx, object, type->sequence_type->elem_type);
    if (PyDict_Check(object))
        return from_dict(ctx, object, type);
    const py_array_struct *a = py_array_look(object, &keep);
    if (a && is_plain(a)) {
        if (py_array_dtype(a)) {
            onx_value *value = from_array(ctx, a, object, keep, type);
            Py_DECREF(keep);
            return value;
        }
    } else if (!a && !PyErr_Occurred() && has_dlpack(object)) {
        return from_dlpack(ctx, object);
    }
    Py_XDECREF(keep);
    return PyErr_Occurred() ? NULL : from_other(ctx, object, type);
}

onx_value *py_value_over(py_ctx *ctx, PyObject *array)
{
    PyObject *keep;
    const py_array_struct *a = py_array_look(array, &keep);
    onx_value *value = NULL;
    if (a && is_plain(a) && a->flags & PY_ARRAY_WRITEABLE && py_array_dtype(a))
        value = wrap_array(ctx, a, py_array_dtype(a), array, keep);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "an output is written into an array that is writeable and lies row-major");
    Py_XDECREF(keep);
    return value;
}

/* ---- the type ---- */

static PyObject *value_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "value", "type", NULL };
    PyObject *object, *like = Py_None;
    const onx_type *to = NULL;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Value", names, &object, &like))
        return NULL;
    if (like != Py_None) {
        const py_message *message = py_message_of(like, ONX_KIND_TYPE);
        if (!message)
            return NULL;
        to = message->message;
    }
    py_ctx *ctx = py_ctx_take();
    if (!ctx)
        return NULL;
    const onx_value *borrowed;
    onx_value *value = PyList_Check(object) || PyTuple_Check(object) ? from_sequence(ctx, object, NULL)
                                                                     : py_value_of(ctx, object, to, &borrowed);
    PyObject *made = NULL;
    if (value)
        made = py_value_wrap(ctx, value);
    else if (!PyErr_Occurred())
        Py_INCREF(made = object); /* is a value already; values do not change */
    py_ctx_done(ctx);
    return made;
}

static PyObject *value_kind(PyObject *self, void *closure)
{
    static const char *const kinds[] = { "none", "tensor", "sequence", "optional", "map" };
    (void)closure;
    return PyUnicode_FromString(kinds[((py_value *)self)->value->kind]);
}

static PyObject *value_dtype(PyObject *self, void *closure)
{
    const char *name = onx_dtype_name(((py_value *)self)->value->dtype);
    (void)closure;
    return name ? PyUnicode_FromString(name) : PyUnicode_FromString("undefined");
}

static PyObject *value_shape(PyObject *self, void *closure)
{
    (void)closure;
    if (((py_value *)self)->value->kind == ONX_VALUE_TENSOR)
        return dims_tuple(((py_value *)self)->value);
    Py_RETURN_NONE;
}

static PyObject *value_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(((py_value *)self)->value->size);
}

static PyObject *value_address(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(((py_value *)self)->value->data);
}

static PyObject *value_array_struct(PyObject *self, void *closure)
{
    const onx_value *value = ((py_value *)self)->value;
    (void)closure;
    if (value->kind != ONX_VALUE_TENSOR || value->dtype == ONX_STRING) {
        PyErr_SetString(PyExc_AttributeError, "only tensors of numbers have an array interface");
        return NULL;
    }
    return py_array_capsule(value->dtype, value->rank, value->dims, value->data, true);
}

static PyObject *value_python(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "ml_dtypes", NULL };
    int exact = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", names, &exact))
        return NULL;
    return result_of(self, exact != 0);
}

static Py_ssize_t value_length(PyObject *self)
{
    const onx_value *value = ((py_value *)self)->value;
    if (value->kind == ONX_VALUE_TENSOR)
        return value->rank ? (Py_ssize_t)value->dims[0] : 1;
    return (Py_ssize_t)value->count;
}

static PyObject *value_item(PyObject *self, Py_ssize_t index)
{
    py_value *v = (py_value *)self;
    if (v->value->kind == ONX_VALUE_TENSOR || index < 0 || (uint64_t)index >= v->value->count) {
        PyErr_SetString(PyExc_IndexError, "no such item");
        return NULL;
    }
    return value_object(v->ctx, v->value->items[index], self);
}

/* ---- export by DLPack ---- */

typedef struct shared {
    onx_dl_managed managed;
    PyObject *owner;
} shared;

static void shared_delete(onx_dl_managed *managed)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(((shared *)managed->manager)->owner);
    PyMem_Free(managed->manager);
    PyGILState_Release(state);
}

static void unused_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        shared_delete(PyCapsule_GetPointer(capsule, "dltensor"));
}

static bool dl_type(int32_t dtype, onx_dl_type *out)
{
    static const uint8_t codes[ONX_CLASS_TEXT + 1] = { [ONX_CLASS_FLOATING] = ONX_DL_FLOAT,
                                                       [ONX_CLASS_SIGNED] = ONX_DL_INT,
                                                       [ONX_CLASS_UNSIGNED] = ONX_DL_UINT,
                                                       [ONX_CLASS_BOOLEAN] = ONX_DL_BOOL,
                                                       [ONX_CLASS_COMPLEX] = ONX_DL_COMPLEX };
    const unsigned bits = onx_dtype_bits(dtype);
    if (bits < 8 || (onx_dtype_class_of(dtype) == ONX_CLASS_FLOATING && bits == 8))
        return false;
    *out = (onx_dl_type){ codes[onx_dtype_class_of(dtype)], (uint8_t)bits, 1 };
    if (dtype == ONX_BFLOAT16)
        out->code = ONX_DL_BFLOAT;
    return true;
}

static PyObject *value_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const onx_value *value = ((py_value *)self)->value;
    onx_dl_type type;
    (void)args;
    /* Options such as stream and max_version are ignored: there is one memory, and one version of the struct. */
    (void)kwargs;
    if (value->kind != ONX_VALUE_TENSOR || !dl_type(value->dtype, &type)) {
        PyErr_SetString(PyExc_BufferError, "DLPack has no place for such a value");
        return NULL;
    }
    shared *s = PyMem_Calloc(1, sizeof *s);
    if (!s)
        return PyErr_NoMemory();
    s->managed = (onx_dl_managed){ .tensor = { .data = value->data,
                                               .device_type = ONX_DL_CPU,
                                               .ndim = (int32_t)value->rank,
                                               .dtype = type,
                                               .shape = value->dims },
                                   .manager = s,
                                   .deleter = shared_delete };
    s->owner = self;
    PyObject *capsule = PyCapsule_New(&s->managed, "dltensor", unused_capsule);
    if (!capsule) {
        PyMem_Free(s);
        return NULL;
    }
    Py_INCREF(self);
    return capsule;
}

static PyObject *value_dlpack_device(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return Py_BuildValue("(ii)", (int)ONX_DL_CPU, 0);
}

/* Bytes that a file has for the elements of an array, and the element type; `into` fills them. */
typedef bool fill_bytes(const py_array_struct *a, onx_dtype dtype, void *bytes, uint64_t count, uint64_t size);

static PyObject *bytes_of(PyObject *args, fill_bytes *into)
{
    PyObject *array, *keep, *bytes = NULL;
    int dtype;
    uint64_t size, count = 1;
    if (!PyArg_ParseTuple(args, "Oi", &array, &dtype))
        return NULL;
    const py_array_struct *a = py_array_look(array, &keep);
    bool fits = a && is_plain(a) && onx_dtype_bits(dtype);
    for (int i = 0; fits && i < a->nd; i++)
        fits = !__builtin_mul_overflow(count, (uint64_t)a->shape[i], &count);
    if (fits && onx_dtype_size(dtype, count, &size) && size <= PY_SSIZE_T_MAX &&
        (bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size)) &&
        !into(a, (onx_dtype)dtype, PyBytes_AsString(bytes), count, size))
        Py_CLEAR(bytes);
    if (!bytes && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the elements of the array cannot be converted to that type");
    Py_XDECREF(keep);
    return bytes;
}

static bool narrow_into(const py_array_struct *a, onx_dtype dtype, void *bytes, uint64_t count, uint64_t size)
{
    (void)size;
    return py_array_dtype(a) == py_array_widened((int32_t)dtype) &&
           onx_convert(dtype, bytes, (onx_dtype)py_array_dtype(a), a->data, count, true) == ONX_OK;
}

/* For elements of a type that NumPy lacks. */
static PyObject *narrow(PyObject *self, PyObject *args)
{
    (void)self;
    return bytes_of(args, narrow_into);
}

static bool pack_into(const py_array_struct *a, onx_dtype dtype, void *bytes, uint64_t count, uint64_t size)
{
    const unsigned bits = onx_dtype_bits(dtype);
    if ((unsigned)a->itemsize != (bits + 7) / 8)
        return false;
    if (bits > 8)
        memcpy(bytes, a->data, size);
    else
        (void)onx_codes_pack(dtype, bytes, a->data, count);
    return true;
}

/* For elements that an array of the package ml_dtypes holds in one byte each or more. */
static PyObject *pack(PyObject *self, PyObject *args)
{
    (void)self;
    return bytes_of(args, pack_into);
}

bool py_add_value(PyObject *module)
{
    static PyMethodDef functions[] = { { "_narrow", narrow, METH_VARARGS, NULL },
                                       { "_pack", pack, METH_VARARGS, NULL },
                                       { NULL, NULL, 0, NULL } };
    static PyMethodDef methods[] = {
        { "numpy", PY_METHOD(value_python), METH_VARARGS | METH_KEYWORDS,
          "numpy(*, ml_dtypes=False)\n--\n\n"
          "The value as an array that shares its memory; sequences come as lists, maps as dicts, what is missing as None. "
          "Types that NumPy lacks are widened: small floats to float32, integers of 4 and 2 bits to 8; with ml_dtypes, they have the types of that package." },
        { "__dlpack__", PY_METHOD(value_dlpack), METH_VARARGS | METH_KEYWORDS, NULL },
        { "__dlpack_device__", value_dlpack_device, METH_NOARGS, NULL },
        { NULL, NULL, 0, NULL },
    };
    static PyGetSetDef members[] = {
        { "kind", value_kind, NULL, "tensor, sequence, optional or map", NULL },
        { "dtype", value_dtype, NULL, "element type of a tensor, key type of a map: 'float', 'int64', ...", NULL },
        { "shape", value_shape, NULL, "dimensions of a tensor; None for others", NULL },
        { "nbytes", value_nbytes, NULL, "bytes of the elements", NULL },
        { "address", value_address, NULL, "address of the elements", NULL },
        { "__array_struct__", value_array_struct, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL },
    };
    static PyType_Slot slots[] = {
        { Py_tp_doc,
          "Value(value, type=None): a tensor, sequence, optional value or map of a model.\n\n"
          "`type` is the TypeProto of the value. Row-major arrays are not copied. Values are immutable; sessions take them as inputs." },
        { Py_tp_new, PY_SLOT(value_new) },
        { Py_tp_dealloc, PY_SLOT(value_dealloc) },
        { Py_tp_methods, methods },
        { Py_tp_getset, members },
        { Py_sq_length, PY_SLOT(value_length) },
        { Py_sq_item, PY_SLOT(value_item) },
        { 0, NULL },
    };
    static PyType_Spec spec = { "onx._onx.Value", (int)sizeof(py_value), 0, Py_TPFLAGS_DEFAULT, slots };
    py_value_type = py_add_type(module, &spec, NULL);
    return py_value_type && PyModule_AddFunctions(module, functions) == 0;
}
