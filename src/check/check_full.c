/* check_full.c - full mode: rules that need types and shapes are applied by inference in its strict form, and what it
 * reports becomes findings. */
#include "check.h"

#include <onx/infer.h>

void onxi_check_full(onxi_check *k)
{
    onx_infer_options options = { .strict = true, .check_type = true, .registry = k->registry };
    onxi_diag_mark before = onxi_diag_here(k->cx);
    onx_infer *infer = NULL;
    onx_status status = onx_infer_new(k->cx, k->doc, &options, &infer);
    onx_infer_free(infer);
    if (status != ONX_OK && status != ONX_E_INVALID)
        k->status = status;
    onxi_adopt(k, before, NULL, "ND-20");
}
