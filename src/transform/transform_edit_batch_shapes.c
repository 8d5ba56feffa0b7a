/* transform_edit_batch_shapes.c - finds the batch dimension in constant shapes of Reshape. The batch occupies a certain
 * position in the reshaped value, and keeps it in memory; if two dimensions meet at that position, either may be the
 * batch, and later nodes decide: the choices are tried in order, and undone if types contradict each other. */
#include "transform/transform_edit.h"

#include <onx/tensor.h>

enum { CHOICES_MAX = 8, TRIALS = 64, NODES_MAX = 2000000 };

typedef struct choice {
    uint32_t node, count, taken;
    int64_t shapes[CHOICES_MAX][ONX_RANK_MAX];
    uint32_t rank;
    onx_bytes *before; /* original inputs of the node */
    onx_tensor *tensor;
    onxi_batch_repeat *repeats; /* operands to repeat; then it has no shapes, and is the only choice of its node */
} choice;

typedef struct search {
    onxi_editor *e;
    const onxi_batch_shapes *with;
    onxi_binder *binder;
    onxi_values values;
    onxi_scope scope; /* of constants of the model before */
    uint32_t uneven;  /* the node that reads e->uneven */
    choice **stack;
    uint32_t depth, room, failed; /* failed: the first node with contradicting types */
    onx_infer *infer;
} search;

/* ---- types, and contradictions ---- */

static uint32_t node_of(onx_str path)
{
    static const char head[] = "graph.node[";
    uint64_t number = 0;
    if (path.len < sizeof head || memcmp(path.ptr, head, sizeof head - 1) != 0)
        return UINT32_MAX;
    for (size_t i = sizeof head - 1; i < path.len && path.ptr[i] >= '0' && path.ptr[i] <= '9' && number < UINT32_MAX;
         i++)
        number = 10 * number + (uint64_t)(path.ptr[i] - '0');
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static onx_status look(search *s)
{
    onx_ctx *cx = s->e->cx;
    const onxi_diag_mark mark = onxi_diag_here(cx);
    const size_t first = onx_diag_count(cx);
    onx_infer_free(s->infer);
    s->infer = NULL;
    const onx_status status = onx_infer_new(cx, s->e->doc, NULL, &s->infer);
    s->failed = UINT32_MAX;
    for (size_t i = first; i < onx_diag_count(cx); i++) {
        const uint32_t at = node_of(onx_diag_get(cx, i)->where.path);
        s->failed = at < s->failed ? at : s->failed;
    }
    if (status == ONX_OK)
        onxi_diag_rewind(cx, mark);
    return status;
}

/* ---- positions of the batch ---- */

/* The dimension of the reshaped value that contains the batch; -1: none, several, or unknown. */
static int find_batch(const search *s, const onx_type *type, uint32_t rank, int64_t *dims)
{
    int found = -1;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = onxi_type_dim(type, i);
        if (dims[i] < 1)
            return -1;
        if (dims[i] % s->with->size == 0) {
            if (found >= 0)
                return -1;
            found = (int)i;
        }
    }
    return found;
}

static void add_choice(choice *c, const int64_t *shape, uint32_t at, bool pure)
{
    int64_t next[ONX_RANK_MAX];
    onxi_copy_dims(next, shape, c->rank);
    next[at] = -1;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->shapes[i][at] == -1)
            return;
    if (c->count == CHOICES_MAX)
        return;
    if (pure && c->count) /* a dimension that is exactly the batch is tried first */
        memmove(c->shapes[1], c->shapes[0], c->count * sizeof c->shapes[0]);
    onxi_copy_dims(pure ? c->shapes[0] : c->shapes[c->count], next, c->rank);
    c->count++;
}

/* The dimensions of the shape that may contain the batch, if the batch has a stride of `inner` elements. */
static void find_places(const search *s, choice *c, const int64_t *shape, int64_t inner)
{
    int64_t behind = 1;
    for (uint32_t i = c->rank; i-- > 0;) {
        const int64_t own = shape[i] % s->with->old == 0 ? shape[i] / s->with->old : 0;
        if (own && inner % behind == 0 && inner / behind > 0 && own % (inner / behind) == 0)
            add_choice(c, shape, i, own == 1);
        if (__builtin_mul_overflow(behind, shape[i], &behind) || behind < 1)
            return;
    }
}

/* Computes the dimension that the shape leaves open, for the old size. False if it does not divide. */
static bool close_shape(const search *s, const int64_t *dims, uint32_t rank, int at, int64_t *shape, uint32_t count)
{
    int64_t all = s->with->old, given = 1;
    int open = -1;
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(all, (int)i == at ? dims[i] / s->with->size : dims[i], &all))
            return false;
    for (uint32_t i = 0; i < count; i++) {
        if (shape[i] == 0 && i < rank)
            shape[i] = (int)i == at ? dims[i] / s->with->size * s->with->old : dims[i];
        if (shape[i] == -1 && open < 0)
            open = (int)i;
        else if (shape[i] < 1 || __builtin_mul_overflow(given, shape[i], &given))
            return false;
    }
    if (open >= 0)
        shape[open] = all % given == 0 ? all / given : -1;
    return open >= 0 ? shape[open] > 0 : all == given;
}

/* ---- one Reshape ---- */

/* The possible replacements of its constant shape; *out stays NULL if it has none, or needs no change. */
static onx_status choose(search *s, uint32_t at, choice **out)
{
    onxi_editor *e = s->e;
    const onx_node *node = e->graph->node[at];
    const onxi_bound *bound = onxi_bind(s->binder, node);
    *out = NULL;
    if (!bound)
        return ONX_E_MEMORY;
    onxi_batch_repeat *repeats;
    const bool fits = !e->uneven.len;
    ONX_TRY(onxi_edit_batch_repeats(e, bound, s->infer, &s->values, &s->scope, e->graph->node[at], s->with, &repeats));
    s->uneven = fits && e->uneven.len ? at : s->uneven;
    if (repeats) {
        choice *c = *out = ONXI_NEW(e->scratch, choice);
        if (!c)
            return ONX_E_MEMORY;
        *c = (choice){ .node = at, .count = 1, .repeats = repeats };
        return ONX_OK;
    }
    if (bound->kind != ONXI_BOUND_OPERATOR || bound->op != ONXI_ID_Reshape || node->input_count < 2 ||
        onxi_bind_int(bound, node, "allowzero"))
        return ONX_OK;
    const onx_type *type = s->infer ? onx_infer_type(s->infer, e->graph, onx_view(node->input[0])) : NULL;
    const onxi_constant *constant = onxi_values_constant(&s->values, &s->scope, onx_view(node->input[1]));
    const onx_attribute *a = constant ? onxi_constant_attribute(&s->values, e->scratch, constant, ONX_ATTR_INTS) : NULL;
    const int rank = onxi_type_rank(type);
    int64_t dims[ONX_RANK_MAX], shape[ONX_RANK_MAX], inner = 1;
    if (!a || a->slot != ONX_SLOT_INTS || !a->count || a->count > ONX_RANK_MAX || rank < 1)
        return ONX_OK;
    const int batch = find_batch(s, type, (uint32_t)rank, dims);
    onxi_copy_dims(shape, a->ints, a->count);
    if (batch < 0 || !close_shape(s, dims, (uint32_t)rank, batch, shape, a->count))
        return ONX_OK;
    choice *c = ONXI_NEW(e->scratch, choice);
    if (!c)
        return ONX_E_MEMORY;
    *c = (choice){ .node = at, .rank = a->count };
    for (int i = batch + 1; i < rank; i++)
        inner *= dims[i]; /* cannot overflow: at most the number of elements */
    const int64_t within = dims[batch] / s->with->size;
    find_places(s, c, shape, inner * within);
    find_places(s, c, shape, inner);
    bool follows = (uint32_t)batch < a->count && a->ints[batch] == 0;
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < c->rank; k++)
            follows |= c->shapes[i][k] == -1 && a->ints[k] == -1;
    *out = c->count && !follows ? c : NULL;
    return ONX_OK;
}

/* Gives the node its own shape constant. */
static onx_status apply(search *s, choice *c)
{
    onxi_editor *e = s->e;
    onx_node *node = e->graph->node[c->node];
    const int64_t dims[1] = { c->rank };
    if (c->repeats)
        return onxi_edit_batch_place(e, c->repeats);
    if (c->tensor) {
        memcpy(c->tensor->int64_data, c->shapes[c->taken], c->rank * sizeof(int64_t));
        return ONX_OK;
    }
    onx_bytes *inputs = onxi_arena_array(e->arena, (size_t)onxi_list_room(node->input_count) + 1, sizeof *inputs);
    c->tensor = onx_message_new(e->arena, ONX_KIND_TENSOR);
    int64_t *numbers = onxi_arena_array(e->arena, (size_t)onxi_list_room(c->rank) + 1, sizeof *numbers);
    int64_t *sizes = onxi_arena_array(e->arena, (size_t)onxi_list_room(1) + 1, sizeof *sizes);
    if (!c->tensor || !inputs || !numbers || !sizes)
        return ONX_E_MEMORY;
    memcpy(numbers, c->shapes[c->taken], c->rank * sizeof *numbers);
    sizes[0] = dims[0];
    ONX_SET(tensor, c->tensor, data_type, ONX_INT64);
    c->tensor->dims = sizes;
    c->tensor->dims_count = 1;
    c->tensor->int64_data = numbers;
    c->tensor->int64_data_count = c->rank;
    ONX_TRY(onxi_names_make(&e->names, onx_view(node->input[1]), onx_str_of("batch"), &c->tensor->name));
    c->tensor->has |= onx_tensor_has_name;
    memcpy(inputs, node->input, node->input_count * sizeof *inputs);
    inputs[1] = c->tensor->name;
    c->before = node->input;
    node->input = inputs;
    return onx_graph_add_initializer(e->arena, e->graph, c->tensor) ? ONX_OK : ONX_E_MEMORY;
}

/* Removes initializers in reverse order of their creation. */
static void take_back(search *s, const choice *c)
{
    if (c->repeats) {
        onxi_edit_batch_take_back(s->e, c->repeats);
        return;
    }
    s->e->graph->node[c->node]->input = c->before;
    s->e->graph->initializer_count--;
}

/* Takes the next choice of the last Reshape that has one; false if none has. */
static bool step_back(search *s, uint32_t *at)
{
    while (s->depth) {
        choice *c = s->stack[s->depth - 1];
        if (++c->taken < c->count) {
            *at = c->node + 1;
            if (s->uneven >= *at) /* found with types that the choice has made */
                s->e->uneven = (onx_str){ 0 };
            return true;
        }
        take_back(s, c);
        s->depth--;
    }
    return false;
}

static onx_status find(search *s, bool *found)
{
    const uint32_t count = s->e->graph->node_count;
    uint32_t at = 0;
    *found = false;
    ONX_TRY(look(s));
    const uint32_t most = TRIALS + NODES_MAX / (count + 1); /* each trial visits all nodes */
    for (uint32_t trials = 0; trials < most;) {
        choice *c = NULL;
        while (at < count && at <= s->failed && !c) /* types of earlier nodes are reliable */
            ONX_TRY(choose(s, at++, &c));
        if (!c && s->failed == UINT32_MAX) {
            *found = true;
            return ONX_OK;
        }
        if (c) {
            if (!ONXI_GROW_IN(s->e->scratch, s->stack, s->room, (uint64_t)s->depth + 1))
                return ONX_E_MEMORY;
            s->stack[s->depth++] = c;
        } else if (!step_back(s, &at)) {
            return ONX_OK;
        }
        ONX_TRY(apply(s, s->stack[s->depth - 1]));
        ONX_TRY(look(s));
        trials++;
    }
    return ONX_OK;
}

onx_status onxi_edit_batch_shapes(onxi_editor *e, onxi_binder *binder, const onxi_batch_shapes *with, bool *found,
                                  uint32_t *adjusted)
{
    search s = { .e = e,
                 .with = with,
                 .binder = binder,
                 .scope = { .graph = e->graph, .nodes = e->graph->node, .node_count = e->graph->node_count } };
    ONX_TRY(onxi_values_open(&s.values, e->doc, e->scratch));
    const onx_status status = find(&s, found);
    while (s.depth && (status != ONX_OK || !*found))
        take_back(&s, s.stack[--s.depth]);
    onxi_batch_repeat *repeats = NULL;
    for (uint32_t i = s.depth; i-- > 0;) /* all of them as one list */
        for (onxi_batch_repeat *r = s.stack[i]->repeats, *next; r; r = next) {
            next = r->next;
            r->next = repeats;
            repeats = r;
        }
    for (uint32_t i = 0; i < s.depth; i++) {
        const choice *c = s.stack[i];
        uint32_t open = 0;
        if (c->repeats)
            continue;
        while (c->shapes[c->taken][open] != -1)
            open++;
        onxi_tell_change(e->options->changed, e->options->user, "edit", "batch",
                         onxi_path_node(e->scratch, onx_str_of("graph."), c->node, e->graph->node[c->node]),
                         "dimension %u of the shape contains the batch", open);
    }
    *adjusted = s.depth;
    onx_infer_free(s.infer);
    onxi_values_close(&s.values);
    return status == ONX_OK && repeats ? onxi_edit_batch_insert(e, repeats) : status;
}
