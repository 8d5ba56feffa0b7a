/* cli_facts.h - statistics of a graph or model that need not read weights; for `onx info`. */
#ifndef ONX_CLI_FACTS_H
#define ONX_CLI_FACTS_H

#include "cli.h"
#include "cli_table.h"

/* A name and its counts. */
typedef struct cli_tally {
    onx_str domain, name;
    uint64_t count;    /* nodes, or tensors */
    uint64_t elements; /* of these tensors */
    uint64_t bytes;
} cli_tally;

/* Tallies by (domain, name), looked up by hash. */
typedef struct cli_tallies {
    cli_tally *row;
    uint32_t count, room;
    cli_table table; /* of rows */
} cli_tallies;
/* The row of that name, added if missing; NULL when out of memory. The next call may move rows. */
cli_tally *cli_tally_at(cli_tallies *tallies, onx_str domain, onx_str name);
const cli_tally *cli_tally_find(const cli_tallies *tallies, onx_str domain, onx_str name);
/* Sorts by count, then by name; no look-up is possible afterwards. */
void cli_tallies_sort(cli_tallies *tallies);
void cli_tallies_free(cli_tallies *tallies);

typedef struct cli_facts {
    cli_tallies ops;      /* nodes by operator, including subgraphs and functions */
    cli_tallies dtypes;   /* stored tensors by element type: initializers and attributes */
    cli_tallies external; /* external tensors by location */
    cli_tallies names;    /* of initializers of the main graph */
    cli_tally nodes;      /* all nodes: count */
    cli_tally stored;     /* all stored tensors: count, elements, bytes */
    uint64_t inner_nodes; /* of these nodes, those in subgraphs */
    uint64_t body_nodes;  /* of these nodes, those in functions */
    uint64_t train_nodes; /* of these nodes, those in training graphs */
    uint64_t strange;     /* tensors with negative dims or overflowing size */
} cli_facts;

/* Counts the contents of a message of any kind. Free the facts also after a failure. */
onx_status cli_facts_collect(onx_ctx *cx, onx_kind kind, void *message, cli_facts *facts);
void cli_facts_free(cli_facts *facts);

/* "ai.onnx" for the default domain. */
onx_str cli_domain(onx_str domain);
/* When an IR version was released: "2021-07", and the releases of ONNX that write it; NULL if unknown. */
typedef struct cli_ir_release {
    const char *date;
    const char *releases;
} cli_ir_release;
const cli_ir_release *cli_ir_release_of(int64_t ir_version);
/* The number of elements and bytes of a tensor from its dims and type; false if dims are negative or overflow. */
bool cli_tensor_size(const onx_tensor *tensor, uint64_t *elements, uint64_t *bytes);

#endif
