/* ir_sort.c - sorts the nodes of graphs, subgraphs and functions topologically. Lists that are sorted already are not
 * changed. */
#include "ir/ir.h"

typedef struct names {
    onx_str *list;
    size_t count, room;
} names;

typedef struct sorter {
    onx_ctx *cx;
    onx_arena *arena;   /* of the result */
    onx_arena *scratch; /* of temporary data */
    names *reads;       /* values that subgraphs of the enclosing node read from outside; NULL: not needed */
    onxi_cycle cycle;   /* the first cycle found */
    unsigned depth, limit;
} sorter;

typedef struct body {
    onx_node *const *nodes;
    uint32_t count;
    onx_node **copy;  /* of the list, with replaced nodes; NULL: no node is replaced */
    uint32_t *order;  /* NULL: the order does not change */
    names reads;      /* the values that all nodes read, in node order, including those that subgraphs capture */
    size_t *start;    /* the first read of each node in this list, and the end */
    onxi_dict makers; /* value name to the index of the node that produces it */
} body;

static bool add_name(sorter *s, names *to, onx_str name)
{
    if (!name.len)
        return true;
    if (!ONXI_GROW_IN(s->scratch, to->list, to->room, (uint64_t)to->count + 1))
        return false;
    to->list[to->count++] = name;
    return true;
}

/* ---- one list of nodes ---- */

static onx_status replace_graph(void *user, const onx_visit *at, const void **out);

static bool has_subgraphs(const onx_node *node)
{
    uint32_t n;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_attribute_value(node->attribute[i], ONX_SLOT_G, &n) ||
            onx_attribute_value(node->attribute[i], ONX_SLOT_GRAPHS, &n))
            return true;
    return false;
}

/* Collects the reads of every node; nodes whose subgraphs change are replaced. */
static onx_status collect_reads(sorter *s, body *b)
{
    b->start = ONXI_ARRAY(s->scratch, size_t, (size_t)b->count + 1);
    if (!b->start)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < b->count; i++) {
        const onx_node *node = b->nodes[i];
        const void *now = node;
        b->start[i] = b->reads.count;
        for (uint32_t k = 0; k < node->input_count; k++)
            if (!add_name(s, &b->reads, onx_view(node->input[k])))
                return ONX_E_MEMORY;
        if (!has_subgraphs(node))
            continue;
        names *around = s->reads;
        s->reads = &b->reads;
        onx_status status = onxi_message_rewrite(s->arena, ONX_KIND_NODE, node, ONX_KIND_GRAPH, replace_graph, s, &now);
        s->reads = around;
        ONX_TRY(status);
        if (now == node)
            continue;
        if (!b->copy) {
            b->copy = ONXI_ARRAY(s->arena, onx_node *, (size_t)onxi_list_room(b->count));
            if (!b->copy)
                return ONX_E_MEMORY;
            memcpy(b->copy, b->nodes, b->count * sizeof *b->copy);
            b->nodes = b->copy;
        }
        b->copy[i] = (onx_node *)(uintptr_t)now;
    }
    b->start[b->count] = b->reads.count;
    return ONX_OK;
}

static onx_status collect_makers(sorter *s, body *b)
{
    b->makers = onxi_dict_in_arena(s->scratch);
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t k = 0; k < b->nodes[i]->output_count; k++) {
            onx_str name = onx_view(b->nodes[i]->output[k]);
            if (name.len && !onxi_dict_at(&b->makers, name, i, NULL))
                return ONX_E_MEMORY;
        }
    return ONX_OK;
}

/* The node that produces the value, or ONXI_NO_ENTRY. */
static uint32_t maker_of(const body *b, size_t read)
{
    const onxi_dict_entry *e = onxi_dict_find(&b->makers, b->reads.list[read]);
    return e ? e->value : ONXI_NO_ENTRY;
}

/* Describes a cycle, the nodes of `path`: next[node] - 1 is the read that leads from a node to the next one; the last
 * node leads to the first. */
static onx_status note_cycle(sorter *s, const body *b, const uint32_t *path, uint32_t count, const size_t *next)
{
    enum { NAMED = 8 };
    onx_str text = b->reads.list[next[path[count - 1]] - 1];
    s->cycle.node = b->nodes[path[0]];
    for (uint32_t i = 0; i < count && i < NAMED; i++)
        text = onxi_arena_printf(s->arena, "%.*s%s needs %.*s", ONX_ARG(text), i ? ", which" : "",
                                 ONX_ARG(b->reads.list[next[path[i]] - 1]));
    if (count > NAMED)
        text = onxi_arena_printf(s->arena, "%.*s, and so on: %u nodes", ONX_ARG(text), count);
    s->cycle.text = text;
    return text.len ? ONX_OK : ONX_E_MEMORY;
}

/* Does every node come after all its producers? */
static bool is_sorted(const body *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        for (size_t k = b->start[i]; k < b->start[i + 1]; k++) {
            const uint32_t maker = maker_of(b, k);
            if (maker != ONXI_NO_ENTRY && maker >= i)
                return false;
        }
    return true;
}

enum { NOT_MET, WAITING, DONE };

/* Iterative depth-first search: emits the missing producers of each node before the node. A node on a cycle is emitted
 * where the cycle is detected, since no order is correct for it. */
static onx_status order(sorter *s, body *b)
{
    size_t *next = ONXI_ARRAY(s->scratch, size_t, b->count); /* the next read to follow, per node */
    uint32_t *stack = ONXI_ARRAY(s->scratch, uint32_t, b->count), depth, done = 0;
    uint8_t *met = ONXI_ARRAY(s->scratch, uint8_t, b->count);
    uint32_t *sorted = ONXI_ARRAY(s->arena, uint32_t, b->count);
    if (!next || !stack || !met || !sorted)
        return ONX_E_MEMORY;
    memcpy(next, b->start, b->count * sizeof *next);
    for (uint32_t i = 0; i < b->count; i++) {
        if (met[i])
            continue;
        met[i] = WAITING;
        stack[0] = i;
        for (depth = 1; depth;) {
            const uint32_t node = stack[depth - 1];
            if (next[node] == b->start[node + 1]) {
                sorted[done++] = node;
                met[node] = DONE;
                depth--;
                continue;
            }
            const uint32_t maker = maker_of(b, next[node]++);
            if (maker != ONXI_NO_ENTRY && met[maker] == WAITING && !s->cycle.node) {
                uint32_t from = depth - 1;
                while (stack[from] != maker)
                    from--;
                ONX_TRY(note_cycle(s, b, stack + from, depth - from, next));
            }
            if (maker != ONXI_NO_ENTRY && met[maker] == NOT_MET) {
                met[maker] = WAITING;
                stack[depth++] = maker;
            }
        }
    }
    b->order = sorted;
    return ONX_OK;
}

/* ---- a fast test for lists that are sorted already, without a table of all names ---- */

/* A Bloom filter: a name sets three bits in each of two words; other names seldom have the same bits. */
typedef struct filter {
    onxi_secret secret;
    uint64_t *words, mask;
} filter;

typedef struct mark {
    uint64_t *a, *b, bits_a, bits_b;
} mark;

static mark mark_of(const filter *f, onx_str name)
{
    const uint64_t h = onxi_hash(f->secret, name.ptr, name.len), more = onxi_hash_word(f->secret, h);
    return (mark){ &f->words[h & f->mask], &f->words[more & f->mask],
                   UINT64_C(1) << (h >> 46 & 63) | UINT64_C(1) << (h >> 52 & 63) | UINT64_C(1) << (h >> 58),
                   UINT64_C(1) << (more >> 46 & 63) | UINT64_C(1) << (more >> 52 & 63) | UINT64_C(1) << (more >> 58) };
}

/* Does a node read an output of its own or of a later node? May return true by mistake, but never false. */
static bool seems_unsorted(const body *b, const filter *f)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const onx_node *node = b->nodes[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            const mark m = mark_of(f, onx_view(node->input[k]));
            *m.a |= m.bits_a;
            *m.b |= m.bits_b;
        }
        for (uint32_t k = 0; k < node->output_count; k++) {
            const onx_str name = onx_view(node->output[k]);
            const mark m = mark_of(f, name);
            if (name.len && (*m.a & m.bits_a) == m.bits_a && (*m.b & m.bits_b) == m.bits_b)
                return true;
        }
    }
    return false;
}

/* *out: the list is known to be sorted. Reads of subgraphs are not considered here. */
static onx_status looks_sorted(sorter *s, const body *b, bool *out)
{
    enum { FEW = 1000 }; /* for shorter lists the test does not pay off */
    filter f = { .secret = onxi_ctx_secret(s->cx), .mask = 1023 };
    uint64_t reads = 0;
    *out = false;
    for (uint32_t i = 0; i < b->count; i++) {
        reads += b->nodes[i]->input_count;
        if (has_subgraphs(b->nodes[i]))
            return ONX_OK;
    }
    if (b->count < FEW)
        return ONX_OK;
    while (f.mask < reads)
        f.mask = f.mask << 1 | 1;
    if (!(f.words = ONXI_ARRAY(s->scratch, uint64_t, f.mask + 1)))
        return ONX_E_MEMORY;
    *out = !seems_unsorted(b, &f);
    return ONX_OK;
}

static onx_status sort_body(sorter *s, body *b)
{
    bool sorted = false;
    if (!s->reads) /* otherwise the producers are needed */
        ONX_TRY(looks_sorted(s, b, &sorted));
    if (sorted)
        return ONX_OK;
    ONX_TRY(collect_reads(s, b));
    ONX_TRY(collect_makers(s, b));
    return is_sorted(b) ? ONX_OK : order(s, b);
}

onx_status onxi_nodes_order(onx_arena *arena, onx_node *const *nodes, uint32_t count, onxi_cycle *cycle, uint32_t **out)
{
    sorter s = { .cx = arena->cx, .arena = arena, .limit = onx_ctx_limits(arena->cx).depth };
    body b = { .nodes = nodes, .count = count };
    *out = NULL;
    ONX_TRY(onx_arena_new(arena->cx, &s.scratch));
    onx_status status = sort_body(&s, &b);
    onx_arena_free(s.scratch);
    *out = b.order;
    if (cycle)
        *cycle = s.cycle;
    return status;
}

/* ---- graphs and functions ---- */

/* The new list of nodes; NULL if it does not change. */
static onx_status new_list(sorter *s, const body *b, onx_node ***out)
{
    *out = b->copy;
    if (!b->order)
        return ONX_OK;
    *out = ONXI_ARRAY(s->arena, onx_node *, (size_t)onxi_list_room(b->count));
    if (!*out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < b->count; i++)
        (*out)[i] = b->nodes[b->order[i]];
    return ONX_OK;
}

/* Values that the graph captures are added to the reads of the node around it. */
static onx_status pass_on(sorter *s, const onx_graph *g, const body *b)
{
    onxi_dict own = onxi_dict_in_arena(s->scratch);
    for (uint32_t i = 0; i < g->input_count; i++)
        if (!onxi_dict_at(&own, onx_view(g->input[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!onxi_dict_at(&own, onx_view(g->initializer[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->sparse_initializer_count; i++)
        if (g->sparse_initializer[i]->values &&
            !onxi_dict_at(&own, onx_view(g->sparse_initializer[i]->values->name), 0, NULL))
            return ONX_E_MEMORY;
    for (size_t i = 0; i < b->reads.count; i++)
        if (maker_of(b, i) == ONXI_NO_ENTRY && !onxi_dict_find(&own, b->reads.list[i]) &&
            !add_name(s, s->reads, b->reads.list[i]))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->output_count; i++) { /* a branch may return a captured value directly */
        onx_str name = onx_view(g->output[i]->name);
        if (!onxi_dict_find(&b->makers, name) && !onxi_dict_find(&own, name) && !add_name(s, s->reads, name))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

static onx_status replace_graph(void *user, const onx_visit *at, const void **out)
{
    sorter *s = user;
    const onx_graph *g = at->message;
    body b = { .nodes = g->node, .count = g->node_count };
    if (s->depth == s->limit)
        return onxi_fail(s->cx, ONX_E_LIMIT, ONXI_NOWHERE, "subgraphs are nested more than %u deep (limit depth)",
                         s->limit);
    s->depth++;
    onx_status status = sort_body(s, &b);
    s->depth--;
    if (status == ONX_OK && s->reads)
        status = pass_on(s, g, &b);
    onx_node **list = NULL;
    if (status == ONX_OK)
        status = new_list(s, &b, &list);
    if (status != ONX_OK || !list)
        return status;
    onx_graph *copy = ONXI_NEW(s->arena, onx_graph);
    if (!copy)
        return ONX_E_MEMORY;
    *copy = *g;
    copy->node = list;
    *out = copy;
    return ONX_OK;
}

static onx_status replace_function(void *user, const onx_visit *at, const void **out)
{
    sorter *s = user;
    const onx_function *f = at->message;
    body b = { .nodes = f->node, .count = f->node_count };
    onx_node **list = NULL;
    ONX_TRY(sort_body(s, &b));
    ONX_TRY(new_list(s, &b, &list));
    if (!list)
        return ONX_OK;
    onx_function *copy = ONXI_NEW(s->arena, onx_function);
    if (!copy)
        return ONX_E_MEMORY;
    *copy = *f;
    copy->node = list;
    *out = copy;
    return ONX_OK;
}

onx_status onxi_message_sort(onx_arena *arena, onx_kind kind, const void *message, const void **out, onxi_cycle *cycle)
{
    sorter s = { .cx = arena->cx, .arena = arena, .limit = onx_ctx_limits(arena->cx).depth };
    *out = message;
    ONX_TRY(onx_arena_new(arena->cx, &s.scratch));
    /* Bodies of functions come first, then the graphs in their attributes, which are visited once more unchanged. */
    onx_status status = onxi_message_rewrite(arena, kind, message, ONX_KIND_FUNCTION, replace_function, &s, out);
    if (status == ONX_OK)
        status = onxi_message_rewrite(arena, kind, *out, ONX_KIND_GRAPH, replace_graph, &s, out);
    onx_arena_free(s.scratch);
    *cycle = s.cycle;
    return status;
}

/* A node with sorted subgraphs is a copy with the same outputs. */
typedef struct cycle_search {
    onx_ctx *cx;
    const onxi_cycle *cycle;
    const char *note; /* text for a warning; NULL: report an error */
} cycle_search;

static onx_status tell_cycle(void *user, const onx_visit *at)
{
    const cycle_search *search = user;
    if (at->kind != ONX_KIND_NODE || ((const onx_node *)at->message)->output != search->cycle->node->output)
        return ONX_OK;
    char path[1024];
    const size_t len = onx_visit_path(at, path, sizeof path);
    const onx_where where = ONXI_AT_PATH(onx_str_make(path, len < sizeof path ? len : sizeof path - 1));
    if (!search->note)
        return onxi_fail(search->cx, ONX_E_INVALID, where,
                         "the node depends on what it makes itself, so there is no order: %.*s",
                         ONX_ARG(search->cycle->text));
    onxi_warn(search->cx, ONX_WARNING, NULL, where, "the graph has a cycle, %s: %.*s", search->note,
              ONX_ARG(search->cycle->text));
    return ONX_OK;
}

static onx_status warn_of_calls(const onx_doc *doc, onx_arena *scratch)
{
    const onx_model *model = doc->kind == ONX_KIND_MODEL ? doc->root : NULL;
    onxi_functions functions;
    uint32_t index;
    if (!model || !model->functions_count)
        return ONX_OK;
    ONX_TRY(onxi_functions_index(scratch, model->functions, model->functions_count, &functions));
    ONX_TRY(onxi_functions_endless(scratch, &functions, &index));
    if (index != ONXI_NO_ENTRY)
        onxi_warn(doc->cx, ONX_WARNING, NULL, ONXI_AT_PATH(onxi_arena_printf(scratch, "functions[%u]", index)),
                  "function %.*s calls itself: its body has no end", ONX_ARG(onx_view(functions.list[index]->name)));
    return ONX_OK;
}

onx_status onxi_doc_warn_of_cycle(onx_doc *doc, const char *note)
{
    const void *now;
    onxi_cycle cycle;
    onx_arena *scratch;
    const onxi_diag_mark before = onxi_diag_here(doc->cx);
    ONX_TRY(onx_arena_new(doc->cx, &scratch));
    onx_status status = onxi_message_sort(scratch, doc->kind, doc->root, &now, &cycle);
    if (status == ONX_OK && cycle.node) {
        cycle_search search = { doc->cx, &cycle, note };
        status = onx_message_walk(doc->cx, doc->kind, doc->root, tell_cycle, &search);
    }
    if (status == ONX_OK)
        status = warn_of_calls(doc, scratch);
    onx_arena_free(scratch);
    if (status != ONX_E_LIMIT)
        return status;
    onxi_diag_rewind(doc->cx, before); /* nesting beyond the limit is reported elsewhere */
    return ONX_OK;
}

onx_status onx_doc_sort(onx_doc *doc, bool *changed_out)
{
    if (changed_out)
        *changed_out = false;
    ONXI_NEED(NULL, doc);
    const void *now;
    onxi_cycle cycle;
    ONX_TRY(onxi_message_sort(doc->arena, doc->kind, doc->root, &now, &cycle));
    if (cycle.node) {
        cycle_search search = { doc->cx, &cycle, NULL };
        return onx_message_walk(doc->cx, doc->kind, doc->root, tell_cycle, &search);
    }
    if (changed_out)
        *changed_out = now != doc->root;
    doc->root = (void *)(uintptr_t)now;
    return ONX_OK;
}
