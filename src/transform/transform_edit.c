/* transform_edit.c - edits names, inputs, outputs, declared types, weights and metadata of a model, one edit after the
 * other. */
#include "transform/transform_edit.h"
#include "transform/transform_trainable.h"

/* ---- look-up ---- */

static onx_value_info *find_info(onxi_editor *e, onx_value_info *const *list, uint32_t count, onx_str name,
                                 const char *what)
{
    for (uint32_t i = 0; i < count; i++)
        if (onx_str_equal(onx_view(list[i]->name), name))
            return list[i];
    (void)onxi_fail(e->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no %s %.*s", what, ONX_ARG(name));
    return NULL;
}

onx_value_info *onxi_edit_input(onxi_editor *e, onx_str name)
{
    return find_info(e, e->graph->input, e->graph->input_count, name, "input");
}

onx_value_info *onxi_edit_output(onxi_editor *e, onx_str name)
{
    return find_info(e, e->graph->output, e->graph->output_count, name, "output");
}

bool onxi_edit_number(onxi_editor *e, onx_str text, int64_t *out)
{
    const bool negative = text.len && text.ptr[0] == '-';
    int64_t value = 0;
    bool good = text.len > (negative ? 1u : 0u) && text.len < 19;
    for (size_t i = negative; i < text.len && good; i++) {
        good = text.ptr[i] >= '0' && text.ptr[i] <= '9';
        value = value * 10 + (text.ptr[i] - '0');
    }
    *out = negative ? -value : value;
    if (!good)
        (void)onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%.*s is not an integer", ONX_ARG(text));
    return good;
}

static onx_status misuse(onxi_editor *e, const char *text)
{
    return onxi_fail(e->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%s: %.*s", text, ONX_ARG(e->edit->a));
}

/* ---- new names ---- */

typedef struct renamer {
    onxi_editor *e;
    onx_str head, tail; /* of the old name, before and after the star */
    bool star;
    onxi_dict taken; /* existing and new names */
    onxi_dict known; /* indexes of `to` */
    onx_bytes *to;
    uint32_t room, count;
} renamer;

static onx_str before(onx_str s, size_t at)
{
    return onx_str_make(s.ptr, at);
}

static onx_str behind(onx_str s, size_t at)
{
    return at ? onx_str_make(s.ptr + at, s.len - at) : s; /* an empty text need not have a place */
}

static onx_status open_renamer(onxi_editor *e, renamer *r)
{
    const onx_str a = e->edit->a, b = e->edit->b;
    const char *star = a.len ? memchr(a.ptr, '*', a.len) : NULL;
    *r = (renamer){ .e = e,
                    .head = a,
                    .star = star != NULL,
                    .taken = onxi_dict_in_arena(e->scratch),
                    .known = onxi_dict_in_arena(e->scratch) };
    if (!a.len)
        return misuse(e, "an old name is missing");
    if (star) {
        r->head = before(a, (size_t)(star - a.ptr));
        r->tail = behind(a, (size_t)(star - a.ptr) + 1);
        if (r->tail.len && memchr(r->tail.ptr, '*', r->tail.len))
            return misuse(e, "a pattern needs exactly one *");
        if (!b.len || !memchr(b.ptr, '*', b.len))
            return misuse(e, "the new name needs a * for the text that matched");
    }
    return ONX_OK;
}

/* Does the name match? Then *out is the new name. */
static bool new_name(renamer *r, onx_str old, onx_str *out)
{
    const onx_str b = r->e->edit->b;
    *out = b;
    if (!r->star)
        return onx_str_equal(old, r->head);
    if (old.len < r->head.len + r->tail.len || !onx_str_equal(before(old, r->head.len), r->head) ||
        !onx_str_equal(behind(old, old.len - r->tail.len), r->tail))
        return false;
    const onx_str middle = before(behind(old, r->head.len), old.len - r->head.len - r->tail.len);
    const size_t at = (size_t)((const char *)memchr(b.ptr, '*', b.len) - b.ptr);
    *out = onxi_arena_printf(r->e->arena, "%.*s%.*s%.*s", ONX_ARG(before(b, at)), ONX_ARG(middle),
                             ONX_ARG(behind(b, at + 1)));
    return true;
}

static onx_status note_name(void *user, onx_bytes *name)
{
    renamer *r = user;
    return onxi_dict_at(&r->taken, onx_view(*name), 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

/* The new name, generated and checked once per old name. `unique`: it must not exist yet. */
static onx_status rename_text(renamer *r, onx_bytes *name, bool unique)
{
    onx_str fresh;
    bool made;
    const onx_str old = onx_view(*name);
    const onxi_dict_entry *entry = onxi_dict_find(&r->known, old);
    if (entry) {
        *name = r->to[entry->value];
        return ONX_OK;
    }
    if (!new_name(r, old, &fresh) || onx_str_equal(fresh, old))
        return ONX_OK;
    if (!onxi_dict_at(&r->taken, fresh, 0, &made) || !(entry = onxi_dict_at(&r->known, old, r->known.count, NULL)) ||
        !ONXI_GROW_IN(r->e->scratch, r->to, r->room, r->known.count))
        return ONX_E_MEMORY;
    if (unique && !made)
        return onxi_fail(r->e->cx, ONX_E_INVALID, ONXI_NOWHERE, "%.*s cannot be renamed to %.*s, which exists already",
                         ONX_ARG(old), ONX_ARG(fresh));
    if (unique && !fresh.len)
        return misuse(r->e, "a new name is missing");
    onxi_tell_change(r->e->options->changed, r->e->options->user, "edit", "rename", old, "becomes %.*s",
                     ONX_ARG(fresh));
    r->count++;
    ONX_TRY(onx_arena_keep(r->e->arena, fresh, &r->to[entry->value]));
    *name = r->to[entry->value];
    return ONX_OK;
}

static onx_status rename_unique(void *user, onx_bytes *name)
{
    return rename_text(user, name, true);
}

static onx_status each_name(onxi_editor *e, onx_status (*value)(void *, onx_bytes *),
                            onx_status (*node)(void *, onx_bytes *), renamer *r)
{
    ONX_TRY(onxi_each_name(e->cx, ONX_KIND_GRAPH, e->graph, value, node, r));
    for (uint32_t i = 0; i < e->model->training_info_count; i++)
        ONX_TRY(onxi_each_name(e->cx, ONX_KIND_TRAINING_INFO, e->model->training_info[i], value, node, r));
    return ONX_OK;
}

static onx_status found(const renamer *r, const char *what)
{
    return r->count ? ONX_OK
                    : onxi_fail(r->e->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no %s %.*s", what,
                                ONX_ARG(r->e->edit->a));
}

static onx_status rename_values(onxi_editor *e)
{
    renamer r;
    ONX_TRY(open_renamer(e, &r));
    ONX_TRY(each_name(e, note_name, NULL, &r));
    ONX_TRY(each_name(e, rename_unique, NULL, &r));
    return found(&r, "value");
}

static onx_status rename_nodes(onxi_editor *e)
{
    renamer r;
    ONX_TRY(open_renamer(e, &r));
    ONX_TRY(each_name(e, NULL, note_name, &r));
    ONX_TRY(each_name(e, NULL, rename_unique, &r));
    return found(&r, "node");
}

/* ---- functions and domains ---- */

static onx_status rename_call(void *user, const onx_visit *at)
{
    renamer *r = user;
    onx_node *node = at->message;
    const onxi_dict_entry *entry =
        at->kind == ONX_KIND_NODE ? onxi_dict_find(&r->known, onx_view(node->op_type)) : NULL;
    if (entry && onxi_dict_find(&r->taken, onx_view(node->domain)))
        node->op_type = r->to[entry->value];
    return ONX_OK;
}

/* Functions of any domain; calls are nodes of that name in a domain that has such a function. */
static onx_status rename_functions(onxi_editor *e)
{
    renamer r;
    ONX_TRY(open_renamer(e, &r));
    for (uint32_t i = 0; i < e->model->functions_count; i++)
        ONX_TRY(note_name(&r, &e->model->functions[i]->name));
    onxi_dict domains = onxi_dict_in_arena(e->scratch);
    for (uint32_t i = 0; i < e->model->functions_count; i++) {
        const onx_bytes old = e->model->functions[i]->name;
        ONX_TRY(rename_unique(&r, &e->model->functions[i]->name));
        if (old.bits != e->model->functions[i]->name.bits &&
            !onxi_dict_at(&domains, onx_view(e->model->functions[i]->domain), 0, NULL))
            return ONX_E_MEMORY;
    }
    r.taken = domains;
    ONX_TRY(onx_message_walk(e->cx, ONX_KIND_MODEL, e->model, rename_call, &r));
    return found(&r, "function");
}

static onx_status rename_domain(void *user, const onx_visit *at)
{
    renamer *r = user;
    switch ((int)at->kind) {
    case ONX_KIND_NODE: {
        onx_node *node = at->message;
        ONX_TRY(rename_text(r, &node->domain, false));
        node->has |= onx_view(node->domain).len ? onx_node_has_domain : 0;
        return ONX_OK;
    }
    case ONX_KIND_FUNCTION:
        return rename_text(r, &((onx_function *)at->message)->domain, false);
    case ONX_KIND_OPERATOR_SET_ID:
        return rename_text(r, &((onx_operator_set_id *)at->message)->domain, false);
    case ONX_KIND_TYPE_OPAQUE:
        return rename_text(r, &((onx_type_opaque *)at->message)->domain, false);
    default:
        return ONX_OK;
    }
}

/* A domain that is now imported twice with the same version is imported once. */
static onx_status join_imports(onxi_editor *e, onx_operator_set_id **list, uint32_t *count)
{
    onxi_dict seen = onxi_dict_in_arena(e->scratch);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        bool made;
        const onxi_dict_entry *entry = onxi_dict_at(&seen, onxi_domain_plain(onx_view(list[i]->domain)), kept, &made);
        if (!entry)
            return ONX_E_MEMORY;
        if (made)
            list[kept++] = list[i];
        else if (list[entry->value]->version != list[i]->version)
            return onxi_fail(e->cx, ONX_E_INVALID, ONXI_NOWHERE, "domain %.*s is already imported with another version",
                             ONX_ARG(e->edit->b));
    }
    *count = kept;
    return ONX_OK;
}

static onx_status rename_domains(onxi_editor *e)
{
    renamer r;
    ONX_TRY(open_renamer(e, &r));
    ONX_TRY(onx_message_walk(e->cx, ONX_KIND_MODEL, e->model, rename_domain, &r));
    ONX_TRY(join_imports(e, e->model->opset_import, &e->model->opset_import_count));
    for (uint32_t i = 0; i < e->model->functions_count; i++)
        ONX_TRY(join_imports(e, e->model->functions[i]->opset_import, &e->model->functions[i]->opset_import_count));
    return found(&r, "domain");
}

/* ---- dimensions ---- */

static bool is_symbol_byte(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

/* A dimension may be an expression, in which each symbol is renamed. */
static onx_status rename_param(renamer *r, onx_bytes *param)
{
    const onx_str old = onx_view(*param);
    onx_str fresh, out = { "", 0 };
    const uint32_t before_it = r->count;
    ONX_TRY(rename_text(r, param, false));
    if (r->count != before_it || onxi_dict_find(&r->known, old) || r->star)
        return ONX_OK;
    bool any = false;
    for (size_t i = 0, end; i < old.len; i = end) {
        end = i + 1;
        if (is_symbol_byte(old.ptr[i]))
            while (end < old.len && is_symbol_byte(old.ptr[end]))
                end++;
        const onx_str part = onx_str_make(old.ptr + i, end - i);
        const bool match = new_name(r, part, &fresh);
        any |= match;
        out = onxi_arena_printf(r->e->arena, "%.*s%.*s", ONX_ARG(out), ONX_ARG(match ? fresh : part));
        if (!out.len)
            return ONX_E_MEMORY;
    }
    r->count += any;
    return any ? onx_arena_refer(r->e->arena, out, param) : ONX_OK;
}

static bool is_digits(onx_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return s.len > 0 && s.len < 19;
}

static onx_status rename_dim(void *user, const onx_visit *at)
{
    renamer *r = user;
    onx_dimension *d = at->message;
    onx_simple_sharded_dim *s = at->message;
    if (at->kind == ONX_KIND_SIMPLE_SHARDED_DIM && ONX_HAS(simple_sharded_dim, s, dim_param))
        return rename_param(r, &s->dim_param);
    if (at->kind != ONX_KIND_DIMENSION || !ONX_HAS(dimension, d, dim_param))
        return ONX_OK;
    ONX_TRY(rename_param(r, &d->dim_param));
    const onx_str now = onx_view(d->dim_param);
    if (!is_digits(now))
        return ONX_OK;
    int64_t size = 0;
    for (size_t i = 0; i < now.len; i++)
        size = size * 10 + (now.ptr[i] - '0');
    ONX_CLEAR(dimension, d, dim_param);
    ONX_SET(dimension, d, dim_value, size);
    return ONX_OK;
}

static onx_status rename_dims(onxi_editor *e)
{
    renamer r;
    ONX_TRY(open_renamer(e, &r));
    ONX_TRY(onx_message_walk(e->cx, ONX_KIND_MODEL, e->model, rename_dim, &r));
    return found(&r, "dimension");
}

/* ---- declared types ---- */

static onx_status set_type(onxi_editor *e)
{
    const onx_str name = e->edit->a;
    onx_value_info **lists[] = { e->graph->input, e->graph->output, e->graph->value_info };
    const uint32_t counts[] = { e->graph->input_count, e->graph->output_count, e->graph->value_info_count };
    onxi_cutter c;
    onx_name_id id;
    void *type;
    bool done = false;
    if (!e->edit->type)
        return misuse(e, "a type is missing");
    ONX_TRY(onx_message_copy(e->arena, ONX_KIND_TYPE, e->edit->type, &type));
    for (int l = 0; l < 3; l++)
        for (uint32_t i = 0; i < counts[l]; i++)
            if (onx_str_equal(onx_view(lists[l][i]->name), name)) {
                ONX_SET(value_info, lists[l][i], type, type);
                done = true;
            }
    if (!done) {
        onx_status status = onxi_cutter_open(&c, e->doc, e->scratch);
        if (status == ONX_OK)
            status = onxi_cutter_find(&c, name, &id);
        onxi_cutter_close(&c);
        ONX_TRY(status);
        onx_value_info *info = ONX_ADD(e->arena, e->graph, value_info, VALUE_INFO);
        if (!info || onx_arena_keep(e->arena, name, &info->name) != ONX_OK)
            return ONX_E_MEMORY;
        info->has |= onx_value_info_has_name;
        ONX_SET(value_info, info, type, type);
    }
    ONXI_TELL_EDIT(e, "type", "has a new declared type");
    return ONX_OK;
}

/* ---- inputs and outputs ---- */

static onx_status split_names(onxi_editor *e, onx_str text, onx_str **list, uint32_t *count)
{
    uint32_t room = 0;
    *list = NULL;
    *count = 0;
    for (size_t i = 0, from = 0; i <= text.len; i++) {
        if (i < text.len && text.ptr[i] != ',')
            continue;
        if (i > from) {
            if (!ONXI_GROW_IN(e->scratch, *list, room, (uint64_t)*count + 1))
                return ONX_E_MEMORY;
            (*list)[(*count)++] = onx_str_make(text.ptr + from, i - from);
        }
        from = i + 1;
    }
    return ONX_OK;
}

/* Reduces the graph to the part between those inputs and outputs; none: the existing ones. */
static onx_status keep_between(onxi_editor *e, const onx_str *inputs, uint32_t input_count, const onx_str *outputs,
                               uint32_t output_count)
{
    onxi_cutter c;
    onx_model *made;
    const onx_extract_options options = { .struct_size = sizeof options,
                                          .input = inputs,
                                          .input_count = input_count,
                                          .output = outputs,
                                          .output_count = output_count };
    onx_status status = onxi_cutter_open(&c, e->doc, e->scratch);
    if (status == ONX_OK)
        status = onxi_extract_between(&c, e->arena, &options, &made);
    onxi_cutter_close(&c);
    ONX_TRY(status);
    *e->graph = *made->graph;
    if (!e->model->training_info_count) { /* training graphs may call functions */
        e->model->functions = made->functions;
        e->model->functions_count = made->functions_count;
    }
    return ONX_OK;
}

static onx_status names_of_inputs(onxi_editor *e, onx_str **out)
{
    if (!(*out = ONXI_ARRAY(e->scratch, onx_str, (size_t)e->graph->input_count + 1)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < e->graph->input_count; i++)
        (*out)[i] = onx_view(e->graph->input[i]->name);
    return ONX_OK;
}

static onx_status set_ends(onxi_editor *e)
{
    onx_str *list, *inputs;
    uint32_t count;
    ONX_TRY(split_names(e, e->edit->a, &list, &count));
    ONX_TRY(names_of_inputs(e, &inputs));
    if (!count)
        return misuse(e, "names are missing");
    ONXI_TELL_EDIT(e, e->edit->kind == ONX_EDIT_SET_INPUTS ? "inputs" : "outputs", "replaced: now there are %u", count);
    return e->edit->kind == ONX_EDIT_SET_INPUTS ? keep_between(e, list, count, NULL, 0)
                                                : keep_between(e, inputs, e->graph->input_count, list, count);
}

/* The declaration of the output is that of the part of the model that computes only this output. Nothing else changes:
 * what no output needs may be what the next one to add needs. */
static onx_status add_output(onxi_editor *e)
{
    onx_str *inputs;
    onxi_cutter c;
    onx_model *made = NULL;
    for (uint32_t i = 0; i < e->graph->output_count; i++)
        if (onx_str_equal(onx_view(e->graph->output[i]->name), e->edit->a))
            return ONX_OK;
    ONX_TRY(names_of_inputs(e, &inputs));
    const onx_extract_options options = { .struct_size = sizeof options,
                                          .input = inputs,
                                          .input_count = e->graph->input_count,
                                          .output = &e->edit->a,
                                          .output_count = 1 };
    onx_status status = onxi_cutter_open(&c, e->doc, e->scratch);
    if (status == ONX_OK)
        status = onxi_extract_between(&c, e->arena, &options, &made);
    onxi_cutter_close(&c);
    ONX_TRY(status);
    onx_value_info **place = onx_list_insert(e->arena, (void **)(void *)&e->graph->output, &e->graph->output_count,
                                             e->graph->output_count, sizeof *place);
    if (!place)
        return ONX_E_MEMORY;
    *place = made->graph->output[0];
    ONXI_TELL_EDIT(e, "outputs", "becomes an output");
    return ONX_OK;
}

static onx_status drop_output(onxi_editor *e)
{
    onx_str *list = ONXI_ARRAY(e->scratch, onx_str, (size_t)e->graph->output_count + 2), *inputs;
    uint32_t count = 0;
    if (!list)
        return ONX_E_MEMORY;
    if (!onxi_edit_output(e, e->edit->a))
        return ONX_E_NOT_FOUND;
    for (uint32_t i = 0; i < e->graph->output_count; i++)
        if (!onx_str_equal(onx_view(e->graph->output[i]->name), e->edit->a))
            list[count++] = onx_view(e->graph->output[i]->name);
    if (!count)
        return misuse(e, "the model has no other output");
    ONX_TRY(names_of_inputs(e, &inputs));
    ONXI_TELL_EDIT(e, "outputs", "is not an output any more");
    return keep_between(e, inputs, e->graph->input_count, list, count);
}

static onx_status drop_input(onxi_editor *e)
{
    onx_index *index;
    uint32_t uses, kept = 0;
    if (!onxi_edit_input(e, e->edit->a))
        return ONX_E_NOT_FOUND;
    ONX_TRY(onx_index_new(e->cx, e->graph, &index));
    const onx_name_id id = onx_index_find(index, e->edit->a);
    (void)onx_index_uses(index, id, &uses);
    bool initialized = false;
    for (uint32_t i = 0; i < e->graph->initializer_count; i++)
        initialized |= onx_str_equal(onx_view(e->graph->initializer[i]->name), e->edit->a);
    const bool needed = !initialized && (uses || onx_index_is_output(index, id));
    onx_index_free(index);
    if (needed)
        return onxi_fail(e->cx, ONX_E_INVALID, ONXI_NOWHERE, "input %.*s is used, and has no initializer",
                         ONX_ARG(e->edit->a));
    for (uint32_t i = 0; i < e->graph->input_count; i++)
        if (!onx_str_equal(onx_view(e->graph->input[i]->name), e->edit->a))
            e->graph->input[kept++] = e->graph->input[i];
    e->graph->input_count = kept;
    ONXI_TELL_EDIT(e, "inputs", "is not an input any more");
    return ONX_OK;
}

/* ---- weights and metadata ---- */

static onx_status set_initializer(onxi_editor *e)
{
    const onx_tensor *from = e->edit->tensor;
    if (!from)
        return misuse(e, "a tensor is missing");
    for (uint32_t i = 0; i < e->graph->initializer_count; i++) {
        onx_tensor *old = e->graph->initializer[i], *copy;
        if (!onx_str_equal(onx_view(old->name), e->edit->a))
            continue;
        if (old->data_type != from->data_type || old->dims_count != from->dims_count ||
            !onxi_same_dims(old->dims, from->dims, old->dims_count))
            return onxi_fail(e->cx, ONX_E_INVALID, ONXI_NOWHERE,
                             "the tensor for %.*s has another element type or other dimensions", ONX_ARG(e->edit->a));
        if (!(copy = ONXI_NEW(e->arena, onx_tensor)))
            return ONX_E_MEMORY;
        *copy = *from;
        copy->doc_string = old->doc_string;
        copy->metadata_props = old->metadata_props;
        copy->metadata_props_count = old->metadata_props_count;
        copy->has = (from->has & ~(uint32_t)onx_tensor_has_doc_string) | (old->has & onx_tensor_has_doc_string);
        ONX_SET(tensor, copy, name, old->name);
        e->graph->initializer[i] = copy;
        ONXI_TELL_EDIT(e, "initializer", "has new elements");
        return ONX_OK;
    }
    return onxi_fail(e->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no initializer %.*s", ONX_ARG(e->edit->a));
}

static onx_status set_metadata(onxi_editor *e)
{
    onx_model *m = e->model;
    uint32_t at = 0;
    while (at < m->metadata_props_count && !onx_str_equal(onx_view(m->metadata_props[at]->key), e->edit->a))
        at++;
    if (!e->edit->a.len)
        return misuse(e, "a key is missing");
    ONXI_TELL_EDIT(e, "metadata", e->edit->b.len ? "is \"%.*s\"" : "goes%.*s", ONX_ARG(e->edit->b));
    if (!e->edit->b.len) {
        if (at < m->metadata_props_count)
            onx_list_remove((void *)m->metadata_props, &m->metadata_props_count, at, sizeof *m->metadata_props);
        return ONX_OK;
    }
    onx_string_string_entry *entry = at < m->metadata_props_count
                                         ? m->metadata_props[at]
                                         : ONX_ADD(e->arena, m, metadata_props, STRING_STRING_ENTRY);
    if (!entry)
        return ONX_E_MEMORY;
    entry->has = onx_string_string_entry_has_key | onx_string_string_entry_has_value;
    ONX_TRY(onx_arena_keep(e->arena, e->edit->a, &entry->key));
    return onx_arena_keep(e->arena, e->edit->b, &entry->value);
}

static onx_status set_field(onxi_editor *e)
{
    onx_model *m = e->model;
    const struct {
        const char *name;
        onx_bytes *text;
        uint32_t *has;
        uint32_t bit;
    } texts[] = { { "producer_name", &m->producer_name, &m->has, onx_model_has_producer_name },
                  { "producer_version", &m->producer_version, &m->has, onx_model_has_producer_version },
                  { "domain", &m->domain, &m->has, onx_model_has_domain },
                  { "doc_string", &m->doc_string, &m->has, onx_model_has_doc_string },
                  { "graph_name", &e->graph->name, &e->graph->has, onx_graph_has_name } };
    int64_t version;
    ONXI_TELL_EDIT(e, "field", "is \"%.*s\"", ONX_ARG(e->edit->b));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (onx_str_is(e->edit->a, texts[i].name)) {
            *texts[i].has |= texts[i].bit;
            return onx_arena_keep(e->arena, e->edit->b, texts[i].text);
        }
    if (!onx_str_is(e->edit->a, "model_version"))
        return misuse(e, "no such field");
    if (!onxi_edit_number(e, e->edit->b, &version))
        return ONX_E_MISUSE;
    ONX_SET(model, m, model_version, version);
    return ONX_OK;
}

/* ---- stripping ---- */

/* Removes the field of that name in every message. */
static onx_status strip_field(void *user, const onx_visit *at)
{
    const char *name = user;
    const onxi_message_table *table = onxi_messages[at->kind];
    for (uint32_t i = 0; i < table->field_count; i++) {
        const onxi_field *field = &table->fields[i];
        if (strcmp(field->name, name) != 0 || !onxi_field_count(table, field, at->message))
            continue;
        const onxi_place place = onxi_field_place(table, field, at->message);
        if (field->flags & ONXI_REPEATED)
            *(uint32_t *)place.count = 0;
        else {
            *(onx_bytes *)place.value = (onx_bytes){ 0 };
            *(uint32_t *)at->message &= ~field->has;
        }
    }
    return ONX_OK;
}

static onx_status find_training(void *user, const onx_visit *at)
{
    bool *used = user;
    *used |= at->kind == ONX_KIND_NODE &&
             onx_str_is(onx_view(((const onx_node *)at->message)->domain), ONXI_TRAINING_DOMAIN);
    return ONX_OK;
}

/* Training information, and imports of its operators if no other node needs them. */
onx_status onxi_strip_training(onx_ctx *cx, onx_model *model)
{
    bool used = false;
    model->training_info_count = 0;
    ONX_TRY(onx_message_walk(cx, ONX_KIND_MODEL, model, find_training, &used));
    for (uint32_t i = model->opset_import_count; i-- > 0 && !used;)
        if (onx_str_is(onx_view(model->opset_import[i]->domain), ONXI_TRAINING_DOMAIN))
            onx_list_remove(model->opset_import, &model->opset_import_count, i, sizeof *model->opset_import);
    return ONX_OK;
}

static onx_status strip(onxi_editor *e)
{
    onx_str *inputs;
    const onx_str what = e->edit->a;
    ONXI_TELL_EDIT(e, "strip", "goes");
    if (onx_str_is(what, "doc"))
        return onx_message_walk(e->cx, ONX_KIND_MODEL, e->model, strip_field, (void *)(uintptr_t) "doc_string");
    if (onx_str_is(what, "metadata"))
        return onx_message_walk(e->cx, ONX_KIND_MODEL, e->model, strip_field, (void *)(uintptr_t) "metadata_props");
    if (onx_str_is(what, "types"))
        return onx_message_walk(e->cx, ONX_KIND_MODEL, e->model, strip_field, (void *)(uintptr_t) "value_info");
    if (onx_str_is(what, "training"))
        return onxi_strip_training(e->cx, e->model);
    if (!onx_str_is(what, "unused"))
        return misuse(e, "doc, metadata, types, training and unused can be stripped");
    ONX_TRY(names_of_inputs(e, &inputs));
    return keep_between(e, inputs, e->graph->input_count, NULL, 0);
}

/* ---- performing all edits ---- */

static onx_status (*const edits[ONX_EDIT_COUNT])(onxi_editor *e) = {
    [ONX_EDIT_RENAME_VALUE] = rename_values,
    [ONX_EDIT_RENAME_NODE] = rename_nodes,
    [ONX_EDIT_RENAME_DIM] = rename_dims,
    [ONX_EDIT_RENAME_DOMAIN] = rename_domains,
    [ONX_EDIT_RENAME_FUNCTION] = rename_functions,
    [ONX_EDIT_TYPE] = set_type,
    [ONX_EDIT_SET_INPUTS] = set_ends,
    [ONX_EDIT_SET_OUTPUTS] = set_ends,
    [ONX_EDIT_ADD_OUTPUT] = add_output,
    [ONX_EDIT_DROP_OUTPUT] = drop_output,
    [ONX_EDIT_DROP_INPUT] = drop_input,
    [ONX_EDIT_INITIALIZER] = set_initializer,
    [ONX_EDIT_METADATA] = set_metadata,
    [ONX_EDIT_FIELD] = set_field,
    [ONX_EDIT_STRIP] = strip,
    [ONX_EDIT_BATCH] = onxi_edit_batch,
    [ONX_EDIT_NHWC] = onxi_edit_nhwc,
    [ONX_EDIT_NORMALIZE] = onxi_edit_normalize,
    [ONX_EDIT_RESIZE] = onxi_edit_resize,
    [ONX_EDIT_ARGMAX] = onxi_edit_argmax,
    [ONX_EDIT_SOFTMAX] = onxi_edit_softmax,
};

static onx_status do_edit(onx_ctx *cx, onx_doc *doc, const onx_edit_options *options, const onx_edit *edit)
{
    onx_arena *scratch;
    onx_model *model = onx_doc_model(doc);
    if (edit->kind < 0 || edit->kind >= ONX_EDIT_COUNT)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%d is not an edit", edit->kind);
    ONX_TRY(onx_arena_new(cx, &scratch));
    onxi_editor e = { .cx = cx,
                      .doc = doc,
                      .arena = onx_doc_arena(doc),
                      .scratch = scratch,
                      .model = model,
                      .graph = model->graph,
                      .edit = edit,
                      .options = options,
                      .names = { .scratch = scratch, .arena = onx_doc_arena(doc), .model = model } };
    const onx_status status = edits[edit->kind](&e);
    onx_arena_free(scratch);
    return status;
}

static onx_status edit_model(onx_ctx *cx, onx_doc *doc, const onx_edit_options *options)
{
    const onx_model *model = onx_doc_model(doc);
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    if (!model->graph)
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the model has no graph");
    ONX_TRY(onxi_doc_warn_of_cycle(doc, ONXI_CYCLE_STAYS));
    for (uint32_t i = 0; i < options->count; i++)
        ONX_TRY(do_edit(cx, doc, options, &options->edit[i]));
    return ONX_OK;
}

onx_status onx_edit_model(onx_ctx *cx, onx_doc *doc, const onx_edit_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_OPTIONS(cx, onx_edit_options, own, options);
    ONXI_NEED(cx, own.edit || !own.count);
    ONXI_TRANSFORM(cx, doc, edit_model(cx, doc, &own));
}
