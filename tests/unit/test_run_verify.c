/* test_run_verify.c - the check of plans: it accepts the plans of the planner, and refuses plans that are changed so
 * that a run gives other results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/run_verify.h"
#include "unit/overlap_graphs.h"

static onx_doc *parse(const char *text)
{
    onx_doc *doc = NULL;
    const onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc);
    say_all();
    assert_int_equal(status, ONX_OK);
    return doc;
}

/* The plan that a session of static shapes makes when it is created. */
static onxi_run_plan *plan_of(onx_session *session)
{
    onxi_run_plan *plan = (onxi_run_plan *)session->s.main->plans.first;
    assert_non_null(plan);
    return plan;
}

static uint32_t slot_of(const onxi_run_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->graph->slot_count; i++)
        if (onx_str_is(plan->graph->slots[i].name, name))
            return i;
    fail_msg("there is no value %s", name);
    return 0;
}

static void refuses(const onxi_run_plan *plan, const char *what)
{
    assert_int_equal(onxi_run_verify(plan, cx), ONX_E_INTERNAL);
    assert_int_equal(onx_diag_count(cx), 1);
    const onx_str message = onx_diag_get(cx, 0)->message;
    char text[600];
    snprintf(text, sizeof text, "%.*s", ONX_ARG(message));
    if (!strstr(text, what))
        fail_msg("says \"%s\", not \"%s\"", text, what);
    onx_diag_clear(cx);
}

typedef void (*change)(onxi_run_plan *plan);

/* The value `to` takes the memory of `from`. */
static void move(onxi_run_plan *plan, const char *to, uint32_t from)
{
    plan->slots[slot_of(plan, to)]->storage = plan->slots[from]->storage;
}

static void y_over_c(onxi_run_plan *plan)
{
    move(plan, "y", slot_of(plan, "c"));
}

static void y_over_a(onxi_run_plan *plan)
{
    move(plan, "y", slot_of(plan, "a"));
}

static void z_over_y(onxi_run_plan *plan)
{
    move(plan, "z", slot_of(plan, "y"));
}

static void b_over_a(onxi_run_plan *plan)
{
    const uint32_t a = slot_of(plan, "a"), b = slot_of(plan, "b");
    plan->storages[plan->slots[b]->storage].offset = plan->storages[plan->slots[a]->storage].offset;
}

static void no_first_step(onxi_run_plan *plan)
{
    plan->steps[0].outputs[0] = ONXI_NO_SLOT;
}

static void y_too_large(onxi_run_plan *plan)
{
    plan->storages[plan->slots[slot_of(plan, "y")]->storage].size -= 4;
}

static void y_has_more(onxi_run_plan *plan)
{
    plan->slots[slot_of(plan, "y")]->value.count *= 2;
}

static void y_in_workspace(onxi_run_plan *plan)
{
    plan->storages[plan->slots[slot_of(plan, "y")]->storage].offset = plan->workspace_offset;
}

static void part_elsewhere(onxi_run_plan *plan)
{
    onxi_run_storage *s = &plan->storages[plan->slots[slot_of(plan, "b")]->storage];
    s->at -= 64;
    s->offset -= 64;
}

static void view_of_other(onxi_run_plan *plan)
{
    plan->slots[slot_of(plan, "v")]->base = slot_of(plan, "b");
}

static void cache_read_twice(onxi_run_plan *plan)
{
    plan->slots[slot_of(plan, "y")]->updates = slot_of(plan, "x");
}

static void test_run_verify__changed_plans(void **state)
{
    static const char split[] = "c = Abs (x) a, b = Split <axis = 0> (c, s) y = Add (c, a) z = Neg (b)";
    static const char join[] = "a = Abs (x) b = Neg (x) c = Concat <axis = 0> (a, b) y = Add (c, k)";
    static const char views[] = "c = Abs (x) y = Reshape (c, r) z = Softmax (c)";
    static const char pair[] = "a = Softmax (x) b = Exp (x) y = Gemm (a, b) z = Neg (y)";
    static const char copied[] =
        "t = Transpose <perm = [1, 0]> (x) c = Neg (t) v = Reshape (c, r) b = Exp (x) y = Gemm (b, v)";
    static const struct {
        const char *nodes;
        change change;
        const char *what;
    } cases[] = { { split, y_over_c, "overwrites bytes" },
                  { split, y_over_a, "overwrites bytes" },
                  { split, part_elsewhere, "overwrites bytes" },
                  { join, part_elsewhere, "overwrites bytes" },
                  { views, z_over_y, "overwrites bytes" },
                  { pair, b_over_a, "overwrites bytes" },
                  { pair, y_over_a, "overwrites bytes" },
                  { pair, no_first_step, "it is read, but nothing has written it" },
                  { pair, y_too_large, "it is not inside its storage" },
                  { pair, y_has_more, "its elements take more bytes" },
                  { pair, y_in_workspace, "its storage is in the workspace" },
                  { pair, cache_read_twice, "it is updated in place, but something else reads it" },
                  { copied, view_of_other, "it is a view" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[700];
        snprintf(
            text, sizeof text,
            "<ir_version: 10, opset_import: [\"\": 21]> g (float[16, 16] x) => (float[] y%s) <int64[2] s = {1, 15}, "
            "int64[2] r = {16, 16}, float k = {1}> { %s }",
            strstr(cases[i].nodes, " z =") ? ", float[] z" : "", cases[i].nodes);
        onx_doc *doc = parse(text);
        onx_session *session = open_session(doc, &(onx_session_options){ .threads = 1, .no_optimize = true });
        onxi_run_plan *plan = plan_of(session);
        assert_int_equal(onxi_run_verify(plan, cx), ONX_OK);
        cases[i].change(plan);
        refuses(plan, cases[i].what);
        onx_session_free(session);
        onx_doc_free(doc);
    }
}

/* A copy in another layout that is read by a view, and overwritten by the next reader. */
static void test_run_verify__copy_with_readers(void **state)
{
    static writer w;
    source s = { 3 };
    (void)state;
    w.len = 0;
    add(&w,
        "<ir_version: 10, opset_import: [\"\": 21]> g (float[1, 16, 8, 8] x) => (float[] y, float[] z) <int64[2] r = "
        "{1, -1}, ");
    add_windows(&w, &s, "w", 16, 16, 3);
    add(&w, "> { c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Reshape (c, r) z = LogSoftmax <axis = 1> (c) }");
    onx_doc *doc = parse(w.text);
    onx_session *session = open_session(doc, &(onx_session_options){ .threads = 1 });
    onxi_run_plan *plan = plan_of(session);
    assert_int_equal(onxi_run_verify(plan, cx), ONX_OK);
    z_over_y(plan);
    refuses(plan, "overwrites bytes");
    onx_session_free(session);
    onx_doc_free(doc);
}

/* ---- plans changed at random ---- */

/* Gives a value other memory, as a planner that is wrong would. Returns false if it has found nothing to change. */
static bool change_any(source *s, onxi_run_plan *plan)
{
    if (!plan->storage_count)
        return false;
    for (int tries = 0; tries < 20; tries++) {
        onxi_run_plan_slot *a = plan->slots[below(s, plan->slot_count)], *b = plan->slots[below(s, plan->slot_count)];
        onxi_run_storage *one = &plan->storages[below(s, plan->storage_count)];
        const onxi_run_storage *two = &plan->storages[below(s, plan->storage_count)];
        switch (below(s, 3)) {
        case 0: /* one value over another one */
            if (a == b || a->place != ONXI_PLACE_BUFFER || b->place != ONXI_PLACE_BUFFER || a->storage == b->storage ||
                a->storage == ONXI_NO_SLOT || b->storage == ONXI_NO_SLOT)
                continue;
            a->storage = b->storage;
            return true;
        case 1: /* one storage over another one */
            if (one->whole != ONXI_NO_SLOT || two->whole != ONXI_NO_SLOT || one->offset == two->offset)
                continue;
            one->offset = two->offset;
            for (uint32_t i = 0; i < plan->storage_count; i++)
                if (plan->storages[i].whole == (uint32_t)(one - plan->storages))
                    plan->storages[i].offset = one->offset + plan->storages[i].at;
            return true;
        default: /* a part in another place of the whole */
            if (one->whole == ONXI_NO_SLOT || plan->storages[one->whole].size < one->size + 64)
                continue;
            one->at = one->at >= 64 ? one->at - 64 : one->at + 64;
            one->offset = plan->storages[one->whole].offset + one->at;
            return true;
        }
    }
    return false;
}

static bool is_same(const graph *g, const made *all, const made *some)
{
    for (uint32_t i = 0, n = 0; i < g->count; i++)
        if (g->wanted[i] && !is_close(all->out[i], some->out[n++]))
            return false;
    return true;
}

static void test_run_verify__plans_changed_at_random(void **state)
{
    enum { MODELS = 800 };
    static writer w;
    graph *g = new_graph(21);
    unsigned refused = 0, accepted = 0;
    (void)state;
    for (int model = 0; model < MODELS; model++) {
        onx_value *in[INPUTS];
        made all = { { NULL } };
        draw(g);
        draw_inputs(g, in);
        onx_doc *doc = write_model(g, &w, true);
        onx_session *session = open_session(doc, &ways[0].options);
        run_made(session, in, &all);
        onx_session_free(session);
        onx_doc_free(doc);
        doc = write_model(g, &w, false);
        session = open_session(doc, &ways[below(&g->s, 3)].options);
        onxi_run_plan *plan = plan_of(session);
        assert_int_equal(onxi_run_verify(plan, cx), ONX_OK);
        if (change_any(&g->s, plan)) {
            made some = { { NULL } };
            const bool passes = onxi_run_verify(plan, cx) == ONX_OK;
            onx_diag_clear(cx);
            if (passes)
                run_made(session, in, &some);
            if (passes && !is_same(g, &all, &some))
                fail_msg("the check accepts a plan whose results are wrong:\n%s", strstr(w.text, ">\n{"));
            refused += !passes;
            accepted += passes;
            free_made(&some);
        }
        onx_session_free(session);
        onx_doc_free(doc);
        free_made(&all);
        free_inputs(in);
    }
    print_message("%u refused, %u accepted\n", refused, accepted);
    assert_true(refused > 100 && accepted > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_run_verify__changed_plans),
                                        cmocka_unit_test(test_run_verify__copy_with_readers),
                                        cmocka_unit_test(test_run_verify__plans_changed_at_random) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
