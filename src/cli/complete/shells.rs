//! What shells have at the cursor, and what they take as candidates.

use clap::ValueEnum;

use super::candidates::Candidate;
use galeras_base::visible::is_hidden;

/// A shell whose script asks for candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Asking {
    /// Gives the line up to the cursor, as it is typed.
    Bash,
    /// Gives the words up to the cursor, without quotes.
    Zsh,
    /// As zsh.
    Fish,
}

/// The words up to the cursor, the program's name first, and the one that the cursor is in.
pub(super) struct Typed {
    pub(super) words: Vec<String>,
    pub(super) current: String,
    /// How many bytes of `current` bash leaves as they are: it takes what follows a `=`, a `:` or
    /// an opening quote for a word of its own.
    kept: usize,
    /// The cursor is between quotes.
    quoted: bool,
}

impl Typed {
    pub(super) fn read(shell: Asking, given: &[String]) -> Self {
        match (shell, given) {
            (Asking::Bash, given) => Self::of_line(&given.join(" ")),
            (_, [words @ .., current]) => {
                // A quote that is still open.
                let current = current.strip_prefix(['\'', '"']).unwrap_or(current).to_string();
                Self { words: words.to_vec(), current, kept: 0, quoted: false }
            }
            (_, []) => Self { words: Vec::new(), current: String::new(), kept: 0, quoted: false },
        }
    }

    /// Splits a line into words as bash does.
    fn of_line(line: &str) -> Self {
        let mut typed = Self { words: Vec::new(), current: String::new(), kept: 0, quoted: false };
        let mut inside = false;
        let mut quote: Option<char> = None;
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Some(open), c) if c == open => (quote, typed.kept) = (None, typed.current.len()),
                (Some('\''), c) => typed.current.push(c),
                (None, '\'' | '"') => {
                    (quote, inside, typed.kept) = (Some(c), true, typed.current.len());
                }
                (_, '\\') => {
                    inside = true;
                    typed.current.extend(chars.next());
                }
                (None, c) if c.is_whitespace() => {
                    if inside {
                        typed.words.push(std::mem::take(&mut typed.current));
                    }
                    (inside, typed.kept) = (false, 0);
                }
                (quote, c) => {
                    inside = true;
                    typed.current.push(c);
                    if quote.is_none() && matches!(c, '=' | ':') {
                        typed.kept = typed.current.len();
                    }
                }
            }
        }
        typed.quoted = quote.is_some();
        typed
    }

    /// The lines for the shell, one for each candidate that can be typed.
    pub(super) fn lines(&self, shell: Asking, candidates: &[Candidate]) -> String {
        let typeable = |candidate: &&Candidate| !candidate.value.contains(is_hidden);
        let fitting =
            candidates.iter().filter(typeable).filter(|c| c.value.starts_with(&self.current));
        let line = |candidate: &Candidate| match shell {
            Asking::Bash => self.bash(candidate),
            Asking::Zsh | Asking::Fish => {
                let help: String = candidate.help.chars().filter(|c| !is_hidden(*c)).collect();
                match help.trim() {
                    "" => format!("{}\n", candidate.value),
                    help => format!("{}\t{help}\n", candidate.value),
                }
            }
        };
        fitting.map(line).collect()
    }

    fn bash(&self, candidate: &Candidate) -> String {
        // `kept` is a boundary of `current`, with which the value begins.
        let rest = candidate.value.get(self.kept..).unwrap_or_default();
        if self.quoted {
            return format!("{rest}\n");
        }
        let plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
        let mut text = String::new();
        for (at, c) in rest.char_indices() {
            let home = c == '~' && at + self.kept == 0;
            if !plain(c) && !home {
                text.push('\\');
            }
            text.push(c);
        }
        // The script asks bash for no space after a candidate.
        let space = if candidate.goes_on() { "" } else { " " };
        format!("{text}{space}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(line: &str, values: &[&str]) -> Vec<String> {
        let typed = Typed::read(Asking::Bash, &[line.to_string()]);
        let candidates: Vec<Candidate> = values.iter().map(|v| Candidate::new(*v, "")).collect();
        typed.lines(Asking::Bash, &candidates).lines().map(String::from).collect()
    }

    #[test]
    fn bash_gets_what_follows_its_breaks() {
        let cells = ["gen[model=a]", "gen[model=b]", "it's"];
        assert_eq!(
            bash("galeras show w.yaml ge", &cells),
            [r"gen\[model=a\] ", r"gen\[model=b\] "]
        );
        assert_eq!(bash(r"galeras show w.yaml gen\[model=", &cells), [r"a\] ", r"b\] "]);
        assert_eq!(bash("galeras show w.yaml 'gen[model=b", &cells), ["gen[model=b]"]);
        assert_eq!(bash("galeras show w.yaml i", &cells), [r"it\'s "]);
        assert_eq!(bash("galeras run w.yaml --set n=", &["n=5", "n=6"]), ["5 ", "6 "]);
        assert_eq!(bash("galeras run w.yaml --set n", &["n="]), ["n="]);
        assert_eq!(bash("galeras run ~/w", &["~/w.yaml", "~/work/"]), ["~/w.yaml ", "~/work/"]);
    }

    #[test]
    fn a_line_is_split_as_bash_splits_it() {
        let typed = Typed::read(Asking::Bash, &[r#"galeras  run 'a b' c\ d "e f" g"#.to_string()]);
        assert_eq!(typed.words, ["galeras", "run", "a b", "c d", "e f"]);
        assert_eq!(typed.current, "g");
        let typed = Typed::read(Asking::Bash, &["galeras run '' ".to_string()]);
        assert_eq!((typed.words.len(), typed.current.as_str()), (3, ""));
    }

    #[test]
    fn what_cannot_be_typed_is_not_offered() {
        let typed = Typed::read(Asking::Zsh, &["galeras".into(), "'s".into()]);
        let candidates = [
            Candidate::new("show", "Shows\trows\u{1b}[31m"),
            Candidate::new("s\nx", ""),
            Candidate::new("run", ""),
        ];
        assert_eq!(typed.lines(Asking::Zsh, &candidates), "show\tShowsrows[31m\n");
    }
}
