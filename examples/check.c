/* Checks a model and shows what a program can do with the findings: check MODEL */
#include <onx/onx.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    onx_check_summary summary = { 0 };
    const onx_check_options options = { .struct_size = sizeof options, .flags = ONX_CHECK_FULL };
    if (argc < 2 || !cx)
        return 2;
    onx_status status = onx_load(cx, ONX_KIND_MODEL, argv[1], NULL, &doc);
    if (status == ONX_OK)
        status = onx_check(cx, doc, &options, &summary);
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        const onx_diag *d = onx_diag_get(cx, i);
        /* The rule gives the requirement and its source; the diagnostic gives the place that violates it. */
        const onx_rule *rule = d->rule ? onx_rule_find(onx_str_of(d->rule)) : NULL;
        printf("%s %.*s: %.*s\n", d->rule ? d->rule : onx_status_text(d->status), ONX_ARG(d->where.path),
               ONX_ARG(d->message));
        if (rule)
            printf("  %s (%s)\n", rule->text, rule->source);
    }
    printf("%zu errors, %zu warnings\n", summary.errors, summary.warnings);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return status == ONX_OK ? 0 : 1;
}
