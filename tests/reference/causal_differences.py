"""How far two sets of numbers are apart, for `causal_peers.py --check`.

Not a script of its own.
"""

import math
from collections import defaultdict

from harness import Verdict, table

CLOSED, OPTIMISED = 1e-9, 1e-6

# Parts of a path in which an optimiser takes part.
OPTIMISERS = {"propensity", "teffects_stack_logit"}

# Files whose standard errors of least squares have lost digits.
ROUGH = ["causal/nhefs.json", "causal/nsw_dw.json"]


def relative(one: float, other: float, scale: float) -> float:
    """The difference over the larger of the two, or over `scale` if this is larger."""
    if one == other:
        return 0.0
    return abs(one - other) / max(abs(one), abs(other), scale)


def compared(here, there, path=()) -> list:
    """(path, relative difference) of every number that both have."""
    if isinstance(here, dict) and isinstance(there, dict):
        return [f for k in here if k in there for f in compared(here[k], there[k], (*path, k))]
    if isinstance(here, list) and isinstance(there, list):
        if len(here) != len(there):
            return [(path, math.inf)]
        numbers = [abs(v) for v in there if isinstance(v, (int, float))]
        # Coefficients are compared with the largest of them as the scale of rounding.
        scale = 1e-6 * max(numbers, default=0) if path[-1] == "coef" else 0
        return [
            f
            for one, other in zip(here, there, strict=False)
            for f in (
                compared(one, other, path)
                if isinstance(one, (dict, list))
                else numbers_compared(one, other, path, scale)
            )
        ]
    return numbers_compared(here, there, path, 0)


def numbers_compared(one, other, path, scale) -> list:
    kinds = (int, float)
    if isinstance(one, bool) or not isinstance(one, kinds) or not isinstance(other, kinds):
        return []
    # What is about zero after weighting is compared on the scale of standard deviations.
    if "smd_after_ate_weights" in path or path[-1] == "smd":
        scale = 1.0
    return [(path, relative(one, other, scale))]


def field(path: tuple) -> str:
    """Without the names of covariates."""
    parts = list(path)
    for parent in ("balance", "smd_after_ate_weights"):
        if parent in parts:
            parts[parts.index(parent) + 1] = "*"
    return "/".join(parts)


def allowed(title: str, name: str) -> float:
    """The largest relative difference that a field may have."""
    parts = name.split("/")
    rough = title in ROUGH and parts[0] in ("ols", "lin2013") and parts[-1].startswith("se_")
    return OPTIMISED if rough or OPTIMISERS & set(parts) else CLOSED


def report(title: str, found: list, verdict: Verdict, every: bool) -> None:
    """A line per field, or only for those that differ too much."""
    worst, count = defaultdict(float), defaultdict(int)
    for path, difference in found:
        worst[field(path)] = max(worst[field(path)], difference)
        count[field(path)] += 1
    largest = max(worst.values(), default=0)
    print(f"\n{title}: {len(found)} numbers, largest difference {largest:.1e}")
    lines = [
        [name, count[name], f"{difference:.1e}", f"{allowed(title, name):.0e}"]
        for name, difference in worst.items()
        if every or difference > allowed(title, name)
    ]
    if lines:
        table(["field", "numbers", "largest relative", "allowed"], lines)
    for name, difference in worst.items():
        verdict.check(
            difference <= allowed(title, name), f"{title}: {name} differs by {difference:.1e}"
        )
