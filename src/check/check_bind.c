/* check_bind.c - which operator or function a node means. Each name is resolved once per list of imports, so what is
 * wrong with it is reported once, too. */
#include "check/check.h"

static uint64_t hash_of(onx_str domain, onx_str name, onx_str overload)
{
    uint64_t h = onxi_hash(name.ptr, name.len, 0x51ed270b);
    if (domain.len)
        h = onxi_hash(domain.ptr, domain.len, h);
    if (overload.len)
        h = onxi_hash(overload.ptr, overload.len, h ^ 1);
    return h;
}

void onxi_check_bound_forget(onxi_check *k)
{
    if (k->bound_count)
        memset(k->bound, 0, k->bound_slots * sizeof *k->bound);
    k->bound_count = 0;
}

static bool grow(onxi_check *k)
{
    uint32_t slots = k->bound_slots ? k->bound_slots * 2 : 64;
    onxi_check_bound **table = slots > k->bound_slots ? ONXI_ARRAY(k->arena, onxi_check_bound *, slots) : NULL;
    if (onxi_check_failed(k, table))
        return false;
    for (uint32_t i = 0; i < k->bound_slots; i++) {
        if (!k->bound[i])
            continue;
        uint32_t at = (uint32_t)k->bound[i]->hash & (slots - 1);
        while (table[at])
            at = (at + 1) & (slots - 1);
        table[at] = k->bound[i];
    }
    k->bound = table;
    k->bound_slots = slots;
    return true;
}

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

static void report_not_imported(onxi_check *k, const onxi_check_at *at, onx_str domain, onxi_check_scope *scope)
{
    onxi_check_opsets *imports = scope->imports;
    if (imports->legacy) /* the node's domain field is from a later IR version, and so are imports: V-03 says so */
        return;
    if (!imports->count && !scope->function)
        return; /* O-01 has said that nothing at all is imported */
    if (!imports->lost)
        imports->lost = onxi_check_set_new(k);
    if (!onxi_check_set_add(k, imports->lost, domain, 0, NULL))
        return;
    bool functions = onxi_check_set_find(k->domains_with_functions, domain, NULL);
    const char *rule = functions ? "F-08" : scope->function ? "F-05" : "O-10";
    const char *shown = domain.len ? onxi_check_quote(k, domain) : "ai.onnx";
    onxi_check_find(k, at, rule,
                    (onxi_check_detail){ .value = onx_str_of(shown),
                                         .hint = onxi_check_text(k, "add %s to the opset_import of the %s", shown,
                                                                 scope->function ? "function" : "model") },
                    "the %s does not import the domain %s", scope->function ? "function" : "model", shown);
}

static void report_unknown(onxi_check *k, const onxi_check_at *at, const onxi_check_bound *b, int64_t version,
                           const onxi_check_scope *scope)
{
    const char *name = onxi_check_quote(k, b->name),
               *domain = b->domain.len ? onxi_check_quote(k, b->domain) : "ai.onnx";
    onxi_check_detail detail = { .value = onx_str_of(name) };
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
            onxi_check_find(k, at, "O-11", detail, "version %lld of %s has no operator %s", (long long)version, domain,
                            name);
        } else {
            detail.hint = similar_operator(k, b->domain, b->name);
            onxi_check_find(k, at, "ND-04", detail, "%s has no operator %s", domain, name);
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

/* An operator has to mean the same under the imports of the function and of the model (F-06). */
static void check_compatible(onxi_check *k, const onxi_check_at *at, const onxi_check_bound *b, int64_t version,
                             const onxi_check_scope *scope)
{
    if (!scope->function || !k->model || k->flags & ONX_CHECK_SKIP_OPSET_COMPATIBILITY ||
        !onxi_check_imports_has(&k->imports, b->domain))
        return;
    int64_t outer = onxi_check_imports_find(&k->imports, b->domain);
    if (outer == version || outer < 1)
        return;
    const onxi_schema *other = onx_registry_find(k->registry, b->domain, b->name, outer);
    if (other != b->schema)
        onxi_check_find(k, at, "F-06",
                        (onxi_check_detail){ .value = onxi_check_text(k, "%lld in the function, %lld in the model",
                                                                      (long long)version, (long long)outer) },
                        "%s is another operator under the function's imports than under the model's",
                        onxi_check_quote(k, b->name));
}

static void bind_schema(onxi_check *k, const onxi_check_at *at, onxi_check_bound *b, int64_t version,
                        const onxi_check_scope *scope)
{
    int64_t asked = version;
    if (onxi_check_domain_is_standard(b->domain) && onxi_domain_newest(b->domain) &&
        version > onxi_domain_newest(b->domain))
        version = onxi_domain_newest(b->domain); /* too new a version is reported at the import */
    b->schema = onx_registry_find(k->registry, b->domain, b->name, version);
    check_compatible(k, at, b, asked, scope);
    if (!b->schema) {
        report_unknown(k, at, b, version, scope);
        return;
    }
    if (b->schema->flags & ONXI_OP_DEPRECATED) {
        onxi_check_find(
            k, at, "ND-07",
            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, b->name)),
                                 .hint = onxi_check_text(k, "it is deprecated since version %d", b->schema->since) },
            "the operator is deprecated in version %lld", (long long)version);
        b->schema = NULL;
        return;
    }
    b->kind = ONXI_BOUND_SCHEMA;
    for (const onxi_attr *a = b->schema->attrs; a && a->name; a++) {
        b->required += a->required;
        b->holds_graphs |= a->type == ONX_ATTR_GRAPH;
    }
    b->constant = !b->domain.len && onx_str_is(b->name, "Constant");
    b->gradient = onx_str_is(b->name, "Gradient");
}

static void bind(onxi_check *k, const onxi_check_at *at, onxi_check_bound *b, onxi_check_scope *scope)
{
    b->kind = ONXI_BOUND_NOTHING;
    if (!b->name.len)
        return; /* ND-01 */
    onxi_check_utf8(k, ONXI_AT(at, op_type), b->name);
    onxi_check_utf8(k, ONXI_AT(at, domain), b->domain);
    int64_t version = onxi_check_imports_find(scope->imports, b->domain);
    if (!onxi_check_imports_has(scope->imports, b->domain)) {
        report_not_imported(k, at, b->domain, scope);
        return;
    }
    b->function = onxi_check_callee_find(k, b->domain, b->name, b->overload);
    if (b->function != UINT32_MAX) {
        b->kind = ONXI_BOUND_FUNCTION;
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
    if (version >= 1) /* else the import itself is wrong */
        bind_schema(k, at, b, version, scope);
}

const onxi_check_bound *onxi_check_bind(onxi_check *k, const onxi_check_at *at, const onx_node *node,
                                        onxi_check_scope *scope)
{
    onx_str domain = onxi_domain_plain(onx_view(node->domain)), name = onx_view(node->op_type);
    onx_str overload = onxi_check_node_overload(node);
    uint64_t hash = hash_of(domain, name, overload);
    if (k->bound_count >= k->bound_slots / 4 * 3 && !grow(k))
        return NULL;
    uint32_t i = (uint32_t)hash & (k->bound_slots - 1);
    for (; k->bound[i]; i = (i + 1) & (k->bound_slots - 1)) {
        const onxi_check_bound *b = k->bound[i];
        if (b->hash == hash && onx_str_equal(b->name, name) && onx_str_equal(b->domain, domain) &&
            onx_str_equal(b->overload, overload))
            return b;
    }
    onxi_check_bound *b = ONXI_NEW(k->arena, onxi_check_bound);
    if (onxi_check_failed(k, b))
        return NULL;
    *b = (onxi_check_bound){ .domain = domain, .name = name, .overload = overload, .hash = hash };
    k->bound[i] = b;
    k->bound_count++;
    bind(k, at, b, scope);
    return b;
}
