//! The verdict in an answer.

use serde_json::{Map, Value};

use galeras_workflow::quote;

/// The words of servers for an answer that ended at `max_tokens`.
const CUT_OFF: [&str; 2] = ["length", "max_tokens"];

/// The verdicts that a prompt allows. Each has a number, from 0.
#[derive(Clone, Debug)]
pub(super) enum Verdicts {
    /// Words, with those that count as yes.
    Choices { words: Vec<String>, positive: Vec<usize> },
    /// The whole numbers from `low` to `high`; those from `at_least` on count as yes.
    Scale { low: i64, high: i64, at_least: i64 },
}

impl Verdicts {
    /// The number of the verdict that is written as `text`.
    pub(super) fn parse(&self, text: &str) -> Option<usize> {
        match self {
            Self::Choices { words, .. } => {
                let text = text.to_lowercase();
                words.iter().position(|word| word.to_lowercase() == text)
            }
            Self::Scale { low, high, .. } => {
                let whole = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0)?;
                let within = (*low as f64..=*high as f64).contains(&whole);
                within.then(|| usize::try_from(whole as i64 - low).ok())?
            }
        }
    }

    /// The verdict as a value of a table: a word or a number.
    pub(super) fn value(&self, verdict: usize) -> Value {
        match self {
            Self::Choices { words, .. } => Value::from(words[verdict].as_str()),
            Self::Scale { low, .. } => Value::from(low + verdict as i64),
        }
    }

    /// The verdict as a text.
    pub(super) fn word(&self, verdict: usize) -> String {
        match self.value(verdict) {
            Value::String(word) => word,
            number => number.to_string(),
        }
    }

    /// The number on the scale.
    pub(super) fn score(&self, verdict: usize) -> Option<f64> {
        match self {
            Self::Choices { .. } => None,
            Self::Scale { low, .. } => Some((low + verdict as i64) as f64),
        }
    }

    /// True if it counts as yes.
    pub(super) fn is_positive(&self, verdict: usize) -> bool {
        match self {
            Self::Choices { positive, .. } => positive.contains(&verdict),
            Self::Scale { low, at_least, .. } => low + verdict as i64 >= *at_least,
        }
    }

    /// The verdicts, for a message.
    fn listed(&self) -> String {
        match self {
            Self::Choices { words, .. } => format!("one of {}", words.join(", ")),
            Self::Scale { low, high, .. } => format!("a whole number from {low} to {high}"),
        }
    }
}

/// The verdict for the other order of two candidates: the first two choices, exchanged.
pub(super) fn exchanged(verdict: usize) -> usize {
    match verdict {
        0 => 1,
        1 => 0,
        other => other,
    }
}

/// An answer without a verdict: the rule of the port `rejects`, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoVerdict {
    pub(super) rule: &'static str,
    pub(super) reason: String,
}

/// The verdict of an answer. A verdict counts only as the whole of the last line, or of a field of
/// a JSON object: a model repeats the question, and names verdicts that it does not give.
pub(super) fn verdict(
    answer: Option<&str>,
    finish_reason: &str,
    marker: &str,
    verdicts: &Verdicts,
) -> Result<usize, NoVerdict> {
    let none = |rule, reason: String| Err(NoVerdict { rule, reason });
    let Some(answer) = answer.filter(|answer| !answer.trim().is_empty()) else {
        return none("no_answer", "the answer is empty".into());
    };
    // `VERDICT: 1` may be the beginning of `VERDICT: 10`.
    if CUT_OFF.contains(&finish_reason) {
        let reason = "the answer was cut off at its most tokens: raise `max_tokens`";
        return none("truncated", reason.into());
    }
    let stated = json_field(answer, marker).or_else(|| stated(answer, marker));
    match stated.and_then(|text| verdicts.parse(&text)) {
        Some(verdict) => Ok(verdict),
        None => {
            let last = answer.lines().rev().map(str::trim).find(|line| !line.is_empty());
            let colon = if marker.is_empty() { String::new() } else { format!("`{marker}:` and ") };
            none(
                "no_verdict",
                format!(
                    "the last line is {}, not {colon}{}",
                    quote(last.unwrap_or_default()),
                    verdicts.listed()
                ),
            )
        }
    }
}

/// A text without the marks around it.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "*_`#>\"'()[]{}.,;:=!".contains(c))
}

/// The text after the marker in the last line, or the only line of an answer.
fn stated(answer: &str, marker: &str) -> Option<String> {
    let mut lines = answer.lines().rev().map(bare).filter(|line| !line.is_empty());
    let last = lines.next()?;
    let is_only = lines.next().is_none();
    let marked = last
        .get(..marker.len())
        .filter(|start| start.eq_ignore_ascii_case(marker))
        .map(|_| &last[marker.len()..])
        .filter(|rest| marker.is_empty() || !rest.starts_with(char::is_alphanumeric));
    marked.or(is_only.then_some(last)).map(|text| bare(text).to_string())
}

/// The field of the JSON object at the end of an answer.
fn json_field(answer: &str, field: &str) -> Option<String> {
    let end = answer.rfind('}')? + 1;
    let object = answer[..end]
        .match_indices('{')
        .find_map(|(at, _)| serde_json::from_str::<Map<String, Value>>(&answer[at..end]).ok())?;
    let (_, value) = object.iter().find(|(name, _)| name.eq_ignore_ascii_case(field))?;
    Some(match value {
        Value::String(text) => bare(text).to_string(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Verdicts {
        let words = ["yes", "no", "unsure"].map(str::to_string).to_vec();
        Verdicts::Choices { words, positive: vec![0] }
    }

    fn scale() -> Verdicts {
        Verdicts::Scale { low: -1, high: 10, at_least: 5 }
    }

    #[test]
    fn a_verdict_is_the_whole_of_the_last_line_or_of_a_field() {
        for (answer, wanted) in [
            ("It does.\nVERDICT: yes", Some("yes")),
            ("It does.\n\n**Verdict:** No.\n", Some("no")),
            ("<think>VERDICT: yes</think>\n`VERDICT: [[no]]`", Some("no")),
            ("Either VERDICT: yes\nor\n> VERDICT = **Unsure**", Some("unsure")),
            ("yes", Some("yes")),
            ("\"No.\"", Some("no")),
            ("{\"reason\": \"{it} does\", \"verdict\": \"no\"}", Some("no")),
            ("```json\n{\n  \"verdict\": \"yes\",\n  \"reason\": \"so\"\n}\n```", Some("yes")),
            ("I repeat: VERDICT: yes, or VERDICT: no", None),
            ("VERDICT: yes, or VERDICT: no", None),
            ("VERDICT: yes\nBut it may be wrong.", None),
            ("It is so.\nyes", None),
            ("VERDICT: yesterday", None),
            ("VERDICTyes", None),
            ("Verdict: not yes", None),
            ("{\"other\": \"yes\"}", None),
        ] {
            let found = verdict(Some(answer), "stop", "VERDICT", &choices());
            let found = found.ok().map(|verdict| choices().word(verdict));
            assert_eq!(found.as_deref(), wanted, "{answer}");
        }
        for (answer, wanted) in [
            ("VERDICT: 4", Some("4")),
            ("VERDICT: -1", Some("-1")),
            ("{\"verdict\": 10}", Some("10")),
            ("VERDICT: 7.0", Some("7")),
            ("VERDICT: 4.5", None),
            ("VERDICT: 11", None),
            ("VERDICT: 4/5", None),
            ("VERDICT: -2", None),
            ("VERDICT: nan", None),
        ] {
            let found = verdict(Some(answer), "", "VERDICT", &scale());
            let found = found.ok().map(|verdict| scale().word(verdict));
            assert_eq!(found.as_deref(), wanted, "{answer}");
        }
        let alone = verdict(Some("Thus:\n[[no]]"), "", "", &choices());
        assert_eq!(alone, Ok(1), "without a marker the last line is the verdict");
    }

    #[test]
    fn an_answer_without_a_verdict_has_its_reason() {
        for (answer, finish_reason, rule, reason) in [
            (None, "", "no_answer", "the answer is empty"),
            (Some(" \n"), "stop", "no_answer", "the answer is empty"),
            (
                Some("VERDICT: 1"),
                "length",
                "truncated",
                "the answer was cut off at its most tokens: raise `max_tokens`",
            ),
            (
                Some("VERDICT: 99"),
                "stop",
                "no_verdict",
                "the last line is `VERDICT: 99`, not `VERDICT:` and a whole number from -1 to 10",
            ),
        ] {
            let found = verdict(answer, finish_reason, "VERDICT", &scale());
            assert_eq!(found, Err(NoVerdict { rule, reason: reason.into() }));
        }
    }

    #[test]
    fn the_other_order_exchanges_two_choices() {
        assert_eq!([0, 1, 2].map(exchanged), [1, 0, 2]);
        let scale = scale();
        assert_eq!(
            (scale.score(0), scale.is_positive(5), scale.is_positive(6)),
            (Some(-1.0), false, true)
        );
    }
}
