/* Runs a model with made-up inputs and prints what comes out: run MODEL. */
#include <onx/onx.h>
#include <stdio.h>

/* Says what went wrong, and where. */
static int fail(const onx_ctx *cx)
{
    char text[1000];
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        onx_diag_format(onx_diag_get(cx, i), text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return 1;
}

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_session *session;
    if (argc < 2 || !cx || onx_session_load(cx, argv[1], NULL, NULL, &session) != ONX_OK)
        return fail(cx);

    /* The first input, 1 x 1 x 8 x 8 floats in our own memory, and all outputs, which the run makes. */
    float pixels[64];
    for (int i = 0; i < 64; i++)
        pixels[i] = i % 8 % 3 == 1 ? 1 : 0; /* vertical stripes */
    const int64_t dims[] = { 1, 1, 8, 8 };
    const onx_memory memory = { .dtype = ONX_FLOAT, .rank = 4, .dims = dims, .data = pixels, .size = sizeof pixels };
    onx_value *input, *output = NULL;
    if (onx_value_wrap(cx, &memory, &input) != ONX_OK ||
        onx_session_run(session, cx, (const onx_value *const[]){ input }, &output) != ONX_OK)
        return fail(cx);

    const float *y = output->data;
    for (uint64_t i = 0; i < output->count; i++)
        printf("%.3f\n", y[i]);
    onx_value_free(input);
    onx_value_free(output);
    onx_session_free(session);
    onx_ctx_free(cx);
    return 0;
}
