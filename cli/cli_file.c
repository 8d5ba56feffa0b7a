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

/* A terminal obeys control characters, and a model may hold any in its names and strings: they print as \xNN. */
static onx_status put_on_terminal(void *user, onx_str bytes)
{
    static char held[4]; /* a character of UTF-8 that may go on in the next call */
    static size_t held_count;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        if (held_count && ((c & 0xc0) != 0x80 || held_count == sizeof held)) {
            cli_put_text(user, onx_str_make(held, held_count));
            held_count = 0;
        }
        if (c >= 0x80)
            held[held_count++] = bytes.ptr[i];
        else if (c == '\n' || c == '\t')
            putc(c, user);
        else
            cli_put_text(user, onx_str_make(&bytes.ptr[i], 1));
    }
    return ferror(user) ? ONX_E_IO : ONX_OK;
}

onx_sink cli_stdout(void)
{
    return (onx_sink){ .write = cli_is_terminal(stdout) ? put_on_terminal : put, .user = stdout };
}
