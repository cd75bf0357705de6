//! `mixed`: linear mixed models of outcomes, with crossed and nested random effects.
//!
//! The arithmetic is in `galeras_causal::mixed`. Here: arguments and their checks (`args`), the model
//! of one outcome (`model`), and the rows of the ports (`tables`).

mod args;
mod model;
mod tables;

use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use self::args::{Args, Family, check};
use self::tables::ResultTables;
use crate::columns::{NONE, label, read_named_columns};
use crate::step::{Analysis, BoundAnalysis, required, resolved};
use galeras_base::prose::intervals;
use galeras_operator::columns::is_text;
use galeras_operator::worker_threads::{on_thread, pool};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, LowerContext,
    Operator, Ports, StepError, Tell, TypedOperator, args_schema,
};

struct MixedOperator;

/// The operator.
pub const MIXED: &dyn Operator = &MixedOperator;

impl TypedOperator for MixedOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "mixed",
        version: 4,
        grain: Grain::of::<BoundAnalysis<MixedAnalysis>, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        check(&args, cx)?;
        let input = cx.input();
        let is_level =
            |name: &String| input.field(name).is_some_and(|field| is_text(field.data_type()));
        let texts: Vec<String> = args.fixed.iter().filter(|one| is_level(one)).cloned().collect();
        Ok(Box::new(BoundAnalysis {
            resolved_args: resolved(&args)?,
            analysis: MixedAnalysis { args: Arc::new(args), texts: Arc::new(texts) },
            key: input.key,
            ports: tables::ports(),
        }))
    }
}

#[derive(Debug)]
struct MixedAnalysis {
    args: Arc<Args>,
    /// The fixed columns of text.
    texts: Arc<Vec<String>>,
}

impl MixedAnalysis {
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

impl Analysis for MixedAnalysis {
    fn columns(&self) -> Vec<String> {
        self.numbers().into_iter().chain(self.labels()).collect()
    }

    fn intervals(&self, _: &str) -> Option<String> {
        let method = match self.args.family {
            Family::Normal => "Student's t, with Satterthwaite's degrees of freedom",
            Family::Binomial => "normal",
        };
        Some(intervals(self.args.alpha, method, None))
    }

    async fn tables(
        bound: &BoundAnalysis<Self>,
        cx: &LowerContext,
        input: Option<DataFrame>,
    ) -> Result<Ports, StepError> {
        let (input, own) = (required(input, "mixed")?, &bound.analysis);
        let mut labels = Vec::new();
        for name in own.labels() {
            let text = label(input.schema(), &name)?;
            labels.push((name, text));
        }
        let mut frame = read_named_columns(input, &bound.key, labels, &own.numbers()).await?;
        let mut warnings = Vec::new();
        for (name, codes) in &mut frame.labels {
            let base: Vec<&str> = own.args.base.get(name).map(String::as_str).into_iter().collect();
            let to_keep = "write another text if it is a value";
            let given = std::mem::take(codes);
            *codes = given.without_missing_texts(name, &base, to_keep, &mut warnings);
        }
        for warning in warnings {
            (cx.tell)(Tell::Warning(warning));
        }
        if frame.rows >= NONE as usize {
            return Err(StepError::new("`mixed` takes fewer than 2³² rows"));
        }
        let (args, texts, jobs) = (Arc::clone(&own.args), Arc::clone(&own.texts), cx.env.jobs);
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
    }
}
