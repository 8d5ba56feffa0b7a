/* A custom operator, com.example.MovingAverage: each element becomes the mean of itself and of up to `window` - 1
 * elements before it along the last axis. It is a plugin for the commands of onx; programs can also register it. */
#include <onx/plugin.h>

/* ---- types and shapes: the output has those of the input; onx check --full reports the errors found here ---- */

static onx_status infer(void *user, onx_op_call *call)
{
    onx_op_dim dims[ONX_RANK_MAX];
    const int rank = onx_op_call_rank(call, 0);
    (void)user;
    if (onx_op_call_int(call, "window") < 1)
        return onx_op_call_fail(call, "the window has %lld elements", (long long)onx_op_call_int(call, "window"));
    if (rank == 0)
        return onx_op_call_fail(call, "a scalar has no last axis");
    for (int i = 0; i < rank; i++)
        dims[i] = onx_op_call_dim(call, 0, (uint32_t)i); /* a number, a symbol or unknown */
    return onx_op_call_set(call, 0, onx_op_call_dtype(call, 0), dims, rank);
}

/* ---- the kernel: prepared once for a shape, run by any number of threads ---- */

typedef struct params {
    int64_t window, length;
} params;

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    params *q = onx_arena_alloc(p->arena, sizeof *q); /* lives as long as the plan */
    if (!q)
        return ONX_E_MEMORY;
    q->window = onx_prepare_int(p, "window");
    if (q->window < 1 || x->rank < 1) /* a model may run without inference */
        return onx_prepare_fail(p, ONX_E_INVALID, "no window fits here");
    q->length = x->dims[x->rank - 1];
    p->params = q;
    p->rows = q->length ? x->count / (uint64_t)q->length : 0; /* independent pieces of work */
    p->grain = 1 + 10000 / (uint64_t)(q->length + 1);         /* the fewest that are worth a thread */
    return ONX_OK;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    for (uint64_t row = first; row < last; row++) {
        const float *x = (const float *)work->inputs[0]->data + row * (uint64_t)q->length;
        float *y = (float *)work->outputs[0]->data + row * (uint64_t)q->length;
        double sum = 0;
        for (int64_t i = 0; i < q->length; i++) {
            sum += x[i];
            if (i >= q->window)
                sum -= x[i - q->window];
            y[i] = (float)(sum / (double)(i < q->window ? i + 1 : q->window));
        }
    }
    return ONX_OK;
}

/* ---- the row that describes the operator ---- */

static const onx_kernel kernels[] = {
    { .op = "MovingAverage", .domain = "com.example", .since = 1, .prepare = prepare, .run = run },
    { .op = NULL },
};
static const onx_op_port inputs[] = { { "X", "T", 0 }, { 0 } };
static const onx_op_port outputs[] = { { "Y", "T", 0 }, { 0 } };
static const onx_op_attribute attributes[] = { { "window", ONX_ATTR_INT, false, "3" }, { 0 } };
static const char *const types[] = { "T", "tensor(float)", NULL };

extern const onx_op_def moving_average;
const onx_op_def moving_average = { .struct_size = sizeof moving_average,
                                    .domain = "com.example",
                                    .name = "MovingAverage",
                                    .since = 1,
                                    .summary = "mean of the last elements along the last axis",
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .attributes = attributes,
                                    .types = types,
                                    .infer = infer,
                                    .kernel = kernels };

/* ---- the plugin ---- */

static const onx_op_def *const operators[] = { &moving_average, NULL };
static const onx_plugin plugin = {
    .head = ONX_PLUGIN_HEAD, .name = "example", .version = "1.0", .operators = operators
};

ONX_PLUGIN_ENTRY
{
    return &plugin;
}
