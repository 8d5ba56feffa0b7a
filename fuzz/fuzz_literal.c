/* fuzz_literal.c - takes any bytes as a value written on the command line. A value that can be read is written and read
 * again, and must be the same; a refused one must give a message. The first byte selects type and shape. */
#include "cli_inputs.h"

#include <onx/tensor.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned messages;

int cli_error(const cli_call *call, const char *format, ...)
{
    char text[500];
    va_list args;
    (void)call;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    messages++;
    return 2;
}

typedef struct writer {
    char *text;
    size_t len, room;
    const double *numbers; /* the next number */
} writer;

static void put(writer *w, const char *text)
{
    const size_t len = strlen(text);
    if (w->len + len + 1 > w->room) {
        w->room = 2 * w->room + len + 64;
        w->text = realloc(w->text, w->room);
        if (!w->text)
            abort();
    }
    memcpy(w->text + w->len, text, len + 1);
    w->len += len;
}

static void put_dims(writer *w, const onx_value *v, uint32_t depth)
{
    char number[40];
    if (depth == v->rank) {
        snprintf(number, sizeof number, "%.17g", *w->numbers++);
        put(w, number);
        return;
    }
    put(w, "[");
    for (int64_t i = 0; i < v->dims[depth]; i++) {
        put(w, i ? ", " : "");
        put_dims(w, v, depth + 1);
    }
    put(w, "]");
}

/* Writes numbers that doubles can hold, for shapes that are small enough. An empty list does not tell the length of its
 * inner lists. */
static void write_again(cli_call *call, const onx_value *v)
{
    const bool held = v->dtype == ONX_FLOAT || v->dtype == ONX_DOUBLE || v->dtype == ONX_INT8 || v->dtype == ONX_BOOL;
    double *numbers = malloc(((size_t)v->count + 1) * sizeof *numbers);
    writer w = { .numbers = numbers };
    onx_value *again = NULL;
    onx_value_difference d = { 0 };
    if (held && numbers && v->count && v->count < 100000 &&
        onx_convert(ONX_DOUBLE, numbers, (onx_dtype)v->dtype, v->data, v->count, false) == ONX_OK) {
        put_dims(&w, v, 0);
        if (cli_literal(call, "again", onx_str_make(w.text, w.len), (onx_dtype)v->dtype, NULL, &again) != ONX_OK ||
            !onx_value_close(again, v, 0, 0, &d))
            abort();
    }
    onx_value_free(again);
    free(w.text);
    free(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const cli_shape shapes[] = { { 0, { 0 } }, { 1, { 3 } }, { 2, { 2, 0 } }, { 2, { 1 << 20, 1 << 20 } } };
    if (!size)
        return 0;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 64 << 20;
    onx_ctx_set_limits(cx, limits);
    cli_call call = { .cx = cx };
    const onx_dtype dtype = (onx_dtype)(data[0] % 32);
    const cli_shape *shape = data[0] >> 5 < 4 ? &shapes[data[0] >> 5] : NULL;
    onx_value *v = NULL;
    messages = 0;
    const onx_str text = onx_str_make((const char *)data + 1, size - 1);
    const onx_status status = cli_literal(&call, "x", text, dtype, shape, &v);
    if ((status == ONX_OK) != (v != NULL) || (status != ONX_OK && !messages && !onx_diag_total(cx, ONX_ERROR)))
        abort();
    if (v)
        write_again(&call, v);
    onx_value_free(v);
    char *word = malloc(size);
    if (word) {
        memcpy(word, data + 1, size - 1);
        word[size - 1] = '\0';
        (void)cli_is_literal(word);
    }
    free(word);
    onx_ctx_free(cx);
    return 0;
}
