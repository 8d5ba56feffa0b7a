/* infer_places.c - finds the places where a model uses its symbolic dimensions, so that fixing one does not search the
 * whole model each time. */
#include "infer/infer.h"

/* Each text is parsed once, however often it occurs. */
typedef struct finder {
    onx_infer *e;
    onxi_infer_places *places;
    onxi_infer_names texts;
    onxi_infer_dim_places **of; /* per text */
    uint32_t room;
    onxi_infer_dim_place here; /* the current place */
} finder;

/* Grows the lists to include that number; new ones are empty. */
static bool reserve(onx_infer *e, onxi_infer_dim_places ***of, uint32_t *room, uint32_t id)
{
    const uint32_t before = *room;
    if (!ONXI_GROW_IN(e->arena, *of, *room, (uint64_t)id + 1))
        return false;
    if (*room > before)
        memset(*of + before, 0, (*room - before) * sizeof **of);
    return true;
}

static onx_status add_place(finder *f, onx_str text)
{
    onx_infer *e = f->e;
    uint32_t id = onxi_infer_names_add(e, &f->texts, text);
    if (id == UINT32_MAX)
        return e->status;
    if (!reserve(e, &f->of, &f->room, id))
        return e->status = ONX_E_MEMORY;
    if (!f->of[id] && !(f->of[id] = ONXI_NEW(e->arena, onxi_infer_dim_places)))
        return e->status = ONX_E_MEMORY;
    const onxi_infer_dim_place *last = f->of[id]->first;
    if (last && last->kind == f->here.kind && last->node == f->here.node && onx_str_equal(last->name, f->here.name))
        return ONX_OK;
    onxi_infer_dim_place *place = ONXI_NEW(e->arena, onxi_infer_dim_place);
    if (!place)
        return e->status = ONX_E_MEMORY;
    *place = f->here;
    place->next = f->of[id]->first;
    f->of[id]->first = place;
    return ONX_OK;
}

/* ---- searching the model; parts that are nested too deeply are not inferred either ---- */

static onx_status in_shape(finder *f, const onx_tensor_shape *shape)
{
    for (uint32_t i = 0; shape && i < shape->dim_count; i++)
        if (ONX_HAS(dimension, shape->dim[i], dim_param))
            ONX_TRY(add_place(f, onx_view(shape->dim[i]->dim_param)));
    return ONX_OK;
}

static onx_status in_type(finder *f, const onx_type *type)
{
    for (uint32_t depth = onx_ctx_limits(f->e->cx).depth + 1; type && depth > 0; depth--) {
        if (type->tensor_type && ONX_HAS(type, type, tensor_type))
            return in_shape(f, type->tensor_type->shape);
        if (type->sparse_tensor_type && ONX_HAS(type, type, sparse_tensor_type))
            return in_shape(f, type->sparse_tensor_type->shape);
        if (type->sequence_type && ONX_HAS(type, type, sequence_type))
            type = type->sequence_type->elem_type;
        else if (type->optional_type && ONX_HAS(type, type, optional_type))
            type = type->optional_type->elem_type;
        else if (type->map_type && ONX_HAS(type, type, map_type))
            type = type->map_type->value_type;
        else
            break;
    }
    return ONX_OK;
}

static onx_status in_nodes(finder *f, onx_node *const *nodes, uint32_t count, uint32_t depth);

static onx_status in_subgraph(finder *f, const onx_graph *graph, uint32_t depth)
{
    if (!graph || depth > onx_ctx_limits(f->e->cx).depth)
        return ONX_OK;
    for (uint32_t i = 0; i < graph->value_info_count; i++)
        ONX_TRY(in_type(f, graph->value_info[i]->type));
    for (uint32_t i = 0; i < graph->input_count; i++)
        ONX_TRY(in_type(f, graph->input[i]->type));
    for (uint32_t i = 0; i < graph->output_count; i++)
        ONX_TRY(in_type(f, graph->output[i]->type));
    return in_nodes(f, graph->node, graph->node_count, depth + 1);
}

static onx_status in_node(finder *f, const onx_node *node, uint32_t depth)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        uint32_t count;
        onx_graph *const *graphs = onx_attribute_value(a, ONX_SLOT_G, &count);
        onx_type *const *types;
        if (graphs)
            ONX_TRY(in_subgraph(f, *graphs, depth));
        graphs = onx_attribute_value(a, ONX_SLOT_GRAPHS, &count);
        for (uint32_t k = 0; graphs && k < count; k++)
            ONX_TRY(in_subgraph(f, graphs[k], depth));
        if ((types = onx_attribute_value(a, ONX_SLOT_TP, &count)) != NULL)
            ONX_TRY(in_type(f, *types));
        types = onx_attribute_value(a, ONX_SLOT_TYPE_PROTOS, &count);
        for (uint32_t k = 0; types && k < count; k++)
            ONX_TRY(in_type(f, types[k]));
    }
    return ONX_OK;
}

static onx_status in_nodes(finder *f, onx_node *const *nodes, uint32_t count, uint32_t depth)
{
    for (uint32_t i = 0; i < count; i++)
        ONX_TRY(in_node(f, nodes[i], depth));
    return ONX_OK;
}

static onx_status in_declarations(finder *f, onx_value_info *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        f->here = (onxi_infer_dim_place){ .kind = ONXI_PLACE_NAME, .name = onx_view(list[i]->name) };
        ONX_TRY(in_type(f, list[i]->type));
    }
    return ONX_OK;
}

static onx_status in_model(finder *f, const onx_model *model)
{
    const onx_graph *graph = model->graph;
    ONX_TRY(in_declarations(f, graph->value_info, graph->value_info_count));
    ONX_TRY(in_declarations(f, graph->input, graph->input_count));
    ONX_TRY(in_declarations(f, graph->output, graph->output_count));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        f->here = (onxi_infer_dim_place){ .kind = ONXI_PLACE_NODE, .node = i };
        ONX_TRY(in_node(f, graph->node[i], 1));
    }
    for (uint32_t i = 0; i < model->functions_count; i++) {
        f->here = (onxi_infer_dim_place){ .kind = ONXI_PLACE_ALL };
        ONX_TRY(in_nodes(f, model->functions[i]->node, model->functions[i]->node_count, 1));
    }
    return ONX_OK;
}

/* ---- mapping texts to symbols ---- */

typedef struct linker {
    finder *f;
    onxi_infer_dim_place *first;
    uint32_t room;
} linker;

static bool link_symbol(void *user, onx_str name)
{
    linker *l = user;
    onx_infer *e = l->f->e;
    onxi_infer_places *places = l->f->places;
    uint32_t id = onxi_infer_names_add(e, &places->symbols, name);
    onxi_infer_dim_places *entry = id == UINT32_MAX ? NULL : ONXI_NEW(e->arena, onxi_infer_dim_places);
    if (!entry || !reserve(e, &places->of, &l->room, id)) {
        e->status = ONX_E_MEMORY;
        return false;
    }
    *entry = (onxi_infer_dim_places){ places->of[id], l->first };
    places->of[id] = entry;
    return true;
}

/* Texts are parsed with a separate table in which no symbol is fixed; its names are those of the model. */
static onx_status link_texts(finder *f, onxi_dims *plain)
{
    onx_infer *e = f->e;
    linker l = { .f = f, .room = 0 };
    for (uint32_t i = 0; i < f->texts.count; i++) {
        l.first = f->of[i]->first;
        if (onxi_dim_symbols(plain, onxi_dim_parse(plain, f->texts.entries[i].text), link_symbol, &l))
            continue;
        onxi_infer_dim_places *entry = ONXI_NEW(e->arena, onxi_infer_dim_places);
        if (!entry || e->status != ONX_OK)
            return e->status = ONX_E_MEMORY;
        *entry = (onxi_infer_dim_places){ f->places->any, l.first };
        f->places->any = entry;
    }
    return ONX_OK;
}

onx_status onxi_infer_places_new(onx_infer *e, onxi_infer_places *out)
{
    finder f = { .e = e, .places = out };
    *out = (onxi_infer_places){ .any = NULL };
    onx_status status = in_model(&f, e->model);
    if (status == ONX_OK)
        status = onxi_dims_new(e->cx, &out->plain);
    if (status == ONX_OK)
        status = link_texts(&f, out->plain);
    onxi_infer_names_free(e, &f.texts);
    return status;
}

void onxi_infer_places_free(onx_infer *e, onxi_infer_places *places)
{
    onxi_infer_names_free(e, &places->symbols);
    onxi_dims_free(places->plain);
}
