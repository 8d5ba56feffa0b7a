/* run_fuse.c - rewriting a resolved graph where constants allow: a BatchNormalization behind a Conv goes into its
 * weights. */
#include "run/run.h"

#include <math.h>

static const onx_value *constant_of(const onxi_run_graph *g, const onxi_run_op *op, uint32_t input)
{
    if (input >= op->input_count || op->inputs[input] == ONXI_NO_SLOT)
        return NULL;
    const onx_value *v = g->slots[op->inputs[input]].constant;
    return v && v->kind == ONX_VALUE_TENSOR && v->dtype == ONX_FLOAT ? v : NULL;
}

/* With `value` or `source`. */
static onx_status add_constant(onxi_run_graph *g, onx_value *value, onxi_run_source *source, uint32_t *slot_out)
{
    onxi_run_session *s = g->session;
    if (!ONXI_GROW_IN(s->arena, g->slots, g->slot_room, (uint64_t)g->slot_count + 1)) {
        onx_value_free(value);
        return ONX_E_MEMORY;
    }
    g->slots[g->slot_count] =
        (onxi_run_graph_slot){ .constant = source ? source->value : value, .source = source, .uses = 1 };
    *slot_out = g->slot_count++;
    return source ? ONX_OK : onxi_run_session_keep(s, value);
}

/* In test mode a BatchNormalization is y = x * a + b per channel. */
static bool is_scaling(const onxi_run_graph *g, const onxi_run_op *bn, uint64_t channels)
{
    if (bn->id != ONXI_ID_BatchNormalization || bn->output_count != 1 || bn->input_count != 5)
        return false;
    for (uint32_t i = 1; i < 5; i++) {
        const onx_value *c = constant_of(g, bn, i);
        if (!c || c->rank != 1 || c->count != channels)
            return false;
    }
    const onxi_attr_value *mode =
        onxi_attrs_get(&bn->attrs, bn->since >= 14 ? "training_mode" : "is_test", ONX_ATTR_INT);
    if (bn->since < 14 && bn->node->output_count > 1) /* more outputs mean training */
        return false;
    if (bn->since < 7)
        return mode && mode->i != 0;
    return bn->since < 14 || !mode || mode->i == 0;
}

static double epsilon_of(const onxi_run_op *bn)
{
    const onxi_attr_value *value = onxi_attrs_get(&bn->attrs, "epsilon", ONX_ATTR_FLOAT);
    return value ? (double)value->f : 0;
}

/* The weights are scaled when somebody needs them: most kernels pack them and need them no more. */
static onx_status fold_scaling(onxi_run_graph *g, onxi_run_op *conv, onxi_run_op *bn, bool *changed)
{
    onxi_run_session *s = g->session;
    const onx_value *w = constant_of(g, conv, 1), *b = constant_of(g, conv, 2);
    const uint64_t channels = (uint64_t)w->dims[0];
    const float *scale = constant_of(g, bn, 1)->data, *shift = constant_of(g, bn, 2)->data;
    const float *mean = constant_of(g, bn, 3)->data, *var = constant_of(g, bn, 4)->data;
    const double eps = epsilon_of(bn);
    double *factors = ONXI_ARRAY(s->arena, double, channels ? channels : 1);
    uint32_t *inputs = ONXI_ARRAY(s->arena, uint32_t, 3);
    onxi_run_source *w2;
    onx_value *b2;
    if (!factors || !inputs)
        return ONX_E_MEMORY;
    if (b) {
        ONX_TRY(onxi_run_constant_make(g, conv->inputs[2]));
        b = constant_of(g, conv, 2);
    }
    for (uint64_t c = 0; c < channels; c++)
        factors[c] = (double)scale[c] / sqrt((double)var[c] + eps);
    ONX_TRY(onxi_run_constant_scaled(s, &g->slots[conv->inputs[1]], factors, &w2));
    if (!w2) /* an infinite factor would meet each product instead of their sum */
        return ONX_OK;
    ONX_TRY(onx_value_new_tensor(s->cx, ONX_FLOAT, 1, w->dims, &b2));
    for (uint64_t c = 0; c < channels; c++) {
        const double bias = b ? (double)((const float *)b->data)[c] : 0.0;
        ((float *)b2->data)[c] = (float)((bias - (double)mean[c]) * factors[c] + (double)shift[c]);
    }
    if (!onxi_value_is_finite(b2)) {
        onx_value_free(b2);
        return ONX_OK;
    }
    inputs[0] = conv->inputs[0];
    onx_status status = add_constant(g, NULL, w2, &inputs[1]);
    if (status != ONX_OK) {
        onx_value_free(b2);
        return status;
    }
    ONX_TRY(add_constant(g, b2, NULL, &inputs[2]));
    conv->inputs = inputs;
    conv->input_count = 3;
    conv->outputs[0] = bn->outputs[0];
    bn->needed = false;
    *changed = true;
    return ONX_OK;
}

onx_status onxi_run_graph_fuse(onxi_run_graph *g)
{
    bool changed = false;
    for (uint32_t i = 0; i < g->op_count; i++) {
        onxi_run_op *conv = &g->ops[i];
        if (conv->id != ONXI_ID_Conv || conv->output_count != 1 || conv->outputs[0] == ONXI_NO_SLOT)
            continue;
        const onx_value *w = constant_of(g, conv, 1);
        const onxi_run_graph_slot *out = &g->slots[conv->outputs[0]];
        if (!w || w->rank < 3 || out->uses != 1 || out->is_output)
            continue;
        bool bias = conv->input_count > 2 && conv->inputs[2] != ONXI_NO_SLOT;
        const onx_value *b = constant_of(g, conv, 2);
        if (bias && (!b || b->count != (uint64_t)w->dims[0]))
            continue;
        onxi_run_op *bn = &g->ops[out->user];
        if (!is_scaling(g, bn, (uint64_t)w->dims[0]) || bn->inputs[0] != conv->outputs[0] ||
            bn->outputs[0] == ONXI_NO_SLOT)
            continue;
        ONX_TRY(fold_scaling(g, conv, bn, &changed));
    }
    return changed ? onxi_run_graph_count_uses(g) : ONX_OK;
}
