/* infer_fix.c - fixes a symbolic dimension after inference. Names declared with the symbol are declared again; nodes
 * whose inputs changed are inferred again, and so on. Unchanged nodes are not visited. Graphs in which a name has more
 * than one meaning are walked again completely. */
#include "infer/infer.h"

#include <stdlib.h>

/* The data for inferring nodes of the main graph again, built once. */
typedef struct onxi_infer_again {
    bool regular; /* every name of the main graph has a single meaning */
    onxi_infer_places places;
    onx_index *index;
    uint32_t *made;               /* per node: its first entry in the result; after the last node: the number of
                                   * entries */
    uint32_t *declared, *next;    /* per name: its first declaration, as index into `infos` + 1; next declaration of the
                                   * same name */
    const onx_value_info **infos; /* in order of declaration */
    uint32_t *initializer;        /* per name: index + 1 */
    uint32_t unsupported_at;      /* node index; UINT32_MAX: none */
    uint32_t *heap, heap_count;   /* nodes to infer again, as a heap with the smallest index on top */
    uint8_t *queued;              /* per node */
} onxi_infer_again;

void onxi_infer_again_free(onx_infer *e)
{
    if (!e->again)
        return;
    onxi_infer_places_free(e, &e->again->places);
    onx_index_free(e->again->index);
    e->again = NULL;
}

/* ---- dependencies ---- */

static onx_name_id name_of(const onxi_infer_again *a, onx_str text)
{
    return text.len ? onx_index_find(a->index, text) : ONX_NO_NAME;
}

/* Is each name defined once, and before its uses? Only then can nodes be inferred out of order. */
static bool is_regular(const onxi_infer_again *a, const onx_graph *g)
{
    uint32_t count;
    for (uint32_t i = 0; i < g->input_count; i++) {
        onx_name_id id = name_of(a, onx_view(g->input[i]->name));
        if (id != ONX_NO_NAME && onx_index_def(a->index, id).index != i)
            return false;
    }
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->node[i]->output_count; k++) {
            onx_name_id id = name_of(a, onx_view(g->node[i]->output[k]));
            if (id == ONX_NO_NAME)
                continue;
            const onx_def def = onx_index_def(a->index, id);
            const onx_use *uses = onx_index_uses(a->index, id, &count);
            if (def.kind != ONX_DEF_NODE || def.index != i || def.output != k || (count && uses[0].node <= i))
                return false;
        }
    return true;
}

static bool index_made(onxi_infer_again *a, const onx_graph *g, const onxi_infer_result *result)
{
    uint32_t at = result->input_count;
    for (uint32_t i = 0; i < g->node_count; i++) {
        a->made[i] = at;
        for (uint32_t k = 0; k < g->node[i]->output_count; k++)
            at += onx_view(g->node[i]->output[k]).len != 0;
    }
    a->made[g->node_count] = at;
    return at == result->count;
}

/* Builds the list of declarations of each name, backwards, so that the lists are in order. */
static void index_declarations(onxi_infer_again *a, const onx_graph *g)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->value_info_count; i++)
        a->infos[count++] = g->value_info[i];
    for (uint32_t i = 0; i < g->input_count; i++)
        a->infos[count++] = g->input[i];
    for (uint32_t i = 0; i < g->output_count; i++)
        a->infos[count++] = g->output[i];
    while (count-- > 0) {
        onx_name_id id = name_of(a, onx_view(a->infos[count]->name));
        if (id == ONX_NO_NAME)
            continue;
        a->next[count] = a->declared[id];
        a->declared[id] = count + 1;
    }
}

static bool index_initializers(onxi_infer_again *a, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->initializer_count + g->sparse_initializer_count; i++) {
        uint32_t k = i - g->initializer_count;
        onx_str text = { 0 };
        if (i < g->initializer_count)
            text = onx_view(g->initializer[i]->name);
        else if (g->sparse_initializer[k]->values)
            text = onx_view(g->sparse_initializer[k]->values->name);
        onx_name_id id = name_of(a, text);
        if (id != ONX_NO_NAME && a->initializer[id])
            return false;
        if (id != ONX_NO_NAME)
            a->initializer[id] = i + 1;
    }
    return true;
}

static onx_status again_new(onx_infer *e)
{
    const onx_graph *g = e->model->graph;
    if (!e->main) /* freed when the result was written */
        ONX_TRY(onxi_infer_main(e));
    onxi_infer_again *a = ONXI_NEW(e->arena, onxi_infer_again);
    if (!a)
        return e->status = ONX_E_MEMORY;
    ONX_TRY(onx_index_new(e->cx, g, &a->index));
    e->again = a; /* from here on the engine owns it */
    ONX_TRY(onxi_infer_places_new(e, &a->places));
    uint64_t infos = (uint64_t)g->value_info_count + g->input_count + g->output_count;
    uint32_t names = onx_index_name_count(a->index);
    a->made = ONXI_ARRAY(e->arena, uint32_t, (size_t)g->node_count + 1);
    a->heap = ONXI_ARRAY(e->arena, uint32_t, (size_t)g->node_count + 1);
    a->queued = ONXI_ARRAY(e->arena, uint8_t, (size_t)g->node_count + 1);
    a->infos = ONXI_ARRAY(e->arena, const onx_value_info *, infos + 1);
    a->next = ONXI_ARRAY(e->arena, uint32_t, infos + 1);
    a->declared = ONXI_ARRAY(e->arena, uint32_t, names + 1);
    a->initializer = ONXI_ARRAY(e->arena, uint32_t, names + 1);
    if (!a->made || !a->heap || !a->queued || !a->infos || !a->next || !a->declared || !a->initializer)
        return e->status = ONX_E_MEMORY;
    index_declarations(a, g);
    a->unsupported_at = e->main->scope.unsupported ? e->main->scope.unsupported_at : UINT32_MAX;
    a->regular = !e->gave_up && is_regular(a, g) && index_initializers(a, g) && index_made(a, g, e->main->scope.result);
    return ONX_OK;
}

/* ---- queue of nodes ---- */

static void push(onxi_infer_again *a, uint32_t node)
{
    if (a->queued[node])
        return;
    a->queued[node] = 1;
    uint32_t at = a->heap_count++;
    for (; at > 0 && a->heap[(at - 1) / 2] > node; at = (at - 1) / 2)
        a->heap[at] = a->heap[(at - 1) / 2];
    a->heap[at] = node;
}

static uint32_t pop(onxi_infer_again *a)
{
    uint32_t least = a->heap[0], last = a->heap[--a->heap_count], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < a->heap_count; at = child) {
        child += child + 1 < a->heap_count && a->heap[child + 1] < a->heap[child];
        if (a->heap[child] >= last)
            break;
        a->heap[at] = a->heap[child];
    }
    a->heap[at] = last;
    a->queued[least] = 0;
    return least;
}

static void push_users(onxi_infer_again *a, onx_name_id id)
{
    uint32_t count;
    const onx_use *uses = onx_index_uses(a->index, id, &count);
    for (uint32_t i = 0; i < count; i++)
        push(a, uses[i].node);
}

/* ---- comparing results ---- */

static bool same_fact(const onxi_infer_fact *a, const onxi_infer_fact *b)
{
    if (!a || !b)
        return a == b;
    return a->loss == b->loss && onxi_infer_fact_same(a, b);
}

static onxi_infer_name *entry_of(onx_infer *e, onx_str text)
{
    onxi_infer_names *names = &e->main->frame.names;
    uint32_t id = onxi_infer_names_add(e, names, text);
    return id == UINT32_MAX ? NULL : &names->entries[id];
}

/* ---- declaring and inferring again ---- */

/* Resets the name to its declarations, as before the walk. */
static onx_status declare_again(onx_infer *e, onx_name_id id, onx_str text)
{
    onxi_infer_again *a = e->again;
    onxi_infer_name *entry = entry_of(e, text);
    if (!entry)
        return e->status;
    entry->fact = NULL;
    entry->scope = NULL;
    entry->declared = ONXI_DECLARED_NOT;
    for (uint32_t i = a->declared[id]; i; i = a->next[i - 1])
        ONX_TRY(onxi_infer_declare(e, &e->main->scope, a->infos[i - 1]));
    return ONX_OK;
}

/* A name that no node defines. */
static onx_status refresh_name(onx_infer *e, onx_name_id id, onx_str text)
{
    onxi_infer_again *a = e->again;
    onxi_infer_scope *scope = &e->main->scope;
    const onx_graph *g = scope->graph;
    const onx_def def = onx_index_def(a->index, id);
    onxi_infer_fact *old = entry_of(e, text)->fact;
    ONX_TRY(declare_again(e, id, text));
    uint32_t initializer = a->initializer[id];
    if (initializer > g->initializer_count)
        ONX_TRY(onxi_infer_sparse_initializer(e, scope, g->sparse_initializer[initializer - g->initializer_count - 1]));
    else if (initializer)
        ONX_TRY(onxi_infer_initializer(e, scope, g->initializer[initializer - 1]));
    onxi_infer_name *entry = entry_of(e, text);
    if (same_fact(old, entry->fact)) {
        entry->fact = old;
        return ONX_OK;
    }
    if (def.kind == ONX_DEF_INPUT) { /* inputs without a name are not in the result */
        uint32_t at = def.index < scope->result->input_count ? def.index : scope->result->input_count - 1;
        while (at > 0 && scope->result->made[at].fact != old)
            at--;
        if (!(scope->result->made[at].fact = onxi_infer_fact_own(e, entry))) /* it is shared with no other entry, see
                                                                              * above */
            return e->status;
    }
    push_users(a, id);
    return ONX_OK;
}

/* Removes diagnostics of the earlier visit of the node and of its subgraphs. */
static void forget(onx_infer *e, const onx_node *node, uint32_t depth)
{
    onxi_infer_loss *loss = onxi_map_find(&e->lost_at, onxi_infer_node_key(node));
    if (loss)
        loss->stale = true;
    if (depth > onx_ctx_limits(e->cx).depth)
        return;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        uint32_t count;
        onx_graph *const *graphs = onx_attribute_value(node->attribute[i], ONX_SLOT_G, &count);
        onxi_infer_result *result = graphs && *graphs ? onxi_infer_result_of(e, *graphs, false) : NULL;
        if (!result)
            continue;
        result->count = result->input_count = 0;
        result->indexed = false;
        for (uint32_t k = 0; k < (*graphs)->node_count; k++)
            forget(e, (*graphs)->node[k], depth + 1);
    }
}

static onx_status infer_again(onx_infer *e, uint32_t index)
{
    enum { FEW = 8 };
    onxi_infer_again *a = e->again;
    onxi_infer_scope *scope = &e->main->scope;
    onxi_infer_result *result = scope->result;
    const onx_node *node = scope->graph->node[index];
    onxi_infer_fact *few[FEW], **old = few;
    if (node->output_count > FEW && !(old = ONXI_ARRAY(e->arena, onxi_infer_fact *, node->output_count)))
        return e->status = ONX_E_MEMORY;
    void **failures =
        onxi_map_find(&e->failed_at, (uint64_t)index + 1) ? onxi_infer_map_at(e, &e->failed_at, index + 1u) : NULL;
    if (failures) {
        e->failed -= (uintptr_t)*failures;
        *failures = NULL;
    }
    forget(e, node, 0);
    for (uint32_t k = 0; k < node->output_count; k++) {
        onx_name_id id = name_of(a, onx_view(node->output[k]));
        if (id == ONX_NO_NAME)
            continue;
        old[k] = entry_of(e, onx_view(node->output[k]))->fact;
        if (a->declared[id])
            ONX_TRY(declare_again(e, id, onx_view(node->output[k])));
    }
    e->visits += onxi_infer_cost(node);
    scope->result = NULL; /* the entries exist already */
    scope->unsupported = index > a->unsupported_at;
    onx_status status = onxi_infer_node(e, scope, node, index);
    scope->result = result;
    uint32_t made = a->made[index];
    for (uint32_t k = 0; k < node->output_count && status == ONX_OK; k++) {
        onx_name_id id = name_of(a, onx_view(node->output[k]));
        if (id == ONX_NO_NAME)
            continue;
        onxi_infer_name *entry = entry_of(e, onx_view(node->output[k]));
        if (same_fact(old[k], entry->fact)) {
            entry->fact = old[k];
        } else {
            result->made[made].fact = entry->fact;
            push_users(a, id);
        }
        made++;
    }
    return status;
}

/* ---- fixing a symbol ---- */

/* Declares the names at these places and queues the nodes that read them; false: the whole graph has to be walked. */
static bool start_from(onx_infer *e, const onxi_infer_dim_places *lists)
{
    onxi_infer_again *a = e->again;
    for (; lists; lists = lists->next)
        for (const onxi_infer_dim_place *p = lists->first; p; p = p->next) {
            onx_name_id id = p->kind == ONXI_PLACE_NAME ? name_of(a, p->name) : ONX_NO_NAME;
            if (p->kind == ONXI_PLACE_ALL)
                return false;
            if (p->kind == ONXI_PLACE_NODE)
                push(a, p->node);
            else if (id != ONX_NO_NAME && onx_index_def(a->index, id).kind == ONX_DEF_NODE)
                push(a, onx_index_def(a->index, id).index);
            else if (id != ONX_NO_NAME && refresh_name(e, id, p->name) != ONX_OK)
                return true; /* e->status tells */
        }
    return true;
}

static int compare_losses(const void *a, const void *b)
{
    const onxi_infer_loss *x = *(onxi_infer_loss *const *)a, *y = *(onxi_infer_loss *const *)b;
    if (x->top != y->top)
        return x->top < y->top ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Nodes that were inferred again may have new reasons for unknown values. */
static onx_status sort_losses(onx_infer *e)
{
    uint32_t count = 0;
    for (onxi_infer_loss *l = e->losses; l; l = l->next)
        count++;
    onxi_infer_loss **list = ONXI_ARRAY(e->arena, onxi_infer_loss *, (size_t)count + 1);
    if (!list)
        return ONX_E_MEMORY;
    count = 0;
    for (onxi_infer_loss *l = e->losses; l; l = l->next)
        list[count++] = l;
    qsort(list, count, sizeof *list, compare_losses);
    for (uint32_t i = 0; i < count; i++)
        list[i]->next = list[i + 1]; /* NULL follows the last one */
    e->losses = list[0];
    e->losses_end = count ? &list[count - 1]->next : &e->losses;
    return ONX_OK;
}

static onx_status follow(onx_infer *e, const onxi_infer_dim_places *lists)
{
    onxi_infer_again *a = e->again;
    e->visits = 0;
    e->round++;
    onxi_infer_repeat_forget(e);
    for (onxi_infer_result *r = e->results; r; r = r->next)
        r->settled = false;
    uint32_t losses = e->loss_count;
    bool parts = a->regular && start_from(e, lists) && start_from(e, a->places.any);
    while (parts && a->heap_count && e->status == ONX_OK) {
        ONX_TRY(infer_again(e, pop(a)));
        parts = e->visits <= e->visit_limit && !e->gave_up;
    }
    while (a->heap_count) /* empty if the whole graph is walked */
        (void)pop(a);
    if (e->status != ONX_OK || parts)
        return e->status == ONX_OK && e->loss_count != losses ? sort_losses(e) : e->status;
    onx_status status = onxi_infer_main(e);
    return status == ONX_E_INVALID ? ONX_OK : status; /* e->invalid tells */
}

static onx_status fix(onx_infer *e, onx_str name, int64_t size)
{
    int64_t before = 0;
    if (size < 0)
        return onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "dimension %.*s cannot have size %lld", ONX_ARG(name),
                         (long long)size);
    if (!e->again)
        ONX_TRY(again_new(e));
    onxi_infer_places *places = &e->again->places;
    uint32_t id = onxi_infer_names_find(&places->symbols, name);
    const onxi_infer_dim_places *lists = id == UINT32_MAX ? NULL : places->of[id];
    if (!lists && !places->any)
        return onxi_fail(e->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no dimension of the model contains \"%.*s\"",
                         ONX_ARG(name));
    bool was_fixed = onxi_dims_fixed(e->dims, name, &before);
    if (was_fixed && before == size)
        return ONX_OK;
    if (was_fixed && e->applied)
        return onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "dimension %.*s was written into the model as %lld",
                         ONX_ARG(name), (long long)before);
    ONX_TRY(onxi_dims_fix(e->dims, name, size));
    ONX_TRY(follow(e, lists));
    if (!e->invalid)
        return ONX_OK;
    if (was_fixed)
        ONX_TRY(onxi_dims_fix(e->dims, name, before));
    else
        onxi_dims_unfix(e->dims, name);
    e->invalid = false;
    ONX_TRY(follow(e, lists));
    return ONX_E_INVALID;
}

onx_status onx_infer_fix(onx_infer *e, onx_str name, int64_t size)
{
    ONXI_NEED(NULL, e);
    ONXI_CALL(e->cx, fix(e, name, size));
}
