/* rewrite_rule.c - parses the rows of rewrite_rules.def on demand. */
#include "rewrite/rewrite.h"

#include <inttypes.h>
#include <stdio.h>

const onxi_rewrite_row onxi_rewrite_rows[] = {
#define RULE(name_, root_, needs_, since_, effect_, by_, where_, pattern_, replacement_)                               \
    { .name = (name_),                                                                                                 \
      .root = ONXI_ID_##root_,                                                                                         \
      .needs = ONXI_ID_##needs_,                                                                                       \
      .since = (since_),                                                                                               \
      .effect = ONXI_REWRITE_##effect_,                                                                                \
      .by = ONXI_REWRITE_BY_##by_,                                                                                     \
      .where = (where_),                                                                                               \
      .pattern = "<domain: \"onx\", opset_import: [\"\" : 17]> " pattern_,                                             \
      .replacement = "<domain: \"onx\", opset_import: [\"\" : 24, \"onx\" : 1]> " replacement_ },
#include "rewrite/rewrite_rules.def"
#undef RULE
    { 0 }
};
enum { ROWS = sizeof onxi_rewrite_rows / sizeof *onxi_rewrite_rows - 1 };

/* The index of a name in the pattern; read_rule detects rules that exceed the limits. */
static uint8_t name_of(onxi_rewrite_rule *r, onx_bytes text)
{
    onx_str name = onx_view(text);
    for (uint32_t i = 0; i < r->name_count; i++)
        if (onx_str_equal(r->names[i], name))
            return (uint8_t)i;
    if (r->name_count == ONXI_REWRITE_NAMES) {
        r->too_large = true;
        return 0;
    }
    r->names[r->name_count] = name;
    return (uint8_t)r->name_count++;
}

static onx_status read_function(const onxi_rewrites *set, const char *text, onx_doc **doc, const onx_function **out,
                                onxi_binder **binder)
{
    ONX_TRY(onxi_function_of_text(set->cx, onx_str_of(text), doc));
    *out = onx_doc_root(*doc, ONX_KIND_FUNCTION);
    if (!(*binder = ONXI_NEW(set->arena, onxi_binder)))
        return ONX_E_MEMORY;
    **binder = (onxi_binder){ .arena = set->arena };
    return onxi_binder_open_body(*binder, *out);
}

static bool find_value(const onxi_rewrite_rule *r, const char *text, uint8_t *out)
{
    for (uint32_t i = 0; i < r->name_count; i++)
        if (onx_str_is(r->names[i], text)) {
            *out = (uint8_t)i;
            return true;
        }
    return false;
}

typedef struct onxi_rewrite_words { /* the words of a condition */
    char kind[ONXI_REWRITE_NAME], of[4][ONXI_REWRITE_NAME];
    uint32_t count;
} words;

/* Parses "d", "d/2" or a number. */
static bool read_bound(const char *text, onxi_rewrite_bound *out)
{
    int end = 0;
    *out = (onxi_rewrite_bound){ .of_dim = *text == 'd', .number = 1 };
    if (strcmp(text, "d") == 0)
        return true;
    return sscanf(text, out->of_dim ? "d/%" SCNd64 "%n" : "%" SCNd64 "%n", &out->number, &end) == 1 && !text[end] &&
           out->number >= (out->of_dim ? 1 : 0);
}

static bool read_int(const char *text, int64_t *out)
{
    int end = 0;
    return sscanf(text, "%" SCNd64 "%n", out, &end) == 1 && !text[end];
}

/* Parses a number, or the name of a captured number. */
static bool read_size(onxi_rewrite_rule *r, const char *text, uint32_t at)
{
    if (!read_int(text, &r->conditions[at].rank))
        memcpy(r->conditions[at].number, text, ONXI_REWRITE_NAME);
    return true;
}

/* The Slice that produces the value, and the part that it takes. */
static bool read_slice(onxi_rewrite_rule *r, const words *w, uint32_t at)
{
    uint8_t made;
    if (!find_value(r, w->of[0], &made) || !r->maker[made] || !read_bound(w->of[1], &r->conditions[at].from) ||
        !read_bound(w->of[2], &r->conditions[at].to) || !read_int(w->of[3], &r->conditions[at].rank))
        return false;
    const onxi_rewrite_node *n = &r->nodes[r->maker[made] - 1];
    r->conditions[at].value = n->inputs[0];
    for (uint32_t i = 1; i < n->input_count && i < 5; i++)
        r->conditions[at].bounds[r->conditions[at].bound_count++] = n->inputs[i];
    return n->id == ONXI_ID_Slice;
}

/* The conditions, as described in rewrite_rules.def. */
static bool read_condition(onxi_rewrite_rule *r, const words *w, uint32_t at)
{
    static const struct {
        const char *name;
        onxi_rewrite_condition_kind kind;
        const char *words; /* kinds of arguments: v, o: values; s: a size; a: an axis */
    } kinds[] = {
        { "last", ONXI_REWRITE_LAST_AXIS, "sv" },      { "same", ONXI_REWRITE_SAME_DIMS, "vo" },
        { "rank", ONXI_REWRITE_RANK, "sv" },           { "batch", ONXI_REWRITE_BATCH, "vo" },
        { "constants", ONXI_REWRITE_CONSTANTS, "vo" }, { "dim", ONXI_REWRITE_SAME_SIZE, "avo" },
        { "size", ONXI_REWRITE_SIZE, "sav" },          { "along", ONXI_REWRITE_ALONG, "avo" },
        { "slice", ONXI_REWRITE_SLICE, "...." },       { "onto", ONXI_REWRITE_ONTO, "vo" },
        { "both", ONXI_REWRITE_BOTH, "vo" },           { "bounded", ONXI_REWRITE_BOUNDED, "v" },
        { "number", ONXI_REWRITE_NUMBER, "v" },        { "multiple", ONXI_REWRITE_MULTIPLE, "sav" },
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].name, w->kind) != 0 || strlen(kinds[k].words) != w->count)
            continue;
        bool read = true;
        r->conditions[at].kind = kinds[k].kind;
        for (uint32_t i = 0; i < w->count && *kinds[k].words != '.'; i++) {
            const char what = kinds[k].words[i];
            read &= what == 's' ? read_size(r, w->of[i], at)
                    : what == 'a'
                        ? read_int(w->of[i], &r->conditions[at].axis)
                        : find_value(r, w->of[i], what == 'v' ? &r->conditions[at].value : &r->conditions[at].other);
        }
        return kinds[k].kind == ONXI_REWRITE_SLICE ? read_slice(r, w, at) : read;
    }
    return false;
}

static bool read_conditions(onxi_rewrite_rule *r, const char *text)
{
    while (*text) {
        words w = { .count = 0 };
        int length = 0;
        if (r->condition_count == ONXI_REWRITE_CONDITIONS || sscanf(text, " %31[a-z]%n", w.kind, &length) != 1)
            return false;
        text += length;
        for (; w.count < 4 && sscanf(text, " %31[-a-z0-9_/]%n", w.of[w.count], &length) == 1; text += length)
            w.count++;
        if (!read_condition(r, &w, r->condition_count++))
            return false;
        text += strspn(text, " ;");
    }
    return true;
}

static onx_status read_node(const onxi_rewrites *set, onxi_rewrite_rule *r, onxi_binder *binder, const onx_node *node)
{
    onxi_rewrite_node *n = &r->nodes[r->node_count++];
    onxi_bound *bound = onxi_bind(binder, node);
    onxi_attr_fault fault;
    if (!bound)
        return ONX_E_MEMORY;
    n->node = node;
    n->id = bound->op;
    n->optional = onx_str_is(onx_view(node->name), "optional");
    n->shared = onx_str_is(onx_view(node->name), "shared");
    n->list = n->id == ONXI_ID_Constant && onx_node_attribute(node, "value_ints") != NULL;
    const onx_status status = onxi_bind_attributes(bound, node, NULL, set->arena, NULL, 0, &n->attrs, &fault);
    if (status != ONX_OK && !(status == ONX_E_INVALID && strcmp(fault.rule, "ND-18") == 0)) /* ND-18: the missing
                                                                                             * attribute is captured */
        return status;
    r->too_large |= node->input_count > ONXI_REWRITE_INPUTS;
    for (uint32_t k = 0; k < node->input_count && k < ONXI_REWRITE_INPUTS; k++)
        n->inputs[n->input_count++] = name_of(r, node->input[k]);
    n->output = name_of(r, node->output[0]);
    r->maker[n->output] = (uint8_t)r->node_count;
    return ONX_OK;
}

static onx_status read_rule(const onxi_rewrites *set, onxi_rewrite_rule *r)
{
    onxi_binder *binder;
    ONX_TRY(read_function(set, r->row->pattern, &r->pattern_doc, &r->pattern, &binder));
    ONX_TRY(read_function(set, r->row->replacement, &r->replacement_doc, &r->replacement, &r->binder));
    if (r->pattern->node_count > ONXI_REWRITE_NODES)
        r->too_large = true;
    for (uint32_t i = 0; i < r->pattern->input_count; i++)
        name_of(r, r->pattern->input[i]);
    r->input_count = r->name_count;
    for (uint32_t i = 0; i < r->pattern->node_count && !r->too_large; i++)
        ONX_TRY(read_node(set, r, binder, r->pattern->node[i]));
    if (r->too_large)
        return onxi_fail(set->cx, ONX_E_LIMIT, ONXI_NOWHERE, "the pattern of rule %s is too large", r->row->name);
    if (!read_conditions(r, r->row->where))
        return onxi_fail(set->cx, ONX_E_INVALID, ONXI_NOWHERE, "the conditions of rule %s are not understood",
                         r->row->name);
    return ONX_OK;
}

static void close_rule(onxi_rewrite_rule *r)
{
    onx_doc_free(r->pattern_doc);
    onx_doc_free(r->replacement_doc);
}

onx_status onxi_rewrites_open(onxi_rewrites *rewrites, onx_ctx *cx, onx_arena *arena)
{
    *rewrites = (onxi_rewrites){ .cx = cx, .arena = arena };
    rewrites->rules = (onxi_rewrite_rule **)ONXI_ARRAY(arena, void *, ROWS);
    rewrites->count = rewrites->rules ? ROWS : 0;
    return rewrites->rules ? ONX_OK : ONX_E_MEMORY;
}

void onxi_rewrites_close(onxi_rewrites *rewrites)
{
    for (uint32_t i = 0; i < rewrites->count; i++)
        if (rewrites->rules[i])
            close_rule(rewrites->rules[i]);
    rewrites->count = 0;
}

onx_status onxi_rewrites_get(onxi_rewrites *rewrites, const onxi_rewrite_row *row, const onxi_rewrite_rule **out)
{
    onxi_rewrite_rule **place = &rewrites->rules[row - onxi_rewrite_rows];
    if (!*place) {
        onxi_rewrite_rule *r = ONXI_NEW(rewrites->arena, onxi_rewrite_rule);
        if (!r)
            return ONX_E_MEMORY;
        r->row = row;
        const onx_status status = read_rule(rewrites, r);
        if (status != ONX_OK) {
            close_rule(r);
            return status;
        }
        *place = r;
    }
    *out = *place;
    return ONX_OK;
}
