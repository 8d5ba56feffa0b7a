/* ir_tables.c - the field tables of all messages, which drive reading, writing, copying, comparing and printing.
 * Numbers and types are those of onnx.proto, onnx-operators.proto and onnx-data.proto (IR version 14). */
#include "ir/ir.h"

/* Tables are aligned by hand. */
/* clang-format off */

/* A row is X(message, number, field, KIND, argument...). KIND_ROW tells how the member is stored, KIND_MANY whether it
 * is repeated. */
#define TYPE(n, T) .type = ONXI_##T, .tag = n < 16 ? n << 3 | ONXI_WIRE_TYPE(ONXI_##T) : 0
#define ONE_ROW(m, n, f, T) TYPE(n, T), .offset = offsetof(onx_##m, f), .has = onx_##m##_has_##f
#define ONE_ENUM_ROW(m, n, f, NAMES) ONE_ROW(m, n, f, ENUM), .names = NAMES
#define SUB_ROW(m, n, f, M) ONE_ROW(m, n, f, MESSAGE), .message = &table_##M
#define MANY_ROW(m, n, f, T)                                                            \
    TYPE(n, T), .flags = ONXI_REPEATED, .offset = offsetof(onx_##m, f),        \
    .count_offset = offsetof(onx_##m, f##_count)
#define SUBS_ROW(m, n, f, M) MANY_ROW(m, n, f, MESSAGE), .message = &table_##M
#define PACK_ROW(m, n, f, T, FLAGS)                                                                                  \
    .type = ONXI_##T, .tag = n << 3 | 2, .flags = ONXI_REPEATED | ONXI_PACKED | ONXI_WIDE | (FLAGS), .offset = offsetof(onx_##m, f), \
    .count_offset = offsetof(onx_##m, f##_count)
#define ONEOF_ROW(m, n, f, T, GROUP) ONE_ROW(m, n, f, T), .flags = ONXI_ONEOF, .group = (GROUP)
#define SUB_ONEOF_ROW(m, n, f, M, GROUP) SUB_ROW(m, n, f, M), .flags = ONXI_ONEOF, .group = (GROUP)
/* Rare members, stored in the extra part. */
#define COLD_ROW(m, n, f, T) \
    TYPE(n, T), .flags = ONXI_COLD, .offset = offsetof(onx_##m##_extra, f), .has = onx_##m##_has_##f
#define COLD_SUBS_ROW(m, n, f, M)                                                                        \
    TYPE(n, MESSAGE), .flags = ONXI_COLD | ONXI_REPEATED, .offset = offsetof(onx_##m##_extra, f), \
    .count_offset = offsetof(onx_##m##_extra, f##_count), .message = &table_##M
/* Values of an attribute, stored in its slot or in the extra part. */
#define SLOT_ROW(m, n, f, T)                                                                           \
    TYPE(n, T), .flags = ONXI_SLOT, .offset = offsetof(onx_##m, f), .has = onx_##m##_has_##f, \
    .more_offset = offsetof(onx_##m##_extra, more.f)
#define SLOT_SUB_ROW(m, n, f, M) SLOT_ROW(m, n, f, MESSAGE), .message = &table_##M
#define SLOTS_ROW(m, n, f, T)                                                                          \
    TYPE(n, T), .flags = ONXI_SLOT | ONXI_REPEATED, .offset = offsetof(onx_##m, f),           \
    .count_offset = offsetof(onx_##m, count), .more_offset = offsetof(onx_##m##_extra, more.f),     \
    .more_count_offset = offsetof(onx_##m##_extra, f##_count)
#define SLOTS_SUB_ROW(m, n, f, M) SLOTS_ROW(m, n, f, MESSAGE), .message = &table_##M
/* `operator` is a keyword in C++, so the member is named differently from the field. */
#define OPERATORS_ROW(m, n, f, M)                                                              \
    TYPE(n, MESSAGE), .flags = ONXI_REPEATED, .offset = offsetof(onx_##m, operator_),   \
    .count_offset = offsetof(onx_##m, operator_count), .message = &table_##M

/* Repeated members, by storage: in the struct, in the extra part, in the slot. */
enum {
    ONE_IN = 0, ONE_ENUM_IN = 0, SUB_IN = 0, ONEOF_IN = 0, SUB_ONEOF_IN = 0, COLD_IN = 0, SLOT_IN = 0, SLOT_SUB_IN = 0,
    MANY_IN = 1, SUBS_IN = 1, PACK_IN = 1, OPERATORS_IN = 1, COLD_SUBS_IN = 2, SLOTS_IN = 2, SLOTS_SUB_IN = 2
};

#define MESSAGE(KIND, type, proto) static const onxi_message_table table_##type;
#include <onx/message.def>

static const onxi_enum_name attribute_types[] = {
    { 0, "UNDEFINED" }, { 1, "FLOAT" },         { 2, "INT" },      { 3, "STRING" },      { 4, "TENSOR" },
    { 5, "GRAPH" },     { 6, "FLOATS" },        { 7, "INTS" },     { 8, "STRINGS" },     { 9, "TENSORS" },
    { 10, "GRAPHS" },   { 11, "SPARSE_TENSOR" }, { 12, "SPARSE_TENSORS" }, { 13, "TYPE_PROTO" }, { 14, "TYPE_PROTOS" },
    { 0, NULL },
};
static const onxi_enum_name data_locations[] = { { 0, "DEFAULT" }, { 1, "EXTERNAL" }, { 0, NULL } };
static const onxi_enum_name operator_statuses[] = { { 0, "EXPERIMENTAL" }, { 1, "STABLE" }, { 0, NULL } };

#define FIELDS_string_string_entry(X, m) \
    X(m, 1, key, ONE, STRING)    \
    X(m, 2, value, ONE, STRING)

#define FIELDS_operator_set_id(X, m)        \
    X(m, 1, domain, ONE, STRING) \
    X(m, 2, version, ONE, INT64)

#define TWO_FIRST (1u << 30 | 1u << 29)
#define FIELDS_dimension(X, m)                                 \
    X(m, 1, dim_value, ONEOF, INT64, TWO_FIRST)    \
    X(m, 2, dim_param, ONEOF, STRING, TWO_FIRST)   \
    X(m, 3, denotation, ONE, STRING)

#define FIELDS_tensor_shape(X, m) X(m, 1, dim, SUBS, dimension)

#define FIELDS_type_tensor(X, m)                 \
    X(m, 1, elem_type, ONE, INT32) \
    X(m, 2, shape, SUB, tensor_shape)

#define FIELDS_type_sparse_tensor(X, m)          \
    X(m, 1, elem_type, ONE, INT32) \
    X(m, 2, shape, SUB, tensor_shape)

#define FIELDS_type_sequence(X, m) X(m, 1, elem_type, SUB, type)

#define FIELDS_type_map(X, m)                  \
    X(m, 1, key_type, ONE, INT32) \
    X(m, 2, value_type, SUB, type)

#define FIELDS_type_optional(X, m) X(m, 1, elem_type, SUB, type)

#define FIELDS_type_opaque(X, m)            \
    X(m, 1, domain, ONE, STRING) \
    X(m, 2, name, ONE, STRING)

#define TYPE_GROUP                                                                                        \
    (onx_type_has_tensor_type | onx_type_has_sequence_type | onx_type_has_map_type | onx_type_has_opaque_type | \
     onx_type_has_sparse_tensor_type | onx_type_has_optional_type)
#define FIELDS_type(X, m)                                                                              \
    X(m, 1, tensor_type, SUB_ONEOF, type_tensor, TYPE_GROUP)                           \
    X(m, 4, sequence_type, SUB_ONEOF, type_sequence, TYPE_GROUP)                     \
    X(m, 5, map_type, SUB_ONEOF, type_map, TYPE_GROUP)                                    \
    X(m, 6, denotation, ONE, STRING)                                                    \
    X(m, 7, opaque_type, SUB_ONEOF, type_opaque, TYPE_GROUP)                           \
    X(m, 8, sparse_tensor_type, SUB_ONEOF, type_sparse_tensor, TYPE_GROUP)      \
    X(m, 9, optional_type, SUB_ONEOF, type_optional, TYPE_GROUP)

#define FIELDS_value_info(X, m)                     \
    X(m, 1, name, ONE, STRING)             \
    X(m, 2, type, SUB, type)               \
    X(m, 3, doc_string, ONE, STRING) \
    X(m, 4, metadata_props, SUBS, string_string_entry)

#define FIELDS_segment(X, m)             \
    X(m, 1, begin, ONE, INT64) \
    X(m, 2, end, ONE, INT64)

#define FIELDS_tensor(X, m)                                                              \
    X(m, 1, dims, MANY, INT64)                                                  \
    X(m, 2, data_type, ONE, INT32)                                         \
    X(m, 3, segment, SUB, segment)                                           \
    X(m, 4, float_data, PACK, FLOAT, ONXI_BORROW)                         \
    X(m, 5, int32_data, PACK, INT32, 0)                                   \
    X(m, 6, string_data, MANY, BYTES)                                    \
    X(m, 7, int64_data, PACK, INT64, 0)                                   \
    X(m, 8, name, ONE, STRING)                                                  \
    X(m, 9, raw_data, ONE, BYTES)                                           \
    X(m, 10, double_data, PACK, DOUBLE, ONXI_BORROW)                     \
    X(m, 11, uint64_data, PACK, UINT64, 0)                               \
    X(m, 12, doc_string, ONE, STRING)                                     \
    X(m, 13, external_data, SUBS, string_string_entry)                 \
    X(m, 14, data_location, ONE_ENUM, data_locations)        \
    X(m, 16, metadata_props, SUBS, string_string_entry)

#define FIELDS_sparse_tensor(X, m)          \
    X(m, 1, values, SUB, tensor) \
    X(m, 2, indices, SUB, tensor) \
    X(m, 3, dims, MANY, INT64)

#define FIELDS_attribute(X, m)                                                             \
    X(m, 1, name, ONE, STRING)                                                    \
    X(m, 2, f, SLOT, FLOAT)                                                             \
    X(m, 3, i, SLOT, INT64)                                                             \
    X(m, 4, s, SLOT, BYTES)                                                             \
    X(m, 5, t, SLOT_SUB, tensor)                                 \
    X(m, 6, g, SLOT_SUB, graph)                                  \
    X(m, 7, floats, SLOTS, FLOAT)                                                  \
    X(m, 8, ints, SLOTS, INT64)                                                      \
    X(m, 9, strings, SLOTS, BYTES)                                                \
    X(m, 10, tensors, SLOTS_SUB, tensor)                   \
    X(m, 11, graphs, SLOTS_SUB, graph)                      \
    X(m, 13, doc_string, COLD, STRING)                                      \
    X(m, 14, tp, SLOT_SUB, type)                                \
    X(m, 15, type_protos, SLOTS_SUB, type)             \
    X(m, 20, type, ONE_ENUM, attribute_types)                           \
    X(m, 21, ref_attr_name, COLD, STRING)                                \
    X(m, 22, sparse_tensor, SLOT_SUB, sparse_tensor) \
    X(m, 23, sparse_tensors, SLOTS_SUB, sparse_tensor)

#define FIELDS_node(X, m)                                                        \
    X(m, 1, input, MANY, STRING)                                       \
    X(m, 2, output, MANY, STRING)                                     \
    X(m, 3, name, ONE, STRING)                                          \
    X(m, 4, op_type, ONE, STRING)                                    \
    X(m, 5, attribute, SUBS, attribute)                            \
    X(m, 6, doc_string, COLD, STRING)                             \
    X(m, 7, domain, ONE, STRING)                                      \
    X(m, 8, overload, COLD, STRING)                                 \
    X(m, 9, metadata_props, COLD_SUBS, string_string_entry)   \
    X(m, 10, device_configurations, COLD_SUBS, node_device_configuration)

#define FIELDS_tensor_annotation(X, m)                \
    X(m, 1, tensor_name, ONE, STRING) \
    X(m, 2, quant_parameter_tensor_names, SUBS, string_string_entry)

#define FIELDS_graph(X, m)                                                            \
    X(m, 1, node, SUBS, node)                                                \
    X(m, 2, name, ONE, STRING)                                               \
    X(m, 5, initializer, SUBS, tensor)                                \
    X(m, 10, doc_string, ONE, STRING)                                  \
    X(m, 11, input, SUBS, value_info)                                       \
    X(m, 12, output, SUBS, value_info)                                     \
    X(m, 13, value_info, SUBS, value_info)                             \
    X(m, 14, quantization_annotation, SUBS, tensor_annotation) \
    X(m, 15, sparse_initializer, SUBS, sparse_tensor)          \
    X(m, 16, metadata_props, SUBS, string_string_entry)

#define FIELDS_function(X, m)                                         \
    X(m, 1, name, ONE, STRING)                               \
    X(m, 4, input, MANY, STRING)                            \
    X(m, 5, output, MANY, STRING)                          \
    X(m, 6, attribute, MANY, STRING)                    \
    X(m, 7, node, SUBS, node)                                \
    X(m, 8, doc_string, ONE, STRING)                   \
    X(m, 9, opset_import, SUBS, operator_set_id)     \
    X(m, 10, domain, ONE, STRING)                          \
    X(m, 11, attribute_proto, SUBS, attribute)    \
    X(m, 12, value_info, SUBS, value_info)             \
    X(m, 13, overload, ONE, STRING)                      \
    X(m, 14, metadata_props, SUBS, string_string_entry)

#define FIELDS_int_int_list_entry(X, m) \
    X(m, 1, key, ONE, INT64)    \
    X(m, 2, value, MANY, INT64)

#define FIELDS_simple_sharded_dim(X, m)                      \
    X(m, 1, dim_value, ONEOF, INT64, TWO_FIRST)  \
    X(m, 2, dim_param, ONEOF, STRING, TWO_FIRST) \
    X(m, 3, num_shards, ONE, INT64)

#define FIELDS_sharded_dim(X, m)       \
    X(m, 1, axis, ONE, INT64) \
    X(m, 2, simple_sharding, SUBS, simple_sharded_dim)

#define FIELDS_sharding_spec(X, m)                                                              \
    X(m, 1, tensor_name, ONE, STRING)                                           \
    X(m, 2, device, MANY, INT64)                                                     \
    X(m, 3, index_to_device_group_map, SUBS, int_int_list_entry)  \
    X(m, 4, sharded_dim, SUBS, sharded_dim)

#define FIELDS_node_device_configuration(X, m)                  \
    X(m, 1, configuration_id, ONE, STRING) \
    X(m, 2, sharding_spec, SUBS, sharding_spec) \
    X(m, 3, pipeline_stage, ONE, INT32)

#define FIELDS_device_configuration(X, m)            \
    X(m, 1, name, ONE, STRING)              \
    X(m, 2, num_devices, ONE, INT32) \
    X(m, 3, device, MANY, STRING)

#define FIELDS_training_info(X, m)                                                     \
    X(m, 1, initialization, SUB, graph)                             \
    X(m, 2, algorithm, SUB, graph)                                       \
    X(m, 3, initialization_binding, SUBS, string_string_entry) \
    X(m, 4, update_binding, SUBS, string_string_entry)

#define FIELDS_model(X, m)                                                 \
    X(m, 1, ir_version, ONE, INT64)                         \
    X(m, 2, producer_name, ONE, STRING)                  \
    X(m, 3, producer_version, ONE, STRING)            \
    X(m, 4, domain, ONE, STRING)                                \
    X(m, 5, model_version, ONE, INT64)                   \
    X(m, 6, doc_string, ONE, STRING)                        \
    X(m, 7, graph, SUB, graph)                                   \
    X(m, 8, opset_import, SUBS, operator_set_id)          \
    X(m, 14, metadata_props, SUBS, string_string_entry) \
    X(m, 20, training_info, SUBS, training_info)         \
    X(m, 25, functions, SUBS, function)                      \
    X(m, 26, configuration, SUBS, device_configuration)

#define FIELDS_operator(X, m)                                                \
    X(m, 1, op_type, ONE, STRING)                                \
    X(m, 2, since_version, ONE, INT64)                     \
    X(m, 3, status, ONE_ENUM, operator_statuses)        \
    X(m, 10, doc_string, ONE, STRING)

#define FIELDS_operator_set(X, m)                                         \
    X(m, 1, magic, ONE, STRING)                                 \
    X(m, 2, ir_version, ONE, INT64)                        \
    X(m, 3, ir_version_prerelease, ONE, STRING) \
    X(m, 4, domain, ONE, STRING)                               \
    X(m, 5, opset_version, ONE, INT64)                  \
    X(m, 6, doc_string, ONE, STRING)                       \
    X(m, 7, ir_build_metadata, ONE, STRING)         \
    X(m, 8, operator, OPERATORS, operator)                                          \
    X(m, 9, functions, SUBS, function)

#define FIELDS_sequence(X, m)                                           \
    X(m, 1, name, ONE, STRING)                                 \
    X(m, 2, elem_type, ONE, INT32)                        \
    X(m, 3, tensor_values, SUBS, tensor)              \
    X(m, 4, sparse_tensor_values, SUBS, sparse_tensor) \
    X(m, 5, sequence_values, SUBS, sequence)        \
    X(m, 6, map_values, SUBS, map)                       \
    X(m, 7, optional_values, SUBS, optional)

#define FIELDS_map(X, m)                             \
    X(m, 1, name, ONE, STRING)              \
    X(m, 2, key_type, ONE, INT32)       \
    X(m, 3, keys, MANY, INT64)              \
    X(m, 4, string_keys, MANY, BYTES) \
    X(m, 5, values, SUB, sequence)

#define FIELDS_optional(X, m)                                       \
    X(m, 1, name, ONE, STRING)                             \
    X(m, 2, elem_type, ONE, INT32)                    \
    X(m, 3, tensor_value, SUB, tensor)             \
    X(m, 4, sparse_tensor_value, SUB, sparse_tensor) \
    X(m, 5, sequence_value, SUB, sequence)       \
    X(m, 6, map_value, SUB, map)                      \
    X(m, 7, optional_value, SUB, optional)

/* Reserved numbers (rule W-28). */
static const uint32_t attribute_reserved[] = { 12, 16, 17, 18, 19, 0 };
static const uint32_t graph_reserved[] = { 3, 4, 6, 7, 8, 9, 0 };
static const uint32_t function_reserved[] = { 2, 3, 0 };
static const uint32_t opaque_reserved[] = { 3, 0 };

/* Generated from the rows of a message: the field array, the index of each field number, the masks, the table. */
#define ROW(m, n, f, KIND, ...) { .name = #f, .number = n, KIND##_ROW(m, n, f, __VA_ARGS__) },
#define POSITION(m, n, f, ...) at_##m##_##f,
#define BY_NUMBER(m, n, f, ...) [n] = at_##m##_##f + 1,
#define SINGLE_BIT(m, n, f, KIND, ...) | (uint32_t)(KIND##_IN == 0) << (30 - at_##m##_##f)
#define HOT_LIST_BIT(m, n, f, KIND, ...) | (uint32_t)(KIND##_IN == 1) << (30 - at_##m##_##f)
#define COLD_LIST_BIT(m, n, f, KIND, ...) | (uint32_t)(KIND##_IN == 2) << (30 - at_##m##_##f)
#define TABLE(m, KIND, PROTO, EXTRA, ...)                                                 \
    enum { FIELDS_##m(POSITION, m) count_##m };                                           \
    static const onxi_field fields_##m[] = { FIELDS_##m(ROW, m) };                        \
    static const uint8_t numbers_##m[] = { FIELDS_##m(BY_NUMBER, m) };                    \
    static const onxi_message_table table_##m = { .name = PROTO,                          \
                                                  .fields = fields_##m,                   \
                                                  .field_count = count_##m,               \
                                                  .size = sizeof(onx_##m),                \
                                                  .extra_size = sizeof(EXTRA),            \
                                                  .singles = 0u FIELDS_##m(SINGLE_BIT, m),        \
                                                  .lists = 0u FIELDS_##m(HOT_LIST_BIT, m),        \
                                                  .extra_lists = 0u FIELDS_##m(COLD_LIST_BIT, m), \
                                                  .by_number = numbers_##m,               \
                                                  .number_count = sizeof numbers_##m,     \
                                                  .kind = ONX_KIND_##KIND,                \
                                                  __VA_ARGS__ };                          \
    _Static_assert(offsetof(onx_##m, extra) == 8 && count_##m <= 31, "head of " PROTO)

TABLE(string_string_entry, STRING_STRING_ENTRY, "StringStringEntryProto", onx_extra, .reserved = NULL);
TABLE(operator_set_id, OPERATOR_SET_ID, "OperatorSetIdProto", onx_extra, .reserved = NULL);
TABLE(dimension, DIMENSION, "TensorShapeProto.Dimension", onx_extra, .reserved = NULL);
TABLE(tensor_shape, TENSOR_SHAPE, "TensorShapeProto", onx_extra, .reserved = NULL);
TABLE(type_tensor, TYPE_TENSOR, "TypeProto.Tensor", onx_extra, .reserved = NULL);
TABLE(type_sparse_tensor, TYPE_SPARSE_TENSOR, "TypeProto.SparseTensor", onx_extra, .reserved = NULL);
TABLE(type_sequence, TYPE_SEQUENCE, "TypeProto.Sequence", onx_extra, .reserved = NULL);
TABLE(type_map, TYPE_MAP, "TypeProto.Map", onx_extra, .reserved = NULL);
TABLE(type_optional, TYPE_OPTIONAL, "TypeProto.Optional", onx_extra, .reserved = NULL);
TABLE(type_opaque, TYPE_OPAQUE, "TypeProto.Opaque", onx_extra, .reserved = opaque_reserved);
TABLE(type, TYPE, "TypeProto", onx_extra, .reserved = NULL, .alike = true);
TABLE(value_info, VALUE_INFO, "ValueInfoProto", onx_extra, .reserved = NULL);
TABLE(segment, SEGMENT, "TensorProto.Segment", onx_extra, .reserved = NULL);
TABLE(tensor, TENSOR, "TensorProto", onx_extra, .reserved = NULL);
TABLE(sparse_tensor, SPARSE_TENSOR, "SparseTensorProto", onx_extra, .reserved = NULL);
TABLE(attribute, ATTRIBUTE, "AttributeProto", onx_attribute_extra, .slot_offset = offsetof(onx_attribute, slot),
      .reserved = attribute_reserved);
TABLE(node, NODE, "NodeProto", onx_node_extra, .reserved = NULL);
TABLE(tensor_annotation, TENSOR_ANNOTATION, "TensorAnnotation", onx_extra, .reserved = NULL);
TABLE(graph, GRAPH, "GraphProto", onx_extra, .reserved = graph_reserved);
TABLE(function, FUNCTION, "FunctionProto", onx_extra, .reserved = function_reserved);
TABLE(int_int_list_entry, INT_INT_LIST_ENTRY, "IntIntListEntryProto", onx_extra, .reserved = NULL);
TABLE(simple_sharded_dim, SIMPLE_SHARDED_DIM, "SimpleShardedDimProto", onx_extra, .reserved = NULL);
TABLE(sharded_dim, SHARDED_DIM, "ShardedDimProto", onx_extra, .reserved = NULL);
TABLE(sharding_spec, SHARDING_SPEC, "ShardingSpecProto", onx_extra, .reserved = NULL);
TABLE(node_device_configuration, NODE_DEVICE_CONFIGURATION, "NodeDeviceConfigurationProto", onx_extra, .reserved = NULL);
TABLE(device_configuration, DEVICE_CONFIGURATION, "DeviceConfigurationProto", onx_extra, .reserved = NULL);
TABLE(training_info, TRAINING_INFO, "TrainingInfoProto", onx_extra, .reserved = NULL);
TABLE(model, MODEL, "ModelProto", onx_extra, .reserved = NULL);
TABLE(operator, OPERATOR, "OperatorProto", onx_extra, .reserved = NULL);
TABLE(operator_set, OPERATOR_SET, "OperatorSetProto", onx_extra, .reserved = NULL);
TABLE(sequence, SEQUENCE, "SequenceProto", onx_extra, .reserved = NULL);
TABLE(map, MAP, "MapProto", onx_extra, .reserved = NULL);
TABLE(optional, OPTIONAL, "OptionalProto", onx_extra, .reserved = NULL);

const onxi_message_table *const onxi_messages[ONX_KIND_COUNT] = {
#define MESSAGE(KIND, type, proto) [ONX_KIND_##KIND] = &table_##type,
#include <onx/message.def>
};

/* Command-line names of the kinds that can be the root of a file. */
static const struct {
    const char *word;
    onx_kind kind;
} kind_words[] = {
    { "model", ONX_KIND_MODEL },
    { "graph", ONX_KIND_GRAPH },
    { "function", ONX_KIND_FUNCTION },
    { "node", ONX_KIND_NODE },
    { "tensor", ONX_KIND_TENSOR },
    { "attribute", ONX_KIND_ATTRIBUTE },
    { "value-info", ONX_KIND_VALUE_INFO },
    { "sparse-tensor", ONX_KIND_SPARSE_TENSOR },
    { "type", ONX_KIND_TYPE },
    { "sequence", ONX_KIND_SEQUENCE },
    { "map", ONX_KIND_MAP },
    { "optional", ONX_KIND_OPTIONAL },
    { "operator-set", ONX_KIND_OPERATOR_SET },
};

/* clang-format on */

onx_kind onx_kind_find(onx_str word)
{
    for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++)
        if (onx_str_is(word, kind_words[i].word))
            return kind_words[i].kind;
    return ONX_KIND_NONE;
}

const char *onx_kind_proto_name(onx_kind kind)
{
    return onxi_is_kind(kind) ? onxi_messages[kind]->name : "none";
}

const char *onx_attribute_type_name(int32_t type)
{
    for (const onxi_enum_name *e = attribute_types; e->name; e++)
        if (e->value == type)
            return e->name;
    return NULL;
}
