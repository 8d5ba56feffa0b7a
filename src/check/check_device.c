/* check_device.c - rules D: device configurations of a model, and the annotations of nodes. */
#include "check/check.h"

const onx_rule onxi_check_rules_device[] = {
    { "D-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Device Configurations",
      "A DeviceConfigurationProto has a non-empty name", "num_devices only" },
    { "D-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Device Configurations (the lower bound is ours)",
      "It has num_devices, at least 1", "num_devices 0" },
    { "D-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Device Configurations",
      "If device names are given there are exactly num_devices of them", "num_devices 2, one name" },
    { "D-04", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Node Device Configuration",
      "Configuration names are unique in the model", "`c` twice" },
    { "D-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Node Device Configuration",
      "configuration_id is present and names a configuration of the model", "id `zz`" },
    { "D-06", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Node Device Configuration",
      "A node refers to a configuration at most once", "id `c` twice on one node" },
    { "D-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Sharding Specification",
      "tensor_name is present and is one of the node's inputs or outputs", "tensor_name `nope`" },
    { "D-08", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Sharding Specification",
      "A tensor has at most one specification per node and configuration", "two specifications for `x`" },
    { "D-09", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: ShardingSpecProto",
      "Each device entry is a device number from 0 to num_devices-1 or a key of the group map",
      "device 7 with num_devices 2" },
    { "D-10", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: ShardingSpecProto, IntIntListEntryProto; proposal 0006",
      "Keys of the group map are distinct, and each group is a non-empty list of valid device numbers",
      "key -1 twice" },
    { "D-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Sharded Dimension",
      "axis is present and lies in [-r, r-1] for rank r", "axis 2 of a matrix" },
    { "D-12", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Sharded Dimension",
      "An axis is sharded once (negative and positive spellings compared)", "axes 1 and -1 of a matrix" },
    { "D-13", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: Simple Sharded Dimension (the lower bound is ours)", "num_shards is present and at least 1",
      "simple_sharding without num_shards" },
    { "D-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Simple Sharded Dimension",
      "dim_value and dim_param exclude each other; a dim_value is positive and agrees with the tensor",
      "dim_value 5 on an axis of size 4" },
    { "D-15", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "proposal 0006: Sharding as a Split",
      "The number of device entries equals the product of num_shards over the sharded axes",
      "2 shards over 3 devices" },
    { "D-16", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "proposal 0006",
      "num_shards need not divide the axis; the backend decides what to do", "accept: 3 shards of size 4" },
    { "D-17", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "proposal 0006: Sharding as a Broadcast",
      "A specification without sharded axes replicates the tensor on the listed devices or groups",
      "accept: device [-1], map -1 to [0,1]" },
    { "D-18", ONX_MAY, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Node Device Configuration",
      "pipeline_stage is optional; if given it is not negative", "pipeline_stage -1" },
    { "D-19", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Multi-Device Execution Semantics",
      "The annotations are hints that never change results; a backend may ignore them",
      "different output with annotations removed" },
    { "D-20", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "proposal 0007",
      "Sharding makes sense for the operator: equal sharding on matching axes, replication of size-1 broadcast axes, matching reduction axes in matrix products",
      "Add with inputs sharded on different axes" },
    { "D-21", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "proposal 0007: Unsupported ops",
      "Sharding on operators the proposal leaves out (sequences, optionals, control flow, recurrent, pooling and convolution operators and others) is pointed out",
      "sharding on Conv" },
    { "D-22", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "hygiene",
      "A configuration no node refers to is pointed out", "unused configuration" },
    { 0 }
};

void onxi_check_configurations(onxi_check *k, const onxi_check_at *at, const onx_model *model)
{
    if (!model->configuration_count)
        return;
    onxi_check_gate(k, at, "V-20", "configuration", 11);
    onxi_check_set *seen = onxi_check_set_new(k);
    k->config_index = seen;
    k->config_used = ONXI_ARRAY(k->arena, bool, model->configuration_count);
    onxi_check_failed(k, k->config_used);
    for (uint32_t i = 0; i < model->configuration_count; i++) {
        const onx_device_configuration *c = model->configuration[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, configuration, i, DEVICE_CONFIGURATION, c);
        onx_str name = onx_view(c->name);
        onxi_check_utf8(k, here, name);
        for (uint32_t j = 0; j < c->device_count; j++)
            onxi_check_utf8(k, ONXI_AT_INDEX(here, device, j), onx_view(c->device[j]));
        if (!name.len)
            onxi_check_find(k, here, "D-01", ONXI_PLAIN, "the device configuration has no name");
        else if (!onxi_check_set_add(k, seen, name, i, NULL))
            onxi_check_find(k, here, "D-04", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "there is a device configuration of that name already");
        if (!ONX_HAS(device_configuration, c, num_devices) || c->num_devices < 1)
            onxi_check_find(k, ONXI_AT(here, num_devices), "D-02",
                            (onxi_check_detail){ .value = onxi_check_number(k, c->num_devices),
                                                 .expected = onx_str_of("1 or more") },
                            "num_devices is %s",
                            ONX_HAS(device_configuration, c, num_devices) ? "too small" : "missing");
        else if (c->device_count && c->device_count != (uint32_t)c->num_devices)
            onxi_check_find(k, ONXI_AT(here, device), "D-03",
                            (onxi_check_detail){ .value = onxi_check_number(k, c->device_count),
                                                 .expected = onxi_check_number(k, c->num_devices) },
                            "there are not as many device names as devices");
    }
}

/* The declared shape of a value, or NULL. For initializers, *tensor is set instead. */
static const onx_tensor_shape *shape_of(onxi_check *k, onxi_check_scope *scope, onx_str name, const onx_tensor **tensor)
{
    uint32_t id = onxi_check_name_find(k, name);
    const onxi_check_meaning *m = id == UINT32_MAX ? NULL : &k->names.meaning[id];
    *tensor = NULL;
    for (onxi_check_scope *s = scope; s && m && m->scope;
         s = s->up) /* stop at the scope that defines it; outputs of the node are not defined yet */
        if (s->serial == m->scope)
            scope = s;
    if (!scope || !scope->graph)
        return NULL;
    if (m && m->scope == scope->serial && m->kind == ONXI_NAME_INITIALIZER) {
        *tensor = scope->graph->initializer[m->index];
        return NULL;
    }
    const onx_type *type = onxi_check_declared_type(k, scope, name);
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
}

/* The size of a dimension: the number, or -1 if unknown. */
static int64_t dim_size(const onx_tensor_shape *shape, const onx_tensor *tensor, uint64_t axis)
{
    if (tensor)
        return tensor->dims[axis];
    return shape && ONX_HAS(dimension, shape->dim[axis], dim_value) ? shape->dim[axis]->dim_value : -1;
}

static void check_group_map(onxi_check *k, const onxi_check_at *at, const onx_sharding_spec *s, int64_t devices)
{
    onxi_check_set *keys = onxi_check_set_new(k);
    for (uint32_t i = 0; i < s->index_to_device_group_map_count; i++) {
        const onx_int_int_list_entry *e = s->index_to_device_group_map[i];
        const onxi_check_at *here = ONXI_AT_INDEX(at, index_to_device_group_map, i);
        if (!onxi_check_set_add(k, keys, onx_str_make((const char *)&e->key, sizeof e->key), i, NULL))
            onxi_check_find(k, here, "D-10", (onxi_check_detail){ .value = onxi_check_number(k, e->key) },
                            "the key is there twice");
        if (!e->value_count)
            onxi_check_find(k, here, "D-10", ONXI_PLAIN, "the device group is empty");
        for (uint32_t j = 0; j < e->value_count; j++)
            if (e->value[j] < 0 || (devices >= 0 && e->value[j] >= devices)) {
                onxi_check_find(
                    k, here, "D-10",
                    (onxi_check_detail){ .value = onxi_check_number(k, e->value[j]),
                                         .expected = onxi_check_text(k, "0 to %lld", (long long)devices - 1) },
                    "the group holds a number that is no device");
                break;
            }
    }
    for (uint32_t i = 0; i < s->device_count; i++) {
        int64_t d = s->device[i];
        bool device = d >= 0 && (devices < 0 || d < devices);
        if (!device && !onxi_check_set_find(keys, onx_str_make((const char *)&s->device[i], sizeof d), NULL))
            onxi_check_find(
                k, ONXI_AT_INDEX(at, device, i), "D-09",
                (onxi_check_detail){ .value = onxi_check_number(k, d),
                                     .expected = onxi_check_text(k, "0 to %lld or a group", (long long)devices - 1) },
                "the number is neither a device nor a group");
    }
}

static void check_axis(onxi_check *k, const onxi_check_at *at, const onx_sharded_dim *d, const onx_tensor_shape *shape,
                       const onx_tensor *tensor, uint64_t *shards)
{
    bool ranked = shape || tensor;
    int64_t rank = tensor ? (int64_t)tensor->dims_count : shape ? (int64_t)shape->dim_count : 0, size = -1;
    if (!ONX_HAS(sharded_dim, d, axis))
        onxi_check_find(k, at, "D-11", ONXI_PLAIN, "the sharded dimension has no axis");
    else if (ranked && (d->axis < -rank || d->axis >= rank))
        onxi_check_find(k, ONXI_AT(at, axis), "D-11",
                        (onxi_check_detail){
                            .value = onxi_check_number(k, d->axis),
                            .expected = onxi_check_text(k, "%lld to %lld", (long long)-rank, (long long)rank - 1) },
                        "the axis is out of range");
    else if (ranked)
        size = dim_size(shape, tensor, (uint64_t)(d->axis < 0 ? d->axis + rank : d->axis));
    for (uint32_t j = 0; j < d->simple_sharding_count; j++) {
        const onx_simple_sharded_dim *s = d->simple_sharding[j];
        const onxi_check_at *here = ONXI_AT_INDEX(at, simple_sharding, j);
        if (ONX_HAS(simple_sharded_dim, s, dim_param))
            onxi_check_utf8(k, here, onx_view(s->dim_param));
        if (!ONX_HAS(simple_sharded_dim, s, num_shards) || s->num_shards < 1)
            onxi_check_find(k, here, "D-13",
                            (onxi_check_detail){ .value = onxi_check_number(k, s->num_shards),
                                                 .expected = onx_str_of("1 or more") },
                            "num_shards is %s", ONX_HAS(simple_sharded_dim, s, num_shards) ? "too small" : "missing");
        if (s->num_shards < 1)
            *shards = 0; /* unknown */
        else if (!onxi_mul_u64(*shards, (uint64_t)s->num_shards, shards))
            *shards = UINT64_MAX;
        if (ONX_HAS(simple_sharded_dim, s, dim_value) &&
            (s->dim_value <= 0 || (size >= 0 && d->simple_sharding_count == 1 && s->dim_value != size)))
            onxi_check_find(
                k, here, "D-14",
                (onxi_check_detail){ .value = onxi_check_number(k, s->dim_value),
                                     .expected = size >= 0 ? onxi_check_number(k, size) : onx_str_of("1 or more") },
                "dim_value does not fit the axis");
    }
}

static void check_spec(onxi_check *k, const onxi_check_at *at, const onx_sharding_spec *s,
                       const onxi_check_set *operands, onxi_check_scope *scope, int64_t devices)
{
    onx_str tensor_name = onx_view(s->tensor_name);
    const onx_tensor *tensor;
    const onx_tensor_shape *shape = shape_of(k, scope, tensor_name, &tensor);
    uint64_t shards = 1;
    onxi_check_utf8(k, ONXI_AT(at, tensor_name), tensor_name);
    if (!tensor_name.len || !onxi_check_set_find(operands, tensor_name, NULL))
        onxi_check_find(k, ONXI_AT(at, tensor_name), "D-07",
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, tensor_name)) },
                        tensor_name.len ? "the tensor is no input or output of the node"
                                        : "the sharding names no tensor");
    check_group_map(k, at, s, devices);
    int64_t rank = tensor ? (int64_t)tensor->dims_count : shape ? (int64_t)shape->dim_count : 0;
    onxi_check_set *axes = onxi_check_set_new(k);
    for (uint32_t i = 0; i < s->sharded_dim_count; i++) {
        const onx_sharded_dim *d = s->sharded_dim[i];
        const onxi_check_at *here = ONXI_AT_INDEX(at, sharded_dim, i);
        int64_t *axis = ONXI_NEW(k->arena, int64_t);
        if (onxi_check_failed(k, axis))
            return;
        *axis = d->axis < 0 && d->axis >= -rank ? d->axis + rank : d->axis;
        if (!onxi_check_set_add(k, axes, onx_str_make((const char *)axis, sizeof *axis), i, NULL))
            onxi_check_find(k, ONXI_AT(here, axis), "D-12",
                            (onxi_check_detail){ .value = onxi_check_number(k, d->axis) }, "the axis is sharded twice");
        check_axis(k, here, d, shape, tensor, &shards);
    }
    if (s->sharded_dim_count && s->device_count && shards && shards != s->device_count)
        onxi_check_find(k, ONXI_AT(at, device), "D-15",
                        (onxi_check_detail){ .value = onxi_check_number(k, s->device_count),
                                             .expected = onxi_check_text(k, "%llu", (unsigned long long)shards) },
                        "there are not as many devices as shards");
}

/* The operators that the sharding proposal excludes: window operators, families whose values are not tensors of a
 * single shape, and nodes with subgraphs. */
static bool is_shardable(onxi_op_id op)
{
    if (onxi_operator_is(op, ONXI_TRAIT_WINDOW))
        return false;
    switch (onxi_operator_of(op)->family) {
    case ONXI_FAMILY_rnn:
    case ONXI_FAMILY_controlflow:
    case ONXI_FAMILY_sequence:
    case ONXI_FAMILY_optional:
        return false;
    default:
        return true;
    }
}

/* ---- is the sharding of the operands consistent with the operator (D-20)? ---- */

/* How the axes of operands correspond. */
typedef enum relation {
    ALIGNED, /* from the last axis, as in broadcasting: operands with the same size along an axis are sharded equally */
    MATRIX,  /* the last two axes are those of a matrix product, the others are aligned */
    GEMM,
    TURNED, /* Transpose */
    JOINED  /* Concat: aligned except for one axis */
} relation;

static const struct relation_row {
    onxi_op_id op;
    relation relation;
    uint8_t a, b; /* MATRIX: indices of the two factors */
} relations[] = {
    { ONXI_ID_MatMul, MATRIX, 0, 1 }, { ONXI_ID_MatMulInteger, MATRIX, 0, 1 }, { ONXI_ID_QLinearMatMul, MATRIX, 0, 3 },
    { ONXI_ID_Gemm, GEMM, 0, 1 },     { ONXI_ID_Transpose, TURNED, 0, 0 },     { ONXI_ID_Concat, JOINED, 0, 0 },
};

typedef struct operand {
    const onx_sharding_spec *spec; /* NULL: not sharded */
    uint32_t index;                /* of the spec */
    const onx_tensor_shape *shape;
    const onx_tensor *tensor;
    int64_t rank; /* -1: unknown */
} operand;

typedef struct sharding {
    onxi_check *k;
    const onxi_check_at *at;
    const onx_node *n;
    const onxi_bound *bound;
    bool found; /* at most one finding per node and configuration */
} sharding;

static uint64_t shards_of(const operand *o, int64_t axis)
{
    uint64_t shards = 1;
    for (uint32_t i = 0; i < o->spec->sharded_dim_count; i++) {
        const onx_sharded_dim *d = o->spec->sharded_dim[i];
        for (uint32_t j = 0; j < d->simple_sharding_count && (d->axis < 0 ? d->axis + o->rank : d->axis) == axis; j++)
            if (!onxi_mul_u64(shards, (uint64_t)d->simple_sharding[j]->num_shards, &shards))
                return 0;
    }
    return shards;
}

/* Checks two axes that have to be split equally; an axis of size 1 that is broadcast is not split. */
static void compare_axes(sharding *s, const operand *a, int64_t axis_a, const operand *b, int64_t axis_b)
{
    if (s->found || !a->spec || !b->spec || axis_a < 0 || axis_b < 0 || axis_a >= a->rank || axis_b >= b->rank)
        return;
    int64_t size_a = dim_size(a->shape, a->tensor, (uint64_t)axis_a);
    int64_t size_b = dim_size(b->shape, b->tensor, (uint64_t)axis_b);
    uint64_t have = shards_of(b, axis_b), want = shards_of(a, axis_a);
    if (size_a == 1 && size_b != 1)
        want = have;
    else if (size_b == 1 && size_a != 1)
        want = 1;
    if (have == want)
        return;
    s->found = true;
    onxi_check_find(s->k, ONXI_AT_INDEX(s->at, sharding_spec, b->index), "D-20",
                    (onxi_check_detail){ .value = onxi_check_text(s->k, "%llu shards of axis %lld",
                                                                  (unsigned long long)have, (long long)axis_b),
                                         .expected = onxi_check_text(s->k, "%llu", (unsigned long long)want) },
                    "the sharding does not fit that of another operand of %s",
                    onxi_check_quote(s->k, onx_view(s->n->op_type)));
}

/* Checks all axes except the last `skip` ones and except `except` (counted from the last one, from 1; 0: none). */
static void compare_aligned(sharding *s, const operand *a, const operand *b, int64_t skip, int64_t except)
{
    for (int64_t i = skip + 1; i <= a->rank && i <= b->rank && !s->found; i++)
        if (i != except)
            compare_axes(s, a, a->rank - i, b, b->rank - i);
}

static void compare_matrices(sharding *s, const operand *a, const operand *b, const operand *y, bool turn_a,
                             bool turn_b)
{
    int64_t rows = a->rank - (turn_a ? 1 : 2), inner_a = a->rank - (turn_a ? 2 : 1);
    int64_t columns = b->rank - (turn_b ? 2 : 1), inner_b = b->rank < 2 ? 0 : b->rank - (turn_b ? 1 : 2);
    compare_axes(s, a, inner_a, b, inner_b);
    if (a->rank < 2 || b->rank < 2)
        return;
    compare_axes(s, a, rows, y, y->rank - 2);
    compare_axes(s, b, columns, y, y->rank - 1);
    compare_aligned(s, a, b, 2, 0);
    compare_aligned(s, a, y, 2, 0);
}

static void compare_turned(sharding *s, const operand *x, const operand *y)
{
    uint32_t count;
    const int64_t *perm = onxi_bind_ints(s->bound, s->n, "perm", &count);
    if (x->rank != y->rank || (perm && count != y->rank))
        return;
    for (int64_t i = 0; i < y->rank; i++)
        compare_axes(s, x, perm ? perm[i] : x->rank - 1 - i, y, i);
}

/* Compares each operand with the first one that is sharded. */
static void compare_all(sharding *s, const operand *all, uint32_t count, int64_t except)
{
    const operand *first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!all[i].spec || all[i].rank < 0)
            continue;
        if (first)
            compare_aligned(s, first, &all[i], 0, except);
        /* a broadcast operand gives little information: continue with the widest one */
        if (!first || all[i].rank > first->rank)
            first = &all[i];
    }
}

/* Elementwise operators with any number of inputs, and operators that keep or reduce axes in place. */
static const struct relation_row *relation_of(const onx_node *n, const onxi_bound *bound)
{
    static const struct relation_row plain = { ONXI_ID_NONE, ALIGNED, 0, 0 };
    const onxi_op_id op = bound ? bound->op : ONXI_ID_NONE;
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if (relations[i].op == op)
            return &relations[i];
    bool alike = onxi_operator_is(op, ONXI_TRAIT_ELEMENTWISE) ||
                 (onxi_operator_is(op, ONXI_TRAIT_KEEPS_AXES) && n->input_count == 1) ||
                 (onxi_operator_is(op, ONXI_TRAIT_REDUCTION) && onxi_bind_int(bound, n, "keepdims") == 1);
    return alike ? &plain : NULL;
}

static void check_sharding(onxi_check *k, const onxi_check_at *at, const onx_node *n,
                           const onx_node_device_configuration *c, onxi_check_scope *scope, const onxi_bound *bound)
{
    enum { MOST = 1 << 20 }; /* maximum number of pairs of operands and configurations; no real model has that many */
    uint64_t count = (uint64_t)n->input_count + n->output_count;
    const struct relation_row *row = k->notes && c->sharding_spec_count > 1 ? relation_of(n, bound) : NULL;
    if (!row || count * onx_node_more(n)->device_configurations_count > MOST)
        return;
    operand *all = ONXI_ARRAY(k->arena, operand, count);
    onxi_check_set *specs = onxi_check_set_new(k);
    if (onxi_check_failed(k, all))
        return;
    for (uint32_t i = 0; i < c->sharding_spec_count; i++)
        onxi_check_set_add(k, specs, onx_view(c->sharding_spec[i]->tensor_name), i, NULL);
    for (uint32_t i = 0; i < count; i++) {
        onx_str name = onx_view(i < n->input_count ? n->input[i] : n->output[i - n->input_count]);
        operand *o = &all[i];
        o->rank = -1;
        if (!name.len)
            continue;
        if (onxi_check_set_find(specs, name, &o->index))
            o->spec = c->sharding_spec[o->index];
        o->shape = shape_of(k, scope, name, &o->tensor);
        o->rank = o->tensor ? (int64_t)o->tensor->dims_count : o->shape ? (int64_t)o->shape->dim_count : -1;
    }
    sharding s = { k, at, n, bound, false };
    uint32_t y = n->input_count;
    if (row->relation == ALIGNED) {
        compare_all(&s, all, (uint32_t)count, 0);
    } else if (row->relation == JOINED) {
        int64_t axis = onxi_bind_int(bound, n, "axis"), rank = count ? all[0].rank : -1;
        for (uint32_t i = 0; i < count; i++)
            rank = all[i].rank > rank ? all[i].rank : rank;
        compare_all(&s, all, (uint32_t)count, axis < 0 ? -axis : rank - axis);
    } else if (row->b < n->input_count && n->output_count) {
        const operand *a = &all[row->a], *b = &all[row->b];
        if (row->relation == TURNED)
            compare_turned(&s, a, &all[y]);
        else
            compare_matrices(&s, a, b, &all[y], row->relation == GEMM && onxi_bind_int(bound, n, "transA"),
                             row->relation == GEMM && onxi_bind_int(bound, n, "transB"));
        if (row->relation == GEMM && n->input_count > 2)
            compare_aligned(&s, &all[y], &all[2], 0, 0);
    }
}

void onxi_check_node_devices(onxi_check *k, const onxi_check_at *at, const onx_node *node, onxi_check_scope *scope)
{
    const onx_node_extra *more = onx_node_more(node);
    if (!more->device_configurations_count)
        return;
    onxi_check_gate(k, at, "V-20", "device_configurations", 11);
    const onxi_bound *bound = onxi_check_bound_of(k, node, scope);
    onxi_check_set *ids = onxi_check_set_new(k), *operands = onxi_check_set_new(k);
    for (uint32_t i = 0; i < node->output_count; i++)
        onxi_check_set_add(k, operands, onx_view(node->output[i]), 0, NULL);
    for (uint32_t i = 0; i < node->input_count; i++) /* index from 1: also an input */
        onxi_check_set_add(k, operands, onx_view(node->input[i]), 1, NULL);
    for (uint32_t i = 0; i < more->device_configurations_count; i++) {
        const onx_node_device_configuration *c = more->device_configurations[i];
        const onxi_check_at *here = ONXI_AT_INDEX(at, device_configurations, i);
        onx_str id = onx_view(c->configuration_id);
        onxi_check_utf8(k, ONXI_AT(here, configuration_id), id);
        uint32_t found = UINT32_MAX;
        onxi_check_set_find(k->config_index, id, &found);
        int64_t devices = -1;
        if (!id.len || (found == UINT32_MAX && k->model))
            onxi_check_find(k, ONXI_AT(here, configuration_id), "D-05",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, id)) },
                            id.len ? "the model has no device configuration of that name"
                                   : "configuration_id is missing");
        else if (found != UINT32_MAX) {
            devices = k->model->configuration[found]->num_devices;
            if (k->config_used)
                k->config_used[found] = true;
        }
        if (id.len && !onxi_check_set_add(k, ids, id, i, NULL))
            onxi_check_find(k, ONXI_AT(here, configuration_id), "D-06",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, id)) },
                            "the node refers to the configuration twice");
        if (ONX_HAS(node_device_configuration, c, pipeline_stage) && c->pipeline_stage < 0)
            onxi_check_find(k, ONXI_AT(here, pipeline_stage), "D-18",
                            (onxi_check_detail){ .value = onxi_check_number(k, c->pipeline_stage) },
                            "pipeline_stage is negative");
        onxi_check_set *tensors = onxi_check_set_new(k);
        for (uint32_t j = 0; j < c->sharding_spec_count; j++) {
            const onx_sharding_spec *s = c->sharding_spec[j];
            const onxi_check_at *spec = ONXI_AT_INDEX(here, sharding_spec, j);
            if (!onxi_check_set_add(k, tensors, onx_view(s->tensor_name), j, NULL))
                onxi_check_find(
                    k, ONXI_AT(spec, tensor_name), "D-08",
                    (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, onx_view(s->tensor_name))) },
                    "the tensor has a sharding already");
            check_spec(k, spec, s, operands, scope, devices);
        }
        if (c->sharding_spec_count && bound && bound->op != ONXI_ID_NONE) {
            if (!is_shardable(bound->op))
                onxi_check_find(k, here, "D-21", ONXI_PLAIN, "sharding is not defined for %s",
                                onxi_check_quote(k, onx_view(node->op_type)));
            else
                check_sharding(k, here, node, c, scope, bound);
        }
    }
}
