/* run_rewrite.c - one operator in place of several nodes, by the rules of run_rules.def. The nodes stay with the op
 * that takes their place (`parts`): a plan in which it cannot do what they do has them instead. */
#include "run/run.h"

#include <math.h>
#include <stdio.h>

enum { NAMES_MAX = 32, NODES_MAX = 24, INPUTS_MAX = 8, TAKEN_MAX = 4 };

const onxi_run_rule onxi_run_rules[] = {
#define RULE(name_, root_, needs_, pattern_, replacement_)                                                             \
    { .name = (name_),                                                                                                 \
      .root = ONXI_ID_##root_,                                                                                         \
      .needs = ONXI_ID_##needs_,                                                                                       \
      .pattern = "<domain: \"onx\", opset_import: [\"\" : 17]> " pattern_,                                             \
      .replacement = "<domain: \"onx\", opset_import: [\"\" : 24]> " replacement_ },
#include "run/run_rules.def"
#undef RULE
    { 0 }
};

/* ---- a rule, read ---- */

typedef struct pattern_node {
    const onx_node *node;
    onxi_op_id id;
    onxi_attrs attrs;
    uint8_t inputs[INPUTS_MAX], input_count, output; /* names */
} pattern_node;

typedef struct rule {
    const onxi_run_rule *row;
    const onx_function *pattern, *replacement;
    onxi_binder *binder; /* of the replacement */
    onx_str names[NAMES_MAX];
    uint8_t maker[NAMES_MAX]; /* 1 + index of the node that makes it, 0: an input */
    pattern_node nodes[NODES_MAX];
    uint32_t name_count, node_count, input_count;
    bool too_large;
} rule;

/* Of a name of the pattern; what a rule has no room for is noticed by read_rule. */
static uint8_t name_of(rule *r, onx_bytes text)
{
    onx_str name = onx_view(text);
    for (uint32_t i = 0; i < r->name_count; i++)
        if (onx_str_equal(r->names[i], name))
            return (uint8_t)i;
    if (r->name_count == NAMES_MAX) {
        r->too_large = true;
        return 0;
    }
    r->names[r->name_count] = name;
    return (uint8_t)r->name_count++;
}

static onx_status read_function(onxi_run_session *s, const char *text, const onx_function **out, onxi_binder **binder)
{
    onxi_run_expansion *x = ONXI_NEW(s->arena, onxi_run_expansion); /* it owns the document */
    if (!x)
        return ONX_E_MEMORY;
    *x = (onxi_run_expansion){ .next = s->expansions };
    ONX_TRY(onxi_function_of_text(s->cx, onx_str_of(text), &x->doc));
    s->expansions = x;
    *out = onx_doc_root(x->doc, ONX_KIND_FUNCTION);
    if (!(*binder = ONXI_NEW(s->arena, onxi_binder)))
        return ONX_E_MEMORY;
    **binder = (onxi_binder){ .arena = s->arena };
    return onxi_binder_open_body(*binder, *out);
}

static onx_status read_rule(onxi_run_session *s, const onxi_run_rule *row, rule *r)
{
    onxi_binder *binder;
    *r = (rule){ .row = row };
    ONX_TRY(read_function(s, row->pattern, &r->pattern, &binder));
    ONX_TRY(read_function(s, row->replacement, &r->replacement, &r->binder));
    if (r->pattern->node_count > NODES_MAX)
        r->too_large = true;
    for (uint32_t i = 0; i < r->pattern->input_count; i++)
        name_of(r, r->pattern->input[i]);
    r->input_count = r->name_count;
    for (uint32_t i = 0; i < r->pattern->node_count && !r->too_large; i++) {
        const onx_node *node = r->pattern->node[i];
        pattern_node *n = &r->nodes[r->node_count++];
        onxi_bound *bound = onxi_bind(binder, node);
        onxi_attr_fault fault;
        if (!bound)
            return ONX_E_MEMORY;
        n->node = node;
        n->id = bound->op;
        ONX_TRY(onxi_bind_attributes(bound, node, NULL, s->arena, NULL, 0, &n->attrs, &fault));
        r->too_large |= node->input_count > INPUTS_MAX;
        for (uint32_t k = 0; k < node->input_count && k < INPUTS_MAX; k++)
            n->inputs[n->input_count++] = name_of(r, node->input[k]);
        n->output = name_of(r, node->output[0]);
        r->maker[n->output] = (uint8_t)r->node_count;
    }
    if (r->too_large)
        return onxi_fail(s->cx, ONX_E_LIMIT, ONXI_NOWHERE, "the pattern of rule %s is too large", row->name);
    return ONX_OK;
}

/* ---- matching ---- */

typedef struct taken { /* a number that becomes an attribute of the replacement */
    onx_str name;
    onx_attribute_type type;
    float f;
    int64_t i;
} taken;

typedef struct match {
    uint32_t slots[NAMES_MAX]; /* ONXI_NO_SLOT: not bound */
    uint32_t ops[NODES_MAX];   /* of the graph, per node of the pattern */
    taken taken[TAKEN_MAX];
    uint32_t taken_count;
} match;

typedef struct rewriter {
    onxi_run_graph *g;
    uint32_t *maker;      /* per slot: 1 + the op that makes it, 0: none */
    const onx_node *last; /* of the rule's pattern */
    bool changed;
} rewriter;

static bool take(match *m, onx_str name, onx_attribute_type type, float f, int64_t i)
{
    for (uint32_t k = 0; k < m->taken_count; k++)
        if (onx_str_equal(m->taken[k].name, name))
            return type == ONX_ATTR_FLOAT ? m->taken[k].f == f : m->taken[k].i == i;
    if (m->taken_count == TAKEN_MAX)
        return false;
    m->taken[m->taken_count++] = (taken){ name, type, f, i };
    return true;
}

/* The attribute of the function that an attribute of a pattern node stands for; empty: it has a value of its own. */
static onx_str reference_of(const onx_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_str_is(onx_view(node->attribute[i]->name), name))
            return node->attribute[i]->extra ? onx_view(onx_attribute_more(node->attribute[i])->ref_attr_name)
                                             : (onx_str){ 0 };
    return (onx_str){ 0 };
}

static bool is_floating(const onx_value *v)
{
    return v->kind == ONX_VALUE_TENSOR && onx_dtype_class_of((onx_dtype)v->dtype) == ONX_CLASS_FLOATING && v->data;
}

/* A constant of one number that is as near to `wanted` as the element types that networks use can tell. */
static bool is_number(const onx_value *v, double wanted)
{
    if (!v || !is_floating(v) || v->count != 1 || v->rank > 1)
        return false;
    double x = onxi_value_number(v, 0);
    return fabs(x - wanted) <= fabs(wanted) * (v->dtype == ONX_FLOAT || v->dtype == ONX_DOUBLE ? 1e-6 : 5e-4);
}

static bool match_constant(const rewriter *w, const pattern_node *n, uint32_t slot, match *m)
{
    const onx_value *v = w->g->slots[slot].constant;
    onx_str name = reference_of(n->node, "value_float");
    const onxi_attr_value *wanted = onxi_attrs_get(&n->attrs, "value_float", ONX_ATTR_FLOAT);
    if (!name.len)
        return wanted && is_number(v, (double)wanted->f);
    return v && is_floating(v) && v->count == 1 && v->rank <= 1 &&
           take(m, name, ONX_ATTR_FLOAT, (float)onxi_value_number(v, 0), 0);
}

/* The one axis that a reduction goes over: an attribute, or an input since version 13 or 18. */
static bool one_axis(const rewriter *w, const onxi_run_op *op, int64_t *out)
{
    const onxi_attr_value *a = onxi_attrs_get(&op->attrs, "axes", ONX_ATTR_INTS);
    if (a && a->count == 1) {
        *out = *(const int64_t *)a->list;
        return op->input_count == 1;
    }
    const onx_value *v =
        !a && op->input_count == 2 && op->inputs[1] != ONXI_NO_SLOT ? w->g->slots[op->inputs[1]].constant : NULL;
    if (!v || v->dtype != ONX_INT64 || v->count != 1 || !v->data)
        return false;
    *out = *(const int64_t *)v->data;
    return true;
}

static bool same_number(const onxi_attr_value *a, const onxi_attr_value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case ONX_ATTR_FLOAT:
        return fabsf(a->f - b->f) <= fabsf(b->f) * 1e-6f;
    case ONX_ATTR_INT:
        return a->i == b->i;
    case ONX_ATTR_STRING:
        return onx_str_equal(a->s, b->s);
    case ONX_ATTR_UNDEFINED:
        return true;
    default:
        return a->count == 0 && b->count == 0;
    }
}

/* Attributes of the op are those of the pattern's node; what only one of the versions has needs its default. */
static bool match_attributes(const rewriter *w, const pattern_node *n, const onxi_run_op *op, match *m)
{
    for (uint32_t i = 0; i < n->attrs.count; i++) {
        const onxi_attr_value *p = &n->attrs.values[i];
        if (onx_str_is(p->name, "axes")) {
            int64_t axis;
            if (!one_axis(w, op, &axis) || !take(m, reference_of(n->node, "axes"), ONX_ATTR_INT, 0, axis))
                return false;
            continue;
        }
        bool known = false;
        for (uint32_t k = 0; k < op->attrs.count && !known; k++)
            if (onx_str_equal(op->attrs.values[k].name, p->name)) {
                if (!same_number(&op->attrs.values[k], p))
                    return false;
                known = true;
            }
        if (!known && p->given)
            return false;
    }
    for (uint32_t k = 0; k < op->attrs.count; k++) { /* given, and unknown to the pattern's version */
        const onxi_attr_value *v = &op->attrs.values[k];
        bool known = !v->given || onx_str_is(v->name, "axes");
        for (uint32_t i = 0; i < n->attrs.count && !known; i++)
            known = onx_str_equal(v->name, n->attrs.values[i].name);
        if (!known && !(v->type == ONX_ATTR_INT && v->i == 0))
            return false;
    }
    return true;
}

static bool match_name(const rewriter *w, const rule *r, uint8_t name, uint32_t slot, match *m);

static bool match_inputs(const rewriter *w, const rule *r, const pattern_node *n, const onxi_run_op *op, match *m,
                         bool exchanged)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (!match_name(w, r, n->inputs[i], op->inputs[exchanged ? 1 - i : i], m))
            return false;
    return true;
}

static bool match_op(const rewriter *w, const rule *r, uint32_t node, uint32_t index, match *m)
{
    const pattern_node *n = &r->nodes[node];
    const onxi_run_op *op = &w->g->ops[index];
    const bool exchangeable = n->id == ONXI_ID_Add || n->id == ONXI_ID_Mul;
    const uint32_t axes = n->input_count == 1 && onxi_attrs_find(&n->attrs, "axes") ? 1 : 0;
    if (op->id != n->id || !op->needed || op->guard_end || op->output_count != 1 || op->graph_count ||
        (op->input_count != n->input_count && op->input_count != n->input_count + axes) ||
        !match_attributes(w, n, op, m))
        return false;
    m->ops[node] = index;
    if (!exchangeable)
        return match_inputs(w, r, n, op, m, false);
    match other = *m;
    if (match_inputs(w, r, n, op, m, false))
        return true;
    *m = other;
    return match_inputs(w, r, n, op, m, true);
}

static bool match_name(const rewriter *w, const rule *r, uint8_t name, uint32_t slot, match *m)
{
    if (slot >= ONXI_OMITTED)
        return false;
    const bool constant = r->maker[name] && r->nodes[r->maker[name] - 1].id == ONXI_ID_Constant;
    if (m->slots[name] != ONXI_NO_SLOT && !constant)
        return m->slots[name] == slot;
    m->slots[name] = slot;
    if (!r->maker[name])
        return true;
    if (constant)
        return match_constant(w, &r->nodes[r->maker[name] - 1], slot, m);
    return w->maker[slot] && match_op(w, r, r->maker[name] - 1u, w->maker[slot] - 1, m);
}

/* What is made inside is used inside only. */
static bool is_closed(const rewriter *w, const rule *r, const match *m)
{
    for (uint32_t i = 0; i + 1 < r->node_count; i++) {
        if (r->nodes[i].id == ONXI_ID_Constant)
            continue;
        const uint32_t slot = w->g->ops[m->ops[i]].outputs[0];
        uint32_t inside = 0;
        for (uint32_t k = 0; k < r->node_count; k++) {
            const onxi_run_op *op = &w->g->ops[m->ops[k]];
            for (uint32_t n = 0; r->nodes[k].id != ONXI_ID_Constant && n < op->input_count; n++)
                inside += op->inputs[n] == slot;
        }
        if (slot == ONXI_NO_SLOT || w->g->slots[slot].is_output || w->g->slots[slot].uses != inside)
            return false;
        for (uint32_t k = 0; k < i; k++) /* two names of a pattern may not be one node of the graph */
            if (r->nodes[k].id != ONXI_ID_Constant && m->ops[k] == m->ops[i])
                return false;
    }
    return true;
}

/* ---- replacing ---- */

static onx_status arguments_of(const rule *r, const match *m, onx_arena *arena, onxi_arguments *out)
{
    onx_node *call = onx_message_new(arena, ONX_KIND_NODE);
    if (!call)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < m->taken_count; i++) {
        const taken *from = &m->taken[i];
        char name[32];
        snprintf(name, sizeof name, "%.*s", ONX_ARG(from->name));
        if (!(from->type == ONX_ATTR_FLOAT ? onx_node_add_float(arena, call, name, from->f)
                                           : onx_node_add_int(arena, call, name, from->i)))
            return ONX_E_MEMORY;
    }
    return onxi_arguments_make(out, &r->binder->parameters, arena, (const onx_attribute *const *)call->attribute,
                               call->attribute_count, NULL);
}

static onx_status parts_of(rewriter *w, const rule *r, const match *m, onxi_run_op *op)
{
    onxi_run_op *parts = ONXI_ARRAY(w->g->session->arena, onxi_run_op, r->node_count);
    if (!parts)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < r->node_count; i++) { /* patterns are written in an order that runs */
        if (r->nodes[i].id == ONXI_ID_Constant)
            continue;
        onxi_run_op *from = &w->g->ops[m->ops[i]];
        parts[op->part_count++] = *from;
        from->needed = false;
    }
    op->parts = parts;
    return ONX_OK;
}

static onx_status replace(rewriter *w, const rule *r, const match *m, uint32_t index)
{
    onxi_run_session *s = w->g->session;
    const onx_node *body = r->replacement->node[0];
    const onxi_run_op root = w->g->ops[index];
    onx_node *node = onx_message_new(s->arena, ONX_KIND_NODE);
    onxi_run_op op = { .frame = root.frame, .index = root.index, .needed = true, .rule = r->row->name };
    onxi_arguments arguments;
    if (!node || !(op.inputs = ONXI_ARRAY(s->arena, uint32_t, body->input_count + 1u)) ||
        !(op.outputs = ONXI_ARRAY(s->arena, uint32_t, 1)))
        return ONX_E_MEMORY;
    *node = *body;
    node->name = root.node->name;
    op.node = node;
    ONX_TRY(arguments_of(r, m, s->arena, &arguments));
    ONX_TRY(onxi_run_op_mean(s, r->binder, &arguments, &op));
    op.input_count = body->input_count;
    op.input_room = body->input_count + 1u;
    op.output_count = 1;
    op.outputs[0] = root.outputs[0];
    for (uint32_t i = 0; i < body->input_count; i++)
        for (uint32_t k = 0; k < r->input_count; k++)
            if (onx_str_equal(onx_view(body->input[i]), r->names[k]))
                op.inputs[i] = m->slots[k];
    ONX_TRY(parts_of(w, r, m, &op));
    w->g->ops[index] = op;
    w->changed = true;
    return ONX_OK;
}

static onx_status apply(rewriter *w, const rule *r)
{
    for (uint32_t i = 0; i < w->g->op_count; i++) {
        const onxi_run_op *op = &w->g->ops[i];
        if (op->id != r->row->root || !op->needed)
            continue;
        match m = { .taken_count = 0 };
        for (uint32_t k = 0; k < NAMES_MAX; k++)
            m.slots[k] = ONXI_NO_SLOT;
        m.slots[r->nodes[r->node_count - 1].output] = op->outputs[0];
        if (match_op(w, r, r->node_count - 1, i, &m) && is_closed(w, r, &m))
            ONX_TRY(replace(w, r, &m, i));
    }
    return ONX_OK;
}

onx_status onxi_run_graph_rewrite(onxi_run_graph *g)
{
    onxi_run_session *s = g->session;
    onx_arena *arena;
    ONX_TRY(onx_arena_new(s->cx, &arena));
    rewriter w = { .g = g, .maker = ONXI_ARRAY(arena, uint32_t, g->slot_count + 1u) };
    bool *there = ONXI_ARRAY(arena, bool, ONXI_ID_END);
    rule *r = ONXI_NEW(arena, rule);
    onx_status status = w.maker && there && r ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < g->op_count; i++) {
        there[g->ops[i].id] = true;
        for (uint32_t k = 0; k < g->ops[i].output_count; k++)
            if (g->ops[i].outputs[k] != ONXI_NO_SLOT)
                w.maker[g->ops[i].outputs[k]] = i + 1;
    }
    for (const onxi_run_rule *row = onxi_run_rules; status == ONX_OK && row->name; row++) {
        if (!there[row->root] || !there[row->needs])
            continue;
        status = read_rule(s, row, r);
        if (status == ONX_OK)
            status = apply(&w, r);
    }
    onx_arena_free(arena);
    return status == ONX_OK && w.changed ? onxi_run_graph_count_uses(g) : status;
}

/* ---- back to the nodes ---- */

onx_status onxi_run_graph_unwritten(const onxi_run_graph *g, const bool *refused, onxi_run_graph **out)
{
    onx_arena *arena = g->session->arena;
    onxi_run_graph *u = *out = ONXI_NEW(arena, onxi_run_graph);
    uint64_t count = g->op_count;
    for (uint32_t i = 0; i < g->op_count; i++)
        count += refused[i] ? g->ops[i].part_count : 0;
    if (!u || count > UINT32_MAX)
        return ONX_E_MEMORY;
    *u = *g;
    u->unwritten = NULL;
    u->plans = NULL;
    u->plan_count = 0;
    u->op_count = 0;
    u->op_room = (uint32_t)count + 1;
    u->slot_room = g->slot_count + 1;
    u->ops = ONXI_ARRAY(arena, onxi_run_op, u->op_room);
    u->slots = ONXI_ARRAY(arena, onxi_run_graph_slot, u->slot_room);
    if (!u->ops || !u->slots)
        return ONX_E_MEMORY;
    if (g->slot_count)
        memcpy(u->slots, g->slots, g->slot_count * sizeof *u->slots);
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        const onxi_run_op *from = refused[i] && op->part_count ? op->parts : op;
        uint32_t n = refused[i] && op->part_count ? op->part_count : 1;
        memcpy(u->ops + u->op_count, from, n * sizeof *from);
        u->op_count += n;
    }
    return onxi_run_graph_count_uses(u);
}
