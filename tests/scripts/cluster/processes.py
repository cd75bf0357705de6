"""A scheduler and executors as processes of this machine."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from harness import environment

# For as long a process may take to say that it is ready.
PATIENCE = 60


class Process:
    """A process of a cluster, with what it wrote to a file."""

    def __init__(self, command: list, log: Path, extra: dict | None = None) -> None:
        self.log = log
        self.start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=out,
                cwd=log.parent,
                env=environment() | {"NO_COLOR": "1"} | (extra or {}),
            )

    def text(self) -> str:
        return self.log.read_bytes()[self.start :].decode(errors="replace")

    def wait_ready(self) -> str:
        """The line that says that it is ready."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := re.search(r"^.*ready: .*$", self.text(), re.MULTILINE):
                return found[0]
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"not ready:\n{self.text()[-2000:]}")

    def send(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ends it by SIGTERM; its exit code."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        return self.process.wait(timeout=60)


class Cluster:
    """A scheduler and executors on one store."""

    def __init__(self, galeras: str, folder: Path, cache: str, extra: dict | None = None) -> None:
        self.galeras, self.folder, self.cache = os.path.abspath(galeras), folder, cache
        self.extra = extra or {}
        self.executors: list[Process] = []
        self.started = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.address = ""
        self.start_scheduler("127.0.0.1:0")

    def start_scheduler(self, bind: str) -> None:
        command = [self.galeras, "cluster", "scheduler", "--bind", bind]
        self.scheduler = Process(command, self.folder / "scheduler.log")
        self.address = re.search(r"df://[\d.:]+", self.scheduler.wait_ready())[0]

    def restart_scheduler(self) -> None:
        self.scheduler.kill()
        time.sleep(1)
        self.start_scheduler(self.address.removeprefix("df://"))

    def start_executor(self, program: str, slots: int, before: tuple, memory: str, extra: dict):
        """An executor of this program, which need not be ready."""
        self.started += 1
        name = f"executor-{self.started}"
        command = [*before, program, "cluster", "executor", "--scheduler", self.address]
        command += ["--cache", self.cache, "--slots", str(slots), "--name", name]
        command += ["--memory", memory]
        return Process(command, self.folder / f"{name}.log", self.extra | extra)

    def add(
        self, slots: int = 1, before: tuple = (), memory: str = "1GiB", extra: dict | None = None
    ) -> Process:
        """One more executor, which is ready; `before` is a command that starts it."""
        executor = self.start_executor(self.galeras, slots, before, memory, extra or {})
        executor.wait_ready()
        self.executors.append(executor)
        return executor

    def replace(self, at: int, before: tuple = ()) -> None:
        """Starts an executor in the place of one that has ended."""
        self.add(before=before)
        self.executors[at] = self.executors.pop()

    def end(self) -> list:
        """Ends all; the exit codes of the executors."""
        codes = [executor.stop() for executor in self.executors]
        self.scheduler.stop()
        return codes
