//! `push --sign`, `--allowed-signers` and `remote: { allowed_signers: … }`: only signed results of
//! a remote are used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use galeras_test_servers::static_files::{Manners, StaticFiles};
use serde_json::Value;

use crate::forged_stores::sealed;
use crate::harness::{Outcome, Project, Running, files_below, says};

const WORKFLOW: &str = "galeras: 1
steps:
  table:
    op: read
    with: { path: data.csv, key: [id] }
    assert: [ { not_null: [x] } ]
  scaled:
    op: sql
    from: table
    with: { query: 'SELECT id, x, x * 2 AS y FROM input', key: [id] }
outputs:
  scaled: { from: scaled, path: scaled.csv }
";
const NAMESPACE: &str = "galeras-manifest";

/// A folder with the keys of ada and bob.
static KEYS: LazyLock<Project> = LazyLock::new(|| {
    let keys = Project::empty();
    for name in ["ada", "bob"] {
        keys.ssh_key(name);
    }
    keys
});

fn key(name: &str) -> PathBuf {
    KEYS.path(name)
}

fn public(name: &str) -> String {
    KEYS.read(&format!("{name}.pub"))
}

fn project_of(workflow: &str) -> Project {
    let rows: String = (0..500).map(|i| format!("row{i:05},{i}\n")).collect();
    Project::new(workflow)
        .with("data.csv", format!("id,x\n{rows}"))
        .with("team.signers", format!("# who signs\nada@example.org {}", public("ada")))
}

/// A project whose workflow names a remote.
fn project_with(remote: &str) -> Project {
    project_of(&WORKFLOW.replacen('\n', &format!("\nremote: {remote}\n"), 1))
}

/// Sends the results to a folder, signed by ada.
#[track_caller]
fn push_signed(project: &Project) -> Outcome {
    let sign = format!("--sign={}", key("ada").display());
    project.run(&["push", "w.yaml", "--remote", "remote", &sign]).exits(0)
}

/// A project that has computed all and sent it, signed by ada, and where to.
fn signed() -> (Project, PathBuf, Outcome) {
    let project = project_of(WORKFLOW);
    let done = project.run_ok(&[]);
    push_signed(&project).prints(&["2 results; 2 signed"]);
    let remote = project.path("remote");
    (project, remote, done)
}

fn manifests(store: &Path) -> Vec<PathBuf> {
    files_below(&store.join("actions"))
}

fn signature_of(manifest: &Path) -> PathBuf {
    let name = manifest.to_str().unwrap().replace("/actions/", "/signatures/");
    PathBuf::from(name).with_extension("sig")
}

fn sign(manifest: &Path, name: &str, namespace: &str) {
    let sign = format!("ssh-keygen -q -Y sign -n {namespace} -O hashalg=sha256 -f {name}");
    let (from, to) = (manifest.display(), signature_of(manifest));
    KEYS.sh(&format!("{sign} < {from} > {}", to.display())).exits(0);
}

/// The run of a user with an empty store who demands signatures by the team.
fn demanded(remote: &str) -> Outcome {
    project_of(WORKFLOW).run_ok(&["--remote", remote, "--allowed-signers", "team.signers"])
}

fn hits(done: &Outcome) -> usize {
    done.statuses().matches("=hit").count()
}

/// So many results were taken from the remote, and so many warnings were given.
#[track_caller]
fn took(done: &Outcome, results: usize, warnings: usize) {
    assert_eq!((hits(done), done.warnings().len()), (results, warnings), "{done}");
}

#[test]
fn signed_results_are_taken_and_unsigned_ones_computed() {
    let (project, remote, truth) = signed();
    let remote_text = remote.to_str().unwrap();
    for place in [remote_text.to_string(), StaticFiles::start(&remote, Manners::Good).url] {
        let done = demanded(&place);
        took(&done, 2, 0);
        assert_eq!(done.digests(), truth.digests());
    }
    let unsigned = project.path("unsigned");
    project.run(&["push", "w.yaml", "--remote", "unsigned"]).exits(0);
    let done = demanded(unsigned.to_str().unwrap());
    took(&done, 0, 2);
    assert_eq!(done.digests(), truth.digests());
    let words = "is not signed (allowed signers: team.signers)";
    assert!(done.warnings().iter().all(|told| told.contains(words)), "{done}");
    // Without the demand they are as good as ever.
    let any = project_of(WORKFLOW).run_ok(&["--remote", unsigned.to_str().unwrap()]);
    assert_eq!(hits(&any), 2, "{any}");
}

#[test]
fn each_lie_about_a_signature_is_told_and_computed() {
    let (_project, remote, truth) = signed();
    let mut files = manifests(&remote);
    // First the manifest of `scaled`, which nothing rests on.
    files.sort_by_key(|file| !fs::read_to_string(file).unwrap().contains("\"y\""));
    let whole = fs::read(signature_of(&files[0])).unwrap();
    let manifest = fs::read(&files[0]).unwrap();
    let lies: [(&str, &dyn Fn()); 7] = [
        ("is not signed", &|| fs::remove_file(signature_of(&files[0])).unwrap()),
        ("not the key of an allowed signer", &|| sign(&files[0], "bob", NAMESPACE)),
        ("not made for `galeras-manifest`", &|| sign(&files[0], "ada", "file")),
        ("the signature is of something else", &|| {
            fs::copy(signature_of(&files[1]), signature_of(&files[0])).unwrap();
        }),
        ("cannot be read", &|| fs::write(signature_of(&files[0]), "<html>").unwrap()),
        ("cannot be read", &|| {
            fs::write(signature_of(&files[0]), &whole[..whole.len() / 2]).unwrap();
        }),
        // A manifest with other results for its key, and a digest that fits.
        ("the signature is of something else", &|| {
            let mut value: Value = serde_json::from_slice(&manifest).unwrap();
            let theirs: Value = serde_json::from_slice(&fs::read(&files[1]).unwrap()).unwrap();
            value["ports"] = theirs["ports"].clone();
            fs::write(&files[0], sealed(&value)).unwrap();
        }),
    ];
    for (words, lie) in lies {
        lie();
        let done = demanded(remote.to_str().unwrap());
        took(&done, 1, 1);
        says(&done.warnings()[0], &[words]);
        assert_eq!(done.digests(), truth.digests(), "{words}");
        // `plan` and `pull` also report it.
        let other = project_of(WORKFLOW);
        let place = ["--remote", remote.to_str().unwrap(), "--allowed-signers", "team.signers"];
        other.run(&[&["plan", "w.yaml"], &place[..]].concat()).exits(0).reports(&[words]);
        let pull = other.run(&[&["pull", "w.yaml"], &place[..]].concat()).exits(1);
        pull.reports(&[words]).prints(&["1 result"]);
        other.verifies("cache");
        fs::write(signature_of(&files[0]), &whole).unwrap();
        fs::write(&files[0], &manifest).unwrap();
    }
    assert_eq!(hits(&demanded(remote.to_str().unwrap())), 2);
}

#[test]
fn a_warning_is_told_even_if_it_was_met_before_the_run() {
    // A command without consent makes `run` ask the remote beforehand for steps that need not run.
    let workflow = "galeras: 1
steps:
  rows:
    op: exec
    with:
      command: |
        echo '{\"id\": \"a\"}'
      output: { id: utf8 }
  more: { op: sql, from: rows, with: { query: 'SELECT id, 1 AS n FROM input', key: [id] } }
";
    let project = project_of(workflow);
    project.run_ok(&["--allow", "exec"]);
    push_signed(&project);
    let remote = project.path("remote");
    let of_step = |name: &str| {
        let named = |file: &PathBuf| {
            let value: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            value["labels"]["step"] == name
        };
        manifests(&remote).into_iter().find(named).unwrap()
    };
    fs::remove_file(signature_of(&of_step("more"))).unwrap();
    let place = ["--remote", remote.to_str().unwrap(), "--allowed-signers", "team.signers"];
    let done = project_of(workflow).run_ok(&place);
    assert_eq!(done.statuses(), "rows=hit more=ran");
    took(&done, 1, 1);
    says(&done.warnings()[0], &["is not signed"]);
}

#[test]
fn a_workflow_demands_signatures_of_any_remote() {
    let (project, remote, _) = signed();
    let demanding =
        |url: &str| project_with(&format!("{{ url: {url}, allowed_signers: team.signers }}"));
    project.run(&["push", "w.yaml", "--remote", "unsigned"]).exits(0);
    let (good, bad) = (remote.to_str().unwrap(), project.path("unsigned"));
    let bad = bad.to_str().unwrap();
    let allow = |place: &str| format!("read:{place}");
    took(&demanding(good).run_ok(&["--allow", &allow(good)]), 2, 0);
    took(&demanding(bad).run_ok(&["--allow", &allow(bad)]), 0, 2);
    // Any remote that the user names, unless they waive it.
    took(&demanding(good).run_ok(&["--remote", bad]), 0, 2);
    took(&demanding(good).run_ok(&["--remote", bad, "--allowed-signers", ""]), 2, 0);
    // The user's own list replaces the workflow's.
    let other = demanding(good);
    other.write("mine.signers", format!("bob {}", public("bob")));
    took(&other.run_ok(&["--allow", &allow(good), "--allowed-signers", "mine.signers"]), 0, 2);
    // A file of signers outside of the workflow needs consent.
    let elsewhere = tempfile::tempdir().unwrap();
    let signers = elsewhere.path().join("signers");
    fs::write(&signers, "sk-secret-in-here").unwrap();
    let signers = signers.to_str().unwrap();
    let other = project_with(&format!("{{ url: shared, allowed_signers: {signers} }}"));
    for args in [&["run", "w.yaml"][..], &["push", "w.yaml"], &["pull", "w.yaml"]] {
        let refused = other.run(args).exits(2).reports(&["`remote` reads"]);
        assert!(!refused.stderr.contains("line 1"), "it was read: {refused}");
    }
    let allow = format!("read:{signers}");
    let broken = other.run(&["run", "w.yaml", "--allow", &allow]).exits(2).reports(&["line 1"]);
    assert!(!broken.stderr.contains("sk-secret"), "{broken}");
}

#[test]
fn keys_and_lists_that_cannot_be_used_are_refused_before_anything_is_done() {
    let project = project_of(WORKFLOW).ran();
    project.sh("ssh-keygen -q -t ed25519 -N hunter2 -f locked").exits(0);
    project.write("alone.pub", public("ada"));
    project.write("open", fs::read(key("ada")).unwrap());
    fs::set_permissions(project.path("open"), fs::Permissions::from_mode(0o644)).unwrap();
    project.write("-f", "");
    for (name, words) in [
        ("locked", "encrypted with a passphrase, and no ssh-agent has it\nhelp: "),
        ("alone.pub", "this is a public key"),
        ("open", "other users may read the key"),
        ("data.csv", "not a key"),
        ("-f", "not a key"),
        ("none", "No such file"),
    ] {
        let sign = format!("--sign={name}");
        let refused = project.run(&["push", "w.yaml", "--remote", "remote", &sign]).exits(2);
        assert!(refused.stderr.contains(words), "{name}: {refused}");
        assert!(!refused.stderr.contains("PRIVATE KEY"), "{refused}");
        assert!(!project.path("remote").exists());
    }
    let ada = public("ada");
    for (text, words) in [
        (format!("\nada verify-required {ada}"), "line 2: bad options"),
        (format!("ada valid-before=\"soon\" {ada}"), "line 1: bad options"),
        ("ada".to_string(), "line 1: "),
        (String::new(), "it names no signer"),
    ] {
        project.write("bad.signers", text);
        let args = ["run", "w.yaml", "--remote", "remote", "--allowed-signers", "bad.signers"];
        project.run(&args).exits(2).reports(&[words]);
    }
    for wrong in ["{ allowed_signers: team.signers }", "{ url: x, signers: y }", "[x]"] {
        project_with(wrong).run(&["check", "w.yaml"]).exits(2).reports(&["w.yaml:2:"]);
    }
}

#[test]
fn signatures_go_along_and_several_may_sign() {
    let (_project, remote, _) = signed();
    let other = project_of(WORKFLOW);
    let place = ["--remote", remote.to_str().unwrap(), "--allowed-signers", "team.signers"];
    other.run(&[&["pull", "w.yaml"], &place[..]].concat()).exits(0);
    let verified = other.run(&["verify", "w.yaml", "--allowed-signers", "team.signers"]).exits(0);
    let who = "2 of 2 results signed by ada@example.org (SHA256:";
    says(&verified.stdout, &[who, "6 of 6 files equal"]);
    let bob = key("bob");
    let args = ["push", "w.yaml", "--remote", "next", "--sign", bob.to_str().unwrap()];
    let told = other.run(&[&args[..], &["--allowed-signers", "team.signers"]].concat()).exits(0);
    assert!(told.stderr.contains("may not sign for `galeras-manifest`"), "{told}");
    // Both signatures are there, and each is enough.
    let next = other.path("next");
    for name in ["ada", "bob"] {
        let third = project_of(WORKFLOW).with("one.signers", format!("{name} {}", public(name)));
        let place = ["--remote", next.to_str().unwrap(), "--allowed-signers", "one.signers"];
        assert_eq!(hits(&third.run_ok(&place)), 2);
    }
    // A user who computed the same elsewhere and signs nothing breaks no signature.
    let fourth = project_of(WORKFLOW).ran();
    let before: Vec<Vec<u8>> = manifests(&next).iter().map(|f| fs::read(f).unwrap()).collect();
    fourth.run(&["push", "w.yaml", "--remote", next.to_str().unwrap()]).exits(0);
    let after: Vec<Vec<u8>> = manifests(&next).iter().map(|f| fs::read(f).unwrap()).collect();
    assert_eq!(before, after);
    assert_eq!(hits(&demanded(next.to_str().unwrap())), 2);
    // A bundle keeps them.
    other.run(&["bundle", "w.yaml", "-o", "b.zip"]).exits(0);
    other.run(&["verify", "b.zip", "--allowed-signers", "team.signers"]).exits(0).prints(&[who]);
    assert_eq!(hits(&demanded(other.path("b.zip").to_str().unwrap())), 2);
}

#[test]
fn a_result_that_is_computed_again_is_not_signed_any_more() {
    let (project, remote, _) = signed();
    let own = project_of(WORKFLOW);
    own.run(&["pull", "w.yaml", "--remote", remote.to_str().unwrap()]).exits(0);
    assert_eq!(files_below(&own.path("cache/signatures")).len(), 2);
    own.run_ok(&["--force", "scaled"]);
    assert_eq!(files_below(&own.path("cache/signatures")).len(), 1);
    own.verifies("cache");
    own.run(&["verify", "w.yaml"]).exits(0).prints(&["1 of 2 results not signed"]);
    // A signature of something else is damage.
    let files = manifests(&remote);
    fs::copy(signature_of(&files[1]), signature_of(&files[0])).unwrap();
    for verb in ["verify w.yaml", "cache verify"] {
        let found = project.cli(&format!("{verb} --cache remote")).exits(4);
        found.prints(&["not a signature of the manifest"]);
    }
    project.run(&["cache", "verify", "--repair", "--cache", "remote"]).exits(0);
    project.verifies("remote");
    // What belongs to no result is collected.
    fs::remove_file(&files[1]).unwrap();
    project.run(&["cache", "gc", "--cache", "remote"]).exits(0);
    assert!(files_below(&remote.join("signatures")).is_empty());
    // OpenSSH verifies the pushed signatures, and its own are accepted.
    let (project, remote, _) = signed();
    project.write("allowed", format!("ada@example.org {}", public("ada")));
    let verify = format!("ssh-keygen -Y verify -I ada@example.org -n {NAMESPACE} -f allowed -s");
    for file in manifests(&remote) {
        let signature = signature_of(&file);
        project.sh(&format!("{verify} {} < {}", signature.display(), file.display())).exits(0);
        sign(&file, "ada", NAMESPACE);
    }
    assert_eq!(hits(&demanded(remote.to_str().unwrap())), 2);
    // A key in an agent signs by its public half.
    let project = project_of(WORKFLOW).ran().with("ada.pub", public("ada"));
    let script = "eval $(ssh-agent -s) >/dev/null; trap 'kill $SSH_AGENT_PID' EXIT
        ssh-add -q \"$0\" && \"$GALERAS\" push w.yaml --remote remote --sign ada.pub";
    let pushed = project.shell(script).arg(key("ada")).output().unwrap();
    let told = String::from_utf8_lossy(&pushed.stdout);
    assert!(pushed.status.success() && told.contains("2 results; 2 signed"), "{pushed:?}");
    assert_eq!(hits(&demanded(project.path("remote").to_str().unwrap())), 2);
}

#[test]
fn without_ssh_keygen_only_signatures_are_out_of_reach() {
    let (project, remote, _) = signed();
    let remote = remote.to_str().unwrap();
    let run = |program: &str, code: i32| {
        let folder = project.path("bin");
        fs::create_dir_all(&folder).unwrap();
        if !program.is_empty() {
            let file = folder.join("ssh-keygen");
            fs::write(&file, format!("#!/bin/sh\n{program}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let other = project_of(WORKFLOW);
        let with_path = |mut command: Command| {
            command.env("PATH", &folder);
            Running::start(command).finish()
        };
        let place = ["--remote", remote, "--allowed-signers", "team.signers"];
        let told = with_path(other.command(&[&["run", "w.yaml"], &place[..]].concat())).exits(code);
        with_path(other.command(&["run", "w.yaml", "--remote", remote])).exits(0);
        told.stderr
    };
    assert!(run("", 2).contains("`ssh-keygen` was not found; install OpenSSH"));
    assert!(run("echo 'unknown option -- Y' >&2; exit 1", 2).contains("`ssh-keygen` is too old"));
    assert!(run("kill -9 $$", 2).contains("`ssh-keygen` failed: signal: 9"));
}
