"""Killed while pushing and pulling: it goes on from there, nothing is sent twice, nothing is
broken.

What it shows: a workflow of forty tables of about a megabyte each is computed. `push` into a folder
is killed 20 times at a random instant, and `pull` from a static web server 20 times. After each
kill `galeras cache verify` finds nothing in the store that was written to, and each table that was
there is still the same file (its inode and times): nothing is written twice. Of the web server
every table that had come whole and was stored is not asked for again; what a killed pull had not
stored is. The last push and pull end with 0, the next ones send nothing, and whoever pulled has
hits everywhere with the same digests. Then two pushers, one of whom is killed and starts again, and
two pullers into one store, go at once. All of it is done unsigned and with `--sign`.

How to run it: `python3 tests/scripts/remote_kills.py [--galeras PATH] [--kills 20] [--seed 1]`.
Needs `ssh-keygen`.

What it prints: for each part the kills, at what work they came, and the bytes that were moved as a
multiple of what is needed; the violations. Exit code 1 if there is one.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import arguments, environment, parse_events, work_folder  # noqa: E402
from static_host import StaticHost  # noqa: E402

TABLES = 40
ROWS = 30_000


def workflow() -> str:
    steps = "".join(
        f"""  t{n:02}:
    op: sql
    from: rows
    with:
      key: [id]
      query: SELECT id, x, (x * 7919 + {n} * 104729) % 1000003 AS y FROM input
"""
        for n in range(TABLES)
    )
    return f"""galeras: 1
name: forty
steps:
  rows:
    op: read
    with: {{ path: data.csv, key: [id] }}
{steps}"""


class Killed:
    """The workflow, its truth, and what was seen."""

    def __init__(self, galeras: str, work: Path, kills: int, seed: int):
        self.galeras, self.work, self.kills = os.path.abspath(galeras), work, kills
        self.rng = random.Random(seed)
        self.violations: list = []
        self.home = self.project("home")
        self.truth = self.digests(self.home)
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"]
        subprocess.run(key, cwd=work, check=True)
        self.sign = ["--sign", str(work / "key")]
        public = (work / "key.pub").read_text()
        (work / "signers").write_text(f"ada@example.org {public}")
        self.demand = ["--allowed-signers", str(work / "signers")]
        self.whole = 0.0

    def project(self, name: str) -> Path:
        folder = self.work / name
        folder.mkdir()
        (folder / "w.yaml").write_text(workflow())
        rows = "".join(f"row{i:06},{i * 31 % 65537}\n" for i in range(ROWS))
        (folder / "data.csv").write_text("id,x\n" + rows)
        return folder

    def start(self, folder: Path, *args: str) -> subprocess.Popen:
        return subprocess.Popen(
            [self.galeras, *args],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, folder: Path, *args: str) -> subprocess.CompletedProcess:
        started = self.start(folder, *args)
        out, err = started.communicate(timeout=600)
        return subprocess.CompletedProcess(args, started.returncode, out, err)

    def digests(self, folder: Path, status: str | None = None) -> dict:
        done = self.call(folder, "run", "w.yaml", "--format", "json")
        if done.returncode:
            sys.exit(f"a run failed:\n{done.stderr}")
        steps = parse_events(done.stdout)[-1]["steps"]
        odd = [step["step"] for step in steps if status and step["status"] != status]
        if odd:
            self.violate(f"not a {status} after the transfer: {odd[:5]}")
        return {step["step"]: step["digest"] for step in steps}

    def violate(self, what: str) -> None:
        print(f"VIOLATION: {what}", flush=True)
        self.violations.append(what)

    def sound(self, store: Path, when: str) -> None:
        if not store.exists():
            return
        found = self.call(self.home, "cache", "verify", "--cache", str(store))
        if found.returncode:
            self.violate(f"{when}: `cache verify` of {store.name}: {found.stdout}{found.stderr}")

    def ends(self, done: subprocess.CompletedProcess, what: str) -> None:
        if done.returncode or "panicked" in done.stderr:
            self.violate(f"{what} ended with {done.returncode}: {done.stderr[-800:]}")

    def kill(self, started: subprocess.Popen, after: float) -> bool:
        """Kills it after so many seconds; false if it had ended by itself."""
        try:
            started.communicate(timeout=after)
            return False
        except subprocess.TimeoutExpired:
            started.send_signal(self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            started.communicate()
            return True

    def time_of(self, work) -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    def push(self, signed: bool) -> Path:
        """Kills a push again and again; after one that ended by itself comes one to elsewhere."""
        name = "signed" if signed else "plain"
        more = self.sign if signed else []
        # How long a push takes that nobody kills.
        timed = ["push", "w.yaml", "--remote", str(self.work / f"timed-{name}"), *more]
        self.whole = self.time_of(lambda: self.call(self.home, *timed))
        work, seen, ended = Counter(), {}, 0
        remote = self.work / name
        while work.total() < self.kills and ended < 3 * self.kills:
            after = self.rng.uniform(0.1, self.whole)
            args = ["push", "w.yaml", "--remote", str(remote), *more]
            landed = self.kill(self.start(self.home, *args), after)
            self.same_files(remote, seen, f"push {work.total()}")
            self.sound(remote, f"after kill {work.total()} of a push")
            if landed:
                work[len(tables(remote))] += 1
            else:
                ended += 1
                remote, seen = self.work / f"{name}-{ended}", {}
        args = ["push", "w.yaml", "--remote", str(remote), *more]
        self.ends(self.call(self.home, *args), "the last push")
        self.same_files(remote, seen, "the last push")
        self.sound(remote, "after the last push")
        before = written(remote)
        self.ends(self.call(self.home, *args), "one more push")
        changed = [name for name, time in written(remote).items() if before.get(name) != time]
        if changed:
            self.violate(f"one more push wrote {len(changed)} files: {changed[:3]}")
        left = list((remote / "tmp").glob("*")) if (remote / "tmp").exists() else []
        if left:
            self.violate(f"{len(left)} temporary files are left in {remote.name}")
        spread = ", ".join(f"{n} at {at} tables" for at, n in sorted(work.items()))
        print(f"push {name}: {work.total()} kills ({spread}), {ended} had ended", flush=True)
        return remote

    def same_files(self, store: Path, seen: dict, when: str) -> None:
        """Each table that was there is the same file as then."""
        now = tables(store)
        for name, identity in seen.items():
            if now.get(name) != identity:
                self.violate(f"{when}: {name} was written again, or is gone")
        seen.update(now)

    def pull(self, remote: Path, signed: bool) -> None:
        """Kills a pull from a web server again and again, likewise."""
        host = StaticHost(remote, pause=0.02)
        args = ["pull", "w.yaml", "--remote", host.url, *(self.demand if signed else [])]
        needed = sum(size for _, _, size in tables(remote).values())
        landed, ended, seen = 0, 0, {}
        folder = self.project(f"pull-{remote.name}")
        while landed < self.kills and ended < 3 * self.kills:
            store = folder / "cache"
            there, mark = set(tables(store)), len(host.requests)
            killed = self.kill(self.start(folder, *args), self.rng.uniform(0.1, 1.2))
            again = [path for path, _, _ in host.requests[mark:] if Path(path).name in there]
            if again:
                self.violate(f"pull {landed}: {len(again)} tables that were here came again")
            self.same_files(store, seen, f"pull {landed}")
            self.sound(store, f"after kill {landed} of a pull")
            landed += killed
            if not killed:
                ended += 1
                folder, seen = self.project(f"pull-{remote.name}-{ended}"), {}
        host.pause, store = 0.0, folder / "cache"
        self.ends(self.call(folder, *args), "the last pull")
        self.same_files(store, seen, "the last pull")
        self.sound(store, "after the last pull")
        moved = sum(sent for path, sent, _ in host.requests if "blobs/" in path)
        mark = len(host.requests)
        self.ends(self.call(folder, *args), "one more pull")
        late = [path for path, _, _ in host.requests[mark:] if "blobs/" in path]
        if late:
            self.violate(f"one more pull fetched {len(late)} tables")
        host.close()
        if self.digests(folder, "hit") != self.truth:
            self.violate("ANOTHER RESULT after pulling")
        times = moved / needed / (ended + 1)
        print(
            f"pull {remote.name}: {landed} kills, {ended} had ended; {times:.2f} times the bytes "
            "of the tables came for each store",
            flush=True,
        )

    def two_at_once(self, signed: bool) -> None:
        """Two pushers, one of them killed, then two pullers into one store."""
        other = self.project("other-signed" if signed else "other")
        if self.digests(other) != self.truth:
            self.violate("ANOTHER RESULT of the other pusher")
        remote = self.work / ("both-signed" if signed else "both")
        args = ["push", "w.yaml", "--remote", str(remote), *(self.sign if signed else [])]
        first, second = self.start(self.home, *args), self.start(other, *args)
        self.kill(second, self.whole / 2)
        third = self.start(other, *args)
        for started, what in ((first, "the first pusher"), (third, "the second pusher")):
            out, err = started.communicate(timeout=600)
            done = subprocess.CompletedProcess(args, started.returncode, out, err)
            self.ends(done, what)
        self.sound(remote, "after two pushers at once")
        folder = self.project("two-signed" if signed else "two")
        host = StaticHost(remote)
        args = ["pull", "w.yaml", "--remote", host.url, *(self.demand if signed else [])]
        both = [self.start(folder, *args) for _ in range(2)]
        for started in both:
            out, err = started.communicate(timeout=600)
            done = subprocess.CompletedProcess(args, started.returncode, out, err)
            self.ends(done, "one of two pullers")
        host.close()
        self.sound(folder / "cache", "after two pullers at once")
        if self.digests(folder, "hit") != self.truth:
            self.violate("ANOTHER RESULT after two at once")
        print(f"two at once{' (signed)' if signed else ''}: done", flush=True)


def written(store: Path) -> dict:
    """When each file of a store was written, but for those that change with every use."""
    names = [path for path in store.rglob("*") if path.is_file() and path.parent.name != "locks"]
    return {str(p.relative_to(store)): p.stat().st_mtime_ns for p in names if p.suffix != ".log"}


def tables(store: Path) -> dict:
    """The tables of a store: name -> inode, time, size."""
    found = {}
    for path in store.glob("blobs/*/*.parquet"):
        about = path.stat()
        found[path.name] = (about.st_ino, about.st_mtime_ns, about.st_size)
    return found


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    killed = Killed(args.galeras, work_folder(args), args.kills, args.seed)
    for signed in (False, True):
        remote = killed.push(signed)
        killed.pull(remote, signed)
        killed.two_at_once(signed)
    print(f"{len(killed.violations)} violations")
    return 1 if killed.violations else 0


if __name__ == "__main__":
    sys.exit(main())
