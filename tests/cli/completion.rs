//! `completions`: what a shell offers for the TAB key.

use std::process::Command;

use crate::harness::{Project, Running, binary};

const WORKFLOW: &str = "galeras: 1
params:
  n: { type: int, default: 2, help: rows that are drawn }
  kind: { type: string, default: small, choices: [small, large] }
  whole: { type: bool, default: false }
  data: { type: path, default: data.csv }
steps:
  rows: { op: read, with: { path: '${{ params.data }}', key: [id] } }
  valid: { op: validate, from: rows, with: { rules: [ { name: some, check: \"id <> ''\" } ] } }
  drawn: { op: sample, from: valid, matrix: { n: [2, 3] }, with: { n: '${{ matrix.n }}', seed: 1 } }
";

fn project() -> Project {
    let project = Project::new(WORKFLOW).with("data.csv", "id,size\na,1\nb,2\n");
    project.with("folder/other.yaml", WORKFLOW)
}

/// The program as a shell calls it at the end of a line.
fn ask(project: &Project, shell: &str, words: &[&str]) -> Command {
    let mut command = project.command_as_typed(&["--"]);
    command.args(words).env("GALERAS_COMPLETE", shell);
    command
}

/// The candidates in zsh and fish for the words, the last of which is not complete, without the flags
/// that could be there as well.
#[track_caller]
fn offered(project: &Project, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let fish = Running::start(ask(project, "fish", &words)).finish().exits(0);
    let mut zsh = ask(project, "zsh", &words);
    zsh.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string()).env("_CLAP_IFS", "\n");
    let zsh = Running::start(zsh).finish().exits(0);
    assert!(fish.stdout.is_empty() || fish.stderr.is_empty(), "{fish}");
    let value = |line: &str| line.split('\t').next().unwrap().to_string();
    let mut values: Vec<String> = fish.stdout.lines().map(value).collect();
    let in_zsh = values.iter().map(|value| value.replace(':', "\\:"));
    for (value, line) in in_zsh.zip(zsh.stdout.lines()) {
        assert!(line.starts_with(&value), "{value}: {zsh}");
    }
    values.retain(|value| words.last().unwrap().starts_with('-') || !value.starts_with('-'));
    values
}

#[test]
fn words_of_the_workflow_are_known_even_if_it_has_mistakes() {
    let project = project();
    for (line, expected) in [
        ("galeras sho", &["show"][..]),
        ("galeras cache ", &["ls", "gc", "verify", "help"]),
        ("galeras show --def", &["--defaults"]),
        (r"galeras show w.yaml drawn\[n=3\]", &["drawn[n=3]", "drawn[n=3].rejects"]),
        ("galeras show 'w.yaml' \"ro", &["rows"]),
        ("galeras show ", &["folder/", "w.yaml"]),
        ("galeras show folder/", &["folder/other.yaml"]),
        ("galeras show w.yaml val", &["valid", "valid.rejects", "valid.summary"]),
        (
            "galeras show w.yaml drawn[",
            &["drawn[n=2]", "drawn[n=2].rejects", "drawn[n=3]", "drawn[n=3].rejects"],
        ),
        ("galeras run w.yaml --select dr", &["drawn", "drawn[n=2]", "drawn[n=3]"]),
        ("galeras show folder/other.yaml ro", &["rows"]),
        ("galeras show w.yaml rows --columns ", &["id", "size"]),
        ("galeras show w.yaml valid.rejects --columns id,s", &["id,size", "id,step"]),
        ("galeras run w.yaml --set ", &["n=", "kind=", "whole=", "data="]),
        ("galeras run w.yaml --set kind=", &["kind=small", "kind=large"]),
        ("galeras run w.yaml --set=kind=l", &["--set=kind=large"]),
        ("galeras run w.yaml --set whole=", &["whole=true", "whole=false"]),
        ("galeras run w.yaml --set data=da", &["data=data.csv"]),
        ("galeras ops sa", &["sample"]),
        ("galeras schema random", &["random_cut"]),
        ("galeras check --explain unknown-op", &["unknown-operator", "unknown-option"]),
        ("galeras cache ls --by ", &["workflow", "step", "operator"]),
        ("galeras completions z", &["zsh"]),
        ("galeras trace w.yaml x", &[]),
        ("galeras show none.yaml ", &[]),
    ] {
        let mut found = offered(&project, line);
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{line:?}");
    }
    let help = ask(&project, "fish", &["galeras", "run", "w.yaml", "--set", "n"]);
    assert_eq!(Running::start(help).finish().exits(0).stdout, "n=\trows that are drawn\n");
    let unknown = Running::start(ask(&project, "nush", &["galeras", ""])).finish().exits(2);
    unknown.reports(&["unknown shell `nush`, expected one of `bash`"]);
    let project = self::project();
    project.edit("w.yaml", "op: sample", "op: smaple");
    assert_eq!(offered(&project, "galeras show w.yaml "), ["rows", "valid", "drawn"]);
    assert_eq!(offered(&project, "galeras run w.yaml --set n"), ["n="]);
    for broken in [&b"galeras: ["[..], &[0xff, 0xfe]] {
        project.write("w.yaml", broken);
        assert_eq!(offered(&project, "galeras show w.yaml ").len(), 0);
    }
    // Completing a word changes and asks nothing.
    project.write("w.yaml", WORKFLOW);
    project.change("path: '${{ params.data }}'", "url: 'https://example.org/data.csv'");
    assert_eq!(offered(&project, "galeras show w.yaml "), ["rows", "valid", "drawn"]);
    assert!(!project.path("cache").exists());
}

/// The COMPREPLY of bash after TAB at the end of the line.
fn in_bash(project: &Project, line: &str) -> Vec<String> {
    let script = project.run(&["completions", "bash"]).exits(0).stdout;
    assert!(script.contains(binary().to_str().unwrap()), "{script}");
    let more = r#"
COMP_LINE=$1; COMP_POINT=${#1}; COMP_WORDS=("$GALERAS"); COMP_CWORD=0
_galeras
printf '%s\n' "${COMPREPLY[@]}"
complete -p galeras >/dev/null || echo "not registered"
"#;
    let ran = Command::new("bash")
        .args(["-c", &format!("{script}{more}"), "bash", line])
        .current_dir(project.root())
        .env("GALERAS", binary())
        .output()
        .unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap().lines().map(String::from).collect()
}

#[test]
fn bash_asks_the_program() {
    let project = project();
    assert_eq!(in_bash(&project, "galeras show w.yaml valid.r"), ["valid.rejects "]);
    assert_eq!(in_bash(&project, "galeras run w.yaml --set kind="), ["small ", "large "]);
    let cells = [r"2\] ", r"2\].rejects ", r"3\] ", r"3\].rejects "];
    let steps = cells.map(|cell| format!(r"drawn\[n={cell}"));
    assert_eq!(in_bash(&project, "galeras explain w.yaml dr"), steps);
    assert_eq!(in_bash(&project, r"galeras explain w.yaml drawn\[n="), cells);
    let quoted = in_bash(&project, "galeras explain w.yaml 'drawn[n=3");
    assert_eq!(quoted, ["drawn[n=3]", "drawn[n=3].rejects"]);
}

#[test]
fn every_shell_has_a_script_and_hostile_names_do_not_reach_it() {
    let project = Project::empty();
    for (shell, part) in [
        ("bash", "complete -o nospace -F _galeras galeras"),
        ("zsh", "#compdef galeras"),
        ("fish", "complete --keep-order --exclusive --command galeras"),
        ("elvish", "set edit:completion:arg-completer[galeras]"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = project.run(&["completions", shell]).exits(0).stdout;
        assert!(script.contains(part) && script.contains("GALERAS_COMPLETE"), "{script}");
    }
    project.run(&["completions", "tcsh"]).exits(2);
    let project = Project::empty().with("a\u{1b}[31m.yaml", "").with("b\nrm.yaml", "");
    let project = project.with("c d.yaml", WORKFLOW);
    assert_eq!(offered(&project, "galeras run "), ["c d.yaml"]);
    let bash = |line: &str| Running::start(ask(&project, "bash", &[line])).finish().exits(0).stdout;
    assert_eq!(bash("galeras run --set x=1 ").lines().next(), Some("c\\ d.yaml "));
    assert_eq!(bash("galeras show c\\ d.yaml ro"), "rows \n");
}
