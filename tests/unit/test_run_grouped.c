/* test_run_grouped.c - products with matrices that indices select: sessions multiply the rows of each matrix together,
 * for every float type and for all ways of broadcasting, with the results of the nodes that they replace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS = 3 };

typedef struct outcome {
    onx_status status;
    unsigned steps;
    bool grouped;
    onx_value *y;
    char why[300];
} outcome;

static void note(void *user, const onx_run_event *event)
{
    outcome *out = user;
    out->steps++;
    out->grouped |= onx_str_is(event->op_type, "GroupedMatMul");
}

/* Numbers of few bits, of which sums are the same in any order. */
static void fill(onx_value *v, int matrices)
{
    for (uint64_t i = 0; i < v->count; i++) {
        const float x = (float)((int)(i * 7 % 9) - 4) / 4;
        switch (v->dtype) {
        case ONX_FLOAT:
            ((float *)v->data)[i] = x;
            break;
        case ONX_DOUBLE:
            ((double *)v->data)[i] = (double)x;
            break;
        case ONX_FLOAT16:
            ((uint16_t *)v->data)[i] = onx_f32_to_float16(x);
            break;
        case ONX_BFLOAT16:
            ((uint16_t *)v->data)[i] = onx_f32_to_bfloat16(x);
            break;
        case ONX_INT32:
            ((int32_t *)v->data)[i] = (int32_t)(i * 5 % (unsigned)(2 * matrices)) - matrices;
            break;
        default:
            ((int64_t *)v->data)[i] = (int64_t)(i * 5 % (unsigned)(2 * matrices)) - matrices;
        }
    }
}

static void run(onx_ctx *cx, const char *text, const int64_t (*dims)[6], const onx_dtype *types, bool plain,
                const int64_t *index, outcome *out)
{
    onx_doc *doc;
    onx_session *session;
    onx_value *in[INPUTS] = { NULL };
    const onx_value *given[INPUTS];
    const onx_session_options options = { .verify = true, .threads = plain ? 1 : 2, .no_optimize = plain };
    memset(out, 0, sizeof *out);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &options, &session), ONX_OK);
    for (uint32_t i = 0; i < INPUTS; i++) {
        uint32_t rank = 0;
        while (dims[i][rank] >= 0)
            rank++;
        assert_int_equal(onx_value_new_tensor(cx, types[i], rank, dims[i], &in[i]), ONX_OK);
        fill(in[i], (int)dims[1][0]);
        given[i] = in[i];
    }
    if (index)
        ((int64_t *)in[2]->data)[0] = *index;
    const onx_run_options watch = { .event = note, .user = out };
    out->status = onx_session_run_with(session, cx, given, &out->y, &watch);
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), out->why, sizeof out->why);
    onx_diag_clear(cx);
    for (uint32_t i = 0; i < INPUTS; i++)
        onx_value_free(in[i]);
    onx_session_free(session);
    onx_doc_free(doc);
}

/* Of x, of the matrices, and of the indices. */
static const int64_t shapes[][INPUTS][6] = {
    { { 5, 1, 1, 7, -1 }, { 3, 7, 9, -1 }, { 5, 2, -1 } }, /* rows, each with two matrices */
    { { 4, 3, 7, -1 }, { 3, 7, 9, -1 }, { 4, -1 } },
    { { 4, 130, 7, -1 }, { 3, 7, 5, -1 }, { 4, -1 } },    /* many rows per matrix, in place */
    { { 2, 6, 3, 7, -1 }, { 3, 7, 600, -1 }, { 6, -1 } }, /* several parts of columns */
    { { 3, 7, -1 }, { 2, 7, 9, -1 }, { 300, -1 } },       /* x is the same for all */
    { { 1, 7, -1 }, { 8, 7, 9, -1 }, { 1, -1 } },
    { { 7, -1 }, { 3, 7, 9, -1 }, { 2, 2, -1 } },    /* a vector */
    { { 5, 1, 0, -1 }, { 3, 0, 9, -1 }, { 5, -1 } }, /* sums of nothing */
    { { 0, 1, 7, -1 }, { 3, 7, 9, -1 }, { 0, -1 } },
    { { 5, 1, 7, -1 }, { 3, 7, 0, -1 }, { 5, -1 } },
};

static void model_of(char text[512], const char *type, const char *index, const char *number)
{
    (void)snprintf(text, 512,
                   "<ir_version: 10, opset_import: [\"\" : 21]> g (%s[] x, %s[] w, %s[] at) => (%s[] y) "
                   "{ own = Gather <axis = %s> (w, at)  y = MatMul (x, own) }",
                   type, type, index, type, number);
    for (char *at = text; (at = strstr(at, "[]")) != NULL;)
        memmove(at, at + 2, strlen(at + 2) + 1);
}

/* Types without a shape are not written as scalars. */
static void open_shapes(char text[512], const int64_t (*dims)[6])
{
    static const char *const names[INPUTS] = { " x", " w", " at" };
    for (uint32_t i = 0; i < INPUTS; i++) {
        char list[64] = "[";
        for (uint32_t d = 0; dims[i][d] >= 0; d++)
            (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%c%u", d ? "," : "", 'a' + (int)i,
                           (unsigned)d);
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "]");
        char *at = strstr(text, names[i]);
        memmove(at + strlen(list), at, strlen(at) + 1);
        memcpy(at, list, strlen(list));
    }
}

static void test_run_grouped__multiplies_in_place(void **state)
{
    (void)state;
    static const onx_dtype types[] = { ONX_FLOAT, ONX_DOUBLE, ONX_FLOAT16, ONX_BFLOAT16 };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const onx_dtype index = i % 2 ? ONX_INT32 : ONX_INT64, of[INPUTS] = { types[t], types[t], index };
            char text[512];
            outcome fast, plain;
            model_of(text, onx_dtype_name(types[t]), onx_dtype_name(index), "0");
            open_shapes(text, shapes[i]);
            run(cx, text, shapes[i], of, false, NULL, &fast);
            run(cx, text, shapes[i], of, true, NULL, &plain);
            if (fast.status != ONX_OK || plain.status != ONX_OK)
                fail_msg("%s%s\n%s", fast.why, plain.why, text);
            if (!fast.grouped || (t < 2 && fast.steps != 1) || plain.grouped) /* 16-bit floats may be cast */
                fail_msg("%u steps, %u of the nodes, for shapes %u\n%s", fast.steps, plain.steps, (unsigned)i, text);
            assert_int_equal(fast.y->rank, plain.y->rank);
            assert_memory_equal(fast.y->dims, plain.y->dims, fast.y->rank * sizeof *fast.y->dims);
            const uint64_t width = types[t] == ONX_DOUBLE ? 8 : types[t] == ONX_FLOAT ? 4 : 2;
            assert_memory_equal(fast.y->data, plain.y->data, fast.y->count * width);
            onx_value_free(fast.y);
            onx_value_free(plain.y);
        }
    onx_ctx_free(cx);
}

/* What is no product with whole matrices of floats stays as it is. */
static void test_run_grouped__leaves_others(void **state)
{
    (void)state;
    static const struct {
        const char *type, *axis;
        onx_dtype dtype;
        int64_t dims[INPUTS][6];
    } others[] = {
        { "float", "1", ONX_FLOAT, { { 4, 3, 5, -1 }, { 4, 6, 7, -1 }, { 5, -1 } } },
        { "int32", "0", ONX_INT32, { { 4, 3, 7, -1 }, { 3, 7, 9, -1 }, { 4, -1 } } },
        { "float", "0", ONX_FLOAT, { { 3, 7, -1 }, { 3, 7, 9, -1 }, { -1 } } },
        { "float", "0", ONX_FLOAT, { { 2, 3, 7, -1 }, { 7, 9, -1 }, { 7, -1 } } },
    };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const onx_dtype of[INPUTS] = { others[i].dtype, others[i].dtype, ONX_INT64 };
        char text[512];
        outcome out;
        model_of(text, others[i].type, "int64", others[i].axis);
        open_shapes(text, others[i].dims);
        run(cx, text, others[i].dims, of, false, NULL, &out);
        if (out.status != ONX_OK)
            fail_msg("%s\n%s", out.why, text);
        assert_false(out.grouped);
        onx_value_free(out.y);
    }
    onx_ctx_free(cx);
}

static void test_run_grouped__refuses_wrong_indices(void **state)
{
    (void)state;
    static const onx_dtype of[INPUTS] = { ONX_FLOAT, ONX_FLOAT, ONX_INT64 };
    static const int64_t wrong[] = { 3, -4, INT64_MAX, INT64_MIN };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[512];
        outcome out;
        model_of(text, "float", "int64", "0");
        open_shapes(text, shapes[1]);
        run(cx, text, shapes[1], of, false, &wrong[i], &out);
        assert_int_equal(out.status, ONX_E_INVALID);
        assert_non_null(strstr(out.why, "index"));
    }
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_grouped__multiplies_in_place),
        cmocka_unit_test(test_run_grouped__leaves_others),
        cmocka_unit_test(test_run_grouped__refuses_wrong_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
