"""Agreement of `parses` and `methods` with CPython's `ast` on real files.

What it shows: of every Python file below some folders, whether `parses(code)` answers as
`ast.parse` of Python 3.13 does, and whether `methods` lists the functions of `ast` with their
names, first and last lines. At least 99.99 % of the answers and all functions must agree.

How to run it: `python3.13 benches/parses_vs_ast.py [--folder FOLDER ...] [--galeras PATH]
[--work FOLDER]`. Without `--folder` it takes the library of this Python, with the test suite and
the installed packages. Good others are the libraries of Python 2.7, 3.11 and the newest one, and a
folder of packages of PyPI (`pip download --no-deps`, unpacked).

What it prints: each difference; per folder the files, those that Python accepts, the functions and
the differences. A method may end below the function of `ast`: with comments that are not left of
its body. Those are counted, and any other line there is a difference. Exit code 1 if too little
agrees. Files in an encoding that cannot be read, and those for which Python runs out of memory or
recursion, are counted and left out.
"""

import ast
import io
import json
import sys
import sysconfig
import tokenize
import warnings
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, run, table, work_folder  # noqa: E402

AGREEMENT = 0.9999

WORKFLOW = """galeras: 1
name: parses
steps:
  files: { op: read, with: { path: files.jsonl } }
  answers:
    op: sql
    from: files
    with: { query: "SELECT id, parses(code) AS parses FROM input", key: [id] }
  methods: { op: methods, with: { dir: src, nested: true } }
outputs:
  answers: { from: answers, path: answers.jsonl }
  methods: { from: methods, path: methods.jsonl }
  rejects: { from: methods.rejects, path: rejects.jsonl }
"""


def decoded(content: bytes) -> str | None:
    """The text of a file as Python reads it; None in an unknown encoding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


def parsed(text: str) -> ast.Module | bool | None:
    """The module; False for a text that Python rejects, None for one that is too much for it."""
    try:
        return ast.parse(text) if text.strip() else False
    except (SyntaxError, ValueError):
        return False
    except (MemoryError, RecursionError):
        return None


def functions(module: ast.Module) -> list:
    """Name with those around it, first line, last line, column of the body; in document order."""
    found, open_nodes = [], [(module, [])]
    while open_nodes:
        node, names = open_nodes.pop()
        for child in ast.iter_child_nodes(node):
            inner = names
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = [*names, child.name]
                if not isinstance(child, ast.ClassDef):
                    column = child.body[0].col_offset
                    found.append((child.lineno, ".".join(inner), child.end_lineno, column))
            open_nodes.append((child, inner))
    # Of several in a line, the outer one is first and has the shorter name.
    return sorted(found, key=lambda function: (function[0], len(function[1])))


def only_comments(lines: list, column: int) -> bool:
    """True if lines below a body are blank or comments that may belong to it."""
    texts = [line for line in lines if line.strip()]
    indent = [len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip()) for line in texts]
    return (
        bool(texts)
        and bool(lines[-1].strip())
        and all(line.lstrip().startswith("#") for line in texts)
        and all(width >= column for width in indent)
    )


def difference(module: ast.Module, text: str, listed: list) -> tuple:
    """What differs between a module and its listed methods, and how many end with comments."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    wanted = functions(module)
    listed = sorted(listed, key=lambda m: (m["start_line"], len(m["qualified_name"])))
    names = [(m["start_line"], m["qualified_name"]) for m in listed]
    if names != [function[:2] for function in wanted]:
        odd = set(names) ^ {function[:2] for function in wanted}
        return f"other functions: {sorted(odd)[:3]}", 0
    longer = 0
    for method, (line, name, last, column) in zip(listed, wanted, strict=True):
        end = method["end_line"]
        if end != last:
            if end < last or not only_comments(lines[last:end], column):
                return f"{name} in line {line} ends in line {end}, for ast in {last}", longer
            longer += 1
    return None, longer


def read_lines(path: Path) -> list:
    with path.open() as file:
        return [json.loads(line) for line in file]


def compare(folder: Path, galeras: str, work: Path, verdict: Verdict) -> list:
    """Compares the files of a folder; returns its row of the table."""
    source = work / "src"
    source.mkdir(parents=True)
    modules, unread, files = {}, 0, 0
    with (work / "files.jsonl").open("w") as rows:
        for path in sorted(folder.rglob("*.py")):
            if path.is_symlink() or not path.is_file():
                continue
            files += 1
            content = path.read_bytes()
            text = decoded(content)
            module = None if text is None else parsed(text)
            if module is None:
                unread += 1
                continue
            name = str(path.relative_to(folder))
            modules[name] = (module, text)
            rows.write(json.dumps({"id": name, "code": text}) + "\n")
            copy = source / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
    (work / "parses.yaml").write_text(WORKFLOW)
    run(galeras, work / "parses.yaml", work / "cache")
    out = work / "cache-out"

    wrong = 0
    for row in read_lines(out / "answers.jsonl"):
        module, _ = modules[row["id"]]
        if row["parses"] != (module is not False):
            wrong += 1
            verb = "accepts" if module else "rejects"
            print(f"{folder / row['id']}: parses is {row['parses']}, Python {verb} it")
    methods = {}
    for row in read_lines(out / "methods.jsonl"):
        methods.setdefault(row["path"], []).append(row)
    rejected = {row["path"]: row["reason"] for row in read_lines(out / "rejects.jsonl")}

    found = longer = other = 0
    for name, (module, text) in modules.items():
        if module is False:
            continue
        listed = methods.get(name, [])
        found += len(listed)
        differs, comments = difference(module, text, listed)
        longer += comments
        differs = rejected.get(name, differs)
        if differs:
            other += 1
            print(f"{folder / name}: {differs}")
    accepted = sum(module is not False for module, _ in modules.values())
    share = 1 - wrong / max(len(modules), 1)
    verdict.check(share >= AGREEMENT, f"{folder}: parses agrees on {share:.4%}")
    verdict.check(other == 0, f"{folder}: {other} files have other methods")
    return [folder, files, unread, accepted, wrong, f"{share:.4%}", found, longer, other]


def main() -> int:
    if sys.version_info[:2] != (3, 13):
        sys.exit("needs Python 3.13, whose grammar `parses` follows")
    parser = arguments(__doc__)
    parser.add_argument("--folder", type=Path, action="append", help="a folder of Python files")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    folders = args.folder or [Path(sysconfig.get_path("stdlib"))]
    work, verdict = work_folder(args), Verdict()
    rows = [
        compare(folder.resolve(), args.galeras, work / str(at), verdict)
        for at, folder in enumerate(folders)
    ]
    print()
    heads = "folder files unread accepted wrong agreement methods with_comments differ"
    table(heads.split(), rows)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
