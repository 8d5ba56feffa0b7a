/* transform_halve_decide.c - decides which values are converted. Starting from what operators allow, it excludes values
 * whose conversion would be useless or harmful: sizes, values that are produced and needed in the same type, and nodes
 * that only move data. */
#include "transform/transform_halve.h"

static bool is_source(const onxi_halver *h, uint32_t value)
{
    return value != ONXI_HALVE_NONE && h->value[value].from;
}

static void stay(onxi_halver *h, uint32_t term)
{
    if (term != ONXI_HALVE_NONE)
        h->term[onxi_halve_root(h, term)].stays = true;
}

static void outputs_stay(onxi_halver *h, const onxi_halve_node *n)
{
    for (uint32_t i = 0; i < n->node->output_count; i++)
        if (is_source(h, h->made[n->made + i]))
            stay(h, h->value[h->made[n->made + i]].term);
}

void onxi_halve_keep(onxi_halver *h, const onxi_halve_node *n)
{
    outputs_stay(h, n);
    for (uint32_t k = 0; k < n->node->input_count; k++)
        if (h->use[n->use + k].want == ONXI_HALVE_TERM && is_source(h, h->use[n->use + k].value))
            stay(h, h->use[n->use + k].term);
}

bool onxi_halve_wants_new(onxi_halver *h, const onxi_halve_use *use)
{
    switch ((onxi_halve_want)use->want) {
    case ONXI_HALVE_TERM:
        return !onxi_halve_stays(h, use->term);
    case ONXI_HALVE_ANY:
        return h->value[use->value].changes;
    case ONXI_HALVE_NEW:
        return true;
    case ONXI_HALVE_OLD:
        break;
    }
    return false;
}

/* ---- values that the caller wants to keep ---- */

static void keep_use(onxi_halver *h, onxi_halve_use *u)
{
    if (u->value == ONXI_HALVE_NONE || !h->value[u->value].kept)
        return;
    if (u->want == ONXI_HALVE_TERM)
        stay(h, u->term);
    else
        u->want = ONXI_HALVE_OLD;
}

static void keep_values(onxi_halver *h)
{
    for (uint32_t i = 0; h->keep_value.count && i < h->value_count; i++) {
        onxi_halve_value *v = &h->value[i];
        if (!v->from || !onxi_dict_find(&h->keep_value, onx_view(v->name)))
            continue;
        v->kept = v->pinned = true;
        stay(h, v->term);
    }
    for (uint32_t i = 0; h->keep_value.count && i < h->use_count; i++)
        keep_use(h, &h->use[i]);
    for (uint32_t i = 0; h->keep_value.count && i < h->result_count; i++)
        keep_use(h, &h->result[i].use);
}

/* ---- sizes: floating-point values computed from shapes are not exact in 16 bits ---- */

/* A Cast of a single integer or a list of integers. */
static bool begins_size(onxi_halver *h, const onxi_halve_node *n)
{
    if (n->op != ONXI_ID_Cast || n->node->input_count != 1 || h->use[n->use].value != ONXI_HALVE_NONE)
        return false;
    const onx_type *type = onxi_values_type(&h->values, &n->scope->scope, onx_view(n->node->input[0]));
    const int rank = onxi_type_rank(type), dtype = onxi_type_dtype(type);
    return (dtype == ONX_INT64 || dtype == ONX_INT32) && rank >= 0 && rank <= 1;
}

static bool goes_on_with_size(const onxi_halver *h, const onxi_halve_node *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->node->input_count; i++) {
        const uint32_t value = h->use[n->use + i].value;
        if (!is_source(h, value))
            continue;
        any |= h->value[value].size;
        if (!h->value[value].size && h->value[value].kind != ONXI_HALVE_CONSTANT)
            return false;
    }
    return any;
}

static void keep_sizes(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->node_count; i++) {
        const onxi_halve_node *n = &h->node[i];
        if (!begins_size(h, n) && !goes_on_with_size(h, n))
            continue;
        for (uint32_t k = 0; k < n->node->output_count; k++)
            if (is_source(h, h->made[n->made + k]))
                h->value[h->made[n->made + k]].size = true;
        onxi_halve_keep(h, n);
    }
}

/* ---- values computed without inputs of the type ---- */

static void note_wants(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->use_count + h->result_count; i++) {
        const onxi_halve_use *u = i < h->use_count ? &h->use[i] : &h->result[i - h->use_count].use;
        if (u->value == ONXI_HALVE_NONE || u->want == ONXI_HALVE_ANY)
            continue;
        const bool fresh = onxi_halve_wants_new(h, u);
        h->value[u->value].wanted_new |= fresh;
        h->value[u->value].wanted_old |= !fresh;
    }
}

/* A Cast from integers whose result is needed in the old type produces that, so that no precision is lost. */
static void keep_generators(onxi_halver *h)
{
    note_wants(h);
    for (uint32_t i = 0; i < h->node_count; i++) {
        const onxi_halve_node *n = &h->node[i];
        bool fed = n->op == ONXI_ID_Constant, wanted = false;
        for (uint32_t k = 0; k < n->node->input_count; k++)
            fed |= is_source(h, h->use[n->use + k].value);
        for (uint32_t k = 0; k < n->node->output_count; k++)
            wanted |= is_source(h, h->made[n->made + k]) && h->value[h->made[n->made + k]].wanted_old;
        if (!fed && wanted)
            outputs_stay(h, n);
    }
}

/* ---- nodes that only move data keep the type of their inputs ---- */

bool onxi_halve_passes_on(onxi_op_id op)
{
    switch ((int)op) {
    case ONXI_ID_Identity:
    case ONXI_ID_Reshape:
    case ONXI_ID_Transpose:
    case ONXI_ID_Squeeze:
    case ONXI_ID_Unsqueeze:
    case ONXI_ID_Flatten:
    case ONXI_ID_Slice:
    case ONXI_ID_Gather:
    case ONXI_ID_GatherElements:
    case ONXI_ID_GatherND:
    case ONXI_ID_Concat:
    case ONXI_ID_Split:
    case ONXI_ID_Expand:
    case ONXI_ID_Tile:
    case ONXI_ID_DepthToSpace:
    case ONXI_ID_SpaceToDepth:
    case ONXI_ID_Compress:
        return true;
    default:
        return false;
    }
}

/* Comparisons produce none: in the type of their operands they need no Cast. */
static bool makes_source(const onxi_halver *h, const onxi_halve_node *n)
{
    for (uint32_t i = 0; i < n->node->output_count; i++)
        if (is_source(h, h->made[n->made + i]))
            return true;
    return false;
}

static void follow_inputs(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->node_count; i++) {
        const onxi_halve_node *n = &h->node[i];
        bool any = false, all = onxi_halve_passes_on(n->op) || !makes_source(h, n);
        for (uint32_t k = 0; all && k < n->node->input_count; k++) {
            const uint32_t value = h->use[n->use + k].value;
            if (!is_source(h, value))
                continue;
            const bool constant = h->value[value].kind == ONXI_HALVE_CONSTANT;
            any |= !constant;
            all = h->value[value].tensor_typed && (constant || onxi_halve_stays(h, h->value[value].term));
        }
        if (all && any)
            onxi_halve_keep(h, n);
    }
}

/* ---- Casts between values and their readers ---- */

static void decide_values(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->value_count; i++)
        h->value[i].wanted_new = h->value[i].wanted_old = false;
    note_wants(h);
    for (uint32_t i = 0; i < h->value_count; i++) {
        onxi_halve_value *v = &h->value[i];
        if (!v->from)
            continue;
        /* A constant with both kinds of readers keeps its type, so that those of the old type lose no precision. */
        if (v->kind == ONXI_HALVE_CONSTANT)
            v->changes = !v->pinned && !v->wanted_old;
        else
            v->changes = !onxi_halve_stays(h, v->term);
    }
}

/* A node that keeps its types may make others keep theirs, if control flow or sequences connect them. */
static onx_status settle_values(onxi_halver *h)
{
    enum { ROUNDS = 100 };
    bool settled = false;
    for (int i = 0; i < ROUNDS && !settled; i++) {
        decide_values(h);
        ONX_TRY(onxi_halve_verify(h, &settled));
    }
    return settled ? ONX_OK
                   : onxi_fail(h->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                               "the types of the nodes depend on each other in more than %d steps", (int)ROUNDS);
}

/* A Cast to a type that its input now has returns its input, except if it is a graph output. */
static void drop_casts(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->node_count; i++) {
        const onxi_halve_node *n = &h->node[i];
        if (n->op != ONXI_ID_Cast || n->node->input_count != 1 || n->node->output_count != 1 || !n->chosen)
            continue;
        const uint32_t made = h->made[n->made], value = h->use[n->use].value;
        if (!is_source(h, made) || !h->value[made].changes)
            continue;
        const onx_type *type = onxi_values_type(&h->values, &n->scope->scope, onx_view(n->node->input[0]));
        h->value[made].dropped = is_source(h, value) ? h->value[value].changes : onxi_type_dtype(type) == (int)h->to;
    }
}

static onx_status name_cast(onxi_halver *h, onxi_halve_value *v)
{
    const char *type = onx_dtype_name(v->changes ? (int64_t)v->from : (int64_t)h->to);
    return onx_view(v->cast).len ? ONX_OK : onxi_names_make(&h->names, onx_view(v->name), onx_str_of(type), &v->cast);
}

/* An output of the model keeps its name in any type, so its producer gets another output name. */
static onx_status name_output(onxi_halver *h, onxi_halve_result *r)
{
    onxi_halve_value *v = &h->value[r->use.value];
    if (onx_view(v->cast).len)
        return ONX_OK;
    if (v->kind != ONXI_HALVE_MADE) {
        r->use.want = ONXI_HALVE_ANY;
        return ONX_OK;
    }
    v->cast = v->name;
    return onxi_names_make(&h->names, onx_view(v->name), onx_str_of(onx_dtype_name(v->changes ? h->to : v->from)),
                           &v->now);
}

static onx_status place_casts(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->result_count; i++) {
        onxi_halve_result *r = &h->result[i];
        h->value[r->use.value].dropped = false;
        if (r->scope->main && onxi_halve_wants_new(h, &r->use) != h->value[r->use.value].changes)
            ONX_TRY(name_output(h, r));
    }
    for (uint32_t i = 0; i < h->use_count + h->result_count; i++) {
        const onxi_halve_use *u = i < h->use_count ? &h->use[i] : &h->result[i - h->use_count].use;
        if (u->value == ONXI_HALVE_NONE || !h->value[u->value].from || !h->value[u->value].tensor_typed)
            continue;
        if (onxi_halve_wants_new(h, u) != h->value[u->value].changes)
            ONX_TRY(name_cast(h, &h->value[u->value]));
    }
    return ONX_OK;
}

onx_status onxi_halve_decide(onxi_halver *h)
{
    const bool fewer = h->to == ONX_FLOAT16 || h->to == ONX_BFLOAT16;
    keep_values(h);
    keep_sizes(h);
    if (fewer && !h->options->convert_exact)
        ONX_TRY(onxi_halve_keep_exact(h));
    keep_generators(h);
    follow_inputs(h);
    ONX_TRY(settle_values(h));
    drop_casts(h);
    return place_casts(h);
}
