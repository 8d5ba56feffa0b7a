/* simplify_pass.c - all passes over models, as rows: those of transform, and those that simplify is made of. */
#include "simplify/simplify.h"

static const onx_pass passes[] = {
    { "retarget", "rewrites nodes for other versions of the operator sets", "opset ir-version best-effort",
      ONX_PASS_ROUNDING, false },
    { "inline", "puts function bodies in place of calls", "function except schema domain", ONX_PASS_ROUNDING, false },
    { "extract", "makes models of parts of a model", "inputs outputs nodes split at", ONX_PASS_EXACT, false },
    { "merge", "puts models together", "map sequence side-by-side inputs outputs prefix1 prefix2", ONX_PASS_ROUNDING,
      false },
    { "outline", "makes functions of repeated runs of nodes", "min-nodes min-calls domain", ONX_PASS_EXACT, false },
    { "edit", "changes names, ends, types, weights and metadata, and what comes around a model",
      "rename rename-node rename-dim rename-domain rename-function type inputs outputs add-output drop-output drop-input "
      "initializer metadata set strip batch nhwc normalize resize argmax softmax",
      ONX_PASS_ROUNDING, false },
#define PASS(id, name, summary, effect) { name, summary, "", ONX_PASS_##effect, true },
#include "simplify/simplify_passes.def"
    { "precision", "gives values and weights another floating-point type", "to only except block-op keep-io",
      ONX_PASS_PRECISION, false },
    { "quantize", "computes products of constant weights in few bits",
      "mode weight-type block-size only except block-op", ONX_PASS_PRECISION, false },
    { "compress", "stores identical weights once", "", ONX_PASS_EXACT, false },
};

const onx_pass *onx_pass_get(uint32_t index)
{
    return index < sizeof passes / sizeof *passes ? &passes[index] : NULL;
}
