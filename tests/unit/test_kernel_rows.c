/* test_kernel_rows.c - all kernel rows: their operators, versions and operands agree with the schemas, and the
 * attributes that kernels read by name are attributes of operators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* Does a row say what the operator gives, which no schema does? Another row of it need not. */
static bool is_of_rules(const onx_kernel *row)
{
    if (!row->domain || strcmp(row->domain, "onx") != 0 || !row->run)
        return false;
    if (strcmp(row->op, "Reorder") == 0) /* which plans add */
        return true;
    for (const onx_kernel *const *table = onxi_kernel_tables; *table; table++)
        for (const onx_kernel *k = *table; k->op; k++)
            if (k->types && k->domain && strcmp(k->domain, "onx") == 0 && strcmp(k->op, row->op) == 0 &&
                k->isa == row->isa)
                return true;
    return false;
}

static void test_kernel_rows__are_of_operators(void **state)
{
    (void)state;
    unsigned rows = 0;
    for (const onx_kernel *const *table = onxi_kernel_tables; *table; table++)
        for (const onx_kernel *k = *table; k->op; k++, rows++) {
            const onx_str domain = onx_str_of(k->domain ? k->domain : ""), name = onx_str_of(k->op);
            if (is_of_rules(k)) /* of no operator */
                continue;
            const onxi_schema *schema = onxi_schema_find(domain, name, k->since);
            if (!schema) /* a row may serve from version 1 on what came later */
                schema = onxi_schema_newest(domain, name);
            if (!schema)
                fail_msg("no operator %s is known", k->op);
            if (k->since > onxi_schema_newest(domain, name)->since)
                fail_msg("%s has no version %d", k->op, (int)k->since);
            if (k->since < 1 || !k->run)
                fail_msg("the row of %s-%d is not complete", k->op, (int)k->since);
            const uint16_t places = k->dtype_from >= 0 ? schema->max_input : schema->max_output;
            const int place = k->dtype_from >= 0 ? k->dtype_from : -1 - k->dtype_from;
            if (k->dtypes && place >= places)
                fail_msg("%s-%d is chosen by an operand that it does not have", k->op, (int)k->since);
            if (k->bind && !k->unbind)
                fail_msg("%s-%d keeps things for a run and never frees them", k->op, (int)k->since);
        }
    assert_true(rows > 300);
}

/* Two rows that are equal in all that the choice between them looks at: the later one would never be asked. */
static void test_kernel_rows__differ(void **state)
{
    (void)state;
    for (const onx_kernel *const *ta = onxi_kernel_tables; *ta; ta++)
        for (const onx_kernel *a = *ta; a->op; a++)
            for (const onx_kernel *b = a + 1; b->op; b++)
                if (strcmp(a->op, b->op) == 0 && a->since == b->since && a->preference == b->preference &&
                    a->isa == b->isa && a->dtypes == b->dtypes && a->dtype_from == b->dtype_from && !a->prepare)
                    fail_msg("%s-%d is there twice", a->op, (int)a->since);
}

/* ---- names of attributes ---- */

static bool is_attribute(const char *name, size_t len)
{
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *row = onxi_operators[i].rows; row->name; row++)
            if (onxi_schema_attr(row, onx_str_make(name, len)))
                return true;
    return false;
}

/* Every "name" that a reader of attributes is called with in the text. Returns how many there are. */
static unsigned look_through(const char *path, const char *text)
{
    static const char *const readers[] = { "onx_prepare_given(",  "onx_prepare_int(",     "onx_prepare_is_set(",
                                           "onx_prepare_float(",  "onx_prepare_text(",    "onx_prepare_ints(",
                                           "onx_prepare_floats(", "onx_prepare_strings(", "onx_prepare_tensor(",
                                           "onx_prepare_graph(",  "onxi_attrs_get(",      "onxi_attrs_find(" };
    unsigned found = 0;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        for (const char *at = text; (at = strstr(at, readers[i]));) {
            at += strlen(readers[i]);
            const char *quote = at + strcspn(at, "\";{"); /* of the same call */
            if (*quote != '"')
                continue;
            const size_t len = strcspn(quote + 1, "\"");
            if (!is_attribute(quote + 1, len))
                fail_msg("%s reads attribute %.*s, which no operator has", path, (int)len, quote + 1);
            found++;
        }
    return found;
}

static unsigned look_through_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const long size = ftell(f);
    rewind(f);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, f), (size_t)size);
    text[size] = 0;
    fclose(f);
    const unsigned found = look_through(path, text);
    free(text);
    return found;
}

/* Is it the folder of a domain that this build does without? */
static bool is_left_out(const char *name)
{
    static const char *const names[] = {
#include "left_out.inc"
        NULL
    };
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static unsigned look_through_folder(const char *path, unsigned depth)
{
    unsigned found = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char below[4096];
        const size_t len = strlen(e->d_name);
        if (e->d_name[0] == '.')
            continue;
        assert_true(snprintf(below, sizeof below, "%s/%s", path, e->d_name) < (int)sizeof below);
        if (len > 2 && strcmp(e->d_name + len - 2, ".c") == 0)
            found += look_through_file(below);
        else if (!strchr(e->d_name, '.') && depth && !is_left_out(e->d_name))
            found += look_through_folder(below, depth - 1);
    }
    closedir(dir);
    return found;
}

/* A name that the node's operator does not have, though another one does, fails the node, and the generated tests run
 * every version of every operator. */
static void test_kernel_rows__read_attributes_that_exist(void **state)
{
    (void)state;
    assert_true(look_through_folder(ONX_SOURCE_DIR "/src/kernel", 2) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_rows__are_of_operators),
        cmocka_unit_test(test_kernel_rows__differ),
        cmocka_unit_test(test_kernel_rows__read_attributes_that_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
