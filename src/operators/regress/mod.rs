//! `regress`: the effect of a treatment on outcomes, with its uncertainty, checks and refusals.
//!
//! The arithmetic is in the crate `galeras-causal`. Here: arguments (`args`, `check`), the input as
//! columns (`frame`), what is adjusted for (`adjustment`), which rows are compared and what forbids
//! it (`comparison`), one estimate (`estimate`), the refuters (`refutations`) and the analysis of
//! all contrasts (`analysis`). A table's columns stand beside the code that makes its rows:
//! `estimate_table`, `refutation_table`, `balance`, `overlap`, `sensitivity` (with `omnibus`),
//! `modifiers`, `identify` (what follows from the graph). They share `shared_columns`; `ports` lists them.

mod adjustment;
mod analysis;
mod args;
mod balance;
mod check;
mod comparison;
mod estimate;
mod estimate_table;
mod frame;
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
use super::support::threads::{StopOnDrop, on_thread, pool};
use crate::operator::{
    ArgError, BindContext, Effect, Grain, INPUT, InputPorts, LowerContext, Lowering, Operator,
    Port, Ports, Reads, Step, StepError, TableStep, Tell, args_schema, parse_args,
};
use galeras_causal::Refusal;

/// The operator.
pub(super) struct Regress;

impl Operator for Regress {
    fn name(&self) -> &'static str {
        "regress"
    }

    fn version(&self) -> u32 {
        1
    }

    fn grain(&self) -> Grain {
        Grain::Table
    }

    fn effect(&self) -> Effect {
        Effect::Seeded
    }

    fn inputs(&self) -> InputPorts {
        InputPorts::One
    }

    fn doc(&self) -> &'static str {
        include_str!("doc.md")
    }

    fn args_schema(&self) -> Value {
        args_schema::<Args>()
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn Step>, Vec<ArgError>>> {
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
                            errors.push(ArgError::new("graph", "bad-graph", error.to_string()));
                        }
                    }
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let resolved_args = serde_json::to_value(&args)
                .map_err(|error| vec![ArgError::new("", "wrong-type", error.to_string())])?;
            let key = cx.input().key;
            Ok(Box::new(BoundRegress {
                resolved_args,
                plan: Arc::new(AnalysisPlan { args, graph, adjustments }),
                key,
                ports: ports::ports(),
            }) as Box<dyn Step>)
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

impl Step for BoundRegress {
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

/// A refusal in words: columns have their names in the place of `#` and a position.
fn named(refusal: &Refusal, names: &[String]) -> String {
    let text = refusal.to_string();
    let mut parts = text.split('#');
    let mut told = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (position, rest) = part.split_at(digits);
        match position.parse::<usize>().ok().and_then(|at| names.get(at)) {
            Some(name) if told.matches('`').count() % 2 == 1 => told.push_str(name),
            Some(name) => told.push_str(&format!("`{name}`")),
            None => told.push_str(&format!("#{position}")),
        }
        told.push_str(rest);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_become_names() {
        let names = ["size".to_string(), "age".to_string()];
        let told = |text: &str| named(&Refusal::Other(text.into()), &names);
        assert_eq!(
            told("`treatment x #0` and covariate #1."),
            "`treatment x size` and covariate `age`."
        );
        assert_eq!(told("#7 of `outcome`"), "#7 of `outcome`");
        assert_eq!(named(&Refusal::Constant("#1".into()), &names), "`age` has one value only");
    }
}
