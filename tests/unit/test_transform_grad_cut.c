/* test_transform_grad_cut.c - cuts of the forward pass, compared with the best of all cuts for short lists of nodes;
 * the time grows only with the number of nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transform/transform_grad_cut.h"

#include <math.h>

enum { NODES = 11 };

typedef struct network {
    onxi_grad_cut_value values[2 * NODES];
    double beside[NODES];
    onxi_grad_cut_task task;
} network;

static uint32_t drawn(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % below;
}

static void draw(network *n, uint64_t *state, uint32_t reach)
{
    n->task = (onxi_grad_cut_task){ .values = n->values, .beside = n->beside, .node_count = NODES };
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t count = 1 + drawn(state, 2), left = NODES - 1 - i;
        n->beside[i] = drawn(state, 40);
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t far = 1 + drawn(state, reach), last = i + (far < left ? far : left);
            n->values[n->task.value_count++] =
                (onxi_grad_cut_value){ i, drawn(state, 4) ? last : i, 1 + drawn(state, 30), drawn(state, 4) != 0 };
        }
    }
}

/* The most memory with a cut before each node whose bit is set. */
static double memory_of(const onxi_grad_cut_task *task, uint32_t cuts)
{
    double most = 0;
    for (uint32_t begin = task->from; begin < task->node_count;) {
        uint32_t end = begin + 1;
        double kept = 0;
        while (end < task->node_count && !(cuts >> end & 1))
            end++;
        for (uint32_t i = 0; i < task->value_count; i++) { /* made before, read after some cut */
            const onxi_grad_cut_value *v = &task->values[i];
            bool crosses = false;
            for (uint32_t at = v->made + 1; at <= v->last && at <= begin && v->made < begin; at++)
                crosses |= at == begin || (cuts >> at & 1);
            kept += crosses ? v->size : 0;
        }
        double made = 0;
        for (uint32_t node = begin; node < end; node++) {
            for (uint32_t i = 0; i < task->value_count; i++)
                made += task->values[i].made == node && task->values[i].needed ? task->values[i].size : 0;
            most = fmax(most, kept + made + task->beside[node]);
        }
        begin = end;
    }
    return most;
}

static uint32_t bits_of(const onxi_grad_cuts *cuts)
{
    uint32_t bits = 0;
    for (uint32_t i = 1; i < cuts->count; i++) {
        assert_true(cuts->starts[i] > cuts->starts[i - 1] && cuts->starts[i] < NODES);
        bits |= 1u << cuts->starts[i];
    }
    return bits;
}

static void test_transform_grad_cut__is_close_to_the_best(void **state)
{
    (void)state;
    enum { TRIALS = 400 };
    uint64_t seed = 1;
    double sum = 0, worst = 0;
    unsigned better = 0;
    onx_ctx *cx = onx_ctx_new(NULL);
    for (int trial = 0; trial < TRIALS; trial++) {
        network n = { .task = { 0 } };
        onx_arena *arena;
        onxi_grad_cuts cuts;
        draw(&n, &seed, trial % 2 ? 2 : NODES);
        assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
        assert_int_equal(onxi_grad_cut(arena, &n.task, &cuts), ONX_OK);
        double best = INFINITY;
        for (uint32_t bits = 0; bits < 1u << NODES; bits += 2)
            best = fmin(best, memory_of(&n.task, bits));
        const double found = memory_of(&n.task, bits_of(&cuts)), none = memory_of(&n.task, 0);
        assert_true(found <= none);
        assert_true(found <= cuts.memory * (1 + 1e-9)); /* what it says is never too little */
        sum += found / best;
        worst = fmax(worst, found / best);
        better += found < none;
        for (n.task.most = 1; n.task.most < 4; n.task.most++) {
            assert_int_equal(onxi_grad_cut(arena, &n.task, &cuts), ONX_OK);
            assert_true(cuts.count <= n.task.most);
            assert_true(memory_of(&n.task, bits_of(&cuts)) <= none);
        }
        onx_arena_free(arena);
    }
    onx_ctx_free(cx);
    print_message("%u of %d networks take less memory; on the average %.3f times the least, at most %.2f\n", better,
                  TRIALS, sum / TRIALS, worst);
    assert_true(better > TRIALS / 2);
    assert_true(sum / TRIALS < 1.03);
    assert_true(worst < 1.4);
}

/* A chain of equal layers: of n values about the root of 2n are there at a time, as segments grow shorter towards the
 * end, where more is kept. */
static void test_transform_grad_cut__a_long_chain(void **state)
{
    (void)state;
    enum { LONG = 200000 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_arena *arena;
    onxi_grad_cuts cuts;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    onxi_grad_cut_value *values = ONXI_ARRAY(arena, onxi_grad_cut_value, LONG);
    double *beside = ONXI_ARRAY(arena, double, LONG);
    assert_true(values && beside);
    for (uint32_t i = 0; i < LONG; i++) {
        values[i] = (onxi_grad_cut_value){ i, i + 1 < LONG ? i + 1 : i, 8, true };
        beside[i] = 8;
    }
    onxi_grad_cut_task task = { .values = values, .beside = beside, .value_count = LONG, .node_count = LONG };
    assert_int_equal(onxi_grad_cut(arena, &task, &cuts), ONX_OK);
    const double root = sqrt(2.0 * LONG);
    print_message("%u segments, %.0f values where %.0f is the root\n", cuts.count, cuts.memory / 8, root);
    assert_true(cuts.memory / 8 < 1.05 * root);
    task.most = 100;
    assert_int_equal(onxi_grad_cut(arena, &task, &cuts), ONX_OK);
    assert_true(cuts.count <= 100 && cuts.count > 50);
    assert_true(cuts.memory / 8 < 1.3 * LONG / 50);
    onx_arena_free(arena);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transform_grad_cut__is_close_to_the_best),
        cmocka_unit_test(test_transform_grad_cut__a_long_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
