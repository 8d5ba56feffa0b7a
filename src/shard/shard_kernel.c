/* shard_kernel.c - communication between ranks, as kernels of the domain onx.shard: Move exchanges pieces of tensors,
 * and Reduce and AllReduce add up partial results in the order of ranks. Each is a single node, or a pair of nodes
 * between which the rank computes: Begin... passes a tensor with the data that is sent and received to End..., together
 * with its own input, so that both stay allocated. */
#include "shard/shard.h"

#include "value/value.h"

/* ---- attributes ---- */

typedef struct piece {
    onxi_piece_kind kind;
    uint32_t rank;
    const int64_t *box; /* for each axis of the output: start in input, start in output, size */
    bool direct;        /* its elements are contiguous at the source or destination */
    uint64_t at;        /* byte offset there */
    uint64_t kept_at;   /* offset in the output of a part that stays on this rank, UINT64_MAX: not contiguous there */
    uint64_t staged;    /* byte offset in the staging buffer if it has to be packed */
    uint64_t size;      /* in bytes */
} piece;

static const char *const reductions[] = {
    [ONXI_SUM_ADD] = "sum", [ONXI_SUM_LARGEST] = "max", [ONXI_SUM_SMALLEST] = "min", [ONXI_SUM_MULTIPLY] = "product"
};

typedef struct collective {
    const onxi_shard_runtime *runtime;
    uint32_t tag, rank;       /* rank: number of axes */
    const int64_t *from, *to; /* dims of input and output */
    piece *piece;
    uint32_t piece_count, send_count, receive_count;
    uint32_t width; /* bytes per element */
    int dtype;
    /* for reductions */
    onxi_sum_kind reduction;
    double scale;
    uint32_t parts; /* number of parts that are added up */
    const int64_t *members;
    uint64_t *starts; /* per member, and the end: range of elements that it adds up */
    uint64_t count;   /* number of elements in total */
    uint32_t member_count, me;
    bool adds, alone; /* adds: sums partial results; alone: each member sums everything itself */
    uint64_t staged;  /* bytes of all packed pieces, or of the parts of one member */
    uint64_t own_bytes;
    bool unpacks; /* some received data is not at its destination */
} collective;

static uint64_t piece_bytes(const collective *c, const int64_t *box)
{
    uint64_t count = c->width;
    for (uint32_t i = 0; i < c->rank; i++)
        count *= (uint64_t)box[3 * i + 2];
    return count;
}

/* The byte offset of a box in the tensor if its elements are contiguous; UINT64_MAX: they are not. */
static uint64_t run_of(const collective *c, const int64_t *dims, const int64_t *box, bool output)
{
    uint32_t i = 0;
    uint64_t place = 0;
    while (i < c->rank && box[3 * i + 2] == 1)
        i++;
    for (uint32_t k = i + 1; k < c->rank; k++)
        if (box[3 * k + 2] != dims[k])
            return UINT64_MAX;
    for (i = 0; i < c->rank; i++)
        place = place * (uint64_t)dims[i] + (uint64_t)box[3 * i + (output ? 1 : 0)];
    return place * c->width;
}

enum { LINE = 64 };
static uint64_t whole_lines(uint64_t size)
{
    return (size + LINE - 1) & ~(uint64_t)(LINE - 1);
}

/* Adds piece `i`, which follows those counted so far. Parts that are summed are always packed. */
static piece piece_at(collective *c, const int64_t *pieces, uint32_t i)
{
    const int64_t *at = pieces + (size_t)i * (ONXI_PIECE_HEAD + 3 * c->rank);
    piece q = {
        .kind = (onxi_piece_kind)at[0], .rank = (uint32_t)at[1], .box = at + ONXI_PIECE_HEAD, .staged = c->staged
    };
    const bool receives = q.kind == ONXI_PIECE_RECEIVE;
    q.size = piece_bytes(c, q.box);
    q.at = run_of(c, receives ? c->to : c->from, q.box, receives);
    q.direct = (q.kind == ONXI_PIECE_SEND || !c->adds) && q.at != UINT64_MAX;
    q.kept_at = q.kind == ONXI_PIECE_COPY && q.direct && q.size ? run_of(c, c->to, q.box, true) : UINT64_MAX;
    c->send_count += q.kind == ONXI_PIECE_SEND;
    c->receive_count += receives;
    c->own_bytes += q.kind == ONXI_PIECE_COPY ? q.size : 0;
    c->unpacks |= receives && !q.direct;
    c->staged += q.direct ? 0 : whole_lines(q.size);
    return q;
}

static onx_status read_pieces(onx_prepare *p, collective *c)
{
    uint32_t count;
    const int64_t *pieces = onx_prepare_ints(p, "pieces", &count);
    c->piece_count = count / (ONXI_PIECE_HEAD + 3 * c->rank);
    c->piece = ONXI_ARRAY(p->arena, piece, (size_t)c->piece_count + 1);
    if (!c->piece)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < c->piece_count; i++)
        c->piece[i] = piece_at(c, pieces, i);
    return ONX_OK;
}

/* Reads the attributes, which determine the shapes of outputs. */
static void read_collective(const onx_prepare *p, bool adds, collective *c)
{
    *c = (collective){ .tag = (uint32_t)onx_prepare_int(p, "tag"), .adds = adds };
    c->dtype = (int)onx_prepare_int(p, "dtype");
    c->width = onxi_element_size(c->dtype);
    c->from = onx_prepare_ints(p, "from", &c->rank);
    c->to = onx_prepare_ints(p, "to", &c->rank);
}

static onx_status begin(onx_prepare *p, bool adds, collective **out)
{
    collective *c = ONXI_NEW(p->arena, collective);
    if (!c)
        return ONX_E_MEMORY;
    read_collective(p, adds, c);
    c->runtime = p->kernel->body;
    p->params = c;
    *out = c;
    return ONX_OK;
}

/* The data that this rank sends has the size of its placement, for which the pieces were computed, whatever the earlier
 * nodes produced. */
static onx_status check_input(const onx_prepare *p, uint32_t which, const collective *c, uint32_t rank,
                              const int64_t *dims)
{
    const onx_value *x = p->input_count > which ? p->inputs[which] : NULL;
    if (!x || (x->dtype == c->dtype && !x->layout && x->rank == rank && onxi_same_dims(x->dims, dims, rank)))
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID,
                            "this rank has %llu elements of %s where its placement says another shape",
                            (unsigned long long)x->count, onx_dtype_name((onx_dtype)x->dtype));
}

/* A node that sends its first input in pieces. */
static onx_status begin_with_input(onx_prepare *p, bool adds, collective **out)
{
    ONX_TRY(begin(p, adds, out));
    ONX_TRY(check_input(p, 0, *out, (*out)->rank, (*out)->from));
    return read_pieces(p, *out);
}

/* ---- parts of tensors ---- */

/* Copies a box of a tensor with those dims to or from packed elements, one contiguous run of the last axes at a
 * time. */
static void copy_box(const collective *c, char *tensor, const int64_t *dims, const int64_t *box, bool output,
                     char *packed, bool pack)
{
    const uint32_t at = output ? 1 : 0;
    uint32_t outer = c->rank;
    uint64_t run = c->width;
    bool whole = true;
    while (outer && whole) { /* number of axes in one run */
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

static onx_status outcome(const onx_work *work, const collective *c, onx_status status, uint32_t rank)
{
    return status == ONX_OK ? ONX_OK : onxi_shard_failed(work->cx, status, rank, c->runtime->timeout_ns);
}

/* Sends to and receives from the other ranks at the same time. */
typedef struct traffic {
    onx_comm_part *sends, *receives;
    uint32_t sent, received;
} traffic;

static onx_status exchange(const onx_work *work, const collective *c, uint32_t phase, const traffic *t)
{
    const onx_comm *comm = &c->runtime->comm;
    uint32_t rank = 0;
    if (!t->sent && !t->received)
        return ONX_OK;
    const onx_status status = comm->exchange(comm->user, 2 * c->tag + phase, t->sends, t->sent, t->receives,
                                             t->received, c->runtime->timeout_ns, &rank);
    return outcome(work, c, status, rank);
}

static onx_status begin_traffic(const onx_work *work, const collective *c, const traffic *t, uint64_t *begun)
{
    const onx_comm *comm = &c->runtime->comm;
    return outcome(work, c, comm->begin(comm->user, 2 * c->tag, t->sends, t->sent, t->receives, t->received, begun), 0);
}

static onx_status finish_traffic(const onx_work *work, const collective *c, uint64_t begun)
{
    const onx_comm *comm = &c->runtime->comm;
    uint32_t rank = 0;
    const onx_status status = comm->finish(comm->user, begun, c->runtime->timeout_ns, &rank);
    return outcome(work, c, status, rank);
}

/* The handles of pending operations follow the pieces. */
static onx_status begin_exchange(const onx_work *work, const collective *c, const traffic *t, char *note)
{
    uint64_t begun = 0;
    if (!c->runtime->comm.begin)
        return onxi_fail(work->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the communicator can begin nothing");
    const onx_status status = begin_traffic(work, c, t, &begun);
    memcpy(note, &begun, sizeof begun);
    return status;
}

static onx_status finish_exchange(const onx_work *work, const collective *c, const char *note)
{
    uint64_t begun;
    memcpy(&begun, note, sizeof begun);
    return finish_traffic(work, c, begun);
}

static onx_status make_tensor(onx_prepare *p, uint32_t output)
{
    uint32_t rank;
    const int64_t *dims = onx_prepare_ints(p, "dims", &rank);
    return onx_prepare_output(p, output, (onx_dtype)onx_prepare_int(p, "dtype"), rank, dims);
}

/* Bytes that the first half passes to the second. */
static onx_status make_stage(onx_prepare *p, uint32_t output, uint64_t size)
{
    if (size > INT64_MAX - LINE)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the parts take %llu bytes", (unsigned long long)size);
    return onx_prepare_output(p, output, ONX_UINT8, 1, (const int64_t[]){ (int64_t)size + LINE });
}

static uint64_t size_of_pieces(const onx_prepare *p, bool adds)
{
    collective c;
    uint32_t count;
    read_collective(p, adds, &c);
    const int64_t *pieces = onx_prepare_ints(p, "pieces", &count);
    for (uint32_t i = 0; i < count / (ONXI_PIECE_HEAD + 3 * c.rank); i++)
        piece_at(&c, pieces, i);
    return c.staged;
}

static char *data_of(const onx_work *work, uint32_t input)
{
    return work->prepared->input_count > input ? work->inputs[input]->data : NULL;
}

/* ---- Move ---- */

static uint64_t list_bytes(const collective *c)
{
    return ((uint64_t)c->send_count + c->receive_count) * sizeof(onx_comm_part);
}

static traffic lists_at(const collective *c, char *memory)
{
    onx_comm_part *first = (onx_comm_part *)(void *)memory;
    return (traffic){ first, first + c->send_count, 0, 0 };
}

/* Packs data to send unless it is contiguous; received data goes to its destination or to the staging buffer. */
static void pack(const collective *c, char *input, char *output, char *staged, traffic *t)
{
    for (uint32_t i = 0; i < c->piece_count; i++) {
        const piece *q = &c->piece[i];
        char *at = staged + q->staged;
        if (q->kind == ONXI_PIECE_SEND) {
            if (q->direct)
                at = input + q->at;
            else
                copy_box(c, input, c->from, q->box, false, at, true);
            t->sends[t->sent++] = (onx_comm_part){ q->rank, at, q->size };
        } else if (q->kind == ONXI_PIECE_RECEIVE) {
            if (q->direct)
                at = output + q->at;
            t->receives[t->received++] = (onx_comm_part){ q->rank, at, q->size };
        }
    }
}

/* Copies the part that stays on this rank. */
static void copy_own(const collective *c, char *input, char *output, char *staged)
{
    for (uint32_t i = 0; i < c->piece_count; i++) {
        const piece *q = &c->piece[i];
        if (q->kind != ONXI_PIECE_COPY)
            continue;
        if (q->kept_at != UINT64_MAX) {
            memcpy(output + q->kept_at, input + q->at, q->size);
            continue;
        }
        char *at = q->direct ? input + q->at : staged + q->staged;
        if (!q->direct)
            copy_box(c, input, c->from, q->box, false, at, true);
        copy_box(c, output, c->to, q->box, true, at, false);
    }
}

static void unpack(const collective *c, char *output, char *staged)
{
    for (uint32_t i = 0; i < c->piece_count && c->unpacks; i++) {
        const piece *q = &c->piece[i];
        if (q->kind == ONXI_PIECE_RECEIVE && !q->direct)
            copy_box(c, output, c->to, q->box, true, staged + q->staged, false);
    }
}

static onx_status types(onx_prepare *p)
{
    return make_tensor(p, 0);
}

static onx_status prepare_move(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin_with_input(p, false, &c));
    p->workspace = c->staged + list_bytes(c) + LINE;
    return ONX_OK;
}

static onx_status run_move(onx_work *work, uint64_t first, uint64_t last)
{
    enum { WORTH = 1024 };
    const collective *c = work->params;
    char *input = data_of(work, 0), *output = work->outputs[0]->data, *staged = work->workspace;
    traffic t = lists_at(c, staged + c->staged);
    (void)first;
    (void)last;
    pack(c, input, output, staged, &t);
    /* Copies the local part while messages are in transit, if that takes longer than the overhead of two calls. */
    const bool halves = c->runtime->comm.begin && (t.sent || t.received) && c->own_bytes > WORTH;
    uint64_t begun = 0;
    ONX_TRY(halves ? begin_traffic(work, c, &t, &begun) : exchange(work, c, 0, &t));
    copy_own(c, input, output, staged);
    if (halves)
        ONX_TRY(finish_traffic(work, c, begun));
    unpack(c, output, staged);
    return ONX_OK;
}

static onx_status begin_move_types(onx_prepare *p)
{
    ONX_TRY(make_tensor(p, 0));
    return make_stage(p, 1, size_of_pieces(p, false));
}

static onx_status prepare_begin_move(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin_with_input(p, false, &c));
    p->workspace = list_bytes(c) + LINE;
    return ONX_OK;
}

static onx_status run_begin_move(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *input = data_of(work, 0), *output = work->outputs[0]->data, *staged = work->outputs[1]->data;
    traffic t = lists_at(c, work->workspace);
    (void)first;
    (void)last;
    pack(c, input, output, staged, &t);
    ONX_TRY(begin_exchange(work, c, &t, staged + c->staged));
    copy_own(c, input, output, staged);
    return ONX_OK;
}

/* Inputs: the destination of received data, the staging buffer, and the input of Begin, if it had one. */
static onx_status prepare_end_move(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin(p, false, &c));
    return read_pieces(p, c);
}

static onx_status run_end_move(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    const onx_value *begun = work->inputs[0], *y = work->outputs[0];
    char *staged = work->inputs[1]->data;
    (void)first;
    (void)last;
    ONX_TRY(finish_exchange(work, c, staged + c->staged));
    if (y->data != begun->data && y->size)
        memcpy(y->data, begun->data, y->size);
    unpack(c, y->data, staged);
    return ONX_OK;
}

/* ---- reductions ---- */

static onx_status reduce(onx_work *work, const collective *c, const void *const *part, void *out, uint64_t count)
{
    const onxi_shard_sum sum = { c->dtype, c->reduction, c->parts, c->scale };
    if (onxi_shard_sum_up(&sum, part, out, count))
        return ONX_OK;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "partial results of %s cannot be put together",
                         onx_dtype_name((onx_dtype)c->dtype));
}

static onx_status read_reduction(onx_prepare *p, collective *c)
{
    const onx_str name = onx_prepare_text(p, "reduction");
    c->reduction = ONXI_SUM_ADD;
    for (uint32_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (onx_str_is(name, reductions[i]))
            c->reduction = (onxi_sum_kind)i;
    c->scale = (double)onx_prepare_float(p, "scale");
    c->parts = (uint32_t)onx_prepare_int(p, "parts");
    return ONX_OK;
}

static onx_status prepare_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin_with_input(p, true, &c));
    ONX_TRY(read_reduction(p, c));
    p->workspace = c->staged + list_bytes(c) + c->parts * sizeof(void *) + LINE;
    return ONX_OK;
}

/* Pieces for this rank come in groups of all parts of one box, in the order in which they are added. */
static onx_status add_up(onx_work *work, const collective *c, char *input, char *output, char *staged,
                         const void **part)
{
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

static onx_status run_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *input = data_of(work, 0), *output = work->outputs[0]->data, *staged = work->workspace;
    traffic t = lists_at(c, staged + c->staged);
    (void)first;
    (void)last;
    pack(c, input, NULL, staged, &t);
    ONX_TRY(exchange(work, c, 0, &t));
    return add_up(work, c, input, output, staged, (const void **)(void *)(t.receives + c->receive_count));
}

static onx_status begin_reduce_types(onx_prepare *p)
{
    return make_stage(p, 0, size_of_pieces(p, true));
}

static onx_status prepare_begin_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin_with_input(p, true, &c));
    p->workspace = list_bytes(c) + LINE;
    return ONX_OK;
}

static onx_status run_begin_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *staged = work->outputs[0]->data;
    traffic t = lists_at(c, work->workspace);
    (void)first;
    (void)last;
    pack(c, data_of(work, 0), NULL, staged, &t);
    return begin_exchange(work, c, &t, staged + c->staged);
}

/* Inputs: the staging buffer of Begin, and its input, if it had one. */
static onx_status prepare_end_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin(p, true, &c));
    ONX_TRY(read_pieces(p, c));
    ONX_TRY(read_reduction(p, c));
    p->workspace = c->parts * sizeof(void *) + LINE;
    return ONX_OK;
}

static onx_status run_end_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *staged = work->inputs[0]->data;
    (void)first;
    (void)last;
    ONX_TRY(finish_exchange(work, c, staged + c->staged));
    return add_up(work, c, data_of(work, 1), work->outputs[0]->data, staged, work->workspace);
}

/* ---- AllReduce: each member adds up its share of the elements and then sends it to all others; or each member
 * receives all parts and adds up everything, in the same order ---- */

/* The elements of a member's part that another member adds up: all, if each member adds up everything. */
static uint64_t share_start(const collective *c, uint32_t member)
{
    return c->alone ? 0 : c->starts[member];
}
static uint64_t share_end(const collective *c, uint32_t member)
{
    return c->alone ? c->starts[c->member_count] : c->starts[member + 1];
}

static void read_members(const onx_prepare *p, collective *c)
{
    c->count = 1;
    for (uint32_t i = 0; i < c->rank; i++)
        c->count *= (uint64_t)c->to[i];
    c->members = onx_prepare_ints(p, "members", &c->member_count);
    c->parts = c->member_count;
    c->alone = onxi_shard_adds_alone(c->member_count, c->count * c->width);
    c->staged = whole_lines((c->alone ? c->count : c->count / c->member_count + 1) * c->width);
}

static onx_status begin_members(onx_prepare *p, uint32_t input, collective **out)
{
    collective *c;
    ONX_TRY(begin(p, true, &c));
    ONX_TRY(check_input(p, input, c, c->rank, c->to));
    ONX_TRY(read_reduction(p, c));
    read_members(p, c);
    c->starts = ONXI_ARRAY(p->arena, uint64_t, (size_t)c->member_count + 1);
    if (!c->starts)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i <= c->member_count; i++)
        c->starts[i] = (uint64_t)onxi_shard_start((int64_t)c->count, c->member_count, i);
    while (c->me < c->member_count && c->members[c->me] != (int64_t)c->runtime->comm.rank)
        c->me++;
    *out = c;
    return ONX_OK;
}

static uint64_t member_bytes(const collective *c)
{
    return c->member_count * (2 * sizeof(onx_comm_part) + sizeof(void *)) + LINE;
}

static traffic member_lists(const collective *c, void *memory)
{
    onx_comm_part *first = memory;
    return (traffic){ first, first + c->member_count, 0, 0 };
}

/* Sends to each member its share of this rank's parts, and receives the parts of this rank's share from all members. */
static void hand_out(const collective *c, char *input, char *staged, traffic *t)
{
    const uint64_t from = share_start(c, c->me), to = share_end(c, c->me);
    for (uint32_t k = 0; k < c->member_count; k++) {
        const uint64_t start = share_start(c, k), end = share_end(c, k);
        if (k != c->me && end > start)
            t->sends[t->sent++] =
                (onx_comm_part){ (uint32_t)c->members[k], input + start * c->width, (end - start) * c->width };
        if (k != c->me && to > from)
            t->receives[t->received++] =
                (onx_comm_part){ (uint32_t)c->members[k], staged + k * c->staged, (to - from) * c->width };
    }
}

/* Adds up this rank's share, and sends it to all members. */
static onx_status join(onx_work *work, const collective *c, char *input, char *staged, traffic t)
{
    const uint64_t from = share_start(c, c->me), to = share_end(c, c->me);
    char *output = work->outputs[0]->data;
    const void **part = (const void **)(void *)(t.receives + c->member_count);
    for (uint32_t k = 0; k < c->member_count; k++)
        part[k] = k == c->me ? input + from * c->width : staged + k * c->staged;
    ONX_TRY(reduce(work, c, part, output + from * c->width, to - from));
    if (c->alone)
        return ONX_OK;
    t.sent = t.received = 0;
    for (uint32_t k = 0; k < c->member_count; k++) {
        const uint64_t start = c->starts[k], end = c->starts[k + 1];
        if (k != c->me && to > from)
            t.sends[t.sent++] =
                (onx_comm_part){ (uint32_t)c->members[k], output + from * c->width, (to - from) * c->width };
        if (k != c->me && end > start)
            t.receives[t.received++] =
                (onx_comm_part){ (uint32_t)c->members[k], output + start * c->width, (end - start) * c->width };
    }
    return exchange(work, c, 1, &t);
}

static onx_status prepare_all_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin_members(p, 0, &c));
    p->workspace = c->staged * c->member_count + member_bytes(c);
    return ONX_OK;
}

static onx_status run_all_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *input = work->inputs[0]->data, *staged = work->workspace;
    traffic t = member_lists(c, staged + c->staged * c->member_count);
    (void)first;
    (void)last;
    hand_out(c, input, staged, &t);
    ONX_TRY(exchange(work, c, 0, &t));
    return join(work, c, input, staged, t);
}

static onx_status begin_all_reduce_types(onx_prepare *p)
{
    collective c;
    read_collective(p, true, &c);
    read_members(p, &c);
    return make_stage(p, 0, c.staged * c.member_count);
}

static onx_status prepare_begin_all_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin_members(p, 0, &c));
    p->workspace = member_bytes(c);
    return ONX_OK;
}

static onx_status run_begin_all_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *staged = work->outputs[0]->data;
    traffic t = member_lists(c, work->workspace);
    (void)first;
    (void)last;
    hand_out(c, work->inputs[0]->data, staged, &t);
    return begin_exchange(work, c, &t, staged + c->staged * c->member_count);
}

static onx_status prepare_end_all_reduce(onx_prepare *p)
{
    collective *c;
    ONX_TRY(begin_members(p, 1, &c));
    p->workspace = member_bytes(c);
    return ONX_OK;
}

static onx_status run_end_all_reduce(onx_work *work, uint64_t first, uint64_t last)
{
    const collective *c = work->params;
    char *staged = work->inputs[0]->data;
    (void)first;
    (void)last;
    ONX_TRY(finish_exchange(work, c, staged + c->staged * c->member_count));
    return join(work, c, work->inputs[1]->data, staged, member_lists(c, work->workspace));
}

/* ---- Lookup: Gather with rows that may be on another rank ---- */

typedef struct lookup {
    uint64_t outer, rows, run; /* elements before the axis, along it; bytes after it */
    int64_t first, all;        /* row 0 is row `first` of `all` */
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
#define ROW(name, flags_, what, types_)                                                                                \
    {                                                                                                                  \
        .op = name, .domain = ONXI_SHARD_DOMAIN, .since = 1, .flags = FLAGS | (flags_), .prepare = prepare_##what,     \
        .run = run_##what, .types = types_                                                                             \
    }
/* A collective as one node, and its two halves. */
#define ROWS(name, what)                                                                                               \
    ROW(name, 0, what, types), ROW("Begin" name, 0, begin_##what, begin_##what##_types),                               \
        ROW("End" name, ONX_KERNEL_IN_PLACE, end_##what, types)

void onxi_shard_kernels(const onxi_shard_runtime *runtime, onx_kernel rows[ONXI_SHARD_KERNELS])
{
    static const onx_kernel all[ONXI_SHARD_KERNELS] = {
        ROW("Slice", 0, move, types),
        ROWS("Send", move),
        ROWS("Receive", move),
        ROWS("AllGather", move),
        ROWS("Broadcast", move),
        ROWS("AllToAll", move),
        ROWS("Reduce", reduce),
        ROWS("AllReduce", all_reduce),
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
