/* check_names.c - rules N: value names, which are interned, and their meanings in the open scopes. */
#include "check/check.h"

const onx_rule onxi_check_rules_names[] = {
    { "N-01", ONX_SHOULD, ONX_RULE_OFF, ONX_BY_CHECK, ONX_RULE_NOTE, NULL,
      "IR.md: Names Within a Graph (older documents said MUST)",
      "Names are C identifiers (letter or underscore first, then letters, digits, underscores)",
      "value name `layer/0:out`" },
    { "N-02", ONX_SHOULD, ONX_RULE_OFF, ONX_BY_CHECK, ONX_RULE_NOTE, NULL,
      "IR.md: Static tensor shapes (earlier copies said MUST)", "Dimension variables are C identifiers",
      "dimension `batch*2`" },
    { "N-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Names Within a Graph",
      "Non-empty node names are unique within a graph", "two nodes named `n`" },
    { "N-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Names Within a Graph",
      "Graph names are unique within the model's domain, subgraphs included", "both branches of an If named `t`" },
    { "N-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Attributes",
      "An attribute name differs from the other attributes, the inputs and the outputs of its node",
      "attribute `x` on a node with input `x`" },
    { "N-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, "G-05", "IR.md: Names Within a Graph",
      "The value namespace is shared by node inputs and outputs, named tensors, graph inputs and graph outputs",
      "initializer `x` and unrelated node output `x`" },
    { "N-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, "ND-04", "IR.md: Operators",
      "An operator name is unique within its domain and is compared with case", "op_type `relu`" },
    { "N-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Names Within a Graph; Static tensor shapes",
      "Dimension variables form one namespace for the whole model, subgraphs included",
      "`N` required to be both 2 and 3" },
    { "N-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Optional Inputs and Outputs",
      "The empty name stands for an omitted optional input or output and never refers to a value",
      "graph input named with the empty string" },
    { "N-10", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Operators (case sensitive)",
      "Names are compared byte by byte, with no case folding and no Unicode normalisation",
      "composed and decomposed `é` are two names" },
    { "N-11", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "protobuf string type",
      "Names are valid UTF-8 and contain no zero byte", "value name `a\\0b`" },
    { "N-12", ONX_SHOULD, 0, ONX_BY_REGISTRY, ONX_RULE_NOTE, NULL, "OpConventions.md",
      "Schema authors write attributes in lower case with underscores, single-letter inputs and outputs in capitals, longer ones in lower case, bias `B`, weight `W`, `axis` for one axis and `axes` for several",
      "attribute `MyAttr` in a custom schema" },
    { 0 }
};

bool onxi_check_is_identifier(onx_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.len > 0;
}

/* ---- interning ---- */

enum { NAME_PLAIN, NAME_ODD /* contains bytes above 127 or zero bytes, and has to be checked */ };

/* Hashes and checks the bytes in one pass, because names are long enough for a second pass to be costly. */
static inline uint64_t hash_name(const char *p, size_t len, onxi_secret secret, int *odd)
{
    const uint64_t high = 0x8080808080808080u, ones = 0x0101010101010101u;
    uint64_t h = secret.a ^ len, w, seen = 0;
    if (len >= 8) {
        for (size_t i = 0; i + 8 < len; i += 8) {
            w = onxi_load64(p + i);
            seen |= w | ((w - ones) & ~w);
            h = onxi_hash_fold(h ^ w, secret.b ^ 0x9e3779b97f4a7c15u);
        }
        w = onxi_load64(p + len - 8); /* may overlap the previous word */
    } else if (len >= 4) {
        w = onxi_load32(p) | (uint64_t)onxi_load32(p + len - 4) << 32;
    } else {
        const unsigned char *u = (const unsigned char *)p;
        w = len ? (ones & ~(uint64_t)0xffffff) | u[0] | (uint64_t)u[len / 2] << 8 | (uint64_t)u[len - 1] << 16 : ones;
    }
    seen |= w | ((w - ones) & ~w);
    h = onxi_hash_fold(h ^ w, secret.b ^ 0xbf58476d1ce4e5b9u);
    *odd = seen & high ? NAME_ODD : NAME_PLAIN;
    return h;
}

/* Reserves room for `count` names in all; false, with a diagnostic, when out of memory. */
static bool reserve(onxi_check *k, uint64_t count)
{
    onxi_check_names *t = &k->names;
    return ONXI_CHECK_GROW(k, t->meaning, t->room, count) &&
           (onxi_table_reserve(&t->table, count) || !onxi_check_failed(k, NULL));
}

static uint64_t expected_names(const onxi_check *k)
{
    const onx_graph *graph = k->model ? k->model->graph : NULL;
    if (!graph)
        return 64;
    return (uint64_t)graph->node_count + graph->node_count / 16 + graph->initializer_count + graph->input_count + 64;
}

onx_status onxi_check_names_open(onxi_check *k)
{
    uint64_t room = expected_names(k);
    if (room > 0x20000000)
        room = 0x20000000;
    k->names.table = onxi_table_on_heap(k->cx);
    return reserve(k, room) ? ONX_OK : ONX_E_MEMORY;
}

void onxi_check_names_close(onxi_check *k)
{
    onxi_check_names *t = &k->names;
    onxi_release(k->cx, t->meaning, (size_t)t->room * sizeof *t->meaning);
    if (t->table.cx)
        onxi_table_free(&t->table);
    onxi_release(k->cx, t->log, (size_t)t->log_room * sizeof *t->log);
    onxi_release(k->cx, t->saved, (size_t)t->saved_room * sizeof *t->saved);
    onxi_release(k->cx, t->pending, (size_t)t->pending_room * sizeof *t->pending);
    memset(t, 0, sizeof *t);
}

static void odd_name(onxi_check *k, const onxi_check_at *at, onx_str name)
{
    size_t valid = onxi_utf8_valid(name);
    k->not_utf8 |= valid < name.len;
    if (valid < name.len)
        onxi_check_find(
            k, at, "N-11",
            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)), .expected = onx_str_of("UTF-8") },
            "the name is not UTF-8 from byte %zu on", valid);
    else if (memchr(name.ptr, 0, name.len))
        onxi_check_find(k, at, "N-11", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                        "the name holds a zero byte");
}

static inline bool is_named(const onxi_check_meaning *m, onx_str name)
{
    return onxi_str_same(onx_view(m->name), name);
}

uint32_t onxi_check_name_find(const onxi_check *k, onx_str name)
{
    const onxi_check_names *t = &k->names;
    int odd;
    if (!name.len)
        return UINT32_MAX;
    uint32_t hash = (uint32_t)hash_name(name.ptr, name.len, t->table.secret, &odd);
    ONXI_TABLE_EACH (&t->table, hash, i)
        if (is_named(&t->meaning[i], name))
            return i;
    return UINT32_MAX;
}

static void check_new_name(onxi_check *k, const onxi_check_at *at, onx_str name, int odd)
{
    if (odd == NAME_ODD)
        odd_name(k, at, name);
    if (k->identifiers && !onxi_check_is_identifier(name))
        onxi_check_find(k, at, "N-01",
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)),
                                             .severity = k->flags & ONX_CHECK_STRICT ? ONX_RULE_ERROR : ONX_RULE_NOTE },
                        "the name is not a C identifier");
}

uint32_t onxi_check_name_intern(onxi_check *k, const onxi_check_at *at, onx_bytes bytes)
{
    onxi_check_names *t = &k->names;
    onx_str name = onx_view(bytes);
    int odd;
    uint32_t hash;
    size_t place = (bytes.bits >> 2) & (ONXI_AHEAD - 1);
    if (t->ahead[place].name.bits == bytes.bits) {
        hash = t->ahead[place].hash;
        odd = t->ahead[place].odd ? NAME_ODD : NAME_PLAIN;
    } else {
        hash = (uint32_t)hash_name(name.ptr, name.len, t->table.secret, &odd);
    }
    if (t->count >= t->table.limit && !reserve(k, (uint64_t)t->count + 1))
        return UINT32_MAX;
    uint32_t slot = hash;
    for (uint32_t i; (i = onxi_table_seek(&t->table, hash, &slot)) != ONXI_NO_ENTRY; slot++)
        if (is_named(&t->meaning[i], name))
            return i;
    if (t->count == t->room && !reserve(k, (uint64_t)t->count + 1))
        return UINT32_MAX;
    uint32_t id = t->count++;
    t->meaning[id] = (onxi_check_meaning){ .name = bytes };
    onxi_table_place(&t->table, hash, slot, id);
    if (odd == NAME_ODD || k->identifiers)
        check_new_name(k, at, name, odd);
    return id;
}

uint32_t onxi_check_name_read(onxi_check *k, const onxi_check_at *at, onx_bytes bytes)
{
    const onxi_check_names *t = &k->names;
    const onx_str name = onx_view(bytes);
    for (uint32_t i = 1; i <= ONXI_RECENT && i <= t->made; i++) {
        const uint32_t id = t->recent[(t->made - i) % ONXI_RECENT];
        if (is_named(&t->meaning[id], name))
            return id;
    }
    return onxi_check_name_intern(k, at, bytes);
}

uint32_t onxi_check_name_make(onxi_check *k, const onxi_check_at *at, onx_bytes bytes)
{
    const uint32_t id = onxi_check_name_intern(k, at, bytes);
    if (id != UINT32_MAX)
        k->names.recent[k->names.made++ % ONXI_RECENT] = id;
    return id;
}

uint32_t onxi_check_name_next(onxi_check *k, const onxi_check_at *at, onx_bytes bytes)
{
    onxi_check_names *t = &k->names;
    uint32_t id = t->next;
    if (id >= t->count || !is_named(&t->meaning[id], onx_view(bytes)))
        id = onxi_check_name_intern(k, at, bytes);
    if (id != UINT32_MAX)
        t->next = id + 1;
    return id;
}

static void prepare_hash(onxi_check *k, onx_bytes bytes)
{
    onxi_check_names *t = &k->names;
    onx_str name = onx_view(bytes);
    int odd;
    if (!bytes.bits)
        return;
    uint32_t hash = (uint32_t)hash_name(name.ptr, name.len, t->table.secret, &odd);
    size_t place = (bytes.bits >> 2) & (ONXI_AHEAD - 1);
    t->ahead[place].name = bytes;
    t->ahead[place].hash = hash;
    t->ahead[place].odd = odd == NAME_ODD;
    onxi_table_prefetch(&t->table, hash);
}

/* The slot has been loaded by now: prefetch the entry that it refers to. */
static void prepare_entry(onxi_check *k, onx_bytes bytes)
{
    onxi_check_names *t = &k->names;
    size_t place = (bytes.bits >> 2) & (ONXI_AHEAD - 1);
    if (!bytes.bits || t->ahead[place].name.bits != bytes.bits)
        return;
    uint32_t id = (uint32_t)t->table.slots[t->ahead[place].hash & t->table.mask];
    if (id)
        __builtin_prefetch(&t->meaning[id - 1]);
}

/* ---- node names: a separate namespace, in which only duplicates matter ---- */

/* The hashes of two node names are equal: are the names equal, too? This is rare, so an exact set is only built
 * then. */
static void report_twins(onxi_check *k, const onxi_check_at *at, const onxi_check_scope *scope)
{
    onxi_check_set *seen = onxi_check_set_new(k);
    for (uint32_t i = 0; i < scope->node_count; i++) {
        onx_str name = onx_view(scope->nodes[i]->name);
        uint32_t first;
        if (name.len && !onxi_check_set_add(k, seen, name, i, &first))
            onxi_check_find(k, ONXI_AT(ONXI_AT_ITEM(at, node, i, NODE, scope->nodes[i]), name), "N-03",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)),
                                                 .hint = onxi_check_text(k, "node %u has it, too", first) },
                            "another node of the graph has the same name");
    }
}

bool onxi_check_node_names_open(onxi_check *k, onxi_check_scope *scope)
{
    if (k->quick || scope->node_count < 2 || !scope->names || !onxi_check_wants(k, "N-03"))
        return true;
    scope->node_names = onxi_table_on_heap(k->cx);
    return onxi_table_reserve(&scope->node_names, scope->node_count) || !onxi_check_failed(k, NULL);
}

void onxi_check_node_names_close(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope)
{
    if (scope->node_names.slots)
        onxi_table_free(&scope->node_names);
    if (scope->twins)
        report_twins(k, at, scope);
}

/* One half of the hash selects the slot, the other half is stored instead of an index: names are not compared. */
static void note_node_name(onxi_check_scope *scope, uint64_t hash)
{
    uint32_t other = (uint32_t)hash >> 1;
    ONXI_TABLE_EACH (&scope->node_names, (uint32_t)(hash >> 32), i)
        if (i == other) {
            scope->twins = true;
            return;
        }
    onxi_table_add(&scope->node_names, (uint32_t)(hash >> 32), other);
}

/* ---- prefetching ---- */

/* Will onxi_check_name_read find the name without computing its hash? */
static bool will_be_recent(const onxi_check_names *t, onx_bytes bytes)
{
    const onx_str name = onx_view(bytes);
    for (uint32_t i = 1; i <= ONXI_RECENT && i <= t->coming_count; i++)
        if (onxi_str_same(onx_view(t->coming[(t->coming_count - i) % ONXI_RECENT]), name))
            return true;
    return false;
}

static void prepare_node(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t node)
{
    enum { MOST = 8 }; /* operands; further ones are looked up without prefetching */
    onxi_check_names *t = &k->names;
    const onx_node *n = scope->nodes[node];
    for (uint32_t i = 0; i < n->input_count && i < MOST; i++)
        if (!will_be_recent(t, n->input[i]))
            prepare_hash(k, n->input[i]);
    for (uint32_t i = 0; i < n->output_count && i < MOST; i++) {
        prepare_hash(k, n->output[i]);
        if (n->output[i].bits)
            t->coming[t->coming_count++ % ONXI_RECENT] = n->output[i];
    }
    onx_str name = onx_view(n->name);
    scope->node_hash[node % ONXI_LOOK] = 0;
    if (!scope->node_names.slots || !name.len)
        return;
    int odd;
    uint64_t hash = hash_name(name.ptr, name.len, k->names.table.secret, &odd) | 1;
    scope->node_hash[node % ONXI_LOOK] = hash;
    onxi_table_prefetch(&scope->node_names, (uint32_t)(hash >> 32));
    if (odd == NAME_ODD || k->identifiers)
        check_new_name(k, ONXI_AT(ONXI_AT_ITEM(at, node, node, NODE, n), name), name, odd);
}

void onxi_check_names_prepare_value(onxi_check *k, onx_value_info *const *list, uint32_t count, uint32_t at)
{
    enum { FAR = 8, NEAR = 4 };
    const onxi_check_names *t = &k->names;
    for (uint32_t i = at ? at + FAR - 1 : 0; i < at + FAR && i < count; i++) {
        const uint32_t likely = t->next + (i - at);
        if (likely >= t->count || !is_named(&t->meaning[likely], onx_view(list[i]->name)))
            prepare_hash(k, list[i]->name);
    }
    if (at + NEAR < count)
        prepare_entry(k, list[at + NEAR]->name);
}

void onxi_check_names_prepare(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t node)
{
    enum { FAR = 2 * ONXI_LOOK, TEXT = FAR - 2, NEAR = ONXI_LOOK / 2, MOST = 8 };
    if (node + FAR < scope->node_count)
        __builtin_prefetch(scope->nodes[node + FAR]);
    if (node + TEXT < scope->node_count) {
        const onx_node *n = scope->nodes[node + TEXT];
        if (n->input_count)
            __builtin_prefetch(onx_view(n->input[0]).ptr);
    }
    if (!node)
        for (uint32_t i = 0; i + 1 < ONXI_LOOK && i < scope->node_count; i++)
            prepare_node(k, at, scope, i);
    if (node + ONXI_LOOK - 1 < scope->node_count)
        prepare_node(k, at, scope, node + ONXI_LOOK - 1);
    if (node + NEAR < scope->node_count) {
        const onx_node *n = scope->nodes[node + NEAR];
        for (uint32_t i = 0; i < n->input_count && i < MOST; i++)
            prepare_entry(k, n->input[i]);
        for (uint32_t i = 0; i < n->output_count && i < MOST; i++)
            prepare_entry(k, n->output[i]);
    }
    if (scope->node_hash[node % ONXI_LOOK])
        note_node_name(scope, scope->node_hash[node % ONXI_LOOK]);
}

uint32_t onxi_check_token(onxi_check *k)
{
    return ++k->names.token;
}

/* ---- scopes ---- */

void onxi_check_enter(onxi_check *k, onxi_check_scope *scope, onxi_check_scope *up)
{
    scope->up = up;
    scope->serial = ++k->names.serial;
    scope->depth = up ? up->depth + 1 : 0;
    scope->log_start = k->names.log_count;
    scope->node = 0;
    scope->late = false;
}

static const char *rule_for_twice(const onxi_check_scope *scope, onxi_check_name_kind was, onxi_check_name_kind now)
{
    bool function = scope->role == ONXI_ROLE_FUNCTION, sub = scope->role == ONXI_ROLE_SUBGRAPH;
    if (now == ONXI_NAME_OUTPUT)
        return function ? "F-13" : was != ONXI_NAME_OUTPUT ? "G-05" : sub ? "S-11" : "G-04";
    if (now == ONXI_NAME_INPUT)
        return function ? "F-09" : "G-06";
    return "G-12";
}

static const char *what_is(onxi_check *k, const onxi_check_scope *scope, const onxi_check_meaning *m)
{
    while (scope && scope->serial != m->scope)
        scope = scope->up;
    switch ((onxi_check_name_kind)m->kind) {
    case ONXI_NAME_INPUT:
        return onxi_check_text(k, "input %u", m->index).ptr;
    case ONXI_NAME_INITIALIZER:
        return onxi_check_text(k, "initializer %u", m->index).ptr;
    case ONXI_NAME_SPARSE_INITIALIZER:
        return onxi_check_text(k, "sparse initializer %u", m->index).ptr;
    case ONXI_NAME_OUTPUT:
        if (scope && m->index < scope->node_count && scope->nodes[m->index]) {
            const onx_node *n = scope->nodes[m->index];
            const char *name = onxi_check_quote(k, onx_view(n->name)),
                       *type = onxi_check_quote(k, onx_view(n->op_type));
            if (*name)
                return onxi_check_text(k, "node %u \"%.80s\" (%.80s)", m->index, name, type).ptr;
            return onxi_check_text(k, "node %u (%.80s)", m->index, type).ptr;
        }
        return onxi_check_text(k, "node %u", m->index).ptr;
    default:
        return "nothing";
    }
}

static void twice(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name,
                  onxi_check_name_kind kind)
{
    const onxi_check_meaning *m = &k->names.meaning[name];
    bool given = (kind == ONXI_NAME_INITIALIZER || kind == ONXI_NAME_SPARSE_INITIALIZER) && m->kind == ONXI_NAME_INPUT;
    if (given && !(m->flags & ONXI_NAME_WITH_INITIALIZER)) {
        k->names.meaning[name].flags |= ONXI_NAME_WITH_INITIALIZER;
        return; /* an input with its default value; subgraphs check this case themselves */
    }
    const char *text = onxi_check_quote(k, onxi_check_name_text(k, name));
    onx_str hint = onxi_check_text(k, "%s already defines it", given ? "another initializer" : what_is(k, scope, m));
    onxi_check_find(k, at, given ? "G-12" : rule_for_twice(scope, (onxi_check_name_kind)m->kind, kind),
                    (onxi_check_detail){ .value = onx_str_of(text), .hint = hint }, "\"%s\" is defined a second time",
                    text);
}

static void hides(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name,
                  onxi_check_name_kind kind)
{
    const onxi_check_meaning *m = &k->names.meaning[name];
    const char *rule = kind == ONXI_NAME_OUTPUT ? "S-02" : kind == ONXI_NAME_INPUT ? "S-03" : "S-04";
    if (scope->role == ONXI_ROLE_ALGORITHM)
        rule = "TR-09";
    const char *text = onxi_check_quote(k, onxi_check_name_text(k, name));
    onx_str hint = onxi_check_text(k, "%s of the enclosing %s defines it", what_is(k, scope, m),
                                   scope->role == ONXI_ROLE_ALGORITHM                   ? "main graph"
                                   : m->depth == 0 && scope->root == ONXI_ROLE_FUNCTION ? "function"
                                                                                        : "graph");
    onxi_check_find(k, at, rule, (onxi_check_detail){ .value = onx_str_of(text), .hint = hint },
                    "\"%s\" is already visible from an enclosing scope", text);
}

/* A name that was read before is defined now: too late, or outside of the reader's scope. */
static void late(onxi_check *k, onxi_check_scope *scope, uint32_t name, onxi_check_name_kind kind, uint32_t index,
                 uint32_t pending)
{
    onxi_check_names *t = &k->names;
    onxi_check_pending *p = &t->pending[pending - 1];
    if (p->scope < scope->serial)
        return; /* read outside, defined inside: resolved when the outermost scope is closed */
    t->meaning[name].flags |= ONXI_NAME_USED;
    if (p->scope == scope->serial && kind == ONXI_NAME_OUTPUT) {
        p->definer = index;
        scope->late = true;
        return;
    }
    p->done = true;
    const char *text = onxi_check_quote(k, onxi_check_name_text(k, name));
    bool own = p->scope > scope->node_serial;
    onx_str hint = onxi_check_text(k, "node %u of the enclosing graph defines it", index);
    onxi_check_find(k, p->at, own ? "G-02" : "S-06",
                    (onxi_check_detail){ .value = onx_str_of(text), .hint = hint, .one_meaning = !own },
                    own ? "\"%s\" is an output of the node that holds this subgraph"
                        : "\"%s\" is defined only after the node that holds this subgraph",
                    text);
}

void onxi_check_define(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name,
                       onxi_check_name_kind kind, uint32_t index)
{
    onxi_check_names *t = &k->names;
    bool logged =
        !t->last || scope->up || k->notes; /* the log of the last scope is only needed to report unused values */
    if (name == UINT32_MAX || (logged && !ONXI_CHECK_GROW(k, t->log, t->log_room, t->log_count + 1)))
        return;
    onxi_check_meaning *m = &t->meaning[name];
    if (m->scope == scope->serial) {
        twice(k, at, scope, name, kind);
        return;
    }
    uint64_t entry = name;
    uint32_t pending = onxi_check_name_awaited(m) ? m->index : 0;
    bool outside = pending && t->pending[pending - 1].scope < scope->serial; /* waits for a definition in an outer
                                                                              * scope */
    if (m->scope || outside) {
        if (m->scope)
            hides(k, at, scope, name, kind);
        if (!ONXI_CHECK_GROW(k, t->saved, t->saved_room, t->saved_count + 1))
            return;
        t->saved[t->saved_count++] = *m;
        entry |= (uint64_t)t->saved_count << 32;
    }
    if (!m->scope && m->inner > scope->serial && !k->quick) {
        const char *text = onxi_check_quote(k, onxi_check_name_text(k, name));
        onxi_check_find(k, at, "S-17", (onxi_check_detail){ .value = onx_str_of(text) },
                        "\"%s\" was used as a name of its own inside an earlier subgraph", text);
    }
    if (logged)
        t->log[t->log_count++] = entry;
    m->scope = scope->serial;
    m->index = index;
    m->kind = (uint8_t)kind;
    m->depth = (uint16_t)scope->depth;
    m->flags = m->flags & ONXI_NAME_IN_MAIN;
    if (scope->role == ONXI_ROLE_MAIN)
        m->flags |= ONXI_NAME_IN_MAIN;
    if (pending)
        late(k, scope, name, kind, index, pending);
}

void onxi_check_use(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name)
{
    if (name == UINT32_MAX)
        return;
    onxi_check_names *t = &k->names;
    onxi_check_meaning *m = &t->meaning[name];
    if (m->scope) {
        if (!(m->flags & ONXI_NAME_USED))
            m->flags |= ONXI_NAME_USED;
        return;
    }
    if (m->index || !ONXI_CHECK_GROW(k, t->pending, t->pending_room, t->pending_count + 1))
        return;
    t->pending[t->pending_count] =
        (onxi_check_pending){ .name = name,
                              .scope = scope->serial,
                              .node = scope->node,
                              .depth = scope->depth,
                              .definer = ONXI_NO_INDEX,
                              .at =
                                  t->pending_count < k->max_errors ? onxi_check_at_keep(k, at) : &onxi_check_no_place };
    m->index = ++t->pending_count;
}

/* ---- closing a scope ---- */

static void report_order(onxi_check *k, onxi_check_scope *scope)
{
    onxi_check_names *t = &k->names;
    uint32_t *component = onxi_check_graph_cycles(k, scope);
    if (!component)
        return;
    onxi_check_set *seen = onxi_check_set_new(k);
    for (uint32_t i = 0; i < t->pending_count; i++) {
        onxi_check_pending *p = &t->pending[i];
        if (p->done || p->scope != scope->serial || p->definer == ONXI_NO_INDEX)
            continue;
        p->done = true;
        const char *text = onxi_check_quote(k, onxi_check_name_text(k, p->name));
        onxi_check_detail detail = { .value = onx_str_of(text),
                                     .hint = onxi_check_text(k, "node %u defines it", p->definer) };
        if (component[p->node] == component[p->definer]) {
            char id[16];
            memcpy(id, &component[p->node], 4);
            onx_bytes kept;
            if (onx_arena_keep(k->arena, onx_str_make(id, 4), &kept) == ONX_OK &&
                onxi_check_set_add(k, seen, onx_view(kept), 0, NULL))
                onxi_check_find(k, p->at, "G-02", detail, "\"%s\" depends on itself: the graph has a cycle", text);
        } else {
            const char *rule = scope->role == ONXI_ROLE_FUNCTION   ? "F-12"
                               : scope->role == ONXI_ROLE_SUBGRAPH ? "S-11"
                                                                   : "G-03";
            detail.one_meaning = true;
            onxi_check_find(k, p->at, rule, detail, "\"%s\" is read before the node that produces it", text);
        }
    }
}

static onx_str similar_name(onxi_check *k, uint32_t wrong)
{
    enum { NAMES = 200000 };
    if (k->name_hints++ >= ONXI_HINTS / 8)
        return onx_str_make(NULL, 0);
    uint32_t best = 3, found = UINT32_MAX;
    for (uint32_t i = 0; i < k->names.count && i < NAMES; i++) {
        uint32_t d;
        const onxi_check_meaning *m = &k->names.meaning[i];
        if ((m->scope || m->inner) &&
            onxi_check_similar(onxi_check_name_text(k, wrong), onxi_check_name_text(k, i), &d) && d < best) {
            best = d;
            found = i;
        }
    }
    if (found == UINT32_MAX)
        return onx_str_make(NULL, 0);
    return onxi_check_text(k, "did you mean \"%s\"?", onxi_check_quote(k, onxi_check_name_text(k, found)));
}

/* Names that are undefined when the outermost scope is closed are reported. */
static void report_missing(onxi_check *k, onxi_check_scope *scope)
{
    onxi_check_names *t = &k->names;
    for (uint32_t i = 0; i < t->pending_count; i++) {
        onxi_check_pending *p = &t->pending[i];
        if (p->done)
            continue;
        onxi_check_meaning *m = &t->meaning[p->name];
        if (!m->scope)
            m->index = 0;
        const char *text = onxi_check_quote(k, onxi_check_name_text(k, p->name));
        bool inside = m->inner > scope->serial, function = scope->role == ONXI_ROLE_FUNCTION;
        onxi_check_detail detail = { .value = onx_str_of(text) };
        if (function && (m->flags & ONXI_NAME_IN_MAIN)) {
            onxi_check_find(k, p->at, p->depth ? "S-18" : "F-12", detail,
                            "\"%s\" is a value of the main graph, which a function does not see", text);
        } else if (scope->role == ONXI_ROLE_INITIALIZATION && (m->flags & ONXI_NAME_IN_MAIN)) {
            onxi_check_find(k, p->at, "TR-11", detail,
                            "\"%s\" is a value of the main graph, which the initialization graph does not see", text);
        } else if (inside) {
            onxi_check_find(k, p->at, "S-07", detail,
                            "\"%s\" is defined only inside a subgraph that does not enclose this node", text);
        } else {
            detail.hint = similar_name(k, p->name);
            onxi_check_find(k, p->at, function && !p->depth ? "F-12" : "G-07", detail,
                            "\"%s\" is not defined: no input, initializer or node output has that name", text);
        }
    }
    t->pending_count = 0;
}

static void report_unused(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope)
{
    onxi_check_names *t = &k->names;
    for (uint32_t i = scope->log_start; i < t->log_count; i++) {
        const onxi_check_meaning *m = &t->meaning[(uint32_t)t->log[i]];
        const char *text;
        bool main = scope->role == ONXI_ROLE_MAIN;
        switch ((onxi_check_name_kind)m->kind) {
        case ONXI_NAME_INPUT:
            if (m->flags & ONXI_NAME_USED || !main)
                break;
            text = onxi_check_quote(k, onxi_check_name_text(k, (uint32_t)t->log[i]));
            onxi_check_find(k, ONXI_AT_ITEM(at, input, m->index, VALUE_INFO, scope->graph->input[m->index]), "G-24",
                            ONXI_PLAIN, "nothing reads the input \"%s\"", text);
            break;
        case ONXI_NAME_INITIALIZER:
            if (m->flags & ONXI_NAME_USED)
                break;
            text = onxi_check_quote(k, onxi_check_name_text(k, (uint32_t)t->log[i]));
            onxi_check_find(k, ONXI_AT_ITEM(at, initializer, m->index, TENSOR, scope->graph->initializer[m->index]),
                            "G-24", ONXI_PLAIN, "nothing reads the initializer \"%s\"", text);
            break;
        case ONXI_NAME_SPARSE_INITIALIZER:
            if (m->flags & ONXI_NAME_USED)
                break;
            text = onxi_check_quote(k, onxi_check_name_text(k, (uint32_t)t->log[i]));
            onxi_check_find(k, ONXI_AT_INDEX(at, sparse_initializer, m->index), "G-24", ONXI_PLAIN,
                            "nothing reads the sparse initializer \"%s\"", text);
            break;
        case ONXI_NAME_OUTPUT: { /* the outputs of a node are consecutive */
            uint32_t node = m->index;
            bool used = false;
            for (;; i++) {
                used |= (t->meaning[(uint32_t)t->log[i]].flags & ONXI_NAME_USED) != 0;
                if (i + 1 >= t->log_count || t->meaning[(uint32_t)t->log[i + 1]].kind != ONXI_NAME_OUTPUT ||
                    t->meaning[(uint32_t)t->log[i + 1]].index != node)
                    break;
            }
            if (!used && node < scope->node_count)
                onxi_check_find(k, ONXI_AT_ITEM(at, node, node, NODE, scope->nodes[node]), "G-24", ONXI_PLAIN,
                                "nothing reads the outputs of the node");
            break;
        }
        default:
            break;
        }
    }
}

void onxi_check_leave(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope)
{
    onxi_check_names *t = &k->names;
    if (scope->late)
        report_order(k, scope);
    if (!scope->up)
        report_missing(k, scope);
    if (k->notes && onxi_check_wants(k, "G-24") && scope->names)
        report_unused(k, at, scope);
    if (t->last && !scope->up) {
        t->log_count = scope->log_start;
        return;
    }
    while (t->log_count > scope->log_start) {
        uint64_t entry = t->log[--t->log_count];
        onxi_check_meaning *m = &t->meaning[(uint32_t)entry];
        uint32_t mark = m->mark;
        uint8_t in_main = m->flags & ONXI_NAME_IN_MAIN;
        if (entry >> 32) {
            *m = t->saved[(entry >> 32) - 1];
            t->saved_count--;
        } else {
            *m = (onxi_check_meaning){ .name = m->name };
        }
        m->inner = scope->serial;
        m->mark = mark;
        m->flags |= in_main;
    }
}
