//! What a bundle shows of its tables, written again from them and compared: its outputs, and small
//! tables as CSV. The tables are what the results say, which may be signed; these files only have a
//! digest in the list, which whoever changes them can change, too.

use std::collections::HashSet;
use std::fs::File;
use std::io::Seek as _;
use std::path::Path;

use super::bundle::write_csv;
use super::bundle_record::BundleRecord;
use super::error::ShareError;
use super::listing::FileProblem;
use crate::digest::Digest;
use crate::plan::Plan;
use crate::runner::{StepManifests, export_table};
use crate::store::Store;

/// The folders of a bundle that have what is shown.
const SHOWN: [&str; 2] = ["outputs", "tables"];

/// Files that are shown, and those of them that are not what their tables give.
#[derive(Default)]
pub struct ShownAgain {
    /// What is wrong.
    pub problems: Vec<FileProblem>,
    /// Outputs whose results are not known, so that they were not compared.
    pub unknown: Vec<String>,
}

impl BundleRecord {
    /// Whether this version made the bundle: another may write a table in other words.
    pub fn is_of_this_version(&self) -> bool {
        self.program == env!("CARGO_PKG_VERSION")
    }

    fn differs(&self, file: &str) -> FileProblem {
        let problem = match self.is_of_this_version() {
            true => "it is not what its table gives".to_string(),
            false => format!(
                "it is not what this version writes of its table (version {} made the bundle)",
                self.program
            ),
        };
        FileProblem::new(file, problem)
    }

    /// Compares the CSV files of a bundle that was unpacked into `folder`, whose tables are known to
    /// be those of its results; and finds files that would be shown and are of no table.
    ///
    /// # Errors
    /// If a table cannot be read, or a disk fails.
    pub fn compare_csv_files(&self, folder: &Path) -> Result<Vec<FileProblem>, ShareError> {
        let mut problems = Vec::new();
        let outputs = self.outputs.iter().filter_map(|output| output.file.as_deref());
        let mut known: HashSet<&str> = outputs.collect();
        for table in self.steps.iter().flat_map(|step| &step.tables) {
            let Some(csv) = table.csv.as_deref() else { continue };
            let blob = format!("cache/blobs/{}/{}.parquet", table.blob.shard(), table.blob);
            if table.file.as_ref() != Some(&blob) {
                problems.push(FileProblem::new(csv, "its table is not in the bundle"));
                continue;
            }
            let again = temporary()?;
            write_csv(&folder.join(blob), &again)?;
            if !is_same(again, &folder.join(csv))? {
                problems.push(self.differs(csv));
            }
            known.insert(csv);
        }
        for entry in SHOWN.iter().flat_map(|shown| walkdir::WalkDir::new(folder.join(shown))) {
            // A bundle without outputs has no such folder.
            let Ok(entry) = entry else { continue };
            let name = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let name = name.to_string_lossy().replace('\\', "/");
            if entry.file_type().is_file() && !known.contains(name.as_str()) {
                problems.push(FileProblem::new(name, "no table of the bundle is written there"));
            }
        }
        Ok(problems)
    }

    /// Writes the outputs of a bundle that was unpacked into `folder` again, from the results that its
    /// workflow leads to, and compares them.
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
            let again = temporary()?;
            let exported = export_table(plan, planned, store, done, &again).await?;
            let same = is_same(again, &folder.join(file))?;
            if !same || output.digest != Some(exported.origin.table) {
                shown.problems.push(self.differs(file));
            }
        }
        Ok(shown)
    }
}

fn temporary() -> Result<File, ShareError> {
    tempfile::tempfile().map_err(|error| ShareError::of("make", &std::env::temp_dir(), error))
}

/// Whether the file that was written has the bytes of the other, which may be missing.
fn is_same(mut written: File, other: &Path) -> Result<bool, ShareError> {
    let failed = |error| ShareError::of("read", other, error);
    let there = match File::open(other) {
        Ok(there) => there,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    written.rewind().map_err(failed)?;
    let digest = |file: File| Digest::of_reader(file).map_err(failed);
    Ok(digest(written)? == digest(there)?)
}
