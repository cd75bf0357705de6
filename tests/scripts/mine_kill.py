"""Killed while it clones and mines: the next run goes on and gives the same digests.

What it shows: `query -> mine -> ast` over real repositories, which are cloned over HTTP from
a `git http-backend` on the loopback address, slowly enough that it takes a few seconds. It
runs undisturbed once. Then it is started and killed with SIGKILL at a random instant, again
and again on one store, until a start outlives its instant; that run must end well, with the
digests of the undisturbed one, `cache verify` must find nothing, and one more run must hit
everywhere without a request to the server. Then the next round begins with an empty store,
until as many runs were killed as asked for. The instants are drawn from a seed: half of them
from all of the undisturbed time, the others from the time of the phase that was hit least, as
far as the run's activity tells phases.

How to run it: `python3 tests/scripts/mine_kill.py --repos A B [--since 2022-01-01]
[--until 2023-01-01] [--kills 10] [--seed 1] [--rate 2] [--galeras PATH]`, where A and B are bare
repositories (or `.git` folders). Needs the `git` program. Takes about twice as many times the
undisturbed run as there are kills.

What it prints: a line per kill (instant, what each repository was at, what was sent), a line
per round, the kills per phase, and the violations. Exit code 1 if there is one.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Run, Verdict, arguments, command, environment, parse_events, table, work_folder  # noqa: E402

WORKFLOW = """\
galeras: 1
name: mine-kill
steps:
  repos:
    op: query
    with:
      repos:
{repos}
  methods:
    op: mine
    from: repos
    with: {{ since: {since}, until: {until} }}
  features: {{ op: ast, from: methods }}
"""
BLOCK = 16_384


class Backend(BaseHTTPRequestHandler):
    """`git http-backend`, whose answers go out at so many bytes a second."""

    protocol_version = "HTTP/1.1"
    root, rate, sent, requests, lock = "", 1.0, 0, 0, threading.Lock()

    def log_message(self, *_) -> None:
        pass

    def body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def settings(self, length: int) -> dict:
        path, _, query = self.path.partition("?")
        settings = {
            "safe.directory": "*",
            "uploadpack.allowFilter": "true",
            "uploadpack.allowAnySHA1InWant": "true",
        }
        env = {
            "PATH": os.environ["PATH"],
            "HOME": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": self.root,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for at, (key, value) in enumerate(settings.items()):
            env |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
        return env

    def answer(self) -> None:
        body = self.body()
        backend = subprocess.Popen(
            ["git", "http-backend"],
            env=self.settings(len(body)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with Backend.lock:
            Backend.requests += 1
        threading.Thread(target=feed, args=(backend, body), daemon=True).start()
        try:
            status, headers = 200, []
            while line := backend.stdout.readline().strip().decode():
                name, _, value = line.partition(": ")
                if name.lower() == "status":
                    status = int(value.split()[0])
                else:
                    headers.append((name, value))
            self.send_response(status)
            for name, value in [*headers, ("transfer-encoding", "chunked")]:
                self.send_header(name, value)
            self.end_headers()
            while block := backend.stdout.read1(BLOCK):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
                with Backend.lock:
                    Backend.sent += len(block)
                time.sleep(len(block) / Backend.rate)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:  # The client was killed.
            self.close_connection = True
        finally:
            backend.kill()
            backend.wait()

    do_GET = do_POST = answer


def feed(backend: subprocess.Popen, body: bytes) -> None:
    try:
        backend.stdin.write(body)
        backend.stdin.close()
    except OSError:
        pass


class Watched:
    """A run whose events are read as they come."""

    def __init__(self, galeras: str, workflow: Path, cache: Path) -> None:
        self.started = time.perf_counter()
        self.lines, self.times = [], []
        self.process = subprocess.Popen(
            command(galeras, workflow, cache),
            cwd=cache.parent,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stderr = []
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.drain)]
        for thread in self.threads:
            thread.start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.times.append(time.perf_counter() - self.started)
            self.lines.append(line)

    def drain(self) -> None:
        self.stderr.append(self.process.stderr.read())

    def events(self) -> list:
        return parse_events("".join(self.lines[:]))

    def end(self) -> Run:
        code = self.process.wait()
        wall = time.perf_counter() - self.started
        for thread in self.threads:
            thread.join()
        return Run(code, wall, self.events(), self.stderr[0])


def phase(text: str) -> str:
    """What an activity is about: its text without names and numbers."""
    what = text.partition(": ")[2] or text
    return re.sub(r"[ ,:]*\d.*", "", what).strip() or "working"


def now(events: list) -> tuple:
    """The phases at work, and what every repository was at, after these events."""
    at, step = {}, "(before the first step)"
    for event in events:
        match event["event"]:
            case "step_started":
                at, step = {}, event["step"]
            case "step_finished":
                at, step = {}, f"(after {event['step']})"
            case "activity":
                at[event["text"].partition(": ")[0]] = event["text"]
    if step == "methods":
        phases = {f"methods: {phase(text)}" for text in at.values()} or {"methods: begins"}
        return phases, "; ".join(at.values()) or "methods begins"
    return {step}, step


def phases(watched: Watched) -> dict:
    """Phase -> the instants at which it began and was seen last."""
    seen = {}
    events = watched.events()
    for at in range(len(events)):
        for name in now(events[: at + 1])[0]:
            first = seen.get(name, (watched.times[at],))[0]
            until = watched.times[min(at + 1, len(events) - 1)]
            seen[name] = (first, until)
    return seen


def serve(repos: list, work: Path, rate: float) -> tuple:
    """Starts the server; its address and the names of the repositories."""
    served = work / "served"
    served.mkdir()
    names = []
    for path in repos:
        # `scrapy+scrapy/repo` is called after the folder that says something.
        parts = [part for part in path.resolve().parts if part not in ("repo", ".git")]
        name = re.sub(r"[^\w.-]", "-", parts[-1]).removesuffix(".git")
        name = name if name not in names else f"{name}-{len(names)}"
        (served / f"{name}.git").symlink_to(path.resolve())
        names.append(name)
    Backend.root, Backend.rate = str(served), rate * 1e6
    server = ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}", names


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--repos", type=Path, nargs="+", required=True)
    parser.add_argument("--since", default="2022-01-01")
    parser.add_argument("--until", default="2023-01-01")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rate",
        type=float,
        default=2,
        help="megabytes a second that the server sends over one connection",
    )
    args = parser.parse_args()
    work, verdict, rng = work_folder(args), Verdict(), random.Random(args.seed)
    address, names = serve(args.repos, work, args.rate)
    workflow = work / "mine_kill.yaml"
    listed = "\n".join(f"        - {{ repo: {n}, url: '{address}/{n}.git' }}" for n in names)
    workflow.write_text(WORKFLOW.format(repos=listed, since=args.since, until=args.until))

    def served() -> str:
        sent, Backend.sent, Backend.requests = (Backend.sent, Backend.requests), 0, 0
        return f"{sent[0] / 1e6:5.1f} MB sent in {sent[1]} answers"

    def verify(cache: Path, when: str) -> None:
        done = subprocess.run(
            [
                command(args.galeras, workflow, cache)[0],
                "cache",
                "verify",
                "--cache",
                str(cache),
                "--format",
                "json",
            ],
            cwd=work,
            env=environment(),
            capture_output=True,
            text=True,
        )
        last = (parse_events(done.stdout) or [{}])[-1]
        verdict.check(
            done.returncode == 0 and last.get("findings") == 0,
            f"cache verify {when}: exit code {done.returncode}, {done.stdout} {done.stderr}",
        )

    watched = Watched(args.galeras, workflow, work / "undisturbed")
    undisturbed = watched.end()
    expected, spans = undisturbed.digests, phases(watched)
    rows = ", ".join(f"{step}.{port} {n}" for (step, port), (_, n) in expected.items())
    print(f"undisturbed: {undisturbed.wall:.1f} s, {served()}, seed {args.seed}; {rows}")
    spans = {name: span for name, span in spans.items() if span[1] - span[0] > 0.05}
    for name, (first, last) in spans.items():
        print(f"  {first:6.2f} to {last:6.2f} s  {name}")
    verdict.check(undisturbed.code == 0, f"undisturbed: exit code {undisturbed.code}")
    verdict.check(expected["methods", "out"][1] > 0, "nothing was mined")

    hit = Counter()
    kills = rounds = 0
    outer_started = time.perf_counter()
    while kills < args.kills:
        rounds += 1
        cache, in_round = work / f"round-{rounds}", 0
        while True:
            after, delay = None, rng.uniform(0, undisturbed.wall)
            if rng.random() < 0.5:
                after = min(spans, key=lambda name: hit[name])
                delay = rng.uniform(0, spans[after][1] - spans[after][0])
            if kills == args.kills:
                after, delay = None, 3600  # The last run of all is left to end.
            watched = Watched(args.galeras, workflow, cache)
            while after and watched.process.poll() is None:
                if after in now(watched.events())[0]:
                    break
                time.sleep(0.005)
            try:
                watched.process.wait(delay)
            except subprocess.TimeoutExpired:
                watched.process.send_signal(signal.SIGKILL)
            result = watched.end()
            when = f"in round {rounds} after kill {kills}"
            if result.code == -signal.SIGKILL:
                kills, in_round = kills + 1, in_round + 1
                at, what = now(result.events)
                hit.update(at)
                print(
                    f"kill {kills:3}  round {rounds}  at {result.wall:6.2f} s  {served()}  {what}",
                    flush=True,
                )
                verify(cache, f"in round {rounds} after kill {kills}")
                continue
            if verdict.check(result.code == 0, f"exit code {result.code} {when}: {result.stderr}"):
                for port, found in result.digests.items():
                    verdict.check(
                        found == expected.get(port),
                        f"{port} is {found}, expected {expected.get(port)}, {when}",
                    )
                verdict.check(result.digests.keys() == expected.keys(), f"ports differ {when}")
            verify(cache, f"at the end of round {rounds}")
            print(
                f"round {rounds} ends after {in_round} kills: {result.wall:.2f} s, {served()}",
                flush=True,
            )
            again = Watched(args.galeras, workflow, cache).end()
            verdict.check(again.code == 0 and not again.not_hit, f"not all hit {when}")
            verdict.check(Backend.requests == 0, f"a finished workflow asks the server {when}")
            served()
            break
        if not verdict.violations:
            shutil.rmtree(cache)
    print()
    table(["phase", "kills"], [[name, hit[name]] for name in {**spans, **hit}])
    print(f"{kills} kills in {rounds} rounds, {time.perf_counter() - outer_started:.0f} s")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
