/* transform_grad_emit.c - creates nodes from the texts of gradient rules: expands macros, shares constants of the
 * required type, and replaces nodes that would do nothing by their inputs. */
#include "transform/transform_grad.h"

#include <stdio.h>

/* ---- names ---- */

onx_status onxi_grad_name(onxi_grad *g, onx_bytes base, const char *part, onx_bytes *name)
{
    return onxi_names_make(&g->names, onx_view(base), onx_str_of(part), name);
}

onx_status onxi_grad_out_open(onxi_grad *g, onxi_grad_out *out)
{
    *out = (onxi_grad_out){ .aliases = onxi_dict_in_arena(g->scratch),
                            .constants = onxi_dict_in_arena(g->scratch),
                            .made = onxi_dict_in_arena(g->scratch) };
    return ONX_OK;
}

onx_bytes onxi_grad_resolve(const onxi_grad_out *out, onx_bytes name)
{
    const onxi_dict_entry *entry = onx_view(name).len ? onxi_dict_find(&out->aliases, onx_view(name)) : NULL;
    return entry ? out->same[entry->value] : name;
}

static onx_status alias(onxi_grad *g, onxi_grad_out *out, onx_bytes name, onx_bytes same)
{
    onxi_dict_entry *entry = onxi_dict_at(&out->aliases, onx_view(name), out->aliases.count, NULL);
    if (!entry || !ONXI_GROW_IN(g->scratch, out->same, out->same_room, out->aliases.count))
        return ONX_E_MEMORY;
    out->same[entry->value] = same;
    return ONX_OK;
}

/* ---- nodes ---- */

onx_status onxi_grad_spend(onxi_grad *g, uint64_t steps)
{
    if (steps > g->left)
        return onxi_fail(g->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "the gradients of this model need too many nodes: each higher order multiplies them");
    g->left -= steps;
    return ONX_OK;
}

static onx_status count_node(void *user, const onx_visit *at)
{
    *(uint64_t *)user += at->kind == ONX_KIND_NODE;
    return ONX_OK;
}

onx_status onxi_grad_copy(onxi_grad *g, const onx_node *node, onx_node **out)
{
    void *copy;
    uint64_t count = 0;
    ONX_TRY(onx_message_walk(g->cx, ONX_KIND_NODE, (onx_node *)(uintptr_t)node, count_node, &count));
    ONX_TRY(onxi_grad_spend(g, count));
    ONX_TRY(onx_message_copy(g->arena, ONX_KIND_NODE, node, &copy));
    *out = copy;
    return ONX_OK;
}

onx_status onxi_grad_push(onxi_grad *g, onxi_grad_out *out, onx_node *node)
{
    if (!node)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_grad_spend(g, 1));
    return onxi_node_list_add(g->scratch, &out->nodes, node);
}

static onx_bytes *own_names(onx_arena *arena, const onx_bytes *from, uint32_t count)
{
    onx_bytes *to = onxi_arena_array(arena, (size_t)onxi_list_room(count), sizeof *to);
    if (to && count)
        memcpy(to, from, count * sizeof *to);
    return to;
}

onx_node *onxi_grad_node_new(onxi_grad *g, const char *op, const onx_bytes *in, uint32_t in_count, const onx_bytes *out,
                             uint32_t out_count)
{
    onx_node *node = onx_message_new(g->arena, ONX_KIND_NODE);
    if (!node || onx_arena_keep(g->arena, onx_str_of(op), &node->op_type) != ONX_OK ||
        !(node->input = own_names(g->arena, in, in_count)) || !(node->output = own_names(g->arena, out, out_count)))
        return NULL;
    node->has |= onx_node_has_op_type;
    node->input_count = in_count;
    node->output_count = out_count;
    return node;
}

onx_status onxi_grad_add(onxi_grad *g, onxi_grad_out *out, const char *op, onx_bytes from, onx_bytes to)
{
    return onxi_grad_push(g, out, onxi_grad_node_new(g, op, &from, 1, &to, 1));
}

static onx_status need(void *user, onx_bytes *name)
{
    return onxi_dict_at(user, onx_view(*name), 1, NULL) ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_grad_captured(onxi_grad *g, const onx_node *node, onxi_dict *names)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(onxi_graph_each_name(g->cx, a->g, need, names));
        for (uint32_t k = 0; a->slot == ONX_SLOT_GRAPHS && k < a->count; k++)
            ONX_TRY(onxi_graph_each_name(g->cx, a->graphs[k], need, names));
    }
    return ONX_OK;
}

onx_status onxi_grad_prune(onxi_grad *g, onx_node **nodes, uint32_t *count, const onx_bytes *needed,
                           uint32_t needed_count)
{
    onxi_dict names = onxi_dict_in_arena(g->scratch);
    uint32_t kept = *count;
    for (uint32_t i = 0; i < needed_count; i++)
        if (!onxi_dict_at(&names, onx_view(needed[i]), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = *count; i-- > 0;) {
        onx_node *node = nodes[i];
        bool used = false;
        for (uint32_t k = 0; k < node->output_count && !used; k++)
            used = onx_view(node->output[k]).len && onxi_dict_find(&names, onx_view(node->output[k])) != NULL;
        if (!used)
            continue;
        for (uint32_t k = 0; k < node->input_count; k++)
            ONX_TRY(need(&names, &node->input[k]));
        ONX_TRY(onxi_grad_captured(g, node, &names));
        nodes[--kept] = node;
    }
    memmove(nodes, nodes + kept, (*count - kept) * sizeof *nodes);
    *count -= kept;
    return ONX_OK;
}

/* ---- constants ---- */

/* The single number in a constant of a text; false for other constants. */
static bool number_of(onx_doc *doc, const onx_attribute *a, bool *list, double *value)
{
    *list = false;
    switch (a->slot) {
    case ONX_SLOT_F:
        *value = (double)a->f;
        return true;
    case ONX_SLOT_I:
        *value = (double)a->i;
        return true;
    case ONX_SLOT_T:
        *list = a->t->dims_count != 0;
        return a->t->dims_count <= 1 && (!a->t->dims_count || a->t->dims[0] == 1) && a->t->data_type == ONX_DOUBLE &&
               onx_tensor_get_f64(doc, a->t, 0, 1, value) == ONX_OK;
    default:
        return false;
    }
}

static onx_status remember(onxi_grad_node *n, onx_bytes name, const onx_attribute *a)
{
    onxi_grad_out *out = n->out;
    onxi_dict_entry *entry = onxi_dict_at(&out->made, onx_view(name), out->made.count, NULL);
    if (!entry || !ONXI_GROW_IN(n->g->scratch, out->constant_attributes, out->made_room, out->made.count))
        return ONX_E_MEMORY;
    out->constant_attributes[entry->value] = a;
    return ONX_OK;
}

/* A text key for a constant, so that equal constants share one node. Empty for constants that are rarely repeated. */
static onx_str key_of(onxi_grad *g, const onx_attribute *a)
{
    bool list;
    double value;
    onx_str key = { 0 };
    if (a->slot == ONX_SLOT_INTS && a->count <= 8) {
        key = onxi_arena_printf(g->scratch, "ints");
        for (uint32_t i = 0; i < a->count; i++)
            key = onxi_arena_printf(g->scratch, "%.*s,%lld", ONX_ARG(key), (long long)a->ints[i]);
    } else if (number_of(g->doc, a, &list, &value)) {
        key = onxi_arena_printf(g->scratch, "%u:%d:%a", a->slot, list, value);
    }
    return key;
}

static onx_status emit_constant(onxi_grad_node *n, onx_node *node, onx_str key)
{
    onxi_grad_out *out = n->out;
    bool made = true;
    if (key.len) {
        onxi_dict_entry *entry = onxi_dict_at(&out->constants, key, out->constants.count, &made);
        if (!entry || !ONXI_GROW_IN(n->g->scratch, out->constant_names, out->constant_room, out->constants.count))
            return ONX_E_MEMORY;
        if (!made)
            return alias(n->g, out, node->output[0], out->constant_names[entry->value]);
        out->constant_names[entry->value] = node->output[0];
    }
    return onxi_grad_push(n->g, out, node);
}

/* CastLike with a known type becomes a Cast; of a number it becomes the number in that type. */
static onx_status emit_cast(onxi_grad_node *n, onx_node *node)
{
    onxi_grad *g = n->g;
    const int dtype = onxi_type_dtype(onxi_values_type(&g->values, n->s.scope, onx_view(node->input[1])));
    const onxi_dict_entry *made = onxi_dict_find(&n->out->made, onx_view(node->input[0]));
    bool list;
    double value;
    if (dtype == ONX_UNDEFINED)
        return onxi_grad_push(g, n->out, node);
    if (made && number_of(g->doc, n->out->constant_attributes[made->value], &list, &value)) {
        onx_tensor *tensor = onxi_subject_number(&n->s, dtype, list, value);
        onx_node *constant = onxi_grad_node_new(g, "Constant", NULL, 0, node->output, 1);
        if (!tensor || !constant || !onx_node_add_tensor(g->arena, constant, "value", tensor))
            return ONX_E_MEMORY;
        return emit_constant(n, constant, onxi_arena_printf(g->scratch, "%d=%d:%a", dtype, list, value));
    }
    if (onxi_type_dtype(onxi_values_type(&g->values, n->s.scope, onx_view(node->input[0]))) == dtype)
        return alias(g, n->out, node->output[0], node->input[0]);
    onx_node *cast = onxi_grad_node_new(g, "Cast", node->input, 1, node->output, 1);
    return cast && onx_node_add_int(g->arena, cast, "to", dtype) ? onxi_grad_push(g, n->out, cast) : ONX_E_MEMORY;
}

/* ---- texts ---- */

static onx_status function_of(onxi_grad *g, onx_str text, const onx_function **out)
{
    bool made;
    onxi_dict_entry *entry = onxi_dict_at(&g->texts, text, g->texts.count, &made);
    if (!entry || !ONXI_GROW_IN(g->scratch, g->functions, g->function_room, g->texts.count))
        return ONX_E_MEMORY;
    const uint32_t at = entry->value;
    if (made) {
        onx_doc *doc;
        g->functions[at] = NULL;
        ONX_TRY(onxi_function_of_text(g->cx, text, &doc));
        g->functions[at] = onx_doc_root(doc, ONX_KIND_FUNCTION);
        onx_arena_adopt(g->arena, doc->arena);
    }
    *out = g->functions[at];
    return *out ? ONX_OK : ONX_E_MEMORY;
}

static const onx_attribute *argument(void *user, onx_str name, int32_t type)
{
    onxi_grad_node *n = user;
    (void)type;
    for (uint32_t i = 0; i < n->s.prepared_count; i++)
        if (onx_str_is(name, n->s.prepared_names[i]))
            return n->s.prepared[i];
    const onxi_attr *attr = n->s.row ? onxi_schema_attr(n->s.row, name) : NULL;
    if (attr)
        return onxi_subject_attribute(&n->s, attr->name);
    for (uint32_t i = 0; i < n->s.node->attribute_count; i++)
        if (onx_str_equal(onx_view(n->s.node->attribute[i]->name), name))
            return n->s.node->attribute[i];
    return NULL;
}

static onx_status expand(onxi_grad_node *n, const onx_function *f, const onx_bytes *in, uint32_t in_count,
                         const onx_bytes *out, uint32_t out_count, onx_bytes base, onx_node ***nodes)
{
    onxi_expansion x = { .arena = n->g->arena,
                         .scratch = n->g->scratch,
                         .names = &n->g->names,
                         .function = f,
                         .inputs = in,
                         .outputs = out,
                         .input_count = in_count,
                         .output_count = out_count,
                         .base = onx_view(base),
                         .argument = argument,
                         .user = n,
                         .omit = true };
    ONX_TRY(onxi_expand(&x));
    *nodes = x.nodes;
    return ONX_OK;
}

static onx_status emit(onxi_grad_node *n, onx_node *node);

static onx_status emit_all(onxi_grad_node *n, const onx_function *f, onx_node **nodes)
{
    for (uint32_t i = 0; i < f->node_count; i++)
        if (nodes[i])
            ONX_TRY(emit(n, nodes[i]));
    return ONX_OK;
}

/* Takes the first row of a macro whose condition holds. */
static onx_status emit_macro(onxi_grad_node *n, onx_node *node)
{
    const onx_str name = onx_view(node->op_type);
    for (const onxi_grad_rule *rule = onxi_grad_rules; rule->kind == ONXI_GRAD_MACRO; rule++) {
        const onx_function *f;
        onx_node **nodes;
        if (strncmp(rule->head, name.ptr, name.len) != 0 || rule->head[name.len] != ' ')
            continue;
        onxi_grad_node macro = {
            .s = { .values = &n->g->values, .arena = n->g->arena, .scope = n->s.scope, .node = node },
            .g = n->g,
            .out = n->out
        };
        if (rule->when && !rule->when(&macro))
            continue;
        ONX_TRY(function_of(n->g,
                            onxi_arena_printf(n->g->scratch, "<domain: \"grad\", opset_import: [\"\": 18]> %s { %s }",
                                              rule->head, rule->text),
                            &f));
        ONX_TRY(expand(&macro, f, node->input, node->input_count, node->output, node->output_count, node->output[0],
                       &nodes));
        return emit_all(&macro, f, nodes);
    }
    return onxi_fail(n->g->cx, ONX_E_INVALID, ONXI_NOWHERE, "no gradient rule grad.%.*s suits", ONX_ARG(name));
}

static onx_status resolve(void *user, onx_bytes *name)
{
    *name = onxi_grad_resolve(user, *name);
    return ONX_OK;
}

static onx_status emit(onxi_grad_node *n, onx_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        node->input[i] = onxi_grad_resolve(n->out, node->input[i]);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g)
            ONX_TRY(onxi_graph_each_name(n->g->cx, node->attribute[i]->g, resolve, n->out));
    if (onx_str_is(onx_view(node->domain), "grad"))
        return emit_macro(n, node);
    if (onxi_node_is(node, ONXI_ID_Identity))
        return alias(n->g, n->out, node->output[0], node->input[0]);
    if (onxi_node_is(node, ONXI_ID_CastLike))
        return emit_cast(n, node);
    if (onxi_node_is(node, ONXI_ID_Constant) && node->attribute_count == 1) {
        ONX_TRY(remember(n, node->output[0], node->attribute[0]));
        return emit_constant(n, node, key_of(n->g, node->attribute[0]));
    }
    return onxi_grad_push(n->g, n->out, node);
}

onx_status onxi_grad_put(onxi_grad_node *n, const char *inputs, const char *outputs, const char *text,
                         const onx_bytes *in, uint32_t in_count, const onx_bytes *out, uint32_t out_count)
{
    const onx_function *f;
    onx_node **nodes;
    ONX_TRY(function_of(n->g,
                        onxi_arena_printf(n->g->scratch,
                                          "<domain: \"grad\", opset_import: [\"\": 18]> F (%s) => (%s) { %s }", inputs,
                                          outputs, text),
                        &f));
    ONX_TRY(expand(n, f, in, in_count, out, out_count, out[0], &nodes));
    return emit_all(n, f, nodes);
}

/* ---- rules ---- */

/* The names in a header "X W => Y", or those of the ports of the row. */
typedef struct ports {
    onx_str *names; /* inputs, then outputs */
    uint32_t inputs, outputs;
} ports;

static onx_status read_ports(onxi_grad_node *n, onx_str head, ports *p)
{
    const onx_node *node = n->s.node;
    const uint32_t most = 64 + node->input_count + node->output_count + (uint32_t)(head.len / 2);
    *p = (ports){ .names = ONXI_ARRAY(n->g->scratch, onx_str, most) };
    if (!p->names)
        return ONX_E_MEMORY;
    if (!head.len) {
        for (const onxi_port *port = n->s.row->inputs; port && port->name; port++)
            p->names[p->inputs++] = onx_str_of(port->name);
        for (const onxi_port *port = n->s.row->outputs; port && port->name; port++)
            p->names[p->inputs + p->outputs++] = onx_str_of(port->name);
        return ONX_OK;
    }
    bool behind = false;
    for (size_t at = 0; at < head.len;) {
        size_t end = at;
        while (end < head.len && head.ptr[end] != ' ')
            end++;
        const onx_str word = onx_str_make(head.ptr + at, end - at);
        at = end + 1;
        if (!word.len)
            continue;
        if (onx_str_is(word, "=>"))
            behind = true;
        else
            p->names[p->inputs + p->outputs] = word, *(behind ? &p->outputs : &p->inputs) += 1;
    }
    return ONX_OK;
}

static onx_str text_of_function(onx_arena *arena, const ports *p, bool gradient, onx_str body)
{
    onxi_grad_writer w = { .arena = arena };
    onxi_grad_say(&w, "<domain: \"grad\", opset_import: [\"\": 18]> G (");
    const uint32_t count = gradient ? p->inputs + p->outputs : p->inputs;
    for (uint32_t i = 0; i < count; i++)
        onxi_grad_say(&w, "%s%.*s", i ? ", " : "", ONX_ARG(p->names[i]));
    for (uint32_t i = 0; gradient && i < p->outputs; i++)
        onxi_grad_say(&w, ", d%.*s", ONX_ARG(p->names[p->inputs + i]));
    onxi_grad_say(&w, ") => (");
    for (uint32_t i = 0; i < (gradient ? p->inputs : p->outputs); i++)
        onxi_grad_say(&w, "%s%s%.*s", i ? ", " : "", gradient ? "d" : "",
                      ONX_ARG(p->names[gradient ? i : p->inputs + i]));
    onxi_grad_say(&w, ") { %.*s }", ONX_ARG(body));
    return w.failed ? (onx_str){ 0 } : onx_str_make(w.text, w.size);
}

/* Builds a function from the texts of all applicable rules of a kind. */
static onx_status build(onxi_grad_node *n, const onxi_grad_rule *rule, onxi_grad_kind kind, ports *p,
                        const onx_function **out)
{
    onx_str body = { 0 };
    const uint16_t op = rule->op;
    n->head = onx_str_of(rule->head ? rule->head : "");
    for (; rule->op == op; rule++) {
        if (rule->kind != kind || (rule->when && !rule->when(n)))
            continue;
        onx_str more = onx_str_of(rule->text ? rule->text : "");
        if (rule->write)
            ONX_TRY(rule->write(n, &more));
        body = onxi_arena_printf(n->g->scratch, "%.*s%.*s\n", ONX_ARG(body), ONX_ARG(more));
    }
    ONX_TRY(read_ports(n, n->head, p));
    const onx_str text = text_of_function(n->g->scratch, p, kind == ONXI_GRAD_PART, body);
    return text.len ? function_of(n->g, text, out) : ONX_E_MEMORY;
}

/* The names that nodes of the text read or define: for all nodes, or for those that are not NULL in `left`. */
static onx_status list_names(onxi_grad *g, const onx_function *f, onx_node *const *left, bool made, onxi_dict *names)
{
    *names = onxi_dict_in_arena(g->scratch);
    for (uint32_t i = 0; i < f->node_count; i++) {
        if (left && !left[i])
            continue;
        const onx_bytes *list = made ? f->node[i]->output : f->node[i]->input;
        for (uint32_t k = 0; k < (made ? f->node[i]->output_count : f->node[i]->input_count); k++)
            if (!onxi_dict_at(names, onx_view(list[k]), 1, NULL))
                return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Gives an output that the text reads, and that the node does not name, a name. */
static onx_status name_outputs(onxi_grad_node *n, const onxi_dict *read, const ports *p)
{
    onx_node *node = (onx_node *)(uintptr_t)n->s.node;
    bool own = false;
    for (uint32_t i = 0; i < p->outputs; i++) {
        if ((i < node->output_count && onx_view(node->output[i]).len) || !onxi_dict_find(read, p->names[p->inputs + i]))
            continue;
        onx_bytes *names = own ? node->output : own_names(n->g->arena, node->output, node->output_count);
        if (!names)
            return ONX_E_MEMORY;
        node->output = names;
        own = true;
        while (node->output_count <= i)
            ONX_TRY(onx_list_add_text(n->g->arena, &node->output, &node->output_count, (onx_str){ 0 }));
        ONX_TRY(onxi_names_make(&n->g->names, onx_view(node->output[0]), p->names[p->inputs + i], &node->output[i]));
    }
    return ONX_OK;
}

/* A gradient that no rule uses would be lost. */
static onx_status check_taken(onxi_grad_node *n, const onxi_dict *read, const ports *p)
{
    for (uint32_t i = 0; i < n->s.node->output_count && i < p->outputs; i++) {
        const onxi_port *port = onxi_port_at(n->s.row->outputs, i);
        const onx_str name = onxi_arena_printf(n->g->scratch, "d%.*s", ONX_ARG(p->names[p->inputs + i]));
        if (!onx_view(n->dy[i]).len || (port && port->flags & ONXI_PORT_NONDIFF) || onxi_dict_find(read, name))
            continue;
        return onxi_grad_fail(n->g, n->s.node, "there is no gradient of output %u of %.*s in this configuration", i,
                              ONX_ARG(onx_view(n->s.node->op_type)));
    }
    return ONX_OK;
}

onx_status onxi_grad_apply(onxi_grad_node *n, const onxi_grad_rule *rule, bool *made)
{
    const onx_node *node = n->s.node;
    const onx_function *f;
    onx_node **nodes;
    ports p;
    ONX_TRY(build(n, rule, ONXI_GRAD_PART, &p, &f));
    onxi_dict read, makes, stay;
    ONX_TRY(list_names(n->g, f, NULL, false, &read));
    ONX_TRY(list_names(n->g, f, NULL, true, &makes));
    ONX_TRY(check_taken(n, &read, &p));
    ONX_TRY(name_outputs(n, &read, &p));
    onx_bytes *in = ONXI_ARRAY(n->g->scratch, onx_bytes, (size_t)p.inputs + 2 * (size_t)p.outputs + 1);
    if (!in)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < p.inputs && i < node->input_count; i++)
        in[i] = node->input[i];
    for (uint32_t i = 0; i < p.outputs && i < node->output_count; i++) {
        in[p.inputs + i] = node->output[i];
        in[p.inputs + p.outputs + i] = n->dy[i];
    }
    ONX_TRY(expand(n, f, in, p.inputs + 2 * p.outputs, n->dx, node->input_count, node->output[0], &nodes));
    ONX_TRY(list_names(n->g, f, nodes, true, &stay)); /* nodes that read a missing gradient are omitted */
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onx_str name =
            i < p.inputs ? onxi_arena_printf(n->g->scratch, "d%.*s", ONX_ARG(p.names[i])) : (onx_str){ 0 };
        made[i] = name.len && onxi_dict_find(&makes, name) != NULL;
        if (made[i] && !onxi_dict_find(&stay, name))
            n->dx[i] = (onx_bytes){ 0 }; /* no gradient flows to it */
    }
    return emit_all(n, f, nodes);
}

onx_status onxi_grad_lower(onxi_grad_node *n, const onxi_grad_rule *rule, onxi_node_list *list)
{
    const onx_node *node = n->s.node;
    const onx_function *f;
    onx_node **nodes;
    onxi_grad_out out;
    ports p;
    ONX_TRY(onxi_grad_out_open(n->g, &out));
    n->out = &out;
    /* Names with other readers must not become aliases: Identity nodes define them in the end. */
    onx_bytes *made = ONXI_ARRAY(n->g->scratch, onx_bytes, (size_t)node->output_count + 1);
    if (!made)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (onx_view(node->output[i]).len)
            ONX_TRY(onxi_grad_name(n->g, node->output[i], "lowered", &made[i]));
    n->lowered = made;
    if (rule->make) {
        ONX_TRY(rule->make(n));
    } else {
        ONX_TRY(build(n, rule, ONXI_GRAD_LOWER, &p, &f));
        ONX_TRY(expand(n, f, node->input, node->input_count, made, node->output_count, node->output[0], &nodes));
        ONX_TRY(emit_all(n, f, nodes));
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        if (onx_view(node->output[i]).len)
            ONX_TRY(onxi_grad_add(n->g, &out, "Identity", onxi_grad_resolve(&out, made[i]), node->output[i]));
    for (uint32_t i = 0; i < out.nodes.count; i++) {
        if (!ONXI_GROW_IN(n->g->scratch, list->items, list->room, (uint64_t)list->count + 1))
            return ONX_E_MEMORY;
        list->items[list->count++] = out.nodes.items[i];
    }
    return ONX_OK;
}
