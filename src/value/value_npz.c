/* value_npz.c - writes NumPy's .npz format: a zip archive of .npy files, not compressed, so that no library is needed.
 * Sizes beyond 32 bits use ZIP64. Source: APPNOTE.TXT, 4.3 and 4.5.3. */
#include <onx/npy.h>

#include "value/value.h"

typedef struct member {
    onx_buffer array;
    onx_str name;
    uint64_t at; /* offset of its local header */
    uint32_t crc;
} member;

typedef struct archive {
    char *bytes;
    uint64_t at;
} archive;

enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, LOCATOR = 20, EXTRA_LOCAL = 20, EXTRA_CENTRAL = 28 };
static const char suffix[] = ".npy";

static void crc_table(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        table[i] = c;
    }
}

static uint32_t crc_of(const uint32_t table[256], const char *bytes, size_t len)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < len; i++)
        c = table[(c ^ (uint8_t)bytes[i]) & 0xff] ^ c >> 8;
    return c ^ 0xffffffffu;
}

/* Writes a little-endian number of `width` bytes. */
static void put(archive *a, uint64_t number, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        a->bytes[a->at++] = (char)(number >> 8 * i & 0xff);
}

static void put_text(archive *a, onx_str text)
{
    if (text.len)
        memcpy(a->bytes + a->at, text.ptr, text.len);
    a->at += text.len;
}

/* Writes the fields that local and central headers share: from the required version to the length of the name. */
static void put_facts(archive *a, const member *m)
{
    put(a, 45, 2);     /* ZIP64 */
    put(a, 0x0800, 2); /* names are UTF-8 */
    put(a, 0, 2);      /* not compressed */
    put(a, 0, 2);      /* the earliest time and date, so that equal values give equal files */
    put(a, 0x21, 2);
    put(a, m->crc, 4);
    put(a, UINT32_MAX, 4); /* sizes are in the extra field */
    put(a, UINT32_MAX, 4);
    put(a, m->name.len + sizeof suffix - 1, 2);
}

static void put_name(archive *a, const member *m)
{
    put_text(a, m->name);
    put_text(a, onx_str_of(suffix));
}

static void put_member(archive *a, member *m)
{
    m->at = a->at;
    put(a, 0x04034b50, 4);
    put_facts(a, m);
    put(a, EXTRA_LOCAL, 2);
    put_name(a, m);
    put(a, 1, 2);
    put(a, EXTRA_LOCAL - 4, 2);
    put(a, m->array.len, 8);
    put(a, m->array.len, 8);
    put_text(a, onx_str_make(m->array.ptr, m->array.len));
}

static void put_entry(archive *a, const member *m)
{
    put(a, 0x02014b50, 4);
    put(a, 45, 2);
    put_facts(a, m);
    put(a, EXTRA_CENTRAL, 2);
    put(a, 0, 2); /* no comment, on disk 0, no attributes */
    put(a, 0, 2);
    put(a, 0, 2);
    put(a, 0, 4);
    put(a, UINT32_MAX, 4); /* the offset is in the extra field */
    put_name(a, m);
    put(a, 1, 2);
    put(a, EXTRA_CENTRAL - 4, 2);
    put(a, m->array.len, 8);
    put(a, m->array.len, 8);
    put(a, m->at, 8);
}

static void put_end(archive *a, uint32_t count, uint64_t directory)
{
    const uint64_t end = a->at;
    put(a, 0x06064b50, 4);
    put(a, END64 - 12, 8);
    put(a, 45, 2);
    put(a, 45, 2);
    put(a, 0, 4);
    put(a, 0, 4);
    put(a, count, 8);
    put(a, count, 8);
    put(a, end - directory, 8);
    put(a, directory, 8);
    put(a, 0x07064b50, 4);
    put(a, 0, 4);
    put(a, end, 8);
    put(a, 1, 4);
    put(a, 0x06054b50, 4);
    put(a, 0, 4);
    put(a, count < UINT16_MAX ? count : UINT16_MAX, 2);
    put(a, count < UINT16_MAX ? count : UINT16_MAX, 2);
    put(a, UINT32_MAX, 4);
    put(a, UINT32_MAX, 4);
    put(a, 0, 2);
}

static onx_status write_archive(onx_ctx *cx, member *members, uint32_t count, onx_buffer *out)
{
    uint64_t size = END64 + LOCATOR + END;
    const uint64_t limit = onx_ctx_limits(cx).memory;
    uint32_t table[256];
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t names = 2 * (members[i].name.len + sizeof suffix - 1);
        if (!onxi_add_u64(size, members[i].array.len, &size) ||
            !onxi_add_u64(size, names + LOCAL + EXTRA_LOCAL + CENTRAL + EXTRA_CENTRAL, &size))
            return onxi_no_memory(cx);
    }
    if (size > limit || size > SIZE_MAX / 2)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "an archive of %llu bytes exceeds the memory limit of %llu bytes", (unsigned long long)size,
                         (unsigned long long)limit);
    archive a = { .bytes = onxi_resize(cx, NULL, 0, (size_t)size) };
    if (!a.bytes)
        return ONX_E_MEMORY;
    crc_table(table);
    for (uint32_t i = 0; i < count; i++) {
        members[i].crc = crc_of(table, members[i].array.ptr, members[i].array.len);
        put_member(&a, &members[i]);
    }
    const uint64_t directory = a.at;
    for (uint32_t i = 0; i < count; i++)
        put_entry(&a, &members[i]);
    put_end(&a, count, directory);
    *out = (onx_buffer){ a.bytes, (size_t)a.at, a.bytes, (size_t)size, cx };
    return ONX_OK;
}

onx_status onx_value_to_npz(onx_ctx *cx, const onx_value *const *values, const onx_str *names, uint32_t count,
                            onx_buffer *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, out);
    *out = (onx_buffer){ 0 };
    if (count) {
        ONXI_NEED(cx, values);
        ONXI_NEED(cx, names);
    }
    member *members = onxi_resize(cx, NULL, 0, (count + (size_t)1) * sizeof *members);
    if (!members)
        return ONX_E_MEMORY;
    memset(members, 0, (count + (size_t)1) * sizeof *members);
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < count && status == ONX_OK; i++) {
        members[i].name = names[i];
        if (!values[i])
            status = onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "value %u of the archive is missing", i);
        else if (names[i].len > UINT16_MAX - sizeof suffix)
            status = onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "a name of %zu bytes is too long for a zip archive",
                               names[i].len);
        else
            status = onx_value_to_npy(cx, values[i], &members[i].array);
    }
    if (status == ONX_OK)
        status = write_archive(cx, members, count, out);
    for (uint32_t i = 0; i < count; i++)
        onx_buffer_free(&members[i].array);
    onxi_release(cx, members, (count + (size_t)1) * sizeof *members);
    return status;
}
