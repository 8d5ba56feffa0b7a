/* check.c - onx_check: options, checking the parts of a document by kind, and reporting the findings. */
#include "check/check.h"

#include <strings.h>

enum { NEWEST_IR = 14 };

/* Does an id in the list ("T-04", "t-04", or the group "T") include the rule? */
static bool covers(const char *const *list, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(list[i]);
        if (strncasecmp(id, list[i], n) == 0 && (id[n] == 0 || id[n] == '-'))
            return true;
    }
    return false;
}

/* Reads ids of rules and groups; false for an unknown id. */
static bool known_ids(onx_ctx *cx, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t j = 0; j < ONXI_RULE_COUNT && !found; j++)
            found = covers(&list[i], 1, onx_rule_get(j)->id);
        if (!found) {
            onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "there is no rule or group of rules %.40s", list[i]);
            return false;
        }
    }
    return true;
}

/* Does the rule cover the same requirement as another rule that `only` names? */
static bool stands_for(const onx_check_options *o, const char *id)
{
    for (size_t i = 0; i < ONXI_RULE_COUNT; i++) {
        const onx_rule *rule = onx_rule_get(i);
        if (rule->see && strcmp(rule->see, id) == 0 && covers(o->only, o->only_count, rule->id))
            return true;
    }
    return false;
}

static void select_rules(onxi_check *k, const onx_check_options *o)
{
    for (size_t i = 0; i < ONXI_RULE_COUNT; i++) {
        const onx_rule *rule = onx_rule_get(i);
        bool named = o->only_count && (covers(o->only, o->only_count, rule->id) || stands_for(o, rule->id));
        bool names = k->flags & ONX_CHECK_STRICT && (strcmp(rule->id, "N-01") == 0 || strcmp(rule->id, "N-02") == 0);
        bool off = o->only_count ? !named : rule->flags & ONX_RULE_OFF && !(k->flags & ONX_CHECK_PEDANTIC) && !names;
        if (off || covers(o->ignore, o->ignore_count, rule->id))
            k->off[i / 64] |= (uint64_t)1 << (i % 64);
    }
    k->identifiers = onxi_check_wants(k, "N-01") || onxi_check_wants(k, "N-02");
    k->pedantic = onxi_check_wants(k, "A-17") || onxi_check_wants(k, "MD-13");
}

/* A part of a model is checked as if it were inside a model with the imports given by the options. */
static onx_status open_context(onxi_check *k, const onx_check_options *o)
{
    static const char *const domains[] = { "", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training" };
    if (o->opset_import_count > UINT32_MAX)
        return ONX_E_LIMIT;
    onx_operator_set_id *const *list = o->opset_import;
    uint32_t count = (uint32_t)o->opset_import_count;
    if (!count) {
        onx_operator_set_id **made = ONXI_ARRAY(k->arena, onx_operator_set_id *, 4);
        if (!made)
            return ONX_E_MEMORY;
        for (; count < 4; count++) {
            onx_operator_set_id *id = onx_message_new(k->arena, ONX_KIND_OPERATOR_SET_ID);
            if (!id || onx_arena_keep(k->arena, onx_str_of(domains[count]), &id->domain) != ONX_OK)
                return ONX_E_MEMORY;
            id->has |= onx_operator_set_id_has_domain;
            ONX_SET(operator_set_id, id, version, onxi_domain_newest(onx_str_of(domains[count])));
            made[count] = id;
        }
        list = made;
    }
    onxi_check_imports_open(k, &k->imports, list, count, k->ir_version < 3);
    k->imports.binder.functions = NULL; /* the functions of the enclosing model are not known */
    return k->status;
}

static void check_graph_alone(onxi_check *k, const onxi_check_at *at, const onx_graph *g)
{
    onxi_check_scope scope = { .role = ONXI_ROLE_MAIN, .root = ONXI_ROLE_MAIN, .imports = &k->imports, .names = true };
    onxi_check_graph(k, at, g, &scope, NULL);
    onxi_check_leave(k, at, &scope);
}

static void check_node_alone(onxi_check *k, const onxi_check_at *at, const onx_node *n)
{
    onxi_check_scope scope = { .role = ONXI_ROLE_MAIN, .root = ONXI_ROLE_MAIN, .imports = &k->imports };
    onxi_check_enter(k, &scope, NULL);
    onxi_check_node(k, at, n, 0, &scope);
    onxi_check_leave(k, at, &scope);
}

static void check_function_alone(onxi_check *k, const onxi_check_at *at, onx_function *f)
{
    onxi_check_callees_add(k, &f, 1);
    onxi_check_function(k, at, f, 0);
    onxi_check_call_cycles(k, at);
}

static onx_status dispatch(onxi_check *k)
{
    const onxi_check_at root = { NULL, ONXI_STEP_ROOT, ONXI_NO_INDEX, k->doc->kind, k->doc->root };
    void *message = k->doc->root;
    switch (k->doc->kind) {
    case ONX_KIND_MODEL:
        onxi_check_model(k, &root, message);
        break;
    case ONX_KIND_GRAPH:
        check_graph_alone(k, &root, message);
        break;
    case ONX_KIND_NODE:
        check_node_alone(k, &root, message);
        break;
    case ONX_KIND_FUNCTION:
        check_function_alone(k, &root, message);
        break;
    case ONX_KIND_ATTRIBUTE:
        onxi_check_attribute(k, &root, message, NULL, NULL);
        break;
    case ONX_KIND_VALUE_INFO:
        onxi_check_value_info(k, &root, message, ONXI_ROLE_MAIN, "G-10");
        break;
    case ONX_KIND_TENSOR:
        onxi_check_tensor(k, &root, message);
        break;
    case ONX_KIND_SPARSE_TENSOR:
        onxi_check_sparse(k, &root, message);
        break;
    case ONX_KIND_TYPE:
        onxi_check_type(k, &root, message, 0);
        break;
    case ONX_KIND_SEQUENCE:
        onxi_check_sequence(k, &root, message, 0);
        break;
    case ONX_KIND_MAP:
        onxi_check_map(k, &root, message, 0);
        break;
    case ONX_KIND_OPTIONAL:
        onxi_check_optional(k, &root, message, 0);
        break;
    case ONX_KIND_OPERATOR_SET:
        onxi_check_operator_set(k, &root, message);
        break;
    default:
        return onxi_fail(k->cx, ONX_E_MISUSE, ONXI_NOWHERE, "there are no rules for a %s in a file of its own",
                         onx_kind_proto_name(k->doc->kind));
    }
    if (k->model && k->flags & ONX_CHECK_FULL)
        onxi_check_full(k);
    if (k->flags & ONX_CHECK_CHECKSUMS)
        onxi_check_checksums(k);
    onxi_check_overlaps(k);
    return k->status;
}

static onx_status check(onx_ctx *cx, onx_doc *doc, const onx_check_options *o, onx_check_summary *summary_out)
{
    if (!known_ids(cx, o->only, o->only_count) || !known_ids(cx, o->ignore, o->ignore_count))
        return ONX_E_NOT_FOUND;
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    onxi_check *k = ONXI_NEW(arena, onxi_check);
    if (!k) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    onx_limits limits = onx_ctx_limits(cx);
    k->cx = cx;
    k->doc = doc;
    k->arena = arena;
    k->model = doc->kind == ONX_KIND_MODEL ? doc->root : NULL;
    k->flags = o->flags;
    k->quick = (o->flags & ONX_CHECK_STRUCTURE) != 0;
    k->open_shapes = (o->flags & ONX_CHECK_OPEN_SHAPES) != 0;
    k->notes = !k->quick && !(o->flags & ONX_CHECK_NO_NOTES);
    k->max_errors = o->max_errors ? o->max_errors : limits.diagnostics;
    if (!k->max_errors)
        k->max_errors = 1;
    k->depth_limit = limits.depth;
    k->ir_version = o->ir_version ? o->ir_version : NEWEST_IR;
    k->registry = o->registry ? o->registry : onxi_ctx_registry(k->cx);
    select_rules(k, o);
    onx_status status = onxi_check_names_open(k);
    if (status == ONX_OK && !k->model)
        status = open_context(k, o);
    if (status == ONX_OK)
        status = dispatch(k);
    if (status == ONX_OK && k->not_utf8)
        onxi_diag_forget(cx, "W-21"); /* the reader only warned about these; here they are errors */
    if (status == ONX_OK)
        status = onxi_check_findings_report(k);
    if (status == ONX_E_MEMORY)
        onxi_no_memory(cx);
    if (summary_out)
        *summary_out = (onx_check_summary){ .errors = k->total[ONX_ERROR],
                                            .warnings = k->total[ONX_WARNING],
                                            .notes = k->total[ONX_NOTE] };
    if (status == ONX_OK && k->total[ONX_ERROR])
        status = ONX_E_INVALID;
    onxi_check_names_close(k);
    onxi_check_files_close(k);
    onxi_release(cx, k->calls, k->call_room * sizeof *k->calls);
    onx_arena_free(arena);
    return status;
}

onx_status onx_check(onx_ctx *cx, onx_doc *doc, const onx_check_options *options, onx_check_summary *summary_out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_check_options, own, options);
    ONXI_CALL(cx, check(cx, doc, &own, summary_out));
}
