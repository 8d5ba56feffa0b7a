/* cli_sets.c - --batches: finds the sets of inputs in a folder, distributes them over ranks, and names their
 * outputs. */
#include "cli_sets.h"

#include "cli_files.h"
#include "cli_image.h"
#include "cli_inputs.h"
#include "cli_ranks.h"
#include "cli_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct set {
    char *path, *name; /* path of the file or folder; name of its outputs */
} set;

typedef struct sets {
    cli_call *call;
    set *all;
    uint32_t count, room;
} sets;

bool cli_sets_options(const cli_call *call)
{
    const char *to = cli_value(call, "output-dir") ? cli_value(call, "output-dir") : cli_value(call, "output");
    const bool batches = cli_has(call, "batches");
    if (cli_has(call, "ranks") && !batches)
        cli_error(call, "--ranks needs --batches: it distributes sets of inputs over the ranks");
    else if (cli_has(call, "ranks") && cli_has(call, "configuration"))
        cli_error(
            call,
            "--ranks and --configuration exclude each other: with --ranks each rank runs its own sets, with --configuration all ranks run every set together");
    else if (cli_has(call, "ranks") && !to)
        cli_error(call, "with --ranks, give the output folder with --output-dir");
    else if (cli_has(call, "ranks") && (cli_has(call, "json") || cli_has(call, "full") || cli_has(call, "top-k")))
        cli_error(call, "--ranks prints no outputs, so --json, --full and --top-k do not apply");
    else if (batches && cli_has(call, "profile"))
        cli_error(call, "--profile measures one set of inputs, but --batches has several");
    else if (batches && to && !cli_has(call, "output-dir") &&
             (strcmp(to, "-") == 0 || cli_ends_in(to, ".npz") || cli_ends_in(to, ".npy") || cli_ends_in(to, ".pb")))
        cli_error(call, "--batches writes to a folder, but %s is not one",
                  strcmp(to, "-") == 0 ? "standard output" : to);
    else
        return true;
    return false;
}

/* ---- finding the sets ---- */

static bool is_set(const cli_call *call, const char *path)
{
    static const char *const endings[] = { ".npz", ".npy", ".pb", ".json" };
    static const char *const first[] = { "input_0.pb", "input_0.npy" };
    struct stat st;
    bool found = false;
    if (cli_is_folder(path)) {
        for (size_t i = 0; i < sizeof first / sizeof *first && !found; i++) {
            char *file = cli_join(call, path, first[i]);
            found = file && stat(file, &st) == 0;
            free(file);
        }
        return found;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        found |= cli_ends_in(path, endings[i]);
    return found || cli_is_image(path);
}

static onx_status add_set(sets *s, const char *dir, const char *entry)
{
    char *path = cli_join(s->call, dir, entry);
    if (path && !is_set(s->call, path)) {
        free(path);
        return ONX_OK;
    }
    char *name = path ? strdup(entry) : NULL;
    if (!name || !CLI_GROW(s->all, s->count, s->room)) {
        free(path);
        free(name);
        cli_error(s->call, "out of memory");
        return ONX_E_MEMORY;
    }
    if (!cli_is_folder(path) && strrchr(name, '.') != name)
        *strrchr(name, '.') = '\0';
    s->all[s->count++] = (set){ path, name };
    return ONX_OK;
}

static int shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Two files may differ only in their extension. */
static onx_status check_names(const sets *s)
{
    cli_table names = { .cx = s->call->cx };
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < s->count && status == ONX_OK; i++) {
        const uint32_t hash = cli_table_hash(&names, onx_str_of(s->all[i].name), onx_str_of(""));
        CLI_TABLE_EACH (&names, hash, at)
            if (strcmp(s->all[at].name, s->all[i].name) == 0 && status == ONX_OK) {
                cli_error(s->call, "the outputs of %s and %s would have the same name", s->all[at].path,
                          s->all[i].path);
                status = ONX_E_MISUSE;
            }
        if (status == ONX_OK && !cli_table_add(&names, hash, i))
            status = ONX_E_MEMORY;
    }
    free(names.slots);
    return status;
}

static onx_status list_sets(sets *s, const char *dir)
{
    struct dirent **list = NULL;
    onx_status status = ONX_OK;
    const int n = scandir(dir, &list, shown, alphasort);
    if (n < 0) {
        cli_error(s->call, "cannot read the folder %s: %s", dir, strerror(errno));
        return ONX_E_IO;
    }
    for (int i = 0; i < n; i++) {
        if (status == ONX_OK)
            status = add_set(s, dir, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    ONX_TRY(status);
    if (s->count)
        return check_names(s);
    cli_error(s->call, "%s: the folder contains no inputs", dir);
    return ONX_E_NOT_FOUND;
}

/* ---- running the sets ---- */

static onx_status run_one(cli_call *call, onx_session *s, const onx_run_options *limits, const cli_inputs *in,
                          cli_outputs *o)
{
    const uint32_t count = onx_session_output_count(s);
    onx_value **outputs = calloc(count + 1u, sizeof *outputs);
    onx_status status =
        outputs ? cli_outputs_run(o, s, limits, (const onx_value *const *)in->values, outputs) : ONX_E_MEMORY;
    if (status == ONX_OK && (cli_has(call, "ranks") || cli_ranks_first(call)))
        status = cli_outputs_put(o);
    for (uint32_t i = 0; outputs && i < count; i++)
        onx_value_free(outputs[i]);
    free(outputs);
    return status;
}

/* Prints a name and its result; in JSON an object. */
static void begin_set(const cli_outputs *o, const set *at)
{
    if (o->json) {
        cli_json_open(o->json, NULL, '{');
        cli_json_text(o->json, "inputs", onx_str_of(at->path));
    } else if (!o->folder) {
        cli_put_text(stdout, onx_str_of(at->path));
        putchar('\n');
    }
}

static onx_status run_set(cli_call *call, onx_doc *doc, onx_session *s, const onx_run_options *limits, const set *at,
                          cli_outputs *o)
{
    cli_inputs in;
    const unsigned flags = cli_ranks_first(call) ? 0 : CLI_SILENT;
    const char *model = call->input;
    onx_status status = cli_inputs_read_set(call, doc, s, at->path, flags, &in);
    if (call->input != model) /* diagnostics concern an input file, whose path is freed soon */
        cli_report(call);
    call->input = model;
    if (status == ONX_OK && o->folder && (cli_has(call, "ranks") || cli_ranks_first(call)))
        status = cli_outputs_claim(o, s);
    if (status == ONX_OK) {
        begin_set(o, at);
        status = run_one(call, s, limits, &in, o);
        if (o->json)
            cli_json_close(o->json, '}');
        if (status != ONX_OK)
            cli_error(call, "the run on %s has failed", at->path);
    }
    cli_inputs_free(&in);
    cli_outputs_clear(o);
    return status;
}

static onx_status run_all(const sets *all, onx_doc *doc, onx_session *s, const onx_run_options *limits, cli_outputs *o,
                          const char *to)
{
    cli_call *call = all->call;
    const bool shared = cli_has(call, "ranks");
    const uint32_t step = shared ? cli_ranks_count(call) : 1, first = shared ? cli_ranks_rank(call) : 0;
    onx_status status = ONX_OK;
    for (uint32_t i = first; i < all->count && status == ONX_OK; i += step) {
        char *folder = to ? cli_join(call, to, all->all[i].name) : NULL;
        o->folder = folder;
        status = to && !folder ? ONX_E_MEMORY : run_set(call, doc, s, limits, &all->all[i], o);
        o->folder = NULL;
        free(folder);
        if (cli_ranks_first(call))
            cli_progress("running", i + 1, all->count);
    }
    return status;
}

onx_status cli_sets_run(cli_call *call, onx_doc *doc, onx_session *s, const onx_run_options *limits, cli_outputs *o)
{
    const char *to = cli_value(call, "output-dir") ? cli_value(call, "output-dir") : cli_value(call, "output");
    sets all = { .call = call };
    cli_json json = { .to = stdout };
    onx_status status = list_sets(&all, cli_value(call, "batches"));
    if (status == ONX_OK && to && mkdir(to, 0777) != 0 && errno != EEXIST) {
        cli_error(call, "cannot create the folder %s: %s", to, strerror(errno));
        status = ONX_E_IO;
    }
    if (status == ONX_OK && cli_has(call, "json") && cli_ranks_first(call)) {
        o->json = &json;
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "batches", '[');
    }
    if (status == ONX_OK)
        status = run_all(&all, doc, s, limits, o, to);
    if (o->json) {
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
        o->json = NULL;
    }
    for (uint32_t i = 0; i < all.count; i++) {
        free(all.all[i].path);
        free(all.all[i].name);
    }
    free(all.all);
    return status;
}
