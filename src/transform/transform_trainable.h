/* transform_trainable.h - shared by the files that add training information to a model. See docs/notes/training.md. */
#ifndef ONXI_TRANSFORM_TRAINABLE_H
#define ONXI_TRANSFORM_TRAINABLE_H

#include <onx/trainable.h>

#include "transform/transform_grad.h"

#define ONXI_TRAINING_DOMAIN "ai.onnx.preview.training"

typedef enum onxi_label { ONXI_LABEL_CLASS, ONXI_LABEL_LIKE, ONXI_LABEL_NONE } onxi_label;

typedef struct onxi_loss {
    onx_train_choice choice;
    onxi_label label;
    onxi_op_id made_by;  /* if this operator computes the output, */
    const char *instead; /* this loss is applied to the operator's input instead; NULL: none */
    const char *text, *metric, *metric_text;
} onxi_loss;

enum { ONXI_OPTIMIZER_STATES_MAX = 2 };

typedef struct onxi_optimizer {
    onx_train_choice choice;
    const char *shapes, *shared;
    uint32_t rank; /* of the largest weight that `matrix` is for */
    const char *matrix, *text, *decay;
} onxi_optimizer;

/* The role of a weight in the node that reads it; it determines the initialization. */
typedef enum onxi_role {
    ONXI_ROLE_NONE, /* an initializer that no row covers: keeps its values */
    ONXI_ROLE_KERNEL,
    ONXI_ROLE_GATES,
    ONXI_ROLE_TABLE,
    ONXI_ROLE_BIAS,
    ONXI_ROLE_SCALE,
    ONXI_ROLE_SLOPE,
    ONXI_ROLE_MEAN, /* running averages, which training steps update without gradients */
    ONXI_ROLE_VARIANCE,
    ONXI_ROLE_OFFSET, /* of Add: a bias, or position embeddings */
    ONXI_ROLE_FACTOR  /* of Mul */
} onxi_role;

enum { ONXI_ADAPTER_DOWN, ONXI_ADAPTER_UP };

/* What the file says of an initializer. */
typedef enum onxi_origin {
    ONXI_ORIGIN_UNKNOWN,   /* nothing */
    ONXI_ORIGIN_STATE,     /* a parameter or a buffer */
    ONXI_ORIGIN_PARAMETER, /* a parameter, or computed from one */
    ONXI_ORIGIN_BUFFER,
    ONXI_ORIGIN_MADE /* the file lists all parameters, and this is none */
} onxi_origin;

/* Why an initializer is not trained. */
typedef enum onxi_weight_left {
    ONXI_LEFT_NOT, /* it is trained */
#define LEFT(name, guessed, text) ONXI_LEFT_##name,
#include "transform/transform_trainable.def"
} onxi_weight_left;

typedef struct onxi_weight {
    onx_tensor *tensor; /* in the main graph */
    onxi_role role;
    double fan_in, fan_out; /* of a kernel: number of summed elements, and number of sums that each element is part
                             * of */
    bool rectified;         /* half of the results are set to 0 (ReLU) */
    bool elementwise;       /* the role is that of any constant that is added or multiplied */
    bool trained, average;  /* average: of BatchNormalization */
    onxi_weight_left left;
    onx_bytes gradient;
} onxi_weight;

typedef struct onxi_trainable {
    onx_ctx *cx;
    onx_doc *doc;
    onx_model *model;
    onx_graph *graph; /* the main graph */
    onx_arena *arena, *scratch;
    const onx_trainable_options *options;
    const onxi_loss *loss;
    const onxi_optimizer *optimizer;
    onxi_names names;
    onxi_binder binder; /* for the upgraded model, without functions */
    onxi_values values;
    onxi_scope scope;
    onx_index *index;
    onxi_dict texts; /* parsed texts: indexes of functions */
    const onx_function **functions;
    uint32_t function_room;
    const onx_attribute **numbers; /* values that texts refer to as @name */
    uint32_t number_count, number_room;
    bool *needed;       /* per node of the main graph: the output needs it */
    onxi_dict reached;  /* values that a gradient of the output reaches */
    onxi_dict data;     /* inputs, and values that elementwise operators compute from them and constants */
    onxi_dict origins;  /* names of the source, and initializers: onxi_origin */
    float *sample;      /* memory for elements of a weight that is looked at */
    bool torch, marked; /* PyTorch made the file; it lists its parameters */
    onx_bytes y;        /* the value in the main graph that the loss is computed from */
    onx_bytes y_in_training;
    onx_bytes label, rate, loss_name, metric_name; /* in both entries */
    onx_value_info *label_info;
    int64_t axis; /* axis of classes */
    onx_training_info *step;
    onx_graph *algorithm, *start;
    onxi_weight *weights;
    uint32_t weight_count, weight_room;
    bool *used;         /* per pattern of `train`, `freeze`, `tie`, `untie`: it matched a name */
    onxi_dict adapters; /* names of adapter weights: ONXI_ADAPTER_DOWN or _UP */
} onxi_trainable;

/* ---- operators of nodes ---- */

/* The operator that a node of the model names; NULL: out of memory, which `values` reports at the end. */
const onxi_bound *onxi_trainable_bound(onxi_trainable *t, const onx_node *node);
onxi_op_id onxi_trainable_op(onxi_trainable *t, const onx_node *node); /* NONE if it is not a built-in operator */

/* For arrays of ids. */
#define ONXI_IS_ONE_OF(op, list) onxi_op_is_one_of(op, list, sizeof(list) / sizeof *(list))
static inline bool onxi_op_is_one_of(onxi_op_id op, const onxi_op_id *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (op == list[i])
            return true;
    return false;
}

/* ---- nodes from texts (transform_trainable_text.c) ---- */

/* Defines a value for texts, replacing an earlier one of that name. */
onx_status onxi_trainable_float(onxi_trainable *t, onx_str name, double value);
onx_status onxi_trainable_int(onxi_trainable *t, const char *name, int64_t value);
onx_status onxi_trainable_ints(onxi_trainable *t, const char *name, const int64_t *values, uint32_t count);
onx_status onxi_trainable_tensor(onxi_trainable *t, const char *name, onx_tensor *tensor);

typedef struct onxi_text_nodes {
    const char *head, *text; /* "(x, g) => (y)", "y = Add (x, g)" */
    const onx_bytes *in, *out;
    uint32_t in_count, out_count;
    onx_str base; /* prefix for the names of inner values */
} onxi_text_nodes;

/* Appends the nodes of a text to a graph. */
onx_status onxi_trainable_put(onxi_trainable *t, onx_graph *graph, const onxi_text_nodes *nodes);
onx_status onxi_trainable_add_node(onxi_trainable *t, onx_graph *graph, onx_node *node);
/* Adds an output with the type, which may be NULL. */
onx_status onxi_trainable_output(onxi_trainable *t, onx_graph *graph, onx_bytes name, const onx_type *type);
/* Adds a named tensor of one element to the initializers of a graph. */
onx_status onxi_trainable_scalar(onxi_trainable *t, onx_graph *graph, onx_bytes name, onx_dtype dtype, double value);
/* Binds a new value to a variable, after a step or at initialization. */
onx_status onxi_trainable_update(onxi_trainable *t, onx_bytes variable, onx_bytes value);
onx_status onxi_trainable_begin(onxi_trainable *t, onx_bytes variable, onx_bytes value);
onx_type *onxi_trainable_type_of(onxi_trainable *t, const onx_tensor *tensor);

/* ---- parts of the pass ---- */

/* Sets t->needed. */
onx_status onxi_trainable_need(onxi_trainable *t);
/* Copies nodes that behave differently in training into the algorithm, together with those that depend on them
 * (transform_trainable_mode.c). */
onx_status onxi_trainable_mode(onxi_trainable *t);
/* Sets nodes of the main graph that were exported in training mode to inference. t->index is not valid afterwards. */
onx_status onxi_trainable_infer(onxi_trainable *t);
/* Quantized models (transform_trainable_quantized.c). Integer weights are replaced by float weights and
 * QuantizeLinear. */
onx_status onxi_trainable_unpack(onxi_trainable *t);
/* Is it a QuantizeLinear whose result is only dequantized; a DequantizeLinear of such a result? */
bool onxi_trainable_rounds(onxi_trainable *t, const onx_node *node);
bool onxi_trainable_restores(onxi_trainable *t, const onx_node *node);
/* The replacement for a copy of such a node in the algorithm, which lets gradients pass. */
onx_status onxi_trainable_round(onxi_trainable *t, const onx_node *node, const onx_node *copy);
onx_status onxi_trainable_restore(onxi_trainable *t, const onx_node *copy);
/* Does a pattern of the option match the name? Records that it was used. */
bool onxi_trainable_named(onxi_trainable *t, onx_str name);
bool onxi_trainable_frozen(onxi_trainable *t, onx_str name);
bool onxi_trainable_tied(onxi_trainable *t, onx_str name);
bool onxi_trainable_untied(onxi_trainable *t, onx_str name);
/* What exporters write (transform_trainable_origin.c). It is read before the model is converted. */
onx_status onxi_trainable_origins(onxi_trainable *t);
onxi_origin onxi_trainable_origin(const onxi_trainable *t, onx_str name);
/* Is it the name that a parameter or buffer has in the source? */
bool onxi_trainable_is_own_name(const onxi_trainable *t, onx_str name);
/* The module of the source that a node belongs to; all calls of one have the same name. False: the file does not say.
 */
bool onxi_trainable_module(onxi_trainable *t, const onx_node *node, onx_str *out);
/* Which initializers are one weight, and which are several (transform_trainable_ties.c). Builds t->index. */
onx_status onxi_trainable_ties(onxi_trainable *t);
/* The tensor as an initializer of that name. */
onx_status onxi_trainable_lift(onxi_trainable *t, onx_bytes name, const onx_tensor *from);
bool onxi_trainable_is_real(int32_t dtype); /* float or double */
/* The row of the role that input `input` of an operator has; NULL: none. */
typedef enum onxi_layout {
    ONXI_LAYOUT_ANY,
    ONXI_LAYOUT_OUT_IN,
    ONXI_LAYOUT_IN_OUT,
    ONXI_LAYOUT_IN_OUT_WINDOW,
    ONXI_LAYOUT_LAST_OUT_IN
} onxi_layout;
typedef struct onxi_role_row {
    onxi_op_id op;
    uint32_t input;
    onxi_role role;
    onxi_layout layout;
} onxi_role_row;
const onxi_role_row *onxi_trainable_role(onxi_op_id op, uint32_t input);
/* Sets t->reached and t->data (transform_trainable_reach.c). */
onx_status onxi_trainable_reach(onxi_trainable *t);
/* Why a weight that a gradient reaches is evidently a constant; ONXI_LEFT_NOT: it is not. */
onxi_weight_left onxi_trainable_constant(onxi_trainable *t, const onxi_weight *w);
/* Finds the weights, and which of them are trained (transform_trainable_weights.c). */
onx_status onxi_trainable_weights(onxi_trainable *t);
/* Reports them. */
void onxi_trainable_report(const onxi_trainable *t);
/* Adds their initialization (transform_trainable_start.c). */
onx_status onxi_trainable_draw(onxi_trainable *t);
/* Creates loss, gradients and updates (transform_trainable_step.c). */
onx_status onxi_trainable_choose(onxi_trainable *t);
onx_status onxi_trainable_label(onxi_trainable *t);
onx_status onxi_trainable_loss(onxi_trainable *t, onx_graph *graph, onx_bytes y);
onx_status onxi_trainable_step(onxi_trainable *t);
/* Adds adapters beside products with weights (transform_trainable_adapters.c). */
onx_status onxi_trainable_adapt(onxi_trainable *t);

#endif
