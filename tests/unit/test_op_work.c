/* The costs of nodes (onx_op_work) for all operators: texts follow onx/op.h and refer to ports and attributes that the
 * operator has in some version. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <onx/op.h>

static const onx_op *version; /* the newest one */

static bool has_attribute(const char *name)
{
    for (const onx_op *op = version; op; op = onx_op_older(op))
        for (uint32_t i = 0; onx_op_attribute_at(op, i); i++)
            if (strcmp(onx_op_attribute_at(op, i)->name, name) == 0)
                return true;
    return false;
}

static bool has_port(bool input, uint32_t at)
{
    for (const onx_op *op = version; op; op = onx_op_older(op))
        if (at < (input ? onx_op_max_input(op) : onx_op_max_output(op)))
            return true;
    return false;
}

/* An index, or a choice of two by an attribute, each of which may be one again; *text is moved past it. */
static bool is_index(const char **text)
{
    char name[64];
    int at, end = 0;
    if (sscanf(*text, "%63[a-zA-Z_]?%n", name, &end) == 1 && end) {
        *text += end;
        return has_attribute(name) && is_index(text) && *(*text)++ == ':' && is_index(text);
    }
    const bool is_number = sscanf(*text, "%d%n", &at, &end) == 1;
    *text += end;
    return is_number;
}

static bool is_inside(const char *text) /* of brackets */
{
    int at, end = 0;
    if (sscanf(text, "%d:%n", &at, &end) == 1 && end && !text[end])
        return at >= 0;
    return is_index(&text) && !*text;
}

static bool is_factor(char *text)
{
    char *inside = strchr(text, '[');
    if (inside) {
        const size_t len = strlen(inside);
        if (inside[len - 1] != ']')
            return false;
        inside[len - 1] = 0;
        if (!is_inside(inside + 1))
            return false;
        *inside = 0;
    }
    unsigned at;
    int end = 0;
    if (sscanf(text, "in%u%n", &at, &end) == 1 && !text[end])
        return has_port(true, at);
    if (sscanf(text, "out%u%n", &at, &end) == 1 && !text[end])
        return has_port(false, at);
    if (inside)
        return false;
    if (isdigit((unsigned char)*text))
        return text[strspn(text, "0123456789")] == 0;
    return has_attribute(strcmp(text, "letters") == 0 ? "equation" : text);
}

static void test_op_work__says_it_in_known_words(void **state_)
{
    (void)state_;
    unsigned counted = 0;
    for (uint32_t i = 0; i < onx_op_count(); i++) {
        const onx_op *op = onx_op_get(i);
        version = onx_op_newest(onx_str_of(onx_op_domain(op)), onx_str_of(onx_op_name(op)));
        const char *work = onx_op_work(op);
        char copy[256], *state = NULL;
        if (!work)
            continue;
        counted++;
        assert_true(strlen(work) < sizeof copy);
        snprintf(copy, sizeof copy, "%s", work);
        bool more = false; /* a + is between products */
        for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
            const bool plus = strcmp(word, "+") == 0;
            if (plus ? !more : !is_factor(word))
                fail_msg("%s of %s: %s", word, onx_op_name(op), work);
            more = !plus;
        }
        assert_true(!*work || more);
    }
    assert_true(counted > onx_op_count() / 2);
    assert_null(onx_op_work(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_work__says_it_in_known_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
