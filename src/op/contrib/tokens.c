/* tokens.c - rows of ai.onnx.contrib for tokenization and detokenization, with their rules. */
#include "op/contrib/contrib.h"

/* clang-format off */

static const onxi_port id_ports[] = {
    { "input_ids", "tensor(int64)", 0 }, { "attention_mask", "tensor(int64)", OPT }, { "offset_mapping", "tensor(int64)", OPT }, { 0 }
};
static const onxi_port bpe_inputs[] = { { "input_text", "tensor(string)", 0 }, { "add_special_tokens", "tensor(bool)", OPT }, { 0 } };
static const onxi_attr bpe_attrs[] = {
    { "added_token", STRING, TEXT("") }, { "merges", STRING, REQUIRED }, { "model_name", STRING, TEXT("") },
    { "padding_length", INT, DEFAULT("-1") }, { "vocab", STRING, REQUIRED }, { 0 }
};
#define BPE_ROW(name)                                                                                                  \
    CONTRIB_ROW(name, .infer = onxi_rule_contrib_token_ids, ARITY(1, 2, 1, 3), .inputs = bpe_inputs, .outputs = id_ports, \
                .attrs = bpe_attrs)
BPE_ROW(GPT2Tokenizer)
BPE_ROW(RobertaTokenizer)
BPE_ROW(CLIPTokenizer)
BPE_ROW(SpmTokenizer)

CONTRIB_ROW(HfJsonTokenizer, .infer = onxi_rule_contrib_token_ids, ARITY(1, 1, 1, 3),
            .inputs = PORTS({ "input_text", "tensor(string)", 0 }), .outputs = id_ports,
            .attrs = ATTRS({ "tokenizer_config", STRING, TEXT("") }, { "tokenizer_vocab", STRING, REQUIRED }))

CONTRIB_ROW(SentencepieceTokenizer, .infer = onxi_rule_contrib_token_list, ARITY(6, 7, 2, 3),
            .inputs = PORTS({ "inputs", "tensor(string)", 0 }, { "nbest_size", "tensor(int64)", 0 },
                            { "alpha", "tensor(float)", 0 }, { "add_bos", "tensor(bool)", 0 },
                            { "add_eos", "tensor(bool)", 0 }, { "reverse", "tensor(bool)", 0 },
                            { "fairseq", "tensor(bool)", OPT }),
            .outputs = PORTS({ "tokens", "tensor(int32)", 0 }, { "instance_indices", "tensor(int64)", 0 },
                             { "token_indices", "tensor(int32)", OPT }),
            .attrs = ATTRS({ "model", STRING, REQUIRED }))

CONTRIB_ROW(SentencepieceDecoder, .infer = onxi_rule_contrib_one_text, ARITY(1, 2, 1, 1),
            .inputs = PORTS({ "ids", "tensor(int64)", 0 }, { "fairseq", "tensor(bool)", OPT }),
            .outputs = PORTS({ "text", "tensor(string)", 0 }), .attrs = ATTRS({ "model", STRING, REQUIRED }))

CONTRIB_ROW(TrieTokenizer, .infer = onxi_rule_contrib_trie_ids, ARITY(1, 1, 1, 1), .inputs = PORTS({ "str", "tensor(string)", 0 }),
            .outputs = PORTS({ "token_ids", "tensor(int64)", 0 }), .attrs = ATTRS({ "vocab", STRING, REQUIRED }))
CONTRIB_ROW(TrieDetokenizer, .infer = onxi_rule_contrib_bpe_texts, ARITY(1, 1, 1, 1), .inputs = PORTS({ "token_ids", "tensor(int64)", 0 }),
            .outputs = PORTS({ "str", "tensor(string)", 0 }), .attrs = ATTRS({ "vocab", STRING, REQUIRED }))

CONTRIB_ROW(BlingFireSentenceBreaker, .infer = onxi_rule_contrib_token_list, ARITY(1, 1, 1, 1),
            .inputs = PORTS({ "text", "tensor(string)", 0 }), .outputs = PORTS({ "sentences", "tensor(string)", 0 }),
            .attrs = ATTRS({ "max_sentence", INT, DEFAULT("-1") }, { "model", STRING, REQUIRED }))

/* ---- BERT ---- */

CONTRIB_ROW(BasicTokenizer, .infer = onxi_rule_contrib_token_list, ARITY(1, 1, 1, 1),
            .inputs = PORTS({ "text", "tensor(string)", 0 }), .outputs = PORTS({ "tokens", "tensor(string)", 0 }),
            .attrs = ATTRS({ "do_lower_case", INT, DEFAULT("1") }, { "remove_control_chars", INT, DEFAULT("1") },
                           { "strip_accents", INT, DEFAULT("0") }, { "tokenize_chinese_chars", INT, DEFAULT("1") },
                           { "tokenize_punctuation", INT, DEFAULT("0") }))

CONTRIB_ROW(WordpieceTokenizer, .infer = onxi_rule_contrib_token_list, ARITY(2, 2, 4, 4),
            .inputs = PORTS({ "text", "tensor(string)", 0 }, { "row_indices", "tensor(int64)", 0 }),
            .outputs = PORTS({ "tokens", "tensor(string)", 0 }, { "row_splits", "tensor(int64)", 0 },
                             { "row_begins", "tensor(int64)", 0 }, { "row_ends", "tensor(int64)", 0 }),
            .attrs = ATTRS({ "max_input_chars_per_word", INT, DEFAULT("200") }, { "suffix_indicator", STRING, REQUIRED },
                           { "unknown_token", STRING, REQUIRED }, { "vocab", STRING, REQUIRED }))

static const onxi_attr bert_attrs[] = {
    { "cls_token", STRING, TEXT("[CLS]") }, { "do_basic_tokenize", INT, DEFAULT("1") }, { "do_lower_case", INT, DEFAULT("1") },
    { "mask_token", STRING, TEXT("[MASK]") }, { "max_length", INT, DEFAULT("-1") }, { "pad_token", STRING, TEXT("[PAD]") },
    { "sep_token", STRING, TEXT("[SEP]") }, { "strip_accents", INT, DEFAULT("0") }, { "suffix_indicator", STRING, TEXT("##") },
    { "tokenize_chinese_chars", INT, DEFAULT("1") }, { "truncation_strategy_name", STRING, TEXT("longest_first") },
    { "unk_token", STRING, TEXT("[UNK]") }, { "vocab_file", STRING, REQUIRED }, { 0 }
};
CONTRIB_ROW(BertTokenizer, .infer = onxi_rule_contrib_bert_ids, ARITY(1, 1, 3, 4),
            .inputs = PORTS({ "text", "tensor(string)", 0 }),
            .outputs = PORTS({ "input_ids", "tensor(int64)", 0 }, { "token_type_ids", "tensor(int64)", 0 },
                             { "attention_mask", "tensor(int64)", 0 }, { "offset_mapping", "tensor(int64)", OPT }),
            .attrs = bert_attrs)
CONTRIB_ROW(HfBertTokenizer, .infer = onxi_rule_contrib_bert_ids, ARITY(1, 1, 2, 4),
            .inputs = PORTS({ "text", "tensor(string)", 0 }),
            .outputs = PORTS({ "input_ids", "tensor(int64)", 0 }, { "attention_mask", "tensor(int64)", 0 },
                             { "token_type_ids", "tensor(int64)", OPT }, { "offset_mapping", "tensor(int64)", OPT }),
            .attrs = bert_attrs)

CONTRIB_ROW(BertTokenizerDecoder, .infer = onxi_rule_contrib_bert_texts, ARITY(2, 2, 1, 1),
            .inputs = PORTS({ "token_ids", "tensor(int64)", 0 }, { "indices", "tensor(int64)", 0 }),
            .outputs = PORTS({ "text", "tensor(string)", 0 }),
            .attrs = ATTRS({ "clean_up_tokenization_spaces", INT, DEFAULT("1") }, { "cls_token", STRING, TEXT("[CLS]") },
                           { "mask_token", STRING, TEXT("[MASK]") }, { "pad_token", STRING, TEXT("[PAD]") },
                           { "sep_token", STRING, TEXT("[SEP]") }, { "skip_special_tokens", INT, DEFAULT("0") },
                           { "suffix_indicator", STRING, TEXT("##") }, { "unk_token", STRING, TEXT("[UNK]") },
                           { "use_indices", INT, DEFAULT("0") }, { "vocab_file", STRING, REQUIRED }))

CONTRIB_ROW(BpeDecoder, .infer = onxi_rule_contrib_bpe_texts, ARITY(1, 1, 1, 1),
            .inputs = PORTS({ "ids", "tensor(int64)", 0 }), .outputs = PORTS({ "text", "tensor(string)", 0 }),
            .attrs = ATTRS({ "added_tokens", STRING, TEXT("") }, { "all_special_ids", STRING, TEXT("") },
                           { "bos_token", STRING, TEXT("<|endoftext|>") }, { "byte_decoder", STRING, REQUIRED },
                           { "en_normalization", INT, DEFAULT("0") }, { "eos_token", STRING, TEXT("<|endoftext|>") },
                           { "id_vocab", STRING, REQUIRED }, { "skip_special_tokens", INT, DEFAULT("0") },
                           { "unk_token", STRING, TEXT("<|endoftext|>") }, { "whitespace_token", INT, DEFAULT("0") }))
/* clang-format on */

/* ---- rules; the number of tokens of a text is not known before it is tokenized ---- */

/* One axis for the tokens of each text, and one for the start and end of a token. */
onx_status onxi_rule_contrib_token_ids(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const bool fixed = onxi_schema_attr(call->schema, onx_str_of("padding_length")) != NULL;
    const int64_t length = fixed ? onxi_call_int(call, "padding_length") : -1;
    if (length != -1 && length < 1)
        return onxi_call_fail(call, "attribute padding_length is %lld, neither -1 nor above 0", (long long)length);
    for (uint32_t k = 0; x && k < 3; k++) {
        onxi_dim *dims;
        ONX_TRY(onxi_call_shape(call, k, x->rank + 1 + (k == 2), &dims));
        for (uint32_t i = 0; i < x->rank; i++)
            dims[i] = x->dims[i];
        dims[x->rank] = length > 0 ? length : ONXI_DIM_UNKNOWN;
        if (k == 2)
            dims[x->rank + 1] = 2;
    }
    return ONX_OK;
}

onx_status onxi_rule_contrib_trie_ids(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, x->rank + 1, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    return ONX_OK;
}

onx_status onxi_rule_contrib_token_list(onxi_call *call)
{
    onxi_dim *dims;
    for (uint32_t k = 0; k < call->schema->max_output; k++)
        ONX_TRY(onxi_call_shape(call, k, 1, &dims));
    return ONX_OK;
}

/* The ids are a single row. */
static onx_status want_line(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    if (x && (x->rank < 1 || x->rank > 2 || (x->rank == 2 && onxi_dim_is_const(x->dims[0]) && x->dims[0] != 1)))
        return onxi_call_fail(call, "the ids have rank %u, and are no [n] or [1,n]", x->rank);
    return ONX_OK;
}

onx_status onxi_rule_contrib_one_text(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(want_line(call));
    ONX_TRY(onxi_call_shape(call, 0, 1, &dims));
    dims[0] = 1;
    return ONX_OK;
}

onx_status onxi_rule_contrib_bert_ids(onxi_call *call)
{
    const bool batch = call->schema->min_output == 2; /* HfBertTokenizer */
    onxi_dim *dims;
    for (uint32_t k = 0; k < 3; k++) {
        ONX_TRY(onxi_call_shape(call, k, batch ? 2 : 1, &dims));
        if (batch)
            dims[0] = 1;
    }
    ONX_TRY(onxi_call_shape(call, 3, 2, &dims));
    dims[1] = 2;
    return ONX_OK;
}

/* One text, or one for each pair of positions. */
onx_status onxi_rule_contrib_bert_texts(onxi_call *call)
{
    const bool spans = onxi_call_is_set(call, "use_indices");
    const onxi_type *x = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    ONX_TRY(want_line(call));
    ONX_TRY(onxi_call_shape(call, 0, 1, &dims));
    if (!spans)
        dims[0] = 1;
    else if (x && x->rank == 2 && x->dims[1] == 2) /* an empty list of positions may have any shape */
        dims[0] = x->dims[0];
    return ONX_OK;
}

onx_status onxi_rule_contrib_bpe_texts(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 1));
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, x->rank > 1 ? x->rank - 1 : 1, &dims));
    dims[0] = 1;
    for (uint32_t i = 0; x->rank > 1 && i + 1 < x->rank; i++)
        dims[i] = x->dims[i];
    return ONX_OK;
}
