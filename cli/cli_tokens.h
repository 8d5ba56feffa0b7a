/* cli_tokens.h - tokenizers for commands: found beside a model, and text that is decoded token by token. */
#ifndef ONX_CLI_TOKENS_H
#define ONX_CLI_TOKENS_H

#include "cli.h"

#include <onx/tokenizer.h>

/* A growing list of ids. */
typedef struct cli_ids {
    int64_t *ids;
    uint64_t count, room;
} cli_ids;
/* False, after an error message, when out of memory. */
bool cli_ids_add(const cli_call *call, cli_ids *list, int64_t id);
/* Parses "1,2,3", or with blanks; otherwise false, with a message that names the option (NULL: none). */
bool cli_ids_read(const cli_call *call, const char *option, const char *text, cli_ids *out);
void cli_put_ids(cli_json *json, const char *key, const int64_t *ids, uint64_t count);

/* The path of a file of that name beside the model, which the caller frees; NULL if there is none. */
char *cli_beside(const cli_call *call, const char *model, const char *name);
/* The same in a folder that is named relative to that of the model, such as "../". */
char *cli_beside_in(const cli_call *call, const char *model, const char *folder, const char *name);
/* Loads the tokenizer in a file, or in tokenizer.json or tokenizer.model in a folder. */
onx_status cli_load_tokenizer(cli_call *call, const char *path, onx_tokenizer **out);

/* A text that grows token by token: its final part so far. A character may consist of several tokens. */
typedef struct cli_stream {
    cli_call *call;
    onx_tokenizer *tokenizer;
    const cli_ids *ids;  /* grows */
    uint64_t from, done; /* from: where decoding begins, so that spaces are correct; done: number of ids that `text`
                          * covers */
    char *text;
    size_t len, room;
} cli_stream;
/* Adds the text of new ids; `last`: no more ids follow. */
onx_status cli_stream_on(cli_stream *stream, bool last);
void cli_stream_free(cli_stream *stream);

#endif
