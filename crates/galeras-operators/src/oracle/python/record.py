"""Runs the doctests of a module, or a test file, and records the arguments of the calls of
methods."""

import doctest
import json
import os
import threading
import types

# The most different calls of a method that are kept, and the most that are looked at.
MOST_CALLS, MOST_LOOKS, MOST_BYTES = 60, 600, 6000


class Recorder:
    """Records the calls of the methods of some modules, by the names of module and method."""

    def __init__(self, modules):
        self.modules, self.known, self.methods = frozenset(modules), {}, {}
        self.busy, self.place = False, ""

    def method(self, frame):
        """The calls of the frame's method; `None` if it is not of interest."""
        code = frame.f_code
        if id(code) not in self.known:
            spec = frame.f_globals.get("__spec__")
            module, name = getattr(spec, "name", None), code.co_qualname
            found = None
            if module in self.modules and "<" not in name:
                found = self.methods.setdefault(
                    (module, name), {"calls": {}, "reason": None, "looks": 0}
                )
            # A generator is entered again after each item.
            self.known[id(code)] = (found, frame.f_lasti, code)
        found, first, _ = self.known[id(code)]
        return found if frame.f_lasti <= first else None

    def trace(self, frame, event, _):
        if event != "call" or self.busy:
            return
        self.busy = True
        try:
            method = self.method(frame)
            if (
                method is None
                or len(method["calls"]) >= MOST_CALLS
                or method["looks"] >= MOST_LOOKS
            ):
                return
            method["looks"] += 1
            text = repr(encoded(arguments_of(frame)))
            if len(text) > MOST_BYTES:
                raise NotPlain("a large value")
            method["calls"].setdefault(text, self.place)
        except NotPlain as error:
            method["reason"] = str(error)
        except Exception as error:
            method["reason"] = f"a value whose parts raise {type(error).__name__}"
        finally:
            self.busy = False

    def traced(self, place, run):
        self.place = place
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        try:
            return run()
        finally:
            sys.settrace(None)
            threading.settrace(None)


def arguments_of(frame):
    """The arguments of a call that begins: those by position, and those by name."""
    code, values = frame.f_code, frame.f_locals
    plain, named = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    args = [values[name] for name in names[:plain]]
    keywords = {name: values[name] for name in names[plain : plain + named]}
    at = plain + named
    if code.co_flags & 4:
        args += values[names[at]]
        at += 1
    if code.co_flags & 8:
        keywords.update(values[names[at]])
    return args, keywords


def run_doctests(recorder, module):
    runner = doctest.DocTestRunner(verbose=False)
    failed = runs = 0
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__):
        if test.examples:
            where = f"doctest of {test.name}"
            result = recorder.traced(where, lambda: runner.run(test, out=lambda text: None))
            failed, runs = failed + result.failed, runs + result.attempted
    return failed, runs


def run_script(recorder, path):
    """Runs a test file: with pytest if that is there, else the cases of `unittest`, the functions
    `test_…` without parameters, and the doctests."""
    name = os.path.basename(path)
    if not path.endswith(".py"):
        return recorder.traced(
            name, lambda: doctest.testfile(path, module_relative=False, report=False)
        )
    try:
        import pytest
    except ImportError:
        pytest = None
    if pytest is not None:
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", path]
        return recorder.traced(name, lambda: pytest.main(options))

    def run():
        import unittest

        sys.path.insert(0, os.path.dirname(path))
        spec = external.spec_from_file_location(name[:-3], path)
        tests = types.ModuleType(name[:-3])
        tests.__spec__, tests.__file__ = spec, path
        sys.modules[name[:-3]] = tests
        spec.loader.exec_module(tests)
        suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
        suite.run(unittest.TestResult())
        for test, function in list(vars(tests).items()):
            if test.startswith("test_") and isinstance(function, types.FunctionType):
                if function.__code__.co_argcount + function.__code__.co_kwonlyargcount == 0:
                    try:
                        function()
                    except Exception:
                        pass
        run_doctests(recorder, tests)

    return recorder.traced(name, run)


def main():
    task = json.load(sys.stdin)
    out = os.dup(1)
    silent = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(silent, fd)
    sys.path.pop(0)
    root, top, file = (os.path.abspath(task[name]) for name in ("root", "top", "file"))
    note_reads(root + "/")
    recorder = Recorder(task["modules"])
    problem = None
    try:
        if task["module"] is None:
            sys.path[:0] = [root, f"{root}/src"]
            run_script(recorder, file)
        else:
            run_doctests(recorder, load(task["module"], file, top, root))
    except BaseException as error:
        problem = f"{type(error).__name__}: {error}"
        if isinstance(error, ImportError) and getattr(error, "name", None):
            problem = (
                f"the module {error.name} is missing ({problem}); name an interpreter that has it "
                "with `python`"
            )
    methods = {}
    for (module, name), found in recorder.methods.items():
        if found["looks"]:
            calls = list(map(list, found["calls"].items()))
            methods.setdefault(module, {})[name] = {"calls": calls, "reason": found["reason"]}
    read = sorted({os.path.relpath(source_of(path), root) for path in {*READ, file}})
    with os.fdopen(out, "w", encoding="utf-8") as result:
        json.dump({"methods": methods, "problem": problem, "read": read}, result)
        result.flush()
        # Threads that a test has left would keep the process.
        os._exit(0)


main()
