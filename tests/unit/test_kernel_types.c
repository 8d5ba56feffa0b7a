/* test_kernel_types.c - operators on integers and doubles, whose vectorized rows give the bits of the plain ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

static const struct {
    const char *name;
    onx_dtype dtype;
    int64_t low, high;
} wholes[] = { { "int8", ONX_INT8, INT8_MIN, INT8_MAX },     { "uint8", ONX_UINT8, 0, UINT8_MAX },
               { "int16", ONX_INT16, INT16_MIN, INT16_MAX }, { "uint16", ONX_UINT16, 0, UINT16_MAX },
               { "int32", ONX_INT32, INT32_MIN, INT32_MAX }, { "uint32", ONX_UINT32, 0, UINT32_MAX } };

/* Any of the type's values: small ones, those at the ends, and others. */
static onx_value *integers(source *s, unsigned type, uint32_t rank, const int64_t *dims)
{
    const int64_t low = wholes[type].low, high = wholes[type].high;
    onx_value *v = tensor(wholes[type].dtype, rank, dims);
    for (uint64_t i = 0; i < v->count; i++) {
        const uint32_t random = below(s, UINT32_MAX), kind = below(s, 4);
        int64_t x = kind == 0   ? (int64_t)(random % 7) - (low ? 3 : 0)
                    : kind == 1 ? (random % 2 ? high - random % 3 : low + random % 3)
                                : low + (int64_t)(random % ((uint64_t)(high - low) + 1));
        onx_convert(wholes[type].dtype, (char *)v->data + i * (onx_dtype_bits(v->dtype) / 8), ONX_INT64, &x, 1, true);
    }
    return v;
}

static void test_kernel_types__remainders(void **state)
{
    static writer w;
    source s = { 17 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const unsigned type = turn % 6, form = turn / 6 % 4;
        const int64_t dims[] = { 1 + below(&s, 30), 1 + below(&s, 300) }, one[] = { 1, 1 }, column[] = { dims[0], 1 };
        onx_value *x = integers(&s, type, 2, form == 3 ? column : dims);
        onx_value *y = integers(&s, type, 2, form == 0 ? one : form == 1 ? column : dims);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 20]> g (%s[A, B] x, %s[C, D] y) => (%s[E, F] z) {",
            wholes[type].name, wholes[type].name, wholes[type].name);
        add(&w, " z = Mod <fmod = %u> (x, y) }", below(&s, 2));
        compare_any(&w, "Mod", (const onx_value *const[]){ x, y }, 0);
        onx_value_free(x);
        onx_value_free(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_types__remainders),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
