//! Completion in bash, which splits words at `=`, `:` and opening quotes. The adapter of
//! clap_complete only gets these parts, and offers nothing after `--set name=`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine::complete;
use clap_complete::env::EnvCompleter;

use super::candidates;
use galeras_base::terminal_escape::shell_word;

const SCRIPT: &str = r#"_galeras() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(VARIABLE=bash COMPLETER -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o nospace -o nosort -F _galeras BIN 2>/dev/null || complete -o nospace -F _galeras BIN
"#;

pub(super) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        var: &str,
        _: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let script = SCRIPT.replace("VARIABLE", var).replace("BIN", bin);
        buf.write_all(script.replace("COMPLETER", &shell_word(completer)).as_bytes())
    }

    fn write_complete(
        &self,
        _: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let line = args.first().map(|line| line.to_string_lossy()).unwrap_or_default();
        let Line { mut words, current, kept, quoted } = Line::split(&line);
        let mut command = candidates::command(&words, &current);
        let index = words.len();
        words.push(current);
        let words = words.into_iter().map(OsString::from).collect();
        for candidate in complete(&mut command, words, index, current_dir)? {
            let value = candidate.get_value().to_string_lossy();
            buf.write_all(typed(&value, kept, quoted).as_bytes())?;
        }
        Ok(())
    }
}

/// The line that makes bash type a candidate. The first `kept` bytes are there already.
fn typed(value: &str, kept: usize, quoted: bool) -> String {
    let rest = value.get(kept..).unwrap_or_default();
    if quoted {
        return format!("{rest}\n");
    }
    let plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
    let mut text = String::new();
    for (at, c) in rest.char_indices() {
        let home = c == '~' && at + kept == 0;
        if !plain(c) && !home {
            text.push('\\');
        }
        text.push(c);
    }
    // Folders and `name=` are not whole words, so bash must not add a space.
    let space = if value.ends_with(['/', '=']) { "" } else { " " };
    format!("{text}{space}\n")
}

/// A command line up to the cursor, without quotes and backslashes.
#[derive(Default)]
pub(super) struct Line {
    /// The complete words, the name of the program first.
    pub(super) words: Vec<String>,
    /// The word that the cursor is in.
    pub(super) current: String,
    /// The bytes of `current` that bash leaves unchanged.
    kept: usize,
    /// The cursor is between quotes.
    quoted: bool,
}

impl Line {
    pub(super) fn of_word(word: &str) -> Self {
        Self::read(word, |_| false)
    }

    /// Splits a line into words as bash does.
    fn split(line: &str) -> Self {
        Self::read(line, char::is_whitespace)
    }

    fn read(line: &str, is_space: impl Fn(char) -> bool) -> Self {
        let mut read = Self::default();
        let mut inside = false;
        let mut quote: Option<char> = None;
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Some(open), c) if c == open => (quote, read.kept) = (None, read.current.len()),
                (Some('\''), c) => read.current.push(c),
                (None, '\'' | '"') => {
                    (quote, inside, read.kept) = (Some(c), true, read.current.len());
                }
                (_, '\\') => {
                    inside = true;
                    read.current.extend(chars.next());
                }
                (None, c) if is_space(c) => {
                    if inside {
                        read.words.push(std::mem::take(&mut read.current));
                    }
                    (inside, read.kept) = (false, 0);
                }
                (quote, c) => {
                    inside = true;
                    read.current.push(c);
                    if quote.is_none() && matches!(c, '=' | ':') {
                        read.kept = read.current.len();
                    }
                }
            }
        }
        read.quoted = quote.is_some();
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(line: &str, values: &[&str]) -> Vec<String> {
        let Line { kept, quoted, .. } = Line::split(line);
        values
            .iter()
            .map(|value| typed(value, kept, quoted).trim_end_matches('\n').into())
            .collect()
    }

    #[test]
    fn bash_gets_what_follows_its_breaks() {
        let cells = ["gen[model=a]", "gen[model=b]"];
        let show = |typed: &str| bash(&format!("galeras show w.yaml {typed}"), &cells);
        assert_eq!(show("ge"), [r"gen\[model=a\] ", r"gen\[model=b\] "]);
        assert_eq!(show(r"gen\[model="), [r"a\] ", r"b\] "]);
        assert_eq!(show("'gen[model="), cells);
        assert_eq!(bash("galeras show w.yaml i", &["it's"]), [r"it\'s "]);
        assert_eq!(bash("galeras run w.yaml --set n=", &["n=5", "n=6"]), ["5 ", "6 "]);
        assert_eq!(bash("galeras run w.yaml --set n", &["n="]), ["n="]);
        assert_eq!(bash("galeras run ~/w", &["~/w.yaml", "~/work/"]), ["~/w.yaml ", "~/work/"]);
    }

    #[test]
    fn a_line_is_split_as_bash_splits_it() {
        let line = Line::split(r#"galeras  run 'a b' c\ d "e f" g"#);
        assert_eq!(line.words, ["galeras", "run", "a b", "c d", "e f"]);
        assert_eq!(line.current, "g");
        let line = Line::split("galeras run '' ");
        assert_eq!((line.words.len(), line.current.as_str()), (3, ""));
        assert_eq!(Line::of_word(r"'c d").current, "c d");
    }
}
