/* transform_trainable_step.c - the training step: the loss of an output, gradients of the weights, the optimiser's
 * updates, and its state. */
#include "infer/infer.h"
#include "transform/transform_trainable.h"

static const onxi_loss losses[] = {
#define LOSS(name, summary, numbers, label, made_by, instead, text, metric, metric_text)                               \
    { { name, summary, numbers, 0 }, label, made_by, instead, text, metric, metric_text },
#include "transform/transform_trainable.def"
};

static const onxi_optimizer optimizers[] = {
#define OPTIMIZER(name, summary, numbers, rate, states, head, text, decayed)                                           \
    { { name, summary, numbers, rate }, states, head, text, decayed },
#include "transform/transform_trainable.def"
};

enum { LOSSES = sizeof losses / sizeof *losses, OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

const onx_train_choice *onx_train_loss_get(uint32_t index)
{
    return index < LOSSES ? &losses[index].choice : NULL;
}

const onx_train_choice *onx_train_optimizer_get(uint32_t index)
{
    return index < OPTIMIZERS ? &optimizers[index].choice : NULL;
}

/* ---- rows and their parameters ---- */

static const onxi_loss *find_loss(onx_str name)
{
    for (uint32_t i = 0; i < LOSSES; i++)
        if (onx_str_is(name, losses[i].choice.name))
            return &losses[i];
    return NULL;
}

static const onxi_optimizer *find_optimizer(onx_str name)
{
    for (uint32_t i = 0; i < OPTIMIZERS; i++)
        if (onx_str_is(name, optimizers[i].choice.name))
            return &optimizers[i];
    return NULL;
}

/* Sets the parameters of a row, from "beta1=0.9 beta2=0.999". */
static onx_status set_numbers(onxi_trainable *t, const char *list)
{
    for (const char *at = list; *at;) {
        const char *is = strchr(at, '='), *end = at + strcspn(at, " ");
        double value = 0;
        bool overflow;
        if (!is || !onxi_parse_f64(onx_str_make(is + 1, (size_t)(end - is - 1)), &value, &overflow))
            return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "a row has no numbers like %s", list);
        ONX_TRY(onxi_trainable_float(t, onx_str_make(at, (size_t)(is - at)), value));
        at = *end ? end + 1 : end;
    }
    return ONX_OK;
}

static onx_status take_numbers(onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    ONX_TRY(set_numbers(t, t->loss->choice.numbers));
    ONX_TRY(set_numbers(t, t->optimizer->choice.numbers));
    const uint32_t known = t->number_count;
    for (uint32_t i = 0; i < o->number_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < known; k++)
            found |= onx_str_equal(onx_view(t->numbers[k]->name), o->number[i].name);
        if (!found)
            return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "%s and %s have no number %.*s",
                             t->loss->choice.name, t->optimizer->choice.name, ONX_ARG(o->number[i].name));
        ONX_TRY(onxi_trainable_float(t, o->number[i].name, o->number[i].value));
    }
    return onxi_trainable_float(t, onx_str_of("weight_decay"), o->weight_decay);
}

onx_status onxi_trainable_choose(onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    const onx_str loss = o->loss.len ? o->loss : onx_str_of("cross-entropy");
    const onx_str optimizer = o->optimizer.len ? o->optimizer : onx_str_of("adam");
    if (!(t->loss = find_loss(loss)))
        return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "there is no loss %.*s", ONX_ARG(loss));
    if (!(t->optimizer = find_optimizer(optimizer)))
        return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "there is no optimiser %.*s", ONX_ARG(optimizer));
    return take_numbers(t);
}

/* ---- the label ---- */

static onx_status take_from_maker(onxi_trainable *t, int64_t rank)
{
    const onx_def def = onx_index_def(t->index, onx_index_find(t->index, onx_view(t->y)));
    const onx_node *node = def.kind == ONX_DEF_NODE ? t->graph->node[def.index] : NULL;
    const onxi_op_id op = node ? onxi_trainable_op(t, node) : ONXI_ID_NONE;
    if (op == ONXI_ID_NONE)
        return ONX_OK;
    if ((op == ONXI_ID_Softmax || op == ONXI_ID_LogSoftmax) && !t->options->axis_given)
        t->axis = onxi_bind_int(onxi_trainable_bound(t, node), node, "axis");
    if (t->axis < 0)
        t->axis += rank;
    if (op != t->loss->made_by)
        return ONX_OK;
    t->y = node->input[0];
    t->loss = find_loss(onx_str_of(t->loss->instead));
    return ONX_OK;
}

static onx_status make_label_type(onxi_trainable *t, const onx_type *y, onx_type **out)
{
    ONX_TRY(onxi_facts_show(t->arena, y, out));
    if (t->loss->label != ONXI_LABEL_CLASS)
        return ONX_OK;
    ONX_SET(type_tensor, (*out)->tensor_type, elem_type, ONX_INT64);
    onx_tensor_shape *shape = (*out)->tensor_type->shape;
    onx_list_remove(shape->dim, &shape->dim_count, (uint32_t)t->axis, sizeof *shape->dim);
    return ONX_OK;
}

onx_status onxi_trainable_label(onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    const onx_str name = o->label.len ? o->label : onx_str_of("label");
    const onx_type *type = onxi_values_type(&t->values, &t->scope, onx_view(t->y));
    const int rank = onxi_type_rank(type), dtype = onxi_type_dtype(type);
    onx_type *label;
    ONX_TRY(t->values.status);
    if (rank < 0 || (dtype != ONX_FLOAT && dtype != ONX_DOUBLE))
        return onxi_fail(t->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "a loss needs a tensor of float or double whose rank is known, and %.*s is not seen to be one",
                         ONX_ARG(onx_view(t->y)));
    t->axis = o->axis_given ? o->axis : rank == 3 ? 2 : 1;
    ONX_TRY(take_from_maker(t, rank));
    if (t->loss->label == ONXI_LABEL_NONE)
        return ONX_OK;
    if (t->loss->label == ONXI_LABEL_CLASS && (rank < 2 || t->axis < 1 || t->axis >= rank))
        return onxi_fail(t->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "%.*s has %d dimensions; classes are along one behind the first, which is the batch",
                         ONX_ARG(onx_view(t->y)), rank);
    if (onx_index_find(t->index, name) != ONX_NO_NAME)
        return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "the model has a value %.*s already", ONX_ARG(name));
    ONX_TRY(onx_arena_keep(t->arena, name, &t->label));
    ONX_TRY(make_label_type(t, type, &label));
    onx_value_info *info = onx_message_new(t->arena, ONX_KIND_VALUE_INFO);
    if (!info)
        return ONX_E_MEMORY;
    ONX_SET(value_info, info, name, t->label);
    ONX_SET(value_info, info, type, label);
    t->label_info = info;
    return onxi_names_take(&t->names, ONX_KIND_VALUE_INFO, info);
}

static onx_status add_input(onxi_trainable *t, onx_graph *graph, onx_value_info *info)
{
    void *list = graph->input;
    onx_value_info **place = onx_list_insert(t->arena, &list, &graph->input_count, graph->input_count, sizeof *place);
    if (!place)
        return ONX_E_MEMORY;
    graph->input = list;
    *place = info;
    return ONX_OK;
}

/* ---- the loss ---- */

/* Moves the class axis to axis 1, where the loss operators need it. */
static onx_status move_classes(onxi_trainable *t, onx_graph *graph, int rank, onx_bytes *y)
{
    int64_t perm[ONX_RANK_MAX] = { 0, t->axis };
    onx_bytes name;
    for (int i = 1, to = 2; i < rank; i++)
        if (i != t->axis)
            perm[to++] = i;
    ONX_TRY(onxi_trainable_ints(t, "perm", perm, (uint32_t)rank));
    ONX_TRY(onxi_names_make(&t->names, onx_view(*y), onx_str_of("classes"), &name));
    const onxi_text_nodes nodes = { .head = "(y) => (z)",
                                    .text = "z = Transpose <perm: ints = @perm> (y)",
                                    .in = y,
                                    .out = &name,
                                    .in_count = 1,
                                    .out_count = 1 };
    ONX_TRY(onxi_trainable_put(t, graph, &nodes));
    *y = name;
    return ONX_OK;
}

/* Adds the loss and the metric of the value y as outputs. Graphs of different entries may use the same names for label
 * and outputs. */
onx_status onxi_trainable_loss(onxi_trainable *t, onx_graph *graph, onx_bytes y)
{
    const onx_type *type = onxi_values_type(&t->values, &t->scope, onx_view(t->y));
    const int rank = onxi_type_rank(type);
    onx_bytes in[2] = { y, t->label };
    if (t->label_info)
        ONX_TRY(add_input(t, graph, t->label_info));
    if (t->loss->label == ONXI_LABEL_CLASS && t->axis != 1)
        ONX_TRY(move_classes(t, graph, rank, &in[0]));
    onxi_text_nodes nodes = { .head = t->label_info ? "(y, label) => (loss)" : "(y) => (loss)",
                              .text = t->loss->text,
                              .in = in,
                              .out = &t->loss_name,
                              .in_count = t->label_info ? 2 : 1,
                              .out_count = 1,
                              .base = onx_str_of("loss") };
    if (!onx_view(t->loss_name).len)
        ONX_TRY(onxi_names_make(&t->names, nodes.base, (onx_str){ 0 }, &t->loss_name));
    ONX_TRY(onxi_trainable_put(t, graph, &nodes));
    ONX_TRY(onxi_trainable_output(t, graph, t->loss_name,
                                  onx_type_new_tensor(t->arena, (onx_dtype)onxi_type_dtype(type), NULL, 0)));
    if (!t->loss->metric)
        return ONX_OK;
    nodes.text = t->loss->metric_text;
    nodes.head = "(y, label) => (accuracy)";
    nodes.base = onx_str_of(t->loss->metric);
    nodes.out = &t->metric_name;
    if (!onx_view(t->metric_name).len)
        ONX_TRY(onxi_names_make(&t->names, nodes.base, (onx_str){ 0 }, &t->metric_name));
    ONX_TRY(onxi_trainable_put(t, graph, &nodes));
    return onxi_trainable_output(t, graph, t->metric_name, onx_type_new_tensor(t->arena, ONX_FLOAT, NULL, 0));
}

/* ---- gradients ---- */

static onx_status add_string(onxi_trainable *t, onx_attribute *a, onx_bytes text, uint32_t *room)
{
    if (!ONXI_GROW_IN(t->arena, a->strings, *room, onxi_list_room((uint64_t)a->count + 1)))
        return ONX_E_MEMORY;
    a->strings[a->count++] = text;
    return ONX_OK;
}

static onx_status add_attribute(onxi_trainable *t, onx_node *node, onx_attribute *a)
{
    void *list = node->attribute;
    onx_attribute **place =
        a ? onx_list_insert(t->arena, &list, &node->attribute_count, node->attribute_count, sizeof *place) : NULL;
    if (!place)
        return ONX_E_MEMORY;
    node->attribute = list;
    *place = a;
    return ONX_OK;
}

static onx_status push_name(onxi_trainable *t, onx_bytes **list, uint32_t *count, onx_bytes name)
{
    ONX_TRY(onx_list_add_text(t->arena, list, count, (onx_str){ 0 }));
    (*list)[*count - 1] = name;
    return ONX_OK;
}

/* The inputs of the model that the loss depends on. */
static onx_status add_constants(onxi_trainable *t, onx_node *node, onx_attribute *zs, uint32_t *room)
{
    for (uint32_t i = 0; i < t->graph->input_count; i++) {
        const onx_bytes name = t->graph->input[i]->name;
        uint32_t count;
        bool used = false;
        const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, onx_view(name)), &count);
        for (uint32_t k = 0; k < count; k++)
            used |= t->needed[use[k].node];
        for (uint32_t k = 0; k < t->weight_count && used; k++)
            used = !onx_str_equal(onx_view(t->weights[k].tensor->name), onx_view(name));
        if (!used)
            continue;
        ONX_TRY(add_string(t, zs, name, room));
        ONX_TRY(push_name(t, &node->input, &node->input_count, name));
    }
    if (!t->label_info)
        return ONX_OK;
    ONX_TRY(add_string(t, zs, t->label, room));
    return push_name(t, &node->input, &node->input_count, t->label);
}

static onx_status add_gradients(onxi_trainable *t)
{
    onx_node *node = onx_graph_add_node(t->arena, t->algorithm, "Gradient", "", "");
    onx_attribute *xs = onxi_attribute_new(t->arena, "xs", ONX_ATTR_STRINGS);
    onx_attribute *zs = onxi_attribute_new(t->arena, "zs", ONX_ATTR_STRINGS);
    uint32_t x_room = 0, z_room = 0;
    if (!node || !xs || !zs || onx_arena_keep(t->arena, onx_str_of(ONXI_TRAINING_DOMAIN), &node->domain) != ONX_OK)
        return ONX_E_MEMORY;
    node->has |= onx_node_has_domain;
    for (uint32_t i = 0; i < t->weight_count; i++) {
        onxi_weight *w = &t->weights[i];
        if (!w->trained)
            continue;
        ONX_TRY(add_string(t, xs, w->tensor->name, &x_room));
        ONX_TRY(push_name(t, &node->input, &node->input_count, w->tensor->name));
        ONX_TRY(onxi_names_make(&t->names, onx_view(w->tensor->name), onx_str_of("gradient"), &w->gradient));
        ONX_TRY(push_name(t, &node->output, &node->output_count, w->gradient));
    }
    ONX_TRY(add_constants(t, node, zs, &z_room));
    ONX_TRY(add_attribute(t, node, xs));
    if (zs->count)
        ONX_TRY(add_attribute(t, node, zs));
    return onx_node_add_string(t->arena, node, "y", onx_view(t->loss_name)) ? ONX_OK : ONX_E_MEMORY;
}

/* Scales all gradients by a common factor if their total norm exceeds the maximum. */
static onx_status clip_gradients(onxi_trainable *t)
{
    onx_node *sum = onx_graph_add_node(t->arena, t->algorithm, "Sum", "", "");
    onx_bytes squares, factor;
    if (!sum)
        return ONX_E_MEMORY;
    t->algorithm->node_count--; /* appended again after the sum that it reads */
    onxi_text_nodes nodes = { .out_count = 1 };
    for (uint32_t i = 0; i < t->weight_count; i++) {
        onx_bytes part;
        if (!t->weights[i].trained)
            continue;
        ONX_TRY(onxi_names_make(&t->names, onx_view(t->weights[i].gradient), onx_str_of("square"), &part));
        ONX_TRY(push_name(t, &sum->input, &sum->input_count, part));
        nodes.head = "(g) => (s)";
        nodes.text = "q = ReduceSumSquare <keepdims = 0> (g)  s = Cast <to = 1> (q)";
        nodes.in = &t->weights[i].gradient;
        nodes.out = &part;
        nodes.in_count = 1;
        nodes.base = onx_view(t->weights[i].gradient);
        ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    }
    ONX_TRY(onxi_names_make(&t->names, onx_str_of("gradients"), onx_str_of("square"), &squares));
    ONX_TRY(onxi_names_make(&t->names, onx_str_of("gradients"), onx_str_of("factor"), &factor));
    ONX_TRY(push_name(t, &sum->output, &sum->output_count, squares));
    ONX_TRY(onxi_trainable_add_node(t, t->algorithm, sum));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("clip_norm"), t->options->clip_norm));
    nodes = (onxi_text_nodes){ .head = "(s) => (f)",
                               .text = "n = Sqrt (s)  tiny = Constant <value_float = 1e-12> ()  m = Max (n, tiny)"
                                       "  c = Constant <value_float: float = @clip_norm> ()  q = Div (c, m)"
                                       "  one = Constant <value_float = 1.0> ()  f = Min (q, one)",
                               .in = &squares,
                               .out = &factor,
                               .in_count = 1,
                               .out_count = 1,
                               .base = onx_str_of("gradients") };
    ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    for (uint32_t i = 0; i < t->weight_count; i++) {
        const onx_bytes in[2] = { t->weights[i].gradient, factor };
        if (!t->weights[i].trained)
            continue;
        ONX_TRY(onxi_names_make(&t->names, onx_view(in[0]), onx_str_of("clipped"), &t->weights[i].gradient));
        nodes = (onxi_text_nodes){ .head = "(g, f) => (c)",
                                   .text = "k = CastLike (f, g)  c = Mul (g, k)",
                                   .in = in,
                                   .out = &t->weights[i].gradient,
                                   .in_count = 2,
                                   .out_count = 1,
                                   .base = onx_view(in[0]) };
        ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    }
    return ONX_OK;
}

/* ---- updates ---- */

/* A state for a weight, initially zero, which an update replaces. */
static onx_status add_state(onxi_trainable *t, const onxi_weight *w, onx_bytes name)
{
    uint64_t count;
    const size_t size = w->tensor->data_type == ONX_DOUBLE ? sizeof(double) : sizeof(float);
    if (!onx_tensor_count(w->tensor, &count))
        return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "the size of %.*s is out of range",
                         ONX_ARG(onx_view(w->tensor->name)));
    void *zeros = onxi_arena_array(t->scratch, (size_t)count + 1, size);
    onx_tensor *tensor = zeros ? onx_tensor_new(t->arena, (onx_dtype)w->tensor->data_type, w->tensor->dims,
                                                w->tensor->dims_count, zeros, "")
                               : NULL;
    if (!tensor)
        return ONX_E_MEMORY;
    ONX_SET(tensor, tensor, name, name);
    return onx_graph_add_initializer(t->arena, t->algorithm, tensor) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status rate_like(onxi_trainable *t, const onxi_weight *w, onx_bytes *cast, onx_bytes *out)
{
    *out = t->rate;
    if (w->tensor->data_type == ONX_FLOAT)
        return ONX_OK;
    *out = *cast;
    if (onx_view(*cast).len)
        return ONX_OK;
    ONX_TRY(onxi_names_make(&t->names, onx_view(t->rate), onx_str_of("double"), cast));
    *out = *cast;
    const onxi_text_nodes nodes = { .head = "(x) => (y)",
                                    .text = "y = Cast <to = 11> (x)",
                                    .in = &t->rate,
                                    .out = cast,
                                    .in_count = 1,
                                    .out_count = 1 };
    return onxi_trainable_put(t, t->algorithm, &nodes);
}

static onx_status update_weight(onxi_trainable *t, const onxi_weight *w, onx_bytes step, onx_bytes *cast)
{
    const onxi_optimizer *o = t->optimizer;
    const onx_str base = onx_view(w->tensor->name);
    const bool decays = t->options->weight_decay > 0 && w->tensor->dims_count > 1;
    onx_bytes in[4 + ONXI_OPTIMIZER_STATES_MAX] = { w->tensor->name, w->gradient, { 0 }, step };
    onx_bytes out[1 + ONXI_OPTIMIZER_STATES_MAX];
    ONX_TRY(rate_like(t, w, cast, &in[2]));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("weight_decay"), decays ? t->options->weight_decay : 0));
    ONX_TRY(onxi_names_make(&t->names, base, onx_str_of("new"), &out[0]));
    for (uint32_t i = 0; i < o->states; i++) {
        ONX_TRY(onxi_names_make(&t->names, base, onx_str_of("state"), &in[4 + i]));
        ONX_TRY(onxi_names_make(&t->names, onx_view(in[4 + i]), onx_str_of("new"), &out[1 + i]));
        ONX_TRY(add_state(t, w, in[4 + i]));
    }
    const onxi_text_nodes nodes = { .head = o->head,
                                    .text = decays && o->decayed ? o->decayed : o->text,
                                    .in = in,
                                    .out = out,
                                    .in_count = 4 + o->states,
                                    .out_count = 1 + o->states,
                                    .base = base };
    ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    for (uint32_t i = 0; i <= o->states; i++) {
        ONX_TRY(onxi_trainable_output(t, t->algorithm, out[i], onxi_trainable_type_of(t, w->tensor)));
        ONX_TRY(onxi_trainable_update(t, i ? in[3 + i] : w->tensor->name, out[i]));
    }
    return ONX_OK;
}

/* The learning rate, an input with a default, and the step number, which increments itself. */
static onx_status add_numbers(onxi_trainable *t, onx_bytes *step)
{
    onx_bytes before;
    const double rate = t->options->rate > 0 ? t->options->rate : t->optimizer->choice.rate;
    ONX_TRY(onxi_names_make(&t->names, onx_str_of("rate"), (onx_str){ 0 }, &t->rate));
    ONX_TRY(onxi_names_make(&t->names, onx_str_of("step"), (onx_str){ 0 }, &before));
    ONX_TRY(onxi_names_make(&t->names, onx_view(before), onx_str_of("new"), step));
    ONX_TRY(onxi_trainable_scalar(t, t->algorithm, t->rate, ONX_FLOAT, rate));
    ONX_TRY(onxi_trainable_scalar(t, t->algorithm, before, ONX_INT64, 0));
    onx_value_info *info = onx_message_new(t->arena, ONX_KIND_VALUE_INFO);
    onx_type *type = onx_type_new_tensor(t->arena, ONX_FLOAT, NULL, 0);
    if (!info || !type)
        return ONX_E_MEMORY;
    ONX_SET(value_info, info, name, t->rate);
    ONX_SET(value_info, info, type, type);
    ONX_TRY(add_input(t, t->algorithm, info));
    const onxi_text_nodes nodes = { .head = "(n) => (m)",
                                    .text = "one = Constant <value_int = 1> ()  m = Add (n, one)",
                                    .in = &before,
                                    .out = step,
                                    .in_count = 1,
                                    .out_count = 1,
                                    .base = onx_view(before) };
    ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    ONX_TRY(onxi_trainable_output(t, t->algorithm, *step, onx_type_new_tensor(t->arena, ONX_INT64, NULL, 0)));
    return onxi_trainable_update(t, before, *step);
}

onx_status onxi_trainable_step(onxi_trainable *t)
{
    onx_bytes step, cast = { 0 };
    ONX_TRY(add_gradients(t));
    if (t->options->clip_norm > 0)
        ONX_TRY(clip_gradients(t));
    ONX_TRY(add_numbers(t, &step));
    for (uint32_t i = 0; i < t->weight_count; i++)
        if (t->weights[i].trained)
            ONX_TRY(update_weight(t, &t->weights[i], step, &cast));
    return ONX_OK;
}
