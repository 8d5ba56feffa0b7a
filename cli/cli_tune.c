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

/* What a run gave: of each value some elements, of the first times that it was computed, and all of the outputs. */
enum { ELEMENTS = 4096, TIMES = 8 };

typedef struct glimpse {
    uint64_t count; /* elements of the value */
    onx_value *some;
} glimpse;

typedef struct glimpses {
    glimpse at[TIMES];
    uint32_t count; /* how often the value was computed, at most TIMES */
} glimpses;

typedef struct record {
    glimpses *values;    /* per value of the original, by pointer so that those that are not seen cost little */
    onx_value **outputs; /* per output */
} record;

/* Values of the original that the changed model has under the same name, and are compared with. */
typedef struct measure {
    cli_tune *t;
    cli_observer *observer; /* that runs */
    cli_observer changed;
    cli_table names;   /* over the values of the original */
    record kept;       /* of the original, for one sample */
    uint32_t *times;   /* per value of the original: how often the changed model has computed it */
    double *worst;     /* the largest error, per value and output of the original */
    uint32_t *partner; /* per value of the changed model, its counterpart */
} measure;

/* Elements in equal distances; NULL: they are not compared. */
static onx_status take_some(const cli_tune *t, const onx_value *v, onx_value **out)
{
    *out = NULL;
    if (v->kind != ONX_VALUE_TENSOR || onx_dtype_class_of(v->dtype) != ONX_CLASS_FLOATING)
        return ONX_OK;
    const uint64_t step = v->count / ELEMENTS + 1;
    const int64_t n = (int64_t)(v->count / step + (v->count % step > 0));
    const uint32_t bits = onx_dtype_bits(v->dtype);
    ONX_TRY(onx_value_new_tensor(t->call->cx, ONX_DOUBLE, 1, &n, out));
    for (int64_t i = 0; i < n; i++)
        if (onx_convert(ONX_DOUBLE, (double *)(*out)->data + i, (onx_dtype)v->dtype,
                        (const char *)v->data + (uint64_t)i * step * bits / 8, 1, true) != ONX_OK)
            break;
    return ONX_OK;
}

static bool has_nonfinite(const onx_value *v)
{
    for (uint64_t i = 0; v && i < v->count; i++)
        if (!isfinite(((const double *)v->data)[i]))
            return true;
    return false;
}

static onx_status keep_value(void *user, uint32_t sample, uint32_t value, const onx_value *v)
{
    measure *m = user;
    const cli_observer *o = m->observer;
    (void)sample;
    if (value >= o->count) {
        onx_value **to = &m->kept.outputs[value - o->count];
        if (!*to)
            ONX_TRY(onx_value_new(m->t->call->cx, to));
        return onx_value_assign(*to, v);
    }
    glimpses *g = &m->kept.values[value];
    if (g->count >= TIMES)
        return ONX_OK;
    glimpse *at = &g->at[g->count++];
    at->count = v->count;
    ONX_TRY(take_some(m->t, v, &at->some));
    if (o->list[value].from == CLI_FROM_INPUT && !m->t->told && has_nonfinite(at->some)) {
        m->t->told = true;
        cli_warn(m->t->call,
                 "\"%.*s\" has elements in the data that are not finite: values computed from them are not measured",
                 ONX_ARG(o->list[value].name));
    }
    return ONX_OK;
}

static void note_error(measure *m, uint32_t own, int32_t dtype, double apart)
{
    /* Integers, such as indexes, are right or wrong; the size of their difference means nothing. */
    const onx_dtype_class kind = onx_dtype_class_of(dtype);
    if ((kind == ONX_CLASS_FLOATING || kind == ONX_CLASS_COMPLEX) && !(apart <= m->worst[own]))
        m->worst[own] = apart;
}

static onx_status compare_value(void *user, uint32_t sample, uint32_t value, const onx_value *v)
{
    measure *m = user;
    const cli_observer *o = &m->t->observer;
    (void)sample;
    if (value >= m->changed.count) {
        const uint32_t output = value - m->changed.count;
        const onx_value *before = m->kept.outputs[output];
        if (before)
            note_error(m, o->count + output, before->dtype, cli_apart(before, v));
        return ONX_OK;
    }
    const uint32_t own = m->partner[value];
    const uint32_t time = m->times[own]++;
    const glimpse *before = time < m->kept.values[own].count ? &m->kept.values[own].at[time] : NULL;
    onx_value *now;
    if (!before || !before->some || before->count != v->count)
        return ONX_OK;
    ONX_TRY(take_some(m->t, v, &now));
    if (now)
        note_error(m, own, ONX_DOUBLE, cli_apart(before->some, now));
    onx_value_free(now);
    return ONX_OK;
}

/* Values of one name in several graphs are told apart by their order. */
static onx_status pair_values(measure *m)
{
    const cli_observer *a = &m->t->observer;
    for (uint32_t i = 0; i < a->count; i++)
        if (!cli_table_add(&m->names, cli_table_hash(&m->names, a->list[i].name, onx_str_of("")), i))
            return no_memory(m->t->call);
    for (uint32_t i = 0; i < m->changed.count; i++) {
        cli_observed *own = &m->changed.list[i];
        CLI_TABLE_EACH (&m->names, cli_table_hash(&m->names, own->name, onx_str_of("")), k) {
            if (onx_str_equal(a->list[k].name, own->name) && a->list[k].ordinal == own->ordinal) {
                own->wanted = a->list[k].wanted && own->from == CLI_FROM_NODE;
                m->partner[i] = k;
                break;
            }
        }
    }
    return ONX_OK;
}

static void drop_kept(measure *m)
{
    const cli_observer *o = &m->t->observer;
    for (uint32_t i = 0; m->kept.values && i < o->count; i++) {
        for (uint32_t k = 0; k < m->kept.values[i].count; k++)
            onx_value_free(m->kept.values[i].at[k].some);
        m->kept.values[i].count = 0;
    }
    for (uint32_t i = 0; m->kept.outputs && i < o->outputs; i++) {
        onx_value_free(m->kept.outputs[i]);
        m->kept.outputs[i] = NULL;
    }
}

/* Runs both models on one sample after the other. */
static onx_status measure_samples(measure *m)
{
    cli_observer *o = &m->t->observer;
    onx_status status = ONX_OK;
    for (uint32_t i = 0; status == ONX_OK && i < m->t->samples->count; i++) {
        m->observer = o;
        status = cli_observer_run(o, m->t->samples, i, &(cli_visit){ keep_value, m });
        if (o->count)
            memset(m->times, 0, o->count * sizeof *m->times);
        m->observer = &m->changed;
        if (status == ONX_OK)
            status = cli_observer_run(&m->changed, m->t->samples, i, &(cli_visit){ compare_value, m });
        drop_kept(m);
    }
    return status;
}

static onx_status measure_model(cli_tune *t, onx_doc *doc, bool inside, double *worst)
{
    measure m = { .t = t, .names = { .cx = t->call->cx }, .worst = worst };
    onx_status status = cli_observer_open(&m.changed, t->call, doc);
    if (status == ONX_OK) {
        m.kept.values = calloc((size_t)t->observer.count + 1, sizeof *m.kept.values);
        m.kept.outputs = calloc((size_t)t->observer.outputs + 1, sizeof *m.kept.outputs);
        m.times = calloc((size_t)t->observer.count + 1, sizeof *m.times);
        m.partner = calloc((size_t)m.changed.count + 1, sizeof *m.partner);
        status = m.kept.values && m.kept.outputs && m.times && m.partner ? ONX_OK : no_memory(t->call);
    }
    if (status == ONX_OK && inside)
        status = pair_values(&m);
    if (status == ONX_OK)
        status = cli_observer_start(&m.changed);
    if (status == ONX_OK)
        status = measure_samples(&m);
    drop_kept(&m);
    free(m.kept.values);
    free(m.kept.outputs);
    free(m.times);
    free(m.partner);
    free(m.names.slots);
    cli_observer_close(&m.changed);
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

/* The largest error of the values of that name. */
static double error_of(const cli_tune *t, const cli_table *names, const double *worst, onx_str name)
{
    double most = 0;
    CLI_TABLE_EACH (names, cli_table_hash(names, name, onx_str_of("")), i) {
        if (name.len && onx_str_equal(t->observer.list[i].name, name) && !(worst[i] <= most))
            most = worst[i];
    }
    return most;
}

/* Sorts nodes by error, the largest first. */
typedef struct ranking {
    cli_node_error *nodes;
    uint32_t count;
} ranking;

/* The error that each node adds to the error of its inputs; nodes in graphs of nodes are ranked instead of these. */
static onx_status rank_nodes(cli_tune *t, const double *worst, ranking *out)
{
    const cli_observer *o = &t->observer;
    cli_table names = { .cx = t->call->cx };
    onx_status status = ONX_OK;
    *out = (ranking){ calloc((size_t)o->node_count + 1, sizeof(cli_node_error)), 0 };
    if (!out->nodes)
        return no_memory(t->call);
    for (uint32_t i = 0; i < o->count && status == ONX_OK; i++)
        if (worst[i] > 0 || isnan(worst[i]))
            if (!cli_table_add(&names, cli_table_hash(&names, o->list[i].name, onx_str_of("")), i))
                status = no_memory(t->call);
    for (uint32_t i = 0; i < o->node_count && status == ONX_OK; i++) {
        const onx_node *node = o->nodes[i].node;
        double before = 0;
        const double after = node->output_count ? error_of(t, &names, worst, onx_view(node->output[0])) : 0;
        if (!(after > 0) || o->nodes[i].opened)
            continue;
        for (uint32_t k = 0; k < node->input_count; k++)
            before = fmax(before, error_of(t, &names, worst, onx_view(node->input[k])));
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

static double worst_output(const cli_tune *t, const double *worst)
{
    double most = 0;
    for (uint32_t i = 0; i < t->observer.outputs; i++)
        if (!(worst[t->observer.count + i] <= most))
            most = worst[t->observer.count + i];
    return most;
}

/* A changed model with `more` of the ranked nodes left unchanged. */
static onx_status change(cli_tune *t, const ranking *order, uint32_t more, onx_doc **out)
{
    const uint32_t before = t->keep_count;
    onx_status status = cli_load(t->call, t->path, ONX_KIND_MODEL, out);
    for (uint32_t i = 0; status == ONX_OK && i < more; i++)
        status = cli_tune_keep(t, order->nodes[i].name);
    if (status == ONX_OK)
        status = t->apply(t->user, *out, t->keep, t->keep_count);
    t->keep_count = before;
    if (status != ONX_OK) {
        onx_doc_free(*out);
        *out = NULL;
    }
    return status;
}

/* Changes the model with `more` of the ranked nodes left unchanged, and measures its error. `inside` receives the error
 * that the other nodes add, or is NULL. */
static onx_status attempt(cli_tune *t, const ranking *order, uint32_t more, ranking *inside)
{
    const size_t all = (size_t)t->observer.count + t->observer.outputs + 1;
    double *worst = calloc(all, sizeof *worst);
    onx_doc *doc = NULL;
    t->trying = true;
    onx_status status = worst ? change(t, order, more, &doc) : no_memory(t->call);
    t->trying = false;
    if (status == ONX_OK)
        status = measure_model(t, doc, inside != NULL, worst);
    if (status == ONX_OK) {
        t->error = worst_output(t, worst);
        t->tries++;
        onx_diag_clear(t->call->cx); /* the change that is kept is made again, and warns again */
    }
    if (status == ONX_OK && inside)
        status = rank_nodes(t, worst, inside);
    free(worst);
    onx_doc_free(doc);
    return status;
}

/* Doubles the number of unchanged nodes each time, and ranks the others again: if a node destroys its value completely,
 * the errors of later nodes only show once it is left unchanged. Then a binary search finds the smallest number. */
static onx_status search(cli_tune *t, ranking *order)
{
    uint32_t low = 0, high = 1, best = 0;
    onx_status status = ONX_OK;
    while (status == ONX_OK && t->error > t->max_error && low < order->count) {
        ranking now = { 0 };
        high = low ? (low > order->count / 2 ? order->count : 2 * low) : 1;
        status = attempt(t, order, high, &now);
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
        status = attempt(t, order, middle, NULL);
        if (status == ONX_OK && t->error <= t->max_error) {
            best = middle;
            error = t->error;
        } else {
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

static onx_status measure_and_search(cli_tune *t, onx_doc **out)
{
    ranking first = { 0 }, order = { 0 };
    onx_status status = attempt(t, &order, 0, &first);
    free(t->nodes);
    t->nodes = first.nodes;
    t->node_count = first.count;
    if (status == ONX_OK && t->max_error >= 0)
        status = rank_rest(t, &order, 0, &first);
    if (status == ONX_OK && t->max_error >= 0)
        status = search(t, &order);
    if (status == ONX_OK)
        status = change(t, &order, t->max_error >= 0 ? order.count : 0, out);
    if (status == ONX_OK && t->max_error >= 0)
        status = mark_kept(t, &order);
    free(order.nodes);
    return status;
}

onx_status cli_tune_load(cli_tune *t)
{
    if (t->original)
        return ONX_OK;
    ONX_TRY(cli_load(t->call, t->path, ONX_KIND_MODEL, &t->original));
    /* The changed model has no functions either. */
    if (onx_doc_model(t->original)->functions_count)
        ONX_TRY(onx_inline(t->call->cx, t->original, NULL));
    return ONX_OK;
}

onx_status cli_tune_run(cli_tune *t, onx_doc **out)
{
    *out = NULL;
    onx_status status = cli_tune_load(t);
    if (status == ONX_OK)
        status = cli_observer_open(&t->observer, t->call, t->original);
    for (uint32_t i = 0; i < t->observer.count; i++)
        t->observer.list[i].wanted = t->observer.list[i].from != CLI_FROM_WEIGHT;
    if (status == ONX_OK)
        status = cli_observer_start(&t->observer);
    cli_report(t->call);
    if (status == ONX_OK)
        status = measure_and_search(t, out);
    if (status == ONX_OK && t->max_error >= 0 && !(t->error <= t->max_error)) {
        cli_error(t->call, "even with all nodes unchanged the error is %g, more than %g", t->error, t->max_error);
        status = ONX_E_INVALID;
    }
    if (status != ONX_OK) {
        onx_doc_free(*out);
        *out = NULL;
    }
    return status;
}

void cli_tune_close(cli_tune *t)
{
    cli_observer_close(&t->observer);
    free(t->keep);
    free(t->nodes);
    onx_doc_free(t->original);
}
