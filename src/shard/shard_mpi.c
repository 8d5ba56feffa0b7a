/* shard_mpi.c - ranks of MPI: loads the separate library that is linked with MPI. */
#include "shard/shard_mpi.h"

#include "shard/shard.h"

#define FUNCTIONS(F) F(onx_mpi_open) F(onx_mpi_close)
typedef struct functions {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} functions;
static const char *const names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

static onx_status open_mpi(onx_ctx *cx, const void *communicator, onx_comm *out)
{
    const functions *lib = ONXI_FUNCTIONS(ONXI_LIBRARY_MPI, names);
    const char *why = NULL;
    if (!lib)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a rank among others %s",
                         onxi_library_missing(ONXI_LIBRARY_MPI));
    const onx_status status = lib->onx_mpi_open(communicator, out, &why);
    return status == ONX_OK || !why ? status : onxi_fail(cx, status, ONXI_NOWHERE, "%s", why);
}

onx_status onx_comm_mpi(onx_ctx *cx, const void *communicator, onx_comm *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, out);
    *out = (onx_comm){ 0 };
    ONXI_CALL(cx, open_mpi(cx, communicator, out));
}

void onx_comm_mpi_close(onx_comm *comm, bool failed)
{
    const functions *lib = comm && comm->user ? ONXI_FUNCTIONS(ONXI_LIBRARY_MPI, names) : NULL;
    if (lib)
        lib->onx_mpi_close(comm, failed);
}
