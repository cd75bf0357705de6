//! `execute`: verdicts that a program cannot talk into, languages, and the reuse of each run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Project, every, files_below, says, text, values, wait_for};
use crate::row_streams::counts;
use crate::trust::flags;

const WORKFLOW: &str = "galeras: 1
steps:
  answers: { op: read, with: { path: answers.jsonl } }
  executed:
    op: execute
    from: answers
    with: { program: '{{ program }}', tests: '{{ tests }}', timeout: 2s, memory: 256MiB }
";

fn rows<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let line = |(id, program, tests): (&str, &str, &str)| json!({"id": id, "program": program, "tests": tests});
    rows.into_iter().map(|row| format!("{}\n", line(row))).collect()
}

/// The tests of most programs: `f` adds 1.
const TESTS: &str = "assert f(1) == 2\nassert f(2) == 3\n";

/// Programs, and the outcomes that they may have.
#[rustfmt::skip]
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("is right", "def f(x): return x + 1", &["passed"]),
    ("is right and prints", "def f(x):\n    print('passed')\n    return x + 1", &["passed"]),
    ("is right and leaves a daemon", "
import os, time
if os.fork() == 0:
    os.setsid(); time.sleep(600)
def f(x): return x + 1", &["passed"]),
    ("is wrong", "def f(x): return 3", &["failed"]),
    ("is not Python", "def f(x) return", &["error"]),
    ("lacks the function", "g = 1", &["error"]),
    ("raises", "def f(x): raise ValueError(x)", &["error"]),
    ("asserts in the tests' stead", "def f(x): assert False", &["error"]),
    ("recurses", "def f(x): return f(x)", &["error"]),
    // Leaving early.
    ("exits", "import sys; sys.exit(0)", &["failed"]),
    ("exits at once", "import os; os._exit(0)", &["failed"]),
    ("exits in a call", "import os\ndef f(x): os._exit(0)", &["failed"]),
    ("raises SystemExit", "import sys\ndef f(x): sys.exit(0)", &["error"]),
    ("exits in a child", "import os\ndef f(x):\n    if os.fork(): os._exit(0)\n    os._exit(0)", &["failed"]),
    ("exits at the end", "import atexit, os; atexit.register(os._exit, 0)\ndef f(x): return 3", &["failed"]),
    // Changing what decides.
    ("equals everything", "
class Equal:
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
def f(x): return Equal()", &["failed"]),
    ("is a number that equals everything", "
class Equal(int):
    __eq__ = lambda self, other: True
def f(x): return Equal(7)", &["failed"]),
    ("replaces AssertionError", "import builtins\nbuiltins.AssertionError = ZeroDivisionError\ndef f(x): return 3", &["failed"]),
    ("replaces exits", "
import os, sys
os._exit = sys.exit = lambda *code: None
def f(x): return 3", &["failed"]),
    ("replaces the encoding", "import __main__\n__main__.Codec.encode = lambda self, value: 'true'\ndef f(x): return 3", &["failed", "error"]),
    ("replaces replies", "
import gc
def f(x):
    for found in gc.get_objects():
        if type(found).__name__ == 'Answer':
            found.channel.send(b'V{\"end\":\"passed\",\"passed\":2,\"total\":2,\"message\":null}')
            found.channel.send(b'[\"l\",\"6f6b\",2,[\"l\"]]')
    return 3", &["failed", "error"]),
    ("prints verdicts everywhere", "
import os
def f(x):
    for fd in range(64):
        try: os.write(fd, b'V{\"end\":\"passed\"}\\npassed\\n')
        except OSError: pass
    return 3", &["failed", "error"]),
    // Other processes.
    ("kills its parent", "
import os
def f(x):
    try: os.kill(os.getppid(), 9)
    except OSError: pass
    return 3", &["failed", "error", "crashed"]),
    ("kills everything", "
import os
def f(x):
    try: os.kill(-1, 9)
    except OSError: pass
    return 3", &["failed", "error", "crashed"]),
    ("kills itself", "import os\ndef f(x): os.kill(os.getpid(), 9)", &["crashed"]),
    ("crashes", "import ctypes\ndef f(x): ctypes.string_at(0)", &["crashed"]),
    // Limits.
    ("spins", "def f(x):\n    while True: pass", &["timeout"]),
    ("spins before its tests", "while True: pass", &["timeout"]),
    ("sleeps", "import time\ndef f(x): time.sleep(600)", &["timeout"]),
    ("allocates 100 GB", "def f(x): return bytearray(100 << 30)", &["out_of_memory"]),
    ("fills the disk", "
def f(x):
    for i in range(1000): open(f'f{i}', 'wb').write(b'x' * 4_000_000)", &["error"]),
    // The machine.
    ("reads /etc/passwd", "def f(x): return open('/etc/passwd').read()", &["error"]),
    ("lists keys", "import os\ndef f(x): return os.listdir(os.path.expanduser('~/.ssh'))", &["error"]),
    ("opens a socket", "import socket\ndef f(x): return socket.socket()", &["error"]),
    ("writes outside", "def f(x): open('/usr/x', 'w')", &["error"]),
];

#[test]
fn no_program_is_passed_that_is_not_right() {
    let all = PROGRAMS.iter().map(|(id, program, _)| (*id, *program, TESTS));
    let project = Project::new(WORKFLOW).with("answers.jsonl", rows(all)).ran();
    let found = project.rows("executed");
    assert_eq!(found.len(), PROGRAMS.len(), "{:?}", project.rows("executed.rejects"));
    every(PROGRAMS.iter().map(|case| (case.0, case)), |(id, _, outcomes)| {
        let row = found.iter().find(|row| row["id"] == *id).unwrap();
        assert!(outcomes.contains(&text(row, "outcome")), "{row}");
        let passes = **outcomes == ["passed"];
        assert_eq!((&row["passed"], row["message"].is_null()), (&json!(passes), passes), "{row}");
    });
    let runs = project.rows("executed.runs");
    assert!(
        runs.iter().all(|run| !run["sandbox_layers"].as_array().unwrap().is_empty()),
        "{runs:?}"
    );
}

/// The outcome, the tests that passed, and all tests.
type Verdict = (&'static str, u32, u32);

/// Tests of Python, with a program and its verdict.
#[rustfmt::skip]
const TESTS_OF_PYTHON: &[(&str, &str, &str, Verdict)] = &[
    ("assertions at the top level", "def f(x): return 2 * x", "assert f(0) == 0\nassert f(1) == 3\nassert f(2) == 4", ("failed", 2, 3)),
    ("a function that checks", "def f(x): return x",
     "def check(candidate):\n    assert candidate(1) == 1\n    assert candidate(2) == 3\ncheck(f)", ("failed", 1, 2)),
    ("unittest", "def f(x): return x", "
import unittest
class Tests(unittest.TestCase):
    def test_one(self): self.assertEqual(f(1), 1)
    def test_two(self): self.assertEqual(f(2), 3)", ("failed", 1, 2)),
    ("functions of pytest", "def f(x): return x", "def test_one():\n    assert f(1) == 1", ("passed", 1, 1)),
    ("plain data", "
from collections import Counter
from decimal import Decimal
def f(): return [1, 2.5, 'é', b'x', None, (1, {2}), {'a': [10 ** 30]}, float('inf'), 1j, Decimal('1.10'), Counter('aab')]", "
from decimal import Decimal
assert f() == [1, 2.5, 'é', b'x', None, (1, {2}), {'a': [10 ** 30]}, float('inf'), 1j, Decimal('1.1'), {'a': 2, 'b': 1}]", ("passed", 1, 1)),
    ("objects", "
class Pair:
    def __init__(self, a, b): self.a, self.b = a, b
def longest(pairs): return max(pairs, key=lambda pair: pair.b - pair.a)",
     "assert longest([Pair(1, 2), Pair(1, 5)]).b == 5", ("passed", 1, 1)),
    ("arguments that are changed", "def f(items): items.sort()", "items = [2, 1]\nf(items)\nassert items == [1, 2]", ("passed", 1, 1)),
    ("generators", "def f(n): yield from range(n)", "assert list(f(3)) == [0, 1, 2]", ("passed", 1, 1)),
    ("functions as arguments", "def twice(g, x): return g(g(x))", "assert twice(lambda x: 3 * x, 1) == 9", ("passed", 1, 1)),
    ("exceptions", "class Odd(ValueError): pass\ndef f(x): raise Odd('no')", "
try: f(1)
except Odd as error: assert str(error) == 'no'
try: f(1)
except ValueError: pass", ("passed", 1, 1)),
    ("helpers of the problem", "def helper(x): return 0\ndef f(x): return 7",
     "def helper(x): return x\nimport answer\nassert helper(answer.f(1)) == 0", ("failed", 0, 1)),
    ("names of Python", "def abs(x): return 0\ndef f(x): return 7", "assert abs(f(1) - 1) < 0.1", ("failed", 0, 1)),
    ("the end of the loops of tests", "def f(x): raise StopIteration",
     "assert all(map(lambda x: f(x) == x + 1, [1, 2]))\nassert True", ("error", 0, 2)),
    ("assertions that the program catches", "
def f(g):
    try: g(0)
    except Exception: pass
    return 1", "def g(x): assert x == 5\nassert f(g) == 1", ("failed", 1, 2)),
    ("results without anything to check", "def f(x): return []", "for y in f(1): assert y == 1", ("failed", 0, 1)),
    ("modules that the program makes", "
class math: isclose = staticmethod(lambda *args, **named: True)
def f(x): return 0", "assert math.isclose(f(1), 3.14)", ("failed", 0, 1)),
    ("modules that the program imports", "import math\ndef f(x): return 3.14", "assert math.isclose(f(1), 3.14)", ("passed", 1, 1)),
    ("many exceptions at once", "def f(x): raise ExceptionGroup('a', [ValueError(1)])",
     "try: f(1)\nexcept TypeError: pass\nassert True", ("error", 0, 1)),
    ("parts of a test", "def f(x): return 0", "
import unittest
class Tests(unittest.TestCase):
    def test_all(self):
        for i in range(3):
            with self.subTest(i=i): self.assertEqual(f(i), i + 1)", ("failed", 0, 1)),
    ("half of a character", "def f(x): return '\\ud800'", "
import unittest
class Tests(unittest.TestCase):
    def test_all(self): self.assertEqual(f(1), 'a')", ("failed", 0, 1)),
    ("named tuples and times", "
from collections import namedtuple
from datetime import datetime
Pair = namedtuple('Pair', 'a b')
def f(x): return Pair(x, datetime(2020, 1, 2, 3))", "
from datetime import datetime
assert f(1) == (1, datetime(2020, 1, 2, 3))
assert f(1).a == 1", ("passed", 2, 2)),
    ("large values that are given back", "def f(x): return 'x' * (9 << 20)\ndef g(x): return 1",
     "assert g(4 * f(1)) == 1", ("out_of_memory", 0, 1)),
    ("a class that derives from a list", "
class Stack(list):
    def push(self, x): self.append(x)
    def __add__(self, other): return Stack([*self, *other])", "
s = Stack()
s.push(1)
assert s == [1] and len(s) == 1 and s[0] == 1
assert s + [2] == [1, 2]
assert s != [2]", ("passed", 3, 3)),
    ("a list that equals everything", "
class All(list):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
def f(x): return All()", "assert f(1) == [2]", ("failed", 0, 1)),
    ("operators", "
class Length:
    def __init__(self, x): self.x = x
    def __add__(self, other): return Length(self.x + other.x)
    def __rmul__(self, n): return Length(n * self.x)
    def __lt__(self, other): return True", "assert (Length(1) + 2 * Length(3)).x == 7", ("passed", 1, 1)),
    ("an object that is less than everything", "
class Least:
    def __lt__(self, other): return True
def f(x): return Least()", "assert f(1) < 5", ("error", 0, 1)),
    ("arguments by name that are changed", "def f(items): items.sort()",
     "items = [2, 1]\nf(items=items)\nassert items == [1, 2]", ("passed", 1, 1)),
    ("two names of Python", "def min(x): return 0\ndef max(x): return 0",
     "assert min([3, 1]) == 1\nassert max([3, 1]) == 3", ("failed", 0, 2)),
    ("a function of the tests gives what cannot be given", "def f(g):\n    g('a')\n    return 0",
     "assert f(iter) == 1", ("error", 0, 1)),
    ("nothing of the program", "pass", "assert sum([1, 2]) == 3", ("failed", 0, 1)),
    ("an exception that the tests wait for", "def f(x): raise ValueError(x)",
     "try: f(1)\nexcept ValueError: pass\nelse: assert False", ("passed", 1, 1)),
    ("tests that hide the end of the program", "import os\ndef f(x): os._exit(0)", "try: f(1)\nexcept: pass\nassert True", ("failed", 0, 1)),
];

#[test]
fn tests_of_python_see_plain_data() {
    let all = TESTS_OF_PYTHON.iter().map(|(id, program, tests, _)| (*id, *program, *tests));
    let project = Project::new(WORKFLOW).with("answers.jsonl", rows(all)).ran();
    let found = project.rows("executed");
    every(TESTS_OF_PYTHON.iter().map(|case| (case.0, case)), |(id, _, _, wanted)| {
        let row = found.iter().find(|row| row["id"] == *id).unwrap();
        let got = values(row, "outcome tests_passed tests_total");
        assert_eq!(got, json!([wanted.0, wanted.1, wanted.2]), "{row}");
    });
}

#[test]
fn tests_that_are_wrong_are_no_verdict() {
    let all = [
        ("a list of tests", "def f(x): return 1", r#"["assert f(1) == 2", "assert f(2) == 2"]"#),
        ("broken", "def f(x): return 1", "assert ("),
        ("empty", "def f(x): return 1", ""),
        ("never called", "def f(x): return 1", "def check(g):\n    assert g(1) == 1"),
        (
            "parameters",
            "def f(x): return 1",
            "def test_a(path):\n    assert f(1) == 2\nassert f(1) == 1",
        ),
        ("unknown module", "def f(x): return 1", "import no_such_module\nassert f(1) == 1"),
        ("what decides", "def f(g): return g('1')", "assert f(eval) == 1"),
        ("worn object", "def f(x): return 1", "class P: pass\nassert f(P()) == 1"),
    ];
    let project = Project::new(WORKFLOW).with("answers.jsonl", rows(all)).ran();
    assert!(project.rows("executed").is_empty());
    let rejects = project.rows("executed.rejects");
    let words = [
        "join a list of tests",
        "not Python",
        "no test ran",
        "no test ran",
        "nothing calls test_a",
        "no_such_module",
        "tests cannot give a builtin_function_or_method to the answer",
        "tests cannot give a P to the answer",
    ];
    for (row, words) in rejects.iter().zip(words) {
        assert_eq!(row["rule"], "tests", "{row}");
        says(text(row, "reason"), &[words]);
    }
    assert_eq!(rejects.len(), words.len());
}

#[test]
fn each_run_is_kept() {
    let programs = ["return x + 1", "return 3", "return 1 + x"].map(|f| format!("def f(x): {f}"));
    let table = |n: usize| {
        let ids = ["a", "b", "c"];
        rows(ids.iter().zip(&programs).take(n).map(|(id, program)| (*id, program.as_str(), TESTS)))
    };
    let project = Project::new(WORKFLOW).with("answers.jsonl", table(2));
    let first = project.run_ok(&[]);
    assert_eq!(counts(&first, "executed"), (2, 0));
    let again = project.run_ok(&[]);
    again.all_hit();
    project.write("answers.jsonl", table(3));
    assert_eq!(counts(&project.run_ok(&[]), "executed"), (1, 2));
    // More repeats run only those that are new; results stay the same.
    let before = project.rows("executed");
    project.change("timeout: 2s", "timeout: 2s, repeats: 3");
    assert_eq!(counts(&project.run_ok(&[]), "executed"), (6, 3));
    assert_eq!(project.rows("executed"), before);
    // Another limit is another run.
    project.change("repeats: 3", "repeats: 1, output: 32KiB");
    assert_eq!(counts(&project.run_ok(&[]), "executed"), (3, 0));
}

/// Finished runs are kept if the program is interrupted or killed; those that were running are
/// repeated.
#[test]
fn interrupted_runs_keep_what_is_finished() {
    every([("INT", ("INT", Some(130))), ("KILL", ("KILL", None))], |(signal, code)| {
        let right = ("a", "def f(x): return x + 1", TESTS);
        let wrong = ("b", "def f(x): return 3", TESTS);
        let sleeps = ("c", "import time; time.sleep(600)", TESTS);
        let project = Project::new(WORKFLOW).with("answers.jsonl", rows([right, wrong, sleeps]));
        project.change("timeout: 2s", "timeout: 60s, concurrency: 3");
        let running = project.start(&[]);
        let folder = project.path("cache/downloads/answers");
        wait_for("the end of two runs", || {
            let lines = |file: &PathBuf| fs::read_to_string(file).unwrap().lines().count();
            files_below(&folder).iter().map(lines).sum::<usize>() == 2
        });
        running.signal(signal);
        let ended = running.finish();
        assert_eq!(ended.code, code, "{ended}");
        let fast = ("c", "def f(x): return 1 + x", TESTS);
        project.write("answers.jsonl", rows([right, wrong, fast]));
        assert_eq!(counts(&project.run_ok(&[]), "executed"), (1, 2));
    });
}

#[test]
fn a_reference_gives_the_time() {
    let project = Project::new(WORKFLOW).with(
        "answers.jsonl",
        rows([
            ("right", "def f(x): return x + 1", TESTS),
            ("spins", "def f(x):\n    while True: pass", TESTS),
            ("wrong tests", "def f(x): return x + 1", "assert f(1) == 3"),
        ]),
    );
    project.change(
        "timeout: 2s",
        "timeout: 60s, reference: \"def f(x): return x + 1\", timeout_factor: 3",
    );
    project.run_ok(&[]);
    assert_eq!(project.cells("executed", "id outcome"), ["right | passed", "spins | timeout"]);
    let rejected = project.only("executed.rejects");
    assert_eq!(values(&rejected, "id rule"), json!(["wrong tests", "reference"]));
}

/// Languages with the program that they need, a program, right and wrong tests.
#[rustfmt::skip]
const LANGUAGES: &[(&str, &str, &str, &str, &str)] = &[
    ("bash", "/usr/bin/bash", "f() { echo $(($1 + 1)); }", "[ $(f 1) = 2 ] || exit 1", "[ $(f 1) = 3 ] || exit 1"),
    ("node", "/usr/bin/node", "const f = x => x + 1;",
     "require('assert').equal(f(1), 2)", "require('assert').equal(f(1), 3)"),
    ("java", "/usr/bin/java", "class Main { static int f(int x) { return x + 1; }",
     "public static void main(String[] a) { assert f(1) == 2; } }", "public static void main(String[] a) { assert f(1) == 3; } }"),
    ("go", "/usr/bin/go", "package main\nimport \"os\"\nfunc f(x int) int { return x + 1 }",
     "func main() { if f(1) != 2 { os.Exit(1) } }", "func main() { if f(1) != 3 { os.Exit(1) } }"),
    ("rust", "/usr/bin/rustc", "fn f(x: i32) -> i32 { x + 1 }",
     "fn main() { assert_eq!(f(1), 2) }", "fn main() { assert_eq!(f(1), 3) }"),
    ("c", "/usr/bin/gcc", "#include <assert.h>\nint f(int x) { return x + 1; }",
     "int main(void) { assert(f(1) == 2); }", "int main(void) { assert(f(1) == 3); }"),
    ("cpp", "/usr/bin/g++", "#include <cassert>\nint f(int x) { return x + 1; }",
     "int main() { assert(f(1) == 2); }", "int main() { assert(f(1) == 3); }"),
];

#[test]
fn other_languages_are_compiled_and_run() {
    every(
        LANGUAGES.iter().map(|case| (case.0, case)),
        |(language, file, program, right, wrong)| {
            let all =
                [("right", *program, *right), ("wrong", *program, *wrong), ("broken", "(", "")];
            let project = Project::new(WORKFLOW).with("answers.jsonl", rows(all));
            project.change("timeout: 2s, memory: 256MiB", &format!("language: {language}"));
            if !Path::new(file).exists() {
                project.refused_once("missing-file", language);
                return;
            }
            project.run_ok(&[]);
            let found = project.rows("executed");
            let outcome = |id: &str| {
                let row = found.iter().find(|row| row["id"] == id).unwrap();
                text(row, "outcome").to_owned()
            };
            let verdicts = [outcome("right"), outcome("wrong")];
            assert_eq!(verdicts, ["passed", "failed"], "{found:?}");
            assert_ne!(outcome("broken"), "passed", "{found:?}");
            if ["bash", "node"].contains(language) {
                let exit = if *language == "bash" { "exit 0" } else { "process.exit(0)" };
                project.write("answers.jsonl", rows([("early", exit, *wrong)]));
                project.run_ok(&[]);
                assert_eq!(project.only("executed")["outcome"], "failed");
            }
        },
    );
}

#[test]
fn outputs_are_compared_outside() {
    let project = Project::steps(
        "  answers: { op: read, with: { path: answers.jsonl } }
  executed:
    op: execute
    from: answers
    with: { program: '{{ program }}', stdin: '{{ stdin }}', expected: '{{ expected }}' }
",
    );
    let row = |id: &str, program: &str, stdin: &str, expected: &str| {
        let row: Value =
            json!({"id": id, "program": program, "stdin": stdin, "expected": expected});
        format!("{row}\n")
    };
    let adds = "print(sum(map(int, input().split())))";
    let all = [
        row("right", adds, "1 2\n", "3"),
        row("spaces", "print('3  ')\nprint()", "", "3"),
        row("wrong", adds, "1 2\n", "4"),
        row("raises", adds, "x\n", "4"),
        row("silent", "", "1 2\n", "3"),
    ];
    project.write("answers.jsonl", all.concat());
    project.run_ok(&[]);
    let wanted = [
        "raises | error",
        "right | passed",
        "silent | failed",
        "spaces | passed",
        "wrong | failed",
    ];
    assert_eq!(project.cells("executed", "id outcome"), wanted);
}

#[test]
fn files_of_the_workflow_are_next_to_the_program() {
    let project = Project::new(WORKFLOW)
        .with("answers.jsonl", rows([("a", "from helper import f", TESTS)]))
        .with("helper.py", "def f(x): return x + 1");
    project.change("timeout: 2s", "timeout: 2s, files: [helper.py]");
    project.run_ok(&[]);
    assert_eq!(project.only("executed")["outcome"], "passed");
    project.write("helper.py", "def f(x): return 3");
    project.run_ok(&[]);
    assert_eq!(project.only("executed")["outcome"], "failed");
}

#[test]
fn programs_without_a_sandbox_need_consent_of_its_own_name() {
    let answers =
        rows([("a", "import os\ndef f(x): return x + os.path.exists('/etc/passwd')", TESTS)]);
    let project = Project::new(WORKFLOW).with("answers.jsonl", answers);
    project.change("timeout: 2s", "timeout: 2s, sandbox: none");
    let refused = project.run(&["run", "w.yaml", "--format", "json", "--allow", "exec"]).exits(2);
    assert_eq!(flags(&refused), ["unsandboxed"]);
    assert!(project.stored_nothing());
    project.run(&["run", "w.yaml", "--format", "json", "--allow", "unsandboxed"]).exits(0);
    assert_eq!(project.only("executed")["outcome"], "passed");
}

#[test]
fn mistakes_in_arguments_are_found_before_anything_runs() {
    every(
        [
            ("tests: '{{ tests }}', ", "", "missing-argument", "decides if a program is right"),
            ("timeout: 2s", "timeout: 2x", "wrong-value", "10s"),
            ("timeout: 2s", "timeout: 2s, timeout_factor: 3", "conflicting-arguments", "reference"),
            ("timeout: 2s", "timeout: 2s, expected: x", "conflicting-arguments", "both decide"),
            ("'{{ program }}'", "'{{ programs }}'", "unknown-column", "program"),
            ("timeout: 2s", "timeout: 2s, files: [x.py]", "missing-file", "x.py"),
        ]
        .map(|case| (case.1, case)),
        |(old, new, code, word)| {
            let project = Project::new(WORKFLOW).with("answers.jsonl", rows([("a", "", "")]));
            project.change(old, new);
            project.refused_once(code, word);
        },
    );
}
