/* session_run.c - runs of a session: converts inputs, runs without the GIL, and converts outputs. */
#include "array.h"
#include "session.h"

#include <stdlib.h>
#include <time.h>

/* The steps of a run, for a profile: recorded without the GIL, and converted at the end. */
typedef struct steps {
    struct step {
        uint64_t start_ns, end_ns;
        size_t text; /* name, followed by operator, in `texts` */
        size_t name_len, op_len;
        const char *kernel;
    } * list;
    size_t count, room;
    char *texts;
    size_t text_size, text_room;
    bool failed; /* out of memory */
} steps;

/* Makes room for `more` elements after `count`. */
static bool make_room(void *list, size_t count, size_t more, size_t element, size_t *room)
{
    if (count + more <= *room)
        return true;
    void *old, *grown = NULL;
    memcpy(&old, list, sizeof old);
    const size_t wanted = (count + more) * 2 + 16;
    if (wanted < SIZE_MAX / element)
        grown = realloc(old, wanted * element);
    if (!grown)
        return false;
    memcpy(list, &grown, sizeof grown);
    *room = wanted;
    return true;
}

static void note_step(steps *t, const onx_run_event *event)
{
    const size_t len = event->name.len + event->op_type.len;
    t->failed = t->failed || !make_room(&t->list, t->count, 1, sizeof *t->list, &t->room) ||
                !make_room(&t->texts, t->text_size, len, 1, &t->text_room);
    if (t->failed)
        return;
    t->list[t->count++] = (struct step){ event->start_ns, event->end_ns,      t->text_size,
                                         event->name.len, event->op_type.len, event->variant };
    if (event->name.len)
        memcpy(t->texts + t->text_size, event->name.ptr, event->name.len);
    if (event->op_type.len)
        memcpy(t->texts + t->text_size + event->name.len, event->op_type.ptr, event->op_type.len);
    t->text_size += len;
}

/* Appends the recorded steps to a list. */
static bool tell_steps(steps *t, PyObject *list)
{
    PyObject *make = py_helper("step");
    bool good = make != NULL;
    if (t->failed) {
        PyErr_NoMemory();
        good = false;
    }
    for (size_t i = 0; good && i < t->count; i++) {
        const struct step *at = &t->list[i];
        PyObject *name = py_text(onx_str_make(t->texts + at->text, at->name_len));
        PyObject *op = py_text(onx_str_make(t->texts + at->text + at->name_len, at->op_len));
        PyObject *one =
            name && op ? PyObject_CallFunction(make, "OOsdd", name, op, at->kernel ? at->kernel : "",
                                               (double)at->start_ns * 1e-9, (double)(at->end_ns - at->start_ns) * 1e-9)
                       : NULL;
        good = one && PyList_Append(list, one) == 0;
        Py_XDECREF(name);
        Py_XDECREF(op);
        Py_XDECREF(one);
    }
    return good;
}

/* The thread that runs a model checks regularly whether to stop: Python handles signals in its main thread, and the
 * caller may have given a function. */
typedef struct watch {
    PyThreadState *saved;
    struct timespec next;
    unsigned long thread;
    PyObject *stop; /* borrowed, or NULL */
    steps *steps;   /* NULL: no profile is wanted */
    bool interrupted;
} watch;

enum { ASK_EVERY_NS = 20000000 };

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

static void ask_later(watch *w)
{
    clock_gettime(CLOCK_MONOTONIC_COARSE, &w->next);
    w->next.tv_nsec += ASK_EVERY_NS;
    if (w->next.tv_nsec >= 1000000000) {
        w->next.tv_nsec -= 1000000000;
        w->next.tv_sec++;
    }
}

/* Calls the function. If it fails, the run ends, too, with that exception. */
static bool is_told_to_stop(PyObject *stop)
{
    if (!stop)
        return false;
    PyObject *answer = PyObject_CallFunctionObjArgs(stop, NULL);
    const int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth != 0;
}

static bool stop_run(void *user)
{
    watch *w = user;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (PyThread_get_thread_ident() != w->thread)
        return false; /* called in a thread of the session */
    if (w->interrupted)
        return true;
    if (is_before(now, w->next))
        return false;
    PyEval_RestoreThread(w->saved);
    w->interrupted = PyErr_CheckSignals() != 0 || is_told_to_stop(w->stop);
    w->saved = PyEval_SaveThread();
    ask_later(w);
    return w->interrupted;
}

static void on_step(void *user, const onx_run_event *event)
{
    note_step(((watch *)user)->steps, event);
}

enum { FEW = 16 };

/* One run: inputs by port, which are held until its end. */
typedef struct call {
    session *s;
    py_ctx *ctx;
    PyObject **objects;   /* per input; NULL: omitted */
    PyObject **arrays;    /* per output: an array of the caller, or NULL */
    onx_value **made;     /* per input: a value for this run, or NULL */
    const onx_value **in; /* per input */
    onx_value **out;      /* per output */
    PyObject *few_objects[FEW], *few_arrays[FEW];
    onx_value *few_made[FEW], *few_out[FEW];
    const onx_value *few_in[FEW];
    double timeout;
    unsigned long long iterations;
    PyObject *stop, *profile; /* borrowed from the arguments, or NULL */
} call;

static bool call_open(call *c, session *s)
{
    memset(c, 0, sizeof *c);
    c->s = s;
    if (!s->session) {
        PyErr_SetString(PyExc_ValueError, "this session was never made");
        return false;
    }
    if (session_is_of_parent(s) && s->threads != 1) {
        PyErr_SetString(PyExc_RuntimeError, "the threads of a session do not come along when a process forks: make the "
                                            "session in the child, or with threads=1");
        return false;
    }
    c->objects = c->few_objects;
    c->arrays = c->few_arrays;
    c->made = c->few_made;
    c->in = c->few_in;
    c->out = c->few_out;
    if (s->input_count > FEW) {
        c->objects = PyMem_Calloc(s->input_count, sizeof *c->objects);
        c->made = PyMem_Calloc(s->input_count, sizeof *c->made);
        c->in = PyMem_Calloc(s->input_count, sizeof *c->in);
    }
    if (s->output_count > FEW) {
        c->out = PyMem_Calloc(s->output_count, sizeof *c->out);
        c->arrays = PyMem_Calloc(s->output_count, sizeof *c->arrays);
    }
    if (!c->objects || !c->arrays || !c->made || !c->in || !c->out)
        PyErr_NoMemory();
    else
        c->ctx = py_ctx_take();
    return c->ctx != NULL;
}

static void call_close(call *c)
{
    session *s = c->s;
    if (c->made && c->out && c->ctx) {
        for (uint32_t i = 0; i < s->input_count; i++)
            if (c->made[i])
                onx_value_free(c->made[i]);
        for (uint32_t i = 0; i < s->output_count; i++)
            if (c->out[i])
                onx_value_free(c->out[i]);
    }
    if (c->ctx)
        py_ctx_done(c->ctx);
    for (uint32_t i = 0; c->objects && i < s->input_count; i++)
        Py_XDECREF(c->objects[i]);
    for (uint32_t i = 0; c->arrays && i < s->output_count; i++)
        Py_XDECREF(c->arrays[i]);
    if (c->objects != c->few_objects)
        PyMem_Free(c->objects);
    if (c->arrays != c->few_arrays)
        PyMem_Free(c->arrays);
    if (c->made != c->few_made)
        PyMem_Free(c->made);
    if (c->in != c->few_in)
        PyMem_Free((void *)(uintptr_t)c->in);
    if (c->out != c->few_out)
        PyMem_Free(c->out);
}

static bool unknown(const char *what, PyObject *name, const port *ports, uint32_t count)
{
    PyObject *list = PyList_New(0), *make = py_helper("no_such");
    for (uint32_t i = 0; list && i < count; i++)
        if (PyList_Append(list, ports[i].name) != 0)
            Py_CLEAR(list);
    PyObject *error = list && make ? PyObject_CallFunction(make, "sOO", what, name, list) : NULL;
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(list);
    return false;
}

static bool find_port(PyObject *name, const port *ports, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const int same = ports[i].name == name ? 1 : PyObject_RichCompareBool(ports[i].name, name, Py_EQ);
        if (same < 0)
            return false;
        if (same) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* Calls `take` for each item of a dict as it is now: names of the caller may change it when they are compared. */
static bool each_item(call *c, PyObject *dict, bool (*take)(call *c, PyObject *key, PyObject *item))
{
    PyObject *pairs = PyDict_Items(dict);
    const Py_ssize_t count = pairs ? PyList_Size(pairs) : -1;
    bool good = count >= 0;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *pair = PyList_GetItem(pairs, i);
        good = take(c, PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1));
    }
    Py_XDECREF(pairs);
    return good;
}

static bool knows_input(call *c, PyObject *name, PyObject *item)
{
    const session *s = c->s;
    uint32_t index;
    (void)item;
    return find_port(name, s->inputs, s->input_count, &index) ||
           (!PyErr_Occurred() && unknown("input", name, s->inputs, s->input_count));
}

/* An array into which an output is written. */
static bool take_array(call *c, PyObject *name, PyObject *array)
{
    const session *s = c->s;
    uint32_t index = 0;
    if (!find_port(name, s->outputs, s->output_count, &index))
        return PyErr_Occurred() ? false : unknown("output", name, s->outputs, s->output_count);
    if (c->arrays[index]) {
        PyErr_Format(PyExc_TypeError, "output '%U' is given twice", s->outputs[index].name);
        return false;
    }
    Py_INCREF(c->arrays[index] = array);
    return (c->out[index] = py_value_over(c->ctx, array)) != NULL;
}

/* Takes the inputs from a dict by name. */
static bool take_feeds(call *c, PyObject *feeds)
{
    const session *s = c->s;
    Py_ssize_t found = 0;
    for (uint32_t i = 0; i < s->input_count; i++) {
        PyObject *object = PyDict_GetItemWithError(feeds, s->inputs[i].name);
        if (!object && PyErr_Occurred())
            return false;
        if (!object)
            continue;
        found++;
        if (c->objects[i]) {
            PyErr_Format(PyExc_TypeError, "input '%U' is given twice", s->inputs[i].name);
            return false;
        }
        Py_INCREF(c->objects[i] = object);
    }
    return found == PyDict_Size(feeds) || each_item(c, feeds, knows_input);
}

/* Converts the inputs. */
static bool take_inputs(call *c)
{
    const session *s = c->s;
    for (uint32_t i = 0; i < s->input_count; i++) {
        if (!c->objects[i] ||
            (c->objects[i] == Py_None && !(s->inputs[i].type && ONX_HAS(type, s->inputs[i].type, optional_type))))
            continue;
        const onx_value *borrowed;
        c->made[i] = py_value_of(c->ctx, c->objects[i], s->inputs[i].type, &borrowed);
        if (!c->made[i] && !borrowed)
            return false;
        c->in[i] = c->made[i] ? c->made[i] : borrowed;
    }
    return true;
}

static bool run(call *c)
{
    session *s = c->s;
    steps t = { .count = 0 };
    watch w = { .thread = PyThread_get_thread_ident(), .stop = c->stop, .steps = &t };
    onx_run_options options = { .struct_size = sizeof options, .user = &w };
    onx_status status;
    if (c->stop || py_on_main_thread()) {
        options.stop = stop_run;
        ask_later(&w);
    }
    if (c->profile)
        options.event = on_step;
    options.timeout_ns = (uint64_t)(c->timeout * 1e9);
    options.iterations = c->iterations;
    if (is_told_to_stop(c->stop)) {
        py_fail(c->ctx->cx, ONX_E_CANCELLED);
        return false;
    }
    py_operators_begin(s->operators); /* a run may resolve nodes */
    w.saved = PyEval_SaveThread();
    status = onx_session_run_with(s->session, c->ctx->cx, c->in, c->out, &options);
    PyEval_RestoreThread(w.saved);
    py_operators_end(s->operators);
    bool good = status == ONX_OK && !w.interrupted;
    if (!good) {
        py_fail(c->ctx->cx, status == ONX_OK ? ONX_E_CANCELLED : status);
        if (s->operators && !w.interrupted)
            py_operators_cause(s->operators);
    }
    good = good && (!c->profile || tell_steps(&t, c->profile)) && py_warn(c->ctx->cx);
    free(t.list);
    free(t.texts);
    return good;
}

static PyObject *take_output(call *c, uint32_t index, bool as_values)
{
    onx_value *value = c->out[index];
    c->out[index] = NULL;
    if (!value)
        Py_RETURN_NONE;
    return as_values ? py_value_wrap(c->ctx, value) : py_value_result(c->ctx, value, c->s->exact);
}

static bool perform(call *c)
{
    return take_inputs(c) && run(c);
}

static PyObject *all_outputs(call *c)
{
    const uint32_t count = c->s->output_count;
    if (count == 1)
        return take_output(c, 0, false);
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; tuple && i < count; i++)
        if (PyTuple_SetItem(tuple, (Py_ssize_t)i, take_output(c, i, false)) != 0 || PyErr_Occurred())
            Py_CLEAR(tuple);
    return tuple;
}

PyObject *session_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    call c;
    PyObject *result = NULL;
    bool good = call_open(&c, (session *)self);
    const Py_ssize_t given = good ? PyTuple_Size(args) : 0;
    if (good && given > (Py_ssize_t)c.s->input_count) {
        PyErr_Format(PyExc_TypeError, "the model has %u inputs, and %zd were given", c.s->input_count, given);
        good = false;
    }
    for (Py_ssize_t i = 0; good && i < given; i++)
        Py_INCREF(c.objects[i] = PyTuple_GetItem(args, i));
    if (good && (!kwargs || take_feeds(&c, kwargs)) && perform(&c))
        result = all_outputs(&c);
    call_close(&c);
    return result;
}

/* Selects the outputs by None or a list of names. */
static bool wanted_outputs(const session *s, PyObject *names, Py_ssize_t *count, uint32_t **out)
{
    *out = NULL;
    *count = names == Py_None ? (Py_ssize_t)s->output_count : PySequence_Size(names);
    if (*count < 0)
        return false;
    *out = PyMem_Malloc(((size_t)*count + 1) * sizeof **out);
    if (!*out) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < *count; i++) {
        (*out)[i] = (uint32_t)i;
        PyObject *name = names == Py_None ? NULL : PySequence_GetItem(names, i);
        if (names == Py_None)
            continue;
        if (!name)
            return false;
        const bool found = find_port(name, s->outputs, s->output_count, &(*out)[i]);
        if (!found && !PyErr_Occurred())
            unknown("output", name, s->outputs, s->output_count);
        Py_DECREF(name);
        if (!found)
            return false;
    }
    return true;
}

PyObject *session_run(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "output_names", "input_feed", "run_options", "out",     "timeout",
                             "iterations",   "values",     "stop",        "profile", NULL };
    PyObject *outputs = Py_None, *feeds, *ignored = Py_None, *into = Py_None, *list = NULL;
    PyObject *stop = Py_None, *profile = Py_None;
    int values = 0;
    call c;
    uint32_t *wanted = NULL;
    Py_ssize_t count = 0;
    double timeout = 0;
    unsigned long long iterations = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|OO!dKpOO:run", names, &outputs, &PyDict_Type, &feeds, &ignored,
                                     &PyDict_Type, &into, &timeout, &iterations, &values, &stop, &profile))
        return NULL;
    if ((stop != Py_None && !PyCallable_Check(stop)) || (profile != Py_None && !PyList_Check(profile))) {
        PyErr_SetString(PyExc_TypeError, "stop is a function, profile a list");
        return NULL;
    }
    if (!(timeout >= 0) || timeout > 1e9) {
        PyErr_SetString(PyExc_ValueError, "a timeout is not negative");
        return NULL;
    }
    bool good =
        call_open(&c, (session *)self) && wanted_outputs(c.s, outputs, &count, &wanted) && take_feeds(&c, feeds);
    c.timeout = timeout;
    c.iterations = iterations;
    c.stop = stop != Py_None ? stop : NULL;
    c.profile = profile != Py_None ? profile : NULL;
    good = good && (into == Py_None || each_item(&c, into, take_array));
    if (good && perform(&c)) {
        list = PyList_New(count);
        for (Py_ssize_t i = 0; list && i < count; i++) {
            PyObject *result = c.arrays[wanted[i]];
            Py_XINCREF(result);
            for (Py_ssize_t j = 0; !result && j < i; j++) /* the same output is requested twice */
                if (wanted[j] == wanted[i])
                    Py_XINCREF(result = PyList_GetItem(list, j));
            if (!result)
                result = take_output(&c, wanted[i], values != 0);
            if (!result || PyList_SetItem(list, i, result) != 0)
                Py_CLEAR(list);
        }
    }
    PyMem_Free(wanted);
    call_close(&c);
    return list;
}
