/* cli_json.c - writes JSON to standard output. */
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

void cli_json_put_string(FILE *to, onx_str s)
{
    size_t plain = 0; /* start of the characters that need no escape */
    fputc('"', to);
    for (size_t i = 0; i < s.len;) {
        uint32_t c = 0;
        const size_t n = cli_utf8_char(onx_str_make(s.ptr + i, s.len - i), &c);
        const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0); /* which a terminal might execute */
        if (n && !control && c != '"' && c != '\\') {
            i += n;
            continue;
        }
        fwrite(s.ptr + plain, 1, i - plain, to);
        if (n == 0)
            fputs("\\ufffd", to);
        else if (control)
            fprintf(to, "\\u%04x", c);
        else
            fprintf(to, "\\%c", s.ptr[i]);
        i += n ? n : 1;
        plain = i;
    }
    if (plain < s.len)
        fwrite(s.ptr + plain, 1, s.len - plain, to);
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

void cli_json_opsets(cli_json *json, onx_operator_set_id *const *imports, uint32_t count)
{
    cli_json_open(json, "opset_import", '[');
    for (uint32_t i = 0; i < count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "domain", onx_view(imports[i]->domain));
        cli_json_int(json, "version", imports[i]->version);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}
