/* control.h - what operators with subgraphs share: values that come out of a body in each iteration and are
 * stacked or passed on. */
#ifndef ONXI_KERNEL_CONTROL_H
#define ONXI_KERNEL_CONTROL_H

#include "kernel/kernel.h"

/* A body, and what flows through it, one for each state of a session: nothing is allocated from one iteration to the
 * next. The first `carried` outputs are loop-carried: what `next` gets in an iteration is in `last` afterwards. */
typedef struct onxi_body {
    onx_ctx *cx;
    uint32_t inputs, outputs, carried;
    const onx_value **in;
    onx_value **next, **last; /* last: the first `carried` */
    onx_value *counter;       /* an int64 of rank 0 */
    onx_value *yes;           /* true, of rank 0 */
} onxi_body;
/* In bind. The caller makes the values for outputs after `carried`, where they are used. */
onx_status onxi_body_new(onx_work *work, uint32_t inputs, uint32_t outputs, uint32_t carried);
void onxi_body_free(void *body);
/* Passes the carried outputs on: last[i] is what came out. */
void onxi_body_turn(onxi_body *body);
/* Sequences release their items once the operator is done. */
void onxi_body_rest(onxi_body *body);

/* The type of what an output of the body would be, for bodies that never ran: as declared, else as planned with the
 * inputs in `body`; unknown sizes are 0. */
onx_status onxi_body_type(onx_work *work, const onxi_body *body, uint32_t index, const onx_graph *graph,
                          uint32_t output, onx_dtype *dtype, uint32_t *rank, int64_t *dims);
/* Strings of an output move from the body's memory to that of the run. */
onx_status onxi_keep_texts(onx_work *work, onx_value *y, uint64_t first, uint64_t count);
/* Bits of an element as it is stored; strings are onx_str. */
uint32_t onxi_value_bits(const onx_value *v);

#endif
