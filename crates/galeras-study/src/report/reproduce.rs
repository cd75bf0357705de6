//! The steps to reproduce the results: commands, pins of the lock file, digests.

use std::path::Path;

use galeras_pages::model::{Labelled, ReproduceBlock};
use serde_json::Value;

use crate::runs::value_text;
use crate::{Surveyed, hint, table_name};
use galeras_engine::plan::LockFile;
use galeras_store::default_store;

const FACTS: usize = 200;

pub(super) fn reproduce(surveyed: &Surveyed) -> ReproduceBlock {
    let plan = &surveyed.plan;
    let command = |purpose: &str, value: String| Labelled { name: purpose.to_string(), value };
    let cache = default_store(Path::new(&plan.file));
    let cache = &*cache.to_string_lossy();
    let mut commands = vec![
        command(
            "compute everything, or only missing results",
            hint::command("run", &plan.file, &plan.set, cache),
        ),
        command("see what would run, and why", hint::command("plan", &plan.file, &plan.set, cache)),
    ];
    let lock = Path::new(&plan.file);
    let (facts, note) = match LockFile::beside(lock) {
        Ok(lock) => {
            let facts = facts(&lock, &plan.file);
            let note = match facts.is_empty() {
                true => "Nothing of the world outside is pinned: a later run asks again which \
                         commits, files and models there are. `galeras lock` pins them."
                    .to_string(),
                false => String::new(),
            };
            (facts, note)
        }
        Err(problem) => (Vec::new(), format!("The lock file cannot be read: {problem}")),
    };
    if !facts.is_empty() {
        let frozen = format!("{} --frozen", hint::command("run", &plan.file, &plan.set, cache));
        commands.push(command("the same, with only the pins in `galeras.lock`", frozen));
    }
    ReproduceBlock { note, commands, facts, digests: digests(surveyed) }
}

fn facts(lock: &LockFile, file: &str) -> Vec<Labelled> {
    let file = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    let is_ours = |workflows: &[String]| {
        workflows.is_empty() || workflows.iter().any(|known| known.ends_with(file.as_ref()))
    };
    let words = |value: &Value| match value {
        Value::Object(map) => {
            let one = |(name, value): (&String, &Value)| format!("{name} {}", value_text(value));
            map.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        other => value_text(other),
    };
    let versions =
        lock.versions.iter().filter(|fact| is_ours(&fact.workflows)).map(|fact| Labelled {
            name: format!("{} of {}", fact.operator, words(&fact.of)),
            value: fact.version.clone(),
        });
    let files = lock.files.iter().filter(|fact| is_ours(&fact.workflows));
    let files =
        files.map(|fact| Labelled { name: fact.url.clone(), value: fact.blake3.to_string() });
    let snapshots = lock.snapshots.iter().filter(|fact| is_ours(&fact.workflows)).map(|fact| {
        let rows = fact.rows.len();
        Labelled {
            name: format!("{} asked {}", fact.operator, fact.asked),
            value: format!("{rows} rows, digest {}", fact.digest),
        }
    });
    versions.chain(files).chain(snapshots).take(FACTS).collect()
}

fn digests(surveyed: &Surveyed) -> Vec<Labelled> {
    let mut digests = Vec::new();
    for output in &surveyed.plan.outputs {
        for table in &output.input.tables {
            let Some(artifact) = surveyed.stored(table.step, table.port) else { continue };
            let name = table_name(&surveyed.plan.steps[table.step].name, table.port);
            let digest = Labelled { name, value: artifact.digest.to_string() };
            if !digests.contains(&digest) {
                digests.push(digest);
            }
        }
    }
    digests
}
