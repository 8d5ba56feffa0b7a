/* cli_file.c - reads the files named on the command line. */
#include "cli.h"

#include <unistd.h>

/* Does the path come from the command line, rather than from a folder listing? */
static bool is_given(const cli_call *call, const char *path)
{
    for (int i = 0; i < call->operand_count; i++)
        if (call->operand[i] == path)
            return true;
    for (int i = 0; i < call->given_count; i++) {
        const uintptr_t start = (uintptr_t)call->given_value[i];
        if ((uintptr_t)path >= start && (uintptr_t)path <= start + strlen(call->given_value[i]))
            return true;
    }
    return false;
}

/* Standard input can be read only once. */
static onx_status take(cli_call *call, const char *path)
{
    if (strcmp(path, "-") != 0)
        return ONX_OK;
    if (call->stdin_taken) {
        cli_error(call, "standard input is named twice, and can be read only once");
        return ONX_E_MISUSE;
    }
    call->stdin_taken = true;
    return ONX_OK;
}

onx_status cli_load_bytes(cli_call *call, const char *path, onx_buffer *out)
{
    *out = (onx_buffer){ 0 };
    ONX_TRY(take(call, path));
    return onx_load_bytes_as(call->cx, path, is_given(call, path) ? ONX_READ_STREAM : 0, out);
}

onx_status cli_load_as(cli_call *call, const char *path, onx_kind kind, onx_format format, onx_doc **out)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    onx_load_options options = { .format = format,
                                 .threads = cores > 1 ? (unsigned)cores : 1,
                                 .base_dir = kind == ONX_KIND_MODEL || cli_has(call, "as")
                                                 ? cli_value(call, "external-dir")
                                                 : NULL }; /* values of inputs have their own folders */
    if (cli_has(call, "lenient"))
        options.flags |= ONX_READ_LENIENT;
    if (cli_has(call, "external-links"))
        options.flags |= ONX_READ_LINKS;
    if (is_given(call, path))
        options.flags |= ONX_READ_STREAM;
    *out = NULL;
    ONX_TRY(take(call, path));
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

/* Escapes control characters as \xNN, because a terminal executes them, and models may contain any in names and
 * strings. */
static onx_status put_on_terminal(void *user, onx_str bytes)
{
    static char held[4]; /* an incomplete UTF-8 character that the next call may continue */
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
