/* Names made to fall on one place of a hash table do not make any command slow: a model whose names begin or end with a
 * constant of the hash takes about the time of one with ordinary names, whose bytes differ in a single bit. */
#include <onx/io.h>

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

static double best_of(const char *const *command, const char *file, int *status)
{
    const char *args[10] = { "onx" };
    int n = 1;
    for (; command[n - 1]; n++)
        args[n] = strcmp(command[n - 1], "@") == 0 ? file : command[n - 1];
    args[n] = file;
    double best = 1e9;
    for (int round = 0; round < 2; round++) {
        double t = time_of(args, status);
        best = t < best ? t : best;
    }
    return best;
}

/* The words differ from the constants of the hash in one bit: nothing but the hash can tell them apart. */
static const style ordinary = { "ordinary", 0xa0761d6478bd642e, 0xd6e8feb86659fd92 };
static const style hostile[] = { { "with a constant before the number", 0xa0761d6478bd642f, 0 },
                                 { "with a constant after the number", 0, 0xe7037ed1a0b428db },
                                 { "with constants on both sides", 0xa0761d6478bd642f, 0xd6e8feb86659fd93 } };
enum { STYLES = sizeof hostile / sizeof *hostile };

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
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        int usually, now;
        double usual = best_of(commands[c], plain, &usually);
        assert_true(WIFEXITED(usually) && WEXITSTATUS(usually) != 127);
        for (size_t s = 0; s < STYLES; s++) {
            snprintf(flood, sizeof flood, "%s/flood%zu.onnx", folder, s);
            double took = best_of(commands[c], flood, &now);
            print_message("%-8s %.3f s, %s %.3f s\n", commands[c][0], usual, hostile[s].what, took);
            assert_int_equal(now, usually);
            failures += took > 3 * usual + 0.1;
        }
    }
    folder_remove(folder);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_flood__no_command_gets_slow) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
