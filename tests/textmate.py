"""Tokenises ONNX text with editors/onnxtxt.tmLanguage.json as an editor does, and checks the result.

python3 textmate.py ROOT: every case of tests/cases/text and a sample with its expected tokens. Understands the part of
TextMate grammars that ours uses: match, captures, begin/end, include.
"""
import json
import re
import sys

ROOT = sys.argv[1]
GRAMMAR = json.load(open(ROOT + "/editors/onnxtxt.tmLanguage.json"))


def expand(patterns):
    for pattern in patterns:
        if "include" in pattern:
            yield from expand([GRAMMAR["repository"][pattern["include"][1:]]])
        elif "match" in pattern or "begin" in pattern:
            yield pattern
        else:
            yield from expand(pattern["patterns"])


def compiled(patterns):
    return [(p, re.compile(p.get("match") or p["begin"])) for p in expand(patterns)]


TOP = compiled(GRAMMAR["patterns"])


def tokens_of_match(pattern, m):
    """(text, scope) of a match; what no capture covers has the scope of the pattern itself."""
    spans = [(m.start(int(n)), m.end(int(n)), c["name"]) for n, c in pattern.get("captures", {}).items() if m.group(int(n))]
    at = m.start()
    for start, end, name in sorted(spans):
        if start > at:
            yield m.string[at:start], pattern.get("name")
        yield m.string[start:end], name
        at = end
    if m.end() > at:
        yield m.string[at:m.end()], pattern.get("name")


def tokenise(text):
    """Line by line, as editors do; an open begin/end pattern goes on in the next line."""
    inside = None
    for line in text.split("\n"):
        at = 0
        while at < len(line):
            if inside:
                candidates = compiled(inside.get("patterns", [])) + [(None, re.compile(inside["end"]))]
            else:
                candidates = TOP
            best = None
            for pattern, regex in candidates:
                m = regex.search(line, at)
                if m and m.end() > m.start() and (best is None or m.start() < best[1].start()):
                    best = (pattern, m)
            if not best:
                yield line[at:], inside["name"] if inside else None
                break
            pattern, m = best
            if m.start() > at:
                yield line[at:m.start()], inside["name"] if inside else None
            if pattern is None:
                yield m.group(), inside["name"]
                inside = None
            elif "begin" in pattern:
                yield m.group(), pattern["name"]
                inside = pattern
            else:
                yield from tokens_of_match(pattern, m)
            at = m.end()


def cases(name):
    text = open(ROOT + "/tests/cases/text/" + name, newline="").read()
    for case in text.split("\n=== ")[1:]:
        title, rest = case.split("\n", 1)
        source, answer = (rest if rest.startswith("---\n") else "\n" + rest).split("---\n", 1)
        yield title, source.strip("\n"), answer.strip("\n")


SAMPLE = '''<ir_version: 10, opset_import: ["" : 21]> # head
g (float[N, 2] x, seq(int64) y) => (b) <float[1] w = ["location" : "f"]> {
  [l] b = org.demo.Op<alpha : float = 0.5, n = -3, s = "a\\"b", r : ints = @p, e = -inf>(x, w)
  #@ node.doc_string: "d"
}'''
EXPECTED = [
    ("ir_version", "keyword.other.header"), ("10", "constant.numeric.integer"), ('"', "string.quoted.double"),
    ("# head", "comment.line.number-sign"), ("float", "storage.type"), ("N", "variable.other"), ("seq", "storage.type"),
    ("int64", "storage.type"), ("=>", "keyword.operator.arrow"), ('"location"', "support.constant.external"),
    ("l", "variable.other"), ("org.demo.", "entity.name.namespace"), ("Op", "entity.name.function.operator"),
    ("alpha", "variable.other.assigned"), ("float", "storage.modifier.attribute"), ("0.5", "constant.numeric.float"),
    ("-3", "constant.numeric.integer"), ('\\"', "constant.character.escape"), ("ints", "storage.modifier.attribute"),
    ("@p", "variable.parameter"), ("-inf", "constant.language.float"),
    ('#@ node.doc_string: "d"', "comment.line.number-sign.kept"),
]


def main():
    failures = 0
    left = list(EXPECTED)
    for text, scope in tokenise(SAMPLE):
        if left and text == left[0][0] and scope and scope.startswith(left[0][1] + "."):
            left.pop(0)
    if left:
        print("sample: no token %r with scope %s" % left[0])
        for token in tokenise(SAMPLE):
            print("   ", token)
        failures += 1
    count = 0
    for title, source, answer in cases("accepted.case"):
        for text in (source, answer):
            count += 1
            pieces = list(tokenise(text))
            if "\n".join(text.split("\n")).replace("\n", "") != "".join(p for p, _ in pieces):
                print("%s: tokens do not give the text again" % title)
                failures += 1
            bare = [p for p, scope in pieces if p.strip() and not scope]
            if bare:
                print("%s: no scope for %r" % (title, bare[0]))
                failures += 1
    for title, source, _ in cases("rejected.case"):
        count += 1
        list(tokenise(source))
    types = re.findall(r'^DTYPE\(.*"(\w+)",', open(ROOT + "/include/onx/dtype.def").read(), re.M)
    for name in types:
        if list(tokenise(name + "[2] x"))[0] != (name, "storage.type.onnxtxt"):
            print("element type %s is not coloured" % name)
            failures += 1
    print("%d texts, %d element types, %d failures" % (count, len(types), failures))
    sys.exit(failures > 0 or count < 200 or len(types) < 26)


main()
