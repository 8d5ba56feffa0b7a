/* cli.h - what the commands of the program share.
 *
 * A command is one file, cmd_<name>.c, that defines `const cli_command cmd_<name>`, and one row in cli_commands.def.
 * Its options are a table; parsing, --help, man page and shell completion all come from that. */
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
    const char *value;   /* what to call the value in help: "FILE"; NULL for a flag */
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
    const char *operands; /* "FILE", "IN OUT", "DIR...", "[NAME]": also how many there may be */
    const char
        *help; /* paragraphs, filled when printed unless they start with a blank; ends with a newline; "" for none */
    const char *example;        /* lines to try, each ending with a newline */
    const cli_option *options;  /* NULL for none */
    int (*run)(cli_call *call); /* returns an exit status; diagnostics left in the context are printed afterwards */
} cli_command;

struct cli_call {
    const cli_command *command;
    onx_ctx *cx;          /* with the limits of the command line */
    const char **operand; /* operand_count of them */
    int operand_count;
    onx_registry *registry; /* of --opset-doc and --library, which `cx` knows; NULL: neither is given */
    const char *input;      /* what diagnostics are about: name of the file in hand, or NULL */
    /* as parsed; ask with cli_has and cli_value */
    const cli_option **given;
    const char **given_value;
    int given_count;
    bool stdin_taken;
    struct cli_ranks *ranks; /* that this is one of (cli_ranks.h); NULL: it is alone */
    bool told;               /* an error has been printed */
};

/* ---- options ---- */

bool cli_has(const cli_call *call, const char *name);
/* The last value given, or NULL. */
const char *cli_value(const cli_call *call, const char *name);
/* The value given `index`th (from 0) for an option that may be repeated; NULL past the last. */
const char *cli_value_at(const cli_call *call, const char *name, int index);
/* The value as a number in min..max; `*out` keeps its value when the option is not given. Units K, M, G, T (powers of
 * 1024) are understood. False, with the error printed, for anything else: return CLI_MISUSE then. */
bool cli_number(const cli_call *call, const char *name, uint64_t min, uint64_t max, uint64_t *out);
/* The kind that --as names; ONX_KIND_MODEL when not given. */
onx_kind cli_kind(const cli_call *call);
/* The same for a real number of at least `min` and at most `max`; infinities are none. */
bool cli_real(const cli_call *call, const char *name, double min, double max, double *out);
/* The value of --checkpoint, as onx_grad_options has it; stays as it is when it is not given. */
bool cli_checkpoint(const cli_call *call, int32_t *out);
/* The `index`th value (from 0) of an option that takes NAME=N, N from 0 to 2^63 - 1: 1 when there is one, 0 past the
 * last, -1 with the error printed for anything else, and for a name that is given twice. `unnamed`: N and =N are
 * values, too, whose name is empty. */
int cli_named_number(const cli_call *call, const char *option, int index, bool unnamed, onx_str *name, int64_t *number);
/* "NAME=REST", a value of `option`, split at the last '='. False, with the error printed, when it is not like that. */
bool cli_split(const cli_call *call, const char *option, const char *text, onx_str *name, const char **rest);

/* ---- files ---- */

/* onx_load with what the command line says; the file becomes call->input. */
onx_status cli_load(cli_call *call, const char *path, onx_kind kind, onx_doc **out);
/* The same for a given format; ONX_FORMAT_AUTO as cli_load. */
onx_status cli_load_as(cli_call *call, const char *path, onx_kind kind, onx_format format, onx_doc **out);
/* onx_load_bytes with what the command line says. Names that were found in a folder, not given, are no FIFOs that are
 * waited for; that holds for the functions above as well. */
onx_status cli_load_bytes(cli_call *call, const char *path, onx_buffer *out);
/* The format that an option names; ONX_FORMAT_AUTO when it is not given. */
onx_format cli_format(const cli_call *call, const char *option);
/* The format of an output file by --to or its extension, binary for standard output; ONX_FORMAT_AUTO when nothing
 * tells. */
onx_format cli_format_out(const cli_call *call, const char *path);
/* A sink that writes to standard output; failures are reported when the program ends. */
onx_sink cli_stdout(void);
/* Exit status for a status of the library. */
int cli_exit(cli_call *call, onx_status status);

static inline bool cli_ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

/* The name of a symbolic dimension; empty for others, and for NULL. */
static inline onx_str cli_dim_name(const onx_dimension *dim)
{
    return dim && ONX_HAS(dimension, dim, dim_param) ? onx_view(dim->dim_param) : onx_str_make(NULL, 0);
}

/* ---- messages on standard error ---- */

/* From here on signals of failed writes are ignored, a file that is cut short while it is read is reported, and no
 * signal that can be caught leaves a temporary file. */
void cli_handle_signals(void);
/* The temporary files of the context are among those. */
void cli_watch_temps(onx_ctx *cx);
/* Cancels what is done with the context of the call after so long, and ends the program where that does not help soon.
 * False after a message. */
bool cli_deadline_begin(const cli_call *call, double seconds);
/* The end of it, in any case before that of the context; true when the time was over. */
bool cli_deadline_end(void);

/* Prints "onx check: error: ..." and returns CLI_MISUSE. Control characters in the text are escaped. */
int cli_error(const cli_call *call, const char *format, ...) ONX_PRINTF(2, 3);
/* Has it been called? */
bool cli_said_error(void);
/* Prints "onx check: warning: ..."; the call continues. */
void cli_warn(const cli_call *call, const char *format, ...) ONX_PRINTF(2, 3);
/* A line below the error: "hint: ..." */
void cli_hint(const char *format, ...) ONX_PRINTF(1, 2);
/* Prints the diagnostics of the context, with file name, place, excerpt and hint, and clears them. */
void cli_report(cli_call *call);
/* Was any of the printed diagnostics about a limit? */
bool cli_limit_was_hit(void);
/* The same on standard output, for the findings about a model that are what the command was asked for: on a terminal
 * those of one item are listed together under its name. */
void cli_report_findings(cli_call *call);
/* Progress of long work, on a terminal only: done of total (0: unknown), redrawn at most ten times a second.
 * cli_progress_end removes the bar; call it before printing anything else. */
void cli_progress(const char *what, uint64_t done, uint64_t total);
void cli_progress_end(void);

/* ---- the look of text on a terminal ---- */

typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE, CLI_CYAN } cli_style;
/* The escape sequence, or "" where the stream is no terminal or colours are off. CLI_PLAIN ends a style. */
const char *cli_color(FILE *to, cli_style style);
/* auto, always or never; auto until called. */
void cli_set_color(const char *when);
bool cli_is_terminal(FILE *to);
/* May block and line-drawing characters be used? */
bool cli_is_unicode(void);
/* Columns of the terminal, 80 where there is none. */
unsigned cli_width(void);

/* Text from a file, safe for a terminal: control characters and bytes that are no UTF-8 print as \xNN. */
void cli_put_text(FILE *to, onx_str text);
/* Columns that cli_put_text takes for it. */
unsigned cli_columns(onx_str text);
/* The longest start of the text that takes at most `columns`. */
onx_str cli_fitting(onx_str text, unsigned columns);
/* The same in exactly `columns` columns: padded with spaces on the right, or cut in the middle. */
void cli_put_field(FILE *to, onx_str text, unsigned columns);
/* The words of a text, filled between the column `indent`, where the cursor is, and `width`; ends the line. */
void cli_put_filled(FILE *to, onx_str text, unsigned indent, unsigned width);
/* Columns that prose is filled to: those of the terminal, but lines of more than 100 are hard to read. */
unsigned cli_prose_width(void);
/* A horizontal bar of at most `columns` columns for part of whole. */
void cli_put_bar(FILE *to, double part, double whole, unsigned columns);

/* The bytes and the number of the character of UTF-8 at the start of a text that is not empty; 0: it is none. */
size_t cli_utf8_char(onx_str s, uint32_t *c);
/* The same for what XML may hold, without control characters but for tabs and ends of lines. */
size_t cli_xml_char(onx_str s, uint32_t *c);
/* The text within XML, so that nothing of it is markup. */
void cli_put_xml(FILE *to, onx_str text);

typedef struct cli_small {
    char text[48];
} cli_small;
cli_small cli_bytes(uint64_t bytes);      /* "44.7 MiB" */
cli_small cli_thousands(uint64_t number); /* "11,689,512" */
/* Time on a clock that never goes back, in seconds. */
double cli_now(void);
/* "12.3 us", "4.56 ms" or "7.89 s": three digits, in the unit that suits. */
cli_small cli_duration(double seconds);
/* "1.82 G", "64.2 k": three digits and a decimal unit, for counts of operations. */
cli_small cli_count(double number);
/* "float[N,3,224,224]", "seq(float[N])" and so on; as snprintf, so it may be cut. */
size_t cli_type(const onx_type *type, char *buf, size_t size);

/* ---- JSON ---- */

/* Writes JSON step by step; commas, indentation and escapes are its business. Keys are NULL inside arrays. */
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

/* Begins an item whose text the caller writes to the stream: a value of JSON. */
FILE *cli_json_raw(cli_json *json, const char *key);
/* A text with its quotes and escapes. */
void cli_json_put_string(FILE *to, onx_str text);

/* ---- the tables themselves (help, completion) ---- */

extern const cli_command *const cli_commands[]; /* ends with NULL */
extern const cli_option cli_common_options[];
/* Those of them that the command has no row of its own for. */
const cli_option *cli_common_of(const cli_command *command);
const cli_command *cli_find_command(const char *name);
/* Does the command have the option, among its own or the common ones? */
bool cli_knows_option(const cli_command *command, const char *name);
/* Prints that there is no such command, with the nearest one, and returns CLI_MISUSE. */
int cli_no_command(const char *name);
/* The candidate nearest to the word, or NULL when none is close; candidate(from, index) returns NULL past the last. */
const char *cli_nearest(const char *word, const char *(*candidate)(const void *from, int index), const void *from);
/* Fills the call from the command line. Returns -1 to continue, else an exit status. */
int cli_parse(cli_call *call, int argc, char **argv);
void cli_print_help(const cli_command *command, FILE *to);
void cli_print_overview(FILE *to);

#endif
