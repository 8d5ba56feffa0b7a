/* text_out.c - the printer's output: a buffer from which lines can be removed again; names, strings and numbers. */
#include "text/text.h"

enum { FLUSH_AT = 1 << 20, OUT_MAX = 1 << 26, FIRST_ROOM = 4096 };

bool onxi_text_out_grow(onxi_text_printer *o, size_t more)
{
    if (o->status != ONX_OK) {
        o->len = o->line = 0; /* after a failure the buffer is overwritten */
        return more <= o->room;
    }
    const size_t wanted = o->len + more;
    if (ONXI_GROW(o->cx, o->buf, o->room, wanted < FIRST_ROOM ? FIRST_ROOM : wanted))
        return true;
    o->status = ONX_E_MEMORY;
    return false;
}

static bool send(onxi_text_printer *o, const char *text, size_t len)
{
    if (o->status == ONX_OK && len)
        o->status = o->sink.write(o->sink.user, onx_str_make(text, len));
    return o->status == ONX_OK;
}

void onxi_text_out_flush(onxi_text_printer *o, bool all)
{
    /* Until the first flush the whole text is in memory, so that the comment about kept parts can be put first. */
    if (!all && (o->holding || o->narrow || o->len < (o->flushed ? (size_t)FLUSH_AT : (size_t)OUT_MAX)))
        return;
    if (!o->flushed) {
        char head[4096];
        o->flushed = true;
        onxi_text_kept_summary(o, head, sizeof head);
        send(o, head, strlen(head));
    }
    size_t done = all ? o->len : o->line;
    send(o, o->buf, done);
    if (done < o->len)
        memmove(o->buf, o->buf + done, o->len - done);
    o->len -= done;
    o->line = 0;
}

onxi_text_out_mark onxi_text_out_try(onxi_text_printer *o)
{
    onxi_text_out_mark mark = { o->len, o->line, o->keep_len, o->narrow, o->broken };
    o->holding++;
    o->narrow = true;
    return mark;
}

bool onxi_text_out_done(onxi_text_printer *o, onxi_text_out_mark mark, bool kept)
{
    bool fits = !onxi_text_out_stop(o) && (kept || o->keep_len == mark.keep_len);
    o->holding--;
    o->narrow = mark.narrow;
    if (fits)
        return true;
    if (mark.narrow)
        o->broken = true; /* enclosing parts do not fit on the line either */
    else
        o->broken = mark.broken;
    o->len = mark.len;
    o->line = mark.line;
    o->keep_len = mark.keep_len;
    return false;
}

void onxi_text_put_uint(onxi_text_printer *o, uint64_t value)
{
    char digits[20];
    size_t n = sizeof digits;
    do {
        digits[--n] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    onxi_text_write(o, digits + n, sizeof digits - n);
}

void onxi_text_put_int(onxi_text_printer *o, int64_t value)
{
    if (value < 0)
        onxi_text_put_char(o, '-');
    onxi_text_put_uint(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void onxi_text_put_float(onxi_text_printer *o, float value)
{
    char text[40];
    size_t n = onxi_print_f32(text, value);
    bool whole = true;
    for (size_t i = 0; i < n && whole; i++)
        whole = text[i] == '-' || onxi_text_char_is(text[i], ONXI_CHAR_DIGIT);
    onxi_text_write(o, text, n);
    if (whole)
        ONXI_PUT(o, ".0");
}

void onxi_text_put_string(onxi_text_printer *o, onx_str s)
{
    onxi_text_put_char(o, '"');
    size_t from = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != '"' && s.ptr[i] != '\\')
            continue;
        onxi_text_write(o, s.ptr + from, i - from);
        onxi_text_put_char(o, '\\');
        from = i;
    }
    if (s.len > from)
        onxi_text_write(o, s.ptr + from, s.len - from);
    const char *last = s.len ? memrchr(s.ptr, '\n', s.len) : NULL;
    onxi_text_put_char(o, '"');
    if (last && o->status == ONX_OK) /* the column counts from the last line break */
        o->line = o->len - 1 - (size_t)(s.ptr + s.len - 1 - last);
}

void onxi_text_put_name(onxi_text_printer *o, onx_str s)
{
    if (onxi_text_is_ident(s))
        onxi_text_write(o, s.ptr, s.len);
    else
        onxi_text_put_string(o, s);
}

void onxi_text_put_value_name(onxi_text_printer *o, onx_str s)
{
    if (onxi_text_is_ident(s) && !onxi_text_is_type_word(s))
        onxi_text_write(o, s.ptr, s.len);
    else
        onxi_text_put_string(o, s);
}

void onxi_text_put_line(onxi_text_printer *o)
{
    static const char spaces[] = "                                                                ";
    if (o->narrow) {
        o->broken = true;
        return;
    }
    onxi_text_put_char(o, '\n');
    o->line = o->len;
    for (size_t left = o->indent; left > 0;) {
        size_t n = left < sizeof spaces - 1 ? left : sizeof spaces - 1;
        onxi_text_write(o, spaces, n);
        left -= n;
    }
}
