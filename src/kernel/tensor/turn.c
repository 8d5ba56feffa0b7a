/* turn.c - permutations of axes: Einsum that only permutes axes, and moving channels to or from the last axis, which is
 * a view with a channels-last layout where kernels use such a layout. */
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

/* Does the permutation move the last axis to the second place, or the second axis to the last place? */
static bool moves_channels(const int64_t *perm, uint32_t rank, bool *to_second)
{
    *to_second = perm[1] == (int64_t)rank - 1;
    bool fits = perm[0] == 0 && (*to_second || perm[rank - 1] == 1);
    for (uint32_t d = 2; d < rank; d++)
        fits &= perm[*to_second ? d : d - 1] == (int64_t)(*to_second ? d - 1 : d);
    return fits;
}

static onx_status see_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const onx_layout *layout = NULL;
    int64_t perm[ONX_RANK_MAX];
    bool is_one, to_second;
    if (!p->want || !y || x->kind != ONX_VALUE_TENSOR || x->rank < 3 || x->data || !x->count || y->rank != x->rank)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(read_order(p, &is_one, perm));
    if (!is_one || !moves_channels(perm, x->rank, &to_second))
        return ONX_E_UNSUPPORTED;
    for (uint32_t d = 0; d < x->rank; d++)
        if (y->dims[d] != x->dims[perm[d]])
            return ONX_E_UNSUPPORTED; /* the row that moves elements reports what is wrong */
    if (to_second ? x->layout || !onxi_channels_last(p, y, &layout)
                  : !onxi_blocked_of(x) || onxi_blocked_of(x) != x->dims[1])
        return ONX_E_UNSUPPORTED;
    y->layout = layout;
    return ONX_OK;
}

static onx_status see_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return onx_work_fail(work, ONX_E_INVALID, "a view has nothing to run");
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

#define BYTES (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8))
#define SEE(name, since_)                                                                                              \
    {                                                                                                                  \
        .op = name, .since = since_, .dtypes = BYTES, .preference = 12, .flags = ONX_KERNEL_VIEW | ONX_KERNEL_LAYOUTS, \
        .variant = "channels", .prepare = see_prepare, .run = see_run                                                  \
    }
#endif

const onx_kernel onxi_kernels_turn[] = {
#if ONXI_PLATFORM_ROOMY
    SEE("Transpose", 1),
    SEE("Einsum", 12),
    { .op = "Einsum",
      .since = 12,
      .preference = 11,
      .variant = "moves",
      .prepare = einsum_prepare,
      .run = onxi_transpose_run },
#endif
    { 0 }
};
