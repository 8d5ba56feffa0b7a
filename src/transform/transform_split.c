/* transform_split.c - splits a model into consecutive parts: at given values, or where the least data crosses. */
#include "transform/transform_part.h"

typedef struct splitter {
    onxi_cutter *c;
    const onx_split_options *options;
    uint32_t count;
    uint32_t *part; /* per node; `count` for constants, which are in every part that needs them */
    uint32_t *last; /* per name: the last part that reads it, NOBODY if none does */
    onx_name_id *input, *output;
    uint32_t input_count, output_count;
    bool *node;     /* of the current part */
    uint8_t *done;  /* per name: it is an output of a part already */
    uint32_t *seen; /* per name: 1 + the last part with it as an input */
} splitter;

#define NOBODY UINT32_MAX

static uint32_t node_at(const splitter *s, uint32_t position)
{
    return s->c->order ? s->c->order[position] : position;
}

static bool is_constant(const splitter *s, uint32_t node)
{
    return s->c->constant[node];
}

/* ---- cutting where the least data crosses ---- */

/* The approximate size of a value in bytes; symbolic sizes count as 1. */
static double size_of(splitter *s, onx_name_id id)
{
    const onxi_scope scope = { .graph = s->c->graph };
    const onx_type *type = onxi_values_type(&s->c->values, &scope, onx_index_name(s->c->index, id));
    const int rank = onxi_type_rank(type);
    uint64_t bytes;
    double size = onx_dtype_size(onxi_type_dtype(type), 8, &bytes) ? (double)bytes / 8 : 4;
    for (int i = 0; i < rank; i++) {
        const int64_t dim = onxi_type_dim(type, (uint32_t)i);
        size *= dim > 0 ? (double)dim : 1;
    }
    return size;
}

/* crossing[i]: bytes of the values defined before position i and read from there on. */
static onx_status measure(splitter *s, double *crossing)
{
    const uint32_t nodes = s->c->graph->node_count, names = onx_index_name_count(s->c->index);
    uint32_t *place = ONXI_ARRAY(s->c->scratch, uint32_t, (size_t)nodes + 1);
    if (!place)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < nodes; i++)
        place[node_at(s, i)] = i;
    for (onx_name_id id = 0; id < names; id++) {
        const onx_def def = onx_index_def(s->c->index, id);
        uint32_t count, last = 0;
        const onx_use *uses = onx_index_uses(s->c->index, id, &count);
        if (def.kind != ONX_DEF_NODE || onxi_cutter_is_constant(s->c, id))
            continue;
        for (uint32_t i = 0; i < count; i++)
            last = place[uses[i].node] > last ? place[uses[i].node] : last;
        if (last <= place[def.index])
            continue;
        const double size = size_of(s, id) + 1;
        crossing[place[def.index] + 1] += size;
        crossing[last + 1] -= size;
    }
    for (uint32_t i = 1; i <= nodes; i++)
        crossing[i] += crossing[i - 1];
    return ONX_OK;
}

static double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* The end of the part that begins at `from`: the position near the even split with the least crossing data, and of
 * equal ones the nearest; if there is none, the even split. Every part has a node that is not constant. */
static uint32_t narrowest(const splitter *s, const double *crossing, const uint32_t *work, uint32_t from, uint32_t cut,
                          double share)
{
    const uint32_t nodes = s->c->graph->node_count, least = work[from] + 1, most = work[nodes] - (s->count - cut);
    const double even = share * cut;
    uint32_t best = nodes, i = from;
    for (; i < nodes && work[i] <= even + share / 4; i++) {
        if (work[i] < even - share / 4 || work[i] < least || work[i] > most)
            continue;
        if (best == nodes || crossing[i] < crossing[best] ||
            (crossing[i] <= crossing[best] && distance(work[i], even) < distance(work[best], even)))
            best = i;
    }
    if (best < nodes)
        return best;
    const uint32_t wanted = even < least ? least : even > most ? most : (uint32_t)even;
    for (i = from; i < nodes && work[i] < wanted; i++)
        ;
    return i;
}

/* For each cut, searches within a quarter of a part's size around the even split. */
static onx_status cut_narrowly(splitter *s)
{
    const uint32_t nodes = s->c->graph->node_count;
    double *crossing = ONXI_ARRAY(s->c->scratch, double, (size_t)nodes + 2);
    uint32_t *work = ONXI_ARRAY(s->c->scratch, uint32_t, (size_t)nodes + 1); /* number of non-constant nodes before a
                                                                              * position */
    if (!crossing || !work)
        return ONX_E_MEMORY;
    ONX_TRY(measure(s, crossing));
    for (uint32_t i = 0; i < nodes; i++)
        work[i + 1] = work[i] + !is_constant(s, node_at(s, i));
    if (work[nodes] < s->count)
        return onxi_fail(s->c->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%u parts cannot be made of %u nodes", s->count,
                         work[nodes]);
    const double share = (double)work[nodes] / s->count;
    uint32_t position = 0;
    for (uint32_t cut = 1; cut <= s->count; cut++) {
        const uint32_t end = cut < s->count ? narrowest(s, crossing, work, position, cut, share) : nodes;
        for (; position < end; position++)
            s->part[node_at(s, position)] = cut - 1;
    }
    return ONX_OK;
}

/* ---- cutting at given values and nodes ---- */

static onx_status find_place(splitter *s, onx_str name, onx_name_id *out)
{
    *out = onx_index_find(s->c->index, name);
    if (*out != ONX_NO_NAME && onx_index_def(s->c->index, *out).kind == ONX_DEF_NODE)
        return ONX_OK;
    for (uint32_t i = 0; i < s->c->graph->node_count; i++) {
        const onx_node *node = s->c->graph->node[i];
        if (!onx_str_equal(onx_view(node->name), name) || !node->output_count)
            continue;
        *out = onx_index_find(s->c->index, onx_view(node->output[0]));
        return *out == ONX_NO_NAME ? ONX_E_INVALID : ONX_OK;
    }
    return onxi_fail(s->c->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no node is called %.*s or makes a value of that name",
                     ONX_ARG(name));
}

static onx_status cut_at_names(splitter *s)
{
    const uint32_t nodes = s->c->graph->node_count;
    const size_t names = onx_index_name_count(s->c->index);
    bool *marked = ONXI_ARRAY(s->c->scratch, bool, (size_t)nodes + 1),
         *needed = ONXI_ARRAY(s->c->scratch, bool, names + 1), *given = ONXI_ARRAY(s->c->scratch, bool, names + 1);
    if (!marked || !needed || !given)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < nodes; i++)
        s->part[i] = NOBODY;
    for (uint32_t cut = 0; cut < s->options->at_count; cut++) {
        onx_name_id id;
        bool any = false;
        ONX_TRY(find_place(s, s->options->at[cut], &id));
        ONX_TRY(onxi_cutter_need(s->c, &id, 1, given, marked, needed));
        for (uint32_t i = 0; i < nodes; i++)
            if (marked[i] && s->part[i] == NOBODY) {
                s->part[i] = cut;
                any |= !is_constant(s, i);
            }
        if (!any)
            return onxi_fail(s->c->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                             "there is nothing between %.*s and the cuts before it", ONX_ARG(s->options->at[cut]));
    }
    for (uint32_t i = 0; i < nodes; i++)
        if (s->part[i] == NOBODY)
            s->part[i] = s->options->at_count;
    return ONX_OK;
}

/* ---- building the parts ---- */

/* The last part that reads each value; constants read nothing. */
static onx_status note_readers(splitter *s)
{
    const uint32_t names = onx_index_name_count(s->c->index);
    if (!(s->last = ONXI_ARRAY(s->c->scratch, uint32_t, (size_t)names + 1)))
        return ONX_E_MEMORY;
    for (onx_name_id id = 0; id < names; id++) {
        uint32_t count;
        const onx_use *uses = onx_index_uses(s->c->index, id, &count);
        s->last[id] = NOBODY;
        for (uint32_t i = 0; i < count; i++)
            if (s->last[id] == NOBODY || s->part[uses[i].node] > s->last[id])
                s->last[id] = s->part[uses[i].node];
    }
    return ONX_OK;
}

static void add_input(splitter *s, onx_name_id id, uint32_t part)
{
    if (s->seen[id] == part + 1)
        return;
    s->seen[id] = part + 1;
    s->input[s->input_count++] = id;
}

/* The values that the nodes of a part read: from earlier parts, inputs of the model, or constants. */
static onx_status read_values(splitter *s, uint32_t part)
{
    const onxi_cutter *c = s->c;
    for (uint32_t i = 0; i < c->graph->node_count; i++) {
        if (s->part[i] != part)
            continue;
        s->node[i] = true;
        for (uint32_t k = c->first[i]; k < c->first[i + 1]; k++) {
            const onx_name_id id = c->reads[k];
            const onx_def def = onx_index_def(c->index, id);
            if (def.kind == ONX_DEF_NONE)
                return onxi_fail(c->cx, ONX_E_INVALID, ONXI_NOWHERE, "nothing makes the value %.*s, which is needed",
                                 ONX_ARG(onx_index_name(c->index, id)));
            if (def.kind == ONX_DEF_NODE && onxi_cutter_is_constant(c, id))
                onxi_cutter_take_constant(s->c, id, s->node);
            else if (def.kind == ONX_DEF_INPUT || (def.kind == ONX_DEF_NODE && s->part[def.index] != part))
                add_input(s, id, part);
        }
    }
    return ONX_OK;
}

/* The values that later parts read, in the order of definition. */
static void hand_on(splitter *s, uint32_t part)
{
    const onxi_cutter *c = s->c;
    for (uint32_t i = 0; i < c->graph->node_count; i++) {
        if (s->part[i] != part)
            continue;
        const onx_node *node = c->graph->node[i];
        for (uint32_t k = 0; k < node->output_count; k++) {
            const onx_name_id id = onx_index_find(c->index, onx_view(node->output[k]));
            if (id == ONX_NO_NAME || s->done[id] || onxi_cutter_is_constant(c, id) || s->last[id] == NOBODY ||
                s->last[id] <= part)
                continue;
            s->done[id] = 1;
            s->output[s->output_count++] = id;
        }
    }
}

/* An output of the model is an output of the part that computes it or, if later parts read it, of the last of those,
 * which passes it on; an output that no node computes belongs to the last part. */
static onx_status give_outputs(splitter *s, uint32_t part)
{
    const onxi_cutter *c = s->c;
    for (uint32_t i = 0; i < c->graph->output_count; i++) {
        const onx_name_id id = onx_index_find(c->index, onx_view(c->graph->output[i]->name));
        const onx_def def = onx_index_def(c->index, id);
        if (id == ONX_NO_NAME || def.kind == ONX_DEF_NONE)
            return onxi_fail(c->cx, ONX_E_INVALID, ONXI_NOWHERE, "output %.*s is not defined",
                             ONX_ARG(onx_view(c->graph->output[i]->name)));
        const bool made = def.kind == ONX_DEF_NODE && !onxi_cutter_is_constant(c, id);
        uint32_t from = made ? s->part[def.index] : s->count - 1;
        if (made && s->last[id] != NOBODY && s->last[id] > from)
            from = s->last[id];
        if (from != part || (s->done[id] & 2))
            continue;
        s->done[id] |= 2;
        s->output[s->output_count++] = id;
        if (def.kind == ONX_DEF_NODE && !made)
            onxi_cutter_take_constant(s->c, id, s->node);
        if (def.kind == ONX_DEF_INPUT)
            add_input(s, id, part);
    }
    return ONX_OK;
}

static onx_status make_part(splitter *s, uint32_t part, onx_doc **out)
{
    const onxi_cutter *c = s->c;
    s->input_count = s->output_count = 0;
    memset(s->node, 0, c->graph->node_count * sizeof *s->node);
    ONX_TRY(read_values(s, part));
    hand_on(s, part);
    ONX_TRY(give_outputs(s, part));
    const onxi_part made = { s->node, s->input, s->output, s->input_count, s->output_count };
    ONX_TRY(onxi_part_doc(s->c, &made, out));
    const onx_graph *g = onx_doc_model(*out)->graph;
    onxi_tell_change(s->options->changed, s->options->user, "extract", "part", (onx_str){ 0 },
                     "part %u has %u nodes, %u inputs and %u outputs", part + 1, g->node_count, g->input_count,
                     g->output_count);
    return ONX_OK;
}

static onx_status run(splitter *s, onx_doc **out)
{
    onxi_cutter *c = s->c;
    const size_t names = onx_index_name_count(c->index), nodes = c->graph->node_count;
    ONX_TRY(onxi_cutter_refuse_cycle(c, NULL));
    if (s->options->at_count && s->options->at_count != s->count - 1)
        return onxi_fail(c->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%u cuts make %u parts, not %u", s->options->at_count,
                         s->options->at_count + 1, s->count);
    s->part = ONXI_ARRAY(c->scratch, uint32_t, nodes + 1);
    s->node = ONXI_ARRAY(c->scratch, bool, nodes + 1);
    s->input = ONXI_ARRAY(c->scratch, onx_name_id, names + 1);
    s->output = ONXI_ARRAY(c->scratch, onx_name_id, 2 * names + 1);
    s->done = ONXI_ARRAY(c->scratch, uint8_t, names + 1);
    s->seen = ONXI_ARRAY(c->scratch, uint32_t, names + 1);
    if (!s->part || !s->node || !s->input || !s->output || !s->done || !s->seen)
        return ONX_E_MEMORY;
    ONX_TRY(s->options->at_count ? cut_at_names(s) : cut_narrowly(s));
    for (uint32_t i = 0; i < nodes; i++)
        if (is_constant(s, i))
            s->part[i] = s->count;
    ONX_TRY(note_readers(s));
    for (uint32_t i = 0; i < s->count; i++)
        ONX_TRY(make_part(s, i, &out[i]));
    if (c->model->training_info_count)
        onxi_warn(c->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "training information describes the whole model, and is not part of the result");
    return ONX_OK;
}

static onx_status split(onx_ctx *cx, onx_doc *doc, const onx_split_options *options, uint32_t count, onx_doc **out)
{
    onxi_cutter c;
    onx_arena *scratch;
    ONX_TRY(onx_arena_new(cx, &scratch));
    onx_status status = onxi_cutter_open(&c, doc, scratch);
    splitter s = { .c = &c, .options = options, .count = count };
    if (status == ONX_OK)
        status = run(&s, out);
    onxi_cutter_close(&c);
    onx_arena_free(scratch);
    return status;
}

static onx_status split_call(onx_ctx *cx, onx_doc *doc, const onx_split_options *options, uint32_t count, onx_doc **out)
{
    ONXI_TRANSFORM_TO(cx, doc, out, count, false, split(cx, doc, options, count, out));
}

onx_status onx_split(onx_ctx *cx, onx_doc *doc, const onx_split_options *options, uint32_t count, onx_doc **out)
{
    ONXI_NEED(cx, out);
    ONXI_NEED(cx, count);
    for (uint32_t i = 0; i < count; i++)
        out[i] = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_split_options, own, options);
    ONXI_NEED(cx, own.at || !own.at_count);
    const onx_status status = split_call(cx, doc, &own, count, out);
    for (uint32_t i = 0; i < count && status != ONX_OK; i++) {
        onx_doc_free(out[i]);
        out[i] = NULL;
    }
    return status;
}
