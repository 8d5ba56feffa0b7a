/* run_uses.c - uses of values in a graph: unused ops are removed, the readers of each value are counted, and unused
 * outputs are not requested. */
#include "run/run.h"

/* Counts the uses by the parts of an op that replaces other ops, as types and conditions of a plan depend on their
 * inputs (such as the shape of a Reshape), and by the parts of parts, since another rule may have replaced an op that
 * had replaced others. The inputs of the op itself have been counted. */
static void count_uses_of_parts(onxi_run_graph *g, uint32_t index, const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->part_count; i++) {
        for (uint32_t k = 0; k < op->parts[i].input_count; k++) {
            const uint32_t slot = op->parts[i].inputs[k];
            bool seen = slot == ONXI_NO_SLOT;
            for (uint32_t n = 0; n < op->input_count && !seen; n++)
                seen = op->inputs[n] == slot;
            for (uint32_t n = 0; n < i && !seen; n++)
                for (uint32_t o = 0; o < op->parts[n].output_count; o++)
                    seen |= op->parts[n].outputs[o] == slot;
            if (!seen) {
                g->slots[slot].uses++;
                g->slots[slot].user = index;
            }
        }
        count_uses_of_parts(g, index, &op->parts[i]);
    }
}

/* Marks the values that reach a row that supports layouts. Elementwise ops and views hand on the layout that they get.
 */
static void mark_layouts(onxi_run_graph *g)
{
    for (uint32_t i = 0; i < g->slot_count; i++)
        g->slots[i].in_layouts = false;
    for (uint32_t i = g->op_count; i-- > 0;) {
        const onxi_run_op *op = &g->ops[i];
        bool takes = false, hands_on = false;
        for (uint32_t k = 0; k < op->kernel_count; k++) {
            const onx_kernel *kernel = op->kernels[k];
            hands_on |= kernel->flags & (ONX_KERNEL_FLAT | ONX_KERNEL_VIEW) || onxi_element_is(kernel, op->input_count);
            takes |= (kernel->flags & ONX_KERNEL_LAYOUTS) != 0;
        }
        if (hands_on)
            takes = op->output_count && op->outputs[0] != ONXI_NO_SLOT && g->slots[op->outputs[0]].in_layouts;
        for (uint32_t k = 0; takes && k < op->input_count; k++)
            if (op->inputs[k] != ONXI_NO_SLOT)
                g->slots[op->inputs[k]].in_layouts = true;
    }
}

onx_status onxi_run_graph_count_uses(onxi_run_graph *g)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->op_count; i++)
        if (g->ops[i].needed)
            g->ops[kept++] = g->ops[i];
    g->op_count = kept;
    for (uint32_t i = 0; i < g->slot_count; i++) {
        g->slots[i].uses = 0;
        g->slots[i].is_output = false;
    }
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < g->ops[i].input_count + g->ops[i].capture_count; k++)
            if (g->ops[i].inputs[k] != ONXI_NO_SLOT) {
                g->slots[g->ops[i].inputs[k]].uses++;
                g->slots[g->ops[i].inputs[k]].user = i;
            }
    for (uint32_t i = 0; i < g->op_count; i++)
        count_uses_of_parts(g, i, &g->ops[i]);
    for (uint32_t i = 0; i < g->output_count; i++) {
        g->slots[g->outputs[i]].uses++;
        g->slots[g->outputs[i]].is_output = true;
    }
    for (uint32_t i = 0; i < g->op_count; i++) { /* unused outputs are not requested */
        onxi_run_op *op = &g->ops[i];
        for (uint32_t k = 0; k < op->output_count; k++)
            if (op->outputs[k] != ONXI_NO_SLOT && !g->slots[op->outputs[k]].uses)
                op->outputs[k] = ONXI_NO_SLOT;
        while (op->output_count > 1 && op->outputs[op->output_count - 1] == ONXI_NO_SLOT)
            op->output_count--;
    }
    mark_layouts(g);
    return ONX_OK;
}

void onxi_run_op_mark_conditions(const onxi_run_graph *g, const onxi_run_op *op, bool *slots)
{
    for (uint32_t i = 0; i < op->condition_count; i++) {
        const onxi_rewrite_condition *c = &op->conditions[i];
        const uint32_t named[] = { c->value, c->other, c->bounds[0], c->bounds[1], c->bounds[2], c->bounds[3] };
        for (uint32_t k = 0; k < sizeof named / sizeof *named; k++)
            if (named[k] < g->slot_count)
                slots[named[k]] = true;
    }
}
