/* cli_opsets.h - custom operators, from documents (--opset-doc) and shared libraries (--library). */
#ifndef ONX_CLI_OPSETS_H
#define ONX_CLI_OPSETS_H

#include "cli.h"

#include <onx/op.h>

enum { CLI_MOST_OPSETS = 256 };

typedef struct cli_opsets {
    onx_doc *list[CLI_MOST_OPSETS];
    int count;
    onx_registry *registry; /* NULL if none is named */
} cli_opsets;

/* Opens and checks documents, which must be valid before they are used, and loads libraries. Close in any case. */
onx_status cli_opsets_open(cli_call *call, cli_opsets *opsets);
void cli_opsets_close(cli_opsets *opsets);

#endif
