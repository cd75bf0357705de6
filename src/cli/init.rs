//! `init`: a workflow to start from.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::context::{Exit, Failure, cannot_write, check_local, fail, print};
use super::ops::QUICKSTART;
use galeras_base::scratch::WholeFile;
use galeras_base::small_file::{self, MAX_TEXT_BYTES};
use galeras_base::terminal_escape::shell_word;
use galeras_workflow::{Source, parse_source};

#[derive(Args)]
pub(crate) struct InitArgs {
    /// The folder; it is created if it does not exist.
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// The workflow to start from.
    #[arg(long, value_enum, default_value_t)]
    template: Template,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Template {
    /// A tour from methods to effects, with comments.
    #[default]
    Quickstart,
    /// A model completes methods under two prompts.
    Completion,
    /// Two models complete the same methods.
    Compare,
    /// Methods from the history of repositories.
    Mining,
    /// The pass@k of a model on HumanEval.
    Humaneval,
    /// A model judges methods, and people some of them.
    Judge,
    /// The methods of your own code.
    OwnCode,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Quickstart => QUICKSTART,
            Self::Completion => include_str!("../../workflows/templates/completion.yaml"),
            Self::Compare => include_str!("../../workflows/templates/compare.yaml"),
            Self::Mining => include_str!("../../workflows/templates/mining.yaml"),
            Self::Humaneval => include_str!("../../workflows/templates/humaneval.yaml"),
            Self::Judge => include_str!("../../workflows/templates/judge.yaml"),
            Self::OwnCode => include_str!("../../workflows/templates/own-code.yaml"),
        }
    }

    /// The things that a run needs and that are not in the workflow; empty if it has all.
    fn needs(self) -> &'static str {
        match self {
            Self::Quickstart | Self::Completion => "",
            Self::Compare => "two models on servers with OpenAI's protocol: the param `models`",
            Self::Mining => {
                "the network, to search GitHub; `--set repos=owner/name` names repositories instead"
            }
            Self::Humaneval => {
                "HumanEval.jsonl and a server with OpenAI's protocol: the first lines of the file have \
                 the commands"
            }
            Self::Judge => {
                "a model on a server with OpenAI's protocol: the params `model` and `base_url`"
            }
            Self::OwnCode => "a folder with Python files: the param `dir`",
        }
    }

    /// Settings of its first run.
    fn settings(self) -> &'static str {
        match self {
            Self::Quickstart | Self::Completion | Self::Compare | Self::Mining => "",
            Self::Humaneval | Self::Judge => {
                " --set model=NAME --set base_url=http://localhost:8000/v1"
            }
            Self::OwnCode => " --set dir=path/to/code",
        }
    }
}

const NAME: &str = "workflow.yaml";

/// The shipped workflow's name in its comments.
const SHIPPED: &str = "workflows/quickstart.yaml";

/// Its mention of other workflows, which `init` does not write.
const OTHERS: &str = "; see casestudy.yaml, and executed.yaml, which runs answers.)";

/// The template for the user's folder. The schema is not there, only in the program's source.
fn starter(template: Template) -> String {
    template
        .text()
        .lines()
        .filter(|line| !line.starts_with("# yaml-language-server"))
        .map(|line| format!("{}\n", line.replace(SHIPPED, NAME).replace(OTHERS, ".)")))
        .collect()
}

/// Paths that Git should ignore: the store, and the folders and files that the workflow writes.
fn ignored(workflow: &str) -> Vec<String> {
    let (workflow, _) = parse_source(&Source::new(NAME, workflow));
    let mut ignored = vec!["/cache/".to_string()];
    for output in workflow.iter().flat_map(|workflow| &workflow.outputs) {
        let Some(path) = output.path.as_str() else { continue };
        let line = match path.split_once('/') {
            Some((folder, _)) => format!("/{folder}/"),
            None => format!("/{path}"),
        };
        if !ignored.contains(&line) {
            ignored.push(line);
        }
    }
    ignored
}

pub(crate) fn init(args: &InitArgs) -> Result<Exit, Failure> {
    check_local(&args.dir)?;
    let is_yaml = |suffix: &OsStr| suffix == "yaml" || suffix == "yml";
    if args.dir.extension().is_some_and(is_yaml) && !args.dir.exists() {
        let message = format!(
            "{} is the folder to write to, and the file in it is {NAME}; name another folder, as in \
             `galeras init study`",
            args.dir.display()
        );
        return Err(fail(message, Exit::Invalid));
    }
    let text = starter(args.template);
    let file = args.dir.join(NAME);
    if args.dir.is_file() {
        let message = format!("{} is a file; name the folder to write to", args.dir.display());
        return Err(fail(message, Exit::Invalid));
    }
    std::fs::create_dir_all(&args.dir).map_err(|error| {
        fail(format!("cannot create the folder {}: {error}", args.dir.display()), Exit::Disk)
    })?;
    let written = WholeFile::create_in(&args.dir).and_then(|whole| {
        whole.file().write_all(text.as_bytes())?;
        whole.finish_new(&file)
    });
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let message = format!(
                "{} already exists, and nothing was written; name another folder, as in `galeras \
                 init study`, or move the file away",
                file.display()
            );
            fail(message, Exit::Invalid)
        }
        _ => cannot_write(&file)(error),
    })?;
    let ignore = args.dir.join(".gitignore");
    let added = add_lines(&ignore, &ignored(&text)).map_err(cannot_write(&ignore))?;
    // Results and outputs go to the current folder, so the user must enter the new one.
    let enter = match args.dir.as_os_str() {
        here if here == "." => String::new(),
        dir => format!("  cd {}\n", shell_word(&dir.to_string_lossy())),
    };
    let settings = args.template.settings();
    let next = match args.template.needs() {
        "" => "next, run".to_string(),
        needs => format!("it needs {needs}; then run"),
    };
    let command = format!("{enter}  galeras run {NAME}{settings}");
    print(&format!("wrote {}{added}; {next}\n{command}\n", file.display()))
}

/// Makes sure that a file has these lines, and returns the change for the end of a sentence.
fn add_lines(file: &Path, lines: &[String]) -> std::io::Result<String> {
    let before = match small_file::read(file, MAX_TEXT_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let text = format!("# What galeras stores and writes.\n{}\n", lines.join("\n"));
            WholeFile::write(file, text.as_bytes())?;
            return Ok(format!(" and {}", file.display()));
        }
        Err(e) => return Err(e),
    };
    // At the top of a project, an anchored line is the same rule.
    let bare = |line: &str| line.trim().trim_matches('/').to_string();
    let known: Vec<String> = String::from_utf8_lossy(&before).lines().map(bare).collect();
    let missing: Vec<&str> =
        lines.iter().filter(|line| !known.contains(&bare(line))).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(String::new());
    }
    let mut text = before;
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(format!("# galeras\n{}\n", missing.join("\n")).as_bytes());
    WholeFile::write(file, &text)?;
    Ok(format!(", and added {} lines to {}", missing.len(), file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_workflow_names_its_own_file_and_ignores_what_it_writes() {
        for template in Template::value_variants() {
            let text = starter(*template);
            let named: Vec<&str> = text
                .split(|c: char| !(c.is_alphanumeric() || "_./-".contains(c)))
                .filter(|word| word.contains(".yaml"))
                .collect();
            assert!(!named.is_empty() && named.iter().all(|word| *word == NAME), "{named:?}");
            let lines = text.lines().count();
            assert!(*template == Template::Quickstart || lines < 60, "{template:?}: {lines}");
            let ignored = ignored(&text);
            let (workflow, problems) = parse_source(&Source::new(NAME, text.as_str()));
            assert!(problems.is_empty());
            for output in workflow.iter().flat_map(|workflow| &workflow.outputs) {
                let path = format!("/{}", output.path.as_str().unwrap_or_default());
                assert!(ignored.iter().any(|line| path.starts_with(line.as_str())), "{path}");
            }
            assert_eq!(ignored[0], "/cache/");
        }
    }
}
