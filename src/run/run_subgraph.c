/* run_subgraph.c - runs subgraphs inside a step: finds the state that fits the inputs, and passes values in and out.
 * While the shapes stay the same, an iteration of a loop takes no lock, allocates no memory and looks up no name. */
#include "run/run.h"

static void drop_state(onxi_run_session *s, onxi_run_state *state)
{
    onxi_run_plan *plan = state->plan;
    onxi_run_state_free(state);
    onxi_run_plan_let_go(s, plan, NULL);
}

static void drop_states(onxi_run_site *site)
{
    onxi_run_session *s = site->graph->session;
    while (site->kept) {
        onxi_run_state *state = site->kept;
        site->kept = state->next;
        drop_state(s, state);
    }
    site->kept_count = 0;
    site->kept_size = 0;
}

/* Graphs that keep many plans keep many states, too, while these are small: decoders meet the same lengths in each
 * search, and a state takes as long to make as a step of a small one. */
static bool is_full(const onxi_run_site *site)
{
    const onxi_run_graph *g = site->graph;
    const onx_session_options *o = &g->session->options;
    const uint64_t room = o->memory / 16 < ONXI_STATES_ROOM ? o->memory / 16 : ONXI_STATES_ROOM;
    const bool many = !g->depth && !o->lean_memory && site->kept_size < room;
    return site->kept_count >= (many ? ONXI_PLANS_SMALL : onxi_run_graph_plans(g));
}

static void drop_oldest(onxi_run_site *site)
{
    onxi_run_state **last = &site->kept;
    while ((*last)->next)
        last = &(*last)->next;
    site->kept_count--;
    site->kept_size -= (*last)->base_size;
    drop_state(site->graph->session, *last);
    *last = NULL;
}

static onx_status new_state(onxi_run_site *site, onxi_run_state **out)
{
    onxi_run_session *s = site->graph->session;
    onx_ctx *cx = site->outer->cx;
    onxi_run_plan *plan;
    ONX_TRY(onxi_run_plan_take(site->graph, site->inputs, &site->outer->outermost->watch, site->outer->plan->nonfinite,
                               cx, &plan, NULL));
    if (plan->buffer_size + 64 > onxi_ctx_room(cx)) /* states for other shapes are freed to make room */
        drop_states(site);
    onx_status status = onxi_run_state_new(s, plan, site->outer, out);
    if (status == ONX_OK)
        return ONX_OK;
    onxi_run_state_free(*out);
    *out = NULL; /* a rest goes on without a state (run_later.c) */
    onxi_run_plan_let_go(s, plan, NULL);
    return status;
}

void onxi_run_site_close(onxi_run_site *site)
{
    drop_states(site);
}

void onxi_run_sites_free(onxi_run_state *state)
{
    for (uint32_t i = 0; state->sites && i < state->plan->site_count; i++) {
        onxi_run_site *site = &state->sites[i];
        if (site->graph)
            drop_states(site);
        for (uint32_t k = 0; site->held && k < site->graph->input_count; k++)
            onx_value_free(site->held[k]);
        if (site->held)
            onxi_release(state->cx, site->held, site->graph->input_count * sizeof *site->held);
    }
}

onxi_run_state *onxi_run_site_find(onxi_run_site *site)
{
    onxi_run_state **at = &site->kept;
    while (*at && !onxi_run_plan_fits((*at)->plan, site->inputs))
        at = &(*at)->next;
    onxi_run_state *found = *at;
    if (found) {
        *at = found->next;
        found->next = site->kept;
        site->kept = found;
    }
    return found;
}

onx_status onxi_run_site_add(onxi_run_site *site, onxi_run_state **out)
{
    while (site->kept && is_full(site))
        drop_oldest(site);
    ONX_TRY(new_state(site, out));
    site->kept_count++;
    site->kept_size += (*out)->base_size;
    (*out)->next = site->kept;
    site->kept = *out;
    return ONX_OK;
}

/* Finds or makes the state whose plan fits the inputs. */
static onx_status find_state(onxi_run_site *site, onxi_run_state **out)
{
    *out = onxi_run_site_find(site);
    return *out ? ONX_OK : onxi_run_site_add(site, out);
}

static bool wants_optional(const onxi_run_graph *g, uint32_t input)
{
    const onx_type *type = g->graph->input[input]->type;
    return type && ONX_HAS(type, type, optional_type);
}

/* A value that is kept for an input, for replacing a given one. */
static onx_status hold(onxi_run_site *site, uint32_t input, onx_value **out)
{
    onx_ctx *cx = site->outer->cx;
    uint32_t count = site->graph->input_count;
    if (!site->held) {
        site->held = onxi_resize(cx, NULL, 0, count * sizeof *site->held);
        if (!site->held)
            return ONX_E_MEMORY;
        memset(site->held, 0, count * sizeof *site->held);
    }
    if (!site->held[input])
        ONX_TRY(onx_value_new(cx, &site->held[input]));
    *out = site->held[input];
    return ONX_OK;
}

/* A loop-carried value is optional, but the body returns the value inside: wraps the value in an optional. */
static onx_status wrap(onxi_run_site *site, uint32_t input)
{
    onx_value *item, *held;
    ONX_TRY(hold(site, input, &held));
    ONX_TRY(onx_value_reset_list(held, ONX_VALUE_OPTIONAL, ONX_UNDEFINED));
    ONX_TRY(onxi_value_snapshot(site->outer->cx, site->inputs[input], &item));
    onx_status status = onx_value_insert(held, 0, item);
    onx_value_free(item);
    site->inputs[input] = held;
    return status;
}

/* The iteration number and the condition of a Loop are scalars, but the body may declare them as [1]. */
static onx_status take_rank(onxi_run_site *site, uint32_t input)
{
    const onx_value *given = site->inputs[input];
    const int declared = onxi_loop_rank(site->graph->graph, input);
    const uint32_t rank = declared < 0 ? given->rank : (uint32_t)declared;
    onx_value *held;
    int64_t ones[ONX_RANK_MAX];
    if (given->kind != ONX_VALUE_TENSOR || given->count != 1 || given->rank == rank)
        return ONX_OK;
    for (uint32_t i = 0; i < rank; i++)
        ones[i] = 1;
    ONX_TRY(hold(site, input, &held));
    ONX_TRY(onx_value_reset(held, (onx_dtype)given->dtype, rank, ones));
    memcpy(held->data, given->data, onx_dtype_bits(given->dtype) / 8);
    site->inputs[input] = held;
    return ONX_OK;
}

/* Formal inputs that the caller does not give get a value of their own. */
static onx_status take_formal(onx_work *work, onxi_run_site *site, const onx_value *const *inputs, uint32_t input_count)
{
    const onxi_run_graph *g = site->graph;
    if (input_count > g->input_count)
        return onx_work_fail(work, ONX_E_INVALID, "the subgraph has %u inputs, %u are given", g->input_count,
                             input_count);
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onxi_run_graph_slot *slot = &g->slots[g->inputs[i]];
        site->inputs[i] = i < input_count ? inputs[i] : NULL;
        bool own = slot->constant || slot->tensor || slot->sparse;
        if (own == (site->inputs[i] != NULL))
            return onx_work_fail(
                work, ONX_E_INVALID,
                own ? "input %u of the subgraph is an initializer too" : "input %u of the subgraph is not given", i);
        if (!own && site->inputs[i]->kind != ONX_VALUE_OPTIONAL && wants_optional(g, i))
            ONX_TRY(wrap(site, i));
        if (site->loop && i < 2 && !own)
            ONX_TRY(take_rank(site, i));
    }
    return ONX_OK;
}

static onx_status site_run(onx_work *work, uint32_t index, const onx_value *const *inputs, uint32_t input_count,
                           onx_value **outputs, uint32_t output_count)
{
    onxi_run_site *site = (onxi_run_site *)work->engine + index;
    onxi_run_state *state, *outermost = site->outer->outermost;
    uint64_t limit = outermost->watch.iterations;
    if (output_count > site->graph->output_count)
        return onx_work_fail(work, ONX_E_INVALID, "the subgraph has %u outputs, %u are expected",
                             site->graph->output_count, output_count);
    if (++outermost->entered > limit && limit)
        return onx_work_fail(work, ONX_E_LIMIT, "the run enters subgraphs more than %llu times (limit iterations)",
                             (unsigned long long)limit);
    onx_status going = onxi_run_watch_look(&outermost->watch); /* checked here, too, because a body may be empty */
    if (going != ONX_OK)
        return onxi_run_watch_fail(&outermost->watch, going, work->cx, work->prepared->place);
    ONX_TRY(take_formal(work, site, inputs, input_count));
    ONX_TRY(find_state(site, &state));
    return onxi_run_state_run(state, NULL, site->inputs, outputs, output_count);
}

static onx_status site_type(onx_work *work, uint32_t index, const onx_value *const *inputs, uint32_t input_count,
                            uint32_t output, const onx_value **type)
{
    onxi_run_site *site = (onxi_run_site *)work->engine + index;
    onxi_run_state *state;
    *type = NULL;
    ONX_TRY(take_formal(work, site, inputs, input_count));
    ONX_TRY(find_state(site, &state));
    const onxi_run_plan_slot *slot = state->plan->slots[state->plan->outputs[output]];
    if (slot->place != ONXI_PLACE_DYNAMIC && slot->value.kind == ONX_VALUE_TENSOR)
        *type = &slot->value;
    return ONX_OK;
}

const onx_work_ops onxi_run_site_ops = { site_run, site_type };
