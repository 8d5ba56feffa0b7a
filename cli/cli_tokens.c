/* cli_tokens.c - tokenizers for commands: finding the file, lists of ids, and decoding ids as they are generated. */
#include "cli_tokens.h"

#include "cli_files.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- ids ---- */

bool cli_ids_add(const cli_call *call, cli_ids *list, int64_t id)
{
    if (list->count == list->room) {
        const uint64_t room = list->room ? 2 * list->room : 256;
        int64_t *more = realloc(list->ids, room * sizeof *more);
        if (!more) {
            cli_error(call, "out of memory");
            return false;
        }
        list->ids = more;
        list->room = room;
    }
    list->ids[list->count++] = id;
    return true;
}

bool cli_ids_read(const cli_call *call, const char *option, const char *text, cli_ids *out)
{
    const char *p = text + strspn(text, " \t\r\n");
    while (*p) {
        char *end;
        const long long id = strtoll(p, &end, 10);
        if (end == p || id < 0 || id > INT32_MAX || (*end && !strchr(", \t\r\n", *end))) {
            cli_error(call, "%s%s%s%s: a list of token ids is written like 1,2,3", option ? "--" : "",
                      option ? option : "", option ? " " : "", text);
            return false;
        }
        if (!cli_ids_add(call, out, id))
            return false;
        p = end + strspn(end, ", \t\r\n");
    }
    return true;
}

void cli_put_ids(cli_json *json, const char *key, const int64_t *ids, uint64_t count)
{
    cli_json_open(json, key, '[');
    for (uint64_t i = 0; i < count; i++)
        cli_json_int(json, NULL, ids[i]);
    cli_json_close(json, ']');
}

/* ---- files ---- */

char *cli_beside(const cli_call *call, const char *model, const char *name)
{
    return cli_beside_in(call, model, "", name);
}

char *cli_beside_in(const cli_call *call, const char *model, const char *up, const char *name)
{
    const char *slash = strrchr(model, '/');
    if (strcmp(model, "-") == 0)
        return NULL;
    char dir[4096];
    const int len = snprintf(dir, sizeof dir, "%.*s%s", slash ? (int)(slash - model) + 1 : 2, slash ? model : "./", up);
    char *path = len > 0 && (size_t)len < sizeof dir ? cli_join(call, dir, name) : NULL;
    if (path && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static onx_status load_tokenizer(cli_call *call, const char *path, onx_tokenizer **out)
{
    onx_buffer bytes = { 0 };
    ONX_TRY(cli_load_bytes(call, path, &bytes));
    const onx_status status = onx_tokenizer_new(call->cx, onx_str_make(bytes.ptr, bytes.len), out);
    if (status != ONX_OK) { /* diagnostics concern the tokenizer file, not the model */
        const char *input = call->input;
        call->input = path;
        cli_report(call);
        call->input = input;
    }
    onx_buffer_free(&bytes);
    return status;
}

onx_status cli_load_tokenizer(cli_call *call, const char *path, onx_tokenizer **out)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer.model" };
    if (!cli_is_folder(path))
        return load_tokenizer(call, path, out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *file = cli_join(call, path, names[i]);
        const bool there = file && access(file, R_OK) == 0;
        const onx_status status = there ? load_tokenizer(call, file, out) : ONX_OK;
        free(file);
        if (there || !file)
            return file ? status : ONX_E_MEMORY;
    }
    cli_error(call, "%s: there is neither tokenizer.json nor tokenizer.model", path);
    return ONX_E_MISUSE;
}

/* ---- decoding ids as they are generated ---- */

enum { KEPT = 4 }; /* number of old ids that are decoded again together with the new ones */

static onx_status append(cli_stream *s, const char *bytes, size_t len)
{
    if (s->len + len + 1 > s->room) {
        const size_t room = 2 * (s->len + len + 1);
        char *more = realloc(s->text, room);
        if (!more) {
            cli_error(s->call, "out of memory");
            return ONX_E_MEMORY;
        }
        s->text = more;
        s->room = room;
    }
    if (len)
        memcpy(s->text + s->len, bytes, len);
    s->len += len;
    s->text[s->len] = 0;
    return ONX_OK;
}

/* Appends the text of the new ids; an incomplete UTF-8 character is held back until the rest arrives. */
onx_status cli_stream_on(cli_stream *s, bool last)
{
    onx_buffer before = { 0 }, all = { 0 };
    const int64_t *ids = s->ids->ids + s->from;
    if (s->done == s->ids->count)
        return ONX_OK;
    onx_status status = onx_tokenizer_decode(s->tokenizer, ids, s->done - s->from, false, &before);
    if (status == ONX_OK)
        status = onx_tokenizer_decode(s->tokenizer, ids, s->ids->count - s->from, false, &all);
    const bool cut = all.len >= 3 && memcmp(all.ptr + all.len - 3, "\xef\xbf\xbd", 3) == 0;
    if (status == ONX_OK && (last || !cut)) {
        if (all.len > before.len)
            status = append(s, all.ptr + before.len, all.len - before.len);
        s->from = s->done - s->from > KEPT ? s->done - KEPT : s->from;
        s->done = s->ids->count;
    }
    onx_buffer_free(&before);
    onx_buffer_free(&all);
    return status;
}

void cli_stream_free(cli_stream *s)
{
    free(s->text);
}
