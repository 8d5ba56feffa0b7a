/* cli_view_run.c - measures the time of a view's nodes in a run, with made-up inputs or those of the command line. */
#include "cli_inputs.h"
#include "cli_profile.h"
#include "cli_view_page.h"

static onx_status run(cli_call *call, onx_doc *doc, onx_session *s, const onx_session_options *options,
                      const onx_run_options *limits, cli_profile *profile)
{
    cli_inputs inputs;
    onx_status status = cli_inputs_read(call, doc, s, CLI_MAKE_UP, &inputs);
    if (status == ONX_OK)
        status = cli_profile_run(profile, doc, s, options, (const onx_value *const *)inputs.values, limits);
    cli_inputs_free(&inputs);
    return status;
}

/* JSON: a member of an object that is opened elsewhere. */
static onx_status tell(const cli_profile *profile, char **text, size_t *size)
{
    FILE *to = open_memstream(text, size);
    if (!to)
        return ONX_E_MEMORY;
    cli_json json = { .to = to, .depth = 1 };
    const onx_status status = cli_profile_json(profile, &json);
    return fclose(to) == 0 ? status : ONX_E_MEMORY;
}

onx_status cli_view_profile(cli_call *call, const char *path, char **text, size_t *size)
{
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    onx_session *s = NULL;
    onx_doc *doc = NULL;
    cli_profile profile = { .call = call };
    *text = NULL;
    if (!cli_run_options(call, &threads, &options, &limits))
        return ONX_E_MISUSE;
    onx_status status = cli_load(call, path, ONX_KIND_MODEL, &doc);
    if (status == ONX_OK)
        status = onx_session_new(call->cx, doc, &options, &s);
    if (status == ONX_OK)
        status = run(call, doc, s, &options, &limits, &profile);
    if (status == ONX_OK)
        status = tell(&profile, text, size);
    if (status == ONX_OK)
        onx_diag_clear(call->cx); /* the diagnostics about the model will be reported again */
    cli_profile_free(&profile);
    onx_session_free(s);
    onx_doc_free(doc);
    return status;
}
