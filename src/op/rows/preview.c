/* preview.c - rows of the ONNX family "preview": operators under trial (domain ai.onnx.preview).
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- FlexAttention ---- */

const onxi_schema onxi_op_FlexAttention[] = {
    { .domain = "ai.onnx.preview", .name = "FlexAttention", .since = 1, .infer = onxi_rule_flex_attention,
      .flags = EXPERIMENTAL | CONTEXT_FUNCTION | INFERS, ARITY(3, 3, 1, 1),
      .context_function_opsets = "1", .inputs = PORTS({ "Q", "T1", 0 }, { "K", "T1", 0 }, { "V", "T1", 0 }),
      .outputs = PORTS({ "Y", "T1", 0 }),
      .attrs = ATTRS({ "prob_mod", GRAPH, OPTIONAL }, { "scale", FLOAT, OPTIONAL },
                     { "score_mod", GRAPH, OPTIONAL }, { "softmax_precision", INT, OPTIONAL }),
      .types = TYPES({ "T1", T(FLOATING_13) }) },
    { .name = NULL },
};
