/* op_rules.h - the type and shape rules that rows refer to, by family; included by op_rows.h and op_rules_<family>.c.
 */
#ifndef ONXI_OP_RULES_H
#define ONXI_OP_RULES_H

#include "op/op.h"

#endif
