/* fuzz_surgery.c - decodes a model and, depending on the first byte, splits it and merges the parts, outlines it, or
 * edits it. */
#include "fuzz_model.h"

#include <onx/transform.h>

static void changed(void *user, const onx_change *change)
{
    *(size_t *)user += change->path.len + change->rule.len + change->text.len;
}

/* Splits the model into two parts and merges these. */
static onx_status cut(onx_ctx *cx, onx_doc *doc)
{
    onx_doc *parts[2] = { NULL, NULL };
    onx_status status = onx_split(cx, doc, NULL, 2, parts);
    if (status == ONX_OK)
        status = onx_merge(cx, parts[0], &parts[1], 1, NULL);
    onx_doc_free(parts[0]);
    onx_doc_free(parts[1]);
    return status;
}

static onx_status take(onx_ctx *cx, onx_doc *doc)
{
    const onx_str every = onx_str_of("*");
    const onx_extract_options options = { .node = &every, .node_count = 1 };
    onx_doc *part;
    ONX_TRY(onx_extract(cx, doc, &options, &part));
    onx_doc_free(part);
    return ONX_OK;
}

/* Applies one kind of edit to the first input and output. */
static onx_status edit(onx_ctx *cx, onx_doc *doc, unsigned kind)
{
    static const char *const fixed[ONX_EDIT_COUNT] = {
        [ONX_EDIT_RENAME_VALUE] = "*",   [ONX_EDIT_RENAME_NODE] = "*",     [ONX_EDIT_RENAME_DIM] = "*",
        [ONX_EDIT_RENAME_DOMAIN] = "*",  [ONX_EDIT_RENAME_FUNCTION] = "*", [ONX_EDIT_METADATA] = "k",
        [ONX_EDIT_FIELD] = "doc_string", [ONX_EDIT_STRIP] = "unused",      [ONX_EDIT_BATCH] = "7",
    };
    size_t told = 0;
    const onx_graph *g = onx_doc_model(doc)->graph;
    if (!g || !g->input_count || !g->output_count)
        return ONX_OK;
    const bool output = kind >= ONX_EDIT_ARGMAX || kind == ONX_EDIT_SET_OUTPUTS || kind == ONX_EDIT_DROP_OUTPUT;
    const onx_edit one = { .kind = (int)kind,
                           .a = fixed[kind] ? onx_str_of(fixed[kind])
                                            : onx_view(output ? g->output[0]->name : g->input[0]->name),
                           .b = onx_str_of(kind == ONX_EDIT_NORMALIZE ? "1,2,3:4"
                                           : output                   ? "1"
                                                                      : "new*") };
    const onx_edit_options options = { .edit = &one, .count = 1, .changed = changed, .user = &told };
    return onx_edit_model(cx, doc, &options);
}

static onx_status work(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    const onx_outline_options options = { .min_nodes = 2 };
    switch (choice & 3) {
    case 0:
        return cut(cx, doc);
    case 1:
        return take(cx, doc);
    case 2:
        ONX_TRY(onx_outline(cx, doc, &options));
        return onx_inline(cx, doc, NULL);
    default:
        return edit(cx, doc, (choice >> 2) % ONX_EDIT_COUNT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(data, size, work);
}
