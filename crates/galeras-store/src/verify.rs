//! Checks all objects of a store, and removes damaged ones: blobs are hashed again, and the logical
//! digests of their tables are computed again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::content_store::{Store, StoreContents, StoredOutcome};
use super::error::Result;
use super::integrity::unseal;
use super::manifest::{Manifest, PortArtifact};
use super::object_name::{blob_name, check_name, manifest_name, memo_name, run_name};
use super::output_record::{self, OutputRecord, output_name};
use super::run_record::RunRecord;
use super::table_file::{TableFile, open};
use galeras_base::digest::{ColumnDigest, Digest, table_digest};
use galeras_operator::table_digest::TableHasher;

/// The kind of damage of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The content of a blob does not have the digest that is its name.
    DamagedBlob,
    /// A manifest or a part names a blob that does not exist.
    MissingBlob,
    /// A blob does not have the size in a manifest or a part.
    WrongSize,
    /// The table in a blob does not have the rows or the logical digest in a manifest.
    WrongTable,
    /// A file among the blobs does not have the name of one.
    StrangeFile,
    /// A manifest cannot be read.
    DamagedManifest,
    /// A manifest's key is not the digest of its pre-image.
    WrongKey,
    /// A part cannot be read.
    DamagedPart,
    /// The remembered outcome of a data test or an output does not match its digest.
    DamagedOutcome,
    /// The origin of an output file does not match its digest.
    DamagedOrigin,
    /// A signature is not of its manifest, or cannot be read.
    WrongSignature,
    /// The record of a run does not match its digest.
    DamagedRun,
}

/// Something in a store that is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind of damage.
    pub kind: FindingKind,
    /// The damaged object, relative to the store.
    pub object: String,
    /// A description of the damage.
    pub detail: String,
    /// The steps, by their labels, whose results are lost with it.
    pub steps: Vec<String>,
    /// The objects that a repair removes.
    #[serde(skip)]
    remove: Vec<String>,
    /// A damaged blob. Results that were computed from it are wrong.
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

/// The results that were forgotten because they were computed from damaged files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgottenResults {
    /// The steps in the labels of the results, sorted.
    pub steps: Vec<String>,
    /// The number of results, parts and outcomes.
    pub objects: u64,
}

/// The description of a blob in a manifest or a part.
struct BlobClaim {
    /// The name of the manifest or the part.
    name: String,
    step: Option<String>,
    bytes: u64,
    rows: u64,
    table: Option<PortArtifact>,
}

type Claims = BTreeMap<Digest, Vec<BlobClaim>>;

fn add_claim(claims: &mut Claims, manifest: &Manifest, port: &PortArtifact) {
    claims.entry(port.blob).or_default().push(BlobClaim {
        name: manifest_name(&manifest.key),
        step: Some(manifest.labels.step.clone()),
        bytes: port.bytes,
        rows: port.rows,
        table: Some(port.clone()),
    });
}

impl Store {
    /// Checks every blob against its name, every table against its manifest, and every manifest
    /// against its key. `progress` is called with the number of bytes checked since the last call.
    /// Changes nothing; temporary files are not damage. Fails if the store cannot be read at all. A
    /// damaged object is a finding.
    pub async fn verify(&self, progress: &(impl Fn(u64) + ?Sized)) -> Result<Vec<Finding>> {
        let contents = StoreContents::of(self).await?;
        let mut findings = self.unreadable_records().await?;
        for (name, cause) in &contents.damaged_manifests {
            findings.push(Finding::unreadable(FindingKind::DamagedManifest, name, cause));
        }
        for (name, cause) in &contents.damaged_parts {
            findings.push(Finding::unreadable(FindingKind::DamagedPart, name, cause));
        }
        for entry in &contents.strangers {
            let detail = "its name is not the digest of a table";
            findings.push(Finding::of(FindingKind::StrangeFile, &entry.name, detail));
        }
        let mut claims = Claims::new();
        for manifest in &contents.manifests {
            let (name, key) = (manifest_name(&manifest.key), manifest.preimage.key());
            if key != manifest.key {
                let detail = format!("its pre-image has the key {}", key.short());
                findings.push(Finding::of(FindingKind::WrongKey, &name, detail));
            }
            manifest.ports.iter().for_each(|port| add_claim(&mut claims, manifest, port));
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
            let detail = "it is not a signature of the manifest of this key";
            let mut finding = Finding::of(FindingKind::WrongSignature, &name, detail);
            finding.steps.push(step);
            findings.push(finding);
        }
        findings.extend(self.check_claims(claims, progress).await?);
        findings.sort_by(|a, b| a.object.cmp(&b.object).then(a.detail.cmp(&b.detail)));
        Ok(findings)
    }

    /// Compares these blobs with their names and with their descriptions.
    async fn check_claims(
        &self,
        claims: Claims,
        progress: &(impl Fn(u64) + ?Sized),
    ) -> Result<Vec<Finding>> {
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

    /// Checks only the tables of these results, except those that `absent` accepts as missing.
    /// Returns the number of files that were read, and the damage. Fails if the store cannot be
    /// read at all. A damaged object is a finding.
    pub async fn verify_results(
        &self,
        results: &[Arc<Manifest>],
        absent: &(impl Fn(&PortArtifact) -> bool + ?Sized),
        progress: &(impl Fn(u64) + ?Sized),
    ) -> Result<(u64, Vec<Finding>)> {
        let mut claims = Claims::new();
        for manifest in results {
            let ports = manifest.ports.iter().filter(|port| !absent(port));
            ports.for_each(|port| add_claim(&mut claims, manifest, port));
        }
        let files = claims.len() as u64;
        let mut findings = self.check_claims(claims, progress).await?;
        findings.sort_by(|a, b| a.object.cmp(&b.object).then(a.detail.cmp(&b.detail)));
        Ok((files, findings))
    }

    /// Finds outcomes of checks, records of outputs and of runs that are damaged or have a wrong
    /// name.
    async fn unreadable_records(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        type CheckRecord = fn(&[u8]) -> Result<String, String>;
        let records: [(_, _, CheckRecord); 3] = [
            (FindingKind::DamagedOutcome, "checks", |bytes| {
                unseal::<StoredOutcome>(bytes).map(|outcome| check_name(&outcome.key))
            }),
            (FindingKind::DamagedOrigin, output_record::FOLDER, |bytes| {
                unseal::<OutputRecord>(bytes).map(|record| output_name(&record))
            }),
            (FindingKind::DamagedRun, "runs", |bytes| {
                unseal::<RunRecord>(bytes).map(|run| run_name(&run.id))
            }),
        ];
        for (kind, folder, name_in) in records {
            for (entry, bytes) in self.inner.backend.read_all(folder).await? {
                let cause = match name_in(&bytes) {
                    Ok(name) if name == entry.name => continue,
                    Ok(_) => "it has another's name".to_string(),
                    Err(cause) => cause,
                };
                findings.push(Finding::unreadable(kind, &entry.name, cause));
            }
        }
        Ok(findings)
    }

    /// Removes damaged objects, the manifests and parts that name them, and every result that was
    /// computed from them, so that the next run computes these results again. Returns the number of
    /// removed objects. If a run holds the store, the error has the kind
    /// [`Busy`](super::StoreErrorKind::Busy).
    pub async fn repair(&self, findings: &[Finding]) -> Result<u64> {
        if findings.is_empty() {
            return Ok(0);
        }
        let alone = self.exclusive_lock().await?;
        let wrong: Vec<Digest> = findings.iter().filter_map(|finding| finding.wrong).collect();
        let forgotten =
            if wrong.is_empty() { 0 } else { self.forget_descendants(&wrong).await?.objects };
        let names: BTreeSet<String> =
            findings.iter().flat_map(|finding| finding.remove.iter().cloned()).collect();
        // Objects that name a blob are removed before it.
        let (blobs, naming): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name.starts_with("blobs/"));
        let mut removed = self.inner.backend.remove_all(naming).await?;
        removed += self.inner.backend.remove_all(blobs).await?;
        drop(alone);
        self.settle().await;
        Ok(forgotten + removed)
    }

    /// Forgets the results and outcomes that were computed from these blobs, directly or through
    /// other results.
    pub async fn forget_descendants(&self, damaged: &[Digest]) -> Result<ForgottenResults> {
        let mut tainted: HashSet<Digest> = damaged.iter().copied().collect();
        let contents = StoreContents::of(self).await?;
        let mut manifests = contents.manifests;
        let (mut steps, mut names) = (Vec::new(), Vec::new());
        loop {
            let (gone, stay): (Vec<_>, Vec<_>) = manifests
                .into_iter()
                .partition(|manifest| manifest.reads.iter().any(|blob| tainted.contains(blob)));
            manifests = stay;
            if gone.is_empty() {
                break;
            }
            for manifest in gone {
                tainted.extend(manifest.ports.iter().map(|port| port.blob));
                names.push(manifest_name(&manifest.key));
                steps.push(manifest.labels.step);
            }
        }
        let parts = contents.parts.iter().filter(|(_, part)| tainted.contains(&part.blob));
        names.extend(parts.map(|(recipe, part)| memo_name(recipe, part)));
        for (entry, bytes) in self.inner.backend.read_all("checks").await? {
            match unseal::<StoredOutcome>(&bytes) {
                Ok(outcome)
                    if check_name(&outcome.key) == entry.name
                        && !outcome.reads.iter().any(|blob| tainted.contains(blob)) => {}
                _ => names.push(entry.name),
            }
        }
        if !names.is_empty() {
            tracing::warn!(count = names.len(), "forgets results that were computed from damage");
        }
        let objects = self.inner.backend.remove_all(names).await?;
        steps.sort();
        steps.dedup();
        Ok(ForgottenResults { steps, objects })
    }
}

impl Finding {
    /// Damage that is repaired by removing `remove`.
    fn new(kind: FindingKind, name: &str, detail: impl Into<String>, remove: Vec<String>) -> Self {
        let (object, detail) = (name.to_string(), detail.into());
        Self { kind, object, detail, steps: Vec::new(), remove, wrong: None }
    }

    /// Damage that is repaired by removing the object.
    fn of(kind: FindingKind, object: &str, detail: impl Into<String>) -> Self {
        Self::new(kind, object, detail, vec![object.to_string()])
    }

    fn unreadable(kind: FindingKind, object: &str, cause: impl fmt::Display) -> Self {
        Self::of(kind, object, format!("it cannot be read: {cause}"))
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

async fn check(
    store: &Store,
    blob: Digest,
    claims: Vec<BlobClaim>,
    progress: mpsc::UnboundedSender<u64>,
) -> Result<Vec<Finding>> {
    let name = blob_name(&blob);
    let claims = Arc::new(claims);
    let with_claims = |finding: Finding| Ok(vec![finding.with_claims(claims.iter())]);
    let unreadable = |cause: &dyn fmt::Display| {
        with_claims(Finding::unreadable(FindingKind::DamagedBlob, &name, cause).with_wrong(blob))
    };
    let file = match open(store, &name).await {
        Ok(Some(file)) => file,
        Ok(None) => {
            let missing = FindingKind::MissingBlob;
            return with_claims(Finding::new(missing, &name, "it is missing", Vec::new()));
        }
        // A damaged file must not stop the check of the rest, unlike a bucket that cannot be
        // reached.
        Err(error) if store.inner.backend.folder().is_some() => return unreadable(&error),
        Err(error) => return Err(error),
    };
    let about = file.metadata().ok();
    let work = {
        let (name, claims) = (name.clone(), Arc::clone(&claims));
        move || check_file(file, blob, &name, &claims, &progress)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(findings)) => {
            if let (Some(about), Some(folder)) = (about, store.inner.backend.folder())
                && !findings.iter().any(|finding| finding.remove.contains(&name))
            {
                folder.verified.remember(&blob, &about);
            }
            Ok(findings)
        }
        Ok(Err(error)) => unreadable(&error),
        // The Parquet reader panicked.
        Err(_) => {
            let (kind, detail) = (FindingKind::WrongTable, "its table cannot be read");
            with_claims(Finding::new(kind, &name, detail, Vec::new()).with_wrong(blob))
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

    let misfits: Vec<&BlobClaim> = claims.iter().filter(|claim| claim.bytes != bytes).collect();
    if Digest::from(hasher.finalize()) != blob {
        let finding = match misfits.first() {
            Some(BlobClaim { bytes: expected, .. }) => {
                let detail = format!("it has {bytes} bytes instead of {expected}");
                Finding::of(FindingKind::WrongSize, name, detail)
            }
            None => {
                let detail = "its content does not have the digest in its name";
                Finding::of(FindingKind::DamagedBlob, name, detail)
            }
        };
        return Ok(vec![finding.with_claims(claims).with_wrong(blob)]);
    }
    let finding =
        |kind, claim, detail| Finding::new(kind, name, detail, Vec::new()).with_claims([claim]);
    let mut findings = Vec::new();
    for claim in misfits {
        let detail = format!("it has {bytes} bytes instead of {} in {}", claim.bytes, claim.name);
        findings.push(finding(FindingKind::WrongSize, claim, detail));
    }
    if claims.is_empty() {
        return Ok(findings);
    }
    file.rewind()?;
    let digests = claims.iter().any(|claim| claim.table.is_some());
    let table = TableFile::open(file).map_err(Into::into);
    let table = table.and_then(|table| read_table(&table, digests));
    for claim in claims {
        if let Some(detail) = table_problem(&table, claim.rows, claim.table.as_ref(), &claim.name) {
            findings.push(finding(FindingKind::WrongTable, claim, detail).with_wrong(blob));
        }
    }
    Ok(findings)
}

pub(super) fn unreadable(cause: impl fmt::Display) -> String {
    format!("its table cannot be read: {cause}")
}

/// Describes how a table differs from its number of rows and its columns in a manifest.
pub(super) fn table_problem(
    table: &Result<TableContent, Box<dyn std::error::Error>>,
    rows: u64,
    port: Option<&PortArtifact>,
    manifest: &str,
) -> Option<String> {
    match table {
        Err(cause) => Some(unreadable(cause)),
        Ok((_, found)) if *found != rows => Some(format!("it has {found} rows instead of {rows}")),
        Ok((columns, _)) => port.and_then(|port| compare(columns, port, manifest)),
    }
}

/// The rows that are decoded at a time.
pub(super) const BATCH_ROWS: usize = 1024;

/// The digests of the columns of a table, and the number of rows.
pub(super) type TableContent = (Vec<ColumnDigest>, u64);

/// The digests of the columns of a table, if `digests` is true, and the number of rows.
pub(super) fn read_table(
    table: &TableFile,
    digests: bool,
) -> Result<TableContent, Box<dyn std::error::Error>> {
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

/// Describes how the columns of a table differ from those in its manifest.
fn compare(stored: &[ColumnDigest], port: &PortArtifact, manifest: &str) -> Option<String> {
    for column in &port.columns {
        match stored.iter().find(|other| other.name == column.name) {
            None => return Some(format!("it lacks the column {} of {manifest}", column.name)),
            Some(other) if other != column => {
                return Some(format!("column {} is not what {manifest} describes", column.name));
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
        .then(|| format!("its logical digest is not that of {manifest}"))
}
