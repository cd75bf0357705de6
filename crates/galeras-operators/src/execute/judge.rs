//! Tests of Python programs, judged outside the program's process.
//!
//! ```text
//! galeras ─ sandbox of the tests ─ a process per row, which runs the tests
//!         └ sandbox of a program ─ the program
//! ```
//!
//! The two never share a process, a user or a file. This relays requests of the tests (call this
//! function with these values) to the program, and its replies. Replies are plain data: the tests
//! compare values that they have made themselves, so that no method of the program's objects decides
//! anything. A program can only pass by sending right results; it never sees the tests.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use galeras_sandbox::{Input, Limits, Outcome, Sandbox, SandboxError, Specification};
use serde::Deserialize;
use serde_json::json;

use super::runner::NoResult;

/// The script of a program's process, which the process of the tests compiles.
const ANSWER: &str = concat!(include_str!("python/codec.py"), include_str!("python/answer.py"));
/// The script of the process of the tests.
const TESTS: &str = concat!(include_str!("python/codec.py"), include_str!("python/tests.py"));

/// The most bytes of a message.
const MOST_BYTES: u64 = 64 << 20;
/// How often a wait looks if it is still wanted.
const TICK: Duration = Duration::from_millis(200);
/// The life of a process that runs tests, and its memory.
const TESTER_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
const TESTER_MEMORY: u64 = 4 << 30;
/// The time for the process to start, and for tests to end after their program.
const TESTS_GRACE: Duration = Duration::from_secs(30);
/// `SIGXCPU`: the tests themselves took too long.
const OUT_OF_TIME: i32 = 24;

/// How tests end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TestEnd {
    Passed,
    /// An assertion does not hold.
    Failed,
    /// An exception was raised.
    Error,
    OutOfMemory,
    /// The tests are wrong for every program.
    Invalid,
    /// The program did not answer any more.
    Gone,
    /// The tests did not end.
    Timeout,
}

/// The report of the process of the tests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct TestReport {
    pub(super) end: TestEnd,
    pub(super) passed: u32,
    pub(super) total: u32,
    pub(super) message: Option<String>,
}

impl TestReport {
    fn without_tests(end: TestEnd, message: &str) -> Self {
        Self { end, passed: 0, total: 0, message: Some(message.into()) }
    }
}

/// A process that runs tests, one row after the other.
pub(super) struct Tester {
    channel: UnixStream,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Outcome, SandboxError>>>,
    /// The compiled script of a program's process.
    answer: Vec<u8>,
}

impl Tester {
    /// Starts one with this interpreter, in a sandbox for itself.
    pub(super) fn start(
        sandbox: &Sandbox,
        python: &[String],
        specification: Specification,
    ) -> Result<Self, NoResult> {
        let (channel, theirs) = UnixStream::pair()?;
        channel.set_read_timeout(Some(TICK))?;
        let mut specification = specification.file("tests.py", TESTS).file("answer.py", ANSWER);
        specification.command =
            python.iter().cloned().chain(["-I", "tests.py"].map(String::from)).collect();
        specification.stdin = Input::Fd(OwnedFd::from(theirs));
        specification.limits = Limits {
            cpu: TESTER_LIFE,
            wall: TESTER_LIFE,
            memory: TESTER_MEMORY,
            ..Limits::default()
        };
        let (sandbox, stop) = (sandbox.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .spawn(move || sandbox.run(specification, &|| stopped.load(Ordering::Relaxed)))?;
        let mut tester = Self { channel, stop, thread: Some(thread), answer: Vec::new() };
        let started = Instant::now();
        match receive(&tester.channel, &|| started.elapsed() < TESTS_GRACE)? {
            Some(answer) => tester.answer = answer,
            None => {
                return Err(match tester.thread.take().map(JoinHandle::join) {
                    Some(Ok(Err(error))) => error.into(),
                    _ => NoResult::Machine("the process of the tests ended at its start".into()),
                });
            }
        }
        Ok(tester)
    }

    /// The script of a program's process, compiled for `marshal` of the same interpreter.
    pub(super) fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Runs the tests of a row against the program behind `answer`. Returns true if another row may
    /// follow.
    ///
    /// # Errors
    /// If the process of the tests has ended.
    pub(super) fn judge(
        &self,
        answer: &UnixStream,
        tests: &str,
        (cpu, wall): (Duration, Duration),
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<(TestReport, bool)> {
        let started = Instant::now();
        let patient = || !stopped() && started.elapsed() < wall + cpu + TESTS_GRACE;
        answer.set_read_timeout(Some(TICK))?;
        let task = json!({"tests": tests, "seconds": cpu.as_secs() + 1}).to_string();
        send(&self.channel, &[task.as_bytes()])?;
        let mut report = None;
        loop {
            let frame = match receive(&self.channel, &patient) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut && !stopped() => {
                    let report =
                        TestReport::without_tests(TestEnd::Timeout, "the tests do not end");
                    return Ok((report, false));
                }
                frame => frame?,
            };
            let Some((kind, content)) = frame.as_deref().and_then(<[u8]>::split_first) else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            match kind {
                b'A' => {
                    let asked = send(answer, &[content]);
                    match asked.and_then(|()| receive(answer, &|| !stopped())) {
                        Ok(Some(reply)) => send(&self.channel, &[b"R".as_slice(), &reply])?,
                        Ok(None) | Err(_) => send(&self.channel, &[b"G".as_slice()])?,
                    }
                }
                b'V' => report = serde_json::from_slice::<TestReport>(content).ok(),
                _ => {
                    let status: i32 = String::from_utf8_lossy(content).parse().unwrap_or_default();
                    let report = report.unwrap_or_else(|| match status & 0x7f {
                        OUT_OF_TIME => {
                            let message = "the tests took longer than the program may";
                            TestReport::without_tests(TestEnd::Timeout, message)
                        }
                        _ => {
                            let message = "the process of the tests ended before the last test";
                            TestReport::without_tests(TestEnd::Error, message)
                        }
                    });
                    return Ok((report, true));
                }
            }
        }
    }
}

impl Drop for Tester {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It ends when its channel does. If its tests hang, its sandbox asks for the flag soon.
        let _ = self.channel.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends a message of these parts: its length in eight bytes, and the bytes.
fn send(mut stream: &UnixStream, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    stream.write_all(&(length as u64).to_be_bytes())?;
    parts.iter().try_for_each(|part| stream.write_all(part))
}

/// The next message; `None` if the other side has closed.
fn receive(stream: &UnixStream, patient: &dyn Fn() -> bool) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; 8];
    if !fill(stream, &mut header, patient)? {
        return Ok(None);
    }
    let length = u64::from_be_bytes(header);
    if length > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    Ok(fill(stream, &mut bytes, patient)?.then_some(bytes))
}

/// Reads all bytes; false if the other side has closed before.
fn fill(mut stream: &UnixStream, bytes: &mut [u8], patient: &dyn Fn() -> bool) -> io::Result<bool> {
    use io::ErrorKind::{ConnectionReset, Interrupted, TimedOut, WouldBlock};

    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Ok(false),
            Ok(read) => filled += read,
            Err(error) if error.kind() == ConnectionReset => return Ok(false),
            Err(error) if [Interrupted, TimedOut, WouldBlock].contains(&error.kind()) => {
                if !patient() {
                    return Err(TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
