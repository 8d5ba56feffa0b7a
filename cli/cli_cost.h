/* cli_cost.h - what a run of a model takes, computed without running it: multiply-adds, weights and activations per
 * operator, as expressions over the symbolic dimensions. */
#ifndef ONX_CLI_COST_H
#define ONX_CLI_COST_H

#include "cli.h"
#include "cli_facts.h"

#include <onx/infer.h>

/* A sum of products of symbols with a number each: 9408*N*(H/2)*(W/2) + 64. Symbols are kept by the cost. */
enum { COST_FACTORS = 12, COST_TERMS = 24 };
typedef struct cost_term {
    double factor;
    uint32_t symbols[COST_FACTORS]; /* ascending */
    uint32_t count;
} cost_term;
typedef struct cost_sum {
    cost_term *term;
    uint32_t count;
    uint64_t unknown; /* nodes whose part is not known */
    bool more;        /* terms that there was no room for */
    bool scarce;      /* memory ran out, and the sum is not right */
} cost_sum;

typedef struct cost_row {
    cost_sum macs, activations; /* multiply-adds, and bytes of what nodes write */
    uint64_t weights;           /* bytes of initializers and Constants, each counted where it is used first */
} cost_row;

/* A node with the numbers that are known of it; negative: not known. */
typedef struct cost_node {
    const onx_node *node;
    double macs, bytes; /* bytes that it reads and writes */
    double weights; /* bytes of initializers among them; 0 where it does no arithmetic, and need not read them all */
} cost_node;

typedef struct cli_cost {
    cli_call *call;
    cli_tallies ops; /* nodes by operator; row i of `rows` belongs to its row i */
    cost_row *rows;
    uint32_t room;
    cost_row total;
    onx_str *symbols;
    uint32_t symbol_count, symbol_room;
    bool scarce; /* memory ran out for a symbol, and a size was taken for unknown */
    cli_table symbol_table;
    uint64_t inner_nodes;                            /* in branches and bodies, counted as if each ran once */
    uint64_t calls;                                  /* of functions of the model, whose nodes are counted nowhere */
    uint32_t *order;                                 /* rows, most multiply-adds first */
    void (*each)(void *user, const cost_node *node); /* may be NULL */
    void *user;
} cli_cost;

/* Fills `cost`, of which `call`, `each` and `user` are set and the rest is zero. Free it also after a failure. */
onx_status cli_cost_collect(cli_cost *cost, onx_doc *doc, const onx_infer_fixed *fixed, uint32_t fixed_count);
void cli_cost_free(cli_cost *cost);

/* The value where no symbol is in it and everything is known; false otherwise. */
bool cli_cost_number(const cost_sum *sum, double *out);
/* "1.85 G*N + 4.1 M" as snprintf; `bytes`: with units of bytes. */
void cli_cost_text(const cli_cost *cost, const cost_sum *sum, bool bytes, char *buf, size_t size);

void cli_cost_json(cli_json *json, const cli_cost *cost);
/* What `onx info --cost` prints, with --dim; `json`: as a member there, NULL: a table. */
onx_status cli_cost_print(cli_call *call, onx_doc *doc, cli_json *json);

#endif
