//! What is adjusted for: the confounders as given, or what the causal graph says; and the table
//! of what follows from the graph.

use std::borrow::Cow;

use super::super::support::cells::Cell;
use super::super::support::missing::Missing;
use super::super::support::words::{count, list, p_equals, short, thousands};
use super::args::{Args, Estimator};
use super::comparison::gather;
use super::frame::{Frame, NONE};
use galeras_causal::{
    CausalGraph, ColumnRef, Identification, QueryError, dense, identify, partial,
};

/// More rows of one kind than a table of a graph should have.
const MOST_SETS: usize = 1000;

/// More instruments of a graph are not tried.
const MOST_TRIED: usize = 1000;

/// What the estimators of an outcome use.
#[derive(Clone, Debug, Default)]
pub(super) struct Identified {
    /// The covariates.
    pub(super) adjusted: Vec<String>,
    /// The instruments.
    pub(super) instruments: Vec<String>,
    /// Why adjusting for them does not give the effect, by the graph.
    pub(super) backdoor_refused: Option<String>,
    /// Why the arms may not be compared without an adjustment.
    pub(super) unadjusted_refused: Option<String>,
    /// Why the instruments are none.
    pub(super) instruments_refused: Option<String>,
    /// Modifiers that the treatment changes, by the graph.
    pub(super) affected: Vec<String>,
}

/// What the estimators of `outcome` use.
pub(super) fn identified(
    args: &Args,
    graph: Option<&CausalGraph>,
    outcome: &str,
) -> Result<Identified, QueryError> {
    let mut result = Identified {
        adjusted: args.confounders.clone(),
        instruments: args.instruments.clone(),
        ..Identified::default()
    };
    let Some(graph) = graph else { return Ok(result) };
    let treatment = args.treatment.as_str();
    for modifier in args.modifiers.iter().filter(|name| graph.contains(name)) {
        if graph.has_directed_path(treatment, modifier)? {
            result.affected.push(modifier.clone());
        }
    }
    if !graph.is_valid_backdoor(treatment, outcome, &[])? {
        let reason = "by the graph, the arms differ in more than the treatment: something has to \
                      be adjusted for";
        result.unadjusted_refused = Some(reason.into());
    }
    let answer = identify(graph, treatment, outcome)?;
    if args.confounders.is_empty() {
        match answer.by {
            Identification::Backdoor { adjustment, .. } => result.adjusted = adjustment,
            Identification::Frontdoor { mediators, .. } => {
                result.backdoor_refused = Some(format!(
                    "by the graph no set of columns blocks the backdoor paths; the effect is \
                     identified by the front door ({}), for which there is no estimator here",
                    list(&mediators)
                ));
            }
            Identification::Instrument { instrument, .. } => {
                result.backdoor_refused = Some(format!(
                    "by the graph no set of columns blocks the backdoor paths; the effect is \
                     identified by the instrument `{instrument}` only (estimators: [iv])"
                ));
            }
            Identification::NotIdentified { reason } => {
                let reason = format!("by the graph the effect is not identified: {reason}");
                result.backdoor_refused = Some(reason.clone());
                result.unadjusted_refused = Some(reason);
            }
        }
    } else {
        let names: Vec<&str> = args.confounders.iter().map(String::as_str).collect();
        if let Some(stranger) = names.iter().find(|name| !graph.contains(name)) {
            let reason = format!("the confounder `{stranger}` is not in the graph");
            result.backdoor_refused = Some(reason);
        } else if !graph.is_valid_backdoor(treatment, outcome, &names)? {
            let names = list(&args.confounders);
            result.backdoor_refused = Some(format!(
                "by the graph, adjusting for {names} does not give the effect: that leaves a \
                 backdoor path open, or blocks a part of the effect"
            ));
        }
    }
    if args.estimators().contains(&Estimator::Iv) {
        instruments(args, graph, outcome, &mut result)?;
    }
    Ok(result)
}

/// Takes the instruments from the graph, or checks those given: all must be instruments given what
/// is adjusted for. Where nothing else decides that, it is what they need.
fn instruments(
    args: &Args,
    graph: &CausalGraph,
    outcome: &str,
    result: &mut Identified,
) -> Result<(), QueryError> {
    let known = graph.instruments(&args.treatment, outcome)?.list;
    let valid = |name: &str, given: &[String]| {
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        graph.is_valid_instrument(name, &args.treatment, outcome, &given)
    };
    // Confounders that are given, or that block every backdoor path, are adjusted for.
    let free = args.confounders.is_empty() && result.backdoor_refused.is_some();
    let mut candidates: Vec<Vec<String>> = vec![result.adjusted.clone()];
    if free {
        candidates = known.iter().map(|one| one.given.clone()).collect();
        candidates.sort_by_key(Vec::len);
    }
    for given in candidates {
        let names = match args.instruments.as_slice() {
            [] => known.iter().map(|one| one.name.clone()).take(MOST_TRIED).collect(),
            names => names.to_vec(),
        };
        let mut fit = Vec::new();
        for name in &names {
            if graph.contains(name) && valid(name, &given)? {
                fit.push(name.clone());
            }
        }
        // Of those in the graph one is enough; those that the user names are all meant.
        if args.instruments.is_empty() {
            fit.truncate(1);
        }
        if !fit.is_empty() && (args.instruments.is_empty() || fit.len() == names.len()) {
            (result.instruments, result.adjusted) = (fit, given);
            return Ok(());
        }
    }
    let adjusted = list(&result.adjusted);
    result.instruments_refused = Some(match args.instruments.as_slice() {
        [] if known.is_empty() => "the graph has no instrument".into(),
        [] => format!("by the graph nothing is an instrument given {adjusted}"),
        names => match names.iter().find(|name| !known.iter().any(|one| one.name == **name)) {
            Some(stranger) => format!("by the graph, `{stranger}` is not an instrument"),
            None => {
                let needed = known.iter().find(|one| one.name == names[0]);
                let needed = list(needed.map_or(&[][..], |one| &one.given));
                format!(
                    "by the graph, {} is an instrument given {needed}, not given {adjusted}",
                    list(names)
                )
            }
        },
    });
    Ok(())
}

/// The rows of the port `graph`, and what was left out of them.
pub(super) fn rows(
    args: &Args,
    graph: &CausalGraph,
    identified: &[Identified],
    frame: &Frame,
) -> Result<(Vec<Vec<Cell>>, Vec<String>), QueryError> {
    let (mut rows, mut cut) = (Vec::new(), Vec::new());
    for (outcome, found) in args.outcomes.iter().zip(identified) {
        sets(args, graph, outcome, found, &mut rows, &mut cut)?;
    }
    let implied = graph.implied_independencies();
    note_cut(&mut cut, "implied independencies", implied.list.len(), implied.complete);
    for independence in implied.list.iter().take(MOST_SETS) {
        for given in &independence.given {
            rows.push(independence_row(args, frame, &independence.a, &independence.b, given));
        }
    }
    Ok((rows, cut))
}

/// Notes that a list is not shown as a whole, or was not found as a whole.
fn note_cut(cut: &mut Vec<String>, what: &str, found: usize, complete: bool) {
    if found > MOST_SETS {
        cut.push(format!("the port `graph` shows {MOST_SETS} of {} {what}", thousands(found)));
    } else if !complete {
        cut.push(format!("the graph is too large to find all {what}"));
    }
}

/// A row: outcome, kind, variables, given, status, reason, coefficient, p, note.
fn row(
    outcome: &str,
    kind: &str,
    variables: &[String],
    given: &[String],
    refused: Option<String>,
    note: String,
) -> Vec<Cell> {
    let status = if refused.is_some() { "refused" } else { "ok" };
    vec![
        outcome.into(),
        kind.into(),
        variables.join(", ").into(),
        given.join(", ").into(),
        status.into(),
        refused.into(),
        Cell::Null,
        Cell::Null,
        note.into(),
    ]
}

fn sets(
    args: &Args,
    graph: &CausalGraph,
    outcome: &str,
    found: &Identified,
    rows: &mut Vec<Vec<Cell>>,
    cut: &mut Vec<String>,
) -> Result<(), QueryError> {
    let treatment = args.treatment.as_str();
    let answer = identify(graph, treatment, outcome)?;
    let effect = format!("the effect of `{treatment}` on `{outcome}`");
    let notes: String = answer.notes.iter().map(|note| format!(" Note that {note}.")).collect();
    let (way, refused) = match &answer.by {
        Identification::Backdoor { .. } => ("backdoor", None),
        Identification::Frontdoor { .. } => ("frontdoor", None),
        Identification::Instrument { .. } => ("instrument", None),
        Identification::NotIdentified { reason } => ("none", Some(reason.clone())),
    };
    let note = match &refused {
        None => format!("By the graph, {effect} is identified ({way}).{notes}"),
        Some(reason) => format!("By the graph, {effect} is not identified: {reason}.{notes}"),
    };
    rows.push(row(outcome, "identification", &[way.to_string()], &[], refused, note));
    let note = match &found.backdoor_refused {
        None if found.adjusted.is_empty() => format!("For {effect} nothing is adjusted for."),
        None => format!("For {effect}, the adjustment is for {}.", list(&found.adjusted)),
        Some(reason) => format!("For {effect} no set is used: {reason}."),
    };
    let refused = found.backdoor_refused.clone();
    rows.push(row(outcome, "adjustment_set", &found.adjusted, &[], refused, note));
    let minimal = graph.minimal_backdoor(treatment, outcome)?;
    note_cut(cut, "minimal adjustment sets", minimal.sets.len(), minimal.complete);
    for set in minimal.sets.iter().take(MOST_SETS) {
        let note = match set.as_slice() {
            [] => "Nothing has to be adjusted for.".into(),
            [_] => format!("Adjusting for {} is enough.", list(set)),
            _ => format!("Adjusting for {} is enough, and for no part of it.", list(set)),
        };
        rows.push(row(outcome, "minimal_adjustment_set", set, &[], None, note));
    }
    if let Some(set) = graph.optimal_adjustment(treatment, outcome)? {
        let note = match set.as_slice() {
            [] => "Adjusting for nothing gives the smallest variance.".into(),
            _ => format!("Adjusting for {} gives the smallest variance.", list(&set)),
        };
        rows.push(row(outcome, "optimal_adjustment_set", &set, &[], None, note));
    }
    let doors = graph.minimal_frontdoor(treatment, outcome)?;
    note_cut(cut, "front doors", doors.sets.len(), doors.complete);
    for set in doors.sets.iter().take(MOST_SETS) {
        let note = format!("The whole effect goes through {}, unconfounded.", list(set));
        rows.push(row(outcome, "frontdoor_set", set, &[], None, note));
    }
    let instruments = graph.instruments(treatment, outcome)?;
    note_cut(cut, "instruments", instruments.list.len(), instruments.complete);
    for one in instruments.list.iter().take(MOST_SETS) {
        let name = std::slice::from_ref(&one.name);
        let note = format!("`{}` is an instrument given {}.", one.name, list(&one.given));
        rows.push(row(outcome, "instrument", name, &one.given, None, note));
    }
    Ok(())
}

/// Why an implication of the graph is not tested: status and reason.
type Untested = (&'static str, String);

/// A column to test implications of the graph with: the treatment of two arms is 0 or 1.
fn tested<'a>(args: &Args, frame: &'a Frame, name: &str) -> Result<Cow<'a, [f64]>, Untested> {
    let not_applicable = |reason: &str| Err(("not_applicable", reason.to_string()));
    if name == args.treatment {
        if frame.arms.names().len() != 2 {
            return not_applicable("the treatment has no order, so that it has no correlation");
        }
        if frame.units.is_some() {
            return not_applicable("the treatment differs within units, not between them");
        }
        let treated = |arm: &u32| match frame.arms.names().get(*arm as usize) {
            None => f64::NAN,
            Some(arm) => f64::from(u8::from(*arm != args.control)),
        };
        return Ok(frame.arms.rows().iter().map(treated).collect());
    }
    let column = frame.numbers.get(name);
    let refused = |reason| Err(("refused", reason));
    let Some(column) = column else {
        return refused(format!("`{name}` is not a column of numbers"));
    };
    let missing = column.iter().filter(|value| value.is_nan()).count();
    if missing > 0 && args.missing == Missing::Refuse {
        let rows = count(missing, "row has", "rows have");
        return refused(format!("{rows} no `{name}` (missing: drop leaves such rows out)"));
    }
    match column.iter().filter(|value| value.is_infinite()).count() {
        0 => Ok(column.into()),
        n => refused(format!("`{name}` is infinite in {}", count(n, "row", "rows"))),
    }
}

/// The values of a column in some rows, which have these groups: the mean of each group, as its
/// rows depend on each other.
fn means(column: &[f64], rows: &[u32], groups: &[u32]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0u32); groups.iter().max().map_or(0, |last| *last as usize + 1)];
    for (group, row) in groups.iter().zip(rows) {
        let (sum, n) = &mut sums[*group as usize];
        *sum += column[*row as usize];
        *n += 1;
    }
    sums.into_iter().map(|(sum, n)| sum / f64::from(n)).collect()
}

/// A testable implication, tested by a partial correlation where all its variables are numbers.
fn independence_row(args: &Args, frame: &Frame, a: &str, b: &str, given: &[String]) -> Vec<Cell> {
    let pair = [a.to_string(), b.to_string()];
    let mut made = row("", "independence", &pair, given, None, String::new());
    let condition =
        if given.is_empty() { String::new() } else { format!(" given {}", list(given)) };
    let claim = format!("By the graph, `{a}` and `{b}` are independent{condition}");
    let names = || [a, b].into_iter().chain(given.iter().map(String::as_str));
    let columns: Result<Vec<Cow<'_, [f64]>>, Untested> =
        names().map(|name| tested(args, frame, name)).collect();
    let groups = frame.clusters.as_ref().or(frame.units.as_ref());
    let mut left_out = 0;
    let tested = match columns {
        Err((status, reason)) => {
            made[4] = status.into();
            Err(reason)
        }
        Ok(columns) => {
            let grouped = |row: usize| groups.is_none_or(|groups| groups.rows()[row] != NONE);
            let rows: Vec<u32> = (0..frame.len() as u32)
                .filter(|row| grouped(*row as usize))
                .filter(|row| columns.iter().all(|column| column[*row as usize].is_finite()))
                .collect();
            left_out = frame.len() - rows.len();
            let codes = groups.map(|groups| dense(gather(groups.rows(), &rows).into_iter()));
            let kept: Vec<Vec<f64>> = columns
                .iter()
                .map(|column| match &codes {
                    None => gather(column, &rows),
                    Some(codes) => means(column, &rows, codes),
                })
                .collect();
            let slices: Vec<&[f64]> = kept.iter().map(Vec::as_slice).collect();
            made[4] = "refused".into();
            partial(slices[0], slices[1], &slices[2..], args.alpha).map_err(|refusal| {
                refusal.describe(|column| match column {
                    ColumnRef::X => Some(a),
                    ColumnRef::Y => Some(b),
                    ColumnRef::Covariate(position) => given.get(position).map(String::as_str),
                    _ => None,
                })
            })
        }
    };
    match tested {
        Ok(found) => {
            made[4] = "ok".into();
            made[6] = found.coefficient.into();
            made[7] = found.p_value.into();
            let what = match (&args.cluster, &args.unit) {
                (Some(_), _) => "clusters (by their means)",
                (None, Some(_)) => "units (by their means)",
                (None, None) => "rows",
            };
            let incomplete = match left_out {
                0 => String::new(),
                n => format!(" {} left out.", count(n, "incomplete row is", "incomplete rows are")),
            };
            made[8] = format!(
                "{claim}. In {} {what} their partial correlation is {} (p {}).{incomplete}",
                thousands(found.n),
                short(found.coefficient),
                p_equals(found.p_value)
            )
            .into();
        }
        Err(reason) => {
            made[8] = format!("{claim}. Not tested: {reason}.").into();
            made[5] = reason.into();
        }
    }
    made
}
