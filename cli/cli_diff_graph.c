/* cli_diff_graph.c - compares graphs: matches their items, and compares the pairs. */
#include "cli_diff.h"
#include "cli_table.h"

#include <inttypes.h>

/* ---- matching ---- */

bool cli_pairs_new(cli_diff *d, uint32_t a_count, uint32_t b_count, cli_pairs *out)
{
    onx_arena *arena = onx_doc_arena(d->a);
    *out = (cli_pairs){ .a_count = a_count, .b_count = b_count };
    out->of_a = onx_arena_alloc(arena, ((size_t)a_count + 1) * sizeof(uint32_t));
    out->of_b = onx_arena_alloc(arena, ((size_t)b_count + 1) * sizeof(uint32_t));
    if (!out->of_a || !out->of_b) {
        d->failure = ONX_E_MEMORY;
        return false;
    }
    memset(out->of_a, 0xff, a_count * sizeof(uint32_t));
    memset(out->of_b, 0xff, b_count * sizeof(uint32_t));
    return true;
}

/* The first unmatched element of b with that key; CLI_NO_ENTRY: none. */
static uint32_t first_like(const cli_table *t, cli_key *key, const void *lists, onx_str k, uint32_t hash)
{
    CLI_TABLE_EACH (t, hash, i)
        if (onx_str_equal(key(lists, 1, i), k))
            return i;
    return CLI_NO_ENTRY;
}

void cli_pairs_match(cli_diff *d, cli_pairs *pairs, cli_key *key, const void *lists)
{
    /* Linked lists of the elements of b with the same key, in order; the head is stored with the element in the table.
     * Entries are index + 1, 0 ends a list. Matched elements are removed, so that many equal keys take linear time. */
    const size_t count = pairs->b_count;
    uint32_t *head = onx_arena_alloc(onx_doc_arena(d->a), (2 * count + 1) * sizeof(uint32_t));
    uint32_t *next = head ? head + count : NULL;
    cli_table table = { .cx = d->call->cx };
    bool enough = head != NULL;
    for (uint32_t i = pairs->b_count; enough && i-- > 0;) {
        onx_str k = pairs->of_b[i] == CLI_NO_PAIR ? key(lists, 1, i) : onx_str_of("");
        if (k.len == 0)
            continue;
        uint32_t hash = cli_table_hash(&table, k, onx_str_of("")), first = first_like(&table, key, lists, k, hash);
        if (first == CLI_NO_ENTRY)
            enough = cli_table_add(&table, hash, first = i);
        next[i] = head[first];
        head[first] = i + 1;
    }
    for (uint32_t i = 0; enough && i < pairs->a_count; i++) {
        onx_str k = pairs->of_a[i] == CLI_NO_PAIR ? key(lists, 0, i) : onx_str_of("");
        uint32_t first =
            k.len ? first_like(&table, key, lists, k, cli_table_hash(&table, k, onx_str_of(""))) : CLI_NO_ENTRY;
        if (first == CLI_NO_ENTRY || !head[first])
            continue;
        uint32_t j = head[first] - 1;
        head[first] = next[j];
        pairs->of_a[i] = j;
        pairs->of_b[j] = i;
    }
    free(table.slots);
    if (!enough)
        d->failure = ONX_E_MEMORY;
}

/* ---- lists of named items ---- */

typedef struct entry_lists {
    onx_string_string_entry **list[2];
} entry_lists;

static onx_str entry_key(const void *lists, int side, uint32_t index)
{
    return onx_view(((const entry_lists *)lists)->list[side][index]->key);
}

void cli_diff_entries(cli_diff *d, onx_str where, onx_string_string_entry **a, uint32_t a_count,
                      onx_string_string_entry **b, uint32_t b_count)
{
    entry_lists lists = { { a, b } };
    cli_pairs pairs;
    if (!cli_pairs_new(d, a_count, b_count, &pairs))
        return;
    cli_pairs_match(d, &pairs, entry_key, &lists);
    onx_str none = onx_str_of("");
    for (uint32_t i = 0; i < a_count; i++) {
        onx_str key = onx_view(a[i]->key), value = onx_view(a[i]->value);
        if (pairs.of_a[i] == CLI_NO_PAIR)
            cli_diff_say(d, '-', where, key, value, none);
        else if (!onx_str_equal(value, onx_view(b[pairs.of_a[i]]->value)))
            cli_diff_say(d, '~', where, key, value, onx_view(b[pairs.of_a[i]]->value));
    }
    for (uint32_t i = 0; i < b_count; i++)
        if (pairs.of_b[i] == CLI_NO_PAIR)
            cli_diff_say(d, '+', where, onx_view(b[i]->key), none, onx_view(b[i]->value));
}

typedef struct opset_lists {
    onx_operator_set_id **list[2];
} opset_lists;

static onx_str opset_key(const void *lists, int side, uint32_t index)
{
    onx_str domain = onx_view(((const opset_lists *)lists)->list[side][index]->domain);
    return domain.len ? domain : onx_str_of("ai.onnx");
}

void cli_diff_opsets(cli_diff *d, onx_str where, onx_operator_set_id **a, uint32_t a_count, onx_operator_set_id **b,
                     uint32_t b_count)
{
    opset_lists lists = { { a, b } };
    cli_pairs pairs;
    if (!cli_pairs_new(d, a_count, b_count, &pairs))
        return;
    cli_pairs_match(d, &pairs, opset_key, &lists);
    onx_str none = onx_str_of("");
    for (uint32_t i = 0; i < a_count; i++) {
        uint32_t j = pairs.of_a[i];
        if (j == CLI_NO_PAIR)
            cli_diff_say(d, '-', where, opset_key(&lists, 0, i), cli_diff_format(d, "%" PRId64, a[i]->version), none);
        else if (a[i]->version != b[j]->version)
            cli_diff_say(d, '~', where, opset_key(&lists, 0, i), cli_diff_format(d, "%" PRId64, a[i]->version),
                         cli_diff_format(d, "%" PRId64, b[j]->version));
    }
    for (uint32_t i = 0; i < b_count; i++)
        if (pairs.of_b[i] == CLI_NO_PAIR)
            cli_diff_say(d, '+', where, opset_key(&lists, 1, i), none, cli_diff_format(d, "%" PRId64, b[i]->version));
}

typedef struct value_lists {
    onx_value_info **list[2];
} value_lists;

static onx_str value_key(const void *lists, int side, uint32_t index)
{
    return onx_view(((const value_lists *)lists)->list[side][index]->name);
}

static onx_str type_text(cli_diff *d, const onx_type *type)
{
    char text[512];
    cli_type(type, text, sizeof(text));
    return cli_diff_format(d, "%s", text);
}

static bool in_order(const cli_pairs *pairs)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < pairs->a_count; i++) {
        if (pairs->of_a[i] == CLI_NO_PAIR)
            continue;
        if (pairs->of_a[i] < last)
            return false;
        last = pairs->of_a[i];
    }
    return true;
}

static void diff_values(cli_diff *d, onx_str where, bool ordered, onx_value_info **a, uint32_t a_count,
                        onx_value_info **b, uint32_t b_count)
{
    value_lists lists = { { a, b } };
    cli_pairs pairs;
    if (!cli_pairs_new(d, a_count, b_count, &pairs))
        return;
    cli_pairs_match(d, &pairs, value_key, &lists);
    onx_str none = onx_str_of("");
    for (uint32_t i = 0; i < a_count; i++) {
        uint32_t j = pairs.of_a[i];
        onx_str name = onx_view(a[i]->name);
        if (j == CLI_NO_PAIR) {
            cli_diff_say(d, '-', where, name, type_text(d, a[i]->type), none);
        } else if (!onx_message_equal(ONX_KIND_VALUE_INFO, a[i], b[j])) {
            onx_str from = type_text(d, a[i]->type), to = type_text(d, b[j]->type);
            bool same = onx_str_equal(from, to);
            cli_diff_say(d, '~', where, name, same ? onx_str_of("description, metadata or denotation") : from,
                         same ? none : to);
        }
    }
    for (uint32_t i = 0; i < b_count; i++)
        if (pairs.of_b[i] == CLI_NO_PAIR)
            cli_diff_say(d, '+', where, onx_view(b[i]->name), none, type_text(d, b[i]->type));
    if (ordered && !in_order(&pairs))
        cli_diff_say(d, '~', where, none, onx_str_of("another order"), none);
}

typedef struct tensor_lists {
    onx_tensor **list[2];
} tensor_lists;

static onx_str tensor_key(const void *lists, int side, uint32_t index)
{
    return onx_view(((const tensor_lists *)lists)->list[side][index]->name);
}

static onx_str tensor_text(cli_diff *d, const onx_tensor *t)
{
    const char *type = onx_dtype_name(t->data_type);
    char dims[256] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < t->dims_count && at < sizeof(dims) - 24; i++)
        at += (size_t)snprintf(dims + at, sizeof(dims) - at, i ? ",%" PRId64 : "[%" PRId64, t->dims[i]);
    return cli_diff_format(d, "%s%s%s", type ? type : "unknown type", dims, t->dims_count ? "]" : "");
}

static void diff_initializers(cli_diff *d, onx_str where, const onx_graph *a, const onx_graph *b)
{
    tensor_lists lists = { { a->initializer, b->initializer } };
    cli_pairs pairs;
    if (!cli_pairs_new(d, a->initializer_count, b->initializer_count, &pairs))
        return;
    cli_pairs_match(d, &pairs, tensor_key, &lists);
    onx_str none = onx_str_of("");
    for (uint32_t i = 0; i < a->initializer_count; i++) {
        const onx_tensor *t = a->initializer[i];
        cli_progress("comparing", i, a->initializer_count);
        if (pairs.of_a[i] == CLI_NO_PAIR)
            cli_diff_say(d, '-', where, onx_view(t->name), tensor_text(d, t), none);
        else
            cli_diff_tensor(d, where, onx_view(t->name), t, b->initializer[pairs.of_a[i]]);
    }
    for (uint32_t i = 0; i < b->initializer_count; i++)
        if (pairs.of_b[i] == CLI_NO_PAIR)
            cli_diff_say(d, '+', where, onx_view(b->initializer[i]->name), none, tensor_text(d, b->initializer[i]));
}

/* Rare messages are compared one by one, and identified by index. */
static void diff_rest(cli_diff *d, onx_str where, onx_kind kind, void *const *a, uint32_t a_count, void *const *b,
                      uint32_t b_count)
{
    if (a_count != b_count) {
        cli_diff_say(d, '~', where, onx_str_of("count"), cli_diff_format(d, "%u", a_count),
                     cli_diff_format(d, "%u", b_count));
        return;
    }
    for (uint32_t i = 0; i < a_count; i++)
        if (!onx_message_equal(kind, a[i], b[i]))
            cli_diff_say(d, '~', where, cli_diff_format(d, "[%u]", i), onx_str_of("not alike"), onx_str_of(""));
}
#define DIFF_REST(d, where, KIND, a, b, field)                                                                         \
    diff_rest(d, where, ONX_KIND_##KIND, (void *const *)(const void *)(a)->field, (a)->field##_count,                  \
              (void *const *)(const void *)(b)->field, (b)->field##_count)

void cli_diff_unknown(cli_diff *d, onx_str where, const onx_extra *a, const onx_extra *b)
{
    const onx_unknown *x = a ? a->unknown : NULL, *y = b ? b->unknown : NULL;
    while (x && y && x->number == y->number && onx_str_equal(onx_view(x->bytes), onx_view(y->bytes))) {
        x = x->next;
        y = y->next;
    }
    if (x || y)
        cli_diff_say(d, '~', where, onx_str_of("unknown fields"), onx_str_of("not alike"), onx_str_of(""));
}

/* ---- attributes ---- */

static onx_str list_text(cli_diff *d, const void *values, uint32_t count, uint32_t slot)
{
    char text[256];
    size_t at = 0;
    for (uint32_t i = 0; i < count && at < sizeof(text) - 48; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, i ? ", " : "[");
        if (slot == ONX_SLOT_INTS)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%" PRId64, ((const int64_t *)values)[i]);
        else if (slot == ONX_SLOT_FLOATS)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%.9g", (double)((const float *)values)[i]);
        else
            at += (size_t)snprintf(text + at, sizeof(text) - at, "\"%.24s\"",
                                   cli_diff_format(d, "%.*s", ONX_ARG(onx_view(((const onx_bytes *)values)[i]))).ptr);
        if (i + 1 < count && at >= sizeof(text) - 48)
            at += (size_t)snprintf(text + at, sizeof(text) - at, ", ...");
    }
    return cli_diff_format(d, "%s%s", count ? text : "[", "]");
}

static onx_str attribute_text(cli_diff *d, const onx_attribute *a)
{
    uint32_t count;
    const void *v;
    if ((v = onx_attribute_value(a, ONX_SLOT_I, &count)) != NULL)
        return cli_diff_format(d, "%" PRId64, *(const int64_t *)v);
    if ((v = onx_attribute_value(a, ONX_SLOT_F, &count)) != NULL)
        return cli_diff_format(d, "%.9g", (double)*(const float *)v);
    if ((v = onx_attribute_value(a, ONX_SLOT_S, &count)) != NULL)
        return cli_diff_format(d, "\"%.*s\"", ONX_ARG(onx_view(*(const onx_bytes *)v)));
    static const uint32_t lists[] = { ONX_SLOT_INTS, ONX_SLOT_FLOATS, ONX_SLOT_STRINGS };
    for (size_t i = 0; i < 3; i++)
        if ((v = onx_attribute_value(a, lists[i], &count)) != NULL)
            return list_text(d, v, count, lists[i]);
    onx_str ref = onx_view(onx_attribute_more(a)->ref_attr_name);
    if (ref.len)
        return cli_diff_format(d, "@%.*s", ONX_ARG(ref));
    const char *type = onx_attribute_type_name((int32_t)onx_attribute_type_of(a));
    return onx_str_of(type ? type : "nothing");
}

typedef struct attribute_lists {
    onx_attribute **list[2];
} attribute_lists;

static onx_str attribute_key(const void *lists, int side, uint32_t index)
{
    return onx_view(((const attribute_lists *)lists)->list[side][index]->name);
}

static void diff_attribute(cli_diff *d, onx_str where, const onx_attribute *a, const onx_attribute *b)
{
    uint32_t count;
    onx_str name = onx_view(a->name);
    onx_tensor *const *ta = onx_attribute_value(a, ONX_SLOT_T, &count), *const *tb =
                                                                            onx_attribute_value(b, ONX_SLOT_T, &count);
    onx_graph *const *ga = onx_attribute_value(a, ONX_SLOT_G, &count), *const *gb =
                                                                           onx_attribute_value(b, ONX_SLOT_G, &count);
    if (ta && tb) {
        cli_diff_tensor(d, where, name, *ta, *tb);
    } else if (ga && gb) {
        cli_diff_graph(d, cli_diff_format(d, "%.*s.%.*s", ONX_ARG(where), ONX_ARG(name)), *ga, *gb);
    } else if (!onx_message_equal(ONX_KIND_ATTRIBUTE, a, b)) {
        onx_str from = attribute_text(d, a), to = attribute_text(d, b);
        bool same = onx_str_equal(from, to);
        cli_diff_say(d, '~', where, name, same ? onx_str_of("not alike") : from, same ? onx_str_of("") : to);
    }
}

static void diff_attributes(cli_diff *d, onx_str where, onx_attribute **a, uint32_t a_count, onx_attribute **b,
                            uint32_t b_count)
{
    attribute_lists lists = { { a, b } };
    cli_pairs pairs;
    if ((a_count == 0 && b_count == 0) || !cli_pairs_new(d, a_count, b_count, &pairs))
        return;
    cli_pairs_match(d, &pairs, attribute_key, &lists);
    for (uint32_t i = 0; i < a_count; i++) {
        if (pairs.of_a[i] == CLI_NO_PAIR)
            cli_diff_say(d, '-', where, onx_view(a[i]->name), attribute_text(d, a[i]), onx_str_of(""));
        else
            diff_attribute(d, where, a[i], b[pairs.of_a[i]]);
    }
    for (uint32_t i = 0; i < b_count; i++)
        if (pairs.of_b[i] == CLI_NO_PAIR)
            cli_diff_say(d, '+', where, onx_view(b[i]->name), onx_str_of(""), attribute_text(d, b[i]));
}

/* ---- nodes ---- */

typedef struct node_lists {
    cli_diff *d;
    onx_node **list[2];
} node_lists;

static onx_str node_name(const void *lists, int side, uint32_t index)
{
    return onx_view(((const node_lists *)lists)->list[side][index]->name);
}

static onx_str node_output(const void *lists, int side, uint32_t index)
{
    const onx_node *n = ((const node_lists *)lists)->list[side][index];
    for (uint32_t i = 0; i < n->output_count; i++)
        if (onx_view(n->output[i]).len)
            return onx_view(n->output[i]);
    return onx_str_of("");
}

/* Matches nodes that compute the same although their names and outputs were renamed. */
static onx_str node_operator(const void *lists, int side, uint32_t index)
{
    return onx_view(((const node_lists *)lists)->list[side][index]->op_type);
}

static onx_str node_title(cli_diff *d, const onx_node *n)
{
    node_lists one = { d, { (onx_node **)(const void *)&n, NULL } };
    onx_str name = onx_view(n->name).len ? onx_view(n->name) : node_output(&one, 0, 0);
    return cli_diff_format(d, "\"%.*s\" (%.*s)", ONX_ARG(name), ONX_ARG(onx_view(n->op_type)));
}

static void diff_names(cli_diff *d, onx_str where, const char *what, onx_bytes *a, uint32_t a_count, onx_bytes *b,
                       uint32_t b_count)
{
    uint32_t most = a_count > b_count ? a_count : b_count;
    onx_str none = onx_str_of("");
    for (uint32_t i = 0; i < most; i++) {
        onx_str x = i < a_count ? onx_view(a[i]) : none, y = i < b_count ? onx_view(b[i]) : none;
        onx_str name = cli_diff_format(d, "%s[%u]", what, i);
        if (i >= a_count)
            cli_diff_say(d, '+', where, name, none, y);
        else if (i >= b_count)
            cli_diff_say(d, '-', where, name, x, none);
        else if (!onx_str_equal(x, y))
            cli_diff_say(d, '~', where, name, cli_diff_format(d, "\"%.*s\"", ONX_ARG(x)),
                         cli_diff_format(d, "\"%.*s\"", ONX_ARG(y)));
    }
}

static void diff_node(cli_diff *d, onx_str where, const onx_node *a, const onx_node *b)
{
    if (onx_message_equal(ONX_KIND_NODE, a, b))
        return;
    const onx_node_extra *x = onx_node_more(a), *y = onx_node_more(b);
    onx_str place = cli_diff_format(d, "%.*s %.*s", ONX_ARG(where), ONX_ARG(node_title(d, a)));
    cli_diff_text(d, place, "name", a->name, b->name);
    cli_diff_text(d, place, "op_type", a->op_type, b->op_type);
    cli_diff_text(d, place, "domain", a->domain, b->domain);
    cli_diff_text(d, place, "overload", x->overload, y->overload);
    cli_diff_text(d, place, "doc_string", x->doc_string, y->doc_string);
    diff_names(d, place, "input", a->input, a->input_count, b->input, b->input_count);
    diff_names(d, place, "output", a->output, a->output_count, b->output, b->output_count);
    diff_attributes(d, place, a->attribute, a->attribute_count, b->attribute, b->attribute_count);
    cli_diff_entries(d, place, x->metadata_props, x->metadata_props_count, y->metadata_props, y->metadata_props_count);
    DIFF_REST(d, place, NODE_DEVICE_CONFIGURATION, x, y, device_configurations);
    cli_diff_unknown(d, place, a->extra, b->extra);
}

static void diff_nodes(cli_diff *d, onx_str where, onx_node **a, uint32_t a_count, onx_node **b, uint32_t b_count)
{
    node_lists lists = { d, { a, b } };
    cli_pairs pairs;
    if (!cli_pairs_new(d, a_count, b_count, &pairs))
        return;
    cli_pairs_match(d, &pairs, node_name, &lists);
    cli_pairs_match(d, &pairs, node_output, &lists);
    if (a_count == b_count)
        cli_pairs_match(d, &pairs, node_operator, &lists);
    onx_str none = onx_str_of("");
    const onx_node *const around[2] = { d->node[0], d->node[1] };
    for (uint32_t i = 0; i < a_count; i++) {
        d->node[0] = a[i];
        d->node[1] = pairs.of_a[i] == CLI_NO_PAIR ? NULL : b[pairs.of_a[i]];
        if (!d->node[1])
            cli_diff_say(d, '-', where, node_title(d, a[i]), none, none);
        else
            diff_node(d, where, a[i], d->node[1]);
    }
    d->node[0] = NULL;
    for (uint32_t i = 0; i < b_count; i++) {
        d->node[1] = b[i];
        if (pairs.of_b[i] == CLI_NO_PAIR)
            cli_diff_say(d, '+', where, node_title(d, b[i]), none, none);
    }
    d->node[0] = around[0];
    d->node[1] = around[1];
    if (!in_order(&pairs))
        cli_diff_say(d, '~', where, none, onx_str_of("another order"), none);
}

/* ---- graphs and functions ---- */

static onx_str below(cli_diff *d, onx_str where, const char *field)
{
    return cli_diff_format(d, "%.*s.%s", ONX_ARG(where), field);
}

void cli_diff_graph(cli_diff *d, onx_str where, const onx_graph *a, const onx_graph *b)
{
    cli_diff_text(d, where, "name", a->name, b->name);
    cli_diff_text(d, where, "doc_string", a->doc_string, b->doc_string);
    diff_values(d, below(d, where, "input"), true, a->input, a->input_count, b->input, b->input_count);
    diff_values(d, below(d, where, "output"), true, a->output, a->output_count, b->output, b->output_count);
    diff_nodes(d, below(d, where, "node"), a->node, a->node_count, b->node, b->node_count);
    diff_initializers(d, below(d, where, "initializer"), a, b);
    DIFF_REST(d, below(d, where, "sparse_initializer"), SPARSE_TENSOR, a, b, sparse_initializer);
    diff_values(d, below(d, where, "value_info"), false, a->value_info, a->value_info_count, b->value_info,
                b->value_info_count);
    DIFF_REST(d, below(d, where, "quantization_annotation"), TENSOR_ANNOTATION, a, b, quantization_annotation);
    cli_diff_entries(d, below(d, where, "metadata_props"), a->metadata_props, a->metadata_props_count,
                     b->metadata_props, b->metadata_props_count);
    cli_diff_unknown(d, where, a->extra, b->extra);
}

void cli_diff_function(cli_diff *d, onx_str where, const onx_function *a, const onx_function *b)
{
    cli_diff_text(d, where, "doc_string", a->doc_string, b->doc_string);
    cli_diff_opsets(d, below(d, where, "opset_import"), a->opset_import, a->opset_import_count, b->opset_import,
                    b->opset_import_count);
    diff_names(d, where, "input", a->input, a->input_count, b->input, b->input_count);
    diff_names(d, where, "output", a->output, a->output_count, b->output, b->output_count);
    diff_names(d, where, "attribute", a->attribute, a->attribute_count, b->attribute, b->attribute_count);
    diff_attributes(d, below(d, where, "attribute_proto"), a->attribute_proto, a->attribute_proto_count,
                    b->attribute_proto, b->attribute_proto_count);
    diff_nodes(d, below(d, where, "node"), a->node, a->node_count, b->node, b->node_count);
    diff_values(d, below(d, where, "value_info"), false, a->value_info, a->value_info_count, b->value_info,
                b->value_info_count);
    cli_diff_entries(d, below(d, where, "metadata_props"), a->metadata_props, a->metadata_props_count,
                     b->metadata_props, b->metadata_props_count);
    cli_diff_unknown(d, where, a->extra, b->extra);
}
