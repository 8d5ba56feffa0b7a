/* cli_op_words.h - descriptions of operators: their inputs, outputs and attributes, and an example of each. */
#ifndef ONX_CLI_OP_WORDS_H
#define ONX_CLI_OP_WORDS_H

#include "cli.h"

/* The meaning of an input, output or attribute of the operator; NULL if there is no description, as for custom
 * operators. */
const char *cli_op_word(const onx_op *op, const char *name);
/* Writes a model in ONNX text that uses the operator in the newest version of its domain; false if there is none. */
bool cli_op_example(const onx_op *op, FILE *to);

/* Lists the kernels for the operator; returns their number. */
enum { CLI_OP_VARIANTS = 8 };
uint32_t cli_op_kernels(const onx_op *op, const char *variants[CLI_OP_VARIANTS]);
/* Writes all information about one version of an operator, as an item of a list. */
void cli_op_json(cli_json *json, const onx_op *op);

#endif
