/* shard_ranks.h - for tests of distributed models: weights and inputs, ranks that are threads, and the whole model. */
#ifndef TESTS_SHARD_RANKS_H
#define TESTS_SHARD_RANKS_H

#include <cmocka.h>

#include <onx/shard.h>
#include <onx/text.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"

enum { RANKS_MAX = 8, VALUES_MAX = 8 };

/* Does the build have the operators of the model? */
static inline bool has_operators(const char *graph)
{
#ifdef ONX_DOMAIN_MICROSOFT
    (void)graph;
    return true;
#else
    return !strstr(graph, "com.microsoft") && !strstr(graph, "SimplifiedLayerNormalization");
#endif
}

static uint32_t random_state = 1;
static float random_float(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) / (float)(1 << 24) - 0.5f;
}

/* "w 4 6", or, for bytes, "w 4 6b". */
static void add_weight(onx_doc *doc, char *text)
{
    const bool bytes = strchr(text, 0)[-1] == 'b';
    char *rest, *name = strtok_r(text, " ", &rest), *dim;
    int64_t dims[8];
    uint32_t rank = 0;
    uint64_t count = 1;
    while ((dim = strtok_r(NULL, " ", &rest))) {
        dims[rank] = strtol(dim, NULL, 10);
        count *= (uint64_t)dims[rank++];
    }
    float *data = calloc(count + 1, sizeof *data);
    assert_non_null(data);
    for (uint64_t i = 0; i < count; i++)
        if (bytes)
            ((uint8_t *)data)[i] = (uint8_t)(256 * (random_float() + 0.5f));
        else
            data[i] = random_float();
    onx_tensor *t = onx_tensor_new(onx_doc_arena(doc), bytes ? ONX_UINT8 : ONX_FLOAT, dims, rank, data, name);
    assert_non_null(onx_graph_add_initializer(onx_doc_arena(doc), onx_doc_model(doc)->graph, t));
    free(data);
}

/* A graph as text, and its weights: "w 4 6;b 6". */
static inline onx_doc *make_model(const char *name, int ir_version, const char *graph, const char *weights)
{
    char text[8192], list[1024], *rest;
    onx_doc *doc;
    snprintf(text, sizeof text, "<ir_version: %d, opset_import: [\"\": 23, \"com.microsoft\": 1]> %s", ir_version,
             graph);
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%s: %.*s", name, ONX_ARG(onx_diag_get(cx, 0)->message));
    snprintf(list, sizeof list, "%s", weights);
    for (char *w = strtok_r(list, ";", &rest); w; w = strtok_r(NULL, ";", &rest)) {
        char one[64];
        snprintf(one, sizeof one, "%s", w);
        add_weight(doc, one);
    }
    return doc;
}

static void make_inputs(const onx_doc *doc, onx_value **inputs)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_type_tensor *t = g->input[i]->type->tensor_type;
        int64_t dims[8];
        for (uint32_t k = 0; k < t->shape->dim_count; k++)
            dims[k] = ONX_HAS(dimension, t->shape->dim[k], dim_value) ? t->shape->dim[k]->dim_value : 8;
        assert_int_equal(onx_value_new_tensor(cx, (onx_dtype)t->elem_type, t->shape->dim_count, dims, &inputs[i]),
                         ONX_OK);
        for (uint64_t k = 0; k < inputs[i]->count; k++)
            if (t->elem_type == ONX_FLOAT)
                ((float *)inputs[i]->data)[k] = random_float();
            else
                ((int64_t *)inputs[i]->data)[k] = (int64_t)(k * 5 % 8) - (k % 3 == 0 ? 8 : 0);
    }
}

typedef struct rank {
    pthread_t thread;
    const onx_allocator *allocator; /* NULL: that of the C library */
    onx_ctx *cx;
    onx_doc *doc;
    onx_comm comm;
    onx_shard_options options;
    onx_value **inputs, *outputs[VALUES_MAX];
    onx_status status;
    onx_shard_summary summary;
    uint32_t runs;
    void *(*instead)(void *rank); /* of what a rank does; NULL: that */
    bool apart;                   /* it computes or communicates, but not both at a time */
    uint32_t begun, ended;        /* halves of collectives that it has */
    char order[1024];             /* operators of the nodes that it has, but for constants, each with a space */
    char error[256];
} rank;

static void *run_rank(void *user)
{
    rank *r = user;
    const onx_session_options session = { .threads = 1 };
    onx_sharded *s;
    r->options.comm = &r->comm;
    r->options.session = &session;
    r->status = onx_sharded_new(r->cx, r->doc, &r->options, &s);
    for (uint32_t i = 0; r->status == ONX_OK && i < r->runs; i++)
        r->status = onx_sharded_run(s, r->cx, (const onx_value *const *)(void *)r->inputs, r->outputs, NULL);
    r->summary = onx_sharded_summarize(s);
    const onx_graph *g = onx_sharded_part(s) ? onx_doc_model(onx_sharded_part(s))->graph : NULL;
    for (uint32_t i = 0; g && i < g->node_count; i++) {
        const onx_str op = onx_view(g->node[i]->op_type);
        r->begun += op.len > 5 && memcmp(op.ptr, "Begin", 5) == 0;
        const size_t at = strlen(r->order);
        if (!onx_str_is(op, "Constant"))
            snprintf(r->order + at, sizeof r->order - at, "%.*s ", ONX_ARG(op));
        r->ended += op.len > 3 && memcmp(op.ptr, "End", 3) == 0;
    }
    for (size_t i = 0; i < onx_diag_count(r->cx); i++)
        if (onx_diag_get(r->cx, i)->severity == ONX_ERROR && !*r->error)
            snprintf(r->error, sizeof r->error, "%.*s", ONX_ARG(onx_diag_get(r->cx, i)->message));
    onx_sharded_free(s);
    return NULL;
}

static void run_ranks(rank *ranks, uint32_t count)
{
    onx_comm_group *group;
    assert_int_equal(onx_comm_group_new(cx, count, &group), ONX_OK);
    for (uint32_t i = 0; i < count; i++) {
        ranks[i].cx = onx_ctx_new(ranks[i].allocator);
        ranks[i].runs = ranks[i].runs ? ranks[i].runs : 2;
        assert_int_equal(onx_comm_group_rank(ranks[i].cx, group, i, &ranks[i].comm), ONX_OK);
        if (ranks[i].apart)
            ranks[i].comm.begin = NULL;
        assert_int_equal(
            pthread_create(&ranks[i].thread, NULL, ranks[i].instead ? ranks[i].instead : run_rank, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
    onx_comm_group_free(group);
}

static void free_ranks(rank *ranks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < VALUES_MAX; k++)
            onx_value_free(ranks[i].outputs[k]);
        onx_ctx_free(ranks[i].cx);
    }
}

static void run_whole(onx_doc *doc, onx_value **inputs, onx_value **outputs)
{
    const onx_session_options options = { .threads = 1 };
    onx_session *session;
    if (onx_session_new(cx, doc, &options, &session) != ONX_OK ||
        onx_session_run(session, cx, (const onx_value *const *)(void *)inputs, outputs) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, onx_diag_count(cx) - 1)->message));
    onx_session_free(session);
}

#endif
