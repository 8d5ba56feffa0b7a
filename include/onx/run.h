/* run.h - running a model: plan a session once, run it as often as wanted, from any number of threads. */
#ifndef ONX_RUN_H
#define ONX_RUN_H

#include <onx/io.h>
#include <onx/op.h>
#include <onx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onx_session onx_session;
struct onx_kernel;

/* ---- sessions ---- */

/* What happened at one node, reported after it ran. A run that meets NaN or infinities which a fast kernel would lose
 * starts over with others, and reports again from the first node on. */
typedef struct onx_run_event {
    onx_str name, op_type;     /* name of the node (may be empty) and its operator */
    const char *variant;       /* which kernel: "plain", "dnnl" */
    uint32_t post_ops;         /* nodes done in passing */
    uint64_t start_ns, end_ns; /* since the run began */
    uint64_t output_bytes;
    const onx_value *output; /* first output, while the call lasts */
    /* What ran: a node of the main graph, of a subgraph or of a function, or NULL for a change of layout; with its
     * outputs in the order of the node's, NULL where one is omitted, while the call lasts. Where several nodes ran as
     * one (post_ops) these are the outputs of the last; with no_optimize and plain kernels none do, and values are
     * row-major. What constants alone decide was computed when the session was made, and is not reported. */
    const onx_node *node;
    const onx_value *const *outputs;
    uint32_t output_count;
    uint32_t node_count; /* nodes of the model that it did, those done in passing included; 0: a change of layout */
    uint32_t rule_count;
    const char *const *rules; /* by which one operator took the place of several nodes, while the call lasts */
    bool each_run;            /* types and kernel are found by every run, as shapes depend on data */
    bool measured;            /* the kernel is not the one that the fixed order has (onx_session_options.measure) */
} onx_run_event;

typedef struct onx_session_options {
    uint32_t struct_size;             /* sizeof of this struct, or 0 (onx/base.h) */
    unsigned threads;                 /* 0: as many as there are processors; 1: none are made */
    bool plain;                       /* portable kernels only, no fusing */
    uint64_t memory;                  /* bytes that constants and each run may take; 0: the context's limit */
    const struct onx_kernel *kernels; /* rows (onx/kernel.h) that are asked before the built-in ones, to take their
                                       * place; operators of your own have theirs in `registry` */
    const onx_registry *registry; /* operators of your own with shape rules and kernels (onx/op.h), and documents; it
                                   * must outlive the session; NULL: those of the context, which must, too */
    uint64_t timeout_ns; /* nanoseconds that making the session may take, constants computed included; 0: no limit */
    unsigned isa;     /* ONX_ISA_* (onx/kernel.h) of kernels; 0, or more than the processor has: the best that it has */
    bool no_optimize; /* nodes run as the model has them; what constants alone decide is computed all the same */
    const onx_cancel *cancel; /* ends the making of the session; may be NULL */
    bool strict;              /* refuse models that break the standard, even where what they mean is clear (onx/check.h,
                               * ONX_CHECK_ONE_MEANING); else those run, with a warning */
    /* ONX_PRECISION_* (onx/kernel.h) that constant weights of MatMul and Gemm may be held in, which costs memory and
     * time of products with few rows in proportion to the bits; results differ by what the weights lose. Products of
     * several rows, and convolutions, in bfloat16 take half the time where a processor multiplies such numbers. */
    unsigned precision;
    /* A folder, made if it is missing, in which packed weights are kept for later sessions of any process, which then
     * read them in place of packing; NULL: nowhere. What is found there is used only if it is this user's, whole, and
     * made of the same weights in the same way; otherwise a note says so and it is written anew. */
    const char *cache;
    /* Memory before speed: 16 MB at most are kept of what kernels make of constants (packed weights) and of what
     * constants alone decide. What is beyond is made by each run, for one node at a time, or a piece at a time where it
     * is a matrix that is multiplied by, straight from the mapped file. Results have the same bits, but for nodes whose
     * constants are no longer known to be such when they run; those agree within rounding. */
    bool lean_memory;
    /* Which of several fast kernels runs a node is measured on this machine: the first run for each set of shapes of
     * inputs runs the model some dozens of times, for 5 seconds of a session at most, and keeps what is faster by 3 %
     * in place, and as a whole. With `cache` that is done once per machine, and kept there; without, by each session.
     * Without `measure` the order is fixed, and results have the same bits everywhere; with it they agree within
     * rounding, and have the same bits with one such folder, for any number of threads. Not for sessions with `plain`,
     * `kernels`, `precision` or `lean_memory`, nor in WebAssembly. */
    bool measure;
} onx_session_options;

/* Plans the main graph of a model document, which must outlive the session and is only read (onx/ir.h says what that
 * means for threads). Fails for what no kernel can do. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_session_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options,
                                                  onx_session **out);
/* The same for a model in a file of any format, which the session keeps open as long as it needs it. `load_options` and
 * `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_session_load(onx_ctx *cx, const char *path, const onx_load_options *load_options,
                                                   const onx_session_options *options, onx_session **out);
/* No run may be in progress. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_session_free(onx_session *session);

typedef struct onx_session_port {
    onx_str name;
    const onx_type *type; /* as the model says; may be NULL */
    bool required;        /* an input without an initializer of its name */
} onx_session_port;

/* In the order of the graph. Past the last one there is a port without name or type. */
ONX_API ONX_ANY_THREAD uint32_t onx_session_input_count(const onx_session *session);
ONX_API ONX_ANY_THREAD uint32_t onx_session_output_count(const onx_session *session);
ONX_API ONX_ANY_THREAD onx_session_port onx_session_input(const onx_session *session, uint32_t index);
ONX_API ONX_ANY_THREAD onx_session_port onx_session_output(const onx_session *session, uint32_t index);
/* Which input or output has that name; false when none has. */
ONX_API ONX_ANY_THREAD bool onx_session_find_input(const onx_session *session, onx_str name, uint32_t *index_out);
ONX_API ONX_ANY_THREAD bool onx_session_find_output(const onx_session *session, onx_str name, uint32_t *index_out);

/* Runs the model. `inputs` has a value or NULL per graph input. `outputs` has an entry per graph output: a value
 * there is reused, NULL is replaced by a new value of `cx` that the caller frees. A value that has type and shape of
 * the output already, as one of the run before or one over memory of the caller (onx_value_wrap) has, is written in
 * place without a copy, where it is aligned to 16 bytes and does not overlap an input. One over the very memory of an
 * input is updated there, without a copy, where one node makes it of that input and nothing else reads the input: a
 * cache of GroupQueryAttention or TensorScatter; otherwise it is written when the run is done, and a run that fails may
 * have changed it. One over memory of the caller that has another type or shape is ONX_E_MISUSE. Any number of threads
 * may run one session at the same time, each with a context of its own. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run(onx_session *session, onx_ctx *cx, const onx_value *const *inputs,
                                                   onx_value **outputs);

/* A run that a limit ends fails with ONX_E_LIMIT, one that `stop` ends with ONX_E_CANCELLED. Both are checked between
 * nodes, between iterations, and between the pieces that a node's work is divided into; outputs are undefined then, and
 * the session can be used as before. */
typedef struct onx_run_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    void (*event)(void *user, const onx_run_event *event); /* by the thread that runs; may be NULL */
    void *user;                                            /* for event and stop */
    uint64_t timeout_ns; /* nanoseconds that the run may take, planning included; 0: no limit */
    uint64_t iterations; /* how often it may enter subgraphs, each iteration of a loop counted; 0: no limit */
    /* Whether to end the run; asked often, by several threads at a time. To cancel from another thread, let it read an
     * atomic flag. May be NULL. */
    bool (*stop)(void *user);
    const onx_cancel *cancel; /* ends the run from any thread; may be NULL */
    /* Before each step of the main graph, by the thread that runs: `done` of `total` are done. A status other than
     * ONX_OK ends the run and is what it fails with. May be NULL. */
    onx_status (*progress)(void *user, uint32_t done, uint32_t total);
    bool inside; /* events for the nodes of subgraphs, too, each time that they run, before the node that holds them */
} onx_run_options;
/* `options` may be NULL. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run_with(onx_session *session, onx_ctx *cx,
                                                        const onx_value *const *inputs, onx_value **outputs,
                                                        const onx_run_options *options);

/* A value under the name of an input or output. */
typedef struct onx_named_value {
    const char *name;
    onx_value *value; /* of an input: only read. Of an output: reused, or NULL, which is replaced by a new value of the
                       * context */
} onx_named_value;
/* Runs the model with inputs and outputs by name, in any order; only the outputs that are named are given.
 * ONX_E_NOT_FOUND for a name that the model does not have, ONX_E_MISUSE for one that is there twice. `options` may be
 * NULL. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run_named(onx_session *session, onx_ctx *cx,
                                                         const onx_named_value *inputs, uint32_t input_count,
                                                         onx_named_value *outputs, uint32_t output_count,
                                                         const onx_run_options *options);

#ifdef __cplusplus
}
#endif
#endif
