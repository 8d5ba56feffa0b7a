/* bpe.c - GPT2Tokenizer, RobertaTokenizer, CLIPTokenizer, SpmTokenizer, and HfJsonTokenizer: converts texts to ids,
 * padded to one length. */
#include "kernel/contrib/token.h"

onx_status onxi_contrib_unread(const onx_prepare *p, onx_status status)
{
    return status == ONX_OK ? ONX_OK : onx_prepare_fail(p, status, "its tokenizer cannot be made");
}

onx_status onxi_contrib_undone(onx_work *work, onx_status status, uint64_t index)
{
    return status == ONX_OK ? ONX_OK
                            : onx_work_fail(work, status, "string %llu has no tokens", (unsigned long long)index);
}

onx_status onxi_contrib_not_output(const onx_prepare *p, uint32_t output, const char *what)
{
    return output < p->output_count && p->outputs[output]
               ? onx_prepare_fail(p, ONX_E_UNSUPPORTED, "output %u, %s, is not supported", output, what)
               : ONX_OK;
}

onx_status onxi_contrib_flag(onx_work *work, uint32_t input, bool fallback, bool *out)
{
    const onx_value *v = onxi_operand(work->prepared->input_count, work->inputs, input);
    *out = fallback;
    if (!v)
        return ONX_OK;
    if (v->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "input %u has %llu elements, expected 1", input,
                             (unsigned long long)v->count);
    *out = *(const uint8_t *)v->data != 0;
    return ONX_OK;
}

/* ---- differences between the operators ---- */

typedef struct bpe_kind {
    const char *name;
    onxi_bpe_parts parts; /* without settings from attributes */
    const char *bos, *eos, *pad;
} bpe_kind;

#define BYTE_LEVEL(more) "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true" more "}"
#define GPT2_STEPS       "\"pre_tokenizer\":" BYTE_LEVEL("")
#define CLIP_WORDS                                                                                                     \
    "<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+"
#define CLIP_STEPS                                                                                                         \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Lowercase\"}]},"                \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" CLIP_WORDS \
    "\"},\"behavior\":\"Removed\",\"invert\":true}," BYTE_LEVEL(",\"use_regex\":false") "]}"
#define SPM_STEPS                                                                                                      \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},"      \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]}"

static const bpe_kind kinds[] = {
    { "GPT2",
      { .steps = GPT2_STEPS,
        .model = "\"type\":\"BPE\",\"unk_token\":\"<|endoftext|>\"",
        .special = { "<|endoftext|>" } },
      "<|endoftext|>",
      "<|endoftext|>",
      NULL },
    { "Roberta",
      { .steps = GPT2_STEPS,
        .model = "\"type\":\"BPE\",\"unk_token\":\"<unk>\"",
        .special = { "<unk>", "<s>", "</s>", "<pad>" } },
      "<s>",
      "</s>",
      "<pad>" },
    { "CLIP",
      { .steps = CLIP_STEPS,
        .model = "\"type\":\"BPE\",\"unk_token\":\"<|endoftext|>\",\"end_of_word_suffix\":\"</w>\"",
        .special = { "<|endoftext|>", "<|startoftext|>" } },
      "<|startoftext|>",
      "<|endoftext|>",
      "<|endoftext|>" },
    { "Llama",
      { .steps = SPM_STEPS,
        .model = "\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true",
        .special = { "<unk>", "<s>", "</s>" } },
      "<s>",
      "</s>",
      NULL },
};

/* ---- preparing ---- */

typedef struct params {
    onx_tokenizer *tokenizer;
    /* Special: add the special tokens that the file defines; begins, ends: add one token before or after each text. */
    bool special, begins, ends;
    int64_t bos, eos, pad, length;
} params;

static void release(void *at)
{
    params *q = at;
    if (q)
        onx_tokenizer_free(q->tokenizer);
}

static onx_status prepare_with(onx_prepare *p, onx_status (*fill)(const onx_prepare *p, params *q))
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    if (p->inputs[0]->dtype != ONX_STRING || p->inputs[0]->rank >= ONX_RANK_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "input 0 is not a tensor of strings of rank below %u", ONX_RANK_MAX);
    ONX_TRY(onxi_contrib_not_output(p, 2, "where tokens are in the text"));
    const onx_status status = fill(p, q);
    if (status == ONX_OK)
        p->params = q;
    else
        release(q);
    return status;
}

static onx_status find_id(const onx_prepare *p, const params *q, const char *token, int64_t *out)
{
    *out = 0;
    return !token || onx_tokenizer_id(q->tokenizer, onx_str_of(token), out)
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "token \"%s\" is not in the vocabulary", token);
}

static const bpe_kind *kind_of(const onx_prepare *p)
{
    const bpe_kind *own = p->kernel->body;
    const onx_str name = onx_prepare_text(p, "model_name");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (onx_str_is(name, kinds[i].name))
            return &kinds[i];
    return own;
}

static onx_status fill_bpe(const onx_prepare *p, params *q)
{
    const bpe_kind *kind = kind_of(p);
    onxi_bpe_parts parts = kind->parts;
    const onx_str name = onx_prepare_text(p, "model_name");
    parts.vocab = onx_prepare_text(p, "vocab");
    parts.merges = onx_prepare_text(p, "merges");
    parts.added = onx_prepare_text(p, "added_token");
    q->length = onx_prepare_int(p, "padding_length");
    if (q->length != -1 && q->length < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute padding_length is %lld, neither -1 nor above 0",
                                (long long)q->length);
    ONX_TRY(onxi_contrib_unread(p, onxi_tokenizer_of_parts(p->cx, &parts, &q->tokenizer)));
    ONX_TRY(find_id(p, q, kind->bos, &q->bos));
    ONX_TRY(find_id(p, q, kind->eos, &q->eos));
    ONX_TRY(find_id(p, q, kind->pad, &q->pad));
    q->begins = kind != &kinds[0] || (name.len && !onx_str_is(name, "GPT2") && !onx_str_is(name, "CodeGen"));
    q->ends = q->begins && kind != &kinds[3];
    return ONX_OK;
}

static onx_status bpe_prepare(onx_prepare *p)
{
    return prepare_with(p, fill_bpe);
}

static onx_status fill_json(const onx_prepare *p, params *q)
{
    q->length = -1;
    q->special = true;
    return onxi_contrib_unread(p, onx_tokenizer_new(p->cx, onx_prepare_text(p, "tokenizer_vocab"), &q->tokenizer));
}

static onx_status json_prepare(onx_prepare *p)
{
    return prepare_with(p, fill_json);
}

/* ---- running ---- */

static bool put_id(onxi_tokenrun *run, bool wanted, int64_t id)
{
    return !wanted || onxi_token_id(run, (uint32_t)id);
}

/* Encodes a text; with a maximum length, it is truncated but keeps its last token. */
static onx_status encode(onx_work *work, onx_arena *arena, bool special, onx_str text, onxi_contrib_ids *out)
{
    const params *q = work->params;
    const bool begins = special && q->begins, ends = special && q->ends;
    onxi_tokenrun run = { .cx = work->cx, .arena = arena, .tokenizer = q->tokenizer };
    onx_status status = put_id(&run, begins, q->bos) ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = onxi_token_encode(&run, text, special && q->special);
    onxi_token_end(&run);
    ONX_TRY(status);
    if (q->length >= 0 && run.id_count + ends > (uint64_t)q->length)
        run.id_count = (uint64_t)q->length - ends;
    if (!put_id(&run, ends, q->eos))
        return ONX_E_MEMORY;
    *out = (onxi_contrib_ids){ run.ids, run.id_count };
    return ONX_OK;
}

static onx_status write_ids(onx_work *work, const onxi_contrib_ids *rows, uint64_t most)
{
    const params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *mask = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    int64_t dims[ONX_RANK_MAX];
    onxi_copy_dims(dims, x->dims, x->rank);
    dims[x->rank] = (int64_t)most;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, x->rank + 1, dims));
    if (mask)
        ONX_TRY(onxi_value_size(mask, ONX_INT64, x->rank + 1, dims));
    int64_t *to = work->outputs[0]->data, *seen = mask ? mask->data : NULL;
    for (uint64_t i = 0; most && i < x->count; i++)
        for (uint64_t k = 0; k < most; k++) {
            *to++ = k < rows[i].count ? rows[i].ids[k] : q->pad;
            if (seen)
                *seen++ = k < rows[i].count;
        }
    return ONX_OK;
}

static onx_status encode_all(onx_work *work, onx_arena *arena)
{
    const params *q = work->params;
    const onx_value *x = work->inputs[0];
    onxi_contrib_ids *rows = onxi_arena_array(arena, x->count + 1, sizeof *rows);
    uint64_t most = 0;
    bool special;
    if (!rows)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_contrib_flag(work, 1, true, &special));
    for (uint64_t i = 0; i < x->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        ONX_TRY(onxi_contrib_undone(work, encode(work, arena, special, ((const onx_str *)x->data)[i], &rows[i]), i));
        most = rows[i].count > most ? rows[i].count : most;
    }
    return write_ids(work, rows, q->length >= 0 ? (uint64_t)q->length : most);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    onx_arena *arena;
    (void)first, (void)last;
    ONX_TRY(onx_arena_new(work->cx, &arena));
    const onx_status status = encode_all(work, arena);
    onx_arena_free(arena);
    return status;
}

#define BPE(name, kind)                                                                                                \
    CONTRIB_KERNEL(name, .prepare = bpe_prepare, .run = run, .release = release, .flags = ONX_KERNEL_SIZES_OUTPUT,     \
                   .body = &kinds[kind])
const onx_kernel onxi_kernels_contrib_bpe[] = {
    BPE("GPT2Tokenizer", 0),
    BPE("RobertaTokenizer", 1),
    BPE("CLIPTokenizer", 2),
    BPE("SpmTokenizer", 3),
    CONTRIB_KERNEL("HfJsonTokenizer", .prepare = json_prepare, .run = run, .release = release,
                   .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
