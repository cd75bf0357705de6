"""The command line of `chaos.py`: prepares, runs the cases side by side, reports."""

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from harness import ROOT

from .damage import DamageCases, targets
from .kills import KillCases
from .program import Program
from .report import Report
from .servers import World
from .stores import states
from .truth import Facts
from .workloads import workloads, write_inputs

# Seconds: how long an answer of the model takes (half to one and a half), and bytes a second.
LATENCY, RATE = 0.008, 400_000


def arguments(doc: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    default = os.environ.get("GALERAS_BIN", str(target / "release" / "galeras"))
    parser.add_argument("--binary", default=default, help="the program")
    parser.add_argument("--kills", type=int, default=700, help="kills of runs that pay nothing")
    parser.add_argument("--paid-kills", type=int, default=300, help="kills of runs while they pay")
    parser.add_argument("--damages", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="cases side by side")
    parser.add_argument("--keep", type=Path, help="keep the stores and failed cases here")
    parser.add_argument("--only", metavar="CASE", help="repeat this case")
    parser.add_argument(
        "--among",
        metavar="REGEX",
        default="",
        help="only damages that are called so: WORKLOAD STORE FILE: DAMAGE, as in `table: bit`",
    )
    return parser.parse_args()


class Chaos:
    """Everything that the cases share."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.program = Program(args.binary)
        self.report = Report(args)
        inputs = folder / "inputs"
        port = folder / "port"
        known = port.exists()
        if not known:
            write_inputs(inputs)
        # The address is part of keys and tables: a kept folder stays usable with its port only.
        self.world = World(inputs, int(port.read_text()) if known else 0, LATENCY, RATE)
        port.write_text(str(self.world.server_port))
        self.workloads = workloads(inputs, self.world)
        self.states = states(self.program, self.workloads, self.world, folder / "stores")
        self.facts = Facts(self.program, folder / "undisturbed")
        shared = (self.program, self.world, self.facts, folder / "cases")
        self.damages, self.kills = DamageCases(*shared), KillCases(*shared)
        among = re.compile(args.among)
        self.targets = [target for target in targets(self.states) if among.search(str(target))]
        if not self.targets:
            raise SystemExit(f"no damage is called like {args.among!r}")
        random.Random(f"{args.seed} order").shuffle(self.targets)

    def case(self, name: str):
        """Runs the case of this name."""
        what, _, number = name.rpartition("-")
        rng = random.Random(f"{self.args.seed} {name}")
        if what == "damage":
            target = self.targets[int(number) % len(self.targets)]
            return self.damages.run(name, target, rng)
        workload = self.workloads[what.removeprefix("kill-")]
        return self.kills.run(name, workload, self.states, rng)

    def names(self):
        """The cases in turn; those of kills end when there were enough."""
        if self.args.only:
            yield self.args.only
            return
        for number in range(self.args.damages):
            yield f"damage-{number}"
        number = 0
        while self.report.kills("paid") < self.args.paid_kills:
            yield f"kill-paid-{number}"
            number += 1
        unpaid = [name for name in self.workloads if name != "paid"]
        while sum(map(self.report.kills, unpaid)) < self.args.kills:
            yield f"kill-{unpaid[number % len(unpaid)]}-{number}"
            number += 1

    def run(self) -> int:
        with ThreadPoolExecutor(self.args.jobs) as pool:
            try:
                self.run_cases(pool)
            except KeyboardInterrupt:
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, lambda *_: None)
                print("interrupted; so far:", flush=True)
        return self.report.end()

    def run_cases(self, pool: ThreadPoolExecutor) -> None:
        names, under_way, more = self.names(), set(), True
        while more or under_way:
            while more and len(under_way) < self.args.jobs:
                name = next(names, None)
                more = name is not None
                if more:
                    under_way.add(pool.submit(self.case, name))
            if under_way:
                ended = next(as_completed(under_way))
                under_way.remove(ended)
                self.report.add(ended.result())


def stop(*_) -> None:
    raise KeyboardInterrupt


def main(doc: str) -> int:
    args = arguments(doc)
    # A signal that this process ignores, as in the background, would be ignored by the runs.
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="galeras-chaos-") as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        chaos = Chaos(args, folder.resolve())
        print(
            f"prepared in {time.perf_counter() - started:.0f} s: {len(chaos.states)} stores, "
            f"{len(chaos.targets)} kinds of damage to them, seed {args.seed}",
            flush=True,
        )
        return chaos.run()


if __name__ == "__main__":
    sys.exit("start chaos.py")
