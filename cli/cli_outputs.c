/* cli_outputs.c - selects the values of a run to print or write, and their destination. */
#include "cli_outputs.h"
#include "cli_table.h"

#include <onx/infer.h>
#include <onx/npy.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static onx_status no_memory(const cli_outputs *o)
{
    cli_error(o->call, "out of memory");
    return ONX_E_MEMORY;
}

/* ---- selecting values ---- */

static bool makes(const onx_graph *g, onx_str name)
{
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->node[i]->output_count; k++)
            if (onx_str_equal(onx_view(g->node[i]->output[k]), name))
                return true;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (onx_str_equal(onx_view(g->initializer[i]->name), name))
            return true;
    for (uint32_t i = 0; i < g->input_count; i++)
        if (onx_str_equal(onx_view(g->input[i]->name), name))
            return true;
    return false;
}

static bool is_output(const onx_graph *g, onx_str name)
{
    for (uint32_t i = 0; i < g->output_count; i++)
        if (onx_str_equal(onx_view(g->output[i]->name), name))
            return true;
    return false;
}

/* Makes a value inside of the main graph an output, with the type that inference found. */
static onx_status add_output(cli_outputs *o, onx_doc *doc, onx_infer **infer, const char *name)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    if (!*infer)
        ONX_TRY(onx_infer_new(o->call->cx, doc, NULL, infer));
    const onx_type *type = onx_infer_type(*infer, g, onx_str_of(name));
    return onx_graph_add_output(onx_doc_arena(doc), g, name, (onx_type *)(uintptr_t)type) ? ONX_OK : no_memory(o);
}

static onx_status find_wanted(cli_outputs *o, onx_doc *doc)
{
    onx_model *model = onx_doc_model(doc);
    onx_infer *infer = NULL;
    const char *name;
    onx_status status = ONX_OK;
    const size_t before = onx_diag_total(o->call->cx, ONX_ERROR);
    for (int i = 0; status == ONX_OK && (name = cli_value_at(o->call, "outputs", i)) != NULL; i++) {
        if (strcmp(name, "all") == 0)
            o->all = true;
        else if (!model || !model->graph || is_output(model->graph, onx_str_of(name)))
            continue;
        else if (makes(model->graph, onx_str_of(name)))
            status = add_output(o, doc, &infer, name);
        else
            o->wanted[i] = o->inside = true;
    }
    /* Problems that inference finds are left to the session to report. */
    if (status == ONX_OK && onx_diag_total(o->call->cx, ONX_ERROR) == before)
        onx_diag_clear(o->call->cx);
    /* The types belong to `infer`, which has to live as long as the document. */
    if (infer)
        o->infer = infer;
    return status;
}

onx_status cli_outputs_open(cli_call *call, onx_doc *doc, onx_session_options *options, cli_outputs *out)
{
    const onx_model *model = onx_doc_model(doc);
    *out = (cli_outputs){ .call = call, .look.full = cli_has(call, "full") };
    if (!cli_number(call, "top-k", 1, CLI_TOP_MOST, &out->look.top))
        return ONX_E_MISUSE;
    if (out->look.full && out->look.top) {
        cli_error(call, "--full and --top-k exclude each other");
        return ONX_E_MISUSE;
    }
    while (cli_value_at(call, "outputs", out->wanted_count))
        out->wanted_count++;
    out->wanted = calloc((size_t)out->wanted_count + 1, sizeof *out->wanted);
    out->seen = calloc((size_t)out->wanted_count + 1, sizeof *out->seen);
    if (!out->wanted || !out->seen)
        return no_memory(out);
    out->own = model && model->graph ? model->graph->output_count : 0;
    ONX_TRY(find_wanted(out, doc));
    out->inside |= out->all;
    if (out->inside) /* run every node separately, with row-major values */
        options->plain = options->no_optimize = true;
    return ONX_OK;
}

/* ---- destinations ---- */

typedef enum place { TO_TERMINAL, TO_STREAM, TO_FOLDER, TO_FILE, TO_ARCHIVE } place;

static const char *path_of(const cli_outputs *o)
{
    const char *folder = o->folder ? o->folder : cli_value(o->call, "output-dir");
    return folder ? folder : cli_value(o->call, "output");
}

static place place_of(const cli_outputs *o)
{
    const char *path = path_of(o);
    struct stat st;
    if (!path)
        return TO_TERMINAL;
    if (o->folder || cli_has(o->call, "output-dir") || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return TO_FOLDER;
    if (strcmp(path, "-") == 0)
        return TO_STREAM;
    if (cli_ends_in(path, ".npz"))
        return TO_ARCHIVE;
    return cli_ends_in(path, ".npy") || cli_ends_in(path, ".pb") ? TO_FILE : TO_FOLDER;
}

/* "DIR/output_3.pb"; NULL, after an error message, when out of memory. */
static char *numbered(const cli_outputs *o, uint32_t index)
{
    const char *dir = path_of(o);
    const size_t room = strlen(dir) + 40;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s/output_%u.%s", dir, index, cli_has(o->call, "npy") ? "npy" : "pb");
    else
        (void)no_memory(o);
    return path;
}

onx_status cli_outputs_claim(cli_outputs *o, const onx_session *s)
{
    const char *path = path_of(o);
    const place to = place_of(o);
    if (cli_has(o->call, "npy") && (to == TO_TERMINAL || to == TO_FILE || to == TO_ARCHIVE)) {
        cli_error(o->call, "--npy needs --output with a folder or -");
        return ONX_E_MISUSE;
    }
    if (to == TO_STREAM && cli_has(o->call, "json")) {
        cli_error(o->call, "--json and --output - both write standard output");
        return ONX_E_MISUSE;
    }
    if (to == TO_TERMINAL)
        return ONX_OK;
    if (to != TO_FOLDER)
        return onx_output_claim(o->call->cx, path, false);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        cli_error(o->call, "cannot create the folder %s: %s", path, strerror(errno));
        return ONX_E_IO;
    }
    for (uint32_t i = 0; !o->inside && i < onx_session_output_count(s); i++) {
        char *file = numbered(o, i);
        onx_status status = file ? onx_output_claim(o->call->cx, file, false) : ONX_E_MEMORY;
        free(file);
        ONX_TRY(status);
    }
    return ONX_OK;
}

/* ---- collecting values ---- */

static cli_named *add_entry(cli_outputs *o)
{
    if (!CLI_GROW(o->list, o->count, o->room))
        return NULL;
    o->list[o->count] = (cli_named){ .value = NULL };
    return &o->list[o->count++];
}

/* Values that are only summarised are formatted at once. Copies of all values may need far more memory than the run
 * itself; those of a growing sequence need memory quadratic in its length. */
static onx_status take_value(cli_outputs *o, cli_named *entry, const onx_value *v)
{
    if (place_of(o) != TO_TERMINAL || cli_has(o->call, "json") || o->look.full) {
        ONX_TRY(onx_value_new(o->call->cx, &entry->value));
        return onx_value_assign(entry->value, v);
    }
    size_t size;
    FILE *to = open_memstream(&entry->shown, &size);
    if (!to)
        return no_memory(o);
    cli_put_value(to, v, &o->look);
    const bool failed = ferror(to) != 0;
    return fclose(to) != 0 || failed ? no_memory(o) : ONX_OK;
}

/* Stores a value under its name, with a number appended if the name occurs several times: in a loop, or in a function
 * that is called more than once. */
static onx_status keep(cli_outputs *o, onx_str name, const onx_value *v)
{
    cli_named *entry = add_entry(o);
    if (!entry)
        return no_memory(o);
    entry->name = name;
    return take_value(o, entry, v);
}

static void take(void *user, const onx_run_event *event)
{
    cli_outputs *o = user;
    for (uint32_t k = 0; event->node && k < event->output_count && k < event->node->output_count; k++) {
        const onx_str name = onx_view(event->node->output[k]);
        const char *wanted;
        bool keep_it = o->all;
        for (int i = 0; (wanted = cli_value_at(o->call, "outputs", i)) != NULL && !o->all; i++)
            if (o->wanted[i] && onx_str_is(name, wanted))
                keep_it = o->seen[i] = true;
        if (keep_it && name.len && event->outputs[k] && o->status == ONX_OK)
            o->status = keep(o, name, event->outputs[k]);
    }
}

/* "name#2" for the second value of a name, and so on. */
static onx_status number_names(cli_outputs *o)
{
    cli_table names = { .cx = o->call->cx };
    onx_status status = ONX_OK;
    uint32_t *times = calloc((size_t)o->count + 1, sizeof *times);
    for (uint32_t i = 0; times && i < o->count && status == ONX_OK; i++) {
        cli_named *entry = &o->list[i];
        const uint32_t hash = cli_table_hash(&names, entry->name, onx_str_of(""));
        uint32_t first = CLI_NO_ENTRY;
        CLI_TABLE_EACH (&names, hash, at)
            if (onx_str_equal(o->list[at].name, entry->name)) {
                first = at;
                break;
            }
        if (first == CLI_NO_ENTRY) {
            times[i] = 1;
            status = cli_table_add(&names, hash, i) ? ONX_OK : ONX_E_MEMORY;
            continue;
        }
        const size_t room = entry->name.len + 16;
        entry->text = malloc(room);
        if (entry->text) /* the table refers to the names of first entries, which are kept */
            snprintf(entry->text, room, "%.*s#%u", ONX_ARG(entry->name), ++times[first]);
        status = entry->text ? ONX_OK : ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < o->count; i++)
        if (o->list[i].text)
            o->list[i].name = onx_str_of(o->list[i].text);
    free(names.slots);
    free(times);
    return times && status == ONX_OK ? ONX_OK : no_memory(o);
}

static bool has_name(const cli_outputs *o, const cli_table *made, onx_str name)
{
    CLI_TABLE_EACH (made, cli_table_hash(made, name, onx_str_of("")), at)
        if (onx_str_equal(o->list[at].name, name))
            return true;
    return false;
}

static onx_status select_outputs(cli_outputs *o, const onx_session *s, onx_value **outputs)
{
    const char *name;
    cli_table made = { .cx = o->call->cx };
    for (uint32_t i = 0; i < o->count; i++)
        if (!cli_table_add(&made, cli_table_hash(&made, o->list[i].name, onx_str_of("")), i)) {
            free(made.slots);
            return no_memory(o);
        }
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < onx_session_output_count(s) && status == ONX_OK; i++) {
        const onx_str own = onx_session_output(s, i).name;
        bool chosen = !o->wanted_count || (o->all && i < o->own);
        for (int k = 0; !chosen && (name = cli_value_at(o->call, "outputs", k)) != NULL; k++)
            chosen = onx_str_is(own, name);
        if (chosen && !(o->all && has_name(o, &made, own)))
            status = keep(o, own, outputs[i]);
    }
    free(made.slots);
    ONX_TRY(status);
    for (int i = 0; (name = cli_value_at(o->call, "outputs", i)) != NULL; i++)
        if (o->wanted[i] && !o->seen[i]) {
            cli_error(o->call, "no node that ran computed \"%s\"", name);
            cli_hint("onx infer --list names the values of the main graph; constants are not computed by the run");
            return ONX_E_NOT_FOUND;
        }
    return number_names(o);
}

onx_status cli_outputs_run(cli_outputs *o, onx_session *s, const onx_run_options *limits,
                           const onx_value *const *inputs, onx_value **outputs)
{
    onx_run_options options = *limits;
    if (o->inside) {
        options.event = take;
        options.user = o;
        options.inside = true;
    }
    ONX_TRY(onx_session_run_with(s, o->call->cx, inputs, outputs, &options));
    ONX_TRY(o->status);
    return select_outputs(o, s, outputs);
}

/* ---- printing and writing ---- */

static void print_all(const cli_outputs *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        printf("%s", cli_color(stdout, CLI_BOLD));
        cli_put_text(stdout, o->list[i].name);
        printf("%s  ", cli_color(stdout, CLI_PLAIN));
        if (o->list[i].shown)
            fputs(o->list[i].shown, stdout);
        else
            cli_put_value(stdout, o->list[i].value, &o->look);
        putchar('\n');
    }
}

static void print_json(const cli_outputs *o)
{
    cli_json own = { .to = stdout }, *json = o->json ? o->json : &own;
    if (!o->json)
        cli_json_open(json, NULL, '{');
    cli_json_open(json, "outputs", '[');
    for (uint32_t i = 0; i < o->count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", o->list[i].name);
        cli_json_value(json, o->list[i].value, &o->look);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    if (!o->json)
        cli_json_close(json, '}');
}

static onx_status write_archive(cli_outputs *o, const char *path)
{
    const onx_value **values = calloc((size_t)o->count + 1, sizeof *values);
    onx_str *names = calloc((size_t)o->count + 1, sizeof *names);
    onx_buffer bytes = { 0 };
    onx_status status = values && names ? ONX_OK : no_memory(o);
    for (uint32_t i = 0; status == ONX_OK && i < o->count; i++) {
        values[i] = o->list[i].value;
        names[i] = o->list[i].name;
    }
    if (status == ONX_OK)
        status = onx_value_to_npz(o->call->cx, values, names, o->count, &bytes);
    if (status == ONX_OK)
        status = onx_save_bytes(o->call->cx, path, onx_str_make(bytes.ptr, bytes.len));
    onx_buffer_free(&bytes);
    free(values);
    free(names);
    return status;
}

static onx_status write_single(cli_outputs *o, const char *path)
{
    if (o->count != 1) {
        cli_error(o->call, "there are %u outputs, but %s can hold only one", o->count,
                  strcmp(path, "-") == 0 ? "standard output" : path);
        cli_hint("choose one with --outputs NAME, or write FILE.npz or a folder");
        return ONX_E_MISUSE;
    }
    return cli_value_save_as(o->call, path, cli_has(o->call, "npy"), o->list[0].value, o->list[0].name);
}

static onx_status write_folder(cli_outputs *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        char *path = numbered(o, i);
        onx_status status = path ? cli_value_save(o->call, path, o->list[i].value, o->list[i].name) : ONX_E_MEMORY;
        free(path);
        ONX_TRY(status);
    }
    return ONX_OK;
}

onx_status cli_outputs_put(cli_outputs *o)
{
    const char *path = path_of(o);
    const place to = place_of(o);
    onx_status status = ONX_OK;
    if (to == TO_ARCHIVE || (to == TO_STREAM && cli_has(o->call, "npy") && o->count != 1))
        status = write_archive(o, path);
    else if (to == TO_FILE || to == TO_STREAM)
        status = write_single(o, path);
    else if (to == TO_FOLDER)
        status = write_folder(o);
    if (status != ONX_OK)
        return status;
    if (cli_has(o->call, "json"))
        print_json(o);
    else if (to == TO_TERMINAL || (to != TO_STREAM && (o->look.full || o->look.top)))
        print_all(o);
    return ONX_OK;
}

void cli_outputs_clear(cli_outputs *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        onx_value_free(o->list[i].value);
        free(o->list[i].shown);
        free(o->list[i].text);
    }
    o->count = 0;
    memset(o->seen, 0, (size_t)o->wanted_count * sizeof *o->seen);
}

void cli_outputs_free(cli_outputs *o)
{
    if (o->seen)
        cli_outputs_clear(o);
    free(o->list);
    free(o->wanted);
    free(o->seen);
    onx_infer_free(o->infer);
    *o = (cli_outputs){ .call = o->call };
}
