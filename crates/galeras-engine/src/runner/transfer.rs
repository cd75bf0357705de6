//! Copies results from one store to another: tables, outcomes of data tests, and last the
//! manifests. So an interrupted transfer leaves only complete results, and can continue.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt;
use tokio::sync::OnceCell;

use super::check::outcome_keys;
use super::error::RunError;
use crate::plan::Plan;
use galeras_base::digest::Digest;
use galeras_operator::StepError;
use galeras_store::{
    CopyError, Manifest, Offer, PortArtifact, SignatureFile, SigningKey, Store, StoredManifest,
};

/// The number of results sent at once.
const PARALLEL: usize = 8;

/// Results to be copied, in plan order.
pub struct Transfer<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Positions in the plan, with their results.
    pub results: Vec<(usize, Arc<Manifest>)>,
    /// Tables to leave out, but not their manifests.
    pub left_out: HashSet<Digest>,
    /// The key that signs each result in the target.
    pub key: Option<&'a Arc<SigningKey>>,
    /// Copy outcomes of data tests, which are never signed.
    pub outcomes: bool,
}

/// The report of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Results that are now there, including those that already were.
    pub results: u64,
    /// Tables that were sent.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Tables that were there already.
    pub present: u64,
    /// Results that have a signature there.
    pub signed: u64,
    /// Steps without a result in the source, with the reason.
    pub lacking: Vec<(String, String)>,
}

enum Sent {
    Present,
    /// Bytes copied, as the table with this logical digest.
    Copied(u64, Digest),
    Lacking(String),
}

impl<'a> Transfer<'a> {
    /// The results of these steps.
    pub fn new(plan: &'a Plan, results: Vec<(usize, Arc<Manifest>)>) -> Self {
        Self { plan, results, left_out: HashSet::new(), key: None, outcomes: true }
    }

    /// The files of the tables, each once, with their sizes.
    fn files(&self) -> HashMap<Digest, u64> {
        let ports = self.results.iter().flat_map(|(_, manifest)| &manifest.ports);
        let sent = ports.filter(|port| !self.left_out.contains(&port.blob));
        sent.map(|port| (port.blob, port.bytes)).collect()
    }

    /// The files to send: their number and total size.
    ///
    /// # Errors
    /// If `to` cannot be read.
    pub async fn size(&self, to: &Store) -> Result<(u64, u64), RunError> {
        let (mut files, mut bytes) = (0, 0);
        for (blob, size) in self.files() {
            if !to.has_blob(&blob, size).await? {
                files += 1;
                bytes += size;
            }
        }
        Ok((files, bytes))
    }

    /// Sends everything that `to` lacks, and reports the bytes as they are copied.
    ///
    /// # Errors
    /// If `to` cannot be written, or `from` cannot be reached. Files that are missing in `from` or
    /// differ from its manifests are in the report.
    pub async fn send(
        &self,
        from: &Store,
        to: &Store,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Transferred, RunError> {
        // Cleaning the store waits until manifests name the tables.
        let _writing = to.shared_lock().await?;
        let cells: HashMap<Digest, OnceCell<Sent>> =
            self.files().into_keys().map(|blob| (blob, OnceCell::new())).collect();
        let mut report = Transferred::default();
        let work = self.results.iter().map(|(at, manifest)| {
            let cells = &cells;
            async move {
                let there = to.manifest(&manifest.key).await?;
                let known = &there.is_some_and(|there| there.ports == manifest.ports);
                let tables = manifest.ports.iter().filter(|port| cells.contains_key(&port.blob));
                for port in tables {
                    let Some(cell) = cells.get(&port.blob) else { continue };
                    let copy = || copied(from, to, port, progress);
                    let sent = cell.get_or_try_init(copy).await?;
                    let cause = match sent {
                        Sent::Lacking(cause) => Some(cause.clone()),
                        _ if *known => None,
                        Sent::Copied(_, table) if *table == port.digest => None,
                        // It was already there, and may not match the manifest.
                        Sent::Copied(..) | Sent::Present => to.judge(port).await?,
                    };
                    if let Some(cause) = cause {
                        return Ok(Err((self.plan.steps[*at].name.clone(), cause)));
                    }
                }
                if self.outcomes {
                    for (_, check) in outcome_keys(self.plan, *at, manifest) {
                        from.copy_check(to, &check).await?;
                    }
                }
                // Two processes may send one result at the same time.
                let turn = format!("named-{}", manifest.key.shard());
                let _turn = to.lock(&turn, || {}).await?;
                let (manifest, signatures) = self.named(from, to, manifest).await?;
                let signed = !signatures.is_empty();
                to.put_signed(&manifest, signatures).await?;
                Ok::<_, RunError>(Ok(signed))
            }
        });
        let mut work = futures::stream::iter(work).buffered(PARALLEL);
        while let Some(result) = work.next().await {
            match result? {
                Ok(signed) => {
                    report.results += 1;
                    report.signed += u64::from(signed);
                }
                Err(lacking) => report.lacking.push(lacking),
            }
        }
        drop(work);
        to.settle().await;
        for sent in cells.values().filter_map(OnceCell::get) {
            match sent {
                Sent::Present => report.present += 1,
                Sent::Copied(bytes, _) => {
                    report.files += 1;
                    report.bytes += bytes;
                }
                Sent::Lacking(_) => {}
            }
        }
        Ok(report)
    }

    /// The manifest of a result for `to`, byte by byte, and its signatures: its own, those in `to`,
    /// and that of the key. If `to` has the same result, that one stays, unless only ours is
    /// signed.
    async fn named(
        &self,
        from: &Store,
        to: &Store,
        manifest: &Manifest,
    ) -> Result<(StoredManifest, SignatureFile), RunError> {
        let own = match from.offer(&manifest.key).await? {
            // Another result does not count; labels may have been changed on the way.
            Offer::Manifest(stored) if stored.manifest == *manifest => *stored,
            Offer::Manifest(_) | Offer::Nothing | Offer::Unusable(_) => {
                StoredManifest::of(manifest.clone())?
            }
        };
        let signatures = own.own(from.offered_signatures(&manifest.key).await?).await?;
        let there = to.offered_signatures(&manifest.key).await?;
        let (stored, signatures) = match to.offer(&manifest.key).await? {
            Offer::Manifest(other) if other.bytes == own.bytes => {
                let both = own.own(signatures.and(there)).await?;
                (own, both)
            }
            Offer::Manifest(other) if other.is_same_result(&own) => {
                let theirs = other.own(there).await?;
                match theirs.is_empty() && !signatures.is_empty() {
                    true => (own, signatures),
                    false => (*other, theirs),
                }
            }
            Offer::Manifest(_) | Offer::Nothing | Offer::Unusable(_) => (own, signatures),
        };
        let Some(key) = self.key else { return Ok((stored, signatures)) };
        let (key, bytes) = (Arc::clone(key), stored.bytes.clone());
        let signed = tokio::task::spawn_blocking(move || key.sign(&bytes));
        let failed = |cause: String| StepError::new(format!("cannot sign: {cause}"));
        let signed = signed.await.map_err(|error| failed(error.to_string()))?;
        let signature = signed.map_err(|error| failed(error.to_string()))?;
        let signatures = stored.own(signatures.and(signature)).await?;
        Ok((stored, signatures))
    }
}

async fn copied(
    from: &Store,
    to: &Store,
    port: &PortArtifact,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Sent, RunError> {
    if to.has_blob(&port.blob, port.bytes).await? {
        return Ok(Sent::Present);
    }
    match from.copy_file(to, port, None, progress).await {
        Ok(()) => Ok(Sent::Copied(port.bytes, port.digest)),
        Err(CopyError::To(error)) => Err(error.into()),
        Err(CopyError::From(error)) => Ok(Sent::Lacking(error.to_string())),
    }
}
