/* optional.c - rows of the ONNX family "optional": optional values.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- Optional ---- */

const onxi_schema onxi_op_Optional[] = {
    { .name = "Optional", .since = 28, .infer = onxi_rule_optional, .flags = INFERS, ARITY(0, 1, 1, 1),
      .inputs = PORTS({ "input", "V", OPT }), .outputs = PORTS({ "output", "O", 0 }),
      .attrs = ATTRS({ "type", TYPE_PROTO, OPTIONAL }),
      .types = TYPES({ "V", { .tensor = ALL_28, .seq = ALL_28 } },
                     { "O", { .optional = ALL_28, .optional_seq = ALL_28 } }) },
    { .name = "Optional", .since = 15, .infer = onxi_rule_optional, .flags = INFERS, ARITY(0, 1, 1, 1),
      .inputs = PORTS({ "input", "V", OPT }), .outputs = PORTS({ "output", "O", 0 }),
      .attrs = ATTRS({ "type", TYPE_PROTO, OPTIONAL }),
      .types = TYPES({ "V", { .tensor = ALL, .seq = ALL } }, { "O", { .optional = ALL, .optional_seq = ALL } }) },
    { .name = NULL },
};

/* ---- OptionalGetElement ---- */

const onxi_schema onxi_op_OptionalGetElement[] = {
    { .name = "OptionalGetElement", .since = 28, .infer = onxi_rule_optional_get_element,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "O", 0 }), .outputs = PORTS({ "output", "V", 0 }),
      .types = TYPES({ "O", { .tensor = ALL_28, .seq = ALL_28, .optional = ALL_28, .optional_seq = ALL_28 } },
                     { "V", { .tensor = ALL_28, .seq = ALL_28 } }) },
    { .name = "OptionalGetElement", .since = 18, .infer = onxi_rule_optional_get_element,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "O", 0 }), .outputs = PORTS({ "output", "V", 0 }),
      .types = TYPES({ "O", { .tensor = ALL, .seq = ALL, .optional = ALL, .optional_seq = ALL } },
                     { "V", { .tensor = ALL, .seq = ALL } }) },
    { .name = "OptionalGetElement", .since = 15, .infer = onxi_rule_optional_get_element,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "O", 0 }), .outputs = PORTS({ "output", "V", 0 }),
      .types = TYPES({ "O", { .optional = ALL, .optional_seq = ALL } }, { "V", { .tensor = ALL, .seq = ALL } }) },
    { .name = NULL },
};

/* ---- OptionalHasElement ---- */

const onxi_schema onxi_op_OptionalHasElement[] = {
    { .name = "OptionalHasElement", .since = 28, .infer = onxi_rule_optional_has_element,
      .flags = INFERS, ARITY(0, 1, 1, 1),
      .inputs = PORTS({ "input", "O", OPT }), .outputs = PORTS({ "output", "B", 0 }),
      .types = TYPES({ "O", { .tensor = ALL_28, .seq = ALL_28, .optional = ALL_28, .optional_seq = ALL_28 } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "OptionalHasElement", .since = 18, .infer = onxi_rule_optional_has_element,
      .flags = INFERS, ARITY(0, 1, 1, 1),
      .inputs = PORTS({ "input", "O", OPT }), .outputs = PORTS({ "output", "B", 0 }),
      .types = TYPES({ "O", { .tensor = ALL, .seq = ALL, .optional = ALL, .optional_seq = ALL } },
                     { "B", T(BIT(BOOL)) }) },
    { .name = "OptionalHasElement", .since = 15, .infer = onxi_rule_optional_has_element,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "input", "O", 0 }), .outputs = PORTS({ "output", "B", 0 }),
      .types = TYPES({ "O", { .optional = ALL, .optional_seq = ALL } }, { "B", T(BIT(BOOL)) }) },
    { .name = NULL },
};
