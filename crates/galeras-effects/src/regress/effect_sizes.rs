//! Effect sizes without a unit: the rows of the port `effect_sizes`.

use super::args::Args;
use super::comparison::{Comparison, Contrast, RowSet, group_count};
use super::estimators::pairs::UnitPairs;
use super::frame::gather;
use crate::shared_columns::{self as columns, Answer, NoNumber, found, reason_of, status_of};
use crate::words::ci;
use galeras_base::prose::{by_interval, name_list};
use galeras_causal::{
    Dominance, OneSided, Refusal, Standardised, dense, dominance, dominance_within,
    standardised_difference, standardised_pairs,
};
use galeras_operator::small_table::{TableColumn, TableRow, count_of, number, text};

pub(super) struct EffectSizeRow {
    outcome: String,
    contrast: Contrast,
    measure: &'static str,
    size: Answer<Size>,
    interval_kind: &'static str,
    n: usize,
    note: String,
}

/// The numbers of a measure.
struct Size {
    value: f64,
    interval: (f64, f64),
    standard_error: Option<f64>,
    degrees: f64,
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
        number("value", "the effect size", |row| Some(found(&row.size)?.value)),
        number("ci_low", "lower end of its confidence interval", |row| {
            Some(found(&row.size)?.interval.0)
        }),
        number("ci_high", "upper end", |row| Some(found(&row.size)?.interval.1)),
        number(
            "standard_error",
            "its standard error; null where the interval inverts the noncentral t",
            |row| found(&row.size)?.standard_error,
        ),
        number("df", "degrees of freedom of the interval", |row| {
            Some(found(&row.size)?.degrees).filter(|df| df.is_finite())
        }),
        text("interval_kind", "how the interval is computed", |row| row.interval_kind),
        count_of("n", "rows that are compared; within units, units", "rows", |row| row.n),
        columns::status(|row| status_of(&row.size)),
        columns::reason(|row| reason_of(&row.size)),
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

/// The effect sizes of a comparison, and their rows.
pub(super) fn effect_sizes(
    args: &Args,
    set: &RowSet,
    comparison: &Comparison,
) -> (EffectSizes, Vec<EffectSizeRow>) {
    let pairs = set.pairs(comparison.near_zero());
    let rows = ComparedRows::of(set, comparison, pairs.as_ref());
    // Within units everything about a unit is balanced; else the arms are compared as they are.
    let refused = comparison.refused.clone().or_else(|| match pairs {
        Some(_) => None,
        None => set.plan.unadjusted_refused.clone(),
    });
    let usable = refused.map_or(Ok(()), Err);
    let whole = |refusal: Refusal| refusal.to_string();
    let (treated, outcome, clusters) = (&rows.treated, &rows.outcome, rows.clusters.as_deref());
    let of_arms =
        usable.clone().and_then(|()| dominance(treated, outcome, clusters).map_err(whole));
    let d = usable
        .clone()
        .and_then(|()| standardised_difference(treated, outcome, clusters).map_err(whole));
    let g = d.clone().and_then(|d| match d.hedges_correction() {
        Some(factor) => Ok((d, factor)),
        None => Err("too few rows for Hedges' correction".to_owned()),
    });
    let unadjusted_for = if pairs.is_some() { Vec::new() } else { set.names.clone() };
    let mut table = Vec::new();
    let mut add = |measure, words: &str, size: Result<Size, String>, interval_kind, n| {
        let Contrast { treatment, control } = &set.contrast;
        let what = format!("{words} of {treatment} against {control} on {}", comparison.outcome);
        let mut note = match &size {
            Ok(size) => {
                let value = by_interval(size.value, size.interval);
                format!("{what}: {value} ({}).", ci(args.alpha, size.interval))
            }
            Err(reason) => format!("{what}: refused, because {reason}."),
        };
        if size.is_ok() && !unadjusted_for.is_empty() {
            note.push_str(&format!(" Not adjusted for {}.", name_list(&unadjusted_for)));
        }
        table.push(EffectSizeRow {
            outcome: comparison.outcome.clone(),
            contrast: set.contrast.clone(),
            measure,
            size: size.map_err(NoNumber::Refused),
            interval_kind,
            n,
            note,
        });
    };
    let alpha = args.alpha;
    let delta = |found: Dominance| Size {
        value: found.delta,
        interval: found.interval(alpha),
        standard_error: Some(found.standard_error),
        degrees: found.degrees,
    };
    let a12 = |found: Dominance| Size {
        value: found.a12(),
        interval: found.a12_interval(alpha),
        standard_error: Some(0.5 * found.standard_error),
        degrees: found.degrees,
    };
    let scaled = |(found, factor): (Standardised, f64)| {
        let (low, high) = found.interval(alpha);
        Size {
            value: factor * found.value,
            interval: (factor * low, factor * high),
            standard_error: found.standard_error().map(|error| factor * error),
            degrees: found.degrees(),
        }
    };
    let n = outcome.len();
    let kind = match (&set.clusters, &set.units) {
        (Some(_), _) => "Feng and Cliff, variance by clusters (Obuchowski)",
        (None, Some(_)) => "Feng and Cliff, variance by units (Obuchowski)",
        (None, None) => "Feng and Cliff, variance of Brunner and Munzel",
    };
    add("cliffs_delta", "Cliff's delta", of_arms.clone().map(delta), kind, n);
    add("a12", "Vargha and Delaney's A12", of_arms.clone().map(a12), kind, n);
    let kind = if clusters.is_some() { "sandwich by clusters" } else { "noncentral t" };
    add("cohens_d", "Cohen's d", d.clone().map(|d| scaled((d, 1.0))), kind, n);
    add("hedges_g", "Hedges' g", g.map(scaled), kind, n);
    let standardised_pairs = pairs.map(|pairs| {
        let codes = usable.and_then(|()| match (&set.units, &set.clusters) {
            (Some(units), Some(clusters)) => {
                let codes = pairs.clusters(units, clusters).map_err(whole)?;
                Ok(Some(dense(codes.into_iter())))
            }
            _ => Ok(None),
        });
        let differences = pairs.differences();
        let (codes, n) = (codes.as_ref().map_err(String::clone), differences.len());
        let within = codes
            .clone()
            .and_then(|codes| dominance_within(&differences, codes.as_deref()).map_err(whole));
        let dz = codes
            .and_then(|codes| standardised_pairs(&differences, codes.as_deref()).map_err(whole));
        let (kind, kind_of_dz) = match set.clusters {
            Some(_) => ("Feng and Cliff, by clusters", "sandwich by clusters"),
            None => ("Feng and Cliff", "noncentral t"),
        };
        let words = "Cliff's delta within units";
        add("cliffs_delta_within", words, within.clone().map(delta), kind, n);
        let words = "The probability within units (A12 of pairs)";
        add("a12_within", words, within.map(a12), kind, n);
        add("cohens_dz", "Cohen's d_z", dz.clone().map(|dz| scaled((dz, 1.0))), kind_of_dz, n);
        dz
    });
    let dominance = of_arms;
    let sizes = EffectSizes { dominance, standardised: d, standardised_pairs, unadjusted_for };
    (sizes, table)
}
