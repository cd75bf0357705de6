//! A [`BoundStep`], and the ways in which it is computed as DataFusion plans.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::access::{Consent, Demand};
use super::error::ArgError;
use super::payment::{PaymentTerms, RequestForecast};
use super::pins::Fact;
use super::side_file::SideFile;
use super::step_error::StepError;
use super::table::Port;
use crate::event::ROWS;
use galeras_base::digest::Digest;
use galeras_base::scratch::LazyScratch;
use galeras_chat::Budget;

/// The columns of an input that can change a step's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reads {
    /// All of them, in their order.
    All,
    /// Just these; a change of any other column does not make the step run.
    Columns(Vec<String>),
}

/// An operator with its arguments, bound to input schemas: immutable, ready to be lowered.
pub trait BoundStep: Send + Sync + Debug {
    /// The arguments with every default filled in, as they enter the action key.
    fn args(&self) -> Value;
    /// The output ports; the first is the main one.
    fn ports(&self) -> &[Port];
    /// The columns of the named input that the result depends on.
    fn reads(&self, _input: &str) -> Reads {
        Reads::All
    }
    /// The files it reads, hashed now.
    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        Ok(Vec::new())
    }
    /// The files of this machine among them: the argument that names each (`files[0]`), and where
    /// the file is. No output may be written there.
    fn local_files(&self) -> Vec<(String, PathBuf)> {
        Vec::new()
    }
    /// The arguments that an earlier result of a row depends on, if those are not all: that a
    /// model is asked for one sample more, say, takes nothing from the answers it has given.
    fn recipe_args(&self) -> Option<Value> {
        None
    }
    /// What it asks of the world, if it does.
    fn fact(&self) -> Option<Fact> {
        None
    }
    /// What it means if there are rows to read and the result has none, for a step of which rows
    /// are to be expected: a clause of its own, `no commit …`.
    fn no_rows_means(&self) -> Option<String> {
        None
    }
    /// What it needs of its surroundings, and only when it runs: an environment variable, say.
    /// Everything that is missing is returned.
    fn missing(&self) -> Vec<ArgError> {
        Vec::new()
    }
    /// What it may do to the machine when it runs, as far as the arguments tell. What only the
    /// rows of its inputs tell, it asks its [`LowerContext::consent`] for.
    fn demands(&self) -> Vec<Demand> {
        Vec::new()
    }
    /// How to learn the version of a [`Fact::Version`].
    fn versioned(&self) -> Option<&dyn Versioned> {
        None
    }
    /// What its work is counted in, a plural such as `files`: what a row of the input becomes in
    /// [`RowStep`] and [`FanOutStep`], what [`Tell::Total`] and [`Tell::Progress`] count, and
    /// otherwise the rows of the result.
    fn work_unit(&self) -> &'static str {
        ROWS
    }
    /// Why only the process that runs the workflow may compute it, if that is so for another reason
    /// than what it reads, asks or pays for.
    fn stays(&self) -> Option<&'static str> {
        None
    }
    /// How it is computed.
    fn lowering(&self) -> Lowering<'_>;
}

/// A step that depends on something in the world which has a version.
pub trait Versioned: Send + Sync {
    /// Asks for the version that it has now.
    fn version<'a>(
        &'a self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, StepError>>;
}

/// The ways in which a step is computed.
pub enum Lowering<'a> {
    /// Row by row, with row-precise reuse.
    Row(&'a dyn RowStep),
    /// Row by row, where each row takes minutes and gives a table of its own.
    FanOut(&'a dyn FanOutStep),
    /// As a whole, from answers to questions that each cost time or money.
    Paid(&'a dyn PaidStep),
    /// As a whole.
    Table(&'a dyn TableStep),
}

/// Output tables by port name.
pub type Ports = Vec<(&'static str, DataFrame)>;

/// A step whose output rows each depend on exactly one input row.
///
/// The engine evaluates rows that it has no earlier result for, joins the results to the
/// input, and hands the join to [`RowStep::ports`].
pub trait RowStep: Send + Sync {
    /// Whether it has no input port: its rows are those of [`RowStep::source`].
    fn is_source(&self) -> bool {
        false
    }
    /// The rows of a step without an input port. Never called for other steps.
    fn source(&self, _cx: &LowerContext) -> Result<DataFrame, StepError> {
        Err(StepError::new("this operator needs an input table"))
    }
    /// Whether the work on a row is little beside reading it and storing what comes of it: then
    /// nothing is gained if others compute the rows for the one who puts the tables together.
    fn is_light(&self) -> bool {
        false
    }
    /// The input columns that an output row depends on.
    fn reads(&self) -> Vec<String>;
    /// Adds the produced columns to `rows`, which has the columns of [`RowStep::reads`] and
    /// hidden ones, and gives exactly one row for each: several results of a row are a list,
    /// none is a null. Hidden columns must be kept, read columns may be dropped. The expensive
    /// work happens here, best in one function call per row: its result is what is reused.
    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError>;
    /// The output ports, from the input columns together with the produced ones (which
    /// replace input columns of the same name).
    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError>;
}

/// A step that turns each input row into a table, which takes minutes: a repository is mined,
/// say.
///
/// The table of a row is the union of those of its pieces. The engine stores the table of a piece
/// as soon as it is complete, and uses it again whenever a row with the same digest turns up. The
/// tables of all rows together may be larger than memory.
pub trait FanOutStep: Send + Sync {
    /// The input columns that the result of a row depends on. Others may be used to find the
    /// way to it, such as the place of a repository whose content is known by its commit.
    fn reads(&self) -> Vec<String>;
    /// The column that names a row in messages.
    fn label(&self) -> &'static str;
    /// The columns of the table that a row gives.
    fn output_schema(&self) -> SchemaRef;
    /// Finds out what is to be done for a row, and gets hold of all that it takes: waits for a
    /// network, say. `row` is a batch of one row with all input columns.
    fn open<'a>(
        &'a self,
        cx: &'a LowerContext,
        row: RecordBatch,
    ) -> BoxFuture<'a, Result<Box<dyn FanOutWork>, FanOutError>>;
    /// Why the user has not agreed to what [`FanOutStep::open`] would do for this row, if only the
    /// row tells. Whoever opens rows elsewhere asks this first.
    fn refusal(&self, _cx: &LowerContext, _row: &RecordBatch) -> Option<FanOutError> {
        None
    }
    /// The table of a row whose work failed; all that had been sent is dropped.
    fn failed(&self, row: &RecordBatch, error: &FanOutError) -> Result<RecordBatch, StepError>;
    /// The output ports, from the input and the tables of all its rows.
    fn ports(&self, input: DataFrame, output: DataFrame) -> Result<Ports, StepError>;
}

/// The work on one row, cut into pieces of a second or so. They are done side by side and in any
/// order, and those that an interrupted run has finished are not done again.
pub trait FanOutWork: Send + Sync {
    /// How many pieces there are, at least one.
    fn pieces(&self) -> u32;
    /// What the pieces are: where it is equal, so are the numbers of pieces and their tables.
    fn cut(&self) -> Digest;
    /// Does a piece, on one thread: its table goes to `out`, in any order and in batches of some
    /// megabytes.
    fn expand(
        &self,
        piece: u32,
        out: mpsc::Sender<RecordBatch>,
    ) -> BoxFuture<'_, Result<(), FanOutError>>;
}

/// Why the work on a row failed. It ends that row, not the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOutError {
    /// A stable word for the kind of failure.
    pub rule: &'static str,
    /// What happened, in one sentence.
    pub reason: String,
    /// Whether the next run tries again: the failure says nothing about the row itself.
    pub retry: bool,
}

/// A step whose result depends on its inputs as a whole.
pub trait TableStep: Send + Sync {
    /// Whether the session's sorts keep to the memory of the context: for tables that may be
    /// larger than memory, and plans that only scan, filter, project, join a small table from
    /// the left, and sort.
    fn bounded(&self) -> bool {
        false
    }
    /// The output tables. Small global work may be done here.
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>>;
}

/// A step that asks the world question by question, where an answer costs time or money.
///
/// Every answer that the step hands to [`Answers::keep`] is found by every later run of its
/// recipe, however this one ends. Whatever it sends, it sends within [`LowerContext::budget`].
pub trait PaidStep: Send + Sync {
    /// Whom it asks, and what may be spent.
    fn terms(&self) -> PaymentTerms;
    /// What [`PaidStep::lower`] would ask with these answers and inputs. Sends nothing.
    fn forecast<'a>(
        &'a self,
        answers: &'a dyn KnownAnswers,
        inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<RequestForecast, StepError>>;
    /// The output tables. Tells [`Tell::Total`] and [`Tell::Progress`].
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
        inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<PaidResult, StepError>>;
}

/// The tables of a step that asks, and how many rows were asked for.
pub struct PaidResult {
    /// The output ports.
    pub ports: Ports,
    /// Rows for which something was asked now.
    pub computed: u64,
    /// Rows whose answers were all there.
    pub reused: u64,
}

/// The answers that a recipe has been given so far.
pub trait KnownAnswers: Send + Sync {
    /// The answers to a question from before this run, the oldest first; none if the user
    /// wants new ones.
    fn known(&self, question: &Digest) -> Vec<&str>;
}

/// The answers of a recipe, and a place for more.
pub trait Answers: KnownAnswers {
    /// Keeps an answer: it is on disk when this returns.
    fn keep<'a>(
        &'a self,
        question: &'a Digest,
        answer: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>>;
}

/// What a step may use while it runs.
pub struct LowerContext {
    /// The session that runs the plans.
    pub session: SessionContext,
    /// A folder for temporary files, removed after the step.
    pub scratch: LazyScratch,
    /// The folder of the workflow file.
    pub base: PathBuf,
    /// A folder for what is fetched. It outlives the run.
    pub downloads: PathBuf,
    /// Threads for work that keeps them busy.
    pub jobs: usize,
    /// Bytes of memory that work on large tables may take before it uses files in `scratch`.
    pub memory: usize,
    /// The user wants a new answer: what an earlier attempt found out may not be used.
    pub forced: bool,
    /// What requests that may be billed are charged to.
    pub budget: Arc<Budget>,
    /// What the user agreed to. The runner has asked it for [`BoundStep::demands`].
    pub consent: Arc<dyn Consent>,
    /// Cancelled when the run is interrupted.
    pub cancel: CancellationToken,
    /// Rows that failed for reasons outside of them are counted here: the result is used, but
    /// the next run computes it again.
    pub retry: Arc<AtomicU64>,
    /// Tells the user.
    pub tell: Arc<dyn Fn(Tell) + Send + Sync>,
}

/// What a running step says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    /// What it is busy with, in a few words; the next one replaces it.
    Activity(String),
    /// For whom or what it waits, and how long.
    Waiting(String),
    /// Something worth knowing that stops nothing.
    Warning(String),
    /// How much there is to compute, in the step's unit, and how much was computed before.
    Total {
        /// Those to compute.
        work: u64,
        /// Those that were computed before.
        reused: u64,
    },
    /// How many it has computed so far.
    Progress(u64),
}
