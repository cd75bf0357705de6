//! Sends results from one store to another: tables, outcomes of data tests, and last the manifest
//! of each result, so that whoever is interrupted leaves only what is whole, and goes on from there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt;
use tokio::sync::OnceCell;

use super::check::outcome_keys;
use super::error::RunError;
use crate::digest::Digest;
use crate::plan::Plan;
use crate::store::{CopyError, Manifest, PortArtifact, Store};

/// How many results are on their way at once.
const PARALLEL: usize = 8;

/// Results that are to be in another store, in the order of the plan.
pub struct Transfer<'a> {
    plan: &'a Plan,
    /// Positions in the plan, with their results.
    results: Vec<(usize, Arc<Manifest>)>,
    /// Tables that stay where they are.
    left_out: HashSet<Digest>,
}

/// What came of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Results that are now there, those that were there before included.
    pub results: u64,
    /// Tables that were sent.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Tables that were there already.
    pub present: u64,
    /// Steps whose results the store they come from does not have, and why.
    pub lacking: Vec<(String, String)>,
}

/// One table on its way.
enum Sent {
    Present,
    Copied(u64),
    Lacking(String),
}

impl<'a> Transfer<'a> {
    /// The results of these steps.
    pub fn new(plan: &'a Plan, results: Vec<(usize, Arc<Manifest>)>) -> Self {
        Self { plan, results, left_out: HashSet::new() }
    }

    /// The same without these tables, whose manifests are sent nevertheless.
    pub fn without(self, left_out: HashSet<Digest>) -> Self {
        Self { left_out, ..self }
    }

    /// The tables, each once.
    fn tables(&self) -> HashMap<Digest, &PortArtifact> {
        let ports = self.results.iter().flat_map(|(_, manifest)| &manifest.ports);
        let sent = ports.filter(|port| !self.left_out.contains(&port.blob));
        sent.map(|port| (port.blob, port)).collect()
    }

    /// What is to be sent: how many tables, and how large they are together.
    ///
    /// # Errors
    /// If `to` cannot be read.
    pub async fn size(&self, to: &Store) -> Result<(u64, u64), RunError> {
        let (mut files, mut bytes) = (0, 0);
        for port in self.tables().into_values() {
            if !to.has_blob(&port.blob, port.bytes).await? {
                files += 1;
                bytes += port.bytes;
            }
        }
        Ok((files, bytes))
    }

    /// Sends what `to` does not have, telling how many bytes came whenever some did.
    ///
    /// # Errors
    /// If `to` cannot be written, or `from` cannot be reached. What `from` lacks, or has otherwise
    /// than its manifests say, is in the report.
    pub async fn send(
        &self,
        from: &Store,
        to: &Store,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Transferred, RunError> {
        let cells: HashMap<Digest, OnceCell<Sent>> =
            self.tables().into_keys().map(|blob| (blob, OnceCell::new())).collect();
        let mut report = Transferred::default();
        let work = self.results.iter().map(|(at, manifest)| {
            let cells = &cells;
            async move {
                for port in &manifest.ports {
                    let Some(cell) = cells.get(&port.blob) else { continue };
                    let sent = cell.get_or_try_init(|| table(from, to, port, progress)).await?;
                    if let Sent::Lacking(cause) = sent {
                        return Ok(Some((self.plan.steps[*at].name.clone(), cause.clone())));
                    }
                }
                for (_, check) in outcome_keys(self.plan, *at, manifest) {
                    from.copy_check(to, &check).await?;
                }
                to.put_manifest(manifest).await?;
                Ok::<_, RunError>(None)
            }
        });
        let mut work = futures::stream::iter(work).buffered(PARALLEL);
        while let Some(lacking) = work.next().await {
            match lacking? {
                None => report.results += 1,
                Some(lacking) => report.lacking.push(lacking),
            }
        }
        drop(work);
        for sent in cells.values().filter_map(OnceCell::get) {
            match sent {
                Sent::Present => report.present += 1,
                Sent::Copied(bytes) => {
                    report.files += 1;
                    report.bytes += bytes;
                }
                Sent::Lacking(_) => {}
            }
        }
        Ok(report)
    }
}

async fn table(
    from: &Store,
    to: &Store,
    port: &PortArtifact,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Sent, RunError> {
    if to.has_blob(&port.blob, port.bytes).await? {
        return Ok(Sent::Present);
    }
    match from.copy_blob(to, port, progress).await {
        Ok(()) => Ok(Sent::Copied(port.bytes)),
        Err(CopyError::To(error)) => Err(error.into()),
        Err(CopyError::From(error)) => Ok(Sent::Lacking(error.to_string())),
    }
}
