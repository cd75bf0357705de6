//! The rows of `power`: standard deviations, and the effects that a study detects with them.

use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::cast;

use super::Args;
use crate::columns::{NONE, NamedColumns, read_named_columns};
use crate::shared_columns::{Answer, NoNumber, found, reason_of, status_of};
use galeras_base::prose::{count, four_digits, name_list, significant, thousands};
use galeras_causal::{Pilot, StudyDesign, VarianceComponents, pilot};
use galeras_operator::StepError;
use galeras_operator::far_numbers::{LEAST_RANGE, lost_digits, moved};
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, number, optional_count, optional_text, text,
};
use galeras_sql::session::column;

#[derive(Clone, Debug)]
pub(super) struct PilotColumns {
    pub(super) treatment: String,
    pub(super) control: String,
    pub(super) unit: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) outcomes: Vec<String>,
}

/// Reads the columns of a pilot, in the order of `key`.
pub(super) async fn read_pilot(
    input: DataFrame,
    key: &[String],
    pilot: &PilotColumns,
) -> Result<NamedColumns, StepError> {
    let names = [&pilot.treatment].into_iter().chain(&pilot.unit).chain(&pilot.cluster);
    let labels = names.map(|name| (name.clone(), cast(column(name), DataType::Utf8))).collect();
    let frame = read_named_columns(input, key, labels, &pilot.outcomes).await?;
    if frame.rows > NONE as usize / 2 {
        return Err(StepError::new("`power` takes at most 2³¹ rows"));
    }
    Ok(frame)
}

const fn status<Row>(value: fn(&Row) -> &str) -> TableColumn<Row> {
    text("status", "ok or refused", value)
}

const fn reason<Row>(value: fn(&Row) -> Option<&str>) -> TableColumn<Row> {
    optional_text("reason", "why there is no number", value)
}

/// The standard deviations of an outcome and contrast: a row of the port `components`.
pub(super) struct ComponentsRow {
    outcome: String,
    treatment: String,
    source: &'static str,
    found: Answer<Pilot>,
    rows: usize,
    missing: usize,
    note: String,
}

impl ComponentsRow {
    fn components(&self) -> Option<&VarianceComponents> {
        Some(&self.found.as_ref().ok()?.components)
    }

    /// The results of a pilot, which an assumption lacks.
    fn of_pilot(&self) -> Option<&Pilot> {
        self.found.as_ref().ok().filter(|_| self.source == "pilot")
    }
}

impl TableRow for ComponentsRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("outcome", "the outcome", |row| &row.outcome),
        text("treatment", "the arm; any where they are assumed", |row| &row.treatment),
        text("source", "pilot or assumed", |row| row.source),
        number(
            "sd_unit",
            "standard deviation of the effect between data points (within clusters); of outcomes \
             if the study is not paired",
            |row| Some(row.components()?.unit),
        ),
        number("sd_sample", "between samples of a data point under an arm", |row| {
            Some(row.components()?.sample)
        }),
        number("sd_cluster", "of the effect between clusters", |row| {
            Some(row.components()?.cluster)
        }),
        number("pilot_effect", "the effect in the pilot; not assumed", |row| {
            Some(row.of_pilot()?.effect)
        }),
        optional_count("pilot_units", "data points of the pilot", Some("units"), |row| {
            Some(row.of_pilot()?.units)
        }),
        number("pilot_samples", "their samples, on average (harmonic)", |row| {
            Some(row.of_pilot()?.samples)
        }),
        optional_count("pilot_clusters", "their clusters", Some("clusters"), |row| {
            row.of_pilot()?.clusters
        }),
        count_of("n_rows", "rows of the pilot that are used", "rows", |row| row.rows),
        count_of("n_missing", "rows without a value that is needed", "rows", |row| row.missing),
        status(|row| status_of(&row.found)),
        reason(|row| reason_of(&row.found)),
        text("note", "the row in words", |row| &row.note),
    ];
}

/// The standard deviations that a study is planned with.
pub(super) struct Sources {
    pub(super) rows: Vec<ComponentsRow>,
    tests: f64,
}

impl Sources {
    pub(super) fn assumed(args: &Args) -> Self {
        let arms = args.arms.unwrap_or(2);
        let rows: Vec<ComponentsRow> = args
            .assume
            .iter()
            .map(|(outcome, assumed)| ComponentsRow {
                outcome: outcome.clone(),
                treatment: "any".to_owned(),
                source: "assumed",
                found: Ok(Pilot {
                    effect: 0.0,
                    components: VarianceComponents {
                        unit: assumed.unit,
                        cluster: assumed.cluster,
                        sample: assumed.sample,
                    },
                    units: 0,
                    clusters: None,
                    samples: 0.0,
                }),
                rows: 0,
                missing: 0,
                note: format!("The standard deviations of {outcome} are assumed."),
            })
            .collect();
        let tests = args.tests.unwrap_or((arms - 1) * rows.len() as u64);
        Self { rows, tests: tests as f64 }
    }

    pub(super) fn of_pilot(args: &Args, columns: &PilotColumns, frame: &NamedColumns) -> Self {
        let arms = &frame.labels[&columns.treatment].names;
        let mut treatments: Vec<(usize, &String)> = arms.iter().enumerate().collect();
        let control = treatments.iter().find(|(_, name)| **name == columns.control);
        let control = control.map(|(code, _)| *code as u32);
        treatments.retain(|(_, name)| **name != columns.control);
        treatments.sort_by_key(|(_, name)| *name);
        let arms = args.arms.unwrap_or(treatments.len() as u64 + 1);
        let mut rows = Vec::new();
        for outcome in &columns.outcomes {
            for (code, treatment) in &treatments {
                let contrast = (*code as u32, control);
                rows.push(pilot_row(args, columns, frame, outcome, treatment, contrast));
            }
            if treatments.is_empty() {
                let reason = format!("no row has another `{}` than control", columns.treatment);
                rows.push(components_row(columns, outcome, "none", Err(reason), 0, 0));
            }
        }
        let tests = (arms.max(2) - 1) * columns.outcomes.len() as u64;
        Self { rows, tests: args.tests.unwrap_or(tests) as f64 }
    }
}

fn components_row(
    columns: &PilotColumns,
    outcome: &str,
    treatment: &str,
    found: Result<Pilot, String>,
    rows: usize,
    missing: usize,
) -> ComponentsRow {
    let what = format!("{treatment} against {} on {outcome}", columns.control);
    let note = match &found {
        Err(reason) => format!("{what}: refused, because {reason}."),
        Ok(found) => {
            let parts = &found.components;
            let mut note = format!(
                "{what}: standard deviation between data points {}, between samples {}",
                four_digits(parts.unit),
                four_digits(parts.sample)
            );
            if found.clusters.is_some() {
                note.push_str(&format!(", between clusters {}", four_digits(parts.cluster)));
            }
            note.push_str(&format!(
                " ({} of the pilot).",
                count(found.units, "data point", "data points")
            ));
            if found.samples <= 1.0 && columns.unit.is_some() {
                note.push_str(
                    " With one sample each, the noise of samples counts as a difference between \
                     data points: more samples would seem of no use.",
                );
            }
            note
        }
    };
    ComponentsRow {
        outcome: outcome.to_owned(),
        treatment: treatment.to_owned(),
        source: "pilot",
        found: found.map_err(NoNumber::Refused),
        rows,
        missing,
        note,
    }
}

fn pilot_row(
    args: &Args,
    columns: &PilotColumns,
    frame: &NamedColumns,
    outcome: &str,
    treatment: &str,
    (treated_code, control): (u32, Option<u32>),
) -> ComponentsRow {
    let (mut treated, mut outcomes) = (Vec::new(), Vec::new());
    let (mut units, mut clusters) = (Vec::new(), Vec::new());
    let mut missing = 0;
    let values = &frame.numbers[outcome];
    let arms = &frame.labels[&columns.treatment];
    let codes = |name: &Option<String>| name.as_ref().map(|name| &frame.labels[name].rows);
    let (of_units, of_clusters) = (codes(&columns.unit), codes(&columns.cluster));
    for (row, (arm, value)) in arms.rows.iter().zip(values).enumerate() {
        if ![NONE, treated_code].contains(arm) && Some(*arm) != control {
            continue;
        }
        let code = |codes: Option<&Vec<u32>>| codes.map_or(0, |codes| codes[row]);
        let (unit, cluster) = (code(of_units), code(of_clusters));
        if [*arm, unit, cluster].contains(&NONE) || value.is_nan() {
            missing += 1;
            continue;
        }
        treated.push(*arm == treated_code);
        outcomes.push(*value);
        units.push(unit);
        clusters.push(cluster);
    }
    let whole = frame.integers.contains(outcome);
    let found = if control.is_none() {
        Err(format!(
            "no row has `{}` as `{}`: it is {}",
            columns.control,
            columns.treatment,
            name_list(&arms.names)
        ))
    } else if missing > 0 && args.missing == MissingValues::Refuse {
        let rows = count(missing, "row is", "rows are");
        Err(format!("{rows} without a value (missing: drop leaves such rows out)"))
    } else if let Some(reason) = lost_digits(outcome, whole, outcomes.iter().copied(), LEAST_RANGE)
    {
        Err(reason)
    } else {
        // Variances and differences know nothing of a constant.
        let outcomes = moved(outcomes);
        let units = columns.unit.as_ref().map(|_| units.as_slice());
        let clusters = columns.cluster.as_ref().map(|_| clusters.as_slice());
        pilot(&treated, &outcomes, units, clusters).map_err(|refusal| refusal.to_string())
    };
    components_row(columns, outcome, treatment, found, treated.len(), missing)
}

/// A row of the port `out`: the effect or the power of one design.
pub(super) struct PowerRow {
    outcome: String,
    treatment: String,
    units: usize,
    samples: usize,
    /// The effect that was asked for.
    effect: Option<f64>,
    level: f64,
    design: Answer<DesignPower>,
    note: String,
}

/// The numbers of a design.
struct DesignPower {
    effect: f64,
    power: f64,
    units_needed: Option<f64>,
    detectable: f64,
    standard_error: f64,
    degrees: f64,
    equivalence_power: Option<f64>,
    units_for_equivalence: Option<f64>,
}

impl TableRow for PowerRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("outcome", "the outcome", |row| &row.outcome),
        text("treatment", "the arm; any where all are alike", |row| &row.treatment),
        count_of("units", "data points of the study", "units", |row| row.units),
        count_of("samples", "answers to each under an arm", "rows", |row| row.samples),
        number(
            "effect",
            "the effect that is to be found; without `effects` the smallest that is",
            |row| found(&row.design).map_or(row.effect, |found| Some(found.effect)),
        ),
        number("power", "the probability of finding it", |row| Some(found(&row.design)?.power)),
        number(
            "units_needed",
            "the data points with which it is found with the wanted probability",
            |row| found(&row.design)?.units_needed,
        ),
        number(
            "detectable_effect",
            "the smallest effect that this study finds with the wanted probability",
            |row| Some(found(&row.design)?.detectable),
        ),
        number("standard_error", "of the effect", |row| Some(found(&row.design)?.standard_error)),
        number("df", "degrees of freedom of its t", |row| Some(found(&row.design)?.degrees)),
        number("level", "of one test: alpha over the number of tests", |row| Some(row.level)),
        number(
            "equivalence_power",
            "the probability of showing that an effect of 0 lies within the margin",
            |row| found(&row.design)?.equivalence_power,
        ),
        number(
            "units_for_equivalence",
            "the data points with which that has the wanted probability",
            |row| found(&row.design)?.units_for_equivalence,
        ),
        status(|row| status_of(&row.design)),
        reason(|row| reason_of(&row.design)),
        text("note", "the row in words", |row| &row.note),
    ];
}

pub(super) fn power_rows(args: &Args, sources: &Sources) -> Vec<PowerRow> {
    let effects: Vec<Option<f64>> = match args.effects.as_slice() {
        [] => vec![None],
        given => given.iter().copied().map(Some).collect(),
    };
    let mut rows = Vec::new();
    for source in &sources.rows {
        for units in &args.units {
            for samples in &args.samples {
                let size = (*units as usize, *samples as usize);
                rows.extend(
                    effects.iter().map(|one| power_row(args, sources.tests, source, size, *one)),
                );
            }
        }
    }
    rows
}

fn power_row(
    args: &Args,
    tests: f64,
    source: &ComponentsRow,
    (units, samples): (usize, usize),
    effect: Option<f64>,
) -> PowerRow {
    let level = args.alpha / tests;
    let design = StudyDesign {
        units: units as f64,
        samples: samples as f64,
        paired: args.paired,
        cluster_size: args.cluster_size.map(|size| size as f64),
    };
    let power = |found: Pilot| -> Answer<DesignPower> {
        let parts = &found.components;
        let detectable = design.detectable(parts, level, args.power)?;
        let effect = effect.unwrap_or(detectable);
        let for_equivalence =
            |margin| design.units_for_equivalence(parts, 0.0, margin, level, args.power).ok();
        Ok(DesignPower {
            effect,
            power: design.power(parts, effect, level),
            units_needed: design.units_needed(parts, effect, level, args.power).ok(),
            detectable,
            standard_error: design.standard_error(parts),
            degrees: design.degrees(),
            equivalence_power: args
                .margin
                .map(|margin| design.equivalence_power(parts, 0.0, margin, level)),
            units_for_equivalence: args.margin.and_then(for_equivalence),
        })
    };
    let found = source.found.clone().and_then(power);
    let outcome = source.outcome.clone();
    let note = match &found {
        Ok(found) => note(args, tests, &outcome, (units, samples), found),
        Err(none) => format!("The power for {outcome} is refused, because {}.", none.reason()),
    };
    let treatment = source.treatment.clone();
    PowerRow { outcome, treatment, units, samples, effect, level, design: found, note }
}

fn note(
    args: &Args,
    tests: f64,
    outcome: &str,
    (units, samples): (usize, usize),
    found: &DesignPower,
) -> String {
    let percent = |share: f64| significant(100.0 * share, 3);
    let samples = match samples {
        1 => "once".to_owned(),
        samples => format!("{} times", thousands(samples)),
    };
    let arms = if args.paired { "under each arm" } else { "under one of two arms" };
    let mut text = format!(
        "{}, answered {samples} {arms}, find an effect of {} on {outcome} with a probability of {} \
         % (t test at the level {}, {} over {}).",
        count(units, "data point", "data points"),
        four_digits(found.effect),
        percent(found.power),
        four_digits(args.alpha / tests),
        args.alpha,
        count(tests as usize, "test", "tests"),
    );
    let wanted = percent(args.power);
    text.push_str(&match found.units_needed {
        Some(needed) => {
            format!(" {wanted} % take {} data points.", thousands(needed as usize))
        }
        None => format!(" {wanted} % take more than a billion data points."),
    });
    if !args.effects.is_empty() {
        let least = four_digits(found.detectable);
        text.push_str(&format!(" The smallest effect found with {wanted} % is {least}."));
    }
    if let (Some(margin), Some(power)) = (args.margin, found.equivalence_power) {
        text.push_str(&format!(
            " That an effect of 0 lies within ±{margin} is shown with a probability of {} %",
            percent(power)
        ));
        text.push_str(&match found.units_for_equivalence {
            Some(needed) => {
                format!("; {wanted} % take {} data points.", thousands(needed as usize))
            }
            None => ".".to_owned(),
        });
    }
    text
}
