/* cli_npy.c - NumPy's .npy format: a magic, a header that is a Python dict, the elements. */
#include "cli_value.h"

#include <stdlib.h>

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

static onx_status bad(cli_call *call, const char *what, const char *why)
{
    cli_error(call, "%s: %s", what, why);
    return ONX_E_MALFORMED;
}

/* The text after 'key': in the header, or NULL. */
static const char *after_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at)
        return NULL;
    at += strlen(key);
    while (*at == '\'' || *at == '"' || *at == ':' || *at == ' ')
        at++;
    return at;
}

/* Elements in column order become rows. */
static void from_columns(const onx_value *v, const char *from, size_t width)
{
    int64_t pos[ONX_RANK_MAX] = { 0 };
    for (uint64_t i = 0; i < v->count; i++) {
        uint64_t at = 0;
        for (uint32_t d = 0; d < v->rank; d++)
            at = at * (uint64_t)v->dims[d] + (uint64_t)pos[d];
        memcpy((char *)v->data + at * width, from + i * width, width);
        for (uint32_t d = 0; d < v->rank && ++pos[d] == v->dims[d]; d++)
            pos[d] = 0;
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
    out[0] = (char)(0xf0 | (c >> 18 & 7));
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* <U12: UTF-32 padded with zeros; S12: bytes padded with zeros. */
static onx_status read_texts(cli_call *call, const char *what, onx_str data, bool wide, size_t width, onx_value *v)
{
    size_t step = wide ? width * 4 : width;
    if (step ? data.len / step < v->count : 0)
        return bad(call, what, "the array is cut short");
    char *all = malloc(data.len * 2 + 1);
    if (!all)
        return ONX_E_MEMORY;
    size_t at = 0;
    for (uint64_t i = 0; i < v->count; i++) {
        size_t start = at;
        for (size_t k = 0; k < width; k++) {
            uint32_t c;
            if (wide)
                memcpy(&c, data.ptr + i * step + k * 4, 4);
            else
                c = (uint8_t)data.ptr[i * step + k];
            if (!c)
                break;
            if (wide)
                at += put_utf8(all + at, c);
            else
                all[at++] = (char)c;
        }
        ((onx_str *)v->data)[i] = onx_str_make(all + start, at - start);
    }
    onx_str first = v->count ? ((const onx_str *)v->data)[0] : (onx_str){ 0 };
    onx_status status = v->count ? onx_value_set_text(v, 0, first) : ONX_OK; /* copies all of them */
    free(all);
    return status;
}

static onx_status read_array(cli_call *call, const char *what, const char *header, onx_str data, onx_value **out)
{
    const char *descr = after_key(header, "'descr'"), *order = after_key(header, "'fortran_order'"),
               *shape = after_key(header, "'shape'");
    if (!descr || !order || !shape || *shape != '(')
        return bad(call, what, "the header lacks descr, fortran_order or shape");
    if (*descr == '>')
        return bad(call, what, "big-endian arrays are not supported");
    descr += *descr == '<' || *descr == '|' || *descr == '=';
    size_t len = strcspn(descr, "'\"");
    onx_dtype dtype = ONX_UNDEFINED;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].descr) == len && memcmp(types[i].descr, descr, len) == 0)
            dtype = types[i].dtype;
    bool wide = *descr == 'U', text = wide || *descr == 'S';
    if (!dtype && !text)
        return bad(call, what, "the element type is not one of ONNX");
    int64_t dims[ONX_RANK_MAX];
    uint32_t rank = 0;
    for (const char *at = shape + 1; *at && *at != ')';) {
        char *end;
        long long dim = strtoll(at, &end, 10);
        if (end == at) {
            at++;
            continue;
        }
        if (rank == ONX_RANK_MAX || dim < 0)
            return bad(call, what, "the shape is impossible");
        dims[rank++] = dim;
        at = end;
    }
    ONX_TRY(onx_value_new_tensor(call->cx, text ? ONX_STRING : dtype, rank, dims, out));
    onx_value *v = *out;
    if (text)
        return read_texts(call, what, data, wide, (size_t)strtoul(descr + 1, NULL, 10) & 0xffffffu, v);
    if (data.len < v->size)
        return bad(call, what, "the array is cut short");
    if (strncmp(order, "True", 4) == 0 && v->rank > 1)
        from_columns(v, data.ptr, onx_dtype_bits(dtype) / 8);
    else if (v->size)
        memcpy(v->data, data.ptr, v->size);
    return ONX_OK;
}

onx_status cli_npy_read(cli_call *call, const char *what, onx_str bytes, onx_value **out)
{
    *out = NULL;
    if (bytes.len < 12 || memcmp(bytes.ptr, "\x93NUMPY", 6) != 0)
        return bad(call, what, "this is no NumPy array");
    const uint8_t *p = (const uint8_t *)bytes.ptr;
    size_t start = p[6] == 1 ? 10 : 12;
    size_t len = p[6] == 1 ? (size_t)(p[8] | p[9] << 8)
                           : (size_t)p[8] | (size_t)p[9] << 8 | (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (len > bytes.len - start)
        return bad(call, what, "the header is cut short");
    char *header = malloc(len + 1);
    if (!header)
        return ONX_E_MEMORY;
    memcpy(header, bytes.ptr + start, len);
    header[len] = 0;
    onx_status status =
        read_array(call, what, header, onx_str_make(bytes.ptr + start + len, bytes.len - start - len), out);
    free(header);
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- writing ---- */

static onx_status save_array(cli_call *call, const char *path, const char *descr, const onx_value *v, const void *data,
                             uint64_t size)
{
    char dims[ONX_RANK_MAX * 21 + 4] = "", header[2048];
    size_t at = 0;
    for (uint32_t i = 0; i < v->rank; i++)
        at +=
            (size_t)snprintf(dims + at, sizeof dims - at, "%lld,%s", (long long)v->dims[i], i + 1 < v->rank ? " " : "");
    int n = snprintf(header + 10, sizeof header - 80, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr,
                     dims);
    size_t len = (size_t)n + 10, padded = (len + 1 + 63) / 64 * 64; /* the elements start at a multiple of 64 */
    memset(header + len, ' ', padded - len);
    header[padded - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01", 8);
    header[7] = 0;
    header[8] = (char)((padded - 10) & 0xff);
    header[9] = (char)((padded - 10) >> 8);
    char *all = malloc(padded + size);
    if (!all)
        return ONX_E_MEMORY;
    memcpy(all, header, padded);
    if (size)
        memcpy(all + padded, data, size);
    onx_status status = onx_save_bytes(call->cx, path, onx_str_make(all, padded + size));
    free(all);
    return status;
}

static onx_status save_texts(cli_call *call, const char *path, const onx_value *v)
{
    const onx_str *texts = v->data;
    size_t width = 1;
    for (uint64_t i = 0; i < v->count; i++)
        width = texts[i].len > width ? texts[i].len : width;
    char *data = v->count > SIZE_MAX / 2 / width ? NULL : calloc(v->count ? v->count : 1, width);
    if (!data)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < v->count; i++)
        if (texts[i].len)
            memcpy(data + i * width, texts[i].ptr, texts[i].len);
    char descr[32];
    snprintf(descr, sizeof descr, "|S%zu", width);
    onx_status status = save_array(call, path, descr, v, data, v->count * width);
    free(data);
    return status;
}

onx_status cli_npy_write(cli_call *call, const char *path, const onx_value *v)
{
    if (v->kind != ONX_VALUE_TENSOR) {
        cli_error(call, "%s: only tensors can be written as NumPy arrays", path);
        return ONX_E_UNSUPPORTED;
    }
    if (v->dtype == ONX_STRING)
        return save_texts(call, path, v);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].dtype != (onx_dtype)v->dtype)
            continue;
        char descr[8];
        snprintf(descr, sizeof descr, "%c%s", onx_dtype_bits(v->dtype) == 8 ? '|' : '<', types[i].descr);
        return save_array(call, path, descr, v, v->data, v->size);
    }
    onx_dtype_class class = onx_dtype_class_of(v->dtype);
    onx_dtype wide = class == ONX_CLASS_FLOATING ? ONX_FLOAT : class == ONX_CLASS_SIGNED ? ONX_INT8 : ONX_UINT8;
    size_t width = onx_dtype_bits(wide) / 8;
    void *data = v->count > SIZE_MAX / 8 ? NULL : malloc(v->count * width + 1);
    if (!data)
        return ONX_E_MEMORY;
    onx_status status = onx_convert(wide, data, (onx_dtype)v->dtype, v->data, v->count, true);
    if (status == ONX_OK)
        status = save_array(call, path,
                            wide == ONX_FLOAT  ? "<f4"
                            : wide == ONX_INT8 ? "|i1"
                                               : "|u1",
                            v, data, v->count * width);
    free(data);
    return status;
}
