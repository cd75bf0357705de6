"""The wheel where there is no Rust: its size and its tag, installed, used, and removed again.

What it shows: the wheel has at most 45 MB; auditwheel finds that the program asks of the system
what the wheel's tag promises; somebody else (the user `nobody` if root runs this) with an empty
home, a clean environment and a search path without Rust installs it within 20 s; `galeras`,
`python -m galeras` and `import galeras` then work, `galeras init` and `galeras run` give the
quickstart's results, and these are pyarrow Tables once `galeras[tables]` is installed; and
`pip uninstall` leaves nothing of it.

How to run it: `python3 tests/scripts/wheel_install.py` builds the wheel with maturin
(`--profile dist`) in CARGO_TARGET_DIR: nothing is compiled if `cargo build --locked --profile dist
-p galeras` has just been. With `--zig manylinux_2_28` all of it is compiled and linked for that
tag, which may be lower than this system's C library. `--wheel FILE` takes a wheel that is there.
`--binary PROGRAM` packs one around a program that is there: metadata and licences are maturin's,
but there is no bill of materials, and the tag is that of a wheel for this machine alone.
`--python` is the Python to install it for. auditwheel, maturin and pyarrow come from their
registry.

What it prints: what is in the wheel, a line for each thing done, with its time, and the
violations. Exit code 1 if there is one.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import ROOT, Verdict, in_venv, pinned, work_folder  # noqa: E402

VERSIONS = {"auditwheel": "6.8.2", "maturin": "1.16.0", "wheel": "0.48.0", "ziglang": "0.17.1"}
PYARROW = "pyarrow==26.0.1"
MOST_BYTES = 45_000_000
MOST_SECONDS = 20
NOBODY = 65534
SYSTEM_PATH = "/usr/bin:/bin"

USE = """
import galeras
study = galeras.Workflow("workflow.yaml")
assert study.check() == [], study.check()
print(galeras.version(), galeras.program())
"""
TABLES = """
import galeras, pyarrow
study = galeras.Workflow("workflow.yaml")
for name in ["table_1", "scores"]:
    table = study.table(name)
    assert isinstance(table, pyarrow.Table), type(table)
    print(f"{name}: {table.num_rows:,} rows, {table.num_columns} columns, {table.nbytes:,} bytes")
means = study.sql("SELECT treatment, avg(bleu) AS bleu FROM scores GROUP BY treatment ORDER BY 1")
assert means.column("treatment").to_pylist() == ["T1", "T2", "control"], means
again = study.run(progress=False)
assert again.computed == 0, again
"""


def built(profile: str, tag: str | None, folder: Path) -> Path:
    """The wheel that maturin makes of this clone."""
    linked = ["--zig", "--compatibility", tag] if tag else []
    command = ["maturin", "build", "--profile", profile, *linked, "--out", str(folder)]
    # maturin looks for `ziglang` in the Python of the search path.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=True)
    return next(folder.glob("*.whl"))


def packed(binary: Path, folder: Path) -> Path:
    """A wheel around a program, for this machine: maturin writes the metadata, nothing is built."""
    content = folder / "content"
    content.mkdir(parents=True)
    maturin = str(Path(sys.executable).parent / "maturin")
    command = [maturin, "pep517", "write-dist-info", "--metadata-directory", str(content)]
    subprocess.run([*command, "--interpreter", sys.executable], cwd=ROOT, check=True)
    name = next(content.glob("*.dist-info")).name.removesuffix(".dist-info")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python" / "galeras", content / "galeras", ignore=ignored)
    scripts = content / f"{name}.data" / "scripts"
    scripts.mkdir(parents=True)
    subprocess.run(["strip", "-o", str(scripts / "galeras"), str(binary)], check=True)
    command = [sys.executable, "-m", "wheel", "pack", str(content), "--dest-dir", str(folder)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def look_inside(wheel: Path, verdict: Verdict) -> None:
    """Size, content and tag."""
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes (at most {MOST_BYTES:,})")
    verdict.check(size <= MOST_BYTES, f"the wheel has {size:,} bytes")
    with zipfile.ZipFile(wheel) as archive:
        entries = {entry.filename: entry.file_size for entry in archive.infolist()}
    for name, length in sorted(entries.items(), key=lambda entry: -entry[1])[:3]:
        print(f"  {length:>12,}  {name}")
    print(f"  {len(entries)} files in all")
    for wanted in ["scripts/galeras", "galeras/py.typed", "licenses/NOTICE", "METADATA"]:
        verdict.check(any(name.endswith(wanted) for name in entries), f"no {wanted} in the wheel")
    foreign = [n for n in entries if not n.startswith(("galeras/", "galeras-")) or "pycache" in n]
    verdict.check(not foreign, f"in the wheel, and not of it: {foreign}")
    bills = [name for name in entries if "/sboms/" in name]
    print(f"  bill of materials: {', '.join(bills) or 'none'}")
    if sys.platform != "linux":
        return
    auditwheel = str(Path(sys.executable).parent / "auditwheel")
    found = subprocess.run(
        [auditwheel, "show", "--json", str(wheel)], capture_output=True, text=True, check=True
    )
    tag = json.loads(found.stdout)["overall_tag"]
    print(f"  auditwheel: {tag}")
    promised = [glibc(part) for part in wheel.stem.split("-")[-1].split(".") if glibc(part)]
    if not promised:
        print("  the wheel's own tag promises nothing: it is for this machine")
    asked = glibc(tag)
    verdict.check(asked is not None, f"no manylinux tag fits: {tag}")
    if promised and asked:
        verdict.check(asked <= min(promised), f"the tag promises less than {tag} asks for")


def glibc(tag: str) -> tuple[int, int] | None:
    """The version of glibc that a platform tag asks for."""
    if tag.startswith("manylinux2014"):
        return 2, 17
    found = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return (int(found[1]), int(found[2])) if found else None


class Stranger:
    """Somebody without Rust: an empty home, few variables, and another user if root runs this."""

    def __init__(self, folder: Path, python: str | None) -> None:
        self.home, self.study, self.venv = folder / "home", folder / "study", folder / "venv"
        self.user = {}
        for made in (self.home, self.study):
            made.mkdir(parents=True)
        if os.geteuid() == 0:
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            for mine in (folder, self.home, self.study):
                os.chown(mine, NOBODY, NOBODY)
        for program in ("cargo", "rustc", "rustup"):
            if shutil.which(program, path=SYSTEM_PATH):
                sys.exit(f"{program} is in {SYSTEM_PATH}: this is not a machine without Rust")
        own = getattr(sys, "_base_executable", sys.executable)
        candidates = [python] if python else [own, "/usr/bin/python3"]
        found = [path for path in candidates if self.has(path)]
        if not found:
            sys.exit(f"no Python from 3.10 on among {candidates} that the fresh user may start")
        self.python = found[0]

    def has(self, python: str) -> bool:
        """Whether this Python is one to install for."""
        probe = "import sys, venv, ensurepip; assert sys.version_info >= (3, 10)"
        try:
            return self(python, "-c", probe, check=False).returncode == 0
        except OSError:
            return False

    def __call__(
        self, *command: str, check: bool = True, activated: bool = False, **variables: str
    ) -> subprocess.CompletedProcess:
        scripts = f"{self.venv / 'bin'}:" if activated else ""
        environment = {
            "PATH": scripts + SYSTEM_PATH,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            **variables,
        }
        program = shutil.which(command[0], path=environment["PATH"]) or command[0]
        done = subprocess.run(
            [program, *command[1:]],
            cwd=self.study,
            env=environment,
            capture_output=True,
            text=True,
            **self.user,
        )
        if check and done.returncode:
            said = f"{done.stdout}\n{done.stderr}"
            sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{said}")
        return done

    def files(self) -> set:
        """All files of the virtual environment and of the home folder."""
        found = [*self.venv.rglob("*"), *self.home.rglob("*")]
        return {p for p in found if not p.is_dir() and "__pycache__" not in p.parts}


def timed(what: str, action) -> float:
    """Does something, and says how long it took, and what it said last."""
    started = time.perf_counter()
    said = (action().stdout or "").strip().split("\n")[-1]
    seconds = time.perf_counter() - started
    print(f"{seconds:8.2f} s  {what}" + (f": {said}" if said else ""), flush=True)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--wheel", type=Path, help="the wheel (default: one is built)")
    source.add_argument("--binary", type=Path, help="pack a wheel around this program")
    parser.add_argument("--profile", default="dist", help="cargo's, to build with [dist]")
    parser.add_argument("--zig", metavar="TAG", help="link by `zig cc`, for this tag")
    parser.add_argument("--python", help="install it for this Python, from 3.10 on")
    parser.add_argument("--work", type=Path, help="keep all files in this empty folder")
    args = parser.parse_args()
    wanted = ["auditwheel"] if sys.platform == "linux" else []
    wanted += [] if args.wheel else ["maturin", "wheel"]
    wanted += ["ziglang"] if args.zig else []
    in_venv(*pinned({name: VERSIONS[name] for name in wanted}))

    work, verdict = work_folder(args), Verdict()
    if args.wheel:
        wheel = args.wheel
    elif args.binary:
        wheel = packed(args.binary, work / "packed")
    else:
        wheel = built(args.profile, args.zig, work / "built")
    look_inside(wheel, verdict)

    os.chmod(work, 0o755)
    folder = work / "stranger"
    folder.mkdir()
    wheel = Path(shutil.copy(wheel, folder))
    stranger = Stranger(folder, args.python)
    who = "another user" if stranger.user else "the same user"
    print(f"\n{who}, {stranger.python}, PATH={SYSTEM_PATH}, an empty home")

    def inside(*command: str, **variables: str):
        return lambda: stranger(*command, activated=True, **variables)

    def python(code: str):
        # As a notebook's kernel does: the environment is not on the search path.
        return lambda: stranger(str(stranger.venv / "bin" / "python"), "-c", code)

    timed("python -m venv", lambda: stranger(stranger.python, "-m", "venv", str(stranger.venv)))
    before = stranger.files()
    seconds = timed("pip install of the wheel", inside("pip", "install", str(wheel)))
    verdict.check(seconds <= MOST_SECONDS, f"pip install took {seconds:.1f} s")
    timed("galeras --version", inside("galeras", "--version"))
    timed("python -m galeras --version", inside("python", "-m", "galeras", "--version"))
    timed("galeras init", inside("galeras", "init"))
    timed("import galeras, and check", python(USE))
    started = {path for path in stranger.study.rglob("*")}
    timed("galeras run, all of the quickstart", inside("galeras", "run", "workflow.yaml"))
    print(f"            files that this wrote: {len(set(stranger.study.rglob('*')) - started):,}")

    # Where the registry is may be the business of whoever runs this.
    registry = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    extra = [f"{wheel}[tables]", PYARROW]
    timed("pip install galeras[tables]", inside("pip", "install", *extra, **registry))
    timed("its tables from Python, and a rerun", python(TABLES))

    own = {p for p in stranger.files() - before if "galeras" in str(p.relative_to(folder))}
    verdict.check(bool(own), "the installed files were not found")
    timed("pip uninstall", inside("pip", "uninstall", "--yes", "galeras", "pyarrow"))
    left = [str(p.relative_to(folder)) for p in stranger.files() - before]
    # pip keeps what it downloaded, in the home folder.
    cached = [name for name in left if name.startswith("home/.cache/pip/")]
    left = sorted(set(left) - set(cached))
    print(f"            files: {len(own)} were of galeras, {len(left)} are left")
    verdict.check(not left, f"pip uninstall left {left}")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
