//! Outcomes, outputs, refusals, and the end of a caller.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fs;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use galeras_sandbox::{
    Ending, Input, Launcher, Layer, Limits, Machine, Outcome, Output, Policy, Sandbox,
    SandboxError, Specification,
};

fn machine() -> Machine {
    Machine::probe(Launcher::at(env!("CARGO_BIN_EXE_galeras-sandbox-launcher")))
}

/// Sandboxes with and without namespaces.
fn sandboxes() -> [Sandbox; 2] {
    let machine = machine();
    let without = machine.clone().without(Layer::PidNamespace);
    [machine, without].map(|machine| Sandbox::new(&machine, Policy::Auto).unwrap())
}

fn shell(script: &str) -> Specification {
    Specification::new(["sh", "-c", script])
}

fn run(sandbox: &Sandbox, specification: Specification) -> Outcome {
    sandbox.run(specification, &|| false).unwrap()
}

#[test]
fn outcomes_are_the_same_with_and_without_namespaces() {
    for sandbox in sandboxes() {
        let specification =
            shell("pwd; cat a/b; cat; echo problem >&2; echo $HOME $TMPDIR $KEY; exit 3")
                .file("a/b", "contents\n");
        let specification = Specification {
            stdin: Input::Bytes(b"input\n".to_vec()),
            environment: [("KEY".to_owned(), "value".to_owned())].into(),
            ..specification
        };
        let outcome = run(&sandbox, specification);
        assert_eq!(outcome.ending, Ending::Exited(3));
        assert_eq!(outcome.stdout.text(), "/sandbox\ncontents\ninput\n/sandbox /tmp value\n");
        assert_eq!(outcome.stderr.text(), "problem\n");
        assert_eq!(outcome.layers, sandbox.layers());
        assert!(outcome.usage.peak_memory > 0 && outcome.usage.wall > Duration::ZERO);
    }
}

#[test]
fn long_outputs_are_drained_and_clipped() {
    for sandbox in sandboxes() {
        let mut specification =
            shell("yes | head -c 3000000; yes no | head -c 3000000 >&2; echo end");
        specification.limits.output = 100;
        let outcome = run(&sandbox, specification);
        assert_eq!(outcome.ending, Ending::Exited(0));
        assert_eq!((outcome.stdout.total, outcome.stderr.total), (3_000_004, 3_000_000));
        assert!(outcome.stdout.text().ends_with("y\nend\n"), "{}", outcome.stdout.text());
    }
}

#[test]
fn a_program_that_does_not_exist_is_no_outcome() {
    for sandbox in sandboxes() {
        let error = sandbox.run(Specification::new(["no-such-program"]), &|| false).unwrap_err();
        let expected = "cannot start no-such-program: No such file or directory (os error 2)";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn two_programs_talk_through_pipes() {
    for sandbox in sandboxes() {
        let (from_first, to_second) = std::io::pipe().unwrap();
        let (from_second, to_first) = std::io::pipe().unwrap();
        let first = Specification {
            stdin: Input::Fd(OwnedFd::from(from_second)),
            stdout: Output::Fd(OwnedFd::from(to_second)),
            ..shell("echo 20 22; read answer; echo $answer >&2")
        };
        let second = Specification {
            stdin: Input::Fd(OwnedFd::from(from_first)),
            stdout: Output::Fd(OwnedFd::from(to_first)),
            ..shell("read a b; echo $((a + b))")
        };
        let [first, second] = std::thread::scope(|scope| {
            [first, second]
                .map(|one| scope.spawn(|| run(&sandbox, one)))
                .map(|run| run.join().unwrap())
        });
        assert_eq!((first.ending, second.ending), (Ending::Exited(0), Ending::Exited(0)));
        assert_eq!(first.stderr.text(), "42\n");
    }
}

#[test]
fn a_cancelled_program_ends_soon() {
    for sandbox in sandboxes() {
        let cancelled = AtomicBool::new(false);
        let started = Instant::now();
        std::thread::scope(|scope| {
            let run = scope
                .spawn(|| sandbox.run(shell("sleep 600"), &|| cancelled.load(Ordering::Relaxed)));
            std::thread::sleep(Duration::from_millis(200));
            cancelled.store(true, Ordering::Relaxed);
            assert_eq!(run.join().unwrap().unwrap_err(), SandboxError::Cancelled);
        });
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn a_machine_that_cannot_confine_is_refused_with_a_way_out() {
    let refusal = |layers: &[Layer]| {
        let machine = layers.iter().fold(machine(), |machine, layer| machine.without(*layer));
        Sandbox::new(&machine, Policy::Auto).unwrap_err().to_string()
    };
    let way_out = "Otherwise put a container around them with `sandbox: { command: [bwrap, …] }`, or agree to \
                   run them unprotected with `sandbox: none`. `galeras doctor` lists what is missing";
    assert_eq!(
        refusal(&[Layer::LandlockFiles]),
        format!(
            "this machine cannot keep programs away from files: landlock_files is switched off. {way_out}"
        )
    );
    assert_eq!(
        refusal(&[Layer::Seccomp, Layer::NetworkNamespace]),
        format!(
            "this machine cannot keep programs away from the network: seccomp is switched off. {way_out}"
        )
    );
    Sandbox::new(&machine().without(Layer::Seccomp), Policy::Auto).unwrap();
    Sandbox::new(&machine().without(Layer::LandlockFiles), Policy::None).unwrap();
}

#[test]
fn wrong_specifications_are_refused() {
    let store = tempfile::tempdir().unwrap();
    let sandbox = sandboxes()[0].clone().seal([store.path().to_owned()]);
    let home = std::env::home_dir().unwrap();
    let readable = |path: &Path| Specification { readable: vec![path.to_owned()], ..shell("true") };
    let writable = |path: &Path| Specification { writable: vec![path.to_owned()], ..shell("true") };
    for (specification, expected) in [
        (shell("true").file("../x", ""), "must be a path below the working directory"),
        (shell("true").file("/x", ""), "must be a path below the working directory"),
        (Specification::new(Vec::<String>::new()), "the command is empty"),
        (readable(Path::new("/")), "name the folders that they need"),
        (readable(Path::new("/proc/self")), "name the folders that they need"),
        (readable(&home), "it contains your home folder"),
        (readable(store.path()), "holds results and consents"),
        (writable(store.path().parent().unwrap()), "holds results and consents"),
        (readable(Path::new("/no/such/folder")), "cannot read `/no/such/folder`"),
        (readable(Path::new("usr")), "cannot read `usr`"),
    ] {
        let error = sandbox.run(specification, &|| false).unwrap_err();
        assert!(
            matches!(&error, SandboxError::Invalid(text) if text.contains(expected)),
            "{error}"
        );
    }
}

#[test]
fn readable_folders_can_be_read_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("file"), "data\n").unwrap();
    for path in [folder.path(), &data] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    for sandbox in sandboxes() {
        for path in [&data, &link] {
            let script =
                format!("cat {0}/file; echo x 2>&- > {0}/new && echo written", path.display());
            let specification = Specification { readable: vec![path.clone()], ..shell(&script) };
            assert_eq!(run(&sandbox, specification).stdout.text(), "data\n");
        }
    }
    assert_eq!(fs::read_dir(data).unwrap().count(), 1);
}

#[test]
fn a_path_that_has_become_a_link_is_refused() {
    for sandbox in sandboxes() {
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        let program = || Specification { readable: vec![shared.clone()], ..shell("true") };
        assert_eq!(run(&sandbox, program()).ending, Ending::Exited(0));
        fs::remove_dir(&shared).unwrap();
        std::os::unix::fs::symlink(folder.path(), &shared).unwrap();
        let error = sandbox.run(program(), &|| false).unwrap_err();
        assert!(error.to_string().contains("has become a link"), "{error}");
    }
}

#[test]
fn hidden_files_are_not_there() {
    let folder = open_folder();
    for name in ["a/b/hidden", "a/b/other", "a/other"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{name}\n")).unwrap();
    }
    // Such a link would show what no other rule does.
    let secret = open_folder();
    fs::write(secret.path().join("secret"), "secret\n").unwrap();
    let link = folder.path().join("a/link");
    std::os::unix::fs::symlink(secret.path().join("secret"), link).unwrap();
    for sandbox in sandboxes() {
        let root = folder.path().display();
        let files = ["a/b/hidden", "a/b/other", "a/other", "a/link"];
        let files: Vec<String> = files.iter().map(|name| format!("{root}/{name}")).collect();
        let specification = Specification {
            readable: vec![folder.path().join("a/..")],
            hidden: vec![folder.path().join("a/b/hidden")],
            ..shell(&format!("cat {} 2>&-; ls {root}/a/b/other", files.join(" ")))
        };
        let expected = format!("a/b/other\na/other\n{root}/a/b/other\n");
        assert_eq!(run(&sandbox, specification).stdout.text(), expected);
    }
}

/// A folder that anyone may use, as sandboxes of root are another user.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let anyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), anyone).unwrap();
    folder
}

#[test]
fn what_is_sealed_in_a_readable_folder_cannot_be_read() {
    let folder = open_folder();
    for name in ["a/store", "a/other", "b"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("file"), format!("{name}\n")).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("a/link")).unwrap();
    // Landlock cannot hide the names below a folder whose names are visible.
    for (sandbox, names) in sandboxes().into_iter().zip(["", "file\n"]) {
        let sandbox = sandbox.seal([folder.path().join("a/store")]);
        let specification = Specification {
            readable: vec![folder.path().to_owned()],
            directory: Some(folder.path().to_owned()),
            ..shell("pwd; cat b/file a/other/file a/store/file a/link 2>&-; ls a/store 2>&-; true")
        };
        let seen = format!("{}\nb\na/other\n{names}", folder.path().display());
        assert_eq!(run(&sandbox, specification).stdout.text(), seen);
    }
}

#[test]
fn writable_folders_keep_what_is_written() {
    for sandbox in sandboxes() {
        let folder = open_folder();
        // The second one replaces the file of the first.
        for text in ["data\n", "other\n"] {
            let specification = Specification {
                writable: vec![folder.path().to_owned()],
                directory: Some(folder.path().to_owned()),
                ..shell(&format!("printf '{text}' > file; cat file"))
            };
            assert_eq!(run(&sandbox, specification).stdout.text(), text);
            assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), text);
        }
    }
}

#[test]
fn a_network_is_there_if_it_is_wanted() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!(
        "import socket\nsocket.create_connection(('127.0.0.1', {port}))\ntry: socket.socket(socket.AF_UNIX)\n\
         except OSError: print('connected')"
    );
    let program = || Specification::new(["python3", "-c", &script]);
    for sandbox in sandboxes() {
        assert_eq!(run(&sandbox, program()).ending, Ending::Exited(1));
        let sandbox = sandbox.with_network();
        let outcome = run(&sandbox, program());
        assert_eq!(outcome.stdout.text(), "connected\n", "{}", outcome.stderr.text());
        assert!(!outcome.layers.contains(&Layer::NetworkNamespace), "{:?}", outcome.layers);
    }
}

#[test]
fn an_output_that_is_left_open_is_waited_for() {
    for sandbox in sandboxes() {
        let patient =
            |script: &str| Specification { patience: Duration::from_millis(500), ..shell(script) };
        let outcome = run(&sandbox, patient("(sleep 0.2; echo b) & echo a"));
        assert_eq!((outcome.ending, &*outcome.stdout.text()), (Ending::Exited(0), "a\nb\n"));
        let outcome = run(&sandbox, patient("sleep 60 & echo a"));
        assert_eq!(outcome.ending, Ending::OutputOpen);
        let outcome = run(&sandbox, patient("sleep 60 >/dev/null 2>&1 & echo a"));
        assert_eq!(outcome.ending, Ending::Exited(0));
        let outcome = run(&sandbox, shell("sleep 60 & echo a"));
        assert_eq!(outcome.ending, Ending::Exited(0));
    }
}

#[test]
fn without_a_sandbox_the_limits_hold() {
    let sandbox = Sandbox::new(&machine(), Policy::None).unwrap();
    assert_eq!(sandbox.layers(), [Layer::ResourceLimits, Layer::Watchdog]);
    let mut specification = shell("while :; do :; done");
    specification.limits.cpu = Duration::from_millis(300);
    assert_eq!(run(&sandbox, specification).ending, Ending::CpuTime);
    assert_eq!(run(&sandbox, shell("cat /etc/passwd > copy")).ending, Ending::Exited(0));
}

#[test]
fn a_command_of_the_user_is_put_around_the_program() {
    let wrapper = ["env", "WRAPPED={work}"].map(str::to_owned).to_vec();
    let sandbox = Sandbox::new(&machine(), Policy::Command(wrapper)).unwrap();
    let outcome = run(&sandbox, shell("echo $WRAPPED; cat file").file("file", "contents\n"));
    assert_eq!(outcome.stdout.text(), "/sandbox\ncontents\n");
    assert_eq!(outcome.layers, [Layer::Watchdog, Layer::Wrapper]);
}

/// bwrap as the page of the operator shows it.
#[test]
fn bwrap_is_a_sandbox() {
    if Command::new("bwrap").arg("--version").output().is_err() {
        return;
    }
    let wrapper = "bwrap --unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin \
                   --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev \
                   --bind {work} /sandbox --bind {tmp} /tmp --chdir /sandbox";
    let wrapper = wrapper.split_ascii_whitespace().map(str::to_owned).collect();
    let sandbox = Sandbox::new(&machine(), Policy::Command(wrapper)).unwrap();
    let script = "pwd; cat file; cat /etc/passwd || sleep 600";
    let mut specification = shell(script).file("file", "contents\n");
    specification.limits.wall = Duration::from_secs(2);
    let outcome = run(&sandbox, specification);
    assert_eq!(outcome.ending, Ending::WallTime);
    assert_eq!(outcome.stdout.text(), "/sandbox\ncontents\n");
}

#[test]
fn many_programs_run_side_by_side() {
    for sandbox in sandboxes() {
        std::thread::scope(|scope| {
            for number in 0..16 {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    let outcome = run(sandbox, shell(&format!("echo {number} > file; cat file")));
                    assert_eq!(outcome.stdout.text(), format!("{number}\n"));
                });
            }
        });
    }
}

/// The folders for programs on disk, which this process has made.
fn folders() -> Vec<PathBuf> {
    let folders = fs::read_dir(std::env::temp_dir()).unwrap().flatten().map(|entry| entry.path());
    folders.filter(|path| path.to_string_lossy().contains("galeras-sandbox-")).collect()
}

/// The part of [`a_killed_caller_leaves_nothing`] that is killed.
#[test]
fn caller_to_kill() {
    let Some(token) = std::env::var_os("GALERAS_TEST_TO_KILL") else { return };
    let token = token.to_string_lossy().into_owned();
    std::thread::scope(|scope| {
        for sandbox in sandboxes() {
            let token = token.clone();
            scope.spawn(move || {
                let script = "trap '' TERM HUP INT; setsid sleep 600 & echo started; sleep 600";
                let mut specification = shell(script);
                specification.environment.insert("TOKEN".into(), token);
                specification.stdout =
                    Output::Fd(std::io::stderr().as_fd().try_clone_to_owned().unwrap());
                let _ = sandbox.run(specification, &|| false);
            });
        }
    });
}

#[test]
fn a_killed_caller_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let token = format!("galeras-killed-{}", std::process::id());
    let mut caller = Command::new(std::env::current_exe().unwrap())
        .args(["caller_to_kill", "--exact", "--nocapture"])
        .env("GALERAS_TEST_TO_KILL", &token)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut started = [0; 16];
    caller.stderr.take().unwrap().read_exact(&mut started).unwrap();
    caller.kill().unwrap();
    caller.wait().unwrap();
    let left = || {
        let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let variable = format!("TOKEN={token}");
            environ.windows(variable.len()).any(|window| window == variable.as_bytes())
                && !environ.windows(8).any(|window| window == b"_TO_KILL")
        });
        processes.count() + fs::read_dir(temporary.path()).unwrap().count()
    };
    let killed = Instant::now();
    while left() > 0 {
        assert!(
            killed.elapsed() < Duration::from_secs(20),
            "{} processes and folders are left",
            left()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_left_in_the_folder_for_temporary_files() {
    let before = folders().len();
    let sandbox = &sandboxes()[1];
    let nested = "i=0; while [ $i -lt 1100 ]; do mkdir a; cd a; i=$((i + 1)); done";
    for script in ["mkdir -p a/b; chmod 0 a/b", "mkdir -m 0 a", nested, "exit 1", "kill -9 $$"] {
        let _ = run(sandbox, shell(script));
    }
    assert!(folders().len() <= before + 1, "{:?}", folders());
}

/// The time of a launch: `cargo test --release -- --ignored --nocapture time_of_a_launch`.
#[test]
#[ignore = "measures"]
fn time_of_a_launch() {
    for sandbox in sandboxes() {
        let started = Instant::now();
        for _ in 0..200 {
            let outcome = run(
                &sandbox,
                Specification { limits: Limits::default(), ..Specification::new(["true"]) },
            );
            assert_eq!(outcome.ending, Ending::Exited(0));
        }
        println!("{:?} for each launch", started.elapsed() / 200);
    }
}
