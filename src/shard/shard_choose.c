/* shard_choose.c - chooses the mesh with the shortest predicted time: each mesh is annotated on a copy of the model. */
#include "shard/shard.h"

static const char name[] = "onx.shard.trial"; /* of the configuration that is tried */

static onx_status judge(onx_ctx *cx, const onx_doc *doc, const onx_shard_choose_options *o, onx_shard_forecast *rows,
                        onx_shard_trial *trial)
{
    const onx_shard_predict_options predict = { .struct_size = sizeof predict,
                                                .count = o->devices,
                                                .configuration = onx_str_of(name),
                                                .fixed = o->fixed,
                                                .fixed_count = o->fixed_count,
                                                .batch = o->batch,
                                                .machine = o->machine };
    ONX_TRY(onx_shard_predict(cx, doc, &predict, rows));
    for (uint32_t i = 0; i < o->devices; i++) {
        const uint64_t bytes = onxi_shard_add(rows[i].weight_bytes, rows[i].value_bytes);
        trial->seconds = rows[i].seconds > trial->seconds ? rows[i].seconds : trial->seconds;
        trial->memory_bytes = bytes > trial->memory_bytes ? bytes : trial->memory_bytes;
    }
    trial->fits = !o->memory || trial->memory_bytes <= o->memory;
    return ONX_OK;
}

/* `trial` has the mesh. ONX_E_UNSUPPORTED if the model cannot be distributed in this way. */
static onx_status try_mesh(onx_ctx *cx, const onx_doc *doc, const onx_shard_choose_options *o, onx_shard_forecast *rows,
                           onx_shard_trial *trial)
{
    onx_doc *copy;
    const onx_shard_annotate_options annotate = { .struct_size = sizeof annotate,
                                                  .pipeline = trial->pipeline,
                                                  .data = trial->data,
                                                  .tensor = trial->tensor,
                                                  .configuration = onx_str_of(name),
                                                  .fixed = o->fixed,
                                                  .fixed_count = o->fixed_count };
    ONX_TRY(onx_doc_share(cx, doc, &copy));
    const onxi_diag_mark mark = onxi_diag_here(cx);
    onx_status status = onx_shard_annotate(cx, copy, &annotate);
    if (status == ONX_E_UNSUPPORTED)
        onxi_diag_rewind(cx, mark); /* another mesh may do */
    if (status == ONX_OK)
        status = judge(cx, copy, o, rows, trial);
    onx_doc_free(copy);
    return status;
}

static onx_status choose_with(onx_ctx *cx, const onx_doc *doc, const onx_shard_choose_options *o,
                              onx_shard_forecast *rows, onx_shard_trial *out)
{
    bool any = false;
    *out = (onx_shard_trial){ 0 };
    for (uint32_t p = 1; p <= o->devices; p++)
        for (uint32_t d = 1; o->devices % p == 0 && d <= o->devices / p; d++) {
            onx_shard_trial trial = { .pipeline = p, .data = d, .tensor = o->devices / p / d };
            if (o->devices / p % d)
                continue;
            const onx_status status = try_mesh(cx, doc, o, rows, &trial);
            if (status == ONX_E_UNSUPPORTED)
                continue;
            ONX_TRY(status);
            if (o->tried)
                o->tried(o->user, &trial);
            if (trial.fits && (!any || trial.seconds < out->seconds))
                *out = trial;
            any |= trial.fits;
        }
    if (any)
        return ONX_OK;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                     "no distribution of the model over %u devices is possible within their memory", o->devices);
}

static onx_status choose(onx_ctx *cx, const onx_doc *doc, onx_shard_choose_options *o, onx_shard_trial *out)
{
    if (o->devices < 2 || o->devices > ONXI_SHARD_DEVICES_MAX)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "a model is spread over 2 to %d devices",
                         ONXI_SHARD_DEVICES_MAX);
    ONX_TRY(onxi_doc_need_graph(cx, doc));
    o->batch = o->batch ? o->batch : o->devices;
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_shard_forecast *rows = ONXI_ARRAY(arena, onx_shard_forecast, o->devices);
    const onx_status status = rows ? choose_with(cx, doc, o, rows, out) : ONX_E_MEMORY;
    onx_arena_free(arena);
    return status;
}

onx_status onx_shard_choose(onx_ctx *cx, const onx_doc *doc, const onx_shard_choose_options *options,
                            onx_shard_trial *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_NEED(cx, out);
    ONXI_OPTIONS(cx, onx_shard_choose_options, own, options);
    ONXI_NEED(cx, own.fixed || !own.fixed_count);
    ONXI_CALL(cx, choose(cx, doc, &own, out));
}
