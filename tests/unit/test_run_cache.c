/* test_run_cache.c - a cache whose input and output have the same memory is updated in place, by the kernel and not by
 * a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#include "run/run.h"

#include "unit/context.h"

enum { ROOM = 6, SIZE = 4 };

static const char scatter[] =
    "<ir_version: 10, opset_import: [\"\" : 24]>\n"
    "g (float[1, 1, 6, 4] past, float[1, 1, n, 4] fresh, int64[1] at) =>\n"
    "  (float[1, 1, 6, 4] present, float total)\n"
    "{ present = TensorScatter (past, fresh, at)  total = ReduceSum <keepdims = 0> (present) }";
static const char copied[] = "<ir_version: 10, opset_import: [\"\" : 24]>\n"
                             "g (float[1, 1, 6, 4] past, float[1, 1, n, 4] fresh, int64[1] at) =>\n"
                             "  (float[1, 1, 6, 4] present, float total)\n"
                             "{ present = TensorScatter (past, fresh, at)  total = ReduceSum <keepdims = 0> (past) }";

typedef struct seen {
    const void *cache;
    bool in_place;
} seen;

static void note(void *user, const onx_run_event *event)
{
    seen *s = user;
    if (onx_str_is(event->op_type, "TensorScatter"))
        s->in_place = event->output->data == s->cache;
}

static onx_value *wrap(void *data, onx_dtype dtype, uint32_t rank, const int64_t *dims, uint64_t size)
{
    const onx_memory memory = {
        .struct_size = sizeof memory, .dtype = (int32_t)dtype, .rank = rank, .dims = dims, .data = data, .size = size
    };
    onx_value *v;
    assert_int_equal(onx_value_wrap(cx, &memory, &v), ONX_OK);
    return v;
}

/* Two rows go to place 2 of a cache of sevens. */
static void run_over(const char *text, bool in_place, float total)
{
    _Alignas(64) float cache[ROOM * SIZE];
    float fresh[2 * SIZE] = { 1, 1, 1, 1, 2, 2, 2, 2 }, sum = 0;
    int64_t at = 2;
    const int64_t cache_dims[] = { 1, 1, ROOM, SIZE }, fresh_dims[] = { 1, 1, 2, SIZE }, at_dims[] = { 1 };
    onx_doc *doc;
    onx_session *session;
    const onx_session_options plain = { .verify = true, .struct_size = sizeof plain, .plain = true };
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, &plain, &session), ONX_OK);
    for (int i = 0; i < ROOM * SIZE; i++)
        cache[i] = 7;
    onx_value *in = wrap(cache, ONX_FLOAT, 4, cache_dims, sizeof cache),
              *out = wrap(cache, ONX_FLOAT, 4, cache_dims, sizeof cache),
              *rows = wrap(fresh, ONX_FLOAT, 4, fresh_dims, sizeof fresh),
              *place = wrap(&at, ONX_INT64, 1, at_dims, sizeof at), *one = wrap(&sum, ONX_FLOAT, 0, NULL, sizeof sum);
    seen s = { .cache = cache };
    const onx_run_options options = { .struct_size = sizeof options, .event = note, .user = &s };
    for (int run = 0; run < 2; run++) {
        const onx_value *inputs[] = { in, rows, place };
        onx_value *outputs[] = { out, one };
        s.in_place = false;
        assert_int_equal(onx_session_run_with(session, cx, inputs, outputs, &options), ONX_OK);
        assert_int_equal(s.in_place, in_place);
        for (int i = 0; i < ROOM * SIZE; i++)
            assert_true(cache[i] == (i / SIZE == 2 ? 1.0f : i / SIZE == 3 ? 2.0f : 7.0f));
        assert_true(sum == (run || in_place ? 4 * 4 * 7 + 4 * 3 : total));
    }
    onx_value_free(in);
    onx_value_free(out);
    onx_value_free(rows);
    onx_value_free(place);
    onx_value_free(one);
    onx_session_free(session);
    onx_doc_free(doc);
}

static void test_run_cache__is_updated_in_place(void **state)
{
    (void)state;
    run_over(scatter, true, 0);
}

/* Who else reads the cache sees it as it was. */
static void test_run_cache__is_copied_where_others_read_it(void **state)
{
    (void)state;
    run_over(copied, false, ROOM * SIZE * 7);
}

static void test_run_cache__is_found(void **state)
{
    (void)state;
    onx_doc *doc;
    onx_session *session;
    uint32_t output = 9;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(scatter), 0, &doc), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, NULL, &session), ONX_OK);
    assert_true(onxi_run_cache_output(session->s.main, 0, &output));
    assert_int_equal(output, 0);
    assert_false(onxi_run_cache_output(session->s.main, 1, &output));
    assert_false(onxi_run_cache_output(session->s.main, 3, &output));
    onx_session_free(session);
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_cache__is_updated_in_place),
        cmocka_unit_test(test_run_cache__is_copied_where_others_read_it),
        cmocka_unit_test(test_run_cache__is_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
