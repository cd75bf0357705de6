//! The earlier runs of a workflow, from their records: the results and the time of each step, and
//! the expected time now.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use tokio::sync::OnceCell;

use super::error::RunError;
use super::fan_out_step::StoredRows;
use super::key::step_recipe;
use crate::plan::{Plan, PlannedStep};
use galeras_operator::Lowering;
use galeras_operator::event::{Reason, StepStatus, StepSummary};
use galeras_store::{Manifest, RunRecord, Store};

/// The number of runs that are searched for the last result of a step.
const RECENT_RUNS: usize = 30;

/// The earlier runs of a workflow, read when they are first needed.
pub(super) struct RunHistory {
    store: Store,
    workflow: String,
    file: PathBuf,
    runs: OnceCell<Vec<PastRun>>,
}

struct PastRun {
    killed: bool,
    steps: HashMap<String, StepSummary>,
}

impl PastRun {
    fn new(run: RunRecord) -> Self {
        let mut steps = HashMap::with_capacity(run.steps.len());
        for step in run.steps {
            steps.entry(step.step.clone()).or_insert(step);
        }
        Self { killed: run.status.is_none(), steps }
    }

    /// The rows that the step at this position would have read with its present inputs.
    fn input_rows(&self, plan: &Plan, at: usize) -> Option<u64> {
        let tables = plan.steps[at].inputs.iter().flat_map(|input| &input.tables);
        let rows = tables.map(|table| {
            let step = self.steps.get(&plan.steps[table.step].name)?;
            step.ports.iter().find(|port| port.port == table.port).map(|port| port.rows)
        });
        rows.sum()
    }
}

/// The work of a step in an earlier run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PastWork {
    /// Wall time in seconds.
    pub(super) seconds: f64,
    /// The work computed, in the step's unit.
    pub(super) computed: u64,
    /// The work reused from runs before it.
    pub(super) reused: u64,
    /// Rows of its inputs, if known.
    pub(super) input_rows: Option<u64>,
}

impl RunHistory {
    pub(super) fn new(store: &Store, plan: &Plan) -> Self {
        let (workflow, file) = (plan.name.clone(), PathBuf::from(&plan.file));
        Self { store: store.clone(), workflow, file, runs: OnceCell::new() }
    }

    async fn runs(&self) -> &[PastRun] {
        let load = || async {
            let runs = self.store.recent_runs(RECENT_RUNS).await.unwrap_or_default();
            let own = |run: &RunRecord| run.workflow == self.workflow && run.is_of(&self.file);
            let runs = runs.into_iter().filter(own);
            runs.map(PastRun::new).collect()
        };
        self.runs.get_or_init(load).await
    }

    /// The result of a step's last run, or the reason why there is none, with details.
    pub(super) async fn last(&self, step: &str) -> Result<Manifest, (Reason, Option<String>)> {
        let mut interrupted = None;
        for run in self.runs().await {
            match run.steps.get(step) {
                None => {
                    if run.killed {
                        interrupted = Some("the last run was killed before this step was done");
                    }
                }
                Some(step) => match (step.status, &step.key) {
                    (StepStatus::Hit | StepStatus::Ran, Some(key)) => {
                        let gone = "the last result is no longer in the store";
                        let stored = self.store.manifest(key).await.ok().flatten();
                        return stored.ok_or_else(|| (Reason::BlobMissing, Some(gone.into())));
                    }
                    (StepStatus::Failed, _) => {
                        interrupted.get_or_insert("it failed in the last run");
                    }
                    _ => {
                        interrupted.get_or_insert("the last run stopped before this step");
                    }
                },
            }
        }
        Err(match interrupted {
            Some(why) => (Reason::PrevFailed, Some(why.to_string())),
            None => (Reason::New, None),
        })
    }

    /// The work of the step at this position in the run that computed most of it; otherwise, the
    /// work recorded in its stored result.
    pub(super) async fn work(&self, plan: &Plan, at: usize) -> Option<PastWork> {
        let name = plan.steps[at].name.as_str();
        let runs = self.runs().await.iter();
        let found: Vec<(&PastRun, &StepSummary)> =
            runs.filter_map(|run| Some((run, run.steps.get(name)?))).collect();
        let ran = found.iter().filter(|(_, step)| step.status == StepStatus::Ran);
        // Among equal ones, the newest.
        if let Some((run, step)) = ran.rev().max_by_key(|(_, step)| step.computed_rows) {
            return Some(PastWork {
                seconds: step.seconds,
                computed: step.computed_rows,
                reused: step.reused_rows,
                input_rows: run.input_rows(plan, at),
            });
        }
        let (run, key) = found.iter().find_map(|(run, step)| Some((run, step.key?)))?;
        let manifest = self.store.manifest(&key).await.ok().flatten()?;
        Some(PastWork {
            seconds: manifest.seconds,
            computed: manifest.computed_rows,
            reused: manifest.reused_rows,
            input_rows: run.input_rows(plan, at),
        })
    }
}

/// The time of whole tables may not be proportional to their rows: beyond this change of size there
/// is no estimate.
const MOST_GROWTH: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Expectation {
    pub(super) past: PastWork,
    /// The part of its work that is already stored, in its unit; `None` for a step that is computed
    /// as a whole.
    pub(super) stored: Option<u64>,
}

impl Expectation {
    /// The seconds to compute this much work.
    pub(super) fn of_work(&self, total: u64) -> Option<f64> {
        match total {
            0 => Some(0.0),
            _ if self.past.computed == 0 => None,
            _ => Some(self.past.seconds / self.past.computed as f64 * total as f64),
        }
    }

    /// The seconds of the step, given the rows of its inputs if they are known.
    pub(super) fn seconds(&self, input_rows: Option<u64>) -> Option<f64> {
        let growth = match (input_rows, self.past.input_rows) {
            (Some(now), Some(then)) if then > 0 => now as f64 / then as f64,
            _ => 1.0,
        };
        match self.stored {
            Some(stored) => {
                let all = (self.past.computed + self.past.reused) as f64 * growth;
                self.of_work((all as u64).saturating_sub(stored))
            }
            None => {
                let near = (1.0 / MOST_GROWTH..=MOST_GROWTH).contains(&growth);
                near.then_some(self.past.seconds * growth)
            }
        }
    }
}

/// The expectations for the steps of a plan, by position; `None` for steps that no earlier run has
/// computed. A new cell of a matrix is estimated from its siblings.
pub(super) async fn expectations(
    plan: &Plan,
    history: &RunHistory,
    store: &Store,
    force: &HashSet<usize>,
) -> Vec<Option<Expectation>> {
    let mut siblings: HashMap<&str, PastWork> = HashMap::new();
    let mut past = Vec::with_capacity(plan.steps.len());
    for at in 0..plan.steps.len() {
        let own = history.work(plan, at).await;
        if let Some(own) = own {
            siblings.entry(base(&plan.steps[at].name)).or_insert(own);
        }
        past.push(own);
    }
    let mut known = Vec::with_capacity(past.len());
    for (at, own) in past.into_iter().enumerate() {
        let step = &plan.steps[at];
        let Some(past) = own.or_else(|| siblings.get(base(&step.name)).copied()) else {
            known.push(None);
            continue;
        };
        let stored = match step.step.lowering() {
            Lowering::Table(_) => None,
            _ if force.contains(&at) => Some(0),
            lowering @ (Lowering::Row(_) | Lowering::FanOut(_) | Lowering::Paid(_)) => {
                let parts = store.listed_parts(&step_recipe(step)).await.unwrap_or_default();
                Some(match lowering {
                    Lowering::FanOut(_) => StoredRows::of(&parts).count() as u64,
                    _ => parts.iter().map(|part| part.rows).sum(),
                })
            }
        };
        known.push(Some(Expectation { past, stored }));
    }
    known
}

/// The number of stored rows of a step, for any input.
///
/// # Errors
/// If the store cannot be read.
pub async fn stored_rows_of(step: &PlannedStep, store: &Store) -> Result<u64, RunError> {
    let parts = store.listed_parts(&step_recipe(step)).await?;
    Ok(parts.iter().map(|part| part.rows).sum())
}

/// The name of the step without its cell.
pub(super) fn base(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_work(stored: u64) -> Expectation {
        let past = PastWork { seconds: 10.0, computed: 100, reused: 900, input_rows: Some(500) };
        Expectation { past, stored: Some(stored) }
    }

    #[test]
    fn rows_take_what_a_row_took() {
        assert_eq!(row_work(0).of_work(50), Some(5.0));
        assert_eq!(row_work(0).seconds(None), Some(100.0));
        // Twice the input is twice the work; stored work is not computed again.
        assert_eq!(row_work(0).seconds(Some(1000)), Some(200.0));
        assert_eq!(row_work(1990).seconds(Some(1000)), Some(1.0));
        assert_eq!(row_work(5000).seconds(Some(1000)), Some(0.0));
    }

    #[test]
    fn nothing_is_said_without_a_row_to_go_by() {
        let mut nothing = row_work(0);
        nothing.past.computed = 0;
        assert_eq!(nothing.of_work(1), None);
        assert_eq!(nothing.of_work(0), Some(0.0));
        assert_eq!(nothing.seconds(None), None);
    }

    #[test]
    fn tables_take_what_they_took_unless_they_are_of_quite_another_size() {
        let table = Expectation { stored: None, ..row_work(0) };
        assert_eq!(table.seconds(None), Some(10.0));
        assert_eq!(table.seconds(Some(1000)), Some(20.0));
        assert_eq!(table.seconds(Some(5000)), None);
        assert_eq!(table.seconds(Some(5)), None);
    }

    #[test]
    fn a_cell_has_siblings() {
        assert_eq!(base("gen[model=a]"), "gen");
        assert_eq!(base("in/gen"), "in/gen");
    }
}
