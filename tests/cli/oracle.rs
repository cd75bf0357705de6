//! `oracle`: cases from examples and tests, and answers that `execute` judges by them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Project, every, says, text, values};
use crate::repository::{Mining, at, day, workflow};
use crate::row_streams::counts;

const WORKFLOW: &str = "galeras: 1
steps:
  methods: { op: methods, with: { dir: src } }
  oracles:
    op: oracle
    from: methods
    with: { seed: 1, root: src, per_method: 10, mutants: 20 }
  answers: { op: read, with: { path: answers.jsonl } }
  asked:
    op: sql
    from: { answers: answers, methods: methods }
    with:
      query: >
        SELECT answers.id, answers.code, methods.id AS method
        FROM answers JOIN methods ON answers.method = methods.qualified_name
  executed:
    op: execute
    from: { input: asked, oracle: oracles, modules: oracles.modules }
    with: { program: '{{ code }}', oracle_id: method, timeout: 5s, memory: 256MiB }
";

const SHOP: &str = r#"
"""A shop.

>>> Shop([3, 1]).total(2)
8
"""
import functools, random
from helper import double

class Shop:
    def __init__(self, prices):
        self.prices = prices

    def total(self, factor=1):
        """
        >>> Shop([]).total()
        0
        """
        if not self.prices:
            return 0
        return factor * sum(self.prices)

    def add(self, price):
        """
        >>> Shop([1]).add(2)
        >>> Shop([1]).add(-2)
        Traceback (most recent call last):
        ValueError
        """
        if price < 0:
            raise ValueError(price)
        self.prices.append(price)

    @property
    def least(self):
        """
        >>> Shop([2.5, 3]).least
        2.5
        """
        return min(self.prices)

    @staticmethod
    def named(name):
        """
        >>> Shop.named("a")
        {'name': 'a', 'half': 0.5}
        """
        return {"name": name, "half": len(name) / 2}

@functools.lru_cache
def twice(x):
    """
    >>> twice(4)
    8
    """
    return double(x)

def luck():
    """
    >>> luck() < 2
    True
    """
    return random.random()

def places():
    """
    >>> places() == []
    False
    """
    import sys
    return list(sys.path)

def unused():
    return 1
"#;

const HELPER: &str =
    "def double(x):\n    \"\"\"\n    >>> double(1)\n    2\n    \"\"\"\n    return 2 * x\n";

fn project(answers: &str) -> Project {
    Project::new(WORKFLOW)
        .with("src/shop.py", SHOP)
        .with("src/helper.py", HELPER)
        .with("answers.jsonl", answers)
}

/// Answers, the methods that they are for, and the outcomes that they may have.
#[rustfmt::skip]
const ANSWERS: &[(&str, &str, &str, &[&str])] = &[
    ("the original", "Shop.total", "def total(self, factor=1):\n        if not self.prices:\n            return 0\n        return factor * sum(self.prices)", &["passed"]),
    ("written in another way", "Shop.total", "def total(self, factor=1):\n    return sum(self.prices) * factor", &["passed"]),
    ("indented as a whole", "Shop.total", "    def total(self, factor=1):\n        return sum(self.prices) * factor", &["passed"]),
    ("another type", "Shop.total", "def total(self, factor=1):\n    return float(sum(self.prices) * factor)", &["failed"]),
    ("another value", "Shop.total", "def total(self, factor=1):\n    return sum(self.prices)", &["failed"]),
    ("equal to everything", "Shop.total", "def total(self, factor=1):\n    class Equal(int):\n        __eq__ = lambda self, other: True\n    return Equal(7)", &["failed"]),
    ("raises and appends", "Shop.add", "def add(self, price):\n    if price < 0: raise ValueError\n    self.prices += [price]", &["passed"]),
    ("leaves self as it is", "Shop.add", "def add(self, price):\n    if price < 0: raise ValueError", &["failed"]),
    ("raises another exception", "Shop.add", "def add(self, price):\n    if price < 0: raise KeyError\n    self.prices += [price]", &["failed"]),
    ("a property", "Shop.least", "def least(self):\n    return sorted(self.prices)[0]", &["passed", "failed"]),
    ("a wrong property", "Shop.least", "def least(self):\n    return max(self.prices)", &["failed"]),
    ("a float that differs little", "Shop.named", "def named(name):\n    return {'half': len(name) * 0.5 * (1 + 1e-12), 'name': name}", &["passed"]),
    ("a float that differs", "Shop.named", "def named(name):\n    return {'half': len(name) * 0.501, 'name': name}", &["failed"]),
    ("below a decorator", "twice", "def twice(x):\n    return double(x)", &["passed"]),
    ("imports itself", "twice", "def twice(x):\n    import shop\n    return shop.twice(x)", &["failed"]),
    ("reads itself", "twice", "def twice(x):\n    scope = {}\n    exec(open(__file__).read(), scope)\n    return scope['twice'](x)", &["failed"]),
    ("not Python", "twice", "def twice(x) return", &["error"]),
    ("another function", "twice", "def thrice(x):\n    return 3 * x", &["error"]),
    ("exits", "twice", "def twice(x):\n    import os\n    os._exit(0)", &["failed"]),
    ("does not end", "twice", "def twice(x):\n    while True: pass", &["timeout"]),
];

#[test]
fn answers_have_to_agree_with_the_original() {
    let line = |(id, method, code, _): &(&str, &str, &str, &[&str])| {
        format!("{}\n", json!({"id": id, "method": method, "code": code}))
    };
    let lines: String = ANSWERS.iter().map(line).collect();
    let none = json!({"id": "no oracle", "method": "unused", "code": "def unused(): pass"});
    let project = project(&format!("{lines}{none}\n")).ran();
    let found = project.rows("executed");
    every(ANSWERS.iter().map(|case| (case.0, case)), |(id, _, _, outcomes)| {
        let row = found.iter().find(|row| row["id"] == *id).unwrap();
        assert!(outcomes.contains(&text(row, "outcome")), "{row}");
        assert!(row["tests_total"].as_u64().unwrap() > 0 || *outcomes == ["error"], "{row}");
        assert!(row["mutation_score"].as_f64().unwrap() > 0.5, "{row}");
    });
    let rejected = project.only("executed.rejects");
    assert_eq!(values(&rejected, "id rule"), json!(["no oracle", "oracle"]));
}

#[test]
fn methods_have_cases_or_a_reason() {
    let project = project("{\"id\": \"a\", \"method\": \"twice\", \"code\": \"\"}\n").ran();
    let oracles = project.rows("oracles");
    let names: Vec<&str> = oracles.iter().map(|row| text(row, "qualified_name")).collect();
    for name in ["Shop.__init__", "Shop.total", "Shop.add", "Shop.least", "Shop.named", "twice"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let of = |name: &str| oracles.iter().find(|row| row["qualified_name"] == name).unwrap();
    let cases: Vec<Value> = serde_json::from_str(text(of("Shop.total"), "cases")).unwrap();
    let examples: Vec<Value> = cases
        .iter()
        .filter(|case| case["source"] == "doctests")
        .map(|case| values(case, "from expected"))
        .collect();
    for example in [
        json!(["doctest of shop", "['returned', 8, []]"]),
        json!(["doctest of shop.Shop.total", "['returned', 0, []]"]),
    ] {
        assert!(examples.contains(&example), "{examples:?}");
    }
    assert_eq!(values(of("Shop.total"), "coverage module"), json!([1.0, "shop"]));
    // Its examples are those of another module.
    assert!(of("double")["calls"].as_u64().unwrap() > 0, "{}", of("double"));
    let rejects = project.rows("oracles.rejects");
    let mut rules: Vec<Value> =
        rejects.iter().map(|row| values(row, "qualified_name rule")).collect();
    rules.sort_by_key(ToString::to_string);
    let named = |name, rule| json!([name, rule]);
    let expected = [("luck", "unstable"), ("places", "unstable"), ("unused", "calls")];
    assert_eq!(rules, expected.map(|(name, rule)| named(name, rule)));
    // Mutants that no case finds are still versions of the method.
    let mutants = project.rows("oracles.mutants");
    let total = of("Shop.total");
    let own = mutants.iter().filter(|row| row["id"] == total["id"]);
    let killed = own.filter(|row| row["killed"] == true).count() as u64;
    assert_eq!(total["mutants_killed"], killed);
    let module = project.rows("oracles.modules");
    let shop = module.iter().find(|row| row["module"] == "shop").unwrap();
    let files: Value = serde_json::from_str(text(shop, "files")).unwrap();
    assert_eq!(files, json!({"helper.py": HELPER}));
}

/// The mutants are damaged answers: those fail that a case finds.
#[test]
fn mutants_fail_as_often_as_the_mutation_score_tells() {
    let project = project("{\"id\": \"a\", \"method\": \"twice\", \"code\": \"\"}\n");
    project.append(
        "  damaged:
    op: execute
    from: { input: oracles.mutants, oracle: oracles, modules: oracles.modules }
    with: { program: '{{ code }}', timeout: 5s, memory: 256MiB }
",
    );
    project.run_ok(&[]);
    let damaged = project.rows("damaged");
    assert!(damaged.len() > 10, "{damaged:?}");
    for row in damaged {
        assert!(row["passed"] != row["killed"] || row["outcome"] == "timeout", "{row}");
    }
}

#[test]
fn a_changed_method_makes_the_oracles_of_its_module_again() {
    let project = project("{\"id\": \"a\", \"method\": \"twice\", \"code\": \"\"}\n");
    project.write(
        "src/other.py",
        "def f(x):\n    \"\"\"\n    >>> f(1)\n    2\n    \"\"\"\n    return x + 1\n",
    );
    // For each of the three modules, the examples and the oracles.
    assert_eq!(counts(&project.run_ok(&[]), "oracles"), (6, 0));
    project.run_ok(&[]).all_hit();
    project.edit("src/other.py", "x + 1", "1 + x");
    assert_eq!(counts(&project.run_ok(&[]), "oracles"), (2, 4));
}

/// Oracles of mined methods, by these tests of their repository.
fn mining(scripts: &str) -> Mining {
    Mining::of(&format!(
        "{}  oracles:
    op: oracle
    from: mined
    with: {{ seed: 1, scripts: ['{scripts}'], per_method: 5, mutants: 5 }}
",
        workflow("./r", "")
    ))
}

/// The tests of a repository are run in the tree of each commit.
#[test]
fn commits_bring_their_own_files() {
    let mining = mining("tests/test_*.py");
    let tests = "import unittest\nfrom pkg.a import f\n\nclass Tests(unittest.TestCase):\n    \
                 def test(self):\n        self.assertEqual(f(3), 3 + 1)\n";
    let first = at(day(1))
        .write("src/pkg/__init__.py", "")
        .write("src/pkg/b.py", "ONE = 1\n")
        .write("src/pkg/a.py", "from .b import ONE\n\ndef f(x):\n    return x + ONE\n")
        .write("tests/test_a.py", tests);
    mining.repo.commit(first);
    let second = at(day(2)).write(
        "src/pkg/a.py",
        "from .b import ONE\nimport no_such_module\n\ndef f(x):\n    return ONE + x\n",
    );
    mining.repo.commit(second);
    mining.mine();
    let oracles = mining.project.rows("oracles");
    let own: Vec<&Value> = oracles.iter().filter(|row| row["path"] == "src/pkg/a.py").collect();
    assert_eq!(own.len(), 1, "{oracles:?}");
    assert_eq!(values(own[0], "module calls"), json!(["pkg.a", 1]));
    let cases: Vec<Value> = serde_json::from_str(text(own[0], "cases")).unwrap();
    let expected = ["['returned', 4, []]", "test_a.py"];
    assert!(cases.iter().any(|case| values(case, "expected from") == json!(expected)), "{cases:?}");
    let rejects = mining.project.rows("oracles.rejects");
    let reason = rejects.iter().find(|row| row["path"] == "src/pkg/a.py").unwrap();
    says(text(reason, "reason"), &["no_such_module"]);
}

/// A test file makes the same calls in all commits that leave what it reads.
#[test]
fn tests_run_once_for_the_commits_that_leave_their_files() {
    let mining = mining("tests/*.txt");
    let tests = |name: &str| format!(">>> from pkg.{name} import f\n>>> f(3)\n4\n");
    let module = |sum: &str| format!("def f(x):\n    return {sum}\n");
    let first = at(day(1))
        .write("pkg/__init__.py", "")
        .write("pkg/a.py", module("x + 1"))
        .write("pkg/b.py", module("x + 1"))
        .write("tests/a.txt", tests("a"))
        .write("tests/b.txt", tests("b"));
    mining.repo.commit(first);
    mining.repo.commit(at(day(2)).write("pkg/a.py", module("1 + x")));
    mining.repo.commit(at(day(3)).write("pkg/b.py", module("1 + x")));
    // The tests of each version of a module, and the oracles of four methods.
    assert_eq!(counts(&mining.project.run_ok(&[]), "oracles"), (4 + 4, 2));
    let oracles = mining.project.rows("oracles");
    assert_eq!(oracles.iter().filter(|row| row["calls"] == 1).count(), 4, "{oracles:?}");
    mining.repo.commit(at(day(4)).write("pkg/b.py", module("x - -1")));
    assert_eq!(counts(&mining.project.run_ok(&[]), "oracles"), (1 + 1, 7 + 4));
}

/// A test that waits for ever is given up, and one that never ends does not lose the calls before it.
#[test]
fn tests_that_do_not_end_lose_nothing_else() {
    let old = "root: src, per_method: 10, mutants: 20";
    let new = "root: src, timeout: 2s, mutants: 0, scripts: ['tests.py']";
    let answer = "{\"id\": \"a\", \"method\": \"twice\", \"code\": \"\"}\n";
    let project = project(answer).with("src/tests.py", UNENDING);
    project.change(old, new);
    let project = project.ran();
    let oracles = project.rows("oracles");
    let twice = oracles.iter().find(|row| row["qualified_name"] == "twice").unwrap();
    assert_eq!(twice["calls"], 1, "{oracles:?}");
    assert!(text(twice, "cases").contains("twice(50)"), "{twice}");
    let rejects = project.rows("oracles.rejects");
    let unused = rejects.iter().find(|row| row["qualified_name"] == "unused").unwrap();
    says(text(unused, "reason"), &["nothing calls it", "tests.py", "`timeout`"]);
}

const UNENDING: &str = "import threading, unittest
import shop

class Tests(unittest.TestCase):
    def test_1(self):
        lock = threading.Lock()
        with lock:
            lock.acquire()

    def test_2(self):
        shop.twice(50)

    def test_3(self):
        while True:
            try:
                [].pop()
            except Exception:
                pass

    def test_4(self):
        shop.unused()
";

/// A module of the interpreter's own library may import the compiled modules beside it, as answers do.
#[test]
fn the_interpreters_own_library_has_oracles() {
    let folder = "import os; print(os.path.dirname(os.__file__), end='')";
    let mut python = Command::new("python3");
    let output = python.args(["-c", folder]).env("PATH", "/usr/local/bin:/usr/bin:/bin").output();
    let folder = String::from_utf8(output.unwrap().stdout).unwrap();
    let answer = "def encode(self, o):\n    return ''.join(self.iterencode(o))";
    let answer = json!({"id": "a", "method": "JSONEncoder.encode", "code": answer});
    let project = project(&format!("{answer}\n")).with(
        "w.yaml",
        WORKFLOW
            .replace("dir: src", &format!("dir: {folder}, include: [json/encoder.py]"))
            .replace("root: src", &format!("root: {folder}")),
    );
    project.run_ok(&["--allow", &format!("read:{folder}")]);
    let executed = project.rows("executed");
    assert_eq!(values(&executed[0], "outcome"), json!(["passed"]), "{executed:?}");
}

/// An answer that looks for the library's copy of its module finds none.
#[test]
fn the_library_does_not_have_the_original() {
    let project = project("").with(
        "w.yaml",
        WORKFLOW
            .replace("{ dir: src }", "{ corpus: python-stdlib, include: [heapq.py] }")
            .replace("root: src, ", ""),
    );
    let finds = "def merge(*iterables, key=None, reverse=False):
    import glob, importlib.util
    for path in glob.glob('/usr/lib*/python3*/heapq.py') + glob.glob('/usr/local/lib*/python3*/heapq.py'):
        spec = importlib.util.spec_from_file_location('original', path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.merge(*iterables, key=key, reverse=reverse)
    raise FileNotFoundError";
    let right = "def merge(*iterables, key=None, reverse=False):
    yield from sorted([x for i in iterables for x in i], key=key, reverse=reverse)";
    let lines = [("finds", finds), ("right", right)];
    let lines =
        lines.map(|(id, code)| format!("{}\n", json!({"id": id, "method": "merge", "code": code})));
    project.write("answers.jsonl", lines.concat());
    project.run_ok(&[]);
    let found = project.rows("executed");
    let passed = |id: &str| {
        let row = found.iter().find(|row| row["id"] == id).unwrap();
        (row["tests_passed"].as_u64().unwrap(), row["tests_total"].as_u64().unwrap())
    };
    assert_eq!(passed("finds").0, 0, "{found:?}");
    assert!(passed("right").0 > 0, "{found:?}");
}

/// The interpreter has the other modules of a package, also where its `__init__.py` is hidden.
#[test]
fn the_methods_of_a_package_pass_their_own_cases() {
    let project = project("{\"id\": \"a\", \"method\": \"loads\", \"code\": \"\"}\n").with(
        "w.yaml",
        WORKFLOW
            .replace("{ dir: src }", "{ corpus: python-stdlib, include: [json/__init__.py] }")
            .replace("root: src, ", "")
            .replace("input: asked", "input: oracles")
            .replace("oracle_id: method", "oracle_id: id"),
    );
    project.run_ok(&[]);
    let found = project.rows("executed");
    let names: Vec<&str> = found.iter().map(|row| text(row, "qualified_name")).collect();
    assert!(["dumps", "loads"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(found.iter().all(|row| row["passed"] == true), "{found:?}");
}

/// A module that an answer cannot be given as it is has no oracle. The others pass their own cases.
#[test]
fn originals_pass_or_are_left_out() {
    let example = "\n    \"\"\"\n    >>> f() and None\n    \"\"\"\n    return ";
    let module = |head: &str, body: &str| format!("{head}\ndef f():{example}{body}\n");
    let here = "import os\nHERE = os.path.dirname(__file__)\n";
    let project = project("{\"id\": \"a\", \"method\": \"twice\", \"code\": \"\"}\n")
        .with("src/answer.py", module("", "__name__"))
        .with("src/uses_answer.py", module("import answer", "answer.f()"))
        .with(
            "src/looks_around.py",
            module("try: import tree\nexcept ImportError: tree = None", "tree is None"),
        )
        .with("src/reads.py", module(here, "open(HERE + '/data.txt').read()"))
        .with("src/data.txt", "é")
        .with("src/lists.py", module(&format!("{here}NAMES = os.listdir(HERE)"), "len(NAMES)"))
        .with(
            "w.yaml",
            WORKFLOW
                .replace("input: asked", "input: oracles")
                .replace("oracle_id: method", "oracle_id: id"),
        );
    let bytes_read = "open(HERE + '/data.bin', 'rb').read()";
    let bytes = module("# -*- coding: latin-1 -*-", "'\u{e9}'");
    let bytes: Vec<u8> = bytes.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let project = project
        .with("src/latin.py", bytes)
        .with("src/data.bin", b"\xff")
        .with("src/binary.py", module(here, bytes_read))
        .with("src/needs.py", module(&format!("{here}DATA = {bytes_read}"), "DATA"))
        .ran();
    let executed = project.rows("executed");
    let of = |row: &&Value| text(row, "qualified_name") == "f";
    let paths: BTreeSet<&str> = executed.iter().filter(of).map(|row| text(row, "path")).collect();
    assert_eq!(
        Vec::from_iter(paths),
        ["answer.py", "looks_around.py", "reads.py", "uses_answer.py"]
    );
    assert!(executed.iter().all(|row| row["passed"] == true), "{executed:?}");
    let rejects = project.rows("oracles.rejects");
    let mut found: Vec<&Value> = rejects.iter().filter(of).collect();
    found.sort_by(|a, b| text(a, "path").cmp(text(b, "path")));
    let words = ["not UTF-8", "iso-8859-1", "lists the folder", "needs data.bin"];
    assert_eq!(found.len(), words.len(), "{rejects:?}");
    for (row, word) in found.into_iter().zip(words) {
        says(text(row, "reason"), &[word]);
    }
}

#[test]
fn mistakes_in_arguments_are_found_before_anything_runs() {
    every(
        [
            ("root: src", "root: none", "missing-file", "none"),
            ("seed: 1, root: src", "seed: 1, root: src, timeout: 5x", "wrong-value", "10m"),
            ("seed: 1, root: src", "seed: 1, root: src, python: none", "missing-file", "none"),
            (
                "seed: 1, root: src",
                "seed: 1, root: src, scripts: ['[']",
                "bad-pattern",
                "character class",
            ),
            (", modules: oracles.modules", "", "missing-argument", "modules"),
            ("oracle_id: method", "oracle_id: methods", "unknown-column", "method"),
            ("timeout: 5s", "timeout: 5s, expected: x", "conflicting-arguments", "oracle"),
        ]
        .map(|case| (case.1, case)),
        |(old, new, code, word)| {
            let project = project("{\"id\": \"a\", \"method\": \"twice\", \"code\": \"\"}\n");
            project.change(old, new);
            project.refused_once(code, word);
        },
    );
}

/// Values, recorded calls and mutants, compared with those that are worked out by hand.
#[test]
fn the_programs_agree_with_the_reference() {
    let script = "tests/reference/oracle.py";
    let script = ["", "..", "../.."].map(|up| Path::new(up).join(script));
    let script = script.iter().find(|path| path.is_file()).unwrap();
    let done = Command::new("python3").arg(script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "ok", "{done:?}");
}
