/* base_process.c - the one home of mutable data of the process (scripts/check_symbols allows it here alone). The system
 * keeps loaded libraries once per process, so what was found in them is kept so, too. */
#include "base/base_process.h"

static onxi_process process = { .library_lock = PTHREAD_MUTEX_INITIALIZER };

onxi_process *onxi_process_get(void)
{
    return &process;
}
