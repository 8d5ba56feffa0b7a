/* run.h - running a model: plan a session once, run it as often as wanted, from any number of threads. */
#ifndef ONX_RUN_H
#define ONX_RUN_H

#include <onx/op.h>
#include <onx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onx_session onx_session;
struct onx_kernel;

/* What happened at one node, told after it ran. A run that meets NaN or infinities which a fast kernel would lose
 * starts over with others, and tells again from the first node on. */
typedef struct onx_run_event {
    onx_str name, op_type;     /* name of the node (may be empty) and its operator */
    const char *variant;       /* which kernel: "plain", "dnnl" */
    uint32_t post_ops;         /* nodes done in passing */
    uint64_t start_ns, end_ns; /* since the run began */
    uint64_t output_bytes;
    const onx_value *output; /* first output, while the call lasts */
} onx_run_event;

typedef struct onx_session_options {
    uint32_t struct_size;             /* sizeof of this struct, or 0 (onx/base.h) */
    unsigned threads;                 /* 0: as many as there are processors; 1: none are made */
    bool plain;                       /* portable kernels only, no fusing */
    uint64_t memory;                  /* bytes that constants and each run may take; 0: the context's limit */
    const struct onx_kernel *kernels; /* of operators of your own (onx/kernel.h); asked before the built-in ones */
    const onx_registry *registry; /* operators of your own with shape rules and kernels (onx/op.h), and documents; it
                                   * must outlive the session */
    uint64_t timeout_ns; /* nanoseconds that making the session may take, constants computed included; 0: no limit */
    unsigned isa;     /* ONX_ISA_* (onx/kernel.h) of kernels; 0, or more than the processor has: the best that it has */
    bool no_optimize; /* nodes run as the model has them; what constants alone decide is computed all the same */
} onx_session_options;

/* Plans the main graph of a model document, which must outlive the session and is only read (onx/ir.h says what that
 * means for threads). Fails for what no kernel can do. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_session_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options,
                                                  onx_session **out);
/* No run may be going on. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_session_free(onx_session *session);

typedef struct onx_session_port {
    onx_str name;
    const onx_type *type; /* as the model says; may be NULL */
    bool required;        /* an input without an initializer of its name */
} onx_session_port;

/* In the order of the graph. */
ONX_API ONX_ANY_THREAD uint32_t onx_session_input_count(const onx_session *session);
ONX_API ONX_ANY_THREAD uint32_t onx_session_output_count(const onx_session *session);
ONX_API ONX_ANY_THREAD onx_session_port onx_session_input(const onx_session *session, uint32_t index);
ONX_API ONX_ANY_THREAD onx_session_port onx_session_output(const onx_session *session, uint32_t index);

/* Runs the model. `inputs` has a value or NULL per graph input. `outputs` has an entry per graph output: a value
 * there is reused, NULL is replaced by a new value of `cx` that the caller frees. Any number of threads may run one
 * session at the same time, each with a context of its own. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run(onx_session *session, onx_ctx *cx, const onx_value *const *inputs,
                                                   onx_value **outputs);

/* A run that a limit ends fails with ONX_E_LIMIT, one that `stop` ends with ONX_E_CANCELLED. Both are looked at between
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
} onx_run_options;
/* `options` may be NULL. */
ONX_API ONX_EACH_THREAD onx_status onx_session_run_with(onx_session *session, onx_ctx *cx,
                                                        const onx_value *const *inputs, onx_value **outputs,
                                                        const onx_run_options *options);

#ifdef __cplusplus
}
#endif
#endif
