/* Builds a model and saves it: a layer y = Relu(x * w + b). build FILE */
#include <onx/onx.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    if (argc < 2 || !cx || onx_model_new(cx, "layer", 21, &doc) != ONX_OK)
        return 1;
    onx_graph *graph = onx_doc_model(doc)->graph;
    onx_arena *arena = onx_doc_arena(doc); /* owns everything in the document */

    const float w[] = { 1, 2, 3, 4, 5, 6 }, b[] = { 0, -30 };
    const int64_t w_dims[] = { 3, 2 }, b_dims[] = { 2 }, x_dims[] = { -1, 3 }, y_dims[] = { -1, 2 };
    onx_graph_add_input(arena, graph, "x", onx_type_new_tensor(arena, ONX_FLOAT, x_dims, 2));
    onx_graph_add_output(arena, graph, "y", onx_type_new_tensor(arena, ONX_FLOAT, y_dims, 2));
    if (!onx_graph_add_initializer(arena, graph, onx_tensor_new(arena, ONX_FLOAT, w_dims, 2, w, "w")) ||
        !onx_graph_add_initializer(arena, graph, onx_tensor_new(arena, ONX_FLOAT, b_dims, 1, b, "b")))
        return 1;
    onx_node *gemm = onx_graph_add_node(arena, graph, "Gemm", "x w b", "z");
    onx_node *relu = onx_graph_add_node(arena, graph, "Relu", "z", "y");
    if (!gemm || !relu || !onx_node_add_float(arena, gemm, "alpha", 1.0f))
        return 1;

    /* Checks the model before it is written. */
    const onx_status status = onx_check(cx, doc, NULL, NULL);
    if (status != ONX_OK || onx_save(cx, doc, argv[1], NULL) != ONX_OK)
        return 1;
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}
