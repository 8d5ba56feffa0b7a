/* transform_grad_cut.c - cuts a list of nodes so that the values that cross the cuts and the largest segment need as
 * little memory as possible: a binary search finds the smallest budget, and for each budget one pass over the nodes
 * finds the cuts with the least data. */
#include "transform/transform_grad_cut.h"

enum { HALVINGS = 24, PENALTIES = 12 };

typedef struct search {
    const onxi_grad_cut_task *task;
    double *made;     /* before each node: everything that the backward pass needs */
    double *kept;     /* before each node: values with so long a lifetime that they are kept for all cuts */
    double *sum;      /* before each node: other values that the backward pass needs */
    double *cross;    /* of a cut before each node: other values that cross it */
    double *top;      /* per node: `kept`, `sum` and `beside` when the backward pass reaches it */
    double *cost;     /* of the best cuts up to one before each node: total size of crossing values */
    uint32_t *before; /* the cut before that one */
    uint32_t *open;   /* candidates for the start of a segment, by position and by cost */
    uint32_t *peaks;  /* nodes with the largest `top` since the previous entry */
    double penalty;   /* added for each cut */
} search;

static bool open_search(search *s, onx_arena *scratch, const onxi_grad_cut_task *task)
{
    double **const sums[] = { &s->made, &s->kept, &s->sum, &s->cross, &s->top, &s->cost };
    uint32_t **const places[] = { &s->before, &s->open, &s->peaks };
    *s = (search){ .task = task };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (!(*sums[i] = ONXI_ARRAY(scratch, double, (size_t)task->node_count + 2)))
            return false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!(*places[i] = ONXI_ARRAY(scratch, uint32_t, (size_t)task->node_count + 2)))
            return false;
    for (uint32_t i = 0; i < task->value_count; i++)
        if (task->values[i].needed)
            s->made[task->values[i].made + 1] += task->values[i].size;
    for (uint32_t i = 1; i <= task->node_count; i++)
        s->made[i] += s->made[i - 1];
    return true;
}

/* A value is kept for all cuts if the values computed between it and its last reader do not fit into a segment. Such
 * values count once, and the others cross few cuts. */
static void weigh(search *s, double budget)
{
    const onxi_grad_cut_task *task = s->task;
    const uint32_t count = task->node_count;
    for (uint32_t i = 0; i <= count + 1; i++)
        s->kept[i] = s->sum[i] = s->cross[i] = 0;
    for (uint32_t i = 0; i < task->value_count; i++) {
        const onxi_grad_cut_value *v = &task->values[i];
        if (v->last > v->made && s->made[v->last] - s->made[v->made + 1] > budget) {
            s->kept[v->made + 1] += v->size;
            continue;
        }
        if (v->needed)
            s->sum[v->made + 1] += v->size;
        if (v->last > v->made) {
            s->cross[v->made + 1] += v->size;
            s->cross[v->last + 1] -= v->size;
        }
    }
    for (uint32_t i = 1; i <= count; i++) {
        s->kept[i] += s->kept[i - 1];
        s->sum[i] += s->sum[i - 1];
        s->cross[i] += s->cross[i - 1];
        s->top[i - 1] = s->kept[i] + s->sum[i] + task->beside[i - 1];
    }
}

/* Finds the cuts with the least crossing data for which each segment fits into the budget. A candidate is never useful
 * again once a later one has no higher cost, or once its segment exceeds the budget. */
static bool fits(search *s, double budget)
{
    const uint32_t from = s->task->from, end = s->task->node_count;
    uint32_t first = 0, count = 0, peak = 0, peaks = 0; /* the remaining ranges of both lists */
    weigh(s, budget);
    s->cost[from] = 0;
    for (uint32_t i = from; i < end; i++) {
        if (i > from)
            s->cost[i] += s->cross[i] + s->penalty;
        const uint32_t newest = count > first ? s->open[count - 1] : i;
        const bool none = newest < i && s->cost[i] >= s->cost[newest] && s->sum[i] <= s->sum[newest];
        while (!none && count > first && s->cost[s->open[count - 1]] >= s->cost[i])
            count--;
        if (!none) /* something was computed since the last candidate */
            s->open[count++] = i;
        while (peaks > peak && s->top[s->peaks[peaks - 1]] <= s->top[i])
            peaks--;
        s->peaks[peaks++] = i;
        for (;; first++) { /* the segment up to and including node i */
            if (first == count)
                return false;
            const uint32_t p = s->open[first];
            while (s->peaks[peak] < p)
                peak++;
            if (s->top[s->peaks[peak]] - s->sum[p] + s->cost[p] <= budget)
                break;
        }
        s->before[i + 1] = s->open[first];
        s->cost[i + 1] = s->cost[s->open[first]];
    }
    return true;
}

static uint32_t list_cuts(const search *s, onxi_grad_cuts *cuts)
{
    const uint32_t from = s->task->from;
    uint32_t count = 1;
    for (uint32_t at = s->before[s->task->node_count]; at > from; at = s->before[at])
        count++;
    cuts->count = count;
    for (uint32_t at = s->before[s->task->node_count]; at > from; at = s->before[at])
        cuts->starts[--count] = at;
    cuts->starts[0] = from;
    return cuts->count;
}

/* The smallest budget if each cut has an additional cost. */
static void least(search *s, double penalty, double low, double high, onxi_grad_cuts *cuts)
{
    s->penalty = penalty;
    cuts->starts[0] = s->task->from;
    cuts->count = 1;
    cuts->memory = high;
    for (int i = 0; i < HALVINGS && high - low > high * 1e-4; i++) {
        const double budget = (low + high) / 2;
        if (fits(s, budget)) {
            cuts->memory = high = budget;
            list_cuts(s, cuts);
        } else {
            low = budget;
        }
    }
}

onx_status onxi_grad_cut(onx_arena *scratch, const onxi_grad_cut_task *task, onxi_grad_cuts *cuts)
{
    search s;
    double high = 0, low = 0;
    if (!open_search(&s, scratch, task) ||
        !(cuts->starts = ONXI_ARRAY(scratch, uint32_t, (size_t)task->node_count + 1)))
        return ONX_E_MEMORY;
    for (uint32_t i = task->from; i < task->node_count; i++) {
        const double one = s.made[i + 1] - s.made[i] + task->beside[i], all = s.made[i + 1] + task->beside[i];
        low = one > low ? one : low;
        high = all > high ? all : high;
    }
    least(&s, 0, low, high, cuts);
    const bool many = cuts->count > task->most;
    double cheap = 0, dear = high; /* penalties with more than enough cuts, and with few enough */
    for (int i = 0; task->most && many && i < PENALTIES; i++) {
        const double penalty = (cheap + dear) / 2;
        least(&s, penalty, low, high, cuts);
        if (cuts->count > task->most)
            cheap = penalty;
        else
            dear = penalty;
    }
    if (task->most && cuts->count > task->most)
        least(&s, dear, low, high, cuts);
    return ONX_OK;
}
