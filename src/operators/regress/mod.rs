//! `regress`: the effect of a treatment on outcomes, with its uncertainty, checks and refusals.
//!
//! The arithmetic is in `causal`. Here: arguments (`args`, `check`), the input as columns
//! (`frame`), which rows are compared and what forbids it (`comparison`), what is adjusted for
//! (`identify`), one estimate (`estimate`), the refuters (`refutations`), the diagnostics
//! (`balance`, `sensitivity`, `omnibus`, `modifiers`), the analysis of all contrasts (`analysis`)
//! and the tables (`tables`, `ports`).

mod analysis;
mod args;
mod balance;
mod check;
mod comparison;
mod estimate;
mod frame;
mod identify;
mod modifiers;
mod omnibus;
mod ports;
mod refutations;
mod sensitivity;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use serde_json::Value;

use self::args::Args;
use self::identify::Identified;
use super::support::cells::{Cell, batch};
use super::worker_threads::{StopOnDrop, on_thread, pool};
use crate::code::Code;
use crate::operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, LowerContext,
    Lowering, MAIN, Operator, Port, Ports, Reads, SUMMARY, StepError, TableStep, Tell, args_schema,
    parse_args,
};
use galeras_causal::{CausalGraph, ColumnRef, Refusal};

/// The operator.
pub(super) struct RegressOperator;

const DESCRIPTOR: Descriptor = Descriptor {
    name: "regress",
    version: 1,
    grain: Grain::of::<BoundRegress, _>(),
    effect: Effect::Seeded,
    inputs: InputPorts::One,
    doc: include_str!("doc.md"),
    args_schema: args_schema::<Args>,
};

impl Operator for RegressOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            let mut args: Args = parse_args(args)?;
            // A unit is a cluster where there are no others.
            args.cluster = args.cluster.filter(|cluster| args.unit.as_ref() != Some(cluster));
            let mut errors = Vec::new();
            let graph = check::check(&args, cx, &mut errors);
            let mut identified = Vec::new();
            if errors.is_empty() {
                for outcome in &args.outcomes {
                    match identify::identified(&args, graph.as_ref(), outcome) {
                        Ok(found) => identified.push(found),
                        Err(error) => {
                            errors.push(ArgError::new("graph", Code::BadGraph, error.to_string()));
                        }
                    }
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let key = cx.input().key;
            Ok(Box::new(BoundRegress {
                analysis: Arc::new(Bound { args, graph, identified }),
                key,
                ports: ports::ports(),
            }) as Box<dyn BoundStep>)
        })
    }
}

/// What an analysis knows before it sees a row.
#[derive(Debug)]
struct Bound {
    args: Args,
    graph: Option<CausalGraph>,
    /// For each outcome.
    identified: Vec<Identified>,
}

impl Bound {
    /// Every column of numbers that is read.
    fn numbers(&self) -> Vec<String> {
        let mut more: Vec<String> = self
            .identified
            .iter()
            .flat_map(|one| one.adjusted.iter().chain(&one.instruments).cloned())
            .collect();
        if let Some(graph) = &self.graph {
            // Testable implications may speak of any of them.
            let observed = graph.names().iter().filter(|name| !graph.is_latent(name));
            more.extend(observed.filter(|name| **name != self.args.treatment).cloned());
        }
        self.args.numbers(&more)
    }
}

#[derive(Debug)]
struct BoundRegress {
    analysis: Arc<Bound>,
    /// The key of the input: the order of rows.
    key: Vec<String>,
    ports: Vec<Port>,
}

impl BoundStep for BoundRegress {
    fn args(&self) -> Value {
        serde_json::json!(self.analysis.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        let args = &self.analysis.args;
        let mut columns = self.key.clone();
        columns.push(args.treatment.clone());
        columns.extend(args.unit.iter().chain(&args.cluster).cloned());
        columns.extend(self.analysis.numbers());
        columns.sort();
        columns.dedup();
        Reads::Columns(columns)
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// The rows of each port.
#[derive(Default)]
struct Tables {
    estimates: Vec<Vec<Cell>>,
    summary: Vec<Vec<Cell>>,
    refutations: Vec<Vec<Cell>>,
    balance: Vec<Vec<Cell>>,
    overlap: Vec<Vec<Cell>>,
    sensitivity: Vec<Vec<Cell>>,
    modifiers: Vec<Vec<Cell>>,
    graph: Vec<Vec<Cell>>,
    /// What the user should be told at once.
    warnings: Vec<String>,
}

impl TableStep for BoundRegress {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let missing = || StepError::new("`regress` needs an input table");
            let input = inputs.remove(INPUT).ok_or_else(missing)?;
            let bound = Arc::clone(&self.analysis);
            let frame = frame::read(input, &self.key, &bound.args, &bound.numbers()).await?;
            let stop = StopOnDrop::default();
            let (flag, jobs) = (stop.flag(), cx.jobs);
            let tell = Arc::clone(&cx.tell);
            let tables = on_thread(move || {
                let activity = analysis::Activity::new(move |text| tell(Tell::Activity(text)));
                pool(jobs)?.install(|| analysis::analyse(&bound, &frame, &flag, &activity))
            })
            .await?;
            for warning in &tables.warnings {
                (cx.tell)(Tell::Warning(warning.clone()));
            }
            let table = |columns, rows: &[Vec<Cell>]| -> Result<DataFrame, StepError> {
                Ok(cx.session.read_batch(batch(columns, rows)?)?)
            };
            Ok(vec![
                (MAIN, table(ports::ESTIMATES, &tables.estimates)?),
                (SUMMARY, table(ports::SUMMARY_COLUMNS, &tables.summary)?),
                (ports::REFUTATIONS, table(ports::REFUTATION_COLUMNS, &tables.refutations)?),
                (ports::BALANCE, table(ports::BALANCE_COLUMNS, &tables.balance)?),
                (ports::OVERLAP, table(ports::OVERLAP_COLUMNS, &tables.overlap)?),
                (ports::SENSITIVITY, table(ports::SENSITIVITY_COLUMNS, &tables.sensitivity)?),
                (ports::MODIFIERS, table(ports::MODIFIER_COLUMNS, &tables.modifiers)?),
                (ports::GRAPH, table(ports::GRAPH_COLUMNS, &tables.graph)?),
            ])
        })
    }
}

/// A refusal in words: covariates have their names.
fn named(refusal: &Refusal, names: &[String]) -> String {
    refusal.describe(|column| match column {
        ColumnRef::Covariate(position) => names.get(position).map(String::as_str),
        _ => None,
    })
}
