/* run.h - running a model: create a session once, then run it any number of times, from any number of threads. */
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

/* Reports one node after it ran. If a run meets NaN or infinities that a fast kernel would lose, it restarts with other
 * kernels and reports again from the first node on. */
typedef struct onx_run_event {
    onx_str name, op_type;     /* name of the node (may be empty) and its operator */
    const char *variant;       /* variant of the kernel: "plain", "dnnl" */
    uint32_t post_ops;         /* number of nodes fused into it as post-operations */
    uint64_t start_ns, end_ns; /* time since the start of the run */
    uint64_t output_bytes;
    const onx_value *output; /* first output, valid during the call */
    /* The node that ran: a node of the main graph, of a subgraph or of a function, or NULL for a conversion of a layout
     * or of an element type that the session has added. Its
     * outputs are in the order of the node's outputs, NULL where one is omitted, and are valid during the call. If
     * several nodes ran as one (post_ops), these are the outputs of the last one; with no_optimize and plain kernels
     * nodes are never fused, and values are row-major. Nodes that depend only on constants were computed when the
     * session was created, and are not reported. */
    const onx_node *node;
    const onx_value *const *outputs;
    uint32_t output_count;
    uint32_t node_count; /* number of nodes of the model that ran in this step, fused ones included; 0: a layout
                          * or type conversion */
    uint32_t rule_count;
    const char *const *rules; /* rewrite rules by which one operator replaced several nodes; valid during the call */
    bool each_run;            /* types and kernel are chosen again in every run, because shapes depend on data */
    bool measured;            /* the kernel is not the one of the fixed order (onx_session_options.measure) */
} onx_run_event;

typedef struct onx_session_options {
    uint32_t struct_size;             /* sizeof of this struct, or 0 (onx/base.h) */
    unsigned threads;                 /* 0: one per processor; 1: no thread is created */
    bool plain;                       /* portable kernels only, no fusion */
    uint64_t memory;                  /* maximum bytes for constants, and for each run; 0: the limit of the context */
    const struct onx_kernel *kernels; /* custom rows (onx/kernel.h) that are asked before the built-in ones and may
                                       * replace them; custom operators have their rows in `registry` */
    const onx_registry *registry;     /* custom operators with shape rules and kernels (onx/op.h), and operator-set
                                       * documents; it must outlive the session. NULL: the registry of the context, which
                                       * must outlive it as well */
    uint64_t timeout_ns; /* maximum nanoseconds for creating the session, including the computation of constants; 0:
                          * no limit */
    unsigned isa;        /* ONX_ISA_* (onx/kernel.h) of the kernels; 0, or more than the processor supports: the best
                          * that it supports */
    bool no_optimize;    /* run the nodes as they are in the model; nodes that depend only on constants are still
                          * computed ahead */
    const onx_cancel *cancel; /* cancels the creation of the session; may be NULL */
    bool strict;              /* refuse models that break the standard, even where their meaning is clear
                               * (onx/check.h, ONX_CHECK_ONE_MEANING), and a list of one element where an input is
                               * declared a scalar; otherwise such models run, with a warning, and such lists are taken */
    /* ONX_PRECISION_* (onx/kernel.h): the type that constant weights of MatMul and Gemm may be held in. Memory, and the
     * time of products with few rows, shrink in proportion to the bits; results differ by the rounding of the weights.
     * With bfloat16, products of several rows and convolutions take half the time on processors with bfloat16
     * instructions. */
    unsigned precision;
    /* A folder for packed weights, created if it is missing: later sessions of any process read the packed weights from
     * there instead of packing again. NULL: packed weights are not stored. A file is used only if it belongs to this
     * user, is complete, and was made from the same weights in the same way; otherwise a note reports it and the file
     * is written again. */
    const char *cache;
    /* Memory before speed: at most 16 MB are kept of packed weights and of values that depend only on constants. What
     * exceeds that is computed again in each run, from the mapped file, for one node at a time, or for a part of a
     * weight matrix at a time. Results have the same bits, except for nodes whose inputs are then no longer known to be
     * constant; those agree within rounding. */
    bool lean_memory;
    /* Choose between several fast kernels for a node by measurement on this machine. The first run for each set of
     * input shapes runs the model some dozens of times, for at most 5 seconds per session, and keeps a kernel that is 3
     * % faster, both in place and for the whole model. With `cache`, the measurement is done once per machine and
     * stored there; without, each session repeats it. Without `measure` the order of kernels is fixed, and results have
     * the same bits everywhere. With it, results of different measurements agree within rounding; with one cache folder
     * they have the same bits, for any number of threads. Not for sessions with `plain`, `kernels`, `precision` or
     * `lean_memory`, and not in WebAssembly. */
    bool measure;
    /* Check each plan before it runs: that no step overwrites or reuses memory which a later step or an output still
     * reads, or reads what was not written. ONX_E_INTERNAL, with the step, the value and the bytes, if it does, which
     * is a mistake in the library. Takes a part of the time that planning takes. Builds for debugging and with
     * sanitizers always check. */
    bool verify;
    /* Refuse models of an IR version or of operator sets of the standard that are newer than the newest known;
     * otherwise their operators run by the newest known version, with a warning, as far as they are known. */
    bool strict_opset;
} onx_session_options;

/* Plans the main graph of a model document, which must outlive the session and is only read (onx/ir.h says what that
 * means for threads). Fails for operators that no kernel can run. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_session_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options,
                                                  onx_session **out);
/* The same for a model in a file of any format; the session keeps it open as long as it needs it. `load_options` and
 * `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_session_load(onx_ctx *cx, const char *path, const onx_load_options *load_options,
                                                   const onx_session_options *options, onx_session **out);
/* No run may be in progress. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_session_free(onx_session *session);

typedef struct onx_session_port {
    onx_str name;
    const onx_type *type; /* as declared in the model; may be NULL */
    bool required;        /* an input without an initializer of the same name */
} onx_session_port;

/* In the order of the graph. Past the last one, a port without name and type is returned. */
ONX_API ONX_ANY_THREAD uint32_t onx_session_input_count(const onx_session *session);
ONX_API ONX_ANY_THREAD uint32_t onx_session_output_count(const onx_session *session);
ONX_API ONX_ANY_THREAD onx_session_port onx_session_input(const onx_session *session, uint32_t index);
ONX_API ONX_ANY_THREAD onx_session_port onx_session_output(const onx_session *session, uint32_t index);
/* Index of the input or output with that name; false when there is none. */
ONX_API ONX_ANY_THREAD bool onx_session_find_input(const onx_session *session, onx_str name, uint32_t *index_out);
ONX_API ONX_ANY_THREAD bool onx_session_find_output(const onx_session *session, onx_str name, uint32_t *index_out);

/* Runs the model. `inputs` has a value or NULL per graph input, `outputs` an entry per graph output. A value in
 * `outputs` is reused; NULL is replaced by a new value of `cx` that the caller frees. A value that already has the type
 * and shape of the output (one of the previous run, or one over memory of the caller, onx_value_wrap) is written
 * without a copy, if it is aligned to 16 bytes and does not overlap an input. An output value over exactly the memory
 * of an input is updated in place if one node computes it from that input and nothing else reads the input (a cache of
 * GroupQueryAttention or TensorScatter); a run that fails may then have changed it. Otherwise such a value is written
 * when the run is done, after all inputs have been read, wherever it overlaps them; of outputs that overlap each other
 * the last one is complete. A value over memory of the caller that has another type or shape is ONX_E_MISUSE. Any
 * number of threads may run one session at the same time, each with its own context. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run(onx_session *session, onx_ctx *cx, const onx_value *const *inputs,
                                                   onx_value **outputs);

/* A run that exceeds a limit fails with ONX_E_LIMIT; one that `stop` ends fails with ONX_E_CANCELLED. Both are checked
 * between nodes, between iterations, and between the pieces of a node's work. The outputs are then undefined; the
 * session remains usable. */
typedef struct onx_run_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    void (*event)(void *user, const onx_run_event *event); /* called by the thread that runs; may be NULL */
    void *user;                                            /* user pointer for event, stop and progress */
    uint64_t timeout_ns; /* maximum nanoseconds for the run, including planning; 0: no limit */
    uint64_t iterations; /* maximum number of times that the run may enter subgraphs; each iteration of a loop counts,
                          * except for those of loops that the session has unrolled; 0: no limit */
    /* Returns true to end the run; called often, by several threads at the same time. To cancel from another thread,
     * read an atomic flag in it. May be NULL. */
    bool (*stop)(void *user);
    const onx_cancel *cancel; /* cancels the run from any thread; may be NULL */
    /* Called before each step of the main graph by the thread that runs: `done` of `total` steps are done. A status
     * other than ONX_OK ends the run, which fails with it. May be NULL. */
    onx_status (*progress)(void *user, uint32_t done, uint32_t total);
    bool inside; /* also report the nodes of subgraphs, each time that they run, before the node that holds them */
} onx_run_options;
/* `options` may be NULL. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run_with(onx_session *session, onx_ctx *cx,
                                                        const onx_value *const *inputs, onx_value **outputs,
                                                        const onx_run_options *options);

/* A value together with the name of an input or output. */
typedef struct onx_named_value {
    const char *name;
    onx_value *value; /* input: only read. Output: reused; NULL is replaced by a new value of the context */
} onx_named_value;
/* Runs the model with inputs and outputs by name, in any order; only the outputs that are listed are returned.
 * ONX_E_NOT_FOUND for a name that the model does not have, ONX_E_MISUSE for a name that is listed twice. `options` may
 * be NULL. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run_named(onx_session *session, onx_ctx *cx,
                                                         const onx_named_value *inputs, uint32_t input_count,
                                                         onx_named_value *outputs, uint32_t output_count,
                                                         const onx_run_options *options);

#ifdef __cplusplus
}
#endif
#endif
