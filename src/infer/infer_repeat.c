/* infer_repeat.c - sharing of repeated results: values of which only a type is known share one fact per type, and a
 * node with the same operation and input facts as an earlier one reuses its result. */
#include "infer/infer.h"

/* ---- one fact per type ---- */

static uint32_t hash_of(const onxi_table *table, const onxi_type *type)
{
    const uint64_t head = type->dtype | (uint64_t)type->rank << 8;
    const onxi_secret secret = onxi_hash_then(table->secret, onxi_hash_word(table->secret, head));
    return (uint32_t)onxi_hash(secret, type->dims, type->rank * sizeof *type->dims);
}

onxi_infer_fact *onxi_infer_fact_of_type(onx_infer *e, const onxi_type *type)
{
    onxi_infer_plain *plain = &e->plain;
    const size_t size = type->rank * sizeof *type->dims;
    const uint32_t hash = hash_of(&plain->table, type);
    ONXI_TABLE_EACH (&plain->table, hash, i) {
        const onxi_type *known = &plain->facts[i]->type;
        if (known->dtype == type->dtype && known->rank == type->rank &&
            (!size || !memcmp(known->dims, type->dims, size)))
            return plain->facts[i];
    }
    onxi_infer_fact *fact = onxi_infer_fact_new(e);
    onxi_dim *dims = fact ? onxi_arena_get(e->arena, size ? size : sizeof *dims) : NULL;
    if (!dims || !ONXI_GROW_IN(e->arena, plain->facts, plain->room, plain->count + 1) ||
        !onxi_table_add(&plain->table, hash, plain->count)) {
        e->status = ONX_E_MEMORY;
        return NULL;
    }
    if (size)
        memcpy(dims, type->dims, size);
    fact->type =
        (onxi_type){ .kind = ONXI_TYPE_TENSOR, .dtype = type->dtype, .ranked = true, .rank = type->rank, .dims = dims };
    fact->shared = true;
    return plain->facts[plain->count++] = fact;
}

onxi_infer_fact *onxi_infer_fact_own(onx_infer *e, onxi_infer_name *entry)
{
    if (!entry->fact->shared)
        return entry->fact;
    onxi_infer_fact *fact = onxi_infer_fact_new(e);
    if (!fact)
        return NULL;
    *fact = *entry->fact;
    fact->shared = false;
    return entry->fact = fact;
}

/* ---- nodes that repeat an earlier one ---- */

/* Attributes that are a single number, string or short list. Comparing graphs or tensors is not worthwhile. */
static bool is_simple(const onx_attribute *a)
{
    if (a->extra) /* a reference, for example */
        return false;
    switch (onx_attribute_type_of(a)) {
    case ONX_ATTR_FLOAT:
    case ONX_ATTR_INT:
    case ONX_ATTR_STRING:
        return true;
    case ONX_ATTR_INTS: {
        uint32_t count = 0;
        return onx_attribute_value(a, ONX_SLOT_INTS, &count) && count <= ONXI_INFER_REPEAT_INTS;
    }
    default:
        return false;
    }
}

/* Compares attributes; `a` is simple. This runs for each node, so onx_message_equal, which visits every field of the
 * message, would be too slow. */
static bool same_attribute(const onx_attribute *a, const onx_attribute *b)
{
    if (a->has != b->has || b->extra || a->type != b->type || a->slot != b->slot || a->count != b->count ||
        !onx_str_equal(onx_view(a->name), onx_view(b->name)))
        return false;
    switch (a->slot) {
    case ONX_SLOT_F:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case ONX_SLOT_I:
        return a->i == b->i;
    case ONX_SLOT_S:
        return onx_str_equal(onx_view(a->s), onx_view(b->s));
    case ONX_SLOT_INTS:
        return !a->count || memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
    default:
        return a->slot == ONX_SLOT_NONE;
    }
}

static bool same_attributes(const onx_node *a, const onx_node *b)
{
    for (uint32_t i = 0; a != b && i < a->attribute_count; i++)
        if (!same_attribute(a->attribute[i], b->attribute[i]))
            return false;
    return true;
}

static onxi_infer_repeat *place_of(onx_infer *e, const onxi_bound *bound, const onx_node *node,
                                   onxi_infer_fact *const *inputs)
{
    uint64_t h = (uint64_t)(uintptr_t)bound + node->attribute_count;
    for (uint32_t i = 0; i < node->input_count; i++)
        h = (h ^ (uint64_t)(uintptr_t)inputs[i] >> 4) * 0x9e3779b97f4a7c15u;
    return &e->repeats[(h >> 40) % ONXI_INFER_REPEATS];
}

static bool may_repeat(const onx_node *node)
{
    return node->input_count <= ONXI_INFER_REPEAT_INPUTS && node->output_count <= ONXI_INFER_REPEAT_OUTPUTS &&
           node->output_count && node->attribute_count <= ONXI_INFER_REPEAT_ATTRIBUTES;
}

onxi_infer_fact *const *onxi_infer_repeat_find(onx_infer *e, const onxi_bound *bound, const onx_node *node,
                                               onxi_infer_fact *const *inputs)
{
    if (!may_repeat(node))
        return NULL;
    const onxi_infer_repeat *r = place_of(e, bound, node, inputs);
    if (r->bound != bound || r->node->input_count != node->input_count || r->node->output_count != node->output_count ||
        r->node->attribute_count != node->attribute_count)
        return NULL;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (r->inputs[i] != inputs[i])
            return NULL;
    return same_attributes(r->node, node) ? r->outputs : NULL;
}

void onxi_infer_repeat_note(onx_infer *e, const onxi_bound *bound, const onx_node *node, onxi_infer_fact *const *inputs,
                            onxi_infer_fact *const *outputs)
{
    if (!may_repeat(node))
        return;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (!is_simple(node->attribute[i]))
            return;
    onxi_infer_repeat *r = place_of(e, bound, node, inputs);
    *r = (onxi_infer_repeat){ .bound = bound, .node = node };
    for (uint32_t i = 0; i < node->input_count; i++)
        r->inputs[i] = inputs[i];
    for (uint32_t i = 0; i < node->output_count; i++)
        r->outputs[i] = outputs[i];
}

void onxi_infer_repeat_forget(onx_infer *e)
{
    memset(e->repeats, 0, sizeof e->repeats);
}
