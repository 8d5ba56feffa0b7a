/* compare.c - differences between two operator-set documents of one domain, and the versioning rules that they break
 * (OS-06, OS-10, OS-11, OS-15). */
#include "op/registry/registry.h"

#include <stdio.h>

typedef struct comparison {
    onx_ctx *cx;
    const onx_operator_set *older, *newer;
    bool later; /* the second document has a later version, so versioning rules apply */
    onx_status (*found)(void *user, const onx_opset_difference *difference);
    void *user;
} comparison;

/* Items with the same name and kind. */
typedef struct group {
    const onxi_opset_item *items; /* newest version first; NULL: none */
    size_t count;
} group;

static group next_group(const onxi_opset_item *list, size_t count, size_t *at)
{
    group g = { 0 };
    if (*at < count) {
        g.items = &list[*at];
        while (*at + g.count < count && list[*at + g.count].is_function == g.items->is_function &&
               onx_str_equal(list[*at + g.count].name, g.items->name))
            g.count++;
        *at += g.count;
    }
    return g;
}

static int order(const onxi_opset_item *a, const onxi_opset_item *b)
{
    const int names = onxi_str_order(a->name, b->name);
    return names ? names : a->is_function - b->is_function;
}

/* Reports a difference to the caller, and the rule that it breaks, if any, with the message `problem`. */
static onx_status tell(const comparison *c, const onxi_opset_item *item, onx_opset_difference d, const char *problem)
{
    d.name = item->name;
    d.is_function = item->is_function;
    if (!c->later)
        d.rule = NULL;
    if (d.rule) {
        char path[64];
        snprintf(path, sizeof path, "%s[%u]", item->is_function ? "functions" : "operator", item->index);
        onxi_opset_report(c->cx, d.rule, ONX_WARNING, path, item->name, "%s (older set %lld, newer set %lld)", problem,
                          (long long)c->older->opset_version, (long long)c->newer->opset_version);
    }
    return c->found ? c->found(c->user, &d) : ONX_OK;
}

static onx_status tell_added(const comparison *c, const onxi_opset_item *item)
{
    onx_opset_difference d = { .change = ONX_OPSET_ADDED, .new_since = item->since };
    if (!item->is_function && item->since <= c->older->opset_version)
        d.rule = "OS-10";
    return tell(c, item, d, "the operator is new, but its since_version is not later than the older set");
}

static onx_status tell_removed(const comparison *c, const onxi_opset_item *item)
{
    const onx_opset_difference d = { .change = ONX_OPSET_REMOVED, .old_since = item->since };
    return tell(c, item, d, "");
}

/* The interface as onx_opset_export writes it: the text after the first empty line of the description. */
static onx_str interface_of(onx_str doc)
{
    for (size_t i = 0; i + 1 < doc.len; i++)
        if (doc.ptr[i] == '\n' && doc.ptr[i + 1] == '\n')
            return onx_str_make(doc.ptr + i + 2, doc.len - i - 2);
    return onx_str_make("", 0);
}

static onx_status compare_operators(const comparison *c, const group *old, const group *now)
{
    const onxi_opset_item *item = now->items;
    const onx_operator *a = c->older->operator_[old->items->index], *b = c->newer->operator_[item->index];
    const onx_str old_doc = onx_view(a->doc_string), doc = onx_view(b->doc_string);
    const bool same_status = a->status == b->status, same_doc = onx_str_equal(old_doc, doc);
    const bool stable = a->status == 1 && ONX_HAS(operator, a, status);
    onx_opset_difference d = { .old_since = old->items->since, .new_since = item->since };
    if (d.old_since != d.new_since) {
        d.change = ONX_OPSET_VERSION;
        if (d.new_since <= c->older->opset_version) {
            d.rule = "OS-10";
            return tell(c, item, d, "the operator has a new since_version that is not later than the older set");
        }
        if (same_status && same_doc && doc.len)
            d.rule = "OS-10";
        return tell(c, item, d, "since_version was raised, but the operator is described as before");
    }
    d.change = ONX_OPSET_EDITED;
    if (!same_status) {
        d.what = "status";
        d.rule = stable ? "OS-11" : NULL;
        ONX_TRY(tell(c, item, d, "a stable operator became experimental without a new version"));
    }
    if (!same_doc) {
        const bool same_interface = onx_str_equal(interface_of(old_doc), interface_of(doc));
        d.what = same_interface ? "description" : "interface";
        d.rule = same_interface ? NULL : stable ? "OS-11" : "OS-15";
        ONX_TRY(tell(c, item, d, "the interface of the operator changed without a new version"));
    }
    return ONX_OK;
}

/* Functions have no version of their own: the operator of the same name has their version. */
static onx_status compare_functions(const comparison *c, const group *old, const group *now, bool same_version)
{
    for (size_t i = 0, j = 0; i < now->count || j < old->count;) { /* overloads in order of name */
        const onxi_opset_item *item = &now->items[i], *before = &old->items[j];
        const int which = i == now->count ? -1 : j == old->count ? 1 : onxi_str_order(before->overload, item->overload);
        i += which >= 0;
        j += which <= 0;
        if (which > 0) {
            ONX_TRY(tell_added(c, item));
            continue;
        }
        if (which < 0) {
            ONX_TRY(tell_removed(c, before));
            continue;
        }
        if (onx_message_equal(ONX_KIND_FUNCTION, c->older->functions[before->index], c->newer->functions[item->index]))
            continue;
        const onx_opset_difference d = { .change = ONX_OPSET_EDITED,
                                         .what = "body",
                                         .rule = same_version ? "OS-15" : NULL };
        ONX_TRY(tell(c, item, d, "the function changed, but the operator of its name has the same version"));
    }
    return ONX_OK;
}

static onx_status compare_lists(const comparison *c, const onxi_opset_item *old, size_t old_count,
                                const onxi_opset_item *now, size_t count)
{
    const onxi_opset_item *same_version = NULL; /* the operator that both documents have in the same version */
    for (size_t i = 0, j = 0; i < old_count || j < count;) {
        const int which = i == old_count ? 1 : j == count ? -1 : order(&old[i], &now[j]);
        const group a = which <= 0 ? next_group(old, old_count, &i) : (group){ 0 };
        const group b = which >= 0 ? next_group(now, count, &j) : (group){ 0 };
        if (!a.items) {
            ONX_TRY(tell_added(c, b.items));
        } else if (!b.items) {
            ONX_TRY(tell_removed(c, a.items));
        } else if (b.items->is_function) {
            const bool same = same_version && onx_str_equal(same_version->name, b.items->name);
            ONX_TRY(compare_functions(c, &a, &b, same));
        } else {
            ONX_TRY(compare_operators(c, &a, &b));
            same_version = a.items->since == b.items->since ? b.items : NULL;
        }
    }
    return ONX_OK;
}

/* Records that there was a difference, for OS-06. */
typedef struct counter {
    const comparison *next;
    size_t count;
} counter;

static onx_status count_difference(void *user, const onx_opset_difference *difference)
{
    counter *differences = user;
    differences->count++;
    return differences->next->found ? differences->next->found(differences->next->user, difference) : ONX_OK;
}

static onx_status compare_sets(const comparison *c)
{
    onxi_opset_item *old, *now;
    size_t old_count, count;
    ONX_TRY(onxi_opset_list(c->cx, c->older, &old, &old_count));
    onx_status status = onxi_opset_list(c->cx, c->newer, &now, &count);
    if (status == ONX_OK) {
        status = compare_lists(c, old, old_count, now, count);
        onxi_release(c->cx, now, (count + 1) * sizeof *now);
    }
    onxi_release(c->cx, old, (old_count + 1) * sizeof *old);
    return status;
}

onx_status onx_opset_compare(onx_ctx *cx, const onx_doc *older, const onx_doc *newer,
                             onx_status (*found)(void *user, const onx_opset_difference *difference), void *user)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, older);
    ONXI_NEED(cx, newer);
    comparison c = { .cx = cx,
                     .older = onx_doc_root(older, ONX_KIND_OPERATOR_SET),
                     .newer = onx_doc_root(newer, ONX_KIND_OPERATOR_SET),
                     .found = found,
                     .user = user };
    if (!c.older || !c.newer)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "only operator sets can be compared");
    const onx_str domain = onxi_domain_plain(onx_view(c.older->domain));
    if (!onx_str_equal(domain, onxi_domain_plain(onx_view(c.newer->domain))))
        return onxi_fail(cx, ONX_E_INVALID, ONXI_AT_PATH(onx_str_of("domain")),
                         "the sets are of different domains, \"%.*s\" and \"%.*s\"", ONX_ARG(domain),
                         ONX_ARG(onx_view(c.newer->domain)));
    c.later = c.newer->opset_version > c.older->opset_version;
    const comparison given = c;
    counter differences = { .next = &given };
    c.found = count_difference;
    c.user = &differences;
    ONX_TRY(compare_sets(&c));
    if (differences.count && c.newer->opset_version == c.older->opset_version)
        onxi_opset_report(cx, "OS-06", ONX_WARNING, "opset_version", domain,
                          "both documents describe version %lld of the domain, but they differ in %zu places",
                          (long long)c.newer->opset_version, differences.count);
    return ONX_OK;
}
