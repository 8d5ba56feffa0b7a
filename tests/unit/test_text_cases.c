/* test_text_cases.c - every construct of the text syntax and every error, from
 * tests/cases/text/{accepted,rejected}.case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct buffer {
    char *ptr;
    size_t len;
} buffer;

static void add(buffer *b, const char *text, size_t len)
{
    b->ptr = realloc(b->ptr, b->len + len + 1);
    assert_non_null(b->ptr);
    memcpy(b->ptr + b->len, text, len);
    b->len += len;
    b->ptr[b->len] = 0;
}

static onx_status collect(void *user, onx_str bytes)
{
    add(user, bytes.ptr, bytes.len);
    return ONX_OK;
}

static void add_diagnostics(onx_ctx *cx, buffer *out)
{
    char text[2048];
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        onx_diag_format(onx_diag_get(cx, i), text, sizeof text);
        add(out, text, strlen(text));
        add(out, "\n", 1);
    }
}

/* The canonical text, or the diagnostics. Reading and printing it again must change nothing. */
static buffer answer_of(onx_kind kind, onx_str text, bool *parsed)
{
    buffer out = { NULL, 0 }, again = { NULL, 0 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc, *other;
    *parsed = onx_text_parse(cx, kind, text, 0, &doc) == ONX_OK;
    if (!*parsed) {
        assert_null(doc);
        assert_true(onx_diag_total(cx, ONX_ERROR) > 0);
        add_diagnostics(cx, &out);
    } else {
        assert_int_equal(onx_text_print(cx, kind, onx_doc_root(doc, kind), NULL, (onx_sink){ collect, &out }), ONX_OK);
        assert_int_equal(onx_text_parse(cx, kind, onx_str_make(out.ptr, out.len), ONX_TEXT_BORROW, &other), ONX_OK);
        assert_true(onx_message_equal(kind, onx_doc_root(doc, kind), onx_doc_root(other, kind)));
        assert_int_equal(onx_text_print(cx, kind, onx_doc_root(other, kind), NULL, (onx_sink){ collect, &again }),
                         ONX_OK);
        assert_string_equal(out.ptr, again.ptr);
        onx_doc_free(other);
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    free(again.ptr);
    return out;
}

static buffer read_file(const char *path)
{
    buffer b = { NULL, 0 };
    char part[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        add(&b, part, n);
    fclose(file);
    return b;
}

/* The text of a case; <NUL> stands for a zero byte. */
static buffer text_of(const char *from, const char *to)
{
    buffer b = { NULL, 0 };
    add(&b, from, (size_t)(to - from));
    char *mark = strstr(b.ptr, "<NUL>");
    if (mark) {
        *mark = 0;
        memmove(mark + 1, mark + 5, b.len - (size_t)(mark + 5 - b.ptr));
        b.len -= 4;
    }
    return b;
}

static void run_cases(const char *path, bool accepted, size_t least)
{
    buffer file = read_file(path), updated = { NULL, 0 };
    size_t count = 0;
    char *at = strstr(file.ptr, "\n=== ");
    assert_non_null(at++);
    add(&updated, file.ptr, (size_t)(at - file.ptr));
    while (at) {
        char *title = at + 4, *text = strchr(title, '\n') + 1, *split = strstr(text - 1, "\n---\n"),
             *next = strstr(text, "\n=== ");
        assert_non_null(split);
        char *colon = strchr(title, ':');
        onx_kind kind = onx_kind_find(onx_str_make(title, (size_t)(colon - title)));
        assert_int_not_equal(kind, ONX_KIND_NONE);
        buffer source = text_of(text, split < text ? text : split);
        bool parsed;
        buffer answer = answer_of(kind, onx_str_make(source.ptr, source.len), &parsed);
        const char *want = split + 5;
        size_t want_len = next ? (size_t)(next + 1 - want) : strlen(want);
        while (want_len && want[want_len - 1] == '\n')
            want_len--;
        while (answer.len && answer.ptr[answer.len - 1] == '\n')
            answer.ptr[--answer.len] = 0;
        add(&updated, at, (size_t)(split + 5 - at));
        add(&updated, answer.ptr, answer.len);
        add(&updated, next ? "\n\n" : "\n", next ? 2 : 1);
        bool same = answer.len == want_len && memcmp(answer.ptr, want, want_len) == 0;
        if (!getenv("ONX_UPDATE_CASES") && (!same || parsed != accepted)) {
            print_error("%.*s\n--- wanted\n%.*s\n--- got\n%s\n", (int)(text - 1 - title), title, (int)want_len, want,
                        answer.ptr);
            fail();
        }
        if (parsed != accepted)
            print_error("%.*s: %s\n%s\n", (int)(text - 1 - title), title, parsed ? "accepted" : "refused", answer.ptr);
        free(answer.ptr);
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
    assert_true(count >= least);
    free(updated.ptr);
    free(file.ptr);
}

static void test_text_cases__accepted(void **state)
{
    (void)state;
    run_cases(ONX_SOURCE_DIR "/tests/cases/text/accepted.case", true, 90);
}

static void test_text_cases__rejected(void **state)
{
    (void)state;
    run_cases(ONX_SOURCE_DIR "/tests/cases/text/rejected.case", false, 85);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_cases__accepted),
        cmocka_unit_test(test_text_cases__rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
