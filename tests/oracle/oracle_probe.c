/* oracle_probe.c - one examination in a child process, so that a crash or a hang is a finding like any other. */
#include "oracle/oracle.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void send(int to, const char *row, const char *kind, const char *text)
{
    oracle_finding f;
    memset(&f, 0, sizeof f);
    (void)snprintf(f.row, sizeof f.row, "%s", row);
    (void)snprintf(f.kind, sizeof f.kind, "%s", kind);
    (void)snprintf(f.text, sizeof f.text, "%s", text);
    if (write(to, &f, sizeof f) != (ssize_t)sizeof f)
        _exit(3);
}

static void found(void *user, const char *row, const char *kind, const char *text)
{
    send(*(const int *)user, row, kind, text);
}

static void child(const char *text, uint64_t seed, const char *only, unsigned seconds, int to)
{
    oracle *o = calloc(1, sizeof *o);
    if (!o)
        _exit(3);
    (void)alarm(seconds);
    o->found = found;
    o->user = &to;
    (void)oracle_examine(o, onx_str_of(text), seed, only, ORACLE_ALL_ROWS, NULL);
    _exit(0);
}

uint32_t oracle_probe(const char *text, uint64_t seed, const char *only, unsigned seconds, oracle_finding *out,
                      uint32_t room)
{
    int ends[2], status = 0;
    uint32_t count = 0;
    oracle_finding f;
    if (pipe(ends) != 0)
        return 0;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        child(text, seed, only, seconds, ends[1]);
    }
    (void)close(ends[1]);
    while (pid > 0 && read(ends[0], &f, sizeof f) == (ssize_t)sizeof f) {
        if (count < room)
            out[count] = f;
        count++;
    }
    (void)close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
        return count;
    memset(&f, 0, sizeof f);
    (void)snprintf(f.row, sizeof f.row, "%s", only ? only : "model");
    (void)snprintf(f.kind, sizeof f.kind, "%s", WTERMSIG(status) == SIGALRM ? "hang" : "crash");
    (void)snprintf(f.text, sizeof f.text, "signal %d", WTERMSIG(status));
    if (count < room)
        out[count] = f;
    return count + 1;
}

/* Letters only: names and numbers differ between models. Of values only which run it was is compared. */
static void essence(const oracle_finding *f, char *out, size_t size)
{
    size_t len = 0;
    const bool brief = strcmp(f->kind, "value") == 0 || strcmp(f->kind, "bits") == 0 || strcmp(f->kind, "type") == 0 ||
                       strcmp(f->kind, "input") == 0;
    for (const char *at = f->text; *at && len + 1 < size && !(brief && (*at == ',' || *at == ':')); at++) {
        const bool named = at > f->text && isalpha((unsigned char)at[-1]) && isdigit((unsigned char)*at);
        if (named && len) /* v12, c3_float16: the letter belongs to a name */
            len--;
        if (isalpha((unsigned char)*at) || *at == ' ')
            out[len++] = *at;
    }
    out[len] = 0;
}

bool oracle_same_sort(const oracle_finding *a, const oracle_finding *b)
{
    char x[ORACLE_WHY], y[ORACLE_WHY];
    if (strcmp(a->row, b->row) != 0 || strcmp(a->kind, b->kind) != 0)
        return false;
    essence(a, x, sizeof x);
    essence(b, y, sizeof y);
    return strncmp(x, y, 160) == 0;
}
