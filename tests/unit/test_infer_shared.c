/* test_infer_shared.c - shared cases of inference: a model and the result of the reference, or its refusal. Our result
 * must have at least as much information. Cases are found through ONX_CONFORMANCE_DIR; where the reference is wrong,
 * the table names the case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/infer.h>
#include <onx/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where ours differs on purpose (docs/notes/infer.md) ---- */

static const struct difference {
    const char *test, *reason;
    unsigned cases;
} differences[] = {
    { "test_stft_reals", "onesided is 1 when it is absent; the reference takes 0 here and 1 in its own backend tests",
      3 },
    { "test_STFT", "the same; the declared output has the size that follows from 0", 4 },
    { "test_slice_with_input_shape_axes", "steps that are not known are taken as 1", 1 },
    { "test_slice_with_input_shape_steps", "axes that are not known are taken as the first ones", 1 },
    { "test_CenterCropPad", "the model crops a scalar to rank 2, because it names its inputs wrongly", 2 },
    { "test_function_output_count_mismatch_does_not_crash", "a call may leave trailing outputs out", 1 },
    { "test_opaque_rng_example", "needs an operator that the test registers in its process", 1 },
    { "test_check_type_when_schema_has_empty_io", "needs an operator that the test registers in its process", 1 },
};
enum { DIFFERENCES = sizeof differences / sizeof *differences };
static unsigned differed[DIFFERENCES];

/* ---- the list of cases: flat objects, one per line ---- */

/* What stands behind "key": in the line; NULL when nothing does. */
static const char *value_of(const char *line, const char *key)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    const char *at = strstr(line, wanted);
    return at ? at + strlen(wanted) : NULL;
}

static bool is_true(const char *line, const char *key)
{
    const char *value = value_of(line, key);
    return value && strncmp(value, "true", 4) == 0;
}

/* The next string from *at on, before the list ends; false when there is none. */
static bool next_text(const char **at, char *out, size_t size)
{
    size_t len = 0;
    while (**at == ' ' || **at == ',' || **at == '[')
        ++*at;
    if (**at != '"')
        return false;
    for (++*at; **at && **at != '"'; ++*at)
        if (len + 1 < size)
            out[len++] = **at;
    out[len] = '\0';
    *at += **at == '"';
    return true;
}

static FILE *open_list(const char *kind)
{
    const char *folder = getenv("ONX_CONFORMANCE_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/index.jsonl", folder ? folder : "../shared/conformance", kind);
    return fopen(path, "rb");
}

static bool is_there(const char *kind)
{
    FILE *list = open_list(kind);
    if (list)
        fclose(list);
    return list != NULL;
}

static onx_doc *load(onx_ctx *cx, const char *kind, const char *blob, onx_kind what)
{
    const char *folder = getenv("ONX_CONFORMANCE_DIR");
    const onx_load_options options = { .format = ONX_FORMAT_BINARY };
    char path[4096];
    onx_doc *doc;
    snprintf(path, sizeof path, "%s/%s/blobs/%s", folder ? folder : "../shared/conformance", kind, blob);
    if (onx_load(cx, what, path, &options, &doc) != ONX_OK)
        fail_msg("%s: %.*s", path, ONX_ARG(onx_diag_get(cx, 0)->message));
    return doc;
}

/* ---- saying at least as much ---- */

static bool covers_shape(const onx_tensor_shape *ours, const onx_tensor_shape *want)
{
    if (!want)
        return true;
    if (!ours || ours->dim_count != want->dim_count)
        return false;
    for (uint32_t i = 0; i < want->dim_count; i++) {
        bool number = ONX_HAS(dimension, ours->dim[i], dim_value);
        if (ONX_HAS(dimension, want->dim[i], dim_value) ? !number || ours->dim[i]->dim_value != want->dim[i]->dim_value
                                                        : ONX_HAS(dimension, want->dim[i], dim_param) && !number &&
                                                              !ONX_HAS(dimension, ours->dim[i], dim_param))
            return false;
    }
    return true;
}

static bool covers(const onx_type *ours, const onx_type *want)
{
    if (!want)
        return true;
    if (!ours)
        return !(want->has & ~(uint32_t)onx_type_has_denotation);
    if (ONX_HAS(type, want, tensor_type))
        return ONX_HAS(type, ours, tensor_type) &&
               (!want->tensor_type->elem_type || want->tensor_type->elem_type == ours->tensor_type->elem_type) &&
               covers_shape(ours->tensor_type->shape, want->tensor_type->shape);
    if (ONX_HAS(type, want, sparse_tensor_type))
        return ONX_HAS(type, ours, sparse_tensor_type) &&
               (!want->sparse_tensor_type->elem_type ||
                want->sparse_tensor_type->elem_type == ours->sparse_tensor_type->elem_type) &&
               covers_shape(ours->sparse_tensor_type->shape, want->sparse_tensor_type->shape);
    if (ONX_HAS(type, want, sequence_type))
        return ONX_HAS(type, ours, sequence_type) &&
               covers(ours->sequence_type->elem_type, want->sequence_type->elem_type);
    if (ONX_HAS(type, want, optional_type))
        return ONX_HAS(type, ours, optional_type) &&
               covers(ours->optional_type->elem_type, want->optional_type->elem_type);
    if (ONX_HAS(type, want, map_type))
        return ONX_HAS(type, ours, map_type) && ours->map_type->key_type == want->map_type->key_type &&
               covers(ours->map_type->value_type, want->map_type->value_type);
    return true;
}

static const onx_type *find_type(const onx_graph *g, onx_str name)
{
    for (uint32_t i = 0; i < g->output_count; i++)
        if (onx_str_equal(onx_view(g->output[i]->name), name) && g->output[i]->type)
            return g->output[i]->type;
    for (uint32_t i = 0; i < g->value_info_count; i++)
        if (onx_str_equal(onx_view(g->value_info[i]->name), name) && g->value_info[i]->type)
            return g->value_info[i]->type;
    return NULL;
}

static bool covers_list(const onx_graph *ours, onx_value_info *const *list, uint32_t count, char *why, size_t size)
{
    for (uint32_t i = 0; i < count; i++)
        if (!covers(find_type(ours, onx_view(list[i]->name)), list[i]->type)) {
            snprintf(why, size, "ours says less of, or other than, \"%.*s\"", ONX_ARG(onx_view(list[i]->name)));
            return false;
        }
    return true;
}

static bool covers_graph(const onx_graph *ours, const onx_graph *want, char *why, size_t size)
{
    if (!covers_list(ours, want->value_info, want->value_info_count, why, size) ||
        !covers_list(ours, want->output, want->output_count, why, size))
        return false;
    assert_int_equal(ours->node_count, want->node_count);
    for (uint32_t i = 0; i < want->node_count; i++)
        for (uint32_t k = 0; k < want->node[i]->attribute_count; k++) {
            uint32_t count;
            onx_graph *const *a = onx_attribute_value(ours->node[i]->attribute[k], ONX_SLOT_G, &count);
            onx_graph *const *b = onx_attribute_value(want->node[i]->attribute[k], ONX_SLOT_G, &count);
            if (a && b && !covers_graph(*a, *b, why, size))
                return false;
        }
    return true;
}

/* ---- models ---- */

static bool run_case(const char *kind, const char *line, char *why, size_t size)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    const char *in = value_of(line, "in"), *out = value_of(line, "out"), *error = value_of(line, "error");
    const onx_infer_options options = { .strict = is_true(line, "strict_mode"),
                                        .check_type = is_true(line, "check_type"),
                                        .no_data_prop = !is_true(line, "data_prop") };
    char blob[64];
    assert_non_null(in);
    assert_non_null(error);
    assert_true(next_text(&in, blob, sizeof blob));
    onx_doc *doc = load(cx, kind, blob, ONX_KIND_MODEL), *wanted = NULL;
    onx_status status = onx_infer_model(cx, doc, &options);
    bool good = (status == ONX_OK) == (strncmp(error, "null", 4) == 0);
    if (!good)
        snprintf(why, size, "%s, the reference %s: %.*s", onx_status_text(status),
                 strncmp(error, "null", 4) == 0 ? "accepts it" : "refuses it",
                 ONX_ARG(onx_diag_count(cx) ? onx_diag_get(cx, 0)->message : onx_str_of("")));
    if (good && status == ONX_OK && out && next_text(&out, blob, sizeof blob)) {
        wanted = load(cx, kind, blob, ONX_KIND_MODEL);
        good = covers_graph(onx_doc_model(doc)->graph, onx_doc_model(wanted)->graph, why, size);
    }
    onx_doc_free(wanted);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return good;
}

/* May the case of this name differ? */
static bool is_known(const char *test)
{
    const char *name = strrchr(test, ':');
    for (size_t i = 0; i < DIFFERENCES; i++)
        if (strcmp(name ? name + 1 : test, differences[i].test) == 0) {
            differed[i]++;
            return true;
        }
    return false;
}

static unsigned run_list(const char *kind)
{
    static char line[1 << 16];
    char why[512], test[512];
    unsigned cases = 0, bad = 0;
    FILE *list = open_list(kind);
    assert_non_null(list);
    while (fgets(line, sizeof line, list)) {
        const char *name = value_of(line, "test");
        assert_non_null(name);
        assert_true(next_text(&name, test, sizeof test));
        cases++;
        if (run_case(kind, line, why, sizeof why) || is_known(test))
            continue;
        print_error("%s: %s\n", test, why);
        bad++;
    }
    fclose(list);
    print_message("%s: %u cases\n", kind, cases);
    assert_int_equal(bad, 0);
    return cases;
}

static void test_infer_shared__models(void **state)
{
    (void)state;
    assert_true(run_list("infer") > 1000);
    for (size_t i = 0; i < DIFFERENCES; i++) {
        print_message("%u differ: %s: %s\n", differed[i], differences[i].test, differences[i].reason);
        assert_int_equal(differed[i], differences[i].cases); /* fewer: take it out of the table */
    }
}

/* What the newest operator set adds. */
static void test_infer_shared__newest_models(void **state)
{
    (void)state;
    if (!is_there("infer_28"))
        skip();
    assert_true(run_list("infer_28") > 0);
}

static void test_infer_shared__backend_models(void **state)
{
    (void)state;
    assert_true(run_list("infer_backend") > 1000);
}

/* ---- functions ---- */

enum { MANY = 8 };

static uint32_t load_all(onx_ctx *cx, const char *list, onx_kind kind, onx_doc **docs)
{
    char blob[64];
    uint32_t count = 0, most = list && *list == '[' ? MANY : 1;
    while (list && count < most && next_text(&list, blob, sizeof blob))
        docs[count++] = load(cx, "infer_function", blob, kind);
    return count;
}

static void run_function(const char *line)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *in[MANY], *types[MANY], *attributes[MANY], *outs[MANY];
    const onx_type *given[MANY] = { NULL }, *found[MANY] = { NULL };
    const onx_attribute *named[MANY];
    const onx_infer_options options = { .strict = true, .check_type = true };
    const char *error = value_of(line, "error");
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    assert_int_equal(load_all(cx, value_of(line, "in"), ONX_KIND_FUNCTION, in), 1);
    uint32_t type_count = load_all(cx, value_of(line, "types"), ONX_KIND_TYPE, types);
    uint32_t attribute_count = load_all(cx, value_of(line, "attrs"), ONX_KIND_ATTRIBUTE, attributes);
    uint32_t out_count = load_all(cx, value_of(line, "out"), ONX_KIND_TYPE, outs);
    for (uint32_t i = 0; i < type_count; i++) { /* an empty type stands for an input that is left out */
        given[i] = onx_doc_root(types[i], ONX_KIND_TYPE);
        if (!given[i]->has)
            given[i] = NULL;
    }
    for (uint32_t i = 0; i < attribute_count; i++)
        named[i] = onx_doc_root(attributes[i], ONX_KIND_ATTRIBUTE);
    const onx_function *function = onx_doc_root(in[0], ONX_KIND_FUNCTION);
    onx_status status =
        onx_infer_function(cx, NULL, function, given, type_count, named, attribute_count, &options, arena, found);
    assert_int_equal(status == ONX_OK, strncmp(error, "null", 4) == 0);
    for (uint32_t i = 0; i < out_count && status == ONX_OK; i++)
        assert_true(covers(found[i], onx_doc_root(outs[i], ONX_KIND_TYPE)));
    onx_arena_free(arena);
    for (uint32_t i = 0; i < type_count; i++)
        onx_doc_free(types[i]);
    for (uint32_t i = 0; i < attribute_count; i++)
        onx_doc_free(attributes[i]);
    for (uint32_t i = 0; i < out_count; i++)
        onx_doc_free(outs[i]);
    onx_doc_free(in[0]);
    onx_ctx_free(cx);
}

static void test_infer_shared__functions(void **state)
{
    (void)state;
    static char line[1 << 16];
    FILE *list = open_list("infer_function");
    assert_non_null(list);
    unsigned cases = 0;
    for (; fgets(line, sizeof line, list); cases++)
        run_function(line);
    fclose(list);
    assert_true(cases > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer_shared__models),
        cmocka_unit_test(test_infer_shared__newest_models),
        cmocka_unit_test(test_infer_shared__backend_models),
        cmocka_unit_test(test_infer_shared__functions),
    };
    if (!is_there("infer")) {
        printf("skipped: no cases of inference at ONX_CONFORMANCE_DIR\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
