/* check_graph.c - rules G: graphs, including subgraphs, their lists and the order of their nodes. */
#include "check/check.h"

const onx_rule onxi_check_rules_graph[] = {
    { "G-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs",
      "Every graph, nested ones included, has a non-empty name", "main graph without name" },
    { "G-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs; Nodes",
      "The data-flow graph has no cycle", "`y = Add(x, y)`" },
    { "G-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs; Nodes",
      "Nodes are listed so that each one comes after the producers of its inputs; this holds in the main graph, in subgraphs and in function bodies",
      "consumer of `m` listed before its producer" },
    { "G-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs; Nodes",
      "A node output name is defined once per graph, also within one node", "two nodes writing `y`" },
    { "G-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "A value name has one definition among inputs, initializers and node outputs; the only permitted overlap is input plus initializer",
      "node output named like an initializer" },
    { "G-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Names Within a Graph",
      "Graph input names do not repeat", "input `x` twice" },
    { "G-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "A node input names a graph input, an initializer or an earlier node output (or, in a subgraph, such a value of an enclosing scope)",
      "input `q` that nothing defines" },
    { "G-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs; Nodes",
      "Every graph output names a value defined in that graph", "output `q` that nothing defines" },
    { "G-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs; onnx.in.proto: ValueInfoProto",
      "Inputs and outputs of the main graph have a name, a type and, for tensors and sparse tensors, a shape (at least the rank)",
      "main output typed float without shape" },
    { "G-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: ValueInfoProto.name",
      "No graph input or output has an empty name", "output with empty name" },
    { "G-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: GraphProto.initializer",
      "Every initializer has a non-empty name", "initializer without name" },
    { "G-12", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: GraphProto.initializer",
      "Initializer names are unique over dense and sparse initializers together", "`w` in both lists" },
    { "G-13", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Nodes",
      "An initializer may share its name with a graph input and is then that input's default; a runtime may let callers override or omit it",
      "accept: input `x` with initializer `x`" },
    { "G-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: Version enum (IR 4 relaxed it)",
      "With ir_version 3 or less each initializer is also a graph input",
      "ir_version 3, initializer `w`, no input `w`" },
    { "G-15", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "An initializer agrees in element type and shape with the declared type of the same name",
      "input `x` float[2], initializer `x` int64[2]" },
    { "G-16", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: GraphProto.value_info",
      "Names in value_info are distinct", "`m` twice" },
    { "G-17", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: ValueInfoProto.name",
      "Entries of value_info have a non-empty name", "entry without name" },
    { "G-18", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Graphs",
      "Entries of value_info belong to values of the graph", "value_info for `qqq`" },
    { "G-19", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Graphs",
      "value_info describes intermediate values, not inputs or outputs", "value_info repeating output `y`" },
    { "G-20", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_FULL, ONX_RULE_ERROR, NULL, "IR.md: Nodes; ShapeInference.md",
      "Declared types of outputs and value_info entries are compatible with what the operators produce (element type, rank, known dimensions)",
      "Relu of float declared int64" },
    { "G-21", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Names Within a Graph",
      "A name is not listed twice among the outputs of one graph", "output `y` twice" },
    { "G-22", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Nodes",
      "A graph output may be a graph input or an initializer directly", "accept: output `x` that is also an input" },
    { "G-23", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Graphs",
      "A graph may have no nodes, inputs or outputs", "accept: `g () => () {}`" },
    { "G-24", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "hygiene",
      "Initializers, inputs and nodes nobody uses are pointed out", "initializer `w` never read" },
    { "G-25", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Graphs",
      "The order of initializers has no meaning", "accept: any permutation" },
    { "G-26", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_RUNNER, ONX_RULE_ERROR, NULL, "IR.md: Graphs",
      "Evaluating a graph has no side effects, and is finished when all outputs have been produced",
      "a kernel that writes into its input buffer" },
    { 0 }
};

/* ---- comparing initializers with declared types ---- */

static bool dims_fit(const onx_tensor_shape *shape, const int64_t *dims, uint32_t count)
{
    if (!shape)
        return true;
    if (shape->dim_count != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (ONX_HAS(dimension, shape->dim[i], dim_value) && shape->dim[i]->dim_value >= 0 &&
            shape->dim[i]->dim_value != dims[i])
            return false;
    return true;
}

/* Gives each variable of an input the size of its initializer (N-08). */
static void bind_dims(onxi_check *k, const onxi_check_at *at, const onx_tensor_shape *shape, const int64_t *dims,
                      uint32_t count)
{
    for (uint32_t i = 0; shape && i < count && i < shape->dim_count; i++)
        onxi_check_bind_dim(k, at, shape->dim[i], dims[i], ONX_RULE_NONE);
}

/* Without inference the reference implementation accepts such models, so they are accepted here, and can be run. */
static onx_rule_severity mismatch(const onxi_check *k)
{
    return k->flags & ONX_CHECK_FULL ? ONX_RULE_ERROR : ONX_RULE_WARNING;
}

static void check_fits(onxi_check *k, const onxi_check_at *at, const onx_type *type, int32_t dtype, const int64_t *dims,
                       uint32_t count, bool sparse)
{
    int32_t declared;
    const onx_tensor_shape *shape;
    if (!type)
        return;
    if (!sparse && ONX_HAS(type, type, tensor_type)) {
        declared = type->tensor_type->elem_type;
        shape = type->tensor_type->shape;
    } else if (sparse && ONX_HAS(type, type, sparse_tensor_type)) {
        declared = type->sparse_tensor_type->elem_type;
        shape = type->sparse_tensor_type->shape;
    } else if (type->has & ~(uint32_t)onx_type_has_denotation) {
        onxi_check_find(k, at, "G-15", (onxi_check_detail){ .severity = mismatch(k) },
                        "the input of that name is no %s", sparse ? "sparse tensor" : "tensor");
        return;
    } else {
        return;
    }
    if (onx_dtype_name(declared) && onx_dtype_name(dtype) && declared != dtype)
        onxi_check_find(k, at, "G-15",
                        (onxi_check_detail){ .value = onx_str_of(onx_dtype_name(dtype)),
                                             .expected = onx_str_of(onx_dtype_name(declared)),
                                             .severity = mismatch(k) },
                        "the initializer has another element type than the input of that name");
    else if (dims_fit(shape, dims, count))
        bind_dims(k, at, shape, dims, count);
    else
        onxi_check_find(k, at, "G-15", (onxi_check_detail){ .severity = mismatch(k) },
                        "the initializer has another shape than the input of that name");
}

/* ---- the lists of a graph ---- */

static void check_inputs(onxi_check *k, const onxi_check_at *at, const onx_graph *g, onxi_check_scope *scope)
{
    bool sub = scope->role == ONXI_ROLE_SUBGRAPH;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onxi_check_at *here = ONXI_AT_ITEM(at, input, i, VALUE_INFO, g->input[i]);
        onxi_check_value_info(k, here, g->input[i], scope->role, sub ? "S-01" : "G-10");
        onx_str name = onx_view(g->input[i]->name);
        if (name.len)
            onxi_check_define(k, here, scope, onxi_check_name_intern(k, here, g->input[i]->name), ONXI_NAME_INPUT, i);
    }
}

/* The number of subgraph inputs that the node provides values for. */
static uint32_t provided(onxi_check *k, onxi_check_scope *scope)
{
    const onx_node *n = scope->holder;
    if (!n || onxi_check_operator_of(k, n, scope) == ONXI_ID_If)
        return 0;
    return n->input_count;
}

static void check_with_input(onxi_check *k, const onxi_check_at *at, const onx_graph *g, onxi_check_scope *scope,
                             uint32_t name)
{
    const onxi_check_meaning *m = name == UINT32_MAX ? NULL : &k->names.meaning[name];
    bool input = m && m->scope == scope->serial && m->kind == ONXI_NAME_INPUT;
    if (!input) {
        if (k->ir_version < 4)
            onxi_check_find(
                k, at, "G-14",
                (onxi_check_detail){ .hint = onx_str_of("add an input of that name, or set ir_version to 4"),
                                     .one_meaning = true },
                "before IR version 4 an initializer has to be an input, too");
        return;
    }
    (void)g;
    if (scope->role != ONXI_ROLE_SUBGRAPH)
        return;
    if (k->ir_version >= 4)
        onxi_check_find(k, at, "S-09", (onxi_check_detail){ .severity = onxi_check_by_full(k) },
                        "an input of a subgraph is also an initializer of it");
    else if (m->index < provided(k, scope))
        onxi_check_find(k, at, "S-10", ONXI_PLAIN,
                        "an input that the node provides is also an initializer of the subgraph");
}

static const onx_type *input_type(const onxi_check *k, const onx_graph *g, const onxi_check_scope *scope, uint32_t name)
{
    const onxi_check_meaning *m = name == UINT32_MAX ? NULL : &k->names.meaning[name];
    return m && m->scope == scope->serial && m->kind == ONXI_NAME_INPUT && m->index < g->input_count
               ? g->input[m->index]->type
               : NULL;
}

static void check_initializers(onxi_check *k, const onxi_check_at *at, const onx_graph *g, onxi_check_scope *scope)
{
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const onx_tensor *t = g->initializer[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, initializer, i, TENSOR, t);
        onx_str name = onx_view(t->name);
        onxi_check_tensor(k, here, t);
        if (!name.len) {
            onxi_check_find(k, here, "G-11", ONXI_PLAIN, "the initializer has no name");
            continue;
        }
        uint32_t id = onxi_check_name_intern(k, here, t->name);
        onxi_check_define(k, here, scope, id, ONXI_NAME_INITIALIZER, i);
        check_with_input(k, here, g, scope, id);
        check_fits(k, here, input_type(k, g, scope, id), t->data_type, t->dims, t->dims_count, false);
    }
    for (uint32_t i = 0; i < g->sparse_initializer_count; i++) {
        const onx_sparse_tensor *s = g->sparse_initializer[i];
        const onxi_check_at *here = ONXI_AT_INDEX(at, sparse_initializer, i);
        onx_str name = s->values ? onx_view(s->values->name) : onx_str_make(NULL, 0);
        onxi_check_sparse(k, here, s);
        if (!name.len) {
            if (s->values)
                onxi_check_find(k, here, "SP-03", ONXI_PLAIN, "the values of a sparse initializer have no name");
            continue;
        }
        uint32_t id = onxi_check_name_intern(k, here, s->values->name);
        onxi_check_define(k, here, scope, id, ONXI_NAME_SPARSE_INITIALIZER, i);
        check_with_input(k, here, g, scope, id);
        check_fits(k, here, input_type(k, g, scope, id), s->values->data_type, s->dims, s->dims_count, true);
    }
}

static void check_outputs(onxi_check *k, const onxi_check_at *at, const onx_graph *g, onxi_check_scope *scope)
{
    bool sub = scope->role == ONXI_ROLE_SUBGRAPH;
    uint32_t token = onxi_check_token(k);
    for (uint32_t i = 0; i < g->output_count; i++) {
        const onxi_check_at *here = ONXI_AT_ITEM(at, output, i, VALUE_INFO, g->output[i]);
        onx_str name = onx_view(g->output[i]->name);
        onxi_check_value_info(k, here, g->output[i], scope->role, sub ? "S-01" : "G-10");
        if (!name.len)
            continue;
        uint32_t id = onxi_check_name_intern(k, here, g->output[i]->name);
        if (id == UINT32_MAX)
            return;
        onxi_check_meaning *m = &k->names.meaning[id];
        const char *text = onxi_check_quote(k, name);
        if (m->mark == token)
            onxi_check_find(k, here, "G-21", (onxi_check_detail){ .value = onx_str_of(text) },
                            "\"%s\" is listed twice among the outputs", text);
        m->mark = token;
        if (onxi_check_owns(k, scope, id)) {
            m->flags |= ONXI_NAME_USED;
            continue;
        }
        if (m->scope && !sub && scope->role == ONXI_ROLE_ALGORITHM) {
            m->flags |= ONXI_NAME_USED; /* the two graphs are combined in training */
            continue;
        }
        if (onxi_check_name_awaited(m))
            continue; /* a node reads it as well, and is reported */
        if (m->scope)
            onxi_check_find(k, here, "S-08",
                            (onxi_check_detail){ .value = onx_str_of(text),
                                                 .hint = onx_str_of("pass it through an Identity node") },
                            "\"%s\" is a value of an enclosing graph, not of this one", text);
        else
            onxi_check_find(k, here, sub ? "S-08" : "G-08", (onxi_check_detail){ .value = onx_str_of(text) },
                            "\"%s\" is not defined in the graph", text);
    }
}

static void check_value_infos(onxi_check *k, const onxi_check_at *at, const onx_graph *g, onxi_check_scope *scope)
{
    if (!g->value_info_count)
        return;
    uint32_t token = onxi_check_token(k), boundary = onxi_check_token(k);
    if (k->notes && onxi_check_wants(k, "G-19")) {
        for (uint32_t i = 0; i < g->output_count; i++) {
            uint32_t id = onxi_check_name_find(k, onx_view(g->output[i]->name));
            if (id != UINT32_MAX)
                k->names.meaning[id].mark = boundary;
        }
    }
    for (uint32_t i = 0; i < g->value_info_count; i++) {
        const onxi_check_at *here = ONXI_AT_ITEM(at, value_info, i, VALUE_INFO, g->value_info[i]);
        onxi_check_names_prepare_value(k, g->value_info, g->value_info_count, i);
        onxi_check_value_info(k, here, g->value_info[i], ONXI_ROLE_SUBGRAPH, "G-17");
        onx_str name = onx_view(g->value_info[i]->name);
        uint32_t id = name.len ? onxi_check_name_next(k, here, g->value_info[i]->name) : UINT32_MAX;
        if (id == UINT32_MAX)
            continue;
        onxi_check_meaning *m = &k->names.meaning[id];
        if (m->mark == token) {
            onxi_check_find(k, here, "G-16", ONXI_PLAIN, "the value has an entry already");
            continue;
        }
        if (!onxi_check_owns(k, scope, id))
            onxi_check_find(k, here, "G-18", ONXI_PLAIN, "the graph has no value of that name");
        else if (m->mark == boundary || m->kind == ONXI_NAME_INPUT)
            onxi_check_find(k, here, "G-19", ONXI_PLAIN, "an %s of the graph has an entry in value_info",
                            m->kind == ONXI_NAME_INPUT ? "input" : "output");
        m->mark = token;
    }
}

static void check_graph_itself(onxi_check *k, const onxi_check_at *at, const onx_graph *g)
{
    onx_str name = onx_view(g->name);
    uint32_t first;
    onxi_check_utf8(k, ONXI_AT(at, name), name);
    if (!name.len)
        onxi_check_find(k, at, "G-01", (onxi_check_detail){ .one_meaning = true }, "the graph has no name");
    else if (k->notes) {
        if (!k->graph_names)
            k->graph_names = onxi_check_set_new(k);
        if (!onxi_check_set_add(k, k->graph_names, name, 0, &first))
            onxi_check_find(k, ONXI_AT(at, name), "N-04",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "another graph of the model has the same name");
    }
    onxi_check_doc_string(k, at, onx_view(g->doc_string));
    if (k->pedantic && !onx_view(g->doc_string).len)
        onxi_check_find(k, at, "MD-13", ONXI_PLAIN, "the graph has no doc_string");
    if (g->metadata_props_count)
        onxi_check_gate(k, at, "V-17", "metadata_props of a graph", 10);
    onxi_check_metadata(k, at, g->metadata_props, g->metadata_props_count, false);
}

void onxi_check_nodes(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope)
{
    if (!onxi_check_node_names_open(k, scope))
        return;
    for (uint32_t i = 0; i < scope->node_count && k->status == ONX_OK; i++) {
        onxi_check_names_prepare(k, at, scope, i);
        onxi_check_node(k, ONXI_AT_ITEM(at, node, i, NODE, scope->nodes[i]), scope->nodes[i], i, scope);
    }
    onxi_check_node_names_close(k, at, scope);
}

void onxi_check_graph(onxi_check *k, const onxi_check_at *at, const onx_graph *g, onxi_check_scope *scope,
                      onxi_check_scope *up)
{
    scope->graph = g;
    scope->nodes = g->node;
    scope->node_count = g->node_count;
    onxi_check_enter(k, scope, up);
    check_graph_itself(k, at, g);
    check_inputs(k, at, g, scope);
    check_initializers(k, at, g, scope);
    if (!k->quick)
        onxi_check_note_denotations(k, g);
    onxi_check_nodes(k, at, scope);
    check_outputs(k, at, g, scope);
    if (!k->quick) {
        check_value_infos(k, at, g, scope);
        onxi_check_annotations(k, at, g, scope);
    }
}

/* ---- cycles: Tarjan's strongly connected components of one graph, with an explicit stack ---- */

typedef struct search {
    uint32_t *low, *number, *component, *stack, *frame, *step;
    uint32_t stack_count, frame_count, next, components;
} search;

static uint32_t producer_of(const onxi_check *k, const onxi_check_scope *scope, const onx_node *n, uint32_t input)
{
    onx_str name = onx_view(n->input[input]);
    uint32_t id = name.len ? onxi_check_name_find(k, name) : UINT32_MAX;
    const onxi_check_meaning *m = id == UINT32_MAX ? NULL : &k->names.meaning[id];
    return m && m->scope == scope->serial && m->kind == ONXI_NAME_OUTPUT ? m->index : UINT32_MAX;
}

static void visit(search *s, uint32_t node)
{
    s->number[node] = s->low[node] = ++s->next;
    s->stack[s->stack_count++] = node;
    s->frame[s->frame_count] = node;
    s->step[s->frame_count++] = 0;
}

static void run(const onxi_check *k, const onxi_check_scope *scope, search *s, uint32_t start)
{
    visit(s, start);
    while (s->frame_count) {
        uint32_t node = s->frame[s->frame_count - 1];
        const onx_node *n = scope->nodes[node];
        if (s->step[s->frame_count - 1] < n->input_count) {
            uint32_t from = producer_of(k, scope, n, s->step[s->frame_count - 1]++);
            if (from == UINT32_MAX)
                continue;
            if (!s->number[from])
                visit(s, from);
            else if (!s->component[from] && s->number[from] < s->low[node])
                s->low[node] = s->number[from];
            continue;
        }
        if (s->low[node] == s->number[node]) {
            s->components++;
            uint32_t member;
            do {
                member = s->stack[--s->stack_count];
                s->component[member] = s->components;
            } while (member != node);
        }
        if (--s->frame_count && s->low[node] < s->low[s->frame[s->frame_count - 1]])
            s->low[s->frame[s->frame_count - 1]] = s->low[node];
    }
}

uint32_t *onxi_check_graph_cycles(onxi_check *k, const onxi_check_scope *scope)
{
    uint32_t n = scope->node_count;
    search s = { 0 };
    uint32_t *all = ONXI_ARRAY(k->arena, uint32_t, (size_t)n * 6);
    if (onxi_check_failed(k, all))
        return NULL;
    s.low = all;
    s.number = all + n;
    s.component = all + 2 * (size_t)n;
    s.stack = all + 3 * (size_t)n;
    s.frame = all + 4 * (size_t)n;
    s.step = all + 5 * (size_t)n;
    for (uint32_t i = 0; i < n; i++)
        if (!s.number[i])
            run(k, scope, &s, i);
    return s.component;
}
