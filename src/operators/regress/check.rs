//! What is wrong with the arguments of `regress`, found before anything runs.

use arrow::datatypes::DataType;

use super::super::columns::{is_number, require_column};
use super::args::{Args, Estimator};
use crate::code::Code;
use crate::operator::{ArgError, BindContext};
use galeras_causal::{CausalGraph, Covariance};

/// Checks the arguments against the input; the graph, if there is one.
pub(super) fn check(
    args: &Args,
    cx: &BindContext,
    errors: &mut Vec<ArgError>,
) -> Option<CausalGraph> {
    columns(args, cx, errors);
    roles(args, errors);
    numbers(args, errors);
    estimators(args, errors);
    graph(args, cx, errors)
}

/// Every column is there and has a fitting type.
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
            require_column(cx, &path, name, "a number", is_number, errors);
            if names[..at].contains(name) {
                let message = format!("column `{name}` is named twice");
                errors.push(ArgError::new(path, Code::DuplicateColumn, message));
            }
        }
    }
}

/// The arguments that list numeric columns.
fn lists(args: &Args) -> [(&'static str, &Vec<String>); 4] {
    [
        ("outcomes", &args.outcomes),
        ("confounders", &args.confounders),
        ("modifiers", &args.modifiers),
        ("instruments", &args.instruments),
    ]
}

/// A column plays one role; only a modifier may be a confounder too.
fn roles(args: &Args, errors: &mut Vec<ArgError>) {
    let mut taken = vec![("treatment", &args.treatment)];
    taken.extend(args.unit.iter().map(|name| ("unit", name)));
    let taken = |name: &String| taken.iter().find(|(_, column)| *column == name).map(|(r, _)| *r);
    for (list, names) in lists(args) {
        for (at, name) in names.iter().enumerate() {
            let mut role = taken(name);
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
    if args.unit.as_ref() == Some(&args.treatment) {
        let message = "the treatment cannot be the unit: it differs within units";
        errors.push(ArgError::new("unit", Code::ConflictingArguments, message));
    }
    if args.cluster.as_ref() == Some(&args.treatment) {
        let message = "the treatment cannot be the cluster: each arm would be a single one";
        errors.push(ArgError::new("cluster", Code::ConflictingArguments, message));
    }
}

/// Every number lies in its range.
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
    match args.clip.as_slice() {
        [low, high] if 0.0 < *low && low < high && *high < 1.0 => {}
        _ => refuse("clip", "`clip` must be a low and a high score between 0 and 1"),
    }
}

/// The estimators fit the rest.
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
        match estimator {
            Estimator::Paired if args.unit.is_none() => {
                conflict(path, "`paired` needs a unit", "add `unit: <column>`");
            }
            Estimator::Iv if args.instruments.is_empty() && args.graph.is_none() => {
                conflict(path, "`iv` needs an instrument", "add `instruments: [<column>]`");
            }
            Estimator::Frontdoor if args.graph.is_none() => {
                let help = "add a causal `graph`, in which mediators carry the whole effect";
                conflict(path, "`frontdoor` needs a graph", help);
            }
            _ if estimator.needs_propensity()
                && args.confounders.is_empty()
                && args.graph.is_none() =>
            {
                let message = format!("`{name}` needs confounders");
                conflict(path, &message, "add `confounders: [<column>, …]` or a `graph`");
            }
            _ => {}
        }
    }
    let chosen = args.estimators();
    for (path, given, estimator) in [
        ("instruments", !args.instruments.is_empty(), Estimator::Iv),
        ("folds", args.folds.is_some(), Estimator::Aipw),
        ("strata", args.strata.is_some(), Estimator::Stratification),
    ] {
        if given && !chosen.contains(&estimator) {
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
