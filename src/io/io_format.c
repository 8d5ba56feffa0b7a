/* io_format.c - determines the format of a file from its name and its first bytes. */
#include "io/io.h"

static bool same_word(onx_str a, const char *lower)
{
    if (a.len != strlen(lower))
        return false;
    for (size_t i = 0; i < a.len; i++)
        if ((a.ptr[i] >= 'A' && a.ptr[i] <= 'Z' ? a.ptr[i] | 0x20 : a.ptr[i]) != lower[i])
            return false;
    return true;
}

onx_format onx_format_of_path(const char *path)
{
    if (!path)
        return ONX_FORMAT_AUTO;
    static const struct {
        const char *extension;
        onx_format format;
    } rows[] = {
        { "onnx", ONX_FORMAT_BINARY },         { "pb", ONX_FORMAT_BINARY },       { "onnxtxt", ONX_FORMAT_ONNXTXT },
        { "textproto", ONX_FORMAT_TEXTPROTO }, { "pbtxt", ONX_FORMAT_TEXTPROTO }, { "prototxt", ONX_FORMAT_TEXTPROTO },
        { "json", ONX_FORMAT_JSON },
    };
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot)
        return ONX_FORMAT_AUTO;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (same_word(onx_str_of(dot + 1), rows[i].extension))
            return rows[i].format;
    return ONX_FORMAT_AUTO;
}

/* ---- content ---- */

static bool begins(onx_str s, const char *with, size_t len)
{
    return s.len >= len && memcmp(s.ptr, with, len) == 0;
}

/* Other formats that users may pass by mistake; none of them begins like an ONNX file. */
static const char *foreign(onx_str s)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *what;
    } rows[] = {
        { "PK\3\4", 4, "a zip archive (PyTorch files and .npz are such)" },
        { "PK\5\6", 4, "an empty zip archive" },
        { "\x93NUMPY", 6, "a NumPy array (.npy)" },
        { "\x1f\x8b", 2, "gzip data" },
        { "\x28\xb5\x2f\xfd", 4, "zstd data" },
        { "BZh", 3, "bzip2 data" },
        { "\xfd"
          "7zXZ",
          5, "xz data" },
        { "\x89HDF\r\n", 6, "an HDF5 file" },
        { "GGUF", 4, "a GGUF file" },
        { "\x89PNG", 4, "a PNG image" },
        { "\xff\xd8\xff", 3, "a JPEG image" },
        { "%PDF", 4, "a PDF file" },
        { "\x7f"
          "ELF",
          4, "an ELF program or library" },
        { "version https://git-lfs", 23, "a Git LFS pointer, not the file itself" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (begins(s, rows[i].bytes, rows[i].len))
            return rows[i].what;
    if (s.len >= 8 && memcmp(s.ptr + 4, "TFL3", 4) == 0)
        return "a TensorFlow Lite model";
    if (s.len >= 10 && s.ptr[8] == '{' && s.ptr[9] == '"')
        return "a safetensors file";
    if (s.len >= 3 && s.ptr[0] == (char)0x80 && s.ptr[1] >= 2 && s.ptr[1] <= 5 &&
        (s.ptr[2] == '}' || s.ptr[2] == ']' || s.ptr[2] == 'c' || s.ptr[2] == (char)0x95 || s.ptr[2] == (char)0x8a))
        return "a Python pickle";
    return NULL;
}

/* Is it text: UTF-8 without control characters except white space? */
static bool is_text(onx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f)
            return false;
    }
    return s.len - onxi_utf8_valid(s) < 4; /* the last character may be cut off */
}

static size_t skip_space(onx_str s, size_t i)
{
    for (; i < s.len; i++) {
        if (s.ptr[i] == '#')
            while (i < s.len && s.ptr[i] != '\n')
                i++;
        else if (s.ptr[i] != ' ' && s.ptr[i] != '\t' && s.ptr[i] != '\r' && s.ptr[i] != '\n' && s.ptr[i] != '\f')
            break;
    }
    return i < s.len ? i : s.len;
}

static onxi_io_look look_at_text(onx_str s)
{
    size_t i = begins(s, "\xef\xbb\xbf", 3) ? 3 : 0;
    i = skip_space(s, i);
    char c = i < s.len ? s.ptr[i] : 0;
    if (c == '{')
        return (onxi_io_look){ ONX_FORMAT_JSON, "JSON" };
    if (c == '<') {
        char next = i + 1 < s.len ? s.ptr[i + 1] : 0;
        size_t j = i + 1;
        while (j < s.len && (s.ptr[j] == '_' || (s.ptr[j] >= 'a' && s.ptr[j] <= 'z')))
            j++;
        j = skip_space(s, j);
        if (next == '!' || next == '?' || (j < s.len && j > i + 1 && s.ptr[j] == '>'))
            return (onxi_io_look){ ONX_FORMAT_AUTO, "HTML or XML" };
        return (onxi_io_look){ ONX_FORMAT_ONNXTXT, "ONNX text" };
    }
    size_t word = i;
    while (i < s.len && (s.ptr[i] == '_' || (s.ptr[i] >= '0' && s.ptr[i] <= '9') ||
                         ((s.ptr[i] | 0x20) >= 'a' && (s.ptr[i] | 0x20) <= 'z')))
        i++;
    if (i == word)
        return (onxi_io_look){ ONX_FORMAT_AUTO, c ? "text" : NULL };
    i = skip_space(s, i);
    c = i < s.len ? s.ptr[i] : 0;
    if (c == ':' || c == '{')
        return (onxi_io_look){ ONX_FORMAT_TEXTPROTO, "protobuf text" };
    if (c == '(' || c == '<' || c == '=' || c == '[' || c == ',' || c == '.')
        return (onxi_io_look){ ONX_FORMAT_ONNXTXT, "ONNX text" };
    return (onxi_io_look){ ONX_FORMAT_AUTO, "text" };
}

onxi_io_look onxi_io_look_at(onx_str bytes)
{
    const char *what = foreign(bytes);
    if (what)
        return (onxi_io_look){ ONX_FORMAT_AUTO, what };
    onx_str head = onx_str_make(bytes.ptr, bytes.len < 4096 ? bytes.len : 4096);
    if (head.len == 0 || !is_text(head))
        return (onxi_io_look){ ONX_FORMAT_AUTO, NULL };
    return look_at_text(head);
}

/* ---- kind of message ---- */

static bool read_varint(onx_str *s, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; s->len && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)*s->ptr++;
        s->len--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* The wire types of the top-level fields 1 to 63, as a mask per field; false if the bytes are not a message. */
static bool scan(onx_str s, uint8_t seen[64])
{
    memset(seen, 0, 64);
    while (s.len) {
        uint64_t tag, value;
        if (!read_varint(&s, &tag) || tag >> 3 == 0)
            return false;
        uint64_t skip = 0;
        switch (tag & 7) {
        case 0:
            if (!read_varint(&s, &value))
                return false;
            break;
        case 1:
            skip = 8;
            break;
        case 2:
            if (!read_varint(&s, &skip))
                return false;
            break;
        case 5:
            skip = 4;
            break;
        default:
            return false;
        }
        if (skip > s.len)
            return false;
        s = onx_str_make(s.ptr + skip, s.len - (size_t)skip);
        if (tag >> 3 < 64)
            seen[tag >> 3] |= (uint8_t)(1u << (tag & 7));
    }
    return true;
}

onx_kind onx_kind_guess(onx_str bytes)
{
    enum { VARINT = 1 << 0, LEN = 1 << 2 };
    uint8_t seen[64];
    static const char magic[] = "\x0a\x09ONNXOPSET";
    if (begins(bytes, magic, sizeof magic - 1))
        return ONX_KIND_OPERATOR_SET;
    if (bytes.len == 0 || !scan(bytes, seen))
        return ONX_KIND_NONE;
    if (seen[1] == VARINT && seen[7] == LEN)
        return ONX_KIND_MODEL;
    if (seen[2] == VARINT && (seen[1] & ~(VARINT | LEN)) == 0 &&
        (seen[9] | seen[4] | seen[5] | seen[6] | seen[7] | seen[10] | seen[13]) == LEN)
        return ONX_KIND_TENSOR;
    if (seen[1] == LEN && seen[2] == LEN && (seen[11] | seen[12]) == LEN && !(seen[3] | seen[4]))
        return ONX_KIND_GRAPH;
    return ONX_KIND_NONE;
}
