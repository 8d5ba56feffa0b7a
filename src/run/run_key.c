/* run_key.c - the key shared by the nodes of a plan whose rows are chosen together, and the lookup of the row chosen
 * for a key. */
#include "run/run_plan.h"

static onxi_digest add_value(onxi_digest d, const onx_value *v)
{
    if (!v)
        return onxi_run_digest_add(d, NULL, 0);
    const uint64_t type[] = { v->kind, v->dtype, v->rank, v->data != NULL };
    d = onxi_run_digest_add(d, type, sizeof type);
    return v->kind == ONX_VALUE_TENSOR && v->dims ? onxi_run_digest_add(d, v->dims, v->rank * sizeof *v->dims) : d;
}

static onxi_digest add_text(onxi_digest d, onx_str text)
{
    return onxi_run_digest_add(d, text.ptr, text.len);
}

/* Adds numbers, lists of numbers, and strings. Attributes of other kinds do not affect how long a row takes. */
static onxi_digest add_attribute(onxi_digest d, const onxi_attr_value *a)
{
    const uint32_t type[] = { a->type, a->count };
    d = onxi_run_digest_add(add_text(d, a->name), type, sizeof type);
    switch (a->type) {
    case ONX_ATTR_INT:
        return onxi_run_digest_add(d, &a->i, sizeof a->i);
    case ONX_ATTR_FLOAT:
        return onxi_run_digest_add(d, &a->f, sizeof a->f);
    case ONX_ATTR_STRING:
        return add_text(d, a->s);
    case ONX_ATTR_INTS:
        return onxi_run_digest_add(d, a->list, a->count * sizeof(int64_t));
    case ONX_ATTR_FLOATS:
        return onxi_run_digest_add(d, a->list, a->count * sizeof(float));
    default:
        return d;
    }
}

static onxi_digest add_operator(onxi_digest d, const onx_node *node, int32_t since, const onxi_attrs *attrs)
{
    d = add_text(add_text(d, onx_view(node->domain)), onx_view(node->op_type));
    d = onxi_run_digest_add(d, &since, sizeof since);
    for (uint32_t i = 0; attrs && i < attrs->count; i++)
        d = add_attribute(d, &attrs->values[i]);
    return d;
}

/* The speed of a row depends on its neighbours, above all on the layouts that they prefer. A measurement therefore
 * holds for one graph with given shapes only; its context covers the nodes, their connections, and the types of all
 * values. */
void onxi_run_plan_context(onxi_run_planner *pl)
{
    const onxi_run_graph *g = pl->g;
    onxi_digest d = { 0 };
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        const uint32_t numbers[] = { op->input_count, op->output_count, op->graph_count, (uint32_t)op->id };
        d = onxi_run_digest_add(add_operator(d, op->node, op->since, NULL), numbers, sizeof numbers);
        d = onxi_run_digest_add(d, op->inputs, op->input_count * sizeof *op->inputs);
        d = onxi_run_digest_add(d, op->outputs, op->output_count * sizeof *op->outputs);
    }
    for (uint32_t i = 0; i < g->slot_count; i++)
        d = add_value(d, &pl->plan->slots[i]->value);
    pl->plan->context = d;
}

static onxi_digest key_of(const onxi_run_planner *pl, const onx_prepare *p)
{
    onxi_digest d = add_operator(pl->plan->context, p->node, p->since, p->attrs);
    for (uint32_t i = 0; i < p->operand_count; i++)
        d = add_value(d, p->inputs[i]);
    for (uint32_t i = 0; i < p->output_count; i++)
        d = add_value(d, p->outputs[i]);
    for (uint32_t i = 0; i < p->post_op_count; i++) {
        const onx_post_op *f = &p->post_ops[i];
        const int64_t numbers[] = { f->port, f->operand };
        d = onxi_run_digest_add(d, numbers, sizeof numbers);
        d = add_operator(d, f->prepare->node, f->prepare->since, f->prepare->attrs);
    }
    return d;
}

/* Are there at least two built-in rows, besides the plain one, that may run the op? */
static bool has_choice(const onxi_run_op *op, const onx_prepare *p)
{
    uint32_t fast = 0;
    if (op->graph_count || (op->schema && (op->schema->flags & ONXI_OP_NONDETERMINISTIC || onx_op_kernel(op->schema))))
        return false;
    for (uint32_t i = 0; i < op->kernel_count; i++) {
        const onx_kernel *k = op->kernels[i];
        if (k->flags & (ONX_KERNEL_VIEW | ONX_KERNEL_RANDOM | ONX_KERNEL_SIZES_OUTPUT))
            return false;
        fast += !onxi_kernel_is_plain(k) && onxi_kernel_suits(k, p);
    }
    return fast > 1;
}

/* Finds or adds the key among those of the plan; *index is its position. */
static onx_status find_chosen(onxi_run_planner *pl, const onxi_run_op *op, onxi_digest key, uint32_t *index)
{
    onxi_run_plan *plan = pl->plan;
    const uint32_t hash = onxi_table_hash_word(&pl->by_key, key.a);
    ONXI_TABLE_EACH (&pl->by_key, hash, i)
        if (plan->chosen[i].key.a == key.a && plan->chosen[i].key.b == key.b) {
            *index = i;
            return ONX_OK;
        }
    if (!ONXI_GROW_IN(plan->arena, plan->chosen, plan->chosen_room, (uint64_t)plan->chosen_count + 1) ||
        !onxi_table_add(&pl->by_key, hash, plan->chosen_count))
        return ONX_E_MEMORY;
    plan->chosen[plan->chosen_count] =
        (onxi_run_chosen){ .key = key, .rows = op->kernels, .count = op->kernel_count, .row = op->kernel_count };
    *index = plan->chosen_count++;
    return ONX_OK;
}

/* The rows to try first according to the table. */
static onxi_run_order order_of(const onxi_run_choices *c, const onxi_run_op *op, onxi_digest key)
{
    uint32_t i;
    if (!onxi_run_choices_find(c, key, &i))
        return (onxi_run_order){ 0 };
    if (c->trial && c->trial[i])
        return (onxi_run_order){ c->trial[i], op->kernel_count };
    const onxi_digest want = c->list[i].row;
    for (uint32_t k = 0; (want.a || want.b) && k < op->kernel_count; k++) {
        const onxi_digest row = onxi_run_row_digest(op->kernels, k);
        if (row.a == want.a && row.b == want.b)
            return (onxi_run_order){ k, k + 1 };
    }
    return (onxi_run_order){ 0 };
}

onx_status onxi_run_plan_choose(onxi_run_planner *pl, const onxi_run_op *op, const onx_prepare *p,
                                onxi_run_order *order, uint32_t *chosen)
{
    uint32_t index;
    *chosen = 0;
    if (!pl->chooses || !has_choice(op, p))
        return ONX_OK;
    const onxi_digest key = key_of(pl, p);
    ONX_TRY(find_chosen(pl, op, key, &index));
    *order = order_of(pl->e->session->choices, op, key);
    *chosen = index + 1;
    return ONX_OK;
}

bool onxi_run_plan_chose(onxi_run_planner *pl, uint32_t chosen, const onxi_run_order *order, const onx_kernel *kernel)
{
    onxi_run_chosen *c = &pl->plan->chosen[chosen - 1];
    uint32_t row = 0;
    while (row < c->count && c->rows[row] != kernel)
        row++;
    if (c->row == c->count)
        c->row = row;
    return row >= order->from && row < order->to && !onxi_kernel_is_plain(kernel);
}

bool onxi_run_plan_chooses(const onxi_run_graph *g, bool nonfinite)
{
    const onxi_run_session *s = g->session;
    if (!s->choices || s->root != s || nonfinite)
        return false;
    const onxi_run_graph *main = s->main;
    while (main && main != g) /* the main graph, or a version of it where ops are replaced by their parts */
        main = main->unwritten;
    return main != NULL;
}
