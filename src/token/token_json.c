/* token_json.c - reads tokenizer.json: the steps, the model and its tokens, the special tokens around a text. */
#include "token/token.h"

/* ---- steps ---- */

onx_status onxi_token_step_pattern(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    const onxi_json *pattern = onxi_json_get(from, "pattern"), *regex = onxi_json_get(pattern, "Regex");
    if (regex->kind == ONXI_JSON_TEXT)
        return onxi_regex_new(run->cx, run->tokenizer->arena, regex->text, &step->regex);
    step->text = pattern->kind == ONXI_JSON_TEXT ? pattern->text : onxi_json_text(pattern, "String");
    if (!step->text.len)
        return onxi_token_fail(run, ONX_E_INVALID, "%s has no pattern", step->row->name);
    return ONX_OK;
}

static onx_status add_step(onxi_tokenrun *run, const onxi_token_step_row *rows, const char *what, const onxi_json *from,
                           onxi_token_steps *out)
{
    const onx_str type = onxi_json_text(from, "type");
    const onxi_token_step_row *row = rows;
    while (row->name && !onx_str_is(type, row->name))
        row++;
    if (!row->name)
        return onxi_token_fail(run, ONX_E_UNSUPPORTED, "%s \"%.*s\" is not known", what, ONX_ARG(type));
    if (row->unicode && !onxi_unicode_there())
        return onxi_token_fail(run, ONX_E_UNSUPPORTED, "%s %s %s", what, row->name,
                               onxi_library_missing(ONXI_LIBRARY_UTF8PROC));
    if (!ONXI_GROW_IN(run->tokenizer->arena, out->list, out->room, (uint64_t)out->count + 1))
        return ONX_E_MEMORY;
    onxi_token_step *step = &out->list[out->count++]; /* counted before reading, so that its pattern is freed on
                                                       * failure */
    *step = (onxi_token_step){ .row = row };
    return row->read ? row->read(run, from, step) : ONX_OK;
}

onx_status onxi_token_steps_read(onxi_tokenrun *run, const onxi_token_step_row *rows, const char *what,
                                 const onxi_json *from, const char *list, onxi_token_steps *out)
{
    if (from->kind == ONXI_JSON_NULL)
        return ONX_OK;
    if (!onx_str_is(onxi_json_text(from, "type"), "Sequence"))
        return add_step(run, rows, what, from, out);
    const onxi_json *steps = onxi_json_get(from, list);
    for (uint32_t i = 0; steps->kind == ONXI_JSON_LIST && i < steps->count; i++)
        ONX_TRY(onxi_token_steps_read(run, rows, what, &steps->members[i].value, list, out));
    return ONX_OK;
}

/* ---- tokens ---- */

static onx_status make_room(onxi_tokenrun *run, uint32_t count)
{
    onx_tokenizer *t = run->tokenizer;
    t->tokens = ONXI_ARRAY(t->arena, onxi_token, count + 1u);
    return t->tokens && onxi_dict_reserve(&t->by_text, count) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status read_vocab(onxi_tokenrun *run, const onxi_json *vocab)
{
    if (vocab->kind != ONXI_JSON_OBJECT)
        return onxi_token_fail(run, ONX_E_INVALID, "model.vocab is not an object");
    ONX_TRY(make_room(run, vocab->count));
    for (uint32_t i = 0; i < vocab->count; i++) {
        int64_t id;
        const onx_str name = vocab->members[i].name;
        if (!onxi_json_integer(&vocab->members[i].value, &id) || id < 0)
            return onxi_token_fail(run, ONX_E_INVALID, "token \"%.*s\" has no id", ONX_ARG(name));
        ONX_TRY(onxi_token_add(run, name, (uint64_t)id, 0, ONXI_TOKEN_NORMAL));
    }
    return ONX_OK;
}

/* [["text", -1.5], ...]; the position is the id. */
static onx_status read_scores(onxi_tokenrun *run, const onxi_json *vocab)
{
    if (vocab->kind != ONXI_JSON_LIST)
        return onxi_token_fail(run, ONX_E_INVALID, "model.vocab is not a list");
    ONX_TRY(make_room(run, vocab->count));
    for (uint32_t i = 0; i < vocab->count; i++) {
        const onxi_json *pair = &vocab->members[i].value;
        if (pair->kind != ONXI_JSON_LIST || pair->count != 2 || pair->members[0].value.kind != ONXI_JSON_TEXT ||
            pair->members[1].value.kind != ONXI_JSON_NUMBER)
            return onxi_token_fail(run, ONX_E_INVALID, "model.vocab[%u] is not a string with a score", i);
        ONX_TRY(onxi_token_add(run, pair->members[0].value.text, i, pair->members[1].value.number, ONXI_TOKEN_NORMAL));
    }
    return ONX_OK;
}

static onx_status find_token(onxi_tokenrun *run, onx_str text, const char *what, uint32_t *out)
{
    const onxi_dict_entry *e = onxi_dict_find(&run->tokenizer->by_text, text);
    if (!e)
        return onxi_token_fail(run, ONX_E_INVALID, "%s \"%.*s\" is no token", what, ONX_ARG(text));
    *out = e->value;
    return ONX_OK;
}

/* Splits "a b" or ["a", "b"]. */
static onx_status read_merge(onxi_tokenrun *run, const onxi_json *from, uint32_t rank)
{
    onx_tokenizer *t = run->tokenizer;
    onx_str a = { 0 }, b = { 0 };
    if (from->kind == ONXI_JSON_TEXT) {
        const char *space = from->text.len ? memchr(from->text.ptr, ' ', from->text.len) : NULL;
        a = onx_str_make(from->text.ptr, space ? (size_t)(space - from->text.ptr) : 0);
        b = space ? onxi_str_from(from->text, a.len + 1) : b;
    } else if (from->kind == ONXI_JSON_LIST && from->count == 2) {
        a = from->members[0].value.text;
        b = from->members[1].value.text;
    }
    if (!a.len || !b.len)
        return onxi_token_fail(run, ONX_E_INVALID, "model.merges[%u] is not a pair of strings", rank);
    uint32_t left = 0, right = 0, made = 0;
    ONX_TRY(find_token(run, a, "a text of model.merges,", &left));
    ONX_TRY(find_token(run, b, "a text of model.merges,", &right));
    run->word.len = 0;
    if (!onxi_chars_add(&run->word, a) ||
        !onxi_chars_add(&run->word, onxi_starts_with(b, t->prefix) ? onxi_str_from(b, t->prefix.len) : b))
        return ONX_E_MEMORY;
    ONX_TRY(find_token(run, onxi_chars_view(&run->word), "a pair of model.merges,", &made));
    void **place = onxi_map_at(&t->merges, (uint64_t)left << 32 | right);
    if (!place)
        return ONX_E_MEMORY;
    t->merge_list[rank] = (onxi_merge){ rank, made };
    *place = &t->merge_list[rank];
    return ONX_OK;
}

static onx_status read_bpe(onxi_tokenrun *run, const onxi_json *model)
{
    onx_tokenizer *t = run->tokenizer;
    const onxi_json *merges = onxi_json_get(model, "merges");
    ONX_TRY(read_vocab(run, onxi_json_get(model, "vocab")));
    if (onxi_json_number(model, "dropout", 0) > 0)
        return onxi_token_fail(run, ONX_E_UNSUPPORTED, "model.dropout makes tokens by chance");
    if (merges->kind != ONXI_JSON_LIST)
        return onxi_token_fail(run, ONX_E_INVALID, "model.merges is not a list");
    t->prefix = onxi_json_text(model, "continuing_subword_prefix");
    t->suffix = onxi_json_text(model, "end_of_word_suffix");
    if (t->prefix.len > ONXI_TOKEN_MAX || t->suffix.len > ONXI_TOKEN_MAX)
        return onxi_token_fail(run, ONX_E_LIMIT, "a prefix has %zu bytes and a suffix %zu, expected up to %d",
                               t->prefix.len, t->suffix.len, ONXI_TOKEN_MAX);
    t->fuse_unknown = onxi_json_truth(model, "fuse_unk", false);
    t->ignore_merges = onxi_json_truth(model, "ignore_merges", false);
    t->merge_list = ONXI_ARRAY(t->arena, onxi_merge, merges->count + 1u);
    if (!t->merge_list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < merges->count; i++)
        ONX_TRY(read_merge(run, &merges->members[i].value, i));
    return ONX_OK;
}

static onx_status read_unigram(onxi_tokenrun *run, const onxi_json *model)
{
    onx_tokenizer *t = run->tokenizer;
    int64_t unknown;
    t->model = ONXI_MODEL_UNIGRAM;
    ONX_TRY(read_scores(run, onxi_json_get(model, "vocab")));
    if (onxi_json_get(model, "unk_id")->kind == ONXI_JSON_NULL)
        return ONX_OK;
    if (!onxi_json_integer(onxi_json_get(model, "unk_id"), &unknown) || unknown < 0 || unknown >= t->count)
        return onxi_token_fail(run, ONX_E_INVALID, "model.unk_id is none of the %u tokens", t->count);
    t->unknown = (uint32_t)unknown;
    return ONX_OK;
}

static onx_status read_wordpiece(onxi_tokenrun *run, const onxi_json *model)
{
    onx_tokenizer *t = run->tokenizer;
    const double longest = onxi_json_number(model, "max_input_chars_per_word", 100);
    t->model = ONXI_MODEL_WORDPIECE;
    t->prefix = onxi_json_text(model, "continuing_subword_prefix");
    if (onxi_json_get(model, "continuing_subword_prefix")->kind != ONXI_JSON_TEXT)
        t->prefix = onx_str_of("##");
    if (!(longest >= 0 && longest <= 1e9) || t->prefix.len > ONXI_TOKEN_MAX)
        return onxi_token_fail(run, ONX_E_INVALID, "max_input_chars_per_word is %g, and the prefix has %zu bytes",
                               longest, t->prefix.len);
    t->longest_word = (uint64_t)longest;
    return read_vocab(run, onxi_json_get(model, "vocab"));
}

static onx_status read_words(onxi_tokenrun *run, const onxi_json *model)
{
    run->tokenizer->model = ONXI_MODEL_WORDS;
    return read_vocab(run, onxi_json_get(model, "vocab"));
}

static onx_status read_model(onxi_tokenrun *run, const onxi_json *model)
{
    onx_tokenizer *t = run->tokenizer;
    static const struct {
        const char *name;
        onx_status (*read)(onxi_tokenrun *run, const onxi_json *model);
    } rows[] = {
        { "BPE", read_bpe }, { "Unigram", read_unigram }, { "WordPiece", read_wordpiece }, { "WordLevel", read_words }
    };
    onx_str type = onxi_json_text(model, "type");
    if (!type.len) /* files from before 2020 do not have it */
        type = onx_str_of(onxi_json_get(model, "merges")->kind == ONXI_JSON_LIST        ? "BPE"
                          : onxi_json_get(model, "vocab")->kind == ONXI_JSON_LIST       ? "Unigram"
                          : onxi_json_get(model, "max_input_chars_per_word")->kind != 0 ? "WordPiece"
                                                                                        : "WordLevel");
    const onx_str unknown = onxi_json_text(model, "unk_token");
    t->byte_fallback = onxi_json_truth(model, "byte_fallback", false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!onx_str_is(type, rows[i].name))
            continue;
        ONX_TRY(rows[i].read(run, model));
        const onxi_dict_entry *e = unknown.len ? onxi_dict_find(&t->by_text, unknown) : NULL;
        if (e)
            t->unknown = e->value;
        return ONX_OK;
    }
    return onxi_token_fail(run, ONX_E_UNSUPPORTED, "model \"%.*s\" is not known", ONX_ARG(type));
}

/* ---- special tokens around a text ---- */

static onx_status add_around(onxi_tokenrun *run, uint32_t **list, uint32_t *count, uint32_t room, const onxi_json *id)
{
    int64_t number;
    if (!onxi_json_integer(id, &number) || number < 0 || number >= INT32_MAX || *count == room)
        return onxi_token_fail(run, ONX_E_INVALID, "a special token of the post_processor has no id");
    (*list)[(*count)++] = (uint32_t)number;
    return ONX_OK;
}

/* The ids of a special token, usually one. */
static onx_status template_token(onxi_tokenrun *run, const onxi_json *from, const onxi_json *piece, bool behind)
{
    onx_tokenizer *t = run->tokenizer;
    const onx_str name = onxi_json_text(piece, "id");
    const onxi_json *all = onxi_json_get(from, "special_tokens"), *ids = NULL;
    for (uint32_t i = 0; all->kind == ONXI_JSON_OBJECT && i < all->count; i++)
        if (onx_str_equal(all->members[i].name, name))
            ids = onxi_json_get(&all->members[i].value, "ids");
    if (!ids || ids->kind != ONXI_JSON_LIST)
        return onxi_token_fail(run, ONX_E_INVALID, "special token \"%.*s\" of the post_processor has no ids",
                               ONX_ARG(name));
    uint32_t *count = behind ? &t->after_count : &t->before_count, **list = behind ? &t->after : &t->before;
    uint32_t room = *count; /* a new list each time, because there are few */
    uint32_t *more = ONXI_ARRAY(t->arena, uint32_t, (uint64_t)room + ids->count + 1u);
    if (!more)
        return ONX_E_MEMORY;
    if (room)
        memcpy(more, *list, room * sizeof *more);
    *list = more;
    room += ids->count;
    for (uint32_t i = 0; i < ids->count; i++)
        ONX_TRY(add_around(run, list, count, room, &ids->members[i].value));
    return ONX_OK;
}

static onx_status read_template(onxi_tokenrun *run, const onxi_json *from)
{
    const onxi_json *single = onxi_json_get(from, "single");
    uint32_t texts = 0;
    for (uint32_t i = 0; single->kind == ONXI_JSON_LIST && i < single->count; i++) {
        const onxi_json *piece = &single->members[i].value, *token = onxi_json_get(piece, "SpecialToken");
        if (token->kind == ONXI_JSON_OBJECT)
            ONX_TRY(template_token(run, from, token, texts > 0));
        else
            texts++;
    }
    if (texts != 1)
        return onxi_token_fail(run, ONX_E_UNSUPPORTED,
                               "the template of the post_processor has the text %u times, expected once", texts);
    return ONX_OK;
}

/* ["[CLS]", 101] goes before, ["[SEP]", 102] after the text. */
static onx_status read_pair(onxi_tokenrun *run, const onxi_json *from)
{
    onx_tokenizer *t = run->tokenizer;
    const onxi_json *cls = onxi_json_get(from, "cls"), *sep = onxi_json_get(from, "sep");
    if (cls->kind != ONXI_JSON_LIST || cls->count != 2 || sep->kind != ONXI_JSON_LIST || sep->count != 2)
        return onxi_token_fail(run, ONX_E_INVALID, "the post_processor has no cls and sep");
    t->before = ONXI_ARRAY(t->arena, uint32_t, 1);
    t->after = ONXI_ARRAY(t->arena, uint32_t, 1);
    if (!t->before || !t->after)
        return ONX_E_MEMORY;
    t->before_count = t->after_count = 0;
    ONX_TRY(add_around(run, &t->before, &t->before_count, 1, &cls->members[1].value));
    return add_around(run, &t->after, &t->after_count, 1, &sep->members[1].value);
}

static onx_status read_around(onxi_tokenrun *run, const onxi_json *from)
{
    const onx_str type = onxi_json_text(from, "type");
    if (from->kind == ONXI_JSON_NULL || onx_str_is(type, "ByteLevel"))
        return ONX_OK; /* it only affects the positions of tokens in the text */
    if (onx_str_is(type, "TemplateProcessing"))
        return read_template(run, from);
    if (onx_str_is(type, "BertProcessing") || onx_str_is(type, "RobertaProcessing"))
        return read_pair(run, from);
    if (!onx_str_is(type, "Sequence"))
        return onxi_token_fail(run, ONX_E_UNSUPPORTED, "post_processor \"%.*s\" is not known", ONX_ARG(type));
    const onxi_json *steps = onxi_json_get(from, "processors");
    for (uint32_t i = 0; steps->kind == ONXI_JSON_LIST && i < steps->count; i++)
        ONX_TRY(read_around(run, &steps->members[i].value));
    return ONX_OK;
}

onx_status onxi_tokenizer_read_json(onxi_tokenrun *run, onx_str text)
{
    onx_tokenizer *t = run->tokenizer;
    onxi_json file;
    ONX_TRY(onxi_json_value_read(run->cx, t->arena, text, &file));
    if (onxi_json_get(&file, "model")->kind != ONXI_JSON_OBJECT)
        return onxi_token_fail(run, ONX_E_MALFORMED, "it has no model");
    ONX_TRY(read_model(run, onxi_json_get(&file, "model")));
    ONX_TRY(onxi_model_ready(run));
    ONX_TRY(onxi_added_read(run, onxi_json_get(&file, "added_tokens")));
    ONX_TRY(onxi_token_steps_read(run, onxi_normalizer_rows, "normalizer", onxi_json_get(&file, "normalizer"),
                                  "normalizers", &t->normalizers));
    ONX_TRY(onxi_token_steps_read(run, onxi_splitter_rows, "pre_tokenizer", onxi_json_get(&file, "pre_tokenizer"),
                                  "pretokenizers", &t->splitters));
    ONX_TRY(onxi_token_steps_read(run, onxi_decoder_rows, "decoder", onxi_json_get(&file, "decoder"), "decoders",
                                  &t->decoders));
    ONX_TRY(read_around(run, onxi_json_get(&file, "post_processor")));
    return onxi_added_ready(run);
}
