/* ir_tables.c - the field tables of all messages: what reading, writing, copying, comparing and printing walk.
 * Numbers and types are those of onnx.proto, onnx-operators.proto and onnx-data.proto (IR version 14). */
#include "ir/ir.h"

/* A row is X(message, number, field, kind of row). Kinds: how the member is stored. */
#define ONE(m, f, T) .type = ONXI_##T, .offset = offsetof(onx_##m, f), .has = onx_##m##_has_##f
#define MANY(m, f, T) \
    .type = ONXI_##T, .flags = ONXI_REPEATED, .offset = offsetof(onx_##m, f), .count_offset = offsetof(onx_##m, f##_count)
#define PACK(m, f, T, FLAGS)                                                                                            \
    .type = ONXI_##T, .flags = ONXI_REPEATED | ONXI_PACKED | ONXI_WIDE | (FLAGS), .offset = offsetof(onx_##m, f),       \
    .count_offset = offsetof(onx_##m, f##_count)
#define SUB(m, f, M) ONE(m, f, MESSAGE), .message = &table_##M
#define SUBS(m, f, M) MANY(m, f, MESSAGE), .message = &table_##M
#define ONEOF(m, f, T, GROUP) ONE(m, f, T), .flags = ONXI_ONEOF, .group = (GROUP)
#define SUB_ONEOF(m, f, M, GROUP) SUB(m, f, M), .flags = ONXI_ONEOF, .group = (GROUP)
/* Rare members, in the extra part. */
#define COLD(m, f, T) \
    .type = ONXI_##T, .flags = ONXI_COLD, .offset = offsetof(onx_##m##_extra, f), .has = onx_##m##_has_##f
#define COLD_SUBS(m, f, M)                                                                                \
    .type = ONXI_MESSAGE, .flags = ONXI_COLD | ONXI_REPEATED, .offset = offsetof(onx_##m##_extra, f),     \
    .count_offset = offsetof(onx_##m##_extra, f##_count), .message = &table_##M
/* Values of an attribute, in its slot or in the extra part. */
#define SLOT(f, T)                                                                                                   \
    .type = ONXI_##T, .flags = ONXI_SLOT, .offset = offsetof(onx_attribute, f), .has = onx_attribute_has_##f,        \
    .more_offset = offsetof(onx_attribute_extra, more.f)
#define SLOTS(f, T)                                                                                                  \
    .type = ONXI_##T, .flags = ONXI_SLOT | ONXI_REPEATED, .offset = offsetof(onx_attribute, f),                      \
    .count_offset = offsetof(onx_attribute, count), .more_offset = offsetof(onx_attribute_extra, more.f),            \
    .more_count_offset = offsetof(onx_attribute_extra, f##_count)

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
    X(m, 1, key, ONE(m, key, STRING))    \
    X(m, 2, value, ONE(m, value, STRING))

#define FIELDS_operator_set_id(X, m)        \
    X(m, 1, domain, ONE(m, domain, STRING)) \
    X(m, 2, version, ONE(m, version, INT64))

#define FIELDS_dimension(X, m)                                 \
    X(m, 1, dim_value, ONEOF(m, dim_value, INT64, 1u | 2u))    \
    X(m, 2, dim_param, ONEOF(m, dim_param, STRING, 1u | 2u))   \
    X(m, 3, denotation, ONE(m, denotation, STRING))

#define FIELDS_tensor_shape(X, m) X(m, 1, dim, SUBS(m, dim, dimension))

#define FIELDS_type_tensor(X, m)                 \
    X(m, 1, elem_type, ONE(m, elem_type, INT32)) \
    X(m, 2, shape, SUB(m, shape, tensor_shape))

#define FIELDS_type_sparse_tensor(X, m)          \
    X(m, 1, elem_type, ONE(m, elem_type, INT32)) \
    X(m, 2, shape, SUB(m, shape, tensor_shape))

#define FIELDS_type_sequence(X, m) X(m, 1, elem_type, SUB(m, elem_type, type))

#define FIELDS_type_map(X, m)                  \
    X(m, 1, key_type, ONE(m, key_type, INT32)) \
    X(m, 2, value_type, SUB(m, value_type, type))

#define FIELDS_type_optional(X, m) X(m, 1, elem_type, SUB(m, elem_type, type))

#define FIELDS_type_opaque(X, m)            \
    X(m, 1, domain, ONE(m, domain, STRING)) \
    X(m, 2, name, ONE(m, name, STRING))

#define TYPE_GROUP                                                                                        \
    (onx_type_has_tensor_type | onx_type_has_sequence_type | onx_type_has_map_type | onx_type_has_opaque_type | \
     onx_type_has_sparse_tensor_type | onx_type_has_optional_type)
#define FIELDS_type(X, m)                                                                              \
    X(m, 1, tensor_type, SUB_ONEOF(m, tensor_type, type_tensor, TYPE_GROUP))                           \
    X(m, 4, sequence_type, SUB_ONEOF(m, sequence_type, type_sequence, TYPE_GROUP))                     \
    X(m, 5, map_type, SUB_ONEOF(m, map_type, type_map, TYPE_GROUP))                                    \
    X(m, 6, denotation, ONE(m, denotation, STRING))                                                    \
    X(m, 7, opaque_type, SUB_ONEOF(m, opaque_type, type_opaque, TYPE_GROUP))                           \
    X(m, 8, sparse_tensor_type, SUB_ONEOF(m, sparse_tensor_type, type_sparse_tensor, TYPE_GROUP))      \
    X(m, 9, optional_type, SUB_ONEOF(m, optional_type, type_optional, TYPE_GROUP))

#define FIELDS_value_info(X, m)                     \
    X(m, 1, name, ONE(m, name, STRING))             \
    X(m, 2, type, SUB(m, type, type))               \
    X(m, 3, doc_string, ONE(m, doc_string, STRING)) \
    X(m, 4, metadata_props, SUBS(m, metadata_props, string_string_entry))

#define FIELDS_segment(X, m)             \
    X(m, 1, begin, ONE(m, begin, INT64)) \
    X(m, 2, end, ONE(m, end, INT64))

#define FIELDS_tensor(X, m)                                                              \
    X(m, 1, dims, MANY(m, dims, INT64))                                                  \
    X(m, 2, data_type, ONE(m, data_type, INT32))                                         \
    X(m, 3, segment, SUB(m, segment, segment))                                           \
    X(m, 4, float_data, PACK(m, float_data, FLOAT, ONXI_BORROW))                         \
    X(m, 5, int32_data, PACK(m, int32_data, INT32, 0))                                   \
    X(m, 6, string_data, MANY(m, string_data, BYTES))                                    \
    X(m, 7, int64_data, PACK(m, int64_data, INT64, 0))                                   \
    X(m, 8, name, ONE(m, name, STRING))                                                  \
    X(m, 9, raw_data, ONE(m, raw_data, BYTES))                                           \
    X(m, 10, double_data, PACK(m, double_data, DOUBLE, ONXI_BORROW))                     \
    X(m, 11, uint64_data, PACK(m, uint64_data, UINT64, 0))                               \
    X(m, 12, doc_string, ONE(m, doc_string, STRING))                                     \
    X(m, 13, external_data, SUBS(m, external_data, string_string_entry))                 \
    X(m, 14, data_location, ONE(m, data_location, ENUM), .names = data_locations)        \
    X(m, 16, metadata_props, SUBS(m, metadata_props, string_string_entry))

#define FIELDS_sparse_tensor(X, m)          \
    X(m, 1, values, SUB(m, values, tensor)) \
    X(m, 2, indices, SUB(m, indices, tensor)) \
    X(m, 3, dims, MANY(m, dims, INT64))

#define FIELDS_attribute(X, m)                                                             \
    X(m, 1, name, ONE(m, name, STRING))                                                    \
    X(m, 2, f, SLOT(f, FLOAT))                                                             \
    X(m, 3, i, SLOT(i, INT64))                                                             \
    X(m, 4, s, SLOT(s, BYTES))                                                             \
    X(m, 5, t, SLOT(t, MESSAGE), .message = &table_tensor)                                 \
    X(m, 6, g, SLOT(g, MESSAGE), .message = &table_graph)                                  \
    X(m, 7, floats, SLOTS(floats, FLOAT))                                                  \
    X(m, 8, ints, SLOTS(ints, INT64))                                                      \
    X(m, 9, strings, SLOTS(strings, BYTES))                                                \
    X(m, 10, tensors, SLOTS(tensors, MESSAGE), .message = &table_tensor)                   \
    X(m, 11, graphs, SLOTS(graphs, MESSAGE), .message = &table_graph)                      \
    X(m, 13, doc_string, COLD(m, doc_string, STRING))                                      \
    X(m, 14, tp, SLOT(tp, MESSAGE), .message = &table_type)                                \
    X(m, 15, type_protos, SLOTS(type_protos, MESSAGE), .message = &table_type)             \
    X(m, 20, type, ONE(m, type, ENUM), .names = attribute_types)                           \
    X(m, 21, ref_attr_name, COLD(m, ref_attr_name, STRING))                                \
    X(m, 22, sparse_tensor, SLOT(sparse_tensor, MESSAGE), .message = &table_sparse_tensor) \
    X(m, 23, sparse_tensors, SLOTS(sparse_tensors, MESSAGE), .message = &table_sparse_tensor)

#define FIELDS_node(X, m)                                                        \
    X(m, 1, input, MANY(m, input, STRING))                                       \
    X(m, 2, output, MANY(m, output, STRING))                                     \
    X(m, 3, name, ONE(m, name, STRING))                                          \
    X(m, 4, op_type, ONE(m, op_type, STRING))                                    \
    X(m, 5, attribute, SUBS(m, attribute, attribute))                            \
    X(m, 6, doc_string, COLD(m, doc_string, STRING))                             \
    X(m, 7, domain, ONE(m, domain, STRING))                                      \
    X(m, 8, overload, COLD(m, overload, STRING))                                 \
    X(m, 9, metadata_props, COLD_SUBS(m, metadata_props, string_string_entry))   \
    X(m, 10, device_configurations, COLD_SUBS(m, device_configurations, node_device_configuration))

#define FIELDS_tensor_annotation(X, m)                \
    X(m, 1, tensor_name, ONE(m, tensor_name, STRING)) \
    X(m, 2, quant_parameter_tensor_names, SUBS(m, quant_parameter_tensor_names, string_string_entry))

#define FIELDS_graph(X, m)                                                            \
    X(m, 1, node, SUBS(m, node, node))                                                \
    X(m, 2, name, ONE(m, name, STRING))                                               \
    X(m, 5, initializer, SUBS(m, initializer, tensor))                                \
    X(m, 10, doc_string, ONE(m, doc_string, STRING))                                  \
    X(m, 11, input, SUBS(m, input, value_info))                                       \
    X(m, 12, output, SUBS(m, output, value_info))                                     \
    X(m, 13, value_info, SUBS(m, value_info, value_info))                             \
    X(m, 14, quantization_annotation, SUBS(m, quantization_annotation, tensor_annotation)) \
    X(m, 15, sparse_initializer, SUBS(m, sparse_initializer, sparse_tensor))          \
    X(m, 16, metadata_props, SUBS(m, metadata_props, string_string_entry))

#define FIELDS_function(X, m)                                         \
    X(m, 1, name, ONE(m, name, STRING))                               \
    X(m, 4, input, MANY(m, input, STRING))                            \
    X(m, 5, output, MANY(m, output, STRING))                          \
    X(m, 6, attribute, MANY(m, attribute, STRING))                    \
    X(m, 7, node, SUBS(m, node, node))                                \
    X(m, 8, doc_string, ONE(m, doc_string, STRING))                   \
    X(m, 9, opset_import, SUBS(m, opset_import, operator_set_id))     \
    X(m, 10, domain, ONE(m, domain, STRING))                          \
    X(m, 11, attribute_proto, SUBS(m, attribute_proto, attribute))    \
    X(m, 12, value_info, SUBS(m, value_info, value_info))             \
    X(m, 13, overload, ONE(m, overload, STRING))                      \
    X(m, 14, metadata_props, SUBS(m, metadata_props, string_string_entry))

#define FIELDS_int_int_list_entry(X, m) \
    X(m, 1, key, ONE(m, key, INT64))    \
    X(m, 2, value, MANY(m, value, INT64))

#define FIELDS_simple_sharded_dim(X, m)                      \
    X(m, 1, dim_value, ONEOF(m, dim_value, INT64, 1u | 2u))  \
    X(m, 2, dim_param, ONEOF(m, dim_param, STRING, 1u | 2u)) \
    X(m, 3, num_shards, ONE(m, num_shards, INT64))

#define FIELDS_sharded_dim(X, m)       \
    X(m, 1, axis, ONE(m, axis, INT64)) \
    X(m, 2, simple_sharding, SUBS(m, simple_sharding, simple_sharded_dim))

#define FIELDS_sharding_spec(X, m)                                                              \
    X(m, 1, tensor_name, ONE(m, tensor_name, STRING))                                           \
    X(m, 2, device, MANY(m, device, INT64))                                                     \
    X(m, 3, index_to_device_group_map, SUBS(m, index_to_device_group_map, int_int_list_entry))  \
    X(m, 4, sharded_dim, SUBS(m, sharded_dim, sharded_dim))

#define FIELDS_node_device_configuration(X, m)                  \
    X(m, 1, configuration_id, ONE(m, configuration_id, STRING)) \
    X(m, 2, sharding_spec, SUBS(m, sharding_spec, sharding_spec)) \
    X(m, 3, pipeline_stage, ONE(m, pipeline_stage, INT32))

#define FIELDS_device_configuration(X, m)            \
    X(m, 1, name, ONE(m, name, STRING))              \
    X(m, 2, num_devices, ONE(m, num_devices, INT32)) \
    X(m, 3, device, MANY(m, device, STRING))

#define FIELDS_training_info(X, m)                                                     \
    X(m, 1, initialization, SUB(m, initialization, graph))                             \
    X(m, 2, algorithm, SUB(m, algorithm, graph))                                       \
    X(m, 3, initialization_binding, SUBS(m, initialization_binding, string_string_entry)) \
    X(m, 4, update_binding, SUBS(m, update_binding, string_string_entry))

#define FIELDS_model(X, m)                                                 \
    X(m, 1, ir_version, ONE(m, ir_version, INT64))                         \
    X(m, 2, producer_name, ONE(m, producer_name, STRING))                  \
    X(m, 3, producer_version, ONE(m, producer_version, STRING))            \
    X(m, 4, domain, ONE(m, domain, STRING))                                \
    X(m, 5, model_version, ONE(m, model_version, INT64))                   \
    X(m, 6, doc_string, ONE(m, doc_string, STRING))                        \
    X(m, 7, graph, SUB(m, graph, graph))                                   \
    X(m, 8, opset_import, SUBS(m, opset_import, operator_set_id))          \
    X(m, 14, metadata_props, SUBS(m, metadata_props, string_string_entry)) \
    X(m, 20, training_info, SUBS(m, training_info, training_info))         \
    X(m, 25, functions, SUBS(m, functions, function))                      \
    X(m, 26, configuration, SUBS(m, configuration, device_configuration))

#define FIELDS_operator(X, m)                                                \
    X(m, 1, op_type, ONE(m, op_type, STRING))                                \
    X(m, 2, since_version, ONE(m, since_version, INT64))                     \
    X(m, 3, status, ONE(m, status, ENUM), .names = operator_statuses)        \
    X(m, 10, doc_string, ONE(m, doc_string, STRING))

#define OPERATORS                                                                                           \
    .type = ONXI_MESSAGE, .flags = ONXI_REPEATED, .offset = offsetof(onx_operator_set, operator_),          \
    .count_offset = offsetof(onx_operator_set, operator_count), .message = &table_operator
#define FIELDS_operator_set(X, m)                                         \
    X(m, 1, magic, ONE(m, magic, STRING))                                 \
    X(m, 2, ir_version, ONE(m, ir_version, INT64))                        \
    X(m, 3, ir_version_prerelease, ONE(m, ir_version_prerelease, STRING)) \
    X(m, 4, domain, ONE(m, domain, STRING))                               \
    X(m, 5, opset_version, ONE(m, opset_version, INT64))                  \
    X(m, 6, doc_string, ONE(m, doc_string, STRING))                       \
    X(m, 7, ir_build_metadata, ONE(m, ir_build_metadata, STRING))         \
    X(m, 8, operator, OPERATORS)                                          \
    X(m, 9, functions, SUBS(m, functions, function))

#define FIELDS_sequence(X, m)                                           \
    X(m, 1, name, ONE(m, name, STRING))                                 \
    X(m, 2, elem_type, ONE(m, elem_type, INT32))                        \
    X(m, 3, tensor_values, SUBS(m, tensor_values, tensor))              \
    X(m, 4, sparse_tensor_values, SUBS(m, sparse_tensor_values, sparse_tensor)) \
    X(m, 5, sequence_values, SUBS(m, sequence_values, sequence))        \
    X(m, 6, map_values, SUBS(m, map_values, map))                       \
    X(m, 7, optional_values, SUBS(m, optional_values, optional))

#define FIELDS_map(X, m)                             \
    X(m, 1, name, ONE(m, name, STRING))              \
    X(m, 2, key_type, ONE(m, key_type, INT32))       \
    X(m, 3, keys, MANY(m, keys, INT64))              \
    X(m, 4, string_keys, MANY(m, string_keys, BYTES)) \
    X(m, 5, values, SUB(m, values, sequence))

#define FIELDS_optional(X, m)                                       \
    X(m, 1, name, ONE(m, name, STRING))                             \
    X(m, 2, elem_type, ONE(m, elem_type, INT32))                    \
    X(m, 3, tensor_value, SUB(m, tensor_value, tensor))             \
    X(m, 4, sparse_tensor_value, SUB(m, sparse_tensor_value, sparse_tensor)) \
    X(m, 5, sequence_value, SUB(m, sequence_value, sequence))       \
    X(m, 6, map_value, SUB(m, map_value, map))                      \
    X(m, 7, optional_value, SUB(m, optional_value, optional))

/* Reserved numbers (rule W-28). */
static const uint32_t attribute_reserved[] = { 12, 16, 17, 18, 19, 0 };
static const uint32_t graph_reserved[] = { 3, 4, 6, 7, 8, 9, 0 };
static const uint32_t function_reserved[] = { 2, 3, 0 };
static const uint32_t opaque_reserved[] = { 3, 0 };

/* From the rows of a message: the field array, the position of each number, the table. */
#define ROW(m, n, f, ...) { .name = #f, .number = n, __VA_ARGS__ },
#define POSITION(m, n, f, ...) at_##m##_##f,
#define BY_NUMBER(m, n, f, ...) [n] = at_##m##_##f + 1,
#define TABLE(m, KIND, PROTO, EXTRA, ...)                                                 \
    enum { FIELDS_##m(POSITION, m) count_##m };                                        \
    static const onxi_field fields_##m[] = { FIELDS_##m(ROW, m) };                        \
    static const uint8_t numbers_##m[] = { FIELDS_##m(BY_NUMBER, m) };                    \
    static const onxi_message_table table_##m = { .name = PROTO,                          \
                                                  .fields = fields_##m,                   \
                                                  .field_count = count_##m,            \
                                                  .size = sizeof(onx_##m),                \
                                                  .extra_size = sizeof(EXTRA),            \
                                                  .by_number = numbers_##m,               \
                                                  .number_count = sizeof numbers_##m,     \
                                                  .kind = ONX_KIND_##KIND,                \
                                                  __VA_ARGS__ };                          \
    _Static_assert(offsetof(onx_##m, extra) == 8 && count_##m <= 32, "head of " PROTO)

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
TABLE(type, TYPE, "TypeProto", onx_extra, .reserved = NULL);
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

/* Words of the command line for kinds that can stand in a file of their own. */
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

onx_kind onx_kind_find(onx_str word)
{
    for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++)
        if (onx_str_is(word, kind_words[i].word))
            return kind_words[i].kind;
    return ONX_KIND_NONE;
}

const char *onx_kind_proto_name(onx_kind kind)
{
    return kind > ONX_KIND_NONE && kind < ONX_KIND_COUNT ? onxi_messages[kind]->name : "none";
}

const char *onx_attribute_type_name(int32_t type)
{
    for (const onxi_enum_name *e = attribute_types; e->name; e++)
        if (e->value == type)
            return e->name;
    return NULL;
}
