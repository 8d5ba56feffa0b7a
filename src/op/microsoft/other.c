/* other.c - rows of com.microsoft with their own kernels: images, strings, tokens, hashes. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

#define ANYTHING (NUMERIC_13 | BIT(BOOL) | BIT(STRING) | COMPLEX)

MS_ROW(Inverse, .infer = onxi_rule_microsoft_inverse, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }), .types = TYPES({ "T", T(FLOATING) }))

/* Sparse initializers are converted to dense tensors, as everywhere. */
#define SPARSE_OR_DENSE { .tensor = WIDE_NUMERIC ^ BIT(FLOAT16), .sparse_tensor = WIDE_NUMERIC ^ BIT(FLOAT16) }
MS_ROW(SparseToDenseMatMul, .infer = onxi_rule_microsoft_sparse_matmul, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "A", "T", 0 }, { "B", "T1", 0 }), .outputs = PORTS({ "Y", "T1", 0 }),
       .attrs = ATTRS({ "alpha", FLOAT, DEFAULT("1") }, { "transA", INT, DEFAULT("0") }, { "transB", INT, DEFAULT("0") }),
       .types = TYPES({ "T", SPARSE_OR_DENSE }, { "T1", T(WIDE_NUMERIC ^ BIT(FLOAT16)) }))

MS_ROW(UnfoldTensor, .infer = onxi_rule_microsoft_unfold, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "input", "T", 0 }), .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "dim", INT, DEFAULT("-1") }, { "size", INT, REQUIRED }, { "step", INT, DEFAULT("1") }),
       .types = TYPES({ "T", T(ANYTHING) }))

MS_ROW(CropAndResize, .infer = onxi_rule_microsoft_crop_and_resize, .flags = INFERS, ARITY(4, 4, 1, 1),
       .inputs = PORTS({ "X", "T1", 0 }, { "rois", "T1", 0 }, { "batch_indices", "T2", 0 }, { "crop_size", "T2", 0 }),
       .outputs = PORTS({ "Y", "T1", 0 }),
       .attrs = ATTRS({ "extrapolation_value", FLOAT, DEFAULT("0") }, { "mode", STRING, TEXT("bilinear") }),
       .types = TYPES({ "T1", T(FLOATING) }, { "T2", T_INT32 }))

MS_ROW(DynamicTimeWarping, .infer = onxi_rule_microsoft_time_warping, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "input", "F", 0 }), .outputs = PORTS({ "output", "I", 0 }),
       .types = TYPES({ "F", T_FLOAT }, { "I", T_INT32 }))

MS_ROW(MurmurHash3, .infer = onxi_rule_microsoft_murmur_hash, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
       .attrs = ATTRS({ "positive", INT, DEFAULT("1") }, { "seed", INT, DEFAULT("0") }),
       .types = TYPES({ "T1", T(BIT(UINT32) | BIT(INT32) | BIT(UINT64) | BIT(INT64) | BIT(FLOAT) | BIT(DOUBLE) | BIT(STRING)) },
                      { "T2", T(BIT(UINT32) | BIT(INT32)) }))

MS_ROW(MaxpoolWithMask, .infer = onxi_rule_microsoft_maxpool_with_mask, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }, { "M", "tensor(int32)", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "auto_pad", STRING, TEXT("NOTSET") }, { "kernel_shape", INTS, OPTIONAL }, { "pads", INTS, OPTIONAL },
                      { "storage_order", INT, DEFAULT("0") }, { "strides", INTS, OPTIONAL }),
       .types = TYPES({ "T", T_FLOAT }))

MS_ROW(WordConvEmbedding, .infer = onxi_rule_microsoft_word_conv_embedding, .flags = INFERS, ARITY(4, 4, 1, 1),
       .inputs = PORTS({ "Sequence", "T", 0 }, { "W", "T1", 0 }, { "B", "T1", 0 }, { "C", "T1", 0 }),
       .outputs = PORTS({ "Y", "T1", 0 }),
       .attrs = ATTRS({ "char_embedding_size", INT, OPTIONAL }, { "conv_window_size", INT, OPTIONAL },
                      { "embedding_size", INT, OPTIONAL }),
       .types = TYPES({ "T", T_INT32 }, { "T1", T_FLOAT }))

MS_ROW(NGramRepeatBlock, .infer = onxi_rule_microsoft_ngram_repeat_block, .flags = INFERS, ARITY(2, 2, 1, 1),
       .inputs = PORTS({ "input_ids", "Tid", 0 }, { "scores", "T", 0 }), .outputs = PORTS({ "scores_out", "T", 0 }),
       .attrs = ATTRS({ "ngram_size", INT, REQUIRED }), .types = TYPES({ "Tid", T_INT64 }, { "T", T_FLOAT }))

MS_ROW(BifurcationDetector, .infer = onxi_rule_microsoft_bifurcation, .flags = INFERS, ARITY(3, 4, 2, 2),
       .inputs = PORTS({ "src_tokens", "T", 0 }, { "cur_tokens", "T", 0 }, { "prev_suffix_match_idx", "T", 0 },
                       { "pred_tokens", "T", OPT }),
       .outputs = PORTS({ "tokens", "T", 0 }, { "suffix_match_idx", "T", 0 }),
       .attrs = ATTRS({ "max_ngram_size", INT, DEFAULT("3") }, { "min_ngram_size", INT, DEFAULT("1") }),
       .types = TYPES({ "T", T_INT64 }))

MS_ROW(Tokenizer, .infer = onxi_rule_microsoft_tokenizer, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "mark", INT, REQUIRED }, { "mincharnum", INT, REQUIRED }, { "pad_value", STRING, REQUIRED },
                      { "separators", STRINGS, OPTIONAL }, { "tokenexp", STRING, OPTIONAL }),
       .types = TYPES({ "T", T(BIT(STRING)) }))
