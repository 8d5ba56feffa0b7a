/* test_kernel_variants.c - models large enough for fast rows, run by the plain rows and by those that a session chooses
 * itself, with one thread and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

/* Compares where `op` has to have another row than the plain one. */
static void compare(const writer *w, const char *op, const onx_value *const *in, double ulps)
{
    assert_string_not_equal(compare_any(w, op, in, ulps), "plain");
}

/* ---- trees ---- */

/* Numbers that features and splits share, so that they are equal often. */
static float tree_number(source *s, bool feature)
{
    static const float odd[] = { 0.0f, -0.0f, INFINITY, -INFINITY, 3.4028235e38f, 1e-45f, -1e-45f, NAN };
    uint32_t which = below(s, 40);
    if (feature && which < sizeof odd / sizeof *odd)
        return odd[which];
    return (float)below(s, 16) / 4 - 2;
}

enum { TREES = 11, NODES_MAX = 512, COLUMNS = 5 };

typedef struct forest {
    uint32_t count, tree[NODES_MAX], node[NODES_MAX], feature[NODES_MAX], yes[NODES_MAX], no[NODES_MAX];
    uint8_t mode[NODES_MAX], missing[NODES_MAX];
    float split[NODES_MAX];
} forest;

static void grow(forest *f, source *s, unsigned modes)
{
    f->count = 0;
    for (uint32_t t = 0; t < TREES; t++) {
        uint32_t first = f->count, open = 1;
        for (uint32_t n = 0; n < open; n++) {
            uint32_t i = f->count++;
            bool inner = open + 2 <= NODES_MAX / TREES && below(s, 8);
            assert_true(i < NODES_MAX);
            f->tree[i] = t;
            f->node[i] = i - first;
            f->feature[i] = below(s, COLUMNS);
            f->split[i] = tree_number(s, false);
            f->mode[i] = (uint8_t)(inner ? below(s, modes) : 6);
            f->missing[i] = (uint8_t)below(s, 2);
            f->yes[i] = inner ? open : 0;
            f->no[i] = inner ? open + 1 : 0;
            open += inner ? 2 : 0;
        }
    }
}

static void write_forest(writer *w, const forest *f)
{
    static const char *const modes[] = { "LEQ", "LT", "GTE", "GT", "EQ", "NEQ" };
    LIST(w, "nodes_treeids", f->count, "%u", f->tree[i]);
    LIST(w, "nodes_nodeids", f->count, "%u", f->node[i]);
    LIST(w, "nodes_featureids", f->count, "%u", f->feature[i]);
    LIST(w, "nodes_modes", f->count, "\"%s%s\"", f->mode[i] < 6 ? "BRANCH_" : "",
         f->mode[i] < 6 ? modes[f->mode[i]] : "LEAF");
    LIST(w, "nodes_values", f->count, "%.9e", (double)f->split[i]);
    LIST(w, "nodes_truenodeids", f->count, "%u", f->yes[i]);
    LIST(w, "nodes_falsenodeids", f->count, "%u", f->no[i]);
    LIST(w, "nodes_missing_value_tracks_true", f->count, "%u", f->missing[i]);
}

/* Of each leaf up to `each` votes. */
static void write_votes(writer *w, const forest *f, source *s, const char *what, uint32_t targets, uint32_t each)
{
    uint32_t leaf[2 * NODES_MAX], count = 0;
    char name[4][40];
    for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t k = below(s, 4) ? each : 0; k && f->mode[i] == 6; k--)
            leaf[count++] = i;
    snprintf(name[0], sizeof name[0], "%s_treeids", what);
    snprintf(name[1], sizeof name[1], "%s_nodeids", what);
    snprintf(name[2], sizeof name[2], "%s_ids", what);
    snprintf(name[3], sizeof name[3], "%s_weights", what);
    LIST(w, name[0], count, "%u", f->tree[leaf[i]]);
    LIST(w, name[1], count, "%u", f->node[leaf[i]]);
    LIST(w, name[2], count, "%u", below(s, targets));
    LIST(w, name[3], count, "%.9e", (double)between(s, -1, 1));
}

static const char *type_name(onx_dtype dtype)
{
    return dtype == ONX_FLOAT ? "float" : dtype == ONX_DOUBLE ? "double" : dtype == ONX_INT64 ? "int64" : "int32";
}

static onx_value *tree_rows(source *s, onx_dtype dtype, int64_t rows)
{
    onx_value *x = tensor(dtype, 2, (int64_t[]){ rows, COLUMNS });
    const bool whole = dtype == ONX_INT64 || dtype == ONX_INT32;
    for (uint64_t i = 0; i < x->count; i++) {
        double v = (double)tree_number(s, !whole);
        if (dtype == ONX_DOUBLE && below(s, 4) == 0)
            v += below(s, 2) ? 1e-12 : -1e-12; /* between two floats */
        onx_convert(dtype, (char *)x->data + i * (onx_dtype_bits(dtype) / 8), ONX_DOUBLE, &v, 1, true);
    }
    return x;
}

static const onx_dtype tree_types[] = { ONX_FLOAT, ONX_DOUBLE, ONX_INT64, ONX_INT32 };
static const int64_t tree_batches[] = { 1, 3, 8, 13, 700 };

static void test_kernel_variants__regressors_are_the_same(void **state)
{
    static const char *const aggregates[] = { "SUM", "AVERAGE", "MIN", "MAX" };
    static const char *const ends[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
    static writer w;
    static forest f;
    source s = { 1 };
    (void)state;
    for (unsigned turn = 0; turn < 80; turn++) {
        const onx_dtype dtype = tree_types[turn % 4];
        const uint32_t targets = 1 + below(&s, 2) * 2;
        onx_value *x = tree_rows(&s, dtype, tree_batches[turn % 5]);
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\ng (%s[N, %d] x) => (float[N, T] y) {\n",
            type_name(dtype), COLUMNS);
        add(&w, " y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = %u, ", targets);
        grow(&f, &s, turn % 3 ? 6 : 1);
        write_forest(&w, &f);
        write_votes(&w, &f, &s, "target", targets, 1 + turn % 2);
        if (below(&s, 2))
            LIST(&w, "base_values", targets, "0.%u", i + 2);
        add(&w, "aggregate_function = \"%s\", post_transform = \"%s\"> (x)\n}\n", aggregates[below(&s, 4)],
            ends[below(&s, 4)]);
        compare(&w, "TreeEnsembleRegressor", (const onx_value *const[]){ x }, 0);
        onx_value_free(x);
    }
}

static void test_kernel_variants__classifiers_are_the_same(void **state)
{
    static writer w;
    static forest f;
    source s = { 2 };
    (void)state;
    for (unsigned turn = 0; turn < 40; turn++) {
        const onx_dtype dtype = tree_types[turn % 4];
        const uint32_t classes = 1 + below(&s, 3), voted = below(&s, 2) ? 1 : classes;
        onx_value *x = tree_rows(&s, dtype, tree_batches[turn % 5]);
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\ng (%s[N, %d] x) => (int64[N] l, float[N, T] y) {\n",
            type_name(dtype), COLUMNS);
        add(&w, " l, y = ai.onnx.ml.TreeEnsembleClassifier <");
        LIST(&w, "classlabels_int64s", classes, "%u", 10 + i);
        grow(&f, &s, 6);
        write_forest(&w, &f);
        write_votes(&w, &f, &s, "class", voted, 1);
        add(&w, "post_transform = \"%s\"> (x)\n}\n", turn % 2 ? "LOGISTIC" : "NONE");
        compare(&w, "TreeEnsembleClassifier", (const onx_value *const[]){ x }, 0);
        onx_value_free(x);
    }
}

/* Sets of members, and numbers that are no floats. */
static void test_kernel_variants__ensembles_are_the_same(void **state)
{
    static writer w;
    source s = { 3 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const bool wide = turn % 2;
        const char *type = wide ? "double" : "float";
        enum { NODES = 40 };
        uint32_t sets = 0, members = 0;
        uint8_t mode[NODES];
        float member[NODES * 7];
        for (uint32_t i = 0; i < NODES; i++) {
            mode[i] = (uint8_t)below(&s, 7);
            for (uint32_t k = mode[i] == 6 ? below(&s, 7) : 0; k; k--)
                member[members++] = tree_number(&s, false);
            if (mode[i] == 6)
                member[members++] = NAN;
            sets += mode[i] == 6;
        }
        onx_value *x = tree_rows(&s, wide ? ONX_DOUBLE : ONX_FLOAT, tree_batches[turn % 5]);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 5]>\ng (%s[N, %d] x) => (%s[N, 2] y) {\n",
            type, COLUMNS, type);
        add(&w, " y = ai.onnx.ml.TreeEnsemble <n_targets = 2, aggregate_function = %u, ", below(&s, 4));
        LIST(&w, "nodes_featureids", NODES, "%u", below(&s, COLUMNS));
        LIST(&w, "nodes_truenodeids", NODES, "%u", 2 * i + 1 < NODES ? 2 * i + 1 : i);
        LIST(&w, "nodes_falsenodeids", NODES, "%u", 2 * i + 2 < NODES ? 2 * i + 2 : i);
        LIST(&w, "nodes_trueleafs", NODES, "%u", 2 * i + 1 >= NODES);
        LIST(&w, "nodes_falseleafs", NODES, "%u", 2 * i + 2 >= NODES);
        LIST(&w, "nodes_missing_value_tracks_true", NODES, "%u", below(&s, 2));
        LIST(&w, "tree_roots", 1u, "0");
        LIST(&w, "leaf_targetids", NODES, "%u", below(&s, 2));
        add(&w, "nodes_modes = uint8[%d] {", NODES);
        for (uint32_t i = 0; i < NODES; i++)
            add(&w, "%s%u", i ? ", " : "", mode[i]);
        add(&w, "}, nodes_splits = %s[%d] {", type, NODES);
        for (uint32_t i = 0; i < NODES; i++)
            add(&w, "%s%.17g", i ? ", " : "", (double)tree_number(&s, false) + (below(&s, 3) || !wide ? 0 : 1e-12));
        if (sets) {
            add(&w, "}, membership_values = %s[%u] {", type, members);
            for (uint32_t i = 0; i < members; i++)
                add(&w, isnan(member[i]) ? "%snan" : "%s%.9g", i ? ", " : "", (double)member[i]);
        }
        add(&w, "}, leaf_weights = %s[%d] {", type, NODES);
        for (uint32_t i = 0; i < NODES; i++)
            add(&w, "%s%g", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}> (x)\n}\n");
        compare(&w, "TreeEnsemble", (const onx_value *const[]){ x }, 0);
        onx_value_free(x);
    }
}

/* ---- recurrent layers ---- */

/* An initializer of small numbers; depth 0: of rank 2. */
static void write_numbers(writer *w, source *s, const char *name, uint32_t rows, uint32_t width, uint32_t depth)
{
    add(w, "float[%u, %u%s", rows, width, depth ? ", " : "");
    if (depth)
        add(w, "%u", depth);
    add(w, "] %s = {", name);
    for (uint32_t i = 0; i < rows * width * (depth ? depth : 1); i++)
        add(w, "%s%.4f", i ? ", " : "", (double)between(s, -0.2f, 0.2f));
    add(w, "}");
}

static const struct {
    const char *name;
    uint32_t gates, activations;
} layers[] = { { "RNN", 1, 1 }, { "GRU", 3, 2 }, { "LSTM", 4, 3 } };

static void write_activations(writer *w, source *s, uint32_t count)
{
    static const char *const names[] = { "Relu",        "Tanh",       "Sigmoid",
                                         "Affine",      "LeakyRelu",  "ThresholdedRelu",
                                         "HardSigmoid", "ScaledTanh", "Elu",
                                         "Softsign",    "Softplus" };
    LIST(w, "activations", count, "\"%s\"", names[below(s, 11)]);
}

/* Sizes around those of vectors and tiles, all flags, sequences that end early, with and without peepholes. */
static void test_kernel_variants__recurrent_layers_are_the_same(void **state)
{
    static const uint32_t sizes[] = { 1, 5, 8, 16, 17, 33, 64 };
    static writer w;
    source s = { 4 };
    (void)state;
    for (unsigned turn = 0; turn < 90; turn++) {
        const uint32_t kind = turn % 3, h = sizes[below(&s, 7)], k = 1 + below(&s, 20), batch = 1 + below(&s, 14);
        const uint32_t steps = 1 + below(&s, 9), way = below(&s, 3), d = way == 2 ? 2 : 1, g = layers[kind].gates * h;
        const bool first = below(&s, 2), more = below(&s, 2);
        const int64_t xd[] = { first ? batch : steps, first ? steps : batch, k },
                      hd[] = { first ? batch : d, first ? d : batch, h }, bd[] = { batch };
        onx_value *x = floats(&s, 3, xd), *start = floats(&s, 3, hd), *lens = tensor(ONX_INT32, 1, bd);
        for (uint32_t b = 0; b < batch; b++)
            ((int32_t *)lens->data)[b] = (int32_t)below(&s, steps + 1);
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[A, B, %u] x, int32[N] lens, float[C, D, %u] h) => "
            "(float[E, F, G, %u] y, float[I, J, %u] z) <",
            k, h, h, h);
        write_numbers(&w, &s, "w", d, g, k);
        add(&w, ", ");
        write_numbers(&w, &s, "r", d, g, h);
        add(&w, ", ");
        write_numbers(&w, &s, "b", d, 2 * g, 0);
        add(&w, ", ");
        write_numbers(&w, &s, "p", d, 3 * h, 0);
        add(&w, "> {\n y, z = %s <layout = %u, direction = \"%s\", ", layers[kind].name, first,
            way == 2 ? "bidirectional"
            : way    ? "reverse"
                     : "forward");
        if (more)
            write_activations(&w, &s, d * layers[kind].activations);
        if (below(&s, 2))
            add(&w, "clip = 0.75, ");
        if (kind)
            add(&w, "%s = %u, ", kind == 1 ? "linear_before_reset" : "input_forget", below(&s, 2));
        add(&w, "hidden_size = %u> (x, w, r, b, lens, h%s)\n}\n", h,
            kind == 2 ? (below(&s, 2) ? ", \"\", p" : ", h") : "");
        compare(&w, layers[kind].name, (const onx_value *const[]){ x, lens, start }, 200);
        onx_value_free(x);
        onx_value_free(start);
        onx_value_free(lens);
    }
}

/* One direction whose recurrent products are shared by two threads, of two sequences and of one alone. */
static void test_kernel_variants__threads_share_a_layer(void **state)
{
    static writer w;
    (void)state;
    for (uint32_t batch = 2; batch; batch--) {
        source s = { 5 };
        const int64_t dims[] = { 5, batch, 3 };
        onx_value *x = floats(&s, 3, dims);
        w.len = 0;
        add(&w, "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[5, %u, 3] x) => (float[A, B, C, 190] y) <",
            batch);
        write_numbers(&w, &s, "w", 1, 4 * 190, 3);
        add(&w, ", float[1, 760, 190] r = {");
        for (uint32_t i = 0; i < 4 * 190 * 190; i++)
            add(&w, "%s%.2g", i ? "," : "", (double)between(&s, -0.09f, 0.09f));
        add(&w, "}> {\n y = LSTM <hidden_size = 190> (x, w, r)\n}\n");
        compare(&w, "LSTM", (const onx_value *const[]){ x }, 200);
        onx_value_free(x);
    }
}

/* A small layer whose products with the input are shared: 90 rows of 500 numbers. */
static void test_kernel_variants__threads_share_an_input(void **state)
{
    static writer w;
    source s = { 23 };
    const int64_t dims[] = { 45, 2, 500 };
    (void)state;
    onx_value *x = floats(&s, 3, dims);
    w.len = 0;
    add(&w, "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[45, 2, 500] x) => (float[A, B, C, 20] y) <"
            "float[1, 80, 500] w = {");
    for (uint32_t i = 0; i < 80 * 500; i++)
        add(&w, "%s%.2g", i ? "," : "", (double)between(&s, -0.06f, 0.06f));
    add(&w, "}, ");
    write_numbers(&w, &s, "r", 1, 80, 20);
    add(&w, "> {\n y = LSTM <hidden_size = 20> (x, w, r)\n}\n");
    compare(&w, "LSTM", (const onx_value *const[]){ x }, 200);
    onx_value_free(x);
}

/* ---- quantized numbers ---- */

static const struct {
    const char *name;
    onx_dtype dtype;
    int32_t low, high;
} wholes[] = { { "int8", ONX_INT8, -128, 127 },
               { "uint8", ONX_UINT8, 0, 255 },
               { "int16", ONX_INT16, -32768, 32767 },
               { "uint16", ONX_UINT16, 0, 65535 } };

static onx_value *whole_numbers(source *s, uint32_t type, uint32_t rank, const int64_t *dims)
{
    onx_value *v = tensor(wholes[type].dtype, rank, dims);
    for (uint64_t i = 0; i < v->count; i++) {
        int32_t x = wholes[type].low + (int32_t)below(s, (uint32_t)(wholes[type].high - wholes[type].low + 1));
        onx_convert(wholes[type].dtype, (char *)v->data + i * (onx_dtype_bits(wholes[type].dtype) / 8), ONX_INT32, &x,
                    1, true);
    }
    return v;
}

/* Numbers around all halves, and what is out of range; scales for all, and per index of an axis. */
static void test_kernel_variants__quantizing_is_the_same(void **state)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-45f, -0.0f };
    static writer w;
    source s = { 6 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const uint32_t type = turn % 4, scales = below(&s, 2) ? 1 : 3;
        const int64_t dims[] = { 1 + below(&s, 3), 3, 16 + below(&s, 1500) }, sd[] = { scales };
        onx_value *x = tensor(ONX_FLOAT, 3, dims), *scale = tensor(ONX_FLOAT, scales > 1, sd);
        onx_value *zero = whole_numbers(&s, type, scales > 1, sd), *q = whole_numbers(&s, type, 3, dims);
        for (uint64_t i = 0; i < scale->count; i++)
            ((float *)scale->data)[i] = (float)(1 + below(&s, 7)) / 8;
        for (uint64_t i = 0; i < x->count; i++)
            ((float *)x->data)[i] = below(&s, 9) ? (float)((int32_t)below(&s, 5000) - 2500) / 16 : odd[below(&s, 7)];
        const char *shape = scales > 1 ? "[3]" : "";
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[N, C, W] x, float%s s, %s%s z) => (%s[N, C, W] y) {\n"
            " y = QuantizeLinear (x, s, z)\n}\n",
            shape, wholes[type].name, shape, wholes[type].name);
        compare(&w, "QuantizeLinear", (const onx_value *const[]){ x, scale, zero }, 0);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\ng (%s[N, C, W] x, float%s s, %s%s z) => (float[N, C, W] y) {\n"
            " y = DequantizeLinear (x, s, z)\n}\n",
            wholes[type].name, shape, wholes[type].name, shape);
        compare(&w, "DequantizeLinear", (const onx_value *const[]){ q, scale, zero }, 0);
        onx_value_free(x);
        onx_value_free(scale);
        onx_value_free(zero);
        onx_value_free(q);
    }
}

static void test_kernel_variants__integer_products_are_the_same(void **state)
{
    static writer w;
    source s = { 7 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const uint32_t m = 1 + below(&s, 120), n = 1 + below(&s, 300), k = 1 + below(&s, turn % 4 ? 70 : 1200);
        const uint32_t ta = below(&s, 2), tb = below(&s, 2);
        const bool per_line = below(&s, 3) == 0;
        onx_value *a = whole_numbers(&s, ta, 2, (int64_t[]){ m, k }),
                  *b = whole_numbers(&s, tb, 2, (int64_t[]){ k, n });
        onx_value *za = whole_numbers(&s, ta, 0, NULL), *zb = whole_numbers(&s, tb, per_line, (int64_t[]){ n });
        onx_value *sb = tensor(ONX_FLOAT, per_line, (int64_t[]){ n });
        for (uint64_t i = 0; i < sb->count; i++)
            ((float *)sb->data)[i] = between(&s, 0.001f, 0.05f);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\n"
            "g (%s[M, K] a, %s[K, N] b, %s za, %s%s zb) => (int32[M, N] y) {\n"
            " y = MatMulInteger (a, b, za, zb)\n}\n",
            wholes[ta].name, wholes[tb].name, wholes[ta].name, wholes[tb].name, per_line ? "[N]" : "");
        compare(&w, "MatMulInteger", (const onx_value *const[]){ a, b, za, zb }, 0);
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\n"
            "g (%s[M, K] a, %s[K, N] b, %s za, %s%s zb, float%s sb) => (%s[M, N] y) <float sa = {0.03125}, "
            "float sy = {0.9}, %s zy = {7}> {\n"
            " y = QLinearMatMul (a, sa, za, b, sb, zb, sy, zy)\n}\n",
            wholes[ta].name, wholes[tb].name, wholes[ta].name, wholes[tb].name, per_line ? "[N]" : "",
            per_line ? "[N]" : "", wholes[ta].name, wholes[ta].name);
        compare(&w, "QLinearMatMul", (const onx_value *const[]){ a, b, za, zb, sb }, 0);
        onx_value_free(sb);
        onx_value_free(a);
        onx_value_free(b);
        onx_value_free(za);
        onx_value_free(zb);
    }
}

static void test_kernel_variants__integer_convolutions_are_the_same(void **state)
{
    static writer w;
    source s = { 8 };
    (void)state;
    for (unsigned turn = 0; turn < 40; turn++) {
        const uint32_t groups = 1 + below(&s, 3), c = groups * (1 + below(&s, 4)), m = groups * (1 + below(&s, 9));
        const uint32_t tx = below(&s, 2), tw = below(&s, 2), kernel = 1 + below(&s, 3), size = 4 + below(&s, 30);
        onx_value *x = whole_numbers(&s, tx, 4, (int64_t[]){ 2, c, size, size + 1 });
        onx_value *weight = whole_numbers(&s, tw, 4, (int64_t[]){ m, c / groups, kernel, kernel });
        onx_value *zx = whole_numbers(&s, tx, 0, NULL), *zw = whole_numbers(&s, tw, 0, NULL);
        onx_value *bias = tensor(ONX_INT32, 1, (int64_t[]){ m });
        for (uint64_t i = 0; i < m; i++)
            ((int32_t *)bias->data)[i] = (int32_t)below(&s, 4000) - 2000;
        w.len = 0;
        add(&w,
            "<ir_version: 10, opset_import: [\"\" : 21]>\n"
            "g (%s[N, C, H, W] x, %s[M, D, K, L] w, %s zx, %s zw, int32[M] b) => (int32[N, M, O, P] s, %s[N, M, O, P] y) "
            "<float sx = {0.03125}, float sw = {0.0123}, float sy = {0.11}, %s zy = {3}> {\n"
            " s = ConvInteger <group = %u, pads = [1, 0, 1, 1], strides = [1, %u]> (x, w, zx, zw)\n"
            " y = QLinearConv <group = %u, pads = [1, 0, 1, 1], strides = [1, %u]> (x, sx, zx, w, sw, zw, sy, zy, b)\n}\n",
            wholes[tx].name, wholes[tw].name, wholes[tx].name, wholes[tw].name, wholes[tx].name, wholes[tx].name,
            groups, 1 + turn % 2, groups, 1 + turn % 2);
        compare(&w, turn % 2 ? "QLinearConv" : "ConvInteger", (const onx_value *const[]){ x, weight, zx, zw, bias }, 0);
        onx_value_free(x);
        onx_value_free(weight);
        onx_value_free(zx);
        onx_value_free(zw);
        onx_value_free(bias);
    }
}

/* ---- products by constant weights ---- */

/* Sizes around those of tiles and blocks; what follows is done in passing, up to four nodes of it. */
static void compare_products(unsigned seed)
{
    static const uint32_t ms[] = { 1, 2, 5, 6, 7, 13, 130, 217 }, ks[] = { 1, 3, 64, 257, 385, 777 },
                          ns[] = { 1, 3, 16, 17, 31, 33, 48, 100 };
    static const char *const after[] = {
        "%s = Add (%s, bias)",
        "%s = Add (%s, x1)",
        "%s = Relu (%s)",
        "%s = Gelu (%s)",
        "%s = Gelu <approximate = \"tanh\"> (%s)",
        "%s = Swish <alpha = 1.5> (%s)",
        "%s = Tanh (%s)",
        "%s = Sigmoid (%s)",
        "%s = HardSwish (%s)",
        "%s = LeakyRelu (%s)",
        "%s = Clip (%s, low, high)",
    };
    static writer w;
    source s = { seed };
    for (unsigned turn = 0; turn < 200; turn++) {
        const uint32_t m = ms[below(&s, 8)], k = ks[below(&s, 6)], n = ns[below(&s, 8)], posts = below(&s, 5);
        const bool gemm = turn % 3 == 0, turned = gemm && below(&s, 2);
        const int64_t xd[] = { gemm ? m : 2, gemm ? k : m, k }, yd[] = { gemm ? m : 2, gemm ? n : m, n };
        onx_value *x = floats(&s, gemm ? 2 : 3, xd), *residual = floats(&s, gemm ? 2 : 3, yd);
        w.len = 0;
        add(&w, "<ir_version: 10, opset_import: [\"\" : 24]>\ng (float[%s] x0, float[%s] x1) => (float[%s] y) <",
            gemm ? "A, B" : "A, B, C", gemm ? "A, E" : "A, B, E", gemm ? "A, E" : "A, B, E");
        if (precision) {
            shorten(x);
            add(&w, "float[%u, %u] w = {", turned ? n : k, turned ? k : n);
            add_short_numbers(&w, &s, n * k);
        } else {
            write_numbers(&w, &s, "w", turned ? n : k, turned ? k : n, 0);
        }
        add(&w, ", float[%u] bias = {", n);
        for (uint32_t i = 0; i < n; i++)
            add(&w, "%s%.3f", i ? ", " : "", (double)between(&s, -1, 1));
        add(&w, "}, float low = {-0.5}, float high = {1.25}> {\n %s = ", posts ? "t0" : "y");
        if (gemm)
            add(&w, "Gemm <transB = %d> (x0, w%s)\n", turned, below(&s, 2) ? ", bias" : "");
        else
            add(&w, "MatMul (x0, w)\n");
        for (uint32_t i = 0; i < posts; i++) {
            char from[16], to[16];
            snprintf(from, sizeof from, "t%u", i);
            snprintf(to, sizeof to, i + 1 == posts ? "y" : "t%u", i + 1);
            add(&w, " ");
            add(&w, after[below(&s, sizeof after / sizeof *after)], to, from);
            add(&w, "\n");
        }
        add(&w, "}\n");
        compare(&w, gemm ? "Gemm" : "MatMul", (const onx_value *const[]){ x, residual }, 60);
        onx_value_free(x);
        onx_value_free(residual);
    }
}

static void test_kernel_variants__products_are_the_same(void **state)
{
    (void)state;
    compare_products(5);
}

/* In bfloat16, of numbers that it holds: sums are floats all the same. */
static void test_kernel_variants__products_in_fewer_bits_are_the_same(void **state)
{
    (void)state;
    precision = ONX_PRECISION_BF16;
    compare_products(7);
    precision = ONX_PRECISION_FULL;
}

/* Two values of the run, with a batch that either repeats. */
static void test_kernel_variants__batches_are_the_same(void **state)
{
    static const int64_t ms[] = { 1, 2, 6, 7, 49 }, ks[] = { 1, 3, 32, 257, 389 },
                         ns[] = { 1, 3, 7, 16, 31, 33, 48, 49 };
    static writer w;
    source s = { 6 };
    (void)state;
    for (unsigned turn = 0; turn < 160; turn++) {
        const int64_t m = ms[below(&s, 5)], k = ks[below(&s, 5)], n = ns[below(&s, 8)];
        const int64_t ad[] = { below(&s, 2) ? 1 : 2, 3, m, k }, bd[] = { 2, below(&s, 2) ? 1 : 3, k, n };
        const uint32_t drop = below(&s, 3); /* leading dims of b that are left out */
        onx_value *a = floats(&s, 4, ad), *b = floats(&s, 4 - drop, bd + drop);
        w.len = 0;
        add(&w,
            "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[A, B, C, D] a, float%s b) => (float[E, F, G, H] y) {\n"
            " %s\n}\n",
            drop == 2   ? "[I, J]"
            : drop == 1 ? "[I, J, K]"
                        : "[I, J, K, L]",
            turn % 2 ? "t = MatMul (a, b) y = Relu (t)" : "y = MatMul (a, b)");
        compare(&w, "MatMul", (const onx_value *const[]){ a, b }, 120); /* long sums that may end near 0 */
        onx_value_free(a);
        onx_value_free(b);
    }
}

/* Sums of products in all orders of labels: products as they lie and not, diagonals, sums before, three operands. */
static void test_kernel_variants__labelled_sums_are_the_same(void **state)
{
    static const char *const equations[] = {
        "ij,jk->ik",      "bij,bjk->bik",    "bij,bkj->bik", "btw,ewv->ebtv",   "ebtv,evw->ebtw",
        "ebtw,bte->btw",  "bhid,bhjd->bhij", "ij,ij->ij",    "kij->jki",        "ii,ij->j",
        "abc,cd,de->eab", "ijk,kj->i",       "ij,k->kij",    "abcd,bd,ca->adb", "ij,ji->",
    };
    static const int64_t sizes[] = { 1, 2, 3, 7, 16, 17, 33 };
    static writer w;
    source s = { 77 };
    (void)state;
    for (unsigned turn = 0; turn < 90; turn++) {
        const char *equation = equations[turn % 15];
        int64_t size[26];
        for (int i = 0; i < 26; i++)
            size[i] = sizes[below(&s, 7)];
        if (turn % 15 < 3) { /* sums longer than a stretch, and rows for several threads */
            size['j' - 'a'] = turn % 2 ? 389 : 64;
            size['i' - 'a'] = 101;
        }
        onx_value *in[3] = { NULL };
        uint32_t count = 0;
        w.len = 0;
        add(&w, "<ir_version: 8, opset_import: [\"\" : 17]>\ng (");
        for (const char *at = equation; *at != '-'; count++) {
            int64_t dims[4];
            uint32_t rank = 0;
            add(&w, "%sfloat[", count ? ", " : "");
            for (; *at >= 'a'; at++, rank++) {
                dims[rank] = size[*at - 'a'];
                add(&w, "%sD%u%u", rank ? ", " : "", count, rank);
            }
            at += *at == ',';
            add(&w, "] x%u", count);
            in[count] = floats(&s, rank, dims);
        }
        add(&w, ") => (float[");
        for (const char *at = strchr(equation, '>') + 1; *at; at++)
            add(&w, "%sR%c", at[-1] == '>' ? "" : ", ", *at);
        add(&w, "] y) {\n y = Einsum <equation = \"%s\"> (x0%s%s)\n}\n", equation, count > 1 ? ", x1" : "",
            count > 2 ? ", x2" : "");
        compare(&w, "Einsum", (const onx_value *const *)in, 300);
        for (uint32_t i = 0; i < count; i++)
            onx_value_free(in[i]);
    }
}

/* Attention with everything that it may be asked for: fewer heads of keys, masks, a past, windows, lengths. */
static void test_kernel_variants__attention_is_the_same(void **state)
{
    static const int64_t lengths[] = { 1, 3, 5, 17, 64, 101, 197 }, sizes[] = { 1, 7, 8, 33, 64, 80 };
    static writer w;
    source s = { 7 };
    (void)state;
    for (unsigned turn = 0; turn < 120; turn++) {
        const bool past = below(&s, 3) == 0, lens = !past && below(&s, 4) == 0, boolean = below(&s, 2);
        const uint32_t masks = below(&s, 4);
        const int64_t queries = lengths[below(&s, 7)], keys = lengths[below(&s, 7)], size = sizes[below(&s, 6)],
                      v_size = sizes[below(&s, 6)], before = past ? lengths[below(&s, 5)] : 0, group = 1 + below(&s, 2);
        onx_value *in[7] = { floats(&s, 4, (int64_t[]){ 2, 2 * group, queries, size }),
                             floats(&s, 4, (int64_t[]){ 2, 2, keys, size }),
                             floats(&s, 4, (int64_t[]){ 2, 2, keys, v_size }) };
        uint32_t count = 3;
        w.len = 0;
        add(&w, "<ir_version: 12, opset_import: [\"\" : 25]>\n"
                "g (float[A, B, C, D] q, float[A, E, F, D] k, float[A, E, F, G] v");
        if (masks) {
            const int64_t total = keys + before, dims[] = { masks == 3 ? 1 : 2, 1, masks == 1 ? 1 : queries,
                                                            below(&s, 4) ? total : (total + 1) / 2 };
            in[count] = boolean ? tensor(ONX_BOOL, 4, dims) : floats(&s, 4, dims);
            for (uint64_t i = 0; i < in[count]->count; i++)
                if (boolean)
                    ((uint8_t *)in[count]->data)[i] = below(&s, 3) != 0;
                else if (below(&s, 3) == 0)
                    ((float *)in[count]->data)[i] = -INFINITY;
            count++;
            add(&w, ", %s[H, I, J, K] m", boolean ? "bool" : "float");
        }
        if (past) {
            in[count++] = floats(&s, 4, (int64_t[]){ 2, 2, before, size });
            in[count++] = floats(&s, 4, (int64_t[]){ 2, 2, before, v_size });
            add(&w, ", float[A, E, L, D] pk, float[A, E, L, G] pv");
        }
        if (lens) {
            in[count] = tensor(ONX_INT64, 1, (int64_t[]){ 2 });
            for (int i = 0; i < 2; i++)
                ((int64_t *)in[count]->data)[i] = below(&s, (uint32_t)keys + 1);
            count++;
            add(&w, ", int64[A] n");
        }
        add(&w, ") => (float[A, B, C, G] y) {\n y = Attention <is_causal = %u", below(&s, 2));
        if (below(&s, 3) == 0)
            add(&w, ", softcap = 1.5");
        if (below(&s, 3) == 0)
            add(&w, ", left_window_size = %u, right_window_size = %u", below(&s, 20), below(&s, 20));
        if (below(&s, 2))
            add(&w, ", scale = -0.75");
        add(&w, "> (q, k, v, %s, %s, %s, %s)\n}\n", masks ? "m" : "", past ? "pk" : "", past ? "pv" : "",
            lens ? "n" : "");
        compare(&w, "Attention", (const onx_value *const *)in, 100);
        while (count)
            onx_value_free(in[--count]);
    }
}

/* What a mask leaves of weights is no denormal number, which some processors take a hundred times as long for. */
static void test_kernel_variants__masked_weights_are_zero(void **state)
{
    enum { COUNT = 200 };
    static writer w;
    onx_value *x = tensor(ONX_FLOAT, 2, (int64_t[]){ 1, COUNT }), *y = NULL;
    onx_doc *doc = NULL;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        ((float *)x->data)[i] = i == 7 ? 3.0f : 3.0f - 80.0f - (float)i / 8;
    w.len = 0;
    add(&w, "<ir_version: 10, opset_import: [\"\" : 24]> g (float[N, M] x) => (float[N, M] y) { y = Softmax (x) }");
    compare(&w, "Softmax", (const onx_value *const[]){ x }, 2);
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_make(w.text, w.len), 0, &doc), ONX_OK);
    run(doc, "Softmax", NULL, (const onx_value *const[]){ x }, &y);
    for (int i = 0; i < COUNT; i++)
        assert_int_not_equal(fpclassify(((const float *)y->data)[i]), FP_SUBNORMAL);
    assert_true(((const float *)y->data)[7] == 1 && ((const float *)y->data)[0] > 0);
    onx_value_free(x);
    onx_value_free(y);
    onx_doc_free(doc);
}

/* One exponent for all elements, and one for each; lines of elements that fill blocks in part. Every pair of types. */
static const struct {
    onx_dtype dtype;
    const char *name;
    double exponents[8];
} powers[] = { { ONX_DOUBLE, "double", { 2, 3, 0.5, 1, 0, -1, 1.75, NAN } },
               { ONX_INT64, "int64", { 2, 3, 4, 1, 0, -1, 77, -2 } },
               { ONX_INT32, "int32", { 2, 3, 4, 1, 0, -1, 77, -2 } },
               { ONX_FLOAT, "float", { 2, 3, 0.5, 1, -1, -3, 1.75, INFINITY } },
               { ONX_FLOAT16, "float16", { 2, 3, 0.5, -INFINITY, 0, -1, -1.75, NAN } },
               { ONX_BFLOAT16, "bfloat16", { 2, 3, 0.5, 1, 0, -1, 1.75, -7 } },
               { ONX_INT8, "int8", { 2, 3, 4, 1, 0, -1, 77, -2 } },
               { ONX_INT16, "int16", { 2, 3, 4, 1, 0, -1, 77, -2 } },
               { ONX_UINT8, "uint8", { 2, 3, 4, 1, 0, 5, 77, 200 } },
               { ONX_UINT16, "uint16", { 2, 3, 4, 1, 0, 5, 77, 60001 } },
               { ONX_UINT32, "uint32", { 2, 3, 4, 1, 0, 5, 77, 4e9 } },
               { ONX_UINT64, "uint64", { 2, 3, 4, 1, 0, 5, 77, 0x1p63 + 0x1p20 } } };

static void compare_powers(unsigned b, unsigned e, unsigned turn)
{
    enum { COUNT = 1037 };
    static const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 2e9 };
    static writer w;
    const bool whole = b == 1 || b == 2;
    onx_value *x = tensor(powers[b].dtype, 1, (int64_t[]){ COUNT });
    onx_value *y = tensor(powers[e].dtype, 1, (int64_t[]){ turn < 8 ? 1 : COUNT });
    for (unsigned i = 0; i < COUNT; i++) {
        const double base = i < 8 ? odd[whole ? 5 + i % 3 : i] : ((double)i - 500) / (whole ? 1 : 8);
        onx_convert(powers[b].dtype, (char *)x->data + i * (x->size / COUNT), ONX_DOUBLE, &base, 1, true);
    }
    for (uint64_t i = 0; i < y->count; i++)
        onx_convert(powers[e].dtype, (char *)y->data + i * (y->size / y->count), ONX_DOUBLE,
                    &powers[e].exponents[turn < 8 ? turn : i % 8], 1, true);
    w.len = 0;
    add(&w, "<ir_version: 8, opset_import: [\"\" : 17]> g (%s[N] x, %s[M] y) => (float[N] z) ", powers[b].name,
        powers[e].name);
    add(&w, "{ p = Pow (x, y) z = Cast <to = 1> (p) }");
    assert_string_not_equal(compare_any(&w, "Pow", (const onx_value *const[]){ x, y }, 1), "plain");
    onx_value_free(x);
    onx_value_free(y);
}

static void test_kernel_variants__powers_are_the_same(void **state)
{
    (void)state;
    for (unsigned b = 0; b < 6; b++) /* the standard has no bases of other types */
        for (unsigned e = 0; e < sizeof powers / sizeof *powers; e++)
            for (unsigned turn = 0; turn < 9; turn++) /* the last one: an exponent for each element */
                compare_powers(b, e, turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_variants__attention_is_the_same),
        cmocka_unit_test(test_kernel_variants__masked_weights_are_zero),
        cmocka_unit_test(test_kernel_variants__products_are_the_same),
        cmocka_unit_test(test_kernel_variants__products_in_fewer_bits_are_the_same),
        cmocka_unit_test(test_kernel_variants__batches_are_the_same),
        cmocka_unit_test(test_kernel_variants__labelled_sums_are_the_same),
        cmocka_unit_test(test_kernel_variants__regressors_are_the_same),
        cmocka_unit_test(test_kernel_variants__classifiers_are_the_same),
        cmocka_unit_test(test_kernel_variants__ensembles_are_the_same),
        cmocka_unit_test(test_kernel_variants__recurrent_layers_are_the_same),
        cmocka_unit_test(test_kernel_variants__threads_share_a_layer),
        cmocka_unit_test(test_kernel_variants__powers_are_the_same),
        cmocka_unit_test(test_kernel_variants__threads_share_an_input),
        cmocka_unit_test(test_kernel_variants__quantizing_is_the_same),
        cmocka_unit_test(test_kernel_variants__integer_products_are_the_same),
        cmocka_unit_test(test_kernel_variants__integer_convolutions_are_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
