/* run_bind.h - what a session compares with the declared types of its inputs and outputs in each run. */
#ifndef ONXI_RUN_BIND_H
#define ONXI_RUN_BIND_H

#include "run/run.h"

#include <stdatomic.h>

/* What a session has warned of. Runs of several threads share it. */
struct onxi_run_said {
    atomic_bool sizes;    /* a name of a dimension has several sizes */
    atomic_bool *results; /* per output: it contradicts its declaration */
    uint32_t count;
};

onx_status onxi_run_said_open(onx_ctx *cx, uint32_t outputs, onxi_run_said *said);
void onxi_run_said_close(onx_ctx *cx, onxi_run_said *said);

/* Checks that the values (NULL: not given) have the types and shapes that the model declares for its inputs. Unless
 * `strict`, a list of one element passes for a scalar. */
typedef struct onxi_run_inputs {
    const onx_value *const *inputs; /* the given values, or scalars over their memory */
    void *memory;
    size_t size;
} onxi_run_inputs;
onx_status onxi_run_inputs_bind(onx_ctx *cx, const onx_graph *graph, const onx_value *const *inputs, bool strict,
                                onxi_run_said *said, onxi_run_inputs *out);
void onxi_run_inputs_free(onx_ctx *cx, onxi_run_inputs *bound);
/* Warns of results that contradict the declared types of the outputs. */
void onxi_run_bind_results(onx_ctx *cx, onx_value_info *const *info, uint32_t count, onx_value *const *values,
                           onxi_run_said *said);

#endif
