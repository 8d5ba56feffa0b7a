/* check_model.c - rules M: the model message; also defines the order in which its parts are checked. */
#include "check/check.h"

const onx_rule onxi_check_rules_model[] = {
    { "M-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Models; onnx.in.proto: ModelProto; Versioning.md: IR versioning", "ir_version is present and not zero",
      "model without field 1" },
    { "M-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: ONNX Versioning",
      "ir_version is one of the numbers of the Version enumeration, 1 to 14", "ir_version -1" },
    { "M-03", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Models; Versioning.md: SemVer, Files and Consumers",
      "A model whose ir_version is newer than the library knows is refused with a message naming both numbers",
      "ir_version 15" },
    { "M-04", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Models",
      "The model contains a graph", "model with ir_version and opset_import only" },
    { "M-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, "O-03",
      "Versioning.md: IR versioning; field comments in the three .proto files",
      "All fields marked as mandatory are set: ModelProto.ir_version; AttributeProto.name and type; ValueInfoProto.name, and type for top-level inputs/outputs; elem_type of Tensor, SparseTensor, Sequence and Optional; Map.key_type and value_type; OperatorSetIdProto.version, and domain unless default; DeviceConfigurationProto.name and num_devices; NodeDeviceConfigurationProto.configuration_id; ShardingSpecProto.tensor_name; ShardedDimProto.axis; SimpleShardedDimProto.num_shards; OperatorProto.op_type and since_version; OperatorSetProto.magic and ir_version",
      "SimpleShardedDimProto without num_shards" },
    { "M-06", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "onnx.in.proto: ModelProto",
      "producer_name and producer_version are filled in", "both absent" },
    { "M-07", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL,
      "IR.md: Models (earlier copies of the same page said MUST)", "The model names a domain in reverse-DNS form",
      "domain `My Model!`" },
    { "M-08", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_WRITER, ONX_RULE_NOTE, NULL, "onnx.in.proto: ModelProto.domain",
      "Domain, model_version and graph name together identify a model and are kept when rewriting",
      "rewriting that drops model_version" },
    { "M-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "Versioning.md: Semantic Versioning or Simple Numbers; IR.md: ONNX Versioning",
      "model_version is a plain number (upper 32 bits zero) or a packed semantic version (16-bit major, 16-bit minor, 32-bit patch) whose major or minor is non-zero; negative values fit neither",
      "model_version -5" },
    { "M-10", ONX_MUST, 0, ONX_BY_DIFF, ONX_RULE_NOTE, NULL, "Versioning.md: Model versioning (non-normative)",
      "When an updated model changes its inputs or outputs incompatibly its major number grows, compatibly its minor number, accuracy or speed only its patch number",
      "an input removed, version unchanged" },
    { "M-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Models; onnx.in.proto: Notes",
      "Keys of metadata_props are distinct (the list stands for a map without duplicates)", "key `a` twice" },
    { "M-12", ONX_MUST, 0, ONX_BY_RUNNER, ONX_RULE_ERROR, NULL, "IR.md: Models",
      "An implementation supports every operator the model uses from the imported sets or rejects the model; it never runs a partly understood model",
      "running a model that contains an unknown custom operator" },
    { "M-13", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Extensible computation graph model",
      "A model may use further operators as long as their operator sets are imported",
      "accept: node of domain `com.example` with that domain imported" },
    { "M-14", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Components",
      "An inference-only consumer may ignore training_info", "accept: model with training_info passed to inference" },
    { "M-15", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_RUNNER, ONX_RULE_ERROR, NULL, "IR.md: Model Semantics",
      "Without random operators, running the same inputs twice gives the same outputs; inference leaves no state behind",
      "inference that modifies an initializer" },
    { "M-16", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "reference checker",
      "Absurd sizes are refused early (reference limits: 10000 local functions, call chains of 100)",
      "20000 local functions" },
    { 0 }
};

enum { NEWEST_IR = ONXI_IR_VERSION, MOST_FUNCTIONS = 10000 };

/* An operator set of the standard that is newer than the newest known is reported itself: one warning says enough. */
static bool imports_newer(const onx_model *m)
{
    for (size_t i = 0; i < m->opset_import_count; i++)
        if (onxi_check_import_is_newer(m->opset_import[i]))
            return true;
    return false;
}

static void check_ir_version(onxi_check *k, const onxi_check_at *at, const onx_model *m)
{
    const onxi_check_at *here = ONXI_AT(at, ir_version);
    onx_str value = onxi_check_number(k, m->ir_version);
    if (!ONX_HAS(model, m, ir_version) || m->ir_version == 0)
        onxi_check_find(k, here, "M-01", (onxi_check_detail){ .expected = onx_str_of("1 to 14") }, "ir_version is %s",
                        ONX_HAS(model, m, ir_version) ? "zero" : "missing");
    else if (m->ir_version < 0)
        onxi_check_find(k, here, "M-02", (onxi_check_detail){ .value = value, .expected = onx_str_of("1 to 14") },
                        "ir_version is no IR version");
    else if (m->ir_version > NEWEST_IR && !(k->flags & ONX_CHECK_NEWER_OPSETS && imports_newer(m)))
        onxi_check_find(
            k, here, "M-03",
            (onxi_check_detail){ .value = value,
                                 .expected = onx_str_of("1 to 14"),
                                 .severity = k->flags & ONX_CHECK_NEWER_OPSETS ? ONX_RULE_WARNING : ONX_RULE_NONE },
            "the model has IR version %lld, the newest known is %d", (long long)m->ir_version, NEWEST_IR);
}

/* A plain number below 2^32, or a semantic version of 16 bits major, 16 bits minor and 32 bits patch. */
static void check_model_version(onxi_check *k, const onxi_check_at *at, const onx_model *m)
{
    if (m->model_version < 0)
        onxi_check_find(k, ONXI_AT(at, model_version), "M-09",
                        (onxi_check_detail){ .value = onxi_check_number(k, m->model_version) },
                        "model_version is neither a plain number nor a semantic version");
}

static void check_texts(onxi_check *k, const onxi_check_at *at, const onx_model *m)
{
    onx_str domain = onx_view(m->domain);
    onxi_check_utf8(k, ONXI_AT(at, producer_name), onx_view(m->producer_name));
    onxi_check_utf8(k, ONXI_AT(at, producer_version), onx_view(m->producer_version));
    onxi_check_utf8(k, ONXI_AT(at, domain), domain);
    onxi_check_doc_string(k, at, onx_view(m->doc_string));
    if (!onx_view(m->producer_name).len && !onx_view(m->producer_version).len)
        onxi_check_find(k, ONXI_AT(at, producer_name), "M-06", ONXI_PLAIN, "the model does not say which tool made it");
    if (domain.len && !onxi_check_is_reverse_dns(domain))
        onxi_check_find(k, ONXI_AT(at, domain), "M-07",
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, domain)) },
                        "the domain is no reverse-DNS name");
    onxi_check_metadata(k, at, m->metadata_props, m->metadata_props_count, true);
}

static void check_main_graph(onxi_check *k, const onxi_check_at *at, const onx_model *m)
{
    if (!m->graph) {
        onxi_check_find(k, at, "M-04", ONXI_PLAIN, "the model has no graph");
        return;
    }
    onxi_check_scope scope = { .role = ONXI_ROLE_MAIN, .root = ONXI_ROLE_MAIN, .imports = &k->imports, .names = true };
    const onxi_check_at *here = ONXI_AT(at, graph);
    k->names.last = !m->functions_count && !m->training_info_count;
    onxi_check_graph(k, here, m->graph, &scope, NULL);
    if (m->training_info_count)
        onxi_check_algorithms(k, at, m, &scope);
    onxi_check_leave(k, here, &scope);
    onxi_check_initializations(k, at, m);
}

void onxi_check_model(onxi_check *k, const onxi_check_at *at, const onx_model *m)
{
    check_ir_version(k, at, m);
    k->ir_version = ONX_HAS(model, m, ir_version) && m->ir_version > 0 ? m->ir_version : NEWEST_IR;
    check_texts(k, at, m);
    check_model_version(k, at, m);
    onxi_check_imports(k, at, m->opset_import, m->opset_import_count, false);
    onxi_check_imports_open(k, &k->imports, m->opset_import, m->opset_import_count, onxi_model_is_legacy(m));
    onxi_check_configurations(k, at, m);
    if (m->functions_count > MOST_FUNCTIONS)
        onxi_check_find(k, ONXI_AT(at, functions), "M-16",
                        (onxi_check_detail){ .value = onxi_check_number(k, m->functions_count),
                                             .expected = onxi_check_text(k, "%d at most", MOST_FUNCTIONS) },
                        "the model has too many functions");
    onxi_check_callees_add(k, m->functions, m->functions_count);
    check_main_graph(k, at, m);
    onxi_check_functions(k, at, m->functions, m->functions_count);
    onxi_check_call_cycles(k, at);
    onxi_check_imports_used(k, at, &k->imports);
    for (uint32_t i = 0; i < m->configuration_count && k->config_used; i++)
        if (!k->config_used[i])
            onxi_check_find(k, ONXI_AT_ITEM(at, configuration, i, DEVICE_CONFIGURATION, m->configuration[i]), "D-22",
                            ONXI_PLAIN, "no node refers to the device configuration");
    if (k->has_image && !k->has_image_keys)
        onxi_check_find(k, ONXI_AT(at, metadata_props), "MD-08",
                        (onxi_check_detail){ .expected = onx_str_of("Image.BitmapPixelFormat and others") },
                        "values are denoted as images, but no metadata describes them");
}
