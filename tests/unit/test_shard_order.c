/* test_shard_order.c - the order of work of a rank: nodes that do not need a value in transfer run before those that
 * do, as far as memory allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/shard.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include <string.h>

#include "context.h"
#include "shard_cases.h"

#define BRANCH(n) "a" n " = MatMul(x, w) b" n " = Relu(a" n ") c" n " = MatMul(b" n ", v) "

typedef struct order_case {
    test_case what;
    const char *order[2]; /* of the first rank, and of the last one; NULL: as the first */
} order_case;

static const order_case orders[] = {
    { { "a branch after the one that is read",
        "g (float[8,16] x) => (float[8,16] y) { " BRANCH("0") "d = Exp(c0) " BRANCH("1") "y = Sub(d, c1) }",
        "w 16 24;v 24 16", "w 1/N@*;;v 0/N@*;;w 1/N@*;;v 0/N@*", 0, true },
      { "MatMul Relu MatMul BeginAllReduce MatMul Relu MatMul BeginAllReduce EndAllReduce Exp EndAllReduce Sub ",
        NULL } },
    { { "two chains", /* of which each goes on while the other one waits */
        "g (float[8,16] x) => (float[8,16] y) { a = MatMul(x, w) b = Tanh(a) c = MatMul(b, w) d = Exp(c) "
        "e = MatMul(x, v) f = Tanh(e) h = MatMul(f, v) i = Exp(h) y = Sub(d, i) }",
        "w 16 16;v 16 16", "w 0/N@*;;w 0/N@*;;v 0/N@*;;v 0/N@*", 0, true },
      { "Slice MatMul BeginAllReduce MatMul BeginAllReduce EndAllReduce Tanh Slice MatMul BeginAllReduce EndAllReduce "
        "Tanh Slice MatMul BeginAllReduce EndAllReduce Exp EndAllReduce Exp Sub ",
        NULL } },
    { { "shards that are gathered and read at once",
        "g (float[8,16] x) => (float[8,16] y) { a = Exp(x) b = Softmax <axis = 0> (a) c = Tanh(x) d = Sin(c) "
        "y = Mul(b, d) }",
        "", "x 0/N@*;;x 0/1@*", 0, true },
      { "Slice Exp BeginAllGather Tanh Sin EndAllGather Softmax Mul ", NULL } },
    { { "what there is no memory for", /* beside what is made of the sum, as the old order has one after the other */
        "g (float[8,16] x) => (float[8,1] y) { " BRANCH(
            "0") "p = MatMul(c0, u) q = ReduceMax(p, one) r = MatMul(x, u) "
                 "s = ReduceMax(r, one) t = ReduceMin(r, one) y = Sum(q, s, t) one = Constant <value = int64[1] {1}> () }",
        "w 16 24;v 24 16;u 16 4096", "w 1/N@*;;v 0/N@*", 0, true }, /* the constant is between both halves */
      { "MatMul Relu MatMul BeginAllReduce EndAllReduce MatMul ReduceMax MatMul ReduceMax ReduceMin Sum ", NULL } },
    { { "a stage that others wait for",
        "g (float[4,16] x) => (float[4,16] z) { a = MatMul(x, w) b = Relu(a) c = Exp(x) d = Tanh(c) e = Exp(d) "
        "z = Add(b, e) }",
        "w 16 16", "stage 0;stage 0;stage 0;stage 1;stage 1;stage 1", 2, true },
      { "MatMul Relu BeginSend Exp Send EndSend Broadcast ",
        "BeginReceive Receive Tanh Exp EndReceive Add Broadcast " } },
};

static void check_order(const order_case *o, uint32_t count)
{
    onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
    rank ranks[RANKS_MAX] = { 0 };
    onx_value_difference d;
    onx_doc *doc = make(&o->what, count);
    make_inputs(doc, inputs);
    run_whole(doc, inputs, outputs);
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = (rank){ .doc = doc, .inputs = inputs, .options = { .timeout_ns = 10000000000, .everywhere = true } };
    run_ranks(ranks, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *order = i + 1 == count && o->order[1] ? o->order[1] : o->order[0];
        if (ranks[i].status != ONX_OK)
            fail_msg("%s: rank %u of %u: %s", o->what.name, i, count, ranks[i].error);
        if (!onx_value_close(ranks[i].outputs[0], outputs[0], 1e-4, 1e-4, &d))
            fail_msg("%s: rank %u of %u: %s %s", o->what.name, i, count, d.what, d.text);
        if (strcmp(ranks[i].order, order) != 0)
            fail_msg("%s: rank %u of %u does %s", o->what.name, i, count, ranks[i].order);
    }
    free_ranks(ranks, count);
    for (uint32_t k = 0; k < VALUES_MAX; k++) {
        onx_value_free(inputs[k]);
        onx_value_free(outputs[k]);
    }
    onx_doc_free(doc);
}

static void test_shard_order__steps(void **state)
{
    static const uint32_t numbers[] = { 2, 3, 4, 8 };
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            if (!orders[i].what.ranks || orders[i].what.ranks == numbers[k])
                check_order(&orders[i], numbers[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_order__steps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
