/* check_bind.c - problems with the operator or function that a node names. Each name is resolved once per import list,
 * so problems are also reported once. */
#include "check/check.h"

/* Operators that were removed from the standard while experimental (ManagingExperimentalOps.md). */
static bool was_experimental(onx_str name)
{
    static const char *const names[] = { "ATen",
                                         "Affine",
                                         "ConstantFill",
                                         "Crop",
                                         "DynamicSlice",
                                         "GRUUnit",
                                         "GivenTensorFill",
                                         "ImageScaler",
                                         "ParametricSoftplus",
                                         "Scale",
                                         "ScaledTanh" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (onx_str_is(name, names[i]))
            return true;
    return false;
}

static onx_str similar_operator(onxi_check *k, onx_str domain, onx_str name)
{
    uint32_t best = 3;
    const char *found = NULL;
    if (k->hints++ > ONXI_HINTS)
        return onx_str_make(NULL, 0);
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        uint32_t d;
        if (onx_str_is(domain, onxi_operators[i].domain) &&
            onxi_check_similar(name, onx_str_of(onxi_operators[i].name), &d) && d < best) {
            best = d;
            found = onxi_operators[i].name;
        }
    }
    return found ? onxi_check_text(k, "did you mean %s?", found) : onx_str_make(NULL, 0);
}

/* `implied`: the operator is known, and the domain is taken to have version 1. */
static void report_not_imported(onxi_check *k, const onxi_check_at *at, onx_str domain, bool implied,
                                onxi_check_scope *scope)
{
    onxi_checked_imports *imports = scope->imports;
    if (imports->legacy) /* the node's domain field and imports are from a later IR version; V-03 reports this */
        return;
    if (!imports->count && !scope->function)
        return; /* O-01 has reported that nothing is imported */
    if (!imports->lost)
        imports->lost = onxi_check_set_new(k);
    if (!onxi_check_set_add(k, imports->lost, domain, 0, NULL))
        return;
    bool functions = onxi_check_set_find(k->domains_with_functions, domain, NULL);
    const char *rule = functions ? "F-08" : scope->function ? "F-05" : "O-10";
    const char *shown = domain.len ? onxi_check_quote(k, domain) : "ai.onnx";
    onxi_check_find(k, at, rule,
                    (onxi_check_detail){ .value = onx_str_of(shown),
                                         .severity = implied ? ONX_RULE_WARNING : ONX_RULE_NONE,
                                         .one_meaning = implied,
                                         .hint = onxi_check_text(k, "add %s to the opset_import of the %s", shown,
                                                                 scope->function ? "function" : "model") },
                    implied ? "the %s does not import the domain %s, so its version is taken to be 1"
                            : "the %s does not import the domain %s",
                    scope->function ? "function" : "model", shown);
}

static void report_unknown(onxi_check *k, const onxi_check_at *at, const onxi_bound *b, const onxi_check_scope *scope)
{
    const char *name = onxi_check_quote(k, b->name),
               *domain = b->domain.len ? onxi_check_quote(k, b->domain) : "ai.onnx";
    onxi_check_detail detail = ONXI_PLAIN; /* every message contains the operator's name */
    if (onxi_check_domain_is_standard(b->domain)) {
        const onxi_schema *newest = onxi_schema_newest(b->domain, b->name);
        if (!b->domain.len && was_experimental(b->name)) {
            onxi_check_find(k, at, "ND-08", detail, "%s was an experimental operator and is no longer part of ONNX",
                            name);
        } else if (newest) {
            const onxi_schema *first = newest;
            while (first[1].name)
                first++;
            detail.hint = onxi_check_text(k, "it exists from version %d on", first->since);
            onxi_check_find(k, at, "O-11", detail, "version %lld of %s has no operator %s", (long long)b->opset, domain,
                            name);
        } else {
            const bool newer = k->flags & ONX_CHECK_NEWER_OPSETS && b->opset > onxi_domain_newest(b->domain);
            detail.severity = newer ? ONX_RULE_WARNING : ONX_RULE_NONE;
            detail.hint = newer ? onxi_check_text(k, "a document of the operator set may define it (--opset-doc)")
                                : similar_operator(k, b->domain, b->name);
            onxi_check_find(k, at, "ND-04", detail,
                            newer ? "%s has no operator %s up to the newest known version; a newer one may"
                                  : "%s has no operator %s",
                            domain, name);
        }
        return;
    }
    bool closed = k->registry && onx_registry_has_domain(k->registry, b->domain);
    bool functions = onxi_check_set_find(k->domains_with_functions, b->domain, NULL);
    detail.severity = closed || k->flags & ONX_CHECK_CUSTOM_DOMAINS ? ONX_RULE_ERROR : ONX_RULE_NONE;
    if (scope->function && functions)
        onxi_check_find(k, at, "F-28", detail, "the model defines no function %s in the domain %s", name, domain);
    else
        onxi_check_find(k, at, "ND-06", detail,
                        closed ? "the domain %s has no operator %s"
                               : "the domain %s is not known, so %s cannot be verified",
                        domain, name);
}

/* The operator must have the same meaning under the imports of the function and of the model (F-06). */
static void check_compatible(onxi_check *k, const onxi_check_at *at, const onxi_bound *b, const onxi_check_scope *scope)
{
    const onxi_imports *model = &k->imports.binder.imports;
    const uint32_t which = scope->function && k->model ? onxi_imports_find(model, b->domain) : ONXI_UNBOUND;
    if (which == ONXI_UNBOUND || k->flags & ONX_CHECK_SKIP_OPSET_COMPATIBILITY)
        return;
    const int64_t outer = model->items[which].version;
    k->imports.used[which] = true;
    if (outer == b->opset || outer < 1)
        return;
    if (onx_registry_find(k->registry, b->domain, b->name, outer) != b->schema)
        onxi_check_find(k, at, "F-06",
                        (onxi_check_detail){ .value = onxi_check_text(k, "%lld in the function, %lld in the model",
                                                                      (long long)b->opset, (long long)outer) },
                        "%s is another operator under the function's imports than under the model's",
                        onxi_check_quote(k, b->name));
}

/* Says which operators a registry defines in place of a version that is known, and which of a newer set it only names.
 */
static void report_newer(onxi_check *k, const onxi_check_at *at, const onxi_bound *b)
{
    const onxi_schema *known = onxi_schema_newest(b->domain, b->name);
    const bool open = b->schema->flags & ONXI_OP_OPEN;
    if (b->schema->since <= onxi_domain_newest(b->domain) || !onxi_check_domain_is_standard(b->domain) ||
        (!known && !open))
        return;
    onxi_check_find(
        k, at, "O-11",
        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, b->name)),
                             .severity = open ? ONX_RULE_WARNING : ONX_RULE_NOTE,
                             .hint = open ? onx_str_of("a function of that name in the document would define it")
                                          : onx_str_of(NULL) },
        "the operator %s in version %d, for which the given operator set has %s", known ? "changed" : "is new",
        b->schema->since, open ? "neither a schema nor a body, so that its nodes are not judged" : "a definition");
}

static void check_operator(onxi_check *k, const onxi_check_at *at, onxi_checked_op *op, const onxi_check_scope *scope)
{
    const onxi_bound *b = op->bound;
    check_compatible(k, at, b, scope);
    if (!b->schema) {
        report_unknown(k, at, b, scope);
        return;
    }
    if (b->schema->flags & ONXI_OP_DEPRECATED) {
        onxi_check_find(
            k, at, "ND-07",
            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, b->name)),
                                 .hint = onxi_check_text(k, "it is deprecated since version %d", b->schema->since) },
            "the operator is deprecated in version %lld", (long long)b->opset);
        return;
    }
    report_newer(k, at, b);
    op->kind = ONXI_BOUND_OPERATOR;
    op->schema = b->schema;
    for (const onxi_attr *a = b->schema->attrs; a && a->name; a++) {
        op->required += a->required;
        op->holds_graphs |= a->type == ONX_ATTR_GRAPH;
    }
}

static void check_bound(onxi_check *k, const onxi_check_at *at, onxi_checked_op *op, onxi_check_scope *scope)
{
    const onxi_bound *b = op->bound;
    if (!b->name.len)
        return; /* ND-01 */
    onxi_check_utf8(k, ONXI_AT(at, op_type), b->name);
    onxi_check_utf8(k, ONXI_AT(at, domain), b->domain);
    if (b->import == ONXI_UNBOUND) {
        report_not_imported(k, at, b->domain, b->implied, scope);
        if (!b->implied)
            return;
    } else {
        scope->imports->used[b->import] = true;
    }
    if (b->kind == ONXI_BOUND_FUNCTION) {
        op->kind = ONXI_BOUND_FUNCTION;
        if (onxi_check_domain_is_standard(b->domain) && onxi_schema_newest(b->domain, b->name))
            onxi_check_find(k, at, "ND-05", (onxi_check_detail){ .severity = ONX_RULE_WARNING },
                            "a function of the model takes the place of a standard operator");
        return;
    }
    if (b->overload.len && k->model) {
        onxi_check_find(k, at, "ND-22", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, b->overload)) },
                        "the model has no function %s with that overload", onxi_check_quote(k, b->name));
        return;
    }
    if (b->opset >= 1) /* otherwise the import itself is wrong */
        check_operator(k, at, op, scope);
}

const onxi_bound *onxi_check_bound_of(onxi_check *k, const onx_node *node, onxi_check_scope *scope)
{
    const onxi_bound *b = onxi_bind(&scope->imports->binder, node);
    return !onxi_check_failed(k, b) && b->kind == ONXI_BOUND_OPERATOR ? b : NULL;
}

onxi_op_id onxi_check_operator_of(onxi_check *k, const onx_node *node, onxi_check_scope *scope)
{
    const onxi_bound *b = onxi_check_bound_of(k, node, scope);
    return b ? b->op : ONXI_ID_NONE;
}

const onxi_checked_op *onxi_check_bind(onxi_check *k, const onxi_check_at *at, const onx_node *node,
                                       onxi_check_scope *scope)
{
    onxi_bound *b = onxi_bind(&scope->imports->binder, node);
    if (onxi_check_failed(k, b))
        return NULL;
    if (b->more)
        return b->more;
    onxi_checked_op *op = ONXI_NEW(k->arena, onxi_checked_op);
    if (onxi_check_failed(k, op))
        return NULL;
    *op = (onxi_checked_op){ .bound = b };
    b->more = op;
    if (scope->imports->used)
        check_bound(k, at, op, scope);
    return op;
}
