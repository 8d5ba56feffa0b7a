/* cli_tokens.h - tokenizers as commands use them: found beside a model, and texts that come out token by token. */
#ifndef ONX_CLI_TOKENS_H
#define ONX_CLI_TOKENS_H

#include "cli.h"

#include <onx/tokenizer.h>

/* A growing list of ids. */
typedef struct cli_ids {
    int64_t *ids;
    uint64_t count, room;
} cli_ids;
/* False, said, when out of memory. */
bool cli_ids_add(const cli_call *call, cli_ids *list, int64_t id);
/* "1,2,3", or with blanks; false, said by the option's name (NULL: none), for anything else. */
bool cli_ids_read(const cli_call *call, const char *option, const char *text, cli_ids *out);
void cli_put_ids(cli_json *json, const char *key, const int64_t *ids, uint64_t count);

/* A file of that name beside the model, in memory that the caller frees; NULL when there is none. */
char *cli_beside(const cli_call *call, const char *model, const char *name);
/* The tokenizer in a file, or in tokenizer.json or tokenizer.model of a folder. */
onx_status cli_load_tokenizer(cli_call *call, const char *path, onx_tokenizer **out);

/* A text that grows by tokens: what is certain of it so far. A character may take several tokens. */
typedef struct cli_stream {
    cli_call *call;
    onx_tokenizer *tokenizer;
    const cli_ids *ids;  /* which grow */
    uint64_t from, done; /* where decoding begins, so that blanks come out right; ids whose text is in `text` */
    char *text;
    size_t len, room;
} cli_stream;
/* The text of ids that were added; `last`: no more come. */
onx_status cli_stream_on(cli_stream *stream, bool last);
void cli_stream_free(cli_stream *stream);

#endif
