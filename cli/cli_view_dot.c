/* cli_view_dot.c - writes the main graph of a view in the DOT language of Graphviz, which computes its own layout. */
#include "cli_view_page.h"

/* Writes a quoted string. Graphviz interprets backslashes and entities, so names are written with entities. */
static void put_text(FILE *to, onx_str s)
{
    for (size_t i = 0, begin = 0; i <= s.len; i++) {
        if (i < s.len && s.ptr[i] != '\\')
            continue;
        cli_put_xml(to, onx_str_make(s.ptr + begin, i - begin));
        if (i < s.len)
            fputs("\\\\", to);
        begin = i + 1;
    }
}

static void put_box(FILE *to, const cli_view *view, const view_scope *s, uint32_t box, const uint32_t *rows)
{
    const uint32_t ref = s->box_value.at[box];
    const onx_node *node = s->box_kind.at[box] == VIEW_NODE ? s->node[ref] : NULL;
    const int hue = node ? cli_view_hue(view, s->box_op.at[box]) : -1;
    fprintf(to, "  b%u [label=\"", box);
    put_text(to, node ? onx_view(node->op_type) : view->string[s->value_name.at[ref]]);
    for (uint32_t i = 0; i < s->box_rows.at[box]; i++) {
        fputs("\\n", to);
        put_text(to, view->string[rows[i]]);
    }
    fputc('"', to);
    if (node && onx_view(node->name).len) {
        fputs(", tooltip=\"", to);
        put_text(to, onx_view(node->name));
        fputc('"', to);
    }
    if (!node)
        fputs(", style=\"rounded,filled\", fillcolor=\"#f3f4f7\"", to);
    else if (hue >= 0)
        fprintf(to, ", fillcolor=\"%.3f 0.2 0.97\"", hue / 360.0);
    fputs("];\n", to);
}

void cli_view_dot(FILE *to, const cli_view *view, const view_scope *s)
{
    fputs("digraph {\n  label=\"", to);
    put_text(to, onx_str_of(view->file));
    fputs("\";\n  node [shape=box, style=filled, fillcolor=\"#e3e6ee\", fontname=\"sans-serif\"];\n", to);
    uint32_t row = 0;
    for (uint32_t i = 0; i < s->box_kind.count; i++) {
        put_box(to, view, s, i, view_rows_from(s, row));
        row += s->box_rows.at[i];
    }
    for (uint32_t i = 0; i < s->edge_from.count; i++)
        fprintf(to, "  b%u -> b%u;\n", s->edge_from.at[i], s->edge_to.at[i]);
    fputs("}\n", to);
}
