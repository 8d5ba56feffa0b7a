/* fuzz_npy.c - takes any bytes as a NumPy array, and as an archive of arrays. An array that can be read is written and
 * read again, and must be the same. */
#include <onx/npy.h>

#include <stdlib.h>

static onx_status pass_over(void *user, onx_str name, onx_value *value)
{
    (void)user;
    return name.ptr && value ? ONX_OK : ONX_E_INVALID;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(onx_ctx *cx, const onx_value *v)
{
    onx_buffer bytes;
    onx_value *again;
    onx_value_difference d = { 0 };
    if (onx_value_to_npy(cx, v, &bytes) != ONX_OK)
        return; /* exceeds the memory limit */
    if (onx_value_from_npy(cx, onx_str_make(bytes.ptr, bytes.len), &again) != ONX_OK) {
        if (onx_diag_get(cx, onx_diag_count(cx) - 1)->status != ONX_E_LIMIT)
            abort();
    } else {
        if (!onx_value_close(again, v, 0, 0, &d))
            abort();
        onx_value_free(again);
    }
    onx_buffer_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "x", "" };
    const onx_str bytes = onx_str_make((const char *)data, size);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 64 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_value *v;
    onx_status status = onx_value_from_npy(cx, bytes, &v);
    if (status == ONX_OK)
        write_again(cx, v);
    else if (!onx_diag_total(cx, ONX_ERROR))
        abort(); /* a failure must have a diagnostic */
    onx_value_free(v);
    for (int i = 0; i < 2; i++) {
        onx_diag_clear(cx);
        status = onx_value_from_npz(cx, bytes, onx_str_of(names[i]), &v);
        if (status != ONX_OK && !onx_diag_total(cx, ONX_ERROR))
            abort();
        onx_value_free(v);
    }
    onx_diag_clear(cx);
    status = onx_npz_each(cx, bytes, NULL, pass_over, NULL);
    if (status != ONX_OK && !onx_diag_total(cx, ONX_ERROR))
        abort();
    onx_ctx_free(cx);
    return 0;
}
