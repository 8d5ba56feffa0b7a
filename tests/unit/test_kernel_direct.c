/* test_kernel_direct.c - convolutions that read images in place: sizes below and above those of tiles, panels,
 * stretches and units of work, by the plain rows and by others, with one thread and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "unit/variants.h"

/* The nodes that may be done in passing, of a value like x1: by tiles, and after them. */
static const char *const behind[] = {
    "%s = Add (%s, x1)",   "%s = Relu (%s)",  "%s = Clip (%s, low, high)",
    "%s = HardSwish (%s)", "%s = Swish (%s)", "%s = Gelu (%s)",
};

/* Nodes in passing, from t0 on; the last one gives y. */
static void add_behind(writer *w, source *s, unsigned posts)
{
    for (uint32_t i = 0; i < posts; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "t%u", i);
        snprintf(to, sizeof to, i + 1 == posts ? "y" : "t%u", i + 1);
        add(w, " ");
        add(w, behind[below(s, sizeof behind / sizeof *behind)], to, from);
        add(w, "\n");
    }
}

typedef struct images {
    uint32_t rank, c, m, group, kernel[3], stride[3], dilation[3], pad[6];
    int64_t in[5], out[5];
} images;

/* Draws sizes; where a window does not fit, there is padding at the end. */
static images draw(source *s, unsigned turn)
{
    static const uint32_t channels[] = { 1, 2, 3, 4, 5, 16, 24, 40, 64, 130 };
    static const uint32_t outputs[] = { 8, 15, 16, 17, 31, 32, 33, 48, 72, 96 };
    images q = { .rank = turn % 5 == 4 ? 3 : 2, .c = channels[below(s, 10)], .m = outputs[below(s, 10)], .group = 1 };
    if (turn % 6 == 5) {
        q.group = 1 + below(s, 3);
        q.c = 16 * q.group * (1 + below(s, 2));
        q.m = 16 * q.group * (1 + below(s, 4));
    }
    q.in[0] = q.out[0] = 1 + below(s, 2);
    q.in[1] = q.c;
    q.out[1] = q.m;
    for (uint32_t i = 0; i < q.rank; i++) {
        q.kernel[i] = 1 + below(s, turn % 4 ? 4 : 1);
        q.stride[i] = 1 + below(s, 3) % 2 * below(s, 3);
        q.dilation[i] = 1 + below(s, 4) / 3;
        const uint32_t reach = (q.kernel[i] - 1) * q.dilation[i] + 1, size = 2 + below(s, q.rank > 2 ? 8 : 30);
        q.pad[i] = below(s, 2) * below(s, reach);
        q.pad[i + q.rank] = below(s, 2) * below(s, reach);
        if (size + q.pad[i] + q.pad[i + q.rank] < reach)
            q.pad[i + q.rank] = reach - size;
        q.in[i + 2] = size;
        q.out[i + 2] = (size + q.pad[i] + q.pad[i + q.rank] - reach) / q.stride[i] + 1;
    }
    return q;
}

static void write_model(writer *w, source *s, const images *q, unsigned posts, bool bias)
{
    static const char *const dims[] = { "H, W", "D, H, W" }, *const results[] = { "P, Q", "O, P, Q" };
    uint32_t count = q->m * (q->c / q->group);
    w->len = 0;
    add(w,
        "<ir_version: 10, opset_import: [\"\" : 24]>\n g (float[N, C, %s] x0, float[N, M, %s] x1) => "
        "(float[N, M, %s] y) <float low = {-0.5}, float high = {1.25}, float[%u, %u",
        dims[q->rank - 2], results[q->rank - 2], results[q->rank - 2], q->m, q->c / q->group);
    for (uint32_t i = 0; i < q->rank; i++) {
        add(w, ", %u", q->kernel[i]);
        count *= q->kernel[i];
    }
    add(w, "] w = {");
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%.2f", i ? ", " : "", (double)between(s, -0.2f, 0.2f));
    add(w, "}, float[%u] b = {", q->m);
    for (uint32_t i = 0; i < q->m; i++)
        add(w, "%s%.3f", i ? ", " : "", (double)between(s, -1, 1));
    add(w, "}> {\n %s = Conv <group = %u", posts ? "t0" : "y", q->group);
    add_list(w, "strides", q->stride, q->rank);
    add_list(w, "dilations", q->dilation, q->rank);
    add_list(w, "pads", q->pad, 2 * q->rank);
    add(w, "> (x0, w%s)\n", bias ? ", b" : "");
    add_behind(w, s, posts);
    add(w, "}\n");
}

static void test_kernel_direct__images_are_the_same(void **state)
{
    static writer w;
    source s = { 77 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const images q = draw(&s, turn);
        onx_value *x = floats(&s, q.rank + 2, q.in), *residual = floats(&s, q.rank + 2, q.out);
        if (turn % 8 == 7) {
            static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f };
            ((float *)x->data)[below(&s, (uint32_t)x->count)] = odd[turn / 8 % 4];
        }
        write_model(&w, &s, &q, below(&s, 4), turn % 2);
        const char *variant = compare_any(&w, "Conv", (const onx_value *const[]){ x, residual }, 300);
        assert_true(strcmp(variant, "plain") != 0);
        onx_value_free(x);
        onx_value_free(residual);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_direct__images_are_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
