/* shard.h - a model on many devices: what the multi-device annotations of a model say (IR version 11) is done by ranks
 * that talk over a communicator, each of which has its shards of the weights only. See docs/notes/shard.md. */
#ifndef ONX_SHARD_H
#define ONX_SHARD_H

#include <onx/run.h>
#include <onx/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- communicators ---- */

/* Bytes for a rank, or from it. */
typedef struct onx_comm_part {
    uint32_t rank;
    void *data;
    uint64_t size; /* both sides say the same; never 0 */
} onx_comm_part;

/* How ranks talk: one function that sends and receives at the same time; collectives are made of it, so that what is
 * added up is added in one order everywhere. Copied where it is passed in; `user` outlives what uses it. */
typedef struct onx_comm {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t rank, size;
    void *user;
    /* Returns when all is sent and received. Messages between two ranks belong together by `tag`, which a pair of ranks
     * uses once at a time. ONX_E_LIMIT after timeout_ns nanoseconds (0: no limit), ONX_E_CANCELLED where another rank
     * has failed, ONX_E_IO for what goes wrong otherwise; *rank_out is then the rank that it is about. */
    onx_status (*exchange)(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out);
    /* This rank has failed: all that others wait for ends with ONX_E_CANCELLED, now and later, and what it has begun
     * itself is abandoned. */
    void (*fail)(void *user);
    /* The same as `exchange` in two parts, between which ranks compute; NULL for both: there is no such thing. `begin`
     * does not wait and copies the lists, not the bytes, which stay where they are until `finish` returns for what
     * *begun says. Several may have begun, and end in any order. */
    onx_status (*begin)(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                        const onx_comm_part *receives, uint32_t receive_count, uint64_t *begun);
    onx_status (*finish)(void *user, uint64_t begun, uint64_t timeout_ns, uint32_t *rank_out);
} onx_comm;

/* Ranks that are threads of one process, for tests and for trying a configuration out. */
typedef struct onx_comm_group onx_comm_group;
ONX_API ONX_OWN_THREAD onx_status onx_comm_group_new(onx_ctx *cx, uint32_t size, onx_comm_group **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_comm_group_free(onx_comm_group *group);
/* Rank `rank` of the group, for a thread of its own. ONX_E_MISUSE past the last one. */
ONX_API ONX_OWN_THREAD onx_status onx_comm_group_rank(onx_ctx *cx, onx_comm_group *group, uint32_t rank, onx_comm *out);

/* Ranks of MPI: those of the MPI_Comm at `communicator`, or, where that is NULL, of MPI_COMM_WORLD, for which MPI is
 * started unless it has been. All ranks call it, and use it from one thread. ONX_E_UNSUPPORTED, with what to install,
 * where MPI is not there. `communicator` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_comm_mpi(onx_ctx *cx, const void *communicator, onx_comm *out);
/* All ranks call it at the end; where one has `failed`, all end at once. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_comm_mpi_close(onx_comm *comm, bool failed);

/* ---- a model that is spread ---- */

typedef struct onx_sharded onx_sharded;

typedef struct onx_shard_options {
    uint32_t struct_size;               /* sizeof of this struct, or 0 (onx/base.h) */
    const char *configuration;          /* its name; NULL: the only one that the model has */
    const onx_comm *comm;               /* as many ranks as the configuration has devices: rank i is device i */
    bool strict;                        /* annotations that cannot be done are errors instead of notes */
    bool everywhere;                    /* all ranks get the outputs, not rank 0 alone */
    uint64_t timeout_ns;                /* how long to wait for another rank, nanoseconds; 0: a minute */
    const onx_session_options *session; /* of the part of this rank; NULL: the defaults */
} onx_shard_options;

/* What a rank does for inputs of some shapes. */
typedef struct onx_shard_summary {
    uint32_t nodes;         /* of this rank, collectives not counted */
    uint32_t collectives;   /* that it takes part in */
    uint64_t weight_bytes;  /* its shards of the weights */
    uint64_t whole_bytes;   /* weights of the whole model */
    uint64_t receive_bytes; /* that it gets from others in a run */
} onx_shard_summary;

/* Every rank calls this with the same model and configuration, and the same inputs below. The document outlives it and
 * is only read. ONX_E_NOT_FOUND when there is no such configuration, ONX_E_MISUSE when there are not as many ranks as
 * devices, ONX_E_INVALID where ranks do not agree about the model: weights of up to 1 GB in all are compared byte by
 * byte, of more samples. */
ONX_API ONX_OWN_THREAD onx_status onx_sharded_new(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options,
                                                  onx_sharded **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_sharded_free(onx_sharded *sharded);
/* Plans for inputs of these shapes (a value or NULL per graph input), as the first run with them would. */
ONX_API ONX_OWN_THREAD onx_status onx_sharded_prepare(onx_sharded *sharded, onx_ctx *cx,
                                                      const onx_value *const *inputs);
/* Runs the model, all ranks at once. `inputs` has a value or NULL per graph input; `outputs` an entry per graph output,
 * which rank 0 gets as from onx_session_run, while they stay as they are on the others. After a failure no rank can run
 * any more. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_sharded_run(onx_sharded *sharded, onx_ctx *cx, const onx_value *const *inputs,
                                                  onx_value **outputs, const onx_run_options *options);
/* The same as a session, for all that runs sessions; every rank gets the outputs. */
ONX_API ONX_OWN_THREAD onx_status onx_session_new_sharded(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options,
                                                          onx_session **out);
/* What does the runs of such a session; NULL for others. */
ONX_API ONX_ANY_THREAD const onx_sharded *onx_session_sharded(const onx_session *session);
/* Of the shapes that were planned last. */
ONX_API ONX_ANY_THREAD onx_shard_summary onx_sharded_summarize(const onx_sharded *sharded);
/* The part of this rank as a model, for inspection: collectives are nodes of the domain onx.shard. Elements of weights
 * are read through it or its readers (onx_tensor_bytes), as slices by columns are runs of the whole model's. NULL
 * before anything was planned. */
ONX_API ONX_ANY_THREAD const onx_doc *onx_sharded_part(const onx_sharded *sharded);

/* ---- annotations that are made ---- */

/* Devices are numbered by stage of the pipeline, within it by part of the batch, within that by part of the weights. */
typedef struct onx_shard_annotate_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t pipeline;                                     /* stages of a pipeline; 0 as 1 */
    uint32_t data;                                         /* parts of the batch; 0 as 1 */
    uint32_t tensor;                                       /* parts of weights; 0 as 1 */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    onx_str configuration;        /* the name of the new one; empty: of ways and numbers, "pipeline2_tensor4" */
    const onx_infer_fixed *fixed; /* symbolic dimensions as they will be when the model runs */
    uint32_t fixed_count;
} onx_shard_annotate_options;

/* Adds a device configuration to a model, and to its nodes how they are split: products of weights by columns and then
 * by rows where that needs one sum in the end (attention by heads, the layers of a perceptron, convolutions), tables by
 * rows, others by columns; the batch from the inputs on; stages of equal work. The product of the three numbers is that
 * of the devices. Symbolic dimensions that `fixed` does not name are taken as the parts of the batch where they are the
 * first one of an input, else as 1. Nodes are sorted, functions are inlined, and the IR version becomes 11
 * at least. ONX_E_UNSUPPORTED where nothing can be split so, ONX_E_INVALID where there is a configuration of that name;
 * what results mean stays the same in any case. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_annotate(onx_ctx *cx, onx_doc *doc,
                                                     const onx_shard_annotate_options *options);

/* ---- what it would take ---- */

/* Identical devices, as predictions take them. What is 0 is that of an ordinary core. */
typedef struct onx_shard_machine {
    double operations; /* additions and multiplications per second */
    double bandwidth;  /* bytes per second of weights, which come from memory */
    double latency;    /* seconds that a message to another device takes, however short */
    double link;       /* bytes per second to another device, while as many come from it */
    double cache;      /* bytes per second of values between nodes, which are cached */
    double shared;     /* what is left of `bandwidth` for each device while others read their weights, too */
    double passes;     /* how often a product of many rows waits for its weights; one of one row does once */
} onx_shard_machine;

/* What a device has to do in a run. */
typedef struct onx_shard_forecast {
    uint32_t nodes;                                /* that it does, or takes part in */
    uint32_t collectives;                          /* that it takes part in */
    uint64_t weight_bytes;                         /* its shards of the weights */
    uint64_t value_bytes;                          /* the most that it holds at a time of what nodes make */
    uint64_t receive_bytes;                        /* that it gets from others */
    double compute_seconds, wait_seconds, seconds; /* in nodes, in collectives and for others, until it is done */
} onx_shard_forecast;

typedef struct onx_shard_predict_options {
    uint32_t struct_size;         /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t count;               /* room at `devices` */
    onx_str configuration;        /* of the model; empty: all of it on one device */
    const onx_infer_fixed *fixed; /* symbolic dimensions */
    uint32_t fixed_count;
    uint32_t batch; /* symbols that are the first axis of an input, others are 1; 0 as 1 */
    onx_shard_machine machine;
} onx_shard_predict_options;

/* What a run on the devices of a configuration takes, by following the plan with a clock for each: up to 4096 devices,
 * none of which has to be there. A node takes the time of its arithmetic or of its bytes, the longer one.
 * ONX_E_NOT_FOUND where there is no such configuration, ONX_E_MISUSE where it has more devices than `count`. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_predict(onx_ctx *cx, const onx_doc *doc,
                                                    const onx_shard_predict_options *options,
                                                    onx_shard_forecast *devices);

/* A mesh that was tried. */
typedef struct onx_shard_trial {
    uint32_t pipeline, data, tensor;
    bool fits;             /* into the memory of a device */
    double seconds;        /* until the last device is done */
    uint64_t memory_bytes; /* of the device that needs the most: weights and values */
} onx_shard_trial;

typedef struct onx_shard_choose_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t devices;
    uint64_t memory;              /* bytes that a device has; 0: as many as are needed */
    const onx_infer_fixed *fixed; /* symbolic dimensions */
    uint32_t fixed_count;
    uint32_t batch; /* symbols that are the first axis of an input, others are 1; 0: as many as devices */
    void (*tried)(void *user, const onx_shard_trial *trial); /* may be NULL */
    void *user;
    onx_shard_machine machine;
} onx_shard_choose_options;

/* Tries all meshes of `devices` devices, as onx_shard_annotate would make them and onx_shard_predict judges them, and
 * gives the one that takes the least time of those that fit. ONX_E_UNSUPPORTED where there is none. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_choose(onx_ctx *cx, const onx_doc *doc,
                                                   const onx_shard_choose_options *options, onx_shard_trial *out);

/* Measures what predictions take: products and copies of one thread, and messages between the first two ranks of
 * `comm`, which all of its ranks ask for, or, where that is NULL, between two threads of this process. The first rank
 * gets the figures. `comm` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_measure(onx_ctx *cx, const onx_comm *comm, onx_shard_machine *out);

#ifdef __cplusplus
}
#endif
#endif
