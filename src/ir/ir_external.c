/* ir_external.c - parses the location of external data; no file is accessed here (docs/notes/external_data.md). Rule
 * ids are those that `onx check` reports. */
#include "ir/ir.h"

static bool fault(onxi_external_fault *f, const char *rule, const char *text, onx_str value)
{
    *f = (onxi_external_fault){ rule, text, value };
    return false;
}

/* CON, PRN, AUX, NUL, COM1 .. LPT9, with any extension, are devices on Windows. */
static bool is_device_name(onx_str part)
{
    static const char *const names[] = { "con", "prn", "aux", "nul", "com", "lpt" };
    size_t stem = 0;
    while (stem < part.len && part.ptr[stem] != '.')
        stem++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (stem != (i < 4 ? 3u : 4u))
            continue;
        bool same = i < 4 || (part.ptr[3] >= '1' && part.ptr[3] <= '9');
        for (size_t j = 0; j < 3; j++)
            same = same && (part.ptr[j] | 0x20) == names[i][j];
        if (same)
            return true;
    }
    return false;
}

bool onxi_location_is_sound(onx_str s, onxi_external_fault *f)
{
    if (s.len == 0)
        return fault(f, "E-01", "an external tensor has no location", s);
    if (memchr(s.ptr, 0, s.len))
        return fault(f, "E-06", "the location holds a zero byte", s);
    if (onxi_utf8_valid(s) != s.len)
        return fault(f, "E-06", "the location is not UTF-8", s);
    if (s.ptr[0] == '/')
        return fault(f, "E-03", "the location is absolute", s);
    if (memchr(s.ptr, '\\', s.len))
        return fault(f, "E-05", "the location holds a backslash", s);
    if (memchr(s.ptr, ':', s.len))
        return fault(f, "E-05", "the location holds a colon", s);
    if (s.len > ONXI_LOCATION_MAX)
        return fault(f, "E-09", "the location is longer than any path", s);
    onx_str part = { NULL, 0 };
    for (size_t at = 0; at <= s.len; at += part.len + 1) {
        const char *slash = memchr(s.ptr + at, '/', s.len - at);
        part = onx_str_make(s.ptr + at, slash ? (size_t)(slash - s.ptr) - at : s.len - at);
        if (onx_str_is(part, ".."))
            return fault(f, "E-04", "the location goes up a folder", s);
        if (is_device_name(part))
            return fault(f, "E-05", "the location names a device", s);
    }
    if (part.len == 0 || onx_str_is(part, "."))
        return fault(f, "E-09", "the location names a folder", s);
    return true;
}

/* Parses decimal digits only, within 64 bits. */
static bool parse_size(onx_str s, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || !onxi_mul_u64(v, 10, &v) ||
            !onxi_add_u64(v, (uint64_t)(s.ptr[i] - '0'), &v))
            return false;
    *out = v;
    return s.len > 0;
}

static bool has_inline_data(const onx_tensor *t)
{
    return onx_view(t->raw_data).len || t->float_data_count || t->double_data_count || t->int32_data_count ||
           t->int64_data_count || t->uint64_data_count || t->string_data_count;
}

bool onxi_external_parse(const onx_tensor *t, onxi_external_ref *out, onxi_external_fault *f)
{
    enum { LOCATION, OFFSET, LENGTH, CHECKSUM, KEYS };
    static const char *const keys[KEYS] = { "location", "offset", "length", "checksum" };
    onx_str values[KEYS] = { { NULL, 0 } };
    bool seen[KEYS] = { false };
    memset(out, 0, sizeof *out);
    if (t->data_type == ONX_STRING)
        return fault(f, "E-25", "strings cannot be stored in an external file", (onx_str){ NULL, 0 });
    if (has_inline_data(t))
        return fault(f, "E-02", "an external tensor holds data as well", (onx_str){ NULL, 0 });
    for (uint32_t i = 0; i < t->external_data_count; i++) {
        onx_str key = onx_view(t->external_data[i]->key);
        for (int k = 0; k < KEYS; k++) { /* other keys, such as basepath, have no meaning in a file */
            if (!onx_str_is(key, keys[k]))
                continue;
            if (seen[k])
                return fault(f, "E-21", "a key is there twice in external_data", key);
            seen[k] = true;
            values[k] = onx_view(t->external_data[i]->value);
        }
    }
    if (seen[OFFSET] && !parse_size(values[OFFSET], &out->offset))
        return fault(f, "E-14", "the offset is no decimal number of bytes", values[OFFSET]);
    if (seen[LENGTH] && !parse_size(values[LENGTH], &out->length))
        return fault(f, "E-15", "the length is no decimal number of bytes", values[LENGTH]);
    out->has_length = seen[LENGTH];
    out->location = values[LOCATION];
    out->has_checksum = seen[CHECKSUM];
    out->checksum = values[CHECKSUM];
    return onxi_location_is_sound(out->location, f);
}

bool onxi_external_fits(const onxi_external_ref *r, bool sized, uint64_t size, uint64_t file_size, uint64_t *end,
                        onxi_external_fault *f)
{
    const onx_str none = { NULL, 0 };
    if (r->has_length && sized && r->length != size)
        return fault(f, "E-17", "the length does not fit the type and shape", none);
    if (r->offset > file_size ||
        !onxi_add_u64(r->offset,
                      r->has_length ? r->length
                      : sized       ? size
                                    : 0,
                      end) ||
        (r->has_length && *end > file_size))
        return fault(f, "E-16", "the data does not lie within the file", none);
    if (*end > file_size)
        return fault(f, "E-17", "the file is too short for the type and shape", none);
    return true;
}
