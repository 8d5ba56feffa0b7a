/* test_gen_grad_texts.c - gradients of models that recipes cannot make, compared with finite differences. */
#include "grad_differences.h"
#include "grad_texts.h"

/* Inputs of real numbers, of the sizes that a text declares. */
static bool open_declared(onx_ctx *cx, onx_doc *doc, point *p)
{
    const onx_graph *graph = onx_doc_model(doc)->graph;
    memset(p, 0, sizeof *p);
    p->count = graph->input_count;
    for (uint32_t i = 0; i < p->count && i < ROOM; i++) {
        int64_t dims[8];
        double elements[512];
        const onx_tensor_shape *shape = graph->input[i]->type->tensor_type->shape;
        uint64_t count = 1;
        for (uint32_t k = 0; k < shape->dim_count; k++) {
            const onx_dimension *d = shape->dim[k];
            dims[k] = ONX_HAS(dimension, d, dim_value)          ? d->dim_value
                      : onx_str_is(onx_view(d->dim_param), "N") ? 3
                      : onx_str_is(onx_view(d->dim_param), "M") ? 2
                                                                : 1;
            count *= (uint64_t)dims[k];
        }
        for (uint64_t e = 0; e < count && e < 512; e++)
            elements[e] = moved(sin(3.1 * (double)e + 1.3 * i) + 0.2, e + 5 * i, 0);
        const onx_dtype dtype = (onx_dtype)graph->input[i]->type->tensor_type->elem_type;
        if (onx_value_new_tensor(cx, dtype, shape->dim_count, dims, &p->values[i]) != ONX_OK)
            return false;
        for (uint64_t e = 0; e < count; e++)
            set(p->values[i], e, elements[e]);
        p->wanted[i] = true;
        p->coarse |= dtype != ONX_DOUBLE;
    }
    return true;
}

static bool try_text(const char *text, tally *sum, char *why, size_t size)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    trial *t = calloc(1, sizeof *t);
    bool ok = t && onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &t->doc) == ONX_OK;
    if (ok) {
        t->cx = cx;
        ok = open_declared(cx, t->doc, &t->at) && find_outputs(t, t->doc) && t->count;
    }
    ok = ok && add_loss(t->doc, t->names, t->values, t->count, "loss") && check_order(t, "loss", sum, why, size);
    if (!ok && onx_diag_count(cx))
        first_error(cx, why, size);
    if (t) {
        forget_outputs(t);
        close_point(&t->at);
        onx_doc_free(t->doc);
    }
    free(t);
    onx_ctx_free(cx);
    return ok;
}

static void test_gen_grad_texts__subgraphs_functions_and_open_shapes(void **state)
{
    (void)state;
    tally sum = { 0 };
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char why[400] = "?";
        const unsigned before = sum.nonzero;
        bool ok = try_text(texts[i], &sum, why, sizeof why);
        if (ok && sum.nonzero == before) {
            snprintf(why, sizeof why, "all slopes are zero, which says nothing");
            ok = false;
        }
        if (!ok) {
            print_error("text %d: %s\n", (int)i, why);
            failed++;
        }
    }
    print_message("%u elements compared, %u at kinks left out, largest relative error %.2g, of numbers of float %.2g\n",
                  sum.compared, sum.kinks, sum.worst, sum.worst_rough);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_grad_texts__subgraphs_functions_and_open_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
