/* nn.c - rules of normalisation and dropout. nn_window.c has those of windows. */
#include "op/op_rules.h"

/* ---- normalisation ---- */

/* In training, the outputs beyond the first are vectors over the channels. */
onx_status onxi_rule_batch_normalization(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    int32_t since = call->schema->since;
    onxi_dim channels = ONXI_DIM_UNKNOWN;
    (void)onxi_rule_unary(call);
    const onxi_type *mean = since < 9 && call->input_count > 3 ? onxi_call_ranked(call, 3) : NULL;
    if (since >= 9 && x)
        channels = x->rank > 1 ? x->dims[1] : 1;
    else if (mean && mean->rank == 1) /* one per element of an image without `spatial` */
        channels = mean->dims[0];
    for (uint32_t i = 1; i < 5 && since >= 9; i++) {
        const onxi_type *v = onxi_call_ranked(call, i);
        ONX_TRY(onxi_call_want_rank(call, i, 1));
        if (v)
            ONX_TRY(onxi_call_unify(call, channels, v->dims[0], "the number of channels", &channels));
    }
    if (since >= 14) {
        bool training = onxi_call_int(call, "training_mode") != 0;
        if (call->output_count != (training ? 3 : 1))
            return onxi_call_fail(call, "training_mode is %d and there are %u outputs, expected %d", training,
                                  call->output_count, training ? 3 : 1);
    } else if (call->output_count != 1 && call->output_count != 5) {
        return onxi_call_fail(call, "there are %u outputs, expected 1 or, in training, 5", call->output_count);
    }
    for (uint32_t i = 1; i < call->output_count; i++) {
        onxi_dim *dims;
        /* The running mean and variance have their own type since version 14. */
        int dtype = onxi_call_dtype(call, since >= 14 ? i + 2 : 0);
        ONX_TRY(onxi_call_output(call, i, dtype, 1, &dims));
        dims[0] = channels;
    }
    return ONX_OK;
}

/* Dropout: the mask has the shape of the input; it became bool in version 10. */
onx_status onxi_rule_dropout(onxi_call *call)
{
    const onxi_type *x = onxi_call_tensor(call, 0);
    onxi_call_shape_of(call, 0, x);
    if (call->output_count > 1)
        onxi_call_output_unranked(call, 1, call->schema->since >= 10 ? ONX_BOOL : onxi_call_dtype(call, 0));
    onxi_call_shape_of(call, 1, x);
    if (call->schema->since < 12)
        return ONX_OK;
    ONX_TRY(onxi_call_want_rank(call, 1, 0));
    return onxi_call_want_rank(call, 2, 0);
}

/* LayerNormalization: mean and inverse deviation have size 1 from the axis on, in the type of the computation. */
onx_status onxi_rule_layer_normalization(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    int64_t stash = onxi_call_int(call, "stash_type");
    uint32_t axis;
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    if (!onx_dtype_name(stash))
        return onxi_call_fail(call, "attribute stash_type is %lld, which is no element type", (long long)stash);
    for (uint32_t i = 1; i < 3; i++)
        onxi_call_output_unranked(call, i, (int)stash);
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    for (uint32_t i = 1; i < 3; i++) {
        ONX_TRY(onxi_call_want_one_way(call, i, x->rank, x->dims));
        onxi_dim *dims;
        ONX_TRY(onxi_call_output(call, i, (int)stash, x->rank, &dims));
        for (uint32_t k = 0; k < x->rank; k++)
            dims[k] = k < axis ? x->dims[k] : 1;
    }
    return ONX_OK;
}

/* RMSNormalization: the shape does not change, the axis has to exist. */
onx_status onxi_rule_rms_normalization(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t axis;
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    return onxi_call_want_one_way(call, 1, x->rank, x->dims);
}

/* InstanceNormalization: a scale and a bias per channel. */
onx_status onxi_rule_instance_normalization(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    for (uint32_t i = 1; i < 3; i++)
        ONX_TRY(onxi_call_want_vector(call, i, x && x->rank > 1 ? x->dims[1] : ONXI_DIM_UNKNOWN));
    return onxi_rule_unary(call);
}

/* GroupNormalization: a scale and a bias per channel, before version 21 per group. */
onx_status onxi_rule_group_normalization(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    int64_t groups = onxi_call_int(call, "num_groups");
    onxi_dim channels = x && x->rank > 1 ? x->dims[1] : ONXI_DIM_UNKNOWN;
    if (groups < 1)
        return onxi_call_fail(call, "attribute num_groups is %lld", (long long)groups);
    if (onxi_dim_is_const(channels) && channels % groups != 0)
        return onxi_call_fail(call, "%lld channels are not divisible by num_groups %lld", (long long)channels,
                              (long long)groups);
    for (uint32_t i = 1; i < 3; i++)
        ONX_TRY(onxi_call_want_vector(call, i, call->schema->since < 21 ? groups : channels));
    return onxi_rule_unary(call);
}

onx_status onxi_rule_rotary_embedding(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    if (x && x->rank != 3 && x->rank != 4)
        return onxi_call_fail(call, "the input has rank %u, expected 3 or 4", x->rank);
    if (x && x->rank == 3 && !onxi_call_given(call, "num_heads"))
        return onxi_call_fail(call, "an input of rank 3 needs attribute num_heads");
    return ONX_OK;
}

/* TfIdfVectorizer: one element per n-gram in ngram_indexes. */
onx_status onxi_rule_tf_idf(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t count;
    int64_t most = -1;
    onxi_dim *dims;
    const int64_t *indexes = onxi_call_ints(call, "ngram_indexes", &count);
    onxi_call_output_unranked(call, 0, ONX_FLOAT);
    for (uint32_t i = 0; i < count; i++) {
        if (indexes[i] < 0)
            return onxi_call_fail(call, "attribute ngram_indexes has the value %lld", (long long)indexes[i]);
        most = indexes[i] > most ? indexes[i] : most;
    }
    if (!count)
        return onxi_call_fail(call, "attribute ngram_indexes is empty");
    if (!x)
        return ONX_OK;
    if (x->rank != 1 && x->rank != 2)
        return onxi_call_fail(call, "the input has rank %u, expected 1 or 2", x->rank);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    dims[0] = x->dims[0];
    dims[x->rank - 1] = onxi_dim_add(call->dims, most, 1);
    return ONX_OK;
}
