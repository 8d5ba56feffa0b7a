/* test_kernel_masks.c - MaxpoolWithMask of images whose mask has zeros, by its definition: along the last axis a window
 * ends where the mask is 0, except at the first element of the plane. As in ONNX Runtime, the mask of a plane begins at
 * the plane's offset modulo the number of planes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

#ifdef ONX_DOMAIN_MICROSOFT
#include <float.h>

typedef struct windows {
    int64_t in[2], out[2], size[2], stride[2], pad[2];
} windows;

static float expected(const windows *w, const float *x, const int32_t *mask, int64_t row, int64_t column)
{
    float most = -FLT_MAX;
    for (int64_t r = row * w->stride[0] - w->pad[0]; r < row * w->stride[0] - w->pad[0] + w->size[0]; r++)
        for (int64_t k = 0; k < w->size[1] && r >= 0 && r < w->in[0]; k++) {
            const int64_t c = column * w->stride[1] - w->pad[1] + k, at = r * w->in[1] + c;
            if (c < 0 || c >= w->in[1])
                continue;
            if (mask[at] == 0 && at > 0)
                break;
            most = x[at] > most ? x[at] : most;
        }
    return most;
}

static void test_kernel_masks__windows_end(void **state)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY, -FLT_MAX };
    static writer w;
    source s = { 41 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        windows p;
        for (int d = 0; d < 2; d++) {
            p.size[d] = 1 + below(&s, turn % 4 ? 4 : 20);
            p.stride[d] = 1 + below(&s, 3);
            p.pad[d] = below(&s, (uint32_t)p.size[d]);
            p.in[d] = p.size[d] + below(&s, d ? 70 : 12);
            p.out[d] = (p.in[d] + 2 * p.pad[d] - p.size[d]) / p.stride[d] + 1;
        }
        const int64_t dims[] = { 1, 3, p.in[0], p.in[1] };
        const uint64_t plane = (uint64_t)(p.in[0] * p.in[1]);
        onx_value *x = floats(&s, 4, dims), *mask = tensor(ONX_INT32, 4, dims), *out[2] = { NULL };
        const uint32_t rare = 1 + below(&s, 30);
        for (uint64_t i = 0; i < x->count; i++) {
            ((int32_t *)mask->data)[i] = below(&s, rare) ? (int32_t)below(&s, 3) - 1 : 0;
            ((int32_t *)mask->data)[i] += turn % 3 == 0 && below(&s, 9);
            if (below(&s, 20) == 0)
                ((float *)x->data)[i] = odd[below(&s, 4)];
        }
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20, \"com.microsoft\" : 1]>\n"
                "g (float[A, B, C, D] x, int32[A, B, C, D] m) => (float[E, F, G, H] y) {\n");
        add(&w, " y = com.microsoft.MaxpoolWithMask <kernel_shape = [%d, %d], strides = [%d, %d], ", (int)p.size[0],
            (int)p.size[1], (int)p.stride[0], (int)p.stride[1]);
        add(&w, "pads = [%d, %d, %d, %d]> (x, m)\n}\n", (int)p.pad[0], (int)p.pad[1], (int)p.pad[0], (int)p.pad[1]);
        onx_doc *doc = NULL;
        const onx_session_options options = { .threads = 1 };
        assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
        run(doc, "MaxpoolWithMask", &options, (const onx_value *const[]){ x, mask }, out);
        assert_int_equal(out[0]->count, 3 * p.out[0] * p.out[1]);
        for (int64_t i = 0; i < (int64_t)out[0]->count; i++) {
            const uint64_t from = (uint64_t)(i / p.out[1] / p.out[0]) * plane;
            const float want = expected(&p, (const float *)x->data + from, (const int32_t *)mask->data + from % 3,
                                        i / p.out[1] % p.out[0], i % p.out[1]);
            assert_true(((const float *)out[0]->data)[i] == want);
        }
        onx_doc_free(doc);
        onx_value_free(x);
        onx_value_free(mask);
        onx_value_free(out[0]);
    }
}
#else
static void test_kernel_masks__windows_end(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel_masks__windows_end) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
