//! The programs that make the oracles of a module, in a sandbox, and their result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use galeras_sandbox::{Ending, Input, Limits, Outcome, Output, Sandbox, Specification};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::tree::{ModuleName, Tree};
use super::{Group, RecordJob, Settings};
use crate::execute::NoResult;

/// Compares results; also a part of the tests that an answer has to pass.
pub(crate) const COMPARE: &str = include_str!("python/compare.py");
/// Loads a module and calls its methods; also a part of a program whose answer is judged.
pub(crate) const CASE: &str = include_str!("python/case.py");
const ORACLE: &str = concat!(
    include_str!("python/compare.py"),
    include_str!("python/case.py"),
    include_str!("python/oracle.py")
);
const RECORD: &str = concat!(
    include_str!("python/compare.py"),
    include_str!("python/case.py"),
    include_str!("python/record.py")
);
const RUN: &str = concat!(
    include_str!("python/compare.py"),
    include_str!("python/case.py"),
    include_str!("python/run.py")
);

/// A module may take this many times its processor time on the clock.
const PATIENCE: u32 = 6;
/// The most bytes of a result.
const MOST_RESULT: u64 = 256 << 20;

/// A test case of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    /// `doctests`, `calls` or `mutated`.
    pub(crate) source: String,
    /// The doctest or test file in which the call was recorded.
    pub(crate) from: String,
    /// The call as a text for people.
    pub(crate) shown: String,
    /// The arguments and the end of the call, as `case.py` writes them.
    pub(crate) arguments: String,
    pub(crate) expected: String,
}

/// A method that differs in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mutant {
    pub(super) code: String,
    pub(super) operator: String,
    pub(super) line: u32,
    pub(super) killed: bool,
}

/// The oracle of a method, or why it has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum MethodResult {
    Oracle { cases: Vec<Case>, coverage: f64, mutants: Vec<Mutant> },
    Rejected { rule: String, reason: String },
}

/// The results of the methods of a module, by their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ModuleResult {
    /// The module's name in imports, and the folder that it starts at.
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) top: String,
    /// The text of the module.
    pub(super) content: String,
    /// The texts of other files that it needs, by their paths.
    pub(super) files: BTreeMap<String, String>,
    /// The paths of the files of the tree that were read.
    pub(super) read: Vec<String>,
    pub(super) methods: BTreeMap<String, MethodResult>,
}

impl ModuleResult {
    /// The same result for all methods.
    pub(super) fn rejected(group: &Group, rule: &str, reason: &str) -> Self {
        let result = MethodResult::Rejected { rule: rule.into(), reason: reason.into() };
        Self {
            name: String::new(),
            top: String::new(),
            content: String::new(),
            files: BTreeMap::new(),
            read: Vec::new(),
            methods: group.methods.iter().map(|m| (m.id.clone(), result.clone())).collect(),
        }
    }
}

/// The calls of a method that were recorded, with where they were made, and why others were not.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    pub(super) calls: Vec<(String, String)>,
    pub(super) reason: Option<String>,
}

/// The recorded calls by the names of module and method.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Recorded {
    pub(super) methods: BTreeMap<String, BTreeMap<String, Calls>>,
    /// Why the examples or tests did not run to their end.
    pub(super) problem: Option<String>,
    /// The paths of the files of the tree that were read.
    pub(super) read: Vec<String>,
}

/// Runs the programs. Shared between threads.
pub(super) struct Runner {
    pub(super) sandbox: Sandbox,
    pub(super) python: Vec<String>,
    pub(super) readable: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) timeout: Duration,
    pub(super) memory: u64,
    pub(super) cancel: CancellationToken,
    pub(super) stop: Arc<AtomicBool>,
}

impl Runner {
    /// Records the calls that the examples of a module, or a test file, make.
    pub(super) fn record(&self, job: &RecordJob) -> Result<Recorded, NoResult> {
        let tree = &job.tree;
        let module = tree.module(&job.path).filter(|_| !job.is_script);
        let top = module.as_ref().map(|module| module.top.as_str());
        let task = json!({
            "module": module.as_ref().map(|module| &module.name),
            "file": below(tree, &job.path),
            "top": below(tree, top.unwrap_or_default()),
            "root": tree.root(),
            "modules": &*job.modules,
            "tops": job.tops.iter().map(|top| below(tree, top)).collect::<Vec<_>>(),
            "seconds": self.timeout.as_secs_f64(),
            "patience": PATIENCE,
        });
        match self.python("record.py", &task, tree, &job.path)? {
            Ok(recorded) => Ok(recorded),
            Err((_, reason)) => {
                let read = all(tree)?;
                Ok(Recorded { problem: Some(reason), read, ..Recorded::default() })
            }
        }
    }

    /// Makes the oracles of the methods of a module.
    pub(super) fn grade(
        &self,
        group: &Group,
        module: ModuleName,
        tree: &Tree,
        settings: &Settings,
    ) -> Result<ModuleResult, NoResult> {
        let task = json!({
            "module": &module.name,
            "file": below(tree, &group.path),
            "top": below(tree, &module.top),
            "root": tree.root(),
            "methods": group.methods,
            "problem": group.problem,
            "seconds": self.timeout.as_secs().max(1) * u64::from(PATIENCE),
            "source": settings.source,
            "seed": settings.seed,
            "per_method": settings.per_method,
            "mutants": settings.mutants,
            "repeats": settings.repeats,
        });
        match self.python::<ModuleResult>("oracle.py", &task, tree, &group.path)? {
            Ok(result) => Ok(ModuleResult { name: module.name, top: module.top, ..result }),
            Err((rule, reason)) => {
                let read = all(tree)?;
                Ok(ModuleResult { read, ..ModuleResult::rejected(group, rule, &reason) })
            }
        }
    }

    /// The JSON that a program prints, or the rule and the reason if it exceeds a limit.
    fn python<T: DeserializeOwned>(
        &self,
        script: &str,
        task: &Value,
        tree: &Tree,
        path: &str,
    ) -> Result<Result<T, (&'static str, String)>, NoResult> {
        let mut printed = tempfile::tempfile()?;
        let mut command = self.python.clone();
        command.push(format!(".galeras/{script}"));
        let mut specification = Specification::new(command)
            .file(".galeras/oracle.py", ORACLE)
            .file(".galeras/record.py", RECORD)
            .file(".galeras/run.py", RUN);
        specification.files.extend(tree.files(path));
        specification.readable.clone_from(&self.readable);
        specification.writable.clone_from(&self.writable);
        specification.stdin = Input::Bytes(task.to_string().into_bytes());
        specification.stdout = Output::Fd(OwnedFd::from(File::try_clone(&printed)?));
        specification.limits = Limits {
            cpu: self.timeout,
            wall: self.timeout * PATIENCE,
            memory: self.memory,
            ..Limits::default()
        };
        let stopped = || self.stop.load(Ordering::Relaxed) || self.cancel.is_cancelled();
        let outcome = self.sandbox.run(specification, &stopped)?;
        let limit = |rule, name: &str| {
            let reason = format!("`{path}` took more than the argument `{name}` allows");
            Ok(Err((rule, reason)))
        };
        match outcome.ending {
            Ending::Exited(0) => {}
            Ending::CpuTime | Ending::WallTime => return limit("timeout", "timeout"),
            Ending::Memory => return limit("memory", "memory"),
            // A test of the user's may end the process that it runs in.
            _ if script == "record.py" => return Ok(Err(("infra", ended(&outcome)))),
            _ => return Err(NoResult::Machine(ended(&outcome))),
        }
        printed.rewind()?;
        let mut bytes = Vec::new();
        printed.take(MOST_RESULT).read_to_end(&mut bytes)?;
        match serde_json::from_slice(&bytes) {
            Ok(result) => Ok(Ok(result)),
            Err(_) if script == "record.py" => {
                Ok(Err(("infra", "the process ended before it had recorded the calls".into())))
            }
            Err(error) => {
                Err(NoResult::Machine(format!("the result of `{path}` cannot be read: {error}")))
            }
        }
    }
}

/// The paths of all files of the tree, if nobody knows which of them were read.
fn all(tree: &Tree) -> Result<Vec<String>, NoResult> {
    Ok(tree.paths().map_err(NoResult::All)?.into_iter().collect())
}

/// A path of the tree as the programs see it.
fn below(tree: &Tree, path: &str) -> String {
    match path {
        "" => tree.root(),
        path => format!("{}/{path}", tree.root()),
    }
}

/// The end of a program that should have ended well, with its last words.
fn ended(outcome: &Outcome) -> String {
    let errors = outcome.stderr.text();
    let last = errors.trim_end().rsplit('\n').next().unwrap_or_default();
    format!("the program of `oracle` ended with {}: {last}", outcome.ending)
}
