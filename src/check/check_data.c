/* check_data.c - rules DV: stored sequences, maps and optionals. */
#include "check/check.h"

const onx_rule onxi_check_rules_data[] = {
    { "DV-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: SequenceProto",
      "SequenceProto.elem_type is present and is one of TENSOR, SPARSE_TENSOR, SEQUENCE, MAP, OPTIONAL",
      "elem_type UNDEFINED" },
    { "DV-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: SequenceProto",
      "Only the list matching elem_type is filled", "elem_type TENSOR with map_values" },
    { "DV-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: Sequences",
      "All tensors of a sequence share one element type; shapes may differ as the declared type allows",
      "float and int64 tensors in one sequence" },
    { "DV-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: MapProto",
      "MapProto.key_type is present and is an 8- to 64-bit integer type or STRING", "key_type DOUBLE" },
    { "DV-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: MapProto",
      "Integer keys are in keys, string keys in string_keys, never both", "key_type STRING with keys" },
    { "DV-06", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: MapProto",
      "Integer keys lie in the range of key_type", "key_type UINT8, key 300" },
    { "DV-07", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: Notes (maps without duplicates)", "Keys are distinct", "key 1 twice" },
    { "DV-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: MapProto",
      "values is present and as long as the keys", "two keys, one value" },
    { "DV-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: MapProto.values",
      "Map values are tensors, sparse tensors, maps or sequences", "values with elem_type OPTIONAL" },
    { "DV-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: OptionalProto; reference checker",
      "OptionalProto.elem_type is present; UNDEFINED goes with an empty optional", "tensor_value set, no elem_type" },
    { "DV-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx-data.in.proto: OptionalProto",
      "The value of an optional is in the field of its elem_type and in no other", "elem_type MAP with tensor_value" },
    { "DV-12", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx-data.in.proto: OptionalProto",
      "An optional may hold an optional", "accept: elem_type OPTIONAL" },
    { "DV-13", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: string_data (same convention)", "string_keys are UTF-8", "key byte `FF`" },
    { 0 }
};

static const char *const kind_name[] = { "UNDEFINED", "TENSOR", "SPARSE_TENSOR", "SEQUENCE", "MAP", "OPTIONAL" };

static bool too_deep(onxi_check *k, const onxi_check_at *at, uint32_t depth)
{
    if (depth <= k->depth_limit)
        return false;
    onxi_check_find(k, at, "W-25", (onxi_check_detail){ .value = onxi_check_number(k, depth) },
                    "values are nested deeper than the limit of %u", k->depth_limit);
    return true;
}

void onxi_check_sequence(onxi_check *k, const onxi_check_at *at, const onx_sequence *v, uint32_t depth)
{
    if (too_deep(k, at, depth))
        return;
    onxi_check_utf8(k, ONXI_AT(at, name), onx_view(v->name));
    const uint32_t counts[] = { 0,
                                v->tensor_values_count,
                                v->sparse_tensor_values_count,
                                v->sequence_values_count,
                                v->map_values_count,
                                v->optional_values_count };
    if (v->elem_type < ONX_DATA_TENSOR || v->elem_type > ONX_DATA_OPTIONAL) {
        onxi_check_find(
            k, ONXI_AT(at, elem_type), "DV-01",
            (onxi_check_detail){ .value = onxi_check_number(k, v->elem_type), .expected = onx_str_of("1 to 5") },
            ONX_HAS(sequence, v, elem_type) ? "elem_type is no kind of value" : "the sequence has no elem_type");
        return;
    }
    for (int i = 1; i <= ONX_DATA_OPTIONAL; i++)
        if (i != v->elem_type && counts[i])
            onxi_check_find(k, at, "DV-02",
                            (onxi_check_detail){ .value = onx_str_of(kind_name[i]),
                                                 .expected = onx_str_of(kind_name[v->elem_type]) },
                            "the sequence holds values of another kind");
    bool mixed = false;
    for (uint32_t i = 0; i < v->tensor_values_count; i++) {
        const onxi_check_at *here = ONXI_AT_ITEM(at, tensor_values, i, TENSOR, v->tensor_values[i]);
        onxi_check_tensor(k, here, v->tensor_values[i]);
        if (!mixed && v->tensor_values[i]->data_type != v->tensor_values[0]->data_type) {
            mixed = true;
            onxi_check_find(k, here, "DV-03",
                            (onxi_check_detail){ .value = onxi_check_number(k, v->tensor_values[i]->data_type),
                                                 .expected = onxi_check_number(k, v->tensor_values[0]->data_type) },
                            "the tensors of the sequence have different element types");
        }
    }
    for (uint32_t i = 0; i < v->sparse_tensor_values_count; i++)
        onxi_check_sparse(k, ONXI_AT_INDEX(at, sparse_tensor_values, i), v->sparse_tensor_values[i]);
    for (uint32_t i = 0; i < v->sequence_values_count; i++)
        onxi_check_sequence(k, ONXI_AT_INDEX(at, sequence_values, i), v->sequence_values[i], depth + 1);
    for (uint32_t i = 0; i < v->map_values_count; i++)
        onxi_check_map(k, ONXI_AT_INDEX(at, map_values, i), v->map_values[i], depth + 1);
    for (uint32_t i = 0; i < v->optional_values_count; i++)
        onxi_check_optional(k, ONXI_AT_INDEX(at, optional_values, i), v->optional_values[i], depth + 1);
}

static bool key_fits(int32_t type, int64_t key)
{
    unsigned bits = onx_dtype_bits(type);
    if (bits >= 64)
        return true; /* uint64 keys are stored in the same 64 bits */
    if (onx_dtype_class_of(type) == ONX_CLASS_UNSIGNED)
        return key >= 0 && key < (int64_t)1 << bits;
    return key >= -((int64_t)1 << (bits - 1)) && key < (int64_t)1 << (bits - 1);
}

static void check_keys(onxi_check *k, const onxi_check_at *at, const onx_map *v)
{
    onxi_check_set *seen = onxi_check_set_new(k);
    bool text = v->key_type == ONX_STRING;
    if (text ? v->keys_count : v->string_keys_count)
        onxi_check_find(k, at, "DV-05", (onxi_check_detail){ .expected = onx_str_of(text ? "string_keys" : "keys") },
                        "keys of type %s are not stored in %s", onx_dtype_name(v->key_type),
                        text ? "keys" : "string_keys");
    for (uint32_t i = 0; i < v->keys_count; i++) {
        const onxi_check_at *here = ONXI_AT_INDEX(at, keys, i);
        if (!text && !key_fits(v->key_type, v->keys[i]))
            onxi_check_find(k, here, "DV-06", (onxi_check_detail){ .value = onxi_check_number(k, v->keys[i]) },
                            "the key is no %s", onx_dtype_name(v->key_type));
        if (!onxi_check_set_add(k, seen, onx_str_make((const char *)&v->keys[i], sizeof v->keys[i]), i, NULL))
            onxi_check_find(k, here, "DV-07", (onxi_check_detail){ .value = onxi_check_number(k, v->keys[i]) },
                            "the key is there twice");
    }
    seen = onxi_check_set_new(k);
    for (uint32_t i = 0; i < v->string_keys_count; i++) {
        onx_str key = onx_view(v->string_keys[i]);
        const onxi_check_at *here = ONXI_AT_INDEX(at, string_keys, i);
        if (onxi_utf8_valid(key) < key.len)
            onxi_check_find(k, here, "DV-13", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)) },
                            "the key is not UTF-8");
        if (!onxi_check_set_add(k, seen, key, i, NULL))
            onxi_check_find(k, here, "DV-07", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)) },
                            "the key is there twice");
    }
}

void onxi_check_map(onxi_check *k, const onxi_check_at *at, const onx_map *v, uint32_t depth)
{
    if (too_deep(k, at, depth))
        return;
    onxi_check_utf8(k, ONXI_AT(at, name), onx_view(v->name));
    onx_dtype_class class = onx_dtype_class_of(v->key_type);
    bool integer = (class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED) && onx_dtype_bits(v->key_type) >= 8;
    if (!integer && v->key_type != ONX_STRING)
        onxi_check_find(k, ONXI_AT(at, key_type), "DV-04",
                        (onxi_check_detail){ .value = onx_dtype_name(v->key_type)
                                                          ? onx_str_of(onx_dtype_name(v->key_type))
                                                          : onxi_check_number(k, v->key_type),
                                             .expected = onx_str_of("an integer of 8 to 64 bits, or string") },
                        ONX_HAS(map, v, key_type) ? "key_type is no type for keys" : "the map has no key_type");
    else
        check_keys(k, at, v);
    if (!v->values) {
        onxi_check_find(k, at, "DV-08", ONXI_PLAIN, "the map has no values");
        return;
    }
    const onxi_check_at *values = ONXI_AT(at, values);
    const onx_sequence *s = v->values;
    uint64_t keys = (uint64_t)v->keys_count + v->string_keys_count;
    uint64_t count = (uint64_t)s->tensor_values_count + s->sparse_tensor_values_count + s->sequence_values_count +
                     s->map_values_count + s->optional_values_count;
    if (s->elem_type == ONX_DATA_OPTIONAL)
        onxi_check_find(k, values, "DV-09", ONXI_PLAIN, "a map cannot hold optionals");
    else if (keys != count)
        onxi_check_find(k, values, "DV-08",
                        (onxi_check_detail){ .value = onxi_check_number(k, (int64_t)count),
                                             .expected = onxi_check_number(k, (int64_t)keys) },
                        "there are not as many values as keys");
    onxi_check_sequence(k, values, s, depth + 1);
}

void onxi_check_optional(onxi_check *k, const onxi_check_at *at, const onx_optional *v, uint32_t depth)
{
    if (too_deep(k, at, depth))
        return;
    onxi_check_utf8(k, ONXI_AT(at, name), onx_view(v->name));
    const void *const fields[] = { NULL,         v->tensor_value,  v->sparse_tensor_value, v->sequence_value,
                                   v->map_value, v->optional_value };
    bool known = v->elem_type >= ONX_DATA_UNDEFINED && v->elem_type <= ONX_DATA_OPTIONAL;
    uint32_t filled = 0;
    for (int i = 1; i <= ONX_DATA_OPTIONAL; i++)
        filled += fields[i] != NULL;
    if (!ONX_HAS(optional, v, elem_type) || !known || (v->elem_type == ONX_DATA_UNDEFINED && filled)) {
        onxi_check_find(k, ONXI_AT(at, elem_type), "DV-10",
                        (onxi_check_detail){ .value = onxi_check_number(k, v->elem_type),
                                             .expected = onx_str_of(filled ? "1 to 5" : "0 to 5") },
                        ONX_HAS(optional, v, elem_type) ? "elem_type does not say what the optional holds"
                                                        : "the optional has no elem_type");
    } else {
        for (int i = 1; i <= ONX_DATA_OPTIONAL; i++)
            if (fields[i] && i != v->elem_type)
                onxi_check_find(k, at, "DV-11",
                                (onxi_check_detail){ .value = onx_str_of(kind_name[i]),
                                                     .expected = onx_str_of(kind_name[v->elem_type]) },
                                "the optional holds a value of another kind");
    }
    if (v->tensor_value)
        onxi_check_tensor(k, ONXI_AT_MESSAGE(at, tensor_value, TENSOR, v->tensor_value), v->tensor_value);
    if (v->sparse_tensor_value)
        onxi_check_sparse(k, ONXI_AT(at, sparse_tensor_value), v->sparse_tensor_value);
    if (v->sequence_value)
        onxi_check_sequence(k, ONXI_AT(at, sequence_value), v->sequence_value, depth + 1);
    if (v->map_value)
        onxi_check_map(k, ONXI_AT(at, map_value), v->map_value, depth + 1);
    if (v->optional_value)
        onxi_check_optional(k, ONXI_AT(at, optional_value), v->optional_value, depth + 1);
}
