/* cli_signal.c - signals: cleaning up before a signal ends the program. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- temporary files ----
 * A list of the temporary files that currently have a name, so that a signal handler can remove them with unlinkat. The
 * handler reads only this list, which never shrinks. */

typedef struct temp {
    atomic_bool used; /* set last, cleared first */
    int dir;
    char name[NAME_MAX + 1];
} temp;

typedef struct temp_list {
    _Atomic(struct temp_list *) next;
    temp temps[16];
} temp_list;

static temp_list temporary;
static atomic_bool ending;

static void on_made(void *user, int dir, const char *name)
{
    (void)user;
    while (atomic_load(&ending)) /* another thread has processed the list, and ends the process */
        pause();
    for (temp_list *list = &temporary; list; list = atomic_load(&list->next)) {
        for (size_t i = 0; i < sizeof list->temps / sizeof *list->temps; i++) {
            temp *t = &list->temps[i];
            if (atomic_load(&t->used))
                continue;
            t->dir = dir;
            snprintf(t->name, sizeof t->name, "%s", name);
            atomic_store(&t->used, true);
            return;
        }
        if (!atomic_load(&list->next))
            atomic_store(&list->next, calloc(1, sizeof *list)); /* when out of memory, this file is not removed */
    }
}

static void on_gone(void *user, int dir, const char *name)
{
    (void)user;
    for (temp_list *list = &temporary; list; list = atomic_load(&list->next))
        for (size_t i = 0; i < sizeof list->temps / sizeof *list->temps; i++) {
            temp *t = &list->temps[i];
            if (atomic_load(&t->used) && t->dir == dir && strcmp(t->name, name) == 0)
                atomic_store(&t->used, false);
        }
}

static void remove_temps(void)
{
    atomic_store(&ending, true);
    for (temp_list *list = &temporary; list; list = atomic_load(&list->next))
        for (size_t i = 0; i < sizeof list->temps / sizeof *list->temps; i++)
            if (atomic_load(&list->temps[i].used))
                (void)unlinkat(list->temps[i].dir, list->temps[i].name, 0);
}

void cli_watch_temps(onx_ctx *cx)
{
    onx_ctx_watch_temps(cx, &(onx_temp_watch){ on_made, on_gone, NULL });
}

static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGXCPU };

static sigset_t set_of_ends(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaddset(&set, ends[i]);
    return set;
}

/* Raises the signal again with its default action. Until then all terminating signals are blocked: timeout and shells
 * send a signal to the process and to its group, and the second one would arrive while files are being removed. */
static void on_end(int signal_number)
{
    const sigset_t set = set_of_ends();
    remove_temps();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void handle_ends(void)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction action = { .sa_handler = on_end, .sa_mask = set_of_ends() }, before;
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) /* not if it is ignored, as by
                                                                                     * nohup */
            sigaction(ends[i], &action, NULL);
    }
}

/* ---- a limit of time ----
 * The library checks for cancellation at each allocation, and between pieces of files. Work that blocks on a file, or
 * runs without allocating, is ended here a while later. */

enum { GRACE_SECONDS = 2 };

static onx_cancel *deadline;

static void on_deadline(int signal_number)
{
    (void)signal_number;
    if (!onx_cancel_is_set(deadline)) {
        onx_cancel_now(deadline);
        return;
    }
    static const char text[] = "onx: error: this takes longer than --timeout allows\n";
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    remove_temps();
    _exit(CLI_FAULT);
}

bool cli_deadline_begin(const cli_call *call, double seconds)
{
    const double whole = floor(seconds);
    const struct itimerval timer = { .it_value = { (time_t)whole, (suseconds_t)((seconds - whole) * 1e6) },
                                     .it_interval = { GRACE_SECONDS, 0 } };
    struct sigaction action = { .sa_handler = on_deadline, .sa_flags = SA_RESTART, .sa_mask = set_of_ends() };
    if (onx_cancel_new(call->cx, &deadline) != ONX_OK)
        return false;
    onx_ctx_set_cancel(call->cx, deadline);
    if (sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0)
        return true;
    cli_error(call, "--timeout: the system has no timer: %s", strerror(errno));
    return false;
}

bool cli_deadline_end(void)
{
    if (!deadline)
        return false;
    setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { 0, 0 } }, NULL);
    signal(SIGALRM, SIG_IGN); /* a pending one */
    const bool over = onx_cancel_is_set(deadline);
    onx_cancel_free(deadline);
    deadline = NULL;
    return over;
}

/* ---- a mapped file that was cut short ----
 * The library maps files. If another process truncates a mapped file, the next access beyond its end raises SIGBUS. The
 * handler cannot recover; it only prints a message with functions that are allowed in a signal handler. The file and
 * offset are looked up in the system's list of mappings, so the program keeps none. */

enum { LINE_ROOM = 8192 }; /* maximum length of a line: addresses, and a path of up to 4096 bytes with escapes */

typedef struct out_text {
    char text[LINE_ROOM];
    size_t used;
} out_text;

static void put(out_text *out, const char *text)
{
    for (; *text && out->used < sizeof(out->text); text++)
        out->text[out->used++] = *text;
}

/* Bytes that a terminal might interpret are printed as their codes. */
static void put_path(out_text *out, const char *path)
{
    static const char digits[] = "0123456789abcdef";
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        char escaped[] = { '\\', 'x', digits[c >> 4], digits[c & 15], 0 }, plain[] = { *path, 0 };
        put(out, c >= ' ' && c < 0x7f ? plain : escaped);
    }
}

static void put_number(out_text *out, uint64_t n)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    put(out, digits + at);
}

static uint64_t hexadecimal(const char **at)
{
    uint64_t n = 0;
    for (;; ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9')
            n = n << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            n = n << 4 | (uint64_t)(c - 'a' + 10);
        else
            return n;
    }
}

/* Does the line "from-to rights offset device inode path" contain the address? If so, returns its path and the offset
 * in the file. */
static const char *mapped_path(const char *line, uint64_t address, uint64_t *byte)
{
    uint64_t from = hexadecimal(&line);
    if (*line++ != '-')
        return NULL;
    uint64_t to = hexadecimal(&line);
    if (address < from || address >= to || *line++ != ' ')
        return NULL;
    while (*line && *line++ != ' ')
        ;
    *byte = hexadecimal(&line) + (address - from);
    while (*line && *line != '/')
        line++;
    return *line ? line : NULL;
}

/* False if the system does not tell. */
static bool put_place_of(out_text *out, uint64_t address)
{
    char line[LINE_ROOM];
    size_t used = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t got; (got = read(fd, line + used, sizeof(line) - 1 - used)) > 0;) {
        size_t have = used + (size_t)got, start = 0;
        for (size_t i = used; i < have; i++) {
            uint64_t byte;
            if (line[i] != '\n')
                continue;
            line[i] = 0;
            const char *path = mapped_path(line + start, address, &byte);
            if (path) {
                put_path(out, path);
                put(out, ": byte ");
                put_number(out, byte);
                put(out, ": ");
                close(fd);
                return true;
            }
            start = i + 1;
        }
        used = have - start;
        memmove(line, line + start, used);
        if (used == sizeof(line) - 1)
            break;
    }
    close(fd);
    return false;
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    out_text out = { .used = 0 };
    (void)signal_number;
    (void)context;
    while (atomic_flag_test_and_set(&said)) /* another thread is printing, and ends the process */
        pause();
    if (info->si_code != BUS_ADRERR)
        put(&out, "onx: error: memory could not be read (bus error)\n");
    else if (put_place_of(&out, (uint64_t)(uintptr_t)info->si_addr))
        put(&out, "error: the file was cut short while it was read\n");
    else
        put(&out, "onx: error: a file was cut short while it was read\n");
    ssize_t written = write(STDERR_FILENO, out.text, out.used);
    (void)written;
    remove_temps();
    _exit(CLI_MISUSE);
}

void cli_handle_signals(void)
{
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    signal(SIGPIPE, SIG_IGN); /* failed writes are reported as errors */
    signal(SIGXFSZ, SIG_IGN);
    sigaction(SIGBUS, &action, NULL);
    handle_ends();
}
