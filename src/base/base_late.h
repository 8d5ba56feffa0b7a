/* base_late.h - files whose bytes are read on demand, whether or not the system can map files. */
#ifndef ONXI_BASE_LATE_H
#define ONXI_BASE_LATE_H

#include "base/base.h"

/* Reserves memory for a file of `size` bytes (not 0), which must not become shorter; nothing is read yet. */
onx_status onxi_late_open(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out);

#endif
