/* check_attribute.c - rules A: attributes on their own. check_node.c compares them with the operator's signature. */
#include "check/check.h"

const onx_rule onxi_check_rules_attribute[] = {
    { "A-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Attributes; onnx.in.proto: AttributeProto",
      "The attribute has a non-empty name", "attribute without name" },
    { "A-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: AttributeProto.type",
      "From ir_version 2 the type is present", "`a` with i set, no type" },
    { "A-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: AttributeProto",
      "The value sits in the field that belongs to the type", "type FLOAT with field i" },
    { "A-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Attributes; onnx.in.proto: AttributeProto",
      "Exactly one value field is used", "f and i both set" },
    { "A-05", ONX_MAY, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "onnx.in.proto: AttributeProto.type",
      "FLOAT, INT or STRING without its field means the default 0, 0.0 or empty (written by proto3 producers); an empty list type is a legal empty list",
      "accept: type INT with no i; type INTS with no ints" },
    { "A-06", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Attributes",
      "TENSOR, GRAPH, SPARSE_TENSOR and TYPE_PROTO cannot be defaulted and need their field",
      "type GRAPH with no g on a custom node" },
    { "A-07", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: AttributeProto.type",
      "Type UNDEFINED is never valid from ir_version 2 on", "type UNDEFINED, no value" },
    { "A-08", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: AttributeType",
      "The type number is one of the 14 defined ones", "type 77" },
    { "A-09", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: AttributeProto.type",
      "With ir_version 1 the type may be missing and is deduced from the field in use",
      "accept: ir_version 1, LeakyRelu alpha f 0.5, no type" },
    { "A-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Names Within a Graph",
      "Attribute names do not repeat within a node", "`a` twice" },
    { "A-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Attributes", "s and strings hold UTF-8 text",
      "s with byte `FF`" },
    { "A-12", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Attribute Types",
      "Tensors, sparse tensors, graphs and types inside an attribute satisfy their own rules",
      "tp holding an empty TypeProto" },
    { "A-13", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Attributes; onnx.in.proto: AttributeProto.ref_attr_name",
      "ref_attr_name is used only inside a function body, nested subgraphs of that body included",
      "reference on a main-graph node" },
    { "A-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Attributes",
      "An attribute with ref_attr_name carries no value", "ref_attr_name `p` plus f 1.0 in a function body" },
    { "A-15", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Attributes; Functions",
      "The referenced name is an attribute parameter of the enclosing function, with or without default",
      "reference to `p` in a function without `p`" },
    { "A-16", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: AttributeProto.type",
      "A reference states its type, equal to the type of the declared default if there is one and to the type the operator expects",
      "FLOAT reference to a parameter whose default is INT" },
    { "A-17", ONX_SHOULD, ONX_RULE_OFF, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Attributes",
      "Attributes carry a doc_string", "attribute without doc_string" },
    { "A-18", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "onnx.in.proto: AttributeProto",
      "The withdrawn value field number 12 is not used", "field 12 present" },
    { "A-19", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Tensor Element Types (IEEE 754)",
      "Float attributes may be NaN or infinite unless the operator says otherwise", "accept: f = NaN" },
    { 0 }
};

/* The number of value fields in use, and the first of them. */
static uint32_t used_slots(const onx_attribute *a, uint32_t *first)
{
    uint32_t used = 0, count;
    *first = a->slot;
    if (!a->extra)
        return a->slot != ONX_SLOT_NONE;
    for (int32_t i = 1; i < ONXI_ATTRIBUTE_TYPES; i++)
        if (onx_attribute_value(a, onxi_attribute_kind_of(i)->slot, &count)) {
            if (!used++)
                *first = onxi_attribute_kind_of(i)->slot;
        }
    return used;
}

static void check_texts(onxi_check *k, const onxi_check_at *at, const onx_attribute *a)
{
    uint32_t count;
    const onx_bytes *s = onx_attribute_value(a, ONX_SLOT_S, &count);
    if (s) {
        onx_str text = onx_view(*s);
        if (onxi_utf8_valid(text) < text.len)
            onxi_check_find(k, ONXI_AT(at, s), "A-11",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, text)) },
                            "the text is not UTF-8");
    }
    s = onx_attribute_value(a, ONX_SLOT_STRINGS, &count);
    for (uint32_t i = 0; s && i < count; i++) {
        onx_str text = onx_view(s[i]);
        if (onxi_utf8_valid(text) < text.len) {
            onxi_check_find(k, ONXI_AT_INDEX(at, strings, i), "A-11",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, text)) },
                            "the text is not UTF-8");
            return;
        }
    }
}

/* Checks a graph whose surroundings are unknown: names that it does not define may be defined there. */
static void forget_outer_names(onxi_check *k)
{
    for (uint32_t i = 0; i < k->names.pending_count; i++) {
        onxi_check_pending *p = &k->names.pending[i];
        onxi_check_meaning *m = &k->names.meaning[p->name];
        if (p->done || p->definer != ONXI_NO_INDEX)
            continue;
        p->done = true;
        if (!m->scope)
            m->index = 0;
    }
}

static void check_subgraph(onxi_check *k, const onxi_check_at *at, const onx_graph *graph, onxi_check_scope *scope,
                           const onx_node *holder)
{
    bool alone = !scope || !scope->names; /* in a separate attribute or node, or in a default */
    if (scope && scope->depth + 1 > k->depth_limit) {
        onxi_check_find(k, at, "S-19", (onxi_check_detail){ .value = onxi_check_number(k, scope->depth + 1) },
                        "subgraphs are nested deeper than the limit of %u (limit depth)", k->depth_limit);
        return;
    }
    onxi_check_scope inner = { .role = ONXI_ROLE_SUBGRAPH,
                               .root = scope ? scope->root : ONXI_ROLE_SUBGRAPH,
                               .imports = scope                ? scope->imports
                                          : k->default_imports ? k->default_imports
                                                               : &k->imports,
                               .function = scope ? scope->function : NULL,
                               .callee = scope ? scope->callee : 0,
                               .holder = holder,
                               .names = true };
    onxi_check_graph(k, at, graph, &inner, scope);
    if (alone)
        forget_outer_names(k);
    onxi_check_leave(k, at, &inner);
}

/* Checks tensors, graphs, sparse tensors and types by their own rules. */
static void check_parts(onxi_check *k, const onxi_check_at *at, const onx_attribute *a, onxi_check_scope *scope,
                        const onx_node *holder)
{
    uint32_t n;
    onx_tensor *const *t = onx_attribute_value(a, ONX_SLOT_T, &n);
    if (t && *t)
        onxi_check_tensor(k, ONXI_AT_MESSAGE(at, t, TENSOR, *t), *t);
    t = onx_attribute_value(a, ONX_SLOT_TENSORS, &n);
    for (uint32_t i = 0; t && i < n; i++)
        onxi_check_tensor(k, ONXI_AT_ITEM(at, tensors, i, TENSOR, t[i]), t[i]);
    onx_sparse_tensor *const *s = onx_attribute_value(a, ONX_SLOT_SPARSE_TENSOR, &n);
    if (s && *s)
        onxi_check_sparse(k, ONXI_AT(at, sparse_tensor), *s);
    s = onx_attribute_value(a, ONX_SLOT_SPARSE_TENSORS, &n);
    for (uint32_t i = 0; s && i < n; i++)
        onxi_check_sparse(k, ONXI_AT_INDEX(at, sparse_tensors, i), s[i]);
    onx_type *const *tp = onx_attribute_value(a, ONX_SLOT_TP, &n);
    if (tp && *tp)
        onxi_check_type(k, ONXI_AT(at, tp), *tp, 0);
    tp = onx_attribute_value(a, ONX_SLOT_TYPE_PROTOS, &n);
    for (uint32_t i = 0; tp && i < n; i++)
        onxi_check_type(k, ONXI_AT_INDEX(at, type_protos, i), tp[i], 0);
    onx_graph *const *g = onx_attribute_value(a, ONX_SLOT_G, &n);
    if (g && *g)
        check_subgraph(k, ONXI_AT(at, g), *g, scope, holder);
    g = onx_attribute_value(a, ONX_SLOT_GRAPHS, &n);
    for (uint32_t i = 0; g && i < n; i++)
        check_subgraph(k, ONXI_AT_INDEX(at, graphs, i), g[i], scope, holder);
}

static void check_reference(onxi_check *k, const onxi_check_at *at, const onx_attribute *a, uint32_t used,
                            const onxi_check_scope *scope)
{
    const onx_attribute_extra *more = onx_attribute_more(a);
    onx_str name = onx_view(more->ref_attr_name);
    const onxi_check_at *here = ONXI_AT(at, ref_attr_name);
    onxi_check_utf8(k, here, name);
    if (used)
        onxi_check_find(k, here, "A-14", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                        "the attribute is a reference and has a value, too");
    if (!scope) /* a separate part: its surroundings are unknown */
        return;
    const onx_function *f = scope->function;
    if (!f) {
        if (k->model || scope->role == ONXI_ROLE_MAIN)
            onxi_check_find(k, here, "A-13", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "an attribute outside a function refers to a parameter");
        return;
    }
    uint32_t which = 0;
    bool declared =
        scope->callee < k->callee_count && onxi_check_set_find(k->callees[scope->callee].parameters, name, &which);
    const onx_attribute *preset = which & ONXI_PRESET ? f->attribute_proto[which & ~ONXI_PRESET] : NULL;
    if (!declared)
        onxi_check_find(k, here, "A-15", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                        "the function has no parameter of that name");
    if (preset && ONX_HAS(attribute, a, type) && ONX_HAS(attribute, preset, type) && a->type != preset->type)
        onxi_check_find(
            k, here, "A-16",
            (onxi_check_detail){
                .value = onx_str_of(onx_attribute_type_name(a->type) ? onx_attribute_type_name(a->type) : "?"),
                .expected =
                    onx_str_of(onx_attribute_type_name(preset->type) ? onx_attribute_type_name(preset->type) : "?") },
            "the reference has another type than the parameter's default");
}

void onxi_check_attribute(onxi_check *k, const onxi_check_at *at, const onx_attribute *a, onxi_check_scope *scope,
                          const onx_node *holder)
{
    uint32_t slot, used = used_slots(a, &slot);
    bool reference =
        a->extra && ONX_HAS(attribute, a, ref_attr_name) && onx_view(onx_attribute_more(a)->ref_attr_name).len;
    if (!a->name.bits)
        onxi_check_find(k, at, "A-01", ONXI_PLAIN, "the attribute has no name");
    if (a->extra) {
        onxi_check_doc_string(k, at, onx_view(onx_attribute_more(a)->doc_string));
        for (const onx_unknown *u = a->extra->unknown; u; u = u->next)
            if (u->number == 12)
                onxi_check_find(k, at, "A-18", ONXI_PLAIN, "the withdrawn field 12 is used");
    }
    if (k->pedantic && !ONX_HAS(attribute, a, doc_string))
        onxi_check_find(k, at, "A-17", ONXI_PLAIN, "the attribute has no doc_string");
    if (used > 1)
        onxi_check_find(k, at, "A-04", ONXI_PLAIN, "%u value fields are used", used);
    if (reference)
        check_reference(k, at, a, used, scope);
    if (!ONX_HAS(attribute, a, type)) {
        if (k->ir_version >= 2)
            onxi_check_find(
                k, at, "A-02",
                (onxi_check_detail){
                    .hint = used == 1
                                ? onxi_check_text(k, "the value is in %s",
                                                  onxi_attribute_kind_of((int32_t)onxi_attribute_type_in(slot))->field)
                                : onx_str_make(NULL, 0) },
                "the attribute has no type");
    } else if (a->type < 0 || a->type >= ONXI_ATTRIBUTE_TYPES) {
        onxi_check_find(
            k, ONXI_AT(at, type), "A-08",
            (onxi_check_detail){ .value = onxi_check_number(k, a->type), .expected = onx_str_of("1 to 14") },
            "the type is no attribute type");
    } else if (a->type == ONX_ATTR_UNDEFINED) {
        if (k->ir_version >= 2)
            onxi_check_find(k, ONXI_AT(at, type), "A-07", ONXI_PLAIN, "the type is UNDEFINED");
    } else if (used == 1 && slot != onxi_attribute_kind_of(a->type)->slot) {
        onxi_check_find(k, at, "A-03",
                        (onxi_check_detail){
                            .value = onx_str_of(onxi_attribute_kind_of((int32_t)onxi_attribute_type_in(slot))->field),
                            .expected = onx_str_of(onxi_attribute_kind_of(a->type)->field) },
                        "the value of type %s is in the wrong field", onx_attribute_type_name(a->type));
    } else if (!used && !reference) {
        if (onxi_attribute_kind_of(a->type)->needed)
            onxi_check_find(k, at, "A-06",
                            (onxi_check_detail){ .expected = onx_str_of(onxi_attribute_kind_of(a->type)->field) },
                            "the attribute of type %s has no value", onx_attribute_type_name(a->type));
        else if (!onxi_attribute_kind_of(a->type)->list)
            onxi_check_find(k, at, "A-05", ONXI_PLAIN,
                            "the attribute of type %s has no value and stands for its default",
                            onx_attribute_type_name(a->type));
    }
    if (used &&
        (used > 1 || (slot != ONX_SLOT_I && slot != ONX_SLOT_F && slot != ONX_SLOT_INTS && slot != ONX_SLOT_FLOATS))) {
        if (!k->quick)
            check_texts(k, at, a);
        check_parts(k, at, a, scope, holder);
    }
}
