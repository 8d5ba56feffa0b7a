/* rewrite_rule.c - the rows of rewrite_rules.def, read when somebody asks for them. */
#include "rewrite/rewrite.h"

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

/* Of a name of the pattern; what a rule has no room for is noticed by read_rule. */
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

/* "last AXIS VALUE; same VALUE VALUE; rank NUMBER VALUE; batch VALUE VALUE; constants VALUE VALUE": see
 * rewrite_rules.def. */
static bool read_conditions(onxi_rewrite_rule *r, const char *text)
{
    while (*text) {
        char word[ONXI_REWRITE_NAME], first[ONXI_REWRITE_NAME], second[ONXI_REWRITE_NAME];
        const uint32_t at = r->condition_count++;
        int length = 0;
        if (r->condition_count > ONXI_REWRITE_CONDITIONS ||
            sscanf(text, " %31[a-z] %31[a-z0-9_] %31[a-z0-9_]%n", word, first, second, &length) != 3)
            return false;
        if (strcmp(word, "last") == 0 && find_value(r, second, &r->conditions[at].value)) {
            r->conditions[at].kind = ONXI_REWRITE_LAST_AXIS;
            memcpy(r->conditions[at].number, first, sizeof first);
        } else if ((strcmp(word, "same") == 0 || strcmp(word, "batch") == 0 || strcmp(word, "constants") == 0) &&
                   find_value(r, first, &r->conditions[at].value) && find_value(r, second, &r->conditions[at].other)) {
            r->conditions[at].kind = *word == 's'   ? ONXI_REWRITE_SAME_DIMS
                                     : *word == 'b' ? ONXI_REWRITE_BATCH
                                                    : ONXI_REWRITE_CONSTANTS;
        } else if (strcmp(word, "rank") == 0 && *first >= '0' && *first <= '9' && !first[1] &&
                   find_value(r, second, &r->conditions[at].value)) {
            r->conditions[at].kind = ONXI_REWRITE_RANK;
            r->conditions[at].rank = *first - '0';
        } else {
            return false;
        }
        text += length;
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
    ONX_TRY(onxi_bind_attributes(bound, node, NULL, set->arena, NULL, 0, &n->attrs, &fault));
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
