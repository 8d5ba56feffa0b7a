/* bench_collectives.c - times collectives between ranks, as nodes of a session and as calls of MPI.
 *   mpirun -n 2 bench_collectives [BYTES]
 * BYTES is the largest size of a value, 16 MB by default.
 * The two alternate, and the minimum of many rounds counts; the time of the slowest rank is printed, for one
 * collective. A run contains several collectives, as in real models, each of which reads the result of the previous
 * one, so they share the cost of the session call. */
#include <onx/shard.h>
#include <onx/text.h>

#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/shard.h"

enum {
    ROUNDS = 60,
    NODES = 16,
    RANKS_MAX = 16,
    TEXT = 1 << 16,
    PIECE = 5 /* words of an entry: kind, rank, start in, start out, size */
};

typedef struct subject {
    onx_ctx *cx;
    onx_doc *doc;
    onx_session *session;
    onx_value *x, *y;
    float *out[NODES]; /* results of MPI */
    int count, each, size, rank;
    bool gather;
} subject;

static onx_comm comm;
static onxi_shard_runtime runtime;
static onx_kernel rows[ONXI_SHARD_KERNELS];

static void stop(const char *what)
{
    fprintf(stderr, "bench_collectives: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void add(char *text, const char *format, ...) ONX_PRINTF(2, 3);
static void add(char *text, const char *format, ...)
{
    va_list args;
    const size_t at = strlen(text);
    va_start(args, format);
    vsnprintf(text + at, TEXT - at, format, args);
    va_end(args);
}

static void add_gather(const subject *s, char *text)
{
    add(text, "pieces = [");
    for (int d = 0; d < s->size; d++)
        if (d != s->rank)
            add(text, "%d,%d,%d,0,%d,", ONXI_PIECE_SEND, d, s->rank * s->each, s->each);
    for (int d = 0; d < s->size; d++)
        add(text, "%d,%d,%d,%d,%d%s", d == s->rank ? ONXI_PIECE_COPY : ONXI_PIECE_RECEIVE, d,
            d == s->rank ? d * s->each : 0, d * s->each, s->each, d + 1 < s->size ? "," : "]");
}

static void add_reduction(const subject *s, char *text)
{
    add(text, "reduction = \"sum\", scale = 1.0, parts = %d, members = [", s->size);
    for (int d = 0; d < s->size; d++)
        add(text, "%d%s", d, d + 1 < s->size ? "," : "]");
}

static onx_str write_model(const subject *s, char *text)
{
    text[0] = '\0';
    add(text, "<ir_version: 10, opset_import: [\"\": 21, \"onx.shard\": 1]> g (float[%d] y0) => (float[%d] y%d) {\n",
        s->count, s->count, NODES);
    for (int i = 0; i < NODES; i++) {
        add(text, "y%d = onx.shard.%s <tag = %d, dtype = 1, dims = [%d], from = [%d], to = [%d], ", i + 1,
            s->gather ? "AllGather" : "AllReduce", i + 1, s->count, s->count, s->count);
        (s->gather ? add_gather : add_reduction)(s, text);
        add(text, "> (y%d)\n", i);
    }
    add(text, "}");
    return onx_str_of(text);
}

/* Makes a model of collectives only, as for one rank of a distributed model. */
static void make(subject *s)
{
    static char text[TEXT];
    const onx_session_options options = { .kernels = rows, .threads = 1 };
    const int64_t dims[] = { s->count };
    if (onx_text_parse(s->cx, ONX_KIND_MODEL, write_model(s, text), 0, &s->doc) != ONX_OK ||
        onx_session_new(s->cx, s->doc, &options, &s->session) != ONX_OK ||
        onx_value_new_tensor(s->cx, ONX_FLOAT, 1, dims, &s->x) != ONX_OK)
        stop(onx_diag_count(s->cx) ? onx_diag_get(s->cx, 0)->message.ptr : "no memory");
    for (int i = 0; i < s->count; i++)
        ((float *)s->x->data)[i] = (float)(i % 7 + s->rank);
    for (int i = 0; i < NODES; i++)
        if (!(s->out[i] = malloc((size_t)s->count * sizeof *s->out[i])))
            stop("no memory");
}

static void run_ours(subject *s)
{
    if (onx_session_run(s->session, s->cx, (const onx_value *const[]){ s->x }, &s->y) != ONX_OK)
        stop("a run fails");
}

static void run_mpi(subject *s)
{
    const float *from = s->x->data;
    for (int i = 0; i < NODES; from = s->out[i++])
        if (s->gather)
            MPI_Allgather(from + s->rank * s->each, s->each, MPI_FLOAT, s->out[i], s->each, MPI_FLOAT, MPI_COMM_WORLD);
        else
            MPI_Allreduce(from, s->out[i], s->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static double seconds_of(subject *s, void (*run)(subject *s), int times)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < times; i++)
        run(s);
    return (MPI_Wtime() - begin) / (times * NODES);
}

static void compare(onx_ctx *cx, int count, bool gather)
{
    subject s = { .cx = cx, .count = count, .gather = gather };
    double mine[2] = { 1, 1 }, all[2];
    MPI_Comm_size(MPI_COMM_WORLD, &s.size);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    s.each = count / s.size;
    s.count = gather ? s.each * s.size : count;
    make(&s);
    run_ours(&s);
    run_mpi(&s);
    const float *const ours = s.y->data, *const theirs = s.out[NODES - 1];
    for (int i = 0; i < s.count; i++)
        if (!(fabsf(ours[i] - theirs[i]) <= 1e-5F * fabsf(theirs[i])))
            stop("results differ");
    const int times = count < 1 << 14 ? 40 : count < 1 << 18 ? 4 : 1;
    for (int i = 0; i < ROUNDS; i++)
        for (int which = 0; which < 2; which++) {
            const double t = seconds_of(&s, which ? run_mpi : run_ours, times);
            mine[which] = t < mine[which] ? t : mine[which];
        }
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!s.rank)
        printf("%-10s %9d bytes  onx %9.2f us  mpi %9.2f us  %5.2fx\n", gather ? "AllGather" : "AllReduce", s.count * 4,
               all[0] * 1e6, all[1] * 1e6, all[1] / all[0]);
    onx_value_free(s.x);
    onx_value_free(s.y);
    for (int i = 0; i < NODES; i++)
        free(s.out[i]);
    onx_session_free(s.session);
    onx_doc_free(s.doc);
}

int main(int argc, char **argv)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    const long most = argc > 1 ? strtol(argv[1], NULL, 10) / (long)sizeof(float) : 1 << 22;
    MPI_Init(&argc, &argv);
    onx_ctx *cx = onx_ctx_new(NULL);
    if (!cx || onx_comm_mpi(cx, &world, &comm) != ONX_OK)
        stop(cx && onx_diag_count(cx) ? onx_diag_get(cx, 0)->message.ptr : "MPI cannot be used");
    if (comm.size > RANKS_MAX)
        stop("too many ranks");
    runtime = (onxi_shard_runtime){ comm, UINT64_C(60000000000) };
    onxi_shard_kernels(&runtime, rows);
    for (int gather = 0; gather < 2; gather++)
        for (int count = 64; count <= 1 << 22 && count <= most; count *= 16)
            compare(cx, count, gather);
    onx_comm_mpi_close(&comm, false);
    onx_ctx_free(cx);
    MPI_Finalize();
    return 0;
}
