/* cli_opsets.h - operator-set documents that the command line names with --opset-doc. */
#ifndef ONX_CLI_OPSETS_H
#define ONX_CLI_OPSETS_H

#include "cli.h"

#include <onx/op.h>

enum { CLI_MOST_OPSETS = 256 };

#define CLI_OPTION_OPSET_DOC                                                                                           \
    {                                                                                                                  \
        "opset-doc", 0, "FILE", NULL, "operator-set document of a custom domain; may be repeated"                      \
    }

typedef struct cli_opsets {
    onx_doc *list[CLI_MOST_OPSETS];
    int count;
    onx_registry *registry; /* NULL when none is named */
} cli_opsets;

/* Opens and checks them; they have to be sound before anything is looked up in them. Close in every case. */
onx_status cli_opsets_open(cli_call *call, cli_opsets *opsets);
void cli_opsets_close(cli_opsets *opsets);

#endif
