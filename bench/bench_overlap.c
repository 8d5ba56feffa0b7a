/* bench_overlap.c - measures the gain of computing while values are in transfer: layers of two branches, each of which
 * ends in a sum over all ranks that the next node reads, without and with overlap.
 *   mpirun -n 2 bench_overlap [MICROSECONDS [ROWS]]
 * MICROSECONDS is added to the time of each message to simulate a slower network; 0 by default. The two variants
 * alternate, and the minimum of many rounds counts; the time of the slowest rank is printed. Results have to be equal.
 */
#include <onx/shard.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 4, WIDTH = 512, INNER = 2048, ROUNDS = 40, FLIGHTS = 64 };

/* A communicator whose messages take longer. */
typedef struct network {
    onx_comm real;
    double seconds;
    uint64_t begun[FLIGHTS]; /* 0: free */
    double since[FLIGHTS];
    double waited; /* time spent waiting for delayed messages */
} network;

static void stop(const char *what)
{
    fprintf(stderr, "bench_overlap: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Waits without yielding the CPU: another process might keep it for longer than the message takes. */
static void arrive(network *n, double since)
{
    const double begin = MPI_Wtime();
    double now = begin;
    while (now < since + n->seconds)
        now = MPI_Wtime();
    n->waited += now - begin;
}

static onx_status exchange(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out)
{
    network *n = user;
    const double since = MPI_Wtime();
    const onx_status status =
        n->real.exchange(n->real.user, tag, sends, send_count, receives, receive_count, timeout_ns, rank_out);
    arrive(n, since);
    return status;
}

static onx_status begin(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                        const onx_comm_part *receives, uint32_t receive_count, uint64_t *begun)
{
    network *n = user;
    int at = 0;
    while (at < FLIGHTS && n->begun[at])
        at++;
    if (at == FLIGHTS)
        return ONX_E_MEMORY;
    n->since[at] = MPI_Wtime();
    const onx_status status = n->real.begin(n->real.user, tag, sends, send_count, receives, receive_count, begun);
    n->begun[at] = *begun;
    return status;
}

static onx_status finish(void *user, uint64_t begun, uint64_t timeout_ns, uint32_t *rank_out)
{
    network *n = user;
    const onx_status status = n->real.finish(n->real.user, begun, timeout_ns, rank_out);
    for (int i = 0; i < FLIGHTS; i++)
        if (n->begun[i] == begun) {
            n->begun[i] = 0;
            arrive(n, n->since[i]);
            break;
        }
    return status;
}

static void fail(void *user)
{
    const network *n = user;
    n->real.fail(n->real.user);
}

static void add_weight(onx_doc *doc, const char *name, int layer, int64_t rows, int64_t columns)
{
    char full[32];
    const int64_t dims[] = { rows, columns };
    float *data = malloc((size_t)(rows * columns) * sizeof *data);
    if (!data)
        stop("no memory");
    for (int64_t i = 0; i < rows * columns; i++)
        data[i] = (float)(i * 7919 % 1009 - 504) / 16384;
    snprintf(full, sizeof full, "%s%d", name, layer);
    if (!onx_graph_add_initializer(onx_doc_arena(doc), onx_doc_model(doc)->graph,
                                   onx_tensor_new(onx_doc_arena(doc), ONX_FLOAT, dims, 2, data, full)))
        stop("no memory");
    free(data);
}

static onx_doc *make(onx_ctx *cx, int rows, uint32_t ranks)
{
    char text[4096];
    onx_doc *doc;
    size_t at = (size_t)snprintf(
        text, sizeof text, "<ir_version: 11, opset_import: [\"\": 21]> g (float[%d,%d] x0) => (float[%d,%d] x%d) {",
        rows, WIDTH, rows, WIDTH, LAYERS);
    for (int i = 0; i < LAYERS; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               " a%d = MatMul(x%d, p%d) b%d = Relu(a%d) c%d = MatMul(b%d, q%d) g%d = Add(c%d, x%d)"
                               " d%d = MatMul(x%d, r%d) e%d = Tanh(d%d) f%d = MatMul(e%d, s%d) x%d = Add(f%d, g%d)",
                               i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i, i);
    snprintf(text + at, sizeof text - at, " }");
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
        stop("the model cannot be made");
    for (int i = 0; i < LAYERS; i++) {
        add_weight(doc, "p", i, WIDTH, INNER);
        add_weight(doc, "q", i, INNER, WIDTH);
        add_weight(doc, "r", i, WIDTH, INNER);
        add_weight(doc, "s", i, INNER, WIDTH);
    }
    if (onx_shard_annotate(cx, doc, &(onx_shard_annotate_options){ .tensor = ranks }) != ONX_OK)
        stop("the model cannot be spread");
    return doc;
}

static onx_session *open_session(onx_ctx *cx, onx_doc *doc, const onx_comm *comm)
{
    const onx_session_options alone = { .threads = 1 };
    const onx_shard_options options = { .comm = comm, .session = &alone };
    onx_session *session;
    if (onx_session_new_sharded(cx, doc, &options, &session) != ONX_OK)
        stop("a session cannot be made");
    return session;
}

int main(int argc, char **argv)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    network net = { .seconds = argc > 1 ? strtod(argv[1], NULL) / 1e6 : 0 };
    const int rows = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 32;
    MPI_Init(&argc, &argv);
    onx_ctx *cx = onx_ctx_new(NULL);
    if (!cx || rows < 1 || onx_comm_mpi(cx, &world, &net.real) != ONX_OK)
        stop("MPI cannot be used");
    onx_comm apart = { .rank = net.real.rank, .size = net.real.size, .user = &net, .exchange = exchange, .fail = fail };
    onx_comm both = apart;
    both.begin = begin;
    both.finish = finish;
    onx_doc *doc = make(cx, rows, net.real.size);
    onx_session *sessions[] = { open_session(cx, doc, &apart), open_session(cx, doc, &both) };
    onx_value *x, *y[2] = { NULL, NULL };
    const int64_t dims[] = { rows, WIDTH };
    /* Times in seconds, and the parts of them spent waiting for messages. */
    double mine[4] = { 1e9, 1e9, 1e9, 1e9 }, all[4];
    if (onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x) != ONX_OK)
        stop("no memory");
    for (uint64_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)(i % 17) / 16;
    for (int i = 0; i < ROUNDS; i++)
        for (int which = 0; which < 2; which++) {
            MPI_Barrier(world);
            net.waited = 0;
            const double since = MPI_Wtime();
            if (onx_session_run(sessions[which], cx, (const onx_value *const[]){ x }, &y[which]) != ONX_OK)
                stop("a run fails");
            const double took = MPI_Wtime() - since;
            mine[which] = i && took < mine[which] ? took : mine[which];
            mine[2 + which] = i && net.waited < mine[2 + which] ? net.waited : mine[2 + which];
        }
    if (memcmp(y[0]->data, y[1]->data, y[0]->size) != 0)
        stop("results differ");
    MPI_Reduce(mine, all, 4, MPI_DOUBLE, MPI_MAX, 0, world);
    if (!net.real.rank)
        printf("%u ranks, %d rows, %.0f us more: one at a time %.3f ms, both %.3f ms, %.2fx; waits %.3f and %.3f ms\n",
               net.real.size, rows, net.seconds * 1e6, all[0] * 1e3, all[1] * 1e3, all[0] / all[1], all[2] * 1e3,
               all[3] * 1e3);
    for (int i = 0; i < 2; i++) {
        onx_value_free(y[i]);
        onx_session_free(sessions[i]);
    }
    onx_value_free(x);
    onx_doc_free(doc);
    onx_comm_mpi_close(&net.real, false);
    onx_ctx_free(cx);
    MPI_Finalize();
    return 0;
}
