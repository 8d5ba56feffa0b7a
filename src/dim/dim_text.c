/* dim_text.c - converts dimension expressions to text, and parses such texts and those that exporters write. */
#include "dim/dim_expr.h"

#include <stdio.h>

/* ---- printing ---- */

typedef struct printer {
    const onxi_dims *dims;
    char *buf;
    size_t size, len; /* len counts beyond size, like the result of snprintf */
} printer;

static void put(printer *p, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++, p->len++)
        if (p->len + 1 < p->size)
            p->buf[p->len] = text[i];
}

static void put_text(printer *p, const char *text)
{
    put(p, text, strlen(text));
}

static void put_number(printer *p, uint64_t value)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    put(p, digits, (size_t)n);
}

/* The precedence of the outermost operation: 1 sum, 2 product or quotient, 3 name, number, call. */
static int binding(const onxi_dims *dims, onxi_dim d)
{
    if (onxi_dim_is_const(d))
        return d < 0 ? 1 : 3;
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, d);
    switch (e->kind) {
    case ONXI_DIM_SUM:
        return e->count == 1 && e->constant == 0 && e->terms[0].coef > 0 ? 2 : 1;
    case ONXI_DIM_PRODUCT:
    case ONXI_DIM_DIV:
    case ONXI_DIM_MOD:
        return 2;
    default:
        return 3;
    }
}

static void print(printer *p, onxi_dim d, int least);

static void print_term(printer *p, uint64_t coef, onxi_dim of)
{
    const onxi_dim_expr *e = onxi_dim_expr_of(p->dims, of);
    if (coef != 1) {
        put_number(p, coef);
        put(p, "*", 1);
    }
    /* A quotient inside a product needs its parentheses: 2*(N/3) is not 2*N/3. */
    print(p, of, coef != 1 && e->kind != ONXI_DIM_PRODUCT ? 3 : 2);
}

static void print_sum(printer *p, const onxi_dim_expr *e)
{
    bool first = true, ahead = e->constant > 0; /* 1024 - past rather than -past + 1024 */
    for (uint32_t i = 0; i < e->count; i++)
        ahead = ahead && e->terms[i].coef < 0;
    if (ahead) {
        put_number(p, (uint64_t)e->constant);
        first = false;
    }
    for (int round = 0; round < 2; round++) /* positive terms come before negative ones */
        for (uint32_t i = 0; i < e->count; i++) {
            int64_t coef = e->terms[i].coef;
            if ((coef < 0) != (round == 1))
                continue;
            if (coef < 0)
                put_text(p, first ? "-" : " - ");
            else if (!first)
                put_text(p, " + ");
            print_term(p, coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef, e->terms[i].of);
            first = false;
        }
    if (e->constant && !ahead) {
        put_text(p, e->constant < 0 ? " - " : " + ");
        put_number(p, e->constant < 0 ? 0 - (uint64_t)e->constant : (uint64_t)e->constant);
    }
}

static void print_expr(printer *p, const onxi_dim_expr *e, onxi_dim d)
{
    switch (e->kind) {
    case ONXI_DIM_SYMBOL:
        put(p, e->name.ptr, e->name.len);
        break;
    case ONXI_DIM_SUM:
        print_sum(p, e);
        break;
    case ONXI_DIM_PRODUCT:
        for (uint32_t i = 0; i < e->count; i++) {
            if (i)
                put(p, "*", 1);
            print(p, e->args[i], 3);
        }
        break;
    case ONXI_DIM_DIV:
    case ONXI_DIM_MOD: {
        bool plain = !onxi_dim_is_const(e->args[0]) && onxi_dim_expr_of(p->dims, e->args[0])->kind != ONXI_DIM_DIV &&
                     onxi_dim_expr_of(p->dims, e->args[0])->kind != ONXI_DIM_MOD;
        print(p, e->args[0], plain && e->kind == ONXI_DIM_DIV ? 2 : 3);
        put_text(p, e->kind == ONXI_DIM_DIV ? "/" : " % ");
        print(p, e->args[1], 3);
        break;
    }
    case ONXI_DIM_MIN:
    case ONXI_DIM_MAX:
        put_text(p, e->kind == ONXI_DIM_MIN ? "min(" : "max(");
        for (uint32_t i = 0; i < e->count; i++) { /* constants are sorted last, but read better first */
            if (i)
                put_text(p, ", ");
            print(p, e->args[e->count - 1 - i], 0);
        }
        put(p, ")", 1);
        break;
    default:
        put_text(p, "expr_");
        put_number(p, (uint64_t)d - (uint64_t)INT64_MIN);
        break;
    }
}

static void print(printer *p, onxi_dim d, int least)
{
    bool close = binding(p->dims, d) < least;
    if (close)
        put(p, "(", 1);
    if (onxi_dim_is_const(d)) {
        if (d < 0)
            put(p, "-", 1);
        put_number(p, d < 0 ? 0 - (uint64_t)d : (uint64_t)d);
    } else {
        print_expr(p, onxi_dim_expr_of(p->dims, d), d);
    }
    if (close)
        put(p, ")", 1);
}

size_t onxi_dim_print(const onxi_dims *dims, onxi_dim d, char *buf, size_t size)
{
    printer p = { .dims = dims, .buf = buf, .size = size, .len = 0 };
    bool expression = dims && onxi_dim_is_known(d) && (uint64_t)d - (uint64_t)INT64_MIN <= dims->count;
    if (onxi_dim_is_const(d) || expression)
        print(&p, d, 0);
    if (size)
        buf[p.len < size ? p.len : size - 1] = '\0';
    return p.len;
}

/* ---- reading ---- */

typedef struct parser {
    onxi_dims *dims;
    const char *at, *end;
    uint32_t depth;
    uint32_t operations; /* a text without operations is a name */
} parser;

enum { PARSE_DEPTH = 20 };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(parser *p)
{
    while (p->at < p->end && *p->at == ' ')
        p->at++;
}

static bool eat(parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool parse_sum(parser *p, onxi_dim *out);

static bool parse_number(parser *p, onxi_dim *out)
{
    int64_t value = 0;
    for (; p->at < p->end && is_digit(*p->at); p->at++)
        if (!onxi_mul_i64(value, 10, &value) || !onxi_add_i64(value, *p->at - '0', &value))
            return false;
    *out = value;
    return p->at == p->end || (!is_letter(*p->at) && *p->at != '.');
}

/* list := "(" sum { "," sum } ")" */
static bool parse_list(parser *p, bool least, onxi_dim *out)
{
    if (!eat(p, '(') || !parse_sum(p, out))
        return false;
    while (eat(p, ',')) {
        onxi_dim next;
        if (!parse_sum(p, &next))
            return false;
        *out = least ? onxi_dim_min(p->dims, *out, next) : onxi_dim_max(p->dims, *out, next);
        p->operations++;
    }
    return eat(p, ')');
}

/* factor := number | name | ("min" | "max") list | "(" sum ")" */
static bool parse_factor(parser *p, onxi_dim *out)
{
    skip_space(p);
    if (p->at == p->end)
        return false;
    if (is_digit(*p->at))
        return parse_number(p, out);
    if (*p->at == '(') {
        p->at++;
        return parse_sum(p, out) && eat(p, ')');
    }
    if (!is_letter(*p->at))
        return false;
    const char *start = p->at;
    while (p->at < p->end && (is_letter(*p->at) || is_digit(*p->at) || *p->at == '.' || *p->at == ':'))
        p->at++;
    onx_str name = onx_str_make(start, (size_t)(p->at - start));
    if (p->at < p->end && *p->at == '(') {
        if (onx_str_is(name, "min") || onx_str_is(name, "Min"))
            return parse_list(p, true, out);
        if (onx_str_is(name, "max") || onx_str_is(name, "Max"))
            return parse_list(p, false, out);
        return false;
    }
    *out = onxi_dim_symbol(p->dims, name);
    return true;
}

/* product := factor { ("*" | "/" | "//" | "%") factor } */
static bool parse_product(parser *p, onxi_dim *out)
{
    if (!parse_factor(p, out))
        return false;
    for (;;) {
        onxi_dim next;
        if (eat(p, '*')) {
            if (!parse_factor(p, &next))
                return false;
            *out = onxi_dim_mul(p->dims, *out, next);
        } else if (eat(p, '/')) {
            if (p->at < p->end && *p->at == '/')
                p->at++;
            if (!parse_factor(p, &next))
                return false;
            /* a formula with 1/2 means an exact fraction, not 0 */
            if (onxi_dim_is_const(*out) && onxi_dim_is_const(next) && (next == 0 || *out % next != 0))
                return false;
            *out = onxi_dim_div(p->dims, *out, next);
        } else if (eat(p, '%')) {
            if (!parse_factor(p, &next))
                return false;
            *out = onxi_dim_mod(p->dims, *out, next);
        } else {
            return true;
        }
        p->operations++;
        if (!onxi_dim_is_known(*out))
            return false;
    }
}

/* Is the sign at p->at an operator? In batch-size it is part of a name. */
static bool is_operation(const parser *p)
{
    const char *sign = p->at;
    bool spaced = sign[-1] == ' ' || sign[-1] == ')' || is_digit(sign[-1]);
    return spaced || (sign + 1 < p->end && (sign[1] == ' ' || sign[1] == '(' || is_digit(sign[1])));
}

/* sum := [ "-" ] product { ("+" | "-") product } */
static bool parse_sum(parser *p, onxi_dim *out)
{
    if (++p->depth > PARSE_DEPTH)
        return false;
    bool minus = eat(p, '-');
    if (!parse_product(p, out))
        return false;
    if (minus) {
        *out = onxi_dim_sub(p->dims, 0, *out);
        p->operations++;
    }
    for (skip_space(p); p->at < p->end && (*p->at == '+' || *p->at == '-'); skip_space(p)) {
        onxi_dim next;
        bool add = *p->at == '+';
        if (!is_operation(p))
            return false;
        p->at++;
        if (!parse_product(p, &next))
            return false;
        *out = add ? onxi_dim_add(p->dims, *out, next) : onxi_dim_sub(p->dims, *out, next);
        p->operations++;
        if (!onxi_dim_is_known(*out))
            return false;
    }
    p->depth--;
    return onxi_dim_is_known(*out);
}

/* A text that stands for any size. */
static bool is_placeholder(onx_str text)
{
    static const char *const nothing[] = { "None", "none", "null", "unknown", "Unknown" };
    bool letter = false;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        letter |= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
    }
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        letter &= !onx_str_is(text, nothing[i]);
    return !letter;
}

/* unk__3: tools number the sizes that they do not know. */
static bool is_numbered(onx_str text)
{
    static const char head[] = "unk__";
    size_t at = sizeof head - 1;
    if (text.len <= at || memcmp(text.ptr, head, at) != 0)
        return false;
    while (at < text.len && is_digit(text.ptr[at]))
        at++;
    return at == text.len;
}

bool onxi_dim_is_name(onx_str text)
{
    return !is_placeholder(text) && !is_numbered(text);
}

onxi_dim onxi_dim_parse(onxi_dims *dims, onx_str text)
{
    if (!dims || text.len == 0)
        return ONXI_DIM_UNKNOWN;
    bool formula = false;
    for (size_t i = 0; i < text.len && !formula && text.len <= 2 * ONXI_DIM_WEIGHT; i++)
        formula = strchr("+-*/%()", text.ptr[i]) && text.ptr[i];
    if (formula) {
        parser p = { .dims = dims, .at = text.ptr, .end = onxi_str_end(text) };
        onxi_dim d;
        if (parse_sum(&p, &d) && p.at == p.end && p.operations)
            return d;
    }
    int64_t fixed;
    return is_placeholder(text) && !onxi_dims_fixed(dims, text, &fixed) ? ONXI_DIM_UNKNOWN
                                                                        : onxi_dim_symbol(dims, text);
}
