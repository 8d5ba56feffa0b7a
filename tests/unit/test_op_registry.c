/* Custom operators: registered from C, and described by operator-set documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/op.h>

#include "unit/scarce.h"

#include "unit/context.h"

static int clear(void **state)
{
    (void)state;
    onx_diag_clear(cx);
    return 0;
}

static bool has_rule(const char *rule)
{
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->rule && strcmp(onx_diag_get(cx, i)->rule, rule) == 0)
            return true;
    return false;
}

/* ---- registered from C ---- */

static const onx_op_port inputs[] = {
    { "X", "T", 0 }, { "W", "T", 0 }, { "B", "tensor(float)", ONX_PORT_OPTIONAL }, { 0 }
};
static const onx_op_port outputs[] = { { "Y", "T", ONX_PORT_VARIADIC }, { 0 } };
static const onx_op_attribute attributes[] = { { "axis", ONX_ATTR_INT, false, "-1" }, { 0 } };
static const char *const types[] = { "T", "tensor(float) seq(tensor(int64)) map(string,tensor(float))", NULL };
static const onx_op_def twist = { .domain = "com.example",
                                  .name = "Twist",
                                  .since = 3,
                                  .summary = "Twists a tensor.",
                                  .inputs = inputs,
                                  .outputs = outputs,
                                  .attributes = attributes,
                                  .types = types,
                                  .user = &cx };

static void test_op_registry__registered_operators_are_found_by_version(void **state)
{
    (void)state;
    const onx_str domain = onx_str_of("com.example"), name = onx_str_of("Twist");
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_null(onx_registry_find(registry, domain, name, 3));
    onx_op_def def = twist;
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    const onx_op *third = onx_registry_find(registry, domain, name, 3);
    def.since = 1;
    def.outputs = NULL;
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    def.since = 7;
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    assert_int_equal(onx_op_since(onx_registry_find(registry, domain, name, 2)), 1);
    assert_int_equal(onx_op_since(onx_registry_find(registry, domain, name, 6)), 3);
    assert_int_equal(onx_op_since(onx_registry_find(registry, domain, name, 100)), 7);
    assert_null(onx_registry_find(registry, domain, name, 0));
    assert_int_equal(onx_op_since(onx_op_older(onx_registry_find(registry, domain, name, 7))), 3);
    assert_int_equal(onx_op_since(third), 3);
    assert_int_equal(onx_registry_newest(registry, domain), 7);
    assert_false(onx_registry_has_domain(registry, domain));
    assert_true(onx_registry_has_domain(NULL, onx_str_of("ai.onnx.ml")));
    assert_int_equal(onx_op_since(onx_registry_find(registry, onx_str_of(""), onx_str_of("Add"), 13)), 13);
    assert_int_equal(onx_op_since(onx_registry_find(NULL, onx_str_of("ai.onnx"), onx_str_of("Add"), 13)), 13);
    onx_registry_free(registry);
}

static void test_op_registry__a_definition_is_kept_whole(void **state)
{
    (void)state;
    onx_registry *registry;
    char text[200];
    uint32_t at = 0;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_int_equal(onx_op_register(registry, &twist), ONX_OK);
    const onx_op *op = onx_registry_find(registry, onx_str_of("com.example"), onx_str_of("Twist"), 3);
    assert_string_equal(onx_op_summary(op), "Twists a tensor.");
    assert_string_equal(onx_op_family(op), "custom");
    assert_int_equal(onx_op_min_input(op), 2);
    assert_int_equal(onx_op_max_input(op), 3);
    assert_int_equal(onx_op_min_output(op), 1);
    assert_int_equal(onx_op_max_output(op), ONX_OP_MANY);
    assert_ptr_equal(onx_op_user(op), &cx);
    assert_null(onx_op_kernel(op));
    onx_op_signature(op, text, sizeof text);
    assert_string_equal(text, "Y... = Twist <axis = -1> (X, W, B?)");
    onx_op_type_text(op, 0, text, sizeof text);
    assert_string_equal(text, "tensor(float), seq(tensor(int64)), map(string, tensor(float))");
    assert_true(onx_op_type_next(op, 0, &at, text));
    assert_string_equal(text, "tensor(float)");
    onx_registry_free(registry);
}

static void test_op_registry__bad_definitions_are_refused(void **state)
{
    (void)state;
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    onx_op_def def = twist;
    def.name = "";
    assert_int_equal(onx_op_register(registry, &def), ONX_E_MISUSE);
    def = twist;
    def.since = 0;
    assert_int_equal(onx_op_register(registry, &def), ONX_E_MISUSE);
    def = twist;
    def.domain = "ai.onnx";
    def.name = "Add";
    assert_int_equal(onx_op_register(registry, &def), ONX_E_MISUSE);
    def = twist;
    def.types = NULL;
    assert_int_equal(onx_op_register(registry, &def), ONX_E_MISUSE);
    assert_int_equal(onx_op_register(registry, &twist), ONX_OK);
    assert_int_equal(onx_op_register(registry, &twist), ONX_E_INVALID);
    assert_non_null(onx_registry_find(registry, onx_str_of("com.example"), onx_str_of("Twist"), 3));
    onx_registry_free(registry);
}

/* N-12, TY-18: the names of `twist` are as they should be. */
static void test_op_registry__conventions_hold(void **state)
{
    (void)state;
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_int_equal(onx_op_register(registry, &twist), ONX_OK);
    assert_int_equal(onx_diag_count(cx), 0);
    onx_registry_free(registry);
}

/* N-12, TY-18: notes, and the operator is there all the same. */
static void test_op_registry__conventions_broken(void **state)
{
    (void)state;
    static const onx_op_attribute loud[] = { { "MyAttr", ONX_ATTR_INT, false, "-1" }, { 0 } };
    static const onx_op_port small[] = { { "x", "T", 0 }, { 0 } };
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    onx_op_def def = twist;
    def.attributes = loud;
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    assert_true(has_rule("N-12") && !has_rule("TY-18"));
    assert_int_equal(onx_diag_total(cx, ONX_WARNING) + onx_diag_total(cx, ONX_ERROR), 0);
    onx_diag_clear(cx);
    def = twist;
    def.name = "Other";
    def.inputs = small;
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    assert_true(has_rule("N-12"));
    onx_diag_clear(cx);
    def = twist; /* takes maps */
    def.domain = "";
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    assert_true(has_rule("TY-18") && !has_rule("N-12"));
    onx_diag_clear(cx);
    onx_registry_free(registry);
}

static void test_op_registry__many_operators(void **state)
{
    (void)state;
    onx_registry *registry;
    char name[32];
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    onx_op_def def = twist;
    def.name = name;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "Op%d", i);
        assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "Op%d", i);
        const onx_op *op = onx_registry_find(registry, onx_str_of("com.example"), onx_str_of(name), 3);
        assert_non_null(op);
        assert_string_equal(onx_op_name(op), name);
    }
    onx_registry_free(registry);
}

/* ---- documents ---- */

static onx_bytes keep(onx_doc *doc, const char *text)
{
    onx_bytes bytes;
    assert_int_equal(onx_arena_keep(onx_doc_arena(doc), onx_str_of(text), &bytes), ONX_OK);
    return bytes;
}

static onx_operator_set *set_of(const onx_doc *doc)
{
    return onx_doc_root(doc, ONX_KIND_OPERATOR_SET);
}

static onx_doc *new_set(int64_t version)
{
    onx_doc *doc;
    assert_int_equal(onx_doc_new(cx, ONX_KIND_OPERATOR_SET, &doc), ONX_OK);
    onx_operator_set *set = set_of(doc);
    ONX_SET(operator_set, set, magic, keep(doc, "ONNXOPSET"));
    ONX_SET(operator_set, set, domain, keep(doc, "com.example.ops"));
    ONX_SET(operator_set, set, ir_version, 10);
    ONX_SET(operator_set, set, opset_version, version);
    return doc;
}

static onx_operator *add(onx_doc *doc, const char *name, int64_t since)
{
    onx_operator_set *set = set_of(doc);
    onx_operator *op = onx_list_add_message(onx_doc_arena(doc), (void ***)(void *)&set->operator_, &set->operator_count,
                                            ONX_KIND_OPERATOR);
    assert_non_null(op);
    ONX_SET(operator, op, op_type, keep(doc, name));
    ONX_SET(operator, op, since_version, since);
    ONX_SET(operator, op, status, 1);
    return op;
}

static onx_function *add_function(onx_doc *doc, const char *name)
{
    onx_operator_set *set = set_of(doc);
    onx_function *f = ONX_ADD(onx_doc_arena(doc), set, functions, FUNCTION);
    assert_non_null(f);
    ONX_SET(function, f, name, keep(doc, name));
    assert_int_equal(onx_list_add_text(onx_doc_arena(doc), &f->input, &f->input_count, onx_str_of("A")), ONX_OK);
    assert_int_equal(onx_list_add_text(onx_doc_arena(doc), &f->output, &f->output_count, onx_str_of("B")), ONX_OK);
    return f;
}

static void test_op_registry__a_document_gives_operators_and_bodies(void **state)
{
    (void)state;
    const onx_str domain = onx_str_of("com.example.ops");
    onx_doc *doc = new_set(4);
    add(doc, "A", 1);
    add(doc, "A", 3);
    add(doc, "B", 4);
    const onx_function *body = add_function(doc, "A");
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_int_equal(onx_registry_load(registry, doc), ONX_OK);
    assert_true(onx_registry_has_domain(registry, domain));
    assert_int_equal(onx_registry_newest(registry, domain), 4);
    const onx_op *a = onx_registry_find(registry, domain, onx_str_of("A"), 4);
    assert_int_equal(onx_op_since(a), 3);
    assert_ptr_equal(onx_op_body(a), body);
    assert_string_equal(onx_op_input(a, 0)->name, "A");
    assert_int_equal(onx_op_max_input(a), 1);
    assert_null(onx_op_body(onx_op_older(a)));
    const onx_op *b = onx_registry_find(registry, domain, onx_str_of("B"), 4);
    assert_true(onx_op_flags(b) & ONX_OP_OPEN);
    assert_int_equal(onx_op_max_input(b), ONX_OP_MANY);
    assert_null(onx_registry_find(registry, domain, onx_str_of("B"), 3));
    assert_null(onx_registry_find(registry, domain, onx_str_of("C"), 4));
    assert_int_equal(onx_registry_load(registry, doc), ONX_E_INVALID);
    assert_true(has_rule("OS-06"));
    onx_registry_free(registry);
    onx_doc_free(doc);
}

/* Of built-in operators, only versions after the newest known are taken, from documents and from C. */
static void test_op_registry__built_in_operators_get_newer_versions_only(void **state)
{
    (void)state;
    const onx_str none = onx_str_of(""), relu = onx_str_of("Relu"), mod = onx_str_of("Mod");
    const int64_t newest = onx_registry_newest(NULL, none);
    onx_doc *doc = new_set(newest + 1);
    set_of(doc)->domain = keep(doc, "");
    add(doc, "Relu", 14);
    add(doc, "Mod", 13);
    add(doc, "Mod", newest + 1);
    add_function(doc, "Relu");
    const onx_function *body = add_function(doc, "Mod");
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_int_equal(onx_registry_load(registry, doc), ONX_OK);
    assert_int_equal(onx_registry_newest(registry, none), newest + 1);
    for (int64_t opset = 1; opset <= newest + 2; opset++) {
        assert_ptr_equal(onx_registry_find(registry, none, relu, opset), onx_op_find(none, relu, opset));
        if (opset <= newest)
            assert_ptr_equal(onx_registry_find(registry, none, mod, opset), onx_op_find(none, mod, opset));
        else
            assert_ptr_equal(onx_op_body(onx_registry_find(registry, none, mod, opset)), body);
    }
    onx_op_def def = twist;
    def.domain = "";
    def.name = "Relu";
    def.since = (int32_t)newest;
    assert_int_not_equal(onx_op_register(registry, &def), ONX_OK);
    onx_diag_clear(cx);
    def.since++;
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    assert_int_equal(onx_op_since(onx_registry_find(registry, none, relu, def.since)), def.since);
    assert_int_equal(onx_op_since(onx_registry_find(registry, none, relu, newest)), 14);
    onx_registry_free(registry);
    onx_doc_free(doc);
    onx_diag_clear(cx);
}

static void breaks(onx_doc *doc, const char *rule)
{
    onx_diag_clear(cx);
    assert_int_equal(onx_opset_check(cx, doc), strcmp(rule, "OS-04") == 0 ? ONX_OK : ONX_E_INVALID);
    if (!has_rule(rule))
        fail_msg("%s is not reported", rule);
    onx_diag_clear(cx);
    onx_doc_free(doc);
}

static void test_op_registry__each_rule_of_documents(void **state)
{
    (void)state;
    onx_doc *doc = new_set(2);
    add(doc, "A", 1);
    add(doc, "A", 2);
    add_function(doc, "A");
    assert_int_equal(onx_opset_check(cx, doc), ONX_OK);
    assert_int_equal(onx_diag_count(cx), 0);
    onx_doc_free(doc);

    doc = new_set(2);
    set_of(doc)->magic = keep(doc, "ONNX");
    breaks(doc, "OS-01");
    doc = new_set(2);
    set_of(doc)->has &= ~(uint32_t)onx_operator_set_has_ir_version;
    breaks(doc, "OS-02");
    doc = new_set(2);
    add(doc, "Vendor", 1);
    set_of(doc)->domain = keep(doc, "");
    breaks(doc, "OS-03");
    doc = new_set(2);
    set_of(doc)->domain = keep(doc, "ops");
    breaks(doc, "OS-04");
    breaks(new_set(0), "OS-05");
    doc = new_set(2);
    add(doc, "", 1);
    breaks(doc, "OS-07");
    doc = new_set(2);
    assert_int_equal(onx_arena_keep(onx_doc_arena(doc), onx_str_make("A\0B", 3), &add(doc, "A", 1)->op_type), ONX_OK);
    breaks(doc, "OS-07");
    doc = new_set(2);
    add_function(doc, "");
    breaks(doc, "OS-13");
    doc = new_set(2);
    add(doc, "A", 3);
    breaks(doc, "OS-08");
    doc = new_set(2);
    add(doc, "A", 1);
    add(doc, "B", 1);
    add(doc, "A", 1);
    breaks(doc, "OS-09");
    doc = new_set(2);
    add_function(doc, "A");
    add_function(doc, "A");
    breaks(doc, "OS-09");
}

static void test_op_registry__an_exported_document_is_valid(void **state)
{
    (void)state;
    onx_doc *doc;
    assert_int_equal(onx_opset_export(cx, onx_str_of("ai.onnx"), 13, &doc), ONX_OK);
    assert_int_equal(onx_opset_check(cx, doc), ONX_OK);
    assert_int_equal(onx_diag_count(cx), 0);
    const onx_operator_set *set = set_of(doc);
    uint32_t adds = 0;
    for (uint32_t i = 0; i < set->operator_count; i++) {
        const onx_str name = onx_view(set->operator_[i]->op_type);
        assert_false(onx_str_is(name, "Gelu"));    /* 20 */
        assert_false(onx_str_is(name, "Scatter")); /* deprecated in 11 */
        if (onx_str_is(name, "Add")) {
            assert_int_equal(set->operator_[i]->since_version, 13);
            adds++;
        }
    }
    assert_int_equal(adds, 1);
    onx_doc_free(doc);
    assert_int_equal(onx_opset_export(cx, onx_str_of(""), 999, &doc), ONX_E_NOT_FOUND);
    assert_int_equal(onx_opset_export(cx, onx_str_of("com.example"), 1, &doc), ONX_E_NOT_FOUND);
}

typedef struct seen {
    char text[400];
} seen;

static onx_status see(void *user, const onx_opset_difference *d)
{
    static const char *const words[] = { "added", "removed", "version", "edited" };
    seen *s = user;
    const size_t len = strlen(s->text);
    snprintf(s->text + len, sizeof s->text - len, "%.*s%s %s %s %s;", ONX_ARG(d->name), d->is_function ? "()" : "",
             words[d->change], d->what ? d->what : "-", d->rule ? d->rule : "-");
    return ONX_OK;
}

static void test_op_registry__two_documents_are_compared(void **state)
{
    (void)state;
    onx_doc *older = new_set(2), *newer = new_set(3);
    add(older, "Gone", 1);
    add(older, "Same", 1);
    add(newer, "Same", 1);
    add(newer, "NewGood", 3);
    add(newer, "NewBad", 2);
    ONX_SET(operator, add(older, "Raised", 1), doc_string, keep(older, "text"));
    ONX_SET(operator, add(newer, "Raised", 3), doc_string, keep(newer, "text"));
    ONX_SET(operator, add(older, "Changed", 1), doc_string, keep(older, "text\n\nY = Changed (X)"));
    ONX_SET(operator, add(newer, "Changed", 1), doc_string, keep(newer, "text\n\nY = Changed <a> (X)"));
    ONX_SET(operator, add(older, "Reworded", 1), doc_string, keep(older, "text\n\nY = Reworded (X)"));
    ONX_SET(operator, add(newer, "Reworded", 1), doc_string, keep(newer, "other\n\nY = Reworded (X)"));
    add_function(older, "Same");
    onx_function *f = add_function(newer, "Same");
    assert_int_equal(onx_list_add_text(onx_doc_arena(newer), &f->attribute, &f->attribute_count, onx_str_of("a")),
                     ONX_OK);
    seen s = { { 0 } };
    assert_int_equal(onx_opset_compare(cx, older, newer, see, &s), ONX_OK);
    assert_string_equal(s.text,
                        "Changed edited interface OS-11;Gone removed - -;NewBad added - OS-10;NewGood added - -;"
                        "Raised version - OS-10;Reworded edited description -;Same() edited body OS-15;");
    assert_true(has_rule("OS-10") && has_rule("OS-11") && has_rule("OS-15"));
    onx_diag_clear(cx);
    assert_int_equal(onx_opset_compare(cx, older, older, NULL, NULL), ONX_OK);
    assert_int_equal(onx_diag_count(cx), 0);
    set_of(newer)->opset_version = 2;
    assert_int_equal(onx_opset_compare(cx, older, newer, NULL, NULL), ONX_OK);
    assert_true(has_rule("OS-06"));
    set_of(newer)->domain = keep(newer, "com.other");
    assert_int_equal(onx_opset_compare(cx, older, newer, NULL, NULL), ONX_E_INVALID);
    onx_doc_free(older);
    onx_doc_free(newer);
}

/* ---- scarce memory ---- */

static onx_status everything(onx_ctx *scarce, const onx_doc *older, const onx_doc *newer)
{
    onx_registry *registry;
    onx_doc *exported = NULL;
    ONX_TRY(onx_registry_new(scarce, &registry));
    onx_op_def def = twist;
    onx_status status = onx_op_register(registry, &def);
    def.since = 1;
    if (status == ONX_OK)
        status = onx_op_register(registry, &def);
    if (status == ONX_OK)
        status = onx_registry_load(registry, older);
    if (status == ONX_OK)
        status = onx_registry_load(registry, newer);
    if (status == ONX_OK)
        status = onx_opset_compare(scarce, older, newer, NULL, NULL);
    if (status == ONX_OK)
        status = onx_opset_export(scarce, onx_str_of("ai.onnx.preview.training"), 1, &exported);
    (void)onx_registry_find(registry, onx_str_of("com.example"), onx_str_of("Twist"), 3);
    onx_doc_free(exported);
    onx_registry_free(registry);
    return status;
}

static void test_op_registry__each_allocation_may_fail(void **state)
{
    (void)state;
    onx_doc *older = new_set(2), *newer = new_set(3);
    add(older, "A", 1);
    add(newer, "A", 3);
    add(newer, "B", 3);
    add_function(newer, "B");
    bool failed = true;
    for (unsigned n = 2; failed; n++) { /* the first one is the context's */
        scarce_memory m = { .failing = n };
        onx_ctx *scarce = onx_ctx_new(&(onx_allocator){ scarce_resize, &m });
        assert_non_null(scarce);
        const onx_status status = everything(scarce, older, newer);
        failed = m.calls >= n;
        assert_int_equal(status, failed ? ONX_E_MEMORY : ONX_OK);
        onx_ctx_free(scarce);
        assert_int_equal(m.in_use, 0);
        assert_true(n < 10000);
    }
    onx_doc_free(older);
    onx_doc_free(newer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_op_registry__registered_operators_are_found_by_version, clear),
        cmocka_unit_test_setup(test_op_registry__a_definition_is_kept_whole, clear),
        cmocka_unit_test_setup(test_op_registry__bad_definitions_are_refused, clear),
        cmocka_unit_test_setup(test_op_registry__conventions_hold, clear),
        cmocka_unit_test_setup(test_op_registry__conventions_broken, clear),
        cmocka_unit_test_setup(test_op_registry__many_operators, clear),
        cmocka_unit_test_setup(test_op_registry__a_document_gives_operators_and_bodies, clear),
        cmocka_unit_test_setup(test_op_registry__built_in_operators_get_newer_versions_only, clear),
        cmocka_unit_test_setup(test_op_registry__each_rule_of_documents, clear),
        cmocka_unit_test_setup(test_op_registry__an_exported_document_is_valid, clear),
        cmocka_unit_test_setup(test_op_registry__two_documents_are_compared, clear),
        cmocka_unit_test_setup(test_op_registry__each_allocation_may_fail, clear),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
