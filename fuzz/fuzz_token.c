/* fuzz_token.c - tokenizer files and texts that they encode: a JSON or SentencePiece file, followed by a text. */
#include <onx/tokenizer.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char probe[] = " Hello,  w\xc3\xb6rld 12<s> \xe4\xbd\xa0\xe5\xa5\xbd\n'll";
    if (size < 2)
        return 0;
    /* The last two bytes are the length of the text before them. */
    size_t text = (size_t)data[size - 1] | (size_t)data[size - 2] << 8;
    size -= 2;
    text = text < size ? text : 0;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 256 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_tokenizer *t = NULL;
    if (onx_tokenizer_new(cx, onx_str_make((const char *)data, size - text), &t) != ONX_OK) {
        if (!onx_diag_total(cx, ONX_ERROR) || t)
            abort();
    } else {
        const onx_str texts[] = { onx_str_of(probe), onx_str_make((const char *)data + size - text, text) };
        for (int i = 0; i < 2; i++) {
            const int64_t *ids;
            uint64_t count;
            onx_buffer back = { 0 };
            const onx_status status = onx_tokenizer_encode(t, texts[i], true, &ids, &count);
            if (status == ONX_OK && onx_tokenizer_decode(t, ids, count, true, &back) != ONX_OK &&
                !onx_diag_total(cx, ONX_ERROR))
                abort();
            onx_buffer_free(&back);
        }
        onx_tokenizer_free(t);
    }
    onx_ctx_free(cx);
    return 0;
}
