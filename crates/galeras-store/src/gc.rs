//! Garbage collection.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::backend::{Backend, ObjectEntry};
use super::content_store::{Store, StoreContents};
use super::error::{Result, StoreError, StoreErrorKind};
use super::job_objects::WORK;
use super::manifest::{MANIFEST_VERSION, Manifest, MemoPart};
use super::object_name::{manifest_name, memo_name};
use super::run_record::{RunRecord, rfc3339};
use galeras_base::digest::Digest;
use galeras_base::scratch::sweep_unfinished;
use galeras_operator::event::RunStatus;

const DAY: Duration = Duration::from_secs(86_400);

/// How long the parts of an interrupted step without a result are kept by default: a model may have
/// been paid for them.
const INTERRUPTED: Duration = Duration::from_secs(7 * 86_400);

/// The rules of a collection. With neither `keep_runs` nor `older_than` every result stays, and
/// only objects without a result are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcPolicy {
    /// Keeps the results of the last so many finished runs of every workflow, and of later killed
    /// runs.
    pub keep_runs: Option<usize>,
    /// Keeps results that were computed or reused more recently than that.
    pub older_than: Option<Duration>,
    /// Then removes results, the longest unused first, until the blobs are at most this large.
    /// Results that `keep_runs` keeps stay.
    pub max_bytes: Option<u64>,
    /// Only reports, and takes no lock.
    pub dry_run: bool,
}

/// The numbers of objects that a collection removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcReport {
    /// Results.
    pub manifests: u64,
    /// Tables.
    pub blobs: u64,
    /// The size of the tables in bytes.
    pub bytes: u64,
    /// Temporary files of dead processes.
    pub temp_files: u64,
}

impl Store {
    /// Removes the objects that the policy does not keep. It locks the whole store: if a run holds
    /// it, the error has the kind [`StoreErrorKind::Busy`].
    pub async fn gc(&self, policy: GcPolicy) -> Result<GcReport> {
        let backend = &self.inner.backend;
        let folder = backend.folder();
        if folder.is_some_and(|folder| !folder.root.is_dir()) {
            return Ok(GcReport::default());
        }
        let alone = if policy.dry_run { None } else { Some(self.exclusive_lock().await?) };
        let contents = StoreContents::of(self).await?;
        if let Some((name, format)) = contents.other_formats.iter().find(|f| f.1 > MANIFEST_VERSION)
        {
            // Its blobs are not known here and would all be collected.
            let cause = format!("{name} has format {format}, written by a newer galeras; use that");
            let newer = StoreErrorKind::Unsupported;
            return Err(StoreError::new(newer, "clean", self.location(), cause));
        }
        let runs = self.recent_runs(usize::MAX).await?;
        let now = SystemTime::now();
        let mut removals = Removals::new(&contents, &runs, &policy, now);
        let gone: HashSet<&String> = removals.manifests.iter().collect();
        let keys = contents.manifests.iter().map(|manifest| &manifest.key);
        let kept = keys.filter(|key| !gone.contains(&manifest_name(key)));
        let mut loose = self.loose_signatures(kept).await?;
        let older_than = |age| {
            let limit = now.checked_sub(age);
            move |entry: &ObjectEntry| limit.is_some_and(|limit| entry.modified < limit)
        };
        let older_than_a_day = older_than(DAY);
        // Without locks on runs, a run may be about to name an object that it just wrote.
        if matches!(backend, Backend::Bucket(_)) {
            removals.blobs.retain(older_than_a_day);
            loose.retain(older_than_a_day);
            // Leases of killed holders.
            loose.extend(backend.list("locks").await?.into_iter().filter(older_than_a_day));
        }
        // Jobs of killed runs.
        loose.extend(backend.list(WORK).await?.into_iter().filter(older_than_a_day));
        if let (Some(age), false) = (policy.older_than, policy.dry_run) {
            loose.extend(backend.list("checks").await?.into_iter().filter(older_than(age)));
            let cutoff = now.checked_sub(age).map_or_else(String::new, rfc3339);
            removals.others.extend(self.superseded_outputs(&cutoff).await?);
        }
        removals.others.extend(loose.into_iter().map(|entry| entry.name));

        let temp = folder.map(|folder| folder.path("tmp"));
        let report = GcReport {
            manifests: removals.manifests.len() as u64,
            blobs: removals.blobs.len() as u64,
            bytes: removals.blobs.iter().map(|blob| blob.bytes).sum(),
            temp_files: temp.map_or(0, |temp| sweep_unfinished(&temp, policy.dry_run)),
        };
        if !policy.dry_run {
            // The objects that name a blob are removed before it: a killed collection damages
            // nothing.
            backend.remove_all(removals.manifests).await?;
            backend.remove_all(removals.others).await?;
            let gone: HashSet<String> = removals.blobs.into_iter().map(|blob| blob.name).collect();
            backend.remove_all(gone.iter().cloned()).await?;
            let stay = contents.blobs.iter().filter(|(_, entry)| !gone.contains(&entry.name));
            let stay: HashSet<Digest> = stay.map(|(blob, _)| *blob).collect();
            if let Some(folder) = folder {
                // If it cannot be rewritten, it is only longer than needed.
                let _ = folder.verified.keep(&stay);
            }
        }
        drop(alone);
        self.settle().await;
        Ok(report)
    }
}

/// The names of the objects to remove.
struct Removals {
    manifests: Vec<String>,
    /// Parts, remembered checks, signatures, leases, jobs, and origins of replaced output files.
    others: Vec<String>,
    blobs: Vec<ObjectEntry>,
}

impl Removals {
    fn new(
        contents: &StoreContents,
        runs: &[RunRecord],
        policy: &GcPolicy,
        now: SystemTime,
    ) -> Self {
        let kept_by_runs = policy.keep_runs.map(|count| keys_of_runs(runs, count));
        let before = |age| now.checked_sub(age).map_or_else(String::new, rfc3339);
        let cutoff = policy.older_than.map(before);
        let last_use = last_uses(contents, runs);
        let used = |manifest: &Manifest| last_use.get(&manifest.key).copied().unwrap_or_default();
        let protected = |manifest: &Manifest| {
            kept_by_runs.as_ref().is_some_and(|keys| keys.contains(&manifest.key))
        };
        let young = |time: &str| cutoff.as_ref().is_some_and(|cutoff| time >= cutoff.as_str());
        let no_rule = kept_by_runs.is_none() && cutoff.is_none();

        let stays = |manifest: &&Manifest| no_rule || protected(manifest) || young(used(manifest));
        let mut kept: Vec<&Manifest> = contents.manifests.iter().filter(stays).collect();
        let with_result: HashSet<Digest> =
            contents.manifests.iter().map(|manifest| manifest.preimage.recipe()).collect();
        let grace = before(policy.older_than.unwrap_or(INTERRUPTED));
        let waiting = |recipe: &Digest, created: &str| {
            young(created) || (!with_result.contains(recipe) && created >= grace.as_str())
        };

        let mut blobs = References::new(contents);
        let mut recipes: HashMap<Digest, Vec<Digest>> = HashMap::new();
        for (recipe, part) in &contents.parts {
            recipes.entry(*recipe).or_default().push(part.blob);
            if waiting(recipe, &part.created) {
                blobs.add(part.blob);
            }
        }
        // A recipe keeps its parts as long as it has a result.
        let parts_of = |recipe: &Digest| recipes.get(recipe).into_iter().flatten().copied();
        let mut results_of: HashMap<Digest, usize> = HashMap::new();
        for manifest in &kept {
            let recipe = manifest.preimage.recipe();
            let results = results_of.entry(recipe).or_default();
            if *results == 0 {
                parts_of(&recipe).for_each(|blob| blobs.add(blob));
            }
            *results += 1;
            manifest.ports.iter().for_each(|port| blobs.add(port.blob));
        }

        // The longest unused last, for `pop`.
        let mut expendable: Vec<&Manifest> =
            kept.iter().copied().filter(|manifest| !protected(manifest)).collect();
        expendable.sort_by(|a, b| used(b).cmp(used(a)).then(a.key.cmp(&b.key)));
        let mut evicted = HashSet::new();
        while policy.max_bytes.is_some_and(|max| blobs.total > max) {
            let Some(manifest) = expendable.pop() else { break };
            evicted.insert(manifest.key);
            manifest.ports.iter().for_each(|port| blobs.drop(port.blob));
            let recipe = manifest.preimage.recipe();
            let results = results_of.entry(recipe).or_default();
            *results = results.saturating_sub(1);
            if *results == 0 {
                parts_of(&recipe).for_each(|blob| blobs.drop(blob));
            }
        }
        kept.retain(|manifest| !evicted.contains(&manifest.key));

        let kept: HashSet<Digest> = kept.iter().map(|manifest| manifest.key).collect();
        let gone = contents.manifests.iter().map(|manifest| manifest.key);
        let gone = gone.filter(|key| !kept.contains(key)).map(|key| manifest_name(&key));
        let unreadable = contents.damaged_manifests.iter().map(|(name, _)| name.clone());
        let outdated = contents.other_formats.iter().map(|(name, _)| name.clone());
        let is_gone = |(recipe, part): &&(Digest, MemoPart)| {
            let results = results_of.get(recipe).copied().unwrap_or_default();
            results == 0 && !waiting(recipe, &part.created)
        };
        let gone_parts = contents.parts.iter().filter(is_gone);
        let gone_parts = gone_parts.map(|(recipe, part)| memo_name(recipe, part));
        let unreadable_parts = contents.damaged_parts.iter().map(|(name, _)| name.clone());
        let unused = contents.blobs.iter().filter(|(digest, _)| !blobs.contains(digest));
        Self {
            manifests: gone.chain(unreadable).chain(outdated).collect(),
            others: gone_parts.chain(unreadable_parts).collect(),
            blobs: unused.map(|(_, entry)| entry.clone()).collect(),
        }
    }
}

/// The number of references to each blob, and the total size of the blobs with a reference.
struct References {
    count: HashMap<Digest, usize>,
    size: HashMap<Digest, u64>,
    total: u64,
}

impl References {
    fn new(contents: &StoreContents) -> Self {
        let size = contents.blobs.iter().map(|(digest, entry)| (*digest, entry.bytes)).collect();
        Self { count: HashMap::new(), size, total: 0 }
    }

    fn add(&mut self, blob: Digest) {
        let count = self.count.entry(blob).or_default();
        *count += 1;
        if *count == 1 {
            self.total += self.size.get(&blob).copied().unwrap_or(0);
        }
    }

    fn drop(&mut self, blob: Digest) {
        let count = self.count.entry(blob).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.total -= self.size.get(&blob).copied().unwrap_or(0);
        }
    }

    fn contains(&self, blob: &Digest) -> bool {
        self.count.get(blob).is_some_and(|count| *count > 0)
    }
}

/// The keys that the last `count` finished runs of every workflow refer to, and those of later
/// killed runs, which do not count.
fn keys_of_runs(newest_first: &[RunRecord], count: usize) -> HashSet<Digest> {
    let mut finished: HashMap<&str, usize> = HashMap::new();
    let mut keys = HashSet::new();
    for run in newest_first {
        let seen = finished.entry(&run.workflow).or_default();
        if *seen >= count {
            continue;
        }
        let ended = !matches!(run.status, None | Some(RunStatus::Interrupted));
        let mut named = run.steps.iter().filter_map(|step| step.key).peekable();
        *seen += usize::from(ended && named.peek().is_some());
        keys.extend(named);
    }
    keys
}

/// The time when each result was last computed or reused.
fn last_uses<'a>(contents: &'a StoreContents, runs: &'a [RunRecord]) -> HashMap<Digest, &'a str> {
    let computed = contents.manifests.iter().map(|manifest| (manifest.key, &manifest.created));
    let reused = runs
        .iter()
        .flat_map(|run| run.steps.iter().filter_map(move |step| Some((step.key?, &run.started))));
    let mut last: HashMap<Digest, &str> = HashMap::new();
    for (key, time) in computed.chain(reused) {
        let known = last.entry(key).or_default();
        *known = (*known).max(time.as_str());
    }
    last
}
