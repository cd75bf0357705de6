//! A rating: one rater's answer to one question about one data point.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RatingAnswer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// The rater cannot decide.
    Unsure,
}

impl RatingAnswer {
    /// All answers, in the order of the columns that count them.
    pub const ALL: [Self; 3] = [Self::Yes, Self::No, Self::Unsure];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unsure => "unsure",
        }
    }

    /// The answer that people and spreadsheets write as `y`, `Yes`, `TRUE` or `1`; `None` for a
    /// blank.
    ///
    /// # Errors
    /// If the text is not an answer.
    pub fn parse(text: &str) -> Result<Option<Self>, NoAnswer> {
        match text.trim().to_lowercase().as_str() {
            "" => Ok(None),
            "y" | "yes" | "true" | "1" => Ok(Some(Self::Yes)),
            "n" | "no" | "false" | "0" => Ok(Some(Self::No)),
            "u" | "unsure" | "?" => Ok(Some(Self::Unsure)),
            _ => Err(NoAnswer),
        }
    }

    /// Its label for measures of agreement.
    pub(super) fn label(self) -> usize {
        self as usize
    }
}

/// A text that is not an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAnswer;

/// The current rating of a data point and a question, from the last line about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rating {
    /// The answer; none if it was withdrawn, or if there is only a note.
    pub answer: Option<RatingAnswer>,
    /// A note; empty if there is none.
    pub note: String,
    /// The time, as in the file (RFC 3339 in UTC); empty if the file has none.
    pub time: String,
}

impl Rating {
    /// True if nothing is left because it was withdrawn.
    pub fn is_empty(&self) -> bool {
        self.answer.is_none() && self.note.is_empty()
    }
}

/// The ratings of one rater: by data point, then by question.
pub type RaterAnswers = BTreeMap<String, BTreeMap<String, Rating>>;

/// A line of a file of ratings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatingEvent {
    /// The data point.
    pub id: String,
    /// The name of the question.
    pub question: String,
    /// The answer; null withdraws the previous one.
    #[serde(default)]
    pub answer: Option<String>,
    /// A note.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The time, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_people_and_spreadsheets_are_answers() {
        for (text, answer) in [
            ("y", RatingAnswer::Yes),
            (" Yes ", RatingAnswer::Yes),
            ("TRUE", RatingAnswer::Yes),
            ("1", RatingAnswer::Yes),
            ("N", RatingAnswer::No),
            ("False", RatingAnswer::No),
            ("0", RatingAnswer::No),
            ("u", RatingAnswer::Unsure),
            ("?", RatingAnswer::Unsure),
        ] {
            assert_eq!(RatingAnswer::parse(text), Ok(Some(answer)), "{text}");
        }
        assert_eq!(RatingAnswer::parse(" \t"), Ok(None));
        for bad in ["x", "maybe", "2", "yn", "-", "y\u{200b}", "null"] {
            assert_eq!(RatingAnswer::parse(bad), Err(NoAnswer), "{bad}");
        }
        for answer in RatingAnswer::ALL {
            assert_eq!(RatingAnswer::parse(answer.word()), Ok(Some(answer)));
        }
    }
}
