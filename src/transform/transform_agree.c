/* transform_agree.c - combines two models: versions, metadata, functions, external data, and the lists of the graph. */
#include "transform/transform_merge.h"
#include "transform/transform_part.h"

#include <limits.h>
#include <stdlib.h>

/* ---- versions of operator sets ---- */

static onx_status imports_of(onxi_merger *m, const onx_model *model, onxi_imports *out)
{
    return onxi_imports_open(out, m->scratch, model->opset_import, model->opset_import_count,
                             onxi_model_is_legacy(model));
}

/* Converts the older of the two models to the version of the newer one. */
static onx_status agree_on_standard(onxi_merger *m)
{
    for (uint32_t d = 0; d < ONXI_RETARGET_DOMAINS; d++) {
        const onx_opset_version none = { onx_str_of(onxi_versioned_domains[d]), 0 };
        onxi_imports a, b;
        ONX_TRY(imports_of(m, m->model, &a));
        ONX_TRY(imports_of(m, m->other, &b));
        const int64_t x = onxi_imports_version(&a, none.domain), y = onxi_imports_version(&b, none.domain);
        if (x < 1 || y < 1 || x == y)
            continue;
        const onx_opset_version to = { none.domain, x > y ? x : y };
        const onx_retarget_options options = { .struct_size = sizeof options, .opset = &to, .opset_count = 1 };
        ONX_TRY(onx_retarget(m->cx, x < y ? m->doc : m->other_doc, &options));
        onxi_tell_change(m->options->changed, m->options->user, "merge", "retarget", (onx_str){ 0 },
                         "%s is converted from version %lld to %lld of operator set %.*s",
                         x < y ? "the model merged so far" : "the next model", (long long)(x < y ? x : y),
                         (long long)to.version, ONX_ARG(to.domain.len ? to.domain : onx_str_of("ai.onnx")));
    }
    return ONX_OK;
}

static onx_status add_imports(onxi_merger *m)
{
    onxi_imports a, b;
    ONX_TRY(imports_of(m, m->model, &a));
    ONX_TRY(imports_of(m, m->other, &b));
    for (uint32_t i = 0; i < b.count; i++) {
        const int64_t version = onxi_imports_version(&a, b.items[i].domain);
        if (version == b.items[i].version)
            continue;
        if (version >= 0)
            return onxi_fail(m->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                             "the models import versions %lld and %lld of operator set %.*s, which onx retarget "
                             "cannot convert",
                             (long long)version, (long long)b.items[i].version, ONX_ARG(b.items[i].domain));
        onx_operator_set_id *id = ONX_ADD(m->arena, m->model, opset_import, OPERATOR_SET_ID);
        if (!id || onx_arena_keep(m->arena, b.items[i].domain, &id->domain) != ONX_OK)
            return ONX_E_MEMORY;
        id->has |= onx_operator_set_id_has_domain;
        ONX_SET(operator_set_id, id, version, b.items[i].version);
    }
    ONX_TRY(onxi_model_raise_ir(m->scratch, m->model, m->other->ir_version));
    /* what is a constant in one of the models stays one */
    return m->other->ir_version < ONXI_IR_DEFAULTS ? onxi_model_raise_ir(m->scratch, m->other, m->model->ir_version)
                                                   : ONX_OK;
}

/* ---- metadata ---- */

/* Merges entries of two lists with the same key; different values are an error. */
static onx_status add_metadata(onxi_merger *m, onx_str path, onx_string_string_entry ***list, uint32_t *count,
                               onx_string_string_entry *const *more, uint32_t more_count)
{
    onxi_dict own = onxi_dict_in_arena(m->scratch);
    for (uint32_t i = 0; i < *count; i++)
        if (!onxi_dict_at(&own, onx_view((*list)[i]->key), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < more_count; i++) {
        const onx_str key = onx_view(more[i]->key), value = onx_view(more[i]->value);
        const onxi_dict_entry *entry = onxi_dict_find(&own, key);
        if (!entry) {
            onx_string_string_entry *e =
                onx_list_add_message(m->arena, (void ***)(void *)list, count, ONX_KIND_STRING_STRING_ENTRY);
            if (!e || !onxi_dict_at(&own, key, *count - 1, NULL))
                return ONX_E_MEMORY;
            *e = *more[i];
        } else if (!onx_str_equal(onx_view((*list)[entry->value]->value), value))
            return onxi_fail(m->cx, ONX_E_INVALID, ONXI_AT_PATH(path),
                             "metadata %.*s is \"%.*s\" in one model and \"%.*s\" in another", ONX_ARG(key),
                             ONX_ARG(onx_view((*list)[entry->value]->value)), ONX_ARG(value));
    }
    return ONX_OK;
}

/* The same for device configurations, which nodes refer to. */
static onx_status add_configurations(onxi_merger *m)
{
    onxi_dict own = onxi_dict_in_arena(m->scratch);
    onx_model *a = m->model;
    const onx_model *b = m->other;
    for (uint32_t i = 0; i < a->configuration_count; i++)
        if (!onxi_dict_at(&own, onx_view(a->configuration[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < b->configuration_count; i++) {
        const onx_str name = onx_view(b->configuration[i]->name);
        const onxi_dict_entry *entry = onxi_dict_find(&own, name);
        if (!entry) {
            onx_device_configuration *c = ONX_ADD(m->arena, a, configuration, DEVICE_CONFIGURATION);
            if (!c || !onxi_dict_at(&own, name, a->configuration_count - 1, NULL))
                return ONX_E_MEMORY;
            *c = *b->configuration[i];
        } else if (!onx_message_equal(ONX_KIND_DEVICE_CONFIGURATION, a->configuration[entry->value],
                                      b->configuration[i]))
            return onxi_fail(m->cx, ONX_E_INVALID, ONXI_AT_PATH(onx_str_of("configuration")),
                             "device configuration %.*s is not the same in both models", ONX_ARG(name));
    }
    return ONX_OK;
}

onx_status onxi_merge_agree(onxi_merger *m)
{
    onx_model *a = m->model;
    const onx_model *b = m->other;
    ONX_TRY(add_metadata(m, onx_str_of("metadata_props"), &a->metadata_props, &a->metadata_props_count,
                         b->metadata_props, b->metadata_props_count));
    ONX_TRY(add_metadata(m, onx_str_of("graph.metadata_props"), &a->graph->metadata_props,
                         &a->graph->metadata_props_count, b->graph->metadata_props, b->graph->metadata_props_count));
    ONX_TRY(add_configurations(m));
    ONX_TRY(agree_on_standard(m));
    return add_imports(m);
}

/* ---- external data ---- */

typedef struct mover {
    onxi_merger *m;
    onx_str prefix; /* prefix for locations; empty with `inside`: the data is moved into the model */
    bool inside, told;
} mover;

static onx_status set_entry(onx_arena *arena, onx_tensor *t, onx_str key, onx_str value)
{
    for (uint32_t i = 0; i < t->external_data_count; i++)
        if (onx_str_equal(onx_view(t->external_data[i]->key), key))
            return onx_arena_refer(arena, value, &t->external_data[i]->value);
    return ONX_OK;
}

static onx_status move_tensor(void *user, const onx_visit *at)
{
    mover *w = user;
    onxi_merger *m = w->m;
    onx_tensor *t = at->message;
    onxi_external_ref ref;
    onxi_external_fault fault;
    onx_str bytes;
    if (at->kind != ONX_KIND_TENSOR || !onx_tensor_is_external(t) || !onxi_external_parse(t, &ref, &fault))
        return ONX_OK; /* errors in it are reported elsewhere */
    if (!w->inside) {
        const onx_str location = onxi_arena_printf(m->arena, "%.*s/%.*s", ONX_ARG(w->prefix), ONX_ARG(ref.location));
        return location.len ? set_entry(m->arena, t, onx_str_of("location"), location) : ONX_E_MEMORY;
    }
    ONX_TRY(m->other_doc->external_bytes ? m->other_doc->external_bytes(m->other_doc, t, &bytes)
                                         : onxi_fail(m->cx, ONX_E_INVALID, ONXI_NOWHERE,
                                                     "the external data of a model that was not read from a folder"));
    if (!w->told)
        onxi_warn(
            m->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
            "external data of %s cannot be referenced from the folder of the first model, and is moved into the model",
            m->other_doc->base_dir);
    w->told = true;
    t->external_data = NULL;
    t->external_data_count = 0;
    ONX_CLEAR(tensor, t, data_location);
    t->data_location = ONX_DATA_DEFAULT;
    t->has |= onx_tensor_has_raw_data;
    return onx_arena_refer(m->arena, bytes, &t->raw_data);
}

/* The part of `path` below `folder`; false if it is not below it. */
static bool below(const char *folder, const char *path, onx_str *out)
{
    size_t len = strlen(folder);
    if (strncmp(folder, path, len) != 0)
        return false;
    if (path[len] == '/')
        len++;
    else if (path[len] && (!len || folder[len - 1] != '/'))
        return false;
    *out = onx_str_of(path + len);
    return true;
}

onx_status onxi_merge_external(onxi_merger *m)
{
    const char *from = m->other_doc->base_dir, *to = m->doc->base_dir;
    mover w = { .m = m, .inside = true };
    if (!from)
        return ONX_OK;
    char a[PATH_MAX], b[PATH_MAX];
    if (to && realpath(*to ? to : ".", a) && realpath(*from ? from : ".", b) && below(a, b, &w.prefix)) {
        w.inside = false;
        w.prefix = onxi_arena_printf(m->scratch, "%.*s", ONX_ARG(w.prefix));
    }
    if (!w.inside && !w.prefix.len)
        return ONX_OK; /* the same folder */
    return onx_message_walk(m->cx, ONX_KIND_MODEL, m->other, move_tensor, &w);
}

/* ---- functions ---- */

static onx_status add_functions(onxi_merger *m)
{
    onxi_functions own;
    onx_model *a = m->model;
    const onx_model *b = m->other;
    if (!b->functions_count)
        return ONX_OK;
    ONX_TRY(onxi_functions_index(m->scratch, a->functions, a->functions_count, &own));
    for (uint32_t i = 0; i < b->functions_count; i++) {
        const onx_function *f = b->functions[i];
        const onx_function *known =
            onxi_functions_find(&own, onx_view(f->domain), onx_view(f->name), onx_view(f->overload), NULL);
        if (known && !onx_message_equal(ONX_KIND_FUNCTION, known, f))
            return onxi_fail(m->cx, ONX_E_INVALID, ONXI_NOWHERE,
                             "both models have a function %.*s.%.*s, and they differ; use a prefix to distinguish them",
                             ONX_ARG(onx_view(f->domain)), ONX_ARG(onx_view(f->name)));
        if (known)
            continue;
        onx_function *copy = ONX_ADD(m->arena, a, functions, FUNCTION);
        if (!copy)
            return ONX_E_MEMORY;
        *copy = *f;
    }
    return ONX_OK;
}

/* ---- the lists of the graph ---- */

/* Appends the messages of one list that are not skipped to another. */
static onx_status join(onxi_merger *m, void *to, uint32_t *to_count, const void *from, uint32_t from_count)
{
    void **old = *(void ***)to;
    void *const *more = *(void *const *const *)from;
    void **list =
        onxi_arena_array(m->arena, (size_t)onxi_list_room((uint64_t)*to_count + from_count) + 1, sizeof *list);
    if (!list)
        return ONX_E_MEMORY;
    if (*to_count)
        memcpy(list, old, *to_count * sizeof *list);
    for (uint32_t i = 0; i < from_count; i++)
        if (!onxi_map_find(&m->skip, (uint64_t)(uintptr_t)more[i]))
            list[(*to_count)++] = more[i];
    *(void ***)to = list;
    return ONX_OK;
}

#define JOIN(m, a, b, field) join((m), &(a)->field, &(a)->field##_count, &(b)->field, (b)->field##_count)

/* Outputs that the other model has consumed become inner values; those that it passes on are its own outputs. */
static onx_status join_outputs(onxi_merger *m)
{
    onx_graph *a = m->model->graph;
    const onx_graph *b = m->other->graph;
    onxi_dict there = onxi_dict_in_arena(m->scratch);
    uint32_t kept = 0;
    onxi_dict declared = onxi_dict_in_arena(m->scratch);
    for (uint32_t i = 0; i < a->value_info_count; i++)
        if (!onxi_dict_at(&declared, onx_view(a->value_info[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < a->output_count; i++) {
        onx_value_info *output = a->output[i];
        if (!onxi_dict_find(&m->taken, onx_view(output->name))) {
            a->output[kept++] = output;
            if (!onxi_dict_at(&there, onx_view(output->name), 0, NULL))
                return ONX_E_MEMORY;
            continue;
        }
        onx_value_info *info =
            onxi_dict_find(&declared, onx_view(output->name)) ? output : ONX_ADD(m->arena, a, value_info, VALUE_INFO);
        if (!info)
            return ONX_E_MEMORY;
        if (info != output)
            *info = *output;
    }
    a->output_count = kept;
    for (uint32_t i = 0; i < b->output_count; i++) {
        bool made;
        if (!onxi_dict_at(&there, onx_view(b->output[i]->name), 0, &made) ||
            (!made && !onxi_map_at(&m->skip, (uint64_t)(uintptr_t)b->output[i])))
            return ONX_E_MEMORY;
        if (!made)
            *onxi_map_at(&m->skip, (uint64_t)(uintptr_t)b->output[i]) = m;
    }
    return JOIN(m, a, b, output);
}

/* A value that both models have, such as a shared weight, is annotated once. */
static onx_status join_annotations(onxi_merger *m)
{
    onx_graph *a = m->model->graph;
    const onx_graph *b = m->other->graph;
    onxi_dict there = onxi_dict_in_arena(m->scratch);
    for (uint32_t i = 0; i < a->quantization_annotation_count; i++)
        if (!onxi_dict_at(&there, onx_view(a->quantization_annotation[i]->tensor_name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < b->quantization_annotation_count; i++) {
        void **skip = onxi_dict_find(&there, onx_view(b->quantization_annotation[i]->tensor_name))
                          ? onxi_map_at(&m->skip, (uint64_t)(uintptr_t)b->quantization_annotation[i])
                          : NULL;
        if (skip)
            *skip = m;
    }
    return JOIN(m, a, b, quantization_annotation);
}

/* Joins a name or text of both models. */
static onx_status join_texts(onxi_merger *m, onx_bytes *to, onx_bytes from, const char *between)
{
    const onx_str a = onx_view(*to), b = onx_view(from);
    if (!b.len || onx_str_equal(a, b))
        return ONX_OK;
    const onx_str text = a.len ? onxi_arena_printf(m->arena, "%.*s%s%.*s", ONX_ARG(a), between, ONX_ARG(b)) : b;
    return text.len ? onx_arena_keep(m->arena, text, to) : ONX_E_MEMORY;
}

onx_status onxi_merge_append(onxi_merger *m)
{
    onx_graph *a = m->model->graph;
    const onx_graph *b = m->other->graph;
    ONX_TRY(add_functions(m));
    ONX_TRY(JOIN(m, a, b, node));
    ONX_TRY(JOIN(m, a, b, initializer));
    ONX_TRY(JOIN(m, a, b, sparse_initializer));
    ONX_TRY(JOIN(m, a, b, input));
    ONX_TRY(join_outputs(m));
    ONX_TRY(JOIN(m, a, b, value_info));
    ONX_TRY(join_annotations(m));
    ONX_TRY(JOIN(m, m->model, m->other, training_info));
    ONX_TRY(join_texts(m, &a->name, b->name, "_"));
    ONX_TRY(join_texts(m, &a->doc_string, b->doc_string, "\n\n"));
    a->has |= (b->has & onx_graph_has_doc_string) | onx_graph_has_name;
    return ONX_OK;
}
