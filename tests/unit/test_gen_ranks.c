/* test_gen_ranks.c - operands of any rank and size: whatever the shapes of a node's operands (and an attribute) are, a
 * kernel refuses them or keeps within them. Operands, and the outputs of a second run, end or begin at memory that
 * cannot be accessed.
 *
 * ONX_GEN_ALL=1 draws many times for every version of every operator, in some minutes; otherwise a few times for the
 * newest versions. ONX_GEN_ONLY=name tests one operator, ONX_GEN_SEED=n draws others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/gen.h"
#include "share.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_BYTES = 1 << 16, DRAWS = 3, DRAWS_ALL = 40, SIZE_MOST = 5 };

/* What runs now, for the message of a crash. */
static char doing[1024];

static void crashed(int number)
{
    static const char text[] = "outside of its operands, or crashes: ";
    (void)number;
    if (write(2, text, sizeof text - 1) >= 0 && write(2, doing, strlen(doing)) >= 0)
        (void)!write(2, "\n", 1);
    _exit(1);
}

/* ---- values next to memory that cannot be accessed ---- */

typedef struct fenced {
    char *map;
    size_t size;
    onx_value *value;
} fenced;

/* A tensor like `v` with its elements; false: it is no such tensor, or too large. */
static bool fence(onx_ctx *cx, const onx_value *v, bool at_end, fenced *out)
{
    *out = (fenced){ NULL, 0, NULL };
    if (!v || v->kind != ONX_VALUE_TENSOR || v->dtype == ONX_STRING || v->size > MOST_BYTES)
        return false;
    const size_t room = ((size_t)v->size + PAGE - 1) / PAGE * PAGE + PAGE;
    char *map = mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    *out = (fenced){ map, room + PAGE, NULL };
    char *data = at_end ? map + room - v->size : map + PAGE;
    if (v->size)
        memcpy(data, v->data, (size_t)v->size);
    const onx_memory memory = { .dtype = v->dtype, .rank = v->rank, .dims = v->dims, .data = data, .size = v->size };
    return mprotect(at_end ? map + room : map, PAGE, PROT_NONE) == 0 &&
           onx_value_wrap(cx, &memory, &out->value) == ONX_OK;
}

static void unfence(fenced *f)
{
    onx_value_free(f->value);
    if (f->map)
        (void)munmap(f->map, f->size);
}

/* ---- shapes ---- */

static void insert(gen_operand *o, uint32_t at, int64_t size)
{
    if (o->rank == GEN_RANK)
        return;
    memmove(o->dims + at + 1, o->dims + at, (o->rank - at) * sizeof *o->dims);
    o->dims[at] = size;
    o->rank++;
}

static void drop(gen_operand *o, uint32_t at)
{
    memmove(o->dims + at, o->dims + at + 1, (o->rank - at - 1) * sizeof *o->dims);
    o->rank--;
}

static void change(gen_operand *o, gen_random *r)
{
    const uint32_t at = gen_below(r, o->rank + 1), other = gen_below(r, o->rank + 1);
    const uint32_t how = gen_below(r, 7);
    if (how == 0)
        insert(o, at, 1);
    else if (how == 1)
        insert(o, at, gen_below(r, SIZE_MOST));
    else if (at == o->rank || other == o->rank)
        o->rank = how == 2 ? 0 : o->rank; /* a scalar, or nothing */
    else if (how < 4)
        drop(o, at);
    else if (how < 6)
        o->dims[at] = gen_below(r, SIZE_MOST + 4);
    else {
        const int64_t size = o->dims[at];
        o->dims[at] = o->dims[other];
        o->dims[other] = size;
    }
}

static bool is_small(const gen_operand *o)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < o->rank; i++)
        count *= (uint64_t)o->dims[i];
    return count * 16 <= MOST_BYTES;
}

/* False: there is nothing to change. */
static bool change_some(gen_node *node, gen_random *r)
{
    bool any = false;
    for (uint32_t turn = 1 + gen_below(r, 2); turn > 0 && node->operand_count; turn--) {
        gen_operand *o = &node->operands[gen_below(r, node->operand_count)];
        const gen_operand before = *o;
        if (o->kind != GEN_TENSOR || o->made)
            continue;
        change(o, r);
        if (!is_small(o))
            *o = before;
        any = any || o->rank != before.rank || memcmp(o->dims, before.dims, sizeof o->dims) != 0;
    }
    return any;
}

static void describe(const gen_node *node, const char *name, bool plain, const char *how)
{
    size_t len = (size_t)snprintf(doing, sizeof doing, "%s-%d %s%s <%.200s>", name, (int)node->schema->since,
                                  plain ? "plain" : "fast", how, node->attributes);
    for (uint32_t i = 0; i < node->operand_count && len + 60 < sizeof doing; i++) {
        const gen_operand *o = &node->operands[i];
        len += (size_t)snprintf(doing + len, sizeof doing - len, " %s[",
                                o->kind == GEN_OMITTED ? "-" : onx_dtype_name(o->dtype));
        for (uint32_t k = 0; o->kind != GEN_OMITTED && k < o->rank && len + 30 < sizeof doing; k++)
            len += (size_t)snprintf(doing + len, sizeof doing - len, k ? ",%d" : "%d", (int)o->dims[k]);
        len += (size_t)snprintf(doing + len, sizeof doing - len, "]");
    }
}

/* One attribute gets any value or none: the same one each time. */
typedef struct twist {
    const onxi_schema *schema;
    gen_random random;
} twist;

static void edit(void *user, onx_arena *arena, onx_node *node)
{
    twist t = *(const twist *)user;
    (void)gen_wild_attribute(arena, node, t.schema, &t.random);
}

/* Inputs declare no shapes: what they are turns out in the run. */
static void open_shapes(onx_doc *doc)
{
    const onx_graph *graph = onx_doc_model(doc)->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const onx_type *type = graph->input[i]->type;
        if (type && ONX_HAS(type, type, tensor_type))
            type->tensor_type->shape = NULL;
    }
}

/* ---- running ---- */

typedef struct state {
    onx_ctx *cx;
    gen_random random;
    unsigned drawn, runs, bad;
} state;

/* Runs with operands, and then with outputs, at fences. The status of the first run. */
static onx_status run(state *s, onx_doc *doc, const gen_node *node, bool plain, bool at_end)
{
    const onx_session_options options = { .threads = 1, .plain = plain, .memory = 64 << 20 };
    const onx_run_options limits = { .timeout_ns = UINT64_C(2000000000), .iterations = 1000 };
    onx_session *session = NULL;
    onx_value *drawn[GEN_OPERANDS] = { NULL }, *outputs[GEN_OUTPUTS] = { NULL }, *again[GEN_OUTPUTS] = { NULL };
    const onx_value *inputs[GEN_OPERANDS] = { NULL };
    fenced in[GEN_OPERANDS] = { { NULL, 0, NULL } }, out[GEN_OUTPUTS] = { { NULL, 0, NULL } };
    onx_status status = onx_session_new(s->cx, doc, &options, &session);
    uint32_t count = status == ONX_OK ? onx_session_input_count(session) : 0, results = 0;
    for (uint32_t i = 0; status == ONX_OK && i < count && i < GEN_OPERANDS; i++) {
        for (uint32_t k = 0; k < node->operand_count && !drawn[i]; k++)
            if (onx_str_is(onx_session_input(session, i).name, node->operands[k].name))
                status = gen_value(s->cx, &node->operands[k], &drawn[i]);
        inputs[i] = status == ONX_OK && fence(s->cx, drawn[i], at_end, &in[i]) ? in[i].value : drawn[i];
    }
    if (status == ONX_OK && (results = onx_session_output_count(session)) <= GEN_OUTPUTS && count <= GEN_OPERANDS) {
        s->runs++;
        status = onx_session_run_with(session, s->cx, inputs, outputs, &limits);
        for (uint32_t i = 0; status == ONX_OK && i < results; i++)
            if (fence(s->cx, outputs[i], at_end, &out[i])) {
                again[i] = out[i].value;
                again[i]->refs++;
            }
        if (status == ONX_OK && onx_session_run_with(session, s->cx, inputs, again, &limits) != ONX_OK) {
            print_error("%s: the second run fails\n", doing);
            s->bad++;
        }
    }
    onx_session_free(session);
    for (uint32_t i = 0; i < GEN_OPERANDS; i++) {
        unfence(&in[i]);
        onx_value_free(drawn[i]);
    }
    for (uint32_t i = 0; i < GEN_OUTPUTS; i++) {
        onx_value_free(again[i]);
        unfence(&out[i]);
        onx_value_free(outputs[i]);
    }
    onx_diag_clear(s->cx);
    return status;
}

static void try_one(state *s, const onxi_schema *schema, const gen_recipe *recipe, const char *name)
{
    static const uint8_t types[] = { ONX_FLOAT, ONX_FLOAT, ONX_DOUBLE, ONX_FLOAT16, ONX_INT64,
                                     ONX_INT32, ONX_UINT8, ONX_INT8,   ONX_BOOL,    ONX_BFLOAT16 };
    gen_node node;
    const gen_choice choice = { .random = &s->random,
                                .vary = gen_below(&s->random, 2) != 0,
                                .wide = gen_below(&s->random, 3) == 0,
                                .fixed = gen_below(&s->random, 3) == 0,
                                .type = { "*", (onx_dtype)types[gen_below(&s->random, sizeof types)] } };
    const bool open = gen_below(&s->random, 2) != 0, at_end = gen_below(&s->random, 4) != 0;
    const bool wild = gen_below(&s->random, 3) == 0;
    twist t = { schema, { .state = gen_next(&s->random) } };
    char how[64];
    onx_status status[2];
    (void)snprintf(how, sizeof how, "%s%s%s", open ? ", shapes open" : "", wild ? ", wild" : "",
                   choice.fixed ? ", constants" : "");
    if (!gen_node_make(schema, recipe, &choice, &node) || !change_some(&node, &s->random))
        return;
    s->drawn++;
    for (int plain = 0; plain < 2; plain++) {
        onx_doc *doc = NULL;
        describe(&node, name, plain, how);
        status[plain] = gen_model(s->cx, &node, wild ? edit : NULL, &t, &doc);
        if (status[plain] == ONX_OK) {
            if (open)
                open_shapes(doc);
            status[plain] = run(s, doc, &node, plain, at_end);
        }
        onx_doc_free(doc);
        onx_diag_clear(s->cx);
    }
    if ((status[0] == ONX_OK) != (status[1] == ONX_OK) && status[0] != ONX_E_LIMIT && status[1] != ONX_E_LIMIT &&
        !(schema->flags & ONXI_OP_NONDETERMINISTIC)) {
        print_error("%s: %s, with fast kernels %s\n", doing, onx_status_text(status[1]), onx_status_text(status[0]));
        s->bad++;
    }
}

static void test_gen_ranks__kernels_keep_within_their_operands(void **unused)
{
    (void)unused;
    const char *only = getenv("ONX_GEN_ONLY"), *seed = getenv("ONX_GEN_SEED");
    const bool all = getenv("ONX_GEN_ALL") != NULL;
    state s = { .cx = onx_ctx_new(NULL) };
    const uint64_t first = (seed ? strtoul(seed, NULL, 10) : 1) * UINT64_C(1000003);
    unsigned number = 0;
    (void)signal(SIGSEGV, crashed);
    (void)signal(SIGBUS, crashed);
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            const gen_recipe *recipe;
            char text[128];
            const char *name = gen_operator_name(schema, text);
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++) {
                if ((only && strcmp(only, name) != 0) || gen_lacks_library(schema->name) || !share_has(number++))
                    continue;
                /* each recipe draws by itself, so that one operator can be tested alone */
                s.random.state = first + i * 131 + n * 7 + (unsigned)schema->since;
                for (int k = 0; k < (all ? DRAWS_ALL : DRAWS); k++)
                    try_one(&s, schema, recipe, name);
            }
            if (!all && !only) /* the newest version */
                break;
        }
    onx_ctx_free(s.cx);
    print_message("%u nodes, %u runs\n", s.drawn, s.runs);
    assert_int_equal(s.bad, 0);
    assert_true(s.runs > 0 || only || share_step() > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_ranks__kernels_keep_within_their_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
