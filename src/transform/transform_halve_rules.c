/* transform_halve_rules.c - asks the inference rule of a node's operator which element types its outputs have for other
 * types of its inputs: which operands depend on each other, and whether a converted node is what the pass takes it
 * for. */
#include "transform/transform_halve.h"

/* ---- services for rules: only types are known ---- */

static const onxi_known_ints *no_value(onxi_call *call, uint32_t input)
{
    (void)call, (void)input;
    return NULL;
}

static const onx_tensor *no_constant(onxi_call *call, uint32_t input)
{
    (void)call, (void)input;
    return NULL;
}

static onx_status no_subgraph(onxi_call *call, const onx_graph *graph, const onxi_type *inputs, uint32_t input_count,
                              onxi_type *outputs, uint32_t output_count)
{
    (void)call, (void)graph, (void)inputs, (void)input_count, (void)outputs, (void)output_count;
    return ONX_E_INVALID;
}

static onxi_op_id no_operator(onxi_call *call, const onx_node *node)
{
    (void)call, (void)node;
    return ONXI_ID_NONE;
}

static onx_status refuse(onxi_call *call, const char *format, va_list args)
{
    (void)call, (void)format, (void)args;
    return ONX_E_INVALID;
}

enum { DEPTH = 8 };

/* Rank and sizes that are numbers. */
static bool copy_shape(onx_arena *arena, const onx_tensor_shape *shape, onxi_type *out)
{
    if (!shape || shape->dim_count > ONX_RANK_MAX)
        return true;
    out->ranked = true;
    out->rank = shape->dim_count;
    out->dims = ONXI_ARRAY(arena, onxi_dim, (size_t)out->rank + 1);
    for (uint32_t i = 0; out->dims && i < out->rank; i++)
        out->dims[i] =
            ONX_HAS(dimension, shape->dim[i], dim_value) ? onxi_dim_of_int(shape->dim[i]->dim_value) : ONXI_DIM_UNKNOWN;
    return out->dims != NULL;
}

/* The type without names of dimensions; tensors that are not in maps have elements of type `dtype` (UNDEFINED: their
 * own). */
static bool bare(onx_arena *arena, const onx_type *type, int dtype, int depth, onxi_type *out)
{
    const onx_type *inner = NULL;
    *out = (onxi_type){ .kind = ONXI_TYPE_NONE };
    if (!type || depth > DEPTH)
        return true;
    if (ONX_HAS(type, type, tensor_type) || ONX_HAS(type, type, sparse_tensor_type)) {
        const bool sparse = !ONX_HAS(type, type, tensor_type);
        const int own = sparse ? type->sparse_tensor_type->elem_type : type->tensor_type->elem_type;
        out->kind = sparse ? ONXI_TYPE_SPARSE_TENSOR : ONXI_TYPE_TENSOR;
        out->dtype = (uint8_t)(dtype ? dtype : own > 0 && own < ONX_DTYPE_COUNT ? own : ONX_UNDEFINED);
        return copy_shape(arena, sparse ? type->sparse_tensor_type->shape : type->tensor_type->shape, out);
    }
    if (ONX_HAS(type, type, sequence_type)) {
        out->kind = ONXI_TYPE_SEQUENCE;
        inner = type->sequence_type->elem_type;
    } else if (ONX_HAS(type, type, optional_type)) {
        out->kind = ONXI_TYPE_OPTIONAL;
        inner = type->optional_type->elem_type;
    } else if (ONX_HAS(type, type, map_type)) {
        const int key = type->map_type->key_type;
        *out = (onxi_type){ .kind = ONXI_TYPE_MAP,
                            .dtype = (uint8_t)(key > 0 && key < ONX_DTYPE_COUNT ? key : ONX_UNDEFINED) };
        inner = type->map_type->value_type;
        dtype = ONX_UNDEFINED;
    } else {
        return true;
    }
    onxi_type *made = ONXI_NEW(arena, onxi_type);
    out->inner = made;
    return made && bare(arena, inner, dtype, depth + 1, made);
}

static onx_status type_of_attribute(onxi_call *call, const onx_type *type, onxi_type *out)
{
    return bare(call->arena, type, ONX_UNDEFINED, 0, out) ? ONX_OK : ONX_E_MEMORY;
}

static const onxi_call_ops ops = { no_value, no_constant, no_subgraph, type_of_attribute, no_operator, refuse };

/* ---- asking ---- */

static int elements_of(const onxi_type *type)
{
    for (int depth = 0; type && depth <= DEPTH; depth++) {
        if (type->kind == ONXI_TYPE_TENSOR || type->kind == ONXI_TYPE_SPARSE_TENSOR)
            return type->dtype;
        type = type->kind == ONXI_TYPE_SEQUENCE || type->kind == ONXI_TYPE_OPTIONAL ? type->inner : NULL;
    }
    return ONX_UNDEFINED;
}

const onx_type *onxi_halve_type(onxi_halver *h, const onxi_halve_node *n, onx_str name)
{
    return onxi_values_type(&h->values, &n->scope->scope, name);
}

typedef struct question {
    onxi_halver *h;
    const onxi_halve_node *n;
    onx_arena *arena;
    onxi_type *inputs, *outputs;
    const onxi_type **given;
    onxi_attr_value *attrs; /* changed; NULL: the attribute keeps its value */
} question;

/* The attribute as the converted node has it. */
static bool change_attribute(question *q, const onxi_attrs *from, onxi_attrs *to)
{
    const uint32_t k = q->n->attribute;
    if (!(q->attrs = ONXI_ARRAY(q->arena, onxi_attr_value, from->count)))
        return false;
    memcpy(q->attrs, from->values, from->count * sizeof *q->attrs);
    onxi_attr_value *a = &q->attrs[k];
    *to = (onxi_attrs){ q->attrs, from->count };
    a->given = true;
    if (q->n->schema->attrs[k].type == ONX_ATTR_INT) {
        a->type = ONX_ATTR_INT;
        a->i = (int64_t)q->h->to;
        return true;
    }
    onx_tensor *t = ONXI_NEW(q->arena, onx_tensor);
    static const int64_t one[] = { 1 };
    if (!t)
        return false;
    if (a->type == ONX_ATTR_TENSOR && a->t)
        *t = *a->t;
    else
        *t = (onx_tensor){ .dims = (int64_t *)(uintptr_t)one, .dims_count = 1 };
    t->data_type = (int32_t)q->h->to;
    a->type = ONX_ATTR_TENSOR;
    a->t = t;
    return true;
}

/* Does the row allow these types, with one type per constraint? */
static bool fits(const question *q, const onxi_port *ports, const onx_bytes *names, const onxi_type *const *types,
                 uint32_t count)
{
    enum { BOUND = 64 };
    const onxi_schema *schema = q->n->schema;
    const char *bound[BOUND];
    int dtypes[BOUND];
    uint32_t bound_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const onxi_port *port = onxi_port_at(ports, i);
        const int dtype = elements_of(types[i]);
        const onxi_type_constraint *c = port ? onxi_schema_type(schema, port->type) : NULL;
        if (!port || !dtype || !onx_view(names[i]).len)
            continue;
        const onx_type *full = onxi_halve_type(q->h, q->n, onx_view(names[i]));
        if (c && !((full ? onxi_element_types(&c->set, full) : c->set.tensor) >> dtype & 1))
            return false;
        if (!c || port->flags & ONXI_PORT_HETEROGENEOUS)
            continue;
        uint32_t k = 0;
        while (k < bound_count && strcmp(bound[k], c->name))
            k++;
        if (k < bound_count && dtypes[k] != dtype)
            return false;
        if (k == bound_count && k < BOUND) {
            bound[bound_count] = c->name;
            dtypes[bound_count++] = dtype;
        }
    }
    return true;
}

/* Out of memory must not look like an operator that refuses. */
static bool lacks_memory(const question *q)
{
    q->h->values.status = ONX_E_MEMORY;
    return false;
}

/* The types that the body gives the outputs of an operator without a rule. */
static bool ask_body(const question *q, const uint8_t *in, uint8_t *out)
{
    const onx_node *node = q->n->node;
    const onx_infer_options strict = { .struct_size = sizeof strict, .strict = true, .check_type = true };
    const onxi_diag_mark mark = onxi_diag_here(q->h->cx);
    onx_node *one = (onx_node *)(uintptr_t)node;
    onx_graph g = { .node = &one, .node_count = 1 };
    const onx_type **types = ONXI_ARRAY(q->arena, const onx_type *, (size_t)node->input_count + 1);
    const onx_type **found = ONXI_ARRAY(q->arena, const onx_type *, (size_t)node->output_count + 1);
    g.input = ONXI_ARRAY(q->arena, onx_value_info *, (size_t)node->input_count + 1);
    g.output = ONXI_ARRAY(q->arena, onx_value_info *, (size_t)node->output_count + 1);
    if (!types || !found || !g.input || !g.output)
        return lacks_memory(q);
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        const bool input = i < node->input_count;
        const onx_bytes name = input ? node->input[i] : node->output[i - node->input_count];
        onx_value_info *info = ONXI_NEW(q->arena, onx_value_info);
        if (!info)
            return lacks_memory(q);
        if (!onx_view(name).len)
            continue;
        ONX_SET(value_info, info, name, name);
        if (!input) {
            g.output[g.output_count++] = info;
            continue;
        }
        const onx_type *type = onxi_halve_type(q->h, q->n, onx_view(name));
        onx_type_tensor *tensor = ONXI_NEW(q->arena, onx_type_tensor);
        onx_type *copy = ONXI_NEW(q->arena, onx_type);
        if (!tensor || !copy)
            return lacks_memory(q);
        if (type && ONX_HAS(type, type, tensor_type))
            *tensor = *type->tensor_type;
        if (in[i])
            ONX_SET(type_tensor, tensor, elem_type, in[i]);
        ONX_SET(type, copy, tensor_type, tensor);
        types[g.input_count] = type && !ONX_HAS(type, type, tensor_type) ? type : copy;
        g.input[g.input_count++] = info;
    }
    const onx_status status =
        onx_infer_graph(q->h->cx, q->h->model, &g, types, g.input_count, &strict, q->arena, found);
    const bool good = status == ONX_OK;
    if (status == ONX_E_MEMORY)
        return lacks_memory(q);
    onxi_diag_rewind(q->h->cx, mark);
    for (uint32_t i = 0, k = 0; good && i < node->output_count; i++)
        if (onx_view(node->output[i]).len)
            out[i] = (uint8_t)onxi_type_dtype(found[k++]);
    return good;
}

static bool ask(question *q, const uint8_t *in, bool changed, uint8_t *out)
{
    const onx_node *node = q->n->node;
    onxi_attr_fault fault;
    onxi_attrs attrs;
    q->inputs = ONXI_ARRAY(q->arena, onxi_type, (size_t)node->input_count + 1);
    q->outputs = ONXI_ARRAY(q->arena, onxi_type, (size_t)node->output_count + 1);
    q->given = ONXI_ARRAY(q->arena, const onxi_type *, (size_t)node->input_count + node->output_count + 1);
    if (!q->inputs || !q->outputs || !q->given)
        return lacks_memory(q);
    onx_status status = onxi_bind_attributes(q->n->bound, node, NULL, q->arena, NULL, 0, &attrs, &fault);
    if (status != ONX_OK)
        return status == ONX_E_MEMORY ? lacks_memory(q) : false;
    if (changed && !change_attribute(q, &attrs, &attrs))
        return lacks_memory(q);
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onx_str name = onx_view(node->input[i]);
        onxi_type *t = &q->inputs[i];
        const onx_type *type = name.len ? onxi_halve_type(q->h, q->n, name) : NULL;
        q->given[i] = name.len ? t : NULL;
        if (!bare(q->arena, type, in[i], 0, t))
            return lacks_memory(q);
        if (!type && in[i]) /* an initializer */
            *t = (onxi_type){ .kind = ONXI_TYPE_TENSOR, .dtype = in[i] };
    }
    onxi_call call = { .schema = q->n->schema,
                       .op = q->n->op,
                       .node = node,
                       .attrs = &attrs,
                       .opset = q->n->bound->opset,
                       .dims = q->h->dims,
                       .arena = q->arena,
                       .input_count = node->input_count,
                       .output_count = node->output_count,
                       .inputs = q->given,
                       .outputs = q->outputs,
                       .ops = &ops };
    if (!fits(q, q->n->schema->inputs, node->input, q->given, node->input_count))
        return false;
    status = onxi_call_run(&call);
    if (status != ONX_OK)
        return status == ONX_E_MEMORY ? lacks_memory(q) : false;
    bool all = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        q->given[node->input_count + i] = &q->outputs[i];
        out[i] = (uint8_t)elements_of(&q->outputs[i]);
        all &= out[i] || !onx_view(node->output[i]).len;
    }
    if (!all && !q->n->schema->infer && onxi_schema_is_composed(q->n->schema) && (changed || !ask_body(q, in, out)))
        return false;
    return fits(q, q->n->schema->outputs, node->output, q->given + node->input_count, node->output_count);
}

bool onxi_halve_ask(onxi_halver *h, const onxi_halve_node *n, const uint8_t *in, bool changed, uint8_t *out)
{
    question q = { .h = h, .n = n, .arena = h->asked };
    if (++h->questions % 4096 == 0) { /* symbols that rules create are not needed any longer */
        onxi_dims_free(h->dims);
        h->dims = NULL;
    }
    if (!h->dims && onxi_dims_new(h->cx, &h->dims) != ONX_OK)
        return lacks_memory(&q);
    const bool good = ask(&q, in, changed, out);
    onxi_arena_reset(h->asked);
    return good;
}

/* ---- checking what was decided ---- */

static int now_of(onxi_halver *h, const onxi_halve_use *use)
{
    return onxi_halve_wants_new(h, use) ? (int)h->to : h->value[use->value].from;
}

/* The types that the converted node is believed to have; false: it is not converted. */
static bool list_types(onxi_halver *h, const onxi_halve_node *n, uint8_t *in, uint8_t *out)
{
    bool any = false;
    for (uint32_t i = 0; i < n->node->input_count; i++) {
        const onxi_halve_use *use = &h->use[n->use + i];
        in[i] = ONX_UNDEFINED;
        if (use->value == ONXI_HALVE_NONE || !h->value[use->value].from)
            continue;
        in[i] = (uint8_t)now_of(h, use);
        any |= in[i] != h->value[use->value].from;
    }
    for (uint32_t i = 0; i < n->node->output_count; i++) {
        const uint32_t made = h->made[n->made + i];
        const onx_str name = onx_view(n->node->output[i]);
        const int before = name.len ? onxi_type_dtype(onxi_halve_type(h, n, name)) : ONX_UNDEFINED;
        const bool changes = made != ONXI_HALVE_NONE && h->value[made].from && h->value[made].changes;
        out[i] = (uint8_t)(changes ? (int)h->to : before);
        any |= changes;
    }
    return any;
}

/* Is the node, with the types that it would have, what its operator takes and gives? */
static bool agrees(onxi_halver *h, const onxi_halve_node *n, uint8_t *in, uint8_t *out, uint8_t *found)
{
    if (!list_types(h, n, in, out))
        return true;
    const bool changed = n->term != ONXI_HALVE_NONE && !onxi_halve_stays(h, n->term);
    if (!onxi_halve_ask(h, n, in, changed, found))
        return false;
    for (uint32_t i = 0; i < n->node->output_count; i++)
        if (found[i] && out[i] && found[i] != out[i])
            return false;
    return true;
}

onx_status onxi_halve_verify(onxi_halver *h, bool *settled)
{
    uint32_t most = 0;
    *settled = true;
    for (uint32_t i = 0; i < h->node_count; i++) {
        const onx_node *node = h->node[i].node;
        most = node->input_count > most ? node->input_count : most;
        most = node->output_count > most ? node->output_count : most;
    }
    uint8_t *types = ONXI_ARRAY(h->scratch, uint8_t, 3 * ((uint64_t)most + 1));
    if (!types)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < h->node_count; i++) {
        onxi_halve_node *n = &h->node[i];
        if (!n->asked || agrees(h, n, types, types + most + 1, types + 2 * ((size_t)most + 1)))
            continue;
        onxi_halve_keep(h, n);
        for (uint32_t k = 0; k < n->node->input_count; k++)
            if (h->use[n->use + k].want == ONXI_HALVE_ANY)
                h->use[n->use + k].want = ONXI_HALVE_OLD;
        n->asked = false; /* as it was */
        *settled = false;
    }
    return ONX_OK;
}
