/* grad.h - gradients: adds the derivatives of a value to a model as nodes of the standard operators. See
 * docs/notes/gradients.md. */
#ifndef ONX_GRAD_H
#define ONX_GRAD_H

#include <onx/ir.h>
#include <onx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ONX_GRAD_CHECKPOINT_SQRT = -1 };

typedef struct onx_grad_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    onx_str of;           /* the value to differentiate (the sum of its elements, if it has several); empty: none,
                           * only nodes Gradient are replaced */
    const onx_str *wrt;   /* values to differentiate with respect to: inputs, initializers and node outputs of the
                           * main graph */
    uint32_t wrt_count;
    bool only; /* make the gradients the only outputs and remove nodes that they do not need */
    /* Recomputation (checkpointing), which trades time for memory. The nodes are divided into segments. Only values
     * that cross from one segment to another are kept for the gradients; copies of the nodes compute the others again,
     * segment by segment. The cuts minimise the sum of the values kept and of the largest segment, by the sizes that
     * are known. ONX_GRAD_CHECKPOINT_SQRT: as many segments as that takes, for equal layers about the square root of
     * their number. Above 0: at most that many segments. 0: as the model's property onx.checkpoint says ("sqrt" or a
     * number); without that property all values are kept. */
    int32_t checkpoint;
} onx_grad_options;

/* Adds the gradients of `of` to the main graph as outputs, in the order of `wrt`. Each is named <value>_grad (with a
 * number appended where that name is taken) and has the type and shape of the value; it is zeros where `of` does not
 * depend on the value. Functions are inlined, and a model with an older version of the default domain is converted to
 * version 18 first. ONX_E_UNSUPPORTED names the operators without a gradient; ONX_E_NOT_FOUND names a value that the
 * graph does not have. The model may be partly changed after a failure. */
ONX_API ONX_OWN_THREAD onx_status onx_grad(onx_ctx *cx, onx_doc *doc, const onx_grad_options *options);

/* Whether onx knows the gradient of the operator. onx_grad may still refuse a particular node. Operators whose
 * derivative is zero count as known. */
ONX_API ONX_ANY_THREAD bool onx_grad_knows(const onx_op *op);

/* Replaces the nodes Gradient of ai.onnx.preview.training by nodes of the standard operators, in all graphs of the
 * model. A model without such nodes stays unchanged. Sessions do this themselves. Otherwise as onx_grad. */
ONX_API ONX_OWN_THREAD onx_status onx_grad_expand(onx_ctx *cx, onx_doc *doc);

#ifdef __cplusplus
}
#endif
#endif
