//! `mixed`: linear mixed models of outcomes, with crossed and nested random effects.
//!
//! The arithmetic is in `galeras_causal::mixed`. Here: arguments and their checks (`args`), the
//! input as columns (`frame`), the model of one outcome (`model`), the rows of the
//! ports (`rows`), and how they are made (`tables`).

mod args;
mod frame;
mod model;
mod rows;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::Value;

use self::args::{Args, check};
use self::tables::ResultTables;
use galeras_operator::columns::is_text;
use galeras_operator::worker_threads::{on_thread, pool};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, LowerContext,
    Lowering, Operator, Port, Ports, Reads, StepError, TableStep, Tell, args_schema, parse_args,
};
use galeras_workflow::code::Code;

/// The operator.
pub struct MixedOperator;

const DESCRIPTOR: Descriptor = Descriptor {
    name: "mixed",
    version: 2,
    grain: Grain::of::<BoundMixed, _>(),
    effect: Effect::Pure,
    inputs: InputPorts::One,
    doc: include_str!("doc.md"),
    args_schema: args_schema::<Args>,
};

impl Operator for MixedOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            let args: Args = parse_args(args)?;
            check(&args, cx)?;
            let input = cx.input();
            let is_level =
                |name: &String| input.field(name).is_some_and(|field| is_text(field.data_type()));
            let texts: Vec<String> =
                args.fixed.iter().filter(|one| is_level(one)).cloned().collect();
            let resolved_args = serde_json::to_value(&args)
                .map_err(|error| vec![ArgError::new("", Code::WrongType, error.to_string())])?;
            Ok(Box::new(BoundMixed {
                args: Arc::new(args),
                texts: Arc::new(texts),
                resolved_args,
                key: input.key,
                ports: tables::ports(),
            }) as Box<dyn BoundStep>)
        })
    }
}

#[derive(Debug)]
struct BoundMixed {
    args: Arc<Args>,
    /// The fixed columns of text.
    texts: Arc<Vec<String>>,
    /// The arguments with their defaults, for the key of the result.
    resolved_args: Value,
    /// The key of the input: the order of rows.
    key: Vec<String>,
    ports: Vec<Port>,
}

impl BoundMixed {
    fn numbers(&self) -> Vec<String> {
        let fixed = self.args.fixed.iter().filter(|name| !self.texts.contains(name));
        self.args.outcomes.iter().chain(fixed).cloned().collect()
    }

    fn labels(&self) -> Vec<String> {
        let mut names: Vec<String> = self.texts.to_vec();
        names.extend(self.args.groupings().into_iter().flatten());
        names.sort();
        names.dedup();
        names
    }
}

impl BoundStep for BoundMixed {
    fn args(&self) -> Value {
        self.resolved_args.clone()
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        let mut columns = self.key.clone();
        columns.extend(self.numbers());
        columns.extend(self.labels());
        columns.sort();
        columns.dedup();
        Reads::Columns(columns)
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundMixed {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let missing = || StepError::new("`mixed` needs an input table");
            let input = inputs.remove(INPUT).ok_or_else(missing)?;
            let frame = frame::read(input, &self.key, &self.numbers(), &self.labels()).await?;
            let (args, texts, jobs) = (Arc::clone(&self.args), Arc::clone(&self.texts), cx.jobs);
            let models = on_thread(move || {
                let fit = |outcome: &String| model::fit(&args, &texts, &frame, outcome);
                let models: Vec<_> =
                    pool(jobs)?.install(|| args.outcomes.par_iter().map(fit).collect());
                Ok(ResultTables::new(&args, models))
            })
            .await?;
            for warning in &models.warnings {
                (cx.tell)(Tell::Warning(warning.clone()));
            }
            models.into_ports(&cx.session)
        })
    }
}
