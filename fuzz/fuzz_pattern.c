/* fuzz_pattern.c - regular expressions in the syntax of RE2, as for Tokenizer of com.microsoft. The first byte says
 * whether the next line is the expression for tokens or for separators; the text follows. */
#include <onx/run.h>
#include <onx/text.h>

#include <stdlib.h>
#include <string.h>

#define MODEL(attribute)                                                                                               \
    "<ir_version: 9, opset_import: [\"\": 17, \"com.microsoft\": 1]> g (string[1] x) => (y) {"                         \
    " y = com.microsoft.Tokenizer <mark = 1, mincharnum = 1, pad_value = \"#\", " attribute "> (x) }"

static onx_status read_model(onx_ctx *cx, bool separates, onx_str expression, onx_doc **out)
{
    const char *text = separates ? MODEL("separators = [\"a\"]") : MODEL("tokenexp = \"a\"");
    ONX_TRY(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, out));
    const onx_node *node = onx_doc_model(*out)->graph->node[0];
    onx_attribute *a = node->attribute[node->attribute_count - 1];
    return onx_arena_keep(onx_doc_arena(*out), expression, separates ? &a->strings[0] : &a->s);
}

static onx_status run(onx_ctx *cx, onx_doc *doc, onx_str text)
{
    const onx_session_options options = { .struct_size = sizeof options, .threads = 1, .memory = 64 << 20 };
    onx_session *session;
    onx_value *x = NULL, *y = NULL;
    ONX_TRY(onx_session_new(cx, doc, &options, &session));
    onx_status status = onx_value_new_tensor(cx, ONX_STRING, 1, (const int64_t[]){ 1 }, &x);
    if (status == ONX_OK)
        status = onx_value_set_text(x, 0, text);
    if (status == ONX_OK)
        status = onx_session_run(session, cx, (const onx_value *const[]){ x }, &y);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(session);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *from = (const char *)data + 1, *end = (const char *)data + size;
    const char *line = memchr(from, '\n', size - 1);
    const char *text = line ? line + 1 : end;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    onx_status status = read_model(cx, data[0] & 1, onx_str_make(from, (size_t)((line ? line : end) - from)), &doc);
    if (status == ONX_OK)
        status = run(cx, doc, onx_str_make(text, (size_t)(end - text)));
    if (status != ONX_OK && !onx_diag_total(cx, ONX_ERROR))
        abort(); /* a failure without a diagnostic */
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}
