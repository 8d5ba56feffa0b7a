/* run_state.c - the state of one run: its buffer, the values bound to it, and the execution of the steps of a plan. */
#include "run/run_choice.h"
#include "run/run_zones.h"

#include <time.h>

uint64_t onxi_run_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- making a state ---- */

static onx_status bind_slots(onxi_run_state *st)
{
    onxi_run_plan *plan = st->plan;
    for (uint32_t i = 0; i < plan->storage_count; i++)
        st->storage_at[i] = st->buffer + plan->storages[i].offset;
    for (uint32_t i = 0; i < plan->slot_count; i++) {
        const onxi_run_plan_slot *s = plan->slots[i];
        st->slots[i] = &st->values[i];
        st->values[i] = s->value;
        st->values[i].flags |= ONXI_VALUE_BORROWED;
        if (s->place == ONXI_PLACE_BUFFER)
            st->values[i].data = s->storage == ONXI_NO_SLOT ? NULL : st->buffer + plan->storages[s->storage].offset;
        else if (s->place == ONXI_PLACE_DYNAMIC)
            ONX_TRY(onx_value_new(st->cx, &st->slots[i]));
    }
    return ONX_OK;
}

/* Sets the operands that the step's subgraphs capture; returns the unused rest of the array of operands. */
static const onx_value **bind_sites(onxi_run_state *st, const onxi_run_step *step, onx_work *w, const onx_value **at)
{
    w->ops = &onxi_run_site_ops;
    w->engine = &st->sites[step->first_site];
    for (uint32_t k = 0; k < step->op->graph_count; k++) {
        onxi_run_graph *g = step->op->graphs[k];
        st->sites[step->first_site + k] =
            (onxi_run_site){ .outer = st, .graph = g, .inputs = at, .loop = step->op->id == ONXI_ID_Loop };
        for (uint32_t i = 0; i < g->input_count; i++)
            at[i] = NULL;
        for (uint32_t i = 0; i < g->capture_count; i++)
            at[g->input_count + i] = w->inputs[step->input_count + g->captures[i]];
        at += g->input_count + g->capture_count;
    }
    return at;
}

static onx_status bind_steps(onxi_run_state *st)
{
    onxi_run_plan *plan = st->plan;
    const onx_value **at = st->arrays;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onxi_run_step *step = &plan->steps[i];
        onx_work *w = &st->works[i];
        uint32_t inputs = step->input_count + step->capture_count;
        for (uint32_t k = 0; k < inputs; k++)
            at[k] = step->inputs[k] == ONXI_NO_SLOT ? NULL : st->slots[step->inputs[k]];
        onx_value **out = (onx_value **)(uintptr_t)(const void *)(at + inputs);
        for (uint32_t k = 0; k < step->output_count; k++)
            out[k] = step->outputs[k] == ONXI_NO_SLOT ? NULL : st->slots[step->outputs[k]];
        *w = (onx_work){ .cx = st->cx,
                         .prepared = &step->prepared,
                         .params = step->prepare.params,
                         .inputs = at,
                         .outputs = out,
                         .workspace = st->buffer + plan->workspace_offset,
                         .thread_workspace = st->buffer + plan->thread_workspace_offset,
                         .threads = plan->graph->session->threads,
                         .watch = &st->outermost->watch,
                         .text = st->text };
        at += inputs + step->output_count;
        if (step->eager || step->anew)
            continue;
        if (step->op && step->op->graph_count)
            at = bind_sites(st, step, w, at);
        if (step->kernel->bind)
            ONX_TRY(step->kernel->bind(w));
    }
    return ONX_OK;
}

/* Counts the operands of all steps and the inputs of their subgraphs. */
static size_t count_operands(const onxi_run_plan *plan)
{
    size_t count = 1;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onxi_run_step *step = &plan->steps[i];
        count += step->input_count + step->capture_count + step->output_count;
        for (uint32_t k = 0; step->op && k < step->op->graph_count; k++)
            count += step->op->graphs[k]->input_count + step->op->graphs[k]->capture_count;
    }
    return count;
}

static size_t count_inputs(const onxi_run_plan *plan)
{
    return (size_t)plan->graph->input_count + plan->graph->capture_count + 1;
}

/* The states of subgraphs come and go with the shapes: their buffers are used again. */
static void take_buffer(onxi_run_state *st)
{
    const bool nested = st->outermost != st;
    size_t size = st->base_size;
    st->held = st->base_size;
    st->base = nested ? onxi_buffer_take(st->cx, st->base_size, &size) : onxi_apart_new(st->cx, st->base_size);
    st->base_size = size;
    if (!st->base)
        onxi_ctx_let_go(st->cx, st->held);
}

static void give_buffer(onxi_run_state *st)
{
    if (!st->base)
        return;
    onxi_run_zones_end(st);
    if (st->outermost != st)
        onxi_buffer_give(st->cx, st->base, st->base_size);
    else
        onxi_apart_free(st->cx, st->base, st->base_size);
    onxi_ctx_let_go(st->cx, st->held);
}

onx_status onxi_run_state_new(onxi_run_session *s, onxi_run_plan *plan, onxi_run_state *outer, onxi_run_state **out)
{
    *out = NULL;
    onx_ctx *cx = outer ? outer->cx : onxi_run_ctx_child(s->cx);
    if (!cx)
        return ONX_E_MEMORY;
    onxi_run_state *st = onxi_apart_new(cx, sizeof *st);
    if (!st) {
        if (!outer)
            onx_ctx_free(cx);
        return ONX_E_MEMORY;
    }
    memset(st, 0, sizeof *st);
    st->cx = cx;
    st->plan = plan;
    st->outermost = outer ? outer->outermost : st;
    size_t operands = count_operands(plan);
    st->arrays_size = operands * sizeof(void *);
    st->base_size = plan->buffer_size + 64;
    st->values = onxi_apart_new(cx, (plan->slot_count + 1u) * sizeof *st->values);
    st->slots = onxi_apart_new(cx, (plan->slot_count + 1u) * sizeof *st->slots);
    st->works = onxi_apart_new(cx, (plan->step_count + 1u) * sizeof *st->works);
    st->sites = onxi_apart_new(cx, (plan->site_count + 1u) * sizeof *st->sites);
    st->taken = onxi_apart_new(cx, count_inputs(plan) * sizeof *st->taken);
    st->arrays = onxi_apart_new(cx, st->arrays_size);
    st->storage_at = onxi_apart_new(cx, (plan->storage_count + 1u) * sizeof *st->storage_at);
    const bool held = onxi_ctx_hold(cx, st->base_size);
    if (held)
        take_buffer(st);
    if (st->slots)
        memset(st->slots, 0, (plan->slot_count + 1u) * sizeof *st->slots);
    if (st->taken)
        memset(st->taken, 0, count_inputs(plan) * sizeof *st->taken);
    if (st->works)
        memset(st->works, 0, (plan->step_count + 1u) * sizeof *st->works);
    if (st->sites)
        memset(st->sites, 0, (plan->site_count + 1u) * sizeof *st->sites);
    onx_status status = held ? onx_arena_new(cx, &st->text) : ONX_E_LIMIT;
    if (status == ONX_OK)
        status = onx_arena_new(cx, &st->scratch);
    if (status == ONX_OK && !outer && !onxi_run_aim_new(st))
        status = ONX_E_MEMORY;
    if (status == ONX_OK && (!st->values || !st->slots || !st->works || !st->sites || !st->taken || !st->arrays ||
                             !st->base || !st->storage_at))
        status = ONX_E_MEMORY;
    if (status == ONX_OK) {
        st->buffer = (char *)(((uintptr_t)st->base + 63u) & ~(uintptr_t)63u);
        status = bind_slots(st);
    }
    if (status == ONX_OK)
        status = bind_steps(st);
    if (status == ONX_OK)
        onxi_run_zones_close(st);
    if (ONXI_PLATFORM_ROOMY && status == ONX_OK && plan->later)
        status = onxi_run_rest_new(st);
    *out = st; /* on failure, the caller takes the diagnostics and frees the state */
    return status;
}

void onxi_run_state_free(onxi_run_state *st)
{
    if (!st)
        return;
    onxi_run_plan *plan = st->plan;
    bool nested = st->outermost != st;
    if (ONXI_PLATFORM_ROOMY)
        onxi_run_rest_free(st);
    for (uint32_t i = 0; st->works && i < plan->step_count; i++)
        if (st->works[i].state && plan->steps[i].kernel->unbind)
            plan->steps[i].kernel->unbind(st->works[i].state);
    for (uint32_t i = 0; st->slots && i < plan->slot_count; i++)
        if (st->slots[i] && st->slots[i] != &st->values[i])
            onx_value_free(st->slots[i]);
    onxi_run_sites_free(st);
    onx_arena_free(st->text);
    onx_arena_free(st->scratch);
    onx_ctx *cx = st->cx;
    onxi_apart_free(cx, st->values, (plan->slot_count + 1u) * sizeof *st->values);
    onxi_apart_free(cx, st->slots, (plan->slot_count + 1u) * sizeof *st->slots);
    onxi_apart_free(cx, st->works, (plan->step_count + 1u) * sizeof *st->works);
    onxi_apart_free(cx, st->sites, (plan->site_count + 1u) * sizeof *st->sites);
    onxi_apart_free(cx, st->taken, count_inputs(plan) * sizeof *st->taken);
    onxi_apart_free(cx, st->arrays, st->arrays_size);
    onxi_apart_free(cx, st->storage_at, (plan->storage_count + 1u) * sizeof *st->storage_at);
    onxi_run_aim_free(st);
    onxi_release(cx, st->space.memory, st->space.size);
    give_buffer(st);
    onxi_apart_free(cx, st, sizeof *st);
    if (!nested)
        onx_ctx_free(cx);
}

/* ---- memory of eager steps ---- */

/* While a step uses the memory, the state has none: a subgraph that the step runs gets memory of its own. */
onxi_run_space onxi_run_space_take(onxi_run_state *st, onx_ctx *cx, uint64_t size)
{
    onxi_run_space space = { NULL, 0 };
    if (st && size) {
        space = st->outermost->space;
        st->outermost->space = (onxi_run_space){ NULL, 0 };
    }
    if (space.size < size) {
        onxi_release(cx, space.memory, space.size);
        space.memory = onxi_resize(cx, NULL, 0, size);
        space.size = space.memory ? size : 0;
    }
    return space;
}

void onxi_run_space_give(onxi_run_state *st, onx_ctx *cx, onxi_run_space space)
{
    enum { MOST = 8 << 20 }; /* bytes of the largest memory that is kept */
    if (st && space.size <= MOST && space.size > st->outermost->space.size &&
        !st->plan->graph->session->options.lean_memory) {
        const onxi_run_space other = st->outermost->space;
        st->outermost->space = space;
        space = other;
    }
    onxi_release(cx, space.memory, space.size);
}

/* ---- running ---- */

/* Lists move from the caller to the state and back, so that the state may take their items. */
static bool is_given(const onxi_run_state *st, const onx_value *v)
{
    return v->flags & ONXI_VALUE_GIVEN && v->kind > ONX_VALUE_TENSOR && v->cx == st->cx;
}

static void exchange(onx_value *mine, const onx_value *given)
{
    onxi_value_swap(mine, (onx_value *)(uintptr_t)(const void *)given);
    mine->flags &= (uint16_t)~ONXI_VALUE_GIVEN;
}

static void give_back(onxi_run_state *st, const onx_value *const *inputs)
{
    const onxi_run_graph *g = st->plan->graph;
    for (uint32_t i = 0; i < g->input_count + g->capture_count; i++)
        if (st->taken[i]) {
            onx_value *v = &st->values[g->inputs[i]];
            exchange(v, inputs[i]);
            *v = (onx_value){ .flags = ONXI_VALUE_BORROWED };
            st->taken[i] = false;
        }
}

static void take_inputs(onxi_run_state *st, const onx_value *const *inputs)
{
    onxi_run_plan *plan = st->plan;
    onxi_run_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->input_count + g->capture_count; i++) {
        uint32_t slot = g->inputs[i];
        if (!inputs[i] || plan->slots[slot]->place != ONXI_PLACE_INPUT)
            continue;
        onx_value *v = &st->values[slot];
        st->taken[i] = is_given(st, inputs[i]);
        if (st->taken[i]) {
            *v = (onx_value){ .cx = st->cx, .refs = 1 };
            exchange(v, inputs[i]);
            continue;
        }
        *v = *inputs[i];
        v->flags &= (uint16_t)~ONXI_VALUE_GIVEN;
        v->flags |= ONXI_VALUE_BORROWED;
        v->cx = NULL;
        v->items_room = v->items_head = v->text_room = v->text_spare = v->data_room = 0;
        v->dims_room = 0;
    }
    for (uint32_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i]->place == ONXI_PLACE_VIEW)
            st->values[i].data = st->values[plan->slots[i]->base].data;
}

static onxi_run_env env_of(onxi_run_state *st)
{
    return (onxi_run_env){ .cx = st->cx,
                           .session = st->plan->graph->session,
                           .graph = st->plan->graph,
                           .arena = st->scratch,
                           .state = st,
                           .watch = &st->outermost->watch,
                           .nonfinite = st->plan->nonfinite };
}

/* Prepares the step again with packed constants that it makes for this run only, and runs it. */
static onx_status run_anew(onxi_run_state *st, const onxi_run_step *step, const onx_work *w)
{
    onxi_run_passing passing = { .cx = st->cx };
    onxi_run_env e = env_of(st);
    onx_prepare p;
    e.plan = st->plan;
    e.passing = &passing;
    st->reader = onxi_doc_reader(e.session->doc, st->cx, st->scratch);
    onx_status status = onxi_run_op_prepare_anew(&e, step->op, step->anew, &p);
    if (status == ONX_OK) {
        p.thread_workspace = step->prepared.thread_workspace;
        const onx_prepared prepared = onxi_run_op_prepared(&p);
        onx_work mine = *w;
        mine.prepared = &prepared;
        mine.params = p.params;
        status = step->kernel->bind ? step->kernel->bind(&mine) : ONX_OK;
        if (status == ONX_OK)
            status = onxi_run_work_run(step->kernel, &mine);
        if (step->kernel->unbind && mine.state)
            step->kernel->unbind(mine.state);
        if (step->kernel->release)
            step->kernel->release(p.params);
    }
    onxi_run_passing_end(&passing);
    onxi_doc_reader_close(&st->reader);
    onxi_arena_reset(st->scratch);
    return status;
}

static onx_status run_eager(onxi_run_state *st, const onxi_run_step *step, onx_work *w, const onx_kernel **kernel)
{
    onxi_run_env e = env_of(st);
    st->reader = onxi_doc_reader(e.session->doc, st->cx, st->scratch);
    onx_status status = onxi_run_op_eager(&e, step->op, w->inputs, w->outputs, kernel);
    onxi_doc_reader_close(&st->reader);
    onxi_arena_reset(st->scratch);
    return status;
}

/* The last node of the model in an op, NULL if the session added the op. *fused: how many nodes come before it in a
 * chain. */
static const onx_node *last_node(const onxi_run_op *op, uint32_t *fused)
{
    const onx_node *last = op->link_count || op->added ? NULL : op->node;
    *fused = 0;
    for (uint32_t i = 0; i < op->link_count; i++) {
        if (op->links[i]->added)
            continue;
        *fused += last != NULL;
        last = op->links[i]->node;
    }
    return last;
}

/* Adds the nodes that the op replaces, and the names of the rules that replaced them, to the event. */
static void tell_op(const onxi_run_op *op, onx_run_event *event, const char **rules)
{
    for (uint32_t i = 0; i < op->link_count; i++)
        tell_op(op->links[i], event, rules);
    if (op->link_count)
        return;
    event->node_count += op->part_count ? op->part_count : !op->added;
    if (op->rule)
        rules[event->rule_count++] = op->rule;
}

static void tell(const onxi_run_state *st, const onxi_run_step *step, const onx_work *w, const onx_kernel *kernel,
                 uint64_t start)
{
    const onx_value *out = step->output_count ? w->outputs[0] : NULL;
    onx_run_event event = { .name = step->op ? onx_view(step->op->node->name) : onx_str_of("(layout)"),
                            .op_type = step->op ? onx_view(step->op->node->op_type) : onx_str_of("Reorder"),
                            .variant = kernel ? onxi_kernel_variant(kernel) : "plain",
                            .post_ops = step->prepare.post_ops_done,
                            .start_ns = start - st->outermost->start_ns,
                            .end_ns = onxi_run_clock_ns() - st->outermost->start_ns,
                            .output_bytes = out ? out->size : 0,
                            .output = out,
                            .outputs = (const onx_value *const *)w->outputs,
                            .output_count = step->output_count,
                            .each_run = step->eager,
                            .measured = step->measured };
    const char *rules[1 + ONXI_POST_OPS_MAX + ONXI_CHAIN_OPS];
    event.rules = rules;
    if (step->op) {
        uint32_t fused;
        event.node = last_node(step->op, &fused);
        event.post_ops += fused;
        tell_op(step->op, &event, rules);
    }
    for (uint32_t i = 0; i < step->prepare.post_ops_done && i < ONXI_POST_OPS_MAX; i++)
        tell_op(step->prepare.post_ops[i].prepare->place, &event, rules);
    const onx_run_options *to = st->outermost->options;
    to->event(to->user, &event);
}

/* Are the nodes of this graph reported? Those of subgraphs are reported on request only. */
static bool is_heard(const onxi_run_state *st)
{
    const onx_run_options *to = st->outermost->options;
    return to && to->event && (st->outermost == st || st->goes_on || to->inside);
}

/* Marks the lists that are unused after this step, or removes the marks. Lists for subgraphs are marked only if the
 * kernel promises to pass each on once. */
static void mark_given(onxi_run_state *st, const onxi_run_step *step, bool given)
{
    uint32_t first = 0, last = step->input_count;
    if (!step->eager) {
        bool inputs = step->kernel->flags & ONX_KERNEL_HANDS_ON, captures = step->kernel->flags & ONX_KERNEL_BRANCHES;
        first = inputs ? 0 : step->input_count;
        last = step->input_count + (captures ? step->capture_count : 0);
    }
    for (uint32_t i = first; i < last; i++) {
        if (!step->last_use[i])
            continue;
        onx_value *v = st->slots[step->inputs[i]];
        if (!given)
            v->flags &= (uint16_t)~ONXI_VALUE_GIVEN;
        else if (v->kind > ONX_VALUE_TENSOR && !(v->flags & ONXI_VALUE_BORROWED))
            v->flags |= ONXI_VALUE_GIVEN;
    }
}

static onx_status run_step(onxi_run_state *st, const onxi_run_step *step, onx_work *w, const onx_kernel **kernel)
{
    if (step->anew)
        return run_anew(st, step, w);
    if (!step->last_use)
        return onxi_run_work_run(step->kernel, w);
    mark_given(st, step, true);
    onx_status status = step->eager ? run_eager(st, step, w, kernel) : onxi_run_work_run(step->kernel, w);
    mark_given(st, step, false);
    return status;
}

static onx_status count_step(onxi_run_state *st, uint32_t done)
{
    const onx_status status = st->options->progress(st->options->user, done, st->plan->step_count);
    return status == ONX_OK
               ? ONX_OK
               : onxi_fail(st->cx, status, ONXI_NOWHERE, "the progress callback ended the run after %u of %u steps",
                           done, st->plan->step_count);
}

static onx_status run_steps(onxi_run_state *st)
{
    onxi_run_plan *plan = st->plan;
    const onxi_run_watch *watch = &st->outermost->watch;
    const bool telling = is_heard(st);
    const bool counting = st->options && st->options->progress && st->outermost == st;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onxi_run_step *step = &plan->steps[i];
        const onx_kernel *kernel = step->kernel;
        if (ONXI_PLATFORM_ROOMY && plan->later && i == plan->later->from) {
            bool done;
            ONX_TRY(onxi_run_rest_run(st, &done));
            if (done) {
                i = plan->later->to - 1;
                continue;
            }
        }
        uint64_t start = telling ? onxi_run_clock_ns() : 0;
        onx_status going = onxi_run_watch_look(watch);
        if (going != ONX_OK)
            return onxi_run_watch_fail(watch, going, st->cx, step->op);
        if (counting)
            ONX_TRY(count_step(st, i));
        onxi_run_zones_enter(st, i);
        ONX_TRY(run_step(st, step, &st->works[i], &kernel));
        if (telling)
            tell(st, step, &st->works[i], kernel, start);
        ONX_TRY(onxi_run_zones_leave(st, i, kernel));
    }
    /* Results that come too late are none. */
    const onx_status going = st->outermost == st ? onxi_run_watch_look(watch) : ONX_OK;
    return going == ONX_OK ? ONX_OK : onxi_run_watch_fail(watch, going, st->cx, NULL);
}

/* Empties lists after the run, since their items need not live longer. */
static void drop_lists(onxi_run_state *st)
{
    for (uint32_t i = 0; i < st->plan->slot_count; i++)
        if (st->slots[i] != &st->values[i] && st->slots[i]->kind > ONX_VALUE_TENSOR)
            onx_value_reset_list(st->slots[i], ONX_VALUE_NONE, ONX_UNDEFINED);
}

onx_status onxi_run_state_run(onxi_run_state *st, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              uint32_t output_count)
{
    take_inputs(st, inputs);
    onxi_arena_reset(st->text);
    onx_status status = run_steps(st);
    if (status == ONX_OK)
        status = onxi_run_outputs_put(st, cx, outputs, output_count);
    if (st->plan->has_dynamic)
        drop_lists(st);
    give_back(st, inputs);
    return status;
}

static onx_status run_main(onxi_run_state *st, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs)
{
    st->entered = 0;
    st->start_ns = onxi_run_clock_ns();
    onxi_run_aim_outputs(st, inputs, outputs);
    onx_status status = onxi_run_state_run(st, cx, inputs, outputs, st->plan->graph->output_count);
    return status;
}

/* ---- finding a plan ---- */

bool onxi_run_plan_fits(const onxi_run_plan *plan, const onx_value *const *inputs)
{
    const onxi_run_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->input_count + g->capture_count; i++) {
        const onx_value *want = &plan->input_types[i], *got = inputs[i];
        if (onxi_run_graph_knows(g, i))
            continue;
        if (!got || got->kind != want->kind)
            return false;
        if (got->kind != ONX_VALUE_TENSOR)
            continue;
        if (got->dtype != want->dtype || got->rank != want->rank ||
            (got->rank && memcmp(got->dims, want->dims, got->rank * sizeof *got->dims) != 0))
            return false;
    }
    return true;
}

onx_status onxi_run_planning_begin(onxi_run_session *s, const onxi_run_watch *watch, onx_ctx *cx)
{
    enum { TURN_NS = 2000000 }; /* interval at which the watch is checked */
    if (!onxi_run_watch_is_on(watch)) {
        pthread_mutex_lock(&s->root->planning);
        return ONX_OK;
    }
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TURN_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_mutex_timedlock(&s->root->planning, &until) == 0)
            return ONX_OK;
        const onx_status going = onxi_run_watch_look(watch);
        if (going != ONX_OK)
            return onxi_run_watch_fail(watch, going, cx, NULL);
    }
}

void onxi_run_planning_end(onxi_run_session *s)
{
    onxi_run_elements_end(s);
    pthread_mutex_unlock(&s->root->planning);
}

typedef struct wanted { /* the plan to look for */
    const onx_value *const *inputs;
    bool nonfinite;
} wanted;

static bool plan_fits(const onxi_run_kept *kept, const void *user)
{
    const onxi_run_plan *plan = (const onxi_run_plan *)kept;
    const wanted *w = user;
    return plan->nonfinite == w->nonfinite && onxi_run_plan_fits(plan, w->inputs);
}

/* Finds a plan for these inputs, counts it as busy and moves it to the front; NULL: there is none. If `idle` is not
 * NULL, it gets an idle state of the plan. */
static onxi_run_plan *find_plan(onxi_run_graph *g, const onx_value *const *inputs, bool nonfinite,
                                onxi_run_state **idle)
{
    pthread_mutex_t *lock = &g->session->root->lock;
    const wanted w = { inputs, nonfinite };
    pthread_mutex_lock(lock);
    onxi_run_plan *plan = (onxi_run_plan *)onxi_run_recent_find(&g->plans, plan_fits, &w);
    if (plan && idle && (*idle = plan->idle))
        plan->idle = (*idle)->next;
    pthread_mutex_unlock(lock);
    return plan;
}

/* Bytes of the plan, of a state of it, and of what libraries allocate for its kernels. */
static uint64_t cost_of(const onxi_run_plan *plan)
{
    enum { EACH = 1 << 14 }; /* bytes that oneDNN takes for a primitive and its code */
    uint64_t size = onx_arena_size(plan->arena);
    for (uint32_t i = 0; i < plan->step_count; i++)
        size += plan->steps[i].kernel && plan->steps[i].kernel->release ? EACH : 0;
    return onxi_add_u64(size, plan->buffer_size, &size) ? size : UINT64_MAX;
}

static void add_plan(onxi_run_graph *g, onxi_run_plan *plan)
{
    const onx_session_options *o = &g->session->options;
    const uint32_t least = onxi_run_graph_plans(g);
    const bool many = !g->depth && !o->lean_memory;
    const uint64_t room = o->memory / 16 < ONXI_PLANS_ROOM ? o->memory / 16 : ONXI_PLANS_ROOM;
    pthread_mutex_t *lock = &g->session->root->lock;
    plan->kept.size = cost_of(plan);
    onxi_run_seats_clear(g->session); /* plans in use are not freed */
    pthread_mutex_lock(lock);
    onxi_run_kept *old = onxi_run_recent_add(&g->plans, &plan->kept, least, many ? ONXI_PLANS_SMALL : least, room);
    pthread_mutex_unlock(lock);
    while (old) {
        onxi_run_kept *next = old->next;
        onxi_run_plan_free(g->session, (onxi_run_plan *)old);
        old = next;
    }
}

onx_status onxi_run_plan_take(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch,
                              bool nonfinite, onx_ctx *cx, onxi_run_plan **out, onxi_run_state **idle)
{
    if (idle)
        *idle = NULL;
    if ((*out = find_plan(g, inputs, nonfinite, idle)))
        return ONX_OK;
    ONX_TRY(onxi_run_planning_begin(g->session, watch, cx));
    onx_status status = ONX_OK;
    if (!(*out = find_plan(g, inputs, nonfinite, idle))) { /* unless another thread has made it meanwhile */
        status = onxi_run_plan_new(g, inputs, watch, nonfinite, cx, out);
        if (ONXI_RUN_MEASURES && status == ONX_OK && onxi_run_measure_is_due(*out))
            status = onxi_run_measure(g, inputs, watch, cx, out);
        if (status == ONX_OK)
            add_plan(g, *out);
        if (ONXI_PLATFORM_KEEPS)
            onxi_store_tell(g->session->root->store, cx);
    }
    onxi_run_planning_end(g->session);
    return status;
}

void onxi_run_plan_let_go(onxi_run_session *s, onxi_run_plan *plan, onxi_run_state *idle)
{
    pthread_mutex_lock(&s->root->lock);
    if (idle) {
        idle->next = plan->idle;
        plan->idle = idle;
    }
    const bool last = onxi_run_recent_let_go(&plan->kept);
    pthread_mutex_unlock(&s->root->lock);
    if (last)
        onxi_run_plan_free(s, plan);
}

static onx_status run_once(onxi_run_graph *g, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                           const onx_run_options *options, const onxi_run_watch *watch, bool nonfinite)
{
    onxi_run_session *s = g->session;
    onxi_run_state *state = onxi_run_seat_take(s, inputs, nonfinite);
    onxi_run_plan *plan = state ? state->plan : NULL;
    onx_status status = ONX_OK;
    if (!state) {
        ONX_TRY(onxi_run_plan_take(g, inputs, watch, nonfinite, cx, &plan, &state));
        if (!state && !(state = onxi_run_seat_find(s, plan)))
            status = onxi_run_state_new(s, plan, NULL, &state);
    }
    if (state) {
        state->options = options;
        state->watch = *watch;
        if (status == ONX_OK)
            status = run_main(state, cx, inputs, outputs);
        if (status != ONX_OK)
            onxi_diag_move(cx, state->cx);
    }
    if (status == ONX_OK) {
        onxi_run_seat_leave(s, state);
    } else { /* the state is undefined after a failure */
        onxi_run_state_free(state);
        onxi_run_plan_let_go(s, plan, NULL);
    }
    return status;
}

onx_status onxi_run_graph_run(onxi_run_graph *g, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              const onx_run_options *options)
{
    const onxi_run_watch watch = onxi_run_watch_new(cx, options);
    const size_t errors = onx_diag_total(cx, ONX_ERROR);
    const bool once = g->session->once;
    onx_status status = run_once(g, cx, inputs, outputs, options, &watch, once);
    if (!once && status == ONX_E_UNSUPPORTED &&
        onx_diag_total(cx, ONX_ERROR) == errors) /* a kernel declined while running */
        status = run_once(g, cx, inputs, outputs, options, &watch, true);
    return status;
}
