/* Repeated nodes and types: similar but different ones must not be treated as equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/infer.h>
#include <onx/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "context.h"

#define HEAD "<ir_version: 10, opset_import: [\"\" : 18]>\n"

static onx_doc *parse(const char *text)
{
    onx_doc *doc = NULL;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return doc;
}

typedef struct collected {
    char text[4096];
    size_t len;
} collected;

static onx_status collect(void *user, onx_str bytes)
{
    collected *c = user;
    for (size_t i = 0; i < bytes.len && c->len + 1 < sizeof c->text; i++)
        if (bytes.ptr[i] != '\n' && bytes.ptr[i] != ' ')
            c->text[c->len++] = bytes.ptr[i];
    c->text[c->len] = '\0';
    return ONX_OK;
}

static const onx_type *value_type(const onx_graph *graph, onx_str name)
{
    for (uint32_t i = 0; i < graph->value_info_count; i++)
        if (onx_str_equal(onx_view(graph->value_info[i]->name), name))
            return graph->value_info[i]->type;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (onx_str_equal(onx_view(graph->output[i]->name), name))
            return graph->output[i]->type;
    return NULL;
}

/* "a float[2,3] b ..." of all outputs of nodes; "a - " for one without a type. */
static void types_of(const onx_graph *graph, collected *c)
{
    c->len = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++) {
            const onx_str name = onx_view(graph->node[i]->output[k]);
            const onx_type *type = value_type(graph, name);
            c->len += (size_t)snprintf(c->text + c->len, sizeof c->text - c->len, "%s%.*s ", c->len ? " " : "",
                                       ONX_ARG(name));
            if (type)
                assert_int_equal(onx_text_print(cx, ONX_KIND_TYPE, type, NULL, (onx_sink){ collect, c }), ONX_OK);
            else
                c->len += (size_t)snprintf(c->text + c->len, sizeof c->text - c->len, "-");
        }
}

static const struct {
    const char *title, *model, *types;
    size_t warnings;
} cases[] = {
    { "attributes differ",
      HEAD "g (float[2,3] x) => () { a = Concat<axis=0>(x, x) b = Concat<axis=1>(x, x) "
           "c = Concat<axis=0>(x, x) d = Concat<axis=-1>(x, x) }",
      "a float[4,3] b float[2,6] c float[4,3] d float[2,6]", 0 },
    { "an attribute is left out",
      HEAD "g (float[2,3] x) => () { a = Transpose(x) b = Transpose<perm=[0, 1]>(x) "
           "c = Transpose(x) d = Transpose<perm=[0, 1]>(x) }",
      "a float[3,2] b float[2,3] c float[3,2] d float[2,3]", 0 },
    { "operators differ", HEAD "g (float[2,3] x) => () { a = Relu(x) b = Equal(x, x) c = Add(x, x) d = Equal(x, x) }",
      "a float[2,3] b bool[2,3] c float[2,3] d bool[2,3]", 0 },
    { "types differ in the element alone",
      HEAD "g (float[2] x, double[2] y) => () { a = Neg(x) b = Neg(y) c = Neg(a) d = Neg(b) }",
      "a float[2] b double[2] c float[2] d double[2]", 0 },
    { "a size that depends on data is another one each time",
      HEAD "g (float[2,3] x) => () { a = NonZero(x) b = NonZero(x) c = Add(a, a) d = Add(a, b) }",
      "a int64[2,unk__0] b int64[2,unk__1] c int64[2,unk__0] d int64[2,\"max(unk__1,unk__0)\"]", 0 },
    { "values differ where types do not",
      HEAD "g (float[6] x) => () { s = Constant<value_ints=[2, 3]>() t = Constant<value_ints=[3, 2]>() "
           "a = Reshape(x, s) b = Reshape(x, t) c = Reshape(x, s) }",
      "s int64[2] t int64[2] a float[2,3] b float[3,2] c float[2,3]", 0 },
    { "values come from initializers",
      HEAD "g (float[6] x) => () <int64[2] s = {2, 3}, int64[2] t = {3, 2}> { a = Reshape(x, s) b = Reshape(x, t) }",
      "a float[2,3] b float[3,2]", 0 },
    { "values are carried",
      HEAD "g (float[2,3] x, float[3,2] y, float[6] z, float w) => () { s = Shape(x) t = Shape(y) "
           "u = Mul(s, s) v = Mul(t, t) a = Reshape(z, s) b = Reshape(z, t) c = Expand(w, v) d = Expand(w, u) }",
      "s int64[2] t int64[2] u int64[2] v int64[2] a float[2,3] b float[3,2] c float[9,4] d float[4,9]", 0 },
    { "inputs are left out in different places",
      HEAD "g (float[2,3] x, float l) => () { a = Clip(x, l) b = Clip(x, \"\", l) c = Clip(x) d = Clip(x, l) }",
      "a float[2,3] b float[2,3] c float[2,3] d float[2,3]", 0 },
    { "outputs are left out", HEAD "g (float[2,3] x) => () { a = Dropout(x) b, c = Dropout(x) d = Dropout(x) }",
      "a float[2,3] b float[2,3] c bool[2,3] d float[2,3]", 0 },
    { "the model says more of one of them",
      HEAD "g (float[N,M] x) => () <float[N,4] b> { a = Relu(x) b = Relu(x) c = Relu(x) d = Relu(b) e = Relu(a) }",
      "a float[N,M] b float[N,4] c float[N,M] d float[N,4] e float[N,M]", 0 },
    { "the model says something else of one of them",
      HEAD "g (float[2] x) => () <float[3] b> { a = Relu(x) b = Relu(x) c = Relu(x) d = Relu(b) }",
      "a float[2] b float[3] c float[2] d float[3]", 1 },
    { "the model says less of one of them",
      HEAD
      "g (float[2,3] x) => () <float[] b, float[?,K] c, float[2,3] d> { a = Relu(x) b = Relu(x) c = Relu(x) d = Relu(x) }",
      "a float[2,3] b float[2,3] c float[2,3] d float[2,3]", 0 },
    { "a value is declared twice",
      HEAD "g (float[2,M] x) => (float[2,3] b) <float[2,M] b, float[2,M] a> { a = Relu(x) b = Relu(a) c = Relu(b) }",
      "a float[2,M] b float[2,3] c float[2,3]", 0 },
    { "every failure counts", HEAD "g (float[2] x, float[3] y) => () { a = Add(x, y) b = Add(x, y) c = Add(x, x) }",
      "a float[] b float[] c float[2]", 2 },
    { "a name means something else inside",
      HEAD
      "g (bool k, float[2] x, float[3] y) => () { a = Neg(x) b = If (k) <then_branch = t () => (float[3] u) "
      "{ z = Neg(y) u = Neg(z) }, else_branch = e () => (float[3] v) { z = Abs(y) v = Neg(z) }> c = Neg(b) d = Neg(a) }",
      "a float[2] b float[3] c float[3] d float[2]", 0 },
};

static void test_infer_repeat__what_looks_alike_is_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        collected c;
        onx_doc *doc = parse(cases[i].model);
        onx_diag_clear(cx);
        assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
        types_of(onx_doc_model(doc)->graph, &c);
        if (strcmp(c.text, cases[i].types) != 0 || onx_diag_count(cx) != cases[i].warnings)
            fail_msg("%s: %s, %zu warnings; wanted: %s", cases[i].title, c.text, onx_diag_count(cx), cases[i].types);
        onx_doc_free(doc);
    }
}

/* Written types are copies of one another in memory, too: each value has its own. */
static void test_infer_repeat__written_types_are_separate(void **state)
{
    (void)state;
    onx_doc *doc = parse(HEAD "g (float[N,3] x) => () { a = Relu(x) b = Relu(a) c = Relu(b) d = Relu(c) }");
    onx_graph *graph = onx_doc_model(doc)->graph;
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    assert_int_equal(graph->value_info_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        onx_type_tensor *t = graph->value_info[i]->type->tensor_type;
        assert_true(onx_str_is(onx_view(t->shape->dim[0]->dim_param), "N"));
        assert_int_equal(t->shape->dim[1]->dim_value, 3);
        t->elem_type = (int32_t)i + 1;
        t->shape->dim[1]->dim_value = 10 + i;
    }
    for (uint32_t i = 0; i < 4; i++) {
        const onx_type_tensor *t = graph->value_info[i]->type->tensor_type;
        assert_int_equal(t->elem_type, i + 1);
        assert_int_equal(t->shape->dim[1]->dim_value, 10 + i);
        assert_true(onx_str_is(onx_view(t->shape->dim[0]->dim_param), "N"));
    }
    onx_doc_free(doc);
}

/* After a symbol got a size the same node gives another answer, and its old one once more when that is taken back. */
static void test_infer_repeat__a_symbol_is_fixed(void **state)
{
    (void)state;
    onx_doc *doc = parse(HEAD "g (float[N] x, float[N] y) => () { a = Add(x, y) b = Add(x, y) c = Concat<axis=0>(a, b) "
                              "d = Concat<axis=0>(a, b) }");
    onx_infer *infer = NULL;
    collected c = { .len = 0 };
    assert_int_equal(onx_infer_new(cx, doc, NULL, &infer), ONX_OK);
    for (int64_t size = 2; size < 5; size++) {
        char wanted[32];
        assert_int_equal(onx_infer_fix(infer, onx_str_of("N"), size), ONX_OK);
        for (const char *name = "abcdxy"; *name; name++) {
            const onx_type *type = onx_infer_type(infer, onx_doc_model(doc)->graph, onx_str_make(name, 1));
            c.len = 0;
            assert_int_equal(onx_text_print(cx, ONX_KIND_TYPE, type, NULL, (onx_sink){ collect, &c }), ONX_OK);
            (void)snprintf(wanted, sizeof wanted, "float[%d]", (int)(*name == 'c' || *name == 'd' ? 2 * size : size));
            assert_string_equal(c.text, wanted);
        }
    }
    onx_infer_free(infer);
    onx_doc_free(doc);
}

/* Processor seconds for a chain of calls of one function that differ in an attribute, or in the weights they get. */
static double time_of_calls(int count, bool weights)
{
    const size_t size = (size_t)count * 160 + 1000;
    char *text = malloc(size);
    assert_non_null(text);
    size_t n = (size_t)snprintf(text, size,
                                "<ir_version: 10, opset_import: [\"\" : 18, \"f\" : 1]>\n"
                                "g (float[2] x0) => (float[2] x%d) {\n",
                                count);
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, size - n,
                              "c%d = Constant<value = float[2] {%d, 1}>() x%d = f.F<k = %d>(x%d, c%d)\n", i,
                              weights ? i : 0, i + 1, weights ? 0 : i, i, i);
    (void)snprintf(text + n, size - n,
                   "}\n<domain: \"f\", opset_import: [\"\" : 18]> F<k>(x, c) => (y) { y = Add(x, c) }\n");
    onx_doc *doc = parse(text);
    const clock_t start = clock();
    assert_int_equal(onx_infer_model(cx, doc, NULL), ONX_OK);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(onx_doc_model(doc)->graph->value_info_count, 2 * count - 1);
    onx_doc_free(doc);
    free(text);
    return seconds;
}

/* Eight times the calls may take eight times as long, not 64 times. */
static void test_infer_repeat__calls_that_differ_are_linear(void **state)
{
    (void)state;
    for (int weights = 0; weights < 2; weights++) {
        const double few = time_of_calls(4000, weights), many = time_of_calls(32000, weights);
        if (many > 0.3 + 24 * few)
            fail_msg("4000 calls took %.2f s, 32000 took %.2f s", few, many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer_repeat__what_looks_alike_is_told_apart),
        cmocka_unit_test(test_infer_repeat__written_types_are_separate),
        cmocka_unit_test(test_infer_repeat__a_symbol_is_fixed),
        cmocka_unit_test(test_infer_repeat__calls_that_differ_are_linear),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
