/* run_choice.h - which of the rows that may run a node is asked first, if measurement replaces their fixed order: the
 * measurement (run_measure.c), the table of its results (run_choice.c), and the lookup by the planner.
 * docs/notes/session.md */
#ifndef ONXI_RUN_CHOICE_H
#define ONXI_RUN_CHOICE_H

#include "run/run.h"

/* Measurements are worth their code size only where they can be kept for the next process. */
enum { ONXI_RUN_MEASURES = ONXI_PLATFORM_KEEPS };

/* A digest of a sequence of byte strings: adds one to the digest of those before it. */
onxi_digest onxi_run_digest_add(onxi_digest before, const void *bytes, size_t len);

/* ---- the table ---- */

/* Also an entry of the file: the node with this key tries `row` first. An entry with the key of a whole graph says that
 * the graph was measured. */
typedef struct onxi_run_choice {
    onxi_digest key, row; /* a row of zeros: the fixed order holds */
} onxi_run_choice;

typedef struct onxi_run_choices {
    onx_ctx *cx;
    onxi_table index;
    onxi_run_choice *list;
    uint32_t count, room;
    const uint32_t *trial; /* in a trial, per entry: all rows from this one on are tried first; 0: as the entry says */
    uint64_t left_ns;      /* time that the session may still spend on measuring */
} onxi_run_choices;

/* Allocated by `cx`; NULL when out of memory. */
onxi_run_choices *onxi_run_choices_new(onx_ctx *cx);
void onxi_run_choices_free(onxi_run_choices *c); /* NULL is allowed */
/* Finds the index of an entry; false: there is none. */
bool onxi_run_choices_find(const onxi_run_choices *c, onxi_digest key, uint32_t *index);
/* Adds or replaces the entry of a key; false when out of memory. */
bool onxi_run_choices_put(onxi_run_choices *c, onxi_digest key, onxi_digest row);
/* Creates the table of a root session, if its options ask for measurement, with the entries for this machine in its
 * cache folder. */
onx_status onxi_run_choices_open(onxi_run_session *s);
/* Adds the entries of the table to the file in the cache folder, if there is one. */
void onxi_run_choices_keep(onxi_run_session *s);
/* Identifies a row of an operator independently of its position. */
onxi_digest onxi_run_row_digest(const onx_kernel *const *rows, uint32_t index);

/* ---- in a plan ---- */

/* Nodes of one graph whose rows are chosen together: operator, attributes, types and post-operations are the same. */
typedef struct onxi_run_chosen {
    onxi_digest key;
    const onx_kernel *const *rows;
    uint32_t count; /* number of rows */
    uint32_t row;   /* index of the row that the first of the nodes has */
} onxi_run_chosen;

/* Does the plan look rows up in the table? Plans of subgraphs and of variants, and those that must keep NaN, do not. */
bool onxi_run_plan_chooses(const onxi_run_graph *g, bool nonfinite);

/* ---- measuring (run_measure.c) ---- */

/* Are the rows of the plan still to be measured? */
bool onxi_run_measure_is_due(const onxi_run_plan *plan);
/* Runs the graph with these inputs by the rows of *plan and by other rows, notes which are faster, and makes *plan anew
 * if some are. After an error of a measurement, *plan stays as it is. The caller holds `planning`. */
onx_status onxi_run_measure(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch, onx_ctx *cx,
                            onxi_run_plan **plan);

#endif
