/* cli_run.c - the options that run, bench and test have in common. */
#include "cli_value.h"

#include <stdlib.h>

static bool read_timeout(const cli_call *call, uint64_t *ns_out)
{
    double seconds = 0;
    if (!cli_real(call, "timeout", 1e-9, 1e9, &seconds))
        return false;
    *ns_out = (uint64_t)(seconds * 1e9);
    return true;
}

bool cli_run_options(const cli_call *call, uint64_t *threads, onx_session_options *session, onx_run_options *run)
{
    const char *kernels = getenv("ONX_KERNELS");
    *session = (onx_session_options){ .plain = kernels && strcmp(kernels, "plain") == 0 };
    *run = (onx_run_options){ 0 };
    if (!cli_number(call, "threads", 0, 1024, threads) || !read_timeout(call, &session->timeout_ns) ||
        !cli_number(call, "max-iterations", 1, UINT64_MAX, &run->iterations))
        return false;
    session->threads = (unsigned)*threads;
    run->timeout_ns = session->timeout_ns;
    return true;
}
