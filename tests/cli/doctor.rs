//! `doctor`: what the machine has, what it lacks and how to get it, for people and for programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::harness::{Project, says};

/// Programs in a folder of their own: the name, what it does, and the version that is told.
const PROGRAMS: &[(&str, &str, Option<&str>)] = &[
    ("python3.99", "echo Python 3.99.1", Some("Python 3.99.1")),
    ("node", "echo; echo v99.2.0; echo more", Some("v99.2.0")),
    ("java", "echo 'openjdk version \"99\"' >&2", Some("openjdk version \"99\"")),
    ("go", "test \"$1\" = version && echo go version go1.99", Some("go version go1.99")),
    ("rustc", "exit 3", None),
];

const LAYERS: &str = "no_new_privs landlock_files landlock_tcp landlock_signals seccomp user_namespace \
                      pid_namespace network_namespace mount_namespace ipc_namespace unprivileged_user \
                      resource_limits watchdog";

/// What `doctor` tells with the programs first in `PATH`.
fn told(project: &Project, more: &[&str]) -> (Value, String) {
    let bin = project.path("bin");
    for (name, script, _) in PROGRAMS {
        project.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let run = |format: &[&str]| {
        let args = [&["doctor"], more, format].concat();
        project.run_with(&args, &[("PATH", &path)]).exits(0)
    };
    let json = run(&["--format", "json"]).json_lines();
    assert_eq!(json.len(), 1);
    (json[0].clone(), run(&[]).stdout)
}

#[test]
fn programs_layers_memory_and_space_are_told() {
    let project = Project::empty();
    let (json, text) = told(&project, &["--cache", "a/b"]);
    let interpreters = json["interpreters"].as_array().unwrap();
    for (name, _, version) in PROGRAMS {
        let found = interpreters.iter().find(|found| found["program"] == *name).unwrap();
        assert_eq!(found["version"].as_str(), *version, "{name}");
        assert_eq!(found["in_sandboxes"], false, "{name}");
        says(&text, &[name, version.unwrap_or("of unknown version")]);
    }
    let tools = json["tools"].as_array().unwrap();
    let git = tools.iter().find(|found| found["program"] == "git").unwrap();
    assert!(git["version"].as_str().unwrap().starts_with("git version "), "{json}");
    let layers = json["sandbox"]["layers"].as_array().unwrap();
    let names: Vec<&str> = layers.iter().map(|layer| layer["layer"].as_str().unwrap()).collect();
    assert_eq!(names, LAYERS.split_whitespace().collect::<Vec<_>>());
    for layer in layers {
        let (name, reason) = (layer["layer"].as_str().unwrap(), layer["reason"].as_str());
        assert_eq!(layer["available"], reason.is_none(), "{layer}");
        says(&text, &[name, reason.unwrap_or("active")]);
    }
    for number in ["processors", "memory"] {
        assert!(json[number].as_u64().is_some_and(|number| number > 0), "{json}");
    }
    for (place, end) in [("store", "a/b"), ("temporary_files", "tmp")] {
        let space = &json[place];
        assert!(space["folder"].as_str().unwrap().ends_with(end), "{json}");
        assert!(space["free"].as_u64().unwrap() <= space["total"].as_u64().unwrap(), "{json}");
    }
    assert!(!project.path("a").exists(), "it changes nothing");
}

#[test]
fn what_is_missing_is_told_as_well() {
    let project = Project::empty();
    let (json, text) = told(&project, &["--cache", "memory://"]);
    assert!(json["store"].is_null(), "{json}");
    says(&text, &["no folder", "memory://"]);
    let outcome = project.run_with(&["doctor"], &[("PATH", "/nowhere")]).exits(0);
    for name in ["node", "git", "ssh-keygen"] {
        let line = outcome.stdout.lines().find(|line| line.trim().starts_with(name)).unwrap();
        says(line, &["missing"]);
    }
}
