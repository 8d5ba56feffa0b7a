/* run.h - internals of sessions: a plan for given input shapes, the state of one run, and what a session keeps for its
 * graphs (run_graph.h).
 * docs/notes/session.md */
#ifndef ONXI_RUN_H
#define ONXI_RUN_H

#include <onx/run.h>

#include "run/run_graph.h"

#include <pthread.h>

typedef struct onxi_run_owned { /* a heap value that lives as long as its owner */
    struct onxi_run_owned *next;
    onx_value *value;
} onxi_run_owned;

/* A packed form of a constant, made by a kernel. */
typedef struct onxi_run_packed {
    struct onxi_run_packed *next; /* next packed form of the same constant */
    struct onxi_run_packed *all;  /* next packed form of the same owner */
    const void *key;
    size_t key_size;
    void *data, *base;
    size_t size;
    uint64_t mapped;                /* bytes of the store's file mapped at `base`; 0: `base` is memory */
    struct onxi_run_shared *shared; /* shared by sessions through a shelf; NULL: not shared */
    struct onxi_run_slab *slab;     /* the slab that contains the bytes; NULL: they have an allocation of their own */
    bool named;                     /* kept for later sessions under `name` */
    onxi_digest name;
} onxi_run_packed;

/* The packed forms of constants with the same owner: a session, or a plan that computed the constants. */
typedef struct onxi_run_packs {
    onxi_map by_source;
    onxi_run_packed *all;
} onxi_run_packs;

/* The memory that a root session allocates packed constants from (run_slab.c). */
enum { ONXI_RUN_SLABS = 2 };
typedef struct onxi_run_slabs {
    struct onxi_run_slab *open[ONXI_RUN_SLABS]; /* slabs from which blocks are cut */
    uint64_t total;                             /* bytes allocated so far */
    void *elements;                             /* buffer of elements to be packed */
    uint64_t elements_room;
    const char *held; /* address in the document of the elements now in the buffer; NULL: other elements */
    uint64_t held_size;
} onxi_run_slabs;

/* The function body of an operator, built once per session. */
typedef struct onxi_run_expansion {
    struct onxi_run_expansion *next;
    const onxi_schema *schema;
    uint64_t parts;
    onx_doc *doc;
    onxi_binder *binder; /* resolves the body's nodes to operators only, never to functions of the model */
} onxi_run_expansion;

/* What a session keeps with a resolved operator name (onxi_bound.more). */
typedef struct onxi_run_bound {
    const onx_kernel *const *kernels; /* in the order in which they are tried */
    uint32_t kernel_count;
    int32_t since;     /* version that introduced the operator */
    onxi_binder *body; /* resolves names in the body that an operator-set document gives; NULL: not used so far */
} onxi_run_bound;

/* Conditions that end a run, or the creation of a session, early (run_watch.c). All of its threads read them. */
typedef struct onxi_run_watch {
    onxi_work_watch work; /* kernels ask it; NULL: there is no condition to check */
    int ended;            /* the status that ended the work, from the first look on that found one; atomic */
    uint64_t deadline_ns; /* in the time of onxi_run_clock_ns; 0: none */
    uint64_t timeout_ns;
    uint64_t iterations; /* 0: no limit */
    bool (*stop)(void *user);
    void *user;
    const onx_cancel *cancel, *context; /* of the options, and of the context that works; may be NULL */
} onxi_run_watch;
/* A watch whose timeout starts now, of work with the context. */
onxi_run_watch onxi_run_watch_new(const onx_ctx *cx, const onx_run_options *options);
/* Is there a condition to check? `watch` may be NULL. */
static inline bool onxi_run_watch_is_on(const onxi_run_watch *watch)
{
    return watch && watch->work.stops;
}
/* Returns ONX_OK to continue, else ONX_E_LIMIT or ONX_E_CANCELLED, and that again each time. Records no diagnostic.
 * `watch` may be NULL. */
onx_status onxi_run_watch_look(const onxi_run_watch *watch);
/* Records why the watch has ended the work at `op` (NULL: at no op in particular); returns `status`. */
onx_status onxi_run_watch_fail(const onxi_run_watch *watch, onx_status status, onx_ctx *cx,
                               const struct onxi_run_op *op);

/* run_seat.c: one place per thread that keeps the state of its last run, and so its plan, for its next run. Runs of
 * several threads then write to no shared memory. */
enum { ONXI_RUN_SEATS = 16 };
typedef struct onxi_run_seat {
    _Atomic(struct onxi_run_state *) state;
    char apart[ONXI_APART_BYTES - sizeof(void *)];
} onxi_run_seat;

/* Everything that is built once per model: by the caller for the model itself (a root), and by runs that override
 * initializers (a variant, run_variant.c). Each has memory of its own, so a variant can be freed alone. The root has
 * two locks. The holder of `planning` resolves graphs and makes plans, which may take long. `lock` is held briefly: to
 * look up plans, states and variants, to count their users, and to remove them. `planning` is taken before `lock`. */
typedef struct onxi_run_session {
    onxi_run_kept kept;            /* for a variant */
    struct onxi_run_session *root; /* itself, or the session that this one is a variant of */
    onx_ctx *cx;                   /* its own; used while the session is created, then under `planning` */
    onx_doc *doc;
    /* Reads `doc` with `cx` and `arena`; a document may have any number of sessions and other readers. */
    onx_doc reader;
    const onx_model *model;
    bool unsorted; /* nodes may precede the nodes that make their inputs */
    onx_arena *arena;
    onx_session_options options;
    unsigned threads;
    const onxi_kernel_index *kernels;
    bool once; /* a kernel of the caller must not run twice for a node in one run (ONX_KERNEL_ONCE) */
    const onx_kernel *const *reorders; /* rows that are tried before that of a layout */
    uint32_t reorder_count;
    bool takes_bytes; /* it has kernels that compute on the integers between DequantizeLinear and QuantizeLinear */
    onxi_run_graph *main;
    onxi_run_seat seats[ONXI_RUN_SEATS]; /* of runs of `main` */
    onxi_run_owned *constants;
    onxi_run_packs packs;
    onxi_run_slabs slabs; /* of a root; used under `planning` */
    onxi_store *store;    /* of a root: keeps packed weights for later sessions; NULL: no store */
    /* Of a root without a store: it leaves packed weights in memory for later sessions (base_left.c). */
    bool leaves;
    onxi_secret left_secret; /* for the names of these weights */
    /* Of a root: packed constants shared with other sessions of the document; NULL: none. */
    struct onxi_run_shelf *shelf;
    struct onxi_run_choices
        *choices; /* of a root: kernel rows to try first (run_choice.h); NULL: the fixed order holds */
    onxi_functions functions;
    struct onxi_run_op *spare_op; /* memory for the next op while graphs are resolved */
    onxi_map widened;             /* constants widened to float (run_constant.c), by the constant of the model */
    onxi_binder *added;           /* for nodes that are added (run_added.c); NULL: none so far */
    onxi_binder *binder;          /* of the model's graphs */
    onxi_binder **bodies;         /* of the model's functions, by index; NULL: not called so far */
    onxi_run_expansion *expansions;
    onxi_rewrites rewrites; /* opened at the first rewrite */
    uint64_t constant_bytes, op_total;
    uint64_t unrolled;    /* nodes that run_unroll.c and run_list.c added or tried to add */
    uint64_t kept_bytes;  /* of a session with lean memory: bytes of packed constants that it keeps */
    onxi_run_watch watch; /* of the creation of the session */
    /* for a root */
    pthread_mutex_t lock, planning;
    uint32_t locks_made;
    onxi_run_recent variants;
    /* for a variant */
    const bool *given; /* per input: the caller overrides its initializer */
} onxi_run_session;
/* Bytes of the constants that the session uses, including those of its root. */
static inline uint64_t onxi_run_constant_bytes(const onxi_run_session *s)
{
    return s->constant_bytes + (s->root == s ? 0 : s->root->constant_bytes);
}

/* A session whose runs are executed by a layer above. */
typedef struct onxi_run_other {
    onx_status (*run)(void *user, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                      const onx_run_options *options);
    void (*release)(void *user);
} onxi_run_other;
/* Such a session has the inputs and outputs of the document. It takes over `user` and releases it at its end; if the
 * call fails, `user` still belongs to the caller. */
onx_status onxi_run_session_other(onx_ctx *cx, onx_doc *doc, const onxi_run_other *other, void *user,
                                  onx_session **out);
/* The user pointer of such a session, NULL for other sessions. */
void *onxi_run_session_user(const onx_session *session, const onxi_run_other *other);

typedef struct onxi_run_said onxi_run_said; /* run_bind.h */

struct onx_session {
    onxi_run_session s;
    onxi_run_said *said;         /* what it has warned of */
    const onxi_run_other *other; /* executes the runs; NULL: the session itself does */
    void *other_user;
    bool strict;            /* onx_session_options.strict */
    const onx_graph *graph; /* the graph whose inputs and outputs it has */
    onx_doc *doc;           /* the document it has loaded itself (with `doc_cx`), or NULL */
    onx_doc *derived;       /* a copy whose Gradient nodes were replaced, or NULL */
    onx_ctx *doc_cx;
    onxi_dict inputs, outputs; /* from name to index */
    onxi_dict defaults;        /* names of initializers, where `other` executes the runs */
};

onx_status onxi_run_graph_build(onxi_run_session *s, const onx_graph *graph, const bool *given, onxi_run_graph **out);
/* Adds a slot without a value. */
onx_status onxi_run_graph_add_slot(onxi_run_graph *g, onx_str name, uint32_t *out);
/* Lets nodes of float16 and bfloat16 compute in float, in subgraphs too (run_widen.c). `captured`: per capture its
 * element type, ONX_UNDEFINED where it is not known; NULL: the main graph, which has no captures. */
onx_status onxi_run_graph_widen(onxi_run_graph *g, const uint8_t *captured);
/* Folds scaling and shifting of channels into the constants of the Conv or BatchNormalization before it
 * (run_fuse.c). */
onx_status onxi_run_graph_fuse(onxi_run_graph *g);
/* Replaces groups of nodes by one operator each, by the rules of rewrite_rules.def. */
onx_status onxi_run_graph_rewrite(onxi_run_graph *g);
/* Moves Transposes between channels first and last to where they cancel each other (run_sink.c). */
onx_status onxi_run_graph_sink_transposes(onxi_run_graph *g);
/* Makes one Transpose of each chain of them (run_transpose.c). */
onx_status onxi_run_graph_join_transposes(onxi_run_graph *g);
/* Removes nodes that compute the same as an earlier node (run_repeats.c). */
onx_status onxi_run_graph_merge_repeats(onxi_run_graph *g);
/* Reads a constant list of integers; false if it has more than `most`. */
bool onxi_run_read_ints(const onx_value *v, int64_t *out, uint32_t most, uint32_t *count);
/* Are all inputs constants, so that the op can be computed while the graph is resolved? */
bool onxi_run_op_is_constant(const onxi_run_graph *g, const onxi_run_op *op);
/* The constant inputs of such an op; an omitted input is NULL. Returns NULL when out of memory. */
const onx_value **onxi_run_op_constants(const onxi_run_graph *g, const onxi_run_op *op, onx_arena *arena);
/* Runs the node now; its outputs become constants. */
onx_status onxi_run_graph_fold(onxi_run_graph *g, const onxi_run_op *op);
/* Has the session the kernels that the rewrite rules for DequantizeLinear need (run_bytes.c)? */
onx_status onxi_run_session_takes_bytes(struct onxi_run_session *s);
/* Finds the rows for changes of layout. */
onx_status onxi_run_session_reorders(struct onxi_run_session *s);
/* Prepares a change of layout by the first row that does it; `p` has its input and output, one of which has the layout.
 */
onx_status onxi_run_reorder_prepare(const struct onxi_run_session *s, const onx_layout *layout, onx_prepare *p);
/* Is the op a DequantizeLinear of a constant that must not be folded before the rewrite rules have seen it? */
bool onxi_run_keeps_bytes(const onxi_run_graph *g, const onxi_run_op *op);
/* Before the rewrite rules: gives each matrix product and convolution a DequantizeLinear of its own. */
onx_status onxi_run_graph_split_bytes(onxi_run_graph *g);
/* After the rewrite rules: folds the DequantizeLinear nodes of constants that no rule has used. */
onx_status onxi_run_graph_fold_bytes(onxi_run_graph *g);
/* The same graph, where each refused op (one flag per op) is replaced by its parts. */
onx_status onxi_run_graph_unwritten(const onxi_run_graph *g, const bool *refused, onxi_run_graph **out);
onx_status onxi_run_graph_count_uses(onxi_run_graph *g);
/* Sets a flag, one per slot, for each value that a condition of the op names. Its parts have conditions of their own.
 */
void onxi_run_op_mark_conditions(const onxi_run_graph *g, const onxi_run_op *op, bool *slots);
/* Resolves op->node, which replaces other nodes: operator, version, kernels, attributes. `arguments` are those of the
 * function that contains it, or NULL. */
onx_status onxi_run_op_mean(onxi_run_session *s, onxi_binder *binder, const onxi_arguments *arguments, onxi_run_op *op);
/* A node that the session adds, with one output. Names are not copied. */
typedef struct onxi_run_added {
    const char *op_type; /* an operator of the default domain */
    onx_str name;
    const char *attribute; /* its one attribute, an int; NULL: none */
    int64_t value;
} onxi_run_added;
/* Makes the op with the position of `by`, or of the graph (NULL). outputs[0] is to be set. */
onx_status onxi_run_op_added(onxi_run_session *s, const onxi_run_op *by, const onxi_run_added *what,
                             const uint32_t *inputs, uint32_t count, onxi_run_op *out);
/* Adds a constant to the session, which takes over the value. */
onx_status onxi_run_session_keep(onxi_run_session *s, onx_value *value);

/* ---- constants (run_constant.c) ---- */

/* Loads a tensor of the document: in place, or as a copy where it is small or not laid out as kernels need it.
 * *source_out is NULL for a copy. */
onx_status onxi_run_constant_load(onxi_run_session *s, const onx_tensor *t, const onx_value **out,
                                  onxi_run_source **source_out);
/* The floats of the constant in a slot, multiplied by factors, one per index of its first dim. The factors belong to
 * the caller and must live as long as the session. *out is NULL if a product is not finite, or if the elements still
 * have to be gathered from a larger tensor or computed by a node. */
onx_status onxi_run_constant_scaled(onxi_run_session *s, const onxi_run_graph_slot *slot, const double *scale,
                                    onxi_run_source **out);
/* Gives the slot `wide` the constant of `slot`, which is float16 or bfloat16, in float. Elements of a large constant
 * are widened when they are read. */
onx_status onxi_run_constant_widen(onxi_run_graph *g, uint32_t slot, uint32_t wide);
/* For sessions with lean memory: turns the result of a node with constant inputs into a constant whose elements are
 * computed when they are read, some at a time. *done is false where the node does not allow this or is too small. */
onx_status onxi_run_constant_defer(onxi_run_graph *g, const onxi_run_op *op, bool *done);
/* For sessions with lean memory: is the result of an op with constant inputs too large to be computed once and kept? */
onx_status onxi_run_constant_is_too_large(onxi_run_graph *g, const onxi_run_op *op, bool *large);
/* Makes the elements of the slot's constant for good. The slot may have no constant, and the constant may need no
 * making. */
onx_status onxi_run_constant_make(onxi_run_graph *g, uint32_t slot);
/* Reads elements first .. first+count-1; any thread may call it. If `source` is a copy, `made` was not set when it was
 * copied. */
void onxi_run_source_read(const onxi_run_source *source, uint64_t first, uint64_t count, void *out);
/* Are all elements, before scaling, the same float? */
bool onxi_run_source_is_filled(const onxi_run_source *source);
/* Writes all elements to `out`, which is aligned and large enough. Pages of the document that were read may be dropped
 * from memory. */
void onxi_run_source_write(onxi_run_session *s, const onxi_run_source *source, void *out);
/* Returns ONX_E_IO if some elements that were read from the source, now or earlier, could not be loaded. */
onx_status onxi_run_source_failed(onx_ctx *cx, const onxi_run_source *source);
/* Says that these bytes of the document are not needed soon, if they are contiguous. */
void onxi_run_source_forget(onxi_run_session *s, const onxi_run_source *source, uint64_t from, uint64_t size);
onx_str onxi_run_op_path(onx_arena *arena, const onxi_run_op *op);
/* The path of a node, such as: graph.node[0] "first" (F) function F node[2] (If).then_branch.node[0] (Relu) */
onx_str onxi_run_frame_path(onx_arena *arena, const onxi_run_frame *frame, uint32_t index, const onx_node *node);

/* ---- packed constants (run_pack.c) ---- */

/* The owner of a constant, which keeps its packed forms. */
typedef struct onxi_run_keeper {
    onxi_run_packs *packs;
    onx_ctx *cx;
    onx_arena *arena;
    onxi_run_session *session; /* NULL: a plan is the owner */
    onxi_run_source *source;   /* NULL: the elements are at `elements` */
    const void *elements;
} onxi_run_keeper;
/* For sessions with lean memory: packed weights of one node, freed after the node has run. */
typedef struct onxi_run_passing {
    onx_ctx *cx;
    struct onxi_run_passed *first;
} onxi_run_passing;
void onxi_run_passing_end(onxi_run_passing *passing);
/* May the session keep `size` more bytes of packed constants? Call it under the root's lock, or while the session is
 * created. */
bool onxi_run_may_keep(const onxi_run_session *s, uint64_t size);
/* Packs a constant on first use of the key; *out are the packed bytes. The caller holds `planning` of `s`. If the
 * session may not keep the bytes, *anew is set and *out only tells that there will be some (it is not NULL): each run
 * prepares the node again and packs them. */
onx_status onxi_run_pack(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                         const onx_packing *packing, bool *anew, const void **out);
/* The same for a node that is prepared to run at once. `planning`: the caller holds that lock; otherwise the function
 * takes it the first time a constant is packed. Returns ONX_E_UNSUPPORTED where the memory limit leaves no room. */
onx_status onxi_run_pack_running(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                                 const onx_packing *packing, const onxi_run_watch *watch, bool planning,
                                 onxi_run_passing *passing, const void **out);
void onxi_run_packs_free(onxi_run_packs *packs, onx_ctx *cx);
/* The name of the packed form in the store, or among the weights left for later sessions; false where it is not kept
 * (run_saved.c). */
bool onxi_run_saved_name(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                         const onx_packing *packing, onxi_digest *out);
/* Memory for a packed block that stays; the caller holds `planning`. *out is the slab of the block, needed to free
 * it. */
void *onxi_run_slab_take(onxi_run_session *s, uint64_t size, struct onxi_run_slab **out);
void onxi_run_slab_give(const onx_allocator *a, struct onxi_run_slab *slab, void *block, uint64_t size);
/* The same for memory of contexts without an allocator of their own. */
void onxi_run_slab_free(void *slab, void *block, size_t size);
void onxi_run_slabs_close(onxi_run_session *s);
/* A buffer for elements while they are packed; the caller holds `planning` and has one buffer at a time.
 * onxi_run_elements_end: nothing remains to be packed. */
void *onxi_run_elements_take(onxi_run_session *s, uint64_t size);
/* The elements of the source, if the buffer still has them from the last packing, or NULL. onxi_run_elements_hold notes
 * that the buffer has them. */
const void *onxi_run_elements_held(const onxi_run_session *s, const onxi_run_source *source);
void onxi_run_elements_hold(onxi_run_session *s, const onxi_run_source *source, const void *elements);
void onxi_run_elements_give(onxi_run_session *s, void *elements, uint64_t size);
void onxi_run_elements_end(onxi_run_session *s);
/* Opens the shelf of the session's document; closes it. */
onx_status onxi_run_shelf_open(onxi_run_session *s);
void onxi_run_shelf_close(onxi_run_session *s);

/* ---- one op on known types (run_op.c) ---- */

/* The environment of work on ops: diagnostics, and memory for results of rules and of preparation. */
typedef struct onxi_run_env {
    onx_ctx *cx;
    onxi_run_session *session;
    const onxi_run_graph *graph; /* the graph of the ops */
    onx_arena *arena;
    onx_arena *scratch;           /* for memory that only one call needs; NULL: `arena` */
    struct onxi_run_plan *plan;   /* the plan in progress, or NULL */
    struct onxi_run_state *state; /* of the run, or NULL while planning */
    const onxi_run_watch *watch;  /* may be NULL */
    onxi_run_passing *passing;    /* packed weights of a node that runs at once; NULL: the node is only prepared */
    bool nonfinite;               /* kernels that lose NaN and infinities must decline (onx_prepare.nonfinite) */
} onxi_run_env;

/* Do the results depend on the inputs only? Then they can be computed once where the inputs are constants. */
bool onxi_run_op_is_pure(const onxi_run_op *op);
/* Computes the types of the outputs; kind NONE where they depend on data. `values` get types in row-major layout, with
 * dims in the arena. */
onx_status onxi_run_op_types(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs);
/* Which parts of the schema's function body make up this op. */
uint64_t onxi_run_op_body_parts(onxi_run_env *e, const onxi_run_op *op);
/* The view that a kernel has of a finished preparation. */
onx_prepared onxi_run_op_prepared(const onx_prepare *p);
/* Fills in the description of the op that kernels are given. Its arrays must outlive `p`. */
void onxi_run_op_describe(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p);
/* Checks that the inputs have types that the operator takes, and that outputs with known types have types that it
 * gives. A diagnostic names the one that does not. */
onx_status onxi_run_op_check_types(const onxi_run_op *op, const onx_prepare *p);
/* Kernel rows from .. to-1 of an op are tried before all rows are tried in order; plain rows among them are skipped. */
typedef struct onxi_run_order {
    uint32_t from, to;
} onxi_run_order;
/* Chooses the first kernel row that accepts the op, and prepares it. `row_major` (NULL: p->inputs) are the inputs for
 * kernels that support no layouts. `alike`: whether elementwise kernels may see the
 * layout of inputs. */
onx_status onxi_run_op_prepare(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p,
                               const onx_value *const *row_major, onxi_common_layout alike, onxi_run_order order);
/* Did the kernel request packed bytes that each run has to make again? */
bool onxi_run_op_is_anew(const onx_prepare *p);
/* Asks the kernel row of an op again, during a run; `from` is the description it was given first, and is not changed.
 * `p` gets the new preparation, with params in e->arena. */
onx_status onxi_run_op_prepare_anew(onxi_run_env *e, const onxi_run_op *op, const onx_prepare *from, onx_prepare *p);
/* Determines types and kernel, and runs the node at once on actual values. Outputs are values of e->cx. */
onx_status onxi_run_op_eager(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs, const onx_kernel **kernel_out);
/* Runs all rows of work of a prepared kernel, on as many threads as the work justifies. */
onx_status onxi_run_work_run(const onx_kernel *kernel, onx_work *work);

/* ---- a plan for given input shapes ---- */

typedef enum onxi_run_residence {
    ONXI_PLACE_NONE,
    ONXI_PLACE_INPUT, /* the caller's memory */
    ONXI_PLACE_CONSTANT,
    ONXI_PLACE_BUFFER, /* at `offset` of the state's buffer */
    ONXI_PLACE_VIEW,   /* shares the memory of an input */
    ONXI_PLACE_DYNAMIC /* a value of its own, allocated while running */
} onxi_run_residence;

typedef struct onxi_run_plan_slot {
    onx_value value; /* type; data for constants */
    onxi_run_residence place;
    uint32_t storage;   /* for BUFFER */
    uint32_t base;      /* for a view, in any place: the slot whose bytes it is */
    uint32_t updates;   /* slot of the input that it may overwrite, as its kernel writes only the changed elements */
    uint32_t reordered; /* another slot with the same value in another layout; ONXI_NO_SLOT: none */
    uint64_t uses_left; /* uses still to be planned */
    bool moved;         /* an earlier output of the graph already has this slot */
} onxi_run_plan_slot;

typedef struct onxi_run_step {
    const onxi_run_op *op; /* NULL: a change of layout */
    const onx_kernel *kernel;
    onx_prepare prepare;
    onx_prepared prepared;      /* view of `prepare` for the kernel */
    uint32_t *inputs, *outputs; /* plan slots; those of captures follow */
    uint32_t input_count, capture_count, output_count;
    uint32_t first_site; /* index of the first subgraph of the op */
    /* For a step whose types are known only while running: is this the last use of each input and capture? NULL: of
     * none. */
    const bool *last_use;
    /* 1 + index of the entry of plan->chosen that it or its post-operations belong to; 0: none. */
    uint32_t chosen;
    bool measured; /* its kernel row was put first by the table of measurements */
    bool eager;    /* types, kernel and preparation are determined anew in each run */
    /* What the kernel row was asked, where each run has to ask it again; NULL: once is enough. */
    const onx_prepare *anew;
} onxi_run_step;

/* A storage that is a piece of another one shares the lifetime, the uses and the memory of that one (run_piece.c). */
typedef struct onxi_run_storage {
    uint64_t size, offset;
    uint32_t whole;       /* the storage that contains this one, ONXI_NO_SLOT: none */
    uint64_t at;          /* offset in `whole` in bytes */
    uint32_t first, last; /* steps that begin and end its lifetime */
    uint64_t uses_left;   /* uses still to be planned, of all slots that share it */
    uint64_t here;        /* uses by the step being planned; 0 otherwise */
} onxi_run_storage;

/* The nodes that follow nodes whose output shapes are known only during a run (run_later.c). They are steps of the
 * plan, which run node by node, and also a graph, which has plans for shapes that came before. */
typedef struct onxi_run_later {
    onxi_run_graph graph; /* its captures and outputs are in slots with the same numbers as in the enclosing graph */
    uint32_t *captured;   /* plan slots, row-major */
    uint32_t from, to;    /* range of steps */
} onxi_run_later;

typedef struct onxi_run_plan {
    onxi_run_kept kept;
    onxi_run_graph *graph;
    onx_ctx *cx; /* its own, because other plans may be freed while this one is made */
    onx_arena *arena;
    onx_value *input_types;     /* types of the inputs that the plan is for; one per input and capture */
    onxi_run_plan_slot **slots; /* the first ones are the slots of the graph */
    uint32_t slot_count, slot_room;
    onxi_run_step *steps;
    uint32_t step_count, step_room;
    uint32_t site_count; /* number of subgraphs of all steps */
    onxi_run_storage *storages;
    uint32_t storage_count, storage_room;
    onxi_run_owned *constants;
    onxi_run_packs packs;
    uint64_t buffer_size; /* bytes for activations and workspace */
    uint64_t workspace_offset, thread_workspace_offset, thread_workspace;
    uint32_t *outputs;              /* plan slots of the graph's outputs, row-major */
    struct onxi_run_chosen *chosen; /* groups of nodes whose kernel rows are chosen by measurement */
    uint32_t chosen_count, chosen_room;
    onxi_digest context; /* key of the measurements of this graph */
    bool *moves;         /* per output: the slot's own value is unused after it */
    bool has_dynamic;
    onxi_run_later *later; /* NULL: none */
    bool nonfinite;        /* as in onxi_run_env */
    struct onxi_run_state *idle;
} onxi_run_plan;

/* Makes a plan. No other thread may plan for the session meanwhile: the caller holds `planning` or creates the session.
 * Diagnostics go to `cx`. */
onx_status onxi_run_plan_new(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch,
                             bool nonfinite, onx_ctx *cx, onxi_run_plan **out);
/* Needs no lock. The plan must not be in use. */
void onxi_run_plan_free(onxi_run_session *s, onxi_run_plan *plan);
/* Assigns an offset to each storage; *size_out is the size of the buffer. */
onx_status onxi_run_plan_memory(onxi_run_plan *plan, onx_ctx *cx, uint64_t *size_out);

/* ---- a state: the memory of one run at a time ---- */

/* A subgraph at a step of a state. The states of the subgraph belong to the enclosing state and share its context, so
 * values pass in and out without copies of items. */
typedef struct onxi_run_site {
    struct onxi_run_state *outer;
    onxi_run_graph *graph;
    const onx_value **inputs;    /* formal inputs, set by each run, then captures */
    onx_value **held;            /* per formal input: a value that replaces the given one in a form that the body
                                  * wants, or NULL */
    bool loop;                   /* the body of a Loop; its first two inputs take the rank that they declare */
    struct onxi_run_state *kept; /* one per plan, most recently used first */
    uint32_t kept_count;
    uint64_t kept_size; /* bytes of their buffers */
} onxi_run_site;

/* Addresses of the outputs and then the inputs of the caller (run_aim.c); arrays are indexed in that order. */
typedef struct onxi_run_aim {
    uintptr_t *from, *to; /* address range; 0: none */
    uint32_t *order;      /* indices sorted by address */
    uint32_t *updated;    /* per output: the input that it may overwrite, UINT32_MAX: none */
    uint32_t *storage;    /* per output: its storage, if no other storage contains it; ONXI_NO_SLOT: none */
    bool *apart;          /* no other operand overlaps the range */
    bool overlaps;        /* in this run, the memory of some output may overlap that of another operand */
} onxi_run_aim;

/* The working memory of an eager step. */
typedef struct onxi_run_space {
    void *memory;
    uint64_t size;
} onxi_run_space;

typedef struct onxi_run_state {
    struct onxi_run_state *next;
    onx_ctx *cx;
    onxi_run_plan *plan;
    onx_arena *text;    /* strings made by the run */
    onx_arena *scratch; /* for the preparation of eager steps */
    onx_doc reader;     /* reads the session's document with `cx` and `scratch` while an eager step runs */
    char *buffer, *base;
    uint64_t base_size, held;   /* bytes at `base`; of them, those that count against the memory limit */
    onx_value *values;          /* per plan slot except dynamic ones */
    onx_value **slots;          /* per plan slot */
    onx_work *works;            /* per step */
    onxi_run_site *sites;       /* per subgraph of the plan */
    struct onxi_run_rest *rest; /* state of plan->later, or NULL */
    /* The state executes the rest of a run of the main graph, so its nodes are nodes of the main graph. */
    bool goes_on;
    /* Per input and capture of the graph: the caller gave the value away, and it is in `values` now. */
    bool *taken;
    char **storage_at; /* per storage of the plan: its address in the buffer or in an output of the caller */
    onxi_run_aim aim;  /* outermost */
    void *arrays;      /* operand pointers of all steps and sites */
    size_t arrays_size;
    struct onxi_run_state *outermost; /* the state of the main graph, or itself */
    uint64_t entered;                 /* in `outermost`: how often subgraphs were run */
    onxi_run_watch watch;             /* in `outermost`: watch of the current run */
    onxi_run_space space;             /* in `outermost`: memory of the last eager step */
    const onx_run_options *options;
    uint64_t start_ns;
} onxi_run_state;

/* `outer`: the enclosing state, NULL for the main graph. */
onx_status onxi_run_state_new(onxi_run_session *s, onxi_run_plan *plan, onxi_run_state *outer, onxi_run_state **out);
/* Takes memory for an eager step: at least `size` bytes, or none after an error, which is recorded. The last memory is
 * kept for the next step, because getting it from the system and giving it back takes longer than many steps do.
 * `state` may be NULL. */
onxi_run_space onxi_run_space_take(onxi_run_state *state, onx_ctx *cx, uint64_t size);
void onxi_run_space_give(onxi_run_state *state, onx_ctx *cx, onxi_run_space space);
/* Frees the state and releases the plans of its subgraphs. Needs no lock. */
void onxi_run_state_free(onxi_run_state *state);
/* Runs with these inputs. Where outputs[i] is NULL, `cx` makes the value; if `cx` is NULL, that output is not
 * wanted. */
onx_status onxi_run_state_run(onxi_run_state *state, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              uint32_t output_count);
/* run_aim.c: allocates state->aim of the main graph; returns false, with a diagnostic, when out of memory. */
bool onxi_run_aim_new(onxi_run_state *state);
void onxi_run_aim_free(onxi_run_state *state);
/* Places storages of outputs in the caller's values where possible, and all other storages in the buffer. Operands are
 * in the order of onxi_run_aim. */
void onxi_run_aim_outputs(onxi_run_state *state, const onx_value *const *inputs, onx_value *const *outputs);
/* run_output.c: gives the results of a run to the caller's values, as for onxi_run_state_run. */
onx_status onxi_run_outputs_put(onxi_run_state *state, onx_ctx *cx, onx_value **outputs, uint32_t count);
bool onxi_run_plan_fits(const onxi_run_plan *plan, const onx_value *const *inputs);
/* Finds or makes the plan for these inputs, counts it as busy and moves it to the front. If the plan exists, no caller
 * waits for others that plan. `idle` (NULL: not wanted) gets an unused state of the plan, or NULL. Needs no lock;
 * diagnostics go to `cx`. */
onx_status onxi_run_plan_take(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch,
                              bool nonfinite, onx_ctx *cx, onxi_run_plan **out, onxi_run_state **idle);
/* Counts one user less; the last user of a plan that was dropped frees it. `idle` (or NULL) is a state that the next
 * run may take. Needs no lock. */
void onxi_run_plan_let_go(onxi_run_session *s, onxi_run_plan *plan, onxi_run_state *idle);
/* run_seat.c, for the main graph: takes the state on the seat of this thread, with its plan in use, if it fits these
 * inputs; else NULL. */
onxi_run_state *onxi_run_seat_take(onxi_run_session *s, const onx_value *const *inputs, bool nonfinite);
/* Takes a state of this plan, which is in use, from the seat of another thread; NULL: there is none. */
onxi_run_state *onxi_run_seat_find(onxi_run_session *s, const onxi_run_plan *plan);
/* Leaves a state on the seat of this thread. Its plan stays in use. */
void onxi_run_seat_leave(onxi_run_session *s, onxi_run_state *state);
/* Moves the states on all seats to their plans and counts these as no longer in use. */
void onxi_run_seats_clear(onxi_run_session *s);
/* Takes the root's lock `planning`. Fails when the watch ends the wait. */
onx_status onxi_run_planning_begin(onxi_run_session *s, const onxi_run_watch *watch, onx_ctx *cx);
void onxi_run_planning_end(onxi_run_session *s);
/* Finds or makes plan and state for these inputs of the main graph, runs, and copies the outputs out. Diagnostics go to
 * `cx`; `outputs` as for onx_session_run. */
onx_status onxi_run_graph_run(onxi_run_graph *g, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              const onx_run_options *options);
/* run_subgraph.c */
extern const onx_work_ops onxi_run_site_ops;
void onxi_run_sites_free(onxi_run_state *state);
/* Finds a kept state for the inputs in site->inputs and moves it to the front; NULL: there is none. */
onxi_run_state *onxi_run_site_find(onxi_run_site *site);
/* Makes a state for them. */
onx_status onxi_run_site_add(onxi_run_site *site, onxi_run_state **out);
/* Frees all states of the site. */
void onxi_run_site_close(onxi_run_site *site);

/* run_later.c */
void onxi_run_later_close(onxi_run_session *s, onxi_run_later *later);
onx_status onxi_run_rest_new(onxi_run_state *state);
void onxi_run_rest_free(onxi_run_state *state);
/* Runs the plan for the shapes at hand instead of the steps of plan->later; *done is false where there is no such
 * plan. */
onx_status onxi_run_rest_run(onxi_run_state *state, bool *done);

/* If the input is a cache that a kernel of its only reader updates (onx_kernel.updates), gives the output that the
 * cache becomes; else returns false. */
bool onxi_run_cache_output(const onxi_run_graph *g, uint32_t input, uint32_t *output);

uint64_t onxi_run_clock_ns(void);
/* A new context with the allocator and the limits of `cx`; NULL when out of memory. */
onx_ctx *onxi_run_ctx_child(const onx_ctx *cx);

/* run_variant.c */
/* Builds a session for a model: a root if `root` is NULL, else a variant in which the inputs in `given` (memory of the
 * caller) override their initializers. Diagnostics go to `cx`. */
onx_status onxi_run_session_open(onxi_run_session *s, onx_ctx *own, onx_doc *doc, const onx_session_options *options,
                                 onxi_run_session *root, const bool *given);
/* Frees all members but not the struct and its context. No run may be in progress. */
void onxi_run_session_close(onxi_run_session *s);
/* Finds or makes the variant in which exactly these inputs override their initializers; it is the session itself where
 * none does. It is in use until it is released. */
onx_status onxi_run_variant_take(onxi_run_session *s, onx_ctx *cx, const onx_value *const *inputs,
                                 const onx_run_options *options, onxi_run_session **out);
void onxi_run_variant_let_go(onxi_run_session *s);

#endif
