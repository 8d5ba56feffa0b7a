/* Runs a model repeatedly on buffers of the program: the loop copies no tensors and allocates nothing.
 * bound_memory MODEL */
#include <onx/onx.h>
#include <stdio.h>

static onx_value *wrap(onx_ctx *cx, float *data, uint64_t size, uint32_t rank, const int64_t *dims)
{
    const onx_memory memory = { .dtype = ONX_FLOAT, .rank = rank, .dims = dims, .data = data, .size = size };
    onx_value *value;
    return onx_value_wrap(cx, &memory, &value) == ONX_OK ? value : NULL;
}

int main(int argc, char **argv)
{
    /* Kernels write directly into output buffers aligned to 16 bytes. Other buffers get a copy at the end of the run.
     */
    static _Alignas(16) float pixels[64], scores[4];
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_session *session;
    if (argc < 2 || !cx || onx_session_load(cx, argv[1], NULL, NULL, &session) != ONX_OK)
        return 1;
    onx_named_value in[] = { { "image", wrap(cx, pixels, sizeof pixels, 4, (const int64_t[]){ 1, 1, 8, 8 }) } };
    onx_named_value out[] = { { "probability", wrap(cx, scores, sizeof scores, 2, (const int64_t[]){ 1, 4 }) } };
    if (!in[0].value || !out[0].value)
        return 1;
    for (int phase = 0; phase < 4; phase++) {
        for (int i = 0; i < 64; i++) { /* stripes whose direction changes from frame to frame */
            const int row = i / 8, column = i % 8, across[] = { row, column, row + 16 - column, row + column };
            pixels[i] = across[phase] % 3 == 1 ? 1 : 0;
        }
        if (onx_session_run_named(session, cx, in, 1, out, 1, NULL) != ONX_OK)
            return 1;
        printf("%.2f %.2f %.2f %.2f\n", scores[0], scores[1], scores[2], scores[3]);
    }
    onx_value_free(in[0].value);
    onx_value_free(out[0].value);
    onx_session_free(session);
    onx_ctx_free(cx);
    return 0;
}
