/* cmd_test.c - `onx test`: runs test cases in the layout of the ONNX backend tests. */
#include "cli_attribute.h"
#include "cli_files.h"
#include "cli_inputs.h"
#include "cli_ranks.h"
#include "cli_test.h"

#include <onx/op.h>

#include <dirent.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct tolerance {
    double relative, absolute;
} tolerance;

typedef struct tally {
    test_report report;
    tolerance bounds;
    onx_session_options options;
    onx_run_options limits;
} tally;

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* ---- which results can be compared element by element ---- */

static const onx_tensor *initializer(const onx_graph *g, onx_str name)
{
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (onx_str_equal(onx_view(g->initializer[i]->name), name))
            return g->initializer[i];
    return NULL;
}

/* The scalar that a node reads: from the inputs of the test, or an initializer; otherwise it is not known. */
static bool scalar_of(onx_doc *doc, onx_value *const *inputs, const onx_node *node, uint32_t index, double *out)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    if (index >= node->input_count)
        return false;
    onx_str name = onx_view(node->input[index]);
    for (uint32_t i = 0; i < g->input_count; i++)
        if (inputs[i] && onx_str_equal(onx_view(g->input[i]->name), name) && inputs[i]->kind == ONX_VALUE_TENSOR &&
            inputs[i]->count == 1)
            return onx_convert(ONX_DOUBLE, out, (onx_dtype)inputs[i]->dtype, inputs[i]->data, 1, true) == ONX_OK;
    const onx_tensor *t = initializer(g, name);
    return t && onx_tensor_get_f64(doc, t, 0, 1, out) == ONX_OK;
}

/* Results are random for Dropout in training mode without a seed, and for operators that draw random numbers. (ONNX
 * marks more operators as nondeterministic: all with subgraphs, and AffineGrid.) With a seed, Dropout draws the same
 * numbers as the reference implementation, so its results are compared. */
static bool is_random(onx_doc *doc, onx_value *const *inputs, const onx_node *node, int64_t opset)
{
    const onx_op *op = onx_op_find(onx_view(node->domain), onx_view(node->op_type), opset);
    if (!op)
        return false;
    if (onx_op_flags(op) & ONX_OP_NONDETERMINISTIC && strcmp(onx_op_family(op), "generator") == 0)
        return true;
    if (!cli_node_is(node, "Dropout") || onx_node_attribute(node, "seed"))
        return false;
    if (opset < 12)
        return opset < 7 && !cli_attribute_int(op, node, "is_test");
    double training = 0, ratio = 0.5;
    if (node->input_count < 3 || !onx_view(node->input[2]).len)
        return false;
    if (!scalar_of(doc, inputs, node, 2, &training))
        return true;
    if (node->input_count > 1 && onx_view(node->input[1]).len && !scalar_of(doc, inputs, node, 1, &ratio))
        return true;
    return training != 0 && ratio != 0;
}

/* Nodes, with the operator sets that define their meaning. */
typedef struct node_list {
    onx_node *const *nodes;
    uint32_t count;
    onx_operator_set_id *const *imports;
    uint32_t import_count;
} node_list;

static bool any_random(onx_doc *doc, onx_value *const *inputs, node_list list)
{
    for (uint32_t i = 0; i < list.count; i++) {
        const onx_node *node = list.nodes[i];
        for (uint32_t k = 0; k < list.import_count; k++) {
            onx_str a = onx_view(list.imports[k]->domain), b = onx_view(node->domain);
            if (onx_str_equal(a, b) || (!b.len && onx_str_is(a, "ai.onnx")))
                if (is_random(doc, inputs, node, list.imports[k]->version))
                    return true;
        }
        for (uint32_t k = 0, n; k < node->attribute_count; k++) {
            onx_graph *const *body = onx_attribute_value(node->attribute[k], ONX_SLOT_G, &n);
            node_list inner = list;
            if (!body || !*body)
                continue;
            inner.nodes = (*body)->node;
            inner.count = (*body)->node_count;
            if (any_random(doc, inputs, inner)) /* recursion is bounded: the session has checked the nesting depth */
                return true;
        }
    }
    return false;
}

static bool has_random(onx_doc *doc, onx_value *const *inputs)
{
    const onx_model *m = onx_doc_model(doc);
    node_list list = { m->graph->node, m->graph->node_count, m->opset_import, m->opset_import_count };
    bool found = any_random(doc, inputs, list);
    for (uint32_t i = 0; i < m->functions_count && !found; i++) {
        const onx_function *f = m->functions[i];
        found = any_random(doc, inputs, (node_list){ f->node, f->node_count, f->opset_import, f->opset_import_count });
    }
    return found;
}

/* The file data.json beside the model may contain "rtol" and "atol". */
static tolerance bounds_of(const cli_call *call, const char *dir, tolerance bounds)
{
    char *path = cli_join(call, dir, "data.json");
    FILE *f = path ? fopen(path, "rb") : NULL;
    free(path);
    if (!f)
        return bounds;
    char text[4096];
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    const char *at;
    if ((at = strstr(text, "\"rtol\"")) && (at = strchr(at, ':')))
        bounds.relative = strtod(at + 1, NULL);
    if ((at = strstr(text, "\"atol\"")) && (at = strchr(at, ':')))
        bounds.absolute = strtod(at + 1, NULL);
    return bounds;
}

/* ---- one data set ---- */

static bool load_set(test_report *report, const onx_session *s, const char *dir, bool outputs, onx_value **values,
                     uint32_t *count)
{
    cli_fault fault;
    const bool good = cli_data_set(report->call, s, dir, outputs, values, count, &fault) == ONX_OK;
    if (!good)
        test_case_say(report, fault.path ? fault.path : dir, "%s", fault.text);
    free(fault.path);
    return good;
}

/* For a model that is a single Dropout: whichever elements were dropped, each output element is 0 or the scaled
 * input. */
static bool plausible_dropout(onx_doc *doc, onx_value *const *inputs, onx_value *got, onx_value *want, uint32_t output,
                              tolerance bounds, onx_value_difference *d)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    double ratio = 0.5;
    if (g->node_count != 1 || !cli_node_is(g->node[0], "Dropout") || output != 0 || !inputs[0] ||
        inputs[0]->count != want->count || want->dtype != ONX_FLOAT || inputs[0]->dtype != ONX_FLOAT)
        return true;
    scalar_of(doc, inputs, g->node[0], 1, &ratio);
    for (uint64_t i = 0; i < want->count; i++) {
        double kept = (double)((const float *)inputs[0]->data)[i] / (1 - ratio),
               room = bounds.absolute + bounds.relative * (kept < 0 ? -kept : kept);
        const double sides[] = { (double)((const float *)got->data)[i], (double)((const float *)want->data)[i] };
        for (int k = 0; k < 2; k++)
            if (sides[k] != 0 && !(sides[k] - kept <= room && kept - sides[k] <= room)) {
                *d = (onx_value_difference){
                    .what = "element", .index = i, .different = 1, .got = sides[0], .want = sides[1]
                };
                snprintf(d->text, sizeof d->text, "got %.9g, want %.9g, neither dropped nor kept", sides[0], sides[1]);
                return false;
            }
    }
    return true;
}

/* As the test runner of ONNX does, elements of bfloat16 agree within twice the distance of neighbors (2^-7). */
static double relative_of(const onx_value *want, double relative)
{
    while (want && want->kind != ONX_VALUE_TENSOR && want->count)
        want = want->items[0];
    return want && want->kind == ONX_VALUE_TENSOR && want->dtype == ONX_BFLOAT16 ? fmax(relative, 0x1p-6) : relative;
}

/* Returns the number of outputs that were compared, -1 after a failure. */
static int compare(test_report *report, onx_doc *doc, onx_session *s, const char *dir, onx_value *const *in,
                   onx_value **got, onx_value **want, uint32_t count, bool by_value, tolerance bounds)
{
    int compared = 0;
    for (uint32_t i = 0; i < count; i++) {
        onx_value_difference d = { 0 };
        const double relative = relative_of(want[i], bounds.relative);
        bool same = by_value ? onx_value_close(got[i], want[i], relative, bounds.absolute, &d)
                             : onx_value_same_type(got[i], want[i], &d);
        if (!same && got[i] && got[i]->kind != ONX_VALUE_OPTIONAL && want[i] && want[i]->kind == ONX_VALUE_OPTIONAL &&
            want[i]->count) /* an optional is compared by the value that it contains */
            same = by_value ? onx_value_close(got[i], want[i]->items[0], relative, bounds.absolute, &d)
                            : onx_value_same_type(got[i], want[i]->items[0], &d);
        if (same && !by_value)
            same = plausible_dropout(doc, in, got[i], want[i], i, bounds, &d);
        if (!same) {
            onx_str name = onx_session_output(s, i).name;
            if (d.different)
                test_case_say(report, dir, "output %u \"%.*s\" differs at element %llu (%llu differ): %s", i,
                              ONX_ARG(name), (unsigned long long)d.index, (unsigned long long)d.different, d.text);
            else
                test_case_say(report, dir, "output %u \"%.*s\" differs in %s: %s", i, ONX_ARG(name), d.what, d.text);
            return -1;
        }
        compared++;
    }
    return compared;
}

static void free_all(onx_value **values, uint32_t count)
{
    for (uint32_t i = 0; values && i < count; i++)
        onx_value_free(values[i]);
    free(values);
}

static bool run_set(test_report *report, onx_doc *doc, onx_session *s, const char *dir, tolerance bounds,
                    const onx_run_options *limits)
{
    uint32_t ni = onx_session_input_count(s), no = onx_session_output_count(s), given = 0, expected = 0;
    onx_value **in = calloc(ni + 1u, sizeof *in), **got = calloc(no + 1u, sizeof *got),
              **want = calloc(no + 1u, sizeof *want);
    bool good = in && got && want;
    if (!good)
        test_case_say(report, dir, "out of memory");
    good = good && load_set(report, s, dir, false, in, &given) && load_set(report, s, dir, true, want, &expected);
    if (good && !expected) {
        test_case_say(report, dir, "no expected output is there");
        good = false;
    }
    if (good && onx_session_run_with(s, report->call->cx, (const onx_value *const *)in, got, limits) != ONX_OK) {
        test_case_say(report, dir, "the run failed");
        good = false;
    }
    if (good)
        good = compare(report, doc, s, dir, in, got, want, expected, !has_random(doc, in), bounds) > 0;
    free_all(in, ni);
    free_all(got, no);
    free_all(want, no);
    return good;
}

/* ---- one case ---- */

static int is_set(const struct dirent *entry)
{
    return strncmp(entry->d_name, "test_data_set_", 14) == 0;
}

static test_outcome run_sets(test_report *report, onx_doc *doc, onx_session *s, const char *dir, tolerance bounds,
                             const onx_run_options *limits)
{
    struct dirent **list = NULL;
    int n = scandir(dir, &list, is_set, alphasort);
    test_outcome outcome = n > 0 ? TEST_PASSED : TEST_SKIPPED;
    if (n <= 0)
        test_case_say(report, dir, "the folder contains no test_data_set_*");
    for (int i = 0; i < n; i++) {
        char *set = cli_join(report->call, dir, list[i]->d_name);
        if (!set || !run_set(report, doc, s, set, bounds, limits))
            outcome = TEST_FAILED;
        free(set);
        free(list[i]);
    }
    free(list);
    return outcome;
}

static void run_case(tally *t, const char *dir)
{
    test_report *report = &t->report;
    cli_call *call = report->call;
    char *path = cli_join(call, dir, "model.onnx");
    onx_doc *doc = NULL;
    onx_session *s = NULL;
    test_outcome outcome = TEST_FAILED;
    test_case_begin(report);
    if (!path || cli_load_as(call, path, ONX_KIND_MODEL, ONX_FORMAT_BINARY, &doc) != ONX_OK)
        test_case_say(report, dir, "the model cannot be read");
    else if (cli_session_new(call, doc, &t->options, &s) != ONX_OK)
        test_case_say(report, dir, "the model cannot be planned");
    else
        outcome = run_sets(report, doc, s, dir, bounds_of(call, dir, t->bounds), &t->limits);
    onx_session_free(s);
    onx_doc_free(doc);
    free(path);
    call->input = NULL;
    test_case_end(report, dir, outcome);
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Runs a case, or a folder of cases, which may be nested. */
static unsigned run_folder(tally *t, const char *dir, unsigned depth)
{
    cli_call *call = t->report.call;
    char *model = cli_join(call, dir, "model.onnx");
    bool is_case = model && exists(model);
    free(model);
    if (is_case) {
        run_case(t, dir);
        return 1;
    }
    struct dirent **list = NULL;
    int n = depth < 4 ? scandir(dir, &list, not_hidden, alphasort) : 0;
    unsigned cases = 0;
    for (int i = 0; i < n; i++) {
        char *sub = cli_join(call, dir, list[i]->d_name);
        if (sub && cli_is_folder(sub) && !is_set(list[i]))
            cases += run_folder(t, sub, depth + 1);
        free(sub);
        free(list[i]);
    }
    free(list);
    return cases;
}

/* An operand without any case is a usage error: the user expects tests to run. */
static int no_case(const cli_call *call, const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return cli_error(call, "%s: %s", dir, errno == ENOENT ? "there is no such folder" : strerror(errno));
    closedir(d);
    int status = cli_error(call, "%s: the folder contains no test case", dir);
    cli_hint("a case is a folder with model.onnx and test_data_set_0");
    return status;
}

static int run_test(cli_call *call)
{
    tally t = { .report = { .call = call }, .bounds = { 1e-3, 1e-7 } };
    uint64_t threads = 1;
    int misuse = CLI_OK;
    if (!cli_run_options(call, &threads, &t.options, &t.limits) ||
        !cli_real(call, "rtol", 0, DBL_MAX, &t.bounds.relative) ||
        !cli_real(call, "atol", 0, DBL_MAX, &t.bounds.absolute))
        return CLI_MISUSE;
    if (call->ranks && cli_has(call, "junit"))
        return cli_error(call, "--junit and --configuration exclude each other");
    if (cli_has(call, "junit")) {
        onx_status claimed = onx_output_claim(call->cx, cli_value(call, "junit"), false);
        if (claimed != ONX_OK)
            return cli_exit(call, claimed);
    }
    for (int i = 0; i < call->operand_count; i++)
        if (!run_folder(&t, call->operand[i], 0))
            misuse = no_case(call, call->operand[i]);
    int status = test_report_end(&t.report);
    return misuse > status ? misuse : status;
}

static const cli_option options[] = {
    { "threads", 0, "N", NULL, "threads to use (1); 0: one per processor" },
    CLI_OPTIONS_SESSION,
    CLI_OPTIONS_RANKS,
    { "rtol", 0, "R", NULL, "relative tolerance of floats (0.001)" },
    { "atol", 0, "A", NULL, "absolute tolerance of floats (1e-7)" },
    { "verbose", 'v', NULL, NULL, "also list the cases that pass" },
    CLI_OPTION_JSON,
    { "junit", 0, "FILE", NULL, "write the outcomes as JUnit XML, which CI systems read" },
    CLI_END,
};

const cli_command cmd_test = {
    .name = "test",
    .summary = "run test cases in the layout of the ONNX backend tests",
    .operands = "DIR...",
    .help =
        "A test case is a folder with model.onnx and test_data_set_N/input_I.pb, output_I.pb. Other folders\n"
        "are searched for cases; a case without data is skipped. Floats agree within rtol 1e-3 (bfloat16: 2^-6) and atol 1e-7\n"
        "(a data.json beside the model may set other values); everything else must be equal. Of random\n"
        "results only type and shape are compared. ONX_KERNELS=plain turns the fast kernels off.\n"
        "ONX_ISA=base, v3, v4, vnni or bf16 selects the kernels of an older instruction set.\n",
    .example = "onx test backend/node/test_conv_with_strides_padding\n"
               "onx test --junit outcomes.xml backend/node\n",
    .options = options,
    .run = run_test,
};
