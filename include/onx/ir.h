/* ir.h - a model in memory: one struct per message of onnx.proto, onnx-operators.proto and onnx-data.proto.
 *
 * Members have the names of the .proto, so the specification documents them. Rules that hold for every message:
 *  - `has` tells which singular members are present (ONX_HAS); absent ones hold the default of their type.
 *    ONX_SET stores a member and marks it present. Bit 30 - i is that of row i of the message's field table.
 *  - A repeated member, `node` say, is an array of `node_count` elements; arrays of messages hold pointers, so that
 *    passes can insert and remove. Arrays grow with onx_list_insert and friends, never by hand.
 *  - Members that few models use, and fields that this version does not know, live in `extra`, which is NULL for
 *    most messages. onx_message_extra makes it.
 *  - Everything lives in the arena of the document (or aliases its input) and is never freed singly. */
#ifndef ONX_IR_H
#define ONX_IR_H

#include <onx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the singular member `field` of message p (struct onx_<type>) is present. A constant expression apart from
 * p. */
#define ONX_HAS(type, p, field) (((p)->has & (uint32_t)onx_##type##_has_##field) != 0)
/* Stores a singular member that lives in the struct itself and marks it present. */
#define ONX_SET(type, p, field, value)                                                                                 \
    ((void)((p)->field = (value)), (void)((p)->has |= (uint32_t)onx_##type##_has_##field))
/* Marks a singular member absent; the caller resets the value where that matters. */
#define ONX_CLEAR(type, p, field) ((void)((p)->has &= ~(uint32_t)onx_##type##_has_##field))

/* The kind of message that a pointer refers to. The values are stable; new messages are added at the end. */
typedef enum onx_kind {
    ONX_KIND_NONE,
#define MESSAGE(KIND, type, proto) ONX_KIND_##KIND,
#include <onx/message.def>
    ONX_KIND_COUNT
} onx_kind;

#define MESSAGE(KIND, type, proto) typedef struct onx_##type onx_##type;
#include <onx/message.def>

/* ---- shared by all ---- */

struct onx_string_string_entry {
    ONX_MESSAGE_HEAD(uint32_t reserved);
    onx_bytes key, value;
};
enum { onx_string_string_entry_has_key = 1 << 30, onx_string_string_entry_has_value = 1 << 29 };

struct onx_operator_set_id {
    ONX_MESSAGE_HEAD(uint32_t reserved);
    onx_bytes domain;
    int64_t version;
};
enum { onx_operator_set_id_has_domain = 1 << 30, onx_operator_set_id_has_version = 1 << 29 };

/* ---- types ---- */

struct onx_dimension { /* TensorShapeProto.Dimension; a oneof: at most one of dim_value and dim_param is present */
    ONX_MESSAGE_HEAD(uint32_t reserved);
    union {
        int64_t dim_value;
        onx_bytes dim_param;
    };
    onx_bytes denotation;
};
enum {
    onx_dimension_has_dim_value = 1 << 30,
    onx_dimension_has_dim_param = 1 << 29,
    onx_dimension_has_denotation = 1 << 28
};

struct onx_tensor_shape {
    ONX_MESSAGE_HEAD(uint32_t dim_count);
    onx_dimension **dim;
};

struct onx_type_tensor { /* TypeProto.Tensor; an absent shape means any rank */
    ONX_MESSAGE_HEAD(int32_t elem_type);
    onx_tensor_shape *shape;
};
enum { onx_type_tensor_has_elem_type = 1 << 30, onx_type_tensor_has_shape = 1 << 29 };

struct onx_type_sparse_tensor {
    ONX_MESSAGE_HEAD(int32_t elem_type);
    onx_tensor_shape *shape;
};
enum { onx_type_sparse_tensor_has_elem_type = 1 << 30, onx_type_sparse_tensor_has_shape = 1 << 29 };

struct onx_type_sequence {
    ONX_MESSAGE_HEAD(uint32_t reserved);
    onx_type *elem_type;
};
enum { onx_type_sequence_has_elem_type = 1 << 30 };

struct onx_type_map {
    ONX_MESSAGE_HEAD(int32_t key_type);
    onx_type *value_type;
};
enum { onx_type_map_has_key_type = 1 << 30, onx_type_map_has_value_type = 1 << 29 };

struct onx_type_optional {
    ONX_MESSAGE_HEAD(uint32_t reserved);
    onx_type *elem_type;
};
enum { onx_type_optional_has_elem_type = 1 << 30 };

struct onx_type_opaque {
    ONX_MESSAGE_HEAD(uint32_t reserved);
    onx_bytes domain, name;
};
enum { onx_type_opaque_has_domain = 1 << 30, onx_type_opaque_has_name = 1 << 29 };

struct onx_type { /* TypeProto; a oneof: at most one of the *_type members is present */
    ONX_MESSAGE_HEAD(uint32_t reserved);
    union {
        onx_type_tensor *tensor_type;
        onx_type_sequence *sequence_type;
        onx_type_map *map_type;
        onx_type_opaque *opaque_type;
        onx_type_sparse_tensor *sparse_tensor_type;
        onx_type_optional *optional_type;
    };
    onx_bytes denotation;
};
enum {
    onx_type_has_tensor_type = 1 << 30,
    onx_type_has_sequence_type = 1 << 29,
    onx_type_has_map_type = 1 << 28,
    onx_type_has_denotation = 1 << 27,
    onx_type_has_opaque_type = 1 << 26,
    onx_type_has_sparse_tensor_type = 1 << 25,
    onx_type_has_optional_type = 1 << 24
};

struct onx_value_info {
    ONX_MESSAGE_HEAD(uint32_t metadata_props_count);
    onx_bytes name;
    onx_type *type;
    onx_bytes doc_string;
    onx_string_string_entry **metadata_props;
};
enum { onx_value_info_has_name = 1 << 30, onx_value_info_has_type = 1 << 29, onx_value_info_has_doc_string = 1 << 28 };

/* ---- tensors ---- */

struct onx_segment { /* TensorProto.Segment */
    ONX_MESSAGE_HEAD(uint32_t reserved);
    int64_t begin, end;
};
enum { onx_segment_has_begin = 1 << 30, onx_segment_has_end = 1 << 29 };

enum { ONX_DATA_DEFAULT = 0, ONX_DATA_EXTERNAL = 1 }; /* TensorProto.DataLocation */

struct onx_tensor { /* read elements with the functions of onx/tensor.h, whatever field holds them */
    ONX_MESSAGE_HEAD(int32_t data_type);
    int64_t *dims;
    uint32_t dims_count;
    int32_t data_location;
    onx_bytes name;
    onx_bytes raw_data;
    onx_segment *segment;
    /* float_data and double_data may be unaligned in the input, little-endian: onx/tensor.h handles that. */
    const void *float_data;  /* float_data_count values of 4 bytes */
    const void *double_data; /* double_data_count values of 8 bytes */
    int32_t *int32_data;
    int64_t *int64_data;
    uint64_t *uint64_data;
    onx_bytes *string_data;
    uint64_t float_data_count, double_data_count, int32_data_count, int64_data_count, uint64_data_count;
    uint32_t string_data_count;
    uint32_t external_data_count, metadata_props_count;
    onx_string_string_entry **external_data;
    onx_string_string_entry **metadata_props;
    onx_bytes doc_string;
};
enum {
    onx_tensor_has_data_type = 1 << 29,
    onx_tensor_has_segment = 1 << 28,
    onx_tensor_has_name = 1 << 23,
    onx_tensor_has_raw_data = 1 << 22,
    onx_tensor_has_doc_string = 1 << 19,
    onx_tensor_has_data_location = 1 << 17
};

struct onx_sparse_tensor {
    ONX_MESSAGE_HEAD(uint32_t dims_count);
    onx_tensor *values, *indices;
    int64_t *dims;
};
enum { onx_sparse_tensor_has_values = 1 << 30, onx_sparse_tensor_has_indices = 1 << 29 };

/* ---- attributes, nodes, graphs ---- */

typedef enum onx_attribute_type { /* AttributeProto.AttributeType */
                                  ONX_ATTR_UNDEFINED = 0,
                                  ONX_ATTR_FLOAT = 1,
                                  ONX_ATTR_INT = 2,
                                  ONX_ATTR_STRING = 3,
                                  ONX_ATTR_TENSOR = 4,
                                  ONX_ATTR_GRAPH = 5,
                                  ONX_ATTR_FLOATS = 6,
                                  ONX_ATTR_INTS = 7,
                                  ONX_ATTR_STRINGS = 8,
                                  ONX_ATTR_TENSORS = 9,
                                  ONX_ATTR_GRAPHS = 10,
                                  ONX_ATTR_SPARSE_TENSOR = 11,
                                  ONX_ATTR_SPARSE_TENSORS = 12,
                                  ONX_ATTR_TYPE_PROTO = 13,
                                  ONX_ATTR_TYPE_PROTOS = 14
} onx_attribute_type;

/* The value of an attribute: one of these, or several in `extra` of a faulty attribute. */
#define ONX_ATTRIBUTE_VALUES                                                                                           \
    float f;                                                                                                           \
    int64_t i;                                                                                                         \
    onx_bytes s;                                                                                                       \
    onx_tensor *t;                                                                                                     \
    onx_graph *g;                                                                                                      \
    onx_type *tp;                                                                                                      \
    onx_sparse_tensor *sparse_tensor;                                                                                  \
    float *floats;                                                                                                     \
    int64_t *ints;                                                                                                     \
    onx_bytes *strings;                                                                                                \
    onx_tensor **tensors;                                                                                              \
    onx_graph **graphs;                                                                                                \
    onx_type **type_protos;                                                                                            \
    onx_sparse_tensor **sparse_tensors;

/* An attribute normally has one value, so the value members share storage: `slot` is the field number of the one that
 * is present (0: none). If an input has several, the later ones are in `extra`. Read values with onx_attribute_value,
 * which covers both; `a->i` may be read directly where slot == ONX_SLOT_I is known. */
struct onx_attribute {
    ONX_MESSAGE_HEAD(int32_t type);
    onx_bytes name;
    union {
        ONX_ATTRIBUTE_VALUES
    };
    uint32_t count; /* number of elements if the value is a list */
    uint32_t slot;
};
typedef struct onx_attribute_extra {
    onx_extra base;
    onx_bytes doc_string, ref_attr_name;
    struct {
        ONX_ATTRIBUTE_VALUES
    } more;
    uint32_t floats_count, ints_count, strings_count, tensors_count, graphs_count, type_protos_count,
        sparse_tensors_count;
} onx_attribute_extra;
enum { /* field numbers of AttributeProto for `slot` */
       ONX_SLOT_NONE = 0,
       ONX_SLOT_F = 2,
       ONX_SLOT_I = 3,
       ONX_SLOT_S = 4,
       ONX_SLOT_T = 5,
       ONX_SLOT_G = 6,
       ONX_SLOT_FLOATS = 7,
       ONX_SLOT_INTS = 8,
       ONX_SLOT_STRINGS = 9,
       ONX_SLOT_TENSORS = 10,
       ONX_SLOT_GRAPHS = 11,
       ONX_SLOT_TP = 14,
       ONX_SLOT_TYPE_PROTOS = 15,
       ONX_SLOT_SPARSE_TENSOR = 22,
       ONX_SLOT_SPARSE_TENSORS = 23
};
enum {
    onx_attribute_has_name = 1 << 30,
    onx_attribute_has_f = 1 << 29,
    onx_attribute_has_i = 1 << 28,
    onx_attribute_has_s = 1 << 27,
    onx_attribute_has_t = 1 << 26,
    onx_attribute_has_g = 1 << 25,
    onx_attribute_has_doc_string = 1 << 19,
    onx_attribute_has_tp = 1 << 18,
    onx_attribute_has_type = 1 << 16,
    onx_attribute_has_ref_attr_name = 1 << 15,
    onx_attribute_has_sparse_tensor = 1 << 14
};

struct onx_node {
    ONX_MESSAGE_HEAD(uint32_t input_count);
    onx_bytes *input, *output;
    onx_attribute **attribute;
    uint32_t output_count, attribute_count;
    onx_bytes name, op_type, domain;
};
typedef struct onx_node_extra {
    onx_extra base;
    onx_bytes doc_string, overload;
    onx_string_string_entry **metadata_props;
    onx_node_device_configuration **device_configurations;
    uint32_t metadata_props_count, device_configurations_count;
} onx_node_extra;
enum {
    onx_node_has_name = 1 << 28,
    onx_node_has_op_type = 1 << 27,
    onx_node_has_doc_string = 1 << 25,
    onx_node_has_domain = 1 << 24,
    onx_node_has_overload = 1 << 23
};

struct onx_tensor_annotation {
    ONX_MESSAGE_HEAD(uint32_t quant_parameter_tensor_names_count);
    onx_bytes tensor_name;
    onx_string_string_entry **quant_parameter_tensor_names;
};
enum { onx_tensor_annotation_has_tensor_name = 1 << 30 };

struct onx_graph {
    ONX_MESSAGE_HEAD(uint32_t node_count);
    onx_node **node;
    onx_bytes name, doc_string;
    onx_tensor **initializer;
    onx_value_info **input, **output, **value_info;
    onx_tensor_annotation **quantization_annotation;
    onx_sparse_tensor **sparse_initializer;
    onx_string_string_entry **metadata_props;
    uint32_t initializer_count, input_count, output_count, value_info_count;
    uint32_t quantization_annotation_count, sparse_initializer_count, metadata_props_count;
};
enum { onx_graph_has_name = 1 << 29, onx_graph_has_doc_string = 1 << 27 };

struct onx_function {
    ONX_MESSAGE_HEAD(uint32_t input_count);
    onx_bytes name, doc_string, domain, overload;
    onx_bytes *input, *output, *attribute;
    onx_node **node;
    onx_operator_set_id **opset_import;
    onx_attribute **attribute_proto;
    onx_value_info **value_info;
    onx_string_string_entry **metadata_props;
    uint32_t output_count, attribute_count, node_count, opset_import_count;
    uint32_t attribute_proto_count, value_info_count, metadata_props_count;
};
enum {
    onx_function_has_name = 1 << 30,
    onx_function_has_doc_string = 1 << 25,
    onx_function_has_domain = 1 << 23,
    onx_function_has_overload = 1 << 20
};

/* ---- devices (IR 11) ---- */

struct onx_int_int_list_entry {
    ONX_MESSAGE_HEAD(uint32_t value_count);
    int64_t key;
    int64_t *value;
};
enum { onx_int_int_list_entry_has_key = 1 << 30 };

struct onx_simple_sharded_dim {
    ONX_MESSAGE_HEAD(uint32_t reserved);
    union { /* oneof dim */
        int64_t dim_value;
        onx_bytes dim_param;
    };
    int64_t num_shards;
};
enum {
    onx_simple_sharded_dim_has_dim_value = 1 << 30,
    onx_simple_sharded_dim_has_dim_param = 1 << 29,
    onx_simple_sharded_dim_has_num_shards = 1 << 28
};

struct onx_sharded_dim {
    ONX_MESSAGE_HEAD(uint32_t simple_sharding_count);
    int64_t axis;
    onx_simple_sharded_dim **simple_sharding;
};
enum { onx_sharded_dim_has_axis = 1 << 30 };

struct onx_sharding_spec {
    ONX_MESSAGE_HEAD(uint32_t device_count);
    onx_bytes tensor_name;
    int64_t *device;
    onx_int_int_list_entry **index_to_device_group_map;
    onx_sharded_dim **sharded_dim;
    uint32_t index_to_device_group_map_count, sharded_dim_count;
};
enum { onx_sharding_spec_has_tensor_name = 1 << 30 };

struct onx_node_device_configuration {
    ONX_MESSAGE_HEAD(uint32_t sharding_spec_count);
    onx_bytes configuration_id;
    onx_sharding_spec **sharding_spec;
    int32_t pipeline_stage;
};
enum {
    onx_node_device_configuration_has_configuration_id = 1 << 30,
    onx_node_device_configuration_has_pipeline_stage = 1 << 28
};

struct onx_device_configuration {
    ONX_MESSAGE_HEAD(int32_t num_devices);
    onx_bytes name;
    onx_bytes *device;
    uint32_t device_count;
};
enum { onx_device_configuration_has_name = 1 << 30, onx_device_configuration_has_num_devices = 1 << 29 };

/* ---- model ---- */

struct onx_training_info {
    ONX_MESSAGE_HEAD(uint32_t initialization_binding_count);
    onx_graph *initialization, *algorithm;
    onx_string_string_entry **initialization_binding, **update_binding;
    uint32_t update_binding_count;
};
enum { onx_training_info_has_initialization = 1 << 30, onx_training_info_has_algorithm = 1 << 29 };

struct onx_model {
    ONX_MESSAGE_HEAD(uint32_t opset_import_count);
    int64_t ir_version, model_version;
    onx_bytes producer_name, producer_version, domain, doc_string;
    onx_graph *graph;
    onx_operator_set_id **opset_import;
    onx_string_string_entry **metadata_props;
    onx_training_info **training_info;
    onx_function **functions;
    onx_device_configuration **configuration;
    uint32_t metadata_props_count, training_info_count, functions_count, configuration_count;
};
enum {
    onx_model_has_ir_version = 1 << 30,
    onx_model_has_producer_name = 1 << 29,
    onx_model_has_producer_version = 1 << 28,
    onx_model_has_domain = 1 << 27,
    onx_model_has_model_version = 1 << 26,
    onx_model_has_doc_string = 1 << 25,
    onx_model_has_graph = 1 << 24
};

/* ---- operator-set documents (onnx-operators.proto) ---- */

struct onx_operator {
    ONX_MESSAGE_HEAD(int32_t status); /* 0 experimental, 1 stable */
    onx_bytes op_type;
    int64_t since_version;
    onx_bytes doc_string;
};
enum {
    onx_operator_has_op_type = 1 << 30,
    onx_operator_has_since_version = 1 << 29,
    onx_operator_has_status = 1 << 28,
    onx_operator_has_doc_string = 1 << 27
};

struct onx_operator_set {
    ONX_MESSAGE_HEAD(uint32_t operator_count);
    onx_bytes magic, ir_version_prerelease, domain, doc_string, ir_build_metadata;
    int64_t ir_version, opset_version;
    onx_operator **operator_; /* `operator` is a keyword of C++ */
    onx_function **functions;
    uint32_t functions_count;
};
enum {
    onx_operator_set_has_magic = 1 << 30,
    onx_operator_set_has_ir_version = 1 << 29,
    onx_operator_set_has_ir_version_prerelease = 1 << 28,
    onx_operator_set_has_domain = 1 << 27,
    onx_operator_set_has_opset_version = 1 << 26,
    onx_operator_set_has_doc_string = 1 << 25,
    onx_operator_set_has_ir_build_metadata = 1 << 24
};

/* ---- stored values (onnx-data.proto) ---- */

enum { /* SequenceProto.DataType and OptionalProto.DataType */
       ONX_DATA_UNDEFINED = 0,
       ONX_DATA_TENSOR = 1,
       ONX_DATA_SPARSE_TENSOR = 2,
       ONX_DATA_SEQUENCE = 3,
       ONX_DATA_MAP = 4,
       ONX_DATA_OPTIONAL = 5
};

struct onx_sequence {
    ONX_MESSAGE_HEAD(int32_t elem_type);
    onx_bytes name;
    onx_tensor **tensor_values;
    onx_sparse_tensor **sparse_tensor_values;
    onx_sequence **sequence_values;
    onx_map **map_values;
    onx_optional **optional_values;
    uint32_t tensor_values_count, sparse_tensor_values_count, sequence_values_count, map_values_count,
        optional_values_count;
};
enum { onx_sequence_has_name = 1 << 30, onx_sequence_has_elem_type = 1 << 29 };

struct onx_map {
    ONX_MESSAGE_HEAD(int32_t key_type);
    onx_bytes name;
    int64_t *keys;
    onx_bytes *string_keys;
    onx_sequence *values;
    uint32_t keys_count, string_keys_count;
};
enum { onx_map_has_name = 1 << 30, onx_map_has_key_type = 1 << 29, onx_map_has_values = 1 << 26 };

struct onx_optional {
    ONX_MESSAGE_HEAD(int32_t elem_type);
    onx_bytes name;
    onx_tensor *tensor_value;
    onx_sparse_tensor *sparse_tensor_value;
    onx_sequence *sequence_value;
    onx_map *map_value;
    onx_optional *optional_value;
};
enum {
    onx_optional_has_name = 1 << 30,
    onx_optional_has_elem_type = 1 << 29,
    onx_optional_has_tensor_value = 1 << 28,
    onx_optional_has_sparse_tensor_value = 1 << 27,
    onx_optional_has_sequence_value = 1 << 26,
    onx_optional_has_map_value = 1 << 25,
    onx_optional_has_optional_value = 1 << 24
};

/* ---- document: one top-level message and the memory that holds it ---- */

typedef struct onx_doc onx_doc;

/* A document belongs to one thread at a time, like the context that it was made with, because the functions of
 * onx/tensor.h store their results in it. Checks, inference and sessions only read its messages, so any number of
 * threads may use them on one document at the same time, each with its own context, and read elements through readers
 * (onx_doc_reader), as long as no thread writes to the document (onx_infer_apply does). */

/* A new document with an empty root message of the kind. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_new(onx_ctx *cx, onx_kind kind, onx_doc **out);
/* A view of the same messages for one more thread: what reading elements allocates, opens or reports belongs to the
 * reader and its context. `doc` must outlive its readers; onx_doc_free frees a reader without touching `doc`. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_reader(onx_ctx *cx, const onx_doc *doc, onx_doc **out);
/* A separate document with the same contents. Messages and lists are copied; texts, bytes and floating-point arrays
 * (mostly weights) are shared with `doc`, which must outlive it. Changes of one document do not affect the other. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_share(onx_ctx *cx, const onx_doc *doc, onx_doc **out);
/* Frees the document with all its messages and unmaps its file. NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_doc_free(onx_doc *doc);
ONX_API ONX_ANY_THREAD onx_kind onx_doc_kind(const onx_doc *doc);
/* The root message; NULL when it is of another kind. */
ONX_API ONX_ANY_THREAD void *onx_doc_root(const onx_doc *doc, onx_kind kind);
static inline onx_model *onx_doc_model(const onx_doc *doc)
{
    return (onx_model *)onx_doc_root(doc, ONX_KIND_MODEL);
}
ONX_API ONX_ANY_THREAD onx_arena *onx_doc_arena(const onx_doc *doc);
ONX_API ONX_ANY_THREAD onx_ctx *onx_doc_ctx(const onx_doc *doc);
/* Sorts the nodes of every graph, subgraph and function topologically, as the standard demands (rule G-03) and some
 * exporters do not; nothing else changes. If something changed, the root is a new message. ONX_E_INVALID, with one of
 * the nodes, if a node depends on its own output: no such order exists, and the document is unchanged. `changed_out`
 * may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_doc_sort(onx_doc *doc, bool *changed_out);
/* Size in bytes of the input that the document was read from; 0 for a new document. */
ONX_API ONX_ANY_THREAD uint64_t onx_doc_input_size(const onx_doc *doc);

/* ---- messages of any kind, through their field tables ---- */

/* "ModelProto", "TypeProto.Tensor"; never NULL. */
ONX_API ONX_ANY_THREAD const char *onx_kind_proto_name(onx_kind kind);
/* The kind that a word of the command line names: model graph function node tensor attribute value-info sparse-tensor
 * type sequence map optional operator-set; ONX_KIND_NONE for any other word. */
ONX_API ONX_ANY_THREAD onx_kind onx_kind_find(onx_str word);
/* An empty message; NULL when out of memory. */
ONX_API ONX_OWN_THREAD void *onx_message_new(onx_arena *arena, onx_kind kind);
/* The extra part of a message, allocated if missing; NULL when out of memory. Cast it to the type of the kind
 * (onx_node_extra, onx_attribute_extra, otherwise onx_extra). */
ONX_API ONX_OWN_THREAD void *onx_message_extra(onx_arena *arena, onx_kind kind, void *message);
/* A deep copy that shares nothing with `message`. */
ONX_API ONX_OWN_THREAD onx_status onx_message_copy(onx_arena *arena, onx_kind kind, const void *message, void **out);
/* A deep copy that shares texts, bytes and floating-point arrays with `message`; those must outlive the arena. Changes
 * of one message do not affect the other. */
ONX_API ONX_OWN_THREAD onx_status onx_message_share(onx_arena *arena, onx_kind kind, const void *message, void **out);
/* Compares presence, values and unknown fields; floats by their bits; 4- and 8-byte arrays by value, wherever they are
 * stored. */
ONX_API ONX_ANY_THREAD bool onx_message_equal(onx_kind kind, const void *a, const void *b);

/* Calls `visit` for the message and every message below it, parents first, in field order. A status other than ONX_OK
 * from `visit` ends the walk and is returned. `parent` is NULL for the root; `field` and `index` give the position in
 * the parent. */
typedef struct onx_visit {
    onx_kind kind;
    void *message;
    const struct onx_visit *parent;
    const char *field; /* name of the member in the parent */
    uint32_t index;    /* position when the member is repeated */
    bool repeated;
    uint32_t depth;
} onx_visit;
ONX_API ONX_OWN_THREAD onx_status onx_message_walk(onx_ctx *cx, onx_kind kind, void *message,
                                                   onx_status (*visit)(void *user, const onx_visit *at), void *user);
/* The path of a visit: graph.node[3] "conv1" (Conv).attribute[0] "pads". Written as snprintf does; `buf` may be NULL.
 */
ONX_API ONX_ANY_THREAD size_t onx_visit_path(const onx_visit *at, char *buf, size_t size);

/* ---- lists ---- */

/* Lists have no stored capacity: the allocated size is always the next power of two at or above the count (0 for 0).
 * `size` is the size of one element. Returns the address of the new, zeroed element; NULL when out of memory. */
ONX_API ONX_OWN_THREAD void *onx_list_insert(onx_arena *arena, void **list, uint32_t *count, uint32_t at, size_t size);
ONX_API ONX_OWN_THREAD void onx_list_remove(void *list, uint32_t *count, uint32_t at, size_t size);
/* Appends a message of the kind to a list of pointers: onx_node *n = ONX_ADD(arena, graph, node, NODE). */
ONX_API ONX_OWN_THREAD void *onx_list_add_message(onx_arena *arena, void ***list, uint32_t *count, onx_kind kind);
#define ONX_ADD(arena, p, field, KIND)                                                                                 \
    onx_list_add_message(arena, (void ***)(void *)&(p)->field, &(p)->field##_count, ONX_KIND_##KIND)
/* Appends a copy of the text to a list of strings. */
ONX_API ONX_OWN_THREAD onx_status onx_list_add_text(onx_arena *arena, onx_bytes **list, uint32_t *count, onx_str text);

/* ---- reading members that may be absent ---- */

ONX_API extern const onx_node_extra onx_node_extra_none;
ONX_API extern const onx_attribute_extra onx_attribute_extra_none;
static inline const onx_node_extra *onx_node_more(const onx_node *node)
{
    return node && node->extra ? (const onx_node_extra *)(const void *)node->extra : &onx_node_extra_none;
}
static inline const onx_attribute_extra *onx_attribute_more(const onx_attribute *a)
{
    return a && a->extra ? (const onx_attribute_extra *)(const void *)a->extra : &onx_attribute_extra_none;
}

/* The attribute of that name, or NULL; the first one if there are several. */
ONX_API ONX_ANY_THREAD onx_attribute *onx_node_attribute(const onx_node *node, const char *name);
/* The address of a value member (ONX_SLOT_*), or NULL when the attribute does not have it; *count is 1 for singular
 * members. Cast it to the member's type: *(const int64_t *)onx_attribute_value(a, ONX_SLOT_I, &n). For lists it is the
 * address of the first element. */
ONX_API ONX_ANY_THREAD const void *onx_attribute_value(const onx_attribute *a, uint32_t slot, uint32_t *count);
/* The declared type of the attribute, or the type of its value if none is declared. */
ONX_API ONX_ANY_THREAD onx_attribute_type onx_attribute_type_of(const onx_attribute *a);
ONX_API ONX_ANY_THREAD const char *
onx_attribute_type_name(int32_t type); /* "INTS"; NULL for integers that are no type */

/* ---- building ---- */

/* A model document: IR version, producer "onx", one opset_import of the default domain, and an empty graph.
 * `graph_name` may be NULL: the graph has no name. */
ONX_API ONX_OWN_THREAD onx_status onx_model_new(onx_ctx *cx, const char *graph_name, int64_t opset, onx_doc **out);
/* Appends a node; NULL when out of memory. Add inputs and outputs with onx_list_add_text, or pass names separated by
 * spaces ("" for none; a single - is an omitted operand). */
ONX_API ONX_OWN_THREAD onx_node *onx_graph_add_node(onx_arena *arena, onx_graph *graph, const char *op_type,
                                                    const char *inputs, const char *outputs);
ONX_API ONX_OWN_THREAD onx_attribute *onx_node_add_int(onx_arena *arena, onx_node *node, const char *name,
                                                       int64_t value);
ONX_API ONX_OWN_THREAD onx_attribute *onx_node_add_float(onx_arena *arena, onx_node *node, const char *name,
                                                         float value);
ONX_API ONX_OWN_THREAD onx_attribute *onx_node_add_string(onx_arena *arena, onx_node *node, const char *name,
                                                          onx_str value);
ONX_API ONX_OWN_THREAD onx_attribute *onx_node_add_ints(onx_arena *arena, onx_node *node, const char *name,
                                                        const int64_t *values, uint32_t count);
ONX_API ONX_OWN_THREAD onx_attribute *onx_node_add_floats(onx_arena *arena, onx_node *node, const char *name,
                                                          const float *values, uint32_t count);
ONX_API ONX_OWN_THREAD onx_attribute *onx_node_add_tensor(onx_arena *arena, onx_node *node, const char *name,
                                                          onx_tensor *value);
ONX_API ONX_OWN_THREAD onx_attribute *onx_node_add_graph(onx_arena *arena, onx_node *node, const char *name,
                                                         onx_graph *value);
/* A tensor type. A dim below 0 is unknown, a rank below 0 means any rank; NULL for a rank above ONX_RANK_MAX. */
ONX_API ONX_OWN_THREAD onx_type *onx_type_new_tensor(onx_arena *arena, onx_dtype dtype, const int64_t *dims, int rank);
/* `type` may be NULL: no type is declared. */
ONX_API ONX_OWN_THREAD onx_value_info *onx_graph_add_input(onx_arena *arena, onx_graph *graph, const char *name,
                                                           onx_type *type);
/* `type` may be NULL. */
ONX_API ONX_OWN_THREAD onx_value_info *onx_graph_add_output(onx_arena *arena, onx_graph *graph, const char *name,
                                                            onx_type *type);
/* Appends a tensor to the initializers. It must have a name and live as long as the arena. Returns the tensor, NULL
 * when out of memory. */
ONX_API ONX_OWN_THREAD onx_tensor *onx_graph_add_initializer(onx_arena *arena, onx_graph *graph, onx_tensor *tensor);
/* A tensor whose raw_data is a copy of `data` (its size is that of onx_dtype_size). `name` may be NULL. */
ONX_API ONX_OWN_THREAD onx_tensor *onx_tensor_new(onx_arena *arena, onx_dtype dtype, const int64_t *dims, uint32_t rank,
                                                  const void *data, const char *name);

/* ---- def-use index of one graph; built on demand, freed by the caller ---- */

typedef struct onx_index onx_index;
typedef uint32_t onx_name_id; /* names are interned in the index; ONX_NO_NAME for a name that does not occur: it has
                               * no definition and no use */
#define ONX_NO_NAME UINT32_MAX

typedef enum onx_def_kind {
    ONX_DEF_NONE,
    ONX_DEF_INPUT,
    ONX_DEF_INITIALIZER,
    ONX_DEF_SPARSE_INITIALIZER,
    ONX_DEF_NODE
} onx_def_kind;
typedef struct onx_def {
    onx_def_kind kind; /* an input that also has an initializer counts as INPUT */
    uint32_t index;    /* of the input, initializer or node */
    uint32_t output;   /* which output of the node */
} onx_def;
typedef struct onx_use {
    uint32_t node;  /* index of the using node */
    uint32_t input; /* which input; UINT32_MAX: the use is inside a subgraph of the node */
} onx_use;

/* O(nodes + edges). Uses of outer-scope values inside subgraphs count as uses of the node that holds the subgraph. */
ONX_API ONX_OWN_THREAD onx_status onx_index_new(onx_ctx *cx, const onx_graph *graph, onx_index **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_index_free(onx_index *index);
ONX_API ONX_ANY_THREAD uint32_t onx_index_name_count(const onx_index *index);
ONX_API ONX_ANY_THREAD onx_name_id onx_index_find(const onx_index *index, onx_str name);
ONX_API ONX_ANY_THREAD onx_str onx_index_name(const onx_index *index, onx_name_id id);
ONX_API ONX_ANY_THREAD onx_def onx_index_def(const onx_index *index, onx_name_id id);
/* The uses of a name in node order. */
ONX_API ONX_ANY_THREAD const onx_use *onx_index_uses(const onx_index *index, onx_name_id id, uint32_t *count);
ONX_API ONX_ANY_THREAD bool onx_index_is_output(const onx_index *index, onx_name_id id);

#ifdef __cplusplus
}
#endif
#endif
