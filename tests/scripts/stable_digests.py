"""What must not matter does not.

What it shows: after one run of the quickstart, a second one finds every step in the store
and takes under 100 ms of wall time (median of 20, process start included). So does a run
after edits that change no result: comments, blank lines, the order of keys, a renamed step,
a description, another `--jobs`, another working directory, a moved workflow, an absolute
store path, a severity. On two empty stores `--jobs 1` and `--jobs 2` give equal digests
for every port, also with the steps written in another order.

How to run it: `python3 tests/scripts/stable_digests.py [--warm 20] [--limit-ms 100]
[--galeras PATH]`.

What it prints: the warm times (min, median, max), a line per edit with the steps that were
not hit, and the number of ports compared. Exit code 1 if anything does not hold.
"""

import re
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import QUICKSTART, Verdict, arguments, run, table, work_folder  # noqa: E402


def edit(text: str, pattern: str, replacement: str) -> str:
    """The text with one passage changed; the passage must exist."""
    changed, count = re.subn(pattern, replacement, text, flags=re.M | re.S)
    if not count:
        sys.exit(f"the quickstart has no passage {pattern!r} any more; adapt this script")
    return changed


def blocks_reversed(text: str) -> str:
    """The steps and the outputs in the opposite order of writing."""
    head, rest = text.split("\nsteps:\n", 1)
    steps, outputs = rest.split("\noutputs:\n", 1)
    blocks = re.split(r"(?m)^(?=  [a-z_0-9]+:$)", steps)
    first, blocks = blocks[0], [b.rstrip() + "\n" for b in blocks[1:]]
    lines = [line for line in outputs.splitlines() if line.strip()]
    return (
        f"{head}\nsteps:\n{first}"
        + "\n".join(reversed(blocks))
        + "\noutputs:\n"
        + "\n".join(reversed(lines))
        + "\n"
    )


def edits(text: str) -> dict:
    """Edits that change no result: what was done -> the workflow."""
    no_comments = re.sub(r"(?m)(^|\s)#.*$", "", text)
    return {
        "comments removed": no_comments,
        "comments added": re.sub(r"(?m)^(\s+op: .*)$", r"\1 # a remark", text),
        "blank lines and CRLF": text.replace("\n", "\r\n").replace("\r\n\r\n", "\r\n\r\n\r\n"),
        "keys of `cut` reordered": edit(
            text,
            r"with: \{ seed: (\S+ \S+ \S+), min: 0.4, max: 0.65 \}",
            r"with: { max: 0.65, seed: \1, min: 0.4 }",
        ),
        "keys of a rule reordered": edit(
            text, r"\{ name: has_body,\s+check: (\"[^\"]*\") \}", r"{ check: \1, name: has_body }"
        ),
        "steps and outputs reordered": blocks_reversed(text),
        "`op` after `with`": edit(
            text, r"    op: methods\n(    with: [^\n]*\n)", r"\1    op: methods\n"
        ),
        "step renamed": re.sub(r"\bsampled\b", "chosen", text),
        "first step renamed": re.sub(r"(?m)^(  |    from: )methods(:|$)", r"\1functions\2", text),
        "workflow renamed, described": edit(
            text, r"^name: quickstart\ndescription: [^\n]*", "name: other\ndescription: Other."
        ),
        "defaults written out": edit(
            text,
            r"with: \{ corpus: python-stdlib \}",
            'with: { corpus: python-stdlib, nested: false, include: ["**/*.py"] }',
        ),
        "a number written otherwise": edit(text, r"max: 0\.65", "max: 6.5e-1"),
        "assertion's severity": edit(text, r", severity: warn", ""),
        "a param's help and bounds": edit(text, r"min: 1, help: [^}]*", "min: 2, help: other "),
    }


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--warm", type=int, default=20)
    parser.add_argument("--limit-ms", type=float, default=100)
    args = parser.parse_args()
    work, verdict = work_folder(args), Verdict()
    text = QUICKSTART.read_text()
    cache = work / "cache"

    cold = run(args.galeras, QUICKSTART, cache)
    walls = []
    for _ in range(args.warm):
        warm = run(args.galeras, QUICKSTART, cache)
        walls.append(warm.wall * 1000)
        verdict.check(not warm.not_hit, f"warm run: not hit {warm.not_hit}")
        verdict.check(warm.digests == cold.digests, "warm run: other digests")
    median = statistics.median(walls)
    print(
        f"cold run {cold.wall:.2f} s; {args.warm} warm runs: median {median:.0f} ms, "
        f"min {min(walls):.0f}, max {max(walls):.0f} (limit {args.limit_ms:.0f})"
    )
    verdict.check(median < args.limit_ms, f"a warm run takes {median:.0f} ms")

    cases = [(name, (changed, [], work)) for name, changed in edits(text).items()]
    other = work / "elsewhere" / "deeper"
    other.mkdir(parents=True)
    cases += [
        ("--jobs 1", (text, ["--jobs", "1"], work)),
        ("--jobs 2", (text, ["--jobs", "2"], work)),
        ("--jobs 16", (text, ["--jobs", "16"], work)),
        ("another working directory", (text, [], other)),
        ("a param given as its default", (text, ["--set", "n=3000"], work)),
    ]
    rows = []
    for at, (name, (changed, more, cwd)) in enumerate(cases):
        # Each in a folder of its own: the workflow's place does not count either.
        folder = work / f"edit-{at}"
        folder.mkdir()
        workflow = folder / "workflow.yaml"
        workflow.write_bytes(changed.encode())
        result = run(args.galeras, workflow, cache, *more, cwd=cwd)
        missed = [(s, result.steps[s]["reason"], result.steps[s]["detail"]) for s in result.not_hit]
        verdict.check(not missed, f"{name}: not hit {missed}")
        verdict.check(
            sorted(result.digests.values()) == sorted(cold.digests.values()),
            f"{name}: other digests",
        )
        rows.append(
            [
                name,
                f"{len(result.steps) - len(missed)} of {len(result.steps)} hit",
                f"{result.wall * 1000:.0f}",
            ]
        )
    print()
    table(["edit", "steps", "ms"], rows)

    one = run(args.galeras, QUICKSTART, work / "jobs-1", "--jobs", "1")
    two = run(args.galeras, QUICKSTART, work / "jobs-2", "--jobs", "2")
    turned = work / "turned.yaml"
    turned.write_text(blocks_reversed(text))
    three = run(args.galeras, turned, work / "jobs-3", "--jobs", "3")
    print(
        f"\nempty stores: --jobs 1 {one.wall:.2f} s, --jobs 2 {two.wall:.2f} s, "
        f"--jobs 3 in another order {three.wall:.2f} s"
    )
    equal = 0
    for port, value in one.digests.items():
        same = value == two.digests.get(port) == three.digests.get(port) == cold.digests.get(port)
        equal += same
        verdict.check(same, f"{port}: {value}, {two.digests.get(port)}, {three.digests.get(port)}")
    verdict.check(one.digests.keys() == two.digests.keys(), "the runs have other ports")
    print(f"{equal} of {len(one.digests)} ports have equal digests")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
