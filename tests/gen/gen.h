/* gen.h - valid nodes and models made from the rows of the operator registry and a table of recipes (recipes.def), for
 * tests over all operators and for fuzzers. The seed determines everything. */
#ifndef TESTS_GEN_H
#define TESTS_GEN_H

#include <onx/run.h>

#include "op/op.h"

enum { GEN_RANK = 8, GEN_OPERANDS = 20, GEN_TYPES = 16, GEN_LISTED_MAX = 48, GEN_ATTRIBUTES = 2048, GEN_IR = 13 };

/* ---- random numbers ---- */

typedef struct gen_random {
    uint64_t state;
    const uint8_t *bytes; /* draws of up to 256 come from here first, for fuzzers */
    size_t left;
} gen_random;
uint64_t gen_next(gen_random *r);
/* 0 <= x < n; 0 for n = 0. */
uint32_t gen_below(gen_random *r, uint32_t n);

/* ---- recipes ---- */

typedef struct gen_recipe {
    const char *operators; /* names, separated by spaces */
    int32_t since;
    const char *operands, *attributes; /* in the language of recipes.def */
    uint32_t outputs;
} gen_recipe;
extern const gen_recipe gen_recipes[];
/* The name that tables of tests have: that of the operator, with its domain before it where that is none of ONNX. */
const char *gen_operator_name(const onxi_schema *schema, char text[128]);
/* The n-th recipe for a version of an operator, or NULL. */
const gen_recipe *gen_recipe_for(const onxi_schema *schema, uint32_t n);
/* Has the operator a kernel or a body? Those for accelerators have none, and recipes only for what does not run. */
bool gen_runs(const onxi_schema *schema);
const gen_recipe *gen_recipe_to_check(const onxi_schema *schema, uint32_t n);

/* ---- nodes ---- */

typedef enum gen_kind { GEN_OMITTED, GEN_TENSOR, GEN_SEQUENCE, GEN_OPTIONAL, GEN_MAP } gen_kind;
typedef enum gen_fill {
    GEN_SMALL,
    GEN_SPECIAL,       /* NaN, infinities, extreme integers, small numbers */
    GEN_SOME_NAN,      /* small numbers, NaN among them */
    GEN_SOME_INFINITE, /* likewise */
    GEN_ALL_LOWEST,    /* minus infinity, a small number among them */
    GEN_POSITIVE,
    GEN_UNIT,
    GEN_INDEX,
    GEN_LISTED
} gen_fill;

typedef struct gen_operand {
    gen_kind kind;
    onx_dtype dtype; /* of elements; values of maps */
    onx_dtype key;   /* of maps */
    onx_dtype like;  /* elements are numbers that this type has, too */
    gen_fill fill;
    bool constant;                 /* an initializer, not an input */
    bool made;                     /* a value of the graph has its name already */
    int64_t below;                 /* GEN_INDEX: elements are 0 to below - 1 */
    double nudge;                  /* elements are up to so much larger or smaller, as a part of them */
    double listed[GEN_LISTED_MAX]; /* GEN_LISTED: the elements, over again where there are more */
    uint32_t listed_count;
    uint32_t rank;
    int64_t dims[GEN_RANK];
    uint64_t seed;
    char name[24];
} gen_operand;

typedef struct gen_type_choice {
    const char *constraint;
    onx_dtype dtype;
} gen_type_choice;

/* How a node is made from a recipe. */
typedef struct gen_choice {
    uint64_t seed;
    gen_random *random;   /* instead of the seed */
    bool vary;            /* sizes and broadcasting are drawn, too; otherwise always the same */
    gen_type_choice type; /* constraint NULL: the first types that suit; "*": every constraint that allows it */
    onx_dtype like;       /* elements of wider floats are numbers of this type; 0: of their own */
    bool fixed;           /* all operands but the first are constants */
    bool wide;            /* with `vary`: sizes that fill vectors, and leave a rest */
    uint32_t scale;       /* without `vary`: sizes are multiplied by it; 0: they are not */
    const int64_t *dims;  /* the first operand shall have these sizes, if the recipe allows it; NULL: any */
    uint32_t rank;
} gen_choice;

typedef struct gen_node {
    const onxi_schema *schema;
    const gen_recipe *recipe;
    int64_t size[26];     /* of the letters */
    uint32_t common_rank; /* of = and ~ */
    int64_t common[GEN_RANK];
    gen_type_choice types[GEN_TYPES];
    uint32_t type_count, operand_count, output_count;
    gen_operand operands[GEN_OPERANDS];
    char attributes[GEN_ATTRIBUTES]; /* ONNX text */
} gen_node;
/* False when the recipe cannot be followed so (a type that the port does not take). */
bool gen_node_make(const onxi_schema *schema, const gen_recipe *recipe, const gen_choice *choice, gen_node *out);

/* ---- models ---- */

/* What is done to the node of a model before types are inferred; NULL: nothing. */
typedef void (*gen_edit)(void *user, onx_arena *arena, onx_node *node);
/* A model without nodes, which finds files that it reads in tests/cases/op/files. */
onx_status gen_new(onx_ctx *cx, int64_t opset, onx_doc **out);
/* So does a copy of one. */
onx_status gen_give_folder(onx_doc *doc);
/* A model of that node alone, at the version of the operator. Outputs are declared with the types that inference finds,
 * without shapes. */
onx_status gen_model(onx_ctx *cx, const gen_node *node, gen_edit edit, void *user, onx_doc **out);
/* Adds a node to a graph of `doc`: its operands as inputs or initializers but for those whose name is there already,
 * its outputs as names of `prefix` and a number. */
onx_node *gen_add(onx_doc *doc, onx_graph *graph, const gen_node *node, const char *prefix);
/* Imports the domains that the node needs at these versions. */
bool gen_import(onx_doc *doc, const char *domain, int64_t version);
/* Declares what the node makes as outputs of the graph, with the types that inference finds, without shapes; where it
 * finds none, with those that `node` was made for (NULL: not at all). */
onx_status gen_declare(onx_doc *doc, onx_graph *graph, const gen_node *node, const onx_node *made);
/* Adds the operand as an input or initializer of that name, if there is none yet. */
bool gen_add_operand(onx_doc *doc, onx_graph *graph, const gen_operand *operand);
/* What element i is multiplied by for a nudge: one sign after the other would cancel in sums. */
double gen_nudged(uint64_t i, double nudge);
/* The value of an operand. */
onx_status gen_value(onx_ctx *cx, const gen_operand *operand, onx_value **out);

/* ---- running ---- */

enum { GEN_OUTPUTS = 16 };
typedef struct gen_run {
    onx_status status;
    uint32_t count;                  /* of outputs */
    onx_value *outputs[GEN_OUTPUTS]; /* of the context; NULL unless status is ONX_OK */
    bool planned;                    /* a session could be made */
    double coarse;          /* tolerance of the operands of 16-bit floats, whose nodes may round or not; 0: none */
    char why[320];          /* the first error, empty when there is none */
    uint32_t events;        /* nodes that ran */
    uint32_t others;        /* of them, by other rows than those that come first */
    const char *variant[8]; /* by which kernels the first of them did */
} gen_run;
/* Runs a model on the values of operands, found by the names of the inputs. Diagnostics are cleared. */
void gen_run_model(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, bool plain, unsigned threads,
                   gen_run *out);
/* With the vector kernels of an instruction set (ONX_ISA_*, 0: the best). */
void gen_run_level(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, bool plain, unsigned threads,
                   unsigned isa, gen_run *run);
/* By a session of the caller. */
void gen_run_session(onx_ctx *cx, onx_session *s, const gen_operand *operands, uint32_t count, gen_run *run);
/* By other rows: each node that has a choice is asked for one of its rows first, in another `turn` for another one.
 * How many turns there are; 0: no node has a choice, and nothing was run. */
uint32_t gen_run_rows(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, uint32_t turn,
                      unsigned threads, gen_run *run);
void gen_run_free(gen_run *run);
/* Do both have the same status and the same outputs? Floats agree within a tolerance that suits their type, or bit for
 * bit with `exact`; NaN agrees with NaN and an infinity with itself alone. What differs is written to `why`. */
bool gen_run_agree(const gen_run *a, const gen_run *b, bool exact, char *why, size_t size);
/* The same of the status alone, and of one output. */
bool gen_status_agrees(const gen_run *a, const gen_run *b, char *why, size_t size);
bool gen_output_agrees(const gen_run *a, const gen_run *b, uint32_t index, bool exact, char *why, size_t size);
/* A model as it was made. */
typedef struct gen_origin {
    onx_ctx *cx;
    onx_doc *doc;
    const gen_operand *operands;
    uint32_t count;
    bool ran;                 /* what follows is there */
    gen_run plain, nudged[2]; /* the second one the other way */
} gen_origin;
/* As gen_run_agree within the tolerance, but for outputs that tell nothing: where inputs and constants that differ by
 * some rounding make plain kernels alone give something else (the tangent near a pole, the sine of a large number, a
 * step), or where in either run plain kernels make that output of the values that the run itself has before it. */
bool gen_run_close(const gen_run *a, const gen_run *b, gen_origin *origin, char *why, size_t size);
void gen_origin_free(gen_origin *origin);
/* Says what contradicts: an output whose kind, element type, rank or a size is not what inference says. */
bool gen_type_agrees(const onx_type *type, const onx_value *value, char *why, size_t size);

/* ---- what has to hold for every model ---- */

enum {
    GEN_ANY_VALUES = 1,  /* results are random: only their types are compared */
    GEN_TWO_THREADS = 2, /* two threads give the bits that one gives */
    GEN_LEVELS = 4,      /* the vector kernels of all instruction sets that there are agree */
    GEN_LEAVE_RUNS = 8,  /* plain and fast runs are compared by the caller, each with one of the same computation */
    GEN_ROWS = 16        /* all rows that take a node agree, and two threads give the bits that one gives with them */
};

/* What onx says of a model, and what runs give. */
typedef struct gen_verdict {
    bool sound;   /* by the structure check */
    bool full;    /* by all rules with inference */
    bool refused; /* the rule of a node fails */
    gen_run plain, fast;
    uint32_t others; /* nodes that ran by other rows */
    char why[400];   /* the first contradiction; empty: none */
} gen_verdict;
/* Checks, infers and runs the model and looks for contradictions: a run of what the check refuses or a rule refuses,
 * outputs that are not of the type inferred, plain and fast kernels that differ, a failure without a message. */
void gen_verify(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, unsigned flags,
                gen_verdict *out);
void gen_verdict_free(gen_verdict *verdict);
/* Does the operator need a library that is not on this machine or was left out of this build? */
bool gen_lacks_library(const char *op);

/* Makes a node less tame: leaves optional operands out, puts special values (NaN, infinities, extreme integers) and
 * other sizes into operands; gives an attribute any value or none. */
void gen_wild_operands(gen_node *node, gen_random *random);
bool gen_wild_attribute(onx_arena *arena, onx_node *node, const onxi_schema *schema, gen_random *random);

/* ---- models of several nodes ---- */

enum { GEN_GRAPH_NODES = 6, GEN_GRAPH_OPERANDS = GEN_GRAPH_NODES * GEN_OPERANDS };
typedef struct gen_graph {
    onx_doc *doc;
    int64_t opset;
    bool any_values; /* a node is random */
    bool refused;    /* inference refuses the last node */
    bool wild;       /* a node has omitted operands or attributes that its recipe does not have */
    uint32_t node_count, operand_count;
    gen_operand operands[GEN_GRAPH_OPERANDS];
} gen_graph;
/* A model whose nodes inference does not refuse, but for the last one perhaps; false when the draw gives none. */
bool gen_graph_make(onx_ctx *cx, gen_random *random, gen_graph *out);
void gen_graph_free(gen_graph *graph);

/* The same computation: with constants for inputs; with the last nodes in both branches of an If, in the body of a Loop
 * or Scan of one step (whose outputs have one more axis), in a function. */
typedef enum gen_form { GEN_CONSTANTS, GEN_BRANCH, GEN_LOOP, GEN_SCAN, GEN_FUNCTION, GEN_FORMS } gen_form;
/* False when the model has no such form. The If asks for an input `cond`. */
bool gen_graph_form(onx_ctx *cx, const gen_graph *graph, gen_form form, gen_random *random, onx_doc **out);

typedef struct gen_finding {
    char why[480]; /* empty: everything agrees */
    char *text;    /* of the model, to be freed; NULL: none */
    uint32_t nodes, forms;
    bool ran;
} gen_finding;
/* A random model looked at from all sides: by gen_verify with two threads, through all formats and back, in all forms.
 */
void gen_differential(gen_random *random, gen_finding *out);

#endif
