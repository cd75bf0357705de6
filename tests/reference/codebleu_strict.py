#!/usr/bin/env python3
"""Regenerates codebleu_strict.json: components of CodeBLEU by the formulas of the paper.

    pip install tree-sitter==0.25.2 tree-sitter-python==0.25.0
    python3 tests/reference/codebleu_strict.py

Ren et al. 2020, arXiv:2009.10297, with one reference for each hypothesis. Tokens are separated by
white space; c and r are the numbers of tokens of hypothesis and reference.

- BLEU: `BP * exp(sum(log(p_n) / 4))` for n = 1 to 4. `p_n` is the number of n-grams that both texts
  share, each at most as often as in either (clipped), by the number of the hypothesis' n-grams.
  BP is 1 if c > r, else `exp(1 - r / c)`.
- Weighted n-grams, equation 2: each n-gram of both sums has a weight, 5 for keywords and 1 for
  other tokens. Both sums run over the hypothesis ("Candidates"), so this is a precision. Only
  unigrams have weights.
- Syntax: `Count_clip(T_cand) / Count(T_ref)` over subtrees, which are the root and all nodes with
  children. Names and other leaves are compared by their kinds.
- Data flow: the same of its items. They are those of the package codebleu (see codebleu.py),
  where Galeras does not mend that program, so this file has none.

Three things are not in the paper. An order without a match counts as 0.1 matches (NLTK's smoothing
method 1), because most methods share no 4-gram. The paper's weighted n-grams end with unigrams
(N = 1); the published programs take n = 1 to 4, so that a text without keywords has the same value
in both components. Comments, line continuations and statements of only a string are not syntax.
"""

import json
import math
import pathlib
import re
from collections import Counter

import tree_sitter_python
from tree_sitter import Language, Parser

OUT = pathlib.Path(__file__).with_suffix(".json")
PARSER = Parser(Language(tree_sitter_python.language()))
KEYWORDS = set(
    "False None True and as assert async await break class continue def del elif else except"
    " finally for from global if import in is lambda nonlocal not or pass raise return try while"
    " with yield match case type".split()
)

# Texts in which precision and recall, or clipped and unclipped matches, differ.
PAIRS = {
    "shorter": (
        "alpha beta gamma delta eps zeta eta theta iota kappa",
        "alpha beta gamma delta eps zeta",
    ),
    "longer": (
        "alpha beta gamma delta eps zeta",
        "alpha beta gamma delta eps zeta eta theta iota kappa",
    ),
    "operators": ("x = a + b + c + d + e + f + g", "x = a + b + c"),
    "more_operators": ("x = a + b + c", "x = a + b + c + d + e + f + g"),
    "own_keywords": ("x = a\ny = b\nz = x + y", "if a : x = a\nfor b in x : y = b\nreturn x + y"),
    "lost_keywords": ("if a : return b\nelse : return c", "a = b\nb = c\nc = a"),
    "repeated_keyword": ("return a", "return return return a"),
    "one_subtree_for_three": ("x = 1\ny = 2\nz = 3", "x = 1"),
    "three_subtrees_for_one": ("x = 1", "x = 1\ny = 2\nz = 3"),
    "branches": ("if a:\n    b = 1\nif c:\n    d = 2\nif e:\n    f = 3", "if a:\n    b = 1\nx = 2"),
    "docstring": ("def f(a):\n    return a", "def f(a):\n    '''doc'''\n    # note\n    return a"),
    "one_word": ("x", "x"),
    "one_keyword": ("pass", "pass"),
}


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def weight(gram):
    return 5 if len(gram) == 1 and gram[0] in KEYWORDS else 1


def bleu(reference, hypothesis, weight):
    reference, hypothesis = reference.split(), hypothesis.split()
    if not hypothesis:
        return 0.0
    logs = []
    for n in range(1, 5):
        have, want = ngrams(hypothesis, n), ngrams(reference, n)
        matched = sum(weight(gram) * count for gram, count in (have & want).items())
        total = max(1, sum(weight(gram) * count for gram, count in have.items()))
        if n == 1 and not matched:
            return 0.0
        logs.append(math.log((matched or 0.1) / total) / 4)
    r, c = len(reference), len(hypothesis)
    return (1 if c > r else math.exp(1 - r / c)) * math.exp(sum(logs))


def is_literal(string):
    prefix = re.match(rb"[A-Za-z]*", string.text)[0]
    return not set(prefix.lower()) & set(b"ft")


def is_ignored(node):
    if node.type in ("comment", "line_continuation"):
        return True
    if node.type != "expression_statement" or node.child_count != 1:
        return False
    (only,) = node.children
    if only.type == "string":
        return is_literal(only)
    parts = [part for part in only.children if part.type == "string"]
    return only.type == "concatenated_string" and all(map(is_literal, parts))


def write(node, found):
    """The s-expression of a node; adds those of its subtrees to `found`."""
    parts, kept = [], 0
    for i, child in enumerate(node.children):
        if is_ignored(child):
            continue
        kept += 1
        text, field = write(child, found), node.field_name_for_child(i)
        if child.is_named:
            parts.append(f"{field}: {text}" if field else text)
    text = "(" + " ".join([node.type, *parts]) + ")"
    if kept or node.parent is None:
        found[text] += 1
    return text


def subtrees(text):
    """None for a text with a syntax error, whose s-expressions have more than kinds."""
    root = PARSER.parse(text.strip().encode()).root_node
    found = Counter()
    write(root, found)
    return None if root.has_error else found


def derive(reference, hypothesis):
    want, have = subtrees(reference), subtrees(hypothesis)
    valid = want is not None and have is not None
    return {
        "ngram": bleu(reference, hypothesis, lambda gram: 1),
        "weighted": bleu(reference, hypothesis, weight),
        "subtrees": [(want & have).total(), want.total()] if valid else None,
    }


def main():
    peers = json.loads((OUT.parent / "codebleu.json").read_text())["pairs"]
    own = {name: {"reference": r, "hypothesis": h} for name, (r, h) in PAIRS.items()}
    result = {
        "pairs": own,
        "own": {name: derive(**pair) for name, pair in own.items()},
        "peers": {name: derive(**pair) for name, pair in peers.items()},
    }
    # A line for each pair.
    parts = []
    for part, pairs in result.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(pair)}" for name, pair in pairs.items()]
        parts.append(f' "{part}": {{\n' + ",\n".join(lines) + "\n }")
    OUT.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
