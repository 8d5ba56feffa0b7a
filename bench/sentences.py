#!/usr/bin/env python3
"""Writes a BlingFire file with rules of a few states, for tests of BlingFireSentenceBreaker:  sentences.py FILE

It contains every encoding of a state: ranges, two lists, a list by input, a single transition to the next state."""
import struct
import sys

LEFT, RIGHT = 1, 2  # symbols for the left and right end of the text
NEXT, LISTS, INDEX, RANGES = 2, 4, 6, 1


def state(kind, ways, action=None, width=1):
    """`ways` are transitions: (first, last, target state) for RANGES, (input, target state) otherwise."""
    return dict(kind=kind, ways=ways, action=action, width=width)


DOT = [(ord(c), "end") for c in "!.?"]
STATES = {
    "all": state(RANGES, [(LEFT, LEFT, "begin"), (RIGHT, RIGHT, "functions"), (10, 10, "line"), (33, 33, "end"), (46, 46, "end"), (63, 63, "end"), (0x3002, 0x3002, "full")], width=2),
    "begin": state(LISTS, [(10, "first")]),
    "first": state(0, [], action=3),  # an empty line at the beginning of the text
    "functions": state(INDEX, [(1, "each"), (2, "never")]),
    "each": state(LISTS, [(10, "one")]),
    "one": state(0, [], action=2),
    "never": state(0, []),
    "line": state(LISTS, [(10, "lines")]),
    "lines": state(LISTS, [(10, "lines")], action=1),
    "end": state(INDEX, [(ord(" "), "space"), (ord("!"), "end"), (ord('"'), "quoted"), (ord("."), "end"), (ord("?"), "end")]),
    "space": state(0, [], action=0),
    "quoted": state(NEXT, [(ord(" "), "behind")]),
    "behind": state(LISTS, [(RIGHT, "behind")], action=0, width=4),
    "full": state(0, [], action=2, width=2),
}
# An action: how much it trims from the match on the left and on the right, a tag, and after a zero the functions that split the rest.
ACTIONS = [[0, 1, 2], [0, 0, 2, 0, 1], [0, 0, 2], [0, 0, 0, 1, 1]]
SIZE = 2  # bytes of an offset


def number(x, width):
    return int(x).to_bytes(width, "little")


def pack(s, at):
    """Encodes a state; `at` has the offsets of the target states."""
    w, ways = s["width"], s["ways"]
    info = s["kind"] | (w - 1) << 3 | (0x80 | 1 << 5 if s["action"] is not None else 0)
    out = bytes([info])
    place = lambda name: (at.get(name, 0) if name else 0).to_bytes(SIZE, "big")
    if s["kind"] == RANGES:
        out += number(len(ways) - 1, w) + b"".join(number(a, w) for a, _, _ in ways) + b"".join(number(b, w) for _, b, _ in ways) + b"".join(place(n) for _, _, n in ways)
    elif s["kind"] == LISTS:
        out += number(len(ways) - 1, w) + b"".join(number(a, w) for a, _ in ways) + b"".join(place(n) for _, n in ways)
    elif s["kind"] == INDEX:
        least, most = ways[0][0], ways[-1][0]
        out += number(least, w) + number(most, w) + b"".join(place(dict(ways).get(i)) for i in range(least, most + 1))
    elif s["kind"] == NEXT:
        out += number(ways[0][0], w)
    return out + (number(s["action"], 1) if s["action"] is not None else b"")


def automaton():
    inputs = sorted({x for s in STATES.values() for way in s["ways"] for x in way[:-1]})
    head = struct.pack("<iii", SIZE, 0, 2 * len(inputs)) + b"".join(struct.pack("<ii", x, x) for x in inputs)
    at = {}
    for _ in range(2):  # the first pass determines the offsets
        out = head
        for name, s in STATES.items():
            at[name] = len(out)
            out += pack(s, at)
    return out


def lists(by_key):
    """Encodes lists of integers by key. The table holds offset + 1 for each key; 0 means no list."""
    values, offsets = struct.pack("<ii", 4, max(map(len, by_key.values()))), []
    for key in range(max(by_key) + 1):
        offsets.append(len(values) + 1 if key in by_key else 0)
        if key in by_key:
            values += struct.pack("<%di" % (1 + len(by_key[key])), len(by_key[key]), *by_key[key])
    head = struct.pack("<ii", max(by_key), SIZE) + b"".join(x.to_bytes(SIZE, "big") for x in offsets)
    return head + bytes(-len(head) % 4) + values


def model():
    depth, mode, fsm, actions = 38, 16, 2, 25
    parts = [lists({19: [depth, 3, 51, 2, mode, 1, fsm, 1, actions, 2]}), automaton(), lists(dict(enumerate(ACTIONS)))]
    parts = [p + bytes(-len(p) % 4) for p in parts]
    head, at = struct.pack("<i", len(parts)), 4 + 4 * len(parts)
    for p in parts:
        head += struct.pack("<i", at)
        at += len(p)
    return head + b"".join(parts)


if __name__ == "__main__":
    open(sys.argv[1], "wb").write(model())
