//! `mine`: which methods of a file a commit changed, and what is reported of them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::mine_files::mine;
use crate::repository::{Mined, Mining, NEW_YEAR, at, day, def, defs};

/// A name, the text before, the text after, and the mined lines.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// The id of a commit that turns files from one text into another, and what is mined of it. Each
/// case is a file, so that none is like another one before.
#[track_caller]
pub fn edited(cases: &[Case<'_>]) -> (String, Mined) {
    let write = |seconds, pick: fn(&Case<'_>) -> String| {
        let named = cases.iter().map(|case| (format!("{}.py", case.0), pick(case)));
        named.fold(at(seconds), |commit, (name, text)| commit.write(name, text))
    };
    let before = write(NEW_YEAR - 1, |case| case.1.into());
    let ([_, id], mined) = mine([before, write(day(1), |case| case.2.into())]);
    let found = mined.of(&id);
    for (name, _, _, lines) in cases {
        let start = format!("{name}.py ");
        let here: Vec<&str> = found.iter().filter_map(|line| line.strip_prefix(&start)).collect();
        assert_eq!(here, *lines, "{name}");
    }
    (id, mined)
}

/// PyDriller's view of eleven commits; the file says where it is from.
const PYDRILLER: &str = include_str!("../reference/pydriller_changes.json");

type Place = (String, i64, i64);

/// Lizard's `f.g( x )` as the name after `def`, with the lines.
fn places(list: &Value) -> BTreeSet<Place> {
    let place = |method: &Value| {
        let long = method[0].as_str().unwrap();
        let name = long.split('(').next().unwrap();
        let name = name.rsplit('.').next().unwrap().to_owned();
        (name, method[1].as_i64().unwrap(), method[2].as_i64().unwrap())
    };
    list.as_array().unwrap().iter().map(place).collect()
}

/// The same of the methods that a commit changed.
fn our_places(mined: &Mined, commit: &str) -> BTreeSet<Place> {
    let rows = mined.rows.iter().filter(|row| row["commit_id"] == commit);
    let place = |row: &Value| {
        let line = |name: &str| row[name].as_i64().unwrap();
        (row["fun_name"].as_str().unwrap().to_owned(), line("start_line"), line("end_line"))
    };
    rows.map(place).collect()
}

#[test]
fn methods_that_pydriller_calls_changed_are_changed() {
    let golden: Value = serde_json::from_str(PYDRILLER).unwrap();
    let steps = golden["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 11);
    let mining = Mining::with("nested: true");
    let commit = |(at_day, step): (usize, &Value)| {
        let content = step["content"].as_str().unwrap();
        mining.repo.commit(at(day(at_day as i64)).write("m.py", content))
    };
    let ids: Vec<String> = steps.iter().enumerate().map(commit).collect();
    let mined = mining.mine();
    assert!(mined.rejects.is_empty());
    for (step, id) in steps.iter().zip(&ids) {
        let name = step["name"].as_str().unwrap();
        // PyDriller also lists what is gone: methods deleted, renamed, or of another signature.
        let existing: Vec<Value> = {
            let methods = step["methods"].as_array().unwrap();
            let changed = step["changed"].as_array().unwrap();
            changed.iter().filter(|method| methods.contains(method)).cloned().collect()
        };
        let mut expected = places(&Value::Array(existing));
        if name.starts_with("two_classes_same_name") {
            // PyDriller takes `P.run` and `Q.run` for one method.
            assert_eq!(expected.len(), 1);
            expected.insert(("run".into(), 7, 8));
        }
        if name == "syntax_error" {
            // Lizard does not list the broken definition; tree-sitter may.
            let ours = our_places(&mined, id).into_iter().filter(|place| place.0 != "broken");
            assert_eq!(ours.collect::<BTreeSet<_>>(), expected, "{name}");
            continue;
        }
        assert_eq!(our_places(&mined, id), expected, "{name}");
    }
    let run = mined.of(&ids[10]);
    assert_eq!(run, ["m.py P.run 2-3 modified 2", "m.py Q.run 7-8 modified 2"]);
}

#[track_caller]
fn change(more: &str, before: &str, after: &str) -> Vec<String> {
    let mining = Mining::with(more);
    mining.repo.commit(at(NEW_YEAR - 1).write("m.py", before));
    let id = mining.repo.commit(at(day(1)).write("m.py", after));
    mining.mine().of(&id).iter().map(|line| line.replacen("m.py ", "", 1)).collect()
}

const OUTER: &str = "def outer():\n    def inner():\n        return 1\n\n    class C:\n        def m(self):\n            return 2\n\n    return inner\n";

#[test]
fn functions_inside_of_functions_are_rows_on_request_only() {
    let after = OUTER.replace("return 1", "return 3").replace("return 2", "return 4");
    assert_eq!(change("", OUTER, &after), ["outer 1-9 modified 4"]);
    let all = ["outer 1-9 modified 4", "outer.inner 2-3 modified 2", "outer.C.m 6-7 modified 2"];
    assert_eq!(change("nested: true", OUTER, &after), all);
    let after = OUTER.replace("return 2", "return 5");
    assert_eq!(change("nested: false", OUTER, &after), ["outer 1-9 modified 2"]);
}

#[test]
fn changed_lines_are_those_that_came_and_those_that_went() {
    let text = |body: &str| format!("def f(x):\n{body}    return x\n");
    let few = text("    a = 1\n");
    let more = text("    a = 1\n    b = 2\n    c = 3\n");
    let (f, g, h) = (def("f", 1), def("g", 2), def("h", 3));
    let broken = format!("{f}\n\nx = = (\n");
    let version = format!("VERSION = 1\n\n\n{}", defs(&[0; 9]));
    let signed = |kind: &str| format!("def f(\n    a: int,\n    b: {kind},\n):\n    pass\n");
    let one_line =
        |number: i64| format!("def a(): return 1\ndef b(): return {number}\nx = {number}\n");
    let decorated = |decorator: &str, number: i64| {
        format!("class A:\n    {decorator}\n    def f(self):\n        return {number}\n")
    };
    let twins = |one: i64, two: i64| {
        let f = |number: i64| format!("    def f():\n        return {number}\n");
        format!("if a:\n{}else:\n{}", f(one), f(two))
    };
    let fetch = |number: i64| {
        format!(
            "async def fetch(\n    url: str,  # where\n    *,\n    seconds: dict[str, int] = {{}},\n) -> list[\n    int\n]:\n    \"\"\"Doc.\"\"\"\n    async with a as b:\n        return [{number}]  # end\n\n# after\n"
        )
    };
    let (id, mined) = edited(&[
        ("more", &few, &more, &["f 1-5 modified 2"]),
        ("less", &more, &few, &["f 1-3 modified 2"]),
        (
            "both",
            &more,
            &text("    a = 9\n    b = 2\n    c = 3\n    d = 4\n"),
            &["f 1-6 modified 3"],
        ),
        // A blank line or a comment inside of a method belongs to it, one behind it does not.
        ("blank", &few, &text("    a = 1\n\n"), &["f 1-4 modified 1"]),
        ("behind", &few, &format!("{few}\n\n# the end\n"), &[]),
        ("signed", &signed("int"), &signed("str"), &["f 1-5 modified 2"]),
        ("one_line", &one_line(2), &one_line(4), &["b 2-2 modified 2"]),
        ("default", &f, &f.replace("(x)", "(x, y=0)"), &["f 1-2 modified 2"]),
        // Out of an `if` into a class: another name.
        ("class", &f, "class A:\n    def f(x):\n        return x + 1\n", &["A.f 2-3 added 2"]),
        ("import", &f, &format!("import os\n\n\n{f}"), &[]),
        ("last_line", f.trim_end(), &f, &["f 1-2 modified 2"]),
        ("broken", &broken, &broken.replace("+ 1", "+ 2"), &["f 1-2 modified 2"]),
        ("version", &version, &version.replace("VERSION = 1", "VERSION = 2"), &[]),
        ("gone", &defs(&[1, 2, 3]), &def("f1", 2), &[]),
        // A decorator is no part of its method.
        ("decorator", &decorated("@one", 1), &decorated("@two(3)", 1), &[]),
        ("decorated", &decorated("@one", 1), &decorated("@two(3)", 2), &["A.f 3-4 modified 2"]),
        ("async", &fetch(1), &fetch(2), &["fetch 1-10 modified 2"]),
        // Methods of one name are told apart by their position.
        ("twin", &twins(1, 2), &twins(1, 3), &["f 5-6 modified 2"]),
        ("twins", &twins(1, 2), &twins(4, 5), &["f 2-3 modified 2", "f 5-6 modified 2"]),
        // One that moved is changed though its code is the same.
        ("moved", &format!("{f}\n{g}\n{h}"), &format!("{g}\n{h}\n{f}"), &["f 7-8 modified 4"]),
        ("added", &format!("{f}\n\n{h}"), &format!("{f}\n\n{g}\n\n{h}"), &["g 5-6 added 2"]),
        // A new name is a new method; only its changed lines count.
        ("renamed", &def("old", 1), &def("new", 1), &["new 1-2 added 1"]),
    ]);
    let rows = |name: &str| -> Vec<&Value> {
        let path = format!("{name}.py");
        let of = |row: &&Value| row["path"] == *path && row["commit_id"] == id;
        mined.rows.iter().filter(of).collect()
    };
    let row = |name: &str| rows(name)[0];
    let twin = |number: i64| format!("def f():\n        return {number}");
    let code = fetch(2).split("\n\n# after").next().unwrap().to_owned();
    for (name, column, wanted) in [
        ("one_line", "code", "def b(): return 4"),
        ("decorated", "code", "def f(self):\n        return 2"),
        ("decorated", "code_before", "def f(self):\n        return 1"),
        ("async", "code", &code),
        ("async", "code_before", &code.replace("[2]", "[1]")),
        ("twin", "code_before", &twin(2)),
    ] {
        assert_eq!(row(name)[column], wanted, "{name}");
    }
    for name in ["last_line", "moved"] {
        assert_eq!(row(name)["code"], row(name)["code_before"], "{name}");
    }
    assert!(row("added")["code_before"].is_null() && row("renamed")["code_before"].is_null());
    let [one, two] = rows("twins")[..] else { panic!("two twins") };
    assert_eq!([&one["code_before"], &two["code_before"]], [&twin(1), &twin(2)]);
    assert_ne!(one["id"], two["id"]);
}

#[test]
fn a_method_comes_and_goes_and_comes_again() {
    let contents = [def("f", 1), "x = 1\n".into(), def("f", 1)];
    let (ids, mined) = mine([0, 1, 2].map(|n| at(day(n)).write("m.py", &contents[n as usize])));
    assert_eq!(mined.column("commit_id"), [&ids[0], &ids[2]]);
    assert_eq!(mined.column("change"), ["added", "added"]);
    let before = at(NEW_YEAR - 1).write("m.py", defs(&[1, 2, 3]));
    assert!(mine([before, at(day(1)).delete("m.py")]).1.rows.is_empty());
}
