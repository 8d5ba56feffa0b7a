/* document_write.c - creates an operator-set document from the rows of a domain. */
#include "op/op.h"

#include <stdio.h>

enum { NEWEST_IR_VERSION = 14, TEXT_SIZE = 8192 };

/* The operator's summary, signature and types, one line each, because OperatorProto has no fields for them. */
static onx_status describe(onx_arena *arena, const onx_op *op, onx_bytes *out)
{
    char text[TEXT_SIZE], types[TEXT_SIZE / 2];
    onx_op_signature(op, types, sizeof types);
    size_t len = (size_t)snprintf(text, sizeof text, "%s\n\n%s\n", onx_op_summary(op), types);
    for (uint32_t i = 0; onx_op_type_name(op, i) && len < sizeof text; i++) {
        onx_op_type_text(op, i, types, sizeof types);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s: %s\n", onx_op_type_name(op, i), types);
    }
    if (len >= sizeof text)
        len = sizeof text - 1;
    return onx_arena_keep(arena, onx_str_make(text, len), out);
}

static onx_status add_operator(onx_arena *arena, onx_operator_set *set, const onx_op *op)
{
    onx_operator *out =
        onx_list_add_message(arena, (void ***)(void *)&set->operator_, &set->operator_count, ONX_KIND_OPERATOR);
    if (!out)
        return ONX_E_MEMORY;
    onx_bytes name, doc;
    ONX_TRY(onx_arena_refer(arena, onx_str_of(onx_op_name(op)), &name));
    ONX_TRY(describe(arena, op, &doc));
    ONX_SET(operator, out, op_type, name);
    ONX_SET(operator, out, doc_string, doc);
    ONX_SET(operator, out, since_version, onx_op_since(op));
    ONX_SET(operator, out, status, onx_op_flags(op) & ONX_OP_EXPERIMENTAL ? 0 : 1);
    return ONX_OK;
}

static onx_status fill(onx_arena *arena, onx_operator_set *set, onx_str domain, int64_t opset)
{
    onx_bytes magic, name;
    ONX_TRY(onx_arena_keep(arena, onx_str_of("ONNXOPSET"), &magic));
    ONX_TRY(onx_arena_keep(arena, domain, &name));
    ONX_SET(operator_set, set, magic, magic);
    ONX_SET(operator_set, set, ir_version, NEWEST_IR_VERSION);
    ONX_SET(operator_set, set, domain, name);
    ONX_SET(operator_set, set, opset_version, opset);
    for (uint32_t i = 0; i < onx_op_count(); i++) {
        const onx_op *newest = onx_op_get(i);
        if (!onx_str_is(domain, onx_op_domain(newest)))
            continue;
        const onx_op *op = onx_op_find(domain, onx_str_of(onx_op_name(newest)), opset), *own = newest;
        while (own && own != op) /* another operator of that name may be in effect */
            own = onx_op_older(own);
        if (op && own && !(onx_op_flags(op) & ONX_OP_DEPRECATED))
            ONX_TRY(add_operator(arena, set, op));
    }
    return ONX_OK;
}

static onx_status export(onx_ctx *cx, onx_str domain, int64_t opset, onx_doc **out)
{
    domain = onxi_domain_plain(domain);
    const int64_t newest = onx_domain_newest(domain);
    if (!newest)
        return onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "there is no built-in domain \"%.*s\"", ONX_ARG(domain));
    if (opset < 1 || opset > newest)
        return onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "domain \"%.*s\" has versions 1 to %lld, not %lld",
                         ONX_ARG(domain), (long long)newest, (long long)opset);
    onx_doc *doc;
    ONX_TRY(onx_doc_new(cx, ONX_KIND_OPERATOR_SET, &doc));
    const onx_status status = fill(onx_doc_arena(doc), onx_doc_root(doc, ONX_KIND_OPERATOR_SET), domain, opset);
    if (status != ONX_OK) {
        onx_doc_free(doc);
        return status;
    }
    *out = doc;
    return ONX_OK;
}

onx_status onx_opset_export(onx_ctx *cx, onx_str domain, int64_t opset, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_CALL_TO_MAKE(cx, out, onx_doc_free, export(cx, domain, opset, out));
}
