//! Effect sizes without a unit: the rows of the port `effect_sizes`.

use super::args::Args;
use super::comparison::{Comparison, Contrast, RowSet, group_count};
use super::estimators::pairs::UnitPairs;
use super::frame::gather;
use super::shared_columns::{self as columns, RowStatus};
use crate::words::ci;
use galeras_base::prose::{four_digits, name_list};
use galeras_causal::{
    Dominance, OneSided, Refusal, Standardised, dense, dominance, dominance_within,
    standardised_difference, standardised_pairs,
};
use galeras_operator::small_table::{TableColumn, TableRow, count_of, number, text};

pub(super) struct EffectSizeRow {
    outcome: String,
    contrast: Contrast,
    measure: &'static str,
    value: Option<f64>,
    interval: Option<(f64, f64)>,
    standard_error: Option<f64>,
    degrees: Option<f64>,
    interval_kind: &'static str,
    n: usize,
    status: RowStatus,
    note: String,
}

impl TableRow for EffectSizeRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text(
            "measure",
            "cliffs_delta, a12, cohens_d, hedges_g; within units cliffs_delta_within, a12_within, \
             cohens_dz",
            |row| row.measure,
        ),
        number("value", "the effect size", |row| row.value),
        number("ci_low", "lower end of its confidence interval", |row| Some(row.interval?.0)),
        number("ci_high", "upper end", |row| Some(row.interval?.1)),
        number(
            "standard_error",
            "its standard error; null where the interval inverts the noncentral t",
            |row| row.standard_error,
        ),
        number("df", "degrees of freedom of the interval", |row| row.degrees),
        text("interval_kind", "how the interval is computed", |row| row.interval_kind),
        count_of("n", "rows that are compared; within units, units", "rows", |row| row.n),
        columns::status(|row| row.status.name()),
        columns::reason(|row| row.status.reason()),
        columns::note(|row| &row.note),
    ];
}

/// The effect sizes of one outcome and contrast.
pub(super) struct EffectSizes {
    /// Rows of one arm against rows of the other.
    pub(super) dominance: Result<Dominance, String>,
    /// Cohen's d.
    pub(super) standardised: Result<Standardised, String>,
    /// Cohen's d_z; `None` without units.
    pub(super) standardised_pairs: Option<Result<Standardised, String>>,
    /// Confounders that only the estimate is adjusted for.
    pub(super) unadjusted_for: Vec<String>,
    pub(super) rows: Vec<EffectSizeRow>,
}

/// Rows that are compared: with units, those of units with rows under both arms.
struct ComparedRows {
    treated: Vec<bool>,
    outcome: Vec<f64>,
    clusters: Option<Vec<u32>>,
}

impl ComparedRows {
    fn of(set: &RowSet, comparison: &Comparison, pairs: Option<&UnitPairs>) -> Self {
        let mut rows: Vec<u32> = (0..set.treated.len() as u32).collect();
        if let (Some(pairs), Some(units)) = (pairs, &set.units) {
            let mut complete = vec![false; group_count(units)];
            pairs.units.iter().for_each(|unit| complete[*unit as usize] = true);
            rows.retain(|row| complete[units[*row as usize] as usize]);
        }
        Self {
            treated: gather(&set.treated, &rows),
            outcome: gather(comparison.near_zero(), &rows),
            clusters: set.correlated().map(|codes| gather(codes, &rows)),
        }
    }
}

pub(super) fn effect_sizes(args: &Args, set: &RowSet, comparison: &Comparison) -> EffectSizes {
    let pairs = set.pairs(comparison.near_zero());
    let rows = ComparedRows::of(set, comparison, pairs.as_ref());
    // Within units everything about a unit is balanced; else the arms are compared as they are.
    let refused = comparison.refused.clone().or_else(|| match pairs {
        Some(_) => None,
        None => set.unadjusted_refused.clone(),
    });
    let whole = |refusal: Refusal| refusal.to_string();
    let (dominance, standardised) = match &refused {
        Some(reason) => (Err(reason.clone()), Err(reason.clone())),
        None => (
            dominance(&rows.treated, &rows.outcome, rows.clusters.as_deref()).map_err(whole),
            standardised_difference(&rows.treated, &rows.outcome, rows.clusters.as_deref())
                .map_err(whole),
        ),
    };
    let unadjusted_for = if pairs.is_some() { Vec::new() } else { set.names.clone() };
    let mut table = SizeTable { args, set, comparison, unadjusted: &unadjusted_for, rows: vec![] };
    let kind = match (&set.clusters, &set.units) {
        (Some(_), _) => "Feng and Cliff, variance by clusters (Obuchowski)",
        (None, Some(_)) => "Feng and Cliff, variance by units (Obuchowski)",
        (None, None) => "Feng and Cliff, variance of Brunner and Munzel",
    };
    table.dominance(["cliffs_delta", "a12"], &dominance, kind, rows.outcome.len());
    let kind = if rows.clusters.is_some() { "sandwich by clusters" } else { "noncentral t" };
    table.standardised("cohens_d", &standardised, 1.0, kind, rows.outcome.len());
    let hedges = standardised.clone().and_then(|d| match d.hedges_correction() {
        Some(factor) => Ok((d, factor)),
        None => Err("too few rows for Hedges' correction".to_owned()),
    });
    let factor = hedges.as_ref().map_or(1.0, |(_, factor)| *factor);
    let g = hedges.map(|(d, _)| d);
    table.standardised("hedges_g", &g, factor, kind, rows.outcome.len());
    let standardised_pairs = pairs.map(|pairs| {
        let clusters = match (&set.units, &set.clusters) {
            (Some(units), Some(clusters)) => pairs
                .clusters(units, clusters)
                .map(|codes| Some(dense(codes.into_iter())))
                .map_err(whole),
            _ => Ok(None),
        };
        let clusters = match &refused {
            Some(reason) => Err(reason.clone()),
            None => clusters,
        };
        let differences = pairs.differences();
        let of_pairs = clusters.as_ref().map_err(String::clone).map(|codes| codes.as_deref());
        let within =
            of_pairs.clone().and_then(|codes| dominance_within(&differences, codes).map_err(whole));
        let dz = of_pairs.and_then(|codes| standardised_pairs(&differences, codes).map_err(whole));
        let (n, clustered) = (differences.len(), set.clusters.is_some());
        let kind = if clustered { "Feng and Cliff, by clusters" } else { "Feng and Cliff" };
        table.dominance(["cliffs_delta_within", "a12_within"], &within, kind, n);
        let kind = if clustered { "sandwich by clusters" } else { "noncentral t" };
        table.standardised("cohens_dz", &dz, 1.0, kind, n);
        dz
    });
    let rows = table.rows;
    EffectSizes { dominance, standardised, standardised_pairs, unadjusted_for, rows }
}

/// Collects the rows of one comparison.
struct SizeTable<'a> {
    args: &'a Args,
    set: &'a RowSet,
    comparison: &'a Comparison,
    unadjusted: &'a [String],
    rows: Vec<EffectSizeRow>,
}

/// The numbers of a measure.
struct Size {
    value: f64,
    interval: (f64, f64),
    standard_error: Option<f64>,
    degrees: f64,
}

impl SizeTable<'_> {
    /// Cliff's delta, and the same as Vargha and Delaney's A.
    fn dominance(
        &mut self,
        [delta, a12]: [&'static str; 2],
        found: &Result<Dominance, String>,
        kind: &'static str,
        n: usize,
    ) {
        let alpha = self.args.alpha;
        let size = found.as_ref().map(|found| Size {
            value: found.delta,
            interval: found.interval(alpha),
            standard_error: Some(found.standard_error),
            degrees: found.degrees,
        });
        self.add(delta, size.map_err(String::clone), kind, n);
        let size = found.as_ref().map(|found| Size {
            value: found.a12(),
            interval: found.a12_interval(alpha),
            standard_error: Some(0.5 * found.standard_error),
            degrees: found.degrees,
        });
        self.add(a12, size.map_err(String::clone), kind, n);
    }

    fn standardised(
        &mut self,
        measure: &'static str,
        found: &Result<Standardised, String>,
        factor: f64,
        kind: &'static str,
        n: usize,
    ) {
        let size = found.as_ref().map(|found| {
            let (low, high) = found.interval(self.args.alpha);
            Size {
                value: factor * found.value,
                interval: (factor * low, factor * high),
                standard_error: found.standard_error().map(|error| factor * error),
                degrees: found.degrees(),
            }
        });
        self.add(measure, size.map_err(String::clone), kind, n);
    }

    fn add(
        &mut self,
        measure: &'static str,
        size: Result<Size, String>,
        kind: &'static str,
        n: usize,
    ) {
        let Contrast { treatment, control } = &self.set.contrast;
        let what = format!(
            "{} of {treatment} against {control} on {}",
            in_a_sentence(measure),
            self.comparison.outcome
        );
        let mut note = match &size {
            Ok(size) => format!(
                "{what}: {} ({}).",
                four_digits(size.value),
                ci(self.args.alpha, size.interval)
            ),
            Err(reason) => format!("{what}: refused, because {reason}."),
        };
        if size.is_ok() && !self.unadjusted.is_empty() {
            note.push_str(&format!(" Not adjusted for {}.", name_list(self.unadjusted)));
        }
        self.rows.push(EffectSizeRow {
            outcome: self.comparison.outcome.clone(),
            contrast: self.set.contrast.clone(),
            measure,
            value: size.as_ref().ok().map(|size| size.value),
            interval: size.as_ref().ok().map(|size| size.interval),
            standard_error: size.as_ref().ok().and_then(|size| size.standard_error),
            degrees: size.as_ref().ok().map(|size| size.degrees).filter(|df| df.is_finite()),
            interval_kind: kind,
            n,
            status: RowStatus::of(&size),
            note,
        });
    }
}

fn in_a_sentence(measure: &str) -> &'static str {
    match measure {
        "cliffs_delta" => "Cliff's delta",
        "a12" => "Vargha and Delaney's A12",
        "cliffs_delta_within" => "Cliff's delta within units",
        "a12_within" => "The probability within units (A12 of pairs)",
        "cohens_d" => "Cohen's d",
        "hedges_g" => "Hedges' g",
        _ => "Cohen's d_z",
    }
}
