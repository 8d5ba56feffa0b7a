/* contrib.h - macros for rows of the domain ai.onnx.contrib, the operators of ONNX Runtime Extensions: pre- and
 * post-processing in models, mostly of text. Each has one version, 1. */
#ifndef ONXI_OP_CONTRIB_H
#define ONXI_OP_CONTRIB_H

#include "op/op_rows.h"

#define CONTRIB_ROW(operator_, ...)                                                                                    \
    const onxi_schema onxi_op_contrib_##operator_[] = {                                                                \
        { .domain = "ai.onnx.contrib", .name = #operator_, .since = 1, .flags = INFERS, __VA_ARGS__ },                 \
        { .name = NULL },                                                                                              \
    };

/* An operator with additional flags, or one that is composed of standard operators. */
#define CONTRIB_BODY(operator_, ...)                                                                                   \
    const onxi_schema onxi_op_contrib_##operator_[] = {                                                                \
        { .domain = "ai.onnx.contrib", .name = #operator_, .since = 1, __VA_ARGS__ },                                  \
        { .name = NULL },                                                                                              \
    };

#define RULE(name) onx_status onxi_rule_contrib_##name(onxi_call *call)
RULE(same_shape);
RULE(concat);
RULE(equal);
RULE(join);
RULE(split);
RULE(split_words);
RULE(masked_fill);
RULE(string_to_vector);
RULE(vector_to_string);
RULE(ragged_to_sparse);
RULE(ragged_to_dense);
RULE(ragged_texts_to_dense);
RULE(segments);
RULE(decode_image);
RULE(inverse);
RULE(stft_norm);
RULE(signal_segments);
RULE(merge_segments);
RULE(draw_boxes);
RULE(blur);
RULE(encode_image);
RULE(read_image);
RULE(audio);
RULE(trie_ids);
RULE(token_ids);
RULE(token_list);
RULE(one_text);
RULE(bert_ids);
RULE(bert_texts);
RULE(bpe_texts);
#undef RULE

#endif
