//! Makes a bundle: the workflow with its files, its lock, the results with everything that another
//! machine needs to find them, the outputs, and small tables as CSV. They are collected in a folder
//! and then packed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray as _, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::archive::pack;
use super::bundle_readme::{REPORT, readme};
use super::bundle_record::{
    BUNDLE_RECORD, BundleOutput, BundleRecord, BundleStep, BundleTable, STORE, VERSION,
};
use super::error::{AboutFile as _, ShareError};
use super::listing::{LISTING, is_plain, render};
use super::privacy::Privacy;
use super::ro_crate::{METADATA, metadata};
use super::workflow_files::WorkflowFiles;
use galeras_base::digest::Digest;
use galeras_base::terminal_escape::shell_word;
use galeras_display::{TableFormat, TableWriter};
use galeras_engine::plan::{Plan, TableRef};
use galeras_engine::runner::{RunError, StepManifests, Transfer, export_table};
use galeras_operator::ServerAddress;
use galeras_store::{Manifest, PortArtifact, Store};

/// The parts of a store that go into a bundle.
const STORED: [&str; 4] = ["actions", "blobs", "checks", "signatures"];
/// Tables that are left out of a bundle: step and port.
pub type LeftOut = BTreeSet<(usize, &'static str)>;

/// The content of a bundle.
pub struct Bundler<'a> {
    /// The plan, all of whose steps are computed.
    pub plan: &'a Plan,
    /// The store that has the results.
    pub store: &'a Store,
    /// The results, by position in the plan.
    pub done: &'a StepManifests,
    /// Tables that are left out.
    pub left_out: LeftOut,
    /// The private values that must not be in it.
    pub privacy: Privacy,
}

impl Bundler<'_> {
    /// Puts the files of the bundle into the empty folder `folder`, except those that describe it.
    /// Reports the bytes of copied tables.
    ///
    /// # Errors
    /// If something cannot be in a bundle, cannot be read, or a disk fails.
    pub async fn stage(
        &self,
        folder: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<BundleRecord, ShareError> {
        let workflow = WorkflowFiles::of(self.plan)?;
        for (name, path) in &workflow.files {
            let place = folder.join(name);
            make_folder(&place)?;
            fs::copy(path, &place).about("copy", path)?;
        }
        let cache = Store::open(&folder.join(STORE).to_string_lossy()).await?;
        self.send(&cache, progress).await?;
        let mut taken = HashSet::new();
        let mut steps = Vec::new();
        for (at, manifest) in self.results() {
            let mut tables = Vec::with_capacity(manifest.ports.len());
            for port in &manifest.ports {
                tables.push(self.table(at, port, folder, &mut taken)?);
            }
            steps.push(BundleStep {
                step: self.plan.steps[at].name.clone(),
                operator: manifest.preimage.operator.clone(),
                key: manifest.key,
                computed: manifest.created.clone(),
                tables,
            });
        }
        let outputs = self.outputs(folder).await?;
        let computed = steps.iter().map(|step| step.computed.clone()).max().unwrap_or_default();
        Ok(BundleRecord {
            galeras_bundle: VERSION,
            program: env!("CARGO_PKG_VERSION").to_string(),
            name: self.plan.name.clone(),
            description: self.plan.description().map(str::to_string),
            params: params(self.plan, &workflow),
            workflow: workflow.main,
            set: workflow.set,
            computed,
            steps,
            outputs,
        })
    }

    fn results(&self) -> impl Iterator<Item = (usize, &Arc<Manifest>)> {
        self.done.iter().enumerate().filter_map(|(at, done)| Some((at, done.as_ref()?)))
    }

    fn stored(&self, step: usize, port: &str) -> Option<&PortArtifact> {
        self.done.get(step)?.as_ref()?.port(port)
    }

    fn is_left_out(&self, table: &PortArtifact) -> bool {
        // By content: the same table under another name is left out as well.
        let mut left_out = self.left_out.iter().filter_map(|(at, port)| self.stored(*at, port));
        left_out.any(|left| left.digest == table.digest)
    }

    /// Sends the results to the store of the bundle. Labels with paths of this machine are replaced
    /// by the names in the bundle.
    async fn send(&self, cache: &Store, progress: &(dyn Fn(u64) + Sync)) -> Result<(), ShareError> {
        let mut results = Vec::new();
        let mut left_out = HashSet::new();
        for (at, manifest) in self.results() {
            let mut manifest = Manifest::clone(manifest);
            for name in &mut manifest.labels.file_names {
                if Path::new(name).is_absolute() {
                    let own = Path::new(name).file_name().unwrap_or_default();
                    *name = own.to_string_lossy().into_owned();
                }
            }
            let left = manifest.ports.iter().filter(|port| self.is_left_out(port));
            left_out.extend(left.map(|port| port.blob));
            results.push((at, Arc::new(manifest)));
        }
        let transfer = Transfer { left_out, ..Transfer::new(self.plan, results) };
        let sent = transfer.send(self.store, cache, progress).await?;
        match sent.lacking.first() {
            None => Ok(()),
            Some((step, why)) => Err(ShareError::Refused(format!("step `{step}`: {why}"))),
        }
    }

    /// The bundle's record of a table, which it already holds as Parquet; also writes it as CSV if
    /// it is small.
    fn table(
        &self,
        at: usize,
        port: &PortArtifact,
        folder: &Path,
        taken: &mut HashSet<String>,
    ) -> Result<BundleTable, ShareError> {
        let step = &self.plan.steps[at].name;
        let mut table = BundleTable {
            port: port.port.clone(),
            rows: port.rows,
            digest: port.digest,
            blob: port.blob,
            bytes: port.bytes,
            file: None,
            csv: None,
        };
        if self.is_left_out(port) {
            return Ok(table);
        }
        let file = table.blob_name();
        let path = folder.join(&file);
        self.refuse_private_cells(&path, &format!("{step}.{}", port.port))?;
        if table.is_small() {
            let name = format!("tables/{}.csv", file_name(step, &port.port, taken));
            let place = folder.join(&name);
            make_folder(&place)?;
            let csv = File::create(&place).about("write", &place)?;
            write_csv(&path, &csv).about("write", &place)?;
            table.csv = Some(name);
        }
        table.file = Some(file);
        Ok(table)
    }

    /// Refuses a table with private values.
    fn refuse_private_cells(&self, path: &Path, table: &str) -> Result<(), ShareError> {
        let file = File::open(path).about("read", path)?;
        let rows = ParquetRecordBatchReaderBuilder::try_new(file).about("read", path)?;
        for batch in rows.build().about("read", path)? {
            let batch: RecordBatch = batch.about("read", path)?;
            if let Some(folder) = local_repository(&batch) {
                let message = format!(
                    "the table {table} names a repository in a folder, `{folder}`, which others do \
                     not have; name it by its URL (`git -C {} remote get-url origin`): \
                     `{{ repo: {}, url: https://… }}` keeps its name",
                    shell_word(folder),
                    Path::new(folder).file_name().unwrap_or_default().to_string_lossy()
                );
                return Err(ShareError::Refused(message));
            }
            if let Some((column, what)) = self.privacy.in_table(&batch) {
                let message = format!(
                    "the table {table} holds {what}, in the column {column}; leave it out with \
                     `--without {table}`, or compute it without"
                );
                return Err(ShareError::Refused(message));
            }
        }
        Ok(())
    }

    async fn outputs(&self, folder: &Path) -> Result<Vec<BundleOutput>, ShareError> {
        let mut written = Vec::new();
        for output in &self.plan.outputs {
            let left = |table: &TableRef| {
                self.stored(table.step, table.port).is_some_and(|stored| self.is_left_out(stored))
            };
            let steps = output
                .input
                .tables
                .iter()
                .map(|table| format!("{}.{}", self.plan.steps[table.step].name, table.port));
            let from = steps.collect::<Vec<_>>().join(", ");
            let name = output.name.clone();
            if output.input.tables.iter().any(left) {
                written.push(BundleOutput { name, from, digest: None, file: None });
                continue;
            }
            let file = format!("outputs/{}", output.path.display());
            let place = folder.join(&file);
            make_folder(&place)?;
            let out = File::create(&place).about("write", &place)?;
            let exported = export_table(self.plan, output, self.store, self.done, &out).await?;
            let digest = Some(exported.origin.table);
            written.push(BundleOutput { name, from, digest, file: Some(file) });
        }
        Ok(written)
    }

    /// Adds the descriptions of the bundle, refuses private values, and packs everything. Returns
    /// the number of files.
    ///
    /// # Errors
    /// If something must not be in a bundle, or a disk fails.
    pub fn pack(&self, folder: &Path, record: &BundleRecord, to: &File) -> Result<u64, ShareError> {
        let text = serde_json::to_string_pretty(record).unwrap_or_default();
        write_text(&folder.join(BUNDLE_RECORD), &(text + "\n"))?;
        let report = folder.join(REPORT);
        let has_report = report.try_exists();
        let has_report = has_report.about("read", &report)?;
        write_text(&folder.join("README.md"), &readme(record, has_report))?;
        let mut files = self.files(folder)?;
        let mut sizes = BTreeMap::new();
        for (name, path) in &files {
            let about = fs::metadata(path).about("read", path)?;
            sizes.insert(name.clone(), about.len());
        }
        write_text(&folder.join(METADATA), &metadata(record, &sizes))?;
        files.insert(METADATA.into(), folder.join(METADATA));
        let mut listing = BTreeMap::new();
        for (name, path) in &files {
            self.refuse_private(name, path)?;
            let digest = File::open(path).and_then(Digest::of_reader);
            listing.insert(name.clone(), digest.about("read", path)?);
        }
        write_text(&folder.join(LISTING), &render(&listing))?;
        files.insert(LISTING.into(), folder.join(LISTING));
        pack(&files, to)?;
        Ok(files.len() as u64)
    }

    /// The files of the bundle by name, without the store's internal files.
    fn files(&self, folder: &Path) -> Result<BTreeMap<String, PathBuf>, ShareError> {
        let mut files = BTreeMap::new();
        for entry in walkdir::WalkDir::new(folder) {
            let entry = entry.about("list", folder)?;
            let inside = entry.path().strip_prefix(folder).ok().and_then(Path::to_str);
            let Some(name) = inside.filter(|_| entry.file_type().is_file()) else { continue };
            let of_store = name.strip_prefix(STORE).and_then(|rest| rest.strip_prefix('/'));
            let kept = of_store
                .is_none_or(|rest| STORED.iter().any(|kind| rest.starts_with(&format!("{kind}/"))));
            if kept && !is_plain(name) {
                let message = format!(
                    "{name} cannot be in a bundle: its name has characters that not every system \
                     knows"
                );
                return Err(ShareError::Refused(message));
            }
            if kept {
                files.insert(name.to_string(), entry.path().to_path_buf());
            }
        }
        Ok(files)
    }

    fn refuse_private(&self, name: &str, path: &Path) -> Result<(), ShareError> {
        if name.ends_with(".parquet") {
            // Stored tables are already checked, and outputs are made from them.
            return Ok(());
        }
        let bytes = fs::read(path).about("read", path)?;
        let text = String::from_utf8_lossy(&bytes);
        let of_cells = ["outputs/", "tables/"].iter().any(|folder| name.starts_with(folder));
        let found = match of_cells || name == REPORT {
            true => self.privacy.in_cell(&text).map(|what| (1, what.to_string())),
            false => self.privacy.in_text(&text),
        };
        match found {
            None => Ok(()),
            Some((line, what)) => {
                let message = format!("{name}, line {line}, holds {what}, and was not handed on");
                Err(ShareError::Refused(message))
            }
        }
    }
}

/// The first address of a repository (`clone_url`, as `mine` reads it) that is a folder.
fn local_repository(batch: &RecordBatch) -> Option<&str> {
    let addresses = batch.column_by_name("clone_url")?.as_string_opt::<i32>()?;
    addresses.iter().flatten().find(|address| ServerAddress::of(address).is_none())
}

/// Writes the rows of a stored table as CSV, without hidden columns.
pub(super) fn write_csv(path: &Path, csv: impl Write) -> Result<(), RunError> {
    let rows = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let schema = Arc::clone(rows.schema());
    let shown: Vec<usize> = (0..schema.fields().len())
        .filter(|at| !schema.field(*at).name().starts_with("__"))
        .collect();
    let mut out = BufWriter::new(csv);
    let mut writer =
        TableWriter::new(&mut out, Arc::new(schema.project(&shown)?), TableFormat::Csv)?;
    for batch in rows.build()? {
        writer.write(&batch?.project(&shown)?)?;
    }
    writer.finish()?;
    Ok(out.flush()?)
}

/// The params, with local paths replaced by those in the bundle.
fn params(plan: &Plan, workflow: &WorkflowFiles) -> Map<String, Value> {
    let mut params = plan.params.clone();
    for (name, value) in &mut params {
        let Some(text) = value.as_str().filter(|text| Path::new(text).is_absolute()) else {
            continue;
        };
        let set = workflow.set.iter().find_map(|setting| {
            setting.split_once('=').filter(|(param, _)| param == name).map(|(_, value)| value)
        });
        let below = workflow.files.iter().find_map(|(name, path)| {
            let rest = path.strip_prefix(text).ok()?.to_str()?;
            Some(name.strip_suffix(rest)?.trim_end_matches('/').to_string())
        });
        let own = || Path::new(text).file_name().unwrap_or_default().to_string_lossy().into_owned();
        *value = Value::from(set.map(str::to_string).or(below).unwrap_or_else(own));
    }
    params
}

/// The file name of a table: the step's name with portable characters.
fn file_name(step: &str, port: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_=,".contains(c) { c } else { '_' };
    let name: String = format!("{step}.{port}")
        .chars()
        .map(|c| if c == '.' { '.' } else { plain(c) })
        .take(150)
        .collect();
    let mut unique = name.clone();
    let mut more = 2;
    // Some systems ignore case.
    while !taken.insert(unique.to_lowercase()) {
        unique = format!("{name}-{more}");
        more += 1;
    }
    unique
}

fn make_folder(file: &Path) -> Result<(), ShareError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).about("make", folder)
}

fn write_text(path: &Path, text: &str) -> Result<(), ShareError> {
    fs::write(path, text).about("write", path)
}
