/* gen_rows.c - runs with other kernel rows than the first ones, chosen through a table of measured rows. */
#include "gen/gen.h"

#include "run/run_choice.h"

#include <string.h>

/* What the plans of a session had to choose, for a table of another session of the model. */
static uint32_t note_turn(const onx_session *from, uint32_t turn, onx_session *to)
{
    onxi_run_choices *table = to->s.choices;
    uint32_t noted = 0;
    const onxi_run_plan *plan = (const onxi_run_plan *)from->s.main->plans.first;
    for (; plan; plan = (const onxi_run_plan *)plan->kept.next)
        for (uint32_t i = 0; i < plan->chosen_count; i++) {
            const onxi_run_chosen *c = &plan->chosen[i];
            /* neighbours get rows of different places */
            const uint32_t row = (turn + i) % c->count;
            if (onxi_run_choices_put(table, c->key, onxi_run_row_digest(c->rows, row)))
                noted = noted > c->count ? noted : c->count;
        }
    table->left_ns = 0; /* nothing is measured */
    return noted;
}

static onx_status make_session(onx_ctx *cx, onx_doc *doc, unsigned threads, onx_session **out)
{
    const onx_session_options options = {
        .struct_size = sizeof options, .threads = threads, .memory = 64 << 20, .measure = true
    };
    return onx_session_new(cx, doc, &options, out);
}

uint32_t gen_run_rows(onx_ctx *cx, onx_doc *doc, const gen_operand *operands, uint32_t count, uint32_t turn,
                      unsigned threads, gen_run *run)
{
    onx_session *first = NULL, *other = NULL;
    gen_run fixed;
    uint32_t rows = 0;
    memset(run, 0, sizeof *run);
    if (make_session(cx, doc, threads, &first) == ONX_OK) {
        first->s.choices->left_ns = 0;
        gen_run_session(cx, first, operands, count, &fixed);
        if (fixed.status == ONX_OK && make_session(cx, doc, threads, &other) == ONX_OK)
            rows = note_turn(first, turn, other);
        gen_run_free(&fixed);
    }
    if (rows)
        gen_run_session(cx, other, operands, count, run);
    onx_session_free(other);
    onx_session_free(first);
    onx_diag_clear(cx);
    return rows;
}
