/* transform_convert.c - converts a node to another version, step by step. */
#include "transform/transform_retarget.h"

#include <stdio.h>

/* ---- steps ---- */

static const onxi_schema *older_row(const onxi_schema *row)
{
    return row[1].name ? &row[1] : NULL;
}

static void assume(onxi_retarget *r, const onxi_subject *s, const onxi_step *step)
{
    onxi_assumed *a = &r->assumed[step - onxi_steps];
    if (!step->assumes || a->count++)
        return;
    a->op = s->row->name;
    a->first = onxi_retarget_path(r);
}

/* The first row whose condition the node meets, and whose nodes accept the types of its operands; NULL: none. */
static onx_status find_step(onxi_retarget *r, onxi_subject *s, int32_t since, onxi_op_id op, onxi_versions at,
                            onxi_versioned domain, const onxi_step **out, const onx_function **text,
                            onxi_made_nodes *made)
{
    onx_str wrong = { 0 };
    *out = NULL;
    *text = NULL;
    at.of[domain] = s->up ? since : since - 1;
    for (uint16_t i = r->first[op]; i; i = r->next[i - 1]) {
        const onxi_step *step = &onxi_steps[i - 1];
        if (step->since != since || step->up != s->up)
            continue;
        s->prepared_count = 0;
        if (step->when && !step->when(s))
            continue;
        if (step->kind == ONXI_STEP_TEXT) {
            ONX_TRY(onxi_retarget_text(r, step, s, text));
            if (!onxi_retarget_fits(s, *text))
                continue;
            ONX_TRY(onxi_retarget_make(r, s, *text, at, true, domain, made));
            wrong = made->wrong;
            if (wrong.len)
                continue;
        }
        if (step->kind == ONXI_STEP_WIDE) {
            wrong = onx_str_of(step->text);
            break;
        }
        if (step->kind == ONXI_STEP_FAIL && wrong.len) /* another type may go a better way */
            break;
        *out = step;
        assume(r, s, step);
        return ONX_OK;
    }
    made->wrong = wrong;
    return ONX_OK;
}

static onx_status refuse(onxi_retarget *r, const onx_node *node, const onxi_schema *row, bool up, int32_t since,
                         const char *why)
{
    char hint[96];
    (void)snprintf(hint, sizeof hint, "version %d is the %s that supports it", up ? since - 1 : since,
                   up ? "highest" : "lowest");
    if (why && *why)
        return onxi_retarget_fail(r, node, hint, "%s %s: %s", row->name, up ? "cannot be newer" : "cannot be older",
                                  why);
    return onxi_retarget_fail(r, node, hint, "%s was added in version %d and cannot be expressed by older operators",
                              row->name, since);
}

typedef struct state { /* of a node during conversion */
    onxi_scope *scope;
    onx_node *node;
    bool own;  /* the node is a copy */
    bool wide; /* and has casts around it */
    onxi_versioned domain;
    onxi_op_id op;
    onxi_versions at;
    onxi_node_list after; /* casts of its outputs */
    bool done;            /* other nodes have replaced it, or conversion has stopped */
} state;

static onx_status own_state(onxi_retarget *r, state *t)
{
    if (t->own)
        return ONX_OK;
    t->own = true;
    return (t->node = onxi_own_node(r, t->node)) ? ONX_OK : ONX_E_MEMORY;
}

/* Leaves the node as it is, because others would not accept the types of its operands. */
static onx_status refuse_types(onxi_retarget *r, state *t, const onxi_schema *row, bool up, int32_t since,
                               onx_str wrong, onxi_node_list *out)
{
    char why[512];
    (void)snprintf(why, sizeof why, "%.*s", ONX_ARG(wrong));
    t->done = true;
    ONX_TRY(onxi_node_list_add(r->scratch, out, t->node));
    return refuse(r, t->node, row, up, since, why);
}

/* Replaces the node by the body of its operator. */
static onx_status take_body(onxi_retarget *r, state *t, onxi_subject *s, int32_t since, onxi_node_list *out)
{
    const onx_function *text;
    const bool versioned = t->domain < ONXI_VERSIONED_COUNT; /* other domains have one version */
    const int64_t version = versioned ? t->at.of[t->domain] : s->row->since;
    ONX_TRY(onxi_retarget_body(r, s, t->domain, version, &text));
    if (!text) {
        ONX_TRY(onxi_node_list_add(r->scratch, out, t->node));
        return refuse(r, t->node, s->row, false, since, "its body depends on an argument of the enclosing function");
    }
    onxi_versions at = t->at;
    onxi_made_nodes made;
    at.of[ONXI_DEFAULT] = s->row->body_opset;
    ONX_TRY(onxi_retarget_make(r, s, text, at, false, ONXI_DEFAULT, &made));
    if (made.wrong.len)
        return refuse_types(r, t, s->row, false, since, made.wrong, out);
    onxi_retarget_tell(r, t->node, version, since - 1, "replaced by its function body");
    return onxi_retarget_put(r, s, &made, at, out);
}

/* Adds casts around the node, and tries again; false: that is not possible. */
static onx_status widen(onxi_retarget *r, state *t, const onxi_schema *row, onxi_lost_type what, int64_t reached,
                        onxi_node_list *out, bool *good)
{
    ONX_TRY(own_state(r, t));
    ONX_TRY(onxi_retarget_cast(r, t->scope, t->op, t->node, row, what, t->at, out, &t->after, good));
    if (!*good)
        return ONX_OK;
    onxi_retarget_tell(r, t->node, t->at.of[t->domain], reached, "casts around it");
    t->wide = true;
    t->done = false;
    return ONX_OK;
}

static onx_status take_step(onxi_retarget *r, state *t, const onxi_schema *row, const onxi_schema *to, bool up,
                            int32_t since, onxi_node_list *out)
{
    onxi_subject s = {
        .r = r, .values = &r->values, .arena = r->arena, .scope = t->scope, .node = t->node, .row = row, .up = up
    };
    const onxi_step *step;
    const onx_function *text;
    const int64_t reached = up ? since : since - 1;
    onxi_made_nodes made = { 0 };
    ONX_TRY(find_step(r, &s, since, t->op, t->at, t->domain, &step, &text, &made));
    t->done = true;
    if (step && to && (step->kind == ONXI_STEP_SAME || step->kind == ONXI_STEP_DROP)) { /* texts have been checked */
        const onxi_lost_type what = onxi_retarget_lost(r, t->scope, t->node, row, to);
        if (what.constraint) {
            bool good;
            ONX_TRY(widen(r, t, row, what, reached, out, &good));
            if (good)
                return ONX_OK;
            ONX_TRY(onxi_node_list_add(r->scratch, out, t->node));
            char why[96];
            (void)snprintf(why, sizeof why, "it does not support %s there", onx_dtype_name(what.dtype));
            return refuse(r, t->node, row, up, since, why);
        }
    }
    if (!step && made.wrong.len) {
        const onxi_lost_type what = onxi_retarget_wide(r, t->scope, t->op, t->node, row);
        bool good = false;
        if (what.constraint)
            ONX_TRY(widen(r, t, row, what, reached, out, &good));
        if (good)
            return ONX_OK;
        return refuse_types(r, t, row, up, since, made.wrong, out);
    }
    if (!step || step->kind == ONXI_STEP_FAIL) {
        ONX_TRY(onxi_node_list_add(r->scratch, out, t->node));
        return refuse(r, t->node, row, up, since, step ? step->text : to ? "there is no equivalent" : NULL);
    }
    if (step->kind == ONXI_STEP_BODY)
        return take_body(r, t, &s, since, out);
    if (step->kind == ONXI_STEP_TEXT) {
        onxi_retarget_tell(r, t->node, t->at.of[t->domain], reached, step->text ? step->text : "rewritten");
        onxi_versions at = t->at;
        at.of[t->domain] = reached;
        return onxi_retarget_put(r, &s, &made, at, out);
    }
    bool good;
    onxi_versions at = t->at;
    ONX_TRY(own_state(r, t));
    s.node = t->node;
    ONX_TRY(onxi_retarget_adjust(r, &s, to, step->text, t->node, &good));
    if (!good)
        return onxi_node_list_add(r->scratch, out, t->node);
    if (t->wide) {
        at.of[t->domain] = reached;
        ONX_TRY(onxi_retarget_recheck(r, &s, t->node, at, t->domain, &made.wrong));
    }
    if (made.wrong.len)
        return refuse_types(r, t, row, up, since, made.wrong, out);
    if (s.prepared_count)
        onxi_retarget_tell(r, t->node, t->at.of[t->domain], reached, "attributes set");
    t->at.of[t->domain] = reached;
    t->done = false;
    return ONX_OK;
}

/* The next step on the way to the target, or 0 if there is none. */
int32_t onxi_retarget_next(const onxi_operator *operator_, const onxi_schema *row, int64_t at, int64_t target,
                           const onxi_schema **to)
{
    *to = NULL;
    if (target < at) {
        *to = older_row(row);
        return row->since > target ? row->since : 0;
    }
    int32_t since = 0;
    for (const onxi_schema *newer = operator_->rows; newer->name && newer->since > at; newer++)
        if (newer->since <= target) {
            since = newer->since;
            *to = newer;
        }
    return since;
}

static onx_status convert_steps(onxi_retarget *r, state *t, onxi_node_list *out)
{
    const onxi_operator *operator_ = onxi_operator_of(t->op);
    const int64_t target = r->target.of[t->domain];
    while (!t->done) {
        const int64_t at = t->at.of[t->domain];
        const onxi_schema *row = onxi_schema_find(onx_str_of(onxi_versioned_domains[t->domain]),
                                                  onx_view(t->node->op_type), at),
                          *to;
        if (!row)
            return onxi_fail(r->cx, ONX_E_INVALID, ONXI_AT_PATH(onxi_retarget_path(r)),
                             "version %lld of %s has no operator of that name", (long long)at,
                             onxi_versioned_names[t->domain]);
        if (onxi_retarget_takes_body(r, t->op, row) ||
            (onxi_schema_is_composed(row) &&
             onxi_retarget_succeeded(r, t->op, onx_view(t->node->op_type), t->domain))) {
            onxi_subject s = {
                .r = r, .values = &r->values, .arena = r->arena, .scope = t->scope, .node = t->node, .row = row
            };
            t->done = true;
            ONX_TRY(take_body(r, t, &s, row->since, out));
            continue;
        }
        const int32_t since = at == target ? 0 : onxi_retarget_next(operator_, row, at, target, &to);
        if (!since)
            return onxi_node_list_add(r->scratch, out, t->node);
        ONX_TRY(take_step(r, t, row, to, target > at, since, out));
    }
    return ONX_OK;
}

/* Replaces an operator of a domain without version conversion by its body. */
static onx_status replace_other(onxi_retarget *r, state *t, const onxi_schema *row, onxi_node_list *out)
{
    onxi_subject s = {
        .r = r, .values = &r->values, .arena = r->arena, .scope = t->scope, .node = t->node, .row = row
    };
    t->done = true;
    return take_body(r, t, &s, row->since, out);
}

onx_status onxi_retarget_convert(onxi_retarget *r, onxi_scope *scope, onx_node *node, onxi_versions at,
                                 onxi_node_list *out)
{
    const onxi_versioned domain = onxi_versioned_of(onx_view(node->domain));
    const onx_str name = onx_view(node->op_type);
    const onxi_operator *operator_ = domain < ONXI_VERSIONED_COUNT
                                         ? onxi_operator_at(onx_view(node->domain), name, at.of[domain])
                                         : onxi_operator_find(onx_view(node->domain), name);
    state t = { .scope = scope, .node = node, .domain = domain, .op = onxi_operator_id(operator_), .at = at };
    if (++r->depth > r->limit)
        return onxi_fail(r->cx, ONX_E_LIMIT, ONXI_AT_PATH(onxi_retarget_path(r)),
                         "nodes are replaced more than %u deep (limit depth)", r->limit);
    ONX_TRY(onxi_retarget_graphs(r, scope, node, at));
    if (operator_ && domain < ONXI_VERSIONED_COUNT)
        ONX_TRY(convert_steps(r, &t, out));
    else if (operator_ && onxi_retarget_takes_body(r, t.op, operator_->rows))
        ONX_TRY(replace_other(r, &t, operator_->rows, out));
    else
        ONX_TRY(onxi_node_list_add(r->scratch, out, node));
    for (uint32_t i = t.after.count; i-- > 0;) /* the casts from the widest type come first */
        ONX_TRY(onxi_retarget_convert(r, scope, t.after.items[i], at, out));
    r->depth--;
    return ONX_OK;
}
