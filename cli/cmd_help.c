/* cmd_help.c - prints help from the option tables, for terminals and as man pages. */
#include "cli.h"

/* ---- at a terminal ---- */

static void put_heading(FILE *to, const char *text)
{
    fprintf(to, "\n%s%s%s\n", cli_color(to, CLI_BOLD), text, cli_color(to, CLI_PLAIN));
}

/* Fills the words of one paragraph with the indentation `indent`; the cursor is at that column already. */
static void fill(FILE *to, const char *text, size_t len, unsigned indent)
{
    cli_put_filled(to, onx_str_make(text, len), indent, cli_prose_width());
}

void cli_print_overview(FILE *to)
{
    fprintf(to, "%sonx%s - all of ONNX in C: reads, writes, checks, explains and runs models\n",
            cli_color(to, CLI_BOLD), cli_color(to, CLI_PLAIN));
    fputs("\nusage: onx COMMAND [option...] FILE...\n       onx COMMAND --help | onx --version\n", to);
    put_heading(to, "Commands");
    for (size_t i = 0; cli_commands[i]; i++) {
        fprintf(to, "  %s%-11s%s ", cli_color(to, CLI_CYAN), cli_commands[i]->name, cli_color(to, CLI_PLAIN));
        fill(to, cli_commands[i]->summary, strlen(cli_commands[i]->summary), 14);
    }
    put_heading(to, "Formats, by extension and content");
    fputs("  .onnx .pb            binary\n"
          "  .onnxtxt             ONNX text\n"
          "  .textproto .pbtxt    protobuf text\n"
          "  .json                protobuf JSON\n",
          to);
    put_heading(to, "Exit status");
    fputs("  0   done, valid, all passed\n"
          "  1   the model, the data or a test is at fault\n"
          "  2   the call is at fault: usage, unreadable file, no such name\n",
          to);
}

/* Prints "-o, --output FILE". */
static int option_text(const cli_option *o, char *buf, size_t size)
{
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    return snprintf(buf, size, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
}

/* Prints paragraphs, filled; lines that start with a blank are printed unchanged. */
static void put_paragraphs(FILE *to, const char *text)
{
    while (*text) {
        size_t len = 0;
        if (*text == ' ' || *text == '\n') {
            len = strcspn(text, "\n");
            fprintf(to, "%.*s\n", (int)len, text);
        } else {
            while (text[len] &&
                   !(text[len] == '\n' && (text[len + 1] == '\n' || text[len + 1] == ' ' || !text[len + 1])))
                len++;
            fill(to, text, len, 0);
        }
        text += len;
        text += *text == '\n';
    }
}

/* Prints one option; the choices of its value are listed if they are few. */
static void put_option(FILE *to, const cli_option *o)
{
    char text[64];
    int len = option_text(o, text, sizeof(text));
    fprintf(to, "  %s%-*s%s", cli_color(to, CLI_CYAN), len > 28 ? len + 2 : 30, text, cli_color(to, CLI_PLAIN));
    if (len > 28)
        fprintf(to, "\n%32s", "");
    fill(to, o->help, strlen(o->help), 32);
    if (!o->choices)
        return;
    char words[512];
    snprintf(words, sizeof(words), "%s", o->choices);
    for (char *p = words; *p; p++)
        *p = *p == '|' ? ' ' : *p;
    fprintf(to, "%32s%s", "", cli_color(to, CLI_DIM));
    fill(to, words, strlen(words), 32);
    fputs(cli_color(to, CLI_PLAIN), to);
}

void cli_print_help(const cli_command *command, FILE *to)
{
    fprintf(to, "%sonx %s%s - %s\n", cli_color(to, CLI_BOLD), command->name, cli_color(to, CLI_PLAIN),
            command->summary);
    fprintf(to, "\nusage: onx %s [option...]%s%s\n", command->name, *command->operands ? " " : "", command->operands);
    if (*command->help) {
        fputc('\n', to);
        put_paragraphs(to, command->help);
    }
    put_heading(to, "Options");
    for (const cli_option *o = command->options; o && o->name; o++)
        put_option(to, o);
    for (const cli_option *o = cli_common_of(command); o->name; o++)
        put_option(to, o);
    put_heading(to, strchr(command->example, '\n') == strrchr(command->example, '\n') ? "Example" : "Examples");
    for (const char *line = command->example; *line; line += strcspn(line, "\n"), line += *line == '\n')
        fprintf(to, "  %.*s\n", (int)strcspn(line, "\n"), line);
}

/* ---- man pages ---- */

static void put_roff(const char *text)
{
    for (const char *p = text; *p; p++) {
        if ((*p == '.' || *p == '\'') && (p == text || p[-1] == '\n'))
            fputs("\\&", stdout);
        if (*p == '-')
            fputs("\\-", stdout);
        else if (*p == '\\')
            fputs("\\e", stdout);
        else if (*p == '\n' && p[1] == '\n')
            fputs("\n.PP", stdout);
        else
            fputc(*p, stdout);
    }
}

static void put_roff_option(const cli_option *o)
{
    char text[64];
    option_text(o, text, sizeof(text));
    fputs(".TP\n.B ", stdout);
    put_roff(text);
    fputc('\n', stdout);
    put_roff(o->help);
    fputs(".\n", stdout);
    if (!o->choices)
        return;
    fputs("One of ", stdout);
    for (const char *at = o->choices; *at; at++) {
        if (*at == '|')
            fputs(", ", stdout);
        else
            fputc(*at, stdout);
    }
    fputs(".\n", stdout);
}

static void man_command(const cli_command *command)
{
    printf(".TH ONX\\-%s 1 \"\" \"onx %s\" \"User commands\"\n.SH NAME\nonx\\-%s \\- ", command->name, ONX_VERSION,
           command->name);
    put_roff(command->summary);
    printf("\n.SH SYNOPSIS\n.B onx %s\n[option...] ", command->name);
    put_roff(command->operands);
    if (*command->help) {
        fputs("\n.SH DESCRIPTION\n", stdout);
        put_roff(command->help);
    }
    fputs("\n.SH OPTIONS\n", stdout);
    for (const cli_option *o = command->options; o && o->name; o++)
        put_roff_option(o);
    for (const cli_option *o = cli_common_of(command); o->name; o++)
        put_roff_option(o);
    fputs(".SH EXAMPLES\n.EX\n", stdout);
    put_roff(command->example);
    fputs(".EE\n.SH SEE ALSO\n.BR onx (1)\n", stdout);
}

static void man_program(void)
{
    printf(
        ".TH ONX 1 \"\" \"onx %s\" \"User commands\"\n.SH NAME\nonx \\- read, write, check, transform, run and train ONNX models\n"
        ".SH SYNOPSIS\n.B onx\n.I command\n[option...] file...\n"
        ".SH DESCRIPTION\nEach command has a page of its own and prints it shorter with \\fB\\-\\-help\\fR. "
        "The file name \\fB\\-\\fR is standard input or output. Formats are told by extension and content: "
        "\\fI.onnx\\fR and \\fI.pb\\fR binary, \\fI.onnxtxt\\fR ONNX text, \\fI.textproto\\fR and \\fI.pbtxt\\fR protobuf text, "
        "\\fI.json\\fR protobuf JSON.\n.SH COMMANDS\n",
        ONX_VERSION);
    for (size_t i = 0; cli_commands[i]; i++) {
        printf(".TP\n.BR onx\\-%s (1)\n", cli_commands[i]->name);
        put_roff(cli_commands[i]->summary);
        fputs(".\n", stdout);
    }
    fputs(".SH OPTIONS\nCommon to all commands:\n", stdout);
    for (const cli_option *o = cli_common_options; o->name; o++)
        put_roff_option(o);
    fputs(
        ".SH EXIT STATUS\n.TP\n.B 0\nDone, valid, all passed.\n.TP\n.B 1\nThe model, the data or a test is at fault.\n"
        ".TP\n.B 2\nThe call is at fault: usage, unreadable file, no such name.\n"
        ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nWhen set and not empty, no colours are used.\n",
        stdout);
}

/* ---- optional libraries ---- */

static void put_libraries(void)
{
    onx_library_info l;
    for (uint32_t i = 0; onx_library(i, &l); i++) {
        printf("%-12s %-40s ", l.name, l.what);
        if (l.file)
            puts(l.file);
        else if (l.built)
            printf("not on this machine (Debian has it in %s)\n", l.package);
        else
            puts("left out of this build");
    }
}

/* ---- the command ---- */

static int run_help(cli_call *call)
{
    if (cli_has(call, "list")) {
        for (size_t i = 0; cli_commands[i]; i++)
            puts(cli_commands[i]->name);
        return CLI_OK;
    }
    if (cli_has(call, "libraries")) {
        put_libraries();
        return CLI_OK;
    }
    const cli_command *command = NULL;
    if (call->operand_count) {
        command = cli_find_command(call->operand[0]);
        if (!command)
            return cli_no_command(call->operand[0]);
    }
    if (cli_has(call, "man") && command)
        man_command(command);
    else if (cli_has(call, "man"))
        man_program();
    else if (command)
        cli_print_help(command, stdout);
    else
        cli_print_overview(stdout);
    return CLI_OK;
}

static const cli_option options[] = { { "man", 0, NULL, NULL, "print the man page source instead" },
                                      { "list", 0, NULL, NULL, "print the names of the commands, one per line" },
                                      { "libraries", 0, NULL, NULL,
                                        "print which optional libraries are there, which some operators need" },
                                      CLI_END };

const cli_command cmd_help = {
    .name = "help",
    .summary = "describe a command, or list all commands",
    .operands = "[COMMAND]",
    .help = "",
    .example = "onx help convert\n"
               "onx help --man check | man -l -\n"
               "onx help --libraries\n",
    .options = options,
    .run = run_help,
};
