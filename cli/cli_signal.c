/* cli_signal.c - signals: nothing ends the program by one. */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

/* ---- a mapped file that was cut short ----
 * The library maps files. Where another process cuts one short meanwhile, the next look at what is gone raises SIGBUS.
 * From in here nothing can be undone, only said, and with nothing but what a signal handler may call. Which file it was
 * and where is read from the system's own list of mappings, so that nobody has to keep one. */

enum { LINE_ROOM = 8192 }; /* a line of the list: addresses, and a path of up to 4096 bytes with some of them escaped */

typedef struct out_text {
    char text[LINE_ROOM];
    size_t used;
} out_text;

static void put(out_text *out, const char *text)
{
    for (; *text && out->used < sizeof(out->text); text++)
        out->text[out->used++] = *text;
}

/* What a terminal might take for more than a letter is shown by its code. */
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

/* Does the line "from-to rights offset device inode path" have the address? Then its path, and the byte of the file. */
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

/* False when the system does not say. */
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
    while (atomic_flag_test_and_set(&said)) /* another thread is saying it, and ends the process */
        pause();
    if (info->si_code != BUS_ADRERR)
        put(&out, "onx: error: memory could not be read (bus error)\n");
    else if (put_place_of(&out, (uint64_t)(uintptr_t)info->si_addr))
        put(&out, "error: the file was cut short while it was read\n");
    else
        put(&out, "onx: error: a file was cut short while it was read\n");
    ssize_t written = write(STDERR_FILENO, out.text, out.used);
    (void)written;
    _exit(CLI_MISUSE);
}

void cli_handle_signals(void)
{
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    signal(SIGPIPE, SIG_IGN); /* writes that fail are errors to report */
    signal(SIGXFSZ, SIG_IGN);
    sigaction(SIGBUS, &action, NULL);
}
