//! The words of a text of SQL and their places, for errors that name one without its place.

use std::ops::Range;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

/// A name or keyword in a text of SQL.
#[derive(Debug)]
pub(super) struct SqlWord {
    /// Without quotes, in small letters if it has none.
    pub(super) name: String,
    /// As it is written, without quotes.
    pub(super) written: String,
    /// True if it is in quotes.
    pub(super) quoted: bool,
    /// Its bytes, quotes included.
    pub(super) at: Range<usize>,
    /// True if a bracket follows directly.
    pub(super) called: bool,
    /// True if it names a value: it follows `AS`.
    alias: bool,
    /// The name before its dot.
    qualifier: Option<String>,
    /// True if it is a keyword of SQL, in any role.
    pub(super) keyword: bool,
}

/// The words of `sql` in their order; none if the text is not SQL.
pub(super) fn words(sql: &str) -> Vec<SqlWord> {
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
        let name = |w: &datafusion::sql::sqlparser::tokenizer::Word| match w.quote_style {
            Some(_) => w.value.clone(),
            None => w.value.to_lowercase(),
        };
        let qualifier = match (before(1), before(2)) {
            (Some(Token::Period), Some(Token::Word(table))) => Some(name(table)),
            _ => None,
        };
        words.push(SqlWord {
            name: name(word),
            written: word.value.clone(),
            quoted: word.quote_style.is_some(),
            at: start..start + length,
            called: matches!(next, Some(Token::LParen)),
            alias: matches!(before(1), Some(Token::Word(w)) if w.keyword == Keyword::AS),
            qualifier,
            keyword: word.keyword != Keyword::NoKeyword,
        });
    }
    words
}

impl SqlWord {
    /// The word that names the column `name` of `table`, of those that may.
    pub(super) fn column<'a>(
        words: &'a [SqlWord],
        name: &str,
        table: Option<&str>,
    ) -> Option<&'a SqlWord> {
        let named = |w: &&SqlWord| w.name == name && !w.called && !w.alias;
        let qualified = |w: &&SqlWord| table.is_some() && w.qualifier.as_deref() == table;
        let of_table = words.iter().find(|w| named(w) && qualified(w));
        of_table.or_else(|| words.iter().find(named))
    }

    /// The word that calls the function `name`.
    pub(super) fn function<'a>(words: &'a [SqlWord], name: &str) -> Option<&'a SqlWord> {
        words.iter().find(|w| w.called && w.name.eq_ignore_ascii_case(name))
    }

    /// The word that names the table `name`.
    pub(super) fn table<'a>(words: &'a [SqlWord], name: &str) -> Option<&'a SqlWord> {
        let mut after = words.windows(2).filter(|pair| pair[1].name == name);
        let reads = |w: &SqlWord| matches!(w.name.as_str(), "from" | "join");
        let found = after.clone().find(|pair| reads(&pair[0])).or_else(|| after.next());
        found.map(|pair| &pair[1])
    }
}

/// Where the lines of a text begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Self { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The byte at a place that counts lines and characters from 1.
    pub(super) fn offset(&self, place: Location) -> usize {
        let count = |n: u64| usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(count(place.line)) else { return self.text.len() };
        let line = &self.text[*start..];
        line.char_indices().nth(count(place.column)).map_or(self.text.len(), |(at, _)| start + at)
    }
}
