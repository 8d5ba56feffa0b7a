/* fuzz_grad.c - decodes a model and, depending on the first byte, differentiates its first output with respect to its
 * first input, replaces Gradient nodes, or trains it for two steps. */
#include "fuzz_model.h"

#include <onx/grad.h>
#include <onx/train.h>

#include <string.h>

static onx_status derive(onx_ctx *cx, onx_doc *doc, bool only)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    if (!g || !g->input_count || !g->output_count)
        return ONX_OK;
    onx_str wrt[2] = { onx_view(g->input[0]->name) };
    uint32_t count = 1;
    if (g->initializer_count)
        wrt[count++] = onx_view(g->initializer[0]->name);
    const onx_grad_options options = {
        .of = onx_view(g->output[0]->name), .wrt = wrt, .wrt_count = count, .only = only
    };
    return onx_grad(cx, doc, &options);
}

static onx_status find_loop(void *user, const onx_visit *at)
{
    const onx_node *node = at->kind == ONX_KIND_NODE ? at->message : NULL;
    *(bool *)user |=
        node && (onx_str_is(onx_view(node->op_type), "Loop") || onx_str_is(onx_view(node->op_type), "Scan"));
    return ONX_OK;
}

/* Steps get four floats for the first input of the main graph; models that need other inputs fail. Models with loops
 * are skipped, because loops may be endless. */
static onx_status train(onx_ctx *cx, onx_doc *doc)
{
    onx_trainer *trainer;
    onx_value *x;
    bool loops = false;
    const onx_graph *g = onx_doc_model(doc)->graph;
    ONX_TRY(onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(doc), find_loop, &loops));
    if (loops)
        return ONX_OK;
    const onx_session_options options = { .threads = 1, .memory = 16 << 20 };
    ONX_TRY(onx_trainer_new(cx, doc, &options, &trainer));
    onx_status status = onx_value_new_tensor(cx, ONX_FLOAT, 1, (const int64_t[]){ 4 }, &x);
    if (status == ONX_OK) {
        char name[64] = "";
        memset(x->data, 0, x->size);
        const onx_str first = g->input_count ? onx_view(g->input[0]->name) : (onx_str){ 0 };
        if (first.len && first.len < sizeof name)
            memcpy(name, first.ptr, first.len);
        const onx_named_value inputs[] = { { name, x } };
        status = onx_trainer_initialize(trainer);
        for (uint32_t i = 0; i < 2 * onx_trainer_count(trainer) && i < 8 && status == ONX_OK; i++)
            status = onx_trainer_step(trainer, i / 2, inputs, name[0] ? 1u : 0u, NULL, 0);
        onx_value_free(x);
    }
    const onx_status stored = onx_trainer_store(trainer); /* whatever the steps did, variables have values */
    onx_trainer_free(trainer);
    return stored;
}

static onx_status work(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    switch (choice & 3) {
    case 0:
        return onx_grad_expand(cx, doc);
    case 1:
        return train(cx, doc);
    default:
        return derive(cx, doc, choice & 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(data, size, work);
}
