"""Compares the ends of calls with those of the original method. Put after `compare.py`."""

import ast

FOUND = {}


def agrees(number):
    arguments, wanted, _ = CASES[number]
    text = galeras_outcome(arguments)
    try:
        FOUND[number] = ast.literal_eval(text)
        return same(ast.literal_eval(wanted), FOUND[number])
    except Exception:
        return False


def difference(number):
    _, wanted, call = CASES[number]
    found, wanted = short(FOUND.get(number)), short(ast.literal_eval(wanted))
    if found == wanted:
        return f"{call} {found}, but its arguments change in another way"
    return f"{call} {found}, and the original {wanted}"


def short(end):
    if type(end) is not list or len(end) < 2:
        return "has no result"
    text = " ".join(map(str, end[:2]))
    return text if len(text) <= 200 else text[:200] + "…"
