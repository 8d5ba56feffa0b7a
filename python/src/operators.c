/* operators.c - custom operators implemented by Python functions. */
#include "py.h"

#include <onx/kernel.h>
#include <onx/plugin.h>

static PyTypeObject *operators_type;

/* A document of operators, which lives as long as the registry that uses it. */
typedef struct document {
    struct document *next;
    onx_doc *doc;
    PyObject *keeps; /* objects that own memory it refers to */
} document;

/* One operator. It lives as long as the registry that has it. */
typedef struct entry {
    struct entry *next;
    PyObject *domain, *name; /* bytes objects that the rows refer to */
    PyObject *function;
    PyObject *failure; /* exception of the last failure, or NULL */
    onx_kernel kernels[2];
} entry;

typedef struct operators {
    PyObject_HEAD py_ctx *ctx;
    onx_registry *registry;
    size_t users;          /* number of users that work with it without the GIL */
    struct document *docs; /* documents of the registry */
    entry *entries;
} operators;

/* ---- running ---- */

/* Moves the current exception to the operator; whoever started the run raises it. */
static onx_status failed(onx_work *work, entry *e)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    PyObject *text = value ? PyObject_Str(value) : NULL, *keep = NULL;
    onx_str words = { "", 0 };
    if (!text || !py_bytes_of(text, &keep, &words))
        PyErr_Clear();
    Py_XDECREF(e->failure);
    e->failure = value;
    Py_XINCREF(value);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    const onx_status status =
        onx_work_fail(work, ONX_E_INVALID, "the function of %s failed: %.*s", e->kernels[0].op, ONX_ARG(words));
    Py_XDECREF(keep);
    return status;
}

/* The inputs as separate arrays, which the function may keep. */
static PyObject *arguments(py_ctx *ctx, const onx_work *work)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)work->prepared->input_count);
    for (uint32_t i = 0; tuple && i < work->prepared->input_count; i++) {
        onx_value *copy = NULL;
        PyObject *argument = NULL;
        if (!work->inputs[i]) {
            Py_INCREF(argument = Py_None);
        } else if (onx_value_new(ctx->cx, &copy) != ONX_OK || onx_value_assign(copy, work->inputs[i]) != ONX_OK) {
            onx_value_free(copy);
            PyErr_NoMemory();
        } else {
            argument = py_value_result(ctx, copy, false);
        }
        if (!argument || PyTuple_SetItem(tuple, (Py_ssize_t)i, argument) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Assigns a result, or a tuple of results, to the outputs. */
static bool results(py_ctx *ctx, onx_work *work, PyObject *result)
{
    const bool several = PyTuple_Check(result);
    const Py_ssize_t count = several ? PyTuple_Size(result) : 1;
    for (uint32_t i = 0; i < work->prepared->output_count; i++) {
        if (!work->outputs[i])
            continue;
        if ((Py_ssize_t)i >= count) {
            PyErr_Format(PyExc_TypeError, "the node has %u outputs, and the function gave %zd",
                         work->prepared->output_count, count);
            return false;
        }
        const onx_value *borrowed;
        onx_value *value = py_value_of(ctx, several ? PyTuple_GetItem(result, (Py_ssize_t)i) : result, NULL, &borrowed);
        if (!value && !borrowed)
            return false;
        const onx_status status = onx_value_assign(work->outputs[i], value ? value : borrowed);
        onx_value_free(value);
        if (status != ONX_OK) {
            PyErr_Format(PyExc_RuntimeError, "output %u cannot be stored: %s", i, onx_status_text(status));
            return false;
        }
    }
    return true;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    entry *e = (entry *)(uintptr_t)work->prepared->kernel->body;
    onx_status status = ONX_OK;
    (void)first;
    (void)last;
    PyGILState_STATE state = PyGILState_Ensure();
    py_ctx *ctx = py_ctx_take();
    PyObject *args = ctx ? arguments(ctx, work) : NULL, *kwargs = (PyObject *)(uintptr_t)work->params;
    PyObject *result = args ? PyObject_Call(e->function, args, kwargs) : NULL;
    if (!result || !results(ctx, work, result))
        status = failed(work, e);
    Py_XDECREF(args);
    Py_XDECREF(result);
    if (ctx)
        py_ctx_done(ctx);
    PyGILState_Release(state);
    return status;
}

/* ---- preparing: the attributes of a node by name ---- */

static PyObject *attribute_value(const onx_attribute *a)
{
    uint32_t count = 0;
    const void *at;
    if ((at = onx_attribute_value(a, ONX_SLOT_I, &count)))
        return PyLong_FromLongLong(*(const int64_t *)at);
    if ((at = onx_attribute_value(a, ONX_SLOT_F, &count)))
        return PyFloat_FromDouble((double)*(const float *)at);
    if ((at = onx_attribute_value(a, ONX_SLOT_S, &count)))
        return py_text(onx_view(*(const onx_bytes *)at));
    const onx_attribute_type type = onx_attribute_type_of(a);
    const uint32_t slot = type == ONX_ATTR_INTS      ? ONX_SLOT_INTS
                          : type == ONX_ATTR_FLOATS  ? ONX_SLOT_FLOATS
                          : type == ONX_ATTR_STRINGS ? ONX_SLOT_STRINGS
                                                     : ONX_SLOT_NONE;
    if (slot == ONX_SLOT_NONE) {
        PyErr_Format(PyExc_TypeError,
                     "functions of Python take attributes that are numbers, texts, and lists of such, "
                     "not one of type %s",
                     onx_attribute_type_name((int32_t)type) ? onx_attribute_type_name((int32_t)type) : "none");
        return NULL;
    }
    at = onx_attribute_value(a, slot, &count);
    PyObject *list = PyList_New(at ? (Py_ssize_t)count : 0);
    for (uint32_t i = 0; list && at && i < count; i++) {
        PyObject *one = slot == ONX_SLOT_INTS     ? PyLong_FromLongLong(((const int64_t *)at)[i])
                        : slot == ONX_SLOT_FLOATS ? PyFloat_FromDouble((double)((const float *)at)[i])
                                                  : py_text(onx_view(((const onx_bytes *)at)[i]));
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static onx_status prepare(onx_prepare *p)
{
    onx_status status = ONX_OK;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *kwargs = PyDict_New();
    for (uint32_t i = 0; kwargs && i < p->node->attribute_count; i++) {
        PyObject *name = py_text(onx_view(p->node->attribute[i]->name));
        PyObject *value = name ? attribute_value(p->node->attribute[i]) : NULL;
        if (!value || PyDict_SetItem(kwargs, name, value) != 0)
            Py_CLEAR(kwargs);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    if (!kwargs) {
        PyErr_Clear();
        status = onx_prepare_fail(p, ONX_E_UNSUPPORTED,
                                  "functions of Python take attributes that are numbers, texts, and lists of such");
    }
    p->params = kwargs;
    PyGILState_Release(state);
    return status;
}

static void release(void *params)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF((PyObject *)params);
    PyGILState_Release(state);
}

/* ---- the objects ---- */

static PyObject *operators_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Operators", names))
        return NULL;
    operators *o = py_new(type);
    if (!o)
        return NULL;
    o->ctx = py_ctx_take();
    if (!o->ctx || onx_registry_new(o->ctx->cx, &o->registry) != ONX_OK) {
        Py_DECREF(o);
        return PyErr_NoMemory();
    }
    return (PyObject *)o;
}

static int operators_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    for (entry *e = ((operators *)self)->entries; e; e = e->next) {
        Py_VISIT(e->function);
        Py_VISIT(e->failure);
    }
    return 0;
}

/* Functions are not cleared: sessions may still call them. Clearing the exceptions is enough to break cycles. */
static int operators_clear(PyObject *self)
{
    for (entry *e = ((operators *)self)->entries; e; e = e->next)
        Py_CLEAR(e->failure);
    return 0;
}

static void operators_dealloc(PyObject *self)
{
    operators *o = (operators *)self;
    PyObject_GC_UnTrack(self);
    onx_registry_free(o->registry);
    for (document *d; (d = o->docs) != NULL;) {
        o->docs = d->next;
        onx_doc_free(d->doc);
        Py_XDECREF(d->keeps);
        PyMem_Free(d);
    }
    if (o->ctx)
        py_ctx_done(o->ctx);
    while (o->entries) {
        entry *e = o->entries;
        o->entries = e->next;
        Py_XDECREF(e->domain);
        Py_XDECREF(e->name);
        Py_XDECREF(e->function);
        Py_XDECREF(e->failure);
        PyMem_Free(e);
    }
    py_delete(self);
}

static bool may_change(const operators *o)
{
    if (!o->users)
        return true;
    PyErr_SetString(PyExc_RuntimeError,
                    "a session or another thread is at work with these operators, which nobody may change meanwhile");
    return false;
}

static PyObject *operators_add(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "domain", "name", "function", "since", NULL };
    operators *o = (operators *)self;
    const char *domain, *name;
    PyObject *function;
    int since = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ssO|i:add", names, &domain, &name, &function, &since) ||
        !may_change(o))
        return NULL;
    if (!PyCallable_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "an operator is made of a function");
        return NULL;
    }
    entry *e = PyMem_Calloc(1, sizeof *e);
    if (!e)
        return PyErr_NoMemory();
    e->next = o->entries;
    o->entries = e;
    Py_INCREF(e->function = function);
    e->domain = PyBytes_FromString(domain);
    e->name = PyBytes_FromString(name);
    if (!e->domain || !e->name)
        return NULL;
    e->kernels[0] = (onx_kernel){ .op = PyBytes_AsString(e->name),
                                  .domain = PyBytes_AsString(e->domain),
                                  .since = since,
                                  .flags = ONX_KERNEL_SIZES_OUTPUT | ONX_KERNEL_RANDOM,
                                  .variant = "python",
                                  .body = e,
                                  .prepare = prepare,
                                  .run = run,
                                  .release = release };
    const onx_op_def def = { .struct_size = sizeof def,
                             .domain = e->kernels[0].domain,
                             .name = e->kernels[0].op,
                             .since = since,
                             .flags = ONX_OP_OPEN,
                             .summary = "a function of Python",
                             .kernel = e->kernels };
    const onx_status status = onx_op_register(o->registry, &def);
    if (status != ONX_OK)
        return py_fail(o->ctx->cx, status);
    onx_diag_clear(o->ctx->cx);
    Py_INCREF(function);
    return function;
}

static PyObject *operators_load(PyObject *self, PyObject *path)
{
    operators *o = (operators *)self;
    PyObject *keep;
    const char *text = py_path_of(path, &keep);
    if (!text)
        return NULL;
    const onx_status status = may_change(o) ? onx_plugin_load(o->registry, text) : ONX_OK;
    Py_DECREF(keep);
    if (status != ONX_OK)
        return py_fail(o->ctx->cx, status);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *operators_document(PyObject *self, PyObject *object)
{
    operators *o = (operators *)self;
    const py_message *m = py_message_of(object, ONX_KIND_OPERATOR_SET);
    document *d = m && may_change(o) ? PyMem_Calloc(1, sizeof *d) : NULL;
    if (!d)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    d->doc = py_message_share(o->ctx, m, &d->keeps);
    Py_XINCREF(d->keeps);
    d->next = o->docs;
    o->docs = d;
    const onx_check_options options = { .struct_size = sizeof options, .flags = ONX_CHECK_STRUCTURE };
    onx_status status = d->doc ? onx_check(o->ctx->cx, d->doc, &options, NULL) : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = onx_registry_load(o->registry, d->doc);
    if (status != ONX_OK)
        return py_fail(o->ctx->cx, status);
    onx_diag_clear(o->ctx->cx);
    Py_RETURN_NONE;
}

void py_operators_begin(PyObject *object)
{
    if (!object || object == Py_None)
        return;
    Py_INCREF(object);
    ((operators *)object)->users++;
}

void py_operators_end(PyObject *object)
{
    if (!object || object == Py_None)
        return;
    ((operators *)object)->users--;
    Py_DECREF(object);
}

const onx_registry *py_operators_registry(PyObject *object)
{
    if (PyObject_TypeCheck(object, operators_type))
        return ((operators *)object)->registry;
    PyErr_Format(PyExc_TypeError, "Operators are needed, not %R", (PyObject *)Py_TYPE(object));
    return NULL;
}

void py_operators_cause(PyObject *object)
{
    PyObject *cause = NULL, *type, *value, *trace;
    for (entry *e = ((operators *)object)->entries; e; e = e->next)
        if (e->failure) {
            Py_XDECREF(cause);
            cause = e->failure;
            e->failure = NULL;
        }
    if (!cause)
        return;
    if (!PyErr_GivenExceptionMatches(cause, PyExc_Exception)) { /* KeyboardInterrupt and the like are not ours */
        PyErr_SetObject((PyObject *)Py_TYPE(cause), cause);
        Py_DECREF(cause);
        return;
    }
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyException_SetCause(value, cause); /* takes over the reference */
    PyErr_Restore(type, value, trace);
}

bool py_add_operators(PyObject *module)
{
    static PyMethodDef methods[] = {
        { "add", PY_METHOD(operators_add), METH_VARARGS | METH_KEYWORDS,
          "add(domain, name, function, since=1): nodes of that operator call the function, with their inputs as arrays "
          "(None: omitted) and their attributes by name. It returns an array, or a tuple of them." },
        { "load", operators_load, METH_O, "load(path): the operators of a shared library (docs/custom_operators.md)." },
        { "document", operators_document, METH_O,
          "document(operator_set): the operators and functions that an OperatorSetProto describes." },
        { NULL, NULL, 0, NULL },
    };
    static PyType_Slot slots[] = {
        { Py_tp_doc,
          "Operators of one's own, for the argument `operators` of Session and of what looks at models or changes them." },
        { Py_tp_new, PY_SLOT(operators_new) },
        { Py_tp_dealloc, PY_SLOT(operators_dealloc) },
        { Py_tp_traverse, PY_SLOT(operators_traverse) },
        { Py_tp_clear, PY_SLOT(operators_clear) },
        { Py_tp_methods, methods },
        { 0, NULL },
    };
    static PyType_Spec spec = { "onx._onx.Operators", (int)sizeof(operators), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots };
    operators_type = py_add_type(module, &spec, NULL);
    return operators_type != NULL;
}
