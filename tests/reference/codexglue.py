#!/usr/bin/env python3
"""Regenerates codexglue.json: the corpus scores of the program that the paper used.

    git clone https://github.com/WM-SEMERU/galeras-benchmark
    pip install tree-sitter==0.25.2 tree-sitter-python==0.25.0
    python3 tests/reference/codexglue.py galeras-benchmark/src/CodeBLEU

The program is CodeXGLUE's (Microsoft, MIT licence), `calc_code_bleu.py` of commit 329fc44. The
pairs are those of codebleu.json, as one corpus. Three things are changed: the calls that newer
releases of tree-sitter renamed, the grammar, which is the one that Galeras links, and `set`, which
keeps the order of insertion here, because the program's data flow depends on Python's hash seed.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

OUT = pathlib.Path(__file__).with_suffix(".json")

RENAMED = {
    "cur_node.sexp()": "str(cur_node)",
    "from tree_sitter import Language, Parser": "from linked import Language, Parser",
}

LINKED = """
import tree_sitter
import tree_sitter_python

def Language(path, name):
    return tree_sitter.Language(tree_sitter_python.language())

class Parser:
    def set_language(self, language):
        self.parse = tree_sitter.Parser(language).parse
"""


class Ordered(dict):
    """A set in the order of insertion."""

    def __init__(self, of=()):
        super().__init__(dict.fromkeys(of))

    def add(self, item):
        self[item] = None


def adapt(source, folder):
    """Copies the program with its calls of tree-sitter renamed."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    for path in pathlib.Path(folder).rglob("*.py"):
        text = path.read_text()
        for old, new in RENAMED.items():
            text = text.replace(old, new)
        path.write_text(text)
    (pathlib.Path(folder) / "linked.py").write_text(LINKED)


def measure(folder, pairs):
    """The scores as `calculate` of calc_code_bleu.py has them, with one reference for each text."""
    sys.path.insert(0, folder)
    import bleu
    import dataflow_match
    import syntax_match
    import weighted_ngram_match
    from parser import DFG

    dataflow_match.set = DFG.set = Ordered
    keywords = (pathlib.Path(folder) / "keywords/python.txt").read_text().split()
    references = [[pair["reference"].strip()] for pair in pairs]
    hypotheses = [pair["hypothesis"].strip() for pair in pairs]
    tokens = [[text.split() for text in texts] for texts in references]
    weighted = [
        [[words, {word: 1 if word in keywords else 0.2 for word in words}] for words in texts]
        for texts in tokens
    ]
    split = [text.split() for text in hypotheses]
    found = {
        "ngram": bleu.corpus_bleu(tokens, split),
        "weighted": weighted_ngram_match.corpus_bleu(weighted, split),
        "syntax": syntax_match.corpus_syntax_match(references, hypotheses, "python"),
        "dataflow": dataflow_match.corpus_dataflow_match(references, hypotheses, "python"),
    }
    return {"pairs": len(pairs), **found, "codebleu": sum(0.25 * score for score in found.values())}


def main():
    pairs = json.loads(OUT.with_name("codebleu.json").read_text())["pairs"]
    with tempfile.TemporaryDirectory() as folder:
        adapt(sys.argv[1], folder)
        os.chdir(folder)
        corpus = measure(folder, list(pairs.values()))
    OUT.write_text(json.dumps({"corpus": corpus}, indent=1) + "\n")


if __name__ == "__main__":
    OUT = OUT.resolve()
    main()
