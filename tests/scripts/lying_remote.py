"""A remote that lies: whatever it gives, no result becomes another, and what was read is reported.

What it shows: a small workflow is computed and pushed, once unsigned and once signed. From a seed,
each mutation changes what the remote has: a bit is flipped, a blob or a manifest is cut, emptied,
deleted, an HTML page, another blob, the manifest of another key, or says another size; a web server
declares a length beyond all memory. Where signatures are demanded, a *forged* manifest (which says
of its key what is true of another table, with a digest of its own that fits) or a manifest without
its signature, or with one of another key, of another manifest or for another namespace, is a lie,
too. Then somebody with an empty store runs the workflow from there, and somebody else pulls it,
from the folder and from a static web server. In the end every step has the digest that it has
without a remote, outputs have the same bytes, `galeras cache verify` finds nothing in the stores;
and if the mutated file was read (a web server counts), a warning names the step. A manifest that
says another size of a table than the remote has is told, whoever reads the table. `pull`, which
reads everything, warns of every lie, takes the rest, names the steps without a result and ends
with 1; the next run computes no others. A manifest that is not there is no lie: it ends with 0.

How to run it: `python3 tests/scripts/lying_remote.py [--galeras PATH] [--mutations 200] [--seed 1]
[--only N]`. Needs `ssh-keygen`, and installs the package blake3 into a virtual environment, because
who forges a manifest gives it the digest of its own that fits (see `harness.in_venv`).

What it prints: mutations by kind and place, and how many were read and reported; the violations,
each with the number that repeats it. Exit code 1 if there is one.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import arguments, environment, in_venv, parse_events, table, work_folder  # noqa: E402
from static_host import StaticHost  # noqa: E402

WORKFLOW = """galeras: 1
name: lied-to
steps:
  rows:
    op: read
    with: { path: data.csv, key: [id] }
    assert: [{ not_null: [x] }]
  twice:
    op: sql
    from: rows
    with: { query: "SELECT id, x, x * 2 AS y FROM input", key: [id] }
    assert: [{ expr: "y >= x" }]
  cut:
    op: cut
    from: code
    with: { seed: 7 }
  code:
    op: sql
    from: rows
    with:
      key: [id]
      query: >
        SELECT id, concat('def f(a):', chr(10), '    return a + ', cast(x AS varchar)) AS code
        FROM input
  kept:
    op: validate
    from: twice
    with: { rules: [{ name: small, check: "x < 900" }] }
outputs:
  kept: { from: kept, path: kept.csv }
  cut: { from: cut, path: cut.jsonl }
"""
PAGE = b"<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>\n"
NAMESPACE = "galeras-manifest"
HUGE = 1 << 50


@dataclass
class Mutation:
    """What was done to which file of the remote, and what a web server says instead."""

    kind: str
    file: str
    lie: tuple | None = None
    # What stays unread or is as good as before is not reported: a result that is not there.
    absent: bool = False


class Study:
    """The workflow, its truth, and the remotes as they should be."""

    def __init__(self, galeras: str, work: Path):
        self.galeras, self.work = os.path.abspath(galeras), work
        self.home = self.project("home")
        done = self.call(self.home, "run", "w.yaml", "--format", "json")
        if done.returncode:
            sys.exit(f"the undisturbed run failed:\n{done.stderr}")
        self.truth = digests(done.stdout)
        self.outputs = outputs(self.home)
        for name in ("ada", "eve"):
            key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name]
            subprocess.run(key, cwd=work, check=True)
        public = (work / "ada.pub").read_text()
        (work / "signers").write_text(f'ada@example.org namespaces="galeras-*" {public}')
        self.plain, self.signed = work / "plain", work / "signed"
        for remote, more in ((self.plain, []), (self.signed, ["--sign", str(work / "ada")])):
            sent = self.call(self.home, "push", "w.yaml", "--remote", str(remote), *more)
            if sent.returncode:
                sys.exit(f"push failed:\n{sent.stderr}")

    def project(self, name: str) -> Path:
        folder = self.work / name
        folder.mkdir()
        (folder / "w.yaml").write_text(WORKFLOW)
        rows = "".join(f"row{i:05},{i}\n" for i in range(1500))
        (folder / "data.csv").write_text("id,x\n" + rows)
        return folder

    def call(self, folder: Path, *args: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.galeras, *args],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=170,
        )


def digests(events: str) -> dict:
    finished = parse_events(events)[-1]
    return {
        (step["step"], port["port"]): (port["digest"], port["rows"])
        for step in finished["steps"]
        for port in step["ports"]
    }


def outputs(folder: Path) -> dict:
    return {name: (folder / name).read_bytes() for name in ("kept.csv", "cut.jsonl")}


def files(remote: Path, folder: str) -> list:
    return sorted(p.relative_to(remote).as_posix() for p in (remote / folder).rglob("*.*"))


def sealed(manifest: dict) -> bytes:
    """The manifest with the digest of its own that fits, as the program writes it."""
    from blake3 import blake3

    body = {key: value for key, value in manifest.items() if key != "integrity"}
    text = json.dumps(body, indent=2, ensure_ascii=False).encode()
    text = text.removesuffix(b"\n}")
    return text + b',\n  "integrity": "' + blake3(text).hexdigest().encode() + b'"\n}\n'


def mutate(study: Study, remote: Path, signed: bool, by_web: bool, rng: random.Random) -> Mutation:
    """Changes one thing of a remote."""
    blobs, manifests = files(remote, "blobs"), files(remote, "actions")
    kinds = ["bit", "cut", "empty", "page", "deleted", "swapped", "wrong size", "more"]
    kinds += ["huge length"] * by_web + ["forged", "forged rows", *["signature"] * 4] * signed
    kind = rng.choice(kinds)
    if kind in ("forged", "forged rows", "wrong size"):
        name = rng.choice(manifests)
    elif kind == "signature":
        return mutate_signature(study, remote, rng)
    else:
        name = rng.choice(rng.choice([blobs, manifests]))
    path = remote / name
    content = path.read_bytes()
    mutation = Mutation(kind, name)
    if kind == "bit":
        at = rng.randrange(len(content))
        content = content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    elif kind == "cut":
        content = content[: rng.randrange(1, len(content))]
    elif kind == "empty":
        content = b""
    elif kind == "page":
        content = PAGE
    elif kind == "more":
        content += b"more"
    elif kind == "deleted":
        path.unlink()
        mutation.absent = name in manifests
        return mutation
    elif kind == "swapped":
        same = [other for other in (blobs if name in blobs else manifests) if other != name]
        other = remote / rng.choice(same)
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)
        return mutation
    elif kind == "wrong size":
        manifest = json.loads(content)
        port = rng.choice(manifest["ports"])
        port["bytes"] = rng.choice([0, 1, port["bytes"] - 1, port["bytes"] + 1, HUGE])
        content = sealed(manifest)
    elif kind == "forged":
        manifest = json.loads(content)
        others = [m for m in manifests if m != name]
        other = json.loads((remote / rng.choice(others)).read_text())
        port = manifest["ports"][0]["port"]
        manifest["ports"][0] = other["ports"][0] | {"port": port}
        content = sealed(manifest)
    elif kind == "forged rows":
        manifest = json.loads(content)
        rng.choice(manifest["ports"])["rows"] += 1
        content = sealed(manifest)
    elif kind == "huge length":
        mutation.lie = (HUGE, content)
        return mutation
    path.write_bytes(content)
    return mutation


def mutate_signature(study: Study, remote: Path, rng: random.Random) -> Mutation:
    """Changes who signed a manifest."""
    names = files(remote, "signatures")
    name = rng.choice(names)
    path = remote / name
    manifest = remote / name.replace("signatures", "actions").replace(".sig", ".json")
    kind = rng.choice(["none", "other key", "other manifest", "other namespace", "bit", "page"])
    if kind == "none":
        path.unlink()
    elif kind in ("other key", "other namespace"):
        key, space = ("eve", NAMESPACE) if kind == "other key" else ("ada", "file")
        sign = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(study.work / key), "-n", space]
        done = subprocess.run(sign, input=manifest.read_bytes(), capture_output=True, check=True)
        path.write_bytes(done.stdout)
    elif kind == "other manifest":
        path.write_bytes((remote / rng.choice([n for n in names if n != name])).read_bytes())
    elif kind == "page":
        path.write_bytes(PAGE)
    else:
        content = bytearray(path.read_bytes())
        content[rng.randrange(len(content) - 1)] ^= 1 << rng.randrange(7)
        path.write_bytes(content)
    return Mutation(f"signature: {kind}", name)


class Trial:
    """One mutation, a run and a pull."""

    def __init__(self, study: Study, number: int, seed: int):
        self.study, self.number = study, number
        self.rng = random.Random(f"{seed}-{number}")
        self.signed, self.by_web = number % 2 == 1, number // 2 % 2 == 1
        self.violations: list = []
        self.read = self.reported = False

    def go(self) -> Mutation:
        study, work = self.study, self.study.work
        remote = work / f"remote-{self.number}"
        shutil.copytree(study.signed if self.signed else study.plain, remote, symlinks=True)
        shutil.rmtree(remote / "locks", ignore_errors=True)
        mutation = mutate(study, remote, self.signed, self.by_web, self.rng)
        host = StaticHost(remote)
        if mutation.lie:
            host.lies[mutation.file] = mutation.lie
        place = host.url if self.by_web else str(remote)
        demand = ["--allowed-signers", str(work / "signers")] if self.signed else []
        folders = [study.project(f"{verb}-{self.number}") for verb in ("run", "pull")]
        ran = study.call(
            folders[0], "run", "w.yaml", "--remote", place, *demand, "--format", "json"
        )
        self.judge_run(ran, folders[0], mutation, host)
        host.forget()
        pulled = study.call(
            folders[1], "pull", "w.yaml", "--remote", place, *demand, "--format", "json"
        )
        self.judge_pull(pulled, folders[1], mutation, host)
        host.close()
        if not self.violations:
            for folder in (*folders, remote):
                shutil.rmtree(folder)
        return mutation

    def violate(self, what: str, done: subprocess.CompletedProcess) -> None:
        shown = (done.stderr or done.stdout)[-1500:]
        self.violations.append(f"#{self.number}: {what}\n{shown}")

    def was_read(self, mutation: Mutation, host: StaticHost) -> bool:
        # Of a folder nobody counts: manifests are read always, tables where they are needed.
        return mutation.file in host.asked() if self.by_web else "blobs/" not in mutation.file

    def judge_run(self, done, folder: Path, mutation: Mutation, host: StaticHost) -> None:
        if done.returncode or "panicked" in done.stderr:
            return self.violate(f"the run ended with {done.returncode}", done)
        if digests(done.stdout) != self.study.truth or outputs(folder) != self.study.outputs:
            return self.violate("ANOTHER RESULT", done)
        events = parse_events(done.stdout)
        warned = any(event.get("event") == "warning" for event in events)
        ran = any(step["status"] == "ran" for step in events[-1]["steps"])
        self.read = self.was_read(mutation, host)
        self.reported = warned
        if (self.read or ran) and not (warned or mutation.absent):
            self.violate("it was read and not reported", done)
        self.clean(folder)

    def judge_pull(self, done, folder: Path, mutation: Mutation, host: StaticHost) -> None:
        wanted = 0 if mutation.absent else 1
        if done.returncode != wanted or "panicked" in done.stderr:
            return self.violate(f"the pull ended with {done.returncode}, not {wanted}", done)
        said = "neither store has" if mutation.absent else "steps have no result here"
        if said not in done.stderr:
            self.violate("the pull does not say what is wrong", done)
        self.clean(folder)
        missing = set(json.loads(done.stdout.splitlines()[-1])["missing"])
        again = self.study.call(folder, "run", "w.yaml", "--format", "json")
        if again.returncode or digests(again.stdout) != self.study.truth:
            return self.violate("ANOTHER RESULT after the pull", again)
        steps = parse_events(again.stdout)[-1]["steps"]
        computed = {step["step"] for step in steps if step["status"] == "ran"}
        if computed - missing:
            self.violate(f"the pull did not take {computed - missing}, nor say so", done)

    def clean(self, folder: Path) -> None:
        if (folder / "cache").exists():
            found = self.study.call(folder, "cache", "verify")
            if found.returncode:
                self.violate("`cache verify` finds damage in the own store", found)


def main() -> int:
    in_venv("blake3==1.0.11")
    parser = arguments(__doc__)
    parser.add_argument("--mutations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat this one")
    args = parser.parse_args()
    study = Study(args.galeras, work_folder(args))
    numbers = range(args.mutations) if args.only is None else [args.only]
    mutations, read, reported = Counter(), Counter(), Counter()
    violations: list = []
    for number in numbers:
        trial = Trial(study, number, args.seed)
        mutation = trial.go()
        place = mutation.file.split("/")[0]
        row = (mutation.kind, place)
        mutations[row] += 1
        read[row] += trial.read
        reported[row] += trial.reported
        violations += trial.violations
        for violation in trial.violations:
            print(f"{violation} ({mutation.kind} of {mutation.file})", flush=True)
    rows = [[*row, n, read[row], reported[row]] for row, n in sorted(mutations.items())]
    table(["mutation", "of", "times", "read by a run", "reported"], rows)
    print(f"{sum(mutations.values())} mutations, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
