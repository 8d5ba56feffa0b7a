/* run_rewrite.c - one operator in place of several nodes, by the rules of run_rules.def. The nodes stay with the op
 * that takes their place (`parts`): a plan in which it cannot do what they do has them instead. */
#include "run/run.h"

#include <math.h>
#include <stdio.h>

enum {
    NAMES_MAX = 48,
    NODES_MAX = 24,
    INPUTS_MAX = 8,
    TAKEN_MAX = 12,
    CONDITIONS_MAX = 8,
    NAME_MAX = 32,
    SKIPPED_MAX = 16
};
#define ABSENT UINT32_MAX /* an optional node that the graph does not have */

const onxi_run_rule onxi_run_rules[] = {
#define RULE(name_, root_, needs_, where_, pattern_, replacement_)                                                     \
    { .name = (name_),                                                                                                 \
      .root = ONXI_ID_##root_,                                                                                         \
      .needs = ONXI_ID_##needs_,                                                                                       \
      .where = (where_),                                                                                               \
      .pattern = "<domain: \"onx\", opset_import: [\"\" : 17]> " pattern_,                                             \
      .replacement = "<domain: \"onx\", opset_import: [\"\" : 24, \"onx\" : 1]> " replacement_ },
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
    bool optional;                                   /* it may be missing */
} pattern_node;

typedef struct condition {
    onxi_run_condition_kind kind;
    uint8_t value, other;  /* names */
    char number[NAME_MAX]; /* a parameter that was taken */
} condition;

typedef struct rule {
    const onxi_run_rule *row;
    const onx_function *pattern, *replacement;
    onxi_binder *binder; /* of the replacement */
    onx_str names[NAMES_MAX];
    uint8_t maker[NAMES_MAX]; /* 1 + index of the node that makes it, 0: an input */
    pattern_node nodes[NODES_MAX];
    uint32_t name_count, node_count, input_count;
    condition conditions[CONDITIONS_MAX];
    uint32_t condition_count;
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

/* "last AXIS VALUE; same VALUE VALUE": see run_rules.def. */
static bool find_value(const rule *r, const char *text, uint8_t *out)
{
    for (uint32_t i = 0; i < r->name_count; i++)
        if (onx_str_is(r->names[i], text)) {
            *out = (uint8_t)i;
            return true;
        }
    return false;
}

static bool read_conditions(rule *r, const char *text)
{
    while (*text) {
        char word[NAME_MAX], first[NAME_MAX], second[NAME_MAX];
        condition *c = &r->conditions[r->condition_count++];
        int length = 0;
        if (r->condition_count > CONDITIONS_MAX ||
            sscanf(text, " %31[a-z] %31[a-z0-9_] %31[a-z0-9_]%n", word, first, second, &length) != 3)
            return false;
        if (strcmp(word, "last") == 0 && find_value(r, second, &c->value)) {
            c->kind = ONXI_RUN_LAST_AXIS;
            memcpy(c->number, first, sizeof c->number);
        } else if (strcmp(word, "same") == 0 && find_value(r, first, &c->value) && find_value(r, second, &c->other)) {
            c->kind = ONXI_RUN_SAME_DIMS;
        } else {
            return false;
        }
        text += length;
        text += strspn(text, " ;");
    }
    return true;
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
        n->optional = onx_str_is(onx_view(node->name), "optional");
        ONX_TRY(onxi_bind_attributes(bound, node, NULL, s->arena, NULL, 0, &n->attrs, &fault));
        r->too_large |= node->input_count > INPUTS_MAX;
        for (uint32_t k = 0; k < node->input_count && k < INPUTS_MAX; k++)
            n->inputs[n->input_count++] = name_of(r, node->input[k]);
        n->output = name_of(r, node->output[0]);
        r->maker[n->output] = (uint8_t)r->node_count;
    }
    if (r->too_large)
        return onxi_fail(s->cx, ONX_E_LIMIT, ONXI_NOWHERE, "the pattern of rule %s is too large", row->name);
    if (!read_conditions(r, row->where))
        return onxi_fail(s->cx, ONX_E_INVALID, ONXI_NOWHERE, "the conditions of rule %s are not understood", row->name);
    return ONX_OK;
}

/* ---- matching ---- */

typedef struct taken { /* what becomes an attribute of the replacement */
    onx_str name;
    onxi_attr_value value;
} taken;

typedef struct match {
    uint32_t slots[NAMES_MAX]; /* ONXI_NO_SLOT: not bound */
    uint32_t ops[NODES_MAX];   /* of the graph, per node of the pattern */
    taken taken[TAKEN_MAX];
    uint32_t taken_count;
    uint32_t skipped[SKIPPED_MAX], skipped_count; /* ops in between that do nothing */
} match;

typedef struct rewriter {
    onxi_run_graph *g;
    uint32_t *maker;      /* per slot: 1 + the op that makes it, 0: none */
    const onx_node *last; /* of the rule's pattern */
    bool changed;
} rewriter;

static bool same_attribute(const onxi_attr_value *a, const onxi_attr_value *b)
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
    case ONX_ATTR_INTS:
        return a->count == b->count && (!a->count || memcmp(a->list, b->list, a->count * sizeof(int64_t)) == 0);
    case ONX_ATTR_UNDEFINED:
        return true;
    default:
        return a->count == 0 && b->count == 0;
    }
}

static bool take(match *m, onx_str name, onxi_attr_value value)
{
    for (uint32_t k = 0; k < m->taken_count; k++)
        if (onx_str_equal(m->taken[k].name, name))
            return same_attribute(&m->taken[k].value, &value);
    if (m->taken_count == TAKEN_MAX)
        return false;
    m->taken[m->taken_count++] = (taken){ name, value };
    return true;
}

static bool take_int(match *m, onx_str name, int64_t i)
{
    return take(m, name, (onxi_attr_value){ .type = ONX_ATTR_INT, .i = i });
}

/* The attribute of the function that an attribute of a pattern node stands for; empty: it has a value of its own. */
static onx_str reference_to(const onx_node *node, onx_str name)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_str_equal(onx_view(node->attribute[i]->name), name))
            return node->attribute[i]->extra ? onx_view(onx_attribute_more(node->attribute[i])->ref_attr_name)
                                             : (onx_str){ 0 };
    return (onx_str){ 0 };
}
static onx_str reference_of(const onx_node *node, const char *name)
{
    return reference_to(node, onx_str_of(name));
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
           take(m, name, (onxi_attr_value){ .type = ONX_ATTR_FLOAT, .f = (float)onxi_value_number(v, 0) });
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

/* Attributes of the op are those of the pattern's node; what only one of the versions has needs its default. */
static bool match_attributes(const rewriter *w, const pattern_node *n, const onxi_run_op *op, match *m)
{
    for (uint32_t i = 0; i < n->attrs.count; i++) {
        const onxi_attr_value *p = &n->attrs.values[i];
        if (onx_str_is(p->name, "axes")) {
            int64_t axis;
            if (!one_axis(w, op, &axis) || !take_int(m, reference_of(n->node, "axes"), axis))
                return false;
            continue;
        }
        const onx_str name = reference_to(n->node, p->name);
        bool known = false;
        for (uint32_t k = 0; k < op->attrs.count && !known; k++)
            if (onx_str_equal(op->attrs.values[k].name, p->name)) {
                const onxi_attr_value *v = &op->attrs.values[k];
                if (name.len ? v->type != ONX_ATTR_UNDEFINED && !take(m, name, *v) : !same_attribute(v, p))
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

/* Hands its input on, as Identity does, and Dropout that is not training or drops nothing. */
static bool does_nothing(const onxi_run_graph *g, const onxi_run_op *op)
{
    if (!op->needed || op->guard_end || op->output_count != 1 || !op->input_count || op->inputs[0] >= ONXI_OMITTED)
        return false;
    if (op->id == ONXI_ID_Identity)
        return true;
    if (op->id != ONXI_ID_Dropout || op->since < 7)
        return false;
    bool training = false, drops = true;
    for (uint32_t i = 1; i < op->input_count; i++) {
        const onx_value *v = op->inputs[i] == ONXI_NO_SLOT ? NULL : g->slots[op->inputs[i]].constant;
        if (op->inputs[i] == ONXI_NO_SLOT)
            continue;
        if (!v || !v->data || v->count != 1)
            return false;
        if (i == 1)
            drops = !is_floating(v) || onxi_value_number(v, 0) != 0;
        else
            training = v->dtype != ONX_BOOL || *(const uint8_t *)v->data;
    }
    return !training || !drops;
}

/* The value that is handed on to this one by what does nothing, and is needed for nothing else. */
static uint32_t skip(const rewriter *w, uint32_t slot, match *m)
{
    while (slot < ONXI_OMITTED && w->maker[slot] && m->skipped_count < SKIPPED_MAX && w->g->slots[slot].uses == 1 &&
           !w->g->slots[slot].is_output && does_nothing(w->g, &w->g->ops[w->maker[slot] - 1])) {
        m->skipped[m->skipped_count++] = w->maker[slot] - 1;
        slot = w->g->ops[w->maker[slot] - 1].inputs[0];
    }
    return slot;
}

/* What an optional node hands on where it is not there: the first input that the pattern makes, else the first. */
static uint8_t handed_on(const rule *r, const pattern_node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (r->maker[n->inputs[i]] && r->nodes[r->maker[n->inputs[i]] - 1].id != ONXI_ID_Constant)
            return n->inputs[i];
    return n->inputs[0];
}

static bool match_optional(const rewriter *w, const rule *r, uint32_t node, uint32_t slot, match *m)
{
    const match before = *m;
    if (w->maker[slot] && !w->g->slots[slot].is_output && match_op(w, r, node, w->maker[slot] - 1, m))
        return true;
    *m = before;
    m->ops[node] = ABSENT;
    return match_name(w, r, handed_on(r, &r->nodes[node]), slot, m);
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
    const uint32_t node = r->maker[name] - 1u;
    if (constant)
        return match_constant(w, &r->nodes[node], slot, m);
    m->slots[name] = slot = skip(w, slot, m);
    if (r->nodes[node].optional)
        return match_optional(w, r, node, slot, m);
    return w->maker[slot] && match_op(w, r, node, w->maker[slot] - 1, m);
}

static bool is_there(const rule *r, const match *m, uint32_t node)
{
    return r->nodes[node].id != ONXI_ID_Constant && m->ops[node] != ABSENT;
}

/* What is made inside is used inside only. */
static bool is_closed(const rewriter *w, const rule *r, const match *m)
{
    for (uint32_t i = 0; i + 1 < r->node_count; i++) {
        if (!is_there(r, m, i))
            continue;
        const uint32_t slot = w->g->ops[m->ops[i]].outputs[0];
        uint32_t inside = 0;
        for (uint32_t k = 0; k < r->node_count; k++)
            for (uint32_t n = 0; is_there(r, m, k) && n < w->g->ops[m->ops[k]].input_count; n++)
                inside += w->g->ops[m->ops[k]].inputs[n] == slot;
        for (uint32_t k = 0; k < m->skipped_count; k++)
            inside += w->g->ops[m->skipped[k]].inputs[0] == slot;
        if (slot == ONXI_NO_SLOT || w->g->slots[slot].is_output || w->g->slots[slot].uses != inside)
            return false;
        for (uint32_t k = 0; k < i; k++) /* two names of a pattern may not be one node of the graph */
            if (is_there(r, m, k) && m->ops[k] == m->ops[i])
                return false;
    }
    return true;
}

/* ---- replacing ---- */

/* A parameter of the replacement: what was taken under its name, or a number made from what was: NAME_reciprocal,
 * NAME_square and NAME_square_reciprocal. */
static bool parameter_of(const match *m, onx_str name, onxi_attr_value *out)
{
    static const struct {
        const char *end;
        bool square, reciprocal;
    } made[] = { { "", false, false },
                 { "_square_reciprocal", true, true },
                 { "_reciprocal", false, true },
                 { "_square", true, false } };
    for (size_t k = 0; k < sizeof made / sizeof *made; k++)
        for (uint32_t i = 0; i < m->taken_count; i++) {
            const onx_str from = m->taken[i].name, end = onx_str_of(made[k].end);
            if (name.len != from.len + end.len || memcmp(name.ptr, from.ptr, from.len) != 0 ||
                (end.len && memcmp(name.ptr + from.len, end.ptr, end.len) != 0))
                continue;
            *out = m->taken[i].value;
            if (made[k].square)
                out->f *= out->f;
            if (made[k].reciprocal)
                out->f = 1 / out->f;
            return true;
        }
    return false;
}

static bool add_argument(onx_arena *arena, onx_node *call, onx_str text, const onxi_attr_value *v)
{
    char name[NAME_MAX];
    snprintf(name, sizeof name, "%.*s", ONX_ARG(text));
    switch (v->type) {
    case ONX_ATTR_FLOAT:
        return onx_node_add_float(arena, call, name, v->f) != NULL;
    case ONX_ATTR_INT:
        return onx_node_add_int(arena, call, name, v->i) != NULL;
    case ONX_ATTR_STRING:
        return onx_node_add_string(arena, call, name, v->s) != NULL;
    case ONX_ATTR_INTS:
        return onx_node_add_ints(arena, call, name, v->list, v->count) != NULL;
    default:
        return true;
    }
}

static onx_status arguments_of(const rule *r, const match *m, onx_arena *arena, onxi_arguments *out)
{
    onx_node *call = onx_message_new(arena, ONX_KIND_NODE);
    const onx_function *f = r->replacement;
    if (!call)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < f->attribute_count + f->attribute_proto_count; i++) {
        const onx_str name =
            onx_view(i < f->attribute_count ? f->attribute[i] : f->attribute_proto[i - f->attribute_count]->name);
        onxi_attr_value v;
        if (parameter_of(m, name, &v) && !add_argument(arena, call, name, &v))
            return ONX_E_MEMORY;
    }
    return onxi_arguments_make(out, &r->binder->parameters, arena, (const onx_attribute *const *)call->attribute,
                               call->attribute_count, NULL);
}

/* What has to hold of the types of a plan. */
static onx_status conditions_of(const rule *r, const match *m, onx_arena *arena, onxi_run_op *op)
{
    onxi_run_condition *list = ONXI_ARRAY(arena, onxi_run_condition, r->condition_count + 1u);
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < r->condition_count; i++) {
        const condition *c = &r->conditions[i];
        onxi_run_condition *to = &list[op->condition_count];
        *to = (onxi_run_condition){ .kind = c->kind, .slot = m->slots[c->value], .other = m->slots[c->other] };
        op->condition_count += c->kind == ONXI_RUN_SAME_DIMS;
        for (uint32_t k = 0; c->kind == ONXI_RUN_LAST_AXIS && k < m->taken_count; k++)
            if (onx_str_is(m->taken[k].name, c->number)) {
                to->number = m->taken[k].value.i;
                op->condition_count++;
            }
    }
    op->conditions = list;
    return ONX_OK;
}

/* The ops that are replaced, in the order in which they stand, which is one that runs. */
static uint32_t list_parts(const rule *r, const match *m, uint32_t *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->node_count + m->skipped_count; i++) {
        const bool skipped = i >= r->node_count;
        if (!skipped && !is_there(r, m, i))
            continue;
        const uint32_t op = skipped ? m->skipped[i - r->node_count] : m->ops[i];
        uint32_t at = count++;
        for (; at && out[at - 1] > op; at--)
            out[at] = out[at - 1];
        out[at] = op;
    }
    return count;
}

static onx_status parts_of(rewriter *w, const rule *r, const match *m, onxi_run_op *op)
{
    uint32_t list[NODES_MAX + SKIPPED_MAX];
    const uint32_t count = list_parts(r, m, list);
    onxi_run_op *parts = ONXI_ARRAY(w->g->session->arena, onxi_run_op, count + 1u);
    if (!parts)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        onxi_run_op *from = &w->g->ops[list[i]];
        parts[op->part_count++] = *from;
        from->needed = false;
        for (uint32_t k = 0; k < from->input_count; k++)
            if (from->inputs[k] != ONXI_NO_SLOT)
                w->g->slots[from->inputs[k]].uses--;
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
    while (op.input_count && op.inputs[op.input_count - 1] == ONXI_NO_SLOT)
        op.input_count--;
    ONX_TRY(conditions_of(r, m, s->arena, &op));
    ONX_TRY(parts_of(w, r, m, &op));
    for (uint32_t i = 0; i < op.input_count; i++)
        if (op.inputs[i] != ONXI_NO_SLOT)
            w->g->slots[op.inputs[i]].uses++;
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
