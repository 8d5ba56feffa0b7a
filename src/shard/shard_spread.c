/* shard_spread.c - decides which nodes are split, and along which dimension: a split is propagated from node to node
 * until the parts are combined again. */
#include "shard/shard_spread.h"

#include "value/value.h"

#include <stdio.h>

enum { STEPS_PER_NODE = 64, STEPS_LEAST = 65536 };

/* ---- tables ---- */

static onx_status list_uses(onxi_spread *s)
{
    const onxi_shard_plan *plan = s->plan;
    uint64_t all = 0;
    for (uint32_t i = 0; i < plan->node_count; i++)
        all += plan->node[i].node->input_count;
    if (all > UINT32_MAX)
        return onxi_fail(plan->cx, ONX_E_LIMIT, ONXI_NOWHERE, "the graph has too many operands");
    s->first = ONXI_ARRAY(plan->arena, uint32_t, (size_t)plan->value_count + 2);
    s->use = ONXI_ARRAY(plan->arena, onxi_shard_use, (size_t)all + 1);
    if (!s->first || !s->use)
        return ONX_E_MEMORY;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < plan->node_count; i++) {
            const onxi_shard_node *n = &plan->node[i];
            for (uint32_t k = 0; k < n->node->input_count; k++) {
                if (n->inputs[k] == ONXI_SHARD_NONE || (int32_t)k == n->rule.unread)
                    continue;
                if (pass)
                    s->use[s->first[n->inputs[k] + 1]++] = (onxi_shard_use){ i, k };
                else
                    s->first[n->inputs[k] + 2]++;
            }
        }
        for (uint32_t v = 2; v < plan->value_count + 2 && !pass; v++)
            s->first[v] += s->first[v - 1];
    }
    return ONX_OK;
}

onx_status onxi_spread_open(onxi_spread *s)
{
    const onxi_shard_plan *plan = s->plan;
    for (uint32_t w = 0; w < ONXI_SHARD_WAYS; w++) {
        s->dim[w] = ONXI_ARRAY(plan->arena, int8_t, (size_t)plan->node_count + 1);
        s->axis[w] = ONXI_ARRAY(plan->arena, int8_t, (size_t)plan->value_count + 1);
        if (!s->dim[w] || !s->axis[w])
            return ONX_E_MEMORY;
        memset(s->dim[w], -1, (size_t)plan->node_count + 1);
        memset(s->axis[w], -1, (size_t)plan->value_count + 1);
    }
    s->stage = ONXI_ARRAY(plan->arena, uint32_t, (size_t)plan->node_count + 1);
    s->tied = ONXI_ARRAY(plan->arena, bool, (size_t)plan->node_count + 1);
    s->output = ONXI_ARRAY(plan->arena, bool, (size_t)plan->value_count + 1);
    s->captured = ONXI_ARRAY(plan->arena, bool, (size_t)plan->value_count + 1);
    if (!s->stage || !s->tied || !s->output || !s->captured)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < plan->graph->output_count; i++) {
        const uint32_t v = onxi_shard_value_find(plan, onx_view(plan->graph->output[i]->name));
        if (v != ONXI_SHARD_NONE)
            s->output[v] = true;
    }
    for (uint32_t i = 0; i < plan->node_count; i++)
        for (uint32_t k = 0; k < plan->node[i].captured_count; k++)
            s->captured[plan->node[i].captured[k]] = true;
    s->steps = (uint64_t)plan->node_count * STEPS_PER_NODE + STEPS_LEAST;
    return list_uses(s);
}

void onxi_spread_tell(const onxi_spread *s, const char *rule, uint32_t node, const char *format, ...)
{
    char text[256];
    va_list args;
    if (!s->options->changed)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const onx_change change = { .pass = "shard",
                                .rule = onx_str_of(rule),
                                .path = onxi_path_node(s->plan->arena, onx_str_of("graph."), node,
                                                       s->plan->graph->node[node]),
                                .text = onx_str_of(text) };
    s->options->changed(s->options->user, &change);
}

/* ---- regions ---- */

/* The nodes and values of a region that is split in one way; undone if it does not work out. */
typedef struct region {
    onxi_spread *s;
    onxi_shard_way way;
    /* If set, the region is split completely or not at all: producers of a split value are split, too, and remaining
     * partial results are only added up by products with weights. Otherwise a value may also be combined before a
     * node. */
    bool closed;
    bool failed;
    uint32_t *node, *value;
    uint32_t node_count, value_count, node_room, value_room;
    uint64_t weights; /* number of elements of constants that are split */
} region;

static const onxi_shard_node *node_at(const region *r, uint32_t node)
{
    return &r->s->plan->node[node];
}

static uint32_t value_of(const onxi_shard_node *n, uint32_t operand)
{
    return n->inputs[operand]; /* outputs follow */
}

static uint64_t elements(const onxi_shard_value *v)
{
    uint64_t count = v->known;
    for (uint32_t k = 0; k < v->rank; k++)
        count *= (uint64_t)v->dims[k];
    return count;
}

/* The number of elements of weights that are split along a dimension of a node. */
static uint64_t weights_along(const region *r, const onxi_shard_node *n, uint32_t dim)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < n->node->input_count; i++)
        for (uint32_t k = 0; k < ONXI_SHARD_RANK && n->inputs[i] != ONXI_SHARD_NONE; k++)
            if (n->rule.map[i][k] == (int8_t)dim && r->s->plan->value[n->inputs[i]].constant)
                count += elements(&r->s->plan->value[n->inputs[i]]);
    return count;
}

/* The number of parts into which a dimension can be split. */
static bool fits(const region *r, const onxi_shard_node *n, uint32_t dim)
{
    const onxi_shard_dim *d = &n->rule.dim[dim];
    const uint32_t parts = r->s->parts[r->way];
    return d->size >= (int64_t)parts && !(d->unit && d->unit % parts);
}

static onx_status split_value(region *r, uint32_t value, int8_t axis)
{
    int8_t *at = &r->s->axis[r->way][value];
    const onxi_shard_value *v = &r->s->plan->value[value];
    if (v->constant || *at == axis)
        return ONX_OK;
    if (*at >= 0 || r->s->captured[value]) {
        r->failed |= r->closed;
        return ONX_OK;
    }
    if (!ONXI_GROW_IN(r->s->plan->arena, r->value, r->value_room, (uint64_t)r->value_count + 1))
        return ONX_E_MEMORY;
    r->value[r->value_count++] = value;
    *at = axis;
    return ONX_OK;
}

/* Splits the operands of a node along dimension `dim`. */
static onx_status split_operands(region *r, const onxi_shard_node *n, int8_t dim)
{
    const uint32_t ins = n->node->input_count, operands = ins + n->node->output_count;
    for (uint32_t i = 0; i < operands; i++) {
        if (value_of(n, i) == ONXI_SHARD_NONE || (i < ins && !r->closed) || (int32_t)i == n->rule.unread)
            continue;
        for (int8_t k = 0; k < ONXI_SHARD_RANK; k++)
            if (n->rule.map[i][k] == dim)
                ONX_TRY(split_value(r, value_of(n, i), k));
    }
    return ONX_OK;
}

static onx_status split_node(region *r, uint32_t node, int8_t dim)
{
    const onxi_shard_node *n = node_at(r, node);
    int8_t *at = &r->s->dim[r->way][node];
    if (*at == dim)
        return ONX_OK;
    bool can = dim >= 0 && *at < 0 && fits(r, n, (uint32_t)dim);
    for (uint32_t w = 0; w < ONXI_SHARD_WAYS; w++)
        can = can && r->s->dim[w][node] != dim;
    if (can && r->closed && n->rule.dim[dim].kind != ONXI_SHARD_PARALLEL)
        can = n->rule.dim[dim].kind == ONXI_SHARD_SUM && weights_along(r, n, (uint32_t)dim);
    if (!can) {
        r->failed |= r->closed;
        return ONX_OK;
    }
    if (!ONXI_GROW_IN(r->s->plan->arena, r->node, r->node_room, (uint64_t)r->node_count + 1))
        return ONX_E_MEMORY;
    r->node[r->node_count++] = node;
    r->weights += weights_along(r, n, (uint32_t)dim);
    *at = dim;
    return split_operands(r, n, dim);
}

/* The producer of the value and its readers are split in the same way. */
static onx_status follow(region *r, uint32_t value)
{
    const onxi_spread *s = r->s;
    const onxi_shard_value *v = &s->plan->value[value];
    const int8_t axis = s->axis[r->way][value];
    if (r->closed && v->node != ONXI_SHARD_NONE) {
        const onxi_shard_node *n = node_at(r, v->node);
        int8_t dim = -1;
        for (uint32_t i = 0; i < n->node->output_count; i++)
            if (n->outputs[i] == value)
                dim = n->rule.map[n->node->input_count + i][axis];
        r->failed |= dim < 0 || n->rule.dim[dim].kind != ONXI_SHARD_PARALLEL;
        if (!r->failed)
            ONX_TRY(split_node(r, v->node, dim));
    }
    for (uint32_t i = s->first[value]; i < s->first[value + 1] && !r->failed; i++) {
        const onxi_shard_node *n = node_at(r, s->use[i].node);
        if (n->live && !n->constant)
            ONX_TRY(split_node(r, s->use[i].node, n->rule.map[s->use[i].operand][axis]));
    }
    return ONX_OK;
}

static onx_status follow_all(region *r)
{
    for (uint32_t i = 0; i < r->value_count && !r->failed; i++) {
        const uint64_t cost = 1 + (uint64_t)r->s->first[r->value[i] + 1] - r->s->first[r->value[i]];
        r->failed |= r->s->steps < cost;
        r->s->steps -= r->failed ? 0 : cost;
        ONX_TRY(follow(r, r->value[i]));
    }
    return ONX_OK;
}

static void undo(region *r)
{
    for (uint32_t i = 0; i < r->node_count; i++)
        r->s->dim[r->way][r->node[i]] = -1;
    for (uint32_t i = 0; i < r->value_count; i++)
        r->s->axis[r->way][r->value[i]] = -1;
    r->node_count = r->value_count = 0;
    r->weights = 0;
    r->failed = false;
}

/* ---- the batch ---- */

onx_status onxi_spread_batch(onxi_spread *s)
{
    region r = { .s = s, .way = ONXI_SHARD_DATA };
    int64_t size = 0;
    for (uint32_t i = 0; i < s->plan->graph->input_count; i++) {
        const uint32_t v = onxi_shard_value_find(s->plan, onx_view(s->plan->graph->input[i]->name));
        const onxi_shard_value *in = v == ONXI_SHARD_NONE ? NULL : &s->plan->value[v];
        if (!in || !in->input || !in->known || !in->rank)
            continue;
        size = size ? size : in->dims[0];
        if (in->dims[0] == size && size >= (int64_t)s->parts[ONXI_SHARD_DATA])
            ONX_TRY(split_value(&r, v, 0));
    }
    ONX_TRY(follow_all(&r));
    if (!r.node_count)
        return onxi_fail(s->plan->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "no first axis of an input can be split into %u parts of the batch",
                         s->parts[ONXI_SHARD_DATA]);
    onxi_spread_tell(s, "data", r.node[0], "%u nodes are split into %u parts of the batch, of %lld in all",
                     r.node_count, s->parts[ONXI_SHARD_DATA], (long long)size);
    return ONX_OK;
}

/* ---- weights ---- */

/* A dimension of that kind of weights that are larger than the node's outputs or, for PARALLEL, of weights only: the
 * columns of a product. -1: none. */
static int8_t weight_dim(const region *r, const onxi_shard_node *n, onxi_shard_kind kind)
{
    for (uint32_t d = 0; d < n->rule.dim_count; d++) {
        bool alone = true;
        if (n->rule.dim[d].kind != kind || !fits(r, n, d) || !weights_along(r, n, d))
            continue;
        for (uint32_t i = 0; i < n->node->input_count; i++)
            for (uint32_t k = 0; k < ONXI_SHARD_RANK && n->inputs[i] != ONXI_SHARD_NONE; k++)
                alone &= n->rule.map[i][k] != (int8_t)d || r->s->plan->value[n->inputs[i]].constant;
        if (alone)
            return (int8_t)d;
    }
    return -1;
}

static bool saves(const region *r, const onxi_shard_node *n, int8_t dim)
{
    uint64_t made = 0;
    for (uint32_t i = 0; i < n->node->output_count; i++)
        made += n->outputs[i] == ONXI_SHARD_NONE ? 0 : elements(&r->s->plan->value[n->outputs[i]]);
    return weights_along(r, n, (uint32_t)dim) >= made;
}

/* Nodes from the first to the last of a region stay in the same stage. */
static void tie(const region *r)
{
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < r->node_count; i++) {
        first = r->node[i] < first ? r->node[i] : first;
        last = r->node[i] > last ? r->node[i] : last;
    }
    for (uint32_t i = first; i < last; i++)
        r->s->tied[i + 1] = true;
}

static onx_status split_weights(region *r, uint32_t node, bool *found)
{
    const onxi_shard_node *n = node_at(r, node);
    const char *rule = "rows of a table";
    int8_t dim = weight_dim(r, n, ONXI_SHARD_SUM);
    *found = false;
    if (dim >= 0 && saves(r, n, dim)) {
        ONX_TRY(split_node(r, node, dim));
    } else if ((dim = weight_dim(r, n, ONXI_SHARD_PARALLEL)) >= 0) {
        rule = "columns and rows";
        ONX_TRY(split_node(r, node, dim));
        ONX_TRY(follow_all(r));
        if (r->failed && saves(r, n, dim)) { /* the following nodes use it as it is, or combine it */
            undo(r);
            rule = "columns";
            ONX_TRY(split_node(r, node, dim));
            for (uint32_t i = 0; i < r->value_count; i++)
                r->s->axis[r->way][r->value[i]] = -1;
        }
    }
    if (r->failed || !r->node_count) {
        undo(r);
        return ONX_OK;
    }
    *found = true;
    tie(r);
    onxi_spread_tell(r->s, rule, node, "%u node%s, %llu elements of weights", r->node_count,
                     r->node_count == 1 ? " is split" : "s are split", (unsigned long long)r->weights);
    return ONX_OK;
}

onx_status onxi_spread_weights(onxi_spread *s)
{
    bool any = false, found;
    region r = { .s = s, .way = ONXI_SHARD_TENSOR, .closed = true };
    for (uint32_t i = 0; i < s->plan->node_count; i++) {
        const onxi_shard_node *n = &s->plan->node[i];
        if (!n->live || n->constant || s->dim[ONXI_SHARD_TENSOR][i] >= 0)
            continue;
        r.node_count = r.value_count = 0;
        r.weights = 0;
        r.failed = false;
        ONX_TRY(split_weights(&r, i, &found));
        any |= found;
    }
    if (any)
        return ONX_OK;
    return onxi_fail(s->plan->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the model has no weights that %u devices can share",
                     s->parts[ONXI_SHARD_TENSOR]);
}
