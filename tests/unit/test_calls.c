/* Every public function, as calls.awk finds it in the headers, is called with arguments that are NULL or out of range,
 * and with each of its allocations failing in turn. No call crashes; errors are a status with a diagnostic. Each call
 * runs in a process of its own, because it may damage the fixture. */
#include "unit/scarce.h"

#include <onx/ffi.h>
#include <onx/kernel.h>
#include <onx/npy.h>
#include <onx/onx.h>
#include <onx/plugin.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/child.h"
#include "unit/folder.h"

typedef struct fixture {
    onx_ctx *cx;
    onx_arena *arena, *other_arena;
    onx_doc *doc, *away, *set;
    onx_model *model;
    onx_graph *graph;
    onx_node *node;
    onx_attribute *attribute, *floats;
    onx_tensor *tensor, *text_tensor;
    onx_type *type;
    onx_session *session;
    onx_doc *training;
    onx_trainer *trainer;
    onx_doc *decoder;
    onx_generator *generator;
    onx_comm_group *group;
    onx_comm comm;
    onx_shard_options shard;
    onx_sharded *sharded;
    onx_tokenizer *tokenizer;
    onx_cancel *cancel, *other_cancel;
    onx_infer *infer;
    onx_registry *registry;
    onx_index *index;
    onx_observer *observer;
    onx_text_places *places;
    onx_placement *layout;
    onx_value *value, *flag, *list, *other, *texts;
    const onx_op *op;
    onx_op_def other_def;
    onx_str binary, textproto, json, npy;
    /* inside of a custom operator only */
    onx_op_call *call;
    onx_prepare *prepare;
    onx_work *work;
} fixture;

/* What a call came to, told by the child. */
typedef struct outcome {
    bool done; /* it returned */
    onx_status status;
    const void *made;
    size_t errors;      /* recorded by it */
    bool out_of_memory; /* one of them says so */
    unsigned allocations;
} outcome;

typedef enum what_returns { STATUS, ANY_STATUS, TOLD_LATER, MADE, OTHER_RESULT } what_returns;
typedef enum argument_kind { POINTER, MAY_BE_NULL, ENUM, NUMBER, OTHER } argument_kind;
enum { ARGUMENTS = 12, NOTHING = -1 };

typedef struct function {
    const char *name;
    void (*call)(const fixture *f, int spoil, int variant, outcome *o);
    what_returns returns;
    int count;
    struct {
        const char *name;
        argument_kind kind;
        bool bears; /* a context, to which a misuse can be told */
    } arguments[ARGUMENTS];
} function;

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

static const char model_text[] =
    "<ir_version: 10, opset_import: [\"\" : 21, \"f\" : 1], metadata_props: [\"k\": \"v\"]>\n"
    "g (float[N] x, bool c) => (float[N] y, string[1] t)\n"
    "<float[1] w = {1}, string[1] texts = {\"a\"}, int64 m = {3}> {\n"
    "  a = f.Twice<k = 2>(x)\n"
    "  b = If(c)<then_branch = p () => (u) { u = Relu(a) }, else_branch = n () => (v) { v = Neg(a) }>\n"
    "  y = Mul(b, w)\n"
    "  t = Identity(texts)\n"
    "}\n"
    "<opset_import: [\"\" : 21], domain: \"f\">\n"
    "Twice <k> (x) => (y) { y = Add(x, x) }\n";
static const char decoder_text[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (int64[1, n] input_ids) => (float[1, n, 3] logits) <float[3, 3] w = {0, 1, 2, 1, 2, 0, 2, 0, 1}>\n"
    "{ logits = Gather (w, input_ids) }";
static const char own_text[] = "<ir_version: 10, opset_import: [\"\" : 21, \"calls\" : 1]>\n"
                               "g (float[1] x) => (float[1] y) { y = calls.Own(x) }\n";

static onx_status forget(void *user, onx_str bytes)
{
    (void)user;
    (void)bytes;
    return ONX_OK;
}

static onx_status member(void *user, onx_str name, onx_value *value)
{
    (void)user, (void)name, (void)value;
    return ONX_OK;
}

static onx_status visit(void *user, const onx_visit *at)
{
    (void)user;
    (void)at;
    return ONX_OK;
}

static onx_status found(void *user, const onx_opset_difference *difference)
{
    (void)user;
    (void)difference;
    return ONX_OK;
}

#include "calls.inc"

enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* ---- a call, in a process of its own ---- */

typedef struct order {
    const function *what;
    int spoil, variant;
    unsigned failing;
} order;

static fixture fix;
static scarce_memory memory;
static const order *pending; /* the call that the custom operator has to make */
static outcome *shared;

static bool waits_for(const char *argument);

static void carry_out(const order *o)
{
    const onx_ctx *cx = fix.cx;
    onx_diag_clear(fix.cx);
    memory.calls = 0;
    memory.failing = o->failing;
    o->what->call(&fix, o->spoil, o->variant, shared);
    memory.failing = 0;
    shared->allocations = memory.calls;
    if (waits_for("p"))
        cx = fix.prepare->cx;
    if (waits_for("work"))
        cx = fix.work->cx;
    const bool gone = strcmp(o->what->name, "onx_ctx_free") == 0 || strcmp(o->what->name, "onx_diag_clear") == 0;
    shared->errors = gone ? 0 : onx_diag_total(cx, ONX_ERROR);
    for (size_t i = 0; !gone && i < onx_diag_count(cx); i++)
        shared->out_of_memory |= onx_diag_get(cx, i)->status == ONX_E_MEMORY;
    shared->done = true;
    _exit(0);
}

/* Called from a place where there is an onx_op_call, onx_prepare or onx_work: makes the call that waits for one. */
static bool waits_for(const char *argument)
{
    for (int i = 0; pending && i < pending->what->count; i++)
        if (strcmp(pending->what->arguments[i].name, argument) == 0)
            return strstr(pending->what->name, strcmp(argument, "p") == 0      ? "onx_prepare_"
                                               : strcmp(argument, "call") == 0 ? "onx_op_call_"
                                                                               : "onx_work_") == pending->what->name;
    return false;
}

static onx_status own_infer(void *user, onx_op_call *call)
{
    (void)user;
    fix.call = call;
    if (waits_for("call"))
        carry_out(pending);
    const onx_op_dim one = 1;
    return onx_op_call_set(call, 0, ONX_FLOAT, &one, 1);
}

static onx_status own_prepare(onx_prepare *p)
{
    fix.prepare = p;
    if (waits_for("p"))
        carry_out(pending);
    return ONX_OK;
}

static onx_status own_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first;
    (void)last;
    fix.work = work;
    if (waits_for("work"))
        carry_out(pending);
    return ONX_OK;
}

static void run_own_operator(void)
{
    onx_doc *doc;
    onx_session *session;
    onx_value *y = NULL;
    const onx_session_options options = { .threads = 1, .registry = fix.registry };
    onx_infer *infer;
    if (onx_text_parse(fix.cx, ONX_KIND_MODEL, onx_str_of(own_text), 0, &doc) == ONX_OK &&
        onx_infer_new(fix.cx, doc, &(onx_infer_options){ .strict = true, .registry = fix.registry }, &infer) ==
            ONX_OK &&
        onx_session_new(fix.cx, doc, &options, &session) == ONX_OK)
        (void)onx_session_run(session, fix.cx, (const onx_value *const[]){ fix.value }, &y);
}

static outcome call(const order *o)
{
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        child_begin();
        pending = o;
        if (waits_for("p") || waits_for("call") || waits_for("work"))
            run_own_operator();
        else
            carry_out(o);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return *shared;
}

/* ---- the fixture ---- */

static onx_status keep(void *user, onx_str bytes)
{
    onx_str *all = user;
    char *more = realloc((char *)(uintptr_t)all->ptr, all->len + bytes.len + 1);
    assert_non_null(more);
    memcpy(more + all->len, bytes.ptr, bytes.len);
    *all = onx_str_make(more, all->len + bytes.len);
    return ONX_OK;
}

static void must(onx_status status)
{
    if (status != ONX_OK && onx_diag_count(fix.cx))
        print_error("%.*s\n", ONX_ARG(onx_diag_get(fix.cx, 0)->message));
    assert_int_equal(status, ONX_OK);
}

static const onx_kernel own_kernels[] = {
    { .op = "Own", .domain = "calls", .since = 1, .prepare = own_prepare, .run = own_run },
    { .op = NULL },
};
static const onx_op_port ports[] = { { "X", "tensor(float)", 0 }, { 0 } };
static const onx_op_attribute attributes[] = { { "k", ONX_ATTR_INT, false, "2" }, { 0 } };

static void make_values(void)
{
    const int64_t one[] = { 1 };
    onx_buffer npy;
    must(onx_value_new_tensor(fix.cx, ONX_FLOAT, 1, one, &fix.value));
    must(onx_value_new_tensor(fix.cx, ONX_BOOL, 0, NULL, &fix.flag));
    must(onx_value_new_tensor(fix.cx, ONX_STRING, 1, one, &fix.texts));
    must(onx_value_new(fix.cx, &fix.list));
    must(onx_value_reset_list(fix.list, ONX_VALUE_SEQUENCE, ONX_UNDEFINED));
    must(onx_value_new(fix.cx, &fix.other));
    must(onx_value_to_npy(fix.cx, fix.value, &npy));
    fix.npy = onx_str_make(npy.ptr, npy.len);
}

static void make_operators(void)
{
    must(onx_registry_new(fix.cx, &fix.registry));
    const onx_op_def own = { .domain = "calls",
                             .name = "Own",
                             .since = 1,
                             .inputs = ports,
                             .outputs = ports,
                             .attributes = attributes,
                             .infer = own_infer,
                             .kernel = own_kernels };
    must(onx_op_register(fix.registry, &own));
    fix.other_def = own;
    fix.other_def.name = "Other";
    must(onx_opset_export(fix.cx, onx_str_of("ai.onnx.ml"), 4, &fix.set));
    fix.op = onx_op_newest(onx_str_of(""), onx_str_of("Conv"));
}

#define FLOAT_1 "type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } }"
static const char training_text[] =
    "ir_version: 10 opset_import { version: 21 } graph { name: \"g\" input { name: \"x\" " FLOAT_1
    " } output { name: \"y\" " FLOAT_1 " }"
    " node { op_type: \"Add\" input: \"x\" input: \"w\" output: \"y\" } initializer { name: \"w\" dims: 1 data_type: 1 float_data: 1 } }"
    " training_info { initialization { name: \"i\" node { op_type: \"Constant\" output: \"w0\" attribute { name: \"value_floats\""
    " type: FLOATS floats: 0 } } output { name: \"w0\" " FLOAT_1 " } }"
    " algorithm { name: \"a\" node { op_type: \"Neg\" input: \"w\" output: \"w1\" } output { name: \"w1\" " FLOAT_1
    " } }"
    " initialization_binding { key: \"w\" value: \"w0\" } update_binding { key: \"w\" value: \"w1\" } }"
    " configuration { name: \"c\" num_devices: 1 }";

static void make_fixture(void)
{
    const onx_external_options out = { .location = "w.bin", .threshold = 1 };
    assert_non_null(fix.cx = onx_ctx_new(&(onx_allocator){ scarce_resize, &memory }));
    must(onx_arena_new(fix.cx, &fix.arena));
    must(onx_arena_new(fix.cx, &fix.other_arena));
    must(onx_text_parse(fix.cx, ONX_KIND_MODEL, onx_str_of(model_text), 0, &fix.doc));
    fix.model = onx_doc_model(fix.doc);
    fix.graph = fix.model->graph;
    fix.node = fix.graph->node[0];
    fix.attribute = fix.node->attribute[0];
    fix.floats =
        onx_node_add_floats(fix.arena, onx_message_new(fix.arena, ONX_KIND_NODE), "f", (const float[]){ 1 }, 1);
    assert_non_null(fix.floats);
    fix.tensor = fix.graph->initializer[0];
    fix.text_tensor = fix.graph->initializer[1];
    fix.type = fix.graph->input[0]->type;
    must(onx_save(fix.cx, fix.doc, in_folder("m.onnx"), NULL));
    must(onx_save(fix.cx, fix.doc, in_folder("away.onnx"), &(onx_save_options){ .external = &out }));
    must(onx_load(fix.cx, ONX_KIND_MODEL, in_folder("away.onnx"), NULL, &fix.away));
    must(onx_session_new(fix.cx, fix.doc, &(onx_session_options){ .threads = 1, .plain = true }, &fix.session));
    must(onx_textproto_read(fix.cx, ONX_KIND_MODEL, onx_str_of(training_text), &fix.training));
    must(onx_text_parse(fix.cx, ONX_KIND_MODEL, onx_str_of(decoder_text), 0, &fix.decoder));
    must(onx_generator_new(fix.cx, fix.decoder,
                           &(onx_generator_options){ .session = &(onx_session_options){ .threads = 1, .plain = true } },
                           &fix.generator));
    must(onx_generator_feed(fix.generator, (const int64_t[1]){ 1 }, 1));
    must(onx_tokenizer_new(fix.cx, onx_str_of("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}"),
                           &fix.tokenizer));
    must(onx_trainer_new(fix.cx, fix.training, &(onx_session_options){ .threads = 1, .plain = true }, &fix.trainer));
    must(onx_cancel_new(fix.cx, &fix.cancel));
    must(onx_cancel_new(fix.cx, &fix.other_cancel));
    must(onx_infer_new(fix.cx, fix.doc, NULL, &fix.infer));
    must(onx_index_new(fix.cx, fix.graph, &fix.index));
    must(onx_observer_new(fix.cx, ONX_OBSERVE_MINMAX, 0, &fix.observer));
    must(onx_observer_add(fix.observer, (const float[]){ 1 }, 1));
    must(onx_text_places_new(fix.doc, &fix.places));
    must(onx_layout_new(fix.cx, &(onx_layout_node){ 8, 8, ONX_LAYOUT_NONE, false }, 1, NULL, 0, NULL, &fix.layout));
    must(onx_write_to(fix.cx, ONX_KIND_MODEL, fix.model, (onx_sink){ keep, &fix.binary }));
    must(onx_textproto_write(fix.cx, ONX_KIND_MODEL, fix.model, (onx_sink){ keep, &fix.textproto }));
    must(onx_json_write(fix.cx, ONX_KIND_MODEL, fix.model, (onx_sink){ keep, &fix.json }));
    make_values();
    make_operators();
    must(onx_comm_group_new(fix.cx, 1, &fix.group));
    must(onx_comm_group_rank(fix.cx, fix.group, 0, &fix.comm));
    fix.shard.comm = &fix.comm;
    must(onx_sharded_new(fix.cx, fix.training, &fix.shard, &fix.sharded));
}

/* ---- the tests ---- */

static int failures;

static void wrong(const order *o, const outcome *got, const char *why)
{
    print_error("%s: ", o->what->name);
    if (o->spoil != NOTHING)
        print_error("%s spoiled (%d): ", o->what->arguments[o->spoil].name, o->variant);
    if (o->failing)
        print_error("allocation %u: ", o->failing);
    print_error("%s (%s, %zu errors)\n", why, onx_status_text(got->status), got->errors);
    failures++;
}

/* A misuse is told to the context that is an argument, else to that of the first argument that has one. */
static bool can_tell(const order *o)
{
    for (int i = 0; i < o->what->count; i++)
        if (strcmp(o->what->arguments[i].name, "cx") == 0)
            return i != o->spoil;
    for (int i = 0; i < o->what->count; i++)
        if (o->what->arguments[i].bears)
            return i != o->spoil;
    return false;
}

static void judge_misuse(const order *o, const outcome *got)
{
    const argument_kind kind = o->spoil == NOTHING ? MAY_BE_NULL : o->what->arguments[o->spoil].kind;
    const bool has_status = o->what->returns <= TOLD_LATER;
    const bool told_now = o->what->returns != TOLD_LATER || got->status == ONX_E_MISUSE;
    if (!got->done)
        wrong(o, got, "crashes");
    else if (o->what->returns == STATUS && kind == MAY_BE_NULL && got->status != ONX_OK)
        wrong(o, got, "fails, and should not");
    else if (has_status && kind == POINTER && got->status != ONX_E_MISUSE)
        wrong(o, got, "is no misuse");
    else if (has_status && kind == ENUM && got->status == ONX_OK)
        wrong(o, got, "succeeds");
    else if (o->what->returns == MADE && (kind == POINTER || kind == ENUM) && got->made)
        wrong(o, got, "makes something");
    else if (has_status && told_now && got->status != ONX_OK && !got->errors && can_tell(o))
        wrong(o, got, "fails without a diagnostic");
    else if (o->what->returns == MADE && !got->made && !got->errors && can_tell(o))
        wrong(o, got, "makes nothing, without a diagnostic");
}

static void test_calls__misuse(void **state)
{
    (void)state;
    failures = 0;
    int calls = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        order o = { .what = &functions[i], .spoil = NOTHING };
        outcome got = call(&o);
        judge_misuse(&o, &got);
        for (o.spoil = 0; o.spoil < functions[i].count; o.spoil++)
            for (o.variant = 0; o.variant < (functions[i].arguments[o.spoil].kind > MAY_BE_NULL ? 2 : 1); o.variant++) {
                got = call(&o);
                judge_misuse(&o, &got);
                calls++;
            }
    }
    print_message("%d functions, %d wrong calls\n", (int)FUNCTIONS, calls);
    assert_int_equal(failures, 0);
}

static void test_calls__every_allocation_may_fail(void **state)
{
    (void)state;
    failures = 0;
    unsigned calls = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        order o = { .what = &functions[i], .spoil = NOTHING };
        const unsigned allocations = call(&o).allocations;
        for (o.failing = 1; o.failing <= allocations; o.failing++, calls++) {
            const outcome got = call(&o);
            if (!got.done)
                wrong(&o, &got, "crashes");
            else if (functions[i].returns == STATUS && got.status != ONX_OK &&
                     (got.status != ONX_E_MEMORY || !got.out_of_memory))
                wrong(&o, &got, "does not say that memory is short");
            else if (functions[i].returns == STATUS && got.status == ONX_OK && got.errors)
                wrong(&o, &got, "succeeds after an error");
            else if (functions[i].returns == MADE && !got.made && !got.out_of_memory)
                wrong(&o, &got, "makes nothing, and does not say that memory is short");
        }
    }
    print_message("%u failing allocations\n", calls);
    assert_int_equal(failures, 0);
}

static int set_up(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !folder_make(folder))
        return -1;
    make_fixture();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_calls__misuse),
                                        cmocka_unit_test(test_calls__every_allocation_may_fail) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
