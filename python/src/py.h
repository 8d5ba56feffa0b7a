/* py.h - what the files of the extension module share. The module keeps to the limited interface of CPython 3.9, so
 * that one file serves all later versions. Everything here is used by threads that hold the interpreter's lock. */
#ifndef ONX_PY_H
#define ONX_PY_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>
#include <onx/ffi.h>
#include <onx/onx.h>

/* Type slots hold functions as addresses of objects, which ISO C has no cast for. */
#define PY_SLOT(function)   ((void *)(uintptr_t)(function))
#define PY_METHOD(function) ((PyCFunction)(void (*)(void))(function))

/* ---- contexts (support.c) ---- */

/* A context of the library with all values that were made with it. One thread at a time works with it: whoever lets go
 * of the interpreter's lock meanwhile marks it busy, and what others free by then waits for its end. */
typedef struct py_ctx {
    onx_ctx *cx;
    size_t refs;
    bool busy;
    size_t docs;         /* that were made with it; while there are any it is busy */
    onx_value **waiting; /* to be freed */
    size_t waiting_count, waiting_room;
    struct py_ctx *next; /* of those that nobody has taken */
} py_ctx;

/* One that nobody works with, counted for the caller; NULL with an exception. */
py_ctx *py_ctx_take(void);
py_ctx *py_ctx_ref(py_ctx *ctx);
void py_ctx_drop(py_ctx *ctx);
/* The end of what the caller took it for: other calls may have it. Its reference is dropped, too. */
void py_ctx_done(py_ctx *ctx);
void py_ctx_free_value(py_ctx *ctx, onx_value *value);

/* ---- work without the interpreter's lock (interrupt.c) ---- */

/* While there is one, Ctrl-C ends what the library does with the context: py_fail then raises KeyboardInterrupt. Only
 * the main thread can, and only where nobody else handles the signal. */
typedef struct py_watch {
    py_ctx *ctx; /* NULL: nothing is watched */
} py_watch;

void py_watch_begin(py_watch *watch, py_ctx *ctx);
void py_watch_end(py_watch *watch);
/* Is this the thread that Python handles signals in? */
bool py_on_main_thread(void);

/* The statements without the lock. */
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

/* Raises what the context's diagnostics say and clears them; always NULL. An exception that is set already stays. */
PyObject *py_fail(onx_ctx *cx, onx_status status);
/* After success: warnings become Python's, and the diagnostics are cleared. False when a warning was made an error. */
bool py_warn(onx_ctx *cx);
/* All diagnostics as a list, cleared. */
PyObject *py_findings(onx_ctx *cx);

/* ---- texts and names (support.c) ---- */

/* Files hold any bytes as texts: those that are no UTF-8 come as lone surrogates and go back as they were. */
PyObject *py_text(onx_str text);
/* The bytes of a str, bytes or None (empty); `*keep` holds them until the caller drops it. */
bool py_bytes_of(PyObject *text, PyObject **keep, onx_str *out);
/* The same for paths, which end with zero. */
const char *py_path_of(PyObject *path, PyObject **keep);
/* "tensor(float)", "seq(map(int64, tensor(float)))" */
PyObject *py_type_text(const onx_type *type);
PyObject *py_shape(const onx_tensor_shape *shape);
/* A function or class of the package's module of helpers, a borrowed reference. */
PyObject *py_helper(const char *name);
/* The type of a module made from its specification and put there; a borrowed reference. */
PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases);
/* The Py_tp_new of types that nobody makes directly. */
PyObject *py_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
/* Memory for an object of a heap type, and its end. */
void *py_new(PyTypeObject *type);
void py_delete(void *object);

/* ---- values (value.c) ---- */

typedef struct py_value {
    PyObject_HEAD py_ctx *ctx;
    onx_value *value;
    PyObject *parent; /* the value that has this one as item, or NULL */
} py_value;

extern PyTypeObject *py_value_type;

/* Takes the value, also when it fails. */
PyObject *py_value_wrap(py_ctx *ctx, onx_value *value);
/* What people work with: arrays, lists, dicts, None. Takes the value, also when it fails. */
PyObject *py_value_result(py_ctx *ctx, onx_value *value);
/* A value of `ctx` for anything that Python has: arrays are not copied where they lie row-major. `type`, which may be
 * NULL, is what it is for. NULL with an exception. A value that somebody holds already is in *borrowed instead. */
onx_value *py_value_of(py_ctx *ctx, PyObject *object, const onx_type *type, const onx_value **borrowed);
/* A value over memory that a run writes into. */
onx_value *py_value_over(py_ctx *ctx, PyObject *array);
/* An array over memory of somebody else, which `owner` keeps; read-only. Types that NumPy lacks are converted. */
PyObject *py_array_over(PyObject *owner, int32_t dtype, uint32_t rank, const int64_t *dims, const void *data,
                        uint64_t size);

/* ---- documents and messages (doc.c, message.c, list.c) ---- */

/* A document. Whoever lets go of the interpreter's lock while it reads counts as a reader, and nobody changes the
 * document meanwhile. Its context is its own: no run uses it. `keeps` are objects that hold what it refers to. */
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

/* Takes document and context, also when it fails; `keeps` is borrowed and may be NULL. Several documents may have one
 * context; each takes it. */
py_doc *py_doc_wrap(py_ctx *ctx, onx_doc *doc, PyObject *keeps);
/* The root of a document as an object; takes the reference to the document, which may be NULL after a failure. */
PyObject *py_doc_root(py_doc *doc);
/* False with an exception while others read. */
bool py_doc_may_change(const py_doc *doc);
/* From now on the document holds `object`; when that is a document that needs this one, false without an exception. */
bool py_doc_keep(py_doc *doc, PyObject *object);

PyObject *py_message_wrap(py_doc *doc, onx_kind kind, void *message);
/* The object as a message of the kind (ONX_KIND_NONE: of any); NULL with an exception for anything else. */
py_message *py_message_of(PyObject *object, onx_kind kind);
bool py_is_message(PyObject *object);
bool py_message_is_root(const py_message *m);
/* The kind whose type it is; ONX_KIND_NONE with an exception for any other object. */
onx_kind py_kind_of_type(PyObject *type);
/* A copy of a message for a place in `to`, which shares weights and texts; NULL with an exception. */
void *py_message_bring(py_doc *to, onx_kind kind, PyObject *from);
/* A document of its own over the same weights, whose root is the message, and what it has to keep. */
onx_doc *py_message_share(py_ctx *ctx, const py_message *m, PyObject **keeps);

PyObject *py_list_new(const py_message *owner, const onx_field_info *field);
PyObject *py_field_value(py_doc *doc, onx_kind kind, void *message, const onx_field_info *field, uint64_t index);
/* Stores a singular field, or element `index` of a list (-1: singular). */
bool py_field_store(py_doc *doc, onx_kind kind, void *message, const onx_field_info *field, int64_t index,
                    PyObject *value);

/* ---- operators from Python functions (operators.c) ---- */

/* The registry of an Operators object; NULL with an exception for any other object. */
const onx_registry *py_operators_registry(PyObject *object);
/* Between these nobody changes them, and they stay; None or NULL: there are none. */
void py_operators_begin(PyObject *object);
void py_operators_end(PyObject *object);
/* The exception of a function that failed becomes the cause of the one that is set. */
void py_operators_cause(PyObject *object);

/* What each file adds to the module. */
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
