"""The workflow of the cluster's tests: three repositories up to effects."""

import os
import random
import subprocess
from pathlib import Path

from chaos.servers import World
from chaos.sources import module

WORKFLOW = """\
galeras: 1
name: cluster
steps:
  repos: { op: query, with: { repos: [./one.git, ./two.git, ./three.git] } }
  mined: { op: mine, from: repos, with: { since: 2022-01-01, until: 2022-12-31 } }
  features: { op: ast, from: mined }
  valid:
    op: validate
    from: features
    with: { rules: [{ name: parses, check: "n_ast_errors = 0" }] }
  unique: { op: dedup, from: valid, with: { column: code, threshold: 0.9 } }
  cuts: { op: cut, from: unique, with: { seed: 42 } }
  prompts:
    op: prompt
    from: cuts
    with:
      treatments:
        control: "Complete this: {{ random_cut }}"
        T1: "Write a method that is called {{ fun_name }} and begins {{ random_cut }}"
  asked: { op: sample, from: prompts, with: { n: 200, seed: 1 } }
  answers:
    op: generate
    from: asked
    with: { base_url: URL/v1, api_key_env: CLUSTER_KEY, model: tiny, seed: 42, max_tokens: 64 }
  replayed: { op: generate, from: prompts, with: { provider: echo } }
  scores: { op: score, from: replayed, with: { reference: code, by: [treatment] } }
  asked_scores: { op: score, from: answers, with: { reference: code } }
  sizes: { op: describe, from: features, with: { columns: [nloc, complexity] } }
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
outputs:
  scores: { from: scores, path: scores.parquet }
  effects: { from: effects, path: effects.csv }
"""

TABLE_OF_REPOSITORIES = """\
galeras: 1
name: table
steps:
  repos: { op: read, with: { path: repos.csv, key: [repo] } }
  mined: { op: mine, from: repos, with: { since: 2022-01-01, until: 2022-12-31 } }
"""


def write_repository(folder: Path, commits: int, files: int, seed: int) -> None:
    """A bare repository with one branch; the commits of a year change a few of many files."""
    rng = random.Random(f"repository {seed}")
    texts, lines = {}, []
    for commit in range(commits):
        changed = range(files) if commit == 0 else rng.sample(range(files), min(files, 8))
        for at in changed:
            texts[at] = module(rng, rng.randrange(6, 14), seed * 1_000_000 + commit * 1000 + at)
        when = 1_640_995_200 + commit * (360 * 86_400 // commits)
        lines.append(f"commit refs/heads/main\nmark :{commit + 1}")
        lines.append(f"committer A Person <a@example.org> {when} +0000")
        lines.append(f"data 6\nChange\nfrom :{commit}" if commit else "data 5\nBegin")
        for at in changed:
            lines.append(f"M 100644 inline pkg/f{at}.py\ndata {len(texts[at])}\n{texts[at]}")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    made = ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)]
    subprocess.run(made, env=env, check=True)
    stream = "\n".join(lines) + "\n"
    into = ["git", "-C", str(folder), "fast-import", "--quiet"]
    subprocess.run(into, env=env, input=stream, text=True, check=True)


def write_workload(folder: Path, world: World, commits: int) -> Path:
    """The workflow and its repositories in a folder; its file."""
    folder.mkdir(parents=True)
    for seed, name in enumerate(["one", "two", "three"]):
        write_repository(folder / f"{name}.git", commits, 24, seed)
    workflow = folder / "w.yaml"
    workflow.write_text(WORKFLOW.replace("URL", world.url))
    return workflow
