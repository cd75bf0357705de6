//! `regress`: the effect of a treatment on outcomes, with its uncertainty, checks and refusals.
//!
//! The arithmetic is in the crate `galeras-causal`. Here: arguments (`args`, `check`), the input as
//! columns (`frame`), what is adjusted for (`adjustment`), which rows are compared and what forbids
//! it (`comparison`), one estimate (`estimate`), the refuters (`refutations`) and the analysis of
//! all contrasts (`analysis`). A table's columns stand beside the code that makes its rows:
//! `estimate_table`, `refutation_table`, `balance`, `overlap`, `sensitivity` (with `omnibus`),
//! `contours`, `modifiers`, `identify` (what follows from the graph). They share `shared_columns`;
//! `ports` lists them. `front_door` has the estimate through mediators.

mod adjustment;
mod analysis;
mod args;
mod balance;
mod check;
mod comparison;
mod contours;
mod estimate;
mod estimate_table;
mod frame;
mod front_door;
mod identify;
mod modifiers;
mod omnibus;
mod overlap;
mod ports;
mod refutation_table;
mod refutations;
mod sensitivity;
mod shared_columns;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use serde_json::Value;

use self::adjustment::adjustment_plan;
use self::analysis::{ActivityReporter, AnalysisPlan, analyse};
use self::args::Args;
use super::worker_threads::{StopOnDrop, on_thread, pool};
use crate::code::Code;
use crate::operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, LowerContext,
    Lowering, Operator, Port, Ports, Reads, StepError, TableStep, Tell, args_schema, parse_args,
};

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
            let mut adjustments = Vec::new();
            if errors.is_empty() {
                for outcome in &args.outcomes {
                    match adjustment_plan(&args, graph.as_ref(), outcome) {
                        Ok(plan) => adjustments.push(plan),
                        Err(error) => {
                            errors.push(ArgError::new("graph", Code::BadGraph, error.to_string()));
                        }
                    }
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let resolved_args = serde_json::to_value(&args)
                .map_err(|error| vec![ArgError::new("", Code::WrongType, error.to_string())])?;
            let key = cx.input().key;
            Ok(Box::new(BoundRegress {
                resolved_args,
                plan: Arc::new(AnalysisPlan { args, graph, adjustments }),
                key,
                ports: ports::ports(),
            }) as Box<dyn BoundStep>)
        })
    }
}

#[derive(Debug)]
struct BoundRegress {
    /// The arguments with their defaults, for the key of the result.
    resolved_args: Value,
    plan: Arc<AnalysisPlan>,
    /// The key of the input: the order of rows.
    key: Vec<String>,
    ports: Vec<Port>,
}

impl BoundStep for BoundRegress {
    fn args(&self) -> Value {
        self.resolved_args.clone()
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        let args = &self.plan.args;
        let mut columns = self.key.clone();
        columns.push(args.treatment.clone());
        columns.extend(args.unit.iter().chain(&args.cluster).cloned());
        columns.extend(self.plan.numbers());
        columns.sort();
        columns.dedup();
        Reads::Columns(columns)
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
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
            let plan = Arc::clone(&self.plan);
            let frame = frame::read(input, &self.key, &plan.args, &plan.numbers()).await?;
            let stop = StopOnDrop::default();
            let (flag, jobs) = (stop.flag(), cx.jobs);
            let tell = Arc::clone(&cx.tell);
            let tables = on_thread(move || {
                let activity = ActivityReporter::new(move |text| tell(Tell::Activity(text)));
                pool(jobs)?.install(|| analyse(&plan, &frame, &flag, &activity))
            })
            .await?;
            for warning in &tables.warnings {
                (cx.tell)(Tell::Warning(warning.clone()));
            }
            tables.into_ports(&cx.session)
        })
    }
}
