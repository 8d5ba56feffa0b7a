/* session.h - session objects, for the files that create and run them. */
#ifndef ONX_PY_SESSION_H
#define ONX_PY_SESSION_H

#include "py.h"

typedef struct port {
    PyObject *name;
    const onx_type *type;
    bool required;
} port;

typedef struct session {
    PyObject_HEAD py_ctx *ctx; /* of the model and the session; runs have contexts of their own */
    onx_session *session;
    onx_doc *doc;        /* the document of the session, or NULL */
    PyObject *source;    /* owner of its bytes, or NULL */
    PyObject *operators; /* custom operators, or NULL */
    PyObject *described; /* (inputs, outputs) as Python objects, created on first use */
    port *inputs, *outputs;
    uint32_t input_count, output_count;
    unsigned threads;
    bool exact;            /* arrays of ml_dtypes for types that NumPy lacks */
    unsigned long process; /* number of forks when it was created: threads do not survive a fork */
    size_t running;
} session;

/* True in a child process after a fork of the process that created the session. */
bool session_is_of_parent(const session *s);
/* Implements session(x, y=...) and session.run(names, feed, ...). */
PyObject *session_call(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *session_run(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
