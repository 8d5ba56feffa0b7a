/* transform_quantize_forms.c - the nodes that replace a Conv, MatMul or Gemm: 8-bit products with dynamic or static
 * scales, and weights that are dequantized where they are used. */
#include "transform/transform_quantize.h"

#include <math.h>

/* ---- creating nodes ---- */

onx_status onxi_quant_push(onxi_quantizer *z, onxi_quant_scope *s, onx_node *node)
{
    if (!ONXI_GROW_IN(z->scratch, s->out, s->out_room, (uint64_t)s->out_count + 1))
        return ONX_E_MEMORY;
    s->out[s->out_count++] = node;
    return ONX_OK;
}

/* A node with these inputs (trailing ones may be empty) and outputs. */
static onx_node *make(onxi_quantizer *z, const char *op, const onx_bytes *inputs, uint32_t input_count,
                      const onx_bytes *outputs, uint32_t output_count)
{
    onx_node *node = onx_message_new(z->arena, ONX_KIND_NODE);
    if (!node || onx_arena_keep(z->arena, onx_str_of(op), &node->op_type) != ONX_OK ||
        !(node->input = onxi_arena_array(z->arena, (size_t)onxi_list_room(input_count), sizeof *node->input)) ||
        !(node->output = onxi_arena_array(z->arena, (size_t)onxi_list_room(output_count), sizeof *node->output)))
        return NULL;
    while (input_count && !onx_view(inputs[input_count - 1]).len)
        input_count--;
    memcpy(node->input, inputs, input_count * sizeof *inputs);
    memcpy(node->output, outputs, output_count * sizeof *outputs);
    node->input_count = input_count;
    node->output_count = output_count;
    node->has |= onx_node_has_op_type | onx_node_has_name;
    return onxi_names_make(&z->new_names, onx_view(outputs[0]), onx_str_of(op), &node->name) == ONX_OK ? node : NULL;
}

static onx_status put(onxi_quantizer *z, onxi_quant_scope *s, const char *op, const onx_bytes *inputs,
                      uint32_t input_count, onx_bytes output, onx_node **out)
{
    onx_node *node = make(z, op, inputs, input_count, &output, 1);
    if (out)
        *out = node;
    return node ? onxi_quant_push(z, s, node) : ONX_E_MEMORY;
}

static onx_status put_cast(onxi_quantizer *z, onxi_quant_scope *s, onx_bytes from, onx_bytes to, onx_dtype type)
{
    onx_node *node;
    ONX_TRY(put(z, s, "Cast", &from, 1, to, &node));
    return onx_node_add_int(z->arena, node, "to", (int64_t)type) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status name_of(onxi_quantizer *z, onx_bytes base, const char *part, onx_bytes *out)
{
    return onxi_names_make(&z->new_names, onx_view(base), onx_str_of(part), out);
}

/* The value as FLOAT, cast once for all readers. *fresh: by this call; NULL: not asked. */
static onx_status cast_once(onxi_quantizer *z, onxi_quant_scope *s, onx_bytes x, bool *fresh, onx_bytes *out)
{
    bool made;
    onxi_dict_entry *entry = onxi_dict_at(&s->casts, onx_view(x), s->casts.count, &made);
    if (!entry || !ONXI_GROW_IN(z->scratch, s->cast, s->cast_room, s->casts.count))
        return ONX_E_MEMORY;
    onx_bytes *cast = &s->cast[entry->value];
    if (made)
        *cast = (onx_bytes){ 0 };
    if (fresh)
        *fresh = !onx_view(*cast).len;
    if (!onx_view(*cast).len) {
        ONX_TRY(name_of(z, x, "float", cast));
        ONX_TRY(put_cast(z, s, x, *cast, ONX_FLOAT));
    }
    *out = *cast;
    return ONX_OK;
}

/* The bias of products that are computed in FLOAT. */
static onx_status float_bias(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, onx_bytes *out)
{
    *out = l->bias;
    return l->dtype == ONX_FLOAT || !onx_view(l->bias).len ? ONX_OK : cast_once(z, s, l->bias, NULL, out);
}

/* An initializer of the graph with a unique name. */
static onx_status keep(onxi_quantizer *z, onxi_quant_scope *s, onx_tensor *t, onx_bytes base, const char *part,
                       onx_bytes *out)
{
    ONX_TRY(name_of(z, base, part, out));
    ONX_SET(tensor, t, name, *out);
    return onx_graph_add_initializer(z->arena, s->graph, t) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status keep_data(onxi_quantizer *z, onxi_quant_scope *s, onx_dtype dtype, const int64_t *dims, uint32_t rank,
                            const void *data, onx_bytes base, const char *part, onx_bytes *out)
{
    onx_tensor *t = onx_tensor_new(z->arena, dtype, dims, rank, data, NULL);
    return t ? keep(z, s, t, base, part, out) : ONX_E_MEMORY;
}

/* The same, unless *name shows that the graph has it already. */
static onx_status keep_once(onxi_quantizer *z, onxi_quant_scope *s, onx_tensor *t, onx_bytes base, const char *part,
                            onx_bytes *name)
{
    return onx_view(*name).len ? ONX_OK : keep(z, s, t, base, part, name);
}

static onx_status tell(onxi_quantizer *z, const onxi_layer *l, const char *what, const onxi_quant_weight *w)
{
    const onx_str text = onxi_arena_printf(z->scratch, "%s, relative error of the weights %.3g", what, w->data.error);
    const onx_change change = { "quantize", onx_view(l->node->op_type), z->path, text };
    if (!text.len)
        return ONX_E_MEMORY;
    if (w->data.nonfinite)
        onxi_warn(z->cx, ONX_WARNING, NULL, ONXI_AT_PATH(z->path),
                  "%llu elements of the weight are not finite: NaN becomes 0, infinities the largest number",
                  (unsigned long long)w->data.nonfinite);
    if (z->options->changed)
        z->options->changed(z->options->user, &change);
    z->done++;
    return ONX_OK;
}

/* ---- weights, quantised once for all equal uses ---- */

/* Scales of a convolution's channels, reshaped to axis 1 of its result, of that rank. */
static onx_status spread_scale(onxi_quantizer *z, onx_tensor *scale, uint64_t groups, uint32_t rank)
{
    scale->dims = onxi_arena_array(z->arena, (size_t)onxi_list_room(rank), sizeof(int64_t));
    if (!scale->dims)
        return ONX_E_MEMORY;
    for (uint32_t i = 1; i < rank; i++)
        scale->dims[i] = 1;
    scale->dims[0] = (int64_t)groups;
    scale->dims_count = rank - 1;
    return ONX_OK;
}

/* The moments for error feedback of a matrix; NULL: no feedback. `space` receives them. */
static onx_status moments_of(const onxi_quantizer *z, onx_str value, onx_value_moments *space,
                             const onx_value_moments **out)
{
    const onx_quantize_options *o = z->options;
    const onxi_dict_entry *entry = value.len ? onxi_dict_find(&z->moments, value) : NULL;
    *out = entry ? &o->moments[entry->value] : NULL;
    if (entry || !value.len || !o->moments_of)
        return ONX_OK;
    *space = (onx_value_moments){ .name = value };
    ONX_TRY(o->moments_of(o->moments_user, value, space));
    if (!space->data)
        return ONX_OK;
    *out = space;
    return onxi_moments_check(z, value, space);
}

static onx_status make_weight(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const onxi_grid *g,
                              bool transpose, onx_str fed_by, onxi_quant_weight *w)
{
    onx_value_moments space;
    const onx_value_moments *moments;
    ONX_TRY(moments_of(z, fed_by, &space, &moments));
    ONX_TRY(onxi_quantize_weight(&z->weights, l->weight, g, transpose, moments, &w->data));
    if (z->options->mode == ONX_QUANTIZE_DYNAMIC && l->op == ONXI_ID_Conv && g->groups > 1)
        ONX_TRY(spread_scale(z, w->data.scale, g->groups, l->weight->dims_count));
    return keep(z, s, w->data.q, l->node->input[1], "quantized", &w->q);
}

/* The weight of the layer for this grid, as an initializer; *out lives as long as the scope. `fed_by`: the value whose
 * moments are used for error feedback, "": none. */
static onx_status quantized_weight(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const onxi_grid *g,
                                   bool transpose, onx_str fed_by, onxi_quant_weight **out)
{
    bool made;
    const onx_str key = onxi_arena_printf(z->scratch, "%p %d %d %u %d %.*s", (const void *)l->weight, (int)g->type,
                                          (int)g->axis, g->block, transpose, ONX_ARG(fed_by));
    onxi_dict_entry *entry = key.len ? onxi_dict_at(&s->weights, key, s->weights.count, &made) : NULL;
    if (!entry)
        return ONX_E_MEMORY;
    if (made) {
        onxi_quant_weight *w = ONXI_NEW(z->scratch, onxi_quant_weight);
        if (!w || !ONXI_GROW_IN(z->scratch, s->weight, s->weight_room, s->weights.count))
            return ONX_E_MEMORY;
        s->weight[entry->value] = w;
        ONX_TRY(make_weight(z, s, l, g, transpose, fed_by, w));
    }
    *out = s->weight[entry->value];
    return ONX_OK;
}

/* ---- weights read by DequantizeLinear ---- */

static onx_status add_grid(onxi_quantizer *z, onx_node *node, const onxi_grid *g)
{
    if (g->axis >= 0 && !onx_node_add_int(z->arena, node, "axis", g->axis))
        return ONX_E_MEMORY;
    return g->block && !onx_node_add_int(z->arena, node, "block_size", g->block) ? ONX_E_MEMORY : ONX_OK;
}

/* The axis of output channels of a weight, and its reduction axis. */
static int32_t channel_axis(const onxi_layer *l)
{
    return l->op == ONXI_ID_Conv || l->transposed ? 0 : 1;
}

static onxi_grid grid_of_weights(const onxi_quantizer *z, const onxi_layer *l)
{
    const onx_dtype type = z->options->weight_type ? (onx_dtype)z->options->weight_type : ONX_INT8;
    const bool matrix = l->op != ONXI_ID_Conv;
    onxi_grid g = { .type = type, .asymmetric = onx_dtype_class_of((int64_t)type) == ONX_CLASS_UNSIGNED };
    /* Filters with few channels, such as depthwise ones, are not split into blocks. */
    g.block = matrix || l->weight->dims[1] >= (int64_t)z->options->block_size ? z->options->block_size : 0;
    g.axis = g.block ? (matrix ? 1 - channel_axis(l) : 1) : channel_axis(l);
    return g;
}

static onx_status dequantize(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const onxi_grid *g,
                             onxi_quant_weight *w, bool zero)
{
    const onx_bytes base = l->node->input[1];
    onx_node *node;
    if (onx_view(w->dequantized).len)
        return ONX_OK;
    ONX_TRY(keep_once(z, s, w->data.scale, base, "scale", &w->scale));
    if (zero && w->data.zero)
        ONX_TRY(keep_once(z, s, w->data.zero, base, "zero_point", &w->zero));
    const onx_bytes names[] = { w->q, w->scale, w->zero };
    ONX_TRY(name_of(z, base, "dequantized", &w->dequantized));
    ONX_TRY(put(z, s, "DequantizeLinear", names, 3, w->dequantized, &node));
    ONX_TRY(add_grid(z, node, g));
    if (z->options->mode != ONX_QUANTIZE_WEIGHTS || l->dtype == ONX_FLOAT)
        return ONX_OK;
    const onx_bytes full = w->dequantized;
    ONX_TRY(name_of(z, base, onx_dtype_name((int64_t)l->dtype), &w->dequantized));
    return put_cast(z, s, full, w->dequantized, l->dtype);
}

static onx_status copy_window(onxi_quantizer *z, const onx_node *from, onx_node *to)
{
    if (!(to->attribute =
              onxi_arena_array(z->arena, (size_t)onxi_list_room(from->attribute_count), sizeof *to->attribute)))
        return ONX_E_MEMORY;
    if (from->attribute_count)
        memcpy(to->attribute, from->attribute, from->attribute_count * sizeof *to->attribute);
    to->attribute_count = from->attribute_count;
    return ONX_OK;
}

static onx_node *with_operands(onxi_quantizer *z, const onxi_layer *l, onx_bytes x, onx_bytes w, onx_bytes bias)
{
    const onx_node *old = l->node;
    onx_node *node = ONXI_NEW(z->arena, onx_node);
    onx_bytes *y = onxi_arena_array(z->arena, (size_t)onxi_list_room(1), sizeof *y);
    if (!node || !y)
        return NULL;
    *node = *old;
    *y = l->y;
    node->output = y;
    node->input = onxi_arena_array(z->arena, (size_t)onxi_list_room(old->input_count), sizeof *node->input);
    if (!node->input)
        return NULL;
    memcpy(node->input, old->input, old->input_count * sizeof *node->input);
    node->input[0] = x;
    node->input[1] = w;
    if (old->input_count > 2)
        node->input[2] = bias;
    return onxi_node_fit_devices(z->arena, node, old) == ONX_OK ? node : NULL;
}

/* Copies name, description and so on of the layer to the product, whose weight is input `weight`, and its window
 * attributes. */
static onx_status inherit(onxi_quantizer *z, const onxi_layer *l, onx_node *node, uint32_t weight)
{
    const onx_node *old = l->node;
    onx_bytes places[4] = { old->input[0] };
    onx_node before = { .input = places, .input_count = weight + 1, .output = old->output, .output_count = 1 };
    places[weight] = old->input[1];
    if (onx_view(old->name).len)
        node->name = old->name;
    node->has |= old->has & onx_node_has_doc_string;
    node->extra = old->extra;
    ONX_TRY(onxi_node_fit_devices(z->arena, node, &before));
    return l->op == ONXI_ID_Conv ? copy_window(z, old, node) : ONX_OK;
}

static onx_status write_weights(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const char **skipped)
{
    onxi_grid g = grid_of_weights(z, l);
    onxi_quant_weight *w;
    const bool fed = z->options->moments_of || onxi_dict_find(&z->moments, onx_view(l->x));
    if (!onxi_grid_open(&g, l->weight)) {
        *skipped = "the weight is empty";
        return ONX_OK;
    }
    const onx_str fed_by = fed && l->op != ONXI_ID_Conv ? onx_view(l->x) : onx_str_of("");
    ONX_TRY(quantized_weight(z, s, l, &g, false, fed_by, &w));
    ONX_TRY(dequantize(z, s, l, &g, w, g.asymmetric));
    onx_node *node = with_operands(z, l, l->x, w->dequantized, l->bias);
    if (!node)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_quant_push(z, s, node));
    return tell(z, l, onx_dtype_name((int64_t)g.type), w);
}

/* ---- inputs, quantised once for all readers ---- */

static onxi_quant_names *known(onxi_quant_scope *s, onx_bytes value)
{
    const onxi_dict_entry *entry = onxi_dict_find(&s->values, onx_view(value));
    return entry ? &s->names[entry->value] : NULL;
}

static onxi_quant_names *note(onxi_quantizer *z, onxi_quant_scope *s, onx_bytes value)
{
    onxi_dict_entry *entry = onxi_dict_at(&s->values, onx_view(value), s->values.count, NULL);
    if (!entry || !ONXI_GROW_IN(z->scratch, s->names, s->name_room, s->values.count))
        return NULL;
    s->names[entry->value] = (onxi_quant_names){ 0 };
    return &s->names[entry->value];
}

static onx_status quantize_dynamic(onxi_quantizer *z, onxi_quant_scope *s, onx_bytes x, onxi_quant_names *out)
{
    onxi_quant_names *n = known(s, x);
    if (!n) {
        if (!(n = note(z, s, x)))
            return ONX_E_MEMORY;
        ONX_TRY(name_of(z, x, "quantized", &n->q));
        ONX_TRY(name_of(z, x, "scale", &n->scale));
        ONX_TRY(name_of(z, x, "zero_point", &n->zero));
        const onx_bytes outputs[] = { n->q, n->scale, n->zero };
        onx_node *node = make(z, "DynamicQuantizeLinear", &x, 1, outputs, 3);
        if (!node)
            return ONX_E_MEMORY;
        ONX_TRY(onxi_quant_push(z, s, node));
    }
    *out = *n;
    return ONX_OK;
}

/* Scale and zero point from the range of a value: ONX_E_NOT_FOUND, without a diagnostic, if none is known. */
static onx_status static_scale(onxi_quantizer *z, onxi_quant_scope *s, onx_bytes x, onxi_quant_names *n)
{
    const onxi_dict_entry *entry = onxi_dict_find(&z->ranges, onx_view(x));
    if (!entry)
        return ONX_E_NOT_FOUND;
    const onx_value_range *r = &z->options->range[entry->value];
    onxi_scale_of(ONX_UINT8, true, r->low, r->high, &n->at_scale, &n->at_zero);
    const uint8_t zero = (uint8_t)n->at_zero;
    ONX_TRY(keep_data(z, s, ONX_FLOAT, NULL, 0, &n->at_scale, x, "scale", &n->scale));
    return keep_data(z, s, ONX_UINT8, NULL, 0, &zero, x, "zero_point", &n->zero);
}

static onx_status quantize_static(onxi_quantizer *z, onxi_quant_scope *s, onx_bytes x, onxi_quant_names *out)
{
    onxi_quant_names *n = known(s, x);
    if (!n) {
        onxi_quant_names made = { 0 };
        ONX_TRY(static_scale(z, s, x, &made));
        ONX_TRY(name_of(z, x, "quantized", &made.q));
        const onx_bytes inputs[] = { x, made.scale, made.zero };
        ONX_TRY(put(z, s, "QuantizeLinear", inputs, 3, made.q, NULL));
        if (!(n = note(z, s, x)))
            return ONX_E_MEMORY;
        *n = made;
    }
    *out = *n;
    return ONX_OK;
}

static bool has_range(const onxi_quantizer *z, onx_bytes x)
{
    return onxi_dict_find(&z->ranges, onx_view(x)) != NULL;
}

/* ---- int32 biases with the scale of the accumulators, which `scale` receives unless it is NULL ---- */

static onx_status quantize_bias(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, float x_scale,
                                const onxi_quantized *w, uint64_t groups, onx_bytes *q, onx_bytes *scale)
{
    const int64_t dims[] = { l->channels };
    float *b = ONXI_ARRAY(z->scratch, float, (size_t)l->channels + 1);
    float *scales = ONXI_ARRAY(z->scratch, float, (size_t)groups + 1);
    int32_t *numbers = ONXI_ARRAY(z->scratch, int32_t, (size_t)l->channels + 1);
    if (!b || !scales || !numbers)
        return ONX_E_MEMORY;
    ONX_TRY(onx_tensor_get_f32(z->doc, l->bias_tensor, 0, l->channels, b));
    for (uint64_t i = 0; i < groups; i++)
        scales[i] = x_scale * w->scales[i];
    for (uint32_t i = 0; i < l->channels; i++) {
        const double step = (double)scales[groups > 1 ? i : 0], at = step > 0 ? rint((double)b[i] / step) : 0;
        numbers[i] = isnan(at) ? 0 : at >= INT32_MAX ? INT32_MAX : at <= INT32_MIN ? INT32_MIN : (int32_t)at;
    }
    ONX_TRY(keep_data(z, s, ONX_INT32, dims, 1, numbers, l->bias, "quantized", q));
    if (!scale)
        return ONX_OK;
    const int64_t count[] = { (int64_t)groups };
    return keep_data(z, s, ONX_FLOAT, count, groups > 1, scales, l->bias, "scale", scale);
}

/* A bias that overflows int32 is not quantised. */
static bool bias_fits(onxi_quantizer *z, const onxi_layer *l, float x_scale, const onxi_quantized *w, uint64_t groups)
{
    float *b = ONXI_ARRAY(z->scratch, float, (size_t)l->channels + 1);
    if (!b || onx_tensor_get_f32(z->doc, l->bias_tensor, 0, l->channels, b) != ONX_OK)
        return false;
    for (uint32_t i = 0; i < l->channels; i++) {
        const double step = (double)x_scale * (double)w->scales[groups > 1 ? i : 0];
        if (!(fabs((double)b[i]) < step * 0x1p30) || (float)step <= 0)
            return false;
    }
    return true;
}

/* ---- QuantizeLinear and DequantizeLinear around the node ---- */

static onxi_grid grid_of_products(const onxi_quantizer *z, const onxi_layer *l, onx_dtype type)
{
    return (onxi_grid){ .type = type, .axis = z->options->per_channel ? channel_axis(l) : -1 };
}

static onx_status write_qdq(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const char **skipped)
{
    onxi_grid g = grid_of_products(z, l, ONX_INT8);
    onxi_quant_weight *w;
    onxi_quant_names x;
    onx_bytes xd, bias;
    if (!has_range(z, l->x) || !onxi_grid_open(&g, l->weight)) {
        *skipped = has_range(z, l->x) ? "the weight is empty" : "the range of its input is not known";
        return ONX_OK;
    }
    ONX_TRY(quantize_static(z, s, l->x, &x));
    ONX_TRY(quantized_weight(z, s, l, &g, false, onx_str_of(""), &w));
    const onx_bytes inputs[] = { x.q, x.scale, x.zero };
    ONX_TRY(name_of(z, l->x, "dequantized", &xd));
    ONX_TRY(put(z, s, "DequantizeLinear", inputs, 3, xd, NULL));
    ONX_TRY(dequantize(z, s, l, &g, w, true));
    const bool has_bias = onx_view(l->bias).len && l->bias_tensor;
    if (has_bias && bias_fits(z, l, x.at_scale, &w->data, g.groups)) {
        onx_bytes b[2];
        onx_node *node;
        ONX_TRY(quantize_bias(z, s, l, x.at_scale, &w->data, g.groups, &b[0], &b[1]));
        ONX_TRY(name_of(z, l->bias, "dequantized", &bias));
        ONX_TRY(put(z, s, "DequantizeLinear", b, 2, bias, &node));
        if (g.groups > 1 && !onx_node_add_int(z->arena, node, "axis", 0))
            return ONX_E_MEMORY;
    } else {
        ONX_TRY(float_bias(z, s, l, &bias));
    }
    onx_node *node = with_operands(z, l, xd, w->dequantized, bias);
    if (!node)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_quant_push(z, s, node));
    return tell(z, l, "int8 by QuantizeLinear and DequantizeLinear", w);
}

/* ---- products of integers ---- */

/* A bias that is not int32 is added after dequantization. */
static onx_status add_bias(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, int rank, onx_bytes *y)
{
    onx_bytes bias, sum;
    if (!onx_view(l->bias).len)
        return ONX_OK;
    ONX_TRY(float_bias(z, s, l, &bias));
    if (l->op == ONXI_ID_Conv) { /* one number per channel, along axis 1 */
        int64_t shape[ONX_RANK_MAX], count[] = { rank };
        onx_bytes names[2] = { bias };
        for (int i = 0; i < rank; i++)
            shape[i] = i == 1 ? -1 : 1;
        ONX_TRY(keep_data(z, s, ONX_INT64, count, 1, shape, bias, "shape", &names[1]));
        ONX_TRY(name_of(z, bias, "reshaped", &bias));
        ONX_TRY(put(z, s, "Reshape", names, 2, bias, NULL));
    }
    const onx_bytes inputs[] = { *y, bias };
    ONX_TRY(name_of(z, l->y, "biased", &sum));
    ONX_TRY(put(z, s, "Add", inputs, 2, sum, NULL));
    *y = sum;
    return ONX_OK;
}

/* Renames the output of the node that computes `y` to that of the layer. */
static void deliver(onxi_quant_scope *s, const onxi_layer *l)
{
    s->out[s->out_count - 1]->output[0] = l->y;
}

static onx_status write_dynamic(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const char **skipped)
{
    const bool conv = l->op == ONXI_ID_Conv;
    /* All runtimes support unsigned convolution weights. */
    onxi_grid g = grid_of_products(z, l, conv ? ONX_UINT8 : ONX_INT8);
    onxi_quant_weight *w;
    onxi_quant_names x;
    onx_bytes in[4], y, cast, scale;
    onx_node *node;
    if (l->transposed && g.axis == 0)
        g.axis = 1; /* the product takes [K, N] */
    onx_tensor shape = *l->weight;
    int64_t turned[] = { conv ? 0 : l->weight->dims[1], conv ? 0 : l->weight->dims[0] };
    if (l->transposed)
        shape.dims = turned;
    if (!onxi_grid_open(&g, &shape)) {
        *skipped = "the weight is empty";
        return ONX_OK;
    }
    ONX_TRY(quantize_dynamic(z, s, l->x, &x));
    ONX_TRY(quantized_weight(z, s, l, &g, l->transposed, onx_str_of(""), &w));
    in[0] = x.q;
    in[2] = x.zero;
    in[1] = w->q;
    if (conv && !onx_view(w->zero).len) {
        const uint8_t zero = 128;
        ONX_TRY(keep_data(z, s, ONX_UINT8, NULL, 0, &zero, l->node->input[1], "zero_point", &w->zero));
    }
    in[3] = w->zero;
    ONX_TRY(name_of(z, l->y, "sums", &y));
    ONX_TRY(put(z, s, conv ? "ConvInteger" : "MatMulInteger", in, conv ? 4 : 3, y, &node));
    ONX_TRY(inherit(z, l, node, 1));
    ONX_TRY(name_of(z, l->y, "cast", &cast));
    ONX_TRY(put_cast(z, s, y, cast, ONX_FLOAT));
    ONX_TRY(keep_once(z, s, w->data.scale, l->node->input[1], "scale", &w->scale));
    const onx_bytes factors[] = { x.scale, w->scale };
    ONX_TRY(name_of(z, l->y, "scale", &scale));
    ONX_TRY(put(z, s, "Mul", factors, 2, scale, NULL));
    const onx_bytes product[] = { cast, scale };
    ONX_TRY(name_of(z, l->y, "scaled", &y));
    ONX_TRY(put(z, s, "Mul", product, 2, y, NULL));
    ONX_TRY(add_bias(z, s, l, (int)l->weight->dims_count, &y));
    deliver(s, l);
    return tell(z, l, "int8, inputs scaled while the model runs", w);
}

/* The range of the result without its bias is that of the result, extended by the smallest and largest bias. */
static onx_status scale_before_bias(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, onxi_quant_names *y)
{
    const onx_value_range *r = &z->options->range[onxi_dict_find(&z->ranges, onx_view(l->y))->value];
    float *b = ONXI_ARRAY(z->scratch, float, (size_t)l->channels + 1), low = r->low, high = r->high;
    if (!b)
        return ONX_E_MEMORY;
    ONX_TRY(onx_tensor_get_f32(z->doc, l->bias_tensor, 0, l->channels, b));
    for (uint32_t i = 0; i < l->channels; i++) {
        low = isfinite(b[i]) && r->low - b[i] < low ? r->low - b[i] : low;
        high = isfinite(b[i]) && r->high - b[i] > high ? r->high - b[i] : high;
    }
    onxi_scale_of(ONX_UINT8, true, low, high, &y->at_scale, &y->at_zero);
    const uint8_t zero = (uint8_t)y->at_zero;
    ONX_TRY(keep_data(z, s, ONX_FLOAT, NULL, 0, &y->at_scale, l->y, "product_scale", &y->scale));
    return keep_data(z, s, ONX_UINT8, NULL, 0, &zero, l->y, "product_zero_point", &y->zero);
}

static onx_status write_qlinear(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const char **skipped)
{
    const bool conv = l->op == ONXI_ID_Conv;
    onxi_grid g = grid_of_products(z, l, ONX_INT8);
    onxi_quant_weight *w;
    onxi_quant_names x, y = { 0 };
    onx_bytes in[9] = { 0 }, result;
    onx_node *node;
    onx_tensor shape = *l->weight;
    int64_t turned[] = { conv ? 0 : l->weight->dims[1], conv ? 0 : l->weight->dims[0] };
    if (l->transposed) {
        shape.dims = turned;
        g.axis = g.axis == 0 ? 1 : g.axis;
    }
    if (!has_range(z, l->x) || !has_range(z, l->y) || !onxi_grid_open(&g, &shape)) {
        *skipped = has_range(z, l->x) && has_range(z, l->y) ? "the weight is empty"
                                                            : "the range of its input or output is not known";
        return ONX_OK;
    }
    const bool bias = onx_view(l->bias).len != 0;
    if (bias && !l->bias_tensor) {
        *skipped = "its bias is no constant";
        return ONX_OK;
    }
    ONX_TRY(quantize_static(z, s, l->x, &x));
    ONX_TRY(quantized_weight(z, s, l, &g, l->transposed, onx_str_of(""), &w));
    const bool inside = conv && bias && bias_fits(z, l, x.at_scale, &w->data, g.groups);
    if (bias && !inside)
        ONX_TRY(scale_before_bias(z, s, l, &y));
    else
        ONX_TRY(static_scale(z, s, l->y, &y));
    const onx_bytes first[] = { x.q, x.scale, x.zero };
    memcpy(in, first, sizeof first);
    ONX_TRY(keep_once(z, s, w->data.scale, l->node->input[1], "scale", &w->scale));
    ONX_TRY(keep_once(z, s, w->data.zero, l->node->input[1], "zero_point", &w->zero));
    const onx_bytes second[] = { w->q, w->scale, w->zero };
    memcpy(in + 3, second, sizeof second);
    in[6] = y.scale;
    in[7] = y.zero;
    if (inside)
        ONX_TRY(quantize_bias(z, s, l, x.at_scale, &w->data, g.groups, &in[8], NULL));
    ONX_TRY(name_of(z, l->y, "quantized", &y.q));
    ONX_TRY(put(z, s, conv ? "QLinearConv" : "QLinearMatMul", in, conv ? 9 : 8, y.q, &node));
    ONX_TRY(inherit(z, l, node, 3));
    const onx_bytes back[] = { y.q, y.scale, y.zero };
    ONX_TRY(name_of(z, l->y, "dequantized", &result));
    ONX_TRY(put(z, s, "DequantizeLinear", back, 3, result, NULL));
    if (bias && !inside) {
        ONX_TRY(add_bias(z, s, l, (int)l->weight->dims_count, &result));
        deliver(s, l);
        return tell(z, l, conv ? "int8 by QLinearConv" : "int8 by QLinearMatMul", w);
    }
    deliver(s, l);
    onxi_quant_names *n = note(z, s, l->y); /* what takes the result as 8-bit numbers has them here */
    if (!n)
        return ONX_E_MEMORY;
    *n = y;
    return tell(z, l, conv ? "int8 by QLinearConv" : "int8 by QLinearMatMul", w);
}

static onx_status write_layer(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const char **skipped)
{
    switch (z->options->mode) {
    case ONX_QUANTIZE_WEIGHTS:
        return write_weights(z, s, l, skipped);
    case ONX_QUANTIZE_DYNAMIC:
        return write_dynamic(z, s, l, skipped);
    case ONX_QUANTIZE_QDQ:
        return write_qdq(z, s, l, skipped);
    case ONX_QUANTIZE_QLINEAR:
        return write_qlinear(z, s, l, skipped);
    }
    return ONX_OK;
}

/* ---- layers of 16-bit floats, whose products are computed between Casts from and to FLOAT ---- */

/* The range of a value is that of its Cast. */
static onx_status share_range(onxi_quantizer *z, onx_bytes from, onx_bytes to)
{
    const onxi_dict_entry *entry = onxi_dict_find(&z->ranges, onx_view(from));
    return !entry || onxi_dict_at(&z->ranges, onx_view(to), entry->value, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status write_between_casts(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const char **skipped)
{
    onxi_layer inner = *l;
    const uint32_t before = s->out_count;
    bool fresh;
    ONX_TRY(cast_once(z, s, l->x, &fresh, &inner.x));
    ONX_TRY(name_of(z, l->y, "float", &inner.y));
    ONX_TRY(share_range(z, l->x, inner.x));
    ONX_TRY(share_range(z, l->y, inner.y));
    ONX_TRY(write_layer(z, s, &inner, skipped));
    if (!*skipped)
        return put_cast(z, s, inner.y, l->y, l->dtype);
    s->out_count = before; /* without the Cast */
    if (fresh)
        s->cast[onxi_dict_find(&s->casts, onx_view(l->x))->value] = (onx_bytes){ 0 };
    return ONX_OK;
}

onx_status onxi_layer_write(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *l, const char **skipped)
{
    *skipped = NULL;
    return l->dtype == ONX_FLOAT || z->options->mode == ONX_QUANTIZE_WEIGHTS ? write_layer(z, s, l, skipped)
                                                                             : write_between_casts(z, s, l, skipped);
}
