/* check_opset_doc.c - rules OS: operator-set documents. Most of these rules are checked by op/, which also compares
 * documents; this file checks the functions of a document like those of a model. */
#include "check/check.h"

const onx_rule onxi_check_rules_opset_doc[] = {
    { "OS-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Operator Sets; onnx-operators.in.proto: OperatorSetProto", "magic is present and is the text ONNXOPSET",
      "magic `ONNX`" },
    { "OS-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx-operators.in.proto: OperatorSetProto (int64; IR.md writes int32)",
      "ir_version is present and is the IR version of the writer", "ir_version missing" },
    { "OS-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Operator Sets",
      "A set other than the default names its domain, unique among all sets", "vendor set without domain" },
    { "OS-04", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Operator Sets",
      "That domain is a reverse-DNS name", "domain `ops`" },
    { "OS-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Operator Sets; Versioning.md: Operator sets",
      "opset_version is a simple number of at least 1 that grows with each change of the set", "opset_version 0" },
    { "OS-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Operator Set Identifiers",
      "(domain, opset_version) identifies one document", "two files for c:1" },
    { "OS-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-operators.in.proto: OperatorProto",
      "Each operator has an op_type", "operator without op_type" },
    { "OS-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx-operators.in.proto: OperatorSetProto.opset_version",
      "Each operator has a since_version between 1 and the opset_version", "since_version 3 in version 2" },
    { "OS-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-operators.in.proto: OperatorSetProto",
      "(name, version) is unique over operators and functions of the set", "operator A:1 twice" },
    { "OS-10", ONX_MUST, 0, ONX_BY_DIFF, ONX_RULE_WARNING, NULL, "IR.md: Operators",
      "since_version is the version in which the operator was first published", "since_version raised without change" },
    { "OS-11", ONX_MUST, 0, ONX_BY_DIFF, ONX_RULE_WARNING, NULL, "IR.md: Operators",
      "A STABLE operator does not change in later versions of the set", "attribute added to A:1" },
    { "OS-12", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx-operators.in.proto: OperatorProto.status",
      "An EXPERIMENTAL operator may change; it becomes stable by being replaced under the same name",
      "accept: status EXPERIMENTAL" },
    { "OS-13", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "F-01",
      "onnx-operators.in.proto: OperatorSetProto.functions (not in IR.md's table)",
      "Functions of the set satisfy the F rules", "function without name" },
    { "OS-14", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx-operators.in.proto",
      "ir_version_prerelease and ir_build_metadata may be absent", "accept: absent" },
    { "OS-15", ONX_MUST, 0, ONX_BY_DIFF, ONX_RULE_WARNING, NULL, "Versioning.md: Operator versioning",
      "Adding, removing or changing attributes, inputs, outputs or types, or new behaviour, makes a new operator version in a new set version; clarifications do not",
      "optional attribute added, version unchanged" },
    { "OS-16", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Operator Sets",
      "How documents are located is up to the implementation", "accept: search path option" },
    { 0 }
};

void onxi_check_operator_set(onxi_check *k, const onxi_check_at *at, const onx_operator_set *set)
{
    onxi_diag_mark before = onxi_diag_here(k->cx);
    onx_opset_check(k->cx, k->doc);
    onxi_check_adopt(k, before, NULL, "OS-01");
    if (set->ir_version > 0)
        k->ir_version = set->ir_version;
    onxi_check_doc_string(k, at, onx_view(set->doc_string));
    onxi_check_utf8(k, ONXI_AT(at, ir_version_prerelease), onx_view(set->ir_version_prerelease));
    onxi_check_utf8(k, ONXI_AT(at, ir_build_metadata), onx_view(set->ir_build_metadata));
    for (uint32_t i = 0; i < set->operator_count; i++) {
        const onx_operator *o = set->operator_[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, operator, i, OPERATOR, o);
        onxi_check_utf8(k, ONXI_AT(here, op_type), onx_view(o->op_type));
        onxi_check_doc_string(k, here, onx_view(o->doc_string));
        if (ONX_HAS(operator, o, status) && o->status != 0 && o->status != 1)
            onxi_check_find(k, here, "W-23",
                            (onxi_check_detail){ .value = onxi_check_number(k, o->status),
                                                 .expected = onx_str_of("EXPERIMENTAL or STABLE") },
                            "the status is none that ONNX defines");
    }
    onxi_check_callees_add(k, set->functions, set->functions_count);
    onxi_check_functions(k, at, set->functions, set->functions_count);
    onxi_check_call_cycles(k, at);
}
