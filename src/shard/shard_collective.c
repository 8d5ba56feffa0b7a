/* shard_collective.c - the nodes of a rank that convert values from one placement to another, and that combine partial
 * results. */
#include "shard/shard_write.h"

#include "value/value.h"

/* ---- moves ---- */

typedef struct pieces {
    int64_t *list;
    uint64_t count, room;
    uint32_t copies, sends, receives;
} pieces;

/* Transfers the intersection of `have` and `want`. */
static onx_status add_piece(onxi_shard_writer *w, pieces *p, onxi_piece_kind kind, uint32_t rank, uint32_t axes,
                            const onxi_box *have, const onxi_box *want, const onxi_box *part)
{
    if (!ONXI_GROW_IN(w->arena, p->list, p->room, p->count + ONXI_PIECE_HEAD + 3 * ONXI_SHARD_RANK))
        return ONX_E_MEMORY;
    p->list[p->count++] = kind;
    p->list[p->count++] = rank;
    for (uint32_t i = 0; i < axes; i++) {
        p->list[p->count++] = kind == ONXI_PIECE_RECEIVE ? 0 : part->start[i] - have->start[i];
        p->list[p->count++] = kind == ONXI_PIECE_SEND ? 0 : part->start[i] - want->start[i];
        p->list[p->count++] = part->size[i];
    }
    p->copies += kind == ONXI_PIECE_COPY;
    p->sends += kind == ONXI_PIECE_SEND;
    p->receives += kind == ONXI_PIECE_RECEIVE;
    return ONX_OK;
}

static const int64_t nothing[ONXI_SHARD_RANK] = { 0 };

/* A node of the domain, with the common attributes. Input and output boxes may be NULL: there is none. */
static onx_status new_collective(onxi_shard_writer *w, const char *op, uint32_t step, int32_t dtype, uint32_t rank,
                                 const onx_bytes *input, const onxi_box *have, const onxi_box *want, onx_node **out)
{
    onx_node *n = onx_message_new(w->arena, ONX_KIND_NODE);
    if (!n || onx_arena_keep(w->arena, onx_str_of(op), &n->op_type) != ONX_OK ||
        onx_arena_keep(w->arena, onx_str_of(ONXI_SHARD_DOMAIN), &n->domain) != ONX_OK)
        return ONX_E_MEMORY;
    n->has |= onx_node_has_op_type | onx_node_has_domain;
    n->input = onxi_arena_array(w->arena, 1, sizeof *n->input);
    n->output = onxi_arena_array(w->arena, 1, sizeof *n->output);
    if (!n->input || !n->output)
        return ONX_E_MEMORY;
    n->input_count = input != NULL;
    n->output_count = 1;
    if (input)
        n->input[0] = *input;
    /* An unused output is an empty vector. */
    if (!onx_node_add_int(w->arena, n, "tag", step) || !onx_node_add_int(w->arena, n, "dtype", dtype) ||
        !onx_node_add_ints(w->arena, n, "dims", want ? want->size : nothing, want ? rank : 1) ||
        !onx_node_add_ints(w->arena, n, "from", have ? have->size : nothing, rank) ||
        !onx_node_add_ints(w->arena, n, "to", want ? want->size : nothing, rank))
        return ONX_E_MEMORY;
    w->summary->collectives += !onx_str_is(onx_str_of(op), "Slice"); /* a Slice is local to one rank */
    *out = n;
    return ONX_OK;
}

static const char *name_move(const pieces *p, const onxi_shard_step *step)
{
    if (!p->sends && !p->receives)
        return "Slice";
    if (step->from->shards == 1 && step->to->shards == 1 && step->to->first[1] > 1)
        return "Broadcast";
    if (step->from->shards > 1 && step->to->shards == 1)
        return p->receives ? "AllGather" : "Send";
    return p->sends && p->receives ? "AllToAll" : p->sends ? "Send" : "Receive";
}

static void count_receipt(onxi_shard_writer *w, const onxi_shard_value *v, const onxi_box *part)
{
    w->summary->receive_bytes += (uint64_t)onxi_box_count(part, v->rank) * onxi_element_size(v->dtype);
}

static onx_status list_sends(onxi_shard_writer *w, const onxi_shard_step *step, const onxi_box *have, pieces *p)
{
    const onxi_shard_value *v = &w->plan->value[step->value];
    const uint32_t mine = (uint32_t)step->from->at[w->rank];
    for (uint32_t d = 0; d < w->devices; d++) {
        onxi_box part;
        if (d == w->rank || step->to->at[d] < 0 || step->from->at[d] == (int32_t)mine ||
            onxi_placement_source(step->from, mine, d) != w->rank)
            continue;
        const onxi_box want = onxi_shard_box_of(w, step->value, step->to, d);
        if (onxi_box_meet(have, &want, v->rank, &part))
            ONX_TRY(add_piece(w, p, ONXI_PIECE_SEND, d, v->rank, have, &want, &part));
    }
    return ONX_OK;
}

static onx_status list_receipts(onxi_shard_writer *w, const onxi_shard_step *step, const onxi_box *have,
                                const onxi_box *want, pieces *p)
{
    const onxi_shard_value *v = &w->plan->value[step->value];
    for (uint32_t j = 0; j < step->from->shards; j++) {
        const onxi_box box = onxi_placement_box(step->from, v->dims, v->rank, j);
        onxi_box part;
        if (!onxi_box_meet(&box, want, v->rank, &part))
            continue;
        const bool mine = step->from->at[w->rank] == (int32_t)j;
        if (!mine)
            count_receipt(w, v, &part);
        ONX_TRY(add_piece(w, p, mine ? ONXI_PIECE_COPY : ONXI_PIECE_RECEIVE,
                          onxi_placement_source(step->from, j, w->rank), v->rank, have, want, &part));
    }
    return ONX_OK;
}

onx_status onxi_shard_make_move(onxi_shard_writer *w, uint32_t index, onxi_shard_collective *out)
{
    const onxi_shard_step *step = &w->plan->step[index];
    const onxi_shard_value *v = &w->plan->value[step->value];
    const bool gives = step->from->at[w->rank] >= 0, gets = step->to->at[w->rank] >= 0;
    onxi_box have = { { 0 }, { 0 } }, want = have;
    onx_bytes input;
    pieces p = { 0 };
    *out = (onxi_shard_collective){ .value = step->value };
    if (!gives && !gets)
        return ONX_OK;
    if (!v->known)
        return onxi_fail(w->plan->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "\"%.*s\" cannot be moved between devices",
                         ONX_ARG(v->name));
    if (gives) {
        have = onxi_shard_box_of(w, step->value, step->from, w->rank);
        ONX_TRY(onxi_shard_name_of(w, step->value, step->from, &input));
        ONX_TRY(list_sends(w, step, &have, &p));
    }
    if (gets) {
        want = onxi_shard_box_of(w, step->value, step->to, w->rank);
        if (!gives || !onxi_box_same(&have, &want, v->rank))
            ONX_TRY(list_receipts(w, step, &have, &want, &p));
    }
    if (!p.count)
        return ONX_OK;
    out->makes = p.copies || p.receives;
    out->alone = !p.sends && !p.receives;
    out->want = want;
    ONX_TRY(new_collective(w, name_move(&p, step), index, v->dtype, v->rank, gives ? &input : NULL,
                           gives ? &have : NULL, out->makes ? &want : NULL, &out->node));
    return onx_node_add_ints(w->arena, out->node, "pieces", p.list, (uint32_t)p.count) ? ONX_OK : ONX_E_MEMORY;
}

/* ---- combining partial results ---- */

typedef struct parts {
    const onxi_shard_node *node;
    const onxi_assignment *a;
    const onxi_placement *made; /* the placement of the partial results */
    uint32_t count;
    uint32_t *first, *holder; /* devices by shard and part, in order */
} parts;

static onx_status list_parts(onxi_shard_writer *w, const onxi_shard_step *step, parts *q)
{
    const onxi_shard_node *n = &w->plan->node[step->node];
    *q = (parts){ .node = n, .a = step->assignment, .count = 1 };
    q->made = onxi_shard_project(w->plan, n, step->assignment, n->node->input_count + step->output);
    for (uint32_t i = 0; i < n->rule.dim_count; i++)
        if (n->rule.dim[i].kind != ONXI_SHARD_PARALLEL)
            q->count *= step->assignment->shards[i];
    if (!q->made)
        return ONX_E_MEMORY;
    const size_t cells = (size_t)q->made->shards * q->count;
    q->first = ONXI_ARRAY(w->arena, uint32_t, cells + 2);
    q->holder = ONXI_ARRAY(w->arena, uint32_t, (size_t)w->devices + 1);
    if (!q->first || !q->holder)
        return ONX_E_MEMORY;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t d = 0; d < w->devices; d++) {
            if (step->assignment->at[d] < 0)
                continue;
            const size_t cell = (size_t)q->made->at[d] * q->count + onxi_shard_reduced_part(&n->rule, q->a, d);
            if (pass)
                q->holder[q->first[cell + 1]++] = d;
            else
                q->first[cell + 2]++;
        }
        for (size_t i = 2; i < cells + 2 && !pass; i++)
            q->first[i] += q->first[i - 1];
    }
    return ONX_OK;
}

static uint32_t part_source(const parts *q, uint32_t shard, uint32_t part, uint32_t device)
{
    const size_t cell = (size_t)shard * q->count + part;
    return q->holder[q->first[cell] + device % (q->first[cell + 1] - q->first[cell])];
}

/* The devices that add up the same shard, one per part, if all shards have equally many. */
static bool find_members(const onxi_shard_writer *w, const parts *q, int64_t *members)
{
    const uint32_t shard = (uint32_t)q->made->at[w->rank],
                   mine = onxi_shard_reduced_part(&q->node->rule, q->a, w->rank);
    const uint32_t holders = q->first[1] - q->first[0];
    const size_t cells = (size_t)q->made->shards * q->count;
    uint32_t turn = 0;
    for (size_t i = 0; i < cells; i++)
        if (q->first[i + 1] - q->first[i] != holders)
            return false;
    const uint32_t *const same = q->holder + q->first[(size_t)shard * q->count + mine];
    while (same[turn] != w->rank)
        turn++;
    for (uint32_t i = 0; i < q->count; i++)
        members[i] = q->holder[q->first[(size_t)shard * q->count + i] + turn];
    return true;
}

static onx_status list_partial_sends(onxi_shard_writer *w, const onxi_shard_step *step, const parts *q,
                                     const onxi_box *have, pieces *p)
{
    const onxi_shard_value *v = &w->plan->value[step->value];
    const uint32_t shard = (uint32_t)q->made->at[w->rank],
                   mine = onxi_shard_reduced_part(&q->node->rule, q->a, w->rank);
    for (uint32_t d = 0; d < w->devices; d++) {
        onxi_box part;
        const bool own = step->assignment->at[d] >= 0 && (uint32_t)q->made->at[d] == shard &&
                         onxi_shard_reduced_part(&q->node->rule, q->a, d) == mine;
        if (d == w->rank || step->to->at[d] < 0 || own || part_source(q, shard, mine, d) != w->rank)
            continue;
        const onxi_box want = onxi_shard_box_of(w, step->value, step->to, d);
        if (onxi_box_meet(have, &want, v->rank, &part))
            ONX_TRY(add_piece(w, p, ONXI_PIECE_SEND, d, v->rank, have, &want, &part));
    }
    return ONX_OK;
}

static onx_status list_partial_receipts(onxi_shard_writer *w, const onxi_shard_step *step, const parts *q,
                                        const onxi_box *have, const onxi_box *want, pieces *p)
{
    const onxi_shard_value *v = &w->plan->value[step->value];
    for (uint32_t j = 0; j < q->made->shards; j++) {
        const onxi_box box = onxi_placement_box(q->made, v->dims, v->rank, j);
        onxi_box part;
        if (!onxi_box_meet(&box, want, v->rank, &part))
            continue;
        for (uint32_t i = 0; i < q->count; i++) {
            const bool mine = step->assignment->at[w->rank] >= 0 && (uint32_t)q->made->at[w->rank] == j &&
                              onxi_shard_reduced_part(&q->node->rule, q->a, w->rank) == i;
            if (!mine)
                count_receipt(w, v, &part);
            ONX_TRY(add_piece(w, p, mine ? ONXI_PIECE_COPY : ONXI_PIECE_RECEIVE, part_source(q, j, i, w->rank), v->rank,
                              have, want, &part));
        }
    }
    return ONX_OK;
}

static onx_status add_reduction(onxi_shard_writer *w, const parts *q, onx_node *n)
{
    static const char *const names[] = { [ONXI_SHARD_SUM] = "sum",
                                         [ONXI_SHARD_MEAN] = "sum",
                                         [ONXI_SHARD_MAX] = "max",
                                         [ONXI_SHARD_MIN] = "min",
                                         [ONXI_SHARD_PRODUCT] = "product" };
    onxi_shard_kind kind = ONXI_SHARD_SUM;
    double scale = 1;
    for (uint32_t i = 0; i < q->node->rule.dim_count; i++) {
        const onxi_shard_dim *d = &q->node->rule.dim[i];
        if (d->kind != ONXI_SHARD_PARALLEL)
            kind = d->kind;
        if (d->kind == ONXI_SHARD_MEAN)
            scale /= (double)d->size;
    }
    return onx_node_add_string(w->arena, n, "reduction", onx_str_of(names[kind])) &&
                   onx_node_add_float(w->arena, n, "scale", (float)scale) &&
                   onx_node_add_int(w->arena, n, "parts", q->count)
               ? ONX_OK
               : ONX_E_MEMORY;
}

static onx_status make_all_reduce(onxi_shard_writer *w, uint32_t index, const parts *q, const int64_t *members,
                                  onxi_shard_collective *out)
{
    const onxi_shard_step *step = &w->plan->step[index];
    const onxi_shard_value *v = &w->plan->value[step->value];
    const onxi_box box = onxi_shard_box_of(w, step->value, q->made, w->rank);
    out->makes = true;
    out->want = box;
    ONX_TRY(new_collective(w, "AllReduce", index, v->dtype, v->rank, &w->partial[step->value], &box, &box, &out->node));
    ONX_TRY(add_reduction(w, q, out->node));
    if (!onx_node_add_ints(w->arena, out->node, "members", members, q->count))
        return ONX_E_MEMORY;
    w->summary->receive_bytes +=
        onxi_shard_sum_bytes(q->count, (uint64_t)onxi_box_count(&box, v->rank) * onxi_element_size(v->dtype));
    return ONX_OK;
}

onx_status onxi_shard_make_reduce(onxi_shard_writer *w, uint32_t index, onxi_shard_collective *out)
{
    const onxi_shard_step *step = &w->plan->step[index];
    const onxi_shard_value *v = &w->plan->value[step->value];
    const bool gives = step->assignment->at[w->rank] >= 0, gets = step->to->at[w->rank] >= 0;
    onxi_box have = { { 0 }, { 0 } }, want = have;
    pieces p = { 0 };
    parts q;
    *out = (onxi_shard_collective){ .value = step->value, .partial = true };
    if (!gives && !gets)
        return ONX_OK;
    ONX_TRY(list_parts(w, step, &q));
    int64_t *members = ONXI_ARRAY(w->arena, int64_t, q.count);
    if (!members)
        return ONX_E_MEMORY;
    if (gives && step->to == q.made && find_members(w, &q, members))
        return make_all_reduce(w, index, &q, members, out);
    if (gives) {
        have = onxi_shard_box_of(w, step->value, q.made, w->rank);
        ONX_TRY(list_partial_sends(w, step, &q, &have, &p));
    }
    if (gets) {
        want = onxi_shard_box_of(w, step->value, step->to, w->rank);
        ONX_TRY(list_partial_receipts(w, step, &q, &have, &want, &p));
    }
    if (!p.count)
        return ONX_OK;
    out->makes = gets;
    out->want = want;
    ONX_TRY(new_collective(w, "Reduce", index, v->dtype, v->rank, gives ? &w->partial[step->value] : NULL,
                           gives ? &have : NULL, gets ? &want : NULL, &out->node));
    ONX_TRY(add_reduction(w, &q, out->node));
    return onx_node_add_ints(w->arena, out->node, "pieces", p.list, (uint32_t)p.count) ? ONX_OK : ONX_E_MEMORY;
}
