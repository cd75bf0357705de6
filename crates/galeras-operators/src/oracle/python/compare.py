"""Compares results that are trees of plain values, as `case.py` writes them. Put before other
scripts."""

# Relative and absolute difference of floats that count as equal.
RELATIVE, ABSOLUTE = 1e-9, 1e-12


def same(wanted, found):
    """True for equal values of equal types. Floats may differ a little, and NaN equals NaN."""
    if type(wanted) is not type(found):
        return False
    if type(wanted) is not list:
        return wanted == found
    if len(wanted) != len(found):
        return False
    # The list of arguments that a call has changed begins with one of them, not with a kind.
    kind = wanted[0] if wanted and wanted[0] == found[0] else None
    if kind == "f":
        return close(float.fromhex(wanted[1]), float.fromhex(found[1]))
    if kind == "d":
        wanted, found = pairs(wanted[1:]), pairs(found[1:])
    return all(map(same, wanted, found))


def pairs(items):
    """Keys and values in the order of the keys, since equal dictionaries may have different
    orders."""
    ordered = sorted(zip(items[::2], items[1::2]), key=lambda pair: repr(pair[0]))
    return [part for pair in ordered for part in pair]


def close(wanted, found):
    if wanted != wanted or found != found:
        return wanted != wanted and found != found
    if wanted in (INFINITE, -INFINITE) or found in (INFINITE, -INFINITE):
        return wanted == found
    return abs(wanted - found) <= max(RELATIVE * max(abs(wanted), abs(found)), ABSOLUTE)


INFINITE = float("inf")
