/* The program, with each allocation of its code and the library's failing in turn, alone and with all later ones. Each
 * command on a few models either does the same as with enough memory, or fails and reports lack of memory; it never
 * ends by a signal, and leaves no incomplete output. */
#include <onx/base.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "share.h"
#include "unit/child.h"
#include "unit/folder.h"
#include "unit/rich.h"

/* ---- allocations, counted: the linker sends those of all that is linked statically here (--wrap) ---- */

typedef struct counter {
    atomic_uint calls;
    unsigned failing; /* which one; 0: none */
    bool lasting;     /* and all after it */
} counter;
static counter *shared; /* with the child */

static bool is_had(void)
{
    if (!shared)
        return true;
    unsigned n = atomic_fetch_add(&shared->calls, 1) + 1;
    return !shared->failing || (n != shared->failing && (n < shared->failing || !shared->lasting));
}

/* Names that the linker gives. */
#pragma GCC diagnostic push
#if defined(__clang__)
#pragma GCC diagnostic ignored "-Wreserved-identifier"
#endif
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
char *__wrap_strdup(const char *text);
void *__wrap_malloc(size_t size)
{
    return is_had() ? __real_malloc(size) : NULL;
}
void *__wrap_calloc(size_t count, size_t size)
{
    return is_had() ? __real_calloc(count, size) : NULL;
}
void *__wrap_realloc(void *ptr, size_t size)
{
    return is_had() ? __real_realloc(ptr, size) : NULL;
}
char *__wrap_strdup(const char *text)
{
    return is_had() ? __real_strdup(text) : NULL;
}
#pragma GCC diagnostic pop

int onx_program(int argc, char **argv); /* main of cli/main.c */

/* ---- what is run ---- */

/* Much is wrong with it: findings of several rules, and inference that fails. */
static const char wrong[] = "<ir_version: 10, opset_import: [\"\" : 21]>\n"
                            "g (float[2, 3] x, float[2, 3] x) => (float[4] y, float[4] gone)\n"
                            "<float[2] w = {1, 2}> {\n"
                            "  a = Ad(x, w)\n"
                            "  b = MatMul(x, x)\n"
                            "  c = Relu(later)\n"
                            "  y = Softmax<axis = \"one\">(b)\n"
                            "  y = Add(a, c)\n"
                            "}\n";
static const char broken[] = "<ir_version: 10>\ng (float[2 x) => (float y) { y = Relu(x }\n";
static const char network[] = "<ir_version: 10, opset_import: [\"\" : 21]>\n"
                              "g (float[1, 1, 4, 4] x) => (float[1, 2] y, string[2] s)\n"
                              "<float[2, 1, 3, 3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 2, 2, 2},\n"
                              " string[2] texts = {\"a\", \"b\"}, float[2] half = {0.5, 0.25}> {\n"
                              "  h = HardSwish(x)\n"
                              "  c = MaxPool<kernel_shape = [2, 2]>(h)\n"
                              "  f = ReduceMean<keepdims = 0>(c)\n"
                              "  size = Constant<value_ints = [1, 2]>()\n"
                              "  y = Expand(f, size)\n"
                              "  s = Identity(texts)\n"
                              "}\n";
/* Second derivatives, through an If. */
static const char asks[] = "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.preview.training\" : 1]>\n"
                           "g (float[2] a, bool c) => (float[2] d2) {\n"
                           "  y = If<then_branch = t () => (float[2] u) { u = Mul(a, a) },\n"
                           "         else_branch = e () => (float[2] v) { v = Sin(a) }>(c)\n"
                           "  d = ai.onnx.preview.training.Gradient<xs = [\"a\"], y = \"y\">(a)\n"
                           "  d2 = ai.onnx.preview.training.Gradient<xs = [\"a\"], y = \"d\">(a)\n"
                           "}\n";
static const char products[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[1, 1, 4, 4] x) => (float[1, 2] y)\n"
    "<float[1, 1, 3, 3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1}, float[4, 2] m = {1, 2, 3, 4, 5, 6, 7, 8},"
    " float[2] b = {1, 2}, float[1] c = {0.5}> {\n"
    "  v = Conv(x, w, c)\n"
    "  f = Flatten(v)\n"
    "  y = Gemm(f, m, b)\n"
    "}\n";
/* A weight for images that the training information makes smaller; d/x.npy holds one image. */
static const char learns[] =
    "ir_version: 10 opset_import { version: 17 } opset_import { domain: \"ai.onnx.preview.training\" version: 1 }\n"
    "graph { name: \"g\"\n"
    "  node { op_type: \"Mul\" input: \"x\" input: \"w\" output: \"y\" }\n"
    "  input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { } dim { } dim { } dim { } } } } }\n"
    "  output { name: \"y\" type { tensor_type { elem_type: 1 shape { dim { } dim { } dim { } dim { } } } } }\n"
    "  initializer { data_type: 1 name: \"w\" float_data: 1 } }\n"
    "training_info {\n"
    "  algorithm { name: \"a\"\n"
    "    node { op_type: \"ReduceSum\" input: \"y\" output: \"loss\" attribute { name: \"keepdims\" type: INT i: 0 } }\n"
    "    node { op_type: \"Gradient\" domain: \"ai.onnx.preview.training\" input: \"w\" output: \"dw\"\n"
    "      attribute { name: \"xs\" type: STRINGS strings: \"w\" } attribute { name: \"y\" type: STRING s: \"loss\" } }\n"
    "    node { op_type: \"Mul\" input: \"dw\" input: \"rate\" output: \"step\" }\n"
    "    node { op_type: \"Sub\" input: \"w\" input: \"step\" output: \"w_new\" }\n"
    "    input { name: \"rate\" type { tensor_type { elem_type: 1 shape { } } } }\n"
    "    output { name: \"w_new\" type { tensor_type { elem_type: 1 shape { } } } }\n"
    "    output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }\n"
    "  update_binding { key: \"w\" value: \"w_new\" } }\n";
/* No inputs: a case for `onx test`. */
static const char fixed[] = "<ir_version: 10, opset_import: [\"\" : 21]>\n"
                            "g () => (float[2] y) <float[2] w = {1, 2}> { y = Exp(w) }\n";

/* Sizes and numbers that suit have to be found. */
static const char open_dims[] = "<ir_version: 10, opset_import: [\"\" : 21]>\n"
                                "g (int64[N] i, float[5, 2] t, float[?, ?] x) => (float[N, 2] y, float[?, ?] z) {\n"
                                "  y = Gather(t, i)\n"
                                "  z = MatMul(t, x)\n"
                                "}\n";

/* Words of a call, split at blanks; @ stands for the folder. Whatever writes a file writes @/out. */
static const char *const lines[] = {
    "help",
    "help check",
    "help --man run",
    "completion bash",
    "info @/rich.onnxtxt",
    "info --json @/rich.onnx",
    "info --cost @/rich.onnx",
    "info @/network.json",
    "show @/rich.onnx",
    "show --full @/x.npy",
    "convert @/x.npy @/out.textproto",
    "show --types @/rich.onnxtxt",
    "show --format json @/wrong.onnxtxt",
    "show --node h @/rich.onnx",
    "view @/rich.onnx -o @/out.html",
    "view @/rich.onnxtxt -o @/out.html --no-weights",
    "view @/wrong.onnxtxt -o @/out.html",
    "view @/broken.onnxtxt -o @/out.html",
    "view @/rich.onnx -o @/out.svg",
    "view @/network.onnx --against @/products.onnxtxt -o @/out.html",
    "convert @/rich.onnxtxt @/out.onnx",
    "convert @/rich.onnx @/out.onnxtxt",
    "convert @/rich.onnx @/out.json",
    "convert @/rich.json @/out.textproto",
    "convert @/network.onnx @/out.onnx --external out.data --external-threshold 1 --checksum",
    "convert @/away.onnx @/out.onnx --inline-external",
    "convert @/broken.onnxtxt @/out.onnx",
    "fmt --check @/rich.onnxtxt",
    "diff @/rich.onnx @/wrong.onnxtxt",
    "diff @/rich.onnx @/network.onnx --json",
    "ops",
    "ops Conv",
    "ops Sofmax",
    "ops --domain ai.onnx.ml --export @/out.onnx",
    "ops --domain ai.onnx.ml --opset-doc @/ml.json",
    "check @/rich.onnx",
    "check --full @/rich.onnxtxt",
    "check --full --json @/wrong.onnxtxt",
    "check --pedantic --only T,ND-07 @/wrong.onnxtxt",
    "check --checksums @/away.onnx",
    "check --explain T",
    "check @/broken.onnxtxt",
    "retarget @/network.onnx -o @/out.onnx --opset 13",
    "inline @/rich.onnx -o @/out.onnx --schema",
    "extract @/network.onnx -o @/out.onnx --outputs c",
    "extract @/rich.onnx -o @/out.onnx --nodes h",
    "extract @/network.onnx --split 2 --dry-run",
    "merge @/network.onnx @/rich.onnxtxt -o @/out.onnx --side-by-side --prefix1 a/ --prefix2 b/",
    "outline @/network.onnx -o @/out.onnx --min-nodes 2",
    "edit @/network.onnx -o @/out.onnx --rename c=k --nhwc x --batch N --softmax y --strip unused",
    "infer --list @/rich.onnxtxt",
    "infer --dim N=2 -o @/out.onnx @/rich.onnx",
    "infer --strict --check-type @/wrong.onnxtxt -o @/out.onnx",
    "retarget @/rich.onnx -o @/out.onnx --opset 13",
    "inline @/rich.onnx -o @/out.onnx --schema",
    "simplify @/rich.onnx -o @/out.onnx --fold-limit 64K --explain --keep c",
    "simplify @/network.onnx -o @/out.onnx --input-shape x=1x1x4x4",
    "grad --of y --wrt x -o @/out.onnx @/network.onnx",
    "grad -o @/out.onnx @/asks.onnxtxt",
    "run --random --dim N=2 --threads 1 @/rich.onnx",
    "run --random --threads 1 -o @/out @/network.onnx",
    "run --threads 1 --npy -o @/out @/fixed.onnx",
    "run --random --input x=@/x.npy --threads 1 @/network.onnxtxt",
    "run --random @/wrong.onnxtxt",
    "run --input x=[[[[1,2,3,4],[1,2,3,4],[1,2,3,4],[1,2,3,4]]]] --threads 1 @/network.onnx",
    "run --input x=1 --shape x=1x1x4x4 --threads 1 @/network.onnx",
    "run --input x=@/p.pgm --resize crop --mean 1 --threads 1 @/network.onnx",
    "run --shape x=2x2 --range x=0:1 --input c=true --threads 1 @/rich.onnx",
    "run --random --threads 1 @/open.onnxtxt",
    "run --random --input @/case/test_data_set_0 --threads 1 @/network.onnx",
    "precision @/rich.onnxtxt -o @/out.onnx --to float16",
    "precision @/network.onnx -o @/out.onnx --to double --keep-io --threads 1 --max-error 0.1",
    "quantize @/products.onnxtxt -o @/out.onnx --mode dynamic",
    "quantize @/products.onnxtxt -o @/out.onnx --mode static --form qlinear --threads 1 --calibrate entropy",
    "quantize @/products.onnxtxt -o @/out.onnx --mode weights --weight-type int4 --threads 1 --feedback --table",
    "compress @/rich.onnx -o @/out.onnx",
    "train @/learns.textproto --data @/x.npy --set rate=1 --epochs 1 --threads 1 -o @/out.onnx",
    "train @/learns.textproto --data @/x.npy --data @/x.npy --set rate=1 --schedule rate=cosine --epochs 3 --batch 1 "
    "--shuffle --validation 0.5 --threads 1 -o @/best.onnx --log @/log.csv",
    "train @/learns.textproto --data @/x.npy --set rate=1 --epochs 1 --threads 1 --checkpoint @/out.onnx",
    "train @/learns.textproto --data @/x.npy --set rate=1 --epochs 1 --threads 1 -o @/out.onnx --resume --checkpoint "
    "@/state.onnx",
    "test @/case",
    "test --junit @/out.xml @/case",
    "check @ --format sarif",
    "compare --kernels plain --bisect --atol 0 --rtol 0 @/network.onnx",
    "compare @/rich.onnx @/rich.onnxtxt --dim N=2 --json",
    "bench --seconds 1 --dim N=2 @/rich.onnx",
    "bench --seconds 0 --streams 2 --profile --dim N=2 @/rich.onnx",
};

static char folder[FOLDER_ROOM];

/* A path in the folder; the last four stay valid. */
static const char *in_folder(const char *name)
{
    static char paths[4][FOLDER_ROOM + 64];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void redirect(int fd, const char *name)
{
    int file = open(in_folder(name), O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(126);
    close(file);
}

/* Runs the program in a child, with its streams in files of the folder; returns how it ended. */
static int run(const char *line, unsigned failing, bool lasting)
{
    char text[1024] = "onx ", *words[32];
    int count = 0;
    for (size_t len = 4; *line; len = strlen(text), line++)
        snprintf(text + len, sizeof text - len, *line == '@' ? "%s" : "%.1s", *line == '@' ? folder : line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    atomic_store(&shared->calls, 0);
    shared->failing = failing;
    shared->lasting = lasting;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        child_begin();
        redirect(1, "stdout");
        redirect(2, "stderr");
        exit(onx_program(count, words));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    shared->failing = 0;
    return status;
}

typedef struct bytes {
    char *ptr;
    size_t len;
    bool there;
} bytes;

static bytes read_all(const char *name)
{
    bytes b = { NULL, 0, false };
    FILE *file = fopen(in_folder(name), "rb");
    if (!file)
        return b;
    b.there = true;
    fseek(file, 0, SEEK_END);
    b.len = (size_t)ftell(file);
    rewind(file);
    b.ptr = __real_malloc(b.len + 1);
    assert_non_null(b.ptr);
    assert_int_equal(fread(b.ptr, 1, b.len, file), b.len);
    b.ptr[b.len] = 0;
    fclose(file);
    return b;
}

static bool same(const bytes *a, const bytes *b)
{
    return a->there == b->there && a->len == b->len && (!a->len || memcmp(a->ptr, b->ptr, a->len) == 0);
}

static const char *const outputs[] = { "out.onnx",        "out.onnxtxt",      "out.json",
                                       "out.textproto",   "out.data",         "out/output_0.pb",
                                       "out/output_1.pb", "out/output_0.npy", "out.html" };
enum { OUTPUTS = sizeof outputs / sizeof *outputs };

/* What a call left behind. */
typedef struct result {
    int status;
    bytes out, err, files[OUTPUTS];
    size_t entries;
} result;

static void result_free(result *r)
{
    free(r->out.ptr);
    free(r->err.ptr);
    for (size_t i = 0; i < OUTPUTS; i++)
        free(r->files[i].ptr);
}

static result attempt(const char *line, unsigned failing, bool lasting)
{
    for (size_t i = 0; i < OUTPUTS; i++)
        unlink(in_folder(outputs[i]));
    rmdir(in_folder("out"));
    result r = { .status = run(line, failing, lasting) };
    r.out = read_all("stdout");
    r.err = read_all("stderr");
    r.entries = folder_entries(folder);
    for (size_t i = 0; i < OUTPUTS; i++)
        r.files[i] = read_all(outputs[i]);
    return r;
}

/* NULL, or what is wrong with a call that was short of memory. */
static const char *judge(const char *line, const result *got, const result *want)
{
    if (!WIFEXITED(got->status))
        return "ended by a signal";
    int status = WEXITSTATUS(got->status);
    if (status > 2)
        return "an impossible exit status";
    for (size_t i = 0; i < OUTPUTS; i++)
        if (got->files[i].there && !same(&got->files[i], &want->files[i]))
            return "an output that is not complete";
    if (got->entries > want->entries)
        return "a file was left behind";
    if (status != 0 && (strstr(got->err.ptr, "out of memory") || strstr(got->out.ptr, "out of memory")))
        return NULL;
    if (got->status != want->status)
        return status ? "a failure that nothing is said of" : "success where there should be none";
    for (size_t i = 0; i < OUTPUTS; i++)
        if (!same(&got->files[i], &want->files[i]))
            return "an output is missing";
    if (strncmp(line, "bench", 5) != 0 && !same(&got->out, &want->out))
        return "another answer";
    return NULL;
}

/* Every step-th allocation, from `first` on. */
static int sweep(const char *line, unsigned first, unsigned step)
{
    enum { MOST_CALLS = 120 };
    int failures = 0;
    result want = attempt(line, 0, false);
    unsigned calls = atomic_load(&shared->calls);
    print_message("%-70s %u allocations, status %d\n", line, calls, WEXITSTATUS(want.status));
    if (calls > MOST_CALLS) /* it repeats itself, to be timed */
        calls = MOST_CALLS;
    if (!WIFEXITED(want.status) || WEXITSTATUS(want.status) > 2)
        failures++;
    for (int lasting = 0; lasting < 2; lasting++)
        for (unsigned n = first; n <= calls; n += step) {
            result got = attempt(line, n, lasting);
            const char *why = judge(line, &got, &want);
            if (why) {
                print_error("onx %s: allocation %u%s: %s (status %#x)\n%.2000s%.2000s\n", line, n,
                            lasting ? " and all after it" : "", why, (unsigned)got.status, got.err.ptr, got.out.ptr);
                failures++;
            }
            result_free(&got);
        }
    result_free(&want);
    return failures;
}

/* ---- the files ---- */

static void must_run(const char *line)
{
    int status = run(line, 0, false);
    if (status)
        print_error("onx %s: %s\n", line, read_all("stderr").ptr);
    assert_int_equal(status, 0);
}

static void make_files(void)
{
    static const char npy[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 4, 4)}";
    char x[128 + 64];
    memset(x, ' ', 128);
    memset(x + 128, 0, 64);
    memcpy(x, npy, sizeof npy - 1);
    x[127] = '\n';
    put_bytes(in_folder("x.npy"), x, sizeof x);
    put_text(in_folder("p.pgm"), "P2\n5 6\n255\n1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3\n");
    put_text(in_folder("rich.onnxtxt"), rich_model);
    put_text(in_folder("wrong.onnxtxt"), wrong);
    put_text(in_folder("broken.onnxtxt"), broken);
    put_text(in_folder("network.onnxtxt"), network);
    put_text(in_folder("asks.onnxtxt"), asks);
    put_text(in_folder("products.onnxtxt"), products);
    put_text(in_folder("learns.textproto"), learns);
    put_text(in_folder("fixed.onnxtxt"), fixed);
    put_text(in_folder("open.onnxtxt"), open_dims);
    must_run("convert @/rich.onnxtxt @/rich.onnx");
    must_run("convert @/rich.onnxtxt @/rich.json");
    must_run("convert @/network.onnxtxt @/network.onnx");
    must_run("convert @/network.onnxtxt @/network.json");
    if (run("convert @/network.onnxtxt @/away.onnx --external away.data --external-threshold 1 --checksum", 0, false))
        must_run(
            "convert @/network.onnxtxt @/away.onnx --external away.data --external-threshold 1"); /* no libcrypto */
    must_run("train @/learns.textproto --data @/x.npy --set rate=1 --epochs 1 --checkpoint @/state.onnx");
    must_run("convert @/fixed.onnxtxt @/fixed.onnx");
    must_run("ops --domain ai.onnx.ml --export @/ml.json");
    assert_int_equal(mkdir(in_folder("case"), 0777), 0);
    must_run("convert @/fixed.onnxtxt @/case/model.onnx");
    must_run("run @/fixed.onnx -o @/case/test_data_set_0");
}

static void test_scarce_cli__says_that_memory_is_short(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    assert_true(folder_make(folder));
    make_files();
    int failures = 0;
    const unsigned step = share_step(); /* each process looks for leaks: ten minutes for all */
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        failures += sweep(lines[i], 1 + (unsigned)i % step, step);
    folder_remove(folder);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_scarce_cli__says_that_memory_is_short) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
