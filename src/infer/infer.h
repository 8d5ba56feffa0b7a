/* infer.h - the insides of the inference engine: facts about values, scopes of names, and the walk over nodes. */
#ifndef ONXI_INFER_H
#define ONXI_INFER_H

#include <onx/infer.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

/* Where knowledge was lost; shared by all values that are unknown because of it. */
typedef struct onxi_infer_loss {
    struct onxi_infer_loss *next;
    onx_infer_loss shown;
    uint32_t top, order; /* the node of the main graph where it is or that holds it; which loss it was to be found */
    bool stale;          /* the node is being inferred again */
} onxi_infer_loss;

/* What is known of a value. */
typedef struct onxi_infer_fact {
    onxi_type type;
    const onxi_known_ints *value; /* elements that are known, or NULL */
    const onx_tensor *tensor;     /* initializer or Constant, or NULL */
    onxi_infer_loss *loss;        /* why it is not known, or NULL */
    bool constant;                /* `value` is in the model itself: known without data propagation too */
    bool value_tried;             /* `tensor` was tried for `value` */
    bool unreadable;              /* `tensor` has elements that could be known, were they there */
    bool omitted;                 /* an input of a function that the caller does not give */
    bool shared;                  /* by all values of this type: never changed (onxi_infer_fact_of_type) */
} onxi_infer_fact;

/* ---- names ---- */

enum { ONXI_DECLARED_NOT, ONXI_DECLARED_NAME, ONXI_DECLARED_TYPE };

typedef struct onxi_infer_name {
    onx_str text;
    uint8_t declared;               /* by the current scope: ONXI_DECLARED_* */
    bool made;                      /* an input, an initializer or a node before has given it */
    onxi_infer_fact *fact;          /* in the current scope; NULL: not bound */
    struct onxi_infer_scope *scope; /* that bound it */
} onxi_infer_name;

/* All names of a graph with its subgraphs, or of a function body. Entries keep their index, not their address. Most
 * names need not be looked up: an input is what one of the last nodes made, and where all values are declared, they are
 * made in that order. */
enum { ONXI_INFER_RECENT = 4, ONXI_INFER_AHEAD = 8 };
typedef struct onxi_infer_names {
    onxi_infer_name *entries;
    uint32_t count, room;
    onxi_table table;
    uint32_t recent[ONXI_INFER_RECENT]; /* names that were made last, as a ring */
    uint32_t made;                      /* how many were made so far: the last one is recent[(made - 1) % RECENT] */
    bool in_order;                      /* it came after the one before */
    struct {
        onx_str text;
        uint32_t hash;
    } ahead[ONXI_INFER_AHEAD]; /* hashes of names that are looked up soon */
} onxi_infer_names;

/* A value that a graph makes, for the result. */
typedef struct onxi_infer_made {
    onx_str name;
    onxi_infer_fact *fact;
    bool declared; /* the graph says something of it */
} onxi_infer_made;

/* What was found for one graph; replaced when a loop body is inferred again. */
typedef struct onxi_infer_result {
    const onx_graph *graph;
    onxi_infer_made *made; /* inputs, then outputs of nodes, in order */
    uint32_t count, room, input_count;
    onxi_table table; /* made when first asked by name */
    bool indexed;
    bool settled;                   /* value_info of the graph says by itself all that was found of the names in it */
    struct onxi_infer_result *next; /* in order of first meeting */
} onxi_infer_result;

typedef struct onxi_infer_undo {
    uint32_t name;
    uint8_t declared;
    onxi_infer_fact *fact;
    struct onxi_infer_scope *scope;
} onxi_infer_undo;

/* A graph being walked. */
typedef struct onxi_infer_scope {
    struct onxi_infer_scope *parent; /* the enclosing graph, or the caller's of a function */
    const onx_graph *graph;          /* NULL: a function body */
    struct onxi_infer_frame *frame;
    const onx_node *node; /* of the parent, that holds the subgraph or calls the function */
    uint32_t node_index;
    uint32_t depth;
    uint32_t undo_mark;        /* of the frame's log */
    onxi_infer_result *result; /* NULL: not kept */
    bool unreachable;          /* never run: what is wrong in it is not said */
    bool unsupported;          /* an unknown operator was met: later failures may follow from it */
    uint32_t unsupported_at;
} onxi_infer_scope;

/* A model's graph or a function body: what names mean there. */
typedef struct onxi_infer_frame {
    struct onxi_infer_frame *caller;
    const onx_function *function; /* NULL: the graph of the model */
    onxi_arguments arguments;     /* of the call */
    onxi_binder *binder;
    onxi_infer_names names;
    onxi_infer_undo *undo;
    uint32_t undo_count, undo_room;
} onxi_infer_frame;

/* The main graph as it was walked: its names stay bound, so that nodes can be inferred again. */
typedef struct onxi_infer_main_graph {
    onxi_infer_frame frame;
    onxi_infer_scope scope;
} onxi_infer_main_graph;

/* Facts of which nothing but a type is known, one per type. */
typedef struct onxi_infer_plain {
    onxi_infer_fact **facts;
    uint32_t count, room;
    onxi_table table;
} onxi_infer_plain;

/* A node and its result: facts do not change once a node has used them, and a rule sees nothing else. */
enum {
    ONXI_INFER_REPEATS = 128,
    ONXI_INFER_REPEAT_INPUTS = 4,
    ONXI_INFER_REPEAT_OUTPUTS = 2,
    ONXI_INFER_REPEAT_ATTRIBUTES = 8,
    ONXI_INFER_REPEAT_INTS = 16
};
typedef struct onxi_infer_repeat {
    const onxi_bound *bound; /* NULL: none */
    const onx_node *node;
    onxi_infer_fact *inputs[ONXI_INFER_REPEAT_INPUTS], *outputs[ONXI_INFER_REPEAT_OUTPUTS];
} onxi_infer_repeat;

struct onx_infer {
    onx_ctx *cx;
    onx_doc *doc;           /* NULL when parts of a model are inferred */
    const onx_model *model; /* may be NULL */
    onx_infer_options options;
    onx_arena *arena; /* facts, types, values */
    onxi_dims *dims;
    onx_doc reader; /* of `doc`: any number of threads may infer types of one document */
    onx_ctx *quiet; /* for reading tensors that may be unreadable */
    onxi_infer_result *results, **results_end;
    onxi_map result_of; /* by graph */
    onxi_infer_loss *losses, **losses_end;
    uint32_t loss_count;
    bool may_cycle;     /* a node takes what none before it makes, or some nodes were not looked at; false: no cycle */
    bool applied;       /* the result was written into the model */
    onxi_map lost_at;   /* loss of a node */
    onxi_map reported;  /* node and message */
    onxi_map failed_at; /* how many failures, by node of the main graph */
    onxi_infer_main_graph *main;    /* NULL: nothing is inferred again */
    struct onxi_infer_again *again; /* who follows from what; made when a dimension is fixed afterwards */
    onxi_functions functions;
    onxi_infer_plain plain;
    onxi_infer_repeat repeats[ONXI_INFER_REPEATS]; /* by hash; a new one takes the place of the old one */
    uint64_t visits, visit_limit;                  /* of nodes: loops and calls may repeat them */
    onxi_map binders;                              /* by function; 0: of the model's graphs */
    onxi_map calls;                                /* calls that were inferred, by what they are given */
    struct onxi_infer_made_body *bodies;           /* of operators without a rule of their own */
    uint64_t cut;                                  /* how often something was left out because of a limit */
    uint64_t carried;                              /* elements of values */
    uint64_t failed;
    uint32_t round; /* how often a dimension was fixed afterwards: each time says anew what is an error */
    const struct onxi_infer_running *failing; /* that the next report is about, to show its inputs; NULL: none */
    const char *rule;                         /* that the next report is about; NULL: none in particular */
    bool incomplete;   /* the structure has errors that were said: what follows from them is not */
    bool invalid;      /* something that ends in ONX_E_INVALID was reported */
    bool gave_up;      /* visit_limit was reported */
    onx_status status; /* out of memory */
    /* asked for by name */
    onx_bytes *dim_texts; /* of expressions as printed, by index, in dim_text_arena */
    uint32_t dim_text_count;
    const onx_arena *dim_text_arena;
    onx_arena *type_arena;
};

/* ---- infer_names.c ---- */

/* Index of the name, added when new; UINT32_MAX when out of memory. */
uint32_t onxi_infer_names_add(onx_infer *e, onxi_infer_names *names, onx_str text);
/* The same for a name that may not be there: UINT32_MAX then. */
uint32_t onxi_infer_names_find(const onxi_infer_names *names, onx_str text);
/* Room for `count` more names, in one step. */
onx_status onxi_infer_names_reserve(onx_infer *e, onxi_infer_names *names, uint64_t count);
/* The same for a name that a node makes or the graph declares: likely the one after the last of them. */
uint32_t onxi_infer_names_make(onx_infer *e, onxi_infer_names *names, onx_str text);
/* Prefetches the place of a name that is made soon. */
void onxi_infer_names_prefetch(onxi_infer_names *names, onx_str text);
void onxi_infer_names_free(onx_infer *e, onxi_infer_names *names);
/* Binds a name in the scope; what an enclosing one had comes back when the scope is left. */
onx_status onxi_infer_scope_bind(onx_infer *e, onxi_infer_scope *scope, uint32_t name, onxi_infer_fact *fact);
void onxi_infer_scope_leave(onx_infer *e, onxi_infer_scope *scope);
onxi_infer_fact *onxi_infer_fact_new(onx_infer *e);
/* onxi_map_at that also says in e->status when memory ran out. */
void **onxi_infer_map_at(onx_infer *e, onxi_map *map, uint64_t key);
/* The record of a graph, emptied when it was there; NULL when out of memory. */
onxi_infer_result *onxi_infer_result_of(onx_infer *e, const onx_graph *graph, bool make);
onx_status onxi_infer_result_add(onx_infer *e, onxi_infer_result *result, onx_str name, onxi_infer_fact *fact,
                                 bool declared);
onxi_infer_fact *onxi_infer_result_find(onx_infer *e, onxi_infer_result *result, onx_str name);

/* ---- infer_repeat.c ---- */

/* The shared fact of a tensor type of known rank; NULL when out of memory. */
onxi_infer_fact *onxi_infer_fact_of_type(onx_infer *e, const onxi_type *type);
/* Before a fact is changed: the one of the entry, which gets a copy of its own when it was shared. NULL when out of
 * memory. */
onxi_infer_fact *onxi_infer_fact_own(onx_infer *e, onxi_infer_name *entry);
/* The shared facts of the outputs where an earlier node did the same to the same inputs; NULL where none did. Inputs
 * are NULL where the node leaves them out, and nowhere else. */
onxi_infer_fact *const *onxi_infer_repeat_find(onx_infer *e, const onxi_bound *bound, const onx_node *node,
                                               onxi_infer_fact *const *inputs);
/* Keeps results of a node: types alone, without symbols of its own, nothing reported, subgraphs and functions apart.
 */
void onxi_infer_repeat_note(onx_infer *e, const onxi_bound *bound, const onx_node *node, onxi_infer_fact *const *inputs,
                            onxi_infer_fact *const *outputs);
/* For when symbols get another meaning. */
void onxi_infer_repeat_forget(onx_infer *e);

/* ---- infer_type.c ---- */

/* From a TypeProto; symbols are those of the engine. Unknown dims become fresh symbols. Bounded by the depth limit. */
onx_status onxi_infer_type_read(onx_infer *e, const onx_type *type, onxi_type *out);
/* Reads a tensor type that says all there is to say, an element type and a number for each of a few dimensions, into
 * the caller's out->dims; false for other types. */
enum { ONXI_INFER_PLAIN_RANK = 8 };
bool onxi_infer_type_plain(const onx_type *type, onxi_type *out);
/* To a TypeProto in the arena; NULL when nothing is known. */
onx_status onxi_infer_type_write(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type **out);
/* The same for a tensor whose message is there and zeroed. */
onx_status onxi_infer_tensor_write(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type_tensor *tensor);
/* The memory of a shape of that rank, 0 when it is too large, and the shape in such memory: its pointers and counts are
 * set, the rest stays as it is. */
size_t onxi_infer_shape_size(uint32_t rank);
onx_tensor_shape *onxi_infer_shape_place(void *memory, uint32_t rank);
/* Two sources for one value: `into` gets what both say. False, with the contradiction in words, when they exclude each
 * other; `into` is left alone then. */
bool onxi_infer_type_merge(onx_infer *e, const onxi_type *from, onxi_type *into, char *why, size_t why_size);
/* Fresh symbols in the place of unknown dims; true when there were any. */
bool onxi_infer_type_materialize(onx_infer *e, onxi_type *type);
/* The text of a dimension, kept in the arena, once as long as calls have the same arena; empty bits when it has none.
 */
onx_bytes onxi_infer_dim_text(onx_infer *e, onx_arena *arena, onxi_dim d);
/* As text: float[N,128]. */
size_t onxi_infer_type_print(const onxi_dims *dims, const onxi_type *type, char *buf, size_t size);

/* ---- infer_walk.c ---- */

onx_status onxi_infer_node(onx_infer *e, onxi_infer_scope *scope, const onx_node *node, uint32_t index);
/* What a node counts for in `visits`. */
static inline uint64_t onxi_infer_cost(const onx_node *node)
{
    return 1 + ((uint64_t)node->input_count + node->output_count) / 8;
}
onx_status onxi_infer_nodes(onx_infer *e, onxi_infer_scope *scope, onx_node *const *nodes, uint32_t count);
/* What a value_info says of a name, and what an initializer gives. */
onx_status onxi_infer_declare(onx_infer *e, onxi_infer_scope *scope, const onx_value_info *info);
onx_status onxi_infer_initializer(onx_infer *e, onxi_infer_scope *scope, const onx_tensor *tensor);
onx_status onxi_infer_sparse_initializer(onx_infer *e, onxi_infer_scope *scope, const onx_sparse_tensor *tensor);
/* The node of the outermost graph where a node of the scope is. */
uint32_t onxi_infer_top(const onxi_infer_scope *scope, uint32_t index);
void onxi_infer_count_failures(onx_infer *e, const onxi_infer_scope *scope, uint32_t index, uint64_t count);
/* Under which key lost_at has a node. */
static inline uint64_t onxi_infer_node_key(const onx_node *node)
{
    return (uint64_t)(uintptr_t)node;
}
/* Declared types, inputs, initializers, nodes; the types of the outputs go to `outputs`. `inputs` may be NULL. */
onx_status onxi_infer_graph_in(onx_infer *e, onxi_infer_scope *scope, const onxi_type *inputs, uint32_t input_count,
                               onxi_type *outputs, uint32_t output_count);
/* Reports what is wrong at a node: an error in strict mode or when `fatal`, else a warning. */
void onxi_infer_report(onx_infer *e, const onxi_infer_scope *scope, const onx_node *node, uint32_t index, bool fatal,
                       const char *format, ...) ONX_PRINTF(6, 7);
onx_str onxi_infer_path(onx_infer *e, const onxi_infer_scope *scope, const onx_node *node, uint32_t index);
/* How many values of full length are carried: memory stays in proportion to the model, not to that length. */
enum { ONXI_CARRIED_LIMIT = 4 << 20, ONXI_CARRIED_FEW = 64 };
/* Are they the same in all that a rule sees? */
bool onxi_infer_fact_same(const onxi_infer_fact *a, const onxi_infer_fact *b);
/* Frees what a frame holds outside the arena. */
void onxi_infer_frame_free(onx_infer *e, onxi_infer_frame *frame);
/* What the nodes mean of a graph of the model (`function` NULL) or of a function's body; made once for each. */
onx_status onxi_infer_binder(onx_infer *e, const onx_function *function, onxi_binder **out);

/* ---- infer_call.c ---- */

extern const onxi_call_ops onxi_infer_call_ops;
/* A call being run: what its ops need. `call` comes first. */
typedef struct onxi_infer_running {
    onxi_call call;
    onx_infer *infer;
    onxi_infer_scope *scope;
    uint32_t index;          /* of the node */
    onxi_infer_fact **facts; /* of the inputs; NULL: omitted */
    bool failed;
    bool plain; /* the outputs so far are shared facts, in `made` */
    onxi_infer_fact *made[ONXI_INFER_REPEAT_OUTPUTS];
    onxi_infer_loss *inner; /* knowledge that was lost inside a subgraph or function, or NULL */
    const char *rule;       /* that is broken where it failed (onx/check.h); NULL: the operator's own conditions */
    char why[256];
} onxi_infer_running;

/* ---- infer_function.c ---- */

/* Infers a function body as called by the node of `run`; sets the outputs of the call. */
onx_status onxi_infer_call_function(onxi_infer_running *run, const onx_function *function);
/* The same for the body of the operator, for those that have no rule of their own. */
onx_status onxi_infer_call_operator(onxi_infer_running *run);
void onxi_infer_bodies_free(onx_infer *e);
/* With given types and attributes. */
onx_status onxi_infer_body(onx_infer *e, const onx_function *function, onxi_infer_fact *const *inputs,
                           uint32_t input_count, const onx_attribute *const *attributes, uint32_t attribute_count,
                           onxi_infer_fact **outputs, uint32_t output_count);

/* ---- infer_check.c ---- */

/* What the inputs of a node are, as far as it is short: "a" is float[N,4], "s" is int64[2] {2,-1}. In the arena. */
onx_str onxi_infer_show_inputs(const onxi_infer_running *run);

/* Checks the node of `run` against arity and type constraints of its schema. */
onx_status onxi_infer_check_types(onxi_infer_running *run);

/* ---- infer_fix.c ---- */

void onxi_infer_again_free(onx_infer *e);

/* ---- infer_places.c ---- */

/* Where the model names a symbol. */
typedef enum onxi_infer_place_kind {
    ONXI_PLACE_NODE, /* in a subgraph or an attribute of this node of the main graph */
    ONXI_PLACE_NAME, /* in what the main graph declares of this name: one of its value_info, input, output */
    ONXI_PLACE_ALL   /* in a function */
} onxi_infer_place_kind;

typedef struct onxi_infer_dim_place {
    struct onxi_infer_dim_place *next;
    onxi_infer_place_kind kind;
    uint32_t node;
    onx_str name;
} onxi_infer_dim_place;

typedef struct onxi_infer_dim_places {
    struct onxi_infer_dim_places *next;
    onxi_infer_dim_place *first;
} onxi_infer_dim_places;

/* All places of the model whose dimensions have a text, by the symbols in it. */
typedef struct onxi_infer_places {
    onxi_dims *plain; /* where the texts were read; it holds the names */
    onxi_infer_names symbols;
    onxi_infer_dim_places **of; /* by symbol */
    onxi_infer_dim_places *any; /* texts too large to be read: any symbol may be in them */
} onxi_infer_places;

onx_status onxi_infer_places_new(onx_infer *e, onxi_infer_places *out);
void onxi_infer_places_free(onx_infer *e, onxi_infer_places *places);

/* ---- infer_api.c ---- */

/* Walks the main graph, forgetting what an earlier walk found. */
onx_status onxi_infer_main(onx_infer *e);
void onxi_infer_main_free(onx_infer *e);
onx_status onxi_infer_start(onx_ctx *cx, onx_doc *doc, const onx_model *model, const onx_infer_options *options,
                            onx_infer **out);

#endif
