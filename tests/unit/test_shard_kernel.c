/* test_shard_kernel.c - collectives refuse a value whose size does not match its placement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#include "shard/shard.h"

#include "context.h"

/* A rank alone: nobody is there to exchange anything with. */
static onx_status nobody(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                         const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns, uint32_t *failed)
{
    (void)user, (void)tag, (void)sends, (void)receives, (void)timeout_ns, (void)failed;
    return send_count || receive_count ? ONX_E_MISUSE : ONX_OK;
}

/* Runs a node of the domain over a float tensor of those dims. */
static onx_status run(const char *node, int64_t rows, int64_t columns, onx_value **y)
{
    static const onxi_shard_runtime runtime = { .comm = { .rank = 0, .size = 1, .exchange = nobody } };
    onx_kernel kernels[ONXI_SHARD_KERNELS];
    char text[600];
    onx_doc *doc;
    onx_session *session = NULL;
    onx_value *x = NULL;
    const int64_t dims[] = { rows, columns };
    onxi_shard_kernels(&runtime, kernels);
    const onx_session_options options = { .threads = 1, .kernels = kernels };
    snprintf(text, sizeof text,
             "<ir_version: 10, opset_import: [\"\": 21, \"onx.shard\": 1]>\n"
             "g (float[%lld, %lld] x) => (float[4, 2] y) { y = onx.shard.%s (x) }",
             (long long)rows, (long long)columns, node);
    onx_diag_clear(cx);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x), ONX_OK);
    for (uint64_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)i;
    onx_status status = onx_session_new(cx, doc, &options, &session);
    if (status == ONX_OK)
        status = onx_session_run(session, cx, (const onx_value *const[]){ x }, y);
    onx_value_free(x);
    onx_session_free(session);
    onx_doc_free(doc);
    return status;
}

static void test_shard_kernel__other_shapes(void **state)
{
    (void)state;
    static const char *const nodes[] = {
        "Slice <dtype = 1, tag = 0, dims = [4, 2], from = [4, 2], to = [4, 2], pieces = [0, 0, 0, 0, 4, 0, 0, 2]>",
        "Reduce <dtype = 1, tag = 0, dims = [4, 2], from = [4, 2], to = [4, 2], pieces = [0, 0, 0, 0, 4, 0, 0, 2], "
        "reduction = \"sum\", scale = 1.0, parts = 1>",
        "AllReduce <dtype = 1, tag = 0, dims = [4, 2], from = [4, 2], to = [4, 2], members = [0], reduction = \"sum\", "
        "scale = 1.0, parts = 1>",
    };
    static const int64_t shapes[][2] = { { 2, 2 }, { 4, 1 }, { 8, 1 }, { 2, 4 }, { 4, 3 } };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        onx_value *y = NULL;
        if (run(nodes[i], 4, 2, &y) != ONX_OK)
            fail_msg("%s: %.*s", nodes[i], ONX_ARG(onx_diag_get(cx, 0)->message));
        for (uint64_t k = 0; k < 8; k++)
            assert_true(((const float *)y->data)[k] == (float)k);
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
            assert_int_equal(run(nodes[i], shapes[k][0], shapes[k][1], &y), ONX_E_INVALID);
        onx_value_free(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_kernel__other_shapes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
