/* cli_ranks.h - commands that run a model as one of several ranks: --configuration, and what each rank says. */
#ifndef ONX_CLI_RANKS_H
#define ONX_CLI_RANKS_H

#include "cli.h"

#include <onx/train.h>

/* clang-format off */
#define CLI_OPTIONS_RANKS \
    { "configuration", 0, "NAME", NULL, "run the model on the devices of this configuration, as one of the ranks that mpirun starts" }, \
    CLI_OPTION_RANK_TIMEOUT
#define CLI_OPTION_RANK_TIMEOUT { "rank-timeout", 0, "SECONDS", NULL, "maximum time to wait for another rank (60)" }
/* clang-format on */

/* Joins the other ranks where --configuration, or --ranks, is given. All but the first print nothing on standard
 * output. */
onx_status cli_ranks_open(cli_call *call);
/* The end, for all at once where one has failed. */
void cli_ranks_close(cli_call *call, bool failed);
/* Is this the only rank, or the one that writes what comes out? */
bool cli_ranks_first(const cli_call *call);
/* This rank has failed: has one before it failed as well, and said why? Without `knows_why` its diagnostics tell
 * whether it has a reason of its own. */
bool cli_ranks_told(const cli_call *call, bool knows_why);
/* What the first rank decides. Ranks that are not heard of are an error of the next run. */
bool cli_ranks_decide(const cli_call *call, bool yes);
/* Which rank this is, and of how many: 0 of 1 where there are no others. */
uint32_t cli_ranks_rank(const cli_call *call);
uint32_t cli_ranks_count(const cli_call *call);
/* How they talk; NULL where there are no others. */
const onx_comm *cli_ranks_comm(const cli_call *call);
/* The trainer is one of those of all ranks. */
onx_status cli_ranks_train(const cli_call *call, onx_trainer *trainer);
/* A session for what the options say. */
onx_status cli_session_new(cli_call *call, onx_doc *doc, const onx_session_options *options, onx_session **out);

#endif
