/* fuzz_precision.c - decodes a model and, depending on the first byte, changes its precision, quantizes or compresses
 * it. */
#include "fuzz_model.h"

#include <onx/transform.h>

static void changed(void *user, const onx_change *change)
{
    *(size_t *)user += change->path.len + change->rule.len + change->text.len;
}

static onx_status precision(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    static const int32_t types[] = { ONX_FLOAT16, ONX_BFLOAT16, ONX_FLOAT, ONX_DOUBLE };
    const onx_str block = onx_str_of("S*"), except = onx_str_of("y");
    size_t told = 0;
    const onx_precision_options options = { .dry_run = (choice & 12) == 12,
                                            .keep_io = choice & 4,
                                            .changed = changed,
                                            .user = &told,
                                            .to = types[choice & 3],
                                            .except = &except,
                                            .except_count = choice & 8 ? 1u : 0u,
                                            .block_op = &block,
                                            .block_op_count = choice & 16 ? 1u : 0u };
    return onx_precision(cx, doc, &options);
}

/* The first input and output have a range; the first input has moments for a matrix product of width 2. */
static onx_status quantize(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    static const int32_t types[] = { ONX_INT8, ONX_UINT8, ONX_INT4, ONX_UINT4, ONX_FLOAT8E4M3FN, ONX_FLOAT4E2M1 };
    static const float moments[] = { 2, 1, 1, 2 };
    const onx_graph *g = onx_doc_model(doc)->graph;
    const bool named = g && g->input_count && g->output_count;
    const onx_value_range ranges[] = { { named ? onx_view(g->input[0]->name) : (onx_str){ 0 }, -1, 3 },
                                       { named ? onx_view(g->output[0]->name) : (onx_str){ 0 }, 0, 1 } };
    const onx_value_moments samples = { ranges[0].name, 2, moments };
    size_t told = 0;
    const onx_quantize_options options = { .mode = (onx_quantize_mode)(choice & 3),
                                           .per_channel = choice & 4,
                                           .changed = changed,
                                           .user = &told,
                                           .weight_type = types[(choice >> 2) % 6],
                                           .block_size = choice & 16 ? 2u : 0u,
                                           .range = ranges,
                                           .range_count = named ? 2u : 0u,
                                           .moments = &samples,
                                           .moments_count = named && choice & 32 ? 1u : 0u };
    return onx_quantize(cx, doc, &options);
}

static onx_status work(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    if (choice & 128)
        return quantize(cx, doc, choice);
    if (choice & 64)
        return onx_compress(cx, doc, NULL);
    return precision(cx, doc, choice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(data, size, work);
}
