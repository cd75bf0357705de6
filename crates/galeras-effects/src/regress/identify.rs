//! Conclusions from the causal graph, the rows of the port `graph`: identification, adjustment
//! sets, instruments, and the implied independencies with a test of each.

use super::data_faults::lost_in_rounding;
use galeras_operator::far_numbers::{LEAST_RANGE, near_zero};
use std::borrow::Cow;

use super::adjustment::AdjustmentPlan;
use super::args::Args;
use super::frame::{AnalysisFrame, NONE, gather};
use crate::shared_columns::{self as columns, Answer, NoNumber, reason_of, status_of};
use crate::words;
use galeras_base::prose::{count, four_digits, name_list, p_equals, thousands};
use galeras_causal::{
    CausalGraph, ColumnRef, Correlation, Identification, QueryError, adjust, dense, identify,
    partial,
};
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::{TableColumn, TableRow, number, optional_text, text};

/// More rows of one kind than a table of a graph should have.
const MOST_SETS: usize = 1000;

/// Something that follows from the graph.
pub(super) struct GraphRow {
    /// Empty where it is about no outcome.
    outcome: String,
    kind: &'static str,
    variables: String,
    given: String,
    /// The test, of an independence.
    tested: Answer<Option<Correlation>>,
    /// Adjusted over all implied independencies that were tested.
    p_adjusted: Option<f64>,
    /// The data reject the independence.
    refuted: bool,
    note: String,
}

impl TableRow for GraphRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        text(
            "kind",
            "adjustment_set (the one used), minimal_adjustment_set, optimal_adjustment_set, \
             frontdoor_set, instrument, identification or independence",
            |row| row.kind,
        ),
        text(
            "variables",
            "the set, the instrument, or the two that are independent; with commas",
            |row| &row.variables,
        ),
        text("given", "what is conditioned on, with commas", |row| &row.given),
        columns::status(|row| status_of(&row.tested)),
        columns::reason(|row| reason_of(&row.tested)),
        number("coefficient", "partial correlation, for an independence", |row| {
            Some(row.correlation()?.coefficient)
        }),
        number("p_value", "two-sided p-value of no partial correlation", |row| {
            Some(row.correlation()?.p_value)
        }),
        number("p_adjusted", "adjusted over all independencies tested", |row| row.p_adjusted),
        optional_text("verdict", "refuted: the data reject the independence", |row| {
            row.refuted.then_some("refuted")
        }),
        columns::note(|row| &row.note),
    ];
}

impl GraphRow {
    fn new(
        outcome: &str,
        kind: &'static str,
        variables: &[String],
        given: &[String],
        note: String,
    ) -> Self {
        Self {
            outcome: outcome.into(),
            kind,
            variables: variables.join(", "),
            given: given.join(", "),
            tested: Ok(None),
            p_adjusted: None,
            refuted: false,
            note,
        }
    }

    fn refused(self, reason: Option<String>) -> Self {
        Self { tested: reason.map_or(Ok(None), |reason| Err(NoNumber::Refused(reason))), ..self }
    }

    fn correlation(&self) -> Option<&Correlation> {
        self.tested.as_ref().ok()?.as_ref()
    }
}

/// The rows of the port, and warnings on lists that were cut.
pub(super) fn graph_rows(
    args: &Args,
    graph: &CausalGraph,
    plans: &[AdjustmentPlan],
    frame: &AnalysisFrame,
) -> Result<(Vec<GraphRow>, Vec<String>), QueryError> {
    let (mut rows, mut cut) = (Vec::new(), Vec::new());
    for (outcome, plan) in args.outcomes.iter().zip(plans) {
        set_rows(args, graph, outcome, plan, &mut rows, &mut cut)?;
    }
    let implied = graph.implied_independencies();
    let total = implied.list.iter().map(|pair| pair.given.len()).sum();
    note_cut(&mut cut, "implied independencies", total, implied.complete);
    let each = implied.list.iter().flat_map(|pair| pair.given.iter().map(move |set| (pair, set)));
    for (pair, given) in each.take(MOST_SETS) {
        rows.push(independence_row(args, frame, &pair.a, &pair.b, given));
    }
    adjust_independencies(args, &mut rows);
    Ok((rows, cut))
}

/// Adjusts the p-values of the implied independencies: a graph that holds, and implies many,
/// contradicts some of the data by chance.
fn adjust_independencies(args: &Args, rows: &mut [GraphRow]) {
    let known: Vec<f64> = rows.iter().filter_map(|row| Some(row.correlation()?.p_value)).collect();
    let adjusted = adjust(&known, args.adjust.into());
    let tested = rows.iter_mut().filter(|row| row.correlation().is_some());
    for (row, p) in tested.zip(adjusted) {
        row.p_adjusted = Some(p);
        row.refuted = p <= args.alpha;
        let tests = thousands(known.len());
        row.note.push_str(&format!(
            " Adjusted for {tests} tests ({}): p {}.",
            args.adjust,
            p_equals(p)
        ));
    }
}

/// The words for a graph that implies independencies which the data reject.
pub(super) fn refuted(rows: &[GraphRow]) -> Option<String> {
    let tested = rows.iter().filter(|row| row.p_adjusted.is_some()).count();
    let refuted = rows.iter().filter(|row| row.refuted).count();
    (refuted > 0).then(|| {
        format!(
            "the data reject {} of {} independencies that the graph implies and that can be tested",
            thousands(refuted),
            thousands(tested)
        )
    })
}

/// Notes a list that is not complete.
fn note_cut(cut: &mut Vec<String>, what: &str, total: usize, complete: bool) {
    if total > MOST_SETS {
        cut.push(format!("the port `graph` shows {MOST_SETS} of {} {what}", thousands(total)));
    } else if !complete {
        cut.push(format!("the graph is too large to find all {what}"));
    }
}

fn set_rows(
    args: &Args,
    graph: &CausalGraph,
    outcome: &str,
    plan: &AdjustmentPlan,
    rows: &mut Vec<GraphRow>,
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
    rows.push(
        GraphRow::new(outcome, "identification", &[way.to_string()], &[], note).refused(refused),
    );
    let note = match &plan.backdoor_refused {
        None if plan.adjusted.is_empty() => format!("For {effect} nothing is adjusted for."),
        None => format!("For {effect}, the adjustment is for {}.", name_list(&plan.adjusted)),
        Some(reason) => format!("For {effect} no set is used: {reason}."),
    };
    let refused = plan.backdoor_refused.clone();
    rows.push(GraphRow::new(outcome, "adjustment_set", &plan.adjusted, &[], note).refused(refused));
    let minimal = graph.minimal_backdoor(treatment, outcome)?;
    note_cut(cut, "minimal adjustment sets", minimal.sets.len(), minimal.complete);
    for set in minimal.sets.iter().take(MOST_SETS) {
        let note = match set.as_slice() {
            [] => "Nothing has to be adjusted for.".into(),
            [_] => format!("Adjusting for {} is enough.", name_list(set)),
            _ => format!("Adjusting for {} is enough, and for no part of it.", name_list(set)),
        };
        rows.push(GraphRow::new(outcome, "minimal_adjustment_set", set, &[], note));
    }
    if let Some(set) = graph.optimal_adjustment(treatment, outcome)? {
        let note = match set.as_slice() {
            [] => "Adjusting for nothing gives the smallest variance.".into(),
            _ => format!("Adjusting for {} gives the smallest variance.", name_list(&set)),
        };
        rows.push(GraphRow::new(outcome, "optimal_adjustment_set", &set, &[], note));
    }
    let doors = graph.minimal_frontdoor(treatment, outcome)?;
    note_cut(cut, "front doors", doors.sets.len(), doors.complete);
    for set in doors.sets.iter().take(MOST_SETS) {
        let note = format!("The whole effect goes through {}, unconfounded.", name_list(set));
        rows.push(GraphRow::new(outcome, "frontdoor_set", set, &[], note));
    }
    let instruments = graph.instruments(treatment, outcome)?;
    note_cut(cut, "instruments", instruments.list.len(), instruments.complete);
    for one in instruments.list.iter().take(MOST_SETS) {
        let name = std::slice::from_ref(&one.name);
        let note = format!("`{}` is an instrument given {}.", one.name, name_list(&one.given));
        rows.push(GraphRow::new(outcome, "instrument", name, &one.given, note));
    }
    Ok(())
}

/// A column for tests of implications: the treatment of two arms is 0 or 1.
fn tested_column<'a>(args: &Args, frame: &'a AnalysisFrame, name: &str) -> Answer<Cow<'a, [f64]>> {
    if name == args.treatment {
        if frame.arms.names.len() != 2 {
            let reason = "the treatment has no order, so that it has no correlation";
            return Err(NoNumber::not_applicable(reason));
        }
        if frame.units.is_some() {
            let reason = "the treatment differs within units, not between them";
            return Err(NoNumber::not_applicable(reason));
        }
        let treated = |arm: &u32| match frame.arms.names.get(*arm as usize) {
            None => f64::NAN,
            Some(arm) => f64::from(u8::from(*arm != args.control)),
        };
        return Ok(frame.arms.rows.iter().map(treated).collect());
    }
    let column = frame.numbers.get(name);
    let column = column.ok_or_else(|| format!("`{name}` is not a column of numbers"))?;
    let missing = column.iter().filter(|value| value.is_nan()).count();
    if missing > 0 && args.missing == MissingValues::Refuse {
        let rows = count(missing, "row has", "rows have");
        return Err(format!("{rows} no `{name}` (missing: drop leaves such rows out)").into());
    }
    let lost = || lost_in_rounding(frame, name, 0..column.len() as u32, LEAST_RANGE);
    match words::infinite(name, column.iter().copied()).or_else(lost) {
        Some(reason) => Err(reason.into()),
        None => Ok(near_zero(column).map_or(column.into(), Cow::Owned)),
    }
}

/// The mean of each group, as its rows depend on each other.
fn means(column: &[f64], rows: &[u32], groups: &[u32]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0u32); groups.iter().max().map_or(0, |last| *last as usize + 1)];
    for (group, row) in groups.iter().zip(rows) {
        let (sum, n) = &mut sums[*group as usize];
        *sum += column[*row as usize];
        *n += 1;
    }
    sums.into_iter().map(|(sum, n)| sum / f64::from(n)).collect()
}

/// An implication, tested by a partial correlation where all variables are numbers.
fn independence_row(
    args: &Args,
    frame: &AnalysisFrame,
    a: &str,
    b: &str,
    given: &[String],
) -> GraphRow {
    let condition =
        if given.is_empty() { String::new() } else { format!(" given {}", name_list(given)) };
    let claim = format!("By the graph, `{a}` and `{b}` are independent{condition}");
    let mut left_out = 0;
    let mut test = || -> Answer<Correlation> {
        let names = [a, b].into_iter().chain(given.iter().map(String::as_str));
        let columns: Vec<Cow<'_, [f64]>> =
            names.map(|name| tested_column(args, frame, name)).collect::<Answer<_>>()?;
        let groups = frame.clusters.as_ref().or(frame.units.as_ref());
        let grouped = |row: usize| groups.is_none_or(|groups| groups.rows[row] != NONE);
        let rows: Vec<u32> = (0..frame.len() as u32)
            .filter(|row| grouped(*row as usize))
            .filter(|row| columns.iter().all(|column| column[*row as usize].is_finite()))
            .collect();
        left_out = frame.len() - rows.len();
        let codes = groups.map(|groups| dense(gather(&groups.rows, &rows).into_iter()));
        let kept: Vec<Vec<f64>> = columns
            .iter()
            .map(|column| match &codes {
                None => gather(column, &rows),
                Some(codes) => means(column, &rows, codes),
            })
            .collect();
        let slices: Vec<&[f64]> = kept.iter().map(Vec::as_slice).collect();
        let found = partial(slices[0], slices[1], &slices[2..], args.alpha);
        found.map_err(|refusal| {
            let reason = refusal.describe(|column| match column {
                ColumnRef::X => Some(a),
                ColumnRef::Y => Some(b),
                ColumnRef::Covariate(position) => given.get(position).map(String::as_str),
                _ => None,
            });
            NoNumber::Refused(reason)
        })
    };
    let tested = test();
    let note = match &tested {
        Ok(correlation) => {
            let what = match (&args.cluster, &args.unit) {
                (Some(_), _) => "clusters (by their means)",
                (None, Some(_)) => "units (by their means)",
                (None, None) => "rows",
            };
            let incomplete = words::left_out(left_out, "incomplete row is", "incomplete rows are");
            format!(
                "{claim}. In {} {what} their partial correlation is {} (p {}).{incomplete}",
                thousands(correlation.n),
                four_digits(correlation.coefficient),
                p_equals(correlation.p_value)
            )
        }
        Err(none) => format!("{claim}. Not tested: {}.", none.reason()),
    };
    let pair = [a.to_string(), b.to_string()];
    let row = GraphRow::new("", "independence", &pair, given, note);
    GraphRow { tested: tested.map(Some), ..row }
}
