/* cli_ranks.h - commands that run a model as one of several ranks: --configuration, and which rank prints what. */
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

/* Joins the other ranks if --configuration, or --ranks, is given. Only the first rank prints on standard output. */
onx_status cli_ranks_open(cli_call *call);
/* Leaves the group; if one rank has failed, all ranks end. */
void cli_ranks_close(cli_call *call, bool failed);
/* Is this the only rank, or the one that writes the results? */
bool cli_ranks_first(const cli_call *call);
/* Called if this rank has failed: has a lower rank failed as well, and reported the reason? Without `knows_why`, the
 * diagnostics tell whether this rank has a reason of its own. */
bool cli_ranks_told(const cli_call *call, bool knows_why);
/* Broadcasts a decision of the first rank. Communication failures are reported by the next run. */
bool cli_ranks_decide(const cli_call *call, bool yes);
/* The index of this rank, and the number of ranks: 0 of 1 if there are no others. */
uint32_t cli_ranks_rank(const cli_call *call);
uint32_t cli_ranks_count(const cli_call *call);
/* The communicator; NULL if there are no other ranks. */
const onx_comm *cli_ranks_comm(const cli_call *call);
/* Connects the trainer with those of all ranks. */
onx_status cli_ranks_train(const cli_call *call, onx_trainer *trainer);
/* Creates a session according to the options. */
onx_status cli_session_new(cli_call *call, onx_doc *doc, const onx_session_options *options, onx_session **out);

#endif
