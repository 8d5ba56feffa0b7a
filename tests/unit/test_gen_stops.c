/* test_gen_stops.c - a run can be ended within milliseconds, whatever it runs: for every version of every operator,
 * with sizes that grow until a run takes long, the time between two looks at the watch stays short.
 *
 * ONX_GEN_ALL=1 tests all of them, with plain and with fast kernels, in some minutes of CPU time; otherwise a part of
 * the newest versions that a fixed seed draws. ONX_GEN_ONLY=name tests one operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LONG_MS = 160,        /* a run that takes so long is long enough to judge */
    GAP_MS = 60,          /* the longest time without a look */
    TRIES = 4,            /* of which the least counts, since the memory of a busy machine is slow at times */
    MOST_MS = 600,        /* where a run is ended at the latest, if it looks */
    BUDGET_MS = 1500,     /* for all sizes of a node, with drawing its operands */
    MOST_BYTES = 1 << 25, /* of an operand */
    DRAWN = 48            /* one of so many nodes is in the part that is drawn */
};

/* In nanoseconds; with sanitizers everything takes several times as long. */
static uint64_t span(uint64_t ms)
{
    return ms * 1000000 * (getenv("ONX_SANITIZED") ? 8 : 1);
}

/* Nodes whose work grows with more than the sizes that recipes.def lets grow, in its language. */
static const gen_recipe heavy[] = {
    { "NonMaxSuppression", 10, "[1,N*10,4]u [1,3,N*10]u [1]{N*10} [1]{0.99} [1]{0}", "", 0 },
    { "NonMaxSuppression", 10, "[1,N*10,4]u [1,1,N*10]u [1]{N*10} [1]{0.99} [1]{0}", "", 0 },
    { "MaxPool AveragePool LpPool", 1, "[1,1,N*8,N*8]", "kernel_shape = [$(N*4), $(N*4)]", 1 },
    { "MaxPool AveragePool LpPool", 1, "[1,1,N*64]", "kernel_shape = [$(N*32)]", 1 },
    { "LRN", 1, "[1,N*64,3,3]", "size = $(N*32+1)", 0 },
    { "RoiAlign", 10, "[1,2,10,10] [N*4,4]u [N*4]<1", "output_height = 30, output_width = 30, sampling_ratio = $N", 0 },
    { "RoiAlign", 10, "[1,1,10,10] [1,4]{0,0,9,9} [1]{0}", "output_height = $(N*4), output_width = $(N*4)", 0 },
    { "MaxRoiPool", 1, "[1,2,N*8,N*8] [1,5]{0,0,0,99,99}", "pooled_shape = [$N, $N]", 0 },
    { "DFT", 17, "[1,N*2+1,2]", "axis = 1", 0 },
    { "DFT", 17, "[N*16,N*16,2]", "axis = 1", 0 },
    { "Det", 11, "[N*4,N*4]", "", 0 },
    { "RNN", 7, "[H*8,1,8] [1,M*4,8] [1,M*4,M*4]", "hidden_size = $(M*4)", 0 },
    { "GRU", 7, "[H*8,1,8] [1,M*12,8] [1,M*12,M*4]", "hidden_size = $(M*4)", 0 },
    { "LSTM", 7, "[H*8,1,8] [1,M*16,8] [1,M*16,M*4]", "hidden_size = $(M*4)", 0 },
    { "CumSum CumProd", 11, "[N*64,N*64] []{0}", "", 0 },
    { "CumSum CumProd", 11, "[N*4096] []{0}", "", 0 },
    { "OneHot", 9, "int64:[N*32]<3 int64:[]{N*32} [2]", "", 0 },
    { "EyeLike", 9, "[N*64,N*64]", "dtype = 1", 0 },
    { "RandomNormal RandomUniform", 1, "", "shape = [$(N*64), $(N*64)], dtype = 1", 0 },
    { "RandomNormalLike RandomUniformLike", 1, "[N*64,N*64]", "dtype = 1", 0 },
    { "Bernoulli", 15, "[N*64,N*64]u", "", 0 },
    { "Multinomial", 7, "[2,N*8]", "sample_size = $(N*64)", 0 },
    { "Range", 11, "int64:[]{0} int64:[]{N*4096} int64:[]{1}", "", 0 },
    { "BlackmanWindow HannWindow HammingWindow", 17, "int64:[]{N*1024}", "", 0 },
    { "MelWeightMatrix", 17, "int64:[]{N*64} int64:[]{N*128} int64:[]{N*128} float:[]{1} float:[]{N*16}", "", 0 },
    { "ConstantOfShape", 9, "[2]{N*64,N*64}", "", 0 },
    { "Expand", 8, "[1,N*64] [2]{N*64,N*64}", "", 0 },
    { "Tile", 6, "[N*16,16] [2]{N,4}", "", 0 },
    { "Unique", 11, "[N*1024]", "", 0 },
    { "Unique", 11, "[N*64,16]", "axis = 0", 0 },
    { "TopK", 10, "[1,N*1024] [1]{N*512}", "", 0 },
    { "NonZero Shape Size IsNaN", 9, "[N*1024]", "", 0 },
    { "Compress", 9, "[N*1024] [N*1024]", "axis = 0", 0 },
    { "Compress", 9, "[N*64,64] [N*64]", "axis = 0", 0 },
    { "GridSample", 16, "[1,1,10,10] [1,N*32,N*32,2]u", "", 0 },
    { "GridSample", 20, "[1,1,10,10] [1,N*32,N*32,2]u", "mode = 'cubic'", 0 },
    { "AffineGrid", 20, "[1,2,3] [4]{1,1,N*32,N*32}", "", 0 },
    { "Resize", 13, "[1,1,H*16,W*16] - - [4]{1,1,H*64,W*64}", "mode = 'linear'", 0 },
    { "Resize", 13, "[1,1,H*16,W*16] - - [4]{1,1,H*64,W*64}", "mode = 'cubic'", 0 },
    { "Resize", 18, "[1,1,H*64,W*64] - - [4]{1,1,H,W}", "mode = 'cubic', antialias = 1", 0 },
    { "DeformConv", 19, "[1,2,N*8+2,N*8+2] [2,2,3,3] [1,18,N*8,N*8]", "kernel_shape = [3, 3]", 0 },
    { "Col2Im", 18, "[1,4,N*1024] [2]{2,N*1024+1} [2]{2,2}", "", 0 },
    { "MaxUnpool", 9, "[1,1,N*32,2] int64:[1,1,N*32,2]<4", "kernel_shape = [2, 2], strides = [2, 2]", 0 },
    { "ReverseSequence", 10, "[H*64,8,C*8] [8]<3", "", 0 },
    { "Einsum", 12, "[M*8,K*8] [K*8,M*8]", "equation = 'ij,jk->'", 0 },
    { "Einsum", 12, "[M*4,K*4] [K*4,M*4] [M*4,K*4]", "equation = 'ij,jk,kl->il'", 0 },
    { "Einsum", 12, "[M*1024] [M*1024]", "equation = 'i,i->'", 0 },
    { "MatMul", 1, "[1,K*64] [K*64,N*64]", "", 0 },
    { "MatMul", 1, "[M*64,K*64] [K*64,1]", "", 0 },
    { "MatMul", 1, "[M*16,K*16] [K*16,N*16]", "", 0 },
    { "Conv", 1, "[1,1,H*8,W*8] [1,1,H*4,W*4]", "", 0 },
    { "Conv", 1, "[1,C*8,H*4,W*4] [C*8,C*8,1,1]", "", 0 },
    { "Conv", 1, "[1,1,H*512] [1,1,H*256]", "", 0 },
    { "Conv", 1, "[1,64,H*16,W*16] [64,64,3,3]", "pads = [1, 1, 1, 1]", 0 },
    { "ConvTranspose", 1, "[1,1,H*8,W*8] [1,1,H*4,W*4]", "", 0 },
    { "Attention", 23, "[1,1,H*16,8] [1,1,K*16,8] [1,1,K*16,8]", "", 1 },
    { "Softmax LogSoftmax Hardmax", 13, "[1,N*4096]", "axis = 1", 0 },
    { "ReduceSum ReduceMax ReduceLogSumExp", 1, "[N*4096]", "", 0 },
    { "ArgMax ArgMin", 1, "[1,N*4096]", "axis = 1", 0 },
    { "LayerNormalization", 17, "[1,N*4096] [N*4096]", "", 1 },
    { "InstanceNormalization", 1, "[1,1,N*4096] [1] [1]", "", 0 },
    { "LpNormalization", 1, "[1,N*4096]", "", 0 },
    { "MeanVarianceNormalization", 9, "[1,1,N*64,N*64]", "", 0 },
    { "GatherND", 11, "[H*64,C] [N*1024,1]<4", "", 0 },
    { "ScatterND", 16, "[H*64] [N*1024,1]<4 [N*1024]", "reduction = 'add'", 0 },
    { "ScatterElements", 16, "[H*64] [H*64]<4 [H*64]", "reduction = 'add'", 0 },
    { "StringNormalizer StringSplit", 10, "[N*256]", "", 0 },
    { "CategoryMapper", 1, "string:[N*256]", "cats_strings = ['a', 'b'], cats_int64s = [1, 2]", 0 },
    { "LabelEncoder", 2, "int64:[N*256]", "keys_int64s = [1, 2], values_floats = [5.0, 6.0]", 0 },
    { "SequenceMap", 17, "seq:[N*64,C*64]", "body = step (@S[A, B] a) => (@S[B, A] b) { b = Transpose (a) }", 1 },
    { "Loop", 11, "[]{N*1024} []{1} [64]",
      "body = step (int64 at, bool go, @V[64] a) => (bool on, @V[64] b) "
      "{ on = Identity (go) b = Neg (a) }",
      1 },
    { "com.microsoft.Inverse", 1, "[N*8,N*8]", "", 0 },
    { "com.microsoft.CDist", 1, "[N*16,8] [N*16,8]", "metric = 'euclidean'", 0 },
    { "com.microsoft.LongformerAttention", 1, "[N]", "", 0 },
    { NULL, 0, NULL, NULL, 0 }
};

/* Nodes between whose looks more time may pass. Each has to be needed. */
static const struct {
    const char *op;
    const char *why;
} slow[] = {
    { "ConvTranspose", "oneDNN computes an image as a whole, since what its rows add to overlaps" },
};
enum { SLOW = sizeof slow / sizeof *slow };

typedef struct state {
    onx_ctx *cx;
    bool all;
    const char *only;
    unsigned nodes, judged, bad;
    bool needed[SLOW];
    gen_random random;
} state;

typedef struct watch {
    uint64_t start, last, longest; /* in nanoseconds of this thread's CPU time */
    unsigned looks;
} watch;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool look(void *user)
{
    watch *w = user;
    const uint64_t at = now();
    w->longest = at - w->last > w->longest ? at - w->last : w->longest;
    w->last = at;
    w->looks++;
    return at - w->start > span(MOST_MS);
}

static bool is_small(const gen_node *node)
{
    for (uint32_t i = 0; i < node->operand_count; i++) {
        uint64_t bytes = node->operands[i].dtype == ONX_STRING ? 64 : 8;
        for (uint32_t k = 0; k < node->operands[i].rank; k++)
            bytes *= (uint64_t)node->operands[i].dims[k];
        if (bytes > MOST_BYTES)
            return false;
    }
    return true;
}

/* Runs the node. The time it took, 0 where it does not run; `w` gets the looks. */
static uint64_t run(state *s, const gen_node *node, bool plain, watch *w)
{
    onx_doc *doc = NULL;
    onx_session *session = NULL;
    onx_value *inputs[GEN_OPERANDS] = { NULL }, *outputs[GEN_OUTPUTS] = { NULL };
    const onx_session_options options = { .threads = 1, .plain = plain, .memory = 96 << 20 };
    *w = (watch){ 0 };
    uint64_t took = 0;
    onx_status status = gen_model(s->cx, node, NULL, NULL, &doc);
    if (status == ONX_OK)
        status = onx_session_new(s->cx, doc, &options, &session);
    for (uint32_t i = 0; status == ONX_OK && i < onx_session_input_count(session); i++)
        for (uint32_t k = 0; k < node->operand_count && !inputs[i]; k++)
            if (onx_str_is(onx_session_input(session, i).name, node->operands[k].name))
                status = gen_value(s->cx, &node->operands[k], &inputs[i]);
    if (status == ONX_OK && onx_session_output_count(session) <= GEN_OUTPUTS) {
        const onx_run_options run_options = { .stop = look, .user = w };
        w->start = w->last = now();
        status = onx_session_run_with(session, s->cx, (const onx_value *const *)inputs, outputs, &run_options);
        (void)look(w);
        took = status == ONX_OK || status == ONX_E_CANCELLED ? w->last - w->start : 0;
    }
    onx_session_free(session);
    for (uint32_t i = 0; i < GEN_OPERANDS; i++)
        onx_value_free(inputs[i]);
    for (uint32_t i = 0; i < GEN_OUTPUTS; i++)
        onx_value_free(outputs[i]);
    onx_doc_free(doc);
    onx_diag_clear(s->cx);
    return took;
}

static void judge(state *s, const gen_node *node, uint32_t scale, bool plain, const watch *w, uint64_t took)
{
    char text[128];
    const char *name = gen_operator_name(node->schema, text);
    s->judged++;
    if (w->longest <= span(GAP_MS))
        return;
    for (unsigned i = 0; i < SLOW; i++)
        if (strcmp(slow[i].op, name) == 0) {
            s->needed[i] = true;
            return;
        }
    s->bad++;
    print_error("%s-%d %s <%.60s> %.60s times %u: %.0f of %.0f ms without a look, %u looks\n", name,
                (int)node->schema->since, plain ? "plain" : "fast", node->recipe->attributes, node->recipe->operands,
                scale, (double)w->longest * 1e-6, (double)took * 1e-6, w->looks);
}

/* With sizes that double until the run is long, or its operands are large. */
static void grow(state *s, const onxi_schema *schema, const gen_recipe *recipe, bool plain)
{
    gen_node node;
    watch w;
    s->nodes++;
    const uint64_t begin = now();
    for (uint32_t scale = 1; scale < 1u << 22 && now() - begin < span(BUDGET_MS); scale *= 2) {
        const gen_choice choice = { .seed = 3, .scale = scale };
        if (!gen_node_make(schema, recipe, &choice, &node) || !is_small(&node))
            return;
        const uint64_t took = run(s, &node, plain, &w);
        for (int i = 1; took && i < TRIES && w.longest > span(GAP_MS); i++) {
            watch again;
            if (run(s, &node, plain, &again) && again.longest < w.longest)
                w = again;
        }
        if (!took && scale > 16)
            return;
        if (w.longest > span(GAP_MS) || took > span(LONG_MS)) {
            judge(s, &node, scale, plain, &w, took);
            return;
        }
        if (took > 0 && strcspn(recipe->operands, "ABCDEFGHIJKLMNOPQRSTUVWXYZ~=") == strlen(recipe->operands) &&
            !strchr(recipe->attributes, '$'))
            return; /* nothing grows */
    }
}

static bool is_of(const char *operators, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = operators; (at = strstr(at, name)) != NULL; at += len)
        if ((at == operators || at[-1] == ' ') && (at[len] == ' ' || at[len] == 0))
            return true;
    return false;
}

static void visit(state *s, const onxi_schema *schema)
{
    char text[128];
    const gen_recipe *recipe;
    const char *name = gen_operator_name(schema, text);
    if (schema->flags & ONXI_OP_DEPRECATED || (s->only && strcmp(s->only, name) != 0))
        return;
    for (int plain = 0; plain < 2; plain++) {
        for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++)
            if (s->all || s->only || gen_below(&s->random, DRAWN) == 0)
                grow(s, schema, recipe, plain);
        for (recipe = heavy; recipe->operators; recipe++)
            if (is_of(recipe->operators, name) && recipe->since <= schema->since &&
                (s->all || s->only || gen_below(&s->random, DRAWN / 3) == 0))
                grow(s, schema, recipe, plain);
    }
}

static void test_gen_stops__no_kernel_goes_on_for_long(void **unused)
{
    (void)unused;
    state s = { .cx = onx_ctx_new(NULL), .random = { .state = 7 }, .only = getenv("ONX_GEN_ONLY") };
    s.all = getenv("ONX_GEN_ALL") != NULL;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            visit(&s, schema);
            if (!s.all) /* the newest version */
                break;
        }
    onx_ctx_free(s.cx);
    print_message("%u nodes, %u took long enough\n", s.nodes, s.judged);
    for (unsigned i = 0; i < SLOW && s.all && !s.only; i++)
        if (!s.needed[i] && *slow[i].op) {
            print_error("%s looks often enough, but is in the list\n", slow[i].op);
            s.bad++;
        }
    assert_int_equal(s.bad, 0);
    assert_true(s.only || s.judged > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_stops__no_kernel_goes_on_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
