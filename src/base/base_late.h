/* base_late.h - files whose bytes are read when they are needed, whether or not the system has mappings. */
#ifndef ONXI_BASE_LATE_H
#define ONXI_BASE_LATE_H

#include "base/base.h"

/* Room for a file of that size (not 0), which must not become shorter; nothing is read. */
onx_status onxi_late_open(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out);

#endif
