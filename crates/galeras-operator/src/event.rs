//! Events of a run: the runner sends them, the reporters show them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use galeras_base::digest::Digest;
use galeras_chat::Usd;

/// The default of [`StepSummary::unit`].
pub const ROWS: &str = "rows";

/// The reason why a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// No earlier run of this workflow had this step.
    New,
    /// The step has another operator, or the operator another version.
    OpChanged,
    /// An argument has another value.
    ArgChanged,
    /// The content of an input table changed.
    InputChanged,
    /// The content of a file that the step reads changed.
    #[serde(alias = "SOURCE_MOVED")]
    FileChanged,
    /// A stored file of the result is missing or damaged.
    BlobMissing,
    /// The step failed or was interrupted the last time.
    PrevFailed,
    /// Named by `--force`.
    Forced,
    /// The operator's result may not be reused.
    Uncacheable,
}

impl Reason {
    /// The code in events and reports, such as `ARG_CHANGED`.
    pub fn code(self) -> &'static str {
        self.into()
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// The stored result was reused.
    Hit,
    /// The step was computed, in whole or in part.
    Ran,
    /// The step, or an assertion on it, failed.
    Failed,
    /// Not started, because a step it needs failed or the run was interrupted.
    Skipped,
}

/// The end of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepSummary {
    /// The step's name, with its matrix cell: `gen[model=a]`.
    pub step: String,
    /// Its outcome.
    pub status: StepStatus,
    /// The result, a hit, came from the remote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remote: bool,
    /// The reason why it ran; absent for a hit.
    pub reason: Option<Reason>,
    /// A description of the change, or of the failure.
    pub detail: Option<String>,
    /// Rows of the main port.
    pub rows: u64,
    /// The unit of the next two counts, a plural: `rows` of the input (of the result, for table
    /// operators), or `files`, `repositories`, `answers`.
    #[serde(default = "rows")]
    pub unit: Cow<'static, str>,
    /// Work items computed in this run.
    pub computed_rows: u64,
    /// Work items whose result came from an earlier run.
    pub reused_rows: u64,
    /// The logical digest of the main port.
    pub digest: Option<Digest>,
    /// The ports with their digests and rows.
    pub ports: Vec<PortSummary>,
    /// Wall time in seconds, without waiting for its turn.
    pub seconds: f64,
    /// The action key under which the result is stored.
    pub key: Option<Digest>,
}

impl StepSummary {
    /// The summary of a step of which only the outcome is known.
    pub fn new(step: &str, status: StepStatus, unit: &'static str) -> Self {
        Self {
            step: step.to_string(),
            status,
            remote: false,
            reason: None,
            detail: None,
            rows: 0,
            unit: Cow::Borrowed(unit),
            computed_rows: 0,
            reused_rows: 0,
            digest: None,
            ports: Vec::new(),
            seconds: 0.0,
            key: None,
        }
    }
}

/// The unit in older records, which do not have one.
fn rows() -> Cow<'static, str> {
    Cow::Borrowed(ROWS)
}

/// One output port of a finished step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortSummary {
    /// The port's name.
    pub port: String,
    /// The logical digest of its table.
    pub digest: Digest,
    /// Its number of rows.
    pub rows: u64,
}

/// The rows that a step rejected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RejectedRows {
    /// Their port, after its step: `valid.rejects`.
    pub port: String,
    /// Their number.
    pub rows: u64,
}

/// The outcome of a whole run, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Every step is done.
    Ok,
    /// An assertion of severity error failed.
    AssertFailed,
    /// A step failed.
    Failed,
    /// The store or a disk failed.
    CacheFailed,
    /// Stopped by the user.
    Interrupted,
}

impl RunStatus {
    /// The status of a run with both.
    pub fn worse(self, other: Self) -> Self {
        self.max(other)
    }
}

/// The requests that a step will send to a model behind a server.
#[derive(Clone, Debug, Serialize)]
pub struct StepRequests {
    /// The step.
    pub step: String,
    /// The model.
    pub model: String,
    /// The server: scheme, host and port.
    pub server: String,
    /// Requests to send; absent if unknown.
    pub requests: Option<u64>,
    /// Requests with an earlier answer.
    pub answered: u64,
    /// The maximum number of tokens in the prompts.
    pub prompt_tokens: u64,
    /// The maximum number of tokens in the answers; absent if unlimited.
    pub completion_tokens: Option<u64>,
    /// The maximum cost; absent if unknown.
    #[serde(serialize_with = "dollars")]
    pub usd: Option<Usd>,
}

/// A spending limit, and the money spent before.
#[derive(Clone, Debug, Serialize)]
pub struct LimitState {
    /// Its owner: `the step …`.
    pub owner: String,
    /// The maximum amount.
    #[serde(serialize_with = "dollars")]
    pub max_usd: Option<Usd>,
    /// The maximum number of requests.
    pub max_requests: Option<u64>,
    /// The amount that unfinished runs have spent, or may have.
    #[serde(serialize_with = "dollars")]
    pub spent_usd: Option<Usd>,
    /// Their requests.
    pub spent_requests: u64,
}

/// The spending of a step in a run.
#[derive(Clone, Debug, Serialize)]
pub struct StepSpending {
    /// The step.
    pub step: String,
    /// Requests that were sent.
    pub requests: u64,
    /// Requests whose usage is unknown; they count at their maximum.
    pub unknown: u64,
    /// Tokens in prompts.
    pub prompt_tokens: u64,
    /// Tokens in answers.
    pub completion_tokens: u64,
    /// Their cost; absent without a price.
    #[serde(serialize_with = "dollars")]
    pub usd: Option<Usd>,
}

fn dollars<S: serde::Serializer>(usd: &Option<Usd>, serializer: S) -> Result<S::Ok, S::Error> {
    usd.map(Usd::to_f64).serialize(serializer)
}

/// An event of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run starts.
    Started {
        /// The workflow's name.
        workflow: String,
        /// The run's identity in the store.
        run: String,
        /// The wanted steps, in topological order.
        steps: Vec<String>,
    },
    /// A step starts to compute.
    StepStarted {
        /// The step.
        step: String,
        /// The reason why it runs.
        reason: Reason,
        /// A description of the change.
        detail: Option<String>,
        /// The unit of its work: `rows`, `files`.
        unit: &'static str,
    },
    /// The amount of work of a running step became known.
    StepTotal {
        /// The step.
        step: String,
        /// The unit.
        unit: &'static str,
        /// The number to compute.
        total: u64,
        /// The number taken from earlier results.
        reused: u64,
    },
    /// A running step has made progress.
    Progress {
        /// The step.
        step: String,
        /// The unit.
        unit: &'static str,
        /// The number computed so far.
        done: u64,
    },
    /// Progress of the whole run: sent when a step begins to compute or has been computed, and
    /// every second in between.
    RunProgress {
        /// Steps that have ended or are being computed.
        begun: usize,
        /// All wanted steps.
        steps: usize,
        /// An estimate of the remaining seconds, from earlier runs and this one; absent if there is
        /// too little data.
        seconds_left: Option<f64>,
    },
    /// The current activity of a running step, if it takes long.
    Activity {
        /// The step.
        step: String,
        /// A few words.
        text: String,
        /// The step is waiting for something outside.
        waiting: bool,
    },
    /// A step ended.
    StepFinished(StepSummary),
    /// An assertion failed.
    Assertion {
        /// The step.
        step: String,
        /// `error` or `warn`.
        severity: String,
        /// The test, and how the table breaks it.
        message: String,
    },
    /// A warning that stops nothing.
    Warning {
        /// The step, if the warning is about one.
        step: Option<String>,
        /// The text.
        message: String,
    },
    /// The requests of the run, before the first is sent.
    Requests {
        /// The steps that ask.
        steps: Vec<StepRequests>,
        /// Their limits.
        limits: Vec<LimitState>,
    },
    /// Results from the remote, near the end of the run.
    Fetched {
        /// The remote.
        remote: String,
        /// The number of tables.
        files: u64,
        /// Their size.
        bytes: u64,
    },
    /// The spending, near the end of the run.
    Spent {
        /// The steps that sent something.
        steps: Vec<StepSpending>,
    },
    /// A table that outputs depend on has no rows, which fails the run, or a step without rows
    /// rejected all or expected some. Sent at the end of the run.
    NoRows {
        /// The step that lost the last row: its inputs have rows, or it has no inputs.
        step: String,
        /// Its empty port.
        port: String,
        /// The outputs that are empty because of it.
        outputs: Vec<String>,
        /// The number of rows that it read.
        read: u64,
        /// The rows that it rejected.
        rejected: Option<RejectedRows>,
        /// A full description.
        message: String,
    },
    /// An output file is in place.
    Output {
        /// The output's name.
        output: String,
        /// The file.
        path: String,
        /// Its rows.
        rows: u64,
        /// False if the file was already right.
        written: bool,
    },
    /// The run ended.
    Finished {
        /// The outcome.
        status: RunStatus,
        /// All steps.
        steps: Vec<StepSummary>,
        /// Wall time in seconds, from the start of the process.
        seconds: f64,
    },
}

/// The receiver of events. Sending never blocks and never fails the run.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn send(&self, event: RunEvent);
}
