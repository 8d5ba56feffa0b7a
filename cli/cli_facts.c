/* cli_facts.c - counts the contents of a model. */
#include "cli_facts.h"

#include <onx/tensor.h>

#include <stdlib.h>

/* ---- tallies ---- */

static cli_tally *find_row(const cli_tallies *t, onx_str domain, onx_str name, uint32_t hash)
{
    CLI_TABLE_EACH (&t->table, hash, i)
        if (onx_str_equal(t->row[i].name, name) && onx_str_equal(t->row[i].domain, domain))
            return &t->row[i];
    return NULL;
}

static bool grow(cli_tallies *t)
{
    uint32_t room = t->room ? t->room * 2 : 64;
    cli_tally *row = room <= 1u << 28 ? realloc(t->row, room * sizeof(*row)) : NULL;
    if (!row)
        return false;
    t->row = row;
    t->room = room;
    return true;
}

cli_tally *cli_tally_at(cli_tallies *t, onx_str domain, onx_str name)
{
    uint32_t hash = cli_table_hash(&t->table, domain, name);
    cli_tally *row = find_row(t, domain, name, hash);
    if (row)
        return row;
    if ((t->count == t->room && !grow(t)) || !cli_table_add(&t->table, hash, t->count))
        return NULL;
    row = &t->row[t->count++];
    *row = (cli_tally){ .domain = domain, .name = name };
    return row;
}

const cli_tally *cli_tally_find(const cli_tallies *t, onx_str domain, onx_str name)
{
    return t->count ? find_row(t, domain, name, cli_table_hash(&t->table, domain, name)) : NULL;
}

static int compare_text(onx_str a, onx_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int c = len ? memcmp(a.ptr, b.ptr, len) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static int compare_tally(const void *x, const void *y)
{
    const cli_tally *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    int c = compare_text(a->domain, b->domain);
    return c ? c : compare_text(a->name, b->name);
}

void cli_tallies_sort(cli_tallies *t)
{
    if (t->count)
        qsort(t->row, t->count, sizeof(*t->row), compare_tally);
}

void cli_tallies_free(cli_tallies *t)
{
    free(t->row);
    free(t->table.slots);
    *t = (cli_tallies){ 0 };
}

/* ---- facts ---- */

onx_str cli_domain(onx_str domain)
{
    return domain.len ? domain : onx_str_of("ai.onnx");
}

static onx_str bare_domain(onx_str domain)
{
    return onx_str_is(domain, "ai.onnx") ? onx_str_of("") : domain;
}

const cli_ir_release *cli_ir_release_of(int64_t ir_version)
{
    static const cli_ir_release rows[] = {
        { "2017-10", "before ONNX 1.0" },    { "2017-10", "before ONNX 1.0" },   { "2017-11", "ONNX 1.0 to 1.3" },
        { "2019-01", "ONNX 1.4" },           { "2019-03", "ONNX 1.5" },          { "2019-09", "ONNX 1.6" },
        { "2020-05", "ONNX 1.7 to 1.9" },    { "2021-07", "ONNX 1.10 to 1.13" }, { "2023-05", "ONNX 1.14 and 1.15" },
        { "2024-03", "ONNX 1.16 and 1.17" }, { "2025-05", "ONNX 1.18" },         { "2025-08", "ONNX 1.19" },
        { "2025-11", "ONNX 1.20 to 1.22" },  { "not dated yet", "ONNX 1.23" },
    };
    return ir_version >= 1 && ir_version <= (int64_t)(sizeof(rows) / sizeof(rows[0])) ? &rows[ir_version - 1] : NULL;
}

static void add_saturating(uint64_t *sum, uint64_t value)
{
    *sum = *sum > UINT64_MAX - value ? UINT64_MAX : *sum + value;
}

bool cli_tensor_size(const onx_tensor *tensor, uint64_t *elements, uint64_t *bytes)
{
    *elements = *bytes = 0;
    if (!onx_tensor_count(tensor, elements))
        return false;
    if (tensor->data_type != ONX_STRING)
        return onx_dtype_bits(tensor->data_type) == 0 || onx_dtype_size(tensor->data_type, *elements, bytes);
    for (uint32_t i = 0; i < tensor->string_data_count; i++)
        *bytes += onx_view(tensor->string_data[i]).len;
    return true;
}

static onx_status note_tensor(cli_facts *f, const onx_tensor *tensor)
{
    uint64_t elements, bytes;
    if (!cli_tensor_size(tensor, &elements, &bytes)) {
        f->strange++;
        return ONX_OK;
    }
    const char *name = onx_dtype_name(tensor->data_type);
    cli_tally *rows[3] = { &f->stored, NULL, NULL };
    rows[1] = cli_tally_at(&f->dtypes, onx_str_of(""), onx_str_of(name ? name : "unknown type"));
    if (!rows[1])
        return ONX_E_MEMORY;
    if (onx_tensor_is_external(tensor)) {
        onx_str location = onx_str_of("");
        for (uint32_t i = 0; i < tensor->external_data_count; i++)
            if (onx_str_is(onx_view(tensor->external_data[i]->key), "location"))
                location = onx_view(tensor->external_data[i]->value);
        rows[2] = cli_tally_at(&f->external, onx_str_of(""), location);
        if (!rows[2])
            return ONX_E_MEMORY;
    }
    for (size_t i = 0; i < 3 && rows[i]; i++) {
        rows[i]->count++;
        add_saturating(&rows[i]->elements, elements);
        add_saturating(&rows[i]->bytes, bytes);
    }
    return ONX_OK;
}

static onx_status note_node(cli_facts *f, const onx_visit *at)
{
    const onx_node *node = at->message;
    cli_tally *row = cli_tally_at(&f->ops, bare_domain(onx_view(node->domain)), onx_view(node->op_type));
    if (!row)
        return ONX_E_MEMORY;
    row->count++;
    f->nodes.count++;
    bool body = false, inner = false, train = false;
    for (const onx_visit *up = at->parent; up; up = up->parent) {
        body |= up->kind == ONX_KIND_FUNCTION;
        train |= up->kind == ONX_KIND_TRAINING_INFO;
        inner |= up->kind == ONX_KIND_NODE;
    }
    if (body)
        f->body_nodes++;
    else if (train)
        f->train_nodes++;
    else if (inner)
        f->inner_nodes++;
    return ONX_OK;
}

static onx_status visit(void *user, const onx_visit *at)
{
    cli_facts *f = user;
    if (at->kind == ONX_KIND_NODE)
        return note_node(f, at);
    if (at->kind != ONX_KIND_TENSOR)
        return ONX_OK;
    const onx_tensor *tensor = at->message;
    bool outer =
        at->parent && at->parent->kind == ONX_KIND_GRAPH && (!at->parent->parent || !at->parent->parent->parent);
    if (outer && !cli_tally_at(&f->names, onx_str_of(""), onx_view(tensor->name)))
        return ONX_E_MEMORY;
    return note_tensor(f, tensor);
}

onx_status cli_facts_collect(onx_ctx *cx, onx_kind kind, void *message, cli_facts *facts)
{
    *facts = (cli_facts){ 0 };
    facts->ops.table.cx = facts->dtypes.table.cx = facts->external.table.cx = facts->names.table.cx = cx;
    ONX_TRY(onx_message_walk(cx, kind, message, visit, facts));
    cli_tallies_sort(&facts->ops);
    cli_tallies_sort(&facts->dtypes);
    cli_tallies_sort(&facts->external);
    return ONX_OK;
}

void cli_facts_free(cli_facts *facts)
{
    cli_tallies_free(&facts->ops);
    cli_tallies_free(&facts->dtypes);
    cli_tallies_free(&facts->external);
    cli_tallies_free(&facts->names);
}
