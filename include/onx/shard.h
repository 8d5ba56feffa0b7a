/* shard.h - running a model on many devices. The multi-device annotations of a model (IR version 11) tell how to split
 * it over ranks, which exchange data through a communicator; each rank holds only its shards of the weights. See
 * docs/notes/shard.md. */
#ifndef ONX_SHARD_H
#define ONX_SHARD_H

#include <onx/run.h>
#include <onx/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- communicators ---- */

/* Bytes to send to a rank, or to receive from it. */
typedef struct onx_comm_part {
    uint32_t rank;
    void *data;
    uint64_t size; /* sender and receiver give the same size; never 0 */
} onx_comm_part;

/* Communication between ranks: one function that sends and receives at the same time. Collectives are built on it, so
 * that sums are accumulated in the same order on all ranks. The struct is copied; `user` must outlive everything that
 * uses it. */
typedef struct onx_comm {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t rank, size;
    void *user;
    /* Returns when everything was sent and received. Messages between two ranks are matched by `tag`; a pair of ranks
     * uses a tag once at a time. ONX_E_LIMIT after timeout_ns nanoseconds (0: no limit), ONX_E_CANCELLED if another
     * rank has failed, ONX_E_IO for other failures; *rank_out is then the rank that caused it. */
    onx_status (*exchange)(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out);
    /* Tells the other ranks that this rank has failed: everything that they wait for, now or later, ends with
     * ONX_E_CANCELLED; exchanges that this rank has begun are abandoned. */
    void (*fail)(void *user);
    /* `exchange` in two parts, so that ranks can compute in between; NULL for both: not available. `begin` does not
     * wait. It copies the lists but not the bytes, which must stay in place until `finish` returns for the handle
     * *begun. Several exchanges may be in progress and may finish in any order. */
    onx_status (*begin)(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                        const onx_comm_part *receives, uint32_t receive_count, uint64_t *begun);
    onx_status (*finish)(void *user, uint64_t begun, uint64_t timeout_ns, uint32_t *rank_out);
} onx_comm;

/* A group of ranks that are threads of one process, for tests and for trying out a configuration. */
typedef struct onx_comm_group onx_comm_group;
ONX_API ONX_OWN_THREAD onx_status onx_comm_group_new(onx_ctx *cx, uint32_t size, onx_comm_group **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_comm_group_free(onx_comm_group *group);
/* Communicator of rank `rank` of the group; each rank uses its own thread. ONX_E_MISUSE past the last rank. */
ONX_API ONX_OWN_THREAD onx_status onx_comm_group_rank(onx_ctx *cx, onx_comm_group *group, uint32_t rank, onx_comm *out);

/* Communicator over MPI: over the MPI_Comm at `communicator`, or over MPI_COMM_WORLD where that is NULL; MPI is
 * initialised in the latter case unless it is already. All ranks call it, each uses it from one thread.
 * ONX_E_UNSUPPORTED, with the package to install, if MPI is not installed. `communicator` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_comm_mpi(onx_ctx *cx, const void *communicator, onx_comm *out);
/* All ranks call it at the end. If one of them passes `failed`, all of them end at once. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_comm_mpi_close(onx_comm *comm, bool failed);

/* ---- a distributed model ---- */

typedef struct onx_sharded onx_sharded;

typedef struct onx_shard_options {
    uint32_t struct_size;               /* sizeof of this struct, or 0 (onx/base.h) */
    const char *configuration;          /* name of the configuration; NULL: the only one of the model */
    const onx_comm *comm;               /* has as many ranks as the configuration has devices; rank i is device i */
    bool strict;                        /* annotations that cannot be carried out are errors instead of notes */
    bool everywhere;                    /* all ranks get the outputs, not only rank 0 */
    uint64_t timeout_ns;                /* how long to wait for another rank, in nanoseconds; 0: one minute */
    const onx_session_options *session; /* session options for the part of this rank; NULL: the defaults */
} onx_shard_options;

/* The work of one rank for given input shapes. */
typedef struct onx_shard_summary {
    uint32_t nodes;         /* nodes of this rank, without collectives */
    uint32_t collectives;   /* collectives that it takes part in */
    uint64_t weight_bytes;  /* size of its shards of the weights */
    uint64_t whole_bytes;   /* size of the weights of the whole model */
    uint64_t receive_bytes; /* bytes that it receives from others in a run */
} onx_shard_summary;

/* Every rank calls this with the same model and configuration, and passes the same inputs to the functions below. The
 * document must outlive the result and is only read. ONX_E_NOT_FOUND when there is no such configuration, ONX_E_MISUSE
 * when the number of ranks differs from the number of devices, ONX_E_INVALID when the ranks have different models:
 * weights of up to 1 GB in total are compared byte by byte, larger ones by samples. */
ONX_API ONX_OWN_THREAD onx_status onx_sharded_new(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options,
                                                  onx_sharded **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_sharded_free(onx_sharded *sharded);
/* Plans for inputs of these shapes (a value or NULL per graph input), as the first run with them would. */
ONX_API ONX_OWN_THREAD onx_status onx_sharded_prepare(onx_sharded *sharded, onx_ctx *cx,
                                                      const onx_value *const *inputs);
/* Runs the model; all ranks call it. `inputs` has a value or NULL per graph input, `outputs` an entry per graph output.
 * Rank 0 gets the outputs as from onx_session_run; those of the other ranks do not change. After a failure no rank can
 * run any more. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_sharded_run(onx_sharded *sharded, onx_ctx *cx, const onx_value *const *inputs,
                                                  onx_value **outputs, const onx_run_options *options);
/* The same as a session, for functions that take sessions; every rank gets the outputs. */
ONX_API ONX_OWN_THREAD onx_status onx_session_new_sharded(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options,
                                                          onx_session **out);
/* The object that executes the runs of such a session; NULL for other sessions. */
ONX_API ONX_ANY_THREAD const onx_sharded *onx_session_sharded(const onx_session *session);
/* Summary for the shapes that were planned last. */
ONX_API ONX_ANY_THREAD onx_shard_summary onx_sharded_summarize(const onx_sharded *sharded);
/* The part of this rank as a model, for inspection; collectives are nodes of the domain onx.shard. Read the elements of
 * weights through this document or its readers (onx_tensor_bytes), because slices by columns are stored as runs of the
 * weights of the whole model. NULL before anything was planned. */
ONX_API ONX_ANY_THREAD const onx_doc *onx_sharded_part(const onx_sharded *sharded);

/* ---- creating annotations ---- */

/* Devices are numbered by pipeline stage, within a stage by part of the batch, within that by part of the weights. */
typedef struct onx_shard_annotate_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t pipeline;                                     /* number of pipeline stages; 0 means 1 */
    uint32_t data;                                         /* number of parts of the batch (data parallelism); 0 means
                                                            * 1 */
    uint32_t tensor;                                       /* number of parts of the weights (tensor parallelism); 0
                                                            * means 1 */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    onx_str configuration;        /* name of the new configuration; empty: made of the kinds and numbers,
                                   * "pipeline2_tensor4" */
    const onx_infer_fixed *fixed; /* sizes of symbolic dimensions when the model runs */
    uint32_t fixed_count;
} onx_shard_annotate_options;

/* Adds a device configuration to a model and annotates its nodes with how they are split. Matrix products are split by
 * columns and then by rows where one sum at the end suffices (attention by heads, the layers of a perceptron,
 * convolutions); embedding tables are split by rows, other weights by columns. The batch is split from the inputs on;
 * pipeline stages get equal work. The number of devices is the product of the three numbers. A symbolic dimension that
 * `fixed` does not name is taken as the number of parts of the batch if it is the first one of an input, otherwise as
 * 1. Nodes are sorted, functions are inlined, and the IR version becomes at least 11. The annotations never change the
 * meaning of the results. ONX_E_UNSUPPORTED if nothing can be split this way, ONX_E_INVALID if there is a configuration
 * of that name. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_annotate(onx_ctx *cx, onx_doc *doc,
                                                     const onx_shard_annotate_options *options);

/* ---- performance prediction ---- */

/* Properties of a device, for predictions; all devices are identical. A member that is 0 has the value of an ordinary
 * core. */
typedef struct onx_shard_machine {
    double operations; /* additions and multiplications per second */
    double bandwidth;  /* bytes per second for weights, which come from memory */
    double latency;    /* seconds for a message to another device, however short */
    double link;       /* bytes per second to another device while it receives as many */
    double cache;      /* bytes per second for values between nodes, which are in the cache */
    double shared;     /* fraction of `bandwidth` that each device has while others read their weights too */
    double passes;     /* how often a product of many rows waits for its weights; a product of one row waits once */
} onx_shard_machine;

/* Predicted work of one device in a run. */
typedef struct onx_shard_forecast {
    uint32_t nodes;                                /* nodes that it computes or takes part in */
    uint32_t collectives;                          /* collectives that it takes part in */
    uint64_t weight_bytes;                         /* size of its shards of the weights */
    uint64_t value_bytes;                          /* maximum total size of node outputs that it holds at a time */
    uint64_t receive_bytes;                        /* bytes that it receives from others */
    double compute_seconds, wait_seconds, seconds; /* time in nodes; time in collectives and waiting for others; time
                                                    * until it is done */
} onx_shard_forecast;

typedef struct onx_shard_predict_options {
    uint32_t struct_size;         /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t count;               /* number of entries of `devices` */
    onx_str configuration;        /* name of the configuration; empty: the whole model on one device */
    const onx_infer_fixed *fixed; /* sizes of symbolic dimensions */
    uint32_t fixed_count;
    uint32_t batch; /* size of symbols that are the first axis of an input, other symbols are 1; 0 means 1 */
    onx_shard_machine machine;
} onx_shard_predict_options;

/* Predicts the time of a run on the devices of a configuration, by simulating the plan with a clock per device. Up to
 * 4096 devices; none of them has to exist. A node takes the time of its arithmetic or of its memory traffic, whichever
 * is longer. ONX_E_NOT_FOUND if there is no such configuration, ONX_E_MISUSE if it has more devices than `count`. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_predict(onx_ctx *cx, const onx_doc *doc,
                                                    const onx_shard_predict_options *options,
                                                    onx_shard_forecast *devices);

/* A mesh of devices that was tried. */
typedef struct onx_shard_trial {
    uint32_t pipeline, data, tensor;
    bool fits;             /* the part of each device fits into its memory */
    double seconds;        /* time until the last device is done */
    uint64_t memory_bytes; /* memory of the device that needs the most: weights and values */
} onx_shard_trial;

typedef struct onx_shard_choose_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t devices;
    uint64_t memory;              /* memory of a device in bytes; 0: unlimited */
    const onx_infer_fixed *fixed; /* sizes of symbolic dimensions */
    uint32_t fixed_count;
    uint32_t batch; /* size of symbols that are the first axis of an input, other symbols are 1; 0: the number of
                     * devices */
    void (*tried)(void *user, const onx_shard_trial *trial); /* may be NULL */
    void *user;
    onx_shard_machine machine;
} onx_shard_choose_options;

/* Tries all meshes of `devices` devices: annotates each as onx_shard_annotate does, predicts it with onx_shard_predict,
 * and returns the fastest one that fits into memory. ONX_E_UNSUPPORTED if there is none. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_choose(onx_ctx *cx, const onx_doc *doc,
                                                   const onx_shard_choose_options *options, onx_shard_trial *out);

/* Measures the properties that predictions use: products and copies on one thread, and messages between the first two
 * ranks of `comm` (all of its ranks call this), or between two threads of this process where it is NULL. The first rank
 * gets the figures. `comm` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_shard_measure(onx_ctx *cx, const onx_comm *comm, onx_shard_machine *out);

#ifdef __cplusplus
}
#endif
#endif
