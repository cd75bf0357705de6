//! What is wrong with the arguments of `regress`, found before anything runs.

use arrow::datatypes::DataType;

use super::args::Args;
use super::choice::Entry;
use super::equivalence::{EquivalenceTest, MarginUnits};
use super::estimators::{Controls, estimator_with};
use super::ports::is_result;
use galeras_causal::{CausalGraph, Covariance};
use galeras_operator::columns::{is_number, is_text, require_column};
use galeras_operator::{ArgError, BindContext};
use galeras_sql::group_columns::check_by;
use galeras_workflow::code::Code;

/// Checks the arguments against the input and returns the graph, if there is one.
pub(super) fn check(
    args: &Args,
    cx: &BindContext,
    errors: &mut Vec<ArgError>,
) -> Option<CausalGraph> {
    columns(args, cx, errors);
    levels_and_dose(args, cx, errors);
    roles(args, errors);
    numbers(args, errors);
    estimators(args, errors);
    check_by(cx, &args.by, is_result, errors);
    margins(args, errors);
    graph(args, cx, errors)
}

/// Every column exists and has a fitting type.
fn columns(args: &Args, cx: &BindContext, errors: &mut Vec<ArgError>) {
    let plain = |t: &DataType| !t.is_nested();
    require_column(cx, "treatment", &args.treatment, "a plain value", plain, errors);
    for (path, name) in [("unit", &args.unit), ("cluster", &args.cluster)] {
        if let Some(name) = name {
            require_column(cx, path, name, "a plain value", plain, errors);
        }
    }
    for (list, names) in lists(args) {
        for (at, name) in names.iter().enumerate() {
            let path = format!("{list}[{at}]");
            let levels = matches!(list, "confounders" | "modifiers");
            let fits = |t: &DataType| is_number(t) || (levels && is_text(t));
            let wanted = if levels { "a number or a text" } else { "a number" };
            match list {
                "absorb" => require_column(cx, &path, name, "a plain value", plain, errors),
                _ => require_column(cx, &path, name, wanted, fits, errors),
            }
            if names[..at].contains(name) {
                let message = format!("column `{name}` is named twice");
                errors.push(ArgError::new(path, Code::DuplicateColumn, message));
            }
        }
    }
}

fn lists(args: &Args) -> [(&'static str, &Vec<String>); 5] {
    [
        ("outcomes", &args.outcomes),
        ("confounders", &args.confounders),
        ("modifiers", &args.modifiers),
        ("instruments", &args.instruments),
        ("absorb", &args.absorb),
    ]
}

/// The base levels are of columns of text that are expanded, and the dose is a number.
fn levels_and_dose(args: &Args, cx: &BindContext, errors: &mut Vec<ArgError>) {
    for name in args.base.keys() {
        let path = format!("base.{name}");
        let input = cx.input();
        let field = input.field(name);
        let named = args.confounders.iter().chain(&args.modifiers).any(|one| one == name);
        if !named {
            let message = format!("`{name}` is neither a confounder nor a modifier");
            errors.push(
                ArgError::new(path, Code::ConflictingArguments, message)
                    .help("add it to `confounders` or remove its base"),
            );
        } else if field.is_some_and(|field| !is_text(field.data_type())) {
            let message = format!("`{name}` is not a column of text, and so has no base");
            errors.push(
                ArgError::new(path, Code::ConflictingArguments, message).help("remove its base"),
            );
        }
    }
    let Some(dose) = &args.dose else { return };
    let number = |t: &DataType| t.is_numeric();
    require_column(cx, "treatment", &args.treatment, "a number for `dose`", number, errors);
    if !args.control.trim().parse::<f64>().is_ok_and(f64::is_finite) {
        let message = format!("`control` is `{}`, which is not a dose", args.control);
        errors.push(
            ArgError::new("control", Code::WrongType, message)
                .help("give the dose that others are compared with, as a number"),
        );
    }
    if !(3..=7).contains(&dose.knots) {
        errors.push(ArgError::new("dose.knots", Code::OutOfRange, "a spline has 3 to 7 knots"));
    }
    for (at, value) in dose.at.iter().enumerate() {
        if !value.is_finite() || dose.at[..at].contains(value) {
            let message = "doses must be finite and each named once";
            errors.push(ArgError::new(format!("dose.at[{at}]"), Code::OutOfRange, message));
        }
    }
}

/// A column plays one role; only a modifier may be a confounder too.
fn roles(args: &Args, errors: &mut Vec<ArgError>) {
    let mut taken = vec![("treatment", &args.treatment)];
    taken.extend(args.unit.iter().map(|name| ("unit", name)));
    let taken = |name: &String| taken.iter().find(|(_, column)| *column == name).map(|(r, _)| *r);
    for (list, names) in lists(args) {
        for (at, name) in names.iter().enumerate() {
            let mut role = taken(name);
            if list == "absorb" {
                // Each unit may have a constant of its own.
                role = role.filter(|role| *role != "unit");
                if args.confounders.contains(name) || args.modifiers.contains(name) {
                    role = Some("confounder or modifier");
                }
                if args.instruments.contains(name) {
                    role = Some("instrument");
                }
            }
            if list != "outcomes" && args.outcomes.contains(name) {
                role = Some("outcome");
            }
            if list == "instruments" && args.confounders.contains(name) {
                role = Some("confounder");
            }
            if let Some(role) = role {
                let message = format!("column `{name}` is already the {role}");
                let path = format!("{list}[{at}]");
                errors.push(ArgError::new(path, Code::ConflictingArguments, message));
            }
        }
    }
    for (at, name) in args.by.iter().enumerate() {
        let outcome = args.outcomes.contains(name).then_some("outcome");
        if let Some(role) = taken(name).or(outcome) {
            let message = format!("column `{name}` is already the {role}");
            let path = format!("by[{at}]");
            errors.push(ArgError::new(path, Code::ConflictingArguments, message));
        }
    }
    if args.unit.as_ref() == Some(&args.treatment) {
        let message = "the treatment cannot be the unit: it differs within units";
        errors.push(ArgError::new("unit", Code::ConflictingArguments, message));
    }
    if args.cluster.as_ref() == Some(&args.treatment) {
        let message = "the treatment cannot be the cluster: each arm would be a single one";
        errors.push(ArgError::new("cluster", Code::ConflictingArguments, message));
    }
}

fn numbers(args: &Args, errors: &mut Vec<ArgError>) {
    let mut refuse = |path: &str, message: &str| {
        errors.push(ArgError::new(path, Code::OutOfRange, message));
    };
    if !(args.alpha > 0.0 && args.alpha < 1.0) {
        refuse("alpha", "`alpha` must lie between 0 and 1");
    }
    if !(args.subset_fraction > 0.0 && args.subset_fraction < 1.0) {
        refuse("subset_fraction", "`subset_fraction` must lie between 0 and 1");
    }
    if args.penalty.is_some_and(|c| !(c > 0.0 && c.is_finite())) {
        refuse("penalty", "`penalty` must be above 0 (it is scikit-learn's `C`)");
    }
    if !(0.0..=1.0).contains(&args.max_clipped) {
        refuse("max_clipped", "`max_clipped` is a share: it must lie between 0 and 1");
    }
    for (outcome, range) in &args.ranges {
        let is_range = |[low, high]: [f64; 2]| low < high && (high - low).is_finite();
        if !args.outcomes.contains(outcome) {
            refuse("ranges", &format!("`{outcome}` is not one of `outcomes`"));
        } else if !<[f64; 2]>::try_from(range.as_slice()).is_ok_and(is_range) {
            let message = format!("the range of `{outcome}` must be a low and a high value");
            refuse("ranges", &message);
        }
    }
    match args.clip.as_slice() {
        [low, high] if 0.0 < *low && low < high && *high < 1.0 => {}
        _ => refuse("clip", "`clip` must be a low and a high score between 0 and 1"),
    }
}

/// The other arguments have all that the estimators need.
fn estimators(args: &Args, errors: &mut Vec<ArgError>) {
    let mut conflict = |path: String, message: &str, help: &str| {
        errors.push(ArgError::new(path, Code::ConflictingArguments, message).help(help));
    };
    for (at, estimator) in args.estimators.iter().enumerate() {
        let path = format!("estimators[{at}]");
        let name = estimator.name();
        if args.estimators[..at].contains(estimator) {
            conflict(path.clone(), &format!("`{name}` is listed twice"), "remove one of them");
        }
        let alone = args.confounders.is_empty() && args.graph.is_none();
        match estimator.controls {
            Controls::Units if args.unit.is_none() => {
                conflict(path, &format!("`{name}` needs a unit"), "add `unit: <column>`");
            }
            Controls::Instruments if args.instruments.is_empty() && args.graph.is_none() => {
                let message = format!("`{name}` needs an instrument");
                conflict(path, &message, "add `instruments: [<column>]`");
            }
            Controls::Mediators if args.graph.is_none() => {
                let help = "add a causal `graph`, in which mediators carry the whole effect";
                conflict(path, &format!("`{name}` needs a graph"), help);
            }
            _ if estimator.needs_propensity && alone => {
                let message = format!("`{name}` needs confounders");
                conflict(path, &message, "add `confounders: [<column>, …]` or a `graph`");
            }
            _ => {}
        }
    }
    let chosen = args.estimators();
    for (path, given) in [
        ("instruments", !args.instruments.is_empty()),
        ("folds", args.folds.is_some()),
        ("strata", args.strata.is_some()),
        ("absorb", !args.absorb.is_empty()),
    ] {
        if let Some(estimator) = estimator_with(path).filter(|one| given && !chosen.contains(one)) {
            let name = estimator.name();
            let message = format!("`{path}` is for `{name}`, which is not one of `estimators`");
            conflict(path.into(), &message, &format!("add `{name}` to `estimators`"));
        }
    }
    if let Some(kind) = args.standard_errors
        && !Covariance::from(kind).is_clustered()
        && args.cluster.is_some()
    {
        let message = format!("{} ignores `cluster`", Covariance::from(kind));
        conflict("standard_errors".into(), &message, "use CR2, or remove `cluster`");
    }
    for (at, refuter) in args.refuters.iter().enumerate() {
        if args.refuters[..at].contains(refuter) {
            conflict(
                format!("refuters[{at}]"),
                "the refuter is listed twice",
                "remove one of them",
            );
        }
    }
    if let Some(kind) = args.standard_errors
        && Covariance::from(kind).is_clustered()
        && args.unit.is_none()
        && args.cluster.is_none()
    {
        let message = format!("{kind:?} needs clusters");
        conflict("standard_errors".into(), &message, "add `cluster: <column>` or a `unit`");
    }
    if let Some(treatments) = &args.treatments {
        for (at, name) in treatments.iter().enumerate() {
            let path = format!("treatments[{at}]");
            if *name == args.control {
                conflict(path, "control cannot be compared with itself", "remove it");
            } else if treatments[..at].contains(name) {
                conflict(path, "the arm is listed twice", "remove one of them");
            }
        }
    }
}

/// `equivalence` and `adjust_over` are consistent.
fn margins(args: &Args, errors: &mut Vec<ArgError>) {
    for (at, member) in args.adjust_over.iter().enumerate() {
        if args.adjust_over[..at].contains(member) {
            let path = format!("adjust_over[{at}]");
            let error = ArgError::new(path, Code::ConflictingArguments, "it is listed twice");
            errors.push(error.help("remove one of them"));
        }
    }
    let Some(equivalence) = &args.equivalence else { return };
    let mut unknown = |path: String, name: &str| {
        if !args.outcomes.iter().any(|outcome| outcome == name) {
            let message = format!("`{name}` is not one of `outcomes`");
            errors.push(ArgError::new(path, Code::ConflictingArguments, message));
        }
    };
    for name in equivalence.margins.keys() {
        unknown(format!("equivalence.margins.{name}"), name);
    }
    for (at, name) in equivalence.lower_is_better.iter().enumerate() {
        unknown(format!("equivalence.lower_is_better[{at}]"), name);
    }
    let own = equivalence.margins.iter();
    let margins = own.map(|(name, margin)| (format!("equivalence.margins.{name}"), *margin));
    let shared = equivalence.margin.map(|margin| ("equivalence.margin".to_owned(), margin));
    for (path, margin) in margins.chain(shared) {
        if !(margin > 0.0 && margin.is_finite()) {
            errors.push(ArgError::new(path, Code::OutOfRange, "a margin must be above 0"));
        }
    }
    let mut conflict = |path: &str, message: &str, help: &str| {
        errors.push(ArgError::new(path, Code::ConflictingArguments, message).help(help));
    };
    if equivalence.margin.is_none() && equivalence.margins.is_empty() {
        let error = "`equivalence` needs a margin: how large an effect still counts as none";
        conflict("equivalence", error, "add `margin: <number>`, or `margins: { <outcome>: … }`");
    }
    if equivalence.units == MarginUnits::SdDifference && args.unit.is_none() {
        let help = "add `unit: <column>`, or use `sd`";
        conflict("equivalence.units", "differences within units need a `unit`", help);
    }
    if !equivalence.lower_is_better.is_empty() && equivalence.test == EquivalenceTest::Equivalence {
        let message = "`lower_is_better` is for `test: noninferiority`: equivalence has two sides";
        conflict("equivalence.lower_is_better", message, "remove it");
    }
    if args.alpha >= 0.5 {
        let message = "one-sided tests need an `alpha` below 0.5";
        errors.push(ArgError::new("alpha", Code::OutOfRange, message));
    }
}

/// The graph is well-formed, names columns, and has the treatment and every outcome.
fn graph(args: &Args, cx: &BindContext, errors: &mut Vec<ArgError>) -> Option<CausalGraph> {
    let text = args.graph.as_ref()?;
    let graph = match CausalGraph::parse(text) {
        Ok(graph) => graph,
        Err(error) => {
            let line = text[..text.floor_char_boundary(error.offset)].matches('\n').count() + 1;
            let message = format!("line {line} of the graph: {}", error.message);
            let mut shown = ArgError::new("graph", Code::BadGraph, message);
            if let Some(help) = error.help {
                shown = shown.help(help);
            }
            errors.push(shown);
            return None;
        }
    };
    let mut refuse = |message: String, help: &str| {
        errors.push(ArgError::new("graph", Code::BadGraph, message).help(help));
    };
    if !graph.contains(&args.treatment) {
        let message = format!("the graph has no node `{}`", args.treatment);
        refuse(message, "nodes are column names; the treatment must be one of them");
    }
    for outcome in args.outcomes.iter().filter(|name| !graph.contains(name)) {
        let message = format!("the graph has no node `{outcome}`");
        refuse(message, "add an edge to it from everything that has an effect on it");
    }
    let input = cx.input();
    for name in graph.names() {
        if graph.is_latent(name) {
            continue;
        }
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
