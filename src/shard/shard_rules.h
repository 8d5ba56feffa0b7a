/* shard_rules.h - what the files share that say how operators may be split: operands of a node, and dimensions that are
 * added to its rule. */
#ifndef ONXI_SHARD_RULES_H
#define ONXI_SHARD_RULES_H

#include "shard/shard.h"

typedef struct onxi_splitter {
    const onxi_shard_subject *s;
    onxi_shard_rule *r;
} onxi_splitter;

/* NULL: omitted. */
const onxi_shard_value *onxi_split_input(const onxi_splitter *m, uint32_t i);
const onxi_shard_value *onxi_split_output(const onxi_splitter *m, uint32_t i);
/* Which dimensions the axes of an output belong to. */
int8_t *onxi_split_output_row(const onxi_splitter *m, uint32_t i);
/* -1 when there are too many, which only means that this one is not split. */
int8_t onxi_split_dim(const onxi_splitter *m, int64_t size, int64_t unit, onxi_shard_kind kind);
int64_t onxi_split_common(int64_t a, int64_t b);
/* Can partial results of the type be put together? */
bool onxi_split_adds(int32_t dtype);
/* Nothing is split. */
void onxi_split_nothing(const onxi_splitter *m);
/* Axes of input 0 and of output 0 up to `end`, but for those in `whole`, are the same dimensions; all outputs alike. */
void onxi_split_along(onxi_splitter *m, uint32_t end, uint64_t whole);

/* ---- layers that are one node (shard_rules_layers.c) ---- */

void onxi_split_attention(onxi_splitter *m);
void onxi_split_rotary(onxi_splitter *m);
void onxi_split_recurrent(onxi_splitter *m);
/* Those of com.microsoft. */
void onxi_split_group_attention(onxi_splitter *m);
void onxi_split_multi_attention(onxi_splitter *m);
void onxi_split_few_bits(onxi_splitter *m);
void onxi_split_skip_norm(onxi_splitter *m);

#endif
