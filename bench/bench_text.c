/* bench_text.c - bench_text MODEL TEXT: CPU time of printing MODEL as ONNX text and of parsing TEXT, minimum of several
 * rounds. */
#include <onx/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The reference library prints to a string, so the text is collected here, too. */
typedef struct text {
    char *ptr;
    size_t len, room;
} text;

static onx_status add(void *user, onx_str bytes)
{
    text *t = user;
    if (t->room - t->len < bytes.len) {
        t->room = (t->len + bytes.len) * 2;
        t->ptr = realloc(t->ptr, t->room);
        if (!t->ptr)
            return ONX_E_MEMORY;
    }
    memcpy(t->ptr + t->len, bytes.ptr, bytes.len);
    t->len += bytes.len;
    return ONX_OK;
}

static bool print_once(onx_ctx *cx, const onx_doc *doc, double *best)
{
    text out = { NULL, 0, 0 };
    double start = now();
    bool ok = onx_text_print(cx, ONX_KIND_MODEL, onx_doc_model(doc), NULL, (onx_sink){ add, &out }) == ONX_OK;
    double took = now() - start;
    if (took < *best)
        *best = took;
    free(out.ptr);
    return ok;
}

static bool parse_once(onx_ctx *cx, onx_str source, double *best)
{
    onx_doc *doc;
    double start = now();
    bool ok = onx_text_parse(cx, ONX_KIND_MODEL, source, 0, &doc) == ONX_OK;
    double took = now() - start;
    if (took < *best)
        *best = took;
    onx_doc_free(doc);
    return ok;
}

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *model = NULL;
    text source = { NULL, 0, 0 };
    char part[65536];
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    bool ok = cx && file && onx_load(cx, ONX_KIND_MODEL, argv[1], NULL, &model) == ONX_OK;
    for (size_t n; ok && (n = fread(part, 1, sizeof part, file)) > 0;)
        ok = add(&source, onx_str_make(part, n)) == ONX_OK;
    double print = 1e30, parse = 1e30;
    for (int i = 0; ok && i < ROUNDS; i++)
        ok = print_once(cx, model, &print) && parse_once(cx, onx_str_make(source.ptr, source.len), &parse);
    if (ok)
        printf("%.3f %.3f\n", print, parse);
    if (file)
        fclose(file);
    free(source.ptr);
    onx_doc_free(model);
    onx_ctx_free(cx);
    return ok ? 0 : 1;
}
