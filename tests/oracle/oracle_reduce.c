/* oracle_reduce.c - makes a model with a finding smaller, step by step, as long as the finding stays the same. */
#include "oracle/oracle.h"

#include <onx/infer.h>
#include <onx/text.h>

#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS_PER_PROBE = 30, FINDINGS = 8 };

typedef struct reduction {
    char *text; /* the smallest so far */
    uint64_t seed;
    const oracle_finding *finding;
    time_t end;
} reduction;

/* Still valid, still running, and with the same finding? */
static bool persists(const reduction *r, const char *text)
{
    oracle_finding list[FINDINGS];
    const bool of_model = strcmp(r->finding->row, "model") == 0;
    const uint32_t count = oracle_probe(text, r->seed, r->finding->row, SECONDS_PER_PROBE, list, FINDINGS);
    bool found = false;
    for (uint32_t i = 0; i < count && i < FINDINGS; i++) {
        if (!of_model && strcmp(list[i].row, "model") == 0 && strcmp(r->finding->kind, "crash") != 0 &&
            strcmp(r->finding->kind, "hang") != 0)
            return false;
        found = found || oracle_same_sort(&list[i], r->finding);
    }
    return found;
}

/* ---- places in a model ---- */

/* The graphs of a model: the main one, and those in attributes. */
typedef struct place {
    onx_graph *graph;
    uint32_t wanted, seen;
} place;

static onx_status count_graph(void *user, const onx_visit *at)
{
    place *p = user;
    if (at->kind == ONX_KIND_GRAPH && p->seen++ == p->wanted)
        p->graph = at->message;
    return ONX_OK;
}

static onx_graph *graph_at(onx_doc *doc, uint32_t index)
{
    place p = { .wanted = index };
    (void)onx_message_walk(onx_doc_ctx(doc), ONX_KIND_MODEL, onx_doc_model(doc), count_graph, &p);
    return p.graph;
}

typedef struct exchange {
    onx_str from;
    onx_bytes to;
} exchange;

static onx_status exchange_names(void *user, const onx_visit *at)
{
    const exchange *e = user;
    if (at->kind == ONX_KIND_NODE) {
        onx_node *node = at->message;
        for (uint32_t i = 0; i < node->input_count; i++)
            if (onx_str_equal(onx_view(node->input[i]), e->from))
                node->input[i] = e->to;
    }
    return ONX_OK;
}

static bool is_read(const onx_doc *doc, onx_str name);

/* ---- steps: each changes place number `index` of a copy; false past the last place ---- */

static bool drop_output(onx_doc *doc, uint32_t index)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    if (index >= g->output_count)
        return false;
    if (g->output_count > 1)
        onx_list_remove(g->output, &g->output_count, index, sizeof *g->output);
    return true;
}

/* Node `index` of all graphs, one after the other. */
static bool node_at(onx_doc *doc, uint32_t index, onx_graph **graph, uint32_t *at)
{
    for (uint32_t i = 0; (*graph = graph_at(doc, i)) != NULL; i++) {
        if (index < (*graph)->node_count) {
            *at = (*graph)->node_count - 1 - index; /* from the last one on */
            return true;
        }
        index -= (*graph)->node_count;
    }
    return false;
}

static bool drop_node(onx_doc *doc, uint32_t index)
{
    onx_graph *g;
    uint32_t at;
    if (!node_at(doc, index, &g, &at))
        return false;
    onx_node *node = g->node[at];
    onx_list_remove(g->node, &g->node_count, at, sizeof *g->node);
    for (uint32_t i = 0; i < node->output_count; i++)
        for (uint32_t k = 0; k < g->output_count && g->output_count > 1; k++)
            if (onx_str_equal(onx_view(g->output[k]->name), onx_view(node->output[i])) &&
                g == onx_doc_model(doc)->graph)
                onx_list_remove(g->output, &g->output_count, k--, sizeof *g->output);
    return true;
}

/* Nodes read an input of the node instead of its output; which one, `turn` says. */
static bool bypass(onx_doc *doc, uint32_t index, uint32_t turn)
{
    onx_graph *g;
    uint32_t at;
    if (!node_at(doc, index, &g, &at))
        return false;
    onx_node *node = g->node[at];
    if (turn < node->input_count && node->output_count) {
        exchange e = { onx_view(node->output[0]), node->input[turn] };
        (void)onx_message_walk(onx_doc_ctx(doc), ONX_KIND_MODEL, onx_doc_model(doc), exchange_names, &e);
    }
    return true;
}

static bool bypass_first(onx_doc *doc, uint32_t index)
{
    return bypass(doc, index, 0);
}

static bool bypass_second(onx_doc *doc, uint32_t index)
{
    return bypass(doc, index, 1);
}

static bool drop_attribute(onx_doc *doc, uint32_t index)
{
    onx_graph *g;
    for (uint32_t i = 0; (g = graph_at(doc, i)) != NULL; i++)
        for (uint32_t k = 0; k < g->node_count; k++) {
            onx_node *node = g->node[k];
            if (index < node->attribute_count) {
                onx_list_remove(node->attribute, &node->attribute_count, index, sizeof *node->attribute);
                return true;
            }
            index -= node->attribute_count;
        }
    return false;
}

static bool drop_node_output(onx_doc *doc, uint32_t index)
{
    onx_graph *g;
    for (uint32_t i = 0; (g = graph_at(doc, i)) != NULL; i++)
        for (uint32_t k = 0; k < g->node_count; k++) {
            onx_node *node = g->node[k];
            if (index < node->input_count) {
                if (index + 1 == node->input_count)
                    node->input_count--;
                return true;
            }
            index -= node->input_count;
        }
    return false;
}

/* ---- inputs and initializers that nothing reads ---- */

typedef struct reading {
    onx_str name;
    bool found;
} reading;

static onx_status look_for(void *user, const onx_visit *at)
{
    reading *r = user;
    if (at->kind == ONX_KIND_NODE) {
        const onx_node *node = at->message;
        for (uint32_t i = 0; i < node->input_count; i++)
            r->found = r->found || onx_str_equal(onx_view(node->input[i]), r->name);
    } else if (at->kind == ONX_KIND_GRAPH) {
        const onx_graph *g = at->message;
        for (uint32_t i = 0; i < g->output_count; i++)
            r->found = r->found || onx_str_equal(onx_view(g->output[i]->name), r->name);
    }
    return ONX_OK;
}

static bool is_read(const onx_doc *doc, onx_str name)
{
    reading r = { name, false };
    (void)onx_message_walk(onx_doc_ctx(doc), ONX_KIND_MODEL, onx_doc_model(doc), look_for, &r);
    return r.found;
}

static bool drop_unread(onx_doc *doc, uint32_t index)
{
    onx_model *model = onx_doc_model(doc);
    onx_graph *g = model->graph;
    if (index)
        return false;
    for (uint32_t i = g->node_count; i-- > 0;) {
        bool read = false;
        for (uint32_t k = 0; k < g->node[i]->output_count; k++)
            read = read || is_read(doc, onx_view(g->node[i]->output[k]));
        if (!read)
            onx_list_remove(g->node, &g->node_count, i, sizeof *g->node);
    }
    for (uint32_t i = g->initializer_count; i-- > 0;)
        if (!is_read(doc, onx_view(g->initializer[i]->name)))
            onx_list_remove(g->initializer, &g->initializer_count, i, sizeof *g->initializer);
    for (uint32_t i = g->input_count; i-- > 0;)
        if (!is_read(doc, onx_view(g->input[i]->name)))
            onx_list_remove(g->input, &g->input_count, i, sizeof *g->input);
    if (!g->node_count)
        model->functions_count = 0;
    return true;
}

static bool drop_functions(onx_doc *doc, uint32_t index)
{
    onx_model *model = onx_doc_model(doc);
    if (index >= model->functions_count)
        return false;
    onx_list_remove(model->functions, &model->functions_count, index, sizeof *model->functions);
    return true;
}

/* ---- sets of inputs ---- */

static onx_string_string_entry *sets_entry(onx_doc *doc)
{
    onx_model *model = onx_doc_model(doc);
    for (uint32_t i = 0; i < model->metadata_props_count; i++)
        if (onx_str_is(onx_view(model->metadata_props[i]->key), "inputs"))
            return model->metadata_props[i];
    return NULL;
}

static void write_sets(onx_doc *doc, const oracle_set *sets, uint32_t count)
{
    char text[8192] = "";
    size_t len = 0;
    onx_string_string_entry *entry = sets_entry(doc);
    const onx_graph *g = onx_doc_model(doc)->graph;
    for (uint32_t s = 0; s < count; s++) {
        uint32_t listed = 0;
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", s ? "; " : "");
        for (uint32_t i = 0; i < sets[s].count && len + 200 < sizeof text; i++) {
            const oracle_input *in = &sets[s].input[i];
            bool known = false;
            for (uint32_t k = 0; k < g->input_count; k++)
                known = known || onx_str_is(onx_view(g->input[k]->name), in->name);
            if (!known)
                continue;
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s=", listed++ ? ", " : "", in->name);
            for (uint32_t k = 0; k < in->rank; k++)
                len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld", k ? "x" : "", (long long)in->dims[k]);
            len +=
                (size_t)snprintf(text + len, sizeof text - len, ":%g:%g%s", in->low, in->high, in->special ? ":s" : "");
        }
    }
    if (entry)
        (void)onx_arena_keep(onx_doc_arena(doc), onx_str_of(text), &entry->value);
}

/* Without set `index`; past them, with the sets written anew. */
static bool drop_set(onx_doc *doc, uint32_t index)
{
    oracle_set *sets = calloc(ORACLE_SETS, sizeof *sets);
    const uint32_t count = sets ? oracle_sets(onx_doc_model(doc), sets) : 0;
    const bool there = index <= count;
    if (there && index < count && count > 1)
        memmove(&sets[index], &sets[index + 1], (count - 1 - index) * sizeof *sets);
    if (there)
        write_sets(doc, sets, index < count && count > 1 ? count - 1 : count);
    free(sets);
    return there;
}

/* Inputs declare the sizes of the first set. */
static bool fix_input(onx_doc *doc, uint32_t index)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    oracle_set *sets = calloc(ORACLE_SETS, sizeof *sets);
    const uint32_t count = sets ? oracle_sets(onx_doc_model(doc), sets) : 0;
    const bool there = index < g->input_count;
    for (uint32_t i = 0; there && count && i < sets[0].count; i++)
        if (onx_str_is(onx_view(g->input[index]->name), sets[0].input[i].name) && g->input[index]->type &&
            ONX_HAS(type, g->input[index]->type, tensor_type)) {
            onx_type *type =
                onx_type_new_tensor(onx_doc_arena(doc), (onx_dtype)g->input[index]->type->tensor_type->elem_type,
                                    sets[0].input[i].dims, (int)sets[0].input[i].rank);
            if (type)
                ONX_SET(value_info, g->input[index], type, type);
        }
    free(sets);
    return there;
}

/* A value of the main graph whose shape is known becomes an input; nodes before it may then be left out. */
static bool make_input(onx_doc *doc, uint32_t index)
{
    onx_model *model = onx_doc_model(doc);
    onx_graph *g = model->graph;
    char name[64];
    onx_infer *infer = NULL;
    if (index >= g->node_count)
        return false;
    onx_node *node = g->node[g->node_count - 1 - index];
    if (node->output_count != 1 || onx_str_is(onx_view(node->op_type), "Constant") ||
        onx_infer_new(onx_doc_ctx(doc), doc, NULL, &infer) != ONX_OK)
        return true;
    const onx_type *type = onx_infer_type(infer, g, onx_view(node->output[0]));
    void *copy = NULL;
    oracle_set *sets = calloc(ORACLE_SETS, sizeof *sets);
    (void)snprintf(name, sizeof name, "%.*s", ONX_ARG(onx_view(node->output[0])));
    bool known = type && sets && ONX_HAS(type, type, tensor_type) && type->tensor_type->shape &&
                 type->tensor_type->shape->dim_count <= ORACLE_RANK;
    for (uint32_t i = 0; known && i < type->tensor_type->shape->dim_count; i++)
        known = ONX_HAS(dimension, type->tensor_type->shape->dim[i], dim_value);
    if (known && onx_message_copy(onx_doc_arena(doc), ONX_KIND_TYPE, type, &copy) == ONX_OK) {
        for (uint32_t i = 0; i < g->output_count && g->output_count > 1; i++)
            if (onx_str_is(onx_view(g->output[i]->name), name))
                onx_list_remove(g->output, &g->output_count, i--, sizeof *g->output);
        onx_list_remove(g->node, &g->node_count, g->node_count - 1 - index, sizeof *g->node);
        (void)onx_graph_add_input(onx_doc_arena(doc), g, name, copy);
        const uint32_t count = oracle_sets(model, sets); /* the new input has the sizes of its type */
        write_sets(doc, sets, count);
    }
    free(sets);
    onx_infer_free(infer);
    return true;
}

/* ---- all of them ---- */

static bool attempt(reduction *r, bool (*step)(onx_doc *doc, uint32_t index), uint32_t index, bool *past)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    char *text = NULL;
    bool smaller = false;
    *past = true;
    if (cx && onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(r->text), 0, &doc) == ONX_OK && step(doc, index)) {
        *past = false;
        text = oracle_text(cx, onx_doc_model(doc));
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    if (text && strcmp(text, r->text) != 0 && persists(r, text)) {
        free(r->text);
        r->text = text;
        return true;
    }
    free(text);
    return smaller;
}

char *oracle_reduce(const char *text, uint64_t seed, const oracle_finding *finding, unsigned seconds)
{
    static bool (*const steps[])(onx_doc * doc, uint32_t index) = { drop_output,      drop_unread,    drop_set,
                                                                    fix_input,        make_input,     drop_node,
                                                                    drop_unread,      bypass_first,   bypass_second,
                                                                    drop_node_output, drop_attribute, drop_functions };
    reduction r = { .text = strdup(text), .seed = seed, .finding = finding, .end = time(NULL) + (time_t)seconds };
    bool smaller = r.text && persists(&r, r.text);
    while (smaller && time(NULL) < r.end) {
        smaller = false;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            bool past = false;
            for (uint32_t index = 0; !past && time(NULL) < r.end;)
                if (attempt(&r, steps[i], index, &past))
                    smaller = true;
                else
                    index++;
        }
    }
    return r.text;
}
