//! Stores named by a URL: what is fetched for them, and answers of interrupted runs, are kept where
//! no one else reads them and no other store finds them.

use std::os::unix::fs::PermissionsExt;

use galeras_test_servers::chat_api::ChatApi;

use crate::generate_openai;
use crate::harness::Project;

#[test]
fn a_folder_named_by_a_url_keeps_all_inside_itself_and_memory_nothing() {
    let api = ChatApi::start();
    let project = generate_openai::project(&api, 2, "");
    let store = |name: &str| format!("file://{}", project.path(name).display());
    project.run_ok(&["--cache", &store("one")]);
    assert_eq!(api.take().len(), 2);
    assert!(project.path("one/downloads/answers").is_dir(), "where the answers were kept");
    assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    // Answers and what they cost are no one else's business.
    let rights = std::fs::metadata(project.path("one/downloads")).unwrap().permissions();
    assert_eq!(rights.mode() & 0o007, 0);
    assert_ne!(rights.mode() & 0o070, 0o050);
    // Its path is the same store.
    project.run_ok(&["--cache", "one"]).all_hit();
    // Another store has no answers.
    project.run_ok(&["--cache", &store("two")]);
    assert_eq!(api.take().len(), 2);
    assert!(project.left_behind().is_empty());
    // A store in memory leaves nothing and finds nothing.
    let api = ChatApi::start();
    let project = generate_openai::project(&api, 2, "");
    for _ in 0..2 {
        project.run_ok(&["--cache", "memory://x"]);
        assert_eq!(api.take().len(), 2, "nothing is left of the last run");
        assert!(project.left_behind().is_empty(), "{:?}", project.left_behind());
    }
    assert!(!project.path("cache").exists());
}

#[test]
fn the_folder_of_a_store_in_memory_is_private() {
    let project = Project::new(
        "galeras: 1\nsteps:\n  a:\n    op: exec\n    with:\n      sandbox: none\n      command: |\n        \
         stat -c '{\"id\":\"%a %n\"}' \"$(dirname \"$TMPDIR\"/galeras-scratch-*/downloads)\"\n      output: { id: utf8! }\n\
         outputs:\n  a: { from: a, path: a.jsonl }\n",
    );
    project.run_ok(&["--cache", "memory://"]);
    let seen = project.read("a.jsonl");
    assert_eq!(seen.lines().count(), 1, "{seen}");
    assert!(seen.contains("\"700 "), "{seen}");
}

#[test]
fn no_location_shows_a_password() {
    let project = Project::new("galeras: 1\nsteps: { a: { op: read, with: { path: d.csv } } }\n");
    project.write("d.csv", "id\n1\n");
    for location in [
        "s3://me:hunter2@bucket/x",
        "file://hunter2@/tmp/x",
        "memory://me:hunter2@x",
        "s3://bucket/x?X-Amz-Signature=hunter2",
        "http://me:hunter2@ho st",
    ] {
        for verb in ["run w.yaml", "check w.yaml", "plan w.yaml", "cache ls", "lock w.yaml"] {
            let verb: Vec<&str> = verb.split(' ').collect();
            let outcome = project.run(&[&verb[..], &["--cache", location]].concat()).exits(4);
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(said.starts_with("error: cannot open "), "{location}: {outcome}");
            assert!(!said.contains("hunter2"), "{location}: {outcome}");
        }
    }
}

#[test]
fn the_answers_of_a_plain_folder_stay_where_they_were() {
    let api = ChatApi::start();
    let project = generate_openai::project(&api, 1, "");
    project.run_ok(&[]);
    assert!(project.path("cache/downloads/answers").is_dir());
    for folder in ["one", "two"] {
        std::fs::create_dir(project.path(folder)).unwrap();
        let rights = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.path(folder), rights).unwrap();
        project.run_ok(&["--cache", folder]);
    }
    assert_eq!(api.take().len(), 3);
}
