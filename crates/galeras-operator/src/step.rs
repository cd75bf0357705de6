//! A [`BoundStep`], and the ways to compute it with DataFusion plans.
//!
//! Futures are boxed by hand. The lifetime bounds that `async-trait` adds to each method keep the
//! compiler from caching that DataFusion's plans are `Send`: checking the operators took minutes.

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
use super::pins::{Fact, SideFile};
use super::step_error::StepError;
use super::table::Port;
use crate::event::{EventSink, ROWS};
use galeras_base::digest::Digest;
use galeras_base::scratch::LazyScratch;
use galeras_chat::Budget;

/// The columns of an input that can change a step's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reads {
    /// All of them, in their order.
    All,
    /// Only these; a change of any other column does not make the step run.
    Columns(Vec<String>),
}

/// An operator with its arguments, bound to input schemas: immutable, ready to be lowered.
pub trait BoundStep: Send + Sync + Debug {
    /// The arguments with every default filled in, for the action key.
    fn args(&self) -> Value;
    /// The output ports; the first is the main one.
    fn ports(&self) -> &[Port];
    /// The columns of the named input that the result depends on.
    fn reads(&self, _input: &str) -> Reads {
        Reads::All
    }
    /// The files it reads, with their current digests.
    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        Ok(Vec::new())
    }
    /// The local ones among its files: the argument that names each (`files[0]`), and its path.
    /// They must not be replaced by outputs.
    fn local_files(&self) -> Vec<(String, PathBuf)> {
        Vec::new()
    }
    /// The arguments that an earlier result of a row depends on, if those are not all: for example,
    /// one more sample from a model does not change its earlier answers.
    fn recipe_args(&self) -> Option<Value> {
        None
    }
    /// The version of earlier results of rows, unless it is the operator's: a new version of an
    /// operator does not pay for the same answers again.
    fn recipe_version(&self) -> Option<u32> {
        None
    }
    /// The external fact that it depends on, if any.
    fn fact(&self) -> Option<Fact> {
        None
    }
    /// The meaning of an empty result, for a step that should have rows: a clause such as
    /// `no commit …`.
    fn no_rows_means(&self) -> Option<String> {
        None
    }
    /// The level and the method of the intervals in the table of a port, for readers of its numbers.
    fn intervals(&self, _port: &str) -> Option<String> {
        None
    }
    /// Arguments that are allowed, and probably not what the user means.
    fn warnings(&self) -> Vec<ArgError> {
        Vec::new()
    }
    /// Missing requirements of the environment at run time, such as an environment variable.
    fn missing(&self) -> Vec<ArgError> {
        Vec::new()
    }
    /// The actions that it may take when it runs, as far as the arguments determine them. For those
    /// that depend on the rows of its inputs, it asks [`RunEnv::consent`].
    fn demands(&self) -> Vec<Demand> {
        Vec::new()
    }
    /// The way to query the version of a [`Fact::Version`].
    fn versioned(&self) -> Option<&dyn Versioned> {
        None
    }
    /// The unit of its work, a plural such as `files`: of input rows for [`RowStep`] and
    /// [`FanOutStep`], of [`Tell::Total`] and [`Tell::Progress`], otherwise of result rows.
    fn work_unit(&self) -> &'static str {
        ROWS
    }
    /// The reason why only the process that runs the workflow may compute it, if that is not its
    /// reading, asking or paying.
    fn stays(&self) -> Option<&'static str> {
        None
    }
    /// The way to compute it.
    fn lowering(&self) -> Lowering<'_>;
}

/// A step that depends on something external with a version.
pub trait Versioned: Send + Sync {
    /// Queries the current version.
    fn version<'a>(
        &'a self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, StepError>>;
}

/// The ways to compute a step.
pub enum Lowering<'a> {
    /// Row by row, with row-precise reuse.
    Row(&'a dyn RowStep),
    /// Row by row, where each row takes minutes and produces its own table.
    FanOut(&'a dyn FanOutStep),
    /// As a whole, from answers to questions that each cost time or money.
    Paid(&'a dyn PaidStep),
    /// As a whole.
    Table(&'a dyn TableStep),
}

/// Input tables by port name.
pub type Inputs = BTreeMap<String, DataFrame>;

/// Takes the table at the port `name`.
///
/// # Errors
/// If there is none.
pub fn take_input(inputs: &mut Inputs, name: &str) -> Result<DataFrame, StepError> {
    let missing = || StepError::new(format!("the step needs a table at its port `{name}`"));
    inputs.remove(name).ok_or_else(missing)
}

/// Output tables by port name.
pub type Ports = Vec<(&'static str, DataFrame)>;

/// A step whose output rows each depend on exactly one input row.
///
/// The engine evaluates rows without an earlier result, joins the results to the input, and passes
/// the join to [`RowStep::ports`].
pub trait RowStep: Send + Sync {
    /// True if it has no input port: its rows are those of [`RowStep::source`].
    fn is_source(&self) -> bool {
        false
    }
    /// The rows of a step without an input port. Never called for other steps.
    fn source(&self, _cx: &LowerContext) -> Result<DataFrame, StepError> {
        Err(StepError::new("this operator needs an input table"))
    }
    /// True if the work on a row is small compared with reading it and storing its result: then
    /// distributing rows over workers gains nothing.
    fn is_light(&self) -> bool {
        false
    }
    /// The input columns that an output row depends on.
    fn reads(&self) -> Vec<String>;
    /// Adds the produced columns to `rows`, which has the columns of [`RowStep::reads`] and hidden
    /// ones, and returns exactly one row for each: several results of a row are a list, none is a
    /// null. Hidden columns must be kept, read columns may be dropped. The expensive work happens
    /// here, best in one function call per row: its result is what is reused.
    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError>;
    /// The output ports, from the input columns together with the produced ones (which replace
    /// input columns of the same name).
    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError>;
}

/// A step that turns each input row into a table, which takes minutes: for example, mining a
/// repository.
///
/// The table of a row is the union of the tables of its pieces. The engine stores each piece as
/// soon as it is complete, and reuses it for every row with the same digest. All tables together
/// may be larger than memory.
pub trait FanOutStep: Send + Sync {
    /// The input columns that the result of a row depends on. Others may help to find it, such as
    /// the location of a repository whose content is identified by its commit.
    fn reads(&self) -> Vec<String>;
    /// The column that names a row in messages.
    fn label(&self) -> &'static str;
    /// The columns of a row's table.
    fn output_schema(&self) -> SchemaRef;
    /// Determines the work on a row and acquires everything for it, for example over a network.
    /// `row` is a batch of one row with all input columns.
    fn open<'a>(
        &'a self,
        cx: &'a LowerContext,
        row: RecordBatch,
    ) -> BoxFuture<'a, Result<Box<dyn FanOutWork>, FanOutError>>;
    /// The reason why the user has not allowed what [`FanOutStep::open`] would do for this row, if
    /// only the row determines it. Must be called before a row is opened elsewhere.
    fn refusal(&self, _cx: &LowerContext, _row: &RecordBatch) -> Option<FanOutError> {
        None
    }
    /// The table of a row whose work failed; everything sent before is dropped.
    fn failed(&self, row: &RecordBatch, error: &FanOutError) -> Result<RecordBatch, StepError>;
    /// The output ports, from the input and the tables of its rows.
    fn ports(&self, input: DataFrame, output: DataFrame) -> Result<Ports, StepError>;
}

/// The work on one row, cut into pieces of about a second. They run in parallel in any order, and
/// finished pieces of an interrupted run are not repeated.
pub trait FanOutWork: Send + Sync {
    /// The number of pieces, at least one.
    fn pieces(&self) -> u32;
    /// Identifies the pieces: equal digests mean equal numbers of pieces and equal tables.
    fn cut(&self) -> Digest;
    /// Computes a piece, on one thread: sends its table to `out`, in any order and in batches of
    /// some megabytes.
    fn expand(
        &self,
        piece: u32,
        out: mpsc::Sender<RecordBatch>,
    ) -> BoxFuture<'_, Result<(), FanOutError>>;
}

/// The failure of the work on a row. It ends that row, not the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOutError {
    /// A stable word for the kind of failure.
    pub rule: &'static str,
    /// The failure, in one sentence.
    pub reason: String,
    /// The next run tries again: the failure does not depend on the row itself.
    pub retry: bool,
}

/// A step whose result depends on its inputs as a whole.
pub trait TableStep: Send + Sync {
    /// True if the session's sorts must stay within the memory of the context: for tables that may
    /// be larger than memory, and plans that only scan, filter, project, join a small table from
    /// the left, and sort.
    fn bounded(&self) -> bool {
        false
    }
    /// The output tables. Small global work may be done here.
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>>;
}

/// A step that asks external questions, whose answers cost time or money.
///
/// Every answer passed to [`Answers::keep`] is available to every later run of its recipe, however
/// this run ends. All requests must stay within [`LowerContext::budget`].
pub trait PaidStep: Send + Sync {
    /// The model that it asks, and the limits; `None` if answers cost only time.
    fn terms(&self) -> Option<PaymentTerms>;
    /// The requests that [`PaidStep::lower`] would send with these answers and inputs. Sends
    /// nothing. Never called for a step without terms.
    fn forecast<'a>(
        &'a self,
        _answers: &'a dyn KnownAnswers,
        _inputs: Inputs,
    ) -> BoxFuture<'a, Result<RequestForecast, StepError>> {
        Box::pin(async { Ok(RequestForecast::default()) })
    }
    /// The output tables. Sends [`Tell::Total`] and [`Tell::Progress`].
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
        inputs: Inputs,
    ) -> BoxFuture<'a, Result<PaidResult, StepError>>;
}

/// The tables of a paid step, and counts of rows.
pub struct PaidResult {
    /// The output ports.
    pub ports: Ports,
    /// Rows with new requests.
    pub computed: u64,
    /// Rows with all answers known.
    pub reused: u64,
}

/// The earlier answers of a recipe.
pub trait KnownAnswers: Send + Sync {
    /// The answers to a question from before this run, the oldest first; none if the user wants new
    /// ones.
    fn known(&self, question: &Digest) -> Vec<&str>;
}

/// The answers of a recipe, which can be extended.
pub trait Answers: KnownAnswers {
    /// Keeps an answer: it is on disk when this returns.
    fn keep<'a>(
        &'a self,
        question: &'a Digest,
        answer: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>>;
}

/// The environment that the steps of a run share.
#[derive(Clone)]
pub struct RunEnv {
    /// The number of threads for CPU work.
    pub jobs: usize,
    /// Bytes of memory for work on large tables before it must use temporary files.
    pub memory: usize,
    /// The user's consent. The runner has already asked it for [`BoundStep::demands`].
    pub consent: Arc<dyn Consent>,
    /// Cancelled when the run is interrupted.
    pub cancel: CancellationToken,
    /// The receiver of events.
    pub events: Arc<dyn EventSink>,
}

/// The resources of a running step.
pub struct LowerContext {
    /// The session that runs the plans.
    pub session: SessionContext,
    /// A folder for temporary files, removed after the step.
    pub scratch: LazyScratch,
    /// The folder of the workflow file.
    pub base: PathBuf,
    /// A folder for fetched files. It outlives the run.
    pub downloads: PathBuf,
    /// The environment of the run.
    pub env: RunEnv,
    /// The user wants a new answer: results of earlier attempts must not be used.
    pub forced: bool,
    /// Folders that no program may see: those of the store and of consents.
    pub sealed: Vec<PathBuf>,
    /// The budget for requests that may cost money.
    pub budget: Arc<Budget>,
    /// Counts rows that failed for external reasons: the result is used, but the next run computes
    /// them again.
    pub retry: Arc<AtomicU64>,
    /// Sends a message to the user.
    pub tell: Arc<dyn Fn(Tell) + Send + Sync>,
}

/// A message of a running step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    /// The current activity, in a few words; the next one replaces it.
    Activity(String),
    /// The thing that it waits for, and how long.
    Waiting(String),
    /// A warning that stops nothing.
    Warning(String),
    /// The amount of work, in the step's unit, and the amount computed before.
    Total {
        /// The number to compute.
        work: u64,
        /// The number computed before.
        reused: u64,
    },
    /// The number computed so far.
    Progress(u64),
}
