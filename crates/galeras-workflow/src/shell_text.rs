//! Inserts values into commands for `sh`: each is one word, quoted for its place.
//!
//! The state follows the quoting of the POSIX shell: unquoted, in `'…'`, in `"…"`, in `$(…)`. In
//! constructs with other rules (backticks, `${…}`, arithmetic, here-documents, comments) only plain
//! words and numbers are accepted. How another program interprets its arguments is not known here.

use serde_json::Value as Json;

use super::language::{Insertion, Unfit, plain_scalar, unfit_type};

/// The construct around a part of a command.
#[derive(Debug, PartialEq, Eq)]
enum Frame {
    /// Words and operators: the command itself, or `$(…)`.
    Code { open: usize, start: usize },
    /// `"…"`.
    Double,
}

#[derive(Debug)]
pub(super) struct ShellText {
    out: String,
    /// The innermost is last; never empty.
    frames: Vec<Frame>,
    /// In `'…'`.
    single: bool,
    /// After `#`.
    comment: bool,
    /// In another construct, whose end is not recognised.
    other: Option<&'static str>,
}

impl Default for ShellText {
    fn default() -> Self {
        let frames = vec![Frame::Code { open: 0, start: 0 }];
        Self { out: String::new(), frames, single: false, comment: false, other: None }
    }
}

impl Insertion for ShellText {
    fn code(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let length = self.step(c, rest);
            let (done, next) = rest.split_at(length);
            self.out.push_str(done);
            rest = next;
        }
    }

    fn value(&mut self, value: &Json) -> Result<(), Unfit> {
        if let Some(text) = plain_scalar(value) {
            self.out.push_str(&text);
            return Ok(());
        }
        let Json::String(text) = value else { return Err(unfit_type(value)) };
        let place = self.other.or(self.comment.then_some("a comment"));
        if let Some(place) = place {
            let plain = |c: char| c.is_alphanumeric() || "_.-".contains(c);
            if text.is_empty() || !text.chars().all(plain) {
                return Err(Unfit::Place(place));
            }
            self.out.push_str(text);
        } else if self.single {
            self.out.push_str(&text.replace('\'', r"'\''"));
        } else if self.frames.last() == Some(&Frame::Double) {
            for c in text.chars() {
                if "\\\"$`".contains(c) {
                    self.out.push('\\');
                }
                self.out.push(c);
            }
        } else {
            self.out.push_str(&format!("'{}'", text.replace('\'', r"'\''")));
        }
        Ok(())
    }

    fn text(self: Box<Self>) -> String {
        self.out
    }
}

impl ShellText {
    /// Reads the character `c`, the first of `rest`, and returns the number of bytes read.
    fn step(&mut self, c: char, rest: &str) -> usize {
        let one = c.len_utf8();
        if self.other.is_some() {
            return one;
        }
        if self.single {
            self.single = c != '\'';
            return one;
        }
        if self.comment {
            self.comment = c != '\n';
            return one;
        }
        let next = rest[one..].chars().next();
        match c {
            '\\' => {
                // A backslash must not escape the first character of a value.
                let Some(next) = next else { return self.lost("the text after `\\`") };
                return one + next.len_utf8();
            }
            '`' => return self.lost("backticks"),
            '$' => return self.dollar(rest, next),
            _ => {}
        }
        let (start, nested) = (self.out.len(), self.frames.len() > 1);
        match self.frames.last_mut() {
            Some(Frame::Double) if c == '"' => {
                self.frames.pop();
            }
            Some(Frame::Double) => {}
            Some(Frame::Code { open, start: began }) => match c {
                '\'' => self.single = true,
                '"' => self.frames.push(Frame::Double),
                '(' if next == Some('(') => return self.lost("arithmetic"),
                '[' if next == Some('[') => return self.lost("`[[ … ]]`"),
                '(' => *open += 1,
                ')' if *open > 0 => *open -= 1,
                ')' if nested && self.out[*began..].contains("case") => {
                    return self.lost("what follows a `case` in `$(…)`");
                }
                ')' if nested => {
                    self.frames.pop();
                }
                '<' if rest.starts_with("<<<") => return 3,
                '<' if next == Some('<') => return self.lost("a here-document"),
                '#' => {
                    let word = |c: char| !c.is_whitespace() && !";|&()<>".contains(c);
                    self.comment = !self.out[..start].ends_with(word);
                }
                _ => {}
            },
            None => {}
        }
        one
    }

    /// Reads on after a dollar sign outside `'…'`.
    fn dollar(&mut self, rest: &str, next: Option<char>) -> usize {
        let in_code = matches!(self.frames.last(), Some(Frame::Code { .. }));
        match next {
            None => self.lost("the text after `$`"),
            Some('{') => self.lost("`${…}`"),
            Some('(') if rest.starts_with("$((") => self.lost("arithmetic"),
            Some('[') => self.lost("arithmetic"),
            Some('(') => {
                self.frames.push(Frame::Code { open: 0, start: self.out.len() });
                2
            }
            Some('\'') if in_code => self.lost("`$'…'`"),
            Some(_) => 1,
        }
    }

    /// Gives up on the rest. Returns the length of the text that was read.
    fn lost(&mut self, what: &'static str) -> usize {
        self.other = Some(what);
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The text with `value` for each `@`.
    fn with(text: &str, value: &Json) -> Result<String, Unfit> {
        let mut shell = ShellText::default();
        for (at, part) in text.split('@').enumerate() {
            if at > 0 {
                shell.value(value)?;
            }
            shell.code(part);
        }
        Ok(Box::new(shell).text())
    }

    const EVIL: &str = "a'b\"c$(touch hit)`touch hit`;touch hit #\\";

    #[test]
    fn a_value_is_one_word() {
        let sh = |text: &str, value: Json| with(text, &value).unwrap();
        assert_eq!(sh("cmd @ x", json!("a b")), "cmd 'a b' x");
        assert_eq!(sh("cmd --n=@", json!("it's")), r"cmd --n='it'\''s'");
        assert_eq!(sh("cmd @", json!("")), "cmd ''");
        assert_eq!(sh("head -n @ | tail", json!(5)), "head -n 5 | tail");
        assert_eq!(sh("cmd '@' x", json!("it's")), r"cmd 'it'\''s' x");
        assert_eq!(sh("cmd \"@\" @", json!("$x")), "cmd \"\\$x\" '$x'");
        assert_eq!(sh("cmd \"$(ls @)\" @", json!("$x")), "cmd \"$(ls '$x')\" '$x'");
        let commented = sh("(cd x && ls @) # don't\nls @", json!("y"));
        assert_eq!(commented, "(cd x && ls 'y') # don't\nls 'y'");
        assert_eq!(sh("echo a#b @", json!("y")), "echo a#b 'y'");
        assert_eq!(with("cmd @", &json!([1])), Err(Unfit::Type("a list")));
        assert_eq!(with("cmd @", &Json::Null), Err(Unfit::Type("null")));
    }

    /// The shell itself prints its input: the whole value, and nothing is run.
    #[test]
    fn the_shell_reads_the_value_and_runs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for (template, wanted) in [
            ("printf %s @", EVIL.to_string()),
            ("printf %s '@'", EVIL.to_string()),
            ("printf %s \"@\"", EVIL.to_string()),
            ("printf %s x@y\"@\"'@'", format!("x{EVIL}y{EVIL}{EVIL}")),
            ("printf %s \"$(printf %s \"$(printf %s @)\")\"", EVIL.to_string()),
            ("printf %s \"$( (printf %s \"@\") )@\"", format!("{EVIL}{EVIL}")),
            ("x=@; printf %s \"$x\"", EVIL.to_string()),
            ("printf %s 'it'\\''s '@", format!("it's {EVIL}")),
            ("printf %s \\\"@\\\"", format!("\"{EVIL}\"")),
            ("case @ in @) printf %s @ ;; esac", EVIL.to_string()),
            ("# it's \"a\" `b\nprintf %s @", EVIL.to_string()),
            ("printf %s \"\\\\@\"", format!("\\{EVIL}")),
            ("printf '%s%s' $HOME @ | tr -d x; : \"$HOME\" @", format!("/h{EVIL}")),
        ] {
            let command = with(template, &json!(EVIL)).unwrap();
            let mut sh = std::process::Command::new("sh");
            sh.arg("-c").arg(&command).env("HOME", "/h").current_dir(folder.path());
            let output = sh.output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{command}");
            assert!(!folder.path().join("hit").exists(), "{command}");
        }
    }

    #[test]
    fn where_no_quoting_helps_texts_are_refused() {
        for text in [
            "echo `ls @`",
            "echo ${x:-@}",
            "echo \"${x:-@}\"",
            "echo $((1 + @))",
            "((x = @))",
            "[[ 1 -eq @ ]]",
            "cat <<EOF\n@\nEOF",
            "echo \\@",
            "echo \"\\@\"",
            "echo $@",
            "echo \"$@\"",
            "echo $'@'",
            "# @",
            "echo \"$(case a in a) echo @;; esac)\"",
        ] {
            let refused = with(text, &json!("a; b"));
            assert!(matches!(refused, Err(Unfit::Place(_))), "{text}: {refused:?}");
        }
        assert_eq!(with("cat <<EOF\n@\nEOF", &json!("v1.2")).unwrap(), "cat <<EOF\nv1.2\nEOF");
        assert_eq!(with("echo $((1 + @))", &json!(2)).unwrap(), "echo $((1 + 2))");
        assert_eq!(with("cat <<< @", &json!("v")).unwrap(), "cat <<< 'v'");
    }
}
