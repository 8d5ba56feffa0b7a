/* run_cache.c - caches: inputs that one node reads, updates and returns as an output. */
#include "run/run.h"

static bool is_update(const onxi_run_op *op, uint32_t slot, uint32_t *out)
{
    for (uint32_t k = 0; k < op->kernel_count; k++) {
        const onx_kernel *kernel = op->kernels[k];
        for (uint32_t i = 0; i < kernel->updates; i++) {
            const uint32_t from = kernel->update_input + i, to = kernel->update_output + i;
            if (from < op->input_count && op->inputs[from] == slot && to < op->output_count) {
                *out = op->outputs[to];
                return true;
            }
        }
    }
    return false;
}

bool onxi_run_cache_output(const onxi_run_graph *g, uint32_t input, uint32_t *output)
{
    uint32_t made;
    if (input >= g->input_count)
        return false;
    const onxi_run_graph_slot *slot = &g->slots[g->inputs[input]];
    if (slot->uses != 1 || slot->user >= g->op_count || !is_update(&g->ops[slot->user], g->inputs[input], &made))
        return false;
    for (*output = 0; *output < g->output_count; (*output)++)
        if (g->outputs[*output] == made)
            return true;
    return false;
}
