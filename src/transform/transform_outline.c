/* transform_outline.c - finds repeated sequences of nodes: nodes become symbols, and equal sequences of symbols are
 * found by comparing with the previous occurrence of a symbol, the longest first. */
#include "transform/transform_outline.h"

/* ---- symbols ---- */

/* Nodes with subgraphs, references, names of values, external data or device placement are not moved. */
static bool may_move(const onx_node *node)
{
    const onx_node_extra *more = onx_node_more(node);
    if (more->device_configurations_count || !node->output_count || onxi_node_names_values(node))
        return false;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->extra || (a->slot == ONX_SLOT_T && a->t && onx_tensor_is_external(a->t)))
            return false;
        switch (a->slot) {
        case ONX_SLOT_F:
        case ONX_SLOT_I:
        case ONX_SLOT_S:
        case ONX_SLOT_T:
        case ONX_SLOT_FLOATS:
        case ONX_SLOT_INTS:
        case ONX_SLOT_STRINGS:
            break;
        default:
            return false;
        }
    }
    return true;
}

static uint64_t hash_bytes(onxi_secret secret, const void *bytes, size_t len)
{
    return len ? onxi_hash(secret, bytes, len) : 1;
}

static uint32_t hash_node(onxi_secret secret, const onx_node *node)
{
    const onx_str op = onx_view(node->op_type), domain = onxi_domain_plain(onx_view(node->domain));
    uint64_t h = hash_bytes(secret, op.ptr, op.len);
    h = onxi_hash_word(onxi_hash_then(secret, h), hash_bytes(secret, domain.ptr, domain.len));
    h = onxi_hash_word(onxi_hash_then(secret, h), (uint64_t)node->input_count << 32 | node->output_count);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        h = onxi_hash_word(onxi_hash_then(secret, h),
                           onxi_message_hash(secret, ONX_KIND_ATTRIBUTE, node->attribute[i]));
    return (uint32_t)(h ^ h >> 32);
}

/* Do both nodes compute the same from their inputs, regardless of names? */
static bool is_alike(const onx_node *a, const onx_node *b)
{
    if (!onx_str_equal(onx_view(a->op_type), onx_view(b->op_type)) ||
        !onx_str_equal(onxi_domain_plain(onx_view(a->domain)), onxi_domain_plain(onx_view(b->domain))) ||
        !onx_str_equal(onx_view(onx_node_more(a)->overload), onx_view(onx_node_more(b)->overload)) ||
        a->input_count != b->input_count || a->output_count != b->output_count ||
        a->attribute_count != b->attribute_count)
        return false;
    for (uint32_t i = 0; i < a->input_count; i++)
        if (!onx_view(a->input[i]).len != !onx_view(b->input[i]).len)
            return false;
    for (uint32_t i = 0; i < a->output_count; i++)
        if (!onx_view(a->output[i]).len != !onx_view(b->output[i]).len)
            return false;
    for (uint32_t i = 0; i < a->attribute_count; i++)
        if (!onx_message_equal(ONX_KIND_ATTRIBUTE, a->attribute[i], b->attribute[i]))
            return false;
    return true;
}

static onx_status name_symbols(onxi_outliner *o)
{
    const onx_graph *g = o->c->graph;
    onxi_table table = onxi_table_in_arena(o->c->scratch);
    uint32_t *first = ONXI_ARRAY(o->c->scratch, uint32_t, (size_t)g->node_count + 1), kinds = 0;
    if (!first || !onxi_table_reserve(&table, g->node_count))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const uint32_t node = o->c->order ? o->c->order[i] : i;
        const onx_node *n = g->node[node];
        uint32_t found = ONXI_NO_ENTRY;
        o->place[node] = ONXI_NO_PLACE;
        if (o->c->constant[node] && onxi_node_is(n, ONXI_ID_Constant))
            continue;
        const bool moves = may_move(n);
        const uint32_t hash = moves ? hash_node(table.secret, n) : 0;
        if (moves)
            ONXI_TABLE_EACH (&table, hash, k)
                if (is_alike(g->node[first[k]], n)) {
                    found = k;
                    break;
                }
        if (found == ONXI_NO_ENTRY) {
            found = kinds;
            first[kinds++] = node;
            if (moves && !onxi_table_add(&table, hash, found))
                return ONX_E_MEMORY;
        }
        o->place[node] = o->length;
        o->used[o->length] = !moves;
        o->sequence[o->length] = node;
        o->symbol[o->length++] = found;
    }
    return ONX_OK;
}

/* ---- possible starts of a sequence ---- */

/* The number of values that cross the cut before each position. */
static onx_status measure(onxi_outliner *o)
{
    const onxi_cutter *c = o->c;
    uint32_t *place = o->place;
    for (onx_name_id id = 0; id < onx_index_name_count(c->index); id++) {
        const onx_def def = onx_index_def(c->index, id);
        uint32_t count, last = 0;
        const onx_use *uses = onx_index_uses(c->index, id, &count);
        if (def.kind != ONX_DEF_NODE || place[def.index] == ONXI_NO_PLACE)
            continue;
        for (uint32_t i = 0; i < count; i++)
            last = place[uses[i].node] > last ? place[uses[i].node] : last;
        if (last <= place[def.index])
            continue;
        o->narrow[place[def.index] + 1]++;
        o->narrow[last + 1]--;
    }
    for (uint32_t i = 1; i <= o->length; i++)
        o->narrow[i] += o->narrow[i - 1];
    return ONX_OK;
}

/* ---- repeats ---- */

/* `length` symbols from `from` on repeat with that period: takes all complete blocks, with cuts where the least data
 * crosses. */
static onx_status outline_period(onxi_outliner *o, uint32_t from, uint32_t length, uint32_t period)
{
    uint32_t block = period, best = from, best_count = 0;
    while (block < o->min_nodes)
        block += period;
    for (uint32_t shift = 0; shift < block && shift < length; shift++) {
        const uint32_t count = (length - shift) / block;
        if (count < o->min_calls)
            break;
        if (!best_count || o->narrow[from + shift] < o->narrow[best] ||
            (o->narrow[from + shift] <= o->narrow[best] && count > best_count)) {
            best = from + shift;
            best_count = count;
        }
    }
    if (!best_count)
        return ONX_OK;
    uint32_t *start = ONXI_ARRAY(o->c->scratch, uint32_t, best_count);
    if (!start)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < best_count; i++)
        start[i] = best + i * block;
    const onxi_repeat repeat = { start, best_count, block };
    return onxi_outline_repeat(o, &repeat);
}

/* False if no steps are left. */
static bool spend(onxi_outliner *o, uint64_t steps)
{
    const bool enough = steps <= o->left;
    o->left = enough ? o->left - steps : 0;
    return enough;
}

/* The sequence at `from` also occurs `back` positions before, and possibly earlier. */
static onx_status outline_apart(onxi_outliner *o, const uint32_t *previous, uint32_t from, uint32_t length)
{
    uint32_t *start = NULL, room = 0, count = 0, budget = 64;
    for (uint32_t at = from; at != UINT32_MAX && budget--; at = previous[at]) {
        bool good = at + length <= o->length && (!count || at + length <= start[count - 1]);
        if (good && !spend(o, length))
            return ONX_OK;
        for (uint32_t i = 0; i < length && good; i++)
            good = !o->used[at + i] && o->symbol[at + i] == o->symbol[from + i];
        if (!good)
            continue;
        if (!ONXI_GROW_IN(o->c->scratch, start, room, (uint64_t)count + 1))
            return ONX_E_MEMORY;
        start[count++] = at;
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        const uint32_t other = start[i];
        start[i] = start[count - 1 - i];
        start[count - 1 - i] = other;
    }
    const onxi_repeat repeat = { start, count, length };
    return count >= o->min_calls ? onxi_outline_repeat(o, &repeat) : ONX_OK;
}

/* The previous occurrence of the `width` symbols at each position. */
static onx_status look_back(onxi_outliner *o, uint32_t width, uint32_t *previous)
{
    uint64_t hash = 0, power = 1;
    const uint64_t base = UINT64_C(0x9e3779b97f4a7c15);
    onxi_map last = onxi_map_in_arena(o->c->scratch);
    for (uint32_t i = 1; i < width; i++)
        power *= base;
    for (uint32_t i = 0; i < o->length; i++) {
        previous[i] = UINT32_MAX;
        hash = hash * base + o->symbol[i] + 1;
        if (i + 1 < width)
            continue;
        const uint32_t at = i + 1 - width;
        void **entry = onxi_map_at(&last, hash);
        if (!entry)
            return ONX_E_MEMORY;
        const uint32_t known = (uint32_t)(uintptr_t)*entry;
        if (known && memcmp(o->symbol + known - 1, o->symbol + at, width * sizeof *o->symbol) == 0)
            previous[at] = known - 1;
        *entry = (void *)(uintptr_t)(at + 1);
        hash -= power * (o->symbol[at] + 1);
    }
    return ONX_OK;
}

/* All repeats of at least `width` symbols: ranges of positions with the same distance to their previous occurrence. */
static onx_status outline_width(onxi_outliner *o, uint32_t width, uint32_t *previous)
{
    enum { STEPS_PER_NODE = 64 };
    ONX_TRY(look_back(o, width, previous));
    o->left = (uint64_t)STEPS_PER_NODE * o->length;
    for (uint32_t i = 0; i + width <= o->length;) {
        if (previous[i] == UINT32_MAX || o->used[i]) {
            i++;
            continue;
        }
        const uint32_t back = i - previous[i];
        uint32_t end = i + 1; /* after the last position with that distance */
        while (end + width <= o->length && previous[end] != UINT32_MAX && end - previous[end] == back)
            end++;
        uint32_t stop = end - 1 + width, from = stop - i >= back ? i - back : i;
        if (!spend(o, stop - from))
            return ONX_OK;
        for (uint32_t k = from; k < stop; k++) /* positions that are in a function already end the range */
            if (o->used[k]) {
                if (k < i)
                    from = k + 1;
                else
                    stop = k;
            }
        if (stop > i && stop - from >= 2 * back && from == i - back)
            ONX_TRY(outline_period(o, from, stop - from, back));
        else if (stop > i && stop - i >= o->min_nodes && back >= stop - i)
            ONX_TRY(outline_apart(o, previous, i, stop - i));
        i = end;
    }
    return ONX_OK;
}

static onx_status find_repeats(onxi_outliner *o)
{
    uint32_t *previous = ONXI_ARRAY(o->c->scratch, uint32_t, (size_t)o->length + 1), width = o->min_nodes;
    if (!previous)
        return ONX_E_MEMORY;
    while (width < o->length / 4)
        width *= 2;
    for (; width >= o->min_nodes && width > 0; width /= 2)
        ONX_TRY(outline_width(o, width, previous));
    return ONX_OK;
}

/* ---- the model ---- */

static onx_status see_name(void *user, onx_bytes *name)
{
    onxi_outliner *o = user;
    const onx_name_id id = onx_index_find(o->c->index, onx_view(*name));
    if (id != ONX_NO_NAME)
        o->visible[id] = true;
    return ONX_OK;
}

/* Outputs, and values named by annotations, training information and attributes, keep their names. */
static onx_status note_visible(onxi_outliner *o)
{
    const onx_graph *g = o->c->graph;
    for (uint32_t i = 0; i < g->output_count; i++)
        ONX_TRY(see_name(o, &g->output[i]->name));
    for (uint32_t i = 0; i < g->node_count; i++)
        ONX_TRY(onxi_each_named(o->c->cx, ONX_KIND_NODE, g->node[i], see_name, o));
    for (uint32_t i = 0; i < g->quantization_annotation_count; i++) {
        ONX_TRY(see_name(o, &g->quantization_annotation[i]->tensor_name));
        for (uint32_t k = 0; k < g->quantization_annotation[i]->quant_parameter_tensor_names_count; k++)
            ONX_TRY(see_name(o, &g->quantization_annotation[i]->quant_parameter_tensor_names[k]->value));
    }
    for (uint32_t i = 0; i < o->model->training_info_count; i++)
        ONX_TRY(onxi_each_name(o->c->cx, ONX_KIND_TRAINING_INFO, o->model->training_info[i], see_name, NULL, o));
    return ONX_OK;
}

static onx_status use_name(onxi_dict *used, onx_str name)
{
    return onxi_dict_at(used, name, 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

/* The values that are read after calls are inserted. */
static onx_status note_used(const onxi_outliner *o, onxi_dict *used)
{
    const onxi_cutter *c = o->c;
    for (uint32_t i = 0; i < c->graph->node_count; i++) {
        const onx_node *node = o->call[i];
        for (uint32_t k = c->first[i]; node == c->graph->node[i] && k < c->first[i + 1]; k++)
            ONX_TRY(use_name(used, onx_index_name(c->index, c->reads[k])));
        for (uint32_t k = 0; node && k < node->input_count; k++)
            ONX_TRY(use_name(used, onx_view(node->input[k])));
    }
    for (onx_name_id id = 0; id < onx_index_name_count(c->index); id++)
        if (o->visible[id])
            ONX_TRY(use_name(used, onx_index_name(c->index, id)));
    return ONX_OK;
}

/* Removes constants and initializers that were moved into functions and have no other reader, and declarations of
 * removed values. */
static onx_status drop_unused(const onxi_outliner *o, const onxi_dict *alive, const onxi_dict *used)
{
    onx_graph *g = o->model->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->value_info_count; i++) {
        const onx_str name = onx_view(g->value_info[i]->name);
        const onx_name_id id = onx_index_find(o->c->index, name);
        const bool made = id != ONX_NO_NAME && onx_index_def(o->c->index, id).kind == ONX_DEF_NODE;
        if (!made || onxi_dict_find(alive, name))
            g->value_info[kept++] = g->value_info[i];
    }
    g->value_info_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const onx_str name = onx_view(g->initializer[i]->name);
        const onx_name_id id = onx_index_find(o->c->index, name);
        uint32_t uses = 0;
        (void)onx_index_uses(o->c->index, id, &uses);
        if (!uses || onxi_dict_find(used, name) || onx_index_def(o->c->index, id).kind == ONX_DEF_INPUT)
            g->initializer[kept++] = g->initializer[i];
    }
    g->initializer_count = kept;
    return ONX_OK;
}

/* Replaces the nodes by calls. */
static onx_status apply(onxi_outliner *o)
{
    onx_graph *g = o->model->graph;
    onxi_dict alive = onxi_dict_in_arena(o->c->scratch), used = onxi_dict_in_arena(o->c->scratch);
    onx_node **list = onxi_arena_array(o->arena, (size_t)onxi_list_room(g->node_count) + 1, sizeof *list);
    uint32_t count = 0;
    if (!list)
        return ONX_E_MEMORY;
    ONX_TRY(note_used(o, &used));
    for (uint32_t i = 0; i < g->node_count; i++) {
        const uint32_t at = o->c->order ? o->c->order[i] : i;
        onx_node *node = o->call[at];
        uint32_t uses = 0;
        if (node && o->place[at] == ONXI_NO_PLACE && node->output_count)
            (void)onx_index_uses(o->c->index, onx_index_find(o->c->index, onx_view(node->output[0])), &uses);
        if (!node || (uses && !onxi_dict_find(&used, onx_view(node->output[0]))))
            continue;
        list[count++] = node;
        for (uint32_t k = 0; k < node->output_count; k++)
            ONX_TRY(use_name(&alive, onx_view(node->output[k])));
    }
    g->node = list;
    g->node_count = count;
    return drop_unused(o, &alive, &used);
}

/* functions require IR version 8 */
static onx_status declare(onxi_outliner *o)
{
    onxi_imports imports;
    ONX_TRY(onxi_model_raise_ir(o->c->scratch, o->model, 8));
    ONX_TRY(onxi_imports_open(&imports, o->c->scratch, o->model->opset_import, o->model->opset_import_count, false));
    if (onxi_imports_find(&imports, o->domain) != ONXI_UNBOUND)
        return ONX_OK;
    onx_operator_set_id *id = ONX_ADD(o->arena, o->model, opset_import, OPERATOR_SET_ID);
    if (!id || onx_arena_keep(o->arena, o->domain, &id->domain) != ONX_OK)
        return ONX_E_MEMORY;
    id->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, id, version, 1);
    return ONX_OK;
}

static onx_status run(onxi_outliner *o)
{
    const onx_graph *g = o->c->graph;
    onx_arena *scratch = o->c->scratch;
    const size_t nodes = g->node_count;
    if (onxi_model_is_legacy(o->model))
        return onxi_fail(o->c->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "models of an IR version below 3 import no operator sets, which functions have to");
    o->sequence = ONXI_ARRAY(scratch, uint32_t, nodes + 1);
    o->symbol = ONXI_ARRAY(scratch, uint32_t, nodes + 1);
    o->place = ONXI_ARRAY(scratch, uint32_t, nodes + 1);
    o->secret = onxi_table_in_arena(scratch).secret;
    o->used = ONXI_ARRAY(scratch, bool, nodes + 1);
    o->narrow = ONXI_ARRAY(scratch, double, nodes + 2);
    o->visible = ONXI_ARRAY(scratch, bool, (size_t)onx_index_name_count(o->c->index) + 1);
    o->call = ONXI_ARRAY(scratch, onx_node *, nodes + 1);
    if (!o->sequence || !o->symbol || !o->place || !o->used || !o->narrow || !o->visible || !o->call)
        return ONX_E_MEMORY;
    if (nodes)
        memcpy(o->call, g->node, nodes * sizeof *o->call);
    o->taken = onxi_dict_in_arena(scratch);
    for (uint32_t i = 0; i < o->model->functions_count; i++)
        if (onx_str_equal(onx_view(o->model->functions[i]->domain), o->domain) &&
            !onxi_dict_at(&o->taken, onx_view(o->model->functions[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    ONX_TRY(note_visible(o));
    ONX_TRY(name_symbols(o));
    ONX_TRY(measure(o));
    ONX_TRY(find_repeats(o));
    if (!o->made)
        return ONX_OK;
    ONX_TRY(apply(o));
    return declare(o);
}

static onx_status outline(onx_ctx *cx, onx_doc *doc, const onx_outline_options *options)
{
    onxi_cutter c;
    onx_arena *scratch;
    ONX_TRY(onx_arena_new(cx, &scratch));
    onx_status status = onxi_cutter_open(&c, doc, scratch);
    onxi_outliner o = { .c = &c,
                        .arena = onx_doc_arena(doc),
                        .model = onx_doc_model(doc),
                        .options = options,
                        .names = { .scratch = scratch, .arena = onx_doc_arena(doc), .model = onx_doc_model(doc) },
                        .min_nodes = options->min_nodes ? options->min_nodes : 4,
                        .min_calls = options->min_calls > 2 ? options->min_calls : 2,
                        .domain = options->domain.len ? options->domain : onx_str_of("outlined") };
    if (status == ONX_OK)
        status = onxi_doc_warn_of_cycle(doc, ONXI_CYCLE_STAYS);
    if (status == ONX_OK)
        status = run(&o);
    onxi_cutter_close(&c);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_outline(onx_ctx *cx, onx_doc *doc, const onx_outline_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_outline_options, own, options);
    ONXI_TRANSFORM(cx, doc, outline(cx, doc, &own));
}
