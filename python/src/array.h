/* array.h - NumPy's array interface, by which arrays are read and created without NumPy's headers, for any version of
 * NumPy. Source: https://numpy.org/doc/stable/reference/arrays.interface.html. */
#ifndef ONX_PY_ARRAY_H
#define ONX_PY_ARRAY_H

#include "py.h"

typedef struct py_array_struct { /* PyArrayInterface */
    int two;
    int nd;
    char typekind;
    int itemsize;
    int flags;
    Py_ssize_t *shape;
    Py_ssize_t *strides; /* in bytes */
    void *data;
    PyObject *descr;
} py_array_struct;

enum { /* flags */
       PY_ARRAY_CONTIGUOUS = 0x1,
       PY_ARRAY_ALIGNED = 0x100,
       PY_ARRAY_NATIVE = 0x200, /* byte order */
       PY_ARRAY_WRITEABLE = 0x400
};

/* A capsule with the struct of an array over the given memory. Fails for ONX_UNDEFINED and for types that NumPy
 * lacks. */
PyObject *py_array_capsule(int32_t dtype, uint32_t rank, const int64_t *dims, const void *data, bool writeable);
/* The element type of an array; ONX_UNDEFINED if ONNX lacks it. */
int32_t py_array_dtype(const py_array_struct *array);
/* The type that elements are converted to if NumPy lacks theirs; otherwise their own type. */
int32_t py_array_widened(int32_t dtype);
/* A new array over the object's memory, by its array interface: numpy.asarray(object). */
PyObject *py_array_of(PyObject *object);
/* The same for row-major, aligned and writeable elements in the memory of `base`, created directly. */
PyObject *py_array_made(PyObject *base, int32_t dtype, uint32_t rank, const int64_t *dims, void *data);
/* The array struct of an object, kept alive by *keep; NULL without an exception if the object has no array
 * interface. */
const py_array_struct *py_array_look(PyObject *object, PyObject **keep);

#endif
