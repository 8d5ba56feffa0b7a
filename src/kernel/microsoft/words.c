/* words.c - kernels of com.microsoft on words and tokens given as numbers. */
#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* ---- WordConvEmbedding ---- */

typedef struct embedding {
    uint64_t words, length, filters, window, size, characters;
} embedding;

static bool is_other(const onx_prepare *p, const char *name, uint64_t size)
{
    return onx_prepare_given(p, name) && (uint64_t)onx_prepare_int(p, name) != size;
}

static onx_status embedding_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->inputs[2], *c = p->inputs[3];
    embedding *q = ONXI_NEW(p->arena, embedding);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank != 2 || w->rank != 4 || c->rank != 2 || w->dims[1] != 1 || w->dims[3] != c->dims[1] ||
        b->count != (uint64_t)w->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "the filters, their bias, and the characters do not fit");
    *q = (embedding){ (uint64_t)x->dims[0], (uint64_t)x->dims[1], (uint64_t)w->dims[0],
                      (uint64_t)w->dims[2], (uint64_t)w->dims[3], (uint64_t)c->dims[0] };
    if (is_other(p, "embedding_size", q->filters) || is_other(p, "conv_window_size", q->window) ||
        is_other(p, "char_embedding_size", q->size) || q->window < 1 || q->window > q->length)
        return onx_prepare_fail(p, ONX_E_INVALID, "attributes, or words of %llu characters, do not fit windows of %llu",
                                (unsigned long long)q->length, (unsigned long long)q->window);
    p->params = q;
    p->rows = p->outputs[0]->count ? q->words : 0;
    return ONX_OK;
}

/* A row of work is a word; a word that begins with 0 is empty. */
static onx_status embedding_run(onx_work *work, uint64_t first, uint64_t last)
{
    const embedding *q = work->params;
    const float *w = work->inputs[1]->data, *b = work->inputs[2]->data, *c = work->inputs[3]->data;
    for (uint64_t word = first; word < last; word++) {
        const int32_t *x = (const int32_t *)work->inputs[0]->data + word * q->length;
        float *y = (float *)work->outputs[0]->data + word * q->filters;
        uint64_t length = 0;
        for (uint64_t i = 0; i < q->length; i++) {
            if (x[i] < 0 || (uint64_t)x[i] >= q->characters)
                return onx_work_fail(work, ONX_E_INVALID, "character %d is outside of %llu characters", x[i],
                                     (unsigned long long)q->characters);
            length += x[i] > 0;
        }
        const uint64_t used = length > q->window ? length : q->window, windows = x[0] > 0 ? used - q->window + 1 : 0;
        for (uint64_t f = 0; f < q->filters; f++) {
            float most = windows ? -1e12f : 0;
            for (uint64_t i = 0; i < windows; i++) {
                float sum = b[f];
                for (uint64_t k = 0; k < q->window; k++)
                    sum += onxi_ms_dot(w + (f * q->window + k) * q->size, c + (uint64_t)x[i + k] * q->size, q->size);
                sum = tanhf(sum);
                most = sum > most ? sum : most;
            }
            y[f] = most;
        }
    }
    return ONX_OK;
}

/* ---- NGramRepeatBlock ---- */

static onx_status ngram_prepare(onx_prepare *p)
{
    const onx_value *ids = p->inputs[0], *scores = p->inputs[1];
    int64_t *size = ONXI_NEW(p->arena, int64_t);
    if (!size)
        return ONX_E_MEMORY;
    *size = onx_prepare_int(p, "ngram_size");
    if (*size < 1 || ids->rank != 2 || scores->rank != 2 || ids->dims[0] != scores->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "n-grams of %lld, or tokens and scores, do not fit",
                                (long long)*size);
    p->params = size;
    p->rows = scores->count ? (uint64_t)scores->dims[0] : 0;
    return ONX_OK;
}

/* A row of work is a sequence. */
static onx_status ngram_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *ids = work->inputs[0], *scores = work->inputs[1];
    const int64_t n = *(const int64_t *)work->params, length = ids->dims[1], words = scores->dims[1];
    for (uint64_t row = first; row < last; row++) {
        const int64_t *x = (const int64_t *)ids->data + row * (uint64_t)length;
        float *y = (float *)work->outputs[0]->data + row * (uint64_t)words;
        memcpy(y, (const float *)scores->data + row * (uint64_t)words, (uint64_t)words * sizeof *y);
        for (int64_t i = 0; n <= length && i + n <= length; i++) {
            if (memcmp(x + i, x + length - n + 1, (uint64_t)(n - 1) * sizeof *x))
                continue;
            const int64_t token = x[i + n - 1];
            if (token < 0 || token >= words)
                return onx_work_fail(work, ONX_E_INVALID, "token %lld is outside of a vocabulary of %lld",
                                     (long long)token, (long long)words);
            y[token] = -INFINITY;
        }
    }
    return ONX_OK;
}

/* ---- BifurcationDetector ---- */

static onx_status bifurcation_prepare(onx_prepare *p)
{
    int64_t *q = ONXI_ARRAY(p->arena, int64_t, 2);
    if (!q)
        return ONX_E_MEMORY;
    q[0] = onx_prepare_int(p, "min_ngram_size");
    q[1] = onx_prepare_int(p, "max_ngram_size");
    if (q[0] < 1 || q[1] < q[0] || p->inputs[2]->count < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "n-grams of %lld to %lld, or an empty index, are impossible",
                                (long long)q[0], (long long)q[1]);
    p->params = q;
    return ONX_OK;
}

/* The first position from `from` on where the `count` tokens occur; `length` when there is none. */
static int64_t find(const int64_t *x, int64_t length, int64_t from, const int64_t *what, int64_t count)
{
    for (int64_t i = from; i + count <= length; i++)
        if (!memcmp(x + i, what, (uint64_t)count * sizeof *x))
            return i;
    return length;
}

/* The position in the source after its only occurrence of the last n tokens, for the largest such n; -1: there is
 * none. */
static int64_t suffix(const int64_t *source, int64_t length, const int64_t *tokens, int64_t count, const int64_t *sizes)
{
    int64_t found = -1;
    for (int64_t n = sizes[0]; n <= sizes[1] && n <= count; n++) {
        const int64_t at = find(source, length, 0, tokens + count - n, n);
        if (at == length)
            break;
        found = at + n;
        if (found >= length)
            break;
        if (find(source, length, at + 1, tokens + count - n, n) != length)
            found = -1;
    }
    return found;
}

static onx_status bifurcation_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *source = work->inputs[0], *current = work->inputs[1], *index = work->inputs[2],
                    *predicted = onxi_operand(work->prepared->input_count, work->inputs, 3);
    const int64_t length = (int64_t)source->count, count = (int64_t)current->count, *from = source->data;
    int64_t added = 0;
    (void)first, (void)last;
    if (predicted) {
        const int64_t *guess = predicted->data, start = ((const int64_t *)index->data)[0];
        if (start < 0 || start > length || (int64_t)predicted->count != length + 1 - start)
            return onx_work_fail(work, ONX_E_INVALID, "%llu predictions cannot follow token %lld of %lld",
                                 (unsigned long long)predicted->count, (long long)start, (long long)length);
        while (added < length - start && guess[added] == from[start + added])
            added++;
        added++;
    }
    const int64_t dims[] = { count + added };
    ONX_TRY(onx_value_reset(work->outputs[0], ONX_INT64, 1, dims));
    int64_t *y = work->outputs[0]->data;
    if (count)
        memcpy(y, current->data, (uint64_t)count * sizeof *y);
    if (added)
        memcpy(y + count, predicted->data, (uint64_t)added * sizeof *y);
    ONX_TRY(onx_value_reset(work->outputs[1], ONX_INT64, index->rank, index->dims));
    memset(work->outputs[1]->data, 0, index->count * sizeof *y);
    ((int64_t *)work->outputs[1]->data)[0] = suffix(from, length, y, count + added, work->params);
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_words[] = {
    MS_KERNEL("WordConvEmbedding", .prepare = embedding_prepare, .run = embedding_run),
    MS_KERNEL("NGramRepeatBlock", .prepare = ngram_prepare, .run = ngram_run),
    MS_KERNEL("BifurcationDetector", .prepare = bifurcation_prepare, .run = bifurcation_run,
              .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
