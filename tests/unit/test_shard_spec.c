/* test_shard_spec.c - annotations that break rules do not change the results of a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/shard.h>

#include <string.h>

#include "context.h"
#include "shard_cases.h"

/* Rules about annotations that have a meaning when a model runs: what breaks them is left alone, so that the results
 * stay those of the whole model (D-19), and an error where that is asked for. */
static const struct {
    const char *rule, *annotations;
    uint32_t ranks;
    const char *strict; /* what is said then; NULL: nothing is wrong */
} broken[] = {
    { "D-07", "nope 0/2@0,1", 2, "\"nope\" is not an input or output" },
    { "D-08", "x 0/2@0,1 x 1/2@0,1", 2, NULL },
    { "D-09", "x 0/2@0,7", 2, "7 is neither a device" },
    { "D-10", "x 0/2@{},{1}", 2, "is neither a device nor a group" },
    { "D-11", "x 5/2@0,1", 2, "axis 5 of \"x\" cannot be split" },
    { "D-11", "x -3/2@0,1", 2, "axis -3 of \"x\" cannot be split" },
    { "D-12", "x 0/2,0/2@0,1,2,3", 4, "axis 0 of \"x\" is split twice" },
    { "D-12", "x 1/2,-1/2@0,1,2,3", 4, "axis -1 of \"x\" is split twice" },
    { "D-13", "x 0/0@0,1", 2, "cannot be split into" },
    { "D-14", "x 0/2=3@0,1", 2, NULL }, /* of the tensor only its own shape counts */
    { "D-14", "x 0/2=4@0,1", 2, NULL },
    { "D-15", "x 0/2@0,1,2", 3, "has 2 shards, and 3 entries" },
    { "D-16", "x 0/3@0,1,2", 3, NULL },
    { "D-17", "x @{0+1} w @0,1", 2, NULL },
    { "D-18", "stage -1 x 0/2@0,1", 2, NULL },
    { "D-20", "x 1/2@0,1 w 1/2@0,1", 2, "" },
    { "D-21", ";y 0/2@0,1", 2, NULL },
    { "D-22", "", 2, NULL },
};

static void test_shard_spec__rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const uint32_t count = broken[i].ranks;
        const test_case c = { .name = broken[i].rule,
                              .graph = "g (float[4,16] x) => (float[4,24] y) { h = MatMul(x, w) y = Relu(h) }",
                              .weights = "w 16 24",
                              .annotations = broken[i].annotations };
        onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
        const test_case bare = { .name = c.name, .graph = c.graph, .weights = c.weights, .annotations = "" };
        onx_doc *doc = make(&c, count), *whole = make(&bare, count);
        onx_value_difference d;
        onx_doc_model(whole)->graph->initializer[0] = onx_doc_model(doc)->graph->initializer[0];
        make_inputs(doc, inputs);
        run_whole(whole, inputs, outputs); /* a session refuses what breaks a rule that is an error */
        for (uint32_t strict = 0; strict < 2; strict++) {
            rank ranks[RANKS_MAX] = { 0 };
            for (uint32_t k = 0; k < count; k++)
                ranks[k] = (rank){ .doc = doc, .inputs = inputs, .options = { .strict = strict } };
            run_ranks(ranks, count);
            const bool fine = ranks[0].status == ONX_OK;
            const char *said = "";
            for (uint32_t k = 0; k < count && k < RANKS_MAX;
                 k++) /* others may hear of it from the first one that fails */
                said = broken[i].strict && strstr(ranks[k].error, broken[i].strict) ? broken[i].strict : said;
            if (fine != (!strict || !broken[i].strict) || (!fine && said != broken[i].strict))
                fail_msg("%s \"%s\"%s: status %d: %s", c.name, c.annotations, strict ? ", strict" : "", ranks[0].status,
                         ranks[0].error);
            if (fine && !onx_value_close(ranks[0].outputs[0], outputs[0], 1e-5, 1e-5, &d))
                fail_msg("%s \"%s\": %s %s", c.name, c.annotations, d.what, d.text);
            free_ranks(ranks, count);
        }
        onx_value_free(inputs[0]);
        onx_value_free(outputs[0]);
        onx_doc_free(whole);
        onx_doc_free(doc);
    }
}

/* ---- configurations ---- */

static void no_name(onx_doc *doc)
{
    onx_doc_model(doc)->configuration[0]->has &= ~(uint32_t)onx_device_configuration_has_name;
    onx_doc_model(doc)->configuration[0]->name = (onx_bytes){ 0 };
}

static void no_devices(onx_doc *doc)
{
    onx_doc_model(doc)->configuration[0]->num_devices = 0;
}

static void one_device_named(onx_doc *doc)
{
    onx_device_configuration *c = onx_doc_model(doc)->configuration[0];
    onx_bytes *at =
        onx_list_insert(onx_doc_arena(doc), (void **)&c->device, &c->device_count, c->device_count, sizeof *at);
    assert_non_null(at);
    assert_int_equal(onx_arena_keep(onx_doc_arena(doc), onx_str_of("cpu:0"), at), ONX_OK);
}

static void name_twice(onx_doc *doc)
{
    configure(doc, "c", "", 3);
}

static void other_configuration(onx_doc *doc)
{
    onx_node_extra *more = onx_message_extra(onx_doc_arena(doc), ONX_KIND_NODE, onx_doc_model(doc)->graph->node[0]);
    assert_int_equal(
        onx_arena_keep(onx_doc_arena(doc), onx_str_of("zz"), &more->device_configurations[0]->configuration_id),
        ONX_OK);
}

static void annotated_twice(onx_doc *doc)
{
    char more[] = "x 1/2@0,1";
    annotate(doc, 0, "c", more, 2);
}

static const struct {
    const char *rule;
    void (*change)(onx_doc *doc);
    const char *said; /* as nothing can run; NULL: it does */
    bool splits;      /* the annotation still counts */
} configurations[] = {
    { "D-01", no_name, NULL, false }, /* nothing can name it */
    { "D-02", no_devices, "a configuration has 1 to 4096 devices, not 0", false },
    { "D-03", one_device_named, NULL, true }, /* rank i is device i, whatever it is called */
    { "D-04", name_twice, NULL, true },       /* the first one of the name */
    { "D-05", other_configuration, NULL, false },
    { "D-06", annotated_twice, NULL, true }, /* what is said first */
};

static void test_shard_spec__configurations(void **state)
{
    (void)state;
    const test_case c = { .name = "configurations",
                          .graph = "g (float[4,16] x) => (float[4,24] y) { h = MatMul(x, w) y = Relu(h) }",
                          .weights = "w 16 24",
                          .annotations = "w 1/2@0,1" };
    for (size_t i = 0; i < sizeof configurations / sizeof *configurations; i++) {
        onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
        onx_value_difference d;
        rank ranks[2];
        onx_doc *doc = make(&c, 2);
        make_inputs(doc, inputs);
        run_whole(doc, inputs, outputs);
        configurations[i].change(doc);
        for (uint32_t k = 0; k < 2; k++)
            ranks[k] = (rank){ .doc = doc,
                               .inputs = inputs,
                               .options = { .configuration = i ? "c" : NULL, .timeout_ns = 10000000000 } };
        run_ranks(ranks, 2);
        const bool fine = ranks[0].status == ONX_OK;
        if (fine == (configurations[i].said != NULL) || (!fine && !strstr(ranks[0].error, configurations[i].said)))
            fail_msg("%s: status %d: %s", configurations[i].rule, ranks[0].status, ranks[0].error);
        if (fine && !onx_value_close(ranks[0].outputs[0], outputs[0], 1e-5, 1e-5, &d))
            fail_msg("%s: %s %s", configurations[i].rule, d.what, d.text);
        if (fine && configurations[i].splits != (ranks[0].summary.receive_bytes > 0))
            fail_msg("%s: %llu bytes are received", configurations[i].rule,
                     (unsigned long long)ranks[0].summary.receive_bytes);
        free_ranks(ranks, 2);
        onx_value_free(inputs[0]);
        onx_value_free(outputs[0]);
        onx_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_spec__rules),
        cmocka_unit_test(test_shard_spec__configurations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
