/* cmd_train.c - `onx train`: executes the training information of a model over data, epoch by epoch. */
#include "cli_inputs.h"
#include "cli_profile.h"
#include "cli_ranks.h"
#include "cli_train.h"

#include <onx/text.h>

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef enum schedule { CONSTANT, COSINE, LINEAR, ONE_CYCLE, STEP } schedule;

typedef struct session {
    cli_call *call;
    onx_doc *doc; /* holds the variables after the last complete epoch */
    onx_trainer *trainer;
    cli_batches data;
    cli_train_state state;
    uint64_t entry, epochs, patience;
    uint64_t learning, validating; /* number of samples */
    uint64_t *order, *epoch_order; /* the training samples come first */
    cli_measures steps, checks;    /* of training samples, and of validation samples */
    double started;                /* start time, and the number of samples since then */
    uint64_t behind;
    cli_curve *curve;
    uint64_t curve_count;
    /* the input that follows a schedule */
    cli_train_input *rate;
    schedule schedule;
    double rate_start, rate_least;
    uint64_t warmup; /* number of steps in which the rate grows to the start of the schedule */
    bool saved;      /* OUT has been written */
    char *log;       /* lines of --log */
    size_t log_len;
    FILE *to; /* stream for readable lines */
    cli_profile profile;
    bool profiled; /* full batches are profiled, from the second one on */
} session;

static onx_status no_memory(const session *s)
{
    cli_error(s->call, "out of memory");
    return ONX_E_MEMORY;
}

/* ---- order ---- */

static void shuffle(uint64_t *list, uint64_t count, uint64_t seed, uint64_t round)
{
    uint64_t state = seed ^ (round * 0xd1342543de82ef95u);
    for (uint64_t i = count; i > 1; i--) {
        const uint64_t k = cli_random(&state) % i, swapped = list[k];
        list[k] = list[i - 1];
        list[i - 1] = swapped;
    }
}

/* Chooses the training samples and the validation samples. The latter are the last ones, or random ones if samples are
 * shuffled. The choice depends only on the seed and the options, so that a resumed run makes the same choice. */
static onx_status split(session *s)
{
    const uint64_t n = s->data.samples;
    s->order = calloc(n, sizeof *s->order);
    s->epoch_order = calloc(n, sizeof *s->epoch_order);
    if (!s->order || !s->epoch_order)
        return no_memory(s);
    for (uint64_t i = 0; i < n; i++)
        s->order[i] = i;
    if (s->state.shuffle)
        shuffle(s->order, n, s->state.seed, 0);
    s->validating = (uint64_t)ceil((double)n * s->state.validation);
    s->learning = s->validating < n ? n - s->validating : 0;
    if (s->data.fixed) { /* the model cannot run partial batches */
        s->learning -= s->learning % s->state.batch;
        s->validating -= s->validating % s->state.batch;
    }
    if (s->learning && (s->validating || s->state.validation <= 0))
        return ONX_OK;
    cli_error(s->call, "%llu samples are too few for batches of %llu%s", (unsigned long long)n,
              (unsigned long long)s->state.batch, s->state.validation > 0 ? " and validation" : "");
    return ONX_E_INVALID;
}

/* ---- steps ---- */

static double between(double from, double to, double part)
{
    return to + (from - to) * 0.5 * (1 + cos(3.14159265358979323846 * part));
}

/* The value of a schedule after `part` of its steps. */
static double scheduled(const session *s, double part)
{
    const double top = s->rate_start, least = s->rate_least < top ? s->rate_least : top;
    const double rise = 0.3, first = top / 25, last = first / 1e4; /* of one-cycle, as in PyTorch */
    switch (s->schedule) {
    case COSINE:
        return between(top, least, part);
    case LINEAR:
        return least + (top - least) * (1 - part);
    case ONE_CYCLE:
        return part < rise ? between(first, top, part / rise)
                           : between(top, last > least ? last : least, (part - rise) / (1 - rise));
    case STEP: {
        const double rate = top * (part < 1.0 / 3 ? 1 : part < 2.0 / 3 ? 0.1 : 0.01);
        return rate > least ? rate : least;
    }
    default:
        return top;
    }
}

static onx_status set_rate(session *s, uint64_t batch)
{
    const uint64_t batches = (s->learning + s->state.batch - 1) / s->state.batch;
    const double at = (double)s->state.epoch * (double)batches + (double)batch;
    const double all = (double)s->epochs * (double)batches, warm = (double)s->warmup;
    if (!s->rate || (s->schedule == CONSTANT && !s->warmup))
        return ONX_OK;
    const double rate =
        at < warm ? s->rate_start * (at + 1) / warm : scheduled(s, all > warm ? (at - warm) / (all - warm) : 1);
    return onx_convert((onx_dtype)s->rate->value->dtype, s->rate->value->data, ONX_DOUBLE, &rate, 1, true);
}

/* Prints an error that all ranks detect. */
static onx_status not_finite(const session *s, const char *what)
{
    if (!cli_ranks_first(s->call))
        return ONX_E_INVALID;
    cli_error(s->call, "%s in epoch %llu", what, (unsigned long long)(s->state.epoch + 1));
    cli_hint("a smaller learning rate may help");
    return ONX_E_INVALID;
}

/* "epoch 3/10  loss 0.25, 12 s left" */
static void show_progress(session *s, bool learn, double loss, uint64_t at, uint64_t count)
{
    char what[120], left[64] = "";
    if (!cli_ranks_first(s->call))
        return;
    const uint64_t all = (s->epochs - s->state.epoch) * (s->learning + s->validating);
    const uint64_t here = at + (learn ? 0 : s->learning);
    if (s->behind && here <= all)
        snprintf(left, sizeof left, ", %s left",
                 cli_duration((cli_now() - s->started) / (double)s->behind * (double)(all - here)).text);
    snprintf(what, sizeof what, "%s %llu/%llu  loss %.4g%s", learn ? "epoch" : "validation of epoch",
             (unsigned long long)(s->state.epoch + 1), (unsigned long long)s->epochs, loss, left);
    cli_progress(what, at, count);
}

/* Makes the part of a batch that belongs to this rank the current batch. A rank without samples runs one that does not
 * count. */
static onx_status take_batch(session *s, const uint64_t *which, uint64_t count)
{
    const uint64_t rank = cli_ranks_rank(s->call), ranks = cli_ranks_count(s->call);
    const uint64_t first = count * rank / ranks, mine = count * (rank + 1) / ranks - first;
    ONX_TRY(cli_batches_batch(&s->data, which + (mine ? first : 0), mine ? mine : 1));
    return onx_trainer_set_weight(s->trainer, (double)mine);
}

/* Runs one step of `count` samples. */
static onx_status learn_step(session *s, uint64_t count)
{
    const cli_measures *m = &s->steps;
    const bool profiled = s->profiled && count == s->state.batch, warm = s->profile.count != 0;
    if (profiled)
        cli_profile_begin(&s->profile);
    const double start = cli_now();
    ONX_TRY(onx_trainer_step(s->trainer, m->entry, m->inputs, m->input_count, s->steps.outputs, m->count));
    return profiled ? cli_profile_end(&s->profile, cli_now() - start, warm) : ONX_OK;
}

/* The mean loss over samples, with or without training on them. */
static onx_status run_samples(session *s, const uint64_t *which, uint64_t count, bool learn)
{
    cli_measures *m = learn ? &s->steps : &s->checks;
    double loss = 0;
    cli_measures_reset(m);
    for (uint64_t at = 0, n; at < count; at += n) {
        n = count - at < s->state.batch ? count - at : s->state.batch;
        show_progress(s, learn, cli_measures_mean(m, 0), at, count);
        ONX_TRY(take_batch(s, which + at, n));
        if (learn)
            ONX_TRY(set_rate(s, at / s->state.batch));
        ONX_TRY(learn ? learn_step(s, n)
                      : onx_trainer_evaluate(s->trainer, m->entry, m->inputs, m->input_count, m->outputs, m->count));
        ONX_TRY(cli_measures_add(s->call, m, n, &loss));
        if (!isfinite(loss))
            return not_finite(s, isnan(loss) ? "the loss is NaN" : "the loss is infinite");
        s->behind += n;
    }
    cli_progress_end();
    return ONX_OK;
}

/* The last step of an epoch may make variables NaN without a loss that shows it. */
static onx_status check_variables(const session *s)
{
    enum { AT_ONCE = 1024 };
    double numbers[AT_ONCE];
    onx_trainer_variable v;
    for (uint32_t i = 0; onx_trainer_variable_get(s->trainer, i, &v); i++) {
        const onx_dtype type = (onx_dtype)v.value->dtype;
        const size_t size = type == ONX_FLOAT ? 4 : type == ONX_DOUBLE ? 8 : 2;
        if (type != ONX_FLOAT && type != ONX_DOUBLE && type != ONX_FLOAT16 && type != ONX_BFLOAT16)
            continue;
        for (uint64_t k = 0; k < v.value->count; k += AT_ONCE) {
            const uint64_t n = v.value->count - k < AT_ONCE ? v.value->count - k : AT_ONCE;
            bool spoiled = false;
            ONX_TRY(onx_convert(ONX_DOUBLE, numbers, type, (const char *)v.value->data + k * size, n, true));
            for (uint64_t j = 0; j < n; j++)
                spoiled = spoiled || isnan(numbers[j]);
            if (spoiled)
                return not_finite(s, "a variable becomes NaN");
        }
    }
    return ONX_OK;
}

/* ---- reporting ---- */

static void put_line(const session *s, bool validated, double seconds)
{
    fprintf(s->to, "epoch %llu/%llu  loss %.6g", (unsigned long long)s->state.epoch, (unsigned long long)s->epochs,
            cli_measures_mean(&s->steps, 0));
    for (uint32_t i = 1; i < s->steps.count; i++)
        fprintf(s->to, "  %s %.4g", s->steps.outputs[i].name, cli_measures_mean(&s->steps, i));
    if (validated) {
        fprintf(s->to, "  validation %.6g", cli_measures_mean(&s->checks, 0));
        for (uint32_t i = 1; i < s->checks.count; i++)
            fprintf(s->to, "  %s %.4g", s->checks.outputs[i].name, cli_measures_mean(&s->checks, i));
        fputs(s->state.waiting ? "" : "  best", s->to);
    }
    if (cli_is_terminal(s->to))
        fprintf(s->to, "  %s", cli_duration(seconds).text);
    fputc('\n', s->to);
    fflush(s->to);
}

static onx_status add_log(session *s, const char *text, size_t len)
{
    char *more = realloc(s->log, s->log_len + len + 1);
    if (!more)
        return no_memory(s);
    memcpy(more + s->log_len, text, len);
    s->log = more;
    s->log_len += len;
    return ONX_OK;
}

/* The columns besides the loss: their names, or their values. */
static onx_status add_measures(session *s, bool csv, bool names, bool validated)
{
    const struct {
        const cli_measures *m;
        const char *prefix;
        bool there;
    } parts[] = { { &s->steps, "", true }, { &s->checks, "validation_", validated } };
    for (size_t p = 0; p < 2; p++)
        for (uint32_t i = 1; i < parts[p].m->count; i++) {
            char text[200], number[40] = "";
            const char *name = parts[p].m->outputs[i].name;
            const double mean = cli_measures_mean(parts[p].m, i);
            if (parts[p].there && isfinite(mean))
                snprintf(number, sizeof number, "%.9g", mean);
            if (csv && names)
                snprintf(text, sizeof text, ",%s%.100s", parts[p].prefix, name);
            else if (csv)
                snprintf(text, sizeof text, ",%s", number);
            else
                snprintf(text, sizeof text, ", \"%s%.100s\": %s", parts[p].prefix, name, number[0] ? number : "null");
            ONX_TRY(add_log(s, text, strlen(text)));
        }
    return ONX_OK;
}

/* Rewrites the whole file each time, so that it never ends within a line. */
static onx_status write_log(session *s, bool validated, double seconds)
{
    const char *path = cli_value(s->call, "log");
    const bool csv = path && cli_ends_in(path, ".csv");
    const double loss = cli_measures_mean(&s->steps, 0);
    char text[256], number[40] = "";
    if (!path)
        return ONX_OK;
    if (validated)
        snprintf(number, sizeof number, "%.9g", cli_measures_mean(&s->checks, 0));
    if (csv)
        snprintf(text, sizeof text, "%llu,%.9g,%s,%.6f", (unsigned long long)s->state.epoch, loss, number, seconds);
    else
        snprintf(text, sizeof text, "{\"epoch\": %llu, \"loss\": %.9g, \"validation\": %s, \"seconds\": %.6f",
                 (unsigned long long)s->state.epoch, loss, validated ? number : "null", seconds);
    if (csv && !s->log_len) {
        ONX_TRY(add_log(s, "epoch,loss,validation,seconds", 29));
        ONX_TRY(add_measures(s, true, true, validated));
        ONX_TRY(add_log(s, "\n", 1));
    }
    ONX_TRY(add_log(s, text, strlen(text)));
    ONX_TRY(add_measures(s, csv, false, validated));
    ONX_TRY(add_log(s, csv ? "\n" : "}\n", csv ? 1 : 2));
    return cli_train_save_bytes(s->call, path, onx_str_make(s->log, s->log_len));
}

/* Plots the curves of this run so far. */
static onx_status write_plot(session *s, bool validated)
{
    const char *path = cli_value(s->call, "plot");
    if (!path)
        return ONX_OK;
    if (!s->curve && !(s->curve = calloc(s->epochs - s->state.epoch + 1, sizeof *s->curve)))
        return no_memory(s);
    s->curve[s->curve_count++] =
        (cli_curve){ .epoch = s->state.epoch,
                     .loss = cli_measures_mean(&s->steps, 0),
                     .validation = validated ? cli_measures_mean(&s->checks, 0) : (double)NAN };
    return cli_train_plot(s->call, path, s->curve, s->curve_count);
}

/* Reads the log lines of earlier epochs, as far as they exist. */
static onx_status take_log(void *user, onx_str old)
{
    session *s = user;
    uint64_t lines = s->state.epoch + cli_ends_in(cli_value(s->call, "log"), ".csv");
    size_t len = 0;
    for (const char *end; lines && len < old.len && (end = memchr(old.ptr + len, '\n', old.len - len)) != NULL; lines--)
        len = (size_t)(end - old.ptr) + 1;
    return len ? add_log(s, old.ptr, len) : ONX_OK;
}

/* A resumed run keeps the lines of earlier epochs. */
static onx_status read_log(session *s)
{
    const char *path = cli_value(s->call, "log");
    struct stat st;
    if (!path || !s->state.epoch || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return ONX_OK;
    return cli_train_load_bytes(s->call, path, take_log, s);
}

/* ---- epochs ---- */

static onx_status save_result(session *s)
{
    const char *out = cli_value(s->call, "output");
    if (!out)
        return ONX_OK;
    if (cli_ranks_first(s->call))
        ONX_TRY(cli_train_save(s->call, s->doc, out, NULL));
    s->saved = true;
    return ONX_OK;
}

/* The checkpoint is written last: if the run is interrupted before, resuming repeats the epoch and writes the other
 * files again. */
static onx_status write_files(session *s, bool validated, double seconds)
{
    const char *checkpoint = cli_value(s->call, "checkpoint");
    if (!cli_ranks_first(s->call))
        return ONX_OK;
    ONX_TRY(write_log(s, validated, seconds));
    ONX_TRY(write_plot(s, validated));
    return checkpoint ? cli_train_save(s->call, s->doc, checkpoint, &s->state) : ONX_OK;
}

static onx_status run_epoch(session *s)
{
    const double start = cli_now();
    const bool validated = s->validating != 0;
    s->started = start;
    s->behind = 0;
    memcpy(s->epoch_order, s->order, s->learning * sizeof *s->order);
    if (s->state.shuffle)
        shuffle(s->epoch_order, s->learning, s->state.seed, s->state.epoch + 1);
    ONX_TRY(run_samples(s, s->epoch_order, s->learning, true));
    if (validated)
        ONX_TRY(run_samples(s, s->order + s->data.samples - s->validating, s->validating, false));
    ONX_TRY(check_variables(s));
    ONX_TRY(onx_trainer_store(s->trainer));
    s->state.epoch++;
    const double judged = cli_measures_mean(validated ? &s->checks : &s->steps, 0);
    s->state.waiting = judged < s->state.best ? 0 : s->state.waiting + 1;
    if (!s->state.waiting)
        s->state.best = judged;
    const double seconds = cli_now() - start;
    put_line(s, validated, seconds);
    if (validated && !s->state.waiting)
        ONX_TRY(save_result(s));
    return write_files(s, validated, seconds);
}

static onx_status run_epochs(session *s)
{
    onx_status status = ONX_OK;
    while (status == ONX_OK && s->state.epoch < s->epochs) {
        if (s->patience && s->state.waiting >= s->patience) {
            fprintf(s->to, "no improvement for %llu epoch%s\n", (unsigned long long)s->state.waiting,
                    s->state.waiting == 1 ? "" : "s");
            break;
        }
        status = run_epoch(s);
    }
    cli_progress_end();
    if (status != ONX_OK && !s->state.epoch)
        return status;
    /* with validation, OUT contains the best epoch */
    const onx_status saved = s->validating ? ONX_OK : save_result(s);
    if (status != ONX_OK && saved == ONX_OK) {
        cli_report(s->call);
        if (s->saved)
            cli_hint("%s has the %s complete epoch", cli_value(s->call, "output"), s->validating ? "best" : "last");
    }
    if (status == ONX_OK && s->validating && !s->saved && cli_has(s->call, "output"))
        cli_warn(s->call, "no epoch was better than those before; %s is not written", cli_value(s->call, "output"));
    return status != ONX_OK ? status : saved;
}

/* Prints the time of the operators and nodes of a step. */
static onx_status tell_profile(session *s, const onx_session_options *options)
{
    if (!s->profiled || !cli_ranks_first(s->call))
        return ONX_OK;
    if (!s->profile.runs) {
        cli_warn(s->call, "no profile: only full batches after the first step are measured, and there were none");
        return ONX_OK;
    }
    ONX_TRY(cli_profile_measure(&s->profile, options));
    if (cli_has(s->call, "trace"))
        ONX_TRY(cli_profile_trace(&s->profile, cli_value(s->call, "trace")));
    return cli_profile_print(&s->profile);
}

/* Evaluates the loss over all samples without training. */
static onx_status evaluate(session *s)
{
    ONX_TRY(run_samples(s, s->order, s->learning, false));
    fprintf(s->to, "loss %.6g", cli_measures_mean(&s->checks, 0));
    for (uint32_t i = 1; i < s->checks.count; i++)
        fprintf(s->to, "  %s %.4g", s->checks.outputs[i].name, cli_measures_mean(&s->checks, i));
    fputc('\n', s->to);
    return ONX_OK;
}

/* ---- reading the command line ---- */

/* An input without a value from --set starts with the value of its initializer. */
static onx_status take_default(session *s, cli_train_input *c)
{
    const onx_graph *graphs[] = { onx_doc_model(s->doc)->graph,
                                  onx_doc_model(s->doc)->training_info[s->entry]->algorithm };
    for (size_t g = 0; g < 2 && !c->value; g++)
        for (uint32_t i = 0; graphs[g] && i < graphs[g]->initializer_count && !c->value; i++)
            if (onx_str_is(onx_view(graphs[g]->initializer[i]->name), c->name))
                ONX_TRY(
                    onx_value_from_message(s->call->cx, s->doc, ONX_KIND_TENSOR, graphs[g]->initializer[i], &c->value));
    c->set = c->value != NULL;
    return ONX_OK;
}

static onx_status read_schedule(session *s)
{
    static const char *const words[] = {
        [CONSTANT] = "constant", [COSINE] = "cosine", [LINEAR] = "linear", [ONE_CYCLE] = "one-cycle", [STEP] = "step"
    };
    const char *text = cli_value(s->call, "schedule"), *word;
    onx_str name;
    if (!text)
        return ONX_OK;
    if (!cli_split(s->call, "schedule", text, &name, &word))
        return ONX_E_MISUSE;
    while (s->schedule <= STEP && strcmp(words[s->schedule], word) != 0)
        s->schedule++;
    if (s->schedule > STEP) {
        cli_error(s->call, "--schedule %s: the schedule has to be constant, cosine, linear, one-cycle or step", text);
        return ONX_E_MISUSE;
    }
    s->rate = cli_batches_find(&s->data, name);
    if (s->rate && !s->rate->value)
        ONX_TRY(take_default(s, s->rate));
    if (!s->rate || !s->rate->set) {
        cli_error(s->call, "--schedule %s: give the input \"%.*s\" a start value with --set", text, ONX_ARG(name));
        return ONX_E_MISUSE;
    }
    return cli_measures_number(s->call, s->rate->name, s->rate->value, &s->rate_start);
}

static onx_status read_sizes(session *s)
{
    const uint32_t ranks = cli_ranks_count(s->call);
    if (s->data.fixed > (int64_t)(UINT32_MAX / ranks)) {
        cli_error(s->call, "%u batches of %lld are too many", ranks, (long long)s->data.fixed);
        return ONX_E_INVALID;
    }
    const uint64_t fixed = s->data.fixed ? (uint64_t)s->data.fixed * ranks : 0;
    s->state.batch = fixed ? fixed : 32;
    if (!cli_number(s->call, "batch", 1, UINT32_MAX, &s->state.batch))
        return ONX_E_MISUSE;
    if (fixed && s->state.batch != fixed) {
        cli_error(s->call, "--batch %llu: the model takes batches of %lld%s", (unsigned long long)s->state.batch,
                  (long long)s->data.fixed, ranks > 1 ? " for each rank" : "");
        return ONX_E_MISUSE;
    }
    s->state.samples = s->data.samples;
    return split(s);
}

/* Checks that the output files can be written before the work starts. */
static onx_status claim(const session *s, const char *option)
{
    return cli_has(s->call, option) && cli_ranks_first(s->call)
               ? onx_output_claim(s->call->cx, cli_value(s->call, option), false)
               : ONX_OK;
}

/* The document to train: the checkpoint if the run resumes from one, otherwise the model. */
static onx_status resume(session *s)
{
    cli_train_state old;
    onx_doc *doc;
    const char *path = cli_value(s->call, "checkpoint");
    ONX_TRY(cli_train_resume(s->call, s->doc, path, &old, &doc));
    if (!doc)
        return ONX_OK;
    onx_doc_free(s->doc);
    s->doc = doc;
    s->state.epoch = old.epoch;
    s->state.waiting = old.waiting;
    s->state.best = old.best;
    s->state.batch = old.batch; /* compared with the command line later */
    s->state.samples = old.samples;
    if (old.seed != s->state.seed || old.shuffle != s->state.shuffle || old.validation < s->state.validation ||
        old.validation > s->state.validation)
        cli_warn(
            s->call,
            "%s was made with other options; training continues, but the result will differ from that of an uninterrupted run",
            path);
    return ONX_OK;
}

static onx_status open_all(session *s, const onx_session_options *options, const onx_run_options *limits)
{
    cli_call *call = s->call;
    ONX_TRY(cli_load(call, call->operand[0], ONX_KIND_MODEL, &s->doc));
    ONX_TRY(claim(s, "checkpoint"));
    if (cli_has(call, "resume"))
        ONX_TRY(resume(s));
    const cli_train_state old = s->state;
    const onx_status status = onx_trainer_new(call->cx, s->doc, options, &s->trainer);
    if (status == ONX_E_NOT_FOUND) {
        cli_report(call);
        cli_hint("onx trainable adds training information to a model");
    }
    ONX_TRY(status);
    ONX_TRY(onx_trainer_set_run(s->trainer, limits));
    ONX_TRY(cli_ranks_train(call, s->trainer));
    if (s->entry >= onx_trainer_count(s->trainer)) {
        cli_error(call, "--entry %llu: the model has only %u entries", (unsigned long long)s->entry,
                  onx_trainer_count(s->trainer));
        return ONX_E_NOT_FOUND;
    }
    ONX_TRY(cli_batches_open(call, s->doc, s->trainer, (uint32_t)s->entry, &s->data));
    ONX_TRY(claim(s, "output"));
    ONX_TRY(claim(s, "log"));
    ONX_TRY(read_schedule(s));
    ONX_TRY(claim(s, "plot"));
    ONX_TRY(claim(s, "trace"));
    ONX_TRY(cli_measures_open(call, s->doc, &s->data, (uint32_t)s->entry, cli_value(call, "loss"), &s->steps));
    ONX_TRY(cli_measures_without_learning(call, s->doc, &s->data, &s->steps, &s->checks));
    ONX_TRY(read_sizes(s));
    ONX_TRY(read_log(s));
    if (old.epoch && (old.batch != s->state.batch || old.samples != s->state.samples))
        cli_warn(call, "the checkpoint is of %llu samples in batches of %llu; training continues with %llu and %llu",
                 (unsigned long long)old.samples, (unsigned long long)old.batch, (unsigned long long)s->state.samples,
                 (unsigned long long)s->state.batch);
    return old.epoch || cli_has(call, "keep") || cli_has(call, "evaluate") ? ONX_OK
                                                                           : onx_trainer_initialize(s->trainer);
}

static void close_all(session *s)
{
    cli_batches_free(&s->data);
    onx_trainer_free(s->trainer);
    cli_measures_free(&s->steps);
    cli_measures_free(&s->checks);
    free(s->curve);
    free(s->order);
    free(s->epoch_order);
    free(s->log);
    cli_profile_free(&s->profile);
}

static int run_train(cli_call *call)
{
    const char *out = cli_value(call, "output"), *log = cli_value(call, "log");
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    session s = { .call = call,
                  .profile = { .call = call },
                  .profiled = cli_has(call, "profile"),
                  .epochs = 10,
                  .state = { .best = (double)INFINITY, .shuffle = cli_has(call, "shuffle") },
                  .to = out && strcmp(out, "-") == 0 && cli_ranks_first(call) ? stderr : stdout };
    if (!cli_run_options(call, &threads, &options, &limits) || !cli_number(call, "epochs", 1, UINT32_MAX, &s.epochs) ||
        !cli_number(call, "entry", 0, UINT32_MAX, &s.entry) ||
        !cli_number(call, "seed", 0, UINT64_MAX, &s.state.seed) ||
        !cli_number(call, "patience", 1, UINT32_MAX, &s.patience) ||
        !cli_number(call, "warmup", 0, UINT32_MAX, &s.warmup) || !cli_real(call, "rate-min", 0, 1e30, &s.rate_least) ||
        !cli_real(call, "validation", 0, 0.99, &s.state.validation))
        return CLI_MISUSE;
    if ((cli_has(call, "warmup") || cli_has(call, "rate-min")) && !cli_has(call, "schedule"))
        return cli_error(call, "--warmup and --rate-min need --schedule NAME=HOW, such as rate=constant");
    if (!cli_has(call, "data"))
        return cli_error(call, "name the files with samples with --data");
    if (!out && !cli_has(call, "checkpoint") && !cli_has(call, "evaluate"))
        return cli_error(call, "say where the result goes with -o, or --checkpoint");
    if (cli_has(call, "resume") && !cli_has(call, "checkpoint"))
        return cli_error(call, "--resume needs --checkpoint FILE to continue from");
    if (log && !cli_ends_in(log, ".csv") && !cli_ends_in(log, ".jsonl"))
        return cli_error(call, "--log %s: the log has to be a .jsonl or .csv file", log);
    if (cli_has(call, "evaluate") && (out || cli_has(call, "checkpoint") || s.state.validation > 0))
        return cli_error(call, "--evaluate writes no files and uses all samples; it excludes options about these");
    if (cli_has(call, "plot") && !cli_ends_in(cli_value(call, "plot"), ".svg"))
        return cli_error(call, "--plot %s: the plot has to be a .svg file", cli_value(call, "plot"));
    if (out && strcmp(out, "-") == 0 && s.state.validation > 0)
        return cli_error(call, "with --validation the result is written after each best epoch, so it has to be a file");
    if (s.profiled && cli_has(call, "evaluate"))
        return cli_error(call, "--profile measures training steps, and --evaluate runs none");
    if (s.profiled && s.to == stderr)
        return cli_error(call, "--profile prints to standard output, which -o - uses for the result");
    if (cli_has(call, "trace") && !s.profiled)
        return cli_error(call, "--trace needs --profile");
    if (call->ranks && !cli_has(call, "threads"))
        options.threads = 1; /* several ranks may share a machine */
    if (s.profiled) {
        limits.event = cli_profile_note;
        limits.user = &s.profile;
    }
    onx_status status = open_all(&s, &options, &limits);
    if (status == ONX_OK)
        status = cli_has(call, "evaluate") ? evaluate(&s) : run_epochs(&s);
    if (status == ONX_OK)
        status = tell_profile(&s, &options);
    close_all(&s);
    if (s.doc)
        (void)onx_text_locate(s.doc, 0);
    onx_doc_free(s.doc);
    return cli_exit(call, status);
}

/* clang-format off */
static const cli_option options_[] = {
    { "data", 0, "FILE", NULL, "samples: .npz, .npy with the name of an input, or a folder of these; may be repeated" },
    { "ignore-extra", 0, NULL, NULL, "ignore arrays that have the name of no input" },
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    { "epochs", 0, "N", NULL, "number of passes over the samples (10)" },
    { "batch", 0, "N", NULL, "samples per step (32, or the batch size of the model)" },
    { "shuffle", 0, NULL, NULL, "use another random order of the samples in each epoch" },
    { "seed", 0, "N", NULL, "seed of that order (0)" },
    { "set", 0, "NAME=VALUE", NULL, "set an input to a fixed value in all steps, such as a learning rate; may be repeated" },
    { "schedule", 0, "NAME=HOW", NULL, "schedule of such an input: constant, cosine or linear (to --rate-min), one-cycle (from 1/25 up, after 30 % down), or step (a tenth after each third)" },
    { "warmup", 0, "N", NULL, "with --schedule: the value grows evenly in the first N steps, and the schedule takes the others (0)" },
    { "rate-min", 0, "X", NULL, "with --schedule: the value at the end of cosine and linear, and the least one of others after the warmup (0)" },
    { "validation", 0, "FRACTION", NULL, "use this fraction of the samples for validation; OUT is then the best epoch" },
    { "patience", 0, "N", NULL, "stop when the loss has not improved for N epochs" },
    { "checkpoint", 0, "FILE", NULL, "write the state of the training to FILE after each epoch" },
    { "resume", 0, NULL, NULL, "continue from the checkpoint, if it exists" },
    { "keep", 0, NULL, NULL, "start from the values in the model instead of initialising them" },
    { "evaluate", 0, NULL, NULL, "do not train: print the loss of the model over the data" },
    { "log", 0, "FILE", NULL, "write a line for each epoch to a .jsonl or .csv file" },
    { "plot", 0, "FILE", NULL, "plot the loss curves as .svg, after each epoch" },
    { "loss", 0, "NAME", NULL, "the output that is the loss (the first suitable one)" },
    { "entry", 0, "N", NULL, "which entry of the training information (0)" },
    CLI_OPTIONS_PROFILE,
    { "ranks", 0, NULL, NULL, "train as one of the ranks that mpirun starts; each processes its part of every batch" },
    CLI_OPTION_RANK_TIMEOUT,
    { "threads", 0, "N", NULL, "threads to use (0: one per processor; 1 with --ranks)" },
    CLI_OPTION_TIMEOUT,
    CLI_OPTION_MAX_ITERATIONS,
    CLI_END,
};
/* clang-format on */

const cli_command cmd_train = {
    .name = "train",
    .summary = "train a model with its training information",
    .operands = "MODEL",
    .help = "Runs the steps of training_info over samples. Samples are arrays that have the name of an input and\n"
            "whose first axis counts samples; arrays with the same name in several files are concatenated. Set\n"
            "all other inputs with --set. Floats are rounded to the type of the input, integers may be narrower;\n"
            "other types are refused. The last batch of an epoch may be smaller; it is omitted if the model fixes\n"
            "the batch size. Validation evaluates the loss without updating the variables: with an entry that\n"
            "changes no variable and has an output of that name, as onx trainable writes one, otherwise with the\n"
            "training step, in which Dropout and the like stay in training mode. After NaN, or any other failure,\n"
            "OUT contains the last complete epoch, with --validation the best one.\n",
    .example = "onx train model.onnx --data digits.npz -o trained.onnx --epochs 20 --batch 64 --shuffle\n"
               "onx train model.onnx --data train/ -o best.onnx --validation 0.1 --patience 3 --log curve.csv\n"
               "onx train best.onnx --data test/ --evaluate\n"
               "onx train model.onnx --data train/ -o out.onnx --set rate=0.1 --schedule rate=cosine\n"
               "onx train model.onnx --data train/ -o out.onnx --checkpoint state.onnx --resume\n"
               "onx train model.onnx --data train/ -o out.onnx --epochs 2 --profile\n"
               "mpirun -n 4 onx train model.onnx --data train/ -o out.onnx --batch 256 --ranks\n",
    .options = options_,
    .run = run_train,
};
