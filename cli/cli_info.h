/* cli_info.h - the output of `onx info`, as text (cmd_info.c) or JSON (cli_info_json.c). */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "cli_facts.h"

typedef struct cli_info {
    cli_call *call;
    const char *path;
    onx_doc *doc;
    onx_kind kind;
    cli_facts facts;
    bool all; /* print lists completely */
} cli_info;

/* Is there an initializer of that name? */
bool cli_info_has_initializer(const cli_info *in, const onx_value_info *value);
/* The size of the file in bytes; documents made from NumPy files have no size of their own. */
uint64_t cli_info_size(const cli_info *in);

typedef enum cli_file_state { CLI_FILE_THERE, CLI_FILE_MISSING, CLI_FILE_OUTSIDE, CLI_FILE_LINK } cli_file_state;

/* The size of a data file. Paths that lead out of the model's folder are not opened. */
cli_file_state cli_info_look(const cli_info *in, onx_str location, uint64_t *size);

onx_status cli_info_json(const cli_info *in, void *root);

#endif
