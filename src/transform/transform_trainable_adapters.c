/* transform_trainable_adapters.c - adapters of low rank: a product by a frozen weight gets a narrow one beside it,
 * which is trained, and which is added to the weight in the end. */
#include "transform/transform_part.h"
#include "transform/transform_precision.h"
#include "transform/transform_trainable.h"

static const char *const suffixes[] = { [ONXI_ADAPTER_DOWN] = "adapter_down", [ONXI_ADAPTER_UP] = "adapter_up" };

/* Of a node whose products adapters may stand beside: MatMul, and Gemm of what it is given as it is. */
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

static const onx_tensor *matrix(const onx_graph *g, const onx_index *index, onx_bytes name)
{
    const onx_def def = onx_index_def(index, onx_index_find(index, onx_view(name)));
    const onx_tensor *w = def.kind == ONX_DEF_INITIALIZER ? g->initializer[def.index] : NULL;
    return w && w->dims_count == 2 && (w->data_type == ONX_FLOAT || w->data_type == ONX_DOUBLE) ? w : NULL;
}

static bool is_chosen(const onx_trainable_options *o, onx_str name)
{
    bool chosen = !o->train_count;
    for (uint32_t i = 0; i < o->train_count; i++)
        chosen |= onxi_glob(o->train[i], name);
    for (uint32_t i = 0; i < o->freeze_count; i++)
        chosen &= !onxi_glob(o->freeze[i], name);
    return chosen;
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

static onx_status adapt(onxi_trainable *t, onx_node *node, const onx_tensor *w, bool turned, onx_graph *out)
{
    const int64_t rank = t->options->lora_rank, in = w->dims[turned ? 1 : 0], width = w->dims[turned ? 0 : 1];
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
        const onx_tensor *w = p.is ? matrix(t->graph, index, node->input[1]) : NULL;
        status = onxi_trainable_add_node(t, &list, node);
        if (status == ONX_OK && w && is_chosen(t->options, onx_view(w->name))) {
            status = adapt(t, node, w, p.turned, &list);
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

/* ---- back into the weights ---- */

typedef struct merger {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena, *scratch;
    onx_graph *graph;
    const onx_index *index;
    onxi_functions functions;
    onxi_binder binder;
    bool *gone;   /* nodes that are not needed any more */
    bool starved; /* memory ran out */
    uint32_t merged;
} merger;

static bool is_op(merger *m, const onx_node *node, onxi_op_id op)
{
    const onxi_bound *bound = onxi_bind(&m->binder, node);
    m->starved |= !bound;
    return bound && bound->kind == ONXI_BOUND_OPERATOR && bound->op == op;
}

/* The node that makes a value, where nothing else reads it. */
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

/* The same, of that operator. */
static onx_node *maker_of(merger *m, onx_bytes name, onxi_op_id op, uint32_t *at)
{
    onx_node *node = maker(m, name, at);
    return node && is_op(m, node, op) ? node : NULL;
}

typedef struct adapter {
    onx_node *base, *sum;
    const onx_tensor *weight, *down, *up;
    double scale;
    bool turned;       /* the weight is transposed */
    uint32_t nodes[4]; /* but for the base */
} adapter;

/* Is node `at` the sum that onxi_trainable_adapt has written? */
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
    a->weight = matrix(m->graph, m->index, a->base->input[1]);
    a->down = matrix(m->graph, m->index, down->input[1]);
    a->up = matrix(m->graph, m->index, up->input[1]);
    if (!a->weight || !a->down || !a->up || scale.kind != ONX_DEF_INITIALIZER || a->down->dims[1] != a->up->dims[0])
        return false;
    const onx_tensor *s = m->graph->initializer[scale.index];
    return s->dims_count == 0 && a->weight->dims[a->turned] == a->down->dims[0] &&
           a->weight->dims[!a->turned] == a->up->dims[1] && onx_tensor_get_f64(m->doc, s, 0, 1, &a->scale) == ONX_OK;
}

static double *elements(const merger *m, const onx_tensor *t)
{
    uint64_t count;
    double *all = onx_tensor_count(t, &count) ? ONXI_ARRAY(m->scratch, double, (size_t)count + 1) : NULL;
    return all && onx_tensor_get_f64(m->doc, t, 0, count, all) == ONX_OK ? all : NULL;
}

static onx_status sum_weights(const merger *m, const adapter *a, onx_tensor **out)
{
    const uint64_t in = (uint64_t)a->down->dims[0], rank = (uint64_t)a->down->dims[1], width = (uint64_t)a->up->dims[1];
    double *w = elements(m, a->weight), *down = elements(m, a->down), *up = elements(m, a->up);
    if (!w || !down || !up)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < in; i++)
        for (uint64_t r = 0; r < rank; r++) {
            const double part = a->scale * down[i * rank + r];
            for (uint64_t k = 0; k < width; k++)
                w[a->turned ? k * in + i : i * width + k] += part * up[r * width + k];
        }
    const onx_dtype dtype = (onx_dtype)a->weight->data_type;
    if (dtype == ONX_FLOAT)
        ONX_TRY(onx_convert(ONX_FLOAT, w, ONX_DOUBLE, w, in * width, true));
    *out = onx_tensor_new(m->arena, dtype, a->weight->dims, 2, w, "");
    return *out ? ONX_OK : ONX_E_MEMORY;
}

/* The weight becomes another one, for this product alone where others take it as well. */
static onx_status merge_adapter(merger *m, onxi_names *names, const adapter *a)
{
    onx_tensor *sum;
    uint32_t count;
    const onx_def def = onx_index_def(m->index, onx_index_find(m->index, onx_view(a->weight->name)));
    ONX_TRY(sum_weights(m, a, &sum));
    (void)onx_index_uses(m->index, onx_index_find(m->index, onx_view(a->weight->name)), &count);
    if (count == 1) {
        ONX_SET(tensor, sum, name, a->weight->name);
        m->graph->initializer[def.index] = sum;
    } else {
        ONX_TRY(onxi_names_make(names, onx_view(a->weight->name), onx_str_of("merged"), &sum->name));
        sum->has |= onx_tensor_has_name;
        if (!onx_graph_add_initializer(m->arena, m->graph, sum))
            return ONX_E_MEMORY;
        a->base->input[1] = sum->name;
    }
    a->base->output[0] = a->sum->output[0];
    for (size_t i = 0; i < sizeof a->nodes / sizeof *a->nodes; i++)
        m->gone[a->nodes[i]] = true;
    m->merged++;
    return ONX_OK;
}

/* Nodes, and initializers that only they have taken. */
static void remove_gone(merger *m)
{
    onx_graph *g = m->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        uint32_t count;
        const onx_name_id id = onx_index_find(m->index, onx_view(g->initializer[i]->name));
        const onx_use *use = onx_index_uses(m->index, id, &count);
        bool needed = !count || onx_index_is_output(m->index, id);
        for (uint32_t k = 0; k < count; k++)
            needed |= !m->gone[use[k].node];
        if (needed)
            g->initializer[kept++] = g->initializer[i];
    }
    g->initializer_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < g->node_count; i++)
        if (!m->gone[i])
            g->node[kept++] = g->node[i];
    g->node_count = kept;
}

static onx_status merge_all(merger *m)
{
    onxi_names names = { .scratch = m->scratch, .arena = m->arena, .model = onx_doc_model(m->doc) };
    const onx_model *model = names.model;
    m->binder = (onxi_binder){ .arena = m->scratch, .functions = &m->functions };
    ONX_TRY(onxi_functions_index(m->scratch, model->functions, model->functions_count, &m->functions));
    ONX_TRY(onxi_binder_open_model(&m->binder, model));
    if (!(m->gone = ONXI_ARRAY(m->scratch, bool, (size_t)m->graph->node_count + 1)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < m->graph->node_count; i++) {
        adapter a;
        if (is_adapter(m, i, &a))
            ONX_TRY(merge_adapter(m, &names, &a));
        if (m->starved)
            return ONX_E_MEMORY;
    }
    remove_gone(m);
    return ONX_OK;
}

static onx_status visit_node(void *user, const onx_visit *at)
{
    bool *used = user;
    *used |= at->kind == ONX_KIND_NODE &&
             onx_str_is(onx_view(((const onx_node *)at->message)->domain), ONXI_TRAINING_DOMAIN);
    return ONX_OK;
}

/* Training information, and the import of its operators where nothing else has any. */
static onx_status remove_training(onx_ctx *cx, onx_model *model)
{
    bool used = false;
    model->training_info_count = 0;
    ONX_TRY(onx_message_walk(cx, ONX_KIND_MODEL, model, visit_node, &used));
    for (uint32_t i = model->opset_import_count; i-- > 0 && !used;)
        if (onx_str_is(onx_view(model->opset_import[i]->domain), ONXI_TRAINING_DOMAIN))
            onx_list_remove(model->opset_import, &model->opset_import_count, i, sizeof *model->opset_import);
    return ONX_OK;
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
            status = remove_training(cx, model);
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
    ONXI_CALL(cx, merge_adapters(cx, doc, count));
}
