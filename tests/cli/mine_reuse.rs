//! `query` and `mine`: a rerun mines what is new, the digests are always the same, and every
//! row leads back to its commit.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, values};
use crate::repository::{Mining, NEW_YEAR, Repository, at, day, def, defs, mined, workflow};

fn counts(outcome: &Outcome) -> (u64, u64) {
    let step = outcome.step("mined");
    let of = |name: &str| step[name].as_u64().unwrap();
    (of("computed_rows"), of("reused_rows"))
}

fn repository(project: &Project, name: &str, commits: i64) -> Repository {
    let repo = Repository::bare(project.path(name));
    for n in 0..commits {
        let file = format!("pkg/{}.py", n % 3);
        repo.commit(at(day(n)).message(name).write(file, defs(&[n, n / 2, n / 3])));
    }
    repo
}

fn project(names: &[&str], more: &str) -> Project {
    let list: Vec<String> = names.iter().map(|name| format!("./{name}")).collect();
    Project::new(&workflow(&list.join(", "), more))
}

#[test]
fn a_commit_or_repository_more_costs_that_one_and_those_of_one_content_stay_apart() {
    let project = project(&["a", "b"], "");
    repository(&project, "a", 4);
    let b = repository(&project, "b", 4);
    project.run_ok(&[]);
    b.commit(at(day(9)).write("m.py", def("f", 1)));
    let second = project.run_ok(&[]);
    assert_eq!(counts(&second), (1, 1));
    assert_eq!(second.step("repos")["reason"], "FILE_CHANGED");
    let fresh = project.run_ok(&["--cache", "fresh"]);
    assert_eq!(fresh.digests(), second.digests());
    assert_eq!(counts(&fresh), (2, 0));
    // A repository more costs that one.
    let names: Vec<String> = (0..11).map(|n| format!("r{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let project = self::project(&names[..10], "");
    for name in &names {
        repository(&project, name, 1);
    }
    assert_eq!(counts(&project.run_ok(&[])), (10, 0));
    project.change("./r9]", "./r9, ./r10]");
    assert_eq!(counts(&project.run_ok(&[])), (1, 10));
    // One less costs nothing, and neither does another order.
    let less = project.rerun("./r0, ./r1, ./r2, ", "./r2, ./r1, ");
    assert_eq!(counts(&less), (0, 10));
    assert_eq!(project.run_ok(&["--cache", "fresh"]).digests(), less.digests());
    let project = Project::new(&workflow("{ repo: x, url: ./r }, { repo: y, url: ./r }", ""));
    repository(&project, "r", 1);
    project.run_ok(&[]);
    assert_eq!(project.cells("mined", "repo"), ["x", "x", "x", "y", "y", "y"]);
    let project = self::project(&["a", "b", "c"], "");
    for name in ["a", "b"] {
        Repository::bare(project.path(name)).commit(at(NEW_YEAR - 9).write("m.py", def("f", 1)));
    }
    repository(&project, "c", 1);
    project.run_ok(&[]);
    assert_eq!(mined(&project).column("repo"), ["c", "c", "c"]);
    project.run_ok(&[]).all_hit();
    project.verifies("cache");
}

#[test]
fn an_argument_mines_again_and_a_later_step_another_branch_or_a_dirty_work_tree_does_not() {
    let project = project(&["a", "b"], "");
    repository(&project, "a", 3);
    repository(&project, "b", 3);
    let first = project.run_ok(&[]);
    let second = project.rerun("until: 2023-01-01", "until: 2022-01-02");
    assert_eq!((counts(&second), second.status("repos")), ((2, 0), "hit".into()));
    assert_eq!(second.step("mined")["reason"], "ARG_CHANGED");
    assert_eq!(second.step("mined")["rows"], 6);
    project
        .rerun("until: 2022-01-02", "until: '2023-01-01T00:00:00Z', merges: false")
        .all_hit_as(&first);
    // A later step does not mine.
    let project = self::project(&["a"], "");
    let later = "  some:\n    op: sample\n    from: mined\n    with: { n: 2, seed: 1 }\n";
    project.write("w.yaml", format!("{}{later}", workflow("./a", "")));
    repository(&project, "a", 3);
    project.run_ok(&[]);
    assert_eq!(project.rerun("seed: 1", "seed: 2").statuses(), "repos=hit mined=hit some=ran");
    let project = self::project(&["a"], "");
    let repo = Repository::with_work_tree(project.path("a"));
    let base = repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let first = project.run_ok(&[]);
    repo.commit(at(day(2)).on("side").after(&[&base]).write("m.py", def("f", 2)));
    project.write("a/m.py", "def dirty(): pass\n");
    repo.git(&["tag", "v1"]);
    repo.git(&["gc", "-q"]);
    project.run_ok(&[]).all_hit_as(&first);
}

#[test]
fn digests_do_not_depend_on_jobs_the_store_or_the_order_of_the_list() {
    let project = project(&["a", "b", "c"], "nested: true");
    for (name, commits) in [("a", 80), ("b", 45), ("c", 1)] {
        repository(&project, name, commits);
    }
    let one = project.run_ok(&["--jobs", "1", "--cache", "one"]);
    assert!(one.step("mined")["rows"].as_u64().unwrap() > 100);
    for jobs in ["2", "4", "9"] {
        let other = project.run_ok(&["--jobs", jobs, "--cache", jobs]);
        assert_eq!(other.digests(), one.digests(), "{jobs}");
    }
    let place = project.path("elsewhere/deep");
    assert_eq!(project.run_ok(&["--cache", place.to_str().unwrap()]).digests(), one.digests());
    // The order of the list changes no digest.
    let project = self::project(&["a", "b", "c"], "");
    for name in ["a", "b", "c"] {
        repository(&project, name, 2);
    }
    let first = project.run_ok(&["--cache", "one"]);
    project.change("./a, ./b, ./c", "./c, ./a, ./b, ./a");
    assert_eq!(project.run_ok(&["--cache", "two"]).digests(), first.digests());
    // The same list as a file, with comments.
    project.write("list.csv", "repo,url\n# three\nb,./b\nc,./c\na,./a\n");
    project.change("[./c, ./a, ./b, ./a]", "list.csv");
    assert_eq!(project.run_ok(&["--cache", "three"]).digests(), first.digests());
}

#[test]
fn projects_and_repositories_that_were_moved_are_not_mined_again() {
    let project = project(&["a"], "");
    repository(&project, "a", 5);
    let first = project.run_ok(&[]);
    assert_eq!(counts(&first), (1, 0));
    project.run_ok(&[]).all_hit();
    project.verifies("cache");
    let moved = Project::new(&project.read("w.yaml"));
    fs::rename(project.path("a"), moved.path("a")).unwrap();
    fs::rename(project.path("cache"), moved.path("cache")).unwrap();
    moved.run_ok(&[]).all_hit_as(&first);
    assert_eq!(moved.run_ok(&["--cache", "fresh"]).digests(), first.digests());
    // A repository that was moved is not mined again.
    let project = Project::new(&workflow("{ repo: r, url: ./old }", ""));
    repository(&project, "old", 4);
    project.run_ok(&[]);
    let before = mined(&project);
    fs::create_dir(project.path("new")).unwrap();
    fs::rename(project.path("old"), project.path("new/place")).unwrap();
    project.change("./old", "./new/place");
    assert_eq!(counts(&project.run_ok(&[])), (0, 1));
    let after = mined(&project);
    assert_eq!(after.column("id"), before.column("id"));
    assert_eq!(after.column("code"), before.column("code"));
    assert!(after.column("url").iter().all(|url| *url == "./new/place"));
}

#[test]
fn a_row_leads_back_to_its_commit_and_identities_are_the_same_everywhere() {
    let mining = Mining::new();
    mining.repo.commit(at(NEW_YEAR - 1).write("pkg/m.py", def("f", 1)));
    let id = mining.repo.commit(at(day(1)).write("pkg/m.py", def("f", 2)));
    mining.repo.commit(at(day(2)).write("pkg/bad.py", b"\xff\n"));
    let later = "  some:\n    op: sample\n    from: mined\n    with: { n: 2, seed: 1 }\n";
    mining.project.write("w.yaml", format!("{}{later}", workflow("./r", "")));
    let found = mining.mine();
    let row = found.only()["id"].as_str().unwrap();
    let words = [row, id.as_str(), "pkg/m.py", "mined", "some"];
    mining.project.run(&["trace", "w.yaml", row]).exits(0).prints(&words);
    let told = mining.project.answer(&["trace", "w.yaml", row]);
    let place = |name: &str| {
        let places = told["places"].as_array().unwrap();
        places.iter().find(|place| place["step"] == name).unwrap_or(&Value::Null).clone()
    };
    let values = values(&place("mined")["values"], "commit_id path repo");
    assert_eq!(values, json!([id, "pkg/m.py", "r"]), "{told}");
    // Rejects can be traced as well.
    let reject = found.rejects[0]["id"].as_str().unwrap();
    let words = ["pkg/bad.py", "decodes", "mined"];
    mining.project.run(&["trace", "w.yaml", reject]).exits(0).prints(&words);
    let one = project(&["a"], "");
    repository(&one, "a", 6);
    one.run_ok(&[]);
    let two = project(&["a"], "nested: true, since: 2021-01-01").read("w.yaml");
    // A wider window and further methods leave the others what they are.
    let two = two.replacen("since: 2022-01-01, ", "", 1);
    let rows = mined(&one);
    one.write("w.yaml", two);
    one.run_ok(&[]);
    assert_eq!(mined(&one).column("id"), rows.column("id"));
    let mut ids = rows.column("id");
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
}

#[test]
fn a_killed_run_is_continued() {
    let names = ["a", "b", "c", "d"];
    let project = project(&names, "");
    for name in names {
        let repo = Repository::bare(project.path(name));
        for n in 0..8 {
            let numbers: Vec<i64> = (0..1500).map(|at| at * (n + 1)).collect();
            repo.commit(at(day(n)).write("big.py", defs(&numbers)));
        }
    }
    let undisturbed = project.run_ok(&["--cache", "undisturbed"]);
    let mut killed = 0;
    for time in [40, 80, 120, 180] {
        let running = project.start(&["--jobs", "1"]);
        std::thread::sleep(std::time::Duration::from_millis(time));
        running.signal("KILL");
        killed += usize::from(running.finish().code.is_none());
    }
    assert!(killed >= 1, "no run was killed before its end");
    assert_eq!(project.run_ok(&[]).digests(), undisturbed.digests());
    project.run_ok(&[]).all_hit();
    project.verifies("cache");
}
