/* cli_pull.c - propagates demands on a value backwards through the nodes that compute it, down to the inputs. */
#include "cli_flow.h"

#include <math.h>

/* ---- adding a demand ---- */

static bool is_range(const cli_numbers *n)
{
    return n->pattern == CLI_PATTERN_RANGE;
}

/* Which demand wins, where `old` is the earlier one. A range is weaker than a list, but stronger than the any-shape
 * pattern (-1, 1, ...), which also satisfies a size of one; demands on strings alone are the weakest. */
static void merge(cli_numbers *old, const cli_numbers *asked)
{
    if (old->of_text || (old->pattern == CLI_PATTERN_FLAT && is_range(asked) && asked->low >= 0)) {
        *old = *asked;
        return;
    }
    if (asked->of_text || (asked->pattern == CLI_PATTERN_FLAT && is_range(old) && old->low >= 0))
        return;
    if (is_range(old) && is_range(asked) && ceil(fmax(old->low, asked->low)) <= floor(fmin(old->high, asked->high))) {
        const bool inside =
            old->low >= asked->low && old->high <= asked->high && (old->low > asked->low || old->high < asked->high);
        old->op = inside ? old->op : asked->op;
        old->low = fmax(old->low, asked->low);
        old->high = fmin(old->high, asked->high);
        old->soft &= asked->soft;
        return;
    }
    if ((!is_range(old) && old->pattern != CLI_PATTERN_FLAT && is_range(asked)) || (asked->soft && !old->soft))
        return;
    *old = *asked;
}

onx_status cli_flow_ask(cli_flow *flow, uint32_t value, const cli_numbers *asked)
{
    if (value == CLI_FLOW_NONE || !asked->op)
        return ONX_OK;
    cli_flow_value *v = &flow->values[value];
    const bool given = value < flow->input_count; /* the input may override its initializer */
    const bool fits = is_range(asked) && v->low >= asked->low && v->high <= asked->high;
    if ((!given && !v->derived) || (fits && !(given && v->tensor)))
        return ONX_OK; /* the value cannot be changed, or meets the demand already */
    if (v->asked) {
        merge(&flow->asked[v->asked - 1], asked);
        return ONX_OK;
    }
    if (!CLI_GROW(flow->asked, flow->asked_count, flow->asked_room))
        return cli_flow_no_memory(flow);
    flow->asked[flow->asked_count] = *asked;
    v->asked = ++flow->asked_count;
    return ONX_OK;
}

static bool asked_of(const cli_flow *flow, uint32_t value, cli_numbers *out)
{
    if (value == CLI_FLOW_NONE || !flow->values[value].asked)
        return false;
    *out = flow->asked[flow->values[value].asked - 1];
    return true;
}

/* ---- lists that are concatenated from parts ---- */

static void make_range(cli_numbers *n, double low, double high)
{
    n->pattern = CLI_PATTERN_RANGE;
    n->low = low + 0.0; /* so that zero is never negative zero */
    n->high = high + 0.0;
}

/* The demand on the `count` elements from `first` on, from the demand on a list of `all` elements. */
static void part_of(const cli_numbers *asked, uint32_t first, uint32_t count, uint32_t all, cli_numbers *out)
{
    *out = *asked;
    if (asked->pattern == CLI_PATTERN_STEPS && count == 1) {
        make_range(out, first, first);
    } else if (asked->pattern == CLI_PATTERN_LIST) {
        const uint32_t last = asked->count - 1;
        out->count = 0;
        for (uint32_t i = 0; i < count && i < CLI_MOST_SIZES; i++)
            out->list[out->count++] = asked->list[first + i < last ? first + i : last];
    } else if (asked->pattern == CLI_PATTERN_PARTS && count == 1 && !asked->list[0].input && all) {
        const int64_t total = asked->list[0].number;
        const double part = (double)(total / all + ((int64_t)first < total % all));
        make_range(out, part, part);
    }
}

/* In a shape, one size may be -1: the first part that can be chosen gets it, unless a constant part has it already. */
static onx_status pull_flat(cli_flow *flow, const cli_flow_step *step, const cli_numbers *asked)
{
    bool open = true;
    for (uint32_t i = 0; i < step->node->input_count; i++) {
        const uint32_t x = cli_flow_input(flow, step, i);
        open &= x == CLI_FLOW_NONE || flow->values[x].derived || flow->values[x].low != -1;
    }
    for (uint32_t i = 0; i < step->node->input_count; i++) {
        const uint32_t x = cli_flow_input(flow, step, i);
        cli_numbers part = *asked;
        if (x == CLI_FLOW_NONE || !flow->values[x].derived)
            continue;
        if (!open)
            make_range(&part, 1, 1);
        open = false;
        ONX_TRY(cli_flow_ask(flow, x, &part));
    }
    return ONX_OK;
}

static onx_status pull_concat(cli_flow *flow, const cli_flow_step *step, const cli_numbers *asked)
{
    const uint32_t count = step->node->input_count;
    uint64_t all = 0, first = 0;
    if (asked->pattern == CLI_PATTERN_FLAT)
        return pull_flat(flow, step, asked);
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < count; i++) {
            cli_shape shape;
            cli_numbers part;
            const uint32_t x = cli_flow_input(flow, step, i);
            const int64_t size = cli_flow_dims(flow, x, &shape) && shape.rank == 1 ? shape.dims[0] : 1;
            const uint32_t some = size > 0 && size < CLI_MOST_SIZES ? (uint32_t)size : size != 0;
            if (pass == 0) {
                all += some;
                continue;
            }
            part_of(asked, (uint32_t)first, some, (uint32_t)all, &part);
            first += some;
            if (part.pattern != CLI_PATTERN_LIST || part.count)
                ONX_TRY(cli_flow_ask(flow, x, &part));
        }
    return ONX_OK;
}

/* ---- arithmetic ---- */

/* Through arithmetic, a demanded shape or list becomes a single number that satisfies it. */
static void as_range(cli_numbers *n)
{
    if (n->pattern != CLI_PATTERN_RANGE)
        make_range(n, n->pattern != CLI_PATTERN_STEPS, n->pattern != CLI_PATTERN_STEPS);
}

/* The demand on one operand so that the result is in the range for every value of the other operand, from low to high.
 * False if there is none. `first`: the operand is the left one. */
static bool across(cli_move_how how, bool first, double low, double high, cli_numbers *n)
{
    const double least = n->low, most = n->high;
    if (how == CLI_ADD)
        make_range(n, least - low, most - high);
    else if (how == CLI_SUB && first)
        make_range(n, least + high, most + low);
    else if (how == CLI_SUB)
        make_range(n, high - most, low - least);
    else if (how == CLI_DIV && first && low > 0)
        make_range(n, least * (least < 0 ? low : high), most * (most < 0 ? high : low));
    else if (how == CLI_MUL && low >= 0 && high > 0 && least <= 0)
        make_range(n, least / high, most / high);
    else if (how == CLI_MUL && low > 0)
        make_range(n, least / low, most / high);
    else if (how == CLI_MUL && low < 0 && low == high)
        make_range(n, most / low, least / low);
    else
        return false;
    return n->low <= n->high;
}

/* If nothing is known of either operand, the left one gets the demand, and the right one gets a neutral value: a mask
 * of 0 and 1 if possible, else 1, or 0 for an addition. */
static void neutral(cli_move_how how, cli_numbers *n)
{
    if (how == CLI_ADD || how == CLI_SUB)
        make_range(n, 0, 0);
    else
        make_range(n, how == CLI_MUL && n->low <= 0 ? 0 : 1, 1);
}

/* Handles x + x and x * x; x - x and x / x allow no demand. */
static onx_status pull_both(cli_flow *flow, uint32_t x, cli_move_how how, cli_numbers *n)
{
    if (how == CLI_ADD)
        make_range(n, n->low / 2, n->high / 2);
    else if (how == CLI_MUL && n->high >= 0)
        make_range(n, sqrt(fmax(n->low, 0)), sqrt(n->high));
    else
        return ONX_OK;
    return cli_flow_ask(flow, x, n);
}

static onx_status pull_operand(cli_flow *flow, const cli_flow_step *step, const cli_move *move, uint32_t index,
                               const cli_numbers *asked)
{
    const uint32_t x = cli_flow_input(flow, step, index), y = cli_flow_input(flow, step, index == 0);
    const cli_flow_value *other = y == CLI_FLOW_NONE ? NULL : &flow->values[y];
    cli_numbers n = *asked;
    if (!other || x == CLI_FLOW_NONE)
        return ONX_OK;
    if (x == y)
        return pull_both(flow, x, move->how, &n);
    if (isfinite(other->low) && isfinite(other->high)) {
        if (!across(move->how, index == 0, other->low, other->high, &n))
            return ONX_OK;
    } else if (!other->derived) { /* an unknown size: zero is safe for all sizes */
        if (n.low > 0 || n.high < 0)
            return ONX_OK;
        make_range(&n, 0, 0);
    } else if (index > 0) {
        neutral(move->how, &n);
    }
    return cli_flow_ask(flow, x, &n);
}

/* The number of elements that are summed for one result; unknown dimensions count as 1. */
static double addends(cli_flow *flow, const cli_flow_step *step)
{
    cli_shape shape;
    double in = 1, out = 1;
    if (cli_flow_dims(flow, cli_flow_input(flow, step, 0), &shape))
        for (uint32_t i = 0; i < shape.rank; i++)
            in *= shape.dims[i] > 0 ? (double)shape.dims[i] : 1;
    if (cli_flow_is(step->node, "", "ReduceSum") && cli_flow_dims(flow, cli_flow_output(flow, step, 0), &shape))
        for (uint32_t i = 0; i < shape.rank; i++)
            out *= shape.dims[i] > 0 ? (double)shape.dims[i] : 1;
    return in > out ? in / out : 1;
}

static onx_status pull_arithmetic(cli_flow *flow, const cli_flow_step *step, const cli_move *move, cli_numbers *asked)
{
    if (asked->soft)
        return ONX_OK;
    as_range(asked);
    const double low = asked->low, high = asked->high;
    if (move->how == CLI_NEG)
        make_range(asked, -high, -low);
    else if (move->how == CLI_ABS)
        make_range(asked, fmax(low, 0), high);
    else if (move->how == CLI_SUM)
        make_range(asked, low / addends(flow, step), high / addends(flow, step));
    if (move->how == CLI_NEG || move->how == CLI_ABS || move->how == CLI_SUM)
        return cli_flow_ask(flow, cli_flow_input(flow, step, 0), asked);
    if (step->node->input_count == 2) {
        ONX_TRY(pull_operand(flow, step, move, 0, asked));
        return pull_operand(flow, step, move, 1, asked);
    }
    for (uint32_t i = 0; i < step->node->input_count; i++) { /* Sum */
        ONX_TRY(cli_flow_ask(flow, cli_flow_input(flow, step, i), asked));
        neutral(CLI_ADD, asked);
    }
    return ONX_OK;
}

/* ---- nodes ---- */

static onx_status pull_node(cli_flow *flow, const cli_flow_step *step)
{
    const cli_move *move = cli_flow_move(flow, step->node);
    for (uint32_t k = 0; move && k < step->node->output_count; k++) {
        cli_numbers asked;
        if (!cli_moves(move->outputs, k) || !asked_of(flow, cli_flow_output(flow, step, k), &asked))
            continue;
        if (move->how != CLI_SAME) {
            ONX_TRY(pull_arithmetic(flow, step, move, &asked));
            continue;
        }
        if (cli_flow_is(step->node, "", "Concat")) {
            ONX_TRY(pull_concat(flow, step, &asked));
            continue;
        }
        for (uint32_t i = 0; i < step->node->input_count; i++)
            if (cli_moves(move->inputs, i))
                ONX_TRY(cli_flow_ask(flow, cli_flow_input(flow, step, i), &asked));
    }
    return ONX_OK;
}

typedef struct puller {
    onx_status (*see)(void *user, cli_flow *flow, const cli_flow_step *step);
    void *user;
} puller;

static onx_status pull_list(cli_flow *flow, uint32_t last, const puller *p);

/* The outputs of a body become outputs of the node, and inputs of the node become inputs of the body. For a Loop, the
 * first output of the body is its condition, the first inputs of node and body differ, and loop-carried values receive
 * their demand only once. */
static onx_status pull_body(cli_flow *flow, const cli_flow_step *step, const cli_flow_body *body, const puller *p)
{
    const bool loop = cli_flow_is(step->node, "", "Loop");
    const uint32_t inputs = body->graph->input_count, outputs = body->graph->output_count;
    cli_numbers asked;
    for (uint32_t i = loop; i < outputs; i++)
        if (asked_of(flow, cli_flow_output(flow, step, i - loop), &asked))
            ONX_TRY(cli_flow_ask(flow, flow->ids[body->first + inputs + i], &asked));
    ONX_TRY(pull_list(flow, body->last, p));
    for (uint32_t i = loop ? 2 : 0; i < inputs; i++)
        if (asked_of(flow, flow->ids[body->first + i], &asked))
            ONX_TRY(cli_flow_ask(flow, cli_flow_input(flow, step, i), &asked));
    return ONX_OK;
}

/* Recursive through pull_body, up to the nesting depth of graphs, which cli_flow_open bounds. */
static onx_status pull_list(cli_flow *flow, uint32_t last, const puller *p)
{
    for (uint32_t at = last; at; at = flow->steps[at - 1].before) {
        const cli_flow_step *step = &flow->steps[at - 1];
        for (uint32_t b = step->bodies; b; b = flow->bodies[b - 1].before)
            ONX_TRY(pull_body(flow, step, &flow->bodies[b - 1], p));
        ONX_TRY(p->see(p->user, flow, step));
        ONX_TRY(pull_node(flow, step));
    }
    return ONX_OK;
}

onx_status cli_flow_pull(cli_flow *flow, onx_status (*see)(void *user, cli_flow *flow, const cli_flow_step *step),
                         void *user)
{
    const puller p = { see, user };
    return pull_list(flow, flow->last, &p);
}
