/* train.h - training: the training information of a model (TrainingInfoProto) executed. See docs/notes/training.md. */
#ifndef ONX_TRAIN_H
#define ONX_TRAIN_H

#include <onx/run.h>
#include <onx/shard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The variables of a model in training: initializers of the main graph and of algorithm graphs that a binding names.
 * They begin with the values of their initializers; initialisation and steps change them, and nothing else does. */
typedef struct onx_trainer onx_trainer;

/* Checks the model (ONX_E_INVALID) and prepares a step for each entry of training_info; Gradient nodes are replaced.
 * ONX_E_NOT_FOUND for a model without any entry. The document must outlive the trainer and is changed by
 * onx_trainer_store alone. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options,
                                                  onx_trainer **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_trainer_free(onx_trainer *trainer);
/* How each run of a graph goes from now on, of initialisation, steps and evaluation: limits of time and of iterations
 * for each, and who may end it. A step that is ended changes no variable. `options` may be NULL: without limits.
 * What the options point to lives as long as they are in force. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_run(onx_trainer *trainer, const onx_run_options *options);
/* How many entries the training information has. */
ONX_API ONX_ANY_THREAD uint32_t onx_trainer_count(const onx_trainer *trainer);
/* Runs the initialisation graphs of all entries in the order of the list, each once, and gives variables what is bound
 * to them. When one fails the variables that earlier ones have set stay set. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_initialize(onx_trainer *trainer);
/* Whether initialisation changes anything. */
ONX_API ONX_ANY_THREAD bool onx_trainer_has_initialization(const onx_trainer *trainer);

/* One step of an entry (any of them, in any order): its algorithm runs after the main graph on the inputs of both, by
 * name, and on the variables, which then take the values that are bound to them, all at once. `outputs` are outputs of
 * either graph as in onx_session_run_named. A step that fails changes no variable: ONX_E_NOT_FOUND for an entry, input
 * or output that is not there, ONX_E_MISUSE for a variable among the inputs, ONX_E_INVALID for a value of another type
 * or shape than its variable. After the first step of given shapes the trainer allocates nothing. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_step(onx_trainer *trainer, uint32_t entry, const onx_named_value *inputs,
                                                   uint32_t input_count, onx_named_value *outputs,
                                                   uint32_t output_count);
/* The same without taking what is bound: variables stay as they are. For the loss over data that is not learned from;
 * it costs as much as a step. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_evaluate(onx_trainer *trainer, uint32_t entry,
                                                       const onx_named_value *inputs, uint32_t input_count,
                                                       onx_named_value *outputs, uint32_t output_count);

/* ---- steps of many as one ---- */

/* What combines the steps of many, so that each learns from a part of a batch. */
typedef struct onx_train_reduction {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    void *user;
    /* Puts into each value what the values of all come to, such as their mean. It is called in each step and evaluation
     * once after each node Gradient of the algorithm, in their order, with the gradients, before anything reads them,
     * and at the end with the outputs, bound or not, that depend on inputs in another way: the loss, averages of the
     * data. All have the same values in the same order. Where it fails it says so in `cx`. */
    onx_status (*reduce)(void *user, onx_ctx *cx, onx_value *const *values, uint32_t count);
} onx_train_reduction;

/* From now on; the steps are prepared anew. `reduction` may be NULL: none. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_reduction(onx_trainer *trainer, const onx_train_reduction *reduction);

typedef struct onx_train_ranks {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_comm *comm; /* copied */
    uint64_t timeout_ns;  /* how long to wait for another rank, nanoseconds; 0: a minute */
} onx_train_ranks;

/* Trains as one rank of many (data parallel): what is reduced becomes the mean over ranks by their weights, added up in
 * the order of ranks, so that the variables of all stay the same to the bit; they begin with those of rank 0, now and
 * after each initialisation. For a loss that is a mean over samples, ranks that share a batch go as one that has the
 * whole of it, to rounding; BatchNormalization has the mean and variance of its own part. Numbers that are no floats
 * are each rank's own. All ranks call the same functions of their trainers in the same order; where a step of one
 * fails, so do those of the others. `ranks` may be NULL: alone again. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_ranks(onx_trainer *trainer, const onx_train_ranks *ranks);
/* What the steps of this rank weigh from now on: how many samples they have (1 to begin with). With 0 a rank takes part
 * and adds nothing. ONX_E_MISUSE below 0 or not finite. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_set_weight(onx_trainer *trainer, double weight);

/* The variables, in the order in which bindings first name them; NULL past the last one. The value lives, and holds
 * what it holds, until the next step or initialisation. An entry's own variables are those of its algorithm graph. */
typedef struct onx_trainer_variable {
    onx_str name;
    const onx_value *value;
    bool in_main;   /* an initializer of the main graph */
    uint32_t entry; /* else of the algorithm graph of this entry */
} onx_trainer_variable;
ONX_API ONX_ANY_THREAD uint32_t onx_trainer_variable_count(const onx_trainer *trainer);
/* False past the last one. */
ONX_API ONX_ANY_THREAD bool onx_trainer_variable_get(const onx_trainer *trainer, uint32_t index,
                                                     onx_trainer_variable *out);
/* Writes the variables into the initializers of the document, bit by bit: saved then, it is both the trained model and
 * a checkpoint that a trainer made of it resumes from exactly. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_store(onx_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
