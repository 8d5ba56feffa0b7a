/* Names constructed to collide in a hash table do not slow any command down: a model whose names begin or end with a
 * constant of the hash takes about as long as one with ordinary names, whose bytes differ in a single bit. */
#include <onx/check.h>
#include <onx/grad.h>
#include <onx/io.h>
#include <onx/text.h>
#include <onx/train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/context.h"
#include "unit/folder.h"

static char folder[FOLDER_ROOM];

enum { NODES = 20000, FEWER = 5000 };

/* A name with a number: the words before or after it, or both, are what a hash might multiply by. */
typedef struct style {
    const char *what;
    uint64_t before, after; /* 0: none */
} style;

static onx_str name_of(onx_arena *arena, const style *s, char kind, uint32_t number)
{
    char text[40];
    size_t len = 0;
    if (s->before)
        memcpy(text, &s->before, 8);
    len += s->before ? 8 : 0;
    len += (size_t)snprintf(text + len, 10, "%c%07u", kind, number);
    if (s->after)
        memcpy(text + len, &s->after, 8);
    len += s->after ? 8 : 0;
    onx_bytes kept;
    assert_int_equal(onx_arena_keep(arena, onx_str_make(text, len), &kept), ONX_OK);
    return onx_view(kept);
}

static void set_text(onx_arena *arena, onx_bytes *to, onx_str text)
{
    assert_int_equal(onx_arena_refer(arena, text, to), ONX_OK);
}

/* A chain of nodes, all of them and their values named; initializers, metadata, functions and symbols of dimensions. */
static void save_model(const style *s, const char *path)
{
    onx_doc *doc;
    assert_int_equal(onx_model_new(cx, "flood", 21, &doc), ONX_OK);
    onx_arena *arena = onx_doc_arena(doc);
    onx_model *model = onx_doc_model(doc);
    onx_graph *g = model->graph;
    const int64_t shape[] = { 1 };
    const float zero = 0;
    onx_graph_add_input(arena, g, "x", onx_type_new_tensor(arena, ONX_FLOAT, shape, 1));
    for (uint32_t i = 0; i < NODES; i++) {
        onx_node *node = onx_graph_add_node(arena, g, "Neg", "x", "y");
        assert_non_null(node);
        if (i)
            set_text(arena, &node->input[0], name_of(arena, s, 'v', i - 1));
        if (i + 1 < NODES)
            set_text(arena, &node->output[0], name_of(arena, s, 'v', i));
        ONX_SET(node, node, name, ((onx_bytes){ 0 }));
        set_text(arena, &node->name, name_of(arena, s, 'n', i));
    }
    onx_graph_add_output(arena, g, "y", onx_type_new_tensor(arena, ONX_FLOAT, shape, 1));
    for (uint32_t i = 0; i < FEWER; i++) {
        onx_tensor *t = onx_tensor_new(arena, ONX_FLOAT, shape, 1, &zero, "w");
        void *list = g->initializer;
        onx_tensor **slot = onx_list_insert(arena, &list, &g->initializer_count, i, sizeof *slot);
        g->initializer = list;
        *slot = t;
        set_text(arena, &t->name, name_of(arena, s, 'w', i));
        onx_type *type = onx_type_new_tensor(arena, ONX_FLOAT, shape, 1);
        onx_dimension *d = type->tensor_type->shape->dim[0];
        ONX_CLEAR(dimension, d, dim_value);
        ONX_SET(dimension, d, dim_param, ((onx_bytes){ 0 }));
        set_text(arena, &d->dim_param, name_of(arena, s, 'd', i));
        set_text(arena, &onx_graph_add_input(arena, g, "i", type)->name, name_of(arena, s, 'i', i));
        onx_string_string_entry *m = onx_list_add_message(arena, (void ***)(void *)&model->metadata_props,
                                                          &model->metadata_props_count, ONX_KIND_STRING_STRING_ENTRY);
        ONX_SET(string_string_entry, m, key, ((onx_bytes){ 0 }));
        set_text(arena, &m->key, name_of(arena, s, 'm', i));
    }
    assert_int_equal(onx_save(cx, doc, path, NULL), ONX_OK);
    onx_doc_free(doc);
}

/* Processor time of the program in seconds, and what it ended with. */
static double time_of(const char *const *args, int *status)
{
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        execv(ONX_PROGRAM, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, status, 0), child);
    getrusage(RUSAGE_CHILDREN, &after);
    return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
           1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
}

static const char *const commands[][6] = {
    { "info" },
    { "show" },
    { "check" },
    { "check", "--full", "--strict" },
    { "infer", "-o", "-", "--to", "onnx" },
    { "run", "--random" },
    { "convert", "--to", "onnxtxt", "-o", "-" },
    { "convert", "--to", "json", "-o", "-" },
    { "convert", "--to", "textproto", "-o", "-" },
    { "diff", "@" }, /* the other model of the same style */
};

static double processor_time(const char *const *command, const char *file, int *status)
{
    const char *args[10] = { "onx" };
    int n = 1;
    for (; command[n - 1]; n++)
        args[n] = strcmp(command[n - 1], "@") == 0 ? file : command[n - 1];
    args[n] = file;
    return time_of(args, status);
}

/* The words differ from the constants of the hash in one bit: nothing but the hash can tell them apart. */
static const style ordinary = { "ordinary", 0xa0761d6478bd642e, 0xd6e8feb86659fd92 };
static const style hostile[] = { { "with a constant before the number", 0xa0761d6478bd642f, 0 },
                                 { "with a constant after the number", 0, 0xe7037ed1a0b428db },
                                 { "with constants on both sides", 0xa0761d6478bd642f, 0xd6e8feb86659fd93 } };
enum { STYLES = sizeof hostile / sizeof *hostile };

/* A table whose names all fall on one place takes seconds instead of hundredths, every time. A machine with other work
 * may make one pair of runs look like that, so it is what all of several pairs say that counts. */
static bool is_slow(const char *const *command, const char *plain, const char *flood, const char *what)
{
    for (int round = 0; round < 6; round++) {
        int usually, now;
        const double usual = processor_time(command, plain, &usually), took = processor_time(command, flood, &now);
        assert_true(WIFEXITED(usually) && WEXITSTATUS(usually) != 127);
        assert_int_equal(now, usually);
        if (took <= 3 * usual + 0.1)
            return false;
        print_message("%-8s %.3f s, %s %.3f s\n", command[0], usual, what, took);
    }
    return true;
}

static void test_flood__no_command_gets_slow(void **state)
{
    (void)state;
    assert_true(folder_make(folder));
    char plain[FOLDER_ROOM + 32], flood[FOLDER_ROOM + 32];
    snprintf(plain, sizeof plain, "%s/plain.onnx", folder);
    save_model(&ordinary, plain);
    for (size_t s = 0; s < STYLES; s++) {
        snprintf(flood, sizeof flood, "%s/flood%zu.onnx", folder, s);
        save_model(&hostile[s], flood);
    }
    int failures = 0;
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
        for (size_t s = 0; s < STYLES; s++) {
            snprintf(flood, sizeof flood, "%s/flood%zu.onnx", folder, s);
            failures += is_slow(commands[c], plain, flood, hostile[s].what);
        }
    folder_remove(folder);
    assert_int_equal(failures, 0);
}

/* ---- texts, read ---- */

/* Bytes that grow. */
typedef struct bytes {
    char *ptr;
    size_t len, room;
} bytes;

static void add(bytes *b, const char *text)
{
    const size_t len = strlen(text);
    if (b->len + len + 1 > b->room) {
        b->room = 2 * (b->len + len + 1);
        b->ptr = realloc(b->ptr, b->room);
        assert_non_null(b->ptr);
    }
    memcpy(b->ptr + b->len, text, len + 1);
    b->len += len;
}

static onx_status add_bytes(void *user, onx_str more)
{
    char text[4096];
    for (size_t at = 0, n; at < more.len; at += n) {
        n = more.len - at < sizeof text - 1 ? more.len - at : sizeof text - 1;
        memcpy(text, more.ptr + at, n);
        text[n] = 0;
        add(user, text);
    }
    return ONX_OK;
}

/* A name made of blocks that h * 33 + c cannot tell apart ("ab" and "bA"), or h * 31 + c ("Aa" and "BB"): a table by
 * either of these hashes has all of them in one place. */
static const char *colliding(char name[64], char kind, uint32_t number)
{
    static const char *const blocks[2][2] = { { "ab", "bA" }, { "Aa", "BB" } };
    size_t len = 0;
    name[len++] = kind;
    for (int bit = 17; bit >= 0; bit--, len += 2)
        memcpy(name + len, blocks[kind % 2][number >> bit & 1], 2);
    name[len] = 0;
    return name;
}

static void add_chain(bytes *b, uint32_t count, const char *wrong, const char *end)
{
    char name[64], text[256];
    add(b, "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float x) => (float y) {\n");
    for (uint32_t i = 0; i < count; i++) {
        char before[64];
        snprintf(text, sizeof text, "%s = %s(", i + 1 < count ? colliding(name, 'v', i) : "y", wrong);
        add(b, text);
        snprintf(text, sizeof text, "%s)%s", i ? colliding(before, 'v', i - 1) : "x", end);
        add(b, text);
    }
    add(b, "}\n");
}

/* Nodes, each made from the one before; as text of every format. */
static void make_text(bytes *b, uint32_t count)
{
    add_chain(b, count, "Neg", "\n");
}
static void make_remarks(bytes *b, uint32_t count)
{
    add_chain(b, count, "Neg", " # a remark\n  # and another\n");
}
static void make_errors(bytes *b, uint32_t count)
{
    add_chain(b, count, "Neg)", "\n");
}
static void make_errors_in_one_line(bytes *b, uint32_t count)
{
    add_chain(b, count, "Neg)", " ");
}
static void convert_chain(bytes *b, uint32_t count, onx_status (*write)(onx_ctx *, onx_kind, const void *, onx_sink))
{
    bytes text = { NULL, 0, 0 };
    onx_doc *doc;
    make_text(&text, count);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(text.ptr, text.len), 0, &doc), ONX_OK);
    assert_int_equal(write(cx, ONX_KIND_MODEL, onx_doc_model(doc), (onx_sink){ add_bytes, b }), ONX_OK);
    onx_doc_free(doc);
    free(text.ptr);
}
static void make_json(bytes *b, uint32_t count)
{
    convert_chain(b, count, onx_json_write);
}
static void make_textproto(bytes *b, uint32_t count)
{
    convert_chain(b, count, onx_textproto_write);
}
/* A long list, and strings with escapes. */
static void make_json_members(bytes *b, uint32_t count)
{
    char name[64], text[128];
    add(b, "{\"metadataProps\": [");
    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s{\"key\": \"%s\", \"value\": \"\\u00e9\\n\"}\n", i ? "," : "",
                 colliding(name, 'k', i));
        add(b, text);
    }
    add(b, "]}");
}
static void make_textproto_members(bytes *b, uint32_t count)
{
    char name[64], text[160];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "metadata_props { key: \"%s\" 'b' value: \"\\303\\251\\n\" } # remark\n",
                 colliding(name, 'k', i));
        add(b, text);
    }
}

/* Variables that a step changes, each by an output of its own. */
static void make_training(bytes *b, uint32_t count)
{
    static const char *const parts[] = {
        "initializer { data_type: 1 name: \"%s\" float_data: 1 }\n",
        "node { op_type: \"Neg\" input: \"%s\" output: \"%s\" }\n",
        "output { name: \"%.0s%s\" type { tensor_type { elem_type: 1 shape { } } } }\n",
        "update_binding { key: \"%s\" value: \"%s\" }\n",
    };
    char name[64], made[64], text[256];
    add(b, "ir_version: 10 opset_import { version: 21 } graph { name: \"g\"\n");
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        if (part == 1)
            add(b, "} training_info { algorithm { name: \"a\"\n");
        if (part == 3)
            add(b, "}\n");
        for (uint32_t i = 0; i < count; i++) {
            snprintf(text, sizeof text, parts[part], colliding(name, 'v', i), colliding(made, 'w', i));
            add(b, text);
        }
    }
    add(b, "}\n");
}
/* A sum of many values, each of which is asked about. */
static void make_sum(bytes *b, uint32_t count)
{
    char name[64];
    add(b, "<ir_version: 10, opset_import: [\"\" : 21]>\ng (");
    for (int list = 0; list < 2; list++) {
        for (uint32_t i = 0; i < count; i++) {
            add(b, i ? ", " : "");
            add(b, list ? "" : "float ");
            add(b, colliding(name, 'v', i));
        }
        add(b, list ? ") }\n" : ") => (float y) { y = Sum (");
    }
}
static onx_status open_trainer(onx_str text, onx_doc **out)
{
    onx_trainer *trainer;
    onx_status status = onx_textproto_read(cx, ONX_KIND_MODEL, text, out);
    if (status != ONX_OK || (status = onx_trainer_new(cx, *out, NULL, &trainer)) != ONX_OK)
        return status;
    onx_trainer_free(trainer);
    return ONX_OK;
}
static onx_status derive_by_all(onx_str text, onx_doc **out)
{
    onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, text, 0, out);
    if (status != ONX_OK)
        return status;
    const onx_graph *g = onx_doc_model(*out)->graph;
    onx_str *wrt = calloc(g->input_count, sizeof *wrt);
    assert_non_null(wrt);
    for (uint32_t i = 0; i < g->input_count; i++)
        wrt[i] = onx_view(g->input[i]->name);
    const onx_grad_options options = { .of = onx_str_of("y"), .wrt = wrt, .wrt_count = g->input_count };
    status = onx_grad(cx, *out, &options);
    free(wrt);
    return status;
}

static onx_status read_text(onx_str text, onx_doc **out)
{
    onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, text, 0, out);
    if (status == ONX_OK)
        assert_int_equal(onx_text_locate(*out, 0), ONX_OK);
    return status;
}
static onx_status read_json(onx_str text, onx_doc **out)
{
    return onx_json_read(cx, ONX_KIND_MODEL, text, out);
}
static onx_status read_textproto(onx_str text, onx_doc **out)
{
    return onx_textproto_read(cx, ONX_KIND_MODEL, text, out);
}
static onx_status ignore_bytes(void *user, onx_str text)
{
    (void)user;
    (void)text;
    return ONX_OK;
}
static onx_status format_text(onx_str text, onx_doc **out)
{
    *out = NULL;
    return onx_text_format(cx, ONX_KIND_MODEL, text, (onx_sink){ ignore_bytes, NULL });
}
/* What a reader notices about each node is placed in the text. */
static onx_status place_findings(onx_str text, onx_doc **out)
{
    onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, text, 0, out);
    if (status != ONX_OK)
        return status;
    (void)onx_check(cx, *out, NULL, NULL);
    return onx_text_locate(*out, 0);
}

static const struct {
    const char *what;
    void (*make)(bytes *b, uint32_t count);
    onx_status (*read)(onx_str text, onx_doc **out);
    bool wrong;     /* an error stands in it again and again */
    uint32_t fewer; /* how many names, and then four times as many; 0: FEWER_NAMES */
} texts[] = {
    { "ONNX text", make_text, read_text, false, 0 },
    { "ONNX text with remarks", make_remarks, read_text, false, 0 },
    { "ONNX text with an error in each line", make_errors, read_text, true, 0 },
    { "ONNX text with errors in one line", make_errors_in_one_line, read_text, true, 0 },
    { "ONNX text, formatted", make_remarks, format_text, false, 0 },
    { "ONNX text, findings", make_text, place_findings, false, 0 },
    { "JSON", make_json, read_json, false, 0 },
    { "JSON, a long list", make_json_members, read_json, false, 0 },
    { "protobuf text", make_textproto, read_textproto, false, 0 },
    { "protobuf text, a long list", make_textproto_members, read_textproto, false, 0 },
    { "training of many variables", make_training, open_trainer, false, 4000 },
    { "a gradient by many values", make_sum, derive_by_all, false, 4000 },
};

static double own_time(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double time_to_read(size_t which, uint32_t count)
{
    bytes b = { NULL, 0, 0 };
    double best = 1e9;
    texts[which].make(&b, count);
    for (int round = 0; round < 3; round++) {
        onx_doc *doc = NULL;
        onx_diag_clear(cx);
        const double begin = own_time();
        const onx_status status = texts[which].read(onx_str_make(b.ptr, b.len), &doc);
        const double took = own_time() - begin;
        if (texts[which].wrong)
            assert_true(status != ONX_OK && onx_diag_total(cx, ONX_ERROR) > 0);
        else
            assert_int_equal(status, ONX_OK);
        onx_doc_free(doc);
        best = took < best ? took : best;
    }
    onx_diag_clear(cx);
    free(b.ptr);
    return best;
}

static void test_flood__reading_texts_is_linear(void **state)
{
    (void)state;
    enum { FEWER_NAMES = 40000, ATTEMPTS = 4 };
    int slow = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const uint32_t fewer = texts[i].fewer ? texts[i].fewer : FEWER_NAMES;
        /* Linear: four times, more where caches end; quadratic: sixteen times. Who is slow is so each time, while a
         * machine that others use is so now and then. */
        bool linear = false;
        for (int attempt = 0; !linear && attempt < ATTEMPTS; attempt++) {
            const double few = time_to_read(i, fewer), many = time_to_read(i, 4 * fewer);
            print_message("%-40s %.3f s, of four times as much %.3f s\n", texts[i].what, few, many);
            linear = many <= 8 * few + 0.05;
        }
        slow += !linear;
    }
    assert_int_equal(slow, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_flood__no_command_gets_slow),
                                        cmocka_unit_test(test_flood__reading_texts_is_linear) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
