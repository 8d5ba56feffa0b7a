"""Pictures of graphs for notebooks: well-formed, complete, and safe for hostile models."""
import unittest
import xml.etree.ElementTree as xml

import models
import onx
import onx._drawing

SVG = "{http://www.w3.org/2000/svg}"


class TestDrawing(unittest.TestCase):
    def test_picture(self):
        tree = xml.fromstring(onx.load(models.STRIPES)._repr_html_())
        self.assertEqual([t.text for t in tree.iter(SVG + "text")],
                         ["image", "Conv", "Relu", "MaxPool", "GlobalAveragePool", "Reshape", "Softmax", "probability"])
        self.assertEqual(len(list(tree.iter(SVG + "path"))), 7)
        boxes = [tuple(int(r.get(k)) for k in ("x", "y", "width", "height")) for r in tree.iter(SVG + "rect")]
        for i, (x, y, w, h) in enumerate(boxes):
            for x2, y2, w2, h2 in boxes[:i]:
                self.assertTrue(x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y)
        self.assertEqual(boxes, sorted(boxes, key=lambda b: b[1]))  # a chain, downwards

    def test_hostile(self):
        bad = '"><script>alert(1)</script>\0\x1b\udcff&'
        graph = onx.GraphProto(node=[onx.NodeProto(op_type=bad, input=[bad, "a"], output=["a", bad], name=bad)],
                               input=[onx.ValueInfoProto(name=bad)], output=[onx.ValueInfoProto(name=bad)])
        tree = xml.fromstring(graph._repr_html_())
        self.assertEqual({e.tag for e in tree.iter()}, {SVG + n for n in ("svg", "g", "title", "rect", "text", "path")})
        self.assertNotIn("<script", onx.ModelProto(doc_string=bad)._repr_html_())

    def test_sizes(self):
        big = onx.GraphProto(name="<b>", node=[onx.node("Neg", "x", "y")] * (onx._drawing.MOST + 1))
        self.assertTrue(big._repr_html_().startswith("<pre>"))
        self.assertNotIn("<b>", big._repr_html_())
        self.assertTrue(xml.fromstring(onx.GraphProto()._repr_html_()) is not None)
        self.assertTrue(onx.ModelProto()._repr_html_().startswith("<pre>"))
        f = onx.FunctionProto(name="f", input=["x"], output=["y"], node=[onx.node("Neg", "x", "y")])
        self.assertEqual(len(list(xml.fromstring(f._repr_html_()).iter(SVG + "rect"))), 3)
        for wrong in (([(0, 1)], []), ([(1, 1)], [(0, 1)])):
            with self.assertRaises(onx.Error):
                onx._onx._layout(*wrong)
        for wrong in (([3], []), ([(1, -1)], []), ((), [])):
            with self.assertRaises((TypeError, OverflowError, SystemError, onx.Error)):
                onx._onx._layout(*wrong)


if __name__ == "__main__":
    unittest.main()
