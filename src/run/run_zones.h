/* run_zones.h - red zones: in runs whose plans are checked, the bytes after each value of the buffer belong to nothing,
 * and a step that writes there is found. Under AddressSanitizer, a step can touch only its own operands and workspace.
 * docs/notes/verifier.md */
#ifndef ONXI_RUN_ZONES_H
#define ONXI_RUN_ZONES_H

#include "run/run_verify.h"

/* Bytes after each storage of the buffer, and after each workspace, that belong to nothing; a multiple of 64. */
static inline uint64_t onxi_run_zone(const onxi_run_session *s)
{
    return onxi_run_verifies(s) ? 64 : 0;
}

/* A new state: nothing may touch its buffer. A state that ends: its buffer is memory like any other. */
void onxi_run_zones_close(const onxi_run_state *state);
void onxi_run_zones_end(const onxi_run_state *state);
/* Before step `i` runs, and after it. The latter fails with ONX_E_INTERNAL if the step wrote beyond an output or its
 * workspace; `kernel` is the row that has run. */
void onxi_run_zones_enter(const onxi_run_state *state, uint32_t i);
onx_status onxi_run_zones_leave(const onxi_run_state *state, uint32_t i, const onx_kernel *kernel);
/* Lets code outside of steps read or write values, whether they are in the buffer or not, and ends that. NULL: no
 * value. */
void onxi_run_zones_open_value(const onxi_run_state *state, const onx_value *value);
void onxi_run_zones_close_value(const onxi_run_state *state, const onx_value *value);

#endif
