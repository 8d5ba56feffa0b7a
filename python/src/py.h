/* py.h - shared by the files of the extension module. The module uses the limited API of CPython 3.9, so that one file
 * works with all later versions. All functions here need the GIL. */
#ifndef ONX_PY_H
#define ONX_PY_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>
#include <onx/ffi.h>
#include <onx/onx.h>

/* Type slots take functions as object pointers; ISO C has no cast for that. */
#define PY_SLOT(function)   ((void *)(uintptr_t)(function))
#define PY_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* ---- contexts (support.c) ---- */

/* A context of the library, with all values created by it. One thread at a time uses it. A thread that releases the GIL
 * meanwhile marks the context busy; values that others free by then are freed when it is done. */
typedef struct py_ctx {
    onx_ctx *cx;
    size_t refs;
    bool busy;
    size_t docs;         /* number of documents created with it; while there are any, it is busy */
    onx_value **waiting; /* values to be freed */
    size_t waiting_count, waiting_room;
    struct py_ctx *next; /* next idle context */
} py_ctx;

/* Takes an idle context or a new one, with a reference for the caller; NULL with an exception. */
py_ctx *py_ctx_take(void);
py_ctx *py_ctx_ref(py_ctx *ctx);
void py_ctx_drop(py_ctx *ctx);
/* Returns a context that was taken, and drops the caller's reference; other calls may take it. */
void py_ctx_done(py_ctx *ctx);
void py_ctx_free_value(py_ctx *ctx, onx_value *value);

/* ---- work without the GIL (interrupt.c) ---- */

/* While there is one, Ctrl-C cancels the library's work in the context, and py_fail then raises KeyboardInterrupt. This
 * works in the main thread only, and only if nobody else handles the signal. */
typedef struct py_watch {
    py_ctx *ctx; /* NULL: nothing is watched */
} py_watch;

void py_watch_begin(py_watch *watch, py_ctx *ctx);
void py_watch_end(py_watch *watch);
/* Is this the thread in which Python handles signals? */
bool py_on_main_thread(void);

/* Executes the statements without the GIL. */
#define PY_WORK(context, ...)                                                                                          \
    do {                                                                                                               \
        py_watch watch_;                                                                                               \
        py_watch_begin(&watch_, context);                                                                              \
        PyThreadState *const saved_ = PyEval_SaveThread();                                                             \
        __VA_ARGS__;                                                                                                   \
        PyEval_RestoreThread(saved_);                                                                                  \
        py_watch_end(&watch_);                                                                                         \
    } while (0)

/* ---- failures (support.c) ---- */

/* Raises an exception for the context's diagnostics and clears them; always returns NULL. An exception that is already
 * set is kept. */
PyObject *py_fail(onx_ctx *cx, onx_status status);
/* After success: raises the warnings as Python warnings and clears the diagnostics. Returns false if a warning became
 * an exception. */
bool py_warn(onx_ctx *cx);
/* Returns all diagnostics as a list and clears them. */
PyObject *py_findings(onx_ctx *cx);

/* ---- strings and names (support.c) ---- */

/* Converts a string of a file, which may have any bytes: bytes that are not UTF-8 become lone surrogates, and become
 * bytes again on the way back. */
PyObject *py_text(onx_str text);
/* The bytes of a str, bytes or None (empty); `*keep` holds them until the caller drops it. */
bool py_bytes_of(PyObject *text, PyObject **keep, onx_str *out);
/* The same for paths, which are NUL-terminated. */
const char *py_path_of(PyObject *path, PyObject **keep);
/* The type as text, such as "tensor(float)" or "seq(map(int64, tensor(float)))". */
PyObject *py_type_text(const onx_type *type);
PyObject *py_shape(const onx_tensor_shape *shape);
/* A function or class of the package's helper module; a borrowed reference. */
PyObject *py_helper(const char *name);
/* Creates a type from its specification and adds it to the module; a borrowed reference. */
PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases);
/* Py_tp_new for types that cannot be instantiated directly. */
PyObject *py_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
/* Allocates an object of a heap type; py_delete frees it. */
void *py_new(PyTypeObject *type);
void py_delete(void *object);

/* ---- values (value.c) ---- */

typedef struct py_value {
    PyObject_HEAD py_ctx *ctx;
    onx_value *value;
    PyObject *parent; /* the value whose item this is, or NULL */
} py_value;

extern PyTypeObject *py_value_type;

/* Takes over the value, even on failure. */
PyObject *py_value_wrap(py_ctx *ctx, onx_value *value);
/* Converts a value to Python objects: arrays, lists, dicts, None. Takes over the value, even on failure. */
/* `exact`: types that NumPy lacks are those of the package ml_dtypes, instead of wider ones of NumPy. */
PyObject *py_value_result(py_ctx *ctx, onx_value *value, bool exact);
/* Converts any Python object to a value of `ctx`; row-major arrays are not copied. `type` (may be NULL) is the type
 * that is needed. Returns NULL with an exception on failure. If the object is a value already, returns NULL and sets
 * *borrowed. */
onx_value *py_value_of(py_ctx *ctx, PyObject *object, const onx_type *type, const onx_value **borrowed);
/* A value over the memory of an array, into which a run writes. */
onx_value *py_value_over(py_ctx *ctx, PyObject *array);
/* A read-only array over memory that `owner` keeps alive. Types that NumPy lacks are converted. */
PyObject *py_array_over(PyObject *owner, int32_t dtype, uint32_t rank, const int64_t *dims, const void *data,
                        uint64_t size);

/* ---- documents and messages (doc.c, message.c, list.c) ---- */

/* A document. A thread that releases the GIL while it reads counts as a reader, and meanwhile nobody changes the
 * document. The document has its own context, which no run uses. `keeps` are objects that own memory it refers to. */
typedef struct py_doc {
    PyObject_HEAD py_ctx *ctx;
    onx_doc *doc;
    PyObject *keeps; /* a list, or NULL */
    size_t readers;
} py_doc;

typedef struct py_message {
    PyObject_HEAD py_doc *doc;
    void *message;
    onx_kind kind;
} py_message;

/* Takes over document and context, even on failure; `keeps` is borrowed and may be NULL. Several documents may share a
 * context; each has a reference. */
py_doc *py_doc_wrap(py_ctx *ctx, onx_doc *doc, PyObject *keeps);
/* The root message as an object; takes over the reference to the document, which may be NULL after a failure. */
PyObject *py_doc_root(py_doc *doc);
/* Returns false with an exception while others read. */
bool py_doc_may_change(const py_doc *doc);
/* Makes the document keep `object` alive. Returns false without an exception if that is a document that needs this
 * one. */
bool py_doc_keep(py_doc *doc, PyObject *object);

PyObject *py_message_wrap(py_doc *doc, onx_kind kind, void *message);
/* The object as a message of the kind (ONX_KIND_NONE: of any kind); NULL with an exception for other objects. */
py_message *py_message_of(PyObject *object, onx_kind kind);
bool py_is_message(PyObject *object);
bool py_message_is_root(const py_message *m);
/* The kind that the type stands for; ONX_KIND_NONE with an exception for other objects. */
onx_kind py_kind_of_type(PyObject *type);
/* Copies a message to a place in `to`; weights and strings are shared. Returns NULL with an exception on failure. */
void *py_message_bring(py_doc *to, onx_kind kind, PyObject *from);
/* A new document with the message as its root, which shares the weights; *keeps are the objects that it has to keep
 * alive. */
onx_doc *py_message_share(py_ctx *ctx, const py_message *m, PyObject **keeps);

PyObject *py_list_new(const py_message *owner, const onx_field_info *field);
PyObject *py_field_value(py_doc *doc, onx_kind kind, void *message, const onx_field_info *field, uint64_t index);
/* Stores a singular field, or element `index` of a list (-1: singular). */
bool py_field_store(py_doc *doc, onx_kind kind, void *message, const onx_field_info *field, int64_t index,
                    PyObject *value);

/* ---- operators from Python functions (operators.c) ---- */

/* The registry of an Operators object; NULL with an exception for any other object. */
const onx_registry *py_operators_registry(PyObject *object);
/* Until the end, nobody may change the operators, and they are kept alive; None or NULL: there are none. */
void py_operators_begin(PyObject *object);
void py_operators_end(PyObject *object);
/* Makes the exception of a failed function the cause of the current exception. */
void py_operators_cause(PyObject *object);

/* Each file adds its part to the module. */
bool py_add_support(PyObject *module);
bool py_add_interrupt(PyObject *module);
bool py_add_array(PyObject *module);
bool py_add_value(PyObject *module);
bool py_add_session(PyObject *module);
bool py_add_doc(PyObject *module);
bool py_add_message(PyObject *module);
bool py_add_list(PyObject *module);
bool py_add_files(PyObject *module);
bool py_add_transform(PyObject *module);
bool py_add_operators(PyObject *module);
bool py_add_drawing(PyObject *module);

#endif
