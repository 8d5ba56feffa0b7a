/* Runs a model with an operator that ONNX does not have. The program registers it, or a shared library (the second
 * argument) does. custom_operator MODEL [LIBRARY] */
#include <onx/onx.h>
#include <onx/plugin.h>
#include <stdio.h>

extern const onx_op_def moving_average; /* moving_average.c */

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_registry *registry;
    onx_session *session;
    if (argc < 2 || !cx || onx_registry_new(cx, &registry) != ONX_OK)
        return 2;
    onx_status status = argc > 2 ? onx_plugin_load(registry, argv[2]) : onx_op_register(registry, &moving_average);
    /* onx_check, onx_infer_new and sessions take the registry as an option. */
    const onx_session_options options = { .struct_size = sizeof options, .registry = registry };
    if (status == ONX_OK)
        status = onx_session_load(cx, argv[1], NULL, &options, &session);
    if (status != ONX_OK) {
        fprintf(stderr, "%.*s\n", ONX_ARG(onx_diag_get(cx, 0)->message));
        return 1;
    }
    onx_value *x, *y = NULL;
    const int64_t dims[] = { 6 };
    if (onx_value_new_tensor(cx, ONX_FLOAT, 1, dims, &x) != ONX_OK)
        return 1;
    for (int i = 0; i < 6; i++)
        ((float *)x->data)[i] = (float)(i * i);
    if (onx_session_run(session, cx, (const onx_value *const[]){ x }, &y) != ONX_OK)
        return 1;
    for (uint64_t i = 0; i < y->count; i++)
        printf("%g\n", ((const float *)y->data)[i]);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(session);
    onx_registry_free(registry); /* only after the sessions that use it */
    onx_ctx_free(cx);
    return 0;
}
