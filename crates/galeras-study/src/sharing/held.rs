//! Checks that a bundle holds exactly what its record lists: its store, outputs and CSV files
//! contain only files of its results, and every result has its tables. `opened` checks the digests
//! of files; `shown_again` checks the rendered tables.

use std::collections::BTreeSet;

use super::bundle_record::{BundleRecord, STORE};
use super::error::ShareError;
use super::listing::FileProblem;
use super::opened::OpenedBundle;
use galeras_store::{FindingKind, Manifest, Store};

/// The folders whose every file belongs to a result.
const OF_RESULTS: [&str; 3] = ["cache/", "outputs/", "tables/"];

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
}

impl super::bundle_record::BundleStep {
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
