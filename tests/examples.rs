//! The documented examples of the operators, as projects in which the program is run. Tests that
//! run them include this file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The file that the example of `read` reads.
pub const DATA: &str = "source,n\ndef f(): pass,1\nx,2\n";

/// The folder of the workspace: where cargo runs tests, or the one above. (What cargo says while
/// it compiles may be of another clone, with which a folder for build output is shared.)
pub fn root() -> PathBuf {
    let root =
        [".", ".."].map(PathBuf::from).into_iter().find(|path| path.join("schemas").is_dir());
    root.expect("tests run in the workspace or in a package of it")
}

/// The standard output of a command that succeeds.
pub fn galeras(args: &[&str]) -> String {
    stdout(args, program().args(args).output().unwrap())
}

/// The operators with their versions, in the order of the documentation.
pub fn operators() -> Vec<(String, u64)> {
    let of = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        (value["name"].as_str().unwrap().to_string(), value["version"].as_u64().unwrap())
    };
    galeras(&["ops", "--format", "json"]).lines().map(of).collect()
}

/// True if an example names repositories on GitHub: it can be checked, but not run everywhere.
pub fn needs_a_network(operator: &str) -> bool {
    ["query", "mine"].contains(&operator)
}

/// The steps of the example on an operator's page.
pub fn example(operator: &str) -> String {
    let page = galeras(&["ops", operator]);
    let lines = page.lines().skip_while(|line| *line != "```yaml").skip(1);
    let lines: Vec<&str> = lines.take_while(|line| *line != "```").collect();
    assert!(!lines.is_empty(), "{operator} has no example");
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A folder with the example as the workflow `w.yaml`, and the data that it reads.
pub fn project(steps: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let steps: String = steps.lines().map(|line| format!("  {line}\n")).collect();
    let workflow = format!("galeras: 1\nname: example\nsteps:\n{steps}");
    fs::write(folder.path().join("w.yaml"), workflow).unwrap();
    fs::write(folder.path().join("data.csv"), DATA).unwrap();
    folder
}

/// The standard output of a command that succeeds in a folder.
pub fn galeras_in(folder: &Path, args: &[&str]) -> String {
    let output = program().args(args).current_dir(folder).env_remove("GALERAS_CACHE").output();
    stdout(args, output.unwrap())
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_galeras-under-test"))
}

fn stdout(args: &[&str], output: Output) -> String {
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
