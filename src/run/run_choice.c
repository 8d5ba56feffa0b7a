/* run_choice.c - the table of kernel rows to try first, and its file. The file is in the cache folder of the session,
 * one for this CPU, instruction set and version. */
#include "run/run_choice.h"

/* Need not be secret: whoever forges a key only selects another row that can also run the node. */
static const onxi_secret secret = { 0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u };

enum {
    EDITION = 1,   /* increased when keys are computed differently */
    MOST = 1 << 14 /* entries in a file; the oldest are dropped */
};

/* ---- the table ---- */

onxi_digest onxi_run_digest_add(onxi_digest before, const void *bytes, size_t len)
{
    const onxi_digest parts[] = { before, onxi_digest_of(secret, len ? bytes : "", len) };
    return onxi_digest_of(secret, parts, sizeof parts);
}

onxi_run_choices *onxi_run_choices_new(onx_ctx *cx)
{
    onxi_run_choices *c = onxi_resize(cx, NULL, 0, sizeof *c);
    if (c)
        *c = (onxi_run_choices){ .cx = cx, .index = onxi_table_on_heap(cx) };
    return c;
}

void onxi_run_choices_free(onxi_run_choices *c)
{
    if (!c)
        return;
    onxi_table_free(&c->index);
    onxi_release(c->cx, c->list, c->room * sizeof *c->list);
    onxi_release(c->cx, c, sizeof *c);
}

bool onxi_run_choices_find(const onxi_run_choices *c, onxi_digest key, uint32_t *index)
{
    ONXI_TABLE_EACH (&c->index, onxi_table_hash_word(&c->index, key.a), i)
        if (c->list[i].key.a == key.a && c->list[i].key.b == key.b) {
            *index = i;
            return true;
        }
    return false;
}

bool onxi_run_choices_put(onxi_run_choices *c, onxi_digest key, onxi_digest row)
{
    uint32_t i;
    if (!onxi_run_choices_find(c, key, &i)) {
        if (!ONXI_GROW(c->cx, c->list, c->room, (uint64_t)c->count + 1) ||
            !onxi_table_add(&c->index, onxi_table_hash_word(&c->index, key.a), c->count))
            return false;
        i = c->count++;
    }
    c->list[i] = (onxi_run_choice){ key, row };
    return true;
}

/* Identifies a row by its name in `onx show --plan`, its instruction set, and its number among rows that are alike in
 * both. */
onxi_digest onxi_run_row_digest(const onx_kernel *const *rows, uint32_t index)
{
    const char *variant = onxi_kernel_variant(rows[index]);
    uint32_t numbers[2] = { rows[index]->isa, 0 };
    for (uint32_t i = 0; i < index; i++)
        numbers[1] += rows[i]->isa == rows[index]->isa && strcmp(onxi_kernel_variant(rows[i]), variant) == 0;
    const onxi_digest named = onxi_run_digest_add((onxi_digest){ 0 }, variant, strlen(variant));
    return onxi_run_digest_add(named, numbers, sizeof numbers);
}

/* ---- its file ---- */

static onxi_digest file_name(const onxi_run_session *s)
{
    char model[2048];
    const uint64_t numbers[] = { EDITION, ONX_VERSION_NUMBER, onxi_isa_of(s->options.isa), sizeof(onxi_run_choice) };
    onxi_platform_processor_model(model, sizeof model);
    const onxi_digest before = onxi_store_digest(s->store, 1, (onxi_digest){ 0 }, "rows", 4);
    const onxi_digest numbered = onxi_store_digest(s->store, 1, before, numbers, sizeof numbers);
    return onxi_store_digest(s->store, 1, numbered, model, strlen(model));
}

/* Entries that the table already has are newer than those of the file. */
static onx_status load(onxi_run_session *s, onxi_run_choices *c)
{
    uint64_t size;
    const onxi_run_choice *list =
        onxi_store_find_some(s->store, 1, file_name(s), sizeof *list, MOST * sizeof *list, &size);
    bool added = true;
    for (uint64_t i = 0; list && added && i < size / sizeof *list; i++)
        added = onxi_run_choices_find(c, list[i].key, &(uint32_t){ 0 }) ||
                onxi_run_choices_put(c, list[i].key, list[i].row);
    if (list)
        onxi_store_unmap(list, size);
    return added ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_run_choices_open(onxi_run_session *s)
{
    static const uint64_t budget_ns = UINT64_C(5000000000);
    const onx_session_options *o = &s->options;
    /* These options select kernels themselves. */
    if (!o->measure || o->plain || o->kernels || o->precision || o->lean_memory)
        return ONX_OK;
    if (!(s->choices = onxi_run_choices_new(s->cx)))
        return ONX_E_MEMORY;
    s->choices->left_ns = budget_ns;
    return s->store ? load(s, s->choices) : ONX_OK;
}

void onxi_run_choices_keep(onxi_run_session *s)
{
    const onxi_run_choices *c = s->choices;
    if (!s->store || load(s, s->choices) != ONX_OK) /* entries that other processes have added since */
        return;
    const uint32_t count = c->count < MOST ? c->count : MOST;
    onxi_store_put(s->store, 1, file_name(s), c->list + (c->count - count), count * sizeof *c->list);
}
