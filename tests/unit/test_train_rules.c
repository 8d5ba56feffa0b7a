/* test_train_rules.c - the rules of training information, TR-01 to TR-20, in the trainer: a table with a row for each,
 * and a model that breaks it and is refused with its name, or one that it applies to and the result of training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/text.h>
#include <onx/train.h>

#include <string.h>

#include "context.h"

#define OPSETS                                                                                                         \
    "ir_version: 13 opset_import { version: 26 } opset_import { domain: \"ai.onnx.preview.training\" version: 1 } "
#define TYPE(n)           "type { tensor_type { elem_type: 1 shape { dim { dim_value: " #n " } } } } "
#define IN(name, n)       "input { name: \"" name "\" " TYPE(n) "} "
#define OUT(name, n)      "output { name: \"" name "\" " TYPE(n) "} "
#define VAR(name, a, b)   "initializer { name: \"" name "\" dims: 2 data_type: 1 float_data: [" #a ", " #b "] } "
#define NODE(op, a, b, y) "node { op_type: \"" op "\" input: \"" a "\" input: \"" b "\" output: \"" y "\" } "
#define CONST(y, a, b)                                                                                                 \
    "node { op_type: \"Constant\" output: \"" y "\" attribute { name: \"value_floats\" type: FLOATS floats: [" #a      \
    ", " #b "] } } "
#define MAIN              "graph { name: \"g\" " IN("x", 2) OUT("y", 2) NODE("Add", "x", "w", "y") VAR("w", 1, 2) "} "
#define START(a, b)       "initialization { name: \"i\" " CONST("w0", a, b) OUT("w0", 2) "} "
#define STEP              "algorithm { name: \"a\" " IN("d", 2) NODE("Sub", "w", "d", "w1") OUT("w1", 2) "} "
#define AGAIN             "algorithm { name: \"b\" " IN("d", 2) NODE("Add", "w", "d", "w1") OUT("w1", 2) "} "
#define FIRST(key, value) "initialization_binding { key: \"" key "\" value: \"" value "\" } "
#define NEXT(key, value)  "update_binding { key: \"" key "\" value: \"" value "\" } "
#define ENTRY(text)       "training_info { " text "} "
#define GRADIENT(xs, y, inputs, outputs)                                                                               \
    "node { op_type: \"Gradient\" domain: \"ai.onnx.preview.training\" " inputs outputs                                \
    "attribute { name: \"xs\" type: STRINGS " xs "} attribute { name: \"y\" type: STRING s: \"" y "\" } } "
#define DERIVED(gradient)                                                                                              \
    OPSETS MAIN ENTRY(                                                                                                 \
        "algorithm { name: \"a\" node { op_type: \"ReduceSum\" input: \"y\" output: \"loss\" } " gradient OUT(         \
            "dw", 2) "} " NEXT("w", "dw"))

typedef struct row {
    const char *rule, *model;
    const char *as;                             /* the rule by which it is refused, where that is another one */
    void (*look)(onx_trainer *t, onx_doc *doc); /* it trains, and so */
} row;

static onx_status step(onx_trainer *t, uint32_t entry, float a, float b, const char *name)
{
    onx_value *d;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, (const int64_t[1]){ 2 }, &d), ONX_OK);
    ((float *)d->data)[0] = a;
    ((float *)d->data)[1] = b;
    const onx_named_value inputs[2] = { { "x", d }, { name, d } };
    const onx_status status = onx_trainer_step(t, entry, inputs, name ? 2 : 1, NULL, 0);
    onx_value_free(d);
    return status;
}

static void is_now(const onx_trainer *t, const char *name, float a, float b)
{
    onx_trainer_variable v;
    for (uint32_t i = 0; onx_trainer_variable_get(t, i, &v); i++)
        if (onx_str_is(v.name, name)) {
            assert_true(((const float *)v.value->data)[0] == a);
            assert_true(((const float *)v.value->data)[1] == b);
            return;
        }
    fail_msg("there is no variable %s", name);
}

static void two_entries_change_it(onx_trainer *t, onx_doc *doc) /* a warning of the checker alone */
{
    (void)doc;
    assert_int_equal(step(t, 0, 5, 5, "d"), ONX_OK);
    assert_int_equal(step(t, 1, 1, 2, "d"), ONX_OK);
    is_now(t, "w", -3, -1);
}

static void in_list_order(onx_trainer *t, onx_doc *doc)
{
    (void)doc;
    assert_int_equal(onx_trainer_initialize(t), ONX_OK);
    is_now(t, "w", 7, 8);
}

static void what_y_is(onx_doc *doc, float a, float b)
{
    onx_session *s;
    onx_value *x, *y = NULL;
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, (const int64_t[1]){ 2 }, &x), ONX_OK);
    for (int i = 0; i < 2; i++) { /* and a second run has what the first had */
        ((float *)x->data)[0] = ((float *)x->data)[1] = 0;
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
        assert_true(((const float *)y->data)[0] == a && ((const float *)y->data)[1] == b);
    }
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
}

static void inference_changes_nothing(onx_trainer *t, onx_doc *doc)
{
    is_now(t, "w", 1, 2);
    what_y_is(doc, 1, 2);
    assert_int_equal(step(t, 0, 5, 6, "d"), ONX_OK);
    is_now(t, "w", -4, -4);
    what_y_is(doc, 1, 2); /* until it is stored */
    assert_int_equal(onx_trainer_store(t), ONX_OK);
    what_y_is(doc, -4, -4);
    is_now(t, "w", -4, -4);
}

static void any_entry_in_any_order(onx_trainer *t, onx_doc *doc)
{
    (void)doc;
    assert_int_equal(step(t, 1, 1, 1, "d"), ONX_OK);
    is_now(t, "w", 2, 3);
    assert_int_equal(step(t, 1, 1, 1, "d"), ONX_OK);
    assert_int_equal(step(t, 0, 4, 4, "d"), ONX_OK);
    is_now(t, "w", -1, 0);
    assert_int_equal(step(t, 2, 4, 4, "d"), ONX_E_NOT_FOUND);
}

static void an_input_with_a_default_is_a_variable(onx_trainer *t, onx_doc *doc)
{
    (void)doc;
    assert_int_equal(step(t, 0, 1, 1, "w"), ONX_E_MISUSE); /* steps alone change it */
    onx_diag_clear(cx);
    assert_int_equal(step(t, 0, 1, 1, "d"), ONX_OK);
    is_now(t, "w", 0, 1);
}

static const row rows[] = {
    { "TR-01", OPSETS MAIN ENTRY(STEP NEXT("nope", "w1")), NULL, NULL },
    { "TR-01", OPSETS MAIN ENTRY(STEP NEXT("x", "w1")), NULL, NULL },
    { "TR-02", OPSETS MAIN ENTRY(START(0, 0) FIRST("w", "nope")), NULL, NULL },
    { "TR-03", OPSETS MAIN ENTRY(STEP NEXT("w", "d")), NULL, NULL },
    { "TR-04", OPSETS MAIN ENTRY(STEP NEXT("w", "w1") NEXT("w", "w1")), NULL, NULL },
    { "TR-04", OPSETS MAIN ENTRY(START(0, 0) FIRST("w", "w0") FIRST("w", "w0")), NULL, NULL },
    { "TR-05", OPSETS MAIN ENTRY(STEP NEXT("w", "w1")) ENTRY(AGAIN NEXT("w", "w1")), NULL, two_entries_change_it },
    { "TR-06",
      OPSETS MAIN ENTRY("initialization { name: \"i\" " IN("e", 2) NODE("Add", "e", "e", "w0")
                            OUT("w0", 2) "} " FIRST("w", "w0")),
      NULL, NULL },
    { "TR-07", OPSETS MAIN ENTRY(STEP FIRST("w", "w1") NEXT("w", "w1")), NULL, NULL },
    { "TR-08", OPSETS MAIN ENTRY(START(0, 0) NEXT("w", "y")), NULL, NULL },
    { "TR-09", OPSETS MAIN ENTRY("algorithm { name: \"a\" " NODE("Add", "x", "x", "y") OUT("y", 2) "} "), NULL, NULL },
    { "TR-10",
      OPSETS "graph { name: \"g\" " IN("x", 2) OUT("y", 2) NODE("Add", "x", "d", "y")
          VAR("w", 1, 2) "} " ENTRY(STEP NEXT("w", "w1")),
      "S-07", NULL },
    { "TR-11",
      OPSETS MAIN ENTRY("initialization { name: \"i\" " NODE("Add", "w", "w", "w0") OUT("w0", 2) "} " FIRST("w", "w0")),
      NULL, NULL },
    { "TR-12",
      OPSETS MAIN ENTRY("algorithm { name: \"a\" " IN("d", 3) NODE("Add", "d", "d", "w1")
                            OUT("w1", 3) "} " NEXT("w", "w1")),
      NULL, NULL },
    { "TR-13",
      OPSETS
      "graph { name: \"g\" sparse_initializer { dims: 3 values { name: \"s\" dims: 2 data_type: 1 float_data: [1, 2] } "
      "indices { dims: 2 data_type: 7 int64_data: [0, 2] } } } " ENTRY(START(0, 0) FIRST("s", "w0")),
      NULL, NULL },
    { "TR-14", OPSETS MAIN ENTRY(STEP "update_binding { key: \"w\" } "), NULL, NULL },
    { "TR-14", OPSETS MAIN ENTRY(STEP "update_binding { value: \"w1\" } "), NULL, NULL },
    { "TR-15",
      OPSETS MAIN ENTRY("algorithm { name: \"a\" " NODE("Nope", "x", "w", "w1") OUT("w1", 2) "} " NEXT("w", "w1")),
      "ND-04", NULL },
    { "TR-16",
      DERIVED(GRADIENT("strings: \"w\" strings: \"y\" ", "loss", "input: \"w\" input: \"y\" ", "output: \"dw\" ")),
      NULL, NULL },
    { "TR-16", DERIVED(GRADIENT("strings: \"w\" ", "nope", "input: \"w\" ", "output: \"dw\" ")), NULL, NULL },
    { "TR-16", DERIVED(GRADIENT("strings: \"w\" ", "loss", "input: \"w\" input: \"x\" ", "output: \"dw\" ")), NULL,
      NULL },
    { "TR-17", OPSETS MAIN ENTRY(START(5, 6) FIRST("w", "w0")) ENTRY(START(7, 8) FIRST("w", "w0")), NULL,
      in_list_order },
    { "TR-18", OPSETS MAIN ENTRY(START(5, 6) STEP FIRST("w", "w0") NEXT("w", "w1")), NULL, inference_changes_nothing },
    { "TR-19", OPSETS MAIN ENTRY(STEP NEXT("w", "w1")) ENTRY(AGAIN NEXT("w", "w1")), NULL, any_entry_in_any_order },
    { "TR-20",
      OPSETS "graph { name: \"g\" " IN("x", 2) IN("w", 2) OUT("y", 2) NODE("Add", "x", "w", "y")
          VAR("w", 1, 2) "} " ENTRY(STEP NEXT("w", "w1")),
      NULL, an_input_with_a_default_is_a_variable },
};

static bool is_told(const char *rule)
{
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->severity == ONX_ERROR && onx_diag_get(cx, i)->rule &&
            strcmp(onx_diag_get(cx, i)->rule, rule) == 0)
            return true;
    return false;
}

static bool is_said(const char *text)
{
    bool said = false;
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        char line[400];
        onx_diag_format(onx_diag_get(cx, i), line, sizeof line);
        said |= strstr(line, text) != NULL;
    }
    return said;
}

static onx_doc *parse(const char *model)
{
    onx_doc *doc;
    assert_int_equal(onx_textproto_read(cx, ONX_KIND_MODEL, onx_str_of(model), &doc), ONX_OK);
    onx_diag_clear(cx);
    return doc;
}

static void test_train_rules__each_is_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        onx_doc *doc = parse(r->model);
        onx_trainer *t;
        const onx_status status = onx_trainer_new(cx, doc, NULL, &t);
        if (!r->look && (status != ONX_E_INVALID || !is_told(r->as ? r->as : r->rule)))
            fail_msg("row %zu, %s: is not what refuses the model", i, r->rule);
        if (r->look) {
            if (status != ONX_OK)
                fail_msg("row %zu, %s: is refused", i, r->rule);
            r->look(t, doc);
        }
        onx_trainer_free(t);
        onx_doc_free(doc);
        onx_diag_clear(cx);
    }
}

static void test_train_rules__all_have_a_row(void **state)
{
    unsigned group = 0;
    (void)state;
    for (size_t i = 0; i < onx_rule_count(); i++) {
        const char *id = onx_rule_get(i)->id;
        bool found = strncmp(id, "TR-", 3) != 0;
        group += !found;
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            found |= strcmp(rows[k].rule, id) == 0;
        if (!found)
            fail_msg("%s has no row", id);
    }
    assert_int_equal(group, 20);
}

/* ---- what else may be wrong ---- */

static void test_train_rules__variables_may_change_places(void **state)
{
    onx_doc *doc =
        parse(OPSETS "graph { name: \"g\" " IN("x", 2) OUT("y", 2) NODE("Add", "x", "w", "y") VAR("w", 1, 2) VAR(
            "v", 3, 4) "} " ENTRY("algorithm { name: \"a\" node { op_type: \"Identity\" input: \"w\" output: \"v1\" } "
                                  "node { op_type: \"Identity\" input: \"v\" output: \"w1\" } " OUT("w1", 2)
                                      OUT("v1", 2) "} " NEXT("w", "w1") NEXT("v", "v1")));
    onx_trainer *t;
    (void)state;
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_OK);
    assert_int_equal(step(t, 0, 0, 0, NULL), ONX_OK);
    is_now(t, "w", 3, 4);
    is_now(t, "v", 1, 2);
    assert_int_equal(step(t, 0, 0, 0, NULL), ONX_OK);
    is_now(t, "w", 1, 2);
    onx_trainer_free(t);
    onx_doc_free(doc);
}

/* A state that is computed from itself in one step is a cycle of nodes. */
static void test_train_rules__cycles_are_refused(void **state)
{
    onx_doc *doc = parse(OPSETS MAIN ENTRY("algorithm { name: \"a\" " NODE("Add", "w", "b1", "w1")
                                               NODE("Add", "w1", "x", "b1") OUT("w1", 2) "} " NEXT("w", "w1")));
    onx_trainer *t;
    (void)state;
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_E_INVALID);
    assert_true(is_said("\"b1\" depends on itself"));
    onx_doc_free(doc);
    onx_diag_clear(cx);
}

/* A shape that is only known when the step has run. */
static void test_train_rules__shapes_stay(void **state)
{
    onx_doc *doc = parse(OPSETS MAIN ENTRY(
        "algorithm { name: \"a\" input { name: \"d\" type { tensor_type { elem_type: 1 shape { dim { "
        "dim_param: \"N\" } } } } } node { op_type: \"Identity\" input: \"d\" output: \"w1\" } "
        "output { name: \"w1\" type { tensor_type { elem_type: 1 shape { dim { dim_param: \"N\" } } } } } } " NEXT(
            "w", "w1")));
    onx_trainer *t;
    onx_value *x, *d;
    (void)state;
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_OK);
    assert_int_equal(step(t, 0, 8, 9, "d"), ONX_OK);
    is_now(t, "w", 8, 9);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, (const int64_t[1]){ 2 }, &x), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, (const int64_t[1]){ 3 }, &d), ONX_OK);
    const onx_named_value inputs[2] = { { "x", x }, { "d", d } };
    assert_int_equal(onx_trainer_step(t, 0, inputs, 2, NULL, 0), ONX_E_INVALID);
    assert_true(is_said("for variable w has another type or shape"));
    is_now(t, "w", 8, 9);
    onx_diag_clear(cx);
    onx_value_free(x);
    onx_value_free(d);
    onx_trainer_free(t);
    onx_doc_free(doc);
}

/* What a value does not depend on has the gradient 0, as the standard says; what cannot be derived is named. */
static void test_train_rules__gradients_of_what_does_not_matter(void **state)
{
    onx_doc *doc = parse(OPSETS MAIN ENTRY(
        "algorithm { name: \"a\" node { op_type: \"ReduceSum\" input: \"x\" output: \"loss\" } " GRADIENT(
            "strings: \"w\" ", "loss", "input: \"w\" ", "output: \"dw\" ") OUT("dw", 2) "} " NEXT("w", "dw")));
    onx_trainer *t;
    (void)state;
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_OK);
    assert_int_equal(step(t, 0, 8, 9, NULL), ONX_OK);
    is_now(t, "w", 0, 0);
    onx_trainer_free(t);
    onx_doc_free(doc);
    doc = parse(OPSETS MAIN ENTRY(
        "algorithm { name: \"a\" node { op_type: \"BitCast\" input: \"y\" output: \"u\" attribute { name: \"to\" type: INT i: 1 } } node { op_type: "
        "\"ReduceSum\" input: \"u\" output: \"loss\" } " GRADIENT(
            "strings: \"w\" ", "loss", "input: \"w\" ", "output: \"dw\" ") OUT("dw", 2) "} " NEXT("w", "dw")));
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_E_UNSUPPORTED);
    assert_true(is_said("there is no gradient of BitCast"));
    onx_doc_free(doc);
    onx_diag_clear(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_rules__each_is_kept),
        cmocka_unit_test(test_train_rules__all_have_a_row),
        cmocka_unit_test(test_train_rules__variables_may_change_places),
        cmocka_unit_test(test_train_rules__cycles_are_refused),
        cmocka_unit_test(test_train_rules__shapes_stay),
        cmocka_unit_test(test_train_rules__gradients_of_what_does_not_matter),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
