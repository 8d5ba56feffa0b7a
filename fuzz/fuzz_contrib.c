/* fuzz_contrib.c - inputs of operators of ai.onnx.contrib: sound files, expressions in two syntaxes, vocabularies of
 * tries, rules for sentences, names of files. The first byte selects a model. Each input gets a line, and the last one
 * the rest. The attribute's text comes before them, up to an empty line, or after them. */
#include <onx/io.h>
#include <onx/run.h>
#include <onx/text.h>

#include <stdlib.h>
#include <string.h>

enum { INPUTS = 3 };

#define HEAD "<ir_version: 9, opset_import: [\"\": 17, \"ai.onnx.contrib\": 1]> "

static const struct {
    const char *text;
    unsigned inputs;
    bool bytes;                              /* the input is bytes; otherwise each input is a string */
    enum { NONE, BEFORE, BEHIND } attribute; /* does the node have such an attribute, and where is its text? */
} models[] = {
    { HEAD "g (uint8[N] x) => (y) { y = ai.onnx.contrib.AudioDecoder (x) }", 1, true, NONE },
    { HEAD "g (uint8[N] x) => (y) {"
           " y = ai.onnx.contrib.AudioDecoder <downsampling_rate = 1000, stereo_to_mono = 1> (x) }",
      1, true, NONE },
    { HEAD "g (string[1] p, string[1] r, string[1] x) => (y) { y = ai.onnx.contrib.StringRegexReplace (x, p, r) }", 3,
      false, NONE },
    { HEAD "g (string[1] p, string[1] r, string[1] x) => (y) { y = ai.onnx.contrib.StringECMARegexReplace (x, p, r) }",
      3, false, NONE },
    { HEAD "g (string[1] p, string[1] k, string[1] x) => (a, b, c, d) {"
           " a, b, c, d = ai.onnx.contrib.StringRegexSplitWithOffsets (x, p, k) }",
      3, false, NONE },
    { HEAD "g (string[1] p, string[1] k, string[1] x) => (a, b, c, d) {"
           " a, b, c, d = ai.onnx.contrib.StringECMARegexSplitWithOffsets (x, p, k) }",
      3, false, NONE },
    { HEAD "g (string[1] x) => (y) { y = ai.onnx.contrib.TrieTokenizer <vocab = \"v\"> (x) }", 1, false, BEFORE },
    { HEAD "g (string[1] x) => (y) { y = ai.onnx.contrib.BlingFireSentenceBreaker <model = \"m\"> (x) }", 1, false,
      BEHIND },
    { HEAD "g (string[1] x) => (y) { y = ai.onnx.contrib.ImageReader (x) }", 1, false, NONE },
};

/* Takes the text up to the next occurrence of `text`, which is removed, too, or all of the rest. */
static onx_str take_until(onx_str *rest, const char *text)
{
    const char *end = text && rest->len ? memmem(rest->ptr, rest->len, text, strlen(text)) : NULL;
    const size_t len = end ? (size_t)(end - rest->ptr) : rest->len, gone = end ? len + strlen(text) : len;
    const onx_str part = onx_str_make(rest->ptr, len);
    *rest = onx_str_make(rest->ptr + gone, rest->len - gone);
    return part;
}

static onx_status make_input(onx_ctx *cx, size_t which, onx_str from, onx_value **out)
{
    const bool bytes = models[which].bytes;
    const int64_t dims[] = { bytes ? (int64_t)from.len : 1 };
    ONX_TRY(onx_value_new_tensor(cx, bytes ? ONX_UINT8 : ONX_STRING, 1, dims, out));
    if (!bytes)
        return onx_value_set_text(*out, 0, from);
    if (from.len)
        memcpy((*out)->data, from.ptr, from.len);
    return ONX_OK;
}

static onx_status run(onx_ctx *cx, size_t which, onx_str rest, onx_doc *doc)
{
    const onx_session_options options = { .struct_size = sizeof options, .threads = 1, .memory = 64 << 20 };
    const onx_node *node = onx_doc_model(doc)->graph->node[0];
    onx_session *session;
    onx_value *in[INPUTS] = { NULL }, *out[4] = { NULL };
    if (models[which].attribute != NONE) {
        onx_str part = take_until(&rest, "\n\n");
        const onx_str attribute = models[which].attribute == BEHIND ? rest : part;
        rest = models[which].attribute == BEHIND ? part : rest;
        ONX_TRY(onx_arena_keep(onx_doc_arena(doc), attribute, &node->attribute[node->attribute_count - 1]->s));
    }
    ONX_TRY(onx_session_new(cx, doc, &options, &session));
    onx_status status = ONX_OK;
    for (unsigned i = 0; status == ONX_OK && i < models[which].inputs; i++)
        status = make_input(cx, which, take_until(&rest, i + 1 < models[which].inputs ? "\n" : NULL), &in[i]);
    if (status == ONX_OK)
        status = onx_session_run(session, cx, (const onx_value *const *)in, out);
    for (unsigned i = 0; i < INPUTS; i++)
        onx_value_free(in[i]);
    for (unsigned i = 0; i < 4; i++)
        onx_value_free(out[i]);
    onx_session_free(session);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const size_t which = data[0] % (sizeof models / sizeof *models);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    onx_status status = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(models[which].text), 0, &doc);
    if (status == ONX_OK)
        status = onx_doc_set_base_dir(doc, "."); /* the folder that models may read from */
    if (status == ONX_OK)
        status = run(cx, which, onx_str_make((const char *)data + 1, size - 1), doc);
    if (status != ONX_OK && !onx_diag_total(cx, ONX_ERROR))
        abort(); /* a failure without a diagnostic */
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}
