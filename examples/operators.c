#include <onx/onx.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    if (argc < 2 || onx_load(cx, ONX_KIND_MODEL, argv[1], NULL, &doc) != ONX_OK)
        return 1;
    const onx_graph *graph = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; graph && i < graph->node_count; i++)
        printf("%.*s\n", ONX_ARG(onx_view(graph->node[i]->op_type)));
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}
