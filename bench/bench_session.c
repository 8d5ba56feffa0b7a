/* bench_session.c - bench_session FILE: prints "DECODE SESSION PLAN RUN", in ms of CPU time on one thread, the
 * minimum of several rounds: reading the model; making a session (checked, resolved, and planned if the inputs have
 * known shapes); the extra time of the first run, which plans; and a later run. Symbolic dimensions are 1. */
#include <onx/io.h>
#include <onx/run.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DECODE, SESSION, PLAN, RUN, FIGURES, INPUTS = 64, OUTPUTS = 64 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Makes zeros of the shape that the model declares. */
static onx_status make_input(onx_ctx *cx, const onx_type *type, onx_value **out)
{
    const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    int64_t dims[ONX_RANK_MAX];
    if (!t || !t->shape || t->shape->dim_count > ONX_RANK_MAX)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < t->shape->dim_count; i++)
        dims[i] = ONX_HAS(dimension, t->shape->dim[i], dim_value) ? t->shape->dim[i]->dim_value : 1;
    ONX_TRY(onx_value_new_tensor(cx, (onx_dtype)t->elem_type, t->shape->dim_count, dims, out));
    if ((*out)->size)
        memset((*out)->data, 0, (size_t)(*out)->size);
    return ONX_OK;
}

static onx_status run_twice(onx_ctx *cx, onx_session *s, double ms[FIGURES])
{
    onx_value *in[INPUTS] = { NULL }, *out[OUTPUTS] = { NULL };
    const uint32_t inputs = onx_session_input_count(s), outputs = onx_session_output_count(s);
    onx_status status = inputs > INPUTS || outputs > OUTPUTS ? ONX_E_UNSUPPORTED : ONX_OK;
    for (uint32_t i = 0; status == ONX_OK && i < inputs; i++)
        if (onx_session_input(s, i).required)
            status = make_input(cx, onx_session_input(s, i).type, &in[i]);
    for (int round = 0; round < 2 && status == ONX_OK; round++) {
        const double start = now_ms();
        status = onx_session_run(s, cx, (const onx_value *const *)in, out);
        ms[round ? RUN : PLAN] = now_ms() - start;
    }
    ms[PLAN] = ms[PLAN] > ms[RUN] ? ms[PLAN] - ms[RUN] : 0;
    for (uint32_t i = 0; i < INPUTS; i++)
        onx_value_free(in[i]);
    for (uint32_t i = 0; i < OUTPUTS; i++)
        onx_value_free(out[i]);
    return status;
}

static onx_status once(const char *path, double ms[FIGURES])
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    onx_session *s = NULL;
    double start = now_ms();
    onx_status status = onx_load(cx, ONX_KIND_MODEL, path, NULL, &doc);
    ms[DECODE] = now_ms() - start;
    start = now_ms();
    if (status == ONX_OK)
        status = onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &s);
    ms[SESSION] = now_ms() - start;
    if (status == ONX_OK)
        status = run_twice(cx, s, ms);
    if (status != ONX_OK && onx_diag_count(cx)) {
        char why[300];
        onx_diag_format(onx_diag_get(cx, 0), why, sizeof why);
        fprintf(stderr, "%s\n", why);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return status;
}

int main(int argc, char **argv)
{
    enum { ROUNDS = 5 };
    double best[FIGURES] = { 1e30, 1e30, 1e30, 1e30 }, ms[FIGURES];
    if (argc != 2)
        return 2;
    for (int round = 0; round < ROUNDS; round++) {
        if (once(argv[1], ms) != ONX_OK)
            return 1;
        for (int i = 0; i < FIGURES; i++)
            best[i] = ms[i] < best[i] ? ms[i] : best[i];
    }
    printf("%.3f %.3f %.3f %.3f\n", best[DECODE], best[SESSION], best[PLAN], best[RUN]);
    return 0;
}
