"""What the measuring scripts share: starting Galeras, reading its events and manifests,
realistic inputs of any size, a virtual environment.

Not a script of its own. `tests/scripts/*.py` and `benches/*.py` import it; all of them take
`--galeras PATH` (or the variable GALERAS_BIN; default: target/release/galeras of this
clone, or of CARGO_TARGET_DIR), need Python 3.11 and nothing else unless they say so.
"""

import argparse
import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "workflows" / "quickstart.yaml"


def arguments(doc: str) -> argparse.ArgumentParser:
    """A parser with the options that every script has."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    default = os.environ.get("GALERAS_BIN", str(target / "release" / "galeras"))
    parser.add_argument("--galeras", default=default, help="the program (release build)")
    parser.add_argument("--work", type=Path, help="keep all files in this empty folder")
    return parser


def work_folder(args: argparse.Namespace) -> Path:
    """The folder of `--work`, or a temporary one that ends with the script."""
    if args.work:
        args.work.mkdir(parents=True, exist_ok=True)
        if any(args.work.iterdir()):
            sys.exit(f"{args.work} is not empty")
        return args.work.resolve()
    holder = tempfile.TemporaryDirectory(prefix="galeras-")
    args.holder = holder
    return Path(holder.name)


@dataclass
class Run:
    """A finished run: its exit code, wall time and events."""

    code: int
    wall: float
    events: list = field(default_factory=list)
    stderr: str = ""

    @property
    def steps(self) -> dict:
        """Step name -> its summary, from the last event."""
        last = self.events[-1] if self.events else {}
        if last.get("event") != "finished":
            sys.exit(f"the run did not finish (exit code {self.code}):\n{self.stderr}")
        return {step["step"]: step for step in last["steps"]}

    @property
    def digests(self) -> dict:
        """(step, port) -> logical digest and rows."""
        return {
            (name, port["port"]): (port["digest"], port["rows"])
            for name, step in self.steps.items()
            for port in step["ports"]
        }

    @property
    def not_hit(self) -> list:
        """Names of the steps that were not taken from the store."""
        return [name for name, step in self.steps.items() if step["status"] != "hit"]


def environment() -> dict:
    """The caller's environment without what would change a run."""
    return {k: v for k, v in os.environ.items() if not k.startswith("GALERAS_")}


def command(galeras: str, workflow: Path, cache: Path, *more: str) -> list:
    out = cache.parent / f"{cache.name}-out"
    return [
        os.path.abspath(galeras),
        "run",
        str(workflow),
        "--cache",
        str(cache),
        "--out",
        str(out),
        "--format",
        "json",
        "--allow-all",  # the workflows are the scripts' own, wherever their data are
        "--overwrite",  # and so are the outputs, whatever became of the store
        "--allow-empty",  # which are compared, also if they are empty
        *more,
    ]


def run(galeras: str, workflow: Path, cache: Path, *more: str, cwd=None, check=True) -> Run:
    """Runs a workflow to its end; ends the script if that fails, unless `check` is off."""
    started = time.perf_counter()
    done = subprocess.run(
        command(galeras, workflow, cache, *more),
        cwd=cwd or cache.parent,
        env=environment(),
        capture_output=True,
        text=True,
    )
    wall = time.perf_counter() - started
    result = Run(done.returncode, wall, parse_events(done.stdout), done.stderr)
    if check and done.returncode != 0:
        failed = [e for e in result.events if e.get("status") == "failed" and "step" in e]
        why = "\n".join(f"{e['step']}: {e['detail']}" for e in failed)
        sys.exit(f"galeras run {workflow} ended with {done.returncode}\n{why}\n{done.stderr}")
    return result


def parse_events(text: str) -> list:
    """The events of a run; the last line of a killed run may be cut off."""
    events = []
    for line in text.splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return events


def manifests(cache: Path) -> list:
    """All manifests of a store."""
    return [json.loads(p.read_text()) for p in sorted(cache.glob("actions/*/*.json"))]


def blob_path(cache: Path, digest: str) -> Path:
    return cache / "blobs" / digest[:2] / f"{digest}.parquet"


def port_blob(cache: Path, key: str, port: str = "out") -> Path:
    """The Parquet file of a port of the result that is stored under `key`."""
    manifest = json.loads((cache / "actions" / key[:2] / f"{key}.json").read_text())
    return next(blob_path(cache, p["blob"]) for p in manifest["ports"] if p["port"] == port)


def table(header: list, rows: list) -> None:
    """Prints an aligned table."""
    rows = [[str(c) for c in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for at, row in enumerate(rows):
        print("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=False)).rstrip())
        if at == 0:
            print("  ".join("-" * w for w in widths))


class Verdict:
    """Collects what does not hold; `end` prints it and gives the exit code."""

    def __init__(self) -> None:
        self.violations = []

    def check(self, holds: bool, message: str) -> bool:
        if not holds:
            self.violations.append(message)
            print(f"VIOLATION {message}", flush=True)
        return holds

    def end(self) -> int:
        print(f"{len(self.violations)} violations")
        for message in self.violations:
            print(f"  {message}")
        return 1 if self.violations else 0


def stdlib_methods(galeras: str, folder: Path) -> list:
    """The texts of the methods of the carried corpus, in the order of their ids."""
    workflow = folder / "corpus.yaml"
    workflow.write_text(
        "galeras: 1\nname: corpus\nsteps:\n"
        "  methods: { op: methods, with: { corpus: python-stdlib } }\n"
    )
    cache = folder / "corpus-cache"
    run(galeras, workflow, cache)
    shown = subprocess.run(
        [
            os.path.abspath(galeras),
            "show",
            str(workflow),
            "methods",
            "--columns",
            "code",
            "--format",
            "json",
            "--cache",
            str(cache),
        ],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    texts = [json.loads(line)["code"] for line in shown.stdout.split("\n") if line]
    if len(texts) < 10_000:
        sys.exit(f"the corpus gave {len(texts)} methods only")
    return texts


NAME = re.compile(r"(?<![\w.'\"])([a-z_][a-z_0-9]{2,})(?=\s*=[^=])")
NUMBER = re.compile(r"(?<![\w.])([1-9][0-9]{0,3})(?![\w.])")
DEF = re.compile(r"\bdef\s+(\w+)")


def variant(text: str, row: int, round_: int, mark: str = "") -> str:
    """A text of about the same size and the same tree: another function name, and from the
    second round on other numbers and other names of what is assigned first."""
    text = DEF.sub(lambda m: f"{m.group(0)}_{row}{mark}", text, count=1)
    if round_:
        text = NUMBER.sub(lambda m: str(int(m.group(1)) + round_), text)
        assigned = NAME.search(text)
        if assigned and not keyword.iskeyword(assigned.group(1)):
            name = re.escape(assigned.group(1))
            text = re.sub(rf"\b{name}\b", f"{assigned.group(1)}{round_}", text)
    return text


def write_methods(path: Path, texts: list, rows: int, changed=lambda row: False) -> int:
    """Writes `rows` distinct methods as JSON lines `id, code`; returns how many texts are
    those of `changed` rows. The same arguments write the same bytes."""
    import hashlib

    count, seen = 0, set()
    with path.open("w", encoding="utf-8") as out:
        for row in range(rows):
            mark = "_changed" if changed(row) else ""
            count += bool(mark)
            text = variant(texts[row % len(texts)], row, row // len(texts), mark)
            seen.add(hashlib.md5(text.encode()).digest())
            key = hashlib.md5(str(row).encode()).hexdigest()
            out.write(json.dumps({"id": key, "code": text}) + "\n")
    if len(seen) != rows:
        sys.exit(f"{rows - len(seen)} of the made texts are not distinct")
    return count


def in_venv(*packages: str, folder: Path | None = None) -> None:
    """Goes on in a virtual environment with these packages (`name` or `name==version`), which is
    made at first use in `folder`, or else in the user's cache folder (or in GALERAS_VENV)."""
    if os.environ.get("GALERAS_IN_VENV"):
        return
    base = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
    venv = folder or Path(os.environ.get("GALERAS_VENV", Path(base) / "galeras" / "venv"))
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    probe = (
        "import sys, importlib.metadata as m\n"
        "for package in sys.argv[1:]:\n"
        "    name, _, wanted = package.partition('==')\n"
        "    assert m.version(name) == (wanted or m.version(name))\n"
    )
    if subprocess.run([python, "-c", probe, *packages], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    os.execve(python, [str(python), *sys.argv], {**os.environ, "GALERAS_IN_VENV": "1"})


def pinned(versions: dict) -> list:
    """Versions by package as `in_venv` takes them."""
    return [f"{name}=={version}" for name, version in versions.items()]
