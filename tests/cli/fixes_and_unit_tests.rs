//! `workflows/fixes.yaml` and `workflows/unit_tests.yaml` on small repositories: which pairs they
//! find, and which not.

use serde_json::{Value, json};

use crate::harness::{has, text};
use crate::paper::{Shipped, file, method, sorted};
use crate::repository::{Repository, at, day};

fn columns(row: &Value) -> String {
    row.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// A method of `seed`, whose body depends on a number.
fn version(name: &str, number: usize) -> String {
    let seed = name.bytes().fold(7, |seed: u64, byte| seed * 131 % 1_000_003 + u64::from(byte));
    method(name, seed, None, number)
}

fn long(number: usize) -> String {
    let lines: String = (0..22).map(|line| format!("    a{line} = {number}\n")).collect();
    format!("def long(x):\n{lines}    return x\n")
}

/// The versions of the methods of a repository: m0 to m11, and some of other forms.
struct Module {
    numbers: [usize; 12],
    spaces: &'static str,
    long: usize,
    line: usize,
    more: bool,
}

impl Module {
    fn text(&self) -> String {
        let numbers = self.numbers.iter().enumerate();
        let mut methods: Vec<String> =
            numbers.map(|(n, v)| version(&format!("m{n}"), *v)).collect();
        methods.push(format!("def spaced(a):\n    b = a{}+ 1\n    return b\n", self.spaces));
        methods.push(long(self.long));
        methods.push(format!("def line(a):\n    return a + {}\n", self.line));
        if self.more {
            methods.push(version("more", 1));
        }
        file(&methods)
    }
}

/// A history with a commit for every rule; the ids of the commits in their order.
fn fixes(fixed: &Shipped, name: &str) -> Vec<String> {
    let repo = Repository::bare(fixed.project.path(name));
    let mut module = Module { numbers: [1; 12], spaces: " ", long: 1, line: 1, more: false };
    let mut ids = Vec::new();
    let mut next = 1;
    let mut commit = |message: &str, module: &Module| {
        let made = at(day(next)).message(message).write("pkg/m.py", module.text());
        ids.push(repo.commit(made));
        next += 1;
    };
    commit("Add the first module of it", &module);
    for (message, methods) in [
        ("Fix the number of the first", &[0][..]),
        ("Fixes #12: the second crashes on None", &[1, 2]),
        ("Fix a typo in the third of them", &[3]),
        ("Fix all of them at once", &[4, 5, 6]),
        ("Refactor the seventh of the methods", &[7]),
        ("Add a prefix and some suffixes to it", &[7]),
        ("Correct its result\n\nThis fixes a bug.", &[7]),
        ("FIXED: two bugs of the eighth method", &[8]),
        ("Fix the docs of the ninth method", &[9]),
        ("Repair a regression in the tenth\n\nOnly a typo, and docs.", &[10]),
        ("Fix the number of the first again", &[0]),
        ("Format the eleventh after the crash", &[11]),
    ] {
        methods.iter().for_each(|n| module.numbers[*n] += 1);
        commit(message, &module);
    }
    module.spaces = "  ";
    commit("Fix the spaces of it", &module);
    module.more = true;
    commit("Fix it with one method more", &module);
    module.long = 2;
    commit("Fix the long one at last", &module);
    module.line = 2;
    commit("Fix the line of the method", &module);
    for n in [1, 2, 8, 10] {
        module.numbers[n] += 1;
        commit("Fix the number of it again", &module);
    }
    ids
}

/// `commit method` of rows, where a commit is its number in the history.
fn places(rows: &[Value], commits: &[String]) -> Vec<String> {
    let place = |row: &Value| {
        let commit = commits.iter().position(|id| id == text(row, "commit_id")).unwrap();
        format!("{commit:02} {}", text(row, "qualified_name"))
    };
    let mut places: Vec<String> = rows.iter().map(place).collect();
    places.sort_unstable();
    places
}

/// `rule commit method` of rejected rows.
fn rejected(rows: &[Value], commits: &[String]) -> Vec<String> {
    let one = |row: &Value| {
        format!("{} {}", text(row, "rule"), places(std::slice::from_ref(row), commits)[0])
    };
    let mut all: Vec<String> = rows.iter().map(one).collect();
    all.sort_unstable();
    all
}

#[test]
fn fixes_are_told_by_message_size_and_what_they_change() {
    let fixed = Shipped::new("fixes.yaml", "./a");
    let commits = fixes(&fixed, "a");
    fixed.run(&[]).exits(0);
    let rows = fixed.rows("testbed");
    assert_eq!(places(&rows, &commits), ["01 m0", "02 m1", "02 m2", "08 m8", "10 m10"]);
    let expected = "id repo url commit_id commit_time commit_message path fun_name qualified_name \
                    start_line end_line buggy fixed changed_lines signature docstring d_n_words \
                    code_no_docstring ast_errors n_ast_errors ast_levels n_ast_nodes n_identifiers complexity nloc \
                    token_counts n_words vocab_size n_whitespaces n_returns parameters";
    for row in &rows {
        assert_eq!(columns(row), expected);
        let name = text(row, "qualified_name");
        assert_eq!(text(row, "buggy"), version(name, 1).trim_end());
        assert_eq!(text(row, "fixed"), version(name, 2).trim_end());
        // The complexity is of for, if and or.
        has(row, "repo path changed_lines nloc complexity", json!(["a", "pkg/m.py", 2, 7, 4]));
    }
    // The second fix of a method is a duplicate of the first, which came before.
    let duplicates = fixed.rows("unique.rejects");
    assert_eq!(places(&duplicates, &commits), ["11 m0", "17 m1", "18 m2", "19 m8", "20 m10"]);
    for row in &duplicates {
        let first = rows.iter().find(|first| first["qualified_name"] == row["qualified_name"]);
        assert_eq!(row["duplicate_of"], first.unwrap()["id"]);
    }
    let mut rules = rejected(&fixed.rows("fixes.rejects"), &commits);
    // The methods of the first commit fix nothing.
    let added = |rule: &String| rule.starts_with("says_that_it_fixes 00 ");
    assert_eq!(rules.iter().filter(|rule| added(rule)).count(), 15);
    rules.retain(|rule| !added(rule));
    let expected = "changes_few_lines 15 long, has_a_before 14 more, method_changed 13 spaced, \
                    no_one_line_body 16 line, says_no_typo 03 m3, says_no_typo 09 m9, \
                    says_no_typo 12 m11, says_that_it_fixes 05 m7, says_that_it_fixes 06 m7, \
                    says_that_it_fixes 07 m7, touches_few_methods 04 m4, \
                    touches_few_methods 04 m5, touches_few_methods 04 m6";
    assert_eq!(rules.join(", "), expected);
}

#[test]
fn a_larger_fix_is_one_if_the_params_say_so_and_a_fork_gives_duplicates() {
    let mut fixed = Shipped::new("fixes.yaml", "./a");
    let commits = fixes(&fixed, "a");
    for (methods, lines, wanted) in [
        ("3", "44", "01 m0, 02 m1, 02 m2, 04 m4, 04 m5, 04 m6, 08 m8, 10 m10, 15 long"),
        ("1", "43", "01 m0, 08 m8, 10 m10, 17 m1, 18 m2"),
    ] {
        fixed.set("max_methods", methods);
        fixed.set("max_lines", lines);
        fixed.run(&[]).exits(0);
        assert_eq!(places(&fixed.rows("testbed"), &commits).join(", "), wanted);
    }
    fixed.set("n", "2");
    fixed.run(&[]).exits(0);
    assert_eq!(fixed.rows("sampled").len(), 2);
    let fixed = Shipped::new("fixes.yaml", "./a,./b");
    let commits = fixes(&fixed, "a");
    assert_eq!(fixes(&fixed, "b"), commits, "the same commits");
    let outcome = fixed.run_human().exits(0);
    let rows = fixed.rows("testbed");
    assert_eq!(places(&rows, &commits), ["01 m0", "02 m1", "02 m2", "08 m8", "10 m10"]);
    assert_eq!(fixed.rows("unique.rejects").len(), 15);
    let checks = fixed.csv("fixes/checks.csv");
    let names: Vec<&str> = checks.iter().map(|row| row["rule"].as_str()).collect();
    assert_eq!(names.len(), 10);
    for check in &checks {
        let number = |name: &str| check[name].parse::<u32>().unwrap();
        assert_eq!(number("checked"), number("passed") + number("failed"), "{check:?}");
        let shown = |line: &&str| line.contains(&check["rule"]) && line.contains(&check["checked"]);
        assert!(outcome.stdout.lines().any(|line| shown(&line)), "{}", outcome.stdout);
    }
    for name in ["testbed", "rejected", "duplicates", "unparsed"] {
        assert!(fixed.project.path(&format!("fixes/{name}.parquet")).exists(), "{name}");
    }
    fixed.run(&[]).exits(0).all_hit();
}

fn test(name: &str, calls: &[&str]) -> String {
    let seed = name.bytes().fold(3, |seed: u64, byte| seed * 137 % 1_000_003 + u64::from(byte));
    let mut words = crate::paper::Numbers::new(seed);
    let called = |call: &&str| {
        let [a, b, c] = [words.word(), words.word(), words.word()];
        format!("    {a} = {call}({b}, {c}=1)\n    assert {a}.{} == 7\n", words.word())
    };
    let mut body: String = calls.iter().map(called).collect();
    let rest = words.words(12).replace(' ', ", ");
    body.push_str(&format!("    assertEqual([{rest}], None)\n"));
    format!("def {name}(self):\n{body}")
}

fn class(name: &str, methods: &[String]) -> String {
    let indented = methods.iter().flat_map(|method| method.lines());
    format!("class {name}:\n{}\n", indented.map(|line| format!("    {line}\n")).collect::<String>())
}

fn tests_and_methods(tested: &Shipped, name: &str) -> [String; 2] {
    let repo = Repository::bare(tested.project.path(name));
    let v = |name: &str| version(name, 1);
    let library = |number| {
        let names = ["parse", "render", "load", "test_connection", "runFast", "get_run"];
        let mut methods: Vec<String> = names.iter().map(|name| v(name)).collect();
        methods.push(version("parse_url", number));
        methods.push("def unmade(a):\n    pass\n    ...\n".into());
        methods.push("def shortcut(a):\n    return a\n".into());
        let store = class("Store", &[v("save"), v("run"), v("__enter__")]);
        file(&[methods, vec![store, class("Job", &[v("run")])]].concat())
    };
    let unit = class("TestStore", &[test("test_save_all", &["self.store.save", "load"])]);
    let tests = [
        test("test_parse_url", &["parse", "lib.parse_url"]),
        test("test_it_works", &["render"]),
        test("test_two_things", &["render", "load"]),
        test("test_nothing", &["print"]),
        // `run` is defined twice, and either may be meant.
        test("test_run", &["job.run"]),
        test("test_run_of_a_kind", &["job.run", "render"]),
        test("test_runs", &["job.run", "get_run"]),
        test("test_enter", &["store.__enter__"]),
        // A method of bytes, not `Store.save`.
        test("test_save_of_bytes", &["b''.save"]),
        test("test_unmade", &["unmade"]),
        test("test_shortcut", &["shortcut"]),
        "def test_load():\n    load()\n    load()\n".into(),
        test("make_it", &["render"]),
        unit,
    ];
    let same = test("test_render", &["render"]);
    let others = file(&[same.clone(), same.replace("test_render", "test_render_again")]);
    let first = repo.commit(
        at(day(3))
            .message("Add the library and its tests")
            .write("src/latest/lib.py", library(1))
            .write("src/contest.py", test("test_load_of_contest", &["load"]))
            .write("tests/unit/cases.py", file(&tests))
            .write("src/lib_test.py", test("testRunFastOnes", &["runFast", "load"]))
            .write("src/test_more.py", others)
            .write("test/here.py", test("test_connections", &["test_connection"])),
    );
    let change = at(day(4)).message("Change how addresses are parsed");
    let second = repo.commit(change.write("src/latest/lib.py", library(2)));
    [first, second]
}

/// `test -> method, how` of pairs.
fn pairs(rows: &[Value]) -> Vec<String> {
    let pair = |row: &Value| {
        let [test, name, how] = ["test_name", "qualified_name", "linked_by"].map(|c| text(row, c));
        format!("{test} -> {name}, {how}")
    };
    let mut pairs: Vec<String> = rows.iter().map(pair).collect();
    pairs.sort_unstable();
    pairs
}

#[rustfmt::skip]
const PAIRS: [&str; 7] = [
    "testRunFastOnes -> runFast, name", "test_connections -> test_connection, only call",
    "test_it_works -> render, only call", "test_parse_url -> parse_url, name",
    "test_render -> render, name", "test_render_again -> render, name",
    "test_save_all -> Store.save, name",
];

#[test]
fn tests_are_paired_with_the_method_of_their_name_or_only_call_within_a_repository() {
    let tested = Shipped::new("unit_tests.yaml", "./a");
    let [first, second] = tests_and_methods(&tested, "a");
    tested.run(&[]).exits(0);
    let rows = tested.rows("checked");
    assert_eq!(pairs(&rows), PAIRS);
    let rule = |row: &Value| format!("{} {}", text(row, "test_name"), text(row, "rule"));
    let mut rules: Vec<String> = tested.rows("checked.rejects").iter().map(rule).collect();
    rules.sort_unstable();
    let wanted = "test_load test_over_10_tokens, test_save_of_bytes called_on_its_owner, \
                  test_shortcut method_of_more_than_a_line, test_unmade no_pass_body";
    assert_eq!(rules.join(", "), wanted);
    // One of the two tests that are equal but for their names.
    let testbed = tested.rows("testbed");
    let duplicates = tested.rows("testbed.rejects");
    assert_eq!((testbed.len(), duplicates.len()), (PAIRS.len() - 1, 1));
    assert_eq!(pairs(&testbed).iter().filter(|p| p.starts_with("test_render")).count(), 1);
    assert!(text(&duplicates[0], "test_name").starts_with("test_render"));

    let row = rows.iter().find(|row| row["fun_name"] == "parse_url").unwrap();
    assert_eq!(
        columns(row),
        "id repo url test_path test_name test_commit test_code test_token_counts method_id path \
         fun_name qualified_name commit_id start_line end_line code code_before docstring complexity \
         nloc token_counts n_ast_nodes ast_levels n_whitespaces linked_by"
    );
    // The method as the last commit left it, its test as the first did.
    assert_eq!(text(row, "code"), version("parse_url", 2).trim_end());
    let seen = text(row, "test_code");
    assert_eq!(seen, test("test_parse_url", &["parse", "lib.parse_url"]).trim_end());
    assert_eq!((text(row, "test_commit"), text(row, "commit_id")), (&*first, &*second));
    let found = (text(row, "test_path"), text(row, "path"));
    assert_eq!(found, ("tests/unit/cases.py", "src/latest/lib.py"));
    let method = tested.rows("latest").into_iter().find(|m| m["id"] == row["method_id"]).unwrap();
    assert_eq!(method["token_counts"], row["token_counts"]);
    let tested = Shipped::new("unit_tests.yaml", "./a,./b");
    tests_and_methods(&tested, "a");
    // Methods of the same names, and a test of a method that only the other one has.
    let repo = Repository::bare(tested.project.path("b"));
    let methods = file(&[version("render", 5), version("run", 6)]);
    let tests = file(&[test("test_load_things", &["load"]), test("test_run_once", &["m.run"])]);
    let commit = at(day(5)).message("Add methods and tests");
    repo.commit(commit.write("m.py", methods).write("tests/t.py", tests));
    let outcome = tested.run(&[]).exits(0);
    let rows = tested.rows("checked");
    let (of_a, of_b): (Vec<Value>, _) = rows.into_iter().partition(|row| row["repo"] == "a");
    assert!(of_b.iter().all(|row| row["repo"] == "b"), "{of_b:?}");
    assert_eq!(pairs(&of_b), ["test_run_once -> run, name"]);
    assert_eq!(pairs(&of_a), PAIRS);
    let summary = tested.csv("unit_tests/summary.csv");
    assert_eq!((summary[0]["rows"].as_str(), summary[0]["duplicates"].as_str()), ("8", "1"));
    assert_eq!(sorted(&tested.rows("testbed"), "id").len(), 7);
    for name in ["testbed", "rejected", "duplicates"] {
        let path = format!("unit_tests/{name}.parquet");
        assert!(tested.project.path(&path).exists(), "{name}: {outcome}");
    }
    tested.run(&["--jobs", "1"]).exits(0).all_hit();
}
