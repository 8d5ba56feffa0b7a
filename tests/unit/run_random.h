/* run_random.h - models with random weights, and the comparison of fast and plain kernels, one thread and several, on
 * them. Include after cmocka.h. */
#ifndef TESTS_RUN_RANDOM_H
#define TESTS_RUN_RANDOM_H

#include <onx/run.h>
#include <onx/text.h>

#include <stdio.h>

static inline onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK) {
        char line[500];
        onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
        fail_msg("%s\n%s", line, text);
    }
    return doc;
}

static inline uint32_t pick(uint32_t least, uint32_t most)
{
    static uint32_t seed_state = 1;
    seed_state = seed_state * 1664525u + 1013904223u;
    return least + (seed_state >> 8) % (most - least + 1);
}

static inline onx_value *random_floats(onx_ctx *cx, uint32_t rank, const int64_t *dims)
{
    onx_value *v;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, rank, dims, &v), ONX_OK);
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = (float)pick(0, 2000) / 1000.0f - 1.0f;
    return v;
}

/* A model text with random initializers of the given dims: "float[2,3] w = {...}". */
static inline size_t add_initializer(char *at, size_t room, const char *name, uint32_t rank, const int64_t *dims)
{
    size_t n = (size_t)snprintf(at, room, "float[");
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        n += (size_t)snprintf(at + n, room - n, "%s%lld", i ? "," : "", (long long)dims[i]);
        count *= (uint64_t)dims[i];
    }
    n += (size_t)snprintf(at + n, room - n, "] %s = {", name);
    for (uint64_t i = 0; i < count; i++)
        n += (size_t)snprintf(at + n, room - n, "%s%.3f", i ? "," : "", (double)pick(0, 2000) / 1000.0 - 1.0);
    n += (size_t)snprintf(at + n, room - n, "}");
    assert_true(n < room);
    return n;
}

static inline onx_value *run_model(onx_ctx *cx, onx_doc *doc, const onx_value *const *inputs, bool plain,
                                   unsigned threads)
{
    onx_session *s;
    onx_value *out = NULL;
    onx_session_options options = { .verify = true, .threads = threads, .plain = plain };
    onx_status status = onx_session_new(cx, doc, &options, &s);
    if (status == ONX_OK)
        status = onx_session_run(s, cx, inputs, &out);
    if (status != ONX_OK) {
        char line[500];
        onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
        fail_msg("%s", line);
    }
    onx_session_free(s);
    return out;
}

static inline void agree(onx_ctx *cx, const char *text, const onx_value *const *inputs)
{
    onx_doc *doc = parse(cx, text);
    onx_value *fast = run_model(cx, doc, inputs, false, 1), *plain = run_model(cx, doc, inputs, true, 1);
    onx_value *fast3 = run_model(cx, doc, inputs, false, 3), *plain3 = run_model(cx, doc, inputs, true, 3);
    onx_value_difference d;
    if (!onx_value_close(fast, plain, 1e-3, 1e-4, &d))
        fail_msg("fast and plain differ at %llu: %s\n%.300s", (unsigned long long)d.index, d.text, text);
    if (!onx_value_close(plain3, plain, 0, 0, &d))
        fail_msg("three threads and one differ at %llu: %s\n%.300s", (unsigned long long)d.index, d.text, text);
    if (!onx_value_close(fast3, fast, 1e-5, 1e-6, &d))
        fail_msg("three threads and one differ, fast, at %llu: %s\n%.300s", (unsigned long long)d.index, d.text, text);
    onx_value_free(fast);
    onx_value_free(plain);
    onx_value_free(fast3);
    onx_value_free(plain3);
    onx_doc_free(doc);
}

#endif
