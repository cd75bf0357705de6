//! Where the cursor of a command line is: at the name of a verb, a flag, or a value.

use std::collections::HashMap;

use clap::{Arg, ArgAction, Command};

/// What the cursor is at.
pub(super) enum Cursor<'a> {
    /// The name of a verb of this command.
    Verb(&'a Command),
    /// The name of a flag of this command.
    Flag(&'a Command),
    /// A value of an argument.
    Value {
        arg: &'a Arg,
        /// What of the word comes before the value: `--set=`, `a,`.
        before: String,
        /// What of the value is there.
        typed: String,
    },
    /// Nothing can stand here.
    Nowhere,
}

/// A command line up to the cursor.
pub(super) struct CommandLine<'a> {
    /// The names of the verb and of those before it: `cache ls`.
    pub(super) verb: String,
    /// The values of the arguments that are complete, by the names of the arguments.
    pub(super) values: HashMap<&'a str, Vec<String>>,
    pub(super) cursor: Cursor<'a>,
}

impl<'a> CommandLine<'a> {
    /// Reads the words after the program's name; `current` is the one that the cursor is in, up to
    /// the cursor.
    pub(super) fn read(root: &'a Command, words: &[String], current: &str) -> Self {
        let mut command = root;
        let mut verb: Vec<&str> = Vec::new();
        let mut values: HashMap<&str, Vec<String>> = HashMap::new();
        let mut position = 0;
        let mut pending: Option<&Arg> = None;
        let mut flags = true;
        for word in words {
            let mut add = |arg: &'a Arg, value: &str| {
                values.entry(arg.get_id().as_str()).or_default().push(value.to_string());
            };
            if let Some(arg) = pending.take() {
                add(arg, word);
            } else if flags && word == "--" {
                flags = false;
            } else if flags && word.len() > 1 && word.starts_with('-') {
                let Some((arg, value)) = flag(command, word) else { continue };
                match value {
                    _ if !arg.get_action().takes_values() => add(arg, ""),
                    Some(value) => add(arg, value),
                    None => pending = Some(arg),
                }
            } else if let Some(inner) = command.find_subcommand(word).filter(|_| position == 0) {
                command = inner;
                verb.push(inner.get_name());
            } else {
                if let Some(arg) = positional(command, position) {
                    add(arg, word);
                }
                position += 1;
            }
        }
        let cursor = match (pending, flag(command, current)) {
            (Some(arg), _) => value(arg, "", current),
            (None, Some((arg, Some(typed)))) if flags => {
                value(arg, &current[..current.len() - typed.len()], typed)
            }
            _ if flags && current.starts_with('-') => Cursor::Flag(command),
            _ if command.has_subcommands() && position == 0 => Cursor::Verb(command),
            _ => match positional(command, position) {
                Some(arg) => value(arg, "", current),
                None => Cursor::Nowhere,
            },
        };
        Self { verb: verb.join(" "), values, cursor }
    }

    /// The last value of an argument.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }
}

/// The argument that a word such as `--set`, `--set=n=1` or `-oFILE` names, and the value in it.
fn flag<'a, 'w>(command: &'a Command, word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
        return Some((arg, value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let short = letters.next()?;
    let arg = command.get_arguments().find(|arg| arg.get_short() == Some(short))?;
    let rest = letters.as_str();
    Some((arg, (!rest.is_empty()).then_some(rest)))
}

/// The argument at a position; the last one may take all that follow.
fn positional(command: &Command, position: usize) -> Option<&Arg> {
    let last = command.get_positionals().last();
    let many = last.filter(|arg| matches!(arg.get_action(), ArgAction::Append));
    command.get_positionals().nth(position).or(many)
}

fn value<'a>(arg: &'a Arg, before: &str, typed: &str) -> Cursor<'a> {
    let at = match arg.get_value_delimiter() {
        Some(delimiter) => typed.rfind(delimiter).map_or(0, |at| at + delimiter.len_utf8()),
        None => 0,
    };
    let (done, typed) = typed.split_at(at);
    Cursor::Value { arg, before: format!("{before}{done}"), typed: typed.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// What the cursor is at, in words.
    fn at(line: &str) -> String {
        let mut root = Cli::command();
        root.build();
        let mut words: Vec<String> = line.split(' ').map(String::from).collect();
        let current = words.pop().unwrap();
        let line = CommandLine::read(&root, &words, &current);
        let verb = &line.verb;
        match &line.cursor {
            Cursor::Verb(_) => format!("{verb}: verb"),
            Cursor::Flag(_) => format!("{verb}: flag"),
            Cursor::Value { arg, before, typed } => {
                format!("{verb}: {} {before}|{typed}", arg.get_id())
            }
            Cursor::Nowhere => format!("{verb}: nowhere"),
        }
    }

    #[test]
    fn the_cursor_is_at_what_clap_would_read_there() {
        for (line, expected) in [
            ("", ": verb"),
            ("sh", ": verb"),
            ("cache ", "cache: verb"),
            ("cache ls --b", "cache ls: flag"),
            ("cache ls --by ", "cache ls: by |"),
            ("show ", "show: file |"),
            ("show w.yaml va", "show: step |va"),
            ("show --set n=1 w.yaml va", "show: step |va"),
            ("show w.yaml valid --set ", "show: set |"),
            ("show w.yaml valid --set=n=", "show: set --set=|n="),
            ("show w.yaml valid --columns a,b", "show: columns a,|b"),
            ("show w.yaml valid -o", "show: flag"),
            ("show w.yaml valid -o x", "show: output |x"),
            ("show w.yaml valid more", "show: nowhere"),
            ("none ", ": nowhere"),
            ("run w.yaml --keep-going --select ", "run: select |"),
            ("check a.yaml b.yaml c", "check: files |c"),
            ("run -- --x", "run: file |--x"),
        ] {
            assert_eq!(at(line), expected, "{line:?}");
        }
    }

    #[test]
    fn values_that_are_complete_are_known() {
        let mut root = Cli::command();
        root.build();
        let words = ["show", "--set", "n=1", "w.yaml", "--set=m=2"].map(String::from);
        let line = CommandLine::read(&root, &words, "");
        assert_eq!(line.values["set"], ["n=1", "m=2"]);
        assert_eq!(line.value("file"), Some("w.yaml"));
    }
}
