//! Results from another store. A manifest is enough for a hit; a table is fetched when it is
//! needed: by an output, a data test without a stored outcome, or a step that is computed.
//!
//! A remote is optional. If it is down, wrong, or lacks a file, there is a warning, and the run
//! computes as if there were no remote. If signatures are required, results without a valid one by
//! an allowed signer are ignored.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tracing::debug;

use super::check::open_checks;
use super::error::RunError;
use super::key::StepManifests;
use super::lookup::other_tables;
use crate::locked;
use crate::plan::Plan;
use galeras_base::digest::Digest;
use galeras_operator::Port;
use galeras_operator::event::{EventSink, RunEvent};
use galeras_store::{
    AllowedSigners, CopyError, Manifest, Offer, PortArtifact, SignatureFile, Store, StoreLocation,
    StoredManifest, TableShape,
};

/// Requires signed results from a remote.
#[derive(Clone, Debug)]
pub struct SignatureDemand {
    /// The accepted signers.
    pub signers: AllowedSigners,
    /// The file of the signers, for messages.
    pub file: String,
}

/// A remote store, and its use by a run.
pub struct Remote {
    /// The store itself.
    pub store: Store,
    /// The required signatures.
    pub demand: Option<SignatureDemand>,
    state: Mutex<RemoteState>,
}

#[derive(Default)]
struct RemoteState {
    /// Its results by key, for keys that were requested.
    offers: HashMap<Digest, Option<Offered>>,
    /// Warnings to be sent later: the step and the problem.
    untold: Vec<(Option<String>, String)>,
    /// Keys with unusable results.
    denied: HashSet<Digest>,
    /// Locks for files that are being copied.
    copying: HashMap<Digest, Arc<tokio::sync::Mutex<()>>>,
    /// Files with the tables that they were found to be.
    judged: HashSet<(Digest, Digest)>,
    /// The reason why it cannot be reached; it is not asked again.
    trouble: Option<String>,
    /// It does not report sizes.
    sizeless: bool,
    refused: u64,
    fetched: Fetched,
}

#[derive(Clone)]
struct Offered {
    manifest: Arc<Manifest>,
    stored: Arc<StoredManifest>,
    /// Its signatures; empty if none are required.
    signatures: SignatureFile,
}

/// The fetched tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Their number.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
}

impl Remote {
    /// The store at `location`, as for [`Store::open_remote`]. Does not connect yet. With a demand,
    /// only signed results are accepted.
    ///
    /// # Errors
    /// If the location is invalid.
    pub async fn open(location: &str, demand: Option<SignatureDemand>) -> Result<Self, RunError> {
        let store = Store::open_remote(location).await?;
        let mut state = RemoteState::default();
        if let Ok(StoreLocation::Folder(folder)) = StoreLocation::parse(location)
            && !folder.exists()
        {
            // Its name may be misspelt, and what it has would be paid for again.
            let message = format!("there is no store {location}, and nothing comes from it");
            state.untold.push((None, message));
        }
        Ok(Self { store, demand, state: Mutex::new(state) })
    }

    /// Its location.
    pub fn location(&self) -> &str {
        self.store.location()
    }

    /// The reason why it is no longer used, if it could not be reached.
    pub fn trouble(&self) -> Option<String> {
        locked(&self.state).trouble.clone()
    }

    /// The number of its results that were requested and cannot be used.
    pub fn refused(&self) -> u64 {
        locked(&self.state).refused
    }

    /// Takes the warnings that have not been sent.
    pub fn untold(&self) -> Vec<String> {
        let untold = std::mem::take(&mut locked(&self.state).untold);
        let words = |(step, message): (Option<String>, String)| match step {
            Some(step) => format!("{step}: {message}"),
            None => message,
        };
        untold.into_iter().map(words).collect()
    }

    /// The tables fetched so far.
    pub fn fetched(&self) -> Fetched {
        locked(&self.state).fetched
    }

    /// The remote's result for a key, with the ports of the step. Fetches no tables.
    pub async fn manifest(
        &self,
        plan: &Plan,
        step: usize,
        key: &Digest,
        events: Option<&dyn EventSink>,
    ) -> Option<Arc<Manifest>> {
        if let Some(events) = events {
            let untold = std::mem::take(&mut locked(&self.state).untold);
            for (step, message) in untold {
                events.send(RunEvent::Warning { step, message });
            }
        }
        if self.trouble().is_some() || locked(&self.state).denied.contains(key) {
            return None;
        }
        if let Some(known) = locked(&self.state).offers.get(key) {
            return known.as_ref().map(|offered| Arc::clone(&offered.manifest));
        }
        let planned = &plan.steps[step];
        let doubt = |message: String| {
            locked(&self.state).refused += 1;
            self.warn(events, Some(planned.name.clone()), message);
        };
        let offer = match self.store.offer(key).await {
            Ok(Offer::Manifest(stored)) => {
                let differs = other_tables(planned, &stored.manifest);
                let (signatures, size) =
                    tokio::join!(self.signatures(&stored), self.other_size(&stored.manifest));
                let from = self.location();
                match (signatures, differs.or(size)) {
                    (Err(refusal), _) => {
                        doubt(format!("the result of this step in {from} {refusal}; computing"));
                        None
                    }
                    (Ok(_), Some(cause)) => {
                        doubt(unusable(from, &cause));
                        None
                    }
                    (Ok(signatures), None) => {
                        debug!(%key, "the remote has the result");
                        let manifest = Arc::new(stored.manifest.clone());
                        Some(Offered { manifest, stored: Arc::new(*stored), signatures })
                    }
                }
            }
            Ok(Offer::Nothing) => None,
            Ok(Offer::Unusable(cause)) => {
                doubt(unusable(self.location(), &cause));
                None
            }
            Err(error) => {
                let first = locked(&self.state).trouble.replace(error.to_string()).is_none();
                if first {
                    let message = "the remote cannot be reached, and nothing comes from it";
                    self.warn(events, None, format!("{message}: {error}"));
                }
                return None;
            }
        };
        let manifest = offer.as_ref().map(|offered| Arc::clone(&offered.manifest));
        locked(&self.state).offers.insert(*key, offer);
        manifest
    }

    /// A description of files whose size differs from the manifest, if the remote reports sizes.
    async fn other_size(&self, manifest: &Manifest) -> Option<String> {
        if locked(&self.state).sizeless {
            return None;
        }
        match self.store.other_size(manifest).await {
            Ok(cause) => cause,
            // Fetching shows if it exists at all.
            Err(error) => {
                debug!("no more sizes are asked for: {error}");
                locked(&self.state).sizeless = true;
                None
            }
        }
    }

    /// The signatures of a result, if one is by an allowed signer or none is required.
    ///
    /// # Errors
    /// The reason why it is not accepted, in words that follow “the result”.
    async fn signatures(&self, stored: &StoredManifest) -> Result<SignatureFile, String> {
        let Some(SignatureDemand { signers, file }) = &self.demand else {
            return Ok(SignatureFile::default());
        };
        let key = &stored.manifest.key;
        let signatures = self.store.offered_signatures(key).await;
        let signatures =
            signatures.map_err(|error| format!("has a signature that cannot be had: {error}"))?;
        let (signers, bytes) = (signers.clone(), stored.bytes.clone());
        let judged = tokio::task::spawn_blocking(move || {
            let accepted = signers.accept(&signatures, &bytes);
            (accepted, signatures)
        });
        match judged
            .await
            .map_err(|error| format!("has a signature that was not checked: {error}"))?
        {
            (Ok(signer), signatures) => {
                debug!(%key, signer, "signed");
                Ok(signatures)
            }
            (Err(refusal), _) => Err(format!("{refusal} (allowed signers: {file})")),
        }
    }

    /// Fetches the tables of a result that are needed at once: these ports, and those of open data
    /// tests. Stores the result if all of its tables are local. False if it is not available.
    pub(super) async fn take(
        &self,
        plan: &Plan,
        step: usize,
        manifest: &Manifest,
        ports: &HashSet<&str>,
        to: &Store,
        events: &dyn EventSink,
    ) -> Result<bool, RunError> {
        let mut needed = ports.clone();
        for (port, check) in open_checks(plan, step, to, manifest).await {
            // Outcomes are not signed: if signatures are required, the tables are tested here.
            let known = self.demand.is_none()
                && matches!(self.store.copy_check(to, &check).await, Ok(true));
            if !known {
                needed.insert(port);
            }
        }
        for port in manifest.ports.iter().filter(|port| needed.contains(port.port.as_str())) {
            let planned = plan.steps[step].port(&port.port);
            if let Some(cause) = self.fetch(port, planned, to).await? {
                self.deny(manifest.key, &plan.steps[step].name, &cause, events);
                return Ok(false);
            }
        }
        self.keep(manifest, to).await?;
        Ok(true)
    }

    /// Fetches the missing tables that a step reads. False if one is not available: then the step
    /// that produces it must run.
    pub(super) async fn fetch_inputs(
        &self,
        plan: &Plan,
        step: usize,
        done: &StepManifests,
        to: &Store,
        events: &dyn EventSink,
    ) -> Result<bool, RunError> {
        let mut all = true;
        for table in plan.steps[step].inputs.iter().flat_map(|input| &input.tables) {
            let Some(manifest) = done.get(table.step).and_then(Option::as_ref) else { continue };
            if !self.offered(&manifest.key) {
                continue;
            }
            let Some(port) = manifest.port(table.port) else { continue };
            let planned = plan.steps[table.step].port(table.port);
            match self.fetch(port, planned, to).await? {
                None => self.keep(manifest, to).await?,
                Some(cause) => {
                    self.deny(manifest.key, &plan.steps[table.step].name, &cause, events);
                    all = false;
                }
            }
        }
        Ok(all)
    }

    fn offered(&self, key: &Digest) -> bool {
        locked(&self.state).offers.get(key).is_some_and(Option::is_some)
    }

    /// Ensures that a table is in `to`, or returns the reason why the remote does not have it.
    async fn fetch(
        &self,
        port: &PortArtifact,
        planned: Option<&Port>,
        to: &Store,
    ) -> Result<Option<String>, RunError> {
        let shape = planned.map(|planned| TableShape::of(&planned.table));
        // Concurrent steps may need the same table: it is fetched once.
        let turn = Arc::clone(locked(&self.state).copying.entry(port.blob).or_default());
        let _turn = turn.lock().await;
        match self.store.copy_table(to, port, shape.as_ref()).await {
            Ok(copied) => {
                if copied {
                    let mut state = locked(&self.state);
                    state.fetched.files += 1;
                    state.fetched.bytes += port.bytes;
                }
                let new = locked(&self.state).judged.insert((port.blob, port.digest));
                // A file that was already here may not match this manifest.
                let mut cause = match copied || !new {
                    true => None,
                    false => to.judge(port).await?,
                };
                if let (None, Some(shape)) = (&cause, &shape) {
                    cause = to.misshapen(port, shape).await?;
                }
                Ok(cause.map(|cause| {
                    locked(&self.state).judged.remove(&(port.blob, port.digest));
                    format!("what {} has of this step: {cause}", self.store.location())
                }))
            }
            // A full disk is not an error of the remote.
            Err(CopyError::To(error)) => Err(error.into()),
            Err(CopyError::From(error)) => Ok(Some(error.to_string())),
        }
    }

    /// Reports that a result is not available, and stops asking for it.
    fn deny(&self, key: Digest, step: &str, cause: &str, events: &dyn EventSink) {
        self.warn(Some(events), Some(step.to_string()), format!("{cause}; computing"));
        locked(&self.state).denied.insert(key);
    }

    /// Stores a result whose tables are all local.
    async fn keep(&self, manifest: &Manifest, to: &Store) -> Result<(), RunError> {
        for port in &manifest.ports {
            if !to.has_blob(&port.blob, port.bytes).await? {
                return Ok(());
            }
        }
        let offered = locked(&self.state).offers.get(&manifest.key).cloned().flatten();
        match offered {
            Some(offered) if *offered.manifest == *manifest => {
                Ok(to.put_signed(&offered.stored, offered.signatures).await?)
            }
            _ => Ok(to.put_manifest(manifest).await?),
        }
    }

    /// Sends the warning, or keeps it for later.
    fn warn(&self, events: Option<&dyn EventSink>, step: Option<String>, message: String) {
        tracing::warn!("{message}");
        match events {
            Some(events) => events.send(RunEvent::Warning { step, message }),
            None => locked(&self.state).untold.push((step, message)),
        }
    }
}

fn unusable(from: &str, cause: &str) -> String {
    format!("what {from} has of this step cannot be used: {cause}; computing")
}
