/* variants.h - for tests that run models with random elements by the plain rows and by others, and compare the results.
 * Include it last; cx is that of context.h. */
#ifndef TESTS_VARIANTS_H
#define TESTS_VARIANTS_H

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include "base/base.h"

#include <math.h>
#include <stdio.h>

#include "unit/context.h"

/* ---- random numbers and texts ---- */

typedef struct source {
    uint64_t state;
} source;

static uint32_t below(source *s, uint32_t end)
{
    s->state = s->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((s->state >> 33) % end);
}

static float between(source *s, float low, float high)
{
    return low + (high - low) * (float)below(s, 1u << 20) / (float)(1u << 20);
}

typedef struct writer {
    char text[1u << 21];
    size_t len;
} writer;

static void ONX_PRINTF(2, 3) add(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    w->len += (size_t)vsnprintf(w->text + w->len, sizeof w->text - w->len, format, args);
    va_end(args);
    assert_true(w->len < sizeof w->text);
}

/* An attribute in front of which there is another one. */
__attribute__((unused)) static void add_list(writer *w, const char *name, const uint32_t *of, uint32_t count)
{
    add(w, ", %s = [", name);
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%u", i ? ", " : "", of[i]);
    add(w, "]");
}

/* For images in a layout: the operator `maker` makes them of images of MADE_OF channels, by windows of one pixel, and
 * sets their layout. Adds its weights, `v`, to a list of initializers. */
enum { MADE_OF = 16 };

__attribute__((unused)) static void add_maker(writer *w, source *s, const char *maker, uint32_t axes, uint32_t channels)
{
    const bool transposed = strcmp(maker, "ConvTranspose") == 0;
    add(w, "float[%u, %u%s] v = {", transposed ? MADE_OF : channels, transposed ? channels : MADE_OF,
        &", 1, 1, 1"[3 * (3 - axes)]);
    for (uint32_t i = 0; i < MADE_OF * channels; i++)
        add(w, "%s%.2f", i ? ", " : "", (double)between(s, -0.2f, 0.2f));
    add(w, "}");
}

/* ---- running ---- */

typedef struct seen {
    const char *op, *variant; /* of the last node of that operator */
} seen;

static void note(void *user, const onx_run_event *event)
{
    seen *s = user;
    if (onx_str_is(event->op_type, s->op))
        s->variant = event->variant;
}

static void say_all(void)
{
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        char why[400];
        onx_diag_format(onx_diag_get(cx, i), why, sizeof why);
        print_error("%s\n", why);
    }
    onx_diag_clear(cx);
}

/* `out` gets new values. Returns the variant of the row that ran `op`. */
static const char *run(onx_doc *doc, const char *op, const onx_session_options *options, const onx_value *const *in,
                       onx_value **out)
{
    onx_session *session = NULL;
    seen row = { op, "none" };
    const onx_run_options watch = { .event = note, .user = &row };
    onx_status status = onx_session_new(cx, doc, options, &session);
    if (status == ONX_OK)
        status = onx_session_run_with(session, cx, in, out, &watch);
    say_all();
    assert_int_equal(status, ONX_OK);
    onx_session_free(session);
    return row.variant;
}

/* Elements that are `ulps` steps apart at most; 0: bit by bit. */
static bool near_enough(const onx_value *a, const onx_value *b, double ulps)
{
    if (a->dtype != b->dtype || a->count != b->count || a->size != b->size)
        return false;
    if (memcmp(a->data, b->data, a->size) == 0)
        return true;
    if (a->dtype != ONX_FLOAT || ulps <= 0)
        return false;
    const float *x = a->data, *y = b->data;
    for (uint64_t i = 0; i < a->count; i++) {
        bool both = (isnan(x[i]) && isnan(y[i])) || x[i] == y[i]; /* infinities, too */
        if (!both &&
            !(isfinite(x[i]) && fabs((double)x[i] - (double)y[i]) <= ulps * 1.2e-7 * fmax(1, fabs((double)x[i])))) {
            print_error("element %llu: %a, %a\n", (unsigned long long)i, (double)x[i], (double)y[i]);
            return false;
        }
    }
    return true;
}

static bool imports_default(const onx_model *m)
{
    for (uint32_t i = 0; i < m->opset_import_count; i++)
        if (!onx_view(m->opset_import[i]->domain).len)
            return true;
    return false;
}

/* Lets nodes read what others have written instead of graph inputs, which are never overwritten or laid out otherwise:
 * Max(x, x) in place of each x of numbers, which changes none of them. */
static void feed_from_buffers(onx_doc *doc)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    onx_arena *arena = onx_doc_arena(doc);
    for (uint32_t i = 0; i < g->input_count && imports_default(onx_doc_model(doc)); i++) {
        const onx_type *type = g->input[i]->type;
        char from[80], inputs[168], name[64];
        if (!type || !ONX_HAS(type, type, tensor_type) ||
            onx_dtype_class_of(type->tensor_type->elem_type) == ONX_CLASS_BOOLEAN ||
            onx_dtype_class_of(type->tensor_type->elem_type) == ONX_CLASS_TEXT)
            continue;
        snprintf(name, sizeof name, "%.*s", ONX_ARG(onx_view(g->input[i]->name)));
        snprintf(from, sizeof from, "given_%s", name);
        snprintf(inputs, sizeof inputs, "%s %s", from, from);
        assert_int_equal(onx_arena_keep(arena, onx_str_of(from), &g->input[i]->name), ONX_OK);
        assert_non_null(onx_graph_add_node(arena, g, "Max", inputs, name));
    }
    assert_int_equal(onx_doc_sort(doc, NULL), ONX_OK);
}

static unsigned precision; /* ONX_PRECISION_* of the sessions with fast rows; numbers have to suit it */

/* Runs a model by the plain rows and by others; in every second call values come from buffers of the run. Returns the
 * variant that ran `op` at the end, with the least instruction set. */
__attribute__((unused)) static const char *compare_any(const writer *w, const char *op, const onx_value *const *in,
                                                       double ulps)
{
    enum { OUTPUTS = 4 };
    static const struct {
        unsigned isa, threads;
        bool plain, as_before; /* the bits of the run before */
    } runs[] = { { ONX_ISA_ANY, 1, true, false },   { ONX_ISA_ANY, 1, false, false }, { ONX_ISA_ANY, 2, false, true },
                 { ONX_ISA_AMX, 1, false, false },  { ONX_ISA_AMX, 2, false, true },  { ONX_ISA_BF16, 1, false, false },
                 { ONX_ISA_VNNI, 1, false, false }, { ONX_ISA_V4, 1, false, false },  { ONX_ISA_V3, 1, false, false },
                 { ONX_ISA_V3, 2, false, true },    { ONX_ISA_BASE, 1, false, false } };
    enum { RUNS = sizeof runs / sizeof *runs };
    onx_doc *doc = NULL;
    const char *variant = NULL;
    onx_value *out[RUNS][OUTPUTS] = { { NULL } };
    onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    static unsigned calls;
    if (calls++ % 2)
        feed_from_buffers(doc);
    for (int i = 0; i < RUNS; i++) {
        const onx_session_options options = { .verify = true,
                                              .threads = runs[i].threads,
                                              .isa = runs[i].isa,
                                              .plain = runs[i].plain,
                                              .precision = runs[i].plain ? ONX_PRECISION_FULL : precision };
        variant = run(doc, op, &options, in, out[i]);
    }
    for (int i = 0; i < OUTPUTS && out[0][i]; i++) {
        bool good = true;
        for (int k = 1; k < RUNS; k++)
            good = good && (runs[k].as_before ? near_enough(out[k - 1][i], out[k][i], 0)
                                              : near_enough(out[0][i], out[k][i], ulps));
        if (!good) {
            print_error("output %d of %s differs (%s)\n%.200s ... %s\n", i, op, variant, w->text,
                        w->text + (w->len > 600 ? w->len - 600 : 0));
            fail();
        }
        for (int k = 0; k < RUNS; k++)
            onx_value_free(out[k][i]);
    }
    onx_doc_free(doc);
    return variant;
}

/* An attribute that is a list; an element is written with its index i. */
#define LIST(w, name, count, ...)                                                                                      \
    do {                                                                                                               \
        add(w, "%s = [", name);                                                                                        \
        for (uint32_t i = 0; i < (count); i++) {                                                                       \
            add(w, "%s", i ? ", " : "");                                                                               \
            add(w, __VA_ARGS__);                                                                                       \
        }                                                                                                              \
        add(w, "], ");                                                                                                 \
    } while (0)

static onx_value *tensor(onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    onx_value *v = NULL;
    assert_int_equal(onx_value_new_tensor(cx, dtype, rank, dims, &v), ONX_OK);
    return v;
}

__attribute__((unused)) static onx_value *floats(source *s, uint32_t rank, const int64_t *dims)
{
    onx_value *v = tensor(ONX_FLOAT, rank, dims);
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = between(s, -1, 1);
    return v;
}

/* Numbers of which bfloat16 has all bits. */
__attribute__((unused)) static void shorten(onx_value *v)
{
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = rintf(((float *)v->data)[i] * 128) / 128;
}

/* The same as text, and the brace behind it. */
__attribute__((unused)) static void add_short_numbers(writer *w, source *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add(w, "%s%.8f", i ? ", " : "", ((double)below(s, 129) - 64) / 256);
    add(w, "}");
}

/* An initializer of windows that are as long as wide. */
__attribute__((unused)) static void add_windows(writer *w, source *s, const char *name, uint32_t m, uint32_t c,
                                                uint32_t size)
{
    add(w, "float[%u, %u, %u, %u] %s = {", m, c, size, size, name);
    for (uint32_t i = 0; i < m * c * size * size; i++)
        add(w, "%s%.2f", i ? ", " : "", (double)between(s, -0.2f, 0.2f));
    add(w, "}");
}

#endif
