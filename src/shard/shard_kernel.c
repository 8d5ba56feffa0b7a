/* shard_kernel.c - what ranks do with each other, as kernels of the domain onx.shard: pieces of tensors change hands
 * (Move, under the names of what it comes to), and partial results are added up in the order of ranks (Reduce,
 * AllReduce).
 */
#include "shard/shard.h"

#include "value/value.h"

/* ---- what the attributes say ---- */

typedef struct piece {
    onxi_piece_kind kind;
    uint32_t rank;
    const int64_t *box; /* for each axis of the output: start in input, start in output, size */
    uint64_t staged;    /* where its elements lie packed, in bytes */
    uint64_t size;      /* in bytes */
} piece;

typedef enum reduction { ADD, LARGEST, SMALLEST, MULTIPLY } reduction;
static const char *const reductions[] = { "sum", "max", "min", "product" };

typedef struct collective {
    const onxi_shard_runtime *runtime;
    uint32_t tag, rank;       /* of axes */
    const int64_t *from, *to; /* dims of input and output */
    piece *piece;
    uint32_t piece_count, send_count, receive_count;
    uint32_t width; /* bytes of an element */
    int dtype;
    /* of reductions */
    reduction reduction;
    double scale;
    uint32_t parts; /* that are added up */
    const int64_t *members;
    uint32_t member_count, me;
    bool alone;      /* adds up everything itself */
    uint64_t staged; /* bytes of all pieces */
} collective;

static uint64_t piece_bytes(const collective *c, const int64_t *box)
{
    uint64_t count = c->width;
    for (uint32_t i = 0; i < c->rank; i++)
        count *= (uint64_t)box[3 * i + 2];
    return count;
}

static onx_status read_pieces(onx_prepare *p, collective *c)
{
    uint32_t count;
    const int64_t *pieces = onx_prepare_ints(p, "pieces", &count);
    const uint32_t each = ONXI_PIECE_HEAD + 3 * c->rank;
    c->piece_count = count / each;
    c->piece = ONXI_ARRAY(p->arena, piece, (size_t)c->piece_count + 1);
    if (!c->piece)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < c->piece_count; i++) {
        const int64_t *at = pieces + (size_t)i * each;
        piece *q = &c->piece[i];
        *q = (piece){ (onxi_piece_kind)at[0], (uint32_t)at[1], at + ONXI_PIECE_HEAD, c->staged, 0 };
        q->size = piece_bytes(c, q->box);
        c->send_count += q->kind == ONXI_PIECE_SEND;
        c->receive_count += q->kind == ONXI_PIECE_RECEIVE;
        c->staged += (q->size + 63) & ~(uint64_t)63;
    }
    return ONX_OK;
}

static onx_status types(onx_prepare *p)
{
    uint32_t rank;
    const int64_t *dims = onx_prepare_ints(p, "dims", &rank);
    return onx_prepare_output(p, 0, (onx_dtype)onx_prepare_int(p, "dtype"), rank, dims);
}

static onx_status begin(onx_prepare *p, collective **out)
{
    uint32_t rank;
    collective *c = ONXI_NEW(p->arena, collective);
    if (!c)
        return ONX_E_MEMORY;
    c->runtime = p->kernel->body;
    c->tag = (uint32_t)onx_prepare_int(p, "tag");
    c->dtype = (int)onx_prepare_int(p, "dtype");
    c->width = onxi_element_size(c->dtype);
    c->from = onx_prepare_ints(p, "from", &rank);
    c->to = onx_prepare_ints(p, "to", &rank);
    c->rank = rank;
    p->params = c;
    *out = c;
    return ONX_OK;
}

/* What this rank hands over is as large as its placement says, which is what the pieces were cut for, whatever the
 * nodes before made of theirs. */
static onx_status check_input(const onx_prepare *p, const collective *c, uint32_t rank, const int64_t *dims)
{
    const onx_value *x = p->input_count ? p->inputs[0] : NULL;
    if (!x || (x->dtype == c->dtype && !x->layout && x->rank == rank && onxi_same_dims(x->dims, dims, rank)))
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID,
                            "this rank has %llu elements of %s where its placement says another shape",
                            (unsigned long long)x->count, onx_dtype_name((onx_dtype)x->dtype));
}

/* ---- parts of tensors ---- */

/* Copies a box of a tensor with those dims to or from packed elements, a run of the last axes at a time. */
static void copy_box(const collective *c, char *tensor, const int64_t *dims, const int64_t *box, bool output,
                     char *packed, bool pack)
{
    const uint32_t at = output ? 1 : 0;
    uint32_t outer = c->rank;
    uint64_t run = c->width;
    bool whole = true;
    while (outer && whole) { /* axes that the run covers */
        outer--;
        run *= (uint64_t)box[3 * outer + 2];
        whole = box[3 * outer + 2] == dims[outer];
    }
    int64_t index[ONXI_SHARD_RANK] = { 0 };
    uint64_t runs = 1;
    for (uint32_t i = 0; i < outer; i++)
        runs *= (uint64_t)box[3 * i + 2];
    for (uint64_t r = 0; r < runs; r++, packed += run) {
        uint64_t place = 0;
        for (uint32_t i = 0; i < c->rank; i++)
            place = place * (uint64_t)dims[i] + (uint64_t)(box[3 * i + at] + (i < outer ? index[i] : 0));
        char *const there = tensor + place * c->width;
        if (pack)
            memcpy(packed, there, run);
        else
            memcpy(there, packed, run);
        for (uint32_t i = outer; i-- > 0 && ++index[i] == box[3 * i + 2];)
            index[i] = 0;
    }
}

/* Where the elements of a box lie one behind the other in the tensor, or NULL. */
static char *run_of(const collective *c, char *tensor, const int64_t *dims, const int64_t *box, bool output)
{
    uint32_t i = 0;
    uint64_t place = 0;
    while (i < c->rank && box[3 * i + 2] == 1)
        i++;
    for (uint32_t k = i + 1; k < c->rank; k++)
        if (box[3 * k + 2] != dims[k])
            return NULL;
    for (i = 0; i < c->rank; i++)
        place = place * (uint64_t)dims[i] + (uint64_t)box[3 * i + (output ? 1 : 0)];
    return tensor + place * c->width;
}

static onx_status exchange(onx_work *work, const collective *c, uint32_t phase, onx_comm_part *sends,
                           uint32_t send_count, onx_comm_part *receives, uint32_t receive_count)
{
    const onxi_shard_runtime *t = c->runtime;
    uint32_t rank = 0;
    if (!send_count && !receive_count)
        return ONX_OK;
    const onx_status status = t->comm.exchange(t->comm.user, 2 * c->tag + phase, sends, send_count, receives,
                                               receive_count, t->timeout_ns, &rank);
    return status == ONX_OK ? ONX_OK : onxi_shard_failed(work->cx, status, rank, t->timeout_ns);
}

/* ---- Move ---- */

static onx_status prepare_move(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin(p, &c));
    ONX_TRY(check_input(p, c, c->rank, c->from));
    ONX_TRY(read_pieces(p, c));
    p->workspace = c->staged + (c->send_count + c->receive_count) * sizeof(onx_comm_part) + 64;
    return ONX_OK;
}

/* Sends what is asked for, and receives to where `target` says, or packed where that is NULL. */
static onx_status trade(onx_work *work, const collective *c, char *input, char *output)
{
    char *const staged = work->workspace;
    onx_comm_part *sends = (onx_comm_part *)(void *)(staged + c->staged), *receives = sends + c->send_count;
    uint32_t sent = 0, received = 0;
    for (uint32_t i = 0; i < c->piece_count; i++) {
        const piece *q = &c->piece[i];
        char *at = staged + q->staged, *there = NULL;
        if (q->kind == ONXI_PIECE_SEND) {
            there = run_of(c, input, c->from, q->box, false);
            if (!there)
                copy_box(c, input, c->from, q->box, false, at, true);
            sends[sent++] = (onx_comm_part){ q->rank, there ? there : at, q->size };
        } else if (q->kind == ONXI_PIECE_RECEIVE) {
            there = output ? run_of(c, output, c->to, q->box, true) : NULL;
            receives[received++] = (onx_comm_part){ q->rank, there ? there : at, q->size };
        }
    }
    return exchange(work, c, 0, sends, sent, receives, received);
}

static onx_status run_move(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *input = work->prepared->input_count ? work->inputs[0]->data : NULL, *output = work->outputs[0]->data;
    (void)first;
    (void)last;
    ONX_TRY(trade(work, c, input, output));
    for (uint32_t i = 0; i < c->piece_count; i++) {
        const piece *q = &c->piece[i];
        char *at = (char *)work->workspace + q->staged;
        if (q->kind == ONXI_PIECE_COPY) {
            char *there = run_of(c, input, c->from, q->box, false);
            if (!there)
                copy_box(c, input, c->from, q->box, false, at, true);
            copy_box(c, output, c->to, q->box, true, there ? there : at, false);
        } else if (q->kind == ONXI_PIECE_RECEIVE && !run_of(c, output, c->to, q->box, true))
            copy_box(c, output, c->to, q->box, true, at, false);
    }
    return ONX_OK;
}

/* ---- reductions ---- */

#define REDUCE(type, wide, read, write)                                                                                \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        wide acc = read(((const type *)part[0])[i]);                                                                   \
        for (uint32_t k = 1; k < c->parts; k++) {                                                                      \
            const wide x = read(((const type *)part[k])[i]);                                                           \
            switch (c->reduction) {                                                                                    \
            case ADD:                                                                                                  \
                acc = (wide)(acc + x);                                                                                 \
                break;                                                                                                 \
            case LARGEST:                                                                                              \
                acc = acc != acc || acc > x ? acc : x;                                                                 \
                break;                                                                                                 \
            case SMALLEST:                                                                                             \
                acc = acc != acc || acc < x ? acc : x;                                                                 \
                break;                                                                                                 \
            case MULTIPLY:                                                                                             \
                acc = (wide)(acc * x);                                                                                 \
                break;                                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        ((type *)out)[i] = write(acc);                                                                                 \
    }
#define AS_IS(x)        (x)
#define SCALED(x)       ((x) * (float)c->scale)
#define SCALED_WIDE(x)  ((x)*c->scale)
#define HALF_SCALED(x)  onx_f32_to_float16((x) * (float)c->scale)
#define BRAIN_SCALED(x) onx_f32_to_bfloat16((x) * (float)c->scale)

/* A block at a time, so that what is added up stays near; each element in the order of parts. */
static void add_floats(const collective *c, const float *const *part, float *out, uint64_t count)
{
    enum { BLOCK = 512 };
    const float scale = (float)c->scale;
    float acc[BLOCK];
    for (uint64_t from = 0; from < count; from += BLOCK) {
        const uint64_t n = count - from < BLOCK ? count - from : BLOCK;
        memcpy(acc, part[0] + from, n * sizeof *acc);
        for (uint32_t k = 1; k < c->parts; k++)
            for (uint64_t i = 0; i < n; i++)
                acc[i] += part[k][from + i];
        for (uint64_t i = 0; i < n; i++)
            out[from + i] = acc[i] * scale;
    }
}

/* Integers wrap around, as those of kernels do: they are added without sign. */
static onx_status reduce(onx_work *work, const collective *c, const void *const *part, void *out, uint64_t count)
{
    const bool ordered = c->reduction == LARGEST || c->reduction == SMALLEST;
    switch (c->dtype) {
    case ONX_FLOAT:
        if (c->reduction == ADD)
            add_floats(c, (const float *const *)(const void *)part, out, count);
        else
            REDUCE(float, float, AS_IS, SCALED)
        return ONX_OK;
    case ONX_DOUBLE:
        REDUCE(double, double, AS_IS, SCALED_WIDE)
        return ONX_OK;
    case ONX_FLOAT16:
        REDUCE(uint16_t, float, onx_float16_to_f32, HALF_SCALED)
        return ONX_OK;
    case ONX_BFLOAT16:
        REDUCE(uint16_t, float, onx_bfloat16_to_f32, BRAIN_SCALED)
        return ONX_OK;
    case ONX_INT32:
        if (ordered)
            REDUCE(int32_t, int32_t, AS_IS, AS_IS)
        else
            REDUCE(uint32_t, uint32_t, AS_IS, AS_IS)
        return ONX_OK;
    case ONX_INT64:
        if (ordered)
            REDUCE(int64_t, int64_t, AS_IS, AS_IS)
        else
            REDUCE(uint64_t, uint64_t, AS_IS, AS_IS)
        return ONX_OK;
    case ONX_UINT32:
        REDUCE(uint32_t, uint32_t, AS_IS, AS_IS)
        return ONX_OK;
    case ONX_UINT64:
        REDUCE(uint64_t, uint64_t, AS_IS, AS_IS)
        return ONX_OK;
    default:
        return onx_work_fail(work, ONX_E_UNSUPPORTED, "partial results of %s cannot be put together",
                             onx_dtype_name(c->dtype));
    }
}

static onx_status read_reduction(onx_prepare *p, collective *c)
{
    const onx_str name = onx_prepare_text(p, "reduction");
    c->reduction = ADD;
    for (uint32_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (onx_str_is(name, reductions[i]))
            c->reduction = (reduction)i;
    c->scale = (double)onx_prepare_float(p, "scale");
    c->parts = (uint32_t)onx_prepare_int(p, "parts");
    return ONX_OK;
}

static onx_status prepare_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin(p, &c));
    ONX_TRY(check_input(p, c, c->rank, c->from));
    ONX_TRY(read_pieces(p, c));
    ONX_TRY(read_reduction(p, c));
    p->workspace =
        c->staged + (c->send_count + c->receive_count) * sizeof(onx_comm_part) + c->parts * sizeof(void *) + 64;
    return ONX_OK;
}

/* Pieces for this rank come in groups of all parts of one box, in the order in which they are added. */
static onx_status run_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *input = work->inputs[0]->data, *output = work->outputs[0]->data, *staged = work->workspace;
    const void **part =
        (const void **)(void *)(staged + c->staged + (c->send_count + c->receive_count) * sizeof(onx_comm_part));
    (void)first;
    (void)last;
    ONX_TRY(trade(work, c, input, NULL));
    for (uint32_t i = 0, have = 0; i < c->piece_count; i++) {
        const piece *q = &c->piece[i];
        if (q->kind == ONXI_PIECE_SEND)
            continue;
        char *at = staged + q->staged;
        if (q->kind == ONXI_PIECE_COPY)
            copy_box(c, input, c->from, q->box, false, at, true);
        part[have++] = at;
        if (have < c->parts)
            continue;
        have = 0;
        ONX_TRY(reduce(work, c, part, at, q->size / c->width));
        copy_box(c, output, c->to, q->box, true, at, false);
    }
    return ONX_OK;
}

/* ---- AllReduce: each member adds up its share of the elements, and then all give theirs to all; or it gets all parts
 * and adds up everything, in the same order ---- */

static uint64_t share(const collective *c, uint64_t count, uint32_t member)
{
    return (uint64_t)onxi_shard_start((int64_t)count, c->member_count, member);
}

static onx_status prepare_all_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin(p, &c));
    ONX_TRY(check_input(p, c, p->outputs[0]->rank, p->outputs[0]->dims));
    ONX_TRY(read_reduction(p, c));
    c->members = onx_prepare_ints(p, "members", &c->member_count);
    c->parts = c->member_count;
    while (c->me < c->member_count && c->members[c->me] != (int64_t)c->runtime->comm.rank)
        c->me++;
    const uint64_t count = p->outputs[0]->count;
    c->alone = onxi_shard_adds_alone(c->member_count, count * c->width);
    const uint64_t most = c->alone ? count : count / c->member_count + 1;
    c->staged = (most * c->width + 63) & ~(uint64_t)63;
    p->workspace = c->staged * c->member_count + c->member_count * (2 * sizeof(onx_comm_part) + sizeof(void *)) + 64;
    return ONX_OK;
}

static onx_status run_all_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    const uint64_t count = work->outputs[0]->count, from = c->alone ? 0 : share(c, count, c->me);
    const uint64_t to = c->alone ? count : share(c, count, c->me + 1);
    char *input = work->inputs[0]->data, *output = work->outputs[0]->data, *staged = work->workspace;
    onx_comm_part *sends = (onx_comm_part *)(void *)(staged + c->staged * c->member_count);
    onx_comm_part *receives = sends + c->member_count;
    const void **part = (const void **)(void *)(receives + c->member_count);
    uint32_t sent = 0, received = 0;
    (void)first;
    (void)last;
    for (uint32_t k = 0; k < c->member_count; k++) {
        const uint64_t start = c->alone ? 0 : share(c, count, k), end = c->alone ? count : share(c, count, k + 1);
        part[k] = k == c->me ? input + from * c->width : staged + k * c->staged;
        if (k != c->me && end > start)
            sends[sent++] =
                (onx_comm_part){ (uint32_t)c->members[k], input + start * c->width, (end - start) * c->width };
        if (k != c->me && to > from)
            receives[received++] =
                (onx_comm_part){ (uint32_t)c->members[k], staged + k * c->staged, (to - from) * c->width };
    }
    ONX_TRY(exchange(work, c, 0, sends, sent, receives, received));
    ONX_TRY(reduce(work, c, part, output + from * c->width, to - from));
    if (c->alone)
        return ONX_OK;
    sent = received = 0;
    for (uint32_t k = 0; k < c->member_count; k++) {
        const uint64_t start = share(c, count, k), end = share(c, count, k + 1);
        if (k != c->me && to > from)
            sends[sent++] =
                (onx_comm_part){ (uint32_t)c->members[k], output + from * c->width, (to - from) * c->width };
        if (k != c->me && end > start)
            receives[received++] =
                (onx_comm_part){ (uint32_t)c->members[k], output + start * c->width, (end - start) * c->width };
    }
    return exchange(work, c, 1, sends, sent, receives, received);
}

/* ---- Lookup: Gather in rows that another rank may have ---- */

typedef struct lookup {
    uint64_t outer, rows, run; /* before the axis, along it, bytes behind it */
    int64_t first, all;        /* row 0 is this one of so many */
} lookup;

static onx_status lookup_types(onx_prepare *p)
{
    const onx_value *data = p->inputs[0], *index = p->inputs[1];
    const uint32_t axis = (uint32_t)onx_prepare_int(p, "axis");
    int64_t dims[2 * ONXI_SHARD_RANK];
    uint32_t rank = 0;
    if (axis >= data->rank || data->rank + index->rank > 2 * ONXI_SHARD_RANK)
        return onx_prepare_fail(p, ONX_E_INVALID, "the axis is out of range");
    for (uint32_t i = 0; i < data->rank; i++)
        for (uint32_t k = 0; k < (i == axis ? index->rank : 1); k++)
            dims[rank++] = i == axis ? index->dims[k] : data->dims[i];
    return onx_prepare_output(p, 0, (onx_dtype)data->dtype, rank, dims);
}

static onx_status prepare_lookup(onx_prepare *p)
{
    const onx_value *data = p->inputs[0];
    const uint32_t axis = (uint32_t)onx_prepare_int(p, "axis");
    lookup *l = ONXI_NEW(p->arena, lookup);
    if (!l)
        return ONX_E_MEMORY;
    *l = (lookup){ 1, (uint64_t)data->dims[axis], onxi_element_size(data->dtype), onx_prepare_int(p, "first"),
                   onx_prepare_int(p, "all") };
    for (uint32_t i = 0; i < data->rank; i++)
        *(i < axis ? &l->outer : &l->run) *= i == axis ? 1 : (uint64_t)data->dims[i];
    p->params = l;
    return ONX_OK;
}

static onx_status run_lookup(onx_work *work, uint64_t first, uint64_t last)
{
    const lookup *l = work->params;
    const onx_value *index = work->inputs[1];
    const char *data = work->inputs[0]->data;
    char *out = work->outputs[0]->data;
    (void)first;
    (void)last;
    for (uint64_t o = 0; o < l->outer; o++, data += l->rows * l->run)
        for (uint64_t i = 0; i < index->count; i++, out += l->run) {
            int64_t at = onxi_index(index, i);
            if (at < -l->all || at >= l->all)
                return onx_work_fail(work, ONX_E_INVALID, "index %lld is out of range", (long long)at);
            at += (at < 0 ? l->all : 0) - l->first;
            if (at >= 0 && (uint64_t)at < l->rows)
                memcpy(out, data + (uint64_t)at * l->run, l->run);
            else
                memset(out, 0, l->run);
        }
    return ONX_OK;
}

/* ---- rows ---- */

#define FLAGS (ONX_KERNEL_RANDOM | ONX_KERNEL_ONCE)
#define MOVE(name)                                                                                                     \
    {                                                                                                                  \
        .op = name, .domain = ONXI_SHARD_DOMAIN, .since = 1, .flags = FLAGS, .prepare = prepare_move, .run = run_move, \
        .types = types                                                                                                 \
    }

void onxi_shard_kernels(const onxi_shard_runtime *runtime, onx_kernel rows[ONXI_SHARD_KERNELS])
{
    static const onx_kernel all[ONXI_SHARD_KERNELS] = {
        MOVE("Send"),
        MOVE("Receive"),
        MOVE("Slice"),
        MOVE("AllGather"),
        MOVE("Broadcast"),
        MOVE("AllToAll"),
        { .op = "Reduce",
          .domain = ONXI_SHARD_DOMAIN,
          .since = 1,
          .flags = FLAGS,
          .prepare = prepare_reduce,
          .run = run_reduce,
          .types = types },
        { .op = "AllReduce",
          .domain = ONXI_SHARD_DOMAIN,
          .since = 1,
          .flags = FLAGS,
          .prepare = prepare_all_reduce,
          .run = run_all_reduce,
          .types = types },
        { .op = "Lookup",
          .domain = ONXI_SHARD_DOMAIN,
          .since = 1,
          .prepare = prepare_lookup,
          .run = run_lookup,
          .types = lookup_types },
        { .op = NULL },
    };
    memcpy(rows, all, sizeof all);
    for (uint32_t i = 0; i + 1 < ONXI_SHARD_KERNELS; i++)
        rows[i].body = runtime;
}
