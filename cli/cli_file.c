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

onx_format cli_format(const cli_call *call, const char *option)
{
    static const struct {
        const char *word;
        onx_format format;
    } formats[] = {
        { "onnx", ONX_FORMAT_BINARY },
        { "onnxtxt", ONX_FORMAT_ONNXTXT },
        { "textproto", ONX_FORMAT_TEXTPROTO },
        { "json", ONX_FORMAT_JSON },
    };
    const char *word = cli_value(call, option);
    for (size_t i = 0; word && i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(formats[i].word, word) == 0)
            return formats[i].format;
    return ONX_FORMAT_AUTO;
}

onx_format cli_format_out(const cli_call *call, const char *path)
{
    onx_format format = cli_format(call, "to");
    if (format == ONX_FORMAT_AUTO)
        format = strcmp(path, "-") == 0 ? ONX_FORMAT_BINARY : onx_format_of_path(path);
    return format;
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
