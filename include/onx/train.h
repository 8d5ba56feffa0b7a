/* train.h - training: executes the training information of a model (TrainingInfoProto). See docs/notes/training.md. */
#ifndef ONX_TRAIN_H
#define ONX_TRAIN_H

#include <onx/run.h>
#include <onx/shard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The variables of a model in training: initializers of the main graph and of algorithm graphs that a binding names.
 * They start with the values of their initializers. Only initialisation and steps change them. */
typedef struct onx_trainer onx_trainer;

/* Checks the model (ONX_E_INVALID) and prepares a step for each entry of training_info; Gradient nodes are replaced.
 * ONX_E_NOT_FOUND for a model without entries. The document must outlive the trainer; only onx_trainer_store changes
 * it. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options,
                                                  onx_trainer **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_trainer_free(onx_trainer *trainer);
/* Sets the run options for all further runs (initialisation, steps, evaluation): time and iteration limits for each
 * run, and cancelling. A step that is cancelled changes no variable. `options` may be NULL: no limits. Everything that
 * the options point to must live as long as they are in use. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_run(onx_trainer *trainer, const onx_run_options *options);
/* Number of entries of the training information. */
ONX_API ONX_ANY_THREAD uint32_t onx_trainer_count(const onx_trainer *trainer);
/* Runs the initialisation graphs of all entries, in the order of the list, each once, and assigns the bound results to
 * the variables. If one fails, the variables that earlier ones have set keep their new values. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_initialize(onx_trainer *trainer);
/* Whether initialisation changes anything. */
ONX_API ONX_ANY_THREAD bool onx_trainer_has_initialization(const onx_trainer *trainer);

/* One step of an entry (any entry, in any order). The algorithm runs after the main graph, on the inputs of both
 * (matched by name) and on the variables. Then all variables take their bound values at once. `outputs` are outputs of
 * either graph, as in onx_session_run_named. A step that fails changes no variable: ONX_E_NOT_FOUND for an entry, input
 * or output that does not exist, ONX_E_MISUSE for a variable among the inputs, ONX_E_INVALID for a value whose type or
 * shape differs from that of its variable. After the first step of given shapes the trainer allocates nothing. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_step(onx_trainer *trainer, uint32_t entry, const onx_named_value *inputs,
                                                   uint32_t input_count, onx_named_value *outputs,
                                                   uint32_t output_count);
/* The same without the update: variables do not change. For the loss on data that is not used for training; it costs as
 * much as a step. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_evaluate(onx_trainer *trainer, uint32_t entry,
                                                       const onx_named_value *inputs, uint32_t input_count,
                                                       onx_named_value *outputs, uint32_t output_count);

/* ---- data parallelism: workers that each process a part of a batch ---- */

/* Combines the values of all workers, so that each processes a part of a batch. */
typedef struct onx_train_reduction {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    void *user;
    /* Replaces each value by the combination of that value over all workers, such as the mean. In each step and
     * evaluation it is called once after each node Gradient of the algorithm, in their order, with the gradients,
     * before anything reads them; and once at the end with the outputs, bound or not, that depend on inputs in another
     * way: the loss, averages of the data. All workers pass the same values in the same order. On failure it records a
     * diagnostic in `cx`. */
    onx_status (*reduce)(void *user, onx_ctx *cx, onx_value *const *values, uint32_t count);
} onx_train_reduction;

/* Takes effect at once; the steps are prepared again. `reduction` may be NULL: none. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_reduction(onx_trainer *trainer, const onx_train_reduction *reduction);

typedef struct onx_train_ranks {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_comm *comm; /* how long to wait for another rank, in nanoseconds; 0: one minute */
    uint64_t timeout_ns;  /* how long to wait for another rank, nanoseconds; 0: a minute */
} onx_train_ranks;

/* Trains as one rank of many (data parallelism). Each reduced value becomes the weighted mean over the ranks,
 * accumulated in rank order, so that the variables of all ranks stay bit-identical. The variables start with the values
 * of rank 0, now and after each initialisation. For a loss that is a mean over samples, ranks that share a batch give
 * the result of one rank with the whole batch, within rounding; BatchNormalization uses the mean and variance of its
 * own part. Values that are not floats stay separate for each rank. All ranks call the same functions of their trainers
 * in the same order; if a step fails on one rank, it fails on all. `ranks` may be NULL: a single rank again. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_ranks(onx_trainer *trainer, const onx_train_ranks *ranks);
/* Sets the weight of this rank's further steps: their number of samples (1 initially). With 0 a rank takes part and
 * contributes nothing. ONX_E_MISUSE for a weight that is negative or not finite. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_weight(onx_trainer *trainer, double weight);

/* The variables, in the order in which bindings first name them; NULL past the last one. The value remains valid and
 * unchanged until the next step or initialisation. An entry's own variables are those of its algorithm graph. */
typedef struct onx_trainer_variable {
    onx_str name;
    const onx_value *value;
    bool in_main;   /* otherwise: of the algorithm graph of this entry */
    uint32_t entry; /* else of the algorithm graph of this entry */
} onx_trainer_variable;
ONX_API ONX_ANY_THREAD uint32_t onx_trainer_variable_count(const onx_trainer *trainer);
/* False past the last one. */
ONX_API ONX_ANY_THREAD bool onx_trainer_variable_get(const onx_trainer *trainer, uint32_t index,
                                                     onx_trainer_variable *out);
/* Writes the variables into the initializers of the document, bit by bit. The saved document is both the trained model
 * and a checkpoint: a trainer made from it continues exactly. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_store(onx_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
