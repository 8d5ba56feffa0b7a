/* rewrite_match.c - matches the pattern of a rule against a graph, from its last node backwards. */
#include "rewrite/rewrite.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#define ABSENT ONXI_REWRITE_NONE /* an optional node that the graph does not have */

typedef onxi_rewrite_match match;
typedef onxi_rewrite_node pattern_node;
typedef struct matcher {
    const onxi_rewrite_view *view;
    const onxi_rewrite_rule *rule;
    uint32_t barred; /* bit mask of optional nodes that are in the graph but must not be removed */
} matcher;
_Static_assert(ONXI_REWRITE_NODES <= 32, "a bit per node");

static bool is_omitted(uint32_t value)
{
    return value >= ONXI_REWRITE_NONE - 1;
}

static onxi_rewrite_value look(const matcher *w, uint32_t value)
{
    onxi_rewrite_value v;
    w->view->value(w->view->graph, value, &v);
    return v;
}

static bool look_at_op(const matcher *w, uint32_t index, onxi_rewrite_op *op)
{
    return w->view->op(w->view->graph, index, op);
}

/* ---- attributes and constants ---- */

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

/* Compares equations of Einsum up to the names of letters and blanks. */
static bool same_equation(onx_str a, onx_str b)
{
    char as[256] = { 0 }; /* for each letter of a the letter of b */
    char used[256] = { 0 };
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a.len && a.ptr[i] == ' ')
            i++;
        while (k < b.len && b.ptr[k] == ' ')
            k++;
        if (i == a.len || k == b.len)
            return i == a.len && k == b.len;
        const unsigned char x = (unsigned char)a.ptr[i++], y = (unsigned char)b.ptr[k++];
        if (!isalpha(x) || !isalpha(y)) {
            if (x != y)
                return false;
            continue;
        }
        if (!as[x] && !used[y]) {
            as[x] = (char)y;
            used[y] = 1;
        }
        if (as[x] != (char)y)
            return false;
    }
}

static bool take_element(match *m, onx_str name, uint32_t element, onxi_attr_value value)
{
    for (uint32_t k = 0; k < m->taken_count; k++)
        if (onx_str_equal(m->taken[k].name, name) && m->taken[k].element == element)
            return same_attribute(&m->taken[k].value, &value);
    if (m->taken_count == ONXI_REWRITE_TAKEN)
        return false;
    m->taken[m->taken_count++] = (onxi_rewrite_taken){ name, value, element };
    return true;
}
static bool take(match *m, onx_str name, onxi_attr_value value)
{
    return take_element(m, name, ONXI_REWRITE_NONE, value);
}

/* The function attribute that an attribute of a pattern node refers to; empty if it has a value of its own. */
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

static bool is_floating(int dtype)
{
    return onx_dtype_class_of((onx_dtype)dtype) == ONX_CLASS_FLOATING;
}

/* Equal to `wanted` within the precision of common element types. */
static bool is_number(const onxi_rewrite_number *x, double wanted)
{
    return fabs(x->number - wanted) <= fabs(wanted) * (x->dtype == ONX_FLOAT || x->dtype == ONX_DOUBLE ? 1e-6 : 5e-4);
}

/* A list of integers: the written one, or any list, whose elements are captured. */
static bool match_ints(const matcher *w, const pattern_node *n, uint32_t value, match *m)
{
    int64_t list[ONXI_REWRITE_INTS];
    uint32_t count;
    const onx_str name = reference_of(n->node, "value_ints");
    const onxi_attr_value *wanted = onxi_attrs_get(&n->attrs, "value_ints", ONX_ATTR_INTS);
    if (!w->view->ints(w->view->graph, value, list, &count))
        return false;
    if (!name.len)
        return wanted && count == wanted->count && onxi_same_dims(list, wanted->list, count);
    for (uint32_t i = 0; i < count; i++)
        if (!take_element(m, name, i, (onxi_attr_value){ .type = ONX_ATTR_INT, .i = list[i] }))
            return false;
    return true;
}

/* Compares or captures the common value of all elements. That a longer list does not enlarge the result is checked when
 * types are compared. */
static bool match_constant(const matcher *w, const pattern_node *n, uint32_t value, match *m)
{
    onxi_rewrite_number x;
    if (n->list)
        return match_ints(w, n, value, m);
    if (!w->view->number(w->view->graph, value, &x) || !is_floating(x.dtype))
        return false;
    const onx_str name = reference_of(n->node, "value_float");
    const onxi_attr_value *wanted = onxi_attrs_get(&n->attrs, "value_float", ONX_ATTR_FLOAT);
    if (!name.len)
        return wanted && is_number(&x, (double)wanted->f);
    return take(m, name, (onxi_attr_value){ .type = ONX_ATTR_FLOAT, .f = (float)x.number });
}

/* The single axis of a reduction: an attribute, or an input since version 13 or 18. */
static bool one_axis(const matcher *w, const onxi_rewrite_op *op, int64_t *out)
{
    const onxi_attr_value *a = onxi_attrs_get(&op->attrs, "axes", ONX_ATTR_INTS);
    onxi_rewrite_number x;
    if (a && a->count == 1) {
        *out = *(const int64_t *)a->list;
        return op->input_count == 1;
    }
    if (a || op->input_count != 2 || is_omitted(op->inputs[1]) || !w->view->number(w->view->graph, op->inputs[1], &x) ||
        x.count != 1 || x.dtype != ONX_INT64 || fabs(x.number) > ONX_RANK_MAX)
        return false;
    *out = (int64_t)x.number;
    return true;
}

/* The axis is captured, or has to be that of the pattern. */
static bool match_axes(const matcher *w, const pattern_node *n, const onxi_attr_value *p, const onxi_rewrite_op *op,
                       match *m)
{
    const onx_str name = reference_of(n->node, "axes");
    int64_t axis;
    if (!one_axis(w, op, &axis))
        return false;
    if (name.len)
        return take(m, name, (onxi_attr_value){ .type = ONX_ATTR_INT, .i = axis });
    return p->type == ONX_ATTR_INTS && p->count == 1 && axis == *(const int64_t *)p->list;
}

/* Compares the op's attributes with those of the pattern node; an attribute that only one of the two versions has must
 * have its default. */
static bool match_attributes(const matcher *w, const pattern_node *n, const onxi_rewrite_op *op, match *m)
{
    for (uint32_t i = 0; i < n->attrs.count; i++) {
        const onxi_attr_value *p = &n->attrs.values[i];
        if (onx_str_is(p->name, "axes")) {
            if (!match_axes(w, n, p, op, m))
                return false;
            continue;
        }
        const onx_str name = reference_to(n->node, p->name);
        bool known = false;
        for (uint32_t k = 0; k < op->attrs.count && !known; k++)
            if (onx_str_equal(op->attrs.values[k].name, p->name)) {
                const onxi_attr_value *v = &op->attrs.values[k];
                /* An absent attribute without a default has a meaning that only its operator knows (Transpose without
                 * perm reverses the axes). In the replacement its absence would mean that the optional node is missing,
                 * unless it is captured under its own name and absent there, too. */
                const bool absent = v->type == ONX_ATTR_UNDEFINED;
                const bool equation = n->id == ONXI_ID_Einsum && v->type == ONX_ATTR_STRING && p->type == v->type;
                if (name.len   ? absent ? !onx_str_equal(name, p->name) : !take(m, name, *v)
                      : equation ? !same_equation(v->s, p->s)
                               : !same_attribute(v, p))
                    return false;
                known = true;
            }
        if (!known && p->given)
            return false;
    }
    for (uint32_t k = 0; k < op->attrs.count; k++) { /* given, but unknown to the pattern's version */
        const onxi_attr_value *v = &op->attrs.values[k];
        bool known = !v->given || onx_str_is(v->name, "axes");
        for (uint32_t i = 0; i < n->attrs.count && !known; i++)
            known = onx_str_equal(v->name, n->attrs.values[i].name);
        if (!known && !(v->type == ONX_ATTR_INT && v->i == 0))
            return false;
    }
    return true;
}

/* ---- nodes ---- */

static bool match_name(const matcher *w, uint8_t name, uint32_t value, match *m);

/* An input that the op omits, and that is an input of the pattern: the replacement omits it, too. */
static bool lacks(const matcher *w, const onxi_rewrite_op *op, uint8_t name, uint32_t input)
{
    return input && !w->rule->maker[name] && (input >= op->input_count || is_omitted(op->inputs[input]));
}

static bool match_inputs(const matcher *w, const pattern_node *n, const onxi_rewrite_op *op, match *m, bool exchanged)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (!lacks(w, op, n->inputs[i], i) && !match_name(w, n->inputs[i], op->inputs[exchanged ? 1 - i : i], m))
            return false;
    return true;
}

/* Are all inputs that the pattern computes present? */
static bool has_inputs(const matcher *w, const pattern_node *n, const onxi_rewrite_op *op)
{
    for (uint32_t i = op->input_count; i < n->input_count; i++)
        if (!lacks(w, op, n->inputs[i], i))
            return false;
    return true;
}

static bool match_op(const matcher *w, uint32_t node, uint32_t index, match *m)
{
    const pattern_node *n = &w->rule->nodes[node];
    onxi_rewrite_op op;
    const bool exchangeable = n->id == ONXI_ID_Add || n->id == ONXI_ID_Mul;
    const uint32_t axes = n->input_count == 1 && onxi_attrs_find(&n->attrs, "axes") ? 1 : 0;
    if (!look_at_op(w, index, &op) || op.id != n->id || op.output_count != 1 ||
        (op.input_count > n->input_count + axes || !has_inputs(w, n, &op)) || !match_attributes(w, n, &op, m))
        return false;
    m->ops[node] = index;
    if (!exchangeable)
        return match_inputs(w, n, &op, m, false);
    match other = *m;
    if (match_inputs(w, n, &op, m, false))
        return true;
    *m = other;
    return match_inputs(w, n, &op, m, true);
}

/* Does the op return its input unchanged, like Identity, or Dropout in inference or with ratio 0? */
static bool does_nothing(const matcher *w, const onxi_rewrite_op *op)
{
    if (op->output_count != 1 || !op->input_count || is_omitted(op->inputs[0]))
        return false;
    if (op->id == ONXI_ID_Identity)
        return true;
    if (op->id != ONXI_ID_Dropout || op->since < 7)
        return false;
    bool training = false, drops = true;
    for (uint32_t i = 1; i < op->input_count; i++) {
        onxi_rewrite_number x;
        if (is_omitted(op->inputs[i]))
            continue;
        if (!w->view->number(w->view->graph, op->inputs[i], &x) || x.count != 1)
            return false;
        if (i == 1)
            drops = !is_floating(x.dtype) || x.number != 0;
        else
            training = x.dtype != ONX_BOOL || x.number != 0;
    }
    return !training || !drops;
}

/* Skips ops that return their input unchanged and have no other reader. */
static uint32_t skip(const matcher *w, uint32_t value, match *m)
{
    while (!is_omitted(value) && m->skipped_count < ONXI_REWRITE_SKIPPED) {
        const onxi_rewrite_value v = look(w, value);
        onxi_rewrite_op op;
        if (!v.maker || v.uses != 1 || v.is_output || !look_at_op(w, v.maker - 1, &op) || !does_nothing(w, &op))
            break;
        m->skipped[m->skipped_count++] = v.maker - 1;
        value = op.inputs[0];
    }
    return value;
}

/* The input that stands for an optional node that is missing: the first one that the pattern computes, otherwise the
 * first. */
static uint8_t handed_on(const onxi_rewrite_rule *r, const pattern_node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (r->maker[n->inputs[i]] && r->nodes[r->maker[n->inputs[i]] - 1].id != ONXI_ID_Constant)
            return n->inputs[i];
    return n->inputs[0];
}

static bool match_optional(const matcher *w, uint32_t node, uint32_t value, match *m)
{
    const match before = *m;
    const onxi_rewrite_value v = look(w, value);
    if (!(w->barred >> node & 1) && v.maker && !v.is_output && match_op(w, node, v.maker - 1, m))
        return true;
    *m = before;
    m->ops[node] = ABSENT;
    return match_name(w, handed_on(w->rule, &w->rule->nodes[node]), value, m);
}

static bool match_name(const matcher *w, uint8_t name, uint32_t value, match *m)
{
    const onxi_rewrite_rule *r = w->rule;
    if (is_omitted(value))
        return false;
    const bool constant = r->maker[name] && r->nodes[r->maker[name] - 1].id == ONXI_ID_Constant;
    if (m->values[name] != ONXI_REWRITE_NONE && !constant)
        return m->values[name] == value;
    m->values[name] = value;
    if (!r->maker[name])
        return true;
    const uint32_t node = r->maker[name] - 1u;
    if (constant)
        return match_constant(w, &r->nodes[node], value, m);
    m->values[name] = value = skip(w, value, m);
    if (r->nodes[node].optional)
        return match_optional(w, node, value, m);
    const uint32_t maker = look(w, value).maker;
    return maker && match_op(w, node, maker - 1, m);
}

/* Is it one of the nodes to replace? */
static bool is_there(const onxi_rewrite_rule *r, const match *m, uint32_t node)
{
    return r->nodes[node].id != ONXI_ID_Constant && m->ops[node] != ABSENT && !r->nodes[node].shared;
}

static uint32_t inputs_of(const matcher *w, uint32_t index, uint32_t value)
{
    onxi_rewrite_op op;
    uint32_t count = 0;
    if (look_at_op(w, index, &op))
        for (uint32_t i = 0; i < op.input_count; i++)
            count += op.inputs[i] == value;
    return count;
}

/* Is the output of the node used inside of the match only? */
static bool is_inside(const matcher *w, const match *m, uint32_t node)
{
    const onxi_rewrite_rule *r = w->rule;
    onxi_rewrite_op op;
    if (!look_at_op(w, m->ops[node], &op) || is_omitted(op.outputs[0]))
        return false;
    const uint32_t value = op.outputs[0];
    const onxi_rewrite_value v = look(w, value);
    uint32_t inside = 0;
    for (uint32_t k = 0; k < r->node_count; k++)
        inside += is_there(r, m, k) ? inputs_of(w, m->ops[k], value) : 0;
    for (uint32_t k = 0; k < m->skipped_count; k++)
        inside += inputs_of(w, m->skipped[k], value) != 0;
    if (v.is_output || v.uses != inside)
        return false;
    for (uint32_t k = 0; k < r->input_count; k++) /* an input of the pattern must not be computed inside of the match */
        if (m->values[k] == value)
            return false;
    for (uint32_t k = 0; k < node; k++) /* two nodes of a pattern must not match the same node of the graph */
        if (is_there(r, m, k) && m->ops[k] == m->ops[node])
            return false;
    return true;
}

/* The first node whose output is used outside; ONXI_REWRITE_NODES if only the last one's is. */
static uint32_t not_inside(const matcher *w, const match *m)
{
    for (uint32_t i = 0; i + 1 < w->rule->node_count; i++)
        if (is_there(w->rule, m, i) && !is_inside(w, m, i))
            return i;
    return ONXI_REWRITE_NODES;
}

/* Looks up NAME_ELEMENT of a list. */
static bool is_element_name(onx_str name, const onxi_rewrite_taken *t)
{
    return t->element < 10 && name.len == t->name.len + 2 && memcmp(name.ptr, t->name.ptr, t->name.len) == 0 &&
           name.ptr[t->name.len] == '_' && name.ptr[t->name.len + 1] == (char)('0' + t->element);
}

/* A parameter of the replacement: captured under its name, or computed from a captured number: NAME_reciprocal,
 * NAME_square or NAME_square_reciprocal. *lost is set if the computed number is not representable as a float. */
static bool parameter_of(const match *m, onx_str name, onxi_attr_value *out, bool *lost)
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
            if (!end.len && is_element_name(name, &m->taken[i])) {
                *out = m->taken[i].value;
                return true;
            }
            if (m->taken[i].element != ONXI_REWRITE_NONE || name.len != from.len + end.len ||
                memcmp(name.ptr, from.ptr, from.len) != 0 ||
                (end.len && memcmp(name.ptr + from.len, end.ptr, end.len) != 0))
                continue;
            *out = m->taken[i].value;
            if (made[k].square)
                out->f *= out->f;
            if (made[k].reciprocal)
                out->f = 1 / out->f;
            *lost |= end.len && !isnormal(out->f);
            return true;
        }
    return false;
}

static onx_str parameter_name(const onx_function *f, uint32_t i)
{
    return onx_view(i < f->attribute_count ? f->attribute[i] : f->attribute_proto[i - f->attribute_count]->name);
}

/* Dividing by 0, or by a number close to 0, is not the same as multiplying by its reciprocal. */
static bool holds_numbers(const onxi_rewrite_rule *rule, const match *m)
{
    const onx_function *f = rule->replacement;
    onxi_attr_value v;
    bool lost = false;
    for (uint32_t i = 0; i < f->attribute_count + f->attribute_proto_count; i++)
        (void)parameter_of(m, parameter_name(f, i), &v, &lost);
    return !lost;
}

static bool is_one_number(const matcher *w, uint32_t value)
{
    onxi_rewrite_number x;
    return w->view->number(w->view->graph, value, &x) && !isnan(x.number);
}

/* The conditions that need no types. */
static bool holds_constants(const matcher *w, const match *m)
{
    for (uint32_t i = 0; i < w->rule->condition_count; i++) {
        const onxi_rewrite_condition_kind kind = w->rule->conditions[i].kind;
        const uint32_t value = m->values[w->rule->conditions[i].value], other = m->values[w->rule->conditions[i].other];
        if (kind == ONXI_REWRITE_NUMBER && !is_omitted(value) && !is_one_number(w, value))
            return false;
        if (kind == ONXI_REWRITE_CONSTANTS && ((!is_omitted(value) && !look(w, value).is_constant) ||
                                               (!is_omitted(other) && !look(w, other).is_constant)))
            return false;
    }
    return true;
}

bool onxi_rewrite_find(const onxi_rewrite_view *view, const onxi_rewrite_rule *rule, uint32_t index,
                       onxi_rewrite_match *m)
{
    matcher w = { view, rule, 0 };
    const uint32_t last = rule->node_count - 1;
    onxi_rewrite_op op;
    if (!look_at_op(&w, index, &op) || op.id != rule->nodes[last].id || !op.output_count)
        return false;
    for (;;) {
        m->taken_count = m->skipped_count = 0;
        for (uint32_t k = 0; k < ONXI_REWRITE_NAMES; k++)
            m->values[k] = ONXI_REWRITE_NONE;
        m->values[rule->nodes[last].output] = op.outputs[0];
        if (!match_op(&w, last, index, m))
            return false;
        const uint32_t node = not_inside(&w, m);
        if (node == ONXI_REWRITE_NODES)
            return holds_numbers(rule, m) && holds_constants(&w, m);
        if (!rule->nodes[node].optional)
            return false;
        w.barred |= UINT32_C(1) << node; /* without this optional node, the other values may be inner ones */
    }
}

uint32_t onxi_rewrite_parts(const onxi_rewrite_rule *rule, const match *m, uint32_t out[ONXI_REWRITE_OPS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rule->node_count + m->skipped_count; i++) {
        const bool skipped = i >= rule->node_count;
        if (!skipped && !is_there(rule, m, i))
            continue;
        const uint32_t op = skipped ? m->skipped[i - rule->node_count] : m->ops[i];
        uint32_t at = count++;
        for (; at && out[at - 1] > op; at--)
            out[at] = out[at - 1];
        out[at] = op;
    }
    return count;
}

/* ---- the replacement ---- */

uint32_t onxi_rewrite_input(const onxi_rewrite_rule *rule, const match *m, onx_bytes name)
{
    for (uint32_t k = 0; k < rule->name_count; k++)
        if (onx_str_equal(onx_view(name), rule->names[k]))
            return m->values[k];
    return ONXI_REWRITE_NONE;
}

static bool add_argument(onx_arena *arena, onx_node *call, onx_str text, const onxi_attr_value *v)
{
    char name[ONXI_REWRITE_NAME];
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

onx_status onxi_rewrite_arguments(const onxi_rewrite_rule *rule, const match *m, onx_arena *arena, onxi_arguments *out)
{
    onx_node *call = onx_message_new(arena, ONX_KIND_NODE);
    const onx_function *f = rule->replacement;
    if (!call)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < f->attribute_count + f->attribute_proto_count; i++) {
        const onx_str name = parameter_name(f, i);
        onxi_attr_value v;
        bool lost = false;
        if (parameter_of(m, name, &v, &lost) && !add_argument(arena, call, name, &v))
            return ONX_E_MEMORY;
    }
    return onxi_arguments_make(out, &rule->binder->parameters, arena, (const onx_attribute *const *)call->attribute,
                               call->attribute_count, NULL);
}

/* The captured number that a condition names; false if it was not captured. */
static bool taken_number(const match *m, const char *text, int64_t *out)
{
    onxi_attr_value v;
    bool lost = false;
    if (!parameter_of(m, onx_str_of(text), &v, &lost) || v.type != ONX_ATTR_INT)
        return false;
    *out = v.i;
    return true;
}

bool onxi_rewrite_condition_of(const onxi_rewrite_rule *rule, const match *m, uint32_t index,
                               onxi_rewrite_condition *out)
{
    *out = (onxi_rewrite_condition){ .kind = rule->conditions[index].kind,
                                     .value = m->values[rule->conditions[index].value],
                                     .other = m->values[rule->conditions[index].other],
                                     .number = rule->conditions[index].rank,
                                     .axis = rule->conditions[index].axis,
                                     .from = rule->conditions[index].from,
                                     .to = rule->conditions[index].to };
    for (uint32_t i = 0; i < 4; i++)
        out->bounds[i] =
            i < rule->conditions[index].bound_count ? m->values[rule->conditions[index].bounds[i]] : ONXI_REWRITE_NONE;
    /* an operand of an optional node that is missing, or an omitted one */
    const bool two = out->kind == ONXI_REWRITE_ONTO || out->kind == ONXI_REWRITE_SAME_SIZE;
    if (is_omitted(out->value) || (two && is_omitted(out->other)))
        return false;
    if (!*rule->conditions[index].number)
        return out->kind != ONXI_REWRITE_CONSTANTS && out->kind != ONXI_REWRITE_NUMBER &&
               out->kind != ONXI_REWRITE_BOTH;
    if (taken_number(m, rule->conditions[index].number, &out->number))
        return true;
    out->number = -1; /* never a size; if the axis is absent, nothing is required */
    return out->kind == ONXI_REWRITE_SIZE || out->kind == ONXI_REWRITE_MULTIPLE;
}
