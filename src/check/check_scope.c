/* check_scope.c - rules S: subgraphs. check_names.c resolves names; this file checks that a subgraph matches the node
 * that contains it. */
#include "check/check.h"

const onx_rule onxi_check_rules_scope[] = {
    { "S-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs",
      "Subgraph inputs and outputs have names; their types may be missing", "branch output without name" },
    { "S-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "A node output in a subgraph differs from every name visible from the enclosing scopes", "inner `x = Relu(x)`" },
    { "S-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "IR.md: Nodes (earlier copies limited this to node outputs)",
      "A subgraph input differs from every visible outer name", "Loop body input `x` while `x` is a main input" },
    { "S-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "IR.md: Nodes (earlier copies limited this to node outputs)",
      "A subgraph initializer differs from every visible outer name",
      "branch initializer `x` while `x` is a main input" },
    { "S-05", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Nodes",
      "Inner nodes may read outer values defined before the node that holds the subgraph",
      "accept: branch reading main input `x`" },
    { "S-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "Inner nodes do not read outer values defined later", "branch reading `late`, produced after the If" },
    { "S-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "Values of a subgraph are not visible outside it, nor in a sibling subgraph; siblings may reuse names",
      "main node reading `t1` of a branch" },
    { "S-08", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Nodes (only node inputs may refer outward)",
      "A subgraph output is defined inside that subgraph; an outer value has to pass through a node such as Identity",
      "branch with output `x` and no nodes" },
    { "S-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "From ir_version 4 a subgraph input is not also an initializer of that subgraph, unless the operator says so",
      "Loop body input `v` with initializer `v`" },
    { "S-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "Up to ir_version 3 such initializers are allowed only for inputs after those the node supplies",
      "first Loop body input with an initializer" },
    { "S-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs",
      "Subgraph nodes are in topological order, in single assignment, and obey all graph and node rules",
      "inner consumer before producer" },
    { "S-12", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "Operators.md: If",
      "If: both branches have no inputs, the same number of outputs as the node, and the same element types",
      "branch with an input" },
    { "S-13", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "Operators.md: Loop",
      "Loop: the body has 2+N inputs and 1+N+K outputs, the first output being the condition, for N carried values and K scan outputs",
      "body with one input too many" },
    { "S-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "Operators.md: Scan",
      "Scan: the body has N+M inputs and N+K outputs with M = num_scan_inputs; axis and direction lists have M or K entries, directions being 0 or 1",
      "scan_input_directions [2]" },
    { "S-15", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "Operators.md: SequenceMap",
      "SequenceMap: the body has as many inputs and outputs as the node; the first input is a sequence",
      "two-input body for one input" },
    { "S-16", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "Operators.md: Loop",
      "Values are matched to subgraph inputs and outputs by position, not by name", "n/a" },
    { "S-17", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "IR.md: Nodes (not yet visible, so not forbidden)",
      "An inner name that an enclosing graph defines only later, or that equals an output of the node holding the subgraph, is pointed out",
      "branch writing `y` inside `y = If(c)`" },
    { "S-18", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions",
      "A subgraph inside a function body sees the names of that body only",
      "branch in a function reading a main-graph value" },
    { "S-19", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "AssuranceCase.md: General scope",
      "Nesting of subgraphs is bounded like message nesting (W-25)", "40 nested If nodes" },
    { "S-20", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "G-16", "IR.md: Graphs",
      "Initializers, sparse initializers, value_info, annotations and metadata of subgraphs follow the same rules as in the main graph",
      "value_info `t1` twice in a branch" },
    { "S-21", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "Operators.md: Loop",
      "A Loop with a trip count and without a condition ignores the condition that its body returns, which some runtimes obey; it is always true",
      "Loop (10, \"\") with `c2 = Less (i, n)` in its body" },
    { 0 }
};

static const onx_graph *body_of(const onx_node *n, const char *name)
{
    uint32_t count;
    const onx_attribute *a = onx_node_attribute(n, name);
    onx_graph *const *g = a ? onx_attribute_value(a, ONX_SLOT_G, &count) : NULL;
    return g ? *g : NULL;
}

static void want(onxi_check *k, const onxi_check_at *at, const char *rule, const char *body, const char *what,
                 uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        onxi_check_find(k, at, rule,
                        (onxi_check_detail){ .value = onxi_check_number(k, (int64_t)got),
                                             .expected = onxi_check_number(k, (int64_t)wanted),
                                             .severity = onxi_check_by_full(k) },
                        "%s has the wrong number of %s", body, what);
}

/* Omitted trailing outputs still count for the body. */
static uint32_t given_outputs(const onx_node *n)
{
    return n->output_count;
}

static void check_if(onxi_check *k, const onxi_check_at *at, const onx_node *n)
{
    static const char *const branches[] = { "then_branch", "else_branch" };
    for (int i = 0; i < 2; i++) {
        const onx_graph *g = body_of(n, branches[i]);
        if (!g)
            continue;
        want(k, at, "S-12", branches[i], "inputs", g->input_count, 0);
        want(k, at, "S-12", branches[i], "outputs", g->output_count, given_outputs(n));
    }
}

static bool is_named(void *data, const onx_node *node, onxi_op_id id)
{
    (void)data;
    return onxi_node_is(node, id);
}

static void check_loop(onxi_check *k, const onxi_check_at *at, const onx_node *n)
{
    const onx_graph *g = body_of(n, "body");
    if (!g)
        return;
    uint32_t carried = n->input_count > 2 ? n->input_count - 2 : 0;
    if (k->ir_version < 4 && g->input_count > carried + 2)
        return; /* surplus inputs may have had initializers then */
    want(k, at, "S-13", "body", "inputs", g->input_count, (uint64_t)carried + 2);
    if (g->output_count < (uint64_t)carried + 1)
        want(k, at, "S-13", "body", "outputs", g->output_count, (uint64_t)carried + 1);
    else
        want(k, at, "S-13", "body", "outputs", g->output_count, (uint64_t)given_outputs(n) + 1);
    const bool has_trips = n->input_count > 0 && onx_view(n->input[0]).len;
    const bool has_condition = n->input_count > 1 && onx_view(n->input[1]).len;
    if (has_trips && !has_condition && g->output_count && g->input_count > 1 &&
        !onxi_loop_goes_on(k->doc, k->arena, g, is_named, NULL))
        onxi_check_find(
            k, at, "S-21",
            (onxi_check_detail){
                .severity = ONX_RULE_NOTE,
                .value = onx_view(g->output[0]->name),
                .hint =
                    onx_str_of("give the node a condition input, such as a constant true, if it has to end the loop") },
            "the condition that the body returns is ignored, as the node has no condition input; some runtimes end the loop by it");
}

static void check_list(onxi_check *k, const onxi_check_at *at, const onx_node *n, const onxi_bound *bound,
                       const char *name, uint64_t wanted, bool flags)
{
    uint32_t count;
    const int64_t *v = onxi_bind_ints(bound, n, name, &count);
    if (!v)
        return;
    if (count != wanted)
        onxi_check_find(k, at, "S-14",
                        (onxi_check_detail){ .value = onxi_check_number(k, count),
                                             .expected = onxi_check_number(k, (int64_t)wanted),
                                             .severity = onxi_check_by_full(k) },
                        "%s has the wrong number of entries", name);
    for (uint32_t i = 0; i < count && flags; i++)
        if (v[i] != 0 && v[i] != 1) {
            onxi_check_find(k, at, "S-14",
                            (onxi_check_detail){ .value = onxi_check_number(k, v[i]),
                                                 .expected = onx_str_of("0 or 1"),
                                                 .severity = onxi_check_by_full(k) },
                            "%s holds a number that is no direction", name);
            return;
        }
}

static void check_scan(onxi_check *k, const onxi_check_at *at, const onx_node *n, const onxi_bound *bound)
{
    const onx_graph *g = body_of(n, "body");
    uint32_t inputs = n->input_count;
    const onxi_attr_value given = onxi_bind_attribute(bound, n, "num_scan_inputs");
    const int64_t scans = given.i;
    if (given.type != ONX_ATTR_INT)
        return;
    if (bound->schema->since < 9) /* the first input of Scan-8 is sequence_lens */
        inputs = inputs ? inputs - 1 : 0;
    if (scans < 1 || scans > inputs) {
        onxi_check_find(k, at, "S-14",
                        (onxi_check_detail){ .value = onxi_check_number(k, scans),
                                             .expected = onxi_check_text(k, "1 to %u", inputs),
                                             .severity = onxi_check_by_full(k) },
                        "num_scan_inputs does not fit the inputs");
        return;
    }
    uint32_t states = inputs - (uint32_t)scans, outputs = given_outputs(n);
    if (g) {
        want(k, at, "S-14", "body", "inputs", g->input_count, inputs);
        want(k, at, "S-14", "body", "outputs", g->output_count, outputs);
    }
    uint64_t scan_outputs = outputs > states ? outputs - states : 0;
    check_list(k, at, n, bound, "scan_input_directions", (uint64_t)scans, true);
    check_list(k, at, n, bound, "directions", (uint64_t)scans, true);
    check_list(k, at, n, bound, "scan_output_directions", scan_outputs, true);
    check_list(k, at, n, bound, "scan_input_axes", (uint64_t)scans, false);
    check_list(k, at, n, bound, "scan_output_axes", scan_outputs, false);
}

static void check_sequence_map(onxi_check *k, const onxi_check_at *at, const onx_node *n)
{
    const onx_graph *g = body_of(n, "body");
    if (!g)
        return;
    want(k, at, "S-15", "body", "inputs", g->input_count, n->input_count);
    want(k, at, "S-15", "body", "outputs", g->output_count, given_outputs(n));
}

void onxi_check_subgraph_shape(onxi_check *k, const onxi_check_at *at, const onx_node *n, const onxi_checked_op *op)
{
    switch (op->bound->op) {
    case ONXI_ID_If:
        check_if(k, at, n);
        break;
    case ONXI_ID_Loop:
        check_loop(k, at, n);
        break;
    case ONXI_ID_Scan:
        check_scan(k, at, n, op->bound);
        break;
    case ONXI_ID_SequenceMap:
        check_sequence_map(k, at, n);
        break;
    default:
        break;
    }
}
