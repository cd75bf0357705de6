//! `mine`: files of every encoding, name, kind and size.

use std::collections::BTreeSet;

use crate::harness::{Project, patience, says};
use crate::mine_damage::{entry, object};
use crate::mine_methods::edited;
use crate::repository::{
    Commit, Mined, Mining, NEW_YEAR, Repository, at, day, def, defs, mined, workflow,
};

/// The ids of these commits, and what is mined of them.
#[track_caller]
pub fn mine<const N: usize>(commits: [Commit; N]) -> ([String; N], Mined) {
    let mining = Mining::new();
    let ids = commits.map(|commit| mining.repo.commit(commit));
    (ids, mining.mine())
}

#[test]
fn line_ends_and_byte_order_marks() {
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
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[test]
fn a_declared_encoding_is_used_otherwise_utf8_and_what_is_neither_is_a_reject() {
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

#[test]
fn names_of_every_kind() {
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
}

#[test]
fn the_path_of_a_file_does_not_depend_on_the_commit_before() {
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
fn a_tree_with_one_name_twice_does_not_end_the_run() {
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
fn only_files_that_the_patterns_name_are_mined() {
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
}

#[test]
fn files_above_the_limit_are_rejects() {
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
}

#[test]
fn hostile_python_is_a_reject_or_a_row_and_never_the_end() {
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

#[test]
fn the_name_of_a_folder_may_be_anything() {
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
}
