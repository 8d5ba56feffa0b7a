/* cases.h - tests given as data: a file of cases, each with "=== title", a text, "---", and the expected answer. With
 * ONX_UPDATE_CASES=1 the answers are rewritten, so that differences can be reviewed. Include after cmocka.h. */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include <onx/base.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cases_buffer {
    char *ptr; /* terminated */
    size_t len;
} cases_buffer;

static inline void cases_add(cases_buffer *b, const char *text, size_t len)
{
    b->ptr = realloc(b->ptr, b->len + len + 1);
    assert_non_null(b->ptr);
    if (len)
        memcpy(b->ptr + b->len, text, len);
    b->len += len;
    b->ptr[b->len] = 0;
}

static inline void cases_add_text(cases_buffer *b, const char *text)
{
    cases_add(b, text, strlen(text));
}

/* The sink for printers. */
static inline onx_status cases_collect(void *user, onx_str bytes)
{
    cases_add(user, bytes.ptr, bytes.len);
    return ONX_OK;
}

static inline void cases_add_diagnostics(onx_ctx *cx, cases_buffer *out)
{
    char text[2048];
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        onx_diag_format(onx_diag_get(cx, i), text, sizeof text);
        cases_add_text(out, text);
        cases_add_text(out, "\n");
    }
}

/* What the first line of a file says that it needs: "# needs: com.microsoft". Of length 0: nothing. */
static inline onx_str cases_need(const cases_buffer *file)
{
    static const char words[] = "# needs: ";
    const size_t len = sizeof words - 1;
    return strncmp(file->ptr, words, len) == 0 ? onx_str_make(file->ptr + len, strcspn(file->ptr + len, "\n"))
                                               : onx_str_make("", 0);
}

static inline cases_buffer cases_read(const char *path)
{
    cases_buffer b = { NULL, 0 };
    char part[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    cases_add(&b, "", 0);
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        cases_add(&b, part, n);
    fclose(file);
    return b;
}

/* The text of a case; <NUL> stands for a zero byte. */
static inline cases_buffer cases_source(const char *from, const char *to)
{
    cases_buffer b = { NULL, 0 };
    cases_add(&b, from, (size_t)(to - from));
    char *mark = strstr(b.ptr, "<NUL>");
    if (mark) {
        *mark = 0;
        memmove(mark + 1, mark + 5, b.len - (size_t)(mark + 5 - b.ptr));
        b.len -= 4;
    }
    return b;
}

/* A case while it is looked at. */
typedef struct cases_case {
    onx_str title, text;
    onx_str options; /* what is written after the three dashes */
    onx_str want;
    void *user;
    cases_buffer got; /* the answer; what `same` says of it is up to whoever gives it */
    bool same;
} cases_case;

/* Visits every case of the file, which sets `got` and `same`; those that are not the same fail together at the end.
 * Returns how many there are. */
static inline size_t cases_visit(const char *path, void (*visit)(cases_case *), void *user)
{
    cases_buffer file = cases_read(path), updated = { NULL, 0 };
    size_t count = 0, failed = 0;
    char *at = strstr(file.ptr, "\n=== ");
    assert_non_null(at++);
    cases_add(&updated, file.ptr, (size_t)(at - file.ptr));
    while (at) {
        char *title = at + 4, *text = strchr(title, '\n') + 1, *next = strstr(text, "\n=== "),
             *split = strstr(text - 1, "\n---");
        while (split && split[4] != '\n' && split[4] != ' ')
            split = strstr(split + 1, "\n---");
        if (!split || (next && split > next)) {
            print_error("%s: %.*s has no answer\n", path, (int)(text - 1 - title), title);
            fail();
        }
        cases_buffer source = cases_source(text, split < text ? text : split);
        char *options = split + 4, *want = strchr(options, '\n') + 1;
        size_t want_len = next ? (size_t)(next + 1 - want) : strlen(want);
        while (want_len && want[want_len - 1] == '\n')
            want_len--;
        cases_case c = { .title = onx_str_make(title, (size_t)(text - 1 - title)),
                         .text = onx_str_make(source.ptr, source.len),
                         .options = onx_str_make(options, (size_t)(want - 1 - options)),
                         .want = onx_str_make(want, want_len),
                         .user = user };
        visit(&c);
        cases_add(&updated, at, (size_t)(want - at));
        cases_add(&updated, c.same ? want : c.got.ptr, c.same ? want_len : c.got.len);
        cases_add(&updated, next ? "\n\n" : "\n", next ? 2 : 1);
        if (!c.same && !getenv("ONX_UPDATE_CASES")) {
            print_error("%s: %.*s\n--- wanted\n%.*s\n--- got\n%s\n", path, (int)c.title.len, title, (int)want_len, want,
                        c.got.ptr);
            failed++;
        }
        free(c.got.ptr);
        free(source.ptr);
        count++;
        at = next ? next + 1 : NULL;
    }
    if (getenv("ONX_UPDATE_CASES")) {
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(updated.ptr, 1, updated.len, out), updated.len);
        fclose(out);
    }
    free(updated.ptr);
    free(file.ptr);
    assert_int_equal(failed, 0);
    return count;
}

typedef struct cases_asked {
    cases_buffer (*answer)(onx_str title, onx_str text);
} cases_asked;

static inline void cases_ask(cases_case *c)
{
    c->got = ((const cases_asked *)c->user)->answer(c->title, c->text);
    while (c->got.len && c->got.ptr[c->got.len - 1] == '\n')
        c->got.ptr[--c->got.len] = 0;
    c->same = c->got.len == c->want.len && memcmp(c->got.ptr, c->want.ptr, c->want.len) == 0;
}

/* Runs every case of the file: `answer` gets title and text, and its answer must be the very text that is wanted. There
 * must be `least` of them. */
static inline void cases_run(const char *path, size_t least, cases_buffer (*answer)(onx_str title, onx_str text))
{
    cases_asked asked = { answer };
    assert_true(cases_visit(path, cases_ask, &asked) >= least);
}

#endif
