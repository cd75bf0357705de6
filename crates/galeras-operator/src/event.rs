//! What happens during a run, as data: the runner sends these events, the reporters show them.
//! Neither side owns them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use galeras_base::digest::Digest;
use galeras_chat::Usd;

/// What a step's work is counted in unless its operator says otherwise: [`StepSummary::unit`].
pub const ROWS: &str = "rows";

/// Why a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
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
    SourceMoved,
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
    /// The code as events and reports write it, e.g. `ARG_CHANGED`.
    pub fn code(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::OpChanged => "OP_CHANGED",
            Self::ArgChanged => "ARG_CHANGED",
            Self::InputChanged => "INPUT_CHANGED",
            Self::SourceMoved => "SOURCE_MOVED",
            Self::BlobMissing => "BLOB_MISSING",
            Self::PrevFailed => "PREV_FAILED",
            Self::Forced => "FORCED",
            Self::Uncacheable => "UNCACHEABLE",
        }
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// The stored result was reused as it is.
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
    /// How it ended.
    pub status: StepStatus,
    /// Whether the result, a hit, came from the remote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remote: bool,
    /// Why it ran; absent for a hit.
    pub reason: Option<Reason>,
    /// What exactly changed, or why it failed, in words.
    pub detail: Option<String>,
    /// Rows of the main port.
    pub rows: u64,
    /// What the next two count, a plural: `rows` of the input (of the result, for table
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
    /// Wall time in seconds, without the wait for its turn to compute.
    pub seconds: f64,
    /// The action key under which the result is stored.
    pub key: Option<Digest>,
}

impl StepSummary {
    /// The summary of a step of which nothing but its end is known.
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

/// The unit in records that were written before there was one.
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

/// The rows that a step refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RejectedRows {
    /// The port with them, after its step: `valid.rejects`.
    pub port: String,
    /// How many they are.
    pub rows: u64,
}

/// How a whole run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Every step is done.
    Ok,
    /// A step failed.
    Failed,
    /// An assertion of severity error failed.
    AssertFailed,
    /// The store or a disk failed.
    CacheFailed,
    /// Stopped by the user.
    Interrupted,
}

impl RunStatus {
    /// The status that a run with both has.
    pub fn worse(self, other: Self) -> Self {
        let rank = |status: Self| match status {
            Self::Ok => 0,
            Self::AssertFailed => 1,
            Self::Failed => 2,
            Self::CacheFailed => 3,
            Self::Interrupted => 4,
        };
        if rank(self) >= rank(other) { self } else { other }
    }
}

/// What a step is going to ask a model behind a server.
#[derive(Clone, Debug, Serialize)]
pub struct StepRequests {
    /// The step.
    pub step: String,
    /// The model.
    pub model: String,
    /// The server: scheme, host and port.
    pub server: String,
    /// Requests to send; absent if that is not known.
    pub requests: Option<u64>,
    /// Requests that were answered before.
    pub answered: u64,
    /// The most tokens that they read.
    pub prompt_tokens: u64,
    /// The most tokens that are written; absent if that is not limited.
    pub completion_tokens: Option<u64>,
    /// The most that they cost; absent if that is not known.
    #[serde(serialize_with = "dollars")]
    pub usd: Option<Usd>,
}

/// A limit on what steps may spend, and what was spent of it before.
#[derive(Clone, Debug, Serialize)]
pub struct LimitState {
    /// Whose it is: `the step …`.
    pub owner: String,
    /// The most money.
    #[serde(serialize_with = "dollars")]
    pub max_usd: Option<Usd>,
    /// The most requests.
    pub max_requests: Option<u64>,
    /// What runs that did not finish have spent of it, or may have.
    #[serde(serialize_with = "dollars")]
    pub spent_usd: Option<Usd>,
    /// Their requests.
    pub spent_requests: u64,
}

/// What a step has spent in a run.
#[derive(Clone, Debug, Serialize)]
pub struct StepSpending {
    /// The step.
    pub step: String,
    /// Requests that were sent.
    pub requests: u64,
    /// Those of them of which nobody knows what they took; they are counted at their most.
    pub unknown: u64,
    /// Tokens that were read.
    pub prompt_tokens: u64,
    /// Tokens that were written.
    pub completion_tokens: u64,
    /// What they cost; absent without a price.
    #[serde(serialize_with = "dollars")]
    pub usd: Option<Usd>,
}

/// As a number.
fn dollars<S: serde::Serializer>(usd: &Option<Usd>, serializer: S) -> Result<S::Ok, S::Error> {
    usd.map(Usd::to_f64).serialize(serializer)
}

/// One thing that happened during a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run starts.
    Started {
        /// The workflow's name.
        workflow: String,
        /// The run's identity in the store.
        run: String,
        /// The steps that are wanted, in topological order.
        steps: Vec<String>,
    },
    /// A step starts to compute.
    StepStarted {
        /// The step.
        step: String,
        /// Why it runs.
        reason: Reason,
        /// What exactly changed, in words.
        detail: Option<String>,
        /// What its work is counted in: `rows`, `files`.
        unit: &'static str,
    },
    /// How much a running step has to compute became known.
    StepTotal {
        /// The step.
        step: String,
        /// What is counted.
        unit: &'static str,
        /// Those to compute.
        total: u64,
        /// Those taken from earlier results.
        reused: u64,
    },
    /// A running step got on.
    Progress {
        /// The step.
        step: String,
        /// What is counted.
        unit: &'static str,
        /// Those computed so far.
        done: u64,
    },
    /// How far the run is as a whole: when a step begins to compute or has been computed, and
    /// every second in between.
    RunProgress {
        /// Steps that ended or that are being computed.
        begun: usize,
        /// All steps that are wanted.
        steps: usize,
        /// Seconds that the rest takes, going by earlier runs and by what this one has done so
        /// far; nothing where neither says enough.
        seconds_left: Option<f64>,
    },
    /// What a running step is busy with, if it is long.
    Activity {
        /// The step.
        step: String,
        /// A few words.
        text: String,
        /// Nothing is done meanwhile: it waits for someone else.
        waiting: bool,
    },
    /// A step ended.
    StepFinished(StepSummary),
    /// An assertion did not hold.
    Assertion {
        /// The step.
        step: String,
        /// `error` or `warn`.
        severity: String,
        /// The test, and how the table breaks it.
        message: String,
    },
    /// Something worth knowing that stops nothing.
    Warning {
        /// The step, if it concerns one.
        step: Option<String>,
        /// The text.
        message: String,
    },
    /// What is going to be asked, before anything of it is.
    Requests {
        /// The steps that ask.
        steps: Vec<StepRequests>,
        /// The limits that they keep.
        limits: Vec<LimitState>,
    },
    /// What came from the remote, near the end of the run.
    Fetched {
        /// Where it came from.
        remote: String,
        /// Tables.
        files: u64,
        /// Their size.
        bytes: u64,
    },
    /// What was spent, near the end of the run.
    Spent {
        /// The steps that sent something.
        steps: Vec<StepSpending>,
    },
    /// A table that somebody counts on has no rows. Told at the end of the run.
    NoRows {
        /// The step where the last row went: those that it reads have rows, or it reads none.
        step: String,
        /// The port of it that is empty.
        port: String,
        /// The outputs that are empty because of it.
        outputs: Vec<String>,
        /// The rows that it read.
        read: u64,
        /// Where those that it refused are.
        rejected: Option<RejectedRows>,
        /// All of it in words.
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
        /// How.
        status: RunStatus,
        /// Every step.
        steps: Vec<StepSummary>,
        /// Wall time in seconds, from the start of the process.
        seconds: f64,
    },
}

/// Where events go. Sending never blocks and never fails the run.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn send(&self, event: RunEvent);
}
