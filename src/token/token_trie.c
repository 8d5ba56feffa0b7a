/* token_trie.c - a trie: nodes are in one array, level by level, so that the children of a node are consecutive. */
#include "token/token.h"

#include <stdlib.h>

static int by_key(const void *a, const void *b)
{
    const onxi_trie_entry *x = a, *y = b;
    const size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
    const int order = memcmp(x->key.ptr, y->key.ptr, n);
    if (order)
        return order;
    if (x->key.len != y->key.len)
        return x->key.len < y->key.len ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Entries `begin` .. `end` - 1 share their first `depth` bytes, which lead to the node. */
typedef struct span {
    uint32_t begin, end, depth;
} span;

typedef struct builder {
    onx_arena *arena;
    const onxi_trie_entry *entries;
    onxi_trie_node *nodes;
    span *spans; /* per node */
    uint32_t count, node_room, span_room;
} builder;

static onx_status add_node(builder *b, uint8_t byte, span s)
{
    if (b->count == INT32_MAX || !ONXI_GROW_IN(b->arena, b->nodes, b->node_room, (uint64_t)b->count + 1) ||
        !ONXI_GROW_IN(b->arena, b->spans, b->span_room, (uint64_t)b->count + 1))
        return ONX_E_MEMORY;
    b->nodes[b->count] = (onxi_trie_node){ .value = -1, .byte = byte };
    b->spans[b->count++] = s;
    return ONX_OK;
}

static onx_status open_node(builder *b, uint32_t node)
{
    const span s = b->spans[node];
    uint32_t at = s.begin;
    for (; at < s.end && b->entries[at].key.len == s.depth; at++)
        b->nodes[node].value = (int32_t)b->entries[at].value;
    b->nodes[node].first = b->count;
    while (at < s.end) {
        const char byte = b->entries[at].key.ptr[s.depth];
        uint32_t end = at + 1;
        while (end < s.end && b->entries[end].key.ptr[s.depth] == byte)
            end++;
        ONX_TRY(add_node(b, (uint8_t)byte, (span){ at, end, s.depth + 1 }));
        b->nodes[node].count++;
        at = end;
    }
    return ONX_OK;
}

onx_status onxi_trie_make(onx_arena *arena, onxi_trie_entry *entries, uint32_t count, onxi_trie *out)
{
    onx_arena *scratch;
    out->nodes = NULL;
    if (!count)
        return ONX_OK;
    qsort(entries, count, sizeof *entries, by_key);
    ONX_TRY(onx_arena_new(arena->cx, &scratch));
    builder b = { .arena = scratch, .entries = entries };
    onx_status status = add_node(&b, 0, (span){ 0, count, 0 });
    for (uint32_t i = 0; status == ONX_OK && i < b.count; i++)
        status = open_node(&b, i);
    if (status == ONX_OK && !(out->nodes = ONXI_ARRAY(arena, onxi_trie_node, b.count)))
        status = ONX_E_MEMORY;
    if (status == ONX_OK)
        memcpy(out->nodes, b.nodes, b.count * sizeof *b.nodes);
    onx_arena_free(scratch);
    return status;
}

size_t onxi_trie_longest(const onxi_trie *trie, onx_str text, uint32_t *value_out)
{
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; trie->nodes && i < text.len; i++) {
        node = onxi_trie_step(trie, node, (uint8_t)text.ptr[i]);
        if (!node)
            break;
        if (trie->nodes[node].value >= 0) {
            longest = i + 1;
            *value_out = (uint32_t)trie->nodes[node].value;
        }
    }
    return longest;
}
