/* cli_plan.h - `onx show --plan`: the steps that a session runs a model by. */
#ifndef ONX_CLI_PLAN_H
#define ONX_CLI_PLAN_H

#include "cli.h"

int cli_show_plan(cli_call *call);

#endif
