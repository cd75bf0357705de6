//! Checks a store against itself, and removes what is damaged: blobs are hashed again, the
//! logical digests of the tables in them computed again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::content_store::{Store, blob_name, check_name, manifest_name, memo_name, run_name};
use super::contents::StoreContents;
use super::descendants::StoredOutcome;
use super::error::StoreError;
use super::manifest::{Manifest, PortArtifact};
use super::output_record::{self, OutputRecord, output_name};
use super::record::RunRecord;
use super::sealed::unseal;
use super::table_file::TableFile;
use super::tables::open;
use galeras_base::digest::{ColumnDigest, Digest, table_digest};
use galeras_operator::table_digest::TableHasher;

/// What sort of damage a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The content of a blob does not have the digest that is its name.
    DamagedBlob,
    /// A manifest or a part names a blob that is not there.
    MissingBlob,
    /// A blob does not have the size that a manifest or a part says.
    WrongSize,
    /// The table in a blob does not have the rows or the logical digest that a manifest says.
    WrongTable,
    /// A file among the blobs does not have the name of one.
    StrangeFile,
    /// A manifest cannot be read.
    DamagedManifest,
    /// A manifest's key is not the digest of its pre-image.
    WrongKey,
    /// A part cannot be read.
    DamagedPart,
    /// The remembered outcome of a data test or an output is not what its own digest says.
    DamagedOutcome,
    /// The record of where an output file comes from is not what its own digest says.
    DamagedOrigin,
    /// A signature is not of the manifest beside it, or cannot be read.
    WrongSignature,
    /// The record of a run is not what its own digest says.
    DamagedRun,
}

/// Something in a store that is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What sort of damage it is.
    pub kind: FindingKind,
    /// The damaged object, relative to the store.
    pub object: String,
    /// What is wrong with it.
    pub detail: String,
    /// The steps whose results are lost with it, as their labels name them.
    pub steps: Vec<String>,
    /// What a repair removes.
    #[serde(skip)]
    remove: Vec<String>,
    /// The blob from which nothing may have been computed.
    #[serde(skip)]
    wrong: Option<Digest>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.detail)?;
        if !self.steps.is_empty() {
            write!(f, " (result of {})", self.steps.join(", "))?;
        }
        Ok(())
    }
}

/// Who names a blob, and what they say of it.
struct BlobClaim {
    name: String,
    step: Option<String>,
    bytes: u64,
    rows: u64,
    table: Option<PortArtifact>,
}

impl BlobClaim {
    /// What a manifest says of a table.
    fn of(manifest: &Manifest, port: &PortArtifact) -> Self {
        Self {
            name: manifest_name(&manifest.key),
            step: Some(manifest.labels.step.clone()),
            bytes: port.bytes,
            rows: port.rows,
            table: Some(port.clone()),
        }
    }
}

impl Store {
    /// Checks everything: every blob against its name, every table against its manifest,
    /// every manifest against its key. `progress` is called with the number of bytes
    /// checked since the last call. Changes nothing; temporary files are not damage.
    ///
    /// # Errors
    /// If the store cannot be read at all. A damaged object is a finding.
    pub async fn verify(
        &self,
        progress: &(impl Fn(u64) + ?Sized),
    ) -> Result<Vec<Finding>, StoreError> {
        let contents = StoreContents::of(self).await?;
        let mut findings = unreadable(&contents);
        for (kind, object, cause) in self.unreadable_records().await? {
            let detail = format!("it cannot be read: {cause}");
            findings.push(Finding::new(kind, &object, detail, vec![object.clone()]));
        }
        let mut claims: BTreeMap<Digest, Vec<BlobClaim>> = BTreeMap::new();
        for manifest in &contents.manifests {
            let (name, key) = (manifest_name(&manifest.key), manifest.preimage.key());
            if key != manifest.key {
                let detail = format!("its pre-image has the key {}", key.short());
                let kind = FindingKind::WrongKey;
                findings.push(Finding::new(kind, &name, detail, vec![name.clone()]));
            }
            for port in &manifest.ports {
                claims.entry(port.blob).or_default().push(BlobClaim::of(manifest, port));
            }
        }
        for (recipe, part) in &contents.parts {
            claims.entry(part.blob).or_default().push(BlobClaim {
                name: memo_name(recipe, part),
                step: None,
                bytes: part.bytes,
                rows: part.rows,
                table: None,
            });
        }
        for (digest, _) in &contents.blobs {
            claims.entry(*digest).or_default();
        }

        for (name, step) in self.wrong_signatures(&contents.manifests).await? {
            let detail = "it is not a signature of the manifest of this key".to_string();
            let kind = FindingKind::WrongSignature;
            let mut finding = Finding::new(kind, &name, detail, vec![name.clone()]);
            finding.steps.push(step);
            findings.push(finding);
        }
        findings.extend(self.check_claims(claims, progress).await?);
        findings.sort_by(|a, b| a.object.cmp(&b.object).then(a.detail.cmp(&b.detail)));
        Ok(findings)
    }

    /// Checks these blobs against their names and what is said of them.
    async fn check_claims(
        &self,
        claims: BTreeMap<Digest, Vec<BlobClaim>>,
        progress: &(impl Fn(u64) + ?Sized),
    ) -> Result<Vec<Finding>, StoreError> {
        let mut findings = Vec::new();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let mut checks = futures::stream::iter(claims)
            .map(|(blob, claims)| check(self, blob, claims, sender.clone()))
            .buffer_unordered(threads);
        loop {
            tokio::select! {
                biased;
                Some(bytes) = receiver.recv() => progress(bytes),
                damages = checks.next() => match damages {
                    Some(damages) => findings.extend(damages?),
                    None => break,
                },
            }
        }
        while let Ok(bytes) = receiver.try_recv() {
            progress(bytes);
        }
        Ok(findings)
    }

    /// Checks just these results, which were read from this store: the tables that they name,
    /// but for those that `absent` says are not meant to be there. Returns how many files were
    /// read, and what is wrong.
    ///
    /// # Errors
    /// If the store cannot be read at all. A damaged object is a finding.
    pub async fn verify_results(
        &self,
        results: &[Arc<Manifest>],
        absent: &(impl Fn(&PortArtifact) -> bool + ?Sized),
        progress: &(impl Fn(u64) + ?Sized),
    ) -> Result<(u64, Vec<Finding>), StoreError> {
        let mut claims: BTreeMap<Digest, Vec<BlobClaim>> = BTreeMap::new();
        for manifest in results {
            for port in manifest.ports.iter().filter(|port| !absent(port)) {
                claims.entry(port.blob).or_default().push(BlobClaim::of(manifest, port));
            }
        }
        let files = claims.len() as u64;
        let mut findings = self.check_claims(claims, progress).await?;
        findings.sort_by(|a, b| a.object.cmp(&b.object).then(a.detail.cmp(&b.detail)));
        Ok((files, findings))
    }

    /// Outcomes of checks, records of outputs and of runs that are damaged or have another's name.
    async fn unreadable_records(&self) -> Result<Vec<(FindingKind, String, String)>, StoreError> {
        let mut damaged = Vec::new();
        let mut judge = |kind, name: String, own_name: Result<String, String>| match own_name {
            Ok(own) if own == name => {}
            Ok(_) => damaged.push((kind, name, "it has another's name".to_string())),
            Err(cause) => damaged.push((kind, name, cause)),
        };
        for (entry, bytes) in self.inner.backend.read_all("checks").await? {
            let own = unseal::<StoredOutcome>(&bytes).map(|outcome| check_name(&outcome.key));
            judge(FindingKind::DamagedOutcome, entry.name, own);
        }
        for (entry, bytes) in self.inner.backend.read_all(output_record::FOLDER).await? {
            let own = unseal::<OutputRecord>(&bytes).map(|record| output_name(&record));
            judge(FindingKind::DamagedOrigin, entry.name, own);
        }
        for (entry, bytes) in self.inner.backend.read_all("runs").await? {
            let own = unseal::<RunRecord>(&bytes).map(|run| run_name(&run.id));
            judge(FindingKind::DamagedRun, entry.name, own);
        }
        Ok(damaged)
    }

    /// Removes what is damaged, the manifests and parts that name it, and every result that was
    /// computed from it, so that the next run computes them anew. Returns the number of objects
    /// removed. An error of kind [`Busy`](super::StoreErrorKind::Busy) if a run holds the store.
    pub async fn repair(&self, findings: &[Finding]) -> Result<u64, StoreError> {
        if findings.is_empty() {
            return Ok(0);
        }
        let alone = self.exclusive_lock().await?;
        let wrong: Vec<Digest> = findings.iter().filter_map(|finding| finding.wrong).collect();
        let forgotten =
            if wrong.is_empty() { 0 } else { self.forget_descendants(&wrong).await?.objects };
        let names: BTreeSet<String> =
            findings.iter().flat_map(|finding| finding.remove.iter().cloned()).collect();
        // In the order actions, blobs, memo: what names a blob goes before the blob.
        let (blobs, naming): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name.starts_with("blobs/"));
        let mut removed = self.inner.backend.remove_all(naming).await?;
        removed += self.inner.backend.remove_all(blobs).await?;
        drop(alone);
        self.settle().await;
        Ok(forgotten + removed)
    }
}

impl Finding {
    fn new(kind: FindingKind, object: &str, detail: String, remove: Vec<String>) -> Self {
        Self { kind, object: object.to_string(), detail, steps: Vec::new(), remove, wrong: None }
    }

    fn with_wrong(mut self, blob: Digest) -> Self {
        self.wrong = Some(blob);
        self
    }

    fn with_claims<'a>(mut self, claims: impl IntoIterator<Item = &'a BlobClaim>) -> Self {
        for claim in claims {
            self.remove.push(claim.name.clone());
            if let Some(step) = claim.step.as_ref().filter(|step| !self.steps.contains(step)) {
                self.steps.push(step.clone());
            }
        }
        self
    }
}

fn unreadable(contents: &StoreContents) -> Vec<Finding> {
    let find = |kind, name: &String, cause: &String| {
        Finding::new(kind, name, format!("it cannot be read: {cause}"), vec![name.clone()])
    };
    let manifests = contents.damaged_manifests.iter();
    let parts = contents.damaged_parts.iter();
    manifests
        .map(|(name, cause)| find(FindingKind::DamagedManifest, name, cause))
        .chain(parts.map(|(name, cause)| find(FindingKind::DamagedPart, name, cause)))
        .chain(contents.strangers.iter().map(|entry| {
            let detail = "its name is not the digest of a table".to_string();
            Finding::new(FindingKind::StrangeFile, &entry.name, detail, vec![entry.name.clone()])
        }))
        .collect()
}

async fn check(
    store: &Store,
    blob: Digest,
    claims: Vec<BlobClaim>,
    progress: mpsc::UnboundedSender<u64>,
) -> Result<Vec<Finding>, StoreError> {
    let name = blob_name(&blob);
    // Damage must not keep the rest of a store from being checked; a bucket that is gone does.
    let unreadable = |cause: &dyn fmt::Display| {
        let detail = format!("it cannot be read: {cause}");
        let finding = Finding::new(FindingKind::DamagedBlob, &name, detail, vec![name.clone()]);
        vec![finding.with_claims(&claims).with_wrong(blob)]
    };
    let file = match open(store, &name).await {
        Ok(Some(file)) => file,
        Ok(None) => {
            let detail = "it is missing".to_string();
            let finding = Finding::new(FindingKind::MissingBlob, &name, detail, Vec::new());
            return Ok(vec![finding.with_claims(&claims)]);
        }
        Err(error) if store.inner.backend.folder().is_some() => return Ok(unreadable(&error)),
        Err(error) => return Err(error),
    };
    let about = file.metadata().ok();
    let claims = Arc::new(claims);
    let work = {
        let (name, claims) = (name.clone(), Arc::clone(&claims));
        move || check_file(file, blob, &name, &claims, &progress)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(findings)) => {
            if let (Some(about), Some(folder), false) = (
                about,
                store.inner.backend.folder(),
                findings.iter().any(|finding| finding.remove.contains(&name)),
            ) {
                folder.verified.remember(&blob, &about);
            }
            Ok(findings)
        }
        Ok(Err(error)) => {
            let detail = format!("it cannot be read: {error}");
            let finding = Finding::new(FindingKind::DamagedBlob, &name, detail, vec![name.clone()]);
            Ok(vec![finding.with_claims(claims.iter()).with_wrong(blob)])
        }
        // A table that brings down the reader is as damaged as one that it refuses.
        Err(_) => {
            let detail = "its table cannot be read".to_string();
            let finding = Finding::new(FindingKind::WrongTable, &name, detail, Vec::new());
            Ok(vec![finding.with_claims(claims.iter()).with_wrong(blob)])
        }
    }
}

fn check_file(
    mut file: File,
    blob: Digest,
    name: &str,
    claims: &[BlobClaim],
    progress: &mpsc::UnboundedSender<u64>,
) -> io::Result<Vec<Finding>> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..read]);
        bytes += read as u64;
        // The receiver is gone if the check was given up.
        progress.send(read as u64).ok();
    }
    drop(buffer);

    let sound = Digest::from(hasher.finalize()) == blob;
    let misfits: Vec<&BlobClaim> = claims.iter().filter(|claim| claim.bytes != bytes).collect();
    if !sound {
        let (kind, detail) = match misfits.first() {
            Some(claim) => {
                (FindingKind::WrongSize, format!("it has {bytes} bytes instead of {}", claim.bytes))
            }
            None => (FindingKind::DamagedBlob, "its content is not what its name says".into()),
        };
        let finding = Finding::new(kind, name, detail, vec![name.to_string()]);
        return Ok(vec![finding.with_claims(claims).with_wrong(blob)]);
    }
    let mut findings: Vec<Finding> = misfits
        .iter()
        .map(|claim| {
            let detail = format!("it has {bytes} bytes, {} says {}", claim.name, claim.bytes);
            Finding::new(FindingKind::WrongSize, name, detail, Vec::new()).with_claims([*claim])
        })
        .collect();
    if claims.is_empty() {
        return Ok(findings);
    }
    file.rewind()?;
    let digests = claims.iter().any(|claim| claim.table.is_some());
    let table = TableFile::open(file).map_err(Into::into);
    let table = table.and_then(|table| read_table(&table, digests));
    for claim in claims {
        let wrong = match &table {
            Err(cause) => Some(format!("its table cannot be read: {cause}")),
            Ok((_, rows)) if *rows != claim.rows => {
                Some(format!("it has {rows} rows, {} says {}", claim.name, claim.rows))
            }
            Ok((columns, _)) => {
                claim.table.as_ref().and_then(|port| compare(columns, port, &claim.name))
            }
        };
        if let Some(detail) = wrong {
            let finding = Finding::new(FindingKind::WrongTable, name, detail, Vec::new());
            findings.push(finding.with_claims([claim]).with_wrong(blob));
        }
    }
    Ok(findings)
}

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 1024;

/// The digests of the columns of a table, if they are wanted, and the number of rows.
pub(super) fn read_table(
    table: &TableFile,
    digests: bool,
) -> Result<(Vec<ColumnDigest>, u64), Box<dyn std::error::Error>> {
    let rows = table.rows();
    if !digests {
        return Ok((Vec::new(), rows));
    }
    let mut hasher = TableHasher::new(table.schema());
    let columns = table.columns(|_| true);
    let whole = 0..rows;
    for batch in table.read(&columns, &[whole], BATCH_ROWS)? {
        hasher.update(&batch?)?;
    }
    Ok(hasher.finish())
}

pub(super) fn compare(
    stored: &[ColumnDigest],
    port: &PortArtifact,
    manifest: &str,
) -> Option<String> {
    for column in &port.columns {
        match stored.iter().find(|other| other.name == column.name) {
            None => return Some(format!("it lacks the column {} of {manifest}", column.name)),
            Some(other) if other != column => {
                return Some(format!("column {} is not what {manifest} says", column.name));
            }
            Some(_) => {}
        }
    }
    let unknown = |column: &&ColumnDigest| {
        !column.name.starts_with("__") && port.columns.iter().all(|c| c.name != column.name)
    };
    if let Some(column) = stored.iter().find(unknown) {
        return Some(format!("it has a column {} that {manifest} lacks", column.name));
    }
    (table_digest(&port.columns, port.rows) != port.digest)
        .then(|| format!("its logical digest is not the one that {manifest} says"))
}
