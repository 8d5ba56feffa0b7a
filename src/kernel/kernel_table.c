/* kernel_table.c - the list of kernel tables, and which rows serve an operator. A new file of rows is one line here. */
#include "kernel/kernel.h"

#include <stdlib.h>

#define TABLES(TABLE)                                                                                                  \
    TABLE(conv)                                                                                                        \
    TABLE(conv_transpose)                                                                                              \
    TABLE(pool)                                                                                                        \
    TABLE(elementwise)                                                                                                 \
    TABLE(unary)                                                                                                       \
    TABLE(variadic)                                                                                                    \
    TABLE(matmul)                                                                                                      \
    TABLE(normalize)                                                                                                   \
    TABLE(softmax)                                                                                                     \
    TABLE(reduce)                                                                                                      \
    TABLE(layout)                                                                                                      \
    TABLE(pad)                                                                                                         \
    TABLE(slice)                                                                                                       \
    TABLE(select)                                                                                                      \
    TABLE(scatter)                                                                                                     \
    TABLE(rearrange)                                                                                                   \
    TABLE(cumulate)                                                                                                    \
    TABLE(sort)                                                                                                        \
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

#define FAST_TABLES(TABLE) TABLE(dnnl_conv) TABLE(dnnl_matmul) TABLE(dnnl_pool)

#define DECLARE(name) extern const onx_kernel onxi_kernels_##name[];
#define LIST(name)    onxi_kernels_##name,
TABLES(DECLARE)
#ifdef ONX_WITH_DNNL
FAST_TABLES(DECLARE)
#endif

const onx_kernel *const onxi_kernel_tables[] = { TABLES(LIST)
#ifdef ONX_WITH_DNNL
                                                     FAST_TABLES(LIST)
#endif
                                                         NULL };

/* Rows sorted by operator, then newest version first, then preference; the table has the first row of each operator. */
struct onxi_kernel_index {
    const onx_kernel **rows;
    uint32_t row_count;
    onxi_table table;
};

static onx_str row_domain(const onx_kernel *k)
{
    return onxi_domain_plain(onx_str_of(k->domain ? k->domain : ""));
}

static int compare_text(onx_str a, onx_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static int compare_rows(const void *pa, const void *pb)
{
    const onx_kernel *a = *(const onx_kernel *const *)pa, *b = *(const onx_kernel *const *)pb;
    int c = compare_text(row_domain(a), row_domain(b));
    if (!c)
        c = strcmp(a->op, b->op);
    if (!c)
        c = (a->since < b->since) - (a->since > b->since);
    if (!c)
        c = (a->preference < b->preference) - (a->preference > b->preference);
    return c ? c : (a > b) - (a < b); /* a fixed order, so that plans do not depend on qsort */
}

static uint32_t hash_name(const onxi_kernel_index *index, onx_str domain, onx_str op)
{
    return onxi_table_hash_texts(&index->table, op, domain, onx_str_make("", 0));
}

onx_status onxi_kernel_index_new(onx_arena *arena, const onx_kernel *own, bool plain, const onxi_kernel_index **out)
{
    uint32_t count = 0;
    for (const onx_kernel *k = own; k && k->op; k++)
        count++;
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            count++;
    onxi_kernel_index *index = ONXI_NEW(arena, onxi_kernel_index);
    if (!index || !(index->rows = (const onx_kernel **)ONXI_ARRAY(arena, void *, count + 1u)))
        return ONX_E_MEMORY;
    index->table = onxi_table_in_arena(arena);
    if (!onxi_table_reserve(&index->table, count))
        return ONX_E_MEMORY;
    for (const onx_kernel *k = own; k && k->op; k++)
        index->rows[index->row_count++] = k;
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            if (!plain || onxi_kernel_is_plain(k))
                index->rows[index->row_count++] = k;
    if (index->row_count)
        qsort(index->rows, index->row_count, sizeof *index->rows, compare_rows);
    for (uint32_t i = 0; i < index->row_count; i++) {
        const onx_kernel *k = index->rows[i], *before = i ? index->rows[i - 1] : NULL;
        if (before && strcmp(before->op, k->op) == 0 && onx_str_equal(row_domain(before), row_domain(k)))
            continue;
        if (!onxi_table_add(&index->table, hash_name(index, row_domain(k), onx_str_of(k->op)), i))
            return ONX_E_MEMORY;
    }
    *out = index;
    return ONX_OK;
}

const onx_kernel *const *onxi_kernel_find(const onxi_kernel_index *index, onx_str domain, onx_str op, int32_t since,
                                          uint32_t *count)
{
    *count = 0;
    domain = onxi_domain_plain(domain);
    uint32_t hash = hash_name(index, domain, op);
    ONXI_TABLE_EACH (&index->table, hash, found) {
        uint32_t first = found;
        const onx_kernel *k = index->rows[first];
        if (!onx_str_is(op, k->op) || !onx_str_equal(domain, row_domain(k)))
            continue;
        uint32_t end = first;
        while (end < index->row_count && strcmp(index->rows[end]->op, k->op) == 0 &&
               onx_str_equal(row_domain(index->rows[end]), domain))
            end++;
        while (first < end && index->rows[first]->since > since)
            first++;
        uint32_t last = first;
        while (last < end && index->rows[last]->since == index->rows[first]->since)
            last++;
        *count = last - first;
        return *count ? &index->rows[first] : NULL;
    }
    return NULL;
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
