/* transform_select.c - selects nodes of a model by name patterns and operators. */
#include "transform/transform_precision.h"

#include <stdio.h>

bool onxi_glob(onx_str pattern, onx_str text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

onx_str onxi_node_called(const onx_node *node)
{
    const onx_str name = onx_view(node->name);
    return name.len || !node->output_count ? name : onx_view(node->output[0]);
}

onx_status onxi_selection_open(onxi_selection *s, onx_arena *scratch)
{
    const size_t count = (size_t)s->only_count + s->except_count + s->block_op_count;
    s->used = ONXI_ARRAY(scratch, bool, count + 1);
    return s->used ? ONX_OK : ONX_E_MEMORY;
}

static bool fits_any(const onx_str *list, uint32_t count, bool *used, onx_str text)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++)
        if (onxi_glob(list[i], text))
            found = used[i] = true;
    return found;
}

/* "Conv", or "ai.onnx.ml.Scaler" for another domain. */
static bool is_blocked(onxi_selection *s, const onx_node *node)
{
    const onx_str domain = onxi_domain_plain(onx_view(node->domain)), op = onx_view(node->op_type);
    bool found = false;
    for (uint32_t i = 0; i < s->block_op_count; i++) {
        onx_str p = s->block_op[i];
        if (domain.len && p.len > domain.len && p.ptr[domain.len] == '.' && !memcmp(p.ptr, domain.ptr, domain.len))
            p = onx_str_make(p.ptr + domain.len + 1, p.len - domain.len - 1);
        else if (domain.len)
            continue;
        if (onxi_glob(p, op))
            found = s->used[s->only_count + s->except_count + i] = true;
    }
    return found;
}

bool onxi_selects(onxi_selection *s, const onx_node *node)
{
    const onx_str name = onxi_node_called(node);
    bool chosen = !s->only_count;
    chosen |= fits_any(s->only, s->only_count, s->used, name);
    chosen &= !fits_any(s->except, s->except_count, s->used + s->only_count, name);
    chosen &= !is_blocked(s, node);
    return chosen;
}

onx_status onxi_selection_close(const onxi_selection *s, onx_ctx *cx)
{
    const struct {
        const onx_str *list;
        uint32_t count;
        const char *what;
    } parts[] = { { s->only, s->only_count, "no node has a name like" },
                  { s->except, s->except_count, "no node has a name like" },
                  { s->block_op, s->block_op_count, "no node has an operator like" } };
    onx_status status = ONX_OK;
    const bool *used = s->used;
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        for (uint32_t i = 0; i < parts[p].count; i++)
            if (!*used++)
                status =
                    onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "%s %.*s", parts[p].what, ONX_ARG(parts[p].list[i]));
    return status;
}
