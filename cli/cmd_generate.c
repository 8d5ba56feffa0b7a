/* cmd_generate.c - `onx generate`: a language model continues a text, token by token. */
#include "cli_tokens.h"
#include "cli_value.h"

#include <onx/generate.h>
#include <onx/text.h>

#include <stdlib.h>

enum { BEFORE = 4 }; /* number of prompt tokens that are decoded together with new tokens */

typedef struct session {
    cli_call *call;
    onx_doc *doc;
    onx_generator *generator;
    onx_choice_options choice;
    uint64_t most; /* maximum number of new tokens */
    cli_ids all;   /* the prompt and the generated tokens */
    uint64_t given;
    onx_tokenizer *tokenizer; /* NULL: only ids are printed */
    cli_stream stream;
    size_t told;       /* bytes of the text that have been printed */
    const char *ended; /* why generation ended */
    double prompt_seconds, seconds;
    char *config; /* path of the configuration that was found, or NULL */
    char *ends;   /* path of the file with end-of-text tokens, or NULL */
} session;

/* ---- reading the command line ---- */

/* The first of the files that is there: beside the model, or a folder up, as in folders of the Hugging Face hub, which
 * keep models in onnx/. */
static char *find_config(const session *s, const char *const *names, size_t count)
{
    char *found = NULL;
    for (size_t i = 0; !found && i < 2 * count; i++)
        found = cli_beside_in(s->call, s->call->operand[0], i < count ? "" : "../", names[i % count]);
    return found;
}

static onx_status read_config(session *s, onx_buffer *out, onx_buffer *ends)
{
    static const char *const configs[] = { "genai_config.json" };
    static const char *const others[] = { "generation_config.json", "config.json" };
    const char *given = cli_value(s->call, "config");
    s->config = given ? strdup(given) : find_config(s, configs, 1);
    if (s->config)
        ONX_TRY(cli_load_bytes(s->call, given ? given : s->config, out));
    s->ends = given ? NULL : find_config(s, others, 2);
    return s->ends ? cli_load_bytes(s->call, s->ends, ends) : ONX_OK;
}

/* Positions in a text are those of the configuration file; diagnostics about the model name its nodes. */
static void name_config(const session *s)
{
    const size_t count = onx_diag_count(s->call->cx);
    if (count && (s->config || s->ends) && onx_diag_get(s->call->cx, count - 1)->where.kind == ONX_AT_TEXT) {
        s->call->input = s->config ? s->config : s->ends;
        cli_report(s->call);
    }
}

static bool read_choice(session *s)
{
    uint64_t top_k = 0;
    const cli_call *call = s->call;
    if (!cli_real(call, "temperature", 0, 1000, &s->choice.temperature) ||
        !cli_number(call, "top-k", 1, UINT32_MAX, &top_k) || !cli_real(call, "top-p", 0.0001, 1, &s->choice.top_p) ||
        !cli_real(call, "repetition-penalty", 0.01, 100, &s->choice.repetition_penalty) ||
        !cli_number(call, "seed", 0, UINT64_MAX, &s->choice.seed) ||
        !cli_number(call, "max-tokens", 0, UINT32_MAX, &s->most))
        return false;
    s->choice.top_k = (uint32_t)top_k;
    if (!cli_has(call, "temperature") && (cli_has(call, "top-k") || cli_has(call, "top-p")))
        s->choice.temperature = 1;
    return true;
}

/* The file that is given, or the one beside the model. */
static onx_status open_tokenizer(session *s)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer.model" };
    const char *given = cli_value(s->call, "tokenizer");
    char *found = NULL;
    for (size_t i = 0; !given && !found && i < sizeof names / sizeof *names; i++)
        found = cli_beside(s->call, s->call->operand[0], names[i]);
    if (!given && !found) {
        cli_error(s->call,
                  "--prompt needs a tokenizer: there is no tokenizer.json or tokenizer.model beside the model");
        cli_hint("--tokenizer FILE says where it is");
        return ONX_E_MISUSE;
    }
    const onx_status status = cli_load_tokenizer(s->call, given ? given : found, &s->tokenizer);
    free(found);
    return status;
}

static onx_status read_prompt(session *s)
{
    const char *ids = cli_value(s->call, "ids"), *text = cli_value(s->call, "prompt");
    const int64_t *made;
    uint64_t count = 0;
    onx_buffer bytes = { 0 };
    if (ids && !cli_ids_read(s->call, "ids", ids, &s->all))
        return ONX_E_MISUSE;
    if (text || cli_has(s->call, "tokenizer"))
        ONX_TRY(open_tokenizer(s));
    const bool from_input = text && strcmp(text, "-") == 0;
    onx_status status = from_input ? cli_load_bytes(s->call, "-", &bytes) : ONX_OK;
    if (status == ONX_OK && text)
        status = onx_tokenizer_encode(s->tokenizer, from_input ? onx_str_make(bytes.ptr, bytes.len) : onx_str_of(text),
                                      !ids, &made, &count);
    for (uint64_t i = 0; status == ONX_OK && i < count; i++)
        status = cli_ids_add(s->call, &s->all, made[i]) ? ONX_OK : ONX_E_MEMORY;
    onx_buffer_free(&bytes);
    ONX_TRY(status);
    s->given = s->all.count;
    if (!s->tokenizer && cli_has(s->call, "stop")) {
        cli_error(s->call, "--stop needs text: give --prompt or --tokenizer");
        return ONX_E_MISUSE;
    }
    s->stream = (cli_stream){ .call = s->call, .tokenizer = s->tokenizer, .ids = &s->all, .done = s->given };
    s->stream.from = s->given > BEFORE ? s->given - BEFORE : 0;
    if (s->given)
        return ONX_OK;
    cli_error(s->call, "there is nothing to continue: give a text with --prompt or tokens with --ids");
    return ONX_E_MISUSE;
}

static onx_status open_all(session *s, const onx_session_options *options)
{
    onx_buffer config = { 0 }, ends = { 0 };
    ONX_TRY(cli_load(s->call, s->call->operand[0], ONX_KIND_MODEL, &s->doc));
    ONX_TRY(read_prompt(s));
    onx_status status = read_config(s, &config, &ends);
    const onx_generator_options how = { .struct_size = sizeof how,
                                        .session = options,
                                        .config = onx_str_make(config.ptr, config.len),
                                        .room = s->given + s->most,
                                        .ends = onx_str_make(ends.ptr, ends.len) };
    if (status == ONX_OK)
        status = onx_generator_new(s->call->cx, s->doc, &how, &s->generator);
    if (status != ONX_OK)
        name_config(s);
    onx_buffer_free(&config);
    onx_buffer_free(&ends);
    return status;
}

/* ---- the loop ---- */

/* Whether the token ends the text: one of --eos, otherwise of the configuration. */
static bool is_end(const session *s, const cli_ids *ends, int64_t id)
{
    int64_t end;
    for (uint64_t i = 0; i < ends->count; i++)
        if (ends->ids[i] == id)
            return true;
    for (uint32_t i = 0; !ends->count && onx_generator_end(s->generator, i, &end); i++)
        if (end == id)
            return true;
    return false;
}

/* The position of the first --stop text in the output, or the length of the prefix that cannot be part of one. */
static bool find_stop(const session *s, bool last, size_t *at)
{
    const char *stop;
    bool found = false;
    *at = s->stream.len;
    for (int i = 0; (stop = cli_value_at(s->call, "stop", i)); i++) {
        const size_t n = strlen(stop);
        for (size_t from = s->told; n && from < *at; from++) {
            const size_t left = s->stream.len - from;
            if ((last && left < n) || memcmp(s->stream.text + from, stop, left < n ? left : n) != 0)
                continue;
            *at = from;
            found = left >= n;
            break;
        }
    }
    return found;
}

/* Prints the part of the text that cannot change any more, or the id. True when a --stop text is reached. */
static bool put_token(session *s, int64_t id, bool last)
{
    const bool quiet = cli_has(s->call, "json");
    if (!s->tokenizer) {
        if (!quiet)
            printf("%s%lld", s->all.count > s->given ? " " : "", (long long)id);
        fflush(stdout);
        return false;
    }
    size_t until;
    const bool stopped = find_stop(s, last, &until);
    if (!quiet && until > s->told)
        fwrite(s->stream.text + s->told, 1, until - s->told, stdout);
    fflush(stdout);
    s->told = until;
    if (stopped)
        s->stream.len = until;
    return stopped;
}

static onx_status take_token(session *s, int64_t id, bool *stopped)
{
    if (!s->tokenizer)
        put_token(s, id, false);
    if (!cli_ids_add(s->call, &s->all, id))
        return ONX_E_MEMORY;
    if (!s->tokenizer)
        return ONX_OK;
    ONX_TRY(cli_stream_on(&s->stream, false));
    *stopped = put_token(s, id, false);
    return ONX_OK;
}

static onx_status go_on(session *s, const cli_ids *ends)
{
    const double start = cli_now();
    bool stopped = false;
    ONX_TRY(onx_generator_feed(s->generator, s->all.ids, s->given));
    const double begin = cli_now();
    s->prompt_seconds = begin - start;
    s->ended = "max-tokens";
    while (s->all.count - s->given < s->most) {
        int64_t id;
        ONX_TRY(onx_generator_choose(s->generator, &s->choice, &id));
        if (is_end(s, ends, id)) {
            s->ended = "end";
            break;
        }
        ONX_TRY(take_token(s, id, &stopped));
        s->seconds = cli_now() - begin;
        if (stopped)
            s->ended = "stop";
        if (stopped || s->all.count - s->given == s->most)
            break;
        if (onx_generator_length(s->generator) == onx_generator_limit(s->generator)) {
            s->ended = "limit";
            break;
        }
        ONX_TRY(onx_generator_feed(s->generator, &id, 1));
    }
    if (s->tokenizer && !stopped) {
        ONX_TRY(cli_stream_on(&s->stream, true));
        if (put_token(s, 0, true))
            s->ended = "stop";
    }
    if (!cli_has(s->call, "json"))
        putchar('\n');
    return ONX_OK;
}

static onx_status generate(session *s)
{
    cli_ids ends = { 0 };
    const char *text;
    onx_status status = ONX_OK;
    for (int i = 0; status == ONX_OK && (text = cli_value_at(s->call, "eos", i)); i++)
        status = cli_ids_read(s->call, "eos", text, &ends) ? ONX_OK : ONX_E_MISUSE;
    if (status == ONX_OK)
        status = go_on(s, &ends);
    free(ends.ids);
    return status;
}

/* ---- reporting ---- */

static double rate(uint64_t count, double seconds)
{
    return seconds > 0 ? (double)count / seconds : 0;
}

static void put_result(const session *s)
{
    const uint64_t made = s->all.count - s->given,
                   steps = made ? made - 1 : 0; /* the first token is computed together with the prompt */
    if (!cli_has(s->call, "json")) {
        fprintf(stderr, "%llu tokens read in %s, %.1f a second; %llu written in %s, %.1f a second\n",
                (unsigned long long)s->given, cli_duration(s->prompt_seconds).text, rate(s->given, s->prompt_seconds),
                (unsigned long long)made, cli_duration(s->seconds).text, rate(steps, s->seconds));
        return;
    }
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    cli_put_ids(&json, "prompt_ids", s->all.ids, s->given);
    cli_put_ids(&json, "ids", s->all.ids + s->given, made);
    if (s->tokenizer)
        cli_json_text(&json, "text", onx_str_make(s->stream.text, s->stream.len));
    cli_json_cstr(&json, "ended", s->ended);
    cli_json_real(&json, "prompt_seconds", s->prompt_seconds);
    cli_json_real(&json, "seconds", s->seconds);
    cli_json_real(&json, "tokens_per_second", rate(steps, s->seconds));
    cli_json_close(&json, '}');
}

static int run_generate(cli_call *call)
{
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    session s = { .call = call, .most = 128, .choice = { .struct_size = sizeof s.choice } };
    if (!cli_run_options(call, &threads, &options, &limits) || !read_choice(&s))
        return CLI_MISUSE;
    onx_status status = open_all(&s, &options);
    if (status == ONX_OK)
        status = generate(&s);
    if (status == ONX_OK)
        put_result(&s);
    onx_generator_free(s.generator);
    onx_tokenizer_free(s.tokenizer);
    cli_stream_free(&s.stream);
    free(s.all.ids);
    if (s.doc)
        (void)onx_text_locate(s.doc, 0);
    onx_doc_free(s.doc);
    free(s.config);
    free(s.ends);
    return cli_exit(call, status);
}

/* clang-format off */
static const cli_option options_[] = {
    { "prompt", 'p', "TEXT", NULL, "the text to continue; - is standard input" },
    { "ids", 0, "1,2,3", NULL, "the token ids to continue; they come before those of --prompt, and no special tokens are added" },
    { "tokenizer", 0, "FILE", NULL, "tokenizer file (tokenizer.json or tokenizer.model beside the model)" },
    { "stop", 0, "TEXT", NULL, "stop before the first occurrence of one of these texts; may be repeated" },
    { "max-tokens", 'n', "N", NULL, "write at most N tokens (128)" },
    { "temperature", 0, "T", NULL, "sample tokens; a higher T makes unlikely tokens more likely (0: always take the most likely token)" },
    { "top-k", 0, "K", NULL, "sample among the K most likely tokens" },
    { "top-p", 0, "P", NULL, "sample among the most likely tokens with total probability P" },
    { "repetition-penalty", 0, "X", NULL, "make tokens that occurred less likely (1: no penalty)" },
    { "seed", 0, "N", NULL, "seed of the random numbers (0)" },
    { "eos", 0, "ID", NULL, "end-of-text token, instead of those of the configuration; may be repeated" },
    { "config", 0, "FILE", NULL, "names of inputs and outputs, end-of-text tokens (genai_config.json, generation_config.json or config.json beside the model or a folder up)" },
    CLI_OPTION_JSON,
    { "threads", 0, "N", NULL, "threads to use (0: one per processor)" },
    CLI_OPTION_NO_OPTIMIZE,
    CLI_OPTION_PRECISION,
    CLI_OPTION_CACHE,
    CLI_OPTIONS_MEASURE,
    CLI_OPTION_LEAN,
    CLI_END,
};
/* clang-format on */

const cli_command cmd_generate = {
    .name = "generate",
    .summary = "continue a text with a language model",
    .operands = "MODEL",
    .help = "The model maps token ids to scores for the next token; masks, positions, lengths and caches are\n"
            "recognised by their names and types. Caches of GroupQueryAttention and TensorScatter are updated in\n"
            "place. With a prompt the text is printed as soon as it is certain, otherwise the ids are printed.\n"
            "Timings are printed on standard error.\n",
    .example = "onx generate model.onnx --prompt 'Once upon a time' -n 100\n"
               "onx generate model.onnx --ids 1,15043,29871 -n 20\n"
               "onx generate model.onnx --ids 1,15043 --temperature 0.7 --top-p 0.9 --seed 7\n",
    .options = options_,
    .run = run_generate,
};
