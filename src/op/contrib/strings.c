/* strings.c - rows of ai.onnx.contrib for strings and ragged tensors. */
#include "op/contrib/contrib.h"

/* clang-format off */

static const onxi_port text_in[] = { { "input", "tensor(string)", 0 }, { 0 } };
static const onxi_port text_out[] = { { "output", "tensor(string)", 0 }, { 0 } };
static const onxi_port numbers_out[] = { { "output", "tensor(int64)", 0 }, { 0 } };

CONTRIB_ROW(StringUpper, .infer = onxi_rule_contrib_same_shape, ARITY(1, 1, 1, 1), .inputs = text_in, .outputs = text_out)
CONTRIB_ROW(StringLower, .infer = onxi_rule_contrib_same_shape, ARITY(1, 1, 1, 1), .inputs = text_in, .outputs = text_out)
CONTRIB_ROW(StringStrip, .infer = onxi_rule_contrib_same_shape, ARITY(1, 1, 1, 1), .inputs = text_in, .outputs = text_out)
CONTRIB_ROW(StringLength, .infer = onxi_rule_contrib_same_shape, ARITY(1, 1, 1, 1), .inputs = text_in,
            .outputs = numbers_out)
CONTRIB_ROW(StringMapping, .infer = onxi_rule_contrib_same_shape, ARITY(1, 1, 1, 1), .inputs = text_in,
            .outputs = text_out, .attrs = ATTRS({ "map", STRING, REQUIRED }))
CONTRIB_ROW(StringToHashBucket, .infer = onxi_rule_contrib_same_shape, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "input", "tensor(string)", 0 }, { "num_buckets", "tensor(int64)", 0 }),
            .outputs = numbers_out)
CONTRIB_ROW(StringToHashBucketFast, .infer = onxi_rule_contrib_same_shape, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "input", "tensor(string)", 0 }, { "num_buckets", "tensor(int64)", 0 }),
            .outputs = numbers_out)
CONTRIB_ROW(StringConcat, .infer = onxi_rule_contrib_concat, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "left", "tensor(string)", 0 }, { "right", "tensor(string)", 0 }), .outputs = text_out)
CONTRIB_ROW(StringEqual, .infer = onxi_rule_contrib_equal, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "x", "tensor(string)", 0 }, { "y", "tensor(string)", 0 }),
            .outputs = PORTS({ "z", "tensor(bool)", 0 }))
CONTRIB_ROW(StringJoin, .infer = onxi_rule_contrib_join, ARITY(3, 3, 1, 1),
            .inputs = PORTS({ "X", "tensor(string)", 0 }, { "sep", "tensor(string)", 0 }, { "axis", "tensor(int64)", 0 }),
            .outputs = text_out)
CONTRIB_ROW(StringSplit, .infer = onxi_rule_contrib_split, ARITY(3, 3, 3, 3),
            .inputs = PORTS({ "X", "tensor(string)", 0 }, { "sep", "tensor(string)", 0 }, { "skip_empty", "tensor(bool)", 0 }),
            .outputs = PORTS({ "indices", "tensor(int64)", 0 }, { "text", "tensor(string)", 0 }, { "shape", "tensor(int64)", 0 }))
CONTRIB_ROW(MaskedFill, .infer = onxi_rule_contrib_masked_fill, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "value", "tensor(string)", 0 }, { "mask", "tensor(bool)", 0 }), .outputs = text_out)
CONTRIB_ROW(StringToVector, .infer = onxi_rule_contrib_string_to_vector, ARITY(1, 1, 1, 1), .inputs = text_in,
            .outputs = numbers_out, .attrs = ATTRS({ "map", STRING, REQUIRED }, { "unk", STRING, REQUIRED }))
CONTRIB_ROW(VectorToString, .infer = onxi_rule_contrib_vector_to_string, ARITY(1, 1, 1, 1),
            .inputs = PORTS({ "input", "tensor(int64)", 0 }), .outputs = text_out,
            .attrs = ATTRS({ "map", STRING, REQUIRED }, { "unk", STRING, TEXT("") }))

/* ---- expressions ---- */

static const onxi_port replace_inputs[] = { { "text", "tensor(string)", 0 }, { "pattern", "tensor(string)", 0 }, { "rewrite", "tensor(string)", 0 }, { 0 } };
static const onxi_port split_inputs[] = { { "text", "tensor(string)", 0 }, { "delim_regex_pattern", "tensor(string)", 0 }, { "keep_delim_regex_pattern", "tensor(string)", 0 }, { 0 } };
static const onxi_port split_outputs[] = { { "words", "tensor(string)", 0 }, { "begins", "tensor(int64)", 0 }, { "ends", "tensor(int64)", 0 }, { "row_indices", "tensor(int64)", 0 }, { 0 } };

CONTRIB_ROW(StringRegexReplace, .infer = onxi_rule_contrib_same_shape, ARITY(3, 3, 1, 1), .inputs = replace_inputs,
            .outputs = text_out, .attrs = ATTRS({ "global_replace", INT, DEFAULT("1") }))
CONTRIB_ROW(StringECMARegexReplace, .infer = onxi_rule_contrib_same_shape, ARITY(3, 3, 1, 1), .inputs = replace_inputs,
            .outputs = text_out, .attrs = ATTRS({ "global_replace", INT, DEFAULT("1") }, { "ignore_case", INT, DEFAULT("0") }))
CONTRIB_ROW(StringRegexSplitWithOffsets, .infer = onxi_rule_contrib_split_words, ARITY(3, 3, 4, 4), .inputs = split_inputs,
            .outputs = split_outputs)
CONTRIB_ROW(StringECMARegexSplitWithOffsets, .infer = onxi_rule_contrib_split_words, ARITY(3, 3, 4, 4), .inputs = split_inputs,
            .outputs = split_outputs, .attrs = ATTRS({ "ignore_case", INT, DEFAULT("0") }))

/* ---- ragged tensors: row_splits has the start of each row in the list of all elements, and the end of the last row
 * ---- */

CONTRIB_ROW(RaggedTensorToSparse, .infer = onxi_rule_contrib_ragged_to_sparse, ARITY(1, 1, 2, 2),
            .inputs = PORTS({ "row_splits", "tensor(int64)", 0 }),
            .outputs = PORTS({ "indices", "tensor(int64)", 0 }, { "shape", "tensor(int64)", 0 }))
CONTRIB_ROW(RaggedTensorToDense, .infer = onxi_rule_contrib_ragged_to_dense, ARITY(4, 4, 1, 1),
            .inputs = PORTS({ "shape", "tensor(int64)", 0 }, { "values", "tensor(int64)", 0 }, { "default", "tensor(int64)", 0 },
                            { "row_splits", "tensor(int64)", 0 }),
            .outputs = numbers_out, .attrs = ATTRS({ "missing_value", INT, DEFAULT("-1") }))
CONTRIB_ROW(StringRaggedTensorToDense, .infer = onxi_rule_contrib_ragged_texts_to_dense, ARITY(4, 4, 1, 1),
            .inputs = PORTS({ "shape", "tensor(int64)", 0 }, { "values", "tensor(string)", 0 }, { "row_splits", "tensor(int64)", 0 },
                            { "default", "tensor(string)", 0 }),
            .outputs = text_out)
