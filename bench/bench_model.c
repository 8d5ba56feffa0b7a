/* bench_model.c - writes models for the measurements: bench_model nodes COUNT OUT | bench_model bare COUNT OUT |
 * bench_model weights MIB OUT. */
#include <onx/io.h>
#include <onx/ir.h>

#include <stdio.h>
#include <stdlib.h>

static const int64_t image_dims[] = { 1, 64, 56, 56 };

/* A chain of Add and Mul nodes with names as exporters write them; described: with a shape for each value. */
static onx_status add_nodes(onx_arena *arena, onx_graph *graph, long count, bool described)
{
    static const char *const ops[] = { "Add", "Mul", "Relu", "Sub" };
    for (long i = 0; i < count; i++) {
        char name[64], inputs[128], output[64];
        const char *op = ops[i % 4];
        snprintf(output, sizeof(output), "/layer%ld/block%ld/%s_output_0", i / 64, i % 64, op);
        if (i == 0)
            snprintf(inputs, sizeof(inputs), i % 4 == 2 ? "x" : "x w");
        else
            snprintf(inputs, sizeof(inputs), "/layer%ld/block%ld/%s_output_0%s", (i - 1) / 64, (i - 1) % 64,
                     ops[(i - 1) % 4], i % 4 == 2 ? "" : " w");
        onx_node *node = onx_graph_add_node(arena, graph, op, inputs, output);
        onx_bytes text;
        snprintf(name, sizeof(name), "/layer%ld/block%ld/%s", i / 64, i % 64, op);
        ONX_TRY(onx_arena_keep(arena, onx_str_of(name), &text));
        if (!node)
            return ONX_E_MEMORY;
        ONX_SET(node, node, name, text);
        if (!described)
            continue;
        onx_value_info *info = ONX_ADD(arena, graph, value_info, VALUE_INFO);
        onx_type *type = onx_type_new_tensor(arena, ONX_FLOAT, image_dims, 4);
        if (!info || !type)
            return ONX_E_MEMORY;
        ONX_SET(value_info, info, name, node->output[0]);
        ONX_SET(value_info, info, type, type);
    }
    return ONX_OK;
}

/* Adds initializers of 4 MiB each. */
static onx_status add_weights(onx_arena *arena, onx_graph *graph, long mib)
{
    enum { ROWS = 1024, COLUMNS = 1024 };
    int64_t dims[] = { ROWS, COLUMNS };
    float *values = malloc(ROWS * COLUMNS * sizeof(float));
    uint32_t state = 1;
    for (size_t i = 0; values && i < ROWS * COLUMNS; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)state * 1e-10f;
    }
    onx_status status = values ? ONX_OK : ONX_E_MEMORY;
    for (long i = 0; i < mib / 4 && status == ONX_OK; i++) {
        char name[64];
        snprintf(name, sizeof(name), "layer%ld.weight", i);
        onx_tensor *tensor = onx_tensor_new(arena, ONX_FLOAT, dims, 2, values, name);
        onx_tensor **at = onx_list_insert(arena, (void **)(void *)&graph->initializer, &graph->initializer_count,
                                          graph->initializer_count, sizeof(*at));
        status = tensor && at ? ONX_OK : ONX_E_MEMORY;
        if (status == ONX_OK)
            *at = tensor;
    }
    free(values);
    return status;
}

/* The type of a batch of images, with symbolic dims if types are to be inferred. */
static onx_type *image_type(onx_arena *arena, bool symbolic)
{
    onx_type *type = onx_type_new_tensor(arena, ONX_FLOAT, image_dims, 4);
    onx_bytes name;
    if (!type || !symbolic)
        return type;
    if (onx_arena_keep(arena, onx_str_of("N"), &name) != ONX_OK)
        return NULL;
    onx_dimension *batch = type->tensor_type->shape->dim[0];
    ONX_CLEAR(dimension, batch, dim_value);
    ONX_SET(dimension, batch, dim_param, name);
    return type;
}

static onx_status make(onx_ctx *cx, const char *what, long count, const char *path)
{
    bool bare = strcmp(what, "bare") == 0;
    onx_doc *doc;
    ONX_TRY(onx_model_new(cx, "bench", 17, &doc));
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_graph_add_input(arena, graph, "x", image_type(arena, bare));
    onx_graph_add_input(arena, graph, "w", image_type(arena, bare));
    onx_status status =
        strcmp(what, "weights") == 0 ? add_weights(arena, graph, count) : add_nodes(arena, graph, count, !bare);
    if (status == ONX_OK)
        status = onx_save(cx, doc, path, NULL);
    onx_doc_free(doc);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_status status = cx ? make(cx, argv[1], atol(argv[2]), argv[3]) : ONX_E_MEMORY;
    if (status != ONX_OK)
        fprintf(stderr, "bench_model: %s\n", onx_status_text(status));
    onx_ctx_free(cx);
    return status != ONX_OK;
}
