/* registry.c - operators beyond the built-in ones: a hash table of operators, each with its versions. */
#include "op/registry/registry.h"

/* ---- making and freeing ---- */

onx_status onx_registry_new(onx_ctx *cx, onx_registry **out)
{
    *out = NULL;
    onx_registry *registry = onxi_resize(cx, NULL, 0, sizeof *registry);
    if (!registry)
        return ONX_E_MEMORY;
    *registry = (onx_registry){ .cx = cx };
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
    onxi_release(cx, registry->entries, registry->entry_room * sizeof *registry->entries);
    onxi_release(cx, registry->slots, registry->slot_count * sizeof *registry->slots);
    onxi_release(cx, registry->domains, registry->domain_room * sizeof *registry->domains);
    onx_arena_free(registry->arena);
    onxi_release(cx, registry, sizeof *registry);
}

const char *onxi_registry_text(onx_registry *registry, onx_str text)
{
    char *copy = onx_arena_alloc(registry->arena, text.len + 1);
    if (copy && text.len)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

/* ---- finding ---- */

static uint64_t hash_name(onx_str domain, onx_str name)
{
    return onxi_hash(name.ptr, name.len, onxi_hash(domain.ptr, domain.len, 0));
}

/* The slot that holds the operator, or the free one where it would go. */
static uint32_t *slot_of(const onx_registry *registry, onx_str domain, onx_str name)
{
    const size_t mask = registry->slot_count - 1;
    for (uint64_t at = hash_name(domain, name);; at++) {
        uint32_t *slot = &registry->slots[at & mask];
        if (!*slot)
            return slot;
        const onxi_entry *entry = &registry->entries[*slot - 1];
        if (onx_str_equal(entry->name, name) && onx_str_equal(entry->domain, domain))
            return slot;
    }
}

/* The operator, or NULL. */
static const onxi_entry *entry_find(const onx_registry *registry, onx_str domain, onx_str name)
{
    const uint32_t *slot = registry->slot_count ? slot_of(registry, domain, name) : NULL;
    return slot && *slot ? &registry->entries[*slot - 1] : NULL;
}

const onx_op *onx_registry_find(const onx_registry *registry, onx_str domain, onx_str name, int64_t opset)
{
    if (!registry || onxi_operator_find(domain, name))
        return onxi_schema_find(domain, name, opset);
    const onxi_entry *entry = entry_find(registry, onxi_domain_plain(domain), name);
    for (const onxi_schema *row = entry ? entry->rows : NULL; row && row->name; row++)
        if (row->since <= opset)
            return row;
    return NULL;
}

const onx_op *onx_registry_get(const onx_registry *registry, uint32_t index)
{
    if (index < onxi_operator_count)
        return onx_op_get(index);
    index -= onxi_operator_count;
    return registry && index < registry->entry_count ? registry->entries[index].rows : NULL;
}

static const onxi_known_domain *domain_find(const onx_registry *registry, onx_str name)
{
    name = onxi_domain_plain(name);
    for (size_t i = 0; registry && i < registry->domain_count; i++)
        if (onx_str_equal(registry->domains[i].name, name))
            return &registry->domains[i];
    return NULL;
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
    onxi_known_domain *known = (onxi_known_domain *)(uintptr_t)domain_find(registry, name);
    if (known)
        return known;
    if (registry->domain_count == registry->domain_room) {
        const size_t room = registry->domain_room ? 2 * registry->domain_room : 4;
        known =
            onxi_resize(registry->cx, registry->domains, registry->domain_room * sizeof *known, room * sizeof *known);
        if (!known)
            return NULL;
        registry->domains = known;
        registry->domain_room = room;
    }
    name = onxi_domain_plain(name);
    const char *copy = onxi_registry_text(registry, name);
    if (!copy)
        return NULL;
    known = &registry->domains[registry->domain_count++];
    *known = (onxi_known_domain){ .name = onx_str_make(copy, name.len) };
    return known;
}

/* ---- adding ---- */

static onx_status grow_slots(onx_registry *registry)
{
    const size_t count = registry->slot_count ? 2 * registry->slot_count : 64;
    uint32_t *old = registry->slots, *slots = onxi_resize(registry->cx, NULL, 0, count * sizeof *slots);
    if (!slots)
        return ONX_E_MEMORY;
    memset(slots, 0, count * sizeof *slots);
    const size_t old_count = registry->slot_count;
    registry->slots = slots;
    registry->slot_count = count;
    for (uint32_t i = 0; i < registry->entry_count; i++)
        *slot_of(registry, registry->entries[i].domain, registry->entries[i].name) = i + 1;
    onxi_release(registry->cx, old, old_count * sizeof *old);
    return ONX_OK;
}

/* The operator's entry, made when missing. */
static onx_status entry_of(onx_registry *registry, const onxi_schema *row, onxi_entry **out)
{
    const onx_str domain = onx_str_of(onxi_schema_domain(row)), name = onx_str_of(row->name);
    if (registry->slot_count < 2 * (registry->entry_count + 1))
        ONX_TRY(grow_slots(registry));
    uint32_t *slot = slot_of(registry, domain, name);
    if (!*slot) {
        if (registry->entry_count == registry->entry_room) {
            const size_t room = registry->entry_room ? 2 * registry->entry_room : 16;
            onxi_entry *entries = onxi_resize(registry->cx, registry->entries, registry->entry_room * sizeof *entries,
                                              room * sizeof *entries);
            if (!entries)
                return ONX_E_MEMORY;
            registry->entries = entries;
            registry->entry_room = room;
        }
        registry->entries[registry->entry_count++] = (onxi_entry){ .domain = domain, .name = name };
        *slot = (uint32_t)registry->entry_count;
    }
    *out = &registry->entries[*slot - 1];
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
