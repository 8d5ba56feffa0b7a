/* simplify_change.c - changes of a graph by passes: replacing values, and removing or replacing ops. */
#include "simplify/simplify.h"

#include <stdio.h>

/* ---- queries ---- */

uint32_t onxi_simplify_value(onxi_simplify *s, uint32_t value)
{
    uint32_t end = value;
    while (s->values[end].alias != ONXI_S_NONE)
        end = s->values[end].alias;
    while (value != end) { /* path compression: the next look-up takes one step */
        const uint32_t next = s->values[value].alias;
        s->values[value].alias = end;
        value = next;
    }
    return end;
}

bool onxi_simplify_attrs(onxi_simplify *s, onxi_sop *op)
{
    onxi_attr_fault fault;
    if (op->opaque || op->dead)
        return false;
    if (op->bound_attrs)
        return true;
    if (onxi_bind_attributes(op->bound, op->node, NULL, s->scratch, NULL, 0, &op->attrs, &fault) != ONX_OK) {
        op->opaque = true;
        return false;
    }
    op->bound_attrs = true;
    return true;
}

bool onxi_simplify_is(onxi_simplify *s, const onxi_sop *op, onxi_op_id id)
{
    return !op->opaque && !op->dead && op->bound->op == id && onxi_simplify_attrs(s, (onxi_sop *)(uintptr_t)op);
}

onxi_sop *onxi_simplify_maker(onxi_simplify *s, const onxi_sop *near, uint32_t value, onxi_op_id id)
{
    if (value == ONXI_S_NONE || !s->values[value].maker)
        return NULL;
    onxi_sop *op = &s->ops[s->values[value].maker - 1];
    return op->scope == near->scope && onxi_simplify_is(s, op, id) ? op : NULL;
}

bool onxi_simplify_is_private(const onxi_simplify *s, uint32_t value)
{
    return s->values[value].uses == 1 && !s->values[value].is_output && !s->values[value].pinned;
}

/* ---- values ---- */

bool onxi_simplify_can_hand_on(onxi_simplify *s, uint32_t y, uint32_t x)
{
    const onxi_svalue *from = &s->values[y], *to = &s->values[x];
    if (from->pinned)
        return false;
    if (!from->is_output)
        return true;
    /* the replacement takes over the name of the output, if it can be renamed */
    return to->maker && !s->ops[to->maker - 1].dead && to->scope == from->scope && !to->is_output && !to->pinned &&
           !to->tensor;
}

bool onxi_simplify_hand_on(onxi_simplify *s, uint32_t op, uint32_t y, uint32_t x)
{
    x = onxi_simplify_value(s, x);
    if (x == y || !onxi_simplify_can_hand_on(s, y, x))
        return false;
    onxi_svalue *from = &s->values[y], *to = &s->values[x];
    if (from->is_output) {
        to->is_output = from->is_output;
        to->name = from->name;
        to->shares_name = from->shares_name;
    }
    if (!to->fact)
        to->fact = from->fact;
    to->uses += from->uses;
    from->uses = 0;
    from->is_output = 0;
    from->alias = x;
    s->changed = true;
    (void)op;
    return true;
}

/* ---- ops ---- */

static bool is_needed(const onxi_simplify *s, const onxi_sop *op)
{
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_S_NONE) {
            const onxi_svalue *v = &s->values[op->outputs[i]];
            if (v->uses || v->is_output || v->pinned)
                return true;
        }
    return !op->output_count;
}

/* Removes one use; if none is left, the op that produces the value is visited. */
static onx_status release(onxi_simplify *s, uint32_t value, uint32_t *top)
{
    value = onxi_simplify_value(s, value);
    onxi_svalue *v = &s->values[value];
    if (v->uses)
        v->uses--;
    if (v->uses || !v->maker || s->ops[v->maker - 1].dead)
        return ONX_OK;
    if (!ONXI_GROW_IN(s->scratch, s->stack, s->stack_room, (uint64_t)*top + 1))
        return ONX_E_MEMORY;
    s->stack[(*top)++] = v->maker - 1;
    return ONX_OK;
}

/* Removes everything in the scope; the recursion is bounded by the depth of subgraphs. */
static onx_status bury(onxi_simplify *s, uint32_t scope, uint32_t *top)
{
    s->scopes[scope].gone = true;
    for (uint32_t op = s->scopes[scope].first; op != ONXI_S_NONE; op = s->ops[op].next) {
        if (s->ops[op].dead)
            continue;
        s->ops[op].dead = true;
        for (uint32_t i = 0; i < s->ops[op].input_count; i++)
            if (s->ops[op].inputs[i] != ONXI_S_NONE)
                ONX_TRY(release(s, s->ops[op].inputs[i], top));
        for (uint32_t inner = s->ops[op].first_scope; inner != ONXI_S_NONE; inner = s->scopes[inner].sibling)
            ONX_TRY(bury(s, inner, top));
    }
    for (uint32_t i = 0; i < s->scopes[scope].output_count; i++)
        if (s->scopes[scope].outputs[i] != ONXI_S_NONE)
            ONX_TRY(release(s, s->scopes[scope].outputs[i], top));
    return ONX_OK;
}

onx_status onxi_simplify_drop(onxi_simplify *s, uint32_t op)
{
    uint32_t top = 0;
    for (;;) {
        if (!s->ops[op].dead && !is_needed(s, &s->ops[op])) {
            s->ops[op].dead = true;
            s->changed = true;
            for (uint32_t i = 0; i < s->ops[op].input_count; i++)
                if (s->ops[op].inputs[i] != ONXI_S_NONE)
                    ONX_TRY(release(s, s->ops[op].inputs[i], &top));
            for (uint32_t scope = s->ops[op].first_scope; scope != ONXI_S_NONE; scope = s->scopes[scope].sibling)
                if (!s->scopes[scope].gone)
                    ONX_TRY(bury(s, scope, &top));
        }
        if (!top)
            return ONX_OK;
        op = s->stack[--top];
    }
}

onx_status onxi_simplify_set_input(onxi_simplify *s, uint32_t op, uint32_t i, uint32_t value)
{
    const uint32_t before = s->ops[op].inputs[i];
    uint32_t top = 0;
    if (value != ONXI_S_NONE)
        s->values[value].uses++;
    s->ops[op].inputs[i] = value;
    s->ops[op].rewritten = s->changed = true;
    if (before == ONXI_S_NONE)
        return ONX_OK;
    ONX_TRY(release(s, before, &top));
    return top ? onxi_simplify_drop(s, s->stack[0]) : ONX_OK;
}

onx_status onxi_simplify_set_inputs(onxi_simplify *s, uint32_t op, const uint32_t *inputs, uint32_t count)
{
    uint32_t *list = ONXI_ARRAY(s->scratch, uint32_t, count + 1u), top = 0;
    const uint32_t *before = s->ops[op].inputs, had = s->ops[op].input_count;
    if (!list)
        return ONX_E_MEMORY;
    while (count && inputs[count - 1] == ONXI_S_NONE)
        count--;
    for (uint32_t i = 0; i < count; i++)
        if ((list[i] = inputs[i]) != ONXI_S_NONE)
            s->values[list[i]].uses++;
    s->ops[op].inputs = list;
    s->ops[op].input_count = count;
    s->ops[op].rewritten = s->changed = true;
    for (uint32_t i = 0; i < had; i++)
        if (before[i] != ONXI_S_NONE) {
            ONX_TRY(release(s, before[i], &top));
            if (top)
                ONX_TRY(onxi_simplify_drop(s, s->stack[--top]));
        }
    return ONX_OK;
}

onx_status onxi_simplify_become(onxi_simplify *s, uint32_t op, const char *op_type, onx_attribute **attributes,
                                uint32_t count)
{
    onx_node *node = s->ops[op].node, named = *node;
    onx_attribute **list = (onx_attribute **)onxi_arena_array(s->arena, (size_t)onxi_list_room(count), sizeof *list);
    if (!list || onx_arena_keep(s->arena, onx_str_of(op_type), &named.op_type) != ONX_OK)
        return ONX_E_MEMORY;
    named.domain = (onx_bytes){ 0 };
    onxi_bound *bound = onxi_bind(&s->binder, &named);
    if (!bound)
        return ONX_E_MEMORY;
    if (count)
        memcpy(list, attributes, count * sizeof *list);
    ONX_SET(node, node, op_type, named.op_type);
    node->domain = (onx_bytes){ 0 };
    ONX_CLEAR(node, node, domain);
    node->attribute = list;
    node->attribute_count = count;
    s->ops[op].bound = bound;
    s->ops[op].bound_attrs = false;
    s->ops[op].opaque = bound->kind != ONXI_BOUND_OPERATOR || !bound->schema;
    s->ops[op].rewritten = s->changed = true;
    return ONX_OK;
}

uint32_t onxi_simplify_add(onxi_simplify *s, uint32_t at, const char *op_type, uint32_t input, uint32_t output)
{
    onx_node *node = onx_message_new(s->arena, ONX_KIND_NODE);
    uint32_t *operands = ONXI_ARRAY(s->scratch, uint32_t, 2);
    if (!node || !operands || onx_arena_keep(s->arena, onx_str_of(op_type), &node->op_type) != ONX_OK ||
        onx_list_add_text(s->arena, &node->input, &node->input_count, onx_view(s->values[input].name)) != ONX_OK ||
        onx_list_add_text(s->arena, &node->output, &node->output_count, onx_view(s->values[output].name)) != ONX_OK ||
        !ONXI_GROW_IN(s->scratch, s->ops, s->op_room, (uint64_t)s->op_count + 1))
        return ONXI_S_NONE;
    node->has |= onx_node_has_op_type;
    const uint32_t op = s->op_count++, scope = s->ops[at].scope;
    operands[0] = input;
    operands[1] = output;
    s->ops[op] = (onxi_sop){ .node = node,
                             .bound = onxi_bind(&s->binder, node),
                             .inputs = operands,
                             .outputs = operands + 1,
                             .input_count = 1,
                             .output_count = 1,
                             .scope = scope,
                             .next = at,
                             .first_scope = ONXI_S_NONE,
                             .index = s->ops[at].index };
    if (!s->ops[op].bound)
        return ONXI_S_NONE;
    s->values[input].uses++;
    s->values[output].maker = op + 1;
    if (s->previous == ONXI_S_NONE)
        s->scopes[scope].first = op;
    else
        s->ops[s->previous].next = op;
    s->previous = op;
    return op;
}

/* ---- constants ---- */

uint32_t onxi_simplify_constant(onxi_simplify *s, uint32_t scope, onx_str base, const char *part, onx_tensor *tensor)
{
    onx_bytes name;
    if (!tensor || onxi_names_make(s->names, base, onx_str_of(part), &name) != ONX_OK ||
        !ONXI_GROW_IN(s->scratch, s->values, s->value_room, (uint64_t)s->value_count + 1))
        return ONXI_S_NONE;
    s->values[s->value_count] = (onxi_svalue){
        .name = name, .scope = scope, .alias = ONXI_S_NONE, .tensor = tensor, .made = true, .defined = true
    };
    return s->value_count++;
}

uint32_t onxi_simplify_ints(onxi_simplify *s, uint32_t scope, onx_str base, const char *part, const int64_t *list,
                            uint32_t rank, uint32_t count)
{
    const int64_t dim = count;
    return onxi_simplify_constant(s, scope, base, part, onx_tensor_new(s->arena, ONX_INT64, &dim, rank, list, NULL));
}

onx_status onxi_simplify_settle(onxi_simplify *s, uint32_t op, uint32_t value, const onx_tensor *tensor)
{
    onxi_svalue *v = &s->values[value];
    v->tensor = tensor;
    v->made = true;
    v->maker = 0;
    s->changed = true;
    for (uint32_t i = 0; i < s->ops[op].output_count; i++)
        if (s->ops[op].outputs[i] == value) {
            /* if the op stays, its output needs an unused name, because not every output may be omitted */
            const uint32_t unused = onxi_simplify_constant(s, s->ops[op].scope, onx_view(s->values[value].name),
                                                           "unused", (onx_tensor *)(uintptr_t)tensor);
            if (unused == ONXI_S_NONE)
                return ONX_E_MEMORY;
            s->values[unused].tensor = NULL;
            s->values[unused].made = false;
            s->values[unused].maker = op + 1;
            s->ops[op].outputs[i] = unused;
        }
    return onxi_simplify_drop(s, op);
}

/* ---- reporting ---- */

void onxi_simplify_note(onxi_simplify *s, onxi_simplify_pass pass, const char *rule, uint32_t op, const char *format,
                        ...)
{
    const onxi_sop *o = &s->ops[op];
    char text[256];
    va_list args;
    if (!s->options->changed)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const onx_change change = { .pass = onxi_simplify_names[pass],
                                .rule = onx_str_of(rule),
                                .path = onxi_path_node(s->scratch, s->scopes[o->scope].prefix, o->index, o->node),
                                .text = onx_str_of(text) };
    s->options->changed(s->options->user, &change);
}
