/* ngram.c - TfIdfVectorizer: counts how often each n-gram of a pool occurs, also with gaps between its items. The pool
 * is stored as a tree: a path of items from the root is an n-gram, or a prefix of longer ones. */
#include "kernel/core/ml.h"

#include <math.h>

typedef enum weighing { TF, IDF, TFIDF, WEIGHING_COUNT } weighing;

typedef struct gram_params {
    uint64_t rows, items, columns; /* rows and items per row of the input; columns of the output */
    int64_t shortest, longest, gap;
    weighing how;
    onxi_ml_numbers weights;
    onxi_ml_index names; /* index of the items of the pool */
    bool texts;
    struct edge { /* of the tree; node 0 is the root, and edge i leads to node i + 1 */
        uint32_t from, name;
    } * edges;
    onxi_table table; /* hash table of the edges that do not begin at the root */
    uint32_t *first;  /* per name: the root's child for it; 0: none */
    bool *goes_on;    /* per node: it has children */
    uint32_t node_count;
    int64_t *column;  /* per node: the output column of its n-gram; -1: the node is not an n-gram */
    bool all_columns; /* compute columns with count 0 as well: with an infinite or NaN weight they are not 0 */
} gram_params;

/* For one row: the count of each output column, and the columns whose count is not 0. */
typedef struct tally {
    double *counts;
    uint64_t *places, place_count;
} tally;

/* ---- the tree ---- */

static uint32_t hash_edge(const gram_params *q, uint32_t from, uint32_t name)
{
    return onxi_table_hash_word(&q->table, (uint64_t)from << 32 | name);
}

/* The child of node `from` for the item; 0: there is none. */
static inline uint32_t follow(const gram_params *q, uint32_t from, uint32_t name)
{
    if (name == ONXI_ML_NOWHERE || !q->goes_on[from])
        return 0;
    if (!from)
        return q->first[name];
    uint32_t hash = hash_edge(q, from, name);
    ONXI_TABLE_EACH (&q->table, hash, i)
        if (q->edges[i].from == from && q->edges[i].name == name)
            return i + 1;
    return 0;
}

/* The child of node `from` for the item, added if there is none; 0: out of memory. */
static uint32_t add_item(gram_params *q, uint32_t from, uint32_t name)
{
    uint32_t to = follow(q, from, name);
    if (to || (from && !onxi_table_add(&q->table, hash_edge(q, from, name), q->node_count)))
        return to;
    q->goes_on[from] = true;
    if (!from)
        q->first[name] = q->node_count + 1;
    q->edges[q->node_count++] = (struct edge){ from, name };
    q->column[q->node_count] = -1;
    return q->node_count;
}

typedef struct pool {
    const int64_t *words;
    const onx_bytes *texts;
    uint32_t count;
} pool;

static uint32_t name_of(const gram_params *q, const pool *from, uint32_t i)
{
    return from->texts ? onxi_ml_find_text(&q->names, onx_view(from->texts[i]))
                       : onxi_ml_find_word(&q->names, (uint64_t)from->words[i]);
}

/* Adds items first .. end - 1 of the pool: n-grams of `size` items. *next: the number of n-grams before them. */
static onx_status add_grams(const onx_prepare *p, gram_params *q, const pool *from, uint32_t first, uint32_t end,
                            int64_t size, const int64_t *columns, uint32_t column_count, uint32_t *next)
{
    if ((end - first) % size)
        return onx_prepare_fail(p, ONX_E_INVALID, "%u items of the pool do not make up %lld-grams", end - first,
                                (long long)size);
    uint32_t count = (uint32_t)((end - first) / size);
    if (count > column_count - *next)
        return onx_prepare_fail(p, ONX_E_INVALID, "the pool has more n-grams than the %u elements of ngram_indexes",
                                column_count);
    for (uint32_t g = 0; g < count && size >= q->shortest && size <= q->longest; g++) {
        uint32_t node = 0;
        for (int64_t i = 0; i < size; i++)
            node = add_item(q, node, name_of(q, from, first + g * (uint32_t)size + (uint32_t)i));
        q->column[node] = columns[*next + g];
    }
    *next += count;
    return ONX_OK;
}

static onx_status read_pool(const onx_prepare *p, gram_params *q, pool *from)
{
    uint32_t ints, texts;
    from->words = onx_prepare_ints(p, "pool_int64s", &ints);
    from->texts = onxi_ml_texts_of(p, "pool_strings", &texts);
    q->texts = p->inputs[0]->dtype == ONX_STRING;
    from->count = ints + texts;
    if ((q->texts ? ints : texts) || !from->count || from->count >= UINT32_MAX / 4)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is %s, pool_int64s has %u elements and pool_strings %u",
                                onx_dtype_name(p->inputs[0]->dtype), ints, texts);
    if (!texts)
        from->texts = NULL;
    q->table = onxi_table_in_arena(p->arena);
    q->edges = onxi_arena_array(p->arena, from->count, sizeof *q->edges);
    q->column = ONXI_ARRAY(p->arena, int64_t, from->count + 1u);
    q->first = ONXI_ARRAY(p->arena, uint32_t, from->count);
    q->goes_on = ONXI_ARRAY(p->arena, bool, from->count + 1u);
    if (!q->edges || !q->column || !q->first || !q->goes_on || !onxi_table_reserve(&q->table, from->count))
        return ONX_E_MEMORY;
    return texts ? onxi_ml_index_texts(p, from->texts, texts, false, &q->names)
                 : onxi_ml_index_words(p, (const uint64_t *)(const void *)from->words, ints, false, &q->names);
}

static onx_status read_tree(const onx_prepare *p, gram_params *q)
{
    pool from = { 0 };
    uint32_t sizes, column_count, next = 0;
    const int64_t *starts = onx_prepare_ints(p, "ngram_counts", &sizes);
    const int64_t *columns = onx_prepare_ints(p, "ngram_indexes", &column_count);
    ONX_TRY(read_pool(p, q, &from));
    for (uint32_t i = 0; i < column_count; i++) {
        if (columns[i] < 0 || columns[i] >= INT64_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "ngram_indexes has the value %lld", (long long)columns[i]);
        q->columns = (uint64_t)columns[i] >= q->columns ? (uint64_t)columns[i] + 1 : q->columns;
    }
    for (uint32_t i = 0; i < sizes; i++) {
        int64_t end = i + 1 < sizes ? starts[i + 1] : from.count;
        if (starts[i] < 0 || end < starts[i] || end > from.count)
            return onx_prepare_fail(p, ONX_E_INVALID, "%u-grams go from %lld to %lld of a pool of %u", i + 1,
                                    (long long)starts[i], (long long)end, from.count);
        ONX_TRY(
            add_grams(p, q, &from, (uint32_t)starts[i], (uint32_t)end, (int64_t)i + 1, columns, column_count, &next));
    }
    return ONX_OK;
}

/* ---- preparing ---- */

static onx_status gram_modes(const onx_prepare *p, gram_params *q)
{
    static const char *const names[] = { "TF", "IDF", "TFIDF" };
    onx_str mode = onx_prepare_text(p, "mode");
    while (q->how < WEIGHING_COUNT && !onx_str_is(mode, names[q->how]))
        q->how++;
    if (q->how == WEIGHING_COUNT)
        return onx_prepare_fail(p, ONX_E_INVALID, "mode is \"%.*s\"", ONX_ARG(mode));
    q->shortest = onx_prepare_int(p, "min_gram_length");
    q->longest = onx_prepare_int(p, "max_gram_length");
    q->gap = onx_prepare_int(p, "max_skip_count");
    if (q->shortest < 1 || q->longest < q->shortest || q->gap < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "n-grams have %lld to %lld items and gaps up to %lld",
                                (long long)q->shortest, (long long)q->longest, (long long)q->gap);
    return ONX_OK;
}

static onx_status gram_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    gram_params *q = ONXI_NEW(p->arena, gram_params);
    uint64_t wanted;
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank > 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has rank %u, expected at most 2", x->rank);
    ONX_TRY(gram_modes(p, q));
    ONX_TRY(read_tree(p, q));
    ONX_TRY(onxi_ml_numbers_of(p, "weights", &q->weights));
    q->rows = x->rank == 2 ? (uint64_t)x->dims[0] : 1;
    q->items = x->rank ? (uint64_t)x->dims[x->rank - 1] : 1;
    if (!onxi_mul_u64(q->rows, q->columns, &wanted) || y->count != wanted || y->dtype != ONX_FLOAT)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output does not have %llu floats for each row",
                                (unsigned long long)q->columns);
    if (q->how != TF && q->weights.count && q->weights.count < q->columns)
        return onx_prepare_fail(p, ONX_E_INVALID, "weights has %llu elements, expected %llu",
                                (unsigned long long)q->weights.count, (unsigned long long)q->columns);
    p->params = q;
    p->rows = q->columns ? q->rows : 0;
    p->grain = 1024 / (q->items + 1) + 1;
    for (uint64_t i = 0; i < q->weights.count; i++)
        q->all_columns |= !isfinite(q->weights.at[i]);
    if (!onxi_add_u64(q->items, q->node_count + 1u, &wanted))
        return ONX_E_LIMIT;
    return onxi_ml_workspace(p, wanted, q->columns);
}

/* ---- running ---- */

static void count_with_gap(const gram_params *q, const uint32_t *names, int64_t shortest, uint64_t step, tally *t)
{
    uint64_t reach = (uint64_t)(shortest - 1) * step; /* the caller has checked that it is below the number of items */
    for (uint64_t start = 0; start + reach < q->items; start++) {
        uint32_t node = 0;
        int64_t size = 1;
        for (uint64_t at = start; at < q->items && size <= q->longest; at += step, size++) {
            node = follow(q, node, names[at]);
            if (!node)
                break;
            if (size < shortest || q->column[node] < 0)
                continue;
            const uint64_t column = (uint64_t)q->column[node];
            t->places[t->place_count] = column; /* one spare entry: repeated columns are written, too */
            t->place_count += t->counts[column]++ == 0;
        }
    }
}

static void count_row(const gram_params *q, const uint32_t *names, tally *t)
{
    int64_t shortest = q->shortest;
    for (int64_t gap = 0; gap <= q->gap; gap++) {
        uint64_t step = (uint64_t)gap + 1, reach;
        if (step > q->items || !onxi_mul_u64((uint64_t)(shortest - 1), step, &reach) || reach >= q->items)
            return; /* wider gaps do not fit either */
        count_with_gap(q, names, shortest, step, t);
        if (shortest == 1 && ++shortest > q->longest) /* single items have no gaps */
            return;
    }
}

static float number_of(const gram_params *q, double count, uint64_t column)
{
    const double weight = q->how != TF && q->weights.count ? q->weights.at[column] : 1;
    return (float)(q->how == IDF ? (count > 0 ? weight : 0) : count * weight);
}

/* Writes a row of the output, and resets the counts to 0. */
static void put_row(const gram_params *q, tally *t, float *y)
{
    memset(y, 0, q->columns * sizeof *y);
    for (uint64_t i = 0; q->all_columns && i < q->columns; i++)
        y[i] = number_of(q, t->counts[i], i);
    for (uint64_t i = 0; i < t->place_count; i++) {
        const uint64_t at = t->places[i];
        y[at] = number_of(q, t->counts[at], at);
        t->counts[at] = 0;
    }
}

static onx_status gram_run(onx_work *work, uint64_t first, uint64_t last)
{
    const gram_params *q = work->params;
    const onx_value *x = work->inputs[0];
    float *y = work->outputs[0]->data;
    tally t = { .counts = work->thread_workspace };
    t.places = (uint64_t *)(void *)(t.counts + q->columns);
    uint32_t *names = (uint32_t *)(void *)(t.places + q->node_count + 1);
    memset(t.counts, 0, q->columns * sizeof *t.counts);
    for (uint64_t row = first; row < last; row++) {
        for (uint64_t i = 0; i < q->items; i++)
            names[i] = q->texts ? onxi_ml_find_text(&q->names, ((const onx_str *)x->data)[row * q->items + i])
                                : onxi_ml_find_word(&q->names, (uint64_t)onxi_index(x, row * q->items + i));
        t.place_count = 0;
        count_row(q, names, &t);
        put_row(q, &t, y + row * q->columns);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_text_ngram[] = { { .op = "TfIdfVectorizer",
                                                 .since = 9,
                                                 .dtypes = ONX_DTYPE_BIT(ONX_STRING) | ONX_DTYPE_BIT(ONX_INT32) |
                                                           ONX_DTYPE_BIT(ONX_INT64),
                                                 .prepare = gram_prepare,
                                                 .run = gram_run },
                                               { 0 } };
