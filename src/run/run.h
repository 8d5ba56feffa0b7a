/* run.h - the runner's insides: a graph with names resolved, a plan for given shapes, a state per run.
 * docs/notes/session.md */
#ifndef ONXI_RUN_H
#define ONXI_RUN_H

#include <onx/run.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "op/op.h"
#include "rewrite/rewrite.h"

#include <pthread.h>

#define ONXI_NO_SLOT         UINT32_MAX       /* there is none */
#define ONXI_OMITTED         (UINT32_MAX - 1) /* an input that the caller of a function does not give */
#define ONXI_PLANS_MAX       8                /* shapes whose plans are kept per graph */
#define ONXI_VARIANTS_MAX    8 /* sets of overridden initializers that a session keeps what it made for */
#define ONXI_POST_OPS_MAX    4
#define ONXI_RUN_STORE_LEAST (1u << 16) /* bytes: less is packed before a file of the store is open */

/* ---- what is kept for the next run (run_recent.c) ---- */

/* The first member of objects in a most-recently-used list: plans of a graph, variants of a session. */
typedef struct onxi_run_kept {
    struct onxi_run_kept *next;
    uint32_t busy; /* runs that use it */
    bool retired;  /* dropped from the list while busy */
} onxi_run_kept;

typedef struct onxi_run_recent {
    onxi_run_kept *first; /* most recently used first */
    uint32_t count;
} onxi_run_recent;

/* All of these functions need the lock of the list. Finds the first object that fits, moves it to the front and marks
 * it in use; NULL when none fits. */
onxi_run_kept *onxi_run_recent_find(onxi_run_recent *list, bool (*fits)(const onxi_run_kept *kept, const void *user),
                                    const void *user);
/* Puts a new object at the front, in use. Returns the object to free now, if any: with more than `most` objects, the
 * least recently used one is dropped, now or when it is no longer in use. */
onxi_run_kept *onxi_run_recent_add(onxi_run_recent *list, onxi_run_kept *kept, uint32_t most);
/* A run has ended. True when it has to be freed. */
bool onxi_run_recent_let_go(onxi_run_kept *kept);
/* Takes the first one off the list, NULL at its end. */
onxi_run_kept *onxi_run_recent_take(onxi_run_recent *list);

/* ---- a graph with its names resolved; made once ---- */

/* The owner of a node below the main graph: the body of a function that was called, or a subgraph. */
typedef struct onxi_run_frame {
    const struct onxi_run_frame *parent;
    const onx_node *node;          /* the call, or the node that holds the subgraph */
    const onx_function *function;  /* NULL: a subgraph */
    const onx_attribute *subgraph; /* NULL: a function */
    onxi_arguments arguments;      /* of a call */
    uint32_t index;                /* of `node` in its list */
    uint32_t depth;                /* enclosing calls */
} onxi_run_frame;
/* The innermost enclosing call, or NULL. */
static inline const onxi_run_frame *onxi_run_frame_of_call(const onxi_run_frame *frame)
{
    while (frame && !frame->function)
        frame = frame->parent;
    return frame;
}

/* A constant whose elements need not be in memory where kernels could read them: they are in the document, at any
 * address, or they are those of another constant that are still to be scaled. They are made when they are read,
 * or for as long as a kernel packs them (run_constant.c). Changed under `planning` only. */
typedef struct onxi_run_source {
    onx_value *value; /* the constant; its data is `raw`, which tells no more than that there are some, until `made` */
    const char *raw;
    const onx_tensor *origin;     /* where the document has them, the same for all of its sessions; NULL: nowhere */
    const double *scale;          /* factors of floats, one per index of the first dim; NULL: none */
    const onxi_tensor_part *part; /* `raw` is where its runs begin; NULL: all is in one piece */
    const onxi_file *late;        /* whose bytes at `raw` need not be there (onxi_file_copy); NULL: they are */
    const struct onxi_run_recipe *recipe; /* `raw` are the operand of a node that gives the elements; NULL: none does */
    bool made;
    bool has_digest; /* of the elements, as the session's store or what it leaves has them (run_saved.c) */
    onxi_digest digest;
} onxi_run_source;
/* Do the elements lie in the document as they are, in memory? */
static inline bool onxi_run_source_is_whole(const onxi_run_source *source)
{
    return !source->scale && !source->part && !source->recipe && !source->late;
}

typedef struct onxi_run_graph_slot {
    onx_str name;
    const onx_value *constant; /* NULL: known at run time only */
    onxi_run_source *source;   /* of the constant; NULL: its elements are in memory of the session */
    const onx_tensor *tensor;  /* initializer not requested so far */
    const onx_sparse_tensor *sparse;
    uint32_t uses;                    /* by ops, their subgraphs and the graph's outputs */
    uint32_t user;                    /* the last op that uses it */
    const struct onxi_run_op *captor; /* whose subgraphs captured it last, while the graph is resolved */
    uint32_t capture;                 /* its index among the captures of that op */
    bool is_output;
    bool shared; /* the constant is one of the session that this one is a variant of */
} onxi_run_graph_slot;

typedef struct onxi_run_op {
    const onx_node *node;
    const onxi_run_frame *frame;
    const onxi_schema *schema; /* NULL: known by a kernel of the caller's only */
    const onx_kernel *const *kernels;
    struct onxi_run_graph **graphs; /* its subgraphs, in order of attributes */
    const onx_attribute **graph_attributes;
    uint32_t *inputs, *outputs; /* slots; captures of subgraphs follow the inputs */
    uint32_t input_count, capture_count, output_count, kernel_count, graph_count;
    uint32_t input_room, graph_room; /* of inputs; of graphs and graph_attributes */
    uint32_t index;                  /* of the node in its list */
    int32_t since;
    onxi_op_id id; /* of built-in operators */
    onxi_attrs attrs;
    bool needed;
    uint32_t guard_end; /* a guard: index after the last op of the body that it precedes; 0: an ordinary op */
    /* Of an op that takes the place of others (run_rewrite.c): those, in order, and the rule. */
    const struct onxi_run_op *parts;
    const onxi_rewrite_condition *conditions; /* of the types of a plan */
    uint32_t part_count, condition_count;
    const char *rule;
    /* Of a chain in a plan (run_chain.c): its ops, in order. */
    const struct onxi_run_op *const *links;
    uint32_t link_count;
} onxi_run_op;

typedef struct onxi_run_graph {
    struct onxi_run_session *session;
    onx_arena *arena; /* that it lives in: of the session, or of a plan (run_later.c) */
    const onx_graph *graph;
    onxi_run_graph_slot *slots;
    onxi_run_op *ops;
    uint32_t slot_count, slot_room, op_count, op_room;
    uint32_t *inputs; /* slots of graph inputs, then of captures */
    uint32_t input_count, capture_count, input_room, capture_room;
    uint32_t *captures; /* index into the captures of the op that holds the graph */
    uint32_t *outputs;
    uint32_t output_count;
    const bool *given; /* inputs with an initializer that the caller overrides; NULL: none */
    onxi_run_recent plans;
    struct onxi_run_graph
        *unwritten;           /* with the parts of ops that cannot take their place for some shapes; NULL: none */
    const bool *unwritten_by; /* per op: which */
    const struct onxi_run_graph *written; /* that it is `unwritten` of, or NULL */
    /* Of a graph that belongs to a plan (run_later.c): how many such graphs it is in, itself included, and per capture
     * the constant that it is in that plan, NULL: a run tells. */
    uint32_t depth;
    const onx_value *const *known;
} onxi_run_graph;
/* The number of plans that are kept of a graph: each plan may have a graph whose plans are kept, and so on. */
static inline uint32_t onxi_run_graph_plans(const onxi_run_graph *g)
{
    return g->depth < 3 ? (uint32_t)ONXI_PLANS_MAX >> g->depth : 1;
}
/* Is the input or capture known while planning? */
static inline bool onxi_run_graph_knows(const onxi_run_graph *g, uint32_t input)
{
    const onxi_run_graph_slot *slot = &g->slots[g->inputs[input]];
    return slot->constant || slot->tensor || slot->sparse || (g->known && g->known[input]);
}

typedef struct onxi_run_owned { /* a heap value that lives as long as its owner */
    struct onxi_run_owned *next;
    onx_value *value;
} onxi_run_owned;

/* Bytes that a kernel made of a constant. */
typedef struct onxi_run_packed {
    struct onxi_run_packed *next; /* of the same constant */
    struct onxi_run_packed *all;  /* of the same owner */
    const void *key;
    size_t key_size;
    void *data, *base;
    size_t size;
    uint64_t mapped;                /* bytes in a file of the store, where `base` is mapped; 0: it is memory */
    struct onxi_run_shared *shared; /* they are those of a shelf; NULL: of their own */
    struct onxi_run_slab *slab;     /* that they lie in; NULL: memory of their own */
    bool named;                     /* they are left to later sessions under `name` */
    onxi_digest name;
} onxi_run_packed;

/* Where those are of constants that live as long as their owner: a session, or a plan that computed them. */
typedef struct onxi_run_packs {
    onxi_map by_source;
    onxi_run_packed *all;
} onxi_run_packs;

/* Where a root has the memory for what is packed from (run_slab.c). */
enum { ONXI_RUN_SLABS = 2 };
typedef struct onxi_run_slabs {
    struct onxi_run_slab *open[ONXI_RUN_SLABS]; /* that blocks are cut from */
    uint64_t total;                             /* bytes that were taken so far */
    void *elements;                             /* to be packed next */
    uint64_t elements_room;
    const char *held; /* where the document has the elements that are in it; NULL: others are */
    uint64_t held_size;
} onxi_run_slabs;

/* The function body of an operator, made once per session. */
typedef struct onxi_run_expansion {
    struct onxi_run_expansion *next;
    const onxi_schema *schema;
    uint64_t parts;
    onx_doc *doc;
    onxi_binder *binder; /* its nodes mean operators, whatever functions the model has */
} onxi_run_expansion;

/* What a session notes of a name that is bound (onxi_bound.more). */
typedef struct onxi_run_bound {
    const onx_kernel *const *kernels; /* in the order in which they are asked */
    uint32_t kernel_count;
    int32_t since;     /* of the operator */
    onxi_binder *body; /* of the body that an operator-set document gives; NULL: not asked for */
} onxi_run_bound;

/* What may end a run, or the creation of a session, early (run_watch.c). Read by all of its threads. */
typedef struct onxi_run_watch {
    bool on;              /* there is something to look at */
    uint64_t deadline_ns; /* on onxi_run_clock_ns; 0: none */
    uint64_t timeout_ns;
    uint64_t iterations; /* 0: no limit */
    bool (*stop)(void *user);
    void *user;
    const onx_cancel *cancel; /* may be NULL */
} onxi_run_watch;
/* Starts now. */
onxi_run_watch onxi_run_watch_new(const onx_run_options *options);
/* Whether to continue: ONX_OK, ONX_E_LIMIT or ONX_E_CANCELLED. `watch` may be NULL; nothing is recorded. */
onx_status onxi_run_watch_look(const onxi_run_watch *watch);
/* Records why the watch has ended the work at `op` (NULL: at none); returns `status`. */
onx_status onxi_run_watch_fail(const onxi_run_watch *watch, onx_status status, onx_ctx *cx,
                               const struct onxi_run_op *op);

/* run_seat.c: a place per thread for the state of its last run, in use, for its next run. Runs of several threads then
 * write to no shared memory. */
enum { ONXI_RUN_SEATS = 16, ONXI_RUN_SEAT_BYTES = 128 /* lines that processors fetch together */ };
typedef struct onxi_run_seat {
    _Atomic(struct onxi_run_state *) state;
    char apart[ONXI_RUN_SEAT_BYTES - sizeof(void *)];
} onxi_run_seat;

/* What is made once of a model: by the caller for the model as it is, and by runs for inputs that override initializers
 * (a variant, run_variant.c). Both have memory of their own, so that a variant can go. Two locks, of the root: whoever
 * has `planning` resolves graphs and makes plans, which takes its time; `lock` is held for a moment, to look plans,
 * states and variants up, to count who uses them, and to take them out. `planning` is taken first. */
typedef struct onxi_run_session {
    onxi_run_kept kept;            /* of a variant */
    struct onxi_run_session *root; /* itself, or the session that it is a variant of */
    onx_ctx *cx;                   /* its own; used while it is made, then under `planning` */
    onx_doc *doc;
    onx_doc reader; /* of `doc`, with `cx` and `arena`: a document may have any number of sessions and other readers */
    const onx_model *model;
    bool unsorted; /* nodes may precede those that make their inputs */
    onx_arena *arena;
    onx_session_options options;
    unsigned threads;
    const onxi_kernel_index *kernels;
    bool once;        /* a row of the caller is never run twice in a run (ONX_KERNEL_ONCE) */
    bool takes_bytes; /* kernels compute with the bytes between DequantizeLinear and QuantizeLinear */
    onxi_run_graph *main;
    onxi_run_seat seats[ONXI_RUN_SEATS]; /* of runs of `main` */
    onxi_run_owned *constants;
    onxi_run_packs packs;
    onxi_run_slabs slabs;    /* of a root; used while somebody plans */
    onxi_store *store;       /* of a root: where packed weights are kept for later sessions; NULL: nowhere */
    bool leaves;             /* of a root without a store: what it has packed is left to later ones (base_left.c) */
    onxi_secret left_secret; /* for names of that */
    struct onxi_run_shelf *shelf; /* of a root: what it shares with other sessions of the document; NULL: none */
    struct onxi_run_choices
        *choices; /* of a root: rows that are asked first (run_choice.h); NULL: the order is fixed */
    onxi_functions functions;
    struct onxi_run_op *spare_op; /* memory for the next one, while graphs are resolved */
    onxi_binder *binder;          /* of the model's graphs */
    onxi_binder **bodies;         /* of its functions, by index; NULL: not called so far */
    onxi_run_expansion *expansions;
    onxi_rewrites rewrites; /* opened when something is rewritten */
    uint64_t constant_bytes, op_total;
    uint64_t kept_bytes;  /* of a lean session: what is kept of what was made of constants */
    onxi_run_watch watch; /* of the making of the session */
    /* of a root */
    pthread_mutex_t lock, planning;
    uint32_t locks_made;
    onxi_run_recent variants;
    /* of a variant */
    const bool *given; /* inputs with an initializer that the caller overrides */
} onxi_run_session;
/* Bytes of constants that it uses, those of its root included. */
static inline uint64_t onxi_run_constant_bytes(const onxi_run_session *s)
{
    return s->constant_bytes + (s->root == s ? 0 : s->root->constant_bytes);
}

/* A session whose runs a layer above does. */
typedef struct onxi_run_other {
    onx_status (*run)(void *user, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                      const onx_run_options *options);
    void (*release)(void *user);
} onxi_run_other;
/* With the ports of the document; `user` is released with the session, and stays the caller's where none is made. */
onx_status onxi_run_session_other(onx_ctx *cx, onx_doc *doc, const onxi_run_other *other, void *user,
                                  onx_session **out);
/* The user pointer of such a session, NULL for others. */
void *onxi_run_session_user(const onx_session *session, const onxi_run_other *other);

struct onx_session {
    onxi_run_session s;
    const onxi_run_other *other; /* that does the runs; NULL: the session itself */
    void *other_user;
    const onx_graph *graph; /* whose ports it has */
    onx_doc *doc;           /* that it has loaded itself, or NULL; made with `doc_cx` */
    onx_doc *derived;       /* a copy whose nodes Gradient were replaced, or NULL */
    onx_ctx *doc_cx;
    onxi_dict inputs, outputs; /* from name to index */
    onxi_dict defaults;        /* names of initializers, where another one does the runs */
};

onx_status onxi_run_graph_build(onxi_run_session *s, const onx_graph *graph, const bool *given, onxi_run_graph **out);
/* Fuses convolutions with what follows them if constants allow it (run_fuse.c). */
onx_status onxi_run_graph_fuse(onxi_run_graph *g);
/* Replaces several nodes by one operator, by the rules of rewrite_rules.def. */
onx_status onxi_run_graph_rewrite(onxi_run_graph *g);
/* The integers of a constant list, if there are no more than `most`. */
bool onxi_run_read_ints(const onx_value *v, int64_t *out, uint32_t most, uint32_t *count);
/* Are all inputs constants, so that it can be done while resolving? */
bool onxi_run_op_is_constant(const onxi_run_graph *g, const onxi_run_op *op);
/* What its inputs are then, NULL for one that is omitted; NULL when out of memory. */
const onx_value **onxi_run_op_constants(const onxi_run_graph *g, const onxi_run_op *op, onx_arena *arena);
/* Does the node now; its outputs become constants. */
onx_status onxi_run_graph_fold(onxi_run_graph *g, const onxi_run_op *op);
/* For rules about DequantizeLinear (run_bytes.c). Has the session kernels that the rules use? */
onx_status onxi_run_session_takes_bytes(struct onxi_run_session *s);
/* Is the op a DequantizeLinear of a constant that is not to be computed before rules have looked at it? */
bool onxi_run_keeps_bytes(const onxi_run_graph *g, const onxi_run_op *op);
/* Before the rules: products share no DequantizeLinear. */
onx_status onxi_run_graph_split_bytes(onxi_run_graph *g);
/* After them: constants that no rule took. */
onx_status onxi_run_graph_fold_bytes(onxi_run_graph *g);
/* The same graph with the parts of the refused ops (one flag per op) in their place. */
onx_status onxi_run_graph_unwritten(const onxi_run_graph *g, const bool *refused, onxi_run_graph **out);
onx_status onxi_run_graph_count_uses(onxi_run_graph *g);
/* What op->node, which takes the place of others, means: operator, version, kernels, attributes. `arguments` (or NULL)
 * of the function that it is in. */
onx_status onxi_run_op_mean(onxi_run_session *s, onxi_binder *binder, const onxi_arguments *arguments, onxi_run_op *op);
/* A constant of the session made from a value that it takes over. */
onx_status onxi_run_session_keep(onxi_run_session *s, onx_value *value);

/* ---- constants (run_constant.c) ---- */

/* A tensor of the document: in place, or a copy where it is small or not laid out as kernels have it. *source_out
 * is NULL for a copy. */
onx_status onxi_run_constant_load(onxi_run_session *s, const onx_tensor *t, const onx_value **out,
                                  onxi_run_source **source_out);
/* The floats of a constant in a slot times factors, one per index of its first dim, which stay the caller's until the
 * session ends; *out is NULL if a product is not finite, or the constant is a part that is not made. */
onx_status onxi_run_constant_scaled(onxi_run_session *s, const onxi_run_graph_slot *slot, const double *scale,
                                    onxi_run_source **out);
/* Where a session keeps next to nothing: the result of a node on constants becomes a constant whose elements are made
 * when they are read, a stretch at a time; *done is false where it is not such a node, or too small. */
onx_status onxi_run_constant_defer(onxi_run_graph *g, const onxi_run_op *op, bool *done);
/* There, too: is what the op gives on constants too large to be computed once and kept? */
onx_status onxi_run_constant_is_too_large(onxi_run_graph *g, const onxi_run_op *op, bool *large);
/* Makes the elements of the slot's constant for good; it may have none to be made, or none at all. */
onx_status onxi_run_constant_make(onxi_run_graph *g, uint32_t slot);
/* Elements first .. first+count-1, by any thread. `made` was not set when the source was copied, if it is a copy. */
void onxi_run_source_read(const onxi_run_source *source, uint64_t first, uint64_t count, void *out);
/* Are all elements, before they are scaled, one float? */
bool onxi_run_source_is_filled(const onxi_run_source *source);
/* Writes them to memory that is aligned and large enough; what was read of the document need not stay in memory. */
void onxi_run_source_write(onxi_run_session *s, const onxi_run_source *source, void *out);
/* ONX_E_IO where what was read of the source, now or before, was not all there. */
onx_status onxi_run_source_failed(onx_ctx *cx, const onxi_run_source *source);
/* Tells that these bytes of the document are not needed soon, if they are contiguous. */
void onxi_run_source_forget(onxi_run_session *s, const onxi_run_source *source, uint64_t from, uint64_t size);
onx_str onxi_run_op_path(onx_arena *arena, const onxi_run_op *op);
/* The place of a node: graph.node[0] "first" (F) function F node[2] (If).then_branch.node[0] (Relu) */
onx_str onxi_run_frame_path(onx_arena *arena, const onxi_run_frame *frame, uint32_t index, const onx_node *node);

/* ---- what kernels make of constants (run_pack.c) ---- */

/* Who keeps what is made of a constant: who owns the constant. */
typedef struct onxi_run_keeper {
    onxi_run_packs *packs;
    onx_ctx *cx;
    onx_arena *arena;
    onxi_run_session *session; /* NULL: a plan */
    onxi_run_source *source;   /* NULL: the elements are at `elements` */
    const void *elements;
} onxi_run_keeper;
/* Packed weights of a node, which are freed when it has run: in sessions with lean memory. */
typedef struct onxi_run_passing {
    onx_ctx *cx;
    struct onxi_run_passed *first;
} onxi_run_passing;
void onxi_run_passing_end(onxi_run_passing *passing);
/* May a session keep so many more bytes of what is made of constants? Under the root's lock, or while it is made. */
bool onxi_run_may_keep(const onxi_run_session *s, uint64_t size);
/* The bytes, made on first use of the key. `s` plans. Where they may not be kept, *anew is set and *out is no more than
 * not NULL: what is prepared now will be prepared again by each run, which makes them. */
onx_status onxi_run_pack(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                         const onx_packing *packing, bool *anew, const void **out);
/* The same for a node that is prepared to run at once: only the first one waits for its turn to plan, if `s` does not
 * plan now (`planning`). Declines where the memory limit leaves no room. */
onx_status onxi_run_pack_running(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                                 const onx_packing *packing, const onxi_run_watch *watch, bool planning,
                                 onxi_run_passing *passing, const void **out);
void onxi_run_packs_free(onxi_run_packs *packs, onx_ctx *cx);
/* What the store, or those who find what the session leaves, call that which `packing` makes of the constant; false
 * where it is not kept (run_saved.c). */
bool onxi_run_saved_name(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                         const onx_packing *packing, onxi_digest *out);
/* Memory for a block that stays, by who plans: the block is given back with the slab that it lies in (*out). */
void *onxi_run_slab_take(onxi_run_session *s, uint64_t size, struct onxi_run_slab **out);
void onxi_run_slab_give(const onx_allocator *a, struct onxi_run_slab *slab, void *block, uint64_t size);
/* The same for memory of contexts that are given no allocator. */
void onxi_run_slab_free(void *slab, void *block, size_t size);
void onxi_run_slabs_close(onxi_run_session *s);
/* Memory for elements while they are packed, for the thread that plans; one block at a time. `end`: nothing remains to
 * be packed. */
void *onxi_run_elements_take(onxi_run_session *s, uint64_t size);
/* The elements of the source where the buffer holds them since they were packed last, or NULL; and that it does. */
const void *onxi_run_elements_held(const onxi_run_session *s, const onxi_run_source *source);
void onxi_run_elements_hold(onxi_run_session *s, const onxi_run_source *source, const void *elements);
void onxi_run_elements_give(onxi_run_session *s, void *elements, uint64_t size);
void onxi_run_elements_end(onxi_run_session *s);
/* The shelf of the session's document, and leaving it. */
onx_status onxi_run_shelf_open(onxi_run_session *s);
void onxi_run_shelf_close(onxi_run_session *s);

/* ---- one op on known types (run_op.c) ---- */

/* What is needed to work on ops: diagnostics, memory for results of rules and prepare. */
typedef struct onxi_run_env {
    onx_ctx *cx;
    onxi_run_session *session;
    const onxi_run_graph *graph; /* that the ops are of */
    onx_arena *arena;
    onx_arena *scratch;           /* for what only a call itself needs; NULL: arena */
    struct onxi_run_plan *plan;   /* that is being made, or NULL */
    struct onxi_run_state *state; /* of the run, or NULL while planning */
    const onxi_run_watch *watch;  /* may be NULL */
    onxi_run_passing *passing;    /* for what is packed for a node that runs at once; NULL: it is only prepared */
    bool nonfinite;               /* rows that lose NaN and infinities decline (onx_prepare.nonfinite) */
} onxi_run_env;

/* Whether the results follow from the inputs alone, so that they can be computed once and for all where those are
 * constants. */
bool onxi_run_op_is_pure(const onxi_run_op *op);
/* The types of the outputs: kind NONE where they depend on data. `values` gets plain types, dims in the arena. */
onx_status onxi_run_op_types(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs);
/* Which parts of the schema's function body make up this op. */
uint64_t onxi_run_op_body_parts(onxi_run_env *e, const onxi_run_op *op);
/* What a kernel sees of a preparation that is done. */
onx_prepared onxi_run_op_prepared(const onx_prepare *p);
/* Fills in what kernels are told. Arrays must outlive `p`. */
void onxi_run_op_describe(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p);
/* Whether the inputs have types that the operator takes, and the outputs (those that have one by now) types that it
 * gives; a diagnostic says which has not. */
onx_status onxi_run_op_check_types(const onxi_run_op *op, const onx_prepare *p);
/* Rows of an op that are asked before all of them are in their order; those of them that are plain are not. */
typedef struct onxi_run_order {
    uint32_t from, to;
} onxi_run_order;
/* Chooses the first kernel row that accepts, and prepares it. `row_major` (NULL: p->inputs) are the inputs for kernels
 * that support no layouts; `flat`: all inputs have one layout, so ONX_KERNEL_FLAT kernels may see it. */
onx_status onxi_run_op_prepare(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p,
                               const onx_value *const *row_major, bool flat, onxi_run_order order);
/* Was something asked for that each run has to make? */
bool onxi_run_op_is_anew(const onx_prepare *p);
/* Asks the row that took an op, which `from` was left by, once more while running: `p` gets what came out, with params
 * in e->arena. `from` is not changed. */
onx_status onxi_run_op_prepare_anew(onxi_run_env *e, const onxi_run_op *op, const onx_prepare *from, onx_prepare *p);
/* Determines types and kernel and runs the node at once, on actual values; outputs are values of e->cx. */
onx_status onxi_run_op_eager(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs, const onx_kernel **kernel_out);
/* All rows of a prepared kernel, on as many threads as that is worth. */
onx_status onxi_run_work_run(const onx_kernel *kernel, onx_work *work);

/* ---- a plan for given input shapes ---- */

typedef enum onxi_run_residence {
    ONXI_PLACE_NONE,
    ONXI_PLACE_INPUT, /* the caller's memory */
    ONXI_PLACE_CONSTANT,
    ONXI_PLACE_BUFFER, /* at `offset` of the state's buffer */
    ONXI_PLACE_VIEW,   /* of an input */
    ONXI_PLACE_DYNAMIC /* a value of its own, sized while running */
} onxi_run_residence;

typedef struct onxi_run_plan_slot {
    onx_value value; /* type; data for constants */
    onxi_run_residence place;
    uint32_t storage;   /* BUFFER */
    uint32_t base;      /* VIEW: slot of the input */
    uint32_t updates;   /* slot of the input whose memory it may take, as its kernel writes what is new alone */
    uint32_t reordered; /* another slot with the same value in another layout, ONXI_NO_SLOT: none */
    uint64_t uses_left; /* uses still to be planned */
    bool moved;         /* it is an output */
} onxi_run_plan_slot;

typedef struct onxi_run_step {
    const onxi_run_op *op; /* NULL: a change of layout */
    const onx_kernel *kernel;
    onx_prepare prepare;
    onx_prepared prepared;      /* what its kernel sees of that */
    uint32_t *inputs, *outputs; /* plan slots; captures follow */
    uint32_t input_count, capture_count, output_count;
    uint32_t first_site;     /* of the op's subgraphs */
    const bool *last_use;    /* per input and capture of a step whose types come while running; NULL: of none */
    uint32_t chosen;         /* 1 + which of the plan's it is or was planned with, post-operations too; 0: none */
    bool measured;           /* its row is one that the table has put first */
    bool eager;              /* typed, prepared and run anew every time */
    const onx_prepare *anew; /* what the row was asked with, where each run has to ask it again; NULL: once will do */
} onxi_run_step;

/* One that is a piece of another has its life, its uses and its memory from there (run_piece.c). */
typedef struct onxi_run_storage {
    uint64_t size, offset;
    uint32_t whole;       /* that this is a piece of, ONXI_NO_SLOT: none */
    uint64_t at;          /* bytes into it */
    uint32_t first, last; /* steps */
    uint64_t uses_left;   /* uses still to be planned, of all slots that share it */
    uint64_t here;        /* those of the step that is being planned; else 0 */
} onxi_run_storage;

/* What follows nodes whose shapes only a run tells (run_later.c): some steps of the plan, which run their nodes one by
 * one, and a graph of the same nodes, with plans for shapes that came before. */
typedef struct onxi_run_later {
    onxi_run_graph graph; /* has captures and outputs, in slots of the same numbers */
    uint32_t *captured;   /* plan slots, row-major */
    uint32_t from, to;    /* steps */
} onxi_run_later;

typedef struct onxi_run_plan {
    onxi_run_kept kept;
    onxi_run_graph *graph;
    onx_ctx *cx; /* its own: it is made while others are freed */
    onx_arena *arena;
    onx_value *input_types;     /* what the plan is for; one per input and capture */
    onxi_run_plan_slot **slots; /* the first ones are those of the graph */
    uint32_t slot_count, slot_room;
    onxi_run_step *steps;
    uint32_t step_count, step_room;
    uint32_t site_count; /* subgraphs of all steps */
    onxi_run_storage *storages;
    uint32_t storage_count, storage_room;
    onxi_run_owned *constants;
    onxi_run_packs packs;
    uint64_t buffer_size; /* activations, workspace included */
    uint64_t workspace_offset, thread_workspace_offset, thread_workspace;
    uint32_t *outputs;              /* plan slots of the graph's outputs, row-major */
    struct onxi_run_chosen *chosen; /* nodes whose rows are chosen by what was measured */
    uint32_t chosen_count, chosen_room;
    onxi_digest context; /* of what was measured in this graph */
    bool *moves;         /* per output: the slot's own value is unused after it */
    bool has_dynamic;
    onxi_run_later *later; /* NULL: none */
    bool nonfinite;        /* as in onxi_run_env */
    struct onxi_run_state *idle;
} onxi_run_plan;

/* While no other thread plans for the session (`planning`, or while it is made). Diagnostics go to `cx`. */
onx_status onxi_run_plan_new(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch,
                             bool nonfinite, onx_ctx *cx, onxi_run_plan **out);
/* Without any lock; it is not in use. */
void onxi_run_plan_free(onxi_run_session *s, onxi_run_plan *plan);
/* Offsets of all storages; the sum in *size_out. */
onx_status onxi_run_plan_memory(onxi_run_plan *plan, onx_ctx *cx, uint64_t *size_out);

/* ---- a state: what one run at a time needs ---- */

/* A subgraph where a step of a state runs it. Its states belong to the enclosing state and share its context, so what
 * goes in and comes out is passed on without copies of items. */
typedef struct onxi_run_site {
    struct onxi_run_state *outer;
    onxi_run_graph *graph;
    const onx_value **inputs;    /* formal ones, filled by each run, then captures */
    onx_value **held;            /* per formal input: an optional value around what is given for it, or NULL */
    struct onxi_run_state *kept; /* one per plan, most recently used first */
    uint32_t kept_count;
} onxi_run_site;

/* Where the caller has outputs and inputs (run_aim.c), numbered in that order. */
typedef struct onxi_run_aim {
    uintptr_t *from, *to; /* 0: nowhere */
    uint32_t *order;      /* by address */
    uint32_t *updated;    /* per output: the input whose memory it may take, UINT32_MAX: none */
    uint32_t *storage;    /* per output: one that is its own, ONXI_NO_SLOT: none */
    bool *apart;          /* nothing else is there */
} onxi_run_aim;

/* What an eager step works in. */
typedef struct onxi_run_space {
    void *memory;
    uint64_t size;
} onxi_run_space;

typedef struct onxi_run_state {
    struct onxi_run_state *next;
    onx_ctx *cx;
    onxi_run_plan *plan;
    onx_arena *text;    /* strings of the run */
    onx_arena *scratch; /* for what eager steps prepare */
    onx_doc reader;     /* of the session's document, with `cx` and `scratch`, while an eager step runs */
    char *buffer, *base;
    uint64_t base_size;
    onx_value *values;          /* per plan slot but dynamic ones */
    onx_value **slots;          /* per plan slot */
    onx_work *works;            /* per step */
    onxi_run_site *sites;       /* per subgraph of the plan */
    struct onxi_run_rest *rest; /* what runs plan->later, or NULL */
    bool goes_on;               /* it does the rest of a run of the main graph, whose nodes its own are */
    bool *taken;       /* per input and capture of the graph: the caller gave it away, and it is in `values` now */
    char **storage_at; /* per storage of the plan: in the buffer, or in an output of the caller */
    onxi_run_aim aim;  /* outermost */
    void *arrays;      /* operand pointers of all steps and sites */
    size_t arrays_size;
    struct onxi_run_state *outermost; /* itself, or the state of the main graph */
    uint64_t entered;                 /* outermost: how often subgraphs were run */
    onxi_run_watch watch;             /* outermost: of the current run */
    onxi_run_space space;             /* outermost: that of the last eager step */
    const onx_run_options *options;
    uint64_t start_ns;
} onxi_run_state;

/* `outer`: the enclosing state, NULL for the main graph. */
onx_status onxi_run_state_new(onxi_run_session *s, onxi_run_plan *plan, onxi_run_state *outer, onxi_run_state **out);
/* Room for an eager step: at least `size` bytes, or none (recorded). Memory of some size that comes from the system for
 * each step and goes back to it takes longer than many steps do, so the last room is kept. `state` may be NULL. */
onxi_run_space onxi_run_space_take(onxi_run_state *state, onx_ctx *cx, uint64_t size);
void onxi_run_space_give(onxi_run_state *state, onx_ctx *cx, onxi_run_space space);
/* Releases the plans of subgraphs, without any lock. */
void onxi_run_state_free(onxi_run_state *state);
/* Runs with these inputs. Where outputs[i] is NULL, `cx` makes a value; if that is NULL, the output is not wanted. */
onx_status onxi_run_state_run(onxi_run_state *state, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              uint32_t output_count);
/* run_aim.c: room for what the state of the main graph notes; false, recorded, when out of memory. */
bool onxi_run_aim_new(onxi_run_state *state);
void onxi_run_aim_free(onxi_run_state *state);
/* Storages of outputs are in the caller's values where they can, all others in the buffer. In the order of operands. */
void onxi_run_aim_outputs(onxi_run_state *state, const onx_value *const *inputs, onx_value *const *outputs);
bool onxi_run_plan_fits(const onxi_run_plan *plan, const onx_value *const *inputs);
/* The plan for these inputs, made if need be, counted as busy and moved to the front. Where it is there no caller waits
 * for others that plan. `idle` (NULL: not wanted) gets an unused state of it, or NULL. Without any lock;
 * diagnostics go to `cx`. */
onx_status onxi_run_plan_take(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch,
                              bool nonfinite, onx_ctx *cx, onxi_run_plan **out, onxi_run_state **idle);
/* One user less; the last one of a plan that was dropped frees it. `idle` (or NULL): a state that the next run may
 * take. Without any lock. */
void onxi_run_plan_let_go(onxi_run_session *s, onxi_run_plan *plan, onxi_run_state *idle);
/* run_seat.c, for the main graph: a state for these inputs from the seat of the thread, its plan in use; NULL: it has
 * none. */
onxi_run_state *onxi_run_seat_take(onxi_run_session *s, const onx_value *const *inputs, bool nonfinite);
/* A state of this plan, which is in use, that another thread has left; NULL: there is none. */
onxi_run_state *onxi_run_seat_find(onxi_run_session *s, const onxi_run_plan *plan);
/* Leaves a state, whose plan stays in use. */
void onxi_run_seat_leave(onxi_run_session *s, onxi_run_state *state);
/* States that were left go to their plans, which are no longer in use by them. */
void onxi_run_seats_clear(onxi_run_session *s);
/* Takes the root's lock for planning. Fails when the watch ends the wait. */
onx_status onxi_run_planning_begin(onxi_run_session *s, const onxi_run_watch *watch, onx_ctx *cx);
void onxi_run_planning_end(onxi_run_session *s);
/* Finds or makes plan and state for these inputs of the main graph, runs, copies the outputs out. Diagnostics go to
 * cx; `outputs` as for onx_session_run. */
onx_status onxi_run_graph_run(onxi_run_graph *g, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              const onx_run_options *options);
/* run_subgraph.c */
extern const onx_work_ops onxi_run_site_ops;
void onxi_run_sites_free(onxi_run_state *state);
/* The state for what is in site->inputs, at the front of those that are kept; NULL: none is. */
onxi_run_state *onxi_run_site_find(onxi_run_site *site);
/* Makes one. */
onx_status onxi_run_site_add(onxi_run_site *site, onxi_run_state **out);
/* Frees its states. */
void onxi_run_site_close(onxi_run_site *site);

/* run_later.c */
void onxi_run_later_close(onxi_run_session *s, onxi_run_later *later);
onx_status onxi_run_rest_new(onxi_run_state *state);
void onxi_run_rest_free(onxi_run_state *state);
/* In place of the steps of plan->later, where there is a plan for the shapes that have come; *done: there was. */
onx_status onxi_run_rest_run(onxi_run_state *state, bool *done);

/* Which output the input becomes where it is a cache that a row of its only reader updates (onx_kernel.updates); false
 * when it is none. */
bool onxi_run_cache_output(const onxi_run_graph *g, uint32_t input, uint32_t *output);

uint64_t onxi_run_clock_ns(void);
/* A context of its own with the allocator and the limits of `cx`; NULL when out of memory. */
onx_ctx *onxi_run_ctx_child(const onx_ctx *cx);

/* run_variant.c */
/* Makes what a session is of a model; `root` NULL: a root, else a variant in which `given` inputs (in memory of the
 * caller) override their initializers. Diagnostics go to `cx`. */
onx_status onxi_run_session_open(onxi_run_session *s, onx_ctx *own, onx_doc *doc, const onx_session_options *options,
                                 onxi_run_session *root, const bool *given);
/* Frees all but the struct and its context. No run may be in progress. */
void onxi_run_session_close(onxi_run_session *s);
/* The session itself, or the variant in which exactly these inputs take the place of their initializers, made if need
 * be, which is in use until it is released. */
onx_status onxi_run_variant_take(onxi_run_session *s, onx_ctx *cx, const onx_value *const *inputs,
                                 const onx_run_options *options, onxi_run_session **out);
void onxi_run_variant_let_go(onxi_run_session *s);

/* run_bind.c: do the values (NULL: not given) fit what the model says of its inputs? */
onx_status onxi_run_bind_check(onx_ctx *cx, onx_value_info *const *info, uint32_t count,
                               const onx_value *const *inputs);

#endif
