/* dnnl.h - shared by kernels that use oneDNN: primitives with bound operands, layouts, post-operations. ONX_WITH_DNNL
 * is the major version of the headers, 2 or 3; version.c has the differences. */
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
    /* Functions of the OpenMP library that oneDNN uses; NULL: it uses none. They set and get the number of threads of
     * the next parallel regions started by this thread. */
    void (*omp_set_num_threads)(int);
    int (*omp_get_max_threads)(void);
} onxi_dnnl_functions;

/* ---- kernels ---- */

typedef enum onxi_dnnl_source {
    ONXI_DNNL_INPUT,
    ONXI_DNNL_OUTPUT,
    ONXI_DNNL_CONSTANT,
    ONXI_DNNL_WORKSPACE,
    /* A part's contribution to the output: when all parts are done, their sum is written to the output. */
    ONXI_DNNL_PARTIAL
} onxi_dnnl_source;

/* Memory descriptions of an operand as seen by one part, and by the last part. */
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
    onxi_dnnl_pair md; /* for one part */
    uint64_t step;     /* bytes between the parts */
} onxi_dnnl_operand;

/* How an extent is divided into parts, for threads and so that a run can end between them. */
typedef struct onxi_dnnl_cut {
    uint32_t parts;
    int64_t each, last; /* extent of a part; extent of the last part */
} onxi_dnnl_cut;

/* The params of all kernels that use oneDNN. A primitive runs once for each part, on our own threads and
 * single-threaded within oneDNN. The last part may be smaller and then has a primitive of its own. */
typedef struct onxi_dnnl {
    const onxi_dnnl_functions *lib;
    onx_arena *arena;
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc[2]; /* for a part, for the last part; NULL: the last part is like the others */
    dnnl_primitive_t primitive[2];
    struct onxi_dnnl_kept *kept; /* memory descriptions to free with it */
    onxi_dnnl_cut cut;
    unsigned threads;   /* number of threads that the work justifies */
    unsigned slices;    /* parts between which a run asks whether it has to end */
    int threads_before; /* OpenMP's number of threads for the preparing thread, to be restored */
    uint32_t count, room;
    onxi_dnnl_operand *operands;
    bool direct;    /* do not use oneDNN's convolution by unfolding */
    bool loses_nan; /* results are compared with a constant: the run declines if NaN occurs */
    /* The run declines, too, if an output is the least finite number, which oneDNN uses for minus infinity. */
    bool loses_infinity;
    /* 1 + index of an input whose NaN and infinities would be lost: the run declines if it has any; 0: none. */
    uint32_t finite;
} onxi_dnnl;

/* Creates params with an engine; NULL when oneDNN is not available. `operands` is the maximum number of operands.
 * `cost` estimates the work in multiplications or moved elements: small work uses one thread. The caller must end with
 * onxi_dnnl_finish or onxi_dnnl_decline. */
onxi_dnnl *onxi_dnnl_new(onx_prepare *p, uint32_t operands, uint64_t cost);
/* Takes over d->desc, creates the primitives and adds their scratchpad. If oneDNN refuses something, releases
 * everything and declines. */
onx_status onxi_dnnl_finish(onx_prepare *p, onxi_dnnl *d);
/* Releases everything and declines; NULL is allowed. */
onx_status onxi_dnnl_decline(onxi_dnnl *d);
void onxi_dnnl_add(onxi_dnnl *d, int arg, onxi_dnnl_source source, uint32_t index, onxi_dnnl_pair md, uint64_t step);

/* ---- memory descriptions; NULL when oneDNN cannot make one ---- */

onxi_dnnl_md onxi_dnnl_md_strides(onxi_dnnl *d, uint32_t rank, const int64_t *dims, const int64_t *strides);
onxi_dnnl_md onxi_dnnl_md_tag(onxi_dnnl *d, uint32_t rank, const int64_t *dims, dnnl_format_tag_t tag);
/* A copy that lives as long as `d`. */
onxi_dnnl_md onxi_dnnl_md_keep(onxi_dnnl *d, onxi_dnnl_md md);
/* The same memory with its first two axes exchanged. */
onxi_dnnl_md onxi_dnnl_md_swapped(onxi_dnnl *d, onxi_dnnl_md md);
/* Bytes that identify the description; returns their number, 0: there are none. */
size_t onxi_dnnl_md_key(onxi_dnnl *d, onxi_dnnl_md md, const void **key);
/* Descriptions of a value in its layout, of a row-major float tensor, and of a float tensor in the layout that oneDNN
 * prefers. */
onxi_dnnl_md onxi_dnnl_md_of(onxi_dnnl *d, const onx_value *v);
onxi_dnnl_md onxi_dnnl_md_plain(onxi_dnnl *d, uint32_t rank, const int64_t *dims);
onxi_dnnl_md onxi_dnnl_md_any(onxi_dnnl *d, uint32_t rank, const int64_t *dims);
/* Converts a description of the value to a layout; *out is NULL for row-major. Returns false when out of memory. */
bool onxi_dnnl_layout(onx_prepare *p, onxi_dnnl *d, const onx_value *v, onxi_dnnl_md md, const onx_layout **out);
/* A value with its first two axes exchanged, without moving elements. */
typedef struct onxi_dnnl_turned {
    onx_value v;
    int64_t dims[ONX_RANK_MAX];
} onxi_dnnl_turned;
/* The rank is at least 2. `t` refers to memory of the arena. Returns false when out of memory. */
bool onxi_dnnl_turn(onx_arena *arena, const onx_value *v, onxi_dnnl_turned *t);
/* The layout of value v whose elements are laid out as `inner` if its first two axes are exchanged; *out is NULL for
 * row-major. Returns false when out of memory. */
bool onxi_dnnl_swapped(onx_arena *arena, const onx_value *v, const onx_layout *inner, const onx_layout **out);
/* Divides an extent into parts for the threads and slices of `d`, in multiples of `unit`. */
onxi_dnnl_cut onxi_dnnl_cut_of(const onxi_dnnl *d, int64_t extent, int64_t unit);
/* Describes the parts of a value whose dim `axis` is divided; a unit of the cut is `factor` indices. Returns false
 * unless parts are consecutive in memory. *step: bytes between parts. */
bool onxi_dnnl_cut_md(onxi_dnnl *d, const onxi_dnnl_cut *cut, onxi_dnnl_md whole, const onx_value *v, uint32_t axis,
                      int64_t factor, onxi_dnnl_pair *out, uint64_t *step);
/* A division of images by rows that are contiguous, for windows with this stride, height and padding. x and y describe
 * the whole images, and on return the parts. */
typedef struct onxi_dnnl_rows {
    onxi_dnnl_pair x, y;
    int64_t stride, window, above, below; /* `below` becomes the padding of the last part */
    onxi_dnnl_cut cut;
    /* Parts share rows of the input; the first one has the padding above, the last one the padding below. */
    bool halo;
    uint64_t x_step, y_step;
} onxi_dnnl_rows;
/* Divides by rows, with padding into two parts, otherwise as onxi_dnnl_cut_of. Returns false where this is impossible;
 * *r may have been changed. */
bool onxi_dnnl_cut_rows(onxi_dnnl *d, const onx_value *x, const onx_value *y, onxi_dnnl_rows *r);
/* Adds a constant row-major input, converted to another layout once per session. `from` describes what a part needs of
 * it; the next part's share begins `step` bytes later (0: all parts need the same). Returns false where it cannot be
 * converted. */
bool onxi_dnnl_add_constant(onx_prepare *p, onxi_dnnl *d, int arg, uint32_t input, onxi_dnnl_pair from, uint64_t step,
                            onxi_dnnl_pair to);

/* ---- primitive descriptions (version.c); false: oneDNN has no implementation, or only its reference ---- */

typedef struct onxi_dnnl_conv {
    onxi_dnnl_md x, w, b, y; /* b may be NULL */
    dnnl_dims_t strides, dilations, pad, pad_end;
} onxi_dnnl_conv;
typedef struct onxi_dnnl_pool {
    dnnl_alg_kind_t kind;
    onxi_dnnl_md x, y;
    dnnl_dims_t strides, kernel, pad, pad_end;
} onxi_dnnl_pool;
/* Do both convolutions sum in the same order? This is assumed if they use the same kernel by name and it does not
 * unfold images, because the blocking of such kernels depends on the sizes. */
bool onxi_dnnl_same_sums(const onxi_dnnl *d, dnnl_primitive_desc_t a, dnnl_primitive_desc_t b);
bool onxi_dnnl_describe_conv(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t *out);
/* Gradients of the convolution of x with w that gives y: with respect to x, and with respect to w. */
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
void onxi_dnnl_md_free(onxi_dnnl *d); /* frees the descriptions that `d` keeps */

/* ---- post-operations (post.c) ---- */

enum { ONXI_DNNL_POST_MAX = 8 };
/* Attributes with the post-operations that oneDNN can apply. */
typedef struct onxi_dnnl_post {
    dnnl_primitive_attr_t attr;
    uint32_t post_ops_done;
    bool loses_nan;
    int32_t sum;    /* input that is accumulated into in place, -1: none */
    int32_t binary; /* input that is added, -1: none */
    uint32_t binary_at;
    uint32_t eltwise_count;
    dnnl_alg_kind_t eltwise[ONXI_DNNL_POST_MAX]; /* functions added so far */
} onxi_dnnl_post;
/* `dst` is the layout of the result; while it is unknown (NULL), no binary post-operation is added. The first `taken`
 * post-operations are done by other means. */
bool onxi_dnnl_post_make(const onx_prepare *p, const onxi_dnnl *d, onxi_dnnl_md dst, uint32_t taken,
                         onxi_dnnl_post *post);
/* Attributes without post-operations. */
bool onxi_dnnl_attr(const onxi_dnnl *d, dnnl_primitive_attr_t *out);
/* Tells the planner which post-operations are done, and adds the operand, which has the layout of the result. */
void onxi_dnnl_post_apply(onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_post *post, const onx_layout *layout,
                          onxi_dnnl_pair dst, uint64_t step);

onx_status onxi_dnnl_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_dnnl_bind(onx_work *work);
void onxi_dnnl_unbind(void *state);
void onxi_dnnl_release(void *params);

/* For `packs` of rows that read weights only through onxi_dnnl_add_constant. */
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
