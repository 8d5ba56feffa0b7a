/* run_plan.h - the planner's state, shared by the files that make a plan: run_plan.c (order of the work), run_step.c
 * (steps), run_chain.c (chains of ops that share a step), run_layout.c (slots, storages and layouts), run_overlap.c
 * (memory that may be overwritten). */
#ifndef ONXI_RUN_PLAN_H
#define ONXI_RUN_PLAN_H

#include "run/run_choice.h"

typedef struct onxi_run_planner {
    onxi_run_env *e;
    onxi_run_graph *g;
    onxi_run_plan *plan;
    bool *dynamic;    /* per op: its types depend on data */
    uint8_t *claimed; /* per op: it is computed as part of another op's step */
    uint32_t *talks;  /* per op: how many ops up to and including it wait for others (ONX_KERNEL_ONCE) */
    uint32_t *head;   /* per op: the first op of the post-operation chain that ends here, ONXI_NO_SLOT: none */
    uint32_t *chain;  /* per op: the last op of its elementwise chain (run_chain.c), ONXI_NO_SLOT: none */
    uint32_t *next;   /* per op of a chain: the next op; of the last op: the first op */
    bool *refused;    /* per op: it cannot replace its parts for these shapes */
    bool any_refused;
    const bool *late;  /* per op: it belongs to plan->later; NULL: no op does */
    bool chooses;      /* kernel rows are looked up in the session's table */
    onxi_table by_key; /* plan->chosen by their keys */
} onxi_run_planner;

/* ---- kernel rows that are tried first (run_key.c) ---- */

/* Computes plan->context from the graph and its types. */
void onxi_run_plan_context(onxi_run_planner *pl);
/* Finds which rows to try first for the op described by `p`. *chosen is 1 + its index in plan->chosen, or 0. */
onx_status onxi_run_plan_choose(onxi_run_planner *pl, const onxi_run_op *op, const onx_prepare *p,
                                onxi_run_order *order, uint32_t *chosen);
/* Notes which row has accepted an op with `chosen` not 0; returns true if `order` had put that row first. */
bool onxi_run_plan_chose(onxi_run_planner *pl, uint32_t chosen, const onxi_run_order *order, const onx_kernel *kernel);

/* ---- slots, storages, layouts (run_layout.c) ---- */

/* The value of a slot; NULL for ONXI_NO_SLOT. */
onx_value *onxi_run_plan_value(onxi_run_planner *pl, uint32_t slot);
onx_status onxi_run_plan_add_slot(onxi_run_planner *pl, const onx_value *type, onxi_run_residence place, uint32_t *out);
onx_status onxi_run_plan_add_step(onxi_run_planner *pl, onxi_run_step **out);
/* Gives the slot a storage of its own. */
onx_status onxi_run_plan_add_storage(onxi_run_planner *pl, uint32_t slot);
void onxi_run_plan_join_storage(onxi_run_planner *pl, uint32_t slot, uint32_t storage);
/* The storage of a slot; of a piece, the storage that contains it. NULL when it has none. */
onxi_run_storage *onxi_run_plan_storage(const onxi_run_planner *pl, uint32_t slot);
/* Extends the lifetime of the slot to step `step`, which reads or writes it. */
void onxi_run_plan_extend_life(onxi_run_planner *pl, uint32_t slot, uint32_t step);
/* Counts one use of a slot of the graph, and of its copies in other layouts, as planned. */
void onxi_run_plan_use_planned(onxi_run_planner *pl, uint32_t slot);
/* Makes sure that the elements of a constant in a slot of the graph can be read. */
onx_status onxi_run_plan_elements(onxi_run_planner *pl, uint32_t slot);
bool onxi_run_layouts_equal(const onx_layout *a, const onx_layout *b);
/* Gives the slot, or a copy of it, in the layout. */
onx_status onxi_run_plan_in_layout(onxi_run_planner *pl, uint32_t slot, const onx_layout *layout, uint32_t *out);
/* Adds a step that copies the slot, which has another layout, to this one. */
onx_status onxi_run_plan_convert(onxi_run_planner *pl, uint32_t slot, const onx_layout *layout, uint32_t *out);

/* ---- memory that a step may overwrite (run_overlap.c) ---- */

/* Which other operands of a step may be in the memory that it overwrites, or beside it. */
typedef enum onxi_run_others {
    ONXI_OTHERS_NONE,  /* none in the same storage: the step may yet lose operands (post-operations not taken) */
    ONXI_OTHERS_APART, /* those that share no byte with it */
    ONXI_OTHERS_ALIKE  /* and those that are exactly the same bytes: the kernel works element by element */
} onxi_run_others;
/* Flags the operands of a step whose bytes nothing else needs: after the step nothing reads any byte of the storage
 * that contains them, and the other operands of the step are as `others` says. `slots` are slots of the graph, `read`
 * the slots that the step reads in their place. */
onx_status onxi_run_plan_find_free(onxi_run_planner *pl, const uint32_t *slots, const uint32_t *read, uint32_t count,
                                   onxi_run_others others, bool *out);

/* ---- pieces (run_piece.c) ---- */

/* The storage that contains this one and is no piece itself; *at is the offset in it. Shortens the path for later
 * calls. */
uint32_t onxi_run_plan_whole(onxi_run_plan *plan, uint32_t storage, uint64_t *at);
/* Places output `i` of a step that splits its input 0 inside that input, if it is contiguous there. Called for the
 * outputs in order; *at, 0 at first, is the offset of the next one. */
onx_status onxi_run_plan_cut(onxi_run_planner *pl, const onxi_run_step *step, uint32_t i, uint64_t *at, bool *done);
/* Places the inputs of a step that concatenates inside output 0, where they are contiguous there. */
void onxi_run_plan_join(onxi_run_planner *pl, const onxi_run_step *step);

/* ---- steps (run_step.c) ---- */

bool onxi_run_same_type(const onx_value *a, const onx_value *b);
/* Plans the step of an op whose types are known only while running. */
onx_status onxi_run_plan_dynamic(onxi_run_planner *pl, const onxi_run_op *op);
/* Plans the step of any other op, with as many of the `chain` elementwise ops after it as its kernel takes as
 * post-operations. The remaining ones get steps of their own. */
onx_status onxi_run_plan_static(onxi_run_planner *pl, const onxi_run_op *op, uint32_t chain);

/* Plans the step of the chain that ends with this op. If its rows have no loops for these types or want other layouts,
 * the ops get steps of their own. */
onx_status onxi_run_plan_chain(onxi_run_planner *pl, uint32_t last);

/* ---- the part of the plan with shapes known only while running (run_later.c) ---- */

/* Makes plan->later from the ops whose types are unknown, if there are enough of them. */
onx_status onxi_run_plan_find_later(onxi_run_planner *pl);
/* Begins the steps of plan->later, after all other ops have their steps. */
onx_status onxi_run_plan_begin_later(onxi_run_planner *pl);

/* ---- chains (run_chain.c) ---- */

onx_status onxi_run_plan_find_chains(onxi_run_planner *pl);
/* Does the last op of a chain read its input line by line (ONXI_KERNEL_LINES)? */
bool onxi_run_plan_ends_chain(const onxi_run_op *op);

#endif
