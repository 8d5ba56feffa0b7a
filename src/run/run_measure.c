/* run_measure.c - measures which kernel rows are faster on this machine. Whole plans run in turns with the inputs of
 * the first run, one with the fixed order of rows and one with other rows, and are compared node by node. So the
 * changes of layout that a row causes are counted, and no operand is made up. Rows that seem faster must then be faster
 * together in one plan, compared with the fixed order. */
#include "run/run_choice.h"

enum {
    ALTERNATIVES = 4,    /* rows tried per node */
    PROOFS = 3,          /* plans that combine the rows found, each without those that were slower in the one before */
    LEAST = 2,           /* fewest runs of each side */
    ENOUGH = 30,         /* most runs */
    PHASE_NS = 500000000 /* time after which a phase ends once it has LEAST runs */
};
static const double wins = 0.97; /* a row wins a trial if it takes at most this part of the first row's time */

/* A session of the same model in one configuration, and its runs. */
typedef struct side {
    const onxi_run_watch *watch;
    onx_ctx *cx;
    onxi_run_session *s; /* NULL: not created yet */
    onx_value **outputs;
    const onxi_run_plan *plan; /* known after the first run */
    uint64_t *now, *least;     /* nanoseconds per choice of the plan: in this run, and the least of all runs */
    uint64_t total;            /* least time of a whole run */
    uint32_t at;               /* index of the next step */
} side;

/* The state of the search. Entry i of the table of all trials belongs to key i. */
typedef struct search {
    onxi_run_session *root;
    const onx_value *const *inputs;
    const onxi_run_watch *watch;
    uint64_t end_ns; /* end of the search in the time of onxi_run_clock_ns */
    onxi_run_choices *table;
    const onxi_run_chosen *keys; /* keys of the plan in the fixed order */
    uint32_t count;
    uint32_t *next;    /* per key: the next row to try; 0: none */
    uint32_t *best;    /* per key: the fastest row so far */
    double *ratio;     /* per key: its time divided by that of the first row */
    uint64_t *base_ns; /* per key: time of the first row in the current phase */
    side base;
} search;

/* ---- runs ---- */

static void note_step(void *user, const onx_run_event *event)
{
    side *x = user;
    if (!x->plan || x->at >= x->plan->step_count)
        return;
    const uint32_t chosen = x->plan->steps[x->at++].chosen;
    if (chosen)
        x->now[chosen - 1] += event->end_ns - event->start_ns;
}

static bool stop_run(void *user)
{
    return onxi_run_watch_look(((const side *)user)->watch) != ONX_OK;
}

static uint64_t left_ns(const search *m)
{
    const uint64_t now = onxi_run_clock_ns();
    return now < m->end_ns ? m->end_ns - now : 0;
}

static onx_status run_side(search *m, side *x)
{
    const uint64_t left = left_ns(m);
    const onx_run_options options = { .event = note_step,
                                      .user = x,
                                      .timeout_ns = left ? left : 1,
                                      .iterations = x->watch ? x->watch->iterations : 0,
                                      .stop = stop_run };
    x->at = 0;
    for (uint32_t i = 0; x->plan && i < x->plan->chosen_count; i++)
        x->now[i] = 0;
    const uint64_t start = onxi_run_clock_ns();
    ONX_TRY(onxi_run_graph_run(x->s->main, x->cx, m->inputs, x->outputs, &options));
    const uint64_t total = onxi_run_clock_ns() - start;
    const onxi_run_plan *plan = (const onxi_run_plan *)x->s->main->plans.first;
    /* A nonfinite plan comes from a row that declined while running because it would lose NaN. */
    if (!plan || plan->nonfinite || (x->plan && plan != x->plan))
        return ONX_E_UNSUPPORTED;
    if (!x->plan)
        return ONX_OK;
    x->total = total < x->total ? total : x->total;
    for (uint32_t i = 0; i < plan->chosen_count; i++)
        x->least[i] = x->now[i] < x->least[i] ? x->now[i] : x->least[i];
    return ONX_OK;
}

static void forget_times(side *x)
{
    x->total = UINT64_MAX;
    for (uint32_t i = 0; x->plan && i < x->plan->chosen_count; i++)
        x->least[i] = UINT64_MAX;
}

/* ---- sides ---- */

/* Size of the arrays `now` and `least`. */
static uint64_t times_size(const onxi_run_plan *plan)
{
    return 2 * (plan->chosen_count + UINT64_C(1)) * sizeof(uint64_t);
}

static void close_side(side *x)
{
    if (!x->cx)
        return;
    const uint32_t outputs = x->s && x->s->main ? x->s->main->output_count : 0;
    for (uint32_t i = 0; x->outputs && i < outputs; i++)
        onx_value_free(x->outputs[i]);
    onxi_release(x->cx, x->outputs, (outputs + 1u) * sizeof *x->outputs);
    if (x->plan)
        onxi_release(x->cx, x->now, times_size(x->plan));
    if (x->s) {
        x->s->choices = NULL; /* they belong to the search */
        onxi_run_session_close(x->s);
        onxi_release(x->cx, x->s, sizeof *x->s);
    }
    onx_ctx_free(x->cx);
    *x = (side){ 0 };
}

/* Opens a session that looks rows up in the table of the search, and runs it once, which makes the plan. */
static onx_status open_side(search *m, side *x)
{
    onx_session_options options = m->root->options;
    *x = (side){ .watch = m->watch, .cx = onxi_run_ctx_child(m->root->cx) };
    if (!x->cx || !(x->s = onxi_resize(x->cx, NULL, 0, sizeof *x->s)))
        return ONX_E_MEMORY;
    memset(x->s, 0, sizeof *x->s);
    options.measure = false;
    x->s->unsorted = m->root->unsorted;
    x->s->watch = onxi_run_watch_new(
        NULL, &(onx_run_options){ .timeout_ns = left_ns(m) + 1, .stop = m->watch ? stop_run : NULL, .user = x });
    ONX_TRY(onxi_run_session_open(x->s, x->cx, m->root->doc, &options, NULL, NULL));
    x->s->watch = (onxi_run_watch){ .timeout_ns = 0 };
    x->s->choices = m->table;
    const uint64_t outputs = x->s->main->output_count + 1u;
    if (!(x->outputs = onxi_resize(x->cx, NULL, 0, outputs * sizeof *x->outputs)))
        return ONX_E_MEMORY;
    memset(x->outputs, 0, outputs * sizeof *x->outputs);
    ONX_TRY(run_side(m, x));
    const onxi_run_plan *plan = (const onxi_run_plan *)x->s->main->plans.first;
    if (!(x->now = onxi_resize(x->cx, NULL, 0, times_size(plan))))
        return ONX_E_MEMORY;
    x->least = x->now + plan->chosen_count;
    x->plan = plan;
    forget_times(x);
    return ONX_OK;
}

/* Runs both sides in turns, for the given fraction of the remaining time. */
static onx_status run_both(search *m, side *x, unsigned parts)
{
    const uint64_t share = left_ns(m) / parts, start = onxi_run_clock_ns();
    forget_times(&m->base);
    for (int runs = 0; runs < ENOUGH; runs++) {
        const uint64_t spent = onxi_run_clock_ns() - start;
        if (runs >= LEAST && (spent >= share || spent >= PHASE_NS))
            break;
        ONX_TRY(run_side(m, &m->base));
        ONX_TRY(run_side(m, x));
    }
    for (uint32_t i = 0; i < m->count; i++)
        m->base_ns[i] = m->base.least[i];
    return ONX_OK;
}

/* ---- trials ---- */

/* Finds the key of a choice in a trial's plan; false if the plan in the fixed order has no such key. */
static bool find_key(const search *m, const side *x, uint32_t chosen, uint32_t *key)
{
    return onxi_run_choices_find(m->table, x->plan->chosen[chosen].key, key) && *key < m->count;
}

/* Ends the search for nodes whose rows were all tried or declined: they use the first row again. *any: rows of other
 * nodes are left to try. */
static void note_rows(search *m, const side *x, bool *any)
{
    *any = false;
    for (uint32_t i = 0, key; i < x->plan->chosen_count; i++) {
        if (!find_key(m, x, i, &key) || !m->next[key])
            continue;
        const onxi_run_chosen *c = &x->plan->chosen[i];
        if (c->row < m->next[key] || c->row >= c->count)
            m->next[key] = 0;
        else
            *any = true;
    }
}

static void note_times(search *m, const side *x)
{
    for (uint32_t i = 0, key; i < x->plan->chosen_count; i++) {
        if (!find_key(m, x, i, &key) || !m->next[key] || !m->base_ns[key])
            continue;
        const uint64_t base = m->base_ns[key], took = x->least[i];
        const double ratio = (double)took / (double)base;
        /* Less than a thousandth of a run does not justify different bits. */
        if (ratio < wins && ratio < m->ratio[key] && (base - took) * 1000 >= m->base.total) {
            m->ratio[key] = ratio;
            m->best[key] = x->plan->chosen[i].row;
        }
        m->next[key] = x->plan->chosen[i].row + 1 < x->plan->chosen[i].count ? x->plan->chosen[i].row + 1 : 0;
    }
}

static onx_status try_rows(search *m)
{
    bool any = true;
    for (unsigned k = 0; any && k < ALTERNATIVES; k++) {
        side x;
        onx_status status = open_side(m, &x);
        if (status == ONX_OK)
            note_rows(m, &x, &any);
        if (status == ONX_OK && any) {
            status = run_both(m, &x, ALTERNATIVES - k + PROOFS);
            if (status == ONX_OK)
                note_times(m, &x);
        }
        close_side(&x);
        ONX_TRY(status);
    }
    return ONX_OK;
}

/* ---- proofs ---- */

/* Writes the fastest rows to the table; returns how many nodes do not use their first row. */
static uint32_t put_best(search *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const bool other = m->best[i] < m->keys[i].count;
        m->table->list[i].row = other ? onxi_run_row_digest(m->keys[i].rows, m->best[i]) : (onxi_digest){ 0 };
        count += other;
    }
    return count;
}

/* Drops rows that were not faster in the combined plan; returns how many. */
static uint32_t take_back(search *m, const side *x)
{
    uint32_t count = 0;
    for (uint32_t i = 0, key; i < x->plan->chosen_count; i++)
        if (find_key(m, x, i, &key) && m->best[key] < m->keys[key].count &&
            (double)x->least[i] > (1 + wins) / 2 * (double)m->base_ns[key]) {
            m->best[key] = m->keys[key].count;
            count++;
        }
    return count;
}

/* Keeps the fastest rows in the table only if the plan that combines them is faster as a whole and in each of these
 * nodes; else keeps none. */
static onx_status prove(search *m)
{
    m->table->trial = NULL;
    for (unsigned k = 0; put_best(m) && k < PROOFS; k++) {
        side x;
        onx_status status = open_side(m, &x);
        if (status == ONX_OK)
            status = run_both(m, &x, PROOFS - k);
        const bool faster = status == ONX_OK && x.total < m->base.total;
        const uint32_t back = status == ONX_OK ? take_back(m, &x) : 0;
        close_side(&x);
        ONX_TRY(status);
        if (faster && !back)
            return ONX_OK;
        if (!back)
            break;
    }
    for (uint32_t i = 0; i < m->count; i++)
        m->best[i] = m->keys[i].count;
    (void)put_best(m);
    return ONX_OK;
}

/* ---- the whole search ---- */

static onx_status search_open(search *m, onx_arena *arena, const onxi_run_plan *plan)
{
    m->count = plan->chosen_count;
    m->keys = plan->chosen;
    m->next = ONXI_ARRAY(arena, uint32_t, m->count);
    m->best = ONXI_ARRAY(arena, uint32_t, m->count);
    m->ratio = ONXI_ARRAY(arena, double, m->count);
    m->base_ns = ONXI_ARRAY(arena, uint64_t, m->count);
    m->table = onxi_run_choices_new(m->root->cx);
    if (!m->next || !m->best || !m->ratio || !m->base_ns || !m->table)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < m->count; i++) {
        const onxi_run_chosen *key = &m->keys[i];
        m->next[i] = key->row + 1 < key->count ? key->row + 1 : 0;
        m->best[i] = key->count;
        m->ratio[i] = 1;
        if (!onxi_run_choices_put(m->table, key->key, (onxi_digest){ 0 }))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Finds faster rows for the nodes of the plan and leaves them in the table of the search. */
static onx_status search_rows(search *m)
{
    ONX_TRY(open_side(m, &m->base));
    m->table->trial = m->next;
    /* Each plan runs once more than is counted, and so does the plan it is compared with. */
    const uint64_t start = onxi_run_clock_ns();
    ONX_TRY(run_side(m, &m->base));
    if ((onxi_run_clock_ns() - start) * (4 * LEAST + 2) > left_ns(m))
        return ONX_OK;
    ONX_TRY(try_rows(m));
    return prove(m);
}

/* Copies the rows found to the session's table and marks the graph as measured. Nodes that there was no time for keep
 * the fixed order. */
static bool take_over(search *m, onxi_digest context, bool found)
{
    onxi_run_choices *to = m->root->choices;
    bool good = onxi_run_choices_put(to, context, (onxi_digest){ 0 });
    for (uint32_t i = 0; good && found && i < m->count; i++) {
        const onxi_run_choice *from = &m->table->list[i];
        if (from->row.a || from->row.b)
            good = onxi_run_choices_put(to, from->key, from->row);
    }
    if (good)
        onxi_run_choices_keep(m->root);
    return good;
}

bool onxi_run_measure_is_due(const onxi_run_plan *plan)
{
    uint32_t index;
    const onxi_run_graph *g = plan->graph;
    if (!plan->chosen_count)
        return false;
    const onxi_run_choices *c = g->session->choices;
    /* Two more sessions and their buffers have to fit into the memory limit. */
    const uint64_t limit = g->session->options.memory, constants = onxi_run_constant_bytes(g->session);
    return c->left_ns && !c->trial && !onxi_run_choices_find(c, plan->context, &index) && constants < limit / 3 &&
           plan->buffer_size < limit / 3 - constants;
}

onx_status onxi_run_measure(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch, onx_ctx *cx,
                            onxi_run_plan **plan)
{
    onxi_run_choices *c = g->session->choices;
    const uint64_t start = onxi_run_clock_ns();
    search m = { .root = g->session, .inputs = inputs, .watch = watch };
    m.end_ns = start + c->left_ns;
    if (m.watch && watch->deadline_ns) { /* the run that waits for this needs time, too */
        const uint64_t half = watch->deadline_ns > start ? (watch->deadline_ns - start) / 2 : 0;
        m.end_ns = half < c->left_ns ? start + half : m.end_ns;
    }
    onx_arena *arena;
    const onxi_diag_mark said = onxi_diag_here(g->session->cx);
    if (onx_arena_new(g->session->cx, &arena) != ONX_OK) {
        onxi_diag_rewind(g->session->cx, said);
        return ONX_OK;
    }
    onx_status status = search_open(&m, arena, *plan);
    if (status == ONX_OK)
        status = search_rows(&m);
    close_side(&m.base);
    onxi_diag_rewind(g->session->cx, said);
    const bool ended = m.watch && onxi_run_watch_look(m.watch) != ONX_OK;
    const uint64_t spent = onxi_run_clock_ns() - start;
    const bool late = spent >= c->left_ns; /* sessions after this one would run out of time as well */
    c->left_ns = status == ONX_OK && !late ? c->left_ns - spent : 0;
    const bool taken = !ended && (status == ONX_OK || late) && take_over(&m, (*plan)->context, status == ONX_OK);
    onxi_run_choices_free(m.table);
    onx_arena_free(arena);
    if (!taken || status != ONX_OK)
        return ONX_OK;
    onxi_run_plan_free(g->session, *plan);
    return onxi_run_plan_new(g, inputs, watch, false, cx, plan);
}
