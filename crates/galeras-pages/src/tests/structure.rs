//! The structure of the page of a report.

use serde_json::json;

use super::{between, from_json};
use crate::report;

#[test]
fn the_answer_comes_first_then_the_steps_then_the_rest() {
    let page = report(&from_json(json!({
        "title": "T", "workflow": "w", "question": "Why *so*?",
        "sections": [
            { "kind": "findings", "findings": [{ "sentence": "S." }] },
            { "kind": "table", "title": "Scores" },
            { "kind": "reproduce" },
        ],
        "graph": { "steps": [{ "name": "a" }] },
    })))
    .unwrap();
    let headings: Vec<&str> =
        page.split("<h2 ").skip(1).map(|rest| between(rest, ">", "</h2>")).collect();
    assert_eq!(headings, ["Findings", "Steps", "Scores", "How to reproduce this"]);
    assert_eq!(page.matches("<h1>T</h1>").count(), 1);
    assert!(page.contains("<p>Why <em>so</em>?</p>"));
    let nav = between(&page, "<nav class=\"contents\"", "</nav>");
    assert_eq!(nav.matches("<a href=\"#section-").count(), 4);
}

#[test]
fn the_graph_stands_where_the_report_says() {
    let page = report(&from_json(json!({
        "sections": [{ "kind": "text", "title": "A" }, { "kind": "steps" }, { "kind": "text", "title": "B" }],
        "graph": { "steps": [{ "name": "gen[model=a]" }, { "name": "gen[model=b]" }] },
    })))
    .unwrap();
    let at = |text: &str| page.find(text).unwrap();
    assert!(at(">A</h2>") < at(">Steps</h2>") && at(">Steps</h2>") < at(">B</h2>"));
    assert_eq!(page.matches(">Steps</h2>").count(), 1);
    assert_eq!(page.matches("<details class=\"step\"").count(), 2);
}

#[test]
fn ids_are_unique_and_links_within_the_page_lead_somewhere() {
    let name = "gen[model=a b/ü]";
    let page = report(&from_json(json!({
        "missing": [{ "step": name, "command": "galeras run" }, { "step": "unknown" }],
        "sections": [
            { "kind": "table", "source": name, "columns": [{ "name": "x" }], "rows": [[1]] },
            { "kind": "rows", "points": [{ "id": "1", "answer": "a", "reference": "b", "trace": [{ "step": name }] }, { "id": "1", "answer": "a" }] },
            { "kind": "attrition", "stages": [{ "step": name, "rows": 3 }] },
            { "kind": "reproduce", "commands": [{ "command": "x" }, { "command": "y" }] },
        ],
        "graph": { "steps": [{ "name": name, "arguments": "a: 1" }, { "name": "b" }], "arrows": [{ "from": name, "to": "b" }] },
    })))
    .unwrap();
    let body = &page[page.find("<body>").unwrap()..page.rfind("<script>").unwrap()];
    let mut ids: Vec<&str> =
        body.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id is there twice");
    for rest in body.split("href=\"#").skip(1) {
        let target = rest.split('"').next().unwrap();
        assert!(ids.contains(&target), "{target} is nowhere");
    }
    for name in ["data-copy=\"", "aria-labelledby=\"", "data-points=\"", "data-step=\""] {
        for rest in body.split(name).skip(1) {
            let target = rest.split('"').next().unwrap();
            assert!(ids.contains(&target), "{name}{target} is nowhere");
        }
    }
}

#[test]
fn the_policy_lets_the_script_of_the_page_run_and_nothing_else() {
    let page = report(&from_json(json!({ "title": "T" }))).unwrap();
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"").replace("&#39;", "'");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("script-src 'unsafe-inline'") && !policy.contains("connect-src"));
    let script = between(&page, "<script>", "</script>");
    assert_eq!(policy, crate::policy(script, false), "the hash is that of the script");
    assert!(crate::policy(script, true).contains("connect-src 'self'"));
    // RFC 4648 by way of a hash that is published: that of the empty text.
    assert!(
        crate::policy("", false).contains("'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='")
    );
}

#[test]
fn an_empty_report_and_strange_numbers_make_a_page() {
    assert!(report(&from_json(json!({}))).unwrap().contains("</html>"));
    let page = report(&from_json(json!({
        "graph": { "steps": [{ "name": "" }], "arrows": [{}, { "from": "nowhere", "to": "" }] },
        "sections": [
            { "kind": "findings", "findings": [{ "effect": 0.0, "low": -1e308, "high": 1e308, "null_value": 0.0 }, { "effect": -1.0, "low": -2.0, "high": 1.0, "null_value": 1.0, "measure": "odds_ratio" }] },
            { "kind": "attrition", "stages": [{ "rows": 0, "lost": 0 }] },
            { "kind": "steps" },
        ],
    })))
    .unwrap();
    for word in ["NaN", "inf"] {
        let body = between(&page, "<main", "</main>");
        assert!(!body.contains(word), "{word}");
    }
}

#[test]
fn what_is_incomplete_or_refused_is_said_in_words() {
    let page = report(&from_json(json!({
        "missing": [{ "step": "a", "reason": "not computed yet", "command": "galeras run w.yaml --select a" }, { "step": "b", "reason": "failed" }],
        "sections": [{ "kind": "findings", "findings": [{ "sentence": "No effect is given.", "status": "refused", "reason": "An arm has no rows." }] }, { "kind": "diagnostics" }],
    })))
    .unwrap();
    assert!(page.contains("2 steps have no results as the workflow stands now"));
    assert!(page.contains("galeras run w.yaml --select a</code>"));
    assert!(page.contains("An arm has no rows."));
    assert!(page.contains("Nothing was refused, and nothing is in doubt."));
}
