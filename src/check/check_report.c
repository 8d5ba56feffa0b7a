/* check_report.c - findings: created at a place, kept up to a limit, sorted by place, reported as diagnostics. */
#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const step_name[ONXI_STEP_COUNT] = {
    "",
#define STEP(name) #name,
#include "check/check_steps.def"
};

bool onxi_check_failed(onxi_check *k, const void *allocated)
{
    if (allocated)
        return false;
    if (k->status == ONX_OK)
        k->status = ONX_E_MEMORY;
    return true;
}

onx_str onxi_check_text(onxi_check *k, const char *format, ...)
{
    char *buf = k->scratch[k->scratch_at++ % 8];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buf, sizeof k->scratch[0], format, args);
    va_end(args);
    if (n < 0)
        n = 0;
    return onx_str_make(buf, (size_t)n < sizeof k->scratch[0] ? (size_t)n : sizeof k->scratch[0] - 1);
}

onx_str onxi_check_number(onxi_check *k, int64_t value)
{
    return onxi_check_text(k, "%lld", (long long)value);
}

const char *onxi_check_quote(onxi_check *k, onx_str s)
{
    char *buf = k->scratch[k->scratch_at++ % 8];
    onxi_path_quote(buf, sizeof k->scratch[0], s);
    return buf;
}

/* ---- spelling suggestions ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Levenshtein distance in which a change of case costs little; only short strings are compared. */
bool onxi_check_similar(onx_str wrong, onx_str candidate, uint32_t *distance)
{
    enum { MOST = 48 };
    uint32_t row[MOST + 1];
    if (!wrong.len || !candidate.len || wrong.len > MOST || candidate.len > MOST || onx_str_equal(wrong, candidate))
        return false;
    size_t gap = wrong.len > candidate.len ? wrong.len - candidate.len : candidate.len - wrong.len;
    if (gap > 2)
        return false;
    for (size_t j = 0; j <= candidate.len; j++)
        row[j] = (uint32_t)j;
    for (size_t i = 1; i <= wrong.len; i++) {
        uint32_t corner = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= candidate.len; j++) {
            uint32_t change = corner + (lower(wrong.ptr[i - 1]) != lower(candidate.ptr[j - 1]));
            corner = row[j];
            uint32_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    uint32_t d = row[candidate.len], most = wrong.len < 4 ? 1 : 2;
    if (d > most || d >= wrong.len)
        return false;
    *distance = d;
    return true;
}

/* ---- rules ---- */

static uint32_t rule_index(const char *id)
{
    onx_str s = onx_str_of(id);
    for (const onxi_check_rule_group *g = onxi_check_rule_groups; g->prefix; g++) {
        size_t n = strlen(g->prefix);
        if (s.len == n + 3 && memcmp(id, g->prefix, n) == 0 && id[n] == '-') {
            uint32_t number = (uint32_t)(id[n + 1] - '0') * 10 + (uint32_t)(id[n + 2] - '0');
            if (number >= 1 && number <= g->count)
                return g->first + number - 1;
        }
    }
    return UINT32_MAX;
}

bool onxi_check_wants(const onxi_check *k, const char *rule)
{
    uint32_t i = rule_index(rule);
    if (i == UINT32_MAX || (k->off[i / 64] >> (i % 64) & 1))
        return false;
    onx_rule_severity severity = onx_rule_get(i)->severity;
    return k->quick ? severity == ONX_RULE_ERROR : severity != ONX_RULE_NOTE || k->notes;
}

/* ---- places ---- */

static void label(char *buf, size_t room, size_t *n, const onxi_check_at *at)
{
    char text[ONXI_LABEL_MAX];
    size_t len = at->message ? onxi_path_label(text, at->kind, at->message) : 0;
    if (len > room - *n - 1)
        len = room - *n - 1;
    memcpy(buf + *n, text, len);
    buf[ *n += len] = 0;
}

static onx_str path_of(onxi_check *k, const onxi_check_at *at)
{
    enum { MOST = 64 };
    const onxi_check_at *chain[MOST];
    uint32_t count = 0, skipped = 0;
    for (const onxi_check_at *a = at; a; a = a->up) {
        if (a->step == ONXI_STEP_ROOT)
            continue;
        if (count == MOST) { /* keep both ends of a very deep place */
            memmove(chain + MOST / 2, chain + MOST / 2 + 1, (MOST / 2 - 1) * sizeof *chain);
            count--;
            skipped++;
        }
        chain[count++] = a;
    }
    char buf[4096];
    size_t n = 0;
    if (!count)
        n = (size_t)snprintf(buf, sizeof buf, "%s", k->model ? "model" : onx_kind_proto_name(onx_doc_kind(k->doc)));
    for (uint32_t i = count; i-- > 0;) {
        if (n + 64 > sizeof buf)
            break;
        if (skipped && i == MOST / 2 - 1)
            n += (size_t)snprintf(buf + n, sizeof buf - n, ".(%u more)", skipped);
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%s", n ? "." : "", step_name[chain[i]->step]);
        if (chain[i]->index != ONXI_NO_INDEX)
            n += (size_t)snprintf(buf + n, sizeof buf - n, "[%u]", chain[i]->index);
        label(buf, sizeof buf, &n, chain[i]);
    }
    onx_bytes kept;
    if (onx_arena_keep(k->arena, onx_str_make(buf, n), &kept) != ONX_OK) {
        onxi_check_failed(k, NULL);
        return onx_str_make(NULL, 0);
    }
    return onx_view(kept);
}

const onxi_check_at *onxi_check_at_keep(onxi_check *k, const onxi_check_at *at)
{
    onxi_check_at *first = NULL, **link = &first;
    for (; at; at = at->up) {
        onxi_check_at *copy = ONXI_NEW(k->arena, onxi_check_at);
        if (onxi_check_failed(k, copy))
            return NULL;
        *copy = *at;
        copy->up = NULL;
        *link = copy;
        link = (onxi_check_at **)(uintptr_t)&copy->up;
    }
    return first;
}

/* ---- findings ---- */

static onx_str keep(onxi_check *k, onx_str s)
{
    onx_bytes out;
    if (!s.len)
        return onx_str_make(NULL, 0);
    if (onx_arena_keep(k->arena, s, &out) != ONX_OK) {
        onxi_check_failed(k, NULL);
        return onx_str_make(NULL, 0);
    }
    return onx_view(out);
}

/* Groups of rules whose errors leave values without types, or with wrong types. */
static bool breaks_inference(const onx_rule *rule)
{
    static const char *const groups[] = { "M-", "O-", "G-", "N-", "ND-", "A-", "F-", "S-", "TY-", "T-", "SP-" };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strncmp(rule->id, groups[i], strlen(groups[i])) == 0)
            return true;
    return false;
}

static int compare_keys(const uint64_t *a, uint32_t a_count, const uint64_t *b, uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count && i < b_count; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return a_count < b_count ? -1 : a_count > b_count;
}

/* The place as a sortable sequence of numbers, `depth` of them. */
static uint32_t depth_of(const onxi_check_at *at)
{
    uint32_t depth = 0;
    for (const onxi_check_at *a = at; a; a = a->up)
        depth += a->step != ONXI_STEP_ROOT;
    return depth;
}

static void make_key(const onxi_check_at *at, uint32_t depth, uint64_t *key)
{
    for (const onxi_check_at *a = at; a; a = a->up)
        if (a->step != ONXI_STEP_ROOT)
            key[--depth] = (uint64_t)a->step << 32 | (a->index == ONXI_NO_INDEX ? 0 : (uint64_t)a->index + 1);
}

static int compare(const void *left, const void *right)
{
    const onxi_check_finding *a = *(onxi_check_finding *const *)left, *b = *(onxi_check_finding *const *)right;
    int order = compare_keys(a->key, a->key_count, b->key, b->key_count);
    return order ? order : a->order < b->order ? -1 : a->order > b->order;
}

/* Keeps the first max_errors findings by place. */
static void cut_findings(onxi_check *k, onx_severity severity)
{
    uint32_t n = 0, count = k->kept[severity];
    onxi_check_finding **all = onxi_resize(k->cx, NULL, 0, count * sizeof *all);
    if (onxi_check_failed(k, all))
        return;
    for (onxi_check_finding *f = k->findings[severity]; f; f = f->next)
        all[n++] = f;
    qsort(all, n, sizeof *all, compare);
    k->findings[severity] = NULL;
    for (uint32_t i = k->max_errors; i-- > 0;) {
        all[i]->next = k->findings[severity];
        k->findings[severity] = all[i];
    }
    k->cut[severity] = all[k->max_errors - 1];
    k->kept[severity] = k->max_errors;
    onxi_release(k->cx, all, count * sizeof *all);
}

const onxi_check_at onxi_check_no_place = { NULL, ONXI_STEP_ROOT, ONXI_NO_INDEX, ONX_KIND_NONE, NULL };

void onxi_check_find(onxi_check *k, const onxi_check_at *at, const char *rule_id, onxi_check_detail detail,
                     const char *format, ...)
{
    uint32_t i = rule_index(rule_id);
    if (i == UINT32_MAX)
        return;
    const onx_rule *rule = onx_rule_get(i);
    onx_rule_severity level = detail.severity ? detail.severity : rule->severity;
    if (level == ONX_RULE_NONE || (k->off[i / 64] >> (i % 64) & 1))
        return;
    if (level == ONX_RULE_NOTE && !k->notes)
        return;
    const bool mild = detail.one_meaning && (k->flags & ONX_CHECK_ONE_MEANING) && !(k->flags & ONX_CHECK_STRICT);
    if (mild)
        level = ONX_RULE_WARNING;
    if (level == ONX_RULE_WARNING && (k->flags & ONX_CHECK_STRICT) && rule->level == ONX_MUST)
        level = ONX_RULE_ERROR;
    if (k->quick && level != ONX_RULE_ERROR && !mild)
        return;
    onx_severity severity = level == ONX_RULE_ERROR ? ONX_ERROR : level == ONX_RULE_WARNING ? ONX_WARNING : ONX_NOTE;
    k->total[severity]++;
    if (severity == ONX_ERROR && breaks_inference(rule))
        k->broken = true;
    if (at == &onxi_check_no_place || (mild && !detail.severity && (k->mild[i / 64] >> (i % 64) & 1)))
        return;
    if (mild)
        k->mild[i / 64] |= (uint64_t)1 << (i % 64);
    uint64_t few[64], *key = few;
    uint32_t depth = depth_of(at);
    if (depth > sizeof few / sizeof *few && onxi_check_failed(k, key = ONXI_ARRAY(k->arena, uint64_t, depth)))
        return;
    make_key(at, depth, key);
    const onxi_check_finding *cut = k->cut[severity];
    if (cut && compare_keys(key, depth, cut->key, cut->key_count) >= 0)
        return;
    onxi_check_finding *f = ONXI_NEW(k->arena, onxi_check_finding);
    if (onxi_check_failed(k, f))
        return;
    if (key == few && depth) {
        uint64_t *own = ONXI_ARRAY(k->arena, uint64_t, depth);
        if (onxi_check_failed(k, own))
            return;
        memcpy(own, few, depth * sizeof *own);
        key = own;
    }
    char message[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (n < 0)
        n = 0;
    if ((size_t)n >= sizeof message)
        n = sizeof message - 1;
    *f = (onxi_check_finding){ .next = k->findings[severity],
                               .rule = rule,
                               .severity = severity,
                               .key_count = depth,
                               .key = key,
                               .order = k->arrivals++,
                               .path = path_of(k, at),
                               .message = keep(k, onx_str_make(message, (size_t)n)),
                               .value = keep(k, detail.value),
                               .expected = keep(k, detail.expected),
                               .hint = keep(k, detail.hint) };
    k->findings[severity] = f;
    if (++k->kept[severity] / 2 >= k->max_errors)
        cut_findings(k, severity);
}

onx_status onxi_check_findings_report(onxi_check *k)
{
    for (int severity = ONX_NOTE; severity <= ONX_ERROR; severity++)
        if (k->kept[severity] > k->max_errors)
            cut_findings(k, (onx_severity)severity);
    size_t count = (size_t)k->kept[0] + k->kept[1] + k->kept[2], n = 0;
    if (!count)
        return k->status;
    onxi_check_finding **all = ONXI_ARRAY(k->arena, onxi_check_finding *, count);
    if (!all)
        return ONX_E_MEMORY;
    for (int severity = ONX_NOTE; severity <= ONX_ERROR; severity++)
        for (onxi_check_finding *f = k->findings[severity]; f; f = f->next)
            all[n++] = f;
    qsort(all, n, sizeof *all, compare);
    for (size_t i = 0; i < n; i++) {
        const onxi_check_finding *f = all[i];
        onx_diag diag = { .severity = f->severity,
                          .status = f->severity == ONX_ERROR ? ONX_E_INVALID : ONX_OK,
                          .rule = f->rule->id,
                          .where = ONXI_AT_PATH(f->path),
                          .value = f->value,
                          .expected = f->expected,
                          .hint = f->hint };
        onxi_report(k->cx, &diag, "%.*s", ONX_ARG(f->message));
    }
    return ONX_OK;
}

/* ---- findings from other layers ---- */

static onxi_check_step step_of(onx_str name)
{
    for (int i = 1; i < ONXI_STEP_COUNT; i++)
        if (onx_str_is(name, step_name[i]))
            return (onxi_check_step)i;
    return ONXI_STEP_ROOT;
}

/* Parses graph.node[3] "conv1" (Conv).attribute[0] back into frames, so that findings can be sorted by place. */
static const onxi_check_at *parse_path(onxi_check *k, onx_str path)
{
    const onxi_check_at *up = NULL;
    onxi_path_cursor c = onxi_path_begin(k->doc->kind, k->doc->root, path);
    while (onxi_path_next(&c) && c.field) {
        onxi_check_step step = step_of(onx_str_of(c.field->name));
        if (step == ONXI_STEP_ROOT)
            break;
        onxi_check_at *at = ONXI_NEW(k->arena, onxi_check_at);
        if (onxi_check_failed(k, at))
            return up;
        *at = (onxi_check_at){ up, step, c.index, ONX_KIND_NONE, NULL };
        up = at;
    }
    return up;
}

/* Inside a branch of an If, an invalid node only means that this branch must not be taken. */
static bool is_conditional(onx_str path)
{
    return path.len && (memmem(path.ptr, path.len, "then_branch", 11) || memmem(path.ptr, path.len, "else_branch", 11));
}

/* Was the finding implied by an earlier error: one at the same node, one in the called function if the place is inside
 * a call, or one of the same rule if the place is not a node? */
static bool is_said(const onxi_check *k, const onx_diag *d, const onxi_check_at *at, uint64_t arrivals)
{
    uint64_t key[64];
    uint32_t depth = depth_of(at);
    bool node = at && at->step == ONXI_STEP_node,
         call = d->where.path.len && memmem(d->where.path.ptr, d->where.path.len, " function ", 10);
    if (depth > sizeof key / sizeof *key)
        return false;
    make_key(at, depth, key);
    for (const onxi_check_finding *f = k->findings[ONX_ERROR]; f; f = f->next) {
        if (f->order >= arrivals)
            continue;
        if (node && f->key_count >= depth && compare_keys(key, depth, f->key, depth) == 0)
            return true;
        if (call && f->key_count && f->key[0] >> 32 == ONXI_STEP_functions)
            return true;
        if (!node && d->rule && strcmp(f->rule->id, d->rule) == 0)
            return true;
    }
    return false;
}

static bool is_cast(const onxi_check *k, onx_str path)
{
    const onx_node *node = NULL;
    onxi_path_cursor c = onxi_path_begin(k->doc->kind, k->doc->root, path);
    while (onxi_path_next(&c) && c.field)
        node = c.message && c.table->kind == ONX_KIND_NODE ? c.message : node;
    return node && onxi_node_is(node, ONXI_ID_Cast);
}

uint32_t onxi_check_adopt(onxi_check *k, onxi_diag_mark mark, const onxi_check_at *at, const char *rule)
{
    size_t count = onx_diag_count(k->cx);
    uint64_t arrivals = k->arrivals;
    uint32_t said = 0;
    for (size_t i = mark.count; i < count; i++) {
        const onx_diag *d = onx_diag_get(k->cx, i);
        if (d->status == ONX_E_MEMORY) {
            onxi_check_failed(k, NULL);
            continue;
        }
        onx_rule_severity severity = d->severity == ONX_ERROR     ? ONX_RULE_ERROR
                                     : d->severity == ONX_WARNING ? ONX_RULE_WARNING
                                                                  : ONX_RULE_NOTE;
        const char *broken = d->rule ? d->rule : rule;
        bool conditional = strcmp(broken, "ND-20") == 0 && is_conditional(d->where.path);
        /* Old exporters gave Constant-1 and others types that only later versions allow; the meaning is clear. A Cast
         * says itself which type it is to give. */
        bool output = strcmp(broken, "ND-16") == 0 && d->message.len > 7 && memcmp(d->message.ptr, "output ", 7) == 0 &&
                      !is_cast(k, d->where.path);
        if (severity == ONX_RULE_ERROR && (conditional || output))
            severity = ONX_RULE_WARNING;
        uint64_t before = k->arrivals;
        const onxi_check_at *place = at ? at : parse_path(k, d->where.path);
        if (!at && is_said(k, d, place, arrivals)) {
            said++;
            continue;
        }
        onxi_check_find(
            k, place, broken,
            (onxi_check_detail){ .value = d->value, .expected = d->expected, .hint = d->hint, .severity = severity },
            "%.*s", ONX_ARG(d->message));
        for (int s = ONX_NOTE; s <= ONX_ERROR && !at && d->where.path.len; s++)
            if (k->findings[s] && k->findings[s]->order >= before)
                k->findings[s]->path = keep(k, d->where.path); /* keeps the labels of the path */
    }
    onxi_diag_rewind(k->cx, mark);
    return said;
}
