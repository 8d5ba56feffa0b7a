/* Reading and writing files: what is refused, and what survives a failure. */
#include "base/base.h"
#include "base/base_ctx.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/file_fixture.h"

static void expect_file(fixture *f, const char *path, const char *text)
{
    onxi_file file;
    assert_int_equal(onxi_file_open(f->cx, path, &file), ONX_OK);
    assert_int_equal(file.bytes.len, strlen(text));
    assert_true(file.bytes.len == 0 || memcmp(file.bytes.ptr, text, file.bytes.len) == 0);
    onxi_file_close(f->cx, &file);
}

static void expect_refused(fixture *f, const char *path, const char *because)
{
    onxi_file file;
    char text[1024];
    onx_diag_clear(f->cx);
    assert_int_equal(onxi_file_open(f->cx, path, &file), ONX_E_IO);
    assert_int_equal(onx_diag_count(f->cx), 1);
    onx_diag_format(onx_diag_get(f->cx, 0), text, sizeof text);
    assert_non_null(strstr(text, because));
    assert_non_null(strstr(text, path));
}

static void test_base_file__reads_regular_files_only(void **state)
{
    fixture *f = *state;
    put_text(at(f, "a"), "hello");
    expect_file(f, at(f, "a"), "hello");
    onxi_file file;
    assert_int_equal(onxi_file_read(f->cx, at(f, "a"), &file), ONX_OK);
    assert_null(file.map);
    assert_int_equal(file.bytes.len, 5);
    onxi_file_close(f->cx, &file);
    put_text(at(f, "empty"), "");
    expect_file(f, at(f, "empty"), "");
    expect_refused(f, f->dir, "a directory");
    expect_refused(f, at(f, "none"), "No such file");
    expect_refused(f, "/dev/zero", "a character device");
    assert_int_equal(mkfifo(at(f, "fifo"), 0600), 0);
    expect_refused(f, at(f, "fifo"), "a FIFO"); /* and does not wait for a writer */
    /* A virtual file says that it is empty, but is not. */
    assert_int_equal(onxi_file_open(f->cx, "/proc/self/stat", &file), ONX_OK);
    assert_true(file.bytes.len > 10);
    onxi_file_close(f->cx, &file);
}

static void test_base_file__no_permission(void **state)
{
    fixture *f = *state;
    if (geteuid() == 0) {
        print_message("root may read everything\n");
        skip();
    }
    put_text(at(f, "a"), "hello");
    chmod(at(f, "a"), 0);
    expect_refused(f, at(f, "a"), "Permission denied");
}

/* The same bytes after they were given back to the system. */
static void test_base_file__forget(void **state)
{
    fixture *f = *state;
    enum { N = 300000 };
    char *text = malloc(N + 1);
    for (int i = 0; i < N; i++)
        text[i] = (char)('a' + i % 26);
    text[N] = 0;
    put_text(at(f, "a"), text);
    onxi_file file;
    assert_int_equal(onxi_file_open(f->cx, at(f, "a"), &file), ONX_OK);
    onxi_file_forget(&file, file.bytes);
    onxi_file_forget(&file, onx_str_make(file.bytes.ptr + 5000, 100000));
    onxi_file_forget(&file, onx_str_make(text, N)); /* not in the mapping: left alone */
    assert_memory_equal(file.bytes.ptr, text, N);
    onxi_file_close(f->cx, &file);
    free(text);
}

static void write_text(fixture *f, const char *path, const char *text, size_t len, onx_status want)
{
    onxi_output *o;
    onx_status status = onxi_output_open(f->cx, path, &o);
    if (status == ONX_OK) {
        onxi_output_write(o, onx_str_make(text, len)); /* the failure sticks */
        status = onxi_output_commit(o);
    }
    assert_int_equal(status, want);
}

/* With a temporary file that has no name, and with one that has, as on file systems that cannot do better. */
static void replaces_when_complete(fixture *f)
{
    put_text(at(f, "a"), "old");
    chmod(f->path, 0640);
    onxi_output *o;
    assert_int_equal(onxi_output_open(f->cx, f->path, &o), ONX_OK);
    assert_int_equal(onxi_output_write(o, onx_str_of("new ")), ONX_OK);
    assert_int_equal(onxi_output_write(o, onx_str_of("text")), ONX_OK);
    expect_file(f, f->path, "old");
    assert_int_equal(onxi_output_size(o), 8);
    assert_int_equal(onxi_output_finish(o), ONX_OK);
    expect_file(f, f->path, "old");
    assert_int_equal(onxi_output_commit(o), ONX_OK);
    expect_file(f, f->path, "new text");
    assert_int_equal(folder_entries(f->dir), 1);
    struct stat st;
    stat(f->path, &st);
    assert_int_equal(st.st_mode & 0777, 0640);

    mode_t old = umask(027);
    write_text(f, at(f, "fresh"), "x", 1, ONX_OK);
    umask(old);
    stat(f->path, &st);
    assert_int_equal(st.st_mode & 0777, 0640);

    assert_int_equal(onxi_output_open(f->cx, at(f, "a"), &o), ONX_OK);
    onxi_output_write(o, onx_str_of("half"));
    onxi_output_abandon(o);
    onxi_output_abandon(NULL);
    expect_file(f, at(f, "a"), "new text");
    assert_int_equal(folder_entries(f->dir), 2);
}

static void test_base_output__replaces_when_complete(void **state)
{
    replaces_when_complete(*state);
}

static void test_base_output__replaces_by_named_files(void **state)
{
    fixture *f = *state;
    f->cx->named_temps = true;
    replaces_when_complete(f);
}

/* Names are told before they are there, and until they are gone. */
typedef struct seen {
    unsigned made, gone;
    bool early;
    char name[256];
} seen;

static void on_made(void *user, int dir, const char *name)
{
    seen *s = user;
    struct stat st;
    s->early |= fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    s->made++;
    snprintf(s->name, sizeof s->name, "%s", name);
}

static void on_gone(void *user, int dir, const char *name)
{
    seen *s = user;
    struct stat st;
    s->early |= fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    s->gone++;
    s->early |= strcmp(s->name, name) != 0;
}

static void test_base_output__tells_of_temporary_names(void **state)
{
    fixture *f = *state;
    seen s = { 0 };
    onxi_output *o;
    onx_ctx_watch_temps(f->cx, &(onx_temp_watch){ on_made, on_gone, &s });
    for (int named = 0; named < 2; named++) {
        f->cx->named_temps = named;
        s = (seen){ 0 };
        /* A new file, the same again, one that is given up, one that is given up when it is complete. */
        write_text(f, at(f, named ? "b" : "a"), "x", 1, ONX_OK);
        assert_int_equal(s.made, named);
        write_text(f, at(f, named ? "b" : "a"), "y", 1, ONX_OK);
        assert_int_equal(s.made, 1 + named);
        for (int finish = 0; finish < 2; finish++) {
            unsigned before = s.made;
            assert_int_equal(onxi_output_open(f->cx, at(f, "c"), &o), ONX_OK);
            assert_int_equal(s.made, before + (unsigned)named);
            if (finish)
                assert_int_equal(onxi_output_finish(o), ONX_OK);
            assert_int_equal(s.made, before + (unsigned)(named || finish));
            onxi_output_abandon(o);
        }
        assert_int_equal(s.gone, s.made);
        assert_false(s.early);
    }
    assert_int_equal(folder_entries(f->dir), 2);
}

/* What the guard of a context keeps; the program's own paths are tried in tests/cli/overwrite.sh. */
static void test_base_guard__refuses(void **state)
{
    fixture *f = *state;
    onxi_file file;
    onxi_output *a, *b;
    char other[160];
    put_text(at(f, "in"), "input");
    assert_int_equal(onx_ctx_guard_files(f->cx), ONX_OK);
    assert_int_equal(onx_ctx_guard_files(f->cx), ONX_OK);
    assert_int_equal(onxi_file_open(f->cx, at(f, "in"), &file), ONX_OK);
    const onxi_file_id id = file.id;
    onxi_file_close(f->cx, &file);
    /* an input, closed long ago */
    snprintf(other, sizeof other, "%s/.//in", f->dir);
    write_text(f, other, "x", 1, ONX_E_MISUSE);
    assert_int_equal(onx_output_claim(f->cx, other, false), ONX_E_MISUSE);
    assert_int_equal(onxi_output_open_over(f->cx, other, id, &a), ONX_OK);
    onxi_output_abandon(a);
    /* two outputs of one name, before either is there */
    snprintf(other, sizeof other, "%s/./new", f->dir);
    assert_int_equal(onxi_output_open(f->cx, at(f, "new"), &a), ONX_OK);
    assert_int_equal(onxi_output_open(f->cx, other, &b), ONX_E_MISUSE);
    assert_int_equal(onxi_output_open(f->cx, at(f, "new"), &b), ONX_E_MISUSE);
    /* A second name of the first output comes up while the second one is written: in a folder that does not tell upper
     * from lower case it would be the same file. */
    assert_int_equal(onxi_output_open(f->cx, at(f, "NEW"), &b), ONX_OK);
    assert_int_equal(onxi_output_commit(a), ONX_OK);
    assert_int_equal(link(at(f, "new"), at(f, "NEW")), 0);
    assert_int_equal(onxi_output_commit(b), ONX_E_MISUSE);
    /* An input comes to be where the output goes. */
    assert_int_equal(onxi_output_open(f->cx, at(f, "late"), &a), ONX_OK);
    assert_int_equal(link(at(f, "in"), at(f, "late")), 0);
    assert_int_equal(onxi_output_commit(a), ONX_E_MISUSE);
    expect_file(f, at(f, "late"), "input");
    /* A claim is taken up by the same spelling alone, and once. */
    snprintf(other, sizeof other, "%s/./claimed", f->dir);
    assert_int_equal(onx_output_claim(f->cx, at(f, "claimed"), false), ONX_OK);
    assert_int_equal(onx_output_claim(f->cx, at(f, "claimed"), false), ONX_E_MISUSE);
    write_text(f, other, "x", 1, ONX_E_MISUSE);
    write_text(f, at(f, "claimed"), "x", 1, ONX_OK);
    write_text(f, at(f, "claimed"), "x", 1, ONX_E_MISUSE);
}

/* Progress: an output that this context wrote is replaced, when asked, once for each time; nothing else is. */
static void test_base_guard__again(void **state)
{
    fixture *f = *state;
    char other[FOLDER_ROOM + 16];
    assert_int_equal(onx_output_again(f->cx, at(f, "out")), ONX_OK); /* without a guard there is nothing to ask */
    assert_int_equal(onx_output_again(NULL, at(f, "out")), ONX_E_MISUSE);
    assert_int_equal(onx_output_again(f->cx, NULL), ONX_E_MISUSE);
    assert_int_equal(onx_ctx_guard_files(f->cx), ONX_OK);
    onx_buffer in;
    put_text(at(f, "in"), "input");
    assert_int_equal(onx_load_bytes(f->cx, at(f, "in"), &in), ONX_OK);
    onx_buffer_free(&in);
    assert_int_equal(onx_output_again(f->cx, at(f, "in")), ONX_OK);
    write_text(f, at(f, "in"), "x", 1, ONX_E_MISUSE);
    expect_file(f, at(f, "in"), "input");
    assert_int_equal(onx_output_again(f->cx, at(f, "out")), ONX_OK); /* not written yet */
    write_text(f, at(f, "out"), "1", 1, ONX_OK);
    for (char text[2] = "2"; *text < '9'; ++*text) {
        write_text(f, at(f, "out"), text, 1, ONX_E_MISUSE);
        assert_int_equal(onx_output_again(f->cx, at(f, "out")), ONX_OK);
        snprintf(other, sizeof other, "%s/./out", f->dir);
        write_text(f, other, "x", 1, ONX_E_MISUSE);
        write_text(f, at(f, "out"), text, 1, ONX_OK);
    }
    expect_file(f, at(f, "out"), "8"); /* reads it in this context: from here on it is an input, and stays */
    assert_int_equal(onx_output_again(f->cx, at(f, "out")), ONX_OK);
    write_text(f, at(f, "out"), "9", 1, ONX_E_MISUSE);
}

/* Thousands of inputs by name: found again, and the table grows. */
static void test_base_guard__many(void **state)
{
    fixture *f = *state;
    assert_int_equal(onx_ctx_guard_files(f->cx), ONX_OK);
    int dir = open(f->dir, O_RDONLY | O_DIRECTORY);
    char name[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            snprintf(name, sizeof name, "data%d", i);
            if (i % 1000 == 0 && !round)
                put_text(at(f, name), "x");
            assert_int_equal(onxi_guard_read_beneath(f->cx, dir, onx_str_of(name)), ONX_OK);
        }
    for (int i = 0; i < 5000; i += 500) { /* there or not: a model refers to it */
        snprintf(name, sizeof name, "data%d", i);
        write_text(f, at(f, name), "y", 1, ONX_E_MISUSE);
    }
    write_text(f, at(f, "data5000"), "y", 1, ONX_OK);
    close(dir);
}

static void test_base_output__keeps_links(void **state)
{
    fixture *f = *state;
    char sub[128], target[160];
    snprintf(sub, sizeof sub, "%s/sub", f->dir);
    snprintf(target, sizeof target, "%s/real", sub);
    assert_int_equal(mkdir(sub, 0700), 0);
    put_text(target, "old");
    assert_int_equal(symlink("sub/real", at(f, "link")), 0);
    write_text(f, at(f, "link"), "new", 3, ONX_OK);
    expect_file(f, target, "new");
    struct stat st;
    lstat(at(f, "link"), &st);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(symlink("nowhere", at(f, "dangling")), 0);
    write_text(f, at(f, "dangling"), "new", 3, ONX_E_IO);
    write_text(f, sub, "new", 3, ONX_E_IO);
    write_text(f, at(f, "none/x"), "new", 3, ONX_E_IO);
    write_text(f, at(f, "a/"), "new", 3, ONX_E_IO);
}

static void test_base_output__devices_stay_devices(void **state)
{
    fixture *f = *state;
    write_text(f, "/dev/null", "x", 1, ONX_OK);
    struct stat st;
    stat("/dev/null", &st);
    assert_true(S_ISCHR(st.st_mode));
    if (access("/dev/full", W_OK) == 0) {
        onx_diag_clear(f->cx);
        write_text(f, "/dev/full", "x", 1, ONX_E_IO);
        char text[256];
        onx_diag_format(onx_diag_get(f->cx, 0), text, sizeof text);
        assert_non_null(strstr(text, "No space left"));
    }
}

static void test_base_output__strict_in_a_folder(void **state)
{
    fixture *f = *state;
    int dir = open(f->dir, O_RDONLY | O_DIRECTORY);
    onxi_output *o;
    assert_int_equal(onxi_output_open_at(f->cx, dir, "data", "data", &o), ONX_OK);
    onxi_output_write(o, onx_str_of("x"));
    assert_int_equal(onxi_output_commit(o), ONX_OK);
    struct stat st;
    stat(at(f, "data"), &st);
    const mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
    char other[128];
    snprintf(other, sizeof other, "%s/second", f->dir);
    assert_int_equal(link(at(f, "data"), other), 0);
    assert_int_equal(onxi_output_open_at(f->cx, dir, "data", "data", &o), ONX_E_IO); /* two hard links */
    assert_int_equal(symlink("data", at(f, "link")), 0);
    assert_int_equal(onxi_output_open_at(f->cx, dir, "link", "link", &o), ONX_E_IO);
    assert_int_equal(onxi_output_open_at(f->cx, dir, "sub/data", "data", &o), ONX_E_IO);
    assert_int_equal(onxi_output_open_at(f->cx, dir, "..", "data", &o), ONX_E_IO);
    assert_int_equal(onxi_output_open_at(f->cx, dir, "", "data", &o), ONX_E_IO);
    close(dir);
}

/* Zeros in large pieces cost no space and read as zeros, at the end of the file as well. */
static void test_base_output__holes(void **state)
{
    fixture *f = *state;
    enum { MB = 1 << 20 };
    char *big = calloc(1, 8 * MB + 3);
    big[5 * MB + 1] = 'x';
    onxi_output *o;
    assert_int_equal(onxi_output_open(f->cx, at(f, "big"), &o), ONX_OK);
    onxi_output_write(o, onx_str_of("abc"));
    onxi_output_write(o, onx_str_make(big, 8 * MB + 3));
    onxi_output_skip(o, 100);
    onxi_output_skip(o, 4 * MB);
    assert_int_equal(onxi_output_size(o), 12 * MB + 106);
    assert_int_equal(onxi_output_commit(o), ONX_OK);
    struct stat st;
    stat(f->path, &st);
    assert_int_equal(st.st_size, 12 * MB + 106);
    if (st.st_blocks * 512 > MB)
        print_message("this file system keeps no holes\n");
    onxi_file file;
    assert_int_equal(onxi_file_open(f->cx, f->path, &file), ONX_OK);
    for (size_t i = 0; i < file.bytes.len; i++) {
        char want = i < 3 ? "abc"[i] : i - 3 == 5 * MB + 1 ? 'x' : 0;
        if (file.bytes.ptr[i] != want)
            fail_msg("byte %zu", i);
    }
    onxi_file_close(f->cx, &file);
    free(big);
}

/* In a child: a limit on file sizes stands for a full disk. */
static void test_base_output__full_disk_leaves_the_old_file(void **state)
{
    fixture *f = *state;
    put_text(at(f, "a"), "old");
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = { 100000, 100000 };
        setrlimit(RLIMIT_FSIZE, &limit);
        onxi_output *o;
        char block[30000];
        memset(block, 'x', sizeof block);
        onx_status status = onxi_output_open(f->cx, f->path, &o);
        for (int i = 0; status == ONX_OK && i < 10; i++)
            status = onxi_output_write(o, onx_str_make(block, sizeof block));
        if (status == ONX_OK)
            _exit(2);
        status = onxi_output_commit(o);
        _exit(status == ONX_E_IO && onx_diag_count(f->cx) == 1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_file(f, at(f, "a"), "old");
    assert_int_equal(folder_entries(f->dir), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_base_file__reads_regular_files_only),
        TEST(test_base_file__no_permission),
        TEST(test_base_file__forget),
        TEST(test_base_output__replaces_when_complete),
        TEST(test_base_output__replaces_by_named_files),
        TEST(test_base_output__tells_of_temporary_names),
        TEST(test_base_guard__refuses),
        TEST(test_base_guard__again),
        TEST(test_base_guard__many),
        TEST(test_base_output__keeps_links),
        TEST(test_base_output__devices_stay_devices),
        TEST(test_base_output__strict_in_a_folder),
        TEST(test_base_output__holes),
        TEST(test_base_output__full_disk_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
