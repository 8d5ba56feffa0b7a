/* regex.c - RegexFullMatch. The standard asks for the syntax of RE2. */
#include "kernel/core/pattern.h"

typedef struct regex {
    onxi_regex *pattern;
} regex;

static onx_status regex_prepare(onx_prepare *p)
{
    regex *q = ONXI_NEW(p->arena, regex);
    if (!q)
        return ONX_E_MEMORY;
    p->params = q;
    if (!onx_prepare_given(p, "pattern"))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute pattern has 0 bytes, expected some");
    if (p->inputs[0]->dtype != ONX_STRING || p->outputs[0]->count != p->inputs[0]->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "input 0 is not a tensor of strings");
    ONX_TRY(onxi_pattern_new(p, "pattern", onx_prepare_text(p, "pattern"), &q->pattern));
    p->rows = p->inputs[0]->count ? 1 : 0;
    return ONX_OK;
}

static void regex_release(void *params)
{
    regex *q = params;
    if (q)
        onxi_regex_free(q->pattern);
}

/* The longest match is the whole string, or nothing is. */
static onx_status regex_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const regex *q = work->params;
    onxi_matcher *matcher = NULL;
    onx_status status = ONX_OK;
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < work->inputs[0]->count && status == ONX_OK && !onxi_pace_stops(&pace, 500); i++) {
        const onx_str s = ((const onx_str *)work->inputs[0]->data)[i];
        size_t start, end = 0;
        bool found = false;
        status = onxi_pattern_find(work, q->pattern, &matcher, s, i, 0, true, &start, &end, &found);
        ((uint8_t *)work->outputs[0]->data)[i] = found && end == s.len;
    }
    onxi_matcher_free(matcher);
    return status;
}

const onx_kernel onxi_kernels_text_regex[] = {
    { .op = "RegexFullMatch", .since = 20, .prepare = regex_prepare, .run = regex_run, .release = regex_release }, { 0 }
};
