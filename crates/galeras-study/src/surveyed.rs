//! A workflow with its store and the state of every step; the graph of its steps.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;

use crate::hint;
use galeras_base::terminal_escape::shell_word;
use galeras_display::{GraphEdge, GraphNode, NodeState, StepGraph};
use galeras_engine::plan::{Input, Plan, PlannedStep, cell_columns, preflight};
use galeras_engine::runner::{
    Forecast, Remote, RunError, StepManifests, StepState, open, open_port, survey,
};
use galeras_operator::event::Reason;
use galeras_operator::{MAIN, StepError};
use galeras_store::{LockGuard, Manifest, PortArtifact, Store, StoreError};
use galeras_workflow::Diagnostics;

/// The most cells that a command names individually; otherwise it names their step.
const SELECTED: usize = 3;

/// The reason why there is no such table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The workflow has no table of this name.
    #[error("{0}")]
    Unknown(String),
    /// It is not computed for the current workflow.
    #[error("{0}")]
    NotComputed(String),
}

/// A workflow with its store and the state of every step.
pub struct Surveyed {
    /// The plan of the workflow.
    pub plan: Arc<Plan>,
    /// The store of its results.
    pub store: Store,
    /// The states of the steps, by position in the plan.
    pub states: Vec<StepState>,
    /// The store's location as typed.
    cache: String,
    /// Keeps results from being removed; `None` if tables are only read under another lock.
    _reading: Option<LockGuard>,
}

impl Surveyed {
    /// Looks up the states of the steps, also in the remote.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn of(
        plan: Plan,
        store: Store,
        cache: &str,
        remote: Option<&Remote>,
    ) -> Result<Self, RunError> {
        let reading = store.reading_lock().await?;
        let states = survey(&plan, &store, remote).await?;
        let (plan, cache) = (Arc::new(plan), cache.to_string());
        Ok(Self { plan, store, states, cache, _reading: Some(reading) })
    }

    /// The same without the remote, for a caller that locks the store while it reads tables.
    pub(crate) async fn unlocked(
        plan: Arc<Plan>,
        store: Store,
        cache: &str,
    ) -> Result<Self, RunError> {
        let states = survey(&plan, &store, None).await?;
        Ok(Self { plan, store, states, cache: cache.to_string(), _reading: None })
    }

    /// The workflow with the results of the run that just ended.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn after_run(
        plan: Arc<Plan>,
        store: Store,
        results: &StepManifests,
        cache: &str,
    ) -> Result<Self, StoreError> {
        let reading = store.reading_lock().await?;
        let state = |manifest: &Option<Arc<Manifest>>| StepState {
            forecast: match manifest {
                Some(_) => Forecast::Hit,
                None => Forecast::Broken("it did not run".to_string()),
            },
            manifest: manifest.clone(),
            preimage: None,
        };
        let states = results.iter().map(state).collect();
        Ok(Self { plan, store, states, cache: cache.to_string(), _reading: Some(reading) })
    }

    /// The stored results, by position in the plan.
    pub fn done(&self) -> Vec<Option<Arc<Manifest>>> {
        self.states.iter().map(|s| s.manifest.clone()).collect()
    }

    /// The stored table of a port of a step.
    pub fn stored(&self, step: usize, port: &str) -> Option<&PortArtifact> {
        self.states[step].manifest.as_ref()?.port(port)
    }

    /// The rows of a table, all of which is stored.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open(&self, session: &SessionContext, input: &Input) -> Result<DataFrame, StepError> {
        open(session, &self.store, &self.plan, input, &self.done())
    }

    /// The rows of a stored port of a step.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open_port(
        &self,
        session: &SessionContext,
        step: usize,
        port: &str,
    ) -> Result<DataFrame, StepError> {
        open_port(session, &self.store, &self.plan, step, port, &self.done())
    }

    /// The missing requirements of the steps that would run.
    pub fn lacking(&self) -> Diagnostics {
        let runs = |at: &usize| !self.states[*at].forecast.is_hit();
        preflight(&self.plan, (0..self.states.len()).filter(runs))
    }

    /// Resolves a table name (`valid`, `valid.rejects`, `gen[*]`) as `from:` does.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn table(&self, name: &str) -> Result<Input, TableError> {
        self.plan.table(name).map_err(|problem| {
            let help = problem.help.map(|help| format!("; {help}")).unwrap_or_default();
            TableError::Unknown(format!("{}{help}", problem.message))
        })
    }

    /// The same, if all of it is stored for the workflow in its current state.
    ///
    /// # Errors
    /// If there is no such table, or it is not computed.
    pub fn computed_table(&self, name: &str) -> Result<Input, TableError> {
        let input = self.table(name)?;
        let missing = |step: &usize| self.states[*step].manifest.is_none();
        let missing: Vec<usize> = input.tables.iter().map(|t| t.step).filter(missing).collect();
        if missing.is_empty() { Ok(input) } else { Err(self.not_computed(&missing)) }
    }

    /// The rows of a table; `None` if not all of it is stored.
    pub fn rows(&self, input: &Input) -> Option<u64> {
        input.tables.iter().map(|table| Some(self.stored(table.step, table.port)?.rows)).sum()
    }

    /// The command that computes the missing results.
    pub fn command(&self) -> String {
        hint::command("run", &self.plan.file, &self.plan.set, &self.cache)
    }

    /// The error if a step has no usable result.
    ///
    /// # Errors
    /// If so.
    pub fn complete(&self) -> Result<(), TableError> {
        let states = self.states.iter().enumerate();
        let missing: Vec<usize> =
            states.filter(|(_, state)| !state.forecast.is_hit()).map(|(at, _)| at).collect();
        if missing.is_empty() { Ok(()) } else { Err(self.not_computed(&missing)) }
    }

    /// The error that these steps have no stored result, and how to compute it.
    fn not_computed(&self, missing: &[usize]) -> TableError {
        let steps: Vec<&PlannedStep> = missing.iter().map(|at| &self.plan.steps[*at]).collect();
        let mut names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let state = match (missing, names.as_slice()) {
            ([at], [step]) => match &self.states[*at].forecast {
                Forecast::Runs { reason: Reason::BlobMissing, detail: Some(detail) } => {
                    format!("the result of `{step}` cannot be used, because {detail}")
                }
                _ => format!("`{step}` is not computed yet for the current workflow"),
            },
            (_, [first, ..]) => {
                let (more, step) = (names.len() - 1, first);
                format!("`{step}` and {more} more are not computed yet for the current workflow")
            }
            (_, []) => "nothing is computed yet".to_string(),
        };
        if names.len() > SELECTED {
            names = steps.iter().map(|step| step.family.as_str()).collect();
            names.dedup();
        }
        let select: String =
            names.iter().map(|name| format!(" --select {}", shell_word(name))).collect();
        TableError::NotComputed(format!("{state}; run\n  {}{select}", self.command()))
    }
}

/// The name of a step's table: `valid`, `valid.rejects`.
pub fn table_name(step: &str, port: &str) -> String {
    if port == MAIN { step.to_string() } else { format!("{step}.{port}") }
}

/// Columns that tell rows of one data point apart.
const ARMS: &[&str] = &["treatment", "model", "baseline", "sample"];

/// Columns of statistics, the most important first: a narrow screen has no room for all.
const STATISTICS: &[&str] =
    &["mean", "estimate", "effect", "ci_low", "ci_high", "p_value", "p_adjusted", "p_adj", "n"];

/// These columns of a table with an interval, the most important statistics first. A query has the
/// order that its author chose.
pub fn by_importance<'a>(plan: &Plan, input: &Input, names: &[&'a str]) -> Vec<&'a str> {
    let is_query = |step: usize| plan.steps[step].operator.descriptor().name == "sql";
    let rank = |name: &str| STATISTICS.iter().position(|known| *known == name);
    let first = names.iter().position(|name| rank(name).is_some());
    let (true, Some(first)) = (names.contains(&"ci_low"), first) else { return names.to_vec() };
    if input.tables.iter().any(|table| is_query(table.step)) {
        return names.to_vec();
    }
    let mut order = names[..first].to_vec();
    let mut rest = names[first..].to_vec();
    // Those of no rank stay in their order.
    rest.sort_by_key(|name| rank(name).unwrap_or(STATISTICS.len()));
    order.append(&mut rest);
    order
}

/// The columns of a table for people: first its key and those that tell the rows of a data point
/// apart, then the columns of the step, then those of its input.
pub fn columns_for_people(plan: &Plan, input: &Input) -> Vec<String> {
    let mut order: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    if let Some(table) = input.tables.first() {
        order.extend(cell_columns(&table.cell).map(|(name, _)| name).filter(|_| input.united));
        let inputs = &plan.steps[table.step].inputs;
        known.extend(inputs.iter().flat_map(|input| input.schema.names()));
    }
    order.extend(input.schema.key.iter().map(String::as_str));
    order.extend(ARMS);
    let own: Vec<&str> = input.schema.names().filter(|name| !known.contains(name)).collect();
    order.extend(by_importance(plan, input, &own));
    order.extend(input.schema.names());
    let mut placed = HashSet::new();
    order.retain(|name| input.schema.field(name).is_some() && placed.insert(*name));
    order.into_iter().map(str::to_string).collect()
}

/// The graph to draw; without `cells`, steps that share a name are merged.
pub fn step_graph(surveyed: &Surveyed, cells: bool) -> StepGraph {
    let plan = &surveyed.plan;
    let mut nodes: Vec<GraphNode> = Vec::new();
    let mut places = Vec::with_capacity(plan.steps.len());
    let mut families: HashMap<&str, usize> = HashMap::new();
    for (step, state) in plan.steps.iter().zip(&surveyed.states) {
        let state = node_state(&state.forecast);
        let known = families.get(step.family.as_str()).copied().filter(|_| !cells);
        let place = known.unwrap_or(nodes.len());
        match nodes.get_mut(place) {
            Some(node) => {
                node.name.clone_from(&step.family);
                node.states.push(state);
            }
            None => {
                families.insert(&step.family, place);
                let label = step.operator.descriptor().name.to_string();
                nodes.push(GraphNode { name: step.name.clone(), label, states: vec![state] });
            }
        }
        places.push(place);
    }
    let mut edges: Vec<GraphEdge> = Vec::new();
    let mut drawn = HashSet::new();
    for (to, step) in plan.steps.iter().enumerate() {
        for table in step.inputs.iter().flat_map(|input| &input.tables) {
            let port = (table.port != MAIN).then_some(table.port);
            let (from, to) = (places[table.step], places[to]);
            if drawn.insert((from, to, port)) {
                edges.push(GraphEdge { from, to, label: port.map(str::to_string) });
            }
        }
    }
    StepGraph { title: plan.name.clone(), nodes, edges }
}

fn node_state(forecast: &Forecast) -> NodeState {
    match forecast {
        Forecast::Hit | Forecast::RemoteHit => NodeState::Hit,
        Forecast::Runs { reason: Reason::New, .. } => NodeState::New,
        Forecast::Runs { .. } => NodeState::Changed,
        Forecast::Waits { .. } => NodeState::Waiting,
        Forecast::Broken(_) => NodeState::Broken,
    }
}
