/* transform_outline_make.c - creates a function from a repeated sequence of nodes, and replaces the sequences by
 * calls. */
#include "transform/transform_outline.h"

typedef struct shaper {
    onxi_outliner *o;
    onxi_cutter *c;
    uint32_t length, count;
    uint32_t *start;     /* of equivalent sequences */
    uint32_t operands;   /* per sequence: total number of inputs of its nodes */
    uint32_t *slot;      /* per operand: index of the outer value, INSIDE for inner values */
    onx_name_id *source; /* per slot and sequence */
    uint32_t slots;
    uint32_t *same;  /* per slot: the first slot with the same values in all sequences */
    onx_bytes *name; /* per slot, in the function; empty: not named yet */
    onxi_dict names; /* of the function */
    onx_function *function;
    bool *output; /* per output of the sequence's nodes */
    uint32_t outputs;
} shaper;

#define INSIDE UINT32_MAX

static const onx_node *node_at(const shaper *s, uint32_t run, uint32_t position)
{
    return s->c->graph->node[s->o->sequence[s->start[run] + position]];
}

/* ---- grouping equivalent sequences ---- */

/* The position and output in the sequence that define the operand; false if it is defined outside. */
static bool made_inside(const onxi_outliner *o, uint32_t start, uint32_t length, onx_str name, uint32_t *position,
                        uint32_t *output)
{
    const onx_name_id id = onx_index_find(o->c->index, name);
    const onx_def def = onx_index_def(o->c->index, id);
    if (def.kind != ONX_DEF_NODE || o->place[def.index] < start || o->place[def.index] - start >= length)
        return false;
    *position = o->place[def.index] - start;
    *output = def.output;
    return true;
}

/* Encodes the connections between the nodes of a sequence as numbers. */
static void wire(const onxi_outliner *o, uint32_t start, uint32_t length, uint64_t *wiring)
{
    uint32_t at = 0, position, output;
    for (uint32_t i = 0; i < length; i++) {
        const onx_node *node = o->c->graph->node[o->sequence[start + i]];
        for (uint32_t k = 0; k < node->input_count; k++)
            wiring[at++] = made_inside(o, start, length, onx_view(node->input[k]), &position, &output)
                               ? ((uint64_t)position << 32 | output) + 1
                               : 0;
    }
}

/* The largest group of sequences with the same connections; *count is 0 if none is large enough. */
static onx_status choose(shaper *s, const onxi_repeat *repeat)
{
    onxi_outliner *o = s->o;
    onx_arena *scratch = s->c->scratch;
    for (uint32_t i = 0; i < repeat->length; i++)
        s->operands += s->c->graph->node[o->sequence[repeat->start[0] + i]]->input_count;
    uint64_t *wiring = ONXI_ARRAY(scratch, uint64_t, (size_t)s->operands * repeat->count + 1);
    onxi_map groups = onxi_map_in_arena(scratch); /* by hash of the wiring: how many */
    uint64_t *hash = ONXI_ARRAY(scratch, uint64_t, repeat->count);
    uint32_t best = 0;
    uintptr_t most = 0;
    s->start = ONXI_ARRAY(scratch, uint32_t, repeat->count);
    if (!wiring || !hash || !s->start)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < repeat->count; i++) {
        uint64_t *own = wiring + (size_t)i * s->operands;
        wire(o, repeat->start[i], repeat->length, own);
        hash[i] = s->operands ? onxi_hash(o->secret, (const char *)own, s->operands * sizeof *own) : 0;
        void **group = onxi_map_at(&groups, hash[i]);
        if (!group)
            return ONX_E_MEMORY;
        *group = (void *)((uintptr_t)*group + 1);
    }
    for (uint32_t i = 0; i < repeat->count; i++)
        if ((uintptr_t)onxi_map_find(&groups, hash[i]) > most) {
            most = (uintptr_t)onxi_map_find(&groups, hash[i]);
            best = i;
        }
    for (uint32_t i = 0; i < repeat->count; i++)
        if (!s->operands || memcmp(wiring + (size_t)i * s->operands, wiring + (size_t)best * s->operands,
                                   s->operands * sizeof *wiring) == 0)
            s->start[s->count++] = repeat->start[i];
    if (s->count < o->min_calls)
        s->count = 0;
    return ONX_OK;
}

/* ---- outer values ---- */

static onx_status find_slots(shaper *s)
{
    onx_arena *scratch = s->c->scratch;
    uint32_t position, output;
    s->slot = ONXI_ARRAY(scratch, uint32_t, (size_t)s->operands + 1);
    s->source = ONXI_ARRAY(scratch, onx_name_id, (size_t)s->operands * s->count + 1);
    if (!s->slot || !s->source)
        return ONX_E_MEMORY;
    for (uint32_t run = 0; run < s->count; run++) {
        uint32_t at = 0, slots = 0;
        for (uint32_t i = 0; i < s->length; i++) {
            const onx_node *node = node_at(s, run, i);
            for (uint32_t k = 0; k < node->input_count; k++, at++) {
                const onx_str name = onx_view(node->input[k]);
                const bool outside = name.len && !made_inside(s->o, s->start[run], s->length, name, &position, &output);
                s->slot[at] = outside ? slots : INSIDE;
                if (outside)
                    s->source[(size_t)slots++ * s->count + run] = onx_index_find(s->c->index, name);
            }
        }
        s->slots = slots;
    }
    return ONX_OK;
}

/* Slots with the same value in every sequence are merged. */
static onx_status join_slots(shaper *s)
{
    onxi_dict seen = onxi_dict_in_arena(s->c->scratch);
    if (!(s->same = ONXI_ARRAY(s->c->scratch, uint32_t, (size_t)s->slots + 1)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < s->slots; i++) {
        const onx_name_id *own = s->source + (size_t)i * s->count;
        const onxi_dict_entry *entry =
            onxi_dict_at(&seen, onx_str_make((const char *)own, s->count * sizeof *own), i, NULL);
        if (!entry)
            return ONX_E_MEMORY;
        s->same[i] = entry->value;
    }
    return ONX_OK;
}

/* The value of a small constant, as the attribute of a node or an initializer. */
static const onx_attribute *constant_node(const shaper *s, onx_name_id id)
{
    const onx_def def = onx_index_def(s->c->index, id);
    const onx_node *node = def.kind == ONX_DEF_NODE ? s->c->graph->node[def.index] : NULL;
    return node && s->c->constant[def.index] && onxi_node_is(node, ONXI_ID_Constant) && node->attribute_count == 1 &&
                   (node->attribute[0]->slot != ONX_SLOT_T || !node->attribute[0]->t ||
                    !onx_tensor_is_external(node->attribute[0]->t))
               ? node->attribute[0]
               : NULL;
}

static onx_tensor *small_initializer(const shaper *s, onx_name_id id)
{
    enum { SMALL = 16 };
    const onx_def def = onx_index_def(s->c->index, id);
    onx_tensor *t = def.kind == ONX_DEF_INITIALIZER ? s->c->graph->initializer[def.index] : NULL;
    uint64_t count;
    return t && !onx_tensor_is_external(t) && onx_tensor_count(t, &count) && count <= SMALL ? t : NULL;
}

/* Are they equal except for their names? */
static bool same_tensor(const onx_tensor *a, const onx_tensor *b)
{
    onx_tensor x = *a, y = *b;
    x.name = y.name = (onx_bytes){ 0 };
    x.has &= ~(uint32_t)onx_tensor_has_name;
    y.has &= ~(uint32_t)onx_tensor_has_name;
    return a == b || onx_message_equal(ONX_KIND_TENSOR, &x, &y);
}

/* The common value of the slot in all sequences, as the attribute of a Constant node; *out is NULL if it becomes an
 * input. */
static onx_status constant_of(shaper *s, uint32_t slot, onx_attribute **out)
{
    const onx_name_id *ids = s->source + (size_t)slot * s->count;
    const onx_attribute *a = constant_node(s, ids[0]);
    onx_tensor *t = small_initializer(s, ids[0]);
    *out = NULL;
    if (!a && !t)
        return ONX_OK;
    for (uint32_t run = 1; run < s->count; run++) {
        const onx_attribute *other = constant_node(s, ids[run]);
        const onx_tensor *tensor = small_initializer(s, ids[run]);
        if (a ? !other || !onx_message_equal(ONX_KIND_ATTRIBUTE, a, other) : !tensor || !same_tensor(t, tensor))
            return ONX_OK;
    }
    if (a) {
        *out = (onx_attribute *)(uintptr_t)a;
        return ONX_OK;
    }
    onx_tensor *copy = ONXI_NEW(s->o->arena, onx_tensor);
    if (!copy || !(*out = onxi_attribute_new(s->o->arena, "value", ONX_ATTR_TENSOR)))
        return ONX_E_MEMORY;
    *copy = *t;
    copy->name = (onx_bytes){ 0 };
    ONX_CLEAR(tensor, copy, name);
    ONX_SET(attribute, *out, t, copy);
    return ONX_OK;
}

/* ---- the function ---- */

static onx_status name_in_function(shaper *s, onx_str wanted, onx_bytes *out)
{
    bool made;
    onx_str name = wanted;
    for (uint32_t number = 2;; number++) {
        if (!onxi_dict_at(&s->names, name, 0, &made))
            return ONX_E_MEMORY;
        if (made)
            return onx_arena_keep(s->o->arena, name, out);
        name = onxi_arena_printf(s->c->scratch, "%.*s_%u", ONX_ARG(wanted), number + s->names.count);
        if (!name.len)
            return ONX_E_MEMORY;
    }
}

static onx_status add_constant(shaper *s, onx_bytes name, onx_attribute *value)
{
    onx_node *node = ONX_ADD(s->o->arena, s->function, node, NODE);
    if (!node || onx_arena_keep(s->o->arena, onx_str_of("Constant"), &node->op_type) != ONX_OK ||
        onx_list_add_text(s->o->arena, &node->output, &node->output_count, onx_view(name)) != ONX_OK)
        return ONX_E_MEMORY;
    node->has |= onx_node_has_op_type;
    node->attribute = ONXI_ARRAY(s->o->arena, onx_attribute *, 1);
    if (!node->attribute)
        return ONX_E_MEMORY;
    node->attribute[node->attribute_count++] = value;
    return ONX_OK;
}

/* Creates inputs and constants, named as in the first sequence. */
static onx_status name_slots(shaper *s)
{
    if (!(s->name = ONXI_ARRAY(s->c->scratch, onx_bytes, (size_t)s->slots + 1)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < s->slots; i++) {
        onx_attribute *value;
        if (s->same[i] != i) {
            s->name[i] = s->name[s->same[i]];
            continue;
        }
        ONX_TRY(name_in_function(s, onx_index_name(s->c->index, s->source[(size_t)i * s->count]), &s->name[i]));
        ONX_TRY(constant_of(s, i, &value));
        if (value) {
            ONX_TRY(add_constant(s, s->name[i], value));
            s->same[i] = INSIDE; /* not an input of the call */
        } else
            ONX_TRY(
                onx_list_add_text(s->o->arena, &s->function->input, &s->function->input_count, onx_view(s->name[i])));
    }
    return ONX_OK;
}

static onx_status add_nodes(shaper *s)
{
    onx_arena *arena = s->o->arena;
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->length; i++) {
        const onx_node *from = node_at(s, 0, i);
        onx_node *node = ONX_ADD(arena, s->function, node, NODE);
        onx_bytes *inputs = onxi_arena_array(arena, (size_t)onxi_list_room(from->input_count) + 1, sizeof *inputs);
        if (!node || !inputs)
            return ONX_E_MEMORY;
        *node = *from;
        node->input = inputs;
        for (uint32_t k = 0; k < from->input_count; k++, at++)
            inputs[k] = s->slot[at] == INSIDE ? from->input[k] : s->name[s->slot[at]];
    }
    return ONX_OK;
}

/* Is the value read outside of its sequence? */
static bool is_read_outside(const shaper *s, uint32_t run, onx_str name)
{
    const onx_name_id id = onx_index_find(s->c->index, name);
    uint32_t count;
    const onx_use *uses = onx_index_uses(s->c->index, id, &count);
    if (id == ONX_NO_NAME)
        return false;
    if (s->o->visible[id])
        return true;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = s->o->place[uses[i].node];
        if (place < s->start[run] || place - s->start[run] >= s->length)
            return true;
    }
    return false;
}

/* A value that any call needs is an output. */
static onx_status find_outputs(shaper *s)
{
    uint32_t total = 0, at;
    for (uint32_t i = 0; i < s->length; i++)
        total += node_at(s, 0, i)->output_count;
    if (!(s->output = ONXI_ARRAY(s->c->scratch, bool, (size_t)total + 1)))
        return ONX_E_MEMORY;
    for (uint32_t run = 0; run < s->count; run++) {
        at = 0;
        for (uint32_t i = 0; i < s->length; i++)
            for (uint32_t k = 0; k < node_at(s, run, i)->output_count; k++, at++)
                s->output[at] = s->output[at] || is_read_outside(s, run, onx_view(node_at(s, run, i)->output[k]));
    }
    at = 0;
    for (uint32_t i = 0; i < s->length; i++)
        for (uint32_t k = 0; k < node_at(s, 0, i)->output_count; k++, at++)
            if (s->output[at])
                ONX_TRY(onx_list_add_text(s->o->arena, &s->function->output, &s->function->output_count,
                                          onx_view(node_at(s, 0, i)->output[k])));
    return ONX_OK;
}

/* Imports the operator sets of its nodes, and the default one for constants. */
static onx_status add_imports(shaper *s)
{
    onxi_imports imports;
    onxi_dict used = onxi_dict_in_arena(s->c->scratch);
    const onx_model *model = s->o->model;
    ONX_TRY(onxi_imports_open(&imports, s->c->scratch, model->opset_import, model->opset_import_count, false));
    for (uint32_t i = 0; i < s->function->node_count; i++) {
        const onx_str domain = onxi_domain_plain(onx_view(s->function->node[i]->domain));
        bool made;
        if (!onxi_dict_at(&used, domain, 0, &made))
            return ONX_E_MEMORY;
        const int64_t version = onxi_imports_version(&imports, domain);
        if (!made || version < 0)
            continue;
        onx_operator_set_id *id = ONX_ADD(s->o->arena, s->function, opset_import, OPERATOR_SET_ID);
        if (!id || onx_arena_keep(s->o->arena, domain, &id->domain) != ONX_OK)
            return ONX_E_MEMORY;
        id->has |= onx_operator_set_id_has_domain;
        ONX_SET(operator_set_id, id, version, version);
    }
    return ONX_OK;
}

static onx_status name_function(shaper *s)
{
    onxi_outliner *o = s->o;
    bool made = false;
    while (!made) {
        const onx_str name = onxi_arena_printf(o->arena, "block_%u", ++o->made);
        if (!name.len || !onxi_dict_at(&o->taken, name, 0, &made) ||
            onx_arena_refer(o->arena, name, &s->function->name) != ONX_OK)
            return ONX_E_MEMORY;
    }
    s->function->has |= onx_function_has_name | onx_function_has_domain;
    return onx_arena_keep(o->arena, o->domain, &s->function->domain);
}

static onx_status make_function(shaper *s)
{
    if (!(s->function = onx_message_new(s->o->arena, ONX_KIND_FUNCTION)))
        return ONX_E_MEMORY;
    s->names = onxi_dict_in_arena(s->c->scratch);
    for (uint32_t i = 0; i < s->length; i++)
        for (uint32_t k = 0; k < node_at(s, 0, i)->output_count; k++)
            if (!onxi_dict_at(&s->names, onx_view(node_at(s, 0, i)->output[k]), 0, NULL))
                return ONX_E_MEMORY;
    ONX_TRY(name_slots(s));
    ONX_TRY(add_nodes(s));
    ONX_TRY(find_outputs(s));
    ONX_TRY(add_imports(s));
    return name_function(s);
}

/* ---- the calls ---- */

static onx_status make_call(shaper *s, uint32_t run)
{
    onxi_outliner *o = s->o;
    onx_arena *arena = o->arena;
    onx_node *call = onx_message_new(arena, ONX_KIND_NODE);
    uint32_t at = 0;
    if (!call)
        return ONX_E_MEMORY;
    call->op_type = s->function->name;
    call->domain = s->function->domain;
    call->has |= onx_node_has_op_type | onx_node_has_domain;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->same[i] == i)
            ONX_TRY(onx_list_add_text(arena, &call->input, &call->input_count,
                                      onx_index_name(s->c->index, s->source[(size_t)i * s->count + run])));
    for (uint32_t i = 0; i < s->length; i++) {
        const onx_node *node = node_at(s, run, i);
        for (uint32_t k = 0; k < node->output_count; k++, at++)
            if (s->output[at])
                ONX_TRY(onx_list_add_text(arena, &call->output, &call->output_count, onx_view(node->output[k])));
        o->call[o->sequence[s->start[run] + i]] = i + 1 < s->length ? NULL : call;
        o->used[s->start[run] + i] = true;
    }
    if (onx_view(node_at(s, run, 0)->name).len) {
        call->has |= onx_node_has_name;
        ONX_TRY(
            onxi_names_make(&o->names, onx_view(node_at(s, run, 0)->name), onx_view(s->function->name), &call->name));
    }
    return ONX_OK;
}

onx_status onxi_outline_repeat(onxi_outliner *o, const onxi_repeat *repeat)
{
    shaper s = { .o = o, .c = o->c, .length = repeat->length };
    ONX_TRY(choose(&s, repeat));
    if (!s.count)
        return ONX_OK;
    ONX_TRY(find_slots(&s));
    ONX_TRY(join_slots(&s));
    ONX_TRY(make_function(&s));
    if (!s.function->output_count)
        return ONX_OK; /* nothing of it is needed */
    onx_function **place = onx_list_insert(o->arena, (void **)&o->model->functions, &o->model->functions_count,
                                           o->model->functions_count, sizeof *place);
    if (!place)
        return ONX_E_MEMORY;
    *place = s.function;
    for (uint32_t i = 0; i < s.count; i++)
        ONX_TRY(make_call(&s, i));
    onxi_tell_change(o->options->changed, o->options->user, "outline", "function", onx_view(s.function->name),
                     "%u nodes, called %u times, with %u inputs and %u outputs", s.length, s.count,
                     s.function->input_count, s.function->output_count);
    return ONX_OK;
}
