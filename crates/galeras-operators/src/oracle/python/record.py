"""Runs the doctests of a module, or a test file, and records the arguments of each call of some methods."""

import ast
import doctest
import json
import os
import threading
import types

# The most different calls of a method that are kept, and the most that are looked at.
MOST_CALLS, MOST_LOOKS, MOST_BYTES = 120, 4000, 6000


class Recorder:
    def __init__(self, file, methods):
        self.file = file
        self.wanted = {(line, name): number for number, (line, name) in enumerate(methods)}
        self.calls = [{} for _ in methods]
        self.looks, self.reasons = [0] * len(methods), [None] * len(methods)
        self.first, self.busy, self.place = {}, False, ""

    def trace(self, frame, event, _):
        code = frame.f_code
        if event != "call" or code.co_filename != self.file or self.busy:
            return
        number = self.wanted.get((code.co_firstlineno, code.co_name))
        if number is None or len(self.calls[number]) >= MOST_CALLS or self.looks[number] >= MOST_LOOKS:
            return
        # A generator is entered again after each item.
        if frame.f_lasti > self.first.setdefault(code, frame.f_lasti):
            return
        self.looks[number] += 1
        self.busy = True
        try:
            text = repr(encoded(arguments_of(frame)))
            if len(text) > MOST_BYTES:
                raise NotPlain("a large value")
            self.calls[number].setdefault(text, self.place)
        except NotPlain as error:
            self.reasons[number] = str(error)
        except Exception as error:
            self.reasons[number] = f"a value whose parts raise {type(error).__name__}"
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
        return recorder.traced(name, lambda: doctest.testfile(path, module_relative=False, report=False))
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
    task = ast.literal_eval(sys.stdin.read())
    out = os.dup(1)
    silent = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(silent, fd)
    sys.path.pop(0)
    note_reads(task["root"] + "/")
    recorder = Recorder(task["file"], task["methods"])
    problem = None
    try:
        module = load(task["module"], task["file"], task["top"], task["root"])
        if task["script"] is None:
            run_doctests(recorder, module)
        else:
            run_script(recorder, task["script"])
    except BaseException as error:
        missing = getattr(error, "name", None) if isinstance(error, ImportError) else None
        problem = [f"{type(error).__name__}: {error}", missing]
    calls = [list(map(list, calls.items())) for calls in recorder.calls]
    with os.fdopen(out, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(repr({"calls": calls, "reasons": recorder.reasons, "problem": problem, "read": sorted(READ)}))
        file.flush()
        # Threads that a test has left would keep the process.
        os._exit(0)


main()
