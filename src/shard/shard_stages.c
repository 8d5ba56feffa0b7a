/* shard_stages.c - cuts the list of nodes into pipeline stages of equal work where little data crosses. */
#include "shard/shard_spread.h"

#include "value/value.h"

/* The number of operations that take about as long as one byte of memory traffic; only relative weights of nodes
 * matter. */
#define OPERATIONS_PER_BYTE 4.0

static double weight_of(const onxi_spread *s, uint32_t node)
{
    const onxi_shard_work w = onxi_shard_work_of(s->plan, &s->plan->node[node]);
    return w.operations / OPERATIONS_PER_BYTE > w.bytes ? w.operations / OPERATIONS_PER_BYTE : w.bytes;
}

static bool counts(const onxi_shard_node *n)
{
    return n->live && !n->constant;
}

static void count_crossing(const onxi_spread *s, double *crossing)
{
    const onxi_shard_plan *plan = s->plan;
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const onxi_shard_value *value = &plan->value[v];
        uint32_t last = 0;
        if (value->constant || value->node == ONXI_SHARD_NONE)
            continue;
        for (uint32_t i = s->first[v]; i < s->first[v + 1]; i++)
            last = s->use[i].node > last ? s->use[i].node : last;
        if (last <= value->node)
            continue;
        double size = onxi_element_size(value->dtype);
        for (uint32_t k = 0; k < value->rank; k++)
            size *= (double)value->dims[k];
        crossing[value->node + 1] += size;
        crossing[last + 1] -= size;
    }
    for (uint32_t i = 1; i <= plan->node_count; i++)
        crossing[i] += crossing[i - 1];
}

typedef struct cutter {
    const onxi_spread *s;
    double *before;   /* per node: the work of earlier nodes */
    double *crossing; /* per node: bytes of values that earlier nodes compute, and that it or later nodes read */
    uint32_t *places; /* per node: number of later nodes at which stages may begin */
} cutter;

static bool may_begin(const onxi_spread *s, uint32_t node)
{
    return counts(&s->plan->node[node]) && !s->tied[node];
}

/* The node at which the next stage begins: near `goal` of the work, where the least data crosses, and so that `more`
 * stages can follow. UINT32_MAX: none. */
static uint32_t find_cut(const cutter *c, uint32_t from, double goal, double slack, uint32_t more)
{
    uint32_t best = UINT32_MAX;
    double best_cost = 0;
    for (uint32_t i = from; i < c->s->plan->node_count; i++) {
        const double away = c->before[i] > goal ? c->before[i] - goal : goal - c->before[i];
        if (!may_begin(c->s, i) || c->places[i] < more)
            continue;
        /* within the slack the amount of data decides, outside of it the distance */
        const double cost = away <= slack ? c->crossing[i] : 1e30 + away * 1e15;
        if (best == UINT32_MAX || cost < best_cost || (cost <= best_cost && c->before[i] <= goal)) {
            best = i;
            best_cost = cost;
        }
    }
    return best;
}

static onx_status open_cutter(cutter *c)
{
    const onxi_shard_plan *plan = c->s->plan;
    c->before = ONXI_ARRAY(plan->arena, double, (size_t)plan->node_count + 1);
    c->crossing = ONXI_ARRAY(plan->arena, double, (size_t)plan->node_count + 2);
    c->places = ONXI_ARRAY(plan->arena, uint32_t, (size_t)plan->node_count + 1);
    if (!c->before || !c->crossing || !c->places)
        return ONX_E_MEMORY;
    count_crossing(c->s, c->crossing);
    for (uint32_t i = 0; i < plan->node_count; i++)
        c->before[i + 1] = c->before[i] + (counts(&plan->node[i]) ? weight_of(c->s, i) : 0);
    for (uint32_t i = plan->node_count; i-- > 1;)
        c->places[i - 1] = c->places[i] + may_begin(c->s, i);
    return ONX_OK;
}

onx_status onxi_spread_stages(onxi_spread *s)
{
    const onxi_shard_plan *plan = s->plan;
    cutter c = { .s = s };
    uint32_t at = 0;
    ONX_TRY(open_cutter(&c));
    while (at < plan->node_count && !counts(&plan->node[at]))
        at++;
    const double all = c.before[plan->node_count];
    for (uint32_t stage = 0; stage + 1 < s->stages; stage++) {
        const uint32_t next =
            find_cut(&c, at + 1, all * (stage + 1) / s->stages, all / s->stages / 8, s->stages - stage - 2);
        if (next == UINT32_MAX)
            return onxi_fail(plan->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the model cannot be cut into %u stages",
                             s->stages);
        for (uint32_t i = next; i < plan->node_count; i++)
            s->stage[i] = stage + 1;
        onxi_spread_tell(s, "stage", next, "stage %u begins here, with %.0f bytes from those before", stage + 1,
                         c.crossing[next]);
        at = next;
    }
    return ONX_OK;
}
