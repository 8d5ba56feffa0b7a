/* cli_transform.c - shared by the commands that change a model. */
#include "cli_transform.h"

#include <onx/text.h>

#include <stdlib.h>

bool cli_transform_open(cli_call *call, cli_transform *t)
{
    *t = (cli_transform){ .call = call, .out = cli_value(call, "output"), .dry_run = cli_has(call, "dry-run") };
    t->explain = t->dry_run || cli_has(call, "explain");
    t->to = t->out && strcmp(t->out, "-") == 0 ? stderr : stdout;
    if (t->out || t->dry_run)
        return true;
    if (cli_knows_option(call->command, "dry-run"))
        cli_error(call, "say where the result goes with -o, or --dry-run");
    else
        cli_error(call, "say where the result goes with -o");
    return false;
}

static void tell(void *user, const onx_change *change)
{
    FILE *to = ((const cli_transform *)user)->to;
    if (change->path.len) {
        cli_put_text(to, change->path);
        fprintf(to, ": ");
    }
    cli_put_text(to, change->rule);
    fprintf(to, ": ");
    cli_put_text(to, change->text);
    fputc('\n', to);
}

void (*cli_transform_changed(const cli_transform *t))(void *user, const onx_change *change)
{
    return t->explain ? tell : NULL;
}

onx_status cli_transform_save(cli_transform *t, onx_doc *doc)
{
    if (t->dry_run)
        return ONX_OK;
    const onx_save_options save = { .struct_size = sizeof save, .format = cli_format_out(t->call, t->out) };
    return onx_save(t->call->cx, doc, t->out, &save);
}

int cli_transform_run(cli_transform *t, const char *in, onx_status (*pass)(onx_ctx *cx, onx_doc *doc, void *options),
                      void *options)
{
    onx_doc *doc;
    onx_status status = cli_load(t->call, in, ONX_KIND_MODEL, &doc);
    if (status != ONX_OK)
        return cli_exit(t->call, status);
    status = pass(t->call->cx, doc, options);
    if (status == ONX_OK)
        status = cli_transform_save(t, doc);
    (void)onx_text_locate(doc, 0);
    onx_doc_free(doc);
    return cli_exit(t->call, status);
}

onx_str *cli_names(const cli_call *call, const char *option, uint32_t *count)
{
    size_t room = 1;
    const char *text;
    for (int i = 0; (text = cli_value_at(call, option, i)) != NULL; i++)
        for (room++; (text = strchr(text, ',')) != NULL; text++)
            room++;
    onx_str *list = calloc(room, sizeof *list);
    *count = 0;
    if (!list) {
        cli_error(call, "out of memory");
        return NULL;
    }
    for (int i = 0; (text = cli_value_at(call, option, i)) != NULL; i++)
        for (const char *end; text; text = *end ? end + 1 : NULL) {
            end = text + strcspn(text, ",");
            if (end > text)
                list[(*count)++] = onx_str_make(text, (size_t)(end - text));
        }
    return list;
}
