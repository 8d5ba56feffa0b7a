/* cli_view_json.c - writes a view as JSON: columns of numbers instead of objects, so that the page loads a model of
 * 200,000 nodes within a second. */
#include "cli_op_words.h"
#include "cli_view.h"

/* ---- columns ---- */

/* Like fprintf(to, "%lld"), but ten times faster. */
static void put_number(FILE *to, int64_t number)
{
    char text[24], *p = text + sizeof text;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        *--p = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (number < 0)
        *--p = '-';
    fwrite_unlocked(p, 1, (size_t)(text + sizeof text - p), to);
}

static void put_next(FILE *to, bool first, int64_t number)
{
    if (!first)
        fputc_unlocked(',', to);
    put_number(to, number);
}

/* VIEW_NONE becomes -1. */
static int64_t signed_number(uint32_t number)
{
    return number == VIEW_NONE ? -1 : (int64_t)number;
}

static void column(cli_json *json, const char *key, const view_list *list)
{
    FILE *to = cli_json_raw(json, key);
    fputc('[', to);
    for (uint32_t i = 0; i < list->count; i++)
        put_next(to, i == 0, signed_number(list->at[i]));
    fputc(']', to);
}

/* ---- scopes ---- */

static void put_places(cli_json *json, const view_scope *s)
{
    static const char *const keys[] = { "x", "y", "w", "h" };
    for (int k = 0; k < 4; k++) {
        FILE *to = cli_json_raw(json, keys[k]);
        fputc('[', to);
        for (uint32_t i = 0; i < s->box_kind.count; i++) {
            const onx_layout_box *b = onx_layout_box_at(s->layout, i);
            put_next(to, i == 0, k == 0 ? b->x : k == 1 ? b->y : k == 2 ? b->width : b->height);
        }
        fputc(']', to);
    }
}

static void put_edges(cli_json *json, const view_scope *s)
{
    enum { TRUNK, FLAGS, COUNT, POINTS, COLUMNS };
    static const char *const keys[COLUMNS] = { "trunk", "flags", "points", "at" };
    cli_json_open(json, "edges", '{');
    column(json, "from", &s->edge_from);
    column(json, "to", &s->edge_to);
    column(json, "value", &s->edge_value);
    for (int k = 0; k < COLUMNS; k++) {
        FILE *to = cli_json_raw(json, keys[k]);
        bool first = true;
        fputc('[', to);
        for (uint32_t i = 0; i < s->edge_from.count; i++) {
            const onx_layout_route *r = onx_layout_route_at(s->layout, i);
            for (uint32_t p = 0; k == POINTS && p < r->point_count; p++, first = false) {
                put_next(to, first, r->point[p].x);
                put_next(to, false, r->point[p].y);
            }
            if (k != POINTS)
                put_next(to, i == 0, k == TRUNK ? signed_number(r->trunk) : k == FLAGS ? r->flags : r->point_count);
        }
        fputc(']', to);
    }
    cli_json_close(json, '}');
}

static void put_boxes(cli_json *json, const view_scope *s)
{
    cli_json_open(json, "boxes", '{');
    column(json, "kind", &s->box_kind);
    put_places(json, s);
    column(json, "op", &s->box_op);
    column(json, "row_count", &s->box_rows);
    column(json, "rows", &s->rows);
    column(json, "input_count", &s->box_inputs);
    column(json, "inputs", &s->inputs);
    column(json, "output_count", &s->box_outputs);
    column(json, "outputs", &s->outputs);
    column(json, "attribute_count", &s->box_attributes);
    column(json, "attributes", &s->attributes);
    column(json, "inner_count", &s->box_inner);
    column(json, "inner", &s->inner);
    cli_json_close(json, '}');
}

/* The name and operator of each node as strings, per box; for other boxes the name of the value. */
static void put_names(cli_json *json, cli_view *view, const view_scope *s)
{
    static const char *const keys[] = { "title", "name", "domain", "doc" };
    cli_json_open(json, "nodes", '{');
    for (int k = 0; k < 4; k++) {
        FILE *to = cli_json_raw(json, keys[k]);
        fputc('[', to);
        for (uint32_t i = 0; i < s->box_kind.count; i++) {
            const uint32_t ref = s->box_value.at[i];
            const onx_node *n = s->box_kind.at[i] == VIEW_NODE ? s->node[ref] : NULL;
            const uint32_t name = n ? 0 : s->value_name.at[ref], doc = n ? 0 : s->value_doc.at[ref];
            const onx_bytes text = !n       ? (onx_bytes){ 0 }
                                   : k == 0 ? n->op_type
                                   : k == 1 ? n->name
                                   : k == 2 ? n->domain
                                            : onx_node_more(n)->doc_string;
            put_next(to, i == 0, n ? view_string(view, onx_view(text)) : k < 2 ? name : k == 2 ? 0 : doc);
        }
        fputc(']', to);
    }
    FILE *to = cli_json_raw(json, "value");
    fputc('[', to);
    for (uint32_t i = 0; i < s->box_kind.count; i++)
        put_next(to, i == 0, s->box_kind.at[i] == VIEW_NODE ? -1 : (int64_t)s->box_value.at[i]);
    fputc(']', to);
    cli_json_close(json, '}');
}

static void put_values(cli_json *json, const view_scope *s)
{
    cli_json_open(json, "values", '{');
    column(json, "name", &s->value_name);
    column(json, "type", &s->value_type);
    column(json, "box", &s->value_box);
    column(json, "tensor", &s->value_tensor);
    column(json, "doc", &s->value_doc);
    cli_json_close(json, '}');
}

static void put_entries(cli_json *json, onx_string_string_entry *const *entries, uint32_t count)
{
    cli_json_open(json, "metadata", '[');
    for (uint32_t i = 0; i < count; i++) {
        cli_json_open(json, NULL, '[');
        cli_json_text(json, NULL, onx_view(entries[i]->key));
        cli_json_text(json, NULL, onx_view(entries[i]->value));
        cli_json_close(json, ']');
    }
    cli_json_close(json, ']');
}

/* Few nodes have metadata: pairs of a box and its entries. */
static void put_node_metadata(cli_json *json, const view_scope *s)
{
    cli_json_open(json, "node_metadata", '[');
    for (uint32_t i = 0; i < s->node_count; i++) {
        const onx_node_extra *more = onx_node_more(s->node[i]);
        if (!more->metadata_props_count)
            continue;
        cli_json_open(json, NULL, '{');
        cli_json_uint(json, "box", s->first_node + i);
        put_entries(json, more->metadata_props, more->metadata_props_count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_scope(cli_json *json, cli_view *view, const view_scope *s)
{
    static const char *const kinds[] = { "graph", "subgraph", "function", "training" };
    const onx_layout_point size = onx_layout_size(s->layout);
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "kind", s->kind == VIEW_TRAINING && s->initializes ? "initialization" : kinds[s->kind]);
    cli_json_text(json, "name", onx_view(s->graph ? s->graph->name : s->function->name));
    cli_json_text(json, "doc", onx_view(s->graph ? s->graph->doc_string : s->function->doc_string));
    if (s->function) {
        cli_json_text(json, "domain", onx_view(s->function->domain));
        cli_json_opsets(json, s->function->opset_import, s->function->opset_import_count);
        put_entries(json, s->function->metadata_props, s->function->metadata_props_count);
    } else {
        put_entries(json, s->graph->metadata_props, s->graph->metadata_props_count);
    }
    cli_json_int(json, "parent", signed_number(s->parent));
    cli_json_int(json, "parent_box", signed_number(s->parent_box));
    cli_json_int(json, "width", size.x);
    cli_json_int(json, "height", size.y);
    cli_json_uint(json, "first_node", s->first_node);
    cli_json_uint(json, "node_count", s->node_count);
    put_boxes(json, s);
    put_names(json, view, s);
    put_values(json, s);
    put_edges(json, s);
    put_node_metadata(json, s);
    cli_json_close(json, '}');
}

/* ---- the rest of a model ---- */

static void put_tensors(cli_json *json, cli_view *view, view_weights *weights)
{
    cli_json_open(json, "tensors", '[');
    for (uint32_t i = 0; i < view->tensor_count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_uint(json, "name", view->tensor[i].name);
        cli_json_uint(json, "type", view->tensor[i].type);
        cli_view_tensor(json, view, view->tensor[i].tensor, weights);
        cli_json_close(json, '}');
        if (i % 256 == 255)
            cli_progress("weights", i, view->tensor_count);
    }
    cli_json_close(json, ']');
    cli_progress_end();
}

static void put_findings(cli_json *json, const cli_view *view)
{
    static const char *const severities[] = { "note", "warning", "error" };
    cli_json_open(json, "findings", '[');
    for (uint32_t i = 0; i < view->finding_count; i++) {
        const view_finding *f = &view->finding[i];
        const onx_diag *d = f->diag;
        cli_json_open(json, NULL, '{');
        cli_json_cstr(json, "severity", severities[d->severity]);
        if (d->rule)
            cli_json_cstr(json, "rule", d->rule);
        cli_json_text(json, "message", d->message);
        cli_json_text(json, "value", d->value);
        cli_json_text(json, "expected", d->expected);
        cli_json_text(json, "hint", d->hint);
        cli_json_text(json, "path", d->where.path);
        cli_json_int(json, "scope", signed_number(f->scope));
        cli_json_int(json, "box", signed_number(f->box));
        if (d->where.line) {
            cli_json_uint(json, "line", d->where.line);
            cli_json_uint(json, "column", d->where.column);
            cli_json_text(json, "excerpt", d->excerpt);
        } else if (d->where.kind == ONX_AT_BYTE) {
            cli_json_uint(json, "byte", d->where.byte);
        }
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_strings(cli_json *json, const cli_view *view)
{
    FILE *to = cli_json_raw(json, "strings");
    fputc('[', to);
    for (uint32_t i = 0; i < view->string_count; i++) {
        if (i)
            fputc_unlocked(',', to);
        cli_json_put_string(to, view->string[i]);
    }
    fputc(']', to);
}

static void put_model(cli_json *json, const onx_model *m)
{
    cli_json_int(json, "ir_version", m->ir_version);
    cli_json_text(json, "producer_name", onx_view(m->producer_name));
    cli_json_text(json, "producer_version", onx_view(m->producer_version));
    cli_json_text(json, "domain", onx_view(m->domain));
    cli_json_int(json, "model_version", m->model_version);
    cli_json_text(json, "doc", onx_view(m->doc_string));
    cli_json_opsets(json, m->opset_import, m->opset_import_count);
    put_entries(json, m->metadata_props, m->metadata_props_count);
}

void cli_view_json(cli_json *json, cli_view *view, view_weights *weights)
{
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "file", view->file);
    if (view->doc) {
        put_model(json, onx_doc_model(view->doc));
        cli_json_open(json, "scopes", '[');
        for (uint32_t i = 0; i < view->scope_count; i++)
            put_scope(json, view, view->scope[i]);
        cli_json_close(json, ']');
        cli_json_open(json, "attributes", '{');
        column(json, "name", &view->attribute_name);
        column(json, "text", &view->attribute_text);
        column(json, "type", &view->attribute_type);
        column(json, "tensor", &view->attribute_tensor);
        cli_json_close(json, '}');
        cli_json_open(json, "operators", '[');
        for (uint32_t i = 0; i < view->op_count; i++)
            cli_op_json(json, view->op[i]);
        cli_json_close(json, ']');
        put_tensors(json, view, weights);
        put_strings(json, view);
    }
    if (view->profile) {
        fputs(",", json->to); /* it has a place of its own, and its key */
        fwrite(view->profile, 1, view->profile_size, json->to);
    }
    put_findings(json, view);
    cli_json_close(json, '}');
}
