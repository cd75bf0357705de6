//! Sensitivity contours: the rows of the port `contours`, data for a figure of the estimate of a
//! regression with confounders of growing strength.

use super::analysis::SetContext;
use super::comparison::{Comparison, Contrast};
use crate::shared_columns::{
    self as columns, Answer, IntervalEstimate, NoNumber, found, reason_of, status_of,
};
use crate::words::ci;
use galeras_base::prose::by_interval;
use galeras_causal::{Benchmarks, ConfounderStrength, Estimate, Refusal, with_confounder};
use galeras_operator::small_table::{TableColumn, TableRow, number, text};

/// The grid has the shares 0, 0.02, … of both treatment and outcome.
const STEPS: usize = 21;
/// The largest is 0.4, as in sensemakr's figures.
const LARGEST: f64 = 0.4;
/// Confounders are shown that are as strong as a covariate this many times.
const TIMES: [f64; 3] = [1.0, 2.0, 3.0];

/// The estimate with one more confounder.
pub(super) struct ContourRow {
    outcome: String,
    contrast: Contrast,
    kind: &'static str,
    point: String,
    strength: Option<ConfounderStrength>,
    estimate: Answer<IntervalEstimate>,
    note: String,
}

impl TableRow for ContourRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text("kind", "grid, or benchmark: as strong as a covariate", |row| row.kind),
        text("point", "the two shares; for a benchmark how many times which covariate", |row| {
            &row.point
        }),
        columns::status(|row| status_of(&row.estimate)),
        columns::reason(|row| reason_of(&row.estimate)),
        number(
            "treatment_r2",
            "the share that the confounder explains of what is left of the treatment",
            |row| Some(row.strength?.treatment_r2),
        ),
        number("outcome_r2", "the share that it explains of what is left of the outcome", |row| {
            Some(row.strength?.outcome_r2)
        }),
        number("estimate", "the effect with such a confounder", |row| {
            Some(found(&row.estimate)?.estimate.value)
        }),
        number("standard_error", "its classic standard error", |row| {
            Some(found(&row.estimate)?.estimate.standard_error)
        }),
        number("ci_low", "lower end of its confidence interval", |row| {
            Some(found(&row.estimate)?.interval.0)
        }),
        number("ci_high", "upper end", |row| Some(found(&row.estimate)?.interval.1)),
        number("t", "the estimate divided by its standard error", |row| {
            Some(found(&row.estimate)?.estimate.statistic()).filter(|t| t.is_finite())
        }),
        columns::note(|row| &row.note),
    ];
}

/// The rows of one comparison: none without covariates, one with the reason if there is no adjusted
/// regression.
pub(super) fn contour_rows(cx: &SetContext<'_>, comparison: &Comparison) -> Vec<ContourRow> {
    let SetContext { args, set, .. } = *cx;
    if set.names.is_empty() {
        return Vec::new();
    }
    let row = |kind, point: String, strength, found: Result<Estimate, String>, note: String| {
        let with_interval = |estimate| IntervalEstimate::new(estimate, args.alpha);
        ContourRow {
            outcome: comparison.outcome.clone(),
            contrast: set.contrast.clone(),
            kind,
            point,
            strength,
            estimate: found.map(with_interval).map_err(NoNumber::Refused),
            note,
        }
    };
    let benchmarks = match regression(cx, comparison) {
        Ok(benchmarks) => benchmarks,
        Err(reason) => {
            let note = format!("No contours: {reason}.");
            return vec![row("grid", String::new(), None, Err(reason), note)];
        }
    };
    let words = |refusal: Refusal| columns::named(&refusal, &set.names);
    let sentence = |of: &str, found: &Result<Estimate, String>| match found {
        Ok(estimate) => {
            let ends = estimate.interval(args.alpha);
            format!(
                "With a confounder {of}, the effect on {} in a linear regression would be {} ({}).",
                comparison.outcome,
                by_interval(estimate.value, ends),
                ci(args.alpha, ends)
            )
        }
        Err(reason) => format!("With a confounder {of}: {reason}."),
    };
    let mut rows = Vec::new();
    let share = |at: usize| LARGEST * at as f64 / (STEPS - 1) as f64;
    for (treatment_r2, outcome_r2) in
        (0..STEPS).flat_map(|x| (0..STEPS).map(move |y| (share(x), share(y))))
    {
        let strength = ConfounderStrength { treatment_r2, outcome_r2 };
        let found = with_confounder(&benchmarks.estimate, strength).map_err(words);
        let of = format!(
            "that explains {:.0} % of what is left of the treatment and {:.0} % of the outcome",
            100.0 * treatment_r2,
            100.0 * outcome_r2
        );
        let point = format!("{treatment_r2:.2}, {outcome_r2:.2}");
        let note = sentence(&of, &found);
        rows.push(row("grid", point, Some(strength), found, note));
    }
    for (at, name) in set.names.iter().enumerate() {
        for times in TIMES {
            let strength = benchmarks.bound(at, times);
            let found = match strength {
                Some(strength) => with_confounder(&benchmarks.estimate, strength).map_err(words),
                None => Err("it would explain more of the treatment than there is".into()),
            };
            let of = format!("at most {times} times as strong as `{name}`");
            let note = sentence(&of, &found);
            rows.push(row("benchmark", format!("{times}x {name}"), strength, found, note));
        }
    }
    rows
}

/// The linear regression with the covariates, or why it may not be used.
fn regression(cx: &SetContext<'_>, comparison: &Comparison) -> Result<Benchmarks, String> {
    let set = cx.set;
    let refused = comparison.refused.as_ref().or(set.adjusting_refused()).cloned();
    if let Some(reason) = refused.or_else(|| cx.separated()) {
        return Err(reason);
    }
    Benchmarks::new(&set.treated, comparison.near_zero(), &set.covariates())
        .map_err(|refusal| columns::named(&refusal, &set.names))
}
