/* test_transform_grad.c - gradients of nodes that lack required operands: an error, or no gradient through the node,
 * for every version of every operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/op.h"

#include <onx/grad.h>
#include <onx/text.h>
#include <onx/trainable.h>

#include <stdio.h>
#include <string.h>

typedef struct writer {
    char text[4096];
    size_t len;
} writer;

static void put(writer *w, const char *text)
{
    const size_t n = strlen(text);
    assert_true(w->len + n < sizeof w->text);
    memcpy(w->text + w->len, text, n + 1);
    w->len += n;
}

/* Subgraphs give what they capture, so a gradient goes through a node without operands, too. */
static void put_attributes(writer *w, const onxi_schema *row)
{
    const char *between = " <";
    for (const onxi_attr *a = row->attrs; a && a->name; a++) {
        if (a->type != ONX_ATTR_GRAPH)
            continue;
        put(w, between);
        put(w, a->name);
        put(w, " = s () => (float[2] a) { a = Exp (x) }");
        between = ", ";
    }
    put(w, *between == ',' ? ">" : "");
}

/* `without`: the input that has an empty name. */
static void put_model(writer *w, const onxi_schema *row, unsigned inputs, unsigned without)
{
    char version[16];
    snprintf(version, sizeof version, "%d", (int)row->since);
    *w = (writer){ .len = 0 };
    put(w, "<ir_version: 10, opset_import: [\"");
    put(w, row->domain ? row->domain : "");
    put(w, "\" : ");
    put(w, version);
    put(w, row->domain ? ", \"\" : 21]>\n" : "]>\n");
    put(w, "g (float[2] x) => (float[2] y) { y = ");
    put(w, row->domain ? row->domain : "");
    put(w, row->domain ? "." : "");
    put(w, row->name);
    put_attributes(w, row);
    put(w, " (");
    for (unsigned i = 0; i < inputs; i++)
        put(w, i == without ? (i ? ", \"\"" : "\"\"") : i ? ", x" : "x");
    put(w, ") }");
}

/* Is the gradient refused, or nothing that goes through the node? */
static bool is_refused(const writer *w)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    assert_non_null(cx);
    const onx_status parsed = onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(w->text), 0, &doc);
    bool refused = true;
    if (parsed == ONX_OK) {
        const onx_str wrt[] = { onx_str_of("x") };
        const onx_grad_options options = { .of = onx_str_of("y"), .wrt = wrt, .wrt_count = 1 };
        refused = onx_grad(cx, doc, &options) != ONX_OK;
        assert_true(!refused || onx_diag_total(cx, ONX_ERROR) > 0);
    }
    onx_doc_free(doc);
    doc = NULL;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(w->text), 0, &doc) == ONX_OK) {
        const onx_trainable_options options = { .lora_rank = 1 };
        (void)onx_trainable(cx, doc, &options); /* what has no weights is no error of its own */
        (void)onx_trainable(cx, doc, NULL);
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return refused;
}

static void test_transform_grad__operands_that_are_not_there(void **state)
{
    static writer w;
    unsigned asked = 0, refused = 0;
    (void)state;
    for (uint32_t id = 0; id < onxi_operator_count; id++)
        for (const onxi_schema *row = onxi_operators[id].rows; row->name; row++) {
            for (unsigned i = 0; i < row->min_input && i < 8; i++, asked += 2) {
                put_model(&w, row, i, i);
                refused += is_refused(&w);
                put_model(&w, row, row->min_input, i);
                refused += is_refused(&w);
            }
            put_model(&w, row, row->min_input, row->min_input); /* where more outputs are wanted, too */
            refused += is_refused(&w);
            asked++;
        }
    print_message("%u nodes without some of their operands, %u refused\n", asked, refused);
    assert_true(asked > 500 && refused > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_transform_grad__operands_that_are_not_there) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
