/* cli_run.c - the options that run, bench and test share. */
#include "cli_value.h"

#include <onx/kernel.h>

#include <stdlib.h>

static bool read_timeout(const cli_call *call, uint64_t *ns_out)
{
    double seconds = 0;
    if (!cli_real(call, "timeout", 1e-9, 1e9, &seconds))
        return false;
    *ns_out = (uint64_t)(seconds * 1e9);
    return true;
}

unsigned cli_isa(const char *name)
{
    static const char *const names[] = { [ONX_ISA_BASE] = "base", [ONX_ISA_V3] = "v3",     [ONX_ISA_V4] = "v4",
                                         [ONX_ISA_VNNI] = "vnni", [ONX_ISA_BF16] = "bf16", [ONX_ISA_AMX] = "amx" };
    for (unsigned i = ONX_ISA_BASE; name && i < ONX_ISA_END; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return 0;
}

/* The precision that --precision names; the option table has rejected all other words. */
static unsigned read_precision(const cli_call *call)
{
    static const char *const names[] = { [ONX_PRECISION_FULL] = "full",
                                         [ONX_PRECISION_BF16] = "bf16",
                                         [ONX_PRECISION_F16] = "f16",
                                         [ONX_PRECISION_INT8] = "int8-weights" };
    const char *name = cli_value(call, "precision");
    for (unsigned i = ONX_PRECISION_FULL; name && i < ONX_PRECISION_END; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return ONX_PRECISION_FULL;
}

/* Reads the environment. Unknown words are errors, because ignoring them would make a comparison compare nothing. */
static bool read_environment(const cli_call *call, onx_session_options *session)
{
    const char *kernels = getenv("ONX_KERNELS"), *isa = getenv("ONX_ISA"), *verify = getenv("ONX_VERIFY");
    session->plain = kernels && strcmp(kernels, "plain") == 0;
    session->isa = cli_isa(isa);
    session->verify = verify && strcmp(verify, "1") == 0;
    if (kernels && *kernels && !session->plain)
        cli_error(call, "ONX_KERNELS in the environment has to be \"plain\" or unset, not \"%s\"", kernels);
    else if (isa && *isa && !session->isa)
        cli_error(call, "ONX_ISA in the environment has to be base, v3, v4, vnni, bf16, amx or unset, not \"%s\"", isa);
    else if (verify && *verify && !session->verify && strcmp(verify, "0") != 0)
        cli_error(call, "ONX_VERIFY in the environment has to be 1, 0 or unset, not \"%s\"", verify);
    else
        return true;
    return false;
}

bool cli_run_options(const cli_call *call, uint64_t *threads, onx_session_options *session, onx_run_options *run)
{
    *session = (onx_session_options){ .registry = call->registry,
                                      .no_optimize = cli_has(call, "no-optimize"),
                                      .strict = cli_has(call, "strict"),
                                      .strict_opset = cli_has(call, "strict-opset"),
                                      .precision = read_precision(call),
                                      .cache = cli_value(call, "cache"),
                                      .measure = cli_has(call, "measure") && !cli_has(call, "no-measure"),
                                      .lean_memory = cli_has(call, "lean-memory") };
    *run = (onx_run_options){ 0 };
    if (!read_environment(call, session) || !cli_number(call, "threads", 0, 1024, threads) ||
        !read_timeout(call, &session->timeout_ns) ||
        !cli_number(call, "max-iterations", 1, UINT64_MAX, &run->iterations))
        return false;
    session->threads = (unsigned)*threads;
    run->timeout_ns = session->timeout_ns;
    return true;
}
