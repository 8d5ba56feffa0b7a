/* Many threads run one session: each thread has its own context, and all share the weights. threads MODEL */
#include <onx/onx.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, RUNS = 25 };

typedef struct job {
    onx_session *session;
    int number, done;
} job;

static void *work(void *user)
{
    job *j = user;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_value *x, *y = NULL;
    const int64_t dims[] = { 1, 1, 8, 8 };
    if (!cx || onx_value_new_tensor(cx, ONX_FLOAT, 4, dims, &x) != ONX_OK)
        return NULL;
    for (int i = 0; i < 64; i++)
        ((float *)x->data)[i] = (float)(i / (1 + j->number) % 2);
    while (j->done < RUNS && onx_session_run(j->session, cx, (const onx_value *const[]){ x }, &y) == ONX_OK)
        j->done++; /* the next run reuses y */
    onx_value_free(x);
    onx_value_free(y);
    onx_ctx_free(cx);
    return NULL;
}

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_session *session;
    /* The runs are concurrent, so a single run needs no further threads. */
    const onx_session_options options = { .struct_size = sizeof options, .threads = 1 };
    if (argc < 2 || !cx || onx_session_load(cx, argv[1], NULL, &options, &session) != ONX_OK)
        return 1;
    pthread_t threads[THREADS];
    job jobs[THREADS];
    int started = 0, done = 0;
    while (started < THREADS) {
        jobs[started] = (job){ session, started, 0 };
        if (pthread_create(&threads[started], NULL, work, &jobs[started]) != 0)
            break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        done += jobs[i].done;
    }
    printf("%d runs\n", done);
    onx_session_free(session);
    onx_ctx_free(cx);
    return done == THREADS * RUNS ? 0 : 1;
}
