#!/usr/bin/env python3
"""Regenerates dedup.json, what tests/cli/dedup.rs compares the operator `dedup` with.

    python3 tests/reference/dedup.py

It makes a virtual environment in a temporary folder, installs the pinned peer there and runs
itself in it. Documents are lists of tokens, written with a space between two. The random ones
come from a generator of its own, so that they do not depend on Python's version; most are
near-duplicates of another one, around the thresholds.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

PINS = ["dpu_utils==0.6.1"]
OUT = pathlib.Path(__file__).with_suffix(".json")
DOCUMENTS = 300

# What is asked of the random documents: as by default, and far from it.
SETTINGS = [
    {},
    {"keywords": "drop"},
    {"threshold": 0.6, "multiset_threshold": 0.6},
    {"threshold": 0.5, "multiset_threshold": 0.0, "min_tokens": 1},
    {"threshold": 0.9, "multiset_threshold": 0.85, "min_tokens": 30},
    {"threshold": 1.0, "multiset_threshold": 0.0},
    {"threshold": 0.3, "multiset_threshold": 1.0},
]


def bootstrap():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "-q", *PINS], check=True)
        env = dict(os.environ, GALERAS_PEERS="1")
        return subprocess.run([python, *sys.argv], env=env).returncode


def t(first, end):
    return [f"t{i}" for i in range(first, end)]


def cases():
    """Those of the notes on the reference implementations, and some more."""
    keywords = ["def", "return"] * 15
    return {
        "exact": {"a": t(0, 25), "b": t(0, 25)},
        "too_short_19": {"a": t(0, 19), "b": t(0, 19)},
        "long_enough_20": {"a": t(0, 20), "b": t(0, 20)},
        "long_enough_by_repetition": {"a": ["x"] * 20, "b": ["x"] * 20},
        "boundary_set_0.8": {"a": t(0, 20), "b": t(0, 25)},
        "below_set": {"a": t(0, 20), "b": t(1, 25)},
        "set_ok_multiset_fails": {"a": t(0, 20), "b": t(0, 20) + ["t0"] * 10},
        "multiset_boundary_0.7": {"a": t(0, 21), "b": t(0, 21) + ["t0"] * 9},
        "multiset_ok_set_fails": {"a": ["x"] * 80 + t(0, 10), "b": ["x"] * 80 + t(10, 20)},
        "transitive_chain": {"a": t(0, 20), "b": t(0, 25), "c": t(4, 25)},
        "two_clusters": {
            "a": t(0, 25),
            "b": t(50, 75),
            "c": t(0, 24),
            "d": t(51, 75),
            "e": t(0, 25) + t(50, 75),
        },
        "no_duplicates_raises": {"a": t(0, 25), "b": [f"z{i}" for i in range(25)]},
        "no_documents_raises": {},
        "one_document": {"a": t(0, 25)},
        "bpe_space_tokens_ignored": {"a": ["Ġdef"] * 30 + ["x"] * 19, "b": ["x"] * 20},
        "non_ascii_start_ignored": {"a": ["ñ"] * 30, "b": ["nñ"] * 30},
        "digits_ignored": {"a": t(0, 20) + ["1", "2e5", "0x1F"] * 20, "b": t(0, 20)},
        "language_python_drops_keywords": {"a": keywords, "b": t(0, 25)},
        "language_python_compares_the_rest": {
            "a": t(0, 20) + keywords,
            "b": t(0, 20) + ["while", "if", "else"],
        },
    }


class Numbers:
    """A linear congruential generator (Knuth's MMIX)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def words():
    parts = ["get", "set", "file", "name", "value", "index", "path", "_x", "Node", "tmp"]
    return [a + b for a in parts for b in ["", "_a", "_b2", "Id", "s", "_of"]] + [
        *["def", "return", "self", "if", "else", "for", "in", "not", "None", "lambda"],
        *["12", "ñandú", "été1", "Ω", "eñe", "0x1f"],
    ]


def documents():
    numbers, vocabulary, made = Numbers(42), words(), []

    def some(n):
        return [vocabulary[numbers.below(len(vocabulary))] for _ in range(n)]

    while len(made) < DOCUMENTS:
        if len(made) < 40 or numbers.below(8) == 0:
            made.append(some(12 + numbers.below(50)))
            continue
        tokens = list(made[numbers.below(len(made))])
        for _ in range(numbers.below(9)):
            place = numbers.below(len(tokens))
            match numbers.below(4):
                case 0:
                    tokens[place] = some(1)[0]
                case 1:
                    tokens[place:place] = some(1)
                case 2 if len(tokens) > 5:
                    del tokens[place]
                case _:
                    tokens[place:place] = [tokens[place]] * (1 + numbers.below(4))
        made.append(tokens)
    # Ids do not tell which of two documents is older.
    return {f"{(i * 7919) % 1000:03}": tokens for i, tokens in enumerate(made)}


def detected(documents, threshold=0.8, multiset_threshold=0.7, min_tokens=20, keywords="keep"):
    from dpu_utils.codeutils.deduplication import DuplicateDetector

    detector = DuplicateDetector(threshold, multiset_threshold, min_tokens)
    language = "python" if keywords == "drop" else None
    accepted = [i for i, tokens in documents.items() if detector.add_file(i, tokens, language)]
    try:
        clusters = sorted(sorted(cluster) for cluster in detector.compute_duplicates())
    except ValueError as error:
        # It refuses to look for duplicates among no documents at all.
        return {"compared": accepted, "error": str(error), "clusters": []}
    return {"compared": sorted(accepted), "clusters": clusters}


def written(documents):
    return {i: " ".join(tokens) for i, tokens in documents.items()}


def main():
    result = {"peers": PINS, "cases": {}}
    for name, documents_of in cases().items():
        keywords = {"keywords": "drop"} if name.startswith("language_python") else {}
        found = detected(documents_of, **keywords)
        result["cases"][name] = {"texts": written(documents_of), "with": keywords, **found}
    many = documents()
    assert len(many) == DOCUMENTS
    asked = [{"with": setting, **detected(many, **setting)} for setting in SETTINGS]
    result["many"] = {"texts": written(many), "asked": asked}
    OUT.write_text(json.dumps(result, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    sys.exit(main() if os.environ.get("GALERAS_PEERS") else bootstrap())
