/* gen_run.c - runs generated models and compares the results. */
#include "gen/gen.h"

#include <onx/tensor.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(gen_run *run, onx_ctx *cx)
{
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->severity == ONX_ERROR) {
            onx_diag_format(onx_diag_get(cx, i), run->why, sizeof run->why);
            break;
        }
    onx_diag_clear(cx);
}

static void count_event(void *user, const onx_run_event *event)
{
    gen_run *run = user;
    if (run->events < sizeof run->variant / sizeof *run->variant)
        run->variant[run->events] = event->variant;
    run->events++;
    run->others += event->measured;
}

static onx_status make_inputs(onx_ctx *cx, const onx_session *s, const gen_operand *operands, uint32_t count,
                              onx_value **inputs, uint32_t room)
{
    uint32_t wanted = onx_session_input_count(s);
    if (wanted > room)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < wanted; i++)
        for (uint32_t k = 0; k < count && !inputs[i]; k++)
            if (onx_str_is(onx_session_input(s, i).name, operands[k].name))
                ONX_TRY(gen_value(cx, &operands[k], &inputs[i]));
    return ONX_OK;
}

void gen_run_model(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, bool plain, unsigned threads,
                   gen_run *run)
{
    gen_run_level(cx, doc, operands, count, plain, threads, 0, run);
}

static double tolerance(int dtype)
{
    switch (dtype) {
    case ONX_DOUBLE:
    case ONX_COMPLEX128:
        return 1e-9;
    case ONX_FLOAT:
    case ONX_COMPLEX64:
        return 1e-4;
    case ONX_FLOAT16: /* these two may be rounded by each node of an operator's body, or once */
        return 1e-2;
    case ONX_BFLOAT16:
        return 8e-2;
    default:
        return 0;
    }
}

/* What is made of 16-bit floats differs by roundings of their type, whatever its own type is. */
static double coarseness(const gen_operand *operands, uint32_t count)
{
    double most = 0;
    for (uint32_t i = 0; i < count; i++)
        if (operands[i].dtype == ONX_FLOAT16 || operands[i].dtype == ONX_BFLOAT16)
            most = fmax(most, tolerance((int)operands[i].dtype));
    return most;
}

void gen_run_session(onx_ctx *cx, onx_session *s, const gen_operand *operands, uint32_t count, gen_run *run)
{
    enum { ROOM = 64 };
    onx_value *inputs[ROOM] = { NULL };
    onx_run_options watch = { .event = count_event, .user = run, .iterations = 10000 };
    memset(run, 0, sizeof *run);
    run->planned = true;
    run->coarse = coarseness(operands, count);
    run->count = onx_session_output_count(s);
    run->status = run->count <= GEN_OUTPUTS ? make_inputs(cx, s, operands, count, inputs, ROOM) : ONX_E_UNSUPPORTED;
    if (run->status == ONX_OK)
        run->status = onx_session_run_with(s, cx, (const onx_value *const *)inputs, run->outputs, &watch);
    if (run->status != ONX_OK) {
        note(run, cx);
        gen_run_free(run);
    }
    onx_diag_clear(cx);
    for (uint32_t i = 0; i < ROOM; i++)
        onx_value_free(inputs[i]);
}

void gen_run_level(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, bool plain, unsigned threads,
                   unsigned isa, gen_run *run)
{
    onx_session *s = NULL;
    const onx_session_options options = {
        .threads = threads, .plain = plain, .isa = isa, .memory = 64 << 20, .verify = true
    };
    memset(run, 0, sizeof *run);
    run->status = onx_session_new(cx, doc, &options, &s);
    if (run->status == ONX_OK)
        gen_run_session(cx, s, operands, count, run);
    else
        note(run, cx);
    onx_session_free(s);
}

void gen_run_free(gen_run *run)
{
    for (uint32_t i = 0; i < GEN_OUTPUTS; i++) {
        onx_value_free(run->outputs[i]);
        run->outputs[i] = NULL;
    }
}

/* ---- comparing ---- */

static int element_type(const onx_value *v)
{
    while (v && v->kind != ONX_VALUE_TENSOR && v->count)
        v = v->items[0];
    return v ? v->dtype : ONX_UNDEFINED;
}

/* Bits of tensors, items of lists. */
static bool same_bits(const onx_value *a, const onx_value *b)
{
    onx_value_difference d;
    if (!onx_value_same_type(a, b, &d))
        return false;
    if (a->kind == ONX_VALUE_TENSOR && a->dtype != ONX_STRING)
        return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, (size_t)a->size) == 0);
    if (a->kind == ONX_VALUE_TENSOR)
        return onx_value_close(a, b, 0, 0, &d);
    for (uint64_t i = 0; i < a->count; i++)
        if (!same_bits(a->items[i], b->items[i]))
            return false;
    return a->kind != ONX_VALUE_MAP || onx_value_close(a, b, 0, 0, &d);
}

bool gen_output_agrees(const gen_run *a, const gen_run *b, uint32_t i, bool exact, char *why, size_t size)
{
    onx_value_difference d = { .what = "bits" };
    const int type = element_type(a->outputs[i]);
    const double own = tolerance(type), t = own > 0 ? fmax(own, a->coarse) : 0;
    if (onx_value_close(a->outputs[i], b->outputs[i], exact ? 0 : t, exact ? 0 : t, &d) &&
        (!exact || same_bits(a->outputs[i], b->outputs[i])))
        return true;
    snprintf(why, size, "output %u: %s differs: %.200s", i, d.what ? d.what : "bits", d.what ? d.text : "");
    return false;
}

bool gen_status_agrees(const gen_run *a, const gen_run *b, char *why, size_t size)
{
    if ((a->status == ONX_OK) == (b->status == ONX_OK))
        return true;
    if (a->status == ONX_E_LIMIT || b->status == ONX_E_LIMIT) /* the other needs less memory */
        return true;
    snprintf(why, size, "one fails (%s), the other does not", (a->status == ONX_OK ? b : a)->why);
    return false;
}

bool gen_run_agree(const gen_run *a, const gen_run *b, bool exact, char *why, size_t size)
{
    bool same = gen_status_agrees(a, b, why, size);
    for (uint32_t i = 0; same && a->status == ONX_OK && b->status == ONX_OK && i < a->count; i++)
        same = gen_output_agrees(a, b, i, exact, why, size);
    return same;
}

static bool shape_agrees(const onx_tensor_shape *shape, const onx_value *value, char *why, size_t size)
{
    if (shape->dim_count != value->rank) {
        snprintf(why, size, "rank %u is inferred, a run gives %u", shape->dim_count, value->rank);
        return false;
    }
    for (uint32_t i = 0; i < value->rank; i++)
        if (ONX_HAS(dimension, shape->dim[i], dim_value) && shape->dim[i]->dim_value != value->dims[i]) {
            snprintf(why, size, "dimension %u is inferred as %lld, a run gives %lld", i,
                     (long long)shape->dim[i]->dim_value, (long long)value->dims[i]);
            return false;
        }
    return true;
}

static bool list_agrees(const onx_type *inner, const onx_value *value, char *why, size_t size)
{
    for (uint64_t i = 0; inner && i < value->count; i++)
        if (!gen_type_agrees(inner, value->items[i], why, size))
            return false;
    return true;
}

/* Are the bits after the last element of a packed type 0? */
static bool is_clean(const onx_value *v)
{
    const unsigned bits = v->kind == ONX_VALUE_TENSOR ? onx_dtype_bits(v->dtype) : 8;
    const unsigned used = bits && bits < 8 ? (unsigned)(v->count * bits % 8) : 0;
    return !used || !v->size || ((const uint8_t *)v->data)[v->size - 1] >> used == 0;
}

bool gen_type_agrees(const onx_type *type, const onx_value *value, char *why, size_t size)
{
    if (!is_clean(value)) {
        snprintf(why, size, "bits after the last element are set");
        return false;
    }
    if (!type)
        return true;
    int kind = ONX_HAS(type, type, tensor_type)     ? ONX_VALUE_TENSOR
               : ONX_HAS(type, type, sequence_type) ? ONX_VALUE_SEQUENCE
               : ONX_HAS(type, type, optional_type) ? ONX_VALUE_OPTIONAL
               : ONX_HAS(type, type, map_type)      ? ONX_VALUE_MAP
                                                    : value->kind;
    if (kind != value->kind) {
        snprintf(why, size, "a value of kind %d is inferred, a run gives kind %d", kind, value->kind);
        return false;
    }
    if (kind == ONX_VALUE_SEQUENCE)
        return list_agrees(type->sequence_type->elem_type, value, why, size);
    if (kind == ONX_VALUE_OPTIONAL)
        return list_agrees(type->optional_type->elem_type, value, why, size);
    if (kind != ONX_VALUE_TENSOR || !ONX_HAS(type, type, tensor_type))
        return true;
    if (type->tensor_type->elem_type && type->tensor_type->elem_type != value->dtype) {
        snprintf(why, size, "elements of type %d are inferred, a run gives %d", type->tensor_type->elem_type,
                 value->dtype);
        return false;
    }
    return !type->tensor_type->shape || shape_agrees(type->tensor_type->shape, value, why, size);
}

bool gen_lacks_library(const char *op)
{
    static const struct {
        const char *op;
        onxi_library library;
    } needs[] = { { "RegexFullMatch", ONXI_LIBRARY_PCRE2 },
                  { "ImageDecoder", ONXI_LIBRARY_LEPTONICA },
                  { "ImageReader", ONXI_LIBRARY_LEPTONICA } };
    onx_library_info info;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (strcmp(needs[i].op, op) == 0)
            return onx_library((uint32_t)needs[i].library, &info) && !info.file;
    return false;
}
