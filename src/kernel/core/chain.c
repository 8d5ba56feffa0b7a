/* chain.c - fused elementwise operators, block by block over scratch memory in the first-level cache. */
#include "kernel/core/blocked.h"
#include "kernel/core/quantize.h"

/* Elements of a block; maximum bytes of intermediate results and operands of a block. */
enum { BLOCK_LEAST = 256, BLOCK_MOST = 2048, CACHE = 20 << 10 };

/* An operator of the chain, with the loop of its row. */
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
    uint64_t piece, pitch;     /* elements of a piece of a block, which fits into the first-level cache; bytes between
                                * buffers */
    const onxi_chain_end *end; /* NULL: none */
    uint64_t line, end_width;  /* of the end: elements of a line, bytes of its result */
    uint64_t lines_at;         /* position of the block's lines in the workspace, if they are not in a buffer */
    uint64_t end_workspace;    /* where that of the end begins in the workspace of a thread */
} chain_params;

/* Rows of QuantizeLinear and DequantizeLinear with loops. */
static bool has_lines(const onx_kernel *k)
{
#if ONXI_PLATFORM_ROOMY
    const onxi_quantize_body *body = k->body;
    return k->run == onxi_quantize_run && body->fast;
#else
    (void)k;
    return false;
#endif
}

bool onxi_element_is(const onx_kernel *k, uint32_t input_count)
{
    return k->run == onxi_unary_run || (k->run == onxi_binary_run && input_count == 2) || k->run == onxi_where_run ||
           k->run == onxi_clip_run || k->run == onxi_cast_run || has_lines(k);
}

bool onxi_element_as_laid_out(const onx_kernel *k, uint32_t input_count, onxi_common_layout alike)
{
    const bool any = k->run == onxi_unary_run || (k->run == onxi_binary_run && input_count == 2) ||
                     k->run == onxi_clip_run || k->run == onxi_cast_run || k->run == onxi_class_run;
    return alike != ONXI_COMMON_NOT && (k->flags & ONX_KERNEL_FLAT || (any && alike == ONXI_COMMON_WHOLE));
}

/* Strings, types of less than a byte, and powers of two are handled separately. */
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
#if ONXI_PLATFORM_ROOMY
    } else if (has_lines(op->kernel)) {
        onxi_quantize_element(op->kernel, op->params, e);
#endif
    } else {
        const onxi_binary_params *q = op->params;
        e->inputs = 2;
        e->binary = q->loop;
        e->gathered = q->gathers ? q : NULL;
        e->broadcast = &q->broadcast;
        e->in_width[0] = q->in_width[0];
        e->in_width[1] = q->in_width[1];
        e->out_width = q->out_width;
    }
    return l;
}

/* ---- places of intermediate results ---- */

typedef struct places {
    uint32_t last_use[ONXI_CHAIN_OPS];
    uint32_t free[ONXI_CHAIN_OPS], free_count, count;
} places;

/* Chooses the buffer for the result of operator i: that of an input that is no longer used, or a freed one. */
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
    /* An end operator writes in place if its lines keep their size; its other operands are read by all lines. */
    const bool apart = end && (end->input_count > 1 || end->made->count != output->count);
    return apart ? &onxi_kernel_chain_apart : &onxi_kernel_chain;
}

/* Blocks consist of whole lines. Operators that produce a line longer than a block continue in pieces. */
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

/* *width: bytes of the widest element. */
static bool make_links(onx_arena *arena, const onxi_chain_op *ops, uint32_t op_count, chain_params *q, uint32_t *width)
{
    *width = 1;
    q->link_count = op_count;
    if (!(q->links = ONXI_ARRAY(arena, link, op_count + 1u)))
        return false;
    for (uint32_t i = 0; i < op_count; i++) {
        q->links[i] = link_of(&ops[i]);
        const onxi_element *e = &q->links[i].element;
        *width = e->out_width > *width ? e->out_width : *width;
        for (uint32_t k = 0; k < e->inputs; k++)
            *width = e->in_width[k] > *width ? e->in_width[k] : *width;
    }
    return true;
}

onx_status onxi_chain_prepare(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onxi_chain_end *end)
{
    places s = { .count = 0 };
    uint32_t width;
    const onx_value *out = end ? end->made : p->outputs[0];
    chain_params *q = ONXI_NEW(p->arena, chain_params);
    if (!q || !make_links(p->arena, ops, op_count, q, &width))
        return ONX_E_MEMORY;
    q->end = end;
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

/* Elements start .. end-1 of an operator with broadcast inputs, split into stretches that each input reads with one
 * stride. `from` are its inputs; those that are intermediate results begin at `start`. */
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

/* A zero point, which may be left out. */
static int32_t zero_of(onx_dtype type, const char *at)
{
    return at ? onxi_zero_point((int)type, at) : 0;
}

/* An operator that reads the elements of `x` in order; its other inputs have one element each. */
static onx_status run_straight(const onxi_element *e, const char *x, const char *const *from, char *to, uint64_t n)
{
    if (e->quantize)
        e->quantize((const float *)(const void *)x, to, n, *(const float *)(const void *)from[1],
                    zero_of(e->to, from[2]));
    else if (e->dequantize)
        e->dequantize(x, (float *)(void *)to, n, *(const float *)(const void *)from[1], zero_of(e->from, from[2]));
    else if (e->cast)
        return onx_convert(e->to, to, e->from, x, n, e->saturate);
    else if (e->clip)
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

/* Elements start .. end-1, at most a piece; the results go to `to`. */
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
#if ONXI_PLATFORM_ROOMY
        if (e->gathered) {
            onxi_binary_gathered(e->gathered, from, (const bool[]){ l->inputs[0] < 0, l->inputs[1] < 0 }, to, start,
                                 end);
            continue;
        }
#endif
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

/* ---- tables of bytes ---- */

#if ONXI_PLATFORM_ROOMY
enum { BYTES = 256, TABLE_PIECE = 1 << 14 };

typedef struct table_params {
    uint64_t count;
    uint32_t x; /* which input the bytes are */
    onxi_look_up *look_up;
    uint8_t table[BYTES];
} table_params;

static void look_up_plain(const uint8_t *table, const uint8_t *x, uint8_t *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

/* What the operators make of each byte. */
static onx_status fill_table(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onx_value *x,
                             uint8_t *table)
{
    places s = { .count = 0 };
    uint32_t width;
    uint8_t each[BYTES];
    onx_value all = *x;
    chain_params q = { .count = BYTES, .block = BYTES, .piece = BYTES };
    const onx_value **inputs = (const onx_value **)ONXI_ARRAY(p->arena, void *, p->input_count + 1u);
    if (!inputs || !make_links(p->arena, ops, op_count, &q, &width))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op_count; i++)
        if (q.links[i].element.broadcast && q.links[i].element.broadcast->rank != 1)
            return ONX_E_UNSUPPORTED;
    place_results(&q, &s);
    q.pitch = (uint64_t)BYTES * width;
    char *scratch = ONXI_ARRAY(p->arena, char, (s.count + 1u) * q.pitch);
    if (!scratch)
        return ONX_E_MEMORY;
    for (int i = 0; i < BYTES; i++)
        each[i] = (uint8_t)i;
    all.data = each;
    for (uint32_t i = 0; i < p->input_count; i++)
        inputs[i] = p->inputs[i] == x ? &all : p->inputs[i];
    const onx_work work = { .inputs = inputs, .thread_workspace = scratch };
    return run_links(&q, &work, 0, BYTES, (char *)table);
}

onx_status onxi_chain_table_prepare(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onx_value *x)
{
    onx_value *y = p->outputs[0];
    const uint32_t block = onxi_blocked_of(x);
    const onx_layout *in = block ? x->layout : NULL;
    table_params *q = ONXI_NEW(p->arena, table_params);
    if (!q || (block && !(y->layout = onxi_blocked_layout(p->arena, y, block))))
        return ONX_E_MEMORY;
    q->count = y->count;
    q->look_up = look_up_plain;
    for (uint32_t i = 0; i < op_count; i++)
        if (has_lines(ops[i].kernel) && ((const onxi_quantize_body *)ops[i].kernel->body)->fast->look_up)
            q->look_up = ((const onxi_quantize_body *)ops[i].kernel->body)->fast->look_up;
    ONX_TRY(fill_table(p, ops, op_count, x, q->table));
    for (uint32_t i = p->operand_count; i-- > 0;) {
        p->want[i] = p->inputs[i] == x ? in : NULL;
        q->x = p->inputs[i] == x ? i : q->x;
    }
    p->params = q;
    p->rows = (q->count + TABLE_PIECE - 1) / TABLE_PIECE;
    p->grain = q->look_up == look_up_plain ? 2 : 16;
    return ONX_OK;
}

static onx_status table_run(onx_work *work, uint64_t first, uint64_t last)
{
    const table_params *q = work->params;
    const uint64_t start = first * TABLE_PIECE, end = last * TABLE_PIECE < q->count ? last * TABLE_PIECE : q->count;
    q->look_up(q->table, (const uint8_t *)work->inputs[q->x]->data + start, (uint8_t *)work->outputs[0]->data + start,
               end - start);
    return ONX_OK;
}

const onx_kernel onxi_kernel_table = { .op = "Table",
                                       .domain = "onx",
                                       .variant = "table",
                                       .flags = ONX_KERNEL_IN_PLACE | ONX_KERNEL_LAYOUTS,
                                       .run = table_run };
#endif

#define ROW(flags_)                                                                                                    \
    {                                                                                                                  \
        .op = "Chain", .domain = "onx", .variant = "chain", .flags = flags_, .run = chain_run                          \
    }
const onx_kernel onxi_kernel_chain = ROW(ONX_KERNEL_IN_PLACE | ONX_KERNEL_LAYOUTS);
const onx_kernel onxi_kernel_chain_apart = ROW(ONX_KERNEL_LAYOUTS);
