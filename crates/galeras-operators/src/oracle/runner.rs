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
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::tree::Tree;
use super::{Group, Settings};
use crate::execute::NoResult;

/// Compares results; also a part of the tests that an answer has to pass.
pub(crate) const COMPARE: &str = include_str!("python/compare.py");
/// Loads a module and calls its methods; also a part of a program whose answer is judged.
pub(crate) const CASE: &str = include_str!("python/case.py");
const ORACLE: &str = concat!(include_str!("python/compare.py"), include_str!("python/oracle.py"));
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
    /// The paths of all files of the tree that were read.
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
    /// Makes the oracles of the methods of a module.
    pub(super) fn run(
        &self,
        group: &Group,
        tree: &Tree,
        scripts: &[String],
        settings: &Settings,
    ) -> Result<ModuleResult, NoResult> {
        let Some(module) = tree.module(&group.path) else {
            let reason = format!("there is no Python file `{}`", group.path);
            return Ok(ModuleResult::rejected(group, "source", &reason));
        };
        let root = tree.root();
        let below = |path: &str| match path {
            "" => root.clone(),
            path => format!("{root}/{path}"),
        };
        let task = json!({
            "module": &module.name,
            "file": below(&group.path),
            "top": below(&module.top),
            "root": root,
            "methods": group.methods,
            "scripts": scripts.iter().map(|path| below(path)).collect::<Vec<_>>(),
            "seconds": self.timeout.as_secs().max(1),
            "source": settings.source,
            "seed": settings.seed,
            "per_method": settings.per_method,
            "mutants": settings.mutants,
            "repeats": settings.repeats,
        });
        let mut printed = tempfile::tempfile()?;
        let mut command = self.python.clone();
        command.push(".galeras/oracle.py".into());
        let mut specification = Specification::new(command)
            .file(".galeras/oracle.py", ORACLE)
            .file(".galeras/record.py", RECORD)
            .file(".galeras/run.py", RUN);
        specification.files.extend(tree.files());
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
        let limit = |rule, what: &str| {
            let reason = format!("its module took more than the {what}, which is an argument");
            Ok(ModuleResult::rejected(group, rule, &reason))
        };
        match outcome.ending {
            Ending::Exited(0) => {}
            Ending::CpuTime | Ending::WallTime => return limit("timeout", "`timeout`"),
            Ending::Memory => return limit("memory", "`memory`"),
            _ => return Err(NoResult::Machine(ended(&outcome))),
        }
        printed.rewind()?;
        let mut bytes = Vec::new();
        printed.take(MOST_RESULT).read_to_end(&mut bytes)?;
        let result: ModuleResult = serde_json::from_slice(&bytes).map_err(|error| {
            NoResult::Machine(format!("the result of `{}` cannot be read: {error}", group.path))
        })?;
        Ok(ModuleResult { name: module.name, top: module.top, ..result })
    }
}

/// The end of a program that should have ended well, with its last words.
fn ended(outcome: &Outcome) -> String {
    let errors = outcome.stderr.text();
    let last = errors.trim_end().rsplit('\n').next().unwrap_or_default();
    format!("the program that makes oracles ended with {}: {last}", outcome.ending)
}
