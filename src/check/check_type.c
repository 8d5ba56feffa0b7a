/* check_type.c - rules TY: types of values, and value infos. */
#include "check/check.h"

const onx_rule onxi_check_rules_type[] = {
    { "TY-01", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TypeProto",
      "Exactly one kind is set wherever a TypeProto is required, at every nesting level", "seq of an empty TypeProto" },
    { "TY-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TypeProto.Tensor, SparseTensor",
      "Tensor and sparse tensor types have an elem_type", "tensor type with shape only" },
    { "TY-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TypeProto.Tensor, SparseTensor",
      "elem_type is one of 1 to 26, not UNDEFINED", "elem_type 0 or 99" },
    { "TY-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TypeProto.Sequence",
      "A sequence type has an elem_type, itself a valid type", "sequence without elem_type" },
    { "TY-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TypeProto.Map",
      "A map's key_type is INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64 or STRING", "map(float, ...)" },
    { "TY-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TypeProto.Map",
      "A map has a value_type, itself a valid type", "map without value_type" },
    { "TY-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Input / Output Data Types; ONNXTypes.md: Optional Type",
      "An optional type has an elem_type that is a tensor, sequence, map or sparse tensor",
      "optional(optional(float))" },
    { "TY-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ONNXTypes.md: Opaque Type; Syntax.md",
      "An opaque type has a non-empty name", "opaque with domain only" },
    { "TY-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL,
      "ONNXTypes.md: Opaque Type (the schema comment still says: the model's domain)",
      "An opaque type without domain belongs to the default domain `ai.onnx`",
      "opaque(RNG) in a model of domain `com.example`" },
    { "TY-10", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Static tensor shapes",
      "Absent shape, empty shape and a shape of unknown dimensions are kept apart: any rank, scalar, known rank",
      "printing an absent shape as a scalar" },
    { "TY-11", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Static tensor shapes",
      "A dimension may hold a number, a variable or neither (an unknown unrelated to any other)",
      "accept: `float[N,3,?]`" },
    { "TY-12", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Tensor Definition",
      "A numeric dimension is not negative", "dim_value -1" },
    { "TY-13", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Static tensor shapes, Historical Notes",
      "An empty variable name is not a notation for an unknown dimension", "dim_param with the empty string" },
    { "TY-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Static tensor shapes, Historical Notes",
      "A variable named `*` does not stand for several dimensions; the number of entries is the rank",
      "dim_param `*`" },
    { "TY-15", ONX_MUST, 0, ONX_BY_RUNNER, ONX_RULE_WARNING, NULL, "IR.md: Static tensor shapes",
      "One variable means one size throughout the model and its subgraphs, checked when values are bound",
      "inputs float[N] of 2 and float[N] of 3 elements" },
    { "TY-16", ONX_MUST, 0, ONX_BY_RUNNER, ONX_RULE_WARNING, NULL, "IR.md: Static tensor shapes",
      "In a sequence of tensors a variable promises equal sizes for all elements; dimensions that differ are left out, and the shape is left out if ranks differ",
      "seq(float[N]) holding tensors of 2 and 3 elements" },
    { "TY-17", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: TypeProto",
      "A purely neural-network implementation may decline non-tensor inputs and outputs",
      "accept: clear refusal of a map input" },
    { "TY-18", ONX_SHOULD, 0, ONX_BY_REGISTRY, ONX_RULE_NOTE, NULL, "onnx.in.proto: TypeProto",
      "Neural-network operators stick to tensor types", "a Relu variant taking maps" },
    { "TY-19", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_RUNNER, ONX_RULE_ERROR, NULL, "IR.md: Static tensor shapes",
      "A value bound to an input at run time has the declared kind, element type and rank",
      "feeding int64 to a float input" },
    { "TY-20", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_RUNNER, ONX_RULE_WARNING, NULL, "IR.md: Static tensor shapes",
      "A result has the element type, the rank and the numeric sizes that its output declares",
      "an output float[1,3] that a run makes as [2,3]" },
    { 0 }
};

static bool is_key_type(int32_t t)
{
    return t == ONX_STRING ||
           ((onx_dtype_class_of(t) == ONX_CLASS_SIGNED || onx_dtype_class_of(t) == ONX_CLASS_UNSIGNED) &&
            onx_dtype_bits(t) >= 8);
}

static void check_shape(onxi_check *k, const onxi_check_at *at, const onx_tensor_shape *shape)
{
    for (uint32_t i = 0; i < shape->dim_count; i++) {
        const onx_dimension *d = shape->dim[i];
        const onxi_check_at *here = ONXI_AT_INDEX(at, dim, i);
        if (ONX_HAS(dimension, d, dim_value) && d->dim_value < 0)
            onxi_check_find(
                k, here, "TY-12",
                (onxi_check_detail){ .value = onxi_check_number(k, d->dim_value),
                                     .hint = onx_str_of("leave the dimension empty when its size is not known") },
                "dimension %u is negative", i);
        if (ONX_HAS(dimension, d, dim_param)) {
            onx_str name = onx_view(d->dim_param);
            if (!name.len)
                onxi_check_find(
                    k, here, "TY-13",
                    (onxi_check_detail){ .hint = onx_str_of("leave the dimension empty when its size is not known") },
                    "dimension %u has a variable without a name", i);
            else if (onx_str_is(name, "*"))
                onxi_check_find(k, here, "TY-14", ONXI_PLAIN,
                                "dimension %u is \"*\", which stands for one dimension, not for several", i);
            else if (k->identifiers && !onxi_check_is_identifier(name))
                onxi_check_find(
                    k, here, "N-02",
                    (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)),
                                         .severity = k->flags & ONX_CHECK_STRICT ? ONX_RULE_ERROR : ONX_RULE_NOTE },
                    "the dimension variable is not a C identifier");
            onxi_check_utf8(k, here, name);
        }
        if (ONX_HAS(dimension, d, denotation))
            onxi_check_denotation(k, here, onx_view(d->denotation), true);
    }
}

static void check_elem_type(onxi_check *k, const onxi_check_at *at, bool present, int32_t type)
{
    if (!present)
        onxi_check_find(k, at, "TY-02", (onxi_check_detail){ .severity = k->type_severity },
                        "the tensor type has no elem_type");
    else if (!onx_dtype_name(type))
        onxi_check_find(k, ONXI_AT(at, elem_type), "TY-03",
                        (onxi_check_detail){ .value = onxi_check_number(k, type),
                                             .expected = onx_str_of("1 to 26"),
                                             .severity = k->type_severity },
                        type == ONX_UNDEFINED ? "elem_type is UNDEFINED" : "elem_type is no element type");
    else
        onxi_check_dtype_version(k, ONXI_AT(at, elem_type), type);
}

void onxi_check_type(onxi_check *k, const onxi_check_at *at, const onx_type *type, uint32_t depth)
{
    if (depth > k->depth_limit) {
        onxi_check_find(k, at, "W-25", (onxi_check_detail){ .value = onxi_check_number(k, depth) },
                        "types are nested deeper than the limit of %u", k->depth_limit);
        return;
    }
    if (ONX_HAS(type, type, denotation))
        onxi_check_denotation(k, at, onx_view(type->denotation), false);
    if (ONX_HAS(type, type, tensor_type)) {
        const onxi_check_at *here = ONXI_AT(at, tensor_type);
        check_elem_type(k, here, ONX_HAS(type_tensor, type->tensor_type, elem_type), type->tensor_type->elem_type);
        if (type->tensor_type->shape)
            check_shape(k, ONXI_AT(here, shape), type->tensor_type->shape);
    } else if (ONX_HAS(type, type, sparse_tensor_type)) {
        const onxi_check_at *here = ONXI_AT(at, sparse_tensor_type);
        onxi_check_gate(k, here, "V-11", "a sparse tensor type", 8);
        check_elem_type(k, here, ONX_HAS(type_sparse_tensor, type->sparse_tensor_type, elem_type),
                        type->sparse_tensor_type->elem_type);
        if (type->sparse_tensor_type->shape)
            check_shape(k, ONXI_AT(here, shape), type->sparse_tensor_type->shape);
    } else if (ONX_HAS(type, type, sequence_type)) {
        const onxi_check_at *here = ONXI_AT(at, sequence_type);
        onxi_check_gate(k, here, "V-08", "a sequence type", 6);
        if (!type->sequence_type->elem_type)
            onxi_check_find(k, here, "TY-04", (onxi_check_detail){ .severity = k->type_severity },
                            "the sequence type has no elem_type");
        else
            onxi_check_type(k, ONXI_AT(here, elem_type), type->sequence_type->elem_type, depth + 1);
    } else if (ONX_HAS(type, type, map_type)) {
        const onxi_check_at *here = ONXI_AT(at, map_type);
        const onx_type_map *map = type->map_type;
        onxi_check_gate(k, here, "V-08", "a map type", 6);
        if (!ONX_HAS(type_map, map, key_type) || !is_key_type(map->key_type))
            onxi_check_find(k, ONXI_AT(here, key_type), "TY-05",
                            (onxi_check_detail){ .value = onx_dtype_name(map->key_type)
                                                              ? onx_str_of(onx_dtype_name(map->key_type))
                                                              : onxi_check_number(k, map->key_type),
                                                 .expected = onx_str_of("an integer of 8 to 64 bits, or string") },
                            "the map type has no key type that is allowed");
        if (!map->value_type)
            onxi_check_find(k, here, "TY-06", (onxi_check_detail){ .severity = k->type_severity },
                            "the map type has no value_type");
        else
            onxi_check_type(k, ONXI_AT(here, value_type), map->value_type, depth + 1);
    } else if (ONX_HAS(type, type, optional_type)) {
        const onxi_check_at *here = ONXI_AT(at, optional_type);
        const onx_type *inner = type->optional_type->elem_type;
        onxi_check_gate(k, here, "V-11", "an optional type", 8);
        if (!inner) {
            onxi_check_find(k, here, "TY-07", ONXI_PLAIN, "the optional type has no elem_type");
        } else {
            if (ONX_HAS(type, inner, optional_type) || ONX_HAS(type, inner, opaque_type))
                onxi_check_find(
                    k, here, "TY-07",
                    (onxi_check_detail){ .severity = ONX_RULE_WARNING,
                                         .expected = onx_str_of("a tensor, sparse tensor, sequence or map") },
                    "an optional holds an %s", ONX_HAS(type, inner, optional_type) ? "optional" : "opaque value");
            onxi_check_type(k, ONXI_AT(here, elem_type), inner, depth + 1);
        }
    } else if (ONX_HAS(type, type, opaque_type)) {
        const onxi_check_at *here = ONXI_AT(at, opaque_type);
        onxi_check_gate(k, here, "V-23", "an opaque type", 14);
        onxi_check_utf8(k, ONXI_AT(here, domain), onx_view(type->opaque_type->domain));
        onxi_check_utf8(k, ONXI_AT(here, name), onx_view(type->opaque_type->name));
        if (!onx_view(type->opaque_type->name).len)
            onxi_check_find(k, here, "TY-08", ONXI_PLAIN, "the opaque type has no name");
        if (!onx_view(type->opaque_type->domain).len && k->model && onx_view(k->model->domain).len)
            onxi_check_find(
                k, here, "TY-09",
                (onxi_check_detail){ .hint = onxi_check_text(k, "it belongs to ai.onnx, not to the model's domain %s",
                                                             onxi_check_quote(k, onx_view(k->model->domain))) },
                "the opaque type names no domain");
    } else {
        onxi_check_find(
            k, at, "TY-01",
            (onxi_check_detail){ .expected = onx_str_of("tensor, sparse tensor, sequence, map, optional or opaque"),
                                 .severity = k->type_severity },
            "the type has no kind");
    }
}

static bool has_shape(const onx_type *type)
{
    if (ONX_HAS(type, type, tensor_type))
        return type->tensor_type->shape != NULL;
    if (ONX_HAS(type, type, sparse_tensor_type))
        return type->sparse_tensor_type->shape != NULL;
    return true;
}

void onxi_check_value_info(onxi_check *k, const onxi_check_at *at, const onx_value_info *value, onxi_check_role role,
                           const char *name_rule)
{
    bool main = role == ONXI_ROLE_MAIN;
    if (!onx_view(value->name).len && name_rule)
        onxi_check_find(k, at, name_rule, ONXI_PLAIN, "the value has no name");
    onxi_check_doc_string(k, at, onx_view(value->doc_string));
    if (value->metadata_props_count)
        onxi_check_gate(k, at, "V-17", "metadata_props of a value", 10);
    onxi_check_metadata(k, at, value->metadata_props, value->metadata_props_count, false);
    if (!value->type) {
        if (main)
            onxi_check_find(k, at, "G-09", (onxi_check_detail){ .one_meaning = true }, "the value has no type");
        return;
    }
    const onxi_check_at *type = ONXI_AT(at, type);
    /* A value_info may be incomplete: the reference implementation only reads the types of main inputs and outputs. */
    k->type_severity = main ? ONX_RULE_NONE : ONX_RULE_WARNING;
    onxi_check_type(k, type, value->type, 0);
    k->type_severity = ONX_RULE_NONE;
    if (!main)
        return;
    if (!k->open_shapes && !has_shape(value->type))
        onxi_check_find(
            k, type, "G-09",
            (onxi_check_detail){ .hint = onx_str_of("give the rank at least, with empty dimensions for unknown sizes"),
                                 .one_meaning = true },
            "the type of the value has no shape");
    if (ONX_HAS(type, value->type, denotation) && onx_str_is(onx_view(value->type->denotation), "IMAGE"))
        k->has_image = true;
    if (!ONX_HAS(type, value->type, denotation))
        onxi_check_find(k, type, "MD-10", ONXI_PLAIN, "the type has no denotation");
}

void onxi_check_bind_dim(onxi_check *k, const onxi_check_at *at, const onx_dimension *dim, int64_t size,
                         onx_rule_severity severity)
{
    onx_str name = ONX_HAS(dimension, dim, dim_param) ? onx_view(dim->dim_param) : onx_str_make(NULL, 0);
    uint32_t known = k->dim_count;
    if (!onxi_dim_is_name(name) || k->quick)
        return;
    if (!k->dim_names)
        k->dim_names = onxi_check_set_new(k);
    if (!onxi_check_set_add(k, k->dim_names, name, k->dim_count, &known)) {
        if (known < k->dim_count && k->dim_sizes[known] != size)
            onxi_check_find(k, at, "N-08",
                            (onxi_check_detail){ .value = onxi_check_number(k, size),
                                                 .expected = onxi_check_number(k, k->dim_sizes[known]),
                                                 .severity = severity },
                            "the dimension variable %s has another size elsewhere", onxi_check_quote(k, name));
        return;
    }
    if (!ONXI_GROW_IN(k->arena, k->dim_sizes, k->dim_room, (uint64_t)k->dim_count + 1)) {
        onxi_check_failed(k, NULL);
        return;
    }
    k->dim_sizes[k->dim_count++] = size;
}

const onx_type *onxi_check_declared_type(onxi_check *k, onxi_check_scope *scope, onx_str name)
{
    const onx_graph *graph = scope->graph;
    uint32_t id = onxi_check_name_find(k, name), which;
    const onxi_check_meaning *m = id == UINT32_MAX ? NULL : &k->names.meaning[id];
    if (!graph)
        return NULL;
    if (m && m->scope == scope->serial && m->kind == ONXI_NAME_INPUT)
        return m->index < graph->input_count ? graph->input[m->index]->type : NULL;
    if (!scope->value_types) {
        scope->value_types = onxi_check_set_new(k);
        for (uint32_t i = 0; i < graph->output_count; i++)
            onxi_check_set_add(k, scope->value_types, onx_view(graph->output[i]->name), i, NULL);
        for (uint32_t i = 0; i < graph->value_info_count; i++)
            onxi_check_set_add(k, scope->value_types, onx_view(graph->value_info[i]->name), i | ONXI_PRESET, NULL);
    }
    if (!onxi_check_set_find(scope->value_types, name, &which))
        return NULL;
    return (which & ONXI_PRESET ? graph->value_info[which & ~ONXI_PRESET] : graph->output[which])->type;
}
