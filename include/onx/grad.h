/* grad.h - gradients: what the derivatives of a value are, as nodes of the standard operators. See
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
    onx_str of;           /* the value that is derived; the sum of its elements, if it has several; empty: none is, and
                           * nodes Gradient are replaced only */
    const onx_str *wrt;   /* values of the main graph: inputs, initializers, results of nodes */
    uint32_t wrt_count;
    bool only; /* the gradients become the only outputs, and nodes that they do not need are removed */
    /* Recomputation, which trades time for memory: what is derived is cut into segments, of which only what crosses
     * from one to another is kept for the gradients; the rest is computed again, segment by segment, by copies of the
     * nodes. The cuts are where what is kept and the largest segment together take the least memory, by the sizes that
     * are known. ONX_GRAD_CHECKPOINT_SQRT: as many as that takes, which for equal layers is about the root of their
     * number; above 0: at most so many segments; 0: what the model's property onx.checkpoint says ("sqrt" or a number),
     * else everything is kept. */
    int32_t checkpoint;
} onx_grad_options;

/* Adds the gradients of `of` to the main graph as outputs, which are called <value>_grad (followed by a number where
 * that name is taken), in the order of `wrt`, of the type and shape of the value; zeros where `of` does not depend on
 * it. Functions are inlined, and a model of an older version of the default domain is taken to version 18 first. What
 * operators have no gradient is named as ONX_E_UNSUPPORTED, and a name that the graph does not have is ONX_E_NOT_FOUND;
 * the model may be partly changed then. */
ONX_API ONX_OWN_THREAD onx_status onx_grad(onx_ctx *cx, onx_doc *doc, const onx_grad_options *options);

/* Is it known how to derive nodes of the operator, whatever onx_grad then has to say of one of them? Those whose
 * derivative is zero count. */
ONX_API ONX_ANY_THREAD bool onx_grad_knows(const onx_op *op);

/* Puts nodes of the standard operators in place of the nodes Gradient of ai.onnx.preview.training, in all graphs of the
 * model; those of a model without any are left alone. Sessions do so by themselves. As onx_grad for the rest. */
ONX_API ONX_OWN_THREAD onx_status onx_grad_expand(onx_ctx *cx, onx_doc *doc);

#ifdef __cplusplus
}
#endif
#endif
