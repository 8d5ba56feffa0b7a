/* transform.c - checking and transforming models: each function works on a copy that shares the weights. */
#include "py.h"

/* The state of one call. */
typedef struct job {
    py_ctx *ctx;
    onx_doc *doc;        /* a copy of the model */
    PyObject *keeps;     /* objects that own memory it refers to; borrowed */
    onx_arena *arena;    /* for names */
    PyObject *changes;   /* a list to which changes are appended, or None */
    PyObject *operators; /* Operators known in addition to the built-in ones, or None */
} job;

/* Removes the operators from the context; after that they may change again. */
static void job_forget(const job *j)
{
    onx_ctx_set_registry(j->ctx->cx, NULL);
    py_operators_end(j->operators);
}

/* `operators` must be set already. */
static bool job_open(job *j, PyObject *object, PyObject *changes, onx_kind kind)
{
    const py_message *m = py_message_of(object, kind);
    const onx_registry *registry = NULL;
    *j = (job){ .changes = changes, .operators = j->operators };
    if (m && j->operators != Py_None && !(registry = py_operators_registry(j->operators)))
        return false;
    if (m && changes != Py_None && !PyList_Check(changes)) {
        PyErr_SetString(PyExc_TypeError, "changes are put into a list");
        return false;
    }
    if (!m || !(j->ctx = py_ctx_take()))
        return false;
    py_operators_begin(j->operators);
    onx_ctx_set_registry(j->ctx->cx, registry);
    if (onx_arena_new(j->ctx->cx, &j->arena) == ONX_OK) {
        j->doc = py_message_share(j->ctx, m, &j->keeps);
        if (j->doc)
            return true;
    } else {
        PyErr_NoMemory();
    }
    job_forget(j);
    onx_arena_free(j->arena);
    py_ctx_done(j->ctx);
    return false;
}

/* Ends a call without a result, or before the document of the result is made into an object. */
static PyObject *job_drop(job *j, onx_status status)
{
    if (status != ONX_OK)
        py_fail(j->ctx->cx, status);
    job_forget(j);
    onx_arena_free(j->arena);
    onx_doc_free(j->doc);
    py_ctx_done(j->ctx);
    return NULL;
}

static PyObject *job_done(job *j, onx_status status)
{
    if (status != ONX_OK || PyErr_Occurred() || !py_warn(j->ctx->cx))
        return job_drop(j, status);
    job_forget(j);
    onx_arena_free(j->arena);
    return py_doc_root(py_doc_wrap(j->ctx, j->doc, j->keeps));
}

static void changed(void *user, const onx_change *change)
{
    job *j = user;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *rule = py_text(change->rule), *path = py_text(change->path), *text = py_text(change->text), *make,
             *one = NULL;
    if (rule && path && text && !PyErr_Occurred() && (make = py_helper("change")))
        one = PyObject_CallFunction(make, "sOOO", change->pass, rule, path, text);
    if (one)
        PyList_Append(j->changes, one);
    Py_XDECREF(rule);
    Py_XDECREF(path);
    Py_XDECREF(text);
    Py_XDECREF(one);
    PyGILState_Release(state);
}

#define TELL(j) .changed = (j).changes == Py_None ? NULL : changed, .user = &(j)
/* Executes the call without the GIL. */
#define RUN(call) PY_WORK(j.ctx, status = (call))

/* A string that lives as long as the call. */
static bool name_of(job *j, PyObject *object, onx_str *out)
{
    PyObject *keep;
    onx_str text;
    onx_bytes kept;
    if (!py_bytes_of(object, &keep, &text))
        return false;
    const bool good = onx_arena_keep(j->arena, text, &kept) == ONX_OK;
    Py_XDECREF(keep);
    if (!good)
        PyErr_NoMemory();
    else
        *out = onx_view(kept);
    return good;
}

static void *room(job *j, Py_ssize_t count, size_t size)
{
    void *made = count >= 0 && (size_t)count < SIZE_MAX / 2 / size
                     ? onx_arena_alloc(j->arena, ((size_t)count + 1) * size)
                     : NULL;
    if (!made && !PyErr_Occurred())
        PyErr_NoMemory();
    return made;
}

/* The package passes Python lists, so their sizes do not change meanwhile. */
static bool names_of(job *j, PyObject *list, const onx_str **out, uint32_t *count)
{
    const Py_ssize_t n = PyList_Size(list);
    onx_str *names = n >= 0 ? room(j, n, sizeof *names) : NULL;
    for (Py_ssize_t i = 0; names && i < n; i++)
        if (!name_of(j, PyList_GetItem(list, i), &names[i]))
            return false;
    *out = names;
    *count = (uint32_t)n;
    return names != NULL;
}

static PyObject *at(PyObject *list, Py_ssize_t i, Py_ssize_t k)
{
    return PyTuple_GetItem(PyList_GetItem(list, i), k);
}

static bool fixed_of(job *j, PyObject *pairs, const onx_infer_fixed **out, uint32_t *count)
{
    const Py_ssize_t n = PyList_Size(pairs);
    onx_infer_fixed *fixed = n >= 0 ? room(j, n, sizeof *fixed) : NULL;
    for (Py_ssize_t i = 0; fixed && i < n; i++) {
        onx_str name;
        if (!name_of(j, at(pairs, i, 0), &name))
            return false;
        char *ended = room(j, (Py_ssize_t)name.len, 1);
        if (!ended)
            return false;
        memcpy(ended, name.ptr, name.len);
        fixed[i].name = ended;
        fixed[i].size = PyLong_AsLongLong(at(pairs, i, 1));
        if (PyErr_Occurred())
            return false;
    }
    *out = fixed;
    *count = (uint32_t)n;
    return fixed != NULL;
}

/* ---- checks ---- */

static PyObject *check(PyObject *self, PyObject *args)
{
    PyObject *object, *only, *ignore;
    unsigned flags, most;
    long long ir_version;
    job j;
    const onx_str *names[2];
    uint32_t counts[2];
    onx_status status = ONX_E_MISUSE;
    (void)self;
    if (!PyArg_ParseTuple(args, "OIILO!O!O", &object, &flags, &most, &ir_version, &PyList_Type, &only, &PyList_Type,
                          &ignore, &j.operators) ||
        !job_open(&j, object, Py_None, ONX_KIND_NONE))
        return NULL;
    const char **words[2] = { NULL, NULL };
    bool good = names_of(&j, only, &names[0], &counts[0]) && names_of(&j, ignore, &names[1], &counts[1]);
    for (int k = 0; good && k < 2; k++) {
        good = (words[k] = room(&j, counts[k], sizeof(char *))) != NULL;
        for (uint32_t i = 0; good && i < counts[k]; i++) {
            char *ended = room(&j, (Py_ssize_t)names[k][i].len, 1);
            good = ended != NULL;
            if (good)
                words[k][i] = memcpy(ended, names[k][i].ptr, names[k][i].len);
        }
    }
    PyObject *findings = NULL;
    if (good) {
        const onx_check_options options = { .struct_size = sizeof options,
                                            .flags = flags,
                                            .max_errors = most,
                                            .ir_version = ir_version,
                                            .only = counts[0] ? words[0] : NULL,
                                            .only_count = counts[0],
                                            .ignore = counts[1] ? words[1] : NULL,
                                            .ignore_count = counts[1] };
        RUN(onx_check(j.ctx->cx, j.doc, &options, NULL));
        if (status == ONX_OK || status == ONX_E_INVALID)
            findings = py_findings(j.ctx->cx);
        else
            py_fail(j.ctx->cx, status);
    }
    job_drop(&j, ONX_OK);
    return findings;
}

static PyObject *check_update(PyObject *self, PyObject *args)
{
    PyObject *a, *b, *findings = NULL;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &a, &b, &j.operators) || !job_open(&j, a, Py_None, ONX_KIND_MODEL))
        return NULL;
    PyObject *keeps;
    const py_message *newer = py_message_of(b, ONX_KIND_MODEL);
    onx_doc *doc = newer ? py_message_share(j.ctx, newer, &keeps) : NULL;
    if (doc) {
        const onx_status status = onx_check_update(j.ctx->cx, j.doc, doc);
        findings = status == ONX_OK ? py_findings(j.ctx->cx) : py_fail(j.ctx->cx, status);
    }
    onx_doc_free(doc);
    job_drop(&j, ONX_OK);
    return findings;
}

/* ---- transformations ---- */

static PyObject *infer(PyObject *self, PyObject *args)
{
    PyObject *object, *fixed;
    int strict, check_type, no_data, plain;
    onx_infer_options options = { .struct_size = sizeof options };
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OppppO!O", &object, &strict, &check_type, &no_data, &plain, &PyList_Type, &fixed,
                          &j.operators) ||
        !job_open(&j, object, Py_None, ONX_KIND_MODEL))
        return NULL;
    options.strict = strict != 0;
    options.check_type = check_type != 0;
    options.no_data_prop = no_data != 0;
    options.plain_names = plain != 0;
    if (fixed_of(&j, fixed, &options.fixed, &options.fixed_count))
        RUN(onx_infer_model(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static bool shapes_of(job *j, PyObject *pairs, onx_simplify_options *options)
{
    const Py_ssize_t n = PyList_Size(pairs);
    onx_input_shape *shapes = room(j, n, sizeof *shapes);
    for (Py_ssize_t i = 0; shapes && i < n; i++) {
        PyObject *dims = at(pairs, i, 1);
        const Py_ssize_t rank = PyList_Size(dims);
        int64_t *sizes = rank >= 0 ? room(j, rank, sizeof *sizes) : NULL;
        if (!sizes || !name_of(j, at(pairs, i, 0), &shapes[i].name))
            return false;
        for (Py_ssize_t k = 0; k < rank; k++)
            sizes[k] = PyLong_AsLongLong(PyList_GetItem(dims, k));
        if (PyErr_Occurred())
            return false;
        shapes[i].dims = sizes;
        shapes[i].rank = (uint32_t)rank;
    }
    options->shape = shapes;
    options->shape_count = (uint32_t)n;
    return shapes != NULL;
}

static PyObject *simplify(PyObject *self, PyObject *args)
{
    PyObject *object, *passes, *fixed, *shapes, *keep, *changes;
    int exact, freeze;
    unsigned long long fold;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OpO!O!O!O!KpOO", &object, &exact, &PyList_Type, &passes, &PyList_Type, &fixed,
                          &PyList_Type, &shapes, &PyList_Type, &keep, &fold, &freeze, &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    onx_simplify_options options = {
        .struct_size = sizeof options, .exact = exact != 0, .fold_limit = fold, .freeze_defaults = freeze != 0, TELL(j)
    };
    if (names_of(&j, passes, &options.pass, &options.pass_count) &&
        fixed_of(&j, fixed, &options.fixed, &options.fixed_count) && shapes_of(&j, shapes, &options) &&
        names_of(&j, keep, &options.keep, &options.keep_count))
        RUN(onx_simplify(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *retarget(PyObject *self, PyObject *args)
{
    PyObject *object, *opsets, *changes;
    int best_effort, dry_run;
    long long ir_version;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!LppOO", &object, &PyList_Type, &opsets, &ir_version, &best_effort, &dry_run,
                          &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    const Py_ssize_t n = PyList_Size(opsets);
    onx_opset_version *versions = room(&j, n, sizeof *versions);
    bool good = versions != NULL;
    for (Py_ssize_t i = 0; good && i < n; i++) {
        versions[i].version = PyLong_AsLongLong(at(opsets, i, 1));
        good = name_of(&j, at(opsets, i, 0), &versions[i].domain) && !PyErr_Occurred();
    }
    const onx_retarget_options options = { .struct_size = sizeof options,
                                           .dry_run = dry_run != 0,
                                           .best_effort = best_effort != 0,
                                           TELL(j),
                                           .opset = versions,
                                           .opset_count = (uint32_t)n,
                                           .ir_version = ir_version };
    if (good)
        RUN(onx_retarget(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *inline_functions(PyObject *self, PyObject *args)
{
    PyObject *object, *functions, *domain, *changes;
    int exclude, schema;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!ppOOO", &object, &PyList_Type, &functions, &exclude, &schema, &domain, &changes,
                          &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    const Py_ssize_t n = PyList_Size(functions);
    onx_function_name *names = room(&j, n, sizeof *names);
    onx_inline_options options = {
        .struct_size = sizeof options, .exclude = exclude != 0, .schema = schema != 0, TELL(j)
    };
    bool good = names && name_of(&j, domain, &options.domain);
    for (Py_ssize_t i = 0; good && i < n; i++)
        good = name_of(&j, at(functions, i, 0), &names[i].domain) && name_of(&j, at(functions, i, 1), &names[i].name);
    options.function = names;
    options.function_count = (uint32_t)n;
    if (good)
        RUN(onx_inline(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *outline(PyObject *self, PyObject *args)
{
    PyObject *object, *domain, *changes;
    unsigned nodes, calls;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OIIOOO", &object, &nodes, &calls, &domain, &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    onx_outline_options options = { .struct_size = sizeof options, .min_nodes = nodes, .min_calls = calls, TELL(j) };
    if (name_of(&j, domain, &options.domain))
        RUN(onx_outline(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *sort(PyObject *self, PyObject *args)
{
    PyObject *object;
    onx_status status;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &object, &j.operators) || !job_open(&j, object, Py_None, ONX_KIND_NONE))
        return NULL;
    RUN(onx_doc_sort(j.doc, NULL));
    return job_done(&j, status);
}

static PyObject *compress(PyObject *self, PyObject *args)
{
    PyObject *object, *changes;
    int sparse;
    onx_status status;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OpOO", &object, &sparse, &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    const onx_compress_options options = { .struct_size = sizeof options, .sparse = sparse != 0, TELL(j) };
    RUN(onx_compress(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *precision(PyObject *self, PyObject *args)
{
    PyObject *object, *only, *except, *block, *changes;
    int to, keep_io, exact;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OippO!O!O!OO", &object, &to, &keep_io, &exact, &PyList_Type, &only, &PyList_Type,
                          &except, &PyList_Type, &block, &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    onx_precision_options options = {
        .struct_size = sizeof options, .to = to, .keep_io = keep_io != 0, .convert_exact = exact != 0, TELL(j)
    };
    if (names_of(&j, only, &options.only, &options.only_count) &&
        names_of(&j, except, &options.except, &options.except_count) &&
        names_of(&j, block, &options.block_op, &options.block_op_count))
        RUN(onx_precision(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *quantize(PyObject *self, PyObject *args)
{
    PyObject *object, *only, *except, *block, *ranges, *changes;
    int mode, per_channel, type;
    unsigned block_size;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OipiIO!O!O!O!OO", &object, &mode, &per_channel, &type, &block_size, &PyList_Type,
                          &only, &PyList_Type, &except, &PyList_Type, &block, &PyList_Type, &ranges, &changes,
                          &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    onx_quantize_options options = { .struct_size = sizeof options,
                                     .mode = (onx_quantize_mode)mode,
                                     .per_channel = per_channel != 0,
                                     .weight_type = type,
                                     .block_size = block_size,
                                     TELL(j) };
    const Py_ssize_t n = PyList_Size(ranges);
    onx_value_range *known = room(&j, n, sizeof *known);
    bool good = known != NULL;
    for (Py_ssize_t i = 0; good && i < n; i++) {
        known[i].low = (float)PyFloat_AsDouble(at(ranges, i, 1));
        known[i].high = (float)PyFloat_AsDouble(at(ranges, i, 2));
        good = name_of(&j, at(ranges, i, 0), &known[i].name) && !PyErr_Occurred();
    }
    options.range = known;
    options.range_count = (uint32_t)n;
    if (good && names_of(&j, only, &options.only, &options.only_count) &&
        names_of(&j, except, &options.except, &options.except_count) &&
        names_of(&j, block, &options.block_op, &options.block_op_count))
        RUN(onx_quantize(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *grad(PyObject *self, PyObject *args)
{
    PyObject *object, *of, *wrt;
    int only;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO!pO", &object, &of, &PyList_Type, &wrt, &only, &j.operators) ||
        !job_open(&j, object, Py_None, ONX_KIND_MODEL))
        return NULL;
    onx_grad_options options = { .struct_size = sizeof options, .only = only != 0 };
    if (name_of(&j, of, &options.of) && names_of(&j, wrt, &options.wrt, &options.wrt_count))
        RUN(onx_grad(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

static PyObject *edit(PyObject *self, PyObject *args)
{
    PyObject *object, *edits, *changes;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!OO", &object, &PyList_Type, &edits, &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    const Py_ssize_t n = PyList_Size(edits);
    onx_edit *list = room(&j, n, sizeof *list);
    bool good = list != NULL;
    for (Py_ssize_t i = 0; good && i < n; i++) { /* (kind, a, b, type or None, tensor or None) */
        const py_message *m;
        void *copy = NULL;
        list[i].kind = (int)PyLong_AsLong(at(edits, i, 0));
        good =
            name_of(&j, at(edits, i, 1), &list[i].a) && name_of(&j, at(edits, i, 2), &list[i].b) && !PyErr_Occurred();
        for (Py_ssize_t k = 3; good && k < 5; k++) {
            const onx_kind kind = k == 3 ? ONX_KIND_TYPE : ONX_KIND_TENSOR;
            if (at(edits, i, k) == Py_None)
                continue;
            m = py_message_of(at(edits, i, k), kind);
            good = m && onx_message_copy(onx_doc_arena(j.doc), kind, m->message, &copy) == ONX_OK;
            if (m && !good)
                PyErr_NoMemory();
            if (k == 3)
                list[i].type = copy;
            else
                list[i].tensor = copy;
        }
    }
    const onx_edit_options options = { .struct_size = sizeof options, .count = (uint32_t)n, .edit = list, TELL(j) };
    if (good)
        RUN(onx_edit_model(j.ctx->cx, j.doc, &options));
    return job_done(&j, status);
}

/* ---- splitting and merging models ---- */

/* Makes results that share messages with the copy keep it alive. */
static PyObject *parts_done(job *j, onx_doc **parts, uint32_t count, onx_status status)
{
    if (status != ONX_OK || PyErr_Occurred() || !py_warn(j->ctx->cx)) {
        for (uint32_t i = 0; i < count; i++)
            onx_doc_free(parts[i]);
        return job_drop(j, status);
    }
    job_forget(j);
    py_doc *whole = py_doc_wrap(j->ctx, j->doc, j->keeps);
    PyObject *list = whole ? PyList_New((Py_ssize_t)count) : NULL;
    for (uint32_t i = 0; whole && i < count; i++) {
        PyObject *root = py_doc_root(py_doc_wrap(j->ctx, parts[i], (PyObject *)whole));
        if (list && (!root || PyList_SetItem(list, (Py_ssize_t)i, root) != 0))
            Py_CLEAR(list);
    }
    onx_arena_free(j->arena);
    Py_XDECREF(whole);
    return list;
}

static PyObject *extract(PyObject *self, PyObject *args)
{
    PyObject *object, *inputs, *outputs, *nodes, *changes;
    onx_doc *part = NULL;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!O!O!OO", &object, &PyList_Type, &inputs, &PyList_Type, &outputs, &PyList_Type,
                          &nodes, &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    onx_extract_options options = { .struct_size = sizeof options, TELL(j) };
    if (names_of(&j, inputs, &options.input, &options.input_count) &&
        names_of(&j, outputs, &options.output, &options.output_count) &&
        names_of(&j, nodes, &options.node, &options.node_count))
        RUN(onx_extract(j.ctx->cx, j.doc, &options, &part));
    return parts_done(&j, &part, 1, status);
}

static PyObject *split(PyObject *self, PyObject *args)
{
    PyObject *object, *names, *changes;
    unsigned count;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "OIO!OO", &object, &count, &PyList_Type, &names, &changes, &j.operators) ||
        !job_open(&j, object, changes, ONX_KIND_MODEL))
        return NULL;
    onx_split_options options = { .struct_size = sizeof options, TELL(j) };
    onx_doc **parts = room(&j, (Py_ssize_t)count, sizeof *parts);
    if (parts && names_of(&j, names, &options.at, &options.at_count))
        RUN(onx_split(j.ctx->cx, j.doc, &options, count, parts));
    PyObject *list = NULL;
    onx_doc **own = parts ? PyMem_Calloc((size_t)count + 1, sizeof *own) : NULL; /* outlives the arena */
    if (!own)
        return job_drop(&j, PyErr_Occurred() ? ONX_OK : ONX_E_MEMORY);
    memcpy(own, parts, count * sizeof *own);
    list = parts_done(&j, own, count, status);
    PyMem_Free(own);
    return list;
}

static PyObject *merge(PyObject *self, PyObject *args)
{
    PyObject *models, *map, *inputs, *outputs, *prefix1, *prefix2, *changes, *keeps;
    int how;
    onx_status status = ONX_OK;
    job j;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!iO!O!O!OOOO", &PyList_Type, &models, &how, &PyList_Type, &map, &PyList_Type, &inputs,
                          &PyList_Type, &outputs, &prefix1, &prefix2, &changes, &j.operators) ||
        !job_open(&j, PyList_GetItem(models, 0), changes, ONX_KIND_MODEL))
        return NULL;
    const Py_ssize_t others = PyList_Size(models) - 1, n = PyList_Size(map);
    onx_merge_options options = { .struct_size = sizeof options, .how = how, TELL(j) };
    onx_io_pair *pairs = room(&j, n, sizeof *pairs);
    onx_doc **docs = room(&j, others, sizeof *docs);
    bool good = pairs && docs && names_of(&j, inputs, &options.input, &options.input_count) &&
                names_of(&j, outputs, &options.output, &options.output_count) &&
                name_of(&j, prefix1, &options.prefix1) && name_of(&j, prefix2, &options.prefix2);
    for (Py_ssize_t i = 0; good && i < n; i++)
        good = name_of(&j, at(map, i, 0), &pairs[i].output) && name_of(&j, at(map, i, 1), &pairs[i].input);
    options.map = pairs;
    options.map_count = (uint32_t)n;
    /* The copies of the other models, and their originals, live as long as the result. */
    PyObject *kept = good ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; kept && i < others; i++) {
        const py_message *m = py_message_of(PyList_GetItem(models, i + 1), ONX_KIND_MODEL);
        docs[i] = m ? py_message_share(j.ctx, m, &keeps) : NULL;
        py_doc *doc = docs[i] ? py_doc_wrap(j.ctx, docs[i], keeps) : NULL;
        if (!doc || PyList_Append(kept, (PyObject *)doc) != 0)
            Py_CLEAR(kept);
        Py_XDECREF(doc);
    }
    if (kept)
        RUN(onx_merge(j.ctx->cx, j.doc, docs, (uint32_t)others, &options));
    good = kept && status == ONX_OK && py_warn(j.ctx->cx);
    if (status != ONX_OK)
        py_fail(j.ctx->cx, status);
    job_forget(&j);
    onx_arena_free(j.arena);
    py_doc *whole = py_doc_wrap(j.ctx, j.doc, j.keeps);
    for (Py_ssize_t i = 0; good && whole && i < others; i++)
        good = py_doc_keep(whole, PyList_GetItem(kept, i));
    PyObject *root = good && whole ? py_doc_root(whole) : NULL;
    if (!root && !(good && whole))
        Py_XDECREF(whole);
    Py_XDECREF(kept);
    return root;
}

bool py_add_transform(PyObject *module)
{
    static PyMethodDef functions[] = { { "_check", check, METH_VARARGS, NULL },
                                       { "_check_update", check_update, METH_VARARGS, NULL },
                                       { "_infer", infer, METH_VARARGS, NULL },
                                       { "_simplify", simplify, METH_VARARGS, NULL },
                                       { "_retarget", retarget, METH_VARARGS, NULL },
                                       { "_inline", inline_functions, METH_VARARGS, NULL },
                                       { "_outline", outline, METH_VARARGS, NULL },
                                       { "_sort", sort, METH_VARARGS, NULL },
                                       { "_compress", compress, METH_VARARGS, NULL },
                                       { "_precision", precision, METH_VARARGS, NULL },
                                       { "_quantize", quantize, METH_VARARGS, NULL },
                                       { "_grad", grad, METH_VARARGS, NULL },
                                       { "_edit", edit, METH_VARARGS, NULL },
                                       { "_extract", extract, METH_VARARGS, NULL },
                                       { "_split", split, METH_VARARGS, NULL },
                                       { "_merge", merge, METH_VARARGS, NULL },
                                       { NULL, NULL, 0, NULL } };
    return PyModule_AddFunctions(module, functions) == 0;
}
