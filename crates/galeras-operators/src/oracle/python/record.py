"""Runs the doctests of a module, or a test file, and records the arguments of the calls of
methods."""

import doctest
import json
import os
import signal
import threading
import time
import types

# The most different calls of a method that are kept, and the most that are looked at.
MOST_CALLS, MOST_LOOKS, MOST_BYTES = 60, 600, 6000
# A test that only waits for so many seconds is given up.
MOST_WAIT = 30
# A number that no debugger, profiler or coverage has in `sys.monitoring`.
TOOL = 4


class OutOfTime(KeyboardInterrupt):
    """The time is over. No test runner takes this for the failure of a test."""


class Waited(Exception):
    """Nothing happened for a while."""


class Clock:
    """Ends the tests before the sandbox would, so that the calls until then are known, and a test
    that waits for something that does not come, so that the next ones run."""

    def __init__(self, seconds, patience):
        self.is_over, self.last, self.wait = False, 0.0, min(MOST_WAIT, seconds)
        self.most, self.end = 0.9 * seconds, time.monotonic() + 0.9 * seconds * patience - self.wait
        signal.signal(signal.SIGPROF, self.over)
        signal.setitimer(signal.ITIMER_PROF, self.most, 1)
        signal.signal(signal.SIGALRM, self.tick)
        signal.setitimer(signal.ITIMER_REAL, self.wait, self.wait)

    def over(self, *_):
        self.is_over = True
        raise OutOfTime

    def tick(self, *_):
        # Of child processes, those count that have ended.
        before, self.last = self.last, sum(os.times()[:4])
        if self.last > self.most or time.monotonic() > self.end:
            self.over()
        if self.last - before < self.wait / 100:
            raise Waited(f"for {self.wait} s")

    def stop(self):
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


class Recorder:
    """Records the calls of the methods of some modules, by the names of module and method."""

    def __init__(self, modules):
        self.modules, self.first, self.methods = frozenset(modules), {}, {}
        self.busy, self.place = False, ""

    def method(self, frame):
        """The calls of the frame's method; `None` if no more of them are wanted."""
        spec = frame.f_globals.get("__spec__")
        module, name = getattr(spec, "name", None), frame.f_code.co_qualname
        if module not in self.modules or "<" in name:
            return None
        new = {"calls": {}, "reason": None, "looks": 0}
        method = self.methods.setdefault((module, name), new)
        is_full = len(method["calls"]) >= MOST_CALLS or method["looks"] >= MOST_LOOKS
        return None if is_full else method

    def record(self, frame):
        """Keeps the arguments of a call that begins. False if no others of its function are
        wanted."""
        self.busy, method = True, None
        try:
            method = self.method(frame)
            if method is None:
                return False
            method["looks"] += 1
            text = repr(encoded(arguments_of(frame)))
            if len(text) > MOST_BYTES:
                raise NotPlain("a large value")
            method["calls"].setdefault(text, self.place)
        except NotPlain as error:
            method["reason"] = str(error)
        except Exception as error:
            if method is not None:
                method["reason"] = f"a value whose parts raise {type(error).__name__}"
        finally:
            self.busy = False
        return True

    def started(self, _code, _offset):
        """For `sys.monitoring`, which costs nothing for the functions that are of no interest."""
        if not self.busy and not self.record(sys._getframe(1)):
            return sys.monitoring.DISABLE
        return None

    def trace(self, frame, event, _):
        """For `sys.settrace`: Python 3.11 has nothing else."""
        if event != "call" or self.busy:
            return
        # A generator is entered again after each item.
        code = frame.f_code
        first, _ = self.first.setdefault(id(code), (frame.f_lasti, code))
        if frame.f_lasti <= first and not self.record(frame):
            self.first[id(code)] = (-2, code)

    def traced(self, place, run):
        self.place = place
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            threading.settrace(self.trace)
            sys.settrace(self.trace)
            try:
                return run()
            finally:
                sys.settrace(None)
                threading.settrace(None)
        monitoring.use_tool_id(TOOL, "galeras")
        monitoring.register_callback(TOOL, monitoring.events.PY_START, self.started)
        monitoring.set_events(TOOL, monitoring.events.PY_START)
        try:
            return run()
        finally:
            monitoring.set_events(TOOL, 0)
            monitoring.free_tool_id(TOOL)


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
    recorder, problem = Recorder(task["modules"]), None
    clock = Clock(task["seconds"], task["patience"])
    try:
        try:
            if task["module"] is None:
                sys.path[:0] = [root, f"{root}/src"]
                sys.path += [os.path.abspath(top) for top in task["tops"]]
                run_script(recorder, file)
            else:
                run_doctests(recorder, load(task["module"], file, top, root))
        finally:
            clock.stop()
    except BaseException as error:
        problem = f"{type(error).__name__}: {error}".replace(f"{root}/", "")
        if isinstance(error, Loaded):
            problem = str(error)
        elif isinstance(error, ModuleNotFoundError) and error.name:
            problem = (
                f"the module {error.name} is missing ({problem}); name an interpreter that has it "
                "with `python`"
            )
    if clock.is_over:
        problem = "its tests took more than the argument `timeout` allows"
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
