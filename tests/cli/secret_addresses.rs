//! Passwords and tokens in addresses: refused when the workflow is planned, wherever an address is
//! taken, and shown nowhere.

use crate::harness::{Project, files_below, marked, says, text};

const SECRET: &str = "hunter2";

/// Every verb refuses the workflow at the mark, and no output or file has the secret.
#[track_caller]
fn refused(steps: &str, words: &str, more: &[(&str, &str)]) {
    let (workflow, place) = marked(&format!("galeras: 1\nsteps:\n  a:\n    {steps}\n"));
    let project = Project::new(&workflow);
    more.iter().for_each(|(name, content)| project.write(name, content));
    let told = project.run_json(&[]).exits(2);
    assert_eq!(told.diagnostics(), [format!("bad-url w.yaml:{place}")], "{told}");
    says(text(&told.events("diagnostic")[0], "message"), &[words]);
    let mut outcomes = vec![told];
    for verb in ["check", "plan", "graph", "run", "lock"] {
        outcomes.push(project.run(&[verb, "w.yaml"]).exits(2));
    }
    outcomes.push(project.cli("explain w.yaml a").exits(2));
    for outcome in outcomes {
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        let line = said.lines().find(|line| line.contains(SECRET));
        assert!(line.is_none(), "{line:?}");
    }
    assert!(project.stored_nothing());
    for file in files_below(project.root().parent().unwrap()) {
        let named = file.file_name().unwrap().to_string_lossy().into_owned();
        let given = named == "w.yaml" || more.iter().any(|(name, _)| *name == named);
        let content = std::fs::read(&file).unwrap();
        let told = String::from_utf8_lossy(&content).contains(SECRET);
        assert!(given || !told, "{}", file.display());
    }
}

const USER: &str = "user or password";

#[test]
fn of_files_repositories_in_a_list_the_api_of_a_search_and_a_models_server() {
    for url in ["http://me:hunter2@127.0.0.1:9/d.csv", "https://hunter2@127.0.0.1:9/d.csv"] {
        refused(&format!("op: read\n    with: {{ url: «'{url}' }}"), USER, &[]);
    }
    // Also where a copy is read in its place: the lock file would name it.
    let copy = "op: read\n    with: { path: d.csv, url: «'http://me:hunter2@127.0.0.1:9/d.csv' }";
    refused(copy, USER, &[("d.csv", "id\n1\n")]);
    for parameter in ["token", "X-Amz-Signature", "api_key", "sig"] {
        let url = format!("http://127.0.0.1:9/d.csv?a=1&{parameter}=hunter2");
        let words = format!("query (`{parameter}`)");
        refused(&format!("op: read\n    with: {{ url: «'{url}' }}"), &words, &[]);
    }
    for url in ["https://me:hunter2@127.0.0.1:9/r", "ssh://git:hunter2@127.0.0.1:9/r"] {
        refused(&format!("op: query\n    with: {{ repos: [«'{url}'] }}"), USER, &[]);
        let named = format!("op: query\n    with: {{ repos: [«{{ repo: r, url: '{url}' }}] }}");
        refused(&named, USER, &[]);
    }
    let csv = [("r.csv", "repo,url\nr,https://me:hunter2@127.0.0.1:9/r\n")];
    refused("op: query\n    with: { repos: «r.csv }", USER, &csv);
    let url = "https://me:hunter2@127.0.0.1:9";
    refused(&format!("op: query\n    with: {{ github: x, base_url: «'{url}' }}"), USER, &[]);
    let step = |url: &str| {
        format!(
            "op: read\n    with: {{ path: d.csv }}\n  b:\n    op: generate\n    from: a\n    with: {{ \
             model: m, messages: code, base_url: «'{url}' }}"
        )
    };
    let data = [("d.csv", "id,code\nx,y\n")];
    refused(&step("http://me:hunter2@127.0.0.1:9/v1"), USER, &data);
    let words = "query (`api-key`)";
    refused(&step("http://127.0.0.1:9/v1?api-version=1&api-key=hunter2"), words, &data);
}

#[test]
fn of_repositories_in_a_table() {
    let project = Project::new(
        "galeras: 1\nsteps:\n  a:\n    op: read\n    with: { path: d.csv, key: [repo] }\n  \
         mined:\n    op: mine\n    from: a\n    with: { since: 2022-01-01, until: 2023-01-01 }\n",
    );
    let head = "0123456789012345678901234567890123456789";
    let url = "https://me:hunter2@127.0.0.1:9/r";
    project.write("d.csv", format!("repo,clone_url,head_sha\nr,{url},{head}\n"));
    let outcome = project.run_ok(&[]);
    assert!(!outcome.stdout.contains(SECRET), "{outcome}");
    let reject = project.only("mined.rejects");
    let reason = text(&reject, "reason");
    assert!(reason.contains(USER) && !reason.contains(SECRET), "{reason}");
}
