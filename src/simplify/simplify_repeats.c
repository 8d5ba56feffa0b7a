/* simplify_repeats.c - removes nodes that compute the same as an earlier one, and duplicate constants. */
#include "simplify/simplify.h"

enum { LITTLE = 256 /* maximum bytes of a compared constant */, AROUND = 4 /* enclosing graphs that are looked at */ };

typedef struct entry {
    uint32_t index; /* of an op or value */
    uint32_t scope;
} entry;

typedef struct repeats {
    onxi_simplify *s;
    onxi_table ops, constants;
    entry *list;
    uint32_t count, room;
} repeats;

static uint32_t scope_around(const onxi_simplify *s, uint32_t scope)
{
    while (scope != ONXI_S_NONE && s->scopes[scope].gone)
        scope = s->scopes[scope].parent;
    return scope;
}

static onx_status add(repeats *r, onxi_table *table, uint32_t hash, uint32_t index, uint32_t scope)
{
    if (!ONXI_GROW_IN(r->s->scratch, r->list, r->room, (uint64_t)r->count + 1))
        return ONX_E_MEMORY;
    r->list[r->count] = (entry){ index, scope };
    return onxi_table_add(table, hash, r->count++) ? ONX_OK : ONX_E_MEMORY;
}

/* ---- nodes ---- */

static bool may_repeat(onxi_simplify *s, onxi_sop *op)
{
    if (op->dead || op->opaque || op->first_scope != ONXI_S_NONE || !op->output_count ||
        op->bound->op == ONXI_ID_Constant || !onxi_bound_repeats(op->bound))
        return false;
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_S_NONE && s->values[op->outputs[i]].pinned)
            return false;
    /* random in each run; so is an old Dropout in training mode */
    return op->bound->op != ONXI_ID_Dropout;
}

/* The parts of the key that do not depend on the scope. */
static uint64_t key_of(repeats *r, const onxi_sop *op)
{
    uint64_t hash = onxi_hash_word(r->ops.secret, (uint64_t)(uintptr_t)op->bound);
    for (uint32_t i = 0; i < op->input_count; i++)
        hash = onxi_hash_word(onxi_hash_then(r->ops.secret, hash), onxi_simplify_input(r->s, op, i));
    for (uint32_t i = 0; i < op->output_count; i++)
        hash = onxi_hash_word(onxi_hash_then(r->ops.secret, hash), op->outputs[i] == ONXI_S_NONE);
    return onxi_attrs_hash(onxi_hash_then(r->ops.secret, hash), &op->attrs);
}

static uint32_t hash_in(const repeats *r, uint64_t key, uint32_t scope)
{
    return (uint32_t)onxi_hash_word(onxi_hash_then(r->ops.secret, key), scope);
}

static bool same(onxi_simplify *s, const onxi_sop *a, const onxi_sop *b)
{
    if (a->dead || a->bound != b->bound || a->input_count != b->input_count || a->output_count != b->output_count)
        return false;
    for (uint32_t i = 0; i < a->input_count; i++)
        if (onxi_simplify_input(s, a, i) != onxi_simplify_input(s, b, i))
            return false;
    for (uint32_t i = 0; i < a->output_count; i++)
        if ((a->outputs[i] == ONXI_S_NONE) != (b->outputs[i] == ONXI_S_NONE))
            return false;
    return onxi_attrs_equal(&a->attrs, &b->attrs);
}

static bool may_hand_on(onxi_simplify *s, const onxi_sop *from, const onxi_sop *to)
{
    for (uint32_t i = 0; i < from->output_count; i++)
        if (from->outputs[i] != ONXI_S_NONE && !onxi_simplify_can_hand_on(s, from->outputs[i], to->outputs[i]))
            return false;
    return true;
}

static onx_status look_at_op(repeats *r, uint32_t index)
{
    onxi_simplify *s = r->s;
    onxi_sop *op = &s->ops[index];
    if (!may_repeat(s, op) || !onxi_simplify_attrs(s, op))
        return ONX_OK;
    const uint32_t own = scope_around(s, op->scope);
    const uint64_t key = key_of(r, op);
    uint32_t scope = own;
    for (uint32_t around = 0; around < AROUND && scope != ONXI_S_NONE; around++) {
        ONXI_TABLE_EACH (&r->ops, hash_in(r, key, scope), i) {
            const onxi_sop *before = &s->ops[r->list[i].index];
            if (r->list[i].scope != scope || !same(s, before, op))
                continue;
            /* Both are outputs of the graph. Of equal nodes only the first is in the table, so that many outputs that
             * are the same take linear time. */
            if (!may_hand_on(s, op, before))
                return ONX_OK;
            onxi_simplify_note(s, ONXI_SIMPLIFY_REPEATS, op->bound->schema->name, index, "the same as %.*s",
                               ONX_ARG(onx_view(before->node->output[0])));
            for (uint32_t k = 0; k < op->output_count; k++)
                if (op->outputs[k] != ONXI_S_NONE)
                    (void)onxi_simplify_hand_on(s, index, op->outputs[k], before->outputs[k]);
            return onxi_simplify_drop(s, index);
        }
        scope = scope_around(s, s->scopes[scope].parent);
    }
    return add(r, &r->ops, hash_in(r, key, own), index, own);
}

/* ---- constants ---- */

static bool bytes_of(onxi_simplify *s, const onx_tensor *t, onx_str *out)
{
    uint64_t size;
    if (!t || t->data_location == ONX_DATA_EXTERNAL || !onxi_simplify_elements(t, &size) || size > LITTLE ||
        t->dims_count > ONX_RANK_MAX)
        return false;
    const onxi_diag_mark mark = onxi_diag_here(s->cx);
    const bool fine = onx_tensor_bytes(s->doc, t, out) == ONX_OK;
    onxi_diag_rewind(s->cx, mark);
    return fine;
}

static bool alike(onxi_simplify *s, const onx_tensor *a, const onx_tensor *b, onx_str bytes)
{
    onx_str other;
    return a->data_type == b->data_type && a->dims_count == b->dims_count &&
           onxi_same_dims(a->dims, b->dims, a->dims_count) && bytes_of(s, a, &other) && onx_str_equal(other, bytes);
}

static onx_status look_at_constant(repeats *r, uint32_t index)
{
    onxi_simplify *s = r->s;
    const onxi_svalue *v = &s->values[index];
    onx_str bytes;
    if (!v->tensor || v->alias != ONXI_S_NONE || !v->uses || v->pinned || v->is_output ||
        !bytes_of(s, v->tensor, &bytes))
        return ONX_OK;
    uint32_t scope = scope_around(s, v->scope);
    if (scope == ONXI_S_NONE)
        return ONX_OK;
    const onxi_secret secret = r->constants.secret;
    uint64_t key = bytes.len ? onxi_hash(secret, bytes.ptr, bytes.len) : 0;
    for (uint32_t i = 0; i < v->tensor->dims_count; i++)
        key = onxi_hash_word(onxi_hash_then(secret, key), (uint64_t)v->tensor->dims[i]);
    const uint32_t hash =
        (uint32_t)onxi_hash_word(onxi_hash_then(secret, key),
                                 (uint64_t)scope << 32 | (uint32_t)v->tensor->data_type << 8 | v->tensor->dims_count);
    ONXI_TABLE_EACH (&r->constants, hash, i)
        if (r->list[i].scope == scope && alike(s, s->values[r->list[i].index].tensor, v->tensor, bytes)) {
            const uint32_t maker = v->maker;
            if (onxi_simplify_hand_on(s, ONXI_S_NONE, index, r->list[i].index) && maker)
                return onxi_simplify_drop(s, maker - 1);
            return ONX_OK;
        }
    return add(r, &r->constants, hash, index, scope);
}

static onx_status walk(repeats *r, uint32_t scope)
{
    onxi_simplify *s = r->s;
    for (uint32_t op = s->scopes[scope].first; op != ONXI_S_NONE; op = s->ops[op].next) {
        ONX_TRY(look_at_op(r, op));
        for (uint32_t inner = s->ops[op].dead ? ONXI_S_NONE : s->ops[op].first_scope; inner != ONXI_S_NONE;
             inner = s->scopes[inner].sibling)
            if (!s->scopes[inner].gone)
                ONX_TRY(walk(r, inner)); /* recursion is bounded: body.c has checked the depth */
    }
    return ONX_OK;
}

onx_status onxi_simplify_repeats(onxi_simplify *s)
{
    repeats r = { .s = s, .ops = onxi_table_in_arena(s->scratch), .constants = onxi_table_in_arena(s->scratch) };
    for (uint32_t i = 0; i < s->value_count; i++)
        ONX_TRY(look_at_constant(&r, i));
    return walk(&r, 0);
}
