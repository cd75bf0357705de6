"""Killed while a model is asked: no answer that counted is asked for again.

What it shows: a workflow that asks a server some thousand questions runs undisturbed once. Then
it is started and killed with SIGKILL at a random instant, again and again on one store, until a
start outlives its instant; that run must end well, with the digests of the undisturbed one,
`cache verify` must find nothing, and one more run must hit everywhere without a request. Then
the next round begins with an empty store, until as many runs were killed as asked for. After
every kill: what the run had counted as done in its progress events, and what it had found
before, must be found by the next run and never be asked again. An answer that the server sent to
its end in the last instant, and that did not count yet, may be lost on the way: at most twice as
many per kill as requests go side by side (those under way, and those on their way to the disk).
The server is in this script; its answers depend on the question only, and take a time that is drawn
from the question.

How to run it: `python3 tests/scripts/generate_kill.py [--prompts 3000] [--concurrency 16]
[--latency 20] [--kills 20] [--seed 1] [--galeras PATH]`. The instants are drawn from the seed:
half of them from all of the undisturbed time, the others from the time in which requests go
out. Takes about as many undisturbed runs as there are kills.

What it prints: a line per kill (instant, what was found, counted, sent, and asked again), a line
per round, the sums, and the violations. Exit code 1 if there is one.
"""

import asyncio
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Run, Verdict, arguments, command, environment, parse_events, run, work_folder  # noqa: E402

WORKFLOW = """\
galeras: 1
name: generate-kill
steps:
  data: {{ op: read, with: {{ path: data.jsonl }} }}
  prompts:
    op: prompt
    from: data
    with: {{ treatments: {{ control: "Complete this:\\n{{{{ code }}}}" }} }}
  answers:
    op: generate
    from: prompts
    with:
      base_url: {url}
      model: tiny
      seed: 42
      concurrency: {concurrency}
"""
ASKS = "answers"


class Server:
    """Chat completions over HTTP/1.1, kept alive; remembers who asked what."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.asked, self.sent = [], []
        self.url, ready = "", threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True).start()
        ready.wait()

    async def serve(self, ready: threading.Event) -> None:
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        await server.serve_forever()

    async def connection(self, reader, writer) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                question = hashlib.sha256(body).hexdigest()
                self.asked.append(question)
                await asyncio.sleep(self.latency * (0.5 + int(question[:4], 16) / 65_535))
                answer = self.answer(body, question)
                if reader.at_eof():  # The client was killed.
                    return
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                    b"content-length: %d\r\n\r\n%s" % (len(answer), answer)
                )
                await writer.drain()
                self.sent.append(question)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @staticmethod
    def answer(body: bytes, question: str) -> bytes:
        asked = json.loads(body)
        code = f"def f_{question[:12]}(a):\n    return a + {int(question[:3], 16)}"
        words = len(asked["messages"][-1]["content"].split())
        message = {"role": "assistant", "content": f"Here:\n```python\n{code}\n```\n"}
        return json.dumps(
            {
                "id": question[:8],
                "object": "chat.completion",
                "model": "tiny-1",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": words, "completion_tokens": 7},
            }
        ).encode()

    def take(self) -> tuple:
        """What was asked and what was answered to the last byte since the last call."""
        time.sleep(0.1)  # What is under way comes to its end, or fails.
        asked, sent = self.asked, self.sent
        self.asked, self.sent = [], []
        return asked, set(sent)


class Killed:
    """A run that may be killed; its events go to a file, which outlives it."""

    def __init__(self, galeras: str, workflow: Path, cache: Path) -> None:
        self.path = cache.parent / "events.jsonl"
        self.errors = cache.parent / "stderr"
        self.started = time.perf_counter()
        with self.path.open("wb") as out, self.errors.open("wb") as err:
            self.process = subprocess.Popen(
                command(galeras, workflow, cache),
                cwd=cache.parent,
                env=environment(),
                stdout=out,
                stderr=err,
            )

    def end(self, after: float) -> Run:
        """Kills it so many seconds after its start, unless it has ended."""
        left = after - (time.perf_counter() - self.started)
        try:
            code = self.process.wait(max(left, 0))
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            code = self.process.wait()
        wall = time.perf_counter() - self.started
        return Run(code, wall, parse_events(self.path.read_text()), self.errors.read_text())


def counted(events: list) -> tuple:
    """Answers found and answers counted as done, as the events say; none if it did not ask."""
    found = [e["reused"] for e in events if e["event"] == "step_total" and e["step"] == ASKS]
    if not found:
        return None, 0
    done = [e["rows"] for e in events if e["event"] == "progress" and e["step"] == ASKS]
    return found[-1], max(done, default=0)


def write_data(path: Path, prompts: int) -> None:
    with path.open("w") as out:
        for row in range(prompts):
            code = f"def method_{row}(self, a, b):\n    total = a * {row} + b"
            out.write(json.dumps({"id": f"{row:06}", "code": code}) + "\n")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--prompts", type=int, default=3000)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument(
        "--latency", type=float, default=20, help="milliseconds, half to one and a half of it"
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    work, verdict, rng = work_folder(args), Verdict(), random.Random(args.seed)
    server = Server(args.latency / 1000)
    workflow = work / "generate_kill.yaml"
    workflow.write_text(WORKFLOW.format(url=server.url, concurrency=args.concurrency))
    write_data(work / "data.jsonl", args.prompts)

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

    undisturbed = run(args.galeras, workflow, work / "undisturbed")
    asked, sent = server.take()
    all_questions, expected = set(asked), undisturbed.digests
    begin = undisturbed.wall - undisturbed.steps[ASKS]["seconds"]
    print(
        f"undisturbed: {undisturbed.wall:.1f} s, of which {undisturbed.wall - begin:.1f} s ask; "
        f"{len(asked)} requests, {args.concurrency} side by side, seed {args.seed}",
        flush=True,
    )
    verdict.check(len(asked) == len(all_questions) == args.prompts, f"{len(asked)} were asked")
    verdict.check(expected[ASKS, "out"][1] == args.prompts, "not all prompts were answered")

    kills = rounds = in_asking = lost_in_all = uncounted_in_all = 0
    outer_started = time.perf_counter()
    while kills < args.kills:
        rounds += 1
        cache, in_round = work / f"round-{rounds}", 0
        answered, kept, requests = set(), 0, 0
        while True:
            whole = rng.random() < 0.5
            after = rng.uniform(0 if whole else begin, undisturbed.wall)
            if kills == args.kills:
                after = 3600  # The last run of all is left to end.
            result = Killed(args.galeras, workflow, cache).end(after)
            asked, sent = server.take()
            requests += len(asked)
            found, done = counted(result.events)
            when = f"in round {rounds} after {in_round} kills"
            again = answered & set(asked)
            lost_in_all += len(again)
            verdict.check(len(asked) == len(set(asked)), f"a question went out twice {when}")
            if found is not None:
                # What counted in earlier runs is found, so that it cannot be asked again.
                verdict.check(found >= kept, f"{kept} answers counted, {found} were found {when}")
                verdict.check(
                    len(answered) - found <= 2 * args.concurrency * in_round,
                    f"{len(answered)} were answered, {found} found {when}",
                )
                verdict.check(
                    len(asked) + found <= args.prompts,
                    f"{found} were found and {len(asked)} asked {when}",
                )
                verdict.check(
                    len(again) <= 2 * args.concurrency * in_round,
                    f"{len(again)} answers were asked for again {when}",
                )
                kept = found + done
            # What was answered and kept after the last count is found by the next run.
            uncounted = len(sent) - done if found is not None else 0
            if result.code == -signal.SIGKILL:
                kills, in_round = kills + 1, in_round + 1
                in_asking += bool(asked)
                uncounted_in_all += uncounted
                verdict.check(
                    0 <= uncounted <= 2 * args.concurrency,
                    f"{len(sent)} were answered, {done} counted {when}",
                )
                answered |= sent
                print(
                    f"kill {kills:3}  round {rounds}  at {result.wall:5.2f} s  "
                    f"found {found if found is not None else '-':>5}  asked {len(asked):5}  "
                    f"answered {len(sent):5}  counted {done:5}  again {len(again):3}",
                    flush=True,
                )
                verify(cache, when)
                continue
            if verdict.check(result.code == 0, f"exit code {result.code} {when}: {result.stderr}"):
                for port, value in result.digests.items():
                    verdict.check(
                        value == expected.get(port),
                        f"{port} is {value}, expected {expected.get(port)}, {when}",
                    )
                verdict.check(result.digests.keys() == expected.keys(), f"ports differ {when}")
            verify(cache, f"at the end of round {rounds}")
            left = list((cache / "downloads").rglob("*.log"))
            verdict.check(not left, f"journals are left {when}: {left}")
            once_more = run(args.galeras, workflow, cache, check=False)
            verdict.check(once_more.code == 0 and not once_more.not_hit, f"not all hit {when}")
            verdict.check(not server.take()[0], f"a finished workflow asks the server {when}")
            print(
                f"round {rounds} ends after {in_round} kills: {requests} requests for "
                f"{args.prompts} questions",
                flush=True,
            )
            break
        if not verdict.violations:
            shutil.rmtree(cache)
    print(
        f"{kills} kills in {rounds} rounds, {in_asking} while requests went out, "
        f"{time.perf_counter() - outer_started:.0f} s; {uncounted_in_all} answers were sent in "
        f"the last instants and not counted, {lost_in_all} questions were asked again"
    )
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
