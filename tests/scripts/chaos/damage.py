"""What is done to a file of a store or to an output, and what must hold afterwards."""

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .program import Place, Program, fresh
from .servers import World
from .stores import ANSWERED, State
from .truth import Facts
from .workloads import READS, REUSING

HEX = b"0123456789abcdef"
# What the program says of a ledger of spending that nobody can read.
BEGIN_ANEW = "delete it to begin new accounts"


def flip_bit(path: Path, rng: random.Random, _: Path) -> str:
    content = bytearray(path.read_bytes())
    at, bit = rng.randrange(len(content)), rng.randrange(8)
    content[at] ^= 1 << bit
    overwrite(path, bytes(content))
    return f"bit {bit} of byte {at} of {len(content)}"


def change_byte(path: Path, rng: random.Random, _: Path) -> str:
    """Half of the time a digit becomes another one, so that a text stays well-formed."""
    content = bytearray(path.read_bytes())
    digits = [at for at, byte in enumerate(content) if byte in HEX]
    if digits and rng.random() < 0.5:
        at = rng.choice(digits)
        alphabet = HEX[:10] if content[at] in HEX[:10] else HEX[10:]
    else:
        at, alphabet = rng.randrange(len(content)), bytes(range(256))
    was, content[at] = content[at], rng.choice([b for b in alphabet if b != content[at]])
    overwrite(path, bytes(content))
    return f"byte {at} of {len(content)} from {was} to {content[at]}"


def truncate(path: Path, rng: random.Random, _: Path) -> str:
    size = path.stat().st_size
    left = rng.choice([size - 1, size // 2, rng.randrange(size)])
    os.truncate(path, left)
    return f"cut from {size} to {left} bytes"


def exchange(path: Path, _: random.Random, other: Path) -> str:
    """Each gets the name of the other."""
    aside = path.with_name(path.name + "-aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)
    return f"exchanged with {other.name}"


def exchange_contents(path: Path, _: random.Random, other: Path) -> str:
    """Each gets the content of the other and stays the same file."""
    mine, theirs = path.read_bytes(), other.read_bytes()
    overwrite(path, theirs)
    overwrite(other, mine)
    return f"content exchanged with {other.name}"


def delete(path: Path, *_) -> str:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return "deleted"


def replace_by_folder(path: Path, rng: random.Random, _: Path) -> str:
    path.unlink()
    path.mkdir()
    full = rng.random() < 0.5
    if full:
        (path / "inside").write_text("x")
    return f"replaced by a folder with {'a file' if full else 'nothing'}"


def empty(path: Path, *_) -> str:
    overwrite(path, b"")
    return "emptied"


def garbage(path: Path, rng: random.Random, _: Path) -> str:
    noise = rng.randbytes(rng.randrange(1, 600))
    # The last four bytes but four of a Parquet file are the length of its footer.
    footer = b"PAR1" + noise + rng.choice([b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"]) + b"PAR1"
    made = rng.choice([noise, footer, b"{}\n", b"null\n", b"[[" * 200, b"\0" * len(noise)])
    overwrite(path, made)
    return f"replaced by {made[:12]!r}... of {len(made)} bytes"


def append(path: Path, rng: random.Random, _: Path) -> str:
    noise = rng.choice([b"\n", b"x", b"{}", rng.randbytes(rng.randrange(1, 99))])
    with path.open("ab") as out:
        out.write(noise)
    return f"{len(noise)} bytes appended"


def overwrite(path: Path, content: bytes) -> None:
    """In place: the same file with another content."""
    with path.open("r+b") as out:
        out.truncate(len(content))
        out.write(content)


@dataclass(frozen=True)
class Damage:
    """A kind of damage."""

    name: str
    do: Callable
    needs_content: bool = True
    needs_other: bool = False
    restores_time: bool = False
    """The time of the file is put back, so that only a full check can see the damage."""


DAMAGES = (
    Damage("bit", flip_bit),
    Damage("byte", change_byte),
    Damage("cut", truncate),
    Damage("swap", exchange, needs_content=False, needs_other=True),
    Damage("delete", delete, needs_content=False),
    Damage("folder", replace_by_folder, needs_content=False),
    Damage("empty", empty),
    Damage("garbage", garbage, needs_content=False),
    Damage("append", append, needs_content=False),
    Damage("bit, time", flip_bit, restores_time=True),
    Damage("byte, time", change_byte, restores_time=True),
    Damage("swap, time", exchange_contents, needs_other=True, restores_time=True),
)


@dataclass
class Target:
    """A kind of damage to a kind of file of a store."""

    state: State
    kind: str
    files: list
    damage: Damage

    def __str__(self) -> str:
        return f"{self.state.workload.name} {self.state.name} {self.kind}: {self.damage.name}"


def targets(states: list) -> list:
    """Every kind of damage to every kind of file that it can be done to."""
    found = []
    for state in states:
        for kind, files in state.kinds().items():
            for damage in DAMAGES:
                fit = files
                if kind == "folder" and damage.name != "delete":
                    continue
                if damage.needs_content:
                    fit = [file for file in files if (state.folder / file).stat().st_size]
                if len(fit) > damage.needs_other:
                    found.append(Target(state, kind, fit, damage))
    return found


@dataclass
class DamageResult:
    """What became of a damaged store."""

    case: str
    target: Target
    edit: str = "plain"
    file: str = ""
    what: str = ""
    noticed: bool = False
    refused: bool = False
    wrong: bool = False
    stuck: bool = False
    """An error stayed after the repair."""
    violations: list = field(default_factory=list)

    def violated(self, when: str, why: str) -> None:
        self.violations.append(f"{when}: {why}")


class DamageCases:
    """Damages copies of stores, one file each, and looks at what comes of it."""

    def __init__(self, program: Program, world: World, facts: Facts, folder: Path) -> None:
        self.program, self.world, self.facts, self.folder = program, world, facts, folder

    def run(self, case: str, target: Target, rng: random.Random) -> DamageResult:
        result = DamageResult(case, target)
        state, workload = target.state, target.state.workload
        place = state.copy(fresh(self.folder / case), case)
        result.edit = rng.choice(edits(target))
        if state.finished:
            # What the program knows of the files is of these, not of those that were copied.
            warm = self.program.run(workload.workflow("plain"), place)
            why = warm.crash or self.facts.truth(workload, "plain").broken(warm, place)
            if why:
                result.violated("an undamaged copy", why)
                return result
        damage(target, place, rng, result)
        before = sum(self.world.asked(case).values())
        # Where only a full check can see the damage, it may come before or after a run.
        runs_first = not target.damage.restores_time or rng.random() < 0.5
        if runs_first:
            self.first_run(result, place)
            self.count_answers(result, before)
        repaired = self.program.verify(place, "--repair")
        result.noticed |= bool(repaired.of("finding")) or repaired.code != 0
        if repaired.crash:
            result.violated("verify --repair", repaired.crash)
        if target.kind == "output" and (place.folder / result.file).is_dir():
            shutil.rmtree(place.folder / result.file)  # It is not the program's to remove.
        for edit in dict.fromkeys([result.edit, "plain"]):
            outcome = self.program.run(workload.workflow(edit), place)
            if target.kind == "ledger" and BEGIN_ANEW in outcome.why:
                # What was spent is not known, so nothing more is, until the user says so.
                result.noticed = result.refused = True
                ledger = place.folder / result.file
                shutil.rmtree(ledger) if ledger.is_dir() else ledger.unlink()
                outcome = self.program.run(workload.workflow(edit), place)
            truth = self.facts.truth(workload, edit)
            if why := outcome.crash or truth.broken(outcome, place):
                result.wrong |= outcome.code in (0, 3)
                result.stuck |= outcome.code not in (0, 3)
                poison = ", after a run on the damage" if runs_first else ""
                result.violated(f"run `{edit}` after the repair{poison}", why)
        clean = self.program.verify(place)
        if clean.code != 0:
            result.violated("verify at the end", clean.crash or clean.stdout[-500:])
        if not result.violations:
            shutil.rmtree(place.folder)
        return result

    def first_run(self, result: DamageResult, place: Place) -> None:
        """The run after the damage: it tells the truth or refuses."""
        state = result.target.state
        workload, restores_time = state.workload, result.target.damage.restores_time
        outcome = self.program.run(workload.workflow(result.edit), place)
        result.refused = outcome.code not in (0, 3)
        if outcome.crash:
            result.violated(f"run `{result.edit}`", outcome.crash)
        elif why := self.facts.truth(workload, result.edit).differs(outcome, place):
            result.wrong = True
            if not restores_time:
                result.violated(f"run `{result.edit}`", why)
        undamaged = self.facts.undamaged(state, result.edit)
        result.noticed |= result.refused or bool(outcome.of("warning"))
        result.noticed |= outcome.work != undamaged.work
        if result.target.kind in ("output", "output record"):
            result.noticed |= any(event["written"] for event in outcome.of("output"))

    def count_answers(self, result: DamageResult, before: int) -> None:
        """A damaged journal loses the damaged line only, or two that became one."""
        target = result.target
        if target.kind != "journal" or target.damage.name not in ("bit", "byte", "append"):
            return
        total = self.facts.truth(target.state.workload, "plain").digests["answers", "out"][1]
        lost = sum(self.world.asked(result.case).values()) - before - (total - ANSWERED)
        if lost > 2:
            result.violated("run `plain`", f"one damage to the journal lost {lost} answers")


def edits(target: Target) -> list:
    """What is run after the damage: something that reads what is damaged, if that is known."""
    workload, kind = target.state.workload, target.kind
    if not target.state.finished or kind in ("output", "output record"):
        return ["plain"]
    if kind in ("pack", "clone"):
        return ["nested", "until"]
    if kind == "data test" and "failing" in workload.edits:
        return ["plain", "failing"]
    if kind in ("part", "table of a part"):
        return [edit for edit in workload.edits if edit in REUSING]
    return workload.edits


def read_by(target: Target, edit: str) -> list:
    """The tables among the files that an edit reads first."""
    step = READS[target.state.workload.name].get(edit)
    tables = set()
    for path in target.state.folder.glob("cache/actions/*/*.json"):
        manifest = json.loads(path.read_text())
        if manifest["labels"]["step"] == step:
            tables |= {port["blob"] for port in manifest["ports"] if port["port"] == "out"}
    return [file for file in target.files if Path(file).stem in tables]


def damage(target: Target, place: Place, rng: random.Random, result: DamageResult) -> None:
    """Does the damage to one of the files."""
    result.file = rng.choice(read_by(target, result.edit) or target.files)
    if target.kind == "table" and result.edit == "plain" and rng.random() < 0.5:
        shutil.rmtree(place.out)  # Written again, from what is damaged.
    path = other = place.folder / result.file
    if target.damage.needs_other:
        other = place.folder / rng.choice([file for file in target.files if file != result.file])
    if not path.exists() or not other.exists():
        # The run before has removed it, as it may.
        result.what = f"{result.file} is gone"
        return
    times = {changed: changed.stat() for changed in (path, other)}
    result.what = f"{result.file}: {target.damage.do(path, rng, other)}"
    if target.damage.restores_time:
        for changed, was in times.items():
            os.utime(changed, ns=(was.st_atime_ns, was.st_mtime_ns))
