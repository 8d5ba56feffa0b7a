/* trainable.h - training information for a model that has none: loss, gradients, optimiser, initialisers. See
 * docs/notes/training.md. */
#ifndef ONX_TRAINABLE_H
#define ONX_TRAINABLE_H

#include <onx/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loss or an optimiser that models can be trained with. */
typedef struct onx_train_choice {
    const char *name;    /* "cross-entropy" */
    const char *summary; /* what it is, one line */
    const char *numbers; /* what it takes, with the values in force where nothing is said: "beta1=0.9 beta2=0.999" */
    double rate;         /* of an optimiser: its learning rate where nothing is said */
} onx_train_choice;

/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_train_choice *onx_train_loss_get(uint32_t index);
ONX_API ONX_ANY_THREAD const onx_train_choice *onx_train_optimizer_get(uint32_t index);

typedef struct onx_named_number {
    onx_str name;
    double value;
} onx_named_number;

/* Patterns over names of initializers: * stands for any text, ? for one byte. One that fits nothing is
 * ONX_E_NOT_FOUND. */
typedef struct onx_trainable_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    bool keep;                                             /* no initialisers: training continues from the weights */
    bool axis_given;                                       /* is `axis` set? */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    onx_str loss, optimizer; /* names of rows; empty: cross-entropy, adam */
    onx_str output;          /* of the model, that the loss is of; empty: the first */
    onx_str label;           /* the input that is wanted there; empty: "label" */
    onx_str batch;           /* a number or symbol: the batch size of the model becomes that; empty: it stays */
    const onx_str *train;    /* weights that are trained, also inputs, which become weights; none: all weights */
    const onx_str *freeze;   /* not these */
    uint32_t train_count, freeze_count;
    const onx_named_number *number; /* numbers of the loss and the optimiser */
    uint32_t number_count;
    uint32_t seed;       /* of initialisers */
    double rate;         /* learning rate; 0: that of the row */
    double weight_decay; /* of weights, not of biases and scales; 0: none */
    double clip_norm;    /* gradients together are no longer than this; 0: as they are */
    int64_t axis;        /* of classes; else that of the Softmax, or the last of 2 or 3 axes, or axis 1 of more */
    uint32_t lora_rank;  /* above 0: adapters of this rank beside products by frozen weights; these are trained */
    double lora_scale;   /* what adapters are multiplied by; 0: 1 */
    bool quantized;      /* weights in integers are trained as inputs of QuantizeLinear, and kept to begin with */
    int32_t checkpoint;  /* that of onx_grad_options (onx/grad.h); becomes the model's property onx.checkpoint */
} onx_trainable_options;

/* Gives a model training information: entry 0 is a step of training, entry 1 the loss without learning. The step reads
 * the label and, as an input that may be left out, the learning rate `rate`, and gives `loss` (and `accuracy` where it
 * has a meaning). BatchNormalization and Dropout work in it as they do while training, and averages are updated; the
 * main graph stays as it is for inference. QuantizeLinear whose result DequantizeLinear only turns back rounds in the
 * step so that gradients pass (straight-through). Without `keep`, an initialisation graph draws weights as their
 * operators want them. Functions are inlined, and a model of an older version of the default domain is taken to
 * version 18. ONX_E_NOT_FOUND for names that are not there, ONX_E_INVALID where the model has training information,
 * ONX_E_UNSUPPORTED where there is nothing to train; the model may be partly changed then. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_trainable(onx_ctx *cx, onx_doc *doc, const onx_trainable_options *options);

/* Adds the adapters of `lora_rank` to the weights that they are beside, and removes them and training information.
 * *count is how many there were. `count` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_merge_adapters(onx_ctx *cx, onx_doc *doc, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
