/* ir_tensor.c - reads the elements of a tensor from any field or file. The number of entries is checked against type
 * and shape before anything is allocated or read. */
#include <onx/io.h>

#include "ir/ir.h"

#include <stdio.h>

/* The source of a tensor's elements: bytes in the layout of raw_data, or entries of a wider type. */
typedef struct source {
    onx_ctx *cx; /* NULL: errors are not recorded */
    const onx_tensor *tensor;
    onx_dtype dtype;
    uint64_t count;           /* elements */
    uint64_t size;            /* bytes in the layout of raw_data */
    const char *bytes;        /* the layout of raw_data; NULL: one of the two below is used, unless the tensor is
                               * empty */
    const int32_t *entries32; /* an entry is one element, or several packed ones */
    onxi_packing packing;     /* of elements smaller than a byte */
    const uint64_t *entries64;
    const onxi_tensor_part *part; /* or slices of that layout */
} source;

static onx_status wrong(const source *s, onx_status status, const char *format, ...) ONX_PRINTF(3, 4);
static onx_status wrong(const source *s, onx_status status, const char *format, ...)
{
    if (!s->cx)
        return status;
    char path[160];
    onx_str name = onx_view(s->tensor->name);
    int n =
        snprintf(path, sizeof path, "tensor \"%.*s\"", name.len > 120 ? 120 : (int)name.len, name.len ? name.ptr : "");
    onx_diag diag = { .severity = ONX_ERROR, .status = status };
    diag.where = ONXI_AT_PATH(onx_str_make(path, n < (int)sizeof path ? (size_t)n : sizeof path - 1));
    va_list args;
    va_start(args, format);
    onxi_vreport(s->cx, &diag, format, args);
    va_end(args);
    return status;
}

bool onx_tensor_is_external(const onx_tensor *tensor)
{
    if (!tensor)
        return false;
    return ONX_HAS(tensor, tensor, data_location) && tensor->data_location == ONX_DATA_EXTERNAL;
}

bool onx_tensor_count(const onx_tensor *tensor, uint64_t *count_out)
{
    if (!tensor || !count_out)
        return false;
    uint64_t count = 1;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < tensor->dims_count; i++) {
        if (tensor->dims[i] < 0)
            return false;
        if (tensor->dims[i] == 0)
            empty = true;
        else
            fits = fits && onxi_mul_u64(count, (uint64_t)tensor->dims[i], &count);
    }
    *count_out = empty ? 0 : count;
    return fits || empty;
}

/* ---- typed fields ---- */

const char *const onxi_data_field_names[] = { "no field",   "float_data",  "int32_data",  "string_data",
                                              "int64_data", "double_data", "uint64_data", "raw_data" };

onxi_data_field onxi_data_field_of(int32_t dtype)
{
    const onxi_data_field field = (onxi_data_field)onxi_dtype_row_of(dtype)->field;
    return field ? field : ONXI_IN_INT32;
}

uint64_t onxi_data_field_count(const onx_tensor *tensor, onxi_data_field in)
{
    switch (in) {
    case ONXI_IN_FLOAT:
        return tensor->float_data_count;
    case ONXI_IN_INT32:
        return tensor->int32_data_count;
    case ONXI_IN_STRING:
        return tensor->string_data_count;
    case ONXI_IN_INT64:
        return tensor->int64_data_count;
    case ONXI_IN_DOUBLE:
        return tensor->double_data_count;
    case ONXI_IN_UINT64:
        return tensor->uint64_data_count;
    case ONXI_IN_RAW:
        return onx_view(tensor->raw_data).len;
    default:
        return 0;
    }
}

onxi_packing onxi_packing_of(int64_t dtype, uint64_t elements, uint64_t entries)
{
    const onxi_dtype_row *row = onxi_dtype_row_of(dtype);
    if (row->entry != ONXI_ENTRY_BYTE)
        return entries == elements ? ONXI_PACKED_SINGLY : ONXI_PACKED_NOT;
    uint64_t per_byte = 8 / row->bits, per_word = 32 / row->bits;
    if (entries == elements / per_byte + (elements % per_byte != 0))
        return ONXI_PACKED_BYTES;
    if (entries == elements / per_word + (elements % per_word != 0))
        return ONXI_PACKED_WORDS;
    return entries == elements ? ONXI_PACKED_SINGLY : ONXI_PACKED_NOT;
}

/* The number of entries that the typed field must have: twice the number of elements for complex types; for packed
 * types the number of bytes, to which they are narrowed. */
static bool entries_for(const source *s, uint64_t *out)
{
    if (onx_dtype_class_of(s->dtype) == ONX_CLASS_COMPLEX)
        return onxi_mul_u64(s->count, 2, out);
    *out = onx_dtype_bits(s->dtype) < 8 ? s->size : s->count;
    return true;
}

static onx_status open_typed(source *s)
{
    const onx_tensor *t = s->tensor;
    onxi_data_field in = onxi_data_field_of((int32_t)s->dtype);
    uint64_t have = onxi_data_field_count(t, in);
    uint64_t want;
    bool fits = entries_for(s, &want) && have == want;
    if (onx_dtype_bits(s->dtype) < 8) {
        s->packing = onxi_packing_of(s->dtype, s->count, have);
        fits = s->packing != ONXI_PACKED_NOT;
    }
    if (!fits)
        return wrong(s, ONX_E_INVALID, "%s has %llu entries, but %llu elements of %s are declared",
                     onxi_data_field_names[in], (unsigned long long)have, (unsigned long long)s->count,
                     onx_dtype_name(s->dtype));
    switch (in) {
    case ONXI_IN_FLOAT:
        s->bytes = t->float_data;
        break;
    case ONXI_IN_DOUBLE:
        s->bytes = t->double_data;
        break;
    case ONXI_IN_INT64:
        s->bytes = (const char *)t->int64_data;
        break;
    case ONXI_IN_UINT64:
        if (s->dtype == ONX_UINT64)
            s->bytes = (const char *)t->uint64_data;
        else
            s->entries64 = t->uint64_data;
        break;
    case ONXI_IN_INT32:
        if (s->dtype == ONX_INT32)
            s->bytes = (const char *)t->int32_data;
        else
            s->entries32 = t->int32_data;
        break;
    default: /* strings were refused before */
        break;
    }
    return ONX_OK;
}

/* The valid range of an entry: that of signed types, of unsigned bit patterns, and 0 and 1 for booleans. */
static void entry_range(onx_dtype dtype, int64_t *low, int64_t *high)
{
    unsigned bits = onx_dtype_bits(dtype);
    if (onx_dtype_class_of(dtype) == ONX_CLASS_SIGNED) {
        *low = -((int64_t)1 << (bits - 1));
        *high = ((int64_t)1 << (bits - 1)) - 1;
    } else {
        *low = 0;
        *high = dtype == ONX_BOOL ? 1 : ((int64_t)1 << bits) - 1;
    }
}

static onx_status wrong_entry(const source *s, uint64_t index)
{
    return wrong(s, ONX_E_INVALID, "entry %llu of int32_data is %d, outside of the range of %s",
                 (unsigned long long)index, s->entries32[index], onx_dtype_name(s->dtype));
}

/* Bytes first .. first+n-1 of packed elements. */
static onx_status narrow_packed(const source *s, uint64_t first, uint64_t n, char *out)
{
    const unsigned bits = onx_dtype_bits(s->dtype), mask = (1u << bits) - 1;
    int32_t low = onx_dtype_class_of(s->dtype) == ONX_CLASS_SIGNED ? -(1 << (bits - 1)) : 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = first + i;
        uint32_t byte = 0;
        if (s->packing == ONXI_PACKED_WORDS) {
            byte = (uint32_t)s->entries32[at / 4] >> (at % 4 * 8) & 0xff;
        } else if (s->packing == ONXI_PACKED_BYTES) {
            byte = (uint32_t)s->entries32[at];
            if (byte > 0xff)
                return wrong_entry(s, at);
        } else {
            const uint64_t group = at / bits * 8; /* 8 elements are `bits` bytes */
            const unsigned bit = (unsigned)(at % bits) * 8;
            for (unsigned e = bit / bits; e * bits < bit + 8 && group + e < s->count; e++) {
                const uint64_t k = group + e;
                if (s->entries32[k] < low || s->entries32[k] > (int32_t)mask)
                    return wrong_entry(s, k);
                const uint32_t code = (uint32_t)s->entries32[k] & mask;
                byte |= e * bits >= bit ? code << (e * bits - bit) : code >> (bit - e * bits);
            }
        }
        out[i] = (char)byte;
    }
    return ONX_OK;
}

/* Converts entries first .. first+n-1 to the layout of raw_data. */
static onx_status narrow(const source *s, uint64_t first, uint64_t n, char *out)
{
    if (s->part) {
        uint64_t entries;
        entries_for(s, &entries);
        const uint64_t width = s->size / entries;
        onxi_part_copy(s->part, first * width, n * width, out);
        return ONX_OK;
    }
    if (s->entries64) { /* UINT32 */
        for (uint64_t i = 0; i < n; i++) {
            uint64_t x = s->entries64[first + i];
            uint32_t low = (uint32_t)x;
            if (x > UINT32_MAX)
                return wrong(s, ONX_E_INVALID, "entry %llu of uint64_data is %llu, which uint32 cannot hold",
                             (unsigned long long)(first + i), (unsigned long long)x);
            memcpy(out + i * sizeof low, &low, sizeof low);
        }
        return ONX_OK;
    }
    if (onx_dtype_bits(s->dtype) < 8)
        return narrow_packed(s, first, n, out);
    int64_t low, high;
    size_t size = onx_dtype_bits(s->dtype) / 8;
    entry_range(s->dtype, &low, &high);
    for (uint64_t i = 0; i < n; i++) {
        int32_t x = s->entries32[first + i];
        if (x < low || x > high)
            return wrong_entry(s, first + i);
        memcpy(out + i * size, &x, size); /* little-endian: the low bytes come first */
    }
    return ONX_OK;
}

/* ---- any tensor ---- */

static onx_status open_source(onx_doc *doc, const onx_tensor *tensor, source *s)
{
    memset(s, 0, sizeof *s);
    s->cx = doc ? doc->cx : NULL;
    s->tensor = tensor;
    s->dtype = (onx_dtype)tensor->data_type;
    if (s->dtype == ONX_STRING)
        return wrong(s, ONX_E_UNSUPPORTED, "strings have no layout in bytes");
    if (onx_dtype_bits(tensor->data_type) == 0)
        return wrong(s, ONX_E_INVALID, "data_type %d is no element type", tensor->data_type);
    if (ONX_HAS(tensor, tensor, segment))
        return wrong(s, ONX_E_UNSUPPORTED, "the tensor is one segment of a larger one");
    if (!onx_tensor_count(tensor, &s->count) || !onx_dtype_size(s->dtype, s->count, &s->size) || s->size > SIZE_MAX)
        return wrong(s, ONX_E_INVALID, "dims are negative or their product overflows");
    s->part = onxi_doc_part(doc, tensor);
    if (s->part)
        return s->part->run * s->part->runs == s->size
                   ? ONX_OK
                   : wrong(s, ONX_E_INVALID, "a part of %llu bytes cannot be %llu bytes",
                           (unsigned long long)(s->part->run * s->part->runs), (unsigned long long)s->size);
    if (onx_tensor_is_external(tensor)) {
        onx_str bytes = { NULL, 0 };
        if (!doc || !doc->external_bytes)
            return wrong(s, ONX_E_MISUSE, "external data can be read only through the document of a file");
        ONX_TRY(doc->external_bytes(doc, tensor, &bytes));
        s->bytes = bytes.ptr;
        if (bytes.len != s->size)
            return wrong(s, ONX_E_INVALID, "external data has %zu bytes, %llu are declared", bytes.len,
                         (unsigned long long)s->size);
        return ONX_OK;
    }
    onx_str raw = onx_view(tensor->raw_data);
    bool typed = tensor->float_data_count || tensor->double_data_count || tensor->int32_data_count ||
                 tensor->int64_data_count || tensor->uint64_data_count;
    if (raw.len && typed)
        return wrong(s, ONX_E_INVALID, "elements are given both in raw_data and in a typed field");
    if (typed || (raw.len == 0 && s->count != 0))
        return open_typed(s);
    if (raw.len != s->size)
        return wrong(s, ONX_E_INVALID, "raw_data has %zu bytes, but %llu elements of %s are declared", raw.len,
                     (unsigned long long)s->count, onx_dtype_name(s->dtype));
    s->bytes = raw.ptr;
    return ONX_OK;
}

onx_status onx_tensor_bytes(onx_doc *doc, const onx_tensor *tensor, onx_str *out)
{
    ONXI_NEED(onx_doc_ctx(doc), tensor);
    ONXI_NEED(onx_doc_ctx(doc), out);
    source s;
    *out = onx_str_make("", 0);
    ONX_TRY(open_source(doc, tensor, &s));
    if (s.size == 0)
        return ONX_OK;
    if (s.bytes) {
        *out = onx_str_make(s.bytes, (size_t)s.size);
        return ONX_OK;
    }
    if (!doc)
        return ONX_E_MISUSE;
    uint64_t entries;
    char *made = onxi_arena_get(doc->arena, (size_t)s.size);
    if (!made)
        return ONX_E_MEMORY;
    entries_for(&s, &entries);
    ONX_TRY(narrow(&s, 0, entries, made));
    *out = onx_str_make(made, (size_t)s.size);
    return ONX_OK;
}

onx_status onxi_tensor_measure(onx_doc *doc, const onx_tensor *tensor, uint64_t *size_out)
{
    source s;
    ONX_TRY(open_source(doc, tensor, &s));
    *size_out = s.size;
    return ONX_OK;
}

onx_status onxi_tensor_copy(onx_doc *doc, const onx_tensor *tensor, void *out, uint64_t size)
{
    source s;
    ONX_TRY(open_source(doc, tensor, &s));
    if (s.size != size)
        return wrong(&s, ONX_E_INVALID, "the tensor holds %llu bytes, its dims ask for %llu",
                     (unsigned long long)s.size, (unsigned long long)size);
    if (!size)
        return ONX_OK;
    if (s.bytes) {
        memcpy(out, s.bytes, (size_t)size);
        return ONX_OK;
    }
    uint64_t entries;
    entries_for(&s, &entries);
    return narrow(&s, 0, entries, out);
}

enum { WINDOW = 1024 }; /* elements that are narrowed at a time; a multiple of the number of elements per byte */

onx_status onxi_tensor_stream(onx_doc *doc, const onx_tensor *tensor, onx_sink sink)
{
    source s;
    ONX_TRY(open_source(doc, tensor, &s));
    if (s.size == 0)
        return ONX_OK;
    if (s.bytes)
        return sink.write(sink.user, onx_str_make(s.bytes, (size_t)s.size));
    uint64_t entries;
    entries_for(&s, &entries);
    size_t size = (size_t)(s.size / entries); /* bytes that one entry is narrowed to */
    for (uint64_t at = 0, n; at < entries; at += n) {
        char window[WINDOW * 8];
        n = entries - at < WINDOW ? entries - at : WINDOW;
        ONX_TRY(narrow(&s, at, n, window));
        ONX_TRY(sink.write(sink.user, onx_str_make(window, (size_t)n * size)));
    }
    return ONX_OK;
}

bool onxi_tensor_is_sound(const onx_tensor *tensor)
{
    source s;
    if (onx_tensor_is_external(tensor))
        return false;
    return open_source(NULL, tensor, &s) == ONX_OK;
}

/* Elements first .. first+count-1 converted to `to`, whose elements must be whole bytes. */
static onx_status get(onx_doc *doc, const onx_tensor *tensor, uint64_t first, uint64_t count, onx_dtype to, void *out)
{
    source s;
    ONX_TRY(open_source(doc, tensor, &s));
    if (first > s.count || count > s.count - first)
        return wrong(&s, ONX_E_MISUSE, "elements %llu to %llu were asked for, there are %llu",
                     (unsigned long long)first, (unsigned long long)(first + count), (unsigned long long)s.count);
    unsigned bits = onx_dtype_bits(s.dtype);
    if (s.bytes) {
        if (bits < 8) {
            onxi_convert(to, out, s.dtype, s.bytes, first, count, true);
        } else if (count) {
            onxi_convert(to, out, s.dtype, s.bytes + first * (bits / 8), 0, count, true);
        }
        return ONX_OK;
    }
    const unsigned group = bits < 8 ? 8 : 1, step = bits < 8 ? bits : 1; /* a group of elements is `step` entries */
    size_t to_size = onx_dtype_bits(to) / 8;
    for (uint64_t done = 0; done < count;) {
        char window[WINDOW * 8];
        uint64_t at = first + done, entry = at / group * step, skipped = at % group;
        uint64_t n = count - done < WINDOW - skipped ? count - done : WINDOW - skipped;
        ONX_TRY(narrow(&s, entry, bits < 8 ? ((skipped + n) * bits + 7) / 8 : n, window));
        onxi_convert(to, (char *)out + done * to_size, s.dtype, window, skipped, n, true);
        done += n;
    }
    return ONX_OK;
}

onx_status onx_tensor_get_f64(onx_doc *doc, const onx_tensor *tensor, uint64_t first, uint64_t count, double *out)
{
    ONXI_NEED(onx_doc_ctx(doc), tensor);
    ONXI_NEED(onx_doc_ctx(doc), out || !count);
    return get(doc, tensor, first, count, ONX_DOUBLE, out);
}

onx_status onx_tensor_get_f32(onx_doc *doc, const onx_tensor *tensor, uint64_t first, uint64_t count, float *out)
{
    ONXI_NEED(onx_doc_ctx(doc), tensor);
    ONXI_NEED(onx_doc_ctx(doc), out || !count);
    return get(doc, tensor, first, count, ONX_FLOAT, out);
}

onx_status onx_tensor_get_i64(onx_doc *doc, const onx_tensor *tensor, uint64_t first, uint64_t count, int64_t *out)
{
    ONXI_NEED(onx_doc_ctx(doc), tensor);
    ONXI_NEED(onx_doc_ctx(doc), out || !count);
    ONX_TRY(get(doc, tensor, first, count, ONX_INT64, out));
    if (tensor->data_type == ONX_UINT64)
        for (uint64_t i = 0; i < count; i++)
            if (out[i] < 0)
                out[i] = INT64_MAX;
    return ONX_OK;
}

onx_status onx_tensor_get_text(const onx_tensor *tensor, uint64_t index, onx_str *out)
{
    ONXI_NEED(NULL, tensor);
    ONXI_NEED(NULL, out);
    uint64_t count;
    *out = onx_str_make("", 0);
    if (tensor->data_type != ONX_STRING)
        return ONX_E_MISUSE;
    if (!onx_tensor_count(tensor, &count) || count != tensor->string_data_count || onx_tensor_is_external(tensor))
        return ONX_E_INVALID;
    if (index >= count)
        return ONX_E_MISUSE;
    *out = onx_view(tensor->string_data[index]);
    return ONX_OK;
}
