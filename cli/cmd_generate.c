/* cmd_generate.c - `onx generate`: a language model goes on with a text, token by token. */
#include "cli_files.h"
#include "cli_value.h"

#include <onx/generate.h>
#include <onx/text.h>

#include <stdlib.h>
#include <unistd.h>

typedef struct list {
    int64_t *ids;
    uint64_t count, room;
} list;

typedef struct session {
    cli_call *call;
    onx_doc *doc;
    onx_generator *generator;
    onx_choice_options choice;
    uint64_t most; /* new tokens */
    list prompt, made;
    const char *ended; /* by what */
    double prompt_seconds, seconds;
    char *config; /* path of the configuration that was found, or NULL */
} session;

static onx_status add(const session *s, list *l, int64_t id)
{
    if (l->count == l->room) {
        const uint64_t room = l->room ? 2 * l->room : 256;
        int64_t *more = realloc(l->ids, room * sizeof *more);
        if (!more) {
            cli_error(s->call, "out of memory");
            return ONX_E_MEMORY;
        }
        l->ids = more;
        l->room = room;
    }
    l->ids[l->count++] = id;
    return ONX_OK;
}

/* ---- what the command line says ---- */

/* "1,2,3", or with spaces. */
static onx_status read_ids(const session *s, const char *option, const char *text, list *out)
{
    for (const char *p = text; *p;) {
        char *end;
        const long long id = strtoll(p, &end, 10);
        if (end == p || id < 0 || id > INT32_MAX || (*end && *end != ',' && *end != ' ' && *end != '\n')) {
            cli_error(s->call, "--%s %s: a list of token ids is like 1,2,3", option, text);
            return ONX_E_MISUSE;
        }
        ONX_TRY(add(s, out, id));
        for (p = end; *p == ',' || *p == ' ' || *p == '\n';)
            p++;
    }
    return ONX_OK;
}

/* A file beside the model; NULL, or freed by the caller. */
static char *beside(const session *s, const char *name)
{
    const char *model = s->call->operand[0], *slash = strrchr(model, '/');
    if (strcmp(model, "-") == 0)
        return NULL;
    char *dir = slash ? strndup(model, (size_t)(slash - model) + 1) : strdup("");
    char *path = dir ? cli_join(s->call, *dir ? dir : ".", name) : NULL;
    free(dir);
    if (path && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static onx_status read_config(session *s, onx_buffer *out)
{
    const char *given = cli_value(s->call, "config");
    s->config = given ? strdup(given) : beside(s, "genai_config.json");
    if (!s->config)
        s->config = beside(s, "generation_config.json");
    return s->config ? cli_load_bytes(s->call, given ? given : s->config, out) : ONX_OK;
}

/* Places in a text are those of the configuration: the model is spoken of by its nodes. */
static void name_config(const session *s)
{
    const size_t count = onx_diag_count(s->call->cx);
    if (count && s->config && onx_diag_get(s->call->cx, count - 1)->where.kind == ONX_AT_TEXT) {
        s->call->input = s->config;
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

static onx_status open_all(session *s, const onx_session_options *options)
{
    onx_buffer config = { 0 };
    const char *ids = cli_value(s->call, "ids");
    ONX_TRY(cli_load(s->call, s->call->operand[0], ONX_KIND_MODEL, &s->doc));
    if (ids)
        ONX_TRY(read_ids(s, "ids", ids, &s->prompt));
    if (!s->prompt.count) {
        cli_error(s->call, "there is nothing to go on with: --ids gives tokens");
        return ONX_E_MISUSE;
    }
    onx_status status = read_config(s, &config);
    const onx_generator_options how = { .struct_size = sizeof how,
                                        .session = options,
                                        .config = onx_str_make(config.ptr, config.len),
                                        .room = s->prompt.count + s->most };
    if (status == ONX_OK)
        status = onx_generator_new(s->call->cx, s->doc, &how, &s->generator);
    if (status != ONX_OK)
        name_config(s);
    onx_buffer_free(&config);
    return status;
}

/* ---- the loop ---- */

/* Whether the token ends the text: --eos says so, else the configuration. */
static bool is_end(const session *s, const list *ends, int64_t id)
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

static void put_token(const session *s, int64_t id)
{
    if (cli_has(s->call, "json"))
        return;
    printf("%s%lld", s->made.count ? " " : "", (long long)id);
    fflush(stdout);
}

static onx_status go_on(session *s, const list *ends)
{
    const double start = cli_now();
    ONX_TRY(onx_generator_feed(s->generator, s->prompt.ids, s->prompt.count));
    const double begin = cli_now();
    s->prompt_seconds = begin - start;
    s->ended = "max-tokens";
    while (s->made.count < s->most) {
        int64_t id;
        ONX_TRY(onx_generator_choose(s->generator, &s->choice, &id));
        if (is_end(s, ends, id)) {
            s->ended = "end";
            break;
        }
        put_token(s, id);
        ONX_TRY(add(s, &s->made, id));
        s->seconds = cli_now() - begin;
        if (s->made.count == s->most)
            break;
        if (onx_generator_length(s->generator) == onx_generator_limit(s->generator)) {
            s->ended = "limit";
            break;
        }
        ONX_TRY(onx_generator_feed(s->generator, &id, 1));
    }
    if (!cli_has(s->call, "json"))
        putchar('\n');
    return ONX_OK;
}

static onx_status generate(session *s)
{
    list ends = { 0 };
    const char *text;
    onx_status status = ONX_OK;
    for (int i = 0; status == ONX_OK && (text = cli_value_at(s->call, "eos", i)); i++)
        status = read_ids(s, "eos", text, &ends);
    if (status == ONX_OK)
        status = go_on(s, &ends);
    free(ends.ids);
    return status;
}

/* ---- what is told ---- */

static double rate(uint64_t count, double seconds)
{
    return seconds > 0 ? (double)count / seconds : 0;
}

static void put_ids(cli_json *json, const char *key, const list *l)
{
    cli_json_open(json, key, '[');
    for (uint64_t i = 0; i < l->count; i++)
        cli_json_int(json, NULL, l->ids[i]);
    cli_json_close(json, ']');
}

static void put_result(const session *s)
{
    const uint64_t steps = s->made.count ? s->made.count - 1 : 0; /* the first token comes with the prompt */
    if (!cli_has(s->call, "json")) {
        fprintf(stderr, "%llu tokens read in %s, %.1f a second; %llu written in %s, %.1f a second\n",
                (unsigned long long)s->prompt.count, cli_duration(s->prompt_seconds).text,
                rate(s->prompt.count, s->prompt_seconds), (unsigned long long)s->made.count,
                cli_duration(s->seconds).text, rate(steps, s->seconds));
        return;
    }
    cli_json json = { .to = stdout };
    cli_json_open(&json, NULL, '{');
    put_ids(&json, "prompt_ids", &s->prompt);
    put_ids(&json, "ids", &s->made);
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
    free(s.prompt.ids);
    free(s.made.ids);
    if (s.doc)
        (void)onx_text_locate(s.doc, 0);
    onx_doc_free(s.doc);
    free(s.config);
    return cli_exit(call, status);
}

/* clang-format off */
static const cli_option options_[] = {
    { "ids", 0, "1,2,3", NULL, "the tokens to go on with" },
    { "max-tokens", 'n', "N", NULL, "write at most N tokens (128)" },
    { "temperature", 0, "T", NULL, "choose by chance, the less likely the more the higher T is (0: the likeliest each time)" },
    { "top-k", 0, "K", NULL, "choose among the K likeliest" },
    { "top-p", 0, "P", NULL, "choose among the likeliest that have probability P together" },
    { "repetition-penalty", 0, "X", NULL, "make tokens that were there less likely (1: do not)" },
    { "seed", 0, "N", NULL, "where chance starts (0)" },
    { "eos", 0, "ID", NULL, "a token that ends the text, instead of those of the configuration; may be repeated" },
    { "config", 0, "FILE", NULL, "names of inputs and outputs, ends of texts (genai_config.json or generation_config.json beside the model)" },
    CLI_OPTION_JSON,
    { "threads", 0, "N", NULL, "threads to use (0: one per processor)" },
    CLI_OPTION_OPSET_DOC,
    CLI_OPTION_LIBRARY,
    CLI_OPTION_NO_OPTIMIZE,
    CLI_OPTION_PRECISION,
    CLI_END,
};
/* clang-format on */

const cli_command cmd_generate = {
    .name = "generate",
    .summary = "let a language model go on with a text",
    .operands = "MODEL",
    .help =
        "The model takes ids of tokens and gives scores of the next one; masks, positions, lengths and caches are known by\n"
        "their names and types. Caches of GroupQueryAttention and TensorScatter are updated where they lie.\n"
        "How long it took is said on standard error.\n",
    .example = "onx generate model.onnx --ids 1,15043,29871 -n 20\n"
               "onx generate model.onnx --ids 1,15043 --temperature 0.7 --top-p 0.9 --seed 7\n",
    .options = options_,
    .run = run_generate,
};
