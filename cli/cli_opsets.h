/* cli_opsets.h - operators that are not built in: of documents (--opset-doc) and of shared libraries (--library). */
#ifndef ONX_CLI_OPSETS_H
#define ONX_CLI_OPSETS_H

#include "cli.h"

#include <onx/op.h>

enum { CLI_MOST_OPSETS = 256 };

typedef struct cli_opsets {
    onx_doc *list[CLI_MOST_OPSETS];
    int count;
    onx_registry *registry; /* NULL when none is named */
} cli_opsets;

/* Opens and checks documents, which have to be sound before anything is looked up in them, and loads libraries. Close
 * in every case. */
onx_status cli_opsets_open(cli_call *call, cli_opsets *opsets);
void cli_opsets_close(cli_opsets *opsets);

#endif
