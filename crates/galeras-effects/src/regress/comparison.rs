//! The compared rows: contrasts of arms, complete rows, and the reasons that forbid an estimate
//! before it is computed.

use super::adjustment::AdjustmentPlan;
use super::args::{Args, Contrasts};
use super::data_faults::{lost_in_rounding, repeated_ids, short_list, split_units};
use super::design::DesignColumns;
use super::estimators::pairs::UnitPairs;
use super::frame::{
    AnalysisFrame, CovariateColumns, LabelCodes, NONE, covariate_columns, gather, level_codes,
};
use crate::words::infinite;
use galeras_base::prose::{count, thousands};
use galeras_causal::dense;
use galeras_operator::far_numbers::{LEAST_RANGE, moved, near_zero};
use galeras_operator::missing_values::MissingValues;

/// Fewer units than these give no estimate.
pub(super) const FEWEST_UNITS: usize = 10;

/// More arms than these are compared only if they are named: a column with more values is one of
/// numbers, or of names.
const MOST_ARMS: usize = 100;

fn too_many_arms(args: &Args, frame: &AnalysisFrame) -> bool {
    args.treatments.is_none() && frame.arms.names.len() > MOST_ARMS
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contrast {
    pub(super) treatment: String,
    pub(super) control: String,
}

/// The contrasts, in the order in which they are reported: each arm with control, then with the arms
/// before it.
pub(super) fn contrasts(args: &Args, frame: &AnalysisFrame) -> Vec<Contrast> {
    let mut arms: Vec<String> = match &args.treatments {
        Some(given) => given.clone(),
        // Doses are many: they are compared by their curve.
        None if args.dose.is_some() => return Vec::new(),
        None => {
            let mut others = frame.arms.names.to_vec();
            others.retain(|name| *name != args.control);
            others.sort();
            if too_many_arms(args, frame) {
                others.clear();
            }
            others
        }
    };
    if arms.is_empty() {
        // One row reports that there is nothing to compare.
        arms.push(args.control.clone());
    }
    let contrast = |treatment: &String, control: &String| Contrast {
        treatment: treatment.clone(),
        control: control.clone(),
    };
    let mut all: Vec<Contrast> = arms.iter().map(|arm| contrast(arm, &args.control)).collect();
    if args.contrasts == Contrasts::All {
        for (at, arm) in arms.iter().enumerate() {
            all.extend(arms[..at].iter().map(|before| contrast(arm, before)));
        }
    }
    all
}

/// An outcome on the rows of a [`RowSet`].
pub(super) struct Comparison {
    pub(super) outcome: String,
    pub(super) values: Vec<f64>,
    /// The values near zero, if they are far from it.
    moved: Option<Vec<f64>>,
    /// Rows without a value that an estimator with covariates needs.
    pub(super) missing: usize,
    /// Rows without one that every estimator needs, or that were left out for all.
    pub(super) missing_always: usize,
    /// Rows that are absent: one for each unit without any under one of the arms.
    pub(super) absent: usize,
    /// Units that were left out because they lack an arm.
    pub(super) left_out: usize,
    pub(super) refused: Option<String>,
}

impl Comparison {
    /// Values whose differences are those of `values`, and survive sums.
    pub(super) fn near_zero(&self) -> &[f64] {
        self.moved.as_deref().unwrap_or(&self.values)
    }
}

/// The rows of a contrast that are complete, for the outcomes that have the same ones and are
/// adjusted for the same covariates.
pub(super) struct RowSet {
    pub(super) contrast: Contrast,
    /// Positions in the frame.
    pub(super) rows: Vec<u32>,
    pub(super) treated: Vec<bool>,
    pub(super) units: Option<Vec<u32>>,
    /// Clusters as given; a unit is a cluster where there are none.
    pub(super) clusters: Option<Vec<u32>>,
    /// Of the first outcome. All have its columns and the reasons against them; not its mediators.
    pub(super) plan: AdjustmentPlan,
    /// The columns that are adjusted for in sentences: text with its base.
    pub(super) described: Vec<String>,
    /// The name of each covariate: text has one for each level but the base.
    pub(super) names: Vec<String>,
    pub(super) covariates: Vec<Vec<f64>>,
    /// The levels of each absorbed column.
    pub(super) absorbed: Vec<Vec<u32>>,
    pub(super) instruments: Vec<Vec<f64>>,
    pub(super) design: DesignColumns,
    /// Why no estimator can use the values of the covariates.
    pub(super) covariates_refused: Option<String>,
    pub(super) trimmed: Option<TrimmedRows>,
    pub(super) comparisons: Vec<Comparison>,
}

/// The numbers of rows that `overlap: trim` left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrimmedRows {
    /// All rows before.
    pub(super) of: usize,
    pub(super) treated: usize,
    pub(super) control: usize,
}

impl RowSet {
    /// The groups within which errors may be correlated.
    pub(super) fn correlated(&self) -> Option<&[u32]> {
        self.clusters.as_deref().or(self.units.as_deref())
    }

    pub(super) fn adjusting_refused(&self) -> Option<&String> {
        self.plan.backdoor_refused.as_ref().or(self.covariates_refused.as_ref())
    }

    pub(super) fn outcomes(&self) -> String {
        let names: Vec<&str> =
            self.comparisons.iter().map(|comparison| comparison.outcome.as_str()).collect();
        names.join(", ")
    }

    /// The same with only these rows, given by their positions here in ascending order.
    pub(super) fn restricted(self, args: &Args, frame: &AnalysisFrame, kept: &[u32]) -> Self {
        let columns =
            |all: &[Vec<f64>]| all.iter().map(|column| gather(column, kept)).collect::<Vec<_>>();
        let codes = |codes: &Vec<u32>| dense(kept.iter().map(|row| codes[*row as usize]));
        let rows = UsableRows { kept: gather(&self.rows, kept), ..UsableRows::default() };
        let comparisons = self.comparisons.into_iter().map(|comparison| Comparison {
            values: gather(&comparison.values, kept),
            moved: comparison.moved.as_ref().map(|values| gather(values, kept)),
            refused: comparison
                .refused
                .or_else(|| why_refused(args, frame, &self.contrast, &comparison.outcome, &rows)),
            ..comparison
        });
        Self {
            comparisons: comparisons.collect(),
            treated: gather(&self.treated, kept),
            units: self.units.as_ref().map(codes),
            clusters: self.clusters.as_ref().map(codes),
            absorbed: self.absorbed.iter().map(codes).collect(),
            covariates: columns(&self.covariates),
            instruments: columns(&self.instruments),
            design: self.design.of_rows(kept),
            rows: rows.kept,
            ..self
        }
    }

    pub(super) fn covariates(&self) -> Vec<&[f64]> {
        self.covariates.iter().map(Vec::as_slice).collect()
    }

    pub(super) fn pairs(&self, outcome: &[f64]) -> Option<UnitPairs> {
        self.units.as_ref().map(|units| UnitPairs::of(&self.treated, outcome, units))
    }

    pub(super) fn n_treated(&self) -> usize {
        self.treated.iter().filter(|treated| **treated).count()
    }
}

/// The number of groups, from their codes: those from 0 without gaps.
pub(super) fn group_count(codes: &[u32]) -> usize {
    codes.iter().max().map_or(0, |last| *last as usize + 1)
}

pub(super) fn arm_values(treated: &[bool], values: &[f64], arm: bool) -> Vec<f64> {
    let rows = treated.iter().zip(values).filter(|(treated, _)| **treated == arm);
    rows.map(|(_, value)| *value).collect()
}

/// The rows of a contrast, by outcomes that share them.
pub(super) fn row_sets(
    args: &Args,
    frame: &AnalysisFrame,
    plans: &[AdjustmentPlan],
    contrast: &Contrast,
) -> Vec<RowSet> {
    let mut sets: Vec<RowSet> = Vec::new();
    let arms = (frame.arms.code(&contrast.treatment), frame.arms.code(&contrast.control));
    let in_arm = |row: &u32| {
        let arm = Some(frame.arms.rows[*row as usize]);
        arm == arms.0 || arm == arms.1
    };
    let candidates: Vec<u32> = (0..frame.len() as u32).filter(in_arm).collect();
    for (outcome, plan) in args.outcomes.iter().zip(plans) {
        let rows = UsableRows::of(args, frame, plan, outcome, &candidates, arms.0);
        let values = gather(&frame.numbers[outcome], &rows.kept);
        let comparison = Comparison {
            moved: near_zero(&values),
            values,
            refused: why_refused(args, frame, contrast, outcome, &rows),
            missing: rows.missing,
            // Rows whose arm or unit is not known are counted as missing; they may be these.
            absent: rows.absent.count().saturating_sub(rows.unknown),
            left_out: rows.left_out,
            missing_always: match args.missing {
                MissingValues::Refuse => rows.missing_always,
                MissingValues::Drop => rows.missing,
            },
            outcome: outcome.clone(),
        };
        let covariates_refused = why_covariates_refused(args, frame, plan, &rows);
        let same = |set: &&mut RowSet| {
            set.rows == rows.kept
                && set.plan.adjusted == plan.adjusted
                && set.plan.instruments == plan.instruments
                && set.covariates_refused == covariates_refused
                && set.plan.backdoor_refused == plan.backdoor_refused
                && set.plan.unadjusted_refused == plan.unadjusted_refused
        };
        match sets.iter_mut().find(same) {
            Some(set) => set.comparisons.push(comparison),
            None => {
                let mut set = row_set(args, frame, plan, contrast, rows, covariates_refused);
                set.comparisons.push(comparison);
                sets.push(set);
            }
        }
    }
    sets
}

fn row_set(
    args: &Args,
    frame: &AnalysisFrame,
    plan: &AdjustmentPlan,
    contrast: &Contrast,
    rows: UsableRows,
    covariates_refused: Option<String>,
) -> RowSet {
    let treatment = frame.arms.code(&contrast.treatment);
    let is_treated = |row: &u32| Some(frame.arms.rows[*row as usize]) == treatment;
    let codes = |codes: &LabelCodes| dense(rows.kept.iter().map(|row| codes.rows[*row as usize]));
    // Values that are not used, because they are incomplete, are not copied.
    let columns = |names: &[String]| match covariates_refused {
        None => names.iter().map(|name| moved(gather(&frame.numbers[name], &rows.kept))).collect(),
        Some(_) => Vec::new(),
    };
    let adjusted = match covariates_refused {
        None => covariate_columns(args, frame, &plan.adjusted, &rows.kept).unwrap_or_default(),
        Some(_) => CovariateColumns {
            names: plan.adjusted.clone(),
            described: plan.adjusted.clone(),
            values: Vec::new(),
        },
    };
    RowSet {
        contrast: contrast.clone(),
        treated: rows.kept.iter().map(is_treated).collect(),
        units: frame.units.as_ref().map(codes),
        clusters: frame.clusters.as_ref().map(codes),
        plan: plan.clone(),
        described: adjusted.described,
        names: adjusted.names,
        covariates: adjusted.values.into_iter().map(moved).collect(),
        absorbed: args.absorb.iter().map(|name| level_codes(frame, name, &rows.kept)).collect(),
        instruments: columns(&plan.instruments),
        design: DesignColumns::of(args, frame, &rows.kept),
        covariates_refused,
        trimmed: None,
        comparisons: Vec::new(),
        rows: rows.kept,
    }
}

/// Why nothing can be estimated from these rows.
fn why_refused(
    args: &Args,
    frame: &AnalysisFrame,
    contrast: &Contrast,
    outcome: &str,
    rows: &UsableRows,
) -> Option<String> {
    for arm in [&contrast.control, &contrast.treatment] {
        if frame.arms.code(arm).is_none() {
            let known = frame.arms.names.as_slice();
            return Some(match known {
                [] => format!("there is no row with a value of `{}`", args.treatment),
                _ => {
                    format!(
                        "no row has `{arm}` as `{}`: it is {}",
                        args.treatment,
                        short_list(known)
                    )
                }
            });
        }
    }
    if too_many_arms(args, frame) {
        return Some(format!(
            "`{}` has {} values, and at most {MOST_ARMS} are compared as arms: name some under \
             `treatments`, or cut the column into a few",
            args.treatment,
            thousands(frame.arms.names.len())
        ));
    }
    if contrast.treatment == contrast.control {
        let message = "has one level only, so that there is nothing to compare";
        return Some(format!("`{}` {message}", args.treatment));
    }
    if args.missing == MissingValues::Refuse && rows.missing_always > 0 {
        return Some(format!(
            "{} without a value of `{outcome}`{} (missing: drop leaves such rows out)",
            count(rows.missing_always, "row is", "rows are"),
            or_group_columns(args),
        ));
    }
    if args.missing == MissingValues::Refuse
        && let Some(reason) = rows.absent.reason(&contrast.treatment, &contrast.control)
    {
        return Some(reason);
    }
    let values = &frame.numbers[outcome];
    let repeated = || args.unit.as_ref().and_then(|unit| repeated_ids(frame, unit, &rows.kept));
    let faults = || split_units(frame, &rows.kept).or_else(repeated);
    if let Some(reason) = unusable(frame, outcome, &rows.kept).or_else(faults) {
        return Some(reason);
    }
    let mut arms = [0usize; 2];
    let treatment = frame.arms.code(&contrast.treatment);
    for row in &rows.kept {
        arms[usize::from(Some(frame.arms.rows[*row as usize]) == treatment)] += 1;
    }
    for (n, arm) in arms.into_iter().zip([&contrast.control, &contrast.treatment]) {
        if n < 2 {
            let rows = count(n, "row", "rows");
            return Some(format!("too few rows: {rows} of `{arm}`, at least 2 are needed"));
        }
    }
    let (units, what) = match &frame.units {
        Some(units) => {
            let codes = dense(rows.kept.iter().map(|row| units.rows[*row as usize]));
            (group_count(&codes), "units")
        }
        None => (rows.kept.len(), "rows"),
    };
    if units < FEWEST_UNITS {
        return Some(format!("too few {what}: {units}, at least {FEWEST_UNITS} are needed"));
    }
    if let Some(clusters) = &frame.clusters {
        let cluster = |row: &u32| clusters.rows[*row as usize];
        if rows.kept.iter().all(|row| cluster(row) == cluster(&rows.kept[0])) {
            return Some("too few clusters: 1, at least 2 are needed".into());
        }
        for arm in [&contrast.control, &contrast.treatment] {
            let code = frame.arms.code(arm);
            let of_arm =
                rows.kept.iter().filter(|row| Some(frame.arms.rows[**row as usize]) == code);
            let mut clusters = of_arm.map(cluster);
            let first = clusters.next();
            if clusters.all(|cluster| Some(cluster) == first) {
                return Some(format!(
                    "all rows of `{arm}` lie in one cluster, so that its effect cannot be told \
                     from that of the treatment"
                ));
            }
        }
    }
    let first = values[rows.kept[0] as usize];
    if rows.kept.iter().all(|row| values[*row as usize] == first) {
        return Some(format!("`{outcome}` is constant: it is {first} in all rows"));
    }
    None
}

/// The group columns of an analysis, as the end of a list.
fn or_group_columns(args: &Args) -> String {
    let groups = args.unit.iter().chain(&args.cluster).chain(args.design_columns());
    let mut names: Vec<&str> = groups.map(String::as_str).collect();
    names.push(&args.treatment);
    names.iter().map(|name| format!(" or `{name}`")).collect()
}

/// Why the values of a column in these rows cannot be used.
fn unusable(frame: &AnalysisFrame, name: &str, rows: &[u32]) -> Option<String> {
    let column = &frame.numbers[name];
    infinite(name, rows.iter().map(|row| column[*row as usize]))
        .or_else(|| lost_in_rounding(frame, name, rows.iter().copied(), LEAST_RANGE))
}

/// Why no estimator may use the covariates and instruments in these rows.
pub(super) fn why_covariates_refused(
    args: &Args,
    frame: &AnalysisFrame,
    plan: &AdjustmentPlan,
    rows: &UsableRows,
) -> Option<String> {
    let missing: Vec<String> = rows
        .missing_covariates
        .iter()
        .filter(|(_, missing)| *missing > 0)
        .map(|(name, missing)| format!("{missing} of `{name}`"))
        .collect();
    if args.missing == MissingValues::Refuse && !missing.is_empty() {
        return Some(format!(
            "values are missing: {} (missing: drop leaves such rows out)",
            missing.join(", ")
        ));
    }
    for name in plan.adjusted.iter().chain(&plan.instruments).chain(&plan.mediators) {
        let reason = unusable(frame, name, &rows.kept);
        if reason.is_some() {
            return reason;
        }
    }
    if let Err(reason) = covariate_columns(args, frame, &plan.adjusted, &rows.kept) {
        return Some(reason);
    }
    let (points, one, many) = match (&frame.units, &frame.origins) {
        (Some(units), _) => (units, "unit", "units"),
        (None, origins) => (origins.as_ref()?, "data point", "data points"),
    };
    let is_known = |row: &u32| points.rows[*row as usize] != NONE;
    let rows: Vec<u32> = rows.kept.iter().copied().filter(is_known).collect();
    let codes = gather(&points.rows, &rows);
    plan.adjusted.iter().find_map(|name| {
        let differing = differing_units(&codes, &gather(&frame.numbers[name], &rows));
        (differing > 0).then(|| {
            format!(
                "`{name}` is a bad control: it differs between the rows of {}, so that the \
                 treatment may have changed it",
                count(differing, one, many)
            )
        })
    })
}

/// The number of units whose rows differ in the column.
pub(super) fn differing_units(units: &[u32], column: &[f64]) -> usize {
    let size = group_count(units);
    // The first value of a unit, and whether another one was seen.
    let mut first: Vec<Option<(f64, bool)>> = vec![None; size];
    for (unit, value) in units.iter().zip(column) {
        match &mut first[*unit as usize] {
            Some((known, differs)) => {
                *differs |= *known != *value && !(known.is_nan() && value.is_nan());
            }
            empty => *empty = Some((*value, false)),
        }
    }
    first.into_iter().flatten().filter(|(_, differs)| *differs).count()
}

/// The rows that are used for an outcome, and counts of those that are not.
#[derive(Default)]
pub(super) struct UsableRows {
    pub(super) kept: Vec<u32>,
    /// Rows without an arm, or of these arms without a value that is needed.
    pub(super) missing: usize,
    /// The part of them that no estimator can do without.
    pub(super) missing_always: usize,
    /// Per covariate, the number of rows that lack it.
    pub(super) missing_covariates: Vec<(String, usize)>,
    /// The units that lack an arm, whatever their values are.
    pub(super) absent: IncompleteUnits,
    /// Rows without an arm or a unit.
    pub(super) unknown: usize,
    /// Units that were left out because they lack an arm, or values under it.
    pub(super) left_out: usize,
}

impl UsableRows {
    pub(super) fn of(
        args: &Args,
        frame: &AnalysisFrame,
        plan: &AdjustmentPlan,
        outcome: &str,
        candidates: &[u32],
        treatment: Option<u32>,
    ) -> Self {
        let values = &frame.numbers[outcome];
        let codes = [&frame.units, &frame.clusters];
        let design: Vec<&Vec<f64>> =
            args.design_columns().map(|name| &frame.numbers[name]).collect();
        let group_missing = |row: usize| {
            codes.into_iter().flatten().any(|c| c.rows[row] == NONE)
                || design.iter().any(|column| column[row].is_nan())
        };
        let covariates: Vec<(&String, &Vec<f64>)> = plan
            .adjusted
            .iter()
            .chain(&plan.instruments)
            .chain(&args.absorb)
            .chain(&plan.mediators)
            .map(|name| (name, &frame.numbers[name]))
            .collect();
        let without_arm = frame.arms.rows.iter().filter(|arm| **arm == NONE).count();
        let no_unit =
            |row: &&u32| codes[0].as_ref().is_some_and(|c| c.rows[**row as usize] == NONE);
        let without_unit = candidates.iter().filter(no_unit).count();
        let mut usable = Self {
            kept: Vec::with_capacity(candidates.len()),
            missing: without_arm,
            missing_always: without_arm,
            missing_covariates: covariates.iter().map(|(name, _)| ((*name).clone(), 0)).collect(),
            absent: IncompleteUnits::of(frame, treatment, candidates),
            unknown: without_arm + without_unit,
            left_out: 0,
        };
        for row in candidates {
            let at = *row as usize;
            let always = values[at].is_nan() || group_missing(at);
            let mut lacking = false;
            for ((_, column), (_, missing)) in covariates.iter().zip(&mut usable.missing_covariates)
            {
                if column[at].is_nan() {
                    *missing += 1;
                    lacking = true;
                }
            }
            usable.missing_always += usize::from(always);
            usable.missing += usize::from(always || lacking);
            // A row without an outcome is of no use; one without a covariate is, to estimators
            // that use none, unless the user wants all of them to have the same rows.
            let dropped = always || (lacking && args.missing == MissingValues::Drop);
            if !dropped {
                usable.kept.push(*row);
            }
        }
        if args.missing == MissingValues::Drop {
            // Every estimator has the same units, so that their estimates can be compared.
            let incomplete = IncompleteUnits::of(frame, treatment, &usable.kept);
            usable.kept.retain(|row| !incomplete.has(frame, *row));
            usable.left_out = incomplete.count();
        }
        usable
    }
}

/// The units of some rows that have none under one of two arms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IncompleteUnits {
    pub(super) without_treatment: usize,
    pub(super) without_control: usize,
    pub(super) units: usize,
    /// Per unit of the frame, whether it has control and treatment.
    arms: Vec<[bool; 2]>,
}

impl IncompleteUnits {
    /// Those of these rows of the frame; a row without a unit belongs to none. Where no unit has
    /// both arms, units are not what is compared, and so nothing is absent.
    pub(super) fn of(frame: &AnalysisFrame, treatment: Option<u32>, rows: &[u32]) -> Self {
        let Some(units) = &frame.units else { return Self::default() };
        let mut arms = vec![[false; 2]; units.names.len()];
        for row in rows {
            let unit = units.rows[*row as usize];
            if unit != NONE {
                let treated = Some(frame.arms.rows[*row as usize]) == treatment;
                arms[unit as usize][usize::from(treated)] = true;
            }
        }
        let number = |wanted: [bool; 2]| arms.iter().filter(|has| **has == wanted).count();
        let complete = number([true, true]);
        if complete == 0 {
            return Self::default();
        }
        let (without_treatment, without_control) = (number([true, false]), number([false, true]));
        let units = complete + without_treatment + without_control;
        Self { without_treatment, without_control, units, arms }
    }

    /// The number of absent rows: one per unit that lacks an arm.
    pub(super) fn count(&self) -> usize {
        self.without_treatment + self.without_control
    }

    pub(super) fn has(&self, frame: &AnalysisFrame, row: u32) -> bool {
        let Some(units) = &frame.units else { return false };
        let unit = units.rows[row as usize];
        unit != NONE && self.arms.get(unit as usize).is_some_and(|has| *has != [true, true])
    }

    pub(super) fn reason(&self, treatment: &str, control: &str) -> Option<String> {
        let arms = [(self.without_treatment, treatment), (self.without_control, control)];
        let lacking: Vec<String> = arms
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, arm)| format!("{} no row under `{arm}`", count(n, "unit has", "units have")))
            .collect();
        (!lacking.is_empty()).then(|| {
            format!(
                "of {} {} (missing: drop leaves such units out)",
                count(self.units, "unit", "units"),
                lacking.join(", ")
            )
        })
    }
}
