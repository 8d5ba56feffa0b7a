/* turn.c - permutations of axes: Einsum that only permutes axes, and moving channels to or from the last axis, which is
 * a view with a channels-last layout where kernels use such a layout; and operators that only give the pixels of images
 * in a layout other dims. */
#include "kernel/core/blocked.h"
#include "kernel/core/einsum.h"
#include "kernel/core/move.h"

#if ONXI_PLATFORM_ROOMY /* browsers use the plain rows: their module has no room for these */
/* Reads the permutation that the node asks for. */
static onx_status read_order(onx_prepare *p, bool *is_one, int64_t *perm)
{
    const uint32_t rank = p->inputs[0]->rank;
    uint32_t count;
    if (p->op == ONXI_ID_Einsum)
        return onxi_einsum_permutation(p, is_one, perm);
    const int64_t *given = onx_prepare_ints(p, "perm", &count);
    *is_one = given && count == rank;
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = *is_one ? given[d] : 0;
    return ONX_OK;
}

/* Axis number i in memory: in order, or with channels (axis 1) last. */
static uint32_t axis_in_memory(uint32_t i, uint32_t rank, bool channels_last)
{
    return !channels_last || i == 0 ? i : i + 1 < rank ? i + 1 : 1;
}

/* Do the elements of x stay where they are? Either x has channels last, or the result gets them last. Axes of size 1
 * may move anywhere. */
static bool moves_channels(const onx_value *x, const int64_t *perm, bool from_last)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        const uint32_t axis = axis_in_memory(i, x->rank, from_last);
        if (x->dims[axis] == 1)
            continue;
        while (at < x->rank && x->dims[perm[axis_in_memory(at, x->rank, !from_last)]] == 1)
            at++;
        if (at == x->rank || perm[axis_in_memory(at++, x->rank, !from_last)] != (int64_t)axis)
            return false;
    }
    return true;
}

static onx_status see_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const onx_layout *layout = NULL;
    int64_t perm[ONX_RANK_MAX];
    bool is_one;
    if (!p->want || !y || x->kind != ONX_VALUE_TENSOR || x->rank < 3 || x->data || !x->count || y->rank != x->rank)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(read_order(p, &is_one, perm));
    /* Matrices of floats (sequences of tokens) are rarely read by kernels that use layouts: for the others, and for
     * sums with values that are row-major, layouts would have to be converted. */
    if (x->rank == 3 && !x->layout && x->dtype == ONX_FLOAT)
        return ONX_E_UNSUPPORTED;
    const bool from_last = x->layout != NULL;
    if (!is_one || (from_last && onxi_blocked_of(x) != x->dims[1]))
        return ONX_E_UNSUPPORTED;
    for (uint32_t d = 0; d < x->rank; d++)
        if (perm[d] < 0 || perm[d] >= (int64_t)x->rank || y->dims[d] != x->dims[perm[d]])
            return ONX_E_UNSUPPORTED; /* the row that moves elements reports what is wrong */
    if (!moves_channels(x, perm, from_last) || (!from_last && !onxi_channels_last(p, y, &layout)))
        return ONX_E_UNSUPPORTED;
    y->layout = layout;
    return ONX_OK;
}

/* Images in a blocked layout whose pixels get other dims (Reshape, Squeeze and their like) keep the layout. */
static onx_status keep_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const uint32_t block = onxi_blocked_of(x);
    if (!p->want || !y || !block || y->kind != ONX_VALUE_TENSOR || y->rank < 3 || y->count != x->count ||
        y->dims[0] != x->dims[0] || y->dims[1] != x->dims[1])
        return ONX_E_UNSUPPORTED;
    y->layout = onxi_blocked_layout(p->arena, y, block);
    return y->layout ? ONX_OK : ONX_E_MEMORY;
}

static onx_status einsum_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    int64_t perm[ONX_RANK_MAX];
    bool is_one;
    if (!y)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_einsum_permutation(p, &is_one, perm));
    if (!is_one || y->rank != x->rank || y->dtype != x->dtype)
        return ONX_E_UNSUPPORTED;
    for (uint32_t d = 0; d < x->rank; d++)
        if (y->dims[d] != x->dims[perm[d]])
            return ONX_E_UNSUPPORTED;
    return onxi_transpose_make(p, perm);
}

#define TYPES (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8) | ONX_DTYPE_BIT(ONX_FLOAT))
#define SEE(name, since_, dtypes_, prepare_)                                                                           \
    {                                                                                                                  \
        .op = name, .since = since_, .dtypes = dtypes_, .preference = 12,                                              \
        .flags = ONX_KERNEL_VIEW | ONX_KERNEL_LAYOUTS, .variant = "channels", .prepare = prepare_,                     \
        .run = onxi_view_run                                                                                           \
    }
#define KEEP(name) SEE(name, 1, 0, keep_prepare)
#endif

const onx_kernel onxi_kernels_turn[] = {
#if ONXI_PLATFORM_ROOMY
    SEE("Transpose", 1, TYPES, see_prepare),
    SEE("Einsum", 12, TYPES, see_prepare),
    KEEP("Reshape"),
    KEEP("Flatten"),
    KEEP("Squeeze"),
    KEEP("Unsqueeze"),
    { .op = "Einsum",
      .since = 12,
      .preference = 11,
      .variant = "moves",
      .prepare = einsum_prepare,
      .run = onxi_transpose_run },
#endif
    { 0 }
};
