/* gen_differential.c - compares all processings of a random model: parts of onx, kernels, threads, formats, forms. */
#include "gen/gen.h"

#include <onx/io.h>
#include <onx/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(gen_finding *found, const char *what, const char *detail)
{
    if (!found->why[0])
        snprintf(found->why, sizeof found->why, "%s%s%.380s", what, *detail ? ": " : "", detail);
}

/* ---- formats ---- */

typedef struct text_buffer {
    char *ptr;
    size_t len;
} text_buffer;

static onx_status collect(void *user, onx_str bytes)
{
    text_buffer *b = user;
    char *ptr = realloc(b->ptr, b->len + bytes.len + 1);
    if (!ptr)
        return ONX_E_MEMORY;
    memcpy(ptr + b->len, bytes.ptr, bytes.len);
    b->ptr = ptr;
    b->len += bytes.len;
    b->ptr[b->len] = 0;
    return ONX_OK;
}

static const char *const formats[] = { "binary", "text", "textproto", "json" };

static onx_status to_format(onx_ctx *cx, size_t format, const onx_model *model, text_buffer *out)
{
    const onx_sink sink = { collect, out };
    return format == 0   ? onx_write_to(cx, ONX_KIND_MODEL, model, sink)
           : format == 1 ? onx_text_print(cx, ONX_KIND_MODEL, model, NULL, sink)
           : format == 2 ? onx_textproto_write(cx, ONX_KIND_MODEL, model, sink)
                         : onx_json_write(cx, ONX_KIND_MODEL, model, sink);
}

static onx_status from_format(onx_ctx *cx, size_t format, onx_str text, onx_doc **out)
{
    return format == 0   ? onx_read(cx, ONX_KIND_MODEL, text, 0, 1, out)
           : format == 1 ? onx_text_parse(cx, ONX_KIND_MODEL, text, 0, out)
           : format == 2 ? onx_textproto_read(cx, ONX_KIND_MODEL, text, out)
                         : onx_json_read(cx, ONX_KIND_MODEL, text, out);
}

/* Through each format and back: the same bytes. */
static void round_trips(onx_ctx *cx, const onx_model *model, gen_finding *found)
{
    onx_buffer want, got;
    if (onx_write(cx, ONX_KIND_MODEL, model, 0, &want) != ONX_OK) {
        say(found, "cannot be encoded", "");
        return;
    }
    for (size_t format = 0; format < sizeof formats / sizeof *formats; format++) {
        text_buffer text = { NULL, 0 };
        onx_doc *doc = NULL;
        bool same = false;
        if (to_format(cx, format, model, &text) == ONX_OK &&
            from_format(cx, format, onx_str_make(text.ptr, text.len), &doc) == ONX_OK &&
            onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &got) == ONX_OK) {
            same = got.len == want.len && memcmp(got.ptr, want.ptr, want.len) == 0;
            onx_buffer_free(&got);
        }
        if (!same)
            say(found, "a round trip changes it", formats[format]);
        onx_doc_free(doc);
        free(text.ptr);
    }
    onx_buffer_free(&want);
    onx_diag_clear(cx);
}

/* ---- forms ---- */

static const char *const forms[] = { "constants", "branch", "loop", "scan", "function" };

/* Takes the axis away that stacking one step adds. */
static void unstack(gen_run *run, const gen_run *like)
{
    for (uint32_t i = 0; i < run->count && run->outputs[i]; i++) {
        onx_value *v = run->outputs[i];
        const onx_value *w = like->outputs[i];
        if (!w || v->kind != ONX_VALUE_TENSOR || w->kind != ONX_VALUE_TENSOR || v->rank != w->rank + 1 ||
            v->dims[0] != 1)
            continue;
        memmove(v->dims, v->dims + 1, w->rank * sizeof *v->dims);
        v->rank--;
    }
}

static void compare_form(onx_ctx *cx, const gen_graph *graph, gen_form sort, gen_random *random, unsigned flags,
                         const gen_verdict *base, gen_origin *origin, gen_finding *found)
{
    gen_operand operands[GEN_GRAPH_OPERANDS + 1];
    gen_verdict v;
    onx_doc *doc;
    char why[300], text[460];
    if (!gen_graph_form(cx, graph, sort, random, &doc))
        return;
    memcpy(operands, graph->operands, graph->operand_count * sizeof *operands);
    operands[graph->operand_count] = (gen_operand){ .kind = GEN_TENSOR,
                                                    .dtype = ONX_BOOL,
                                                    .like = ONX_BOOL,
                                                    .name = "cond",
                                                    .fill = GEN_INDEX,
                                                    .below = 2,
                                                    .seed = gen_next(random) };
    gen_verify(cx, doc, operands, graph->operand_count + 1, flags | GEN_LEAVE_RUNS, &v);
    found->forms++;
    if (v.why[0]) {
        snprintf(text, sizeof text, "as %s: %s", forms[sort], v.why);
        say(found, text, "");
    }
    if (base->sound && !v.sound)
        say(found, "another form of a valid model is not valid", forms[sort]);
    for (int plain = 0; plain < 2 && !(flags & GEN_ANY_VALUES); plain++) {
        gen_run *run = plain ? &v.plain : &v.fast;
        const gen_run *want = plain ? &base->plain : &base->fast;
        if (run->status == ONX_OK && want->status == ONX_OK && (sort == GEN_LOOP || sort == GEN_SCAN))
            unstack(run, want);
        if (!gen_run_close(run, want, origin, why, sizeof why)) {
            snprintf(text, sizeof text, "as %s, %s kernels: %s", forms[sort], plain ? "plain" : "fast", why);
            say(found, text, "");
        }
    }
    gen_verdict_free(&v);
    onx_doc_free(doc);
}

/* ---- the whole ---- */

void gen_differential(gen_random *random, gen_finding *found)
{
    gen_graph graph;
    gen_verdict v;
    onx_ctx *cx = onx_ctx_new(NULL);
    memset(found, 0, sizeof *found);
    if (!cx)
        return;
    if (gen_graph_make(cx, random, &graph)) {
        if (getenv("ONX_GEN_PRINT")) { /* for what crashes */
            text_buffer text = { NULL, 0 };
            if (to_format(cx, 1, onx_doc_model(graph.doc), &text) == ONX_OK)
                fprintf(stderr, "%s", text.ptr);
            free(text.ptr);
        }
        const unsigned flags = graph.any_values ? GEN_ANY_VALUES : 0;
        found->nodes = graph.node_count;
        gen_verify(cx, graph.doc, graph.operands, graph.operand_count, flags | GEN_TWO_THREADS | GEN_ROWS, &v);
        say(found, v.why, "");
        if (!v.full && !graph.refused && !graph.wild)
            say(found, "the check refuses what inference takes", "");
        found->ran = v.plain.status == ONX_OK;
        round_trips(cx, onx_doc_model(graph.doc), found);
        gen_origin origin = { .cx = cx, .doc = graph.doc, .operands = graph.operands, .count = graph.operand_count };
        for (gen_form sort = 0; sort < GEN_FORMS && !found->why[0]; sort++)
            compare_form(cx, &graph, sort, random, flags, &v, &origin, found);
        gen_origin_free(&origin);
        if (found->why[0]) {
            text_buffer text = { NULL, 0 };
            if (to_format(cx, 1, onx_doc_model(graph.doc), &text) == ONX_OK)
                found->text = text.ptr;
        }
        gen_verdict_free(&v);
        gen_graph_free(&graph);
    }
    onx_ctx_free(cx);
}
