/* check_version.c - rules V: features that need a minimum ir_version. */
#include "check/check.h"

const onx_rule onxi_check_rules_version[] = {
    { "V-01", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "A-02", "onnx.in.proto: Version enum",
      "AttributeProto.type: 2", "ir_version 2 attribute without type" },
    { "V-02", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "O-02", "onnx.in.proto: Version enum",
      "opset_import, OperatorSetIdProto: 3", "ir_version 2 with opset_import" },
    { "V-03", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "NodeProto.domain: 3", "ir_version 2, node domain `c`" },
    { "V-04", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "G-14", "onnx.in.proto: Version enum",
      "Initializers that are not inputs: 4", "see G-14" },
    { "V-05", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "BFLOAT16: 4", "ir_version 3 with BFLOAT16" },
    { "V-06", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "quantization_annotation, TensorAnnotation: 5", "ir_version 4 with an annotation" },
    { "V-07", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "SparseTensorProto, sparse_initializer, sparse attributes: 6", "ir_version 3 with sparse_initializer" },
    { "V-08", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Standard data types",
      "Sequence and map types in the base variant: 6 (the ML variant had them before, so this is only informative)",
      "ir_version 5 with seq(float) and no ML operator" },
    { "V-09", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "IR.md: Components; onnx.in.proto: Version enum", "training_info: 7", "ir_version 6 with training_info" },
    { "V-10", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "ModelProto.functions: 8", "ir_version 7 with functions" },
    { "V-11", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: Version enum; IR.md: Dynamic Optional", "TypeProto.Optional and TypeProto.SparseTensor: 8",
      "ir_version 7 with optional(float)" },
    { "V-12", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "onnx.in.proto: FunctionProto",
      "FunctionProto since_version and status: below 8 only", "field 2 in an ir_version 8 function" },
    { "V-13", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: Version enum; IR.md: Functions", "FunctionProto.attribute_proto: 9",
      "ir_version 8 with attribute_proto" },
    { "V-14", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ: 9", "ir_version 8 with FLOAT8E5M2" },
    { "V-15", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "UINT4, INT4: 10", "ir_version 9 with INT4" },
    { "V-16", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions; Nodes",
      "overload on nodes and functions: 10", "ir_version 9 with overload" },
    { "V-17", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "IR.md: Other Metadata; onnx.in.proto: Version enum",
      "metadata_props outside the model message (graph, node, function, value info, tensor): 10",
      "ir_version 9 graph metadata" },
    { "V-18", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Functions",
      "FunctionProto.value_info: 10", "ir_version 9 with function value_info" },
    { "V-19", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "FLOAT4E2M1: 11", "ir_version 10 with FLOAT4E2M1" },
    { "V-20", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Multi-Device Configuration",
      "ModelProto.configuration, NodeProto.device_configurations and the sharding messages: 11",
      "ir_version 10 with configuration" },
    { "V-21", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "FLOAT8E8M0: 12", "ir_version 11 with FLOAT8E8M0" },
    { "V-22", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "UINT2, INT2: 13", "ir_version 12 with INT2" },
    { "V-23", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "onnx.in.proto: Version enum",
      "TypeProto.Opaque in the base variant: 14 (the ML variant had it before, so this is only informative)",
      "ir_version 10 with opaque(d,A)" },
    { "V-24", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_WARNING, "O-14", "Versioning.md: Released Versions",
      "The imported operator-set versions need the IR version of the release that introduced them (same as O-14)",
      "ir_version 7 with default set 21" },
    { "V-25", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: Version enum (silent)",
      "Features with no recorded gate are accepted under any ir_version: external_data, denotations, ref_attr_name, TYPE_PROTO attributes, segment",
      "accept: ir_version 3 with external data" },
    { "V-26", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_WRITER, ONX_RULE_NONE, NULL, "Versioning.md: IR versioning",
      "Our writer raises ir_version on request to the smallest value that covers the features used, never lowers it silently",
      "n/a" },
    { "V-27", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "FLOAT6E2M3, FLOAT6E3M2: 14", "ir_version 13 with FLOAT6E2M3" },
    { 0 }
};

void onxi_check_gate(onxi_check *k, const onxi_check_at *at, const char *rule, const char *feature, int64_t since)
{
    if (k->ir_version >= since)
        return;
    onxi_check_find(k, at, rule,
                    (onxi_check_detail){ .value = onxi_check_text(k, "ir_version %lld", (long long)k->ir_version),
                                         .expected = onxi_check_text(k, "%lld or more", (long long)since),
                                         .hint = onxi_check_text(k, "set ir_version to %lld", (long long)since) },
                    "%s came with IR version %lld", feature, (long long)since);
}

void onxi_check_dtype_version(onxi_check *k, const onxi_check_at *at, int64_t dtype)
{
    int since = onx_dtype_ir_version(dtype);
    if (k->ir_version >= since)
        return;
    const char *rule = dtype == ONX_BFLOAT16 ? "V-05"
                       : since == 9          ? "V-14"
                       : since == 10         ? "V-15"
                       : since == 11         ? "V-19"
                       : since == 12         ? "V-21"
                       : since == 13         ? "V-22"
                                             : "V-27";
    onxi_check_gate(k, at, rule, onx_dtype_name(dtype), since);
}
