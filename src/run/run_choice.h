/* run_choice.h - which of the rows that may run a node is asked first, if measurement replaces their fixed order: the
 * measurement (run_measure.c), the table of its results (run_choice.c), and the lookup by the planner.
 * docs/notes/session.md */
#ifndef ONXI_RUN_CHOICE_H
#define ONXI_RUN_CHOICE_H

#include "run/run.h"

/* Where nothing is kept for the next process it is not worth its bytes. */
enum { ONXI_RUN_MEASURES = ONXI_PLATFORM_KEEPS };

/* A digest of one thing after another. */
onxi_digest onxi_run_digest_add(onxi_digest before, const void *bytes, size_t len);

/* ---- the table ---- */

/* As in a file: `row` is asked first for what has the key. A key of a whole graph says that it was measured. */
typedef struct onxi_run_choice {
    onxi_digest key, row; /* row of zeros: none, the order is as ever */
} onxi_run_choice;

typedef struct onxi_run_choices {
    onx_ctx *cx;
    onxi_table index;
    onxi_run_choice *list;
    uint32_t count, room;
    const uint32_t *trial; /* of a trial, per entry: all rows from this one on are asked first; 0: as the entry says */
    uint64_t left_ns;      /* that the session may go on measuring for */
} onxi_run_choices;

/* Of the heap of `cx`; NULL when out of memory. */
onxi_run_choices *onxi_run_choices_new(onx_ctx *cx);
void onxi_run_choices_free(onxi_run_choices *c); /* NULL is allowed */
/* The index of an entry; false: there is none. */
bool onxi_run_choices_find(const onxi_run_choices *c, onxi_digest key, uint32_t *index);
/* Adds an entry or replaces that of its key; false when out of memory. */
bool onxi_run_choices_put(onxi_run_choices *c, onxi_digest key, onxi_digest row);
/* What a root chooses by, if its options ask for that: a table with what its folder has for this machine. */
onx_status onxi_run_choices_open(onxi_run_session *s);
/* Adds what the table has to that of the folder, if there is one. */
void onxi_run_choices_keep(onxi_run_session *s);
/* A row by what it is, of the rows of an operator. */
onxi_digest onxi_run_row_digest(const onx_kernel *const *rows, uint32_t index);

/* ---- in a plan ---- */

/* Nodes of a plan that are alike: operator, attributes, types, what follows; and in the same graph. */
typedef struct onxi_run_chosen {
    onxi_digest key;
    const onx_kernel *const *rows;
    uint32_t count; /* of rows */
    uint32_t row;   /* which the first of the nodes has */
} onxi_run_chosen;

/* Does the plan look rows up? Plans of subgraphs and of variants, and those made anew for NaN, do not. */
bool onxi_run_plan_chooses(const onxi_run_graph *g, bool nonfinite);

/* ---- measuring (run_measure.c) ---- */

/* Are the rows of the plan still to be measured? */
bool onxi_run_measure_is_due(const onxi_run_plan *plan);
/* Runs the graph with these inputs by the rows of *plan and by others, notes which are faster, and makes *plan anew
 * where some are. What goes wrong meanwhile is as if nothing had been measured. By who has `planning`. */
onx_status onxi_run_measure(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch, onx_ctx *cx,
                            onxi_run_plan **plan);

#endif
