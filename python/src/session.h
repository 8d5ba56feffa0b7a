/* session.h - what a session of Python is, to those who make it and those who run it. */
#ifndef ONX_PY_SESSION_H
#define ONX_PY_SESSION_H

#include "py.h"

typedef struct port {
    PyObject *name;
    const onx_type *type;
    bool required;
} port;

typedef struct session {
    PyObject_HEAD py_ctx *ctx; /* of the model and the session; runs have others */
    onx_session *session;
    onx_doc *doc;        /* that the session was made of, or NULL */
    PyObject *source;    /* what holds its bytes, or NULL */
    PyObject *operators; /* of one's own, or NULL */
    PyObject *described; /* (inputs, outputs) for people, made by the first who asks */
    port *inputs, *outputs;
    uint32_t input_count, output_count;
    unsigned threads;
    unsigned long process; /* counts forks: threads do not come along */
    size_t running;
} session;

/* True after a fork, in a process that the session was not made in. */
bool session_is_of_parent(const session *s);
/* session(x, y=...) and session.run(names, feed, ...). */
PyObject *session_call(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *session_run(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
