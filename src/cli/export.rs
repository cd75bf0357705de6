//! `export`: tables as a data set for the Hugging Face Hub, with the files that its users need.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::bundle::privacy;
use super::context::{
    Exit, Failure, Surveyed, cannot_write, check_local, fail, load, note, print, print_json,
};
use super::{Format, WorkflowArgs};
use galeras_base::scratch::{ScratchFolder, make_folder};
use galeras_base::terminal_escape::{escape, shell_word};
use galeras_display::{GraphFormat, bytes, count, render_graph};
use galeras_engine::plan::{Input, LockFile, OutputFormat};
use galeras_study::sharing::{Dataset, Licences, Publisher, copy_workflow};
use galeras_study::step_graph;

#[derive(Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// The tables, as `show` takes them (default: those of the workflow's outputs).
    #[arg(value_name = "STEP[.PORT]")]
    tables: Vec<String>,
    /// The folder to write.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Keep rows with any licence. Without this, rows without a known, permissive licence are left
    /// out and counted.
    #[arg(long)]
    any_license: bool,
    /// Leave out the rows of an owner or a repository that objected. May be repeated.
    #[arg(long, value_name = "OWNER[/REPO]")]
    exclude: Vec<String>,
    /// An author of the data set, for its citation. May be repeated.
    #[arg(long, value_name = "NAME")]
    author: Vec<String>,
    /// Replace what an earlier export wrote into the folder; other files in it stay.
    #[arg(long)]
    overwrite: bool,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn export(args: ExportArgs) -> Result<Exit, Failure> {
    check_local(&args.output)?;
    if args.author.iter().any(|author| author.trim().is_empty()) {
        return Err(fail(
            "--author: the name is empty; give it, or leave out the flag",
            Exit::Invalid,
        ));
    }
    free(&args.output, args.overwrite)?;
    let excluded = args.exclude.iter().map(|name| excluded(name));
    let excluded = excluded.collect::<Result<Vec<_>, _>>()?;
    let surveyed = load(&args.workflow, args.format).await?;
    let chosen = chosen(&surveyed, &args.tables)?;
    surveyed.complete()?;
    let done = surveyed.done();
    let mut publisher = Publisher {
        plan: &surveyed.plan,
        store: &surveyed.store,
        done: &done,
        licences: Licences::of(args.any_license, excluded.clone()),
        privacy: privacy(&surveyed.plan, &args.workflow),
    };
    publisher.learn().await?;
    for (name, input) in &chosen {
        if !args.any_license && !publisher.tells_origin(input) {
            let message = format!(
                "the rows of `{}` do not say where they come from, as they have neither a column \
                 `repo` nor `license`; if all of it may be published, add --any-license",
                escape(name)
            );
            return Err(fail(message, Exit::Invalid));
        }
        if let Some(owner) = excluded.first().filter(|_| !publisher.tells_repository(input)) {
            let message = format!(
                "the rows of `{}` have no column `repo`, so that those of {} cannot be left out; add \
                 the column in a step, or export another table",
                escape(name),
                escape(owner)
            );
            return Err(fail(message, Exit::Invalid));
        }
    }
    let staged = Staged::beside(&args.output)?;
    let folder = staged.files.as_path();
    let (main, set) = copy_workflow(&surveyed.plan, folder, &publisher.privacy)?;
    let mut repositories = BTreeMap::new();
    let mut tables = Vec::new();
    for (name, input) in &chosen {
        tables.push(publisher.write(name, input, folder, &mut repositories).await?);
    }
    let set: String = set.iter().map(|setting| format!(" --set {}", shell_word(setting))).collect();
    let dataset = Dataset {
        name: surveyed.plan.name.clone(),
        description: surveyed.plan.description().map(str::to_string),
        tables,
        repositories,
        computed: done.iter().flatten().map(|m| m.created.clone()).max().unwrap_or_default(),
        authors: args.author.clone(),
        command: format!("galeras run {}{set}", shell_word(&main)),
        graph: render_graph(&step_graph(&surveyed, false), GraphFormat::Mermaid),
        attrition: attrition(&surveyed),
        locked: locked(&args.workflow.file)?,
        any_licence: args.any_license,
    };
    dataset.describe(folder)?;
    staged.place(&args.output)?;
    said(&args, &dataset)
}

/// The owner or repository that `--exclude` names, also by its address.
fn excluded(given: &str) -> Result<String, Failure> {
    let name = given.trim().trim_end_matches('/').trim_end_matches(".git");
    let name = match name.split_once("://") {
        // The host is left out.
        Some((_, address)) => address.split_once('/').map_or("", |(_, path)| path),
        None => name,
    };
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 || parts.iter().any(|part| part.is_empty() || part.contains(['@', ':', ' ']))
    {
        let given = escape(given);
        let message = format!("--exclude: `{given}` is neither OWNER nor OWNER/REPO");
        return Err(fail(message, Exit::Invalid));
    }
    Ok(name.to_string())
}

fn said(args: &ExportArgs, dataset: &Dataset) -> Result<Exit, Failure> {
    let place = args.output.display().to_string();
    if args.format == Format::Json {
        let told = dataset.tables.iter().map(|table| {
            json!({"table": table.table, "name": table.name, "rows": table.rows,
                "left_out": table.left_out, "licenses": table.licences, "digest": table.digest,
                "file": table.file, "bytes": table.bytes})
        });
        let tables = told.collect::<Vec<_>>();
        return print_json(&json!({"event": "export", "path": place, "tables": tables,
            "repositories": dataset.repositories.len()}));
    }
    let mut text = format!("{}\n", escape(&place));
    for table in &dataset.tables {
        text.push_str(&format!(
            "  {}  {} rows, {}\n",
            escape(&table.name),
            count(table.rows),
            bytes(table.bytes)
        ));
        for (reason, rows) in &table.left_out {
            text.push_str(&format!("    {} left out: {}\n", count(*rows), escape(reason)));
        }
    }
    print(&text)?;
    if dataset.rows() == 0 {
        note("no row is left: see the reasons above, and --any-license");
    }
    if args.author.is_empty() {
        note("CITATION.cff has no authors; --author NAME adds one");
    }
    Ok(Exit::Done)
}

/// The named tables, or those of the outputs.
fn chosen(surveyed: &Surveyed, names: &[String]) -> Result<Vec<(String, Input)>, Failure> {
    if !names.is_empty() {
        let mut tables: Vec<(String, Input)> = Vec::new();
        for name in names {
            // A table that is named twice is written once.
            if !tables.iter().any(|(known, _)| known == name) {
                tables.push((name.clone(), surveyed.computed_table(name)?));
            }
        }
        return Ok(tables);
    }
    let outputs = surveyed.plan.outputs.iter();
    let tables = outputs.filter(|output| !matches!(output.format, OutputFormat::Text { .. }));
    let chosen: Vec<(String, Input)> =
        tables.map(|output| (output.name.clone(), output.input.clone())).collect();
    if chosen.is_empty() {
        let message = "the workflow has no outputs that are tables; name the tables to export";
        return Err(fail(message, Exit::Invalid));
    }
    Ok(chosen)
}

/// Refuses a folder with other content.
fn free(folder: &Path, overwrite: bool) -> Result<(), Failure> {
    let mut entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(cannot_write(folder))?,
    };
    if overwrite || entries.next().is_none() {
        return Ok(());
    }
    let shown = escape(&folder.display().to_string());
    let help = "name another folder, or add --overwrite";
    Err(fail(format!("{shown} is not empty; {help}"), Exit::Invalid))
}

/// A folder that is moved into place once it is complete.
struct Staged {
    /// The files until then, in a folder that is removed on drop.
    files: PathBuf,
    _folder: ScratchFolder,
}

impl Staged {
    fn beside(to: &Path) -> Result<Self, Failure> {
        let parent = match to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let made = make_folder(parent).and_then(|()| {
            let folder = ScratchFolder::create_hidden(parent)?;
            let files = folder.path().join("files");
            fs::create_dir_all(files.join("data"))?;
            Ok(Self { files, _folder: folder })
        });
        made.map_err(cannot_write(to))
    }

    /// Moves the files into place, each file and folder atomically.
    fn place(self, to: &Path) -> Result<(), Failure> {
        let moved = (|| -> io::Result<()> {
            make_folder(to)?;
            for entry in fs::read_dir(&self.files)? {
                let entry = entry?;
                let place = to.join(entry.file_name());
                match fs::symlink_metadata(&place) {
                    Ok(about) if about.is_dir() => fs::remove_dir_all(&place)?,
                    Ok(_) => fs::remove_file(&place)?,
                    Err(_) => {}
                }
                fs::rename(entry.path(), place)?;
            }
            Ok(())
        })();
        moved.map_err(cannot_write(to))
    }
}

/// The rows of the tables of each step; cells of a matrix together.
fn attrition(surveyed: &Surveyed) -> Vec<(String, Vec<(String, u64)>)> {
    let mut steps: Vec<(String, Vec<(String, u64)>)> = Vec::new();
    for (step, state) in surveyed.plan.steps.iter().zip(&surveyed.states) {
        let Some(manifest) = &state.manifest else { continue };
        let place = steps.iter().position(|(name, _)| *name == step.family).unwrap_or(steps.len());
        if place == steps.len() {
            steps.push((step.family.clone(), Vec::new()));
        }
        for port in &manifest.ports {
            let ports = &mut steps[place].1;
            match ports.iter_mut().find(|(name, _)| *name == port.port) {
                Some((_, rows)) => *rows += port.rows,
                None => ports.push((port.port.clone(), port.rows)),
            }
        }
    }
    steps
}

/// The pins of the workflow in the lock file, a line each.
fn locked(file: &Path) -> Result<Vec<String>, Failure> {
    let lock = LockFile::beside(file).map_err(|problem| fail(problem, Exit::Invalid))?;
    let own = file.file_name().unwrap_or_default().to_string_lossy();
    let mine = |workflows: &[String]| workflows.iter().any(|name| *name == own);
    let snapshots = lock.snapshots.iter().filter(|fact| mine(&fact.workflows)).map(|fact| {
        let (rows, digest) = (count(fact.rows.len() as u64), fact.digest.short());
        format!("`{}`: {rows} repositories, asked {} ({digest})", fact.operator, fact.asked)
    });
    let files = lock.files.iter().filter(|fact| mine(&fact.workflows));
    let files = files.map(|fact| format!("{}: blake3 {}", fact.url, fact.blake3));
    let versions = lock.versions.iter().filter(|fact| mine(&fact.workflows));
    let versions =
        versions.map(|fact| format!("`{}` {}: {}", fact.operator, fact.of, fact.version));
    let programs = lock.programs.iter().filter(|fact| fact.workflow == own);
    let programs = programs.map(|fact| format!("galeras {}", fact.version));
    Ok(snapshots.chain(files).chain(versions).chain(programs).collect())
}
