//! `bundle`: a workflow with its results in one file, to give to others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::context::{
    Exit, Failure, Surveyed, answer, cannot_write, check_suffix, fail, failed, load, plan_file,
    show_diagnostics,
};
use super::remote::bar;
use super::store_places::scratch_folder;
use super::{Format, Settings, WorkflowArgs};
use galeras_base::scratch::{WholeFile, make_folder};
use galeras_base::terminal_escape::escape;
use galeras_display::{bytes, count};
use galeras_engine::plan::Plan;
use galeras_engine::runner::stored_results;
use galeras_operator::Access;
use galeras_store::{Store, StoreLocation, default_store};
use galeras_study::report;
use galeras_study::sharing::{BundleRecord, Bundler, LeftOut, Privacy, REPORT};

#[derive(Args)]
pub(crate) struct BundleArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// The file to write (default: the workflow's name with .zip).
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Leave out a table (because of its licence, for example), and keep its digest: `step`,
    /// `step.rejects`, all cells `gen[*]`. Name tables made from it as well to leave them out. May
    /// be repeated.
    #[arg(long, value_name = "TABLE")]
    without: Vec<String>,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn bundle(args: BundleArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.output {
        check_suffix(path, &["zip"])?;
    }
    let surveyed = load(&args.workflow, args.format).await?;
    surveyed.complete()?;
    let done = surveyed.done();
    let bundler = Bundler {
        plan: &surveyed.plan,
        store: &surveyed.store,
        done: &done,
        left_out: left_out(&surveyed, &args.without)?,
        privacy: privacy(&surveyed.plan, &args.workflow),
    };
    let folder = scratch_folder()?;
    let ports = done.iter().flatten().flat_map(|manifest| &manifest.ports);
    let bar = bar(ports.map(|port| port.bytes).sum(), args.format);
    let record = bundler.stage(&folder, &|more| bar.inc(more)).await;
    bar.finish_and_clear();
    let record = record?;
    let inside = leads_to_the_same(&args, &folder, &record).await?;
    // A report shows rows of every table, including those that are left out.
    if args.without.is_empty() {
        let page = report::bundled(&inside, &folder, &record.computed).await.map_err(failed)?;
        let place = folder.join(REPORT);
        std::fs::write(&place, page).map_err(cannot_write(&place))?;
    }
    let to = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.zip", own_name(&surveyed))));
    if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folder(parent).map_err(cannot_write(&to))?;
    }
    let whole = WholeFile::beside(&to).map_err(cannot_write(&to))?;
    let files = bundler.pack(&folder, &record, whole.file())?;
    let size = whole.file().metadata().map_err(cannot_write(&to))?.len();
    whole.finish(&to).map_err(cannot_write(&to))?;
    let (results, left_out) = (record.steps.len() as u64, record.left_out() as u64);
    let left = match left_out {
        0 => String::new(),
        1 => ", without one table".to_string(),
        n => format!(", without {} tables", count(n)),
    };
    let (path, all) = (escape(&to.display().to_string()), count(results));
    let text = format!("{path}: {} files of {all} results{left}, {}\n", count(files), bytes(size));
    let json = json!({"event": "bundle", "path": to.to_string_lossy(), "files": files,
        "bytes": size, "results": results, "left_out": left_out});
    answer(args.format, json, &text)
}

fn own_name(surveyed: &Surveyed) -> String {
    let name = surveyed.plan.file_name();
    let stem = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy();
    if stem.is_empty() { "bundle".into() } else { stem.into_owned() }
}

fn left_out(surveyed: &Surveyed, names: &[String]) -> Result<LeftOut, Failure> {
    let mut left_out = LeftOut::new();
    for name in names {
        let input = surveyed.table(name)?;
        left_out.extend(input.tables.iter().map(|table| (table.step, table.port)));
    }
    Ok(left_out)
}

/// Parts of names of environment variables that hold secrets.
const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// The secrets of the environment and the paths of this machine, which must not be in the bundle.
pub(super) fn privacy(plan: &Plan, args: &WorkflowArgs) -> Privacy {
    let demands = plan.steps.iter().flat_map(|step| step.step.demands());
    let sent: Vec<String> = demands
        .filter_map(|demand| match demand.access {
            Access::Variable { name, .. } => Some(name),
            _ => None,
        })
        .collect();
    let secret = |name: &str| {
        let upper = name.to_uppercase();
        SECRET_NAMES.iter().any(|part| upper.contains(part)) || sent.iter().any(|own| own == name)
    };
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| secret(name) && !Path::new(value).exists());
    let mut folders: Vec<(PathBuf, String)> = Vec::new();
    let mut add = |folder: PathBuf, what: &str| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        for folder in [folder, real] {
            if !folders.iter().any(|(known, _)| *known == folder) {
                folders.push((folder, format!("the path of {what}")));
            }
        }
    };
    if let Some(home) = std::env::var_os("HOME") {
        add(PathBuf::from(home), "your home folder");
    }
    if let Ok(current) = std::env::current_dir() {
        let file = current.join(&args.file);
        add(file.parent().unwrap_or(&current).to_path_buf(), "the workflow's folder");
        add(current.clone(), "the current folder");
        if let Ok(cache) = args.cache()
            && let Ok(StoreLocation::Folder(store)) = StoreLocation::parse(&cache)
        {
            add(current.join(store), "the store");
        }
    }
    // Steps whose heads are pinned demand no access to the folders.
    for args in plan.steps.iter().map(|step| step.step.args()) {
        let listed = args["repos"].as_array().into_iter().flatten();
        for url in listed.filter_map(|repository| repository["url"].as_str()) {
            let folder = Path::new(url.strip_prefix("file://").unwrap_or(url));
            if folder.is_absolute() {
                add(folder.to_path_buf(), "a repository in a folder");
            }
        }
    }
    Privacy::of(variables, folders)
}

/// The workflow as it is in the bundle, which must lead to the same results.
async fn leads_to_the_same(
    args: &BundleArgs,
    folder: &Path,
    record: &BundleRecord,
) -> Result<Surveyed, Failure> {
    let file = folder.join(&record.workflow);
    let cache = folder.join("cache").to_string_lossy().into_owned();
    let settings = Settings { set: record.set.clone(), folder: folder.to_path_buf() };
    // The user already agreed to fetch schemas behind URLs; that consent also applies here.
    let consent = args.workflow.trust(None);
    let (plan, diagnostics) = plan_file(&file, settings, &cache, consent).await?;
    let Some(plan) = plan else {
        show_diagnostics(&diagnostics, Format::Human);
        let message = "the workflow cannot be understood in a bundle: it needs files that are not \
                       named in it";
        return Err(fail(message, Exit::Invalid));
    };
    let store = Store::open(&cache).await?;
    let results = stored_results(&plan, &store).await?;
    let lost = plan.steps.iter().zip(&results).find(|(_, result)| result.manifest().is_none());
    let Some((step, _)) = lost else {
        let done: Vec<_> = results.iter().map(|result| result.manifest().cloned()).collect();
        let default = default_store(&file).to_string_lossy().into_owned();
        return Ok(Surveyed::after_run(Arc::new(plan), store, &done, &default).await?);
    };
    let message = format!(
        "`{}` would be computed again elsewhere: it depends on something of this machine that a \
         bundle cannot hold",
        escape(&step.name)
    );
    Err(fail(message, Exit::Invalid))
}
