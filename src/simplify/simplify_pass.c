/* simplify_pass.c - the table of all model passes: those of transform, and those that simplify consists of. */
#include "simplify/simplify.h"

static const onx_pass passes[] = {
    { "retarget", "converts a model to other versions of its operator sets", "opset ir-version best-effort",
      ONX_PASS_ROUNDING, false },
    { "inline", "replaces function calls by the function bodies", "function except schema domain", ONX_PASS_ROUNDING,
      false },
    { "extract", "extracts parts of a model as models", "inputs outputs nodes split at", ONX_PASS_EXACT, false },
    { "merge", "merges models into one", "map sequence side-by-side inputs outputs prefix1 prefix2", ONX_PASS_ROUNDING,
      false },
    { "outline", "turns repeated sequences of nodes into functions", "min-nodes min-calls domain", ONX_PASS_EXACT,
      false },
    { "edit", "changes names, inputs, outputs, types, weights and metadata, and adds pre- and post-processing",
      "rename rename-node rename-dim rename-domain rename-function type inputs outputs add-output drop-output drop-input "
      "initializer metadata set strip batch nhwc normalize resize argmax softmax",
      ONX_PASS_ROUNDING, false },
#define PASS(id, name, summary, effect) { name, summary, "", ONX_PASS_##effect, true },
#include "simplify/simplify_passes.def"
    { "precision", "converts values and weights to another floating-point type", "to only except block-op keep-io",
      ONX_PASS_PRECISION, false },
    { "quantize", "quantizes products with constant weights to 8 or 4 bits",
      "mode weight-type block-size only except block-op", ONX_PASS_PRECISION, false },
    { "compress", "stores identical weights once", "", ONX_PASS_EXACT, false },
};

const onx_pass *onx_pass_get(uint32_t index)
{
    return index < sizeof passes / sizeof *passes ? &passes[index] : NULL;
}
