/* reader.c - ImageReader: decodes a file whose name is an input. The name is untrusted, so the file must be where
 * external data of the model may be (docs/notes/external_data.md). */
#include "kernel/contrib/contrib.h"
#include "kernel/core/image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct params {
    onxi_image image;
    const char *folder; /* absolute path: the process may change its working directory */
    bool links;
} params;

static onx_status refuse_to_prepare(const onx_prepare *p, const char *hint, const char *format, const char *text)
{
    onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_INVALID };
    diag.hint = onx_str_of(hint);
    diag.where = onxi_kernel_place(p->ops, p->place, p->arena);
    onxi_report(p->cx, &diag, "%s%s", format, text);
    return ONX_E_INVALID;
}

static onx_status reader_prepare(onx_prepare *p)
{
    static const char hint[] = "name the folder that external data is in";
    char folder[PATH_MAX], reason[128];
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (params){ .image = { .channels = 3, .backward = true, .batch = true }, .links = p->doc->links };
    ONX_TRY(onxi_image_prepare(p, &q->image));
    if (!p->doc->base_dir)
        return refuse_to_prepare(p, hint, "the model comes from no folder, so no file beside it can be read", "");
    if (!realpath(*p->doc->base_dir ? p->doc->base_dir : ".", folder))
        return refuse_to_prepare(p, hint, "the folder that files are read from cannot be opened: ",
                                 onxi_error_text(errno, reason, sizeof reason));
    q->folder = onxi_arena_printf(p->arena, "%s", folder).ptr;
    if (!q->folder)
        return ONX_E_MEMORY;
    p->params = q;
    return ONX_OK;
}

/* Reads the whole file into memory, so that another process cannot truncate it meanwhile. */
static onx_status decode(onx_work *work, const params *q, const char *shown, int fd, uint64_t size)
{
    onxi_file file;
    if (size > SIZE_MAX || !onxi_ctx_hold(work->cx, size))
        return onx_work_fail(work, ONX_E_LIMIT, "reading the %llu bytes of %s exceeds the memory limit",
                             (unsigned long long)size, shown);
    onx_status status = onxi_file_load(work->cx, fd, (size_t)size, shown, &file);
    if (status == ONX_OK)
        status = onxi_image_decode(work, &q->image, file.bytes);
    onxi_file_close(work->cx, &file);
    onxi_ctx_let_go(work->cx, size);
    return status;
}

static onx_status read_file(onx_work *work, const params *q, onx_arena *arena, onx_str name)
{
    const onx_where where = onxi_kernel_place(work->prepared->ops, work->prepared->place, arena);
    const onx_str shown = onxi_arena_printf(arena, "%.*s", ONX_ARG(name));
    char reason[128];
    uint64_t size;
    int fd;
    if (!shown.ptr)
        return ONX_E_MEMORY;
    const int folder = open(q->folder, onxi_platform_folder_flags());
    if (folder < 0)
        return onx_work_fail(work, ONX_E_IO, "cannot open the folder %s: %s", q->folder,
                             onxi_error_text(errno, reason, sizeof reason));
    onx_status status = onxi_beneath_open(work->cx, where, folder, name, q->links ? ONXI_BENEATH_LINKS : 0, &fd, &size);
    close(folder);
    ONX_TRY(status);
    status = decode(work, q, shown.ptr, fd, size);
    close(fd);
    return status;
}

static onx_status reader_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    onxi_external_fault fault;
    onx_arena *arena;
    onx_str name;
    (void)first, (void)last;
    ONX_TRY(onxi_contrib_text(work, 0, &name));
    if (!name.len)
        return onx_work_fail(work, ONX_E_INVALID, "the name of the file is empty");
    if (!onxi_location_is_sound(name, &fault))
        return onx_work_fail(work, ONX_E_INVALID, "file \"%.*s\" is not read: %s", name.len > 200 ? 200 : (int)name.len,
                             name.ptr, fault.text);
    ONX_TRY(onx_arena_new(work->cx, &arena));
    const onx_status status = read_file(work, q, arena, name);
    onx_arena_free(arena);
    return status;
}

/* The contents of a file may change between runs. */
const onx_kernel onxi_kernels_contrib_reader[] = {
    CONTRIB_KERNEL("ImageReader", .prepare = reader_prepare, .run = reader_run,
                   .flags = ONX_KERNEL_SIZES_OUTPUT | ONX_KERNEL_RANDOM),
    { 0 },
};
