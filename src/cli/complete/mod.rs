//! Shell completion by the dynamic engine of clap_complete: the script that `galeras completions SHELL`
//! prints calls the program with the words of the line, and a variable that names the shell.

mod bash;
mod candidates;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use self::bash::{Bash, Line};
use super::exit::{Exit, Failure, fail};
use super::screen::print;
use super::{Cli, STACK_BYTES};

const VARIABLE: &str = "GALERAS_COMPLETE";
const PROGRAM: &str = "galeras";

const SHELLS: Shells<'static> =
    Shells(&[&Bash, &Unquoted(Elvish), &Unquoted(Fish), &Unquoted(Powershell), &Unquoted(Zsh)]);

/// Prints what can be at the cursor, if a shell asks; returns `None` in an ordinary run.
pub(super) fn answer() -> Option<Exit> {
    std::env::var_os(VARIABLE).filter(|shell| !shell.is_empty() && shell != "0")?;
    let complete = || {
        let here = std::env::current_dir().ok();
        let engine = CompleteEnv::with_factory(Cli::command).var(VARIABLE).shells(SHELLS);
        engine.try_complete(std::env::args_os(), here.as_deref())
    };
    // A plan is made for the names of steps.
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(complete);
    Some(match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(_))) => Exit::Done,
        Ok(Ok(Err(error))) => fail(error.to_string(), Exit::Invalid).show(),
        // A panic; shells show nothing.
        Ok(Err(_)) => Exit::Failed,
        Err(error) => fail(format!("cannot start threads: {error}"), Exit::Disk).show(),
    })
}

/// Prints the script that makes a shell ask.
pub(super) fn script(shell: Shell) -> Result<Exit, Failure> {
    let mut program = PathBuf::from(std::env::args_os().next().unwrap_or_else(|| PROGRAM.into()));
    if program.components().count() > 1 {
        program = std::path::absolute(&program).unwrap_or(program);
    }
    let mut text = Vec::new();
    let written = SHELLS.completer(&shell.to_string()).map(|shell| {
        shell.write_registration(VARIABLE, PROGRAM, PROGRAM, &program.to_string_lossy(), &mut text)
    });
    match written {
        Some(Ok(())) => print(&String::from_utf8_lossy(&text)),
        _ => Err(fail(format!("there is no completion for {shell}"), Exit::Invalid)),
    }
}

/// A shell that gives words as they are typed, with quotes and backslashes.
struct Unquoted<S>(S);

impl<S: EnvCompleter> EnvCompleter for Unquoted<S> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is(&self, name: &str) -> bool {
        self.0.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        self.0.write_registration(var, name, bin, completer, buf)
    }

    fn write_complete(
        &self,
        _: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let unquoted = |word: &OsString| Line::of_word(&word.to_string_lossy()).current;
        let words: Vec<String> = args.iter().map(unquoted).collect();
        let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        let index = index.unwrap_or(usize::MAX).min(words.len().saturating_sub(1));
        let mut command =
            candidates::command(&words[..index], words.get(index).map_or("", String::as_str));
        self.0.write_complete(
            &mut command,
            words.into_iter().map(OsString::from).collect(),
            current_dir,
            buf,
        )
    }
}
