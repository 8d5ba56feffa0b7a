/* infer.h - the internals of type inference: facts about values, scopes of names, and the walk over nodes. */
#ifndef ONXI_INFER_H
#define ONXI_INFER_H

#include <onx/infer.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

/* The reason why a value is not fully known; shared by all values that depend on it. */
typedef struct onxi_infer_loss {
    struct onxi_infer_loss *next;
    onx_infer_loss shown;
    uint32_t top, order; /* the node of the main graph that is or contains the cause; sequence number */
    bool stale;          /* the node is being inferred again */
} onxi_infer_loss;

/* The known facts about a value. */
typedef struct onxi_infer_fact {
    onxi_type type;
    const onxi_known_ints *value; /* known elements, or NULL */
    const onx_tensor *tensor;     /* the initializer or Constant, or NULL */
    onxi_infer_loss *loss;        /* why the value is not fully known, or NULL */
    bool constant;                /* `value` comes from the model itself: known without data propagation */
    bool value_tried;             /* reading `value` from `tensor` was attempted */
    bool unreadable;              /* `tensor` contains elements that cannot be read, such as missing external data */
    bool omitted;                 /* a function input that the call omits */
    bool shared;                  /* used by all values of this type: must not be changed (onxi_infer_fact_of_type) */
} onxi_infer_fact;

/* ---- names ---- */

enum { ONXI_DECLARED_NOT, ONXI_DECLARED_NAME, ONXI_DECLARED_TYPE };

typedef struct onxi_infer_name {
    onx_str text;
    uint8_t declared;               /* by the current scope: ONXI_DECLARED_* */
    bool made;                      /* defined by an input, an initializer or an earlier node */
    onxi_infer_fact *fact;          /* in the current scope; NULL: not bound */
    struct onxi_infer_scope *scope; /* the scope that bound it */
} onxi_infer_name;

/* All names of a graph with its subgraphs, or of a function body. The index of an entry is stable, its address is not.
 * Most names are found without a look-up: an input was mostly defined by one of the last nodes, and if all values are
 * declared, they are defined in the order of declaration. */
enum { ONXI_INFER_RECENT = 4, ONXI_INFER_AHEAD = 8 };
typedef struct onxi_infer_names {
    onxi_infer_name *entries;
    uint32_t count, room;
    onxi_table table;
    uint32_t recent[ONXI_INFER_RECENT]; /* the names defined last, as a ring buffer */
    uint32_t made;                      /* number of definitions so far: the last one is recent[(made - 1) % RECENT] */
    bool in_order;                      /* it followed the previous one in order */
    struct {
        onx_str text;
        uint32_t hash;
    } ahead[ONXI_INFER_AHEAD]; /* hashes of names that will be looked up soon */
} onxi_infer_names;

/* A value that a graph defines, for the result. */
typedef struct onxi_infer_made {
    onx_str name;
    onxi_infer_fact *fact;
    bool declared; /* the graph declares its type */
} onxi_infer_made;

/* The result for one graph; replaced when a loop body is inferred again. */
typedef struct onxi_infer_result {
    const onx_graph *graph;
    onxi_infer_made *made; /* inputs, then node outputs, in order */
    uint32_t count, room, input_count;
    onxi_table table; /* built on the first look-up by name */
    bool indexed;
    bool settled;                   /* value_info of the graph already contains all results for its names */
    struct onxi_infer_result *next; /* in the order of first visit */
} onxi_infer_result;

typedef struct onxi_infer_undo {
    uint32_t name;
    uint8_t declared;
    onxi_infer_fact *fact;
    struct onxi_infer_scope *scope;
} onxi_infer_undo;

/* A graph that is being walked. */
typedef struct onxi_infer_scope {
    struct onxi_infer_scope *parent; /* the enclosing graph, or for a function the caller's */
    const onx_graph *graph;          /* NULL: a function body */
    struct onxi_infer_frame *frame;
    const onx_node *node; /* the node of the parent that contains the subgraph or calls the function */
    uint32_t node_index;
    uint32_t depth;
    uint32_t undo_mark;        /* of the frame's log */
    onxi_infer_result *result; /* NULL: results are not kept */
    bool unreachable;          /* never executed: errors in it are not reported */
    bool unsupported;          /* it contains an unknown operator: later failures may be consequences */
    uint32_t unsupported_at;
} onxi_infer_scope;

/* A graph of the model or a function body: the meaning of its names. */
typedef struct onxi_infer_frame {
    struct onxi_infer_frame *caller;
    const onx_function *function; /* NULL: a graph of the model */
    onxi_arguments arguments;     /* of the call */
    onxi_binder *binder;
    onxi_infer_names names;
    onxi_infer_undo *undo;
    uint32_t undo_count, undo_room;
} onxi_infer_frame;

/* The main graph after the walk: its names stay bound, so that nodes can be inferred again. */
typedef struct onxi_infer_main_graph {
    onxi_infer_frame frame;
    onxi_infer_scope scope;
} onxi_infer_main_graph;

/* Shared facts with only a type, one per type. */
typedef struct onxi_infer_plain {
    onxi_infer_fact **facts;
    uint32_t count, room;
    onxi_table table;
} onxi_infer_plain;

/* A node and its result: facts do not change after a node has used them, and a rule depends on nothing else. */
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
    onx_doc *doc;           /* NULL if parts of a model are inferred */
    const onx_model *model; /* may be NULL */
    onx_infer_options options;
    onx_arena *arena; /* for facts, types, values */
    onxi_dims *dims;
    /* Only what a run is bound to obey counts: types of the inputs of the main graph, constants, rules of operators.
     * Not declarations of other values, names of sizes, and initializers that a caller may override. */
    bool proven;
    onxi_dict named; /* if `proven`: number of occurrences, by name of a size */
    onx_str same;    /* if `proven`: sizes of this name are equal */
    onx_doc reader;  /* a view of `doc`, because several threads may infer types of the same document */
    onx_ctx *quiet;  /* for reading tensors that may be unreadable, without diagnostics */
    onxi_infer_result *results, **results_end;
    onxi_map result_of; /* by graph */
    onxi_infer_loss *losses, **losses_end;
    uint32_t loss_count;
    bool may_cycle;     /* a node reads a value that no earlier node defines, or some nodes were not visited; false:
                         * there is no cycle */
    bool applied;       /* the result has been written into the model */
    onxi_map lost_at;   /* loss of a node */
    onxi_map reported;  /* node and message */
    onxi_map failed_at; /* number of failures, by node of the main graph */
    onxi_infer_main_graph *main;    /* NULL: nodes cannot be inferred again */
    struct onxi_infer_again *again; /* dependencies between nodes; built when a dimension is fixed after inference */
    onxi_functions functions;
    onxi_infer_plain plain;
    onxi_infer_repeat repeats[ONXI_INFER_REPEATS]; /* by hash; a new entry replaces the old one */
    uint64_t visits, visit_limit;                  /* number of visited nodes: loops and calls may visit nodes
                                                    * repeatedly */
    onxi_map binders;                              /* by function; 0: for the graphs of the model */
    onxi_map calls;                                /* calls that were inferred, by their arguments */
    struct onxi_infer_made_body *bodies;           /* for operators without an inference rule */
    uint64_t cut;                                  /* number of results omitted because of a limit */
    uint64_t carried;                              /* number of propagated elements */
    uint64_t failed;
    uint32_t round; /* number of dimensions fixed after inference: each time errors are reported again */
    const struct onxi_infer_running *failing; /* the node that the next report is about, to show its inputs; NULL:
                                               * none */
    const char *rule;                         /* the rule that the next report is about; NULL: none */
    bool incomplete;   /* the structure has errors that were reported: their consequences are not */
    bool invalid;      /* a finding that results in ONX_E_INVALID was reported */
    bool gave_up;      /* exceeding visit_limit was reported */
    onx_status status; /* out of memory */
    /* asked for by name */
    onx_bytes *dim_texts; /* printed expressions by index, in dim_text_arena */
    uint32_t dim_text_count;
    const onx_arena *dim_text_arena;
    onx_arena *type_arena;
};

/* ---- infer_names.c ---- */

/* The index of the name, which is added if it is new; UINT32_MAX when out of memory. */
uint32_t onxi_infer_names_add(onx_infer *e, onxi_infer_names *names, onx_str text);
/* The same without adding: UINT32_MAX if the name is unknown. */
uint32_t onxi_infer_names_find(const onxi_infer_names *names, onx_str text);
/* Reserves room for `count` more names. */
onx_status onxi_infer_names_reserve(onx_infer *e, onxi_infer_names *names, uint64_t count);
/* The same for a name that a node defines or the graph declares: probably the one after the previous one. */
uint32_t onxi_infer_names_make(onx_infer *e, onxi_infer_names *names, onx_str text);
/* Prefetches the table slot of a name that will be defined soon. */
void onxi_infer_names_prefetch(onxi_infer_names *names, onx_str text);
void onxi_infer_names_free(onx_infer *e, onxi_infer_names *names);
/* Binds a name in the scope; the outer binding is restored when the scope is left. */
onx_status onxi_infer_scope_bind(onx_infer *e, onxi_infer_scope *scope, uint32_t name, onxi_infer_fact *fact);
void onxi_infer_scope_leave(onx_infer *e, onxi_infer_scope *scope);
onxi_infer_fact *onxi_infer_fact_new(onx_infer *e);
/* onxi_map_at that also sets e->status when out of memory. */
void **onxi_infer_map_at(onx_infer *e, onxi_map *map, uint64_t key);
/* The result record of a graph, cleared if it exists; NULL when out of memory. */
onxi_infer_result *onxi_infer_result_of(onx_infer *e, const onx_graph *graph, bool make);
onx_status onxi_infer_result_add(onx_infer *e, onxi_infer_result *result, onx_str name, onxi_infer_fact *fact,
                                 bool declared);
onxi_infer_fact *onxi_infer_result_find(onx_infer *e, onxi_infer_result *result, onx_str name);

/* ---- infer_repeat.c ---- */

/* The shared fact for a tensor type of known rank; NULL when out of memory. */
onxi_infer_fact *onxi_infer_fact_of_type(onx_infer *e, const onxi_type *type);
/* Called before a fact is changed: the fact of the entry, replaced by a private copy if it was shared. NULL when out of
 * memory. */
onxi_infer_fact *onxi_infer_fact_own(onx_infer *e, onxi_infer_name *entry);
/* The shared facts of the outputs if an earlier node applied the same operation to the same inputs; NULL if none did. A
 * NULL input stands for an omitted one, and for nothing else. */
onxi_infer_fact *const *onxi_infer_repeat_find(onx_infer *e, const onxi_bound *bound, const onx_node *node,
                                               onxi_infer_fact *const *inputs);
/* Stores the results of a node for reuse: only if they are plain types without new symbols, nothing was reported, and
 * the node has no subgraph and calls no function. */
void onxi_infer_repeat_note(onx_infer *e, const onxi_bound *bound, const onx_node *node, onxi_infer_fact *const *inputs,
                            onxi_infer_fact *const *outputs);
/* Forgets all stored results, because the meaning of symbols changed. */
void onxi_infer_repeat_forget(onx_infer *e);

/* ---- infer_type.c ---- */

/* Converts a TypeProto; its symbols are those of the engine, unknown dims become fresh symbols. The depth limit bounds
 * the nesting. */
onx_status onxi_infer_type_read(onx_infer *e, const onx_type *type, onxi_type *out);
/* Fast path for a fully known tensor type of low rank: fills the caller's out->dims; false for other types. */
enum { ONXI_INFER_PLAIN_RANK = 8 };
bool onxi_infer_type_plain(const onx_type *type, onxi_type *out);
/* Converts to a TypeProto in the arena; NULL if nothing is known. */
onx_status onxi_infer_type_write(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type **out);
/* The same for a tensor type, into a zeroed message. */
onx_status onxi_infer_tensor_write(onx_infer *e, onx_arena *arena, const onxi_type *type, onx_type_tensor *tensor);
/* The memory size of a shape of that rank, 0 if too large; and the shape in such memory, with pointers and counts set
 * and everything else unchanged. */
size_t onxi_infer_shape_size(uint32_t rank);
onx_tensor_shape *onxi_infer_shape_place(void *memory, uint32_t rank);
/* Merges two types of the same value into `into`. If they contradict each other, returns false with a description, and
 * does not change `into`. */
bool onxi_infer_type_merge(onx_infer *e, const onxi_type *from, onxi_type *into, char *why, size_t why_size);
/* Replaces unknown dims by fresh symbols; true if there were any. */
bool onxi_infer_type_materialize(onx_infer *e, onxi_type *type);
/* The text of a dimension in the arena, cached while calls use the same arena; empty if it has none. */
onx_bytes onxi_infer_dim_text(onx_infer *e, onx_arena *arena, onxi_dim d);
/* As text: float[N,128]. */
size_t onxi_infer_type_print(const onxi_dims *dims, const onxi_type *type, char *buf, size_t size);

/* ---- infer_walk.c ---- */

onx_status onxi_infer_node(onx_infer *e, onxi_infer_scope *scope, const onx_node *node, uint32_t index);
/* The cost of a node in `visits`. */
static inline uint64_t onxi_infer_cost(const onx_node *node)
{
    return 1 + ((uint64_t)node->input_count + node->output_count) / 8;
}
onx_status onxi_infer_nodes(onx_infer *e, onxi_infer_scope *scope, onx_node *const *nodes, uint32_t count);
/* The facts from a value_info and from an initializer. */
onx_status onxi_infer_declare(onx_infer *e, onxi_infer_scope *scope, const onx_value_info *info);
onx_status onxi_infer_initializer(onx_infer *e, onxi_infer_scope *scope, const onx_tensor *tensor);
onx_status onxi_infer_sparse_initializer(onx_infer *e, onxi_infer_scope *scope, const onx_sparse_tensor *tensor);
/* The node of the outermost graph that contains a node of the scope. */
uint32_t onxi_infer_top(const onxi_infer_scope *scope, uint32_t index);
void onxi_infer_count_failures(onx_infer *e, const onxi_infer_scope *scope, uint32_t index, uint64_t count);
/* The key of a node in lost_at. */
static inline uint64_t onxi_infer_node_key(const onx_node *node)
{
    return (uint64_t)(uintptr_t)node;
}
/* Walks a graph: declared types, inputs, initializers, nodes; the types of the outputs are stored in `outputs`.
 * `inputs` may be NULL. */
onx_status onxi_infer_graph_in(onx_infer *e, onxi_infer_scope *scope, const onxi_type *inputs, uint32_t input_count,
                               onxi_type *outputs, uint32_t output_count);
/* Reports a problem at a node: an error in strict mode or if `fatal`, else a warning. */
void onxi_infer_report(onx_infer *e, const onxi_infer_scope *scope, const onx_node *node, uint32_t index, bool fatal,
                       const char *format, ...) ONX_PRINTF(6, 7);
onx_str onxi_infer_path(onx_infer *e, const onxi_infer_scope *scope, const onx_node *node, uint32_t index);
/* The maximum number of propagated values of full length: memory stays proportional to the model size. */
enum { ONXI_CARRIED_LIMIT = 4 << 20, ONXI_CARRIED_FEW = 64 };
/* Are the facts equal in everything that a rule can observe? */
bool onxi_infer_fact_same(const onxi_infer_fact *a, const onxi_infer_fact *b);
/* Frees memory of a frame outside of the arena. */
void onxi_infer_frame_free(onx_infer *e, onxi_infer_frame *frame);
/* The binder for the graphs of the model (`function` NULL) or for a function's body; created once for each. */
onx_status onxi_infer_binder(onx_infer *e, const onx_function *function, onxi_binder **out);

/* ---- infer_call.c ---- */

extern const onxi_call_ops onxi_infer_call_ops;
/* The state of a rule call. `call` must be the first member. */
typedef struct onxi_infer_running {
    onxi_call call;
    onx_infer *infer;
    onxi_infer_scope *scope;
    uint32_t index;          /* of the node */
    onxi_infer_fact **facts; /* of the inputs; NULL: omitted */
    bool failed;
    bool plain; /* all outputs so far are shared facts, in `made` */
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

/* ---- infer_facts.c: what transforms may believe ---- */

/* Like onx_infer_new, but what it says holds for every run of the model: the types that the file declares for inner
 * values and outputs are ignored, an initializer that a caller may override is not constant, and sizes of equal name
 * are not taken as equal, except those of the name `same` (empty: none), which the caller vouches for. Transforms ask
 * this, and nothing else. */
onx_status onxi_facts_new(onx_ctx *cx, onx_doc *doc, onx_str same, onx_infer **out);
/* The same, strictly: fails with ONX_E_INVALID if a node breaks a rule, or if its types are not proven. */
onx_status onxi_facts_check(onx_ctx *cx, onx_doc *doc, onx_infer **out);
/* Is all that the type says proven of the value, except names of sizes? Only of tensors; false for other types. */
bool onxi_facts_prove(onx_infer *e, const onx_graph *graph, onx_str name, const onx_type *declared);
/* Copies such a type into a model: symbols that were kept apart get their names back. */
onx_status onxi_facts_show(onx_arena *arena, const onx_type *type, onx_type **out);
/* May callers override an initializer that is also an input of the graph? Not before IR version 4, when every
 * initializer had to be an input, and models used them as constants. */
bool onxi_facts_has_defaults(const onx_model *model);
/* Adds the names of all inputs of the graph, if an initializer of such a name is a default. */
onx_status onxi_facts_defaults(const onx_model *model, const onx_graph *graph, onxi_dict *names);

/* ---- infer_check.c ---- */

/* A short description of the node's inputs: "a" is float[N,4], "s" is int64[2] {2,-1}. In the arena. */
onx_str onxi_infer_show_inputs(const onxi_infer_running *run);

/* Checks the node of `run` against arity and type constraints of its schema. */
onx_status onxi_infer_check_types(onxi_infer_running *run);

/* ---- infer_fix.c ---- */

void onxi_infer_again_free(onx_infer *e);

/* ---- infer_places.c ---- */

/* Where the model names a symbol. */
typedef enum onxi_infer_place_kind {
    ONXI_PLACE_NODE, /* in a subgraph or an attribute of this node of the main graph */
    ONXI_PLACE_NAME, /* in a declaration of this name in the main graph: its value_info, input or output */
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

/* All dimensions of the model that have a text, by the symbols in it. */
typedef struct onxi_infer_places {
    onxi_dims *plain; /* the table in which texts were parsed; it owns the names */
    onxi_infer_names symbols;
    onxi_infer_dim_places **of; /* by symbol */
    onxi_infer_dim_places *any; /* texts too large to be read: any symbol may be in them */
} onxi_infer_places;

onx_status onxi_infer_places_new(onx_infer *e, onxi_infer_places *out);
void onxi_infer_places_free(onx_infer *e, onxi_infer_places *places);

/* ---- infer_api.c ---- */

/* Walks the main graph, discarding earlier results. */
onx_status onxi_infer_main(onx_infer *e);
void onxi_infer_main_free(onx_infer *e);
onx_status onxi_infer_start(onx_ctx *cx, onx_doc *doc, const onx_model *model, const onx_infer_options *options,
                            onx_infer **out);
/* onx_infer_new. `same`: NULL, or what onxi_facts_new takes. */
onx_status onxi_infer_open(onx_ctx *cx, onx_doc *doc, const onx_infer_options *options, const onx_str *same,
                           onx_infer **out);

#endif
