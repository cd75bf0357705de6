//! Explains errors of SQL: the mistake, its place, and a suggestion.
//!
//! DataFusion reports mistakes often without a place, and suggests names by spelling alone. Here
//! the word is looked up in the text, and suggestions come from the columns, functions and tables
//! in scope.

use std::ops::Range;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer, Word};

use galeras_operator::{ArgError, plain_message};
use galeras_workflow::code::Code;
use galeras_workflow::{did_you_mean, quote};

/// A text of SQL, its place, and the names in scope.
#[derive(Clone, Copy)]
pub struct SqlText<'a> {
    /// The text.
    pub sql: &'a str,
    /// The argument that holds it: a path below `with:`.
    pub path: &'a str,
    /// Knows the functions.
    pub session: &'a SessionContext,
    /// The columns in scope, where they are known; else those that DataFusion names.
    pub columns: &'a [&'a str],
    /// The tables in scope.
    pub tables: &'a [&'a str],
}

/// Names that other dialects and Python have for functions, which no edit of letters finds.
const OTHER_NAMES: [(&str, &str); 4] =
    [("len", "length"), ("std", "stddev"), ("size", "length"), ("ifnull", "coalesce")];

/// Words of a query that begin its parts, which may be misspelt.
const CLAUSES: [&str; 15] = [
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "JOIN", "LEFT", "INNER",
    "UNION", "DISTINCT", "BETWEEN", "AND", "OFFSET",
];

/// The error of DataFusion as a mistake in the text, with the word it is about and a suggestion.
pub fn explain(error: &DataFusionError, text: &SqlText<'_>) -> ArgError {
    let words = words(text.sql);
    let root = error.find_root();
    match root {
        DataFusionError::SchemaError(inner, _) => match inner.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let table = field.relation.as_ref().map(|table| table.table());
                let valid: Vec<&str> = valid_fields.iter().map(|c| c.name.as_str()).collect();
                let known = if text.columns.is_empty() { &valid } else { text.columns };
                return unknown_column(text, &words, (&field.name, table), known);
            }
            SchemaError::AmbiguousReference { field } => {
                let name = quote(&field.name);
                let (message, help) = match text.tables {
                    [] | [_] => (
                        format!("several columns are called {name}"),
                        "give one of them another name with AS".to_owned(),
                    ),
                    [example, ..] => (
                        format!("{name} is a column of several tables"),
                        format!("write the table before it, as in `{example}.{}`", field.name),
                    ),
                };
                let error = ArgError::new(text.path, Code::Sql, message).help(help);
                return at_word(error, SqlWord::column(&words, &field.name, None));
            }
            _ => {}
        },
        DataFusionError::SQL(parser, _) => return syntax(parser, text, &words),
        _ => {}
    }
    let message = plain_message(error);
    if let Some(name) = between(&message, "Invalid function '", "'") {
        return unknown_function(text, &words, name);
    }
    table(&message, text, &words)
        .or_else(|| grouping(&message, text, &words))
        .or_else(|| arguments(&message, text, &words))
        .unwrap_or_else(|| ArgError::new(text.path, Code::Sql, message))
}

/// The same error, placed at this word of the argument if it was found.
fn at_word(error: ArgError, word: Option<&SqlWord>) -> ArgError {
    match word {
        Some(word) => error.word(word.at.clone()),
        None => error,
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    rest.find(after).map(|end| &rest[..end])
}

/// A column as SQL names it: with quotes if it has capitals or signs.
fn written(column: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match column.chars().all(plain) && !column.starts_with(|c: char| c.is_ascii_digit()) {
        true => column.to_owned(),
        false => format!("\"{}\"", column.replace('"', "\"\"")),
    }
}

fn unknown_column(
    text: &SqlText<'_>,
    words: &[SqlWord],
    (name, table): (&str, Option<&str>),
    known: &[&str],
) -> ArgError {
    let word = SqlWord::column(words, name, table);
    let near = did_you_mean(name, known.iter().copied());
    let error = ArgError::unknown_column(text.path, name, known.iter().copied());
    let mut error = at_word(error, word);
    let is_capital = near.is_some_and(|near| near.to_lowercase() == name);
    if let Some(word) = word.filter(|word| word.compared && !word.quoted && !is_capital) {
        let (value, comparison) = as_text(text.sql, words, word);
        let columns = error.help.take().unwrap_or_default();
        let help = match near {
            Some(_) => format!("{columns} A text is written `{comparison}`"),
            None => format!("a text is written `{comparison}`; {columns}"),
        };
        let error = error.help(help);
        return if near.is_some() { error } else { error.instead(value) };
    }
    if let (Some(near), Some(word)) = (near, word) {
        let meant = written(near);
        if near != meant {
            let why = match !word.quoted && near.to_lowercase() == name {
                true => "names with capitals need double quotes: ",
                false => "",
            };
            error = error.help(format!("{why}write `{meant}`"));
        }
        return error.instead(meant);
    }
    if word.is_some_and(|word| word.quoted) {
        let text = format!("'{}'", name.replace('\'', "''"));
        error = error.help(format!("double quotes are for columns; a text is written {text}"));
    }
    error
}

/// The word as a text of SQL, alone and with the column it is compared with.
fn as_text(sql: &str, words: &[SqlWord], word: &SqlWord) -> (String, String) {
    let value = format!("'{}'", word.written);
    let before = words.iter().rfind(|before| before.at.end <= word.at.start);
    let sign = before.map(|before| sql[before.at.end..word.at.start].trim());
    let comparison = match (before, sign) {
        (Some(column), Some(sign @ ("=" | "==" | "<>" | "!="))) => {
            format!("{} {sign} {value}", &sql[column.at.clone()])
        }
        _ => value.clone(),
    };
    (value, comparison)
}

fn unknown_function(text: &SqlText<'_>, words: &[SqlWord], name: &str) -> ArgError {
    let state = text.session.state();
    let mut known: Vec<&str> = state
        .scalar_functions()
        .keys()
        .chain(state.aggregate_functions().keys())
        .chain(state.window_functions().keys())
        .map(String::as_str)
        .collect();
    known.sort_unstable();
    known.dedup();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours);
    let near = other.filter(|ours| known.contains(ours));
    let near = near.or_else(|| did_you_mean(name, known.iter().copied()));
    let message = format!("there is no function {}", quote(name));
    let error = ArgError::new(text.path, Code::UnknownFunction, message);
    let error = at_word(error, SqlWord::function(words, name));
    // A column that is called like a function.
    if text.columns.contains(&name) {
        let help = format!("`{name}` is a column: write it without brackets");
        return error.help(help);
    }
    match near {
        Some(near) => error.help(format!("did you mean {}?", quote(near))).instead(near),
        None => error.help("docs/functions.md lists ours, DataFusion's SQL reference the others"),
    }
}

/// A table that is not among the inputs.
fn table(message: &str, text: &SqlText<'_>, words: &[SqlWord]) -> Option<ArgError> {
    let name = between(message, "table '", "' not found")?;
    let name = name.strip_prefix("datafusion.").unwrap_or(name);
    let name = name.strip_prefix("public.").unwrap_or(name);
    let message = format!("there is no table {}", quote(name));
    let error = ArgError::new(text.path, Code::UnknownTable, message);
    let error = at_word(error, SqlWord::table(words, name));
    let near = did_you_mean(name, text.tables.iter().copied());
    Some(match (near, text.tables) {
        (_, []) => error.help("the step has no input; add `from`"),
        (Some(near), _) => error.help(format!("did you mean {}?", quote(near))).instead(near),
        (None, [only]) => error.help(format!("the input is called `{only}`")).instead(*only),
        (None, tables) => error.help(format!("the tables are {}", tables.join(", "))),
    })
}

/// A column that is neither grouped by nor aggregated.
fn grouping(message: &str, text: &SqlText<'_>, words: &[SqlWord]) -> Option<ArgError> {
    let column = between(message, "column \"", "\" must appear in the GROUP BY clause")?;
    let (table, name) = match column.rsplit_once('.') {
        Some((table, name)) => (Some(table), name),
        None => (None, column),
    };
    let name = name.trim_matches('"');
    let message =
        format!("{} is neither in GROUP BY nor inside of an aggregate function", quote(name));
    let help = format!("add it to GROUP BY, or take one value of each group: `max({name})`");
    let error = ArgError::new(text.path, Code::Sql, message).help(help);
    Some(at_word(error, SqlWord::column(words, name, table)))
}

/// A function that does not take these arguments.
fn arguments(message: &str, text: &SqlText<'_>, words: &[SqlWord]) -> Option<ArgError> {
    let call = between(message, "argument types '", "'. ")
        .or_else(|| between(message, "No function matches '", "'. "));
    let name = match call {
        Some(call) => call.split('(').next()?,
        None => between(message, "Function '", "'").or_else(|| between(message, "'", "'"))?,
    };
    let word = SqlWord::function(words, name)?;
    let shown = match call {
        Some(call) => format!("the function {} does not take {}", quote(name), &call[name.len()..]),
        None => message.lines().next().unwrap_or(message).to_owned(),
    };
    let error = ArgError::new(text.path, Code::Sql, shown).word(word.at.clone());
    let forms = message.split_once("Candidate functions:").map(|(_, forms)| forms);
    let forms: Vec<&str> = forms.unwrap_or("").lines().map(str::trim).collect();
    let forms: Vec<&str> = forms.into_iter().filter(|form| !form.is_empty()).take(4).collect();
    Some(if forms.is_empty() {
        error
    } else {
        error.help(format!("it takes {}", forms.join(" or ")))
    })
}

/// A syntax error.
fn syntax(error: &ParserError, text: &SqlText<'_>, words: &[SqlWord]) -> ArgError {
    let message = match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => "the SQL is nested too deeply",
    };
    let (said, place) = match message.rsplit_once(" at Line: ") {
        Some((said, place)) => (said, location(place)),
        None => (message, None),
    };
    let at = place.map(|place| Lines::new(text.sql).offset(place)).unwrap_or(text.sql.len());
    let said = said.strip_prefix("sql parser error: ").unwrap_or(said).trim_end_matches(',');
    let (wanted, found) = match said.strip_prefix("Expected: ").map(|s| s.split_once(", found: ")) {
        Some(Some((wanted, found))) => (Some(wanted), found),
        _ => (None, ""),
    };
    let here = words.iter().position(|w| w.at.start >= at).unwrap_or(words.len());
    let before = here.checked_sub(1).and_then(|i| words.get(i));
    let fail = |message: String| ArgError::new(text.path, Code::SqlSyntax, message);
    // A misspelt keyword is taken for a name, and the next word makes no sense.
    let around = [before, words.get(here).filter(|w| w.at.start == at)];
    for word in around.into_iter().flatten().filter(|w| !w.quoted && !w.keyword && !w.called) {
        let column = text.columns.iter().any(|c| c.eq_ignore_ascii_case(&word.name));
        let near = did_you_mean(&word.name, CLAUSES).filter(|_| word.name.len() > 2 && !column);
        if let Some(near) = near {
            let message = format!("{} is not a keyword of SQL", quote(&word.written));
            let help = format!("did you mean {}?", quote(near));
            return fail(message).help(help).word(word.at.clone()).instead(near);
        }
    }
    // `WHERE GROUP BY`: the condition is missing, and GROUP was taken for a column.
    if found == "BY"
        && let Some(word) = before.filter(|w| w.keyword)
    {
        let clause = format!("{} BY", word.written);
        return fail(format!("something is missing before {}", quote(&clause)))
            .help("write what the part of the query before it needs, or leave that part out")
            .word(word.at.start..at + found.len());
    }
    let wanted = wanted.map(str::to_owned);
    match wanted {
        Some(wanted) if found == "EOF" => {
            let end = text.sql.trim_end().len();
            let last = text.sql[..end].char_indices().next_back().map_or(0, |(i, _)| i);
            fail(format!("the SQL ends where {} should come", article(&wanted))).word(last..end)
        }
        Some(wanted) => {
            let width = found.len().max(1);
            let end = text.sql.get(at..at + width).map_or(at, |_| at + width);
            let message = format!("{} stands where {} should", quote(found), article(&wanted));
            let error = fail(message).word(at..end);
            match found.starts_with(['“', '”', '„', '‘', '’']) {
                true => error.help("a word processor made this quote: a text is written 'a'"),
                false => error,
            }
        }
        None => {
            let mut chars = said.chars();
            let lower = chars.next().map(|c| c.to_lowercase().chain(chars).collect::<String>());
            let error = fail(lower.unwrap_or_else(|| "the SQL cannot be read".to_owned()));
            let width = text.sql[at..].chars().next().map_or(0, char::len_utf8);
            let error = if width > 0 { error.word(at..at + width) } else { error };
            match said.contains("Unterminated") {
                true => error.help("a quote is opened here and never closed"),
                false => error,
            }
        }
    }
}

/// `an expression`; what is a sign or a list of choices stays as it is.
fn article(wanted: &str) -> String {
    let first = wanted.chars().next();
    match first {
        Some('a' | 'e' | 'i' | 'o' | 'u')
            if !wanted.starts_with("an ") && !wanted.contains(' ') =>
        {
            format!("an {wanted}")
        }
        _ => match wanted {
            "end of statement" => "the end of the query".to_owned(),
            _ => wanted.to_owned(),
        },
    }
}

/// `1, Column: 12` as a place.
fn location(text: &str) -> Option<Location> {
    let (line, column) = text.split_once(", Column: ")?;
    let digits = column.chars().take_while(char::is_ascii_digit).collect::<String>();
    Some(Location { line: line.trim().parse().ok()?, column: digits.parse().ok()? })
}

/// A name or keyword in a text of SQL.
#[derive(Debug)]
struct SqlWord {
    /// Without quotes, in small letters if it has none.
    name: String,
    /// As it is written, without quotes.
    written: String,
    /// True if it is in quotes.
    quoted: bool,
    /// Its bytes, quotes included.
    at: Range<usize>,
    /// True if a bracket follows directly.
    called: bool,
    /// True if it names a value: it follows `AS`.
    alias: bool,
    /// True if something is compared with it: it follows a sign or `LIKE`, or is in the list of `IN`.
    compared: bool,
    /// The name before its dot.
    qualifier: Option<String>,
    /// True if it is a keyword of SQL, in any role.
    keyword: bool,
}

/// The words of `sql` in their order; none if the text is not SQL.
fn words(sql: &str) -> Vec<SqlWord> {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location() else {
        return Vec::new();
    };
    let lines = Lines::new(sql);
    let tokens: Vec<_> =
        tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    let mut words: Vec<SqlWord> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let Token::Word(word) = &token.token else { continue };
        let before =
            |back: usize| i.checked_sub(back).and_then(|i| tokens.get(i)).map(|t| &t.token);
        let next = tokens.get(i + 1).map(|t| &t.token);
        let end = match tokens.get(i + 1) {
            Some(next) => lines.offset(next.span.start),
            None => sql.len(),
        };
        let start = lines.offset(token.span.start);
        let text = sql.get(start..end).unwrap_or("").trim_end();
        let length = match word.quote_style {
            Some(_) => text.len(),
            None => text.len().min(word.value.len()),
        };
        let name = |w: &Word| match w.quote_style {
            Some(_) => w.value.clone(),
            None => w.value.to_lowercase(),
        };
        let qualifier = match (before(1), before(2)) {
            (Some(Token::Period), Some(Token::Word(table))) => Some(name(table)),
            _ => None,
        };
        let mut earlier = tokens[..i].iter().rev().map(|t| &t.token);
        let compared = match before(1) {
            Some(Token::Eq | Token::DoubleEq | Token::Neq) => true,
            Some(Token::Word(w)) => matches!(w.keyword, Keyword::LIKE | Keyword::ILIKE),
            _ => {
                let bracket = earlier.find(|t| matches!(t, Token::LParen | Token::RParen));
                matches!(bracket, Some(Token::LParen))
                    && matches!(earlier.next(), Some(Token::Word(w)) if w.keyword == Keyword::IN)
            }
        };
        words.push(SqlWord {
            name: name(word),
            written: word.value.clone(),
            quoted: word.quote_style.is_some(),
            at: start..start + length,
            called: matches!(next, Some(Token::LParen)),
            alias: matches!(before(1), Some(Token::Word(w)) if w.keyword == Keyword::AS),
            compared,
            qualifier,
            keyword: word.keyword != Keyword::NoKeyword,
        });
    }
    words
}

impl SqlWord {
    /// The word that names the column `name` of `table`, of those that may.
    fn column<'a>(words: &'a [SqlWord], name: &str, table: Option<&str>) -> Option<&'a SqlWord> {
        let named = |w: &&SqlWord| w.name == name && !w.called && !w.alias;
        let qualified = |w: &&SqlWord| table.is_some() && w.qualifier.as_deref() == table;
        let of_table = words.iter().find(|w| named(w) && qualified(w));
        of_table.or_else(|| words.iter().find(named))
    }

    /// The word that calls the function `name`.
    fn function<'a>(words: &'a [SqlWord], name: &str) -> Option<&'a SqlWord> {
        words.iter().find(|w| w.called && w.name.eq_ignore_ascii_case(name))
    }

    /// The word that names the table `name`.
    fn table<'a>(words: &'a [SqlWord], name: &str) -> Option<&'a SqlWord> {
        let mut after = words.windows(2).filter(|pair| pair[1].name == name);
        let reads = |w: &SqlWord| matches!(w.name.as_str(), "from" | "join");
        let found = after.clone().find(|pair| reads(&pair[0])).or_else(|| after.next());
        found.map(|pair| &pair[1])
    }
}

/// Where the lines of a text begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Self { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The byte at a place that counts lines and characters from 1.
    fn offset(&self, place: Location) -> usize {
        let count = |n: u64| usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(count(place.line)) else { return self.text.len() };
        let line = &self.text[*start..];
        line.char_indices().nth(count(place.column)).map_or(self.text.len(), |(at, _)| start + at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::MemTable;

    use super::*;
    use crate::session::session;

    /// The message, the marked words, the help.
    async fn told(sql: &str) -> (String, String, String) {
        let session = session(1);
        let columns = ["size", "path", "Repo"];
        let schema = Arc::new(Schema::new(vec![
            Field::new("size", DataType::Int64, true),
            Field::new("path", DataType::Utf8, true),
            Field::new("Repo", DataType::Utf8, true),
        ]));
        for table in ["input", "other"] {
            let data = MemTable::try_new(Arc::clone(&schema), vec![vec![]]).expect("a table");
            session.register_table(table, Arc::new(data)).expect("registered");
        }
        let error = session.sql(sql).await.expect_err(sql);
        let text = SqlText {
            sql,
            path: "query",
            session: &session,
            columns: &columns,
            tables: &["input", "other"],
        };
        let error = explain(&error, &text);
        let marked = error.word.clone().map_or("", |range| &sql[range]);
        (error.message, marked.to_string(), error.help.unwrap_or_default())
    }

    #[tokio::test]
    async fn the_word_is_marked_and_what_was_meant_is_said() {
        for (sql, marked, help) in [
            ("SELECT cuont(*) FROM input", "cuont", "did you mean `count`?"),
            ("SELECT len(path) FROM input", "len", "did you mean `length`?"),
            ("SELECT size,\n  sise AS x FROM input", "sise", "did you mean `size`?"),
            ("SELECT i.sise FROM input i", "sise", "did you mean `size`?"),
            ("SELECT size AS pth, pth FROM input", "pth", "did you mean `path`?"),
            (
                "SELECT Repo FROM input",
                "Repo",
                "names with capitals need double quotes: write `\"Repo\"`",
            ),
            ("SELECT size FROM inptu", "inptu", "did you mean `input`?"),
            ("SELECT size FRM input", "FRM", "did you mean `FROM`?"),
            ("SELECT size FROM input WEHRE size > 1", "WEHRE", "did you mean `WHERE`?"),
            ("SELECT size FROM input GRUOP BY size", "GRUOP", "did you mean `GROUP`?"),
            (
                "SELECT size FROM input WHERE path = \"a.py\"",
                "\"a.py\"",
                "double quotes are for columns; a text is written 'a.py'",
            ),
            (
                "SELECT size FROM input WHERE path = timeout",
                "timeout",
                "a text is written `path = 'timeout'`; the columns are size, path, Repo",
            ),
            (
                "SELECT size FROM input WHERE path IN ('a', timeout)",
                "timeout",
                "a text is written `'timeout'`; the columns are size, path, Repo",
            ),
            (
                "SELECT size FROM input WHERE path <> Sized AND path IN ('a')",
                "Sized",
                "did you mean `size`? A text is written `path <> 'Sized'`",
            ),
            (
                "SELECT size FROM input WHERE path IN ('a') AND timeout",
                "timeout",
                "the columns are size, path, Repo",
            ),
            (
                "SELECT size(path) FROM input",
                "size",
                "`size` is a column: write it without brackets",
            ),
        ] {
            let (message, word, said) = told(sql).await;
            assert_eq!((word.as_str(), said.as_str()), (marked, help), "{sql}: {message}");
        }
    }

    #[tokio::test]
    async fn other_mistakes_have_their_word_too() {
        for (sql, marked, words) in [
            ("SELECT path, count(*) FROM input GROUP BY size", "path", "neither in GROUP BY"),
            ("SELECT size FROM input WHERE\nGROUP BY size", "GROUP BY", "missing before"),
            ("SELECT size FROM input WHERE size >", ">", "the SQL ends"),
            ("SELECT size FROM input WHERE path = 'a", "'", "nterminated"),
            ("SELECT size FROM input, other", "size", "several tables"),
            ("SELECT (size FROM input", "FROM", "stands where"),
            ("SELECT size FROM input WHERE path = “a”", "“", "stands where"),
        ] {
            let (message, word, _) = told(sql).await;
            assert_eq!(word, marked, "{sql}: {message}");
            assert!(message.contains(words), "{sql}: {message}");
        }
    }
}
