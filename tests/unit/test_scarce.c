/* Lack of memory: each allocation of each kind of work fails in turn, alone and with all later ones. Nothing crashes or
 * leaks, and the failure is ONX_E_MEMORY with a diagnostic. Work that does not need the memory may succeed. */
#include "base/base.h"
#include "unit/scarce.h"

#include <onx/onx.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/folder.h"
#include "unit/rich.h"

static char folder[FOLDER_ROOM];

static onx_status forget_bytes(void *user, onx_str bytes)
{
    (void)user;
    (void)bytes;
    return ONX_OK;
}
static const onx_sink nowhere = { forget_bytes, NULL };

static onx_status load_text(onx_ctx *cx, onx_doc **out)
{
    return onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(rich_model), 0, out);
}

/* Work on the model; frees all that it makes. */
static onx_status only_load(onx_ctx *cx, onx_doc *doc)
{
    (void)cx;
    (void)doc;
    return ONX_OK;
}

static onx_status print_and_format(onx_ctx *cx, onx_doc *doc)
{
    ONX_TRY(onx_text_print(cx, ONX_KIND_MODEL, onx_doc_model(doc), NULL, nowhere));
    return onx_text_format(cx, ONX_KIND_MODEL, onx_str_of(rich_model), nowhere);
}

static onx_status check_structure(onx_ctx *cx, onx_doc *doc)
{
    return onx_check(cx, doc, &(onx_check_options){ .flags = ONX_CHECK_STRUCTURE }, NULL);
}

static onx_status check_full(onx_ctx *cx, onx_doc *doc)
{
    return onx_check(cx, doc, &(onx_check_options){ .flags = ONX_CHECK_FULL }, NULL);
}

static onx_status infer_and_fix(onx_ctx *cx, onx_doc *doc)
{
    onx_infer *infer;
    ONX_TRY(onx_infer_new(cx, doc, NULL, &infer));
    onx_status status = onx_infer_fix(infer, onx_str_of("N"), 2);
    if (status == ONX_OK)
        status = onx_infer_apply(infer);
    onx_infer_free(infer);
    return status;
}

static onx_status through(onx_ctx *cx, onx_doc *doc, const char *name)
{
    char path[FOLDER_ROOM + 32];
    onx_doc *again;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ONX_TRY(onx_save(cx, doc, path, NULL));
    ONX_TRY(onx_load(cx, ONX_KIND_MODEL, path, NULL, &again));
    onx_doc_free(again);
    return ONX_OK;
}

static onx_status through_binary(onx_ctx *cx, onx_doc *doc)
{
    return through(cx, doc, "m.onnx");
}

static onx_status through_text(onx_ctx *cx, onx_doc *doc)
{
    return through(cx, doc, "m.onnxtxt");
}

static onx_status through_textproto(onx_ctx *cx, onx_doc *doc)
{
    return through(cx, doc, "m.textproto");
}

static onx_status through_json(onx_ctx *cx, onx_doc *doc)
{
    return through(cx, doc, "m.json");
}

static onx_status external_data(onx_ctx *cx, onx_doc *doc)
{
    char path[FOLDER_ROOM + 32];
    onx_doc *again;
    onx_external_options out = { .location = "w.bin", .threshold = 1 };
    snprintf(path, sizeof path, "%s/x.onnx", folder);
    ONX_TRY(onx_save(cx, doc, path, &(onx_save_options){ .external = &out }));
    ONX_TRY(onx_load(cx, ONX_KIND_MODEL, path, NULL, &again));
    onx_str bytes = { 0 };
    const onx_graph *g = onx_doc_model(again)->graph;
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < g->initializer_count && status == ONX_OK; i++)
        if (onx_tensor_is_external(g->initializer[i]))
            status = onx_external_bytes(again, g->initializer[i], &bytes);
    onx_doc_free(again);
    return status;
}

static onx_status copy_and_index(onx_ctx *cx, onx_doc *doc)
{
    onx_index *index;
    void *copy;
    ONX_TRY(onx_message_copy(onx_doc_arena(doc), ONX_KIND_MODEL, onx_doc_model(doc), &copy));
    ONX_TRY(onx_index_new(cx, onx_doc_model(doc)->graph, &index));
    onx_index_free(index);
    return ONX_OK;
}

static onx_status places(onx_ctx *cx, onx_doc *doc)
{
    onx_text_places *found;
    (void)cx;
    ONX_TRY(onx_text_places_new(doc, &found));
    onx_text_places_free(found);
    return ONX_OK;
}

static onx_status registry(onx_ctx *cx, onx_doc *doc)
{
    onx_registry *r;
    onx_doc *set;
    (void)doc;
    ONX_TRY(onx_opset_export(cx, onx_str_of("ai.onnx.ml"), 4, &set));
    onx_status status = onx_registry_new(cx, &r);
    if (status == ONX_OK) {
        status = onx_registry_load(r, set);
        onx_registry_free(r);
    }
    onx_doc_free(set);
    return status;
}

static onx_status run(onx_ctx *cx, onx_doc *doc, bool plain)
{
    onx_session *session;
    onx_value *x = NULL, *c = NULL, *outputs[2] = { NULL, NULL };
    const int64_t dims[] = { 2, 2 };
    ONX_TRY(onx_session_new(cx, doc, &(onx_session_options){ .threads = 1, .plain = plain }, &session));
    onx_status status = onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x);
    if (status == ONX_OK)
        status = onx_value_new_tensor(cx, ONX_BOOL, 0, NULL, &c);
    if (status == ONX_OK)
        status = onx_session_run(session, cx, (const onx_value *const[]){ x, c }, outputs);
    onx_value_free(x);
    onx_value_free(c);
    onx_value_free(outputs[0]);
    onx_value_free(outputs[1]);
    onx_session_free(session);
    return status;
}

static onx_status run_plain(onx_ctx *cx, onx_doc *doc)
{
    return run(cx, doc, true);
}

static onx_status values(onx_ctx *cx, onx_doc *doc)
{
    onx_value *list = NULL, *text = NULL, *copy = NULL;
    onx_doc *made = NULL;
    const int64_t dims[] = { 3 };
    (void)doc;
    onx_status status = onx_value_new(cx, &list);
    if (status == ONX_OK)
        status = onx_value_reset_list(list, ONX_VALUE_SEQUENCE, ONX_UNDEFINED);
    if (status == ONX_OK)
        status = onx_value_new_tensor(cx, ONX_STRING, 1, dims, &text);
    for (uint64_t i = 0; i < 3 && status == ONX_OK; i++)
        status = onx_value_set_text(text, i, onx_str_of("some text"));
    if (status == ONX_OK)
        status = onx_value_new(cx, &copy);
    if (status == ONX_OK)
        status = onx_value_assign(copy, text);
    if (status == ONX_OK)
        status = onx_value_insert(list, 0, text);
    if (status == ONX_OK)
        status = onx_value_to_doc(cx, list, onx_str_of("v"), &made);
    onx_doc_free(made);
    onx_value_free(list);
    onx_value_free(text);
    onx_value_free(copy);
    return status;
}

#define WORK(name)                                                                                                     \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
static const struct {
    const char *name;
    onx_status (*run)(onx_ctx *cx, onx_doc *doc);
} works[] = { WORK(only_load),     WORK(print_and_format), WORK(check_structure), WORK(check_full),
              WORK(infer_and_fix), WORK(through_binary),   WORK(through_text),    WORK(through_textproto),
              WORK(through_json),  WORK(external_data),    WORK(copy_and_index),  WORK(places),
              WORK(registry),      WORK(run_plain),        WORK(values) };

static int failures;

/* One attempt; what it has to say about the failing allocation is checked. */
static void attempt(size_t w, scarce_memory *memory)
{
    onx_doc *doc = NULL;
    onx_ctx *cx = onx_ctx_new(&(onx_allocator){ scarce_resize, memory });
    if (!cx)
        return;
    onx_status status = load_text(cx, &doc);
    if (status == ONX_OK)
        status = works[w].run(cx, doc);
    bool told = false;
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        told |= onx_diag_get(cx, i)->status == ONX_E_MEMORY;
    bool good = memory->failing ? status == ONX_OK || (status == ONX_E_MEMORY && told) : status == ONX_OK;
    if (!good) {
        print_error("%s, allocation %u%s: %s, %zu errors\n", works[w].name, memory->failing,
                    memory->lasting ? " and all after it" : "", onx_status_text(status), onx_diag_total(cx, ONX_ERROR));
        for (size_t i = 0; !memory->failing && i < onx_diag_count(cx); i++)
            print_error("%.*s: %.*s\n", ONX_ARG(onx_diag_get(cx, i)->where.path),
                        ONX_ARG(onx_diag_get(cx, i)->message));
        failures++;
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    if (memory->in_use) {
        print_error("%s, allocation %u: %zu bytes are lost\n", works[w].name, memory->failing, memory->in_use);
        failures++;
    }
}

static void test_scarce__every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(folder_make(folder));
    for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
        scarce_memory all = { 0 };
        attempt(w, &all);
        print_message("%s: %u allocations\n", works[w].name, all.calls);
        for (int lasting = 0; lasting < 2; lasting++)
            for (unsigned n = 1; n <= all.calls; n++)
                attempt(w, &(scarce_memory){ .failing = n, .lasting = lasting });
    }
    folder_remove(folder);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_scarce__every_allocation_may_fail) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
