/* pattern.h - expressions in the syntax of RE2, for kernels that match strings. */
#ifndef ONXI_KERNEL_PATTERN_H
#define ONXI_KERNEL_PATTERN_H

#include "kernel/kernel.h"

/* Numbers that a match works with, six for each state that a pattern may be in: a kernel asks for a workspace of so
 * many ints. */
enum { ONXI_PATTERN_WORKSPACE = 1 << 14 };

typedef struct onxi_pattern onxi_pattern;
typedef struct onxi_pattern_place onxi_pattern_place;
/* In the arena of the plan; `name` is that of the attribute. To be freed, also after a failure; NULL may be freed. */
onx_status onxi_pattern_new(onx_prepare *p, const char *name, onx_str text, onxi_pattern **out);
void onxi_pattern_free(onxi_pattern *q);
/* Where the matches of one thread go. */
onx_status onxi_pattern_place_new(onx_work *work, const onxi_pattern *q, onxi_pattern_place **out);
void onxi_pattern_place_free(onx_work *work, onxi_pattern_place *place);
/* The longest of the matches that begin first, from byte `from` on, or `here` itself; string `index` is that of errors.
 * A search from a later byte on trusts that the string has been searched before. */
onx_status onxi_pattern_find(onx_work *work, const onxi_pattern *q, onxi_pattern_place *place, onx_str text,
                             uint64_t index, size_t from, bool here, size_t *start, size_t *end, bool *found);

#endif
