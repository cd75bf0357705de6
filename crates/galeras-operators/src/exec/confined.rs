//! Runs the command in a sandbox, and stores its output.

use std::fs::{self, File, Permissions};
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use galeras_operator::{LowerContext, StepError};
use galeras_sandbox::{Captured, Ending, Input, Limits, Output, Specification};
use tokio::task::spawn_blocking;

use super::Args;
use super::process::{CHUNK, ERRORS, GRACE, explained, not_kept, shown, still_open};
use crate::sandbox::sandbox_failed;

/// Only the machine limits a command, which may take days, but for temporary files: they may be in memory.
const LIMITS: Limits = Limits {
    cpu: FOREVER,
    wall: FOREVER,
    memory: u64::MAX,
    output: 2 * ERRORS as u64,
    output_total: u64::MAX,
    file_size: u64::MAX,
    open_files: 4096,
    processes: 1 << 22,
    scratch: 4 << 30,
    scratch_files: 1 << 20,
};
const FOREVER: Duration = Duration::from_secs(1 << 32);

/// The advice if a command fails that would do better outside.
const INSIDE: &str = "the command runs in a sandbox: it sees its `files` and what `sandbox` lets it read, write \
                      or reach, but no other file, no network, and none of your variables";

/// Runs the command, which sees `files`, until it has ended and its output is in the file `output`.
///
/// # Errors
/// If the machine has no sandbox, if the command does not exit with status 0, if its output cannot be stored, or
/// if the run is cancelled; no process of it is left then.
pub(super) async fn run(
    args: &Args,
    files: &[String],
    cx: &LowerContext,
    inputs: &[(String, PathBuf)],
    output: &Path,
) -> Result<(), StepError> {
    let name = shown(&args.command);
    let failed = |error: io::Error| {
        StepError::new(format!("cannot run the command {name}: {error}")).because(error)
    };
    let sandbox = args.sandbox.open(cx).map_err(|error| match cfg!(target_os = "linux") {
        true => error,
        false => error.help("`sandbox: none` runs the command without one"),
    })?;
    if rustix::process::geteuid().is_root() {
        // The command is another user.
        open_for_others(cx.scratch.path().map_err(failed)?, 0o711).map_err(failed)?;
        inputs.iter().try_for_each(|(_, path)| open_for_others(path, 0o644)).map_err(failed)?;
    }
    let (printed, writer) = io::pipe().map_err(failed)?;
    let mut specification = specification(args, files, &cx.base, inputs).map_err(failed)?;
    args.sandbox.show_folders(cx, &cx.base, &sandbox, &mut specification)?;
    specification.readable.extend(inputs.iter().map(|(_, path)| path.clone()));
    specification.stdout = Output::Fd(writer.into());
    let file = File::create(output).map_err(failed)?;

    // It ends when the run is cancelled, the output cannot be kept, or this work is dropped.
    let cancel = cx.env.cancel.child_token();
    let _guard = cancel.clone().drop_guard();
    let unkept = cancel.clone();
    let kept = spawn_blocking(move || keep(printed, file).inspect_err(|_| unkept.cancel()));
    let ended = spawn_blocking(move || sandbox.run(specification, &|| cancel.is_cancelled()));
    let (kept, ended) = futures::future::join(kept, ended).await;
    kept.map_err(io::Error::from).flatten().map_err(|error| not_kept(&name, error))?;
    let outcome = ended.map_err(io::Error::from).map_err(failed)?.map_err(sandbox_failed)?;

    let status = match outcome.ending {
        Ending::Exited(0) => return Ok(()),
        Ending::OutputOpen => return Err(still_open(&name)),
        Ending::Exited(code) => explained(ExitStatus::from_raw(code << 8)),
        Ending::Signaled(signal) => explained(ExitStatus::from_raw(signal)),
        other => other.to_string(),
    };
    let mut message = format!("the command {name} ended with {status}");
    let said = end(&outcome.stderr);
    if !said.trim().is_empty() {
        message.push_str(&format!("; it said:\n{}", said.trim()));
    }
    Err(StepError::new(message).help(INSIDE))
}

fn open_for_others(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn specification(
    args: &Args,
    files: &[String],
    base: &Path,
    inputs: &[(String, PathBuf)],
) -> io::Result<Specification> {
    let base = base.canonicalize()?;
    let files = files.iter().map(|name| without_parents(&base.join(name)));
    let mut specification = Specification {
        readable: files.collect(),
        directory: Some(base.clone()),
        patience: GRACE,
        limits: LIMITS,
        ..Specification::new(["sh", "-c", args.command.as_str()])
    };
    for (port, path) in inputs {
        let name = format!("GALERAS_INPUT_{}", port.to_uppercase());
        specification.environment.insert(name, path.display().to_string());
    }
    // A file and not a pipe, so that the command may stop reading at any time.
    if let [(_, path)] = inputs {
        specification.stdin = Input::Fd(File::open(path)?.into());
    }
    Ok(specification)
}

/// The path without `..`, which lead nowhere in a sandbox that lacks the folder before them.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Copies the output to the file, and syncs it to disk.
fn keep(mut printed: PipeReader, mut file: File) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match printed.read(&mut buffer) {
            Ok(0) => return file.sync_data(),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        file.write_all(&buffer[..read])?;
    }
}

/// The last bytes of the standard error.
fn end(errors: &Captured) -> String {
    let kept = match errors.left_out() {
        0 => [errors.head.as_slice(), &errors.tail].concat(),
        _ => errors.tail.clone(),
    };
    String::from_utf8_lossy(&kept[kept.len().saturating_sub(ERRORS)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_leave_no_trace_in_a_path() {
        assert_eq!(without_parents(Path::new("/a/b/../c/./d")), Path::new("/a/c/d"));
    }

    #[test]
    fn the_end_of_the_errors_is_shown() {
        let captured = |head: &str, tail: &str, total| Captured {
            head: head.into(),
            tail: tail.into(),
            total,
        };
        assert_eq!(end(&captured("all", "", 3)), "all");
        assert_eq!(end(&captured("a", "end", 9)), "end");
        let long = "é".repeat(ERRORS);
        assert!(end(&captured(&long, "", 2 * ERRORS as u64)).len() <= ERRORS + 3);
    }
}
