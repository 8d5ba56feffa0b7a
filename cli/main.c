/* main.c - the program `onx`: finds the command, creates the context, runs the command, prints messages. */
#include "cli_opsets.h"
#include "cli_ranks.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define COMMAND(name) extern const cli_command cmd_##name;
#include "cli_commands.def"

const cli_command *const cli_commands[] = {
#define COMMAND(name) &cmd_##name,
#include "cli_commands.def"
    NULL
};

const cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

static const char *command_name(const void *from, int index)
{
    (void)from;
    return cli_commands[index] ? cli_commands[index]->name : NULL;
}

int cli_no_command(const char *name)
{
    cli_error(NULL, "no command \"%s\"", name);
    const char *near = cli_nearest(name, command_name, NULL);
    if (near)
        cli_hint("did you mean \"onx %s\"?", near);
    else
        cli_hint("\"onx help\" lists the commands");
    return CLI_MISUSE;
}

/* Has the reader closed standard output? Then no message is needed. */
static bool reader_left(void)
{
    struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR) != 0;
}

/* Flushes standard output and checks it: the call fails if the disk is full, for example. */
static int flush_output(int status)
{
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return status;
    int why = errno;
    if (!reader_left())
        cli_error(NULL, "cannot write standard output: %s", why ? strerror(why) : "an earlier write failed");
    return CLI_MISUSE;
}

static int run_with_operators(cli_call *call)
{
    cli_opsets opsets = { .count = 0 };
    onx_status opened = cli_opsets_open(call, &opsets);
    call->registry = opsets.registry;
    onx_ctx_set_registry(call->cx, opsets.registry);
    if (opened == ONX_OK)
        opened = cli_ranks_open(call);
    const int status = opened == ONX_OK ? call->command->run(call) : cli_exit(call, opened);
    cli_opsets_close(&opsets);
    call->registry = NULL;
    return status;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    cli_call call = { .command = command, .cx = onx_ctx_new(NULL) };
    /* Every word may be an operand or an option, so argc bounds all three lists. */
    size_t room = (size_t)argc + 1;
    call.operand = calloc(room, sizeof(*call.operand));
    call.given = calloc(room, sizeof(*call.given));
    call.given_value = calloc(room, sizeof(*call.given_value));
    int status = CLI_MISUSE;
    if (!call.cx || !call.operand || !call.given || !call.given_value || onx_ctx_guard_files(call.cx) != ONX_OK) {
        cli_error(&call, "out of memory");
    } else {
        cli_watch_temps(call.cx);
        status = cli_parse(&call, argc, argv);
        if (status < 0)
            status = run_with_operators(&call);
        cli_progress_end();
        status = flush_output(status);
        cli_report(&call);
        if (cli_deadline_end() && status == CLI_MISUSE) {
            cli_error(&call, "this takes longer than %s s", cli_value(&call, "timeout"));
            cli_hint("--timeout SECONDS sets the limit");
            status = CLI_FAULT;
        }
        /* The command may have continued after an error of the library, for example when it ran out of memory while
         * printing. */
        if (status == CLI_OK && call.told)
            status = CLI_MISUSE;
        /* Exceeding a memory limit is a fault of the model, not of the call. */
        if (status == CLI_MISUSE && cli_limit_was_hit())
            status = CLI_FAULT;
        cli_ranks_close(&call, status != CLI_OK);
    }
    free(call.operand);
    free(call.given);
    free(call.given_value);
    onx_ctx_free(call.cx);
    return status;
}

/* Scripts call --version before anything else, so it needs no set-up at all, not even memory. */
static int print_version(void)
{
    static char room[64];
    setvbuf(stdout, room, _IOFBF, sizeof room);
    fputs("onx " ONX_VERSION "\n", stdout);
    return flush_output(CLI_OK);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0))
        return print_version();
    cli_handle_signals();
    if (argc < 2) {
        cli_print_overview(stderr);
        return CLI_MISUSE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_print_overview(stdout);
        return flush_output(CLI_OK);
    }
    const cli_command *command = cli_find_command(argv[1]);
    return command ? run_command(command, argc - 2, argv + 2) : cli_no_command(argv[1]);
}
