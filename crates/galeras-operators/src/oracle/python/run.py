"""Runs cases of the methods of one module on the module itself, on changed methods, or on both.

Standard input is a task as a Python literal, and a line of standard output has the results of a
method. Each method is run in a child, so that it finds the module as it was imported."""

import _signal as signal
import marshal
import os
import time

# Processor time of a case, and time on the clock for those that wait. A child that takes longer
# ends.
CASE_SECONDS, CASE_WAIT = 0.1, 10.0
# A mutant has this many times the time of the method, and this much more.
MUTANT_FACTOR, MUTANT_SECONDS = 5, 0.3
HOME = "/sandbox"
ENDED_BY_TIME = (int(signal.SIGPROF), int(signal.SIGALRM))
CLOCKS = {
    "time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "ctime", "asctime",
    "strftime",
}  # fmt: skip
# An answer may write to its copy of the tree.
WRITES = os.O_WRONLY | os.O_RDWR
# The functions of the system of which the result depends on nothing but the arguments.
PURE = {"fspath", "strerror"}
OUTSIDE = {
    "os.listdir": "files", "os.scandir": "files", "os.remove": "files", "os.mkdir": "files",
    "os.rename": "files", "os.system": "processes", "os.fork": "processes", "os.exec": "processes",
    "os.posix_spawn": "processes", "subprocess.Popen": "processes", "os.kill": "processes",
    "ctypes.dlopen": "native libraries",
}  # fmt: skip


class Watch:
    """Notes what a case uses besides its arguments."""

    def __init__(self, root, is_library):
        self.active, self.used, self.missing, self.root = False, None, None, root
        self.is_library = is_library
        sys.addaudithook(self.audit)

    def audit(self, event, args):
        if not self.active:
            return self.audit_load(event, args)
        kind = OUTSIDE.get(event)
        if kind is None and event.startswith("socket."):
            kind = "the network"
        if event == "open" and (not str(args[0]).startswith(self.root) or (args[2] or 0) & WRITES):
            kind = "files"
        if kind is not None and self.used is None and not (kind == "files" and self.is_import()):
            self.used = f"uses {kind}"

    def audit_load(self, event, args):
        """Answers have the files that are read, and nothing else of a tree that is not the
        interpreter's own library."""
        if self.is_library:
            return
        if event in ("os.listdir", "os.scandir"):
            by_import = sys._getframe(2).f_code.co_filename.startswith("<frozen importlib")
            path, what = "" if by_import else str(args[0]), "lists the folder"
        else:
            path, what = str(args[1]) if event == "import" else "", "imports"
        if f"{path}/".startswith(self.root):
            self.missing = f"{what} `{path[len(self.root) :] or '.'}`"

    def is_import(self):
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def profile(self, frame, event, function):
        if event != "c_call" or self.used is not None:
            return
        name = function.__name__
        owner = getattr(getattr(function, "__self__", None), "__name__", None)
        if name in CLOCKS and owner in ("time", "datetime", "date"):
            self.used = "reads the clock"
        elif owner == "posix" and name not in PURE and not name.startswith("_path"):
            # Not every call of the system is an event of an audit: `os.stat`, `os.uname`.
            if not frame.f_code.co_filename.startswith("<frozen importlib"):
                self.used = "uses the system"


def limit(seconds):
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, CASE_WAIT + seconds)


def run_cases(function, cases, watch, hits, seconds=None):
    """Yields for each case its outcome as text, the rule and the reason if it is of no use, and
    the branches that it took."""
    for arguments in cases:
        known = set(READ)
        hits.clear()
        if seconds is not None:
            limit(seconds)
        watch.used = None
        watch.active = True
        if watch.clocks:
            sys.setprofile(watch.profile)
        try:
            found, reason = outcome(function, eval(arguments)), None
        except NotPlain as error:
            found, reason = None, ("unstable", f"its result is {error}")
        except BaseException as error:
            why = f"its arguments cannot be made again: {type(error).__name__}: {error}"
            found, reason = None, ("arguments", why)
        sys.setprofile(None)
        watch.active = False
        for path in () if watch.is_library else not_text(READ - known):
            # Answers are not given it.
            READ.discard(path)
            watch.used = watch.used or "reads a file of the tree that is not UTF-8"
        try:
            end = None if found is None else repr(found)
        except ValueError as error:
            end, reason = None, ("unstable", f"its result cannot be written: {error}")
        # An answer runs in another folder and program, with another `sys.path`.
        if end is not None and any(place in end for place in (watch.root, HOME, "'__main__'")):
            watch.used = watch.used or "returns a path or a module of the sandbox"
        if watch.used is not None:
            reason = "unstable", watch.used
        yield [end, reason, sorted(hits)]


def not_text(paths):
    """Those of these files that are not UTF-8."""
    found = []
    for path in paths:
        try:
            with open(source_of(path), "rb") as file:
                file.read().decode("utf-8")
        except UnicodeDecodeError:
            found.append(path)
        except OSError:
            continue
    return found


def child(work, write):
    """Runs `work` in a child, whose lines come through a pipe. Returns its lines and how it
    ended."""
    read, to = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            work(lambda line: write(to, line))
            write(to, {"read": sorted(READ)})
        finally:
            os._exit(0)
    os.close(to)
    parts = []
    while part := os.read(read, 1 << 16):
        parts.append(part)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    lines = [eval(line) for line in b"".join(parts).split(b"\n")[:-1]]
    if lines and type(lines[-1]) is dict:
        READ.update(lines.pop()["read"])
    return lines, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def write_line(to, line):
    data = memoryview(repr(line).encode("utf-8", "surrogatepass") + b"\n")
    while data:
        data = data[os.write(to, data) :]


def outcomes(function, method, watch, hits):
    """The results of the cases. One that ends its process is left out, and the next ones run in
    another."""
    cases, results = method["cases"], []
    while len(results) < len(cases):
        rest = cases[len(results) :]

        def work(send):
            if method["branches"] is not None:
                sys.modules["builtins"].galeras_branch = hits.add
                replace_code(function, method["branches"])
            for result in run_cases(function, rest, watch, hits, CASE_SECONDS):
                send(result)

        lines, ended_by = child(work, write_line)
        results += lines
        if len(results) < len(cases):
            reason = "takes too long" if ended_by in ENDED_BY_TIME else "ends its process"
            results.append([None, ("unstable", reason), []])
    return results


def verdicts(function, method, watch, hits):
    """For each mutant: `killed` by a case, `survived`, `timeout`, or `invalid`."""

    def verdict():
        results = run_cases(function, method["cases"], watch, hits)
        for (end, _, _), wanted in zip(results, method["expected"]):
            if end is None or not same(eval(wanted), eval(end)):
                return "killed"
        return "survived"

    def judge(code, seconds, send):
        try:
            replace_code(function, code)
        except ValueError:
            return send(["invalid", 0])
        limit(seconds)
        begin = time.process_time()
        send([verdict(), time.process_time() - begin])

    found, seconds = [], CASE_SECONDS * (len(method["cases"]) + 10)
    for code in method["mutants"]:
        lines, ended_by = child(lambda send: judge(code, seconds, send), write_line)
        late = "timeout" if ended_by in ENDED_BY_TIME else "killed"
        found.append(lines[0][0] if lines else late)
        if len(found) == 1 and lines:
            seconds = MUTANT_FACTOR * lines[0][1] + MUTANT_SECONDS
    return found


def replace_code(function, text):
    function.__code__ = marshal.loads(bytes.fromhex(text))


def import_failure(error, root):
    """The rule and the reason for all methods of a module that cannot be imported."""
    text = f"{type(error).__name__}: {error}".replace(root, "")
    if isinstance(error, Loaded):
        return "loaded", str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        why = f"the module {error.name} is missing ({text}); name an interpreter that has it with "
        return "import", f"{why}`python`"
    return "import", f"the module cannot be imported: {text}"


def main():
    task = eval(sys.stdin.read())
    out = os.dup(1)
    silent = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(silent, fd)
    sys.path.pop(0)
    note_reads(task["root"] + "/")
    watch, hits = Watch(task["root"] + "/", task["is_library"]), set()
    watch.clocks = task["clocks"]
    try:
        load(task["module"], task["file"], task["top"], task["root"])
    except BaseException as error:
        return write_line(out, {"failed": import_failure(error, watch.root)})
    if watch.missing is not None:
        why = f"the module {watch.missing}, and answers are given only the texts that it reads"
        return write_line(out, {"failed": ("source", why)})
    run = verdicts if task["mutants"] else outcomes
    for method in task["methods"]:
        function = function_at(task["file"], method["line"], method["name"])
        if function is None:
            write_line(out, None)
            continue
        write_line(out, run(function, method, watch, hits))
    write_line(out, sorted(READ))


main()
