/* test_run_saved.c - packed weights in a folder: later sessions find them, results have the same bits, and files that
 * are damaged, truncated, from another machine or another owner are reported, not used, and written again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "child.h"
#include "counts.h"
#include "folder.h"

enum { SIZE = 256, CHANNELS = 64, OUTPUTS = 3, NAMES = 16, NAME_ROOM = 300 };

/* A model with weights of its own: two products, a convolution whose weights are scaled, a recurrent layer. */
typedef struct network {
    onx_ctx *cx;
    onx_doc *doc;
    counts held;
    char *weights;
} network;

static uint64_t place(onx_doc *doc, uint32_t index, char *at, uint32_t rank, const int64_t *dims, uint32_t seed)
{
    onx_tensor *t = onx_doc_model(doc)->graph->initializer[index];
    uint64_t count = 1;
    t->dims = onx_arena_alloc(onx_doc_arena(doc), rank * sizeof *t->dims);
    assert_non_null(t->dims);
    t->dims_count = rank;
    for (uint32_t i = 0; i < rank; i++)
        count *= (uint64_t)(t->dims[i] = dims[i]);
    for (uint64_t i = 0; i < count; i++) {
        const float x = (float)((i * 2654435761u + index * 40503u + seed) >> 7 & 1023) / 8192.0f - 0.0625f;
        memcpy(at + i * sizeof x, &x, sizeof x);
    }
    t->float_data_count = 0;
    assert_int_equal(onx_arena_refer(onx_doc_arena(doc), onx_str_make(at, count * sizeof(float)), &t->raw_data),
                     ONX_OK);
    t->has |= onx_tensor_has_raw_data;
    return count * sizeof(float);
}

/* `shift`: bytes that the weights lie off. */
static void open_network(network *n, uint32_t seed, size_t shift)
{
    static const int64_t square[] = { SIZE, SIZE }, kernel[] = { CHANNELS, CHANNELS, 3, 3 }, w[] = { 1, 4 * 64, SIZE };
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,256] x, float[1,64,12,12] i)\n"
        "=> (float[N,256] y, float[1,64,12,12] z, float[N,1,1,64] l)\n"
        "<float[1] a = {0}, float[1] b = {0}, float[1] k = {0}, float[1] w = {0}, float[1] r = {0},\n"
        " int64[1] one = {1}, float[1] m = {0}> {\n"
        "  p = MatMul (x, a) y = Gemm <transB = 1> (p, b)\n"
        "  c = Conv <pads = [1, 1, 1, 1]> (i, k) v = Exp (m) z = BatchNormalization (c, v, m, m, v)\n"
        "  s = Unsqueeze (x, one) l = LSTM <hidden_size = 64> (s, w, r) }";
    memset(n, 0, sizeof *n);
    n->cx = onx_ctx_new(&(onx_allocator){ counted_resize, &n->held });
    if (onx_text_parse(n->cx, ONX_KIND_MODEL, onx_str_of(text), 0, &n->doc) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(n->cx, 0)->message));
    n->weights = aligned_alloc(64, 1 << 21);
    char *at = n->weights + shift;
    at += place(n->doc, 0, at, 2, square, seed);
    at += place(n->doc, 1, at, 2, square, seed);
    at += place(n->doc, 2, at, 4, kernel, seed);
    at += place(n->doc, 3, at, 3, w, seed);
    const int64_t r[] = { 1, 4 * 64, 64 }, channels[] = { CHANNELS };
    at += place(n->doc, 4, at, 3, r, seed);
    place(n->doc, 6, at, 1, channels, seed);
}

static void close_network(network *n)
{
    onx_doc_free(n->doc);
    onx_ctx_free(n->cx);
    free(n->weights);
    assert_int_equal(atomic_load(&n->held.now), 0);
}

static unsigned isa; /* ONX_ISA_* of all sessions: what a processor lacks is a lower one */

typedef struct result {
    size_t notes;
    long long most; /* bytes of memory that the session took */
    float y[3 * SIZE], z[CHANNELS * 144], l[3 * 64];
} result;

/* A session of the network in that folder (NULL: none), and a run of it. */
static void run(network *n, const char *folder, unsigned threads, unsigned precision, result *r)
{
    const onx_session_options options = {
        .threads = threads, .isa = isa, .cache = folder, .precision = precision, .struct_size = sizeof options
    };
    const int64_t rows[] = { 3, SIZE }, image[] = { 1, CHANNELS, 12, 12 };
    onx_value *in[2], *out[OUTPUTS] = { NULL };
    onx_session *s;
    memset(r, 0, sizeof *r);
    const long long before = atomic_load(&n->held.now);
    if (onx_session_new(n->cx, n->doc, &options, &s) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(n->cx, 0)->message));
    assert_int_equal(onx_value_new_tensor(n->cx, ONX_FLOAT, 2, rows, &in[0]), ONX_OK);
    assert_int_equal(onx_value_new_tensor(n->cx, ONX_FLOAT, 4, image, &in[1]), ONX_OK);
    for (int i = 0; i < 2; i++)
        for (uint64_t k = 0; k < in[i]->count; k++)
            ((float *)in[i]->data)[k] = sinf((float)k);
    if (onx_session_run(s, n->cx, (const onx_value *const *)in, out) != ONX_OK)
        fail_msg("%.*s", ONX_ARG(onx_diag_get(n->cx, 0)->message));
    r->most = atomic_load(&n->held.now) - before;
    float *const to[] = { r->y, r->z, r->l };
    for (int i = 0; i < OUTPUTS; i++) {
        memcpy(to[i], out[i]->data, out[i]->size);
        onx_value_free(out[i]);
    }
    onx_value_free(in[0]);
    onx_value_free(in[1]);
    onx_session_free(s);
    r->notes = onx_diag_total(n->cx, ONX_NOTE);
    assert_int_equal(onx_diag_total(n->cx, ONX_WARNING) + onx_diag_total(n->cx, ONX_ERROR), 0);
    onx_diag_clear(n->cx);
}

static void same(const result *a, const result *b)
{
    assert_memory_equal(a->y, b->y, sizeof a->y);
    assert_memory_equal(a->z, b->z, sizeof a->z);
    assert_memory_equal(a->l, b->l, sizeof a->l);
}

/* Paths of the files with packed weights. */
static size_t list(const char *folder, char paths[NAMES][NAME_ROOM])
{
    DIR *d = opendir(folder);
    size_t count = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".pack") && e->d_name[0] != '.' && count < NAMES)
            snprintf(paths[count++], NAME_ROOM, "%.40s/%.250s", folder, e->d_name);
    closedir(d);
    return count;
}

static char names[NAMES][NAME_ROOM];
static result plain, got;

/* ---- what is found ---- */

static void test_run_saved__later_sessions_find_it(void **state)
{
    (void)state;
    for (size_t shift = 0; shift <= 4; shift += 4) {
        char dir[FOLDER_ROOM];
        network n, again;
        assert_true(folder_make(dir));
        open_network(&n, 1, shift);
        open_network(&again, 1, 4 - shift); /* the same bytes at another address */
        run(&n, NULL, 1, 0, &plain);
        const long long alone = plain.most;
        for (unsigned threads = 1; threads <= 2; threads++) {
            run(&n, dir, threads, 0, &got);
            same(&got, &plain);
            assert_int_equal(got.notes, 0);
        }
        const size_t count = list(dir, names);
        run(&again, dir, 2, 0, &got);
        same(&got, &plain);
        assert_int_equal(got.notes, 0);
        assert_int_equal(list(dir, names), count);
        if (count) /* mapped, not in memory of the session */
            assert_true(got.most < alone - (1 << 17));
        close_network(&n);
        close_network(&again);
        folder_remove(dir);
    }
}

static void test_run_saved__other_weights_are_others(void **state)
{
    (void)state;
    char dir[FOLDER_ROOM];
    network n, other;
    assert_true(folder_make(dir));
    open_network(&n, 1, 0);
    open_network(&other, 2, 0);
    run(&n, dir, 1, 0, &got);
    const size_t count = list(dir, names);
    run(&other, NULL, 1, 0, &plain);
    run(&other, dir, 1, 0, &got);
    same(&got, &plain);
    assert_int_equal(list(dir, names), 2 * count);
    run(&n, NULL, 1, ONX_PRECISION_BF16, &plain);
    for (int i = 0; i < 2; i++) {
        run(&n, dir, 1, ONX_PRECISION_BF16, &got);
        same(&got, &plain);
        assert_int_equal(got.notes, 0);
    }
    close_network(&n);
    close_network(&other);
    folder_remove(dir);
}

/* ---- what is not to be trusted ---- */

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    fputc(byte ^ 1, f);
    fclose(f);
}

static off_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

typedef void harm(const char *path, const char *other);
static void flip_first(const char *path, const char *other)
{
    (void)other;
    flip(path, 0);
}
static void flip_middle(const char *path, const char *other)
{
    (void)other;
    flip(path, size_of(path) / 2);
}
static void flip_magic(const char *path, const char *other)
{
    (void)other;
    flip(path, -64);
}
static void flip_length(const char *path, const char *other)
{
    (void)other;
    flip(path, -56);
}
static void flip_last(const char *path, const char *other)
{
    (void)other;
    flip(path, -1);
}
static void cut(const char *path, const char *other)
{
    (void)other;
    assert_int_equal(truncate(path, size_of(path) - 64), 0);
}
static void cut_all(const char *path, const char *other)
{
    (void)other;
    assert_int_equal(truncate(path, 0), 0);
}
static void lengthen(const char *path, const char *other)
{
    (void)other;
    assert_int_equal(truncate(path, size_of(path) + 64), 0);
}
static void let_others_write(const char *path, const char *other)
{
    (void)other;
    assert_int_equal(chmod(path, 0666), 0);
}
static void link_to_other(const char *path, const char *other)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
}
static void make_fifo(const char *path, const char *other)
{
    (void)other;
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}
static void take_other(const char *path, const char *other) /* whole, of this user, under another name */
{
    char command[2 * NAME_ROOM + 8];
    snprintf(command, sizeof command, "cp %s %s", other, path);
    assert_int_equal(system(command), 0);
}
static void give_away(const char *path, const char *other)
{
    (void)other;
    if (geteuid() != 0 || chown(path, 1, 1) != 0)
        flip(path, 0); /* only root can */
}

static void test_run_saved__what_is_damaged_is_written_anew(void **state)
{
    (void)state;
    static harm *const harms[] = { flip_first, flip_middle, flip_magic, flip_length,      flip_last,
                                   cut,        cut_all,     lengthen,   let_others_write, link_to_other,
                                   make_fifo,  take_other,  give_away };
    char dir[FOLDER_ROOM];
    network n;
    assert_true(folder_make(dir));
    open_network(&n, 1, 0);
    run(&n, NULL, 1, 0, &plain);
    run(&n, dir, 1, 0, &got);
    const size_t count = list(dir, names);
    for (size_t h = 0; h < sizeof harms / sizeof *harms && count > 1; h++) {
        harms[h](names[h % count], names[(h + 1) % count]);
        for (size_t i = 0; i < 2; i++) {
            run(&n, dir, 1, 0, &got);
            same(&got, &plain);
            assert_int_equal(got.notes, i == 0);
        }
        assert_int_equal(list(dir, names), count);
    }
    for (size_t i = 0; i < count; i++) /* all at once are one note */
        flip(names[i], 7);
    run(&n, dir, 2, 0, &got);
    same(&got, &plain);
    assert_int_equal(got.notes, count > 0);
    close_network(&n);
    folder_remove(dir);
}

/* Files of another folder have another secret, and so have those of a folder that has lost it. */
static void test_run_saved__secrets(void **state)
{
    (void)state;
    char dir[FOLDER_ROOM], other[FOLDER_ROOM], secret[FOLDER_ROOM + 8], command[3 * FOLDER_ROOM];
    network n;
    assert_true(folder_make(dir) && folder_make(other));
    open_network(&n, 1, 0);
    run(&n, NULL, 1, 0, &plain);
    run(&n, dir, 1, 0, &got);
    run(&n, other, 1, 0, &got);
    const size_t count = list(dir, names);
    snprintf(secret, sizeof secret, "%s/secret", dir);
    struct stat st;
    assert_int_equal(stat(secret, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(command, sizeof command, "cp %s/secret %s/secret", other, dir); /* names that nobody has */
    assert_int_equal(system(command), 0);
    run(&n, dir, 1, 0, &got);
    same(&got, &plain);
    assert_int_equal(list(dir, names), 2 * count);
    flip(secret, 3); /* still a secret, of nothing */
    run(&n, dir, 1, 0, &got);
    same(&got, &plain);
    assert_int_equal(list(dir, names), 3 * count);
    assert_int_equal(truncate(secret, 5), 0);
    for (int i = 0; i < 2; i++) {
        run(&n, dir, 1, 0, &got);
        same(&got, &plain);
        assert_int_equal(got.notes, i == 0);
    }
    assert_int_equal(unlink(secret), 0);
    assert_int_equal(mkdir(secret, 0700), 0); /* nothing can take its place */
    run(&n, dir, 1, 0, &got);
    same(&got, &plain);
    assert_int_equal(got.notes, 1);
    close_network(&n);
    folder_remove(dir);
    folder_remove(other);
}

/* A folder is made, but not those above it; what is no folder is an error. */
static void test_run_saved__folders(void **state)
{
    (void)state;
    char dir[FOLDER_ROOM], path[FOLDER_ROOM + 16];
    network n;
    onx_session *s;
    assert_true(folder_make(dir));
    open_network(&n, 1, 0);
    snprintf(path, sizeof path, "%s/new", dir);
    run(&n, path, 1, 0, &got);
    assert_int_equal(got.notes, 0);
    assert_true(size_of(path) > 0);
    snprintf(path, sizeof path, "%s/new/secret", dir);
    assert_int_equal(onx_session_new(n.cx, n.doc, &(onx_session_options){ .cache = path }, &s), ONX_E_IO);
    snprintf(path, sizeof path, "%s/a/b", dir);
    assert_int_equal(onx_session_new(n.cx, n.doc, &(onx_session_options){ .cache = path }, &s), ONX_E_IO);
    onx_diag_clear(n.cx);
    close_network(&n);
    folder_remove(dir);
}

/* ---- many at once ---- */

typedef struct one {
    const char *dir;
    result got;
} one;

static void *run_one(void *user)
{
    one *o = user;
    for (int i = 0; i < 3; i++) {
        network n;
        open_network(&n, 1, 0);
        run(&n, o->dir, 1, 0, &o->got);
        close_network(&n);
    }
    return NULL;
}

static void test_run_saved__many_at_once(void **state)
{
    (void)state;
    enum { MANY = 4 };
    static one all[MANY];
    char dir[FOLDER_ROOM];
    pthread_t threads[MANY];
    pid_t children[MANY];
    network n;
    assert_true(folder_make(dir));
    open_network(&n, 1, 0);
    run(&n, NULL, 1, 0, &plain);
    for (int i = 0; i < MANY; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            child_begin();
            all[0].dir = dir;
            run_one(&all[0]);
            _exit(all[0].got.notes != 0 || memcmp(all[0].got.y, plain.y, sizeof plain.y) != 0);
        }
    }
    for (int i = 0; i < MANY; i++) {
        all[i].dir = dir;
        assert_int_equal(pthread_create(&threads[i], NULL, run_one, &all[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        int status;
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_int_equal(all[i].got.notes, 0);
        same(&all[i].got, &plain);
    }
    close_network(&n);
    folder_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_saved__later_sessions_find_it),
        cmocka_unit_test(test_run_saved__other_weights_are_others),
        cmocka_unit_test(test_run_saved__what_is_damaged_is_written_anew),
        cmocka_unit_test(test_run_saved__secrets),
        cmocka_unit_test(test_run_saved__folders),
        cmocka_unit_test(test_run_saved__many_at_once),
    };
    int failed = 0;
    for (isa = ONX_ISA_ANY; isa < ONX_ISA_END; isa++)
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
