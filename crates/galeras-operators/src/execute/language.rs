//! The languages of programs: one table of files and command lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use galeras_sandbox::{TEMPORARY, WORK, environment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language of programs.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Language {
    #[default]
    Python,
    Bash,
    Node,
    Java,
    Go,
    Rust,
    C,
    Cpp,
}

/// The files and command lines of a language.
pub(super) struct Recipe {
    /// The program's file.
    pub(super) file: &'static str,
    /// A shell command that compiles the file and prints the executable.
    pub(super) compile: Option<&'static str>,
    /// The words that run the file, or the executable.
    pub(super) run: &'static [&'static str],
    /// The words that print the version.
    pub(super) version: [&'static str; 2],
    /// A statement that prints a mark, `MARK`, after the last test.
    pub(super) end: Option<&'static str>,
}

const PYTHON: Recipe = Recipe {
    file: "program.py",
    compile: None,
    run: &["python3", "program.py"],
    version: ["python3", "--version"],
    end: None,
};

const BASH: Recipe = Recipe {
    file: "program.sh",
    compile: None,
    run: &["bash", "program.sh"],
    version: ["bash", "--version"],
    end: Some("printf '\\n%s' 'MARK'"),
};

const NODE: Recipe = Recipe {
    file: "program.js",
    compile: None,
    run: &["node", "program.js"],
    version: ["node", "--version"],
    end: Some(";console.log('\\nMARK');"),
};

const JAVA: Recipe = Recipe {
    file: "Main.java",
    compile: None,
    // Java's launcher compiles a single file itself.
    run: &["java", "-ea", "-XX:+UseSerialGC", "-XX:-UsePerfData", "Main.java"],
    version: ["java", "--version"],
    end: None,
};

const GO: Recipe = Recipe {
    file: "main.go",
    compile: Some(
        "go build -trimpath -o \"$TMPDIR/program\" main.go >&2 && cat \"$TMPDIR/program\"",
    ),
    run: &["./program"],
    version: ["go", "version"],
    end: None,
};

const RUST: Recipe = Recipe {
    file: "program.rs",
    compile: Some(
        "rustc --edition 2021 -O -o \"$TMPDIR/program\" program.rs >&2 && cat \"$TMPDIR/program\"",
    ),
    run: &["./program"],
    version: ["rustc", "--version"],
    end: None,
};

const C: Recipe = Recipe {
    file: "program.c",
    compile: Some("gcc -O2 -o \"$TMPDIR/program\" program.c -lm >&2 && cat \"$TMPDIR/program\""),
    run: &["./program"],
    version: ["gcc", "--version"],
    end: None,
};

const CPP: Recipe = Recipe {
    file: "program.cpp",
    compile: Some(
        "g++ -std=c++17 -O2 -o \"$TMPDIR/program\" program.cpp >&2 && cat \"$TMPDIR/program\"",
    ),
    run: &["./program"],
    version: ["g++", "--version"],
    end: None,
};

impl Language {
    /// The name in workflows.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    pub(super) fn recipe(self) -> &'static Recipe {
        match self {
            Self::Python => &PYTHON,
            Self::Bash => &BASH,
            Self::Node => &NODE,
            Self::Java => &JAVA,
            Self::Go => &GO,
            Self::Rust => &RUST,
            Self::C => &C,
            Self::Cpp => &CPP,
        }
    }

    /// The folders outside those of every sandbox that the language needs.
    pub(super) fn readable(self) -> Vec<PathBuf> {
        // Debian keeps the configuration of Java there, and Java does not start without it.
        let found: Vec<std::fs::DirEntry> = match self {
            Self::Java => std::fs::read_dir("/etc").into_iter().flatten().flatten().collect(),
            _ => Vec::new(),
        };
        let is_java = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"java-");
        let folders = found.into_iter().filter(|entry| is_java(&entry.file_name()));
        folders.map(|entry| entry.path()).collect()
    }

    /// The first line that the toolchain prints about its version; `None` if it is not installed.
    /// It is asked once.
    pub(crate) fn version(self) -> Option<String> {
        static KNOWN: Mutex<BTreeMap<&str, Option<String>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(self.name()).or_insert_with(|| asked(self.recipe().version)).clone()
    }
}

/// The program runs as it does in a sandbox: with the same folders of programs, and nothing of the
/// user's environment.
fn asked([program, argument]: [&str; 2]) -> Option<String> {
    let variables = environment(Path::new(WORK), Path::new(TEMPORARY));
    let folders = variables.get("PATH")?.split(':');
    let program = folders.map(|folder| Path::new(folder).join(program)).find(|p| p.is_file())?;
    let printed = Command::new(program)
        .arg(argument)
        .env_clear()
        .envs(&variables)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&printed.stdout);
    text.lines().next().map(|line| line.trim().to_string())
}
