#!/usr/bin/env python3
"""Regenerates text_metrics.json, what the tests of src/functions/text compare the scores with.

    python3 tests/reference/text_metrics.py

The pinned peers are installed into a virtual environment at first use (`in_venv`, harness.py).
The texts are the pairs of the notes on the reference implementations, some written by hand for
the corners of the tokenizers, and made-up ones from a generator of its own, so that they do not
depend on Python's version. Scores are the peers' numbers as they give them: sacrebleu's are
percentages.
"""

import json
import logging
import pathlib
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from harness import in_venv, pinned  # noqa: E402

PINS = {
    "sacrebleu": "2.6.0",
    "nltk": "3.10.4",
    "rapidfuzz": "3.14.6",
    "rouge_score": "0.1.2",
    "regex": "2026.11.15",
}
OUT = pathlib.Path(__file__).with_suffix(".json")
MADE = 300

# Name -> (reference, hypothesis): those of the notes on the reference implementations.
PAIRS = {
    "identical": ("def f(a, b):\n    return a + b",) * 2,
    "renamed": (
        "def add(a, b):\n    c = a + b\n    return c",
        "def add(x, y):\n    z = x + y\n    return z",
    ),
    "empty_hyp": ("def f(a):\n    return a", ""),
    "empty_ref": ("", "def f(a):\n    return a"),
    "both_empty": ("", ""),
    "one_token": ("pass", "pass"),
    "two_tokens_no_kw": ("foo bar", "foo bar"),
    "disjoint": ("a b c d", "w x y z"),
    "floordiv": (
        "def f(a, b):\n    x = a // b\n    return x",
        "def f(a, b):\n    x = a // c + 1\n    return x",
    ),
    "unicode": (
        "def f(\u00f1):\n    s = '\u00e9'\n    return \u00f1 + s",
        "def f(\u00f1):\n    s = 'e'\n    return \u00f1 + s",
    ),
    "syntax_error_hyp": ("def f(a):\n    return a", "def f(a:\n    return a +"),
    "docstring_hyp": (
        "def f(a):\n    return a",
        "def f(a):\n    '''doc'''\n    # note\n    return a",
    ),
    "no_dataflow_ref": ("def f():\n    pass",) * 2,
    "dataflow_zero_match": ("def f(a):\n    b = a\n    return b", "def g():\n    pass"),
    "reordered": (
        "def f(a, b):\n    if a:\n        b = a\n    return b",
        "def f(a, b):\n    b = a if a else b\n    return b",
    ),
}

# Texts for the corners of the tokenizers; each is also paired with its neighbours below.
CORNERS = [
    "",
    " ",
    "\n",
    "a",
    ".",
    "..",
    "...",
    "1.",
    ".1",
    "1.2",
    "1..2",
    "1...2",
    "1....2",
    "a.1",
    "a..1",
    "a...1",
    "1.a",
    "1..a",
    "1.,2",
    "1,2.3,4",
    "3.14, 2,718 1,000,000.5",
    "-",
    "1-",
    "1--2",
    "1-2-3",
    "-1",
    "a-1",
    "1-a",
    "1.-2",
    "1-.5",
    "-.5",
    "a - 1 - 2",
    "x-\ny",
    "x-\r\ny",
    "x-\n",
    "x -\n\ny",
    "<skipped>",
    "a<skipped>b",
    "<skip<skipped>ped>",
    "-<skipped>\ny",
    "<skip-\nped>",
    "&quot;a&quot;",
    "&amp;lt;",
    "&amp;quot;",
    "&lt;x&gt; &amp; y",
    "&",
    "&&amp;",
    "&#39;",
    "{[(a)]}",
    "a_b __c__ `d` ~e ^f",
    "don't 'x' \"y\"",
    "a'b.c'1.2'",
    "$1.50 50% #1 @me",
    "a\tb\r\nc\x0bd\x0ce",
    "a\x1cb\x1dc\x1ed\x1ff",
    "a\x85b\xa0c\u2003d\u3000e\u200bf\u180eg",
    "\u00bfqu\u00e9? \u00a1no! \u00abs\u00ed\u00bb",
    "\u0661.\u0662 \u0663,\u0664",
    "\u00bd.5 x\u00b2.y \u2167.\u2168",
    "1\u20442 2\u00d73 \u221a4 \u20ac5 \u00a36",
    "\u3002\u4e16\u754c\uff0c\u4f60\u597d\uff01 1\uff0c2",
    "e\u0301.e\u0301 n\u0303o",
    "\U0001f469\u200d\U0001f4bb.\U0001f469",
    "\U0001d7d8.\U0001d7d9 \U00010100\U00010101x",
    "2026.",
    "x 2026.",
    "2026.\n",
    "2026..",
    "(1)",
    "1)",
    "(1",
    "..1",
    "...1",
    "a+1=2<3>4|5",
    "\u212aelvin \u0130stanbul \u1e9eS \u039f\u0394\u039f\u03a3",
    "a" * 300,
    "ab " * 70,
    "x.y." * 40,
    "1,2," * 40,
    "-" * 70,
    "\u4e16" * 130,
    "caf\u00e9 " * 30,
    "the the the the",
    "the the cat the",
    "a b a b a b a b",
    "A B a B",
    "\x00 \x01\x7f",
]

SNIPPETS = [
    "def area(width, height):\n    size = width * height\n    return size\n",
    'def name(self):\n\t"""Son p\u00e8re\'s na\u00efve fa\u00e7ade: \u4e16\u754c \U0001f389."""\n\treturn self.name\n',
    "async def read(self, path: str) -> bytes:\r\n    async with open(path) as f:\r\n"
    "        return await f.read()\r\n",
    "def total(values):\n    total = 0\n    for value in values:\n        total += value\n"
    "    return total\n",
    "x = {'a': 1, 'b': [1.5, 2e-3, -4]}  # it's, we'll: 1,000.5 (50%)\n",
    "def f(x):\n    if x is None or x <= 0 and not x != y:\n        raise ValueError(f'{x!r}: no')\n"
    "    return x ** 2 // 3 % 7 - 1-2\n",
    "@property\ndef a\u00f1o(self):\n    return self._a\u00f1o if self._a\u00f1o else 'n\u0303'\n",
    "class A(B):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n"
    "        self.cache = {k: v for k, v in kwargs.items() if k.startswith('c_')}\n",
]
PIECES = [
    "\n",
    "\r\n",
    "\t",
    " ",
    "  ",
    ".",
    ",",
    "-",
    "1",
    "2.5",
    "_",
    "x",
    "self",
    "e\u0301",
    "\u00f1",
    "\u4e16\u754c",
    "\U0001f389",
    "\U0001d4cd",
    "&quot;",
    "&amp;",
    "-\n",
    "<skipped>",
    "return",
    "()",
    "==",
    "\u00ab",
    "\u2026",
    "\u20ac",
    "\u0663",
    "\u00bd",
    "\u200d",
    "Z" * 70,
    "'",
    '"',
    "\u3000",
]


class Numbers:
    """A linear congruential generator (Knuth's MMIX)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def mutated(numbers, text, changes):
    for _ in range(changes):
        place = numbers.below(len(text) + 1)
        length = 1 + numbers.below(6)
        match numbers.below(5):
            case 0:
                text = text[:place] + PIECES[numbers.below(len(PIECES))] + text[place:]
            case 1:
                text = text[:place] + text[place + length :]
            case 2:
                piece = PIECES[numbers.below(len(PIECES))]
                text = text[:place] + piece + text[place + length :]
            case 3:
                text = (
                    text[:place] + text[place : place + length * 3] * 2 + text[place + length * 3 :]
                )
            case _:
                other = numbers.below(len(text) + 1)
                text = text[:place] + text[other : other + length * 4] + text[place:]
    return text


def pairs():
    found = list(PAIRS.values())
    for at, text in enumerate(CORNERS):
        found += [(text, text), (text, CORNERS[at - 1])]
    numbers = Numbers(42)
    for i in range(MADE):
        text = SNIPPETS[numbers.below(len(SNIPPETS))]
        if i % 5 == 0:
            text += SNIPPETS[numbers.below(len(SNIPPETS))]
        reference = mutated(numbers, text, numbers.below(4))
        changes = [1, 3, 8, 25, 60][numbers.below(5)]
        found.append((reference, mutated(numbers, reference, changes)))
    # Long ones, which need more than a word of bits in either direction.
    long = "".join(mutated(numbers, SNIPPETS[i % len(SNIPPETS)], 4) for i in range(24))
    found += [(long, mutated(numbers, long, n)) for n in (5, 40, 150)]
    found += [(long, long[::-1]), (long[:1500], long[700:]), (long, SNIPPETS[0])]
    return found


def metrics():
    """Name -> what gives a number for a reference and a hypothesis, in the order of the file."""
    import nltk.translate.bleu_score as nltk_bleu
    import sacrebleu
    from rapidfuzz.distance import Levenshtein
    from rouge_score.rouge_scorer import RougeScorer

    smooth = nltk_bleu.SmoothingFunction()
    rouge = RougeScorer(["rougeL"])
    made = {}

    def nltk_sentence(method):
        return lambda r, h: float(
            nltk_bleu.sentence_bleu([r.split()], h.split(), smoothing_function=method)
        )

    for name in ["method0", "method1", "method2", "method3", "method4"]:
        made[f"nltk_{name}"] = nltk_sentence(getattr(smooth, name))
    for tokens in ["13a", "none", "intl", "char"]:
        made[f"sacrebleu_corpus_{tokens}"] = lambda r, h, t=tokens: (
            sacrebleu.corpus_bleu([h], [[r]], tokenize=t).score
        )
    for tokens in ["13a", "none", "intl", "char"]:
        for method in ["none", "floor", "add-k", "exp"]:
            made[f"sacrebleu_sentence_{tokens}_{method}"] = lambda r, h, t=tokens, m=method: (
                sacrebleu.sentence_bleu(h, [r], tokenize=t, smooth_method=m).score
            )
    made["chrf2"] = lambda r, h: sacrebleu.sentence_chrf(h, [r]).score
    made["rouge_l"] = lambda r, h: float(rouge.score(r, h)["rougeL"].fmeasure)
    made["levenshtein"] = Levenshtein.distance
    made["levenshtein_similarity"] = Levenshtein.normalized_similarity
    return made


def corpus(pairs):
    """The corpus scores of these pairs as one corpus."""
    import nltk.translate.bleu_score as nltk_bleu
    import sacrebleu

    references, hypotheses = [r for r, _ in pairs], [h for _, h in pairs]
    smooth = nltk_bleu.SmoothingFunction()
    made = {}
    for name in ["method0", "method1", "method2", "method3", "method4"]:
        made[f"nltk_{name}"] = nltk_bleu.corpus_bleu(
            [[r.split()] for r in references],
            [h.split() for h in hypotheses],
            smoothing_function=getattr(smooth, name),
        )
    for tokens in ["13a", "none", "intl", "char"]:
        for method in ["none", "floor", "add-k", "exp"]:
            score = sacrebleu.corpus_bleu(
                hypotheses, [references], tokenize=tokens, smooth_method=method
            )
            made[f"sacrebleu_corpus_{tokens}_{method}"] = score.score
    made["chrf2"] = sacrebleu.corpus_chrf(hypotheses, [references]).score
    return made


def pass_at_k(n, c, k):
    """As in the paper that defines it (Chen et al. 2021, figure 3), with its product."""
    if n - c < k:
        return 1.0
    product = 1.0
    for i in range(n - c + 1, n + 1):
        product *= 1.0 - k / i
    return 1.0 - product


LETTERS = {"N": 1, "P": 2, "S": 3, "M": 4}


def class_of(code, patterns):
    return next((n for n, p in patterns if p.match(chr(code))), 0)


def classes():
    """Class (0 for the others) of each code point, as `regex` sees it."""
    import regex

    patterns = [(n, regex.compile(rf"\p{{{letter}}}")) for letter, n in LETTERS.items()]
    return [class_of(code, patterns) for code in range(0x110000)]


def main():
    import sacrebleu.tokenizers.tokenizer_13a as t13a
    import sacrebleu.tokenizers.tokenizer_intl as tintl
    from rouge_score.tokenize import tokenize

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    t13a, tintl = t13a.Tokenizer13a(), tintl.TokenizerV14International()
    asked, named = pairs(), metrics()
    found = classes()
    result = {
        "peers": PINS,
        "columns": list(named),
        "pairs": [[r, h, [metric(r, h) for metric in named.values()]] for r, h in asked],
        # Slices of the pairs: start, end, and their scores as a corpus.
        "corpora": [
            [start, end, corpus(asked[start:end])]
            for start, end in [(0, len(asked)), (0, 15), (20, 60), (200, 210), (4, 8), (4, 5)]
        ],
        "tokens": [
            [t, t13a(t).split(), tintl(t).split(), t.split(), tokenize(t, None)]
            for t in [*CORNERS, *(h for _, h in asked[-60:-6])]
        ],
        # Class -> how many code points it has, and their sum.
        "classes": {
            letter: [found.count(n), sum(code for code, m in enumerate(found) if m == n)]
            for letter, n in LETTERS.items()
        },
        "pass_at_k": [
            [n, c, k, pass_at_k(n, c, k)]
            for n in (1, 2, 5, 10, 50, 200, 1000)
            for c in (0, 1, 2, 3, 5, 13, 50, 199, 200, 1000)
            if c <= n
            for k in (1, 2, 5, 10, 100, 1000)
            if k <= n
        ],
    }
    rows = {"pairs", "corpora", "tokens", "pass_at_k"}
    parts = [
        f"{json.dumps(key)}: [\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        if key in rows
        else f"{json.dumps(key)}: {json.dumps(value)}"
        for key, value in result.items()
    ]
    OUT.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(__doc__)
    in_venv(*pinned(PINS))
    main()
