/* cmd_completion.c - shell completion from the tables. */
#include "cli.h"

static void put_options(const cli_option *o)
{
    for (; o && o->name; o++) {
        if (o->letter)
            printf(" -%c", o->letter);
        printf(" --%s", o->name);
    }
}

/* case "COMMAND --option" in: the words that may follow. */
static void put_choices(const char *command, const cli_option *o)
{
    for (; o && o->name; o++) {
        if (!o->choices)
            continue;
        printf("    %s' --%s') words='", command, o->name);
        for (const char *p = o->choices; *p; p++)
            putchar(*p == '|' ? ' ' : *p);
        puts("' ;;");
    }
}

static int run_completion(cli_call *call)
{
    if (strcmp(call->operand[0], "bash") != 0)
        return cli_error(call, "no completion for \"%s\"; there is one for bash", call->operand[0]);
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
          "    'completion completion') words=bash ;;\n"
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
        put_options(cli_common_options);
        puts("' ;;");
    }
    fputs("    esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "}\n"
          "complete -o filenames -F _onx onx\n",
          stdout);
    return CLI_OK;
}

const cli_command cmd_completion = {
    .name = "completion",
    .summary = "print shell completion for bash",
    .operands = "SHELL",
    .help = "SHELL is bash. Commands, options and the values of options are completed, and file names.\n",
    .example = "eval \"$(onx completion bash)\"\n"
               "onx completion bash > ~/.local/share/bash-completion/completions/onx\n",
    .options = NULL,
    .run = run_completion,
};
