"""Regenerates taxonomy.json: snippets and their counts by category, by CPython's own tokenizer.

    python3.11 tests/reference/taxonomy.py

Independent of the Rust code: tokens come from `tokenize`, `match` and `case` statements from
`ast`. Python 3.11 is required: since 3.12 f-strings are split into tokens.
`counts` may be imported to compare other texts.
"""

import ast
import io
import json
import pathlib
import sys
import textwrap
import token
import tokenize

ORDER = [
    "blocks",
    "exceptions",
    "oop",
    "tests",
    "declaration",
    "conditional",
    "loops",
    "operators",
    "casting",
    "extra_tokens",
]

OURS = {
    "blocks": "{ } [ ] ( ) : return pass yield with",
    "exceptions": "try except finally raise",
    "oop": "class",
    "tests": "assert",
    "declaration": "import from await async def lambda global nonlocal del as",
    "conditional": "if else elif",
    "loops": "for while break continue",
    "operators": "= + - * / % == != >= <= ~ << >> & ^ | < > ** // := += -= *= /= //= %= @= &= |="
    " ^= >>= <<= **= and or not in is",
    "casting": "int float str bool bytes bytearray complex list tuple dict set frozenset",
    "extra_tokens": "@ ... None True False",
}

# As in WM-SEMERU/galeras-benchmark, commit fe38790,
# notebooks/exploratory_analysis_bpe_distribution.ipynb, `token_taxonomy`; without the line feed.
PUBLISHED = {
    "blocks": "{ } [ ] ( ) : return pass",
    "exceptions": "except try finally raise",
    "oop": "class instanceof interface abstract extends this from import",
    "tests": "assert",
    "declaration": "import from synchronized await volatile final enum async break",
    "conditional": "else if switch case default",
    "loops": "break do for while continue",
    "operators": "= + - * / % ++ -- ! == != >= <= && || ? : ~ << >> >>> & ^ |",
    "casting": "byte char float boolean double int str long short strictfp",
    "extra_tokens": "@ ... null none true false",
}


def table(lists):
    result = {}
    for category, words in lists.items():
        for word in words.split():
            result.setdefault(word, []).append(ORDER.index(category))
    return result


OURS_TABLE, PUBLISHED_TABLE = table(OURS), table(PUBLISHED)
assert all(len(categories) == 1 for categories in OURS_TABLE.values())
TYPES = set(OURS["casting"].split())


def soft_keywords(text):
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        # `return`, `await` and the like are for the compiler to refuse, not the parser.
        return None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Match)]
    return sum(1 + len(node.cases) for node in found)


def counts(text):
    """The two lists of counts; None if the text is no valid Python."""
    soft = soft_keywords(text)
    if soft is None:
        return None
    ours, published = [0] * 10, [0] * 10
    ours[ORDER.index("conditional")] += soft
    last = None
    try:
        for kind, string, *_ in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if kind in (token.NAME, token.OP, token.ERRORTOKEN):
                if not (last == "." and string in TYPES):
                    for category in OURS_TABLE.get(string, ()):
                        ours[category] += 1
                for category in PUBLISHED_TABLE.get(string, ()):
                    published[category] += 1
            if kind not in (token.NEWLINE, tokenize.NL, token.COMMENT, token.INDENT, token.DEDENT):
                last = string
    except (tokenize.TokenError, IndentationError):
        return None
    return ours, published


SNIPPETS = (
    r'''
pass
---
def f(x):
    return x
---
def f(a, /, b: int = 1, *args, c: str = "x", **kwargs) -> dict[str, list[int]]:
    pass
---
async def f():
    async with a as b, c as d:
        await b
    async for x in y:
        yield x
---
try:
    f()
except (A, B) as e:
    raise C from e
except D:
    raise
else:
    pass
finally:
    g()
---
try:
    pass
except* OSError as group:
    pass
---
class A(B, metaclass=C):
    x: int = 0
    def f(self): return self.x
---
class A: ...
---
assert x == 1, "message"
---
assert isinstance(x, int) and not isinstance(x, bool)
---
import a
import a.b as c
from . import d
from ..e import (f as g, h)
from ...i import *
from .import j
---
if a: b
elif c: d
elif e: f
else: g
---
x = a if b else c if d else e
---
for i in range(10):
    if i: continue
    break
else:
    pass
---
while True:
    break
else: x
---
[x for x in y if x for z in x if not z]
---
{x: y for x, y in z.items()}
---
{*a, *b}; {**c, **d}
---
x = y = z
---
a + b - c * d / e % f ** g // h @ i
---
a == b != c <= d >= e < f > g
---
a & b | c ^ ~d << e >> f
---
a += 1; b -= 1; c *= 1; d /= 1; e //= 1; f %= 1; g @= 1; h &= 1; i |= 1; j ^= 1; k >>= 1; l <<= 1; m **= 1
---
if (n := len(a)) > 10: pass
---
a and b or not c
---
a is None
a is not None
a in b
a not in b
---
-x + +y - ~z
---
x--y; x++y; - -x
---
int(x); float(x); str(x); bool(x); bytes(x); bytearray(x); complex(x)
---
list(x); tuple(x); dict(x); set(x); frozenset(x)
---
x.int; x.str.lower(); x . list
---
x.real.int().str
---
np.float64(x).astype(int)
---
x: list[int] | None = None
---
def f(x: "int") -> "str": ...
---
f(int=1, str=2)
---
@decorator
@a.b(c)
def f(): pass
---
a @ b
---
x[..., 1:2, ::3]
---
x = None, True, False, Ellipsis, NotImplemented, none, true, false, null
---
lambda: 0
---
lambda x, *y, z=1, **w: (x, y)
---
global a, b
---
def f():
    nonlocal a
---
del a, b[c]
---
with a as b: pass
---
with (a as b, c as d,):
    pass
---
def f():
    x = yield
    y = yield x
    yield from z
---
match x:
    case 1: pass
    case "a" | 'b': pass
    case [a, *b]: pass
    case {"k": v, **rest}: pass
    case A(x=1) as y if y: pass
    case _: pass
---
match x, y:
    case (1, 2):
        pass
---
match (x):
    case -1: pass
    case (a): pass
    case None: pass
---
match [a, b]:
    case [*_]:
        match a:
            case ''if 0: pass
            case _: pass
---
match not x:
    case True: pass
---
match *a, b:
    case c, *d: pass
---
match -x:
    case 1+2j: pass
---
match {a: b}:
    case {}: pass
---
match (lambda: 0)():
    case x if (lambda: 1): pass
---
match \
  x:
    case [
        1,
        2
    ]:
        pass
---
match = 1
case = 2
match, case = case, match
---
match(x)
case(x, y=1)
match[x] = y
match.x = y
match: int = 1
---
match(x)[1:2]
match - x
match * x
match(x); y: int = 3
---
match += 1
match @ x
match if match else case
match in case
match is case
match and case
match or case
---
f(match=1, case=2)
x = {match: case}
def match(case): pass
x.match(y); x.case
---
import match
from case import match as case
---
print(match (x), case)
---
re.match(r"a:b", x)
if match := re.match(a, b): pass
---
_ = match, case
type = 1
type(x)
---
"if for while"
---
'it''s'; "a" "b"; "a\"b"; 'a\'b'; "\\"
---
"""if
for "x" ""y
while"""
---
def f():
    """Returns int if x else str: (a, b)."""
    return 1
---
r"\\"; "if"
---
b"if"; u"if"; R"if"; rb"if"; bR'if'; Br"if"
---
f"{x if y else z}"; f'{a["b"]}'; rf"{x!r:>{w}}"; fR"{{if}}"
---
f"""{
x for x in y
}"""
---
x = r'''
    + "'''"
    + r"""a\'b"""
    + "'''"
    + r'''
---
b; r; f; u; rb; bu; br.x
---
f"a" "b"; b'c'
---
"a\
 if b"
---
'\'' + "'" + '"' + ''
---
"" + '' + """""" + ('''
    + "''''''"
    + r''')
---
""""a" """; """\""""; """a\
"""
---
# if for while ( [ {
x # return
---
x = "#"  # "quote
y
---
1; 1.0; 1.; .1; 1e5; 1E-5; 1e+5; 1_000; 1_0.0_1e1_0; 1j; 1.5J; 1e5j; .1j; 0x1F; 0XfF; 0o17; 0b1_0; 00; 0_0
---
1 if x else 2
---
1if x else 2
---
x = 1or 2
---
[1for x in y]
---
0xfor x
---
1 .real
---
1..real; 1.0.real; 1 .real; 1.e5; 1.j
---
x = 1.if 0 else 1
---
x[1:2]; x[1.:.2]; x[a:b, c:d:e]
---
x . y; x. y; x .y
---
a = (
    b +  # if
    c
)
---
a = \
    b
---
if a:
	b
	if c:
		d
---
añadir = ünï + 变量 - 数
---
class Ä(ß): pass
---
iff = forr = classs = _if = if_ = If = IF = is_ = None_
---
x = {"a": [1, (2, 3)], 'b': {4}}
---
x = a[b](c)(d)[e].f
---
def f(x):
    if x:
        return
    return None
---
print(f"{x}", end="")
---
def test_f():
    assert f(1) == 2
    with raises(E): f()
---
raise X(a) from None
---
async def f():
    return [await x async for x in y if await x]
---
from __future__ import annotations
---
for x, in y: pass
---
for (a, b), c in d: pass
---
x = not(a)or(b)and[c]in{d}is(e)
---
print(*a, **b, c=d)
---
x = a if b else"c"
---
return_ = passed = yielding
---
def f(): yield
---
def f(this, default, switch, do, enum, final, byte, char, long, short, double, boolean): pass
---
x<y>z; x<=y; x<<y; x>=y; x>>y
---
def f() -> None: pass
---
x = a<-b
---
x=-1; y=+1; z=~1; w=*a,
---
a;b;c
---
a, b = b, a
'''
)

VALID = [s.strip("\n") + "\n" for s in SNIPPETS.split("\n---\n")]

if __name__ == "__main__":
    assert sys.version_info[:2] == (3, 11), "f-strings are tokens of their own since 3.12"
    known = [(text, counts(text)) for text in VALID]
    for text, result in known:
        if result is None:
            print("left out, no Python 3.11:", repr(text), file=sys.stderr)
    rows = [
        {"code": text, "counts": result[0], "published": result[1]}
        for text, result in known
        if result is not None
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    pathlib.Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n", "utf-8")
