/* transform_pass.c - the passes, as rows. */
#include "transform/transform.h"

static const onx_pass passes[] = {
    { "retarget", "rewrites nodes for other versions of the operator sets", "opset ir-version best-effort",
      ONX_PASS_ROUNDING },
    { "inline", "puts function bodies in place of calls", "function except schema", ONX_PASS_ROUNDING },
};

const onx_pass *onx_pass_get(uint32_t index)
{
    return index < sizeof passes / sizeof *passes ? &passes[index] : NULL;
}
