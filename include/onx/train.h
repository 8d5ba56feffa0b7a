/* train.h - training: the training information of a model (TrainingInfoProto) executed. See docs/notes/training.md. */
#ifndef ONX_TRAIN_H
#define ONX_TRAIN_H

#include <onx/run.h>

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

/* One step of an entry (any of them, in any order): its algorithm runs behind the main graph on the inputs of both, by
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
 * a checkpoint that a trainer made of it goes on from exactly. */
ONX_API ONX_OWN_THREAD onx_status onx_trainer_store(onx_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
