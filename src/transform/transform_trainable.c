/* transform_trainable.c - adds training information to a model: builds the entries from their parts. */
#include "transform/transform_trainable.h"

#include <onx/grad.h>

#include "transform/transform_part.h"
#include "transform/transform_precision.h"

#include <math.h>

/* ---- imports, IR version, metadata ---- */

static onx_status add_import(onxi_trainable *t)
{
    onx_model *model = t->model;
    for (uint32_t i = 0; i < model->opset_import_count; i++)
        if (onx_str_is(onx_view(model->opset_import[i]->domain), ONXI_TRAINING_DOMAIN))
            return ONX_OK;
    onx_operator_set_id *id = ONX_ADD(t->arena, model, opset_import, OPERATOR_SET_ID);
    if (!id || onx_arena_keep(t->arena, onx_str_of(ONXI_TRAINING_DOMAIN), &id->domain) != ONX_OK)
        return ONX_E_MEMORY;
    id->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, id, version, 1);
    return ONX_OK;
}

/* Training information requires IR version 7, the operators of the texts version 8. */
static onx_status set_versions(onxi_trainable *t)
{
    enum { IR = 8 };
    ONX_TRY(onxi_model_raise_ir(t->scratch, t->model, IR));
    return add_import(t);
}

/* Stores the checkpoint option for the session that trains. */
static onx_status add_checkpoint(onxi_trainable *t)
{
    const int32_t wanted = t->options->checkpoint;
    const onx_str number = onxi_arena_printf(t->scratch, "%d", (int)wanted);
    const onx_edit edit = { .kind = ONX_EDIT_METADATA,
                            .a = onx_str_of(ONXI_GRAD_PROPERTY),
                            .b = wanted == ONX_GRAD_CHECKPOINT_SQRT ? onx_str_of("sqrt") : number };
    const onx_edit_options options = { .struct_size = sizeof options, .edit = &edit, .count = 1 };
    if (!number.ptr)
        return ONX_E_MEMORY;
    return wanted ? onx_edit_model(t->cx, t->doc, &options) : ONX_OK;
}

/* ---- operators of nodes ---- */

const onxi_bound *onxi_trainable_bound(onxi_trainable *t, const onx_node *node)
{
    const onxi_bound *bound = onxi_bind(&t->binder, node);
    if (!bound)
        t->values.status = ONX_E_MEMORY;
    return bound;
}

onxi_op_id onxi_trainable_op(onxi_trainable *t, const onx_node *node)
{
    const onxi_bound *bound = onxi_trainable_bound(t, node);
    return bound && bound->kind == ONXI_BOUND_OPERATOR && onxi_node_has_operands(node, bound->schema) ? bound->op
                                                                                                      : ONXI_ID_NONE;
}

/* ---- preparation ---- */

static onx_status check_options(onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    const double numbers[] = { o->rate, o->weight_decay, o->clip_norm, o->lora_scale, o->clip_value };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i]) || numbers[i] < 0)
            return onxi_fail(t->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%g is no rate, decay, length or scale", numbers[i]);
    for (uint32_t i = 0; i < o->group_count; i++)
        if (!isfinite(o->group[i].rate) || !isfinite(o->group[i].weight_decay) || o->group[i].rate < 0)
            return onxi_fail(t->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                             "group %.*s: expected a finite decay and a rate from 0 on", ONX_ARG(o->group[i].pattern));
    if (o->checkpoint < ONX_GRAD_CHECKPOINT_SQRT)
        return onxi_fail(t->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%d is not a number of segments", (int)o->checkpoint);
    if (!t->model || !t->model->graph)
        return onxi_fail(t->cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document holds no model with a graph");
    if (t->model->training_info_count)
        return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "the model has training information already");
    return ONX_OK;
}

/* An input that is selected as a weight becomes an initializer of zeros, to be initialised: this is how a network
 * without weights is written. */
static onx_status make_weight(onxi_trainable *t, const onx_value_info *input)
{
    const onx_type *type = input->type;
    const int rank = onxi_type_rank(type), dtype = onxi_type_dtype(type);
    int64_t dims[ONX_RANK_MAX];
    uint64_t count = 1;
    const size_t size = dtype == ONX_DOUBLE ? sizeof(double) : sizeof(float);
    for (int i = 0; i < rank; i++) {
        dims[i] = onxi_type_dim(type, (uint32_t)i);
        if (dims[i] < 0 || __builtin_mul_overflow(count, (uint64_t)dims[i], &count))
            return onxi_fail(t->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "input %.*s is no weight: its size is not known",
                             ONX_ARG(onx_view(input->name)));
    }
    if (rank < 0 || (dtype != ONX_FLOAT && dtype != ONX_DOUBLE) || count >= SIZE_MAX / size)
        return onxi_fail(t->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "input %.*s is no tensor of float or double",
                         ONX_ARG(onx_view(input->name)));
    void *zeros = onxi_arena_array(t->scratch, (size_t)count + 1, size);
    onx_tensor *tensor = zeros ? onx_tensor_new(t->arena, (onx_dtype)dtype, dims, (uint32_t)rank, zeros, "") : NULL;
    if (!tensor)
        return ONX_E_MEMORY;
    ONX_SET(tensor, tensor, name, input->name);
    return onx_graph_add_initializer(t->arena, t->graph, tensor) ? ONX_OK : ONX_E_MEMORY;
}

static bool has_initializer(const onx_graph *graph, onx_str name)
{
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (onx_str_equal(onx_view(graph->initializer[i]->name), name))
            return true;
    return false;
}

/* Does a pattern select an input as a weight? Unless the input is named exactly, only in a model without weights, and
 * not if all inputs match. */
static bool is_named(const onxi_trainable *t, onx_str input, bool exactly)
{
    const onx_trainable_options *o = t->options;
    bool named = false;
    for (uint32_t k = 0; k < o->train_count && !o->lora_rank; k++)
        named |= exactly ? onx_str_equal(o->train[k], input) : onxi_glob(o->train[k], input);
    return named;
}

static bool has_weights(const onx_graph *graph)
{
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (onxi_trainable_is_real(graph->initializer[i]->data_type) && graph->initializer[i]->dims_count)
            return true;
    return false;
}

static onx_status make_weights(onxi_trainable *t)
{
    uint32_t kept = 0;
    bool exactly = true;
    const bool weights = has_weights(t->graph);
    for (uint32_t i = 0; i < t->graph->input_count && !weights; i++)
        exactly &= is_named(t, onx_view(t->graph->input[i]->name), false); /* one input is for the data */
    for (uint32_t i = 0; i < t->graph->input_count; i++) {
        onx_value_info *input = t->graph->input[i];
        if (is_named(t, onx_view(input->name), exactly) && !has_initializer(t->graph, onx_view(input->name)))
            ONX_TRY(make_weight(t, input));
        else
            t->graph->input[kept++] = input;
    }
    t->graph->input_count = kept;
    return ONX_OK;
}

static onx_status prepare(onxi_trainable *t)
{
    const onx_trainable_options *o = t->options;
    t->used =
        ONXI_ARRAY(t->scratch, bool, (size_t)o->train_count + o->freeze_count + o->tie_count + o->untie_count + 1);
    if (!t->used)
        return ONX_E_MEMORY;
    if (t->options->batch.len) {
        const onx_edit edit = { .kind = ONX_EDIT_BATCH, .a = t->options->batch };
        const onx_edit_options options = { .struct_size = sizeof options, .edit = &edit, .count = 1 };
        ONX_TRY(onx_edit_model(t->cx, t->doc, &options));
    }
    ONX_TRY(onxi_trainable_origins(t));
    ONX_TRY(onxi_grad_bring_up(t->cx, t->doc, t->scratch));
    ONX_TRY(onx_doc_sort(t->doc, NULL));
    t->model = onx_doc_model(t->doc);
    t->graph = t->model->graph;
    ONX_TRY(make_weights(t));
    t->names = (onxi_names){ .scratch = t->scratch, .arena = t->arena, .model = t->model };
    t->binder = (onxi_binder){ .arena = t->scratch };
    ONX_TRY(onxi_binder_open_model(&t->binder, t->model));
    if (t->options->quantized)
        ONX_TRY(onxi_trainable_unpack(t));
    return onxi_values_open(&t->values, t->doc, t->scratch);
}

static onx_status find_output(onxi_trainable *t)
{
    const onx_str wanted = t->options->output;
    for (uint32_t i = 0; i < t->graph->output_count; i++)
        if (!wanted.len || onx_str_equal(onx_view(t->graph->output[i]->name), wanted)) {
            t->y = t->graph->output[i]->name;
            return ONX_OK;
        }
    return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no output %.*s", ONX_ARG(wanted));
}

/* ---- building the entries ---- */

static onx_status new_graph(onxi_trainable *t, const char *name, onx_graph **out)
{
    *out = onx_message_new(t->arena, ONX_KIND_GRAPH);
    if (!*out)
        return ONX_E_MEMORY;
    (*out)->has |= onx_graph_has_name;
    return onx_arena_keep(t->arena, onx_str_of(name), &(*out)->name);
}

static onx_training_info *new_entry(onxi_trainable *t, onx_graph *algorithm)
{
    onx_training_info *info = ONX_ADD(t->arena, t->model, training_info, TRAINING_INFO);
    if (info)
        ONX_SET(training_info, info, algorithm, algorithm);
    return info;
}

static onx_status add_entries(onxi_trainable *t)
{
    onx_graph *evaluation;
    ONX_TRY(new_graph(t, "train", &t->algorithm));
    ONX_TRY(new_graph(t, "evaluate", &evaluation));
    ONX_TRY(new_graph(t, "start", &t->start));
    if (!(t->step = onx_message_new(t->arena, ONX_KIND_TRAINING_INFO)))
        return ONX_E_MEMORY;
    ONX_TRY(onxi_trainable_weights(t));
    ONX_TRY(onxi_trainable_mode(t));
    ONX_TRY(onxi_trainable_loss(t, t->algorithm, t->y_in_training));
    ONX_TRY(onxi_trainable_step(t));
    if (!t->options->keep && !t->options->quantized)
        ONX_TRY(onxi_trainable_draw(t));
    ONX_TRY(onxi_trainable_loss(t, evaluation, t->y));
    onx_training_info *entry = new_entry(t, t->algorithm);
    if (!entry || !new_entry(t, evaluation))
        return ONX_E_MEMORY;
    *entry = *t->step;
    ONX_SET(training_info, entry, algorithm, t->algorithm);
    if (t->step->initialization_binding_count)
        ONX_SET(training_info, entry, initialization, t->start);
    return ONX_OK;
}

static onx_status work(onxi_trainable *t)
{
    ONX_TRY(check_options(t));
    ONX_TRY(onxi_trainable_choose(t));
    ONX_TRY(prepare(t));
    ONX_TRY(find_output(t));
    if (t->options->lora_rank)
        ONX_TRY(onxi_trainable_adapt(t));
    ONX_TRY(onxi_trainable_ties(t));
    ONX_TRY(onxi_trainable_label(t));
    ONX_TRY(onxi_trainable_need(t));
    ONX_TRY(add_entries(t));
    ONX_TRY(t->values.status);
    onxi_trainable_report(t);
    ONX_TRY(onxi_trainable_infer(t));
    ONX_TRY(set_versions(t));
    return add_checkpoint(t);
}

static onx_status trainable(onx_ctx *cx, onx_doc *doc, const onx_trainable_options *options)
{
    onx_arena *scratch;
    ONX_TRY(onx_arena_new(cx, &scratch));
    onxi_trainable t = { .cx = cx,
                         .doc = doc,
                         .model = onx_doc_model(doc),
                         .arena = onx_doc_arena(doc),
                         .scratch = scratch,
                         .options = options,
                         .values = { .scratch = scratch },
                         .texts = onxi_dict_in_arena(scratch),
                         .origins = onxi_dict_in_arena(scratch),
                         .adapters = onxi_dict_in_arena(scratch) };
    const onx_status status = work(&t);
    onx_index_free(t.index);
    onxi_values_close(&t.values);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_trainable(onx_ctx *cx, onx_doc *doc, const onx_trainable_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_trainable_options, own, options);
    ONXI_NEED(cx, own.train || !own.train_count);
    ONXI_NEED(cx, own.freeze || !own.freeze_count);
    ONXI_NEED(cx, own.number || !own.number_count);
    ONXI_NEED(cx, own.tie || !own.tie_count);
    ONXI_NEED(cx, own.untie || !own.untie_count);
    ONXI_NEED(cx, own.group || !own.group_count);
    ONXI_TRANSFORM(cx, doc, trainable(cx, doc, &own));
}
