/* bench_check.c - bench_check FILE: prints "DECODE STRUCTURE ALL", the best of several rounds in ms of processor time
 * on one thread: reading the model, checking its structure as a session does, and applying all rules that need no
 * inference. */
#include <onx/check.h>
#include <onx/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

int main(int argc, char **argv)
{
    enum { ROUNDS = 11 };
    static const uint32_t flags[] = { ONX_CHECK_STRUCTURE, 0 };
    double decode = 1e9, check[2] = { 1e9, 1e9 };
    size_t len;
    char *bytes = argc == 2 ? slurp(argv[1], &len) : NULL;
    if (!bytes)
        return 2;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc = NULL;
        onx_check_options options = { .flags = flags[i % 2] };
        double t0 = now_ms();
        onx_status status = onx_read(cx, ONX_KIND_MODEL, onx_str_make(bytes, len), 0, 1, &doc);
        double t1 = now_ms();
        if (status == ONX_OK)
            status = onx_check(cx, doc, &options, NULL);
        double t2 = now_ms();
        if (t1 - t0 < decode)
            decode = t1 - t0;
        if (t2 - t1 < check[i % 2])
            check[i % 2] = t2 - t1;
        onx_doc_free(doc);
        onx_ctx_free(cx);
        if (status != ONX_OK)
            return 1;
    }
    printf("%.3f %.3f %.3f\n", decode, check[0], check[1]);
    free(bytes);
    return 0;
}
