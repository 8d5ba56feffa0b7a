/* cli.h - shared by the commands of the program.
 *
 * A command is one file, cmd_<name>.c, that defines `const cli_command cmd_<name>`, and one row in cli_commands.def.
 * Its options are a table, from which parsing, --help, man page and shell completion are derived. */
#ifndef ONX_CLI_H
#define ONX_CLI_H

#include <onx/base.h>
#include <onx/io.h>
#include <onx/ir.h>
#include <onx/op.h>

#include <stdio.h>

/* Exit statuses of every command. */
enum {
    CLI_OK = 0,    /* done, valid, all passed */
    CLI_FAULT = 1, /* the model, data or test is at fault */
    CLI_MISUSE = 2 /* the call is at fault: usage, unreadable file, no such name */
};

typedef struct cli_option {
    const char *name;    /* without dashes: "format" */
    char letter;         /* 'f' for -f, 0 for none */
    const char *value;   /* name of the value in help: "FILE"; NULL for a flag */
    const char *choices; /* "text|json": other values are refused; NULL: any value */
    const char *help;    /* one line, lower case */
} cli_option;

/* clang-format off */
/* Tables of options end with CLI_END. */
#define CLI_END { NULL, 0, NULL, NULL, NULL }
#define CLI_KINDS "model|graph|function|node|tensor|attribute|value-info|sparse-tensor|type|sequence|map|optional|operator-set"
#define CLI_FORMATS "onnx|onnxtxt|textproto|json"
#define CLI_OPTION_AS { "as", 0, "KIND", CLI_KINDS, "kind of the file, if it is not a model" }
#define CLI_OPTION_JSON { "json", 0, NULL, NULL, "print a machine-readable answer on standard output" }
#define CLI_OPTION_OUTPUT { "output", 'o', "FILE", NULL, "output file; - is standard output" }
#define CLI_OPTION_TO { "to", 0, "FORMAT", CLI_FORMATS, "format of the output, if its extension does not tell it" }
#define CLI_OPTION_CHECKPOINT { "checkpoint", 0, "sqrt|N", NULL, "save memory at the cost of time: compute activations again for the gradients instead of keeping them, in at most N segments or (sqrt) in as many as need the least memory" }
/* clang-format on */

typedef struct cli_call cli_call;

typedef struct cli_command {
    const char *name;
    const char *summary;  /* one line, lower case, no full stop */
    const char *operands; /* "FILE", "IN OUT", "DIR...", "[NAME]": also determines how many there may be */
    const char
        *help; /* paragraphs, filled when printed unless they start with a blank; ends with a newline; "" for none */
    const char *example;        /* lines to try, each ending with a newline */
    const cli_option *options;  /* NULL for none */
    int (*run)(cli_call *call); /* returns an exit status; diagnostics left in the context are printed afterwards */
} cli_command;

struct cli_call {
    const cli_command *command;
    onx_ctx *cx;          /* its limits are those of the command line */
    const char **operand; /* operand_count of them */
    int operand_count;
    onx_registry *registry; /* for --opset-doc and --library, set in `cx`; NULL: neither is given */
    const char *input;      /* what diagnostics are about: name of the current file, or NULL */
    /* parsed options; query them with cli_has and cli_value */
    const cli_option **given;
    const char **given_value;
    int given_count;
    bool stdin_taken;
    struct cli_ranks *ranks; /* the ranks that this process belongs to (cli_ranks.h); NULL: it is alone */
    bool told;               /* an error has been printed */
};

/* ---- options ---- */

bool cli_has(const cli_call *call, const char *name);
/* The last value given, or NULL. */
const char *cli_value(const cli_call *call, const char *name);
/* The `index`th value (from 0) of an option that may be repeated; NULL past the last one. */
const char *cli_value_at(const cli_call *call, const char *name, int index);
/* The value as an integer in min..max; *out is unchanged if the option is not given. The units K, M, G, T (powers of
 * 1024) are accepted. False, with the error printed, for other values: the command returns CLI_MISUSE then. */
bool cli_number(const cli_call *call, const char *name, uint64_t min, uint64_t max, uint64_t *out);
/* The kind named by --as; ONX_KIND_MODEL if it is not given. */
onx_kind cli_kind(const cli_call *call);
/* The same for a floating-point number of at least `min` and at most `max`; infinities are refused. */
bool cli_real(const cli_call *call, const char *name, double min, double max, double *out);
/* The value of --checkpoint for onx_grad_options; unchanged if it is not given. */
bool cli_checkpoint(const cli_call *call, int32_t *out);
/* The `index`th value (from 0) of an option with values NAME=N, where N is from 0 to 2^63 - 1. Returns 1 if there is
 * one, 0 past the last one, and -1, with the error printed, for an invalid value or a repeated name. `unnamed`: N and
 * =N are also accepted, with an empty name. */
int cli_named_number(const cli_call *call, const char *option, int index, bool unnamed, onx_str *name, int64_t *number);
/* Splits "NAME=REST", a value of `option`, at the last '='. False, with the error printed, if it is malformed. */
bool cli_split(const cli_call *call, const char *option, const char *text, onx_str *name, const char **rest);

/* ---- files ---- */

/* onx_load with the options of the command line; the file becomes call->input. */
onx_status cli_load(cli_call *call, const char *path, onx_kind kind, onx_doc **out);
/* The same with a given format; ONX_FORMAT_AUTO as in cli_load. */
onx_status cli_load_as(cli_call *call, const char *path, onx_kind kind, onx_format format, onx_doc **out);
/* onx_load_bytes with the options of the command line. Files that were found in a folder, not named by the user, are
 * not waited for if they are FIFOs; this also holds for the functions above. */
onx_status cli_load_bytes(cli_call *call, const char *path, onx_buffer *out);
/* The format that an option names; ONX_FORMAT_AUTO if it is not given. */
onx_format cli_format(const cli_call *call, const char *option);
/* The format of an output file from --to or its extension, binary for standard output; ONX_FORMAT_AUTO if unknown. */
onx_format cli_format_out(const cli_call *call, const char *path);
/* A sink for standard output; failures are reported when the program ends. */
onx_sink cli_stdout(void);
/* The exit status for a status of the library. */
int cli_exit(cli_call *call, onx_status status);

static inline bool cli_ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

/* The name of a symbolic dimension; empty for others and for NULL. */
static inline onx_str cli_dim_name(const onx_dimension *dim)
{
    return dim && ONX_HAS(dimension, dim, dim_param) ? onx_view(dim->dim_param) : onx_str_make(NULL, 0);
}

/* ---- messages on standard error ---- */

/* Installs signal handlers: from here on SIGPIPE is ignored, truncation of a mapped file is reported, and no signal
 * that can be caught leaves a temporary file behind. */
void cli_handle_signals(void);
/* Registers the temporary files of the context with the handlers. */
void cli_watch_temps(onx_ctx *cx);
/* Starts the timeout: cancels the work of the call's context after this time, and ends the program if that has no
 * effect soon. False after an error message. */
bool cli_deadline_begin(const cli_call *call, double seconds);
/* Stops the timeout; has to be called before the context is closed. True if the time was exceeded. */
bool cli_deadline_end(void);

/* Prints "onx check: error: ..." and returns CLI_MISUSE. Control characters in the text are escaped. */
int cli_error(const cli_call *call, const char *format, ...) ONX_PRINTF(2, 3);
/* Has cli_error been called? */
bool cli_said_error(void);
/* Prints "onx check: warning: ..."; the call continues. */
void cli_warn(const cli_call *call, const char *format, ...) ONX_PRINTF(2, 3);
/* Prints a line below the error: "hint: ...". */
void cli_hint(const char *format, ...) ONX_PRINTF(1, 2);
/* Prints the diagnostics of the context, with file name, position, excerpt and hint, and clears them. */
void cli_report(cli_call *call);
/* Was any of the printed diagnostics about a limit? */
bool cli_limit_was_hit(void);
/* The same on standard output, for commands whose result is findings about a model: on a terminal, the findings of one
 * item are grouped under its name. */
void cli_report_findings(cli_call *call);
/* Shows the progress of long work, on a terminal only: done of total (0: unknown), redrawn at most ten times per
 * second. cli_progress_end removes the bar; call it before printing anything else. */
void cli_progress(const char *what, uint64_t done, uint64_t total);
void cli_progress_end(void);

/* ---- the look of text on a terminal ---- */

typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE, CLI_CYAN } cli_style;
/* The escape sequence, or "" if the stream is not a terminal or colours are off. CLI_PLAIN ends a style. */
const char *cli_color(FILE *to, cli_style style);
/* Sets the mode: auto, always or never; initially auto. */
void cli_set_color(const char *when);
bool cli_is_terminal(FILE *to);
/* Can block and line-drawing characters be printed? */
bool cli_is_unicode(void);
/* Columns of the terminal, 80 if there is none. */
unsigned cli_width(void);

/* Prints text from a file safely: control characters and invalid UTF-8 are printed as \xNN. */
void cli_put_text(FILE *to, onx_str text);
/* The number of columns that cli_put_text uses for it. */
unsigned cli_columns(onx_str text);
/* The longest prefix of the text that fits into `columns`. */
onx_str cli_fitting(onx_str text, unsigned columns);
/* Prints the text in exactly `columns` columns: padded with spaces on the right, or shortened in the middle. */
void cli_put_field(FILE *to, onx_str text, unsigned columns);
/* Prints text filled between column `indent`, where the cursor is, and `width`; ends the line. */
void cli_put_filled(FILE *to, onx_str text, unsigned indent, unsigned width);
/* The width for filled text: that of the terminal, but at most 100, because longer lines are hard to read. */
unsigned cli_prose_width(void);
/* Prints a horizontal bar of at most `columns` columns for part of whole. */
void cli_put_bar(FILE *to, double part, double whole, unsigned columns);

/* The length and code point of the UTF-8 character at the start of a non-empty text; 0 if it is invalid. */
size_t cli_utf8_char(onx_str s, uint32_t *c);
/* The same for characters that XML allows; of control characters only tabs and line ends. */
size_t cli_xml_char(onx_str s, uint32_t *c);
/* Writes text as XML character data, escaped. */
void cli_put_xml(FILE *to, onx_str text);

typedef struct cli_small {
    char text[48];
} cli_small;
cli_small cli_bytes(uint64_t bytes);      /* "44.7 MiB" */
cli_small cli_thousands(uint64_t number); /* "11,689,512" */
/* Time on a clock that never goes back, in seconds. */
double cli_now(void);
/* "12.3 us", "4.56 ms" or "7.89 s": three digits and a suitable unit. */
cli_small cli_duration(double seconds);
/* "1.82 G", "64.2 k": three digits and a decimal prefix, for counts. */
cli_small cli_count(double number);
/* "float[N,3,224,224]", "seq(float[N])" and so on; like snprintf, so it may be truncated. */
size_t cli_type(const onx_type *type, char *buf, size_t size);

/* ---- JSON ---- */

/* Writes JSON step by step, and takes care of commas, indentation and escapes. Keys are NULL inside of arrays. */
typedef struct cli_json {
    FILE *to;
    unsigned depth;
    bool has_items; /* in the innermost open object or array */
} cli_json;
void cli_json_open(cli_json *json, const char *key, char bracket); /* '{' or '[' */
void cli_json_close(cli_json *json, char bracket);                 /* '}' or ']'; the last one ends the line */
void cli_json_text(cli_json *json, const char *key, onx_str value);
void cli_json_cstr(cli_json *json, const char *key, const char *value); /* NULL prints null */
void cli_json_int(cli_json *json, const char *key, int64_t value);
void cli_json_uint(cli_json *json, const char *key, uint64_t value);
void cli_json_opsets(cli_json *json, onx_operator_set_id *const *imports, uint32_t count);
void cli_json_real(cli_json *json, const char *key, double value); /* null when not finite */
void cli_json_bool(cli_json *json, const char *key, bool value);

/* Begins an item; the caller writes its text, a JSON value, to the stream. */
FILE *cli_json_raw(cli_json *json, const char *key);
/* Writes a string with quotes and escapes. */
void cli_json_put_string(FILE *to, onx_str text);

/* ---- the command table (for help and completion) ---- */

extern const cli_command *const cli_commands[]; /* ends with NULL */
extern const cli_option cli_common_options[];
/* The common options that the command does not define itself. */
const cli_option *cli_common_of(const cli_command *command);
const cli_command *cli_find_command(const char *name);
/* Does the command have the option, either its own or a common one? */
bool cli_knows_option(const cli_command *command, const char *name);
/* Prints that there is no such command, suggests the nearest one, and returns CLI_MISUSE. */
int cli_no_command(const char *name);
/* The candidate nearest to the word, or NULL if none is close; candidate(from, index) returns NULL past the last
 * one. */
const char *cli_nearest(const char *word, const char *(*candidate)(const void *from, int index), const void *from);
/* Parses the command line into the call. Returns -1 to continue, else an exit status. */
int cli_parse(cli_call *call, int argc, char **argv);
void cli_print_help(const cli_command *command, FILE *to);
void cli_print_overview(FILE *to);

#endif
