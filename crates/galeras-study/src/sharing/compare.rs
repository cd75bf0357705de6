//! Compares a bundle with its record: its store, outputs and CSV files contain only files of its
//! results, every result has its tables, and outputs and CSV files are those that the tables give.
//! `opened` checks the digests of files.
//!
//! The tables belong to results, which may be signed; the rendered files only have a digest in the
//! list, which an attacker can change as well.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::bundle::write_csv;
use super::bundle_record::{BundleRecord, BundleStep, STORE};
use super::error::ShareError;
use super::listing::{FileProblem, is_plain};
use super::opened::OpenedBundle;
use galeras_engine::plan::{Plan, TableRef};
use galeras_engine::runner::{StepManifests, export_table};
use galeras_store::{FindingKind, Manifest, Store};

/// The folders whose every file belongs to a result.
const OF_RESULTS: [&str; 3] = ["cache/", "outputs/", "tables/"];

/// Outputs that differ from their tables, and outputs that could not be compared.
#[derive(Default)]
pub struct ShownAgain {
    /// The differences.
    pub problems: Vec<FileProblem>,
    /// Outputs that the workflow does not produce, so that they were not compared.
    pub unknown: Vec<String>,
}

impl BundleRecord {
    /// The files that belong to none of the results in the bundle's record. A reader of its store
    /// would use them anyway.
    pub fn files_of_no_result(&self, bundle: &OpenedBundle) -> Vec<FileProblem> {
        let mut known = BTreeSet::new();
        for step in &self.steps {
            let (key, shard) = (step.key, step.key.shard());
            known.insert(format!("{STORE}/actions/{shard}/{key}.json"));
            known.insert(format!("{STORE}/signatures/{shard}/{key}.sig"));
            for table in step.tables.iter().filter(|table| table.file.is_some()) {
                known.insert(table.blob_name());
                known.extend(table.csv.clone());
            }
        }
        known.extend(self.outputs.iter().filter_map(|output| output.file.clone()));
        // Only a plan knows the queries of data tests, so their outcomes are not checked.
        let outcomes = format!("{STORE}/checks/");
        bundle
            .names()
            .filter(|name| OF_RESULTS.iter().any(|folder| name.starts_with(folder)))
            .filter(|name| !name.starts_with(&outcomes) && !known.contains(*name))
            .map(|name| FileProblem::new(name, "it is of no result of the bundle"))
            .collect()
    }

    /// Compares the results in the store of an unpacked bundle with the bundle's record, and each
    /// table with its manifest. A table that was left out may be missing, but is checked if
    /// present.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn compare_results(&self, store: &Store) -> Result<Vec<FileProblem>, ShareError> {
        let mut problems = Vec::new();
        let mut left_out = BTreeSet::new();
        for step in &self.steps {
            let object = format!("{STORE}/actions/{}/{}.json", step.key.shard(), step.key);
            let manifest = store.manifest(&step.key).await?;
            let Some(manifest) = manifest.filter(|manifest| manifest.preimage.key() == step.key)
            else {
                problems.push(FileProblem::new(
                    object,
                    format!("it is not the result of {}", step.step),
                ));
                continue;
            };
            if !step.names_tables_of(&manifest) {
                let problem = format!("its tables are not those of {}", step.step);
                problems.push(FileProblem::new(object, problem));
            }
            let absent = step.tables.iter().filter(|table| table.file.is_none());
            left_out.extend(absent.map(|table| table.blob_name()));
        }
        for found in store.verify(&|_| {}).await? {
            let object = format!("{STORE}/{}", found.object);
            if found.kind != FindingKind::MissingBlob || !left_out.contains(&object) {
                problems.push(FileProblem::new(object, found.detail));
            }
        }
        Ok(problems)
    }

    /// The files of outputs.
    pub fn output_files(&self) -> Vec<String> {
        self.outputs.iter().filter_map(|output| output.file.clone()).collect()
    }

    fn differs(&self, file: &str) -> FileProblem {
        // Another version may render a table differently.
        let problem = match self.program == env!("CARGO_PKG_VERSION") {
            true => "it is not what its table gives".to_string(),
            false => format!(
                "it is not what this version writes of its table (version {} made the bundle)",
                self.program
            ),
        };
        FileProblem::new(file, problem)
    }

    /// Compares the CSV files of a bundle unpacked into `folder`, whose tables are already
    /// verified.
    ///
    /// # Errors
    /// If a table cannot be read, or a disk fails.
    pub fn compare_csv_files(&self, folder: &Path) -> Result<Vec<FileProblem>, ShareError> {
        let mut problems = Vec::new();
        for table in self.steps.iter().flat_map(|step| &step.tables) {
            let Some(csv) = table.csv.as_deref() else { continue };
            let blob = table.blob_name();
            if table.file.as_ref() != Some(&blob) || !table.is_small() {
                let problem = "its table is not in the bundle, or has no such file";
                problems.push(FileProblem::new(csv, problem));
                continue;
            }
            let Some(mut again) = SameAs::file("tables/", csv, folder)? else {
                problems.push(FileProblem::new(csv, "it is missing"));
                continue;
            };
            let written = write_csv(&folder.join(blob), &mut again);
            if !again.ends_here(written)? {
                problems.push(self.differs(csv));
            }
        }
        Ok(problems)
    }

    /// Renders the outputs of a bundle unpacked into `folder` again, from its results, and compares
    /// them.
    ///
    /// # Errors
    /// If a table cannot be read, or a disk fails.
    pub async fn compare_outputs(
        &self,
        folder: &Path,
        plan: &Plan,
        store: &Store,
        done: &StepManifests,
    ) -> Result<ShownAgain, ShareError> {
        let mut shown = ShownAgain::default();
        let left_out = |table: &TableRef| {
            let port = done[table.step].as_ref().and_then(|manifest| manifest.port(table.port));
            port.is_none_or(|port| {
                let mut tables = self.steps.iter().flat_map(|step| &step.tables);
                !tables.any(|table| table.blob == port.blob && table.file.is_some())
            })
        };
        for output in &self.outputs {
            let Some(file) = output.file.as_deref() else { continue };
            let planned = plan
                .outputs
                .iter()
                .find(|planned| file == format!("outputs/{}", planned.path.display()));
            let Some(planned) = planned.filter(|planned| planned.name == output.name) else {
                shown.problems.push(FileProblem::new(file, "the workflow does not write it"));
                continue;
            };
            let tables = &planned.input.tables;
            if tables.iter().any(|table| done.get(table.step).is_none_or(Option::is_none)) {
                shown.unknown.push(file.to_string());
                continue;
            }
            if tables.iter().any(left_out) {
                shown.problems.push(FileProblem::new(file, "its table is not in the bundle"));
                continue;
            }
            let Some(mut again) = SameAs::file("outputs/", file, folder)? else {
                shown.problems.push(FileProblem::new(file, "it is missing"));
                continue;
            };
            let exported = export_table(plan, planned, store, done, &mut again).await;
            let named = exported.as_ref().ok().map(|exported| exported.origin.table);
            if !again.ends_here(exported.map(drop))? || output.digest != named {
                shown.problems.push(self.differs(file));
            }
        }
        Ok(shown)
    }
}

impl BundleStep {
    fn names_tables_of(&self, manifest: &Manifest) -> bool {
        self.tables.len() == manifest.ports.len()
            && self.tables.iter().all(|table| {
                manifest.port(&table.port).is_some_and(|port| {
                    (port.digest, port.blob, port.rows, port.bytes)
                        == (table.digest, table.blob, table.rows, table.bytes)
                })
            })
    }
}

/// A writer that compares with a file and stops at the first difference, since the rendered text
/// may be far larger than the table.
struct SameAs {
    file: BufReader<File>,
    read: Vec<u8>,
    differs: bool,
}

impl SameAs {
    /// The file of a bundle unpacked into `folder`; `None` if it does not exist, or is not below
    /// `within`.
    fn file(within: &str, name: &str, folder: &Path) -> Result<Option<Self>, ShareError> {
        if !is_plain(name) || !name.starts_with(within) {
            return Ok(None);
        }
        let place = folder.join(name);
        match File::open(&place) {
            Ok(file) => {
                Ok(Some(Self { file: BufReader::new(file), read: Vec::new(), differs: false }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ShareError::of("read", &place, error)),
        }
    }

    /// The written bytes are the whole file.
    fn ends_here<E>(mut self, written: Result<(), E>) -> Result<bool, ShareError>
    where
        ShareError: From<E>,
    {
        if self.differs {
            return Ok(false);
        }
        written?;
        let more = self.file.read(&mut [0]);
        Ok(more.map_err(|error| ShareError::Disk(format!("cannot read it: {error}")))? == 0)
    }
}

impl Write for SameAs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.read.resize(bytes.len(), 0);
        match self.file.read_exact(&mut self.read) {
            Ok(()) if self.read == bytes => return Ok(bytes.len()),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        self.differs = true;
        Err(io::Error::other("the file has other bytes"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
