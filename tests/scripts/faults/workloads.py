"""The commands that meet faults: what is done before them, and what shows their result.

All of them work below the folder `work`, which is the disk that fails: the store, the outputs,
temporary files. Inputs are elsewhere.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

ROWS = 12
# The paid one: a table, data tests, prompts, a model, scores, output files.
PAID = """\
galeras: 1
name: faults
steps:
  data: {{ op: read, with: {{ path: data.jsonl }} }}
  valid:
    op: validate
    from: data
    with: {{ rules: [ {{ name: long, check: "char_length(code) > 22" }} ] }}
    assert: [ {{ rows: {{ min: 2 }} }}, {{ expr: "code LIKE 'def%'" }} ]
  prompts:
    op: prompt
    from: valid
    with: {{ treatments: {{ control: "Complete this: {{{{ code }}}}" }} }}
  answers:
    op: generate
    from: prompts
    with: {{ base_url: {url}, model: tiny, seed: 1, concurrency: 4, api_key_env: FAULTS_CASE }}
  scores:
    op: score
    from: answers
    with: {{ reference: code, metrics: [bleu, levenshtein] }}
outputs:
  scores: {{ from: scores, path: out/scores.parquet }}
  rejected: {{ from: valid.rejects, path: out/rejected.csv }}
  all: {{ from: scores, path: out/scores.jsonl }}
"""
EXEC = """\
galeras: 1
name: faults
steps:
  data: { op: read, with: { path: data.jsonl } }
  lines:
    op: exec
    from: data
    with:
      command: sed 's/"code"/"text"/'
      output: { id: utf8!, text: utf8 }
  kept: { op: sql, from: lines, with: { query: "SELECT id, text FROM input ORDER BY text" } }
  near: { op: dedup, from: data, with: { column: code, threshold: 0.9 } }
outputs:
  lines: { from: kept, path: out/lines.jsonl }
"""
MINE = """\
galeras: 1
name: faults
steps:
  repos: { op: query, with: { repos: [ repo ] } }
  mined: { op: mine, from: repos, with: { since: 2022-01-01, until: 2023-01-01 } }
outputs:
  mined: { from: mined, path: out/mined.jsonl }
"""
# What is handed on: no money, so that the faults are those of handing on.
SHARED = """\
galeras: 1
name: faults
steps:
  data: { op: read, with: { path: data.jsonl } }
  long: { op: sql, from: data, with: { query: "SELECT * FROM input WHERE id < '09'" } }
outputs:
  long: { from: long, path: out/long.parquet }
"""
RUN = ["run", "w.yaml", "--allow", "exec"]
CACHE = ["--cache", "work/cache"]
JSON = ["--format", "json"]


@dataclass
class Workload:
    """A command, and what is around it."""

    name: str
    workflow: str
    command: list
    before: list = field(default_factory=list)
    # What reads the result where the command itself is no run.
    after: list = field(default_factory=list)
    # What is taken away between `before` and the command.
    without: tuple = ()
    # The results: files and folders, or the digests that a run tells.
    files: tuple = ("work/out",)
    mined: bool = False
    # Whether it works with what can be read, and says on the page what is missing.
    partial: bool = False

    def set_up(self, root: Path, url: str) -> None:
        (root / "work" / "tmp").mkdir(parents=True)
        rows = (
            {"id": f"{i:02}", "code": f"def f{i}(a):\n    return {'a' * i}"} for i in range(ROWS)
        )
        (root / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        paid = self.workflow is PAID
        text = PAID.format(url=url) if paid else self.workflow
        (root / "w.yaml").write_text(text)
        (root / "edited.yaml").write_text(text.replace("[bleu, levenshtein]", "[levenshtein]"))
        if self.mined:
            repository(root / "repo")


def words(command: list) -> list:
    """A command with the store and the outputs in the folder that fails."""
    if command[0] == "verify" and command[1].endswith(".zip"):
        return [*command, *JSON]
    out = ["--out", "work"] if command[0] == "run" and "--out" not in command else []
    said = [] if command[0] == "report" else JSON
    cache = [] if "--cache" in command else CACHE
    return [*command, *cache, *out, *said]


FAR = ["--cache", "made"]
PUSH = ["push", "w.yaml", "--remote", "work/remote"]
BUNDLE = ["bundle", "w.yaml", "-o", "work/b.zip"]
FRESH = ["--cache", "fresh", "--out", "fresh", "--frozen"]
AFRESH = [["run", "w.yaml", "--remote", "work/remote", *FRESH]]
WORKLOADS = {
    workload.name: workload
    for workload in [
        Workload("run", PAID, RUN),
        # The store has all of it but the scores; the outputs are gone.
        Workload("again", PAID, ["run", "edited.yaml"], before=[RUN], without=("work/out",)),
        Workload("exec", EXEC, RUN),
        Workload("mine", MINE, RUN, mined=True),
        Workload("push", SHARED, PUSH, [RUN], AFRESH, files=("fresh/out",)),
        Workload(
            "pull",
            SHARED,
            ["pull", "w.yaml", "--remote", "far"],
            before=[[*RUN, *FAR], ["push", "w.yaml", "--remote", "far", *FAR]],
            after=[["run", "w.yaml", "--frozen"]],
            without=("work/out",),
        ),
        Workload(
            "bundle", SHARED, BUNDLE, [RUN], [["verify", "work/b.zip"]], files=("work/b.zip",)
        ),
        Workload("verify", SHARED, ["verify", "work/b.zip"], [RUN, BUNDLE], files=("work/b.zip",)),
        Workload(
            "export",
            SHARED,
            ["export", "w.yaml", "-o", "work/set", "--any-license", "--overwrite"],
            before=[RUN],
            files=("work/set",),
        ),
        Workload(
            "report",
            SHARED,
            ["report", "w.yaml", "-o", "work/page.html"],
            before=[RUN],
            files=("work/page.html",),
            partial=True,
        ),
    ]
}


def repository(folder: Path) -> None:
    """A repository with one branch of four commits, always the same."""
    lines = []
    for commit in range(4):
        text = "".join(f"def f{i}(a):\n    return a + {i * commit}\n\n\n" for i in range(3))
        lines.append(f"commit refs/heads/main\nmark :{commit + 1}")
        lines.append(f"committer A <a@example.org> {1_645_000_000 + commit * 86_400} +0000")
        lines.append("data 6\nChange")
        lines += [f"from :{commit}"] if commit else []
        lines.append(f"M 100644 inline m.py\ndata {len(text)}\n{text}")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    init = ["git", "init", "-q", "--bare", "-b", "main", str(folder)]
    subprocess.run(init, check=True, env=env)
    subprocess.run(
        ["git", "-C", str(folder), "fast-import", "--quiet"],
        input="\n".join([*lines, ""]).encode(),
        check=True,
        env=env,
    )


def content(path: Path) -> dict:
    """What is in a file or below a folder, by name; a bundle by what is in it."""
    if path.suffix == ".zip" and path.is_file():
        with zipfile.ZipFile(path) as bundle:
            names = sorted(bundle.namelist())
            return {name: digest(timeless(bundle.read(name))) for name in names}
    if path.is_file():
        return {path.name: digest(timeless(path.read_bytes()))}
    found = sorted(path.rglob("*")) if path.is_dir() else []
    shown = [file for file in found if not file.name.startswith(".") and file.is_file()]
    return {str(file.relative_to(path)): digest(file.read_bytes()) for file in shown}


def timeless(text: bytes) -> bytes:
    """A page without the minute in which it was made, and the run of the workflow: a copied project
    has none of its own."""
    text = re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"then", text)
    return re.sub(rb"<div><dt>(Run|Started|Took)</dt>.*</div>\n", b"", text)


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def copy(prepared: Path, to: Path) -> None:
    """A folder with the times of its files, which the memory of what was checked holds."""
    shutil.copytree(prepared, to, symlinks=True)
