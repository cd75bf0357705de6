//! `query` and `mine`: workflows that are refused before anything runs, and those that are not.

use std::fs;

use crate::harness::{Project, marked};
use crate::repository::{NEW_YEAR, Repository, at, day, def, workflow, workflow_of};

/// Just one diagnostic, at the mark `«`; nothing ran.
#[track_caller]
fn refused(workflow: &str, code: &str) {
    let (workflow, place) = marked(workflow);
    let project = Project::new(&workflow);
    Repository::bare(project.path("r")).commit(at(NEW_YEAR).write("m.py", def("f", 1)));
    fs::create_dir(project.path("plain")).unwrap();
    project.write("file", "text");
    project.refused_at(&place, code, &[]);
    let shown = project.run(&["check", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains('^') || shown.stderr.contains('─'), "{shown}");
}

#[test]
fn what_is_no_repository_two_of_one_name_and_names_that_could_be_options_are_refused() {
    refused(&workflow("./r, «./nowhere", ""), "bad-repository");
    refused(&workflow("«./plain, ./r", ""), "bad-repository");
    refused(&workflow("./r, «./file", ""), "bad-repository");
    refused(&workflow("«ftp://example.org/x", ""), "bad-repository");
    refused(&workflow("«'ext::sh -c true'", ""), "bad-repository");
    refused(&workflow("./r, «{ repo: a, url: ../nowhere }", ""), "bad-repository");
    refused(&workflow("«one", ""), "bad-repository");
    refused(&workflow("", "").replace("[]", "«[]"), "empty-list");
    let text = workflow("{ repo: a, url: ./r }, { repo: a, url: ./s }", "");
    let (text, place) = marked(&text.replace("repos: [", "repos: «["));
    let project = Project::new(&text);
    Repository::bare(project.path("r"));
    Repository::bare(project.path("s"));
    project.refuses(&[], &format!("duplicate-repository w.yaml:{place}"), &[]);
    for name in
        ["owner/-x", "-owner/x", "-x", "--upload-pack=touch-pwned", "-oProxyCommand=touch:x"]
    {
        refused(&workflow(&format!("«'{name}'"), ""), "bad-repository");
        refused(&workflow(&format!("«{{ repo: a, url: '{name}' }}"), ""), "bad-repository");
    }
    for address in [
        "owner/..",
        "../..",
        "ext::sh -c touch%20pwned",
        "fd::0",
        "file://elsewhere.example/r",
        "ssh://-oProxyCommand=touch/x",
        "example.org:--upload-pack=touch",
        "https://exa mple.org/x",
        "javascript://x/y",
    ] {
        refused(&workflow(&format!("«'{address}'"), ""), "bad-repository");
    }
    for control in ["a\\nb/c", "./r\\e[2J", "https://example.org/\\r\\n"] {
        refused(&workflow(&format!("«\"{control}\""), ""), "bad-repository");
    }
    let project = Project::new(&workflow("'owner/-x'", ""));
    project.run(&["lock", "w.yaml"]).exits(2).reports(&["`-x` starts with `-`"]);
    let (text, place) = marked(&workflow("", "").replace("[]", "«list.csv"));
    let project = Project::new(&text).with("list.csv", "owner/-x\n");
    project.refuses(&[], &format!("unreadable-file w.yaml:{place}"), &[]);
}

#[test]
fn lists_in_files_are_read_or_refused_and_replace_a_search() {
    let text = workflow("", "").replace("[]", "«list.csv");
    refused(&text, "missing-file");
    let (text, place) = marked(&text);
    for csv in ["", "# nothing\n", "repo,url\n", "./r\n./nowhere\n", "repo,url\nx,ftp://a/b\n"] {
        let project = Project::new(&text).with("list.csv", csv);
        Repository::bare(project.path("r")).commit(at(day(1)).write("m.py", def("f", 1)));
        project.refuses(&[], &format!("unreadable-file w.yaml:{place}"), &[]);
    }
    let project = Project::new(&text);
    Repository::bare(project.path("r")).commit(at(day(1)).write("m.py", def("f", 1)));
    project.write("list.csv", "\u{feff}url,stars,repo\r\n./r,3,one\r\n\r\n\"./r\", 4, two \r\n");
    project.run_ok(&[]);
    assert_eq!(project.cells("mined", "repo"), ["one", "two"]);
    let text = workflow("", "")
        .replace("repos: []", "github: 'stars:>1', limit: 3, repos: '${{ params.list }}'");
    let text = text.replace("steps:", "params:\n  list: { type: string, default: '' }\nsteps:");
    let project = Project::new(&text);
    for name in ["r", "s"] {
        Repository::bare(project.path(name)).commit(at(day(1)).write("m.py", def("f", 1)));
    }
    project.write("list.csv", "./s\n");
    let repos = |list: &str| -> Vec<String> {
        let set = format!("list={list}");
        let outcome = project.run_ok(&["--set", &set]);
        let rows = project.rows_with("repos", &["--set", &set]);
        assert_eq!(outcome.step("mined")["rows"].as_u64().unwrap(), rows.len() as u64);
        rows.iter().map(|row| row["repo"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(repos("./r"), ["r"]);
    assert_eq!(repos(" ./s, ./r ,"), ["r", "s"]);
    assert_eq!(repos("list.csv"), ["s"]);
    // Without a list, the search is what is planned.
    project.run(&["check", "w.yaml"]).exits(0);
    let text = workflow("", "").replace("repos: []", "github: 'stars:>1', repos: []");
    Project::new(&text).run(&["check", "w.yaml"]).exits(0);
}

#[test]
fn arguments_and_tables_that_do_not_fit_are_refused() {
    let query = |with: &str, code: &str| {
        refused(&workflow("", "").replace("{ repos: [] }", with), code);
    };
    query("{ repos: [./r], limit: «3 }", "conflicting-arguments");
    query("{ repos: [./r], sort: «stars }", "conflicting-arguments");
    query("{ repos: [./r], base_url: «nothing }", "bad-url");
    query("{ repos: «'./r, ./nowhere' }", "bad-repository");
    let (text, place) =
        marked("galeras: 1\nsteps:\n  «repos: { op: query, with: { branch: a } }\n");
    Project::new(&text).refuses(&[], &format!("missing-argument w.yaml:{place}"), &[]);
    let with = |with: &str, code: &str| refused(&workflow_of("./r", with), code);
    with("since: «soon, until: 2023-01-01", "wrong-type");
    with("since: 2022-01-01, until: «'2022-13-01'", "wrong-type");
    with("since: 2022-01-01, until: «'2022-02-30'", "wrong-type");
    with("since: 2023-01-01, until: «2022-01-01", "empty-window");
    with("since: 2022-01-01, until: «2022-01-01", "empty-window");
    with("since: 2022-01-01, until: 2023-01-01, include: [a.py, «'[']", "bad-pattern");
    with("since: 2022-01-01, until: 2023-01-01, max_file_kb: «0", "wrong-value");
    with("since: 2022-01-01, until: 2023-01-01, merges: «sometimes", "wrong-type");
    with("since: 2022-01-01, until: 2023-01-01, «nestd: true", "unknown-argument");
    let text = workflow("./r", "").replace("op: query", "op: read");
    let project = Project::new(&text.replace("repos: [./r]", "path: heads.csv, key: [repo]"));
    project.write("heads.csv", "repo,clone_url\na,./r\n");
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    let message = outcome.events("diagnostic")[0]["message"].to_string();
    assert!(message.contains("head_sha"), "{message}");
}
