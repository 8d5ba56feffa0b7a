/* cli_tune.c - sample data, runs of the model over it, and the search for the nodes that must not be changed. */
#include "cli_tune.h"
#include "cli_files.h"
#include "cli_table.h"

#include <dirent.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- samples ---- */

static onx_status no_memory(const cli_call *call)
{
    cli_error(call, "out of memory");
    return ONX_E_MEMORY;
}

static onx_status add_sample(cli_samples *s, const char *folder, const char *name)
{
    if (!CLI_GROW(s->where, s->count, s->room))
        return no_memory(s->call);
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *text = malloc(size);
    if (!text)
        return no_memory(s->call);
    snprintf(text, size, "%s%s%s", folder, *name ? "/" : "", name);
    s->where[s->count++] = text;
    return ONX_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the test_data_set folders and .npz files of a folder, or the folder itself if it is a test_data_set. */
static onx_status add_folder(cli_samples *s, const char *folder)
{
    const uint32_t before = s->count;
    bool is_set = false;
    onx_status status = ONX_OK;
    DIR *dir = opendir(folder);
    if (!dir) {
        cli_error(s->call, "cannot read the folder %s", folder);
        return ONX_E_IO;
    }
    for (struct dirent *e; status == ONX_OK && (e = readdir(dir)) != NULL;) {
        const size_t n = strlen(e->d_name);
        is_set |= strncmp(e->d_name, "input_0.", 8) == 0;
        if (strncmp(e->d_name, "test_data_set", 13) == 0 || (n > 4 && strcmp(e->d_name + n - 4, ".npz") == 0))
            status = add_sample(s, folder, e->d_name);
    }
    closedir(dir);
    if (status == ONX_OK && is_set)
        return add_sample(s, folder, "");
    if (status == ONX_OK && s->count == before) {
        cli_error(s->call, "%s contains no sample: no input_0.pb, no test_data_set and no .npz", folder);
        return ONX_E_NOT_FOUND;
    }
    if (status == ONX_OK)
        qsort(s->where + before, s->count - before, sizeof *s->where, by_text);
    return status;
}

onx_status cli_samples_open(cli_call *call, cli_samples *s)
{
    uint64_t made_up = 1;
    const char *text;
    *s = (cli_samples){ .call = call, .given = cli_has(call, "data") };
    if (!cli_number(call, "samples", 1, 100000, &made_up))
        return ONX_E_MISUSE;
    if (s->given && cli_has(call, "samples")) {
        cli_error(call, "--data and --samples exclude each other: samples are either given or made up");
        return ONX_E_MISUSE;
    }
    for (int i = 0; (text = cli_value_at(call, "data", i)) != NULL; i++)
        ONX_TRY(cli_is_folder(text) ? add_folder(s, text) : add_sample(s, text, ""));
    if (!s->given)
        s->count = (uint32_t)made_up;
    return ONX_OK;
}

void cli_samples_close(cli_samples *s)
{
    for (uint32_t i = 0; s->where && i < s->count; i++)
        free(s->where[i]);
    free(s->where);
    *s = (cli_samples){ 0 };
}

/* Sample data has the types of the original model; it is converted if the inputs of the changed model have other
 * types. */
static onx_status convert_inputs(const cli_samples *s, const onx_session *session, cli_inputs *in)
{
    for (uint32_t i = 0; i < in->count; i++) {
        const onx_type *type = onx_session_input(session, i).type;
        onx_value *from = in->values[i], *to;
        const int32_t wanted = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->elem_type : ONX_UNDEFINED;
        if (!from || from->kind != ONX_VALUE_TENSOR || from->dtype == wanted ||
            onx_dtype_class_of(from->dtype) != ONX_CLASS_FLOATING || onx_dtype_class_of(wanted) != ONX_CLASS_FLOATING)
            continue;
        ONX_TRY(onx_value_new_tensor(s->call->cx, (onx_dtype)wanted, from->rank, from->dims, &to));
        (void)onx_convert((onx_dtype)wanted, to->data, (onx_dtype)from->dtype, from->data, from->count, true);
        onx_value_free(from);
        in->values[i] = to;
    }
    return ONX_OK;
}

void cli_samples_say(const cli_samples *s)
{
    if (!s->given)
        fprintf(stderr, "%smade up:%s %u sample%s, as there is no --data\n", cli_color(stderr, CLI_CYAN),
                cli_color(stderr, CLI_PLAIN), s->count, s->count == 1 ? "" : "s");
}

/* A call like that of `onx run` with only this sample as inputs. */
onx_status cli_samples_read(const cli_samples *s, uint32_t index, onx_doc *doc, const onx_session *session,
                            cli_inputs *out)
{
    static const cli_option input = { "input", 'i', "NAME=VALUE", NULL, "" }, seed = { "seed", 0, "N", NULL, "" };
    char number[24];
    uint64_t first = 0;
    cli_call call = *s->call;
    *out = (cli_inputs){ 0 };
    if (!cli_number(s->call, "seed", 0, UINT64_MAX / 2, &first))
        return ONX_E_MISUSE;
    call.given = calloc((size_t)call.given_count + 2, sizeof(*call.given));
    call.given_value = calloc((size_t)call.given_count + 2, sizeof(*call.given_value));
    onx_status status = call.given && call.given_value ? ONX_OK : no_memory(s->call);
    int n = 0;
    for (int i = 0; status == ONX_OK && i < s->call->given_count; i++)
        if (strcmp(s->call->given[i]->name, "data") != 0) {
            call.given[n] = s->call->given[i];
            call.given_value[n++] = s->call->given_value[i];
        }
    index += s->first;
    snprintf(number, sizeof number, "%llu", (unsigned long long)(first + index));
    call.given_count = n + 1;
    if (status == ONX_OK) {
        call.given[n] = s->where ? &input : &seed;
        call.given_value[n] = s->where ? s->where[index] : number;
        status = cli_inputs_read(&call, doc, session, CLI_MAKE_UP | CLI_SILENT, out);
        if (status == ONX_OK)
            status = convert_inputs(s, session, out);
    }
    free(call.given);
    free(call.given_value);
    s->call->input = call.input;
    return status;
}

/* ---- runs ---- */

/* Some inner values that are fetched together; `last`: this group also includes the inputs and outputs of the model. */
typedef struct batch {
    const uint32_t *chosen;
    uint32_t count;
    bool last;
} batch;

/* Limits the group size, because its values are held in memory at once. */
static uint32_t batch_size(const cli_inner *inner, const uint32_t *chosen, uint32_t count)
{
    enum { AT_ONCE = 200, BYTES = 8 << 20 };
    uint64_t bytes = 0;
    uint32_t n = 0;
    while (n < count && n < AT_ONCE && bytes < BYTES) {
        const onx_type *type = inner->list[chosen[n++]]->type;
        const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
        uint64_t size = t ? onx_dtype_bits(t->elem_type) / 8u : 0;
        for (uint32_t i = 0; t && t->shape && i < t->shape->dim_count; i++) /* unknown sizes are assumed to be small */
            if (ONX_HAS(dimension, t->shape->dim[i], dim_value) && t->shape->dim[i]->dim_value > 0)
                size = size < BYTES ? size * (uint64_t)t->shape->dim[i]->dim_value : size;
        bytes += size < BYTES ? size : BYTES;
    }
    return n;
}

static onx_status run_sample(const cli_samples *s, cli_inner *inner, onx_session *session, uint32_t sample,
                             const batch *b, const cli_visit *visit)
{
    const uint32_t outputs = onx_session_output_count(session);
    cli_inputs in;
    onx_value **values = calloc(outputs + 1u, sizeof *values);
    onx_status status = values ? cli_samples_read(s, sample, inner->doc, session, &in) : no_memory(s->call);
    if (!values)
        return status;
    for (uint32_t i = 0; status == ONX_OK && b->last && visit->input && i < in.count; i++)
        if (in.values[i])
            status = visit->input(visit->user, onx_session_input(session, i).name, in.values[i]);
    if (status == ONX_OK)
        status = onx_session_run(session, s->call->cx, (const onx_value *const *)in.values, values);
    for (uint32_t i = 0; status == ONX_OK && i < outputs; i++) {
        const bool inside = i >= inner->outputs;
        if (inside || b->last)
            status =
                visit->see(visit->user, sample, inside ? b->chosen[i - inner->outputs] : inner->count + i, values[i]);
    }
    for (uint32_t i = 0; i < outputs; i++)
        onx_value_free(values[i]);
    free(values);
    cli_inputs_free(&in);
    return status;
}

/* Minimises memory: weights are read from the mapped file, and no packed copies are kept. */
static onx_status observe_batch(const cli_samples *s, cli_inner *inner, const batch *b, const cli_visit *visit)
{
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    onx_session *session = NULL;
    if (!cli_run_options(s->call, &threads, &options, &limits))
        return ONX_E_MISUSE;
    options.lean_memory = true;
    onx_status status = cli_inner_choose(inner, b->chosen, b->count);
    if (status == ONX_OK)
        status = onx_session_new(s->call->cx, inner->doc, &options, &session);
    for (uint32_t k = 0; status == ONX_OK && k < s->count; k++)
        status = run_sample(s, inner, session, k, b, visit);
    onx_session_free(session);
    const onx_status back = cli_inner_choose(inner, NULL, 0);
    return status != ONX_OK ? status : back;
}

onx_status cli_observe(const cli_samples *s, cli_inner *inner, const uint32_t *chosen, uint32_t count,
                       const cli_visit *visit)
{
    onx_status status = ONX_OK;
    for (uint32_t from = 0, n; status == ONX_OK && (from < count || from == 0); from += n ? n : 1) {
        n = batch_size(inner, chosen + from, count - from);
        status = observe_batch(s, inner, &(batch){ chosen + from, n, count - from <= n }, visit);
    }
    return status;
}

double cli_apart(const onx_value *a, const onx_value *b)
{
    cli_distance d;
    cli_compare_values(a, b, 0, 0, &d);
    if (d.unlike[0] || !isfinite(d.max_abs))
        return INFINITY;
    return d.different ? pow(10, -d.snr / 20) : 0;
}

/* ---- names and paths ---- */

onx_str *cli_texts(const cli_call *call, const char *option, uint32_t *count)
{
    onx_str *list = calloc((size_t)call->given_count + 1, sizeof *list);
    const char *text;
    *count = 0;
    if (!list)
        cli_error(call, "out of memory");
    while (list && (text = cli_value_at(call, option, (int)*count)) != NULL)
        list[(*count)++] = onx_str_of(text);
    return list;
}

const char *cli_folder_of(const char *path, char *buf, size_t size)
{
    if (!path || strcmp(path, "-") == 0)
        return NULL;
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
    if (n >= size)
        return NULL;
    memcpy(buf, slash ? path : ".", n);
    buf[n] = 0;
    return buf;
}

static onx_status find_external(void *user, const onx_visit *at)
{
    *(bool *)user |= at->kind == ONX_KIND_TENSOR && onx_tensor_is_external(at->message);
    return ONX_OK;
}

bool cli_is_external(cli_call *call, const onx_doc *doc)
{
    bool found = false;
    return onx_message_walk(call->cx, ONX_KIND_MODEL, onx_doc_model(doc), find_external, &found) == ONX_OK && found;
}

static onx_status count_weights(void *user, const onx_visit *at)
{
    uint64_t count, size, *bytes = user;
    if (at->kind != ONX_KIND_TENSOR)
        return ONX_OK;
    if (onx_tensor_count(at->message, &count) &&
        onx_dtype_size(((const onx_tensor *)at->message)->data_type, count, &size))
        *bytes += size < UINT64_MAX / 4 ? size : UINT64_MAX / 4;
    return ONX_OK;
}

onx_status cli_save_beside(const cli_transform *t, onx_doc *doc, bool outside)
{
    cli_call *call = t->call;
    const char *path = t->out;
    if (t->dry_run)
        return ONX_OK;
    uint64_t bytes = 0;
    onx_save_options save = { .format = cli_format_out(call, path) };
    ONX_TRY(onx_message_walk(call->cx, ONX_KIND_MODEL, onx_doc_model(doc), count_weights, &bytes));
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *location = NULL;
    onx_external_options external = { 0 };
    if ((outside || bytes > (UINT64_C(1) << 31) - (UINT64_C(1) << 24)) && strcmp(path, "-") != 0) {
        location = malloc(strlen(name) + 6);
        if (!location)
            return no_memory(call);
        snprintf(location, strlen(name) + 6, "%s.data", name);
        external.location = location;
        save.external = &external;
    }
    const onx_status status = onx_save(call->cx, doc, path, &save);
    free(location);
    return status;
}

/* ---- comparing a changed model with the original ---- */

/* Values of the original that the changed model has under the same name; kept from the run of one for that of the
 * other. */
typedef struct measure {
    cli_tune *t;
    cli_inner *inner[2];
    cli_table names;  /* over inner[0] */
    onx_value **kept; /* values and outputs of the original, for one sample */
    double *worst;    /* the largest error, per value and output of the original */
    uint32_t sample;
    uint32_t *partner; /* per value of the changed model, its counterpart */
} measure;

static onx_status keep_value(void *user, uint32_t sample, uint32_t value, const onx_value *v)
{
    measure *m = user;
    (void)sample;
    if (!m->kept[value])
        ONX_TRY(onx_value_new(m->t->call->cx, &m->kept[value]));
    return onx_value_assign(m->kept[value], v);
}

static onx_status look_at_input(void *user, onx_str name, const onx_value *v)
{
    measure *m = user;
    if (m->t->told || v->kind != ONX_VALUE_TENSOR || onx_dtype_class_of(v->dtype) != ONX_CLASS_FLOATING)
        return ONX_OK;
    for (uint64_t i = 0; i < v->count && !m->t->told; i++) {
        double x;
        const char *at = (const char *)v->data + i * onx_dtype_bits(v->dtype) / 8;
        m->t->told = onx_dtype_bits(v->dtype) >= 8 &&
                     onx_convert(ONX_DOUBLE, &x, (onx_dtype)v->dtype, at, 1, true) == ONX_OK && !isfinite(x);
    }
    if (m->t->told)
        cli_warn(m->t->call,
                 "\"%.*s\" has elements in the data that are not finite: values computed from them are not measured",
                 ONX_ARG(name));
    return ONX_OK;
}

static onx_status compare_value(void *user, uint32_t sample, uint32_t value, const onx_value *v)
{
    measure *m = user;
    const bool output = value >= m->inner[1]->count;
    const uint32_t own = output ? m->inner[0]->count + value - m->inner[1]->count : m->partner[value];
    (void)sample;
    if (!m->kept[own])
        return ONX_OK;
    const double apart = cli_apart(m->kept[own], v);
    /* Integers, such as indexes, are right or wrong; the size of their difference means nothing. */
    const onx_dtype_class kind = onx_dtype_class_of(m->kept[own]->dtype);
    const bool real = kind == ONX_CLASS_FLOATING || kind == ONX_CLASS_COMPLEX;
    if (real && !(apart <= m->worst[own]))
        m->worst[own] = apart;
    return ONX_OK;
}

static onx_status pair_inner(measure *m, uint32_t *ours, uint32_t *theirs, uint32_t *count)
{
    const cli_inner *a = m->inner[0], *b = m->inner[1];
    *count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (!cli_table_add(&m->names, cli_table_hash(&m->names, onx_view(a->list[i]->name), onx_str_of("")), i))
            return no_memory(m->t->call);
    for (uint32_t i = 0; i < b->count; i++) {
        const onx_str name = onx_view(b->list[i]->name);
        CLI_TABLE_EACH (&m->names, cli_table_hash(&m->names, name, onx_str_of("")), k) {
            if (onx_str_equal(onx_view(a->list[k]->name), name)) {
                ours[*count] = k;
                theirs[(*count)++] = i;
                m->partner[i] = k;
                break;
            }
        }
    }
    return ONX_OK;
}

static void drop_kept(measure *m)
{
    const size_t all = (size_t)m->inner[0]->count + m->inner[0]->outputs;
    for (size_t i = 0; i < all; i++) {
        onx_value_free(m->kept[i]);
        m->kept[i] = NULL;
    }
}

/* Runs both models on one sample for a group of values at a time, so that only these values are in memory. */
static onx_status measure_samples(measure *m, const uint32_t *ours, const uint32_t *theirs, uint32_t count)
{
    const cli_visit first = { keep_value, look_at_input, m }, second = { compare_value, NULL, m };
    onx_status status = ONX_OK;
    for (uint32_t i = 0; status == ONX_OK && i < m->t->samples->count; i++) {
        cli_samples one = *m->t->samples;
        one.count = 1;
        one.first = i;
        for (uint32_t from = 0, n; status == ONX_OK && (from < count || from == 0); from += n ? n : 1) {
            n = batch_size(m->inner[0], ours + from, count - from);
            const bool last = count - from <= n;
            status = observe_batch(&one, m->inner[0], &(batch){ ours + from, n, last }, &first);
            if (status == ONX_OK)
                status = observe_batch(&one, m->inner[1], &(batch){ theirs + from, n, last }, &second);
            drop_kept(m);
        }
    }
    return status;
}

static onx_status measure_model(cli_tune *t, onx_doc *doc, bool inside, cli_inner *original, double *worst)
{
    cli_inner changed = { 0 };
    measure m = { .t = t, .inner = { original, &changed }, .names = { .cx = t->call->cx }, .worst = worst };
    uint32_t count = 0, *ours = NULL, *theirs = NULL;
    onx_status status = cli_inner_open(&changed, t->call, doc);
    const size_t all = (size_t)original->count + original->outputs + 1;
    if (status == ONX_OK) {
        m.kept = calloc(all, sizeof *m.kept);
        m.partner = calloc((size_t)changed.count + 1, sizeof *m.partner);
        ours = calloc((size_t)changed.count + 1, sizeof *ours);
        theirs = calloc((size_t)changed.count + 1, sizeof *theirs);
        status = m.kept && m.partner && ours && theirs ? ONX_OK : no_memory(t->call);
    }
    if (status == ONX_OK && inside)
        status = pair_inner(&m, ours, theirs, &count);
    if (status == ONX_OK)
        status = measure_samples(&m, ours, theirs, count);
    free(m.kept);
    free(m.partner);
    free(m.names.slots);
    free(ours);
    free(theirs);
    cli_inner_close(&changed);
    return status;
}

/* ---- ranking nodes ---- */

static int by_added(const void *a, const void *b)
{
    const cli_node_error *x = a, *y = b;
    const double dx = isnan(x->added) ? INFINITY : x->added, dy = isnan(y->added) ? INFINITY : y->added;
    return dx < dy ? 1 : dx > dy ? -1 : 0;
}

static onx_str called(const onx_node *node)
{
    const onx_str name = onx_view(node->name);
    return name.len || !node->output_count ? name : onx_view(node->output[0]);
}

/* Inner values come first, then outputs. */
static onx_str measured_name(const cli_tune *t, const cli_inner *original, uint32_t i)
{
    return i < original->count ? onx_view(original->list[i]->name)
                               : onx_view(onx_doc_model(t->original)->graph->output[i - original->count]->name);
}

static double error_of(const cli_tune *t, const cli_inner *original, const cli_table *names, const double *worst,
                       onx_str name)
{
    CLI_TABLE_EACH (names, cli_table_hash(names, name, onx_str_of("")), i) {
        if (name.len && onx_str_equal(measured_name(t, original, i), name))
            return worst[i];
    }
    return 0;
}

/* Sorts nodes by error, the largest first. */
typedef struct ranking {
    cli_node_error *nodes;
    uint32_t count;
} ranking;

/* The error that each node adds to the error of its inputs. */
static onx_status rank_nodes(cli_tune *t, const cli_inner *original, const double *worst, ranking *out)
{
    const onx_graph *g = onx_doc_model(t->original)->graph;
    cli_table names = { .cx = t->call->cx };
    onx_status status = ONX_OK;
    *out = (ranking){ calloc((size_t)g->node_count + 1, sizeof(cli_node_error)), 0 };
    if (!out->nodes)
        return no_memory(t->call);
    for (uint32_t i = 0; i < original->count + original->outputs && status == ONX_OK; i++)
        if (!cli_table_add(&names, cli_table_hash(&names, measured_name(t, original, i), onx_str_of("")), i))
            status = no_memory(t->call);
    for (uint32_t i = 0; i < g->node_count && status == ONX_OK; i++) {
        const onx_node *node = g->node[i];
        double before = 0;
        const double after = node->output_count ? error_of(t, original, &names, worst, onx_view(node->output[0])) : 0;
        if (!(after > 0))
            continue;
        for (uint32_t k = 0; k < node->input_count; k++)
            before = fmax(before, error_of(t, original, &names, worst, onx_view(node->input[k])));
        out->nodes[out->count++] = (cli_node_error){ called(node), onx_view(node->op_type), after,
                                                     isfinite(before) ? after - before : 0, false };
    }
    free(names.slots);
    qsort(out->nodes, out->count, sizeof *out->nodes, by_added);
    return status;
}

static bool is_named(const cli_table *names, const ranking *r, onx_str name)
{
    CLI_TABLE_EACH (names, cli_table_hash(names, name, onx_str_of("")), i) {
        if (onx_str_equal(r->nodes[i].name, name))
            return true;
    }
    return false;
}

/* Ranks the nodes. The first `kept` stay first; then come those that add an error while the first ones are kept, and
 * then all others. */
static onx_status rank_rest(cli_tune *t, ranking *order, uint32_t kept, const ranking *now)
{
    const ranking old = *order, *const from[] = { now, &old };
    cli_table names = { .cx = t->call->cx };
    *order = (ranking){ calloc((size_t)old.count + now->count + 1, sizeof(cli_node_error)), 0 };
    bool good = order->nodes != NULL;
    for (uint32_t i = 0; good && i < kept; i++) {
        order->nodes[i] = old.nodes[i];
        good = cli_table_add(&names, cli_table_hash(&names, old.nodes[i].name, onx_str_of("")), i);
        order->count++;
    }
    for (int f = 0; f < 2; f++)
        for (uint32_t i = 0; good && i < from[f]->count; i++) {
            const onx_str name = from[f]->nodes[i].name;
            if (is_named(&names, order, name))
                continue;
            order->nodes[order->count] = from[f]->nodes[i];
            good = cli_table_add(&names, cli_table_hash(&names, name, onx_str_of("")), order->count++);
        }
    free(names.slots);
    free(old.nodes);
    return good ? ONX_OK : no_memory(t->call);
}

onx_status cli_tune_keep(cli_tune *t, onx_str name)
{
    onx_str *bigger = realloc(t->keep, ((size_t)t->keep_count + 1) * sizeof *bigger);
    if (!bigger)
        return no_memory(t->call);
    t->keep = bigger;
    t->keep[t->keep_count++] = name;
    return ONX_OK;
}

/* ---- the search ---- */

static double worst_output(const cli_inner *original, const double *worst)
{
    double most = 0;
    for (uint32_t i = 0; i < original->outputs; i++)
        if (!(worst[original->count + i] <= most))
            most = worst[original->count + i];
    return most;
}

/* Changes the model with `more` of the ranked nodes left unchanged, and measures its error. `inside` receives the error
 * that the other nodes add, or is NULL. */
static onx_status attempt(cli_tune *t, cli_inner *original, const ranking *order, uint32_t more, ranking *inside,
                          onx_doc **out)
{
    const uint32_t before = t->keep_count;
    const size_t all = (size_t)original->count + original->outputs + 1;
    double *worst = calloc(all, sizeof *worst);
    onx_doc *doc = NULL;
    onx_status status = worst ? cli_load(t->call, t->path, ONX_KIND_MODEL, &doc) : no_memory(t->call);
    *out = NULL;
    for (uint32_t i = 0; status == ONX_OK && i < more; i++)
        status = cli_tune_keep(t, order->nodes[i].name);
    if (status == ONX_OK)
        status = t->apply(t->user, doc, t->keep, t->keep_count);
    if (status == ONX_OK)
        status = measure_model(t, doc, inside != NULL, original, worst);
    if (status == ONX_OK) {
        t->error = worst_output(original, worst);
        t->tries++;
    }
    if (status == ONX_OK && inside)
        status = rank_nodes(t, original, worst, inside);
    t->keep_count = before;
    free(worst);
    if (status == ONX_OK)
        *out = doc;
    else
        onx_doc_free(doc);
    return status;
}

/* Doubles the number of unchanged nodes each time, and ranks the others again: if a node destroys its value completely,
 * the errors of later nodes only show once it is left unchanged. Then a binary search finds the smallest number. */
static onx_status search(cli_tune *t, cli_inner *original, ranking *order, onx_doc **out)
{
    uint32_t low = 0, high = 1, best = 0;
    onx_status status = ONX_OK;
    while (status == ONX_OK && t->error > t->max_error && low < order->count) {
        ranking now = { 0 };
        high = low ? (low > order->count / 2 ? order->count : 2 * low) : 1;
        onx_doc_free(*out);
        status = attempt(t, original, order, high, &now, out);
        best = high;
        if (status == ONX_OK && !(t->error <= t->max_error)) {
            low = high;
            status = rank_rest(t, order, high, &now);
        }
        free(now.nodes);
    }
    double error = t->error;
    for (int steps = 0; status == ONX_OK && error <= t->max_error && best - low > 1 && steps < 4; steps++) {
        const uint32_t middle = low + (best - low) / 2;
        onx_doc *doc = NULL;
        status = attempt(t, original, order, middle, NULL, &doc);
        if (status == ONX_OK && t->error <= t->max_error) {
            onx_doc_free(*out);
            *out = doc;
            best = middle;
            error = t->error;
        } else {
            onx_doc_free(doc);
            low = middle;
        }
    }
    t->error = error;
    order->count = best;
    return status;
}

/* Marks the nodes of the first measurement that are left unchanged at the end, and adds those that showed no error at
 * first. */
static onx_status mark_kept(cli_tune *t, const ranking *order)
{
    ranking all = { t->nodes, t->node_count };
    const uint32_t first = t->node_count;
    cli_table names = { .cx = t->call->cx };
    bool good = true;
    for (uint32_t i = 0; good && i < order->count; i++)
        good = cli_table_add(&names, cli_table_hash(&names, order->nodes[i].name, onx_str_of("")), i);
    for (uint32_t i = 0; good && i < first; i++)
        t->nodes[i].kept = is_named(&names, order, t->nodes[i].name);
    free(names.slots);
    if (!good)
        return no_memory(t->call);
    const onx_status status = rank_rest(t, &all, first, order);
    t->nodes = all.nodes;
    t->node_count = all.count;
    for (uint32_t i = first; i < all.count; i++)
        t->nodes[i].kept = true;
    return status;
}

static onx_status measure_and_search(cli_tune *t, cli_inner *original, onx_doc **out)
{
    ranking first = { 0 }, order = { 0 };
    onx_status status = attempt(t, original, &order, 0, &first, out);
    free(t->nodes);
    t->nodes = first.nodes;
    t->node_count = first.count;
    if (status != ONX_OK || t->max_error < 0)
        return status;
    status = rank_rest(t, &order, 0, &first);
    if (status == ONX_OK)
        status = search(t, original, &order, out);
    if (status == ONX_OK)
        status = mark_kept(t, &order);
    free(order.nodes);
    return status;
}

onx_status cli_tune_run(cli_tune *t, onx_doc **out)
{
    cli_inner original = { 0 };
    *out = NULL;
    onx_status status = ONX_OK;
    if (!t->original)
        status = cli_load(t->call, t->path, ONX_KIND_MODEL, &t->original);
    if (status == ONX_OK)
        status = cli_inner_open(&original, t->call, t->original);
    if (status == ONX_OK)
        status = measure_and_search(t, &original, out);
    if (status == ONX_OK && t->max_error >= 0 && !(t->error <= t->max_error)) {
        cli_error(t->call, "even with all nodes unchanged the error is %g, more than %g", t->error, t->max_error);
        status = ONX_E_INVALID;
    }
    if (status != ONX_OK) {
        onx_doc_free(*out);
        *out = NULL;
    }
    cli_inner_close(&original);
    return status;
}

void cli_tune_close(cli_tune *t)
{
    free(t->keep);
    free(t->nodes);
    onx_doc_free(t->original);
}
