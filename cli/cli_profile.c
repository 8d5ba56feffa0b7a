/* cli_profile.c - measures the time of each operator and node over several warm runs. */
#include "cli_profile.h"
#include "cli_table.h"

#include <onx/text.h>

#include <stdlib.h>

enum { RUNS_MOST = 10, SECONDS_MOST = 1 };

/* ---- the steps of a run ---- */

static bool is_same(const profile_step *s, const onx_run_event *e)
{
    return onx_str_is(e->name, s->name ? s->name : "") && onx_str_is(e->op_type, s->op) && s->variant == e->variant;
}

static char *copy(onx_str text)
{
    char *out = malloc(text.len + 1);
    if (out && text.len)
        memcpy(out, text.ptr, text.len);
    if (out)
        out[text.len] = 0;
    return out;
}

static void forget_from(cli_profile *p, size_t index)
{
    for (size_t i = index; i < p->count; i++) {
        free(p->step[i].name);
        free(p->step[i].op);
    }
    p->count = index < p->count ? index : p->count;
}

static bool append(cli_profile *p, const onx_run_event *e)
{
    if (!CLI_GROW(p->step, p->count, p->room))
        return false;
    profile_step *s = &p->step[p->count];
    *s =
        (profile_step){ .name = copy(e->name), .op = copy(e->op_type), .variant = e->variant, .macs = -1, .bytes = -1 };
    p->count++;
    return s->name && s->op;
}

/* Steps come in the same order in every run. If a run restarts with other kernels, it reports other steps: the steps
 * from that position on are then discarded, and so are the times so far. */
void cli_profile_note(void *profile, const onx_run_event *e)
{
    cli_profile *p = profile;
    if (p->no_memory)
        return;
    if (p->at && e->start_ns < p->step[p->at - 1].start_ns)
        p->at = 0;
    if (p->at < p->count && !is_same(&p->step[p->at], e)) {
        forget_from(p, p->at);
        p->changed = true;
    }
    if (p->at == p->count && !append(p, e)) {
        forget_from(p, p->at);
        p->no_memory = true;
        return;
    }
    profile_step *s = &p->step[p->at++];
    s->post_ops = e->post_ops;
    s->measured = e->measured;
    s->start_ns = e->start_ns;
    s->end_ns = e->end_ns;
    s->output_bytes = e->output_bytes;
}

void cli_profile_begin(cli_profile *p)
{
    p->at = 0;
    p->changed = false;
}

onx_status cli_profile_end(cli_profile *p, double seconds, bool counts)
{
    forget_from(p, p->at);
    if (p->no_memory)
        return ONX_E_MEMORY;
    if (p->changed || !counts) {
        p->runs = 0;
        p->seconds = 0;
        for (size_t i = 0; i < p->count; i++)
            p->step[i].total_ns = 0;
    }
    p->runs += counts;
    p->seconds += counts ? seconds : 0;
    for (size_t i = 0; counts && i < p->count; i++)
        p->step[i].total_ns += p->step[i].end_ns - p->step[i].start_ns;
    return ONX_OK;
}

/* Runs once more; `counts`: adds the times. */
static onx_status run_once(cli_profile *p, onx_session *session, const onx_value *const *inputs, onx_value **outputs,
                           const onx_run_options *limits, bool counts)
{
    onx_run_options options = *limits;
    options.event = cli_profile_note;
    options.user = p;
    cli_profile_begin(p);
    const double start = cli_now();
    ONX_TRY(onx_session_run_with(session, p->call->cx, inputs, outputs, &options));
    return cli_profile_end(p, cli_now() - start, counts);
}

/* ---- measuring the machine ---- */

/* Multiply-adds per second of a matrix product, with the kernels and threads of the session. */
static onx_status measure_product(cli_profile *p, const onx_session_options *options)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 13]>\n"
        "g (float[512, 512] a, float[512, 512] b) => (float[512, 512] c) { c = MatMul (a, b) }\n";
    static const int64_t dims[] = { 512, 512 };
    onx_doc *doc = NULL;
    onx_session *s = NULL;
    onx_value *in[2] = { NULL, NULL }, *out = NULL;
    onx_status status = onx_text_parse(p->call->cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc);
    if (status == ONX_OK)
        status = onx_session_new(p->call->cx, doc, options, &s);
    for (int i = 0; status == ONX_OK && i < 2; i++)
        status = onx_value_new_tensor(p->call->cx, ONX_FLOAT, 2, dims, &in[i]);
    double best = 0;
    const double end = cli_now() + 0.1;
    for (int i = 0; status == ONX_OK && (i < 3 || cli_now() < end); i++) {
        const double start = cli_now();
        status = onx_session_run(s, p->call->cx, (const onx_value *const *)in, &out);
        const double seconds = cli_now() - start;
        best = best == 0 || seconds < best ? seconds : best;
    }
    p->flops = best > 0 ? 2.0 * 512 * 512 * 512 / best : 0;
    onx_value_free(in[0]);
    onx_value_free(in[1]);
    onx_value_free(out);
    onx_session_free(s);
    onx_doc_free(doc);
    return status;
}

/* Bytes read and written per second by copying more memory than the caches hold. */
static void measure_copy(cli_profile *p)
{
    enum { SIZE = 32 << 20 };
    char *from = malloc(SIZE), *to = malloc(SIZE);
    double best = 0;
    for (int i = 0; from && to && i < 4; i++) {
        memset(from, i, i ? 1 : SIZE); /* the first round touches the pages */
        const double start = cli_now();
        memcpy(to, from, SIZE);
        const double seconds = cli_now() - start;
        best = i == 1 || (i > 1 && seconds < best) ? seconds : best;
    }
    p->copied = best > 0 ? 2.0 * SIZE / best : 0;
    free(from);
    free(to);
}

onx_status cli_profile_measure(cli_profile *p, const onx_session_options *options)
{
    measure_copy(p);
    return measure_product(p, options);
}

/* ---- arithmetic and memory traffic of nodes ---- */

typedef struct sizes {
    cli_profile *profile;
    cli_table table; /* of steps, by name */
} sizes;

static void take_cost(void *user, const cost_node *node)
{
    sizes *s = user;
    const onx_str name = onx_view(node->node->name), op = onx_view(node->node->op_type);
    const double arithmetic = node->macs > 0 && s->profile->flops > 0 ? 2 * node->macs / s->profile->flops : 0;
    const double reading = s->profile->copied > 0 ? node->weights / s->profile->copied : 0;
    s->profile->bound += arithmetic > reading ? arithmetic : reading;
    if (!name.len)
        return;
    CLI_TABLE_EACH (&s->table, cli_table_hash(&s->table, name, op), i) {
        profile_step *step = &s->profile->step[i];
        if (onx_str_is(name, step->name) && onx_str_is(op, step->op)) {
            step->macs = node->macs;
            step->bytes = node->bytes;
        }
    }
}

/* Sets the symbols of the inputs from the actual values; symbols that occur twice count once. */
static uint32_t fix_symbols(const onx_session *s, const onx_value *const *inputs, onx_infer_fixed *list, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < onx_session_input_count(s); i++) {
        const onx_type *type = onx_session_input(s, i).type;
        const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
        for (uint32_t k = 0; t && t->shape && inputs[i] && k < t->shape->dim_count && k < inputs[i]->rank; k++) {
            const onx_str name = cli_dim_name(t->shape->dim[k]);
            bool known = !name.len;
            for (uint32_t n = 0; n < count && !known; n++)
                known = onx_str_is(name, list[n].name);
            char *text = known || count == room ? NULL : copy(name);
            if (text)
                list[count++] = (onx_infer_fixed){ text, inputs[i]->dims[k] };
        }
    }
    return count;
}

/* Figures that cannot be computed, as for a model with inconsistent types, stay unknown. */
static onx_status size_steps(cli_profile *p, onx_doc *doc, const onx_session *session, const onx_value *const *inputs)
{
    enum { SYMBOLS = 64 };
    onx_infer_fixed fixed[SYMBOLS];
    sizes s = { .profile = p, .table = { .cx = p->call->cx } };
    cli_cost cost = { .call = p->call, .each = take_cost, .user = &s };
    for (size_t i = 0; i < p->count; i++)
        if (*p->step[i].name &&
            !cli_table_add(&s.table, cli_table_hash(&s.table, onx_str_of(p->step[i].name), onx_str_of(p->step[i].op)),
                           (uint32_t)i))
            break;
    const uint32_t count = fix_symbols(session, inputs, fixed, SYMBOLS);
    const onx_status status = cli_cost_collect(&cost, doc, fixed, count);
    if (status != ONX_E_MEMORY)
        onx_diag_clear(p->call->cx);
    cli_cost_free(&cost);
    for (uint32_t i = 0; i < count; i++)
        free((void *)(uintptr_t)fixed[i].name);
    free(s.table.slots);
    return status == ONX_E_MEMORY ? status : ONX_OK;
}

/* ---- the whole profile ---- */

onx_status cli_profile_run(cli_profile *p, onx_doc *doc, onx_session *session, const onx_session_options *options,
                           const onx_value *const *inputs, const onx_run_options *limits)
{
    const uint32_t outputs = onx_session_output_count(session);
    onx_value **out = calloc(outputs + 1u, sizeof *out);
    onx_status status = out ? run_once(p, session, inputs, out, limits, false) : ONX_E_MEMORY;
    const double end = cli_now() + SECONDS_MOST;
    while (status == ONX_OK && (p->runs == 0 || (p->runs < RUNS_MOST && cli_now() < end)))
        status = run_once(p, session, inputs, out, limits, true);
    for (uint32_t i = 0; out && i < outputs; i++)
        onx_value_free(out[i]);
    free(out);
    if (status != ONX_OK)
        return status;
    ONX_TRY(cli_profile_measure(p, options));
    return size_steps(p, doc, session, inputs);
}

void cli_profile_free(cli_profile *p)
{
    forget_from(p, 0);
    free(p->step);
}
