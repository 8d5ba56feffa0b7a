/* cmd_fmt.c - `onx fmt`: rewrites ONNX text in its canonical style. */
#include "cli.h"

#include <onx/text.h>

#include <stdlib.h>

typedef struct buffer {
    char *ptr;
    size_t len, room;
} buffer;

static onx_status add(void *user, onx_str bytes)
{
    buffer *b = user;
    if (b->room - b->len < bytes.len) {
        size_t room = b->room * 2 > b->len + bytes.len ? b->room * 2 : b->len + bytes.len + 4096;
        char *bigger = realloc(b->ptr, room);
        if (!bigger)
            return ONX_E_MEMORY;
        b->ptr = bigger;
        b->room = room;
    }
    if (bytes.len)
        memcpy(b->ptr + b->len, bytes.ptr, bytes.len);
    b->len += bytes.len;
    return ONX_OK;
}

/* Writes the file if its text changes, or, with --check, only reports it. */
static int settle(cli_call *call, const char *path, const onx_buffer *before, const buffer *after, bool check)
{
    bool same = before->len == after->len && (before->len == 0 || memcmp(before->ptr, after->ptr, before->len) == 0);
    if (check) {
        if (!same)
            printf("%s\n", path);
        return same ? CLI_OK : CLI_FAULT;
    }
    if (strcmp(path, "-") == 0)
        return cli_stdout().write(cli_stdout().user, onx_str_make(after->ptr, after->len)) == ONX_OK ? CLI_OK
                                                                                                     : CLI_MISUSE;
    if (same)
        return CLI_OK;
    onx_status status = onx_output_claim(call->cx, path, true);
    return cli_exit(call,
                    status != ONX_OK ? status : onx_save_bytes(call->cx, path, onx_str_make(after->ptr, after->len)));
}

/* ONNX text may contain any bytes in its strings, but it never begins with a control character. */
static bool is_binary(const char *bytes, size_t len)
{
    enum { HEAD = 4 };
    size_t i = len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    for (; i < len && i < HEAD; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if ((c < 0x20 && !memchr("\t\n\r\f", c, 4)) || c == 0x7f)
            return true;
    }
    return false;
}

static int format_file(cli_call *call, const char *path, bool check)
{
    buffer after = { NULL, 0, 0 };
    onx_buffer before;
    onx_status status = cli_load_bytes(call, path, &before);
    int result = cli_exit(call, status);
    if (status == ONX_OK && before.len && is_binary(before.ptr, before.len)) {
        cli_error(call, "%s is binary data, not ONNX text", strcmp(path, "-") == 0 ? "standard input" : path);
        cli_hint("onx convert %s FILE.onnxtxt converts a model to text", path);
        result = CLI_FAULT;
        onx_buffer_free(&before);
    } else if (status == ONX_OK) {
        call->input = strcmp(path, "-") == 0 ? "standard input" : path;
        status =
            onx_text_format(call->cx, cli_kind(call), onx_str_make(before.ptr, before.len), (onx_sink){ add, &after });
        result = status == ONX_OK ? settle(call, path, &before, &after, check) : cli_exit(call, status);
        if (result == CLI_OK && !onx_diag_total(call->cx, ONX_WARNING))
            onx_diag_clear(call->cx); /* the notes concern the model, not its text */
        onx_buffer_free(&before);
    }
    cli_report(call);
    call->input = NULL;
    free(after.ptr);
    return result;
}

static int run_fmt(cli_call *call)
{
    int worst = CLI_OK;
    for (int i = 0; i < call->operand_count; i++) {
        int result = format_file(call, call->operand[i], cli_has(call, "check"));
        if (result > worst)
            worst = result;
    }
    return worst;
}

static const cli_option options[] = {
    CLI_OPTION_AS,
    { "check", 0, NULL, NULL, "write nothing; list the files that would change, and fail if there are any" },
    CLI_END,
};

const cli_command cmd_fmt = {
    .name = "fmt",
    .summary = "rewrite ONNX text in its canonical style",
    .operands = "FILE...",
    .help =
        "Comments and single empty lines stay where they are. A file with errors is left alone, and its errors are\n"
        "reported. - formats standard input to standard output.\n",
    .example = "onx fmt tests/*.onnxtxt\n"
               "onx fmt --check model.onnxtxt\n",
    .options = options,
    .run = run_fmt,
};
