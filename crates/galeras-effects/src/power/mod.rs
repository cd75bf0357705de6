//! `power`: what a study detects, before it is run.
//!
//! The arithmetic is in `galeras-causal`. Here: arguments and what is wrong with them; `pilot` reads
//! the table of a pilot, `rows` makes the rows of the results.

mod pilot;
mod rows;

use std::collections::BTreeMap;

use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::pilot::{PilotColumns, read_pilot};
use self::rows::{ComponentsRow, PowerRow, Sources, power_rows};
use galeras_operator::columns::{is_number, require_column};
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::{record_batch, table_schema};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, LowerContext,
    Lowering, MAIN, Operator, Port, Ports, Reads, StepError, TableStep, args_schema, parse_args,
};
use galeras_workflow::code::Code;

const COMPONENTS: &str = "components";

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The numbers of data points of the study.
    #[schemars(length(min = 1))]
    units: Vec<u64>,
    /// How often each is answered under an arm.
    #[serde(default = "one_sample")]
    #[schemars(length(min = 1))]
    samples: Vec<u64>,
    /// Effects of the treatment, in the unit of the outcome. If absent the smallest that is found.
    #[serde(default)]
    effects: Vec<f64>,
    /// The arms, control among them. If absent those of the pilot, or two.
    #[serde(default)]
    arms: Option<u64>,
    /// By how many tests `alpha` is divided; if absent arms less one, times outcomes.
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
    #[serde(default = "alpha")]
    #[schemars(range(min = 0.0, max = 1.0))]
    alpha: f64,
    /// How large an effect may be, to either side, and still count as none.
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
    /// Of the pilot: what is done about rows without a value.
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

fn alpha() -> f64 {
    0.05
}

/// The operator.
pub struct PowerOperator;

const DESCRIPTOR: Descriptor = Descriptor {
    name: "power",
    version: 2,
    grain: Grain::of::<BoundPower, _>(),
    effect: Effect::Pure,
    inputs: InputPorts::Any,
    doc: include_str!("doc.md"),
    args_schema: args_schema::<Args>,
};

impl Operator for PowerOperator {
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
            let mut errors = Vec::new();
            check_numbers(&args, &mut errors);
            let pilot = check_sources(&args, cx, &mut errors);
            if !errors.is_empty() {
                return Err(errors);
            }
            let resolved_args = serde_json::to_value(&args)
                .map_err(|error| vec![ArgError::new("", Code::WrongType, error.to_string())])?;
            let contrast = ["outcome", "treatment"];
            let all = ["outcome", "treatment", "units", "samples", "effect"];
            let ports = vec![
                Port::new(MAIN, table_schema::<PowerRow>().keyed(&all)),
                Port::new(COMPONENTS, table_schema::<ComponentsRow>().keyed(&contrast)),
            ];
            let key = cx.input().key;
            Ok(Box::new(BoundPower { args, resolved_args, pilot, key, ports })
                as Box<dyn BoundStep>)
        })
    }
}

/// Numbers are in range, and none is listed twice.
fn check_numbers(args: &Args, errors: &mut Vec<ArgError>) {
    let mut refuse = |path: String, message: &str| {
        errors.push(ArgError::new(path, Code::OutOfRange, message));
    };
    if !(args.alpha > 0.0 && args.alpha < 1.0) {
        refuse("alpha".into(), "`alpha` must lie between 0 and 1");
    } else if !(args.power > args.alpha && args.power < 1.0) {
        refuse("power".into(), "`power` must lie between `alpha` and 1");
    }
    for (at, units) in args.units.iter().enumerate() {
        if !(2..=1_000_000_000).contains(units) {
            refuse(format!("units[{at}]"), "a study has 2 to 1,000,000,000 data points");
        }
    }
    for (at, samples) in args.samples.iter().enumerate() {
        if !(1..=1_000_000).contains(samples) {
            refuse(format!("samples[{at}]"), "a data point has 1 to 1,000,000 samples");
        }
    }
    for (at, effect) in args.effects.iter().enumerate() {
        if !(effect.abs() > 0.0 && effect.is_finite()) {
            refuse(format!("effects[{at}]"), "an effect of 0 is never found");
        }
    }
    for (path, number, least) in
        [("arms", args.arms, 2), ("tests", args.tests, 1), ("cluster_size", args.cluster_size, 1)]
    {
        if number.is_some_and(|number| number < least || number > 1_000_000_000) {
            refuse(path.into(), &format!("`{path}` must be at least {least}"));
        }
    }
    if args.margin.is_some_and(|margin| !(margin > 0.0 && margin.is_finite())) {
        refuse("margin".into(), "a margin must be above 0");
    }
    if args.margin.is_some() && args.alpha >= 0.5 {
        refuse("alpha".into(), "one-sided tests need an `alpha` below 0.5");
    }
    let twice = |path: &str, at: usize| {
        let error = ArgError::new(
            format!("{path}[{at}]"),
            Code::ConflictingArguments,
            "it is listed twice",
        );
        error.help("remove one of them")
    };
    for (path, list) in [("units", &args.units), ("samples", &args.samples)] {
        let again = (0..list.len()).filter(|at| list[..*at].contains(&list[*at]));
        errors.extend(again.map(|at| twice(path, at)));
    }
    let again =
        (0..args.effects.len()).filter(|at| args.effects[..*at].contains(&args.effects[*at]));
    errors.extend(again.map(|at| twice("effects", at)));
    if args.cluster_size.is_some() && !args.paired {
        let message = "clusters are for paired studies: an arm of whole clusters is another design";
        errors.push(ArgError::new("cluster_size", Code::ConflictingArguments, message));
    }
}

/// There is a pilot with its columns, or something is assumed; the columns of the pilot.
fn check_sources(
    args: &Args,
    cx: &BindContext,
    errors: &mut Vec<ArgError>,
) -> Option<PilotColumns> {
    let mut conflict = |path: &str, message: &str, help: &str| {
        errors.push(ArgError::new(path, Code::ConflictingArguments, message).help(help));
    };
    if cx.inputs.is_empty() {
        if args.assume.is_empty() {
            let help = "add `from: <step>`, or `assume: { <outcome>: { unit: <number> } }`";
            conflict("", "`power` needs a pilot or assumed standard deviations", help);
        }
        for (path, given) in [
            ("treatment", args.treatment.is_some()),
            ("control", args.control.is_some()),
            ("unit", args.unit.is_some()),
            ("cluster", args.cluster.is_some()),
            ("outcomes", !args.outcomes.is_empty()),
        ] {
            if given {
                conflict(path, &format!("`{path}` is a column of a pilot"), "add `from: <step>`");
            }
        }
        for (outcome, deviations) in &args.assume {
            let AssumedDeviations { unit, sample, cluster } = *deviations;
            for (name, value) in [("unit", unit), ("sample", sample), ("cluster", cluster)] {
                if !(value >= 0.0 && value.is_finite()) {
                    let message = "a standard deviation must be 0 or more";
                    let path = format!("assume.{outcome}.{name}");
                    errors.push(ArgError::new(path, Code::OutOfRange, message));
                }
            }
            if unit == 0.0 && sample == 0.0 && cluster == 0.0 {
                let message = "at least one standard deviation must be above 0";
                let path = format!("assume.{outcome}");
                errors.push(ArgError::new(path, Code::OutOfRange, message));
            }
            if cluster > 0.0 && args.cluster_size.is_none() {
                let message = "clusters need the data points of each";
                let path = format!("assume.{outcome}.cluster");
                let error = ArgError::new(path, Code::ConflictingArguments, message);
                errors.push(error.help("add `cluster_size: <number>`"));
            }
        }
        return None;
    }
    if !cx.inputs.contains_key(INPUT) || cx.inputs.len() > 1 {
        conflict("", "`power` takes one table", "use `from: <step>`");
        return None;
    }
    if !args.assume.is_empty() {
        conflict("assume", "the pilot says what is assumed here", "remove `assume` or `from`");
    }
    if args.outcomes.is_empty() {
        conflict("outcomes", "a pilot needs its outcomes", "add `outcomes: [<column>]`");
    }
    if args.paired && args.unit.is_none() {
        let help = "add `unit: <column>`, or `paired: false`";
        conflict("unit", "a paired study needs the data point of each row", help);
    }
    if !args.paired && (args.unit.is_some() || args.cluster.is_some()) {
        let help = "remove `unit` and `cluster`, or `paired: false`";
        conflict("paired", "a study without pairs is planned from rows without units", help);
    }
    if args.cluster.is_some() != args.cluster_size.is_some() && args.paired {
        let message = "`cluster` and `cluster_size` belong together";
        conflict("cluster", message, "give both: the column, and the data points of each cluster");
    }
    let (treatment, control) = match (&args.treatment, &args.control) {
        (Some(treatment), Some(control)) => (treatment.clone(), control.clone()),
        _ => {
            let help = "add `treatment: <column>` and `control: <value>`";
            conflict("", "a pilot needs `treatment` and `control`", help);
            return None;
        }
    };
    let plain = |t: &arrow::datatypes::DataType| !t.is_nested();
    require_column(cx, "treatment", &treatment, "a plain value", plain, errors);
    for (path, name) in [("unit", &args.unit), ("cluster", &args.cluster)] {
        if let Some(name) = name {
            require_column(cx, path, name, "a plain value", plain, errors);
        }
    }
    for (at, name) in args.outcomes.iter().enumerate() {
        let path = format!("outcomes[{at}]");
        require_column(cx, &path, name, "a number", is_number, errors);
        if args.outcomes[..at].contains(name) {
            let message = format!("column `{name}` is named twice");
            errors.push(ArgError::new(path, Code::DuplicateColumn, message));
        }
    }
    Some(PilotColumns {
        treatment,
        control,
        unit: args.unit.clone(),
        cluster: args.cluster.clone(),
        outcomes: args.outcomes.clone(),
    })
}

#[derive(Debug)]
struct BoundPower {
    args: Args,
    /// The arguments with their defaults, for the key of the result.
    resolved_args: Value,
    /// None if the standard deviations are assumed.
    pilot: Option<PilotColumns>,
    /// The key of the pilot: the order of rows.
    key: Vec<String>,
    ports: Vec<Port>,
}

impl BoundStep for BoundPower {
    fn args(&self) -> Value {
        self.resolved_args.clone()
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        let mut columns = self.key.clone();
        if let Some(pilot) = &self.pilot {
            columns.push(pilot.treatment.clone());
            columns.extend(pilot.unit.iter().chain(&pilot.cluster).chain(&pilot.outcomes).cloned());
        }
        columns.sort();
        columns.dedup();
        Reads::Columns(columns)
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundPower {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let sources = match &self.pilot {
                None => Sources::assumed(&self.args),
                Some(pilot) => {
                    let missing = || StepError::new("`power` needs the table of its pilot");
                    let input = inputs.remove(INPUT).ok_or_else(missing)?;
                    let frame = read_pilot(input, &self.key, pilot).await?;
                    Sources::of_pilot(&self.args, pilot, &frame)
                }
            };
            let rows = power_rows(&self.args, &sources);
            let table = |batch| Ok::<_, StepError>(cx.session.read_batch(batch)?);
            Ok(vec![
                (MAIN, table(record_batch(&rows)?)?),
                (COMPONENTS, table(record_batch(&sources.rows)?)?),
            ])
        })
    }
}
