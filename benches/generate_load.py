"""A model is asked as fast as a bare load generator asks.

What it shows: `generate` sends 10,000 different requests to a server on the loopback address, 64 at
a time, reads every answer, keeps each on disk before it counts and writes a table of them; a bare
HTTP load generator (wrk) sends requests of the same size to the same server as fast as it can,
over as many connections, and forgets the answers. With answers that take no time and with answers
that take 20 milliseconds, several rounds, the one and the other in turn. The server is a small
Rust program (`benches/generate_load/server.rs`), which is compiled first: one in Python would be
slower than both clients. It runs on the same processors as the client.

How to run it: `python3 benches/generate_load.py [--requests 10000] [--concurrency 64]
[--latencies 0 20] [--rounds 5] [--galeras PATH]`. Needs `wrk` (apt-get install wrk) and `rustc`.

What it prints: per latency and client the median of the seconds for all requests, requests a
second, and the seconds of processor time of the client and of the server; the ratio of galeras (its
step `answers`, from its events) to the bare generator, by medians and by rounds; the time of the
whole process. The journal of answers is on the disk of the work folder (`--work`). Exit code 1 if
galeras reaches less than 80 % of the bare generator, or if a run did not ask for every answer.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import Verdict, arguments, run, table, work_folder  # noqa: E402

TARGET = 0.80
WORKFLOW = """\
galeras: 1
name: generate-load
steps:
  data: {{ op: read, with: {{ path: data.jsonl }} }}
  prompts:
    op: prompt
    from: data
    with:
      system: You are a Python programmer.
      treatments: {{ control: "Complete the following Python method:\\n{{{{ code }}}}" }}
  answers:
    op: generate
    from: prompts
    with:
      base_url: {url}
      model: tiny
      seed: 42
      max_tokens: 512
      concurrency: {concurrency}
"""
CODE = '''\
def method_{row:06}(self, first, second=None):
    """Return the sum of what the items of this object are worth."""
    total = first + {row}
    for item in self.items:
        if item.value is not None and item.kind != second:
            total += item.value
'''
# What galeras sends for such a prompt.
BODY = {
    "model": "tiny",
    "messages": [
        {"role": "system", "content": "You are a Python programmer."},
        {"role": "user", "content": "Complete the following Python method:\n" + CODE.format(row=0)},
    ],
    "max_tokens": 512,
    "seed": 42,
    "stream": False,
}
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """The compiled server with a latency; knows the processor time that it took."""

    def __init__(self, program: Path, latency: float) -> None:
        self.process = subprocess.Popen([program, str(latency)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def client_cpu() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(server: Server, work) -> dict:
    """What `work` returns, with the processor time of client and server."""
    client, there = client_cpu(), server.cpu()
    found = work()
    return {**found, "client": client_cpu() - client, "server": server.cpu() - there}


def bare(server: Server, script: Path, args, seconds: int) -> dict:
    """wrk for some seconds; the time of all requests follows from its rate."""
    done = subprocess.run(
        [
            "wrk",
            "-t",
            "2",
            "-c",
            str(args.concurrency),
            "-d",
            f"{seconds}s",
            "-s",
            str(script),
            f"{server.url}/chat/completions",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    requests, micros, errors = map(int, done.stdout.split("RESULT ")[1].split()[:3])
    if errors:
        sys.exit(f"wrk counts {errors} errors:\n{done.stdout}")
    scale = args.requests / requests
    return {"seconds": micros / 1e6 * scale, "scale": scale}


def galeras(server: Server, work: Path, args, verdict: Verdict) -> dict:
    """One run on a store that has the prompts and no answers."""
    cache = work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(work / "prompted", cache)
    os.sync()
    result = run(args.galeras, work / "load.yaml", cache)
    step = result.steps["answers"]
    verdict.check(step["rows"] == args.requests, f"{step['rows']} rows were answered")
    verdict.check(step["computed_rows"] == args.requests, f"{step['computed_rows']} were asked")
    verdict.check(result.not_hit == ["answers"], f"{result.not_hit} ran")
    return {"seconds": step["seconds"], "wall": result.wall, "scale": 1}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latencies", type=float, nargs="+", default=[0, 20])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of a round of wrk")
    args = parser.parse_args()
    work, verdict = work_folder(args), Verdict()
    program = work / "server"
    source = Path(__file__).resolve().parent / "generate_load" / "server.rs"
    subprocess.run(["rustc", "--edition", "2024", "-O", "-o", program, source], check=True)

    body = json.dumps(BODY, separators=(",", ":"))
    script = work / "wrk.lua"
    script.write_text(
        'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
        f"wrk.body = {json.dumps(body)}\n"
        "function done(summary)\n  local e = summary.errors\n"
        '  io.write(string.format("RESULT %d %d %d\\n", summary.requests, summary.duration,\n'
        "    e.connect + e.read + e.write + e.status + e.timeout))\nend\n"
    )
    with (work / "data.jsonl").open("w") as out:
        for row in range(args.requests):
            out.write(json.dumps({"id": f"{row:06}", "code": CODE.format(row=row)}) + "\n")
    print(
        f"{args.requests} requests of {len(body)} bytes, {args.concurrency} side by side, "
        f"{os.cpu_count()} processors, {args.rounds} rounds",
        flush=True,
    )

    lines = []
    for latency in args.latencies:
        server = Server(program, latency)
        workflow = work / "load.yaml"
        workflow.write_text(WORKFLOW.format(url=server.url, concurrency=args.concurrency))
        prompted = work / "prompted"
        shutil.rmtree(prompted, ignore_errors=True)
        run(args.galeras, workflow, prompted, "--select", "prompts")
        found = {"wrk": [], "galeras": []}
        for _ in range(args.rounds):
            found["wrk"].append(
                measured(server, lambda s=server: bare(s, script, args, args.seconds))
            )
            found["galeras"].append(
                measured(server, lambda s=server: galeras(s, work, args, verdict))
            )
        server.stop()
        median = {}
        for name, rounds in found.items():
            middle = lambda key, scaled=False, rounds=rounds: statistics.median(  # noqa: E731
                one[key] * (one["scale"] if scaled else 1) for one in rounds
            )
            median[name] = middle("seconds")
            times = sorted(one["seconds"] for one in rounds)
            spread = f"{times[0]:.2f}–{times[-1]:.2f}"
            whole = f"{middle('wall'):.2f}" if name == "galeras" else ""
            lines.append(
                [
                    f"{latency:g}",
                    name,
                    f"{median[name]:.2f}",
                    spread,
                    f"{args.requests / median[name]:,.0f}",
                    whole,
                    f"{middle('client', True):.2f}",
                    f"{middle('server', True):.2f}",
                ]
            )
        ratio = median["wrk"] / median["galeras"]
        pairs = zip(found["wrk"], found["galeras"], strict=True)
        by_round = ", ".join(f"{w['seconds'] / g['seconds']:.2f}" for w, g in pairs)
        print(
            f"latency {latency:g} ms: galeras reaches {ratio:.0%} of wrk (rounds: {by_round})",
            flush=True,
        )
        verdict.check(ratio >= TARGET, f"latency {latency:g} ms: {ratio:.0%}, not {TARGET:.0%}")
    print()
    table(["ms", "client", "s", "rounds", "per s", "whole s", "cpu s", "server cpu s"], lines)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
