//! `workflows/executed.yaml` on some modules of the standard library, answers that run in
//! `bugfix.yaml` and `testgen.yaml` on small repositories, and effects of recorded calls. No model: an
//! n-gram model, an echo, the reference, mutants, and a server on the loopback address.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use crate::evaluations::{block, study};
use crate::harness::{Project, text, wait_for};
use crate::paper::{Shipped, table};
use crate::repository::{Repository, at, day};
use galeras_test_servers::chat_api::{ChatApi, ChatRequest, MODEL};

const FILES: [(&str, &str); 2] = [
    ("executed.yaml", include_str!("../../workflows/executed.yaml")),
    ("oracles.yaml", include_str!("../../workflows/oracles.yaml")),
];

fn number(line: &BTreeMap<String, String>, column: &str) -> f64 {
    line[column].parse().unwrap_or_else(|_| panic!("{column}: {line:?}"))
}

/// The method passes its oracle, its beginning does not, and a mutant fails where the oracle kills it.
#[test]
fn methods_of_the_standard_library_are_completed_and_run() {
    let project = Project::empty();
    FILES.iter().for_each(|(name, text)| project.write(name, text));
    // Modules that import nothing newer than Python 3.11.
    let set = [
        "include=[\"heapq.py\", \"ipaddress.py\"]",
        "n=12",
        "mutants=8",
        "per_method=8",
        "min_mutation_score=0.3",
    ];
    project.run_file("executed.yaml", &set).exits(0);
    let read = |name: &str| table(&project.read(&format!("executed/{name}.csv")));
    let board = read("leaderboard");
    let tasks: BTreeSet<&str> = board.iter().map(|line| line["task"].as_str()).collect();
    assert_eq!(tasks.into_iter().collect::<Vec<_>>(), ["completion", "from_docstring"]);
    // Five scores under two prompts for each task.
    assert_eq!(board.len(), 2 * 5 * 2);
    for line in &board {
        if line["score"] == "pass@1" {
            assert_eq!((number(line, "echo"), number(line, "reference")), (0.0, 1.0), "{line:?}");
            let [low, mean, high] = ["ci_low", "mean", "ci_high"].map(|name| number(line, name));
            assert!(0.0 <= low && low <= mean && mean <= high && high <= 1.0, "{line:?}");
        }
        assert!(number(line, "cases") >= 3.0 && number(line, "mutation_score") >= 0.3, "{line:?}");
    }
    let set_rows = |step: &str| project.rows_of("executed.yaml", step, &set);
    // A mutant that no case kills fails only if its module calls it as it is imported: no case passes.
    for row in set_rows("scored_baselines").iter().filter(|row| row["baseline"] == "damaged") {
        let fails = row["passed"] == false && row["outcome"] != "timeout";
        let breaks_import = row["tests_passed"] == 0;
        assert!(fails == row["killed"] || fails && breaks_import, "{row}");
    }
    assert!(!read("damaged").is_empty());
    // No method fails its own oracle.
    let broken = set_rows("asked/sound.rejects");
    assert!(broken.iter().all(|row| row["rule"] == "beginning_fails"), "{broken:?}");
    // Four scores of two groups of answers for each task; each has a number or a reason.
    let correlations = read("correlations");
    assert_eq!(correlations.len(), 2 * 2 * 4);
    for line in &correlations {
        let is_number = line["status"] == "ok" && number(line, "coefficient").abs() <= 1.0;
        assert!(is_number || !line["reason"].is_empty(), "{line:?}");
    }
    for figure in ["passing", "correlations"] {
        assert!(project.read(&format!("executed/{figure}.svg")).contains("<svg"), "{figure}");
    }
    project.run_file("executed.yaml", &set).exits(0).all_hit();
}

/// Functions whose examples write a file, connect to a server and leave a process.
const EFFECTS: &str = "
import socket, subprocess

def writes(path):
    \"\"\"
    >>> writes('FILE')
    False
    \"\"\"
    try:
        with open(path, 'w') as file:
            file.write('x')
    except OSError:
        return False
    return True

def connects(port):
    \"\"\"
    >>> connects(PORT)
    False
    \"\"\"
    try:
        socket.create_connection(('127.0.0.1', port), 5).close()
    except OSError:
        return False
    return True

def leaves(seconds):
    \"\"\"
    >>> leaves(SECONDS)
    True
    \"\"\"
    command = ['sleep', str(seconds)]
    subprocess.Popen(command, start_new_session=True)
    return True
";

#[test]
fn recorded_calls_change_nothing_outside_the_sandbox() {
    const SECONDS: &str = "31415.926";
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let project = Project::steps(
        "  methods: { op: methods, with: { dir: lib } }
  oracles: { op: oracle, from: methods, with: { seed: 1, root: lib } }
",
    );
    let file = project.path("written");
    let text = EFFECTS.replace("FILE", file.to_str().unwrap());
    project.write("lib/effects.py", text.replace("PORT", &port).replace("SECONDS", SECONDS));
    project.run_ok(&[]);
    let rejects = project.rows("oracles.rejects");
    assert_eq!(project.rows("oracles").len() + rejects.len(), 3, "{rejects:?}");
    assert!(!file.exists());
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let is_left = || {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.map(|line| String::from_utf8_lossy(&line).into_owned()).any(|l| l.contains(SECONDS))
    };
    wait_for("the end of the process", || !is_left());
}

/// Methods with a bug, the word that has it, and what it should be; and calls of the method.
#[rustfmt::skip]
const METHODS: [(&str, &str, &str, &str); 6] = [
    ("def total(items):\n    result = 0\n    for item in items:\n        result -= item\n    return result\n",
     "result -=", "result +=", "total([1, 2, 3]), total([4]), total([])"),
    ("def longest(words):\n    best = ''\n    for word in words:\n        if len(word) < len(best):\n            best = word\n    return best\n",
     "< len", "> len", "longest(['a', 'bcd', 'ef']), longest(['xy']), longest([])"),
    ("def backwards(text):\n    letters = list(text)\n    letters.sort()\n    return ''.join(letters)\n",
     "letters.sort()", "letters.reverse()", "backwards('abc'), backwards('cab'), backwards('')"),
    ("def clamp(value, low, high):\n    if value < low:\n        return high\n    if value > high:\n        return high\n    return value\n",
     "low:\n        return high", "low:\n        return low", "clamp(1, 2, 3), clamp(4, 2, 3), clamp(2, 1, 3)"),
    ("def countdown(start):\n    steps = []\n    while start >= 0:\n        steps.append(start)\n        start -= 1\n    return steps\n",
     "start >= 0", "start > 0", "countdown(3), countdown(1), countdown(0)"),
    ("def initials(name):\n    parts = name.split()\n    first = [part[-1].upper() for part in parts]\n    return '.'.join(first)\n",
     "part[-1]", "part[0]", "initials('ada lovelace'), initials('x'), initials('')"),
];

/// The method of a text, and its place in the list.
fn method_of(code: &str) -> (usize, (&str, &str)) {
    let found = METHODS.iter().position(|method| name_of(method.0) == name_of(code)).unwrap();
    (found, (METHODS[found].1, METHODS[found].2))
}

fn fixed(code: &str) -> String {
    let (_, (bug, fix)) = method_of(code);
    code.replacen(bug, fix, 1)
}

/// The file of the methods, of which so many are fixed.
fn module(done: usize) -> String {
    let of = |(at, method): (usize, &(&str, &str, &str, &str))| match at < done {
        true => fixed(method.0),
        false => method.0.to_owned(),
    };
    METHODS.iter().enumerate().map(of).collect::<Vec<_>>().join("\n\n")
}

/// The name of a method, which is the word after `def`.
fn name_of(code: &str) -> &str {
    code.split("def ").nth(1).unwrap().split('(').next().unwrap()
}

/// A file that calls the methods with `test_…` functions.
fn tests() -> String {
    let test = |method: &(&str, &str, &str, &str)| {
        let (name, calls) = (name_of(method.0), method.3);
        format!("def test_{name}():\n    results = [{calls}]\n    assert len(results) == 3\n")
    };
    let tests: Vec<String> = METHODS.iter().map(test).collect();
    format!("from lib import *\n\n\n{}", tests.join("\n\n"))
}

fn repository(study: &Shipped, fixes: bool) {
    let repo = Repository::bare(study.project.path("a"));
    let all = METHODS.len();
    let first = at(day(1)).message("Add the library and its tests");
    let done = if fixes { 0 } else { all };
    repo.commit(first.write("lib.py", module(done)).write("test_lib.py", tests()));
    for done in (1..=all).filter(|_| fixes) {
        let name = name_of(METHODS[done - 1].0);
        let message = format!("Fix the result of {name} for some arguments");
        repo.commit(at(day(1 + done as i64)).message(&message).write("lib.py", module(done)));
    }
}

/// The means in the table of what passed, by score and treatment, between echo and reference.
fn means(study: &Shipped, path: &str) -> BTreeMap<(String, String), [f64; 3]> {
    let lines = study.csv(path).into_iter().filter(|line| line["measure"] == "mean");
    let of = |line: &BTreeMap<String, String>| {
        ["echo", "estimate", "reference"].map(|name| line[name].parse().unwrap_or(f64::NAN))
    };
    lines.map(|line| ((line["name"].clone(), line["treatment"].clone()), of(&line))).collect()
}

fn run(study: &mut Shipped, api: &ChatApi) {
    study.set("base_url", &api.url());
    study.set("model", MODEL);
    study.set("execute", "oracle");
    study.set("scripts", "[test_lib.py]");
    study.run(&[]).exits(0);
}

/// Fixes half of the methods, the first of the list.
fn fixer(asked: &ChatRequest) -> String {
    let said = asked.said().join("\n");
    let code = block(&said);
    let is_fixed = method_of(code).0 < METHODS.len() / 2;
    let code = if is_fixed { fixed(code) } else { code.to_owned() };
    format!("```python\n{code}\n```")
}

#[test]
fn a_fix_is_right_if_it_does_what_the_fixed_method_does() {
    let (mut study, api) = study("bugfix.yaml", fixer);
    repository(&study, true);
    run(&mut study, &api);
    assert_eq!(study.rows("evaluation/testbed").len(), METHODS.len());
    let means = means(&study, "bugfix/passed.csv");
    for treatment in ["all", "control", "told", "stepwise"] {
        let found = means[&("passed".to_owned(), treatment.to_owned())];
        assert_eq!(found, [0.0, 0.5, 1.0], "{treatment}");
    }
    // A fix passes if its text is that of the reference, here.
    for row in study.rows("evaluation/judged") {
        assert_eq!(row["passed"].as_f64(), row["nearer"].as_f64(), "{row}");
        assert!(row["mutation_score"].as_f64().unwrap() > 0.0, "{row}");
    }
    // Without `execute=oracle` nothing runs, and the table is empty.
    study.set("execute", "none");
    let ran = study.run(&[]).exits(0).statuses();
    assert!(!ran.contains("/oracles="), "{ran}");
    assert_eq!(study.csv("bugfix/passed.csv").len(), 0);
}

/// Tests that look at results, one that does not, one that is wrong, and none, by the method.
fn tester(asked: &ChatRequest) -> String {
    let said = asked.said().join("\n");
    let test = match name_of(&said) {
        "total" => "from lib import total\n\ndef test_it():\n    assert total([1, 2, 3]) == 6",
        "longest" => "def test_it():\n    words = ['a', 'bcd']\n    assert len(words) == 2",
        "backwards" => "def test_it():\n    assert backwards('abc') == 'abc'",
        "clamp" => "def test_it(fixture):\n    assert clamp(fixture, 2, 3)",
        "countdown" => "import lib\n\ndef test_it():\n    assert lib.countdown(3) == [3, 2, 1]",
        _ => "I cannot write a test.",
    };
    format!("```python\n{test}\n```")
}

#[test]
fn a_test_is_good_if_the_method_passes_it_and_a_mutant_does_not() {
    let (mut study, api) = study("testgen.yaml", tester);
    repository(&study, false);
    run(&mut study, &api);
    let mut found = BTreeMap::new();
    for row in study.rows("evaluation/judged") {
        let scores = ["holds", "passed", "mutants_failed"].map(|name| row[name].as_f64().unwrap());
        let (holds, passed, failed) = (scores[0] == 1.0, scores[1] == 1.0, scores[2] > 0.0);
        found.insert(text(&row, "callee").to_owned(), (holds, passed, failed));
    }
    for (name, wanted) in [
        ("total", (true, true, true)),
        ("longest", (true, false, false)),
        ("backwards", (false, false, false)),
        ("clamp", (false, false, false)),
        ("countdown", (true, true, true)),
        ("initials", (false, false, false)),
    ] {
        assert_eq!(found[name], wanted, "{name}");
    }
    // The method itself is not a test.
    let means = means(&study, "testgen/passed.csv");
    assert_eq!(means[&("passed".to_owned(), "all".to_owned())][0], 0.0);
}
