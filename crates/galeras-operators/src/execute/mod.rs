//! `execute`: runs the programs of rows in a sandbox, and decides if they are right.

mod args;
mod judge;
mod language;
mod oracle;
mod runner;
mod tables;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use walkdir::WalkDir;

use self::args::{ExecuteArgs, RunLimits};
use self::oracle::{Grade, ORACLE, ORACLE_MODULES, Oracles, check_ports};
use self::runner::{RunOutcome, RunResult, Runner, Task};
use self::tables::{RowEnd, tables};
use galeras_base::digest::Digest;
use galeras_base::id::ID;
use galeras_base::small_file;
use galeras_operator::worker_threads::{StopOnDrop, on_thread};
use galeras_operator::{
    Access, Answers, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Grain,
    InputPorts, Inputs, LowerContext, Lowering, Operator, PaidResult, PaidStep, PaymentTerms, Port,
    SideFile, StepError, Tell, TypedOperator, args_schema,
};
use galeras_sandbox::{InputFile, Specification};
use galeras_sql::functions::template::{RenderError, Row, Templates};
use galeras_workflow::code::Code;

use crate::sandbox::machine;

pub(crate) use self::args::{duration, size};
pub(crate) use self::language::Language;
pub(crate) use self::runner::NoResult;
pub(crate) use self::tables::{input_rows, table};

/// The version of a run's question and of its kept result.
const KEPT: u32 = 1;
/// The largest file that is copied next to programs.
const MOST_FILE_BYTES: u64 = 64 << 20;
/// A program has at least this time if a reference decides.
const LEAST_TIMEOUT: Duration = Duration::from_secs(1);

struct ExecuteOperator;

/// The operator.
pub const EXECUTE: &dyn Operator = &ExecuteOperator;

impl TypedOperator for ExecuteOperator {
    type Args = ExecuteArgs;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "execute",
        version: 1,
        grain: Grain::of::<BoundExecute, _>(),
        effect: Effect::External,
        inputs: InputPorts::OneAnd(&[ORACLE, ORACLE_MODULES]),
        doc: include_str!("doc.md"),
        args_schema: args_schema::<ExecuteArgs>,
    };

    fn bind(args: ExecuteArgs, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let has_oracle = [ORACLE, ORACLE_MODULES].iter().any(|port| cx.inputs.contains_key(*port));
        let mut errors = args.conflicts(has_oracle);
        if has_oracle {
            errors.extend(check_ports(cx, &args.oracle_id));
        }
        errors.extend(args.sandbox.check(&cx.base));
        let limits = args.limits().map_err(|mistakes| errors.extend(mistakes)).ok();
        let input = cx.input();
        let mut reads = BTreeSet::new();
        match Templates::new(args.templates()) {
            Err(mistakes) => errors.extend(mistakes.into_iter().map(|mistake| {
                ArgError::new(mistake.template, Code::BadTemplate, mistake.message)
            })),
            Ok(templates) => {
                for (path, _) in args.templates() {
                    for name in templates.variables(path, |name| input.field(name).is_some()) {
                        if input.field(&name).is_none() {
                            errors.push(ArgError::unknown_column(path, &name, input.names()));
                        }
                        reads.insert(name);
                    }
                }
            }
        }
        for (at, name) in args.files.iter().enumerate() {
            if !cx.base.join(name).exists() {
                let message = format!("there is no file or folder `{name}`");
                errors.push(ArgError::missing_file(
                    format!("files[{at}]"),
                    message,
                    &cx.base,
                    name,
                ));
            }
        }
        match limits {
            Some(limits) if errors.is_empty() => {
                // A container has programs of its own, and a command may be any program.
                let is_known = args.command.is_none() && !args.sandbox.is_wrapped();
                let language = args.language().filter(|_| is_known);
                let version = language.map(|language| language.version());
                let (base, ports) = (cx.base.clone(), tables::ports(&input, has_oracle));
                let reads = reads.into_iter().collect();
                let step = BoundExecute { args, limits, version, reads, base, ports };
                Ok(Box::new(step) as Box<dyn BoundStep>)
            }
            _ => Err(errors),
        }
    }
}

#[derive(Debug)]
struct BoundExecute {
    args: ExecuteArgs,
    limits: RunLimits,
    /// The version of the language, if Galeras chooses the program: `None` within if it is not
    /// installed.
    version: Option<Option<String>>,
    /// The columns that templates name.
    reads: Vec<String>,
    base: PathBuf,
    ports: Vec<Port>,
}

impl BoundExecute {
    /// The part of a run's question that all rows share: everything besides program, tests and time
    /// that can change a result.
    fn setting(&self) -> Value {
        json!({
            "language": self.args.language(),
            "command": self.args.command,
            "version": self.version,
            "memory": self.limits.memory,
            "output": self.limits.output,
            "sandbox": self.args.sandbox,
        })
    }

    fn paths(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.args.files.iter().map(|name| (name.as_str(), self.base.join(name)))
    }

    /// The files to copy, and the folders to show.
    fn files(&self) -> Result<(Vec<InputFile>, Vec<PathBuf>), StepError> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for (name, path) in self.paths() {
            let unread = |error| unreadable(name, error);
            if path.is_dir() {
                folders.push(path.canonicalize().map_err(unread)?);
                continue;
            }
            let bytes = small_file::read(&path, MOST_FILE_BYTES).map_err(unread)?;
            let mode = path.metadata().map_err(unread)?.permissions().mode();
            files.push(InputFile { path: inner_path(name), bytes, executable: mode & 0o111 != 0 });
        }
        Ok((files, folders))
    }

    /// The ids of the oracles of rows.
    fn oracle_ids(&self, rows: &RecordBatch) -> Result<ArrayRef, StepError> {
        let name = &self.args.oracle_id;
        let missing = || StepError::new(format!("the input has no `{name}`"));
        Ok(cast(rows.column_by_name(name).ok_or_else(missing)?, &DataType::Utf8)?)
    }

    /// The programs of each row, or the reason why there is none.
    fn tasks(
        &self,
        rows: &RecordBatch,
        oracles: Option<&Oracles>,
    ) -> Result<Vec<Result<RowTasks, NoTask>>, StepError> {
        let templates = Templates::new(self.args.templates()).map_err(|mistakes| {
            let first = mistakes.into_iter().next().map(|mistake| mistake.message);
            StepError::new(first.unwrap_or_default())
        })?;
        let column = |name: &String| {
            let column = rows.column_by_name(name);
            let missing = || StepError::new(format!("the input has no `{name}`"));
            Ok((name.clone(), column.ok_or_else(missing)?.as_ref()))
        };
        let columns: Vec<(String, &dyn Array)> =
            self.reads.iter().map(column).collect::<Result<_, StepError>>()?;
        let timeout = u64::try_from(self.limits.timeout.as_millis()).unwrap_or(u64::MAX);
        let ids = match oracles {
            Some(_) => Some(self.oracle_ids(rows)?),
            None => None,
        };
        let mut tasks = Vec::with_capacity(rows.num_rows());
        for at in 0..rows.num_rows() {
            let row = Row::of(&columns, at)?;
            let mut texts: HashMap<&str, String> = HashMap::new();
            let mut failed = None;
            for (name, _) in self.args.templates() {
                match templates.render(name, &row) {
                    Ok(text) => drop(texts.insert(name, text)),
                    Err(RenderError::Row(reason)) => failed = Some(format!("`{name}`: {reason}")),
                    Err(RenderError::Template(reason)) => {
                        return Err(StepError::new(format!("the template of `{name}`: {reason}")));
                    }
                }
            }
            if let Some(reason) = failed {
                tasks.push(Err(("template", reason)));
                continue;
            }
            let mut task = Task {
                program: texts.remove("program").unwrap_or_default(),
                tests: texts.remove("tests"),
                expected: texts.remove("expected"),
                stdin: texts.remove("stdin"),
                timeout,
                module: None,
            };
            let mut grade = None;
            if let (Some(oracles), Some(ids)) = (oracles, &ids) {
                let id = ids.as_string::<i32>();
                let id = if id.is_null(at) { "" } else { id.value(at) };
                match oracles.task(id, &task.program, task.tests.take()) {
                    Ok(made) => {
                        (task.program, task.tests) = (made.program, Some(made.tests));
                        (task.module, grade) = (Some(made.module), Some(made.grade));
                    }
                    Err(reason) => {
                        tasks.push(Err(("oracle", reason)));
                        continue;
                    }
                }
            }
            let reference = texts.remove("reference");
            let reference = reference.map(|program| Task { program, ..task.clone() });
            tasks.push(Ok(RowTasks { task, reference, grade }));
        }
        Ok(tasks)
    }
}

/// The rule and the reason for which a row has no programs.
type NoTask = (&'static str, String);

fn unreadable(name: &str, error: std::io::Error) -> StepError {
    StepError::new(format!("cannot read `{name}`: {error}")).because(error)
}

/// The path of a file next to the program: as written, or only its name if that leaves the folder.
fn inner_path(name: &str) -> PathBuf {
    use std::path::Component::{CurDir, Normal};

    let path = Path::new(name);
    let is_below = path.components().all(|part| matches!(part, Normal(_) | CurDir));
    match is_below {
        true => path.components().filter(|part| *part != CurDir).collect(),
        false => path.file_name().map(PathBuf::from).unwrap_or_default(),
    }
}

/// The digest of the files of a folder: names and contents, without the caches of Python.
pub(crate) fn folder_digest(folder: &Path) -> std::io::Result<Digest> {
    let mut files = Vec::new();
    let entries = WalkDir::new(folder).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(|entry| entry.file_name() != "__pycache__") {
        let entry = entry?;
        let name = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let name = name.to_string_lossy().into_owned();
        if entry.file_type().is_file() {
            let digest = Digest::of_reader(small_file::open(entry.path())?)?;
            files.push(json!([name, digest]));
        } else if entry.file_type().is_symlink() {
            let target = std::fs::read_link(entry.path())?;
            files.push(json!([name, target.to_string_lossy()]));
        }
    }
    Ok(Digest::of_json(&Value::from(files)))
}

/// The program of a row, and the one that is right.
struct RowTasks {
    task: Task,
    reference: Option<Task>,
    grade: Option<Grade>,
}

impl BoundStep for BoundExecute {
    fn args(&self) -> Value {
        let templates: Value =
            self.args.templates().into_iter().map(|(name, text)| json!([name, text])).collect();
        let mut args = json!({
            "templates": templates,
            "timeout": u64::try_from(self.limits.timeout.as_millis()).unwrap_or(u64::MAX),
            "timeout_factor": self.args.timeout_factor,
            "repeats": self.args.repeats,
            "setting": self.setting(),
        });
        if self.args.oracle_id != ID {
            args["oracle_id"] = json!(self.args.oracle_id);
        }
        args
    }

    fn recipe_args(&self) -> Option<Value> {
        // The question of a run has everything else.
        Some(json!({"language": self.args.language(), "sandbox": self.args.sandbox}))
    }

    fn recipe_version(&self) -> Option<u32> {
        Some(KEPT)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        self.paths()
            .map(|(name, path)| {
                let digest = match path.is_dir() {
                    true => folder_digest(&path),
                    false => small_file::open(&path).and_then(Digest::of_reader),
                };
                let digest = digest.map_err(|error| unreadable(name, error))?;
                Ok(SideFile { name: name.to_string(), digest })
            })
            .collect()
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        let paths = self.paths().enumerate();
        paths.map(|(at, (_, path))| (format!("files[{at}]"), path)).collect()
    }

    fn missing(&self) -> Vec<ArgError> {
        let Some(language) = self.args.language().filter(|_| self.version == Some(None)) else {
            return Vec::new();
        };
        let program = language.recipe().version[0];
        let message = format!(
            "programs of the language {} need `{program}`, which is not in the folders of the system",
            language.name()
        );
        let help = "install it for all users, or name another one with `command`";
        vec![ArgError::new("language", Code::MissingFile, message).help(help)]
    }

    fn demands(&self) -> Vec<Demand> {
        let read = |(at, (_, path)): (usize, (&str, PathBuf))| {
            Demand::new(format!("files[{at}]"), Access::Read { path })
        };
        let mut demands: Vec<Demand> = self.paths().enumerate().map(read).collect();
        let program = "{{ program }}, such as the answer of a model";
        demands.extend(self.args.sandbox.demands(program, &self.base));
        demands
    }

    fn work_unit(&self) -> &'static str {
        "executions"
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Paid(self)
    }
}

impl PaidStep for BoundExecute {
    fn terms(&self) -> Option<PaymentTerms> {
        None
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<PaidResult, StepError>> {
        Box::pin(async move {
            let oracles = Oracles::read(&mut inputs).await?;
            let rows = input_rows(&mut inputs).await?;
            let tasks = self.tasks(&rows, oracles.as_ref())?;
            let grades: Vec<Option<Grade>> =
                tasks.iter().map(|row| row.as_ref().ok().and_then(|row| row.grade)).collect();
            let setting =
                json!({"v": KEPT, "setting": self.setting(), "files": self.side_files()?});
            let mut executions = Executions::new(self, cx, answers, setting);
            let references = tasks.iter().flatten().filter_map(|row| row.reference.clone());
            executions.complete(references.map(|task| (task, 1)).collect()).await?;
            let timed: Vec<Result<Task, RowFailure>> =
                tasks.into_iter().map(|row| executions.timed(row)).collect();
            let repeats = self.args.repeats;
            let programs = timed.iter().flatten().map(|task| (task.clone(), repeats));
            executions.complete(programs.collect()).await?;
            let mut retry = 0;
            let ends: Vec<RowEnd<'_>> = timed
                .into_iter()
                .map(|task| {
                    task.and_then(|task| executions.runs(&task, repeats)).map_err(|failure| {
                        retry += u64::from(failure.again);
                        (failure.rule, failure.reason)
                    })
                })
                .collect();
            cx.retry.fetch_add(retry, Ordering::Relaxed);
            let grades = oracles.is_some().then_some(grades.as_slice());
            let ports = tables(cx, &self.ports, &rows, &ends, grades)?;
            Ok(PaidResult { ports, computed: executions.computed, reused: executions.reused })
        })
    }
}

/// Why a row has no result.
struct RowFailure {
    rule: &'static str,
    reason: String,
    /// The next run may succeed.
    again: bool,
}

/// The machine failed, not the program.
const INFRA: &str = "infra";

/// The runs of a step: those of earlier ones, and those that are made now.
struct Executions<'a> {
    step: &'a BoundExecute,
    cx: &'a LowerContext,
    answers: &'a dyn Answers,
    setting: Value,
    runner: Option<Arc<Runner>>,
    stop: StopOnDrop,
    results: HashMap<Digest, Result<RunResult, String>>,
    computed: u64,
    reused: u64,
}

impl<'a> Executions<'a> {
    fn new(
        step: &'a BoundExecute,
        cx: &'a LowerContext,
        answers: &'a dyn Answers,
        setting: Value,
    ) -> Self {
        Self {
            step,
            cx,
            answers,
            setting,
            runner: None,
            stop: StopOnDrop::default(),
            results: HashMap::new(),
            computed: 0,
            reused: 0,
        }
    }

    /// Identifies a run.
    fn question(&self, task: &Task, run: u32) -> Digest {
        Digest::of_json(&json!({"setting": self.setting, "task": task, "run": run}))
    }

    /// Makes these runs, each task as often as its number, unless an earlier result is known.
    async fn complete(&mut self, tasks: Vec<(Task, u32)>) -> Result<(), StepError> {
        let mut asked = HashSet::new();
        let mut fresh: Vec<(Digest, Task)> = Vec::new();
        for (task, repeats) in tasks {
            for run in 0..repeats {
                let question = self.question(&task, run);
                if self.results.contains_key(&question) || !asked.insert(question) {
                    continue;
                }
                let known = self.answers.known(&question);
                match known.iter().rev().find_map(|text| serde_json::from_str(text).ok()) {
                    Some(result) => {
                        self.results.insert(question, Ok(result));
                        self.reused += 1;
                    }
                    None => fresh.push((question, task.clone())),
                }
            }
        }
        let before = self.computed;
        self.computed += fresh.len() as u64;
        (self.cx.tell)(Tell::Total { work: self.computed, reused: self.reused });
        if fresh.is_empty() {
            return Ok(());
        }
        let runner = self.runner().await?;
        let concurrency = self.step.args.concurrency.map_or(self.cx.env.jobs, |n| n as usize);
        let concurrency = concurrency.max(1);
        // Storing a result does not count.
        let places = Semaphore::new(concurrency);
        let (answers, places) = (self.answers, &places);
        let mut running = futures::stream::iter(fresh)
            .map(|(question, task)| {
                let runner = Arc::clone(&runner);
                async move {
                    // The semaphore is never closed.
                    let place = places.acquire().await;
                    let ended = on_thread(move || Ok(runner.run(&task))).await?;
                    drop(place);
                    if let Ok(result) = &ended {
                        let text = serde_json::to_string(result).unwrap_or_default();
                        answers.keep(&question, &text).await?;
                    }
                    Ok::<_, StepError>((question, ended))
                }
            })
            .buffer_unordered(2 * concurrency);
        let (mut done, mut warned) = (before, false);
        while let Some(ended) = running.next().await {
            let (question, ended) = ended?;
            let result = match ended {
                Ok(result) => Ok(result),
                Err(NoResult::Interrupted) => return Err(StepError::interrupted()),
                Err(NoResult::All(error)) => return Err(error),
                Err(NoResult::Machine(reason)) => {
                    if !std::mem::replace(&mut warned, true) {
                        let text = format!("{reason} (the next run tries again)");
                        (self.cx.tell)(Tell::Warning(text));
                    }
                    Err(reason)
                }
            };
            self.results.insert(question, result);
            done += 1;
            (self.cx.tell)(Tell::Progress(done));
        }
        Ok(())
    }

    /// Tries what the machine offers when the first program has to run.
    async fn runner(&mut self) -> Result<Arc<Runner>, StepError> {
        if let Some(runner) = &self.runner {
            return Ok(Arc::clone(runner));
        }
        let BoundExecute { args, limits, base, .. } = self.step;
        // The first look at the machine starts programs.
        on_thread(|| Ok(machine())).await?;
        let sandbox = args.sandbox.open(self.cx)?;
        let mut rights = Specification::new(Vec::<String>::new());
        let files;
        (files, rights.readable) = self.step.files()?;
        args.sandbox.show_folders(self.cx, base, &sandbox, &mut rights)?;
        let mut readable = rights.readable;
        let language = args.language();
        readable.extend(language.map(|language| language.readable()).unwrap_or_default());
        let runner = Arc::new(Runner {
            sandbox,
            language,
            command: args.command.clone(),
            files,
            readable,
            writable: rights.writable,
            memory: limits.memory,
            output: limits.output,
            testers: Mutex::default(),
            cancel: self.cx.env.cancel.clone(),
            stop: self.stop.flag(),
        });
        self.runner = Some(Arc::clone(&runner));
        Ok(runner)
    }

    /// The task of a row, with the time that its reference allows.
    fn timed(&self, row: Result<RowTasks, NoTask>) -> Result<Task, RowFailure> {
        let failed = |rule, reason| RowFailure { rule, reason, again: false };
        let RowTasks { mut task, reference, .. } =
            row.map_err(|(rule, reason)| failed(rule, reason))?;
        let (Some(reference), Some(factor)) = (reference, self.step.args.timeout_factor) else {
            return Ok(task);
        };
        let runs = self.runs(&reference, 1)?;
        let Some(run) = runs.first().filter(|run| run.outcome == RunOutcome::Passed) else {
            let why = runs.first().map(|run| {
                let message = run.message.as_deref().unwrap_or_default();
                format!("the reference does not pass: {}: {message}", run.outcome.name())
            });
            return Err(failed("reference", why.unwrap_or_default()));
        };
        let seconds = run.seconds.unwrap_or_default() * factor;
        let most = Duration::from_millis(task.timeout);
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(most);
        let time = time.max(LEAST_TIMEOUT).min(most);
        task.timeout = u64::try_from(time.as_millis()).unwrap_or(task.timeout);
        Ok(task)
    }

    /// The results of all runs of a task.
    fn runs(&self, task: &Task, repeats: u32) -> Result<Vec<&RunResult>, RowFailure> {
        let mut runs = Vec::new();
        for run in 0..repeats {
            match self.results.get(&self.question(task, run)) {
                Some(Ok(result)) if result.outcome == RunOutcome::Invalid => {
                    let reason = result.message.clone().unwrap_or_default();
                    return Err(RowFailure { rule: "tests", reason, again: false });
                }
                Some(Ok(result)) => runs.push(result),
                Some(Err(reason)) => {
                    return Err(RowFailure { rule: INFRA, reason: reason.clone(), again: true });
                }
                None => {
                    let reason = "a defect: it did not run".into();
                    return Err(RowFailure { rule: INFRA, reason, again: true });
                }
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_next_to_the_program() {
        for (name, inner) in [
            ("helper.py", "helper.py"),
            ("./data/x.csv", "data/x.csv"),
            ("../x.csv", "x.csv"),
            ("/a/b", "b"),
        ] {
            assert_eq!(inner_path(name), Path::new(inner), "{name}");
        }
    }

    #[test]
    fn a_folder_is_known_by_names_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        let digest = || folder_digest(folder.path()).unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        let first = digest();
        std::fs::create_dir(folder.path().join("__pycache__")).unwrap();
        std::fs::write(folder.path().join("__pycache__/a"), "1").unwrap();
        assert_eq!(digest(), first);
        std::fs::write(folder.path().join("a"), "2").unwrap();
        assert_ne!(digest(), first);
    }
}
