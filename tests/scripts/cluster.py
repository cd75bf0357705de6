"""The same digests on a cluster, whatever happens to its processes.

What it shows: a workflow that mines three repositories, computes features, validates, removes
near duplicates, cuts, prompts, asks a model on loopback, scores, describes, queries and regresses
gives the digests of an embedded run on 1, 2 and 4 executors; with an executor killed at random
moments; with one stopped for longer than it may be silent; with all executors killed and started
anew; with the scheduler killed and started anew; with the coordinator killed, and the workflow run
again; with an executor whose disk for temporary files is full. Every question to the model is asked
once, whatever happens. A secret that was planted into the environment of all processes is in no
file that they wrote. Executors on another store, items that end whoever begins them, and executors
all of whose disks are full end the run with an error that says so. An executor of another build
does not join. A repository to which the user did not agree is opened by no executor.

How to run it: `python3 tests/scripts/cluster.py [--galeras PATH] [--kills 20] [--commits 150]
[--seed 1] [--only CASE] [--s3-server PATH]`, with a build that has the feature `cluster`. Needs the
`git` program, and the rights to mount a file system in memory for the cases `full-disk`, which are
left out otherwise, and with fewer commits. `cargo build -p galeras-test-servers --features s3
--example s3` builds the S3 server of `--s3-server`, with which the store is a bucket, once with its
connection cut for five seconds.

What it prints: a line for each case, how long it took, and how many rows were computed twice. Exit
code 1 if anything does not hold.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from chaos.servers import World  # noqa: E402
from cluster.processes import Cluster  # noqa: E402
from cluster.workload import TABLE_OF_REPOSITORIES, write_repository, write_workload  # noqa: E402
from harness import Run, Verdict, arguments, command, environment, parse_events, work_folder  # noqa: E402

SECRET = "PLANTED-SECRET-7c1f"
# Executors may be silent for 15 seconds.
SILENCE = 20


class Cases:
    """The cases, each in a folder with a store of its own."""

    def __init__(self, args, work: Path) -> None:
        self.galeras, self.work = args.galeras, work
        self.rng = random.Random(args.seed)
        self.verdict = Verdict()
        self.world = World(work, 0, 0.002, 0.0)
        self.workflow = write_workload(work / "project", self.world, args.commits)
        self.expected: dict = {}
        self.rows: dict = {}
        self.seconds = 0.0

    def start(self, cache: Path, key: str, *more: str, extra=None, store=None) -> subprocess.Popen:
        run = command(self.galeras, self.workflow, cache, *more)
        run = [store if store and part == str(cache) else part for part in run]
        return self.started(run, key, extra)

    def started(self, run: list, key: str, extra: dict | None = None) -> subprocess.Popen:
        env = environment() | {"CLUSTER_KEY": key, "PLANTED": SECRET} | (extra or {})
        return subprocess.Popen(
            run, cwd=self.work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self, process: subprocess.Popen, started: float) -> Run:
        try:
            out, err = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.verdict.check(False, "a run takes longer than ten minutes")
        return Run(process.returncode, time.perf_counter() - started, parse_events(out), err)

    def run(self, cache: Path, key: str, *more: str) -> Run:
        started = time.perf_counter()
        return self.finish(self.start(cache, key, *more), started)

    def embedded(self) -> None:
        run = self.run(self.work / "embedded", "embedded")
        if run.code != 0:
            sys.exit(f"the embedded run ended with {run.code}\n{run.stderr}")
        self.expected, self.seconds = run.digests, run.wall
        self.rows = parts(self.work / "embedded")
        self.questions = sum(self.world.asked("embedded").values())
        rows = sum(step["computed_rows"] for step in run.steps.values())
        print(f"embedded: {run.wall:.1f} s, {rows} rows, {self.questions} questions", flush=True)

    def case(self, name: str, executors: int, trouble=None, again: bool = False) -> None:
        """A run on a cluster of its own, with `trouble` in a thread; `again`: and once more."""
        folder = self.work / name
        cluster = Cluster(self.galeras, folder, str(folder / "store"), {"PLANTED": SECRET})
        for _ in range(executors):
            cluster.add()
        started = time.perf_counter()
        process = self.start(folder / "store", name, "--engine", cluster.address)
        thread = None
        if trouble:
            thread = threading.Thread(target=trouble, args=(cluster, process))
            thread.start()
        run = self.finish(process, started)
        if thread:
            thread.join()
        if again:
            run = self.run(folder / "store", name, "--engine", cluster.address)
        self.judge(name, run, folder)
        codes = cluster.end()
        killed = [code for code in codes if code not in (0, -signal.SIGKILL)]
        self.verdict.check(not killed, f"{name}: executors ended with {killed}")
        logs = " ".join(path.read_text(errors="replace") for path in folder.glob("*.log"))
        self.verdict.check("panicked" not in logs, f"{name}: a panic in the logs")

    def doomed(self) -> None:
        """Executors that the kernel ends at any file that is not small, started again each time."""
        name, folder = "doomed", self.work / "doomed"
        cluster = Cluster(self.galeras, folder, str(folder / "store"))
        limit = ("prlimit", "--fsize=16384")
        cluster.add(before=limit)
        process = self.start(folder / "store", name, "--engine", cluster.address)
        over = threading.Event()

        def supervise() -> None:
            while not over.wait(0.2):
                if cluster.executors[0].process.poll() is not None:
                    cluster.replace(0, before=limit)

        thread = threading.Thread(target=supervise)
        thread.start()
        run = self.finish(process, time.perf_counter())
        over.set()
        thread.join()
        why = reasons(run)
        named = run.code == 1 and "mined: " in why and "by executor-" in why
        self.verdict.check(named, f"{name}: exit {run.code}: {why}")
        print(f"{name}: {run.wall:.1f} s, {why}", flush=True)
        cluster.end()

    def strange(self) -> None:
        """An executor on another store."""
        name, folder = "strange", self.work / "strange"
        cluster = Cluster(self.galeras, folder, str(folder / "elsewhere"))
        cluster.add()
        started = time.perf_counter()
        process = self.start(folder / "store", name, "--engine", cluster.address)
        run = self.finish(process, started)
        why = reasons(run)
        named = run.code == 1 and "mined: " in why and "the same store" in why
        self.verdict.check(named, f"{name}: exit {run.code}: {why}")
        print(f"{name}: {run.wall:.1f} s, {why}", flush=True)
        cluster.end()

    def full_disk(self, name: str) -> None:
        """An executor whose temporary files find no room; `full-disk`: beside one that has some."""
        folder = self.work / name
        small = folder / "small"
        small.mkdir(parents=True)
        mounted = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
        if subprocess.run(mounted, capture_output=True).returncode:
            print(f"{name}: left out, nothing can be mounted here", flush=True)
            return
        cluster = Cluster(self.galeras, folder, str(folder / "store"))
        # Little memory, so that what is sorted goes to the disk.
        cluster.add(memory="16MiB", extra={"TMPDIR": str(small)})
        if name == "full-disk":
            cluster.add()
        started = time.perf_counter()
        process = self.start(folder / "store", name, "--engine", cluster.address)
        run = self.finish(process, started)
        told = [e for e in run.events if e.get("event") == "warning" and "again" in e["message"]]
        mine = [e["message"] for e in told if "by executor-1: " in e["message"]]
        check = self.verdict.check
        check(any("No space left" in text for text in mine), f"{name}: no warning of a full disk")
        check(len(mine) == len(told), f"{name}: others failed, too: {told}")
        if name == "full-disk":
            self.judge(name, run, folder)
        else:
            why = reasons(run)
            named = re.search(r"^\w+: .*No space left.* \(executor executor-1, ", why)
            check(run.code == 1 and named, f"{name}: exit {run.code}: {why}")
            print(f"{name}: {run.wall:.1f} s, {why}", flush=True)
        cluster.end()
        subprocess.run(["umount", str(small)], check=True)

    def other_build(self) -> None:
        """Executors and runs of a program that was compiled for another machine, as it says."""
        name, folder = "other-build", self.work / "other-build"
        cluster = Cluster(self.galeras, folder, str(folder / "store"))
        ours = re.search(r"galeras \S+ for (\S+), operators \S+", cluster.scheduler.text())
        other = folder / "galeras"
        machine = ours[1].encode()
        other.write_bytes(Path(self.galeras).read_bytes().replace(machine, machine[:-1] + b"X"))
        other.chmod(0o755)
        theirs = ours[0].replace(ours[1], f"{ours[1][:-1]}X")
        check = self.verdict.check

        def names_both(text: str, what: str) -> None:
            text = " ".join(text.split())
            check(ours[0] in text and theirs in text, f"{name}: {what}: {text}")

        stranger = cluster.start_executor(str(other), 1, (), "1GiB", {})
        check(stranger.process.wait(timeout=60) == 1, f"{name}: an executor joined")
        names_both(stranger.text(), "executor")
        run = command(str(other), self.workflow, folder / "store", "--engine", cluster.address)
        refused = self.finish(self.started(run, name), time.perf_counter())
        check(refused.code == 1, f"{name}: a run was not refused: {refused.code}")
        names_both(reasons(refused), "run")
        print(f"{name}: {' '.join(stranger.text().split())}", flush=True)
        other.unlink()
        cluster.end()

    def refused(self) -> None:
        """A table of repositories, to one of which the user did not agree."""
        name, folder = "refused", self.work / "refused"
        project = folder / "project"
        project.mkdir(parents=True)
        write_repository(project / "inside.git", 20, 4, 7)
        # What lies in the folder where the run is started needs no consent.
        elsewhere = tempfile.TemporaryDirectory(prefix="galeras-")
        outside = Path(elsewhere.name) / "outside.git"
        write_repository(outside, 20, 4, 8)
        rows = ["repo,clone_url,head_sha"]
        for repo in (project / "inside.git", outside):
            head = ["git", "-C", str(repo), "rev-parse", "main"]
            head = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
            rows.append(f"{repo.stem},{repo},{head}")
        (project / "repos.csv").write_text("\n".join(rows) + "\n")
        (project / "w.yaml").write_text(TABLE_OF_REPOSITORIES)
        cluster = Cluster(self.galeras, folder, str(folder / "store"))
        cluster.add()
        runs = []
        for cache, more in (("alone", ()), ("store", ("--engine", cluster.address))):
            run = command(self.galeras, project / "w.yaml", folder / cache, *more)
            run.remove("--allow-all")
            runs.append(self.finish(self.started(run, name), time.perf_counter()))
        alone, spread = runs
        check = self.verdict.check
        if check(spread.code == alone.code == 0, f"{name}: {reasons(alone)}; {reasons(spread)}"):
            check(spread.digests == alone.digests, f"{name}: another digest")
            rejects = spread.digests["mined", "rejects"][1]
            check(rejects == 1, f"{name}: {rejects} repositories were refused")
        told = sum("executor-1" in e.get("text", "") for e in spread.events)
        check(told, f"{name}: no executor did anything")
        print(f"{name}: {spread.wall:.1f} s, {told} items told", flush=True)
        cluster.end()
        elsewhere.cleanup()

    def bucket(self, name: str, program: Path) -> None:
        """A run whose store is a bucket; `bucket-cut`: one that says nothing for five seconds."""
        folder = self.work / name
        (folder / "s3").mkdir(parents=True)
        server = subprocess.Popen(
            [program, folder / "s3", "lab"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = iter(server.stdout.readline, "\n")
        extra = dict(line.rstrip("\n").split("=", 1) for line in lines)
        cluster = Cluster(self.galeras, folder, "s3://lab/study", extra | {"PLANTED": SECRET})
        cluster.add()
        cluster.add()
        started = time.perf_counter()
        more = ("--engine", cluster.address)
        process = self.start(folder / "out", name, *more, extra=extra, store=cluster.cache)
        if name == "bucket-cut":
            time.sleep(self.rng.uniform(3, 6))
            server.send_signal(signal.SIGSTOP)
            time.sleep(5)
            server.send_signal(signal.SIGCONT)
        self.judge(name, self.finish(process, started), folder)
        cluster.end()
        server.communicate()

    def judge(self, name: str, run: Run, folder: Path) -> None:
        check = self.verdict.check
        if not check(run.code == 0, f"{name}: exit {run.code}: {reasons(run)}"):
            return
        for port, digest in self.expected.items():
            check(run.digests.get(port) == digest, f"{name}: {port} has another digest")
        asked = self.world.asked(name)
        check(set(asked.values()) <= {1}, f"{name}: a question was asked twice")
        check(len(asked) == self.questions, f"{name}: {len(asked)} questions")
        work = folder / "store" / "work"
        left = [path for path in work.rglob("*") if path.is_file()] if work.exists() else []
        check(not left or "coordinator" in name, f"{name}: {len(left)} files of jobs are left")
        found = subprocess.run(["grep", "-rlE", SECRET, str(folder)], capture_output=True)
        check(not found.stdout, f"{name}: the secret is in {found.stdout.decode()[:200]}")
        more = (rows - self.rows.get(at, 0) for at, rows in parts(folder / "store").items())
        twice = sum(max(rows, 0) for rows in more)
        spread = sum("executor-" in e.get("text", "") for e in run.events)
        print(f"{name}: {run.wall:.1f} s, {twice} rows twice, {spread} items told", flush=True)


def parts(store: Path) -> dict:
    """Recipe -> the rows of its parts."""
    rows: dict = {}
    for path in store.glob("memo/*/*/*.json"):
        recipe = path.parent.name
        rows[recipe] = rows.get(recipe, 0) + json.loads(path.read_text())["rows"]
    return rows


def reasons(run: Run) -> str:
    failed = [e for e in run.events if e.get("status") == "failed" and "step" in e]
    return "; ".join(f"{e['step']}: {e.get('detail')}" for e in failed) or run.stderr[-500:]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--commits", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--s3-server", type=Path)
    args = parser.parse_args()
    os.environ.pop("CLUSTER_KEY", None)
    cases = Cases(args, work_folder(args))
    cases.embedded()
    span = max(cases.seconds, 2.0)

    def kill_one(cluster: Cluster, _) -> None:
        time.sleep(cases.rng.uniform(0.2, span))
        at = cases.rng.randrange(len(cluster.executors))
        cluster.executors[at].kill()

    def pause_one(cluster: Cluster, _) -> None:
        time.sleep(cases.rng.uniform(0.2, span / 2))
        cluster.executors[0].send(signal.SIGSTOP)
        time.sleep(SILENCE)
        cluster.executors[0].send(signal.SIGCONT)

    def kill_all(cluster: Cluster, _) -> None:
        time.sleep(cases.rng.uniform(0.2, span / 2))
        for executor in cluster.executors:
            executor.kill()
        time.sleep(2)
        for at in range(len(cluster.executors)):
            cluster.replace(at)

    def kill_scheduler(cluster: Cluster, _) -> None:
        time.sleep(cases.rng.uniform(0.2, span / 2))
        cluster.restart_scheduler()

    def kill_coordinator(_, process: subprocess.Popen) -> None:
        time.sleep(cases.rng.uniform(0.5, span))
        process.kill()

    plan = [(f"executors-{n}", n, None, False) for n in (1, 2, 4)]
    plan += [(f"kill-{n}", 2, kill_one, False) for n in range(args.kills)]
    plan += [
        ("pause", 2, pause_one, False),
        ("kill-all", 2, kill_all, False),
        ("kill-scheduler", 2, kill_scheduler, False),
        ("kill-coordinator", 2, kill_coordinator, True),
    ]
    for name in ("bucket", "bucket-cut") if args.s3_server else ():
        if name.startswith(args.only):
            cases.bucket(name, args.s3_server)
    # Less than that fits into memory.
    for name in ("full-disk", "full-disks") if args.commits >= 150 else ():
        if name.startswith(args.only):
            cases.full_disk(name)
    for name in ("strange", "doomed", "refused", "other-build"):
        if name.startswith(args.only):
            getattr(cases, name.replace("-", "_"))()
    for name, executors, trouble, again in plan:
        if name.startswith(args.only):
            cases.case(name, executors, trouble, again)
    return cases.verdict.end()


if __name__ == "__main__":
    sys.exit(main())
