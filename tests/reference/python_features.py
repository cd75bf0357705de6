#!/usr/bin/env python3
"""Regenerates python_features.json, what the tests of src/functions/python compare with.

Run from the root of the repository, with the `Lib` folder of the unpacked crate
rustpython-pylib 0.6.0 as the argument:

    python3 tests/reference/python_features.py path/to/rustpython-pylib-0.6.0/Lib

It makes a virtual environment in a temporary folder, installs the pinned peers there and
runs itself in it. The snippets under "snippets" in the JSON file are kept by hand: the
script reads their text from the file and writes their numbers. The methods under "methods"
are 200 of the library's, chosen by the SHA-256 of their place, so the choice does not
depend on the machine. CPython's library is under the PSF licence.
"""

import ast
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

PINS = ["lizard==1.24.3", "tree-sitter==0.26.1", "tree-sitter-python==0.25.0"]
OUT = pathlib.Path(__file__).with_suffix(".json")
SAMPLE = 200


def bootstrap():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "-q", *PINS], check=True)
        env = dict(os.environ, GALERAS_PEERS="1")
        return subprocess.run([python, *sys.argv], env=env).returncode


def preorder(root):
    stack = [(root, 1)]
    while stack:
        node, level = stack.pop()
        yield node, level
        stack.extend((child, level + 1) for child in reversed(node.children))


def syntax(parser, code):
    root = parser.parse(code.encode()).root_node
    nodes = list(preorder(root))
    errors = [node.text.decode() for node, _ in nodes if node.type == "ERROR"]
    height = max(level for _, level in nodes)
    return {
        "n_ast_errors": len(errors),
        "ast_errors": errors,
        "ast_levels": height if root.child_count else 0,
        "n_ast_nodes": len(nodes) - 1,
        "n_identifiers": len({n.text for n, _ in nodes if n.type == "identifier"}),
    }


def text(code):
    parts = re.split(r"\"\"\"|'''", code)
    kept = "".join(parts[0::2])
    return {
        "docstring": "".join(parts[1::2]) if len(parts) > 1 else None,
        "code": kept,
        "n_whitespaces": kept.count(" "),
        "n_words": len(kept.split()),
        "vocab_size": len(set(kept.split())),
    }


def sizes(lizard, code):
    found = lizard.analyze_file.analyze_source_code("m.py", code).function_list
    if not found:
        return None
    line = min(function.start_line for function in found)
    f = [function for function in found if function.start_line == line][-1]
    return {"token_count": f.token_count, "nloc": f.nloc, "complexity": f.cyclomatic_complexity}


def python_ast(code):
    """Parameters, returns and docstring by Python's own parser; None if it refuses."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return None
    function = tree.body[0] if tree.body else None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    a = function.args
    names = [x.arg for x in a.posonlyargs + a.args]
    names += [a.vararg.arg] if a.vararg else []
    names += [x.arg for x in a.kwonlyargs]
    names += [a.kwarg.arg] if a.kwarg else []
    returns, todo = 0, list(function.body)
    while todo:
        node = todo.pop()
        returns += isinstance(node, ast.Return)
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        if not isinstance(node, inner):
            todo.extend(ast.iter_child_nodes(node))
    return {
        "parameters": names,
        "n_returns": returns,
        "has_docstring": ast.get_docstring(function, clean=False) is not None,
    }


def library(parser, root):
    chosen = []
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        try:
            source.decode()
        except UnicodeDecodeError:
            continue
        for node, _ in preorder(parser.parse(source).root_node):
            if node.type != "function_definition" or len(node.text) > 6000:
                continue
            place = f"{path.relative_to(root).as_posix()}:{node.start_point[0] + 1}"
            rank = hashlib.sha256(place.encode()).hexdigest()
            chosen.append((rank, place, node.text.decode()))
    return [(place, code) for _, place, code in sorted(chosen)[:SAMPLE]]


def main():
    import lizard
    import tree_sitter
    import tree_sitter_python

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))

    def measured(code):
        return {
            "code": code,
            "syntax": syntax(parser, code),
            "text": text(code),
            "lizard": sizes(lizard, code),
            "python": python_ast(textwrap.dedent(code)),
        }

    snippets = {k: v["code"] for k, v in json.loads(OUT.read_text())["snippets"].items()}
    methods = library(parser, pathlib.Path(sys.argv[1]))
    result = {
        "peers": PINS,
        "snippets": {name: measured(code) for name, code in snippets.items()},
        "methods": {place: measured(code) for place, code in methods},
    }
    OUT.write_text(json.dumps(result, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main() if os.environ.get("GALERAS_PEERS") else bootstrap())
