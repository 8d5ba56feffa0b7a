/* session.c - sessions: models that are planned once and run as often as wanted. */
#include "array.h"

#include <stdlib.h>
#include <time.h>

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

static PyTypeObject *session_type;
static unsigned long forks;
static unsigned long main_thread; /* the one that Python handles signals in */

bool py_on_main_thread(void)
{
    return PyThread_get_thread_ident() == main_thread;
}

/* ---- making ---- */

static int session_traverse(PyObject *self, visitproc visit, void *arg)
{
    session *s = (session *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(s->operators);
    Py_VISIT(s->described);
    return 0;
}

static void ports_free(port *ports, uint32_t count)
{
    for (uint32_t i = 0; ports && i < count; i++)
        Py_XDECREF(ports[i].name);
    PyMem_Free(ports);
}

static void session_dealloc(PyObject *self)
{
    session *s = (session *)self;
    PyObject_GC_UnTrack(self);
    ports_free(s->inputs, s->input_count);
    ports_free(s->outputs, s->output_count);
    /* The threads of a session end with it; in a child process there are none to wait for, and its memory stays. */
    if (s->process == forks || s->threads == 1) {
        onx_session_free(s->session);
        onx_doc_free(s->doc);
        if (s->ctx)
            py_ctx_done(s->ctx);
    }
    Py_XDECREF(s->source);
    Py_XDECREF(s->operators);
    Py_XDECREF(s->described);
    py_delete(self);
}

static bool read_port(port *p, onx_session_port from)
{
    p->name = py_text(from.name);
    p->type = from.type;
    p->required = from.required;
    if (p->name)
        PyUnicode_InternInPlace(&p->name);
    return p->name != NULL;
}

static bool read_ports(session *s)
{
    s->input_count = onx_session_input_count(s->session);
    s->output_count = onx_session_output_count(s->session);
    s->inputs = PyMem_Calloc(s->input_count + (size_t)1, sizeof *s->inputs);
    s->outputs = PyMem_Calloc(s->output_count + (size_t)1, sizeof *s->outputs);
    if (!s->inputs || !s->outputs) {
        PyErr_NoMemory();
        s->input_count = s->output_count = 0;
        return false;
    }
    for (uint32_t i = 0; i < s->input_count; i++)
        if (!read_port(&s->inputs[i], onx_session_input(s->session, i)))
            return false;
    for (uint32_t i = 0; i < s->output_count; i++)
        if (!read_port(&s->outputs[i], onx_session_output(s->session, i)))
            return false;
    return true;
}

/* The names of enumerations that options take. */
static bool choose(const char *what, const char *word, const char *const *words, unsigned *out)
{
    for (unsigned i = 0; words[i]; i++)
        if (!word || strcmp(word, words[i]) == 0) {
            *out = word ? i : 0;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "there is no %s '%s'", what, word);
    return false;
}

static onx_status open_doc(session *s, const onx_session_options *options, const onx_load_options *load)
{
    const onx_status status = load->base_dir ? onx_doc_set_base_dir(s->doc, load->base_dir) : ONX_OK;
    return status == ONX_OK ? onx_session_new(s->ctx->cx, s->doc, options, &s->session) : status;
}

static onx_status open_model(session *s, PyObject *model, const onx_session_options *options,
                             const onx_load_options *load)
{
    onx_ctx *cx = s->ctx->cx;
    onx_status status;
    PyObject *keep = NULL;
    if (PyUnicode_Check(model) || PyObject_HasAttrString(model, "__fspath__")) {
        const char *path = py_path_of(model, &keep);
        if (!path)
            return ONX_E_MISUSE;
        PY_WORK(s->ctx, status = onx_session_load(cx, path, load, options, &s->session));
        Py_DECREF(keep);
        return status;
    }
    if (py_is_message(model)) {
        PyObject *keeps;
        const py_message *m = py_message_of(model, ONX_KIND_MODEL);
        s->doc = m ? py_message_share(s->ctx, m, &keeps) : NULL;
        if (!s->doc)
            return ONX_E_MISUSE;
        Py_XINCREF(s->source = keeps);
        PY_WORK(s->ctx, status = open_doc(s, options, load));
        return status;
    }
    PyObject *as_model = py_helper("session_model");
    if (!as_model || !(s->source = PyObject_CallFunctionObjArgs(as_model, model, NULL)))
        return ONX_E_MISUSE;
    onx_str bytes;
    char *ptr;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(s->source, &ptr, &len) != 0)
        return ONX_E_MISUSE;
    bytes = onx_str_make(ptr, (size_t)len);
    PY_WORK(s->ctx, status = onx_read(cx, ONX_KIND_MODEL, bytes, load->flags, 1, &s->doc);
            if (status == ONX_OK) status = open_doc(s, options, load));
    return status;
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    session *s = py_new(type);
    if (s)
        s->process = forks;
    return (PyObject *)s;
}

static int session_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "model",   "threads",   "optimize", "plain", "strict", "precision",   "isa",     "memory",
                             "timeout", "operators", "base_dir", "links", "cache",  "lean_memory", "measure", NULL };
    static const char *const isas[] = { "best", "base", "base", "v3", "v4", "vnni", "bf16", "amx", NULL };
    static const char *const precisions[] = { "full", "bf16", "f16", "int8", NULL };
    session *s = (session *)self;
    PyObject *model, *operators = Py_None, *base_dir = Py_None, *cache = Py_None;
    PyObject *keep = NULL, *keep_cache = NULL;
    int threads = 0, optimize = 1, plain = 0, strict = 0, links = 0, lean = 0, measure = 0;
    const char *precision = NULL, *isa = NULL;
    unsigned long long memory = 0;
    double timeout = 0;
    onx_session_options options = { .struct_size = sizeof options };
    onx_load_options load = { .struct_size = sizeof load };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$ipppzzKdOOpOpp:Session", names, &model, &threads, &optimize,
                                     &plain, &strict, &precision, &isa, &memory, &timeout, &operators, &base_dir,
                                     &links, &cache, &lean, &measure))
        return -1;
    if (s->ctx) {
        PyErr_SetString(PyExc_TypeError, "a session is made once");
        return -1;
    }
    if (threads < 0 || !(timeout >= 0) || timeout > 1e9) {
        PyErr_SetString(PyExc_ValueError, "threads and timeout are not negative");
        return -1;
    }
    if (!choose("isa", isa, isas, &options.isa) || !choose("precision", precision, precisions, &options.precision))
        return -1;
    options.threads = s->threads = (unsigned)threads;
    options.no_optimize = !optimize;
    options.plain = plain != 0;
    options.strict = strict != 0;
    options.lean_memory = lean != 0;
    options.measure = measure != 0;
    options.memory = memory;
    options.timeout_ns = (uint64_t)(timeout * 1e9);
    load.flags = links ? ONX_READ_LINKS : 0;
    if (operators != Py_None) {
        options.registry = py_operators_registry(operators);
        if (!options.registry)
            return -1;
        Py_INCREF(s->operators = operators);
    }
    if (base_dir != Py_None && !(load.base_dir = py_path_of(base_dir, &keep)))
        return -1;
    if (cache != Py_None && !(options.cache = py_path_of(cache, &keep_cache))) {
        Py_XDECREF(keep);
        return -1;
    }
    s->ctx = py_ctx_take();
    const onx_status status = s->ctx ? open_model(s, model, &options, &load) : ONX_E_MEMORY;
    Py_XDECREF(keep);
    Py_XDECREF(keep_cache);
    if (status != ONX_OK) {
        if (s->ctx)
            py_fail(s->ctx->cx, status);
        if (s->operators)
            py_operators_cause(s->operators);
        return -1;
    }
    return py_warn(s->ctx->cx) && read_ports(s) ? 0 : -1;
}

/* ---- running ---- */

/* What ran, for a caller who wants to know: kept without the interpreter's lock, and told at the end. */
typedef struct steps {
    struct step {
        uint64_t start_ns, end_ns;
        size_t text; /* name, then operator, in `texts` */
        size_t name_len, op_len;
        const char *kernel;
    } * list;
    size_t count, room;
    char *texts;
    size_t text_size, text_room;
    bool failed; /* no memory */
} steps;

/* Room for `more` behind `count` elements. */
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

/* Puts what was kept at the end of a list. */
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

/* The thread that runs a model asks now and then whether to stop: Python handles signals in its main thread, and a
 * caller may have a function for it. */
typedef struct watch {
    PyThreadState *saved;
    struct timespec next;
    unsigned long thread;
    PyObject *stop; /* borrowed, or NULL */
    steps *steps;   /* NULL: nobody wants them */
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

/* A function that fails ends the run, too, and is what it fails with. */
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
        return false; /* a thread of the session */
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

/* One run: inputs by port, which the run holds until its end. */
typedef struct call {
    session *s;
    py_ctx *ctx;
    PyObject **objects;   /* per input, borrowed; NULL: omitted */
    onx_value **made;     /* per input: a value for this run, or NULL */
    const onx_value **in; /* per input */
    onx_value **out;      /* per output */
    PyObject *few_objects[FEW];
    onx_value *few_made[FEW], *few_out[FEW];
    const onx_value *few_in[FEW];
    double timeout;
    unsigned long long iterations;
    PyObject *stop, *profile; /* borrowed, or NULL */
} call;

static bool call_open(call *c, session *s)
{
    memset(c, 0, sizeof *c);
    c->s = s;
    if (!s->session) {
        PyErr_SetString(PyExc_ValueError, "this session was never made");
        return false;
    }
    if (s->process != forks && s->threads != 1) {
        PyErr_SetString(PyExc_RuntimeError, "the threads of a session do not come along when a process forks: make the "
                                            "session in the child, or with threads=1");
        return false;
    }
    c->objects = c->few_objects;
    c->made = c->few_made;
    c->in = c->few_in;
    c->out = c->few_out;
    if (s->input_count > FEW) {
        c->objects = PyMem_Calloc(s->input_count, sizeof *c->objects);
        c->made = PyMem_Calloc(s->input_count, sizeof *c->made);
        c->in = PyMem_Calloc(s->input_count, sizeof *c->in);
    }
    if (s->output_count > FEW)
        c->out = PyMem_Calloc(s->output_count, sizeof *c->out);
    if (!c->objects || !c->made || !c->in || !c->out)
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
    if (c->objects != c->few_objects)
        PyMem_Free(c->objects);
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

/* Inputs from a dict by their names. */
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
        c->objects[i] = object;
    }
    if (found == PyDict_Size(feeds))
        return true;
    PyObject *key, *item;
    Py_ssize_t at = 0;
    uint32_t index;
    while (PyDict_Next(feeds, &at, &key, &item))
        if (!find_port(key, s->inputs, s->input_count, &index))
            return PyErr_Occurred() ? false : unknown("input", key, s->inputs, s->input_count);
    return true;
}

/* Values for the inputs. The objects are held meanwhile: what conversion calls may do anything to the dict that they
 * come from. */
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

static void hold(call *c, bool keep)
{
    for (uint32_t i = 0; i < c->s->input_count; i++) {
        if (keep)
            Py_XINCREF(c->objects[i]);
        else
            Py_XDECREF(c->objects[i]);
    }
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
    w.saved = PyEval_SaveThread();
    status = onx_session_run_with(s->session, c->ctx->cx, c->in, c->out, &options);
    PyEval_RestoreThread(w.saved);
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
    return as_values ? py_value_wrap(c->ctx, value) : py_value_result(c->ctx, value);
}

static bool perform(call *c)
{
    hold(c, true);
    const bool done = take_inputs(c) && run(c);
    hold(c, false);
    return done;
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

static PyObject *session_call(PyObject *self, PyObject *args, PyObject *kwargs)
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
        c.objects[i] = PyTuple_GetItem(args, i);
    if (good && (!kwargs || take_feeds(&c, kwargs)) && perform(&c))
        result = all_outputs(&c);
    call_close(&c);
    return result;
}

/* Which outputs: None, or a list of names. */
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

static PyObject *session_run(PyObject *self, PyObject *args, PyObject *kwargs)
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
    /* Arrays that outputs are written into. */
    PyObject *key, *array;
    Py_ssize_t at = 0;
    while (good && into != Py_None && PyDict_Next(into, &at, &key, &array)) {
        uint32_t index = 0;
        good = find_port(key, c.s->outputs, c.s->output_count, &index) ||
               (!PyErr_Occurred() && unknown("output", key, c.s->outputs, c.s->output_count));
        if (good)
            good = (c.out[index] = py_value_over(c.ctx, array)) != NULL;
    }
    if (good && perform(&c)) {
        list = PyList_New(count);
        for (Py_ssize_t i = 0; list && i < count; i++) {
            PyObject *result = NULL;
            if (into != Py_None)
                result = PyDict_GetItemWithError(into, c.s->outputs[wanted[i]].name);
            Py_XINCREF(result);
            for (Py_ssize_t j = 0; !result && j < i; j++) /* asked for twice */
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

/* ---- what there is to know ---- */

static PyObject *describe(const port *ports, uint32_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count), *make = py_helper("port");
    for (uint32_t i = 0; make && list && i < count; i++) {
        const onx_type *type = ports[i].type;
        PyObject *text = py_type_text(type), *shape = NULL;
        int32_t dtype = ONX_UNDEFINED;
        if (type && ONX_HAS(type, type, tensor_type)) {
            dtype = type->tensor_type->elem_type;
            shape = py_shape(ONX_HAS(type_tensor, type->tensor_type, shape) ? type->tensor_type->shape : NULL);
        } else {
            Py_INCREF(shape = Py_None);
        }
        PyObject *one = text && shape ? PyObject_CallFunction(make, "OOOzi", ports[i].name, text, shape,
                                                              onx_dtype_name(dtype), (int)ports[i].required)
                                      : NULL;
        Py_XDECREF(text);
        Py_XDECREF(shape);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) != 0)
            Py_CLEAR(list);
    }
    if (!make)
        Py_CLEAR(list);
    return list;
}

static PyObject *session_ports(PyObject *self, void *which)
{
    session *s = (session *)self;
    if (!s->described) {
        PyObject *inputs = describe(s->inputs, s->input_count), *outputs = describe(s->outputs, s->output_count);
        s->described = inputs && outputs ? PyTuple_Pack(2, inputs, outputs) : NULL;
        Py_XDECREF(inputs);
        Py_XDECREF(outputs);
        if (!s->described)
            return NULL;
    }
    PyObject *list = PyTuple_GetItem(s->described, which ? 1 : 0);
    return list ? PySequence_List(list) : NULL; /* a list of the caller's own */
}

static PyObject *after_fork(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    forks++;
    main_thread = PyThread_get_thread_ident();
    Py_RETURN_NONE;
}

static PyObject *set_main_thread(PyObject *self, PyObject *ident)
{
    (void)self;
    main_thread = PyLong_AsUnsignedLong(ident);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

bool py_add_session(PyObject *module)
{
    static PyMethodDef functions[] = { { "_after_fork", after_fork, METH_NOARGS, NULL },
                                       { "_set_main_thread", set_main_thread, METH_O, NULL },
                                       { NULL, NULL, 0, NULL } };
    static PyMethodDef methods[] = {
        { "run", PY_METHOD(session_run), METH_VARARGS | METH_KEYWORDS,
          "run(output_names, input_feed, run_options=None, *, out={}, timeout=0, iterations=0, values=False, stop=None, "
          "profile=None)\n\n"
          "Runs the model with inputs by their names and returns a list of the outputs that are named (None: all). `out` "
          "has arrays that outputs are written into; `timeout` is in seconds; with `values` the list is one of Value. "
          "`stop` is a function that is asked often during the run, and ends it by a true answer; `profile` is a list that "
          "gets a Step for each piece of work." },
        { NULL, NULL, 0, NULL },
    };
    static char second[] = "outputs";
    static PyGetSetDef members[] = {
        { "inputs", session_ports, NULL, "The inputs: a list of Port, with name, type, shape, dtype and required.",
          NULL },
        { "outputs", session_ports, NULL, "The outputs, likewise.", second },
        { NULL, NULL, NULL, NULL, NULL },
    };
    static PyType_Slot slots[] = {
        { Py_tp_doc,
          "Session(model, *, threads=0, optimize=True, plain=False, strict=False, precision=None, isa=None, memory=0, "
          "timeout=0, operators=None, base_dir=None, links=False, cache=None, lean_memory=False, "
          "measure=False)\n\n"
          "A model that is planned once and runs as often as wanted, by any number of threads at the same time.\n\n"
          "`model` is a path, the bytes of a file, or a model in memory. session(x, y=...) runs it with inputs by place "
          "or name and gives the output, or a tuple of several. Arrays are shared, not copied. While it runs other "
          "threads of Python go on, and an interrupt (Ctrl-C) ends the run." },
        { Py_tp_new, PY_SLOT(session_new) },
        { Py_tp_init, PY_SLOT(session_init) },
        { Py_tp_dealloc, PY_SLOT(session_dealloc) },
        { Py_tp_traverse, PY_SLOT(session_traverse) },
        { Py_tp_call, PY_SLOT(session_call) },
        { Py_tp_methods, methods },
        { Py_tp_getset, members },
        { 0, NULL },
    };
    static PyType_Spec spec = { "onx._onx.Session", (int)sizeof(session), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots };
    session_type = py_add_type(module, &spec, NULL);
    main_thread = PyThread_get_thread_ident();
    return session_type && PyModule_AddFunctions(module, functions) == 0;
}
