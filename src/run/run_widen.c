/* run_widen.c - runs nodes with 16-bit floats (float16, bfloat16) in float. Few kernels have loops for 16-bit floats;
 * the float loops are vectorized everywhere, support every rewrite rule, layout and post-op, and round less often. So a
 * node whose operator also accepts float gets float operands, and its results stay in float as long as such nodes read
 * them. Casts are added where values enter and leave these parts of a graph. A node with a fast kernel for its 16-bit
 * type, or one that only moves elements, follows its neighbours: it is widened where that saves more Casts than it
 * adds. */
#include "run/run.h"

#include "transform/transform.h"

enum { LARGE = 1 << 20 }; /* bytes from which a constant that would have to be widened counts like an added Cast */

typedef enum choice {
    KEEPS,  /* the op keeps the types of the model */
    MAY,    /* the op can use either type */
    WIDENS, /* the op has no fast kernel for its 16-bit type */
} choice;

typedef struct widener {
    onxi_run_graph *g;
    uint8_t *dtype;    /* per slot: element type; ONX_UNDEFINED if it is unknown or the value is not a tensor */
    uint8_t *choices;  /* per op */
    bool *widens;      /* per op */
    bool *made_wide;   /* per slot: an op that widens makes the value */
    uint32_t *readers; /* per slot: readers that need the model's type: ops that do not widen, outputs of the graph */
    uint32_t *wide;    /* per slot: the slot of the same value in float; ONXI_NO_SLOT: none so far */
    bool *there;       /* per slot: false if the value exists only in float so far */
    uint32_t *counted; /* per slot: `stamp` of the last op that counted it among its operands */
    uint32_t stamp;
    onxi_run_op *ops; /* the new list of ops */
    uint32_t op_count, op_room;
} widener;

static bool is_half(uint8_t dtype)
{
    return dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16;
}

#define HALVES (ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))

/* ---- types ---- */

static uint8_t type_of(const widener *w, uint32_t slot)
{
    return slot == ONXI_NO_SLOT ? ONX_UNDEFINED : w->dtype[slot];
}

/* The constraint of a port, if all operands under it have one type. */
static const onxi_type_constraint *constraint_of(const onxi_schema *schema, const onxi_port *port)
{
    return port && !(port->flags & ONXI_PORT_HETEROGENEOUS) ? onxi_schema_type(schema, port->type) : NULL;
}

/* The types that the inputs of an op give the constraints of its schema; in time linear in the number of inputs. */
enum { CONSTRAINTS_MAX = 16 };
typedef struct bindings {
    const onxi_type_constraint *constraints[CONSTRAINTS_MAX];
    uint8_t types[CONSTRAINTS_MAX];
    bool open[CONSTRAINTS_MAX]; /* the type of an input under the constraint is not known */
    uint32_t count;
    bool clash; /* inputs under one constraint differ, or there are too many constraints */
} bindings;

static void bind_type(bindings *b, const onxi_type_constraint *c, uint8_t dtype)
{
    uint32_t i = 0;
    while (i < b->count && b->constraints[i] != c)
        i++;
    if (i == CONSTRAINTS_MAX) {
        b->clash = true;
        return;
    }
    if (i == b->count)
        b->constraints[b->count++] = c;
    b->open[i] |= !dtype;
    b->clash |= dtype && b->types[i] && b->types[i] != dtype;
    b->types[i] = b->types[i] ? b->types[i] : dtype;
}

static bindings bind_inputs(const widener *w, const onxi_run_op *op)
{
    bindings b = { .count = 0 };
    for (uint32_t i = 0; op->schema && i < op->input_count; i++) {
        const uint8_t dtype = type_of(w, op->inputs[i]);
        const onxi_type_constraint *c =
            op->inputs[i] == ONXI_NO_SLOT ? NULL : constraint_of(op->schema, onxi_port_at(op->schema->inputs, i));
        if (c)
            bind_type(&b, c, dtype);
    }
    return b;
}

static uint8_t bound_type(const bindings *b, const onxi_type_constraint *c)
{
    for (uint32_t i = 0; c && i < b->count; i++)
        if (b->constraints[i] == c)
            return b->types[i];
    return ONX_UNDEFINED;
}

/* The 16-bit type that the inputs give a constraint: the operands and results under it become float together. Whatever
 * this pass does to an op goes by this, so an op with an operand of unknown type under the constraint is left alone. */
static uint8_t half_of(const bindings *b, const onxi_type_constraint *c)
{
    for (uint32_t i = 0; c && !b->clash && i < b->count; i++)
        if (b->constraints[i] == c)
            return is_half(b->types[i]) && !b->open[i] ? b->types[i] : ONX_UNDEFINED;
    return ONX_UNDEFINED;
}

/* The number of a type that a model may have written, if there is such a type. */
static uint8_t type_from(int64_t number)
{
    return number > 0 && number < ONX_DTYPE_COUNT ? (uint8_t)number : ONX_UNDEFINED;
}

/* May a value under this constraint be a 16-bit float, or something other than a dense tensor? If no input binds the
 * constraint, only the type rule of the operator knows the type of an output. */
static bool is_open(const onxi_type_set *set)
{
    return set->tensor & HALVES || set->sparse_tensor || set->seq || set->optional || set->optional_seq || set->other;
}

static uint8_t only_type(uint32_t types)
{
    for (uint8_t i = 1; i < 32; i++)
        if (types == UINT32_C(1) << i)
            return i;
    return ONX_UNDEFINED;
}

/* The type of an output, if the type constraints or the attribute of Cast determine it. */
static uint8_t output_type(const onxi_run_op *op, const bindings *b, uint32_t output)
{
    const onxi_port *port = op->schema && !op->graph_count ? onxi_port_at(op->schema->outputs, output) : NULL;
    if (!port || port->flags & ONXI_PORT_HETEROGENEOUS)
        return ONX_UNDEFINED;
    const onxi_type_constraint *c = constraint_of(op->schema, port);
    onxi_type_set named = { 0 };
    if (!c)
        return onxi_type_set_add(&named, onx_str_of(port->type)) ? only_type(named.tensor) : ONX_UNDEFINED;
    const uint8_t bound = bound_type(b, c);
    if (bound || b->clash)
        return b->clash ? ONX_UNDEFINED : bound;
    if (op->id == ONXI_ID_Cast)
        return type_from(onxi_attrs_int(&op->attrs, "to"));
    return is_open(&c->set) ? ONX_UNDEFINED : only_type(c->set.tensor);
}

static bool note_type(widener *w, uint32_t slot, uint8_t dtype)
{
    if (slot == ONXI_NO_SLOT || w->dtype[slot] || !dtype)
        return false;
    w->dtype[slot] = dtype;
    return true;
}

/* Records the types of the op's inputs and outputs, as far as they are not known: all operands under one constraint
 * have one type. True if something was new. */
static bool note_types(widener *w, const onxi_run_op *op)
{
    bool changed = false;
    const bindings b = bind_inputs(w, op);
    for (uint32_t i = 0; op->schema && !b.clash && i < op->input_count; i++) {
        if (op->inputs[i] == ONXI_NO_SLOT || w->dtype[op->inputs[i]])
            continue;
        const onxi_type_constraint *c = constraint_of(op->schema, onxi_port_at(op->schema->inputs, i));
        if (c && !c->set.seq && !c->set.optional)
            changed |= note_type(w, op->inputs[i], bound_type(&b, c));
    }
    for (uint32_t i = 0; i < op->output_count; i++)
        changed |= note_type(w, op->outputs[i], output_type(op, &b, i));
    return changed;
}

/* A type that is found out late is handed to the ops before and after; what stays unknown after some rounds is left
 * alone. */
static void note_all_types(widener *w)
{
    enum { ROUNDS = 4 };
    bool changed = true;
    for (uint32_t round = 0; changed && round < ROUNDS; round++) {
        changed = false;
        for (uint32_t i = 0; i < w->g->op_count; i++)
            changed |= note_types(w, &w->g->ops[i]);
    }
}

/* Inputs of the graph have the types that the model declares; a run checks them. Formal inputs of a subgraph stay
 * unknown: the node that contains the subgraph determines their types, whatever the subgraph declares. */
static void note_inputs(widener *w, const uint8_t *captured)
{
    const onxi_run_graph *g = w->g;
    for (uint32_t i = 0; i < g->slot_count; i++)
        if (g->slots[i].constant && g->slots[i].constant->kind == ONX_VALUE_TENSOR)
            w->dtype[i] = g->slots[i].constant->dtype;
    for (uint32_t i = 0; !captured && i < g->input_count; i++) {
        const onx_type *type = g->graph->input[i]->type;
        if (type && type->tensor_type && !w->dtype[g->inputs[i]])
            w->dtype[g->inputs[i]] = type_from(type->tensor_type->elem_type);
    }
    for (uint32_t i = 0; captured && i < g->capture_count; i++)
        w->dtype[g->inputs[g->input_count + i]] = captured[i];
}

/* ---- which ops may widen ---- */

/* Has the caller supplied the operator or one of its kernels? These get the types of the model. */
static bool is_customs(const widener *w, const onxi_run_op *op)
{
    for (const onx_kernel *own = w->g->session->options.kernels; own && own->op; own++)
        for (uint32_t k = 0; k < op->kernel_count; k++)
            if (op->kernels[k] == own)
                return true;
    return !op->schema || op->schema->own || !op->id;
}

/* Do all operand types allow the op to run in float, with the same results except for rounding? */
static bool types_widen(const widener *w, const onxi_run_op *op)
{
    const onxi_schema *schema = op->schema;
    const bindings b = bind_inputs(w, op);
    bool any = false;
    for (uint32_t i = 0; !b.clash && i < op->input_count; i++) {
        const uint8_t dtype = type_of(w, op->inputs[i]);
        if (!is_half(dtype))
            continue;
        const onxi_type_constraint *c = constraint_of(schema, onxi_port_at(schema->inputs, i));
        if (!half_of(&b, c) || !(c->set.tensor & ONXI_F32) || !(c->set.tensor & ONX_DTYPE_BIT(dtype)))
            return false; /* the last test: an operator that does not accept the type still refuses it */
        any = true;
    }
    for (uint32_t i = 0; any && i < op->output_count; i++) {
        const onxi_type_constraint *c = constraint_of(schema, onxi_port_at(schema->outputs, i));
        if (c && !bound_type(&b, c) && is_open(&c->set) && op->id != ONXI_ID_Cast)
            return false;
        if (half_of(&b, c) && op->outputs[i] != ONXI_NO_SLOT && w->dtype[op->outputs[i]] != half_of(&b, c))
            return false;
    }
    return any;
}

/* Does the op have a kernel for its 16-bit type that is not the plain one, or does the plain one move elements of any
 * type, also where it is chosen by a condition? A preferred row that moves elements serves only some nodes. */
static bool runs_narrow(const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->kernel_count; i++) {
        const onx_kernel *k = op->kernels[i];
        if (k->preference > 0 ? k->dtypes & HALVES : !k->dtypes || k->dtypes == ONX_DTYPE_BIT(ONX_BOOL))
            return true;
    }
    return false;
}

static choice choose(const widener *w, const onxi_run_op *op)
{
    if (!op->needed || op->graph_count || is_customs(w, op) || !types_widen(w, op))
        return KEEPS;
    return op->guard_end || runs_narrow(op) ? MAY : WIDENS;
}

/* A Cast to the 16-bit type that its input has changes nothing: its result is what the input is in float, unrounded. */
static bool changes_nothing(const widener *w, const onxi_run_op *op)
{
    return op->id == ONXI_ID_Cast && op->needed && !op->guard_end && !is_customs(w, op) &&
           is_half(type_of(w, op->inputs[0])) && op->outputs[0] != ONXI_NO_SLOT &&
           type_of(w, op->inputs[0]) == type_of(w, op->outputs[0]);
}

/* ---- which ops do widen ---- */

/* Is output `i` under a constraint that 16-bit float inputs bind, so that it becomes float with them? */
static bool output_widens(const onxi_run_op *op, const bindings *b, uint32_t i)
{
    return op->outputs[i] != ONXI_NO_SLOT &&
           half_of(b, constraint_of(op->schema, onxi_port_at(op->schema->outputs, i)));
}

/* The 16-bit float operands of an op: how many are available in float (wide), how many would need a Cast (narrow), and
 * how many are large constants. */
typedef struct operands {
    uint32_t wide, narrow, large;
} operands;

static operands count_operands(widener *w, const onxi_run_op *op)
{
    operands n = { 0 };
    w->stamp++;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t slot = op->inputs[i];
        if (slot == ONXI_NO_SLOT || !is_half(w->dtype[slot]) || w->counted[slot] == w->stamp)
            continue;
        w->counted[slot] = w->stamp;
        const onx_value *constant = w->g->slots[slot].constant;
        if (constant)
            n.large += constant->size >= LARGE;
        else if (w->made_wide[slot])
            n.wide++;
        else
            n.narrow++;
    }
    return n;
}

static void set_widens(widener *w, uint32_t index)
{
    const onxi_run_op *op = &w->g->ops[index];
    const bindings b = bind_inputs(w, op);
    w->widens[index] = true;
    for (uint32_t i = 0; i < op->output_count; i++)
        if (output_widens(op, &b, i))
            w->made_wide[op->outputs[i]] = true;
}

static uint32_t count_results(const widener *w, const onxi_run_op *op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->output_count; i++)
        n += op->outputs[i] != ONXI_NO_SLOT && is_half(w->dtype[op->outputs[i]]) && w->readers[op->outputs[i]];
    return n;
}

/* First pass, from the first op to the last: an op that can use either type widens if enough of its operands are
 * already in float. */
static void go_forward(widener *w)
{
    const onxi_run_graph *g = w->g;
    for (uint32_t i = 0; i < g->output_count; i++)
        w->readers[g->outputs[i]]++;
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        if (changes_nothing(w, op) && w->made_wide[op->inputs[0]]) {
            w->widens[i] = w->made_wide[op->outputs[0]] = true;
            continue;
        }
        w->choices[i] = (uint8_t)choose(w, op);
        if (w->choices[i] == KEEPS)
            continue;
        const operands n = count_operands(w, op);
        const uint32_t added = n.narrow + n.large + count_results(w, op);
        if (w->choices[i] == WIDENS || (n.wide && (op->guard_end ? !n.narrow : added <= n.wide)))
            set_widens(w, i);
    }
}

/* May an op that is not widened so far be widened because all its readers are? */
static bool is_only_for_wide(widener *w, const onxi_run_op *op)
{
    const bindings b = bind_inputs(w, op);
    const operands n = count_operands(w, op);
    bool results = false;
    if (n.large || n.narrow > 1)
        return false;
    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint32_t slot = op->outputs[i];
        if (slot == ONXI_NO_SLOT || !is_half(w->dtype[slot]))
            continue;
        if (!output_widens(op, &b, i) || w->readers[slot])
            return false;
        results = true;
    }
    return results;
}

/* Second pass, from the last op to the first: an op whose readers are all widened is widened as well. A Cast then comes
 * before an op that only moves elements, not after it, and rewrite rules see that op next to its neighbours. */
static void go_backward(widener *w)
{
    for (uint32_t i = w->g->op_count; i-- > 0;) {
        const onxi_run_op *op = &w->g->ops[i];
        if (!op->needed || op->guard_end)
            continue;
        if (!w->widens[i] && w->choices[i] == MAY && is_only_for_wide(w, op))
            set_widens(w, i);
        for (uint32_t k = 0; !w->widens[i] && k < op->input_count + op->capture_count; k++)
            if (op->inputs[k] != ONXI_NO_SLOT)
                w->readers[op->inputs[k]]++;
    }
}

/* ---- the new list of ops ---- */

static onx_status add_op(widener *w, const onxi_run_op *op)
{
    if (!ONXI_GROW_IN(w->g->session->arena, w->ops, w->op_room, (uint64_t)w->op_count + 1))
        return ONX_E_MEMORY;
    w->ops[w->op_count++] = *op;
    return ONX_OK;
}

/* Adds a Cast from slot `from` to slot `to`, with the position of `by`, the op that needs it. NULL: the Cast makes an
 * output of the graph. */
static onx_status add_cast(widener *w, const onxi_run_op *by, uint32_t from, uint32_t to, uint8_t dtype)
{
    const onxi_run_added what = { "Cast", w->g->slots[from].name, "to", dtype };
    onxi_run_op op;
    ONX_TRY(onxi_run_op_added(w->g->session, by, &what, &from, 1, &op));
    op.outputs[0] = to;
    return add_op(w, &op);
}

/* Gives the slot of the same value in float, which it adds if there is none. */
static onx_status widen(widener *w, const onxi_run_op *by, uint32_t slot, uint32_t *out)
{
    onxi_run_graph *g = w->g;
    if (w->wide[slot] == ONXI_NO_SLOT) {
        ONX_TRY(onxi_run_graph_add_slot(g, g->slots[slot].name, &w->wide[slot]));
        if (g->slots[slot].constant)
            ONX_TRY(onxi_run_constant_widen(g, slot, w->wide[slot]));
        else
            ONX_TRY(add_cast(w, by, slot, w->wide[slot], ONX_FLOAT));
    }
    *out = w->wide[slot];
    return ONX_OK;
}

/* Adds a Cast to the model's type if the value exists in float only. */
static onx_status narrow(widener *w, const onxi_run_op *by, uint32_t slot)
{
    if (slot == ONXI_NO_SLOT || w->there[slot])
        return ONX_OK;
    w->there[slot] = true;
    return add_cast(w, by, w->wide[slot], slot, w->dtype[slot]);
}

static onx_status take_op(widener *w, uint32_t index)
{
    onxi_run_op op = w->g->ops[index];
    if (!w->widens[index]) {
        for (uint32_t i = 0; op.needed && i < op.input_count + op.capture_count; i++)
            ONX_TRY(narrow(w, &op, op.inputs[i]));
        return add_op(w, &op);
    }
    if (changes_nothing(w, &op)) {
        w->wide[op.outputs[0]] = w->wide[op.inputs[0]];
        w->there[op.outputs[0]] = false;
        return ONX_OK;
    }
    const bindings b = bind_inputs(w, &op);
    for (uint32_t i = 0; i < op.output_count; i++) {
        if (!output_widens(&op, &b, i))
            continue;
        const uint32_t slot = op.outputs[i];
        ONX_TRY(onxi_run_graph_add_slot(w->g, w->g->slots[slot].name, &w->wide[slot]));
        w->there[slot] = false;
        op.outputs[i] = w->wide[slot];
    }
    for (uint32_t i = 0; i < op.input_count; i++)
        if (op.inputs[i] != ONXI_NO_SLOT && is_half(w->dtype[op.inputs[i]]))
            ONX_TRY(widen(w, &op, op.inputs[i], &op.inputs[i]));
    return add_op(w, &op);
}

/* ---- the pass ---- */

/* Does the graph contain 16-bit floats? Most graphs do not, and then no types are propagated. */
static bool has_halves(const onxi_run_graph *g, const uint8_t *captured)
{
    for (uint32_t i = 0; captured && i < g->capture_count; i++)
        if (is_half(captured[i]))
            return true;
    for (uint32_t i = 0; !captured && i < g->input_count; i++) {
        const onx_type *type = g->graph->input[i]->type;
        if (type && type->tensor_type && is_half(type_from(type->tensor_type->elem_type)))
            return true;
    }
    for (uint32_t i = 0; i < g->slot_count; i++)
        if (g->slots[i].constant && is_half(g->slots[i].constant->dtype))
            return true;
    for (uint32_t i = 0; i < g->op_count; i++)
        if (g->ops[i].id == ONXI_ID_Cast && is_half(type_from(onxi_attrs_int(&g->ops[i].attrs, "to"))))
            return true;
    return false;
}

static onx_status start(widener *w, onx_arena *arena)
{
    const uint32_t slots = w->g->slot_count + 1, ops = w->g->op_count + 1;
    if (!(w->dtype = ONXI_ARRAY(arena, uint8_t, slots)) || !(w->choices = ONXI_ARRAY(arena, uint8_t, ops)) ||
        !(w->widens = ONXI_ARRAY(arena, bool, ops)) || !(w->made_wide = ONXI_ARRAY(arena, bool, slots)) ||
        !(w->readers = ONXI_ARRAY(arena, uint32_t, slots)) || !(w->wide = ONXI_ARRAY(arena, uint32_t, slots)) ||
        !(w->there = ONXI_ARRAY(arena, bool, slots)) || !(w->counted = ONXI_ARRAY(arena, uint32_t, slots)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < slots; i++) {
        w->wide[i] = ONXI_NO_SLOT;
        w->there[i] = true;
    }
    return ONX_OK;
}

static onx_status replace_ops(widener *w)
{
    onxi_run_graph *g = w->g;
    for (uint32_t i = 0; i < g->op_count; i++)
        ONX_TRY(take_op(w, i));
    for (uint32_t i = 0; i < g->output_count; i++)
        ONX_TRY(narrow(w, NULL, g->outputs[i]));
    g->ops = w->ops;
    g->op_count = w->op_count;
    g->op_room = w->op_room;
    return onxi_run_graph_count_uses(g);
}

/* Widens the subgraphs; the types of their captured values are known here. */
static onx_status go_inside(const widener *w, onx_arena *arena)
{
    onx_status status = ONX_OK;
    for (uint32_t i = 0; status == ONX_OK && i < w->g->op_count; i++) {
        const onxi_run_op *op = &w->g->ops[i];
        for (uint32_t k = 0; status == ONX_OK && k < op->graph_count; k++) {
            onxi_run_graph *inner = op->graphs[k];
            uint8_t *captured = ONXI_ARRAY(arena, uint8_t, inner->capture_count + 1u);
            for (uint32_t c = 0; captured && c < inner->capture_count; c++)
                captured[c] = type_of(w, op->inputs[op->input_count + inner->captures[c]]);
            status = captured ? onxi_run_graph_widen(inner, captured) : ONX_E_MEMORY;
        }
    }
    return status;
}

static onx_status widen_graph(onxi_run_graph *g, const uint8_t *captured, onx_arena *arena)
{
    widener w = { .g = g };
    ONX_TRY(start(&w, arena));
    const bool halves = has_halves(g, captured);
    if (halves)
        note_inputs(&w, captured);
    if (halves)
        note_all_types(&w);
    ONX_TRY(go_inside(&w, arena));
    if (!halves)
        return ONX_OK;
    go_forward(&w);
    go_backward(&w);
    for (uint32_t i = 0; i < g->op_count; i++)
        if (w.widens[i])
            return replace_ops(&w);
    return ONX_OK;
}

onx_status onxi_run_graph_widen(onxi_run_graph *g, const uint8_t *captured)
{
    bool inside = false;
    for (uint32_t i = 0; !inside && i < g->op_count; i++)
        inside = g->ops[i].graph_count;
    if (!inside && !has_halves(g, captured))
        return ONX_OK;
    onx_arena *arena;
    ONX_TRY(onx_arena_new(g->session->cx, &arena));
    const onx_status status = widen_graph(g, captured, arena);
    onx_arena_free(arena);
    return status;
}
