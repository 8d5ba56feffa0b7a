"""Graphs as pictures, for notebooks. Texts of a model never become markup."""
import html

from onx import _onx

MOST = 400  # most nodes of a picture; larger graphs are shown as text, and can be drawn by the program: onx view


def _box(x, y, w, h, text, tip, fill, round_):
    return ('<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="#6b7280"/>'
            '<text x="%d" y="%d" text-anchor="middle" fill="#111827">%s</text></g>'
            % (tip, x, y, w, h, round_, fill, x + w // 2, y + h // 2 + 4, text))


def _short(text, most=24):
    # Characters that XML does not allow are shown as question marks.
    text = "".join(c if c.isprintable() else "?" for c in text)
    return html.escape(text if len(text) <= most else text[:most - 1] + "…")


def svg(graph):
    """A graph or function as SVG; None if it is too large to draw."""
    nodes = list(graph.node)
    if len(nodes) > MOST:
        return None
    inputs = [i if isinstance(i, str) else i.name for i in graph.input]
    outputs = [o if isinstance(o, str) else o.name for o in graph.output]
    labels = [(n, "#dbeafe", 14) for n in inputs] + [(n.op_type, "#f3f4f6", 4) for n in nodes] + [(n, "#dcfce7", 14) for n in outputs]
    tips = inputs + [str(n) for n in nodes] + outputs
    makers = {name: i for i, name in enumerate(inputs)}
    edges = []
    for i, node in enumerate(nodes):
        edges += [(name, len(inputs) + i) for name in dict.fromkeys(node.input) if name]
        makers.update((name, len(inputs) + i) for name in node.output if name)
    edges += [(name, len(inputs) + len(nodes) + i) for i, name in enumerate(outputs)]
    lines = [(makers[name], to) for name, to in edges if name in makers]
    boxes = [(max(60, 20 + 8 * min(24, len(text))), 28) for text, _, _ in labels]
    width, height, places, ways = _onx._layout(boxes, lines)
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 %d %d" width="%d" height="%d" font-family="sans-serif" '
             'font-size="12">' % (width + 8, height + 8, width + 8, height + 8)]
    for way in ways:
        if way:
            parts.append('<path d="M%s" fill="none" stroke="#9ca3af"/>' % " L".join("%d %d" % point for point in way))
    for (text, fill, round_), tip, place in zip(labels, tips, places):
        parts.append(_box(*place, _short(text), _short(tip, 400), fill, round_))
    return "".join(parts) + "</svg>"


def repr_html(message):
    """The notebook representation of a model, graph or function."""
    graph = message.graph if isinstance(message, _onx.ModelProto) else message
    drawing = svg(graph) if graph is not None else None
    return drawing if drawing is not None else "<pre>%s</pre>" % html.escape(str(message))
