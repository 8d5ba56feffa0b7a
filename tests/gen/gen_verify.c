/* gen_verify.c - properties that hold for every model: the parts of onx that process it agree. */
#include "gen/gen.h"

#include <onx/check.h>
#include <onx/infer.h>

#include "kernel/kernel.h"

#include <stdio.h>

static bool accepts(onx_ctx *cx, onx_doc *doc, uint32_t flags)
{
    const onx_check_options options = { .flags = flags | ONX_CHECK_OPEN_SHAPES };
    bool ok = onx_check(cx, doc, &options, NULL) == ONX_OK;
    onx_diag_clear(cx);
    return ok;
}

static void say(gen_verdict *v, const char *what, const char *detail)
{
    if (!v->why[0])
        snprintf(v->why, sizeof v->why, "%s%s%s", what, *detail ? ": " : "", detail);
}

/* Values of outputs against the types that are inferred for them. */
static void compare_types(onx_infer *infer, const onx_graph *graph, const gen_run *run, gen_verdict *v)
{
    char why[200], text[300];
    for (uint32_t i = 0; infer && i < graph->output_count && i < run->count && run->status == ONX_OK; i++) {
        onx_str name = onx_view(graph->output[i]->name);
        if (!gen_type_agrees(onx_infer_type(infer, graph, name), run->outputs[i], why, sizeof why)) {
            snprintf(text, sizeof text, "%.*s: %s", ONX_ARG(name), why);
            say(v, "inference and run differ", text);
        }
    }
}

/* Each row of each node that has several. */
static void compare_rows(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, gen_origin *origin,
                         gen_verdict *v)
{
    char why[300];
    for (uint32_t turn = 0, turns = 1; turn < turns && !v->why[0]; turn++) {
        gen_run one, two;
        turns = gen_run_rows(cx, doc, operands, count, turn, 1, &one);
        if (turns && !gen_run_close(&v->plain, &one, origin, why, sizeof why))
            say(v, "other rows differ", why);
        gen_run_rows(cx, doc, operands, count, turn, 2, &two);
        if (turns && !gen_run_agree(&one, &two, true, why, sizeof why))
            say(v, "two threads differ, other rows", why);
        v->others += one.others;
        gen_run_free(&one);
        gen_run_free(&two);
    }
}

static void compare_runs(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, unsigned flags,
                         gen_verdict *v)
{
    char why[300];
    if (flags & GEN_ANY_VALUES) {
        if ((v->plain.status == ONX_OK) != (v->fast.status == ONX_OK))
            say(v, "plain and fast kernels differ", v->plain.status == ONX_OK ? v->fast.why : v->plain.why);
        return;
    }
    gen_origin origin = { .cx = cx, .doc = doc, .operands = operands, .count = count };
    if (!(flags & GEN_LEAVE_RUNS) && !gen_run_close(&v->plain, &v->fast, &origin, why, sizeof why))
        say(v, "plain and fast kernels differ", why);
    for (unsigned isa = 1; flags & GEN_LEVELS && isa <= onxi_isa_best(); isa++) {
        if (isa == onxi_isa_of(ONX_ISA_ANY))
            continue;
        gen_run level;
        gen_run_level(cx, doc, operands, count, false, 1, isa, &level);
        if (!gen_run_close(&v->plain, &level, &origin, why, sizeof why))
            say(v, "kernels of another instruction set differ", why);
        gen_run_free(&level);
    }
    if (flags & GEN_ROWS)
        compare_rows(cx, doc, operands, count, &origin, v);
    gen_origin_free(&origin);
    if (!(flags & GEN_TWO_THREADS))
        return;
    for (int plain = 0; plain < 2; plain++) {
        gen_run two;
        gen_run_model(cx, doc, operands, count, plain, 2, &two);
        if (!gen_run_agree(plain ? &v->plain : &v->fast, &two, true, why, sizeof why))
            say(v, plain ? "two threads differ, plain" : "two threads differ", why);
        gen_run_free(&two);
    }
}

void gen_verify(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, unsigned flags, gen_verdict *v)
{
    const onx_graph *graph = onx_doc_model(doc)->graph;
    onx_infer *infer = NULL;
    memset(v, 0, sizeof *v);
    v->sound = accepts(cx, doc, ONX_CHECK_STRUCTURE);
    v->full = accepts(cx, doc, ONX_CHECK_FULL);
    if (onx_infer_new(cx, doc, NULL, &infer) != ONX_OK)
        infer = NULL;
    v->refused = infer && onx_infer_summarize(infer).failed > 0;
    char refusal[240] = "";
    if (v->refused && onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), refusal, sizeof refusal);
    const bool contradicted = onx_diag_count(cx) > 0; /* what is declared counts then, whatever a run gives */
    onx_diag_clear(cx);
    gen_run_model(cx, doc, operands, count, true, 1, &v->plain);
    gen_run_model(cx, doc, operands, count, false, 1, &v->fast);
    if (!v->sound && (v->plain.planned || v->fast.planned))
        say(v, "what the check refuses is planned", "");
    if (v->full && !v->sound)
        say(v, "all rules hold where those of structure do not", "");
    if (v->refused && (v->plain.status == ONX_OK || v->fast.status == ONX_OK))
        say(v, "what the rule refuses runs", refusal);
    if ((v->plain.status != ONX_OK && !v->plain.why[0]) || (v->fast.status != ONX_OK && !v->fast.why[0]))
        say(v, "a failure without a message", onx_status_text(v->plain.status));
    if (!contradicted) {
        compare_types(infer, graph, &v->plain, v);
        compare_types(infer, graph, &v->fast, v);
    }
    compare_runs(cx, doc, operands, count, flags, v);
    onx_infer_free(infer);
}

void gen_verdict_free(gen_verdict *v)
{
    gen_run_free(&v->plain);
    gen_run_free(&v->fast);
}
