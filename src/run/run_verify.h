/* run_verify.h - checks a finished plan, without any code of the planner.
 * docs/notes/verifier.md */
#ifndef ONXI_RUN_VERIFY_H
#define ONXI_RUN_VERIFY_H

#include "run/run.h"

/* Are the plans of the session checked? */
static inline bool onxi_run_verifies(const onxi_run_session *s)
{
#ifdef ONX_VERIFY
    (void)s;
    return true;
#else
    return s->options.verify;
#endif
}

/* Walks the steps of a plan with the bytes of the buffer that are still needed. Fails with ONX_E_INTERNAL, and a
 * diagnostic in `cx` that names step, value and bytes, if a step reads a value that nothing has written, writes outside
 * of its storage, or overwrites bytes that a later step, an output or another operand still reads. Takes n log n time
 * for a plan of n operands. The plan must not change meanwhile. */
onx_status onxi_run_verify(const onxi_run_plan *plan, onx_ctx *cx);

#endif
