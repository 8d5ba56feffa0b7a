/* oracle_operator.c - models of one operator as text, from the registry and the recipes. */
#include "oracle/oracle.h"

#include <onx/text.h>

#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t element_types[] = { ONX_FLOAT, ONX_INT64,  ONX_DOUBLE, ONX_FLOAT16, ONX_BFLOAT16,
                                         ONX_INT32, ONX_UINT8,  ONX_INT8,   ONX_BOOL,    ONX_UINT64,
                                         ONX_INT16, ONX_UINT16, ONX_UINT32, ONX_STRING };

typedef struct sink_text {
    char *ptr;
    size_t len;
} sink_text;

static onx_status collect(void *user, onx_str bytes)
{
    sink_text *t = user;
    char *grown = realloc(t->ptr, t->len + bytes.len + 1);
    if (!grown)
        return ONX_E_MEMORY;
    t->ptr = grown;
    if (bytes.len)
        memcpy(t->ptr + t->len, bytes.ptr, bytes.len);
    t->len += bytes.len;
    t->ptr[t->len] = 0;
    return ONX_OK;
}

char *oracle_text(onx_ctx *cx, const onx_model *model)
{
    sink_text text = { NULL, 0 };
    if (onx_text_print(cx, ONX_KIND_MODEL, model, NULL, (onx_sink){ collect, &text }) == ONX_OK)
        return text.ptr;
    free(text.ptr);
    return NULL;
}

/* An operator's version with a recipe. */
typedef struct pair {
    const onxi_schema *schema;
    const gen_recipe *recipe;
} pair;

static uint64_t fill_pairs(pair *list)
{
    const gen_recipe *recipe;
    uint64_t count = 0;
    for (size_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *s = onxi_operators[i].rows; s->name; s++)
            for (uint32_t k = 0; (recipe = gen_recipe_for(s, k)) != NULL; k++, count++)
                if (list)
                    list[count] = (pair){ s, recipe };
    return count;
}

/* All pairs there are, listed once: looking for the recipes of an operator takes longer than its examination. */
static const pair *all_pairs(uint64_t *count)
{
    static pair *list;
    static uint64_t length;
    if (!list) {
        length = fill_pairs(NULL);
        list = calloc(length + 1, sizeof *list);
        if (list)
            (void)fill_pairs(list);
    }
    *count = list ? length : 0;
    return list;
}

uint64_t oracle_operator_count(void)
{
    uint64_t count;
    (void)all_pairs(&count);
    return count;
}

/* Only what the sets of an examination can say: tensors, and constants for everything that is not drawn from a
 * range. False when an input is something else. */
static bool as_sets(gen_node *node, char *sets, size_t size)
{
    size_t len = 0;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        gen_operand *x = &node->operands[i];
        if (x->kind == GEN_OMITTED)
            continue;
        if (x->kind != GEN_TENSOR || x->dtype > ONX_BFLOAT16 || onx_dtype_class_of(x->dtype) == ONX_CLASS_COMPLEX)
            return false;
        x->constant = x->constant || x->fill == GEN_LISTED;
        if (x->constant)
            continue;
        const double low = x->fill == GEN_POSITIVE ? 0.125 : x->fill == GEN_UNIT || x->fill == GEN_INDEX ? 0 : -2;
        const double high = x->fill == GEN_UNIT ? 1 : x->fill == GEN_INDEX ? (double)(x->below - 1) : 2;
        len += (size_t)snprintf(sets + len, size - len, "%s%s=", len ? ", " : "", x->name);
        for (uint32_t k = 0; k < x->rank; k++)
            len += (size_t)snprintf(sets + len, size - len, "%s%lld", k ? "x" : "", (long long)x->dims[k]);
        len += (size_t)snprintf(sets + len, size - len, ":%g:%g", low, high);
        if (len + 128 > size)
            return false;
    }
    return true;
}

static bool add_sets(onx_doc *doc, const char *sets)
{
    onx_arena *arena = onx_doc_arena(doc);
    onx_model *model = onx_doc_model(doc);
    char both[2100];
    onx_string_string_entry *entry = ONX_ADD(arena, model, metadata_props, STRING_STRING_ENTRY);
    (void)snprintf(both, sizeof both, "%s; %s", sets, sets);
    if (!entry || onx_arena_keep(arena, onx_str_of("inputs"), &entry->key) != ONX_OK ||
        onx_arena_keep(arena, onx_str_of(both), &entry->value) != ONX_OK)
        return false;
    entry->has |= onx_string_string_entry_has_key | onx_string_string_entry_has_value;
    return true;
}

char *oracle_operator_model(uint64_t n)
{
    char sets[1024] = "";
    uint64_t count;
    const pair *pairs = all_pairs(&count);
    if (!count)
        return NULL;
    const uint64_t round = n / count;
    const gen_recipe *recipe = pairs[n % count].recipe;
    gen_node node;
    char *text = NULL;
    onx_doc *doc = NULL;
    const onxi_schema *schema = pairs[n % count].schema;
    const size_t types = sizeof element_types / sizeof *element_types;
    const gen_choice choice = { .seed = n,
                                .vary = round % 3 != 0,
                                .wide = round % 3 == 2,
                                .type = { "*", (onx_dtype)element_types[(round + n) % types] } };
    if (schema->flags & (ONXI_OP_DEPRECATED | ONXI_OP_NONDETERMINISTIC) || gen_lacks_library(schema->name) ||
        !gen_node_make(schema, recipe, &choice, &node) || !as_sets(&node, sets, sizeof sets))
        return NULL;
    onx_ctx *cx = onx_ctx_new(NULL);
    if (cx && gen_model(cx, &node, NULL, NULL, &doc) == ONX_OK && add_sets(doc, sets))
        text = oracle_text(cx, onx_doc_model(doc));
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return text;
}
