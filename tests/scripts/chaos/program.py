"""Galeras as a process that may be killed: its command line, its events, how it ended."""

import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness import environment, parse_events

# No run of these workloads takes a fraction of this, in seconds.
TIME_OUT = 180
# What a program says that met a defect of its own.
DEFECTS = (
    "panicked",
    "a defect in ",
    "a library gave up",
    "stack overflow",
    "overflowed its stack",
)
# The environment variable with the key of the paid model; its value tells the server who asks.
KEY = "CHAOS_KEY"


@dataclass
class Outcome:
    """How a process ended, and what it said."""

    code: int
    wall: float
    stdout: str
    stderr: str
    timed_out: bool = False
    struck: int | None = None
    """The signal that was sent to it while it lived."""
    events: list = field(init=False)

    def __post_init__(self) -> None:
        self.events = parse_events(self.stdout)

    @property
    def killed(self) -> bool:
        """A signal that was sent ended it, at once or in good order."""
        return self.struck is not None and self.code in (-self.struck, 130)

    @property
    def crash(self) -> str | None:
        """Why it ended as no program should."""
        if self.timed_out:
            return f"did not end within {TIME_OUT} s"
        said = self.stdout + self.stderr
        for defect in DEFECTS:
            if defect in said:
                at = said.index(defect)
                return f"a defect: {said[max(at - 200, 0) : at + 300].strip()}"
        if self.code < 0 and self.code != -(self.struck or 0):
            return f"ended by {signal.Signals(-self.code).name}"
        return None

    @property
    def steps(self) -> list:
        """The summaries of the steps; none if the run did not finish."""
        last = self.events[-1] if self.events else {}
        return last["steps"] if last.get("event") == "finished" else []

    @property
    def digests(self) -> dict:
        """(step, port) -> logical digest and rows."""
        return {
            (step["step"], port["port"]): (port["digest"], port["rows"])
            for step in self.steps
            for port in step["ports"]
        }

    @property
    def work(self) -> list:
        """What was computed, and what was there already."""
        return [(step["step"], step["status"], step["computed_rows"]) for step in self.steps]

    def of(self, *kinds: str) -> list:
        """The events of these kinds."""
        return [event for event in self.events if event["event"] in kinds]

    @property
    def why(self) -> str:
        """What it said about its failure, in short."""
        details = [step["detail"] for step in self.steps if step["status"] == "failed"]
        warnings = [event["message"] for event in self.of("warning", "diagnostic")]
        said = [text for text in (*details, *warnings, self.stderr.strip()) if text]
        return f"exit code {self.code}: " + " | ".join(said)[:600]


def fresh(folder: Path) -> Path:
    """The folder, without what an earlier run may have left of it."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


class Place:
    """A folder for one case: its store, its outputs, and a home of its own."""

    def __init__(self, folder: Path, key: str = "chaos") -> None:
        self.folder, self.key = folder, key
        self.cache, self.out = folder / "cache", folder / "out"
        for name in ("home", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict:
        unwanted = ("http_proxy", "https_proxy", "all_proxy", "github_token", "openai_api_key")
        kept = {
            name: value for name, value in environment().items() if name.lower() not in unwanted
        }
        kept = {name: value for name, value in kept.items() if not name.startswith("XDG_")}
        home, tmp = str(self.folder / "home"), str(self.folder / "tmp")
        return kept | {"HOME": home, "TMPDIR": tmp, "NO_COLOR": "1", KEY: self.key}


class Program:
    """The program under test."""

    def __init__(self, binary: str) -> None:
        self.binary = os.path.abspath(binary)
        told = subprocess.run([self.binary, "run", "--help"], capture_output=True, text=True)
        if told.returncode:
            raise SystemExit(f"{binary} run --help: exit code {told.returncode}\n{told.stderr}")
        # A home of its own remembers no consent.
        self.consent = ["--allow-all"] if "--allow-all" in told.stdout else []

    def run(self, workflow: Path, place: Place, strike=None) -> Outcome:
        """Runs a workflow; `strike` is when which signal is sent to it."""
        return self.start(workflow, place).end(strike)

    def start(self, workflow: Path, place: Place) -> "Running":
        where = ["--cache", str(place.cache), "--out", str(place.out)]
        # An output that was damaged, or whose record was, is replaced only if that is asked for.
        command = ["run", str(workflow), *where, "--overwrite", "--format", "json", *self.consent]
        return Running([self.binary, *command], place)

    def verify(self, place: Place, *more: str) -> Outcome:
        command = ["cache", "verify", "--cache", str(place.cache), "--format", "json", *more]
        return Running([self.binary, *command], place).end()


@dataclass
class Strike:
    """When a signal is sent: after a time, or after so many events and a time."""

    signal: int
    seconds: float
    events: int = 0

    def __str__(self) -> str:
        after = f"{self.events} events and " if self.events else ""
        return f"{signal.Signals(self.signal).name} after {after}{self.seconds:.3f} s"


class Running:
    """A process whose lines are read as they come."""

    def __init__(self, command: list, place: Place) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            cwd=place.folder,
            env=place.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines, self.errors, self.ended = [], [], False
        self.news = threading.Condition()
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.drain)]
        for thread in self.threads:
            thread.start()

    def read(self) -> None:
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def drain(self) -> None:
        self.errors.append(self.process.stderr.read())

    def wait_for(self, condition) -> bool:
        """Waits until the lines so far fulfil `condition`; false if they never did."""
        with self.news:
            self.news.wait_for(lambda: self.ended or condition(self.lines), TIME_OUT)
            return condition(self.lines)

    def end(self, strike: Strike | None = None) -> Outcome:
        """Waits for its end, and sends the signal on the way."""
        struck, timed_out = None, False
        if strike:
            if strike.events:
                self.wait_for(lambda lines: len(lines) >= strike.events)
            try:
                self.process.wait(strike.seconds)
            except subprocess.TimeoutExpired:
                self.process.send_signal(strike.signal)
                struck = strike.signal
        try:
            code = self.process.wait(TIME_OUT)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.process.kill()
            code = self.process.wait()
        for thread in self.threads:
            thread.join(TIME_OUT)
        wall = time.perf_counter() - self.started
        out = b"".join(self.lines).decode(errors="replace")
        errors = b"".join(self.errors).decode(errors="replace")
        return Outcome(code, wall, out, errors, timed_out, struck)
