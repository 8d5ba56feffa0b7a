/* bench_analysis.c - bench_analysis FILE: prints "DECODE STRUCTURE ALL INFER ENCODE", the minimum of several rounds in
 * ms of CPU time on one thread, each with a context of its own: reading the model, checking its structure as a session
 * does, applying all rules that need no inference, inferring types into the model, and writing the result. */
#include <onx/check.h>
#include <onx/infer.h>
#include <onx/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DECODE, STRUCTURE, ALL, INFER, ENCODE, FIGURES };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static char *slurp(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return NULL;
    long size = ftell(f);
    rewind(f);
    char *bytes = size < 0 ? NULL : malloc((size_t)size + 1);
    *len = size < 0 ? 0 : (size_t)size;
    if (bytes && fread(bytes, 1, *len, f) != *len)
        *len = 0;
    fclose(f);
    return bytes;
}

/* Measures one kind of work after decoding; *ms is its time. */
static onx_status work(onx_ctx *cx, onx_doc *doc, size_t len, int what, double *ms)
{
    onx_check_options options = { .flags = what == STRUCTURE ? ONX_CHECK_STRUCTURE : 0 };
    onx_buffer written = { 0 };
    if (what == ENCODE)
        ONX_TRY(onx_infer_model(cx, doc, NULL));
    double start = now_ms();
    onx_status status = what == INFER    ? onx_infer_model(cx, doc, NULL)
                        : what == ENCODE ? onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), len, &written)
                                         : onx_check(cx, doc, &options, NULL);
    *ms = now_ms() - start;
    onx_buffer_free(&written);
    return status;
}

static onx_status once(const char *bytes, size_t len, int what, double ms[FIGURES])
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    double taken = 0, start = now_ms();
    onx_status status = onx_read(cx, ONX_KIND_MODEL, onx_str_make(bytes, len), 0, 1, &doc);
    double decode = now_ms() - start;
    if (status == ONX_OK)
        status = work(cx, doc, len, what, &taken);
    ms[DECODE] = decode < ms[DECODE] ? decode : ms[DECODE];
    ms[what] = taken < ms[what] ? taken : ms[what];
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return status;
}

int main(int argc, char **argv)
{
    enum { ROUNDS = 11 };
    double ms[FIGURES] = { 1e9, 1e9, 1e9, 1e9, 1e9 };
    size_t len;
    char *bytes = argc == 2 ? slurp(argv[1], &len) : NULL;
    if (!bytes)
        return 2;
    for (int i = 0; i < ROUNDS; i++)
        for (int what = STRUCTURE; what < FIGURES; what++)
            if (once(bytes, len, what, ms) != ONX_OK)
                return 1;
    printf("%.3f %.3f %.3f %.3f %.3f\n", ms[DECODE], ms[STRUCTURE], ms[ALL], ms[INFER], ms[ENCODE]);
    free(bytes);
    return 0;
}
