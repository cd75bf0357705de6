"""The three workflows, their edits, and what they read."""

import hashlib
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from .program import KEY
from .servers import World
from .sources import method, write_folder, write_repository

# Requests side by side in the paid workload.
CONCURRENCY = 8
# Rows that the paid workload asks about, each under two treatments.
ROWS = 36

METHODS = """\
galeras: 1
name: chaos-methods
steps:
  methods: { op: methods, with: { dir: a/src } }
  features: { op: ast, from: methods }
  valid:
    op: validate
    from: features
    with:
      rules:
        - { name: parses, check: "n_ast_errors = 0" }
        - { name: has_body, check: "nloc > 1" }
    assert:
      - unique: [fun_name, path]
      - { expr: "nloc < 1000" }
      - { expr: "ast_levels < 9", severity: warn }
  unique: { op: dedup, from: valid, with: { column: code, threshold: 0.8 } }
  testbed: { op: cut, from: unique, with: { seed: 42, min: 0.4, max: 0.65 } }
  sizes: { op: describe, from: testbed, with: { columns: [nloc, complexity] } }
  prompts:
    op: prompt
    from: testbed
    with:
      treatments:
        control: "Complete this: {{ random_cut }}"
        T1: "Write a method that is called {{ fun_name }} and begins {{ random_cut }}"
  answers:
    op: generate
    from: { input: prompts, train: unique }
    with: { provider: ngram, seed: 42, max_tokens: 40 }
  scores: { op: score, from: answers, with: { reference: code, by: [treatment] } }
  means:
    op: sql
    from: scores
    with:
      query: SELECT treatment, count(*) AS n, avg(bleu) AS bleu FROM input GROUP BY treatment
      key: [treatment]
  effects:
    op: regress
    from: scores
    with:
      treatment: treatment
      control: control
      outcomes: [bleu, similarity]
      unit: snippet_id
      simulations: 10
      seed: 42
      alpha: 0.05
outputs:
  testbed:  { from: testbed, path: testbed.parquet }
  rejected: { from: valid.rejects, path: rejected.jsonl }
  scores:   { from: scores, path: scores/scores.jsonl }
  sizes:    { from: sizes, path: sizes.csv }
  means:    { from: means, path: scores/means.csv }
  effects:  { from: effects, path: scores/effects.csv }
"""
METHODS_EDITS = {
    "alpha": ("alpha: 0.05", "alpha: 0.1"),
    "means": ("avg(bleu) AS bleu", "avg(chrf) AS chrf"),
    "sizes": ("[nloc, complexity]", "[nloc, n_words]"),
    "cut": ("max: 0.65", "max: 0.7"),
    "threshold": ("threshold: 0.8", "threshold: 0.75"),
    "rule": ('"nloc > 1"', '"nloc > 4"'),
    "files": ("a/src", "b/src"),
    "failing": ("nloc < 1000", "nloc < 9"),
}

MINING = """\
galeras: 1
name: chaos-mining
steps:
  repos: { op: query, with: { github: "language:Python stars:>10", base_url: URL/api } }
  near: { op: query, with: { repos: [./near.git] } }
  mined:
    op: mine
    from: repos
    with: { since: 2022-01-03, until: 2022-01-09 }
  mined_near: { op: mine, from: near, with: { since: 2022-01-01, until: 2022-01-07 } }
  features: { op: ast, from: mined }
  valid:
    op: validate
    from: features
    with: { rules: [{ name: parses, check: "n_ast_errors = 0" }] }
    assert:
      - { expr: "nloc >= 1" }
  testbed: { op: cut, from: valid, with: { seed: 42 } }
  sizes: { op: describe, from: testbed, with: { columns: [nloc, complexity] } }
outputs:
  testbed: { from: testbed, path: testbed.jsonl }
  near:    { from: mined_near, path: near.parquet }
  sizes:   { from: sizes, path: sizes.csv }
"""
MINING_EDITS = {
    "nested": ("until: 2022-01-09", "until: 2022-01-09, nested: true"),
    "until": ("until: 2022-01-09", "until: 2022-01-11"),
    "since": ("since: 2022-01-03", "since: 2022-01-05"),
    "cut": ("seed: 42", "seed: 7"),
    "sizes": ("[nloc, complexity]", "[nloc, n_words]"),
}

PAID = """\
galeras: 1
name: chaos-paid
steps:
  data: { op: read, with: { url: URL/data.jsonl, sha256: DIGEST } }
  prompts:
    op: prompt
    from: data
    with:
      treatments:
        control: "Complete this: {{ code }}"
        T1: "Go on with {{ code }}"
  answers:
    op: generate
    from: prompts
    with:
      base_url: URL/v1
      api_key_env: KEY
      model: tiny
      seed: 42
      samples: 2
      max_tokens: 64
      concurrency: CONCURRENCY
      price: { input: 0.15, output: 0.6 }
      max_usd: 1
    assert:
      - { expr: "completion_tokens > 0" }
  scores:
    op: score
    from: answers
    with: { reference: code, metrics: [bleu, similarity, parses], by: [treatment] }
  means: { op: describe, from: scores, with: { columns: [bleu, similarity], by: [treatment] } }
outputs:
  answers: { from: answers, path: answers.parquet }
  bill:    { from: answers.summary, path: bill.csv }
  scores:  { from: scores, path: scores.jsonl }
  means:   { from: means, path: means.csv }
"""
PAID_EDITS = {
    "samples": ("samples: 2", "samples: 3"),
    "treatment": ("Go on with", "Continue"),
    "scores": ("[bleu, similarity, parses]", "[bleu, similarity, chrf]"),
    "means": ("by: [treatment] } }\noutputs", "by: [treatment, sample] } }\noutputs"),
}

# The steps whose tables an edit reads first: damage to them is where a wrong result begins.
READS = {
    "methods": {
        "alpha": "scores",
        "means": "scores",
        "sizes": "testbed",
        "cut": "unique",
        "threshold": "valid",
        "rule": "features",
    },
    "mining": {
        "nested": "repos",
        "until": "repos",
        "since": "repos",
        "cut": "valid",
        "sizes": "testbed",
    },
    "paid": {"samples": "prompts", "treatment": "data", "scores": "answers", "means": "scores"},
}
# The edits that take rows and answers from parts of earlier runs.
REUSING = ("files", "cut", "threshold", "rule", "until", "since", "samples", "treatment")


@dataclass
class Workload:
    """A workflow with its edits; `plain` is the workflow as it stands."""

    name: str
    folder: Path
    edits: list = field(default_factory=list)

    def workflow(self, edit: str) -> Path:
        return self.folder / f"{self.name}-{edit}.yaml"

    @property
    def working(self) -> list:
        """The edits whose runs end well."""
        return [edit for edit in self.edits if edit not in ("plain", "failing")]


def write(name: str, folder: Path, text: str, edits: dict) -> Workload:
    """Writes a workflow and its edits."""
    workload = Workload(name, folder)
    for edit, (old, new) in {"plain": ("", ""), **edits}.items():
        if edit != "plain" and text.count(old) != 1:
            raise SystemExit(f"{old!r} is {text.count(old)} times in the workflow {name}")
        workload.edits.append(edit)
        workload.workflow(edit).write_text(text.replace(old, new) if old else text)
    return workload


def write_inputs(folder: Path) -> None:
    """Everything that workflows read or servers give, but for the answer to the search."""
    write_folder(folder / "a" / "src", 6, 8, 1)
    write_folder(folder / "b" / "src", 6, 8, 1)
    (folder / "b" / "src" / "m0.py").unlink()
    rng = random.Random("a new file")
    (folder / "b" / "src" / "new.py").write_text("\n\n\n".join(method(rng, at) for at in range(9)))
    for at, name in enumerate(("one", "two", "three")):
        write_repository(folder / "git" / "chaos" / f"{name}.git", 12, at)
    write_repository(folder / "near.git", 8, 9)
    rng = random.Random("data")
    with (folder / "data.jsonl").open("w") as out:
        for row in range(ROWS):
            out.write(json.dumps({"id": f"{row:04}", "code": method(rng, row)}) + "\n")


def write_search(folder: Path, url: str) -> None:
    """GitHub's answer, in which the repositories are this server's."""
    items = []
    for at, name in enumerate(("one", "two", "three")):
        about = {
            "id": 100 + at,
            "full_name": f"chaos/{name}",
            "clone_url": f"{url}/git/chaos/{name}.git",
            "default_branch": "main",
            "stargazers_count": 50 - at,
            "forks_count": at,
            "size": 100,
            "created_at": "2020-01-01T00:00:00Z",
            "updated_at": "2022-03-01T00:00:00Z",
            "pushed_at": "2022-03-01T00:00:00Z",
            "fork": False,
            "archived": False,
            "language": "Python",
            "license": {"spdx_id": "MIT"},
        }
        items.append(about)
    answer = {"total_count": len(items), "incomplete_results": False, "items": items}
    (folder / "search.json").write_text(json.dumps(answer))


def workloads(folder: Path, world: World) -> dict:
    """The workloads by name, over a server that listens."""
    write_search(folder, world.url)
    digest = hashlib.sha256((folder / "data.jsonl").read_bytes()).hexdigest()
    known = {"URL": world.url, "DIGEST": digest, "CONCURRENCY": str(CONCURRENCY), "KEY": KEY}
    texts = {"methods": (METHODS, METHODS_EDITS)}
    texts |= {"mining": (MINING, MINING_EDITS), "paid": (PAID, PAID_EDITS)}
    written = {}
    for name, (text, edits) in texts.items():
        for placeholder, value in known.items():
            text = text.replace(placeholder, value)
        written[name] = write(name, folder, text, edits)
    return written
