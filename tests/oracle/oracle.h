/* oracle.h - looks at one model from all sides: each way to run it has to give what its nodes give one by one, and each
 * transform has to keep it valid and its results the same. docs/notes/oracle.md */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

#include <onx/run.h>

enum { ORACLE_PORTS = 48, ORACLE_OUTPUTS = 192, ORACLE_SETS = 6, ORACLE_RANK = 8, ORACLE_NUDGES = 7, ORACLE_WHY = 400 };

/* ---- values for the inputs ---- */

typedef struct oracle_input {
    char name[64];
    uint32_t rank;
    int64_t dims[ORACLE_RANK];
    double low, high; /* range of the elements, both inclusive */
    bool special;     /* some floats are NaN or infinite */
} oracle_input;
typedef struct oracle_set {
    uint32_t count;
    oracle_input input[ORACLE_PORTS];
} oracle_set;
/* The sets that the metadata `inputs` of the model has: "x=2x3:-2:2, y=:0:5; x=4x3", where a range may be left out, and
 * ":s" after it asks for NaN and infinities, too;
 * inputs that are not mentioned get the shape that they declare, with drawn numbers for symbols. */
uint32_t oracle_sets(const onx_model *model, oracle_set sets[ORACLE_SETS]);
/* How floating-point elements are changed: multiplied by 1 +- `by`, where `turn` says with which signs, then rounded to
 * a significand of `bits` bits (0: they are not). */
typedef struct oracle_nudge {
    double by;
    uint32_t turn;
    int bits;
} oracle_nudge;
double oracle_nudged(const oracle_nudge *nudge, uint64_t i, double x);
/* The value of an input in set number `set`; `nudge` may be NULL. NULL: out of memory, or the dims are refused. */
onx_value *oracle_value(onx_ctx *cx, const oracle_input *input, onx_dtype dtype, uint32_t set,
                        const oracle_nudge *nudge);

/* ---- runs ---- */

typedef struct oracle_run {
    onx_status status;
    uint32_t count;                     /* of outputs */
    onx_value *outputs[ORACLE_OUTPUTS]; /* of the context */
    char why[ORACLE_WHY];               /* the first error */
} oracle_run;
void oracle_run_free(oracle_run *run);

/* ---- the examination of one model ---- */

typedef struct oracle oracle;
typedef struct oracle_row {
    const char *name;
    uint8_t share;     /* percent of the random models that are looked at so */
    uint8_t share_ops; /* percent of the models of one operator */
    void (*look)(oracle *o);
    const void *data;
} oracle_row;
/* The tables; each ends with a row without a name. */
extern const oracle_row oracle_run_rows[], oracle_change_rows[];
/* The row of that index over all tables; NULL past the last one. */
const oracle_row *oracle_row_get(uint32_t index);

typedef enum oracle_extent { ORACLE_ALL_ROWS, ORACLE_SOME_ROWS, ORACLE_SOME_ROWS_OPS } oracle_extent;

struct oracle {
    onx_ctx *cx;
    onx_doc *doc;
    onx_buffer bytes; /* of the document, in binary form */
    uint64_t seed;    /* for what a row draws */
    oracle_set sets[ORACLE_SETS];
    uint32_t set_count;
    oracle_run reference[ORACLE_SETS];             /* node by node */
    oracle_run nudged[ORACLE_SETS][ORACLE_NUDGES]; /* inputs and constants differ by some rounding */
    bool has_nudged[ORACLE_SETS][ORACLE_NUDGES];
    struct oracle_kept *kept; /* sessions of nodes */
    oracle_extent extent;
    bool valid;      /* by all rules */
    bool runs;       /* with the first set */
    bool quantized;  /* values are rounded to whole steps somewhere */
    bool lists;      /* has sequences, whose elements are computed only if something reads them */
    bool steps;      /* has operators that give something else as soon as an operand passes a border */
    bool types_only; /* a comparison looks at types and shapes only */
    uint32_t graphs; /* with subgraphs */
    double coarse;   /* rounding of the coarsest element type of the model */
    const oracle_row *row;
    void (*found)(void *user, const char *row, const char *kind, const char *text);
    void *user;
    uint32_t findings;
};

/* Looks at the model with the row of that name, or with all rows (NULL), or with those that the seed draws. `begin` is
 * called before each row; may be NULL. False when the text is no model. */
bool oracle_examine(oracle *o, onx_str text, uint64_t seed, const char *only, oracle_extent extent,
                    void (*begin)(void *user, const char *row));
void oracle_found(oracle *o, const char *kind, const char *format, ...) ONX_PRINTF(3, 4);
/* The first error of the context, on one line; diagnostics are cleared. */
void oracle_error(onx_ctx *cx, char *text, size_t size);

/* A session of `doc` runs on a set. */
void oracle_run_session(oracle *o, onx_session *s, uint32_t set, const oracle_nudge *nudge, oracle_run *run);
void oracle_run_doc(oracle *o, onx_doc *doc, const onx_session_options *options, uint32_t set, oracle_run *run);
/* The same, with one session for all sets of a row: it opens when the first set runs, or says for every set why it does
 * not. The caller frees the session. */
typedef struct oracle_series {
    onx_session *session;
    oracle_run refused; /* by opening it; has no outputs */
} oracle_series;
void oracle_run_next(oracle *o, oracle_series *all, onx_doc *doc, const onx_session_options *options, uint32_t set,
                     oracle_run *run);
/* NULL: `run` says why. */
onx_session *oracle_session(oracle *o, onx_doc *doc, const onx_session_options *options, oracle_run *run);
/* A copy of the document of the model. */
onx_doc *oracle_copy(oracle *o);
/* The model by nodes: each node is a session of its own, and subgraphs are followed here. ONX_E_UNSUPPORTED: a node
 * cannot be run alone. */
void oracle_run_nodes(oracle *o, uint32_t set, oracle_run *run);
/* The same with inputs and all that nodes compute changed, but no constants; operators that are functions run by the
 * nodes of their bodies. */
void oracle_run_nodes_nudged(oracle *o, uint32_t set, const oracle_nudge *nudge, oracle_run *run);
void oracle_free_nodes(oracle *o);

/* A model of one operator: number `n` goes over operators, versions, recipes and element types; NULL: it does not
 * exist. To be freed. */
char *oracle_operator_model(uint64_t n);
/* How many pairs of a version and a recipe there are; from then on they are known in processes that are forked, too. */
uint64_t oracle_operator_count(void);
/* The text of a document, to be freed; NULL: out of memory. */
char *oracle_text(onx_ctx *cx, const onx_model *model);

/* ---- comparing ---- */

/* How far `a` is from `b`, relative to the largest element of `b`: 0 equal, INFINITY for NaN or infinities in other
 * places, -1 for another type or shape. Elements that are not floating-point count as INFINITY. */
double oracle_deviation(const onx_value *a, const onx_value *b, char *why, size_t size);
/* The largest magnitude of an element that is finite; 0 for what has no floating-point elements. */
double oracle_largest(const onx_value *v);
/* No element of a tensor of floating-point numbers is NaN or infinite. */
bool oracle_is_finite(const onx_value *v);
/* NaN agrees with every NaN; the sign of zero counts. */
bool oracle_same_bits(const onx_value *a, const onx_value *b, char *why, size_t size);
/* Runs on nudged inputs are made again when they are needed next, by the rounding that `coarse` then has. */
void oracle_forget_nudged(oracle *o);
/* Reports what is wrong with a run, if something is: `what` says which run. Bit for bit if `exact`; otherwise within
 * what rounding can explain in this model. */
bool oracle_compare(oracle *o, const char *what, const oracle_run *run, const oracle_run *reference, uint32_t set,
                    bool exact);

/* ---- many models, in processes of their own ---- */

typedef struct oracle_finding {
    char row[32], kind[16], text[ORACLE_WHY * 2];
} oracle_finding;
/* Looks at one model in a child process; the number of findings, of which up to `room` are in `out`. A crash and a hang
 * (more than `seconds`) are findings. */
uint32_t oracle_probe(const char *text, uint64_t seed, const char *only, unsigned seconds, oracle_finding *out,
                      uint32_t room);
/* A smaller model with the same finding, to be freed; it takes about `seconds`. */
char *oracle_reduce(const char *text, uint64_t seed, const oracle_finding *finding, unsigned seconds);
/* Are these findings of the same sort, as far as can be seen from outside? */
bool oracle_same_sort(const oracle_finding *a, const oracle_finding *b);

#endif
