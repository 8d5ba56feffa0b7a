/* run_types.h - cases of operators for several element types: "--- T = floats int32; U = int32 int64" lists the types
 * that T and U stand for in the model and its outputs; the case runs for all of them. The numbers are written once and
 * must be exact in every type; $T is the number of the type. V stands for versions of the operator set; types that a
 * version does not support are skipped (run_coverage.h checks that none is forgotten). Include after cmocka.h. */
#ifndef TESTS_RUN_TYPES_H
#define TESTS_RUN_TYPES_H

#include "unit/run_values.h"

enum { RUN_VARIABLES = 4 };

typedef struct run_variable {
    char name; /* one capital letter */
    uint32_t types[32], count;
    uint32_t at; /* the one that it stands for now */
} run_variable;

typedef struct run_types {
    run_variable variables[RUN_VARIABLES];
    uint32_t count;
} run_types;

/* Names for lists of types. */
static const struct {
    const char *name, *types;
} run_type_sets[] = {
    { "floats", "float double float16 bfloat16" },
    { "signed", "int8 int16 int32 int64" },
    { "unsigned", "uint8 uint16 uint32 uint64" },
    { "float8", "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz" },
};

static inline void run_add_types(run_variable *v, onx_str word)
{
    for (size_t i = 0; i < sizeof run_type_sets / sizeof *run_type_sets; i++)
        if (onx_str_is(word, run_type_sets[i].name)) {
            onx_str rest = onx_str_of(run_type_sets[i].types);
            while (rest.len)
                run_add_types(v, run_take_token(&rest));
            return;
        }
    onx_dtype dtype = onx_dtype_find(word);
    if (v->name == 'V')
        dtype = (onx_dtype)strtol(word.ptr, NULL, 10);
    if (dtype == ONX_UNDEFINED || v->count >= sizeof v->types / sizeof *v->types)
        fail_msg("\"%.*s\" is no type", ONX_ARG(word));
    v->types[v->count++] = (uint32_t)dtype;
}

/* "T = float double; U = int64; within 4 ulps or 1e-7" */
static inline void run_read_options(onx_str options, run_types *types, run_tolerance *tolerance)
{
    memset(types, 0, sizeof *types);
    memset(tolerance, 0, sizeof *tolerance);
    char copy[512], *save = NULL, *end;
    assert_true(options.len < sizeof copy);
    memcpy(copy, options.ptr, options.len);
    copy[options.len] = 0;
    for (char *item = strtok_r(copy, ";", &save); item; item = strtok_r(NULL, ";", &save)) {
        onx_str rest = onx_str_of(item);
        onx_str word = run_take_token(&rest);
        if (onx_str_is(word, "within")) {
            do {
                onx_str number = run_take_token(&rest);
                double x = strtod(number.ptr, &end);
                bool ulps = run_take(&rest, "ulps", 4);
                *(ulps ? &tolerance->ulps : &tolerance->absolute) = x;
                assert_ptr_equal(end, number.ptr + number.len);
            } while (run_take(&rest, "or", 2));
            run_take(&rest, "", 0);
            assert_int_equal(rest.len, 0);
            continue;
        }
        if (word.len != 1 || !isupper((unsigned char)*word.ptr) || types->count == RUN_VARIABLES ||
            !run_take(&rest, "=", 1))
            fail_msg("\"%s\" is no option of a case", item);
        run_variable *v = &types->variables[types->count++];
        v->name = *word.ptr;
        while ((word = run_take_token(&rest)).len)
            run_add_types(v, word);
        assert_true(v->count > 0);
    }
}

/* The next combination of types; false after the last. */
static inline bool run_next_types(run_types *types)
{
    for (uint32_t i = 0; i < types->count; i++) {
        if (++types->variables[i].at < types->variables[i].count)
            return true;
        types->variables[i].at = 0;
    }
    return false;
}

static inline const run_variable *run_variable_of(const run_types *types, const char *word, size_t len)
{
    for (uint32_t i = 0; i < types->count && len == 1; i++)
        if (types->variables[i].name == *word)
            return &types->variables[i];
    return NULL;
}

static inline void run_say_types(const run_types *types, onx_str title)
{
    for (uint32_t i = 0; i < types->count; i++) {
        const run_variable *v = &types->variables[i];
        if (v->name == 'V')
            print_error("%.*s: V is %u\n", ONX_ARG(title), v->types[v->at]);
        else
            print_error("%.*s: %c is %s\n", ONX_ARG(title), v->name, onx_dtype_name(v->types[v->at]));
    }
}

static inline bool run_has_versions(const run_types *types)
{
    return run_variable_of(types, "V", 1) != NULL;
}

/* The variable that stands for the type now, by which `want` may call it; empty: none. */
static inline onx_str run_name_of_type(const run_types *types, int dtype, const char *written, size_t len)
{
    const run_variable *v = run_variable_of(types, written, len);
    return v && v->name != 'V' && (int)v->types[v->at] == dtype ? onx_str_make(&v->name, 1) : onx_str_make("", 0);
}

/* One element as the text syntax has it for the type. */
static inline void run_spell(cases_buffer *out, onx_dtype dtype, onx_str token)
{
    uint64_t bits;
    char text[48];
    onx_dtype part = run_part_type(dtype);
    if (dtype == ONX_STRING) {
        run_add_text(out, token);
        return;
    }
    snprintf(text, sizeof text, "%.*s", ONX_ARG(token));
    double x = strtod(text, NULL);
    if (!run_parse(part, token.ptr, token.len, &bits) ||
        (!run_is_whole(part) && part != ONX_BOOL && x == x && run_number(part, bits) != x && part != ONX_FLOAT &&
         part != ONX_DOUBLE) ||
        (part == ONX_FLOAT && x == x && (double)(float)x != x))
        fail_msg("%s is not exact as %s", text, onx_dtype_name(dtype));
    if (part != dtype)
        snprintf(text, sizeof text, "%.*s, 0", ONX_ARG(token));
    else if (dtype == ONX_BOOL ||
             (onx_dtype_class_of(dtype) == ONX_CLASS_FLOATING && dtype != ONX_FLOAT && dtype != ONX_DOUBLE))
        snprintf(text, sizeof text, "%llu", (unsigned long long)bits);
    cases_add_text(out, text);
}

/* "[2] x = {1, 2}" after a type: up to the brace and all elements, if that is what stands there. */
static inline const char *run_spell_list(cases_buffer *out, onx_dtype dtype, const char *at)
{
    const char *brace = at + strspn(at, " ");
    if (*brace == '[')
        brace = strchr(brace, ']') + 1;
    brace += strspn(brace, " ");
    while (isalnum((unsigned char)*brace) || *brace == '_')
        brace++;
    brace += strspn(brace, " =");
    if (*brace != '{')
        return at;
    cases_add(out, at, (size_t)(brace + 1 - at));
    onx_str rest = onx_str_make(brace + 1, strlen(brace + 1));
    for (bool first = true; !run_take(&rest, "}", 1); first = false) {
        assert_true(rest.len > 0 && (first || run_take(&rest, ",", 1)));
        cases_add_text(out, first ? "" : ", ");
        run_spell(out, dtype, run_take_token(&rest));
    }
    cases_add_text(out, "}");
    return rest.ptr;
}

/* The model with the types that are meant now. */
static inline cases_buffer run_with_types(const run_types *types, onx_str text)
{
    cases_buffer out = { NULL, 0 };
    cases_add(&out, "", 0);
    for (const char *at = text.ptr, *end = text.ptr + text.len; at < end;) {
        size_t n = 0;
        while (at + n < end && (isalnum((unsigned char)at[n]) || at[n] == '_'))
            n++;
        const run_variable *v = run_variable_of(types, at, n);
        if (!v) {
            n = n ? n : 1;
            cases_add(&out, at, n);
            at += n;
            continue;
        }
        onx_dtype dtype = (onx_dtype)v->types[v->at];
        if (v->name == 'V' || (out.len && out.ptr[out.len - 1] == '$')) {
            char number[8];
            out.len -= v->name != 'V';
            snprintf(number, sizeof number, "%d", dtype);
            cases_add_text(&out, number);
            at += n;
        } else {
            cases_add_text(&out, onx_dtype_name(dtype));
            at = run_spell_list(&out, dtype, at + n);
        }
    }
    return out;
}

#endif
