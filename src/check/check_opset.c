/* check_opset.c - rules O: the operator sets that a model or a function imports. */
#include "check/check.h"

const onx_rule onxi_check_rules_opset[] = {
    { "O-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: ModelProto.opset_import; IR.md: Operator Sets",
      "With ir_version 3 or more the model lists at least one operator set, and one of them is the default set",
      "ir_version 14, empty opset_import" },
    { "O-02", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: Version enum; reference checker",
      "With ir_version below 3 there is no opset_import; version 1 of the default set is implied",
      "ir_version 2 with opset_import" },
    { "O-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: OperatorSetIdProto",
      "Every entry carries a version", "entry with domain only" },
    { "O-04", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Operator Set Identifiers",
      "The version is at least 1", "version 0" },
    { "O-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: OperatorSetIdProto; IR.md: Operator Set Identifiers",
      "An entry for anything but the default set names its domain; empty or absent means the default set",
      "version 5 of the ML set written without a domain is taken as default set 5" },
    { "O-06", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "reference constants; ONNXTypes.md: Opaque Type",
      "The two spellings of the default domain, empty and `ai.onnx`, are one domain everywhere: imports, nodes, functions, function imports",
      "import `\"\"` 28 and `ai.onnx` 27" },
    { "O-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: ModelProto.opset_import, FunctionProto.opset_import",
      "If one domain is imported more than once the highest version applies; in a function at most one version per domain can be used",
      "default set 28 then 13" },
    { "O-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Models",
      "A version newer than the newest known for a standard domain is refused (default 28, ai.onnx.ml 5, ai.onnx.training 1, ai.onnx.preview 1, ai.onnx.preview.training 1)",
      "default set version 1000000" },
    { "O-09", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "reference checker",
      "Versions beyond 32 bits are refused with a message", "version 1099511627776" },
    { "O-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Operators; Versioning.md: Operator sets",
      "Every node's domain is among the imports of its model, or of its function when it sits in a function body",
      "node domain `c`, not imported" },
    { "O-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: ModelProto.opset_import; Versioning.md: Operator versioning",
      "Each node binds to the operator of that name with the greatest since_version not above the imported version",
      "Gelu with default set 13" },
    { "O-12", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Operator Set Identifiers",
      "Operator-set domains other than the default use reverse-DNS names", "domain `my ops`" },
    { "O-13", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "hygiene",
      "An imported set that no node and no function uses is pointed out", "ai.onnx.ml imported, no ML node" },
    { "O-14", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "Versioning.md: Released Versions",
      "The imported versions do not need a newer IR version than the model declares (see the release table of Versioning.md)",
      "ir_version 3 with default set 28" },
    { "O-15", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "reference schema registry comments",
      "Use of a preview domain is pointed out, since its operators may change without a new version",
      "ai.onnx.preview FlexAttention" },
    { 0 }
};

static const char *const standard_domains[] = {
    "", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training"
};

/* The bit of a domain of the standard; 0: it is not one. */
static uint32_t domain_bit(onx_str domain)
{
    for (size_t i = 0; i < sizeof standard_domains / sizeof *standard_domains; i++)
        if (onx_str_is(domain, standard_domains[i]))
            return UINT32_C(1) << i;
    return 0;
}

bool onxi_check_domain_is_standard(onx_str domain)
{
    return domain_bit(domain) != 0;
}

/* The newest version of a standard domain; ai.onnx.training is declared but has no operators. */
static int64_t newest(onx_str domain)
{
    int64_t version = onxi_domain_newest(domain);
    return version ? version : 1;
}

bool onxi_check_import_is_newer(const onx_operator_set_id *import)
{
    const onx_str domain = onxi_domain_plain(onx_view(import->domain));
    return onxi_check_domain_is_standard(domain) && import->version <= INT32_MAX && import->version > newest(domain);
}

void onxi_check_warn_of_newer(onx_ctx *cx, const onx_model *model, const char *are)
{
    for (uint32_t i = 0; i < model->opset_import_count; i++) {
        const onx_operator_set_id *import = model->opset_import[i];
        const onx_str domain = onxi_domain_plain(onx_view(import->domain));
        if (onxi_check_import_is_newer(import))
            onxi_warn(cx, ONX_WARNING, "O-08", ONXI_NOWHERE,
                      "version %lld of %.*s is newer than the newest known, %lld, by which its operators %s",
                      (long long)import->version, ONX_ARG(domain.len ? domain : onx_str_of("ai.onnx")),
                      (long long)newest(domain), are);
    }
}

void onxi_check_import_ir(onxi_check *k, const onxi_check_at *at, onx_str domain, int64_t version)
{
    const int64_t ir = onxi_import_ir_version(domain, version);
    if (k->ir_version < ir)
        onxi_check_find(k, at, "O-14",
                        (onxi_check_detail){ .value = onxi_check_text(k, "ir_version %lld", (long long)k->ir_version),
                                             .expected = onxi_check_text(k, "%lld or more", (long long)ir) },
                        "version %lld of the operator set came with IR version %lld", (long long)version,
                        (long long)ir);
}

static void check_version(onxi_check *k, const onxi_check_at *at, const onx_operator_set_id *id)
{
    onx_str domain = onxi_domain_plain(onx_view(id->domain));
    const onxi_check_at *here = ONXI_AT(at, version);
    onx_str value = onxi_check_number(k, id->version);
    if (!ONX_HAS(operator_set_id, id, version)) {
        onxi_check_find(k, at, "O-03", ONXI_PLAIN, "the operator set has no version");
        return;
    }
    if (id->version < 1) {
        onxi_check_find(k, here, "O-04", (onxi_check_detail){ .value = value, .expected = onx_str_of("1 or more") },
                        "the version is too small");
        return;
    }
    if (id->version > INT32_MAX) {
        onxi_check_find(k, here, "O-09", (onxi_check_detail){ .value = value }, "the version does not fit 32 bits");
        return;
    }
    if (onxi_check_import_is_newer(id)) {
        const bool lenient = k->flags & ONX_CHECK_NEWER_OPSETS;
        if (!lenient || !(k->newer_imported & domain_bit(domain)))
            onxi_check_find(k, here, "O-08",
                            (onxi_check_detail){ .value = value,
                                                 .expected = onxi_check_text(k, "1 to %lld", (long long)newest(domain)),
                                                 .severity = lenient ? ONX_RULE_WARNING : ONX_RULE_NONE },
                            lenient ? "the version is newer than the newest known, by which the nodes are judged"
                                    : "the version is newer than the newest known");
        k->newer_imported |= domain_bit(domain);
        return;
    }
    if (k->ir_version >= 3) /* otherwise the imports themselves are too new */
        onxi_check_import_ir(k, here, domain, id->version);
}

/* A duplicate domain: one row per case decides the severity. */
static void check_twice(onxi_check *k, const onxi_check_at *at, const onx_operator_set_id *id,
                        const onx_operator_set_id *first, bool function)
{
    bool spelling = onx_view(id->domain).len != onx_view(first->domain).len, same = id->version == first->version;
    onx_str hint = onxi_check_text(k, "version %lld is imported already", (long long)first->version);
    if (same && !spelling)
        onxi_check_find(k, at, "O-07", (onxi_check_detail){ .severity = ONX_RULE_WARNING, .hint = hint },
                        "the operator set is imported twice");
    else if (function && !same)
        onxi_check_find(k, at, "F-07", (onxi_check_detail){ .value = onxi_check_number(k, id->version), .hint = hint },
                        "the function imports two versions of one operator set");
    else if (!same)
        onxi_check_find(
            k, at, spelling ? "O-06" : "O-07",
            (onxi_check_detail){ .value = onxi_check_number(k, id->version), .severity = ONX_RULE_ERROR, .hint = hint },
            spelling ? "the domain is imported under both its spellings with different versions"
                     : "the operator set is imported in two versions");
}

/* Reported once per model, because functions repeat the model's imports. */
static void report_odd_domain(onxi_check *k, const onxi_check_at *at, onx_str domain)
{
    uint32_t first;
    if (!k->odd_domains)
        k->odd_domains = onxi_check_set_new(k);
    if (onxi_check_set_add(k, k->odd_domains, domain, 0, &first))
        onxi_check_find(k, at, "O-12", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, domain)) },
                        "the domain is no reverse-DNS name");
}

void onxi_check_imports(onxi_check *k, const onxi_check_at *at, onx_operator_set_id *const *list, uint32_t count,
                        bool function)
{
    onxi_check_set *seen = onxi_check_set_new(k);
    bool has_default = false;
    for (uint32_t i = 0; i < count; i++) {
        const onx_operator_set_id *id = list[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, opset_import, i, OPERATOR_SET_ID, id);
        onx_str domain = onxi_domain_plain(onx_view(id->domain));
        uint32_t first;
        onxi_check_utf8(k, here, domain);
        has_default |= !domain.len;
        check_version(k, here, id);
        if (!onxi_check_set_add(k, seen, domain, i, &first))
            check_twice(k, here, id, list[first], function);
        if (!onxi_check_domain_is_standard(domain) && !onxi_check_is_reverse_dns(domain))
            report_odd_domain(k, here, domain);
        if (onx_str_is(domain, "ai.onnx.preview") || onx_str_is(domain, "ai.onnx.preview.training"))
            onxi_check_find(k, here, "O-15", ONXI_PLAIN,
                            "operators of a preview domain may change without a new version");
    }
    if (function)
        return;
    if (k->ir_version < 3) {
        if (count)
            onxi_check_find(
                k, at, "O-02",
                (onxi_check_detail){ .value = onxi_check_text(k, "ir_version %lld", (long long)k->ir_version),
                                     .hint = onx_str_of("set ir_version to 3 or more") },
                "operator sets are imported before IR version 3");
    } else if (!count) {
        onxi_check_find(k, at, "O-01",
                        (onxi_check_detail){ .expected = onx_str_of("at least the default operator set") },
                        "the model imports no operator set");
    } else if (!has_default) {
        onxi_check_find(k, at, "O-01", (onxi_check_detail){ .severity = ONX_RULE_WARNING },
                        "the model does not import the default operator set");
    }
}

void onxi_check_imports_open(onxi_check *k, onxi_checked_imports *imports, onx_operator_set_id *const *list,
                             uint32_t count, bool legacy)
{
    *imports = (onxi_checked_imports){ .list = list, .count = count, .legacy = legacy };
    imports->binder = (onxi_binder){ .arena = k->arena, .registry = k->registry, .functions = &k->functions };
    if (onxi_binder_open(&imports->binder, list, count, legacy) == ONX_OK)
        imports->used = ONXI_ARRAY(k->arena, bool, (size_t)imports->binder.imports.count + 1);
    onxi_check_failed(k, imports->used);
}

void onxi_check_imports_used(onxi_check *k, const onxi_check_at *at, const onxi_checked_imports *imports)
{
    const onxi_imports *index = &imports->binder.imports;
    for (uint32_t i = 0; imports->used && i < imports->count; i++) {
        const uint32_t which = onxi_imports_find(index, onx_view(imports->list[i]->domain));
        const onxi_import *import = &index->items[which];
        const bool counts = i == import->first || i == import->best;
        if (import->domain.len && !(counts && imports->used[which]))
            onxi_check_find(k, ONXI_AT_ITEM(at, opset_import, i, OPERATOR_SET_ID, imports->list[i]), "O-13", ONXI_PLAIN,
                            "no node uses the operator set");
    }
}
