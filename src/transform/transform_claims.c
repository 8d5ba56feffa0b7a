/* transform_claims.c - which of the types that a model declares for its values are more than what it proves. Checks of
 * the results of transforms leave these out: they may be wrong, and then neither the transform nor its result is. */
#include "infer/infer.h"
#include "transform/transform.h"

/* What a model declares for a value, and what it proves, which is less. */
typedef struct claim {
    const onx_type *declared, *proven; /* `proven` may be NULL */
    uint32_t next;                     /* another claim about a value of that name, in another graph; 0: none */
    uint32_t length;                   /* of the list from here on */
} claim;

enum { SAME_NAME = 64 }; /* more claims about values of one name are not noted, so that the work is linear */

struct onxi_claims {
    onx_ctx *cx;
    onx_arena *arena;
    onxi_dict of; /* by name; value: the first claim */
    claim *list;
    uint32_t count, room; /* [0] is not used */
    onxi_table table;     /* of the next list, by type */
    struct type {         /* a tensor type of claims, because a transform may rename values */
        const onx_type *declared;
        onx_type *weak; /* what is proven of all of them; NULL: not even the element type */
    } * types;
    uint32_t type_count, type_room;
    struct hidden {
        onx_value_info *value;
        onx_type *type;
        uint32_t has;
    } * hidden; /* by onxi_claims_hide */
    uint32_t hidden_count, hidden_room;
};

onx_status onxi_claims_new(onx_ctx *cx, onxi_claims **out)
{
    onx_arena *arena;
    *out = NULL;
    ONX_TRY(onx_arena_new(cx, &arena));
    onxi_claims *c = ONXI_NEW(arena, onxi_claims);
    if (!c) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    *c = (onxi_claims){
        .cx = cx, .arena = arena, .of = onxi_dict_in_arena(arena), .count = 1, .table = onxi_table_in_arena(arena)
    };
    *out = c;
    return ONX_OK;
}

void onxi_claims_free(onxi_claims *c)
{
    if (c)
        onx_arena_free(c->arena);
}

/* ---- declarations ---- */

/* `fact`: every run obeys the type, except for names of sizes. */
typedef onx_status on_declaration(onxi_claims *c, void *user, const onx_graph *graph, onx_value_info *value, bool fact);

typedef struct walk {
    onxi_claims *c;
    const onx_model *model;
    on_declaration *call;
    void *user;
    bool facts; /* types of the inputs of the main graph, too */
} walk;

static onx_status each_of(const walk *w, const onx_graph *g, onx_value_info *const *list, uint32_t count, bool fact)
{
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < count && status == ONX_OK; i++)
        if (list[i]->type && (!fact || w->facts))
            status = w->call(w->c, w->user, g, list[i], fact);
    return status;
}

static onx_status at_message(void *user, const onx_visit *at)
{
    const walk *w = user;
    onx_graph *g = at->message;
    if (at->kind != ONX_KIND_GRAPH)
        return ONX_OK;
    ONX_TRY(each_of(w, g, g->value_info, g->value_info_count, false));
    ONX_TRY(each_of(w, g, g->output, g->output_count, false));
    return each_of(w, g, g->input, g->input_count, g == w->model->graph);
}

static onx_status each_declaration(onxi_claims *c, onx_doc *doc, bool facts, on_declaration *call, void *user)
{
    walk w = { c, onx_doc_model(doc), call, user, facts };
    return w.model->graph ? onx_message_walk(c->cx, ONX_KIND_GRAPH, w.model->graph, at_message, &w) : ONX_OK;
}

/* ---- what a type says, part by part ---- */

static const onx_type_tensor *tensor_of(const onx_type *type)
{
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
}

static const onx_tensor_shape *shape_of(const onx_type_tensor *type)
{
    return type && ONX_HAS(type_tensor, type, shape) ? type->shape : NULL;
}

static bool has_size(const onx_tensor_shape *shape, uint32_t i)
{
    return ONX_HAS(dimension, shape->dim[i], dim_value);
}

/* Do both say the same of the element type, the rank, or a size? */
static bool same_dtype(const onx_type_tensor *a, const onx_type_tensor *b)
{
    return a && b && a->elem_type == b->elem_type;
}

static bool same_rank(const onx_type_tensor *a, const onx_type_tensor *b)
{
    const onx_tensor_shape *x = shape_of(a), *y = shape_of(b);
    return x && y && x->dim_count == y->dim_count;
}

static bool same_size(const onx_type_tensor *a, const onx_type_tensor *b, uint32_t i)
{
    const onx_tensor_shape *x = shape_of(a), *y = shape_of(b);
    return same_rank(a, b) && has_size(x, i) && has_size(y, i) && x->dim[i]->dim_value == y->dim[i]->dim_value;
}

/* Except for names of sizes. */
static bool same_tensor(const onx_type_tensor *a, const onx_type_tensor *b)
{
    const onx_tensor_shape *shape = shape_of(a);
    bool same = same_dtype(a, b) && (shape ? same_rank(a, b) : !shape_of(b));
    for (uint32_t i = 0; same && shape && i < shape->dim_count; i++)
        same = same_size(a, b, i) || (!has_size(shape, i) && !has_size(shape_of(b), i));
    return same;
}

/* Takes from `type`, which may be changed, what a claim says and the model does not prove. NULL: nothing is left. */
static onx_type *weaken(onx_type *type, const onx_type *declared, const onx_type *proven_type)
{
    const onx_type_tensor *was = tensor_of(declared), *proven = tensor_of(proven_type);
    onx_type_tensor *now = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    if (!now || !was)
        return type && onx_message_equal(ONX_KIND_TYPE, type, declared) ? NULL : type;
    if (same_dtype(now, was) && !same_dtype(was, proven))
        return NULL;
    const onx_tensor_shape *shape = shape_of(now);
    for (uint32_t i = 0; shape && i < shape->dim_count; i++)
        if (same_size(now, was, i) && !same_size(was, proven, i))
            ONX_CLEAR(dimension, shape->dim[i], dim_value);
    if (same_rank(now, was) && !same_rank(was, proven)) {
        now->shape = NULL;
        ONX_CLEAR(type_tensor, now, shape);
    }
    return type;
}

/* ---- before a transform ---- */

static uint32_t hash_of(const onxi_claims *c, const onx_type_tensor *type)
{
    const onx_tensor_shape *shape = shape_of(type);
    uint64_t hash = onxi_hash_word(c->table.secret, (uint64_t)type->elem_type << 32 | (shape ? shape->dim_count : ~0u));
    for (uint32_t i = 0; shape && i < shape->dim_count; i++)
        hash = onxi_hash_word(onxi_hash_then(c->table.secret, hash),
                              has_size(shape, i) ? (uint64_t)shape->dim[i]->dim_value : ~UINT64_C(0));
    return (uint32_t)hash;
}

static struct type *type_at(const onxi_claims *c, const onx_type *declared, uint32_t hash)
{
    ONXI_TABLE_EACH (&c->table, hash, i)
        if (same_tensor(tensor_of(c->types[i].declared), tensor_of(declared)))
            return &c->types[i];
    return NULL;
}

static onx_status note_type(onxi_claims *c, const claim *of)
{
    if (!tensor_of(of->declared))
        return ONX_OK;
    const uint32_t hash = hash_of(c, tensor_of(of->declared));
    struct type *type = type_at(c, of->declared, hash);
    if (!type) {
        void *copy;
        if (!ONXI_GROW_IN(c->arena, c->types, c->type_room, (uint64_t)c->type_count + 1))
            return ONX_E_MEMORY;
        ONX_TRY(onx_message_copy(c->arena, ONX_KIND_TYPE, of->declared, &copy));
        type = &c->types[c->type_count];
        *type = (struct type){ of->declared, copy };
        if (!onxi_table_add(&c->table, hash, c->type_count++))
            return ONX_E_MEMORY;
    }
    type->weak = weaken(type->weak, of->declared, of->proven);
    return ONX_OK;
}

static onx_status note(onxi_claims *c, void *user, const onx_graph *graph, onx_value_info *value, bool fact)
{
    (void)fact;
    const onx_str name = onx_view(value->name);
    void *copies[2] = { NULL, NULL };
    onx_bytes kept;
    if (user && onxi_facts_prove(user, graph, name, value->type))
        return ONX_OK;
    const onx_type *proven = onx_infer_type(user, graph, name);
    if (proven && onx_message_equal(ONX_KIND_TYPE, value->type, proven))
        return ONX_OK;
    const onxi_dict_entry *old = onxi_dict_find(&c->of, name);
    if (!old) {
        ONX_TRY(onx_arena_keep(c->arena, name, &kept));
        if (!(old = onxi_dict_at(&c->of, onx_view(kept), 0, NULL)))
            return ONX_E_MEMORY;
    }
    const uint32_t length = old->value ? c->list[old->value].length : 0;
    if (length == SAME_NAME)
        return ONX_OK;
    if (!ONXI_GROW_IN(c->arena, c->list, c->room, (uint64_t)c->count + 1))
        return ONX_E_MEMORY;
    ONX_TRY(onx_message_copy(c->arena, ONX_KIND_TYPE, value->type, &copies[0]));
    if (proven)
        ONX_TRY(onx_message_copy(c->arena, ONX_KIND_TYPE, proven, &copies[1]));
    c->list[c->count] = (claim){ copies[0], copies[1], old->value, length + 1 };
    onxi_dict_find(&c->of, name)->value = c->count;
    return note_type(c, &c->list[c->count++]);
}

onx_status onxi_claims_note(onxi_claims *c, onx_doc *doc, bool *sound)
{
    onx_infer *infer;
    const onxi_diag_mark mark = onxi_diag_here(c->cx);
    onx_status status = onxi_facts_check(c->cx, doc, &infer);
    *sound = status == ONX_OK;
    if (status == ONX_E_INVALID) /* what is proven of the rest */
        status = onxi_facts_new(c->cx, doc, onx_str_of(""), &infer);
    if (status == ONX_E_MEMORY)
        return status;
    if (status != ONX_OK)
        infer = NULL; /* nothing is proven */
    status = each_declaration(c, doc, false, note, infer);
    onx_infer_free(infer);
    if (status != ONX_E_MEMORY)
        onxi_diag_rewind(c->cx, mark);
    return status;
}

/* ---- after it ---- */

/* Equal names of sizes are claims, too. */
static void forget_names(const onx_type *type)
{
    const onx_tensor_shape *shape = shape_of(tensor_of(type));
    for (uint32_t i = 0; shape && i < shape->dim_count; i++)
        ONX_CLEAR(dimension, shape->dim[i], dim_param);
}

static onx_status hide(onxi_claims *c, void *user, const onx_graph *graph, onx_value_info *value, bool fact)
{
    (void)user, (void)graph;
    const onxi_dict_entry *entry = onxi_dict_find(&c->of, onx_view(value->name));
    void *copy;
    if (!ONXI_GROW_IN(c->arena, c->hidden, c->hidden_room, (uint64_t)c->hidden_count + 1))
        return ONX_E_MEMORY;
    ONX_TRY(onx_message_copy(c->arena, ONX_KIND_TYPE, value->type, &copy));
    onx_type *type = copy;
    for (uint32_t i = entry && !fact ? entry->value : 0; i; i = c->list[i].next)
        type = weaken(type, c->list[i].declared, c->list[i].proven);
    if (!entry && !fact && tensor_of(type)) {
        const struct type *known = type_at(c, type, hash_of(c, tensor_of(type)));
        if (known && known->weak)
            ONX_TRY(onx_message_copy(c->arena, ONX_KIND_TYPE, known->weak, &copy));
        type = !known ? type : known->weak ? copy : NULL;
    }
    forget_names(type);
    c->hidden[c->hidden_count++] = (struct hidden){ value, value->type, value->has };
    value->type = type;
    if (!type)
        ONX_CLEAR(value_info, value, type);
    return ONX_OK;
}

onx_status onxi_claims_hide(onxi_claims *c, onx_doc *doc)
{
    c->hidden_count = 0;
    return each_declaration(c, doc, true, hide, NULL);
}

void onxi_claims_show(onxi_claims *c)
{
    for (uint32_t i = c->hidden_count; i-- > 0;) { /* a declaration that is in two lists is hidden twice */
        c->hidden[i].value->type = c->hidden[i].type;
        c->hidden[i].value->has = c->hidden[i].has;
    }
    c->hidden_count = 0;
}
