/* transform_trainable_adapters.c - low-rank adapters: a product with a frozen weight gets a trained low-rank product
 * beside it, which is finally merged into the weight. */
#include "transform/transform_edit.h"
#include "transform/transform_part.h"
#include "transform/transform_precision.h"
#include "transform/transform_trainable.h"

static const char *const suffixes[] = { [ONXI_ADAPTER_DOWN] = "adapter_down", [ONXI_ADAPTER_UP] = "adapter_up" };

/* A node whose product can get an adapter: MatMul, and Gemm without transposed input or scaling. */
typedef struct product {
    bool is;
    bool turned; /* the weight is transposed */
} product;

static product product_of(const onxi_bound *bound, const onx_node *node)
{
    const onxi_op_id op = bound && bound->kind == ONXI_BOUND_OPERATOR ? bound->op : ONXI_ID_NONE;
    if (node->input_count < 2 || node->output_count != 1 || (op != ONXI_ID_MatMul && op != ONXI_ID_Gemm))
        return (product){ false, false };
    const float alpha = op == ONXI_ID_Gemm ? onxi_bind_float(bound, node, "alpha") : 1;
    return (product){ op == ONXI_ID_MatMul || (alpha >= 1 && alpha <= 1 && !onxi_bind_int(bound, node, "transA")),
                      op == ONXI_ID_Gemm && onxi_bind_int(bound, node, "transB") };
}

enum { HANDS_MAX = 4 };

/* A matrix that products use directly, or through Identity and Transpose: exporters replace duplicate weights by
 * Identity. */
typedef struct matrix {
    const onx_tensor *w;                   /* NULL: none */
    bool crossed;                          /* products use it transposed */
    uint32_t hands[HANDS_MAX], hand_count; /* the nodes between, starting at the product */
} matrix;

static bool crosses(const onx_node *node)
{
    const onx_attribute *perm = onx_node_attribute(node, "perm");
    return onxi_node_is(node, ONXI_ID_Transpose) &&
           (!perm || (perm->slot == ONX_SLOT_INTS && perm->count == 2 && perm->ints[0] == 1 && perm->ints[1] == 0));
}

static matrix matrix_of(const onx_graph *g, const onx_index *index, onx_bytes name)
{
    matrix m = { .w = NULL };
    onx_def def = onx_index_def(index, onx_index_find(index, onx_view(name)));
    while (def.kind == ONX_DEF_NODE && m.hand_count < HANDS_MAX) {
        const onx_node *node = g->node[def.index];
        if (node->input_count != 1 || !(crosses(node) || onxi_node_is(node, ONXI_ID_Identity)))
            return m;
        m.crossed ^= crosses(node);
        m.hands[m.hand_count++] = def.index;
        def = onx_index_def(index, onx_index_find(index, onx_view(node->input[0])));
    }
    const onx_tensor *w = def.kind == ONX_DEF_INITIALIZER ? g->initializer[def.index] : NULL;
    if (w && w->dims_count == 2 && (w->data_type == ONX_FLOAT || w->data_type == ONX_DOUBLE))
        m.w = w;
    return m;
}

static int64_t size_of(const matrix *m, bool axis)
{
    return m->w->dims[axis ^ m->crossed];
}

static const onx_tensor *plain_matrix(const onx_graph *g, const onx_index *index, onx_bytes name)
{
    const matrix m = matrix_of(g, index, name);
    return m.hand_count ? NULL : m.w;
}

/* Matches the name of the weight, or the name that the product reads. */
static bool is_chosen(onxi_trainable *t, onx_str name, onx_str here)
{
    const bool name_named = onxi_trainable_named(t, name), here_named = onxi_trainable_named(t, here);
    const bool name_frozen = onxi_trainable_frozen(t, name), here_frozen = onxi_trainable_frozen(t, here);
    const bool named = name_named || here_named, frozen = name_frozen || here_frozen;
    return (named || !t->options->train_count) && !frozen;
}

static onx_status add_matrix(onxi_trainable *t, const onx_tensor *like, int64_t rows, int64_t columns, uint32_t which,
                             onx_bytes *name)
{
    const int64_t dims[2] = { rows, columns };
    const size_t size = like->data_type == ONX_DOUBLE ? sizeof(double) : sizeof(float);
    uint64_t count;
    if (rows < 0 || columns < 0 || __builtin_mul_overflow((uint64_t)rows, (uint64_t)columns, &count) ||
        count >= SIZE_MAX / size)
        return onxi_fail(t->cx, ONX_E_LIMIT, ONXI_NOWHERE, "adapters of rank %u are too large", t->options->lora_rank);
    void *zeros = onxi_arena_array(t->scratch, (size_t)count + 1, size);
    onx_tensor *tensor = zeros ? onx_tensor_new(t->arena, (onx_dtype)like->data_type, dims, 2, zeros, "") : NULL;
    if (!tensor)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_names_make(&t->names, onx_view(like->name), onx_str_of(suffixes[which]), &tensor->name));
    tensor->has |= onx_tensor_has_name;
    *name = tensor->name;
    if (!onxi_dict_at(&t->adapters, onx_view(tensor->name), which, NULL))
        return ONX_E_MEMORY;
    return onx_graph_add_initializer(t->arena, t->graph, tensor) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status adapt(onxi_trainable *t, onx_node *node, const matrix *m, bool turned, onx_graph *out)
{
    const onx_tensor *w = m->w;
    const int64_t rank = t->options->lora_rank, in = size_of(m, turned), width = size_of(m, !turned);
    onx_bytes names[5] = { node->input[0], { 0 }, { 0 }, { 0 }, { 0 } };
    const onx_bytes y = node->output[0];
    ONX_TRY(add_matrix(t, w, in, rank, ONXI_ADAPTER_DOWN, &names[1]));
    ONX_TRY(add_matrix(t, w, rank, width, ONXI_ADAPTER_UP, &names[2]));
    ONX_TRY(onxi_names_make(&t->names, onx_view(w->name), onx_str_of("adapter_scale"), &names[3]));
    const double scale = t->options->lora_scale > 0 ? t->options->lora_scale : 1;
    ONX_TRY(onxi_trainable_scalar(t, t->graph, names[3], (onx_dtype)w->data_type, scale));
    onx_bytes *made = onxi_arena_array(t->arena, 1, sizeof *made);
    if (!made)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_names_make(&t->names, onx_view(y), onx_str_of("frozen"), &names[4]));
    made[0] = names[4];
    node->output = made;
    const onxi_text_nodes nodes = { .head = "(x, down, up, scale, frozen) => (y)",
                                    .text = "d = MatMul (x, down)  u = MatMul (d, up)  s = Mul (u, scale)"
                                            "  y = Add (frozen, s)",
                                    .in = names,
                                    .out = &y,
                                    .in_count = 5,
                                    .out_count = 1,
                                    .base = onx_str_of("adapter") };
    return onxi_trainable_put(t, out, &nodes);
}

onx_status onxi_trainable_adapt(onxi_trainable *t)
{
    onx_graph list = { 0 };
    onx_index *index;
    onx_status status = onx_index_new(t->cx, t->graph, &index);
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->graph->node_count && status == ONX_OK; i++) {
        onx_node *node = t->graph->node[i];
        const product p = product_of(onxi_trainable_bound(t, node), node);
        const matrix m = p.is ? matrix_of(t->graph, index, node->input[1]) : (matrix){ .w = NULL };
        status = onxi_trainable_add_node(t, &list, node);
        if (status == ONX_OK && m.w && is_chosen(t, onx_view(m.w->name), onx_view(node->input[1]))) {
            status = adapt(t, node, &m, p.turned, &list);
            count++;
        }
    }
    onx_index_free(index);
    ONX_TRY(status);
    t->graph->node = list.node;
    t->graph->node_count = list.node_count;
    return count ? ONX_OK
                 : onxi_fail(t->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                             "no product by a weight, MatMul or Gemm, is one that adapters are asked for");
}

/* ---- merging adapters into weights ---- */

typedef struct merger {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena, *scratch;
    onx_graph *graph;
    const onx_index *index;
    onxi_functions functions;
    onxi_binder binder;
    bool *gone;   /* removed nodes */
    bool *hands;  /* nodes between a weight and a product that now uses another weight */
    bool starved; /* out of memory */
    uint32_t merged;
} merger;

static bool is_op(merger *m, const onx_node *node, onxi_op_id op)
{
    const onxi_bound *bound = onxi_bind(&m->binder, node);
    m->starved |= !bound;
    return bound && bound->kind == ONXI_BOUND_OPERATOR && bound->op == op &&
           onxi_node_has_operands(node, bound->schema);
}

/* The node that computes a value without other readers. */
static onx_node *maker(const merger *m, onx_bytes name, uint32_t *at)
{
    uint32_t count;
    const onx_name_id id = onx_index_find(m->index, onx_view(name));
    const onx_def def = onx_index_def(m->index, id);
    (void)onx_index_uses(m->index, id, &count);
    if (def.kind != ONX_DEF_NODE || count != 1 || onx_index_is_output(m->index, id))
        return NULL;
    *at = def.index;
    return m->graph->node[def.index];
}

/* The same, if it has that operator. */
static onx_node *maker_of(merger *m, onx_bytes name, onxi_op_id op, uint32_t *at)
{
    onx_node *node = maker(m, name, at);
    return node && is_op(m, node, op) ? node : NULL;
}

typedef struct adapter {
    onx_node *base, *sum;
    matrix weight;
    const onx_tensor *down, *up;
    double scale;
    bool turned;       /* the weight is transposed */
    uint32_t nodes[4]; /* except the base */
} adapter;

/* Is node `at` the sum that onxi_trainable_adapt has added? */
static bool is_adapter(merger *m, uint32_t at, adapter *a)
{
    uint32_t base;
    *a = (adapter){ .sum = m->graph->node[at], .nodes = { at } };
    if (!is_op(m, a->sum, ONXI_ID_Add) || a->sum->input_count != 2)
        return false;
    a->base = maker(m, a->sum->input[0], &base);
    const onx_node *scaled = maker_of(m, a->sum->input[1], ONXI_ID_Mul, &a->nodes[1]);
    const onx_node *up = scaled ? maker_of(m, scaled->input[0], ONXI_ID_MatMul, &a->nodes[2]) : NULL;
    const onx_node *down = up ? maker_of(m, up->input[0], ONXI_ID_MatMul, &a->nodes[3]) : NULL;
    const product p = a->base ? product_of(onxi_bind(&m->binder, a->base), a->base) : (product){ false, false };
    if (!p.is || !down || !onx_str_equal(onx_view(a->base->input[0]), onx_view(down->input[0])))
        return false;
    const onx_def scale = onx_index_def(m->index, onx_index_find(m->index, onx_view(scaled->input[1])));
    a->turned = p.turned;
    a->weight = matrix_of(m->graph, m->index, a->base->input[1]);
    a->down = plain_matrix(m->graph, m->index, down->input[1]);
    a->up = plain_matrix(m->graph, m->index, up->input[1]);
    if (!a->weight.w || !a->down || !a->up || scale.kind != ONX_DEF_INITIALIZER || a->down->dims[1] != a->up->dims[0])
        return false;
    const onx_tensor *s = m->graph->initializer[scale.index];
    return s->dims_count == 0 && size_of(&a->weight, a->turned) == a->down->dims[0] &&
           size_of(&a->weight, !a->turned) == a->up->dims[1] &&
           onx_tensor_get_f64(m->doc, s, 0, 1, &a->scale) == ONX_OK;
}

static double *elements(const merger *m, const onx_tensor *t)
{
    uint64_t count;
    double *all = onx_tensor_count(t, &count) ? ONXI_ARRAY(m->scratch, double, (size_t)count + 1) : NULL;
    return all && onx_tensor_get_f64(m->doc, t, 0, count, all) == ONX_OK ? all : NULL;
}

/* The weight as the product uses it. */
static double *weight_elements(const merger *m, const matrix *weight)
{
    double *stored = elements(m, weight->w);
    const uint64_t rows = (uint64_t)size_of(weight, false), columns = (uint64_t)size_of(weight, true);
    if (!stored || !weight->crossed)
        return stored;
    double *turned = ONXI_ARRAY(m->scratch, double, (size_t)(rows * columns) + 1);
    for (uint64_t i = 0; turned && i < rows; i++)
        for (uint64_t k = 0; k < columns; k++)
            turned[i * columns + k] = stored[k * rows + i];
    return turned;
}

static onx_status sum_weights(const merger *m, const adapter *a, onx_tensor **out)
{
    const uint64_t in = (uint64_t)a->down->dims[0], rank = (uint64_t)a->down->dims[1], width = (uint64_t)a->up->dims[1];
    double *w = weight_elements(m, &a->weight), *down = elements(m, a->down), *up = elements(m, a->up);
    if (!w || !down || !up)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < in; i++)
        for (uint64_t r = 0; r < rank; r++) {
            const double part = a->scale * down[i * rank + r];
            for (uint64_t k = 0; k < width; k++)
                w[a->turned ? k * in + i : i * width + k] += part * up[r * width + k];
        }
    const onx_dtype dtype = (onx_dtype)a->weight.w->data_type;
    const int64_t dims[2] = { size_of(&a->weight, false), size_of(&a->weight, true) };
    if (dtype == ONX_FLOAT)
        ONX_TRY(onx_convert(ONX_FLOAT, w, ONX_DOUBLE, w, in * width, true));
    *out = onx_tensor_new(m->arena, dtype, dims, 2, w, "");
    return *out ? ONX_OK : ONX_E_MEMORY;
}

/* Replaces the weight by the merged one, for this product only if others use it as well. */
static onx_status merge_adapter(merger *m, onxi_names *names, const adapter *a)
{
    onx_tensor *sum;
    uint32_t count;
    const onx_name_id id = onx_index_find(m->index, onx_view(a->weight.w->name));
    const onx_def def = onx_index_def(m->index, id);
    ONX_TRY(sum_weights(m, a, &sum));
    (void)onx_index_uses(m->index, id, &count);
    if (count == 1 && !a->weight.hand_count && !onx_index_is_output(m->index, id)) {
        ONX_SET(tensor, sum, name, a->weight.w->name);
        m->graph->initializer[def.index] = sum;
    } else {
        ONX_TRY(onxi_names_make(names, onx_view(a->weight.w->name), onx_str_of("merged"), &sum->name));
        sum->has |= onx_tensor_has_name;
        if (!onx_graph_add_initializer(m->arena, m->graph, sum))
            return ONX_E_MEMORY;
        a->base->input[1] = sum->name;
        for (uint32_t i = 0; i < a->weight.hand_count; i++)
            m->hands[a->weight.hands[i]] = true;
    }
    a->base->output[0] = a->sum->output[0];
    for (size_t i = 0; i < sizeof a->nodes / sizeof *a->nodes; i++)
        m->gone[a->nodes[i]] = true;
    m->merged++;
    return ONX_OK;
}

static onx_status count_read(void *user, onx_bytes *name)
{
    onxi_dict_entry *entry = onx_view(*name).len ? onxi_dict_at(user, onx_view(*name), 0, NULL) : NULL;
    if (entry)
        entry->value++;
    return entry || !onx_view(*name).len ? ONX_OK : ONX_E_MEMORY;
}

/* The number of remaining reads of a name. */
static onx_status count_reads(const merger *m, onxi_dict *reads)
{
    for (uint32_t i = 0; i < m->graph->node_count; i++) {
        onx_node *node = m->graph->node[i];
        for (uint32_t k = 0; k < node->input_count && !m->gone[i]; k++)
            ONX_TRY(count_read(reads, &node->input[k]));
        for (uint32_t k = 0; k < node->attribute_count && !m->gone[i]; k++)
            if (node->attribute[k]->slot == ONX_SLOT_G && node->attribute[k]->g)
                ONX_TRY(onxi_graph_each_name(m->cx, node->attribute[k]->g, count_read, reads));
    }
    return ONX_OK;
}

static bool is_read(const merger *m, const onxi_dict *reads, onx_bytes name)
{
    const onxi_dict_entry *entry = onxi_dict_find(reads, onx_view(name));
    return (entry && entry->value) || onx_index_is_output(m->index, onx_index_find(m->index, onx_view(name)));
}

/* Removes nodes, and nodes that only they needed. */
static onx_status remove_gone(merger *m)
{
    onx_graph *g = m->graph;
    onxi_dict reads = onxi_dict_in_arena(m->scratch);
    uint32_t kept = 0, count;
    ONX_TRY(count_reads(m, &reads));
    for (uint32_t i = g->node_count; i-- > 0;)
        if (m->hands[i] && !m->gone[i] && !is_read(m, &reads, g->node[i]->output[0])) {
            m->gone[i] = true;
            onxi_dict_find(&reads, onx_view(g->node[i]->input[0]))->value--;
        }
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        (void)onx_index_uses(m->index, onx_index_find(m->index, onx_view(g->initializer[i]->name)), &count);
        if (!count || is_read(m, &reads, g->initializer[i]->name)) /* initializers that were unused before are kept */
            g->initializer[kept++] = g->initializer[i];
    }
    g->initializer_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < g->node_count; i++)
        if (!m->gone[i])
            g->node[kept++] = g->node[i];
    g->node_count = kept;
    return ONX_OK;
}

static onx_status merge_all(merger *m)
{
    onxi_names names = { .scratch = m->scratch, .arena = m->arena, .model = onx_doc_model(m->doc) };
    const onx_model *model = names.model;
    m->binder = (onxi_binder){ .arena = m->scratch, .functions = &m->functions };
    ONX_TRY(onxi_functions_index(m->scratch, model->functions, model->functions_count, &m->functions));
    ONX_TRY(onxi_binder_open_model(&m->binder, model));
    m->gone = ONXI_ARRAY(m->scratch, bool, (size_t)m->graph->node_count + 1);
    m->hands = ONXI_ARRAY(m->scratch, bool, (size_t)m->graph->node_count + 1);
    if (!m->gone || !m->hands)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < m->graph->node_count; i++) {
        adapter a;
        if (is_adapter(m, i, &a))
            ONX_TRY(merge_adapter(m, &names, &a));
        if (m->starved)
            return ONX_E_MEMORY;
    }
    return remove_gone(m);
}

static onx_status merge_adapters(onx_ctx *cx, onx_doc *doc, uint32_t *count)
{
    onx_model *model = onx_doc_model(doc);
    onx_arena *scratch;
    onx_index *index;
    if (count)
        *count = 0;
    if (!model || !model->graph)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document holds no model with a graph");
    ONX_TRY(onx_arena_new(cx, &scratch));
    onx_status status = onx_index_new(cx, model->graph, &index);
    if (status == ONX_OK) {
        merger m = {
            .cx = cx, .doc = doc, .arena = onx_doc_arena(doc), .scratch = scratch, .graph = model->graph, .index = index
        };
        status = merge_all(&m);
        onx_index_free(index);
        if (status == ONX_OK)
            status = onxi_strip_training(cx, model);
        if (count)
            *count = m.merged;
    }
    onx_arena_free(scratch);
    return status;
}

onx_status onx_merge_adapters(onx_ctx *cx, onx_doc *doc, uint32_t *count)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_TRANSFORM(cx, doc, merge_adapters(cx, doc, count));
}
