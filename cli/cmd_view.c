/* cmd_view.c - `onx view`: draws a model as one page for a browser. */
#include "cli_inputs.h"
#include "cli_view_page.h"

#include <onx/check.h>
#include <onx/text.h>

#include <stdlib.h>

/* Maximum number of weight elements that are read for one page; this takes a few seconds at most. */
enum { BUDGET = 1 << 28 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash ? slash + 1 : path;
}

/* ---- a model ---- */

/* Runs the checker before inference and layout, so that their diagnostics come after its findings. Values that
 * inference cannot type have no type in the view; the findings say why. */
static onx_status analyse(cli_call *call, cli_view *view)
{
    if (!cli_has(call, "no-check")) {
        const onx_status status = onx_check(call->cx, view->doc, NULL, NULL);
        if (status != ONX_OK && status != ONX_E_INVALID)
            return status;
    }
    const onx_status status = onx_infer_new(call->cx, view->doc, NULL, &view->infer);
    return status == ONX_E_MEMORY || status == ONX_E_LIMIT ? status : ONX_OK;
}

/* A model that cannot be read is shown as a view of its findings only. */
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

/* ---- output ---- */

typedef struct maker {
    cli_call *call;
    cli_view *view;
    int count;
} maker;

static void put_views(FILE *to, const maker *m)
{
    cli_json json = { .to = to };
    cli_json_open(&json, NULL, '{');
    cli_json_uint(&json, "format", 1);
    cli_json_cstr(&json, "onx", ONX_VERSION);
    cli_view_hues(&json);
    cli_json_open(&json, "models", '[');
    for (int i = 0; i < m->count; i++) {
        view_weights weights = { .skip = cli_has(m->call, "no-weights"), .budget = BUDGET };
        cli_view_json(&json, &m->view[i], &weights);
    }
    cli_json_close(&json, ']');
    if (m->count == 2 && m->view[0].doc && m->view[1].doc)
        cli_view_diff(&json, m->view);
    cli_json_close(&json, '}');
}

static void put_drawing(FILE *to, const maker *m)
{
    cli_view_svg(to, m->view, cli_view_main(m->view));
}

static void put_dot(FILE *to, const maker *m)
{
    cli_view_dot(to, m->view, cli_view_main(m->view));
}

/* Collects the output of `put` in memory; false when out of memory. */
static bool in_memory(const maker *m, void (*put)(FILE *to, const maker *m), char **out, size_t *size)
{
    *out = NULL;
    FILE *to = open_memstream(out, size);
    if (to)
        put(to, m);
    bool whole = to && !ferror(to);
    whole = to && fclose(to) == 0 && whole;
    for (int i = 0; i < m->count; i++)
        whole = whole && !m->view[i].scarce;
    if (!whole) {
        free(*out);
        *out = NULL;
        m->view[0].scarce = true;
    }
    return whole;
}

static bool make_page(const maker *m, char **page, size_t *size)
{
    char *data;
    size_t data_size;
    if (!in_memory(m, put_views, &data, &data_size))
        return false;
    *page = NULL;
    FILE *to = open_memstream(page, size);
    if (to)
        cli_view_page(to, onx_str_make(data, data_size));
    free(data);
    const bool whole = to && !ferror(to);
    if ((to && fclose(to) == 0) & whole)
        return true;
    free(*page);
    *page = NULL;
    m->view[0].scarce = true;
    return false;
}

/* ---- the command ---- */

/* Drawings of the main graph, selected by these file name extensions. Other outputs get a page. */
static const struct drawing {
    const char *ending, *language;
    void (*put)(FILE *to, const maker *m);
    uint32_t boxes_most; /* drawings with more boxes cannot be displayed in practice */
} drawings[] = { { ".svg", "SVG", put_drawing, 20000 }, { ".dot", "a file for Graphviz", put_dot, 200000 } };

static const struct drawing *drawing_of(const char *path)
{
    for (size_t i = 0; i < sizeof drawings / sizeof *drawings; i++)
        if (cli_ends_in(path, drawings[i].ending))
            return &drawings[i];
    return NULL;
}

static onx_status write_output(cli_call *call, const maker *m, const char *path)
{
    char *bytes;
    size_t size;
    const struct drawing *drawing = drawing_of(path);
    if (drawing) {
        const view_scope *s = cli_view_main(m->view);
        if (!s) {
            cli_error(call, "the model has no graph to draw");
            return ONX_E_MISUSE;
        }
        if (s->box_kind.count > drawing->boxes_most) {
            cli_error(call,
                      "the graph has %u boxes, and %s cannot usefully show more than %u; write a page (.html) instead",
                      s->box_kind.count, drawing->language, drawing->boxes_most);
            return ONX_E_MISUSE;
        }
    }
    if (!(drawing ? in_memory(m, drawing->put, &bytes, &size) : make_page(m, &bytes, &size)))
        return ONX_E_MEMORY;
    const onx_status status = onx_save_bytes(call->cx, path, onx_str_make(bytes, size));
    free(bytes);
    return status;
}

/* For model.onnx in any folder, the name model.html in the current folder. */
static bool page_path(const cli_call *call, char *buf, size_t size)
{
    const char *out = cli_value(call, "output"), *name = base_name(call->operand[0]);
    const char *dot = strrchr(name, '.');
    if (out)
        return (size_t)snprintf(buf, size, "%s", out) < size;
    if (strcmp(call->operand[0], "-") == 0) {
        name = "model";
        dot = NULL;
    }
    const size_t len = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    return len < size && (size_t)snprintf(buf, size, "%.*s.html", (int)len, name) < size;
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

/* The model, and the one to compare it with. Close both in any case. */
static onx_status open_views(maker *m)
{
    const char *against = cli_value(m->call, "against");
    char *profile = NULL;
    size_t size = 0;
    onx_status status = ONX_OK;
    m->view[0] = (cli_view){ 0 };
    m->count = 1;
    if (cli_has(m->call, "profile"))
        status = cli_view_profile(m->call, m->call->operand[0], &profile, &size);
    if (status == ONX_OK)
        status = open_view(m->call, m->call->operand[0], &m->view[0]);
    m->view[0].profile = profile;
    m->view[0].profile_size = size;
    if (status != ONX_OK || !against)
        return status;
    m->count = 2;
    status = open_view(m->call, against, &m->view[1]);
    m->view[0].scarce = m->view[0].scarce || m->view[1].scarce;
    return status;
}

static void close_views(const maker *m)
{
    for (int i = 0; i < m->count; i++)
        close_view(&m->view[i]);
}

/* Is there something to show: a model, or the findings that explain why it cannot be read? */
static bool is_shown(const maker *m, onx_status status)
{
    const cli_view *last = &m->view[m->count - 1];
    return !m->view[0].scarce && (status == ONX_OK || (!last->doc && last->finding_count));
}

static int write_view(cli_call *call)
{
    char path[4096];
    cli_view views[2];
    maker m = { call, views, 0 };
    if (!page_path(call, path, sizeof path))
        return cli_error(call, "the name of the output is too long");
    if (onx_output_claim(call->cx, path, false) != ONX_OK)
        return CLI_MISUSE;
    onx_status status = open_views(&m);
    const bool read = status == ONX_OK;
    if (is_shown(&m, status) && (read || !drawing_of(path))) {
        const onx_status written = write_output(call, &m, path);
        status = written == ONX_OK ? status : written;
        if (written == ONX_OK)
            tell(call, &views[m.count - 1], path);
        if (written == ONX_OK && read)
            onx_diag_clear(call->cx); /* the page contains them */
    }
    const bool scarce = views[0].scarce;
    close_views(&m);
    return scarce ? cli_error(call, "out of memory") : cli_exit(call, status);
}

/* Reads the models again at each request. */
static bool make_now(void *user, char **page, size_t *size)
{
    cli_call *call = user;
    cli_view views[2];
    maker m = { call, views, 0 };
    const onx_status status = open_views(&m);
    const bool made = is_shown(&m, status) && make_page(&m, page, size);
    close_views(&m);
    if (made)
        onx_diag_clear(call->cx);
    else
        cli_report(call);
    return made;
}

static int run_view(cli_call *call)
{
    uint64_t port = 0;
    if (!cli_number(call, "port", 1, UINT16_MAX, &port))
        return CLI_MISUSE;
    if (!cli_has(call, "serve"))
        return port ? cli_error(call, "--port goes with --serve") : write_view(call);
    if (cli_has(call, "output"))
        return cli_error(call, "--serve writes no file");
    if (strcmp(call->operand[0], "-") == 0)
        return cli_error(call, "--serve reads the model again at each request, so it has to be a file");
    return cli_view_serve(call, (uint16_t)port, make_now, call);
}

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL,
      "output file (the name of the model with .html); - is standard output, .svg or .dot (for Graphviz) writes only the drawing" },
    { "serve", 0, NULL, NULL, "serve the page on a local address, which is printed, until a signal ends it" },
    { "port", 0, "N", NULL, "with --serve: the port (any free one)" },
    { "no-weights", 0, NULL, NULL, "omit statistics of weights: range, mean, histogram" },
    { "no-check", 0, NULL, NULL, "omit the findings of the checker" },
    { "against", 0, "OTHER", NULL, "show another model side by side, with the differences" },
    { "profile", 0, NULL, NULL, "run the model several times, and colour nodes by their run time" },
    CLI_OPTIONS_INPUTS,
    { "threads", 0, "N", NULL, "threads for these runs (0: one per processor)" },
    CLI_OPTION_NO_OPTIMIZE,
    CLI_END,
};

const cli_command cmd_view = {
    .name = "view",
    .summary = "draw a model as a page for a browser",
    .operands = "MODEL",
    .help = "The page is self-contained: it needs no network and no other file. It draws the graph in layers;\n"
            "subgraphs and functions open in place. A click on a node shows its attributes, types, shapes and\n"
            "weights, a description of the operator, and findings of the checker. The question mark lists the\n"
            "keys. Of large weights only a part is read. A model that violates rules is shown all the same; if it\n"
            "cannot be read, the page shows the findings, and the exit status is 1. With --serve the model is\n"
            "read again each time the page is loaded; only programs on this machine can reach it.\n",
    .example = "onx view model.onnx\n"
               "onx view model.onnx -o page.html && xdg-open page.html\n"
               "onx view model.onnx -o drawing.svg\n"
               "onx view model.onnx -o graph.dot && dot -Tpdf graph.dot -o graph.pdf\n"
               "onx view before.onnx --against after.onnx\n"
               "onx view model.onnx --profile --dim batch=8\n"
               "onx view model.onnx --serve --port 8000\n",
    .options = options,
    .run = run_view,
};
