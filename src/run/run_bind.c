/* run_bind.c - checks that a value fits the input that it is bound to: kind, element type, rank and sizes (TY-19).
 * Names of dimensions are claims that nothing relies on, and many exporters write one name for every size: that a name
 * has several sizes over the inputs (TY-15) or over the elements of a sequence (TY-16) is a warning, once per session,
 * and so is a result that contradicts what the model declares (TY-20), once per output. A list of one element passes
 * for a scalar, which packages rely on: other runtimes do not compare with the rank of a scalar. */
#include "run/run_bind.h"

#include <stdio.h>

typedef struct variable {
    onx_str name;
    int64_t size;
    bool element; /* seen in an element of a sequence */
} variable;

typedef struct binding {
    onx_ctx *cx;
    onx_str input;          /* its name */
    variable *all, few[32]; /* most models have few variables, so that most runs allocate nothing here */
    uint32_t count, room;
    onxi_table table; /* index of `all`, once there are more than fit in `few` */
    bool element;     /* the value being bound is an element of a sequence */
    bool strict;      /* a list of one element is not a scalar */
    onxi_run_said *said;
} binding;

static onx_status refuse(const binding *b, const char *format, ...) ONX_PRINTF(2, 3);
static onx_status refuse(const binding *b, const char *format, ...)
{
    const onx_diag diag = {
        .severity = ONX_ERROR, .status = ONX_E_INVALID, .rule = "TY-19", .where = ONXI_NOWHERE, .value = b->input
    };
    va_list args;
    va_start(args, format);
    onxi_vreport(b->cx, &diag, format, args);
    va_end(args);
    return diag.status;
}

enum { FEW = sizeof((binding *)NULL)->few / sizeof(variable) };

static variable *find_variable(const binding *b, onx_str name)
{
    for (uint32_t i = 0; b->count <= FEW && i < b->count; i++)
        if (onx_str_equal(b->all[i].name, name))
            return &b->all[i];
    uint32_t hash = onxi_table_hash(&b->table, name);
    ONXI_TABLE_EACH (&b->table, hash, i)
        if (onx_str_equal(b->all[i].name, name))
            return &b->all[i];
    return NULL;
}

/* Moves the variables from `few` to the heap and builds the table. */
static bool leave_few(binding *b)
{
    variable *all = NULL;
    if (!ONXI_GROW(b->cx, all, b->room, 2 * FEW))
        return false;
    memcpy(all, b->few, sizeof b->few);
    b->all = all;
    b->table = onxi_table_on_heap(b->cx);
    for (uint32_t i = 0; i < FEW; i++)
        if (!onxi_table_add(&b->table, onxi_table_hash(&b->table, all[i].name), i))
            return false;
    return true;
}

static bool add_variable(binding *b, variable v)
{
    if (b->count == FEW && b->all == b->few && !leave_few(b))
        return false;
    if (b->all != b->few && (!ONXI_GROW(b->cx, b->all, b->room, b->count + 1) ||
                             !onxi_table_add(&b->table, onxi_table_hash(&b->table, v.name), b->count)))
        return false;
    b->all[b->count++] = v;
    return true;
}

static void free_variables(binding *b)
{
    if (b->all == b->few)
        return;
    onxi_release(b->cx, b->all, b->room * sizeof *b->all);
    onxi_table_free(&b->table);
}

static onx_status bind_variable(binding *b, onx_str name, int64_t size)
{
    if (!onxi_dim_is_name(name))
        return ONX_OK;
    const variable *v = find_variable(b, name);
    if (!v)
        return add_variable(b, (variable){ name, size, b->element }) ? ONX_OK : ONX_E_MEMORY;
    if (v->size == size || atomic_exchange(&b->said->sizes, true))
        return ONX_OK;
    const onx_diag diag = { .severity = ONX_WARNING,
                            .rule = b->element || v->element ? "TY-16" : "TY-15",
                            .where = ONXI_NOWHERE,
                            .value = b->input };
    onxi_report(b->cx, &diag, "dimension %.*s of input \"%.*s\" is %lld%s, but it has been %lld before", ONX_ARG(name),
                ONX_ARG(b->input), (long long)size, b->element ? " in an element" : "", (long long)v->size);
    return ONX_OK;
}

static const char *type_name(int32_t dtype)
{
    const char *name = onx_dtype_name(dtype);
    return name ? name : "none";
}

static bool is_list_of_one(const onx_value *v)
{
    return v->kind == ONX_VALUE_TENSOR && v->rank == 1 && v->count == 1;
}

static onx_status bind_tensor(binding *b, const onx_type_tensor *t, const onx_value *v)
{
    if (t->elem_type && t->elem_type != v->dtype)
        return refuse(b, "input \"%.*s\" is of type %s, the model wants %s", ONX_ARG(b->input), type_name(v->dtype),
                      type_name(t->elem_type));
    if (t->shape && !t->shape->dim_count && is_list_of_one(v) && !b->strict && !b->element)
        return ONX_OK;
    if (t->shape && t->shape->dim_count != v->rank)
        return refuse(b, "input \"%.*s\" has rank %u, the model wants %u", ONX_ARG(b->input), v->rank,
                      t->shape->dim_count);
    for (uint32_t i = 0; t->shape && i < v->rank; i++) {
        const onx_dimension *dim = t->shape->dim[i];
        if (ONX_HAS(dimension, dim, dim_value) && dim->dim_value >= 0 && dim->dim_value != v->dims[i])
            return refuse(b, "dimension %u of input \"%.*s\" is %lld, the model wants %lld", i, ONX_ARG(b->input),
                          (long long)v->dims[i], (long long)dim->dim_value);
        if (ONX_HAS(dimension, dim, dim_param))
            ONX_TRY(bind_variable(b, onx_view(dim->dim_param), v->dims[i]));
    }
    return ONX_OK;
}

static onx_status wrong_kind(const binding *b)
{
    return refuse(b, "input \"%.*s\" is of another kind than the model wants", ONX_ARG(b->input));
}

/* The recursion is bounded: values are no deeper than the types that describe them, and the reader bounds these. */
static onx_status bind_value(binding *b, const onx_type *type, const onx_value *v)
{
    const onx_type *inner = NULL;
    switch (onx_value_kind_of_type(type)) {
    case ONX_KIND_TENSOR:
        return v->kind == ONX_VALUE_TENSOR ? bind_tensor(b, type->tensor_type, v) : wrong_kind(b);
    case ONX_KIND_SPARSE_TENSOR:
        return v->kind == ONX_VALUE_TENSOR ? ONX_OK : wrong_kind(b);
    case ONX_KIND_SEQUENCE:
        if (v->kind != ONX_VALUE_SEQUENCE)
            return wrong_kind(b);
        inner = type->sequence_type->elem_type;
        b->element = true;
        break;
    case ONX_KIND_MAP:
        if (v->kind != ONX_VALUE_MAP)
            return wrong_kind(b);
        if (type->map_type->key_type && type->map_type->key_type != v->dtype)
            return refuse(b, "input \"%.*s\" has keys of type %s, the model wants %s", ONX_ARG(b->input),
                          type_name(v->dtype), type_name(type->map_type->key_type));
        return ONX_OK; /* its values may come as one tensor or as several; the operators check them */
    case ONX_KIND_OPTIONAL:
        inner = type->optional_type->elem_type;
        if (v->kind != ONX_VALUE_OPTIONAL) /* the value that the optional would hold may be given directly */
            return inner ? bind_value(b, inner, v) : ONX_OK;
        break;
    default:
        return ONX_OK;
    }
    for (uint64_t i = 0; inner && i < v->count; i++)
        ONX_TRY(bind_value(b, inner, v->items[i]));
    return ONX_OK;
}

static onx_status check(onx_ctx *cx, const onx_graph *g, const onx_value *const *inputs, bool strict,
                        onxi_run_said *said)
{
    binding b = { .cx = cx, .strict = strict, .said = said };
    onx_status status = ONX_OK;
    b.all = b.few;
    for (uint32_t i = 0; i < g->input_count && status == ONX_OK; i++) {
        b.input = onx_view(g->input[i]->name);
        b.element = false;
        if (inputs[i] && !onxi_value_is_whole(inputs[i]))
            status = onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE,
                               "the value for input \"%.*s\" does not hold what its dimensions say", ONX_ARG(b.input));
        else if (inputs[i] && g->input[i]->type)
            status = bind_value(&b, g->input[i]->type, inputs[i]);
    }
    free_variables(&b);
    return status;
}

/* Is the value a list of one element where the model declares a scalar? */
static bool is_for_scalar(const onx_value_info *info, const onx_value *v)
{
    const onx_type *type = info->type;
    return v && is_list_of_one(v) && type && ONX_HAS(type, type, tensor_type) && type->tensor_type->shape &&
           !type->tensor_type->shape->dim_count;
}

onx_status onxi_run_inputs_bind(onx_ctx *cx, const onx_graph *graph, const onx_value *const *inputs, bool strict,
                                onxi_run_said *said, onxi_run_inputs *out)
{
    size_t scalars = 0;
    *out = (onxi_run_inputs){ .inputs = inputs };
    ONX_TRY(check(cx, graph, inputs, strict, said));
    for (uint32_t i = 0; i < graph->input_count; i++)
        scalars += is_for_scalar(graph->input[i], inputs[i]);
    if (!scalars)
        return ONX_OK;
    out->size = scalars * sizeof(onx_value) + graph->input_count * sizeof(onx_value *);
    onx_value *v = out->memory = onxi_resize(cx, NULL, 0, out->size);
    if (!v)
        return onxi_no_memory(cx);
    const onx_value **own = (const onx_value **)(void *)(v + scalars);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        own[i] = inputs[i];
        if (!is_for_scalar(graph->input[i], inputs[i]))
            continue;
        *v = *inputs[i];
        v->rank = 0;
        v->dims = NULL;
        v->flags |= ONXI_VALUE_BORROWED;
        v->cx = NULL;
        own[i] = v++;
    }
    out->inputs = own;
    return ONX_OK;
}

void onxi_run_inputs_free(onx_ctx *cx, onxi_run_inputs *bound)
{
    if (bound->memory)
        onxi_release(cx, bound->memory, bound->size);
}

/* ---- results ---- */

/* How a tensor differs from its declaration; false if it does not. */
static bool differs(const onx_type_tensor *t, const onx_value *v, char *text, size_t size)
{
    if (t->elem_type && t->elem_type != v->dtype) {
        (void)snprintf(text, size, "has type %s, the model declares %s", type_name(v->dtype), type_name(t->elem_type));
        return true;
    }
    if (t->shape && t->shape->dim_count != v->rank) {
        (void)snprintf(text, size, "has rank %u, the model declares %u", v->rank, t->shape->dim_count);
        return true;
    }
    for (uint32_t i = 0; t->shape && i < v->rank; i++) {
        const onx_dimension *dim = t->shape->dim[i];
        if (ONX_HAS(dimension, dim, dim_value) && dim->dim_value >= 0 && dim->dim_value != v->dims[i]) {
            (void)snprintf(text, size, "has size %lld in dimension %u, the model declares %lld", (long long)v->dims[i],
                           i, (long long)dim->dim_value);
            return true;
        }
    }
    return false;
}

void onxi_run_bind_results(onx_ctx *cx, onx_value_info *const *info, uint32_t count, onx_value *const *values,
                           onxi_run_said *said)
{
    for (uint32_t i = 0; i < count; i++) {
        const onx_type *type = info[i]->type;
        char text[128];
        if (!values[i] || values[i]->kind != ONX_VALUE_TENSOR || !type ||
            onx_value_kind_of_type(type) != ONX_KIND_TENSOR ||
            !differs(type->tensor_type, values[i], text, sizeof text) || atomic_exchange(&said->results[i], true))
            continue;
        const onx_diag diag = {
            .severity = ONX_WARNING, .rule = "TY-20", .where = ONXI_NOWHERE, .value = onx_view(info[i]->name)
        };
        onxi_report(cx, &diag, "output \"%.*s\" %s", ONX_ARG(onx_view(info[i]->name)), text);
    }
}

onx_status onxi_run_said_open(onx_ctx *cx, uint32_t outputs, onxi_run_said *said)
{
    said->count = outputs;
    said->results = onxi_resize(cx, NULL, 0, ((size_t)outputs + 1) * sizeof *said->results);
    for (uint32_t i = 0; said->results && i < outputs; i++)
        atomic_init(&said->results[i], false);
    return said->results ? ONX_OK : ONX_E_MEMORY;
}

void onxi_run_said_close(onx_ctx *cx, onxi_run_said *said)
{
    if (said->results)
        onxi_release(cx, said->results, ((size_t)said->count + 1) * sizeof *said->results);
    said->results = NULL;
}
