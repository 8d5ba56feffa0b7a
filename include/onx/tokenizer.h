/* tokenizer.h - converts texts to token ids and back, according to tokenizer.json and SentencePiece files. See
 * docs/notes/tokenizers.md. */
#ifndef ONX_TOKENIZER_H
#define ONX_TOKENIZER_H

#include <onx/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tokenizer that was read from a file. */
typedef struct onx_tokenizer onx_tokenizer;

/* Reads the bytes of a tokenizer.json or of a SentencePiece model, whichever their first bytes show; the bytes are not
 * needed afterwards. ONX_E_UNSUPPORTED for unknown kinds of steps, and if a library that a step needs is missing. */
ONX_API ONX_OWN_THREAD onx_status onx_tokenizer_new(onx_ctx *cx, onx_str bytes, onx_tokenizer **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_tokenizer_free(onx_tokenizer *tokenizer);

/* The greatest id plus one. */
ONX_API ONX_ANY_THREAD uint64_t onx_tokenizer_size(const onx_tokenizer *tokenizer);
/* A token as it is in the file; false where the id has none. */
ONX_API ONX_ANY_THREAD bool onx_tokenizer_token(const onx_tokenizer *tokenizer, int64_t id, onx_str *text_out);
/* The id of a token as it is in the file; false where there is none. */
ONX_API ONX_ANY_THREAD bool onx_tokenizer_id(const onx_tokenizer *tokenizer, onx_str token, int64_t *id_out);

/* The ids of a UTF-8 text. `special`: include the special tokens that the file puts around each text. The ids remain
 * valid until the next call of this function for the tokenizer. */
ONX_API ONX_OWN_THREAD onx_status onx_tokenizer_encode(onx_tokenizer *tokenizer, onx_str text, bool special,
                                                       const int64_t **ids_out, uint64_t *count_out);
/* The text of the ids. `special`: include special tokens, which are omitted otherwise. Unknown ids give no text. Free
 * the text with onx_buffer_free. */
ONX_API ONX_OWN_THREAD onx_status onx_tokenizer_decode(onx_tokenizer *tokenizer, const int64_t *ids, uint64_t count,
                                                       bool special, onx_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
