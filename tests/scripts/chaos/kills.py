"""Runs that are killed, and the run after them."""

import random
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .program import Outcome, Place, Program, Running, Strike, fresh
from .servers import World
from .stores import State
from .truth import Facts
from .workloads import CONCURRENCY, Workload

# SIGKILL most of the time: the others may be answered in good order.
SIGNALS = [signal.SIGKILL] * 7 + [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
ASKS = "answers"
# Starts of a round at most: a signal may come too late.
STARTS = 12


@dataclass
class Kill:
    """A signal that ended a run."""

    signal: int
    at_work: list
    """The steps that were at work."""
    two: bool
    """Whether another run was on the same store."""

    @property
    def pays(self) -> bool:
        """Whether the run was asking a model."""
        return ASKS in self.at_work


@dataclass
class KillResult:
    """What became of a store whose runs were killed."""

    case: str
    workload: str
    base: str = "empty"
    edit: str = "plain"
    kills: list = field(default_factory=list)
    asked_again: int = 0
    reused: bool = False
    """Whether the last run took up rows or answers of killed ones."""
    what: list = field(default_factory=list)
    violations: list = field(default_factory=list)

    def violated(self, why: str) -> None:
        self.violations.append(f"after {len(self.kills)} kills: {why}")


class KillCases:
    """Kills runs on one store, one to three times, then lets one run to its end."""

    def __init__(self, program: Program, world: World, facts: Facts, folder: Path) -> None:
        self.program, self.world, self.facts, self.folder = program, world, facts, folder

    def run(self, case: str, workload: Workload, states: list, rng: random.Random) -> KillResult:
        result = KillResult(case, workload.name)
        place, whole = self.store(case, workload, states, rng, result)
        workflow = workload.workflow(result.edit)
        truth = self.facts.truth(workload, result.edit)
        counts = Counts(self.world, place, result)
        wanted = rng.randrange(1, 4)
        for _ in range(STARTS):
            if len(result.kills) >= wanted:
                break
            two = rng.random() < 0.25
            pays = workload.name == "paid"
            strikes = [strike(rng, whole, pays), rng.choice([None, strike(rng, whole, pays)])]
            running = [self.program.start(workflow, place)]
            if two:
                running.append(self.program.start(workflow, place))
                if rng.random() < 0.5:
                    strikes.reverse()
            ended = end_all(running, strikes)
            for outcome in ended:
                self.look(result, outcome, truth, place, two)
            counts.after(ended)
            verified = self.program.verify(place)
            if verified.code != 0:
                result.violated(f"cache verify: {verified.crash or verified.stdout[-500:]}")
            if result.violations:
                return result
        last = self.program.run(workflow, place)
        result.reused = reuses(last, whole)
        if why := last.crash or truth.broken(last, place):
            result.violated(why)
        counts.after([last])
        again = self.program.run(workflow, place)
        left = [step["step"] for step in again.steps if step["status"] != "hit"]
        if why := again.crash or truth.broken(again, place):
            result.violated(f"the run after all: {why}")
        elif left and truth.code == 0:
            result.violated(f"the run after all does not hit: {left}")
        if workload.name == "paid" and self.world.take(place.key)[0]:
            result.violated("the run after all asks the model")
        verified = self.program.verify(place)
        if verified.code != 0:
            result.violated(f"cache verify at the end: {verified.crash or verified.stdout[-500:]}")
        if not result.violations:
            shutil.rmtree(place.folder)
        return result

    def store(self, case: str, workload: Workload, states: list, rng, result) -> tuple:
        """The store that the killed runs work on, and an undisturbed run on such a store."""
        fits = [state for state in states if state.workload is workload]
        state: State | None = rng.choice([None, None, *fits])
        if state is None:
            place = Place(fresh(self.folder / case), case)
            return place, self.facts.truth(workload, "plain").run
        result.base = state.name
        if state.finished:
            result.edit = rng.choice(workload.working)
        place = state.copy(fresh(self.folder / case), case)
        return place, self.facts.undamaged(state, result.edit)

    def look(self, result: KillResult, outcome: Outcome, truth, place: Place, two: bool) -> None:
        """One of the runs that were to be killed."""
        if outcome.struck is not None:
            result.what.append(f"{signal.Signals(outcome.struck).name} at {outcome.wall:.3f} s")
        if outcome.crash:
            result.violated(outcome.crash)
        elif outcome.killed:
            result.kills.append(Kill(outcome.struck, at_work(outcome), two))
        elif outcome.code != truth.code:
            result.violated(f"a run that was not killed: {outcome.why}")
        elif why := truth.differs(outcome, place, alone=not two):
            result.violated(f"a run that came to its end: {why}")


class Counts:
    """What was asked and counted over the runs of one store."""

    def __init__(self, world: World, place: Place, result: KillResult) -> None:
        self.world, self.place, self.result = world, place, result
        self.answered, self.kept, self.kills, self.alone = set(), 0, 0, True

    def after(self, ended: list[Outcome]) -> None:
        """What the runs that have just ended asked, against what was known before them."""
        if self.result.workload != "paid":
            return
        asked, sent = self.world.take(self.place.key)
        # Requests under way, and answers on their way to the disk, of each kill so far.
        lost = 2 * CONCURRENCY * self.kills
        again = self.answered & set(asked)
        self.result.asked_again += len(again)
        if len(again) > lost:
            self.result.violated(f"{len(again)} answers were asked for again, at most {lost} may")
        killed = sum(outcome.killed for outcome in ended)
        twice = [question for question, times in asked.items() if times > 1]
        if len(twice) > 2 * CONCURRENCY * (killed if len(ended) > 1 else 0):
            self.result.violated(f"{len(twice)} questions went out twice at a time")
        if len(ended) == 1:
            self.found(ended[0], len(sent))
        else:
            self.kept = 0  # Which of the two counted what is not known.
        self.kept = max(self.kept, self.in_journal())
        self.answered |= sent
        self.kills += killed

    def found(self, outcome: Outcome, sent: int) -> None:
        """What counted in earlier runs is found, so that it cannot be asked again."""
        totals = [e for e in outcome.of("step_total") if e["step"] == ASKS]
        if not totals:
            return
        found = totals[-1]["reused"]
        done = max((e["done"] for e in outcome.of("progress") if e["step"] == ASKS), default=0)
        if found < self.kept:
            self.result.violated(f"{self.kept} answers counted, {found} were found")
        if outcome.killed and not 0 <= sent - done <= 2 * CONCURRENCY:
            self.result.violated(f"{sent} were answered, {done} counted")
        self.kept = found + done

    def in_journal(self) -> int:
        """Whole lines: answers that are on disk."""
        folder = self.place.cache / "downloads" / "answers"
        journals = folder.glob("*.log") if folder.exists() else []
        return sum(path.read_bytes().count(b"\n") for path in journals)


def strike(rng: random.Random, whole: Outcome, pays: bool) -> Strike:
    """An instant of a run that takes as long and tells as much as `whole`: if it pays, mostly
    while it does."""
    chosen = rng.choice(SIGNALS)
    told = enumerate(whole.events, 1)
    paying = [at for at, e in told if e["event"] == "progress" and e["step"] == ASKS]
    if pays and paying and rng.random() < 0.8:
        return Strike(chosen, rng.uniform(0, 0.01), rng.choice(paying))
    if rng.random() < 0.5:
        return Strike(chosen, rng.uniform(0, whole.wall))
    return Strike(chosen, rng.uniform(0, 0.01), rng.randrange(1, max(len(whole.events), 2)))


def end_all(running: list[Running], strikes: list) -> list[Outcome]:
    """Ends runs that go on side by side, each by its strike."""
    if len(running) == 1:
        return [running[0].end(next(filter(None, strikes)))]
    with ThreadPoolExecutor(len(running)) as pool:
        return list(pool.map(Running.end, running, strikes))


def at_work(outcome: Outcome) -> list:
    """The steps that had started and not ended."""
    ended = {event["step"] for event in outcome.of("step_finished")}
    return [e["step"] for e in outcome.of("step_started") if e["step"] not in ended]


def reuses(last: Outcome, whole: Outcome) -> bool:
    """Whether a run computed fewer rows of a step than an undisturbed one, and not none."""
    rows = {step["step"]: step["computed_rows"] for step in whole.steps}
    fewer = [s for s in last.steps if s["status"] == "ran" and s["computed_rows"] < rows[s["step"]]]
    return bool(fewer)
