/* transform_trainable_mode.c - nodes that behave differently in training: they and their dependents are copied into the
 * algorithm, so that the main graph is for inference. If the model was exported in training mode, these nodes of the
 * main graph are set to inference, too. */
#include "transform/transform_part.h"
#include "transform/transform_trainable.h"

/* A constant that is true, or a value that is not known before the model runs. */
static bool may_be_set(onxi_trainable *t, onx_str name)
{
    const onxi_constant *constant = onxi_values_constant(&t->values, &t->scope, name);
    const onx_attribute *a = constant ? onxi_constant_attribute(&t->values, t->scratch, constant, ONX_ATTR_INT) : NULL;
    return !a || onxi_attribute_int(a) != 0;
}

/* The mode of a Dropout or BatchNormalization. */
typedef enum run_mode { NEITHER, INFERENCE, TRAINING } run_mode;

static run_mode mode_of(onxi_trainable *t, const onx_node *node)
{
    const onxi_op_id op = onxi_trainable_op(t, node);
    if (op == ONXI_ID_Dropout) {
        const bool given = node->input_count > 2 && onx_view(node->input[2]).len;
        if (!given || !may_be_set(t, onx_view(node->input[2])))
            return INFERENCE;
        const onxi_constant *known = onxi_values_constant(&t->values, &t->scope, onx_view(node->input[2]));
        return known ? TRAINING : NEITHER; /* the caller of the model chooses */
    }
    if (op != ONXI_ID_BatchNormalization || node->input_count < 5)
        return NEITHER;
    return onxi_bind_int(onxi_trainable_bound(t, node), node, "training_mode") ? TRAINING : INFERENCE;
}

static bool normalizes(onxi_trainable *t, const onx_node *node)
{
    return onxi_trainable_op(t, node) == ONXI_ID_BatchNormalization;
}

/* Is a node of training mode in one of the node's subgraphs? */
static bool holds_training(onxi_trainable *t, const onx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_graph *g = node->attribute[i]->slot == ONX_SLOT_G ? node->attribute[i]->g : NULL;
        for (uint32_t k = 0; g && k < g->node_count; k++)
            if (mode_of(t, g->node[k]) == TRAINING || holds_training(t, g->node[k]))
                return true;
    }
    return false;
}

/* Does a step need a copy of the node? */
static bool changes(onxi_trainable *t, const onx_node *node)
{
    if (onxi_trainable_rounds(t, node) || holds_training(t, node))
        return true;
    return mode_of(t, node) != NEITHER && !(normalizes(t, node) && t->options->freeze_statistics);
}

typedef struct reader {
    const onxi_dict *names;
    bool found;
} reader;

static onx_status look(void *user, onx_bytes *name)
{
    reader *r = user;
    r->found |= onx_view(*name).len && onxi_dict_find((onxi_dict *)(uintptr_t)r->names, onx_view(*name));
    return ONX_OK;
}

static onx_status each_read(onxi_trainable *t, const onx_node *node, onx_status (*visit)(void *, onx_bytes *),
                            void *user)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(visit(user, &node->input[i]));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(onxi_graph_each_name(t->cx, a->g, visit, user));
    }
    return ONX_OK;
}

typedef struct copier {
    onxi_trainable *t;
    onx_function *function; /* the nodes that are copied */
    onxi_dict made, taken;  /* their outputs; their inputs from outside */
} copier;

static onx_status take(void *user, onx_bytes *name)
{
    copier *c = user;
    bool made;
    if (!onx_view(*name).len || onxi_dict_find(&c->made, onx_view(*name)))
        return ONX_OK;
    if (!onxi_dict_at(&c->taken, onx_view(*name), 1, &made))
        return ONX_E_MEMORY;
    if (!made)
        return ONX_OK;
    ONX_TRY(onx_list_add_text(c->t->scratch, &c->function->input, &c->function->input_count, (onx_str){ 0 }));
    c->function->input[c->function->input_count - 1] = *name; /* the nodes that are made keep it */
    return ONX_OK;
}

/* The nodes that the output needs, from the first changed one on. */
static onx_status collect(copier *c)
{
    onxi_trainable *t = c->t;
    const onx_graph *g = t->graph;
    onx_function *f = c->function;
    if (!(f->node = ONXI_ARRAY(t->scratch, onx_node *, (size_t)g->node_count + 1)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++) {
        onx_node *node = g->node[i];
        reader r = { &c->made, false };
        if (!t->needed[i])
            continue;
        ONX_TRY(each_read(t, node, look, &r));
        if (!r.found && !changes(t, node))
            continue;
        ONX_TRY(each_read(t, node, take, c));
        f->node[f->node_count++] = node;
        for (uint32_t k = 0; k < node->output_count; k++)
            if (onx_view(node->output[k]).len && !onxi_dict_at(&c->made, onx_view(node->output[k]), 1, NULL))
                return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* ---- changing nodes ---- */

/* Adds an output, or input. */
static onx_status add_name(onxi_trainable *t, onx_bytes **list, uint32_t *count, onx_bytes name)
{
    ONX_TRY(onx_list_add_text(t->arena, list, count, (onx_str){ 0 }));
    (*list)[*count - 1] = name;
    return ONX_OK;
}

/* PyTorch's running variance is that of the unbiased variance: of n values per channel, n / (n - 1) times the one that
 * the standard averages. So new = momentum * old + (1 - momentum) * v becomes momentum * old + (new - momentum * old) *
 * n / (n - 1). A single value has no unbiased variance; it counts as the standard's. */
static onx_status unbias(onxi_trainable *t, const onx_node *node, onx_bytes variable, onx_bytes *name)
{
    const onxi_bound *bound = onxi_trainable_bound(t, node);
    const onx_bytes in[3] = { *name, variable, node->input[0] };
    const double momentum = onxi_bind_float(bound, node, "momentum");
    ONX_TRY(onxi_trainable_float(t, onx_str_of("momentum"), momentum));
    ONX_TRY(onxi_names_make(&t->names, onx_view(variable), onx_str_of("unbiased"), name));
    const onxi_text_nodes nodes = {
        .head = "(w, v, x) => (u)",
        .text =
            "f = Constant <value_float: float = @momentum> ()  m = CastLike (f, v)  old = Mul (v, m)  part = Sub (w, old)"
            "  sx = Size (x)  sv = Size (v)  n = Div (sx, sv)  one = Constant <value_int = 1> ()  less = Sub (n, one)"
            "  most = Max (less, one)  a = CastLike (n, v)  b = CastLike (most, v)  q = Div (a, b)"
            "  more = Mul (part, q)  u = Add (old, more)",
        .in = in,
        .out = name,
        .in_count = 3,
        .out_count = 1,
        .base = onx_view(variable)
    };
    return onxi_trainable_put(t, t->algorithm, &nodes);
}

/* Binds an updated running average to its variable, if that is a weight of the model. */
static onx_status update_average(onxi_trainable *t, const onx_node *node, uint32_t input)
{
    const onx_bytes variable = node->input[input];
    const onx_def def = onx_index_def(t->index, onx_index_find(t->index, onx_view(variable)));
    onx_bytes name = node->output[input - 2];
    if (def.kind != ONX_DEF_INITIALIZER)
        return ONX_OK;
    for (uint32_t i = 0; i < t->step->update_binding_count; i++) /* if two nodes share an average, the first counts */
        if (onx_str_equal(onx_view(t->step->update_binding[i]->key), onx_view(variable)))
            return ONX_OK;
    if (input == 4 && t->options->unbiased)
        ONX_TRY(unbias(t, node, variable, &name));
    ONX_TRY(onxi_trainable_output(t, t->algorithm, name, onxi_trainable_type_of(t, t->graph->initializer[def.index])));
    return onxi_trainable_update(t, variable, name);
}

static onx_status train_normalization(onxi_trainable *t, onx_node *node)
{
    onx_attribute *mode = onx_node_attribute(node, "training_mode");
    if (!mode && !(mode = onx_node_add_int(t->arena, node, "training_mode", 1)))
        return ONX_E_MEMORY;
    ONX_SET(attribute, mode, i, 1);
    for (uint32_t k = 3; k < 5; k++) { /* outputs 1 and 2 are averages 3 and 4 */
        onx_bytes name;
        if (node->output_count > k - 2 && onx_view(node->output[k - 2]).len)
            continue;
        ONX_TRY(onxi_names_make(&t->names, onx_view(node->input[k]), onx_str_of("new"), &name));
        if (node->output_count > k - 2)
            node->output[k - 2] = name;
        else
            ONX_TRY(add_name(t, &node->output, &node->output_count, name));
    }
    return ONX_OK;
}

/* A copy that normalizes by its averages, and keeps them. */
static void freeze_normalization(onx_node *node)
{
    onx_attribute *mode = onx_node_attribute(node, "training_mode");
    if (mode)
        ONX_SET(attribute, mode, i, 0);
    node->output_count = 1;
}

/* Binds the averages that a copied node computes. It is in the algorithm already. */
static onx_status update_averages(onxi_trainable *t, const onx_node *node)
{
    for (uint32_t k = 3; k < 5; k++)
        ONX_TRY(update_average(t, node, k));
    return ONX_OK;
}

static onx_status train_dropout(onxi_trainable *t, onx_node *node, onx_bytes yes)
{
    if (node->input_count > 2)
        node->input_count = 2;
    while (node->input_count < 2)
        ONX_TRY(add_name(t, &node->input, &node->input_count, (onx_bytes){ 0 }));
    return add_name(t, &node->input, &node->input_count, yes);
}

static const onx_attribute *no_argument(void *user, onx_str name, int32_t type)
{
    (void)user, (void)name, (void)type;
    return NULL;
}

static onx_status repeat(onxi_trainable *t, const onx_function *f)
{
    onx_bytes yes = { 0 };
    onxi_expansion x = { .arena = t->arena,
                         .scratch = t->scratch,
                         .names = &t->names,
                         .function = f,
                         .inputs = f->input,
                         .outputs = &t->y_in_training,
                         .input_count = f->input_count,
                         .output_count = 1,
                         .base = onx_str_of("train"),
                         .argument = no_argument };
    ONX_TRY(onxi_expand(&x));
    for (uint32_t i = 0; i < f->node_count; i++) {
        if (onxi_trainable_rounds(t, f->node[i])) {
            ONX_TRY(onxi_trainable_round(t, f->node[i], x.nodes[i]));
            continue;
        }
        if (onxi_trainable_restores(t, f->node[i])) {
            ONX_TRY(onxi_trainable_restore(t, x.nodes[i]));
            continue;
        }
        if (changes(t, f->node[i]) && onxi_trainable_op(t, f->node[i]) == ONXI_ID_Dropout) {
            if (!onx_view(yes).len) {
                ONX_TRY(onxi_names_make(&t->names, onx_str_of("training"), (onx_str){ 0 }, &yes));
                ONX_TRY(onxi_trainable_scalar(t, t->algorithm, yes, ONX_BOOL, 1));
            }
            ONX_TRY(train_dropout(t, x.nodes[i], yes));
        }
        const bool averages = normalizes(t, f->node[i]) && changes(t, f->node[i]);
        if (normalizes(t, f->node[i]) && !averages && mode_of(t, f->node[i]) == TRAINING)
            freeze_normalization(x.nodes[i]);
        if (averages)
            ONX_TRY(train_normalization(t, x.nodes[i]));
        ONX_TRY(onxi_trainable_add_node(t, t->algorithm, x.nodes[i]));
        if (averages)
            ONX_TRY(update_averages(t, x.nodes[i]));
    }
    return ONX_OK;
}

/* ---- inference ---- */

static bool is_read(const onx_graph *g, const onxi_dict *read, onx_str name)
{
    if (onxi_dict_find(read, name))
        return true;
    for (uint32_t i = 0; i < g->output_count; i++)
        if (onx_str_equal(onx_view(g->output[i]->name), name))
            return true;
    return false;
}

/* Sets a node of training mode to inference. Averages that something reads are the present ones then. */
static onx_status set_inference(onxi_trainable *t, onx_graph *g, uint32_t at, const onxi_dict *read)
{
    onx_node *node = g->node[at];
    if (onxi_trainable_op(t, node) == ONXI_ID_Dropout) {
        node->input_count = 2;
        return ONX_OK;
    }
    onx_attribute *mode = onx_node_attribute(node, "training_mode");
    if (mode)
        ONX_SET(attribute, mode, i, 0);
    for (uint32_t k = 1; k < node->output_count && k < 3; k++) {
        if (!onx_view(node->output[k]).len || !is_read(g, read, onx_view(node->output[k])))
            continue;
        onx_node *same = onx_graph_add_node(t->arena, g, "Identity", "", "");
        if (!same)
            return ONX_E_MEMORY;
        ONX_TRY(add_name(t, &same->input, &same->input_count, node->input[k + 2]));
        ONX_TRY(add_name(t, &same->output, &same->output_count, node->output[k]));
        memmove(g->node + at + 1, g->node + at, (g->node_count - 1 - at) * sizeof *g->node);
        g->node[at++] = same; /* before it, and so before its readers */
    }
    node->output_count = 1;
    return ONX_OK;
}

static onx_status note_read(void *user, onx_bytes *name)
{
    return onxi_dict_at(user, onx_view(*name), 1, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status infer_graph(onxi_trainable *t, onx_graph *g, const onxi_dict *read)
{
    for (uint32_t i = 0; i < g->node_count; i++) {
        onx_node *node = g->node[i];
        for (uint32_t k = 0; k < node->attribute_count; k++)
            if (node->attribute[k]->slot == ONX_SLOT_G && node->attribute[k]->g)
                ONX_TRY(infer_graph(t, node->attribute[k]->g, read));
        if (mode_of(t, node) != TRAINING)
            continue;
        const uint32_t before = g->node_count;
        onxi_tell_change(t->options->changed, t->options->user, "trainable", "inference", onx_view(node->output[0]),
                         "is set to inference mode; training steps keep its training mode");
        ONX_TRY(set_inference(t, g, i, read));
        i += g->node_count - before;
    }
    return ONX_OK;
}

onx_status onxi_trainable_infer(onxi_trainable *t)
{
    onxi_dict read = onxi_dict_in_arena(t->scratch);
    for (uint32_t i = 0; i < t->graph->node_count; i++)
        ONX_TRY(each_read(t, t->graph->node[i], note_read, &read));
    return infer_graph(t, t->graph, &read);
}

onx_status onxi_trainable_mode(onxi_trainable *t)
{
    copier c = { .t = t,
                 .function = onx_message_new(t->scratch, ONX_KIND_FUNCTION),
                 .made = onxi_dict_in_arena(t->scratch),
                 .taken = onxi_dict_in_arena(t->scratch) };
    t->y_in_training = t->y;
    if (!c.function || onx_arena_keep(t->scratch, onx_str_of("train"), &c.function->name) != ONX_OK)
        return ONX_E_MEMORY;
    ONX_TRY(collect(&c));
    if (!onxi_dict_find(&c.made, onx_view(t->y)))
        return ONX_OK;
    ONX_TRY(onx_list_add_text(t->scratch, &c.function->output, &c.function->output_count, onx_view(t->y)));
    ONX_TRY(onxi_names_make(&t->names, onx_str_of("train"), onx_view(t->y), &t->y_in_training));
    return repeat(t, c.function);
}
