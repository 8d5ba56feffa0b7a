/* transform_text.c - replaces a node by other nodes: the text of a step, or the function body of an operator. */
#include "transform/transform_retarget.h"

/* ---- the text of a row ---- */

/* Parses the text into a function. Its memory is transferred to the model, because nodes created from it refer to its
 * strings. */
static const onx_function *keep(onxi_retarget *r, onx_doc *doc)
{
    const onx_function *function = onx_doc_root(doc, ONX_KIND_FUNCTION);
    onx_arena_adopt(r->arena, doc->arena);
    return function;
}

onx_status onxi_retarget_text(onxi_retarget *r, const onxi_step *step, const onxi_subject *s, const onx_function **out)
{
    const onx_function **function = &r->texts[step - onxi_steps];
    if (!step->text || !*function) {
        onx_doc *doc;
        const onx_str text = onxi_arena_printf(r->scratch, "<domain: \"retarget\", opset_import: [\"\": 1]> R %.*s",
                                               ONX_ARG(step->text ? onx_str_of(step->text) : s->text));
        ONX_TRY(text.len ? onxi_function_of_text(r->cx, text, &doc) : ONX_E_MEMORY);
        *function = keep(r, doc);
    }
    *out = *function;
    return ONX_OK;
}

static bool takes_rest(const onx_bytes *names, uint32_t count)
{
    return count && onx_str_is(onx_view(names[count - 1]), "rest");
}

/* Does the node have everything that the text refers to, and does the text accept its operands? */
bool onxi_retarget_fits(onxi_subject *s, const onx_function *text)
{
    uint32_t inputs = s->node->input_count;
    while (inputs && !onx_view(s->node->input[inputs - 1]).len)
        inputs--;
    if (inputs > text->input_count && !takes_rest(text->input, text->input_count))
        return false;
    if (onxi_subject_outputs(s) > text->output_count && !takes_rest(text->output, text->output_count))
        return false;
    for (uint32_t i = 0; i < text->node_count; i++)
        for (uint32_t k = 0; k < text->node[i]->attribute_count; k++) {
            const onx_attribute *a = text->node[i]->attribute[k];
            const onx_str refers = onx_view(onx_attribute_more(a)->ref_attr_name);
            if (refers.len && !onxi_subject_argument(s, text, refers, (int32_t)onx_attribute_type_of(a), NULL))
                return false;
        }
    return true;
}

typedef struct text_call {
    onxi_subject *subject;
    const onx_function *text;
} text_call;

static const onx_attribute *text_argument(void *user, onx_str name, int32_t type)
{
    text_call *call = user;
    onxi_subject *s = call->subject;
    uint32_t input;
    const onx_attribute *value = onxi_subject_argument(s, call->text, name, type, &input);
    if (input == ONXI_NO_INPUT || !value)
        return value;
    onxi_retarget *r = s->r;
    const onx_str constant = onx_view(s->node->input[input]);
    const onxi_constant *from = onxi_values_constant(&r->values, s->scope, constant);
    bool made = false;
    if (!onxi_dict_at(&r->captured, constant, 0, &made))
        return NULL;
    if (made && from && from->is_default)
        onxi_warn(r->cx, ONX_WARNING, NULL, ONXI_AT_PATH(onxi_retarget_path(r)),
                  "the default of input %.*s becomes an attribute, which callers cannot change", ONX_ARG(constant));
    return value;
}

/* Constants in texts are tensors, the form that all versions support, if their values are known. */
static onx_status settle_constant(onxi_retarget *r, onx_node *node)
{
    onx_attribute *a = node->attribute_count == 1 ? node->attribute[0] : NULL;
    if (!a || !onxi_node_is(node, ONXI_ID_Constant) || onxi_is_reference(a))
        return ONX_OK;
    const onx_attribute_type type = onx_attribute_type_of(a);
    const bool real = type == ONX_ATTR_FLOAT || type == ONX_ATTR_FLOATS,
               list = type == ONX_ATTR_INTS || type == ONX_ATTR_FLOATS;
    if (!real && !list && type != ONX_ATTR_INT)
        return ONX_OK;
    const int64_t dims[1] = { a->count };
    const void *data = !list ? (real ? (const void *)&a->f : &a->i) : real ? (const void *)a->floats : a->ints;
    onx_tensor *tensor = onx_tensor_new(r->arena, real ? ONX_FLOAT : ONX_INT64, dims, list, data ? data : "", NULL);
    onx_attribute *value = tensor ? onxi_attribute_new(r->arena, "value", ONX_ATTR_TENSOR) : NULL;
    if (!value)
        return ONX_E_MEMORY;
    ONX_SET(attribute, value, t, tensor);
    node->attribute[0] = value;
    return ONX_OK;
}

/* The body of a Loop needs declared input types for later steps: the iteration number, the condition, and values of the
 * types of the initial values. */
static onx_status settle_loop(onxi_retarget *r, const onxi_subject *s, const onx_node *node)
{
    const onx_attribute *body = onxi_node_is(node, ONXI_ID_Loop) ? onx_node_attribute(node, "body") : NULL;
    for (uint32_t i = 0; body && body->slot == ONX_SLOT_G && i < body->g->input_count; i++) {
        onx_value_info *input = body->g->input[i];
        const onx_str from = i >= 2 && i < node->input_count ? onx_view(node->input[i]) : (onx_str){ 0 };
        const int dtype = !i       ? ONX_INT64
                          : i == 1 ? ONX_BOOL
                                   : onxi_type_dtype(onxi_values_type(&r->values, s->scope, from));
        if (input->type || dtype <= 0)
            continue;
        onx_type *type = onx_type_new_tensor(r->arena, (onx_dtype)dtype, NULL, i < 2 ? 0 : -1);
        if (!type)
            return ONX_E_MEMORY;
        ONX_SET(value_info, input, type, type);
    }
    return ONX_OK;
}

/* Rules about the types of operands, as opposed to shapes and values. */
static bool is_about_types(const char *rule)
{
    return strcmp(rule, "ND-15") == 0 || strcmp(rule, "ND-16") == 0 || strcmp(rule, "ND-24") == 0;
}

/* Does an attribute depend on the caller of the enclosing function? */
static bool has_references(onx_node *const *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; nodes[i] && k < nodes[i]->attribute_count; k++)
            if (onxi_is_reference(nodes[i]->attribute[k]))
                return true;
    return false;
}

/* What inference refuses about the nodes; empty: nothing. */
static onx_str complaint(onxi_retarget *r, onxi_diag_mark from, bool only_types)
{
    for (size_t i = from.count; i < onx_diag_count(r->cx); i++) {
        const onx_diag *diag = onx_diag_get(r->cx, i);
        /* Before version 9 a Constant of the standard is of floats; all libraries have read all types. */
        const onx_str path = diag->where.path, end = onx_str_of("(Constant)");
        const bool constant = path.len >= end.len && memcmp(path.ptr + path.len - end.len, end.ptr, end.len) == 0;
        if (diag->rule && !constant && (!only_types || is_about_types(diag->rule)))
            return onxi_arena_printf(r->scratch, "%.*s", ONX_ARG(diag->message));
    }
    return (onx_str){ 0 };
}

/* Says that an output of the old node would have another element type. */
static onx_str other_type(onxi_retarget *r, onx_str name, const onx_type *now, const onx_type *was)
{
    const int is = onxi_type_dtype(now), before = onxi_type_dtype(was);
    return is > 0 && before > 0 && is != before
               ? onxi_arena_printf(r->scratch, "output %.*s would be of %s, not of %s", ONX_ARG(name),
                                   onx_dtype_name(is), onx_dtype_name(before))
               : (onx_str){ 0 };
}

static onx_status note_made(onxi_retarget *r, onxi_subject *s, onx_node *const *nodes, uint32_t count,
                            onxi_versioned domain, int64_t version, onx_str *wrong);

/* The same for the values in the body of a Loop, whose inputs have declared types. */
static onx_status note_graphs(onxi_retarget *r, onxi_subject *s, const onx_node *node, onxi_versioned domain,
                              int64_t version, onx_str *wrong)
{
    const onx_attribute *body = onxi_node_is(node, ONXI_ID_Loop) ? onx_node_attribute(node, "body") : NULL;
    if (!body || body->slot != ONX_SLOT_G)
        return ONX_OK;
    for (uint32_t i = 0; i < body->g->input_count; i++)
        ONX_TRY(onxi_values_note(&r->values, onx_view(body->g->input[i]->name), body->g->input[i]->type, NULL));
    return note_made(r, s, body->g->node, body->g->node_count, domain, version, wrong);
}

/* Types and constants of the values in a body, for the following steps. */
static onx_status note_made(onxi_retarget *r, onxi_subject *s, onx_node *const *nodes, uint32_t count,
                            onxi_versioned domain, int64_t version, onx_str *wrong)
{
    const onx_infer_options checked = { .struct_size = sizeof checked, .check_type = true };
    onx_function *f = onx_message_new(r->scratch, ONX_KIND_FUNCTION);
    onx_operator_set_id *import = f ? ONX_ADD(r->scratch, f, opset_import, OPERATOR_SET_ID) : NULL;
    onxi_dict known = onxi_dict_in_arena(r->scratch);
    if (!import || onx_arena_keep(r->scratch, onx_str_of("made"), &f->name) != ONX_OK ||
        onx_arena_keep(r->scratch, onx_str_of(onxi_versioned_domains[domain]), &import->domain) != ONX_OK)
        return ONX_E_MEMORY;
    ONX_SET(operator_set_id, import, version, version);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; nodes[i] && k < nodes[i]->output_count; k++)
            if (onx_view(nodes[i]->output[k]).len)
                if (!onxi_dict_at(&known, onx_view(nodes[i]->output[k]), 1, NULL) ||
                    onx_list_add_text(r->scratch, &f->output, &f->output_count, onx_view(nodes[i]->output[k])) !=
                        ONX_OK)
                    return ONX_E_MEMORY;
    f->node = ONXI_ARRAY(r->scratch, onx_node *, (size_t)onxi_list_room(count) + 1);
    const onx_type **types = ONXI_ARRAY(r->scratch, const onx_type *, f->output_count + 1);
    if (!f->node || !types)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        if (!nodes[i])
            continue;
        f->node[f->node_count++] = nodes[i];
        for (uint32_t k = 0; k < nodes[i]->input_count; k++) {
            const onx_str name = onx_view(nodes[i]->input[k]);
            bool made = false;
            if (name.len && !onxi_dict_at(&known, name, 0, &made))
                return ONX_E_MEMORY;
            if (made)
                ONX_TRY(onx_list_add_text(r->scratch, &f->input, &f->input_count, name));
        }
    }
    const onx_type **inputs = ONXI_ARRAY(r->scratch, const onx_type *, f->input_count + 1);
    if (!inputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < f->input_count; i++)
        inputs[i] = onxi_values_type(&r->values, s->scope, onx_view(f->input[i]));
    const onxi_diag_mark mark = onxi_diag_here(r->cx);
    onx_status status =
        onx_infer_function(r->cx, NULL, f, inputs, f->input_count, NULL, 0, &checked, r->scratch, types);
    *wrong = complaint(r, mark, has_references(nodes, count));
    onxi_diag_rewind(r->cx, mark);
    if (status == ONX_E_MEMORY)
        return status;
    for (uint32_t i = 0; i < f->output_count; i++) {
        const onx_str name = onx_view(f->output[i]);
        bool outer = false;
        for (uint32_t k = 0; k < s->node->output_count; k++)
            outer |= onx_str_equal(name, onx_view(s->node->output[k]));
        if (!outer)
            ONX_TRY(onxi_values_note(&r->values, name, status == ONX_OK ? types[i] : NULL, NULL));
        else if (status == ONX_OK && !wrong->len)
            *wrong = other_type(r, name, types[i], onxi_values_type(&r->values, s->scope, name));
    }
    for (uint32_t i = 0; i < count && !wrong->len; i++)
        if (nodes[i])
            ONX_TRY(note_graphs(r, s, nodes[i], domain, version, wrong));
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i] && nodes[i]->attribute_count == 1 && nodes[i]->output_count == 1 &&
            onxi_node_is(nodes[i], ONXI_ID_Constant)) {
            const onxi_constant constant = { .attribute = nodes[i]->attribute[0] };
            const onx_str name = onx_view(nodes[i]->output[0]);
            const onx_type *type = onxi_values_type(&r->values, s->scope, name);
            ONX_TRY(onxi_values_note(&r->values, name, type, &constant));
        }
    return ONX_OK;
}

/* The node of the text that succeeds the old one: the first with its operator, else the one that computes its
 * output. */
static onx_node *heir_of(onx_node *const *nodes, const onx_function *text, const onx_node *old)
{
    for (uint32_t i = 0; i < text->node_count; i++)
        if (nodes[i] && onx_str_equal(onx_view(nodes[i]->op_type), onx_view(old->op_type)))
            return nodes[i];
    for (uint32_t i = text->node_count; i-- > 0;)
        for (uint32_t k = 0; nodes[i] && k < nodes[i]->output_count; k++)
            for (uint32_t j = 0; j < old->output_count; j++)
                if (onx_view(old->output[j]).len && nodes[i]->output[k].bits == old->output[j].bits)
                    return nodes[i];
    return NULL;
}

static bool is_consumed(const onx_function *text, onx_str name)
{
    for (uint32_t i = 0; i < text->attribute_count; i++)
        if (onx_str_equal(onx_view(text->attribute[i]), name))
            return true;
    return false;
}

/* The successor gets name, description and so on of the old node, and its attributes except those in the header of the
 * text; the other nodes get names derived from it. */
static onx_status inherit(onxi_retarget *r, const onxi_subject *s, const onx_function *text, onx_node **nodes,
                          bool attributes, int64_t version, onx_str *wrong)
{
    const onx_node *old = s->node;
    onx_node *heir = heir_of(nodes, text, old);
    for (uint32_t i = 0; i < text->node_count; i++) {
        if (!nodes[i] || nodes[i] == heir)
            continue;
        if (onx_view(old->name).len) {
            ONX_TRY(onxi_names_make(&r->names, onx_view(old->name), onx_view(nodes[i]->op_type), &nodes[i]->name));
            nodes[i]->has |= onx_node_has_name;
        }
    }
    if (!heir)
        return ONX_OK;
    heir->name = old->name;
    heir->has |= old->has & (onx_node_has_name | onx_node_has_doc_string);
    heir->extra = old->extra;
    ONX_TRY(onxi_node_fit_devices(r->arena, heir, NULL));
    for (uint32_t i = 0; attributes && i < old->attribute_count; i++) {
        const onx_attribute *a = old->attribute[i];
        bool there = is_consumed(text, onx_view(a->name));
        for (uint32_t k = 0; k < heir->attribute_count && !there; k++)
            there = onx_str_equal(onx_view(heir->attribute[k]->name), onx_view(a->name));
        if (there)
            continue;
        const onxi_schema *row = onxi_schema_find(onx_view(heir->domain), onx_view(heir->op_type), version);
        if (!row || onxi_schema_attr(row, onx_view(a->name)) || !onxi_schema_attr(s->row, onx_view(a->name)))
            ONX_TRY(onxi_set_attribute(r, heir, a));
        else if (!onxi_retarget_is_default(r, s->row, a))
            *wrong = onxi_arena_printf(r->scratch, "version %d of %s has no attribute %.*s", row->since, row->name,
                                       ONX_ARG(onx_view(a->name)));
    }
    return ONX_OK;
}

/* Inserts the operands that the text calls `rest`. */
static onx_status splice(onxi_retarget *r, const onx_bytes *all, uint32_t all_count, uint32_t from, onx_bytes first,
                         onx_bytes **names, uint32_t *count)
{
    const uint32_t n = *count;
    if (!n || !first.bits || (*names)[n - 1].bits != first.bits || all_count <= from + 1)
        return ONX_OK;
    onx_bytes *joined =
        onxi_arena_array(r->arena, (size_t)onxi_list_room((uint64_t)n + all_count - from - 1), sizeof *joined);
    if (!joined)
        return ONX_E_MEMORY;
    memcpy(joined, *names, (n - 1) * sizeof *joined);
    memcpy(joined + n - 1, all + from, (all_count - from) * sizeof *joined);
    *names = joined;
    *count = n - 1 + all_count - from;
    return ONX_OK;
}

/* Do the type rules accept the node as it is? What is wrong already need not become right. */
static onx_status was_right(onxi_retarget *r, onxi_subject *s, bool *right)
{
    onx_node *node = (onx_node *)(uintptr_t)s->node;
    const onxi_versioned domain = onxi_versioned_of(onx_view(node->domain));
    onx_str wrong = { 0 };
    if (domain < ONXI_VERSIONED_COUNT)
        ONX_TRY(note_made(r, s, &node, 1, domain, s->row->since, &wrong));
    *right = !wrong.len;
    return ONX_OK;
}

onx_status onxi_retarget_make(onxi_retarget *r, onxi_subject *s, const onx_function *text, onxi_versions at,
                              bool attributes, onxi_versioned domain, onxi_made_nodes *made)
{
    const onx_node *old = s->node;
    text_call call = { s, text };
    onxi_expansion x =
        onxi_expansion_of(&r->names, text, old, old->output_count ? onx_view(old->output[0]) : (onx_str){ 0 });
    x.argument = text_argument;
    x.user = &call;
    x.omit = true;
    ONX_TRY(onxi_expand(&x));
    for (uint32_t i = 0; i < text->node_count; i++) {
        onx_node *node = x.nodes[i];
        if (!node)
            continue;
        ONX_TRY(settle_constant(r, node));
        ONX_TRY(settle_loop(r, s, node));
        if (takes_rest(text->input, text->input_count) && old->input_count >= text->input_count)
            ONX_TRY(splice(r, old->input, old->input_count, text->input_count - 1, old->input[text->input_count - 1],
                           &node->input, &node->input_count));
        if (takes_rest(text->output, text->output_count) && old->output_count >= text->output_count)
            ONX_TRY(splice(r, old->output, old->output_count, text->output_count - 1,
                           old->output[text->output_count - 1], &node->output, &node->output_count));
    }
    *made = (onxi_made_nodes){ .nodes = x.nodes, .count = text->node_count };
    bool right = true;
    ONX_TRY(inherit(r, s, text, x.nodes, attributes, at.of[domain], &made->wrong));
    if (made->wrong.len)
        return ONX_OK;
    ONX_TRY(note_made(r, s, x.nodes, text->node_count, domain, at.of[domain], &made->wrong));
    if (made->wrong.len)
        ONX_TRY(was_right(r, s, &right));
    if (!right)
        made->wrong = (onx_str){ 0 };
    return ONX_OK;
}

onx_status onxi_retarget_recheck(onxi_retarget *r, onxi_subject *s, onx_node *node, onxi_versions at,
                                 onxi_versioned domain, onx_str *wrong)
{
    return note_made(r, s, &node, 1, domain, at.of[domain], wrong);
}

onx_status onxi_retarget_put(onxi_retarget *r, onxi_subject *s, const onxi_made_nodes *made, onxi_versions at,
                             onxi_node_list *out)
{
    for (uint32_t i = 0; i < made->count; i++) {
        onxi_versions from = at;
        if (!made->nodes[i])
            continue;
        /* Texts have constants of all types, which Constant gives since version 9. */
        if (onxi_node_is(made->nodes[i], ONXI_ID_Constant) && from.of[ONXI_DEFAULT] < 9)
            from.of[ONXI_DEFAULT] = 9;
        ONX_TRY(onxi_retarget_convert(r, s->scope, made->nodes[i], from, out));
    }
    return ONX_OK;
}

/* ---- function bodies of operators ---- */

static onxi_binder *binder_at(onxi_retarget *r, onxi_versioned domain, int64_t version)
{
    if (version < 0 || version > onxi_domain_newest(onx_str_of(onxi_versioned_domains[domain])))
        return NULL;
    if (!r->binders[domain] &&
        !(r->binders[domain] = ONXI_ARRAY(r->scratch, onxi_binder,
                                          (size_t)onxi_domain_newest(onx_str_of(onxi_versioned_domains[domain])) + 1)))
        return NULL;
    onxi_binder *binder = &r->binders[domain][version];
    if (binder->arena)
        return binder;
    onx_operator_set_id *import = onx_message_new(r->scratch, ONX_KIND_OPERATOR_SET_ID);
    if (!import || onx_arena_keep(r->scratch, onx_str_of(onxi_versioned_domains[domain]), &import->domain) != ONX_OK)
        return NULL;
    import->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, import, version, version);
    *binder = (onxi_binder){ .arena = r->scratch };
    return onxi_binder_open(binder, &import, 1, false) == ONX_OK ? binder : NULL;
}

/* The same for a domain without version conversion, of which there are few nodes. */
static onxi_binder *binder_of(onxi_retarget *r, onx_str domain, int64_t version)
{
    onxi_binder *binder = ONXI_NEW(r->scratch, onxi_binder);
    onx_operator_set_id *import = onx_message_new(r->scratch, ONX_KIND_OPERATOR_SET_ID);
    if (!binder || !import || onx_arena_keep(r->scratch, domain, &import->domain) != ONX_OK)
        return NULL;
    import->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, import, version, version);
    *binder = (onxi_binder){ .arena = r->scratch };
    return onxi_binder_open(binder, &import, 1, false) == ONX_OK ? binder : NULL;
}

/* One of the bodies of an operator, for the parts that apply to calls. */
typedef struct body {
    struct body *next;
    uint64_t parts;
    const onx_function *function;
} body;

/* The known element types and ranks of the operands. */
static const onxi_type **operand_types(onxi_retarget *r, onxi_subject *s)
{
    const onxi_type **inputs = ONXI_ARRAY(r->scratch, const onxi_type *, (size_t)s->node->input_count + 1);
    for (uint32_t i = 0; inputs && i < s->node->input_count; i++) {
        if (!onxi_subject_has(s, i))
            continue;
        const int rank = onxi_subject_rank(s, i), dtype = onxi_subject_dtype(s, i);
        onxi_type *type = ONXI_NEW(r->scratch, onxi_type);
        if (!type)
            return NULL;
        *type = (onxi_type){ .kind = dtype > 0 ? ONXI_TYPE_TENSOR : ONXI_TYPE_NONE,
                             .dtype = (uint8_t)(dtype > 0 ? dtype : 0) };
        if (dtype > 0 && rank >= 0) {
            type->ranked = true;
            type->rank = (uint32_t)rank;
            if (!(type->dims = ONXI_ARRAY(r->scratch, onxi_dim, (size_t)rank + 1)))
                return NULL;
            for (int k = 0; k < rank; k++)
                type->dims[k] = ONXI_DIM_UNKNOWN;
        }
        inputs[i] = type;
    }
    return inputs;
}

onx_status onxi_retarget_body(onxi_retarget *r, onxi_subject *s, onxi_versioned domain, int64_t version,
                              const onx_function **out)
{
    onxi_binder *binder = domain < ONXI_VERSIONED_COUNT ? binder_at(r, domain, version)
                                                        : binder_of(r, onx_view(s->node->domain), version);
    const onxi_bound *bound = binder ? onxi_bind(binder, s->node) : NULL;
    onxi_attrs attrs;
    onxi_attr_fault fault;
    onx_doc *doc;
    *out = NULL;
    if (!bound)
        return ONX_E_MEMORY;
    if (bound->kind != ONXI_BOUND_OPERATOR || !onxi_schema_is_composed(bound->schema))
        return ONX_OK;
    for (uint32_t i = 0; i < s->node->attribute_count; i++)
        if (onxi_is_reference(s->node->attribute[i]))
            return ONX_OK;
    if (onxi_bind_attributes(bound, s->node, NULL, r->scratch, NULL, 0, &attrs, &fault) != ONX_OK)
        return ONX_OK;
    const onxi_type **inputs = operand_types(r, s);
    if (!inputs)
        return ONX_E_MEMORY;
    onxi_call call = { .schema = bound->schema,
                       .op = bound->op,
                       .node = s->node,
                       .attrs = &attrs,
                       .opset = version,
                       .arena = r->scratch,
                       .input_count = s->node->input_count,
                       .output_count = s->node->output_count,
                       .inputs = inputs };
    const uint64_t parts = onxi_body_choose(&call);
    if (!parts)
        return ONX_OK;
    void **first = onxi_map_at(&r->bodies, (uint64_t)(uintptr_t)bound->schema);
    body *b = first ? *first : NULL;
    while (b && b->parts != parts)
        b = b->next;
    if (!b) {
        if (!first || !(b = ONXI_NEW(r->scratch, body)))
            return ONX_E_MEMORY;
        ONX_TRY(onxi_body_function(r->cx, bound->schema, parts, &doc));
        *b = (body){ *first, parts, keep(r, doc) };
        *first = b;
    }
    *out = b->function;
    return ONX_OK;
}
