//! `prompt`: templates that are wrong are found before anything runs, with their place; rows
//! that a template cannot write are set aside with the reason.

use serde_json::{Value, json};

use crate::harness::{Project, every, lines, patience, refused, text};

fn workflow(with: &str) -> String {
    let with: String = with.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: touch ran; printf '{{\"id\":\"a\",\"code\":\"x y\",\"size\":1}}'
      output: {{ id: utf8!, code: utf8!, size: int64! }}
  prompts:
    op: prompt
    from: table
    with:
{with}"
    )
}

#[track_caller]
fn wrong(with: &str, code: &str, words: &[&str]) {
    refused(&workflow(with), code, words);
}

#[track_caller]
fn project(rows: &[Value], with: &str) -> Project {
    let text = workflow(with);
    let (_, prompts) = text.split_once("  prompts:\n").unwrap();
    let table = "  table: { op: read, with: { path: data.jsonl } }\n  prompts:\n";
    Project::steps(&(table.to_owned() + prompts)).with("data.jsonl", lines(rows))
}

/// The arguments with the mark at the only mistake, the code, words of the message.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("treatments: { a: «'Complete {{ cod }}' }", "unknown-column", &["did you mean `code`?", "`cod`"]),
    ("treatments: { a: ['{{ code }}', «'{{ cod }}'] }", "unknown-column", &["did you mean `code`?", "`cod`"]),
    ("treatments:\n  a:\n    - { role: user, content: «'{{ cod | upper }}' }", "unknown-column", &["did you mean `code`?", "`cod`"]),
    ("system: «'{{ cod }}'\ntreatments: { a: Go., b: Go. }", "unknown-column", &["did you mean `code`?", "`cod`"]),
    ("treatments: { a: «\"{% if cod %}x{% endif %}\" }", "unknown-column", &["did you mean `code`?", "`cod`"]),
    ("treatments: { a: «'{% for c in codes %}{{ c }}{% endfor %}' }", "unknown-column", &["`codes`"]),
    ("treatments:\n  a: |\n    «Complete:\n    {{ code }}\n    {{ cod }}", "unknown-column", &["did you mean `code`?"]),
    // A name that is called is not a column.
    ("treatments: { a: «'{{ cod(size) }}' }", "bad-template", &["function `cod`"]),
    ("treatments: { a: «'{{ code | uper }}' }", "bad-template", &["`uper`"]),
    ("treatments: { a: «'{% if code | nope %}{{ code }}{% endif %}' }", "bad-template", &["`nope`"]),
    ("treatments: { a: «'{{ code | upper | nope }}' }", "bad-template", &["`nope`"]),
    ("treatments: { a: «'{% filter nope %}{{ code }}{% endfilter %}' }", "bad-template", &["nope"]),
    // Named blocks are for templates that others include.
    ("treatments: { a: «'{% block b %}{{ code }}{% endblock %}' }", "bad-template", &["blocks"]),
    ("treatments: { a: «'{% if code is nope %}{{ code }}{% endif %}' }", "bad-template", &["nope"]),
    ("treatments: { a: «'{{ code.upper() }}' }", "bad-template", &["upper"]),
    ("treatments: { a: «'{{ code' }", "bad-template", &[]),
    ("treatments: { a: «'{% if code %}x' }", "bad-template", &[]),
    ("treatments: { a: «'{{ code + }}' }", "bad-template", &[]),
    ("treatments: { a: «'{% nope %}' }", "bad-template", &["nope"]),
    ("treatments: { a: «'{% endfor %}' }", "bad-template", &[]),
    ("treatments:\n  a: |\n    «Complete:\n    {{ code }}\n    {{ code\n    and more.", "bad-template", &["line "]),
    ("treatments:\n  a: |\n    «One:\n    two\n    {{ code ~ }} three", "bad-template", &["line 3"]),
    ("treatments: { a: '{{ code }}', b: «\"{% include 'a[0]' %}{{ code }}\" }", "bad-template", &[]),
    ("treatments: { a: '{{ code }}', b: «\"{% extends 'a[0]' %}{{ code }}\" }", "bad-template", &[]),
    ("treatments: { a: '{{ code }}', b: «\"{% import 'a[0]' as b %}{{ code }}\" }", "bad-template", &[]),
    ("treatments: { a: «'{{ code }}{% include \"x\" %}', b: '{{ code }}' }", "bad-template", &[]),
    ("treatments: «{}", "out-of-range", &["at least one treatment"]),
    ("treatments: { a: «[] }", "bad-turns", &["end with a message of the user"]),
    ("treatments:\n  a:\n    «- Go.\n    - { role: assistant, content: Yes. }", "bad-turns", &["end with a message of the user"]),
    ("treatments:\n  a:\n    «- { role: system, content: Be. }", "bad-turns", &["end with a message of the user"]),
    ("treatments:\n  a:\n    «- Go.\n    - { role: system, content: Be. }\n    - Go.", "bad-turns", &["a system message must come first"]),
    ("treatments: { '': «Go. }", "bad-turns", &["needs a name"]),
];

#[test]
fn templates_and_treatments_are_checked_at_their_place() {
    every(MISTAKES.iter().map(|case| (case.0, case)), |(with, code, words)| {
        wrong(with, code, words);
    });
    // Every mistake is reported at once.
    let project = Project::new(&workflow(
        "system: '{{ sys }}'
treatments:
  a: '{{ aa }} {{ bb }}'
  b: ['{{ cc }}', '{{ code }}']",
    ));
    let outcome = project.run_json(&[]).exits(2);
    let messages: Vec<String> =
        outcome.events("diagnostic").iter().map(|d| d.to_string()).collect();
    assert_eq!(messages.len(), 4, "{outcome}");
    for name in ["`sys`", "`aa`", "`bb`", "`cc`"] {
        assert_eq!(messages.iter().filter(|m| m.contains(name)).count(), 1, "{name}: {outcome}");
    }
}

#[test]
fn treatments_of_the_wrong_form() {
    for with in [
        "treatments: { a: 1 }",
        "treatments: { a: }",
        "treatments: { a: { x: y } }",
        "treatments: { a: [[Go.]] }",
        "treatments: { a: [{ role: robot, content: x }] }",
        "treatments: { a: [{ role: user }] }",
        "treatments: { a: [{ role: user, content: x, more: y }] }",
        "treatments: [Go.]",
        "treatments: Go.",
        "treatments:",
        "system: Be.",
        "treatments: { a: Go. }\nsystem: [Be.]",
        "treatments: { a: Go. }\nsistem: Be.",
    ] {
        let project = Project::new(&workflow(with));
        let outcome = project.run_json(&[]).exits(2);
        assert_eq!(outcome.diagnostics().len(), 1, "{with}: {outcome}");
        assert!(!outcome.stdout.contains("untagged"), "{with}: {outcome}");
        assert!(!project.path("ran").exists(), "{with}");
    }
}

fn with_nulls() -> Vec<Value> {
    vec![
        json!({"id": "a", "doc": "Says a.", "code": "x", "names": ["n"], "at": {"path": "p"}}),
        json!({"id": "b", "doc": null, "code": "y", "names": null, "at": null}),
        json!({"id": "c", "doc": "", "code": null, "names": [], "at": {"path": null}}),
    ]
}

/// The ids of the rows that are answered, and those that are not: `id, rule: reason`.
#[track_caller]
fn told(with: &str) -> (Vec<String>, Vec<String>) {
    let project = project(&with_nulls(), with).ran();
    let kept = project.cells("prompts", "snippet_id");
    let rejects = project.rows("prompts.rejects");
    assert!(rejects.iter().all(|row| row["step"] == "prompts"), "{rejects:?}");
    let line = |r: &Value| format!("{}, {}: {}", text(r, "id"), text(r, "rule"), text(r, "reason"));
    (kept, rejects.iter().map(line).collect())
}

#[test]
fn a_null_that_is_written_sets_the_row_aside_under_all_treatments() {
    let (kept, rejects) = told(
        "treatments:
  bare: '{{ code }}'
  doc: 'It says: {{ doc }}'",
    );
    // So that a comparison of the treatments stays paired.
    assert_eq!(kept, ["a", "a"]);
    assert_eq!(rejects, ["b, doc: the column `doc` is null", "c, bare: the column `code` is null"]);
    // A null that the template asks for keeps the row.
    let (kept, rejects) = told(
        "treatments:
  asked: '{% if doc %}{{ doc }}{% else %}nothing{% endif %}'
  default: \"{{ code | default('none') }} {{ doc or 'none' }}\"
  defined: '{% if names is defined %}{{ names | length }}{% endif %}'",
    );
    assert_eq!(kept.len(), 9, "{rejects:?}");
    let (kept, _) = told("treatments: { t: '{% if at %}{{ at.path | default(id) }}{% endif %}' }");
    assert_eq!(kept, ["a", "b", "c"]);
    // A null within a list or an object.
    let (kept, rejects) = told("treatments: { t: '{{ at }}' }");
    assert_eq!(kept, ["a"]);
    let reasons = ["b, t: the column `at` is null", "c, t: the column `at` contains a null"];
    assert_eq!(rejects, reasons);
}

/// Templates that write what is null in row `b`, in one way or another.
const WRITES_A_NULL: [&str; 19] = [
    "{{ doc }}",
    "{{ doc | upper }}",
    "{{ doc | trim }}",
    "{{ 'x' ~ doc }}",
    "{{ doc ~ 'x' }}",
    "{{ doc + 'x' }}",
    "{{ doc | length }}",
    "{{ doc | replace('a', 'b') }}",
    "{% for line in doc | lines %}{{ line }}{% endfor %}",
    "{% for name in names %}{{ name }}{% endfor %}",
    "{{ names[0] }}",
    "{{ names | first }}",
    "{{ at.path }}",
    "{% set x = doc %}{{ x }}",
    "{{ doc | string }}",
    // These are easily forgotten.
    "{{ id }} {{ doc[:3] }}",
    "{{ names | join(', ') }}",
    "{{ [doc, 'x'] | join(' ') }}",
    "{{ doc | tojson }}",
];

/// Row `b` is set aside, and the reason names the column.
#[test]
fn a_null_is_not_written_in_any_way() {
    every(WRITES_A_NULL.map(|template| (template, template)), |template| {
        let (_, rejects) = told(&format!("treatments: {{ t: \"{template}\" }}"));
        let reject = rejects.iter().find(|reject| reject.starts_with("b, ")).expect("not written");
        let (_, reason) = reject.split_once(": ").unwrap();
        assert!(["`doc`", "`names`", "`at`"].iter().any(|n| reason.contains(n)), "{reason}");
    });
}

#[test]
fn a_system_message_is_written_for_every_row_and_one_that_cannot_be_says_why() {
    let (kept, rejects) = told("system: '{{ doc }}'\ntreatments: { t: Go. }");
    assert_eq!(kept, ["a", "c"]);
    assert!(rejects[0].ends_with(": the column `doc` is null"), "{rejects:?}");
    // A row that cannot be written has the reason.
    let rows = [json!({"id": "a", "n": 0, "x": "a"}), json!({"id": "b", "n": 2, "x": "b"})];
    let project = project(&rows, "treatments:\n  t: |\n    Half:\n    {{ 4 // n }}").ran();
    assert_eq!(project.rows("prompts").len(), 1);
    // The columns of the row are there, to look at it.
    assert_eq!(project.cells("prompts.rejects", "id rule x n"), ["a | t | a | 0"]);
    let reject = project.only("prompts.rejects");
    let reason = text(&reject, "reason");
    assert!(reason.contains("line 2") && !reason.contains('\n'), "{reason}");
}

#[test]
fn a_template_without_end_is_stopped() {
    let rows = [json!({"id": "a", "n": 100_000})];
    let with = "treatments:
  t: '{% for a in range(n) %}{% for b in range(n) %}x{% endfor %}{% endfor %}'";
    let project = project(&rows, with);
    // The row or the template may get the blame, but within bounded time.
    let outcome = project.run_json(&[]);
    assert!(outcome.took < patience(20) && outcome.code.is_some(), "{outcome}");
    let told = match outcome.code {
        Some(0) => project.rows("prompts.rejects")[0]["reason"].to_string(),
        _ => outcome.step("prompts")["detail"].to_string(),
    };
    assert!(told.contains("takes too long"), "{told}");
    // No rows have no prompts.
    let text = workflow("treatments: { t: '{{ code }}' }")
        .replace("    from: table\n    with:", "    from: none\n    with:")
        + "  none: { op: sql, from: table, with: { query: 'SELECT * FROM input WHERE size > 9' } }\n";
    let project = Project::new(&text);
    assert_eq!(project.run_ok(&[]).step("prompts")["rows"], 0);
    assert!(project.rows("prompts").is_empty() && project.rows("prompts.rejects").is_empty());
}
