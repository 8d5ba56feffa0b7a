/* run_graph.h - a graph with resolved names, which a session builds once: its slots, ops and constants; and lists of
 * the most recently used objects. Part of run.h. */
#ifndef ONXI_RUN_GRAPH_H
#define ONXI_RUN_GRAPH_H

#include <onx/run.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "op/op.h"
#include "rewrite/rewrite.h"

#define ONXI_NO_SLOT         UINT32_MAX       /* no such slot */
#define ONXI_OMITTED         (UINT32_MAX - 1) /* an input that the caller of a function does not give */
#define ONXI_PLANS_MAX       8                /* shapes whose plans are kept per graph */
#define ONXI_PLANS_SMALL     64 /* as many if plans and their buffers take at most ONXI_PLANS_ROOM bytes */
#define ONXI_PLANS_ROOM      (UINT64_C(128) << 20)
#define ONXI_STATES_ROOM     (UINT64_C(16) << 20) /* bytes up to which a site keeps as many states */
#define ONXI_VARIANTS_MAX    8                    /* sets of overridden initializers whose variants a session keeps */
#define ONXI_POST_OPS_MAX    4
#define ONXI_RUN_STORE_LEAST (1u << 16) /* bytes: a file of the store is not worth less */

/* ---- objects kept for later runs (run_recent.c) ---- */

/* The first member of each object in a most-recently-used list: plans of a graph, variants of a session. */
typedef struct onxi_run_kept {
    struct onxi_run_kept *next;
    uint64_t size; /* bytes that keeping it costs, roughly; set before it is added */
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
/* Puts a new object at the front, in use. Of the most recently used objects, `least` stay, and up to `most` while all
 * of them together take no more than `room` bytes. The others are dropped, now or when they are no longer in use.
 * Returns the list, by `next`, of those to free now. */
onxi_run_kept *onxi_run_recent_add(onxi_run_recent *list, onxi_run_kept *kept, uint32_t least, uint32_t most,
                                   uint64_t room);
/* A run that used the object has ended. Returns true when the caller has to free the object. */
bool onxi_run_recent_let_go(onxi_run_kept *kept);
/* Removes the first object from the list and returns it; NULL when the list is empty. */
onxi_run_kept *onxi_run_recent_take(onxi_run_recent *list);

/* ---- a graph with resolved names, built once per session ---- */

/* The owner of a node below the main graph: the body of a function that was called, or a subgraph. */
typedef struct onxi_run_frame {
    const struct onxi_run_frame *parent;
    const onx_node *node;          /* the call, or the node that holds the subgraph */
    const onx_function *function;  /* NULL: a subgraph */
    const onx_attribute *subgraph; /* NULL: a function */
    onxi_arguments arguments;      /* arguments of the call */
    uint32_t index;                /* position of `node` in its list */
    uint32_t depth;                /* number of enclosing calls */
} onxi_run_frame;
/* The innermost enclosing function call, or NULL. */
static inline const onxi_run_frame *onxi_run_frame_of_call(const onxi_run_frame *frame)
{
    while (frame && !frame->function)
        frame = frame->parent;
    return frame;
}

/* A constant whose elements are not in memory that kernels can read. They are in the document at an unaligned address,
 * or have to be computed from another constant (scaled, for example). They are made when something reads them, or only
 * while a kernel packs them (run_constant.c). Changed under the lock `planning` only. */
typedef struct onxi_run_source {
    onx_value *value; /* the constant; until `made`, its data is `raw`, which only shows that it has elements */
    const char *raw;
    /* The tensor in the document, the same for all sessions of the document; NULL: none. */
    const onx_tensor *origin;
    const double *scale;          /* factors of floats, one per index of the first dim; NULL: no scaling */
    const onxi_tensor_part *part; /* the part of a tensor that begins at `raw`; NULL: the elements are contiguous */
    /* File of the bytes at `raw`, which may not be loaded yet (onxi_file_copy); NULL: they are. */
    const onxi_file *late;
    const struct onxi_run_recipe *recipe; /* computes the elements from an operand at `raw`; NULL: no computation */
    /* The element type at `raw`, ONX_FLOAT16 or ONX_BFLOAT16, of a constant in float; ONX_UNDEFINED: that of `value`.
     */
    uint8_t narrow;
    bool made;
    bool has_digest; /* digest of the elements, for names of packed weights kept for later sessions (run_saved.c) */
    onxi_digest digest;
} onxi_run_source;
/* Are the elements in memory of the document, contiguous and unchanged? */
static inline bool onxi_run_source_is_whole(const onxi_run_source *source)
{
    return !source->scale && !source->part && !source->recipe && !source->late && !source->narrow;
}
/* Bytes at `raw`. */
static inline uint64_t onxi_run_source_bytes(const onxi_run_source *source)
{
    return source->narrow ? source->value->count * sizeof(uint16_t) : source->value->size;
}

typedef struct onxi_run_graph_slot {
    onx_str name;
    const onx_value *constant; /* NULL: the value is known at run time only */
    onxi_run_source *source;   /* of the constant; NULL: the session has its elements in memory */
    const onx_tensor *tensor;  /* initializer that nothing has used so far */
    const onx_sparse_tensor *sparse;
    uint32_t uses;                    /* number of uses by ops, their subgraphs and graph outputs */
    uint32_t user;                    /* the last op that uses it */
    const struct onxi_run_op *captor; /* while the graph is resolved: the last op whose subgraphs captured the slot */
    uint32_t capture;                 /* index among the captures of that op */
    bool is_output;
    bool in_layouts; /* some op that uses it takes layouts, or hands it on, element by element, to one that does */
    bool shared;     /* the constant belongs to the root session of this variant */
    /* The element type that the model gives a constant that was widened to float; ONX_UNDEFINED: that of the value. */
    uint8_t narrow;
} onxi_run_graph_slot;

typedef struct onxi_run_op {
    const onx_node *node;
    const onxi_run_frame *frame;
    const onxi_schema *schema; /* NULL: only a kernel of the caller knows the operator */
    const onx_kernel *const *kernels;
    struct onxi_run_graph **graphs; /* its subgraphs, in the order of the attributes */
    const onx_attribute **graph_attributes;
    uint32_t *inputs, *outputs; /* slots; captures of subgraphs follow the inputs */
    uint32_t input_count, capture_count, output_count, kernel_count, graph_count;
    uint32_t input_room, graph_room; /* room in `inputs`; in `graphs` and `graph_attributes` */
    uint32_t index;                  /* position of the node in its list */
    int32_t since;
    onxi_op_id id; /* for built-in operators */
    onxi_attrs attrs;
    bool needed;
    bool added; /* by the session (run_widen.c): not a node of the model */
    /* For a guard: index after the last op of the body that the guard precedes; 0: an ordinary op. */
    uint32_t guard_end;
    /* For an op that replaces other ops (run_rewrite.c): the replaced ops in order, and the rewrite rule. */
    const struct onxi_run_op *parts;
    const onxi_rewrite_condition *conditions; /* conditions on the types of a plan */
    uint32_t part_count, condition_count;
    const char *rule;
    /* For a chain in a plan (run_chain.c): its ops in order. */
    const struct onxi_run_op *const *links;
    uint32_t link_count;
} onxi_run_op;

typedef struct onxi_run_graph {
    struct onxi_run_session *session;
    onx_arena *arena; /* owner of its memory: the arena of the session, or of a plan (run_later.c) */
    const onx_graph *graph;
    onxi_run_graph_slot *slots;
    onxi_run_op *ops;
    uint32_t slot_count, slot_room, op_count, op_room;
    uint32_t *inputs; /* slots of the graph inputs, followed by those of the captures */
    uint32_t input_count, capture_count, input_room, capture_room;
    uint32_t *captures; /* indices into the captures of the op that holds the graph */
    uint32_t *outputs;
    uint32_t output_count;
    const bool *given; /* per input: the caller overrides its initializer; NULL: none is overridden */
    onxi_run_recent plans;
    struct onxi_run_graph
        /* variant of the graph where some ops are replaced by their parts, for shapes they cannot handle; NULL: none */
        *unwritten;
    const bool *unwritten_by;             /* per op: is it replaced by its parts in `unwritten`? */
    const struct onxi_run_graph *written; /* the graph whose `unwritten` this one is, or NULL */
    /* For a graph that belongs to a plan (run_later.c): `depth` is the number of such graphs that contain it, itself
     * included. `known` has the constant that each capture is in that plan; NULL: known at run time only. */
    uint32_t depth;
    const onx_value *const *known;
} onxi_run_graph;
/* The number of plans kept for a graph. It shrinks with the depth, because each plan may contain a graph that keeps
 * plans of its own. */
static inline uint32_t onxi_run_graph_plans(const onxi_run_graph *g)
{
    return g->depth < 3 ? (uint32_t)ONXI_PLANS_MAX >> g->depth : 1;
}
/* Is the value of the input or capture known while planning? */
static inline bool onxi_run_graph_knows(const onxi_run_graph *g, uint32_t input)
{
    const onxi_run_graph_slot *slot = &g->slots[g->inputs[input]];
    return slot->constant || slot->tensor || slot->sparse || (g->known && g->known[input]);
}

#endif
