"""The files that `shape: galeras` writes have the keys and types of the published ones.

What it shows: the keys of the published JSON files and the types of their values are read from a
checkout of WM-SEMERU/galeras-benchmark: from the data files that it has, now or in its history,
from the columns that its notebooks printed, and from the dictionaries that its programs fill (they
are parsed, never run). The same is read from our files. What differs is printed, with the reason if
there is one.

How to run it: `git clone https://github.com/WM-SEMERU/galeras-benchmark` somewhere, then
`python3 tests/scripts/published_fields.py --checkout FOLDER FILE...` with files that were written
with `shape: galeras` (.json or .jsonl), such as those of `workflows/galeras.yaml`
(galeras/published/*.json) and `workflows/casestudy.yaml` (casestudy/published.json). Without
`--checkout` the key list in tests/reference/published_fields.json counts, which `--write` renews.
Nothing else of that repository is ever committed.

What it prints: a line per difference, then the count. Exit code 1 if one has no reason.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "tests" / "reference" / "published_fields.json"
DATA = "data/causal_prompting_pd_T2.json"
ADAPTER = "notebooks/dataset_format_adapter.ipynb"
EXPORT = "notebooks/mysql2json_data_extraction.ipynb"
BUILD = "docs/source/01_prompt_eng_dataset_build.ipynb"
MINER, DATABASE = "src/git_miner/main.py", "src/json2mysql.py"
TREATMENTS = ["control", "T1", "T2"]
# Columns that the notebooks made of others: what is nested, and the outcomes.
DERIVED = ("e_", "i_", "y_")

NOT_OURS, ONLY_OURS = "published, not in ours", "in ours, not published"
# Differences that are meant.
REASONS = {
    "galeras_id": "ours alone: the id of the row in our tables, by which it can be traced",
    "random_cut": "of the testbeds that are cut only",
    "control": "of files with prompts only",
    "T1": "of files with prompts only",
    "T2": "of files with prompts only",
}


class Checkout:
    """Files of a Git repository, of its newest commit or of the last one that had them."""

    def __init__(self, folder: Path):
        self.folder = folder

    def git(self, *words: str) -> str:
        command = ["git", "-c", "safe.directory=*", "-C", str(self.folder), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def read(self, path: str) -> str:
        commits = self.git("log", "--all", "--format=%H", "--diff-filter=AM", "--", path).split()
        if not commits:
            sys.exit(f"{self.folder} never had {path}: is it a clone of galeras-benchmark?")
        return self.git("show", f"{commits[0]}:{path}")

    def notebook(self, path: str) -> tuple[str, str]:
        """The code of a notebook, and the texts that it printed."""
        cells = json.loads(self.read(path))["cells"]
        code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        outputs = [out for cell in cells for out in cell.get("outputs", [])]
        printed = [out.get("data", {}).get("text/plain", out.get("text", "")) for out in outputs]
        return code, "\n".join("".join(text) for text in printed)


def kind_of_expression(node: ast.expr) -> str:
    """The type of what an expression gives: counts are integers, all else here is text."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Name) and called.id == "len":
        return "int"
    if isinstance(called, ast.Attribute) and called.attr == "count":
        return "int"
    return "text"


def filled(code: str, name: str) -> dict[str, str]:
    """The keys that a program gives to the dictionary `name`: `name["key"] = value`."""
    fields = {}
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        target = node.targets[0]
        of = isinstance(target.value, ast.Name) and target.value.id == name
        if of and isinstance(target.slice, ast.Constant):
            fields[target.slice.value] = kind_of_expression(node.value)
    return fields


def literals(code: str) -> list[dict[str, str]]:
    """The dictionaries that are written out in a program."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Dict) and len(node.keys) > 1:
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            found.append(dict(zip(keys, map(kind_of_expression, node.values), strict=False)))
    return found


def of_checkout(folder: Path) -> dict[str, object]:
    """Keys and types of the published files with prompts, as nested mappings."""
    checkout = Checkout(folder)
    _, printed = checkout.notebook(BUILD)
    listed = re.search(r"^\[('commit_id'.*?)\]$", printed, re.M | re.S)
    if not listed:
        sys.exit(f"{BUILD} lists no columns")
    columns = [name.removeprefix("w_") for name in re.findall(r"'(\w+)'", listed[1])]
    counts = [name.removeprefix("z_") for name in json.loads(checkout.read(DATA))]
    mined = literals(checkout.read(MINER))
    rows = next(fields for fields in mined if "commit_id" in fields)
    counted = next(fields for fields in mined if "docstring" in fields)
    # Magics of notebooks are no Python; the adapter and the export have none.
    adapter, _ = checkout.notebook(ADAPTER)
    export, _ = checkout.notebook(EXPORT)
    nested = {key: counted.get(key, "text") for key in filled_of_export(export)}
    # The database stores the list of errors as one text.
    joined = "''.join(item.get(\"ast_errors\"))" in checkout.read(DATABASE)
    numbers = {"id", "d_id", *counts} | {key for key, kind in rows.items() if kind == "int"}
    shape: dict[str, object] = {}
    for name in dict.fromkeys([*rows, *columns, *TREATMENTS]):
        if name.startswith(DERIVED) or name in ("prediction", "template"):
            continue
        shape[name] = "int" if name in numbers else "text"
    shape["ast_errors"] = "text" if joined else "list"
    shape["documentation"] = nested
    arm = {"prompt": filled(adapter, "prompt"), "predicted": filled(adapter, "predicted")}
    return {**shape, **dict.fromkeys(TREATMENTS, arm)}


def filled_of_export(code: str) -> list[str]:
    """The keys of `documentation` in the notebook that exports the database."""
    return re.findall(r"^\s*documentation\[\"(\w+)\"\]\s*=", code, re.M)


def kind(value: object) -> object:
    """The type of a value of a JSON file; null says nothing."""
    if isinstance(value, dict):
        return {key: kind(part) for key, part in value.items()}
    names = {bool: "bool", int: "int", float: "float", str: "text", list: "list"}
    return names.get(type(value))


def merge(one: object, other: object) -> object:
    """What two rows say of a key together: its type, or types if the rows disagree."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: merge(one.get(key), other.get(key)) for key in {**one, **other}}
    if one is None or other is None or one == other:
        return other if one is None else one
    names = {"mapping" if isinstance(kind, dict) else kind for kind in (one, other)}
    return " or ".join(sorted({part for name in names for part in str(name).split(" or ")}))


def of_file(path: Path) -> dict[str, object]:
    """Keys and types of a file of ours."""
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text) if path.suffix == ".json" else map(json.loads, text.splitlines())
    shape: object = {}
    for row in rows:
        shape = merge(shape, kind(row))
    if not shape:
        sys.exit(f"{path} has no rows")
    return shape


def differences(published: object, ours: object, at: str = "") -> list[tuple[str, str]]:
    """Every key that only one of two shapes has, or that has another type in the other."""
    if isinstance(published, dict) and isinstance(ours, dict):
        keys = sorted({*published, *ours})
        below = [(key, f"{at}.{key}" if at else key) for key in keys]
        found = []
        for key, place in below:
            if key not in ours:
                found.append((place, NOT_OURS))
            elif key not in published:
                found.append((place, ONLY_OURS))
            else:
                found += differences(published[key], ours[key], place)
        return found
    same = ours is None or published == ours
    return [] if same else [(at, f"{published} published, {ours} in ours")]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, help="a clone of galeras-benchmark")
    parser.add_argument("--write", action="store_true", help=f"renew {REFERENCE.name}")
    parser.add_argument("files", nargs="*", type=Path, help="files of ours, .json or .jsonl")
    args = parser.parse_args()
    committed = json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}
    published = of_checkout(args.checkout) if args.checkout else committed
    if args.write:
        REFERENCE.write_text(json.dumps(published, indent=1) + "\n")
    elif args.checkout and published != committed:
        print(f"{REFERENCE.name} is not what the checkout says: renew it with --write")
        return 1
    unexplained = 0
    for path in args.files:
        found = differences(published, of_file(path))
        for place, what in found:
            # A reason is for a key that one of the two lacks, never for another type.
            reason = REASONS.get(place) if what in (NOT_OURS, ONLY_OURS) else None
            unexplained += reason is None
            print(f"{path}: {place}: {what} ({reason or 'NO REASON'})")
        print(f"{path}: {len(found)} differences")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
