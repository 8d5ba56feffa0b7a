/* cli_view_request.c - parses and validates requests to the page server. */
#include "cli_view_page.h"

/* Splits off the first line of the text, without its line end. */
static onx_str next_line(onx_str *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    onx_str line = onx_str_make(text->ptr, end ? (size_t)(end - text->ptr) : text->len);
    const size_t taken = line.len + (end ? 1 : 0);
    *text = onx_str_make(text->ptr + taken, text->len - taken);
    while (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

static bool starts(onx_str text, const char *word)
{
    return text.len >= strlen(word) && strncasecmp(text.ptr, word, strlen(word)) == 0;
}

/* The value of the header with this name. False if there is none, or more than one, because other software might use a
 * different one. */
static bool header(onx_str lines, const char *name, onx_str *value)
{
    unsigned found = 0;
    while (lines.len) {
        onx_str line = next_line(&lines);
        if (!line.len)
            break;
        if (!starts(line, name))
            continue;
        line = onx_str_make(line.ptr + strlen(name), line.len - strlen(name));
        for (; line.len && (*line.ptr == ' ' || *line.ptr == '\t'); line.len--)
            line.ptr++;
        while (line.len && (line.ptr[line.len - 1] == ' ' || line.ptr[line.len - 1] == '\t'))
            line.len--;
        *value = line;
        found++;
    }
    return found == 1;
}

int cli_view_request(onx_str head, uint16_t port, bool *with_body)
{
    char by_number[32], by_name[32];
    snprintf(by_number, sizeof by_number, "127.0.0.1:%u", port);
    snprintf(by_name, sizeof by_name, "localhost:%u", port);
    const onx_str line = next_line(&head);
    const bool get = line.len >= 4 && memcmp(line.ptr, "GET ", 4) == 0;
    onx_str host;
    *with_body = get;
    if (!get && !(line.len >= 5 && memcmp(line.ptr, "HEAD ", 5) == 0))
        return 405;
    /* Rejects other Host names: a foreign page could use DNS rebinding to reach this server under its own name. */
    if (!header(head, "host:", &host) || (!onx_str_is(host, by_number) && !onx_str_is(host, by_name)))
        return 403;
    const onx_str path = onx_str_make(line.ptr + (get ? 4 : 5), line.len - (get ? 4 : 5));
    return starts(path, "/ ") || starts(path, "/?") ? 200 : 404;
}
