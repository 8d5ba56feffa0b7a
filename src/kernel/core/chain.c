/* chain.c - operators that go element by element, block by block over scratch memory in the first cache. */
#include "kernel/core/chain.h"

/* Elements of a block; bytes that intermediate results and operands of a block may take together. */
enum { BLOCK_LEAST = 256, BLOCK_MOST = 2048, CACHE = 20 << 10 };

/* An operator of the chain, with what its row does to elements. */
typedef struct link {
    onxi_element element;
    int32_t inputs[ONXI_ELEMENT_INPUTS]; /* as in onxi_chain_op */
    bool in_place;                       /* the output may overwrite an input of its width */
    uint32_t place;                      /* where the result is stored, if it is intermediate */
} link;

typedef struct chain_params {
    link *links;
    uint32_t link_count;
    uint64_t count, block;     /* elements; of a block, */
    uint64_t piece, pitch;     /* of a piece of it, which is in the first cache; bytes from a place to the next */
    const onxi_chain_end *end; /* NULL: none */
    uint64_t line, end_width;  /* of the end: elements of a line, bytes of its result */
    uint64_t lines_at;         /* where the lines of a block are in the workspace, if that is no place */
    uint64_t end_workspace;    /* where that of the end begins in the workspace of a thread */
} chain_params;

bool onxi_element_is(const onx_kernel *k, uint32_t input_count)
{
    return k->run == onxi_unary_run || (k->run == onxi_binary_run && input_count == 2) || k->run == onxi_where_run ||
           k->run == onxi_clip_run || k->run == onxi_cast_run;
}

/* Texts, types of less than a byte, and powers of two have rules of their own. */
bool onxi_element_type_is(int dtype)
{
    return dtype != ONX_STRING && dtype != ONX_FLOAT8E8M0 && onxi_element_size(dtype);
}

static link link_of(const onxi_chain_op *op)
{
    link l = { .in_place = op->kernel->flags & ONX_KERNEL_IN_PLACE };
    onxi_element *e = &l.element;
    memcpy(l.inputs, op->inputs, sizeof l.inputs);
    if (op->kernel->run == onxi_unary_run) {
        onxi_unary_element(op->params, e);
    } else if (op->kernel->run == onxi_where_run) {
        onxi_where_element(op->params, e);
    } else if (op->kernel->run == onxi_clip_run) {
        onxi_clip_element(op->params, e);
    } else if (op->kernel->run == onxi_cast_run) {
        onxi_cast_element(op->params, e);
    } else {
        const onxi_binary_params *q = op->params;
        e->inputs = 2;
        e->binary = q->loop;
        e->broadcast = &q->broadcast;
        e->in_width[0] = e->in_width[1] = q->in_width;
        e->out_width = q->out_width;
    }
    return l;
}

/* ---- places of intermediate results ---- */

typedef struct places {
    uint32_t last_use[ONXI_CHAIN_OPS];
    uint32_t free[ONXI_CHAIN_OPS], free_count, count;
} places;

/* A place for the result of operator i: that of an input that is no longer used, or one of those freed before.
 */
static uint32_t place_of(places *s, const chain_params *q, uint32_t i)
{
    const link *l = &q->links[i];
    uint32_t taken = UINT32_MAX;
    for (uint32_t k = 0; k < l->element.inputs; k++) {
        const uint32_t from = l->inputs[k] < 0 ? (uint32_t)(-1 - l->inputs[k]) : UINT32_MAX;
        bool again = from == UINT32_MAX || s->last_use[from] != i;
        for (uint32_t j = 0; j < k && !again; j++)
            again = l->inputs[j] == l->inputs[k];
        if (again)
            continue;
        if (taken == UINT32_MAX && l->in_place && l->element.in_width[k] == l->element.out_width)
            taken = q->links[from].place;
        else
            s->free[s->free_count++] = q->links[from].place;
    }
    return taken;
}

static void place_results(chain_params *q, places *s)
{
    for (uint32_t i = 0; i < q->link_count; i++)
        for (uint32_t k = 0; k < q->links[i].element.inputs; k++)
            if (q->links[i].inputs[k] < 0)
                s->last_use[-1 - q->links[i].inputs[k]] = i;
    for (uint32_t i = 0; i + (q->end ? 0 : 1) < q->link_count; i++) {
        const uint32_t before = s->free_count; /* what this one frees is still read while it writes */
        uint32_t place = place_of(s, q, i);
        if (place == UINT32_MAX && before) {
            place = s->free[0];
            s->free[0] = s->free[--s->free_count];
        } else if (place == UINT32_MAX) {
            place = s->count++;
        }
        q->links[i].place = place;
    }
}

const onx_kernel *onxi_chain_row(const onxi_chain_end *end, const onx_value *output)
{
    /* An end writes where it has read, if its lines keep their size; its other operands are read by all. */
    const bool apart = end && (end->input_count > 1 || end->made->count != output->count);
    return apart ? &onxi_kernel_chain_apart : &onxi_kernel_chain;
}

/* Blocks of whole lines. What makes a line that is longer than a block continues in pieces. */
static void cut_lines(chain_params *q, const onx_value *out)
{
    const uint64_t lines = q->count / q->line, each = q->piece / q->line;
    q->block = (each ? each : 1) * q->line;
    if (each)
        q->piece = q->block;
    q->end_width = out->size / lines;
}

static bool in_pieces(const chain_params *q)
{
    return q->block > q->piece;
}

onx_status onxi_chain_prepare(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onxi_chain_end *end)
{
    places s = { .count = 0 };
    uint32_t width = 1;
    const onx_value *out = end ? end->made : p->outputs[0];
    chain_params *q = ONXI_NEW(p->arena, chain_params);
    if (!q || !(q->links = ONXI_ARRAY(p->arena, link, op_count + 1u)))
        return ONX_E_MEMORY;
    q->link_count = op_count;
    q->end = end;
    for (uint32_t i = 0; i < op_count; i++) {
        q->links[i] = link_of(&ops[i]);
        const onxi_element *e = &q->links[i].element;
        width = e->out_width > width ? e->out_width : width;
        for (uint32_t k = 0; k < e->inputs; k++)
            width = e->in_width[k] > width ? e->in_width[k] : width;
    }
    place_results(q, &s);
    q->count = out->layout ? out->layout->size / onxi_element_size(out->dtype) : out->count;
    q->block = CACHE / (width * (s.count + 2)) / 64 * 64;
    q->block = q->block < BLOCK_LEAST ? BLOCK_LEAST : q->block > BLOCK_MOST ? BLOCK_MOST : q->block;
    q->piece = q->block;
    if (end) {
        q->line = ((const onxi_lines *)end->params)->count;
        cut_lines(q, p->outputs[0]);
    }
    q->pitch = (q->piece * width + 63) / 64 * 64;
    p->params = q;
    p->rows = (q->count + q->block - 1) / q->block;
    p->grain = ONXI_BLOCK / q->block + (q->block > ONXI_BLOCK);
    q->end_workspace = q->lines_at = s.count * q->pitch;
    if (in_pieces(q))
        q->end_workspace += (q->block * q->links[op_count - 1].element.out_width + 63) / 64 * 64;
    p->thread_workspace = q->end_workspace + (end ? end->thread_workspace : 0);
    return ONX_OK;
}

/* ---- running ---- */

/* Elements start .. end-1 of an operator whose inputs are broadcast, as far as each is read in one step. `from` are its
 * inputs, those of intermediate results at `start`. */
static void run_stretches(const link *l, const char *const *from, char *to, uint64_t start, uint64_t end)
{
    const onxi_element *e = &l->element;
    const onxi_broadcast *b = e->broadcast;
    const uint64_t inner = (uint64_t)b->inner;
    int64_t off[ONXI_BROADCAST_MAX] = { 0 }, step[ONXI_ELEMENT_INPUTS] = { 0 };
    uint64_t row = start / inner, col = start % inner;
    for (uint32_t k = 0; k < e->inputs; k++)
        step[k] = b->step[k][b->rank - 1];
    onxi_broadcast_offsets(b, row, off);
    for (uint64_t at = start, n; at < end; at += n, col = 0) {
        const char *x[ONXI_ELEMENT_INPUTS];
        n = inner - col < end - at ? inner - col : end - at;
        for (uint32_t k = 0; k < e->inputs; k++) {
            const int64_t i = off[k] + (int64_t)col * step[k] - (l->inputs[k] < 0 ? (int64_t)start : 0);
            x[k] = from[k] + i * (int64_t)e->in_width[k];
        }
        char *z = to + (at - start) * e->out_width;
        if (e->binary)
            e->binary(x[0], step[0], x[1], step[1], z, (int64_t)n);
        else
            e->where((const uint8_t *)x[0], step[0], x[1], step[1], x[2], step[2], z, (int64_t)n);
        if (at + n < end)
            onxi_broadcast_next(b, ++row, off);
    }
}

/* An operator that reads one element of `x` after the other; other inputs are one element each. */
static onx_status run_straight(const onxi_element *e, const char *x, const char *const *from, char *to, uint64_t n)
{
    if (e->cast)
        return onx_convert(e->to, to, e->from, x, n, e->saturate);
    if (e->clip)
        e->clip(x, from[1] ? from[1] : e->low, from[2] ? from[2] : e->high, to, n);
    else
        e->unary(x, to, n, e->a, e->b);
    return ONX_OK;
}

/* The lines of a block, which are at `made`. */
static onx_status run_end(const chain_params *q, const onx_work *work, const char *made, uint64_t start, uint64_t end)
{
    const onxi_chain_end *e = q->end;
    const onx_value *inputs[ONXI_ELEMENT_INPUTS];
    onx_value in = *e->made, out = *work->outputs[0], *outputs[] = { &out };
    onx_work part = *work;
    in.data = (void *)(uintptr_t)made;
    out.data = (char *)out.data + start / q->line * q->end_width;
    inputs[0] = &in;
    for (uint32_t k = 1; k < e->input_count; k++)
        inputs[k] = e->inputs[k] == ONXI_CHAIN_NONE ? NULL : work->inputs[e->inputs[k]];
    part.prepared = e->prepared;
    part.params = e->params;
    part.inputs = inputs;
    part.outputs = outputs;
    part.thread_workspace = (char *)work->thread_workspace + q->end_workspace;
    return e->kernel->run(&part, 0, (end - start) / q->line);
}

/* Elements start .. end-1, which are no more than a piece; what comes of them goes to `to`. */
static onx_status run_links(const chain_params *q, const onx_work *work, uint64_t start, uint64_t end, char *made)
{
    char *scratch = work->thread_workspace;
    for (uint32_t i = 0; i < q->link_count; i++) {
        const link *l = &q->links[i];
        const onxi_element *e = &l->element;
        const char *from[ONXI_ELEMENT_INPUTS];
        for (uint32_t k = 0; k < e->inputs; k++)
            from[k] = l->inputs[k] == ONXI_CHAIN_NONE ? NULL
                      : l->inputs[k] < 0              ? scratch + q->links[-1 - l->inputs[k]].place * q->pitch
                                                      : work->inputs[l->inputs[k]]->data;
        char *to = i + 1 < q->link_count ? scratch + l->place * q->pitch : made;
        if (e->broadcast)
            run_stretches(l, from, to, start, end);
        else
            ONX_TRY(
                run_straight(e, l->inputs[0] < 0 ? from[0] : from[0] + start * e->in_width[0], from, to, end - start));
    }
    return ONX_OK;
}

static onx_status chain_run(onx_work *work, uint64_t first, uint64_t last)
{
    const chain_params *q = work->params;
    const link *l = &q->links[q->link_count - 1];
    const uint64_t width = l->element.out_width;
    char *scratch = work->thread_workspace;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t start = row * q->block, end = start + q->block < q->count ? start + q->block : q->count;
        char *made = !q->end        ? (char *)work->outputs[0]->data + start * width
                     : in_pieces(q) ? scratch + q->lines_at
                                    : scratch + l->place * q->pitch;
        for (uint64_t at = start; at < end; at += q->piece) {
            const uint64_t stop = end - at < q->piece ? end : at + q->piece;
            ONX_TRY(run_links(q, work, at, stop, made + (at - start) * width));
        }
        if (q->end)
            ONX_TRY(run_end(q, work, made, start, end));
    }
    return ONX_OK;
}

#define ROW(flags_)                                                                                                    \
    {                                                                                                                  \
        .op = "Chain", .domain = "onx", .variant = "chain", .flags = flags_, .run = chain_run                          \
    }
const onx_kernel onxi_kernel_chain = ROW(ONX_KERNEL_IN_PLACE | ONX_KERNEL_LAYOUTS);
const onx_kernel onxi_kernel_chain_apart = ROW(ONX_KERNEL_LAYOUTS);
