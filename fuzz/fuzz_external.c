/* fuzz_external.c - takes any bytes as a tensor with external data: the file that is read is in the model's folder
 * and has the size given by type and shape, and no byte of the secret file outside of the folder is read. Tensors
 * that can be read are also moved out and in again. An input that is no message is taken as a location and opened in
 * both ways. */
#include "io/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { FILE_SIZE = 64 };
static char folder[] = "/tmp/onx_fuzz_XXXXXX";
static char base[64], saved[80];
static int base_fd;

static void put_file(const char *name, char fill)
{
    char path[128], bytes[FILE_SIZE];
    snprintf(path, sizeof path, "%s/%s", base, name);
    memset(bytes, fill, sizeof bytes);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, sizeof bytes, file) != sizeof bytes || fclose(file) != 0)
        abort();
}

/* Makes a folder with obstacles: links, hard links, a FIFO, a folder. */
static void fill_folder(void)
{
    static const char *const links[][2] = { { "w", "l" }, { "../secret", "o" }, { "..", "u" }, { "s", "d" } };
    char path[128], other[128];
    snprintf(path, sizeof path, "%s/s", base);
    bool made = mkdir(base, 0700) == 0 && mkdir(path, 0700) == 0;
    put_file("w", 'w');
    put_file("s/v", 'v');
    put_file("../secret", '!');
    put_file("2", '!');
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "%s/%s", base, links[i][1]);
        made = made && symlink(links[i][0], path) == 0;
    }
    snprintf(path, sizeof path, "%s/2", base);
    snprintf(other, sizeof other, "%s/h", base);
    made = made && link(path, other) == 0;
    snprintf(path, sizeof path, "%s/f", base);
    made = made && mkfifo(path, 0600) == 0;
    if (!made)
        abort();
}

static void clean_up(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        perror(command);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (!mkdtemp(folder))
        abort();
    atexit(clean_up);
    snprintf(base, sizeof base, "%s/m", folder);
    snprintf(saved, sizeof saved, "%s/out", folder);
    fill_folder();
    if (mkdir(saved, 0700) != 0)
        abort();
    snprintf(saved, sizeof saved, "%s/out/t.pb", folder);
    base_fd = open(base, O_PATH | O_DIRECTORY);
    return 0;
}

static void expect_ours(onx_str bytes)
{
    if (memchr(bytes.ptr, '!', bytes.len))
        abort();
}

/* Moves the data to a file, reads it back and moves it in: the elements must be the same. */
static void move(onx_ctx *cx, onx_doc *doc, onx_str want)
{
    onx_external_options out = { .location = "x", .threshold = 1 };
    onx_doc *moved;
    onx_str got;
    if (onx_save(cx, doc, saved, &(onx_save_options){ .external = &out }) != ONX_OK)
        return; /* nested too deeply, for example */
    if (onx_load(cx, ONX_KIND_TENSOR, saved, NULL, &moved) != ONX_OK)
        abort();
    onx_status status = onx_tensor_bytes(moved, onx_doc_root(moved, ONX_KIND_TENSOR), &got);
    if (status != ONX_OK || !onx_str_equal(got, want))
        abort();
    onx_doc_free(moved);
}

static void read_tensor(onx_ctx *cx, onx_doc *doc, bool moving)
{
    const onx_tensor *t = onx_doc_root(doc, ONX_KIND_TENSOR);
    uint64_t count, size;
    onx_str bytes;
    double d;
    if (onx_doc_set_base_dir(doc, base) != ONX_OK)
        return;
    if (onx_tensor_bytes(doc, t, &bytes) == ONX_OK) {
        if (!onx_tensor_count(t, &count) || !onx_dtype_size(t->data_type, count, &size) || bytes.len != size)
            abort();
        if (onx_tensor_is_external(t))
            expect_ours(bytes);
        if (count && onx_tensor_get_f64(doc, t, count - 1, 1, &d) != ONX_OK)
            abort();
        if (moving && onx_tensor_is_external(t) && !ONX_HAS(tensor, t, segment))
            move(cx, doc, bytes);
    }
    (void)onx_external_verify(doc);
}

/* The kernel's path resolution and ours must agree for each location that may be opened at all. */
static void open_location(onx_ctx *cx, onx_str location)
{
    onxi_external_fault fault;
    int fd[2];
    uint64_t size[2];
    onx_status status[2];
    if (!onxi_location_is_sound(location, &fault))
        return;
    for (unsigned way = 0; way < 2; way++) {
        status[way] = onxi_beneath_open(cx, ONXI_NOWHERE, base_fd, location, way, &fd[way], &size[way]);
        char bytes[FILE_SIZE];
        if (status[way] == ONX_OK && read(fd[way], bytes, sizeof bytes) == FILE_SIZE)
            expect_ours(onx_str_make(bytes, sizeof bytes));
        if (fd[way] >= 0)
            close(fd[way]);
    }
    if (status[0] != status[1])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned runs;
    onx_str bytes = onx_str_make((const char *)data, size);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 64 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_doc *doc;
    if (onx_read(cx, ONX_KIND_TENSOR, bytes, 0, 1, &doc) == ONX_OK) {
        read_tensor(cx, doc, runs++ % 64 == 0); /* not each time: moving syncs files, which is slow */
        onx_doc_free(doc);
    }
    open_location(cx, bytes);
    onx_ctx_free(cx);
    return 0;
}
