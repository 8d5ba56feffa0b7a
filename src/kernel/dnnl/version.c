/* version.c - the differences between versions 2 and 3 of oneDNN: names of functions, descriptions of memory and of
 * primitives. Memory descriptions are structs of the caller in version 2, and objects of the library in version 3. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

const onxi_dnnl_functions *onxi_dnnl_library(void)
{
    static const char *const names[] = { ONXI_DNNL_FUNCTIONS(ONXI_FUNCTION_NAME) "?omp_set_num_threads",
                                         "?omp_get_max_threads" };
    return ONXI_FUNCTIONS(ONXI_LIBRARY_DNNL, names);
}

/* The name of the implementation; NULL: unknown. */
static const char *kernel_of(const onxi_dnnl *d, dnnl_primitive_desc_t desc)
{
    const char *kernel = NULL;
    if (d->lib->dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&kernel) != dnnl_success)
        return NULL;
    return kernel;
}

/* Rejects implementations that are slower than our own rows: oneDNN's reference, which is some hundred times as slow;
 * its pooling of planar images, which is not vectorized; and convolutions by unfolding, which take three times as long
 * as ours. If a post-operation is the reason, the description without it may be accepted. */
static bool is_taken(const onxi_dnnl *d, bool described, dnnl_primitive_desc_t *desc)
{
    if (!described)
        return false;
    const char *kernel = kernel_of(d, *desc);
    if (!kernel || (strncmp(kernel, "ref", 3) != 0 && strncmp(kernel, "simple_nchw", 11) != 0 &&
                    !(d->direct && strstr(kernel, "gemm"))))
        return true;
    d->lib->dnnl_primitive_desc_destroy(*desc);
    *desc = NULL;
    return false;
}

bool onxi_dnnl_same_sums(const onxi_dnnl *d, dnnl_primitive_desc_t a, dnnl_primitive_desc_t b)
{
    const char *of_a = kernel_of(d, a), *of_b = kernel_of(d, b);
    return of_a && of_b && strcmp(of_a, of_b) == 0 && !strstr(of_a, "gemm");
}

static const int swap[DNNL_MAX_NDIMS] = { 1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

#if ONX_WITH_DNNL >= 3

typedef struct onxi_dnnl_kept {
    struct onxi_dnnl_kept *next;
    dnnl_memory_desc_t md;
} onxi_dnnl_kept;

/* Takes ownership of the description. */
static onxi_dnnl_md keep(onxi_dnnl *d, dnnl_memory_desc_t md)
{
    onxi_dnnl_kept *k = ONXI_NEW(d->arena, onxi_dnnl_kept);
    if (!k) {
        d->lib->dnnl_memory_desc_destroy(md);
        return NULL;
    }
    *k = (onxi_dnnl_kept){ d->kept, md };
    d->kept = k;
    return md;
}

void onxi_dnnl_md_free(onxi_dnnl *d)
{
    for (onxi_dnnl_kept *k = d->kept; k; k = k->next)
        d->lib->dnnl_memory_desc_destroy(k->md);
    d->kept = NULL;
}

onxi_dnnl_md onxi_dnnl_md_keep(onxi_dnnl *d, onxi_dnnl_md md)
{
    dnnl_memory_desc_t copy;
    return md && d->lib->dnnl_memory_desc_clone(&copy, md) == dnnl_success ? keep(d, copy) : NULL;
}

onxi_dnnl_md onxi_dnnl_md_swapped(onxi_dnnl *d, onxi_dnnl_md md)
{
    dnnl_memory_desc_t swapped;
    return md && d->lib->dnnl_memory_desc_permute_axes(&swapped, md, swap) == dnnl_success ? keep(d, swapped) : NULL;
}

onxi_dnnl_md onxi_dnnl_md_strides(onxi_dnnl *d, uint32_t rank, const int64_t *dims, const int64_t *strides)
{
    dnnl_memory_desc_t md;
    if (!rank || rank > DNNL_MAX_NDIMS ||
        d->lib->dnnl_memory_desc_create_with_strides(&md, (int)rank, dims, dnnl_f32, strides) != dnnl_success)
        return NULL;
    return keep(d, md);
}

onxi_dnnl_md onxi_dnnl_md_tag(onxi_dnnl *d, uint32_t rank, const int64_t *dims, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    if (!rank || rank > DNNL_MAX_NDIMS ||
        d->lib->dnnl_memory_desc_create_with_tag(&md, (int)rank, dims, dnnl_f32, tag) != dnnl_success)
        return NULL;
    return keep(d, md);
}

/* Element type and offset are the same in all our descriptions. */
typedef struct md_key {
    int32_t rank, block_count;
    dnnl_dims_t dims, padded, strides, blocks, block_axes;
} md_key;

static bool query_dims(const onxi_dnnl *d, onxi_dnnl_md md, dnnl_query_t what, int32_t count, dnnl_dims_t out)
{
    const dnnl_dims_t *found = NULL;
    if (count <= 0)
        return true;
    if (d->lib->dnnl_memory_desc_query(md, what, &found) != dnnl_success || !found)
        return false;
    memcpy(out, *found, (size_t)count * sizeof(*found)[0]);
    return true;
}

size_t onxi_dnnl_md_key(onxi_dnnl *d, onxi_dnnl_md md, const void **out)
{
    md_key *k = ONXI_NEW(d->arena, md_key);
    dnnl_format_kind_t kind;
    if (!k || !md || d->lib->dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) != dnnl_success ||
        kind != dnnl_blocked || d->lib->dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &k->rank) != dnnl_success ||
        d->lib->dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &k->block_count) != dnnl_success ||
        !query_dims(d, md, dnnl_query_dims, k->rank, k->dims) ||
        !query_dims(d, md, dnnl_query_padded_dims, k->rank, k->padded) ||
        !query_dims(d, md, dnnl_query_strides, k->rank, k->strides) ||
        !query_dims(d, md, dnnl_query_inner_blks, k->block_count, k->blocks) ||
        !query_dims(d, md, dnnl_query_inner_idxs, k->block_count, k->block_axes))
        return 0;
    *out = k;
    return sizeof *k;
}

bool onxi_dnnl_describe_conv(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t *out)
{
    const dnnl_status_t status = d->lib->dnnl_convolution_forward_primitive_desc_create(
        out, d->engine, dnnl_forward_inference, dnnl_convolution_direct, c->x, c->w, c->b, c->y, c->strides,
        c->dilations, c->pad, c->pad_end, attr);
    return is_taken(d, status == dnnl_success, out);
}

bool onxi_dnnl_describe_conv_x(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out)
{
    const dnnl_status_t status = d->lib->dnnl_convolution_backward_data_primitive_desc_create(
        out, d->engine, dnnl_convolution_direct, c->x, c->w, c->y, c->strides, c->dilations, c->pad, c->pad_end, NULL,
        attr);
    return is_taken(d, status == dnnl_success, out);
}

bool onxi_dnnl_describe_conv_w(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out)
{
    const dnnl_status_t status = d->lib->dnnl_convolution_backward_weights_primitive_desc_create(
        out, d->engine, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->strides, c->dilations, c->pad, c->pad_end,
        NULL, attr);
    return is_taken(d, status == dnnl_success, out);
}

bool onxi_dnnl_describe_inner_product(const onxi_dnnl *d, onxi_dnnl_md x, onxi_dnnl_md w, onxi_dnnl_md b,
                                      onxi_dnnl_md y, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    const dnnl_status_t status = d->lib->dnnl_inner_product_forward_primitive_desc_create(
        out, d->engine, dnnl_forward_inference, x, w, b, y, attr);
    return is_taken(d, status == dnnl_success, out);
}

bool onxi_dnnl_describe_matmul(const onxi_dnnl *d, onxi_dnnl_md a, onxi_dnnl_md b, onxi_dnnl_md bias, onxi_dnnl_md y,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    const dnnl_status_t status = d->lib->dnnl_matmul_primitive_desc_create(out, d->engine, a, b, bias, y, attr);
    return is_taken(d, status == dnnl_success, out);
}

bool onxi_dnnl_describe_pool(const onxi_dnnl *d, const onxi_dnnl_pool *q, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t *out)
{
    static const dnnl_dims_t dense = { 0 };
    const dnnl_status_t status =
        d->lib->dnnl_pooling_forward_primitive_desc_create(out, d->engine, dnnl_forward_inference, q->kind, q->x, q->y,
                                                           q->strides, q->kernel, dense, q->pad, q->pad_end, attr);
    return is_taken(d, status == dnnl_success, out);
}

bool onxi_dnnl_describe_concat(const onxi_dnnl *d, const onxi_dnnl_md *x, uint32_t count, uint32_t axis,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    return d->lib->dnnl_concat_primitive_desc_create(out, d->engine, NULL, (int)count, (int)axis, x, attr) ==
           dnnl_success;
}

bool onxi_dnnl_append_eltwise(const onxi_dnnl *d, dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha, float beta)
{
    if (kind == dnnl_eltwise_hardswish) { /* x * max(0, min(1, alpha * x + beta)) */
        alpha = 1.0f / 6;
        beta = 0.5f;
    }
    return d->lib->dnnl_post_ops_append_eltwise(ops, kind, alpha, beta) == dnnl_success;
}

bool onxi_dnnl_append_sum(const onxi_dnnl *d, dnnl_post_ops_t ops)
{
    return d->lib->dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef) == dnnl_success;
}

#else /* version 2 */

void onxi_dnnl_md_free(onxi_dnnl *d)
{
    (void)d; /* they are in the arena */
}

onxi_dnnl_md onxi_dnnl_md_keep(onxi_dnnl *d, onxi_dnnl_md md)
{
    dnnl_memory_desc_t *copy = md ? ONXI_NEW(d->arena, dnnl_memory_desc_t) : NULL;
    if (copy)
        *copy = *md;
    return copy;
}

onxi_dnnl_md onxi_dnnl_md_swapped(onxi_dnnl *d, onxi_dnnl_md md)
{
    dnnl_memory_desc_t *swapped = md ? ONXI_NEW(d->arena, dnnl_memory_desc_t) : NULL;
    return swapped && d->lib->dnnl_memory_desc_permute_axes(swapped, md, swap) == dnnl_success ? swapped : NULL;
}

onxi_dnnl_md onxi_dnnl_md_strides(onxi_dnnl *d, uint32_t rank, const int64_t *dims, const int64_t *strides)
{
    dnnl_memory_desc_t *md = ONXI_NEW(d->arena, dnnl_memory_desc_t);
    if (!md || !rank || rank > DNNL_MAX_NDIMS ||
        d->lib->dnnl_memory_desc_init_by_strides(md, (int)rank, dims, dnnl_f32, strides) != dnnl_success)
        return NULL;
    return md;
}

onxi_dnnl_md onxi_dnnl_md_tag(onxi_dnnl *d, uint32_t rank, const int64_t *dims, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t *md = ONXI_NEW(d->arena, dnnl_memory_desc_t);
    if (!md || !rank || rank > DNNL_MAX_NDIMS ||
        d->lib->dnnl_memory_desc_init_by_tag(md, (int)rank, dims, dnnl_f32, tag) != dnnl_success)
        return NULL;
    return md;
}

size_t onxi_dnnl_md_key(onxi_dnnl *d, onxi_dnnl_md md, const void **out)
{
    (void)d;
    *out = md;
    return md ? sizeof *md : 0;
}

static bool create(const onxi_dnnl *d, const_dnnl_op_desc_t desc, dnnl_primitive_attr_t attr,
                   dnnl_primitive_desc_t *out)
{
    return is_taken(d, d->lib->dnnl_primitive_desc_create(out, desc, attr, d->engine, NULL) == dnnl_success, out);
}

bool onxi_dnnl_describe_conv(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t desc;
    return d->lib->dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct,
                                                              c->x, c->w, c->b, c->y, c->strides, c->dilations, c->pad,
                                                              c->pad_end) == dnnl_success &&
           create(d, &desc, attr, out);
}

bool onxi_dnnl_describe_conv_x(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t desc;
    return d->lib->dnnl_dilated_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, c->x, c->w, c->y,
                                                                    c->strides, c->dilations, c->pad,
                                                                    c->pad_end) == dnnl_success &&
           create(d, &desc, attr, out);
}

bool onxi_dnnl_describe_conv_w(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t desc;
    return d->lib->dnnl_dilated_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, c->x, c->w, NULL,
                                                                       c->y, c->strides, c->dilations, c->pad,
                                                                       c->pad_end) == dnnl_success &&
           create(d, &desc, attr, out);
}

bool onxi_dnnl_describe_inner_product(const onxi_dnnl *d, onxi_dnnl_md x, onxi_dnnl_md w, onxi_dnnl_md b,
                                      onxi_dnnl_md y, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    dnnl_inner_product_desc_t desc;
    return d->lib->dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_inference, x, w, b, y) == dnnl_success &&
           create(d, &desc, attr, out);
}

bool onxi_dnnl_describe_matmul(const onxi_dnnl *d, onxi_dnnl_md a, onxi_dnnl_md b, onxi_dnnl_md bias, onxi_dnnl_md y,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    dnnl_matmul_desc_t desc;
    return d->lib->dnnl_matmul_desc_init(&desc, a, b, bias, y) == dnnl_success && create(d, &desc, attr, out);
}

bool onxi_dnnl_describe_pool(const onxi_dnnl *d, const onxi_dnnl_pool *q, dnnl_primitive_attr_t attr,
                             dnnl_primitive_desc_t *out)
{
    dnnl_pooling_desc_t desc;
    return d->lib->dnnl_pooling_forward_desc_init(&desc, dnnl_forward_inference, q->kind, q->x, q->y, q->strides,
                                                  q->kernel, q->pad, q->pad_end) == dnnl_success &&
           create(d, &desc, attr, out);
}

bool onxi_dnnl_describe_concat(const onxi_dnnl *d, const onxi_dnnl_md *x, uint32_t count, uint32_t axis,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t *copies = ONXI_ARRAY(d->arena, dnnl_memory_desc_t, count);
    for (uint32_t i = 0; copies && i < count; i++)
        copies[i] = *x[i];
    return copies && d->lib->dnnl_concat_primitive_desc_create(out, NULL, (int)count, (int)axis, copies, attr,
                                                               d->engine) == dnnl_success;
}

bool onxi_dnnl_append_eltwise(const onxi_dnnl *d, dnnl_post_ops_t ops, dnnl_alg_kind_t kind, float alpha, float beta)
{
    return d->lib->dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, beta) == dnnl_success;
}

bool onxi_dnnl_append_sum(const onxi_dnnl *d, dnnl_post_ops_t ops)
{
    return d->lib->dnnl_post_ops_append_sum(ops, 1) == dnnl_success;
}

#endif
#endif
