"""What the workloads read: Python files with methods of all sorts, and repositories whose
commits change them. The same seed writes the same bytes."""

import os
import random
import subprocess
from pathlib import Path

NAMES = ("total", "count", "items", "found", "weight", "index", "value", "rest", "size", "best")
STATEMENTS = (
    "    {a} = {b} + {n}",
    "    for {a} in range({n}):\n        {b} = {b} * {a} - {m}",
    "    if {a} > {n}:\n        return {b}",
    "    {a} = [x * {n} for x in range({b})]",
    "    try:\n        {a} = int({b}) // {n}\n    except ValueError:\n        {a} = {m}",
    "    while {a} < {n}:\n        {a} += {m}",
    "    {a} = sorted({b}, key=lambda x: -x)[:{n}]",
    "    print('{a}', {b}, {n})",
    "    def inner_{n}(x):\n        return x + {m}\n\n    {a} = inner_{n}({b})",
)


def method(rng: random.Random, number: int, indent: str = "") -> str:
    """The text of a method of two to ten statements."""
    a, b = rng.sample(NAMES, 2)
    lines = [f"def {a}_of_{b}_{number}({a}, {b}={rng.randrange(99)}):"]
    if rng.random() < 0.4:
        lines.append(f'    """Give the {a} of {b}, {rng.randrange(999)} times at most."""')
    for _ in range(rng.randrange(2, 10)):
        c, d = rng.sample(NAMES, 2)
        n, m = rng.randrange(2, 999), rng.randrange(2, 99)
        lines.append(rng.choice(STATEMENTS).format(a=c, b=d, n=n, m=m))
    lines.append(f"    return {a}")
    return "\n".join(indent + line for line in "\n".join(lines).split("\n"))


def module(rng: random.Random, methods: int, first: int) -> str:
    """A file with methods, some of them in a class, one of them nearly twice."""
    texts = [method(rng, first + at) for at in range(methods)]
    again = texts[0].replace(f"_{first}(", f"_{first}_again(")
    inner = [method(rng, first + methods + at, "    ") for at in range(2)]
    short = f"def short_{first}(): return {first}"
    return "\n\n\n".join([*texts, again, short, "class Holder:\n" + "\n\n".join(inner)]) + "\n"


def write_folder(folder: Path, files: int, methods: int, seed: int) -> None:
    """A folder of modules, one with a syntax error and one that is not UTF-8 among them."""
    rng = random.Random(f"folder {seed}")
    (folder / "deep").mkdir(parents=True)
    for at in range(files):
        name = f"deep/m{at}.py" if at % 3 == 2 else f"m{at}.py"
        (folder / name).write_text(module(rng, methods, at * 100))
    (folder / "broken.py").write_text(
        "def broken(a:\n    return (a\n\ndef fine(a):\n    return a\n"
    )
    (folder / "latin.py").write_bytes(b"def caf\xe9():\n    return 1\n")


def write_repository(folder: Path, commits: int, seed: int) -> None:
    """A bare repository with one branch, in which every commit changes a few files."""
    rng = random.Random(f"repository {seed}")
    files, marks, start = {}, [], 1_640_995_200  # 2022-01-01
    lines = []
    for commit in range(commits):
        changed = rng.sample(range(6), rng.randrange(1, 4))
        for at in changed:
            files[f"pkg/f{at}.py"] = module(rng, rng.randrange(2, 6), at * 100)
        when = start + commit * 86_400
        message = f"Change {len(changed)} files, the {commit}th time"
        lines.append(f"commit refs/heads/main\nmark :{commit + 1}")
        lines.append(f"committer A Person <a@example.org> {when} +0000")
        lines.append(f"data {len(message)}\n{message}")
        if marks:
            lines.append(f"from :{marks[-1]}")
        marks.append(commit + 1)
        for at in changed:
            text = files[f"pkg/f{at}.py"]
            lines.append(f"M 100644 inline pkg/f{at}.py\ndata {len(text)}\n{text}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    made = ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)]
    subprocess.run(made, env=env, check=True)
    stream = "\n".join(lines) + "\n"
    into = ["git", "-C", str(folder), "fast-import", "--quiet"]
    subprocess.run(into, env=env, input=stream, text=True, check=True)
