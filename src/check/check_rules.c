/* check_rules.c - the list of all rule groups. */
#include "check/check.h"

const onxi_check_rule_group onxi_check_rule_groups[] = {
    { "W", "Wire format", onxi_check_rules_wire, 32, 0 },
    { "M", "Model", onxi_check_rules_model, 16, 32 },
    { "O", "Operator set imports", onxi_check_rules_opset, 15, 48 },
    { "G", "Graph", onxi_check_rules_graph, 26, 63 },
    { "N", "Names", onxi_check_rules_names, 12, 89 },
    { "ND", "Nodes", onxi_check_rules_node, 26, 101 },
    { "A", "Attributes", onxi_check_rules_attribute, 19, 127 },
    { "F", "Functions", onxi_check_rules_function, 29, 146 },
    { "T", "Dense tensors", onxi_check_rules_tensor, 37, 175 },
    { "SP", "Sparse tensors", onxi_check_rules_sparse, 17, 212 },
    { "TY", "Types", onxi_check_rules_type, 20, 229 },
    { "DV", "Stored sequences, maps and optionals", onxi_check_rules_data, 13, 249 },
    { "E", "External data", onxi_check_rules_external, 31, 262 },
    { "S", "Subgraphs and scoping", onxi_check_rules_scope, 21, 293 },
    { "TR", "Training information", onxi_check_rules_training, 20, 314 },
    { "Q", "Quantization annotation", onxi_check_rules_quantization, 6, 334 },
    { "MD", "Metadata, documentation, denotation", onxi_check_rules_metadata, 15, 340 },
    { "D", "Multi-device configuration and sharding", onxi_check_rules_device, 22, 355 },
    { "OS", "Operator-set documents", onxi_check_rules_opset_doc, 16, 377 },
    { "V", "Version gates", onxi_check_rules_version, 27, 393 },
    { NULL, NULL, NULL, 0, ONXI_RULE_COUNT },
};

size_t onx_rule_count(void)
{
    return ONXI_RULE_COUNT;
}

static const onxi_check_rule_group *group_at(size_t index)
{
    const onxi_check_rule_group *g = onxi_check_rule_groups;
    while (g->prefix && index >= g[1].first)
        g++;
    return g;
}

const onx_rule *onx_rule_get(size_t index)
{
    const onxi_check_rule_group *g = group_at(index);
    return g->prefix ? &g->rules[index - g->first] : NULL;
}

const onx_rule *onx_rule_find(onx_str id)
{
    for (const onxi_check_rule_group *g = onxi_check_rule_groups; g->prefix; g++)
        for (uint32_t i = 0; i < g->count; i++)
            if (onx_str_is(id, g->rules[i].id))
                return &g->rules[i];
    return NULL;
}

const char *onx_rule_group(const onx_rule *rule)
{
    if (!rule)
        return NULL;
    for (const onxi_check_rule_group *g = onxi_check_rule_groups; g->prefix; g++)
        if (rule >= g->rules && rule < g->rules + g->count)
            return g->name;
    return "";
}
