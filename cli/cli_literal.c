/* cli_literal.c - parses values that people write: 16000, true, "text", [[1, 2], [3, 4]]; the syntax is JSON with nan
 * and inf added. The element type comes from the input, and so does the shape if a single number is given. */
#include "cli_inputs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

typedef struct literal {
    const cli_call *call;
    const char *what; /* "input x" or the name of a file, for messages */
    onx_str text;
    size_t at;
    onx_dtype dtype;
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX];
    uint64_t count; /* elements so far */
    /* destination of elements: strings go into the value, all others into `wide`, which is converted at the end */
    onx_value *value;
    void *wide; /* double, int64_t or uint64_t according to the class of the type; NULL during the first pass, which
                 * determines the shape */
} literal;

static onx_status refuse(const literal *l, size_t at, const char *why)
{
    cli_error(l->call, "%s: %s, at character %zu of the value", l->what, why, at + 1);
    return ONX_E_MISUSE;
}

static void skip_blanks(literal *l)
{
    while (l->at < l->text.len && memchr(" \t\r\n", l->text.ptr[l->at], 4))
        l->at++;
}

static bool next_is(const literal *l, char c)
{
    return l->at < l->text.len && l->text.ptr[l->at] == c;
}

/* ---- numbers ---- */

enum { TOKEN_MOST = 400 };

/* The length of the run of letters, digits, points and signs at `at`; 0 if there are none, or too many for a number. */
static size_t token(onx_str text, size_t at, char out[TOKEN_MOST + 1])
{
    size_t n = 0;
    for (; at + n < text.len && n <= TOKEN_MOST; n++) {
        char c = text.ptr[at + n];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || memchr("+-._", c, 4)))
            break;
        if (n < TOKEN_MOST)
            out[n] = c;
    }
    if (n > TOKEN_MOST)
        n = 0;
    out[n] = '\0';
    return n;
}

typedef struct number {
    double real;
    int64_t whole; /* the value if it is below 2^63, else the bits of an unsigned number */
    bool is_whole, is_negative, is_word;
} number;

/* Decimal numbers, nan, inf, infinity, true and false; no hexadecimal ones, and no nan(...). */
static bool read_number(const char *text, number *out)
{
    static const struct {
        const char *word;
        number is;
    } words[] = {
        { "true", { 1, 1, true, false, true } },
        { "false", { 0, 0, true, false, true } },
        { "nan", { NAN, 0, false, false, true } },
        { "inf", { INFINITY, 0, false, false, true } },
        { "infinity", { INFINITY, 0, false, false, true } },
    };
    const bool negative = text[0] == '-';
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t k = 0;
        while (digits[k] && (digits[k] | 0x20) == words[i].word[k])
            k++;
        if (digits[k] || words[i].word[k])
            continue;
        *out = words[i].is;
        if (negative)
            out->real = -out->real;
        return !out->is_whole || digits == text;
    }
    char *end;
    if (strspn(digits, "0123456789.eE+-") != strlen(digits) || !*digits || *digits == '+' || *digits == '-')
        return false;
    *out = (number){ .real = strtod(text, &end), .is_negative = negative };
    if (*end || isinf(out->real))
        return false;
    errno = 0;
    if (strspn(digits, "0123456789") == strlen(digits)) {
        unsigned long long magnitude = strtoull(digits, NULL, 10);
        out->is_whole = errno == 0 && (!negative || magnitude <= (uint64_t)INT64_MAX + 1);
        out->whole = (int64_t)(negative ? 0 - magnitude : magnitude);
    } else if (fabs(out->real) <= 0x1p53 && out->real == floor(out->real)) { /* 1e3 */
        out->is_whole = true;
        out->whole = (int64_t)out->real;
    }
    return true;
}

/* Can an integer type, or bool, represent it? */
static bool fits(onx_dtype dtype, const number *n)
{
    onx_dtype_class class = onx_dtype_class_of((int32_t)dtype);
    const unsigned bits = class == ONX_CLASS_BOOLEAN ? 1 : onx_dtype_bits((int32_t)dtype);
    const bool below_zero = n->is_negative && n->whole != 0;
    if (!n->is_whole)
        return false;
    if (class == ONX_CLASS_SIGNED) {
        const int64_t most = INT64_MAX >> (64 - bits);
        return below_zero ? n->whole >= -most - 1 : n->whole >= 0 && n->whole <= most;
    }
    return !below_zero && (uint64_t)n->whole <= UINT64_MAX >> (64 - bits);
}

static onx_status put_number(literal *l)
{
    char text[TOKEN_MOST + 1];
    const size_t start = l->at, len = token(l->text, l->at, text);
    number n;
    if (l->dtype == ONX_STRING && len)
        return refuse(l, start, "a text in double quotes is expected");
    if (!len)
        return refuse(l, start, l->at < l->text.len ? "no value starts like this" : "the value ends too early");
    if (!read_number(text, &n))
        return refuse(l, start, "this is not a number");
    l->at += len;
    if (l->wide) {
        if (onx_dtype_class_of((int32_t)l->dtype) == ONX_CLASS_FLOATING) {
            ((double *)l->wide)[l->count] = n.real;
        } else if (fits(l->dtype, &n)) {
            ((int64_t *)l->wide)[l->count] = n.whole;
        } else {
            cli_error(l->call, "%s: %s is not a %s", l->what, text, onx_dtype_name((int32_t)l->dtype));
            return ONX_E_MISUSE;
        }
    }
    l->count++;
    return ONX_OK;
}

/* ---- texts ---- */

static bool hex4(const literal *l, size_t at, uint32_t *out)
{
    *out = 0;
    for (size_t i = at; i < at + 4; i++) {
        char c = i < l->text.len ? l->text.ptr[i] : 0;
        if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')))
            return false;
        *out = *out << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return true;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = { 0, 0xc0, 0xe0, 0xf0 };
    to[0] = (char)(lead[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
    return more + 1;
}

/* Decodes an escape such as \n, with l->at behind the backslash, into `to`: at most 4 bytes, and never more than were
 * read. 0 if the escape is invalid. */
static size_t take_escape(literal *l, char *to)
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char c = l->at < l->text.len ? l->text.ptr[l->at] : 0;
    const char *known = c ? strchr(letters, c) : NULL;
    uint32_t high, low;
    if (known) {
        *to = means[known - letters];
        l->at++;
        return 1;
    }
    if (c != 'u' || !hex4(l, l->at + 1, &high))
        return 0;
    l->at += 5;
    if (high >= 0xd800 && high < 0xdc00) {
        if (!next_is(l, '\\') || l->at + 1 >= l->text.len || l->text.ptr[l->at + 1] != 'u' ||
            !hex4(l, l->at + 2, &low) || low < 0xdc00 || low >= 0xe000)
            return 0;
        l->at += 6;
        high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    } else if (high >= 0xdc00 && high < 0xe000) {
        return 0;
    }
    return put_utf8(to, high);
}

/* Parses a string with l->at behind the opening quote; the remaining length of the text bounds its size. */
static onx_status take_text(literal *l, char *to, size_t *len)
{
    *len = 0;
    while (l->at < l->text.len && l->text.ptr[l->at] != '"') {
        const size_t start = l->at;
        if (l->text.ptr[l->at++] != '\\') {
            to[(*len)++] = l->text.ptr[start];
            continue;
        }
        const size_t n = take_escape(l, to + *len);
        if (!n)
            return refuse(l, start, "this is not an escape sequence of JSON");
        *len += n;
    }
    if (l->at == l->text.len)
        return refuse(l, l->at, "the closing quote is missing");
    l->at++;
    return ONX_OK;
}

static onx_status put_text(literal *l)
{
    const size_t start = l->at++;
    size_t len, end = l->at;
    if (l->dtype != ONX_STRING)
        return refuse(l, start, "a text where a number is expected");
    while (end < l->text.len && l->text.ptr[end] != '"')
        end += l->text.ptr[end] == '\\' ? 2 : 1;
    char *text = malloc((end < l->text.len ? end : l->text.len) - start + 4);
    onx_status status = text ? take_text(l, text, &len) : ONX_E_MEMORY;
    if (status == ONX_OK && l->value)
        status = onx_value_set_text(l->value, l->count, onx_str_make(text, len));
    free(text);
    l->count++;
    return status;
}

/* ---- lists ---- */

static onx_status walk(literal *l, uint32_t depth);

static onx_status walk_list(literal *l, uint32_t depth)
{
    const size_t start = l->at++;
    const bool first = !l->value && l->rank <= depth; /* the first list at its depth determines the length of the
                                                       * others */
    int64_t items = 0;
    if (depth == ONX_RANK_MAX)
        return refuse(l, start, "lists nest too deeply");
    if (first) {
        if (l->count)
            return refuse(l, start, "a list and a single value at the same depth");
        l->rank = depth + 1;
        l->dims[depth] = -1;
    }
    skip_blanks(l);
    while (!next_is(l, ']')) {
        if (items && !next_is(l, ','))
            return refuse(l, l->at, l->at < l->text.len ? "a comma or ] is missing" : "] is missing");
        l->at += items > 0;
        ONX_TRY(walk(l, depth + 1));
        items++;
    }
    l->at++;
    if (l->dims[depth] >= 0 && l->dims[depth] != items)
        return refuse(l, start, "this list and the others at its depth differ in length");
    l->dims[depth] = items;
    return ONX_OK;
}

/* Parses one value of any nesting depth, with blanks around it. */
static onx_status walk(literal *l, uint32_t depth)
{
    skip_blanks(l);
    onx_status status;
    if (next_is(l, '['))
        status = walk_list(l, depth);
    else if (!l->value && depth < l->rank)
        status = refuse(l, l->at, "a single value and a list at the same depth");
    else
        status = next_is(l, '"') ? put_text(l) : put_number(l);
    skip_blanks(l);
    return status;
}

static onx_status walk_all(literal *l)
{
    l->at = 0;
    l->count = 0;
    ONX_TRY(walk(l, 0));
    return l->at == l->text.len ? ONX_OK : refuse(l, l->at, "something follows the value");
}

/* ---- building the value ---- */

bool cli_is_literal(const char *text)
{
    char word[TOKEN_MOST + 1];
    number n;
    const size_t len = strlen(text);
    if (text[0] == '[' || text[0] == '"')
        return true;
    return len > 0 && token(onx_str_make(text, len), 0, word) == len && read_number(word, &n);
}

/* A single value fills the requested shape. */
static void spread(literal *l, const cli_shape *shape)
{
    if (l->rank || !shape)
        return;
    l->rank = shape->rank;
    if (shape->rank)
        memcpy(l->dims, shape->dims, shape->rank * sizeof *shape->dims);
}

/* Copies the first string to all elements from `written` on. Setting an element may move the strings of the value, so
 * they are set from a copy. */
static onx_status fill_texts(onx_value *v, uint64_t written)
{
    if (written >= v->count)
        return ONX_OK;
    const onx_str first = ((const onx_str *)v->data)[0];
    char *copy = malloc(first.len + 1);
    onx_status status = copy ? ONX_OK : ONX_E_MEMORY;
    if (copy && first.len)
        memcpy(copy, first.ptr, first.len);
    for (uint64_t i = written; i < v->count && status == ONX_OK; i++)
        status = onx_value_set_text(v, i, onx_str_make(copy, first.len));
    free(copy);
    return status;
}

static onx_status fill(literal *l)
{
    onx_value *v = l->value;
    const uint64_t written = l->count;
    if (v->dtype == ONX_STRING)
        return fill_texts(v, written);
    for (uint64_t i = written; i < v->count; i++) /* the one element, repeatedly */
        memcpy((char *)l->wide + i * 8, l->wide, 8);
    const onx_dtype_class class = onx_dtype_class_of(v->dtype);
    const onx_dtype from = class == ONX_CLASS_FLOATING ? ONX_DOUBLE
                           : class == ONX_CLASS_SIGNED ? ONX_INT64
                                                       : ONX_UINT64;
    return onx_convert((onx_dtype)v->dtype, v->data, from, l->wide, v->count, true);
}

onx_status cli_literal(cli_call *call, const char *what, onx_str text, onx_dtype dtype, const cli_shape *shape,
                       onx_value **out)
{
    literal l = { .call = call, .what = what, .text = text, .dtype = dtype };
    *out = NULL;
    if (onx_dtype_class_of((int32_t)dtype) == ONX_CLASS_COMPLEX || !onx_dtype_name((int32_t)dtype)) {
        cli_error(call, "%s: values of type %s have to come from files", what,
                  onx_dtype_name((int32_t)dtype) ? onx_dtype_name((int32_t)dtype) : "unknown");
        return ONX_E_MISUSE;
    }
    ONX_TRY(walk_all(&l));
    spread(&l, shape);
    for (uint32_t i = 0; i < l.rank; i++) /* a list of empty lists does not tell the length of the inner ones */
        l.dims[i] = l.dims[i] < 0 ? 0 : l.dims[i];
    ONX_TRY(onx_value_new_tensor(call->cx, dtype, l.rank, l.dims, out));
    l.value = *out;
    onx_status status = ONX_OK;
    if (l.value->count > SIZE_MAX / 8 || (dtype != ONX_STRING && !(l.wide = malloc((size_t)l.value->count * 8 + 8))))
        status = ONX_E_MEMORY;
    if (status == ONX_OK && (l.value->count || dtype != ONX_STRING))
        status = walk_all(&l);
    if (status == ONX_OK)
        status = fill(&l);
    free(l.wide);
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
    }
    return status;
}
