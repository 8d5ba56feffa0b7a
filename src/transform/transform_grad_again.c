/* transform_grad_again.c - nodes of the model once more under other names: where Gradient is given other values than
 * those that it names, and where what is computed in the forward pass is not kept for the backward pass. */
#include "transform/transform_grad.h"

#include <onx/grad.h>

#include <math.h>

/* ---- copies ---- */

onx_status onxi_grad_again_set(onxi_grad_again *a, onx_str name, onx_bytes to)
{
    onxi_dict_entry *entry = onxi_dict_at(&a->to, name, a->to.count, NULL);
    if (!entry || !ONXI_GROW_IN(a->g->scratch, a->names, a->room, a->to.count))
        return ONX_E_MEMORY;
    a->names[entry->value] = to;
    return ONX_OK;
}

onx_status onxi_grad_again_rename(void *again, onx_bytes *name)
{
    const onxi_grad_again *a = again;
    const onxi_dict_entry *entry =
        onx_view(*name).len ? onxi_dict_find((onxi_dict *)(uintptr_t)&a->to, onx_view(*name)) : NULL;
    if (entry)
        *name = a->names[entry->value];
    return ONX_OK;
}

static onx_status rename_inputs(onxi_grad_again *a, onx_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(onxi_grad_again_rename(a, &node->input[i]));
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g)
            ONX_TRY(onxi_graph_each_name(a->g->cx, node->attribute[i]->g, onxi_grad_again_rename, a));
    return ONX_OK;
}

onx_status onxi_grad_again_node(onxi_grad_again *a, const onx_node *from, onx_node **out)
{
    onx_node *node;
    ONX_TRY(onxi_grad_copy(a->g, from, out));
    node = *out;
    ONX_TRY(rename_inputs(a, node));
    for (uint32_t i = 0; i < node->output_count; i++)
        if (onx_view(node->output[i]).len) {
            onx_bytes name;
            ONX_TRY(onxi_grad_name(a->g, node->output[i], "again", &name));
            ONX_TRY(onxi_grad_again_set(a, onx_view(node->output[i]), name));
            node->output[i] = name;
        }
    return ONX_OK;
}

/* ---- segments of the forward pass ---- */

typedef struct value {   /* what a node of the forward pass makes */
    uint32_t node, last; /* that makes it; the last that reads it; places in the list */
    double size;         /* elements, with 1 for dimensions that are not known */
    bool kept;           /* until the backward pass: another segment reads it, or it cannot be made again */
} value;

typedef struct plan {
    onxi_grad *g;
    const onxi_scope *scope;
    onx_node *const *nodes;
    uint32_t count, segments;
    uint32_t *segment_of; /* per node */
    uint32_t *start;      /* per segment: its first node; and the end */
    bool *wanted;         /* per node: the backward pass reads what it makes, directly or not */
    bool *repeated;       /* per segment */
    onxi_dict index;      /* names: indexes of values */
    value *values;
    uint32_t room;
    onxi_grad_again again;
} plan;

static value *value_of(plan *p, onx_str name)
{
    const onxi_dict_entry *entry = name.len ? onxi_dict_find(&p->index, name) : NULL;
    return entry ? &p->values[entry->value] : NULL;
}

static double size_of(const plan *p, onx_str name)
{
    const onx_type *type = onxi_values_type(&p->g->values, p->scope, name);
    const int rank = onxi_type_rank(type);
    double size = 1;
    for (int i = 0; i < rank; i++) {
        const int64_t dim = onxi_type_dim(type, (uint32_t)i);
        size *= dim > 0 ? (double)dim : 1;
    }
    return fmin(size, 1e15); /* sums are finite */
}

/* What the nodes make. Constants and shapes cost nothing to keep, and random numbers come but once. */
static onx_status list_values(plan *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const onx_node *node = p->nodes[i];
        const bool kept = !node->input_count || onxi_grad_is_about_shape(node) || onxi_grad_draws(p->g, node);
        for (uint32_t k = 0; k < node->output_count; k++) {
            const onx_str name = onx_view(node->output[k]);
            if (!name.len)
                continue;
            if (!ONXI_GROW_IN(p->g->scratch, p->values, p->room, (uint64_t)p->index.count + 1) ||
                !onxi_dict_at(&p->index, name, p->index.count, NULL))
                return ONX_E_MEMORY;
            p->values[p->index.count - 1] = (value){ i, i, size_of(p, name), kept };
        }
    }
    return ONX_OK;
}

/* The names that a node reads, itself or in its subgraphs. */
static onx_status list_reads(plan *p, const onx_node *node, onxi_dict *names)
{
    *names = onxi_dict_in_arena(p->g->scratch);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!onxi_dict_at(names, onx_view(node->input[i]), 1, NULL))
            return ONX_E_MEMORY;
    return onxi_grad_captured(p->g, node, names);
}

/* Calls `read` for each value that the node at some place reads. */
static onx_status each_read(plan *p, const onx_node *node, uint32_t at,
                            onx_status (*read)(plan *p, uint32_t at, value *read))
{
    onxi_dict names;
    ONX_TRY(list_reads(p, node, &names));
    for (uint32_t i = 0; i < names.count; i++) {
        value *v = value_of(p, names.entries[i].key);
        if (v)
            ONX_TRY(read(p, at, v));
    }
    return ONX_OK;
}

static onx_status keep_for_later(plan *p, uint32_t at, value *read)
{
    read->kept |= p->segment_of[read->node] != p->segment_of[at];
    return ONX_OK;
}

static onx_status note_reader(plan *p, uint32_t at, value *read)
{
    (void)p;
    read->last = at;
    return ONX_OK;
}

/* How much crosses from the nodes before each place to those after it. */
static onx_status measure_cuts(plan *p, double *crossing)
{
    for (uint32_t i = 0; i < p->count; i++)
        ONX_TRY(each_read(p, p->nodes[i], i, note_reader));
    for (uint32_t i = 0; i < p->index.count; i++) {
        const value *v = &p->values[i];
        if (v->last > v->node) { /* from after its maker to its last reader */
            crossing[v->node + 1] += v->size;
            crossing[v->last + 1] -= v->size;
        }
    }
    for (uint32_t i = 1; i <= p->count; i++)
        crossing[i] += crossing[i - 1];
    return ONX_OK;
}

/* Segments make about as much each; cuts are where little crosses, within half a segment. */
static onx_status cut(plan *p)
{
    double *crossing = ONXI_ARRAY(p->g->scratch, double, (size_t)p->count + 2);
    double *made = ONXI_ARRAY(p->g->scratch, double, (size_t)p->count + 2); /* before each place */
    if (!crossing || !made)
        return ONX_E_MEMORY;
    ONX_TRY(measure_cuts(p, crossing));
    for (uint32_t i = 0; i < p->index.count; i++)
        made[p->values[i].node + 1] += p->values[i].size;
    for (uint32_t i = 1; i <= p->count; i++)
        made[i] += made[i - 1];
    const double share = made[p->count] / p->segments;
    uint32_t at = 1, segment = 0;
    while (at < p->count && segment + 1 < p->segments) {
        const double ideal = share * (segment + 1);
        uint32_t best = 0;
        for (; at < p->count && made[at] <= ideal + share / 4; at++)
            if (made[at] >= ideal - share / 4 &&
                (!best || crossing[at] < crossing[best] ||
                 (crossing[at] <= crossing[best] && fabs(made[at] - ideal) < fabs(made[best] - ideal))))
                best = at;
        p->start[segment + 1] = best ? best : p->start[segment]; /* without a place it is empty */
        segment++;
    }
    for (const uint32_t rest = p->start[segment]; segment + 1 < p->segments;) /* is the last one's */
        p->start[++segment] = rest;
    p->start[p->segments] = p->count;
    for (segment = 0; segment < p->segments; segment++)
        for (uint32_t i = p->start[segment]; i < p->start[segment + 1]; i++)
            p->segment_of[i] = segment;
    return ONX_OK;
}

/* ---- the backward pass ---- */

/* Is the value made again? The last segment is still there when the backward pass begins. */
static bool is_repeated(const plan *p, const value *v)
{
    return !v->kept && p->segment_of[v->node] + 1 < p->segments;
}

static onx_status want(plan *p, uint32_t at, value *read)
{
    (void)at;
    if (is_repeated(p, read))
        p->wanted[read->node] = true;
    return ONX_OK;
}

static onx_status find_wanted(plan *p, const onxi_node_list *back)
{
    for (uint32_t i = 0; i < back->count; i++)
        ONX_TRY(each_read(p, back->items[i], i, want));
    for (uint32_t i = p->count; i-- > 0;)
        if (p->wanted[i])
            ONX_TRY(each_read(p, p->nodes[i], i, want));
    return ONX_OK;
}

/* The wanted nodes of a segment; what others read of them is what they make again. */
static onx_status repeat_segment(plan *p, uint32_t segment, onxi_node_list *out)
{
    p->repeated[segment] = true;
    for (uint32_t i = p->start[segment]; i < p->start[segment + 1]; i++) {
        onx_node *copy;
        if (!p->wanted[i])
            continue;
        ONX_TRY(onxi_grad_again_node(&p->again, p->nodes[i], &copy));
        ONX_TRY(onxi_node_list_add(p->g->scratch, out, copy));
        for (uint32_t k = 0; k < p->nodes[i]->output_count; k++) {
            const value *v = value_of(p, onx_view(p->nodes[i]->output[k]));
            if (v && v->kept)
                ONX_TRY(onxi_grad_again_set(&p->again, onx_view(p->nodes[i]->output[k]), p->nodes[i]->output[k]));
        }
    }
    return ONX_OK;
}

/* Each segment is made again right before the first node that reads what it had made. */
static onx_status write_back(plan *p, onxi_node_list *back)
{
    onxi_node_list list = { 0 };
    for (uint32_t i = 0; i < back->count; i++) {
        onxi_dict names;
        ONX_TRY(list_reads(p, back->items[i], &names));
        for (uint32_t k = 0; k < names.count; k++) {
            const value *v = value_of(p, names.entries[k].key);
            if (v && is_repeated(p, v) && !p->repeated[p->segment_of[v->node]])
                ONX_TRY(repeat_segment(p, p->segment_of[v->node], &list));
        }
        ONX_TRY(rename_inputs(&p->again, back->items[i]));
        ONX_TRY(onxi_node_list_add(p->g->scratch, &list, back->items[i]));
    }
    *back = list;
    return ONX_OK;
}

onx_status onxi_grad_checkpoint(onxi_grad *g, const onxi_scope *scope, const onxi_node_list *forward,
                                onxi_node_list *back)
{
    const uint32_t count = forward->count;
    plan p = { .g = g,
               .scope = scope,
               .nodes = forward->items,
               .count = count,
               .index = onxi_dict_in_arena(g->scratch),
               .again = { .g = g, .to = onxi_dict_in_arena(g->scratch) } };
    p.segments = g->checkpoint > 0 ? (uint32_t)g->checkpoint : (uint32_t)lround(sqrt((double)count));
    p.segments = p.segments < count ? p.segments : count;
    if (!g->checkpoint || p.segments < 2)
        return ONX_OK;
    p.segment_of = ONXI_ARRAY(g->scratch, uint32_t, (size_t)count + 1);
    p.start = ONXI_ARRAY(g->scratch, uint32_t, (size_t)p.segments + 1);
    p.wanted = ONXI_ARRAY(g->scratch, bool, (size_t)count + 1);
    p.repeated = ONXI_ARRAY(g->scratch, bool, (size_t)p.segments + 1);
    if (!p.segment_of || !p.start || !p.wanted || !p.repeated)
        return ONX_E_MEMORY;
    ONX_TRY(list_values(&p));
    ONX_TRY(cut(&p));
    for (uint32_t i = 0; i < count; i++)
        ONX_TRY(each_read(&p, p.nodes[i], i, keep_for_later));
    ONX_TRY(find_wanted(&p, back));
    return write_back(&p, back);
}
