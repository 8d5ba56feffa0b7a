/* cli_plan.c - `onx show --plan`: prints the steps of a session's plan. */
#include "cli_plan.h"

#include "cli_inputs.h"

#include <stdlib.h>

typedef struct plan_totals {
    uint64_t steps, nodes, changes; /* changes: steps that convert a layout or a type */
    uint64_t by_rules, in_passing;  /* nodes that run as part of another step */
} plan_totals;

static void put_type(const onx_value *v)
{
    if (!v || v->kind != ONX_VALUE_TENSOR) {
        printf("%-24s", "-");
        return;
    }
    char text[300];
    size_t at = (size_t)snprintf(text, sizeof text, "%s[", onx_dtype_name((onx_dtype)v->dtype));
    for (uint32_t i = 0; i < v->rank && at + 24 < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? "," : "", (long long)v->dims[i]);
    snprintf(text + at, sizeof text - at, "]");
    printf("%-24s", text);
}

static void put_step(void *user, const onx_run_event *e)
{
    plan_totals *t = user;
    t->steps++;
    t->nodes += e->node_count;
    t->changes += !e->node;
    t->in_passing += e->post_ops;
    t->by_rules += e->rule_count ? e->node_count - e->post_ops : 0;
    printf("%6llu %6u  ", (unsigned long long)t->steps, e->node_count);
    cli_put_text(stdout, e->op_type);
    printf("%*s  %-9s %-8s ", e->op_type.len < 22 ? (int)(22 - e->op_type.len) : 0, "", e->variant,
           e->each_run   ? "each run"
           : e->measured ? "measured"
                         : "");
    put_type(e->output);
    printf("  ");
    cli_put_text(stdout, e->name);
    for (uint32_t i = 0; i < e->rule_count; i++)
        printf("%s%s", i ? ", " : "  by ", e->rules[i]);
    putchar('\n');
}

static void put_totals(const plan_totals *t, uint64_t all)
{
    printf("%llu nodes: %llu run in %llu steps", (unsigned long long)all, (unsigned long long)t->nodes,
           (unsigned long long)(t->steps - t->changes));
    if (t->by_rules)
        printf(", %llu of them as others by rules", (unsigned long long)t->by_rules);
    if (t->in_passing)
        printf(", %llu in passing", (unsigned long long)t->in_passing);
    if (t->nodes < all)
        printf("; %llu were computed, folded or left out before", (unsigned long long)(all - t->nodes));
    if (t->changes)
        printf("; %llu steps change a layout or a type", (unsigned long long)t->changes);
    putchar('\n');
}

static onx_status show(cli_call *call, onx_doc *doc, const onx_session_options *options, onx_run_options *run)
{
    onx_session *session = NULL;
    cli_inputs in = { 0 };
    onx_status status = onx_session_new(call->cx, doc, options, &session);
    if (status == ONX_OK)
        status = cli_inputs_read(call, doc, session, CLI_MAKE_UP, &in);
    const uint32_t count = session ? onx_session_output_count(session) : 0;
    onx_value **outputs = NULL;
    if (status == ONX_OK && !(outputs = calloc(count + 1u, sizeof *outputs)))
        status = ONX_E_MEMORY;
    if (status == ONX_OK) {
        plan_totals totals = { 0 };
        run->event = put_step;
        run->user = &totals;
        printf("%6s %6s  %-22s  %-9s %-8s %-24s  %s\n", "step", "nodes", "operator", "kernel", "", "first output",
               "node");
        status = onx_session_run_with(session, call->cx, (const onx_value *const *)in.values, outputs, run);
        if (status == ONX_OK)
            put_totals(&totals, onx_doc_model(doc)->graph->node_count);
    }
    for (uint32_t i = 0; outputs && i < count; i++)
        onx_value_free(outputs[i]);
    free(outputs);
    cli_inputs_free(&in);
    onx_session_free(session);
    return status;
}

int cli_show_plan(cli_call *call)
{
    uint64_t threads = 1;
    onx_session_options options;
    onx_run_options run;
    onx_doc *doc = NULL;
    if (!cli_run_options(call, &threads, &options, &run))
        return CLI_MISUSE;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status == ONX_OK)
        status = show(call, doc, &options, &run);
    onx_doc_free(doc);
    return cli_exit(call, status);
}
