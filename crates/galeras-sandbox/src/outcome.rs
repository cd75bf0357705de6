//! The facts about a run: how it ended, what it used, and its outputs.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::layer::Layer;

/// The facts about a finished run. They are not a verdict: an exit code of 0 does not
/// mean that a test has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the program ended.
    pub ending: Ending,
    /// Its usage of the machine.
    pub usage: Usage,
    /// Its standard output, if it was captured.
    pub stdout: Captured,
    /// Its standard error, if it was captured.
    pub stderr: Captured,
    /// The layers that were active.
    pub layers: Vec<Layer>,
}

/// How a program ended. The program is the process that was started; its descendants end with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it, which was not sent because of a limit.
    Signaled(i32),
    /// It reached the limit of processor time.
    CpuTime,
    /// It reached the limit of time on the clock.
    WallTime,
    /// Its processes used more memory than the limit. An allocation that is refused does not end a
    /// program: it then ends as it wants to, in Python with a `MemoryError`.
    Memory,
    /// It had more processes than the limit. Within a namespace `fork` fails first.
    Processes,
    /// Its files were larger or more than the limit. On the scratch folder's own file system
    /// writing fails first.
    Scratch,
    /// It printed more than the limit.
    Output,
    /// It exited with 0, but processes that it left running kept its standard output open for longer than
    /// [`Specification::patience`](crate::Specification::patience): what they had still to print is lost.
    OutputOpen,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signaled(signal) => write!(f, "signal {signal}"),
            Self::CpuTime => f.write_str("limit of processor time"),
            Self::WallTime => f.write_str("limit of time"),
            Self::Memory => f.write_str("limit of memory"),
            Self::Processes => f.write_str("limit of processes"),
            Self::Scratch => f.write_str("limit of files"),
            Self::Output => f.write_str("limit of output"),
            Self::OutputOpen => f.write_str("an output that stays open"),
        }
    }
}

/// A run's usage of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time of the program and its descendants.
    pub cpu: Duration,
    /// Time on the clock.
    pub wall: Duration,
    /// The most memory that was in use, in bytes: of one process at any time, or of the whole
    /// tree when it was measured. At least the few megabytes of the launcher.
    pub peak_memory: u64,
}

/// The start and the end of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The start; everything, if nothing was left out.
    pub head: Vec<u8>,
    /// The end, if something was left out.
    pub tail: Vec<u8>,
    /// Bytes that were printed.
    pub total: u64,
}

impl Captured {
    /// The number of bytes that were left out between the start and the end.
    pub fn left_out(&self) -> u64 {
        self.total.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// The output as text, with a note in place of the bytes that were left out.
    pub fn text(&self) -> Cow<'_, str> {
        if self.left_out() == 0 && self.tail.is_empty() {
            return String::from_utf8_lossy(&self.head);
        }
        let (head, tail) =
            (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        Cow::Owned(match self.left_out() {
            0 => format!("{head}{tail}"),
            bytes => format!("{head}\n[{bytes} bytes left out]\n{tail}"),
        })
    }
}

/// Reads an output of any length and keeps its start and end.
#[derive(Debug)]
pub(crate) struct Clip {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Clip {
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.limit.div_ceil(2).saturating_sub(self.head.len());
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let most = self.limit / 2;
        self.tail.extend(&tail[tail.len().saturating_sub(most)..]);
        self.tail.drain(..self.tail.len().saturating_sub(most));
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The output, in which `names` replace paths that differ from run to run.
    pub(crate) fn finish(mut self, names: &[(String, &str)]) -> Captured {
        let mut tail: Vec<u8> = self.tail.into();
        if self.head.len() as u64 + tail.len() as u64 == self.total {
            self.head.append(&mut tail);
        }
        for (from, to) in names {
            let before = self.head.len() + tail.len();
            self.head = replaced(&self.head, from.as_bytes(), to.as_bytes());
            tail = replaced(&tail, from.as_bytes(), to.as_bytes());
            // `left_out` counts bytes that the program printed and that are not here.
            self.total = self.total + (self.head.len() + tail.len()) as u64 - before as u64;
        }
        Captured { head: self.head, tail, total: self.total }
    }
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    result.extend_from_slice(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_start_and_end() {
        for chunk in [1, 3, 1000] {
            let mut clip = Clip::new(6);
            for bytes in b"0123456789".chunks(chunk) {
                clip.push(bytes);
            }
            let captured = clip.finish(&[]);
            assert_eq!(
                (captured.head.as_slice(), captured.tail.as_slice()),
                (&b"012"[..], &b"789"[..])
            );
            assert_eq!(captured.text(), "012\n[4 bytes left out]\n789");
        }
    }

    #[test]
    fn a_short_output_is_whole() {
        let mut clip = Clip::new(6);
        clip.push(b"/x/y\n");
        clip.push(b"!");
        let captured = clip.finish(&[("/x".into(), "/sandbox")]);
        assert_eq!((captured.text(), captured.left_out()), ("/sandbox/y\n!".into(), 0));
    }
}
