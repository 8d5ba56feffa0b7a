/* Runs a model with a state step by step: the state output of a run is the state input of the next one, without a copy.
 * The model is the exponential average of examples/average.onnxtxt. Reads numbers from standard input. stream MODEL */
#include <onx/onx.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_session *session;
    if (argc < 2 || !cx || onx_session_load(cx, argv[1], NULL, NULL, &session) != ONX_OK)
        return 1;
    uint32_t x_at, state_at, next_at; /* indices of inputs and of the output */
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
        /* Swaps the two values: the next run reads this state and overwrites the old one. */
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
