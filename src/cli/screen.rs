//! All writes to the standard streams go through this module.
//!
//! Text for people passes a [`VisibleWriter`], so that nothing from a file, a table, a model or a
//! server can control a terminal, even if a message forgot to escape it. `tests/tidy` finds code
//! that writes elsewhere; only the bars of running steps draw directly, from escaped texts.
//! The first failed write to standard output is remembered, so that no verb can end as if everything
//! had been printed.

use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::{Mutex, PoisonError};

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::exit::{Exit, Failure, fail};
use super::{Cli, Format};
use galeras_base::error_chain::copy_of;
use galeras_base::terminal_escape::{VisibleWriter, escape, escape_json, shell_word};

/// The error of the first failed write.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output as a writer. After a failed write, all others fail for the same reason: nothing
/// may follow truncated output.
pub(super) struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        guarded(|| io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        guarded(|| io::stdout().flush())
    }
}

/// Writes to standard output, unless that has failed before.
fn guarded<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failure.as_ref() {
        return Err(copy_of(error));
    }
    act().inspect_err(|error| {
        if error.kind() != io::ErrorKind::Interrupted {
            *failure = Some(copy_of(error));
        }
    })
}

/// The error that kept some output from arriving, if any. A closed pipe (`| head`) does not count.
fn stdout_failure() -> Option<io::Error> {
    // The standard library would silently drop the rest of its buffer.
    StandardOutput.flush().err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// A write to standard output has failed.
pub(super) fn has_failed() -> bool {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Standard output, for people: no colours.
pub(super) fn stdout() -> VisibleWriter<StandardOutput> {
    VisibleWriter::new(StandardOutput, false)
}

/// Standard output for programs: unescaped bytes, except on a terminal.
pub(super) fn data_stdout() -> Box<dyn Write + Send> {
    if io::stdout().is_terminal() { Box::new(stdout()) } else { Box::new(StandardOutput) }
}

/// Standard error, with colours if allowed.
pub(super) fn stderr() -> VisibleWriter<Stderr> {
    VisibleWriter::new(io::stderr(), color())
}

/// Standard error without colours, for the lines of a log.
pub(super) fn log_stderr() -> VisibleWriter<Stderr> {
    VisibleWriter::new(io::stderr(), false)
}

/// Writes to standard output, and returns the result of a verb that ends with this. A failed write
/// does not stop the verb, as there may be more to report: [`settled`] reports it at the end. A reader
/// that has gone away (`| head`) is not an error.
pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    write_out(&mut stdout(), text.as_bytes())
}

/// The same for bytes to any writer.
pub(super) fn write_out(out: &mut impl Write, bytes: &[u8]) -> Result<Exit, Failure> {
    let _ = out.write_all(bytes).and_then(|()| out.flush());
    Ok(Exit::Done)
}

/// The exit of a verb that would end with `exit`, unless its output could not be written.
pub(super) fn settled(exit: Exit) -> Exit {
    let Some(error) = stdout_failure() else { return exit };
    let failed = fail(format!("cannot write standard output: {error}"), Exit::Disk).show();
    if exit == Exit::Done { failed } else { exit }
}

/// Prints the answer of a verb in the wanted format.
pub(super) fn answer(format: Format, json: serde_json::Value, text: &str) -> Result<Exit, Failure> {
    match format {
        Format::Json => print_json(&json),
        Format::Human => print(text),
    }
}

pub(super) fn print_json(value: &serde_json::Value) -> Result<Exit, Failure> {
    print(&format!("{}\n", escape_json(value.to_string())))
}

/// Writes a text, which may have colours, to standard error.
pub(super) fn tell(text: &str) {
    let _ = write_out(&mut stderr(), text.as_bytes());
}

pub(super) fn note(message: &str) {
    let _ = write_out(&mut log_stderr(), format!("{message}\n").as_bytes());
}

/// Shows clap's messages: help and versions on standard output, mistakes on standard error.
pub(super) fn show_usage(error: &clap::Error) -> Exit {
    let mistake = error.use_stderr();
    // The message quotes arguments. If these contain escape codes, ours are left out.
    let plain = std::env::args_os().any(|argument| {
        let argument = argument.to_string_lossy();
        escape(&argument) != argument
    });
    let terminal = if mistake { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let styled = terminal && may_paint() && !plain;
    let text = error.render();
    let text = if styled { text.ansi().to_string() } else { text.to_string() };
    let stream: Box<dyn Write> =
        if mistake { Box::new(io::stderr()) } else { Box::new(StandardOutput) };
    let text = text + &set_tip(error).unwrap_or_default();
    let _ = write_out(&mut VisibleWriter::new(stream, styled), text.as_bytes());
    if mistake { Exit::Invalid } else { Exit::Done }
}

/// The tip for `n=7` or `--n=7` as an argument of a verb that takes `--set n=7`, and for a step as
/// an argument of `run`.
fn set_tip(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let program = Cli::command();
    let verb = program.find_subcommand(arguments.get(1)?)?;
    if !verb.get_arguments().any(|argument| argument.get_long() == Some("set")) {
        return None;
    }
    // Of `--n=7`, the error has only `--n`.
    let is_it = |argument: &&String| {
        argument.split_once('=').is_some_and(|(name, _)| *argument == unknown || name == unknown)
    };
    let Some(setting) = arguments.iter().find(is_it) else {
        let is_step = arguments[1] == "run" && !unknown.starts_with('-');
        return is_step
            .then(|| format!("A step is chosen by --select {}\n", escape(&shell_word(unknown))));
    };
    let setting = setting.trim_start_matches('-');
    let is_named = setting.starts_with(|c: char| c.is_alphabetic());
    is_named.then(|| format!("A param has its value by --set {}\n", escape(&shell_word(setting))))
}

pub(super) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Standard error may have colours.
pub(super) fn color() -> bool {
    is_terminal() && may_paint()
}

fn may_paint() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
}

/// The width of lines on standard error: that of the terminal, or `$COLUMNS`. `None` for files and
/// pipes, where lines are not wrapped.
pub(super) fn line_width() -> Option<u16> {
    (is_terminal() || std::env::var_os("COLUMNS").is_some()).then(width)
}

/// The width of the terminal, or 80.
pub(super) fn width() -> u16 {
    let from_env = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    from_env
        .or_else(|| rustix::termios::tcgetwinsize(io::stderr()).ok().map(|w| w.ws_col))
        .filter(|w| *w >= LEAST_WIDTH)
        .unwrap_or(80)
}

pub(super) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Smaller widths are treated as wrong.
const LEAST_WIDTH: u16 = 20;

/// The width of a table on a terminal.
pub(super) fn stdout_width() -> Option<u16> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let terminal = rustix::termios::tcgetwinsize(stdout).ok().map(|w| w.ws_col);
    Some(terminal.filter(|w| *w >= LEAST_WIDTH).unwrap_or_else(width))
}
