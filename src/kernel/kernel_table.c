/* kernel_table.c - the list of kernel tables, and the selection of rows for an operator. A new file of rows is one line
 * here. */
#include "kernel/kernel.h"

#define TABLES(TABLE)                                                                                                  \
    TABLE(conv)                                                                                                        \
    TABLE(conv_transpose)                                                                                              \
    TABLE(pool_bytes)                                                                                                  \
    TABLE(pool)                                                                                                        \
    TABLE(elementwise)                                                                                                 \
    TABLE(unary)                                                                                                       \
    TABLE(variadic)                                                                                                    \
    TABLE(matmul)                                                                                                      \
    TABLE(grouped_product)                                                                                             \
    TABLE(layer_norm)                                                                                                  \
    TABLE(normalize)                                                                                                   \
    TABLE(softmax)                                                                                                     \
    TABLE(reduce)                                                                                                      \
    TABLE(layout)                                                                                                      \
    TABLE(depth)                                                                                                       \
    TABLE(reshape)                                                                                                     \
    TABLE(turn)                                                                                                        \
    TABLE(pad)                                                                                                         \
    TABLE(slice)                                                                                                       \
    TABLE(select)                                                                                                      \
    TABLE(scatter)                                                                                                     \
    TABLE(rearrange)                                                                                                   \
    TABLE(cumulate)                                                                                                    \
    TABLE(topk)                                                                                                        \
    TABLE(unique)                                                                                                      \
    TABLE(predicate)                                                                                                   \
    TABLE(quantize)                                                                                                    \
    TABLE(qlinear)                                                                                                     \
    TABLE(resize)                                                                                                      \
    TABLE(sample)                                                                                                      \
    TABLE(region)                                                                                                      \
    TABLE(fold)                                                                                                        \
    TABLE(deform)                                                                                                      \
    TABLE(algebra)                                                                                                     \
    TABLE(einsum)                                                                                                      \
    TABLE(constant)                                                                                                    \
    TABLE(cast)                                                                                                        \
    TABLE(control)                                                                                                     \
    TABLE(loop)                                                                                                        \
    TABLE(random)                                                                                                      \
    TABLE(rnn)                                                                                                         \
    TABLE(scan)                                                                                                        \
    TABLE(sequence)                                                                                                    \
    TABLE(text)                                                                                                        \
    TABLE(text_ngram)                                                                                                  \
    TABLE(text_normalize)                                                                                              \
    TABLE(text_regex)                                                                                                  \
    TABLE(ml_tree)                                                                                                     \
    TABLE(ml_linear)                                                                                                   \
    TABLE(ml_svm)                                                                                                      \
    TABLE(ml_feature)                                                                                                  \
    TABLE(ml_label)                                                                                                    \
    TABLE(ml_map)                                                                                                      \
    TABLE(attention)                                                                                                   \
    TABLE(rotary)                                                                                                      \
    TABLE(dft)                                                                                                         \
    TABLE(linear_attention)                                                                                            \
    TABLE(flex_attention)                                                                                              \
    TABLE(optimizer)                                                                                                   \
    TABLE(image)

#define FAST_TABLES(TABLE)                                                                                             \
    TABLE(dnnl_conv_gradient) TABLE(dnnl_conv) TABLE(dnnl_matmul) TABLE(dnnl_pool) TABLE(dnnl_layout)

/* Tables that builds for browsers, which have no room for them, leave out. */
#if ONXI_PLATFORM_ROOMY
#define ROOMY_TABLES(TABLE, level) TABLE(simd_dots##level) TABLE(simd_norm_pixels##level) TABLE(simd_reorder##level)
#else
#define ROOMY_TABLES(TABLE, level)
#endif

/* Compiled once per instruction set (simd/simd.h). */
#define SIMD_TABLES(TABLE, level)                                                                                      \
    TABLE(simd_unary##level)                                                                                           \
    TABLE(simd_binary##level)                                                                                          \
    TABLE(simd_power##level)                                                                                           \
    TABLE(simd_cast##level)                                                                                            \
    TABLE(simd_cast_types##level)                                                                                      \
    TABLE(simd_types##level)                                                                                           \
    TABLE(simd_classes##level)                                                                                         \
    TABLE(simd_softmax##level)                                                                                         \
    TABLE(simd_softmax_wide##level)                                                                                    \
    TABLE(simd_norm##level)                                                                                            \
    TABLE(simd_norm_channels##level)                                                                                   \
    TABLE(simd_channels##level)                                                                                        \
    TABLE(simd_reduce##level)                                                                                          \
    TABLE(simd_arg##level)                                                                                             \
    TABLE(simd_reduce_types##level)                                                                                    \
    TABLE(simd_topk##level)                                                                                            \
    TABLE(simd_rnn##level)                                                                                             \
    TABLE(simd_product##level)                                                                                         \
    TABLE(simd_einsum##level)                                                                                          \
    TABLE(simd_winograd##level)                                                                                        \
    TABLE(simd_conv##level)                                                                                            \
    TABLE(simd_groups##level)                                                                                          \
    TABLE(simd_three##level)                                                                                           \
    TABLE(simd_few##level)                                                                                             \
    TABLE(simd_lines##level)                                                                                           \
    TABLE(simd_planes##level)                                                                                          \
    TABLE(simd_pool##level)                                                                                            \
    TABLE(simd_pool_channels##level)                                                                                   \
    TABLE(simd_pool_whole##level)                                                                                      \
    TABLE(simd_pool_types##level)                                                                                      \
    TABLE(simd_unfold##level)                                                                                          \
    TABLE(simd_direct##level)                                                                                          \
    ROOMY_TABLES(TABLE, level)                                                                                         \
    TABLE(simd_spread##level)                                                                                          \
    TABLE(simd_resize##level)                                                                                          \
    TABLE(simd_sample##level)                                                                                          \
    TABLE(simd_lrn##level)                                                                                             \
    TABLE(simd_quantize##level)                                                                                        \
    TABLE(simd_quantize_each##level)                                                                                   \
    TABLE(simd_quantize_alone##level)                                                                                  \
    TABLE(simd_attention##level)                                                                                       \
    TABLE(simd_attention_nodes##level)                                                                                 \
    TABLE(simd_rotary##level)
/* For the instruction sets after v4, the widest first. A session uses the rows of each one that it has. */
#define BYTE_TABLES(TABLE, level)                                                                                      \
    TABLE(byte_product##level)                                                                                         \
    TABLE(byte_both##level)                                                                                            \
    TABLE(byte_conv##level)                                                                                            \
    TABLE(byte_alone##level)
#define HALF_TABLES(TABLE, level) TABLE(half_product##level)
#ifdef ONX_WITH_X86_LEVELS
#define LEVEL_TABLES(TABLE)                                                                                            \
    SIMD_TABLES(TABLE, _base)                                                                                          \
    SIMD_TABLES(TABLE, _v3)                                                                                            \
    SIMD_TABLES(TABLE, _v4)                                                                                            \
    BYTE_TABLES(TABLE, _amx)                                                                                           \
    TABLE(amx_product_amx)                                                                                             \
    HALF_TABLES(TABLE, _amx)                                                                                           \
    HALF_TABLES(TABLE, _bf16)                                                                                          \
    TABLE(simd_unfold_amx)                                                                                             \
    TABLE(simd_unfold_bf16)                                                                                            \
    BYTE_TABLES(TABLE, _vnni)
#else
#define LEVEL_TABLES(TABLE) SIMD_TABLES(TABLE, _base)
#endif

#define DECLARE(name) extern const onx_kernel onxi_kernels_##name[];
#define LIST(name)    onxi_kernels_##name,
/* For domains with a folder of their own, CMakeLists.txt writes lines KERNELS(table). */
#define KERNELS(name) DECLARE(name)
#include "kernel_domains.inc"
#undef KERNELS
#define KERNELS(name) LIST(name)
TABLES(DECLARE)
LEVEL_TABLES(DECLARE)
#ifdef ONX_WITH_DNNL
FAST_TABLES(DECLARE)
#endif

const onx_kernel *const onxi_kernel_tables[] = { TABLES(LIST) LEVEL_TABLES(LIST)
#include "kernel_domains.inc"
#ifdef ONX_WITH_DNNL
                                                     FAST_TABLES(LIST)
#endif
                                                         NULL };

/* The built-in rows by operator: those of operator `id` are rows[first[id]] to rows[first[id + 1] - 1], sorted. */
struct onxi_kernel_index {
    const onx_kernel *own; /* rows of the caller; NULL: none */
    const onx_kernel **rows;
    uint32_t first[ONXI_ID_END + 1];
};

static onx_str row_domain(const onx_kernel *k)
{
    return onxi_domain_plain(onx_str_of(k->domain ? k->domain : ""));
}

static onxi_op_id row_operator(const onx_kernel *k)
{
    return onxi_operator_id(onxi_operator_find(row_domain(k), onx_str_of(k->op)));
}

static bool same_operator(const onx_kernel *a, const onx_kernel *b)
{
    return a->domain == b->domain && (a->op == b->op || strcmp(a->op, b->op) == 0);
}

/* Must `a` be sorted before `b`, which precedes it in the tables? The newest version is first, then the highest
 * preference; otherwise the order of the tables is kept. */
static bool goes_before(const onx_kernel *a, const onx_kernel *b)
{
    return a->since != b->since ? a->since > b->since : a->preference > b->preference;
}

/* Inserts a row in sorted order. An operator has few rows. */
static void insert(const onx_kernel **rows, uint32_t count, const onx_kernel *k)
{
    while (count && goes_before(k, rows[count - 1])) {
        rows[count] = rows[count - 1];
        count--;
    }
    rows[count] = k;
}

static bool is_taken(const onx_kernel *k, bool plain, unsigned isa)
{
    return plain ? onxi_kernel_is_plain(k) : onxi_isa_takes(isa, k);
}

onx_status onxi_kernel_index_new(onx_arena *arena, const onx_kernel *own, bool plain, unsigned isa,
                                 const onxi_kernel_index **out)
{
    uint32_t count = 0;
    isa = onxi_isa_of(isa);
    onxi_kernel_index *index = ONXI_NEW(arena, onxi_kernel_index);
    uint32_t *filled = ONXI_ARRAY(arena, uint32_t, ONXI_ID_END);
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            count++;
    uint16_t *ids = ONXI_ARRAY(arena, uint16_t, count + 1u);
    if (!index || !filled || !ids || !(index->rows = (const onx_kernel **)ONXI_ARRAY(arena, void *, count + 1u)))
        return ONX_E_MEMORY;
    index->own = own;
    count = 0;
    for (size_t t = 0; onxi_kernel_tables[t]; t++) {
        const onx_kernel *before = NULL; /* the row whose operator was looked up last: many have the one before them */
        uint16_t id = 0;
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++) {
            if (!is_taken(k, plain, isa))
                continue;
            if (!before || !same_operator(k, before))
                id = (uint16_t)row_operator(k);
            before = k;
            ids[count++] = id;
            index->first[id + 1]++;
        }
    }
    for (uint32_t id = 0; id < ONXI_ID_END; id++)
        index->first[id + 1] += index->first[id];
    count = 0;
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            if (is_taken(k, plain, isa)) {
                const uint16_t id = ids[count++];
                insert(index->rows + index->first[id], filled[id]++, k);
            }
    *out = index;
    return ONX_OK;
}

/* ---- the rows that may run a node ---- */

typedef struct candidates {
    const onx_kernel **rows;
    uint32_t count;
    uint32_t start; /* index of the first candidate from the current source */
} candidates;

/* Adds a row of the current source if its version is not above `since`. Rows of older versions from this source are
 * removed. */
static void add_candidate(candidates *c, const onx_kernel *k, int32_t since)
{
    if (k->since > since)
        return;
    if (c->count > c->start && c->rows[c->start]->since != k->since) {
        if (c->rows[c->start]->since > k->since)
            return;
        c->count = c->start;
    }
    insert(c->rows + c->start, c->count - c->start, k);
    c->count++;
}

onx_status onxi_kernel_candidates(const onxi_kernel_index *index, onx_arena *arena, const onxi_kernel_wanted *want,
                                  const onx_kernel *const **out, uint32_t *count_out)
{
    /* Rows without an operator belong to the domain onx. */
    const bool some = want->op || want->by_rule;
    const uint32_t first = some ? index->first[want->op] : 0, end = some ? index->first[want->op + 1] : 0;
    size_t room = end - first;
    for (const onx_kernel *k = index->own; k && k->op; k++)
        room++;
    for (const onx_kernel *k = want->registered; k && k->op; k++)
        room++;
    *out = NULL;
    *count_out = 0;
    if (!room)
        return ONX_OK;
    candidates c = { .rows = (const onx_kernel **)ONXI_ARRAY(arena, void *, room) };
    if (!c.rows)
        return ONX_E_MEMORY;
    for (const onx_kernel *k = index->own; k && k->op; k++)
        if (onx_str_is(want->name, k->op) && onx_str_equal(want->domain, row_domain(k)))
            add_candidate(&c, k, want->since);
    c.start = c.count;
    for (const onx_kernel *k = want->registered; k && k->op; k++)
        add_candidate(&c, k, want->since);
    c.start = c.count;
    for (uint32_t i = first; i < end; i++)
        if (want->op || onx_str_is(want->name, index->rows[i]->op))
            add_candidate(&c, index->rows[i], want->since);
    *out = c.rows;
    *count_out = c.count;
    return ONX_OK;
}

bool onxi_kernel_suits(const onx_kernel *k, const onx_prepare *p)
{
    if (!k->dtypes)
        return true;
    const onx_value *v = NULL;
    if (k->dtype_from >= 0)
        v = (uint32_t)k->dtype_from < p->input_count ? p->inputs[k->dtype_from] : NULL;
    else if ((uint32_t)(-1 - k->dtype_from) < p->output_count)
        v = p->outputs[-1 - k->dtype_from];
    return v && v->kind == ONX_VALUE_TENSOR && v->dtype < 32 && (k->dtypes & ONX_DTYPE_BIT(v->dtype));
}
