/* session.c - sessions: models that are planned once and run any number of times. */
#include "session.h"

static PyTypeObject *session_type;
static unsigned long forks;
static unsigned long main_thread; /* the thread in which Python handles signals */

bool py_on_main_thread(void)
{
    return PyThread_get_thread_ident() == main_thread;
}

bool session_is_of_parent(const session *s)
{
    return s->process != forks;
}

/* ---- creating a session ---- */

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
    /* The threads of a session end with it. A child process after a fork has no threads to wait for, and the memory is
     * not freed there. */
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
    static char *names[] = { "model", "threads",     "optimize", "plain",     "strict",   "precision",
                             "isa",   "memory",      "timeout",  "operators", "base_dir", "links",
                             "cache", "lean_memory", "measure",  "ml_dtypes", NULL };
    static const char *const isas[] = { "best", "base", "base", "v3", "v4", "vnni", "bf16", "amx", NULL };
    static const char *const precisions[] = { "full", "bf16", "f16", "int8", NULL };
    session *s = (session *)self;
    PyObject *model, *operators = Py_None, *base_dir = Py_None, *cache = Py_None;
    PyObject *keep = NULL, *keep_cache = NULL;
    int threads = 0, optimize = 1, plain = 0, strict = 0, links = 0, lean = 0, measure = 0, exact = 0;
    const char *precision = NULL, *isa = NULL;
    unsigned long long memory = 0;
    double timeout = 0;
    onx_session_options options = { .struct_size = sizeof options };
    onx_load_options load = { .struct_size = sizeof load };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$ipppzzKdOOpOppp:Session", names, &model, &threads, &optimize,
                                     &plain, &strict, &precision, &isa, &memory, &timeout, &operators, &base_dir,
                                     &links, &cache, &lean, &measure, &exact))
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
    s->exact = exact != 0;
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
    py_operators_begin(operators);
    const onx_status status = s->ctx ? open_model(s, model, &options, &load) : ONX_E_MEMORY;
    py_operators_end(operators);
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

/* ---- properties ---- */

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
    return list ? PySequence_List(list) : NULL; /* a list that the caller owns */
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
          "Runs the model with inputs by name and returns a list of the requested outputs (None: all). `out` "
          "has arrays that outputs are written into; `timeout` is in seconds; with `values` the list contains Value objects. "
          "`stop` is a function that is called every 20 ms during the run, and ends it by returning true; a Step for each "
          "step of the run is appended to the list `profile`." },
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
          "measure=False, ml_dtypes=False)\n\n"
          "A model that is planned once and can run any number of times, on any number of threads at the same time.\n\n"
          "`model` is a path, the bytes of a file, or a model in memory. session(x, y=...) runs it with inputs by position "
          "or name and returns the output, or a tuple of several. Arrays are shared, not copied. While it runs, other "
          "Python threads continue, and an interrupt (Ctrl-C) ends the run. With ml_dtypes, outputs of types that NumPy "
          "lacks are arrays of the package ml_dtypes, instead of wider ones: of float32, int8 and uint8." },
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
