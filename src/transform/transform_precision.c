/* transform_precision.c - converts values and weights to another floating-point type: the pass itself. */
#include "transform/transform_halve.h"

static uint32_t sources_of(int32_t to)
{
    const uint32_t small = 1u << ONX_FLOAT16 | 1u << ONX_BFLOAT16, all = small | 1u << ONX_FLOAT | 1u << ONX_DOUBLE;
    if (to <= 0 || to >= 32)
        return 0; /* refused later */
    return (to == ONX_FLOAT16 || to == ONX_BFLOAT16 ? small | 1u << ONX_FLOAT : all) & ~(1u << to);
}

static onx_status check_options(const onxi_halver *h)
{
    const int to = h->options->to;
    if (to != ONX_FLOAT16 && to != ONX_BFLOAT16 && to != ONX_FLOAT && to != ONX_DOUBLE)
        return onxi_fail(h->cx, ONX_E_MISUSE, ONXI_NOWHERE, "type %d is none of float16, bfloat16, float and double",
                         to);
    const onxi_schema *cast = onxi_schema_find(onx_str_of(""), onx_str_of("Cast"), h->opset);
    const onxi_type_constraint *result = cast ? onxi_schema_type(cast, "T2") : NULL;
    if (!result || cast->since < 6 || !(result->set.tensor >> to & 1)) {
        const onx_diag diag = { .severity = ONX_ERROR,
                                .status = ONX_E_UNSUPPORTED,
                                .where = ONXI_NOWHERE,
                                .hint = onx_str_of("retarget the model to version 13 or later first") };
        onxi_report(h->cx, &diag, "version %lld of the operator set has no Cast to %s", (long long)h->opset,
                    onx_dtype_name(to));
        return ONX_E_UNSUPPORTED;
    }
    return ONX_OK;
}

static onx_status note_name(void *user, onx_bytes *name)
{
    onxi_halver *h = user;
    return onxi_dict_at(&h->trained, onx_view(*name), 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

/* Values that training information or attributes refer to keep their type, because training graphs are not
 * converted. */
static onx_status list_trained(onxi_halver *h)
{
    if (h->model->graph)
        ONX_TRY(onxi_each_named(h->cx, ONX_KIND_GRAPH, h->model->graph, note_name, h));
    for (uint32_t i = 0; i < h->model->training_info_count; i++) {
        onx_training_info *info = h->model->training_info[i];
        for (uint32_t k = 0; k < info->initialization_binding_count; k++)
            ONX_TRY(note_name(h, &info->initialization_binding[k]->key));
        for (uint32_t k = 0; k < info->update_binding_count; k++)
            ONX_TRY(note_name(h, &info->update_binding[k]->key));
        if (info->initialization)
            ONX_TRY(onxi_graph_each_name(h->cx, info->initialization, note_name, h));
        if (info->algorithm)
            ONX_TRY(onxi_graph_each_name(h->cx, info->algorithm, note_name, h));
    }
    return ONX_OK;
}

static onx_status list_kept(onxi_halver *h)
{
    for (uint32_t i = 0; i < h->options->keep_node_count; i++)
        if (!onxi_dict_at(&h->keep, h->options->keep_node[i], 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < h->options->keep_value_count; i++)
        if (!onxi_dict_at(&h->keep_value, h->options->keep_value[i], 0, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status find_bfloat16(void *user, const onx_visit *at)
{
    const bool found = at->kind == ONX_KIND_TENSOR
                           ? ((const onx_tensor *)at->message)->data_type == ONX_BFLOAT16
                           : at->kind == ONX_KIND_TYPE && onxi_type_dtype(at->message) == ONX_BFLOAT16;
    *(bool *)user |= found;
    return ONX_OK;
}

/* The version that has a Cast to and from each type of the result. */
static onx_status reach_casts(onxi_halver *h)
{
    bool any = h->to == ONX_BFLOAT16;
    ONX_TRY(onx_message_walk(h->cx, ONX_KIND_MODEL, h->model, find_bfloat16, &any));
    return onxi_retarget_at_least(h->cx, h->doc, any ? 13 : 6);
}

static onx_status run(onxi_halver *h)
{
    if (h->model->functions_count)
        ONX_TRY(onx_inline(h->cx, h->doc, NULL));
    if (!h->options->dry_run)
        ONX_TRY(reach_casts(h));
    h->binder = (onxi_binder){ .arena = h->scratch };
    ONX_TRY(onxi_binder_open_model(&h->binder, h->model));
    h->opset = onxi_imports_version(&h->binder.imports, onx_str_of(""));
    ONX_TRY(check_options(h));
    ONX_TRY(onxi_selection_open(&h->selection, h->scratch));
    ONX_TRY(list_trained(h));
    ONX_TRY(list_kept(h));
    ONX_TRY(onxi_values_open(&h->values, h->doc, h->scratch));
    onxi_weights_open(&h->weights, h->doc, h->scratch, h->options->spill_dir);
    ONX_TRY(onxi_halve_model(h));
    ONX_TRY(h->values.status);
    ONX_TRY(onxi_selection_close(&h->selection, h->cx));
    ONX_TRY(onxi_halve_decide(h));
    ONX_TRY(h->values.status);
    ONX_TRY(onxi_halve_write(h));
    return h->options->dry_run ? ONX_OK
                               : onxi_model_raise_ir(h->scratch, h->model, onx_dtype_ir_version((int64_t)h->to));
}

static onx_status precision(onx_ctx *cx, onx_doc *doc, onx_precision_options *options)
{
    onx_model *model = onx_doc_model(doc);
    onx_arena *scratch;
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    options->keep_io |= options->only_count != 0;
    ONX_TRY(onx_arena_new(cx, &scratch));
    onxi_halver h = { .cx = cx,
                      .doc = doc,
                      .arena = onx_doc_arena(doc),
                      .scratch = scratch,
                      .options = options,
                      .model = model,
                      .selection = { .only = options->only,
                                     .only_count = options->only_count,
                                     .except = options->except,
                                     .except_count = options->except_count,
                                     .block_op = options->block_op,
                                     .block_op_count = options->block_op_count },
                      .keep = onxi_dict_in_arena(scratch),
                      .keep_value = onxi_dict_in_arena(scratch),
                      .trained = onxi_dict_in_arena(scratch),
                      .names = { .scratch = scratch, .arena = onx_doc_arena(doc), .model = model },
                      .weights = { .spill = { .fd = -1 } },
                      .sources = sources_of(options->to),
                      .to = (onx_dtype)options->to,
                      .tensors = onxi_map_in_arena(scratch),
                      .limit = onx_ctx_limits(cx).depth };
    h.last_scope = &h.scopes;
    onx_status status = onx_arena_new(cx, &h.asked);
    if (status == ONX_OK)
        status = run(&h);
    onxi_dims_free(h.dims);
    onx_arena_free(h.asked);
    onxi_weights_close(&h.weights);
    onxi_values_close(&h.values);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_precision(onx_ctx *cx, onx_doc *doc, const onx_precision_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_OPTIONS(cx, onx_precision_options, own, options);
    ONXI_NEED_SELECTION(cx, own);
    ONXI_NEED(cx, own.keep_value || !own.keep_value_count);
    ONXI_TRANSFORM(cx, doc, precision(cx, doc, &own));
}
