"""A disk that fails at every call: a rerun gives the truth, or a clear error, never another result.

What it shows: a small workflow (a table, data tests, prompts, a paid model, scores, output files)
runs undisturbed once. Then, for every call n by which a run changes a file of its store or its
outputs, and for every kind of fault, a run in a fresh folder meets that fault at its n-th call: a
full disk, an I/O error, half a write, a loss of power that takes what was not synced (whole, or
half of it; new names and renames in folders that were not synced too), a kill. After each: the
faulty run either ended well with the digests and output files of the undisturbed one, or said
what failed with an exit code that is not 0, without a panic; then a run without faults ends well
with the true digests and files, and `cache verify` finds nothing after it; no answer that had
counted before the fault was asked for again.

How to run it: `python3 tests/scripts/faults.py [--galeras PATH] [--step 1] [--jobs 2]
[--kinds enospc,eio,short,crash,torn,kill] [--only KIND:N]`. Needs a C compiler (`cc`) and Linux:
the faults come from `faults/disk.c`, which is loaded before the C library. `--step 10` takes
every tenth call. A call takes about a second.

What it prints: the calls of an undisturbed run, for each kind how many faults were met and how the
runs ended, and the violations. Exit code 1 if there is one.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Verdict, arguments, environment, parse_events, table, work_folder  # noqa: E402

KINDS = ["enospc", "eio", "short", "crash", "torn", "kill"]
ROWS = 12
WORKFLOW = """\
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
    with: {{ base_url: {url}, model: tiny, seed: 1, concurrency: 4 }}
  scores:
    op: score
    from: answers
    with: {{ reference: code, metrics: [bleu, levenshtein] }}
outputs:
  scores: {{ from: scores, path: out/scores.parquet }}
  rejected: {{ from: valid.rejects, path: out/rejected.csv }}
  all: {{ from: scores, path: out/scores.jsonl }}
"""


class Server(ThreadingHTTPServer):
    """Answers that depend on the question only; says how often each folder's was asked."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked, self.guard, self.open = Counter(), threading.Lock(), 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, case: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{case}/v1"

    def count(self, case: str) -> int:
        """Requests of a case whose program has ended, also those that it sent last."""
        time.sleep(0.2)
        while self.open:
            time.sleep(0.05)
        with self.guard:
            return sum(n for (at, _), n in self.asked.items() if at == case)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        with self.server.guard:
            self.server.open += 1
        super().setup()

    def handle(self) -> None:
        # Whoever asks is killed at times.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            with self.server.guard:
                self.server.open -= 1

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        question = request["messages"][-1]["content"]
        with self.server.guard:
            self.server.asked[self.path.split("/")[1], question] += 1
        message = {"role": "assistant", "content": question.replace("Complete this: ", "") + "1"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
        answer = {"id": "x", "object": "chat.completion", "model": "tiny", "created": 1}
        body = json.dumps({**answer, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        try:
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            # Whoever asked has died.
            self.close_connection = True

    def log_message(self, *_) -> None:
        pass


class Case:
    """A project in a folder of its own."""

    def __init__(self, args, server: Server, name: str) -> None:
        self.args, self.server, self.name = args, server, name
        self.root = args.folder / name
        self.root.mkdir()
        rows = (
            {"id": f"{i:02}", "code": f"def f{i}(a):\n    return {'a' * i}"} for i in range(ROWS)
        )
        (self.root / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.root / "w.yaml").write_text(WORKFLOW.format(url=server.url(name)))

    def run(self, *command: str, **faults: str) -> subprocess.CompletedProcess:
        env = {**environment(), "XDG_DATA_HOME": str(self.root / "data-home")}
        if faults:
            env |= {
                "LD_PRELOAD": str(self.args.disk),
                "FAULT_ROOT": str(self.root / "work"),
                **faults,
            }
        (self.root / "work").mkdir(exist_ok=True)
        words = [os.path.abspath(self.args.galeras), *command]
        words += ["--cache", "work/cache", "--format", "json"]
        words += ["--out", "work"] if command[0] == "run" else []
        return subprocess.run(words, cwd=self.root, env=env, capture_output=True, text=True)

    def outputs(self) -> dict:
        found = sorted((self.root / "work" / "out").glob("[!.]*"))
        return {path.name: path.read_bytes() for path in found if path.is_file()}

    def digests(self, done: subprocess.CompletedProcess) -> dict:
        last = (parse_events(done.stdout) or [{}])[-1]
        steps = last.get("steps", [])
        return {
            (step["step"], port["port"]): port["digest"] for step in steps for port in step["ports"]
        }


def judge(args, server: Server, verdict: Verdict, truth: tuple, kind: str, at: int) -> str:
    """One fault: how the run that met it ended."""
    case = Case(args, server, f"{kind}-{at}")
    here = f"{kind}:{at}"
    faulty = case.run("run", "w.yaml", FAULT_KIND=kind, FAULT_AT=str(at))
    said = faulty.stdout + faulty.stderr
    defect = any(word in said for word in ("panicked", "a defect in ", "a library gave up"))
    verdict.check(not defect, f"{here}: a panic: {faulty.stderr[-300:]}")
    known = {0, 1, 4} | ({-9} if kind in ("crash", "torn", "kill") else set())
    verdict.check(faulty.returncode in known, f"{here}: exit {faulty.returncode}: {said[-300:]}")
    if faulty.returncode == 0:
        same = (case.digests(faulty), case.outputs()) == truth[:2]
        verdict.check(same, f"{here}: ended well with another result")
    elif faulty.returncode > 0:
        verdict.check(bool(said.strip()), f"{here}: failed without a word")
    if kind in ("enospc", "eio", "short"):
        counted = server.count(case.name) if faulty.returncode == 0 else 0
    else:
        told = [e for e in parse_events(faulty.stdout) if e.get("event") != "run_progress"]
        counted = sum(
            event["done"]
            for event in told[-1:]
            if event.get("event") == "progress" and event.get("step") == "answers"
        )
    before = server.count(case.name)
    again = case.run("run", "w.yaml")
    if verdict.check(again.returncode == 0, f"{here}: the rerun fails: {again.stdout[-500:]}"):
        verdict.check(case.digests(again) == truth[0], f"{here}: the rerun has other digests")
        verdict.check(case.outputs() == truth[1], f"{here}: the rerun has other output files")
    asked = server.count(case.name) - before
    most = len(truth[2]) - counted
    verdict.check(asked <= most, f"{here}: asked {asked} again, at most {most} were open")
    left = case.run("cache", "verify")
    verdict.check(left.returncode == 0, f"{here}: verify finds: {left.stdout[-300:]}")
    if not args.keep:
        shutil.rmtree(case.root)
    return {0: "ended well", -9: "died"}.get(faulty.returncode, "said what failed")


def undisturbed(args, server: Server) -> tuple:
    """Digests, output files and questions of a run without faults, and its number of calls."""
    case = Case(args, server, "truth")
    count = args.folder / "calls"
    done = case.run("run", "w.yaml", FAULT_AT="0", FAULT_COUNT=str(count))
    if done.returncode:
        sys.exit(f"the undisturbed run failed:\n{done.stdout}{done.stderr}")
    asked = [question for (at, question) in server.asked if at == "truth"]
    return (case.digests(done), case.outputs(), asked), int(count.read_text())


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--step", type=int, default=1, help="every so many calls")
    parser.add_argument("--jobs", type=int, default=2, help="cases side by side")
    parser.add_argument("--kinds", default=",".join(KINDS), help="which faults")
    parser.add_argument("--only", help="one fault, as KIND:N")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the cases")
    args = parser.parse_args()
    args.folder = work_folder(args)
    args.disk = args.folder / "disk.so"
    source = Path(__file__).resolve().parent / "faults" / "disk.c"
    compiler = ["cc", "-shared", "-fPIC", "-O1", "-o", str(args.disk), str(source), "-ldl"]
    subprocess.run(compiler, check=True)
    server, verdict = Server(), Verdict()
    truth, calls = undisturbed(args, server)
    print(f"an undisturbed run changes files by {calls} calls and asks {len(truth[2])} questions")
    if args.only:
        kind, at = args.only.split(":")
        cases = [(kind, int(at))]
    else:
        # Threads make the number of calls differ a little from run to run.
        cases = [(k, n) for k in args.kinds.split(",") for n in range(1, calls + 9, args.step)]
    with ThreadPoolExecutor(args.jobs) as pool:
        ends = pool.map(lambda case: judge(args, server, verdict, truth, *case), cases)
        counts = Counter((kind, end) for (kind, _), end in zip(cases, ends, strict=True))
    kinds = sorted({kind for kind, _ in cases}, key=KINDS.index)
    columns = ["ended well", "said what failed", "died"]
    table(["fault", *columns], [[k, *(counts[k, column] for column in columns)] for k in kinds])
    print(f"{len(cases)} faults")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
