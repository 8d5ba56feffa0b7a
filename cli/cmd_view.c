/* cmd_view.c - `onx view`: a model as one page for a browser. */
#include "cli_view.h"
#include "cli_view_page.h"

#include <onx/check.h>
#include <onx/text.h>

#include <stdlib.h>

/* Elements of weights that are read for one page, some seconds at most. */
enum { BUDGET = 1 << 28 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash ? slash + 1 : path;
}

/* ---- one model ---- */

/* Findings first, so that what the drawing says of the model comes behind them. What cannot be inferred has no type,
 * and is among the findings. */
static onx_status analyse(cli_call *call, cli_view *view)
{
    if (!cli_has(call, "no-check")) {
        const onx_check_options options = { .registry = call->registry };
        const onx_status status = onx_check(call->cx, view->doc, &options, NULL);
        if (status != ONX_OK && status != ONX_E_INVALID)
            return status;
    }
    const onx_infer_options options = { .registry = call->registry };
    const onx_status status = onx_infer_new(call->cx, view->doc, &options, &view->infer);
    return status == ONX_E_MEMORY || status == ONX_E_LIMIT ? status : ONX_OK;
}

/* A model that cannot be read is a view of its findings alone. */
static onx_status open_view(cli_call *call, const char *path, cli_view *view)
{
    const size_t first = onx_diag_count(call->cx);
    *view = (cli_view){ .call = call, .file = base_name(path) };
    onx_status status = cli_load(call, path, ONX_KIND_MODEL, &view->doc);
    if (status == ONX_OK)
        status = analyse(call, view);
    if (status == ONX_OK)
        status = onx_text_locate(view->doc, first);
    if (status == ONX_OK)
        status = cli_view_build(view);
    if (status == ONX_OK || (!view->doc && (status == ONX_E_INVALID || status == ONX_E_MALFORMED)))
        cli_view_find(view, first);
    return view->scarce ? ONX_E_MEMORY : status;
}

static void close_view(cli_view *view)
{
    cli_view_free(view);
    onx_infer_free(view->infer);
    onx_doc_free(view->doc);
}

static void put_views(cli_call *call, cli_view *views, int count, FILE *to)
{
    cli_json json = { .to = to };
    cli_json_open(&json, NULL, '{');
    cli_json_uint(&json, "format", 1);
    cli_json_cstr(&json, "onx", ONX_VERSION);
    cli_json_open(&json, "models", '[');
    for (int i = 0; i < count; i++) {
        view_weights weights = { .skip = cli_has(call, "no-weights"), .budget = BUDGET };
        cli_view_json(&json, &views[i], &weights);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

/* ---- the command ---- */

static onx_status write_page(cli_call *call, cli_view *views, int count, const char *path)
{
    char *data = NULL, *page = NULL;
    size_t data_size = 0, page_size = 0;
    FILE *to = open_memstream(&data, &data_size);
    if (to)
        put_views(call, views, count, to);
    bool whole = to && !ferror(to);
    for (int i = 0; i < count; i++)
        whole = whole && !views[i].scarce;
    whole = to && fclose(to) == 0 && whole;
    to = whole ? open_memstream(&page, &page_size) : NULL;
    if (to)
        cli_view_page(to, onx_str_make(data, data_size));
    whole = to && !ferror(to);
    whole = to && fclose(to) == 0 && whole;
    free(data);
    views[0].scarce = views[0].scarce || !whole;
    const onx_status status = whole ? onx_save_bytes(call->cx, path, onx_str_make(page, page_size)) : ONX_E_MEMORY;
    free(page);
    return status;
}

/* model.html in the folder at hand, for model.onnx somewhere. */
static bool page_path(const cli_call *call, char *buf, size_t size)
{
    const char *out = cli_value(call, "output"), *name = base_name(call->operand[0]);
    const char *dot = strrchr(name, '.');
    if (out)
        return (size_t)snprintf(buf, size, "%s", out) < size;
    if (strcmp(call->operand[0], "-") == 0)
        name = "model", dot = NULL;
    return (size_t)snprintf(buf, size, "%.*s.html", (int)(dot && dot > name ? dot - name : (long)strlen(name)), name) <
           size;
}

static void tell(const cli_call *call, const cli_view *view, const char *path)
{
    uint64_t count[3] = { 0, 0, 0 };
    for (uint32_t i = 0; i < view->finding_count; i++)
        count[view->finding[i].diag->severity]++;
    if (strcmp(path, "-") == 0)
        return;
    fprintf(stderr, "onx %s: ", call->command->name);
    cli_put_text(stderr, onx_str_of(path));
    if (!view->scope_count)
        fprintf(stderr, " says why there is no model to show");
    else if (count[ONX_ERROR] || count[ONX_WARNING])
        fprintf(stderr, " shows the model and what is wrong with it: %llu error%s, %llu warning%s",
                (unsigned long long)count[ONX_ERROR], count[ONX_ERROR] == 1 ? "" : "s",
                (unsigned long long)count[ONX_WARNING], count[ONX_WARNING] == 1 ? "" : "s");
    fputc('\n', stderr);
}

static int run_view(cli_call *call)
{
    char path[4096];
    cli_view view;
    if (!page_path(call, path, sizeof path))
        return cli_error(call, "the name of the output is too long");
    if (onx_output_claim(call->cx, path, false) != ONX_OK)
        return CLI_MISUSE;
    onx_status status = open_view(call, call->operand[0], &view);
    const bool read = status == ONX_OK, shown = read || view.finding_count > 0;
    if (shown && !view.scarce) {
        const onx_status written = write_page(call, &view, 1, path);
        status = written == ONX_OK ? status : written;
        if (written == ONX_OK)
            tell(call, &view, path);
        if (written == ONX_OK && read)
            onx_diag_clear(call->cx); /* the page has them */
    }
    const bool scarce = view.scarce;
    close_view(&view);
    return scarce ? cli_error(call, "out of memory") : cli_exit(call, status);
}

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "where the page goes (the name of the model with .html); - is standard output" },
    { "no-weights", 0, NULL, NULL, "leave out what weights are like: range, mean, histogram" },
    { "no-check", 0, NULL, NULL, "leave out what the checker finds" },
    CLI_OPTION_OPSET_DOC,
    CLI_OPTION_LIBRARY,
    CLI_END,
};

const cli_command cmd_view = {
    .name = "view",
    .summary = "a model as one page for a browser",
    .operands = "MODEL",
    .help =
        "The page needs nothing else, no network either, and can be sent to somebody. It draws the graph in layers;\n"
        "subgraphs and functions open in place, and a click on a node shows its attributes, types, shapes and weights,\n"
        "what the operator does, and what is wrong with it. Keys are listed behind the question mark. Of large weights\n"
        "a part is read. A model that breaks rules is shown all the same; of one that cannot be read the page has the\n"
        "findings, and the exit status is 1.\n",
    .example = "onx view model.onnx\n"
               "onx view model.onnx -o page.html && xdg-open page.html\n",
    .options = options,
    .run = run_view,
};
