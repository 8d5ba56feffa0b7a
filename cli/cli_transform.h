/* cli_transform.h - shared by the commands that change a model: -o, --dry-run and --explain, reading and writing. */
#ifndef ONX_CLI_TRANSFORM_H
#define ONX_CLI_TRANSFORM_H

#include "cli.h"

#include <onx/transform.h>

/* clang-format off */
#define CLI_OPTION_EXPLAIN { "explain", 0, NULL, NULL, "print each change and its reason" }
#define CLI_OPTION_DRY_RUN { "dry-run", 0, NULL, NULL, "print what would be done without writing anything" }
/* clang-format on */

typedef struct cli_transform {
    cli_call *call;
    const char *out; /* NULL: nothing is written */
    bool dry_run, explain;
    FILE *to; /* destination of --explain */
} cli_transform;

/* False, with the error printed, if neither -o nor --dry-run is given. */
bool cli_transform_open(cli_call *call, cli_transform *t);
/* For the `changed` callback of options, with the cli_transform as `user`; NULL if not needed. */
void (*cli_transform_changed(const cli_transform *t))(void *user, const onx_change *change);
/* Reads the model, calls `pass` to change it, and writes it unless this is a dry run; returns the exit status. */
int cli_transform_run(cli_transform *t, const char *in, onx_status (*pass)(onx_ctx *cx, onx_doc *doc, void *options),
                      void *options);
/* Writes the model, unless this is a dry run. */
onx_status cli_transform_save(cli_transform *t, onx_doc *doc);

/* The names given by an option, which may be repeated or contain commas; freed with free(). NULL with the error
 * printed. */
onx_str *cli_names(const cli_call *call, const char *option, uint32_t *count);

#endif
