"""Must-show: `dedup` against dpu_utils and rensa, on real methods, in one go on one machine.

What it shows: the near-duplicates (set Jaccard >= 0.8 and multiset Jaccard >= 0.7 of the word
tokens, at least 20 tokens, connected components) of the same rows, found by
- dpu_utils' DuplicateDetector (pinned; exact, Python), fed with the same tokens;
- rensa's R-MinHash and LSH (pinned; Rust with a Python API), its candidates verified in Python;
- `galeras run` of `read -> dedup` with `method: exact` and with `method: minhash`.
The components of dpu_utils must be those of `exact`; every row where they differ is judged by
recomputing the similarities. The recall of rensa and of `minhash` is against `exact`.

How to run it: `python3 benches/dedup_vs_peers.py --methods FILE.parquet (columns id, code)
[--rows 25000,50000,100000,200000] [--engines dpu,rensa,exact,minhash] [--repeat 3]
[--dpu-limit SECONDS] [--memory-limit GB] [--bands 16] [--peer-cache FOLDER] [--venv FOLDER]
[--jobs N] [--faster-than-dpu X] [--faster-than-rensa X] [--galeras PATH]`. The rows of each
size are those with the smallest MD5 of the id, so a smaller sample is part of a larger one.
Every measured process is one of its own. dpu_utils runs once per size and is stopped at
`--dpu-limit`; the others run `--repeat` times and the median counts. With `--peer-cache` the
results and times of dpu_utils and rensa are stored and reused; the output says so, and judges
such a time by the smaller of wall and processor seconds, as the machine may have been busy.

What it prints: per size and engine the wall seconds of the whole process, of the work after
the rows are in memory, of the work without tokenising (for `galeras`: of the step `dedup`),
processor seconds, peak memory (of the whole process), flagged rows, components; the ratios;
the recalls; per engine the exponent of time over rows. A time that was cut off is printed as
`> limit`, and ratios with it as `> ratio`; the fitted exponent extrapolates it, and says so.
Exit code 1 if the components of dpu_utils and `exact` differ, `exact` differs from the
recomputation, or a demanded ratio is missed.
"""

import argparse
import gc
import hashlib
import itertools
import json
import math
import os
import pickle
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import (  # noqa: E402
    Verdict,
    arguments,
    command,
    environment,
    in_venv,
    parse_events,
    pinned,
    table,
    work_folder,
)

PINS = {
    "dpu_utils": "0.6.1",
    "rensa": "0.5.0",
    "pyarrow": "26.0.1",
    "numpy": "2.4.6",
    "regex": "2026.11.15",
}
SET, MULTISET, MIN_TOKENS = 0.8, 0.7, 20
PERMUTATIONS, SEED = 128, 42
PEERS, OURS = ["dpu", "rensa"], ["exact", "minhash"]
FORMAT = 4
STEP = "unique"
WORKFLOW = """\
galeras: 1
name: dedup-bench
steps:
  methods: {{ op: read, with: {{ path: {file}, key: [id] }} }}
  unique:  {{ op: dedup, from: methods, with: {{ column: code{more} }} }}
outputs:
  clusters: {{ from: unique.clusters, path: clusters.parquet }}
  rejects:  {{ from: unique.rejects, path: rejects.parquet }}
  summary:  {{ from: unique.summary, path: summary.csv }}
"""

# A word is a maximal run of alphanumerics and `_` that begins like a Python identifier.
WORD = re.compile(r"(?<!\w)[A-Za-z_]\w*")


# ---------------------------------------------------------------- processes

# A small process starts the measured one, as the peak memory of a child begins with that of
# the process which starts it.
LAUNCH = """
import json, os, resource, signal, sys, time
out, limit, memory, log, program = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], \
    sys.argv[5:]
started = time.perf_counter()
pid = os.fork()
if not pid:
    os.setpgid(0, 0)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.execv(program[0], program)
stopped = []
def stop(*_):
    stopped.append(1)
    os.killpg(pid, signal.SIGKILL)
signal.signal(signal.SIGALRM, stop)
signal.alarm(limit)
while True:
    try:
        _, status, used = os.wait4(pid, 0)
        break
    except InterruptedError:
        pass
json.dump({"wall": time.perf_counter() - started, "cpu": used.ru_utime + used.ru_stime,
    "rss": used.ru_maxrss * 1024, "code": os.waitstatus_to_exitcode(status),
    "stopped": bool(stopped)}, open(out, "w"))
"""


def measured(program: list, work: Path, limit: float = 0, memory: float = 0, cwd=None) -> tuple:
    """Runs a program: (wall, cpu, rss, code, stopped) and its standard output."""
    out, log = work / "measured.json", work / "measured.log"
    errors = work / "measured.err"
    with errors.open("w") as sink:
        subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                LAUNCH,
                str(out),
                str(int(limit)),
                str(int(memory * 2**30)),
                str(log),
                *program,
            ],
            check=True,
            env=environment(),
            stderr=sink,
            cwd=cwd,
        )
    found = json.loads(out.read_text())
    if found["code"] and not found["stopped"]:
        found["why"] = errors.read_text().strip()[-2000:]
    return found, log.read_text(errors="replace")


# ---------------------------------------------------------------- the peers


def read(file: Path) -> tuple:
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(file, columns=["id", "code"])
    return rows["id"].to_pylist(), rows["code"].to_pylist()


def peak() -> int:
    """The largest resident memory of this process until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def by_dpu(file: Path) -> dict:
    """dpu_utils on the word tokens; `other` is all but tokenising."""
    from dpu_utils.codeutils.deduplication import DuplicateDetector

    ids, codes = read(file)
    started, tokenising = time.perf_counter(), 0.0
    detector = DuplicateDetector(SET, MULTISET, MIN_TOKENS)
    for key, code in zip(ids, codes, strict=False):
        at = time.perf_counter()
        tokens = WORD.findall(code)
        tokenising += time.perf_counter() - at
        detector.add_file(key, tokens)
    added = time.perf_counter()
    components = detector.compute_duplicates()
    ended = time.perf_counter()
    seconds = ended - started
    return {
        "components": components,
        "seconds": seconds,
        "other": seconds - tokenising,
        "ended": ended,
        "rss": peak(),
        "stages": {
            "tokenise": tokenising,
            "add": added - started - tokenising,
            "compute": seconds - (added - started),
        },
    }


class Forest:
    """Union-find with path halving."""

    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, at: int) -> int:
        parent = self.parent
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    def join(self, one: int, other: int) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self.parent[max(one, other)] = min(one, other)

    def groups(self) -> list:
        found = defaultdict(list)
        for at in range(len(self.parent)):
            found[self.find(at)].append(at)
        return list(found.values())


def jaccards(one: Counter, other: Counter) -> tuple:
    """Set and multiset Jaccard, as float divisions of exact numbers."""
    if len(one) > len(other):
        one, other = other, one
    common = [(count, other[token]) for token, count in one.items() if token in other]
    least = sum(min(pair) for pair in common)
    return (
        len(common) / (len(one) + len(other) - len(common)),
        least / (one.total() + other.total() - least),
    )


def by_rensa(file: Path, bands: int) -> dict:
    """R-MinHash and LSH by rensa's bulk functions; the candidates are verified.

    One pass over the digest matrix flags the rows that share a band with any other; only these
    become sketch objects, which the query needs, and of rows with just the same words only one.
    Pairs of one component are not verified again.
    """
    from rensa import RMinHash, RMinHashLSH

    ids, codes = read(file)
    started, stages = time.perf_counter(), {}
    last = started

    def stage(name: str) -> None:
        nonlocal last
        now = time.perf_counter()
        stages[name], last = now - last, now

    rows, words = [], []
    for row, found in enumerate(map(WORD.findall, codes)):
        if len(found) >= MIN_TOKENS:
            rows.append(row)
            words.append(found)
    stage("tokenise")
    matrix = RMinHash.digest_matrix_from_token_sets(words, PERMUTATIONS, SEED)
    stage("sketch")
    lsh = RMinHashLSH(SET, PERMUTATIONS, bands)
    flags = lsh.query_duplicate_flags_matrix_one_shot(matrix)
    alike: dict = {}  # words -> the rows that have just these
    for row, found, flag in zip(rows, words, flags, strict=False):
        if flag:
            alike.setdefault(tuple(found), []).append(row)
    words, rows = list(alike), list(alike.values())
    stage("flags")
    sketches = RMinHash.from_token_sets(words, PERMUTATIONS, SEED)
    lsh.insert_many(sketches)
    stage("insert")
    candidates = lsh.query_all(sketches)
    stage("query")
    sets = [frozenset(found) for found in words]
    counters: list = [None] * len(words)
    forest, verified = Forest(len(words)), 0
    for one, others in enumerate(candidates):
        first, size = sets[one], len(sets[one])
        for other in others:
            if other >= one or forest.find(one) == forest.find(other):
                continue
            verified += 1
            common = first & sets[other]
            if len(common) / (size + len(sets[other]) - len(common)) < SET:
                continue
            mine = counters[one] = counters[one] or Counter(words[one])
            its = counters[other] = counters[other] or Counter(words[other])
            least = sum([min(mine[word], its[word]) for word in common])
            if least / (len(words[one]) + len(words[other]) - least) >= MULTISET:
                forest.join(one, other)
    components = [
        {ids[row] for at in group for row in rows[at]}
        for group in forest.groups()
        if len(group) > 1 or len(rows[group[0]]) > 1
    ]
    stage("verify")
    rss, ended = peak(), last
    near = [
        (ids[rows[one][0]], [ids[rows[other][0]] for other in others if other < one])
        for one, others in enumerate(candidates)
    ]
    return {
        "components": components,
        "seconds": ended - started,
        "other": ended - started - stages["tokenise"],
        "stages": stages,
        "near": near,
        "ended": ended,
        "rss": rss,
        "counts": {
            "sketched again": len(rows),
            "verified": verified,
            "candidate pairs": sum(len(others) for _, others in near),
        },
    }


def peer(args: argparse.Namespace, name: str, file: Path, work: Path) -> dict:
    """A peer's result: from the cache folder, or by a process of its own."""
    made_of = {
        "format": FORMAT,
        "peer": name,
        "rows": hashlib.sha256(file.read_bytes()).hexdigest(),
        "versions": PINS,
        "bands": args.bands if name == "rensa" else None,
    }
    key = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
    stored = args.peer_cache and args.peer_cache / f"{name}-{key}.pickle"
    limit = args.dpu_limit if name == "dpu" else 0
    if stored and stored.exists():
        result = pickle.loads(stored.read_bytes())
        if not result["stopped"] or result["wall"] >= limit:
            result["cached"] = True
            return result
    out = work / "peer.pickle"
    runs = []
    for _ in range(1 if name == "dpu" else args.repeat):
        load = os.getloadavg()[0]
        found, _ = measured(
            [
                sys.executable,
                os.path.abspath(__file__),
                "--worker",
                name,
                "--methods",
                str(file),
                "--bands",
                str(args.bands),
                "--worker-out",
                str(out),
            ],
            work,
            limit,
            args.memory_limit,
        )
        found["load"] = (load, os.getloadavg()[0])
        found["when"] = time.strftime("%FT%TZ", time.gmtime())
        if not found["code"]:
            behind, data = pickle.loads(out.read_bytes())
            found |= pickle.loads(data)
            # What the worker did for this script behind its result does not count.
            found["wall"] -= behind
        elif not found["stopped"]:
            print(f"{name} ended with {found['code']}: {found['why'][-300:]}", flush=True)
        runs.append(found)
    result = sorted(runs, key=lambda run: run["wall"])[(len(runs) - 1) // 2]
    result["cached"] = False
    if stored and (not result["code"] or result["stopped"]):
        stored.parent.mkdir(parents=True, exist_ok=True)
        part = stored.with_name(stored.name + ".part")
        part.write_bytes(pickle.dumps(result))
        part.replace(stored)
    return result


# ---------------------------------------------------------------- Galeras


def by_galeras(args: argparse.Namespace, method: str, file: Path, work: Path) -> dict:
    """The median of runs on an empty cache."""
    import pyarrow.parquet

    more = "" if method == "exact" else f", method: {method}"
    flow = work / f"dedup_{method}.yaml"
    flow.write_text(WORKFLOW.format(file=json.dumps(str(file)), more=more))
    cache = work / "cache"
    out = work / "cache-out"  # what the harness' command names
    jobs = ["--jobs", str(args.jobs)] if args.jobs else []
    runs = []
    for _ in range(args.repeat):
        for folder in (cache, out):
            shutil.rmtree(folder, ignore_errors=True)
        found, text = measured(command(args.galeras, flow, cache, *jobs), work, cwd=work)
        events = parse_events(text)
        if found["code"] or not events or events[-1].get("event") != "finished":
            sys.exit(
                f"galeras run {flow} ended with {found['code']}\n{text[-2000:]}\n"
                f"{found.get('why', '')}"
            )
        steps = {step["step"]: step for step in events[-1]["steps"]}
        found["seconds"] = found["other"] = steps[STEP]["seconds"]
        found["steps"] = {name: step["seconds"] for name, step in steps.items()}
        runs.append(found)
    result = sorted(runs, key=lambda run: run["wall"])[(len(runs) - 1) // 2]
    result["other"] = statistics.median(run["other"] for run in runs)
    rows = pyarrow.parquet.read_table(
        next(iter(sorted(out.rglob("clusters.parquet")))), columns=["id", "cluster"]
    )
    groups = defaultdict(set)
    for key, cluster in zip(rows["id"].to_pylist(), rows["cluster"].to_pylist(), strict=False):
        groups[cluster].add(key)
    rejects = pyarrow.parquet.read_table(
        next(iter(sorted(out.rglob("rejects.parquet")))), columns=["id"]
    ).num_rows
    return result | {"components": list(groups.values()), "rejects": rejects, "cached": False}


# ---------------------------------------------------------------- the comparison


def flagged(components: list) -> int:
    """How many rows would be dropped if each component keeps one."""
    return sum(len(component) - 1 for component in components)


def of_row(components: list) -> dict:
    return {key: at for at, component in enumerate(components) for key in component}


def recall(found: list, wanted: list) -> dict:
    """Of the wanted rows, pairs within a component, and components: the share found alike."""
    place = of_row(found)
    both = rows = 0
    for component in wanted:
        parts = Counter(place.get(key) for key in component)
        parts.pop(None, None)
        both += sum(math.comb(count, 2) for count in parts.values())
        rows += sum(parts.values())
    same = {frozenset(c) for c in found} & {frozenset(c) for c in wanted}
    return {
        "rows in a component": (rows, sum(map(len, wanted))),
        "pairs within a component": (both, sum(math.comb(len(c), 2) for c in wanted)),
        "equal components": (len(same), len(wanted)),
        "flagged rows": (flagged(found), flagged(wanted)),
    }


def rust_words(code: str) -> list:
    r"""The words where a run is of Unicode's Alphabetic and N*, not Python's `\w`."""
    if code.isascii():
        return WORD.findall(code)
    import regex

    return [
        w
        for w in regex.findall(r"[\p{Alphabetic}\p{N}_]+", code)
        if w[0] == "_" or w[0].isascii() and w[0].isalpha()
    ]


class Documents:
    """The token counts of the rows."""

    def __init__(self, file: Path, words=WORD.findall) -> None:
        self.codes = dict(zip(*read(file), strict=False))
        self.words = words
        self.counters: dict = {}

    def counter(self, key: str) -> Counter:
        if key not in self.counters:
            self.counters[key] = Counter(self.words(self.codes[key]))
        return self.counters[key]

    def other_words(self) -> set:
        r"""Rows whose words are others if a run is not Python's `\w+`."""
        return {
            key
            for key, code in self.codes.items()
            if not code.isascii() and WORD.findall(code) != rust_words(code)
        }

    def bags(self, component) -> list:
        """Rows with the same tokens, together; those with too few left out."""
        found = defaultdict(list)
        for key in sorted(component):
            if self.counter(key).total() >= MIN_TOKENS:
                found[frozenset(self.counter(key).items())].append(key)
        return list(found.values())

    def similar(self, one: str, other: str) -> bool:
        mine, its = self.counter(one), self.counter(other)
        if min(len(mine), len(its)) < (SET - 1e-6) * max(len(mine), len(its)):
            return False
        by_set, by_multiset = jaccards(mine, its)
        return by_set >= SET and by_multiset >= MULTISET

    def parts(self, component) -> list:
        """The components of a set of rows, found again by all its pairs."""
        bags = self.bags(component)
        forest = Forest(len(bags))
        for one, other in itertools.combinations(range(len(bags)), 2):
            if forest.find(one) != forest.find(other):
                if self.similar(bags[one][0], bags[other][0]):
                    forest.join(one, other)
        groups = [[key for bag in group for key in bags[bag]] for group in forest.groups()]
        return sorted({frozenset(group) for group in groups if len(group) > 1}, key=min)

    def pair_recall(self, wanted: list, near: list, largest: int) -> tuple:
        """Similar pairs among rensa's candidates, all similar pairs, components left out.

        Rows with the same tokens are always found, and count with their number.
        """
        known = {(one, other) for one, others in near for other in others}
        first = {}
        found = of_all = left_out = 0
        for component in wanted:
            bags = self.bags(component)
            if len(bags) > largest:
                left_out += 1
                continue
            for bag in bags:
                found += math.comb(len(bag), 2)
                of_all += math.comb(len(bag), 2)
                first |= {key: bag[0] for key in bag}
            keys = [set(bag) for bag in bags]
            for one, other in itertools.combinations(range(len(bags)), 2):
                if self.similar(bags[one][0], bags[other][0]):
                    pairs = len(keys[one]) * len(keys[other])
                    of_all += pairs
                    # A bag's row in `near` is its first in the file, which is sorted by id.
                    pair = (bags[one][0], bags[other][0])
                    found += pairs * (pair in known or pair[::-1] in known)
        return found, of_all, left_out


def differences(name: str, found: list, ours: list, file: Path, verdict: Verdict) -> None:
    r"""Components that only one side has; each judged by recomputation.

    Python's `\w` and Unicode's alphanumerics differ on few signs: each side is recomputed with
    its own words, and a difference is explained if it hangs together with such a row.
    """
    theirs, mine = ({frozenset(c) for c in side} for side in (found, ours))
    if theirs == mine:
        print(f"  {name}: all {len(mine)} components equal those of exact")
        return
    python, rust = Documents(file), Documents(file, rust_words)
    other_words = python.other_words()
    only = [(name, python, c) for c in theirs - mine] + [("exact", rust, c) for c in mine - theirs]
    touched = set(other_words)
    while True:
        more = {key for _, _, c in only if c & touched for key in c} - touched
        if not more:
            break
        touched |= more
    classes, shown = Counter(), 0
    for side, documents, component in sorted(only, key=lambda one: min(one[2])):
        parts = documents.parts(component)
        kind = "holds when recomputed" if parts == [component] else "falls apart"
        if component & touched:
            kind += ", with a row whose words differ"
        classes[side, kind] += 1
        if shown < 10:
            shown += 1
            print(f"  only in {side}: {sorted(component)[:3]} ({len(component)} rows) {kind}")
    for (side, kind), count in sorted(classes.items()):
        print(f"  {name} against exact: {count} components only in {side}: {kind}")
    explained = "holds when recomputed, with a row whose words differ"
    bad = [kind for _, kind in classes if kind != explained]
    verdict.check(not bad, f"the components of {name} and of exact differ: {dict(classes)}")


def exponent(points: list) -> tuple:
    """The slope and the factor of log time over log rows."""
    if len(points) < 2:
        return None
    xs = [math.log(rows) for rows, _ in points]
    ys = [math.log(max(seconds, 1e-6)) for _, seconds in points]
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=False)) / sum(
        (a - x) ** 2 for a in xs
    )
    return slope, math.exp(y - slope * x)


def judged(result: dict, which: str) -> float:
    """Seconds; of a stored time the processor's if they are fewer, as it may have waited."""
    seconds = result[which]
    if result["cached"] and result["wall"] > result["cpu"]:
        seconds *= result["cpu"] / result["wall"]
    return seconds


def subsample(file: Path, rows: int, target: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet

    columns = pyarrow.parquet.read_table(file, columns=["id", "code"])
    ids = columns["id"].to_pylist()
    by_hash = sorted(range(len(ids)), key=lambda at: hashlib.md5(ids[at].encode()).digest())
    chosen = sorted(by_hash[:rows], key=lambda at: ids[at])
    pyarrow.parquet.write_table(columns.take(pa.array(chosen, pa.int64())), target)
    return len(chosen)


def main() -> int:
    parser = arguments(__doc__)
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))

    def listed(kind):
        return lambda text: [kind(part) for part in text.split(",") if part]

    parser.add_argument("--methods", type=Path, required=True, help="Parquet with id and code")
    parser.add_argument("--rows", type=listed(int), default=[25_000, 50_000, 100_000, 200_000])
    parser.add_argument("--engines", type=listed(str), default=PEERS + OURS)
    parser.add_argument("--repeat", type=int, default=3, help="runs of all but dpu_utils")
    parser.add_argument("--dpu-limit", type=float, default=7200, help="seconds for one size")
    parser.add_argument("--memory-limit", type=float, default=0, help="GB of each peer; 0: none")
    parser.add_argument("--bands", type=int, default=16, help="of rensa's 128 permutations")
    parser.add_argument(
        "--largest",
        type=int,
        default=3000,
        help="distinct texts of a component whose pairs are all recomputed",
    )
    parser.add_argument("--jobs", type=int, help="of galeras run")
    parser.add_argument("--venv", type=Path, default=base / "galeras-bench" / "venv-dedup")
    parser.add_argument("--peer-cache", type=Path, help="store and reuse the peers' results")
    parser.add_argument("--faster-than-dpu", type=float, help="demanded: wall / exact's wall")
    parser.add_argument("--faster-than-rensa", type=float, help="demanded: wall / minhash's wall")
    parser.add_argument("--worker", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--worker-out", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        gc.disable()  # a favour to both peers: there is nothing to collect
        made = by_dpu(args.methods) if args.worker == "dpu" else by_rensa(args.methods, args.bands)
        data = pickle.dumps(made)
        behind = time.perf_counter() - made["ended"]
        args.worker_out.write_bytes(pickle.dumps((behind, data)))
        os._exit(0)  # freeing the objects would take time too
    in_venv(*pinned(PINS), folder=args.venv)
    work, verdict = work_folder(args), Verdict()
    print(
        f"{args.methods}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        + ", ".join(f"{name} {version}" for name, version in PINS.items())
        + f"; rensa: {PERMUTATIONS} permutations, {args.bands} bands",
        flush=True,
    )

    results: dict = {}
    for rows in sorted(args.rows):
        file = work / f"rows-{rows}.parquet"
        count = subsample(args.methods, rows, file)
        if count < rows:
            print(f"only {count} rows in {args.methods}: no sample of {rows}")
            continue
        for name in args.engines:
            load = os.getloadavg()[0]
            if name in PEERS:
                result = peer(args, name, file, work)
            else:
                result = by_galeras(args, name, file, work)
            result.setdefault("load", (load, os.getloadavg()[0]))
            results[rows, name] = result
            print(
                f"  {rows} {name}: {result['wall']:.2f} s"
                + (f" (CACHED, of {result['when']})" if result["cached"] else "")
                + (" STOPPED" if result["stopped"] else "")
                + "".join(f", {k} {v:.2f}" for k, v in result.get("stages", {}).items())
                + "".join(f", {k} {v}" for k, v in result.get("counts", {}).items())
                + "".join(f", step {k} {v:.2f}" for k, v in result.get("steps", {}).items()),
                flush=True,
            )
    done = {key: r for key, r in results.items() if not r["code"]}

    print()
    lines = []
    for (rows, name), r in results.items():
        label = name + (" (CACHED)" if r["cached"] else "")
        load = f"{max(r['load']):.1f}"
        if r["code"]:
            why = f"> {r['wall']:.1f}" if r["stopped"] else f"FAILED ({r['code']})"
            lines.append(
                [
                    rows,
                    label,
                    why,
                    "-",
                    "-",
                    f"{r['cpu']:.1f}",
                    f"{r['rss'] / 1e6:.0f}",
                    "-",
                    "-",
                    load,
                ]
            )
            continue
        lines.append(
            [
                rows,
                label,
                f"{r['wall']:.2f}",
                f"{r['seconds']:.2f}",
                f"{r['other']:.2f}",
                f"{r['cpu']:.2f}",
                f"{r['rss'] / 1e6:.0f}",
                flagged(r["components"]),
                len(r["components"]),
                load,
            ]
        )
    table(
        [
            "rows",
            "engine",
            "wall s",
            "in memory s",
            "no tokens / step s",
            "cpu s",
            "peak MB",
            "flagged",
            "components",
            "load",
        ],
        lines,
    )
    print("in memory s: after the rows are read; no tokens: without tokenising; step: of `dedup`")

    print("\nscaling (seconds = factor * rows ** exponent)")
    fits, lines = {}, []
    for name in args.engines:
        row = [name]
        for which in ("wall", "seconds" if name in PEERS else "other"):
            points = [(rows, judged(r, which)) for (rows, n), r in done.items() if n == name]
            fits[name, which] = fit = exponent(points)
            row.append(f"{fit[0]:.2f}" if fit else "-")
        points = [(rows, r["rss"]) for (rows, n), r in done.items() if n == name]
        fit = exponent(points)
        row += [f"{fit[0]:.2f}" if fit else "-", len(points)]
        lines.append(row)
    table(["engine", "wall", "in memory / step", "peak memory", "sizes"], lines)

    print("\nratios of wall seconds")
    lines = []
    for rows in sorted({rows for rows, _ in results}):
        for theirs, ours in itertools.product(PEERS, OURS):
            r, o = results.get((rows, theirs)), done.get((rows, ours))
            if not r or not o or (r["code"] and not r["stopped"]):
                continue
            ratio = judged(r, "wall") / o["wall"]
            work_ratio = "-" if r["code"] else f"{judged(r, 'seconds') / max(o['other'], 1e-6):.1f}"
            note = "from a CACHED time" if r["cached"] else ""
            sign = ""
            if r["stopped"]:
                sign = "> "
                fit = fits.get((theirs, "wall"))
                if fit:
                    note += (
                        f"; extrapolated from the smaller sizes: {theirs} "
                        f"{fit[1] * rows ** fit[0]:.0f} s"
                    )
            memory = "-" if r["code"] else f"{r['rss'] / o['rss']:.1f}"
            lines.append(
                [
                    rows,
                    f"{theirs} / {ours}",
                    f"{sign}{ratio:.1f}",
                    work_ratio,
                    memory,
                    note.strip("; "),
                ]
            )
            wanted = args.faster_than_dpu if theirs == "dpu" else args.faster_than_rensa
            if (
                wanted
                and rows == max(args.rows)
                and (theirs, ours) in (("dpu", "exact"), ("rensa", "minhash"))
            ):
                verdict.check(ratio >= wanted, f"{theirs} / {ours}: {ratio:.1f}, not {wanted}")
    table(["rows", "ratio", "wall", "in memory / step", "peak memory", ""], lines)

    for rows in sorted({rows for rows, _ in done}):
        exact, dpu = done.get((rows, "exact")), done.get((rows, "dpu"))
        wanted = exact or dpu
        if not wanted:
            continue
        print(
            f"\nagreement on {rows} rows, against {'exact' if exact else 'dpu'}: "
            f"{len(wanted['components'])} components, largest "
            f"{max(map(len, wanted['components']), default=0)} rows"
        )
        file = work / f"rows-{rows}.parquet"
        documents = Documents(file)
        print(f"  rows whose words are others by Python's \\w: {len(documents.other_words())}")
        if exact:
            verdict.check(
                exact["rejects"] == flagged(exact["components"]),
                f"{rows}: {exact['rejects']} rejects, but the clusters flag "
                f"{flagged(exact['components'])}",
            )
            if dpu:
                differences("dpu", dpu["components"], exact["components"], file, verdict)
        for name in ("dpu", "rensa", "minhash"):
            r = done.get((rows, name))
            if not r or r is wanted:
                continue
            print(
                f"  {name}: "
                + ", ".join(
                    f"{what} {a} of {b} ({a / b if b else 1:.3%})"
                    for what, (a, b) in recall(r["components"], wanted["components"]).items()
                )
            )
            place = of_row(wanted["components"])
            wrong = sum(len({place.get(key, key) for key in c}) > 1 for c in r["components"])
            print(f"    joins rows that the reference does not: {wrong} components")
            if name == "minhash":
                verdict.check(not wrong, f"{rows}: minhash joins rows that exact does not")
            if "near" in r:
                found, of_all, left = documents.pair_recall(
                    wanted["components"], r["near"], args.largest
                )
                print(
                    f"    similar pairs among its candidates: {found} of {of_all} "
                    f"({found / of_all if of_all else 1:.3%})"
                    + (f"; {left} too large components left out" if left else "")
                )
    print()
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
