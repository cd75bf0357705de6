//! `query` with `github:`, a search on GitHub: what it finds, when it is asked, what is pinned,
//! where its token goes. GitHub is `github_api`; when it fails: `query_github_faults`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Outcome, Project, files_below, flat, marked, says, text};
use crate::repository::{Repository, at, day, def};
use galeras_test_servers::github_api::{GithubApi, GithubFault, Repo};
use galeras_test_servers::http_git::HttpGit;

/// The search of the Galeras paper.
pub const PAPER: &str = "language:Python fork:false size:>=30000 pushed:>2021-12-31 stars:>1000";

/// A project that searches on `api`, with more arguments (`, limit: 3`).
pub fn project(api: &GithubApi, query: &str, more: &str) -> Project {
    project_at(&api.url(), query, more)
}

/// A project that searches at an address.
pub fn project_at(url: &str, query: &str, more: &str) -> Project {
    let with: String = more.split(", ").skip(1).map(|arg| format!("      {arg}\n")).collect();
    Project::new(&format!(
        "galeras: 1\nsteps:\n  repos:\n    op: query\n    with:\n      github: {query}\n      base_url: {url}\n{with}"
    ))
}

/// `count` repositories `o/rNNNN` that the paper's search finds.
pub fn repos(count: u64) -> Vec<Repo> {
    (1..=count).map(|id| Repo::new(id, &format!("o/r{id:04}"), 1_000 + id)).collect()
}

/// How often every repository was asked for its head.
pub fn heads(api: &GithubApi) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in api.requests() {
        if let Some(repo) = request.path.strip_suffix(".git/info/refs") {
            *asked.entry(repo.trim_start_matches('/').to_owned()).or_default() += 1;
        }
    }
    asked
}

#[track_caller]
pub fn names(project: &Project, port: &str) -> Vec<String> {
    project.rows(port).iter().map(|row| text(row, "repo").to_owned()).collect()
}

#[test]
fn the_papers_search_finds_just_what_matches() {
    let api = GithubApi::start(Vec::new());
    let change = |id, name: &str, change: &dyn Fn(&mut Repo)| {
        let mut repo = Repo::new(id, name, 2_000);
        change(&mut repo);
        repo
    };
    api.set_repos(vec![
        change(1, "z/plain", &|r| r.head = "9f".repeat(20)),
        change(2, "a-b/least", &|r| {
            (r.stars, r.size, r.pushed_at) = (1_001, 30_000, "2022-01-01T00:00:00Z".into());
            (r.default_branch, r.license, r.archived) = ("trunk/x".into(), None, true);
        }),
        change(3, "a/stars", &|r| r.stars = 1_000),
        change(4, "a/size", &|r| r.size = 29_999),
        change(5, "a/pushed", &|r| r.pushed_at = "2021-12-31T23:59:59Z".into()),
        change(6, "a/fork", &|r| r.fork = true),
        change(7, "a/none", &|r| r.language = None),
        change(8, "a/other", &|r| r.language = Some("Rust".into())),
        change(9, "Z/upper", &|r| r.license = Some("NOASSERTION".into())),
    ]);
    let project = project(&api, PAPER, "");
    let outcome = project.run_ok(&[]);
    assert!(outcome.events("warning").is_empty(), "{outcome}");
    let expected = r#"
{"repo":"Z/upper","clone_url":"URL/Z/upper.git","default_branch":"main","stars":2000,"size_kb":50000,"pushed_at":"2023-01-05T12:00:00Z","fork":false,"language":"Python","license":"NOASSERTION","head_sha":"0000000000000000000000000000000000000009"}
{"repo":"a-b/least","clone_url":"URL/a-b/least.git","default_branch":"trunk/x","stars":1001,"size_kb":30000,"pushed_at":"2022-01-01T00:00:00Z","fork":false,"language":"Python","license":null,"head_sha":"0000000000000000000000000000000000000002"}
{"repo":"z/plain","clone_url":"URL/z/plain.git","default_branch":"main","stars":2000,"size_kb":50000,"pushed_at":"2023-01-05T12:00:00Z","fork":false,"language":"Python","license":"MIT","head_sha":"9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f"}
"#;
    let expected = expected.trim_start().replace("URL", &api.url());
    assert_eq!(project.cli("show w.yaml repos --format json").exits(0).stdout, expected);
    assert!(project.rows("repos.rejects").is_empty());
    assert_eq!(api.searches().len(), 1);
    assert_eq!(project.run_ok(&["--cache", "other", "--jobs", "1"]).digests(), outcome.digests());
    // The types are those of the catalogue, whatever the values are.
    let sql = "SELECT arrow_typeof(stars), arrow_typeof(pushed_at), arrow_typeof(fork) FROM repos";
    let types = project.run(&["sql", "w.yaml", sql, "--format", "json"]).exits(0);
    says(&types.stdout, &["Int64", "Timestamp", "UTC", "Boolean"]);
}

#[test]
fn what_github_does_not_know_is_null() {
    let api = GithubApi::start(vec![Repo::new(1, "o/r", 5)]);
    let url = api.url();
    let body = format!(
        r#"{{"total_count":1,"incomplete_results":false,"items":[{{"id":1,"full_name":"o/r","clone_url":"{url}/o/r.git","default_branch":"main","stargazers_count":0,"size":0,"created_at":"2020-01-01T00:00:00Z","updated_at":null,"pushed_at":null,"fork":true,"language":null,"license":{{"key":"other","spdx_id":null}}}}]}}"#
    );
    api.faults(vec![(0, GithubFault::Raw(200, Vec::new(), body))]);
    let project = project(&api, "r fork:true", "").ran();
    let row = project.only("repos");
    for column in ["pushed_at", "language", "license"] {
        assert_eq!(row.get(column), Some(&Value::Null), "{column}: {row}");
    }
    assert_eq!((&row["stars"], &row["fork"]), (&0.into(), &true.into()));
    // A search that finds nothing is an empty table.
    let api = GithubApi::start(Vec::new());
    let project = self::project(&api, PAPER, "");
    assert_eq!(project.run_ok(&[]).step("repos")["rows"], 0);
    project.run_ok(&[]).all_hit();
    assert_eq!(api.requests().len(), 1);
}

/// 1,600 repositories of the paper's kind: 1,100 with one number of stars, 300 of these created
/// in one second, the others as skewed as GitHub's; and 100 that it does not find.
fn population() -> Vec<Repo> {
    let make = |id: u64| {
        let stars = match id {
            1..=1_100 => 1_234,
            1_101..=1_600 => 1_001 + 3_000_000 / ((id - 1_100) * 10 + 7),
            _ => 1_000,
        };
        let mut repo = Repo::new(id, &format!("owner{}/repo{id}", id % 83), stars);
        repo.created_at = match id {
            1..=300 => "2017-07-07T07:07:07Z".into(),
            _ => {
                let (month, day) = (id % 12 + 1, id % 28 + 1);
                format!("20{}-{month:02}-{day:02}T0{}:00:00Z", 10 + id % 10, id % 10)
            }
        };
        repo
    };
    (1..=1_700).map(make).collect()
}

#[test]
fn a_large_search_is_found_whole_and_stored() {
    let api = GithubApi::start(population());
    let project = project(&api, PAPER, "");
    let outcome = project.run_ok(&[]);
    assert!(outcome.events("warning").is_empty(), "{outcome}");
    let row = |r: &Value| (text(r, "repo").to_owned(), text(r, "head_sha").to_owned());
    let found: BTreeMap<String, String> = project.rows("repos").iter().map(row).collect();
    let wanted = population().into_iter().filter(|r| r.stars > 1_000);
    let wanted: BTreeMap<String, String> = wanted.map(|r| (r.full_name, r.head)).collect();
    assert_eq!((found.len(), outcome.step("repos")["rows"].as_u64()), (1_600, Some(1_600)));
    assert!(found == wanted, "other repositories, or other heads");
    let searches = api.searches();
    // One request per 100 repositories, and those that divide the search.
    assert!(searches.len() <= 40, "{} searches", searches.len());
    let distinct: BTreeSet<_> = searches.iter().collect();
    assert_eq!(distinct.len(), searches.len(), "no page is asked for twice");
    let heads = heads(&api);
    assert!(heads.len() == 1_600 && heads.values().all(|n| *n == 1), "every head once");
    api.forget();
    project.run_ok(&[]).all_hit_as(&outcome);
    assert_eq!(api.requests().len(), 0);
    // Nothing is left of the search but its result.
    assert_eq!(files_below(&project.path("cache/downloads")), Vec::<std::path::PathBuf>::new());
}

const RUN: &[&str] = &["run", "w.yaml", "--format", "json"];

#[test]
fn nothing_is_asked_again_without_a_reason() {
    let api = GithubApi::start(repos(3));
    let project = project(&api, PAPER, "");
    let before = project.run_ok(&[]);
    api.set_repos(repos(4));
    api.forget();
    project.run_ok(&[]).all_hit();
    project.write("w.yaml", format!("# about\n{}# about\n", project.read("w.yaml")));
    project.edit("w.yaml", "op: query\n", "op: query # about\n    description: All of them.\n");
    project.run_ok(&[]).all_hit();
    for token in ["ghp_one", "ghp_two"] {
        project.run_with(RUN, &[("GITHUB_TOKEN", token)]).exits(0).all_hit();
    }
    project.edit("w.yaml", "    with:\n", "    with:\n      token_env: ANOTHER_NAME\n");
    project.run_with(RUN, &[("ANOTHER_NAME", "ghp_three")]).exits(0).all_hit();
    project.rerun("  repos:\n", "  found:\n").all_hit();
    assert_eq!(api.requests().len(), 0);
    let forced = project.run_ok(&["--force", "found"]).step("found");
    assert_eq!((&forced["reason"], &forced["rows"]), (&"FORCED".into(), &4.into()));
    assert_ne!(forced["digest"], before.step("repos")["digest"]);
    assert_eq!((api.searches().len(), heads(&api).len()), (1, 4));
    // Another question is asked.
    let api = GithubApi::start(repos(3));
    let project = self::project(&api, PAPER, ", limit: 3, sort: stars").ran();
    for (old, new) in [
        ("limit: 3", "limit: 2"),
        ("sort: stars", "sort: updated"),
        ("stars:>1000", "stars:>999"),
        ("      limit", "      branch: main\n      limit"),
    ] {
        api.forget();
        project.edit("w.yaml", old, new);
        assert_eq!(project.run_ok(&[]).step("repos")["reason"], "ARG_CHANGED", "{new}");
        assert_eq!(api.searches().len(), 1, "{new}");
    }
    // Back again: that answer is stored.
    project.edit("w.yaml", "      branch: main\n", "");
    project.run_ok(&[]).all_hit();
}

#[test]
fn limit_and_sort_choose() {
    let mut all = repos(2_100);
    for (repo, at) in all.iter_mut().zip(0..) {
        repo.forks = 5_000 - at;
        repo.updated_at = format!("20{:02}-01-01T00:00:00Z", 10 + at % 80);
    }
    (all[7].updated_at, all[9].updated_at) =
        ("2095-01-01T00:00:00Z".into(), "2094-01-01T00:00:00Z".into());
    let api = GithubApi::start(all);
    let find = |more: &str| {
        api.forget();
        let project = project(&api, PAPER, more).ran();
        names(&project, "repos")
    };
    assert_eq!(find(", limit: 2, sort: stars"), ["o/r2099", "o/r2100"]);
    assert_eq!(find(", limit: 2, sort: forks"), ["o/r0001", "o/r0002"]);
    assert_eq!(find(", limit: 2, sort: updated"), ["o/r0008", "o/r0010"]);
    let hundred = find(", limit: 100, sort: stars");
    assert_eq!((hundred.len(), api.searches().len()), (100, 1));
    assert_eq!(hundred[0], "o/r2001");
    assert_eq!(find(", limit: 5").len(), 5);
    let many = find(", limit: 1001, sort: stars");
    assert_eq!((many.len(), many[0].as_str()), (1_001, "o/r1100"));
    assert_eq!(heads(&api).len(), 1_001, "only what is kept is asked for its head");
}

#[test]
fn a_branch_is_followed_or_missed() {
    let mut all = repos(3);
    all[1].default_branch = "dev".into();
    let api = GithubApi::start(all);
    let project = project(&api, PAPER, ", branch: dev");
    let outcome = project.run_ok(&[]);
    let kept = project.cells("repos", "default_branch repo head_sha");
    assert_eq!(kept, [format!("dev | o/r0002 | {:040x}", 2)], "{outcome}");
    let rejects = project.cells("repos.rejects", "repo step rule");
    assert_eq!(rejects, ["o/r0001 | repos | reachable", "o/r0003 | repos | reachable"]);
    for reject in project.rows("repos.rejects") {
        says(text(&reject, "reason"), &["no branch `dev`"]);
    }
    project.run_ok(&[]).all_hit();
    // “If there is a list, and it is not empty, the search is not made.”
    for (list, searches) in [("[o/r0002]", 0), ("' o/r0002 '", 0), ("''", 1), ("[]", 1)] {
        let api = GithubApi::start(repos(2));
        let project = self::project(&api, PAPER, &format!(", limit: 2, repos: {list}"));
        let outcome = project.run_ok(&[]);
        assert_eq!(api.searches().len(), searches, "{list}");
        assert_eq!(outcome.step("repos")["rows"], 1 + searches);
    }
}

/// Just one diagnostic, at the mark `«`; nothing is asked or run.
#[track_caller]
fn refused(with: &str, code: &str, words: &str) {
    let (text, place) =
        marked(&format!("galeras: 1\nsteps:\n  repos:\n    op: query\n    with: {{ {with} }}\n"));
    let project = Project::new(&text);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
    let shown = project.cli("run w.yaml").exits(2).reports(&[&format!("w.yaml:{place}"), "─"]);
    says(&flat(&shown.stderr), &[words]);
    assert!(project.stored_nothing());
}

#[test]
fn what_is_wrong_is_found_before_anything_is_asked() {
    let base = "base_url: 'http://127.0.0.1:1', github";
    refused(&format!("{base}: «'language:Python stars:>many'"), "bad-query", "`stars:>many`");
    refused(&format!("{base}: «'stars:1..0'"), "bad-query", "the range is empty");
    refused(&format!("{base}: «'created:>yesterday'"), "bad-query", "`created:>yesterday`");
    refused(&format!("{base}: «'a stars:>5 OR b'"), "bad-query", "OR");
    refused(&format!("{base}: «'\"open'"), "bad-query", "never closed");
    refused(&format!("{base}: «''"), "bad-query", "empty");
    refused(&format!("{base}: «'stars:>5 stars:<3'"), "bad-query", "matches nothing");
    refused(&format!("{base}: a, sort: «star"), "wrong-value", "did you mean `stars`?");
    refused(&format!("{base}: a, limit: «0"), "wrong-value", "at least 1");
    refused(&format!("{base}: a, limit: «-1"), "wrong-value", "limit");
    refused("repos: [a/b], limit: «3", "conflicting-arguments", "belongs to `github`");
    refused("repos: [a/b], sort: «stars", "conflicting-arguments", "belongs to `github`");
    refused("github: a, base_url: «'ftp://h'", "bad-url", "https://");
    refused("github: a, base_url: «'http://u:secret@h'", "bad-url", "password");
    let lacking = Project::steps("  repos:\n    op: query\n    with: { token_env: T }\n");
    lacking.refused_at("3:3", "missing-argument", &[]);
    // The search counts again as soon as the list is gone.
    refused(&format!("{base}: «'stars:>many', repos: [a/b]"), "bad-query", "`stars:>many`");
}

#[test]
fn a_locked_answer_is_used_although_the_world_moves() {
    let api = GithubApi::start(repos(2));
    let project = project(&api, PAPER, "");
    let free = project.run_ok(&[]);
    project.run_json(&["--frozen"]).exits(2);
    api.set_repos(repos(3));
    let locked = project.run(&["lock", "w.yaml"]).exits(0);
    assert!(locked.stdout.is_empty(), "{locked}");
    let lock: Value = serde_json::from_str(&project.read("galeras.lock")).unwrap();
    let pinned = lock["snapshots"][0]["rows"].as_array().unwrap();
    assert_eq!((pinned.len(), &pinned[2]["repo"]), (3, &"o/r0003".into()), "lock asks anew");
    let mut moved = repos(4);
    moved[0].head = "77".repeat(20);
    api.set_repos(moved);
    api.forget();
    let run = project.run_ok(&[]);
    assert_eq!(names(&project, "repos"), ["o/r0001", "o/r0002", "o/r0003"]);
    assert_ne!(run.step("repos")["digest"], free.step("repos")["digest"]);
    // Nothing is asked by a new store, a frozen run, or by force, which warns.
    assert_eq!(project.run_ok(&["--frozen", "--cache", "empty"]).digests(), run.digests());
    let forced = project.run_ok(&["--force", "repos"]);
    assert_eq!(forced.digests(), run.digests());
    says(&forced.warnings()[0], &["pinned by galeras.lock"]);
    assert_eq!(api.requests().len(), 0);
    // Another token or comment is the same question; another limit is not.
    project.edit("w.yaml", "with:\n", "with: # about\n      token_env: OTHER\n");
    project.run_ok(&["--frozen"]).all_hit();
    project.edit("w.yaml", "with:", "with:\n      limit: 2");
    project.run_json(&["--frozen"]).exits(2).prints(&["galeras.lock does not answer"]);
    // Locked again, it is the new world.
    project.edit("w.yaml", "\n      limit: 2", "");
    project.run(&["lock", "w.yaml"]).exits(0);
    assert_eq!(project.run_ok(&["--frozen"]).step("repos")["rows"], 4);
    assert_eq!(project.rows("repos")[0]["head_sha"], "77".repeat(20));
}

pub const TOKEN: &str = "ghp_S3cretTokenValue0123456789";

/// The token is in nothing that was printed or written.
#[track_caller]
pub fn hidden(project: &Project, outcome: &Outcome) {
    assert!(!outcome.stdout.contains(TOKEN) && !outcome.stderr.contains(TOKEN), "{outcome}");
    let files = files_below(project.root().parent().unwrap());
    assert!(files.len() > 1);
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
        assert!(!found, "the token is in {}", file.display());
    }
}

#[test]
fn the_token_goes_to_the_api_only() {
    let elsewhere = GithubApi::start(repos(3));
    for (name, more) in [("GITHUB_TOKEN", ""), ("MY_OWN", ", token_env: MY_OWN")] {
        let api = GithubApi::start(Vec::new());
        let mut all = repos(3);
        all[1].clone_url = Some(format!("{}/o/r0002.git", elsewhere.url()));
        api.set_repos(all);
        let project = project(&api, PAPER, more);
        let variables = [(name, TOKEN), ("OTHER_TOKEN", "ghp_other")];
        for args in [
            RUN,
            &["run", "w.yaml", "--force", "repos"],
            &["show", "w.yaml", "repos"],
            &["explain", "w.yaml", "repos", "--format", "json"],
            &["lock", "w.yaml"],
        ] {
            hidden(&project, &project.run_with(args, &variables).exits(0));
        }
        for request in api.requests() {
            let sent = request.header("authorization");
            match request.path.as_str() {
                "/search/repositories" => assert_eq!(sent, [format!("Bearer {TOKEN}")]),
                path => assert!(sent.is_empty(), "{path}: {sent:?}"),
            }
            assert!(!format!("{:?}{:?}", request.path, request.query).contains(TOKEN));
        }
        assert_eq!(api.searches().len(), 3);
    }
    assert!(elsewhere.requests().iter().all(|r| !format!("{r:?}").contains("ghp_")));
    assert_eq!(elsewhere.requests().len(), 6);
}

#[test]
fn a_token_is_sent_if_its_variable_is_set_and_to_one_host() {
    let api = GithubApi::start(repos(1));
    for variables in [[("GITHUB_TOKEN", "ghp_x")], [("MY_OWN", " ")]] {
        let project = project(&api, PAPER, ", token_env: MY_OWN");
        project.run_with(&["run", "w.yaml"], &variables).exits(0);
    }
    assert!(api.requests().iter().all(|r| r.header("authorization").is_empty()));
    // Nor does it follow a redirect to another host.
    let elsewhere = GithubApi::start(repos(1));
    let api = GithubApi::start(repos(1));
    let to = format!("{}/search/repositories?q=r", elsewhere.url());
    api.script(move |_, _| {
        Some(GithubFault::Raw(302, vec![("location".into(), to.clone())], String::new()))
    });
    let project = project(&api, PAPER, "");
    let outcome = project.run_with(&["run", "w.yaml"], &[("GITHUB_TOKEN", TOKEN)]).exits(1);
    assert!(outcome.stderr.contains("redirects to"), "{outcome}");
    hidden(&project, &outcome);
    assert!(elsewhere.requests().is_empty());
    // A query that GitHub rejects is reported.
    let api = GithubApi::start(repos(1));
    let project = self::project(&api, "'colour:red stars:>1'", "");
    let outcome = project.run(&["run", "w.yaml"]).exits(1);
    says(&flat(&outcome.stderr), &["unknown qualifier colour"]);
    assert_eq!(api.requests().len(), 1);
    // A token that cannot be one is no reason to ask.
    let odd = project.run_with(&["run", "w.yaml"], &[("GITHUB_TOKEN", "two words")]).exits(1);
    assert!(odd.stderr.contains("$GITHUB_TOKEN") && !odd.stderr.contains("two words"), "{odd}");
}

#[test]
fn steps_with_one_search_do_not_stand_in_each_others_way() {
    let api = GithubApi::start(repos(3));
    api.faults(vec![(0, GithubFault::Slow(Duration::from_millis(500)))]);
    let project = project(&api, PAPER, "");
    let step = project.read("w.yaml").split_once("steps:\n").unwrap().1.replace("repos:", "tips:");
    project.append(&format!("{step}      branch: main\n"));
    let outcome = project.run_ok(&["--jobs", "2"]);
    assert_eq!(outcome.statuses(), "repos=ran tips=ran");
    assert_eq!(outcome.step("repos")["digest"], outcome.step("tips")["digest"]);
}

#[test]
fn what_a_search_finds_is_mined() {
    let api = GithubApi::start(Vec::new());
    let project = project(&api, PAPER, "");
    let repository = Repository::bare(project.path("served/r.git"));
    let commits = [1, 2].map(|n| repository.commit(at(day(n)).write("m.py", def("f", n))));
    let server = HttpGit::start(&project.path("served"));
    let mut all = repos(1);
    all[0].clone_url = Some(server.url("r.git"));
    api.set_repos(all);
    let with = "{ since: 2022-01-01, until: 2023-01-01 }";
    project.append(&format!("  methods: {{ op: mine, from: repos, with: {with} }}\n"));
    let outcome = project.run_with(RUN, &[("GITHUB_TOKEN", TOKEN)]).exits(0);
    assert_eq!(project.rows("repos")[0]["head_sha"], commits[1]);
    let mined = project.rows("methods");
    let found: BTreeSet<&str> = mined.iter().map(|m| m["commit_id"].as_str().unwrap()).collect();
    assert_eq!(found, commits.iter().map(String::as_str).collect());
    assert!(mined.iter().all(|m| m["repo"] == "o/r0001" && m["fun_name"] == "f"), "{mined:?}");
    assert!(server.take_seen().iter().all(|r| r.header("authorization").is_none()));
    hidden(&project, &outcome);
}
