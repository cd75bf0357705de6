"""What is true: the digests and outputs of undisturbed runs, and whether a run agrees."""

import hashlib
import shutil
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from .program import Outcome, Place, Program, fresh
from .stores import State
from .workloads import Workload


@dataclass
class Truth:
    """An undisturbed run of a workflow in an empty store."""

    code: int
    digests: dict
    outputs: dict
    assertions: Counter
    run: Outcome

    def differs(self, outcome: Outcome, place: Place, alone: bool = True) -> str | None:
        """In what a run that claims to be done differs; `None` if it tells the truth or ended
        with an error that claims nothing. The outputs count if no other run writes them."""
        claims = outcome.code in (0, 3)
        if not claims or outcome.killed:
            return None
        if outcome.code != self.code:
            return f"exit code {outcome.code} instead of {self.code}: {outcome.why}"
        for port, value in outcome.digests.items():
            if value != self.digests.get(port, value):
                is_, was = (f"{d[:12]} ({rows} rows)" for d, rows in (value, self.digests[port]))
                return f"{'.'.join(port)} is {is_}, not {was}"
        if outcome.code == 3:
            return None  # What else ran before the assertion failed depends on the moment.
        if missing := self.digests.keys() - outcome.digests.keys():
            return f"no digest of {sorted(missing)}"
        if assertions(outcome) != self.assertions:
            return f"other assertions fail: {list(assertions(outcome))}"
        if not alone:
            return None
        for name, digest in outputs(place.out).items():
            if digest != self.outputs.get(name, digest):
                return f"output {name} has other bytes, with right digests"
        if missing := self.outputs.keys() - outputs(place.out).keys():
            return f"outputs are missing: {sorted(missing)}"
        return None

    def broken(self, outcome: Outcome, place: Place) -> str | None:
        """Why a run that must tell the truth does not."""
        if outcome.code != self.code:
            return outcome.why
        return self.differs(outcome, place)


def outputs(folder: Path) -> dict:
    """File -> digest of its bytes; files that a killed run was about to name are left out."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".galeras-")
    }


def assertions(outcome: Outcome) -> Counter:
    """The data tests that did not hold."""
    return Counter((e["step"], e["severity"], e["message"]) for e in outcome.of("assertion"))


class Facts:
    """What is known of undisturbed runs, found out when it is first asked for."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.lock, self.locks, self.known = threading.Lock(), defaultdict(threading.Lock), {}

    def truth(self, workload: Workload, edit: str) -> Truth:
        """An edit of a workflow, run in an empty store."""
        return self.once(("truth", workload.name, edit), lambda: self.find(workload, edit))

    def undamaged(self, state: State, edit: str) -> Outcome:
        """An edit of a workflow, run on an undamaged copy of a store; it tells the truth."""
        key = ("undamaged", state.workload.name, state.name, edit)
        return self.once(key, lambda: self.try_out(state, edit, self.folder / "-".join(key)))

    def once(self, key: tuple, find):
        with self.lock:
            lock = self.locks[key]
        with lock:
            if key not in self.known:
                self.known[key] = find()
            return self.known[key]

    def find(self, workload: Workload, edit: str) -> Truth:
        truth = None
        # Twice, as two runs must agree; edits are compared with runs on stores of other runs.
        for attempt in range(2 if edit == "plain" else 1):
            folder = fresh(self.folder / f"{workload.name}-{edit}-{attempt}")
            place = Place(folder, folder.name)
            outcome = self.program.run(workload.workflow(edit), place)
            expected = 3 if edit == "failing" else 0
            if outcome.crash or outcome.code != expected:
                why = outcome.crash or outcome.why
                raise SystemExit(f"the undisturbed run of {workload.name}, {edit}: {why}")
            if truth and (why := truth.differs(outcome, place)):
                raise SystemExit(f"two undisturbed runs of {workload.name}, {edit} differ: {why}")
            told = (outputs(place.out), assertions(outcome), outcome)
            truth = truth or Truth(outcome.code, outcome.digests, *told)
            shutil.rmtree(folder)
        return truth

    def try_out(self, state: State, edit: str, folder: Path) -> Outcome:
        place = state.copy(fresh(folder), folder.name)
        outcome = self.program.run(state.workload.workflow(edit), place)
        if why := outcome.crash or self.truth(state.workload, edit).broken(outcome, place):
            about = f"{state.workload.name}, {edit}, on the store `{state.name}`"
            raise SystemExit(f"the undamaged run of {about}: {why}")
        shutil.rmtree(folder)
        return outcome
