/* cli_file.c - reading what the command line names. */
#include "cli.h"

#include <unistd.h>

onx_status cli_load_as(cli_call *call, const char *path, onx_kind kind, onx_format format, onx_doc **out)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    onx_load_options options = { .format = format,
                                 .threads = cores > 1 ? (unsigned)cores : 1,
                                 .flags = cli_has(call, "lenient") ? ONX_READ_LENIENT : 0 };
    call->input = strcmp(path, "-") == 0 ? "standard input" : path;
    return onx_load(call->cx, kind, path, &options, out);
}

onx_status cli_load(cli_call *call, const char *path, onx_kind kind, onx_doc **out)
{
    return cli_load_as(call, path, kind, ONX_FORMAT_AUTO, out);
}

static onx_status put(void *user, onx_str bytes)
{
    return fwrite(bytes.ptr, 1, bytes.len, user) == bytes.len ? ONX_OK : ONX_E_IO;
}

onx_sink cli_stdout(void)
{
    return (onx_sink){ .write = put, .user = stdout };
}
