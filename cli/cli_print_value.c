/* cli_print_value.c - prints values as text and JSON: a summary, all elements, or the largest ones. */
#include "cli_value.h"

#include <math.h>
#include <stdlib.h>

/* ---- elements, converted some at a time: those of less than a byte are packed ---- */

enum { SOME = 256 };

typedef struct elements {
    const onx_value *v;
    onx_dtype_class class;
    uint64_t first; /* index of the first element in the buffer; UINT64_MAX: the buffer is empty */
    union {
        double real[2 * SOME]; /* for complex elements both parts */
        int64_t whole[SOME];
        uint64_t natural[SOME];
    } as;
} elements;

static elements elements_of(const onx_value *v)
{
    elements e = { .v = v, .class = onx_dtype_class_of(v->dtype), .first = UINT64_MAX };
    return e;
}

/* Loads an element into the buffer, and returns its index there. */
static uint64_t fetch(elements *e, uint64_t index)
{
    const onx_value *v = e->v;
    if (e->first == UINT64_MAX || index - e->first >= SOME) {
        e->first = index - index % SOME;
        const uint64_t count = v->count - e->first < SOME ? v->count - e->first : SOME;
        const unsigned bits = onx_dtype_bits(v->dtype);
        const char *from = (const char *)v->data + e->first * bits / 8;
        if (e->class == ONX_CLASS_COMPLEX)
            (void)onx_convert(ONX_DOUBLE, e->as.real, bits == 64 ? ONX_FLOAT : ONX_DOUBLE, from, 2 * count, true);
        else
            (void)onx_convert(e->class == ONX_CLASS_FLOATING ? ONX_DOUBLE
                              : e->class == ONX_CLASS_SIGNED ? ONX_INT64
                                                             : ONX_UINT64,
                              &e->as, (onx_dtype)v->dtype, from, count, true);
    }
    return index - e->first;
}

/* Its numeric value, for sums and comparisons. */
static double number_at(elements *e, uint64_t index)
{
    const uint64_t i = fetch(e, index);
    return e->class == ONX_CLASS_FLOATING  ? e->as.real[i]
           : e->class == ONX_CLASS_SIGNED  ? (double)e->as.whole[i]
           : e->class == ONX_CLASS_COMPLEX ? hypot(e->as.real[2 * i], e->as.real[2 * i + 1])
                                           : (double)e->as.natural[i];
}

static void put_real(FILE *to, double x, int digits, bool json)
{
    if (isfinite(x))
        fprintf(to, "%.*g", digits, x);
    else if (json)
        fputs(isnan(x) ? "\"NaN\"" : x < 0 ? "\"-Infinity\"" : "\"Infinity\"", to);
    else
        fputs(isnan(x) ? "nan" : x < 0 ? "-inf" : "inf", to);
}

static void put_element(FILE *to, elements *e, uint64_t index, int digits, bool json)
{
    if (e->class == ONX_CLASS_TEXT) {
        const onx_str text = ((const onx_str *)e->v->data)[index];
        if (json) {
            cli_json_put_string(to, text);
        } else {
            putc('"', to);
            cli_put_text(to, text);
            putc('"', to);
        }
        return;
    }
    const uint64_t i = fetch(e, index);
    switch (e->class) {
    case ONX_CLASS_FLOATING:
        put_real(to, e->as.real[i], digits, json);
        break;
    case ONX_CLASS_COMPLEX:
        fputs(json ? "[" : "(", to);
        put_real(to, e->as.real[2 * i], digits, json);
        fputs(json ? ", " : " ", to);
        put_real(to, e->as.real[2 * i + 1], digits, json);
        fputs(json ? "]" : "i)", to);
        break;
    case ONX_CLASS_SIGNED:
        fprintf(to, "%lld", (long long)e->as.whole[i]);
        break;
    case ONX_CLASS_BOOLEAN:
        fputs(e->as.natural[i] ? "true" : "false", to);
        break;
    default:
        fprintf(to, "%llu", (unsigned long long)e->as.natural[i]);
    }
}

/* Enough digits to distinguish any two values of the type. */
static int all_digits(const onx_value *v)
{
    const unsigned bits = onx_dtype_bits(v->dtype) / (onx_dtype_class_of(v->dtype) == ONX_CLASS_COMPLEX ? 2 : 1);
    return bits == 64 ? 17 : bits == 32 ? 9 : bits == 16 ? 5 : 4;
}

/* All elements as nested lists, a row of the last dimension per line, or `in_line`; a scalar as it is. */
static void put_rows(FILE *to, const onx_value *v, bool json, bool in_line)
{
    elements e = elements_of(v);
    uint64_t block[ONX_RANK_MAX + 1]; /* number of elements of a list at each depth */
    const uint32_t rank = v->rank < ONX_RANK_MAX ? v->rank : ONX_RANK_MAX;
    if (!v->count) {
        fputs("[]", to);
        return;
    }
    block[rank] = 1;
    for (uint32_t d = rank; d-- > 0;)
        block[d] = block[d + 1] * (uint64_t)v->dims[d];
    for (uint64_t i = 0; i < v->count && !ferror(to); i++) {
        uint32_t open = 0, close = 0;
        for (uint32_t d = 0; d < rank; d++) {
            open += i % block[d] == 0;
            close += (i + 1) % block[d] == 0;
        }
        if (i)
            fputs(open && !in_line ? "," : ", ", to);
        if (i && open && !in_line)
            fprintf(to, "\n%*s", (int)(rank - open), "");
        for (uint32_t k = 0; k < open; k++)
            putc('[', to);
        put_element(to, &e, i, all_digits(v), json);
        for (uint32_t k = 0; k < close; k++)
            putc(']', to);
    }
}

/* Arrays that fit into a line take one line. */
static void put_all(FILE *to, const onx_value *v, bool json)
{
    enum { FEW = 40, WIDTH = 80 };
    char *text = NULL;
    size_t len = 0;
    FILE *line = v->count && v->count <= FEW && v->rank > 1 ? open_memstream(&text, &len) : NULL;
    if (line) {
        put_rows(line, v, json, true);
        if (fclose(line) != 0)
            len = WIDTH + 1;
    }
    if (line && len <= WIDTH)
        fwrite(text, 1, len, to);
    else
        put_rows(to, v, json, false);
    free(text);
}

/* ---- facts ---- */

typedef struct facts {
    uint64_t finite, nan, infinite, set; /* set: nonzero elements */
    double least, most, sum;
} facts;

static facts look_at(const onx_value *v)
{
    facts f = { .least = INFINITY, .most = -INFINITY };
    elements e = elements_of(v);
    for (uint64_t i = 0; e.class != ONX_CLASS_TEXT && i < v->count; i++) {
        const double x = number_at(&e, i);
        f.nan += isnan(x) != 0;
        f.infinite += isinf(x) != 0;
        f.set += x != 0;
        if (!isfinite(x))
            continue;
        f.finite++;
        f.least = x < f.least ? x : f.least;
        f.most = x > f.most ? x : f.most;
        f.sum += x;
    }
    return f;
}

static void put_type(FILE *to, const onx_value *v)
{
    static const char *const kinds[] = { "nothing", "tensor", "sequence", "optional", "map" };
    if (v->kind != ONX_VALUE_TENSOR) {
        fprintf(to, "%s of %llu", kinds[v->kind], (unsigned long long)v->count);
        return;
    }
    fprintf(to, "%s[", onx_dtype_name(v->dtype));
    for (uint32_t i = 0; i < v->rank; i++)
        fprintf(to, "%s%lld", i ? "," : "", (long long)v->dims[i]);
    putc(']', to);
}

static void put_facts(FILE *to, const onx_value *v)
{
    const facts f = look_at(v);
    const onx_dtype_class class = onx_dtype_class_of(v->dtype);
    if (class == ONX_CLASS_BOOLEAN) {
        fprintf(to, "  (%llu of %llu true)", (unsigned long long)f.set, (unsigned long long)v->count);
        return;
    }
    if (f.finite && class != ONX_CLASS_COMPLEX)
        fprintf(to, "  (min %.6g, max %.6g, mean %.6g)", f.least, f.most, f.sum / (double)f.finite);
    if (!f.nan && !f.infinite)
        return;
    fputs(cli_color(stdout, CLI_RED), to);
    if (f.nan == v->count)
        fputs("  all NaN", to);
    else if (f.nan)
        fprintf(to, "  %llu NaN", (unsigned long long)f.nan);
    if (f.infinite)
        fprintf(to, "%s%llu infinite", f.nan ? ", " : "  ", (unsigned long long)f.infinite);
    fputs(cli_color(stdout, CLI_PLAIN), to);
}

/* ---- the largest elements of each row ---- */

typedef struct top {
    uint64_t index[CLI_TOP_MOST];
    double number[CLI_TOP_MOST];
    uint64_t count;
} top;

/* The `most` largest elements of a row, in descending order; equal ones in order of index; without NaN. */
static void find_top(elements *e, uint64_t start, uint64_t length, uint64_t most, top *out)
{
    out->count = 0;
    for (uint64_t i = 0; i < length; i++) {
        const double x = number_at(e, start + i);
        if (isnan(x) || (out->count == most && !(x > out->number[most - 1])))
            continue;
        uint64_t at = out->count < most ? out->count++ : most - 1;
        for (; at > 0 && x > out->number[at - 1]; at--) {
            out->number[at] = out->number[at - 1];
            out->index[at] = out->index[at - 1];
        }
        out->number[at] = x;
        out->index[at] = i;
    }
}

static bool has_top(const onx_value *v)
{
    const onx_dtype_class class = onx_dtype_class_of(v->dtype);
    return v->kind == ONX_VALUE_TENSOR && v->count && class != ONX_CLASS_TEXT && class != ONX_CLASS_COMPLEX;
}

static uint64_t row_length(const onx_value *v)
{
    return v->rank ? (uint64_t)v->dims[v->rank - 1] : 1;
}

static void put_top(FILE *to, const onx_value *v, uint64_t most)
{
    enum { ROWS = 8 };
    elements e = elements_of(v);
    const uint64_t length = row_length(v), rows = v->count / length;
    top t;
    for (uint64_t row = 0; row < rows && row < ROWS; row++) {
        find_top(&e, row * length, length, most, &t);
        if (rows > 1)
            fprintf(to, "\n  row %llu:", (unsigned long long)row);
        for (uint64_t i = 0; i < t.count; i++) {
            fprintf(to, "\n  %8llu  ", (unsigned long long)t.index[i]);
            put_element(to, &e, row * length + t.index[i], 6, false);
        }
    }
    if (rows > ROWS)
        fprintf(to, "\n  and %llu more rows", (unsigned long long)(rows - ROWS));
}

/* ---- a value ---- */

/* The keys of a map, strings or integers. */
static void put_key(FILE *to, const onx_value *map, uint64_t i, bool json)
{
    if (map->dtype != ONX_STRING) {
        fprintf(to, json ? "\"%lld\"" : "%lld", (long long)((const int64_t *)map->data)[i]);
    } else if (json) {
        cli_json_put_string(to, ((const onx_str *)map->data)[i]);
    } else {
        putc('"', to);
        cli_put_text(to, ((const onx_str *)map->data)[i]);
        putc('"', to);
    }
}

static void put_value(FILE *to, const onx_value *v, const cli_look *look, unsigned depth);

static void put_items(FILE *to, const onx_value *v, const cli_look *look, unsigned depth)
{
    enum { ITEMS = 4 };
    const uint64_t shown = look->full || v->count < ITEMS ? v->count : ITEMS;
    for (uint64_t i = 0; i < shown && !ferror(to); i++) {
        fprintf(to, "\n%*s", (int)(2 * depth + 2), "");
        if (v->kind == ONX_VALUE_MAP)
            put_key(to, v, i, false);
        else
            fprintf(to, "[%llu]", (unsigned long long)i);
        fprintf(to, "  ");
        put_value(to, v->items[i], look, depth + 1);
    }
    if (shown < v->count)
        fprintf(to, "\n%*sand %llu more", (int)(2 * depth + 2), "", (unsigned long long)(v->count - shown));
}

static void put_value(FILE *to, const onx_value *v, const cli_look *look, unsigned depth)
{
    put_type(to, v);
    if (v->kind != ONX_VALUE_TENSOR) {
        put_items(to, v, look, depth);
        return;
    }
    if (look->full) {
        putc(v->rank ? '\n' : ' ', to);
        put_all(to, v, false);
        return;
    }
    elements e = elements_of(v);
    for (uint64_t i = 0; i < v->count && i < 4 && !look->top; i++) {
        putc(' ', to);
        put_element(to, &e, i, 6, false);
    }
    if (v->count > 4 && !look->top)
        fputs(" ...", to);
    if (v->count && v->dtype != ONX_STRING)
        put_facts(to, v);
    if (look->top && has_top(v))
        put_top(to, v, look->top);
}

void cli_put_value(FILE *to, const onx_value *v, const cli_look *look)
{
    put_value(to, v, look, 0);
}

/* ---- JSON ---- */

static void json_top(cli_json *json, const onx_value *v, uint64_t most)
{
    elements e = elements_of(v);
    const uint64_t length = row_length(v);
    top t;
    cli_json_open(json, "top", '[');
    for (uint64_t start = 0; start < v->count; start += length) {
        find_top(&e, start, length, most, &t);
        cli_json_open(json, NULL, '[');
        for (uint64_t i = 0; i < t.count; i++) {
            cli_json_open(json, NULL, '{');
            cli_json_uint(json, "index", t.index[i]);
            put_element(cli_json_raw(json, "value"), &e, start + t.index[i], all_digits(v), true);
            cli_json_close(json, '}');
        }
        cli_json_close(json, ']');
    }
    cli_json_close(json, ']');
}

static void json_tensor(cli_json *json, const onx_value *v, const cli_look *look)
{
    const facts f = look_at(v);
    cli_json_cstr(json, "type", onx_dtype_name(v->dtype));
    cli_json_open(json, "shape", '[');
    for (uint32_t i = 0; i < v->rank; i++)
        cli_json_int(json, NULL, v->dims[i]);
    cli_json_close(json, ']');
    if (onx_dtype_class_of(v->dtype) == ONX_CLASS_FLOATING || onx_dtype_class_of(v->dtype) == ONX_CLASS_COMPLEX) {
        cli_json_uint(json, "nan", f.nan);
        cli_json_uint(json, "infinite", f.infinite);
    }
    if (look->top && has_top(v))
        json_top(json, v, look->top);
    else
        put_all(cli_json_raw(json, "values"), v, true);
}

void cli_json_value(cli_json *json, const onx_value *v, const cli_look *look)
{
    static const char *const kinds[] = { "nothing", "tensor", "sequence", "optional", "map" };
    cli_json_cstr(json, "kind", kinds[v->kind]);
    if (v->kind == ONX_VALUE_TENSOR) {
        json_tensor(json, v, look);
        return;
    }
    cli_json_open(json, "items", '[');
    for (uint64_t i = 0; i < v->count; i++) {
        cli_json_open(json, NULL, '{');
        if (v->kind == ONX_VALUE_MAP)
            put_key(cli_json_raw(json, "key"), v, i, true);
        cli_json_value(json, v->items[i], look);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}
