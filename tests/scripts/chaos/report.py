"""What the cases came to: progress, tables, violations."""

import shlex
import signal
import sys
import time
from collections import Counter, defaultdict

from harness import table

from .damage import DAMAGES, DamageResult
from .kills import KillResult

# Cases between two lines of progress.
PROGRESS = 50


class Report:
    """Collects results."""

    def __init__(self, args) -> None:
        self.args, self.started = args, time.perf_counter()
        self.damages: list[DamageResult] = []
        self.rounds: list[KillResult] = []

    def kills(self, workload: str) -> int:
        """Kills of a workload; of the paid one only those while it paid."""
        rounds = [r for r in self.rounds if r.workload == workload]
        return sum(kill.pays or workload != "paid" for r in rounds for kill in r.kills)

    def add(self, result: DamageResult | KillResult) -> None:
        results = self.damages if isinstance(result, DamageResult) else self.rounds
        results.append(result)
        for violation in result.violations:
            print(f"VIOLATION {self.about(result)}\n  {violation}\n  {self.again(result)}")
        if (len(self.damages) + len(self.rounds)) % PROGRESS == 0:
            kills = sum(len(r.kills) for r in self.rounds)
            print(
                f"{time.perf_counter() - self.started:6.0f} s  {len(self.damages)} damages, "
                f"{kills} kills in {len(self.rounds)} rounds, {self.violations()} violations"
            )
        sys.stdout.flush()

    def violations(self) -> int:
        return sum(len(r.violations) for r in [*self.damages, *self.rounds])

    @staticmethod
    def about(result) -> str:
        if isinstance(result, DamageResult):
            return f"{result.case} ({result.target}; then `{result.edit}`) {result.what}"
        what = ", ".join(result.what)
        return f"{result.case} ({result.workload}, {result.base}; `{result.edit}`) {what}"

    def again(self, result) -> str:
        """The command that repeats a case."""
        command = ["python3", sys.argv[0], "--binary", self.args.binary]
        command += ["--seed", str(self.args.seed), "--only", result.case]
        if self.args.among:
            command += ["--among", self.args.among]
        if self.args.keep:
            command += ["--keep", str(self.args.keep)]
        return shlex.join(command)

    def end(self) -> int:
        """Prints the tables; the exit code."""
        if self.rounds:
            self.print_kills()
        if self.damages:
            self.print_damages()
        violations = self.violations()
        cases = [r for r in [*self.damages, *self.rounds] if r.violations]
        kills = sum(len(r.kills) for r in self.rounds)
        print(
            f"\n{kills} kills, {len(self.damages)} damages, seed {self.args.seed}, "
            f"{time.perf_counter() - self.started:.0f} s: {violations} violations in "
            f"{len(cases)} cases"
        )
        for result in cases:
            print(f"  {self.about(result)}\n    {self.again(result)}")
        return 1 if violations else 0

    def print_kills(self) -> None:
        rows, steps = defaultdict(Counter), Counter()
        for result in self.rounds:
            row = rows[result.workload]
            row["rounds"] += 1
            row["reused"] += result.reused
            row["again"] += result.asked_again
            row["violations"] += len(result.violations)
            for kill in result.kills:
                row["kills"] += 1
                row["two"] += kill.two
                row["paying"] += kill.pays and result.workload == "paid"
                row[signal.Signals(kill.signal).name] += 1
                steps.update(f"{result.workload}.{step}" for step in kill.at_work or ["(none)"])
        names = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"]
        header = ["workload", "kills", "paying", *names, "two runs", "rounds", "took up rows"]
        print()
        table(
            [*header, "asked again", "violations"],
            [
                [name, *(row[n] for n in ("kills", "paying", *names, "two", "rounds"))]
                + [row["reused"], row["again"], row["violations"]]
                for name, row in sorted(rows.items())
            ],
        )
        print("\nsteps at work when killed:")
        print("  " + ", ".join(f"{name} {times}" for name, times in sorted(steps.items())))

    def print_damages(self) -> None:
        """Kind of file by kind of damage: noticed/cases, and how many were wrong."""
        cells = defaultdict(Counter)
        for result in self.damages:
            for row in (result.target.kind, "all"):
                for column in (result.target.damage.name, "all"):
                    cell = cells[row, column]
                    cell["cases"] += 1
                    cell["noticed"] += result.noticed
                    cell["refused"] += result.refused
                    cell["wrong"] += result.wrong
                    cell["stuck"] += result.stuck and not result.wrong
                    cell["violated"] += bool(result.violations)

        def show(kind: str, damage: str) -> str:
            cell = cells.get((kind, damage))
            if not cell:
                return ""
            wrong = f" {cell['wrong']}!" if cell["wrong"] else ""
            stuck = f" {cell['stuck']}?" if cell["stuck"] else ""
            return f"{cell['noticed']}/{cell['cases']}{wrong}{stuck}"

        columns = [damage.name for damage in DAMAGES] + ["all"]
        kinds = sorted({result.target.kind for result in self.damages}) + ["all"]
        print("\ndamages: noticed (by the run or by verify)/cases;", end=" ")
        print("`n!` gave another result, `n?` an error after the repair")
        table(["file", *columns], [[kind, *(show(kind, c) for c in columns)] for kind in kinds])
        total = cells["all", "all"]
        print(
            f"{total['cases']} damages: {total['noticed']} noticed, {total['refused']} refused at "
            f"first, {total['wrong']} with a wrong result, {total['stuck']} not repaired, "
            f"{total['violated']} with a violation"
        )
