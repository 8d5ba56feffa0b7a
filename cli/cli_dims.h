/* cli_dims.h - --dim NAME=N for inference. */
#ifndef ONX_CLI_DIMS_H
#define ONX_CLI_DIMS_H

#include "cli.h"

#include <onx/infer.h>

typedef struct cli_dims {
    onx_infer_fixed *list; /* never NULL after cli_dims_read returned true */
    uint32_t count;
} cli_dims;

/* Reads all values of --dim NAME=N; false with the error printed. Free in any case. */
bool cli_dims_read(const cli_call *call, cli_dims *out);
void cli_dims_free(cli_dims *dims);

#endif
