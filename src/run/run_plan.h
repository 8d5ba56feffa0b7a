/* run_plan.h - what the files share that make a plan: run_plan.c in which order, run_step.c each step,
 * run_chain.c which ops share one, run_layout.c slots, storages and layouts. */
#ifndef ONXI_RUN_PLAN_H
#define ONXI_RUN_PLAN_H

#include "run/run_choice.h"

typedef struct onxi_run_planner {
    onxi_run_env *e;
    onxi_run_graph *g;
    onxi_run_plan *plan;
    bool *dynamic;    /* per op */
    uint8_t *claimed; /* per op: done in passing by a chain */
    uint32_t *talks;  /* per op: how many before it, or itself, wait for others (ONX_KERNEL_ONCE) */
    uint32_t *head;   /* per op: the head of the chain that ends here, ONXI_NO_SLOT: none */
    uint32_t *chain;  /* per op: the last op of the chain that it is in, ONXI_NO_SLOT: none (run_chain.c) */
    uint32_t *next;   /* per op of a chain: the one after it; of the last one: the first */
    bool *refused;    /* per op: it cannot take the place of its parts here */
    bool any_refused;
    const bool *late;  /* per op: it belongs to plan->later; NULL: none does */
    bool chooses;      /* rows are looked up in the session's table */
    onxi_table by_key; /* plan->chosen by their keys */
} onxi_run_planner;

/* ---- rows that are asked first (run_key.c) ---- */

/* Notes which graph this is, with types. */
void onxi_run_plan_context(onxi_run_planner *pl);
/* What the op, described by `p`, is to be asked for first; *chosen: 1 + its place among those of the plan, or 0. */
onx_status onxi_run_plan_choose(onxi_run_planner *pl, const onxi_run_op *op, const onx_prepare *p,
                                onxi_run_order *order, uint32_t *chosen);
/* The row that took it (`chosen` is not 0); true where the order had put that first. */
bool onxi_run_plan_chose(onxi_run_planner *pl, uint32_t chosen, const onxi_run_order *order, const onx_kernel *kernel);

/* ---- slots, storages, layouts (run_layout.c) ---- */

/* The value of a slot; NULL for ONXI_NO_SLOT. */
onx_value *onxi_run_plan_value(onxi_run_planner *pl, uint32_t slot);
onx_status onxi_run_plan_add_slot(onxi_run_planner *pl, const onx_value *type, onxi_run_residence place, uint32_t *out);
onx_status onxi_run_plan_add_step(onxi_run_planner *pl, onxi_run_step **out);
/* Memory of its own for a slot, or that of another one. */
onx_status onxi_run_plan_add_storage(onxi_run_planner *pl, uint32_t slot);
void onxi_run_plan_join_storage(onxi_run_planner *pl, uint32_t slot, uint32_t storage);
/* The one that lives; NULL when it has none. */
onxi_run_storage *onxi_run_plan_storage(const onxi_run_planner *pl, uint32_t slot);
/* Step `step` reads or writes the slot. */
void onxi_run_plan_extend_life(onxi_run_planner *pl, uint32_t slot, uint32_t step);
/* One use of a slot of the graph is planned, and so for its copies in other layouts. */
void onxi_run_plan_use_planned(onxi_run_planner *pl, uint32_t slot);
/* The elements of a constant in a slot of the graph will be read. */
onx_status onxi_run_plan_elements(onxi_run_planner *pl, uint32_t slot);
bool onxi_run_layouts_equal(const onx_layout *a, const onx_layout *b);
/* The slot, or a copy of it, in the layout. */
onx_status onxi_run_plan_in_layout(onxi_run_planner *pl, uint32_t slot, const onx_layout *layout, uint32_t *out);

/* ---- pieces (run_piece.c) ---- */

/* The storage that a storage is a piece of in the end, or itself; *at: bytes into it. What is between is shortened. */
uint32_t onxi_run_plan_whole(onxi_run_plan *plan, uint32_t storage, uint64_t *at);
/* The step cuts its input 0 into outputs: output `i` lies in there, if it is a stretch of it. They are asked for in
 * their order; *at, 0 at first, is where the next one begins. */
onx_status onxi_run_plan_cut(onxi_run_planner *pl, const onxi_run_step *step, uint32_t i, uint64_t *at, bool *done);
/* The step joins its inputs to output 0: those that are a stretch of it are made there from the start. */
void onxi_run_plan_join(onxi_run_planner *pl, const onxi_run_step *step);

/* ---- steps (run_step.c) ---- */

bool onxi_run_same_type(const onx_value *a, const onx_value *b);
/* The step of an op whose types come while running. */
onx_status onxi_run_plan_dynamic(onxi_run_planner *pl, const onxi_run_op *op);
/* The step of any other op, and of the `chain` elementwise ones after it as far as its kernel does them in passing;
 * those that it does not get steps of their own. */
onx_status onxi_run_plan_static(onxi_run_planner *pl, const onxi_run_op *op, uint32_t chain);

/* The step of a chain that ends with this op; where its rows are no loops here, or want other layouts, its ops get
 * steps of their own. */
onx_status onxi_run_plan_chain(onxi_run_planner *pl, uint32_t last);

/* ---- what comes later (run_later.c) ---- */

/* Makes plan->later of what has types by now, if there is enough of it. */
onx_status onxi_run_plan_find_later(onxi_run_planner *pl);
/* All other ops have their steps; those of plan->later follow. */
onx_status onxi_run_plan_begin_later(onxi_run_planner *pl);

/* ---- chains (run_chain.c) ---- */

onx_status onxi_run_plan_find_chains(onxi_run_planner *pl);
/* Of the last op of a chain: is it one that takes lines (ONXI_KERNEL_LINES)? */
bool onxi_run_plan_ends_chain(const onxi_run_op *op);

#endif
