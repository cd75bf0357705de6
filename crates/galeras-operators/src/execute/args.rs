//! The arguments of `execute`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::language::Language;
use crate::sandbox::SandboxArg;
use galeras_base::id::ID;
use galeras_operator::ArgError;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecuteArgs {
    /// A template of the program: the model's code, and the code around it. With the port `oracle`, the
    /// method that replaces the original: all of it, from `def` on.
    pub(super) program: String,
    /// With the port `oracle`: the column with the `id` of the method whose oracle judges the row.
    #[serde(default = "id")]
    pub(super) oracle_id: String,
    /// A template of the tests, in the language of the program. Nothing in it may come from the
    /// model. Python's run in another process than the program; others are put after it.
    #[serde(default)]
    pub(super) tests: Option<String>,
    /// Instead of tests: a template of the output that the program must print. Spaces at the end of
    /// lines and empty lines at the end do not count.
    #[serde(default)]
    pub(super) expected: Option<String>,
    /// A template of the program's standard input, for `expected`.
    #[serde(default)]
    pub(super) stdin: Option<String>,
    /// The language of program and tests. Default: python, unless `command` is given.
    #[serde(default)]
    pub(super) language: Option<Language>,
    /// The words of a command that runs the program, whose file is added as the last word. With
    /// `language: python`, an interpreter.
    #[serde(default)]
    pub(super) command: Option<Vec<String>>,
    /// Files and folders that programs may read, relative to the workflow file. Files are copied to
    /// the working directory under their names; folders are readable where they are.
    #[serde(default)]
    pub(super) files: Vec<String>,
    /// The processor time of a run, such as 500ms, 10s or 2m. A run may take six times as long on the
    /// clock.
    #[serde(default = "timeout")]
    pub(super) timeout: String,
    /// A template of a program that is right. It runs first, and must pass.
    #[serde(default)]
    pub(super) reference: Option<String>,
    /// The processor time of a run as a multiple of that of `reference`: at least one second, and at
    /// most `timeout`.
    #[serde(default)]
    pub(super) timeout_factor: Option<f64>,
    /// The memory of a run, such as 512MiB or 1GiB.
    #[serde(default = "memory")]
    pub(super) memory: String,
    /// The most that is kept of each output of a run.
    #[serde(default = "output")]
    pub(super) output: String,
    /// The number of runs of each program.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) repeats: u32,
    /// The number of programs that run side by side. Default: the number of processors.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1024))]
    pub(super) concurrency: Option<u32>,
    /// The confinement of the programs: `auto`, `none`, or `auto` with more rights as for `exec`.
    /// `none`, `command` and most rights need consent.
    #[serde(default)]
    pub(super) sandbox: SandboxArg,
}

fn id() -> String {
    ID.into()
}

fn timeout() -> String {
    "10s".into()
}

fn memory() -> String {
    "1GiB".into()
}

fn output() -> String {
    "64KiB".into()
}

fn one() -> u32 {
    1
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunLimits {
    pub(super) timeout: Duration,
    pub(super) memory: u64,
    pub(super) output: u64,
}

impl ExecuteArgs {
    /// The language; `None` for that of `command`.
    pub(super) fn language(&self) -> Option<Language> {
        match (self.language, &self.command) {
            (None, Some(_)) => None,
            (language, _) => Some(language.unwrap_or_default()),
        }
    }

    /// The templates by the name of their argument.
    pub(super) fn templates(&self) -> Vec<(&'static str, &str)> {
        let optional = [
            ("tests", &self.tests),
            ("expected", &self.expected),
            ("stdin", &self.stdin),
            ("reference", &self.reference),
        ];
        let optional =
            optional.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
        std::iter::once(("program", self.program.as_str())).chain(optional).collect()
    }

    /// The limits, or the mistakes in them.
    pub(super) fn limits(&self) -> Result<RunLimits, Vec<ArgError>> {
        let mut errors = Vec::new();
        let mut wrong = |path: &str, text: &str, wanted: &str| {
            let message = format!("`{text}` is not {wanted}");
            errors.push(ArgError::new(path, Code::WrongValue, message));
        };
        let timeout = duration(&self.timeout).filter(|timeout| !timeout.is_zero());
        if timeout.is_none() {
            wrong("timeout", &self.timeout, "a time such as 500ms, 10s or 2m");
        }
        let memory = size(&self.memory).filter(|memory| *memory >= 16 << 20);
        if memory.is_none() {
            wrong("memory", &self.memory, "a size such as 1GiB, of at least 16MiB");
        }
        let output = size(&self.output).filter(|output| *output <= 16 << 20);
        if output.is_none() {
            wrong("output", &self.output, "a size such as 64KiB, of at most 16MiB");
        }
        match (timeout, memory, output) {
            (Some(timeout), Some(memory), Some(output)) => {
                Ok(RunLimits { timeout, memory, output })
            }
            _ => Err(errors),
        }
    }

    /// The mistakes in how arguments go together.
    pub(super) fn conflicts(&self, has_oracle: bool) -> Vec<ArgError> {
        let mut errors = Vec::new();
        let mut conflict = |path: &str, message: &str, help: &str| {
            let error = ArgError::new(path, Code::ConflictingArguments, message);
            errors.push(error.help(help));
        };
        if has_oracle {
            let given = [
                ("expected", self.expected.is_some()),
                ("stdin", self.stdin.is_some()),
                ("reference", self.reference.is_some()),
                ("language", self.language() != Some(Language::Python)),
            ];
            for (path, _) in given.into_iter().filter(|(_, given)| *given) {
                let message = format!("the oracle decides, which does not go with `{path}`");
                conflict(
                    path,
                    &message,
                    "remove one of the two; an interpreter needs `language: python`",
                );
            }
        }
        if self.tests.is_some() && self.expected.is_some() {
            let message = "`tests` and `expected` both decide if a program is right";
            conflict("expected", message, "give one of them");
        }
        if self.stdin.is_some() && self.tests.is_some() {
            conflict("stdin", "tests call the program, which has no input", "give `expected`");
        }
        if self.reference.is_some() != self.timeout_factor.is_some() {
            let path = if self.reference.is_some() { "reference" } else { "timeout_factor" };
            let message = "`reference` and `timeout_factor` belong together";
            conflict(path, message, "timeout_factor: 4 gives four times the reference's time");
        }
        if self.tests.is_none() && self.expected.is_none() && !has_oracle {
            let message = "nothing decides if a program is right";
            let error = ArgError::new("program", Code::MissingArgument, message);
            errors.push(error.help(
                "give `tests`, apart from the program so that it cannot reach them, `expected`, or the port \
                 `oracle`",
            ));
        }
        if self.timeout_factor.is_some_and(|factor| !factor.is_finite() || factor <= 0.0) {
            let message = "`timeout_factor` must be more than 0";
            errors.push(ArgError::new("timeout_factor", Code::OutOfRange, message));
        }
        if self.command.as_ref().is_some_and(Vec::is_empty) {
            let message = "`command` needs at least one word";
            errors.push(ArgError::new("command", Code::OutOfRange, message));
        }
        errors
    }
}

pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let seconds = number
        * match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
    // A week, so that multiples stay small.
    (seconds <= 604_800.0).then(|| Duration::from_secs_f64(seconds))
}

pub(crate) fn size(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let factor: u64 = match unit {
        "B" => 1,
        "kB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let bytes = number * factor as f64;
    (bytes <= (1u64 << 50) as f64).then_some(bytes as u64)
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    Some((number.parse::<f64>().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        for (text, milliseconds) in [("10s", 10_000), ("500ms", 500), ("1.5 m", 90_000)] {
            assert_eq!(duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for (text, bytes) in [("1GiB", 1 << 30), ("64 KiB", 65_536), ("1.5kB", 1500), ("0B", 0)] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1 day", "1e3s", "GiB", "9999999999GiB", "9999999h"] {
            assert_eq!((duration(text), size(text)), (None, None), "{text}");
        }
    }
}
