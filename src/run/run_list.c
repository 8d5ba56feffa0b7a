/* run_list.c - sequences whose tensors are known while a graph is resolved: what takes a tensor out of one reads the
 * tensor that was put in, and what joins them is a Concat. Such a sequence is then often not needed at all. */
#include "run/run_build.h"

enum { ITEMS = 64 }; /* of a sequence: each insertion and erasure makes a list of its own */

typedef struct list {
    uint32_t count;
    uint32_t *slots;
} list;

static const list *list_of(const onxi_run_builder *b, uint32_t slot)
{
    static const list empty;
    if (slot == ONXI_NO_SLOT)
        return NULL;
    const onx_value *v = b->g->slots[slot].constant;
    if (v && v->kind == ONX_VALUE_SEQUENCE && !v->count)
        return &empty;
    return onxi_map_find(b->lists, slot);
}

/* The position that an optional input gives, `end` if it is omitted; false if it is unknown or outside of 0..end. */
static bool position(const onxi_run_builder *b, const onxi_run_op *op, uint32_t input, const list *l, uint32_t end,
                     uint32_t *out)
{
    int64_t at;
    uint32_t count;
    *out = end;
    if (input >= op->input_count || op->inputs[input] == ONXI_NO_SLOT)
        return true;
    if (!onxi_run_read_ints(b->g->slots[op->inputs[input]].constant, &at, 1, &count) || count != 1)
        return false;
    if (at < 0)
        at += l->count;
    if (at < 0 || at > end)
        return false;
    *out = (uint32_t)at;
    return true;
}

/* ---- what makes sequences ---- */

static onx_status note(onxi_run_builder *b, uint32_t slot, const list *l)
{
    list *kept = ONXI_NEW(b->arena, list);
    void **at = onxi_map_at(b->lists, slot);
    if (!kept || !at)
        return ONX_E_MEMORY;
    *kept = *l;
    *at = kept;
    return ONX_OK;
}

static onx_status note_construct(onxi_run_builder *b, const onxi_run_op *op)
{
    if (op->input_count > ITEMS)
        return ONX_OK;
    const list l = { op->input_count, ONXI_ARRAY(b->arena, uint32_t, op->input_count + 1u) };
    if (!l.slots)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < l.count; i++) {
        if (op->inputs[i] == ONXI_NO_SLOT)
            return ONX_OK;
        l.slots[i] = op->inputs[i];
    }
    return note(b, op->outputs[0], &l);
}

static onx_status note_insert(onxi_run_builder *b, const onxi_run_op *op)
{
    const list *from = list_of(b, op->inputs[0]);
    uint32_t at;
    if (!from || from->count >= ITEMS || op->input_count < 2 || op->inputs[1] == ONXI_NO_SLOT ||
        !position(b, op, 2, from, from->count, &at))
        return ONX_OK;
    const list l = { from->count + 1, ONXI_ARRAY(b->arena, uint32_t, from->count + 1u) };
    if (!l.slots)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < l.count; i++)
        l.slots[i] = i == at ? op->inputs[1] : from->slots[i - (i > at)];
    return note(b, op->outputs[0], &l);
}

static onx_status note_erase(onxi_run_builder *b, const onxi_run_op *op)
{
    const list *from = list_of(b, op->inputs[0]);
    uint32_t at;
    if (!from || !from->count || !position(b, op, 1, from, from->count - 1, &at))
        return ONX_OK;
    const list l = { from->count - 1, ONXI_ARRAY(b->arena, uint32_t, from->count) };
    if (!l.slots)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < l.count; i++)
        l.slots[i] = from->slots[i + (i >= at)];
    return note(b, op->outputs[0], &l);
}

onx_status onxi_run_build_note_list(onxi_run_builder *b, const onxi_run_op *op)
{
    if (!op->output_count || op->outputs[0] == ONXI_NO_SLOT || !op->input_count)
        return ONX_OK;
    switch (op->id) {
    case ONXI_ID_SequenceConstruct:
        return note_construct(b, op);
    case ONXI_ID_SequenceInsert:
        return note_insert(b, op);
    case ONXI_ID_SequenceErase:
        return note_erase(b, op);
    default:
        return ONX_OK;
    }
}

/* ---- what reads them ---- */

static onx_status take_item(onxi_run_builder *b, const onxi_run_op *op, const list *l, bool *done)
{
    uint32_t at;
    if (op->input_count != 2 || op->inputs[1] == ONXI_NO_SLOT || !l->count || !position(b, op, 1, l, l->count - 1, &at))
        return ONX_OK;
    *done = true;
    return onxi_run_build_name(b, onx_view(op->node->output[0]), l->slots[at]);
}

/* A constant of one number: a scalar, or (`rank` 1) a list. */
static onx_status add_number(onxi_run_builder *b, int64_t number, uint32_t rank, uint32_t *slot)
{
    onx_value *v;
    ONX_TRY(onxi_run_graph_add_slot(b->g, (onx_str){ 0 }, slot));
    ONX_TRY(onx_value_new_tensor(b->session->cx, ONX_INT64, rank, (const int64_t[]){ 1 }, &v));
    memcpy(v->data, &number, sizeof number);
    b->g->slots[*slot].constant = v;
    return onxi_run_session_keep(b->session, v);
}

static onx_status take_length(onxi_run_builder *b, const onxi_run_op *op, const list *l, bool *done)
{
    uint32_t slot;
    *done = true;
    ONX_TRY(add_number(b, l->count, 0, &slot));
    return onxi_run_build_name(b, onx_view(op->node->output[0]), slot);
}

/* Adds an op with one output, which has a new slot without a name. */
static onx_status add(onxi_run_builder *b, const onxi_run_op *by, const onxi_run_added *what, const uint32_t *inputs,
                      uint32_t count, uint32_t *out)
{
    onxi_run_op op;
    ONX_TRY(onxi_run_op_added(b->session, by, what, inputs, count, &op));
    ONX_TRY(onxi_run_graph_add_slot(b->g, what->name, out));
    op.outputs[0] = *out;
    return onxi_run_build_add(b, &op);
}

/* Gives each tensor a new axis. */
static onx_status stretch(onxi_run_builder *b, const onxi_run_op *op, int64_t axis, const list *l, uint32_t *slots)
{
    const onxi_run_added what = { .op_type = "Unsqueeze", .name = onx_view(op->node->name) };
    uint32_t inputs[2];
    ONX_TRY(add_number(b, axis, 1, &inputs[1]));
    for (uint32_t i = 0; i < l->count; i++) {
        inputs[0] = l->slots[i];
        ONX_TRY(add(b, op, &what, inputs, 2, &slots[i]));
    }
    return ONX_OK;
}

static onx_status join(onxi_run_builder *b, const onxi_run_op *op, const list *l, bool *done)
{
    const int64_t axis = onxi_attrs_int(&op->attrs, "axis");
    const onxi_run_added what = { "Concat", onx_view(op->node->name), "axis", axis };
    const bool stretches = onxi_attrs_int(&op->attrs, "new_axis") != 0;
    if (!l->count || b->session->unrolled >= ONXI_RUN_UNROLLED)
        return ONX_OK;
    b->session->unrolled += stretches ? l->count + 1 : 1;
    uint32_t slot, *slots = ONXI_ARRAY(b->arena, uint32_t, l->count + 1u);
    if (!slots)
        return ONX_E_MEMORY;
    memcpy(slots, l->slots, l->count * sizeof *slots);
    if (stretches)
        ONX_TRY(stretch(b, op, axis, l, slots));
    ONX_TRY(add(b, op, &what, slots, l->count, &slot));
    *done = true;
    return onxi_run_build_name(b, onx_view(op->node->output[0]), slot);
}

onx_status onxi_run_build_read_list(onxi_run_builder *b, const onxi_run_op *op, bool *done)
{
    *done = false;
    if (op->id != ONXI_ID_SequenceAt && op->id != ONXI_ID_SequenceLength && op->id != ONXI_ID_ConcatFromSequence)
        return ONX_OK;
    const list *l = op->input_count && op->node->output_count == 1 && onx_view(op->node->output[0]).len
                        ? list_of(b, op->inputs[0])
                        : NULL;
    if (!l)
        return ONX_OK;
    if (op->id == ONXI_ID_SequenceAt)
        return take_item(b, op, l, done);
    return op->id == ONXI_ID_SequenceLength ? take_length(b, op, l, done) : join(b, op, l, done);
}
