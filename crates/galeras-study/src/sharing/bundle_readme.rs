//! The first page of a bundle, for people who do not know this program.

use std::fmt::Write as _;

use super::bundle_record::{BUNDLE_RECORD, BundleRecord, BundleTable};
use super::listing::LISTING;
use super::ro_crate::METADATA;
use crate::runs::value_text;
use galeras_base::terminal_escape::shell_word;
use galeras_display::{bytes, count};

/// Tables that the page lists; more are in [`BUNDLE_RECORD`].
const LISTED: usize = 200;

/// The study's report, in a bundle that leaves nothing out.
pub const REPORT: &str = "report.html";

/// The page in Markdown, with a link to the report if there is one.
pub(super) fn readme(record: &BundleRecord, has_report: bool) -> String {
    let mut text = format!("# {}\n\n", line(&record.name));
    if let Some(description) = &record.description {
        let _ = writeln!(text, "{}\n", line(description));
    }
    let set: String =
        record.set.iter().map(|setting| format!(" --set {}", shell_word(setting))).collect();
    let run = format!("{}{set}", shell_word(&record.workflow));
    let _ = write!(
        text,
        "A Galeras workflow with all of its results: \
         {} steps, computed until {} by version {} of the program. Nothing is needed to look at \
         it: results are Parquet files, small ones are CSV files, too.\n\n",
        count(record.steps.len() as u64),
        record.computed,
        record.program
    );
    text.push_str("| | |\n|---|---|\n");
    if has_report {
        let _ = writeln!(text, "| `{REPORT}` | what came out, on one page: open it in a browser |");
    }
    let _ = write!(
        text,
        "| `{}` | the workflow; beside it what it reads, and `galeras.lock`, which pins what it takes \
         from the world |\n\
         | `outputs/` | the files that the workflow writes |\n\
         | `tables/` | small tables as CSV |\n\
         | `cache/` | every table as Parquet, and what each was computed from |\n\
         | `{BUNDLE_RECORD}` | what the bundle holds, for programs |\n\
         | `{METADATA}` | the same as an [RO-Crate](https://www.researchobject.org/ro-crate/) \
         (Workflow Run Crate) |\n\
         | `{LISTING}` | digests of all files: `b3sum --check {LISTING}` |\n\n",
        code_cell(&record.workflow)
    );
    let _ = write!(
        text,
        "## Reproduce it\n\n```sh\n\
         galeras verify bundle.zip                    # before unpacking: every byte is as it was\n\
         unzip bundle.zip -d bundle && cd bundle\n\
         galeras plan {run}    # every step is a hit: the results are in cache/\n\
         galeras verify {run} --recompute 5    # five steps computed again, and compared\n\
         galeras run {run} --cache new    # all of it computed again\n```\n\n"
    );
    if record.left_out() > 0 {
        let _ = write!(
            text,
            "{} were left out, for their licences, say; their digests are listed. A run finds the \
             results that do not need them with `--remote bundle.zip`.\n\n",
            tables(record.left_out())
        );
    }
    if !record.params.is_empty() {
        text.push_str("## Params\n\n| param | value |\n|---|---|\n");
        for (name, value) in &record.params {
            let _ =
                writeln!(text, "| `{}` | `{}` |", code_cell(name), code_cell(&value_text(value)));
        }
        text.push('\n');
    }
    if !record.outputs.is_empty() {
        text.push_str("## Outputs\n\n| output | from | file |\n|---|---|---|\n");
        for output in &record.outputs {
            let file = output.file.as_ref().map(|file| format!("`{}`", code_cell(file)));
            let file = file.unwrap_or_else(|| "left out".into());
            let _ = writeln!(
                text,
                "| {} | {} | {file} |",
                code_cell(&output.name),
                code_cell(&output.from)
            );
        }
        text.push('\n');
    }
    listed(&mut text, record);
    text.push_str(
        "## Terms\n\nThe licences of data are those of the repositories and files that they come \
         from; where the workflow asked for them, they are in columns such as `repo` and \
         `license`.\n",
    );
    text
}

fn listed(text: &mut String, record: &BundleRecord) {
    text.push_str("## Tables\n\n| table | rows | Parquet | size | CSV |\n|---|--:|---|--:|---|\n");
    let all =
        record.steps.iter().flat_map(|step| step.tables.iter().map(move |table| (step, table)));
    let number = all.clone().count();
    for (step, table) in all.take(LISTED) {
        let BundleTable { port, rows, file, csv, bytes: size, digest, .. } = table;
        let link = |file: &Option<String>, name: &str| match file {
            Some(file) => format!("[{name}]({})", file.replace(' ', "%20")),
            None => String::new(),
        };
        let parquet = match file {
            Some(_) => link(file, &digest.short()),
            None => format!("left out ({})", digest.short()),
        };
        let _ = writeln!(
            text,
            "| {}.{port} | {} | {parquet} | {} | {} |",
            code_cell(&step.step),
            count(*rows),
            bytes(*size),
            link(csv, "CSV")
        );
    }
    if number > LISTED {
        let more = count((number - LISTED) as u64);
        let _ = writeln!(text, "\n{more} more are listed in `{BUNDLE_RECORD}`.");
    }
    text.push('\n');
}

fn tables(n: usize) -> String {
    if n == 1 { "One table".into() } else { format!("{} tables", count(n as u64)) }
}

/// A text on one line.
pub(super) fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text between backquotes in a table cell, where only the end of the cell must be escaped.
pub(super) fn code_cell(text: &str) -> String {
    line(text).replace('|', "\\|").replace('`', "'")
}
