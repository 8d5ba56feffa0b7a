/* test_gen_attributes.c - every attribute and every optional input of every version of every operator: absent, empty,
 * with its default given explicitly, extreme, of a wrong type. Nothing crashes or hangs, checks, inference and runs
 * agree, an absent attribute equals its default, and an attribute without a value is zero (rule A-05), bit for bit. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/text.h>

#include "gen/gen.h"
#include "share.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- what is going on, for whoever reads that it crashed or hung ---- */

enum { PATIENCE = 20 }; /* seconds of processor time for one model */
static char label[400];

static void on_signal(int number)
{
    static const char text[] = "\nsignal while working on: ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, label, strlen(label));
    (void)!write(STDERR_FILENO, "\n", 1);
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- what is done to an attribute ---- */

typedef enum edit_sort { REMOVE, EMPTY, TEXT, INTS, FLOATS, STRINGS } edit_sort;
typedef struct edit {
    edit_sort sort;
    const char *name;
    const char *text; /* TEXT: the value as ONX text */
    uint8_t type;     /* of the attribute that is put in its place */
    uint32_t count;   /* of a list */
    int64_t value;    /* of its elements */
    float number;
    int input; /* >= 0: this input is omitted instead; -1: an attribute is meant */
} edit;

static void remove_attribute(onx_node *node, const char *name)
{
    for (uint32_t i = node->attribute_count; i-- > 0;)
        if (onx_str_is(onx_view(node->attribute[i]->name), name))
            onx_list_remove(node->attribute, &node->attribute_count, i, sizeof *node->attribute);
}

/* name : type = value */
static void add_as_text(onx_arena *arena, onx_node *node, const edit *e)
{
    static const char *const types[] = {
        [ONX_ATTR_FLOAT] = "float",   [ONX_ATTR_INT] = "int",   [ONX_ATTR_STRING] = "string",
        [ONX_ATTR_FLOATS] = "floats", [ONX_ATTR_INTS] = "ints", [ONX_ATTR_STRINGS] = "strings",
        [ONX_ATTR_TENSOR] = "tensor"
    };
    char text[512];
    onx_doc *doc;
    void *copy = NULL;
    snprintf(text, sizeof text, "%s: %s = %s", e->name, types[e->type], e->text);
    onx_ctx *cx = onx_ctx_new(NULL);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_ATTRIBUTE, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_message_copy(arena, ONX_KIND_ATTRIBUTE, onx_doc_root(doc, ONX_KIND_ATTRIBUTE), &copy), ONX_OK);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    onx_attribute **at = onx_list_insert(arena, (void **)(void *)&node->attribute, &node->attribute_count,
                                         node->attribute_count, sizeof *at);
    assert_non_null(at);
    *at = copy;
}

static void add_list(onx_arena *arena, onx_node *node, const edit *e)
{
    onx_attribute *a = NULL;
    if (e->sort == INTS) {
        int64_t *values = calloc(e->count, sizeof *values);
        assert_non_null(values);
        for (uint32_t i = 0; i < e->count; i++)
            values[i] = e->value;
        a = onx_node_add_ints(arena, node, e->name, values, e->count);
        free(values);
    } else if (e->sort == FLOATS) {
        float *values = calloc(e->count, sizeof *values);
        assert_non_null(values);
        for (uint32_t i = 0; i < e->count; i++)
            values[i] = e->number;
        a = onx_node_add_floats(arena, node, e->name, values, e->count);
        free(values);
    } else {
        static const int64_t one = 1;
        a = onx_node_add_ints(arena, node, e->name, &one, 1);
        assert_non_null(a);
        a->type = ONX_ATTR_STRINGS;
        a->slot = ONX_SLOT_STRINGS;
        a->strings = NULL;
        a->count = 0;
        for (uint32_t i = 0; i < e->count; i++)
            assert_int_equal(onx_list_add_text(arena, &a->strings, &a->count, onx_str_of(e->text)), ONX_OK);
    }
    assert_non_null(a);
}

static void apply(void *user, onx_arena *arena, onx_node *node)
{
    const edit *e = user;
    if (e->input >= 0) {
        if ((uint32_t)e->input < node->input_count)
            node->input[e->input] = (onx_bytes){ 0 };
        if (e->sort == REMOVE)
            while (node->input_count && !onx_view(node->input[node->input_count - 1]).len)
                node->input_count--;
        return;
    }
    remove_attribute(node, e->name);
    if (e->sort == TEXT)
        add_as_text(arena, node, e);
    else if (e->sort == EMPTY) {
        onx_attribute *a = onx_node_add_int(arena, node, e->name, 0);
        assert_non_null(a);
        a->i = 0;
        a->slot = ONX_SLOT_NONE;
        a->has &= ~(uint32_t)onx_attribute_has_i;
        a->type = e->type;
    } else if (e->sort != REMOVE)
        add_list(arena, node, e);
}

/* ---- the test of one node ---- */

typedef struct subject {
    onx_ctx *cx;
    const onxi_schema *schema;
    const gen_node *node;
    unsigned found; /* contradictions */
    unsigned models;
} subject;

static void complain(subject *s, const char *why)
{
    s->found++;
    print_error("%s: %s\n", label, why);
}

/* SIGPROF when this process has worked so long; 0: never. What others do on the machine does not count. */
static void limit_time(int seconds)
{
    const struct itimerval after = { .it_value.tv_sec = seconds };
    assert_int_equal(setitimer(ITIMER_PROF, &after, NULL), 0);
}

/* Checks, infers and runs the node with an edit; false when there is no such model. */
static bool verify(subject *s, const edit *e, const char *what, gen_verdict *v)
{
    onx_doc *doc;
    edit copy = *e;
    char input[16];
    snprintf(input, sizeof input, "input %d", e->input);
    snprintf(label, sizeof label, "%s-%d (%.120s) %s: %s", s->schema->name, s->schema->since,
             s->node->recipe->attributes, e->input >= 0 ? input : e->name, what);
    memset(v, 0, sizeof *v);
    if (gen_model(s->cx, s->node, apply, &copy, &doc) != ONX_OK) {
        complain(s, "the model cannot be made");
        onx_diag_clear(s->cx);
        return false;
    }
    const bool random = s->schema->flags & ONXI_OP_NONDETERMINISTIC;
    limit_time(PATIENCE);
    gen_verify(s->cx, doc, s->node->operands, s->node->operand_count, random ? GEN_ANY_VALUES : 0, v);
    limit_time(0);
    s->models++;
    onx_doc_free(doc);
    if (v->why[0])
        complain(s, v->why);
    return true;
}

static void verify_alone(subject *s, const edit *e, const char *what)
{
    gen_verdict v;
    if (verify(s, e, what, &v))
        gen_verdict_free(&v);
}

/* Two edits that mean the same. */
static void verify_equal(subject *s, const edit *a, const char *what_a, const edit *b, const char *what_b)
{
    gen_verdict x, y;
    char why[300], text[400];
    bool random = s->schema->flags & ONXI_OP_NONDETERMINISTIC;
    const bool first = verify(s, a, what_a, &x), second = verify(s, b, what_b, &y); /* both make a verdict */
    if (first && second) {
        for (int plain = 0; plain < 2; plain++) {
            const gen_run *p = plain ? &x.plain : &x.fast, *q = plain ? &y.plain : &y.fast;
            bool same =
                random ? (p->status == ONX_OK) == (q->status == ONX_OK) : gen_run_agree(p, q, true, why, sizeof why);
            if (!same) {
                snprintf(text, sizeof text, "is not what %s gives: %s", what_a, random ? "status" : why);
                complain(s, text);
                break;
            }
        }
        if (x.full != y.full)
            complain(s, "one is valid, the other is not");
    }
    gen_verdict_free(&x);
    gen_verdict_free(&y);
}

/* ---- attributes ---- */

static edit edit_of(const onxi_attr *attr, edit_sort sort)
{
    return (edit){ .sort = sort, .name = attr->name, .type = attr->type, .input = -1 };
}

static edit text_edit(const onxi_attr *attr, const char *text)
{
    edit e = edit_of(attr, TEXT);
    e.text = text;
    return e;
}

/* What rule A-05 says that a type without a value means, as text; NULL for types without a zero. */
static const char *zero_of(int type)
{
    switch (type) {
    case ONX_ATTR_INT:
        return "0";
    case ONX_ATTR_FLOAT:
        return "0.0";
    case ONX_ATTR_STRING:
        return "\"\"";
    case ONX_ATTR_INTS:
    case ONX_ATTR_FLOATS:
    case ONX_ATTR_STRINGS:
        return "[]";
    default:
        return NULL;
    }
}

static void extremes(subject *s, const onxi_attr *attr)
{
    static const char *const ints[] = {
        "-9223372036854775808", "9223372036854775807", "-1",        "0", "1", "2", "3", "64",
        "2147483648",           "-2147483649",         "4294967296"
    };
    static const char *const floats[] = { "3.4e38", "-3.4e38", "nan", "inf", "-inf", "1e-45", "-0.0", "1.0" };
    static const char *const strings[] = { "\"\"", "\"x\"", "\"NONE\"", "\"mean\"", "\"linear\"", "\"\\\\\"" };
    const char *const *list = attr->type == ONX_ATTR_INT ? ints : attr->type == ONX_ATTR_FLOAT ? floats : strings;
    size_t count = attr->type == ONX_ATTR_INT     ? sizeof ints / sizeof *ints
                   : attr->type == ONX_ATTR_FLOAT ? sizeof floats / sizeof *floats
                                                  : sizeof strings / sizeof *strings;
    for (size_t i = 0; i < count; i++) {
        edit e = text_edit(attr, list[i]);
        verify_alone(s, &e, list[i]);
    }
}

static void extreme_lists(subject *s, const onxi_attr *attr)
{
    static const uint32_t counts[] = { 1, 2, 3, 4, 65, 5000 };
    static const int64_t values[] = { INT64_MIN, -1, 0, 1, 2, 1000000, INT64_MAX };
    static const float numbers[] = { 0, 1, FLT_MAX, NAN, -INFINITY };
    const uint32_t kinds = attr->type == ONX_ATTR_INTS ? 7 : attr->type == ONX_ATTR_FLOATS ? 5 : 1;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (uint32_t k = 0; k < kinds; k++) {
            char what[64];
            edit e = edit_of(attr, attr->type == ONX_ATTR_INTS     ? INTS
                                   : attr->type == ONX_ATTR_FLOATS ? FLOATS
                                                                   : STRINGS);
            e.count = counts[c];
            e.value = values[k];
            e.number = numbers[k < 5 ? k : 0];
            e.text = "tanh";
            snprintf(what, sizeof what, "%u times %lld or %g", e.count, (long long)e.value, (double)e.number);
            verify_alone(s, &e, what);
        }
}

static void wrong_types(subject *s, const onxi_attr *attr)
{
    static const uint8_t types[] = { ONX_ATTR_FLOAT,  ONX_ATTR_INT,  ONX_ATTR_STRING, ONX_ATTR_TENSOR,
                                     ONX_ATTR_FLOATS, ONX_ATTR_INTS, ONX_ATTR_STRINGS };
    static const char *const values[] = { "1.5", "1", "\"a\"", "float[1] {1.0}", "[1.5]", "[1]", "[\"a\"]" };
    for (size_t i = 0; i < sizeof types; i++) {
        gen_verdict v;
        edit e = text_edit(attr, values[i]);
        e.type = types[i];
        if (types[i] == attr->type || !verify(s, &e, values[i], &v))
            continue;
        if (v.sound)
            complain(s, "an attribute of a wrong type is accepted");
        gen_verdict_free(&v);
    }
}

/* A string that is too long for any buffer of fixed size. */
static void long_string(subject *s, const onxi_attr *attr)
{
    static char text[480];
    memset(text, 'a', sizeof text - 1);
    text[0] = text[sizeof text - 2] = '"';
    edit e = text_edit(attr, text);
    e.name = attr->name;
    if (attr->type == ONX_ATTR_STRING && strlen(attr->name) < 20)
        verify_alone(s, &e, "a long string");
}

static void test_attribute(subject *s, const onxi_attr *attr)
{
    const char *zero = zero_of(attr->type);
    edit absent = edit_of(attr, REMOVE), empty = edit_of(attr, EMPTY);
    if (attr->default_text) {
        edit spelled = text_edit(attr, attr->default_text);
        verify_equal(s, &absent, "absent", &spelled, "the default spelled out");
    } else
        verify_alone(s, &absent, "absent");
    if (zero) {
        edit spelled = text_edit(attr, zero);
        verify_equal(s, &empty, "no value", &spelled, "zero");
    } else
        verify_alone(s, &empty, "no value");
    if (attr->type == ONX_ATTR_INT || attr->type == ONX_ATTR_FLOAT || attr->type == ONX_ATTR_STRING)
        extremes(s, attr);
    else if (zero)
        extreme_lists(s, attr);
    long_string(s, attr);
    wrong_types(s, attr);
}

/* ---- inputs ---- */

static void test_input(subject *s, uint32_t input)
{
    const onxi_port *port = onxi_port_at(s->schema->inputs, input);
    edit absent = { .sort = REMOVE, .input = (int)input }, empty = { .sort = EMPTY, .input = (int)input };
    if (!port || port->flags & ONXI_PORT_VARIADIC)
        verify_alone(s, &empty, "an empty name");
    else
        verify_equal(s, &absent, "absent", &empty, "an empty name");
}

/* Verifies a changed node as it is. */
static bool verify_node(subject *s, const gen_node *changed, uint32_t input, const char *what, gen_verdict *v)
{
    const gen_node *before = s->node;
    const edit none = { .sort = EMPTY, .input = GEN_OPERANDS }; /* an input that there is not: nothing is done */
    char text[80];
    snprintf(text, sizeof text, "of %s %u: %s", changed->operands[input].constant ? "constant" : "input", input, what);
    s->node = changed;
    bool made = verify(s, &none, text, v);
    s->node = before;
    return made;
}

/* An element type that the port does not take is refused by the rules, and by runs. */
static void test_input_type(subject *s, uint32_t input)
{
    static const uint8_t types[] = { ONX_STRING, ONX_BOOL, ONX_COMPLEX64, ONX_FLOAT, ONX_INT64, ONX_UINT4 };
    const onxi_port *port = onxi_port_at(s->schema->inputs, input);
    const onxi_type_constraint *c = port ? onxi_schema_type(s->schema, port->type) : NULL;
    const onx_dtype own = s->node->operands[input].dtype;
    for (size_t i = 0; i < sizeof types && port && s->node->operands[input].kind == GEN_TENSOR; i++) {
        const uint32_t bit = UINT32_C(1) << types[i];
        if (types[i] == own || (c && (c->set.tensor | c->set.optional) & bit))
            continue;
        gen_node changed = *s->node;
        gen_verdict v;
        changed.operands[input].dtype = changed.operands[input].like = types[i];
        if (!verify_node(s, &changed, input, onx_dtype_name(types[i]), &v))
            continue;
        if (v.full || v.plain.status == ONX_OK || v.fast.status == ONX_OK)
            complain(s, "an element type that the operator does not take is taken");
        gen_verdict_free(&v);
    }
}

/* Whole numbers that the operator reads (axes, sizes, counts, indices): extreme ones, none, in another shape. */
static void test_input_values(subject *s, uint32_t input)
{
    static const double values[] = { -9223372036854775808.0, -2147483649.0,        -100, -2, -1, 0, 1, 2, 100, 1e6,
                                     4294967296.0,           9223372036854774784.0 };
    const gen_operand *o = &s->node->operands[input];
    if (o->kind != GEN_TENSOR || (o->dtype != ONX_INT64 && o->dtype != ONX_INT32) ||
        (o->fill != GEN_LISTED && o->fill != GEN_INDEX))
        return;
    for (int constant = 0; constant < 2; constant++)
        for (size_t i = 0; i < sizeof values / sizeof *values + 3; i++) {
            char what[40];
            gen_node changed = *s->node;
            gen_operand *to = &changed.operands[input];
            gen_verdict v;
            to->constant = constant;
            to->fill = GEN_LISTED;
            if (i < sizeof values / sizeof *values) {
                to->listed_count = 1;
                to->listed[0] = values[i];
                snprintf(what, sizeof what, "all %.0f", values[i]);
            } else {
                to->rank = (uint32_t)(i - sizeof values / sizeof *values);
                to->dims[0] = to->rank == 1 ? 0 : 2;
                to->dims[1] = 1;
                snprintf(what, sizeof what, "another shape of rank %u", to->rank);
            }
            if (verify_node(s, &changed, input, what, &v))
                gen_verdict_free(&v);
        }
}

static void test_recipe(subject *s, const gen_recipe *recipe, bool fixed)
{
    gen_node node;
    const gen_choice choice = { .seed = 7, .fixed = fixed };
    assert_true(gen_node_make(s->schema, recipe, &choice, &node));
    s->node = &node;
    for (const onxi_attr *attr = s->schema->attrs; attr && attr->name; attr++)
        test_attribute(s, attr);
    for (uint32_t k = 0; k < node.operand_count; k++) {
        test_input(s, k);
        test_input_type(s, k);
        if (!fixed)
            test_input_values(s, k);
    }
    s->node = NULL;
}

static void test_gen_attributes__all_say_the_same(void **state)
{
    static const int signals[] = { SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGABRT };
    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_signal); /* instead of cmocka's, which do not say what it was */
    subject s = { .cx = onx_ctx_new(NULL) };
    const char *only = getenv("ONX_GEN_ONLY"); /* an operator, for debugging */
    unsigned number = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (s.schema = onxi_operators[i].rows; s.schema->name; s.schema++) {
            const gen_recipe *recipe;
            if (s.schema->flags & ONXI_OP_DEPRECATED || (only && strcmp(only, s.schema->name) != 0))
                continue;
            const char *variants[4];
            const bool is_fast = onx_kernel_variants(onx_str_of(onxi_schema_domain(s.schema)),
                                                     onx_str_of(s.schema->name), s.schema->since, variants, 4) > 1;
            for (uint32_t n = 0; (recipe = gen_recipe_for(s.schema, n)) != NULL; n++) {
                if (!share_has(number++))
                    continue;
                test_recipe(&s, recipe, false);
                if (is_fast) /* which take constants for weights */
                    test_recipe(&s, recipe, true);
            }
        }
    onx_ctx_free(s.cx);
    print_message("%u models\n", s.models);
    assert_int_equal(s.found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_attributes__all_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
