/* cli_view_svg.c - writes the main graph of a view as SVG, with nothing expanded. */
#include "cli_view_page.h"

enum { MARGIN = 16, TITLE = 8, ROW = 7, ROOM = 12, HEADER = 24, LINE = 15 };

static const struct {
    const char *family;
    int hue;
} hues[] = {
#define HUE(family, hue) { family, hue },
#include "cli_view_hues.def"
};

void cli_view_hues(cli_json *json)
{
    cli_json_open(json, "hues", '{');
    for (size_t i = 0; i < sizeof hues / sizeof *hues; i++)
        cli_json_int(json, hues[i].family, hues[i].hue);
    cli_json_close(json, '}');
}

/* ---- text ---- */

/* Writes as much of the text as fits, escaped. */
static void put_text(FILE *to, onx_str s, unsigned columns)
{
    if (cli_columns(s) <= columns) {
        cli_put_xml(to, s);
        return;
    }
    cli_put_xml(to, cli_fitting(s, columns - 1));
    fputs("…", to);
}

/* ---- shapes ---- */

static void put_arrow(FILE *to, const onx_layout_route *r)
{
    if (r->point_count < 2)
        return;
    const onx_layout_point *p = r->point, *end = &p[r->point_count - 1];
    const int up = r->flags & ONX_LAYOUT_BACK ? -1 : 1;
    fprintf(to, "<path class=\"%s\" d=\"M%lld %lld", r->flags & ONX_LAYOUT_FAR ? "far" : "way", (long long)p->x,
            (long long)p->y);
    for (; p < end; p++) {
        const long long x = p->x, y = p->y, x1 = p[1].x, y1 = p[1].y, bend = (y1 - y) / 2;
        if (x == x1)
            fprintf(to, "V%lld", y1);
        else
            fprintf(to, "C%lld %lld %lld %lld %lld %lld", x, y + bend, x1, y1 - bend, x1, y1);
    }
    fprintf(to, "\"/><path class=\"head\" d=\"M%lld %lldl-4 %dh8z\"/>\n", (long long)end->x, (long long)end->y,
            -7 * up);
}

static void put_row(FILE *to, const onx_layout_box *b, int64_t y, onx_str text)
{
    fprintf(to, "<text class=\"row\" x=\"%lld\" y=\"%lld\">", (long long)b->x + 8, (long long)y);
    put_text(to, text, (unsigned)((b->width - ROOM) / ROW));
    fputs("</text>", to);
}

static void put_title(FILE *to, const onx_layout_box *b, int64_t height, onx_str text)
{
    fprintf(to, "<text class=\"title\" x=\"%lld\" y=\"%lld\">", (long long)(b->x + b->width / 2),
            (long long)(b->y + height / 2 + 4));
    put_text(to, text, (unsigned)((b->width - ROOM) / TITLE));
    fputs("</text>", to);
}

int cli_view_hue(const cli_view *view, uint32_t op)
{
    const char *family = op == VIEW_NONE ? "" : onx_op_family(view->op[op]);
    for (size_t i = 0; i < sizeof hues / sizeof *hues; i++)
        if (strcmp(hues[i].family, family) == 0)
            return hues[i].hue;
    return -1;
}

static void put_box(FILE *to, const cli_view *view, const view_scope *s, uint32_t box, const uint32_t *rows)
{
    const onx_layout_box *b = onx_layout_box_at(s->layout, box);
    const uint32_t ref = s->box_value.at[box], count = s->box_rows.at[box];
    const onx_node *node = s->box_kind.at[box] == VIEW_NODE ? s->node[ref] : NULL;
    const int64_t head = node && count ? HEADER : b->height;
    const int hue = node ? cli_view_hue(view, s->box_op.at[box]) : -1;
    const long long x = b->x, y = b->y, w = b->width, h = b->height;
    const onx_str name = node ? onx_view(node->name) : view->string[s->value_name.at[ref]];
    fputs("<g><title>", to);
    put_text(to, name, 200);
    fprintf(to, "</title><rect class=\"%s\" x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%lld\" rx=\"%lld\"/>",
            node ? "node" : "port", x, y, w, h, node ? 6 : h / 2);
    if (node)
        fprintf(to, "<rect x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%lld\" rx=\"5\" fill=\"hsl(%d,%d%%,%d%%)\"/>",
                x + 1, y + 1, w - 2, (long long)head - 2, hue < 0 ? 222 : hue, hue < 0 ? 22 : 70, hue < 0 ? 90 : 88);
    put_title(to, b, head, node ? onx_view(node->op_type) : name);
    for (uint32_t i = 0; i < count; i++)
        put_row(to, b, b->y + HEADER + LINE - 1 + LINE * (int64_t)i, view->string[rows[i]]);
    fputs("</g>\n", to);
}

void cli_view_svg(FILE *to, const cli_view *view, const view_scope *s)
{
    const onx_layout_point size = onx_layout_size(s->layout);
    const long long w = size.x + 2 * MARGIN, h = size.y + 2 * MARGIN;
    fprintf(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"%d %d %lld %lld\" width=\"%lld\" height=\"%lld\">\n<title>",
        -MARGIN, -MARGIN, w, h, w, h);
    put_text(to, onx_str_of(view->file), 200);
    fputs("</title>\n<style>text{font:12px system-ui,sans-serif;fill:#1c2430}.title{font-weight:600;text-anchor:middle}"
          ".row{font-size:11px;fill:#667085}.way,.far{fill:none;stroke:#8a94a6;stroke-width:1.2}"
          ".far{stroke:#cfd5df;stroke-dasharray:6 5}.head{fill:#8a94a6}.node{fill:#fff;stroke:#c3cad6}"
          ".port{fill:#f3f4f7;stroke:#c3cad6}</style>\n",
          to);
    for (uint32_t i = 0; i < s->edge_from.count; i++)
        put_arrow(to, onx_layout_route_at(s->layout, i));
    uint32_t row = 0;
    for (uint32_t i = 0; i < s->box_kind.count; i++) {
        put_box(to, view, s, i, view_rows_from(s, row));
        row += s->box_rows.at[i];
    }
    fputs("</svg>\n", to);
}
