/* value_npy.c - NumPy's .npy format: a magic number, a header that is a Python dict, and the elements. */
#include <onx/npy.h>

#include "value/value.h"

#include <stdio.h>

typedef struct npy_type {
    const char *descr; /* without byte order */
    onx_dtype dtype;
} npy_type;

static const npy_type types[] = {
    { "f4", ONX_FLOAT },     { "f8", ONX_DOUBLE },      { "f2", ONX_FLOAT16 }, { "i1", ONX_INT8 },
    { "i2", ONX_INT16 },     { "i4", ONX_INT32 },       { "i8", ONX_INT64 },   { "u1", ONX_UINT8 },
    { "u2", ONX_UINT16 },    { "u4", ONX_UINT32 },      { "u8", ONX_UINT64 },  { "b1", ONX_BOOL },
    { "c8", ONX_COMPLEX64 }, { "c16", ONX_COMPLEX128 },
};

/* The contents of the header. */
typedef struct array {
    onx_dtype dtype;
    bool big_endian, columns, wide; /* columns: Fortran order; wide: strings of UTF-32 */
    uint64_t width;                 /* characters per string */
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX];
} array;

/* ---- the header ---- */

typedef struct header {
    onx_ctx *cx;
    const char *at, *end, *begin; /* begin: start of the file */
} header;

static onx_status bad(const header *h, const char *why)
{
    return onxi_fail(h->cx, ONX_E_MALFORMED, ONXI_AT_BYTE((uint64_t)(h->at - h->begin)), "%s", why);
}

static void skip_blanks(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n' || *h->at == '\r'))
        h->at++;
}

/* Skips blanks; consumes the character `c` if it comes next, and says if it did. */
static bool take(header *h, char c)
{
    skip_blanks(h);
    if (h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static bool take_word(header *h, const char *word)
{
    size_t len = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < len || memcmp(h->at, word, len) != 0)
        return false;
    h->at += len;
    return true;
}

/* Reads 'text' or "text" without escapes. */
static bool take_text(header *h, onx_str *out)
{
    skip_blanks(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return false;
    const char quote = *h->at, *from = h->at + 1, *to = from;
    while (to < h->end && *to != quote && *to != '\\' && *to != '\n')
        to++;
    if (to == h->end || *to != quote)
        return false;
    *out = onx_str_make(from, (size_t)(to - from));
    h->at = to + 1;
    return true;
}

/* Reads decimal digits as a number up to 2^63 - 1; false when there are none or the number is larger. */
static bool read_number(const char **at, const char *end, uint64_t *out)
{
    const char *p = *at;
    uint64_t n = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (!onxi_mul_u64(n, 10, &n) || !onxi_add_u64(n, (uint64_t)(*p - '0'), &n) || n > INT64_MAX)
            return false;
    bool some = p > *at;
    *at = p;
    *out = n;
    return some;
}

static onx_status read_descr(header *h, array *a)
{
    onx_str text;
    skip_blanks(h);
    if (h->at < h->end && *h->at == '[')
        return onxi_fail(h->cx, ONX_E_UNSUPPORTED, ONXI_AT_BYTE((uint64_t)(h->at - h->begin)),
                         "ONNX has no arrays of records");
    header start = *h;
    if (!take_text(h, &text))
        return bad(h, "descr is not a text");
    onx_str t = text;
    if (t.len && strchr("<>|=", *t.ptr)) {
        a->big_endian = *t.ptr == '>';
        t = onx_str_make(t.ptr + 1, t.len - 1);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (onx_str_is(t, types[i].descr))
            a->dtype = types[i].dtype;
    if (!a->dtype && t.len > 1 && (*t.ptr == 'U' || *t.ptr == 'S')) {
        const char *at = t.ptr + 1;
        if (!read_number(&at, onxi_str_end(t), &a->width) || at != onxi_str_end(t))
            return bad(&start, "the length of the texts is impossible");
        a->dtype = ONX_STRING;
        a->wide = *t.ptr == 'U';
    }
    if (a->dtype)
        return ONX_OK;
    onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_UNSUPPORTED, .value = text };
    diag.where = ONXI_AT_BYTE((uint64_t)(start.at - h->begin));
    onxi_report(h->cx, &diag, "ONNX does not have this element type");
    return ONX_E_UNSUPPORTED;
}

static onx_status read_order(header *h, array *a)
{
    a->columns = take_word(h, "True");
    return a->columns || take_word(h, "False") ? ONX_OK : bad(h, "fortran_order is neither True nor False");
}

/* Reads a tuple such as (), (3,) or (3, 4). */
static onx_status read_shape(header *h, array *a)
{
    bool comma = true;
    if (!take(h, '('))
        return bad(h, "shape is not a tuple");
    while (!take(h, ')')) {
        uint64_t dim;
        if (!comma)
            return bad(h, "a comma is missing in shape");
        if (a->rank == ONX_RANK_MAX)
            return bad(h, "shape has more than 64 dimensions");
        if (!read_number(&h->at, h->end, &dim))
            return bad(h, "a dimension is not a number from 0 to 2^63 - 1");
        if (h->at < h->end && *h->at == 'L') /* Python 2 wrote long integers with L */
            h->at++;
        a->dims[a->rank++] = (int64_t)dim;
        comma = take(h, ',');
    }
    return a->rank == 1 && !comma ? bad(h, "shape is a number in brackets, not a tuple") : ONX_OK;
}

static onx_status read_header(header *h, array *a)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    bool comma = true;
    if (!take(h, '{'))
        return bad(h, "the header is not a dict");
    while (!take(h, '}')) {
        onx_str key;
        if (!comma || !take_text(h, &key) || !take(h, ':'))
            return bad(h, "the header is not a dict of 'key': value");
        unsigned which = onx_str_is(key, "descr")           ? DESCR
                         : onx_str_is(key, "fortran_order") ? ORDER
                         : onx_str_is(key, "shape")         ? SHAPE
                                                            : 0;
        if (!which || seen & which)
            return bad(h, "the header has a key other than descr, fortran_order and shape, or a key twice");
        seen |= which;
        ONX_TRY(which == DESCR ? read_descr(h, a) : which == ORDER ? read_order(h, a) : read_shape(h, a));
        comma = take(h, ',');
    }
    skip_blanks(h);
    if (h->at < h->end)
        return bad(h, "the header has text after its dict");
    return seen == (DESCR | ORDER | SHAPE) ? ONX_OK : bad(h, "the header lacks descr, fortran_order or shape");
}

/* ---- the elements ---- */

static void swap_bytes(char *p, uint64_t count, size_t width)
{
    for (uint64_t i = 0; i < count; i++, p += width)
        for (size_t k = 0; k < width / 2; k++) {
            char c = p[k];
            p[k] = p[width - 1 - k];
            p[width - 1 - k] = c;
        }
}

/* Converts elements from column-major to row-major order. */
static void from_columns(const onx_value *v, const char *from, size_t width)
{
    int64_t pos[ONX_RANK_MAX] = { 0 };
    uint64_t stride[ONX_RANK_MAX], step = 1, at = 0;
    for (uint32_t d = v->rank; d-- > 0; step *= (uint64_t)v->dims[d])
        stride[d] = step;
    for (uint64_t i = 0; i < v->count; i++) {
        memcpy((char *)v->data + at * width, from + i * width, width);
        for (uint32_t d = 0; d < v->rank; d++) {
            at += stride[d];
            if (++pos[d] < v->dims[d])
                break;
            at -= stride[d] * (uint64_t)pos[d];
            pos[d] = 0;
        }
    }
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3f)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 0x3f)),
               out[2] = (char)(0x80 | (c & 0x3f)), 3;
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static uint32_t character(const array *a, const char *at)
{
    const uint8_t *p = (const uint8_t *)at;
    if (!a->wide)
        return p[0];
    return a->big_endian ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
                         : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Reads strings padded with zeros: type S of bytes, or U of UTF-32. `step` is the size of a string in the file. */
static onx_status read_texts(const header *h, const array *a, const char *from, size_t step, onx_value *v)
{
    const size_t unit = a->wide ? 4 : 1;
    /* UTF-8 is never longer than UTF-32, and the file has been checked to be that long. */
    const uint64_t room = step * v->count;
    if (!room)
        return ONX_OK;
    ONX_TRY(onxi_value_memory(v->cx, &v->text, v->text_room, room));
    v->text_room = room;
    v->text_spare = 0;
    onx_str *strings = v->data;
    char *to = v->text;
    for (uint64_t i = 0; i < v->count; i++, from += step) {
        size_t len = step;
        while (len && character(a, from + len - unit) == 0)
            len -= unit;
        char *start = to;
        for (size_t k = 0; k < len; k += unit) {
            uint32_t c = character(a, from + k);
            if (a->wide && (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)))
                return bad(h, "a text has a code point that is not a Unicode character");
            if (a->wide)
                to += put_utf8(to, c);
            else
                *to++ = (char)c;
        }
        strings[i] = onx_str_make(to > start ? start : NULL, (size_t)(to - start));
    }
    if (a->columns && v->rank > 1) {
        onx_value rows = *v;
        uint64_t size = v->count * sizeof *strings;
        rows.data = onxi_resize(v->cx, NULL, 0, size);
        if (!rows.data)
            return ONX_E_MEMORY;
        from_columns(&rows, v->data, sizeof *strings);
        memcpy(v->data, rows.data, size);
        onxi_release(v->cx, rows.data, size);
    }
    return ONX_OK;
}

static onx_status read_elements(const array *a, onx_str data, onx_value *v)
{
    const size_t width = onx_dtype_bits(a->dtype) / 8;
    if (a->columns && v->rank > 1)
        from_columns(v, data.ptr, width);
    else if (v->size)
        memcpy(v->data, data.ptr, v->size);
    if (a->big_endian && onx_dtype_class_of(a->dtype) == ONX_CLASS_COMPLEX)
        swap_bytes(v->data, v->count * 2, width / 2);
    else if (a->big_endian)
        swap_bytes(v->data, v->count, width);
    for (uint64_t i = 0; a->dtype == ONX_BOOL && i < v->count; i++) /* kernels rely on booleans being 0 or 1 */
        ((uint8_t *)v->data)[i] = ((const uint8_t *)v->data)[i] != 0;
    return ONX_OK;
}

/* Checks that the file is as long as its header promises, before memory is allocated. */
static onx_status check_size(const header *h, const array *a, size_t there, size_t *step)
{
    uint64_t count, size, width = onx_dtype_bits(a->dtype) / 8;
    if (a->dtype == ONX_STRING && !onxi_mul_u64(a->width, a->wide ? 4 : 1, &width))
        return bad(h, "the length of the texts is impossible");
    if (!onxi_dims_count(a->rank, a->dims, &count) || !onxi_mul_u64(count, width, &size))
        return bad(h, "the shape is impossible");
    if (count && !width)
        return bad(h, "texts of length 0");
    if (size > there)
        return onxi_fail(h->cx, ONX_E_MALFORMED, ONXI_AT_BYTE((uint64_t)(h->end - h->begin)),
                         "the array is cut short: %llu bytes are called for, %zu are there", (unsigned long long)size,
                         there);
    *step = (size_t)width;
    return ONX_OK;
}

onx_status onx_value_from_npy(onx_ctx *cx, onx_str bytes, onx_value **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    static const char magic[] = "\x93NUMPY";
    const uint8_t *p = (const uint8_t *)bytes.ptr;
    array a = { .dtype = ONX_UNDEFINED };
    header h = { .cx = cx, .at = bytes.ptr, .begin = bytes.ptr };
    if (bytes.len < 8 || memcmp(bytes.ptr, magic, sizeof magic - 1) != 0)
        return bad(&h, "this is not a NumPy array (.npy)");
    h.at += 6;
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return bad(&h, "the format version is not 1.0, 2.0 or 3.0");
    size_t start = p[6] == 1 ? 10 : 12, len = 0;
    h.at += 2;
    for (size_t i = start; i-- > 8 && bytes.len >= start;)
        len = len << 8 | p[i];
    if (bytes.len < start || len > bytes.len - start)
        return bad(&h, "the header is cut short");
    h.at = bytes.ptr + start;
    h.end = h.at + len;
    size_t step = 0;
    ONX_TRY(read_header(&h, &a));
    const onx_str data = onx_str_make(h.end, bytes.len - start - len);
    ONX_TRY(check_size(&h, &a, data.len, &step));
    ONX_TRY(onx_value_new_tensor(cx, a.dtype, a.rank, a.dims, out));
    onx_status status =
        a.dtype == ONX_STRING ? read_texts(&h, &a, data.ptr, step, *out) : read_elements(&a, data, *out);
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
    }
    return status;
}

onx_status onx_value_from_npz(onx_ctx *cx, onx_str bytes, onx_str name, onx_value **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    char *member;
    size_t len;
    ONX_TRY(onxi_zip_member(cx, bytes, name, ".npy", &member, &len));
    onx_status status = onx_value_from_npy(cx, onx_str_make(member, len), out);
    onxi_release(cx, member, len + 1);
    return status;
}

typedef struct each {
    onx_ctx *cx;
    bool (*wanted)(void *user, onx_str name);
    onx_status (*member)(void *user, onx_str name, onx_value *value);
    void *user;
} each;

static bool is_wanted(void *user, onx_str name)
{
    const each *e = user;
    return !e->wanted || e->wanted(e->user, name);
}

static onx_status read_member(void *user, onx_str name, onx_str bytes)
{
    const each *e = user;
    onx_value *value;
    ONX_TRY(onx_value_from_npy(e->cx, bytes, &value));
    const onx_status status = e->member(e->user, name, value);
    onx_value_free(value);
    return status;
}

onx_status onx_npz_each(onx_ctx *cx, onx_str bytes, bool (*wanted)(void *user, onx_str name),
                        onx_status (*member)(void *user, onx_str name, onx_value *value), void *user)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, member);
    each e = { cx, wanted, member, user };
    return onxi_zip_each(cx, bytes, ".npy", is_wanted, read_member, &e);
}

/* ---- writing ---- */

/* Writes the header and makes room for `size` bytes of elements at *elements. */
static onx_status start_file(onx_ctx *cx, const onx_value *v, const char *descr, uint64_t size, onx_buffer *out,
                             char **elements)
{
    char head[ONX_RANK_MAX * 21 + 128];
    size_t at = (size_t)snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < v->rank; i++)
        at += (size_t)snprintf(head + at, sizeof head - at, "%s%lld%s", i ? " " : "", (long long)v->dims[i],
                               i + 1 < v->rank || v->rank == 1 ? "," : "");
    at += (size_t)snprintf(head + at, sizeof head - at, "), }");
    const size_t padded = (10 + at + 1 + 63) / 64 * 64; /* elements start at a multiple of 64 bytes */
    const uint64_t limit = onx_ctx_limits(cx).memory;
    if (size > limit || size > SIZE_MAX / 2 - padded)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "an array of %llu bytes exceeds the memory limit of %llu bytes",
                         (unsigned long long)size, (unsigned long long)limit);
    char *all = onxi_resize(cx, NULL, 0, padded + (size_t)size);
    if (!all)
        return ONX_E_MEMORY;
    memcpy(all, "\x93NUMPY\x01\x00", 8);
    all[8] = (char)((padded - 10) & 0xff);
    all[9] = (char)((padded - 10) >> 8);
    memcpy(all + 10, head, at);
    memset(all + 10 + at, ' ', padded - 10 - at);
    all[padded - 1] = '\n';
    *out = (onx_buffer){ all, padded + (size_t)size, all, padded + (size_t)size, cx };
    *elements = all + padded;
    return ONX_OK;
}

/* The length of the longest string in characters; false if one is not UTF-8. */
static bool widest_text(const onx_value *v, uint64_t *width)
{
    const onx_str *texts = v->data;
    *width = 1;
    for (uint64_t i = 0; i < v->count; i++) {
        uint64_t n = 0;
        if (onxi_utf8_valid(texts[i]) != texts[i].len)
            return false;
        for (size_t k = 0; k < texts[i].len; k++)
            n += ((uint8_t)texts[i].ptr[k] & 0xc0) != 0x80;
        *width = n > *width ? n : *width;
    }
    return true;
}

/* Writes well-formed UTF-8 as little-endian UTF-32. */
static void put_utf32(char *to, onx_str text)
{
    const uint8_t *p = (const uint8_t *)text.ptr, *end = text.len ? p + text.len : p; /* an empty string may be NULL */
    while (p < end) {
        const unsigned more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
        uint32_t c = more ? *p & (0x3fu >> more) : *p;
        for (unsigned i = 1; i <= more; i++)
            c = c << 6 | (p[i] & 0x3fu);
        p += more + 1;
        for (unsigned i = 0; i < 4; i++)
            *to++ = (char)(c >> 8 * i & 0xff);
    }
}

/* Writes strings as type U (UTF-32), or as type S (bytes) if one of them is not UTF-8. */
static onx_status write_texts(onx_ctx *cx, const onx_value *v, onx_buffer *out)
{
    const onx_str *texts = v->data;
    uint64_t width, step, size;
    char descr[32], *to;
    const bool wide = widest_text(v, &width);
    if (!wide) {
        width = 1;
        for (uint64_t i = 0; i < v->count; i++)
            width = texts[i].len > width ? texts[i].len : width;
    }
    if (!onxi_mul_u64(width, wide ? 4 : 1, &step) || !onxi_mul_u64(step, v->count, &size))
        return onxi_no_memory(cx);
    snprintf(descr, sizeof descr, "%s%llu", wide ? "<U" : "|S", (unsigned long long)width);
    ONX_TRY(start_file(cx, v, descr, size, out, &to));
    if (size)
        memset(to, 0, (size_t)size);
    for (uint64_t i = 0; i < v->count; i++, to += step)
        if (wide)
            put_utf32(to, texts[i]);
        else if (texts[i].len)
            memcpy(to, texts[i].ptr, texts[i].len);
    return ONX_OK;
}

onx_status onx_value_to_npy(onx_ctx *cx, const onx_value *v, onx_buffer *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, v);
    ONXI_NEED(cx, out);
    char descr[8], *to;
    *out = (onx_buffer){ 0 };
    if (v->kind != ONX_VALUE_TENSOR)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "only tensors can be written as NumPy arrays");
    if (v->dtype == ONX_STRING)
        return write_texts(cx, v, out);
    onx_dtype_class class = onx_dtype_class_of(v->dtype);
    onx_dtype dtype = class == ONX_CLASS_FLOATING ? ONX_FLOAT : class == ONX_CLASS_SIGNED ? ONX_INT8 : ONX_UINT8;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types && !name; i++)
        if (types[i].dtype == (onx_dtype)v->dtype) {
            dtype = types[i].dtype;
            name = types[i].descr;
        }
    for (size_t i = 0; i < sizeof types / sizeof *types && !name; i++)
        if (types[i].dtype == dtype)
            name = types[i].descr;
    const unsigned bits = onx_dtype_bits(dtype);
    snprintf(descr, sizeof descr, "%c%s", bits == 8 ? '|' : '<', name);
    uint64_t size;
    if (!onxi_mul_u64(v->count, bits / 8, &size))
        return onxi_no_memory(cx);
    ONX_TRY(start_file(cx, v, descr, size, out, &to));
    if (dtype != (onx_dtype)v->dtype) {
        onx_status status = onx_convert(dtype, to, (onx_dtype)v->dtype, v->data, v->count, true);
        if (status != ONX_OK) {
            onxi_release(cx, out->base, out->base_size);
            *out = (onx_buffer){ 0 };
        }
        return status;
    }
    if (size)
        memcpy(to, v->data, (size_t)size);
    return ONX_OK;
}
