//! The command line: verbs, their options, exit codes. The composition root.
//!
//! One file per group of verbs. Code that another program could call belongs in a crate.

mod aligned;
mod bundle;
mod cache;
#[cfg(feature = "cluster")]
mod cluster;
mod complete;
mod consent;
mod context;
mod data;
mod doctor;
mod exit;
mod export;
mod init;
mod inspect;
mod lock;
mod ops;
mod origin;
#[cfg(test)]
mod plan_tests;
mod process;
mod remote;
mod report;
mod resources;
mod rows;
mod run;
mod runs;
mod screen;
#[cfg(test)]
mod spread_tests;
mod store_places;
mod trace;
mod verify;
mod view;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use exit::Exit;
use exit::{Failure, fail, failed};
use galeras_operator::worker_threads;
use galeras_store::{StoreError, default_store, refuse_link};
use resources::no_threads;

/// Declarative, reproducible benchmarks for code language models.
#[derive(Parser)]
#[command(name = "galeras", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 a step failed; 2 the command line or the \
workflow is invalid; 3 an assertion failed; 4 the cache, a disk or memory failed; 130 interrupted.\n\n\
GALERAS_LOG=galeras=debug logs to standard error what a run decides, and why.";

#[derive(Subcommand)]
enum Verb {
    /// Run a workflow: compute what is not stored yet, write the outputs.
    Run(run::RunArgs),
    /// Say what a run would do, and why, without doing it.
    Plan(inspect::PlanArgs),
    /// Report everything that is wrong with workflow files.
    Check(inspect::CheckArgs),
    /// Explain why a step would run or not, and the inputs of its result.
    Explain(inspect::ExplainArgs),
    /// Draw the graph of a workflow.
    Graph(inspect::GraphArgs),
    /// List the operators, or document one.
    Ops(ops::OpsArgs),
    /// Print a JSON Schema: of workflow files, of an operator's arguments, of a table.
    Schema(ops::SchemaArgs),
    /// Pin what a workflow asks of the world (searches, repositories, URLs) in galeras.lock.
    Lock(lock::LockArgs),
    /// Show rows of a step's result.
    Show(data::ShowArgs),
    /// Query the results of a workflow's steps.
    Sql(data::SqlArgs),
    /// Follow a row from the step that made it to where it was kept or rejected.
    Trace(trace::TraceArgs),
    /// Say which workflow, step and run a file comes from.
    Origin(origin::OriginArgs),
    /// Write one page that explains the study: findings, figures, tables, answers, where rows went.
    Report(report::ReportArgs),
    /// Print where the Parquet file of a step's result is.
    Path(data::PathArgs),
    /// List the runs of a workflow: when, with which params, and to which results they came.
    Runs(runs::RunsArgs),
    /// Compare two runs of a workflow: steps, columns, rows.
    Diff(runs::DiffArgs),
    /// Serve the pages of a study on this machine: steps, tables, runs, and the review of data
    /// points by people.
    View(view::ViewArgs),
    /// Send the results of a workflow in its current state to another store.
    Push(remote::PushArgs),
    /// Fetch the results of a workflow in its current state from another store, so that a run finds
    /// them.
    Pull(remote::PullArgs),
    /// Say whether results, or a bundle, are what they were when they were computed.
    Verify(verify::VerifyArgs),
    /// Put a workflow with its results into one file, to give to others.
    Bundle(bundle::BundleArgs),
    /// Write tables as a data set for the Hugging Face Hub: card, Croissant, attribution, citation.
    Export(export::ExportArgs),
    /// Run the processes of a cluster, for `run --engine`.
    #[cfg(feature = "cluster")]
    #[command(subcommand)]
    Cluster(cluster::ClusterVerb),
    /// Say what this machine offers to run programs, and how to get what it lacks.
    Doctor(doctor::DoctorArgs),
    /// Write a workflow to start from.
    Init(init::InitArgs),
    /// Look after the store of results.
    #[command(subcommand)]
    Cache(cache::CacheVerb),
    /// Print a script for a shell that completes verbs, flags, and the steps, params and columns of
    /// workflows.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// How a verb answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// The workflow and the location of its results.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkflowArgs {
    /// The workflow file.
    pub(crate) file: PathBuf,
    /// Give a param another value than its default. Paths start in the current folder. May be
    /// repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Believe the results in the store although you did not compute them on this machine, and
    /// remember that.
    #[arg(long)]
    trust_store: bool,
    #[command(flatten)]
    pub(crate) allow: consent::AllowArgs,
}

impl WorkflowArgs {
    /// The location of its store.
    pub(crate) fn cache(&self) -> Result<String, StoreError> {
        self.store.of(&self.file)
    }
}

/// Settings of params, and the folder from which their relative paths start.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// As typed: `name=value`.
    pub(crate) set: Vec<String>,
    pub(crate) folder: PathBuf,
}

impl Settings {
    /// The settings typed for this command.
    pub(crate) fn typed(set: &[String]) -> Self {
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self { set: set.to_vec(), folder }
    }
}

/// Where results are stored.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArgs {
    /// The store of results: a folder, or the URL of a bucket (s3://bucket/prefix, gs://…). The
    /// default is the folder `cache` of the project.
    #[arg(long, value_name = "URL", env = "GALERAS_CACHE")]
    cache: Option<String>,
}

impl StoreArgs {
    /// The location of the store: as given, or else the default for this workflow file or folder. A
    /// default that is a link is refused, as a cloned repository can bring one.
    pub(crate) fn of(&self, workflow: &Path) -> Result<String, StoreError> {
        if let Some(given) = &self.cache {
            return Ok(given.clone());
        }
        // The URL of a workflow is refused when that is read.
        let is_url = workflow.to_string_lossy().contains("://");
        let default = default_store(if is_url { Path::new(".") } else { workflow });
        refuse_link(&default)?;
        Ok(default.to_string_lossy().into_owned())
    }

    /// The location of the store, without a workflow: that of the current folder.
    pub(crate) fn here(&self) -> Result<String, StoreError> {
        self.of(Path::new("."))
    }
}

/// The stack of every thread that plans or computes. Memory is only used on demand.
///
/// DataFusion walks an expression once per level, and so does the code that drops, compares or
/// evaluates it; in a build without optimisation a level takes some kilobytes. `MAX_SQL_DEPTH` in
/// `session` limits the levels.
const STACK_BYTES: usize = 64 << 20;

/// The program waits this long at its end for threads that were asked to stop.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// Parses the command line, runs the verb, and returns the exit code.
pub fn main() -> Exit {
    let started = Instant::now();
    if let Some(exit) = complete::answer() {
        return screen::settled(exit);
    }
    match Cli::try_parse() {
        Ok(cli) => start(cli, started).unwrap_or_else(Failure::show),
        Err(error) => screen::settled(screen::show_usage(&error)),
    }
}

fn start(cli: Cli, started: Instant) -> Result<Exit, Failure> {
    process::start_log().map_err(|message| fail(message, Exit::Invalid))?;
    if let Some(problem) = process::clock_problem(SystemTime::now()) {
        return Err(failed(problem));
    }
    process::keep_quiet();
    resources::start_guard(&cli.verb).map_err(|error| no_threads(&error))?;
    // The first thread's stack size depends on the shell, so a new thread is used.
    let thread =
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || perform(cli, started));
    let ended = thread.map_err(|error| no_threads(&error))?.join();
    ended.unwrap_or_else(|panic| Err(process::report_panic(panic.as_ref())))
}

/// Runs the verb, and prints its failure.
fn perform(cli: Cli, started: Instant) -> Result<Exit, Failure> {
    let jobs = match &cli.verb {
        Verb::Run(args) => args.jobs(),
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    };
    // One thread more than jobs, so that signals and progress are served while all compute.
    let workers = jobs + 1;
    let runtime = resources::start_runtime(workers).map_err(|error| no_threads(&error))?;
    let verb = async {
        process::survive_file_limit();
        match cli.verb {
            Verb::Run(args) => run::run(args, started).await,
            Verb::Plan(args) => inspect::plan(args).await,
            Verb::Check(args) => inspect::check(args).await,
            Verb::Explain(args) => inspect::explain(args).await,
            Verb::Graph(args) => inspect::graph(args).await,
            Verb::Ops(args) => ops::ops(&args),
            Verb::Schema(args) => ops::schema(&args).await,
            Verb::Lock(args) => lock::lock(args, started).await,
            Verb::Show(args) => data::show(args).await,
            Verb::Sql(args) => data::sql(args).await,
            Verb::Trace(args) => trace::trace(args).await,
            Verb::Origin(args) => origin::origin(args).await,
            Verb::Report(args) => report::report(args).await,
            Verb::Path(args) => data::path(args).await,
            Verb::Runs(args) => runs::runs(args).await,
            Verb::Diff(args) => runs::diff(args).await,
            Verb::View(args) => view::view(args).await,
            Verb::Push(args) => remote::push(args).await,
            Verb::Pull(args) => remote::pull(args).await,
            Verb::Verify(args) => verify::verify(args).await,
            Verb::Bundle(args) => bundle::bundle(args).await,
            Verb::Export(args) => export::export(args).await,
            #[cfg(feature = "cluster")]
            Verb::Cluster(verb) => cluster::cluster(verb).await,
            Verb::Doctor(args) => doctor::doctor(args).await,
            Verb::Init(args) => init::init(&args),
            Verb::Cache(verb) => cache::cache(verb).await,
            Verb::Completions { shell } => complete::script(shell),
        }
    };
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(verb)));
    let ended = ended.unwrap_or_else(|panic| Err(process::report_panic(panic.as_ref())));
    let exit = ended.unwrap_or_else(Failure::show);
    // Running computations were cancelled and get only a wait too short to notice. Idle threads are
    // joined: detaching a thread while it ends is a race in `pthread_detach` and sometimes crashes.
    runtime.shutdown_timeout(LAST_WAIT);
    worker_threads::settle(LAST_WAIT);
    store_places::remove_scratch();
    Ok(screen::settled(exit))
}
