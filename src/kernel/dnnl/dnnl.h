/* dnnl.h - what kernels on oneDNN share: primitives with their operands bound, and layouts. */
#ifndef ONXI_KERNEL_DNNL_H
#define ONXI_KERNEL_DNNL_H

#include "kernel/kernel.h"

#ifdef ONX_WITH_DNNL
#include <dnnl.h>

typedef enum onxi_dnnl_source {
    ONXI_DNNL_INPUT,
    ONXI_DNNL_OUTPUT,
    ONXI_DNNL_CONSTANT,
    ONXI_DNNL_WORKSPACE
} onxi_dnnl_source;

typedef struct onxi_dnnl_operand {
    int arg; /* DNNL_ARG_... */
    onxi_dnnl_source source;
    uint32_t index; /* of the input or output */
    const void *data;
    dnnl_memory_desc_t md;
} onxi_dnnl_operand;

/* The params of every kernel on oneDNN. */
typedef struct onxi_dnnl {
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    uint32_t count, room;
    onxi_dnnl_operand *operands;
} onxi_dnnl;

/* Params with an engine; NULL when that cannot be had. `operands` bounds how many will be added. */
onxi_dnnl *onxi_dnnl_new(onx_prepare *p, uint32_t operands);
/* Takes the description over, makes the primitive and adds its scratchpad. Anything that oneDNN refuses declines:
 * what was made is released. */
onx_status onxi_dnnl_finish(onx_prepare *p, onxi_dnnl *d, dnnl_primitive_desc_t desc);
/* Releases and declines. */
onx_status onxi_dnnl_decline(onxi_dnnl *d);
void onxi_dnnl_add(onxi_dnnl *d, int arg, onxi_dnnl_source source, uint32_t index, const void *data,
                   const dnnl_memory_desc_t *md);

/* A memory description of the value as it lies, or of row-major float dims. */
bool onxi_dnnl_md_of(const onx_value *v, dnnl_memory_desc_t *md);
bool onxi_dnnl_md_plain(uint32_t rank, const int64_t *dims, dnnl_memory_desc_t *md);
bool onxi_dnnl_md_any(uint32_t rank, const int64_t *dims, dnnl_memory_desc_t *md);
/* The layout that the description stands for; NULL in *out for row-major. False when out of memory. */
bool onxi_dnnl_layout(onx_prepare *p, const dnnl_memory_desc_t *md, const onx_layout **out);
/* A row-major constant input in another layout, made once per session. */
onx_status onxi_dnnl_pack(onx_prepare *p, uint32_t input, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                          const void **out);

/* Attributes with the post-operations that oneDNN can do; their operands are added by
 * onxi_dnnl_add_post_ops once the layout of the result is known. */
typedef struct onxi_dnnl_post {
    dnnl_primitive_attr_t attr;
    uint32_t post_ops_done;
    int32_t sum;    /* input that the result is added to in place, -1: none */
    int32_t binary; /* input that is added, -1: none */
    uint32_t binary_at;
} onxi_dnnl_post;
/* `dst` is the layout of the result, NULL while it is not known: then no binary post-operation is taken. */
bool onxi_dnnl_post_make(onx_prepare *p, const dnnl_memory_desc_t *dst, onxi_dnnl_post *post);
void onxi_dnnl_post_apply(onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_post *post, const onx_layout *layout,
                          const dnnl_memory_desc_t *dst);

onx_status onxi_dnnl_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_dnnl_bind(onx_work *work);
void onxi_dnnl_unbind(void *state);
void onxi_dnnl_release(void *params);

#define ONXI_DNNL_ROW(name, version, how, prepare_)                                                                    \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_F32, .preference = 10, .flags = ONX_KERNEL_LAYOUTS | (how),       \
        .variant = "dnnl", .prepare = prepare_, .run = onxi_dnnl_run, .bind = onxi_dnnl_bind,                          \
        .unbind = onxi_dnnl_unbind, .release = onxi_dnnl_release                                                       \
    }

#endif
#endif
