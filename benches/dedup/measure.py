"""A program in a process of its own, with its times and its peak memory."""

import json
import resource
import subprocess
import sys
from pathlib import Path

from harness import environment

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


def peak() -> int:
    """The largest resident memory of this process until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
