/* transform_trainable_weights.c - the weights of a model: their roles in the nodes that read them, and which of them
 * are trained. */
#include "transform/transform_part.h"
#include "transform/transform_precision.h"
#include "transform/transform_trainable.h"

#include <math.h>

static const onxi_role_row rows[] = {
#define ROLE(op, input, role, layout) { ONXI_ID_##op, input, ONXI_ROLE_##role, ONXI_LAYOUT_##layout },
#include "transform/transform_trainable.def"
};

static const struct {
    bool guessed;
    const char *text;
} reasons[] = {
#define LEFT(name, guessed, text) [ONXI_LEFT_##name] = { guessed, text },
#include "transform/transform_trainable.def"
};

const onxi_role_row *onxi_trainable_role(onxi_op_id op, uint32_t input)
{
    for (size_t i = 0; op != ONXI_ID_NONE && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].input == input && rows[i].op == op)
            return &rows[i];
    return NULL;
}

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

bool onxi_trainable_is_real(int32_t dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_DOUBLE;
}

/* ---- nodes that the output needs ---- */

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

static void set_fans(onxi_weight *w, const onxi_bound *bound, const onx_node *node, const seen *s, onxi_layout l)
{
    const uint32_t r = s->rank;
    const double last = r ? (double)s->dims[r - 1] : 1, before = r > 1 ? (double)s->dims[r - 2] : 1;
    switch (l) {
    case ONXI_LAYOUT_OUT_IN:
        w->fan_in = product(s, 1);
        w->fan_out = r > 1 ? (double)s->dims[0] * product(s, 2) : 1;
        break;
    case ONXI_LAYOUT_IN_OUT_WINDOW:
        w->fan_in = r > 1 ? (double)s->dims[0] * product(s, 2) : 1;
        w->fan_out = product(s, 1);
        break;
    case ONXI_LAYOUT_IN_OUT:
    case ONXI_LAYOUT_LAST_OUT_IN: {
        const bool turned = l == ONXI_LAYOUT_LAST_OUT_IN || onxi_bind_int(bound, node, "transB");
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
        if (ONXI_IS_ONE_OF(op, rectifiers))
            return true;
        if (!ONXI_IS_ONE_OF(op, between))
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

/* Roles of operators that constants are operands of, too. */
static bool is_elementwise(onxi_role role)
{
    return role == ONXI_ROLE_OFFSET || role == ONXI_ROLE_FACTOR;
}

static bool take_role(onxi_trainable *t, onxi_weight *w, const onx_node *node, uint32_t input, const seen *s,
                      bool elementwise)
{
    const onxi_role_row *row = onxi_trainable_role(onxi_trainable_op(t, node), input);
    if (!row || is_elementwise(row->role) != elementwise)
        return false;
    if (elementwise) { /* beside another weight, or of several axes, it is part of something else */
        const onx_str other = node->input_count == 2 ? onx_view(node->input[1 - input]) : (onx_str){ 0 };
        if (onx_index_def(t->index, onx_index_find(t->index, other)).kind != ONX_DEF_NODE ||
            (row->role == ONXI_ROLE_FACTOR && axes_of(s) > 1))
            return false;
    }
    w->role = row->role == ONXI_ROLE_OFFSET && axes_of(s) < 2 ? ONXI_ROLE_BIAS : row->role;
    w->elementwise = elementwise;
    set_fans(w, onxi_trainable_bound(t, node), node, s, row->layout);
    w->rectified = w->role == ONXI_ROLE_KERNEL && is_rectified(t, node);
    return true;
}

/* The shape of the weight after a node that rearranges or selects its elements. */
static void reshape(onxi_trainable *t, const onx_node *node, onx_str output, seen *s)
{
    const onx_type *type = onxi_values_type(&t->values, &t->scope, output);
    const int rank = onxi_type_rank(type);
    seen known = { .rank = rank < 0 ? 0 : (uint32_t)rank };
    uint32_t axes = 0;
    bool all = rank >= 0 && known.rank <= ONX_RANK_MAX;
    for (uint32_t k = 0; all && k < known.rank; k++)
        all = (known.dims[k] = onxi_type_dim(type, k)) >= 0;
    if (all) {
        *s = known;
        return;
    }
    if (onxi_trainable_op(t, node) != ONXI_ID_Transpose)
        return;
    const int64_t *perm = onxi_bind_ints(onxi_trainable_bound(t, node), node, "perm", &axes);
    const seen before = *s;
    for (uint32_t k = 0; k < s->rank; k++) {
        const int64_t from = perm && axes == s->rank ? perm[k] : (int64_t)(s->rank - 1 - k);
        s->dims[k] = from >= 0 && from < (int64_t)s->rank ? before.dims[from] : 1;
    }
}

static bool shows_weight(onxi_op_id op, uint32_t input)
{
    static const onxi_op_id shapers[] = {
        ONXI_ID_Identity, ONXI_ID_Reshape,        ONXI_ID_Unsqueeze,        ONXI_ID_Squeeze,
        ONXI_ID_Cast,     ONXI_ID_QuantizeLinear, ONXI_ID_DequantizeLinear, ONXI_ID_Transpose,
        ONXI_ID_Slice,    ONXI_ID_Split,          ONXI_ID_Expand,           ONXI_ID_Flatten
    };
    return op == ONXI_ID_Concat || (input == 0 && ONXI_IS_ONE_OF(op, shapers));
}

typedef struct search {
    onxi_dict visited; /* values */
    int depth;
    bool reached; /* the output needs the weight */
} search;

/* The first node that determines the role of the weight, after nodes that rearrange it or take a part. */
static bool find_role(onxi_trainable *t, onxi_weight *w, onx_str name, const seen *s, search *f)
{
    enum { DEPTH_MAX = 12, VISITS_MAX = 256 };
    enum { DIRECT, NESTED, ELEMENTWISE };
    uint32_t count;
    bool made;
    const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, name), &count);
    if (f->depth >= DEPTH_MAX || f->visited.count >= VISITS_MAX || !onxi_dict_at(&f->visited, name, 1, &made) || !made)
        return false;
    f->depth++;
    for (int round = DIRECT; round <= ELEMENTWISE; round++)
        for (uint32_t i = 0; i < count; i++) {
            const onx_node *node = t->graph->node[use[i].node];
            if (!t->needed[use[i].node])
                continue;
            f->reached = true;
            if (use[i].input == UINT32_MAX)
                continue;
            if (round != NESTED && take_role(t, w, node, use[i].input, s, round == ELEMENTWISE))
                return true;
            for (uint32_t k = 0; k < node->output_count && round == NESTED; k++) {
                seen turned = *s;
                if (!shows_weight(onxi_trainable_op(t, node), use[i].input) || !onx_view(node->output[k]).len)
                    break;
                reshape(t, node, onx_view(node->output[k]), &turned);
                if (find_role(t, w, onx_view(node->output[k]), &turned, f))
                    return true;
            }
        }
    f->depth--;
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

/* The patterns of one option, and where their marks begin. */
typedef struct patterns {
    const onx_str *list;
    uint32_t count, mark;
} patterns;

static void list_patterns(const onxi_trainable *t, patterns out[4])
{
    const onx_trainable_options *o = t->options;
    out[0] = (patterns){ o->train, o->train_count, 0 };
    out[1] = (patterns){ o->freeze, o->freeze_count, out[0].count };
    out[2] = (patterns){ o->tie, o->tie_count, out[1].mark + out[1].count };
    out[3] = (patterns){ o->untie, o->untie_count, out[2].mark + out[2].count };
}

static bool matches(onxi_trainable *t, int which, onx_str name)
{
    patterns all[4];
    list_patterns(t, all);
    return fits(all[which].list, all[which].count, t->used + all[which].mark, name);
}

bool onxi_trainable_named(onxi_trainable *t, onx_str name)
{
    return matches(t, 0, name);
}

bool onxi_trainable_frozen(onxi_trainable *t, onx_str name)
{
    return matches(t, 1, name);
}

bool onxi_trainable_tied(onxi_trainable *t, onx_str name)
{
    return matches(t, 2, name);
}

bool onxi_trainable_untied(onxi_trainable *t, onx_str name)
{
    return matches(t, 3, name);
}

static onx_status check_used(onxi_trainable *t)
{
    patterns all[4];
    list_patterns(t, all);
    for (int k = 0; k < 4; k++)
        for (uint32_t i = 0; i < all[k].count; i++)
            if (!t->used[all[k].mark + i])
                return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE,
                                 "no weight that the loss depends on is like %.*s", ONX_ARG(all[k].list[i]));
    return ONX_OK;
}

static bool is_float(int32_t dtype)
{
    return onxi_trainable_is_real(dtype) || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16;
}

static onx_status add_weight(onxi_trainable *t, onx_tensor *tensor)
{
    seen s = { .rank = tensor->dims_count };
    onxi_weight w = { .tensor = tensor };
    search f = { .visited = onxi_dict_in_arena(t->scratch) };
    if (!is_float(tensor->data_type) || s.rank > ONX_RANK_MAX)
        return ONX_OK;
    for (uint32_t i = 0; i < s.rank; i++)
        s.dims[i] = tensor->dims[i];
    find_role(t, &w, onx_view(tensor->name), &s, &f);
    if (!f.reached)
        return ONX_OK;
    w.average = w.role == ONXI_ROLE_MEAN || w.role == ONXI_ROLE_VARIANCE;
    const onxi_dict_entry *adapter = onxi_dict_find(&t->adapters, onx_view(tensor->name));
    if (adapter && adapter->value == ONXI_ADAPTER_UP)
        w.role = ONXI_ROLE_BIAS; /* zeros: initially adapters have no effect */
    if (!ONXI_GROW_IN(t->scratch, t->weights, t->weight_room, (uint64_t)t->weight_count + 1))
        return ONX_E_MEMORY;
    t->weights[t->weight_count++] = w;
    return ONX_OK;
}

/* Why a weight is not trained. What the options say comes first, then what the file says. */
static onxi_weight_left reason(onxi_trainable *t, const onxi_weight *w)
{
    const onx_trainable_options *o = t->options;
    const onx_str name = onx_view(w->tensor->name);
    const bool adapter = onxi_dict_find(&t->adapters, name) != NULL;
    const bool named = onxi_trainable_named(t, name), frozen = onxi_trainable_frozen(t, name);
    if (o->lora_rank)
        return adapter ? ONXI_LEFT_NOT : ONXI_LEFT_BASE;
    if (frozen)
        return ONXI_LEFT_FROZEN;
    if (w->average)
        return ONXI_LEFT_AVERAGE;
    if (!onxi_dict_find(&t->reached, name))
        return ONXI_LEFT_NO_GRADIENT;
    if (o->train_count && !named)
        return ONXI_LEFT_UNNAMED;
    if (!onxi_trainable_is_real(w->tensor->data_type))
        return ONXI_LEFT_TYPE;
    return named ? ONXI_LEFT_NOT : onxi_trainable_constant(t, w);
}

onx_status onxi_trainable_weights(onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    uint32_t trained = 0;
    ONX_TRY(onxi_trainable_reach(t));
    for (uint32_t i = 0; i < t->graph->initializer_count; i++)
        ONX_TRY(add_weight(t, t->graph->initializer[i]));
    for (uint32_t i = 0; i < t->weight_count; i++) {
        onxi_weight *w = &t->weights[i];
        w->left = reason(t, w);
        trained += w->left == ONXI_LEFT_NOT;
    }
    /* Of a model in which all weights look like constants, these are the weights. */
    for (uint32_t i = 0; i < t->weight_count && !trained && !o->train_count && !o->freeze_count; i++)
        if (t->weights[i].left == ONXI_LEFT_DATA || t->weights[i].left == ONXI_LEFT_SCALAR)
            t->weights[i].left = ONXI_LEFT_NOT;
    trained = 0;
    for (uint32_t i = 0; i < t->weight_count; i++) {
        onxi_weight *w = &t->weights[i];
        w->trained = w->left == ONXI_LEFT_NOT;
        trained += w->trained;
        if (w->trained && w->role == ONXI_ROLE_NONE && !o->keep)
            onxi_tell_change(o->changed, o->user, "trainable", "start", onx_view(w->tensor->name),
                             "begins with the values that it has");
    }
    ONX_TRY(check_used(t));
    return trained ? ONX_OK
                   : onxi_fail(t->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                               "there is nothing to train: output %.*s depends on no weight of type float or double%s",
                               ONX_ARG(onx_view(t->y)), o->freeze_count ? " that is not frozen" : "");
}

/* ---- reporting ---- */

void onxi_trainable_report(const onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    for (uint32_t i = 0; i < t->weight_count; i++) {
        const onxi_weight *w = &t->weights[i];
        onx_train_weight shown = { .name = onx_view(w->tensor->name),
                                   .reason = w->trained ? NULL : reasons[w->left].text,
                                   .gradient = w->left != ONXI_LEFT_NO_GRADIENT,
                                   .guessed = reasons[w->left].guessed };
        onx_index_uses(t->index, onx_index_find(t->index, shown.name), &shown.uses);
        onx_tensor_count(w->tensor, &shown.count);
        onxi_tell_change(o->changed, o->user, "trainable", w->trained ? "train" : "freeze", shown.name, "%s",
                         w->trained ? "is trained" : shown.reason);
        if (o->weight)
            o->weight(o->user, &shown);
    }
}
