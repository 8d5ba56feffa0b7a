/* test_infer_fix.c - fixing a dimension after inference gives the same as new inference with that size, and visits only
 * the values that depend on the symbol. Models: those of tests/cases/infer, some below, and those of
 * ONX_CONFORMANCE_DIR with every size made a symbol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/io.h>
#include <onx/text.h>

#include "infer/infer.h"
#include "unit/cases.h"

#include <ctype.h>
#include <dirent.h>

/* ---- comparing ---- */

/* Symbols that inference made are numbered in order of meeting: rename them so, by first appearance. */
typedef struct renamer {
    uint32_t seen[4096];
    uint32_t count;
} renamer;

static void add_renamed(cases_buffer *out, renamer *r, const char *text)
{
    while (*text) {
        const char *end = text;
        while (isalnum((unsigned char)*end) || *end == '_')
            end++;
        if (end == text)
            end++;
        bool ours = strncmp(text, "unk__", 5) == 0 || strncmp(text, "d_", 2) == 0 || strncmp(text, "expr_", 5) == 0;
        if (ours && isdigit((unsigned char)end[-1])) {
            uint32_t number = (uint32_t)strtoul(strchr(text, '_') + (text[0] == 'u' ? 2 : 1), NULL, 10), k = 0;
            char name[32];
            while (k < r->count && r->seen[k] != number)
                k++;
            if (k == r->count && k < 4096)
                r->seen[r->count++] = number;
            cases_add(out, name, (size_t)snprintf(name, sizeof name, "u%u", k));
        } else {
            cases_add(out, text, (size_t)(end - text));
        }
        text = end;
    }
}

/* A type as text; dimensions as one table has them, because the order of terms is that of their first appearance. */
static void add_type(cases_buffer *out, renamer *r, const onx_infer *e, const onxi_type *type, onxi_dims *common)
{
    char text[1024];
    cases_buffer dim;
    onxi_type head = *type;
    head.ranked = false;
    (void)onxi_infer_type_print(e->dims, &head, text, sizeof text);
    if (type->inner)
        (void)snprintf(text, sizeof text, "%u of", type->kind);
    cases_add_text(out, text);
    for (uint32_t i = 0; type->ranked && i < type->rank; i++) {
        (void)onxi_dim_print(e->dims, type->dims[i], text, sizeof text);
        dim = (cases_buffer){ NULL, 0 };
        add_renamed(&dim, r, text);
        (void)onxi_dim_print(common, onxi_dim_parse(common, onx_str_make(dim.ptr, dim.len)), text, sizeof text);
        cases_add_text(out, ", ");
        cases_add_text(out, text);
        free(dim.ptr);
    }
    if (type->inner)
        add_type(out, r, e, type->inner, common);
}

/* All that is known, in the order of the graphs of `order`. */
static cases_buffer describe(onx_infer *e, const onx_infer *order, onxi_dims *common)
{
    static char type[1 << 16];
    cases_buffer out = { NULL, 0 };
    renamer r = { .count = 0 };
    cases_add(&out, "", 0);
    for (const onxi_infer_result *o = order->results; o; o = o->next) {
        const onxi_infer_result *found = onxi_infer_result_of(e, o->graph, false);
        for (uint32_t i = 0; i < o->count || (found && i < found->count); i++) {
            if (!found || i >= found->count || i >= o->count) {
                cases_add_text(&out, found && i < found->count ? "too much\n" : "missing\n");
                continue;
            }
            cases_add(&out, found->made[i].name.ptr, found->made[i].name.len);
            cases_add_text(&out, ": ");
            add_type(&out, &r, e, &found->made[i].fact->type, common);
            cases_add_text(&out, "\n");
        }
    }
    onx_infer_summary s = onx_infer_summarize(e);
    snprintf(type, sizeof type, "%u known %u symbolic %u open %u unknown %u failed\n", (unsigned)s.known,
             (unsigned)s.symbolic, (unsigned)s.open, (unsigned)s.unknown, (unsigned)s.failed);
    cases_add_text(&out, type);
    const onx_infer_loss *l;
    for (uint32_t i = 0; (l = onx_infer_loss_get(e, i)) != NULL; i++) {
        snprintf(type, sizeof type, "%.*s: %.*s (%u)\n", ONX_ARG(l->path), ONX_ARG(l->reason), (unsigned)l->values);
        add_renamed(&out, &r, type);
    }
    return out;
}

static uint64_t compared, failed_both;

/* `e` had the dimensions fixed afterwards, as `status` says; the same at once has to say the same. */
static void compare(onx_doc *doc, onx_infer *e, onx_status status, const onx_infer_fixed *fixed, uint32_t count,
                    bool strict, const char *what)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_infer *fresh = NULL;
    onx_ctx *own = doc->cx;
    const onx_infer_options options = { .fixed = fixed, .fixed_count = count, .strict = strict, .check_type = true };
    doc->cx = cx;
    onx_status at_once = onx_infer_new(cx, doc, &options, &fresh);
    doc->cx = own;
    if ((at_once == ONX_OK) != (status == ONX_OK))
        fail_msg("%s: %s=%lld is %s afterwards and %s at once", what, fixed[count - 1].name,
                 (long long)fixed[count - 1].size, onx_status_text(status), onx_status_text(at_once));
    failed_both += at_once != ONX_OK;
    if (at_once == ONX_OK) {
        onxi_dims *common;
        assert_int_equal(onxi_dims_new(cx, &common), ONX_OK);
        cases_buffer a = describe(e, fresh, common), b = describe(fresh, fresh, common);
        if (strcmp(a.ptr, b.ptr) != 0) {
            char *x = a.ptr, *y = b.ptr;
            while (*x && *x == *y)
                x++, y++;
            while (x > a.ptr && x[-1] != '\n')
                x--, y--;
            fail_msg("%s: %s=%lld differs:\nafterwards %.*s\nat once    %.*s", what, fixed[count - 1].name,
                     (long long)fixed[count - 1].size, (int)strcspn(x, "\n"), x, (int)strcspn(y, "\n"), y);
        }
        free(a.ptr);
        free(b.ptr);
        onxi_dims_free(common);
        compared++;
    }
    onx_infer_free(fresh);
    onx_ctx_free(cx);
}

/* ---- the symbols of a model ---- */

enum { SYMBOLS = 6 };
typedef struct symbols {
    char names[SYMBOLS][64];
    int64_t natural[SYMBOLS]; /* the size that the model had there, or 0 */
    uint32_t count;
} symbols;

static uint32_t add_symbol(symbols *s, const char *name, int64_t natural)
{
    uint32_t i = 0;
    while (i < s->count && strcmp(s->names[i], name) != 0)
        i++;
    if (i == s->count && i < SYMBOLS) {
        snprintf(s->names[i], sizeof s->names[i], "%s", name);
        s->natural[s->count++] = natural;
    }
    return i;
}

static void find_symbols(symbols *s, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_type *t = g->input[i]->type;
        const onx_tensor_shape *shape = t && ONX_HAS(type, t, tensor_type) ? t->tensor_type->shape : NULL;
        for (uint32_t k = 0; shape && k < shape->dim_count; k++) {
            onx_str text = onx_view(shape->dim[k]->dim_param);
            if (text.len && text.len < 60 && ONX_HAS(dimension, shape->dim[k], dim_param)) {
                char name[64];
                snprintf(name, sizeof name, "%.*s", ONX_ARG(text));
                (void)add_symbol(s, name, 0);
            }
        }
    }
}

/* Makes the sizes of the inputs symbols, one per size. */
static void make_symbols(symbols *s, onx_doc *doc, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_type *t = g->input[i]->type;
        const onx_tensor_shape *shape = t && ONX_HAS(type, t, tensor_type) ? t->tensor_type->shape : NULL;
        for (uint32_t k = 0; shape && k < shape->dim_count; k++) {
            onx_dimension *d = shape->dim[k];
            char name[32];
            onx_bytes text;
            if (!ONX_HAS(dimension, d, dim_value))
                continue;
            snprintf(name, sizeof name, "s%lld", (long long)d->dim_value);
            if (add_symbol(s, name, d->dim_value) == SYMBOLS)
                continue;
            assert_int_equal(onx_arena_keep(onx_doc_arena(doc), onx_str_of(name), &text), ONX_OK);
            ONX_CLEAR(dimension, d, dim_value);
            ONX_SET(dimension, d, dim_param, text);
        }
    }
}

/* Fixes every symbol by itself, then another size for it, then all of them. */
static void try_model(onx_ctx *cx, onx_doc *doc, bool make, bool strict, const char *what)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    const onx_infer_options options = { .strict = strict, .check_type = true };
    symbols s = { .count = 0 };
    onx_infer *e;
    if (!g)
        return;
    find_symbols(&s, g);
    if (make)
        make_symbols(&s, doc, g);
    for (uint32_t i = 0; i < s.count; i++) {
        static const int64_t sizes[] = { 3, 0, 1, 4 };
        if (onx_infer_new(cx, doc, &options, &e) != ONX_OK)
            return;
        for (size_t k = 0; k < 4; k++) {
            const onx_infer_fixed fixed = { s.names[i], k == 1 ? s.natural[i] : sizes[k] };
            onx_status status = onx_infer_fix(e, onx_str_of(fixed.name), fixed.size);
            if (status != ONX_E_NOT_FOUND)
                compare(doc, e, status, &fixed, 1, strict, what);
        }
        onx_infer_free(e);
    }
    onx_infer_fixed all[SYMBOLS];
    onx_status status = onx_infer_new(cx, doc, &options, &e);
    for (uint32_t i = 0; i < s.count && status == ONX_OK; i++) {
        all[i] = (onx_infer_fixed){ s.names[i], s.natural[i] ? s.natural[i] : 2 };
        status = onx_infer_fix(e, onx_str_of(all[i].name), all[i].size);
        status = status == ONX_E_NOT_FOUND ? ONX_OK : status; /* a formula is no symbol, at once neither */
        compare(doc, e, status, all, i + 1, strict, what);
    }
    if (e)
        onx_infer_free(e);
    onx_diag_clear(cx);
}

/* ---- models of this project ---- */

static cases_buffer try_text(onx_str title, onx_str text)
{
    char what[128];
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    snprintf(what, sizeof what, "%.*s", ONX_ARG(title));
    for (int strict = 0; strict < 2; strict++)
        for (int make = 0; make < 2; make++)
            if (onx_text_parse(cx, ONX_KIND_MODEL, text, 0, &doc) == ONX_OK) {
                try_model(cx, doc, make, strict, what);
                onx_doc_free(doc);
            }
    onx_ctx_free(cx);
    return (cases_buffer){ .ptr = NULL };
}

static void test_infer_fix__says_what_a_fresh_inference_says(void **state)
{
    (void)state;
    const char *folder = ONX_SOURCE_DIR "/tests/cases/infer";
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        if (!strstr(entry->d_name, ".case"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        cases_buffer file = cases_read(path);
        for (char *at = strstr(file.ptr, "\n=== "); at;) {
            char *title = at + 5, *text = strchr(title, '\n') + 1, *end = strstr(text - 1, "\n---\n");
            (void)try_text(onx_str_make(title, (size_t)(text - 1 - title)), onx_str_make(text, (size_t)(end - text)));
            at = strstr(end, "\n=== ");
        }
        free(file.ptr);
    }
    closedir(dir);
    print_message("%u results compared, %u failures\n", (unsigned)compared, (unsigned)failed_both);
    assert_true(compared > 500);
}

/* ---- models of the shared data ---- */

static const char *data(void)
{
    const char *folder = getenv("ONX_CONFORMANCE_DIR");
    return folder ? folder : "../shared/conformance";
}

static bool try_folder(const char *kind)
{
    char folder[4096], path[8192];
    snprintf(folder, sizeof folder, "%s/%s/blobs", data(), kind);
    DIR *dir = opendir(folder);
    if (!dir)
        return false;
    onx_ctx *cx = onx_ctx_new(NULL);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        onx_doc *doc;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        for (int make = 0; make < 2; make++)
            if (onx_load(cx, ONX_KIND_MODEL, path, NULL, &doc) == ONX_OK) {
                if (onx_doc_model(doc))
                    try_model(cx, doc, make, false, path);
                onx_doc_free(doc);
            }
        onx_diag_clear(cx);
    }
    onx_ctx_free(cx);
    closedir(dir);
    return true;
}

static void test_infer_fix__shared_models(void **state)
{
    (void)state;
    compared = 0;
    if (!try_folder("infer") || !try_folder("infer_backend")) {
        print_message("skipped: no models at %s: set ONX_CONFORMANCE_DIR\n", data());
        skip();
    }
    (void)try_folder("infer_28"); /* which older data does not have */
    print_message("%u results compared\n", (unsigned)compared);
    assert_true(compared > 5000);
}

/* ---- what it costs ---- */

static onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc = NULL;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(cx, 0)->message));
    return doc;
}

static void test_infer_fix__visits_what_follows(void **state)
{
    (void)state;
    enum { LONG = 200000, SHORT = 40 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_infer *e;
    char in[16], out[16];
    assert_int_equal(onx_model_new(cx, "g", 18, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_graph *graph = onx_doc_model(doc)->graph;
    const int64_t dims[] = { 2, -1 };
    onx_type *type = onx_type_new_tensor(arena, ONX_FLOAT, dims, 2);
    onx_bytes n;
    assert_int_equal(onx_arena_keep(arena, onx_str_of("N"), &n), ONX_OK);
    ONX_SET(dimension, type->tensor_type->shape->dim[1], dim_param, n);
    assert_non_null(onx_graph_add_input(arena, graph, "b0", type));
    assert_non_null(onx_graph_add_input(arena, graph, "v0", onx_type_new_tensor(arena, ONX_FLOAT, dims, 1)));
    for (int i = 0; i < LONG; i++) {
        snprintf(in, sizeof in, "v%d", i);
        snprintf(out, sizeof out, "v%d", i + 1);
        assert_non_null(onx_graph_add_node(arena, graph, "Relu", in, out));
        if (i % (LONG / SHORT))
            continue;
        snprintf(in, sizeof in, "b%d", i / (LONG / SHORT));
        snprintf(out, sizeof out, "b%d", i / (LONG / SHORT) + 1);
        assert_non_null(onx_graph_add_node(arena, graph, "Transpose", in, out));
    }
    assert_non_null(onx_graph_add_node(arena, graph, "ReduceSum", "b40", "s")); /* a scalar: [1,1] for any N */
    assert_non_null(onx_graph_add_node(arena, graph, "Relu", "s", "after"));
    assert_int_equal(onx_infer_new(cx, doc, NULL, &e), ONX_OK);
    assert_true(e->visits > LONG);
    assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 7), ONX_OK);
    assert_int_equal(e->visits, SHORT + 1);
    assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 7), ONX_OK);
    assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 9), ONX_OK);
    assert_int_equal(e->visits, SHORT + 1);
    const onx_type *found = onx_infer_type(e, graph, onx_str_of("b39"));
    assert_int_equal(found->tensor_type->shape->dim[0]->dim_value, 9);
    assert_int_equal(onx_infer_fix(e, onx_str_of("M"), 7), ONX_E_NOT_FOUND);
    onx_infer_free(e);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- contradictions ---- */

static void test_infer_fix__reports_contradictions(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_infer *e;
    onx_doc *doc = parse(cx, "<ir_version: 10, opset_import: [\"\" : 18]>\n"
                             "g (float[N,5] x, float[M] m, float[4] c) => (y, float[2,30] z) {\n"
                             "  s = Constant <value_ints = [2, -1, 3]> ()\n"
                             "  y = Reshape (x, s)\n"
                             "  w = Add (m, c)\n"
                             "  z = Concat <axis = 1> (x2, x2)\n"
                             "}");
    assert_int_equal(onx_infer_new(cx, doc, NULL, &e), ONX_OK);
    const size_t before = onx_diag_total(cx, ONX_WARNING);
    assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 7), ONX_OK);
    assert_int_equal(onx_diag_total(cx, ONX_WARNING), before + 1);
    assert_int_equal(onx_infer_summarize(e).failed, 1);
    assert_int_equal(onx_infer_fix(e, onx_str_of("M"), 3), ONX_OK);
    assert_int_equal(onx_infer_summarize(e).failed, 2);
    assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 6), ONX_OK);
    assert_int_equal(onx_infer_summarize(e).failed, 1);
    onx_infer_free(e);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* A size that does not fit is an error in strict mode and leaves everything as it was. */
static void test_infer_fix__strict_takes_back(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    const onx_infer_options strict = { .strict = true };
    onx_infer *e;
    onx_doc *doc = parse(cx, "<ir_version: 10, opset_import: [\"\" : 18]>\n"
                             "g (float[N,5] x) => (y) {\n"
                             "  s = Constant <value_ints = [2, -1]> ()\n"
                             "  y = Reshape (x, s)\n"
                             "}");
    const onx_graph *graph = onx_doc_model(doc)->graph;
    assert_int_equal(onx_infer_new(cx, doc, &strict, &e), ONX_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 3), ONX_E_INVALID);
        assert_int_equal(onx_diag_total(cx, ONX_ERROR), (size_t)i + 1);
        const onx_type *type = onx_infer_type(e, graph, onx_str_of("x"));
        assert_true(onx_str_is(onx_view(type->tensor_type->shape->dim[0]->dim_param), "N"));
        type = onx_infer_type(e, graph, onx_str_of("y"));
        assert_true(onx_str_is(onx_view(type->tensor_type->shape->dim[1]->dim_param), "5*N/2"));
    }
    assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 4), ONX_OK);
    assert_int_equal(onx_infer_apply(e), ONX_OK);
    assert_int_equal(graph->output[0]->type->tensor_type->shape->dim[1]->dim_value, 10);
    assert_int_equal(graph->input[0]->type->tensor_type->shape->dim[0]->dim_value, 4);
    assert_int_equal(onx_infer_fix(e, onx_str_of("N"), 8), ONX_E_MISUSE); /* it stands in the model now */
    onx_infer_free(e);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* What is declared counts as well: of outputs, in subgraphs, of initializers, twice. */
static void test_infer_fix__declarations(void **state)
{
    (void)state;
    static const char *const models[] = {
        ("g (float[N] x, bool b) => (float[N] y) <float[N,M] a> { a = Expand (x, k) y = If (b) <then_branch = "
         "t () => (float[N] p) { p = Neg (x) }, else_branch = f () => (float[M] q) <float[N] q> { q = Relu (x) }> }"),
        "g (float[N] x, float[N,M] w) => (y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { y = MatMul (x, w) }",
        "g (float[N] x, int64[N] unused) => (float[M] y) <float[\"2*N\"] a> { a = Concat <axis = 0> (x, x) y = Neg (a) }",
        "g (float[N] x) => (y) { a = Neg (b) b = Neg (x) y = Neg (a) }",
        "g (float[N] x) => (y) { a = Neg (x) a = Concat <axis = 0> (a, x) y = Neg (a) }",
        "g (float[N] x) => (y) { a = Shape (x) b = Mul (a, a) c = ConstantOfShape (b) d = NonZero (c) y = Transpose (d) }",
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char text[1024], title[32];
        snprintf(text, sizeof text, "<ir_version: 10, opset_import: [\"\" : 18]>\n%s", models[i]);
        snprintf(title, sizeof title, "model %u", (unsigned)i);
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc_free(parse(cx, text));
        onx_ctx_free(cx);
        (void)try_text(onx_str_of(title), onx_str_of(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer_fix__says_what_a_fresh_inference_says),
        cmocka_unit_test(test_infer_fix__declarations),
        cmocka_unit_test(test_infer_fix__reports_contradictions),
        cmocka_unit_test(test_infer_fix__strict_takes_back),
        cmocka_unit_test(test_infer_fix__visits_what_follows),
        cmocka_unit_test(test_infer_fix__shared_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
