//! The earlier runs of a workflow, from their records: the results and the time of each step.

use std::collections::HashMap;

use tokio::sync::OnceCell;

use crate::plan::Plan;
use galeras_operator::event::{StepStatus, StepSummary};
use galeras_store::{Manifest, RunRecord, Store};

/// The number of runs that are searched for the last result of a step.
const RECENT_RUNS: usize = 30;

/// The earlier runs of a workflow, read when they are first needed.
pub(super) struct RunHistory {
    store: Store,
    workflow: String,
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

/// The result of a step's last run.
pub(super) enum LastRun {
    Result(Box<Manifest>),
    /// A result that is no longer in the store.
    Gone,
    /// It failed, or did not start because the run was interrupted.
    Failed(&'static str),
    /// It never ran.
    None,
}

impl RunHistory {
    pub(super) fn new(store: &Store, workflow: &str) -> Self {
        Self { store: store.clone(), workflow: workflow.to_string(), runs: OnceCell::new() }
    }

    async fn runs(&self) -> &[PastRun] {
        let load = || async {
            let runs = self.store.recent_runs(RECENT_RUNS).await.unwrap_or_default();
            let runs = runs.into_iter().filter(|run| run.workflow == self.workflow);
            runs.map(PastRun::new).collect()
        };
        self.runs.get_or_init(load).await
    }

    pub(super) async fn last(&self, step: &str) -> LastRun {
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
                        return match self.store.manifest(key).await {
                            Ok(Some(manifest)) => LastRun::Result(Box::new(manifest)),
                            _ => LastRun::Gone,
                        };
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
        interrupted.map_or(LastRun::None, LastRun::Failed)
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
