/* pad.c - Pad: indices outside of the input give a fill value, or elements of the edge, a mirror image, or the opposite
 * end. */
#include "kernel/core/move.h"

#define FAR (INT64_MAX / 4) /* sums of a few of these do not overflow */

static bool read_mode(const onx_prepare *p, onxi_move_mode *mode)
{
    static const onxi_word words[] = { { "constant", 1, 0 }, { "edge", 1, 0 }, { "reflect", 1, 0 }, { "wrap", 1, 0 } };
    static const onxi_move_mode modes[] = { ONXI_MOVE_FILL, ONXI_MOVE_EDGE, ONXI_MOVE_REFLECT, ONXI_MOVE_WRAP };
    const int word = onxi_prepare_word(p, "mode", words, 4);
    *mode = modes[word < 0 ? 0 : word];
    return word >= 0;
}

static onx_status pad_axis(const onxi_move_call *call, onxi_move_axis *a, int64_t begin, int64_t end,
                           onxi_move_mode mode)
{
    int64_t in = a->count;
    if (begin < -FAR || begin > FAR || end < -FAR || end > FAR || in > FAR)
        return ONXI_MOVE_FAIL(call, "a dimension of %lld cannot be padded by %lld and %lld", (long long)in,
                              (long long)begin, (long long)end);
    a->mode = mode;
    a->out = in + begin + end;
    a->offset = -begin;
    if (mode != ONXI_MOVE_FILL) { /* elements cut off by negative pads are not repeated either */
        a->low = begin < 0 ? -begin : 0;
        a->count = (end < 0 ? in + end : in) - a->low;
        if (a->count < 0)
            a->count = 0;
    }
    return ONX_OK;
}

static onx_status pad_describe(const onxi_move_call *call, onxi_move *m)
{
    const onx_prepare *p = call->p;
    const onx_value *pads = p->since >= 11 ? onxi_move_input(call, 1) : NULL;
    const onx_value *axes = p->since >= 18 ? onxi_move_input(call, 3) : NULL;
    uint32_t listed = 0;
    const int64_t *list = pads ? NULL : onx_prepare_ints(p, p->since < 2 ? "paddings" : "pads", &listed);
    uint64_t count = pads ? pads->count : listed, half = axes ? axes->count : m->rank;
    onxi_move_mode mode;
    if (!read_mode(p, &mode)) {
        onx_str text = onx_prepare_text(p, "mode");
        return ONXI_MOVE_FAIL(call, "mode is \"%.*s\"", ONX_ARG(text));
    }
    if (half > m->rank || count != 2 * half)
        return ONXI_MOVE_FAIL(call, "there are %llu pads for %llu axes of an input of rank %u",
                              (unsigned long long)count, (unsigned long long)half, m->rank);
    bool seen[ONX_RANK_MAX] = { false };
    for (uint64_t i = 0; i < half; i++) {
        int64_t axis = axes ? onxi_move_number(axes, i) : (int64_t)i;
        if (axis < -(int64_t)m->rank || axis >= (int64_t)m->rank || seen[axis < 0 ? axis + m->rank : axis])
            return ONXI_MOVE_FAIL(call, "axis %lld is outside of rank %u, or given twice", (long long)axis, m->rank);
        axis = axis < 0 ? axis + m->rank : axis;
        seen[axis] = true;
        int64_t begin = pads ? onxi_move_number(pads, i) : list[i];
        int64_t end = pads ? onxi_move_number(pads, half + i) : list[half + i];
        ONX_TRY(pad_axis(call, &m->axis[axis], begin, end, mode));
    }
    return ONX_OK;
}

static onx_status pad_prepare(onx_prepare *p)
{
    ONX_TRY(onxi_move_prepare(p));
    onxi_move_params *q = p->params;
    if (p->since >= 11)
        return ONX_OK;
    double value = (double)onx_prepare_float(p, "value");
    return onx_convert((onx_dtype)p->inputs[0]->dtype, q->fill, ONX_DOUBLE, &value, 1, true);
}

static const onxi_move_body pad_2 = { pad_describe, 0 }, pad_11 = { pad_describe, 2 };

const onx_kernel onxi_kernels_pad[] = {
#if ONXI_PLATFORM_ROOMY
    ONXI_MOVE_LAID_OUT("Pad", 11, &pad_11, pad_prepare),
    ONXI_MOVE_LAID_OUT("Pad", 2, &pad_2, pad_prepare),
#endif
    { .op = "Pad", .since = 11, .body = &pad_11, .prepare = pad_prepare, .run = onxi_move_run },
    { .op = "Pad", .since = 2, .dtypes = ONXI_FLOATS, .body = &pad_2, .prepare = pad_prepare, .run = onxi_move_run },
    { .op = "Pad",
      .since = 1,
      .dtypes = ONXI_FLOATS,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .body = &pad_2,
      .prepare = pad_prepare,
      .run = onxi_move_run },
    { 0 }
};
