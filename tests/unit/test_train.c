/* test_train.c - execution of training information: rules TR-17 to TR-19, and what a step may not do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/grad.h>
#include <onx/text.h>
#include <onx/train.h>
#include <onx/trainable.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPSETS "ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.preview.training\" : 1]"
static const char model[] =
    "<" OPSETS ">\n"
    "g (float[4, 2] x) => (float[4, 1] y) <float[2, 1] w = {0, 0}, int64 n = {7}> { y = MatMul (x, w) }";
static const char algorithm[] =
    "a (float[4, 1] t) => (float loss, float[2, 1] w_new, int64 n_new, float[2, 1] m_new) <float[2, 1] m = {0, 0}> {\n"
    "  e = Sub (y, t)  s = Mul (e, e)  loss = ReduceMean <keepdims = 0> (s)\n"
    "  dw = ai.onnx.preview.training.Gradient <xs = [\"w\"], zs = [\"x\"], y = \"loss\"> (w, x)\n"
    "  half = Constant <value = float {0.5}> ()  rate = Constant <value = float {0.2}> ()\n"
    "  mh = Mul (m, half)  m_new = Add (mh, dw)  d = Mul (m_new, rate)  w_new = Sub (w, d)\n"
    "  one = Constant <value = int64 {1}> ()  n_new = Add (n, one)\n"
    "}";
static const char counting[] = "c () => (int64 n2) { ten = Constant <value = int64 {10}> ()  n2 = Add (n, ten) }";
static const char drawing[] = "i () => (float[2, 1] w0) { w0 = RandomNormal <seed = 3.0, shape = [2, 1]> () }";
static const char fixing[] = "j () => (int64 n0) { n0 = Constant <value = int64 {100}> () }";

static onx_graph *graph_of(onx_ctx *cx, onx_doc *doc, const char *text)
{
    onx_doc *part;
    void *copy;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_GRAPH, onx_str_of(text), 0, &part), ONX_OK);
    assert_int_equal(onx_message_copy(onx_doc_arena(doc), ONX_KIND_GRAPH, onx_doc_root(part, ONX_KIND_GRAPH), &copy),
                     ONX_OK);
    onx_doc_free(part);
    return copy;
}

static void bind(onx_doc *doc, onx_string_string_entry ***list, uint32_t *count, const char *key, const char *value)
{
    onx_arena *arena = onx_doc_arena(doc);
    onx_string_string_entry *entry =
        onx_list_add_message(arena, (void ***)(void *)list, count, ONX_KIND_STRING_STRING_ENTRY);
    assert_non_null(entry);
    assert_int_equal(onx_arena_keep(arena, onx_str_of(key), &entry->key), ONX_OK);
    assert_int_equal(onx_arena_keep(arena, onx_str_of(value), &entry->value), ONX_OK);
    entry->has |= onx_string_string_entry_has_key | onx_string_string_entry_has_value;
}

static onx_training_info *add_entry(onx_ctx *cx, onx_doc *doc, const char *first, const char *steps)
{
    onx_model *m = onx_doc_model(doc);
    onx_training_info *info = ONX_ADD(onx_doc_arena(doc), m, training_info, TRAINING_INFO);
    assert_non_null(info);
    if (first)
        ONX_SET(training_info, info, initialization, graph_of(cx, doc, first));
    if (steps)
        ONX_SET(training_info, info, algorithm, graph_of(cx, doc, steps));
    return info;
}

static onx_doc *make_model(onx_ctx *cx)
{
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(model), 0, &doc), ONX_OK);
    onx_training_info *info = add_entry(cx, doc, drawing, algorithm);
    bind(doc, &info->initialization_binding, &info->initialization_binding_count, "w", "w0");
    bind(doc, &info->update_binding, &info->update_binding_count, "w", "w_new");
    bind(doc, &info->update_binding, &info->update_binding_count, "m", "m_new");
    info = add_entry(cx, doc, fixing, counting);
    bind(doc, &info->initialization_binding, &info->initialization_binding_count, "n", "n0");
    bind(doc, &info->update_binding, &info->update_binding_count, "n", "n2");
    return doc;
}

typedef struct fixture {
    onx_ctx *cx;
    onx_doc *doc;
    onx_trainer *t;
    onx_value *x, *y;
    onx_named_value inputs[2], loss;
} fixture;

static void set_up(fixture *f)
{
    const int64_t dims[2] = { 4, 2 };
    const float x[8] = { 1, 2, 3, -1, 0.5f, 1, -2, 0.25f };
    memset(f, 0, sizeof *f);
    f->cx = onx_ctx_new(NULL);
    f->doc = make_model(f->cx);
    assert_int_equal(onx_value_new_tensor(f->cx, ONX_FLOAT, 2, dims, &f->x), ONX_OK);
    assert_int_equal(onx_value_new_tensor(f->cx, ONX_FLOAT, 2, (const int64_t[2]){ 4, 1 }, &f->y), ONX_OK);
    memcpy(f->x->data, x, sizeof x);
    for (int i = 0; i < 4; i++)
        ((float *)f->y->data)[i] = 3 * x[2 * i] - 2 * x[2 * i + 1];
    f->inputs[0] = (onx_named_value){ "x", f->x };
    f->inputs[1] = (onx_named_value){ "t", f->y };
    f->loss.name = "loss";
    assert_int_equal(onx_trainer_new(f->cx, f->doc, NULL, &f->t), ONX_OK);
}

static void tear_down(fixture *f)
{
    onx_trainer_free(f->t);
    onx_value_free(f->x);
    onx_value_free(f->y);
    onx_value_free(f->loss.value);
    onx_doc_free(f->doc);
    onx_ctx_free(f->cx);
}

static const onx_value *variable(const onx_trainer *t, const char *name)
{
    onx_trainer_variable v;
    for (uint32_t i = 0; onx_trainer_variable_get(t, i, &v); i++)
        if (onx_str_is(v.name, name))
            return v.value;
    return NULL;
}

static float w_of(const onx_trainer *t, int i)
{
    return ((const float *)variable(t, "w")->data)[i];
}

static int64_t n_of(const onx_trainer *t)
{
    return *(const int64_t *)variable(t, "n")->data;
}

static void steps(fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(onx_trainer_step(f->t, 0, f->inputs, 2, &f->loss, 1), ONX_OK);
}

static void test_train__variables_start_from_initializers_and_learn(void **state)
{
    fixture f;
    (void)state;
    set_up(&f);
    assert_int_equal(onx_trainer_count(f.t), 2);
    assert_int_equal(onx_trainer_variable_count(f.t), 3);
    assert_true(w_of(f.t, 0) == 0.0f && n_of(f.t) == 7);
    steps(&f, 1);
    const float first = *(const float *)f.loss.value->data;
    assert_true(first > 1.0f && w_of(f.t, 0) != 0.0f);
    steps(&f, 200);
    assert_true(*(const float *)f.loss.value->data < 1e-8f);
    assert_true(fabsf(w_of(f.t, 0) - 3) < 1e-3f && fabsf(w_of(f.t, 1) + 2) < 1e-3f);
    assert_int_equal(n_of(f.t), 7);
    tear_down(&f);
}

static void test_train__initialization_runs_in_list_order_with_its_seeds(void **state)
{
    fixture f;
    (void)state;
    set_up(&f);
    assert_true(onx_trainer_has_initialization(f.t));
    assert_int_equal(onx_trainer_initialize(f.t), ONX_OK);
    const float a = w_of(f.t, 0), b = w_of(f.t, 1);
    assert_true(a != 0.0f && b != a);
    assert_int_equal(n_of(f.t), 100);
    steps(&f, 3);
    assert_true(w_of(f.t, 0) != a);
    assert_int_equal(onx_trainer_initialize(f.t), ONX_OK);
    assert_true(w_of(f.t, 0) == a && w_of(f.t, 1) == b);
    tear_down(&f);
}

static void test_train__entries_in_any_order(void **state)
{
    fixture f;
    (void)state;
    set_up(&f);
    assert_int_equal(onx_trainer_step(f.t, 1, f.inputs, 1, NULL, 0), ONX_OK);
    steps(&f, 1);
    assert_int_equal(onx_trainer_step(f.t, 1, f.inputs, 1, NULL, 0), ONX_OK);
    assert_int_equal(n_of(f.t), 27);
    assert_int_equal(onx_trainer_step(f.t, 2, NULL, 0, NULL, 0), ONX_E_NOT_FOUND);
    tear_down(&f);
}

static void test_train__a_stored_model_goes_on_to_the_bit(void **state)
{
    fixture whole, first, second;
    (void)state;
    set_up(&whole);
    steps(&whole, 40);
    set_up(&first);
    steps(&first, 15);
    const onx_tensor *before = onx_doc_model(first.doc)->graph->initializer[0];
    assert_true(before->float_data_count || onx_view(before->raw_data).len);
    onx_trainer *fresh;
    assert_int_equal(onx_trainer_new(first.cx, first.doc, NULL, &fresh), ONX_OK);
    assert_true(w_of(fresh, 0) == 0.0f); /* the document has not changed */
    onx_trainer_free(fresh);
    assert_int_equal(onx_trainer_store(first.t), ONX_OK);
    set_up(&second);
    onx_trainer_free(second.t);
    assert_int_equal(onx_trainer_new(second.cx, first.doc, NULL, &second.t), ONX_OK);
    steps(&second, 25);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(variable(second.t, i ? "m" : "w")->data, variable(whole.t, i ? "m" : "w")->data, 8);
    tear_down(&second);
    tear_down(&first);
    tear_down(&whole);
}

static void test_train__a_step_that_fails_changes_nothing(void **state)
{
    fixture f;
    onx_named_value bad[3], out = { "nope", NULL };
    (void)state;
    set_up(&f);
    steps(&f, 2);
    const float w = w_of(f.t, 0);
    memcpy(bad, f.inputs, sizeof f.inputs);
    bad[1].value = f.x; /* another shape */
    assert_int_not_equal(onx_trainer_step(f.t, 0, bad, 2, NULL, 0), ONX_OK);
    bad[1] = (onx_named_value){ "w", f.y };
    assert_int_equal(onx_trainer_step(f.t, 0, bad, 2, NULL, 0), ONX_E_MISUSE);
    bad[1] = (onx_named_value){ "nope", f.y };
    assert_int_equal(onx_trainer_step(f.t, 0, bad, 2, NULL, 0), ONX_E_NOT_FOUND);
    assert_int_not_equal(onx_trainer_step(f.t, 0, f.inputs, 1, NULL, 0), ONX_OK);
    assert_int_equal(onx_trainer_step(f.t, 0, f.inputs, 2, &out, 1), ONX_E_NOT_FOUND);
    assert_true(w_of(f.t, 0) == w);
    steps(&f, 1);
    assert_true(w_of(f.t, 0) != w);
    out = (onx_named_value){ "w_new", NULL }; /* what is bound can be asked for as well */
    assert_int_equal(onx_trainer_step(f.t, 0, f.inputs, 2, &out, 1), ONX_OK);
    assert_memory_equal(out.value->data, variable(f.t, "w")->data, 8);
    onx_value_free(out.value);
    tear_down(&f);
}

static void test_train__a_model_without_training_information(void **state)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_trainer *t;
    (void)state;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(model), 0, &doc), ONX_OK);
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_E_NOT_FOUND);
    assert_null(t);
    onx_training_info *info = add_entry(cx, doc, NULL, counting);
    bind(doc, &info->update_binding, &info->update_binding_count, "n", "n2");
    bind(doc, &info->update_binding, &info->update_binding_count, "nope", "n2");
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_E_INVALID);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_train__evaluating_changes_nothing(void **state)
{
    fixture f;
    (void)state;
    set_up(&f);
    steps(&f, 2);
    const float w = w_of(f.t, 0);
    assert_int_equal(onx_trainer_evaluate(f.t, 0, f.inputs, 2, &f.loss, 1), ONX_OK);
    const float loss = *(const float *)f.loss.value->data;
    assert_int_equal(onx_trainer_evaluate(f.t, 0, f.inputs, 2, &f.loss, 1), ONX_OK);
    assert_true(w_of(f.t, 0) == w && *(const float *)f.loss.value->data == loss);
    steps(&f, 1); /* begins where the evaluation was */
    assert_true(*(const float *)f.loss.value->data == loss && w_of(f.t, 0) != w);
    assert_int_equal(onx_trainer_evaluate(f.t, 0, f.inputs, 1, &f.loss, 1), ONX_E_MISUSE);
    assert_int_equal(onx_trainer_evaluate(f.t, 9, f.inputs, 2, &f.loss, 1), ONX_E_NOT_FOUND);
    tear_down(&f);
}

/* An output of the main graph that nothing is bound to is computed from the step on that asks for it. */
static void test_train__outputs_of_the_main_graph_come_when_they_are_asked_for(void **state)
{
    fixture f;
    onx_named_value y = { "y", NULL };
    (void)state;
    set_up(&f);
    steps(&f, 2);
    const float w = w_of(f.t, 0);
    assert_int_equal(onx_trainer_evaluate(f.t, 0, f.inputs, 2, &y, 1), ONX_OK);
    assert_int_equal(y.value->count, 4);
    assert_true(fabsf(((const float *)y.value->data)[0] - (w + 2 * w_of(f.t, 1))) < 1e-6f);
    assert_true(w_of(f.t, 0) == w);
    steps(&f, 200); /* goes on where it was */
    assert_true(*(const float *)f.loss.value->data < 1e-8f);
    assert_int_equal(n_of(f.t), 7);
    onx_value_free(y.value);
    tear_down(&f);
}

static void test_train__storing_again_takes_no_memory(void **state)
{
    fixture f;
    (void)state;
    set_up(&f);
    steps(&f, 1);
    assert_int_equal(onx_trainer_store(f.t), ONX_OK);
    const onx_tensor *w = onx_doc_model(f.doc)->graph->initializer[0];
    const char *bytes = onx_view(w->raw_data).ptr;
    steps(&f, 1);
    assert_int_equal(onx_trainer_store(f.t), ONX_OK);
    assert_ptr_equal(onx_view(w->raw_data).ptr, bytes);
    assert_memory_equal(bytes, variable(f.t, "w")->data, 8);
    tear_down(&f);
}

/* A loop without an end in the algorithm is stopped, and nothing has changed. */
static void test_train__limits_hold_for_steps(void **state)
{
    static const char endless[] =
        "c () => (int64 n2) { yes = Constant <value = bool {1}> ()  n2 = Loop <body = b (int64 i, bool go, int64 s)"
        " => (bool on, int64 s2) { on = Identity (go)  s2 = Add (s, s) }> (, yes, n) }";
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_trainer *t;
    (void)state;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(model), 0, &doc), ONX_OK);
    onx_training_info *info = add_entry(cx, doc, NULL, endless);
    bind(doc, &info->update_binding, &info->update_binding_count, "n", "n2");
    assert_int_equal(onx_trainer_new(cx, doc, NULL, &t), ONX_OK);
    onx_value *x;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, (const int64_t[2]){ 4, 2 }, &x), ONX_OK);
    memset(x->data, 0, 8 * sizeof(float));
    const onx_named_value input = { "x", x };
    const int64_t before = *(const int64_t *)variable(t, "n")->data;
    assert_int_equal(onx_trainer_set_run(t, &(onx_run_options){ .iterations = 1000 }), ONX_OK);
    assert_int_equal(onx_trainer_step(t, 0, &input, 1, NULL, 0), ONX_E_LIMIT);
    assert_int_equal(onx_trainer_set_run(t, &(onx_run_options){ .timeout_ns = 20 * 1000 * 1000 }), ONX_OK);
    assert_int_equal(onx_trainer_step(t, 0, &input, 1, NULL, 0), ONX_E_LIMIT);
    assert_int_equal(*(const int64_t *)variable(t, "n")->data, before);
    assert_int_equal(onx_trainer_set_run(NULL, NULL), ONX_E_MISUSE);
    onx_value_free(x);
    onx_trainer_free(t);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static unsigned allocations;
static size_t allocated, most_allocated;

static void *counting_resize(void *user, void *memory, size_t old_size, size_t new_size)
{
    (void)user;
    allocated += new_size - old_size;
    most_allocated = allocated > most_allocated ? allocated : most_allocated;
    if (!new_size) {
        free(memory);
        return NULL;
    }
    allocations++;
    return realloc(memory, new_size);
}

static void test_train__steps_allocate_nothing_after_the_first(void **state)
{
    fixture f;
    (void)state;
    set_up(&f);
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counting_resize, NULL });
    onx_trainer *t;
    onx_named_value loss = { "loss", NULL };
    assert_int_equal(onx_trainer_new(cx, f.doc, &(onx_session_options){ .threads = 1 }, &t), ONX_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(onx_trainer_step(t, 0, f.inputs, 2, &loss, 1), ONX_OK);
    const unsigned before = allocations;
    assert_true(before > 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(onx_trainer_step(t, 0, f.inputs, 2, &loss, 1), ONX_OK);
    assert_int_equal(allocations, before);
    onx_value_free(loss.value);
    onx_trainer_free(t);
    onx_ctx_free(cx);
    tear_down(&f);
}

/* A chain of layers whose weights are few beside what they make of a batch. */
static onx_doc *deep_model(onx_ctx *cx, int32_t checkpoint)
{
    enum { LAYERS = 36 };
    static char text[8000];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                "g (float[8192, 8] t0) => (float[8192, 8] t%d) <",
                                LAYERS);
    for (int i = 0; i < LAYERS; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%sfloat[8, 8] w%d = {", i ? ", " : "", i);
        for (int k = 0; k < 64; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", k ? "," : "", k % 9 == 0);
        n += (size_t)snprintf(text + n, sizeof text - n, "}");
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "> {\n");
    for (int i = 0; i < LAYERS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "m%d = MatMul (t%d, w%d) t%d = Tanh (m%d)\n", i, i, i, i + 1,
                              i);
    n += (size_t)snprintf(text + n, sizeof text - n, "}");
    assert_true(n < sizeof text);
    onx_doc *doc;
    const onx_trainable_options options = {
        .loss = onx_str_of("mse"), .optimizer = onx_str_of("sgd"), .keep = true, .checkpoint = checkpoint
    };
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_trainable(cx, doc, &options), ONX_OK);
    return doc;
}

/* The most bytes that a trainer takes for two steps; w is what the first weight becomes. */
static size_t memory_of(int32_t checkpoint, float w[64])
{
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ counting_resize, NULL });
    onx_doc *doc = deep_model(cx, checkpoint);
    onx_trainer *t;
    onx_value *x, *label;
    const int64_t dims[2] = { 8192, 8 };
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &label), ONX_OK);
    for (uint64_t i = 0; i < x->count; i++) {
        ((float *)x->data)[i] = (float)(i % 17) / 8 - 1;
        ((float *)label->data)[i] = (float)(i % 5) / 5;
    }
    const onx_named_value inputs[2] = { { "t0", x }, { "label", label } };
    onx_named_value loss = { "loss", NULL };
    assert_int_equal(onx_trainer_new(cx, doc, &(onx_session_options){ .threads = 1 }, &t), ONX_OK);
    const size_t before = most_allocated = allocated;
    for (int i = 0; i < 2; i++)
        assert_int_equal(onx_trainer_step(t, 0, inputs, 2, &loss, 1), ONX_OK);
    memcpy(w, variable(t, "w0")->data, 64 * sizeof *w);
    const size_t most = most_allocated - before;
    onx_value_free(loss.value);
    onx_value_free(x);
    onx_value_free(label);
    onx_trainer_free(t);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return most;
}

static void test_train__recomputation_takes_less_memory(void **state)
{
    float w[64], lean_w[64];
    (void)state;
    const size_t kept = memory_of(0, w), lean = memory_of(ONX_GRAD_CHECKPOINT_SQRT, lean_w);
    const size_t value = 8192 * 8 * sizeof(float);
    assert_true(kept > 36 * value); /* what each layer makes */
    assert_true(lean < 14 * value); /* about the root of 2 * 36 of it, and what is at work */
    assert_memory_equal(w, lean_w, sizeof w);
    assert_true(w[0] != 1);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(model), 0, &doc), ONX_OK);
    assert_int_equal(onx_trainable(cx, doc, &(onx_trainable_options){ .checkpoint = -2 }), ONX_E_MISUSE);
    assert_int_equal(onx_grad(cx, doc, &(onx_grad_options){ .checkpoint = -2 }), ONX_E_MISUSE);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train__variables_start_from_initializers_and_learn),
        cmocka_unit_test(test_train__initialization_runs_in_list_order_with_its_seeds),
        cmocka_unit_test(test_train__entries_in_any_order),
        cmocka_unit_test(test_train__a_stored_model_goes_on_to_the_bit),
        cmocka_unit_test(test_train__a_step_that_fails_changes_nothing),
        cmocka_unit_test(test_train__a_model_without_training_information),
        cmocka_unit_test(test_train__evaluating_changes_nothing),
        cmocka_unit_test(test_train__outputs_of_the_main_graph_come_when_they_are_asked_for),
        cmocka_unit_test(test_train__storing_again_takes_no_memory),
        cmocka_unit_test(test_train__limits_hold_for_steps),
        cmocka_unit_test(test_train__steps_allocate_nothing_after_the_first),
        cmocka_unit_test(test_train__recomputation_takes_less_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
