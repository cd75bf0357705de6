"""Makes the oracles of the methods of one module: records calls, repeats them in fresh processes,
chooses cases, and grades them with mutants of the method.

The task is a JSON object on standard input, and the result one on standard output. The steps run in
separate processes, since they change the module or import it anew."""

import ast
import copy
import json
import marshal
import os
import random
import subprocess
import sys
import tempfile
import tokenize

# Everything that a result must not depend on, different in each repeat.
SURROUNDINGS = [
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8", "USER": "sandbox"},
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C", "USER": "another"},
    {"PYTHONHASHSEED": "4294967295", "TZ": "America/St_Johns", "LC_ALL": "POSIX", "USER": "third"},
]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST_RESULT = 16000
OLDEST = (3, 11)
SOURCES = ["doctests", "calls", "mutated"]


class Failed(Exception):
    """A step that gave no result: a rule and a reason for all methods."""


class Method:
    """A method, with its place in the tree of its module."""

    def __init__(self, about, node, classes, futures):
        self.id, self.name, self.qualname = about["id"], node.name, about["qualified_name"]
        self.node, self.classes, self.futures = node, classes, futures
        self.line = min([node.lineno, *(part.lineno for part in node.decorator_list)])
        self.calls, self.rejected = about["calls"], None
        # Rules and reasons for which calls are no cases.
        why = "no call can be repeated: an argument is "
        self.reasons = [("arguments", why + kind) for kind in about["reasons"]]
        self.candidates = []
        self.bare = copy.deepcopy(node)
        self.bare.decorator_list = []
        self.branches = 0

    def code(self, file, node):
        """The code object of this function with another body, in classes of the same names."""
        body = [node]
        for name in reversed(self.classes):
            holder = ast.parse(f"class {name}: pass").body[0]
            holder.body = body
            body = [holder]
        tree = ast.fix_missing_locations(ast.Module([*self.futures, *body], []))
        code = compile(tree, file, "exec", dont_inherit=True)
        for name in [*self.classes, self.name]:
            code = inner_code(code, name)
        return code


def inner_code(code, name):
    """The code object of a class or function, which may have type parameters."""
    parts = {getattr(part, "co_name", None): part for part in code.co_consts}
    generic = parts.get(f"<generic parameters of {name}>")
    return parts[name] if generic is None else inner_code(generic, name)


def methods_of(tree, wanted):
    """The methods by the number of those that are wanted, or a rule and a reason."""
    found = {}

    def visit(node, classes, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                found[child.lineno, child.name] = (child, classes, inside)
                visit(child, classes, True)
            elif isinstance(child, ast.ClassDef):
                visit(child, [*classes, child.name], inside)
            else:
                visit(child, classes, inside)

    visit(tree, [], False)
    futures = [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    for about in wanted:
        node, classes, inside = found.get((about["line"], about["name"]), (None, [], False))
        if node is None:
            yield "source", f"line {about['line']} of the file does not define {about['name']}"
        elif inside:
            yield "nested", "it is defined each time that another function is called"
        elif isinstance(node, ast.AsyncFunctionDef):
            yield "async", "it is a coroutine, which needs an event loop"
        else:
            yield Method(about, node, classes, futures)


class Branches(ast.NodeTransformer):
    """Marks both outcomes of each condition, bodies and ends of loops, handlers, and cases of
    `match`."""

    def __init__(self):
        self.count = 0

    def mark(self):
        self.count += 1
        call = ast.Call(ast.Name("galeras_branch", ast.Load()), [ast.Constant(self.count - 1)], [])
        return ast.Expr(call)

    def condition(self, test):
        """`(hit(0), True)[1] if test else (hit(1), False)[1]`"""
        both = [
            ast.Subscript(
                ast.Tuple([self.mark().value, ast.Constant(value)], ast.Load()),
                ast.Constant(1),
                ast.Load(),
            )
            for value in (True, False)
        ]
        return ast.IfExp(test, *both)

    def visit_test(self, node):
        self.generic_visit(node)
        node.test = self.condition(node.test)
        return node

    visit_If = visit_While = visit_IfExp = visit_test

    def visit_comprehension(self, node):
        self.generic_visit(node)
        node.ifs = [self.condition(test) for test in node.ifs]
        return node

    def visit_For(self, node):
        self.generic_visit(node)
        node.body.insert(0, self.mark())
        node.orelse.insert(0, self.mark())
        return node

    def visit_ExceptHandler(self, node):
        self.generic_visit(node)
        node.body.insert(0, self.mark())
        return node

    visit_match_case = visit_ExceptHandler


COMPARISONS = {
    "Lt": "LtE", "LtE": "Lt", "Gt": "GtE", "GtE": "Gt", "Eq": "NotEq", "NotEq": "Eq",
    "In": "NotIn", "NotIn": "In", "Is": "IsNot", "IsNot": "Is",
}  # fmt: skip
ARITHMETIC = {
    "Add": "Sub", "Sub": "Add", "Mult": "FloorDiv", "Div": "Mult", "FloorDiv": "Mult",
    "Mod": "Mult", "Pow": "Mult", "LShift": "RShift", "RShift": "LShift", "BitAnd": "BitOr",
    "BitOr": "BitAnd", "BitXor": "BitAnd", "MatMult": "Mult",
}  # fmt: skip


def mutations(node):
    """The nodes that may replace a node, each with the name of the operator."""

    def changed(operator, **fields):
        new = copy.copy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        return operator, new

    kind = type(node)
    if kind is ast.Compare:
        for at, op in enumerate(node.ops):
            other = getattr(ast, COMPARISONS[type(op).__name__])()
            yield changed("comparison", ops=[*node.ops[:at], other, *node.ops[at + 1 :]])
    elif kind in (ast.BinOp, ast.AugAssign):
        yield changed("arithmetic", op=getattr(ast, ARITHMETIC[type(node.op).__name__])())
    elif kind is ast.BoolOp:
        yield changed("logic", op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif kind is ast.UnaryOp and isinstance(node.op, (ast.Not, ast.USub)):
        yield "logic" if isinstance(node.op, ast.Not) else "arithmetic", node.operand
    elif kind is ast.Constant:
        other = changed_constant(node.value)
        if other is not None:
            yield changed("constant", value=other)
    if kind in (ast.If, ast.While, ast.IfExp):
        negated = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        yield changed("condition", test=negated)
    if kind is ast.Return and node.value is not None and not is_none(node.value):
        yield changed("return", value=ast.copy_location(ast.Constant(None), node.value))
    if kind in (
        ast.Expr,
        ast.Assign,
        ast.AugAssign,
        ast.Delete,
        ast.Raise,
        ast.Continue,
        ast.Break,
    ):
        if not (kind is ast.Expr and isinstance(node.value, ast.Constant)):
            yield "statement", ast.copy_location(ast.Pass(), node)


def is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def changed_constant(value):
    if type(value) is bool:
        return not value
    if type(value) in (int, float):
        return value + 1
    if type(value) in (str, bytes):
        return value[:0] if value else (b"x" if type(value) is bytes else "x")
    return None


def places(node):
    """The nodes of a body, each with a function that puts another one there."""
    for name, value in ast.iter_fields(node):
        if name in (
            "annotation",
            "returns",
            "decorator_list",
            "type_params",
            "defaults",
            "kw_defaults",
        ):
            continue
        if isinstance(value, ast.AST):
            yield value, lambda new, name=name: setattr(node, name, new)
            yield from places(value)
        elif isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, ast.AST) and not is_docstring(node, name, at, item):
                    yield item, lambda new, value=value, at=at: value.__setitem__(at, new)
                    yield from places(item)


def is_docstring(node, name, at, item):
    if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) or name != "body" or at > 0:
        return False
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def mutants_of(method, file, seed, most):
    """Some of the changed versions of a method, chosen by the seed: those whose code differs."""
    found = []
    sites = [(old, put, op, new) for old, put in places(method.bare) for op, new in mutations(old)]
    order = list(range(len(sites)))
    random.Random(f"{seed}:{method.id}").shuffle(order)
    codes = {marshal.dumps(method.code(file, method.bare))}
    for at in order:
        if len(found) == most:
            break
        old, put, operator, new = sites[at]
        put(new)
        try:
            code = marshal.dumps(method.code(file, method.bare))
            text = ast.unparse(method.bare)
        except (SyntaxError, ValueError, KeyError, RecursionError):
            continue
        finally:
            put(old)
        if code not in codes:
            codes.add(code)
            found.append(
                {
                    "code": text,
                    "operator": operator,
                    "line": old.lineno,
                    "binary": code.hex(),
                    "at": at,
                }
            )
    return sorted(found, key=lambda mutant: mutant["at"])


def changed_values(tree, chance):
    """A copy of recorded arguments with one value changed to another one of its type."""
    tree = copy.deepcopy(tree)
    places = []

    def visit(parent, is_object):
        for at in range(1, len(parent)):
            part = parent[at]
            # Names of attributes and parameters stay.
            if parent[0] == "d" and at % 2 == 1:
                continue
            if type(part) in (bool, int, str, bytes):
                places.append((parent, at))
            elif type(part) is list:
                if part[0] == "f" or not is_object and part[0] in ("l", "t", "d"):
                    places.append((parent, at))
                if part[0] in ("l", "t", "d", "o", "s"):
                    visit(part, part[0] == "o")

    visit(tree[1], False)
    visit(tree[2], False)
    if not places:
        return None
    parent, at = chance.choice(places)
    parent[at] = changed_value(parent[at], chance)
    return tree


def changed_value(part, chance):
    kind = type(part)
    if kind is bool:
        return not part
    if kind is int:
        return chance.choice([part + 1, part - 1, -part, 2 * part, 0, 1])
    if kind in (str, bytes):
        empty = part[:0]
        at = chance.randrange(len(part) + 1)
        return chance.choice(
            [empty, part + part, part[:at], part[at:], part[:at] + part[at + 1 :], part[::-1]]
        )
    if kind is list and part and part[0] == "f":
        value = float.fromhex(part[1])
        return [
            "f",
            chance.choice([value + 1, -value, value / 2, 0.0, float("inf"), float("nan")]).hex(),
        ]
    if kind is list and part and part[0] in ("l", "t"):
        items = part[1:]
        at = chance.randrange(len(items) + 1)
        new = [
            [],
            items[:at],
            items[at:],
            items[::-1],
            items + items[:1],
            items[:at] + items[at + 1 :],
        ]
        return [part[0], *chance.choice(new)]
    if kind is list and part and part[0] == "d":
        at = 1 + 2 * chance.randrange(max(1, len(part) // 2))
        return [*part[:at], *part[at + 2 :]]
    return part


def shown(tree):
    """Encoded values as a short text for people."""
    if type(tree) is not list:
        return repr(tree)
    kind, *rest = tree
    if kind == "f":
        return repr(float.fromhex(rest[0]))
    if kind in ("g", "k", "m"):
        return rest[-1]
    if kind == "o":
        made = shown(rest[0])
        args = rest[1][1:] if type(rest[1]) is list else []
        if made == "__newobj__" and args:
            made, args = shown(args[0]), args[1:]
        return f"{made}({', '.join(map(shown, args))}{', …' if rest[2] is not None else ''})"
    items = list(map(shown, rest))
    if kind == "d":
        return (
            "{" + ", ".join(f"{key}: {value}" for key, value in zip(items[::2], items[1::2])) + "}"
        )
    begin, end = {"l": "[]", "t": "()", "s": "{}"}.get(kind, "()")
    comma = "," if kind == "t" and len(items) == 1 else ""
    name = {"z": "frozenset", "y": "bytearray", "r": "range", "c": "slice", "j": "complex"}.get(
        kind, ""
    )
    return name + begin + ", ".join(items) + comma + end


def shown_call(method, arguments):
    args, named = ast.literal_eval(arguments)[1:]
    keywords = [f"{name}={shown(value)}" for name, value in zip(named[1::2], named[2::2])]
    text = f"{method.qualname}({', '.join([*map(shown, args[1:]), *keywords])})"
    return text if len(text) <= 300 else text[:300] + " …"


class Maker:
    def __init__(self, task):
        self.task = task
        self.file, self.top, self.root = (
            os.path.abspath(task[name]) for name in ("file", "top", "root")
        )
        self.python = os.path.abspath(os.path.dirname(__file__))
        self.read, self.needed = {self.file}, set()
        # Answers run in the same library, and need no copies of its files.
        self.is_library = self.root.startswith(os.path.dirname(os.__file__))

    def start(self, script, task, turn):
        """Runs a step in a fresh process, and returns the lines of its output."""
        task = {
            "module": self.task["module"],
            "file": self.file,
            "top": self.top,
            "root": self.root,
            "is_library": self.is_library,
            **task,
        }
        surroundings = SURROUNDINGS[turn % len(SURROUNDINGS)]
        with tempfile.TemporaryDirectory() as folder:
            # The name and the depth of the working folder differ, too.
            folder = os.path.join(folder, *["d" * (turn + 1)] * (turn + 1))
            os.makedirs(folder)
            environment = {
                **os.environ,
                **surroundings,
                "HOME": folder,
                "LOGNAME": surroundings["USER"],
            }
            command = [sys.executable, os.path.join(self.python, script)]
            try:
                run = subprocess.run(
                    command, input=repr(task).encode("utf-8", "surrogatepass"),
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, env=environment,
                    timeout=self.task["seconds"],
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise Failed(
                    "timeout", f"{script[:-3]} took more than {self.task['seconds']} s"
                ) from None
        return [
            ast.literal_eval(line)
            for line in run.stdout.decode("utf-8", "surrogatepass").split("\n")
            if line
        ]

    def choose_candidates(self, method):
        """Recorded calls, those of doctests first, and changes of them."""
        most = self.task["per_method"]
        known = {}
        for arguments, place in method.calls:
            source = "doctests" if is_own(place, self.task["module"], method.qualname) else "calls"
            if source in self.task["source"]:
                known.setdefault(arguments, (source, place))
        known = dict(sorted(known.items(), key=lambda call: SOURCES.index(call[1][0])))
        kept = list(known.items())[: 2 * most]
        if "mutated" in self.task["source"] and kept:
            chance = random.Random(f"{self.task['seed']}:{method.id}")
            known = dict(kept)
            for _ in range(3 * most):
                if len(known) >= len(kept) + most:
                    break
                arguments, (_, place) = chance.choice(kept)
                new = changed_values(ast.literal_eval(arguments), chance)
                if new is not None:
                    known.setdefault(repr(new), ("mutated", place))
            kept = list(known.items())
        method.candidates = [(arguments, *about) for arguments, about in kept]

    def run_candidates(self, methods):
        """The candidates of which each repeat gives the same result, with the branches that they
        take."""
        for method in methods:
            marks = Branches()
            tree = marks.visit(copy.deepcopy(method.bare))
            method.branches, method.marked = (
                marks.count,
                marshal.dumps(method.code(self.file, tree)).hex(),
            )
        runs = []
        for turn in range(self.task["repeats"]):
            orders = [self.order(method, turn) for method in methods]
            wanted = [
                {
                    "line": method.line,
                    "name": method.name,
                    "cases": [method.candidates[at][0] for at in order],
                    "branches": None if turn else method.marked,
                }
                for method, order in zip(methods, orders)
            ]
            lines = self.start(
                "run.py", {"methods": wanted, "mutants": False, "clocks": turn == 0}, turn
            )
            if lines and type(lines[0]) is dict:
                raise Failed(*lines[0]["failed"])
            if len(lines) != len(methods) + 1:
                raise Failed("import", "the process that runs the cases ended before it was done")
            self.needed.update(lines.pop())
            turns = []
            for order, results in zip(orders, lines):
                turns.append(None if results is None else dict(zip(order, results)))
            runs.append(turns)
        for number, method in enumerate(methods):
            results = [turns[number] for turns in runs]
            if None in results:
                method.rejected = ("source", "the module replaces it while it is imported")
                continue
            method.candidates = list(self.stable(method, results))

    def order(self, method, turn):
        order = list(range(len(method.candidates)))
        if turn % 3 == 1:
            order.reverse()
        elif turn % 3 == 2:
            random.Random(turn).shuffle(order)
        return order

    def stable(self, method, results):
        for at, candidate in enumerate(method.candidates):
            ends = [result[at][0] for result in results]
            used = [result[at][1] for result in results if result[at][1] is not None]
            if used:
                method.reasons.append(used[0])
            elif any(
                not same(ast.literal_eval(ends[0]), ast.literal_eval(end)) for end in ends[1:]
            ):
                why = (
                    "its result differs between processes: random numbers, addresses, the order of "
                    "a set, the time zone, the working folder, or calls before it"
                )
                method.reasons.append(("unstable", why))
            elif len(ends[0]) > MOST_RESULT:
                method.reasons.append(("unstable", "its result is large"))
            else:
                yield (*candidate, ends[0], frozenset(results[0][at][2]))

    def choose(self, method):
        """Few and different cases: each adds branches or results that those before it lack."""
        rest = sorted(method.candidates, key=lambda case: (SOURCES.index(case[1]), len(case[0])))
        features = {case[0]: case[4] | {case[3]} for case in rest}
        chosen, covered = [], set()
        while rest and len(chosen) < self.task["per_method"]:
            best = max(rest, key=lambda case: len(features[case[0]] - covered))
            if not features[best[0]] - covered:
                if not covered:
                    break
                covered = set()
                continue
            covered |= features[best[0]]
            chosen.append(best)
            rest.remove(best)
        method.candidates = chosen

    def grade(self, methods):
        """The mutants that the cases kill. The first one is the method itself, which has to
        survive."""
        wanted = []
        for method in methods:
            method.mutants = mutants_of(method, self.file, self.task["seed"], self.task["mutants"])
            own = marshal.dumps(method.code(self.file, method.bare)).hex()
            wanted.append({
                "line": method.line,
                "name": method.name,
                "cases": [case[0] for case in method.candidates],
                "expected": [case[3] for case in method.candidates],
                "mutants": [own, *(mutant["binary"] for mutant in method.mutants)],
            })  # fmt: skip
        lines = self.start("run.py", {"methods": wanted, "mutants": True, "clocks": False}, 0)
        for method, verdicts in zip(methods, lines):
            if verdicts and verdicts[0] == "timeout":
                method.rejected = ("unstable", "its cases take too long together")
                continue
            if verdicts is None or verdicts[0] != "survived":
                why = (
                    "its cases depend on each other: together they end in another way than one by "
                    "one"
                )
                method.rejected = ("unstable", why)
                continue
            for mutant, verdict in zip(method.mutants, verdicts[1:]):
                mutant["verdict"] = verdict
            method.mutants = [
                mutant for mutant in method.mutants if mutant.get("verdict") != "invalid"
            ]

    def make(self):
        with tokenize.open(self.file) as source:
            content, encoding = source.read(), source.encoding
        results, needed = {}, {}
        try:
            if sys.version_info < OLDEST:
                raise Failed(
                    "python",
                    f"Python {sys.version.split()[0]} is older than 3.11; name another with "
                    "`python`",
                )
            if encoding not in ("utf-8", "utf-8-sig") and not content.isascii():
                raise Failed("source", f"the file is in {encoding}, and an answer in UTF-8")
            tree = ast.parse(content)
        except (Failed, SyntaxError, ValueError, RecursionError) as error:
            failed = (
                error.args
                if isinstance(error, Failed)
                else ("import", f"the module is not valid: {error}")
            )
            rejected = dict(zip(("rule", "reason"), failed))
            results = {about["id"]: rejected for about in self.task["methods"]}
            return {
                "content": content,
                "files": {},
                "read": self.relative(self.read),
                "methods": results,
            }
        found = list(methods_of(tree, self.task["methods"]))
        for about, method in zip(self.task["methods"], found):
            if isinstance(method, tuple):
                results[about["id"]] = dict(zip(("rule", "reason"), method))
        methods = [method for method in found if isinstance(method, Method)]
        try:
            if methods:
                for method in methods:
                    self.choose_candidates(method)
                called = [method for method in methods if method.candidates]
                if called:
                    self.run_candidates(called)
                if not self.is_library:
                    needed = self.texts(self.needed)
                able = [method for method in called if not method.rejected and method.candidates]
                for method in able:
                    self.choose(method)
                if able:
                    self.grade(able)
                for method in methods:
                    results[method.id] = self.result(method)
        except Failed as failed:
            for method in methods:
                results.setdefault(method.id, dict(zip(("rule", "reason"), failed.args)))
        return {
            "content": content,
            "files": needed,
            "read": self.relative(self.read | self.needed),
            "methods": results,
        }

    def relative(self, paths):
        return sorted({os.path.relpath(source_of(path), self.root) for path in paths})

    def texts(self, paths):
        """The files that the module needs, without itself."""
        found = {}
        for path in sorted({source_of(path) for path in paths} - {self.file}):
            name = os.path.relpath(path, self.root)
            try:
                with open(path, "rb") as file:
                    found[name] = file.read().decode("utf-8")
            except OSError:
                continue
            except UnicodeDecodeError:
                why = f"the module needs {name}, and answers are given files in UTF-8 only"
                raise Failed("source", why) from None
        return found

    def result(self, method):
        if method.rejected is not None:
            return dict(zip(("rule", "reason"), method.rejected))
        if not method.candidates:
            return self.without_cases(method)
        covered = frozenset().union(*(case[4] for case in method.candidates))
        cases = [
            {"source": source, "from": place, "shown": shown_call(method, arguments),
             "arguments": arguments, "expected": expected}
            for arguments, source, place, expected, _ in method.candidates
        ]  # fmt: skip
        mutants = [
            {"code": mutant["code"], "operator": mutant["operator"], "line": mutant["line"],
             "killed": mutant["verdict"] == "killed"}
            for mutant in method.mutants
        ]  # fmt: skip
        coverage = len(covered) / method.branches if method.branches else 1.0
        return {"cases": cases, "coverage": coverage, "mutants": mutants}

    def without_cases(self, method):
        if method.reasons:
            # The most frequent one.
            found = max(set(method.reasons), key=lambda why: (method.reasons.count(why), why))
        else:
            problem = self.task["problem"] or ""
            rule = "import" if problem.startswith("the module ") else "calls"
            found = rule, f"nothing calls it ({problem})" if problem else "nothing calls it"
        return dict(zip(("rule", "reason"), found))


def is_own(place, module, qualname):
    """True for doctests of the method, its classes, and its module."""
    parts = qualname.split(".")
    owners = [".".join([module, *parts[:n]]) for n in range(len(parts) + 1)]
    return place in [f"doctest of {owner}" for owner in owners]


if __name__ == "__main__":
    json.dump(Maker(json.load(sys.stdin)).make(), sys.stdout)
