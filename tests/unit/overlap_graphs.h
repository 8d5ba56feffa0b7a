/* overlap_graphs.h - random graphs dense in views, pieces, broadcasts, changes of layout and kernels that overwrite
 * operands, and their runs. Include it last; cx is that of context.h. */
#ifndef TESTS_OVERLAP_GRAPHS_H
#define TESTS_OVERLAP_GRAPHS_H

#include "unit/variants.h"

enum { VALUES = 40, INPUTS = 3, RANK = 4, COUNT_MAX = 4096 };

typedef struct shape {
    uint32_t rank, dims[RANK];
} shape;

typedef struct graph {
    source s;
    shape of[VALUES];
    uint32_t count, consts;
    bool wanted[VALUES]; /* is an output */
    writer *nodes, *inits;
} graph;

static uint32_t count_of(const shape *s)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        count *= s->dims[i];
    return count;
}

static bool same_shape(const shape *a, const shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static bool broadcast(const shape *a, const shape *b, shape *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t i = 1; i <= out->rank; i++) {
        const uint32_t x = i > a->rank ? 1 : a->dims[a->rank - i], y = i > b->rank ? 1 : b->dims[b->rank - i];
        if (x != y && x != 1 && y != 1)
            return false;
        out->dims[out->rank - i] = x > y ? x : y;
    }
    return count_of(out) <= COUNT_MAX;
}

/* A value, new more often than not. */
static uint32_t pick(graph *g)
{
    const uint32_t back = below(&g->s, g->count);
    return g->count - 1 - (below(&g->s, 3) ? back / 3 : back);
}

static void add_dims(writer *w, const shape *s)
{
    for (uint32_t i = 0; i < s->rank; i++)
        add(w, "%s%u", i ? ", " : "", s->dims[i]);
}

static void add_ints(graph *g, const uint32_t *list, uint32_t count)
{
    add(g->inits, ",\n int64[%u] k%u = {", count, g->consts);
    for (uint32_t i = 0; i < count; i++)
        add(g->inits, "%s%u", i ? ", " : "", list[i]);
    add(g->inits, "}");
    g->consts++;
}

static void draw_unary(graph *g, uint32_t x)
{
    static const char *const names[] = { "Neg", "Abs", "Relu", "Identity", "Ceil", "LeakyRelu", "Softsign" };
    const shape s = g->of[x];
    if (s.rank && below(&g->s, 4) == 0)
        add(g->nodes, " v%u = %s <axis = %u> (v%u)\n", g->count, below(&g->s, 2) ? "Softmax" : "LogSoftmax",
            below(&g->s, s.rank), x);
    else if (s.rank == 4 && s.dims[1] == 16 && below(&g->s, 4) == 0)
        add(g->nodes, " v%u = InstanceNormalization (v%u, ones, ones)\n", g->count, x);
    else
        add(g->nodes, " v%u = %s (v%u)\n", g->count, names[below(&g->s, 7)], x);
    g->of[g->count++] = s;
}

/* Another value that broadcasts with it; most of the time any. */
static bool find_partner(graph *g, uint32_t x, uint32_t *out, shape *both)
{
    for (int tries = 0; tries < 12; tries++) {
        *out = below(&g->s, 2) ? below(&g->s, g->count) : pick(g);
        if (broadcast(&g->of[x], &g->of[*out], both))
            return true;
    }
    return false;
}

static void draw_binary(graph *g, uint32_t x)
{
    static const char *const names[] = { "Add", "Sub", "Max", "Min", "Add", "Mul" };
    uint32_t y, z;
    shape both, all;
    if (!find_partner(g, x, &y, &both))
        return;
    if (below(&g->s, 2)) {
        const uint32_t t = x;
        x = y;
        y = t;
    }
    const uint32_t kind = below(&g->s, 9);
    if (kind < 6)
        add(g->nodes, " v%u = %s (v%u, v%u)\n", g->count, names[kind], x, y);
    else if (kind == 6)
        add(g->nodes, " v%u = PRelu (v%u, v%u)\n", g->count, x, y);
    else if (kind == 7)
        add(g->nodes, " c%u = Less (v%u, v%u)\n v%u = Where (c%u, v%u, v%u)\n", g->count, x, y, g->count, g->count, x,
            y);
    else if (!find_partner(g, x, &z, &all) || !broadcast(&both, &g->of[z], &all))
        return;
    else {
        add(g->nodes, " v%u = Sum (v%u, v%u, v%u)\n", g->count, x, y, z);
        both = all;
    }
    if (kind == 6 && !same_shape(&both, &g->of[x])) { /* the slope may not make it larger */
        g->nodes->len -= (size_t)snprintf(NULL, 0, " v%u = PRelu (v%u, v%u)\n", g->count, x, y);
        return;
    }
    g->of[g->count++] = both;
}

static void draw_reshape(graph *g, uint32_t x)
{
    uint32_t left = count_of(&g->of[x]);
    shape to = { 1 + below(&g->s, RANK), { 0 } };
    for (uint32_t i = 0; i < to.rank; i++)
        to.dims[i] = 1;
    for (uint32_t factor = 2; left > 1; factor++)
        for (; left % factor == 0; left /= factor)
            to.dims[below(&g->s, to.rank)] *= factor;
    add(g->nodes, " v%u = Reshape (v%u, k%u)\n", g->count, x, g->consts);
    add_ints(g, to.dims, to.rank);
    g->of[g->count++] = to;
}

static void draw_transpose(graph *g, uint32_t x)
{
    uint32_t order[RANK];
    const shape from = g->of[x];
    shape to = { from.rank, { 0 } };
    for (uint32_t i = 0; i < from.rank; i++)
        order[i] = i;
    for (uint32_t i = from.rank; i-- > 1;) {
        const uint32_t k = below(&g->s, i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    if (!from.rank)
        return;
    add(g->nodes, " v%u = Transpose <perm = [", g->count);
    for (uint32_t i = 0; i < from.rank; i++) {
        to.dims[i] = from.dims[order[i]];
        add(g->nodes, "%s%u", i ? ", " : "", order[i]);
    }
    add(g->nodes, "]> (v%u)\n", x);
    g->of[g->count++] = to;
}

/* Mostly along the first axis that is longer than 1, where parts are contiguous. */
static uint32_t axis_of(graph *g, const shape *s)
{
    uint32_t axis = 0;
    if (below(&g->s, 4) == 0)
        return below(&g->s, s->rank);
    while (axis + 1 < s->rank && s->dims[axis] == 1)
        axis++;
    return axis;
}

static void draw_split(graph *g, uint32_t x)
{
    const shape s = g->of[x];
    uint32_t sizes[3];
    if (!s.rank)
        return;
    const uint32_t axis = axis_of(g, &s), parts = 2 + below(&g->s, 2);
    uint32_t left = s.dims[axis];
    if (left < parts || g->count + parts > VALUES)
        return;
    for (uint32_t i = 0; i < parts; i++) {
        sizes[i] = i + 1 == parts ? left : 1 + below(&g->s, left - (parts - 1 - i));
        left -= sizes[i];
    }
    for (uint32_t i = 0; i < parts; i++)
        add(g->nodes, "%s v%u", i ? "," : "", g->count + i);
    add(g->nodes, " = Split <axis = %u> (v%u, k%u)\n", axis, x, g->consts);
    add_ints(g, sizes, parts);
    for (uint32_t i = 0; i < parts; i++) {
        g->of[g->count] = s;
        g->of[g->count++].dims[axis] = sizes[i];
    }
}

static void draw_concat(graph *g, uint32_t x)
{
    shape s = g->of[x];
    uint32_t from[3] = { x }, count = 1;
    if (!s.rank)
        return;
    const uint32_t axis = axis_of(g, &s), most = 1 + below(&g->s, 3);
    for (int tries = 0; tries < 20 && count < most; tries++) {
        const uint32_t y = pick(g);
        shape other = g->of[y];
        const uint32_t size = other.rank == s.rank ? other.dims[axis] : 0;
        other.dims[axis] = s.dims[axis];
        if (!size || !same_shape(&s, &other) || count_of(&s) / s.dims[axis] * (s.dims[axis] + size) > COUNT_MAX)
            continue;
        s.dims[axis] += size;
        from[count++] = y;
    }
    const uint32_t first = below(&g->s, count);
    add(g->nodes, " v%u = Concat <axis = %u> (", g->count, axis);
    for (uint32_t i = 0; i < count; i++)
        add(g->nodes, "%sv%u", i ? ", " : "", from[(first + i) % count]);
    add(g->nodes, ")\n");
    g->of[g->count++] = s;
}

static void draw_conv(graph *g, uint32_t x)
{
    const shape s = g->of[x];
    if (s.rank != 4 || s.dims[1] != 16)
        return;
    add(g->nodes, " t%u = Conv <pads = [1, 1, 1, 1]> (v%u, w)\n v%u = Clip (t%u, low, high)\n", g->count, x, g->count,
        g->count);
    g->of[g->count++] = s;
}

static void draw_scatter(graph *g, uint32_t x)
{
    const shape s = g->of[x];
    if (!s.rank)
        return;
    add(g->nodes, " v%u = ScatterElements <axis = %u> (v%u, k%u, one%u)\n", g->count, s.rank - 1, x, g->consts, s.rank);
    add(g->inits, ",\n int64[");
    for (uint32_t i = 0; i < s.rank; i++)
        add(g->inits, "%s1", i ? ", " : "");
    add(g->inits, "] k%u = {%u}", g->consts++, below(&g->s, s.dims[s.rank - 1]));
    g->of[g->count++] = s;
}

static void draw_pair(graph *g, uint32_t x, uint32_t y)
{
    static const char *const names[] = { "Add", "Sub", "Max", "Mul" };
    shape both;
    if (!broadcast(&g->of[x], &g->of[y], &both))
        return;
    add(g->nodes, " v%u = %s (v%u, v%u)\n", g->count, names[below(&g->s, 4)], x, y);
    g->of[g->count++] = both;
}

/* A whole and its parts, or a value and its copies in other layouts and views, as operands of nodes that follow. */
static void draw_related(graph *g, uint32_t x)
{
    const uint32_t kind = below(&g->s, 4), first = g->count;
    if (g->count + 8 > VALUES)
        return;
    draw_unary(g, x);
    if (kind == 0) { /* a part and the whole it was cut from */
        draw_split(g, first);
        if (g->count > first + 1)
            draw_pair(g, first, first + 1 + below(&g->s, g->count - first - 1));
    } else if (kind == 1) { /* a part and the whole it was put into */
        draw_unary(g, x);
        draw_concat(g, first + below(&g->s, 2));
        if (below(&g->s, 2))
            draw_pair(g, first + below(&g->s, 2), g->count - 1);
        else
            draw_pair(g, g->count - 1, first + below(&g->s, 2));
    } else { /* a view of a value, which is overwritten */
        draw_conv(g, first);
        const uint32_t from = g->count - 1;
        if (below(&g->s, 2))
            draw_reshape(g, from);
        else
            draw_transpose(g, from);
        if (below(&g->s, 2))
            draw_scatter(g, from);
        else
            draw_unary(g, from);
    }
}

static void draw_node(graph *g)
{
    const uint32_t x = pick(g), kind = below(&g->s, 28);
    if (kind >= 20) {
        draw_related(g, x);
        return;
    }
    if (kind < 4)
        draw_unary(g, x);
    else if (kind < 9)
        draw_binary(g, x);
    else if (kind < 11)
        draw_reshape(g, x);
    else if (kind < 12)
        draw_transpose(g, x);
    else if (kind < 14)
        draw_split(g, x);
    else if (kind < 16)
        draw_concat(g, x);
    else if (kind < 18)
        draw_conv(g, x);
    else
        draw_scatter(g, x);
}

/* Writes the graph with the wanted values as outputs, or all values. */
static onx_doc *write_model(graph *g, writer *w, bool all)
{
    onx_doc *doc = NULL;
    w->len = 0;
    add(w, "<ir_version: 10, opset_import: [\"\": 21]>\ng (");
    for (uint32_t i = 0; i < INPUTS; i++) {
        add(w, "%sfloat[", i ? ", " : "");
        add_dims(w, &g->of[i]);
        add(w, "] v%u", i);
    }
    add(w, ") => (");
    for (uint32_t i = 0, n = 0; i < g->count; i++)
        if (all || g->wanted[i])
            add(w, "%sfloat[] %s%u", n++ ? ", " : "", i < INPUTS ? "o" : "v", i);
    add(w, ")\n<%.*s>\n{\n", (int)g->inits->len, g->inits->text);
    for (uint32_t i = 0; i < INPUTS; i++)
        if (all || g->wanted[i])
            add(w, " o%u = Identity (v%u)\n", i, i);
    add(w, "%.*s}", (int)g->nodes->len, g->nodes->text);
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w->text, w->len), 0, &doc) != ONX_OK) {
        say_all();
        fail_msg("%s", w->text);
    }
    return doc;
}

static void draw(graph *g)
{
    static const shape inputs[][INPUTS] = { { { 4, { 1, 16, 4, 4 } }, { 4, { 1, 16, 4, 4 } }, { 3, { 16, 1, 4 } } },
                                            { { 2, { 3, 16 } }, { 2, { 1, 16 } }, { 1, { 16 } } },
                                            { { 3, { 1, 4, 16 } }, { 2, { 4, 16 } }, { 2, { 4, 1 } } },
                                            { { 2, { 4, 4 } }, { 2, { 4, 4 } }, { 1, { 4 } } } };
    const uint32_t which = below(&g->s, 4);
    g->nodes->len = g->inits->len = 0;
    g->consts = 0;
    add(g->inits,
        "float low = {-50}, float high = {50}, float[16] ones = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,"
        " 1},\n float[1] one1 = {7}, float[1, 1] one2 = {7}, float[1, 1, 1] one3 = {7}, float[1, 1, 1, 1] one4 "
        "= {7},\n float[16, 16, 3, 3] w = {");
    for (uint32_t i = 0; i < 16 * 16 * 9; i++)
        add(g->inits, "%s%d", i ? ", " : "", (int)below(&g->s, 3) - 1);
    add(g->inits, "}");
    memcpy(g->of, inputs[which], sizeof inputs[which]);
    for (g->count = 0; g->count < INPUTS; g->count++)
        ;
    const uint32_t nodes = 2 + below(&g->s, 12);
    for (uint32_t i = 0; i < nodes && g->count < VALUES - 3; i++)
        draw_node(g);
    for (uint32_t i = 0; i < g->count; i++)
        g->wanted[i] = i + 1 == g->count || below(&g->s, 8) == 0;
}

typedef struct made { /* the outputs of a run */
    onx_value *out[VALUES];
} made;

static void free_made(made *m)
{
    for (uint32_t i = 0; i < VALUES; i++)
        onx_value_free(m->out[i]);
}

static onx_session *open_session(onx_doc *doc, const onx_session_options *options)
{
    onx_session *session = NULL;
    const onx_status status = onx_session_new(cx, doc, options, &session);
    say_all();
    assert_int_equal(status, ONX_OK);
    return session;
}

static void run_made(onx_session *session, onx_value *const *in, made *m)
{
    const onx_status status = onx_session_run(session, cx, (const onx_value *const *)in, m->out);
    say_all();
    assert_int_equal(status, ONX_OK);
}

/* Winograd's algorithm rounds; bytes of another value differ by more. */
static bool is_close(const onx_value *a, const onx_value *b)
{
    const float *x = a->data, *y = b->data;
    bool close = a->rank == b->rank && onxi_same_dims(a->dims, b->dims, a->rank);
    for (uint64_t i = 0; close && i < a->count; i++)
        close = x[i] == y[i] || (isnan(x[i]) && isnan(y[i])) ||
                (isfinite(x[i]) && isfinite(y[i]) &&
                 fabsf(x[i] - y[i]) <= 2e-3f * fmaxf(1, fmaxf(fabsf(x[i]), fabsf(y[i]))));
    return close;
}

/* `all` has all values, `some` the wanted ones. */
__attribute__((unused)) static void assert_same(const graph *g, const made *all, const made *some, const char *how,
                                                const writer *w)
{
    for (uint32_t i = 0, n = 0; i < g->count; i++)
        if (g->wanted[i] && !is_close(all->out[i], some->out[n++]))
            fail_msg("%s: output %u, v%u, is not what it is where all values are outputs:\n%.200s\n%s", how, n - 1, i,
                     w->text, strstr(w->text, ">\n{"));
}

static void draw_inputs(graph *g, onx_value **in)
{
    for (uint32_t i = 0; i < INPUTS; i++) {
        int64_t dims[RANK];
        for (uint32_t d = 0; d < g->of[i].rank; d++)
            dims[d] = g->of[i].dims[d];
        in[i] = tensor(ONX_FLOAT, g->of[i].rank, dims);
        for (uint64_t k = 0; k < in[i]->count; k++)
            ((float *)in[i]->data)[k] = (float)below(&g->s, 41) - 20;
    }
}

static void free_inputs(onx_value **in)
{
    for (uint32_t i = 0; i < INPUTS; i++)
        onx_value_free(in[i]);
}

static const struct {
    const char *name;
    onx_session_options options;
} ways[] = { { "plain", { .threads = 1, .plain = true, .no_optimize = true, .verify = true } },
             { "as it is", { .threads = 1, .no_optimize = true, .verify = true } },
             { "fast", { .threads = 1, .verify = true } },
             { "two threads", { .threads = 2, .verify = true } },
             { "AVX2", { .threads = 1, .isa = ONX_ISA_V3, .verify = true } } };
enum { WAYS = sizeof ways / sizeof *ways };

static graph *new_graph(uint64_t seed)
{
    static writer nodes, inits;
    static graph g;
    g = (graph){ .s = { seed }, .nodes = &nodes, .inits = &inits };
    return &g;
}

#endif
