/* gen_draw_flow.c - blocks with subgraphs, calls of functions, and lists. */
#include "gen/gen_draw.h"

#include <stdio.h>
#include <string.h>

enum { MOST_OUT = 3 };

/* ---- bodies ---- */

typedef struct body {
    draw_text outer;
    uint32_t first; /* value of the body */
    uint32_t outer_nodes;
} body;

/* From here on, nodes belong to a subgraph, which sees all values so far. */
static void open_body(draw *d, body *b)
{
    *b = (body){ .outer = d->nodes, .first = d->value_count, .outer_nodes = d->node_count };
    d->nodes = (draw_text){ 0 };
    d->depth++;
}

/* The nodes of the subgraph, to be freed. Its values are gone, but for inputs and initializers of the model. */
static draw_text close_body(draw *d, const body *b)
{
    draw_text nodes = d->nodes;
    uint32_t kept = b->first;
    for (uint32_t i = b->first; i < d->value_count; i++)
        if (d->values[i].global)
            d->values[kept++] = d->values[i];
    d->value_count = kept;
    d->node_count = b->outer_nodes + 1;
    d->nodes = b->outer;
    d->depth--;
    return nodes;
}

static const char *nodes_of(const draw_text *nodes)
{
    return nodes->ptr ? nodes->ptr : "";
}

/* Values of these types that the body made, at most `most` of them, each once. */
static uint32_t some_made(draw *d, const body *b, uint32_t types, uint32_t most, draw_value *out)
{
    uint32_t count = 0, made = 0;
    for (uint32_t i = b->first; i < d->value_count; i++)
        made += d->values[i].made && types >> d->values[i].dtype & 1;
    for (uint32_t i = b->first; i < d->value_count && count < most; i++)
        if (d->values[i].made && types >> d->values[i].dtype & 1 && gen_below(&d->random, made--) < most - count)
            out[count++] = d->values[i];
    return count;
}

static bool made_here(const draw_value *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return true;
    return false;
}

static void declare(draw *d, draw_text *text, const draw_value *v)
{
    draw_add(text, "%s", onx_dtype_name(v->dtype));
    if (d->vary)
        draw_add(text, "[]");
    for (uint32_t i = 0; i < v->rank && !d->vary; i++)
        draw_add(text, "%s%lld%s", i ? ", " : "[", (long long)v->dims[i], i + 1 == v->rank ? "]" : "");
    draw_add(text, " %s", v->name);
}

static void declare_all(draw *d, draw_text *text, const draw_value *list, uint32_t count, bool more)
{
    for (uint32_t i = 0; i < count; i++) {
        draw_add(text, "%s", i || more ? ", " : "");
        declare(d, text, &list[i]);
    }
}

/* A node whose attributes and inputs are too long for draw_node. */
static bool add_long(draw *d, draw_value *out, uint32_t count, draw_text *rest)
{
    const size_t at = d->nodes.len;
    const bool added = !rest->failed && rest->ptr && draw_node(d, out, count, "@");
    if (added) {
        d->nodes.len -= 2; /* the mark and the end of the line */
        draw_add(&d->nodes, "%s\n", rest->ptr);
    } else {
        d->nodes.len = at;
    }
    draw_text_free(rest);
    return added;
}

static bool condition(draw *d, draw_value *c)
{
    if (draw_chance(d, 40) && draw_pick(d, (draw_wish){ .types = DRAW_BIT(BOOL), .most = 1, .full = true }, c) &&
        draw_product(c->dims, c->rank) == 1)
        return true;
    *c = draw_of(ONX_BOOL, 0, NULL);
    if (draw_chance(d, 50))
        return draw_new_input(d, c, 0, 1);
    draw_constant(d, c, DRAW_SMALL);
    return true;
}

/* ---- If ---- */

/* A value like `v` of other nodes. */
static void other_value(draw *d, const draw_value *v, draw_value *out)
{
    draw_value from = { .rank = 0 };
    const uint32_t types = draw_takes(d, "Neg", 0);
    const char *op = types >> v->dtype & 1 ? DRAW_ONE(d, const char *, "Identity", "Neg", "Abs") : "Identity";
    for (int tries = 0; tries < 6; tries++)
        if (draw_pick(d, (draw_wish){ .types = 1u << v->dtype, .least = v->rank, .most = v->rank }, &from) &&
            from.rank == v->rank && memcmp(from.dims, v->dims, sizeof v->dims) == 0)
            break;
        else
            from.name[0] = 0;
    *out = draw_like(v);
    if (!from.name[0]) {
        from = draw_like(v);
        draw_constant(d, &from, DRAW_SMALL);
    }
    (void)draw_node(d, out, 1, "%s (%s)", op, from.name);
}

static bool branch(draw *d)
{
    draw_value c, yes[MOST_OUT], no[MOST_OUT], out[MOST_OUT];
    draw_text rest = { 0 };
    body b;
    if (!condition(d, &c))
        return false;
    open_body(d, &b);
    draw_blocks(d, DRAW_ONE(d, uint32_t, 1, 2, 3, 5));
    const uint32_t count = some_made(d, &b, draw_gives(d, "If", 0), 1 + gen_below(&d->random, 2), yes);
    draw_text nodes = close_body(d, &b);
    draw_value name;
    draw_name(d, &name);
    draw_add(&rest, "If <then_branch = %s () => (", name.name);
    declare_all(d, &rest, yes, count, false);
    draw_add(&rest, ") {\n%s  }, else_branch = %s_ () => (", nodes_of(&nodes), name.name);
    draw_text_free(&nodes);
    open_body(d, &b);
    if (draw_chance(d, 40))
        draw_blocks(d, 2);
    for (uint32_t i = 0; i < count; i++)
        other_value(d, &yes[i], &no[i]);
    nodes = close_body(d, &b);
    declare_all(d, &rest, no, count, false);
    draw_add(&rest, ") {\n%s  }> (%s)", nodes_of(&nodes), c.name);
    draw_text_free(&nodes);
    for (uint32_t i = 0; i < count; i++)
        out[i] = draw_like(&yes[i]);
    if (!count)
        draw_text_free(&rest);
    return count && add_long(d, out, count, &rest);
}

/* ---- Loop and Scan ---- */

/* The next state: made of the present one and of something else, and bounded. */
static bool next_state(draw *d, const draw_value *state, draw_value *out)
{
    draw_value w, sum = draw_like(state);
    *out = draw_like(state);
    if (!(draw_takes(d, "Add", 0) >> state->dtype & 1))
        return draw_node(d, out, 1, "Identity (%s)", state->name);
    if (!draw_smaller(d, state, &w) ||
        !draw_node(d, &sum, 1, "%s (%s, %s)", DRAW_ONE(d, const char *, "Add", "Sub", "Mul"), state->name, w.name))
        return false;
    *out = sum;
    if (!(DRAW_FLOATS >> state->dtype & 1) || !(draw_takes(d, "Tanh", 0) >> state->dtype & 1))
        return true;
    *out = draw_like(state);
    return draw_node(d, out, 1, "Tanh (%s)", sum.name);
}

static void add_value(draw *d, draw_value *v)
{
    draw_name(d, v);
    v->made = v->global = false;
    if (d->value_count < DRAW_VALUES)
        d->values[d->value_count++] = *v;
}

/* Two states may change places in each iteration. */
static bool states_of(draw *d, const draw_value *in, uint32_t count, draw_value *next)
{
    const bool turned = count == 2 && in[0].dtype == in[1].dtype && in[0].rank == in[1].rank &&
                        memcmp(in[0].dims, in[1].dims, sizeof in[0].dims) == 0 && draw_chance(d, 70);
    for (uint32_t i = 0; i < count; i++) {
        const draw_value *from = &in[turned ? 1 - i : i];
        if (turned && draw_chance(d, 50)) {
            next[i] = draw_like(from);
            if (!draw_node(d, &next[i], 1, "Identity (%s)", from->name))
                return false;
        } else if (!next_state(d, from, &next[i])) {
            return false;
        }
    }
    return true;
}

/* Stacked values: one more axis in front. */
static draw_value stacked(const draw_value *v, int64_t times)
{
    draw_value out = draw_of(v->dtype, v->rank + 1, v->dims);
    memmove(out.dims + 1, v->dims, v->rank * sizeof *v->dims);
    out.dims[0] = times;
    return out;
}

/* Values of the body that can be stacked. */
static uint32_t to_stack(draw *d, const body *b, const char *op, const draw_value *used, uint32_t used_count,
                         draw_value *out)
{
    draw_value made[MOST_OUT];
    uint32_t count = 0;
    for (uint32_t i = 0, n = some_made(d, b, draw_gives(d, op, 0) & ~DRAW_BIT(STRING), gen_below(&d->random, 3), made);
         i < n; i++)
        if (made[i].rank < DRAW_RANK && !made_here(used, used_count, made[i].name))
            out[count++] = made[i];
    return count;
}

static bool loop(draw *d)
{
    enum { STATES = 2 };
    draw_value start[STATES], state[STATES], next[STATES], stack[MOST_OUT], out[STATES + MOST_OUT];
    draw_value times = { .dtype = ONX_INT64 }, at = { .dtype = ONX_INT64 }, on = { .dtype = ONX_BOOL }, go = on, c = on,
               name;
    draw_text rest = { 0 };
    body b;
    const uint32_t states = 1 + draw_chance(d, 40);
    const int n = DRAW_ONE(d, int, 1, 2, 3, d->theme == DRAW_ZERO ? 0 : 5);
    if (!draw_pick(d, (draw_wish){ .types = draw_takes(d, "Loop", 2) & ~DRAW_BIT(STRING) }, &start[0]))
        return false;
    start[1] = start[0];
    for (int tries = 0; tries < 4 && states > 1; tries++)
        if (draw_pick(d, (draw_wish){ .types = 1u << start[0].dtype, .least = start[0].rank, .most = start[0].rank },
                      &start[1]))
            break;
    if (draw_chance(d, 70))
        draw_number(d, &times, n);
    else if (!draw_new_input(d, &times, n, n))
        return false;
    const bool conditional = draw_chance(d, 60);
    if (conditional)
        draw_number(d, &c, 1);
    open_body(d, &b);
    add_value(d, &at);
    add_value(d, &on);
    for (uint32_t i = 0; i < states; i++) {
        state[i] = draw_like(&start[i]);
        add_value(d, &state[i]);
    }
    draw_blocks(d, DRAW_ONE(d, uint32_t, 1, 2, 3, 5));
    bool good = draw_node(d, &go, 1, "Identity (%s)", on.name) && states_of(d, state, states, next);
    const uint32_t stacks = good && n ? to_stack(d, &b, "Loop", next, states, stack) : 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < stacks; i++)
        if (strcmp(stack[i].name, go.name) != 0)
            stack[kept++] = stack[i];
    draw_text nodes = close_body(d, &b);
    draw_name(d, &name);
    draw_add(&rest, "Loop <body = %s (int64 %s, bool %s", name.name, at.name, on.name);
    declare_all(d, &rest, state, states, true);
    draw_add(&rest, ") => (bool %s", go.name);
    declare_all(d, &rest, next, good ? states : 0, true);
    declare_all(d, &rest, stack, kept, true);
    draw_add(&rest, ") {\n%s  }> (%s, %s", nodes_of(&nodes), times.name, conditional ? c.name : "");
    for (uint32_t i = 0; i < states; i++)
        draw_add(&rest, ", %s", start[i].name);
    draw_add(&rest, ")");
    draw_text_free(&nodes);
    for (uint32_t i = 0; i < states; i++)
        out[i] = draw_like(&start[i]);
    for (uint32_t i = 0; i < kept; i++)
        out[states + i] = stacked(&stack[i], n);
    if (!good)
        draw_text_free(&rest);
    return good && add_long(d, out, states + kept, &rest);
}

static bool scan(draw *d)
{
    draw_value v, start, state, item, next, stack[MOST_OUT], out[1 + MOST_OUT], name;
    draw_text rest = { 0 };
    body b;
    if (!draw_pick(d,
                   (draw_wish){ .types = draw_takes(d, "Add", 0) & draw_gives(d, "Scan", 0), .least = 1, .full = true },
                   &v))
        return false;
    start = draw_of(v.dtype, v.rank - 1, v.dims + 1);
    draw_constant(d, &start, DRAW_SMALL);
    open_body(d, &b);
    state = draw_like(&start);
    item = draw_like(&start);
    add_value(d, &state);
    add_value(d, &item);
    draw_blocks(d, DRAW_ONE(d, uint32_t, 1, 2, 3));
    draw_value both = draw_like(&state);
    const bool good = draw_node(d, &both, 1, "Add (%s, %s)", state.name, item.name) && next_state(d, &both, &next);
    const uint32_t stacks = good ? to_stack(d, &b, "Scan", &next, 1, stack) : 0;
    draw_text nodes = close_body(d, &b);
    draw_name(d, &name);
    draw_add(&rest, "Scan <num_scan_inputs = 1, body = %s (", name.name);
    declare(d, &rest, &state);
    draw_add(&rest, ", ");
    declare(d, &rest, &item);
    draw_add(&rest, ") => (");
    declare_all(d, &rest, &next, good ? 1 : 0, false);
    declare_all(d, &rest, stack, stacks, true);
    draw_add(&rest, ") {\n%s  }%s> (%s, %s)", nodes_of(&nodes),
             draw_chance(d, 30) ? ", scan_input_directions = [1]" : "", start.name, v.name);
    draw_text_free(&nodes);
    out[0] = draw_like(&start);
    for (uint32_t i = 0; i < stacks; i++)
        out[1 + i] = stacked(&stack[i], v.dims[0]);
    if (!good)
        draw_text_free(&rest);
    return good && add_long(d, out, 1 + stacks, &rest);
}

/* ---- functions ---- */

/* f.F1 <a> (x, y) => (u, w): nodes that keep the shape of x, among them calls of the functions before. */
static void new_function(draw *d)
{
    draw_function *f = &d->function[d->function_count];
    char last[12] = "x", before[12] = "y";
    (void)snprintf(f->name, sizeof f->name, "F%u", d->function_count);
    draw_add(&d->functions, "<opset_import: [\"\": %lld, \"f\": 1], domain: \"f\">\n%s <a> (x, y) => (u, w) {\n",
             (long long)d->opset, f->name);
    for (uint32_t i = 0, n = 1 + gen_below(&d->random, 4); i < n; i++) {
        char name[12];
        (void)snprintf(name, sizeof name, "t%u", i);
        if (d->function_count && draw_chance(d, 30))
            draw_add(&d->functions, "  %s, %sb = f.F%u <a: float = @a> (%s, y)\n", name, name,
                     gen_below(&d->random, d->function_count), last);
        else if (draw_chance(d, 50))
            draw_add(&d->functions, "  %s = %s (%s, %s)\n", name, DRAW_ONE(d, const char *, "Add", "Mul", "Sub"), last,
                     DRAW_ONE(d, const char *, "y", "x", before));
        else if (draw_chance(d, 30))
            draw_add(&d->functions, "  %s = LeakyRelu <alpha: float = @a> (%s)\n", name, last);
        else
            draw_add(&d->functions, "  %s = %s (%s)\n", name,
                     DRAW_ONE(d, const char *, "Relu", "Tanh", "Neg", "Identity", "Abs"), last);
        memcpy(before, last, sizeof last);
        memcpy(last, name, sizeof name);
    }
    draw_add(&d->functions, "  u = Identity (%s)\n  w = %s (%s)\n}\n", last,
             DRAW_ONE(d, const char *, "Identity", "Neg", "Tanh"), draw_chance(d, 50) ? "x" : last);
    d->function_count++;
}

static bool call(draw *d)
{
    draw_value v, w, out[2];
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT) }, &v) || !draw_smaller(d, &v, &w))
        return false;
    if (!d->function_count || (draw_chance(d, 40) && d->function_count < DRAW_FUNCTIONS))
        new_function(d);
    out[0] = out[1] = draw_like(&v);
    return draw_node(d, out, 2, "f.F%u <a = %s> (%s, %s)", gen_below(&d->random, d->function_count),
                     DRAW_ONE(d, const char *, "0.25", "0.5"), v.name, w.name);
}

/* ---- lists ---- */

static bool list(draw *d)
{
    draw_value v, w, name, at = { .dtype = ONX_INT64 }, out;
    const uint32_t types = draw_takes(d, "Neg", 0) & DRAW_FLOATS;
    if (!draw_pick(d, (draw_wish){ .types = types & ~DRAW_BIT(BFLOAT16), .least = 1 }, &v) ||
        !draw_pick(d, (draw_wish){ .types = 1u << v.dtype, .least = v.rank, .most = v.rank }, &w))
        return false;
    const uint32_t which = gen_below(&d->random, 2);
    draw_name(d, &name);
    draw_add(&d->nodes, "  %s = SequenceConstruct (%s, %s)\n", name.name, v.name, w.name);
    if (draw_chance(d, 40)) {
        draw_value longer;
        draw_name(d, &longer);
        draw_add(&d->nodes, "  %s = SequenceInsert (%s, %s)\n", longer.name, name.name, v.name);
        name = longer;
    }
    draw_number(d, &at, which);
    out = draw_like(which ? &w : &v);
    return draw_node(d, &out, 1, "SequenceAt (%s, %s)", name.name, at.name);
}

static bool split_list(draw *d)
{
    draw_value v, name, out;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT) | DRAW_BIT(INT64), .least = 1, .full = true }, &v))
        return false;
    const uint32_t axis = gen_below(&d->random, v.rank);
    draw_name(d, &name);
    draw_add(&d->nodes, "  %s = SplitToSequence <axis = %u> (%s)\n", name.name, axis, v.name);
    out = draw_like(&v);
    return draw_node(d, &out, 1, "ConcatFromSequence <axis = %u> (%s)", axis, name.name);
}

static bool optional(draw *d)
{
    draw_value v, name, out;
    if (!draw_pick(d, (draw_wish){ .types = DRAW_BIT(FLOAT) }, &v))
        return false;
    draw_name(d, &name);
    draw_add(&d->nodes, "  %s = Optional (%s)\n", name.name, v.name);
    out = draw_like(&v);
    return draw_node(d, &out, 1, "OptionalGetElement (%s)", name.name);
}

const draw_block draw_flow_blocks[] = {
    { "branch", { 4, 2, 14, 4, 4 }, 11, true, branch },     { "loop", { 3, 2, 12, 4, 4 }, 11, true, loop },
    { "scan", { 2, 1, 8, 2, 3 }, 11, true, scan },          { "call", { 3, 3, 8, 3, 0 }, 10, false, call },
    { "list", { 2, 2, 2, 2, 2 }, 11, false, list },         { "split_list", { 1, 1, 1, 1, 1 }, 11, false, split_list },
    { "optional", { 1, 1, 1, 1, 0 }, 15, false, optional }, { .name = NULL },
};
