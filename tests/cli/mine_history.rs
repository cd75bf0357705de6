//! `mine`: which commits count, what they are compared with, and which file is which.

use serde_json::{Value, json};

use crate::harness::fields;
use crate::mine_files::mine;
use crate::repository::{Mining, NEW_YEAR, at, day, def, defs, workflow_of};

const NEXT_YEAR: i64 = NEW_YEAR + 365 * 86_400;

fn window(since: &str, until: &str) -> Mining {
    Mining::of(&workflow_of("./r", &format!("since: {since}, until: {until}")))
}

fn messages(mining: &Mining) -> Vec<String> {
    mining.mine().column("commit_message").iter().map(ToString::to_string).collect()
}

#[test]
fn the_window_is_half_open_and_may_have_times_and_zones() {
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
}

#[test]
fn the_date_of_the_committer_counts_whatever_its_zone_and_order() {
    let (old, inside) = (NEW_YEAR - 1_000_000, day(3));
    let (_, mined) = mine([
        at(old).authored(inside, "+0000").message("a").write("m.py", def("f", 1)),
        at(inside).authored(old, "-0800").message("b").write("m.py", def("f", 2)),
    ]);
    let row = fields(mined.only(), "commit_message commit_time author_time");
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
fn dates_of_any_year_are_read_or_rejects() {
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

#[test]
fn odd_headers_hide_no_date() {
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
    let row = fields(mined.only(), "commit_message repo url file_name");
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
fn renames_are_followed_and_copies_and_rewritten_files_are_new() {
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
    let row = fields(mined.only(), "code_before code file_name");
    assert_eq!(row, json!([def("f2", 0).trim_end(), def("f2", 7).trim_end(), "b.py"]));
    let mining = with_file("a.py");
    let text =
        "class New:\n    def one(self):\n        yield 1\n\n    def f0(self, y):\n        pass\n";
    let id = mining.repo.commit(at(day(1)).delete("a.py").write("b.py", text));
    let mined = mining.mine();
    assert_eq!(mined.of(&id), ["b.py New.one 2-3 added 2", "b.py New.f0 5-6 added 2"]);
    assert_eq!(mined.column("code_before"), ["null", "null"]);
}

#[test]
fn files_of_folders_swapped_names_and_other_patterns_are_followed() {
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
