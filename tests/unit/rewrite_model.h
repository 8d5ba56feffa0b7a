/* rewrite_model.h - a model made from the pattern of a rule of rewrite_rules.def. */
#ifndef REWRITE_MODEL_H
#define REWRITE_MODEL_H

#include "rewrite/rewrite.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Inputs of attention beside the first three. */
enum { MASK = 3, KEEP, HIDE, MORE, SHAPE, BACK };

/* Inputs of patterns that are constants, of which the dims are the value: -1 ends them. ALL, END and BEFORE stand for
 * numbers that would end them. */
enum { ALL = 9001, END = 9002, BEFORE = 9003 };
static bool is_list(const char *name, int len)
{
    static const char *const lists[] = { "shape",   "back",    "apart",  "together", "lo_from", "lo_to",  "lo_axis",
                                         "lo_step", "hi_from", "hi_to",  "hi_axis",  "hi_step", "u_axis", "v_axis",
                                         "c_axis",  "s_axis",  "f_from", "f_to",     "f_axis",  "f_step", "tail" };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if ((int)strlen(lists[i]) == len && memcmp(lists[i], name, (size_t)len) == 0)
            return true;
    return false;
}

/* Names between ( and ) behind `at`, one after the other. */
static const char *next_name(const char *at, const char *end, int *length)
{
    at += strspn(at, " ,");
    *length = (int)strcspn(at, " ,)>");
    return at < end && *length ? at : NULL;
}

/* The number that is multiplied or divided by; NULL: one that suits the pattern. */
static const char *scale;

/* How many dims the operands of products have that are written as Einsum; 0: there are none. */
static unsigned einsum_rank(const onxi_rewrite_row *rule)
{
    const char *at = strstr(rule->pattern, "equation = \"");
    return at ? (unsigned)strcspn(at + strlen("equation = \""), ",") : 0;
}

/* A number of InstanceNormalization as a list of one for each of two groups. */
static void spread(char *body, const char *number, const char *list)
{
    char *at = strstr(body, "InstanceNormalization") ? strstr(body, number) : NULL;
    if (at) {
        memmove(at + strlen(list), at + strlen(number), strlen(at + strlen(number)) + 1);
        memcpy(at, list, strlen(list));
    }
}

/* Operands are inputs of the model, whatever their conditions are. Otherwise a Max keeps masks above -inf where they
 * have to be, and numbers are constants where they have to be. */
static bool operands_are_free;

static bool is_number_of(const onxi_rewrite_row *rule, const char *name, int len)
{
    char text[48];
    snprintf(text, sizeof text, "number %.*s", len, name);
    return strstr(rule->where, text) != NULL;
}

/* A constant number of such dims, which is -1.25 or 1.5. */
static void add_number(char *constants, size_t size, const char *element, const char *name, int len,
                       const int64_t *dims)
{
    const char *separator = *constants ? ", " : "";
    size_t n = strlen(constants);
    int64_t count = 1;
    n += (size_t)snprintf(constants + n, size - n, "%s%s", separator, element);
    for (uint32_t i = 0; dims[i] >= 0; i++) {
        n += (size_t)snprintf(constants + n, size - n, "%s%lld%s", i ? "," : "[", (long long)dims[i],
                              dims[i + 1] < 0 ? "]" : "");
        count *= dims[i];
    }
    n += (size_t)snprintf(constants + n, size - n, " %.*s = {", len, name);
    for (int64_t i = 0; i < count; i++)
        n += (size_t)snprintf(constants + n, size - n, "%s%s", i ? "," : "", *name == 'l' ? "-1.25" : "1.5");
    assert_true(n + 2 < size);
    strcat(constants, "}");
}

/* A model that calls the pattern as a function, which the runner inlines. Optional nodes of which the bit is not set
 * hand on what they would change. */
static void model_of(const onxi_rewrite_row *rule, int opset, const char *element, const char *axis,
                     const int64_t (*dims)[8], uint32_t optional, char *text, size_t size)
{
    static char body[4096];
    char ports[256] = "", call[256] = "", attributes[512] = "", constants[1024] = "";
    const bool attention = strstr(rule->pattern, "(q, k") != NULL;
    const char *list = strchr(rule->pattern, '('), *close = strchr(list, ')');
    uint32_t inputs = 0;
    int len;
    for (const char *at = list + 1; (at = next_name(at, close, &len)); at += len) {
        size_t used = strlen(ports), called = strlen(call);
        char list_of[64] = "";
        snprintf(call + called, sizeof call - called, "%s%.*s", inputs ? ", " : "", len, at);
        if (is_list(at, len)) {
            uint32_t rank = 0;
            for (uint32_t i = 0; dims[inputs][i] >= 0; i++, rank++) {
                used = strlen(list_of);
                const int64_t n = dims[inputs][i];
                snprintf(list_of + used, sizeof list_of - used, "%s%lld", i ? ", " : "",
                         (long long)(n == ALL      ? -1
                                     : n == BEFORE ? -2
                                     : n == END    ? INT64_MAX
                                                   : n));
            }
            used = strlen(constants);
            snprintf(constants + used, sizeof constants - used, "%sint64[%u] %.*s = {%s}", used ? ", " : "",
                     (unsigned)rank, len, at, list_of);
        } else if (!operands_are_free && is_number_of(rule, at, len)) {
            add_number(constants, sizeof constants, element, at, len, dims[inputs]);
        } else {
            const char *type = attention && (inputs == KEEP || inputs == HIDE) ? "bool" : element;
            snprintf(ports + used, sizeof ports - used, "%s%s[] %.*s", used ? ", " : "", type, len, at);
        }
        inputs++;
    }
    const char *open = strchr(strchr(rule->pattern, 'P'), '<');
    for (const char *at = open && open < list ? open + 1 : list; (at = next_name(at, list, &len)); at += len) {
        const char *value = !strncmp(at, "axes", 4)         ? NULL
                            : !strncmp(at, "axis", 4)       ? axis
                            : !strncmp(at, "epsilon", 7)    ? "0.001"
                            : !strncmp(at, "alpha", 5)      ? "1.702"
                            : !strncmp(at, "to", 2)         ? "[0, 2, -1]"
                            : !strncmp(at, "perm", 4)       ? "[0, 2, 1, 3]"
                            : !strncmp(at, "scale", 5)      ? (scale                            ? scale
                                                               : strstr(rule->pattern, "Div (") ? "4.5"
                                                                                                : "0.375")
                            : strstr(at, "_perm") == at + 1 ? (einsum_rank(rule) == 3   ? "[1, 0, 2]"
                                                               : einsum_rank(rule) == 5 ? "[0, 1, 3, 2, 4]"
                                                                                        : "[0, 2, 1, 3]")
                                                            : "-100.0";
        size_t used = strlen(attributes);
        snprintf(attributes + used, sizeof attributes - used, "%s%.*s = %s%s%s", used ? ", " : "<", len, at,
                 value ? "" : "[", value ? value : axis, value ? "" : "]");
    }
    if (*attributes)
        strcat(attributes, ">");
    assert_true(strlen(rule->pattern) < sizeof body);
    strcpy(body, rule->pattern);
    spread(body, "one = Constant <value_float = 1.0>", "one = Constant <value_floats = [1.0, 1.0]>");
    spread(body, "zero = Constant <value_float = 0.0>", "zero = Constant <value_floats = [0.0, 0.0]>");
    for (char *at = body; (at = strstr(at, "[shared]")); at++)
        memset(at, ' ', strlen("[shared]"));
    for (char *at = body; (at = strstr(at, "[optional]")); at++, optional >>= 1) {
        memset(at, ' ', strlen("[optional]"));
        if (!(optional & 1)) { /* x = Op <..> (a, b) becomes x = Identity (a); of Where, the one that is made */
            char *op = strchr(at, '=') + 2, *arguments = strchr(op, '('), *end = strchr(arguments, ')'), made[32];
            const char *from = arguments + 1;
            if (strncmp(op, "Where (keep", 11) == 0)
                from = next_name(from + 4, end, &len);
            else if (strncmp(op, "Where (hide", 11) == 0)
                from = next_name(from + 7, end, &len);
            from = next_name(from, end, &len);
            snprintf(made, sizeof made, "Identity (%.*s", len, from);
            assert_true(strlen(body) + sizeof made < sizeof body);
            memmove(op + strlen(made), end, strlen(end) + 1);
            memcpy(op, made, strlen(made));
        }
    }
    const char *before = "";
    if (strstr(rule->where, "bounded mask") && !operands_are_free) {
        char *at = strstr(call, "mask");
        before = "least = Constant <value_float = -1000.0> ()  high = Max (mask, least)  ";
        memcpy(at, "high", 4);
    }
    const int written = snprintf(
        text, size,
        "<ir_version: 10, opset_import: [\"\" : %d, \"onx\" : 1]>\ng (%s) => (%s[] y) %s%s%s { %sy = onx.P %s (%s) }\n%s",
        opset, ports, element, *constants ? "<" : "", constants, *constants ? ">" : "", before, attributes, call, body);
    assert_true(written > 0 && (size_t)written < size);
}

/* How many optional nodes there are. */
static uint32_t optional_nodes(const onxi_rewrite_row *rule)
{
    uint32_t count = 0;
    for (const char *at = rule->pattern; (at = strstr(at, "[optional]")); at++)
        count++;
    return count;
}

#endif
