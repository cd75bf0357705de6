"""The near-duplicates by dpu_utils and by rensa."""

import argparse
import hashlib
import json
import os
import pickle
import sys
import time
from collections import Counter
from pathlib import Path

from dedup.measure import measured, peak
from dedup.words import MIN_TOKENS, MULTISET, SET, WORD, Forest, read

# Started anew as the process that is measured.
SCRIPT = Path(__file__).resolve().parents[1] / "dedup_vs_peers.py"
PINS = {
    "dpu_utils": "0.6.1",
    "rensa": "0.5.0",
    "pyarrow": "26.0.1",
    "numpy": "2.4.6",
    "regex": "2026.11.15",
}
PERMUTATIONS, SEED = 128, 42
FORMAT = 4


def by_dpu(file: Path) -> dict:
    """dpu_utils on the word tokens; `other` is all but tokenising."""
    from dpu_utils.codeutils.deduplication import DuplicateDetector

    ids, codes = read(file)
    started, tokenising = time.perf_counter(), 0.0
    detector = DuplicateDetector(SET, MULTISET, MIN_TOKENS)
    for key, code in zip(ids, codes, strict=True):
        at = time.perf_counter()
        tokens = WORD.findall(code)
        tokenising += time.perf_counter() - at
        detector.add_file(key, tokens)
    added = time.perf_counter()
    components = detector.compute_duplicates()
    ended = time.perf_counter()
    seconds = ended - started
    return {
        "components": components,
        "seconds": seconds,
        "other": seconds - tokenising,
        "ended": ended,
        "rss": peak(),
        "stages": {
            "tokenise": tokenising,
            "add": added - started - tokenising,
            "compute": seconds - (added - started),
        },
    }


def by_rensa(file: Path, bands: int) -> dict:
    """R-MinHash and LSH by rensa's bulk functions; the candidates are verified.

    One pass over the digest matrix flags the rows that share a band with any other; only these
    become sketch objects, which the query needs, and of rows with just the same words only one.
    Pairs of one component are not verified again.
    """
    from rensa import RMinHash, RMinHashLSH

    ids, codes = read(file)
    started, stages = time.perf_counter(), {}
    last = started

    def stage(name: str) -> None:
        nonlocal last
        now = time.perf_counter()
        stages[name], last = now - last, now

    rows, words = [], []
    for row, found in enumerate(map(WORD.findall, codes)):
        if len(found) >= MIN_TOKENS:
            rows.append(row)
            words.append(found)
    stage("tokenise")
    matrix = RMinHash.digest_matrix_from_token_sets(words, PERMUTATIONS, SEED)
    stage("sketch")
    lsh = RMinHashLSH(SET, PERMUTATIONS, bands)
    flags = lsh.query_duplicate_flags_matrix_one_shot(matrix)
    alike: dict = {}  # words -> the rows that have just these
    for row, found, flag in zip(rows, words, flags, strict=True):
        if flag:
            alike.setdefault(tuple(found), []).append(row)
    words, rows = list(alike), list(alike.values())
    stage("flags")
    sketches = RMinHash.from_token_sets(words, PERMUTATIONS, SEED)
    lsh.insert_many(sketches)
    stage("insert")
    candidates = lsh.query_all(sketches)
    stage("query")
    sets = [frozenset(found) for found in words]
    counters: list = [None] * len(words)
    forest, verified = Forest(len(words)), 0
    for one, others in enumerate(candidates):
        first, size = sets[one], len(sets[one])
        for other in others:
            if other >= one or forest.find(one) == forest.find(other):
                continue
            verified += 1
            common = first & sets[other]
            if len(common) / (size + len(sets[other]) - len(common)) < SET:
                continue
            mine = counters[one] = counters[one] or Counter(words[one])
            its = counters[other] = counters[other] or Counter(words[other])
            least = sum([min(mine[word], its[word]) for word in common])
            if least / (len(words[one]) + len(words[other]) - least) >= MULTISET:
                forest.join(one, other)
    components = [
        {ids[row] for at in group for row in rows[at]}
        for group in forest.groups()
        if len(group) > 1 or len(rows[group[0]]) > 1
    ]
    stage("verify")
    rss, ended = peak(), last
    near = [
        (ids[rows[one][0]], [ids[rows[other][0]] for other in others if other < one])
        for one, others in enumerate(candidates)
    ]
    return {
        "components": components,
        "seconds": ended - started,
        "other": ended - started - stages["tokenise"],
        "stages": stages,
        "near": near,
        "ended": ended,
        "rss": rss,
        "counts": {
            "sketched again": len(rows),
            "verified": verified,
            "candidate pairs": sum(len(others) for _, others in near),
        },
    }


def peer(args: argparse.Namespace, name: str, file: Path, work: Path) -> dict:
    """A peer's result: from the cache folder, or by a process of its own."""
    made_of = {
        "format": FORMAT,
        "peer": name,
        "rows": hashlib.sha256(file.read_bytes()).hexdigest(),
        "versions": PINS,
        "bands": args.bands if name == "rensa" else None,
    }
    key = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
    stored = args.peer_cache and args.peer_cache / f"{name}-{key}.pickle"
    limit = args.dpu_limit if name == "dpu" else 0
    if stored and stored.exists():
        result = pickle.loads(stored.read_bytes())
        if not result["stopped"] or result["wall"] >= limit:
            result["cached"] = True
            return result
    out = work / "peer.pickle"
    runs = []
    for _ in range(1 if name == "dpu" else args.repeat):
        load = os.getloadavg()[0]
        found, _ = measured(
            [
                sys.executable,
                str(SCRIPT),
                "--worker",
                name,
                "--methods",
                str(file),
                "--bands",
                str(args.bands),
                "--worker-out",
                str(out),
            ],
            work,
            limit,
            args.memory_limit,
        )
        found["load"] = (load, os.getloadavg()[0])
        found["when"] = time.strftime("%FT%TZ", time.gmtime())
        if not found["code"]:
            behind, data = pickle.loads(out.read_bytes())
            found |= pickle.loads(data)
            # What the worker did for this script behind its result does not count.
            found["wall"] -= behind
        elif not found["stopped"]:
            print(f"{name} ended with {found['code']}: {found['why'][-300:]}", flush=True)
        runs.append(found)
    result = sorted(runs, key=lambda run: run["wall"])[(len(runs) - 1) // 2]
    result["cached"] = False
    if stored and (not result["code"] or result["stopped"]):
        stored.parent.mkdir(parents=True, exist_ok=True)
        part = stored.with_name(stored.name + ".part")
        part.write_bytes(pickle.dumps(result))
        part.replace(stored)
    return result
