//! The sections of a report, but for tables and data points.

use serde::{Deserialize, Serialize};

use crate::model::point::Labelled;

/// Prose in Markdown. HTML in it is shown as text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextBlock {
    /// The heading; without one, the text continues what is above it.
    pub title: String,
    /// The text.
    pub markdown: String,
}

/// Effects in sentences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FindingBlock {
    /// The heading.
    pub title: String,
    /// The effects.
    pub findings: Vec<EffectFinding>,
    /// Facts that they share: design, estimator, number of units. Markdown; may be empty.
    pub note: String,
}

/// An effect, and how sure it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EffectFinding {
    /// The finding as a sentence.
    pub sentence: String,
    /// The outcome: `codebleu`.
    pub outcome: String,
    /// The comparison: `few_shot against zero_shot`.
    pub contrast: String,
    /// The group that it holds for, empty if for all: `model = a`.
    pub group: String,
    /// Its status.
    pub status: FindingStatus,
    /// The reason why there is none.
    pub reason: String,
    /// The scale of the effect: `difference`, `odds_ratio`.
    pub measure: String,
    /// The effect.
    pub effect: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end of its interval.
    pub high: Option<f64>,
    /// The effect that would mean none: 0 for differences, 1 for ratios.
    pub null_value: Option<f64>,
    /// How often such intervals cover the truth: 0.95.
    pub level: Option<f64>,
    /// The p-value, adjusted for the number of tests.
    pub p_adjusted: Option<f64>,
    /// The number of units, or rows, that the estimate rests on.
    pub n: Option<u64>,
    /// The verdict in a word: `different`, `equivalent`, `trivial`, `inconclusive`.
    pub verdict: String,
}

/// The status of an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingStatus {
    /// There is an estimate.
    #[default]
    Estimated,
    /// The data do not allow one, for the reason given.
    Refused,
    /// The estimator answers another question.
    NotApplicable,
}

/// A picture with its source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FigureBlock {
    /// The heading; may be empty.
    pub title: String,
    /// The picture as SVG. It is shown as an image: nothing in it runs, loads or styles the page.
    pub svg: String,
    /// The same for a dark page. Without it, the picture lies on a light sheet.
    pub svg_dark: Option<String>,
    /// Its caption, in Markdown.
    pub caption: String,
    /// The same in words, for those who do not see it.
    pub alt: String,
    /// The step that it comes from.
    pub source: String,
    /// The name of its file when it is saved, without a suffix.
    pub file_name: String,
}

/// Where rows were lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttritionBlock {
    /// The heading.
    pub title: String,
    /// The unit of the numbers: `methods`.
    pub unit: String,
    /// The stages, in order.
    pub stages: Vec<AttritionStage>,
    /// A note in Markdown; may be empty.
    pub note: String,
}

/// A stage that rows pass, or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttritionStage {
    /// The step.
    pub step: String,
    /// Its operator.
    pub operator: String,
    /// The rows that it left.
    pub rows: u64,
    /// The rows that it lost, if known.
    pub lost: Option<u64>,
    /// Why, by reason, the most frequent first.
    pub reasons: Vec<LossReason>,
}

/// A reason for which rows were lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossReason {
    /// The reason in words.
    pub reason: String,
    /// How many rows.
    pub rows: u64,
    /// Some of them.
    pub examples: Vec<Labelled>,
}

/// Refusals and warnings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiagnosticBlock {
    /// The heading.
    pub title: String,
    /// The notes, the gravest first.
    pub notes: Vec<DiagnosticNote>,
}

/// A refusal, a warning or a remark.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiagnosticNote {
    /// How grave it is.
    pub severity: NoteSeverity,
    /// The step that it is about; may be empty.
    pub step: String,
    /// The text.
    pub text: String,
    /// Advice; may be empty.
    pub help: String,
}

/// How grave a note is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteSeverity {
    /// A number that cannot be right was not given.
    Refusal,
    /// Something failed.
    Error,
    /// Something is in doubt.
    #[default]
    Warning,
    /// Something to know.
    Note,
}

/// How the same results come again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReproduceBlock {
    /// The heading.
    pub title: String,
    /// A note before the commands, in Markdown; may be empty.
    pub note: String,
    /// The commands, in order.
    pub commands: Vec<ShellCommand>,
    /// The pins of the lock file: repository and commit, model and version.
    pub facts: Vec<Labelled>,
    /// The digests of results, by step and port.
    pub digests: Vec<Labelled>,
}

/// A command for a shell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShellCommand {
    /// Its purpose.
    pub purpose: String,
    /// The command.
    pub command: String,
}
