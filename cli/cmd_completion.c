/* cmd_completion.c - prints shell completion scripts, generated from the command tables. */
#include "cli.h"

/* ---- bash ---- */

static void put_options(const cli_option *o)
{
    for (; o && o->name; o++) {
        if (o->letter)
            printf(" -%c", o->letter);
        printf(" --%s", o->name);
    }
}

/* The choices of an option with blanks between them. */
static void put_words(const char *choices)
{
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* case "COMMAND --option" in: the words that may follow. */
static void put_choices(const char *command, const cli_option *o)
{
    for (; o && o->name; o++) {
        if (!o->choices)
            continue;
        printf("    %s' --%s') words='", command, o->name);
        put_words(o->choices);
        puts("' ;;");
    }
}

static void complete_bash(void)
{
    fputs(
        "# bash completion for onx, printed by: onx completion bash\n"
        "_onx() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W '",
        stdout);
    for (size_t i = 0; cli_commands[i]; i++)
        printf("%s ", cli_commands[i]->name);
    fputs("--help --version' -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case \"$word\" in -*) ;; *) case \"$command $before\" in\n",
          stdout);
    for (size_t i = 0; cli_commands[i]; i++)
        put_choices(cli_commands[i]->name, cli_commands[i]->options);
    put_choices("*", cli_common_options);
    fputs("    'help help') words='", stdout);
    for (size_t i = 0; cli_commands[i]; i++)
        printf("%s ", cli_commands[i]->name);
    fputs("' ;;\n"
          "    'completion completion') words='bash fish zsh' ;;\n"
          "    esac ;; esac\n"
          "    if [ -n \"$words\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case \"$word\" in -*) ;; *) COMPREPLY=($(compgen -f -- \"$word\")); return ;; esac\n"
          "    case \"$command\" in\n",
          stdout);
    for (size_t i = 0; cli_commands[i]; i++) {
        printf("    %s) words='", cli_commands[i]->name);
        put_options(cli_commands[i]->options);
        put_options(cli_common_of(cli_commands[i]));
        puts("' ;;");
    }
    fputs("    esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "}\n"
          "complete -o filenames -F _onx onx\n",
          stdout);
}

/* ---- shared by zsh and fish ---- */

/* Does the value name something in the file system? */
static bool is_path(const cli_option *o)
{
    return o->value && (strstr(o->value, "FILE") || strstr(o->value, "DIR"));
}

/* The kind of operands that a command takes if they are not files: "COMMAND", "SHELL" or NULL. */
static const char *operand_word(const cli_command *c)
{
    return strstr(c->operands, "COMMAND") ? "COMMAND" : strstr(c->operands, "SHELL") ? "SHELL" : NULL;
}

static bool takes_files(const cli_command *c)
{
    return *c->operands && !operand_word(c) && strcmp(c->operands, "[NAME]") != 0;
}

/* Text inside of '...', with a backslash before each character of `special`. */
static void put_quoted(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", stdout);
        else if (strchr(special, *text))
            putchar('\\');
        putchar(*text);
    }
}

/* ---- zsh ---- */

static void zsh_spec(const cli_option *o, bool letter)
{
    if (letter)
        printf(" \\\n        '*-%c%s[", o->letter, o->value ? "+" : "");
    else
        printf(" \\\n        '*--%s%s[", o->name, o->value ? "=" : "");
    put_quoted(o->help, "[]:\\");
    putchar(']');
    if (o->value) {
        putchar(':');
        put_quoted(o->value, "[]:\\");
        putchar(':');
        if (o->choices) {
            putchar('(');
            put_words(o->choices);
            putchar(')');
        } else if (is_path(o)) {
            fputs("_files", stdout);
        }
    }
    putchar('\'');
}

static void zsh_options(const cli_option *o)
{
    for (; o && o->name; o++) {
        if (o->letter)
            zsh_spec(o, true);
        zsh_spec(o, false);
    }
}

static void complete_zsh(void)
{
    fputs("#compdef onx\n"
          "# zsh completion for onx, printed by: onx completion zsh\n"
          "_onx() {\n"
          "    local -a commands\n"
          "    commands=(\n",
          stdout);
    for (size_t i = 0; cli_commands[i]; i++) {
        printf("        '%s:", cli_commands[i]->name);
        put_quoted(cli_commands[i]->summary, ":\\");
        puts("'");
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $command in\n",
          stdout);
    for (size_t i = 0; cli_commands[i]; i++) {
        const cli_command *c = cli_commands[i];
        const char *operand = operand_word(c);
        printf("    %s)\n        _arguments", c->name);
        zsh_options(c->options);
        zsh_options(cli_common_of(c));
        if (takes_files(c))
            fputs(" \\\n        '*:file:_files'", stdout);
        else if (operand && strcmp(operand, "SHELL") == 0)
            fputs(" \\\n        '1:shell:(bash fish zsh)'", stdout);
        else if (operand) {
            fputs(" \\\n        '1:command:(", stdout);
            for (size_t k = 0; cli_commands[k]; k++)
                printf("%s%s", k ? " " : "", cli_commands[k]->name);
            fputs(")'", stdout);
        }
        puts("\n        ;;");
    }
    fputs("    esac\n"
          "}\n"
          "if [ \"$funcstack[1]\" = _onx ]; then _onx \"$@\"; else compdef _onx onx; fi\n",
          stdout);
}

/* ---- fish ---- */

/* Inside quotes, fish needs a backslash before a backslash and before a quote. */
static void fish_description(const char *text)
{
    fputs(" -d '", stdout);
    for (; *text; text++)
        printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    puts("'");
}

static void fish_options(const char *condition, const cli_option *o)
{
    for (; o && o->name; o++) {
        printf("complete -c onx -n '%s' -l %s", condition, o->name);
        if (o->letter)
            printf(" -s %c", o->letter);
        if (o->choices) {
            fputs(" -x -a '", stdout);
            put_words(o->choices);
            putchar('\'');
        } else if (o->value) {
            fputs(is_path(o) ? " -r -F" : " -x", stdout);
        }
        fish_description(o->help);
    }
}

static void complete_fish(void)
{
    puts("# fish completion for onx, printed by: onx completion fish\n"
         "complete -c onx -f\n"
         "complete -c onx -n __fish_use_subcommand -l help -d 'show help'\n"
         "complete -c onx -n __fish_use_subcommand -l version -d 'print the version'");
    for (size_t i = 0; cli_commands[i]; i++) {
        const cli_command *c = cli_commands[i];
        const char *operand = operand_word(c);
        char condition[80];
        printf("complete -c onx -n __fish_use_subcommand -a %s", c->name);
        fish_description(c->summary);
        snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s", c->name);
        if (takes_files(c))
            printf("complete -c onx -n '%s' -F\n", condition);
        else if (operand && strcmp(operand, "SHELL") == 0)
            printf("complete -c onx -n '%s' -a 'bash fish zsh'\n", condition);
        else if (operand) {
            printf("complete -c onx -n '%s' -a '", condition);
            for (size_t k = 0; cli_commands[k]; k++)
                printf("%s%s", k ? " " : "", cli_commands[k]->name);
            puts("'");
        }
        fish_options(condition, c->options);
        fish_options(condition, cli_common_of(c));
    }
}

/* ---- the command ---- */

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = { { "bash", complete_bash }, { "fish", complete_fish }, { "zsh", complete_zsh } };

static int run_completion(cli_call *call)
{
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(call->operand[0], shells[i].name) == 0) {
            shells[i].print();
            return CLI_OK;
        }
    return cli_error(call, "no completion for \"%s\"; there is one for bash, fish and zsh", call->operand[0]);
}

const cli_command cmd_completion = {
    .name = "completion",
    .summary = "print shell completion for bash, fish or zsh",
    .operands = "SHELL",
    .help = "SHELL is bash, fish or zsh. Commands, options and the values of options are completed, and file names.\n",
    .example = "eval \"$(onx completion bash)\"\n"
               "onx completion bash > ~/.local/share/bash-completion/completions/onx\n"
               "onx completion zsh > ~/.zfunc/_onx\n"
               "onx completion fish > ~/.config/fish/completions/onx.fish\n",
    .options = NULL,
    .run = run_completion,
};
