/* test_run_rewrite.c - every rule of rewrite_rules.def on a model made from its pattern: the replacement runs, gives
 * the results of the nodes, and is not used for operands that it cannot handle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <onx/run.h>
#include <onx/text.h>

#include "rewrite_draw.h"
#include "run/run.h"

#include <math.h>

enum { OUTPUT_MAX = 4096, INPUTS_MAX = 9, ROWS_MAX = 18 };

typedef struct outcome {
    onx_status status;
    uint32_t rank;
    int64_t dims[8];
    uint64_t count;
    float y[OUTPUT_MAX];
    uint32_t steps, rules; /* rules: that were used */
    char last[64];         /* operator that ran last */
    char why[200];         /* it failed */
} outcome;

static void note(void *user, const onx_run_event *event)
{
    outcome *o = user;
    o->steps++;
    o->rules += event->rule_count;
    snprintf(o->last, sizeof o->last, "%.*s", ONX_ARG(event->op_type));
}

/* What is among the elements of the first input. */
typedef enum among { FINITE, SOME_NAN, SOME_INFINITE, AMONG_COUNT, DRAWN } among;

static void fill(onx_value *v, among special)
{
    float *x = v->data;
    for (uint64_t i = 0; i < v->count; i++)
        x[i] = special == SOME_NAN && i % 11 == 3        ? NAN
               : special == SOME_INFINITE && i % 29 == 3 ? INFINITY
               : special == SOME_INFINITE && i % 31 == 5 ? -INFINITY
                                                         : (float)((int64_t)(i * 7919 % 61) - 30) / 8;
}

static void fill_drawn(onx_value *v, drawn kind)
{
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = (float)draw_number(kind);
}

static void fill_bool(onx_value *v)
{
    for (uint64_t i = 0; i < v->count; i++)
        ((uint8_t *)v->data)[i] = i % 3 != 0;
}

/* Runs the model on inputs of such dims; `dims` has a list per input, ended by -1; of SHAPE and BACK it is the value.
 */
static drawn kinds; /* of elements that are drawn */
static void run_on(const char *text, const int64_t (*dims)[8], among special, bool no_optimize, outcome *out)
{
    const bool attention = strstr(text, "onx.P") && strstr(text, "(q, k");
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_session *session = NULL;
    memset(out, 0, sizeof *out);
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK) {
        char why[400];
        onx_diag_format(onx_diag_get(cx, 0), why, sizeof why);
        fail_msg("%s\n%s", why, text);
    }
    const onx_session_options options = { .verify = true, .threads = 1, .no_optimize = no_optimize };
    out->status = onx_session_new(cx, doc, &options, &session);
    onx_value *in[INPUTS_MAX] = { NULL }, *y = NULL;
    const onx_value *given[INPUTS_MAX] = { NULL };
    if (out->status == ONX_OK) {
        for (uint32_t i = 0; i < onx_session_input_count(session); i++) {
            uint32_t rank = 0;
            while (dims[i][rank] >= 0)
                rank++;
            const bool boolean = attention && (i == KEEP || i == HIDE);
            assert_int_equal(onx_value_new_tensor(cx, boolean ? ONX_BOOL : ONX_FLOAT, rank, dims[i], &in[i]), ONX_OK);
            if (boolean)
                fill_bool(in[i]);
            else if (special == DRAWN)
                fill_drawn(in[i], kinds);
            else
                fill(in[i], i ? FINITE : special);
            for (uint64_t k = 0; attention && i == MASK && special == SOME_INFINITE && k < in[i]->count / 2; k++)
                ((float *)in[i]->data)[k] = -INFINITY; /* whole rows of scores */
            given[i] = in[i];
        }
        const onx_run_options watch = { .event = note, .user = out };
        out->status = onx_session_run_with(session, cx, given, &y, &watch);
    }
    if (out->status == ONX_OK) {
        if (special == DRAWN && y->count > OUTPUT_MAX)
            out->status = ONX_E_LIMIT;
    }
    if (out->status == ONX_OK) {
        assert_true(y->count <= OUTPUT_MAX && y->rank <= 8);
        out->rank = y->rank;
        out->count = y->count;
        for (uint32_t d = 0; d < y->rank; d++)
            out->dims[d] = y->dims[d];
        memcpy(out->y, y->data, y->count * sizeof *out->y);
    }
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), out->why, sizeof out->why);
    onx_value_free(y);
    for (uint32_t i = 0; i < INPUTS_MAX; i++)
        onx_value_free(in[i]);
    onx_session_free(session);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void run(const char *text, const int64_t (*dims)[8], bool no_optimize, outcome *out)
{
    run_on(text, dims, FINITE, no_optimize, out);
}

/* For messages about operands that are drawn. */
static const char *drawn_text;
static const int64_t (*drawn_dims)[8];

/* The model, and the dims of its operands. */
static const char *drawn_operands(const onxi_rewrite_row *rule)
{
    static char out[9000];
    size_t n = (size_t)snprintf(out, sizeof out, "\n");
    for (uint32_t i = 0; i < inputs_of_rule(rule); i++, n += (size_t)snprintf(out + n, sizeof out - n, "; "))
        for (uint32_t d = 0; drawn_dims[i][d] >= 0; d++)
            n += (size_t)snprintf(out + n, sizeof out - n, " %lld", (long long)drawn_dims[i][d]);
    snprintf(out + n, sizeof out - n, "\n%s", drawn_text);
    return out;
}

static void same(const outcome *a, const outcome *b, const onxi_rewrite_row *rule)
{
    if (a->status != b->status || a->rank != b->rank)
        fail_msg("%s: status %d, rank %u, expected %d, %u: %s%s", rule->name, a->status, (unsigned)a->rank, b->status,
                 (unsigned)b->rank, a->why, drawn_text ? drawn_operands(rule) : "");
    assert_memory_equal(a->dims, b->dims, sizeof a->dims);
    for (uint64_t i = 0; i < a->count; i++)
        if (!(isnan(a->y[i]) && isnan(b->y[i])) && a->y[i] != b->y[i] &&
            !(fabsf(a->y[i] - b->y[i]) <= 2e-5f * (1 + fabsf(b->y[i])) && isfinite(b->y[i])))
            fail_msg("%s: element %u is %g, expected %g%s", rule->name, (unsigned)i, (double)a->y[i], (double)b->y[i],
                     drawn_text ? drawn_operands(rule) : "");
}

static const int64_t usual[][8] = { { 2, 3, 5, -1 }, { 5, -1 }, { 5, -1 } };
static const int64_t broad[][8] = { { 2, 5, 37, -1 }, { 37, -1 }, { 37, -1 } }; /* more than a vector, and a rest */
/* Of attention: so that each Transpose may be there or not, and so that all dims differ. */
static const int64_t cubes[][8] = { { 2, 5, 5, 5, -1 },    { 2, 5, 5, 5, -1 },    { 2, 5, 5, 5, -1 },
                                    { 5, 5, -1 },          { 2, 1, 1, 5, -1 },    { 5, 5, -1 },
                                    { 1, 2, 1, 5, 5, -1 }, { 1, 2, 5, 5, 5, -1 }, { 2, 5, 5, 5, -1 } };
static const int64_t heads[][8] = { { 2, 21, 3, 20, -1 },    { 1, 20, 3, 103, -1 },    { 2, 103, 1, 9, -1 },
                                    { 21, 103, -1 },         { 3, 1, 103, -1 },        { 21, 1, -1 },
                                    { 2, 1, 1, 1, 103, -1 }, { 2, 1, 3, 21, 103, -1 }, { 2, 3, 21, 103, -1 } };

/* With the products as Einsum, of three to five dims, keys are not transposed. */
static const int64_t einsum_cubes[][4][8] = {
    { { 5, 5, 5, -1 }, { 5, 5, 5, -1 }, { 5, 5, 5, -1 }, { 5, 5, -1 } },
    { { 2, 5, 5, 5, -1 }, { 2, 5, 5, 5, -1 }, { 2, 5, 5, 5, -1 }, { 5, 5, -1 } },
    { { 2, 3, 5, 5, 5, -1 }, { 2, 3, 5, 5, 5, -1 }, { 2, 3, 5, 5, 5, -1 }, { 5, 5, -1 } },
};
static const int64_t einsum_heads[][4][8] = {
    { { 21, 3, 20, -1 }, { 3, 103, 20, -1 }, { 103, 3, 9, -1 }, { 21, 103, -1 } },
    { { 2, 21, 3, 20, -1 }, { 1, 3, 103, 20, -1 }, { 2, 103, 1, 9, -1 }, { 21, 103, -1 } },
    { { 2, 2, 21, 3, 20, -1 }, { 1, 2, 3, 103, 20, -1 }, { 2, 2, 103, 1, 9, -1 }, { 3, 21, 103, -1 } },
};

/* Rules whose inputs are shapes and bounds, too: some that they are for, the first with dims that a Transpose keeps,
 * and some that the nodes alone are for, or nothing. */
#define BOUNDS(lo, lo_end, hi, hi_end, step)                                                                           \
    { lo, -1 }, { lo_end, -1 }, { ALL, -1 }, { step, -1 }, { hi, -1 }, { hi_end, -1 }, { ALL, -1 },                    \
    {                                                                                                                  \
        step, -1                                                                                                       \
    }
enum { GOOD = 2, BAD = 5 };
typedef struct shaped {
    const char *name; /* of the replacement */
    const char *only; /* in the pattern; NULL: any */
    int64_t good[GOOD][ROWS_MAX][8], bad[BAD][ROWS_MAX][8];
} shaped;
static const shaped shaped_rules[] = {
    { "Clip",
      NULL,
      { { { 2, 3, 5, -1 }, { -1 }, { -1 } }, { { 2, 5, 37, -1 }, { -1 }, { -1 } } },
      { { { 2, 3, 5, -1 }, { 1, -1 }, { -1 } }, /* bounds that are no scalars */
        { { 2, 3, 5, -1 }, { 5, -1 }, { -1 } },
        { { 2, 3, 5, -1 }, { -1 }, { 1, 3, 1, -1 } },
        { { 5, -1 }, { 3, 5, -1 }, { 3, 1, -1 } },
        { { -1 }, { 2, -1 }, { 2, -1 } } } },
    { "onx.GroupNorm",
      NULL,
      { { { 2, 4, 3, 5, -1 }, { 4, 1, 1, -1 }, { 4, 1, 1, -1 }, { 2, 4, 3, 5, -1 } },
        { { 3, 32, 5, 7, -1 }, { 32, 1, 1, -1 }, { 1, 32, 1, 1, -1 }, { 3, 32, 5, 7, -1 } } },
      { { { 2, 4, 3, 4, -1 }, { 4, -1 }, { 4, 1, 1, -1 }, { 2, 4, 3, 4, -1 } }, /* along another axis */
        { { 2, 4, 3, 4, -1 }, { 4, 1, 1, -1 }, { 3, 1, -1 }, { 2, 4, 3, 4, -1 } },
        { { 2, 4, 3, 5, -1 }, { 5, 1, 1, -1 }, { 4, 1, 1, -1 }, { 2, 4, 5, 3, -1 } }, /* wrong */
        { { 2, 4, 3, 5, -1 }, { 8, 1, 1, -1 }, { 8, 1, 1, -1 }, { 1, 8, 3, 5, -1 } }, /* another batch behind it */
        { { 2, 4, 3, 5, -1 }, { 1, 2, 4, 1, 1, -1 }, { 4, 1, 1, -1 }, { 2, 4, 3, 5, -1 } } } }, /* more dims */
    { "(a, x) => (y)",
      NULL,
      { { { 2, 5, 3, -1 }, { 2, 1, 3, -1 }, { 2, 5, 3, -1 } }, { { 3, 7, 5, -1 }, { 1, -1 }, { 7, 5, -1 } } },
      { { { 2, 1, 3, -1 }, { 2, 1, 3, -1 }, { 2, 5, 3, -1 } }, /* more than the other one has */
        { { 5, 3, -1 }, { 1, 3, -1 }, { 2, 5, 3, -1 } },
        { { 5, 3, -1 }, { 1, 3, -1 }, { 1, 5, 3, -1 } },
        { { 0, 3, -1 }, { 1, 3, -1 }, { 1, 3, -1 } },
        { { 4, 3, -1 }, { 1, 3, -1 }, { 5, 3, -1 } } } }, /* wrong */
    { "onx.ChannelNorm",
      NULL,
      { { { 2, 5, 3, 7, -1 }, { 5, 1, 1, -1 }, { 1, 5, 1, 1, -1 } },
        { { 1, 37, 100, -1 }, { 37, 1, -1 }, { 1, 37, 1, -1 } } },
      { { { 2, 4, 3, 4, -1 }, { 4, -1 }, { 4, 1, 1, -1 } }, /* along another axis */
        { { 2, 4, 3, 4, -1 }, { 4, 1, 1, -1 }, { 3, 1, -1 } },
        { { 3, 5, -1 }, { 2, 1, 5, -1 }, { 5, -1 } }, /* more dims */
        { { 0, 5, 3, -1 }, { 5, 1, -1 }, { 5, 1, -1 } },
        { { 2, 4, 3, 5, -1 }, { 4, 1, 1, -1 }, { 5, 1, 1, -1 } } } }, /* wrong */
    { "onx.ChannelShuffle",
      "4]",
      { { { 2, 6, 3, 5, -1 }, { 2, 2, 3, 3, 5, -1 }, { 2, 6, 3, 5, -1 } },
        { { 1, 40, 4, 4, -1 }, { 1, 4, 10, 4, 4, -1 }, { 1, ALL, 4, 4, -1 } } },
      { { { 2, 6, 3, 5, -1 }, { 2, 2, 3, 5, 3, -1 }, { 2, 6, 3, 5, -1 } },
        { { 2, 6, 3, 5, -1 }, { 2, 2, 3, 3, 5, -1 }, { 6, 2, 3, 5, -1 } },
        { { 2, 6, 4, 2, -1 }, { 4, 3, 2, 2, 2, -1 }, { 2, 6, 4, 2, -1 } },
        { { 2, 6, 3, 5, -1 }, { 2, ALL, 3, 3, 5, -1 }, { 2, 6, 3, 5, -1 } },
        { { 2, 6, 3, 5, -1 }, { 2, 5, 3, 3, 5, -1 }, { 2, 6, 3, 5, -1 } } } },
    { "onx.ChannelShuffle",
      NULL,
      { { { 2, 6, 5, -1 }, { 2, 2, 3, 5, -1 }, { 2, 6, 5, -1 } },
        { { 1, 40, 4, -1 }, { 0, 4, ALL, 4, -1 }, { 1, 40, 4, -1 } } },
      { { { 2, 6, 6, -1 }, { 2, 2, 6, 3, -1 }, { 2, 6, 6, -1 } },
        { { 2, 6, 5, -1 }, { 2, 2, 3, 5, -1 }, { 6, 2, 5, -1 } },
        { { 2, 6, 5, -1 }, { 4, 3, 1, 5, -1 }, { 2, 6, 5, -1 } },
        { { 2, 6, 5, -1 }, { 2, ALL, 3, 5, -1 }, { 2, 6, 5, -1 } },
        { { 2, 6, 5, -1 }, { 2, 5, 3, 5, -1 }, { 2, 6, 5, -1 } } } },
#define ROTARY(only, table, own, lo, lo_end, hi, hi_end, step, more, wrong_lo_end, wrong_hi)                           \
    {                                                                                                                  \
        "onx.Rotary", only,                                                                                            \
            { { { 2, 5, 5, 8, -1 },                                                                                    \
                { 5, table, -1 },                                                                                      \
                { 2, 1, 5, table, -1 },                                                                                \
                BOUNDS(lo, lo_end, hi, hi_end, step) more(5, 5, 8) },                                                  \
              { { 2, 7, 3, 36, -1 },                                                                                   \
                { 7, 36 / own, -1 },                                                                                   \
                { 1, 3, 1, 36 / own, -1 },                                                                             \
                BOUNDS(lo, (lo_end) == 4 ? 18 : (lo_end), (hi) == 4 ? 18 : (hi), hi_end, step) more(3, 7, 36) } },     \
        {                                                                                                              \
            { { 2, 5, 5, 8, -1 },                                                                                      \
              { 5, table, -1 },                                                                                        \
              { 5, table, -1 },                                                                                        \
              BOUNDS(lo, wrong_lo_end, wrong_hi, hi_end, step) more(5, 5, 8) },                                        \
                { { 2, 5, 5, 8, -1 },                                                                                  \
                  { 3, 1, 1, 1, table, -1 },                                                                           \
                  { 5, table, -1 },                                                                                    \
                  BOUNDS(lo, lo_end, hi, hi_end, step) more(5, 5, 8) },                                                \
                { { 2, 5, 5, 8, -1 }, { 1, -1 }, { 5, 1, -1 }, BOUNDS(lo, lo_end, hi, hi_end, step) more(5, 5, 8) },   \
                { { 2, 5, 5, 7, -1 }, { 7, -1 }, { 7, -1 }, BOUNDS(lo, lo_end, hi, hi_end, step) more(5, 5, 7) },      \
            {                                                                                                          \
                { 5, 8, -1 }, { table, -1 }, { table, -1 }, BOUNDS(lo, lo_end, hi, hi_end, step) more(5, 5, 8)         \
            }                                                                                                          \
        }                                                                                                              \
    }
#define NO_MORE(a, b, c)
#define STACKED(a, b, c)                                                                                               \
    , { ALL, -1 }, { ALL, -1 },                                                                                        \
    {                                                                                                                  \
        2, a, b, c, -1                                                                                                 \
    }
#define FLAT(a, b, c)                                                                                                  \
    , { ALL, -1 }, { ALL, -1 }, { 0, -1 }, { BEFORE, -1 }, { 0, -1 }, { 1, -1 },                                       \
    {                                                                                                                  \
        ALL, -1                                                                                                        \
    }
    /* before the others of pairs, whose patterns are like theirs */
    ROTARY("tail)  r = Reshape", 8, 1, 0, END, 1, END, 2, FLAT, 7, 0),
    ROTARY("tail)  y = Reshape", 4, 2, 0, END, 1, 40, 2, FLAT, 8, 0),
    ROTARY("Neg (hi)  r", 8, 1, 0, 4, 4, END, 1, NO_MORE, 3, 3),
    ROTARY("y = Concat", 4, 2, 0, 4, 4, END, 1, NO_MORE, 3, 5),
    ROTARY("Neg (hi)  u", 8, 1, 0, END, 1, END, 2, STACKED, 7, 0),
    ROTARY("y = Reshape", 4, 2, 0, END, 1, 40, 2, STACKED, 8, 0),
};

static const shaped *shaped_of(const onxi_rewrite_row *rule)
{
    for (size_t i = 0; i < sizeof shaped_rules / sizeof *shaped_rules; i++)
        if (strstr(rule->replacement, shaped_rules[i].name) &&
            (!shaped_rules[i].only || strstr(rule->pattern, shaped_rules[i].only)))
            return &shaped_rules[i];
    return NULL;
}

static bool is_attention(const onxi_rewrite_row *rule)
{
    return strstr(rule->replacement, "onx.Attention") != NULL;
}

typedef const int64_t (*shapes_of_inputs)[8];
static shapes_of_inputs cubes_of(const onxi_rewrite_row *rule)
{
    const shaped *s = shaped_of(rule);
    return s                    ? s->good[0]
           : einsum_rank(rule)  ? einsum_cubes[einsum_rank(rule) - 3]
           : is_attention(rule) ? cubes
                                : usual;
}
static shapes_of_inputs heads_of(const onxi_rewrite_row *rule)
{
    const shaped *s = shaped_of(rule);
    return s                    ? s->good[1]
           : einsum_rank(rule)  ? einsum_heads[einsum_rank(rule) - 3]
           : is_attention(rule) ? heads
                                : broad;
}

/* Those that sessions use; test_run_bytes has those for bytes, which are for some processors,
 * test_run_grouped those with indices. */
static const onxi_rewrite_row *next_rule(const onxi_rewrite_row *rule)
{
    do
        rule++;
    while (rule->name && (!(rule->by & ONXI_REWRITE_BY_SESSION) || strncmp(rule->name, "bytes-", 6) == 0 ||
                          strncmp(rule->name, "grouped-", 8) == 0));
    return rule;
}
static const onxi_rewrite_row *first_rule(void)
{
    return onxi_rewrite_rows->by & ONXI_REWRITE_BY_SESSION ? onxi_rewrite_rows : next_rule(onxi_rewrite_rows);
}

static void test_run_rewrite__every_rule_is_used(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[8192];
    for (const onxi_rewrite_row *rule = first_rule(); rule->name; rule = next_rule(rule)) {
        const shapes_of_inputs dims = cubes_of(rule);
        model_of(rule, 17, "float", "-1", dims, UINT32_MAX, text, sizeof text);
        run(text, dims, false, &rewritten);
        run(text, dims, true, &plain);
        if (plain.status != ONX_OK)
            fail_msg("%s\n%s", plain.why, text);
        same(&rewritten, &plain, rule);
        assert_true(plain.steps > 1 || strcmp(plain.last, rewritten.last) != 0); /* views are no steps */
        if (rewritten.steps != 1 || !strstr(rule->replacement, rewritten.last))
            fail_msg("%s: %u steps, the last one %s", rule->name, (unsigned)rewritten.steps, rewritten.last);
    }
}

/* An operator keeps the NaN and infinities that the nodes make, and makes no others. */
static void test_run_rewrite__nan_and_infinities(void **state)
{
    (void)state;
    static outcome rewritten, nodes;
    static char text[8192];
    for (const onxi_rewrite_row *rule = first_rule(); rule->name; rule = next_rule(rule))
        for (among special = FINITE; special < AMONG_COUNT; special++) {
            const shapes_of_inputs dims = heads_of(rule);
            model_of(rule, 17, "float", "-1", dims, UINT32_MAX, text, sizeof text);
            run_on(text, dims, special, false, &rewritten);
            run_on(text, dims, special, true, &nodes);
            if (nodes.status != ONX_OK)
                fail_msg("%s\n%s", nodes.why, text);
            same(&rewritten, &nodes, rule);
        }
}

/* Operands of any dims that broadcast, with any elements: where the nodes run, the result is the same. */
static void test_run_rewrite__drawn_operands(void **state)
{
    (void)state;
    static outcome rewritten, nodes;
    static char text[8192];
    static int64_t made[ROWS_MAX][8];
    const shapes_of_inputs dims = (shapes_of_inputs)made;
    for (const onxi_rewrite_row *rule = first_rule(); rule->name; rule = next_rule(rule)) {
        uint32_t ran = 0;
        for (uint32_t trial = 0; trial < 24 || (ran < 3 && trial < 400); trial++) {
            draw_state = trial * 7919 + 1;
            draw_dims(rule, trial % 2 ? heads_of(rule) : cubes_of(rule), inputs_of_rule(rule), made);
            operands_are_free = draw(2);
            model_of(rule, 17, "float", draw(4) ? "-1" : "1", dims, draw(2) ? UINT32_MAX : draw(1 << 12), text,
                     sizeof text);
            kinds = draw_kind();
            const uint32_t seed = draw_state;
            run_on(text, dims, DRAWN, false, &rewritten);
            draw_state = seed;
            run_on(text, dims, DRAWN, true, &nodes);
            if (nodes.status != ONX_OK)
                continue;
            ran++;
            drawn_text = text;
            drawn_dims = dims;
            same(&rewritten, &nodes, rule);
        }
        assert_true(ran > 2);
    }
    operands_are_free = false;
    drawn_text = NULL;
}

/* What the nodes take and the operator does not: scales that add axes, axes that are not the last. */
static void test_run_rewrite__gives_way_to_the_nodes(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[8192];
    static const int64_t wide[][8] = { { 3, 5, -1 }, { 2, 1, 5, -1 }, { 5, -1 } };
    static const int64_t longer[][8] = { { 3, 1, -1 }, { 5, -1 }, { 5, -1 } };
    static const int64_t empty[][8] = { { 0, 5, -1 }, { 5, -1 }, { 5, -1 } };
    static const int64_t wrong[][8] = { { 3, 5, -1 }, { 4, -1 }, { 5, -1 } };
    /* fewer dims than the perms have, a batch that does not go together, no keys at all */
    static const int64_t flat[][8] = { { 5, 5, 5, -1 }, { 5, 5, 5, -1 }, { 5, 5, 5, -1 },
                                       { 5, 5, -1 },    { 1, 1, 5, -1 }, { 5, 5, -1 },
                                       { 5, 5, -1 },    { 5, 5, 5, -1 }, { 5, 5, 5, -1 } };
    static const int64_t other[][8] = { { 2, 5, 5, 5, -1 }, { 3, 5, 5, 5, -1 },  { 2, 5, 5, 5, -1 },
                                        { 5, 5, -1 },       { 2, 1, 1, 5, -1 },  { 5, 5, -1 },
                                        { 5, 5, -1 },       { 2, 25, 1, 5, -1 }, { 2, 5, 5, 5, -1 } };
    static const int64_t hollow[][8] = { { 2, 4, 3, 5, -1 }, { 2, 5, 3, 0, -1 }, { 2, 0, 3, 6, -1 },
                                         { 4, 0, -1 },       { 2, 1, 1, 0, -1 }, { 4, 1, -1 },
                                         { 4, 1, -1 },       { 2, 3, 4, 0, -1 }, { 2, 3, 4, 0, -1 } };
    static const char *const axes[] = { "-1", "0", "1", "2" };
    for (const onxi_rewrite_row *rule = first_rule(); rule->name; rule = next_rule(rule))
        for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
            const int64_t(*const shapes[])[8] = { usual, wide, longer, empty, wrong };
            const int64_t(*const of_heads[])[8] = { cubes, heads, flat, other, hollow };
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                const shaped *own = shaped_of(rule);
                const int64_t(*const dims)[8] = own ? own->bad[s] : is_attention(rule) ? of_heads[s] : shapes[s];
                model_of(rule, 17, "float", axes[a], dims, UINT32_MAX, text, sizeof text);
                run(text, dims, false, &rewritten);
                run(text, dims, true, &plain);
                same(&rewritten, &plain, rule);
            }
        }
}

/* Nodes that may be missing, in all sets of them: where they all fit, one operator is left. */
static void test_run_rewrite__optional_nodes(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static char text[8192];
    for (const onxi_rewrite_row *rule = first_rule(); rule->name; rule = next_rule(rule)) {
        const uint32_t count = optional_nodes(rule);
        const shapes_of_inputs dims = cubes_of(rule);
        if (!count)
            continue;
        for (uint32_t turn = 0; turn <= 4 * count; turn++) {
            /* without one of them, with one of them, and some sets */
            const uint32_t set = turn < count       ? ~(UINT32_C(1) << turn)
                                 : turn < 2 * count ? UINT32_C(1) << (turn - count)
                                                    : turn * UINT32_C(2654435761) >> 7;
            model_of(rule, 17, "float", "-1", dims, set, text, sizeof text);
            run(text, dims, false, &rewritten);
            run(text, dims, true, &plain);
            same(&rewritten, &plain, rule);
        }
        model_of(rule, 17, "float", "-1", dims, 0, text, sizeof text);
        run(text, dims, false, &rewritten);
        assert_int_equal(rewritten.steps, 1);
    }
}

/* Attributes that a rule takes over, each left out in turn: what is absent means what its operator says, and is not the
 * same as no node. All dims are equal, so that shapes cannot tell. */
static void test_run_rewrite__absent_attributes(void **state)
{
    (void)state;
    static const int64_t equal[][8] = { { 5, 5, 5, 5, -1 }, { 5, 5, 5, 5, -1 }, { 5, 5, 5, 5, -1 },
                                        { 5, 5, -1 },       { 5, 1, 1, 5, -1 }, { 5, 5, -1 },
                                        { 5, 5, -1 },       { 5, 5, 5, 5, -1 }, { 5, 5, 5, 5, -1 } };
    static outcome rewritten, plain;
    static char text[8192];
    uint32_t perms = 0;
    for (const onxi_rewrite_row *rule = first_rule(); rule->name; rule = next_rule(rule)) {
        const shapes_of_inputs dims = is_attention(rule) && !einsum_rank(rule) ? equal : cubes_of(rule);
        for (uint32_t turn = 0;; turn++) {
            uint32_t seen = 0;
            model_of(rule, 17, "float", "-1", dims, UINT32_MAX, text, sizeof text);
            char *at = strchr(strstr(text, "\n<domain") + 2, '>'), *end = NULL;
            for (; (at = strchr(at + 1, '<')) != NULL; at = end) {
                end = strchr(at, '>');
                char *at_sign = strchr(at, '@');
                if (at_sign && at_sign < end && seen++ == turn)
                    break;
            }
            if (!at)
                break;
            perms += strncmp(at, "<perm", 5) == 0;
            memset(at, ' ', (size_t)(end - at) + 1);
            run(text, dims, false, &rewritten);
            run(text, dims, true, &plain);
            same(&rewritten, &plain, rule);
        }
    }
    assert_true(perms > 3);
}

/* Numbers of which a float does not hold the reciprocal, and one below 0. */
static void test_run_rewrite__numbers_near_zero(void **state)
{
    (void)state;
    static const char *const numbers[] = { "0.0", "-0.0", "1e-40", "-0.375" };
    static outcome rewritten, plain;
    static char text[8192];
    for (const onxi_rewrite_row *rule = first_rule(); rule->name; rule = next_rule(rule))
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers && is_attention(rule); i++) {
            scale = numbers[i];
            model_of(rule, 17, "float", "-1", cubes_of(rule), UINT32_MAX, text, sizeof text);
            run(text, cubes_of(rule), false, &rewritten);
            run(text, cubes_of(rule), true, &plain);
            assert_int_equal(plain.status, ONX_OK);
            same(&rewritten, &plain, rule);
        }
    scale = NULL;
}

/* Equations mean the same whatever their letters and blanks are; others are left alone. */
static void test_run_rewrite__letters_of_equations(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        uint32_t steps;
    } cases[] = {
        { "abcd,abed->abce", "abcd,abde->abce", 1 }, { "b h i d, b h j d -> b h i j", " b h i j,b h j d->b h i d", 1 },
        { "BHQE,BHKE->BHQK", "BHQK,BHKE->BHQE", 1 }, { "bhid,bhjd->bhji", "bhij,bhjd->bhid", 3 },
        { "bhid,bhjd->bhij", "bhij,bhdj->bhid", 3 }, { "bhid,bhdj->bhij", "bhij,bhjd->bhid", 3 },
        { "bhid,hbjd->bhij", "bhij,bhjd->bhid", 3 }
    };
    static const int64_t dims[][8] = { { 5, 5, 5, 5, -1 }, { 5, 5, 5, 5, -1 }, { 5, 5, 5, 5, -1 } };
    static outcome rewritten, plain;
    char text[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text,
                 "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                 "g (float[A, B, C, D] q, float[A, B, C, D] k, float[A, B, C, D] v) => (float[A, B, C, D] y) {\n"
                 " s = Einsum <equation = \"%s\"> (q, k) p = Softmax (s) y = Einsum <equation = \"%s\"> (p, v) }",
                 cases[i].first, cases[i].second);
        run(text, dims, false, &rewritten);
        run(text, dims, true, &plain);
        assert_int_equal(plain.status, ONX_OK);
        same(&rewritten, &plain, onxi_rewrite_rows);
        assert_int_equal(rewritten.steps, cases[i].steps);
    }
}

/* A value that very many nodes take, in a model of very many nodes: each pattern is found, in time that grows with
 * their number. */
static void test_run_rewrite__very_many_nodes(void **state)
{
    enum { TIMES = 30000, ROOM = TIMES * 96 };
    (void)state;
    static outcome out;
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, ROOM,
                                  "<ir_version: 9, opset_import: [\"\" : 17]> g (float[N] x) => (float[N] a%d) {"
                                  " a0 = Identity (x)",
                                  TIMES);
    for (int i = 0; i < TIMES; i++)
        len += (size_t)snprintf(text + len, ROOM - len, " s%d = Sigmoid (x) y%d = Mul (s%d, x) a%d = Add (y%d, a%d)", i,
                                i, i, i + 1, i, i);
    assert_true(len + 2 < ROOM);
    snprintf(text + len, ROOM - len, " }");
    run(text, usual + 1, false, &out);
    free(text);
    assert_int_equal(out.status, ONX_OK);
    assert_int_equal(out.rules, TIMES);
    assert_int_equal(out.steps, 2 * TIMES / 16); /* and chains of them */
}

/* A value inside that is needed outside, too, keeps its nodes. */
static void test_run_rewrite__needed_inside(void **state)
{
    (void)state;
    static outcome out;
    run("<ir_version: 9, opset_import: [\"\" : 17]> g (float[N] x) => (float[N] z) {"
        " s = Sigmoid (x) y = Mul (x, s) z = Add (y, s) }",
        usual + 1, false, &out);
    assert_int_equal(out.status, ONX_OK);
    assert_int_equal(out.rules, 0);
}

/* One Transpose for queries, keys and values: it is needed where it stands, as what comes from outside. */
static void test_run_rewrite__one_node_for_several(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static const char text[] =
        "<ir_version: 9, opset_import: [\"\" : 17]> g (float[2, 3, 5, 8] x) => (float[2, 3, 5, 8] y) {"
        " t = Transpose <perm = [0, 2, 1, 3]> (x) k = Transpose <perm = [0, 1, 3, 2]> (t)"
        " a = MatMul (t, k) p = Softmax (a) o = MatMul (p, t)"
        " y = Transpose <perm = [0, 2, 1, 3]> (o) }";
    static const int64_t dims[][8] = { { 2, 3, 5, 8, -1 } };
    run(text, dims, false, &rewritten);
    run(text, dims, true, &plain);
    assert_int_equal(plain.status, ONX_OK);
    same(&rewritten, &plain, onxi_rewrite_rows);
    assert_int_equal(rewritten.steps, 2);
}

/* What a rule refuses, of values that are known while planning, is what its nodes make, and other rules are not given
 * up for it. */
static void test_run_rewrite__refused_of_constants(void **state)
{
    (void)state;
    static outcome rewritten, plain;
    static const char text[] =
        "<ir_version: 9, opset_import: [\"\" : 17]> g (float[N, M] x) => (float[A, B] y) <int64[4] apart = {2, 2, 2, 3},"
        " int64[2] together = {2, 12}> { s = Shape (x) c = ConstantOfShape (s) a = Reshape (c, apart)"
        " b = Transpose <perm = [0, 2, 1, 3]> (a) d = Reshape (b, together) e = Reshape (x, together)"
        " f = Sigmoid (e) h = Mul (e, f) y = Add (h, d) }";
    static const int64_t dims[][8] = { { 4, 6, -1 } };
    run(text, dims, false, &rewritten);
    run(text, dims, true, &plain);
    assert_int_equal(plain.status, ONX_OK);
    same(&rewritten, &plain, onxi_rewrite_rows);
    assert_int_equal(rewritten.rules, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_rewrite__every_rule_is_used),
        cmocka_unit_test(test_run_rewrite__nan_and_infinities),
        cmocka_unit_test(test_run_rewrite__drawn_operands),
        cmocka_unit_test(test_run_rewrite__gives_way_to_the_nodes),
        cmocka_unit_test(test_run_rewrite__optional_nodes),
        cmocka_unit_test(test_run_rewrite__absent_attributes),
        cmocka_unit_test(test_run_rewrite__numbers_near_zero),
        cmocka_unit_test(test_run_rewrite__letters_of_equations),
        cmocka_unit_test(test_run_rewrite__very_many_nodes),
        cmocka_unit_test(test_run_rewrite__needed_inside),
        cmocka_unit_test(test_run_rewrite__one_node_for_several),
        cmocka_unit_test(test_run_rewrite__refused_of_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
