/* transform_trainable_step.c - the training step: the loss of an output, gradients of the weights, the optimiser's
 * updates, and its state. */
#include "infer/infer.h"
#include "transform/transform_part.h"
#include "transform/transform_precision.h"
#include "transform/transform_trainable.h"

static const onxi_loss losses[] = {
#define LOSS(name, summary, numbers, label, made_by, instead, text, metric, metric_text)                               \
    { { name, summary, numbers, 0 }, label, made_by, instead, text, metric, metric_text },
#include "transform/transform_trainable.def"
};

static const onxi_optimizer optimizers[] = {
#define OPTIMIZER(name, summary, numbers, rate, shapes, shared, rank, matrix, text, decay)                             \
    { { name, summary, numbers, rate }, shapes, shared, rank, matrix, text, decay },
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

/* A parameter as a float, as an integer, and as doubles: the number, and 1 minus it. */
static onx_status set_number(onxi_trainable *t, onx_str name, double value)
{
    static const struct {
        const char *suffix;
        double sign, base;
    } forms[] = { { "number", 1, 0 }, { "rest", -1, 1 } };
    ONX_TRY(onxi_trainable_float(t, name, value));
    const onx_str integer = onxi_arena_printf(t->scratch, "%.*s_integer", ONX_ARG(name));
    if (!integer.ptr)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_trainable_int(t, integer.ptr, value > -1e18 && value < 1e18 ? (int64_t)value : 0));
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const double number = forms[i].base + forms[i].sign * value;
        const onx_str form = onxi_arena_printf(t->scratch, "%.*s_%s", ONX_ARG(name), forms[i].suffix);
        if (!form.ptr)
            return ONX_E_MEMORY;
        ONX_TRY(onxi_trainable_tensor(t, form.ptr, onx_tensor_new(t->arena, ONX_DOUBLE, NULL, 0, &number, NULL)));
    }
    return ONX_OK;
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
        ONX_TRY(set_number(t, onx_str_make(at, (size_t)(is - at)), value));
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
            found |= t->numbers[k]->type == ONX_ATTR_FLOAT &&
                     onx_str_equal(onx_view(t->numbers[k]->name), o->number[i].name);
        if (!found)
            return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "%s and %s have no number %.*s",
                             t->loss->choice.name, t->optimizer->choice.name, ONX_ARG(o->number[i].name));
        ONX_TRY(set_number(t, o->number[i].name, o->number[i].value));
    }
    return set_number(t, onx_str_of("weight_decay"), o->weight_decay);
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

static onx_status take_from_maker(onxi_trainable *t)
{
    const onx_def def = onx_index_def(t->index, onx_index_find(t->index, onx_view(t->y)));
    const onx_node *node = def.kind == ONX_DEF_NODE ? t->graph->node[def.index] : NULL;
    const onxi_op_id op = node ? onxi_trainable_op(t, node) : ONXI_ID_NONE;
    if (op == ONXI_ID_NONE)
        return ONX_OK;
    if ((op == ONXI_ID_Softmax || op == ONXI_ID_LogSoftmax) && !t->options->axis_given)
        t->axis = onxi_bind_int(onxi_trainable_bound(t, node), node, "axis");
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
    t->axis = o->axis_given ? o->axis : rank == 3 ? 2 : rank > 1;
    ONX_TRY(take_from_maker(t));
    if (t->axis < 0)
        t->axis += rank;
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
    ONX_TRY(onxi_trainable_int(t, "axis", t->axis));
    ONX_TRY(onxi_trainable_ints(t, "axis_list", &t->axis, 1));
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

/* Limits each element of the gradients. */
static onx_status clip_values(onxi_trainable *t)
{
    ONX_TRY(onxi_trainable_float(t, onx_str_of("clip_value"), t->options->clip_value));
    for (uint32_t i = 0; i < t->weight_count; i++) {
        const onx_bytes in = t->weights[i].gradient;
        if (!t->weights[i].trained)
            continue;
        ONX_TRY(onxi_names_make(&t->names, onx_view(in), onx_str_of("limited"), &t->weights[i].gradient));
        const onxi_text_nodes nodes = {
            .head = "(g) => (c)",
            .text =
                "k0 = Constant <value_float: float = @clip_value> ()  k = CastLike (k0, g)  n = Neg (k)  c = Clip (g, n, k)",
            .in = &in,
            .out = &t->weights[i].gradient,
            .in_count = 1,
            .out_count = 1,
            .base = onx_view(in)
        };
        ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    }
    return ONX_OK;
}

/* ---- updates ---- */

/* The shape of a state, by its letter in the row. */
static void shape_of_state(const onxi_trainable *t, const onxi_weight *w, char letter, int64_t *dims, uint32_t *rank)
{
    const onx_tensor *x = w->tensor;
    const bool matrix = x->dims_count >= 2 && x->dims_count <= t->optimizer->rank;
    *rank = letter == 'n' && matrix ? 0 : x->dims_count;
    for (uint32_t i = 0; i < *rank; i++)
        dims[i] = x->dims[i];
    if (letter == 'r' && matrix)
        dims[*rank - 1] = 1;
    if (letter == 'c' && matrix)
        dims[*rank - 2] = 1;
    if (letter == 'c' && !matrix)
        *rank = 0;
}

/* A state for a weight, initially zero, which an update replaces. */
static onx_status add_state(onxi_trainable *t, const onxi_weight *w, char letter, onx_bytes name, onx_type **type)
{
    uint64_t count = 1;
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX];
    const size_t size = w->tensor->data_type == ONX_DOUBLE ? sizeof(double) : sizeof(float);
    shape_of_state(t, w, letter, dims, &rank);
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, (uint64_t)dims[i], &count) || count >= SIZE_MAX / size)
            return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "the size of %.*s is out of range",
                             ONX_ARG(onx_view(w->tensor->name)));
    void *zeros = onxi_arena_array(t->scratch, (size_t)count + 1, size);
    onx_tensor *tensor =
        zeros ? onx_tensor_new(t->arena, (onx_dtype)w->tensor->data_type, dims, rank, zeros, "") : NULL;
    if (!tensor || !(*type = onx_type_new_tensor(t->arena, (onx_dtype)w->tensor->data_type, dims, (int)rank)))
        return ONX_E_MEMORY;
    ONX_SET(tensor, tensor, name, name);
    return onx_graph_add_initializer(t->arena, t->algorithm, tensor) ? ONX_OK : ONX_E_MEMORY;
}

/* The numbers that all weights of one type and group share. */
typedef struct pace {
    bool real64;
    double factor; /* of the learning rate */
    onx_bytes rate, a, b;
    struct pace *next;
} pace;

static onx_status make_pace(onxi_trainable *t, onx_bytes step, pace *p)
{
    const bool plain = !p->real64 && p->factor >= 1 && p->factor <= 1;
    p->rate = t->rate;
    if (!plain) {
        const onxi_text_nodes nodes = {
            .head = "(x) => (y)",
            .text = p->real64 ? "c = Cast <to = 11> (x)  f0 = Constant <value_float: float = @factor> ()"
                                "  f = CastLike (f0, c)  y = Mul (c, f)"
                              : "f = Constant <value_float: float = @factor> ()  y = Mul (x, f)",
            .in = &t->rate,
            .out = &p->rate,
            .in_count = 1,
            .out_count = 1,
            .base = onx_view(t->rate)
        };
        ONX_TRY(onxi_trainable_float(t, onx_str_of("factor"), p->factor));
        ONX_TRY(onxi_names_make(&t->names, onx_view(t->rate), onx_str_of(p->real64 ? "double" : "group"), &p->rate));
        ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    }
    if (!t->optimizer->shared)
        return ONX_OK;
    const onx_bytes in[2] = { p->rate, step };
    onx_bytes out[2];
    ONX_TRY(onxi_names_make(&t->names, onx_str_of("pace"), (onx_str){ 0 }, &out[0]));
    ONX_TRY(onxi_names_make(&t->names, onx_str_of("pace"), onx_str_of("root"), &out[1]));
    const onxi_text_nodes nodes = { .head = "(rate, step) => (a, b)",
                                    .text = t->optimizer->shared,
                                    .in = in,
                                    .out = out,
                                    .in_count = 2,
                                    .out_count = 2,
                                    .base = onx_str_of("pace") };
    p->a = out[0];
    p->b = out[1];
    return onxi_trainable_put(t, t->algorithm, &nodes);
}

static onx_status find_pace(onxi_trainable *t, const onxi_weight *w, double factor, onx_bytes step, pace **list,
                            const pace **out)
{
    const bool real64 = w->tensor->data_type == ONX_DOUBLE;
    pace *p = *list;
    while (p && (p->real64 != real64 || p->factor < factor || p->factor > factor))
        p = p->next;
    *out = p;
    if (p)
        return ONX_OK;
    if (!(p = ONXI_NEW(t->scratch, pace)))
        return ONX_E_MEMORY;
    *p = (pace){ .real64 = real64, .factor = factor, .next = *list };
    *list = p;
    *out = p;
    return make_pace(t, step, p);
}

/* The text of a weight's update: its decay first, then the step, which reads w and h. */
static onx_status text_of(onxi_trainable *t, const onxi_weight *w, bool decays, const char **head, const char **text)
{
    const onxi_optimizer *o = t->optimizer;
    const bool matrix = o->matrix && w->tensor->dims_count >= 2 && w->tensor->dims_count <= o->rank;
    const char *const names[] = { "", ", p", ", p, q" }, *const made[] = { "", ", p_new", ", p_new, q_new" };
    const char *decay = decays ? o->decay : "";
    const size_t states = strlen(o->shapes);
    const onx_str line = onxi_arena_printf(t->scratch, "(x, g, rate, step%s%s) => (x_new%s)", o->shared ? ", a, b" : "",
                                           names[states], made[states]);
    const onx_str all =
        onxi_arena_printf(t->scratch, "%s%s%s%s", strstr(decay, " w = ") ? "" : "w = Identity (x)  ",
                          strstr(decay, " h = ") ? "" : "h = Identity (g)  ", decay, matrix ? o->matrix : o->text);
    *head = line.ptr;
    *text = all.ptr;
    return line.ptr && all.ptr ? ONX_OK : ONX_E_MEMORY;
}

static const onx_train_group *group_of(const onxi_trainable *t, onx_str name)
{
    for (uint32_t i = 0; i < t->options->group_count; i++)
        if (onxi_glob(t->options->group[i].pattern, name))
            return &t->options->group[i];
    return NULL;
}

static onx_status update_weight(onxi_trainable *t, const onxi_weight *w, onx_bytes step, pace **paces)
{
    const onxi_optimizer *o = t->optimizer;
    const onx_str base = onx_view(w->tensor->name);
    const onx_train_group *group = group_of(t, base);
    const double decay = group && group->weight_decay >= 0 ? group->weight_decay : t->options->weight_decay;
    const bool decays = decay > 0 && w->tensor->dims_count > 1;
    const uint32_t states = (uint32_t)strlen(o->shapes);
    onx_bytes in[6 + ONXI_OPTIMIZER_STATES_MAX] = { w->tensor->name, w->gradient }, out[1 + ONXI_OPTIMIZER_STATES_MAX];
    onx_type *types[1 + ONXI_OPTIMIZER_STATES_MAX] = { onxi_trainable_type_of(t, w->tensor) };
    const pace *p;
    uint32_t at = 4;
    onxi_text_nodes nodes = { .in = in, .out = out, .out_count = 1 + states, .base = base };
    ONX_TRY(find_pace(t, w, group ? group->rate : 1, step, paces, &p));
    in[2] = p->rate;
    in[3] = step;
    if (o->shared) {
        in[at++] = p->a;
        in[at++] = p->b;
    }
    ONX_TRY(set_number(t, onx_str_of("weight_decay"), decays ? decay : 0));
    ONX_TRY(onxi_names_make(&t->names, base, onx_str_of("new"), &out[0]));
    for (uint32_t i = 0; i < states; i++) {
        ONX_TRY(onxi_names_make(&t->names, base, onx_str_of("state"), &in[at + i]));
        ONX_TRY(onxi_names_make(&t->names, onx_view(in[at + i]), onx_str_of("new"), &out[1 + i]));
        ONX_TRY(add_state(t, w, o->shapes[i], in[at + i], &types[1 + i]));
    }
    nodes.in_count = at + states;
    ONX_TRY(text_of(t, w, decays, &nodes.head, &nodes.text));
    ONX_TRY(onxi_trainable_put(t, t->algorithm, &nodes));
    for (uint32_t i = 0; i <= states; i++) {
        ONX_TRY(onxi_trainable_output(t, t->algorithm, out[i], types[i]));
        ONX_TRY(onxi_trainable_update(t, i ? in[at + i - 1] : w->tensor->name, out[i]));
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

static onx_status check_groups(onxi_trainable *t)
{
    for (uint32_t i = 0; i < t->options->group_count; i++) {
        const onx_train_group *group = &t->options->group[i];
        bool used = false;
        for (uint32_t k = 0; k < t->weight_count; k++)
            used |= t->weights[k].trained && group_of(t, onx_view(t->weights[k].tensor->name)) == group;
        if (!used)
            return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no trained weight is in the group %.*s",
                             ONX_ARG(group->pattern));
    }
    return ONX_OK;
}

onx_status onxi_trainable_step(onxi_trainable *t)
{
    onx_bytes step;
    pace *paces = NULL;
    ONX_TRY(check_groups(t));
    ONX_TRY(add_gradients(t));
    if (t->options->clip_value > 0)
        ONX_TRY(clip_values(t));
    if (t->options->clip_norm > 0)
        ONX_TRY(clip_gradients(t));
    ONX_TRY(add_numbers(t, &step));
    for (uint32_t i = 0; i < t->weight_count; i++)
        if (t->weights[i].trained)
            ONX_TRY(update_weight(t, &t->weights[i], step, &paces));
    return ONX_OK;
}
