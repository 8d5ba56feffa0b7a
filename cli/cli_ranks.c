/* cli_ranks.c - one rank of several: joining the others, deciding which rank prints, and sessions that all ranks
 * run. */
#include "cli_ranks.h"

#include "cli_value.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TAG_TOLD = 0x7ffffff4, TAG_DECIDE = 0x7ffffff6 };
enum { SPEAK_SECONDS = 2 }; /* maximum time for reporting an error to the other ranks */
#define TOLD_SECONDS 0.5    /* time to wait for earlier ranks to report that they failed as well */

struct cli_ranks {
    onx_comm comm;
    uint64_t timeout_ns;
    bool silent; /* another rank prints the error */
};

/* Discards output that only the first rank prints. */
static bool silence(void)
{
    fflush(stdout);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool done = nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0;
    if (nowhere >= 0)
        close(nowhere);
    return done;
}

onx_status cli_ranks_open(cli_call *call)
{
    double seconds = 60;
    if (!cli_has(call, "configuration") && !cli_has(call, "ranks"))
        return ONX_OK;
    if (!cli_real(call, "rank-timeout", 1e-3, 1e6, &seconds))
        return ONX_E_MISUSE;
    struct cli_ranks *r = calloc(1, sizeof *r);
    if (!r)
        return ONX_E_MEMORY;
    const onx_status status = onx_comm_mpi(call->cx, NULL, &r->comm);
    if (status != ONX_OK) {
        free(r);
        return status;
    }
    r->timeout_ns = (uint64_t)(seconds * 1e9);
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* keeps lines of different ranks from mixing */
    call->ranks = r;
    if (r->comm.rank && !silence()) {
        cli_error(call, "cannot write to /dev/null");
        return ONX_E_IO;
    }
    return ONX_OK;
}

void cli_ranks_close(cli_call *call, bool failed)
{
    if (!call->ranks)
        return;
    fflush(NULL);
    if (failed)
        call->ranks->comm.fail(call->ranks->comm.user);
    if (call->ranks->silent) /* all ranks end together */
        nanosleep(&(struct timespec){ .tv_nsec = 0, .tv_sec = SPEAK_SECONDS }, NULL);
    onx_comm_mpi_close(&call->ranks->comm, failed);
    free(call->ranks);
    call->ranks = NULL;
}

bool cli_ranks_first(const cli_call *call)
{
    return !call->ranks || call->ranks->comm.rank == 0;
}

uint32_t cli_ranks_rank(const cli_call *call)
{
    return call->ranks ? call->ranks->comm.rank : 0;
}

uint32_t cli_ranks_count(const cli_call *call)
{
    return call->ranks ? call->ranks->comm.size : 1;
}

const onx_comm *cli_ranks_comm(const cli_call *call)
{
    return call->ranks ? &call->ranks->comm : NULL;
}

onx_status cli_ranks_train(const cli_call *call, onx_trainer *trainer)
{
    if (!call->ranks)
        return ONX_OK;
    const onx_train_ranks ranks = { .struct_size = sizeof ranks,
                                    .comm = &call->ranks->comm,
                                    .timeout_ns = call->ranks->timeout_ns };
    return onx_trainer_set_ranks(trainer, &ranks);
}

/* Another rank has failed, and this one has no error of its own. */
static bool only_cancelled(const cli_call *call)
{
    for (size_t i = 0; i < onx_diag_count(call->cx); i++)
        if (onx_diag_get(call->cx, i)->severity == ONX_ERROR && onx_diag_get(call->cx, i)->status != ONX_E_CANCELLED)
            return false;
    return true;
}

bool cli_ranks_told(const cli_call *call, bool knows_why)
{
    const onx_comm *comm = &call->ranks->comm;
    const double end = cli_now() + TOLD_SECONDS;
    if (call->ranks->silent || (!knows_why && only_cancelled(call)))
        return call->ranks->silent = true;
    comm->fail(comm->user);
    while (comm->rank && cli_now() < end) {
        uint32_t from = UINT32_MAX;
        char nothing;
        const onx_comm_part part = { 0, &nothing, 1 };
        if (comm->exchange(comm->user, TAG_TOLD, NULL, 0, &part, 1, 1000000, &from) == ONX_E_CANCELLED &&
            from < comm->rank)
            return call->ranks->silent = true;
    }
    return false;
}

bool cli_ranks_decide(const cli_call *call, bool yes)
{
    uint32_t from;
    if (!call->ranks)
        return yes;
    const onx_comm *comm = &call->ranks->comm;
    char answer = yes;
    onx_comm_part *parts = calloc(comm->size, sizeof *parts);
    const uint32_t count = comm->rank ? 1 : comm->size - 1;
    if (!parts)
        return false;
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (onx_comm_part){ comm->rank ? 0 : i + 1, &answer, 1 };
    const onx_status status = comm->exchange(comm->user, TAG_DECIDE, parts, comm->rank ? 0 : count, parts,
                                             comm->rank ? count : 0, call->ranks->timeout_ns, &from);
    free(parts);
    return status == ONX_OK && answer;
}

onx_status cli_session_new(cli_call *call, onx_doc *doc, const onx_session_options *options, onx_session **out)
{
    onx_session_options own = *options;
    if (call->ranks && !cli_has(call, "threads"))
        own.threads = 1; /* several ranks may share a machine */
    if (!call->ranks || !cli_has(call, "configuration"))
        return onx_session_new(call->cx, doc, &own, out);
    const onx_shard_options shard = { .struct_size = sizeof shard,
                                      .configuration = cli_value(call, "configuration"),
                                      .comm = &call->ranks->comm,
                                      .strict = cli_has(call, "strict"),
                                      .timeout_ns = call->ranks->timeout_ns,
                                      .session = &own };
    return onx_session_new_sharded(call->cx, doc, &shard, out);
}
