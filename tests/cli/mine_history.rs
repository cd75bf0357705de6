//! `mine`: which commits count, what they are compared with, which files and methods of every kind
//! they changed, and what is reported of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Project, patience, says, values};
use crate::mine_damage::{entry, object};
use crate::repository::{
    Commit, Mined, Mining, NEW_YEAR, Repository, at, day, def, defs, mined, workflow, workflow_of,
};

/// The ids of these commits, and what is mined of them.
#[track_caller]
fn mine<const N: usize>(commits: [Commit; N]) -> ([String; N], Mined) {
    let mining = Mining::new();
    let ids = commits.map(|commit| mining.repo.commit(commit));
    (ids, mining.mine())
}

#[test]
fn line_ends_byte_order_marks_and_encodings() {
    let (text, f) = (defs(&[1, 2]), def("f", 1));
    let all = &["f0 1-2 modified 4", "f1 5-6 modified 4"][..];
    let marked = format!("\u{feff}{f}");
    let (_, mined) = edited(&[
        // Line ends of Windows stay, and others are another text.
        ("windows", &crlf(&text), &crlf(&defs(&[1, 3])), &["f1 5-6 modified 2"]),
        ("from_windows", &crlf(&text), &text, all),
        ("to_windows", &text, &crlf(&text), all),
        // A byte order mark is no part of the text.
        ("unmarked", &marked, &f, &[]),
        ("marked", &f, &marked, &[]),
        ("new", "", &marked, &["f 1-2 added 2"]),
        ("emptied", &f, "", &[]),
        ("nothing", "", "# nothing\n", &[]),
    ]);
    let code = |path: &str| &mined.rows.iter().find(|row| row["path"] == path).unwrap()["code"];
    assert_eq!(*code("windows.py"), "def f1(x):\r\n    return x + 3");
    assert_eq!(*code("new.py"), f.trim_end());
    assert!(mined.rejects.is_empty());
    let commit = at(day(1)).write("a.py", b"def f():\n    return 'caf\xe9'\n");
    let latin = b"# -*- coding: latin-1 -*-\ndef f():\n    return 'caf\xe9'\n";
    let (_, mined) = mine([commit.write("b.py", latin).write("c.py", "# coding: klingon\n")]);
    assert_eq!(mined.only()["code"], "def f():\n    return 'café'");
    assert_eq!(mined.rejected(), ["decodes a.py", "decodes c.py"]);
    let of_a = mined.rejects.iter().find(|row| row["path"] == "a.py").unwrap();
    says(of_a["reason"].as_str().unwrap(), &["utf-8"]);
    let before = at(NEW_YEAR - 1).write("m.py", b"# caf\xe9\n");
    let ([_, id], mined) = mine([before, at(day(1)).write("m.py", def("f", 1))]);
    assert!(mined.of(&id).is_empty());
    assert_eq!(mined.rejected(), ["decodes m.py"]);
    says(mined.rejects[0]["reason"].as_str().unwrap(), &["before"]);
    assert_eq!(mined.rejects[0]["commit_id"], id);
    let commit = at(day(1)).write("a.py", def("a", 1)).write("b.py", b"x = '\xff'\n");
    let commit = commit.write("c.py", def("c", 1));
    let ([_, id], mined) = mine([commit, at(day(2)).write("c.py", def("c", 2))]);
    assert_eq!(mined.column("path"), ["a.py", "c.py", "c.py"]);
    assert_eq!(mined.of(&id), ["c.py c 1-2 modified 2"]);
    assert_eq!(mined.rejected(), ["decodes b.py"]);
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[test]
fn names_of_every_kind_and_paths_that_do_not_depend_on_the_commit_before() {
    let names = "a b.py|q\"u'o.py|new\nline.py|tab\t.py|back\\slash.py|é/ß 漢.py|-dash.py|*.py|\
                 .hidden/.py|{a,b}.py|[x].py| .py";
    let mut names: Vec<&str> = names.split('|').collect();
    let commit = names.iter().fold(at(day(1)), |commit, name| commit.write(name, def("f", 1)));
    let (_, mined) = mine([commit, at(day(2)).write("new\nline.py", def("f", 2))]);
    names.push("new\nline.py");
    names.sort_unstable();
    let mut found = mined.column("path");
    found.sort_unstable();
    assert_eq!(found, names);
    assert!(mined.rejects.is_empty());
    let hidden = mined.rows.iter().find(|row| row["path"] == ".hidden/.py").unwrap();
    assert_eq!(hidden["file_name"], ".py");
    let commit = at(day(1)).write(b"caf\xe9.py", def("f", 1)).write(b"caf\xe8.py", def("f", 2));
    // And a name that looks like bytes.
    let commit = commit.write("caf\\xE9.py", def("f", 3));
    let (_, mined) = mine([commit.write(b"d\xff/x.py", b"# \xff\n")]);
    let paths: BTreeSet<&str> = mined.column("path").into_iter().collect();
    assert!(paths.contains("caf\\xE8.py") && paths.contains("caf\\xE9.py"), "{paths:?}");
    let ids: BTreeSet<&str> = mined.column("id").into_iter().collect();
    assert_eq!((mined.rows.len(), paths.len(), ids.len()), (3, 3, 3), "{paths:?}");
    assert_eq!(mined.rejected(), ["decodes d\\xFF/x.py"]);
    let (_, mined) = mine([
        at(NEW_YEAR - 1).write("a.py", def("a", 1)),
        at(day(1)).write("d/e/x.py", def("x", 1)),
        at(day(2)).write("a.py", def("a", 2)),
        at(day(3)).write("d/e/x.py", def("x", 2)).write("z.py", def("z", 1)),
        at(day(4)).write("d/y.py", def("y", 1)),
        at(day(5)).delete("d"),
        at(day(6)).write("a.py", def("a", 3)),
    ]);
    let paths = ["d/e/x.py", "a.py", "d/e/x.py", "z.py", "d/y.py", "a.py"];
    assert_eq!(mined.column("path"), paths);
    // Folders that are called like files.
    let first = at(day(1)).write("x.py/m.py", def("f", 1)).write("x.py/data.txt", "no python\n");
    let file = at(day(2)).delete("x.py").write("x.py", "def g(): pass\n");
    let folder = at(day(3)).delete("x.py").write("x.py/y.py/z.py", def("h", 1));
    let ([first, file, folder], mined) = mine([first, file, folder]);
    assert_eq!(mined.of(&first), ["x.py/m.py f 1-2 added 2"]);
    assert_eq!(mined.of(&file), ["x.py g 1-1 added 1"]);
    assert_eq!(mined.of(&folder), ["x.py/y.py/z.py h 1-2 added 2"]);
    assert!(mined.rejects.is_empty());
}

#[test]
fn links_submodules_and_permissions_are_no_files_and_no_changes() {
    let mining = Mining::new();
    mining.repo.commit(at(NEW_YEAR - 1).write("m.py", def("f", 1)));
    let link = mining.repo.commit(at(day(1)).entry("120000", "m.py", "other.py"));
    let moved = mining.repo.commit(at(day(2)).entry("120000", "m.py", "third.py"));
    let back = mining.repo.commit(at(day(3)).write("m.py", def("f", 2)));
    mining.repo.commit(at(day(4)).entry("120000", "n.py", "/etc/passwd"));
    let mined = mining.mine();
    assert!(mined.of(&link).is_empty() && mined.of(&moved).is_empty());
    assert_eq!(mined.of(&back), ["m.py f 1-2 added 2"]);
    assert_eq!((mined.rows.len(), mined.rejects.len()), (1, 0));
    let mining = Mining::new();
    let first = mining.repo.commit(at(NEW_YEAR - 1).write("m.py", def("f", 1)));
    let missing = "00112233445566778899aabbccddeeff00112233";
    let both = at(day(1)).object("160000", "sub.py", missing).object("160000", "m.py", &first);
    mining.repo.commit(both);
    mining.repo.commit(at(day(2)).object("160000", "sub.py", &first));
    let back = mining.repo.commit(at(day(3)).write("m.py", def("f", 1)).delete("sub.py"));
    let mined = mining.mine();
    assert_eq!(mined.of(&back), ["m.py f 1-2 added 2"]);
    assert_eq!((mined.rows.len(), mined.rejects.len()), (1, 0));
    let mining = Mining::new();
    mining.repo.commit(at(NEW_YEAR - 1).write("m.py", def("f", 1)));
    mining.repo.commit(at(day(1)).entry("100755", "m.py", def("f", 1)));
    let edit = mining.repo.commit(at(day(2)).write("m.py", def("f", 2)));
    assert_eq!(mining.mine().of(&edit), ["m.py f 1-2 modified 2"]);
    assert_eq!(self::mined(&mining.project).rows.len(), 1);
}

#[test]
fn only_files_that_the_patterns_name_are_mined_and_a_name_twice_does_not_end_the_run() {
    let files = ["a.py", "src/b.py", "src/deep/c.py", "tests/d.py", "e.pyi", "F.PY", "g.pyx", "py"];
    let mining = |include: &str| {
        let mining = Mining::with(include);
        let commit = files.iter().fold(at(day(1)), |commit, name| commit.write(name, def("f", 1)));
        mining.repo.commit(commit);
        mining.mine().column("path").join(" ")
    };
    assert_eq!(mining(""), "a.py src/b.py src/deep/c.py tests/d.py");
    assert_eq!(mining("include: ['src/**/*.py']"), "src/b.py src/deep/c.py");
    assert_eq!(mining("include: ['**/*.pyi', a.py]"), "a.py e.pyi");
    assert_eq!(mining("include: ['{src/b,tests/?}.py']"), "src/b.py tests/d.py");
    assert_eq!(mining("include: ['nothing/*.py']"), "");
    // The name of a folder may be anything.
    let names = ["with space", "quote'd", "ünï", "dash-.git", "a{b}*[c]"];
    for name in names {
        let project = Project::new(&workflow(&format!("\"./{name}\""), ""));
        let repo = Repository::bare(project.path(name));
        repo.commit(at(day(1)).write("m.py", def("f", 1)));
        project.run_ok(&[]);
        let found = mined(&project);
        assert_eq!(found.only()["repo"], name.trim_end_matches(".git"));
        assert_eq!(found.only()["url"], format!("./{name}"));
    }
    let mining = Mining::new();
    mining.repo.commit(at(day(1)).write("a.py", def("f", 1)).write("b.py", def("f", 2)));
    let file = |name| entry("100644", "m.py", &mining.repo.git(&["rev-parse", name]));
    // Git never makes such a tree, but it can be pushed to servers that do not check.
    let tree = [file("main:a.py"), file("main:b.py")].concat();
    let tree = object(&mining.repo, "tree", &tree);
    let who = format!("A <a> {} +0000", day(2));
    let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\nodd\n");
    mining.repo.raw_commit(text.as_bytes());
    let odd = mining.repo.git(&["rev-parse", "main"]);
    let next = mining.repo.commit(at(day(3)).write("c.py", def("f", 3)));
    let mined = mining.mine();
    // Git does not define which of the two files a commit changes: it is set aside with
    // the next one, which is compared with it.
    let rejected: Vec<_> =
        mined.rejects.iter().map(|row| (&row["commit_id"], &row["rule"])).collect();
    for commit in [&odd, &next] {
        assert!(mined.of(commit).is_empty());
        let reject = (&serde_json::json!(commit), &serde_json::json!("tree"));
        assert!(rejected.contains(&reject), "{rejected:?}");
    }
    assert_eq!(rejected.len(), 2, "{rejected:?}");
}

#[test]
fn files_above_the_limit_are_rejects_and_hostile_python_is_never_the_end() {
    let mining = Mining::new();
    let line = b"x = 'the same line again and again and again, until it is a hundred megabytes'\n";
    let huge = line.repeat(100_000_000 / line.len() + 1);
    mining.repo.git(&["config", "core.compression", "1"]);
    mining.repo.commit(at(day(1)).write("huge.py", &huge).write("m.py", def("f", 1)));
    mining.repo.commit(at(day(2)).write("m.py", def("f", 2)));
    let outcome = mining.project.run_ok(&[]);
    assert!(outcome.took < patience(5), "{:?}", outcome.took);
    let mined = mined(&mining.project);
    assert_eq!(mined.column("path"), ["m.py", "m.py"]);
    assert_eq!(mined.rejected(), ["size huge.py"]);
    says(mined.rejects[0]["reason"].as_str().unwrap(), &["97657", "1024"]);
    let mining = Mining::with("max_file_kb: 1");
    let file = |bytes: usize| format!("{}{}", def("f", 1), "#".repeat(bytes - def("f", 1).len()));
    mining.repo.commit(at(day(1)).write("a.py", file(1024)).write("b.py", file(1025)));
    let small = mining.repo.commit(at(day(2)).write("b.py", def("f", 1)).write("c.py", "x = 1\n"));
    let grown = mining.repo.commit(at(day(3)).write("c.py", file(2000)));
    let mined = mining.mine();
    assert_eq!(mined.column("path"), ["a.py"]);
    assert_eq!(mined.rejected(), ["size b.py", "size b.py", "size c.py"]);
    let reject = |commit: &str| {
        let row = mined.rejects.iter().find(|row| row["commit_id"] == commit).unwrap();
        row["reason"].as_str().unwrap().to_owned()
    };
    assert!(reject(&small).contains("before"), "{}", reject(&small));
    assert!(!reject(&grown).contains("before"), "{}", reject(&grown));
    let mining = Mining::new();
    let deep = format!("def f():\n    return {}1{}\n", "(".repeat(50_000), ")".repeat(50_000));
    let nested: String = (0..400).map(|n| format!("{}def f{n}():\n", " ".repeat(n))).collect();
    let nested = format!("{nested}{}pass\n", " ".repeat(400));
    let long = format!("def f():\n    return '{}'\n", "x".repeat(900_000));
    let commit = at(day(1)).write("deep.py", deep).write("nested.py", nested);
    let commit = commit.write("long.py", long).write("nul.py", b"def f():\n    return '\0'\n");
    mining.repo.commit(commit.write("m.py", def("f", 1)));
    let mined = mining.mine();
    let kept = mined.column("path");
    assert!(kept.contains(&"m.py") && kept.contains(&"long.py"), "{kept:?}");
    for row in &mined.rejects {
        assert!(["parses", "decodes"].contains(&row["rule"].as_str().unwrap()), "{row}");
    }
    let all =
        |path: &&str| kept.contains(path) || mined.rejects.iter().any(|row| row["path"] == **path);
    assert!(["deep.py", "nested.py", "nul.py"].iter().all(all), "{kept:?}");
}

/// A name, the text before, the text after, and the mined lines.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

/// The id of a commit that turns files from one text into another, and what is mined of it. Each
/// case is a file, so that none is like another one before.
#[track_caller]
fn edited(cases: &[Case<'_>]) -> (String, Mined) {
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
fn changed_lines_came_or_went_and_a_method_comes_and_goes_and_comes_again() {
    let text = |body: &str| format!("def f(x):\n{body}    return x\n");
    let few = text("    a = 1\n");
    let more = text("    a = 1\n    b = 2\n    c = 3\n");
    let most = text("    a = 9\n    b = 2\n    c = 3\n    d = 4\n");
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
        ("both", &more, &most, &["f 1-6 modified 3"]),
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
    let contents = [def("f", 1), "x = 1\n".into(), def("f", 1)];
    let (ids, mined) = mine([0, 1, 2].map(|n| at(day(n)).write("m.py", &contents[n as usize])));
    assert_eq!(mined.column("commit_id"), [&ids[0], &ids[2]]);
    assert_eq!(mined.column("change"), ["added", "added"]);
    let before = at(NEW_YEAR - 1).write("m.py", defs(&[1, 2, 3]));
    assert!(mine([before, at(day(1)).delete("m.py")]).1.rows.is_empty());
    // Functions inside of functions are rows on request only.
    let after = OUTER.replace("return 1", "return 3").replace("return 2", "return 4");
    assert_eq!(change("", OUTER, &after), ["outer 1-9 modified 4"]);
    let all = ["outer 1-9 modified 4", "outer.inner 2-3 modified 2", "outer.C.m 6-7 modified 2"];
    assert_eq!(change("nested: true", OUTER, &after), all);
    let after = OUTER.replace("return 2", "return 5");
    assert_eq!(change("nested: false", OUTER, &after), ["outer 1-9 modified 2"]);
}

const NEXT_YEAR: i64 = NEW_YEAR + 365 * 86_400;

fn window(since: &str, until: &str) -> Mining {
    Mining::of(&workflow_of("./r", &format!("since: {since}, until: {until}")))
}

fn messages(mining: &Mining) -> Vec<String> {
    mining.mine().column("commit_message").iter().map(ToString::to_string).collect()
}

#[test]
fn the_window_is_half_open_and_the_date_of_the_committer_counts() {
    let mining = Mining::new();
    let moments = [NEW_YEAR - 1, NEW_YEAR, NEXT_YEAR - 1, NEXT_YEAR];
    let ids: Vec<String> = (0..4)
        .map(|n| mining.repo.commit(at(moments[n]).write("m.py", def("f", n as i64))))
        .collect();
    let mined = mining.mine();
    assert_eq!(mined.column("commit_id"), [&ids[1], &ids[2]]);
    assert_eq!(mined.column("commit_time"), ["2022-01-01T00:00:00Z", "2022-12-31T23:59:59Z"]);
    // The first commit of the window is compared with the last one before it.
    assert_eq!(mined.of(&ids[1]), ["m.py f 1-2 modified 2"]);
    let mining = window("'2022-01-01T02:00:00+02:00'", "'2022-01-01T00:00:10Z'");
    for n in [-1, 0, 9, 10] {
        let message = n.to_string();
        mining.repo.commit(at(NEW_YEAR + n).message(&message).write("m.py", def("f", n)));
    }
    assert_eq!(messages(&mining), ["0", "9"]);
    // The same window in other words is the same result.
    mining.project.change("'2022-01-01T02:00:00+02:00'", "2022-01-01");
    mining.project.run_ok(&[]).all_hit();
    let mining = window("2022-03-01", "2022-03-02");
    mining.repo.commit(at(day(1)).write("m.py", def("f", 1)));
    assert!(mining.mine().rows.is_empty());
    // A commit without a change.
    mining.repo.commit(at(day(59)).message("empty"));
    let mined = mining.mine();
    assert!(mined.rows.is_empty() && mined.rejects.is_empty());
    let (old, inside) = (NEW_YEAR - 1_000_000, day(3));
    let (_, mined) = mine([
        at(old).authored(inside, "+0000").message("a").write("m.py", def("f", 1)),
        at(inside).authored(old, "-0800").message("b").write("m.py", def("f", 2)),
    ]);
    let row = values(mined.only(), "commit_message commit_time author_time");
    assert_eq!(row, json!(["b", "2022-01-04T12:00:00Z", "2021-12-20T10:13:20Z"]));
    let mining = Mining::new();
    // A new year's morning in Auckland is an old year's evening in UTC.
    mining.repo.commit(at(NEW_YEAR - 1).zone("+1300").message("a").write("m.py", def("f", 1)));
    mining.repo.commit(at(NEW_YEAR).zone("-1200").message("b").write("m.py", def("f", 2)));
    mining.repo.commit(at(NEXT_YEAR - 1).zone("+1400").message("c").write("m.py", def("f", 3)));
    mining.repo.commit(at(NEXT_YEAR).zone("-0930").message("d").write("m.py", def("f", 4)));
    let mined = mining.mine();
    assert_eq!(mined.column("commit_message"), ["b", "c"]);
    assert_eq!(mined.column("commit_time"), ["2022-01-01T00:00:00Z", "2022-12-31T23:59:59Z"]);
    assert_eq!(mined.column("author_time"), mined.column("commit_time"));
    let mining = Mining::new();
    let moments = [day(1), NEW_YEAR - 9_000_000, day(3), NEXT_YEAR + 9_000_000, day(2), 0];
    for (n, moment) in moments.into_iter().enumerate() {
        let message = n.to_string();
        mining.repo.commit(at(moment).message(&message).write("m.py", def("f", n as i64)));
    }
    assert_eq!(messages(&mining), ["0", "4", "2"]);
}

#[test]
fn dates_of_any_year_are_read_or_rejects_and_odd_headers_hide_none() {
    let mining = window("1900-01-01", "2300-01-01");
    let first = mining.repo.commit(at(0).message("zero").write("m.py", def("f", 1)));
    mining.repo.commit(at(4_200_000_000).message("late").write("m.py", def("f", 2)));
    let tree = mining.repo.git(&["rev-parse", &format!("{first}^{{tree}}")]);
    let head = mining.repo.git(&["rev-parse", "main"]);
    // Git itself refuses to make one, but such commits exist: conversions made them.
    let who = "A <a> -86400 +0000";
    let text = format!("tree {tree}\nparent {head}\nauthor {who}\ncommitter {who}\n\nearly\n");
    let early = mining.repo.raw_commit(text.as_bytes());
    let mined = mining.mine();
    assert_eq!(mined.column("commit_message"), ["early", "zero", "late"]);
    let found = mined.column("commit_time");
    assert_eq!(found, ["1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z", "2103-02-04T02:40:00Z"]);
    assert_eq!(mined.of(&early), ["m.py f 1-2 modified 2"]);
    assert!(mined.rejects.is_empty());
    // Dates that cannot be read are rejects.
    let mining = Mining::new();
    mining.repo.commit(at(day(1)).message("first").write("m.py", def("f", 1)));
    let tree = mining.repo.git(&["rev-parse", "main^{tree}"]);
    let committers = ["A <a> never +0000", "A <a> 99999999999999999 +0000", "A <a>", "A"];
    let odd = committers.map(|committer| {
        let head = mining.repo.git(&["rev-parse", "main"]);
        let text = format!(
            "tree {tree}\nparent {head}\nauthor A <a> 1 +0000\ncommitter {committer}\n\nodd\n"
        );
        mining.repo.raw_commit(text.as_bytes())
    });
    mining.repo.commit(at(day(2)).message("last").write("m.py", def("f", 2)));
    let mined = mining.mine();
    assert_eq!(mined.column("commit_message"), ["first", "last"]);
    assert_eq!(mined.rejected(), ["date", "date", "date", "date"]);
    let mut wanted = odd.map(|id| format!("{id} | mined"));
    wanted.sort();
    assert_eq!(mining.project.cells("mined.rejects", "commit_id step"), wanted);
    let both = |who: &str| format!("author {who}\ncommitter {who}");
    for zone in ["+051800", "-7", "+9999"] {
        let row = with_header(&both(&format!("A <a> DATE {zone}")));
        assert_eq!(row["author_time"], "2022-01-06T12:00:00Z", "{zone}");
    }
    with_header(&both("A <a> DATE"));
    for name in [" <>", "A <a <b>>", "A> <a>", "A <a> b>", "<a>"] {
        with_header(&both(&format!("{name} DATE +0000")));
    }
    // Dates of authors that cannot be read, or that no calendar has.
    for date in ["never +0000", "", "99999999999999999 +0000", "9000000000000 +0000"] {
        let row = with_header(&format!("author A <a> {date}\ncommitter A <a> DATE +0000"));
        assert!(row["author_time"].is_null(), "{date}: {row}");
    }
    let who = both("A <a> DATE +0000");
    let row = with_header(&format!("{who}\ngpgsig -----BEGIN\n \n x\n -----END\nodd header"));
    assert_eq!(row["commit_message"], "odd");
}

/// The only row of a commit with these lines in its head.
#[track_caller]
fn with_header(header: &str) -> Value {
    let mining = Mining::new();
    let parent = mining.repo.commit(at(NEW_YEAR - 1).write("m.py", def("f", 0)));
    mining.repo.commit(at(day(5)).write("m.py", def("f", 1)));
    let tree = mining.repo.git(&["rev-parse", "main^{tree}"]);
    let header = header.replace("DATE", &day(5).to_string());
    let text = format!("tree {tree}\nparent {parent}\n{header}\n\nodd\n");
    mining.repo.raw_commit(text.as_bytes());
    let mined = mining.mine();
    assert_eq!(mined.rows.len(), 1, "{header}\n{:?}", mined.rejects);
    assert_eq!(mined.only()["commit_time"], "2022-01-06T12:00:00Z");
    mined.only().clone()
}

/// A history with a merge that itself changes `h`; the ids of the branch `side`, of `main`
/// and of the merge.
fn merged(mining: &Mining) -> [String; 3] {
    let file = |f, g, h| [def("f", f), def("g", g), def("h", h)].join("\n\n");
    let base = mining.repo.commit(at(day(1)).write("m.py", file(0, 0, 0)));
    let side = at(day(2)).on("side").after(&[&base]).write("m.py", file(0, 1, 0));
    let side = mining.repo.commit(side);
    let main = mining.repo.commit(at(day(3)).write("m.py", file(1, 0, 0)));
    let merge = at(day(4)).after(&[&main, &side]).write("m.py", file(1, 1, 1));
    let merge = mining.repo.commit(merge.message("Merge side"));
    [side, main, merge]
}

#[test]
fn merges_are_left_out_or_compared_with_their_first_parent() {
    for (more, of_merge) in
        [("", &[][..]), ("merges: true", &["m.py g 5-6 modified 2", "m.py h 9-10 modified 2"])]
    {
        let mining = Mining::with(more);
        let [side, main, merge] = merged(&mining);
        let mined = mining.mine();
        assert_eq!(mined.of(&side), ["m.py g 5-6 modified 2"]);
        assert_eq!(mined.of(&main), ["m.py f 1-2 modified 2"]);
        assert_eq!(mined.of(&merge), of_merge, "{more}");
        assert_eq!(mined.rows.len(), 3 + 2 + of_merge.len());
    }
    // All roots and parents of an octopus are walked.
    let mining = Mining::new();
    let first = mining.repo.commit(at(day(1)).write("a.py", def("a", 1)));
    let other = mining.repo.commit(at(day(2)).on("other").write("b.py", def("b", 1)));
    let third = mining.repo.commit(at(day(3)).on("third").write("c.py", def("c", 1)));
    let merge = at(day(4)).after(&[&first, &other, &third]);
    mining.repo.commit(merge.write("b.py", def("b", 1)).write("c.py", def("c", 1)));
    let mined = mining.mine();
    assert_eq!(mined.column("commit_id"), [&first, &other, &third]);
    assert_eq!(mined.column("change"), ["added"; 3]);
}

#[test]
fn messages_keep_their_lines_and_letters() {
    let message = "Fix “f”\n\nBecause:\n\t- it was wrong\n\n";
    let (_, mined) = mine([at(day(1)).message(message).write("m.py", def("f", 1))]);
    let row = values(mined.only(), "commit_message repo url file_name");
    assert_eq!(row, json!([message.trim_end(), "r", "./r", "m.py"]));
    let mining = Mining::new();
    mining.repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let tree = mining.repo.git(&["rev-parse", "main^{tree}"]);
    let who = format!("A <a> {} +0000", day(2));
    let head = format!("tree {tree}\nauthor {who}\ncommitter {who}\nencoding ISO-8859-1\n\n");
    mining.repo.raw_commit(&[head.as_bytes(), b"caf\xe9\n"].concat());
    assert_eq!(mining.mine().only()["commit_message"], "café");
}

/// A file of six functions, and the project whose repository begins with it.
fn with_file(path: &str) -> Mining {
    let mining = Mining::new();
    mining.repo.commit(at(NEW_YEAR - 1).write(path, defs(&[0; 6])));
    mining
}

#[test]
fn renames_of_files_and_folders_are_followed_and_copies_and_rewritten_files_are_new() {
    let mining = with_file("tool");
    // As `git diff -M` sees it.
    mining.repo.commit(at(day(1)).rename("tool", "a.py"));
    mining.repo.commit(at(day(2)).rename("a.py", "b.py"));
    mining.repo.commit(at(day(3)).rename("b.py", "deep/down/c.py"));
    let copy = mining.repo.commit(at(day(4)).write("copy.py", defs(&[0; 6])));
    let mined = mining.mine();
    assert_eq!((mined.rows.len(), mined.of(&copy).len(), mined.rejects.len()), (6, 6, 0));
    let mining = with_file("a.py");
    let id =
        mining.repo.commit(at(day(1)).delete("a.py").write("pkg/b.py", defs(&[0, 0, 7, 0, 0, 0])));
    let mined = mining.mine();
    assert_eq!(mined.of(&id), ["pkg/b.py f2 9-10 modified 2"]);
    let row = values(mined.only(), "code_before code file_name");
    assert_eq!(row, json!([def("f2", 0).trim_end(), def("f2", 7).trim_end(), "b.py"]));
    let mining = with_file("a.py");
    let text =
        "class New:\n    def one(self):\n        yield 1\n\n    def f0(self, y):\n        pass\n";
    let id = mining.repo.commit(at(day(1)).delete("a.py").write("b.py", text));
    let mined = mining.mine();
    assert_eq!(mined.of(&id), ["b.py New.one 2-3 added 2", "b.py New.f0 5-6 added 2"]);
    assert_eq!(mined.column("code_before"), ["null", "null"]);
    let mining = Mining::new();
    let file = |first| defs(&[first, 1, 2, 3]);
    let mut commit = at(NEW_YEAR - 1);
    for n in 0..5 {
        commit = commit.write(format!("old/p{n}/__init__.py"), file(n * 10));
    }
    mining.repo.commit(commit.write("old/empty/__init__.py", ""));
    let id =
        mining.repo.commit(at(day(1)).rename("old", "new").write("new/p3/__init__.py", file(99)));
    let mined = mining.mine();
    assert_eq!(mined.of(&id), ["new/p3/__init__.py f0 1-2 modified 2"]);
    assert_eq!(mined.only()["code_before"], def("f0", 30).trim_end());
    let (one, two) = (defs(&[1; 4]), defs(&[2; 4]));
    let before = at(NEW_YEAR - 1).write("a.py", &one).write("b.py", &two);
    let ([_, id], mined) = mine([before, at(day(1)).write("a.py", &two).write("b.py", &one)]);
    assert_eq!(mined.of(&id).len(), 8);
    assert!(mined.rows.iter().all(|row: &Value| row["change"] == "modified"));
    let mining = Mining::with("include: ['src/**/*.py']");
    mining.repo.commit(at(NEW_YEAR - 1).write("lib/a.py", defs(&[0; 6])));
    let id = mining
        .repo
        .commit(at(day(1)).delete("lib/a.py").write("src/a.py", defs(&[0, 0, 0, 0, 0, 5])));
    assert_eq!(mining.mine().of(&id), ["src/a.py f5 21-22 modified 2"]);
}
