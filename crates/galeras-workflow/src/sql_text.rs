//! Inserts values into SQL: each as a literal, or inside the quotes around it.
//!
//! The state follows DataFusion's generic dialect: strings in `'…'` double their quotes and have no
//! backslash escapes, except `E'…'`; names are in `"…"` or backticks; comments nest. Places where
//! no escaping keeps a text from ending its construct are rejected.

use serde_json::Value as Json;

use super::language::{Insertion, Unfit, plain_scalar, unfit_type};

/// The construct around the end of a text.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Code,
    /// In `'…'`.
    Text,
    /// In `E'…'`.
    Escaped,
    /// In a name between two of these.
    Name(char),
    /// After `--`.
    Line,
    /// After this many `/*`.
    Block(usize),
    /// In another construct, whose end is not recognised.
    Other(&'static str),
}

#[derive(Debug, Default)]
pub(super) struct SqlText {
    out: String,
    state: State,
    /// The last part is the literal of a text.
    after_literal: bool,
}

impl Insertion for SqlText {
    fn code(&mut self, text: &str) {
        // Two adjacent literals would be one.
        if std::mem::take(&mut self.after_literal) && text.starts_with('\'') {
            self.out.push(' ');
        }
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
            // `x -${{ params.n }}` with -1 would begin a comment.
            let negative = self.state == State::Code && text.starts_with('-');
            if negative && self.out.ends_with('-') {
                self.out.push_str(&format!("({text})"));
            } else {
                self.out.push_str(&text);
            }
            self.after_literal = false;
            return Ok(());
        }
        match value {
            Json::String(text) => self.quote(text),
            Json::Array(items) if self.state == State::Code && !items.is_empty() => {
                let items: Result<Vec<String>, Unfit> = items.iter().map(literal).collect();
                self.out.push_str(&format!("({})", items?.join(", ")));
                Ok(())
            }
            other => Err(unfit_type(other)),
        }
    }

    fn text(self: Box<Self>) -> String {
        self.out
    }
}

impl SqlText {
    /// Reads the character `c`, the first of `rest`, and returns the number of bytes read.
    fn step(&mut self, c: char, rest: &str) -> usize {
        let doubled = |c: char| rest[c.len_utf8()..].starts_with(c);
        match &mut self.state {
            State::Code => {
                self.state = match c {
                    '\'' => self.literal(),
                    '"' | '`' => State::Name(c),
                    '-' if rest.starts_with("--") => State::Line,
                    '/' if rest.starts_with("/*!") => State::Other("an optimizer comment"),
                    '/' if rest.starts_with("/*") => {
                        self.state = State::Block(1);
                        return 2;
                    }
                    '$' => State::Other("the text after `$`"),
                    _ => State::Code,
                };
            }
            State::Text | State::Escaped if c == '\'' && doubled(c) => return 2,
            State::Text | State::Escaped if c == '\'' => self.state = State::Code,
            State::Escaped if c == '\\' => {
                let escaped = rest[1..].chars().next().map(char::len_utf8);
                // A backslash must not escape the first character of a value.
                let Some(escaped) = escaped else {
                    self.state = State::Other("the text after `\\`");
                    return 1;
                };
                return 1 + escaped;
            }
            State::Name(quote) if c == *quote && doubled(c) => return 2 * c.len_utf8(),
            State::Name(quote) if c == *quote => self.state = State::Code,
            State::Line if c == '\n' => self.state = State::Code,
            State::Block(depth) if rest.starts_with("/*") => {
                *depth += 1;
                return 2;
            }
            State::Block(depth) if rest.starts_with("*/") => {
                *depth -= 1;
                if *depth == 0 {
                    self.state = State::Code;
                }
                return 2;
            }
            _ => {}
        }
        c.len_utf8()
    }

    /// The state after an opening quote: the text before it may change how the string is read.
    fn literal(&self) -> State {
        let word = self.word_before();
        match word {
            "E" | "e" => State::Escaped,
            // `x'00'`, `U&'…'`, `q'[…]'`; `IN'…'` and the like only lack a space.
            _ if (1..=2).contains(&word.len()) || self.out.ends_with('&') => {
                State::Other("a text with a prefix")
            }
            _ => State::Text,
        }
    }

    fn word_before(&self) -> &str {
        let is_part = |c: char| c.is_alphanumeric() || "_$@#".contains(c);
        let start = self.out.trim_end_matches(is_part).len();
        &self.out[start..]
    }

    fn quote(&mut self, text: &str) -> Result<(), Unfit> {
        let harmless = |c: char| c.is_alphanumeric() || " _.,:".contains(c);
        match self.state {
            State::Code => {
                // `col_'x'`, `E'x'` and `'a''b'` would have another meaning.
                let touches = |c: char| c.is_alphanumeric() || "_&$@#'\"`".contains(c);
                if self.out.ends_with(touches) {
                    self.out.push(' ');
                }
                self.out.push_str(&quoted(text));
                self.after_literal = true;
            }
            State::Text => self.out.push_str(&text.replace('\'', "''")),
            State::Escaped => {
                self.out.push_str(&text.replace('\\', "\\\\").replace('\'', "''"));
            }
            State::Name(quote) => {
                let twice = quote.to_string().repeat(2);
                self.out.push_str(&text.replace(quote, &twice));
            }
            State::Line | State::Block(_) if text.chars().all(harmless) => self.out.push_str(text),
            State::Line | State::Block(_) => return Err(Unfit::Place("a comment")),
            State::Other(what) => return Err(Unfit::Place(what)),
        }
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// An entry of a list.
fn literal(value: &Json) -> Result<String, Unfit> {
    match (plain_scalar(value), value) {
        (Some(text), _) => Ok(text),
        (None, Json::String(text)) => Ok(quoted(text)),
        (None, other) => Err(unfit_type(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The text with `value` for each `@`.
    fn with(text: &str, value: &Json) -> Result<String, Unfit> {
        let mut sql = SqlText::default();
        for (at, part) in text.split('@').enumerate() {
            if at > 0 {
                sql.value(value)?;
            }
            sql.code(part);
        }
        Ok(Box::new(sql).text())
    }

    const EVIL: &str = "x' OR 1=1 --";

    #[test]
    fn a_value_is_a_literal_of_its_type() {
        let sql = |text: &str, value: Json| with(text, &value).unwrap();
        assert_eq!(sql("a >= @", json!(5)), "a >= 5");
        assert_eq!(sql("a >= @ AND b", json!(0.8)), "a >= 0.8 AND b");
        assert_eq!(sql("count(*) = 3 * @", json!(2)), "count(*) = 3 * 2");
        assert_eq!(sql("a -@", json!(-1)), "a -(-1)");
        assert_eq!(sql("a = @", json!(-1)), "a = -1");
        assert_eq!(sql("@", json!(true)), "true");
        assert_eq!(sql("a = @", json!("it's")), "a = 'it''s'");
        assert_eq!(sql("a IN @", json!(["b", 1, "c'd"])), "a IN ('b', 1, 'c''d')");
        assert_eq!(sql("col_@", json!(1)), "col_1");
        assert_eq!(with("a IN @", &json!([])), Err(Unfit::Type("an empty list")));
        assert_eq!(with("@", &json!({})), Err(Unfit::Type("a mapping")));
        assert_eq!(with("'@'", &json!(["a"])), Err(Unfit::Type("a list")));
    }

    #[test]
    fn quotes_that_are_there_hold() {
        let sql = |text: &str| with(text, &json!(EVIL)).unwrap();
        assert_eq!(sql("a = @"), "a = 'x'' OR 1=1 --'");
        assert_eq!(sql("a = '@'"), "a = 'x'' OR 1=1 --'");
        assert_eq!(sql("a LIKE '%@%' OR b = @"), "a LIKE '%x'' OR 1=1 --%' OR b = 'x'' OR 1=1 --'");
        assert_eq!(sql("'it''s @'"), "'it''s x'' OR 1=1 --'");
        assert_eq!(sql("'\\@'"), "'\\x'' OR 1=1 --'");
        assert_eq!(sql("\"@\""), "\"x' OR 1=1 --\"");
        assert_eq!(with("\"a@\"", &json!("b\" c")).unwrap(), "\"ab\"\" c\"");
        assert_eq!(with("`@`", &json!("b` c")).unwrap(), "`b`` c`");
        assert_eq!(with("E'@'", &json!("\\' x")).unwrap(), "E'\\\\'' x'");
        assert_eq!(sql("E'a\\'@'"), "E'a\\'x'' OR 1=1 --'");
        assert_eq!(sql("/* it's */ @"), "/* it's */ 'x'' OR 1=1 --'");
        assert_eq!(sql("-- it's\n@"), "-- it's\n'x'' OR 1=1 --'");
        assert_eq!(sql("/* /* ' */ */ @"), "/* /* ' */ */ 'x'' OR 1=1 --'");
    }

    #[test]
    fn literals_do_not_run_into_what_is_beside_them() {
        let sql = |text: &str| with(text, &json!("v")).unwrap();
        assert_eq!(sql("E@"), "E 'v'");
        assert_eq!(sql("U&@"), "U& 'v'");
        assert_eq!(sql("@@"), "'v' 'v'");
        assert_eq!(sql("'a'@'b'"), "'a' 'v' 'b'");
        assert_eq!(sql("concat(@,@)"), "concat('v','v')");
    }

    #[test]
    fn where_no_quoting_helps_texts_are_refused() {
        for text in ["$$ @ $$", "$a$@$a$", "q'[@]'", "U&'@'", "x'@'", "/*! @ */", "E'\\@'"] {
            let refused = with(text, &json!("v"));
            assert!(matches!(refused, Err(Unfit::Place(_))), "{text}: {refused:?}");
        }
        assert_eq!(with("-- @\n1", &json!("a\nb")), Err(Unfit::Place("a comment")));
        assert_eq!(with("/* @ */", &json!("*/")), Err(Unfit::Place("a comment")));
        assert_eq!(with("-- seed @\n1", &json!("a b")).unwrap(), "-- seed a b\n1");
        assert_eq!(with("$$ @ $$", &json!(1)).unwrap(), "$$ 1 $$");
    }
}
