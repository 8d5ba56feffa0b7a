/* transform_grad_segments.c - checkpointing: forward values are recomputed for the backward pass, segment by segment,
 * except those that cross from one segment to another. */
#include "transform/transform_grad.h"
#include "transform/transform_grad_cut.h"

#include <math.h>

enum { OPEN_SIZE = 16 }; /* assumed size of an axis of unknown size */

typedef struct value { /* an output of a node in the forward pass */
    onxi_grad_cut_value cut;
    bool kept; /* until the backward pass: another segment reads it, or it cannot be recomputed */
} value;

typedef struct reads { /* the values that nodes of a list read */
    uint32_t *first;   /* per node: its first entry in `ids`; and the end */
    uint32_t *ids, count, room;
} reads;

typedef struct plan {
    onxi_grad *g;
    onxi_scope *scope;
    onx_node *const *nodes;
    onxi_node_list *back;
    uint32_t count, segments;
    uint32_t *segment_of; /* per node */
    uint32_t *start;      /* per segment: its first node; and the end */
    bool *useful;         /* per node: the backward pass needs its outputs, directly or indirectly, in any segment */
    bool *wanted;         /* per node: the backward pass needs its outputs, and it is recomputed */
    bool *repeated;       /* per segment */
    double *beside;       /* per node, for onxi_grad_cut */
    onxi_dict index;      /* names: indexes of values */
    value *values;
    uint32_t room;
    reads reads, back_reads; /* of values: by `nodes`, by `back` */
    onxi_grad_again again;
} plan;

static double size_of(const plan *p, onx_str name)
{
    const onx_type *type = onxi_values_type(&p->g->values, p->scope, name);
    const int rank = onxi_type_rank(type);
    double size = onx_dtype_bits(onxi_type_dtype(type)) / 8.0;
    for (int i = 0; i < rank; i++) {
        const int64_t dim = onxi_type_dim(type, (uint32_t)i);
        size *= dim >= 0 ? (double)dim : OPEN_SIZE;
    }
    return fmin(size, 1e15); /* sums are finite */
}

static onx_status add_read(const plan *p, onxi_dict *index, onx_str name, reads *r)
{
    const onxi_dict_entry *entry = name.len ? onxi_dict_find(index, name) : NULL;
    if (!entry)
        return ONX_OK;
    if (!ONXI_GROW_IN(p->g->scratch, r->ids, r->room, (uint64_t)r->count + 1))
        return ONX_E_MEMORY;
    r->ids[r->count++] = entry->value;
    return ONX_OK;
}

/* The indexed values that nodes read, themselves or in their subgraphs. */
static onx_status list_reads(const plan *p, onx_node *const *nodes, uint32_t count, onxi_dict *index, reads *r)
{
    *r = (reads){ .first = ONXI_ARRAY(p->g->scratch, uint32_t, (size_t)count + 1) };
    if (!r->first)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        onxi_dict inner = onxi_dict_in_arena(p->g->scratch);
        for (uint32_t k = 0; k < nodes[i]->input_count; k++)
            ONX_TRY(add_read(p, index, onx_view(nodes[i]->input[k]), r));
        ONX_TRY(onxi_grad_captured(p->g, nodes[i], &inner));
        for (uint32_t k = 0; k < inner.count; k++)
            ONX_TRY(add_read(p, index, inner.entries[k].key, r));
        r->first[i + 1] = r->count;
    }
    return ONX_OK;
}

/* ---- the forward pass ---- */

/* The rule by which the first output of a random node can be recomputed from the others; NULL: there is none, or
 * outputs are missing. */
static const onxi_grad_rule *rule_of_drawn(const plan *p, const onx_node *node, onxi_grad_node *n)
{
    const onxi_bound *bound = onxi_bind(&p->g->binder, node);
    const onxi_grad_rule *rule =
        bound && bound->kind == ONXI_BOUND_OPERATOR ? onxi_grad_rule_of(p->g, bound->op) : NULL;
    if (!rule || node->output_count < 2 || !onx_view(node->output[1]).len)
        return NULL;
    *n = (onxi_grad_node){
        .s = { .values = &p->g->values, .arena = p->g->arena, .scope = p->scope, .node = node, .row = bound->schema },
        .g = p->g
    };
    for (const onxi_op_id op = rule->op; rule->op == op; rule++)
        if (rule->kind == ONXI_GRAD_AGAIN && rule->when(n))
            return rule;
    return NULL;
}

/* Collects the outputs of nodes. Constants and shapes cost nothing to keep, and random numbers cannot be drawn
 * again. */
static onx_status list_values(plan *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const onx_node *node = p->nodes[i];
        const bool draws = onxi_grad_draws(p->g, node), small = !node->input_count || onxi_grad_is_about_shape(node);
        onxi_grad_node n;
        for (uint32_t k = 0; k < node->output_count; k++) {
            const onx_str name = onx_view(node->output[k]);
            if (!name.len)
                continue;
            if (!ONXI_GROW_IN(p->g->scratch, p->values, p->room, (uint64_t)p->index.count + 1) ||
                !onxi_dict_at(&p->index, name, p->index.count, NULL))
                return ONX_E_MEMORY;
            const bool follows = draws && !k && rule_of_drawn(p, node, &n);
            p->values[p->index.count - 1] =
                (value){ .cut = { i, i, size_of(p, name), false }, .kept = small || (draws && !follows) };
        }
    }
    ONX_TRY(list_reads(p, p->nodes, p->count, &p->index, &p->reads));
    return list_reads(p, p->back->items, p->back->count, &p->index, &p->back_reads);
}

/* Nodes before all xs, such as frozen layers, are not worth recomputing. */
static onx_status keep_beginning(plan *p, const onxi_grad_task *task, uint32_t *from)
{
    onxi_dict xs = onxi_dict_in_arena(p->g->scratch);
    reads of_xs;
    for (uint32_t i = 0; i < task->x_count; i++)
        if (!onxi_dict_at(&xs, onx_view(task->xs[i]), i, NULL))
            return ONX_E_MEMORY;
    ONX_TRY(list_reads(p, p->nodes, p->count, &xs, &of_xs));
    for (*from = 0; *from < p->count && !of_xs.first[*from + 1];)
        ++*from;
    for (uint32_t i = 0; i < p->index.count; i++)
        p->values[i].kept |= p->values[i].cut.made < *from;
    return ONX_OK;
}

/* Must the value be available when the node is recomputed, or in its backward part? */
static bool counts(const plan *p, uint32_t at, const value *read)
{
    return read->cut.needed || p->useful[at];
}

static void note_reads(plan *p)
{
    const reads *r = &p->reads;
    for (uint32_t k = 0; k < p->back_reads.count; k++) {
        value *v = &p->values[p->back_reads.ids[k]];
        v->cut.needed = true;
        p->useful[v->cut.made] = true;
    }
    for (uint32_t i = p->count; i-- > 0;)
        for (uint32_t k = r->first[i]; k < r->first[i + 1] && p->useful[i]; k++)
            p->useful[p->values[r->ids[k]].cut.made] = true;
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = r->first[i]; k < r->first[i + 1]; k++)
            if (counts(p, i, &p->values[r->ids[k]]))
                p->values[r->ids[k]].cut.last = i;
}

/* ---- additional memory of the backward pass ---- */

typedef struct made { /* an output of a node in the backward pass */
    uint32_t last;    /* the last node that reads it; the number of nodes: it is a result */
    double size;
} made;

typedef struct beside {
    onxi_dict index;
    made *values; /* all outputs, in order */
    uint32_t count, room;
    reads reads; /* by the backward pass */
    uint32_t at; /* index of the next node's first output */
    double live; /* bytes before it */
} beside;

/* A value without readers is a result of the backward pass, and is kept. */
static onx_status list_made(const plan *p, beside *b)
{
    const uint32_t count = p->back->count;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < p->back->items[i]->output_count; k++) {
            const onx_str name = onx_view(p->back->items[i]->output[k]);
            if (!name.len)
                continue;
            if (!ONXI_GROW_IN(p->g->scratch, b->values, b->room, (uint64_t)b->count + 1) ||
                !onxi_dict_at(&b->index, name, b->count, NULL))
                return ONX_E_MEMORY;
            b->values[b->count++] = (made){ count, size_of(p, name) };
        }
    ONX_TRY(list_reads(p, p->back->items, count, &b->index, &b->reads));
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = b->reads.first[i]; k < b->reads.first[i + 1]; k++)
            b->values[b->reads.ids[k]].last = i;
    return ONX_OK;
}

/* Operators that may overwrite an input of the same size that has no other reader. */
static bool is_in_place(const onx_node *node)
{
    static const onxi_op_id others[] = { ONXI_ID_Reshape, ONXI_ID_Unsqueeze, ONXI_ID_Squeeze, ONXI_ID_ScatterElements,
                                         ONXI_ID_ScatterND };
    const onxi_op_id id = onxi_operator_id(onxi_operator_find(onx_view(node->domain), onx_view(node->op_type)));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (id == others[i])
            return true;
    return onxi_operator_is(id, ONXI_TRAIT_ELEMENTWISE);
}

/* Simulates the next node; returns the memory in use during it. */
static double run_node(const plan *p, beside *b, uint32_t at)
{
    const onx_node *node = p->back->items[at];
    double gone = 0, come = 0, replaced = 0;
    for (uint32_t k = 0; k < node->output_count; k++)
        if (onx_view(node->output[k]).len)
            come += b->values[b->at++].size;
    for (uint32_t k = b->reads.first[at]; k < b->reads.first[at + 1]; k++) {
        made *m = &b->values[b->reads.ids[k]];
        if (m->last != at)
            continue;
        if (m->size >= come && m->size <= come)
            replaced = m->size;
        gone += m->size;
        m->size = 0; /* it may be read twice */
    }
    const double most = b->live + come - (is_in_place(node) ? replaced : 0);
    b->live += come - gone;
    return most;
}

/* Per node of the forward pass, the maximum memory while it is the last node whose outputs are needed. */
static onx_status measure_beside(plan *p)
{
    const uint32_t count = p->back->count;
    const reads *r = &p->back_reads;
    uint32_t *needs =
        ONXI_ARRAY(p->g->scratch, uint32_t, (size_t)count + 1); /* 1 + the last node needed from there on */
    beside b = { .index = onxi_dict_in_arena(p->g->scratch) };
    if (!needs)
        return ONX_E_MEMORY;
    for (uint32_t i = count; i-- > 0;) {
        needs[i] = needs[i + 1];
        for (uint32_t k = r->first[i]; k < r->first[i + 1]; k++) {
            const value *v = &p->values[r->ids[k]];
            if (!v->kept && v->cut.made + 1 > needs[i])
                needs[i] = v->cut.made + 1;
        }
    }
    ONX_TRY(list_made(p, &b));
    for (uint32_t i = 0; i < count; i++) {
        const double most = run_node(p, &b, i);
        if (needs[i])
            p->beside[needs[i] - 1] = fmax(p->beside[needs[i] - 1], most);
    }
    return ONX_OK;
}

/* ---- segments ---- */

static onx_status cut(plan *p, uint32_t from, uint32_t most)
{
    onxi_grad_cut_value *values = ONXI_ARRAY(p->g->scratch, onxi_grad_cut_value, (size_t)p->index.count + 1);
    onxi_grad_cut_task task = {
        .values = values, .beside = p->beside, .node_count = p->count, .from = from, .most = most
    };
    onxi_grad_cuts cuts;
    if (!values)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < p->index.count; i++)
        if (!p->values[i].kept)
            values[task.value_count++] = p->values[i].cut;
    ONX_TRY(onxi_grad_cut(p->g->scratch, &task, &cuts));
    p->segments = cuts.count;
    p->start = cuts.starts;
    p->start[0] = 0;
    p->start[cuts.count] = p->count;
    for (uint32_t segment = 0; segment < p->segments; segment++)
        for (uint32_t i = p->start[segment]; i < p->start[segment + 1]; i++)
            p->segment_of[i] = segment;
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = p->reads.first[i]; k < p->reads.first[i + 1]; k++) {
            value *v = &p->values[p->reads.ids[k]];
            v->kept |= p->segment_of[v->cut.made] != p->segment_of[i] && counts(p, i, v);
        }
    return ONX_OK;
}

/* ---- the backward pass ---- */

/* Is the value recomputed? The last segment is still in memory when the backward pass begins. */
static bool is_repeated(const plan *p, const value *v)
{
    return !v->kept && p->segment_of[v->cut.made] + 1 < p->segments;
}

static void want(plan *p, const reads *r, uint32_t from, uint32_t to)
{
    for (uint32_t k = r->first[from]; k < r->first[to]; k++)
        if (is_repeated(p, &p->values[r->ids[k]]))
            p->wanted[p->values[r->ids[k]].cut.made] = true;
}

static void find_wanted(plan *p)
{
    want(p, &p->back_reads, 0, p->back->count);
    for (uint32_t i = p->count; i-- > 0;)
        if (p->wanted[i])
            want(p, &p->reads, i, i + 1);
}

/* Adds nodes that recompute the outputs of a forward node. */
static onx_status repeat_node(plan *p, const onx_node *node, onxi_node_list *out)
{
    enum { NAMES = 8 };
    onxi_grad_node n;
    onxi_grad_out nodes;
    const onxi_grad_rule *rule = onxi_grad_draws(p->g, node) ? rule_of_drawn(p, node, &n) : NULL;
    if (!rule) {
        onx_node *copy;
        ONX_TRY(onxi_grad_again_node(&p->again, node, &copy));
        return onxi_node_list_add(p->g->scratch, out, copy);
    }
    onx_bytes names[NAMES] = { { 0 } }, again;
    const onxi_port *ports[2] = { n.s.row->inputs, n.s.row->outputs };
    uint32_t count = 0;
    for (int side = 0; side < 2; side++) {
        const onx_bytes *list = side ? node->output : node->input;
        const uint32_t given = side ? node->output_count : node->input_count;
        for (uint32_t i = 0; ports[side][i].name && count < NAMES; i++, count++)
            if (i < given) {
                names[count] = list[i];
                ONX_TRY(onxi_grad_again_rename(&p->again, &names[count]));
            }
    }
    ONX_TRY(onxi_grad_out_open(p->g, &nodes));
    n.out = &nodes;
    ONX_TRY(onxi_grad_name(p->g, node->output[0], "again", &again));
    ONX_TRY(onxi_grad_put(&n, rule->head, "again", rule->text, names, count, &again, 1));
    ONX_TRY(onxi_grad_again_set(&p->again, onx_view(node->output[0]), onxi_grad_resolve(&nodes, again)));
    return onxi_node_list_add_all(p->g->scratch, out, nodes.nodes.items, nodes.nodes.count);
}

/* The needed nodes of a segment; values that other segments read from it are recomputed there. */
static onx_status repeat_segment(plan *p, uint32_t segment, onxi_node_list *out)
{
    p->repeated[segment] = true;
    for (uint32_t i = p->start[segment]; i < p->start[segment + 1]; i++) {
        if (!p->wanted[i])
            continue;
        ONX_TRY(repeat_node(p, p->nodes[i], out));
        for (uint32_t k = 0; k < p->nodes[i]->output_count; k++) {
            const onxi_dict_entry *entry = onxi_dict_find(&p->index, onx_view(p->nodes[i]->output[k]));
            if (entry && p->values[entry->value].kept)
                ONX_TRY(onxi_grad_again_set(&p->again, onx_view(p->nodes[i]->output[k]), p->nodes[i]->output[k]));
        }
    }
    return ONX_OK;
}

/* Each segment is recomputed directly before the first node that reads its values. */
static onx_status write_back(plan *p)
{
    onxi_node_list list = { 0 };
    for (uint32_t i = 0; i < p->back->count; i++) {
        onx_node *node = p->back->items[i];
        for (uint32_t k = p->back_reads.first[i]; k < p->back_reads.first[i + 1]; k++) {
            const value *v = &p->values[p->back_reads.ids[k]];
            if (is_repeated(p, v) && !p->repeated[p->segment_of[v->cut.made]])
                ONX_TRY(repeat_segment(p, p->segment_of[v->cut.made], &list));
        }
        ONX_TRY(onxi_grad_again_inputs(&p->again, node));
        ONX_TRY(onxi_node_list_add(p->g->scratch, &list, node));
    }
    *p->back = list;
    return ONX_OK;
}

onx_status onxi_grad_checkpoint(onxi_grad *g, const onxi_grad_task *task, onxi_node_list *back)
{
    const uint32_t count = task->count;
    uint32_t from;
    plan p = { .g = g,
               .scope = task->scope,
               .nodes = task->nodes,
               .back = back,
               .count = count,
               .segment_of = ONXI_ARRAY(g->scratch, uint32_t, (size_t)count + 1),
               .useful = ONXI_ARRAY(g->scratch, bool, (size_t)count + 1),
               .wanted = ONXI_ARRAY(g->scratch, bool, (size_t)count + 1),
               .repeated = ONXI_ARRAY(g->scratch, bool, (size_t)count + 1),
               .beside = ONXI_ARRAY(g->scratch, double, (size_t)count + 1),
               .index = onxi_dict_in_arena(g->scratch),
               .again = { .g = g, .to = onxi_dict_in_arena(g->scratch) } };
    if (!p.segment_of || !p.useful || !p.wanted || !p.repeated || !p.beside)
        return ONX_E_MEMORY;
    ONX_TRY(list_values(&p));
    ONX_TRY(keep_beginning(&p, task, &from));
    if (from + 1 >= count)
        return ONX_OK;
    note_reads(&p);
    ONX_TRY(measure_beside(&p));
    ONX_TRY(cut(&p, from, g->checkpoint > 0 ? (uint32_t)g->checkpoint : 0));
    if (p.segments < 2)
        return ONX_OK;
    find_wanted(&p);
    return write_back(&p);
}
