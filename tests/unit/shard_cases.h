/* shard_cases.h - for tests of models annotated by hand: graphs as text, with weights and annotations of nodes. */
#ifndef TESTS_SHARD_CASES_H
#define TESTS_SHARD_CASES_H

#include "shard_ranks.h"

/* ---- models ---- */

typedef struct test_case {
    const char *name;
    const char *graph;       /* as text, without weights */
    const char *weights;     /* "w 4 6;b 6" */
    const char *annotations; /* of nodes, separated by ';': "x 0/2@0,1 y 1/2@{0+1},{2+3}"; N is the number of ranks and
                              * * are all of them; "stage 1" is a pipeline stage */
    uint32_t ranks;          /* 0: any */
    bool communicates;       /* some rank has to get something from another one */
} test_case;

/* "0/2,1/2": which axes, and into how many shards; "0/2=4": of how many elements. */
static void add_axes(onx_arena *arena, onx_sharding_spec *spec, char *text, uint32_t ranks)
{
    char *rest;
    for (char *at = strtok_r(text, ",", &rest); at; at = strtok_r(NULL, ",", &rest)) {
        onx_sharded_dim *d = ONX_ADD(arena, spec, sharded_dim, SHARDED_DIM);
        char *slash = strchr(at, '/');
        ONX_SET(sharded_dim, d, axis, strtol(at, NULL, 10));
        onx_simple_sharded_dim *simple = ONX_ADD(arena, d, simple_sharding, SIMPLE_SHARDED_DIM);
        ONX_SET(simple_sharded_dim, simple, num_shards, slash[1] == 'N' ? (int64_t)ranks : strtol(slash + 1, NULL, 10));
        if (strchr(slash, '='))
            ONX_SET(simple_sharded_dim, simple, dim_value, strtol(strchr(slash, '=') + 1, NULL, 10));
    }
}

static void add_device(onx_arena *arena, onx_sharding_spec *spec, int64_t device)
{
    int64_t *at = onx_list_insert(arena, (void **)&spec->device, &spec->device_count, spec->device_count, sizeof *at);
    assert_non_null(at);
    *at = device;
}

static void add_devices(onx_arena *arena, onx_sharding_spec *spec, char *text, uint32_t ranks)
{
    char *rest;
    for (char *at = strtok_r(text, ",", &rest); at; at = strtok_r(NULL, ",", &rest)) {
        if (*at == '*') {
            for (uint32_t i = 0; i < ranks; i++)
                add_device(arena, spec, i);
        } else if (*at == '{') {
            onx_int_int_list_entry *e = ONX_ADD(arena, spec, index_to_device_group_map, INT_INT_LIST_ENTRY);
            ONX_SET(int_int_list_entry, e, key, -(int64_t)spec->index_to_device_group_map_count);
            add_device(arena, spec, e->key);
            for (char *p = at; *p != '}'; p++)
                if (*p >= '0' && *p <= '9') {
                    int64_t *one =
                        onx_list_insert(arena, (void **)&e->value, &e->value_count, e->value_count, sizeof *one);
                    assert_non_null(one);
                    *one = *p - '0';
                }
        } else
            add_device(arena, spec, strtol(at, NULL, 10));
    }
}

static void annotate(onx_doc *doc, uint32_t node, const char *configuration, char *text, uint32_t ranks)
{
    onx_arena *arena = onx_doc_arena(doc);
    onx_node_extra *more = onx_message_extra(arena, ONX_KIND_NODE, onx_doc_model(doc)->graph->node[node]);
    char *rest, *name = strtok_r(text, " ", &rest);
    if (!name)
        return;
    onx_node_device_configuration *c = ONX_ADD(arena, more, device_configurations, NODE_DEVICE_CONFIGURATION);
    assert_non_null(c);
    onx_arena_keep(arena, onx_str_of(configuration), &c->configuration_id);
    c->has |= onx_node_device_configuration_has_configuration_id;
    for (; name; name = strtok_r(NULL, " ", &rest)) {
        char *what = strtok_r(NULL, " ", &rest);
        if (strcmp(name, "stage") == 0) {
            ONX_SET(node_device_configuration, c, pipeline_stage, (int32_t)strtol(what, NULL, 10));
            continue;
        }
        onx_sharding_spec *spec = ONX_ADD(arena, c, sharding_spec, SHARDING_SPEC);
        onx_arena_keep(arena, onx_str_of(name), &spec->tensor_name);
        spec->has |= onx_sharding_spec_has_tensor_name;
        char *at = strchr(what, '@');
        *at = 0;
        add_axes(arena, spec, what, ranks);
        add_devices(arena, spec, at + 1, ranks);
    }
}

static void configure(onx_doc *doc, const char *name, const char *annotations, uint32_t ranks)
{
    onx_arena *arena = onx_doc_arena(doc);
    onx_device_configuration *c = ONX_ADD(arena, onx_doc_model(doc), configuration, DEVICE_CONFIGURATION);
    char text[2048], *at = text;
    onx_arena_keep(arena, onx_str_of(name), &c->name);
    c->has |= onx_device_configuration_has_name;
    ONX_SET(device_configuration, c, num_devices, (int32_t)ranks);
    snprintf(text, sizeof text, "%s", annotations);
    for (uint32_t i = 0; at; i++) {
        char *end = strchr(at, ';');
        if (end)
            *end = 0;
        annotate(doc, i, name, at, ranks);
        at = end ? end + 1 : NULL;
    }
}

static onx_doc *make(const test_case *c, uint32_t ranks)
{
    onx_doc *doc = make_model(c->name, 11, c->graph, c->weights);
    configure(doc, "c", c->annotations, ranks);
    return doc;
}

#endif
