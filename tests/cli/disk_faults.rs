//! A disk that fails: some of the faults of `tests/scripts/faults.py`, always the same ones.

use std::process::Command;

use crate::harness::{binary, package};

/// Runs the script, which must meet so many faults, and find nothing.
#[track_caller]
fn holds(faults: u32, args: &[&str]) {
    let script = package().join("scripts").join("faults.py");
    let mut command = Command::new("python3");
    command.arg(script).arg("--galeras").arg(binary()).args(args);
    let done = command.output().expect("python3 is there");
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{errors}");
    assert!(said.contains(&format!("\n{faults} faults\n0 violations\n")), "{said}{errors}");
}

#[test]
fn a_failing_disk_never_leads_to_another_result() {
    holds(20, &["--workloads", "run,again,exec,push,pull,report", "--sample", "20"]);
    // No paid answer is lost with the name of a new folder.
    holds(1, &["--only", "run:crash:350"]);
    // No output stays without the store that knows whose it is.
    holds(1, &["--only", "mine:torn:170"]);
}
