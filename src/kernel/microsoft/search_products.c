/* search_products.c - cross-attention products (decoder queries times encoder keys) as an output of a search: keeps
 * those of each run and collects them along the beams that each sequence has passed through. */
#include "kernel/microsoft/search.h"

enum { CROSS = 3 };

static bool is_wanted(const onx_work *work, const onxi_search *q)
{
    return q->crossed && work->prepared->output_count > CROSS && work->outputs[CROSS];
}

onx_status onxi_search_begin_products(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    onxi_search_products *t = &r->products;
    const onx_value *wanted = onxi_search_operand(work, q->in.heads);
    uint64_t count, bytes;
    if (!is_wanted(work, q))
        return ONX_OK;
    if (wanted && (wanted->rank != 2 || wanted->dims[1] != 2))
        return onx_work_fail(work, ONX_E_INVALID, "cross_qk_layer_head is not a list of pairs of a layer and a head");
    t->wanted = wanted ? wanted->data : NULL;
    t->pairs = wanted ? (uint64_t)wanted->dims[0] : q->crossed * (uint64_t)q->heads;
    for (uint64_t i = 0; wanted && i < t->pairs; i++)
        if (t->wanted[2 * i] < 0 || (uint32_t)t->wanted[2 * i] >= q->crossed || t->wanted[2 * i + 1] < 0 ||
            t->wanted[2 * i + 1] >= q->heads)
            return onx_work_fail(work, ONX_E_INVALID, "cross_qk_layer_head asks for head %d of layer %d",
                                 t->wanted[2 * i + 1], t->wanted[2 * i]);
    t->kept = onx_arena_alloc(r->arena, (size_t)r->longest * sizeof *t->kept);
    if (!onxi_mul_u64(r->rows + r->batch * (r->beams + 1), r->longest, &count) ||
        !onxi_mul_u64(count, sizeof **t->trail, &bytes) || bytes > SIZE_MAX / 2)
        return onx_work_fail(work, ONX_E_LIMIT, "%llu rows of %llu tokens are too many", (unsigned long long)r->rows,
                             (unsigned long long)r->longest);
    for (uint32_t i = 0; i < 2; i++)
        t->trail[i] = onx_arena_alloc(r->arena, (size_t)(r->rows * r->longest) * sizeof **t->trail);
    uint32_t *trails = onx_arena_alloc(r->arena, (size_t)bytes);
    if (!t->kept || !t->trail[0] || !t->trail[1] || !trails)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < r->batch * (r->beams + 1); i++)
        r->ended[i].trail = trails + i * r->longest;
    return ONX_OK;
}

onx_status onxi_search_keep_products(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    onxi_search_products *t = &r->products;
    onx_value **made = r->out + 1 + q->layers;
    uint64_t count;
    for (uint32_t i = 0; i < q->crossed; i++) {
        const onx_value *v = made[i];
        if (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT || v->rank != 4 || v->dims[0] != (int64_t)r->rows ||
            v->dims[1] != q->heads || v->dims[2] != 1 || (i && v->dims[3] != made[0]->dims[3]) ||
            (t->runs && (uint64_t)v->dims[3] != t->frames))
            return onx_work_fail(
                work, ONX_E_INVALID,
                "output %u of the decoder does not have the attention scores of %llu queries of %lld heads",
                1 + q->layers + i, (unsigned long long)r->rows, (long long)q->heads);
    }
    if (!t->kept)
        return ONX_OK;
    t->frames = (uint64_t)made[0]->dims[3];
    if (!onxi_mul_u64(r->rows, t->pairs, &count) || !onxi_mul_u64(count, t->frames, &count) || count > SIZE_MAX / 8)
        return onx_work_fail(work, ONX_E_LIMIT,
                             "the attention scores of %llu rows, %llu heads and %llu frames are too large",
                             (unsigned long long)r->rows, (unsigned long long)t->pairs, (unsigned long long)t->frames);
    float *to = t->kept[t->runs++] = onx_arena_alloc(r->arena, (size_t)count * sizeof(float) + 1);
    if (!to)
        return ONX_E_MEMORY;
    const uint64_t heads = (uint64_t)q->heads;
    for (uint64_t row = 0; row < r->rows; row++)
        for (uint64_t i = 0; i < t->pairs && t->frames; i++, to += t->frames) {
            const uint64_t layer = t->wanted ? (uint64_t)t->wanted[2 * i] : i / heads,
                           head = t->wanted ? (uint64_t)t->wanted[2 * i + 1] : i % heads;
            memcpy(to, (const float *)made[layer]->data + (row * heads + head) * t->frames,
                   (size_t)t->frames * sizeof *to);
        }
    return ONX_OK;
}

void onxi_search_move_products(onxi_search_run *r)
{
    onxi_search_products *t = &r->products;
    for (uint64_t row = 0; t->kept && row < r->rows; row++) {
        const uint64_t from = r->from[row], runs = t->runs;
        uint32_t *to = t->trail[1] + row * r->longest;
        if (!runs)
            continue;
        memcpy(to, t->trail[0] + from * r->longest, (size_t)(runs - 1) * sizeof *to);
        to[runs - 1] = (uint32_t)from;
    }
    uint32_t *last = t->trail[0];
    t->trail[0] = t->trail[1];
    t->trail[1] = last;
}

onx_status onxi_search_give_products(onx_work *work, const onxi_search *q, const onxi_search_run *r)
{
    const onxi_search_products *t = &r->products;
    if (!is_wanted(work, q))
        return ONX_OK;
    const int64_t dims[] = { (int64_t)r->batch, (int64_t)r->wanted, (int64_t)t->pairs, (int64_t)t->runs,
                             (int64_t)t->frames };
    onx_value *y = work->outputs[CROSS];
    ONX_TRY(onx_value_reset(y, ONX_FLOAT, 5, dims));
    float *to = y->data;
    for (uint64_t i = 0; i < r->batch * r->wanted && t->frames; i++) {
        const onxi_search_beam *ended = &r->ended[i / r->wanted * (r->beams + 1) + i % r->wanted];
        for (uint64_t pair = 0; pair < t->pairs; pair++)
            for (uint64_t run = 0; run < t->runs; run++, to += t->frames)
                if (run < ended->runs)
                    memcpy(to, t->kept[run] + (ended->trail[run] * t->pairs + pair) * t->frames,
                           (size_t)t->frames * sizeof *to);
                else
                    memset(to, 0, (size_t)t->frames * sizeof *to);
    }
    return ONX_OK;
}
