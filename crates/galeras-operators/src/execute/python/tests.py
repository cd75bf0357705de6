"""The process of the tests: for each row it forks, and the child runs the row's tests.

Tests see proxies of the functions and objects of the answer, which is another process in another
sandbox. What an answer returns arrives as plain data, so all comparisons are those of Python. The
verdict is sent by the child after the last test; a child that ends without it has no verdict."""

import ast
import builtins
import json
import marshal
import resource
import types

MOST_MEMORY = 2 << 30
# Galeras passes no larger message on: see `judge.rs`.
MOST_BYTES = (64 << 20) - 1

# Names that tests use as those of modules. If a program has imported one, tests get it as well, but
# not what the program calls so.
MODULES = {name: name for name in getattr(sys, "stdlib_module_names", sys.builtin_module_names)}
MODULES.update(np="numpy", numpy="numpy")


# Functions by which an answer could change the process of the tests.
POWERFUL = {
    "__import__", "compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "open",
    "setattr", "vars",
}  # fmt: skip


class Gone(BaseException):
    """The answer's process has ended, or sent something that is not an answer."""


class Remote:
    """An object of the answer that is not plain data."""

    __slots__ = ("_number",)

    def __init__(self, number):
        object.__setattr__(self, "_number", number)

    def __call__(self, *args, **named):
        return TESTS.call(self, args, named)

    def __getattr__(self, name):
        # numpy would read the memory that this names.
        if name.startswith("__array"):
            raise AttributeError(name)
        return TESTS.ask("get", self, name)

    def __setattr__(self, name, value):
        return TESTS.ask("set", self, name, value)

    def __getitem__(self, key):
        return TESTS.ask("item", self, key)

    def __len__(self):
        return TESTS.ask("len", self)

    def __str__(self):
        return TESTS.ask("str", self)

    def __repr__(self):
        return TESTS.ask("repr", self)

    def __iter__(self):
        items = TESTS.ask("iter", self)
        while True:
            try:
                item = TESTS.ask("next", items)
            except StopIteration:
                return
            yield item

    def __next__(self):
        return TESTS.ask("next", self)

    def __deepcopy__(self, _):
        return self

    # An answer does not decide what it is equal to, nor that it is true.
    def __eq__(self, other):
        if type(other) is Remote:
            return self._number == other._number
        if type(other) not in (dict, list, set):
            return False
        items = TESTS.ask("plain", self)
        return type(items) is type(other) and items == other

    def __hash__(self):
        return hash(self._number)

    def __bool__(self):
        return True

    def __instancecheck__(self, value):
        return type(value) is Remote and TESTS.ask("isinstance", value, self) is True


def operation(name, is_reflected=False):
    def apply(self, *others):
        values = [*others, self] if is_reflected else [self, *others]
        return TESTS.ask("operator", name, *values)

    return apply


# Not those that give a truth: an answer would decide that it is smaller.
for name in ("neg", "pos", "abs", "setitem", "delitem"):
    setattr(Remote, f"__{name}__", operation(name))
for name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"):
    setattr(Remote, f"__{name}__", operation(name))
    setattr(Remote, f"__r{name}__", operation(name, is_reflected=True))


class Tests:
    def __init__(self, channel, source):
        self.channel, self.source = channel, source
        self.functions, self.gone = [], False
        # Something of the answer is named, called, and has raised an exception.
        self.used = self.called = self.raised = False
        self.codec = Codec(self.keep, self.proxy)
        self.held, self.failures, self.not_given = set(), [], None

    def keep(self, value):
        # No answer can pass such tests, and none may profit from the error.
        self.not_given = f"tests cannot give a {type(value).__name__} to the answer"
        raise TypeError(self.not_given)

    def proxy(self, number):
        if type(number) is not int:
            raise ValueError(number)
        return Remote(number)

    def encode(self, value):
        """An argument: plain data, an object of the answer, or a function of the tests."""
        kind = type(value)
        if kind is Remote:
            return '["o",%d]' % value._number
        if kind in (list, tuple, set, frozenset):
            name = {list: "l", tuple: "t", set: "s", frozenset: "z"}[kind]
            return "[" + ",".join(['"%s"' % name, *map(self.encode, value)]) + "]"
        if kind is dict:
            parts = [part for pair in value.items() for part in pair]
            return "[" + ",".join(['"d"', *map(self.encode, parts)]) + "]"
        if callable(value) and not isinstance(value, type):
            if getattr(value, "__self__", None) is builtins and value.__name__ in POWERFUL:
                self.keep(value)
            self.functions.append(value)
            return self.codec.encode(("\0callback", len(self.functions) - 1))
        return self.codec.encode(value)

    def exchange(self, text):
        if self.gone:
            raise Gone
        request = text.encode()
        if len(request) > MOST_BYTES:
            raise MemoryError("a value of more than 64 MiB cannot be given to the answer")
        self.channel.send(b"A" + request)
        frame = self.channel.receive()
        if frame is None or frame[:1] != b"R":
            self.gone = True
            raise Gone
        try:
            return self.codec.decode(json.loads(frame[1:]))
        except Exception:
            self.gone = True
            raise Gone from None

    def request(self, message):
        reply = self.exchange(self.encode(list(message)))
        while type(reply) is list and len(reply) == 4 and reply[0] == "callback":
            not_given = self.not_given
            try:
                text = self.encode(["ok", self.functions[reply[1]](*reply[2], **reply[3])])
            except Exception as error:
                # An answer may catch this.
                if isinstance(error, AssertionError) and not hasattr(error, "of_answer"):
                    self.failures.append(error)
                text = self.encode(["raised", f"{type(error).__name__}: {error}"])
            # An answer chooses what it calls a function with, so it must not decide this.
            self.not_given = not_given
            reply = self.exchange(text)
        if type(reply) is list and len(reply) == 3 and reply[0] == "raised":
            kind, text = reply[1:]
            if isinstance(kind, type) and issubclass(kind, BaseException):
                raise self.error_of_answer(kind, text, message[0])
        if type(reply) is not list or len(reply) < 2 or reply[0] != "ok":
            self.gone = True
            raise Gone
        return reply[1:]

    def error_of_answer(self, kind, text, what):
        # Elsewhere it would end a loop of the tests, such as that of `map`, as if all were well.
        ends = issubclass(kind, (StopIteration, StopAsyncIteration)) and what != "next"
        try:
            error = RuntimeError() if ends else kind.__new__(kind, text)
        except TypeError:
            # An ExceptionGroup has parts.
            ends, error = True, RuntimeError()
        error.args = (f"{kind.__name__}: {text}" if ends else text,)
        error.of_answer = self.raised = True
        return error

    def ask(self, *message):
        return self.request(message)[0]

    def call(self, function, args, named):
        self.called = True
        result, *changed = self.request(("call", function, list(args), named))
        # Python passes lists by reference.
        for at, value in changed[0] if changed else []:
            own = named.get(at) if type(at) is str else None
            if type(at) is int and 0 <= at < len(args):
                own = args[at]
            if type(own) is list and type(value) is list:
                own[:] = value
            elif type(own) in (dict, set) and type(value) is type(own):
                own.clear()
                own.update(value)
        return result

    def run(self):
        """The end of the tests, the number that passed, of all tests, and a message."""
        try:
            tree = ast.parse(self.source, "tests.py")
            marks = Marks()
            tree = ast.fix_missing_locations(marks.visit(tree))
            code = compile(tree, "tests.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as error:
            return ["invalid", 0, 0, f"the tests are not Python: {error}"]
        for name in marks.idle_tests(tree):
            advice = "only functions without parameters run, and methods of unittest"
            return ["invalid", 0, 0, f"nothing calls {name}: {advice}"]
        namespace = {"__name__": "tests", "__builtins__": builtins}
        namespace["__held__"], namespace["__failed__"] = self.held.add, self.failures.append
        units = ran = 0
        try:
            namespace.update(self.names_of_answer(marks))
            answer = types.ModuleType("answer")
            answer.__getattr__ = self.attribute
            sys.modules["answer"] = answer
            exec(code, namespace)
            units, ran = self.run_units(namespace)
        except BaseException as error:
            self.failures.append(error)
        total = marks.count + units or 1
        passed = max(0, len(self.held) + ran)
        if self.not_given:
            return ["invalid", 0, total, self.not_given]
        if self.failures:
            return self.explain(self.failures[0], min(passed, total - 1), total)
        if self.gone:
            return ["gone", min(passed, total - 1), total, "the program ended before its tests"]
        if marks.count + units and not passed and not self.raised:
            if self.called:
                return ["failed", 0, total, "no assertion was reached"]
            return ["invalid", 0, total, "no test ran: call the function that has them"]
        if not self.used and not marks.names | marks.owners:
            # Such as a list of tests, written as a list of texts.
            advice = "join a list of tests with `join`"
            return ["invalid", 0, total, f"no test ran: the tests are only values; {advice}"]
        if not self.used:
            return ["failed", 0, total, "the tests use nothing of the program"]
        return ["passed", total, total, None]

    def names_of_answer(self, marks):
        """The names that tests take from the answer. It does not replace what Python defines,
        unless that is the only thing that the tests can be about: MBPP has a function `sum`."""
        names = {name for name in marks.names | marks.owners if not name.startswith("__")}
        known = names & set(dir(builtins))
        found = self.found(names - known)
        if not found and known and "answer" not in self.source:
            found = self.found(known)
        for name in found.keys() & (marks.owners - marks.names) & MODULES.keys():
            try:
                found[name] = __import__(MODULES[name])
            except ImportError:
                del found[name]
        return found

    def found(self, names):
        found = self.ask("names", sorted(names))
        self.used = self.used or bool(found)
        return {name: found[name] for name in names if name in found}

    def attribute(self, name):
        found = self.found([name])
        if name not in found:
            raise AttributeError(f"the answer has no {name}")
        return found[name]

    def run_units(self, namespace):
        """Runs the test cases of `unittest` and the functions `test_…`, which nobody calls."""
        own = [v for v in namespace.values() if type(v) is not Remote]
        own = [v for v in own if getattr(v, "__module__", None) == "tests"]
        count = ran = 0
        for function in own:
            if isinstance(function, types.FunctionType) and function.__name__.startswith("test_"):
                code = function.__code__
                if code.co_argcount == 0 and code.co_kwonlyargcount == 0:
                    function()
        unittest = sys.modules.get("unittest")
        if unittest is None:
            return count, ran
        for case in own:
            if isinstance(case, type) and issubclass(case, unittest.TestCase):
                suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
                result = unittest.TestResult()
                suite.run(result)
                bad = result.failures + result.errors
                bad += [(test, "an unexpected success") for test in result.unexpectedSuccesses]
                count += result.testsRun
                # Parts of a test fail on their own.
                broken = {getattr(test, "test_case", test).id() for test, _ in bad}
                ran += result.testsRun - len(broken) - len(result.skipped)
                for test, text in bad:
                    kind = AssertionError if (test, text) in result.failures else RuntimeError
                    last = text.strip().rsplit("\n", 1)[-1]
                    self.failures.append(kind(f"{test.id()}: {last}"))
        return count, ran

    def explain(self, error, passed, total):
        if isinstance(error, Gone) or self.gone:
            return ["gone", passed, total, "the program ended before its tests"]
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "tests.py":
                line = trace.tb_lineno
            trace = trace.tb_next
        try:
            text = str(error)[:1000]
        except BaseException:
            text = ""
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
        if line is not None:
            source = self.source.split("\n")[line - 1].strip()[:200]
            text = f"{text} (line {line} of the tests: {source})"
        if isinstance(error, MemoryError):
            return ["out_of_memory", passed, total, text]
        own = not hasattr(error, "of_answer")
        if own and isinstance(error, ModuleNotFoundError):
            return ["invalid", 0, total, text]
        failed = own and isinstance(error, AssertionError)
        return ["failed" if failed else "error", passed, total, text]


class Marks(ast.NodeTransformer):
    """Marks assertions that hold. At the top level, those after one that does not hold are tried,
    too."""

    def __init__(self):
        self.count, self.names, self.owners = 0, set(), set()

    def visit_Name(self, node):
        self.names.add(node.id)
        return node

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name):
            self.owners.add(node.value.id)
        else:
            self.generic_visit(node)
        return node

    def visit_Assert(self, node):
        self.generic_visit(node)
        number = ast.Constant(self.count)
        self.count += 1
        return [node, ast.copy_location(marking("__held__", number), node)]

    def visit_Module(self, node):
        body = []
        for statement in node.body:
            visited = self.visit(statement)
            if isinstance(statement, ast.Assert):
                error = ast.Name("AssertionError", ast.Load())
                noted = marking("__failed__", ast.Name("__error__", ast.Load()))
                handler = ast.ExceptHandler(error, "__error__", [noted])
                visited = ast.copy_location(ast.Try(visited, [handler], [], []), statement)
            body.extend(visited if isinstance(visited, list) else [visited])
        node.body = body
        return node

    def idle_tests(self, tree):
        """The names of functions and classes that pytest would run, and that nothing here does."""
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                args = node.args
                takes = args.posonlyargs or args.args or args.kwonlyargs
                idle = node.name.startswith("test_") and (
                    takes or type(node) is ast.AsyncFunctionDef
                )
            else:
                idle = (
                    isinstance(node, ast.ClassDef)
                    and node.name.startswith("Test")
                    and not node.bases
                )
            if idle and node.name not in self.names | self.owners:
                yield node.name


def marking(name, value):
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), [value], []))


def child(channel, frame):
    global TESTS
    task = json.loads(frame)
    seconds = max(1, task["seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    # So that large values of an answer end the tests of this row only.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    most = MOST_MEMORY if most == resource.RLIM_INFINITY else min(most, MOST_MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    TESTS = Tests(channel, task["tests"])
    verdict = dict(zip(("end", "passed", "total", "message"), TESTS.run()))
    # Half of a pair of surrogates is not UTF-8.
    channel.send(b"V" + json.dumps(verdict, ensure_ascii=False).encode("utf-8", "replace"))


def main():
    channel = Channel()
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    # Compiled once for all answers, which then start faster.
    with open("answer.py", encoding="utf-8") as source:
        code = compile(source.read(), ".galeras.py", "exec", dont_inherit=True)
    channel.send(marshal.dumps(code))
    while (frame := channel.receive()) is not None:
        pid = os.fork()
        if pid == 0:
            try:
                child(channel, frame)
            finally:
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        channel.send(b"E" + str(status).encode())


main()
