//! Runs of programs in sandboxes, and the outcome of each.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use galeras_sandbox::{
    Ending, Input, InputFile, Limits, Outcome, Output, Sandbox, SandboxError, Specification,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::judge::{TestEnd, TestReport, Tester};
use super::language::Language;
use super::oracle::library_copies;
use galeras_operator::StepError;

/// A run may take this many times its processor time on the clock, and at least this long.
const PATIENCE: u32 = 6;
const LEAST_WALL: Duration = Duration::from_secs(10);
/// A program whose tests are over has this long to end.
const END_GRACE: Duration = Duration::from_secs(2);
/// Memory runs out while the program is loaded: see `python/answer.py`.
const NO_MEMORY: i32 = 97;
/// `SIGABRT`: an assertion of C does not hold.
const ABORTED: i32 = 6;

/// The script of a program's process, next to the program. Its name cannot be imported.
const ANSWER_FILE: &str = ".galeras.py";
const START: &str = "import marshal\nexec(marshal.loads(open('.galeras.bin', 'rb').read()))\n";

/// The limits of a compiler.
const COMPILER: Limits = Limits {
    cpu: Duration::from_secs(120),
    wall: Duration::from_secs(600),
    memory: 4 << 30,
    output: 64 << 10,
    output_total: 64 << 20,
    // The executable is copied to the program's sandbox.
    file_size: 64 << 20,
    open_files: 1024,
    processes: 512,
    scratch: 2 << 30,
    scratch_files: 65_536,
};

/// How a run of a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum RunOutcome {
    /// All tests hold.
    Passed,
    /// A test does not hold, or the program ended before its tests.
    Failed,
    /// The program raised an exception, is not valid, or exceeded a limit of files, processes or output.
    Error,
    Timeout,
    OutOfMemory,
    /// A signal ended it.
    Crashed,
    /// The tests are wrong for every program.
    Invalid,
}

impl RunOutcome {
    pub(super) fn name(self) -> &'static str {
        self.into()
    }
}

/// The result of a run, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunResult {
    pub(super) outcome: RunOutcome,
    pub(super) tests_passed: u32,
    pub(super) tests_total: u32,
    pub(super) message: Option<String>,
    pub(super) seconds: Option<f64>,
    pub(super) peak_memory: Option<u64>,
    pub(super) exit_code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) sandbox_layers: Vec<String>,
}

/// Why a run has no result.
pub(crate) enum NoResult {
    /// The run was cancelled.
    Interrupted,
    /// The machine failed; another try may succeed.
    Machine(String),
    /// No run can succeed.
    All(StepError),
}

impl From<SandboxError> for NoResult {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Cancelled => Self::Interrupted,
            SandboxError::Refused(_) | SandboxError::Invalid(_) => {
                Self::All(StepError::new(error.to_string()))
            }
            SandboxError::NotStarted { .. } | SandboxError::Machine { .. } => {
                Self::Machine(error.to_string())
            }
        }
    }
}

impl From<io::Error> for NoResult {
    fn from(error: io::Error) -> Self {
        Self::Machine(error.to_string())
    }
}

/// A program and the way to decide if it is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Task {
    pub(super) program: String,
    pub(super) tests: Option<String>,
    pub(super) expected: Option<String>,
    pub(super) stdin: Option<String>,
    /// The processor time, in milliseconds.
    pub(super) timeout: u64,
    /// The module that the program has and that the interpreter's library must not show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) module: Option<String>,
}

/// Runs the programs of a step. Shared between threads.
pub(super) struct Runner {
    pub(super) sandbox: Sandbox,
    pub(super) language: Option<Language>,
    pub(super) command: Option<Vec<String>>,
    pub(super) files: Vec<InputFile>,
    pub(super) readable: Vec<PathBuf>,
    /// Folders that programs may write to, but not their tests.
    pub(super) writable: Vec<PathBuf>,
    pub(super) memory: u64,
    pub(super) output: u64,
    pub(super) testers: Mutex<Vec<Tester>>,
    pub(super) cancel: CancellationToken,
    pub(super) stop: Arc<AtomicBool>,
}

impl Runner {
    /// Runs a program to its end.
    pub(super) fn run(&self, task: &Task) -> Result<RunResult, NoResult> {
        match (&task.tests, self.language) {
            (Some(tests), Some(Language::Python)) => self.judged(task, tests),
            _ => self.plain(task),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    fn limits(&self, task: &Task) -> Limits {
        let cpu = Duration::from_millis(task.timeout);
        Limits {
            cpu,
            wall: (cpu * PATIENCE).max(LEAST_WALL),
            memory: self.memory,
            output: self.output,
            ..Limits::default()
        }
    }

    /// A run of `command` with the files of the step.
    fn specification(&self, command: Vec<String>, limits: Limits) -> Specification {
        let mut specification = Specification::new(command);
        specification.files.clone_from(&self.files);
        specification.readable.clone_from(&self.readable);
        specification.writable.clone_from(&self.writable);
        specification.limits = limits;
        specification
    }

    fn python(&self) -> Vec<String> {
        self.command.clone().unwrap_or_else(|| vec!["python3".into()])
    }

    /// A program of Python, with tests in another process.
    fn judged(&self, task: &Task, tests: &str) -> Result<RunResult, NoResult> {
        let (ours, theirs) = UnixStream::pair()?;
        let limits = self.limits(task);
        let mut command = self.python();
        command.push(ANSWER_FILE.into());
        let tester = self.tester()?;
        let mut specification = self
            .specification(command, limits)
            .file(ANSWER_FILE, START)
            .file(".galeras.bin", tester.answer())
            .file("program.py", task.program.as_bytes());
        if let Some(module) = &task.module {
            specification.hidden = library_copies(module, &self.readable);
        }
        specification.stdin = Input::Fd(OwnedFd::from(theirs));
        let over: OnceLock<Instant> = OnceLock::new();
        let cancelled =
            || self.is_stopped() || over.get().is_some_and(|at| at.elapsed() > END_GRACE);
        let (ended, report) = std::thread::scope(|scope| {
            let run = scope.spawn(|| self.sandbox.run(specification, &cancelled));
            let stopped = || self.is_stopped();
            let report = tester.judge(&ours, tests, (limits.cpu, limits.wall), &stopped);
            let _ = over.set(Instant::now());
            // The program ends when its channel does.
            drop(ours);
            (run.join(), report)
        });
        if self.is_stopped() {
            return Err(NoResult::Interrupted);
        }
        let ended = ended.map_err(|_| NoResult::Machine("a defect: a thread panicked".into()))?;
        let ended = match ended {
            // It did not end after its tests.
            Err(SandboxError::Cancelled) => None,
            Err(error) => return Err(error.into()),
            Ok(outcome) => Some(outcome),
        };
        let report = report.map_err(|error| {
            NoResult::Machine(format!("the process of the tests does not answer: {error}"))
        })?;
        let (report, again) = report;
        if again {
            self.testers.lock().unwrap_or_else(PoisonError::into_inner).push(tester);
        }
        Ok(self.result(ended, report.into()))
    }

    fn tester(&self) -> Result<Tester, NoResult> {
        let idle = self.testers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(tester) => Ok(tester),
            None => {
                let mut specification = Specification::new(Vec::<String>::new());
                specification.readable.clone_from(&self.readable);
                Tester::start(&self.sandbox, &self.python(), specification)
            }
        }
    }

    /// A program that is judged by its output or, after tests that are a part of it, by its exit code.
    fn plain(&self, task: &Task) -> Result<RunResult, NoResult> {
        let recipe = self.language.map(Language::recipe);
        let file = recipe.map_or("program", |recipe| recipe.file);
        let mark = recipe
            .and_then(|recipe| recipe.end)
            .filter(|_| task.tests.is_some())
            .map(|end| (end, format!("{:016x}", RandomState::new().build_hasher().finish())));
        let mut source = task.program.clone();
        if let Some(tests) = &task.tests {
            source.push('\n');
            source.push_str(tests);
            source.push('\n');
        }
        if let Some((end, mark)) = &mark {
            source.push_str(&end.replace("MARK", mark));
            source.push('\n');
        }
        let own = self.command.clone().map(|mut words| {
            words.push(file.into());
            words
        });
        let words = recipe.map_or(&[][..], |recipe| recipe.run);
        let command = own.unwrap_or_else(|| words.iter().map(ToString::to_string).collect());
        let mut limits = self.limits(task);
        if let Some(expected) = &task.expected {
            limits.output = limits.output.max(2 * expected.len() as u64 + 1024);
        }
        let mut specification = self.specification(command, limits);
        let script = recipe.and_then(|recipe| recipe.compile).filter(|_| self.command.is_none());
        match script {
            None => specification = specification.file(file, source),
            Some(script) => match self.compiled(script, file, source)? {
                Ok(bytes) => {
                    let path = PathBuf::from("program");
                    specification.files.push(InputFile { path, bytes, executable: true });
                }
                Err(failed) => return Ok(*failed),
            },
        }
        if let Some(stdin) = &task.stdin {
            specification.stdin = Input::Bytes(stdin.clone().into_bytes());
        }
        let mut outcome = match self.sandbox.run(specification, &|| self.is_stopped()) {
            // A compiled program can ask for a loader that does not exist.
            Err(SandboxError::NotStarted { reason, .. }) if script.is_some() => {
                let message = format!("its executable does not start: {reason}");
                return Ok(self.result(None, Judgement::of(RunOutcome::Error, message)));
            }
            ended => ended?,
        };
        let is_complete = mark.is_none_or(|(_, mark)| unmarked(&mut outcome, &mark));
        let judgement = match (outcome.ending, &task.expected) {
            (Ending::Exited(0), Some(expected)) => match printed(&outcome, expected) {
                true => Judgement::passed(),
                false => Judgement::of(RunOutcome::Failed, "it prints something else"),
            },
            (Ending::Exited(0), None) if is_complete => Judgement::passed(),
            (Ending::Exited(0), None) => Judgement::of(RunOutcome::Failed, EARLY),
            (Ending::Exited(code), None) => {
                Judgement::of(RunOutcome::Failed, format!("exit code {code}"))
            }
            (Ending::Signaled(ABORTED), None) => Judgement::of(RunOutcome::Failed, "aborted"),
            _ => Judgement::Unfinished { tests: (0, 1) },
        };
        Ok(self.result(Some(outcome), judgement))
    }

    /// The executable, or the result of a program that is not valid.
    fn compiled(
        &self,
        script: &str,
        file: &str,
        source: String,
    ) -> Result<Result<Vec<u8>, Box<RunResult>>, NoResult> {
        let mut executable = tempfile::tempfile()?;
        let command = ["sh", "-c", script].map(String::from).to_vec();
        let mut specification = self.specification(command, COMPILER).file(file, source);
        specification.stdout = Output::Fd(OwnedFd::from(File::try_clone(&executable)?));
        let outcome = self.sandbox.run(specification, &|| self.is_stopped())?;
        match outcome.ending {
            Ending::Exited(0) => {
                let mut bytes = Vec::new();
                executable.rewind()?;
                executable.read_to_end(&mut bytes)?;
                Ok(Ok(bytes))
            }
            // Neither the program nor its tests are to blame.
            Ending::Exited(127) => {
                let text = outcome.stderr.text().trim().to_string();
                Err(NoResult::Machine(format!("the compiler is not installed: {text}")))
            }
            ending => {
                let message = format!("it does not compile ({ending})");
                let judgement = Judgement::of(RunOutcome::Error, message);
                Ok(Err(Box::new(self.result(Some(outcome), judgement))))
            }
        }
    }

    fn result(&self, ended: Option<Outcome>, judgement: Judgement) -> RunResult {
        let most = usize::try_from(self.output).unwrap_or(usize::MAX);
        let (stdout, stderr) = ended.as_ref().map_or_else(Default::default, |outcome| {
            (clipped(&outcome.stdout.text(), most), clipped(&outcome.stderr.text(), most))
        });
        let exit_code = ended.as_ref().and_then(|outcome| match outcome.ending {
            Ending::Exited(code) => Some(code),
            _ => None,
        });
        let (outcome, tests, message) = match judgement {
            Judgement::Reached { outcome, tests, message } => (outcome, tests, message),
            Judgement::Unfinished { tests } => {
                let ending = ended.as_ref().map(|outcome| outcome.ending);
                let (outcome, message) = by_ending(ending, &stderr);
                (outcome, tests, Some(message))
            }
        };
        RunResult {
            outcome,
            tests_passed: tests.0,
            tests_total: tests.1,
            message,
            seconds: ended.as_ref().map(|outcome| outcome.usage.cpu.as_secs_f64()),
            peak_memory: ended.as_ref().map(|outcome| outcome.usage.peak_memory),
            exit_code,
            stdout,
            stderr,
            sandbox_layers: self.sandbox.layers().iter().map(ToString::to_string).collect(),
        }
    }
}

/// The decision about a run.
enum Judgement {
    Reached {
        outcome: RunOutcome,
        tests: (u32, u32),
        message: Option<String>,
    },
    /// The program ended before it was judged.
    Unfinished {
        tests: (u32, u32),
    },
}

impl Judgement {
    fn passed() -> Self {
        Self::Reached { outcome: RunOutcome::Passed, tests: (1, 1), message: None }
    }

    fn of(outcome: RunOutcome, message: impl Into<String>) -> Self {
        Self::Reached { outcome, tests: (0, 1), message: Some(message.into()) }
    }
}

impl From<TestReport> for Judgement {
    fn from(report: TestReport) -> Self {
        let TestReport { end, passed, total, message } = report;
        let tests = (passed, total);
        let outcome = match end {
            TestEnd::Passed => RunOutcome::Passed,
            TestEnd::Failed => RunOutcome::Failed,
            TestEnd::Error => RunOutcome::Error,
            TestEnd::OutOfMemory => RunOutcome::OutOfMemory,
            TestEnd::Invalid => RunOutcome::Invalid,
            TestEnd::Timeout => RunOutcome::Timeout,
            TestEnd::Gone => return Self::Unfinished { tests },
        };
        Self::Reached { outcome, tests, message }
    }
}

const EARLY: &str = "the program ended before its tests";

/// The outcome of a program that ended before it was judged, and the reason.
fn by_ending(ending: Option<Ending>, stderr: &str) -> (RunOutcome, String) {
    let Some(ending) = ending else { return (RunOutcome::Failed, EARLY.into()) };
    let outcome = match ending {
        Ending::Exited(0) => return (RunOutcome::Failed, EARLY.into()),
        Ending::Exited(NO_MEMORY) | Ending::Memory => RunOutcome::OutOfMemory,
        Ending::Signaled(_) => RunOutcome::Crashed,
        Ending::CpuTime | Ending::WallTime => RunOutcome::Timeout,
        _ => RunOutcome::Error,
    };
    let last = stderr.trim_end().rsplit('\n').next().filter(|line| !line.is_empty());
    let message = match (ending, last) {
        (Ending::Exited(_), Some(line)) => line.to_string(),
        _ => ending.to_string(),
    };
    (outcome, message)
}

/// Removes the mark after the last test from the output; false if it is not there.
fn unmarked(outcome: &mut Outcome, mark: &str) -> bool {
    let out = &mut outcome.stdout;
    let bytes = if out.tail.is_empty() { &mut out.head } else { &mut out.tail };
    let end = bytes.trim_ascii_end().len();
    let start = end.checked_sub(mark.len() + 1);
    let found =
        start.filter(|start| bytes[*start] == b'\n' && &bytes[*start + 1..end] == mark.as_bytes());
    if let Some(start) = found {
        out.total = out.total.saturating_sub((bytes.len() - start) as u64);
        bytes.truncate(start);
    }
    found.is_some()
}

/// True if a program printed these lines.
fn printed(outcome: &Outcome, expected: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim_end().split('\n');
        lines.map(|line| line.trim_end().to_string()).collect()
    };
    outcome.stdout.left_out() == 0 && lines(&outcome.stdout.text()) == lines(expected)
}

/// The start of a text, at most this many bytes.
fn clipped(text: &str, most: usize) -> String {
    // The note about bytes that the sandbox left out is short.
    if text.len() <= most.saturating_add(100) {
        return text.to_string();
    }
    let end = text.floor_char_boundary(most);
    format!("{}\n[{} bytes left out]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galeras_sandbox::{Captured, Usage};

    fn outcome(stdout: &str) -> Outcome {
        let head = stdout.as_bytes().to_vec();
        let total = head.len() as u64;
        Outcome {
            ending: Ending::Exited(0),
            usage: Usage::default(),
            stdout: Captured { head, tail: Vec::new(), total },
            stderr: Captured::default(),
            layers: Vec::new(),
        }
    }

    #[test]
    fn the_mark_after_the_last_test_is_no_output() {
        for (stdout, found, left) in
            [("a\nm1\n", true, "a"), ("\nm1", true, ""), ("m1", false, "m1"), ("a\n", false, "a\n")]
        {
            let mut outcome = outcome(stdout);
            assert_eq!(unmarked(&mut outcome, "m1"), found, "{stdout:?}");
            assert_eq!(outcome.stdout.text(), left, "{stdout:?}");
        }
    }

    #[test]
    fn spaces_at_the_end_do_not_count() {
        for (stdout, expected, same) in [
            ("1 2 \n3\n\n", "1 2\n3", true),
            ("1\n\n2\n", "1\n2\n", false),
            (" 1", "1", false),
            ("", "\n", true),
        ] {
            assert_eq!(printed(&outcome(stdout), expected), same, "{stdout:?}");
        }
    }
}
