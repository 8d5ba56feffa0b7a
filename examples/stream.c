/* A model with a state, fed step by step: what comes out as the state goes in again, without a copy. The model is the
 * exponential average of examples/average.onnxtxt; numbers come from standard input. stream MODEL */
#include <onx/onx.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_session *session;
    if (argc < 2 || !cx || onx_session_load(cx, argv[1], NULL, NULL, &session) != ONX_OK)
        return 1;
    uint32_t x_at, state_at, next_at; /* where the model has them, asked once */
    if (!onx_session_find_input(session, onx_str_of("x"), &x_at) ||
        !onx_session_find_input(session, onx_str_of("state"), &state_at) ||
        !onx_session_find_output(session, onx_str_of("next"), &next_at) || onx_session_input_count(session) != 2 ||
        onx_session_output_count(session) != 1)
        return 1;

    onx_value *x, *state, *next = NULL;
    const int64_t dims[] = { 1 };
    if (onx_value_new_tensor(cx, ONX_FLOAT, 1, dims, &x) != ONX_OK ||
        onx_value_new_tensor(cx, ONX_FLOAT, 1, dims, &state) != ONX_OK) /* zeros */
        return 1;
    float number;
    while (scanf("%f", &number) == 1) {
        const onx_value *inputs[2];
        *(float *)x->data = number;
        inputs[x_at] = x;
        inputs[state_at] = state;
        onx_value *outputs[1] = { next };
        if (onx_session_run(session, cx, inputs, outputs) != ONX_OK)
            return 1;
        printf("%.4f\n", *(float *)outputs[next_at]->data);
        /* The two values change places: each is written by every other run. */
        next = state;
        state = outputs[next_at];
    }
    onx_value_free(x);
    onx_value_free(state);
    onx_value_free(next);
    onx_session_free(session);
    onx_ctx_free(cx);
    return 0;
}
