"""On the published experiment the program gives the numbers of an independent analysis.

What it shows: `workflows/table3.yaml` on the published data (2,923 methods under control, T1 and
T2) gives the numbers of `tests/reference/table3.json`, which Python computed: correlations, paired
differences, differences in means, regressions, weights, effect modification, balance, overlap,
sensitivity, adjusted p-values, what the paper printed. What one step cannot have at once (other
standard errors, estimands and adjustments, eight covariates, no pairs, the description of the
arms) is in a second workflow, which the script writes. Every number of table3.json must be in
MAPPED, or in UNMAPPED with the reason why no output has it. Where all propensities are equal,
matching must be refused, the other estimators that use them must give the difference in means,
and no refuter may give a number. The two tables of the workflow must flag what the paper printed
wrong, and nothing else.

How to run it: `python3 tests/scripts/causal_published.py --data FILE [--reference FILE]
[--workflow FILE] [--every] [--work FOLDER] [--galeras PATH]`. FILE is the JSON of the paper's
repository, or a Parquet of it; it is not part of this repository. `--every` prints a line per
number.

What it prints: the count and the largest difference per block of numbers (relative, absolute
where 0 is expected); what has no counterpart and why; the checks of refusals and flags; the
violations. Exit code 1 if a number differs by more than 1e-9 (outputs have twelve significant
digits), by more than 1e-6 where it is the result of an iteration, or is not there.
"""

import csv
import json
import math
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import ROOT, Verdict, arguments, run, table, work_folder  # noqa: E402
from table3_fields import (  # noqa: E402
    ADJUSTMENTS,
    CLOSED,
    CONFOUNDERS,
    CONTRASTS,
    COVARIATES,
    ESTIMANDS,
    KINDS,
    MAPPED,
    MEANS,
    OUTCOME,
    UNMAPPED,
    WORDS,
)

USE_PROPENSITY = ["matching", "stratification", "weighting", "aipw"]


def second_workflow(data: Path) -> dict:
    """What table3.json has and one step of the workflow cannot have."""

    def regress(estimators: list, covariates: list, unit: bool = True, **more) -> dict:
        return {
            "op": "regress",
            "from": "published",
            "with": {
                "treatment": "t_treatment",
                "control": "control",
                "contrasts": "all",
                "outcomes": [OUTCOME],
                **({"unit": "snippet"} if unit else {}),
                "confounders": covariates,
                "estimators": estimators,
                "refuters": [],
                "seed": 42,
                **more,
            },
        }

    # The scores of a method under all prompts as one row.
    wide = ", ".join(
        f"max(CASE WHEN t_treatment = '{arm}' THEN {OUTCOME} END) AS \"{arm}\""
        for arm in ("control", "T1", "T2")
    )
    steps = {
        "published": {
            "op": "read",
            "with": {
                "path": str(data),
                "key": ["t_treatment", "snippet"],
                "position": {"column": "snippet", "within": ["t_treatment"]},
            },
        },
        "arms": {
            "op": "describe",
            "from": "published",
            "with": {"columns": [OUTCOME], "by": ["t_treatment"]},
        },
        "wide": {
            "op": "sql",
            "from": "published",
            "with": {
                "query": f"SELECT snippet, {wide} FROM input GROUP BY snippet",
                "key": ["snippet"],
            },
        },
        "unpaired": regress(["difference", "aipw"], CONFOUNDERS, unit=False),
    }
    for name, (treatment, control) in CONTRASTS.items():
        steps[f"arms_{name}"] = {
            "op": "correlate",
            "from": "wide",
            "with": {"outcomes": [control], "variables": [treatment]},
        }
    for kind in KINDS:
        steps[f"ols_{kind}"] = regress(["ols"], CONFOUNDERS, standard_errors=kind)
        steps[f"lin_{kind}"] = regress(["lin"], COVARIATES, standard_errors=kind)
    for method in ADJUSTMENTS:
        steps[f"adjust_{method}"] = regress(["paired"], [], adjust=method)
    for estimand in ESTIMANDS:
        steps[f"estimand_{estimand}"] = regress(
            ["weighting", *(["stratification"] if estimand != "ato" else [])],
            CONFOUNDERS,
            estimand=estimand,
        )
    return {
        "galeras": 1,
        "name": "table3-second",
        "steps": steps,
        "outputs": {
            name: {"from": name, "path": f"second/{name}.csv"}
            for name in steps
            if name not in ("published", "wide")
        },
    }


def leaves(value, path="") -> dict:
    """Path -> every value that is no mapping and no list."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    else:
        return {path: value}
    return {
        at: leaf
        for key, inner in parts
        for at, leaf in leaves(inner, f"{path}/{key}" if path else str(key)).items()
    }


def read_reference(file: Path) -> dict:
    """table3.json by paths; a group `["(13.0, 20.0]", n, estimate, standard error]` by names."""
    reference = json.loads(file.read_text())
    for contrast in reference["ate_on_y_levenshtein"].values():
        for modifier in contrast["cate"].values():
            groups = {}
            for at, (label, n, estimate, error) in enumerate(modifier["quintile_cate"]):
                low, high = map(float, label.strip("(]").split(","))
                # pandas puts the first bound 0.001 lower, to have the smallest value in it.
                groups[str(at + 1)] = {
                    "low": low if at else round(low + 0.001, 3),
                    "high": high,
                    "n": n,
                    "estimate": estimate,
                    "standard_error": error,
                }
            modifier["quintile_cate"] = groups
    return leaves(reference)


def pattern(path: str) -> re.Pattern:
    """`{name}` stands for a part, `{name*}` for several, `{name=a|b}` and `{=a|b}` for these."""
    found = ""
    for piece in re.split(r"(\{[^}]*\})", path):
        if piece.startswith("{"):
            name, given, texts = piece[1:-1].partition("=")
            text = "|".join(map(re.escape, texts.split("|"))) if given else "[^/|]+"
            text = ".+" if name.endswith("*") else text
            found += f"(?P<{name.rstrip('*')}>{text})" if name else f"(?:{text})"
        else:
            found += re.escape(piece)
    return re.compile(found)


def read_outputs(*folders: Path) -> dict:
    """Output -> its rows."""
    outputs = {}
    for file in sorted(path for folder in folders for path in folder.glob("*/*.csv")):
        with file.open(newline="", encoding="utf-8") as lines:
            outputs[file.stem] = list(csv.DictReader(lines))
    return outputs


def asked(row: dict, matched: dict) -> dict:
    """The columns and values of the row that a path of table3.json stands for."""
    wanted = {}
    for column, value in row.items():
        value = value.format(**matched)
        if column == "contrast":
            wanted["treatment"], wanted["control"] = CONTRASTS[value]
        else:
            wanted[column] = value
    return wanted


def find(outputs: dict, rule: tuple, matched: dict) -> float | str:
    """The number that a rule asks for, or why there is none."""
    _, _, name, row, what, _ = rule
    name, wanted = name.format(**matched), asked(row, matched)
    place = f"{name} {wanted}"
    rows = [
        row
        for row in outputs.get(name, [])
        if all(row.get(column) == value for column, value in wanted.items())
    ]
    if len(rows) != 1:
        return f"{len(rows)} rows, not 1, are {place}"
    if rows[0].get("status", "ok") != "ok":
        # The printed table keeps a printed number next to a refusal; it has no status.
        return f"{rows[0]['status']} ({rows[0]['reason']}): {place}"
    column = what if callable(what) else what.format(**matched)
    try:
        return column(rows[0]) if callable(column) else float(rows[0][column])
    except (KeyError, ValueError) as error:
        return f"no number ({error!r}) in {place}"


def difference(given: float, expected: float) -> float:
    """The relative difference; the absolute one if zero is expected."""
    return abs(given - expected) / (abs(expected) or 1.0)


def compare(reference: dict, outputs: dict, verdict: Verdict, every: bool) -> None:
    rules = [(pattern(rule[1]), rule) for rule in MAPPED]
    without = [(pattern(path), why) for path, why in UNMAPPED.items()]
    used: set = set()
    blocks = defaultdict(lambda: {"compared": 0, "not": 0, "worst": -1.0, "at": "", "zeros": None})
    reasons: Counter = Counter()
    numbers, lines = 0, []
    for path, expected in reference.items():
        fitting = [(rule, m) for regex, rule in rules if (m := regex.fullmatch(path))]
        why = next((text for regex, text in without if regex.fullmatch(path)), None)
        verdict.check(
            bool(fitting) != bool(why),
            f"{path} is in {'both' if why else 'neither'} of MAPPED and UNMAPPED",
        )
        if why:
            reasons[why] += 1
        numbers += bool(fitting)
        for rule, match in fitting:
            used.add(rule[1])
            block, allowed = blocks[rule[0]], rule[-1]
            matched = {key: WORDS.get(text, text) for key, text in match.groupdict().items()}
            given = find(outputs, rule, matched)
            if isinstance(given, str):
                block["not"] += 1
                verdict.check(False, f"{path}: {given}")
                continue
            off = difference(given, expected)
            block["compared"] += 1
            if not expected:
                block["zeros"] = max(block["zeros"] or 0.0, off)
            elif off > block["worst"]:
                block["worst"], block["at"] = off, path
            verdict.check(off <= allowed, f"{path}: {given!r}, not {expected!r} ({off:.1e})")
            lines.append([path, f"{expected:.12g}", f"{given:.12g}", f"{off:.1e}"])
    if every:
        table(["number", "expected", "given", "difference"], lines)
        print()
    table(
        ["block", "compared", "missing", "relative", "where 0", "largest relative at"],
        [
            [
                name,
                b["compared"],
                b["not"],
                f"{b['worst']:.1e}" if b["at"] else "-",
                f"{b['zeros']:.1e}" if b["zeros"] is not None else "-",
                b["at"].replace("ate_on_y_levenshtein/", ""),
            ]
            for name, b in blocks.items()
        ],
    )
    print(
        f"\n{len(reference)} values of table3.json: {numbers} compared in "
        f"{sum(b['compared'] for b in blocks.values())} places, {reasons.total()} without a "
        "counterpart:"
    )
    for why, count in reasons.items():
        print(f"  {count}: {why}")
    unused = {rule[1] for rule in MAPPED} - used
    verdict.check(not unused, f"rules that no value of table3.json needs: {sorted(unused)}")


def refusals(reference: dict, outputs: dict, verdict: Verdict) -> None:
    """Where all propensities are equal: no matching, the difference in means, no refuter."""
    counts: Counter = Counter()
    for row in outputs.get("overlap", []):
        label = f"overlap of {row['treatment']} and {row['control']}"
        scores = [row[f"{end}_{arm}"] for end in ("min", "max") for arm in ("treatment", "control")]
        verdict.check(
            row["distinct_scores"] == "1" and {float(s) for s in scores} == {0.5},
            f"{label}: {row['distinct_scores']} scores, not one of 0.5",
        )
        counts["contrasts with one propensity of 0.5"] += 1
    names = {arms: name for name, arms in CONTRASTS.items()}
    for row in outputs.get("estimates", []):
        name = row["estimator"]
        if name not in USE_PROPENSITY:
            continue
        contrast = names[row["treatment"], row["control"]]
        if name == "matching":
            empty = not any(row[c] for c in ("estimate", "standard_error", "ci_low", "p_value"))
            verdict.check(
                row["status"] == "refused" and row["reason"] and empty,
                f"matching of {contrast} is {row['status']} {row['estimate']}",
            )
            counts["matchings refused"] += 1
        else:
            expected = reference[MEANS.format(contrast=contrast) + "ate"]
            fine = row["status"] == "ok" and difference(float(row["estimate"]), expected) <= CLOSED
            verdict.check(
                fine,
                f"{name} of {contrast} is {row['status']} {row['estimate']}, "
                f"not the difference in means {expected!r}",
            )
            counts["other estimators with the difference in means"] += 1
    for row in outputs.get("refutations", []):
        if row["estimator"] in USE_PROPENSITY:
            empty = not any(row[c] for c in ("new_effect", "std", "p_value", "as_large"))
            verdict.check(
                row["status"] == "not_applicable" and row["reason"] and empty,
                f"{row['refuter']} of {row['estimator']} is {row['status']}",
            )
            counts["refuters of theirs not applicable"] += 1
    wanted = {
        "contrasts with one propensity of 0.5": 3,
        "matchings refused": 3,
        "other estimators with the difference in means": 9,
        "refuters of theirs not applicable": 48,
    }
    print("\n" + "; ".join(f"{counts[what]} {what}" for what in wanted))
    verdict.check(dict(counts) == wanted, f"counts should be {wanted}")


def flags(reference: dict, outputs: dict, verdict: Verdict) -> None:
    """The tables flag what was printed wrong: two digits, cut off, of another number."""
    found, wanted = set(), set()
    for row in outputs.get("table_correlations", []):
        if row["verdict"] != "equal":
            found.add((row["variable"], row["treatment"], row["verdict"]))
    for path, value in reference.items():
        if match := re.fullmatch(r"correlations_with_y_levenshtein/(\w+)\|(\w+)/paper", path):
            pearson = reference[path.replace("/paper", "/pearson")]
            if abs(math.trunc(100 * pearson) / 100 - value) >= 0.005:
                wanted.add((*match.groups(), "FLAG: outside of the interval"))
        elif match := re.fullmatch(r"paper_table3/(\w+)/(\w+)", path):
            estimate = reference[MEANS.format(contrast=match[2]) + "ate"]
            if abs(math.trunc(100 * estimate) / 100 - value) >= 0.005:
                wanted.add((match[1], match[2], "FLAG: refused"))
    for row in outputs.get("table_effects", []):
        if row["verdict"] not in ("", "equal"):
            found.add((row["estimator"], row["treatment"], row["verdict"]))
        verdict.check(
            bool(row["printed"]) == bool(row["verdict"]),
            f"table_effects: {row['estimator']} of {row['treatment']} has no verdict",
        )
    for name, arm, text in sorted(found):
        print(f"flagged: {name} of {arm} ({text.removeprefix('FLAG: ')})")
    verdict.check(found == wanted, f"flagged are {sorted(found)}, should be {sorted(wanted)}")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the published data")
    parser.add_argument(
        "--reference", type=Path, default=ROOT / "tests" / "reference" / "table3.json"
    )
    parser.add_argument("--workflow", type=Path, default=ROOT / "workflows" / "table3.yaml")
    parser.add_argument("--every", action="store_true", help="print a line per number")
    args = parser.parse_args()
    verdict, work, data = Verdict(), work_folder(args), args.data.resolve()
    second = work / "second.yaml"
    second.write_text(json.dumps(second_workflow(data), indent=1))  # JSON is YAML
    first = run(args.galeras, args.workflow.resolve(), work / "first", "--set", f"data={data}")
    more = run(args.galeras, second, work / "second")
    print(f"galeras run: {first.wall:.2f} s, the second workflow {more.wall:.2f} s\n")
    reference = read_reference(args.reference)
    outputs = read_outputs(work / "first-out", work / "second-out")
    compare(reference, outputs, verdict, args.every)
    refusals(reference, outputs, verdict)
    flags(reference, outputs, verdict)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
