/* transform_trainable.h - between the parts that give a model training information. See docs/notes/training.md. */
#ifndef ONXI_TRANSFORM_TRAINABLE_H
#define ONXI_TRANSFORM_TRAINABLE_H

#include <onx/trainable.h>

#include "transform/transform_grad.h"

#define ONXI_TRAINING_DOMAIN "ai.onnx.preview.training"

typedef enum onxi_label { ONXI_LABEL_CLASS, ONXI_LABEL_LIKE, ONXI_LABEL_NONE } onxi_label;

typedef struct onxi_loss {
    onx_train_choice choice;
    onxi_label label;
    onxi_op_id made_by;  /* an output of that operator: */
    const char *instead; /* this loss takes its input; NULL: none does */
    const char *text, *metric, *metric_text;
} onxi_loss;

enum { ONXI_OPTIMIZER_STATES_MAX = 2 };

typedef struct onxi_optimizer {
    onx_train_choice choice;
    uint32_t states;
    const char *head, *text, *decayed;
} onxi_optimizer;

/* What a weight is to the node that takes it; it says how it is drawn. */
typedef enum onxi_role {
    ONXI_ROLE_NONE, /* an initializer that no row knows: keeps the values that it has */
    ONXI_ROLE_KERNEL,
    ONXI_ROLE_GATES,
    ONXI_ROLE_TABLE,
    ONXI_ROLE_BIAS,
    ONXI_ROLE_SCALE,
    ONXI_ROLE_SLOPE,
    ONXI_ROLE_MEAN, /* averages, which steps of training update and gradients do not */
    ONXI_ROLE_VARIANCE,
    ONXI_ROLE_OFFSET, /* of Add: a bias, or a table of positions */
    ONXI_ROLE_FACTOR  /* of Mul */
} onxi_role;

enum { ONXI_ADAPTER_DOWN, ONXI_ADAPTER_UP };

typedef struct onxi_weight {
    onx_tensor *tensor; /* of the main graph */
    onxi_role role;
    double fan_in, fan_out; /* of a kernel: how many numbers are summed, and how many sums take each */
    bool rectified;         /* half of what it makes becomes 0 */
    bool trained;
    onx_bytes gradient;
} onxi_weight;

typedef struct onxi_trainable {
    onx_ctx *cx;
    onx_doc *doc;
    onx_model *model;
    onx_graph *graph; /* the main one */
    onx_arena *arena, *scratch;
    const onx_trainable_options *options;
    const onxi_loss *loss;
    const onxi_optimizer *optimizer;
    onxi_names names;
    onxi_binder binder; /* of the upgraded model, without functions */
    onxi_values values;
    onxi_scope scope;
    onx_index *index;
    onxi_dict texts; /* that were parsed: indexes of functions */
    const onx_function **functions;
    uint32_t function_room;
    const onx_attribute **numbers; /* what texts refer to by @name */
    uint32_t number_count, number_room;
    bool *needed; /* per node of the main graph: the output needs it */
    onx_bytes y;  /* what the loss is of, in the main graph */
    onx_bytes y_in_training;
    onx_bytes label, rate, loss_name, metric_name; /* of both entries */
    onx_value_info *label_info;
    int64_t axis; /* of classes */
    onx_training_info *step;
    onx_graph *algorithm, *start;
    onxi_weight *weights;
    uint32_t weight_count, weight_room;
    bool *used;         /* per pattern of --train, then of --freeze: it names something */
    onxi_dict adapters; /* names of their weights: ONXI_ADAPTER_DOWN or _UP */
} onxi_trainable;

/* ---- what nodes are ---- */

/* What a node of the model names; NULL: out of memory, which `values` keeps for the end. */
const onxi_bound *onxi_trainable_bound(onxi_trainable *t, const onx_node *node);
onxi_op_id onxi_trainable_op(onxi_trainable *t, const onx_node *node); /* NONE where it is no built-in operator */

/* ---- nodes of texts (transform_trainable_text.c) ---- */

/* Numbers that texts may refer to; one of that name before is forgotten. */
onx_status onxi_trainable_float(onxi_trainable *t, onx_str name, double value);
onx_status onxi_trainable_int(onxi_trainable *t, const char *name, int64_t value);
onx_status onxi_trainable_ints(onxi_trainable *t, const char *name, const int64_t *values, uint32_t count);
onx_status onxi_trainable_tensor(onxi_trainable *t, const char *name, onx_tensor *tensor);

typedef struct onxi_text_nodes {
    const char *head, *text; /* "(x, g) => (y)", "y = Add (x, g)" */
    const onx_bytes *in, *out;
    uint32_t in_count, out_count;
    onx_str base; /* names of what is made between begin with it */
} onxi_text_nodes;

/* Appends the nodes of a text to a graph. */
onx_status onxi_trainable_put(onxi_trainable *t, onx_graph *graph, const onxi_text_nodes *nodes);
onx_status onxi_trainable_add_node(onxi_trainable *t, onx_graph *graph, onx_node *node);
/* An output with the type, which may be NULL. */
onx_status onxi_trainable_output(onxi_trainable *t, onx_graph *graph, onx_bytes name, const onx_type *type);
/* A tensor of one element with a name, among the initializers of a graph. */
onx_status onxi_trainable_scalar(onxi_trainable *t, onx_graph *graph, onx_bytes name, onx_dtype dtype, double value);
/* What takes the place of a variable after a step, or at the start. */
onx_status onxi_trainable_update(onxi_trainable *t, onx_bytes variable, onx_bytes value);
onx_status onxi_trainable_begin(onxi_trainable *t, onx_bytes variable, onx_bytes value);
onx_type *onxi_trainable_type_of(onxi_trainable *t, const onx_tensor *tensor);

/* ---- parts of the work ---- */

/* Constants of the main graph that may be weights become initializers; makes t->index. */
onx_status onxi_trainable_survey(onxi_trainable *t);
/* Sets t->needed. */
onx_status onxi_trainable_need(onxi_trainable *t);
/* Copies what works in another way while training into the algorithm, and what depends on it
 * (transform_trainable_mode.c).
 */
onx_status onxi_trainable_mode(onxi_trainable *t);
/* What is quantised (transform_trainable_quantized.c). Weights in integers become numbers before QuantizeLinear. */
onx_status onxi_trainable_unpack(onxi_trainable *t);
/* Is it QuantizeLinear whose result is only dequantized; DequantizeLinear that does so? */
bool onxi_trainable_rounds(onxi_trainable *t, const onx_node *node);
bool onxi_trainable_restores(onxi_trainable *t, const onx_node *node);
/* What stands for a copy of such a node in the algorithm, so that gradients pass. */
onx_status onxi_trainable_round(onxi_trainable *t, const onx_node *node, const onx_node *copy);
onx_status onxi_trainable_restore(onxi_trainable *t, const onx_node *copy);
/* Does a pattern of what is trained, or frozen, fit the name? Notes that it does. */
bool onxi_trainable_named(onxi_trainable *t, onx_str name);
bool onxi_trainable_frozen(onxi_trainable *t, onx_str name);
/* Finds the weights, which of them are trained, and how they begin (transform_trainable_weights.c). */
onx_status onxi_trainable_weights(onxi_trainable *t);
onx_status onxi_trainable_draw(onxi_trainable *t);
/* Loss, gradients and updates (transform_trainable_step.c). */
onx_status onxi_trainable_choose(onxi_trainable *t);
onx_status onxi_trainable_label(onxi_trainable *t);
onx_status onxi_trainable_loss(onxi_trainable *t, onx_graph *graph, onx_bytes y);
onx_status onxi_trainable_step(onxi_trainable *t);
/* Adapters beside products by weights (transform_trainable_adapters.c). */
onx_status onxi_trainable_adapt(onxi_trainable *t);

#endif
