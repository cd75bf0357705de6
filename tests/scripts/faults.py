"""A disk that fails at every call: a rerun gives the truth, or a clear error, never another result.

What it shows: small commands (a run with data tests, a paid model and scores; the same with what is
stored; runs with a program, with a repository; `push` and `pull` to a folder, `bundle`, `verify`,
`export`, `report`) work undisturbed once. Then, for every call n by which a command changes what is
below its folder of work (store, outputs, temporary files) or reads from there, and for every kind
of fault, the command meets that fault at its n-th call, in a fresh folder: a full disk, an I/O
error, half a write, a loss of power that takes what was not synced (whole, or half of it; also
names made, given and taken away in folders that were not synced), a kill; a read that fails, is
refused, or gives less than asked for. After each: the command either ended well with the result of
the undisturbed one, or said what failed with an exit code that is not 0, without a panic; then the
same command without faults ends well with the true result, and `cache verify` finds nothing after
it; no answer that had counted before the fault was asked for again. A report is made of what can
be read, so that after a read that failed it may be another one; the next one must be the true one.

How to run it: `python3 tests/scripts/faults.py [--galeras PATH] [--workloads run,again,exec,mine,
push,pull,bundle,verify,export,report] [--kinds enospc,eio,short,crash,torn,kill,badread,denied,few]
[--step 1] [--sample N --seed 1] [--jobs 2] [--only WORKLOAD:KIND:N]`. Needs a C compiler (`cc`),
`git` and Linux: the faults come from `faults/disk.c`, which is loaded before the C library.
`--step 10` takes every tenth call; `--sample 20` takes 20 faults of all of them, by chance from the
seed. A fault takes about a second.

What stays out: faults of mapped memory (`mmap`), which are signals, of `getrandom`, and of programs
that the command starts. What calls the kernel past the C library is not seen either: the crate
`rustix` does, so what has to be whole or absent is not left to `persist` of the crate `tempfile`.

What it prints: the calls of the undisturbed commands, for each kind how many faults were met and
how the commands ended, and the violations. Exit code 1 if there is one.
"""

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from faults.server import Server  # noqa: E402
from faults.workloads import WORKLOADS, Workload, content, copy, words  # noqa: E402
from harness import Verdict, arguments, environment, parse_events, table, work_folder  # noqa: E402

CHANGES = ["enospc", "eio", "short", "crash", "torn", "kill"]
READS = ["badread", "denied", "few"]
DEADLY = ("crash", "torn", "kill")


class Case:
    """A project in a folder of its own."""

    def __init__(self, args, workload: Workload, name: str) -> None:
        self.args, self.workload, self.name = args, workload, name
        self.root = args.folder / name
        prepared = args.folder / f"{workload.name}-prepared"
        if prepared.is_dir():
            copy(prepared, self.root)
            return
        workload.set_up(self.root, args.server.url)
        for command in workload.before:
            done = self.run(command)
            if done.returncode:
                sys.exit(f"{' '.join(command)} failed undisturbed:\n{done.stdout}{done.stderr}")
        for path in workload.without:
            shutil.rmtree(self.root / path, ignore_errors=True)
        copy(self.root, prepared)

    def run(self, command: list, **faults: str) -> subprocess.CompletedProcess:
        work = self.root / "work"
        env = {**environment(), "XDG_DATA_HOME": str(self.root / "data-home")}
        env |= {"TMPDIR": str(work / "tmp"), "FAULTS_CASE": self.name}
        if faults:
            env |= {"LD_PRELOAD": str(self.args.disk), "FAULT_ROOT": str(work), **faults}
        program = [os.path.abspath(self.args.galeras), *words(command)]
        return subprocess.run(
            program, cwd=self.root, env=env, capture_output=True, text=True, errors="replace"
        )

    def result(self, done: subprocess.CompletedProcess) -> tuple:
        """What the command came to, and what is read after it: exit codes, digests, files."""
        ended = [done, *(self.run(command) for command in self.workload.after)]
        files = [content(self.root / path) for path in self.workload.files]
        shutil.rmtree(self.root / "fresh", ignore_errors=True)
        return [(each.returncode, digests(each)) for each in ended], files

    def questions(self) -> int:
        return self.args.server.count(self.name)


def digests(done: subprocess.CompletedProcess) -> dict:
    """Those of all tables of a run; nothing of another command."""
    last = (parse_events(done.stdout) or [{}])[-1]
    steps = last.get("steps", []) if isinstance(last, dict) else []
    ports = ((step, port) for step in steps if isinstance(step, dict) for port in step["ports"])
    return {(step["step"], port["port"]): port["digest"] for step, port in ports}


@dataclass
class Truth:
    """What an undisturbed command comes to, and its calls."""

    result: tuple
    questions: int
    changes: int
    reads: int


def judge(args, verdict: Verdict, truth: Truth, workload: Workload, kind: str, at: int) -> str:
    """One fault: how the command that met it ended."""
    here = f"{workload.name}:{kind}:{at}"
    case = Case(args, workload, here.replace(":", "-"))
    faulty = case.run(workload.command, FAULT_KIND=kind, FAULT_AT=str(at))
    said = faulty.stdout + faulty.stderr
    defect = any(word in said for word in ("panicked", "a defect in ", "a library gave up"))
    verdict.check(not defect, f"{here}: a panic: {said[-600:]}")
    # A file that cannot be looked at is like one that somebody else wrote there.
    known = {0, 1, 4} | ({-9} if kind in DEADLY else {2} if kind in READS else set())
    verdict.check(faulty.returncode in known, f"{here}: exit {faulty.returncode}: {said[-600:]}")
    if faulty.returncode == 0:
        # A folder of its own: what reads the result may mend it.
        seen = case
        if workload.after:
            seen = Case(args, workload, f"{case.name}-seen")
            shutil.rmtree(seen.root)
            copy(case.root, seen.root)
        same = seen.result(faulty) == truth.result
        verdict.check(
            same or (workload.partial and kind in READS), f"{here}: ended well with another result"
        )
        if seen is not case:
            shutil.rmtree(seen.root)
    elif faulty.returncode > 0:
        verdict.check(bool(said.strip()), f"{here}: failed without a word")
    asked = case.questions()
    counted = min(asked, truth.questions)
    if kind in DEADLY or faulty.returncode:
        told = [e for e in parse_events(faulty.stdout) if e.get("event") == "progress"]
        # The steps after it tell of progress, too.
        paid = [event["done"] for event in told if event["step"] == "answers"]
        counted = sum(paid[-1:])
    again = case.run(workload.command)
    if verdict.check(again.returncode == 0, f"{here}: again it fails: {tail(again)}"):
        found = case.result(again)
        verdict.check(found[0] == truth.result[0], f"{here}: again, other exit codes or digests")
        verdict.check(found[1] == truth.result[1], f"{here}: again, other files")
    more, most = case.questions() - asked, truth.questions - counted
    verdict.check(more <= most, f"{here}: asked {more} again, at most {most} were open")
    left = case.run(["cache", "verify"])
    verdict.check(left.returncode == 0, f"{here}: verify finds: {tail(left)}")
    if not args.keep:
        shutil.rmtree(case.root)
    return {0: "ended well", -9: "died"}.get(faulty.returncode, "said what failed")


def tail(done: subprocess.CompletedProcess) -> str:
    return (done.stdout + done.stderr)[-500:]


def undisturbed(args, workload: Workload) -> Truth:
    """A command without faults, and its numbers of calls."""
    case = Case(args, workload, f"{workload.name}-truth")
    count = args.folder / f"{workload.name}-calls"
    before = case.questions()
    done = case.run(workload.command, FAULT_AT="0", FAULT_COUNT=str(count))
    if done.returncode:
        sys.exit(f"{workload.name} failed undisturbed:\n{done.stdout}{done.stderr}")
    asked = case.questions() - before
    truth = Truth(case.result(done), asked, *map(int, count.read_text().split()))
    print(f"{workload.name}: {truth.changes} changes, {truth.reads} reads, {asked} questions")
    if any(code for code, _ in truth.result[0]) or not all(truth.result[1]):
        sys.exit(f"{workload.name} has no result: {truth.result}")
    return truth


def chosen(args, truths: dict) -> list:
    """The faults: workload, kind and call."""
    if args.only:
        name, kind, at = args.only.split(":")
        return [(name, kind, int(at))]
    cases = []
    for name, truth in truths.items():
        for kind in args.kinds.split(","):
            calls = truth.reads if kind in READS else truth.changes
            # Threads make the number of calls differ a little from run to run.
            cases += [(name, kind, n) for n in range(1, calls + 9, args.step)]
    if args.sample and args.sample < len(cases):
        cases = sorted(random.Random(args.seed).sample(cases, args.sample), key=cases.index)
    return cases


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="which commands")
    parser.add_argument("--step", type=int, default=1, help="every so many calls")
    parser.add_argument("--sample", type=int, help="so many faults of all, by chance")
    parser.add_argument("--seed", type=int, default=1, help="of the chance")
    parser.add_argument("--jobs", type=int, default=2, help="cases side by side")
    parser.add_argument("--kinds", default=",".join(CHANGES + READS), help="which faults")
    parser.add_argument("--only", help="one fault, as WORKLOAD:KIND:N")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the cases")
    args = parser.parse_args()
    args.folder = work_folder(args)
    args.disk = args.folder / "disk.so"
    source = Path(__file__).resolve().parent / "faults" / "disk.c"
    compiler = ["cc", "-shared", "-fPIC", "-O1", "-o", str(args.disk), str(source), "-ldl"]
    subprocess.run(compiler, check=True)
    args.server, verdict = Server(), Verdict()
    names = [args.only.split(":")[0]] if args.only else args.workloads.split(",")
    truths = {name: undisturbed(args, WORKLOADS[name]) for name in names}
    cases = chosen(args, truths)

    def one(case: tuple) -> str:
        name, kind, at = case
        return judge(args, verdict, truths[name], WORKLOADS[name], kind, at)

    with ThreadPoolExecutor(args.jobs) as pool:
        counts = Counter(zip((kind for _, kind, _ in cases), pool.map(one, cases), strict=True))
    kinds = [kind for kind in CHANGES + READS if any(kind == each for _, each, _ in cases)]
    columns = ["ended well", "said what failed", "died"]
    table(["fault", *columns], [[k, *(counts[k, column] for column in columns)] for k in kinds])
    print(f"{len(cases)} faults")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
