/* array.c - NumPy arrays from memory of the library and back, through the array interface. */
#include "array.h"

#include <onx/tensor.h>

static PyObject *name_struct; /* "__array_struct__" */

static PyTypeObject *view_type;

/* ---- types ---- */

static char kind_of(int32_t dtype)
{
    switch (onx_dtype_class_of(dtype)) {
    case ONX_CLASS_FLOATING:
        return dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_FLOAT16 ? 'f' : 0;
    case ONX_CLASS_SIGNED:
        return onx_dtype_bits(dtype) >= 8 ? 'i' : 0;
    case ONX_CLASS_UNSIGNED:
        return onx_dtype_bits(dtype) >= 8 ? 'u' : 0;
    case ONX_CLASS_BOOLEAN:
        return 'b';
    case ONX_CLASS_COMPLEX:
        return 'c';
    default:
        return 0;
    }
}

int32_t py_array_widened(int32_t dtype)
{
    if (kind_of(dtype) || dtype == ONX_STRING)
        return dtype;
    switch (onx_dtype_class_of(dtype)) {
    case ONX_CLASS_FLOATING:
        return ONX_FLOAT;
    case ONX_CLASS_SIGNED:
        return ONX_INT8;
    case ONX_CLASS_UNSIGNED:
        return ONX_UINT8;
    default:
        return ONX_UNDEFINED;
    }
}

int32_t py_array_dtype(const py_array_struct *array)
{
    for (int32_t i = 1; i < ONX_DTYPE_COUNT; i++)
        if (kind_of(i) == array->typekind && array->typekind && onx_dtype_bits(i) == 8u * (unsigned)array->itemsize)
            return i;
    return ONX_UNDEFINED;
}

/* ---- the interface ---- */

const py_array_struct *py_array_look(PyObject *object, PyObject **keep)
{
    *keep = PyObject_GetAttr(object, name_struct);
    if (!*keep) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Clear();
        return NULL;
    }
    const py_array_struct *array = PyCapsule_IsValid(*keep, NULL) ? PyCapsule_GetPointer(*keep, NULL) : NULL;
    if (array && array->two == 2 && array->nd >= 0 && array->nd <= (int)ONX_RANK_MAX)
        return array;
    Py_CLEAR(*keep);
    return NULL;
}

static void capsule_free(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, NULL));
}

PyObject *py_array_capsule(int32_t dtype, uint32_t rank, const int64_t *dims, const void *data, bool writeable)
{
    const char kind = kind_of(dtype);
    static double nothing[2]; /* an array without elements needs an address, too */
    if (!kind) {
        PyErr_Format(PyExc_AttributeError, "NumPy has no type for %s: use numpy() of the value",
                     onx_dtype_name(dtype) ? onx_dtype_name(dtype) : "this");
        return NULL;
    }
    py_array_struct *a = PyMem_Malloc(sizeof *a + 2 * (size_t)rank * sizeof(Py_ssize_t));
    if (!a)
        return PyErr_NoMemory();
    Py_ssize_t *shape = (Py_ssize_t *)(void *)(a + 1), *strides = shape + rank;
    Py_ssize_t step = (Py_ssize_t)onx_dtype_bits(dtype) / 8;
    *a = (py_array_struct){ .two = 2,
                            .nd = (int)rank,
                            .typekind = kind,
                            .itemsize = (int)step,
                            .flags = PY_ARRAY_CONTIGUOUS | PY_ARRAY_NATIVE,
                            .shape = shape,
                            .strides = strides,
                            .data = (void *)(uintptr_t)(data ? data : nothing) };
    const uintptr_t unit = (uintptr_t)(kind == 'c' ? step / 2 : step);
    if ((uintptr_t)a->data % unit == 0)
        a->flags |= PY_ARRAY_ALIGNED;
    if (writeable)
        a->flags |= PY_ARRAY_WRITEABLE;
    for (uint32_t i = rank; i-- > 0;) {
        shape[i] = (Py_ssize_t)dims[i];
        strides[i] = step;
        if (dims[i] > 0) /* the product of the other dims is bounded by the available memory */
            step *= (Py_ssize_t)dims[i];
    }
    PyObject *capsule = PyCapsule_New(a, NULL, capsule_free);
    if (!capsule)
        PyMem_Free(a);
    return capsule;
}

PyObject *py_array_of(PyObject *object)
{
    static PyObject *asarray;
    if (!asarray) {
        asarray = py_helper("asarray");
        if (!asarray)
            return NULL;
        Py_INCREF(asarray);
    }
    return PyObject_CallFunctionObjArgs(asarray, object, NULL);
}

/* ---- NumPy's C functions, for results of runs: an order of magnitude faster than the array interface. Their positions
 * in NumPy's table belong to its binary interface, which is the same in 1.x and 2.x. ---- */

enum { API_VERSION = 0, API_TYPE = 2, API_NEW = 93, API_SET_BASE = 282 };
typedef unsigned (*api_version)(void);
typedef PyObject *(*api_new)(PyTypeObject *type, int nd, const Py_ssize_t *dims, int number, const Py_ssize_t *strides,
                             void *data, int itemsize, int flags, PyObject *object);
typedef int (*api_set_base)(PyObject *array, PyObject *base);

static void **numpy_api(void)
{
    static void **api;
    static bool asked;
    if (!asked) {
        PyObject *capsule = py_helper("array_api");
        asked = true;
        api = capsule && PyCapsule_IsValid(capsule, NULL) ? PyCapsule_GetPointer(capsule, NULL) : NULL;
        const unsigned edition = api ? ((api_version)(uintptr_t)api[API_VERSION])() >> 24 : 0;
        if (edition != 1 && edition != 2)
            api = NULL; /* unknown version of the table: the array interface is used instead */
        PyErr_Clear();
    }
    return api;
}

/* NumPy's number of an element type; -1: NumPy lacks it. */
static int numpy_type(int32_t dtype)
{
    static const int8_t numbers[ONX_DTYPE_COUNT] = { [ONX_BOOL] =
                                                         1, /* one more than NumPy's number, so that 0 means none */
                                                     [ONX_INT8] = 2,
                                                     [ONX_UINT8] = 3,
                                                     [ONX_INT16] = 4,
                                                     [ONX_UINT16] = 5,
                                                     [ONX_INT32] = 6,
                                                     [ONX_UINT32] = 7,
                                                     [ONX_INT64] = sizeof(long) == 8 ? 8 : 10,
                                                     [ONX_UINT64] = sizeof(long) == 8 ? 9 : 11,
                                                     [ONX_FLOAT] = 12,
                                                     [ONX_DOUBLE] = 13,
                                                     [ONX_COMPLEX64] = 15,
                                                     [ONX_COMPLEX128] = 16,
                                                     [ONX_FLOAT16] = 24 };
    return dtype > 0 && dtype < ONX_DTYPE_COUNT ? numbers[dtype] - 1 : -1;
}

PyObject *py_array_made(PyObject *base, int32_t dtype, uint32_t rank, const int64_t *dims, void *data)
{
    void **api = numpy_api();
    const int number = numpy_type(dtype);
    if (!api || number < 0 || rank > 32 || !data || sizeof(Py_ssize_t) != sizeof(int64_t))
        return py_array_of(base);
    PyObject *array = ((api_new)(uintptr_t)api[API_NEW])(
        (PyTypeObject *)api[API_TYPE], (int)rank, (const Py_ssize_t *)(const void *)dims, number, NULL, data, 0,
        PY_ARRAY_CONTIGUOUS | PY_ARRAY_ALIGNED | PY_ARRAY_WRITEABLE, NULL);
    if (!array)
        return NULL;
    Py_INCREF(base); /* the array takes over this reference, even if the call fails */
    if (((api_set_base)(uintptr_t)api[API_SET_BASE])(array, base) != 0)
        Py_CLEAR(array);
    return array;
}

/* ---- views: objects that keep memory of another owner for an array ---- */

typedef struct view {
    PyObject_HEAD PyObject *owner;
    void *made; /* converted elements, or NULL */
    const void *data;
    int32_t dtype;
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX];
} view;

static void view_dealloc(PyObject *self)
{
    view *v = (view *)self;
    Py_XDECREF(v->owner);
    PyMem_Free(v->made);
    py_delete(self);
}

static PyObject *view_struct(PyObject *self, void *closure)
{
    const view *v = (const view *)self;
    (void)closure;
    return py_array_capsule(v->dtype, v->rank, v->dims, v->data, v->made != NULL);
}

PyObject *py_array_over(PyObject *owner, int32_t dtype, uint32_t rank, const int64_t *dims, const void *data,
                        uint64_t size)
{
    const int32_t shown = py_array_widened(dtype);
    uint64_t count = 1, bytes = 0, need = 0;
    for (uint32_t i = 0; i < rank; i++) /* cannot overflow: the elements exist in memory */
        count *= (uint64_t)dims[i];
    if (!onx_dtype_size(dtype, count, &need) || need > size || rank > ONX_RANK_MAX) {
        PyErr_SetString(PyExc_ValueError, "the elements do not fit type and shape");
        return NULL;
    }
    view *v = py_new(view_type);
    if (!v)
        return NULL;
    v->owner = owner;
    Py_INCREF(owner);
    v->dtype = shown;
    v->rank = rank;
    v->data = data;
    for (uint32_t i = 0; i < rank; i++)
        v->dims[i] = dims[i];
    if (shown != dtype) {
        if (!onx_dtype_size(shown, count, &bytes) || !(v->made = PyMem_Malloc(bytes ? bytes : 1))) {
            Py_DECREF(v);
            return PyErr_NoMemory();
        }
        if (onx_convert((onx_dtype)shown, v->made, (onx_dtype)dtype, data, count, false) != ONX_OK) {
            Py_DECREF(v);
            PyErr_Format(PyExc_ValueError, "%s cannot be shown as numbers", onx_dtype_name(dtype));
            return NULL;
        }
        v->data = v->made;
    }
    PyObject *array = py_array_of((PyObject *)v);
    Py_DECREF(v);
    return array;
}

bool py_add_array(PyObject *module)
{
    static PyGetSetDef members[] = { { "__array_struct__", view_struct, NULL, NULL, NULL },
                                     { NULL, NULL, NULL, NULL, NULL } };
    static PyType_Slot slots[] = { { Py_tp_dealloc, PY_SLOT(view_dealloc) },
                                   { Py_tp_new, PY_SLOT(py_no_new) },
                                   { Py_tp_getset, members },
                                   { 0, NULL } };
    static PyType_Spec spec = { "onx._onx.View", (int)sizeof(view), 0, Py_TPFLAGS_DEFAULT, slots };
    name_struct = PyUnicode_InternFromString("__array_struct__");
    view_type = name_struct ? py_add_type(module, &spec, NULL) : NULL;
    return view_type != NULL;
}
