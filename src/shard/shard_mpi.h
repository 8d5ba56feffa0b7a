/* shard_mpi.h - what libonx-mpi.so exports to this library, which loads it when MPI is asked for. */
#ifndef ONXI_SHARD_MPI_H
#define ONXI_SHARD_MPI_H

#include <onx/shard.h>

/* Ranks of the MPI communicator at `communicator` (NULL: MPI_COMM_WORLD), for which MPI is started where that has not
 * been done. NULL in *why, or what went wrong. */
ONX_API onx_status onx_mpi_open(const void *communicator, onx_comm *out, const char **why);
/* The end: in order, or, after a failure, of all ranks at once. MPI is ended where onx_mpi_open has started it. */
ONX_API void onx_mpi_close(onx_comm *comm, bool failed);

#endif
