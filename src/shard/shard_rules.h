/* shard_rules.h - shared by the files with the rules how operators may be split, including domains with their own
 * folder: table rows, operands of a node, and adding dimensions to a rule. */
#ifndef ONXI_SHARD_RULES_H
#define ONXI_SHARD_RULES_H

#include "shard/shard.h"

typedef struct onxi_splitter {
    const onxi_shard_subject *s;
    onxi_shard_rule *r;
} onxi_splitter;

typedef struct onxi_unfolder onxi_unfolder;

/* ---- splitting packed columns (shard_apart.c) ---- */

enum { ONXI_APART = 3 /* queries, keys and values */, ONXI_APART_INPUTS = 8 };

/* Which inputs of a node have the columns of its output. */
typedef struct onxi_apart_columns {
    int64_t count;                  /* 0: the same as `through` */
    uint32_t through;               /* an input that another node computes, ONXI_SHARD_NONE: none */
    int8_t axis[ONXI_APART_INPUTS]; /* axis of the columns in weights, -1: none */
    const char *attribute;          /* attribute with the number of columns; NULL: none */
} onxi_apart_columns;

/* Properties of an operator. A table ends with ONXI_ID_NONE. */
typedef struct onxi_split_row {
    onxi_op_id op;
    void (*find)(onxi_splitter *m); /* determines its rule; NULL: the rule follows from its traits */
    /* Multiplications and additions; NULL: one per output element. */
    double (*operations)(const onxi_shard_plan *plan, const onxi_shard_node *n);
    bool product; /* multiplies by input 1: each of its elements is used for one or many rows */
    /* Converts weights to a form with axes that can be split, in a model that is to be annotated; NULL: not needed. */
    onx_status (*unfold)(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node);
    /* Describes how its packed columns can be split; false, or NULL: they cannot. */
    bool (*columns)(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out);
    /* Splits packed operands that it also accepts separately, in a model whose weights are to be split; NULL: none. */
    onx_status (*separate)(onxi_unfolder *u, const onxi_bound *bound, uint32_t node);
} onxi_split_row;

/* NULL: omitted. */
const onxi_shard_value *onxi_split_input(const onxi_splitter *m, uint32_t i);
const onxi_shard_value *onxi_split_output(const onxi_splitter *m, uint32_t i);
/* Sets the dimensions of an output's axes. */
int8_t *onxi_split_output_row(const onxi_splitter *m, uint32_t i);
/* -1 if there are too many, which only means that this one is not split. */
int8_t onxi_split_dim(const onxi_splitter *m, int64_t size, int64_t unit, onxi_shard_kind kind);
int64_t onxi_split_common(int64_t a, int64_t b);
/* Can partial results of the type be added? */
bool onxi_split_adds(int32_t dtype);
/* The node is not split. */
void onxi_split_nothing(const onxi_splitter *m);
/* Axes of input 0 and of each output up to `end`, except those in `whole`, are the same dimensions. */
void onxi_split_along(onxi_splitter *m, uint32_t end, uint64_t whole);

/* All operands are aligned at their last axes with output 0; axes of size 1 are broadcast. */
void onxi_split_broadcast(onxi_splitter *m);
/* The axes before attribute `axis`. */
void onxi_split_before_axis(onxi_splitter *m);
/* A matrix product. `turn_a` and `turn_b`: the operand's last two axes are transposed first. */
void onxi_split_product(onxi_splitter *m, bool turn_a, bool turn_b);

/* ---- costs (shard_cost.c) ---- */

/* Number of elements, 0 if unknown. */
double onxi_split_count(const onxi_shard_value *v);
/* Inputs, then outputs; NULL: omitted. */
const onxi_shard_value *onxi_split_operand(const onxi_shard_plan *plan, const onxi_shard_node *n, uint32_t operand);
double onxi_split_work_of_dims(const onxi_shard_plan *plan, const onxi_shard_node *n);
double onxi_split_work_of_windows(const onxi_shard_plan *plan, const onxi_shard_node *n);
double onxi_split_work_of_windows_back(const onxi_shard_plan *plan, const onxi_shard_node *n);
double onxi_split_work_of_attention(const onxi_shard_plan *plan, const onxi_shard_node *n);

/* ---- weights in a form with more axes (shard_unfold.c) ---- */

/* The tensor that is input `i` of the node only, or NULL. */
onx_tensor *onxi_unfold_own(const onxi_unfolder *u, const onx_node *node, uint32_t i);
/* Reshapes its single axis to two if it has outer * inner elements; otherwise does nothing. */
onx_status onxi_unfold_axis(const onxi_unfolder *u, onx_tensor *t, int64_t outer, int64_t inner);

/* ---- splitting packed columns (shard_apart.c) ---- */

/* Called by rows of ONNX operators. */
bool onxi_apart_of_product(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node,
                           onxi_apart_columns *out);
bool onxi_apart_of_gemm(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out);
bool onxi_apart_of_sum(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out);

const onx_node *onxi_apart_at(const onxi_unfolder *u, uint32_t node);
/* The number of columns of the value if they can be split; 0: they cannot. */
int64_t onxi_apart_count(const onxi_unfolder *u, onx_bytes name);
/* Creates separate values with these numbers of columns, which add up to all columns, and names them. */
onx_status onxi_apart_make(onxi_unfolder *u, onx_bytes name, const int64_t size[ONXI_APART], onx_bytes out[ONXI_APART]);
/* The tensor that is input `i` of the node and has no other reader, or NULL. */
onx_tensor *onxi_apart_tensor(const onxi_unfolder *u, const onx_node *node, uint32_t i);
/* Splits its last axis. */
onx_status onxi_apart_cut(onxi_unfolder *u, const onx_tensor *t, const int64_t size[ONXI_APART],
                          onx_bytes out[ONXI_APART]);
/* A copy of the node, added to its replacements; it has at least `room` inputs. */
onx_status onxi_apart_copy(onxi_unfolder *u, uint32_t node, uint32_t room, onx_node **out);
/* The same for an ONNX operator with two inputs. */
onx_status onxi_apart_binary(onxi_unfolder *u, uint32_t at, const char *op, onx_bytes a, onx_bytes b, onx_bytes *out);

/* Changes its operator within the domain, and removes some attributes. */
onx_status onxi_apart_rename(const onxi_unfolder *u, onx_node *node, const char *op);
void onxi_apart_drop(onx_node *node, const char *attribute);
/* The declared rank of a value, UINT32_MAX if there is none. */
uint32_t onxi_apart_rank(const onxi_unfolder *u, onx_bytes name);

/* ---- layers that are a single node (shard_rules_layers.c) ---- */

/* The dimensions of batch and heads, where heads are split as a whole; -1: not split. */
typedef struct onxi_split_heads {
    int8_t batch, heads;
} onxi_split_heads;

onxi_split_heads onxi_split_heads_new(const onxi_splitter *m, int64_t batch, int64_t parts);
/* Attributes with the number of heads have to change if heads are not an axis. */
void onxi_split_heads_count(const onxi_splitter *m, onxi_split_heads d, const char *const *names);
/* The axis of heads by the rank of an operand: [batch, positions, heads * size], [batch, heads, positions, size], or
 * packed as [batch, positions, heads, 2 or 3, size]. */
void onxi_split_heads_map(int8_t *row, const onxi_shard_value *x, onxi_split_heads d);
/* Sets the axes of given inputs and of all outputs. */
void onxi_split_heads_map_inputs(const onxi_splitter *m, const uint32_t *which, uint32_t count, onxi_split_heads d);
void onxi_split_heads_map_outputs(const onxi_splitter *m, onxi_split_heads d);
/* Input `i`, if present, is broadcast to batch, heads, queries and keys. */
void onxi_split_heads_map_mask(const onxi_splitter *m, uint32_t i, int64_t batch, int64_t heads, onxi_split_heads d);
/* Input `i`, if its shape allows it, has one entry per batch element. */
void onxi_split_heads_map_batch(const onxi_splitter *m, uint32_t i, int64_t batch, int8_t dim);

void onxi_split_attention(onxi_splitter *m);
void onxi_split_rotary(onxi_splitter *m);
void onxi_split_recurrent(onxi_splitter *m);

#endif
