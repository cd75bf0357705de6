//! GitHub's search string, parsed as far as slicing needs it: words, quotes and qualifiers, and the ranges
//! of `stars:` and `created:`.

use serde::{Deserialize, Serialize};

use super::error::GithubError;
use super::time;

/// A search string with `stars:` and `created:` parsed as ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// All other words, as they were written.
    rest: Vec<String>,
    pub(super) stars: Bounds,
    pub(super) created: Bounds,
}

/// The inclusive ends of a range of stars, or of seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Bounds {
    pub(super) low: Option<i64>,
    pub(super) high: Option<i64>,
}

impl Bounds {
    pub(super) fn new(low: Option<i64>, high: Option<i64>) -> Self {
        Self { low, high }
    }

    fn and(self, other: Self) -> Self {
        let low = self.low.max(other.low);
        let high = match (self.high, other.high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { low, high }
    }

    fn is_empty(self) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if low > high)
    }

    /// The qualifier with values written by `show`; none for a range without ends.
    fn qualifier(self, name: &str, show: impl Fn(i64) -> String) -> Option<String> {
        Some(match (self.low, self.high) {
            (None, None) => return None,
            (Some(low), None) => format!("{name}:>={}", show(low)),
            (None, Some(high)) => format!("{name}:<={}", show(high)),
            // A single second is also written as a range, because GitHub might read a time as its whole
            // day.
            (Some(low), Some(high)) if low == high && name == "stars" => {
                format!("{name}:{}", show(low))
            }
            (Some(low), Some(high)) => format!("{name}:{}..{}", show(low), show(high)),
        })
    }
}

/// A word of the string, and where it begins, in characters from 1.
struct Word<'a> {
    text: &'a str,
    at: usize,
}

impl Query {
    /// Parses a search string: `language:Python fork:false stars:>1000`.
    ///
    /// Days of `created:` are days in UTC, and count as a whole: `>2021-12-31` begins with
    /// 2022. Qualifiers with `-` before them stay in the string as they are.
    ///
    /// # Errors
    /// [`GithubErrorKind::InvalidQuery`](super::GithubErrorKind::InvalidQuery) with the place
    /// of the problem: an empty string, a quote without its end, a `stars:` or `created:` that is not a
    /// range or follows `NOT` or `OR`, ranges that exclude each other.
    pub fn parse(text: &str) -> Result<Self, GithubError> {
        let words = words(text)?;
        if words.is_empty() {
            return Err(GithubError::invalid("the search string is empty"));
        }
        let mut query =
            Self { rest: Vec::new(), stars: Bounds::default(), created: Bounds::default() };
        for (i, word) in words.iter().enumerate() {
            let (name, value) = match word.text.split_once(':') {
                Some((name, value)) if !name.contains('"') => (name.to_lowercase(), value),
                _ => (String::new(), ""),
            };
            let (range, parse): (&mut Bounds, fn(&str) -> Option<Bounds>) = match name.as_str() {
                "stars" => (&mut query.stars, stars_range),
                "created" => (&mut query.created, created_range),
                _ => {
                    query.rest.push(word.text.to_string());
                    continue;
                }
            };
            let wrong = |why: &str| {
                let place = format!("`{}` at character {}", word.text, word.at);
                GithubError::invalid(format!("{place} {why}"))
            };
            let before = i.checked_sub(1).map(|i| words[i].text);
            let after = words.get(i + 1).map(|word| word.text);
            if before == Some("NOT") {
                return Err(wrong(&format!("follows NOT; write -{name}: to exclude a range")));
            }
            if before == Some("OR") || after == Some("OR") {
                return Err(wrong("is joined with OR, which cannot be searched completely"));
            }
            let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
            let bounds = parse(value).ok_or_else(|| {
                wrong(match name.as_str() {
                    "stars" => "is not a range of stars, such as stars:>1000 or stars:10..50",
                    _ => {
                        "is not a range of dates, such as created:>2020-01-31 or \
                         created:2020-01-01T00:00:00Z..2020-06-30T12:00:00Z"
                    }
                })
            })?;
            *range = range.and(bounds);
            if range.is_empty() {
                return Err(wrong("matches nothing: the range is empty"));
            }
        }
        Ok(query)
    }

    /// The search string with other ranges.
    pub(super) fn with(&self, stars: Bounds, created: Bounds) -> String {
        let mut words = self.rest.clone();
        words.extend(stars.qualifier("stars", |value| value.to_string()));
        words.extend(created.qualifier("created", time::format));
        words.join(" ")
    }
}

/// The string's words; white space in quotes belongs to a word.
fn words(text: &str) -> Result<Vec<Word<'_>>, GithubError> {
    let mut words = Vec::new();
    let mut start: Option<(usize, usize)> = None;
    let (mut quote, mut escaped) = (None, false);
    for (at, (byte, c)) in text.char_indices().enumerate() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote.is_some() => escaped = true,
            '"' => quote = if quote.is_some() { None } else { Some(at + 1) },
            c if c.is_whitespace() && quote.is_none() => {
                if let Some((from, at)) = start.take() {
                    words.push(Word { text: &text[from..byte], at });
                }
                continue;
            }
            _ => {}
        }
        start.get_or_insert((byte, at + 1));
    }
    if let Some(at) = quote {
        let message = format!("the quote at character {at} of the search string is never closed");
        return Err(GithubError::invalid(message));
    }
    if let Some((from, at)) = start {
        words.push(Word { text: &text[from..], at });
    }
    Ok(words)
}

/// The range of one value: a number, a second, or all seconds of a day.
type Span = (i64, i64);

/// The largest accepted number of stars, far above that of any repository.
const MOST_STARS: i64 = 1_000_000_000_000;

fn stars_range(text: &str) -> Option<Bounds> {
    range(text, &|text| {
        let right = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let value = text.parse().ok().filter(|value| right && *value <= MOST_STARS)?;
        Some((value, value))
    })
}

fn created_range(text: &str) -> Option<Bounds> {
    range(text, &|text| match time::parse_date(text) {
        Some(start) => Some((start, start + 86_400 - 1)),
        None => time::parse_time(text).map(|second| (second, second)),
    })
}

/// All forms that GitHub documents: `>N`, `>=N`, `<N`, `<=N`, `N`, `N..M`, `N..*`, `*..M`.
fn range(text: &str, value: &dyn Fn(&str) -> Option<Span>) -> Option<Bounds> {
    if let Some(text) = text.strip_prefix(">=") {
        return Some(Bounds::new(Some(value(text)?.0), None));
    }
    if let Some(text) = text.strip_prefix('>') {
        return Some(Bounds::new(Some(value(text)?.1.checked_add(1)?), None));
    }
    if let Some(text) = text.strip_prefix("<=") {
        return Some(Bounds::new(None, Some(value(text)?.1)));
    }
    if let Some(text) = text.strip_prefix('<') {
        return Some(Bounds::new(None, Some(value(text)?.0.checked_sub(1)?)));
    }
    let Some((low, high)) = text.split_once("..") else {
        return value(text).map(|(low, high)| Bounds::new(Some(low), Some(high)));
    };
    let low = if low == "*" { None } else { Some(value(low)?.0) };
    let high = if high == "*" { None } else { Some(value(high)?.1) };
    // `*..*` is not documented, and has no effect.
    (low.is_some() || high.is_some()).then_some(Bounds::new(low, high))
}
