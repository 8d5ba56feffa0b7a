/* transform_trainable_ties.c - which initializers are one weight. Exporters store equal tensors once, so that weights
 * that only begin with equal values look shared; and they fold the transpose of a shared weight into a second tensor.
 */
#include "transform/transform_part.h"
#include "transform/transform_trainable.h"

/* ---- constants that may be weights ---- */

onx_status onxi_trainable_lift(onxi_trainable *t, onx_bytes name, const onx_tensor *from)
{
    onx_tensor *tensor = ONXI_NEW(t->arena, onx_tensor);
    if (!tensor)
        return ONX_E_MEMORY;
    *tensor = *from;
    ONX_SET(tensor, tensor, name, name);
    return onx_graph_add_initializer(t->arena, t->graph, tensor) ? ONX_OK : ONX_E_MEMORY;
}

/* PyTorch stores parameters as initializers, and other tensors as Constant nodes. */
static onx_status lift_constant(onxi_trainable *t, const onx_node *node)
{
    const onx_attribute *a = onx_node_attribute(node, "value");
    const bool weight =
        a && a->slot == ONX_SLOT_T && a->t && onxi_trainable_is_real(a->t->data_type) && a->t->dims_count;
    return weight && !t->torch && node->output_count == 1 ? onxi_trainable_lift(t, node->output[0], a->t) : ONX_OK;
}

typedef struct sharing {
    onxi_dict weights;  /* initializers that are not inputs: indexes */
    onxi_dict averages; /* running averages of BatchNormalization */
    onxi_dict outputs;  /* of the graph */
    onxi_dict modules;  /* values: the first node that reads each, an index */
    onxi_dict uniform;  /* initializers that were looked at: is_uniform */
} sharing;

static onx_status note_all(onxi_dict *names, onx_value_info *const *infos, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!onxi_dict_at(names, onx_view(infos[i]->name), i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status find_sharing(onxi_trainable *t, sharing *s)
{
    onxi_dict inputs = onxi_dict_in_arena(t->scratch);
    onxi_dict *const all[] = { &s->weights, &s->averages, &s->outputs, &s->modules, &s->uniform };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = onxi_dict_in_arena(t->scratch);
    ONX_TRY(note_all(&inputs, t->graph->input, t->graph->input_count));
    ONX_TRY(note_all(&s->outputs, t->graph->output, t->graph->output_count));
    for (uint32_t i = 0; i < t->graph->initializer_count; i++) {
        const onx_str name = onx_view(t->graph->initializer[i]->name);
        if (!onxi_dict_find(&inputs, name) && !onxi_dict_at(&s->weights, name, i, NULL))
            return ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < t->graph->node_count; i++) {
        const onx_node *node = t->graph->node[i];
        const bool normalizes = onxi_trainable_op(t, node) == ONXI_ID_BatchNormalization;
        for (uint32_t k = 0; k < node->input_count; k++) {
            if (normalizes && (k == 3 || k == 4) && !onxi_dict_at(&s->averages, onx_view(node->input[k]), k, NULL))
                return ONX_E_MEMORY;
            if (onxi_trainable_op(t, node) != ONXI_ID_Identity && onx_view(node->input[k]).len &&
                !onxi_dict_at(&s->modules, onx_view(node->input[k]), i, NULL))
                return ONX_E_MEMORY;
        }
    }
    return ONX_OK;
}

/* Has the tensor a single axis, and equal elements? */
static bool is_uniform(onxi_trainable *t, const onx_tensor *tensor)
{
    enum { PIECE = 256 };
    float piece[PIECE], first = 0;
    uint64_t count;
    if (tensor->dims_count != 1 || !onx_tensor_count(tensor, &count))
        return false;
    for (uint64_t from = 0; from < count; from += PIECE) {
        const uint64_t some = count - from < PIECE ? count - from : PIECE;
        if (onx_tensor_get_f32(t->doc, tensor, from, some, piece) != ONX_OK)
            return false;
        first = from ? first : piece[0];
        for (uint64_t i = 0; i < some; i++)
            if (memcmp(&piece[i], &first, sizeof first))
                return false;
    }
    return true;
}

/* Many nodes may read one weight, whose elements are looked at once. */
static onx_status is_uniform_source(onxi_trainable *t, sharing *s, onx_str name, const onx_tensor *tensor, bool *out)
{
    bool made = false;
    onxi_dict_entry *known = onxi_dict_at(&s->uniform, name, 0, &made);
    if (!known)
        return ONX_E_MEMORY;
    if (made)
        known->value = is_uniform(t, tensor);
    *out = known->value;
    return ONX_OK;
}

static void tell_own(onxi_trainable *t, onx_str name, const onx_tensor *from)
{
    onxi_tell_change(t->options->changed, t->options->user, "trainable", "own", name,
                     "is a weight of its own, that begins as %.*s", ONX_ARG(onx_view(from->name)));
}

/* Do different modules read the two? TorchScript gives folded weights that are equal to one Identity for each use. */
static bool of_other_modules(onxi_trainable *t, const sharing *s, onx_str a, onx_str b)
{
    const onxi_dict_entry *first = onxi_dict_find(&s->modules, a), *second = onxi_dict_find(&s->modules, b);
    onx_str one, other;
    return first && second && onxi_trainable_module(t, t->graph->node[first->value], &one) &&
           onxi_trainable_module(t, t->graph->node[second->value], &other) && !onx_str_equal(one, other);
}

/* An exporter writes Identity in the place of a weight that equals another one. Scales, biases and averages often begin
 * with equal values, but are separate weights, and so are parameters that have names of their own. */
static onx_status part_shared(onxi_trainable *t, sharing *s, const onx_node *node)
{
    if (node->input_count != 1 || node->output_count != 1)
        return ONX_OK;
    const onx_str name = onx_view(node->output[0]), source = onx_view(node->input[0]);
    const onxi_dict_entry *from = onxi_dict_find(&s->weights, source);
    if (!from || onxi_dict_find(&s->outputs, name))
        return ONX_OK;
    const uint32_t at = t->graph->initializer_count;
    const onx_tensor *tensor = t->graph->initializer[from->value];
    if (!onxi_trainable_is_real(tensor->data_type) || onxi_trainable_tied(t, name) || onxi_trainable_tied(t, source))
        return ONX_OK;
    bool uniform;
    ONX_TRY(is_uniform_source(t, s, source, tensor, &uniform));
    if (!onxi_trainable_untied(t, name) && !onxi_trainable_untied(t, source) && !onxi_dict_find(&s->averages, name) &&
        !onxi_trainable_is_own_name(t, name) && !uniform && !(t->torch && of_other_modules(t, s, name, source)))
        return ONX_OK;
    ONX_TRY(onxi_trainable_lift(t, node->output[0], tensor));
    tell_own(t, name, tensor);
    return onxi_dict_at(&s->weights, name, at, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status lift_constants(onxi_trainable *t)
{
    uint32_t kept = 0;
    sharing s;
    ONX_TRY(find_sharing(t, &s));
    for (uint32_t i = 0; i < t->graph->node_count; i++) {
        const onx_node *node = t->graph->node[i];
        const uint32_t before = t->graph->initializer_count;
        if (onxi_trainable_op(t, node) == ONXI_ID_Constant)
            ONX_TRY(lift_constant(t, node));
        else if (onxi_trainable_op(t, node) == ONXI_ID_Identity)
            ONX_TRY(part_shared(t, &s, node));
        if (t->graph->initializer_count == before)
            t->graph->node[kept++] = t->graph->node[i];
    }
    t->graph->node_count = kept;
    return ONX_OK;
}

/* ---- a weight that several nodes read ---- */

typedef struct place { /* a node that reads a weight */
    uint32_t node, input;
    uint32_t reader;  /* the node that uses it, after nodes that only change its shape */
    onxi_op_id op;    /* of that node */
    uint32_t operand; /* its input */
    uint32_t turns;   /* number of Transpose nodes before it */
    const onxi_role_row *role;
    onx_str module;
    bool has_module;
    uint32_t group;
} place;

static place find_place(onxi_trainable *t, onx_use use)
{
    enum { FAR = 4 };
    static const onxi_op_id shapers[] = { ONXI_ID_Transpose, ONXI_ID_Identity,  ONXI_ID_Reshape,
                                          ONXI_ID_Cast,      ONXI_ID_Unsqueeze, ONXI_ID_Squeeze };
    place p = { .node = use.node, .input = use.input, .reader = use.node, .operand = use.input };
    for (int i = 0; i < FAR; i++) {
        const onx_node *node = t->graph->node[p.reader];
        uint32_t count = 0;
        p.op = onxi_trainable_op(t, node);
        const onx_use *next =
            ONXI_IS_ONE_OF(p.op, shapers) && p.operand == 0 && node->output_count
                ? onx_index_uses(t->index, onx_index_find(t->index, onx_view(node->output[0])), &count)
                : NULL;
        if (count != 1 || next->input == UINT32_MAX)
            break;
        p.turns += p.op == ONXI_ID_Transpose;
        p.reader = next->node;
        p.operand = next->input;
    }
    const onx_node *reader = t->graph->node[p.reader];
    p.op = onxi_trainable_op(t, reader);
    p.role = onxi_trainable_role(p.op, p.operand);
    p.has_module = onxi_trainable_module(t, reader, &p.module);
    return p;
}

static bool is_vector_role(const place *p)
{
    static const onxi_role roles[] = { ONXI_ROLE_BIAS,     ONXI_ROLE_SCALE,  ONXI_ROLE_SLOPE, ONXI_ROLE_MEAN,
                                       ONXI_ROLE_VARIANCE, ONXI_ROLE_OFFSET, ONXI_ROLE_FACTOR };
    for (size_t i = 0; p->role && i < sizeof roles / sizeof *roles; i++)
        if (p->role->role == roles[i])
            return true;
    return false;
}

static bool same_use(const place *a, const place *b)
{
    return a->op == b->op && a->operand == b->operand && a->turns % 2 == b->turns % 2;
}

/* A name that places have in common whose weight is the same even if it is separate for each module. */
static onx_str group_name(onxi_trainable *t, const place *p, bool vector, bool each)
{
    const int use = vector ? (int)p->op : 0;
    const unsigned operand = vector ? p->operand : 0, turned = vector ? p->turns % 2 : 0;
    if (each || !p->has_module)
        return onxi_arena_printf(t->scratch, "%d %u %u node %u", use, operand, turned, p->node);
    return onxi_arena_printf(t->scratch, "%d %u %u module %.*s", use, operand, turned, ONX_ARG(p->module));
}

/* Are these uses of one tensor possibly separate weights that the exporter has merged? The file says that they are one
 * if it uses them in different ways, as an embedding and the head do. */
static bool may_be_separate(onxi_trainable *t, const place *p, uint32_t count, bool vector)
{
    bool modules = true;
    if (t->torch && !t->marked) /* TorchScript writes Identity for merged weights */
        return false;
    for (uint32_t i = 0; i < count; i++)
        modules &= p[i].has_module;
    for (uint32_t i = 0; i < count; i++) {
        const onxi_role role = p[i].role ? p[i].role->role : ONXI_ROLE_NONE;
        if (onxi_trainable_op(t, t->graph->node[p[i].node]) == ONXI_ID_Identity) /* the file says that it is the same */
            return false;
        if (!vector && (!same_use(&p[i], &p[0]) || role == ONXI_ROLE_TABLE))
            return false;
        if (!modules && (vector ? !is_vector_role(&p[i])
                                : role == ONXI_ROLE_NONE || role == ONXI_ROLE_OFFSET || role == ONXI_ROLE_FACTOR))
            return false;
    }
    return true;
}

/* Does the name of the weight say that it belongs to the module? */
static bool is_home(const place *p, onx_str name)
{
    return p->has_module && p->module.len && name.len > p->module.len && name.ptr[p->module.len] == '.' &&
           memcmp(name.ptr, p->module.ptr, p->module.len) == 0;
}

/* "layers.1.norm1.weight" of module "layers.1.norm1" and weight "layers.0.norm1.weight", of module "layers.0.norm1". */
static onx_status name_part(onxi_trainable *t, const place *p, const place *home, onx_str name, onx_bytes *out)
{
    size_t at = is_home(home, name) ? home->module.len + 1 : name.len;
    while (!is_home(home, name) && at && name.ptr[at - 1] != '.')
        at--;
    if (p->has_module && p->module.len && *p->module.ptr != '/' && at) {
        const onx_str made =
            onxi_arena_printf(t->scratch, "%.*s.%.*s", ONX_ARG(p->module), (int)(name.len - at), name.ptr + at);
        if (!made.ptr)
            return ONX_E_MEMORY;
        return onxi_names_make(&t->names, made, (onx_str){ 0 }, out);
    }
    return onxi_names_make(&t->names, name, onx_str_of("own"), out);
}

static onx_status separate(onxi_trainable *t, onx_tensor *tensor, const place *p, uint32_t count, uint32_t groups)
{
    const onx_str name = onx_view(tensor->name);
    onx_bytes *names = ONXI_ARRAY(t->scratch, onx_bytes, (size_t)groups + 1);
    const place *home = p;
    if (!names)
        return ONX_E_MEMORY;
    for (uint32_t i = count; i-- > 0;)
        if (is_home(&p[i], name))
            home = &p[i];
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t group = p[i].group;
        if (group == home->group)
            continue;
        if (!onx_view(names[group]).len) {
            ONX_TRY(name_part(t, &p[i], home, name, &names[group]));
            ONX_TRY(onxi_trainable_lift(t, names[group], tensor));
            onx_type *type = onxi_trainable_type_of(t, tensor);
            if (!type)
                return ONX_E_MEMORY;
            ONX_TRY(onxi_values_note(&t->values, onx_view(names[group]), type, NULL));
            tell_own(t, onx_view(names[group]), tensor);
            const onxi_dict_entry *origin = onxi_dict_find(&t->origins, name);
            if (origin && !onxi_dict_at(&t->origins, onx_view(names[group]), origin->value, NULL))
                return ONX_E_MEMORY;
        }
        t->graph->node[p[i].node]->input[p[i].input] = names[group];
    }
    return ONX_OK;
}

static onx_status part_direct(onxi_trainable *t, onx_tensor *tensor)
{
    const onx_str name = onx_view(tensor->name);
    uint32_t count, groups = 0;
    const onx_use *use = onx_index_uses(t->index, onx_index_find(t->index, name), &count);
    const onxi_origin origin = onxi_trainable_origin(t, name);
    if (!onxi_trainable_is_real(tensor->data_type) || !tensor->dims_count || count < 2 ||
        onxi_trainable_tied(t, name) || origin == ONXI_ORIGIN_MADE || origin == ONXI_ORIGIN_BUFFER)
        return ONX_OK;
    const bool each = onxi_trainable_untied(t, name), vector = !each && is_uniform(t, tensor);
    place *p = ONXI_ARRAY(t->scratch, place, count);
    onxi_dict names = onxi_dict_in_arena(t->scratch);
    if (!p)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        if (use[i].input == UINT32_MAX)
            return ONX_OK; /* a subgraph reads it */
        p[i] = find_place(t, use[i]);
    }
    if (!each && !may_be_separate(t, p, count, vector))
        return ONX_OK;
    for (uint32_t i = 0; i < count; i++) {
        const onx_str key = group_name(t, &p[i], vector, each);
        bool made = false;
        const onxi_dict_entry *group = key.ptr ? onxi_dict_at(&names, key, groups, &made) : NULL;
        if (!group)
            return ONX_E_MEMORY;
        groups += made;
        p[i].group = group->value;
    }
    return groups > 1 ? separate(t, tensor, p, count, groups) : ONX_OK;
}

/* ---- a transposed copy of a weight ---- */

static bool begins_transposed(onxi_trainable *t, const onx_tensor *a, const onx_tensor *b)
{
    enum { SOME = 16 };
    const uint64_t rows = (uint64_t)a->dims[0], columns = (uint64_t)a->dims[1];
    for (uint64_t k = 0; k < columns && k < SOME; k++) { /* most pairs differ here */
        float one, other;
        if (onx_tensor_get_f32(t->doc, a, k, 1, &one) != ONX_OK ||
            onx_tensor_get_f32(t->doc, b, k * rows, 1, &other) != ONX_OK || memcmp(&one, &other, sizeof one))
            return false;
    }
    return true;
}

/* Are the elements of one those of the other, transposed, and not all equal? `memory` has room for both. */
static bool equals_transposed(onxi_trainable *t, const onx_tensor *a, const onx_tensor *b, size_t count, float *memory)
{
    const size_t rows = (size_t)a->dims[0], columns = (size_t)a->dims[1];
    float *x = memory, *y = memory + count;
    bool varied = false;
    if (onx_tensor_get_f32(t->doc, a, 0, count, x) != ONX_OK || onx_tensor_get_f32(t->doc, b, 0, count, y) != ONX_OK)
        return false;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++) {
            if (memcmp(&x[i * columns + k], &y[k * rows + i], sizeof *x))
                return false;
            varied |= memcmp(&x[i * columns + k], x, sizeof *x) != 0;
        }
    return varied;
}

/* Most pairs differ at their beginning. The memory for others is returned, since there may be many. */
static onx_status is_transposed(onxi_trainable *t, const onx_tensor *a, const onx_tensor *b, bool *out)
{
    const uint64_t rows = (uint64_t)a->dims[0], columns = (uint64_t)a->dims[1];
    onx_arena *arena;
    *out = false;
    if (rows > SIZE_MAX / (2 * sizeof(float)) / columns || rows * columns < 2 || !begins_transposed(t, a, b))
        return ONX_OK;
    const size_t count = (size_t)(rows * columns);
    ONX_TRY(onx_arena_new(t->cx, &arena));
    float *memory = ONXI_ARRAY(arena, float, 2 * count);
    *out = memory && equals_transposed(t, a, b, count, memory);
    onx_arena_free(arena);
    return memory ? ONX_OK : ONX_E_MEMORY;
}

static bool are_matrices(const onx_tensor *a, const onx_tensor *b)
{
    return a->dims_count == 2 && b->dims_count == 2 && a->data_type == ONX_FLOAT && b->data_type == ONX_FLOAT &&
           a->dims[0] == b->dims[1] && a->dims[1] == b->dims[0] && a->dims[0] > 0 && a->dims[1] > 0;
}

/* Replaces an initializer by the transpose of another one. */
static onx_status turn(onxi_trainable *t, uint32_t at, const onx_tensor *table)
{
    onx_graph *g = t->graph;
    const onx_bytes name = g->initializer[at]->name;
    onx_type *type = onxi_trainable_type_of(t, g->initializer[at]);
    onx_node *node = type ? onx_graph_add_node(t->arena, g, "Transpose", "", "") : NULL;
    if (!node)
        return ONX_E_MEMORY;
    memmove(g->node + 1, g->node, (g->node_count - 1) * sizeof *g->node);
    g->node[0] = node;
    ONX_TRY(onx_list_add_text(t->arena, &node->input, &node->input_count, (onx_str){ 0 }));
    ONX_TRY(onx_list_add_text(t->arena, &node->output, &node->output_count, (onx_str){ 0 }));
    node->input[0] = table->name;
    node->output[0] = name;
    ONX_TRY(onxi_values_note(&t->values, onx_view(name), type, NULL));
    onxi_tell_change(t->options->changed, t->options->user, "trainable", "tie", onx_view(name),
                     "is the transpose of weight %.*s", ONX_ARG(onx_view(table->name)));
    return ONX_OK;
}

enum { TABLES_MAX = 64 }; /* a model has fewer embeddings */

typedef struct matrices {
    const onx_tensor *tables[TABLES_MAX]; /* that embeddings read */
    uint32_t table_count;
    onxi_dict kernels; /* names of what products read */
} matrices;

static onx_status find_matrices(onxi_trainable *t, matrices *m)
{
    onxi_dict tables = onxi_dict_in_arena(t->scratch);
    *m = (matrices){ .kernels = onxi_dict_in_arena(t->scratch) };
    for (uint32_t i = 0; i < t->graph->node_count; i++) {
        const onx_node *node = t->graph->node[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            const onxi_role_row *row = onxi_trainable_role(onxi_trainable_op(t, node), k);
            const onxi_role role = row ? row->role : ONXI_ROLE_NONE;
            onxi_dict *to = role == ONXI_ROLE_TABLE ? &tables : role == ONXI_ROLE_KERNEL ? &m->kernels : NULL;
            if (to && !onxi_dict_at(to, onx_view(node->input[k]), 1, NULL))
                return ONX_E_MEMORY;
        }
    }
    for (uint32_t i = 0; i < t->graph->initializer_count && m->table_count < TABLES_MAX; i++)
        if (onxi_dict_find(&tables, onx_view(t->graph->initializer[i]->name)))
            m->tables[m->table_count++] = t->graph->initializer[i];
    return ONX_OK;
}

/* Exporters fold the transpose of a table that the head of a language model shares: the product reads a second tensor
 * then, with the same numbers. */
static onx_status retie(onxi_trainable *t)
{
    matrices m;
    onx_graph *g = t->graph;
    uint32_t kept = 0;
    onxi_dict inputs = onxi_dict_in_arena(t->scratch);
    ONX_TRY(note_all(&inputs, g->input, g->input_count));
    ONX_TRY(find_matrices(t, &m));
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        onx_tensor *kernel = g->initializer[i];
        const onx_str name = onx_view(kernel->name);
        bool turned = false;
        for (uint32_t k = 0; k < m.table_count && !turned; k++) {
            if (kernel != m.tables[k] && are_matrices(kernel, m.tables[k]) && onxi_dict_find(&m.kernels, name) &&
                !onxi_dict_find(&inputs, name) && !onxi_trainable_untied(t, name))
                ONX_TRY(is_transposed(t, m.tables[k], kernel, &turned));
            if (turned)
                ONX_TRY(turn(t, i, m.tables[k]));
        }
        if (!turned)
            g->initializer[kept++] = kernel;
    }
    g->initializer_count = kept;
    return ONX_OK;
}

static onx_status index_again(onxi_trainable *t)
{
    onx_index_free(t->index);
    t->index = NULL;
    t->scope = (onxi_scope){ .graph = t->graph, .nodes = t->graph->node, .node_count = t->graph->node_count };
    return onx_index_new(t->cx, t->graph, &t->index);
}

onx_status onxi_trainable_ties(onxi_trainable *t)
{
    ONX_TRY(lift_constants(t));
    if (!t->options->lora_rank) {
        ONX_TRY(retie(t));
        ONX_TRY(index_again(t));
        onxi_dict inputs = onxi_dict_in_arena(t->scratch);
        ONX_TRY(note_all(&inputs, t->graph->input, t->graph->input_count));
        const uint32_t count = t->graph->initializer_count;
        for (uint32_t i = 0; i < count; i++)
            if (!onxi_dict_find(&inputs, onx_view(t->graph->initializer[i]->name)))
                ONX_TRY(part_direct(t, t->graph->initializer[i]));
    }
    return index_again(t);
}
