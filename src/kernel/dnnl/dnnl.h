/* dnnl.h - what kernels on oneDNN share: primitives with their operands bound, layouts, post-operations.
 * ONX_WITH_DNNL is the major version whose headers there are, 2 or 3; version.c is where they differ. */
#ifndef ONXI_KERNEL_DNNL_H
#define ONXI_KERNEL_DNNL_H

#include "kernel/kernel.h"

#ifdef ONX_WITH_DNNL
#include <dnnl.h>

/* ---- the library (version.c) ---- */

#define ONXI_DNNL_COMMON(F)                                                                                            \
    F(dnnl_engine_create)                                                                                              \
    F(dnnl_engine_destroy)                                                                                             \
    F(dnnl_stream_create)                                                                                              \
    F(dnnl_stream_destroy)                                                                                             \
    F(dnnl_stream_wait)                                                                                                \
    F(dnnl_memory_create)                                                                                              \
    F(dnnl_memory_destroy)                                                                                             \
    F(dnnl_memory_set_data_handle)                                                                                     \
    F(dnnl_memory_desc_equal)                                                                                          \
    F(dnnl_memory_desc_get_size)                                                                                       \
    F(dnnl_primitive_attr_create)                                                                                      \
    F(dnnl_primitive_attr_destroy)                                                                                     \
    F(dnnl_primitive_attr_set_scratchpad_mode)                                                                         \
    F(dnnl_primitive_attr_set_post_ops)                                                                                \
    F(dnnl_post_ops_create)                                                                                            \
    F(dnnl_post_ops_destroy)                                                                                           \
    F(dnnl_post_ops_len)                                                                                               \
    F(dnnl_post_ops_append_eltwise)                                                                                    \
    F(dnnl_post_ops_append_sum)                                                                                        \
    F(dnnl_post_ops_append_binary)                                                                                     \
    F(dnnl_primitive_desc_destroy)                                                                                     \
    F(dnnl_primitive_desc_query)                                                                                       \
    F(dnnl_primitive_desc_query_md)                                                                                    \
    F(dnnl_reorder_primitive_desc_create)                                                                              \
    F(dnnl_concat_primitive_desc_create)                                                                               \
    F(dnnl_primitive_create)                                                                                           \
    F(dnnl_primitive_destroy)                                                                                          \
    F(dnnl_primitive_execute)

#if ONX_WITH_DNNL >= 3
#define ONXI_DNNL_FUNCTIONS(F)                                                                                         \
    ONXI_DNNL_COMMON(F)                                                                                                \
    F(dnnl_memory_desc_create_with_strides)                                                                            \
    F(dnnl_memory_desc_create_with_tag)                                                                                \
    F(dnnl_memory_desc_clone)                                                                                          \
    F(dnnl_memory_desc_destroy)                                                                                        \
    F(dnnl_memory_desc_query)                                                                                          \
    F(dnnl_memory_desc_permute_axes)                                                                                   \
    F(dnnl_convolution_forward_primitive_desc_create)                                                                  \
    F(dnnl_convolution_backward_data_primitive_desc_create)                                                            \
    F(dnnl_convolution_backward_weights_primitive_desc_create)                                                         \
    F(dnnl_inner_product_forward_primitive_desc_create)                                                                \
    F(dnnl_matmul_primitive_desc_create)                                                                               \
    F(dnnl_pooling_forward_primitive_desc_create)
typedef const_dnnl_memory_desc_t onxi_dnnl_md;
#else
#define ONXI_DNNL_FUNCTIONS(F)                                                                                         \
    ONXI_DNNL_COMMON(F)                                                                                                \
    F(dnnl_memory_desc_init_by_strides)                                                                                \
    F(dnnl_memory_desc_init_by_tag)                                                                                    \
    F(dnnl_memory_desc_permute_axes)                                                                                   \
    F(dnnl_dilated_convolution_forward_desc_init)                                                                      \
    F(dnnl_dilated_convolution_backward_data_desc_init)                                                                \
    F(dnnl_dilated_convolution_backward_weights_desc_init)                                                             \
    F(dnnl_inner_product_forward_desc_init)                                                                            \
    F(dnnl_matmul_desc_init)                                                                                           \
    F(dnnl_pooling_forward_desc_init)                                                                                  \
    F(dnnl_primitive_desc_create)
typedef const dnnl_memory_desc_t *onxi_dnnl_md;
#endif

typedef struct onxi_dnnl_functions {
    ONXI_DNNL_FUNCTIONS(ONXI_FUNCTION_MEMBER)
    /* Of the OpenMP that oneDNN was built with; NULL: it was built with none. How many threads its next parallel
     * regions in this thread have. */
    void (*omp_set_num_threads)(int);
    int (*omp_get_max_threads)(void);
} onxi_dnnl_functions;

/* ---- kernels ---- */

typedef enum onxi_dnnl_source {
    ONXI_DNNL_INPUT,
    ONXI_DNNL_OUTPUT,
    ONXI_DNNL_CONSTANT,
    ONXI_DNNL_WORKSPACE,
    ONXI_DNNL_PARTIAL /* the output as one part has it: the sum of all is put into the output when they are done */
} onxi_dnnl_source;

/* Descriptions of what a part sees of an operand, and of what the last part sees. */
typedef struct onxi_dnnl_pair {
    onxi_dnnl_md each, last;
} onxi_dnnl_pair;
static inline onxi_dnnl_pair onxi_dnnl_both(onxi_dnnl_md md)
{
    return (onxi_dnnl_pair){ md, md };
}

typedef struct onxi_dnnl_operand {
    int arg; /* DNNL_ARG_... */
    onxi_dnnl_source source;
    uint32_t index; /* of the input or output */
    const void *data;
    onxi_dnnl_pair md; /* of one part */
    uint64_t step;     /* bytes from one part to the next */
} onxi_dnnl_operand;

/* How something of a certain extent is cut into parts for threads. */
typedef struct onxi_dnnl_cut {
    uint32_t parts;
    int64_t each, last; /* extent of a part, of the last one */
} onxi_dnnl_cut;

/* The params of every kernel on oneDNN. The work is a primitive that runs once for each part, on our own threads and
 * without threads of oneDNN's; the last part, which may be smaller, has one of its own. */
typedef struct onxi_dnnl {
    const onxi_dnnl_functions *lib;
    onx_arena *arena;
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc[2]; /* of a part, of the last one; NULL there: it is like the others */
    dnnl_primitive_t primitive[2];
    struct onxi_dnnl_kept *kept; /* descriptions of memory that are freed with it */
    onxi_dnnl_cut cut;
    unsigned threads;   /* that the work is worth */
    int threads_before; /* of the OpenMP of the thread that prepares */
    uint32_t count, room;
    onxi_dnnl_operand *operands;
    bool direct;         /* a convolution that is not to be unfolded for a product */
    bool loses_nan;      /* results are compared with something: where NaN comes up, the run declines */
    bool loses_infinity; /* likewise for outputs that are the least finite number instead of minus infinity */
    uint32_t finite;     /* 1 + an input whose NaN or infinities get lost: where it has some, the run declines */
} onxi_dnnl;

/* Params with an engine; NULL when that cannot be had. `operands` bounds how many will be added; `cost` estimates the
 * work, in multiplications or elements moved: what is small is done by one thread. Every path leads to onxi_dnnl_finish
 * or onxi_dnnl_decline. */
onxi_dnnl *onxi_dnnl_new(onx_prepare *p, uint32_t operands, uint64_t cost);
/* Takes the descriptions in d->desc, makes the primitives and adds their scratchpad. Anything that oneDNN refuses
 * declines: what was made is released. */
onx_status onxi_dnnl_finish(onx_prepare *p, onxi_dnnl *d);
/* Releases and declines; NULL is allowed. */
onx_status onxi_dnnl_decline(onxi_dnnl *d);
void onxi_dnnl_add(onxi_dnnl *d, int arg, onxi_dnnl_source source, uint32_t index, onxi_dnnl_pair md, uint64_t step);

/* ---- descriptions of memory: NULL when oneDNN has none ---- */

onxi_dnnl_md onxi_dnnl_md_strides(onxi_dnnl *d, uint32_t rank, const int64_t *dims, const int64_t *strides);
onxi_dnnl_md onxi_dnnl_md_tag(onxi_dnnl *d, uint32_t rank, const int64_t *dims, dnnl_format_tag_t tag);
/* A copy that lives as long as d. */
onxi_dnnl_md onxi_dnnl_md_keep(onxi_dnnl *d, onxi_dnnl_md md);
/* The same memory with its first two axes exchanged. */
onxi_dnnl_md onxi_dnnl_md_swapped(onxi_dnnl *d, onxi_dnnl_md md);
/* Bytes that tell the description from others; 0: it has none. */
size_t onxi_dnnl_md_key(onxi_dnnl *d, onxi_dnnl_md md, const void **key);
/* Of the value as it is laid out, of row-major float dims, of whatever layout is best. */
onxi_dnnl_md onxi_dnnl_md_of(onxi_dnnl *d, const onx_value *v);
onxi_dnnl_md onxi_dnnl_md_plain(onxi_dnnl *d, uint32_t rank, const int64_t *dims);
onxi_dnnl_md onxi_dnnl_md_any(onxi_dnnl *d, uint32_t rank, const int64_t *dims);
/* The layout that the description of such a value stands for; NULL in *out for row-major. False when out of memory. */
bool onxi_dnnl_layout(onx_prepare *p, onxi_dnnl *d, const onx_value *v, onxi_dnnl_md md, const onx_layout **out);
/* A value with its first two axes exchanged, whose elements lie as they did. */
typedef struct onxi_dnnl_turned {
    onx_value v;
    int64_t dims[ONX_RANK_MAX];
} onxi_dnnl_turned;
/* Rank 2 at least; the arena keeps what its layout is told by. False: out of memory. */
bool onxi_dnnl_turn(onx_arena *arena, const onx_value *v, onxi_dnnl_turned *t);
/* The layout of the value v that has `inner` with its first two axes exchanged; NULL in *out for row-major. False: out
 * of memory. */
bool onxi_dnnl_swapped(onx_arena *arena, const onx_value *v, const onx_layout *inner, const onx_layout **out);
/* Cuts `extent` things into parts of whole units for the threads of d. */
onxi_dnnl_cut onxi_dnnl_cut_of(const onxi_dnnl *d, int64_t extent, int64_t unit);
/* What the parts of a cut see of a value whose dim `axis` is cut, `factor` indexes for each thing. False unless parts
 * follow one another in memory. *step: bytes from one to the next. */
bool onxi_dnnl_cut_md(onxi_dnnl *d, const onxi_dnnl_cut *cut, onxi_dnnl_md whole, const onx_value *v, uint32_t axis,
                      int64_t factor, onxi_dnnl_pair *out, uint64_t *step);
/* Rows of an image with its channels last, of windows with this step, height and padding; x and y: first what the whole
 * is, then what the parts see. */
typedef struct onxi_dnnl_rows {
    onxi_dnnl_pair x, y;
    int64_t stride, window, above, below; /* below: in the end that of the last part */
    onxi_dnnl_cut cut;
    bool halo; /* two parts that share rows of the input, the padding above the first and below the last */
    uint64_t x_step, y_step;
} onxi_dnnl_rows;
/* Where windows are higher than a row and reach into what the parts beside them have, there are two parts; else as many
 * as there are threads. False, and nothing is changed that counts, where they cannot be had. */
bool onxi_dnnl_cut_rows(onxi_dnnl *d, const onx_value *x, const onx_value *y, onxi_dnnl_rows *r);
/* Adds a row-major constant input in another layout, which is made once per session. `from` describes what a part
 * needs of it, the next part begins `step` bytes on; 0: all parts need the same. False: it cannot be had. */
bool onxi_dnnl_add_constant(onx_prepare *p, onxi_dnnl *d, int arg, uint32_t input, onxi_dnnl_pair from, uint64_t step,
                            onxi_dnnl_pair to);

/* ---- descriptions of primitives (version.c); false: oneDNN has none, or none but its reference ---- */

typedef struct onxi_dnnl_conv {
    onxi_dnnl_md x, w, b, y; /* b may be NULL */
    dnnl_dims_t strides, dilations, pad, pad_end;
} onxi_dnnl_conv;
typedef struct onxi_dnnl_pool {
    dnnl_alg_kind_t kind;
    onxi_dnnl_md x, y;
    dnnl_dims_t strides, kernel, pad, pad_end;
} onxi_dnnl_pool;
/* Whether oneDNN adds the products of an element in one order in both, as far as can be told: its kernel has one name,
 * and is none that unfolds images for a product, which cuts sums by sizes. */
bool onxi_dnnl_same_sums(const onxi_dnnl *d, dnnl_primitive_desc_t a, dnnl_primitive_desc_t b);
bool onxi_dnnl_describe_conv(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t *out);
/* Of a convolution of x with w that gives y: x from the others, w from the others. */
bool onxi_dnnl_describe_conv_x(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out);
bool onxi_dnnl_describe_conv_w(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out);
bool onxi_dnnl_describe_inner_product(const onxi_dnnl *d, onxi_dnnl_md x, onxi_dnnl_md w, onxi_dnnl_md b,
                                      onxi_dnnl_md y, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out);
bool onxi_dnnl_describe_matmul(const onxi_dnnl *d, onxi_dnnl_md a, onxi_dnnl_md b, onxi_dnnl_md bias, onxi_dnnl_md y,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out);
bool onxi_dnnl_describe_pool(const onxi_dnnl *d, const onxi_dnnl_pool *q, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t *out);
bool onxi_dnnl_describe_concat(const onxi_dnnl *d, const onxi_dnnl_md *x, uint32_t count, uint32_t axis,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out);
bool onxi_dnnl_append_eltwise(const onxi_dnnl *d, dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha, float beta);
bool onxi_dnnl_append_sum(const onxi_dnnl *d, dnnl_post_ops_t ops);
const onxi_dnnl_functions *onxi_dnnl_library(void);
void onxi_dnnl_md_free(onxi_dnnl *d); /* those that d keeps */

/* ---- post-operations (post.c) ---- */

enum { ONXI_DNNL_POST_MAX = 8 };
/* Attributes with the post-operations that oneDNN can do. */
typedef struct onxi_dnnl_post {
    dnnl_primitive_attr_t attr;
    uint32_t post_ops_done;
    bool loses_nan;
    int32_t sum;    /* input that the result is added to in place, -1: none */
    int32_t binary; /* input that is added, -1: none */
    uint32_t binary_at;
    uint32_t eltwise_count;
    dnnl_alg_kind_t eltwise[ONXI_DNNL_POST_MAX]; /* functions taken so far */
} onxi_dnnl_post;
/* `dst` is the layout of the result, NULL while it is not known: then no binary post-operation is taken. The first
 * `taken` ones are done already. */
bool onxi_dnnl_post_make(const onx_prepare *p, const onxi_dnnl *d, onxi_dnnl_md dst, uint32_t taken,
                         onxi_dnnl_post *post);
/* Attributes without any. */
bool onxi_dnnl_attr(const onxi_dnnl *d, dnnl_primitive_attr_t *out);
/* Reports to the planner; adds the operand, which is laid out as the result is. */
void onxi_dnnl_post_apply(onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_post *post, const onx_layout *layout,
                          onxi_dnnl_pair dst, uint64_t step);

onx_status onxi_dnnl_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_dnnl_bind(onx_work *work);
void onxi_dnnl_unbind(void *state);
void onxi_dnnl_release(void *params);

/* `packs` of rows that read weights by onxi_dnnl_add_constant alone. */
enum { ONXI_DNNL_WEIGHTS = 1 << 1 };
#define ONXI_DNNL_ROW(name, version, how, packs_, prepare_) ONXI_DNNL_ROW_AT(10, name, version, how, packs_, prepare_)
#define ONXI_DNNL_ROW_AT(preference_, name, version, how, packs_, prepare_)                                            \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_F32, .preference = preference_,                                   \
        .flags = ONX_KERNEL_LAYOUTS | (how), .packs = (packs_), .variant = "dnnl", .prepare = prepare_,                \
        .run = onxi_dnnl_run, .bind = onxi_dnnl_bind, .unbind = onxi_dnnl_unbind, .release = onxi_dnnl_release         \
    }

#endif
#endif
