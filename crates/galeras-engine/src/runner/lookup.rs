//! Looks up the result of a key: it must be complete, its files sound, and its tables those that the
//! plan expects.

use std::fmt;

use super::error::RunError;
use crate::plan::PlannedStep;
use galeras_base::digest::Digest;
use galeras_store::{BlobState, Manifest, Store, TableShape, VerifyLevel};

pub(super) enum Lookup {
    /// A result with all its files.
    Hit(Box<Manifest>),
    /// A result with missing or damaged files.
    Incomplete(UnsoundFiles),
    /// A result whose tables are not those of the step, for this reason.
    Unfit(String),
    /// Nothing.
    Miss,
}

/// The missing or damaged files of a result.
#[derive(Debug)]
pub(super) struct UnsoundFiles {
    pub(super) missing: Vec<Digest>,
    pub(super) damaged: Vec<Digest>,
}

impl UnsoundFiles {
    pub(super) fn of(blobs: Vec<(Digest, BlobState)>) -> Self {
        let with = |state| {
            let found = blobs.iter().filter(move |(_, is)| *is == state);
            found.map(|(blob, _)| *blob).collect()
        };
        Self { missing: with(BlobState::Missing), damaged: with(BlobState::Damaged) }
    }
}

impl fmt::Display for UnsoundFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = |count, state| match count {
            0 => None,
            1 => Some(format!("one stored file is {state}")),
            _ => Some(format!("{count} stored files are {state}")),
        };
        let parts = [files(self.missing.len(), "missing"), files(self.damaged.len(), "damaged")];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Looks for the result of a step under `key`, and at its files.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn lookup(
    store: &Store,
    step: &PlannedStep,
    key: &Digest,
) -> Result<Lookup, RunError> {
    let Some(manifest) = store.manifest(key).await? else { return Ok(Lookup::Miss) };
    if let Some(cause) = other_tables(step, &manifest) {
        return Ok(Lookup::Unfit(cause));
    }
    let unsound = store.unsound_blobs(&manifest, VerifyLevel::Usual).await?;
    if !unsound.is_empty() {
        return Ok(Lookup::Incomplete(UnsoundFiles::of(unsound)));
    }
    for (port, stored) in step.step.ports().iter().zip(&manifest.ports) {
        if let Some(cause) = store.misshapen(stored, &TableShape::of(&port.table)).await? {
            return Ok(Lookup::Unfit(cause));
        }
    }
    Ok(Lookup::Hit(Box::new(manifest)))
}

/// Describes how the tables of a result differ from those of the step, by its manifest.
pub(super) fn other_tables(step: &PlannedStep, manifest: &Manifest) -> Option<String> {
    let ports = step.step.ports();
    if !manifest.ports.iter().map(|port| port.port.as_str()).eq(ports.iter().map(|port| port.name))
    {
        return Some("it has other tables".into());
    }
    let mut tables = ports.iter().zip(&manifest.ports);
    tables.find_map(|(port, stored)| TableShape::of(&port.table).differs(stored))
}

/// The message about a result that is not used.
pub(super) fn unfit(cause: &str) -> String {
    format!("its stored result is not what the workflow says: {cause}")
}

/// The reason to recompute a result with rows that failed for external reasons.
pub(super) fn retry_reason(manifest: &Manifest) -> String {
    match manifest.retry_rows {
        1 => "one row failed and is tried again".to_string(),
        rows => format!("{rows} rows failed and are tried again"),
    }
}
