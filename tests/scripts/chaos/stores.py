"""The stores that are damaged: of finished runs and of killed ones, and the kinds of their
files."""

import json
import re
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from .program import TIME_OUT, Place, Program
from .servers import World
from .workloads import Workload

# Answers that a killed run has in its journal.
ANSWERED = 40


@dataclass
class State:
    """A store with its outputs that cases copy."""

    name: str
    workload: Workload
    folder: Path
    finished: bool

    def copy(self, to: Path, key: str) -> Place:
        shutil.copytree(self.folder, to, symlinks=True)
        return Place(to, key)

    def kinds(self) -> dict:
        """Kind -> the files of that kind, sorted, relative to the folder."""
        return kinds(self.folder)


def kinds(folder: Path) -> dict:
    """Kind -> the files of that kind in a store and its outputs, relative to `folder`."""
    named = set()
    for path in folder.glob("cache/actions/*/*.json"):
        named |= set(re.findall(r'"blob": *"([0-9a-f]{64})"', path.read_text()))
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] in ("cache", "out"):
            files.setdefault(kind(path, name.parts, named), []).append(str(name))
    for path in sorted((folder / "cache").glob("*")):
        if path.is_dir() and any(path.iterdir()):
            files.setdefault("folder", []).append(str(path.relative_to(folder)))
    return files


def kind(path: Path, parts: tuple, named: set) -> str:
    """What sort of file it is."""
    match parts:
        case ("out", *_):
            return "output"
        case ("cache", "actions", *_):
            return "manifest"
        case ("cache", "blobs", *_):
            return "table" if path.stem in named else "table of a part"
        case ("cache", "memo", *_):
            return "part"
        case ("cache", "checks", *_):
            return "data test" if "problem" in path.read_text() else "output record"
        case ("cache", "outputs", *_):
            return "origin of an output"
        case ("cache", "runs", *_):
            return "run record"
        case ("cache", "locks", *_):
            return "lock"
        case ("cache", "tmp", *_):
            return "temporary"
        case ("cache", "downloads", "answers", *_):
            return "journal"
        case ("cache", "downloads", "spending", *_):
            return "ledger"
        case ("cache", "downloads", "github", *_):
            return "search"
        case ("cache", "downloads", "git", *_):
            return "pack" if path.suffix in (".pack", ".idx") else "clone"
        case ("cache", "downloads", _):
            return "download"
        case ("cache", other, *_):
            return other.split(".")[0]
    return "file"


def finished(program: Program, workload: Workload, folder: Path) -> State:
    """The store after a run to its end, and after one whose assertion failed."""
    state = State("finished", workload, folder / f"{workload.name}-finished", True)
    if not state.folder.exists():
        place = Place(state.folder)
        # In this order, so that the outputs and the last run are the workflow's.
        for edit in ("failing", "plain"):
            if edit in workload.edits:
                program.run(workload.workflow(edit), place)
    return state


def killed(
    program: Program, workload: Workload, world: World, folder: Path, name: str, stall, until
) -> State:
    """The store after a run that was killed: when the server fell silent, or at an event."""
    state = State(name, workload, folder / f"{workload.name}-{name}", False)
    if not state.folder.exists():
        place = Place(state.folder, f"pristine-{name}")
        world.hold_if(stall)
        running = program.start(workload.workflow("plain"), place)
        if stall:
            reached = world.stalled.wait(TIME_OUT)
            time.sleep(0.5)  # What else is under way is written.
        else:
            reached = running.wait_for(lambda lines: any(until in line for line in lines))
        running.process.send_signal(signal.SIGKILL)
        outcome = running.end()
        world.hold_if(None)
        if not reached or outcome.code != -signal.SIGKILL:
            about = f"{workload.name} for the store `{name}`"
            raise SystemExit(f"the run of {about} never got to its end: {outcome.why}")
        place.out.mkdir(exist_ok=True)
    return state


def states(program: Program, found: dict, world: World, folder: Path) -> list:
    """All stores that are damaged."""
    folder.mkdir(parents=True, exist_ok=True)
    methods, mining, paid = found["methods"], found["mining"], found["paid"]
    started = json.dumps({"event": "step_started", "step": "answers"}, separators=(",", ":"))

    def late_answer(what: str, number: int) -> bool:
        return what == "chat" and number > ANSWERED

    def head(what: str, _: int) -> bool:
        return what.startswith("GET") and "three" in what

    def second_fetch(what: str, number: int) -> bool:
        return what.startswith("fetch") and "three" in what and number == 2

    every = [finished(program, workload, folder) for workload in found.values()]
    args = (world, folder)
    every.append(killed(program, methods, *args, "killed", None, started.rstrip("}").encode()))
    every.append(killed(program, mining, *args, "searching", head, None))
    every.append(killed(program, mining, *args, "cloning", second_fetch, None))
    every.append(killed(program, paid, *args, "killed", late_answer, None))
    return every
