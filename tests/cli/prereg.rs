//! `prereg`: `galeras lock` registers an analysis before there are answers, and a run reports which
//! estimates are as registered.

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, says, text};

const WORKFLOW: &str = "galeras: 1
prereg: effect
steps:
  data: { op: read, with: { path: data.jsonl } }
  kept:
    op: validate
    from: data
    with: { rules: [{ name: long, check: 'character_length(code) > 3' }] }
  prompts:
    op: prompt
    from: kept
    with: { treatments: { control: '{{ code }}', T1: 'Go on: {{ code }}' } }
  answers: { op: generate, from: prompts, with: { provider: echo, given: code } }
  scores:
    op: sql
    from: answers
    with:
      query: >
        SELECT *, noise + CASE WHEN treatment = 'T1' THEN lift ELSE 0 END AS quality,
          noise - CASE WHEN treatment = 'T1' THEN lift ELSE 0 END AS speed FROM input
      key: [id, treatment]
  effect:
    op: regress
    from: scores
    with:
      treatment: treatment
      control: control
      outcomes: [quality]
      unit: code
      estimators: [paired]
      refuters: [placebo]
      simulations: 10
      seed: 1
";

fn project() -> Project {
    let project = Project::new(WORKFLOW);
    let row = |at: usize| {
        let (noise, lift) = ((at * 7 % 11) as f64, 1.0 + (at % 5) as f64 / 10.0);
        json!({"id": format!("d{at:02}"), "code": format!("x = {at}"), "noise": noise, "lift": lift})
    };
    project.write("data.jsonl", (0..40).map(|at| format!("{}\n", row(at))).collect::<String>());
    project
}

#[track_caller]
fn lock(project: &Project, more: &[&str]) -> Outcome {
    project.run(&[&["lock", "w.yaml"], more].concat()).exits(0)
}

#[track_caller]
fn run(project: &Project) -> Outcome {
    project.run(&["run", "w.yaml"]).exits(0)
}

fn registrations(project: &Project) -> Vec<Value> {
    let lock: Value = serde_json::from_str(&project.read("galeras.lock")).unwrap();
    lock["registrations"].as_array().cloned().unwrap_or_default()
}

/// The estimates, `quality ols: ` with why one is not registered, in the order of their names.
#[track_caller]
fn estimates(project: &Project) -> Vec<String> {
    let line = |row: &Value| {
        let registered = row["registered"].as_bool().unwrap();
        let why = if registered { "registered" } else { text(row, "deviation") };
        assert_eq!(row["deviation"].is_null(), registered, "{row}");
        format!("{} {}: {why}", text(row, "outcome"), text(row, "estimator"))
    };
    let mut lines: Vec<String> = project.rows("effect").iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn what_was_registered_stays_registered_and_the_rest_is_exploratory() {
    let project = project();
    lock(&project, &[]).reports(&["effect is registered, before there are results"]);
    run(&project).reports(&["effect: 1 of 1 estimates are as registered"]);
    assert_eq!(estimates(&project), ["quality paired: registered"]);
    let finding = &project.rows("effect.findings")[0];
    assert_eq!(finding["registered"], true);
    let sentence = text(finding, "sentence");
    assert!(sentence.contains("(Registered on 20"), "{sentence}");
    assert!(sentence.ends_with("before there were results.)"), "{sentence}");

    // Another outcome, another estimator, and a check more.
    project.change("[quality]", "[quality, speed]");
    project.change("[paired]", "[paired, ols]");
    project.change("[placebo]", "[placebo, subset]");
    run(&project).reports(&["effect: 1 of 4 estimates are as registered"]);
    let expected = [
        "quality ols: the estimator `ols` is not registered",
        "quality paired: registered",
        "speed ols: the outcome `speed` is not registered",
        "speed paired: the outcome `speed` is not registered",
    ];
    assert_eq!(estimates(&project), expected);
    let findings = project.rows("effect.findings");
    let speed = findings.iter().find(|row| row["outcome"] == "speed").unwrap();
    let end = "(Exploratory: the outcome `speed` is not registered.)";
    assert!(text(speed, "sentence").ends_with(end), "{speed}");
    // A run in which nothing is computed also reports it.
    run(&project).reports(&["effect: 1 of 4 estimates are as registered"]);
}

#[test]
fn another_analysis_or_another_exclusion_is_a_deviation() {
    for (old, new, why) in [
        ("      seed: 1\n", "      seed: 1\n      alpha: 0.1\n", "another `alpha` was registered"),
        ("code) > 3", "code) > 4", "step `kept` has another `rules`"),
        ("'Go on: {{ code }}'", "'Please: {{ code }}'", "step `prompts` has another `treatments`"),
        ("given: code", "given: prompt", "step `answers` has another `column`"),
    ] {
        let project = project();
        lock(&project, &[]);
        project.rerun(old, new);
        assert_eq!(estimates(&project), [format!("quality paired: {why}")], "{new}");
        // Back again, it is what was registered.
        project.rerun(new, old);
        assert_eq!(estimates(&project), ["quality paired: registered"], "{new}");
    }
    // Leaving something out makes the rest a choice.
    let arms = "all arms were registered, and some are left out";
    for (old, new, left, why) in [
        ("[quality, speed]", "[quality]", 2, "the registered outcome `speed` is left out"),
        ("[paired, ols]", "[paired]", 2, "the registered estimator `ols` is left out"),
        ("seed: 1", "seed: 1\n      treatments: [T1]", 4, arms),
    ] {
        let project = project();
        project.change("[quality]", "[quality, speed]");
        project.change("[paired]", "[paired, ols]");
        lock(&project, &[]);
        project.change(old, new);
        run(&project).reports(&[&format!("effect: 0 of {left} estimates are as registered"), why]);
        let end = format!(": {why}");
        assert!(estimates(&project).iter().all(|line| line.ends_with(&end)), "{new}");
    }
}

#[test]
fn what_is_registered_after_the_answers_is_exploratory() {
    let project = project();
    run(&project).reports(&["`prereg` names it, but it is not registered"]);
    let why = "not registered: `galeras lock` registers it";
    assert_eq!(estimates(&project), [format!("quality paired: {why}")]);
    lock(&project, &[]).reports(&["there are results already (step answers is computed)"]);
    assert_eq!(registrations(&project)[0]["before_results"], false);
    project.run_ok(&[]);
    assert_eq!(estimates(&project), ["quality paired: registered when there were results"]);
    // Without answers, the input of the analysis counts.
    let project = self::project();
    let query = "{ query: 'SELECT * FROM input', key: [id, treatment] }";
    project.change("{ provider: echo, given: code }", query);
    project.change("op: generate", "op: sql");
    project.run_ok(&["--select", "answers"]);
    lock(&project, &[]).reports(&["effect is registered, before there are results"]);
    std::fs::remove_file(project.path("galeras.lock")).unwrap();
    project.run_ok(&[]);
    lock(&project, &[]).reports(&["there are results already (step scores is computed)"]);
}

#[test]
fn a_registration_is_only_added_to_and_only_when_asked() {
    let project = project();
    lock(&project, &[]);
    let first = registrations(&project);
    assert_eq!(first.len(), 1);
    lock(&project, &[]).reports(&["effect is registered since 20"]);
    assert_eq!(registrations(&project), first);
    project.change("[quality]", "[speed]");
    let said = lock(&project, &[]).reports(&["galeras lock --amend"]);
    says(&said.stderr, &["is another analysis now; the registration stays"]);
    assert_eq!(registrations(&project), first);
    lock(&project, &["--amend"]);
    let both = registrations(&project);
    assert_eq!((both.len(), &both[0]), (2, &first[0]));
    assert_eq!(both[1]["with"]["outcomes"], json!(["speed"]));
    project.run_ok(&[]);
    assert_eq!(estimates(&project), ["speed paired: registered"]);
    // The earlier one still counts for its outcomes.
    project.rerun("[speed]", "[speed, quality]");
    assert_eq!(estimates(&project), ["quality paired: registered", "speed paired: registered"]);
    // Neither an edit of the file's form nor another lock loses it.
    lock(&project, &[]);
    assert_eq!(registrations(&project), both);
}

#[test]
fn groups_and_contrasts_are_registered_one_by_one() {
    let project = project();
    project.change("T1: 'Go on: {{ code }}'", "T1: 'Go on: {{ code }}', T2: '{{ code }}!'");
    project.change("      unit: code\n", "      unit: code\n      treatments: [T1]\n");
    project.change("SELECT *,", "SELECT *, id < 'd20' AS early,");
    project.change("      unit: code\n", "      unit: code\n      by: [early]\n");
    lock(&project, &[]);
    project.rerun("      treatments: [T1]\n", "");
    let rows = project.rows("effect");
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["registered"], row["treatment"] == "T1", "{row}");
        if row["treatment"] == "T2" {
            assert_eq!(row["deviation"], "`T2` against `control` is not registered");
        }
    }
    let finding = &project.rows("effect.findings")[0];
    assert!(text(finding, "sentence").starts_with("Where `early` is "), "{finding}");
}

#[test]
fn a_name_that_no_analysis_has_is_a_mistake() {
    let project = project();
    for (prereg, code, message) in [
        ("efect", "unknown-step", "there is no step `efect`"),
        ("kept", "wrong-value", "step `kept` is `validate`"),
        ("[effect, effect]", "wrong-value", "`effect` is named twice"),
        ("{ a: 1 }", "wrong-type", "`prereg` must be the name of a step, or a list of names"),
        ("[1]", "wrong-type", "a step under `prereg` must be a string"),
    ] {
        project.write("w.yaml", WORKFLOW.replace("prereg: effect", &format!("prereg: {prereg}")));
        project.run(&["check", "w.yaml"]).exits(2).reports(&[code, message]);
    }
    says(&project.run(&["check", "w.yaml"]).exits(2).stderr, &["prereg"]);
}

#[test]
fn an_embedded_analysis_is_named_by_its_path() {
    let project = project().with("study.yaml", WORKFLOW.replace("prereg: effect\n", ""));
    let outputs = "outputs: { effect: { from: effect.findings, path: e.csv } }\nsteps:\n";
    project.edit("study.yaml", "steps:\n", outputs);
    project.write("w.yaml", "galeras: 1\nprereg: [study/effect]\nsteps:\n  study: { uses: ./study.yaml }\noutputs:\n  e: { from: study.effect, path: e.csv }\n");
    lock(&project, &[]);
    assert_eq!(registrations(&project)[0]["step"], "study/effect");
    says(&run(&project).stderr, &["study/effect: 1 of 1 estimates are as registered"]);
    // A lock file that is edited by hand is read or refused.
    let project = self::project();
    lock(&project, &[]);
    // An analysis that is none: no estimate is covered by it.
    let text = project.read("galeras.lock");
    project.write("galeras.lock", text.replace("\"treatment\": \"treatment\"", "\"treatment\": 7"));
    project.run_ok(&[]);
    assert_eq!(estimates(&project), ["quality paired: registered by another version of galeras"]);
    let damaged = text.replace("\"before_results\": true", "\"before_results\": 1");
    project.write("galeras.lock", &damaged);
    project.run(&["run", "w.yaml"]).exits(2).reports(&["bad-lock"]);
    // Locking again would lose what was registered.
    project.run(&["lock", "w.yaml"]).exits(2).reports(&["it holds registrations"]);
    assert_eq!(project.read("galeras.lock"), damaged);
}
