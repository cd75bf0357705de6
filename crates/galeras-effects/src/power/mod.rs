//! `power`: the effects that a study detects, before it is run.
//!
//! The arithmetic is in `galeras-causal`. Here: arguments and their checks; `rows` reads the table of a
//! pilot and makes the rows of the results.

mod rows;

use std::collections::BTreeMap;

use datafusion::dataframe::DataFrame;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::rows::{ComponentsRow, PilotColumns, PowerRow, Sources, power_rows, read_pilot};
use crate::checks::{ArgChecks, five_percent, is_plain};
use crate::step::{Analysis, BoundAnalysis, resolved, table};
use galeras_operator::columns::is_number;
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::table_schema;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, LowerContext,
    MAIN, Operator, Port, Ports, StepError, TypedOperator, args_schema,
};
use galeras_workflow::code::Code;

const COMPONENTS: &str = "components";

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The numbers of data points of the study.
    #[schemars(length(min = 1))]
    units: Vec<u64>,
    /// The numbers of answers to each data point under an arm.
    #[serde(default = "one_sample")]
    #[schemars(length(min = 1))]
    samples: Vec<u64>,
    /// Effects of the treatment, in the unit of the outcome. If absent the smallest that is found.
    #[serde(default)]
    effects: Vec<f64>,
    /// The arms, control among them. If absent those of the pilot, or two.
    #[serde(default)]
    arms: Option<u64>,
    /// The number of tests that `alpha` is divided by; if absent arms less one, times outcomes.
    #[serde(default)]
    tests: Option<u64>,
    /// Every data point is answered under every arm.
    #[serde(default = "paired")]
    paired: bool,
    /// The data points of a cluster in the study; needed where there is a standard deviation
    /// between clusters.
    #[serde(default)]
    cluster_size: Option<u64>,
    /// The wanted probability of finding an effect.
    #[serde(default = "power")]
    #[schemars(range(min = 0.0, max = 1.0))]
    power: f64,
    /// The level of the tests of a family.
    #[serde(default = "five_percent")]
    #[schemars(range(min = 0.0, max = 1.0))]
    alpha: f64,
    /// The largest effect, to either side, that still counts as none.
    #[serde(default)]
    margin: Option<f64>,
    /// Of the pilot: the column with the arm of a row.
    #[serde(default)]
    treatment: Option<String>,
    /// Of the pilot: the arm that others are compared with.
    #[serde(default)]
    control: Option<String>,
    /// Of the pilot: the column of the data point.
    #[serde(default)]
    unit: Option<String>,
    /// Of the pilot: the column of clusters of data points.
    #[serde(default)]
    cluster: Option<String>,
    /// Of the pilot: the outcomes.
    #[serde(default)]
    outcomes: Vec<String>,
    /// Of the pilot: the treatment of rows without a value.
    #[serde(default)]
    missing: MissingValues,
    /// Without a pilot: the standard deviations of each outcome.
    #[serde(default)]
    assume: BTreeMap<String, AssumedDeviations>,
}

/// Standard deviations, in the unit of the outcome.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AssumedDeviations {
    /// Of the effect between data points; if the study is not paired, of their outcomes.
    unit: f64,
    /// Between samples of a data point under one arm.
    #[serde(default)]
    sample: f64,
    /// Of the effect between clusters.
    #[serde(default)]
    cluster: f64,
}

fn one_sample() -> Vec<u64> {
    vec![1]
}

fn paired() -> bool {
    true
}

fn power() -> f64 {
    0.8
}

struct PowerOperator;

/// The operator.
pub const POWER: &dyn Operator = &PowerOperator;

impl TypedOperator for PowerOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "power",
        version: 2,
        grain: Grain::of::<BoundAnalysis<PowerAnalysis>, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::Any,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut checks = ArgChecks::new(cx);
        check_numbers(&args, &mut checks);
        let pilot = check_sources(&args, &mut checks);
        if !checks.errors.is_empty() {
            return Err(checks.errors);
        }
        let contrast = ["outcome", "treatment"];
        let all = ["outcome", "treatment", "units", "samples", "effect"];
        let ports = vec![
            Port::new(MAIN, table_schema::<PowerRow>().keyed(&all)),
            Port::new(COMPONENTS, table_schema::<ComponentsRow>().keyed(&contrast)),
        ];
        Ok(Box::new(BoundAnalysis {
            resolved_args: resolved(&args)?,
            analysis: PowerAnalysis { args, pilot },
            key: cx.input().key,
            ports,
        }))
    }
}

/// Numbers are in range, and none is listed twice.
fn check_numbers(args: &Args, checks: &mut ArgChecks<'_>) {
    checks.alpha(args.alpha);
    if args.alpha > 0.0 && args.alpha < 1.0 && !(args.power > args.alpha && args.power < 1.0) {
        checks.out_of_range("power", "`power` must lie between `alpha` and 1");
    }
    for (list, numbers, range, message) in [
        ("units", &args.units, 2..=1_000_000_000, "a study has 2 to 1,000,000,000 data points"),
        ("samples", &args.samples, 1..=1_000_000, "a data point has 1 to 1,000,000 samples"),
    ] {
        for at in (0..numbers.len()).filter(|at| !range.contains(&numbers[*at])) {
            checks.out_of_range(&format!("{list}[{at}]"), message);
        }
        checks.once(list, numbers, "it is listed twice");
    }
    for (at, effect) in args.effects.iter().enumerate() {
        if !(effect.abs() > 0.0 && effect.is_finite()) {
            checks.out_of_range(&format!("effects[{at}]"), "an effect of 0 is never found");
        }
    }
    for (path, number, least) in
        [("arms", args.arms, 2), ("tests", args.tests, 1), ("cluster_size", args.cluster_size, 1)]
    {
        if number.is_some_and(|number| number < least || number > 1_000_000_000) {
            checks.out_of_range(path, format!("`{path}` must be at least {least}"));
        }
    }
    if args.margin.is_some_and(|margin| !(margin > 0.0 && margin.is_finite())) {
        checks.out_of_range("margin", "a margin must be above 0");
    }
    if args.margin.is_some() && args.alpha >= 0.5 {
        checks.out_of_range("alpha", "one-sided tests need an `alpha` below 0.5");
    }
    checks.once("effects", &args.effects, "it is listed twice");
    if args.cluster_size.is_some() && !args.paired {
        let message = "clusters are for paired studies: an arm of whole clusters is another design";
        checks.error("cluster_size", Code::ConflictingArguments, message);
    }
}

/// The standard deviations that are assumed, without a pilot.
fn check_assumed(args: &Args, checks: &mut ArgChecks<'_>) {
    if args.assume.is_empty() {
        let help = "add `from: <step>`, or `assume: { <outcome>: { unit: <number> } }`";
        checks.conflict("", "`power` needs a pilot or assumed standard deviations", help);
    }
    for (path, given) in [
        ("treatment", args.treatment.is_some()),
        ("control", args.control.is_some()),
        ("unit", args.unit.is_some()),
        ("cluster", args.cluster.is_some()),
        ("outcomes", !args.outcomes.is_empty()),
    ] {
        if given {
            let message = format!("`{path}` is a column of a pilot");
            checks.conflict(path, message, "add `from: <step>`");
        }
    }
    for (outcome, deviations) in &args.assume {
        let AssumedDeviations { unit, sample, cluster } = *deviations;
        let path = format!("assume.{outcome}");
        for (name, value) in [("unit", unit), ("sample", sample), ("cluster", cluster)] {
            if !(value >= 0.0 && value.is_finite()) {
                let message = "a standard deviation must be 0 or more";
                checks.out_of_range(&format!("{path}.{name}"), message);
            }
        }
        if unit == 0.0 && sample == 0.0 && cluster == 0.0 {
            checks.out_of_range(&path, "at least one standard deviation must be above 0");
        }
        if cluster > 0.0 && args.cluster_size.is_none() {
            let message = "clusters need the data points of each";
            checks.conflict(&format!("{path}.cluster"), message, "add `cluster_size: <number>`");
        }
    }
}

/// There is a pilot with its columns, or something is assumed; the columns of the pilot.
fn check_sources(args: &Args, checks: &mut ArgChecks<'_>) -> Option<PilotColumns> {
    if checks.cx.inputs.is_empty() {
        check_assumed(args, checks);
        return None;
    }
    if !checks.cx.inputs.contains_key(INPUT) || checks.cx.inputs.len() > 1 {
        checks.conflict("", "`power` takes one table", "use `from: <step>`");
        return None;
    }
    if !args.assume.is_empty() {
        let message = "the pilot says what is assumed here";
        checks.conflict("assume", message, "remove `assume` or `from`");
    }
    if args.outcomes.is_empty() {
        let message = "a pilot needs its outcomes";
        checks.conflict("outcomes", message, "add `outcomes: [<column>]`");
    }
    if args.paired && args.unit.is_none() {
        let help = "add `unit: <column>`, or `paired: false`";
        checks.conflict("unit", "a paired study needs the data point of each row", help);
    }
    if !args.paired && (args.unit.is_some() || args.cluster.is_some()) {
        let help = "remove `unit` and `cluster`, or `paired: false`";
        let message = "a study without pairs is planned from rows without units";
        checks.conflict("paired", message, help);
    }
    if args.cluster.is_some() != args.cluster_size.is_some() && args.paired {
        let help = "give both: the column, and the data points of each cluster";
        checks.conflict("cluster", "`cluster` and `cluster_size` belong together", help);
    }
    let (Some(treatment), Some(control)) = (&args.treatment, &args.control) else {
        let help = "add `treatment: <column>` and `control: <value>`";
        checks.conflict("", "a pilot needs `treatment` and `control`", help);
        return None;
    };
    let labels = [("treatment", &args.treatment), ("unit", &args.unit), ("cluster", &args.cluster)];
    for (path, name) in labels {
        if let Some(name) = name {
            checks.column(path, name, "a plain value", is_plain);
        }
    }
    checks.columns("outcomes", &args.outcomes, "a number", is_number);
    Some(PilotColumns {
        treatment: treatment.clone(),
        control: control.clone(),
        unit: args.unit.clone(),
        cluster: args.cluster.clone(),
        outcomes: args.outcomes.clone(),
    })
}

#[derive(Debug)]
struct PowerAnalysis {
    args: Args,
    /// None if the standard deviations are assumed.
    pilot: Option<PilotColumns>,
}

impl Analysis for PowerAnalysis {
    fn columns(&self) -> Vec<String> {
        let Some(pilot) = &self.pilot else { return Vec::new() };
        let labels = [&pilot.treatment].into_iter().chain(&pilot.unit).chain(&pilot.cluster);
        labels.chain(&pilot.outcomes).cloned().collect()
    }

    async fn tables(
        bound: &BoundAnalysis<Self>,
        cx: &LowerContext,
        input: Option<DataFrame>,
    ) -> Result<Ports, StepError> {
        let Self { args, pilot } = &bound.analysis;
        let sources = match pilot {
            None => Sources::assumed(args),
            Some(pilot) => {
                let missing = || StepError::new("`power` needs the table of its pilot");
                let frame = read_pilot(input.ok_or_else(missing)?, &bound.key, pilot).await?;
                Sources::of_pilot(args, pilot, &frame)
            }
        };
        let rows = power_rows(args, &sources);
        Ok(vec![
            (MAIN, table(&cx.session, &rows)?),
            (COMPONENTS, table(&cx.session, &sources.rows)?),
        ])
    }
}
