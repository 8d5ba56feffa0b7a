/* cli_cost.h - the cost of running a model, computed without running it: multiply-adds, weights and activations per
 * operator, as expressions over symbolic dimensions. */
#ifndef ONX_CLI_COST_H
#define ONX_CLI_COST_H

#include "cli.h"
#include "cli_facts.h"

#include <onx/infer.h>

/* A sum of products of symbols, each with a coefficient: 9408*N*(H/2)*(W/2) + 64. Symbols are stored in the cost. */
enum { COST_FACTORS = 12, COST_TERMS = 24 };
typedef struct cost_term {
    double factor;
    uint32_t symbols[COST_FACTORS]; /* in ascending order */
    uint32_t count;
} cost_term;
typedef struct cost_sum {
    cost_term *term;
    uint32_t count;
    uint64_t unknown; /* number of nodes of unknown cost */
    bool more;        /* some terms did not fit */
    bool scarce;      /* out of memory: the sum is wrong */
} cost_sum;

typedef struct cost_row {
    cost_sum macs, activations; /* multiply-adds, and bytes of node outputs */
    uint64_t weights;           /* bytes of initializers and Constants, each counted at its first use */
} cost_row;

/* A node with its known figures; negative: unknown. */
typedef struct cost_node {
    const onx_node *node;
    double macs, bytes; /* bytes: read and written */
    double weights;     /* the part of these bytes that are initializers; 0 if the node does no arithmetic, and need not
                         * read them completely */
} cost_node;

typedef struct cli_cost {
    cli_call *call;
    cli_tallies ops; /* nodes by operator, in the same order as `rows` */
    cost_row *rows;
    uint32_t room;
    cost_row total;
    onx_str *symbols;
    uint32_t symbol_count, symbol_room;
    bool scarce; /* out of memory for a symbol, so a size was treated as unknown */
    cli_table symbol_table;
    uint64_t inner_nodes;                            /* in branches and loop bodies, counted as if each ran once */
    uint64_t calls;                                  /* calls of model functions, whose nodes are not counted */
    uint32_t *order;                                 /* rows sorted by multiply-adds, the most first */
    void (*each)(void *user, const cost_node *node); /* may be NULL */
    void *user;
} cli_cost;

/* Computes `cost`; the caller has set `call`, `each` and `user`, and zeroed the rest. Free it also after a failure. */
onx_status cli_cost_collect(cli_cost *cost, onx_doc *doc, const onx_infer_fixed *fixed, uint32_t fixed_count);
void cli_cost_free(cli_cost *cost);

/* The value if it contains no symbol and everything is known; false otherwise. */
bool cli_cost_number(const cost_sum *sum, double *out);
/* Formats "1.85 G*N + 4.1 M" like snprintf; `bytes`: with units of bytes. */
void cli_cost_text(const cli_cost *cost, const cost_sum *sum, bool bytes, char *buf, size_t size);

void cli_cost_json(cli_json *json, const cli_cost *cost);
/* Prints the result of `onx info --cost`, with --dim; `json`: as a member of the open object, NULL: a table. */
onx_status cli_cost_print(cli_call *call, onx_doc *doc, cli_json *json);

#endif
