//! Action keys: they contain everything that can change a step's result, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::plan::{Input, Plan, PlannedStep, cell_columns};
use galeras_base::digest::Digest;
use galeras_operator::{Reads, SideFile, StepError, is_virtual};
use galeras_store::{FORMAT_VERSION, Manifest, PortArtifact, Preimage};

/// The manifests of finished steps, by position in the plan.
pub type StepManifests = [Option<Arc<Manifest>>];

/// A key's pre-image with the names of its files.
pub(super) struct StepKey {
    pub preimage: Preimage,
    pub files: Vec<SideFile>,
}

/// The key of a step whose inputs are done. Reads and hashes its side files.
pub(super) fn step_key(
    plan: &Plan,
    step: &PlannedStep,
    done: &StepManifests,
) -> Result<StepKey, StepError> {
    let mut inputs = BTreeMap::new();
    for input in &step.inputs {
        let digest = input_digest(plan, input, &step.step.reads(&input.port), done)
            .ok_or_else(|| StepError::new("an input has not been computed"))?;
        inputs.insert(input.port.clone(), digest);
    }
    let files = step.step.side_files()?;
    let preimage =
        Preimage { inputs, files: files.iter().map(|f| f.digest).collect(), ..own(step) };
    Ok(StepKey { preimage, files })
}

/// The recipe of a step, which does not depend on its inputs.
pub(super) fn step_recipe(step: &PlannedStep) -> Digest {
    own(step).recipe()
}

/// The pre-image of a step without its inputs and files.
fn own(step: &PlannedStep) -> Preimage {
    let about = step.operator.descriptor();
    Preimage {
        format: FORMAT_VERSION,
        operator: about.name.to_string(),
        version: about.version,
        args: step.step.args(),
        inputs: BTreeMap::new(),
        files: Vec::new(),
        recipe_args: step.step.recipe_args(),
        recipe_version: step.step.recipe_version(),
    }
}

/// The logical digest of an input, or of the columns that are read.
pub(super) fn input_digest(
    plan: &Plan,
    input: &Input,
    reads: &Reads,
    done: &StepManifests,
) -> Option<Digest> {
    let columns = match reads {
        Reads::All => None,
        Reads::Columns(names) => Some(names.as_slice()),
    };
    let read = |name: &str| columns.is_none_or(|names| names.iter().any(|n| n == name));
    let mut parts = Vec::with_capacity(input.tables.len());
    for table in &input.tables {
        let artifact = artifact(done, table.step, table.port)?;
        let digest = artifact.digest_of(columns);
        // A column that is filled in on reading counts as content if it is read.
        let filled = plan.steps[table.step]
            .port(table.port)?
            .table
            .schema
            .fields()
            .iter()
            .any(|f| is_virtual(f) && read(f.name()));
        let step = filled.then(|| plan.steps[table.step].name.as_str());
        parts.push((digest, step, &table.cell));
    }
    match parts.as_slice() {
        [(digest, None, _)] if !input.united => Some(*digest),
        _ => {
            let parts: Vec<_> = parts
                .iter()
                .map(|(digest, step, cell)| {
                    let columns = cell_columns(cell).filter(|(name, _)| read(name));
                    let cell: serde_json::Map<_, _> =
                        columns.map(|(name, value)| (name.to_string(), value.clone())).collect();
                    json!({"digest": digest, "step": step, "cell": cell})
                })
                .collect();
            Some(Digest::of_json(&json!({"united": parts})))
        }
    }
}

/// The stored table of a step's port.
pub(super) fn artifact<'a>(
    done: &'a StepManifests,
    step: usize,
    port: &str,
) -> Option<&'a PortArtifact> {
    done.get(step)?.as_ref()?.port(port)
}
