/* fuzz_value.h - inputs for targets that run models. */
#ifndef FUZZ_VALUE_H
#define FUZZ_VALUE_H

#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/value.h>

#include <string.h>

/* Makes ones of the type that the model declares; unknown dimensions become 2. Returns false if the value is too large
 * or no tensor. */
static inline bool fuzz_value(onx_ctx *cx, const onx_type *type, onx_value **out)
{
    int64_t dims[ONX_RANK_MAX];
    uint64_t count = 1;
    if (!type || !ONX_HAS(type, type, tensor_type) || !onx_dtype_name(type->tensor_type->elem_type))
        return false;
    const onx_tensor_shape *shape = type->tensor_type->shape;
    uint32_t rank = shape ? shape->dim_count : 1;
    if (rank > ONX_RANK_MAX)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = shape && ONX_HAS(dimension, shape->dim[i], dim_value) ? shape->dim[i]->dim_value : 2;
        if (dims[i] < 0 || dims[i] > 4096 || (count *= (uint64_t)(dims[i] ? dims[i] : 1)) > 65536)
            return false;
    }
    if (onx_value_new_tensor(cx, (onx_dtype)type->tensor_type->elem_type, rank, dims, out) != ONX_OK)
        return false;
    if ((*out)->dtype != ONX_STRING && (*out)->size)
        memset((*out)->data, 1, (*out)->size);
    return true;
}

enum { FUZZ_PORTS = 16 };
typedef struct fuzz_values {
    onx_value *inputs[FUZZ_PORTS], *outputs[FUZZ_PORTS];
} fuzz_values;
typedef onx_status fuzz_runner(void *what, onx_ctx *cx, fuzz_values *v, const onx_run_options *options);

/* Runs twice, unless it is not `ready` or the first run fails; frees the values. */
static inline void fuzz_run(onx_ctx *cx, fuzz_values *v, bool ready, fuzz_runner *run, void *what)
{
    const onx_run_options options = { .iterations = 100 };
    for (int again = 0; ready && again < 2; again++)
        ready = run(what, cx, v, &options) == ONX_OK;
    for (int i = 0; i < FUZZ_PORTS; i++) {
        onx_value_free(v->inputs[i]);
        onx_value_free(v->outputs[i]);
    }
}

#endif
