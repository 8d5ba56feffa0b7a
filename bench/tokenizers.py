#!/usr/bin/env python3
"""tokenizers.py FOLDER: small tokenizers of every kind, trained on tests/cases/token/texts.txt, for tokenizers_agree.js.

With spm_train (Debian's package sentencepiece) it also writes SentencePiece models and the output of spm_encode for the texts.
"""
import collections, json, os, pathlib, re, shutil, subprocess, sys

CASES = pathlib.Path(__file__).resolve().parent.parent / "tests/cases/token"
LINES = CASES.joinpath("texts.txt").read_text().split("\n")[:-1]


def byte_runes():
    own = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 256)]
    rest = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


BYTES = byte_runes()


def train_bpe(words, first, merges, end=""):
    """Trains BPE: merges the most frequent pair (of equally frequent ones the greatest) `merges` times. Returns tokens and merges."""
    counts = collections.Counter(words)
    split = {w: (list(w[:-1]) + [w[-1] + end]) for w in counts if w}
    vocab, rules = list(first) + sorted({s for w in split.values() for s in w} - set(first)), []
    for _ in range(merges):
        pairs = collections.Counter()
        for w, s in split.items():
            for pair in zip(s, s[1:]):
                pairs[pair] += counts[w]
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        rules.append(best)
        if best[0] + best[1] not in vocab:
            vocab.append(best[0] + best[1])
        for w, s in split.items():
            made, i = [], 0
            while i < len(s):
                if tuple(s[i:i + 2]) == best:
                    made.append(s[i] + s[i + 1])
                    i += 2
                else:
                    made.append(s[i])
                    i += 1
            split[w] = made
    return vocab, rules


def added(vocab, *tokens, **more):
    """Added tokens: new ones are appended to the vocabulary, others keep their ids."""
    made = []
    for t in tokens:
        if t not in vocab:
            vocab.append(t)
        made.append({"id": vocab.index(t), "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                     "normalized": False, "special": True, **more})
    return made


def write(folder, name, **parts):
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": None, "post_processor": None, "decoder": None, **parts}
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "tokenizer.json").write_text(json.dumps(whole, ensure_ascii=False, separators=(",", ":")))


def ids(vocab):
    return {t: i for i, t in enumerate(vocab)}


def bpe(vocab, rules, pairs=False, **more):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, **more, "vocab": ids(vocab),
            "merges": [list(r) if pairs else " ".join(r) for r in rules]}


def template(before, after, vocab):
    special = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
    text = lambda i: {"Sequence": {"id": i, "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [*map(special, before), text("A"), *map(special, after)],
            "pair": [*map(special, before), text("A"), text("B"), *map(special, after)],
            "special_tokens": {t: {"id": t, "ids": [vocab.index(t)], "tokens": [t]} for t in before + after}}


def byte_level(folder):
    """Byte-level BPE like GPT-2, and like Llama 3 and Qwen 2, which have other patterns and ignore_merges."""
    words = ["".join(BYTES[b] for b in w.encode()) for line in LINES for w in re.findall(r" ?\S+|\s+", line)]
    vocab, rules = train_bpe(words, [BYTES[b] for b in range(256)], 150)
    v = list(vocab)
    add = added(v, "<|end|>") + added(v, "<ent>", special=False, normalized=True, lstrip=True, rstrip=True)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    write(folder, "gpt2", added_tokens=add, model=bpe(v, rules), pre_tokenizer=level, decoder=level,
          post_processor={**level, "trim_offsets": False})
    v = list(vocab) + ["ĠtheĠlazy"]
    add = added(v, "<s>", "<|end|>")
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
               r"\s+(?!\S)|\s+")
    steps = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
             {**level, "use_regex": False}]
    write(folder, "llama3", added_tokens=add, model=bpe(v, rules, True, ignore_merges=True),
          normalizer={"type": "NFC"}, pre_tokenizer={"type": "Sequence", "pretokenizers": steps}, decoder=level,
          post_processor={"type": "Sequence", "processors": [level, template(["<s>"], [], v)]})


def metaspace(folder):
    """Like Llama 2, with bytes for characters without a token; and with the pre-tokenizer Metaspace."""
    words = [w for line in LINES for w in re.findall(r"▁*[^▁]+", "▁" + line.replace(" ", "▁"))]
    first = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    common = [w for w in words if all(ord(c) < 0x500 or c == "▁" for c in w)]
    vocab, rules = train_bpe(common, first, 120)
    v = list(vocab)
    add = added(v, "<unk>", "<s>", "</s>", normalized=False)
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
               {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    back = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    write(folder, "llama2", added_tokens=add, normalizer=prepend, decoder=back, post_processor=template(["<s>"], ["</s>"], v),
          model=bpe(v, rules, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    scheme = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    write(folder, "first", added_tokens=add, pre_tokenizer=scheme, decoder=back,
          model=bpe(v, rules, unk_token="<unk>", fuse_unk=True))


def clip(folder):
    words = [w.lower() for line in LINES for w in line.split()]
    marked = [chr(c) + "</w>" for c in range(33, 127)]
    vocab, rules = train_bpe(words, [chr(c) for c in range(33, 127)] + marked, 100, "</w>")
    v = list(vocab)
    add = added(v, "<unk>")
    write(folder, "words", added_tokens=add, normalizer={"type": "Sequence", "normalizers": [{"type": "NFD"},
          {"type": "StripAccents"}, {"type": "Lowercase"}]}, pre_tokenizer={"type": "WhitespaceSplit"},
          decoder={"type": "BPEDecoder", "suffix": "</w>"},
          model=bpe(v, rules, unk_token="<unk>", end_of_word_suffix="</w>"))


def wordpiece(folder):
    words = collections.Counter(w.lower() for line in LINES for w in re.findall(r"\w+|[^\w\s]", line))
    v = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    v += sorted({c for w in words for c in w}) + sorted({"##" + c for w in words for c in w[1:]})
    parts = collections.Counter()
    for w, n in words.items():
        for size in (2, 3, 4, 5):
            for i in range(len(w) - size + 1):
                parts[("##" if i else "") + w[i:i + size]] += n * size
    v += [p for p, _ in sorted(parts.items(), key=lambda x: (-x[1], x[0]))[:200] if p not in v]
    v.remove("ü") if "ü" in v else None
    add = added(v, "[PAD]", "[UNK]", "[CLS]", "[SEP]") + added(v, "[MASK]", lstrip=True)
    for name, lower in (("bert", True), ("cased", False)):
        write(folder, name, added_tokens=add, pre_tokenizer={"type": "BertPreTokenizer"}, post_processor=template(["[CLS]"], ["[SEP]"], v),
              normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                          "lowercase": lower}, decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
              model={"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                     "max_input_chars_per_word": 40, "vocab": ids(v)})


def unigram(folder):
    counts = collections.Counter()
    for line in LINES:
        text = "▁" + re.sub(r" +", "▁", line)
        for size in range(1, 7):
            for i in range(len(text) - size + 1):
                if "▁" not in text[i + 1:i + size]:
                    counts[text[i:i + size]] += 1
    picked = [p for p in counts if len(p) == 1 and ord(p) < 0x3000] + [p for p, n in counts.items() if len(p) > 1 and n > 2]
    total = sum(counts[p] for p in picked)
    scores = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
    scores += [[p, round(-10 + 3 * len(p) ** 0.5 + counts[p] / total + i * 1e-4, 6)] for i, p in enumerate(sorted(picked))]
    v = [p for p, _ in scores]
    add = added(v, "<pad>", "</s>", "<unk>")
    scheme = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    write(folder, "unigram", added_tokens=add, normalizer={"type": "NFKC"}, decoder=scheme, post_processor=template([], ["</s>"], v),
          pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, scheme]},
          model={"type": "Unigram", "unk_id": 2, "vocab": scores, "byte_fallback": False})
    digits = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
              {"type": "Punctuation", "behavior": "Contiguous"}, scheme]}
    write(folder, "digits", added_tokens=add, normalizer={"type": "NFKD"}, decoder=scheme, pre_tokenizer=digits,
          model={"type": "Unigram", "unk_id": 2, "vocab": scores, "byte_fallback": False})


def sentencepiece(folder):
    """Trains models with spm_train and writes the output of spm_encode."""
    rules = folder / "rules.tsv"
    rules.write_text("".join("%s\t%s\n" % (" ".join("%X" % ord(c) for c in a), " ".join("%X" % ord(c) for c in b)) for a, b in
                     [("ﬁ", "fi"), ("½", "1/2"), ("　", " "), ("\u00a0", " "), ("é", "é"), ("™", "TM"), ("\u200b", "")]))
    text = folder / "texts.txt"
    text.write_text("\n".join(LINES))
    common = ["spm_train", "--input=%s" % text, "--vocab_size=420", "--minloglevel=2", "--hard_vocab_limit=false", "--character_coverage=0.98"]
    forms = {"spm_bpe": ["--model_type=bpe", "--byte_fallback=true", "--normalization_rule_tsv=%s" % rules, "--user_defined_symbols=<ent>,foo"],
             "spm_unigram": ["--model_type=unigram", "--normalization_rule_tsv=%s" % rules, "--user_defined_symbols=<ent>"],
             "spm_blanks": ["--model_type=bpe", "--byte_fallback=true", "--normalization_rule_name=identity", "--remove_extra_whitespaces=false",
                            "--add_dummy_prefix=false", "--split_digits=true"],
             "spm_nfkc": ["--model_type=unigram", "--byte_fallback=true"]}
    for name, options in forms.items():
        (folder / name).mkdir(exist_ok=True)
        options = options[:1] + [o.replace("420", "700") for o in options[1:]]
        size = ["--vocab_size=700"] if "--byte_fallback=true" in options else []
        subprocess.run(common + size + options + ["--model_prefix=%s" % (folder / name / "tokenizer")], check=True)
        made = subprocess.run(["spm_encode", "--model=%s" % (folder / name / "tokenizer.model"), "--output_format=id"],
                              input="\n".join(LINES) + "\n", text=True, capture_output=True, check=True).stdout
        (folder / name / "ids").write_text(made)
        back = subprocess.run(["spm_decode", "--model=%s" % (folder / name / "tokenizer.model"), "--input_format=id"],
                              input=made, text=True, capture_output=True, check=True).stdout
        (folder / name / "texts").write_text(back)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for form in (byte_level, metaspace, clip, wordpiece, unigram):
        form(folder)
    if shutil.which("spm_train"):
        sentencepiece(folder)


main()
