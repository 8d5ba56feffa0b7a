/* check_external.c - rules E: external data. ir_external.c parses and validates the entries of tensors, and
 * base_beneath.c opens files without following links, exactly as for reading the data (proto_external.c). Here the size
 * of each file is determined once; contents are not read. */
#include "check/check.h"
#include "proto/proto.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <onx/io.h>

const onx_rule onxi_check_rules_external[] = {
    { "E-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: External Tensor Data; ExternalData.md: external_data field",
      "An external tensor has a location, and it is not empty", "data_location EXTERNAL without entries" },
    { "E-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: External Tensor Data",
      "An external tensor has no inline data", "EXTERNAL with raw_data" },
    { "E-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "IR.md: External Tensor Data; onnx.in.proto: external_data",
      "The location is relative to the directory of the model file, with `/` as separator", "`/etc/passwd`" },
    { "E-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "ExternalData.md: external_data field; ExternalDataSecurity.md: Threat Model",
      "No component of the location is `..`", "`../w.bin`" },
    { "E-05", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Threat Model",
      "On every platform the location contains no backslash, no drive prefix, no alternate-stream colon and no device name",
      "`C:\\w.bin`" },
    { "E-06", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Threat Model",
      "The location contains no zero byte and is valid UTF-8", "`w.bin\\0x`" },
    { "E-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "ExternalDataSecurity.md: Layer 1; AssuranceCase.md: External data references",
      "After resolving links the file is inside the model directory, whatever component the link is in",
      "`dirlink/w.bin` with dirlink pointing elsewhere" },
    { "E-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Layers 2 and 3",
      "The last component is not a symbolic link; on opening no component is", "`link.bin`" },
    { "E-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Layers 1 to 4",
      "The location is an existing regular file", "a directory name" },
    { "E-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Layers 3 and 4",
      "The file has one hard link only, verified on the opened descriptor as well", "file with two names" },
    { "E-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, "E-09", "ExternalDataSecurity.md: Layer 3",
      "Check and open refer to the same file: containment is enforced by the kernel where it can be, else the opened descriptor is compared with the checked path",
      "file swapped between check and open" },
    { "E-12", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "ExternalData.md: Loading an ONNX Model with External Data",
      "A model without a directory (read from memory or a pipe) gets its external data only when the caller names a base directory; the current directory is never used silently",
      "model read from standard input with location `w.bin`" },
    { "E-13", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md",
      "A location starting with `#` gets no special treatment", "`#x` without such a file" },
    { "E-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Layer 2; ExternalData.md",
      "offset, if given, is a non-negative decimal integer in ASCII digits", "offset `-1`" },
    { "E-15", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Layer 2",
      "length, if given, is a non-negative decimal integer in ASCII digits", "length `abc`" },
    { "E-16", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Layer 3",
      "offset and offset plus length stay within the file, without overflow", "offset 9999 in an 8-byte file" },
    { "E-17", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "ExternalData.md: External data files; IR.md: Tensor Definition",
      "length equals the number of bytes the shape and type call for; without length the rest of the file holds at least that many",
      "dims 2 of FLOAT in a 3-byte file" },
    { "E-18", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "ExternalData.md: external_data field",
      "offset is a multiple of the page size, 4096 (64 KiB for Windows mapping)", "offset 17" },
    { "E-19", ONX_MAY, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: External Tensor Data; ExternalData.md",
      "checksum holds the SHA1 of the whole file named by location; when present we verify it", "checksum `0000`" },
    { "E-20", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "ExternalDataSecurity.md: Attribute Whitelist",
      "Only location, offset, length, checksum and basepath are recognised; other keys are ignored and reported",
      "key `evil`" },
    { "E-21", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: Notes",
      "A key does not repeat in one tensor's external_data", "location twice" },
    { "E-22", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "ExternalData.md; reference helper",
      "basepath is an in-memory hint: it is not trusted on reading and not written to files", "basepath `/etc`" },
    { "E-23", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "ExternalData.md: External data files",
      "The bytes in the file have the raw_data layout", "big-endian data" },
    { "E-24", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: External Tensor Data",
      "Tensors may share a file; overlapping ranges are pointed out", "accept: two tensors at different offsets" },
    { "E-25", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: raw_data",
      "A STRING tensor is not external", "STRING with EXTERNAL" },
    { "E-26", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "T-04", "onnx.in.proto: TensorProto",
      "Type, dims and all other tensor rules hold for external tensors as well", "EXTERNAL with dims -2" },
    { "E-27", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "ExternalData.md: data_location field",
      "external_data on a tensor whose location is DEFAULT is pointed out", "DEFAULT with location entry" },
    { "E-28", ONX_MUST, 0, ONX_BY_WRITER, ONX_RULE_ERROR, NULL, "ExternalDataSecurity.md: Protected Entry Points",
      "When writing, the same path rules apply before creation, links are not followed, data is appended, and a new file has the mode that the umask gives, as the model beside it",
      "saving through `link.bin`" },
    { "E-29", ONX_MUST, 0, ONX_BY_WRITER, ONX_RULE_ERROR, NULL, "reference helper",
      "When writing at a given offset, it lies between the current end of the file and 64 KiB beyond, the gap filled with zeros",
      "offset before the end of the file" },
    { "E-30", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_READER, ONX_RULE_ERROR, NULL,
      "ExternalDataSecurity.md: Known Limitations",
      "Case differences on case-insensitive file systems may cause refusal but never acceptance", "n/a" },
    { "E-31", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, "E-01", "ExternalData.md",
      "Tensors in initializers, sparse tensors, attributes, subgraphs, functions, function defaults and training graphs are all covered",
      "external tensor in a function default" },
    { 0 }
};

/* A file that tensors refer to; each one is examined once. */
typedef struct file_info {
    bool usable;
    uint64_t size;
    struct range *ranges; /* the tensors' ranges in it, newest first */
    uint32_t range_count;
} file_info;

typedef struct range {
    struct range *next;
    uint64_t offset, end;
    const onxi_check_at *at;
} range;

struct onxi_files {
    int dir; /* the document's folder, -1 if it cannot be opened */
    onxi_check_set *index;
    file_info **list;
    uint32_t count, room;
};

static bool open_files(onxi_check *k)
{
    if (k->files)
        return true;
    struct onxi_files *files = ONXI_NEW(k->arena, struct onxi_files);
    if (onxi_check_failed(k, files))
        return false;
    files->index = onxi_check_set_new(k);
    files->dir =
        k->doc->base_dir ? open(*k->doc->base_dir ? k->doc->base_dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    k->files = files;
    return true;
}

void onxi_check_files_close(onxi_check *k)
{
    if (k->files && k->files->dir >= 0)
        close(k->files->dir);
}

static void examine(onxi_check *k, const onxi_check_at *at, file_info *file, onx_str location)
{
    onx_str shown = onx_str_of(onxi_check_quote(k, location));
    if (!k->doc->base_dir) {
        onxi_check_find(
            k, at, "E-12",
            (onxi_check_detail){ .value = shown, .hint = onx_str_of("name the folder that external data is in") },
            "the model comes from no folder, so its external data cannot be found");
        return;
    }
    if (k->files->dir < 0) {
        onxi_check_find(k, at, "E-09", (onxi_check_detail){ .value = shown },
                        "the folder of the model cannot be opened");
        return;
    }
    onxi_diag_mark before = onxi_diag_here(k->cx);
    int fd = -1;
    file->usable = onxi_external_open(k->doc, k->files->dir, ONXI_NOWHERE, location, &fd, &file->size) == ONX_OK;
    if (file->usable) {
        close(fd);
    } else if (location.ptr[0] == '#') { /* the reference implementation marks in-memory data like this */
        onxi_diag_rewind(k->cx, before);
        onxi_check_find(k, at, "E-13", (onxi_check_detail){ .value = shown, .severity = ONX_RULE_WARNING },
                        "the data was kept in memory by the program that wrote the file, and there is no such file");
    } else {
        onxi_check_adopt(k, before, at, "E-09");
    }
}

static file_info *find_file(onxi_check *k, const onxi_check_at *at, onx_str location)
{
    uint32_t i;
    if (!open_files(k))
        return NULL;
    struct onxi_files *files = k->files;
    if (!onxi_check_set_add(k, files->index, location, files->count, &i))
        return files->list[i];
    file_info *file = ONXI_NEW(k->arena, file_info);
    if (!ONXI_GROW_IN(k->arena, files->list, files->room, (uint64_t)files->count + 1))
        file = NULL;
    if (onxi_check_failed(k, file))
        return NULL;
    files->list[files->count++] = file;
    examine(k, at, file, location);
    return file;
}

static void check_checksum_text(onxi_check *k, const onxi_check_at *at, onx_str s)
{
    bool hex = s.len == 40;
    for (size_t i = 0; i < s.len && hex; i++)
        hex = (s.ptr[i] >= '0' && s.ptr[i] <= '9') || ((s.ptr[i] | 32) >= 'a' && (s.ptr[i] | 32) <= 'f');
    if (!hex)
        onxi_check_find(k, at, "E-19",
                        (onxi_check_detail){ .severity = ONX_RULE_WARNING,
                                             .value = onx_str_of(onxi_check_quote(k, s)),
                                             .expected = onx_str_of("40 hexadecimal digits") },
                        "the checksum is no SHA-1");
}

/* Checks entries that do not describe the location of the data. */
static void check_keys(onxi_check *k, const onxi_check_at *at, const onx_tensor *t)
{
    for (uint32_t i = 0; i < t->external_data_count; i++) {
        const onx_string_string_entry *e = t->external_data[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, external_data, i, STRING_STRING_ENTRY, e);
        onx_str key = onx_view(e->key), value = onx_view(e->value);
        if (onx_str_is(key, "basepath"))
            onxi_check_find(k, here, "E-22", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, value)) },
                            "basepath has no meaning in a file and is ignored");
        else if (onx_str_is(key, "checksum"))
            check_checksum_text(k, here, value);
        else if (!onx_str_is(key, "location") && !onx_str_is(key, "offset") && !onx_str_is(key, "length"))
            onxi_check_find(k, here, "E-20", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)) },
                            "the key is not known and is ignored");
    }
}

/* Does the file contain all bytes of the tensor? */
static void check_range(onxi_check *k, const onxi_check_at *at, const onxi_external_ref *r, file_info *file, bool sized,
                        uint64_t size)
{
    uint64_t end, length = r->has_length ? r->length : sized ? size : 0;
    onxi_external_fault fault;
    if (!onxi_external_fits(r, sized, size, file->size, &end, &fault)) {
        onxi_check_find(
            k, at, fault.rule,
            (onxi_check_detail){ .value = onxi_check_text(k, "%llu bytes at %llu", (unsigned long long)length,
                                                          (unsigned long long)r->offset),
                                 .expected = onxi_check_text(k, "within %llu bytes", (unsigned long long)file->size) },
            "%s", fault.text);
        return;
    }
    if (!length || !k->notes)
        return;
    range *mine = ONXI_NEW(k->arena, range);
    if (onxi_check_failed(k, mine))
        return;
    *mine = (range){ .next = file->ranges, .offset = r->offset, .end = end, .at = onxi_check_at_keep(k, at) };
    file->ranges = mine;
    file->range_count++;
}

void onxi_check_external(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, bool sized, uint64_t size)
{
    onxi_external_ref r;
    onxi_external_fault fault;
    uint64_t end;
    const onxi_check_at *here = ONXI_AT(at, external_data);
    if (k->quick)
        return; /* checked again when the data is read */
    check_keys(k, at, t);
    if (!onxi_external_parse(t, &r, &fault)) {
        onxi_check_find(k, here, fault.rule,
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, fault.value)) }, "%s", fault.text);
        return;
    }
    if (r.offset % 4096)
        onxi_check_find(k, here, "E-18",
                        (onxi_check_detail){ .value = onxi_check_text(k, "%llu", (unsigned long long)r.offset),
                                             .expected = onx_str_of("a multiple of 4096") },
                        "the offset is not at the start of a page");
    if (!onxi_external_fits(&r, sized, size, UINT64_MAX, &end, &fault)) {
        onxi_check_find(k, here, fault.rule,
                        (onxi_check_detail){ .value = onxi_check_text(k, "%llu bytes", (unsigned long long)r.length),
                                             .expected = onxi_check_text(k, "%llu bytes", (unsigned long long)size) },
                        "%s", fault.text);
        return;
    }
    file_info *file = find_file(k, here, r.location);
    if (file && file->usable)
        check_range(k, here, &r, file, sized, size);
}

static int compare_ranges(const void *left, const void *right)
{
    const range *a = *(const range *const *)left, *b = *(const range *const *)right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

/* Finds ranges that overlap without being equal. */
void onxi_check_overlaps(onxi_check *k)
{
    for (uint32_t i = 0; k->files && i < k->files->count; i++) {
        file_info *file = k->files->list[i];
        range **all = ONXI_ARRAY(k->arena, range *, file->range_count + 1);
        if (onxi_check_failed(k, all))
            return;
        uint32_t n = 0;
        for (range *r = file->ranges; r; r = r->next)
            all[n++] = r;
        qsort(all, n, sizeof *all, compare_ranges);
        for (uint32_t j = 1; j < n; j++)
            if (all[j]->offset < all[j - 1]->end &&
                (all[j]->offset != all[j - 1]->offset || all[j]->end != all[j - 1]->end))
                onxi_check_find(
                    k, all[j]->at, "E-24",
                    (onxi_check_detail){ .value = onxi_check_text(k, "%llu", (unsigned long long)all[j]->offset),
                                         .severity = ONX_RULE_NOTE },
                    "the data overlaps that of another tensor in the file");
    }
}

/* Verifying reads every file once; its diagnostics become findings. */
void onxi_check_checksums(onxi_check *k)
{
    onxi_diag_mark before = onxi_diag_here(k->cx);
    onx_doc reader = onxi_doc_reader(k->doc, k->cx, k->arena);
    if (onx_external_verify(&reader) != ONX_OK)
        onxi_check_adopt(k, before, NULL, "E-19");
    onxi_doc_reader_close(&reader);
}
