/* check_quantization.c - rules Q: quantization annotations. */
#include "check/check.h"

const onx_rule onxi_check_rules_quantization[] = {
    { "Q-01", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: GraphProto.quantization_annotation", "tensor_name names a value of the graph",
      "annotation for `nope`" },
    { "Q-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: TensorAnnotation",
      "Keys are predefined by ONNX; the only ones given are SCALE_TENSOR and ZERO_POINT_TENSOR", "key `FOO`" },
    { "Q-03", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: GraphProto.quantization_annotation", "The named parameter tensors exist in the model",
      "SCALE_TENSOR -> `nope`" },
    { "Q-04", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: Notes",
      "A key appears once per annotation", "SCALE_TENSOR twice" },
    { "Q-05", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: GraphProto.quantization_annotation", "A tensor has one annotation", "two annotations for `x`" },
    { "Q-06", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "Operators.md: DequantizeLinear",
      "The scale is a floating-point tensor, and the zero point has an integer (or 8-bit float) type",
      "integer scale" },
    { 0 }
};

/* The element type of an initializer or input of the graph, 0 if unknown. */
static int32_t dtype_of(const onxi_check *k, const onx_graph *graph, uint32_t name)
{
    const onxi_check_meaning *m = &k->names.meaning[name];
    if (m->kind == ONXI_NAME_INITIALIZER && m->index < graph->initializer_count)
        return graph->initializer[m->index]->data_type;
    if (m->kind == ONXI_NAME_INPUT && m->index < graph->input_count) {
        const onx_type *type = graph->input[m->index]->type;
        if (type && ONX_HAS(type, type, tensor_type))
            return type->tensor_type->elem_type;
    }
    return ONX_UNDEFINED;
}

static void check_parameter(onxi_check *k, const onxi_check_at *at, const onx_graph *graph, onxi_check_scope *scope,
                            const onx_string_string_entry *e)
{
    onx_str key = onx_view(e->key), value = onx_view(e->value);
    onxi_check_entry_text(k, at, e);
    bool scale = onx_str_is(key, "SCALE_TENSOR"), zero = onx_str_is(key, "ZERO_POINT_TENSOR");
    if (!scale && !zero)
        onxi_check_find(k, at, "Q-02",
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)),
                                             .expected = onx_str_of("SCALE_TENSOR or ZERO_POINT_TENSOR") },
                        "the key is none that ONNX defines");
    uint32_t name = onxi_check_name_find(k, value);
    if (name == UINT32_MAX || !k->names.meaning[name].scope) {
        onxi_check_find(k, at, "Q-03", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, value)) },
                        "there is no tensor of that name");
        return;
    }
    k->names.meaning[name].flags |= ONXI_NAME_USED;
    if (!onxi_check_owns(k, scope, name))
        return;
    onx_dtype_class class = onx_dtype_class_of(dtype_of(k, graph, name));
    unsigned bits = onx_dtype_bits(dtype_of(k, graph, name));
    bool integer = class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED;
    if (class == ONX_CLASS_NONE)
        return;
    if (scale && class != ONX_CLASS_FLOATING)
        onxi_check_find(k, at, "Q-06", ONXI_PLAIN, "the scale is no floating-point tensor");
    if (zero && !integer && !(class == ONX_CLASS_FLOATING && bits <= 8))
        onxi_check_find(k, at, "Q-06", ONXI_PLAIN, "the zero point is no integer tensor");
}

void onxi_check_annotations(onxi_check *k, const onxi_check_at *at, const onx_graph *graph, onxi_check_scope *scope)
{
    if (!graph->quantization_annotation_count)
        return;
    onxi_check_gate(k, at, "V-06", "quantization_annotation", 5);
    onxi_check_set *seen = onxi_check_set_new(k);
    for (uint32_t i = 0; i < graph->quantization_annotation_count; i++) {
        const onx_tensor_annotation *a = graph->quantization_annotation[i];
        const onxi_check_at *here = ONXI_AT_INDEX(at, quantization_annotation, i);
        onx_str tensor = onx_view(a->tensor_name);
        uint32_t name = onxi_check_name_find(k, tensor);
        onxi_check_utf8(k, ONXI_AT(here, tensor_name), tensor);
        if (name == UINT32_MAX || !k->names.meaning[name].scope)
            onxi_check_find(k, ONXI_AT(here, tensor_name), "Q-01",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, tensor)) },
                            "the graph has no value of that name");
        if (!onxi_check_set_add(k, seen, tensor, i, NULL))
            onxi_check_find(k, ONXI_AT(here, tensor_name), "Q-05",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, tensor)) },
                            "the tensor has an annotation already");
        onxi_check_set *keys = onxi_check_set_new(k);
        for (uint32_t j = 0; j < a->quant_parameter_tensor_names_count; j++) {
            const onx_string_string_entry *e = a->quant_parameter_tensor_names[j];
            const onxi_check_at *entry = ONXI_AT_ITEM(here, quant_parameter_tensor_names, j, STRING_STRING_ENTRY, e);
            if (!onxi_check_set_add(k, keys, onx_view(e->key), j, NULL))
                onxi_check_find(k, entry, "Q-04", ONXI_PLAIN, "the key is there twice");
            check_parameter(k, entry, graph, scope, e);
        }
    }
}
