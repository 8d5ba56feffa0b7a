/* gen_draw.h - random valid models of many nodes as ONNX text: nodes come from a table of blocks, each of which knows
 * the shapes of what it makes. The seed determines everything. docs/notes/oracle.md */
#ifndef TESTS_GEN_DRAW_H
#define TESTS_GEN_DRAW_H

#include "gen/gen.h"

enum { DRAW_RANK = 6, DRAW_VALUES = 256, DRAW_INPUTS = 32, DRAW_SETS = 4, DRAW_FUNCTIONS = 4 };
enum { DRAW_ELEMENTS = 40000, DRAW_NODES = 24 }; /* maximum per value, per model */

typedef enum draw_theme {
    DRAW_ANY,    /* all blocks alike */
    DRAW_ALIAS,  /* views, pieces, values read several times, and several outputs */
    DRAW_NESTED, /* If, Loop, Scan and functions inside of each other */
    DRAW_ZERO,   /* many sizes of 0 and 1 */
    DRAW_TYPES,  /* all element types alike */
    DRAW_THEMES
} draw_theme;
extern const char *const draw_theme_names[DRAW_THEMES];

typedef struct draw_text {
    char *ptr; /* NULL: out of memory, or nothing was added yet */
    size_t len, room;
    bool failed;
} draw_text;
void draw_add(draw_text *text, const char *format, ...) ONX_PRINTF(2, 3);
void draw_text_free(draw_text *text);

typedef struct draw_value {
    char name[12];
    onx_dtype dtype;
    uint32_t rank;
    int64_t dims[DRAW_RANK];
    bool global; /* an input or initializer of the model: every subgraph sees it */
    bool made;   /* by a node */
} draw_value;

typedef struct draw_input {
    draw_value value;
    int low, high; /* range of the elements */
} draw_input;

typedef struct draw_function {
    char name[12];
    uint32_t nodes; /* of its body, those of inner calls included */
} draw_function;

typedef struct draw {
    gen_random random;
    draw_theme theme;
    int64_t opset;
    bool vary;                                       /* inputs have other sizes in other sets, and outputs no shapes */
    bool wide;                                       /* sizes that fill vectors, and leave a rest */
    bool shared;                                     /* equal sizes have the same symbol */
    uint64_t left_out;                               /* blocks that this model does not have */
    draw_text nodes, initializers, ports, functions; /* `ports`: initializers that are inputs, too */
    draw_value values[DRAW_VALUES];
    draw_input inputs[DRAW_INPUTS];
    draw_function function[DRAW_FUNCTIONS];
    uint32_t value_count, input_count, function_count, name_count, node_count, depth;
} draw;

/* A building block adds nodes to the model; false where that does not suit, and what it added is then removed. */
typedef struct draw_block {
    const char *name;
    uint8_t weight[DRAW_THEMES];
    int16_t since; /* version of the default domain */
    bool flow;     /* has subgraphs */
    bool (*make)(draw *d);
} draw_block;
/* The tables; each ends with a row without a name. */
extern const draw_block draw_plain_blocks[], draw_move_blocks[], draw_net_blocks[], draw_sum_blocks[],
    draw_shape_blocks[], draw_flow_blocks[], draw_any_blocks[];

/* The text of a model, to be freed; NULL when the seed gives none. Its metadata `inputs` has sets of input values in
 * the form of oracle_sets. */
char *draw_model(uint64_t seed, draw_theme theme);
/* Adds nodes of drawn blocks until there are `count` more, or none suits. */
void draw_blocks(draw *d, uint32_t count);

/* ---- for blocks: numbers ---- */

bool draw_chance(draw *d, uint32_t percent);
int draw_between(draw *d, int low, int high); /* both inclusive */
int64_t draw_size(draw *d);
uint64_t draw_product(const int64_t *dims, uint32_t count);
/* One of these. */
#define DRAW_ONE(d, type, ...)                                                                                         \
    ((type[]){ __VA_ARGS__ }[gen_below(&(d)->random, sizeof((type[]){ __VA_ARGS__ }) / sizeof(type))])

/* ---- for blocks: values ---- */

#define DRAW_BIT(dtype) (1u << ONX_##dtype)
#define DRAW_FLOATS     (DRAW_BIT(FLOAT) | DRAW_BIT(DOUBLE) | DRAW_BIT(FLOAT16) | DRAW_BIT(BFLOAT16))
#define DRAW_WHOLES     (DRAW_BIT(INT64) | DRAW_BIT(INT32) | DRAW_BIT(INT16) | DRAW_BIT(INT8) | DRAW_UNSIGNED)
#define DRAW_UNSIGNED   (DRAW_BIT(UINT64) | DRAW_BIT(UINT32) | DRAW_BIT(UINT16) | DRAW_BIT(UINT8))
#define DRAW_EVERY      UINT32_MAX

/* Which value is wanted: types, ranks, whether all sizes are above 0. */
typedef struct draw_wish {
    uint32_t types, least, most;
    bool full;
} draw_wish;
/* False when there is none; recent values come more often. */
bool draw_pick(draw *d, draw_wish wish, draw_value *out);
/* The bits of the element types that an operator takes as input `input` in the version of the model; 0: none. */
uint32_t draw_takes(const draw *d, const char *op, uint32_t input);
/* ... and that it may give as output `output`. */
uint32_t draw_gives(const draw *d, const char *op, uint32_t output);
bool draw_has(const draw *d, const char *op);
draw_value draw_like(const draw_value *v); /* same type and shape, without name */
draw_value draw_of(onx_dtype dtype, uint32_t rank, const int64_t *dims);

typedef enum draw_fill { DRAW_SMALL, DRAW_WEIGHT, DRAW_ABOVE, DRAW_INDEX } draw_fill;
/* A constant: a node, an initializer, or an initializer that is an input, too. `below`: for DRAW_INDEX, whose elements
 * are -below to below - 1 if `negative`. The name is in `v`. */
void draw_constant(draw *d, draw_value *v, draw_fill fill);
void draw_indices(draw *d, draw_value *v, int64_t below, bool negative);
/* ... with these elements, written as in ONNX text. */
void draw_listed_constant(draw *d, draw_value *v, const char *elements);
/* A scalar or a tensor of one number throughout. */
void draw_number(draw *d, draw_value *v, double number);
/* The name of a constant of these integers. */
draw_value draw_ints(draw *d, const int64_t *ints, uint32_t count);
bool draw_new_input(draw *d, draw_value *v, int low, int high);
void draw_name(draw *d, draw_value *v);

/* The common shape of two values; false if there is none. */
bool draw_broadcast(const draw_value *a, const draw_value *b, draw_value *out);
/* A second operand that broadcasts with `v`. */
bool draw_operand(draw *d, const draw_value *v, draw_value *out);
/* ... without changing its shape. */
bool draw_smaller(draw *d, const draw_value *v, draw_value *out);

/* Adds a node with `count` outputs, which get their names here; the format is what follows the equals sign. False where
 * an output is too large. */
bool draw_node(draw *d, draw_value *out, uint32_t count, const char *format, ...) ONX_PRINTF(4, 5);
/* Integers as in "[1, 2]". */
typedef struct draw_list {
    char text[128];
} draw_list;
draw_list draw_listed(const int64_t *ints, uint32_t count);

#endif
