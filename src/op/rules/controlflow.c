/* controlflow.c - rules of If, Loop and Scan: infer the subgraphs and combine their types. */
#include "op/op_rules.h"

/* ---- common types of two cases ---- */

static const char *const kinds[] = { "unknown",     "a tensor", "a sparse tensor", "a sequence",
                                     "an optional", "a map",    "an opaque value" };

static onx_status join_dims(onxi_call *call, const onxi_type *a, const onxi_type *b, onxi_type *out)
{
    out->ranked = a->ranked && b->ranked && a->rank == b->rank;
    out->dims = NULL;
    out->rank = 0;
    if (!out->ranked)
        return ONX_OK;
    out->rank = a->rank;
    out->dims = ONXI_ARRAY(call->arena, onxi_dim, a->rank + 1u);
    if (!out->dims)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < a->rank; i++)
        out->dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : ONXI_DIM_UNKNOWN;
    return ONX_OK;
}

/* The type that holds for a value of either type a or type b; fails if they differ in more than shape. */
onx_status onxi_call_join(onxi_call *call, const onxi_type *a, const onxi_type *b, const char *what, uint32_t index,
                          onxi_type *out)
{
    *out = (onxi_type){ .kind = ONXI_TYPE_NONE };
    if (a->kind == ONXI_TYPE_NONE || b->kind == ONXI_TYPE_NONE)
        return ONX_OK;
    if (a->kind != b->kind)
        return onxi_call_fail(call, "%s %u is %s in one place and %s in another", what, index, kinds[a->kind],
                              kinds[b->kind]);
    if (a->dtype && b->dtype && a->dtype != b->dtype)
        return onxi_call_fail(call, "%s %u has element type %s in one place and %s in another", what, index,
                              onx_dtype_name(a->dtype), onx_dtype_name(b->dtype));
    *out = *a;
    out->dtype = a->dtype == b->dtype ? a->dtype : 0;
    if (a->kind == ONXI_TYPE_TENSOR || a->kind == ONXI_TYPE_SPARSE_TENSOR)
        return join_dims(call, a, b, out);
    out->inner = NULL;
    if (!a->inner || !b->inner)
        return ONX_OK;
    onxi_type *inner = ONXI_NEW(call->arena, onxi_type);
    if (!inner)
        return ONX_E_MEMORY;
    out->inner = inner;
    return onxi_call_join(call, a->inner, b->inner, what, index, inner);
}

/* Does the body have `count` inputs? It may have more that are also initializers. */
onx_status onxi_call_body_takes(onxi_call *call, const onx_graph *body, const char *name, uint32_t count)
{
    if (body->input_count < count)
        return onxi_call_fail(call, "%s takes %u inputs, %u are given", name, body->input_count, count);
    for (uint32_t i = 0; i < body->input_count; i++) {
        bool own = false;
        for (uint32_t k = 0; k < body->initializer_count && body->input_count - count < 1000; k++)
            own |= onx_str_equal(onx_view(body->initializer[k]->name), onx_view(body->input[i]->name));
        if (i < count ? own : !own)
            return onxi_call_fail(call, own ? "input %u of %s is an initializer too" : "input %u of %s is not given", i,
                                  name);
    }
    return ONX_OK;
}

static onxi_type *new_types(onxi_call *call, uint32_t count)
{
    return ONXI_ARRAY(call->arena, onxi_type, count + 1u);
}

/* ---- If ---- */

static onx_status branch(onxi_call *call, const char *name, bool never, onxi_type **out, onxi_known_ints **values)
{
    const onx_graph *graph = onxi_call_graph(call, name);
    *out = new_types(call, call->output_count);
    *values = ONXI_ARRAY(call->arena, onxi_known_ints, call->output_count + 1u);
    if (!*out || !*values)
        return ONX_E_MEMORY;
    if (!graph)
        return onxi_call_fail(call, "attribute %s is missing", name);
    if (graph->input_count)
        return onxi_call_fail(call, "%s takes %u inputs, a branch takes none", name, graph->input_count);
    if (graph->output_count != call->output_count)
        return onxi_call_fail(call, "%s has %u outputs, the node has %u", name, graph->output_count,
                              call->output_count);
    call->unreachable = never;
    call->subgraph_values = *values;
    onx_status status = call->ops->subgraph(call, graph, NULL, 0, *out, call->output_count);
    call->unreachable = false;
    call->subgraph_values = NULL;
    return status;
}

static bool same_value(const onxi_known_ints *a, const onxi_known_ints *b)
{
    return a->elements && b->elements && a->floored == b->floored && a->rank == b->rank && a->count == b->count &&
           memcmp(a->elements, b->elements, a->count * sizeof *a->elements) == 0;
}

onx_status onxi_rule_if(onxi_call *call)
{
    onxi_type *yes, *no;
    onxi_known_ints *yes_values, *no_values;
    int64_t test;
    bool known = onxi_call_const_int(call, 0, &test);
    onx_status status = branch(call, "then_branch", known && !test, &yes, &yes_values);
    onx_status other = branch(call, "else_branch", known && test, &no, &no_values);
    if (status != ONX_OK || other != ONX_OK)
        return status != ONX_OK ? status : other;
    for (uint32_t i = 0; i < call->output_count; i++) {
        onx_status joined = onxi_call_join(call, &yes[i], &no[i], "output", i, &call->outputs[i]);
        if (joined == ONX_OK && known) /* the branch that is never taken does not affect the shape */
            call->outputs[i] = test ? yes[i] : no[i];
        const onxi_known_ints *value = known && !test ? &no_values[i] : &yes_values[i];
        if (joined == ONX_OK && value->elements && (known || same_value(&yes_values[i], &no_values[i])))
            onxi_call_carry(call, i, *value);
        status = status == ONX_OK ? joined : status;
    }
    return status;
}

/* ---- Loop ---- */

static bool same_shape(const onxi_type *a, const onxi_type *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->ranked != b->ranked || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; a->ranked && i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return a->inner && b->inner ? same_shape(a->inner, b->inner) : a->inner == b->inner;
}

static void forget_shape(onxi_type *type)
{
    type->ranked = false;
    type->rank = 0;
    type->dims = NULL;
    if (type->kind != ONXI_TYPE_TENSOR && type->kind != ONXI_TYPE_SPARSE_TENSOR)
        type->inner = NULL;
}

/* the rule may modify dims, so it gets copies of those that the caller owns */
static onx_status copy_type(onxi_call *call, const onxi_type *from, onxi_type *to)
{
    *to = *from;
    if (!from->ranked)
        return ONX_OK;
    to->dims = ONXI_ARRAY(call->arena, onxi_dim, from->rank + 1u);
    if (!to->dims)
        return ONX_E_MEMORY;
    memcpy(to->dims, from->dims, from->rank * sizeof *to->dims);
    return ONX_OK;
}

/* The body takes an optional and returns its contents: the output has the element type of the optional. The conformance
 * tests of ONNX contain such loops. */
static bool fills_in(const onxi_type *carried, const onxi_type *given)
{
    return carried->kind == ONXI_TYPE_OPTIONAL && carried->inner && carried->inner->kind == given->kind;
}

/* The type of the iteration number or the condition: a single element in the rank that the body wants. */
static onx_status loop_formal(onxi_call *call, const onx_graph *body, uint32_t input, onx_dtype dtype, onxi_type *out)
{
    const int declared = onxi_loop_rank(body, input);
    const uint32_t rank = declared < 0 ? 0 : (uint32_t)declared;
    if (declared < 0 && input == 1 && onxi_call_ranked(call, 1)) { /* as the node has it */
        *out = *call->inputs[1];
        return ONX_OK;
    }
    *out = (onxi_type){ .kind = ONXI_TYPE_TENSOR, .dtype = (uint8_t)dtype, .ranked = true, .rank = rank };
    out->dims = ONXI_ARRAY(call->arena, onxi_dim, rank + 1u);
    if (!out->dims)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < rank; i++)
        out->dims[i] = 1;
    return ONX_OK;
}

/* Infers the body repeatedly, until the shapes of loop-carried values do not change any more. */
static onx_status loop_fixed_point(onxi_call *call, const onx_graph *body, onxi_type *carried, uint32_t carried_count,
                                   onxi_type *outputs)
{
    enum { PASSES = 4 };
    uint32_t count = carried_count + 2;
    onxi_type *inputs = new_types(call, count);
    if (!inputs)
        return ONX_E_MEMORY;
    for (int pass = 0; pass < PASSES; pass++) {
        bool stable = true;
        ONX_TRY(loop_formal(call, body, 0, ONX_INT64, &inputs[0]));
        ONX_TRY(loop_formal(call, body, 1, ONX_BOOL, &inputs[1]));
        for (uint32_t i = 0; i < carried_count; i++)
            ONX_TRY(copy_type(call, &carried[i], &inputs[i + 2]));
        ONX_TRY(call->ops->subgraph(call, body, inputs, count, outputs, body->output_count));
        for (uint32_t i = 0; i < carried_count; i++) {
            onxi_type joined;
            if (fills_in(&carried[i], &outputs[i + 1]))
                continue;
            ONX_TRY(onxi_call_join(call, &carried[i], &outputs[i + 1], "carried value", i, &joined));
            if (joined.kind == ONXI_TYPE_NONE &&
                carried[i].kind != ONXI_TYPE_NONE) { /* the element type stays, whatever the body infers */
                joined = carried[i];
                forget_shape(&joined);
            }
            if (same_shape(&joined, &carried[i]))
                continue;
            stable = false;
            carried[i] = joined;
            if (pass + 2 >= PASSES)
                forget_shape(&carried[i]);
        }
        if (stable)
            return ONX_OK;
    }
    return ONX_OK;
}

/* The shape of one iteration's output with a new leading axis. */
static onx_status scan_output(onxi_call *call, const onxi_type *element, uint32_t output, uint32_t axis,
                              onxi_dim length)
{
    onxi_dim *dims;
    if (element->kind == ONXI_TYPE_NONE)
        return ONX_OK;
    if (element->kind != ONXI_TYPE_TENSOR)
        return onxi_call_fail(call, "the body gives %s for scan output %u, expected a tensor", kinds[element->kind],
                              output);
    onxi_call_output_unranked(call, output, element->dtype);
    if (!element->ranked)
        return ONX_OK;
    ONX_TRY(onxi_call_output(call, output, element->dtype, element->rank + 1, &dims));
    for (uint32_t i = 0, k = 0; i <= element->rank; i++)
        dims[i] = i == axis ? length : element->dims[k++];
    return ONX_OK;
}

static bool is_true(onx_doc *doc, onx_arena *arena, const onx_tensor *tensor)
{
    onxi_known_ints value;
    return tensor && !onx_tensor_is_external(tensor) && onxi_known_ints_of_tensor(doc, arena, tensor, &value) &&
           value.count == 1 && onxi_dim_is_const(value.elements[0]) && value.elements[0] != 0;
}

/* If several nodes define the name, the last one counts; in a valid graph there is only one. */
bool onxi_loop_goes_on(onx_doc *doc, onx_arena *arena, const onx_graph *body,
                       bool (*is)(void *data, const onx_node *node, onxi_op_id id), void *data)
{
    enum { STEPS = 8 };
    if (!body->output_count || body->input_count < 2)
        return false;
    onx_str name = onx_view(body->output[0]->name);
    for (int step = 0; step < STEPS; step++) {
        const onx_node *maker = NULL;
        for (uint32_t i = 0; i < body->node_count; i++)
            if (body->node[i]->output_count && onx_str_equal(onx_view(body->node[i]->output[0]), name))
                maker = body->node[i];
        if (!maker && onx_str_equal(onx_view(body->input[1]->name), name))
            return true;
        for (uint32_t i = 0; !maker && i < body->initializer_count; i++)
            if (onx_str_equal(onx_view(body->initializer[i]->name), name))
                return is_true(doc, arena, body->initializer[i]);
        if (!maker)
            return false;
        const onx_attribute *value = onx_node_attribute(maker, "value");
        uint32_t count;
        onx_tensor *const *tensor = value ? onx_attribute_value(value, ONX_SLOT_T, &count) : NULL;
        if (is(data, maker, ONXI_ID_Constant))
            return tensor && is_true(doc, arena, *tensor);
        if ((!is(data, maker, ONXI_ID_Identity) && !is(data, maker, ONXI_ID_Cast)) || maker->input_count != 1)
            return false;
        name = onx_view(maker->input[0]);
    }
    return false;
}

int onxi_loop_rank(const onx_graph *body, uint32_t input)
{
    const onx_type *type = input < body->input_count ? body->input[input]->type : NULL;
    const onx_type_tensor *tensor = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    const onx_tensor_shape *shape = tensor ? tensor->shape : NULL;
    if (!shape)
        return -1;
    if (shape->dim_count > ONX_RANK_MAX)
        return 0;
    for (uint32_t i = 0; i < shape->dim_count; i++)
        if (ONX_HAS(dimension, shape->dim[i], dim_value) && shape->dim[i]->dim_value != 1)
            return 0;
    return (int)shape->dim_count;
}

static bool is_called(void *data, const onx_node *node, onxi_op_id id)
{
    onxi_call *call = data;
    return call->ops->which(call, node) == id;
}

/* The number of iterations; UNKNOWN if the condition may end the loop earlier. */
static onxi_dim loop_length(onxi_call *call, const onx_graph *body)
{
    const onxi_known_ints *trips = onxi_call_value(call, 0);
    int64_t first;
    if (onxi_call_has_input(call, 1)) {
        if (!onxi_call_const_int(call, 1, &first))
            return ONXI_DIM_UNKNOWN;
        if (!first)
            return 0;
    }
    /* With a trip count and without a condition, that of the body is ignored. */
    if ((onxi_call_has_input(call, 1) || !onxi_call_has_input(call, 0)) &&
        !onxi_loop_goes_on(call->doc, call->arena, body, is_called, call))
        return ONXI_DIM_UNKNOWN;
    return trips && trips->count == 1 ? onxi_dim_max(call->dims, trips->elements[0], 0) : ONXI_DIM_UNKNOWN;
}

onx_status onxi_rule_loop(onxi_call *call)
{
    const onx_graph *body = onxi_call_graph(call, "body");
    uint32_t carried_count = call->input_count < 2 ? 0 : call->input_count - 2;
    if (!body)
        return onxi_call_fail(call, "attribute body is missing");
    onxi_type *carried = new_types(call, carried_count), *outputs = new_types(call, body->output_count);
    if (!carried || !outputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < carried_count; i++) {
        if (onxi_call_has_input(call, i + 2))
            carried[i] = *call->inputs[i + 2];
        if (i < call->output_count) { /* use the declared type if the body tells nothing */
            call->outputs[i] = carried[i];
            forget_shape(&call->outputs[i]);
        }
    }
    ONX_TRY(onxi_call_body_takes(call, body, "body", carried_count + 2));
    if (body->output_count < carried_count + 1 || body->output_count != call->output_count + 1)
        return onxi_call_fail(call, "body has %u outputs, the node %u and %u carried values", body->output_count,
                              call->output_count, carried_count);
    ONX_TRY(loop_fixed_point(call, body, carried, carried_count, outputs));
    for (uint32_t i = 0; i < carried_count && i < call->output_count; i++)
        call->outputs[i] = fills_in(&carried[i], &outputs[i + 1]) ? outputs[i + 1] : carried[i];
    onxi_dim length = loop_length(call, body);
    for (uint32_t i = carried_count; i < call->output_count; i++)
        ONX_TRY(scan_output(call, &outputs[i + 1], i, 0, length));
    return ONX_OK;
}

/* ---- Scan ---- */

/* A list of `want` axes; all 0 if absent. */
static onx_status scan_axes(onxi_call *call, const char *name, uint32_t want, const int64_t **out)
{
    uint32_t count;
    *out = onxi_call_ints(call, name, &count);
    if (*out && count != want)
        return onxi_call_fail(call, "attribute %s has %u values, expected %u", name, count, want);
    return ONX_OK;
}

/* The shape of one slice: without axis `axis`, whose size has to be equal for all inputs. */
static onx_status scan_element(onxi_call *call, const onxi_type *x, int64_t axis, onxi_dim *length, onxi_type *out)
{
    uint32_t at;
    *out = *x;
    if (!x->ranked)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, axis, x->rank, &at));
    ONX_TRY(onxi_call_unify(call, *length, x->dims[at], "the length of the sequences", length));
    out->dims = ONXI_ARRAY(call->arena, onxi_dim, x->rank);
    if (!out->dims)
        return ONX_E_MEMORY;
    out->rank = x->rank - 1;
    for (uint32_t i = 0, k = 0; i < x->rank; i++)
        if (i != at)
            out->dims[k++] = x->dims[i];
    return ONX_OK;
}

/* A state variable: its input and the output of the body have the same shape. */
static onx_status scan_state(onxi_call *call, uint32_t i, const onxi_type *in, const onxi_type *out)
{
    onxi_dim *dims;
    if (out->kind == ONXI_TYPE_TENSOR && in->dtype && out->dtype && in->dtype != out->dtype)
        return onxi_call_fail(call, "state variable %u has element type %s and becomes %s", i,
                              onx_dtype_name(in->dtype), onx_dtype_name(out->dtype));
    if (out->kind != ONXI_TYPE_TENSOR || !out->ranked || !in->ranked)
        return ONX_OK;
    if (in->rank != out->rank)
        return onxi_call_fail(call, "state variable %u has rank %u and becomes one of rank %u", i, in->rank, out->rank);
    ONX_TRY(onxi_call_output(call, i, in->dtype ? in->dtype : out->dtype, in->rank, &dims));
    for (uint32_t k = 0; k < in->rank; k++)
        ONX_TRY(onxi_call_unify(call, in->dims[k], out->dims[k], "a dimension of a state variable", &dims[k]));
    return ONX_OK;
}

/* Version 8 has a leading batch axis, and optional sequence lengths as its first input. */
static onx_status drop_batch(onxi_call *call, onxi_type *type, onxi_dim *batch)
{
    onxi_type whole = *type;
    return scan_element(call, &whole, 0, batch, type);
}

onx_status onxi_rule_scan(onxi_call *call)
{
    const onx_graph *body = onxi_call_graph(call, "body");
    bool batched = call->schema->since < 9;
    uint32_t first = batched ? 1 : 0;
    int64_t scan_count = onxi_call_int(call, "num_scan_inputs");
    onxi_dim length = ONXI_DIM_UNKNOWN, batch = ONXI_DIM_UNKNOWN;
    const int64_t *in_axes = NULL, *out_axes = NULL;
    if (!body)
        return onxi_call_fail(call, "attribute body is missing");
    if (call->input_count < first || scan_count < 0 || scan_count > (int64_t)(call->input_count - first))
        return onxi_call_fail(call, "attribute num_scan_inputs is %lld, the node has %u inputs", (long long)scan_count,
                              call->input_count);
    uint32_t count = call->input_count - first, states = count - (uint32_t)scan_count;
    if (states > call->output_count)
        return onxi_call_fail(call, "the node has %u outputs and %u state variables", call->output_count, states);
    if (!batched) {
        ONX_TRY(scan_axes(call, "scan_input_axes", (uint32_t)scan_count, &in_axes));
        ONX_TRY(scan_axes(call, "scan_output_axes", call->output_count - states, &out_axes));
    }
    onxi_type *inputs = new_types(call, count), *outputs = new_types(call, call->output_count);
    if (!inputs || !outputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        const onxi_type *x = onxi_call_tensor(call, i + first);
        if (!x)
            return call->inputs[i + first] && call->inputs[i + first]->kind == ONXI_TYPE_NONE
                       ? ONX_OK
                       : onxi_call_fail(call, "input %u is not a tensor", i + first);
        inputs[i] = *x;
        if (i < states)
            call->outputs[i] = *x;
        if (batched)
            ONX_TRY(drop_batch(call, &inputs[i], &batch));
        onxi_type whole = inputs[i];
        if (i >= states)
            ONX_TRY(scan_element(call, &whole, in_axes ? in_axes[i - states] : 0, &length, &inputs[i]));
    }
    ONX_TRY(onxi_call_body_takes(call, body, "body", count));
    if (body->output_count != call->output_count)
        return onxi_call_fail(call, "body has %u outputs, the node %u", body->output_count, call->output_count);
    ONX_TRY(call->ops->subgraph(call, body, inputs, count, outputs, call->output_count));
    for (uint32_t i = 0; i < states && !batched; i++)
        ONX_TRY(scan_state(call, i, &inputs[i], &outputs[i]));
    for (uint32_t i = states; i < call->output_count; i++) {
        uint32_t axis = 0;
        if (out_axes && outputs[i].ranked)
            ONX_TRY(onxi_call_axis(call, out_axes[i - states], outputs[i].rank + 1, &axis));
        ONX_TRY(scan_output(call, &outputs[i], i, axis, length));
        if (batched && call->outputs[i].ranked) {
            onxi_type element = call->outputs[i];
            ONX_TRY(scan_output(call, &element, i, 0, batch));
        }
    }
    return ONX_OK;
}
