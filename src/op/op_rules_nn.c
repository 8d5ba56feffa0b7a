/* op_rules_nn.c - rules of normalisation, dropout and attention. Windows are in op_rules_nn_window.c. */
#include "op/op_rules.h"

/* ---- normalisation ---- */

/* Outputs beyond the first of training variants are vectors over the channels. */
onx_status onxi_rule_batch_normalization(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    int32_t since = call->schema->since;
    onxi_dim channels = ONXI_DIM_UNKNOWN;
    (void)onxi_rule_unary(call);
    if (since >= 9 && x)
        channels = x->rank > 1 ? x->dims[1] : 1;
    for (uint32_t i = 1; i < 5 && since >= 9; i++) {
        const onxi_type *v = onxi_call_ranked(call, i);
        ONX_TRY(onxi_call_want_rank(call, i, 1));
        if (v)
            ONX_TRY(onxi_call_unify(call, channels, v->dims[0], "the number of channels", &channels));
    }
    if (since >= 14) {
        bool training = onxi_call_int(call, "training_mode", 0) != 0;
        if (call->output_count != (training ? 3 : 1))
            return onxi_call_fail(call, "training_mode is %d and there are %u outputs, expected %d", training,
                                  call->output_count, training ? 3 : 1);
    }
    for (uint32_t i = 1; i < call->output_count; i++) {
        onxi_dim *dims;
        /* The running mean and variance have a type of their own since version 14. */
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
