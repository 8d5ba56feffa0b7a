/* io_file.c - loads and saves documents in any format. */
#include "io/io.h"

#include <onx/text.h>

#include <limits.h>
#include <sys/stat.h>

/* The size limit of most protobuf implementations (rule W-26). */
#define COMMON_LIMIT ((uint64_t)0x7fffffff)

bool onxi_io_folder_of(const char *path, char *buf, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *from = !slash ? "." : slash == path ? "/" : path;
    size_t len = !slash || slash == path ? 1 : (size_t)(slash - path);
    if (len >= size)
        return false;
    memcpy(buf, from, len);
    buf[len] = 0;
    return true;
}

/* ---- loading ---- */

static const char *name_of(onx_format format)
{
    switch (format) {
    case ONX_FORMAT_ONNXTXT:
        return "ONNX text";
    case ONX_FORMAT_TEXTPROTO:
        return "protobuf text";
    case ONX_FORMAT_JSON:
        return "JSON";
    default:
        return "the binary format";
    }
}

/* Determines the format if the caller did not give it; file name and content have to agree. */
static onx_status find_format(onx_ctx *cx, const char *path, onx_str bytes, onx_format *out)
{
    onx_format named = strcmp(path, "-") == 0 ? ONX_FORMAT_AUTO : onx_format_of_path(path);
    onxi_io_look look = onxi_io_look_at(bytes);
    *out = named != ONX_FORMAT_AUTO ? named : look.format != ONX_FORMAT_AUTO ? look.format : ONX_FORMAT_BINARY;
    bool foreign = look.what && look.format == ONX_FORMAT_AUTO;
    /* strings of ONNX text may contain any bytes */
    bool binary_as_text = !look.what && bytes.len && *out != ONX_FORMAT_BINARY && *out != ONX_FORMAT_ONNXTXT;
    bool text_as_binary = *out == ONX_FORMAT_BINARY && look.format != ONX_FORMAT_AUTO;
    bool other_text = (*out == ONX_FORMAT_JSON) != (look.format == ONX_FORMAT_JSON) && look.format != ONX_FORMAT_AUTO;
    if (!foreign && !binary_as_text && !text_as_binary && !other_text)
        return ONX_OK;
    if (foreign && *out != ONX_FORMAT_BINARY && onx_str_equal(onx_str_of(look.what), onx_str_of("text")))
        return ONX_OK; /* the parser gives a better error message */
    onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_MALFORMED, .rule = "W-01", .where = ONXI_NOWHERE };
    if (!foreign)
        diag.hint = onx_str_of("give the format, or the file the extension that belongs to it");
    if (named != ONX_FORMAT_AUTO)
        onxi_report(cx, &diag, "the name says %s, but the content looks like %s", name_of(named),
                    look.what ? look.what : "binary data");
    else
        onxi_report(cx, &diag, "the content looks like %s", look.what);
    return ONX_E_MALFORMED;
}

static const char *word_of(onx_kind guess)
{
    return guess == ONX_KIND_MODEL    ? "model"
           : guess == ONX_KIND_TENSOR ? "tensor"
           : guess == ONX_KIND_GRAPH  ? "graph"
                                      : "operator-set";
}

static onx_status read_binary(onx_ctx *cx, onx_kind kind, onx_str bytes, const onx_load_options *options, onx_doc **out)
{
    onx_status status = onx_read(cx, kind, bytes, options->flags, options->threads, out);
    const onx_model *model = status == ONX_OK ? onx_doc_model(*out) : NULL;
    bool odd = status == ONX_E_MALFORMED || (model && !model->graph && !ONX_HAS(model, model, ir_version));
    if (!odd)
        return status;
    if (bytes.len == 0) {
        onxi_warn(cx, ONX_WARNING, "W-01", ONXI_NOWHERE, "the file is empty");
        return status;
    }
    const onx_kind guess = onx_kind_guess(bytes);
    onxi_io_look look = onxi_io_look_at(bytes);
    if (look.what)
        onxi_warn(cx, ONX_NOTE, "W-01", ONXI_NOWHERE, "the content looks like %s", look.what);
    else if (guess && guess != kind)
        onxi_warn(cx, ONX_NOTE, "W-01", ONXI_NOWHERE, "the file looks like %s %s (--as %s), not a %s",
                  guess == ONX_KIND_OPERATOR_SET ? "an" : "a", onx_kind_proto_name(guess), word_of(guess),
                  onx_kind_proto_name(kind));
    return status;
}

static uint32_t text_flags(uint32_t flags)
{
    return (flags & ONX_READ_LENIENT ? ONX_TEXT_LENIENT : 0u) | (flags & ONX_READ_COPY ? 0u : ONX_TEXT_BORROW);
}

static onx_status read_as(onx_ctx *cx, onx_kind kind, onx_format format, onx_str bytes, const onx_load_options *options,
                          onx_doc **out)
{
    switch (format) {
    case ONX_FORMAT_ONNXTXT:
        return onx_text_parse(cx, kind, bytes, text_flags(options->flags), out);
    case ONX_FORMAT_TEXTPROTO:
        return onx_textproto_read(cx, kind, bytes, out);
    case ONX_FORMAT_JSON:
        return onx_json_read(cx, kind, bytes, out);
    default:
        return read_binary(cx, kind, bytes, options, out);
    }
}

/* Records the file, its folder and its size in the document. */
static onx_status settle(onx_doc *doc, const char *path, const onx_load_options *options, onxi_file *file)
{
    char folder[PATH_MAX];
    const char *base = options->base_dir;
    doc->input_size = file->bytes.len;
    doc->input_id = file->id;
    doc->input_path = onxi_arena_printf(doc->arena, "%s", path);
    if (!doc->input_path.ptr)
        return ONX_E_MEMORY;
    doc->links = (options->flags & ONX_READ_LINKS) != 0;
    if (!base && strcmp(path, "-") != 0 && file->id.inode) {
        if (!onxi_io_folder_of(path, folder, sizeof folder))
            return onxi_fail(doc->cx, ONX_E_IO, ONXI_NOWHERE, "the path is longer than any path may be");
        base = folder;
    }
    ONX_TRY(onx_doc_set_base_dir(doc, base));
    ONX_TRY(onxi_doc_guard(doc));
    if (!(options->flags & ONX_READ_COPY))
        return onxi_doc_keep_input(doc, file);
    return ONX_OK;
}

static onx_status load(onx_ctx *cx, onx_kind kind, const char *path, const onx_load_options *own, onx_doc **out)
{
    onxi_file file;
    onx_doc *doc = NULL;
    /* reads the file instead of mapping it, so that it may change meanwhile */
    bool copy = (own->flags & ONX_READ_COPY) != 0;
    const unsigned stream = own->flags & ONX_READ_STREAM ? ONXI_FILE_STREAM : 0u;
    ONX_TRY(onxi_file_take(cx, path, (copy ? 0u : ONXI_FILE_MAP) | stream, &file));
    onx_format format = own->format;
    onx_status status = format == ONX_FORMAT_AUTO ? find_format(cx, path, file.bytes, &format) : ONX_OK;
    if (status == ONX_OK)
        status = read_as(cx, kind, format, file.bytes, own, &doc);
    if (status == ONX_OK)
        status = settle(doc, path, own, &file);
    if (status != ONX_OK) {
        onx_doc_free(doc);
        doc = NULL;
    }
    onxi_file_close(cx, &file);
    *out = doc;
    return status;
}

onx_status onx_load(onx_ctx *cx, onx_kind kind, const char *path, const onx_load_options *options, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, path);
    ONXI_OPTIONS(cx, onx_load_options, own, options);
    ONXI_CALL_TO_MAKE(cx, out, onx_doc_free, load(cx, kind, path, &own, out));
}

/* ---- saving ---- */

static onx_status write_as(onx_ctx *cx, onx_kind kind, onx_format format, const void *root, onx_sink sink)
{
    switch (format) {
    case ONX_FORMAT_ONNXTXT:
        return onx_text_print(cx, kind, root, NULL, sink);
    case ONX_FORMAT_TEXTPROTO:
        return onx_textproto_write(cx, kind, root, sink);
    case ONX_FORMAT_JSON:
        return onx_json_write(cx, kind, root, sink);
    default:
        return onx_write_to(cx, kind, root, sink);
    }
}

static onx_status write_model(onx_doc *doc, onx_format format, const void *root, onxi_output *output)
{
    onxi_io_stream stream = { .output = output, .doc = doc };
    ONX_TRY(write_as(doc->cx, doc->kind, format, root, onxi_io_stream_sink(&stream)));
    if (format == ONX_FORMAT_BINARY && onxi_output_size(output) > COMMON_LIMIT && doc->input_size <= COMMON_LIMIT)
        onxi_warn(doc->cx, ONX_WARNING, "W-26", ONXI_NOWHERE,
                  "the file is larger than 2147483647 bytes, which other readers refuse; external data avoids that");
    return onxi_output_complete(output);
}

static onx_status stop_at_external(void *user, const onx_visit *at)
{
    (void)user;
    return at->kind == ONX_KIND_TENSOR && onx_tensor_is_external(at->message) ? ONX_E_CANCELLED : ONX_OK;
}

/* External references are not changed, so they are only valid if the new file is in the same folder. */
static void warn_other_folder(onx_doc *doc, const char *path)
{
    char folder[PATH_MAX];
    struct stat from, to;
    if (!doc->base_dir || strcmp(path, "-") == 0 || !onxi_io_folder_of(path, folder, sizeof folder) ||
        stat(*doc->base_dir ? doc->base_dir : ".", &from) != 0 || stat(folder, &to) != 0 ||
        (from.st_dev == to.st_dev && from.st_ino == to.st_ino) || !S_ISDIR(to.st_mode))
        return;
    if (onx_message_walk(doc->cx, doc->kind, doc->root, stop_at_external, NULL) == ONX_E_CANCELLED)
        onxi_warn(doc->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "external data stays in %s, but is looked for beside the new file", doc->base_dir);
}

static onx_status save(onx_doc *doc, const char *path, onx_format format, const onx_external_options *external)
{
    onxi_io_move *move = NULL;
    onxi_output *output;
    const void *root = doc->root;
    if (!external)
        warn_other_folder(doc, path);
    /* Opened before the data files, so that none of them can have the model's name. */
    ONX_TRY(onxi_output_open_over(doc->cx, path, doc->input_id, &output));
    onx_status status = external ? onxi_io_move_begin(doc, external, path, &move, &root) : ONX_OK;
    if (status == ONX_OK)
        status = write_model(doc, format, root, output);
    if (status == ONX_OK)
        status = move ? onxi_io_move_commit(move, output, path) : onxi_output_commit(output);
    else
        onxi_output_abandon(output);
    onxi_io_move_end(move);
    return status;
}

static onx_status save_guarded(onx_doc *doc, const char *path, onx_format format, const onx_external_options *external)
{
    onxi_doc_read_ahead(doc);
    ONX_TRY(onxi_guard_enter(doc->cx));
    onx_status status = onxi_doc_guard(doc);
    if (status == ONX_OK)
        status = save(doc, path, format, external);
    onxi_guard_leave(doc->cx);
    return status;
}

onx_status onx_save(onx_ctx *cx, const onx_doc *const_doc, const char *path, const onx_save_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, const_doc);
    ONXI_NEED(cx, path);
    ONXI_OPTIONS(cx, onx_save_options, own, options);
    ONXI_OPTIONS(cx, onx_external_options, external, own.external);
    onx_doc *doc = (onx_doc *)(uintptr_t)const_doc; /* its messages are not changed, but data files may be mapped */
    onx_format format = own.format;
    if (doc->cx != cx)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document belongs to another context");
    if (format == ONX_FORMAT_AUTO && strcmp(path, "-") != 0)
        format = onx_format_of_path(path);
    if (format == ONX_FORMAT_AUTO)
        format = ONX_FORMAT_BINARY;
    ONXI_CALL(cx, save_guarded(doc, path, format, own.external ? &external : NULL));
}

onx_status onx_load_bytes(onx_ctx *cx, const char *path, onx_buffer *out)
{
    return onx_load_bytes_as(cx, path, 0, out);
}

onx_status onx_load_bytes_as(onx_ctx *cx, const char *path, uint32_t flags, onx_buffer *out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, path);
    ONXI_NEED(cx, out);
    onxi_file file;
    *out = (onx_buffer){ 0 };
    ONX_TRY(onxi_file_take(cx, path, flags & ONX_READ_STREAM ? ONXI_FILE_STREAM : 0u, &file));
    *out = (onx_buffer){ (char *)(uintptr_t)file.bytes.ptr, file.bytes.len, file.heap, file.heap_size, cx };
    return ONX_OK;
}

onx_status onx_save_bytes(onx_ctx *cx, const char *path, onx_str bytes)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, path);
    onxi_output *output;
    ONX_TRY(onxi_output_open(cx, path, &output));
    onx_status status = onxi_output_write(output, bytes);
    if (status == ONX_OK)
        return onxi_output_commit(output);
    onxi_output_abandon(output);
    return status;
}
