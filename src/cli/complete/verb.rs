//! The verbs `completions` and `complete`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::candidates::candidates;
use super::cursor::CommandLine;
use super::shells::{Asking, Typed};
use crate::cli::Cli;
use crate::cli::exit::Exit;
use crate::cli::screen::print;

#[derive(Args)]
pub(crate) struct CompleteArgs {
    /// The shell that asks.
    shell: Asking,
    /// The words up to the cursor, or for bash the line.
    #[arg(last = true)]
    words: Vec<String>,
}

/// Prints what may stand at the cursor.
pub(crate) async fn complete(args: CompleteArgs) -> Exit {
    let typed = Typed::read(args.shell, &args.words);
    let mut root = Cli::command();
    root.build();
    let words = typed.words.get(1..).unwrap_or_default();
    let line = CommandLine::read(&root, words, &typed.current);
    print(&typed.lines(args.shell, &candidates(&line).await))
}

/// Prints the script that makes a shell ask.
pub(crate) fn script(shell: Shell) -> Exit {
    match shell {
        Shell::Bash => print(include_str!("scripts/galeras.bash")),
        Shell::Zsh => print(include_str!("scripts/galeras.zsh")),
        Shell::Fish => print(include_str!("scripts/galeras.fish")),
        // Flags and verbs only: these do not ask.
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut Cli::command(), "galeras", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}
