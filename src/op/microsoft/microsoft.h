/* microsoft.h - macros for rows of the domain com.microsoft, the operators of ONNX Runtime. Each has one version, 1. If
 * a row has no rule, types and shapes follow from its body. */
#ifndef ONXI_OP_MICROSOFT_H
#define ONXI_OP_MICROSOFT_H

#include "op/op_rows.h"

#define MS_ROW_OF(domain_, symbol, operator_, ...)                                                                     \
    const onxi_schema onxi_op_microsoft_##symbol[] = {                                                                 \
        { .domain = domain_, .name = #operator_, .since = 1, __VA_ARGS__ },                                            \
        { .name = NULL },                                                                                              \
    };
#define MS_ROW(operator_, ...) MS_ROW_OF("com.microsoft", operator_, operator_, __VA_ARGS__)

#define T_FLOAT   T(BIT(FLOAT))
#define T_FLOAT16 T(BIT(FLOAT) | BIT(FLOAT16))
#define T_HALVES  T(BIT(FLOAT16) | BIT(BFLOAT16))
#define T_BYTES   T(INTS_8)
#define T_INT32   T(BIT(INT32))
#define T_INT64   T(BIT(INT64))

/* ---- conditions on calls ---- */

/* An optional string attribute has this value. */
bool onxi_ms_text_is(onxi_call *call, const char *name, const char *text);
/* An integer attribute is given, or has a default, and is not 0. */
#define MS_SET(name)  onxi_call_is_set(call, name)
#define MS_HAS(input) onxi_call_has_input(call, input)

/* Does a CausalConvWithState use what only accelerators have? */
bool onxi_ms_conv_is_extended(onxi_call *call);

/* The activation of operators with a fused activation. */
#define MS_ACTIVATION(prefix, name) WHEN(prefix##_##name, onxi_ms_text_is(call, "activation", #name))

#define RULE(name) onx_status onxi_rule_microsoft_##name(onxi_call *call)
RULE(fused_conv);
RULE(block_size);
RULE(fused_gemm);
RULE(qgemm);
RULE(cdist);
RULE(qlinear_concat);
RULE(matmul_integer16);
RULE(attention);
RULE(multi_head_attention);
RULE(group_query_attention);
RULE(sparse_attention);
RULE(matmul_nbits);
RULE(matmul_fpq4);
RULE(gather_block_quantized);
RULE(inverse);
RULE(sparse_matmul);
RULE(unfold);
RULE(crop_and_resize);
RULE(time_warping);
RULE(murmur_hash);
RULE(maxpool_with_mask);
RULE(word_conv_embedding);
RULE(ngram_repeat_block);
RULE(bifurcation);
RULE(tokenizer);
RULE(search);
RULE(image_scaler);
RULE(crop);
RULE(linear_attention);
RULE(causal_conv);
RULE(mrotary);
RULE(engram_gate);
RULE(ngram_hash);
RULE(lstm);
RULE(gated_delta_net);
RULE(gated_norm);
RULE(dims); /* by the text in dims.def */
#undef RULE

#endif
