/* test_infer_coverage.c - every version of every operator for which the standard defines inference has a rule, and
 * occurs in a case of tests/cases/infer. Operators for accelerators need none: one rule reads all of their dims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/text.h>

#include "op/op.h"
#include "unit/cases.h"

#include <dirent.h>
#include <stdlib.h>

static void test_infer_coverage__rules(void **state)
{
    (void)state;
    size_t missing = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *row = onxi_operators[i].rows; row->name; row++)
            if (row->flags & ONXI_OP_INFERS && !row->infer) {
                print_message("%s-%d has no rule\n", row->name, (int)row->since);
                missing++;
            }
    assert_int_equal(missing, 0);
}

/* ---- rows that cases meet ---- */

enum { SEEN_MAX = 2048 };

typedef struct seen {
    const onxi_schema *rows[SEEN_MAX];
    size_t count;
    const onx_model *model;
} seen;

static onx_status meet(void *user, const onx_visit *at)
{
    seen *s = user;
    if (at->kind != ONX_KIND_NODE)
        return ONX_OK;
    const onx_node *node = at->message;
    for (uint32_t i = 0; i < s->model->opset_import_count; i++) {
        const onx_operator_set_id *set = s->model->opset_import[i];
        if (!onx_str_equal(onx_view(set->domain), onx_view(node->domain)))
            continue;
        const onxi_schema *row = onxi_schema_find(onx_view(node->domain), onx_view(node->op_type), set->version);
        assert_true(s->count < SEEN_MAX);
        bool known = row == NULL;
        for (size_t k = 0; k < s->count && !known; k++)
            known = s->rows[k] == row;
        if (!known)
            s->rows[s->count++] = row;
    }
    return ONX_OK;
}

static void read_cases(const char *path, seen *s)
{
    cases_buffer file = cases_read(path);
    for (const char *at = strstr(file.ptr, "\n=== "), *end; at; at = strstr(end, "\n=== ")) {
        const char *text = strchr(at + 1, '\n');
        end = text ? strstr(text, "\n---") : NULL;
        if (!end)
            break;
        onx_ctx *cx = onx_ctx_new(NULL);
        onx_doc *doc;
        if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(text, (size_t)(end - text)), 0, &doc) == ONX_OK) {
            s->model = onx_doc_model(doc);
            assert_int_equal(onx_message_walk(cx, ONX_KIND_MODEL, onx_doc_model(doc), meet, s), ONX_OK);
            onx_doc_free(doc);
        }
        onx_ctx_free(cx);
    }
    free(file.ptr);
}

static void test_infer_coverage__cases(void **state)
{
    (void)state;
    static seen s;
    const char *folder = ONX_SOURCE_DIR "/tests/cases/infer";
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".case") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_cases(path, &s);
    }
    closedir(dir);
    size_t missing = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *row = onxi_operators[i].rows; row->name; row++) {
            bool known = !(row->flags & ONXI_OP_INFERS) || onxi_operator_is((onxi_op_id)(i + 1), ONXI_TRAIT_DEVICE);
            for (size_t k = 0; k < s.count && !known; k++)
                known = s.rows[k] == row;
            if (!known) {
                print_message("%s-%d occurs in no case\n", row->name, (int)row->since);
                missing++;
            }
        }
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer_coverage__rules),
        cmocka_unit_test(test_infer_coverage__cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
