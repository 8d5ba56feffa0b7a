/* cli_attribute.h - integer values of attributes, given by nodes or defaults of their operators. */
#ifndef CLI_ATTRIBUTE_H
#define CLI_ATTRIBUTE_H

#include <onx/ir.h>
#include <onx/op.h>

/* The built-in operator that a node of the model's graphs names, in the imported version; NULL: none. */
const onx_op *cli_op_of(const onx_model *model, const onx_node *node);
/* The integer that the node gives (0 if the value field is omitted), else the default. 0 if there is neither, or if the
 * operator is unknown. */
int64_t cli_attribute_int(const onx_op *op, const onx_node *node, const char *name);
/* The numeric value of an attribute, integer or float; false for NULL, and if it is not a number or is missing. */
bool cli_attribute_number(const onx_attribute *attribute, double *out);
/* Does the node name that operator of the default domain, in either spelling of the domain? */
bool cli_node_is(const onx_node *node, const char *op);
bool cli_op_has_attribute(const onx_op *op, const char *name);

#endif
