/* shard_mpi.h - the functions that libonx-mpi.so exports to this library, which loads it when MPI is requested. */
#ifndef ONXI_SHARD_MPI_H
#define ONXI_SHARD_MPI_H

#include <onx/shard.h>

/* The ranks of the MPI communicator at `communicator` (NULL: MPI_COMM_WORLD); MPI is initialised if necessary. *why is
 * NULL, or an error message. */
ONX_API onx_status onx_mpi_open(const void *communicator, onx_comm *out, const char **why);
/* Ends communication: orderly or, after a failure, by aborting all ranks. MPI is finalised if onx_mpi_open initialised
 * it. */
ONX_API void onx_mpi_close(onx_comm *comm, bool failed);

#endif
