/* cli_dims.c - --dim NAME=N for inference. */
#include "cli_dims.h"

#include <stdlib.h>

void cli_dims_free(cli_dims *dims)
{
    for (uint32_t i = 0; dims->list && i < dims->count; i++)
        free((void *)(uintptr_t)dims->list[i].name);
    free(dims->list);
    *dims = (cli_dims){ 0 };
}

bool cli_dims_read(const cli_call *call, cli_dims *out)
{
    onx_str name;
    int64_t size;
    *out = (cli_dims){ .list = calloc((size_t)call->given_count + 1, sizeof *out->list) };
    int more = out->list ? 0 : -1;
    while (out->list && (more = cli_named_number(call, "dim", (int)out->count, false, &name, &size)) > 0) {
        char *copy = malloc(name.len + 1);
        if (!copy)
            break;
        memcpy(copy, name.ptr, name.len);
        copy[name.len] = '\0';
        out->list[out->count++] = (onx_infer_fixed){ copy, size };
    }
    if (!out->list || more > 0)
        cli_error(call, "out of memory");
    return out->list && more == 0;
}
