/* check_training.c - rules TR: training_info. */
#include "check/check.h"

const onx_rule onxi_check_rules_training[] = {
    { "TR-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Training Related Information; onnx.in.proto: TrainingInfoProto",
      "Each key of initialization_binding and update_binding names an initializer of the main graph or of the algorithm graph in the same entry",
      "key `nope`" },
    { "TR-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Training Related Information",
      "Each value of initialization_binding names an output of that entry's initialization graph", "value `nope`" },
    { "TR-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Training Related Information (algorithm only); onnx.in.proto: update_binding (adds the main graph)",
      "Each value of update_binding names an output of that entry's algorithm graph, or of the main graph",
      "value naming an intermediate value" },
    { "TR-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Training Related Information",
      "Keys are unique within one binding list", "key `w` twice" },
    { "TR-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: update_binding, point 1",
      "Across all update_binding lists of the model a variable appears once", "`w` updated by two entries" },
    { "TR-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TrainingInfoProto.initialization",
      "The initialization graph has no inputs", "initialization with one input" },
    { "TR-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Training Related Information",
      "initialization is left out only if initialization_binding is empty", "binding without graph" },
    { "TR-08", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: TrainingInfoProto.algorithm", "Without an algorithm graph update_binding is empty",
      "binding without algorithm" },
    { "TR-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TrainingInfoProto.algorithm",
      "The main graph followed by the algorithm graph (inputs, initializers, outputs, nodes, value_info, sparse initializers joined in that order) satisfies all graph rules",
      "algorithm node writing a name of the main graph" },
    { "TR-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, "S-07", "onnx.in.proto: TrainingInfoProto.algorithm",
      "The algorithm graph may read values of the main graph; the main graph reads nothing of the algorithm graph",
      "main node reading an algorithm input" },
    { "TR-11", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Training Related Information",
      "The initialization graph is a complete, self-contained graph", "node reading a main-graph value" },
    { "TR-12", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Training Related Information",
      "A bound output has the element type and shape of the variable it replaces",
      "float[2] bound to a float[3] initializer" },
    { "TR-13", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Training Related Information",
      "State variables are dense initializers", "key naming a sparse initializer" },
    { "TR-14", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Training Related Information",
      "Binding entries have a non-empty key and value", "entry with key only" },
    { "TR-15", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "ND-04",
      "onnx.in.proto: ModelProto.opset_import",
      "Nodes of both training graphs bind against the model's opset_import and obey all node rules",
      "unknown operator in algorithm" },
    { "TR-16", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "Operators.md: Gradient",
      "Gradient: one input per name in xs then zs, outputs match xs and are optional, y is computed from xs and zs, and no listed name depends on other listed names",
      "xs [\"W\",\"H\"] with H computed from W" },
    { "TR-17", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Training Related Information",
      "Initialization steps run in list order; the caller decides the order of training steps", "n/a" },
    { "TR-18", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Model Semantics; Training Related Information",
      "State variables start from their initializer; initialization and training steps change them, inference does not",
      "inference that alters a weight" },
    { "TR-19", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Training Related Information",
      "A runtime may let the user run any one algorithm, in any order", "accept: running entry 2 only" },
    { "TR-20", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Nodes",
      "A state variable that is also a graph input is pointed out, since callers may override it",
      "`w` input, initializer and update key" },
    { 0 }
};

/* Names that can be bound: initializers (index of the tensor) and outputs (index of the value info). */
static onxi_check_set *initializers_of(onxi_check *k, const onx_graph *g)
{
    onxi_check_set *set = onxi_check_set_new(k);
    for (uint32_t i = 0; g && i < g->initializer_count; i++)
        onxi_check_set_add(k, set, onx_view(g->initializer[i]->name), i, NULL);
    return set;
}

static onxi_check_set *sparse_of(onxi_check *k, const onx_graph *g)
{
    onxi_check_set *set = onxi_check_set_new(k);
    for (uint32_t i = 0; g && i < g->sparse_initializer_count; i++)
        if (g->sparse_initializer[i]->values)
            onxi_check_set_add(k, set, onx_view(g->sparse_initializer[i]->values->name), i, NULL);
    return set;
}

static onxi_check_set *outputs_of(onxi_check *k, const onx_graph *g)
{
    onxi_check_set *set = onxi_check_set_new(k);
    for (uint32_t i = 0; g && i < g->output_count; i++)
        onxi_check_set_add(k, set, onx_view(g->output[i]->name), i, NULL);
    return set;
}

typedef struct bindings {
    const onx_graph *main, *own; /* own: initialization or algorithm graph */
    const onx_graph *algorithm;
    onxi_check_set *main_initializers, *main_sparse, *main_outputs, *main_inputs;
    onxi_check_set *algorithm_initializers, *algorithm_sparse, *own_outputs;
    bool update;
} bindings;

static void check_type_fits(onxi_check *k, const onxi_check_at *at, const onx_value_info *output, const onx_tensor *t)
{
    const onx_type *type = output->type;
    if (!type || !ONX_HAS(type, type, tensor_type))
        return;
    const onx_tensor_shape *shape = type->tensor_type->shape;
    bool fits = !type->tensor_type->elem_type || type->tensor_type->elem_type == t->data_type;
    if (shape && fits) {
        fits = shape->dim_count == t->dims_count;
        for (uint32_t i = 0; i < shape->dim_count && fits; i++)
            fits = !ONX_HAS(dimension, shape->dim[i], dim_value) || shape->dim[i]->dim_value == t->dims[i];
    }
    if (!fits)
        onxi_check_find(k, at, "TR-12", ONXI_PLAIN, "the bound output has another type or shape than the variable");
}

static void check_binding(onxi_check *k, const onxi_check_at *at, const onx_string_string_entry *e, const bindings *b)
{
    onx_str key = onx_view(e->key), value = onx_view(e->value);
    uint32_t variable = 0, output = 0;
    if (!key.len || !value.len) {
        onxi_check_find(k, at, "TR-14", ONXI_PLAIN, key.len ? "the binding has no value" : "the binding has no key");
        return;
    }
    bool main = onxi_check_set_find(b->main_initializers, key, &variable);
    bool own = !main && onxi_check_set_find(b->algorithm_initializers, key, &variable);
    if (!main && !own) {
        bool sparse =
            onxi_check_set_find(b->main_sparse, key, NULL) || onxi_check_set_find(b->algorithm_sparse, key, NULL);
        onxi_check_find(k, at, sparse ? "TR-13" : "TR-01",
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)) },
                        sparse ? "the variable is a sparse initializer"
                               : "neither the main graph nor the algorithm graph has an initializer of that name");
    } else if (b->update && main && onxi_check_set_find(b->main_inputs, key, NULL)) {
        onxi_check_find(k, at, "TR-20", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)) },
                        "the variable is an input as well, which callers may override");
    }
    bool from_own = onxi_check_set_find(b->own_outputs, value, &output);
    bool from_main = !from_own && b->update && onxi_check_set_find(b->main_outputs, value, &output);
    if (!from_own && !from_main)
        onxi_check_find(k, at, b->update ? "TR-03" : "TR-02",
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, value)) },
                        b->update ? "neither the algorithm graph nor the main graph has an output of that name"
                                  : "the initialization graph has no output of that name");
    else if (main || own)
        check_type_fits(k, at, (from_own ? b->own : b->main)->output[output],
                        (main ? b->main : b->algorithm)->initializer[variable]);
}

static void check_bindings(onxi_check *k, const onxi_check_at *at, onx_string_string_entry *const *list, uint32_t count,
                           onxi_check_step step, const bindings *b, onxi_check_set *across)
{
    onxi_check_set *seen = onxi_check_set_new(k);
    for (uint32_t i = 0; i < count; i++) {
        const onxi_check_at here = { at, step, i, ONX_KIND_STRING_STRING_ENTRY, list[i] };
        onx_str key = onx_view(list[i]->key);
        uint64_t before = k->total[ONX_ERROR];
        onxi_check_entry_text(k, &here, list[i]);
        check_binding(k, &here, list[i], b);
        if (!key.len)
            continue;
        if (!onxi_check_set_add(k, seen, key, i, NULL))
            onxi_check_find(k, &here, "TR-04", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)) },
                            "the variable is bound twice");
        else if (across && k->total[ONX_ERROR] == before && !onxi_check_set_add(k, across, key, i, NULL))
            onxi_check_find(k, &here, "TR-05", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)) },
                            "another entry of training_info updates the variable as well");
    }
}

static void check_entry(onxi_check *k, const onxi_check_at *at, const onx_training_info *t, const onx_model *m,
                        bindings *b, onxi_check_set *across)
{
    b->algorithm = t->algorithm;
    b->algorithm_initializers = initializers_of(k, t->algorithm);
    b->algorithm_sparse = sparse_of(k, t->algorithm);
    if (!t->initialization && t->initialization_binding_count)
        onxi_check_find(k, at, "TR-07", ONXI_PLAIN, "there is an initialization_binding, but no initialization graph");
    if (!t->algorithm && t->update_binding_count)
        onxi_check_find(k, at, "TR-08", ONXI_PLAIN, "there is an update_binding, but no algorithm graph");
    if (t->initialization) {
        b->own = t->initialization;
        b->own_outputs = outputs_of(k, t->initialization);
        b->update = false;
        check_bindings(k, at, t->initialization_binding, t->initialization_binding_count,
                       ONXI_STEP_initialization_binding, b, NULL);
    }
    if (t->algorithm) {
        b->own = t->algorithm;
        b->own_outputs = outputs_of(k, t->algorithm);
        b->update = true;
        check_bindings(k, at, t->update_binding, t->update_binding_count, ONXI_STEP_update_binding, b, across);
    }
    (void)m;
}

void onxi_check_algorithms(onxi_check *k, const onxi_check_at *at, const onx_model *m, onxi_check_scope *main)
{
    onxi_check_gate(k, ONXI_AT(at, training_info), "V-09", "training_info", 7);
    bindings b = { .main = m->graph,
                   .main_initializers = initializers_of(k, m->graph),
                   .main_sparse = sparse_of(k, m->graph),
                   .main_outputs = outputs_of(k, m->graph),
                   .main_inputs = onxi_check_set_new(k) };
    for (uint32_t i = 0; i < m->graph->input_count; i++)
        onxi_check_set_add(k, b.main_inputs, onx_view(m->graph->input[i]->name), i, NULL);
    onxi_check_set *across = onxi_check_set_new(k);
    for (uint32_t i = 0; i < m->training_info_count && k->status == ONX_OK; i++) {
        const onx_training_info *t = m->training_info[i];
        const onxi_check_at *here = ONXI_AT_INDEX(at, training_info, i);
        check_entry(k, here, t, m, &b, across);
        if (!t->algorithm)
            continue;
        onxi_check_scope scope = {
            .role = ONXI_ROLE_ALGORITHM, .root = ONXI_ROLE_MAIN, .imports = &k->imports, .names = true
        };
        main->node = main->node_count; /* all nodes of the main graph come before */
        onxi_check_graph(k, ONXI_AT(here, algorithm), t->algorithm, &scope, main);
        onxi_check_leave(k, ONXI_AT(here, algorithm), &scope);
    }
}

void onxi_check_initializations(onxi_check *k, const onxi_check_at *at, const onx_model *m)
{
    for (uint32_t i = 0; i < m->training_info_count && k->status == ONX_OK; i++) {
        const onx_graph *g = m->training_info[i]->initialization;
        if (!g)
            continue;
        const onxi_check_at *here = ONXI_AT(ONXI_AT_INDEX(at, training_info, i), initialization);
        onxi_check_scope scope = {
            .role = ONXI_ROLE_INITIALIZATION, .root = ONXI_ROLE_INITIALIZATION, .imports = &k->imports, .names = true
        };
        if (g->input_count)
            onxi_check_find(
                k, here, "TR-06",
                (onxi_check_detail){ .value = onxi_check_number(k, g->input_count), .expected = onx_str_of("0") },
                "the initialization graph has inputs");
        onxi_check_graph(k, here, g, &scope, NULL);
        onxi_check_leave(k, here, &scope);
    }
}

/* ---- Gradient ---- */

static const onx_bytes *strings_of(const onx_node *n, const char *name, uint32_t *count)
{
    const onx_attribute *a = onx_node_attribute(n, name);
    const onx_bytes *s = a ? onx_attribute_value(a, ONX_SLOT_STRINGS, count) : NULL;
    if (!s)
        *count = 0;
    return s;
}

/* Walks backwards from the producers of the listed values; if it reaches another listed value, one depends on the
 * other. */
static void check_independent(onxi_check *k, const onxi_check_at *at, const onxi_check_scope *scope,
                              const uint32_t *listed, uint32_t count)
{
    uint32_t *stack = ONXI_ARRAY(k->arena, uint32_t, scope->node_count ? scope->node_count : 1), depth = 0;
    bool *seen = ONXI_ARRAY(k->arena, bool, scope->node_count ? scope->node_count : 1);
    if (onxi_check_failed(k, stack) || onxi_check_failed(k, seen))
        return;
    uint32_t token = onxi_check_token(k);
    for (uint32_t i = 0; i < count; i++)
        k->names.meaning[listed[i]].mark = token;
    for (uint32_t i = 0; i < count; i++) {
        const onxi_check_meaning *m = &k->names.meaning[listed[i]];
        if (m->scope == scope->serial && m->kind == ONXI_NAME_OUTPUT && !seen[m->index]) {
            seen[m->index] = true;
            stack[depth++] = m->index;
        }
    }
    while (depth) {
        const onx_node *n = scope->nodes[stack[--depth]];
        for (uint32_t i = 0; i < n->input_count; i++) {
            uint32_t id = n->input[i].bits ? onxi_check_name_find(k, onx_view(n->input[i])) : UINT32_MAX;
            const onxi_check_meaning *m = id == UINT32_MAX ? NULL : &k->names.meaning[id];
            if (!m)
                continue;
            if (m->mark == token) {
                onxi_check_find(k, at, "TR-16",
                                (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, onx_view(n->input[i]))) },
                                "a value of xs or zs depends on another one of them");
                return;
            }
            if (m->scope == scope->serial && m->kind == ONXI_NAME_OUTPUT && !seen[m->index]) {
                seen[m->index] = true;
                stack[depth++] = m->index;
            }
        }
    }
}

void onxi_check_gradient(onxi_check *k, const onxi_check_at *at, const onx_node *n, const onxi_check_scope *scope)
{
    enum { WALKS = 64 }; /* each walk may visit the whole graph */
    uint32_t xs_count, zs_count, count;
    const onx_bytes *xs = strings_of(n, "xs", &xs_count), *zs = strings_of(n, "zs", &zs_count);
    const onx_attribute *a = onx_node_attribute(n, "y");
    const onx_bytes *y = a ? onx_attribute_value(a, ONX_SLOT_S, &count) : NULL;
    uint64_t names = (uint64_t)xs_count + zs_count;
    if (n->input_count != names)
        onxi_check_find(k, at, "TR-16",
                        (onxi_check_detail){ .value = onxi_check_number(k, n->input_count),
                                             .expected = onxi_check_number(k, (int64_t)names) },
                        "Gradient does not have an input per name in xs and zs");
    if (n->output_count > xs_count)
        onxi_check_find(k, at, "TR-16",
                        (onxi_check_detail){ .value = onxi_check_number(k, n->output_count),
                                             .expected = onxi_check_text(k, "%u at most", xs_count) },
                        "Gradient has more outputs than names in xs");
    uint32_t *listed = ONXI_ARRAY(k->arena, uint32_t, (size_t)names + 1), known = 0;
    if (onxi_check_failed(k, listed))
        return;
    for (uint64_t i = 0; i <= names; i++) {
        onx_str name = i < xs_count ? onx_view(xs[i])
                       : i < names  ? onx_view(zs[i - xs_count])
                       : y          ? onx_view(*y)
                                    : onx_str_make(NULL, 0);
        uint32_t id = name.len ? onxi_check_name_find(k, name) : UINT32_MAX;
        if (i == names && !y)
            break;
        if (id == UINT32_MAX || !k->names.meaning[id].scope)
            onxi_check_find(k, at, "TR-16", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "%s of Gradient names a value that is not there",
                            i < xs_count ? "xs"
                            : i < names  ? "zs"
                                         : "y");
        else if (i < names)
            listed[known++] = id;
        if (id != UINT32_MAX)
            k->names.meaning[id].flags |= ONXI_NAME_USED;
    }
    if (k->gradients++ < WALKS)
        check_independent(k, at, scope, listed, known);
}
