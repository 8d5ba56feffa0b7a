/* cmd_tokenize.c - `onx tokenize`: converts texts to token ids, and token ids to texts. */
#include "cli_tokens.h"

#include <stdlib.h>

typedef struct session {
    cli_call *call;
    onx_tokenizer *tokenizer;
    cli_json json;
    bool is_json, special, all;
} session;

/* ---- texts to ids ---- */

static void put_tokens(session *s, const int64_t *ids, uint64_t count)
{
    cli_json_open(&s->json, "tokens", '[');
    for (uint64_t i = 0; i < count; i++) {
        onx_str token = { 0 };
        (void)onx_tokenizer_token(s->tokenizer, ids[i], &token);
        cli_json_text(&s->json, NULL, token);
    }
    cli_json_close(&s->json, ']');
}

static onx_status encode(session *s, onx_str text)
{
    const int64_t *ids;
    uint64_t count;
    ONX_TRY(onx_tokenizer_encode(s->tokenizer, text, s->special, &ids, &count));
    if (s->is_json) {
        cli_json_open(&s->json, NULL, '{');
        cli_json_text(&s->json, "text", text);
        cli_put_ids(&s->json, "ids", ids, count);
        put_tokens(s, ids, count);
        cli_json_close(&s->json, '}');
        return ONX_OK;
    }
    for (uint64_t i = 0; i < count; i++)
        printf("%s%lld", i ? " " : "", (long long)ids[i]);
    putchar('\n');
    return ONX_OK;
}

/* ---- ids to texts ---- */

static onx_status decode(session *s, const char *text)
{
    cli_ids list = { 0 };
    onx_buffer made = { 0 };
    onx_status status = cli_ids_read(s->call, NULL, text, &list) ? ONX_OK : ONX_E_MISUSE;
    if (status == ONX_OK)
        status = onx_tokenizer_decode(s->tokenizer, list.ids, list.count, s->all, &made);
    if (status == ONX_OK && s->is_json) {
        cli_json_open(&s->json, NULL, '{');
        cli_put_ids(&s->json, "ids", list.ids, list.count);
        cli_json_text(&s->json, "text", onx_str_make(made.ptr, made.len));
        cli_json_close(&s->json, '}');
    } else if (status == ONX_OK) {
        fwrite(made.ptr, 1, made.len, stdout);
        putchar('\n');
    }
    onx_buffer_free(&made);
    free(list.ids);
    return status;
}

static onx_status one(session *s, onx_str text)
{
    if (!cli_has(s->call, "decode"))
        return encode(s, text);
    char *copy = strndup(text.len ? text.ptr : "", text.len);
    if (!copy) {
        cli_error(s->call, "out of memory");
        return ONX_E_MEMORY;
    }
    const onx_status status = decode(s, copy);
    free(copy);
    return status;
}

/* ---- reading the command line ---- */

static onx_status from_input(session *s)
{
    onx_buffer bytes = { 0 };
    onx_status status = cli_load_bytes(s->call, "-", &bytes);
    onx_str left = onx_str_make(bytes.ptr, bytes.len);
    if (status == ONX_OK && !cli_has(s->call, "lines"))
        status = one(s, left);
    while (status == ONX_OK && cli_has(s->call, "lines") && left.len) {
        const char *end = memchr(left.ptr, '\n', left.len);
        const size_t len = end ? (size_t)(end - left.ptr) : left.len;
        status = one(s, onx_str_make(left.ptr, len));
        left = onx_str_make(left.ptr + len + (end != NULL), left.len - len - (end != NULL));
    }
    onx_buffer_free(&bytes);
    return status;
}

static int run_tokenize(cli_call *call)
{
    session s = { .call = call,
                  .json = { .to = stdout },
                  .is_json = cli_has(call, "json"),
                  .special = !cli_has(call, "plain"),
                  .all = cli_has(call, "special") };
    if (cli_has(call, "lines") && call->operand_count > 1)
        return cli_error(call, "--lines applies to standard input, but texts are given");
    onx_status status = cli_load_tokenizer(call, call->operand[0], &s.tokenizer);
    if (status == ONX_OK && s.is_json)
        cli_json_open(&s.json, NULL, '[');
    for (int i = 1; status == ONX_OK && i < call->operand_count; i++)
        status = one(&s, onx_str_of(call->operand[i]));
    if (status == ONX_OK && call->operand_count < 2)
        status = from_input(&s);
    if (status == ONX_OK && s.is_json)
        cli_json_close(&s.json, ']');
    onx_tokenizer_free(s.tokenizer);
    return cli_exit(call, status);
}

/* clang-format off */
static const cli_option options_[] = {
    { "decode", 'd', NULL, NULL, "convert ids to texts" },
    { "plain", 0, NULL, NULL, "do not add the special tokens around each text" },
    { "special", 0, NULL, NULL, "with --decode: print special tokens too" },
    { "lines", 'l', NULL, NULL, "treat every line of standard input as a separate text" },
    CLI_OPTION_JSON,
    CLI_END,
};
/* clang-format on */

const cli_command cmd_tokenize = {
    .name = "tokenize",
    .summary = "convert texts to token ids, and back",
    .operands = "TOKENIZER [TEXT...]",
    .help = "TOKENIZER is a tokenizer.json, a SentencePiece model, or a folder that contains one of them. Without\n"
            "TEXT, standard input is the text. The ids of each text are printed on one line.\n",
    .example = "onx tokenize tokenizer.json 'Hello, world!'\n"
               "onx tokenize --decode tokenizer.json 15496,11,995,0\n"
               "onx tokenize --lines tokenizer.model < lines.txt\n",
    .options = options_,
    .run = run_tokenize,
};
