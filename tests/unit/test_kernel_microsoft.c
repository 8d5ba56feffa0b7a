/* test_kernel_microsoft.c - operators of com.microsoft by the plain row and by those of every instruction set, of sizes
 * around those of vectors and blocks; and the loops that their rows share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/core/halves.h"
#include "unit/variants.h"

static bool has(const char *op)
{
    return onx_op_find(onx_str_of("com.microsoft"), onx_str_of(op), 1) != NULL;
}

static void begin(writer *w)
{
    w->len = 0;
    add(w, "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]>\ng (");
}

/* ---- halves ---- */

static const onxi_half_loops *const half_loops[] = {
    &onxi_half_loops_base,
#ifdef ONX_WITH_X86_LEVELS
    &onxi_half_loops_v3,
    &onxi_half_loops_v4,
#endif
};

/* How many of them this processor runs. */
static size_t half_levels(void)
{
    const unsigned isa = onxi_isa_vectors();
    return isa == ONX_ISA_V4 ? 3 : isa == ONX_ISA_V3 ? 2 : 1;
}

/* All numbers of 16 bits, and floats whose rounding is close. */
static void test_kernel_microsoft__halves(void **state)
{
    enum { ALL = 1 << 16 };
    static uint16_t narrow[ALL], back[ALL], want[ALL];
    static float wide[ALL], expected[ALL];
    (void)state;
    for (int t = 0; t < 2; t++) {
        const onx_dtype dtype = t ? ONX_BFLOAT16 : ONX_FLOAT16;
        for (size_t level = 0; level < half_levels(); level++) {
            for (uint32_t i = 0; i < ALL; i++)
                narrow[i] = (uint16_t)i;
            half_loops[level]->widen(dtype, narrow, wide, ALL);
            onx_convert(ONX_FLOAT, expected, dtype, narrow, ALL, true);
            for (uint32_t i = 0; i < ALL; i++)
                if (memcmp(&wide[i], &expected[i], sizeof *wide) != 0 && !(isnan(wide[i]) && isnan(expected[i])))
                    fail_msg("%u of type %d is %a", i, dtype, (double)wide[i]);
            for (uint32_t i = 0; i < ALL; i++) {
                uint32_t bits;
                memcpy(&bits, &expected[i], sizeof bits);
                bits += (i % 3 == 0 ? 0x1000u : i % 3 == 1 ? 0x0fffu : 0x1001u) << (3 * t);
                memcpy(&wide[i], &bits, sizeof bits);
            }
            half_loops[level]->narrow(dtype, wide, back, ALL);
            onx_convert(dtype, want, ONX_FLOAT, wide, ALL, true);
            for (uint32_t i = 0; i < ALL; i++)
                if (!isnan(wide[i]))
                    assert_int_equal(back[i], want[i]);
            uint16_t few[3] = { 7, 7, 7 };
            half_loops[level]->narrow(dtype, (float[]){ 1, 2 }, few, 2);
            assert_int_equal(few[2], 7);
        }
    }
}

/* ---- attention with a cache ---- */

enum { CACHE_INPUTS = 7 }; /* query, key, value, past key, past value, cosines, sines */

/* A prompt where there is no past: all sequences begin at once then, and may end early. */
typedef struct cache_case {
    uint32_t batch, length, past, heads, keys, size;
    bool turns, interleaved, causal;
    int window;
    onx_dtype type;
} cache_case;

static void write_cache(writer *w, source *s, const cache_case *c)
{
    const uint32_t total = c->past + c->length;
    begin(w);
    for (char name = 'a'; name < 'a' + CACHE_INPUTS; name++) {
        add(w, "%sfloat[", name == 'a' ? "" : ", ");
        for (unsigned i = 0; i < (name < 'd' ? 3 : name < 'f' ? 4 : 2); i++)
            add(w, "%s%c%u", i ? ", " : "", name, i);
        add(w, "] %c0", name);
    }
    add(w, ") => (float[J, K, L] y, float[M, N, O, P] k, float[Q, R, S, T] v)\n<int32[%u] ends = {", c->batch);
    for (uint32_t i = 0; i < c->batch; i++)
        add(w, "%s%u", i ? ", " : "",
            c->past ? total - 1 - below(s, c->past + 1)
            : i     ? below(s, c->length)
                    : total - 1);
    add(w, "}, int32 all = {%u}>\n{\n", total);
    for (char name = 'a'; name < 'a' + CACHE_INPUTS; name++)
        add(w, " %c = Cast <to = %d> (%c0)\n", name, (int)c->type, name);
    add(w,
        " y0, k0, v0 = com.microsoft.GroupQueryAttention <num_heads = %u, kv_num_heads = %u, do_rotary = %d, "
        "rotary_interleaved = %d, causal = %d, local_window_size = %d> (a, b, c, d, e, ends, all, f, g)\n"
        " y = Cast <to = 1> (y0)\n k = Cast <to = 1> (k0)\n v = Cast <to = 1> (v0)\n}\n",
        c->heads, c->keys, c->turns, c->interleaved, c->causal, c->window);
}

static void test_kernel_microsoft__caches(void **state)
{
    static const onx_dtype types[] = { ONX_FLOAT, ONX_FLOAT16, ONX_BFLOAT16 };
    static const double near[] = { 200, 10000, 80000 }; /* a unit of 16 bits is many of floats */
    static writer w;
    source s = { 11 };
    unsigned fast = 0, turn;
    (void)state;
    if (!has("GroupQueryAttention"))
        return; /* left out of this build */
    for (turn = 0; turn < 45; turn++) {
        static const uint32_t sizes[] = { 8, 16, 40, 64 }, news[] = { 1, 2, 5, 33, 70 }, pasts[] = { 0, 3, 100, 210 };
        cache_case c = { .batch = 1 + below(&s, 2),
                         .length = news[below(&s, 5)],
                         .past = pasts[below(&s, 4)],
                         .keys = 1 + below(&s, 2),
                         .size = sizes[below(&s, 4)],
                         .turns = below(&s, 2),
                         .interleaved = below(&s, 2),
                         .causal = below(&s, 4) > 0,
                         .window = below(&s, 3) ? -1 : 1 + (int)below(&s, 60),
                         .type = types[turn % 3] };
        c.heads = c.keys * (1 + below(&s, 3));
        const int64_t dims[][4] = { { c.batch, c.length, c.heads * c.size }, { c.batch, c.length, c.keys * c.size },
                                    { c.batch, c.length, c.keys * c.size },  { c.batch, c.keys, c.past, c.size },
                                    { c.batch, c.keys, c.past, c.size },     { c.past + c.length, c.size / 2 },
                                    { c.past + c.length, c.size / 2 } };
        onx_value *in[CACHE_INPUTS];
        for (int i = 0; i < CACHE_INPUTS; i++)
            in[i] = floats(&s, i < 3 ? 3 : i < 5 ? 4 : 2, dims[i]);
        write_cache(&w, &s, &c);
        const char *variant =
            compare_any(&w, "GroupQueryAttention", (const onx_value *const *)(const void *)in, near[turn % 3]);
        fast += variant && strcmp(variant, "plain") != 0;
        for (int i = 0; i < CACHE_INPUTS; i++)
            onx_value_free(in[i]);
    }
    assert_int_equal(fast, turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernel_microsoft__halves),
                                        cmocka_unit_test(test_kernel_microsoft__caches) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
