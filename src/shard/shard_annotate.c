/* shard_annotate.c - writes annotations: a device configuration, and the sharding of each node as decided. */
#include "shard/shard_spread.h"

#include "transform/transform.h"

enum { IR_VERSION = 11 }; /* the first IR version with annotations */

/* ---- replacing symbolic sizes ---- */

typedef struct fixer {
    onx_doc *doc;
    const onx_infer_fixed *fixed;
    uint32_t fixed_count;
    int64_t batch;
    onxi_dict first; /* symbols that are the first axis of an input */
} fixer;

static const onx_tensor_shape *shape_of(const onx_value_info *info)
{
    const onx_type *type = info->type;
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
}

static int64_t size_of(const fixer *f, const onx_dimension *d, uint32_t axis)
{
    const onx_str symbol = ONX_HAS(dimension, d, dim_param) ? onx_view(d->dim_param) : onx_str_of("");
    if (ONX_HAS(dimension, d, dim_value))
        return d->dim_value;
    for (uint32_t i = 0; i < f->fixed_count && symbol.len; i++)
        if (onx_str_is(symbol, f->fixed[i].name))
            return f->fixed[i].size;
    return (symbol.len ? onxi_dict_find(&f->first, symbol) != NULL : axis == 0) ? f->batch : 1;
}

static onx_status fix_input(const fixer *f, onx_value_info *info)
{
    int64_t dims[ONX_RANK_MAX];
    const onx_tensor_shape *shape = shape_of(info);
    if (!shape || shape->dim_count > ONX_RANK_MAX)
        return ONX_OK;
    for (uint32_t i = 0; i < shape->dim_count; i++)
        dims[i] = size_of(f, shape->dim[i], i);
    onx_type *type = onx_type_new_tensor(onx_doc_arena(f->doc), (onx_dtype)info->type->tensor_type->elem_type, dims,
                                         (int)shape->dim_count);
    if (!type)
        return ONX_E_MEMORY;
    ONX_SET(value_info, info, type, type);
    return ONX_OK;
}

onx_status onxi_spread_fix(onx_doc *doc, onx_arena *arena, const onx_infer_fixed *fixed, uint32_t fixed_count,
                           uint32_t batch)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    fixer f = { doc, fixed, fixed_count, batch ? batch : 1, onxi_dict_in_arena(arena) };
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_tensor_shape *shape = shape_of(g->input[i]);
        if (shape && shape->dim_count && ONX_HAS(dimension, shape->dim[0], dim_param) &&
            !onxi_dict_at(&f.first, onx_view(shape->dim[0]->dim_param), 0, NULL))
            return ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < g->input_count; i++)
        ONX_TRY(fix_input(&f, g->input[i]));
    g->value_info_count = 0; /* its sizes are not valid any more */
    return ONX_OK;
}

/* ---- writing ---- */

typedef struct annotator {
    const onxi_spread *s;
    onx_doc *doc;
    onx_arena *arena; /* of the document */
    onx_bytes name;   /* of the configuration */
    uint32_t *named;  /* per value: 1 + the last node with a spec for it */
} annotator;

static bool add_number(onx_arena *arena, int64_t **list, uint32_t *count, int64_t number)
{
    int64_t *at = onx_list_insert(arena, (void **)list, count, *count, sizeof *at);
    if (at)
        *at = number;
    return at != NULL;
}

/* Part `part[w]` for each way that splits the tensor; ways that do not split it replicate the parts. */
static bool add_devices(const annotator *a, onx_sharding_spec *spec, uint32_t stage, const bool *split,
                        const uint32_t *part)
{
    const uint32_t *const all = a->s->parts;
    uint32_t from[ONXI_SHARD_WAYS], to[ONXI_SHARD_WAYS];
    for (uint32_t w = 0; w < ONXI_SHARD_WAYS; w++) {
        from[w] = split[w] ? part[w] : 0;
        to[w] = split[w] ? part[w] + 1 : all[w];
    }
    const uint32_t base = stage * all[ONXI_SHARD_DATA] * all[ONXI_SHARD_TENSOR];
    onx_int_int_list_entry *group = NULL;
    if ((to[0] - from[0]) * (to[1] - from[1]) > 1) {
        group = ONX_ADD(a->arena, spec, index_to_device_group_map, INT_INT_LIST_ENTRY);
        if (!group)
            return false;
        ONX_SET(int_int_list_entry, group, key, -(int64_t)spec->index_to_device_group_map_count);
        if (!add_number(a->arena, &spec->device, &spec->device_count, group->key))
            return false;
    }
    for (uint32_t d = from[0]; d < to[0]; d++)
        for (uint32_t t = from[1]; t < to[1]; t++) {
            const uint32_t device = base + d * all[ONXI_SHARD_TENSOR] + t;
            if (!(group ? add_number(a->arena, &group->value, &group->value_count, device)
                        : add_number(a->arena, &spec->device, &spec->device_count, device)))
                return false;
        }
    return true;
}

static bool add_axis(const annotator *a, onx_sharding_spec *spec, uint32_t axis, uint32_t parts)
{
    onx_sharded_dim *d = ONX_ADD(a->arena, spec, sharded_dim, SHARDED_DIM);
    onx_simple_sharded_dim *simple = d ? ONX_ADD(a->arena, d, simple_sharding, SIMPLE_SHARDED_DIM) : NULL;
    if (!simple)
        return false;
    ONX_SET(sharded_dim, d, axis, axis);
    ONX_SET(simple_sharded_dim, simple, num_shards, parts);
    return true;
}

/* Axes in the order of ways, so that parts of weights vary fastest. */
static bool add_spec(const annotator *a, onx_node_device_configuration *c, uint32_t node, uint32_t operand)
{
    const onxi_shard_node *n = &a->s->plan->node[node];
    bool split[ONXI_SHARD_WAYS] = { false };
    uint32_t parts[ONXI_SHARD_WAYS] = { 1, 1 };
    const onx_bytes name =
        operand < n->node->input_count ? n->node->input[operand] : n->node->output[operand - n->node->input_count];
    onx_sharding_spec *spec = ONX_ADD(a->arena, c, sharding_spec, SHARDING_SPEC);
    if (!spec || onx_arena_keep(a->arena, onx_view(name), &spec->tensor_name) != ONX_OK)
        return false;
    spec->has |= onx_sharding_spec_has_tensor_name;
    for (uint32_t w = 0; w < ONXI_SHARD_WAYS; w++)
        for (uint32_t k = 0; k < ONXI_SHARD_RANK; k++)
            if (a->s->dim[w][node] >= 0 && n->rule.map[operand][k] == a->s->dim[w][node]) {
                split[w] = true;
                parts[w] = a->s->parts[w];
                if (!add_axis(a, spec, k, parts[w]))
                    return false;
            }
    for (uint32_t d = 0; d < parts[0]; d++)
        for (uint32_t t = 0; t < parts[1]; t++)
            if (!add_devices(a, spec, a->s->stage[node], split, (const uint32_t[]){ d, t }))
                return false;
    return true;
}

static bool is_split(const annotator *a, uint32_t node, uint32_t operand)
{
    const onxi_shard_node *n = &a->s->plan->node[node];
    const uint32_t value = n->inputs[operand];
    if (value == ONXI_SHARD_NONE || (int32_t)operand == n->rule.unread)
        return false;
    for (uint32_t w = 0; w < ONXI_SHARD_WAYS; w++)
        for (uint32_t k = 0; k < ONXI_SHARD_RANK; k++)
            if (a->s->dim[w][node] >= 0 && n->rule.map[operand][k] == a->s->dim[w][node])
                return true;
    return false;
}

/* A tensor that a node reads twice has one spec. */
static bool is_first(annotator *a, uint32_t node, uint32_t operand)
{
    uint32_t *named = &a->named[a->s->plan->node[node].inputs[operand]];
    const bool first = *named != node + 1;
    *named = node + 1;
    return first;
}

/* The standard defines no sharding for window operators (rule D-21): if their inputs are split already, they are split
 * in the same way without annotations. */
static bool follows(const annotator *a, uint32_t node)
{
    const onxi_shard_plan *plan = a->s->plan;
    const onxi_shard_node *n = &plan->node[node];
    if (!onxi_operator_is(n->bound->op, ONXI_TRAIT_WINDOW))
        return false;
    for (uint32_t i = 0; i < n->node->input_count; i++) {
        const onxi_shard_value *v = n->inputs[i] == ONXI_SHARD_NONE ? NULL : &plan->value[n->inputs[i]];
        if (v && is_split(a, node, i) && (v->constant || v->node == ONXI_SHARD_NONE))
            return false;
    }
    return true;
}

static onx_status annotate_node(annotator *a, uint32_t node, uint32_t *count)
{
    const onxi_shard_node *n = &a->s->plan->node[node];
    const uint32_t operands = n->node->input_count + n->node->output_count;
    bool any = a->s->stages > 1;
    if (!n->live || n->constant)
        return ONX_OK;
    const bool split = !follows(a, node);
    for (uint32_t i = 0; i < operands; i++)
        any |= split && is_split(a, node, i);
    if (!any)
        return ONX_OK;
    onx_node *to = onx_doc_model(a->doc)->graph->node[node];
    onx_node_extra *more = onx_message_extra(a->arena, ONX_KIND_NODE, to);
    onx_node_device_configuration *c =
        more ? ONX_ADD(a->arena, more, device_configurations, NODE_DEVICE_CONFIGURATION) : NULL;
    if (!c)
        return ONX_E_MEMORY;
    ONX_SET(node_device_configuration, c, configuration_id, a->name);
    if (a->s->stages > 1)
        ONX_SET(node_device_configuration, c, pipeline_stage, (int32_t)a->s->stage[node]);
    for (uint32_t i = 0; i < operands && split; i++) {
        if (is_split(a, node, i) && is_first(a, node, i) && !add_spec(a, c, node, i))
            return ONX_E_MEMORY;
    }
    ++*count;
    return ONX_OK;
}

static onx_status write_annotations(const onxi_spread *s, onx_doc *doc, onx_str name)
{
    annotator a = { .s = s, .doc = doc, .arena = onx_doc_arena(doc) };
    onx_model *model = onx_doc_model(doc);
    uint32_t count = 0;
    onx_device_configuration *c = ONX_ADD(a.arena, model, configuration, DEVICE_CONFIGURATION);
    a.named = ONXI_ARRAY(s->plan->arena, uint32_t, s->plan->value_count + 1u);
    if (!c || !a.named || onx_arena_keep(a.arena, name, &a.name) != ONX_OK)
        return ONX_E_MEMORY;
    ONX_SET(device_configuration, c, name, a.name);
    ONX_SET(device_configuration, c, num_devices, (int32_t)s->plan->placements.devices);
    ONX_TRY(onxi_model_raise_ir(s->plan->arena, model, IR_VERSION));
    for (uint32_t i = 0; i < s->plan->node_count; i++)
        ONX_TRY(annotate_node(&a, i, &count));
    return ONX_OK;
}

/* ---- the whole annotation ---- */

static onx_status decide(onxi_spread *s)
{
    ONX_TRY(onxi_spread_open(s));
    if (s->parts[ONXI_SHARD_DATA] > 1)
        ONX_TRY(onxi_spread_batch(s));
    if (s->parts[ONXI_SHARD_TENSOR] > 1)
        ONX_TRY(onxi_spread_weights(s));
    return s->stages > 1 ? onxi_spread_stages(s) : ONX_OK;
}

/* `whole` is the model with concrete sizes. */
static onx_status spread(onx_ctx *cx, onx_doc *doc, onx_doc *whole, onx_arena *arena, onx_str name,
                         const onx_shard_annotate_options *o)
{
    const onx_device_configuration none = { 0 }; /* nodes have no entries for it yet */
    onxi_shard_plan plan = { .cx = cx, .doc = whole, .arena = arena, .configuration = &none };
    onxi_spread s = { .plan = &plan,
                      .options = o,
                      .stages = o->pipeline,
                      .parts = { [ONXI_SHARD_DATA] = o->data, [ONXI_SHARD_TENSOR] = o->tensor } };
    ONX_TRY(onxi_spread_fix(whole, arena, o->fixed, o->fixed_count, o->data));
    plan.model = onx_doc_model(whole);
    plan.graph = plan.model->graph;
    plan.placements = (onxi_placements){ arena, o->pipeline * o->data * o->tensor, NULL };
    ONX_TRY(onxi_shard_read(&plan));
    ONX_TRY(decide(&s));
    return write_annotations(&s, doc, name);
}

/* "pipeline2_tensor4" */
static onx_str make_name(onx_arena *arena, const onx_shard_annotate_options *o)
{
    const struct {
        const char *name;
        uint32_t count;
    } ways[] = { { "pipeline", o->pipeline }, { "data", o->data }, { "tensor", o->tensor } };
    onx_str name = onx_str_of("");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].count > 1)
            name =
                onxi_arena_printf(arena, "%.*s%s%s%u", ONX_ARG(name), name.len ? "_" : "", ways[i].name, ways[i].count);
    return name;
}

static onx_status annotate(onx_ctx *cx, onx_doc *doc, onx_arena *arena, onx_shard_annotate_options *o)
{
    onx_model *model = onx_doc_model(doc);
    onx_doc *whole;
    uint64_t devices;
    o->pipeline += !o->pipeline;
    o->data += !o->data;
    o->tensor += !o->tensor;
    if (!onxi_mul_u64(o->pipeline, o->data, &devices) || !onxi_mul_u64(devices, o->tensor, &devices) || devices < 2 ||
        devices > ONXI_SHARD_DEVICES_MAX)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "a model is spread over 2 to %d devices",
                         ONXI_SHARD_DEVICES_MAX);
    ONX_TRY(onxi_doc_need_graph(cx, doc));
    const onx_str name = o->configuration.len ? o->configuration : make_name(arena, o);
    if (!name.len)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < model->configuration_count; i++)
        if (onx_str_equal(onx_view(model->configuration[i]->name), name))
            return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the model has a device configuration \"%.*s\" already",
                             ONX_ARG(name));
    ONX_TRY(onx_doc_sort(doc, NULL));
    if (model->functions_count)
        ONX_TRY(onx_inline(cx, doc, NULL));
    ONX_TRY(onxi_spread_unfold(cx, doc, o->tensor > 1, arena));
    ONX_TRY(onx_doc_share(cx, doc, &whole));
    const onx_status status = spread(cx, doc, whole, arena, name, o);
    onx_doc_free(whole);
    return status;
}

static onx_status annotate_with(onx_ctx *cx, onx_doc *doc, onx_shard_annotate_options *o)
{
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    const onx_status status = annotate(cx, doc, arena, o);
    onx_arena_free(arena);
    return status;
}

onx_status onx_shard_annotate(onx_ctx *cx, onx_doc *doc, const onx_shard_annotate_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_OPTIONS(cx, onx_shard_annotate_options, own, options);
    ONXI_NEED(cx, own.fixed || !own.fixed_count);
    ONXI_TRANSFORM(cx, doc, annotate_with(cx, doc, &own));
}
