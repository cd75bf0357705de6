//! `regress`: the effect of a treatment on outcomes, with its uncertainty, checks and refusals.
//!
//! The arithmetic is in the crate `galeras-causal`. Here:
//! - arguments (`args`) and their checks (`check`), the registries of estimators (`estimators`) and
//!   refuters (`refuters`), whose entries arguments name (`choice`);
//! - the input as columns (`frame`), the confounders (`adjustment`), the compared rows (`comparison`)
//!   and their faults (`data_faults`);
//! - the analysis of all groups and contrasts (`analysis`);
//! - a file for each port (`ports` lists them): its columns, and the code that makes its rows. The port
//!   `sensitivity` is filled by `evalue`, `robustness`, `attrition` and `omnibus`, too.

mod adjustment;
mod analysis;
mod args;
mod attrition;
mod balance;
mod beginnings;
mod check;
mod comparison;
mod contours;
mod data_faults;
mod design;
mod dose;
mod effect_sizes;
mod equivalence;
mod estimate_table;
mod estimators;
mod evalue;
mod findings;
mod frame;
mod identify;
mod modifiers;
mod omnibus;
mod overlap;
mod ports;
mod refuters;
mod registration;
mod robustness;
mod sensitivity;

use std::sync::Arc;

use datafusion::dataframe::DataFrame;

use self::adjustment::adjustment_plan;
use self::analysis::{ActivityReporter, AnalysisPlan, analyse};
use self::args::Args;
use self::beginnings::BEGINS;
use self::frame::{DATA_POINT, REPOSITORY};
use self::registration::RegisteredEstimates;
use crate::checks::is_plain;
use crate::step::{Analysis, BoundAnalysis, required, resolved};
use galeras_base::prose::intervals;
use galeras_operator::columns::is_text;
use galeras_operator::worker_threads::{StopOnDrop, on_thread, pool};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, LowerContext,
    Operator, Ports, REGISTRATION, StepError, Tell, TypedOperator, args_schema,
};
use galeras_sql::group_columns::GroupColumns;
use galeras_workflow::code::Code;

struct RegressOperator;

/// The operator.
pub const REGRESS: &dyn Operator = &RegressOperator;

impl TypedOperator for RegressOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "regress",
        version: 8,
        grain: Grain::of::<BoundAnalysis<RegressAnalysis>, _>(),
        effect: Effect::Seeded,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(mut args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let origin = origin(&args, cx);
        // A unit is a cluster where there are no others.
        args.cluster = args.cluster.filter(|cluster| args.unit.as_ref() != Some(cluster));
        let graph = check::check(&args, cx)?;
        let (mut adjustments, mut errors) = (Vec::new(), Vec::new());
        for outcome in &args.outcomes {
            match adjustment_plan(&args, graph.as_ref(), outcome) {
                Ok(plan) => adjustments.push(plan),
                Err(error) => {
                    errors.push(ArgError::new("graph", Code::BadGraph, error.to_string()));
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut resolved_args = resolved(&args)?;
        let registered = cx.registration.as_deref().map(|registration| {
            Arc::new(RegisteredEstimates::new(registration, &args, &resolved_args))
        });
        if let (Some(registration), Some(args)) = (&cx.registration, resolved_args.as_object_mut())
        {
            args.insert(REGISTRATION.to_string(), resolved(registration)?);
        }
        let input = cx.input();
        let groups = GroupColumns::new(&args.by, &input);
        let ports = ports::ports(&groups, registered.is_some());
        let begins = args.treatment != BEGINS
            && input.field(BEGINS).is_some_and(|field| is_text(field.data_type()));
        let plan = Arc::new(AnalysisPlan { args, graph, adjustments, origin, begins });
        let analysis = RegressAnalysis { plan, groups, registered };
        let key = input.key;
        Ok(Box::new(BoundAnalysis { analysis, resolved_args, key, ports }))
    }
}

/// The column that shows if ids of units repeat, unless a cluster, also the unit itself, confirms them;
/// without units that of the data points.
fn origin(args: &Args, cx: &BindContext) -> Option<&'static str> {
    let name = match &args.unit {
        Some(unit) if args.cluster.is_none() && unit != REPOSITORY => REPOSITORY,
        Some(_) => return None,
        None => DATA_POINT,
    };
    let is_plain = cx.input().field(name).is_some_and(|field| is_plain(field.data_type()));
    (is_plain && args.treatment != name).then_some(name)
}

#[derive(Debug)]
struct RegressAnalysis {
    plan: Arc<AnalysisPlan>,
    groups: GroupColumns,
    registered: Option<Arc<RegisteredEstimates>>,
}

impl Analysis for RegressAnalysis {
    const STAYS: Option<&'static str> =
        Some("its tables are small, and its sums are taken in one order");

    fn columns(&self) -> Vec<String> {
        let args = &self.plan.args;
        let labels = args.unit.iter().chain(&args.cluster).chain(&args.by);
        let origin = self.plan.origin.map(str::to_owned);
        let labels = labels.chain([&args.treatment]).cloned().chain(origin);
        labels.chain(self.plan.numbers()).collect()
    }

    fn intervals(&self, port: &str) -> Option<String> {
        let args = &self.plan.args;
        // The two one-sided tests of a margin.
        let alpha = if port == "equivalence" { 2.0 * args.alpha } else { args.alpha };
        let errors = args.standard_errors.map(|errors| format!(", standard errors {errors:?}"));
        let method = format!("of one test each{}", errors.unwrap_or_default());
        let cluster = args.cluster.as_ref().or(args.unit.as_ref());
        Some(intervals(alpha, &method, cluster.map(String::as_str)))
    }

    async fn tables(
        bound: &BoundAnalysis<Self>,
        cx: &LowerContext,
        input: Option<DataFrame>,
    ) -> Result<Ports, StepError> {
        let Self { plan, groups: by, registered } = &bound.analysis;
        let (input, plan) = (required(input, "regress")?, Arc::clone(plan));
        let groups = match by.is_empty() {
            true => None,
            false => Some(Arc::new(by.groups(input.clone()).await?)),
        };
        let group = by.id()?;
        let (numbers, origin) = (plan.numbers(), plan.origin);
        let mut frame = frame::read(input, &bound.key, &plan.args, &numbers, origin, group).await?;
        for warning in frame.warnings.drain(..) {
            (cx.tell)(Tell::Warning(warning));
        }
        let stop = StopOnDrop::default();
        let (flag, jobs) = (stop.flag(), cx.env.jobs);
        let (tell, of) = (Arc::clone(&cx.tell), groups.clone());
        let tables = on_thread(move || {
            let activity = ActivityReporter::new(move |text| tell(Tell::Activity(text)));
            let frames = match of.as_deref() {
                None => vec![frame],
                Some(groups) => frame.split(groups.ids()),
            };
            pool(jobs)?.install(|| analyse(&plan, &frames, of.as_deref(), &flag, &activity))
        })
        .await?;
        for warning in tables.iter().flat_map(|tables| &tables.warnings) {
            (cx.tell)(Tell::Warning(warning.clone()));
        }
        ports::into_ports(&tables, groups.as_deref(), registered.as_deref(), &cx.session)
    }
}
