/* text.c - rows of the ONNX family "text": strings.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- RegexFullMatch ---- */

const onxi_schema onxi_op_RegexFullMatch[] = {
    { .name = "RegexFullMatch", .since = 20, .infer = onxi_rule_regex_full_match, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", NONDIFF }), .outputs = PORTS({ "Y", "T2", NONDIFF }),
      .attrs = ATTRS({ "pattern", STRING, OPTIONAL }),
      .types = TYPES({ "T1", T(BIT(STRING)) }, { "T2", T(BIT(BOOL)) }) },
    { .name = NULL },
};

/* ---- StringConcat ---- */

const onxi_schema onxi_op_StringConcat[] = {
    { .name = "StringConcat", .since = 20, .infer = onxi_rule_string_concat, .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "X", "T", NONDIFF }, { "Y", "T", NONDIFF }), .outputs = PORTS({ "Z", "T", NONDIFF }),
      .types = TYPES({ "T", T(BIT(STRING)) }) },
    { .name = NULL },
};

/* ---- StringNormalizer ---- */

const onxi_schema onxi_op_StringNormalizer[] = {
    { .name = "StringNormalizer", .since = 10, .infer = onxi_rule_string_normalizer, .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "tensor(string)", 0 }), .outputs = PORTS({ "Y", "tensor(string)", 0 }),
      .attrs = ATTRS({ "case_change_action", STRING, TEXT("NONE") }, { "is_case_sensitive", INT, DEFAULT("0") },
                     { "locale", STRING, OPTIONAL }, { "stopwords", STRINGS, OPTIONAL }) },
    { .name = NULL },
};

/* ---- StringSplit ---- */

const onxi_schema onxi_op_StringSplit[] = {
    { .name = "StringSplit", .since = 20, .infer = onxi_rule_string_split, .flags = INFERS, ARITY(1, 1, 2, 2),
      .inputs = PORTS({ "X", "T1", NONDIFF }), .outputs = PORTS({ "Y", "T2", NONDIFF }, { "Z", "T3", NONDIFF }),
      .attrs = ATTRS({ "delimiter", STRING, OPTIONAL }, { "maxsplit", INT, OPTIONAL }),
      .types = TYPES({ "T1", T(BIT(STRING)) }, { "T2", T(BIT(STRING)) }, { "T3", T(BIT(INT64)) }) },
    { .name = NULL },
};
