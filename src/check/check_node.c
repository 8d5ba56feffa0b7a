/* check_node.c - rules ND: nodes, and the requirements of the operators that they name. */
#include "check/check.h"

#include <limits.h>

const onx_rule onxi_check_rules_node[] = {
    { "ND-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes", "op_type is not empty",
      "node without op_type" },
    { "ND-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Graphs",
      "A node has zero or more inputs and one or more outputs", "custom node with one input and no output" },
    { "ND-03", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Optional Inputs and Outputs",
      "At least one output of a node has a name", "custom node whose only output is the empty name" },
    { "ND-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Operators",
      "In the standard domains the operator exists in the imported version",
      "op_type `Nope` in ai.onnx.preview.training" },
    { "ND-05", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Functions",
      "A model-local function defined in a standard domain makes its name callable there",
      "accept: function `Foo` of the default domain called by a node" },
    { "ND-06", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Operators",
      "A node of another domain matches a local function or a registered schema, else it is reported as unverifiable",
      "node `Foo` of domain `c` with no function `Foo`" },
    { "ND-07", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "Versioning.md: Example; reference schemas", "The operator is not deprecated in the imported version",
      "Upsample with default set 13" },
    { "ND-08", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "ManagingExperimentalOps.md",
      "The removed experimental operators (ATen, Affine, ConstantFill, Crop, DynamicSlice, GRUUnit, GivenTensorFill, ImageScaler, ParametricSoftplus, Scale, ScaledTanh) are reported",
      "node Affine" },
    { "ND-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "The number of inputs lies within what the signature allows", "Relu with two inputs" },
    { "ND-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "The number of outputs lies within what the signature allows", "Relu with no output" },
    { "ND-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Optional Inputs and Outputs",
      "A required input has a non-empty name", "`y = Relu(\"\")`" },
    { "ND-12", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Optional Inputs and Outputs",
      "A required output has a non-empty name", "Relu whose output is the empty name" },
    { "ND-13", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Optional Inputs and Outputs",
      "Optional inputs and outputs are left out by an empty name anywhere, or by stopping early at the end",
      "accept: `y = Clip(x)`, `y = Clip(x, \"\", hi)`" },
    { "ND-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Variadic Inputs and Outputs",
      "A variadic parameter (the last one only) receives at least its minimum number of operands, each with a name",
      "`y = Max(\"\")`" },
    { "ND-15", ONX_MUST, 0, ONX_BY_FULL, ONX_RULE_ERROR, NULL, "ShapeInference.md: Homogeneous vs. Heterogeneous",
      "Operands of a homogeneous variadic parameter share one type; heterogeneous ones need not",
      "Max of float and int32" },
    { "ND-16", ONX_MUST, 0, ONX_BY_FULL, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "Input and output types satisfy the type constraints, equal type variables meaning equal types",
      "Relu on tensor(string)" },
    { "ND-17", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes; reference schema check",
      "Every attribute is declared by the signature; names starting with two underscores are private and ignored",
      "Relu with attribute `zz`" },
    { "ND-18", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes", "Required attributes are present",
      "Cast without `to`" },
    { "ND-19", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Nodes",
      "The attribute type equals the declared one, references included", "LeakyRelu alpha given as INT" },
    { "ND-20", ONX_MUST, 0, ONX_BY_FULL, ONX_RULE_ERROR, NULL, "Operators.md",
      "What an operator demands of its attributes, its inputs and their shapes holds (for instance Constant has exactly one "
      "value attribute)",
      "Constant without any attribute" },
    { "ND-21", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Nodes",
      "A node name is optional and only for diagnostics", "accept: unnamed nodes" },
    { "ND-22", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: NodeProto.overload; IR.md: Functions",
      "overload is used only to select a model-local function, so the triple (domain, op_type, overload) has to exist",
      "`c.F:zz` with no such function" },
    { "ND-23", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Optional Inputs and Outputs",
      "A node names exactly those optional outputs that are computed",
      "naming an output that the chosen mode does not produce" },
    { "ND-24", ONX_MUST, 0, ONX_BY_FULL, ONX_RULE_ERROR, NULL, "IR.md: Dynamic Optional",
      "Conversion between an optional type and its element type goes through Optional and OptionalGetElement",
      "Relu fed with optional(tensor(float))" },
    { "ND-25", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Attributes",
      "Attributes hold constants fixed when the model is built; nothing computed at run time", "n/a" },
    { "ND-26", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "Changelog.md",
      "An attribute is no word that only a later version of the operator has",
      "ScatterND of version 16 with reduction `max`" },
    { 0 }
};

/* ---- operands against the signature ---- */

static uint32_t port_count(const onxi_port *ports)
{
    uint32_t n = 0;
    while (ports && ports[n].name)
        n++;
    return n;
}

static onx_str range(onxi_check *k, uint32_t least, uint32_t most)
{
    if (most == ONXI_MANY)
        return onxi_check_text(k, "%u or more", least);
    return least == most ? onxi_check_text(k, "%u", least) : onxi_check_text(k, "%u to %u", least, most);
}

/* `output`: the operands are outputs. */
static void check_operands(onxi_check *k, const onxi_check_at *at, const onxi_checked_op *op, const onx_bytes *names,
                           uint32_t count, bool output)
{
    const onxi_schema *s = op->schema;
    const onxi_port *ports = output ? s->outputs : s->inputs;
    uint32_t least = output ? s->min_output : s->min_input, most = output ? s->max_output : s->max_input;
    const char *what = output ? count == 1 ? "output" : "outputs" : count == 1 ? "input" : "inputs";
    if (!onxi_arity_fits(count, least, most)) {
        onxi_check_find(k, at, output ? "ND-10" : "ND-09",
                        (onxi_check_detail){ .value = onxi_check_number(k, count), .expected = range(k, least, most) },
                        "%s-%d does not take %u %s", onxi_check_quote(k, op->bound->name), s->since, count, what);
        return;
    }
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (names[i].bits)
            continue;
        if (last == UINT32_MAX)
            last = port_count(ports);
        const onxi_port *port = &ports[i < last ? i : last - 1];
        const onxi_check_at *here = output ? ONXI_AT_INDEX(at, output, i) : ONXI_AT_INDEX(at, input, i);
        if (port->flags & ONXI_PORT_VARIADIC) {
            onxi_check_find(k, here, "ND-14", (onxi_check_detail){ .expected = onx_str_of("a name") },
                            "an operand of the variadic %s %s has no name", output ? "output" : "input", port->name);
            return;
        }
        if (!(port->flags & ONXI_PORT_OPTIONAL))
            onxi_check_find(k, here, output ? "ND-12" : "ND-11", ONXI_PLAIN, "the %s %s is required and has no name",
                            output ? "output" : "input", port->name);
    }
}

/* ---- attributes against the signature ---- */

static onx_str similar_attribute(onxi_check *k, const onxi_schema *s, onx_str name)
{
    uint32_t best = 3;
    const char *found = NULL;
    if (k->hints++ > ONXI_HINTS)
        return onx_str_make(NULL, 0);
    for (const onxi_attr *a = s->attrs; a && a->name; a++) {
        uint32_t d;
        if (onxi_check_similar(name, onx_str_of(a->name), &d) && d < best) {
            best = d;
            found = a->name;
        }
    }
    return found ? onxi_check_text(k, "did you mean %s?", found) : onx_str_make(NULL, 0);
}

static bool is_name(const onxi_attr *a, onx_str name)
{
    return a->name[0] == name.ptr[0] && strlen(a->name) == name.len && memcmp(a->name, name.ptr, name.len) == 0;
}

static void check_missing(onxi_check *k, const onxi_check_at *at, const onxi_checked_op *op, const onx_node *n)
{
    for (const onxi_attr *a = op->schema->attrs; a && a->name; a++)
        if (a->required && !onx_node_attribute(n, a->name))
            onxi_check_find(k, at, "ND-18", (onxi_check_detail){ .expected = onx_str_of(a->name) },
                            "the required attribute %s of %s is missing", a->name,
                            onxi_check_quote(k, op->bound->name));
}

static void check_against_schema(onxi_check *k, const onxi_check_at *at, const onxi_checked_op *op, const onx_node *n)
{
    const onxi_schema *s = op->schema;
    uint32_t required = 0, values = 0;
    const onxi_attr *next = s->attrs; /* nodes mostly list attributes in the order of the schema */
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        const onx_attribute *a = n->attribute[i];
        onx_str name = onx_view(a->name);
        const onxi_attr *row = NULL;
        if (!name.len)
            continue;
        if (next && next->name && is_name(next, name))
            row = next;
        for (const onxi_attr *r = s->attrs; !row && r && r->name; r++)
            if (is_name(r, name))
                row = r;
        if (!row) {
            if (name.len < 2 || name.ptr[0] != '_' || name.ptr[1] != '_')
                onxi_check_find(k, ONXI_AT_ITEM(at, attribute, i, ATTRIBUTE, a), "ND-17",
                                (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)),
                                                     .hint = similar_attribute(k, s, name) },
                                "%s-%d has no attribute of that name", onxi_check_quote(k, op->bound->name), s->since);
            continue;
        }
        next = row + 1;
        required += row->required;
        values++;
        bool known = ONX_HAS(attribute, a, type) && onxi_attribute_kind_of(a->type)->slot;
        onx_attribute_type type = known               ? (onx_attribute_type)a->type
                                  : k->ir_version < 2 ? onx_attribute_type_of(a)
                                                      : ONX_ATTR_UNDEFINED;
        const bool any = row->type == ONX_ATTR_UNDEFINED; /* of a function, which does not say the type */
        if (!any && type != ONX_ATTR_UNDEFINED && type != (onx_attribute_type)row->type)
            onxi_check_find(k, ONXI_AT_ITEM(at, attribute, i, ATTRIBUTE, a), "ND-19",
                            (onxi_check_detail){ .value = onx_str_of(onx_attribute_type_name((int32_t)type)),
                                                 .expected = onx_str_of(onx_attribute_type_name(row->type)) },
                            "the attribute has the wrong type");
    }
    if (required < op->required)
        check_missing(k, at, op, n);
    if (op->bound->op == ONXI_ID_Constant && s->since >= 11 && values != 1)
        onxi_check_find(k, at, "ND-20",
                        (onxi_check_detail){ .value = onxi_check_number(k, values), .expected = onx_str_of("1") },
                        "a Constant has exactly one value attribute");
}

/* Attribute values that only a later version of the operator allows (ND-26). Their meaning is clear in earlier versions
 * as well, and existing models use them, so the kernels accept them in all versions. */
static const struct later_word {
    onxi_op_id op;
    int since; /* version of the operator */
    const char *attribute, *word;
} later_words[] = {
    { ONXI_ID_Pad, 19, "mode", "wrap" },
    { ONXI_ID_Resize, 19, "coordinate_transformation_mode", "half_pixel_symmetric" },
    { ONXI_ID_ScatterElements, 18, "reduction", "max" },
    { ONXI_ID_ScatterElements, 18, "reduction", "min" },
    { ONXI_ID_ScatterND, 18, "reduction", "max" },
    { ONXI_ID_ScatterND, 18, "reduction", "min" },
};

static void check_words(onxi_check *k, const onxi_check_at *at, const onxi_checked_op *op, const onx_node *n)
{
    for (size_t i = 0; i < sizeof later_words / sizeof *later_words; i++) {
        const struct later_word *w = &later_words[i];
        if (op->bound->op != w->op || op->schema->since >= w->since)
            continue;
        for (uint32_t j = 0; j < n->attribute_count; j++) {
            const onx_attribute *a = n->attribute[j];
            uint32_t count;
            const onx_bytes *text = onx_attribute_value(a, ONX_SLOT_S, &count);
            if (onx_str_is(onx_view(a->name), w->attribute) && text && onx_str_is(onx_view(*text), w->word))
                onxi_check_find(k, ONXI_AT_ITEM(at, attribute, j, ATTRIBUTE, a), "ND-26",
                                (onxi_check_detail){ .value = onx_str_of(w->word), .one_meaning = true },
                                "%s has that word from version %d on, not yet in version %d",
                                onxi_check_quote(k, op->bound->name), w->since, op->schema->since);
        }
    }
}

/* ---- attributes on their own ---- */

static void check_names_differ(onxi_check *k, const onxi_check_at *at, const onx_node *n)
{
    enum { SMALL = 8 };
    if (n->attribute_count < 2)
        return;
    onxi_check_set *seen = n->attribute_count > SMALL ? onxi_check_set_new(k) : NULL;
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        onx_str name = onx_view(n->attribute[i]->name);
        bool twice = false;
        if (!name.len)
            continue;
        if (seen)
            twice = !onxi_check_set_add(k, seen, name, i, NULL);
        else
            for (uint32_t j = 0; j < i && !twice; j++)
                twice = onx_str_equal(name, onx_view(n->attribute[j]->name));
        if (twice)
            onxi_check_find(k, ONXI_AT_ITEM(at, attribute, i, ATTRIBUTE, n->attribute[i]), "A-10",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "the node has an attribute of that name already");
    }
}

/* An attribute named like an operand (N-05): marks the operands of a node, then looks up its attributes. */
static void check_names_apart(onxi_check *k, const onxi_check_at *at, const onx_node *n)
{
    enum { SMALL = 64 };
    uint64_t pairs = (uint64_t)n->attribute_count * ((uint64_t)n->input_count + n->output_count);
    onxi_check_set *operands = pairs > SMALL ? onxi_check_set_new(k) : NULL;
    for (uint32_t i = 0; operands && i < n->input_count; i++)
        onxi_check_set_add(k, operands, onx_view(n->input[i]), 0, NULL);
    for (uint32_t i = 0; operands && i < n->output_count; i++)
        onxi_check_set_add(k, operands, onx_view(n->output[i]), 0, NULL);
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        onx_str name = onx_view(n->attribute[i]->name);
        bool same = operands && name.len && onxi_check_set_find(operands, name, NULL);
        for (uint32_t j = 0; !operands && !same && j < n->input_count; j++)
            same = name.len && onx_str_equal(name, onx_view(n->input[j]));
        for (uint32_t j = 0; !operands && !same && j < n->output_count; j++)
            same = name.len && onx_str_equal(name, onx_view(n->output[j]));
        if (same)
            onxi_check_find(k, ONXI_AT_ITEM(at, attribute, i, ATTRIBUTE, n->attribute[i]), "N-05",
                            (onxi_check_detail){ .severity = ONX_RULE_NOTE },
                            "the attribute has the name of an operand of its node");
    }
}

static void check_attributes(onxi_check *k, const onxi_check_at *at, const onx_node *n, onxi_check_scope *scope)
{
    if (!n->attribute_count)
        return;
    for (uint32_t i = 0; i < n->attribute_count; i++)
        onxi_check_attribute(k, ONXI_AT_ITEM(at, attribute, i, ATTRIBUTE, n->attribute[i]), n->attribute[i], scope, n);
    check_names_differ(k, at, n);
    if (k->notes)
        check_names_apart(k, at, n);
}

/* ---- checking a node ---- */

static void check_rare(onxi_check *k, const onxi_check_at *at, const onx_node *n, onxi_check_scope *scope)
{
    const onx_node_extra *more = onx_node_more(n);
    onxi_check_doc_string(k, at, onx_view(more->doc_string));
    if (ONX_HAS(node, n, overload)) {
        onxi_check_utf8(k, ONXI_AT(at, overload), onx_view(more->overload));
        if (onx_view(more->overload).len)
            onxi_check_gate(k, ONXI_AT(at, overload), "V-16", "overload", 10);
    }
    if (more->metadata_props_count)
        onxi_check_gate(k, at, "V-17", "metadata_props of a node", 10);
    onxi_check_metadata(k, at, more->metadata_props, more->metadata_props_count, false);
    onxi_check_node_devices(k, at, n, scope);
}

/* Outputs after the first that exist only in a mode selected by an attribute (ND-23). */
static const struct mode {
    onxi_op_id op;
    int first, last; /* versions of the operator */
    const char *attribute;
    bool needed; /* the attribute has to be present, not absent, for these outputs */
} modes[] = {
    { ONXI_ID_BatchNormalization, 14, INT_MAX, "training_mode", true },
    { ONXI_ID_BatchNormalization, 1, 6, "is_test", false },
    { ONXI_ID_Dropout, 1, 6, "is_test", false },
};

static void check_mode(onxi_check *k, const onxi_check_at *at, const onx_node *n, const onxi_checked_op *op)
{
    if (n->output_count < 2)
        return;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const struct mode *m = &modes[i];
        if (op->bound->op != m->op || op->schema->since < m->first || op->schema->since > m->last)
            continue;
        uint32_t output = 1;
        const onxi_attr_value set = onxi_bind_attribute(op->bound, n, m->attribute);
        if (set.type != ONX_ATTR_INT)
            return; /* the caller of the enclosing function decides, or the attribute is wrong */
        while (output < n->output_count && !n->output[output].bits)
            output++;
        if (output < n->output_count && (set.i != 0) != m->needed)
            onxi_check_find(
                k, ONXI_AT_INDEX(at, output, output), "ND-23",
                (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, onx_view(n->output[output]))) },
                m->needed ? "the output is computed only where %s is set"
                          : "the output is computed only where %s is not set",
                m->attribute);
    }
}

static uint32_t named(const onx_bytes *names, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += names[i].bits != 0;
    return n;
}

void onxi_check_node(onxi_check *k, const onxi_check_at *at, const onx_node *n, uint32_t index, onxi_check_scope *scope)
{
    scope->node = index;
    scope->node_serial = k->names.serial;
    for (uint32_t i = 0; i < n->input_count && scope->names; i++) {
        if (!n->input[i].bits)
            continue;
        const onxi_check_at here = { at, ONXI_STEP_input, i, ONX_KIND_NONE, NULL };
        onxi_check_use(k, &here, scope, onxi_check_name_read(k, &here, n->input[i]));
    }
    if (n->name.bits && !k->quick)
        onxi_check_utf8(k, ONXI_AT(at, name), onx_view(n->name));
    if (!n->op_type.bits)
        onxi_check_find(k, at, "ND-01", ONXI_PLAIN, "the node has no op_type");
    if (k->ir_version < 3 && n->domain.bits)
        onxi_check_gate(k, ONXI_AT(at, domain), "V-03", "domain of a node", 3);
    check_attributes(k, at, n, scope);
    const onxi_checked_op *op = onxi_check_bind(k, at, n, scope);
    if (op && op->kind == ONXI_BOUND_OPERATOR && !(op->schema->flags & ONXI_OP_OPEN)) {
        check_operands(k, at, op, n->input, n->input_count, false);
        check_operands(k, at, op, n->output, n->output_count, true);
        check_against_schema(k, at, op, n);
        if (n->attribute_count)
            check_words(k, at, op, n);
        if (op->holds_graphs)
            onxi_check_subgraph_shape(k, at, n, op);
        if (k->notes)
            check_mode(k, at, n, op);
        if (k->denoted && scope->names)
            onxi_check_layout(k, at, n, op->bound->op, scope);
        if (op->bound->op == ONXI_ID_Gradient && scope->names)
            onxi_check_gradient(k, at, n, scope);
    } else if (!n->output_count) {
        onxi_check_find(k, at, "ND-02",
                        (onxi_check_detail){ .severity = n->input_count ? ONX_RULE_WARNING : ONX_RULE_NONE },
                        "the node has no output");
    } else if (!named(n->output, n->output_count)) {
        onxi_check_find(k, at, "ND-03", ONXI_PLAIN, "no output of the node has a name");
    }
    for (uint32_t i = 0; i < n->attribute_count && (!op || op->kind != ONXI_BOUND_OPERATOR); i++)
        onxi_check_utf8(k, ONXI_AT_ITEM(at, attribute, i, ATTRIBUTE, n->attribute[i]), onx_view(n->attribute[i]->name));
    if (op && op->kind == ONXI_BOUND_FUNCTION)
        onxi_check_call(k, at, n, op, scope);
    if (n->extra)
        check_rare(k, at, n, scope);
    for (uint32_t i = 0; i < n->output_count && scope->names; i++) {
        if (!n->output[i].bits)
            continue;
        const onxi_check_at here = { at, ONXI_STEP_output, i, ONX_KIND_NONE, NULL };
        onxi_check_define(k, &here, scope, onxi_check_name_make(k, &here, n->output[i]), ONXI_NAME_OUTPUT, index);
    }
}
