/* cli_plan.h - `onx show --plan`: the steps of a session's plan. */
#ifndef ONX_CLI_PLAN_H
#define ONX_CLI_PLAN_H

#include "cli.h"

int cli_show_plan(cli_call *call);

#endif
