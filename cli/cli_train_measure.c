/* cli_train_measure.c - the results that `onx train` reads from its steps: the loss and other scalars; and the entry
 * that computes them without training. */
#include "cli_train.h"

#include <stdlib.h>

static const onx_graph *algorithm_of(const onx_doc *doc, uint32_t entry)
{
    return onx_doc_model(doc)->training_info[entry]->algorithm;
}

static bool is_bound(const onx_training_info *info, onx_str name)
{
    for (uint32_t i = 0; i < info->update_binding_count; i++)
        if (onx_str_equal(onx_view(info->update_binding[i]->value), name))
            return true;
    return false;
}

/* Is the output of a floating-point type, and not known to have several elements? */
static bool may_be_loss(const onx_type *type)
{
    const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    bool one = t && onx_dtype_class_of(t->elem_type) == ONX_CLASS_FLOATING;
    for (uint32_t i = 0; one && t->shape && i < t->shape->dim_count; i++)
        one = ONX_HAS(dimension, t->shape->dim[i], dim_value) && t->shape->dim[i]->dim_value == 1;
    return one;
}

static bool has_name(onx_value_info *const *list, uint32_t count, onx_str name)
{
    for (uint32_t i = 0; i < count; i++)
        if (onx_str_equal(onx_view(list[i]->name), name))
            return true;
    return false;
}

/* ---- selecting the outputs ---- */

static onx_status add(cli_call *call, cli_measures *m, onx_str name)
{
    char *copy = m->count < CLI_MEASURES_MAX ? calloc(name.len + 1, 1) : NULL;
    if (m->count == CLI_MEASURES_MAX)
        return ONX_OK;
    if (!copy) {
        cli_error(call, "out of memory");
        return ONX_E_MEMORY;
    }
    if (name.len)
        memcpy(copy, name.ptr, name.len);
    m->outputs[m->count++].name = copy;
    return ONX_OK;
}

static onx_status add_inputs(cli_call *call, const onx_doc *doc, const cli_batches *data, cli_measures *m)
{
    const onx_graph *graph = onx_doc_model(doc)->graph, *algorithm = algorithm_of(doc, m->entry);
    if (!(m->inputs = calloc(data->count + 1u, sizeof *m->inputs))) {
        cli_error(call, "out of memory");
        return ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < data->count; i++) {
        const cli_train_input *c = &data->columns[i];
        if (c->value && (has_name(graph->input, graph->input_count, onx_str_of(c->name)) ||
                         has_name(algorithm->input, algorithm->input_count, onx_str_of(c->name))))
            m->inputs[m->input_count++] = (onx_named_value){ c->name, c->value };
    }
    return ONX_OK;
}

onx_status cli_measures_open(cli_call *call, const onx_doc *doc, const cli_batches *data, uint32_t entry,
                             const char *loss, cli_measures *out)
{
    const onx_training_info *info = onx_doc_model(doc)->training_info[entry];
    const onx_graph *algorithm = info->algorithm;
    *out = (cli_measures){ .entry = entry };
    if (loss)
        ONX_TRY(add(call, out, onx_str_of(loss)));
    for (uint32_t i = 0; algorithm && i < algorithm->output_count; i++) {
        const onx_str name = onx_view(algorithm->output[i]->name);
        if (!is_bound(info, name) && may_be_loss(algorithm->output[i]->type) && !(loss && onx_str_is(name, loss)))
            ONX_TRY(add(call, out, name));
    }
    if (!out->count) {
        cli_error(call,
                  "no output of the algorithm looks like a loss, that is, a scalar that is not assigned to a variable");
        cli_hint("name the output with --loss NAME");
        return ONX_E_NOT_FOUND;
    }
    return algorithm ? add_inputs(call, doc, data, out) : ONX_OK;
}

/* Does the entry update no variable, and need no input that has no value? */
static bool evaluates(const onx_doc *doc, const cli_batches *data, uint32_t entry, const char *loss)
{
    const onx_training_info *info = onx_doc_model(doc)->training_info[entry];
    const onx_graph *algorithm = info->algorithm;
    if (!algorithm || info->update_binding_count ||
        !has_name(algorithm->output, algorithm->output_count, onx_str_of(loss)))
        return false;
    for (uint32_t i = 0; i < algorithm->input_count; i++) {
        const cli_train_input *c = cli_batches_find(data, onx_view(algorithm->input[i]->name));
        if (!c || !c->value)
            return false;
    }
    return true;
}

onx_status cli_measures_without_learning(cli_call *call, const onx_doc *doc, const cli_batches *data,
                                         const cli_measures *steps, cli_measures *out)
{
    uint32_t entry = steps->entry;
    for (uint32_t i = 0; i < onx_doc_model(doc)->training_info_count && entry == steps->entry; i++)
        if (i != steps->entry && evaluates(doc, data, i, steps->outputs[0].name))
            entry = i;
    *out = (cli_measures){ .entry = entry };
    for (uint32_t i = 0; i < steps->count; i++)
        if (!i || entry == steps->entry ||
            has_name(algorithm_of(doc, entry)->output, algorithm_of(doc, entry)->output_count,
                     onx_str_of(steps->outputs[i].name)))
            ONX_TRY(add(call, out, onx_str_of(steps->outputs[i].name)));
    return add_inputs(call, doc, data, out);
}

void cli_measures_free(cli_measures *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        onx_value_free(m->outputs[i].value);
        free((void *)(uintptr_t)m->outputs[i].name);
    }
    free(m->inputs);
    *m = (cli_measures){ 0 };
}

/* ---- means ---- */

onx_status cli_measures_number(cli_call *call, const char *name, const onx_value *v, double *out)
{
    if (v->kind == ONX_VALUE_TENSOR && v->count == 1 && onx_dtype_class_of(v->dtype) == ONX_CLASS_FLOATING)
        return onx_convert(ONX_DOUBLE, out, (onx_dtype)v->dtype, v->data, 1, true);
    cli_error(call, "\"%s\" is not a scalar", name);
    return ONX_E_INVALID;
}

onx_status cli_measures_add(cli_call *call, cli_measures *m, uint64_t samples, double *loss)
{
    for (uint32_t i = 0; i < m->count; i++) {
        double number;
        ONX_TRY(cli_measures_number(call, m->outputs[i].name, m->outputs[i].value, &number));
        m->sum[i] += number * (double)samples;
        if (!i)
            *loss = number;
    }
    m->samples += samples;
    return ONX_OK;
}

void cli_measures_reset(cli_measures *m)
{
    m->samples = 0;
    memset(m->sum, 0, sizeof m->sum);
}
