/* shard_write.h - shared by the files that write the model of a rank: its parts of values, and their names. */
#ifndef ONXI_SHARD_WRITE_H
#define ONXI_SHARD_WRITE_H

#include "shard/shard.h"

/* A part of a value on this rank, with its own name. */
typedef struct onxi_shard_held {
    struct onxi_shard_held *next;
    onxi_box box;
    onx_bytes name;
} onxi_shard_held;

/* A collective of this rank, initially a single node, and its result; `makes`: the rank uses the result. */
typedef struct onxi_shard_collective {
    onx_node *node;
    uint32_t value;
    bool makes, partial; /* partial: from partial results that are added up */
    bool alone;          /* it does not communicate with other ranks */
    onxi_box want;
} onxi_shard_collective;

/* A collective as two nodes. */
typedef struct onxi_shard_halves {
    struct onxi_shard_halves *next;
    onx_node *begin, *end, *whole;
} onxi_shard_halves;

typedef struct onxi_shard_writer {
    onxi_shard_plan *plan;
    uint32_t rank, devices;
    onx_doc *doc;
    onx_arena *arena; /* of the new model */
    onx_graph *graph;
    onxi_shard_held **held; /* per value */
    onx_bytes *partial;     /* per value: the partial result that has to be added up */
    uint64_t names;         /* number of generated names */
    onx_shard_summary *summary;
    onx_node **node;
    uint32_t node_count, node_room;
    onxi_shard_halves *halves, **last_halves; /* in the order in which they end */
} onxi_shard_writer;

static inline onxi_box onxi_shard_box_of(const onxi_shard_writer *w, uint32_t value, const onxi_placement *p,
                                         uint32_t device)
{
    const onxi_shard_value *v = &w->plan->value[value];
    return onxi_placement_box(p, v->dims, v->rank, (uint32_t)p->at[device]);
}

/* A name that the model does not use. */
onx_status onxi_shard_name_new(onxi_shard_writer *w, onx_str base, onx_bytes *out);
/* A name for a part on this rank; the whole value has its name in the model. */
onx_status onxi_shard_hold(onxi_shard_writer *w, uint32_t value, const onxi_box *box, onx_bytes *name);
/* This rank's name for the value with that placement. */
onx_status onxi_shard_name_of(onxi_shard_writer *w, uint32_t value, const onxi_placement *p, onx_bytes *out);
onx_status onxi_shard_node_add(onxi_shard_writer *w, onx_node *node);

/* ---- collectives (shard_collective.c) ---- */

/* Steps of these kinds on this rank: `node` is NULL if it takes no part. */
onx_status onxi_shard_make_move(onxi_shard_writer *w, uint32_t index, onxi_shard_collective *out);
onx_status onxi_shard_make_reduce(onxi_shard_writer *w, uint32_t index, onxi_shard_collective *out);

/* ---- begin and end of collectives (shard_overlap.c) ---- */

/* Writes all steps; `write_node` writes those of nodes. */
onx_status onxi_shard_write_steps(onxi_shard_writer *w,
                                  onx_status (*write_node)(onxi_shard_writer *w, const onxi_shard_step *step));

#endif
