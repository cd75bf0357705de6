//! `prereg`: `galeras lock` registers an analysis before there are answers, and a run says which
//! estimates are as registered.

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, says};

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
  answers:
    op: generate
    from: prompts
    with: { provider: echo, given: code }
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

/// The estimates: outcome and estimator, whether it is registered, and why not.
fn estimates(project: &Project) -> Vec<(String, bool, Option<String>)> {
    let rows = project.rows("effect").into_iter().map(|row| {
        let name =
            format!("{} {}", row["outcome"].as_str().unwrap(), row["estimator"].as_str().unwrap());
        let deviation = row["deviation"].as_str().map(str::to_string);
        (name, row["registered"].as_bool().unwrap(), deviation)
    });
    rows.collect()
}

fn registered(name: &str) -> (String, bool, Option<String>) {
    (name.to_string(), true, None)
}

fn exploratory(name: &str, why: &str) -> (String, bool, Option<String>) {
    (name.to_string(), false, Some(why.to_string()))
}

#[test]
fn what_was_registered_stays_registered_and_the_rest_is_exploratory() {
    let project = project();
    let said = lock(&project, &[]);
    assert!(said.stderr.contains("effect is registered, before there are results"), "{said}");
    let outcome = run(&project);
    assert!(outcome.stderr.contains("effect: 1 of 1 estimates are as registered"), "{outcome}");
    assert_eq!(estimates(&project), [registered("quality paired")]);
    let finding = &project.rows("effect.findings")[0];
    assert_eq!(finding["registered"], true);
    let sentence = finding["sentence"].as_str().unwrap();
    assert!(sentence.contains("(Registered on 20"), "{sentence}");
    assert!(sentence.ends_with("before there were results.)"), "{sentence}");

    // Another outcome, another estimator, and a check more.
    project.change("[quality]", "[quality, speed]");
    project.change("[paired]", "[paired, ols]");
    project.change("[placebo]", "[placebo, subset]");
    let outcome = run(&project);
    assert!(outcome.stderr.contains("effect: 1 of 4 estimates are as registered"), "{outcome}");
    let speed = "the outcome `speed` is not registered";
    let expected = [
        exploratory("quality ols", "the estimator `ols` is not registered"),
        registered("quality paired"),
        exploratory("speed ols", speed),
        exploratory("speed paired", speed),
    ];
    let mut found = estimates(&project);
    found.sort();
    assert_eq!(found, expected);
    let sentences: Vec<Value> = project.rows("effect.findings");
    let speed = sentences.iter().find(|row| row["outcome"] == "speed").unwrap();
    let sentence = speed["sentence"].as_str().unwrap();
    assert!(
        sentence.ends_with("(Exploratory: the outcome `speed` is not registered.)"),
        "{sentence}"
    );
    // A run in which nothing is computed says it as well.
    let again = run(&project);
    assert!(again.stderr.contains("effect: 1 of 4 estimates are as registered"), "{again}");
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
        assert_eq!(estimates(&project), [exploratory("quality paired", why)], "{new}");
        // Back again, it is what was registered.
        project.rerun(new, old);
        assert_eq!(estimates(&project), [registered("quality paired")], "{new}");
    }
}

#[test]
fn what_is_left_out_makes_the_rest_a_choice() {
    let two = |project: &Project| {
        project.change("[quality]", "[quality, speed]");
        project.change("[paired]", "[paired, ols]");
    };
    for (old, new, left, why) in [
        ("[quality, speed]", "[quality]", 2, "the registered outcome `speed` is left out"),
        ("[paired, ols]", "[paired]", 2, "the registered estimator `ols` is left out"),
        (
            "      seed: 1\n",
            "      seed: 1\n      treatments: [T1]\n",
            4,
            "all arms were registered, and some are left out",
        ),
    ] {
        let project = project();
        two(&project);
        lock(&project, &[]);
        project.change(old, new);
        let outcome = run(&project);
        let said = format!("effect: 0 of {left} estimates are as registered");
        assert!(outcome.stderr.contains(&said) && outcome.stderr.contains(why), "{outcome}");
        assert!(estimates(&project).iter().all(|(_, _, d)| d.as_deref() == Some(why)), "{new}");
    }
}

#[test]
fn what_is_registered_after_the_answers_is_exploratory() {
    let project = project();
    let outcome = run(&project);
    assert!(outcome.stderr.contains("`prereg` names it, but it is not registered"), "{outcome}");
    let why = "not registered: `galeras lock` registers it";
    assert_eq!(estimates(&project), [exploratory("quality paired", why)]);
    let said = lock(&project, &[]);
    assert!(said.stderr.contains("there are results already (step answers is computed)"), "{said}");
    assert_eq!(registrations(&project)[0]["before_results"], false);
    project.run_ok(&[]);
    let why = "registered when there were results";
    assert_eq!(estimates(&project), [exploratory("quality paired", why)]);
}

#[test]
fn without_answers_the_input_of_the_analysis_counts() {
    let project = project();
    let workflow = WORKFLOW
        .replace(
            "    with: { provider: echo, given: code }\n",
            "    with: { query: 'SELECT * FROM input', key: [id, treatment] }\n",
        )
        .replace("op: generate", "op: sql");
    project.write("w.yaml", &workflow);
    project.run_ok(&["--select", "answers"]);
    let said = lock(&project, &[]);
    assert!(said.stderr.contains("effect is registered, before there are results"), "{said}");
    std::fs::remove_file(project.path("galeras.lock")).unwrap();
    project.run_ok(&[]);
    let said = lock(&project, &[]);
    assert!(said.stderr.contains("there are results already (step scores is computed)"), "{said}");
}

#[test]
fn a_registration_is_only_added_to_and_only_when_asked() {
    let project = project();
    lock(&project, &[]);
    let first = registrations(&project);
    assert_eq!(first.len(), 1);
    let said = lock(&project, &[]);
    assert!(said.stderr.contains("effect is registered since 20"), "{said}");
    assert_eq!(registrations(&project), first);
    project.change("[quality]", "[speed]");
    let said = lock(&project, &[]);
    says(
        &said.stderr,
        &["is another analysis now; the registration stays", "galeras lock --amend"],
    );
    assert_eq!(registrations(&project), first);
    lock(&project, &["--amend"]);
    let both = registrations(&project);
    assert_eq!((both.len(), &both[0]), (2, &first[0]));
    assert_eq!(both[1]["with"]["outcomes"], json!(["speed"]));
    project.run_ok(&[]);
    assert_eq!(estimates(&project), [registered("speed paired")]);
    // The earlier one still counts for what it says.
    project.rerun("[speed]", "[speed, quality]");
    let mut found = estimates(&project);
    found.sort();
    assert_eq!(found, [registered("quality paired"), registered("speed paired")]);
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
        let (arm, registered) = (row["treatment"].as_str().unwrap(), &row["registered"]);
        assert_eq!(*registered, json!(arm == "T1"), "{row}");
        if arm == "T2" {
            assert_eq!(row["deviation"], "`T2` against `control` is not registered");
        }
    }
    let findings = project.rows("effect.findings");
    let sentence = findings[0]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Where `early` is "), "{sentence}");
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
    project.edit(
        "study.yaml",
        "steps:\n",
        "outputs: { effect: { from: effect.findings, path: e.csv } }\nsteps:\n",
    );
    project.write("w.yaml", "galeras: 1\nprereg: [study/effect]\nsteps:\n  study: { uses: ./study.yaml }\noutputs:\n  e: { from: study.effect, path: e.csv }\n");
    lock(&project, &[]);
    assert_eq!(registrations(&project)[0]["step"], "study/effect");
    says(&run(&project).stderr, &["study/effect: 1 of 1 estimates are as registered"]);
}

#[test]
fn a_lock_file_that_is_edited_by_hand_is_read_or_refused() {
    let project = project();
    lock(&project, &[]);
    // An analysis that is none: no estimate is covered by it.
    let text = project.read("galeras.lock");
    project.write("galeras.lock", text.replace("\"treatment\": \"treatment\"", "\"treatment\": 7"));
    project.run_ok(&[]);
    let why = "registered by another version of galeras";
    assert_eq!(estimates(&project), [exploratory("quality paired", why)]);
    let damaged = text.replace("\"before_results\": true", "\"before_results\": 1");
    project.write("galeras.lock", &damaged);
    project.run(&["run", "w.yaml"]).exits(2).reports(&["bad-lock"]);
    // Locking again would lose what was registered.
    project.run(&["lock", "w.yaml"]).exits(2).reports(&["it holds registrations"]);
    assert_eq!(project.read("galeras.lock"), damaged);
}
