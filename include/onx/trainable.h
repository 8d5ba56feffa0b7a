/* trainable.h - adds training information to a model: loss, gradients, optimiser, initialisers. See
 * docs/notes/training.md. */
#ifndef ONX_TRAINABLE_H
#define ONX_TRAINABLE_H

#include <onx/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loss or an optimiser. */
typedef struct onx_train_choice {
    const char *name;    /* "cross-entropy" */
    const char *summary; /* description, one line */
    const char *numbers; /* its parameters with their defaults: "beta1=0.9 beta2=0.999" */
    double rate;         /* optimiser: default learning rate */
} onx_train_choice;

/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_train_choice *onx_train_loss_get(uint32_t index);
ONX_API ONX_ANY_THREAD const onx_train_choice *onx_train_optimizer_get(uint32_t index);

typedef struct onx_named_number {
    onx_str name;
    double value;
} onx_named_number;

/* An initializer of the model as training treats it; its texts are valid during the call of `weight`. */
typedef struct onx_train_weight {
    onx_str name;
    const char *reason; /* why it is not trained, such as "is a running average"; NULL: it is trained */
    uint64_t count;     /* number of elements */
    uint32_t uses;      /* number of nodes that read it */
    bool gradient;      /* the loss has a gradient with respect to it */
    bool guessed; /* it is not trained because it looks like a constant: neither the options nor the file say so */
} onx_train_weight;

/* Weights whose rate and decay differ. */
typedef struct onx_train_group {
    onx_str pattern;     /* of names of weights; the first group that matches counts */
    double rate;         /* factor of the learning rate; 0: the weights do not change */
    double weight_decay; /* of weights of two dimensions or more, as in the options; negative: that of the options */
} onx_train_group;

/* Patterns over names of initializers: * matches any text, ? one byte. A pattern without a match is ONX_E_NOT_FOUND. */
typedef struct onx_trainable_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    bool keep;                                             /* no initialisers: training continues from the existing
                                                            * weights */
    bool axis_given;                                       /* whether `axis` is set */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    onx_str loss, optimizer; /* names of a loss and an optimiser; empty: cross-entropy, adam */
    onx_str output;          /* the model output that the loss is computed from; empty: the first */
    onx_str label;           /* name of the input for the target values; empty: "label" */
    onx_str batch;           /* a number or symbol for the batch size of the model; empty: unchanged */
    const onx_str *train;  /* weights to train; none: all weights. Inputs that are named exactly become weights, too; in
                            * a  model without weights, those that a pattern matches do, unless it matches all inputs */
    const onx_str *freeze; /* not these */
    uint32_t train_count, freeze_count;
    const onx_named_number *number; /* parameters of the loss and the optimiser */
    uint32_t number_count;
    uint32_t seed;       /* seed of the initialisers */
    double rate;         /* learning rate; 0: the default of the optimiser */
    double weight_decay; /* weight decay of weights, not of biases and scales; 0: none */
    double clip_norm;    /* maximum norm of all gradients together; 0: no clipping */
    int64_t axis;        /* axis of the classes; default: that of the Softmax, or the last of 2 or 3 axes, or axis 1
                          * of more */
    uint32_t lora_rank;  /* above 0: add adapters of this rank beside products with frozen weights, and train those */
    double lora_scale;   /* factor of the adapters; 0: 1 */
    bool quantized;      /* train integer weights as inputs of QuantizeLinear, starting from their present values */
    int32_t checkpoint;  /* as in onx_grad_options (onx/grad.h); stored as the model's property onx.checkpoint */
    bool freeze_statistics; /* BatchNormalization normalizes by its running averages, which do not change */
    bool unbiased;          /* running variances average the unbiased variance, as PyTorch does; otherwise that of the
                             * population, as the standard defines it */
    const onx_str *tie;     /* weights of which the nodes that read them share one, however they use it */
    const onx_str *untie;   /* weights of which each node that reads them has its own */
    uint32_t tie_count, untie_count;
    void (*weight)(void *user, const onx_train_weight *weight); /* called for each weight; may be NULL */
    double clip_value;                                          /* maximum absolute value of each element of a gradient;
                                                                 * 0: no clipping */
    const onx_train_group *group;
    uint32_t group_count;
} onx_trainable_options;

/* Adds training information to a model: entry 0 is a training step, entry 1 the loss without an update. The step reads
 * the label and, as an optional input, the learning rate `rate`, and returns `loss` (and `accuracy` where that is
 * defined). In the step BatchNormalization and Dropout work in training mode, and running averages are updated; the
 * main graph is for inference: nodes that were exported in training mode are set to inference. Gradients pass unchanged
 * through a QuantizeLinear that is followed by DequantizeLinear only (straight-through estimator). Without `keep`, an
 * initialization graph draws random weights as suits their operators. Functions are inlined, and a model with an older
 * version of the default domain is converted to version 18. ONX_E_NOT_FOUND for names that do not exist, ONX_E_INVALID
 * if the model already has training information, ONX_E_UNSUPPORTED if there is nothing to train; the model may be
 * partly changed after a failure. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_trainable(onx_ctx *cx, onx_doc *doc, const onx_trainable_options *options);

/* Merges the adapters of `lora_rank` into the weights that they belong to, and removes the adapters and the training
 * information. *count is the number of adapters. `count` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_merge_adapters(onx_ctx *cx, onx_doc *doc, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
