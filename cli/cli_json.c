/* cli_json.c - writing JSON on standard output. */
#include "cli.h"

#include <math.h>

static void begin(cli_json *json, const char *key)
{
    if (json->depth) {
        fputs(json->has_items ? ",\n" : "\n", json->to);
        fprintf(json->to, "%*s", (int)(2 * json->depth), "");
    }
    json->has_items = true;
    if (key)
        fprintf(json->to, "\"%s\": ", key); /* keys are ours and need no escapes */
}

void cli_json_open(cli_json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->to);
    json->depth++;
    json->has_items = false;
}

void cli_json_close(cli_json *json, char bracket)
{
    json->depth--;
    if (json->has_items)
        fprintf(json->to, "\n%*s", (int)(2 * json->depth), "");
    fputc(bracket, json->to);
    json->has_items = true;
    if (json->depth == 0)
        fputc('\n', json->to);
}

/* Bytes of the well-formed UTF-8 character at the start; 0 when it is none. */
static size_t utf8_length(const unsigned char *p, size_t len)
{
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : 0;
    if (n == 0 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
               (p[0] == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : n;
}

void cli_json_put_string(FILE *to, onx_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t plain = 0; /* where what needs no escape begins */
    fputc('"', to);
    for (size_t i = 0; i < s.len;) {
        const size_t n = utf8_length(p + i, s.len - i);
        const bool control = p[i] < 0x20 || p[i] == 0x7f;
        const bool c1 = n == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0; /* which a terminal may obey */
        if (n && !control && !c1 && p[i] != '"' && p[i] != '\\') {
            i += n;
            continue;
        }
        fwrite(p + plain, 1, i - plain, to);
        if (n == 0)
            fputs("\\ufffd", to);
        else if (control || c1)
            fprintf(to, "\\u%04x", p[i + c1]);
        else
            fprintf(to, "\\%c", p[i]);
        i += n ? n : 1;
        plain = i;
    }
    if (plain < s.len)
        fwrite(p + plain, 1, s.len - plain, to);
    fputc('"', to);
}

void cli_json_text(cli_json *json, const char *key, onx_str value)
{
    begin(json, key);
    cli_json_put_string(json->to, value);
}

void cli_json_cstr(cli_json *json, const char *key, const char *value)
{
    begin(json, key);
    if (value)
        cli_json_put_string(json->to, onx_str_of(value));
    else
        fputs("null", json->to);
}

void cli_json_int(cli_json *json, const char *key, int64_t value)
{
    begin(json, key);
    fprintf(json->to, "%lld", (long long)value);
}

void cli_json_uint(cli_json *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->to, "%llu", (unsigned long long)value);
}

void cli_json_real(cli_json *json, const char *key, double value)
{
    begin(json, key);
    if (isfinite(value))
        fprintf(json->to, "%.9g", value);
    else
        fputs("null", json->to);
}

void cli_json_bool(cli_json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->to);
}

FILE *cli_json_raw(cli_json *json, const char *key)
{
    begin(json, key);
    return json->to;
}
