/* cli_opsets.c - loads the custom operators named on the command line. */
#include "cli_opsets.h"

#include <onx/check.h>
#include <onx/plugin.h>

void cli_opsets_close(cli_opsets *opsets)
{
    onx_registry_free(opsets->registry);
    for (int i = 0; i < opsets->count; i++)
        onx_doc_free(opsets->list[i]);
}

onx_status cli_opsets_open(cli_call *call, cli_opsets *opsets)
{
    const char *file;
    for (int i = 0; (file = cli_value_at(call, "library", i)); i++) {
        if (!opsets->registry)
            ONX_TRY(onx_registry_new(call->cx, &opsets->registry));
        ONX_TRY(onx_plugin_load(opsets->registry, file));
    }
    for (int i = 0; (file = cli_value_at(call, "opset-doc", i)); i++) {
        const onx_check_options options = { .flags = ONX_CHECK_STRUCTURE };
        if (opsets->count == CLI_MOST_OPSETS) {
            cli_error(call, "there are more than %d operator-set documents", CLI_MOST_OPSETS);
            return ONX_E_MISUSE;
        }
        if (!opsets->registry)
            ONX_TRY(onx_registry_new(call->cx, &opsets->registry));
        ONX_TRY(cli_load(call, file, ONX_KIND_OPERATOR_SET, &opsets->list[opsets->count]));
        onx_doc *doc = opsets->list[opsets->count++];
        ONX_TRY(onx_check(call->cx, doc, &options, NULL));
        ONX_TRY(onx_registry_load(opsets->registry, doc));
    }
    return ONX_OK;
}
