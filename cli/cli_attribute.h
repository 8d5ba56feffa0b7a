/* cli_attribute.h - numbers that nodes give as attributes, or that their operators have as defaults. */
#ifndef CLI_ATTRIBUTE_H
#define CLI_ATTRIBUTE_H

#include <onx/ir.h>
#include <onx/op.h>

/* The built-in operator that a node of the model's graphs names, in the version that is imported; NULL: none. */
const onx_op *cli_op_of(const onx_model *model, const onx_node *node);
/* The number that the node gives, 0 where it leaves the value field out, else the default. 0 where there is neither,
 * and where the operator is not known. */
int64_t cli_attribute_int(const onx_op *op, const onx_node *node, const char *name);
/* The number that an attribute is, whole or not; false for NULL, and where it is none or is left out. */
bool cli_attribute_number(const onx_attribute *attribute, double *out);
/* Does the node name that operator of the default domain, however the domain is spelled? */
bool cli_node_is(const onx_node *node, const char *op);
bool cli_op_has_attribute(const onx_op *op, const char *name);

#endif
