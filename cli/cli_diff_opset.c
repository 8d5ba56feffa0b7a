/* cli_diff_opset.c - prints the differences between two operator-set documents, with the versioning rules that they
 * break. */
#include "cli_diff.h"

#include <onx/op.h>

#include <inttypes.h>

static onx_status say(void *user, const onx_opset_difference *difference)
{
    static const char marks[] = {
        [ONX_OPSET_ADDED] = '+', [ONX_OPSET_REMOVED] = '-', [ONX_OPSET_VERSION] = '~', [ONX_OPSET_EDITED] = '~'
    };
    cli_diff *d = user;
    onx_str a = onx_str_of(""), b = onx_str_of("");
    if (difference->change == ONX_OPSET_EDITED) {
        a = cli_diff_format(d, "other %s", difference->what);
    } else if (!difference->is_function) {
        if (difference->old_since)
            a = cli_diff_format(d, "version %" PRId64, difference->old_since);
        if (difference->new_since)
            b = cli_diff_format(d, "version %" PRId64, difference->new_since);
    }
    cli_diff_say(d, marks[difference->change], onx_str_of(difference->is_function ? "functions" : "operator"),
                 difference->name, a, b);
    return d->failure;
}

void cli_diff_operator_set(cli_diff *d, const onx_operator_set *a, const onx_operator_set *b)
{
    const onx_str where = onx_str_of("operator set");
    cli_diff_text(d, where, "magic", a->magic, b->magic);
    cli_diff_int(d, where, "ir_version", a->ir_version, b->ir_version);
    cli_diff_text(d, where, "domain", a->domain, b->domain);
    cli_diff_int(d, where, "opset_version", a->opset_version, b->opset_version);
    cli_diff_text(d, where, "doc_string", a->doc_string, b->doc_string);
    cli_diff_unknown(d, where, a->extra, b->extra);
    if (!onx_str_equal(onx_view(a->domain), onx_view(b->domain)))
        return; /* operators of different domains are unrelated */
    const onx_status status = onx_opset_compare(d->call->cx, d->a, d->b, say, d);
    if (d->failure == ONX_OK)
        d->failure = status;
}
