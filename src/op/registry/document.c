/* document.c - operator-set documents (OperatorSetProto): checks them and loads them into a registry. */
#include "op/registry/registry.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- rules OS-01 .. OS-10, as far as one document can be checked alone ---- */

void onxi_opset_report(onx_ctx *cx, const char *rule, onx_severity severity, const char *path, onx_str value,
                       const char *format, ...)
{
    const onx_diag diag = { .severity = severity,
                            .status = severity == ONX_ERROR ? ONX_E_INVALID : ONX_OK,
                            .rule = rule,
                            .where = ONXI_AT_PATH(onx_str_of(path)),
                            .value = value };
    va_list args;
    va_start(args, format);
    onxi_vreport(cx, &diag, format, args);
    va_end(args);
}

/* com.example.vision: two labels or more of letters, digits and dashes. */
static bool is_reverse_dns(onx_str domain)
{
    size_t dots = 0, label = 0;
    for (size_t i = 0; i < domain.len; i++) {
        const char c = domain.ptr[i];
        if (c == '.') {
            if (!label)
                return false;
            dots++;
            label = 0;
            continue;
        }
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
        label++;
    }
    return dots && label;
}

static bool has_zero_byte(onx_str text)
{
    return text.len && memchr(text.ptr, 0, text.len);
}

static void check_head(onx_ctx *cx, const onx_operator_set *set)
{
    const onx_str magic = onx_view(set->magic), domain = onx_view(set->domain);
    if (!onx_str_is(magic, "ONNXOPSET"))
        onxi_opset_report(cx, "OS-01", ONX_ERROR, "magic", magic, "the magic text of an operator set is ONNXOPSET");
    if (!ONX_HAS(operator_set, set, ir_version))
        onxi_opset_report(cx, "OS-02", ONX_ERROR, "ir_version", onx_str_make("", 0), "ir_version is missing");
    else if (set->ir_version < 1)
        onxi_opset_report(cx, "OS-02", ONX_ERROR, "ir_version", onx_str_make("", 0), "ir_version %lld is not a version",
                          (long long)set->ir_version);
    if (set->opset_version < 1)
        onxi_opset_report(cx, "OS-05", ONX_ERROR, "opset_version", onx_str_make("", 0),
                          "opset_version %lld is not 1 or more", (long long)set->opset_version);
    if (has_zero_byte(domain))
        onxi_opset_report(cx, "OS-03", ONX_ERROR, "domain", domain, "the domain has a zero byte in it");
    if (domain.len && !onx_str_is(domain, "ai.onnx") && !is_reverse_dns(domain))
        onxi_opset_report(cx, "OS-04", ONX_NOTE, "domain", domain,
                          "the domain is not a reversed DNS name such as com.example.vision");
}

int onxi_str_order(onx_str a, onx_str b)
{
    const size_t len = a.len < b.len ? a.len : b.len;
    const int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Sort order: by name; operators before functions; newest version first; then in document order. */
static int compare_items(const void *left, const void *right)
{
    const onxi_opset_item *a = left, *b = right;
    int order = onxi_str_order(a->name, b->name);
    if (!order)
        order = a->is_function - b->is_function;
    if (!order)
        order = (a->since < b->since) - (a->since > b->since);
    if (!order)
        order = onxi_str_order(a->overload, b->overload);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* The operators and functions of a set, sorted; freed by the caller. */
onx_status onxi_opset_list(onx_ctx *cx, const onx_operator_set *set, onxi_opset_item **out, size_t *count_out)
{
    const size_t count = (size_t)set->operator_count + set->functions_count;
    onxi_opset_item *list = onxi_resize(cx, NULL, 0, (count + 1) * sizeof *list);
    *out = list;
    *count_out = count;
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < set->operator_count; i++)
        list[i] = (onxi_opset_item){ .name = onx_view(set->operator_[i]->op_type),
                                     .since = set->operator_[i]->since_version,
                                     .index = i };
    for (uint32_t i = 0; i < set->functions_count; i++)
        list[set->operator_count + i] = (onxi_opset_item){ .name = onx_view(set->functions[i]->name),
                                                           .overload = onx_view(set->functions[i]->overload),
                                                           .index = i,
                                                           .is_function = true };
    qsort(list, count, sizeof *list, compare_items);
    return ONX_OK;
}

/* A document without a domain describes the default domain, so it may only contain operators that ONNX defines, and
 * those of versions newer than the newest known. */
static void check_domain(onx_ctx *cx, const onx_operator_set *set)
{
    if (onx_view(set->domain).len)
        return;
    for (uint32_t i = 0; i < set->operator_count; i++) {
        const onx_str name = onx_view(set->operator_[i]->op_type);
        if (!name.len || onxi_operator_find(onx_str_make("", 0), name) ||
            set->operator_[i]->since_version > onxi_domain_newest(onx_str_make("", 0)))
            continue;
        onxi_opset_report(cx, "OS-03", ONX_ERROR, "domain", name,
                          "the set names no domain, but holds an operator that ONNX does not define");
        return;
    }
}

static void check_operator(onx_ctx *cx, const onx_operator_set *set, uint32_t index)
{
    char path[64];
    const onx_operator *op = set->operator_[index];
    const onx_str name = onx_view(op->op_type);
    snprintf(path, sizeof path, "operator[%u]", index);
    if (!name.len)
        onxi_opset_report(cx, "OS-07", ONX_ERROR, path, name, "the operator has no op_type");
    if (has_zero_byte(name))
        onxi_opset_report(cx, "OS-07", ONX_ERROR, path, name, "the name of the operator has a zero byte in it");
    if (op->since_version < 1 || op->since_version > set->opset_version)
        onxi_opset_report(cx, "OS-08", ONX_ERROR, path, name,
                          "since_version %lld is not between 1 and the opset_version %lld",
                          (long long)op->since_version, (long long)set->opset_version);
}

/* Checks only what loading needs; the rules for functions check the rest. */
static void check_function(onx_ctx *cx, const onx_operator_set *set, uint32_t index)
{
    char path[64];
    const onx_str name = onx_view(set->functions[index]->name);
    snprintf(path, sizeof path, "functions[%u]", index);
    if (!name.len)
        onxi_opset_report(cx, "OS-13", ONX_ERROR, path, name, "the function has no name");
    if (has_zero_byte(name))
        onxi_opset_report(cx, "OS-13", ONX_ERROR, path, name, "the name of the function has a zero byte in it");
    const onx_function *f = set->functions[index];
    for (uint32_t i = 0; i < f->attribute_count; i++)
        onxi_lint_attribute(cx, path, onx_view(f->attribute[i]));
    for (uint32_t i = 0; i < f->attribute_proto_count; i++)
        onxi_lint_attribute(cx, path, onx_view(f->attribute_proto[i]->name));
}

onx_status onx_opset_check(onx_ctx *cx, const onx_doc *document)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, document);
    const onx_operator_set *set = onx_doc_root(document, ONX_KIND_OPERATOR_SET);
    if (!set)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not an operator set");
    const size_t errors = onx_diag_total(cx, ONX_ERROR);
    check_head(cx, set);
    check_domain(cx, set);
    for (uint32_t i = 0; i < set->operator_count; i++)
        check_operator(cx, set, i);
    for (uint32_t i = 0; i < set->functions_count; i++)
        check_function(cx, set, i);
    onxi_opset_item *list;
    size_t count;
    ONX_TRY(onxi_opset_list(cx, set, &list, &count));
    for (size_t i = 1; i < count; i++) {
        const onxi_opset_item *a = &list[i - 1], *b = &list[i];
        if (a->is_function != b->is_function || a->since != b->since || !onx_str_equal(a->name, b->name) ||
            !onx_str_equal(a->overload, b->overload))
            continue;
        char path[64];
        snprintf(path, sizeof path, "%s[%u]", b->is_function ? "functions" : "operator", b->index);
        if (b->is_function)
            onxi_opset_report(cx, "OS-09", ONX_ERROR, path, b->name, "functions[%u] has the same name", a->index);
        else
            onxi_opset_report(cx, "OS-09", ONX_ERROR, path, b->name, "operator[%u] has the same name and version %lld",
                              a->index, (long long)b->since);
    }
    onxi_release(cx, list, (count + 1) * sizeof *list);
    return onx_diag_total(cx, ONX_ERROR) > errors ? ONX_E_INVALID : ONX_OK;
}

/* ---- loading ---- */

static onx_status function_ports(onx_registry *registry, const onx_bytes *names, uint32_t count, const onxi_port **out)
{
    *out = NULL;
    if (!count)
        return ONX_OK;
    onxi_port *ports = ONXI_ARRAY(registry->arena, onxi_port, (size_t)count + 1);
    if (!ports)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        ports[i] = (onxi_port){ .name = onxi_registry_text(registry, onx_view(names[i])),
                                .type = "",
                                .flags = ONX_PORT_OPTIONAL };
        if (!ports[i].name)
            return ONX_E_MEMORY;
    }
    *out = ports;
    return ONX_OK;
}

/* Function attributes without a default have no type: UNDEFINED stands for any type. */
static onx_status function_attributes(onx_registry *registry, const onx_function *function, const onxi_attr **out)
{
    const size_t count = (size_t)function->attribute_count + function->attribute_proto_count;
    *out = NULL;
    if (!count)
        return ONX_OK;
    onxi_attr *attrs = ONXI_ARRAY(registry->arena, onxi_attr, count + 1);
    if (!attrs)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < count; i++) {
        onx_str name;
        if (i < function->attribute_count) {
            name = onx_view(function->attribute[i]);
        } else {
            const onx_attribute *a = function->attribute_proto[i - function->attribute_count];
            name = onx_view(a->name);
            attrs[i].type = (uint8_t)onx_attribute_type_of(a);
        }
        attrs[i].name = onxi_registry_text(registry, name);
        if (!attrs[i].name)
            return ONX_E_MEMORY;
    }
    *out = attrs;
    return ONX_OK;
}

/* Inputs, outputs, attributes and body of a function become those of the operator. */
static onx_status describe_by_function(onx_registry *registry, const onx_function *function, onxi_schema *schema)
{
    onxi_schema_own *own = ONXI_NEW(registry->arena, onxi_schema_own);
    if (!own)
        return ONX_E_MEMORY;
    *own = (onxi_schema_own){ .summary = schema->own->summary, .body = function };
    schema->own = own;
    schema->flags = (schema->flags & ~(uint32_t)ONX_OP_OPEN) | ONX_OP_FUNCTION;
    ONX_TRY(function_ports(registry, function->input, function->input_count, &schema->inputs));
    ONX_TRY(function_ports(registry, function->output, function->output_count, &schema->outputs));
    ONX_TRY(function_attributes(registry, function, &schema->attrs));
    onxi_schema_count_ports(schema);
    return ONX_OK;
}

static onx_status load_operator(onx_registry *registry, const onx_operator_set *set, const onxi_opset_item *of,
                                const char *domain, const char *name, onxi_schema *out)
{
    onx_str summary = onx_str_make("", 0);
    *out = (onxi_schema){ .domain = domain, .name = name, .flags = ONX_OP_OPEN };
    if (of->is_function) {
        out->since = set->opset_version > INT32_MAX ? INT32_MAX : (int32_t)set->opset_version;
        summary = onx_view(set->functions[of->index]->doc_string);
    } else {
        const onx_operator *op = set->operator_[of->index];
        out->since = op->since_version > INT32_MAX ? INT32_MAX : (int32_t)op->since_version;
        if (ONX_HAS(operator, op, status) && op->status == 0)
            out->flags |= ONX_OP_EXPERIMENTAL;
        summary = onx_view(op->doc_string);
    }
    const char *end = summary.len ? memchr(summary.ptr, '\n', summary.len) : NULL; /* the rest goes into detail */
    if (end)
        summary.len = (size_t)(end - summary.ptr);
    onxi_schema_own *own = ONXI_NEW(registry->arena, onxi_schema_own);
    const char *first_line = onxi_registry_text(registry, summary);
    if (!own || !first_line)
        return ONX_E_MEMORY;
    *own = (onxi_schema_own){ .summary = first_line };
    out->own = own;
    onxi_schema_count_ports(out);
    return ONX_OK;
}

/* list[0..count) share a name: operators, newest first, then functions. The first function is the body of the
 * operator's newest version, or an operator of its own if the document has none of that name. */
static onx_status load_name(onx_registry *registry, const onx_operator_set *set, const onxi_opset_item *list,
                            size_t count)
{
    const char *domain = onxi_registry_text(registry, onxi_domain_plain(onx_view(set->domain)));
    const char *name = onxi_registry_text(registry, list->name);
    if (!domain || !name)
        return ONX_E_MEMORY;
    size_t operators = 0;
    while (operators < count && !list[operators].is_function)
        operators++;
    const size_t rows_count = operators ? operators : 1;
    onxi_schema *rows = ONXI_ARRAY(registry->arena, onxi_schema, rows_count);
    if (!rows)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < rows_count; i++)
        ONX_TRY(load_operator(registry, set, &list[i], domain, name, &rows[i]));
    if (operators < count)
        ONX_TRY(describe_by_function(registry, set->functions[list[operators].index], rows));
    return onxi_registry_add(registry, rows, (uint32_t)rows_count, true);
}

/* Versions that are built in are not replaced: of a built-in operator, only newer ones are kept, and if there are any,
 * the functions. Returns how many of list[0..count), which share a name, are left. */
static size_t keep_new(const onx_operator_set *set, onxi_opset_item *list, size_t count)
{
    const onx_str domain = onx_view(set->domain);
    size_t operators = 0, kept = 0;
    while (operators < count && !list[operators].is_function)
        operators++;
    while (kept < operators && onxi_registry_may_define(domain, list[kept].name, list[kept].since))
        kept++; /* the newest come first */
    if (operators ? !kept : !onxi_registry_may_define(domain, list->name, set->opset_version))
        return 0;
    memmove(list + kept, list + operators, (count - operators) * sizeof *list);
    return kept + count - operators;
}

static onx_status load_list(onx_registry *registry, const onx_operator_set *set, onxi_opset_item *list, size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && onx_str_equal(list[i].name, list[end].name);)
            end++;
        const size_t kept = keep_new(set, &list[i], end - i);
        if (kept)
            ONX_TRY(load_name(registry, set, &list[i], kept));
    }
    return ONX_OK;
}

onx_status onx_registry_load(onx_registry *registry, const onx_doc *document)
{
    ONXI_NEED(NULL, registry);
    ONXI_NEED(registry->cx, document);
    onx_ctx *cx = registry->cx;
    const onx_operator_set *set = onx_doc_root(document, ONX_KIND_OPERATOR_SET);
    ONX_TRY(onx_opset_check(cx, document));
    const onx_str domain = onxi_domain_plain(onx_view(set->domain));
    for (const onxi_loaded *other = registry->loaded; other; other = other->next)
        if (other->version == set->opset_version && onx_str_equal(other->domain, domain)) {
            onxi_opset_report(cx, "OS-06", ONX_ERROR, "opset_version", domain,
                              "another document describes version %lld of the domain", (long long)set->opset_version);
            return ONX_E_INVALID;
        }
    onxi_loaded *loaded = ONXI_NEW(registry->arena, onxi_loaded);
    onxi_known_domain *known_domain = onxi_registry_domain(registry, domain);
    if (!loaded || !known_domain)
        return ONX_E_MEMORY;
    if (known_domain->newest < set->opset_version)
        known_domain->newest = set->opset_version;
    known_domain->closed = true;
    *loaded = (onxi_loaded){ .next = registry->loaded, .domain = known_domain->name, .version = set->opset_version };
    registry->loaded = loaded;
    onxi_opset_item *list;
    size_t count;
    ONX_TRY(onxi_opset_list(cx, set, &list, &count));
    const onx_status status = load_list(registry, set, list, count);
    onxi_release(cx, list, (count + 1) * sizeof *list);
    return status;
}
