//! Checks of the arguments of `regress`, before anything runs.

use super::args::Args;
use super::equivalence::{EquivalenceTest, MarginUnits};
use super::estimators::{Controls, DID, WILD_CLUSTER, estimator_with};
use super::ports::is_result;
use crate::checks::{ArgChecks, is_plain};
use galeras_causal::{CausalGraph, Covariance};
use galeras_operator::Entry;
use galeras_operator::columns::{is_number, is_text};
use galeras_operator::{ArgError, BindContext};
use galeras_sql::group_columns::check_by;
use galeras_workflow::code::Code;

/// Checks the arguments against the input and returns the graph, if there is one.
pub(super) fn check(args: &Args, cx: &BindContext) -> Result<Option<CausalGraph>, Vec<ArgError>> {
    let mut checks = ArgChecks::new(cx);
    columns(args, &mut checks);
    levels_and_dose(args, &mut checks);
    roles(args, &mut checks);
    design(args, &mut checks);
    numbers(args, &mut checks);
    consequences(args, &mut checks);
    estimators(args, &mut checks);
    check_by(cx, &args.by, is_result, &mut checks.errors);
    margins(args, &mut checks);
    let graph = graph(args, &mut checks);
    if checks.errors.is_empty() { Ok(graph) } else { Err(checks.errors) }
}

/// Every column exists and has a fitting type.
fn columns(args: &Args, checks: &mut ArgChecks<'_>) {
    checks.column("treatment", &args.treatment, "a plain value", is_plain);
    for (path, name) in
        [("unit", &args.unit), ("cluster", &args.cluster), ("second_cluster", &args.second_cluster)]
    {
        if let Some(name) = name {
            checks.column(path, name, "a plain value", is_plain);
        }
    }
    for (path, name) in [("weights", &args.weights), ("after", &args.after)] {
        if let Some(name) = name {
            checks.column(path, name, "a number", is_number);
        }
    }
    for (list, names) in [("confounders", &args.confounders), ("modifiers", &args.modifiers)] {
        checks.columns(list, names, "a number or a text", |t| is_number(t) || is_text(t));
    }
    checks.columns("outcomes", &args.outcomes, "a number", is_number);
    checks.columns("instruments", &args.instruments, "a number", is_number);
    checks.columns("absorb", &args.absorb, "a plain value", is_plain);
}

/// The base levels are of columns of text that are expanded, and the dose is a number.
fn levels_and_dose(args: &Args, checks: &mut ArgChecks<'_>) {
    let input = checks.cx.input();
    for name in args.base.keys() {
        let path = format!("base.{name}");
        if !args.confounders.iter().chain(&args.modifiers).any(|one| one == name) {
            let message = format!("`{name}` is neither a confounder nor a modifier");
            checks.conflict(&path, message, "add it to `confounders` or remove its base");
        } else if input.field(name).is_some_and(|field| !is_text(field.data_type())) {
            let message = format!("`{name}` is not a column of text, and so has no base");
            checks.conflict(&path, message, "remove its base");
        }
    }
    let Some(dose) = &args.dose else { return };
    checks.column("treatment", &args.treatment, "a number for `dose`", |t| t.is_numeric());
    if !args.control.trim().parse::<f64>().is_ok_and(f64::is_finite) {
        let message = format!("`control` is `{}`, which is not a dose", args.control);
        let help = "give the dose that others are compared with, as a number";
        checks.errors.push(ArgError::new("control", Code::WrongType, message).help(help));
    }
    if !(3..=7).contains(&dose.knots) {
        checks.out_of_range("dose.knots", "a spline has 3 to 7 knots");
    }
    for (at, value) in dose.at.iter().enumerate() {
        if !value.is_finite() || dose.at[..at].contains(value) {
            let message = "doses must be finite and each named once";
            checks.out_of_range(&format!("dose.at[{at}]"), message);
        }
    }
}

/// A column plays one role; only a modifier can be a confounder as well.
fn roles(args: &Args, checks: &mut ArgChecks<'_>) {
    let given = |names: &[String], name: &String, role| names.contains(name).then_some(role);
    let is_unit = |name: &String| (args.unit.as_ref() == Some(name)).then_some("the unit");
    let is_treatment = |name: &String| (*name == args.treatment).then_some("the treatment");
    let taken = |name: &String| is_treatment(name).or_else(|| is_unit(name));
    let outcome = |name: &String| given(&args.outcomes, name, "the outcome");
    let free = |name: &String| outcome(name).or_else(|| taken(name));
    let mut role =
        |list: &str, names: &[String], role: &dyn Fn(&String) -> Option<&'static str>| {
            checks.role(list, names, Code::ConflictingArguments, role);
        };
    role("outcomes", &args.outcomes, &taken);
    role("confounders", &args.confounders, &free);
    role("modifiers", &args.modifiers, &free);
    role("instruments", &args.instruments, &|name| {
        given(&args.confounders, name, "the confounder").or_else(|| free(name))
    });
    // Each unit may have a constant of its own.
    role("absorb", &args.absorb, &|name| {
        let covariate = [&args.confounders, &args.modifiers].iter().any(|all| all.contains(name));
        outcome(name)
            .or_else(|| given(&args.instruments, name, "the instrument"))
            .or_else(|| covariate.then_some("the confounder or modifier"))
            .or_else(|| is_treatment(name))
    });
    role("by", &args.by, &|name| taken(name).or_else(|| outcome(name)));
    for (path, name, message) in [
        ("unit", &args.unit, "the treatment cannot be the unit: it differs within units"),
        (
            "cluster",
            &args.cluster,
            "the treatment cannot be the cluster: each arm would be a single one",
        ),
    ] {
        if name.as_ref() == Some(&args.treatment) {
            checks.error(path, Code::ConflictingArguments, message);
        }
    }
}

/// Weights, a second column of clusters and the time play no other role, and have what they need.
fn design(args: &Args, checks: &mut ArgChecks<'_>) {
    for (path, name) in [
        ("second_cluster", &args.second_cluster),
        ("weights", &args.weights),
        ("after", &args.after),
    ] {
        let Some(name) = name else { continue };
        let lists = [
            &args.outcomes,
            &args.confounders,
            &args.modifiers,
            &args.instruments,
            &args.absorb,
            &args.by,
        ];
        let groups = [Some(&args.treatment), args.unit.as_ref(), args.cluster.as_ref()];
        let mut taken = lists.into_iter().flatten().chain(groups.into_iter().flatten());
        let twice = args.design_columns().filter(|one| *one == name).count() > 1;
        if twice || taken.any(|one| one == name) {
            let message = format!("column `{name}` already has another role");
            checks.error(path, Code::ConflictingArguments, message);
        }
        if path != "after" && !args.absorb.is_empty() {
            let message = format!("absorbed effects know no `{path}`");
            checks.conflict(path, message, "remove `absorb`, or name its columns in `confounders`");
        }
    }
    if args.second_cluster.is_some() {
        if args.cluster.is_none() && args.unit.is_none() {
            let message = "a second column of clusters needs a first";
            checks.conflict("second_cluster", message, "add `cluster: <column>`");
        }
        if let Some(kind) = args.standard_errors.map(Covariance::from)
            && !matches!(kind, Covariance::Cr0 | Covariance::Cr1 | Covariance::Cr3)
        {
            let message = format!("{kind} is not defined for two-way clusters");
            checks.conflict("standard_errors", message, "use CR3, CR1 or CR0");
        }
    }
    if let Some(reason) =
        args.estimators().first().and_then(|primary| primary.without_row_argument(args))
    {
        let path = if args.second_cluster.is_some() { "second_cluster" } else { "weights" };
        checks.conflict(path, reason, "name one of these first in `estimators`, without a `unit`");
    }
}

/// Columns of `prompt` and `generate` that follow from the prompt, and those that follow from the
/// model as well.
const OF_PROMPT: [&str; 5] =
    ["prompt_size", "p_vocab_size", "p_n_whitespaces", "prompt_tokens", "completion_tokens"];
const OF_MODEL: [&str; 2] = ["prompt_tokens", "completion_tokens"];

/// Confounders are not consequences of the treatment. With units the rows show it; in a cross-section
/// such a column looks like any other that differs between the arms.
fn consequences(args: &Args, checks: &mut ArgChecks<'_>) {
    let follow: &[&str] = match args.treatment.as_str() {
        "treatment" => &OF_PROMPT,
        "model" => &OF_MODEL,
        _ => return,
    };
    for (at, name) in args.confounders.iter().enumerate() {
        if follow.contains(&name.as_str()) {
            let message = format!(
                "`{name}` is a bad control: it follows from `{}`, and adjusting for it removes a \
                 part of the effect",
                args.treatment
            );
            let help = "adjust for a property of the data point, or for the value under control in \
                        all rows (`control_prompt_size` in workflows/casestudy.yaml)";
            checks.conflict(&format!("confounders[{at}]"), message, help);
        }
    }
}

fn numbers(args: &Args, checks: &mut ArgChecks<'_>) {
    checks.alpha(args.alpha);
    if !(args.subset_fraction > 0.0 && args.subset_fraction < 1.0) {
        checks.out_of_range("subset_fraction", "`subset_fraction` must lie between 0 and 1");
    }
    if args.penalty.is_some_and(|c| !(c > 0.0 && c.is_finite())) {
        checks.out_of_range("penalty", "`penalty` must be above 0 (it is scikit-learn's `C`)");
    }
    if !(0.0..=1.0).contains(&args.max_clipped) {
        let message = "`max_clipped` is a share: it must lie between 0 and 1";
        checks.out_of_range("max_clipped", message);
    }
    for (outcome, range) in &args.ranges {
        let is_range = |[low, high]: [f64; 2]| low < high && (high - low).is_finite();
        if !args.outcomes.contains(outcome) {
            checks.out_of_range("ranges", format!("`{outcome}` is not one of `outcomes`"));
        } else if !<[f64; 2]>::try_from(range.as_slice()).is_ok_and(is_range) {
            let message = format!("the range of `{outcome}` must be a low and a high value");
            checks.out_of_range("ranges", message);
        }
    }
    match args.clip.as_slice() {
        [low, high] if 0.0 < *low && low < high && *high < 1.0 => {}
        _ => checks.out_of_range("clip", "`clip` must be a low and a high score between 0 and 1"),
    }
}

/// The other arguments have everything that the estimators need.
fn estimators(args: &Args, checks: &mut ArgChecks<'_>) {
    let graph = args.graph.is_some();
    for (at, estimator) in args.estimators.iter().enumerate() {
        let path = &format!("estimators[{at}]");
        let name = estimator.name();
        if args.estimators[..at].contains(estimator) {
            checks.conflict(path, format!("`{name}` is listed twice"), "remove one of them");
        }
        let (lacks, help) = match estimator.controls {
            _ if *estimator == DID && args.after.is_none() => {
                ("a column of time", "add `after: <column>`, 1 after the event and 0 before")
            }
            _ if *estimator == WILD_CLUSTER && args.cluster.is_none() && args.unit.is_none() => {
                ("clusters", "add `cluster: <column>`")
            }
            Controls::Units if args.unit.is_none() => ("a unit", "add `unit: <column>`"),
            Controls::Instruments if args.instruments.is_empty() && !graph => {
                ("an instrument", "add `instruments: [<column>]`")
            }
            Controls::Mediators if !graph => {
                ("a graph", "add a causal `graph`, in which mediators carry the whole effect")
            }
            _ if estimator.needs_propensity && args.confounders.is_empty() && !graph => {
                ("confounders", "add `confounders: [<column>, …]` or a `graph`")
            }
            _ => continue,
        };
        checks.conflict(path, format!("`{name}` needs {lacks}"), help);
    }
    let chosen = args.estimators();
    for (path, given) in [
        ("instruments", !args.instruments.is_empty()),
        ("folds", args.folds.is_some()),
        ("strata", args.strata.is_some()),
        ("absorb", !args.absorb.is_empty()),
        ("after", args.after.is_some()),
    ] {
        if let Some(estimator) = estimator_with(path).filter(|one| given && !chosen.contains(one)) {
            let name = estimator.name();
            let message = format!("`{path}` is for `{name}`, which is not one of `estimators`");
            checks.conflict(path, message, &format!("add `{name}` to `estimators`"));
        }
    }
    checks.once("refuters", &args.refuters, "the refuter is listed twice");
    if let Some(kind) = args.standard_errors {
        let clustered = Covariance::from(kind).is_clustered();
        if !clustered && args.cluster.is_some() {
            let message = format!("{} ignores `cluster`", Covariance::from(kind));
            checks.conflict("standard_errors", message, "use CR2, or remove `cluster`");
        } else if clustered && args.unit.is_none() && args.cluster.is_none() {
            let message = format!("{kind:?} needs clusters");
            checks.conflict("standard_errors", message, "add `cluster: <column>` or a `unit`");
        }
    }
    for (at, name) in args.treatments.iter().flatten().enumerate() {
        let path = &format!("treatments[{at}]");
        if *name == args.control {
            checks.conflict(path, "control cannot be compared with itself", "remove it");
        } else if args.treatments.iter().flatten().take(at).any(|before| before == name) {
            checks.conflict(path, "the arm is listed twice", "remove one of them");
        }
    }
}

/// `equivalence` and `adjust_over` are consistent.
fn margins(args: &Args, checks: &mut ArgChecks<'_>) {
    checks.once("adjust_over", &args.adjust_over, "it is listed twice");
    let Some(equivalence) = &args.equivalence else { return };
    let margins = equivalence.margins.keys().map(|name| (format!("margins.{name}"), name));
    let directions = [
        ("lower_is_better", &equivalence.lower_is_better),
        ("higher_is_better", &equivalence.higher_is_better),
    ];
    let listed = directions.into_iter().flat_map(|(list, names)| {
        names.iter().enumerate().map(move |(at, name)| (format!("{list}[{at}]"), name))
    });
    for (path, name) in margins.chain(listed) {
        if !args.outcomes.contains(name) {
            let message = format!("`{name}` is not one of `outcomes`");
            checks.error(&format!("equivalence.{path}"), Code::ConflictingArguments, message);
        }
    }
    let own = equivalence.margins.iter();
    let margins = own.map(|(name, margin)| (format!("equivalence.margins.{name}"), *margin));
    let shared = equivalence.margin.map(|margin| ("equivalence.margin".to_owned(), margin));
    for (path, margin) in margins.chain(shared) {
        if !(margin > 0.0 && margin.is_finite()) {
            checks.out_of_range(&path, "a margin must be above 0");
        }
    }
    if equivalence.margin.is_none() && equivalence.margins.is_empty() {
        let error = "`equivalence` needs a margin: how large an effect still counts as none";
        let help = "add `margin: <number>`, or `margins: { <outcome>: … }`";
        checks.conflict("equivalence", error, help);
    }
    if equivalence.units == MarginUnits::SdDifference && args.unit.is_none() {
        let message = "differences within units need a `unit`";
        checks.conflict("equivalence.units", message, "add `unit: <column>`, or use `sd`");
    }
    if equivalence.units != MarginUnits::Raw && args.weights.is_some() {
        let message = "standard deviations are of rows without weights";
        checks.conflict("equivalence.units", message, "use `units: raw`, or remove `weights`");
    }
    for (list, names) in directions {
        if !names.is_empty() && equivalence.test == EquivalenceTest::Equivalence {
            let message =
                format!("`{list}` is for `test: noninferiority`: equivalence has two sides");
            checks.conflict(&format!("equivalence.{list}"), message, "remove it");
        }
    }
    for (at, name) in equivalence.higher_is_better.iter().enumerate() {
        if equivalence.lower_is_better.contains(name) {
            let message = format!("`{name}` is in `lower_is_better` as well");
            let path = format!("equivalence.higher_is_better[{at}]");
            checks.conflict(&path, message, "remove one of them");
        }
    }
    for name in args.outcomes.iter().filter(|name| equivalence.lacks_direction(name)) {
        let message = format!(
            "non-inferiority of `{name}` needs to know what is worse: its name is that of a loss"
        );
        let help = format!(
            "add `lower_is_better: [{name}]`, or `higher_is_better: [{name}]` if more is better"
        );
        checks.conflict("equivalence", message, &help);
    }
    if args.alpha >= 0.5 {
        checks.out_of_range("alpha", "one-sided tests need an `alpha` below 0.5");
    }
}

/// The graph is well-formed, names columns, and has the treatment and every outcome.
fn graph(args: &Args, checks: &mut ArgChecks<'_>) -> Option<CausalGraph> {
    let text = args.graph.as_ref()?;
    let graph = match CausalGraph::parse(text) {
        Ok(graph) => graph,
        Err(error) => {
            let line = text[..text.floor_char_boundary(error.offset)].matches('\n').count() + 1;
            let message = format!("line {line} of the graph: {}", error.message);
            let shown = ArgError::new("graph", Code::BadGraph, message);
            checks.errors.push(match error.help {
                Some(help) => shown.help(help),
                None => shown,
            });
            return None;
        }
    };
    let input = checks.cx.input();
    let mut refuse = |message: String, help: &str| {
        checks.errors.push(ArgError::new("graph", Code::BadGraph, message).help(help));
    };
    if !graph.contains(&args.treatment) {
        let message = format!("the graph has no node `{}`", args.treatment);
        refuse(message, "nodes are column names; the treatment must be one of them");
    }
    for outcome in args.outcomes.iter().filter(|name| !graph.contains(name)) {
        let message = format!("the graph has no node `{outcome}`");
        refuse(message, "add an edge to it from everything that has an effect on it");
    }
    for name in graph.names().iter().filter(|name| !graph.is_latent(name)) {
        match input.field(name) {
            None => {
                let message =
                    format!("the graph has a node `{name}`, but the input has no such column");
                refuse(message, "declare it latent if it is not observed: `name [latent]`");
            }
            Some(field) if *name != args.treatment && !is_number(field.data_type()) => {
                let message = format!("the node `{name}` of the graph is not a column of numbers");
                refuse(message, "use a column of numbers, or declare it latent");
            }
            Some(_) => {}
        }
    }
    Some(graph)
}
