//! Finds a word of a substituted value in the file, where expressions are longer or shorter than
//! their values.

use std::ops::Range;

use super::expr::{CLOSE, OPEN};
use super::node::Node;
use super::source::{Source, Span};

/// The place of `substituted[range]`, where `substituted` is the value of `node` with its
/// expressions replaced. A place within the value of an expression is that of the expression.
pub fn word_span(
    node: &Node,
    source: &Source,
    substituted: &str,
    range: Range<usize>,
) -> Option<Span> {
    let range = before_substitution(node.as_str()?, substituted, range)?;
    node.part(source.text(), range)
}

/// The range of the written value from which `range` of the substituted one comes.
fn before_substitution(
    written: &str,
    substituted: &str,
    range: Range<usize>,
) -> Option<Range<usize>> {
    if written == substituted {
        return Some(range);
    }
    // Texts between expressions are in both; between them are values here and expressions there. An
    // empty text at the end is at the end.
    let mut pairs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let (mut at, mut here) = (0, 0);
    loop {
        let open = written.get(at..)?.find(OPEN).map(|offset| at + offset);
        let literal = written.get(at..open.unwrap_or(written.len()))?;
        let found = match open {
            None => substituted.len().checked_sub(literal.len()).filter(|from| *from >= here)?,
            Some(_) if at == 0 => 0,
            Some(_) => here + substituted.get(here..)?.find(literal)?,
        };
        if !substituted.get(found..)?.starts_with(literal) {
            return None;
        }
        if at > 0 {
            let expression = written.get(..at)?.rfind(OPEN)?..at;
            pairs.push((here..found, expression));
        }
        here = found + literal.len();
        pairs.push((found..here, at..at + literal.len()));
        let Some(open) = open else { break };
        at = open + written.get(open..)?.find(CLOSE)? + CLOSE.len();
    }
    let is_text = |(in_value, in_file): &(Range<usize>, Range<usize>)| {
        written.get(in_file.clone()) == substituted.get(in_value.clone())
    };
    let place = |at: usize, end: bool| {
        let holds = |in_value: &Range<usize>| match end {
            true => in_value.start < at && at <= in_value.end,
            false => in_value.start <= at && at < in_value.end,
        };
        let pair = pairs.iter().find(|pair| holds(&pair.0));
        let pair = pair.or_else(|| pairs.iter().find(|p| (p.0.start..=p.0.end).contains(&at)))?;
        Some(match (is_text(pair), end) {
            (true, _) => pair.1.start + (at - pair.0.start),
            (false, true) => pair.1.end,
            (false, false) => pair.1.start,
        })
    };
    let start = place(range.start, false)?;
    let end = if range.is_empty() { start } else { place(range.end, true)? };
    (start <= end).then_some(start..end)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Diagnostics, load};

    /// The marked text of the file for `word` in the value under `q`, or after its expressions.
    fn marked(yaml: &str, values: &[(&str, &str)], word: &str) -> Option<(usize, String)> {
        let source = Source::new("f", yaml);
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        let node = node.get("q").unwrap();
        let mut value = node.as_str().unwrap().to_owned();
        for (expression, text) in values {
            value = value.replace(expression, text);
        }
        let at = value.find(word).unwrap();
        let span = word_span(node, &source, &value, at..at + word.len())?;
        Some((source.position(span.start).line, source.slice(span).to_owned()))
    }

    fn found(yaml: &str, word: &str) {
        let line = yaml[..yaml.find(word).unwrap()].lines().count().max(1);
        assert_eq!(marked(yaml, &[], word), Some((line, word.to_owned())), "{yaml:?}");
    }

    #[test]
    fn a_word_is_found_however_the_text_is_written() {
        found("q: SELECT x FROM y\n", "FROM");
        found("q: 'SELECT ''a'' FROM y'\n", "FROM");
        found("q: \"SELECT \\\"a\\\" \\u00e9\\t FROM y\"\n", "FROM");
        found("q: |\n  SELECT a,\n\n    b\n  FROM y\n", "FROM");
        found("q: |-\n    SELECT a\n      , b\n    FROM y", "FROM");
        found("q: >\n  SELECT a,\n  b\n\n  FROM y\n", "FROM");
        found("q: >-\n  SELECT a,\n  b  \n  FROM y\n", "FROM");
        found("q: | # a comment\n\n\n  SELECT a  \n  FROM y\n", "FROM");
        found("q: SELECT a\n  , b\n  FROM y\n", "FROM");
        found("q:\n  SELECT a\n\n  FROM y\n", "FROM");
        found("q: \"SELECT a\\\n  , b\n   FROM y\"\n", "FROM");
        found("q: 'SELECT a\n\n  FROM y'\n", "FROM");
        found("q: |\r\n  SELECT a\r\n  FROM y\r\n", "FROM");
        found("q: |\n  é ü\n  FROM y\n", "FROM");
    }

    #[test]
    fn equal_words_are_told_apart() {
        let yaml = "q: |\n  a AND\n  a AND b\n";
        let source = Source::new("f", yaml);
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        let node = node.get("q").unwrap();
        let second = node.as_str().unwrap().rfind("AND").unwrap();
        let span = node.part(yaml, second..second + 3).unwrap();
        assert_eq!(source.position(span.start).line, 3);
    }

    #[test]
    fn substituted_values_shift_nothing() {
        let yaml =
            "q: |\n  SELECT ${{ params.a }} AS x\n  WHERE y = ${{ params.b }}\n  GRUOP BY z\n";
        let values = [("${{ params.a }}", "'AS x'"), ("${{ params.b }}", "12345")];
        assert_eq!(marked(yaml, &values, "GRUOP"), Some((4, "GRUOP".into())));
        assert_eq!(marked(yaml, &values, "SELECT"), Some((2, "SELECT".into())));
        assert_eq!(marked(yaml, &values, "12345"), Some((3, "${{ params.b }}".into())));
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        assert_eq!(marked("a: &a SELECT x\nq: *a\n", &[], "x"), None);
    }

    #[test]
    fn a_place_between_characters_is_found_too() {
        let source = Source::new("f", "q: 'a b'\n");
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        let node = node.get("q").unwrap();
        assert_eq!(node.part(source.text(), 3..3), Some(Span::new(7, 7)));
        assert_eq!(node.part(source.text(), 0..0), Some(Span::new(4, 4)));
    }
}
