#!/usr/bin/env python3
"""The scores of `galeras` against those of Python packages, per core, in one go.

What it shows: seconds of processor time of one thread for codebleu, BLEU, chrF, ROUGE-L and
Levenshtein over the same pairs of real methods, ours (`cargo bench -p galeras-metrics --bench
scores`) and those of codebleu 0.7.0, sacrebleu 2.6.0, rouge_score 0.1.2 and rapidfuzz 3.14.6; and
that of the bare tree-sitter parse of both texts. Rounds of ours and theirs take turns.

How to run it: `python3 benches/scores_vs_peers.py --methods FILE.parquet [--pairs 5000]
[--rounds 3] [--slow-pairs 1000] [--program PATH of the built bench] [--work FOLDER]`. The file
has the columns `code` and `code_before` of real methods, as `mine` writes them; the pairs are
those with the smallest MD5 of the texts. codebleu and rouge_score take long: all pairs are
scored by them once, and `--slow-pairs` of them in the other rounds.

What it prints: a line per score with seconds, the ratio to the peer and to the parse. Exit code
1 if a demanded ratio is missed: codebleu at most 1.3 parses and at least 30 times its peer, BLEU
at least 30 times sacrebleu, Levenshtein at least equal to rapidfuzz.
"""

import hashlib
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "scripts"))
from harness import ROOT, Verdict, arguments, in_venv, pinned, work_folder  # noqa: E402

PINS = {
    "codebleu": "0.7.0",
    "tree-sitter": "0.22.3",
    "tree-sitter-python": "0.21.0",
    "sacrebleu": "2.6.0",
    "rouge_score": "0.1.2",
    "rapidfuzz": "3.14.6",
    "pyarrow": "26.0.1",
}


def real_pairs(path: Path, count: int) -> list:
    import pyarrow.parquet as parquet

    table = parquet.read_table(path, columns=["code", "code_before"])
    rows = zip(table["code"].to_pylist(), table["code_before"].to_pylist(), strict=True)
    pairs = {(new, old) for new, old in rows if new and old and new.strip() != old.strip()}
    order = sorted(pairs, key=lambda p: hashlib.md5("\0".join(p).encode()).digest())
    return order[:count]


def seconds(score, pairs) -> float:
    start = time.thread_time()
    for reference, hypothesis in pairs:
        score(reference, hypothesis)
    return time.thread_time() - start


def peers() -> dict:
    logging.disable(logging.CRITICAL)
    import rapidfuzz.distance
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    from codebleu import calc_codebleu

    rouge = RougeScorer(["rougeL"])
    return {
        "codebleu": lambda r, h: calc_codebleu([r], [h], lang="python"),
        "bleu": lambda r, h: sacrebleu.sentence_bleu(h, [r]),
        "chrf": lambda r, h: sacrebleu.sentence_chrf(h, [r]),
        "rouge_l": lambda r, h: rouge.score(r, h),
        "levenshtein": rapidfuzz.distance.Levenshtein.distance,
    }


def bench_program(given: str | None) -> str:
    if given:
        return given
    built = subprocess.run(
        ["cargo", "bench", "-p", "galeras-metrics", "--bench", "scores", "--no-run"]
        + ["--message-format", "json"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    messages = (json.loads(line) for line in built.splitlines() if line.startswith("{"))
    found = [
        m["executable"]
        for m in messages
        if m.get("target", {}).get("name") == "scores" and m.get("executable")
    ]
    return found[-1]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--methods", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow-pairs", type=int, default=1000)
    parser.add_argument("--program", help="the built bench `scores`")
    args = parser.parse_args()
    in_venv(*pinned(PINS))
    work = work_folder(args)
    pairs = real_pairs(args.methods, args.pairs)
    file = work / "pairs.jsonl"
    with file.open("w") as out:
        for reference, hypothesis in pairs:
            out.write(json.dumps({"reference": reference, "hypothesis": hypothesis}) + "\n")
    size = sum(len(r.encode()) + len(h.encode()) for r, h in pairs)
    print(
        f"{len(pairs)} pairs, {size / 1e6:.1f} MB, {os.cpu_count()} cores, one thread", flush=True
    )
    program = bench_program(args.program)

    ours: dict = {}
    theirs: dict = {}
    for number in range(args.rounds):
        line = subprocess.run(
            [program, str(file), "1"], check=True, stdout=subprocess.PIPE, text=True
        ).stdout.splitlines()[-1]
        for name, value in json.loads(line).items():
            ours.setdefault(name, []).append(value)
        for name, score in peers().items():
            some = pairs
            if name in ("codebleu", "rouge_l") and number > 0:
                some = pairs[: args.slow_pairs]
            per_pair = seconds(score, some) / len(some)
            theirs.setdefault(name, []).append(per_pair * len(pairs))
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)

    # The fewest seconds are those with the least disturbance; the medians are printed, too.
    parse = min(ours["parse"])
    print(
        f"{'score':20} {'ours s':>8} {'median':>8} {'peer s':>8} {'median':>8} {'peer/ours':>10}"
        f" {'ours/parse':>10}"
    )
    ratios = {}
    for name, values in ours.items():
        peer = theirs.get("codebleu" if name == "codebleu_strict" else name)
        best, middle = min(values), statistics.median(values)
        ratios[name] = (min(peer) / best if peer else None, best / parse)
        shown = (
            f"{min(peer):8.2f} {statistics.median(peer):8.2f} {min(peer) / best:9.1f}x"
            if peer
            else f"{'':8} {'':8} {'':>10}"
        )
        print(f"{name:20} {best:8.3f} {middle:8.3f} {shown} {best / parse:9.2f}x")
    verdict = Verdict()
    verdict.check(ratios["codebleu"][1] <= 1.3, "codebleu takes at most 1.3 parses")
    verdict.check(ratios["codebleu"][0] >= 30, "codebleu is at least 30 times its peer")
    verdict.check(ratios["bleu"][0] >= 30, "BLEU is at least 30 times sacrebleu")
    verdict.check(ratios["levenshtein"][0] >= 1, "Levenshtein is at least rapidfuzz")
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
