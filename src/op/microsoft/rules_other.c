/* rules_other.c - inference rules of com.microsoft operators with their own kernels. */
#include "op/microsoft/microsoft.h"

/* ---- low-bit weights ---- */

static onx_status size_of(onxi_call *call, const char *name, int64_t *out)
{
    *out = onxi_call_int(call, name);
    return *out < 1 || *out > INT32_MAX
               ? onxi_call_fail(call, "attribute %s is %lld, which is no size of a matrix", name, (long long)*out)
               : ONX_OK;
}

/* The last axis of A is replaced by that of the weights. */
static onx_status last_axis_becomes(onxi_call *call, onxi_dim from, onxi_dim to)
{
    const onxi_type *a = onxi_call_ranked(call, 0);
    onxi_dim *dims, same;
    onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 0));
    if (!a)
        return ONX_OK;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 1));
    ONX_TRY(onxi_call_output(call, 0, a->dtype, a->rank, &dims));
    for (uint32_t i = 0; i + 1 < a->rank; i++)
        dims[i] = a->dims[i];
    dims[a->rank - 1] = to;
    return onxi_call_unify(call, a->dims[a->rank - 1], from, "the inner dimension", &same);
}

onx_status onxi_rule_microsoft_matmul_nbits(onxi_call *call)
{
    int64_t k, n;
    const int64_t block = onxi_call_int(call, "block_size");
    ONX_TRY(size_of(call, "K", &k));
    ONX_TRY(size_of(call, "N", &n));
    if (block < 16 || block > (1 << 24) || (block & (block - 1)))
        return onxi_call_fail(call, "attribute block_size is %lld, which is no power of two from 16 on",
                              (long long)block);
    const bool forward = !onxi_schema_attr(call->schema, onx_str_of("transB")) || onxi_call_is_set(call, "transB");
    return last_axis_becomes(call, forward ? k : n, forward ? n : k);
}

onx_status onxi_rule_microsoft_matmul_fpq4(onxi_call *call)
{
    const onxi_known_ints *shape = onxi_call_value(call, 2);
    const bool known = shape && shape->count == 2;
    if (shape && !known)
        return onxi_call_fail(call, "B_shape has %u numbers, not 2", shape->count);
    return last_axis_becomes(call, known ? shape->elements[0] : ONXI_DIM_UNKNOWN,
                             known ? shape->elements[1] : ONXI_DIM_UNKNOWN);
}

onx_status onxi_rule_microsoft_gather_block_quantized(onxi_call *call)
{
    const onxi_type *data = onxi_call_ranked(call, 0), *indices = onxi_call_ranked(call, 1);
    const int64_t bits = onxi_call_dtype(call, 0) == ONX_UINT8 ? onxi_call_int(call, "bits") : 8;
    uint32_t axis, at = 0;
    onxi_dim *dims;
    if (bits != 2 && bits != 4 && bits != 8)
        return onxi_call_fail(call, "attribute bits is %lld, none of 2, 4 and 8", (long long)bits);
    onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 2));
    if (!data || !indices)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "gather_axis"), data->rank, &axis));
    ONX_TRY(onxi_call_output(call, 0, onxi_call_dtype(call, 2), data->rank - 1 + indices->rank, &dims));
    for (uint32_t i = 0; i < data->rank; i++) {
        const bool packed = i + 1 == data->rank && bits < 8;
        for (uint32_t k = 0; i == axis && k < indices->rank; k++)
            dims[at++] = indices->dims[k];
        if (i != axis)
            dims[at++] = packed ? onxi_dim_mul(call->dims, data->dims[i], 8 / bits) : data->dims[i];
    }
    return ONX_OK;
}

/* ---- tensors and images ---- */

onx_status onxi_rule_microsoft_inverse(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim same;
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(onxi_call_want_least_rank(call, 0, 2));
    return x ? onxi_call_unify(call, x->dims[x->rank - 2], x->dims[x->rank - 1], "the size of a matrix", &same)
             : ONX_OK;
}

/* The matrix may have a sparse type, or the dense type that replaces it. */
onx_status onxi_rule_microsoft_sparse_matmul(onxi_call *call)
{
    const onxi_type *a = onxi_call_has_input(call, 0) ? call->inputs[0] : NULL, *b = onxi_call_ranked(call, 1);
    const bool turns_a = onxi_call_is_set(call, "transA"), turns_b = onxi_call_is_set(call, "transB");
    const int left = onxi_call_dtype(call, 0), right = onxi_call_dtype(call, 1);
    onxi_dim *dims, depth;
    if (left && right && left != right)
        return onxi_call_fail(call, "A is of %s and B of %s", onx_dtype_name(left), onx_dtype_name(right));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    if (a && a->ranked && a->rank != 2)
        return onxi_call_fail(call, "input 0 has rank %u, expected 2", a->rank);
    ONX_TRY(onxi_call_output(call, 0, right ? right : left, 2, &dims));
    dims[0] = a && a->ranked ? a->dims[turns_a] : ONXI_DIM_UNKNOWN;
    dims[1] = b ? b->dims[!turns_b] : ONXI_DIM_UNKNOWN;
    return a && a->ranked && b ? onxi_call_unify(call, a->dims[!turns_a], b->dims[turns_b], "the inner size", &depth)
                               : ONX_OK;
}

onx_status onxi_rule_microsoft_unfold(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const int64_t size = onxi_call_int(call, "size"), step = onxi_call_int(call, "step");
    uint32_t axis;
    onxi_dim *dims;
    if (size < 1 || step < 1)
        return onxi_call_fail(call, "windows of %lld in steps of %lld are none", (long long)size, (long long)step);
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "dim"), x->rank, &axis));
    ONX_TRY(onxi_call_shape(call, 0, x->rank + 1, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank] = size;
    dims[axis] = ONXI_DIM_UNKNOWN;
    if (!onxi_dim_is_const(x->dims[axis]))
        return ONX_OK;
    if (x->dims[axis] < size)
        return onxi_call_fail(call, "a window of %lld is larger than the axis, which has %lld", (long long)size,
                              (long long)x->dims[axis]);
    dims[axis] = (x->dims[axis] - size) / step + 1;
    return ONX_OK;
}

onx_status onxi_rule_microsoft_crop_and_resize(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *rois = onxi_call_ranked(call, 1),
                    *batch = onxi_call_ranked(call, 2);
    const onxi_known_ints *size = onxi_call_value(call, 3);
    onxi_dim *dims, count = ONXI_DIM_UNKNOWN;
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    ONX_TRY(onxi_call_want_vector(call, 3, 2));
    if (rois)
        ONX_TRY(onxi_call_want_dim(call, 1, 1, 4));
    ONX_TRY(onxi_call_shape(call, 0, 4, &dims));
    if (rois && batch)
        ONX_TRY(onxi_call_unify(call, rois->dims[0], batch->dims[0], "the number of boxes", &count));
    dims[0] = count;
    if (x)
        dims[1] = x->dims[1];
    for (uint32_t i = 0; size && size->count == 2 && i < 2; i++) {
        dims[2 + i] = size->elements[i];
        if (onxi_dim_is_const(size->elements[i]) && size->elements[i] < 1)
            return onxi_call_fail(call, "crop_size has %lld, which is no size", (long long)size->elements[i]);
    }
    return ONX_OK;
}

onx_status onxi_rule_microsoft_time_warping(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, ONX_INT32, 2, &dims));
    dims[0] = 2;
    return x && x->rank != 2 && x->rank != 3 ? onxi_call_fail(call, "the costs have rank %u, neither 2 nor 3", x->rank)
                                             : ONX_OK;
}

onx_status onxi_rule_microsoft_murmur_hash(onxi_call *call)
{
    onxi_call_output_unranked(call, 0, onxi_call_is_set(call, "positive") ? ONX_UINT32 : ONX_INT32);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

/* The size of one window axis, with pads from the attribute or from auto_pad. */
static onx_status pooled(onxi_call *call, onxi_dim size, int64_t kernel, int64_t stride, int64_t pads, onxi_dim *out)
{
    const onx_str pad = onxi_call_text(call, "auto_pad");
    *out = ONXI_DIM_UNKNOWN;
    if (kernel < 1 || stride < 1 || pads < 0)
        return onxi_call_fail(call, "a window of %lld in steps of %lld with pads of %lld is none", (long long)kernel,
                              (long long)stride, (long long)pads);
    if (!onxi_dim_is_const(size))
        return ONX_OK;
    if (onx_str_is(pad, "SAME_UPPER") || onx_str_is(pad, "SAME_LOWER"))
        *out = (size + stride - 1) / stride;
    else if (size + pads < kernel)
        return onxi_call_fail(call, "a window of %lld is larger than an axis of %lld with its pads", (long long)kernel,
                              (long long)size);
    else
        *out = (size + pads - kernel) / stride + 1;
    return ONX_OK;
}

onx_status onxi_rule_microsoft_maxpool_with_mask(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *m = onxi_call_ranked(call, 1);
    uint32_t kernels, strides, pads;
    const int64_t *kernel = onxi_call_ints(call, "kernel_shape", &kernels),
                  *stride = onxi_call_ints(call, "strides", &strides), *pad = onxi_call_ints(call, "pads", &pads);
    onxi_dim *dims, same;
    if (!kernels || kernels > 3)
        return onxi_call_fail(call, "kernel_shape has %u numbers, none of 1 to 3", kernels);
    if ((stride && strides != kernels) || (pad && pads != 2 * kernels))
        return onxi_call_fail(call, "there are %u strides and %u pads for %u axes", strides, pads, kernels);
    for (uint32_t i = 0; i < pads; i++)
        if (pad[i] < 0 || pad[i] > INT32_MAX)
            return onxi_call_fail(call, "a pad is %lld", (long long)pad[i]);
    ONX_TRY(onxi_call_want_rank(call, 0, kernels + 2));
    ONX_TRY(onxi_call_want_rank(call, 1, kernels + 2));
    ONX_TRY(onxi_call_shape(call, 0, kernels + 2, &dims));
    for (uint32_t i = 0; x && i < 2; i++)
        dims[i] = x->dims[i];
    for (uint32_t i = 0; i < kernels; i++) {
        if (x && m)
            ONX_TRY(onxi_call_unify(call, x->dims[i + 2], m->dims[i + 2], "a spatial dimension", &same));
        ONX_TRY(pooled(call, x ? x->dims[i + 2] : ONXI_DIM_UNKNOWN, kernel[i], stride ? stride[i] : 1,
                       pad ? pad[i] + pad[i + kernels] : 0, &dims[i + 2]));
    }
    return ONX_OK;
}

/* ---- strings and tokens ---- */

onx_status onxi_rule_microsoft_word_conv_embedding(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *w = onxi_call_ranked(call, 1), *c = onxi_call_ranked(call, 3);
    onxi_dim *dims, same;
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 1, 4));
    ONX_TRY(onxi_call_want_rank(call, 3, 2));
    ONX_TRY(onxi_call_output(call, 0, ONX_FLOAT, 2, &dims));
    if (x)
        dims[0] = x->dims[0];
    if (!w)
        return ONX_OK;
    dims[1] = w->dims[0];
    ONX_TRY(onxi_call_want_vector(call, 2, w->dims[0]));
    return c ? onxi_call_unify(call, w->dims[3], c->dims[1], "the size of a character's embedding", &same) : ONX_OK;
}

onx_status onxi_rule_microsoft_ngram_repeat_block(onxi_call *call)
{
    const onxi_type *ids = onxi_call_ranked(call, 0), *scores = onxi_call_ranked(call, 1);
    onxi_dim same;
    onxi_call_same(call, 0, 1);
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    return ids && scores ? onxi_call_unify(call, ids->dims[0], scores->dims[0], "the batch", &same) : ONX_OK;
}

onx_status onxi_rule_microsoft_bifurcation(onxi_call *call)
{
    onxi_dim *dims;
    for (uint32_t i = 0; i < 4; i++)
        if (onxi_call_has_input(call, i) && i != 2)
            ONX_TRY(onxi_call_want_rank(call, i, 1));
    ONX_TRY(onxi_call_output(call, 0, ONX_INT64, 1, &dims));
    onxi_call_same(call, 1, 2);
    return ONX_OK;
}

onx_status onxi_rule_microsoft_tokenizer(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    onxi_call_output_unranked(call, 0, ONX_STRING);
    if (!x)
        return ONX_OK;
    if (x->rank != 1 && x->rank != 2)
        return onxi_call_fail(call, "the texts have rank %u, neither 1 nor 2", x->rank);
    bool empty = false; /* without texts there is no axis of tokens */
    for (uint32_t i = 0; i < x->rank; i++)
        empty = empty || (onxi_dim_is_const(x->dims[i]) && x->dims[i] == 0);
    ONX_TRY(onxi_call_output(call, 0, ONX_STRING, empty ? x->rank : x->rank + 1, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    return ONX_OK;
}

static const char *const search_graphs[] = { "decoder", "init_decoder", "encoder" };

/* The length of the sequences found is not known. The decoder's types are only known from its declarations. */
onx_status onxi_rule_microsoft_search(onxi_call *call)
{
    static const uint32_t ranks[2][5] = { { 2, 2 }, { 3, 2, 4, 5, 1 } };
    const bool beams = call->op == ONXI_ID_microsoft_BeamSearch || call->op == ONXI_ID_microsoft_WhisperBeamSearch;
    const onxi_type *ids = onxi_call_ranked(call, 0);
    for (size_t i = 0; i < sizeof search_graphs / sizeof *search_graphs; i++) {
        const onx_graph *graph = onxi_call_graph(call, search_graphs[i]);
        const uint32_t inputs = graph ? graph->input_count : 0, outputs = graph ? graph->output_count : 0;
        onxi_type *types = onx_arena_alloc(call->arena, (inputs + outputs + 1) * sizeof *types);
        if (!types)
            return ONX_E_MEMORY;
        if (graph)
            ONX_TRY(call->ops->subgraph(call, graph, types, inputs, types + inputs, outputs));
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        onxi_dim *dims;
        ONX_TRY(onxi_call_output(call, i, i ? ONX_FLOAT : ONX_INT32, ranks[beams][i], &dims));
        for (uint32_t d = 0; d < ranks[beams][i]; d++)
            dims[d] = ONXI_DIM_UNKNOWN;
        if (i != 2 && ids)
            dims[0] = ids->dims[0];
    }
    return ONX_OK;
}
