/* wire_read_error.c - describes the position of the decoder for diagnostics. */
#include "wire/wire_read.h"

#include <stdio.h>

enum { PATH_MAX_LENGTH = 1024, FRAMES_SHOWN = 32 };

/* Formats graph.node[3].attribute[0] from the innermost FRAMES_SHOWN fields. */
static onx_str path_of(const onxi_reader_frame *f, char buf[PATH_MAX_LENGTH])
{
    const onxi_reader_frame *chain[FRAMES_SHOWN];
    size_t n = 0, len = 0;
    for (; f && n < FRAMES_SHOWN; f = f->up)
        if (f->field)
            chain[n++] = f;
    if (f)
        len += (size_t)snprintf(buf, PATH_MAX_LENGTH, "...");
    while (n-- > 0) {
        const onxi_field *field = chain[n]->field;
        int more = (field->flags & ONXI_REPEATED)
                       ? snprintf(buf + len, PATH_MAX_LENGTH - len, "%s%s[%llu]", len ? "." : "", field->name,
                                  (unsigned long long)chain[n]->index)
                       : snprintf(buf + len, PATH_MAX_LENGTH - len, "%s%s", len ? "." : "", field->name);
        if (more < 0 || (size_t)more >= PATH_MAX_LENGTH - len)
            break;
        len += (size_t)more;
    }
    return onx_str_make(buf, len);
}

static void report(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const onx_diag *what, const char *format,
                   va_list args)
{
    char buf[PATH_MAX_LENGTH];
    onx_diag d = *what;
    d.where.kind = ONX_AT_BYTE;
    d.where.byte = (uint64_t)(p - r->start);
    /* Beyond the limit diagnostics are only counted, so their paths are not built. */
    if (onx_diag_count(r->cx) < onx_ctx_limits(r->cx).diagnostics)
        d.where.path = path_of(f, buf);
    onxi_vreport(r->cx, &d, format, args);
}

const byte *onxi_reader_bad(onxi_reader *r, const onxi_reader_frame *f, const byte *p, onx_status status,
                            const char *rule, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(r, f, p, &(onx_diag){ .severity = ONX_ERROR, .status = status, .rule = rule }, format, args);
    va_end(args);
    r->failure = status;
    return NULL;
}

void onxi_reader_note(onxi_reader *r, const onxi_reader_frame *f, const byte *p, onx_severity severity,
                      const char *rule, const char *format, ...)
{
    va_list args;
    r->notes++;
    va_start(args, format);
    report(r, f, p, &(onx_diag){ .severity = severity, .rule = rule }, format, args);
    va_end(args);
}
