/* registry.c - operators beyond the built-in ones: a hash table of operators, each with its versions. */
#include "op/registry/registry.h"

/* ---- creation and destruction ---- */

onx_status onx_registry_new(onx_ctx *cx, onx_registry **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    onx_registry *registry = onxi_resize(cx, NULL, 0, sizeof *registry);
    if (!registry)
        return ONX_E_MEMORY;
    *registry = (onx_registry){ .cx = cx, .table = onxi_table_on_heap(cx), .by_name = onxi_dict_on_heap(cx) };
    onx_status status = onx_arena_new(cx, &registry->arena);
    if (status != ONX_OK) {
        onxi_release(cx, registry, sizeof *registry);
        return status;
    }
    *out = registry;
    return ONX_OK;
}

void onx_registry_free(onx_registry *registry)
{
    if (!registry)
        return;
    onx_ctx *cx = registry->cx;
    if (onxi_ctx_registry(cx) == registry)
        onxi_ctx_set_registry(cx, NULL);
    onxi_registry_close_plugins(registry);
    onxi_release(cx, registry->entries, registry->entry_room * sizeof *registry->entries);
    onxi_table_free(&registry->table);
    onxi_release(cx, registry->domains, registry->domain_room * sizeof *registry->domains);
    onxi_dict_free(&registry->by_name);
    onx_arena_free(registry->arena);
    onxi_release(cx, registry, sizeof *registry);
}

void onx_ctx_set_registry(onx_ctx *cx, const onx_registry *registry)
{
    if (!cx)
        return;
    onxi_ctx_set_registry(cx, registry);
}

const char *onxi_registry_text(onx_registry *registry, onx_str text)
{
    char *copy = onx_arena_alloc(registry->arena, text.len + 1);
    if (copy && text.len)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

/* ---- finding ---- */

static uint32_t hash_name(const onx_registry *registry, onx_str domain, onx_str name)
{
    return onxi_table_hash_texts(&registry->table, name, domain, onx_str_make("", 0));
}

/* The operator, or NULL. */
static onxi_entry *entry_find(const onx_registry *registry, onx_str domain, onx_str name)
{
    uint32_t hash = hash_name(registry, domain, name);
    ONXI_TABLE_EACH (&registry->table, hash, i)
        if (onx_str_equal(registry->entries[i].name, name) && onx_str_equal(registry->entries[i].domain, domain))
            return &registry->entries[i];
    return NULL;
}

/* A registry has rows of a built-in operator only for versions after those that are built in. */
const onx_op *onx_registry_find(const onx_registry *registry, onx_str domain, onx_str name, int64_t opset)
{
    const onxi_entry *entry = registry ? entry_find(registry, onxi_domain_plain(domain), name) : NULL;
    for (const onxi_schema *row = entry ? entry->rows : NULL; row && row->name; row++)
        if (row->since <= opset)
            return row;
    return onxi_schema_find(domain, name, opset);
}

bool onxi_registry_may_define(onx_str domain, onx_str name, int64_t since)
{
    return !onxi_operator_find(domain, name) || since > onxi_domain_newest(domain);
}

const onx_op *onx_registry_get(const onx_registry *registry, uint32_t index)
{
    if (index < onxi_operator_count)
        return onx_op_get(index);
    index -= onxi_operator_count;
    return registry && index < registry->entry_count ? registry->entries[index].rows : NULL;
}

static onxi_known_domain *domain_find(const onx_registry *registry, onx_str name)
{
    const onxi_dict_entry *entry = registry ? onxi_dict_find(&registry->by_name, onxi_domain_plain(name)) : NULL;
    return entry ? &registry->domains[entry->value] : NULL;
}

bool onx_registry_has_domain(const onx_registry *registry, onx_str domain)
{
    const onxi_known_domain *known = domain_find(registry, domain);
    return (known && known->closed) || onxi_domain_newest(domain) > 0;
}

int64_t onx_registry_newest(const onx_registry *registry, onx_str domain)
{
    const onxi_known_domain *known = domain_find(registry, domain);
    const int64_t built_in = onxi_domain_newest(domain);
    return known && known->newest > built_in ? known->newest : built_in;
}

onxi_known_domain *onxi_registry_domain(onx_registry *registry, onx_str name)
{
    onxi_known_domain *known = domain_find(registry, name);
    if (known)
        return known;
    name = onxi_domain_plain(name);
    const char *copy = onxi_registry_text(registry, name);
    name = onx_str_make(copy, name.len);
    if (!copy || !ONXI_GROW(registry->cx, registry->domains, registry->domain_room, registry->domain_count + 1) ||
        !onxi_dict_at(&registry->by_name, name, (uint32_t)registry->domain_count, NULL))
        return NULL;
    known = &registry->domains[registry->domain_count++];
    *known = (onxi_known_domain){ .name = name };
    return known;
}

/* ---- adding ---- */

/* The operator's entry, created on first use. */
static onx_status entry_of(onx_registry *registry, const onxi_schema *row, onxi_entry **out)
{
    const onx_str domain = onx_str_of(onxi_schema_domain(row)), name = onx_str_of(row->name);
    *out = entry_find(registry, domain, name);
    if (*out)
        return ONX_OK;
    if (!ONXI_GROW(registry->cx, registry->entries, registry->entry_room, registry->entry_count + 1) ||
        !onxi_table_add(&registry->table, hash_name(registry, domain, name), (uint32_t)registry->entry_count))
        return ONX_E_MEMORY;
    *out = &registry->entries[registry->entry_count++];
    **out = (onxi_entry){ .domain = domain, .name = name };
    return ONX_OK;
}

static onx_status present(onx_registry *registry, const onxi_schema *row)
{
    const char *domain = onxi_schema_domain(row);
    return onxi_fail(registry->cx, ONX_E_INVALID, ONXI_NOWHERE, "operator %s%s%s version %d is there already", domain,
                     *domain ? "." : "", row->name, row->since);
}

onx_status onxi_registry_add(onx_registry *registry, const onxi_schema *rows, uint32_t count, bool known)
{
    if (!count)
        return ONX_OK;
    const onxi_entry *before = entry_find(registry, onx_str_of(onxi_schema_domain(rows)), onx_str_of(rows->name));
    const onxi_schema *old_rows = before ? before->rows : NULL;
    const uint32_t old_count = before ? before->count : 0;
    onxi_schema *merged = ONXI_ARRAY(registry->arena, onxi_schema, (size_t)old_count + count + 1);
    if (!merged)
        return ONX_E_MEMORY;
    uint32_t old = 0, new = 0, merged_count = 0;
    while (old < old_count || new < count) {
        const bool take_old = new == count || (old < old_count && old_rows[old].since >= rows[new].since);
        const onxi_schema *row = take_old ? &old_rows[old++] : &rows[new ++];
        if (!merged_count || merged[merged_count - 1].since != row->since)
            merged[merged_count++] = *row;
        else if (!known)
            return present(registry, row);
    }
    onxi_known_domain *domain = onxi_registry_domain(registry, onx_str_of(onxi_schema_domain(merged)));
    onxi_entry *entry;
    if (!domain)
        return ONX_E_MEMORY;
    ONX_TRY(entry_of(registry, merged, &entry));
    if (domain->newest < merged[0].since)
        domain->newest = merged[0].since;
    entry->rows = merged;
    entry->count = merged_count;
    return ONX_OK;
}

static void count_ports(const onxi_port *ports, uint16_t *min, uint16_t *max)
{
    *min = *max = 0;
    for (uint32_t i = 0; ports && ports[i].name && *max != ONXI_MANY; i++) {
        const uint32_t flags = ports[i].flags;
        const uint16_t place = (uint16_t)(i < ONXI_MANY - 1 ? i : ONXI_MANY - 2);
        *max = flags & ONX_PORT_VARIADIC ? ONXI_MANY : (uint16_t)(place + 1);
        if (flags & ONX_PORT_VARIADIC)
            *min = flags & ONX_PORT_ARITY_0 ? place : (uint16_t)(place + 1);
        else if (!(flags & ONX_PORT_OPTIONAL))
            *min = (uint16_t)(place + 1);
    }
}

void onxi_schema_count_ports(onxi_schema *schema)
{
    if (schema->flags & ONX_OP_OPEN) {
        schema->min_input = schema->min_output = 0;
        schema->max_input = schema->max_output = ONXI_MANY;
        return;
    }
    count_ports(schema->inputs, &schema->min_input, &schema->max_input);
    count_ports(schema->outputs, &schema->min_output, &schema->max_output);
}
