"""The notebooks of the manual, executed: what is committed is what comes out.

What it shows: every notebook of docs/notebooks runs from top to bottom in an empty folder, and each
cell gives the output that is committed with it, to the letter. So the outputs are of this program,
they are the same on every machine, and none of them has a path, a time or the id of a run (that is
looked for, too). What the text claims of an output is listed below, and checked of what came out.

How to run it: `python3 tests/scripts/notebooks.py [--galeras PATH]`; GALERAS_PROGRAM names the
program, too. The module is that of this clone. nbclient and the kernel are installed from their
registry into a virtual environment of their own. `--update` writes what came out into the
notebooks, to be read before it is committed.

What it prints: a line per notebook with its cells and its time, what differs, and the violations.
Exit code 1 if there is one.
"""

import difflib
import os
import re
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import ROOT, Verdict, arguments, in_venv, pinned, work_folder  # noqa: E402

VERSIONS = {
    "ipykernel": "7.4.0",
    "nbclient": "0.11.0",
    "nbformat": "5.11.1",
    "pandas": "3.1.1",
    "pyarrow": "26.0.1",
}
NOTEBOOKS = ROOT / "docs" / "notebooks"
SECONDS_A_CELL = 300

# What the text says of an output: notebook, cell, and what then stands in the output.
FACTS = [
    ("first_benchmark", "check", r"^\[\]$"),  # Nothing is wrong.
    ("first_benchmark", "graph", r"<svg"),
    ("first_benchmark", "run", r"^\('ok', 20, 20\)$"),
    ("first_benchmark", "rerun", r"^0$"),  # Nothing is computed.
    ("first_benchmark", "table", r"^200 rows"),
    ("first_benchmark", "sql", r"half +0\.056 +0\.400 +0\.374\n.*most +0\.074 +0\.541 +0\.699"),
    ("first_benchmark", "answer", r"return False\n +return True\n\ndef (.*\n)+ +return False"),
    ("first_benchmark", "larger", r"^methods +hit .*\nunique +hit .*\nsampled +ran +ARG_CHANGED"),
    ("first_benchmark", "reused", r"True"),
    ("first_benchmark", "edit", r"testbed\[share=half\] +hit(.*\n)+testbed\[share=most\] +run "),
    ("first_benchmark", "after-the-edit", r"scores\[share=half\]': 'hit'"),
    ("first_benchmark", "after-the-edit", r"scores\[share=most\]': 'ran'"),
    ("first_benchmark", "mistakes", r"unknown-column(.*\n)+.*unknown-column"),  # All at once.
    ("first_benchmark", "not-computed", r"is not computed yet"),
]
# What would differ on another machine or another day.
PERSONAL = [
    (r"/root\b|/home/|/Users/|/tmp/", "a path of a machine"),
    (r"\b20\d{6}T\d{6}", "the id of a run"),
    (r"\b\d+\.\d+ m?s\b", "a time"),
    (r"\bat 0x[0-9a-f]+", "an address"),
]


def executed(path: Path, folder: Path):
    """The notebook with the outputs that it gives in an empty folder."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    folder.mkdir()
    client = nbclient.NotebookClient(
        notebook,
        timeout=SECONDS_A_CELL,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    # The kernel tells its own version.
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def text(cell) -> str:
    """What a cell gave, its streams and its results, as lines."""
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            parts.append(output.text)
        for kind in ("text/plain", "text/html"):
            if kind in output.get("data", {}):
                parts.append(output.data[kind])
        if output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}")
    return "\n".join(part.rstrip("\n") for part in parts)


def compare(name: str, committed, now, verdict: Verdict) -> None:
    """Reports the cells whose output is another than the committed one."""
    before = {cell.id: cell for cell in committed.cells}
    for cell in now.cells:
        old, new = text(before[cell.id]), text(cell)
        if old != new:
            verdict.check(False, f"{name}: the cell `{cell.id}` gives something else")
            lines = difflib.unified_diff(
                old.splitlines(), new.splitlines(), "committed", "now", lineterm="", n=0
            )
            print("\n".join(f"    {line[:200]}" for line in list(lines)[:40]))


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--update", action="store_true", help="write the outputs")
    program = os.environ.get("GALERAS_PROGRAM")
    if program:
        parser.set_defaults(galeras=program)
    args = parser.parse_args()
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = os.environ.get("GALERAS_VENV", base / "galeras" / "notebooks-venv")
    in_venv(*pinned(VERSIONS), folder=Path(folder))
    import nbformat
    from nbclient.exceptions import CellExecutionError

    work, verdict = work_folder(args), Verdict()
    for name in [name for name in os.environ if name.startswith(("GALERAS_", "JUPYTER_"))]:
        del os.environ[name]
    os.environ.update(
        GALERAS_PROGRAM=os.path.abspath(args.galeras),
        PYTHONPATH=str(ROOT / "python"),
        PYTHONDONTWRITEBYTECODE="1",
        IPYTHONDIR=str(work / "ipython"),
        JUPYTER_CONFIG_DIR=str(work / "jupyter-config"),
        JUPYTER_RUNTIME_DIR=str(work / "jupyter-runtime"),
    )
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    unknown = {name for name, _, _ in FACTS} - {path.stem for path in paths}
    verdict.check(bool(paths) and not unknown, f"there are no notebooks {unknown}")
    for path in paths:
        started = time.perf_counter()
        try:
            notebook = executed(path, work / path.stem)
        except CellExecutionError as error:
            verdict.check(False, f"{path.stem}: a cell failed")
            print(error)
            continue
        seconds = time.perf_counter() - started
        cells = {cell.id: text(cell) for cell in notebook.cells if cell.cell_type == "code"}
        print(f"{path.stem}: {len(cells)} cells in {seconds:.1f} s", flush=True)
        for at, cell, pattern in FACTS:
            if at == path.stem:
                found = re.search(pattern, cells.get(cell, ""), re.MULTILINE)
                verdict.check(bool(found), f"{at}: the cell `{cell}` does not give {pattern}")
        for cell, said in cells.items():
            for pattern, what in PERSONAL:
                found = re.search(pattern, said)
                verdict.check(
                    not found, f"{path.stem}: `{cell}` gives {what}: {found and found[0]}"
                )
        if not args.update:
            compare(path.stem, nbformat.read(path, as_version=4), notebook, verdict)
        elif not verdict.violations:
            nbformat.write(notebook, path)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
