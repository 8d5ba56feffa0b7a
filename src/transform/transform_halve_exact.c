/* transform_halve_exact.c - nodes that keep their type because rounding would change which element is selected, not
 * only its accuracy: those that compute positions (boxes, grids), ranks, and angles derived from integers; and
 * variances that would become 0. */
#include "transform/transform_halve.h"

/* Operands that determine which elements are selected. A rank is lost if two numbers become equal by rounding; but
 * nothing is gained by ranking exactly what a product has already rounded. */
static const struct {
    onxi_op_id op;
    uint32_t operand;
} ranks[] = { { ONXI_ID_NonMaxSuppression, 0 }, { ONXI_ID_NonMaxSuppression, 1 }, { ONXI_ID_TopK, 0 } };

typedef struct walk {
    onxi_halver *h;
    uint32_t *maker; /* per value: the node, NONE: another origin */
    uint32_t *stack; /* nodes whose inputs have to be visited; each is in it once */
    uint32_t count;
    bool integers; /* continue through values that derive from integers only */
} walk;

/* Is the node cheap, and without weights whose products would round anyway? The search stops at all other nodes. */
static bool passes(onxi_op_id op)
{
    if (onxi_operator_is(op, ONXI_TRAIT_ELEMENTWISE | ONXI_TRAIT_REDUCTION) || onxi_halve_passes_on(op))
        return true;
    switch ((int)op) {
    case ONXI_ID_AffineGrid:
    case ONXI_ID_ConstantOfShape:
    case ONXI_ID_CumSum:
    case ONXI_ID_LogSoftmax:
    case ONXI_ID_MaxPool:
    case ONXI_ID_Pad:
    case ONXI_ID_Range:
    case ONXI_ID_ScatterElements:
    case ONXI_ID_ScatterND:
    case ONXI_ID_Softmax:
    case ONXI_ID_TopK:
        return true;
    default:
        return false;
    }
}

/* Keeps the type of the node, and continues with the producers of its inputs. */
static void keep(walk *w, uint32_t node)
{
    onxi_halve_node *n = &w->h->node[node];
    if (n->exact)
        return;
    n->exact = true;
    onxi_halve_keep(w->h, n);
    w->stack[w->count++] = node;
}

static uint32_t maker_of(const walk *w, const onxi_halve_node *n, uint32_t input)
{
    const uint32_t value = input < n->node->input_count ? w->h->use[n->use + input].value : ONXI_HALVE_NONE;
    if (value == ONXI_HALVE_NONE || !w->h->value[value].from || w->maker[value] == ONXI_HALVE_NONE)
        return ONXI_HALVE_NONE;
    const onxi_halve_node *made = &w->h->node[w->maker[value]];
    const bool through = w->integers ? w->h->value[value].integers : passes(made->op);
    return through ? w->maker[value] : ONXI_HALVE_NONE;
}

static void go_back(walk *w)
{
    while (w->count) {
        const onxi_halve_node *n = &w->h->node[w->stack[--w->count]];
        for (uint32_t i = 0; i < n->node->input_count; i++) {
            const uint32_t maker = maker_of(w, n, i);
            if (maker != ONXI_HALVE_NONE)
                keep(w, maker);
        }
    }
}

/* Boxes of different classes are separated by offsets of thousands, which would be rounded to multiples of 16; grids
 * address single pixels. Nodes with such operands keep their type, and the search does not continue through their other
 * operands. */
static void keep_places(walk *w, uint32_t node)
{
    onxi_halve_node *n = &w->h->node[node];
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const uint32_t maker = n->op == ranks[i].op ? maker_of(w, n, ranks[i].operand) : ONXI_HALVE_NONE;
        if (maker != ONXI_HALVE_NONE)
            keep(w, n->op == ONXI_ID_TopK ? node : maker);
    }
    if (onxi_operator_is(n->op, ONXI_TRAIT_PLACES)) {
        const uint32_t maker = maker_of(w, n, 1);
        n->exact = true;
        onxi_halve_keep(w->h, n);
        if (maker != ONXI_HALVE_NONE)
            keep(w, maker);
    }
    go_back(w);
}

/* ---- angles: for positions in the thousands, the angle modulo a full turn has no accurate bits left in 16 bits
 * ---- */

/* Derived from integers other than pixels or levels, which have few bits themselves. */
static bool begins_integers(const onxi_halver *h, const onxi_halve_node *n)
{
    if (n->op == ONXI_ID_Range)
        return true;
    if (n->op != ONXI_ID_Cast || n->node->input_count != 1 || h->use[n->use].value != ONXI_HALVE_NONE)
        return false;
    const int dtype = onxi_type_dtype(
        onxi_values_type((onxi_values *)(uintptr_t)&h->values, &n->scope->scope, onx_view(n->node->input[0])));
    return dtype == ONX_INT64 || dtype == ONX_INT32;
}

static bool goes_on_with_integers(const onxi_halver *h, const onxi_halve_node *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->node->input_count; i++) {
        const uint32_t value = h->use[n->use + i].value;
        if (value == ONXI_HALVE_NONE || !h->value[value].from)
            continue;
        any |= h->value[value].integers;
        if (!h->value[value].integers && h->value[value].kind != ONXI_HALVE_CONSTANT)
            return false;
    }
    return any;
}

static void keep_angles(walk *w)
{
    onxi_halver *h = w->h;
    w->integers = true;
    for (uint32_t i = 0; i < h->node_count; i++) {
        const onxi_halve_node *n = &h->node[i];
        const bool on = goes_on_with_integers(h, n);
        if (on && (n->op == ONXI_ID_Sin || n->op == ONXI_ID_Cos))
            keep(w, i);
        go_back(w);
        for (uint32_t k = 0; (on || begins_integers(h, n)) && k < n->node->output_count; k++)
            if (h->made[n->made + k] != ONXI_HALVE_NONE)
                h->value[h->made[n->made + k]].integers = true;
    }
}

/* What the operator adds to a variance, 1e-9, is 0 in half precision: equal elements would become 0/0. */
static void keep_variances(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->node_count && h->to == ONX_FLOAT16; i++)
        if (h->node[i].op == ONXI_ID_MeanVarianceNormalization)
            onxi_halve_keep(h, &h->node[i]);
}

onx_status onxi_halve_keep_exact(onxi_halver *h)
{
    walk w = { .h = h,
               .maker = ONXI_ARRAY(h->scratch, uint32_t, (size_t)h->value_count + 1),
               .stack = ONXI_ARRAY(h->scratch, uint32_t, (size_t)h->node_count + 1) };
    if (!w.maker || !w.stack)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < h->value_count; i++)
        w.maker[i] = ONXI_HALVE_NONE;
    for (uint32_t i = 0; i < h->node_count; i++)
        for (uint32_t k = 0; k < h->node[i].node->output_count; k++)
            if (h->made[h->node[i].made + k] != ONXI_HALVE_NONE)
                w.maker[h->made[h->node[i].made + k]] = i;
    for (uint32_t i = 0; i < h->node_count; i++)
        keep_places(&w, i);
    keep_angles(&w);
    keep_variances(h);
    return ONX_OK;
}
