/* transform_trainable_weights.c - the weights of a model: their roles in the nodes that read them, which of them are
 * trained, and their initialisation. */
#include "transform/transform_part.h"
#include "transform/transform_precision.h"
#include "transform/transform_trainable.h"

#include <math.h>

typedef enum layout { ANY, OUT_IN, IN_OUT, IN_OUT_WINDOW, LAST_OUT_IN } layout;

static const struct role_row {
    onxi_op_id op;
    uint32_t input;
    onxi_role role;
    layout layout;
} rows[] = {
#define ROLE(op, input, role, layout) { ONXI_ID_##op, input, ONXI_ROLE_##role, layout },
#include "transform/transform_trainable.def"
};

/* Operators whose output is 0, or nearly so, for half of the inputs. */
static const onxi_op_id rectifiers[] = { ONXI_ID_Relu,    ONXI_ID_LeakyRelu, ONXI_ID_PRelu,           ONXI_ID_Elu,
                                         ONXI_ID_Selu,    ONXI_ID_Celu,      ONXI_ID_ThresholdedRelu, ONXI_ID_Gelu,
                                         ONXI_ID_Clip,    ONXI_ID_Mish,      ONXI_ID_Swish,           ONXI_ID_HardSwish,
                                         ONXI_ID_Softplus };
/* Operators that may be between a product and elementwise operators. */
static const onxi_op_id between[] = { ONXI_ID_Add,
                                      ONXI_ID_BatchNormalization,
                                      ONXI_ID_LayerNormalization,
                                      ONXI_ID_GroupNormalization,
                                      ONXI_ID_Reshape,
                                      ONXI_ID_InstanceNormalization,
                                      ONXI_ID_MaxPool,
                                      ONXI_ID_AveragePool,
                                      ONXI_ID_Squeeze,
                                      ONXI_ID_Transpose,
                                      ONXI_ID_Identity,
                                      ONXI_ID_Dropout };

static bool is_one_of(onxi_op_id op, const onxi_op_id *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (op == list[i])
            return true;
    return false;
}

#define IS_ONE_OF(op, list) is_one_of(op, list, sizeof(list) / sizeof *(list))

static bool is_real(int32_t dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_DOUBLE;
}

/* ---- constants that may be weights ---- */

/* Turns the tensor of a node into an initializer with the name of its output. */
static onx_status lift(onxi_trainable *t, const onx_node *node, const onx_tensor *from)
{
    onx_tensor *tensor = ONXI_NEW(t->arena, onx_tensor);
    if (!tensor)
        return ONX_E_MEMORY;
    *tensor = *from;
    ONX_SET(tensor, tensor, name, node->output[0]);
    return onx_graph_add_initializer(t->arena, t->graph, tensor) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status lift_constant(onxi_trainable *t, const onx_node *node)
{
    const onx_attribute *a = onx_node_attribute(node, "value");
    const bool weight = a && a->slot == ONX_SLOT_T && a->t && is_real(a->t->data_type) && a->t->dims_count;
    return weight && node->output_count == 1 ? lift(t, node, a->t) : ONX_OK;
}

typedef struct sharing {
    onxi_dict weights;  /* initializers that are not inputs: indexes */
    onxi_dict averages; /* running averages of BatchNormalization */
    onxi_dict outputs;  /* of the graph */
} sharing;

static onx_status note_all(onxi_dict *names, onx_value_info *const *infos, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!onxi_dict_at(names, onx_view(infos[i]->name), i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status find_sharing(onxi_trainable *t, sharing *s)
{
    onxi_dict inputs = onxi_dict_in_arena(t->scratch);
    *s = (sharing){ onxi_dict_in_arena(t->scratch), onxi_dict_in_arena(t->scratch), onxi_dict_in_arena(t->scratch) };
    ONX_TRY(note_all(&inputs, t->graph->input, t->graph->input_count));
    ONX_TRY(note_all(&s->outputs, t->graph->output, t->graph->output_count));
    for (uint32_t i = 0; i < t->graph->initializer_count; i++) {
        const onx_str name = onx_view(t->graph->initializer[i]->name);
        if (!onxi_dict_find(&inputs, name) && !onxi_dict_at(&s->weights, name, i, NULL))
            return ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < t->graph->node_count; i++)
        for (uint32_t k = 3; k < 5 && onxi_trainable_op(t, t->graph->node[i]) == ONXI_ID_BatchNormalization; k++)
            if (k < t->graph->node[i]->input_count &&
                !onxi_dict_at(&s->averages, onx_view(t->graph->node[i]->input[k]), k, NULL))
                return ONX_E_MEMORY;
    return ONX_OK;
}

/* Does the tensor have a single axis, and equal elements? */
static bool is_uniform(onxi_trainable *t, const onx_tensor *tensor)
{
    uint64_t count;
    float *all;
    if (tensor->dims_count != 1 || !onx_tensor_count(tensor, &count) || count >= SIZE_MAX / sizeof *all ||
        !(all = ONXI_ARRAY(t->scratch, float, (size_t)count + 1)) ||
        onx_tensor_get_f32(t->doc, tensor, 0, count, all) != ONX_OK)
        return false;
    for (uint64_t i = 1; i < count; i++)
        if (memcmp(&all[i], all, sizeof *all))
            return false;
    return true;
}

/* Exporters store equal weights once and use Identity for the others; scales, biases and averages often start with
 * equal values, but are separate weights. Other weights that are equal in every element are shared on purpose. */
static onx_status part_shared(onxi_trainable *t, sharing *s, const onx_node *node)
{
    if (node->input_count != 1 || node->output_count != 1)
        return ONX_OK;
    const onx_str name = onx_view(node->output[0]);
    const onxi_dict_entry *from = onxi_dict_find(&s->weights, onx_view(node->input[0]));
    if (!from || onxi_dict_find(&s->outputs, name))
        return ONX_OK;
    const uint32_t at = t->graph->initializer_count;
    const onx_tensor *tensor = t->graph->initializer[from->value];
    if (!is_real(tensor->data_type) || !(onxi_dict_find(&s->averages, name) || is_uniform(t, tensor)))
        return ONX_OK;
    ONX_TRY(lift(t, node, tensor));
    onxi_tell_change(t->options->changed, t->options->user, "trainable", "own", name,
                     "is a weight of its own, that begins as %.*s", ONX_ARG(onx_view(tensor->name)));
    return onxi_dict_at(&s->weights, name, at, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status lift_constants(onxi_trainable *t)
{
    uint32_t kept = 0;
    sharing s;
    ONX_TRY(find_sharing(t, &s));
    for (uint32_t i = 0; i < t->graph->node_count; i++) {
        const onx_node *node = t->graph->node[i];
        const uint32_t before = t->graph->initializer_count;
        if (onxi_trainable_op(t, node) == ONXI_ID_Constant)
            ONX_TRY(lift_constant(t, node));
        else if (onxi_trainable_op(t, node) == ONXI_ID_Identity)
            ONX_TRY(part_shared(t, &s, node));
        if (t->graph->initializer_count == before)
            t->graph->node[kept++] = t->graph->node[i];
    }
    t->graph->node_count = kept;
    return ONX_OK;
}

static onx_status need(void *user, onx_bytes *name)
{
    return onxi_dict_at(user, onx_view(*name), 1, NULL) ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_trainable_need(onxi_trainable *t)
{
    onxi_dict names = onxi_dict_in_arena(t->scratch);
    ONX_TRY(need(&names, &t->y));
    if (!(t->needed = ONXI_ARRAY(t->scratch, bool, (size_t)t->graph->node_count + 1)))
        return ONX_E_MEMORY;
    for (uint32_t i = t->graph->node_count; i-- > 0;) {
        onx_node *node = t->graph->node[i];
        for (uint32_t k = 0; k < node->output_count && !t->needed[i]; k++)
            t->needed[i] = onx_view(node->output[k]).len && onxi_dict_find(&names, onx_view(node->output[k]));
        if (!t->needed[i])
            continue;
        for (uint32_t k = 0; k < node->input_count; k++)
            ONX_TRY(need(&names, &node->input[k]));
        for (uint32_t k = 0; k < node->attribute_count; k++)
            if (node->attribute[k]->slot == ONX_SLOT_G && node->attribute[k]->g)
                ONX_TRY(onxi_graph_each_name(t->cx, node->attribute[k]->g, need, &names));
    }
    return ONX_OK;
}

onx_status onxi_trainable_survey(onxi_trainable *t)
{
    ONX_TRY(lift_constants(t));
    t->scope = (onxi_scope){ .graph = t->graph, .nodes = t->graph->node, .node_count = t->graph->node_count };
    return onx_index_new(t->cx, t->graph, &t->index);
}

/* ---- roles ---- */

typedef struct seen { /* a weight as a node uses it */
    int64_t dims[ONX_RANK_MAX];
    uint32_t rank;
} seen;

static double product(const seen *s, uint32_t from)
{
    double n = 1;
    for (uint32_t i = from; i < s->rank; i++)
        n *= (double)s->dims[i];
    return n;
}

static void set_fans(onxi_weight *w, const onxi_bound *bound, const onx_node *node, const seen *s, layout l)
{
    const uint32_t r = s->rank;
    const double last = r ? (double)s->dims[r - 1] : 1, before = r > 1 ? (double)s->dims[r - 2] : 1;
    switch (l) {
    case OUT_IN:
        w->fan_in = product(s, 1);
        w->fan_out = r > 1 ? (double)s->dims[0] * product(s, 2) : 1;
        break;
    case IN_OUT_WINDOW:
        w->fan_in = r > 1 ? (double)s->dims[0] * product(s, 2) : 1;
        w->fan_out = product(s, 1);
        break;
    case IN_OUT:
    case LAST_OUT_IN: {
        const bool turned = l == LAST_OUT_IN || onxi_bind_int(bound, node, "transB");
        w->fan_in = turned || r < 2 ? last : before;
        w->fan_out = turned ? before : r < 2 ? 1 : last;
        break;
    }
    default: {
        const int64_t hidden = w->role == ONXI_ROLE_GATES ? onxi_bind_int(bound, node, "hidden_size") : 0;
        w->fan_in = hidden > 0 ? (double)hidden : last;
    }
    }
}

/* Is the output of a node rectified within the next few nodes? */
static bool is_rectified(onxi_trainable *t, const onx_node *node)
{
    enum { FAR = 5 };
    for (int i = 0; i < FAR && node->output_count; i++) {
        uint32_t count;
        const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, onx_view(node->output[0])), &count);
        if (!count)
            return false;
        node = t->graph->node[use[0].node];
        const onxi_op_id op = onxi_trainable_op(t, node);
        if (IS_ONE_OF(op, rectifiers))
            return true;
        if (!IS_ONE_OF(op, between))
            return false;
    }
    return false;
}

/* Number of axes with a size other than 1. */
static uint32_t axes_of(const seen *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->rank; i++)
        count += s->dims[i] != 1;
    return count;
}

/* An added or multiplied constant is a weight unless it is a scalar, a mask (which contains infinite or huge values),
 * or part of the preprocessing of inputs. */
static bool is_elementwise_weight(onxi_trainable *t, const onxi_weight *w, const onx_node *node, uint32_t input,
                                  const seen *s)
{
    enum { FIRST = 4096 };
    float *some;
    uint64_t count;
    const onx_str other = node->input_count == 2 ? onx_view(node->input[1 - input]) : (onx_str){ 0 };
    if (onx_index_def(t->index, onx_index_find(t->index, other)).kind != ONX_DEF_NODE)
        return false;
    if (!axes_of(s) || (w->role == ONXI_ROLE_FACTOR && axes_of(s) > 1) || !onx_tensor_count(w->tensor, &count))
        return false;
    count = count < FIRST ? count : FIRST;
    if (!(some = ONXI_ARRAY(t->scratch, float, (size_t)count + 1)) ||
        onx_tensor_get_f32(t->doc, w->tensor, 0, count, some) != ONX_OK)
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!(fabsf(some[i]) < 1000))
            return false;
    return true;
}

static bool take_role(onxi_trainable *t, onxi_weight *w, const onx_node *node, uint32_t input, const seen *s)
{
    const onxi_op_id op = onxi_trainable_op(t, node);
    if (op == ONXI_ID_NONE)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].input != input || rows[i].op != op)
            continue;
        w->role = rows[i].role;
        if ((w->role == ONXI_ROLE_OFFSET || w->role == ONXI_ROLE_FACTOR) &&
            !is_elementwise_weight(t, w, node, input, s))
            break;
        if (w->role == ONXI_ROLE_OFFSET && axes_of(s) < 2)
            w->role = ONXI_ROLE_BIAS;
        set_fans(w, onxi_trainable_bound(t, node), node, s, rows[i].layout);
        w->rectified = w->role == ONXI_ROLE_KERNEL && is_rectified(t, node);
        return true;
    }
    w->role = ONXI_ROLE_NONE;
    return false;
}

/* The first node that determines the role of the weight, after nodes that reshape it; *reached: the output needs it. */
static bool find_role(onxi_trainable *t, onxi_weight *w, onx_str name, const seen *s, int depth, bool *reached)
{
    static const onxi_op_id shapers[] = { ONXI_ID_Identity,        ONXI_ID_Reshape, ONXI_ID_Unsqueeze,
                                          ONXI_ID_Squeeze,         ONXI_ID_Cast,    ONXI_ID_QuantizeLinear,
                                          ONXI_ID_DequantizeLinear };
    uint32_t count;
    const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, name), &count);
    for (uint32_t i = 0; i < count && depth; i++) {
        const onx_node *node = t->graph->node[use[i].node];
        seen turned = *s;
        if (!t->needed[use[i].node])
            continue;
        *reached = true;
        if (use[i].input == UINT32_MAX)
            continue;
        if (take_role(t, w, node, use[i].input, s))
            return true;
        const onxi_op_id op = onxi_trainable_op(t, node);
        const bool transpose = op == ONXI_ID_Transpose;
        uint32_t axes = 0;
        const int64_t *perm = transpose ? onxi_bind_ints(onxi_trainable_bound(t, node), node, "perm", &axes) : NULL;
        for (uint32_t k = 0; transpose && k < s->rank; k++) {
            const int64_t from = perm && axes == s->rank ? perm[k] : (int64_t)(s->rank - 1 - k);
            turned.dims[k] = from >= 0 && from < (int64_t)s->rank ? s->dims[from] : 1;
        }
        if ((transpose || (use[i].input == 0 && IS_ONE_OF(op, shapers))) && node->output_count &&
            find_role(t, w, onx_view(node->output[0]), &turned, depth - 1, reached))
            return true;
    }
    return false;
}

/* ---- selecting trained weights ---- */

static bool fits(const onx_str *list, uint32_t count, bool *used, onx_str name)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        if (onxi_glob(list[i], name))
            found = used[i] = true;
    return found;
}

bool onxi_trainable_named(onxi_trainable *t, onx_str name)
{
    return fits(t->options->train, t->options->train_count, t->used, name);
}

bool onxi_trainable_frozen(onxi_trainable *t, onx_str name)
{
    return fits(t->options->freeze, t->options->freeze_count, t->used + t->options->train_count, name);
}

static onx_status check_used(onxi_trainable *t, const onx_str *list, uint32_t count, const bool *used)
{
    for (uint32_t i = 0; i < count; i++)
        if (!used[i])
            return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no weight that the loss depends on is like %.*s",
                             ONX_ARG(list[i]));
    return ONX_OK;
}

static onx_status add_weight(onxi_trainable *t, onx_tensor *tensor)
{
    seen s = { .rank = tensor->dims_count };
    onxi_weight w = { .tensor = tensor };
    bool reached = false;
    if (!is_real(tensor->data_type) || s.rank > ONX_RANK_MAX)
        return ONX_OK;
    for (uint32_t i = 0; i < s.rank; i++)
        s.dims[i] = tensor->dims[i];
    enum { SHAPERS_MAX = 4 };
    find_role(t, &w, onx_view(tensor->name), &s, SHAPERS_MAX, &reached);
    if (!reached)
        return ONX_OK;
    const onxi_dict_entry *adapter = onxi_dict_find(&t->adapters, onx_view(tensor->name));
    if (adapter && adapter->value == ONXI_ADAPTER_UP)
        w.role = ONXI_ROLE_BIAS; /* zeros: initially adapters have no effect */
    if (!ONXI_GROW_IN(t->scratch, t->weights, t->weight_room, (uint64_t)t->weight_count + 1))
        return ONX_E_MEMORY;
    t->weights[t->weight_count++] = w;
    return ONX_OK;
}

static bool is_average(const onxi_weight *w)
{
    return w->role == ONXI_ROLE_MEAN || w->role == ONXI_ROLE_VARIANCE;
}

onx_status onxi_trainable_weights(onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    uint32_t trained = 0;
    for (uint32_t i = 0; i < t->graph->initializer_count; i++)
        ONX_TRY(add_weight(t, t->graph->initializer[i]));
    for (uint32_t i = 0; i < t->weight_count; i++) {
        onxi_weight *w = &t->weights[i];
        const onx_str name = onx_view(w->tensor->name);
        const bool adapter = onxi_dict_find(&t->adapters, name) != NULL;
        const bool named = onxi_trainable_named(t, name), frozen = onxi_trainable_frozen(t, name);
        const bool chosen = o->train_count ? named : w->role != ONXI_ROLE_NONE;
        w->trained = o->lora_rank ? adapter : chosen && !frozen && !is_average(w);
        trained += w->trained;
        if (w->trained && w->role == ONXI_ROLE_NONE && !o->keep)
            onxi_tell_change(o->changed, o->user, "trainable", "start", name, "begins with the values that it has");
    }
    ONX_TRY(check_used(t, o->train, o->train_count, t->used));
    ONX_TRY(check_used(t, o->freeze, o->freeze_count, t->used + o->train_count));
    return trained ? ONX_OK
                   : onxi_fail(t->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                               "there is nothing to train: output %.*s depends on no weight of type float or double%s",
                               ONX_ARG(onx_view(t->y)), o->freeze_count ? " that is not frozen" : "");
}

/* ---- initialisation ---- */

typedef enum how { NOT, CONSTANT, NORMAL, UNIFORM } how;

static how begins(const onxi_weight *w, double *number)
{
    switch (w->role) {
    case ONXI_ROLE_NONE:
        return NOT;
    case ONXI_ROLE_KERNEL: /* after He (2015); after Glorot and Bengio (2010) */
        *number = w->rectified ? sqrt(2 / w->fan_in) : sqrt(6 / (w->fan_in + w->fan_out));
        return w->rectified ? NORMAL : UNIFORM;
    case ONXI_ROLE_GATES:
        *number = 1 / sqrt(w->fan_in);
        return UNIFORM;
    case ONXI_ROLE_TABLE:
        *number = 1 / sqrt(w->fan_in);
        return NORMAL;
    case ONXI_ROLE_OFFSET:
        *number = 0.02;
        return NORMAL;
    case ONXI_ROLE_SCALE:
    case ONXI_ROLE_FACTOR:
    case ONXI_ROLE_VARIANCE:
        *number = 1;
        return CONSTANT;
    case ONXI_ROLE_SLOPE:
        *number = 0.25;
        return CONSTANT;
    default:
        *number = 0;
        return CONSTANT;
    }
}

static onx_status draw(onxi_trainable *t, const onxi_weight *w, uint32_t number)
{
    static const char *const texts[] = {
        [CONSTANT] = "s = Constant <value_ints: ints = @shape> ()  x = ConstantOfShape <value: tensor = @value> (s)",
        [NORMAL] = "x = RandomNormal <dtype: int = @dtype, shape: ints = @shape, scale: float = @scale, seed: float = "
                   "@seed> ()",
        [UNIFORM] = "x = RandomUniform <dtype: int = @dtype, shape: ints = @shape, low: float = @low, high: float = "
                    "@scale, seed: float = @seed> ()"
    };
    enum { SEEDS = 1 << 24 }; /* integers that a float represents exactly */
    const onx_dtype dtype = (onx_dtype)w->tensor->data_type;
    const int64_t one[1] = { 1 };
    double scale = 0;
    int64_t bits = 0;
    onx_bytes name;
    const how h = begins(w, &scale);
    if (h == NOT)
        return ONX_OK;
    if (!isfinite(scale))
        scale = 0;
    ONX_TRY(onx_convert(dtype, &bits, ONX_DOUBLE, &scale, 1, true));
    ONX_TRY(onxi_trainable_tensor(t, "value", onx_tensor_new(t->arena, dtype, one, 1, &bits, NULL)));
    ONX_TRY(onxi_trainable_ints(t, "shape", w->tensor->dims, w->tensor->dims_count));
    ONX_TRY(onxi_trainable_int(t, "dtype", dtype));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("scale"), scale));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("low"), -scale));
    const uint64_t seed = ((uint64_t)t->options->seed * 7919 + number) % SEEDS;
    ONX_TRY(onxi_trainable_float(t, onx_str_of("seed"), (double)seed));
    ONX_TRY(onxi_names_make(&t->names, onx_view(w->tensor->name), onx_str_of("start"), &name));
    const onxi_text_nodes nodes = {
        .head = "() => (x)", .text = texts[h], .out = &name, .out_count = 1, .base = onx_view(w->tensor->name)
    };
    ONX_TRY(onxi_trainable_put(t, t->start, &nodes));
    ONX_TRY(onxi_trainable_output(t, t->start, name, onxi_trainable_type_of(t, w->tensor)));
    return onxi_trainable_begin(t, w->tensor->name, name);
}

static bool is_updated(const onxi_trainable *t, const onxi_weight *w)
{
    for (uint32_t i = 0; i < t->step->update_binding_count; i++)
        if (onx_str_equal(onx_view(t->step->update_binding[i]->key), onx_view(w->tensor->name)))
            return true;
    return false;
}

onx_status onxi_trainable_draw(onxi_trainable *t)
{
    for (uint32_t i = 0; i < t->weight_count; i++) {
        const onxi_weight *w = &t->weights[i];
        const bool adapter = onxi_dict_find(&t->adapters, onx_view(w->tensor->name)) != NULL;
        if (t->options->lora_rank ? adapter && w->trained : w->trained || (is_average(w) && is_updated(t, w)))
            ONX_TRY(draw(t, w, i + 1));
    }
    return ONX_OK;
}
