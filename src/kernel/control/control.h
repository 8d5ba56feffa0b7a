/* control.h - shared by operators with subgraphs: values that a body returns in each iteration, which are stacked or
 * passed to the next one. */
#ifndef ONXI_KERNEL_CONTROL_H
#define ONXI_KERNEL_CONTROL_H

#include "kernel/kernel.h"

/* A body and the values that pass through it. There is one for each state of a session, so iterations allocate
 * nothing. The first `carried` outputs are loop-carried: after each iteration, onxi_body_turn moves them from `next`
 * to `last`. */
typedef struct onxi_body {
    onx_ctx *cx;
    uint32_t inputs, outputs, carried;
    const onx_value **in;
    onx_value **next, **last; /* `last` has `carried` entries */
    onx_value *counter;       /* an int64 of rank 0 */
    onx_value *yes;           /* true, of rank 0 */
} onxi_body;
/* Called by `bind`. The caller makes the values of outputs after `carried`, where they are used. */
onx_status onxi_body_new(onx_work *work, uint32_t inputs, uint32_t outputs, uint32_t carried);
void onxi_body_free(void *body);
/* Moves the loop-carried outputs from `next` to `last`. */
void onxi_body_turn(onxi_body *body);
/* Empties sequences when the operator is done. */
void onxi_body_rest(onxi_body *body);

/* The type that an output of a body would have, for bodies that never ran: as the graph declares it, else as planned
 * for the inputs in `body`. Unknown sizes are 0. */
onx_status onxi_body_type(onx_work *work, const onxi_body *body, uint32_t index, const onx_graph *graph,
                          uint32_t output, onx_dtype *dtype, uint32_t *rank, int64_t *dims);
/* Copies strings of an output from the body's memory to that of the run. */
onx_status onxi_keep_texts(onx_work *work, onx_value *y, uint64_t first, uint64_t count);
/* Bits of a stored element; a string is an onx_str. */
uint32_t onxi_value_bits(const onx_value *v);

#endif
