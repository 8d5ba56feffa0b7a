/* search.c - rows of com.microsoft that search for sequences; the decoder is a subgraph. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

#define SEARCH_ATTRS_OF(kind)                                                                                          \
    { "decoder", GRAPH, REQUIRED }, { "decoder_start_token_id", INT, DEFAULT("-1") }, { "encoder", GRAPH, OPTIONAL },  \
    { "eos_token_id", INT, REQUIRED }, { "init_decoder", GRAPH, OPTIONAL }, { "model_type", INT, DEFAULT(kind) },      \
    { "no_repeat_ngram_size", INT, DEFAULT("0") }, { "pad_token_id", INT, REQUIRED }, { "vocab_size", INT, DEFAULT("-1") }
#define SEARCH_ATTRS SEARCH_ATTRS_OF("0")
#define SEARCH_INPUTS                                                                                                  \
    { "input_ids", "I", 0 }, { "max_length", "I", 0 }, { "min_length", "I", OPT }, { "repetition_penalty", "T", OPT }, \
    { "vocab_mask", "I", OPT }, { "prefix_vocab_mask", "I", OPT }, { "attention_mask", "I", OPT }

MS_ROW(GreedySearch, .infer = onxi_rule_microsoft_search, .flags = INFERS, ARITY(2, 7, 1, 1),
       .inputs = PORTS(SEARCH_INPUTS), .outputs = PORTS({ "sequences", "I", 0 }), .attrs = ATTRS(SEARCH_ATTRS),
       .types = TYPES({ "T", T_FLOAT }, { "I", T_INT32 }))

MS_ROW(Sampling, .infer = onxi_rule_microsoft_search, .flags = INFERS | NONDETERMINISTIC, ARITY(2, 9, 1, 2),
       .inputs = PORTS(SEARCH_INPUTS, { "presence_mask", "I", OPT }, { "seed", "I", OPT }),
       .outputs = PORTS({ "sequences", "I", 0 }, { "filtered_logits", "T", OPT }),
       .attrs = ATTRS({ "custom", INT, DEFAULT("0") }, SEARCH_ATTRS, { "filter_value", FLOAT, DEFAULT("-1e20") },
                      { "min_tokens_to_keep", INT, DEFAULT("0") }, { "presence_penalty", FLOAT, DEFAULT("0") },
                      { "temperature", FLOAT, DEFAULT("1") }, { "top_p", FLOAT, DEFAULT("0") }),
       .types = TYPES({ "T", T_FLOAT }, { "I", T_INT32 }))

#define BEAM_INPUTS                                                                                                    \
    { "input_ids", "F", 0 }, { "max_length", "I", 0 }, { "min_length", "I", OPT }, { "num_beams", "I", 0 },            \
    { "num_return_sequences", "I", 0 }, { "length_penalty", "T", OPT }, { "repetition_penalty", "T", OPT },            \
    { "vocab_mask", "M", OPT }, { "prefix_vocab_mask", "M", OPT }, { "attention_mask", "I", OPT },                     \
    { "decoder_input_ids", "I", OPT }, { "logits_processor", "I", OPT }
#define BEAM_OUTPUTS { "sequences", "I", 0 }, { "sequences_scores", "T", OPT }, { "scores", "T", OPT }
#define BEAM_TYPES                                                                                                     \
    { "T", T(BIT(FLOAT) | BIT(FLOAT16)) }, { "F", T(BIT(FLOAT) | BIT(INT32) | BIT(FLOAT16)) }, { "I", T_INT32 },       \
    { "M", T_INT32 }

MS_ROW(BeamSearch, .infer = onxi_rule_microsoft_search, .flags = INFERS, ARITY(5, 12, 1, 3),
       .inputs = PORTS(BEAM_INPUTS), .outputs = PORTS(BEAM_OUTPUTS),
       .attrs = ATTRS(SEARCH_ATTRS, { "early_stopping", INT, DEFAULT("0") }), .types = TYPES(BEAM_TYPES))

MS_ROW(WhisperBeamSearch, .infer = onxi_rule_microsoft_search, .flags = INFERS, ARITY(5, 15, 1, 5),
       .inputs = PORTS(BEAM_INPUTS, { "cross_qk_layer_head", "I", OPT }, { "extra_decoding_ids", "I", OPT },
                       { "temperature", "T", OPT }),
       .outputs = PORTS(BEAM_OUTPUTS, { "cross_qk", "V", OPT }, { "non_speech_probs", "T", OPT }),
       .attrs = ATTRS(SEARCH_ATTRS_OF("2"), { "beginning_timestamp_token_id", INT, DEFAULT("-1") },
                      { "decoder_output_cross_qk", INT, DEFAULT("0") }, { "early_stopping", INT, DEFAULT("0") },
                      { "no_speech_token_id", INT, DEFAULT("-1") }, { "no_timestamps_token_id", INT, DEFAULT("-1") },
                      { "start_of_lm_token_id", INT, DEFAULT("-1") }, { "transcribe_token_id", INT, DEFAULT("-1") },
                      { "translate_token_id", INT, DEFAULT("-1") }),
       .types = TYPES(BEAM_TYPES, { "V", T_FLOAT }))
