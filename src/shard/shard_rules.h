/* shard_rules.h - what the files share that say how operators may be split, those of domains with a folder of their own
 * among them: rows of tables, operands of a node, and dimensions that are added to its rule. */
#ifndef ONXI_SHARD_RULES_H
#define ONXI_SHARD_RULES_H

#include "shard/shard.h"

typedef struct onxi_splitter {
    const onxi_shard_subject *s;
    onxi_shard_rule *r;
} onxi_splitter;

typedef struct onxi_unfolder onxi_unfolder;

/* ---- columns that are made apart (shard_apart.c) ---- */

enum { ONXI_APART = 3 /* queries, keys and values */, ONXI_APART_INPUTS = 8 };

/* Which inputs of a node have the columns of its output. */
typedef struct onxi_apart_columns {
    int64_t count;                  /* 0: those of `through` */
    uint32_t through;               /* an input that another node makes, ONXI_SHARD_NONE: there is none */
    int8_t axis[ONXI_APART_INPUTS]; /* of weights, -1: they do not */
    const char *attribute;          /* that says how many there are; NULL: none does */
} onxi_apart_columns;

/* What is known of an operator. The last row of a table has ONXI_ID_NONE. */
typedef struct onxi_split_row {
    onxi_op_id op;
    void (*find)(onxi_splitter *m); /* its rule; NULL: what its traits say */
    /* Multiplications and additions; NULL: one for each element that is made. */
    double (*operations)(const onxi_shard_plan *plan, const onxi_shard_node *n);
    bool product; /* with input 1: each element of it is multiplied by many rows, or one */
    /* Gives weights axes by which they can be split, in a model that is to be annotated; NULL: they have them. */
    onx_status (*unfold)(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node);
    /* What it takes to make its columns apart; false, or NULL: that cannot be. */
    bool (*columns)(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out);
    /* Makes operands apart that it takes so, too, in a model whose weights are to be split; NULL: there are none. */
    onx_status (*separate)(onxi_unfolder *u, const onxi_bound *bound, uint32_t node);
} onxi_split_row;

/* NULL: omitted. */
const onxi_shard_value *onxi_split_input(const onxi_splitter *m, uint32_t i);
const onxi_shard_value *onxi_split_output(const onxi_splitter *m, uint32_t i);
/* Which dimensions the axes of an output belong to. */
int8_t *onxi_split_output_row(const onxi_splitter *m, uint32_t i);
/* -1 when there are too many, which only means that this one is not split. */
int8_t onxi_split_dim(const onxi_splitter *m, int64_t size, int64_t unit, onxi_shard_kind kind);
int64_t onxi_split_common(int64_t a, int64_t b);
/* Can partial results of the type be combined? */
bool onxi_split_adds(int32_t dtype);
/* Nothing is split. */
void onxi_split_nothing(const onxi_splitter *m);
/* Axes of input 0 and of each output up to `end`, but for those in `whole`, are the same dimensions. */
void onxi_split_along(onxi_splitter *m, uint32_t end, uint64_t whole);

/* All operands are aligned at their last axes with output 0; those of size 1 are stretched. */
void onxi_split_broadcast(onxi_splitter *m);
/* Axes before attribute `axis`. */
void onxi_split_before_axis(onxi_splitter *m);
/* Of matrices. `turn_a` and `turn_b`: the last two axes are exchanged before. */
void onxi_split_product(onxi_splitter *m, bool turn_a, bool turn_b);

/* ---- what they take (shard_cost.c) ---- */

/* Elements, 0 where that is not known. */
double onxi_split_count(const onxi_shard_value *v);
/* Inputs, and then outputs; NULL: omitted. */
const onxi_shard_value *onxi_split_operand(const onxi_shard_plan *plan, const onxi_shard_node *n, uint32_t operand);
double onxi_split_work_of_dims(const onxi_shard_plan *plan, const onxi_shard_node *n);
double onxi_split_work_of_windows(const onxi_shard_plan *plan, const onxi_shard_node *n);
double onxi_split_work_of_windows_back(const onxi_shard_plan *plan, const onxi_shard_node *n);
double onxi_split_work_of_attention(const onxi_shard_plan *plan, const onxi_shard_node *n);

/* ---- weights that get axes (shard_unfold.c) ---- */

/* The tensor that is input `i` of the node and nothing else, or NULL. */
onx_tensor *onxi_unfold_own(const onxi_unfolder *u, const onx_node *node, uint32_t i);
/* Its one axis becomes two, if it has outer * inner elements; nothing happens otherwise. */
onx_status onxi_unfold_axis(const onxi_unfolder *u, onx_tensor *t, int64_t outer, int64_t inner);

/* ---- columns that are made apart (shard_apart.c) ---- */

/* Rows say so of operators of ONNX itself. */
bool onxi_apart_of_product(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node,
                           onxi_apart_columns *out);
bool onxi_apart_of_gemm(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out);
bool onxi_apart_of_sum(const onxi_unfolder *u, const onxi_bound *bound, const onx_node *node, onxi_apart_columns *out);

const onx_node *onxi_apart_at(const onxi_unfolder *u, uint32_t node);
/* How many columns the value has, if they can be made apart; 0: they cannot. */
int64_t onxi_apart_count(const onxi_unfolder *u, onx_bytes name);
/* Makes so many of its columns each, which are all, and names them. */
onx_status onxi_apart_make(onxi_unfolder *u, onx_bytes name, const int64_t size[ONXI_APART], onx_bytes out[ONXI_APART]);
/* The tensor that is input `i` of the node and is read by nothing else, or NULL. */
onx_tensor *onxi_apart_tensor(const onxi_unfolder *u, const onx_node *node, uint32_t i);
/* Parts of its last axis. */
onx_status onxi_apart_cut(onxi_unfolder *u, const onx_tensor *t, const int64_t size[ONXI_APART],
                          onx_bytes out[ONXI_APART]);
/* A copy of the node takes its place, or follows what does; it has at least `room` inputs. */
onx_status onxi_apart_copy(onxi_unfolder *u, uint32_t node, uint32_t room, onx_node **out);
/* So does an operator of ONNX with two inputs. */
onx_status onxi_apart_binary(onxi_unfolder *u, uint32_t at, const char *op, onx_bytes a, onx_bytes b, onx_bytes *out);

/* It is of another operator of the domain, without some attributes. */
onx_status onxi_apart_rename(const onxi_unfolder *u, onx_node *node, const char *op);
void onxi_apart_drop(onx_node *node, const char *attribute);
/* How many axes the graph says that the value has, UINT32_MAX: it does not. */
uint32_t onxi_apart_rank(const onxi_unfolder *u, onx_bytes name);

/* ---- layers that are one node (shard_rules_layers.c) ---- */

/* Batch, and heads in parts of which each is whole; -1: not split. */
typedef struct onxi_split_heads {
    int8_t batch, heads;
} onxi_split_heads;

onxi_split_heads onxi_split_heads_new(const onxi_splitter *m, int64_t batch, int64_t parts);
/* Attributes that count heads change where those are not an axis. */
void onxi_split_heads_count(const onxi_splitter *m, onxi_split_heads d, const char *const *names);
/* The axis of heads by the rank of an operand: [batch, positions, heads * size], [batch, heads, positions, size], or
 * packed as [batch, positions, heads, 2 or 3, size]. */
void onxi_split_heads_map(int8_t *row, const onxi_shard_value *x, onxi_split_heads d);
/* Those of inputs, where they are given, and of all outputs. */
void onxi_split_heads_map_inputs(const onxi_splitter *m, const uint32_t *which, uint32_t count, onxi_split_heads d);
void onxi_split_heads_map_outputs(const onxi_splitter *m, onxi_split_heads d);
/* Input `i`, if it is given, is stretched to batch, heads, queries and keys. */
void onxi_split_heads_map_mask(const onxi_splitter *m, uint32_t i, int64_t batch, int64_t heads, onxi_split_heads d);
/* Input `i` is something for each of the batch, if it is that. */
void onxi_split_heads_map_batch(const onxi_splitter *m, uint32_t i, int64_t batch, int8_t dim);

void onxi_split_attention(onxi_splitter *m);
void onxi_split_rotary(onxi_splitter *m);
void onxi_split_recurrent(onxi_splitter *m);

#endif
