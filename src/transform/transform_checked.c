/* transform_checked.c - every public function that changes or makes a model checks it before and after: a model that
 * was valid stays valid, or the call fails with the place and the reason. */
#include "check/check.h"
#include "transform/transform.h"

#include <onx/check.h>

#include <stdio.h>

/* ---- how much of the rules a model follows ---- */

/* From strict to lenient; the result has to pass what the model passed. A model may lack types and shapes that
 * inference needs, or contain operators that a rule refuses, and still be changed. Operator sets newer than the newest
 * known are allowed at every level, and named when the model is first seen. */
enum { OPEN = ONX_CHECK_OPEN_SHAPES };
static const uint32_t levels[] = { ONX_CHECK_FULL, ONX_CHECK_FULL | OPEN, ONX_CHECK_FULL | OPEN | ONX_CHECK_ONE_MEANING,
                                   OPEN, OPEN | ONX_CHECK_ONE_MEANING };
enum { LEVELS = sizeof levels / sizeof *levels };

typedef struct finding {
    bool found, told;
    const char *rule;
    char path[512], message[768], hint[256];
} finding;

static void keep(char *to, size_t size, onx_str text)
{
    (void)snprintf(to, size, "%.*s", ONX_ARG(text));
}

/* The first error, before all diagnostics of the check are taken back. Passes refuse cycles themselves, or name them
 * (onxi_doc_warn_of_cycle). */
static void note(const onx_ctx *cx, size_t from, finding *out)
{
    out->found = true;
    for (size_t i = from; i < onx_diag_count(cx); i++) {
        const onx_diag *diag = onx_diag_get(cx, i);
        if (diag->severity != ONX_ERROR || (diag->rule && strcmp(diag->rule, "G-02") == 0))
            continue;
        out->told = true;
        out->rule = diag->rule;
        keep(out->path, sizeof out->path, diag->where.path);
        keep(out->message, sizeof out->message, diag->message);
        keep(out->hint, sizeof out->hint, diag->hint);
        return;
    }
}

/* ONX_E_INVALID: an error was found; the first one is noted if nothing was before. */
static onx_status check_at(onx_ctx *cx, onx_doc *doc, uint32_t flags, finding *first)
{
    const onx_check_options options = { .struct_size = sizeof options,
                                        .flags = flags | ONX_CHECK_STRUCTURE | ONX_CHECK_NEWER_OPSETS };
    const onxi_diag_mark mark = onxi_diag_here(cx);
    const onx_status status = onx_check(cx, doc, &options, NULL);
    if (status == ONX_E_INVALID && !first->found)
        note(cx, mark.count, first);
    if (status == ONX_OK || status == ONX_E_INVALID || status == ONX_E_LIMIT)
        onxi_diag_rewind(cx, mark);
    return status;
}

static void report(onx_ctx *cx, bool fails, const finding *first, const char *what)
{
    const onx_diag diag = { .severity = fails ? ONX_ERROR : ONX_WARNING,
                            .status = fails ? ONX_E_UNSUPPORTED : ONX_OK,
                            .rule = first->rule,
                            .where = first->path[0] ? ONXI_AT_PATH(onx_str_of(first->path)) : ONXI_NOWHERE,
                            .hint = onx_str_of(first->hint) };
    onxi_report(cx, &diag, "%s: %s", what, first->message[0] ? first->message : "it breaks a rule of ONNX");
}

/* ---- what a model says of itself ---- */

/* Checks by the level. If an error is found, once more without the declared types that the model, or those it is made
 * of, did not prove: such errors are no one's but of these declarations, and *claims_out is true. */
static onx_status check_level(onxi_checked *c, onx_doc *doc, uint32_t level, finding *first, bool *claims_out)
{
    finding none = { .found = true };
    *claims_out = false;
    onx_status status = check_at(c->cx, doc, levels[level], first);
    if (status != ONX_E_INVALID || !(levels[level] & ONX_CHECK_FULL))
        return status;
    status = check_at(c->cx, doc, levels[level] & ~(uint32_t)ONX_CHECK_FULL, &none);
    if (status != ONX_OK)
        return status;
    status = onxi_claims_hide(c->claims, doc);
    if (status == ONX_OK)
        status = check_at(c->cx, doc, levels[level] | OPEN | ONX_CHECK_ONE_MEANING, &none);
    onxi_claims_show(c->claims);
    *claims_out = status == ONX_OK;
    return status;
}

/* ---- before and after ---- */

/* Does the model follow the rules but for its declarations, which may be wrong? Then one inference, that of what is
 * proven, is enough before the transform. */
static onx_status note_claims(onxi_checked *c, onx_doc *doc, bool *sound)
{
    finding none = { .found = true };
    ONX_TRY(onxi_claims_note(c->claims, doc, sound));
    const onx_status status = *sound ? check_at(c->cx, doc, levels[0] & ~(uint32_t)ONX_CHECK_FULL, &none) : ONX_OK;
    *sound &= status == ONX_OK;
    return status == ONX_E_INVALID || status == ONX_E_LIMIT ? ONX_OK : status;
}

onx_status onxi_checked_also(onxi_checked *c, onx_doc *doc)
{
    finding first = { 0 };
    uint32_t level = 0;
    bool claims = false, sound = false;
    if (c->on)
        onxi_check_warn_of_newer(c->cx, onx_doc_model(doc), "are judged");
    if (c->on && !c->claims)
        ONX_TRY(onxi_claims_new(c->cx, &c->claims));
    if (c->on)
        ONX_TRY(note_claims(c, doc, &sound));
    for (; c->on && !sound && level < LEVELS; level++) {
        const onx_status status = check_level(c, doc, level, &first, &claims);
        if (status == ONX_E_LIMIT) {
            c->on = false;
            return ONX_OK;
        }
        if (status != ONX_OK && status != ONX_E_INVALID)
            return status;
        if (status == ONX_OK)
            break;
    }
    if (first.told)
        report(c->cx, false, &first,
               claims           ? "declared types are wrong, and are left as they are"
               : level < LEVELS ? "the model is invalid already"
                                : "the model is invalid already, so that the result is not checked");
    c->claims_told |= claims;
    c->level = level > c->level ? level : c->level;
    c->on &= level < LEVELS;
    return ONX_OK;
}

onx_status onxi_checked_begin(onxi_checked *c, onx_ctx *cx, onx_doc *doc)
{
    /* the outermost call checks the final result */
    *c = (onxi_checked){ .cx = cx, .on = onxi_call_depth(cx) == 1 && onx_doc_model(doc) };
    return onxi_checked_also(c, doc);
}

onx_status onxi_checked_end(onxi_checked *c, onx_doc *const *docs, uint32_t count, bool may_fail, onx_status status)
{
    for (uint32_t i = 0; c->on && status == ONX_OK && i < count; i++) {
        finding first = { 0 };
        bool claims = false;
        const onx_status found = docs[i] ? check_level(c, docs[i], c->level, &first, &claims) : ONX_OK;
        if (claims && !c->claims_told)
            report(c->cx, false, &first, "declared types are wrong, and are left as they are");
        if (found == ONX_E_INVALID)
            report(c->cx, !may_fail, &first, may_fail ? "the result is invalid" : "the result would be invalid");
        if (found == ONX_E_INVALID && !may_fail)
            status = ONX_E_UNSUPPORTED;
        else if (found != ONX_E_INVALID && found != ONX_E_LIMIT)
            status = found;
        c->claims_told |= claims;
    }
    onxi_claims_free(c->claims);
    c->claims = NULL;
    return status;
}
