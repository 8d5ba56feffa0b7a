/* transform_trainable_start.c - how weights begin: random values as suits their roles, and constants. */
#include "transform/transform_trainable.h"

#include <math.h>

typedef enum how { NOT, CONSTANT, NORMAL, UNIFORM } how;

static how begins(const onxi_weight *w, double *number)
{
    switch (w->role) {
    case ONXI_ROLE_NONE:
        return NOT;
    case ONXI_ROLE_KERNEL: /* after He (2015); after Glorot and Bengio (2010) */
        *number = w->rectified ? sqrt(2 / w->fan_in) : sqrt(6 / (w->fan_in + w->fan_out));
        return w->rectified ? NORMAL : UNIFORM;
    case ONXI_ROLE_GATES:
        *number = 1 / sqrt(w->fan_in);
        return UNIFORM;
    case ONXI_ROLE_TABLE:
        *number = 1 / sqrt(w->fan_in);
        return NORMAL;
    case ONXI_ROLE_OFFSET:
        *number = 0.02;
        return NORMAL;
    case ONXI_ROLE_SCALE:
    case ONXI_ROLE_FACTOR:
    case ONXI_ROLE_VARIANCE:
        *number = 1;
        return CONSTANT;
    case ONXI_ROLE_SLOPE:
        *number = 0.25;
        return CONSTANT;
    default:
        *number = 0;
        return CONSTANT;
    }
}

static onx_status draw(onxi_trainable *t, const onxi_weight *w, uint32_t number)
{
    static const char *const texts[] = {
        [CONSTANT] = "s = Constant <value_ints: ints = @shape> ()  x = ConstantOfShape <value: tensor = @value> (s)",
        [NORMAL] = "x = RandomNormal <dtype: int = @dtype, shape: ints = @shape, scale: float = @scale, seed: float = "
                   "@seed> ()",
        [UNIFORM] = "x = RandomUniform <dtype: int = @dtype, shape: ints = @shape, low: float = @low, high: float = "
                    "@scale, seed: float = @seed> ()"
    };
    enum { SEEDS = 1 << 24 }; /* integers that a float represents exactly */
    const onx_dtype dtype = (onx_dtype)w->tensor->data_type;
    const int64_t one[1] = { 1 };
    double scale = 0;
    int64_t bits = 0;
    onx_bytes name;
    const how h = begins(w, &scale);
    if (h == NOT)
        return ONX_OK;
    if (!isfinite(scale))
        scale = 0;
    ONX_TRY(onx_convert(dtype, &bits, ONX_DOUBLE, &scale, 1, true));
    ONX_TRY(onxi_trainable_tensor(t, "value", onx_tensor_new(t->arena, dtype, one, 1, &bits, NULL)));
    ONX_TRY(onxi_trainable_ints(t, "shape", w->tensor->dims, w->tensor->dims_count));
    ONX_TRY(onxi_trainable_int(t, "dtype", dtype));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("scale"), scale));
    ONX_TRY(onxi_trainable_float(t, onx_str_of("low"), -scale));
    const uint64_t seed = ((uint64_t)t->options->seed * 7919 + number) % SEEDS;
    ONX_TRY(onxi_trainable_float(t, onx_str_of("seed"), (double)seed));
    ONX_TRY(onxi_names_make(&t->names, onx_view(w->tensor->name), onx_str_of("start"), &name));
    const onxi_text_nodes nodes = {
        .head = "() => (x)", .text = texts[h], .out = &name, .out_count = 1, .base = onx_view(w->tensor->name)
    };
    ONX_TRY(onxi_trainable_put(t, t->start, &nodes));
    ONX_TRY(onxi_trainable_output(t, t->start, name, onxi_trainable_type_of(t, w->tensor)));
    return onxi_trainable_begin(t, w->tensor->name, name);
}

static bool is_updated(const onxi_trainable *t, const onxi_weight *w)
{
    for (uint32_t i = 0; i < t->step->update_binding_count; i++)
        if (onx_str_equal(onx_view(t->step->update_binding[i]->key), onx_view(w->tensor->name)))
            return true;
    return false;
}

onx_status onxi_trainable_draw(onxi_trainable *t)
{
    for (uint32_t i = 0; i < t->weight_count; i++) {
        const onxi_weight *w = &t->weights[i];
        const bool adapter = onxi_dict_find(&t->adapters, onx_view(w->tensor->name)) != NULL;
        if (t->options->lora_rank ? adapter && w->trained : w->trained || (w->average && is_updated(t, w)))
            ONX_TRY(draw(t, w, i + 1));
    }
    return ONX_OK;
}
